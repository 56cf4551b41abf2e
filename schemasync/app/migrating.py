"""Looking at the values of retyped columns before their view changes: each must fit, or the table is held.

Called by planning, so that plan shows what apply will find; apply plans again right before it acts. And by releasing,
which tells what release would lift a hold. Rows and columns that somebody took from the metastore are not looked at:
apply puts them back first, and plans again then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from schemasync.app.inspecting import TableView
from schemasync.app.repairing import lacks_columns
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.migration import Misfits, Question, detoured, questions, stuck, unfit_defaults
from schemasync.core.policy import Verdict
from schemasync.core.shape import Shape

SAMPLES: Final = 5
"""How many of the values that do not fit are shown."""
_KNOWN: Final[dict[tuple[str, str], tuple[object, tuple[Misfits, ...]]]] = {}
"""What was found in tables that are held, by location and name, with the question and the rows that it was asked of:
files land all the time, each makes for another look, and to ask takes a scan."""


def with_values_checked(workspace: Workspace, found: TableView) -> TableView:
    """Return the view of a table, held where a value does not fit its new type, or cannot become of it at all."""
    decision, shape = found.decision, found.decision.desired
    if decision.verdict is Verdict.HOLD or shape is None or found.manifest is None:
        return found
    older = _older(found.manifest, shape)
    findings = unfit_defaults(shape, older) or stuck(shape, older)
    if not findings and decision.current is not None:
        findings = detoured(decision.current, shape, _older(found.manifest, decision.current))
    if not findings and decision.verdict is Verdict.MIGRATE and not lacks_columns(found):
        findings = tuple(m.finding for m in misfits(workspace, found, shape, found.manifest))
    if not findings:
        return found
    kept = (d for d in decision.diagnostics if d.code != "SS113")  # it says that all of them fit
    held = replace(decision, verdict=Verdict.HOLD, diagnostics=(*kept, *findings))
    return replace(found, decision=held)


def misfits(workspace: Workspace, found: TableView, shape: Shape, manifest: Manifest) -> tuple[Misfits, ...]:
    """Ask the table for values that do not fit a shape; a table that they hold is asked again once its rows change."""
    target = found.decision.target
    asked = questions(shape, _older(manifest, shape))
    if not asked:
        return ()
    text = workspace.text(ddl.count_misfits(target, asked, manifest.contents))
    table = (workspace.storage(target).lake.root, target.full_name)
    # By its hash, as partitions carry all their columns.
    rows = (asked, text, hash((tuple(s.location for s in manifest.segments), frozenset(found.partitions.items()))))
    known = _KNOWN.pop(table, None)
    if known is None or known[0] != rows:
        (counts,) = workspace.sql.query(text).rows
        answer = tuple(
            Misfits(question=question, count=count, samples=_samples(workspace, target, question, manifest))
            for question, count in zip(asked, counts, strict=True)
            if count
        )
        known = (rows, answer)
    # That all of them fit is never taken from here.
    if known[1]:
        _KNOWN[table] = known
    return known[1]


def _older(manifest: Manifest, shape: Shape) -> tuple[int, ...]:
    return tuple(version for version in manifest.segment_versions if version < shape.version.version)


def _samples(workspace: Workspace, target: TableTarget, question: Question, manifest: Manifest) -> tuple[str, ...]:
    rows = workspace.sql.query(workspace.text(ddl.show_misfits(target, question, manifest.contents, SAMPLES))).rows
    return tuple(row[0] for row in rows)
