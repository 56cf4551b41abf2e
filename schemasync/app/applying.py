"""Carrying out a plan: the very steps that ``plan`` prints, one after the other, the watermark last.

Each table is looked at again right before it is touched; where what the plan saw has moved, apply refuses. A step that
fails leaves a state from which the next run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemasync.app.admitting import AdmissionOutcome, admit
from schemasync.app.inspecting import TableView, look, map_tables, select
from schemasync.app.planning import TablePlan, lay_out_steps
from schemasync.app.repairing import repair_columns, replace_view, restore_table
from schemasync.app.states import keep_schema, repair_partitions, roll_forward
from schemasync.app.workspace import Workspace
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, Severity
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import Shape, Step
from schemasync.core.policy import Verdict
from schemasync.core.properties import STATE, TableProperties, is_ours, read_properties, write_properties
from schemasync.errors import ConflictError, EngineError, SchemasyncError, UsageError, as_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What apply did with one table. ``error`` is set where it stopped; other tables went on.

    ``shape`` and ``properties`` are the table's afterwards, None where there is no table of ours.
    """

    plan: TablePlan
    done: tuple[Step, ...] = ()
    admitted: AdmissionOutcome | None = None
    shape: Shape | None = None
    properties: TableProperties | None = None
    error: SchemasyncError | None = None

    @property
    def target(self) -> TableTarget:
        """The table."""
        return self.plan.target

    @property
    def held(self) -> bool:
        """Tell whether something about this table waits for a person."""
        findings = self.admitted.findings if self.admitted else ()
        waiting = any(d.severity is Severity.ERROR for d in findings)
        return self.error is None and (self.plan.verdict is Verdict.HOLD or waiting)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything there is to say about the table."""
        return (*self.plan.diagnostics, *(self.admitted.findings if self.admitted else ()))

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``apply --json``."""
        admitted = self.admitted
        return {
            "table": self.target.table,
            "subject": self.target.subject,
            "version": self.plan.properties.version if self.plan.properties else None,
            "verdict": "hold" if self.held else self.plan.verdict.value,
            "steps": [step.to_json() for step in self.done],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
            "admitted": {
                "files": admitted.files if admitted else 0,
                "events": admitted.events if admitted else 0,
                "waiting": admitted.waiting if admitted else 0,
            },
            "error": str(self.error) if self.error else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What apply did with all tables, and what in the configuration stood in the way."""

    tables: tuple[Applied, ...]
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``apply --json`` prints."""
        return {"tables": [t.to_json() for t in self.tables], "problems": [str(p) for p in self.problems]}


def apply(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    expected: Mapping[str, str] | None = None,
    allowed: Callable[[TablePlan], bool] = lambda _: True,
) -> ApplyResult:
    """Bring the named tables (all where none is named) to what the registry says, and admit what landed.

    ``expected`` are the fingerprints of a stored plan by table: where one differs now, that table is refused.
    ``allowed`` may refuse to change a table's schema; what landed is admitted all the same.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    targets = select(mapping, names)
    if expected is not None:
        targets = tuple(t for t in targets if t.table in expected)
    results = tuple(apply_table(workspace, target, expected=expected, allowed=allowed) for target in targets)
    return ApplyResult(tables=results, problems=mapping.problems)


def apply_table(
    workspace: Workspace,
    target: TableTarget,
    *,
    expected: Mapping[str, str] | None = None,
    allowed: Callable[[TablePlan], bool] = lambda _: True,
    admitting: bool = True,
) -> Applied:
    """Apply one table. Its errors are part of the result: one broken table never stops the others."""
    plan = TablePlan(target=target, verdict=Verdict.HOLD)
    done: list[Step] = []
    try:
        if admitting:
            _finish_publication(workspace, target)
        plan = lay_out_steps(workspace, look(workspace, target))
        if expected is not None and expected[target.table] != plan.fingerprint:
            raise _moved(target)
        if admitting:
            _repair_partitions(workspace, plan, done)
        changing = plan.pending and allowed(plan)
        if changing:
            _carry_out(workspace, plan, done)
        for step in (s for s in plan.steps if s.kind == "restore_view"):
            workspace.sql.execute(step.sql)
            done.append(step)
        shape, properties = _standing(plan, changed=changing)
        admitted = None
        if admitting and shape is not None and properties is not None:
            admitted = admit(workspace, target, shape, properties)
            properties = admitted.properties
    except Exception as error:
        return Applied(plan=plan, done=tuple(done), error=as_ours(error))
    if admitted is not None and admitted.files:
        done += [step for step in plan.steps if step.kind == "admit"]
    return Applied(plan=plan, done=tuple(done), admitted=admitted, shape=shape, properties=properties)


def _finish_publication(workspace: Workspace, target: TableTarget) -> None:
    """Put in force what a killed run left, before anything is decided: the view must know the segments of that state.

    What cannot be understood is left to planning, which says why.
    """
    table = workspace.metastore.table(target.database, target.table)
    if table is None or not is_ours(table.properties):
        return
    try:
        properties = read_properties(table.properties)
    except ValueError:
        return
    if properties.subject == target.subject:
        roll_forward(workspace, target, properties)


def _standing(plan: TablePlan, *, changed: bool) -> tuple[Shape | None, TableProperties | None]:
    """Return the shape and properties that the table has now."""
    decision = plan.view.decision if plan.view else None
    if decision is None:  # pragma: no cover - planning looked, or raised
        return None, None
    if changed or not plan.pending:
        return decision.effective, plan.properties
    return decision.current, decision.properties


def _moved(target: TableTarget) -> ConflictError:
    return ConflictError(
        "what the plan saw has moved",
        where=f"{target.database}.{target.table}",
        why="the table, its view or the registry is no longer as it was when the plan was made",
        fix="Plan again, look at it, and apply that.",
    )


def _carry_out(workspace: Workspace, plan: TablePlan, done: list[Step]) -> None:
    view = plan.view
    if view is None or plan.properties is None:  # pragma: no cover - a plan with schema steps has both
        return
    _keep_schemas(workspace, view)
    for step in plan.steps:
        if step.kind in {"admit", "repair_partitions"}:
            continue
        workspace.progress(plan.target.table, f"{step.kind.replace('_', ' ')}: {step.why}")
        _STEPS[step.kind](workspace, step, plan)
        done.append(step)


def _keep_schemas(workspace: Workspace, view: TableView) -> None:
    shape = view.decision.effective
    if shape is None:  # pragma: no cover - only shapes have schema steps
        return
    lake = workspace.storage(view.decision.target.location).lake
    live = set(workspace.registry.versions(view.decision.target.subject))
    # All of them, not only those since the baseline: a column's identity is the version in which its life began.
    for version in shape.history.versions:
        if version.version in live and version.version <= shape.version.version:
            keep_schema(lake, workspace.registry.schema(version.subject, version.version))


def _run_sql(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del plan
    workspace.sql.execute(step.sql)


def _create_table(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    target = plan.target
    # The location must be there and writable before the metastore promises it to anyone.
    workspace.storage(target.location).lake.make_directory("_schemasync")
    try:
        workspace.sql.execute(step.sql)
    except EngineError as error:
        table = workspace.metastore.table(target.database, target.table)
        if table is not None and is_ours(table.properties):
            raise _moved(target) from error
        raise


def _repair_partitions(workspace: Workspace, plan: TablePlan, done: list[Step]) -> None:
    """Make the partitions those of the state in force, whatever becomes of the schema: until then the view is wrong."""
    view = plan.view
    properties = view.decision.properties if view else None
    for step in (s for s in plan.steps if s.kind == "repair_partitions"):
        if view is None or view.manifest is None or properties is None:  # pragma: no cover - it was planned from them
            raise _moved(plan.target)
        workspace.progress(plan.target.table, f"repair partitions: {step.why}")
        repair_partitions(workspace, plan.target, properties, view.manifest)
        done.append(step)


def _restore_table(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del step
    restore_table(workspace, plan.target)


def _repair_columns(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del step
    if plan.view is None:  # pragma: no cover - the step was planned for a table that was there
        raise _moved(plan.target)
    repair_columns(workspace, plan.view)


def _replace_view(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    replace_view(workspace, plan.target, step.sql)


def _set_version(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del step
    target, properties = plan.target, plan.properties
    old = plan.view.decision.properties if plan.view else None
    if properties is None or old is None:  # pragma: no cover - the step was planned for a table that has properties
        raise _moved(target)
    changes = write_properties(properties)
    swapped = workspace.metastore.swap_properties(
        target.database, target.table, key=STATE, expected=old.token, changes=changes
    )
    if not swapped:
        raise _moved(target)


_STEPS: dict[str, Callable[[Workspace, Step, TablePlan], None]] = {
    "create_database": _run_sql,
    "drop_table": _run_sql,
    "create_table": _create_table,
    "add_columns": _run_sql,
    "restore_table": _restore_table,
    "repair_columns": _repair_columns,
    "replace_view": _replace_view,
    "set_version": _set_version,
}
