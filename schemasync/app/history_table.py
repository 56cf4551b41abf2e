"""Keeping the table that people query for a table's past: planned as one step, written after all others.

It is derived data, so its trouble is never the table's: a name that is taken is a warning in the plan, and what cannot
be written is told beside the result and tried again by the next apply. What was superseded is deleted by a later run,
once the reader grace is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from schemasync.app.applied_records import applied_versions
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.diagnostics import Diagnostic, Severity, diagnose
from schemasync.core.history_table import (
    COLUMNS,
    DIRECTORY,
    history_rows,
    is_current,
    is_history_of,
    made_ms,
    marks,
    new_directory,
)
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import Step
from schemasync.core.ports import HiveTable, Lake
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape
from schemasync.core.step_kinds import RECORD_HISTORY
from schemasync.core.timeline import timeline


def plan_history(
    table: HiveTable | None, target: TableTarget, shape: Shape | None, properties: TableProperties | None
) -> tuple[tuple[Step, ...], tuple[Diagnostic, ...]]:
    """Say what apply will do with the history table of a table that then has this shape, and what is in the way.

    ``table`` is what has its name now.
    """
    if shape is None or properties is None:
        return (), ()
    if table is not None and not is_history_of(table, target):
        return (), (_taken(target),)
    if is_current(table, marks(target, properties)):
        return (), ()
    why = f"{target.history} will say what became of the columns up to version {properties.version}"
    return (Step(kind=RECORD_HISTORY, why=why),), ()


def _taken(target: TableTarget) -> Diagnostic:
    """Return the warning that the name is another's; an error would mean that the table itself waits for someone."""
    name = f"{target.database}.{target.history}"
    message = f"{name}, where the history of {target.table} would be, is not schemasync's: it is left alone"
    found = diagnose("SS201", message, fix="Rename it, or choose another name (names: {history: ...}).")
    return replace(found, severity=Severity.WARNING)


def write_history(workspace: Workspace, target: TableTarget, shape: Shape, properties: TableProperties) -> bool:
    """Write the history of a table as it is now; return False where that is there already, or the name is taken.

    Raises:
        DataError: the record of an applied version cannot be read.
        StorageError, EngineError: it cannot be written; the table keeps the history that it had.
    """
    wanted = marks(target, properties)
    table = workspace.metastore.table(target.database, target.history)
    if is_current(table, wanted) or (table is not None and not is_history_of(table, target)):
        return False
    lake = workspace.storage(target).lake
    workspace.progress(target.table, f"writing {target.history}")
    directory = _write(workspace, lake, shape, properties)
    _show(workspace, target, table, lake.uri(directory), wanted)
    if table is not None:
        _clean_up(lake, table.location, directory, before_ms=workspace.now_ms() - target.compaction.reader_grace)
    return True


def _write(workspace: Workspace, lake: Lake, shape: Shape, properties: TableProperties) -> str:
    from schemasync.io.small_table import parquet_bytes  # noqa: PLC0415 - loads Arrow, which most plans do not need

    rows = history_rows(timeline(shape.history, properties, applied_versions(lake)))
    content = parquet_bytes([(name, type_) for name, type_, _ in COLUMNS], rows)
    directory = new_directory(properties.version, now_ms=workspace.now_ms(), token=workspace.token())
    lake.create(f"{directory}/part-00000.parquet", content)
    return directory


def _show(
    workspace: Workspace, target: TableTarget, table: HiveTable | None, location: str, wanted: Mapping[str, str]
) -> None:
    if table is None:
        statements = [ddl.create_history(target, location, wanted)]
    else:
        # The mark comes last: killed in between, the next run writes and moves once more.
        statements = [ddl.move_history(target, location), ddl.mark_history(target, wanted)]
    for statement in statements:
        workspace.sql.execute(workspace.text(statement))


def _clean_up(lake: Lake, superseded: str, current: str, *, before_ms: int) -> None:
    """Delete directories that nobody reads any more.

    All but the one that the table pointed to until now were left behind when that one was made, at the latest. A
    young one may be of a run that is about to show it.
    """
    if made_ms(superseded) > before_ms:
        return
    last = superseded.rstrip("/").rsplit("/", 1)[-1]
    directories = {file.path.rpartition("/")[0] for file in lake.files(DIRECTORY)}
    for directory in sorted(directories - {f"{DIRECTORY}/{last}", current}):
        if made_ms(directory) <= before_ms:
            lake.delete_directory(directory)
