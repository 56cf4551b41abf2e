"""Carrying out a plan: the very steps that ``plan`` prints, one after the other, the watermark last.

Each table is looked at again right before it is touched; where what the plan saw has moved, apply refuses. A step that
fails leaves a state from which the next run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from schemasync.app.admitting import AdmissionOutcome, admit, put_off
from schemasync.app.altering import WATERMARKS, carry_out, moved
from schemasync.app.crew import each_table
from schemasync.app.forsaken import forsaken
from schemasync.app.history_table import write_history
from schemasync.app.holds import note_hold
from schemasync.app.inspecting import Entries, entries_of, is_misplaced, look
from schemasync.app.planning import TablePlan, admits, lay_out_steps
from schemasync.app.rekeying import key_is_unclear
from schemasync.app.repairing import drop_aside, drop_old, lacks_columns
from schemasync.app.states import Draft, repair_partitions, roll_forward
from schemasync.app.viewing import catch_up, restore_view
from schemasync.app.workspace import Workspace
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, names_held_file
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import Step
from schemasync.core.policy import Verdict
from schemasync.core.ports import HiveTable
from schemasync.core.properties import TableProperties, readable
from schemasync.core.renamed import with_old_history
from schemasync.core.shape import Shape
from schemasync.core.step_kinds import (
    ADMIT,
    DROP_OLD_VIEW,
    RECORD_HISTORY,
    REPAIR_COLUMNS,
    REPAIR_PARTITIONS,
    RESTORE_VIEW,
)
from schemasync.errors import SchemasyncError, UsageError, as_ours
from schemasync.io.logs import told


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What apply did with one table. ``error`` is set where it stopped; other tables went on.

    ``unrecorded`` says why the history table could not be written; all else was done then. ``shape`` and
    ``properties`` are the table's afterwards, None where there is no table of ours. ``view`` is the view as planning
    found it, None where this run has changed it since. ``held_since_ms`` is when the hold of its schema began.
    """

    plan: TablePlan
    done: tuple[Step, ...] = ()
    admitted: AdmissionOutcome | None = None
    shape: Shape | None = None
    properties: TableProperties | None = None
    error: SchemasyncError | None = None
    unrecorded: SchemasyncError | None = None
    view: HiveTable | None = None
    held_since_ms: int | None = None

    @property
    def target(self) -> TableTarget:
        """The table."""
        return self.plan.target

    @property
    def version(self) -> int | None:
        """The version that the table has afterwards, also where it failed; None where there is no table of ours."""
        if self.properties is not None:
            return self.properties.version
        reached = any(step.kind in WATERMARKS for step in self.done)
        return self.plan.properties.version if reached and self.plan.properties else self.plan.current_version

    @property
    def waiting(self) -> int:
        """Landed files that wait, for whatever reason: all where none could be admitted, as while no shape is known."""
        return self.admitted.waiting if self.admitted else self.plan.landed

    @property
    def held(self) -> bool:
        """Tell whether something about this table waits for a person."""
        findings = self.admitted.findings if self.admitted else ()
        return self.error is None and (self.plan.verdict is Verdict.HOLD or names_held_file(findings))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything there is to say about the table."""
        return (*self.plan.diagnostics, *(self.admitted.findings if self.admitted else ()))

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``apply --json``."""
        admitted = self.admitted
        return {
            "table": self.target.table,
            "database": self.target.database,
            "subject": self.target.subject,
            "version": self.version,
            "verdict": "hold" if self.held else self.plan.verdict.value,
            "steps": [step.to_json() for step in self.done],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
            "admitted": {
                "files": admitted.files if admitted else 0,
                "events": admitted.events if admitted else 0,
                "waiting": self.waiting,
            },
            "error": told(self.error),
            "unrecorded": told(self.unrecorded),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What apply did with all tables, and what in the configuration stood in the way; ``diagnostics`` as in a plan."""

    tables: tuple[Applied, ...]
    problems: tuple[UsageError, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``apply --json`` prints."""
        return {
            "tables": [t.to_json() for t in self.tables],
            "problems": [str(p) for p in self.problems],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


def apply(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    expected: Mapping[str, str] | None = None,
) -> ApplyResult:
    """Bring the named tables (all where none is named) to what the registry says, and admit what landed.

    So many at once as the configuration says, results in the order of the configuration.
    ``expected`` are the fingerprints of a stored plan by ``database.table``: where one differs now, that table is
    refused.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    results, mapping = each_table(workspace, names, partial(apply_table, expected=expected), among=expected)
    gone = () if expected is not None else forsaken(workspace, mapping, names)
    return ApplyResult(tables=results, problems=mapping.problems, diagnostics=gone)


def apply_table(
    workspace: Workspace,
    target: TableTarget,
    *,
    expected: Mapping[str, str] | None = None,
    allowed: Callable[[TablePlan], bool] = lambda _: True,
    admitting: bool = True,
    publishing: bool = True,
) -> Applied:
    """Apply one table. Its errors are part of the result: one broken table never stops the others.

    ``allowed`` may refuse to change its schema; what landed is admitted all the same.
    Unless ``publishing``, the caller publishes what was admitted. Unless ``admitting``, nothing is changed but what is
    ``allowed``.
    """
    plan = TablePlan(target=target, verdict=Verdict.HOLD)
    done: list[Step] = []
    first: AdmissionOutcome | None = None
    since: int | None = None
    try:
        entries = entries_of(workspace, target)
        if admitting and _finish_publication(workspace, target, entries):
            entries = entries_of(workspace, target)
        plan = lay_out_steps(workspace, look(workspace, target, entries))
        if expected is not None and expected[target.full_name] != plan.fingerprint:
            raise moved(target)
        approved = plan if expected is not None else None
        if admitting and _put_right(workspace, plan, done, allowed):
            # The values of rows and columns that were not there are yet to be looked at.
            plan = _planned_again(workspace, target, approved)
        changing = plan.pending and allowed(plan)
        admitting_steps = [step for step in plan.steps if step.kind == ADMIT]
        first = _admit_first(workspace, plan) if changing and admitting else None
        if first is not None and first.files:
            # What came in may hold a value that does not fit the new type.
            plan = _planned_again(workspace, target, approved)
            changing = plan.pending and allowed(plan)
        carried_out = carry_out(workspace, plan, done) if changing else None
        if admitting and plan.verdict is Verdict.HOLD:
            _restore_view(workspace, plan, done)
        shape, properties = _standing(plan, changed=changing)
        properties = carried_out or properties
        admitted = seen = None
        if admitting and properties is not None:
            # Also where the table's own shape is not understood.
            waits = plan.verdict is Verdict.HOLD or (plan.pending and not changing)
            since = note_hold(workspace, target, properties.version, held=waits)
        if admitting and shape is not None and properties is not None:
            seen = None if done else _seen(plan)
            admitted = _admit(workspace, plan, shape, properties, publishing=publishing, seen=seen).after(first)
            properties = admitted.draft.properties
    except Exception as error:
        return Applied(plan=plan, done=tuple(done), error=as_ours(error), admitted=first, held_since_ms=since)
    if admitted is not None and admitted.files:
        done += admitting_steps
        if publishing:
            seen = None
    unrecorded = _record_history(workspace, plan, shape, properties, done) if admitting else None
    return Applied(
        plan=plan,
        done=tuple(done),
        admitted=admitted,
        shape=shape,
        properties=properties,
        unrecorded=unrecorded,
        view=seen,
        held_since_ms=since,
    )


def _planned_again(workspace: Workspace, target: TableTarget, approved: TablePlan | None) -> TablePlan:
    """Plan once more, as the table is another now; nothing is let through that a kept plan does not say, but a hold.

    Raises:
        ConflictError: the registry, say, has another version by now.
    """
    plan = lay_out_steps(workspace, look(workspace, target))
    if approved is not None and plan.pending and not plan.within(approved):
        raise moved(target)
    return plan


def _record_history(
    workspace: Workspace, plan: TablePlan, shape: Shape | None, properties: TableProperties | None, done: list[Step]
) -> SchemasyncError | None:
    """Write the history table where that was planned; return why it could not be: the table itself has all it needs."""
    planned = [step for step in plan.steps if step.kind == RECORD_HISTORY]
    if not planned or plan.view is None or shape is None or properties is None:
        return None
    target = with_old_history(plan.target, properties, plan.view.inspected.old_history)
    try:
        done += planned if write_history(workspace, target, shape, properties) else []
    except Exception as error:
        return as_ours(error)
    return None


def _admit_first(workspace: Workspace, plan: TablePlan) -> AdmissionOutcome | None:
    """Bring in what the old schema can read before a migration, so that all its values are looked at."""
    decision = plan.view.decision if plan.view else None
    if plan.verdict is not Verdict.MIGRATE or decision is None or decision.current is None:
        return None
    if key_is_unclear(decision):
        return None
    if decision.properties is None:  # pragma: no cover - a table with a current shape has properties
        return None
    return admit(workspace, plan.target, decision.current, decision.properties)


def _admit(
    workspace: Workspace,
    plan: TablePlan,
    shape: Shape,
    properties: TableProperties,
    *,
    publishing: bool,
    seen: HiveTable | None,
) -> AdmissionOutcome:
    """Admit what landed, where that is possible."""
    if not admits(plan):
        return put_off(workspace, plan.target, properties)
    return admit(workspace, plan.target, shape, properties, publishing=publishing, seen=seen)


def _finish_publication(workspace: Workspace, target: TableTarget, entries: Entries) -> bool:
    """Put in force what a killed run left, before anything is decided: the view must know the segments of that state.

    What cannot be understood is left to planning, which says why. Return whether the metastore has changed.
    """
    properties = readable(entries.table.properties) if entries.table else None
    if entries.table is None or properties is None or properties.subject != target.subject:
        return False
    if is_misplaced(workspace, target, entries.table):
        return False
    dropped = drop_aside(workspace, target, entries.aside)
    return roll_forward(workspace, target, properties) != properties or dropped


def _seen(plan: TablePlan) -> HiveTable | None:
    """Return the view as planning found it, None where there is none, or another under its old name."""
    return plan.view.inspected.view if plan.view and len(plan.view.inspected.views) == 1 else None


def _standing(plan: TablePlan, *, changed: bool) -> tuple[Shape | None, TableProperties | None]:
    """Return the shape and properties that the table has now."""
    decision = plan.view.decision if plan.view else None
    if decision is None:  # pragma: no cover - planning looked, or raised
        return None, None
    if changed or not plan.pending:
        return decision.effective, plan.properties
    return decision.current, decision.properties


def _catch_up(workspace: Workspace, plan: TablePlan) -> bool:
    """Show what a killed run had published, before the view gets another shape; return whether it did."""
    view = plan.view
    if view is None or view.manifest is None:
        return False
    current, properties = view.decision.current, view.decision.properties
    if current is None or properties is None:
        return False
    draft = Draft.of(properties, view.manifest)
    return any(catch_up(workspace, plan.target, current, draft, seen=seen) for seen in view.inspected.views)


def _restore_view(workspace: Workspace, plan: TablePlan, done: list[Step]) -> None:
    """Let a held table's view answer under its name of now, and under no other."""
    view = plan.view
    current = view.decision.current if view else None
    for step in plan.steps:
        if step.kind == RESTORE_VIEW:
            if view is None or view.manifest is None or current is None:  # pragma: no cover - it was planned from them
                raise moved(plan.target)
            # Another writer may have published since, and shown that.
            restore_view(workspace, plan.target, current, view.manifest)
        elif step.kind == DROP_OLD_VIEW:
            drop_old(workspace, plan.target, step)
        else:
            continue
        done.append(step)


def _put_right(workspace: Workspace, plan: TablePlan, done: list[Step], allowed: Callable[[TablePlan], bool]) -> bool:
    """Bring back what the state in force has, before anything new is done; return whether something was not there."""
    partitions = _repair_partitions(workspace, plan, done)
    columns = _repair_columns(workspace, plan, done, allowed)
    return _catch_up(workspace, plan) or partitions or columns


def _repair_partitions(workspace: Workspace, plan: TablePlan, done: list[Step]) -> bool:
    """Make the partitions those of the state in force, whatever becomes of the schema: until then the view is wrong.

    Return whether they were others.
    """
    view = plan.view
    properties = view.decision.properties if view else None
    steps = [step for step in plan.steps if step.kind == REPAIR_PARTITIONS]
    for step in steps:
        if view is None or view.manifest is None or properties is None:  # pragma: no cover - it was planned from them
            raise moved(plan.target)
        workspace.progress(plan.target.table, f"repair partitions: {step.why}")
        repair_partitions(workspace, plan.target, properties, view.manifest)
        done.append(step)
    return bool(steps)


def _repair_columns(
    workspace: Workspace, plan: TablePlan, done: list[Step], allowed: Callable[[TablePlan], bool]
) -> bool:
    """Put back columns that somebody dropped before the table is migrated; return whether that was needed.

    As they were: what they hold may have the table held.
    """
    view = plan.view
    if view is None or plan.verdict is not Verdict.MIGRATE or not lacks_columns(view) or not allowed(plan):
        return False
    held = replace(view, decision=replace(view.decision, verdict=Verdict.HOLD))
    steps = tuple(step for step in plan.steps if step.kind == REPAIR_COLUMNS)
    carry_out(workspace, replace(plan, view=held, steps=steps), done)
    return True
