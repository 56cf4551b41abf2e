"""The steps that change a table's schema, carried out one after the other, the watermark last.

Before every step the table must still be in the state that the plan saw. Where another writer came between, the rest
is left to it, and the view is given back what that writer's state needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from schemasync.app.applied_records import keep_record
from schemasync.app.history_table import RECORD_HISTORY
from schemasync.app.inspecting import TableView, look
from schemasync.app.kept_schemas import forget_schemas, keep_schema, kept_schemas
from schemasync.app.per_run import drop_per_run_tables
from schemasync.app.planning import TablePlan, lay_out_steps
from schemasync.app.rekeying import changes_key, keys_before, rebuild
from schemasync.app.repairing import (
    DROP_OLD_HISTORY,
    DROP_OLD_VIEW,
    drop_old,
    repair_columns,
    replace_view,
    restore_table,
)
from schemasync.app.states import Draft, publish, token_in_force
from schemasync.app.viewing import follow_state
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.applied import record_of
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import Step
from schemasync.core.properties import STATE, TableProperties, is_ours, write_properties
from schemasync.errors import ConflictError, EngineError


def moved(target: TableTarget) -> ConflictError:
    """Return the error of a plan that another writer, or the registry, has overtaken."""
    return ConflictError(
        "what the plan saw has moved",
        where=target.full_name,
        why="the table, its view or the registry is no longer as it was when the plan was made",
        fix="Plan again, look at it, and apply that.",
    )


def carry_out(workspace: Workspace, plan: TablePlan, done: list[Step]) -> TableProperties | None:
    """Carry out the schema steps; return the table's properties afterwards."""
    view = plan.view
    if view is None or plan.properties is None:  # pragma: no cover - a plan with schema steps has both
        return None
    _keep_schemas(workspace, view)
    if changes_key(view.decision):
        # Those of a rebuild that was killed: the next one may have nothing left to fold.
        drop_per_run_tables(workspace, plan.target)
    for step in plan.steps:
        if step.kind in {"admit", "repair_partitions", RECORD_HISTORY}:
            continue
        workspace.progress(plan.target.table, f"{step.kind.replace('_', ' ')}: {step.why}")
        try:
            _require_unmoved(workspace, plan)
            if step.kind in _WATERMARKS:
                _forget_passed(workspace, plan)
                _record_version(workspace, plan)
            plan = _STEPS[step.kind](workspace, step, plan) or plan
        except ConflictError:
            # A step of ours may have replaced the view that the other writer's state needs.
            follow_state(workspace, plan.target)
            raise
        done.append(step)
    return plan.properties


def _require_unmoved(workspace: Workspace, plan: TablePlan) -> None:
    """Stop before another step where another writer came between."""
    old = plan.view.decision.properties if plan.view else None
    if old is None:
        return
    if token_in_force(workspace, plan.target) != old.token:
        raise moved(plan.target)


def _keep_schemas(workspace: Workspace, view: TableView) -> None:
    shape = view.decision.effective
    if shape is None:  # pragma: no cover - only shapes have schema steps
        return
    lake = workspace.storage(view.decision.target).lake
    live = set(workspace.registry.versions(view.decision.target.subject))
    applied = view.decision.properties.version if view.decision.properties else 0
    kept = {one.version for one in kept_schemas(lake) if one.version <= applied}
    # All of them, not only those since the baseline: a column's identity is the version in which its life began.
    for version in shape.history.versions:
        if version.version in live - kept and version.version <= shape.version.version:
            registered = workspace.registry.schema(version.subject, version.version)
            keep_schema(lake, registered, applied=version.version <= applied)


def _forget_passed(workspace: Workspace, plan: TablePlan) -> None:
    """Delete what a failed attempt kept of versions that the registry has no longer: it would count from now on."""
    shape = plan.view.decision.effective if plan.view else None
    if shape is None:  # pragma: no cover - only shapes have schema steps
        return
    lake = workspace.storage(plan.target).lake
    known = {version.version for version in shape.history.versions}
    first, last = (plan.current_version or 0) + 1, shape.version.version
    # Among what is there: a file registry's versions may be dates, with millions of numbers between them.
    forget_schemas(lake, {one.version for one in kept_schemas(lake) if first <= one.version < last} - known)


def _rebuild(workspace: Workspace, step: Step, plan: TablePlan) -> TablePlan:
    """Rebuild the base under the old key; return the plan that goes on from the state which is in force then."""
    del step
    decision = plan.view.decision if plan.view else None
    if plan.view is None or plan.properties is None or decision is None or decision.current is None:
        raise moved(plan.target)  # pragma: no cover - the step was planned for a table of ours
    if decision.properties is None or decision.desired is None:  # pragma: no cover - the same
        raise moved(plan.target)
    keys = keys_before(decision.current, decision.desired)
    now, manifest = rebuild(workspace, plan.target, decision.current, decision.properties, keys=keys)
    view = replace(plan.view, decision=replace(decision, properties=now), manifest=manifest)
    return replace(plan, view=view, properties=replace(plan.properties, state=now.state))


_WATERMARKS = frozenset({"create_table", "set_version"})
"""The steps with which a version comes into force."""


def _record_version(workspace: Workspace, plan: TablePlan) -> None:
    shape = plan.view.decision.effective if plan.view else None
    if shape is None or plan.properties is None:  # pragma: no cover - only shapes have schema steps
        return
    record = record_of(
        plan.target,
        shape,
        plan.properties,
        before=plan.current_version,
        verdict=plan.verdict,
        changes=plan.changes,
        now_ms=workspace.now_ms(),
    )
    if record is not None:
        keep_record(workspace.storage(plan.target).lake, record)


def _run_sql(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del plan
    workspace.sql.execute(step.sql)


def _create_database(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    database = plan.target.database
    if not ddl.says_no_place(step.sql, database):
        workspace.sql.execute(step.sql)
        return
    # Spark would fill in a place below its own warehouse, which is ours: a metastore elsewhere cannot make directories
    # there, nor is it where other people's tables of that database belong.
    workspace.metastore.create_database(database)


def _add_columns(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    try:
        workspace.sql.execute(step.sql)
    except EngineError as error:
        again = lay_out_steps(workspace, look(workspace, plan.target))
        if all(planned.kind != step.kind for planned in again.steps):
            raise moved(plan.target) from error  # another writer has just added them
        raise


def _create_table(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    target = plan.target
    # The location must be there and writable before the metastore promises it to anyone.
    workspace.storage(target).lake.make_directory("_schemasync")
    try:
        workspace.sql.execute(step.sql)
    except EngineError as error:
        table = workspace.metastore.table(target.database, target.table)
        if table is not None and is_ours(table.properties):
            raise moved(target) from error
        raise


def _restore_table(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del step
    restore_table(workspace, plan.target)


def _repair_columns(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    del step
    if plan.view is None:  # pragma: no cover - the step was planned for a table that was there
        raise moved(plan.target)
    repair_columns(workspace, plan.view)


def _replace_view(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    replace_view(workspace, plan.target, step.sql)


def _drop_old(workspace: Workspace, step: Step, plan: TablePlan) -> None:
    drop_old(workspace, plan.target, step)


def _set_version(workspace: Workspace, step: Step, plan: TablePlan) -> TablePlan | None:
    del step
    target, properties = plan.target, plan.properties
    old = plan.view.decision.properties if plan.view else None
    manifest = plan.view.manifest if plan.view else None
    if properties is None or old is None or manifest is None:  # pragma: no cover - the table that has the step has all
        raise moved(target)
    if properties != old and properties.token == old.token:
        # Another key, say, of the same version: only another state stops who would write back what he saw before.
        draft = publish(workspace, target, Draft.of(old, manifest), becoming=properties)
        return replace(plan, properties=draft.properties)
    changes = write_properties(properties)
    swapped = workspace.metastore.swap_properties(
        target.database, target.table, key=STATE, expected=old.token, changes=changes
    )
    if not swapped:
        raise moved(target)
    return None


_STEPS: dict[str, Callable[[Workspace, Step, TablePlan], TablePlan | None]] = {
    "create_database": _create_database,
    "drop_table": _run_sql,
    "create_table": _create_table,
    "rebuild": _rebuild,
    "add_columns": _add_columns,
    "restore_table": _restore_table,
    "repair_columns": _repair_columns,
    "replace_view": _replace_view,
    DROP_OLD_VIEW: _drop_old,
    DROP_OLD_HISTORY: _drop_old,
    "set_version": _set_version,
}
