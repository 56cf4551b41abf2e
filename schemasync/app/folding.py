"""One fold, done: the run's tables are made, the new shard is written, read back and published.

Called by the compaction, and by apply before a table goes on under another key. Whatever fails, the state in force
stays readable, and the run's tables are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from schemasync.app.states import publish, require_files, require_in_place
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.admission import Unreadable
from schemasync.core.compaction import BASE_SHARD, FoldPlan, after_fold
from schemasync.core.manifest import DataFile, Manifest, Segment, SegmentKind
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, expand_pattern, parse_hour, quote_identifier
from schemasync.core.plan import Shape
from schemasync.core.ports import FoldCounts, Lake
from schemasync.core.properties import TableProperties
from schemasync.core.toast import left_unsent
from schemasync.errors import DataError, OwnershipError, SchemasyncError, StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What a fold made: the new shard and its counts, and the table with it in force."""

    written: Segment
    counts: FoldCounts
    manifest: Manifest
    properties: TableProperties


def run_fold(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    properties: TableProperties,
    manifest: Manifest,
    fold: FoldPlan,
) -> Folded:
    """Write and publish the shard that a plan decided.

    Raises:
        ConflictError: another writer published first; nothing of this run became visible.
        DataError: a file of the table is missing or was changed.
        StorageError: the new shard cannot be written, or is not what the job wrote.
    """
    lake = workspace.storage(target.location).lake
    require_files(lake, (*fold.rewrite, *fold.fold))
    with _per_run_tables(workspace, target, shape, manifest, fold) as location:
        workspace.progress(target.table, f"folding {fold.events} events into generation {fold.generation}")
        with _abandoned(lake, location):
            counts = _run(workspace, target, shape, manifest, fold, location)
            written = _read_back(workspace, target, shape, location, counts)
        manifest = after_fold(manifest, fold, written=written, now_ms=workspace.now_ms())
        properties = publish(workspace, target, properties, manifest)
    return Folded(written=written, counts=counts, manifest=manifest, properties=properties)


@contextmanager
def _abandoned(lake: Lake, directory: str) -> Iterator[None]:
    """Delete what a failing run wrote: no state names it yet. On a full disk that is what makes the next run fit."""
    try:
        yield
    except SchemasyncError:
        with suppress(SchemasyncError):
            lake.delete_directory(directory)
        raise


@contextmanager
def _per_run_tables(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, fold: FoldPlan
) -> Iterator[str]:
    """Make the run's tables, yield the new shard's directory, and drop the tables whatever happens."""
    lake = workspace.storage(target.location).lake
    shard = fold.shard.removeprefix("base_s")
    directory = f"base/g={fold.generation:06}/{workspace.token()}/s={shard}"
    base = fold.rewrite[0].location if fold.rewrite else "_schemasync/empty"
    for place in (directory, base):
        lake.make_directory(place)
    run = ddl.PerRun(
        base=lake.uri(base),
        compactor=lake.uri(directory),
        increments=_hours(workspace, target, manifest, fold),
        present=_present(workspace, target),
    )
    drop_per_run_tables(workspace, target)
    try:
        for statement in ddl.per_run_tables(target, shape, run, Dialect.SPARK):
            workspace.sql.execute(workspace.text(statement))
        yield directory
    finally:
        drop_per_run_tables(workspace, target)


def _present(workspace: Workspace, target: TableTarget) -> frozenset[str]:
    table = workspace.metastore.table(target.database, target.table)
    return frozenset(c.name for c in table.columns) if table else frozenset()


def _hours(workspace: Workspace, target: TableTarget, manifest: Manifest, fold: FoldPlan) -> dict[str, str]:
    """Return hour -> location of the increment directories whose files the run folds."""
    lake = workspace.storage(target.location).lake
    folded = {segment.name for segment in fold.fold}
    directories = {f.path.rpartition("/")[0] for f in manifest.admitted if f.segment in folded}
    hours = ((parse_hour(target.increments, d), d) for d in sorted(directories))
    return {hour: lake.uri(directory) for hour, directory in hours if hour is not None}


def drop_per_run_tables(workspace: Workspace, target: TableTarget) -> None:
    """Drop the tables of this or an earlier compaction of the table; only definitions, they are external.

    Raises:
        OwnershipError: a table of such a name is not ours.
    """
    hours = expand_pattern(target.incremental, {"hour": "*"})
    for pattern in (target.base, target.compactor, hours):
        for name in workspace.metastore.names(target.database, pattern):
            table = workspace.metastore.table(target.database, name)
            if table is None:
                continue
            if table.properties.get(ddl.PER_RUN) != target.table:
                if pattern == hours and not _is_hourly(target, name):
                    continue
                raise OwnershipError(
                    f"{target.database}.{name} stands where a compaction needs a table of its own",
                    where=target.table,
                    fix="Rename it, or choose other names for the per-run tables (names:).",
                )
            workspace.sql.execute(workspace.text(ddl.drop_table(target.database, name, Dialect.SPARK)))


def _is_hourly(target: TableTarget, name: str) -> bool:
    """Tell whether a compaction could need this name for one of its hours; others only look alike."""
    before, after = target.incremental_table("*").split("*")
    hour = name.removeprefix(before).removesuffix(after)
    return len(hour) == 10 and hour.isdecimal()


def _run(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, fold: FoldPlan, directory: str
) -> FoldCounts:
    statement = ddl.fold(
        target,
        shape,
        segment_versions=manifest.segment_versions,
        deltas=[segment.name for segment in fold.fold],
        witnesses=[folded.segment for folded in manifest.superseded if folded.registered and shape.keys],
        present=_present(workspace, target),
        purge_before_ms=fold.purge_before_ms,
        dialect=Dialect.SPARK,
        toasted=manifest.toasted,
    )
    by_name = {c.name: c for c in shape.columns}
    keys = [shape.layout.current(by_name[key]).name for key in shape.keys]
    # By path, not by the compactor's name: another run's table of that name has another directory.
    into = workspace.storage(target.location).lake.uri(directory)
    unsent = left_unsent(target, shape, manifest.toasted, Dialect.SPARK)
    return workspace.fold.run(workspace.text(statement), into=into, sort_by=keys, unsent=unsent)


def _read_back(workspace: Workspace, target: TableTarget, shape: Shape, directory: str, counts: FoldCounts) -> Segment:
    """Look at what was written before anyone else does: files, rows, columns, one row per key.

    Raises:
        StorageError: it is not what the job said that it wrote; nothing is published then.
    """
    storage = workspace.storage(target.location)
    now = workspace.now_ms()
    files: list[DataFile] = []
    declared = [(name, type_) for name, type_, _ in ddl.physical_columns(shape)]
    columns = tuple(name for name, _ in declared)
    for file in storage.lake.files(directory):
        if file.path.rsplit("/", 1)[-1].startswith(("_", ".")):
            continue
        footer = storage.small.footer(file, now_ms=now)
        if isinstance(footer, Unreadable):
            raise DataError("a file of the new base cannot be read back", where=file.path, why=footer.reason)
        if tuple(f.name for f in footer.type.fields) != columns:
            raise DataError("a file of the new base has other columns than the table", where=file.path)
        require_in_place(storage.small, declared, file.path)
        files.append(DataFile(path=file.path, rows=footer.rows, bytes=file.bytes))
    rows = sum(f.rows for f in files)
    if rows != counts.written or _repeated_keys(workspace, shape, storage.lake.uri(directory)):
        raise StorageError(
            "the new base is not what the job wrote",
            where=f"{target.location}/{directory}",
            why=f"{rows} rows read back, {counts.written} written",
            fix="Run again; the old state is in force.",
        )
    return Segment(
        name=BASE_SHARD,
        kind=SegmentKind.BASE,
        location=directory,
        files=tuple(files),
        rows=rows,
        bytes=sum(f.bytes for f in files),
        schema_version=shape.version.version,
        columns=columns,
        toasted=counts.unsent,
        created_ms=now,
    )


def _repeated_keys(workspace: Workspace, shape: Shape, directory: str) -> bool:
    if not shape.keys:
        return False
    by_name = {c.name: c for c in shape.columns}
    keys = ", ".join(f"`{shape.layout.current(by_name[key]).name}`" for key in shape.keys)
    files = f"parquet.{quote_identifier(directory, Dialect.SPARK)}"
    twice = f"SELECT 1 FROM {files} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"  # noqa: S608 - quoted names only
    return bool(workspace.sql.query(twice).rows)
