"""The tables of a compaction by SQL: made from the newest schema when it begins, dropped at its end or by the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.manifest import Manifest, Segment
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, expand_pattern, parse_hour
from schemasync.core.shape import Shape
from schemasync.errors import OwnershipError, SchemasyncError

_log: Final = logging.getLogger("schemasync.compaction")

EMPTY: Final = "_schemasync/empty"
"""A directory that never holds a file: where the base's table stands."""

MOST_HOURS: Final = 48
"""So many hours of a run have a table: the fold itself reads none of them, and each is a statement or two."""


@contextmanager
def per_run_tables(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    manifest: Manifest,
    *,
    deltas: Sequence[Segment],
    directory: str,
) -> Iterator[frozenset[str]]:
    """Make the tables of a run that folds or merges ``deltas`` and writes below ``directory``.

    Yields the columns that the long-lived table has. The tables are dropped whatever happens; those that cannot be stay
    for the next run to drop, and stop nothing of this one.

    Raises:
        OwnershipError: a table of such a name is not ours.
    """
    lake = workspace.storage(target).lake
    for place in (directory, EMPTY):
        lake.make_directory(place)
    run = ddl.PerRun(
        base=lake.uri(EMPTY),
        compactor=lake.uri(directory),
        increments=_hours(workspace, target, manifest, deltas),
        present=_present(workspace, target),
    )
    drop_per_run_tables(workspace, target, needed=True)
    try:
        for statement in ddl.per_run_tables(target, shape, run, Dialect.SPARK):
            workspace.sql.execute(workspace.text(statement))
        yield run.present
    finally:
        try:
            drop_per_run_tables(workspace, target)
        except SchemasyncError as error:
            extra = {"table": target.full_name}
            _log.warning(
                "table %s: tables of this run stay for the next one to drop: %s", target.full_name, error, extra=extra
            )


def _present(workspace: Workspace, target: TableTarget) -> frozenset[str]:
    table = workspace.metastore.table(target.database, target.table)
    return frozenset(c.name for c in table.columns) if table else frozenset()


def _hours(workspace: Workspace, target: TableTarget, manifest: Manifest, deltas: Sequence[Segment]) -> dict[str, str]:
    """Return hour -> location of the increment directories that still have files of these deltas, the newest of them.

    Files of deltas that were merged may be gone.
    """
    lake = workspace.storage(target).lake
    among = {delta.name for delta in deltas}
    directories = {f.path.rpartition("/")[0] for f in manifest.admitted if f.segment in among}
    hours = [(hour, d) for d in directories if (hour := parse_hour(target.increments, d)) is not None]
    return {hour: lake.uri(directory) for hour, directory in sorted(hours)[-MOST_HOURS:]}


def drop_per_run_tables(workspace: Workspace, target: TableTarget, *, needed: bool = False) -> None:
    """Drop the tables of this or an earlier compaction of the table; only definitions, they are external.

    What others have under such a name stays: in the way of a run only where that has tables, so that it is ``needed``.

    Raises:
        OwnershipError: a name that is needed is another's.
    """
    hours = expand_pattern(target.incremental, {"hour": "*"})
    for name in workspace.metastore.names(target.database, "|".join((target.base, target.compactor, hours))):
        table = workspace.metastore.table(target.database, name)
        if table is None:
            continue
        if table.properties.get(ddl.PER_RUN) != target.table:
            if not needed or (name not in (target.base, target.compactor) and not _is_hourly(target, name)):
                continue
            raise OwnershipError(
                f"{target.database}.{name} stands where a compaction needs a table of its own",
                where=target.table,
                fix="Rename it, or choose other names for the per-run tables (names:).",
            )
        workspace.sql.execute(workspace.text(ddl.drop_table(target.database, name)))


def _is_hourly(target: TableTarget, name: str) -> bool:
    """Tell whether a compaction could need this name for one of its hours; others only look alike."""
    before, after = target.incremental_table("*").split("*")
    hour = name.removeprefix(before).removesuffix(after)
    return len(hour) == 10 and hour.isdecimal()
