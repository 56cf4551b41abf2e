"""Repairs of what drifted: what planning finds, the steps that it yields, and the carrying out of these steps.

The comparisons are those of `schemasync.core.drift`. Every repair is a step of the plan with its reasons; what people
wrote on the view goes into the statement that replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from schemasync.app.inspecting import TableView, aside_name, entries_of
from schemasync.app.states import placed_of
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.ddl import qualified
from schemasync.core.drift import PARQUET, Drift, Found, lost_columns, partition_drift, table_drift
from schemasync.core.kept import Kept, kept_of
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect
from schemasync.core.plan import Decision, Step, in_place_of_next_view, in_place_of_view
from schemasync.core.ports import HiveTable
from schemasync.core.renamed import is_old_history, is_old_view
from schemasync.core.shape import Shape
from schemasync.core.step_kinds import DROP_OLD_HISTORY, DROP_OLD_VIEW, REPAIR_COLUMNS, REPAIR_PARTITIONS, RESTORE_TABLE
from schemasync.core.view_statement import replacing_none, under_name
from schemasync.errors import ConflictError, EngineError, OwnershipError

REPAIRS: Final = frozenset({RESTORE_TABLE, REPAIR_COLUMNS})
"""Kinds of steps that put the table right; part of its schema."""


def find_drift(workspace: Workspace, found: TableView) -> Drift:
    """Compare one table of ours with what was left; only its partitions where its shape is not understood."""
    table, decision, manifest = found.inspected.table, found.decision, found.manifest
    properties, current, effective = decision.properties, decision.current, decision.effective
    if table is None or properties is None:
        return Drift()
    placed = None if manifest is None else placed_of(workspace.storage(decision.target).lake, manifest)
    if current is None or effective is None:
        return partition_drift(table, found.partitions, placed)
    return table_drift(
        Found(
            table=table,
            partitions=found.partitions,
            properties=properties,
            current=current,
            effective=effective,
            placed=placed,
        )
    )


def lacks_columns(found: TableView) -> bool:
    """Tell whether somebody dropped columns of a table: until they are back nothing can be asked of its values."""
    table, current, manifest = found.inspected.table, found.decision.current, found.manifest
    if table is None or current is None or manifest is None:
        return False
    return bool(lost_columns(table, current, {name for s in manifest.segments for name in s.columns}))


def repair_steps(drift: Drift) -> Iterator[Step]:
    """Yield the steps that put the table itself right."""
    if drift.table:
        yield Step(kind=RESTORE_TABLE, why="; ".join(drift.table))
    if drift.columns:
        yield Step(kind=REPAIR_COLUMNS, why=f"put back {'; '.join(drift.columns)}")


def partition_steps(drift: Drift) -> Iterator[Step]:
    """Yield the step that makes the partitions those of the state in force; done for held tables too."""
    if drift.partitions:
        yield Step(kind=REPAIR_PARTITIONS, why="; ".join(drift.partitions))


def old_view_steps(workspace: Workspace, target: TableTarget, found: HiveTable | None) -> Iterator[Step]:
    """Yield the step that drops the view under the name that it had; done for held tables too."""
    if found is not None and is_old_view(found, target):
        drop = ddl.drop_view(found.database, found.name)
        why = f"the view is {target.view} now: under its old name it would show fewer rows with every compaction"
        yield Step(kind=DROP_OLD_VIEW, why=why, sql=workspace.text(drop))


def old_history_steps(workspace: Workspace, target: TableTarget, found: HiveTable | None) -> Iterator[Step]:
    """Yield the step that drops the history's table under the name that it had; its files are the new one's."""
    if found is not None and is_old_history(found, target):
        drop = ddl.drop_table(found.database, found.name)
        why = f"the history is {target.history} now: under its old name it would show nothing once its files are gone"
        yield Step(kind=DROP_OLD_HISTORY, why=why, sql=workspace.text(drop))


def drop_old(workspace: Workspace, target: TableTarget, step: Step) -> None:
    """Drop what has an old name, unless another table has taken that name since the step was planned."""
    found = entries_of(workspace, target)
    if is_old_view(found.old_view, target) if step.kind == DROP_OLD_VIEW else is_old_history(found.old_history, target):
        workspace.sql.execute(step.sql)


def restore_table(workspace: Workspace, target: TableTarget) -> None:
    """Make the table external again, where its data is, read as Parquet."""
    root = workspace.storage(target).lake.root
    workspace.metastore.restore_table(target.database, target.table, location=root, formats=PARQUET)


def repair_columns(workspace: Workspace, found: TableView) -> None:
    """Give the table and its partitions the columns that they should have; comments and foreign columns stay."""
    target, drift = found.decision.target, find_drift(workspace, found)
    workspace.metastore.replace_columns(target.database, target.table, drift.wanted)


def kept_on_view(view: HiveTable | None, decision: Decision, desired: Shape) -> Kept:
    """Return what people wrote on the view, for the statement that replaces it."""
    table = decision.target.full_name
    return kept_of(view, table=table, current=decision.current, desired=desired)


def replace_view(workspace: Workspace, target: TableTarget, statement: str) -> None:
    """Replace the view by what this statement creates; readers see the old one or the new one, never none.

    Spark drops a view before it creates the one that replaces it. So the new one is made beside it, and the metastore
    gives the view its definition in one call. One that is not there is created, which replaces none that another writer
    made meanwhile.

    Raises:
        ConflictError: there is one by now that may not be replaced, or another writer was first.
        OwnershipError: what has the name under which the new one is made is somebody else's.
    """
    view, aside = (qualified(target.database, name, Dialect.SPARK) for name in (target.view, aside_name(target)))
    found = workspace.metastore.table(target.database, target.view)
    if found is None:
        try:
            workspace.sql.execute(replacing_none(statement))
        except EngineError:
            found = workspace.metastore.table(target.database, target.view)
            if found is None:
                raise
        else:
            return
    if obstacle := in_place_of_view(found, target):
        raise ConflictError(obstacle.message, fix=obstacle.fix)
    made_aside = under_name(statement, view, aside)
    if made_aside is None:
        workspace.sql.execute(statement)
        return
    _require_free(workspace, target)
    _make_aside(workspace, made_aside)
    try:
        workspace.metastore.redefine_view(target.database, target.view, source=aside_name(target))
    except EngineError as error:
        if workspace.metastore.table(target.database, aside_name(target)) is not None:
            raise
        raise ConflictError(
            "another writer replaced the view first",
            where=f"{target.database}.{target.view}",
            fix="Run again: what is left to do is done then.",
        ) from error


def _require_free(workspace: Workspace, target: TableTarget) -> None:
    """Make sure that nothing of somebody else has the name of the view's next definition: that replaces it."""
    found = workspace.metastore.table(target.database, aside_name(target))
    if found is not None and (obstacle := in_place_of_next_view(found, target)):
        raise OwnershipError(obstacle.message, where=target.table, fix=obstacle.fix)


def _make_aside(workspace: Workspace, statement: str) -> None:
    """Make the next definition of a view, also where another writer makes or takes his under the same name meanwhile.

    Spark looks whether there is one, and then drops it and creates its own: in between it may be gone, or there again.
    """
    try:
        workspace.sql.execute(statement)
    except EngineError:
        # What is wrong with the statement itself is refused again.
        workspace.sql.execute(statement)


def drop_aside(workspace: Workspace, target: TableTarget, left: HiveTable | None) -> bool:
    """Drop the next definition of the view where a killed run left it; return whether it did."""
    if left is None or in_place_of_next_view(left, target):
        return False
    drop = ddl.drop_view(target.database, aside_name(target))
    workspace.sql.execute(workspace.text(drop))
    return True
