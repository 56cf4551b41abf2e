"""Looking at the values of retyped columns before their view changes: each must fit, or the table is held.

Called by planning, so that plan shows what apply will find; apply plans again right before it acts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from schemasync.app.inspecting import TableView
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.migration import Misfits, Question, questions, unfit_defaults
from schemasync.core.plan import Shape
from schemasync.core.policy import Verdict

SAMPLES: Final = 5
"""How many of the values that do not fit are shown."""


def with_values_checked(workspace: Workspace, found: TableView) -> TableView:
    """Return the view of a table with its migration held where a value does not fit."""
    decision, shape = found.decision, found.decision.desired
    if decision.verdict is not Verdict.MIGRATE or shape is None:
        return found
    findings = unfit_defaults(shape)
    if not findings and found.manifest is not None:
        findings = tuple(m.finding for m in misfits(workspace, decision.target, shape, found.manifest))
    if not findings:
        return found
    kept = (d for d in decision.diagnostics if d.code != "SS113")  # it says that all of them fit
    held = replace(decision, verdict=Verdict.HOLD, diagnostics=(*kept, *findings))
    return replace(found, decision=held)


def misfits(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest) -> tuple[Misfits, ...]:
    """Ask the table for values that do not fit a shape; folded deltas count while they are registered."""
    asked = questions(shape, (v for v in manifest.segment_versions if v < shape.version.version))
    if not asked:
        return ()
    (counts,) = workspace.sql.query(workspace.text(ddl.count_misfits(target, asked))).rows
    return tuple(
        Misfits(question=question, count=count, samples=_samples(workspace, target, question))
        for question, count in zip(asked, counts, strict=True)
        if count
    )


def _samples(workspace: Workspace, target: TableTarget, question: Question) -> tuple[str, ...]:
    rows = workspace.sql.query(workspace.text(ddl.show_misfits(target, question, SAMPLES))).rows
    return tuple(row[0] for row in rows)
