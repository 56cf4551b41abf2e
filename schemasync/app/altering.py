"""The steps that change a table's schema, carried out one after the other, the watermark last.

Before every step the table must still be in the state that the plan saw. Where another writer came between, the rest
is left to it, and the view is given back what that writer's state needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from schemasync.app.applied_records import keep_record
from schemasync.app.inspecting import TableView, look
from schemasync.app.kept_schemas import forget_schemas, keep_schema, kept_schemas
from schemasync.app.per_run import drop_per_run_tables
from schemasync.app.planning import TablePlan, lay_out_steps
from schemasync.app.rekeying import changes_key, keys_before, rebuild
from schemasync.app.repairing import (
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
from schemasync.core.shape import Shape
from schemasync.core.step_kinds import (
    ADD_COLUMNS,
    ADMIT,
    CREATE_DATABASE,
    CREATE_TABLE,
    DROP_OLD_HISTORY,
    DROP_OLD_VIEW,
    DROP_TABLE,
    REBUILD,
    RECORD_HISTORY,
    REPAIR_COLUMNS,
    REPAIR_PARTITIONS,
    REPLACE_VIEW,
    RESTORE_TABLE,
    SET_VERSION,
)
from schemasync.errors import ConflictError, EngineError

WATERMARKS = frozenset({CREATE_TABLE, SET_VERSION})
"""The steps with which a version comes into force."""


def moved(target: TableTarget) -> ConflictError:
    """Return the error of a plan that another writer, or the registry, has overtaken."""
    return ConflictError(
        "what the plan saw has moved",
        where=target.full_name,
        why="the table, its view or the registry is no longer as it was when the plan was made",
        fix="Plan again, look at it, and apply that.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alteration:
    """A plan on its way, with what every plan that has schema steps has: the ``shape`` and ``properties`` to reach."""

    plan: TablePlan
    view: TableView
    shape: Shape
    properties: TableProperties

    @property
    def target(self) -> TableTarget:
        return self.plan.target


def carry_out(workspace: Workspace, plan: TablePlan, done: list[Step]) -> TableProperties:
    """Carry out the schema steps; return the table's properties afterwards."""
    view, properties = plan.view, plan.properties
    shape = view.decision.effective if view else None
    if view is None or shape is None or properties is None:  # pragma: no cover - a plan with schema steps has all
        raise moved(plan.target)
    at = _Alteration(plan=plan, view=view, shape=shape, properties=properties)
    _keep_schemas(workspace, at)
    if changes_key(view.decision):
        # Those of a rebuild that was killed: the next one may have nothing left to fold.
        drop_per_run_tables(workspace, plan.target)
    for step in plan.steps:
        if step.kind in {ADMIT, REPAIR_PARTITIONS, RECORD_HISTORY}:
            continue
        workspace.progress(plan.target.table, f"{step.kind.replace('_', ' ')}: {step.why}")
        try:
            _require_unmoved(workspace, at)
            if step.kind in WATERMARKS:
                _forget_passed(workspace, at)
                _record_version(workspace, at)
            at = _STEPS[step.kind](workspace, step, at) or at
        except ConflictError:
            # A step of ours may have replaced the view that the other writer's state needs.
            follow_state(workspace, plan.target)
            raise
        done.append(step)
    return at.properties


def _require_unmoved(workspace: Workspace, at: _Alteration) -> None:
    """Stop before another step where another writer came between."""
    old = at.view.decision.properties
    if old is not None and token_in_force(workspace, at.target) != old.token:
        raise moved(at.target)


def _keep_schemas(workspace: Workspace, at: _Alteration) -> None:
    lake = workspace.storage(at.target).lake
    live = set(workspace.registry.versions(at.target.subject))
    applied = at.plan.current_version or 0
    kept = {one.version for one in kept_schemas(lake) if one.version <= applied}
    # All of them, not only those since the baseline: a column's identity is the version in which its life began.
    for version in at.shape.history.versions:
        if version.version in live - kept and version.version <= at.shape.version.version:
            registered = workspace.registry.schema(version.subject, version.version)
            keep_schema(lake, registered, applied=version.version <= applied)


def _forget_passed(workspace: Workspace, at: _Alteration) -> None:
    """Delete what a failed attempt kept of versions that the registry has no longer: it would count from now on."""
    lake = workspace.storage(at.target).lake
    known = {version.version for version in at.shape.history.versions}
    first, last = (at.plan.current_version or 0) + 1, at.shape.version.version
    # Among what is there: a file registry's versions may be dates, with millions of numbers between them.
    forget_schemas(lake, {one.version for one in kept_schemas(lake) if first <= one.version < last} - known)


def _rebuild(workspace: Workspace, step: Step, at: _Alteration) -> _Alteration:
    """Rebuild the base under the old key; return what goes on from the state which is in force then."""
    del step
    decision = at.view.decision
    if decision.current is None or decision.properties is None:  # pragma: no cover - it was planned for a table of ours
        raise moved(at.target)
    keys = keys_before(decision.current, at.shape)
    now, manifest = rebuild(workspace, at.target, decision.current, decision.properties, keys=keys)
    view = replace(at.view, decision=replace(decision, properties=now), manifest=manifest)
    return replace(at, view=view, properties=replace(at.properties, state=now.state))


def _record_version(workspace: Workspace, at: _Alteration) -> None:
    record = record_of(
        at.target,
        at.shape,
        at.properties,
        before=at.plan.current_version,
        verdict=at.plan.verdict,
        changes=at.plan.changes,
        now_ms=workspace.now_ms(),
    )
    if record is not None:
        keep_record(workspace.storage(at.target).lake, record)


def _run_sql(workspace: Workspace, step: Step, at: _Alteration) -> None:
    del at
    workspace.sql.execute(step.sql)


def _create_database(workspace: Workspace, step: Step, at: _Alteration) -> None:
    database = at.target.database
    if not ddl.says_no_place(step.sql, database):
        workspace.sql.execute(step.sql)
        return
    # Spark would fill in a place below its own warehouse, which is ours: a metastore elsewhere cannot make directories
    # there, nor is it where other people's tables of that database belong.
    workspace.metastore.create_database(database)


def _add_columns(workspace: Workspace, step: Step, at: _Alteration) -> None:
    try:
        workspace.sql.execute(step.sql)
    except EngineError as error:
        again = lay_out_steps(workspace, look(workspace, at.target))
        if all(planned.kind != step.kind for planned in again.steps):
            raise moved(at.target) from error  # another writer has just added them
        raise


def _create_table(workspace: Workspace, step: Step, at: _Alteration) -> _Alteration:
    target = at.target
    # The location must be there and writable before the metastore promises it to anyone.
    workspace.storage(target).lake.make_directory("_schemasync")
    try:
        workspace.sql.execute(step.sql)
    except EngineError as error:
        table = workspace.metastore.table(target.database, target.table)
        if table is not None and is_ours(table.properties):
            raise moved(target) from error
        raise
    # From now on others may publish.
    return replace(at, view=replace(at.view, decision=replace(at.view.decision, properties=at.properties)))


def _restore_table(workspace: Workspace, step: Step, at: _Alteration) -> None:
    del step
    restore_table(workspace, at.target)


def _repair_columns(workspace: Workspace, step: Step, at: _Alteration) -> None:
    del step
    repair_columns(workspace, at.view)


def _replace_view(workspace: Workspace, step: Step, at: _Alteration) -> None:
    replace_view(workspace, at.target, step.sql)
    # That takes its time: a later state may have been shown meanwhile.
    _require_unmoved(workspace, at)


def _drop_old(workspace: Workspace, step: Step, at: _Alteration) -> None:
    drop_old(workspace, at.target, step)


def _set_version(workspace: Workspace, step: Step, at: _Alteration) -> _Alteration | None:
    del step
    target, properties = at.target, at.properties
    old, manifest = at.view.decision.properties, at.view.manifest
    if old is None or manifest is None:  # pragma: no cover - the table that has the step has both
        raise moved(target)
    if properties != old and properties.token == old.token:
        # Another key, say, of the same version: only another state stops who would write back what he saw before.
        draft = publish(workspace, target, Draft.of(old, manifest), becoming=properties)
        return replace(at, properties=draft.properties)
    changes = write_properties(properties)
    swapped = workspace.metastore.swap_properties(
        target.database, target.table, key=STATE, expected=old.token, changes=changes
    )
    if not swapped:
        raise moved(target)
    return None


_STEPS: dict[str, Callable[[Workspace, Step, _Alteration], _Alteration | None]] = {
    CREATE_DATABASE: _create_database,
    DROP_TABLE: _run_sql,
    CREATE_TABLE: _create_table,
    REBUILD: _rebuild,
    ADD_COLUMNS: _add_columns,
    RESTORE_TABLE: _restore_table,
    REPAIR_COLUMNS: _repair_columns,
    REPLACE_VIEW: _replace_view,
    DROP_OLD_VIEW: _drop_old,
    DROP_OLD_HISTORY: _drop_old,
    SET_VERSION: _set_version,
}
