"""Compaction: fold what was admitted into the base, publish, and clean up what is due.

Every run first does what apply does, so that it works under the newest schema that policy lets through; its per-run
tables are made from that schema and dropped again, also those that a killed run left. Whatever fails, the state in
force stays readable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from schemasync.app.applying import Applied, apply_table
from schemasync.app.inspecting import map_tables, select
from schemasync.app.planning import TablePlan
from schemasync.app.retiring import refresh_view, retire
from schemasync.app.states import publish, read_manifest, recover, require_files, require_in_place
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.admission import Unreadable
from schemasync.core.compaction import BASE_SHARD, FoldPlan, after_fold, plan_fold
from schemasync.core.diagnostics import Severity
from schemasync.core.manifest import DataFile, Manifest, Segment, SegmentKind
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, expand_pattern, parse_hour, quote_identifier
from schemasync.core.plan import Shape
from schemasync.core.ports import FoldCounts, Lake
from schemasync.core.properties import TableProperties
from schemasync.errors import DataError, OwnershipError, SchemasyncError, StorageError, UsageError, as_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did with one table; ``fold`` None means that there was nothing to fold.

    ``counts`` are zero in a dry run. ``seconds`` is the wall time of fold and publication.
    """

    target: TableTarget
    applied: Applied
    generation: int = 0
    fold: FoldPlan | None = None
    counts: FoldCounts | None = None
    bytes_written: int = 0
    seconds: float = 0.0
    error: SchemasyncError | None = None

    @property
    def failure(self) -> SchemasyncError | None:
        """What went wrong, in the compaction or in the apply before it."""
        return self.error or self.applied.error

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``compact --json``."""
        counts = self.counts or FoldCounts(written=0, rows=0, keys=0, inserted=0, updated=0, deleted=0, purged=0)
        return {
            "table": self.target.table,
            "generation": self.generation,
            "events": self.fold.events if self.fold else 0,
            "keys": counts.keys,
            "rows": counts.rows,
            "inserted": counts.inserted,
            "updated": counts.updated,
            "deleted": counts.deleted,
            "shards_rewritten": 1 if self.counts else 0,
            "shards": 1 if self.generation else 0,
            "bytes_read": self.fold.bytes_read if self.fold else 0,
            "bytes_written": self.bytes_written,
            "seconds": round(self.seconds, 3),
            "held": self.applied.held,
            "error": str(self.failure) if self.failure else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """What a compaction did with all tables."""

    tables: tuple[Compacted, ...]
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``compact --json`` prints."""
        return {"tables": [t.to_json() for t in self.tables], "problems": [str(p) for p in self.problems]}


def compact(workspace: Workspace, names: Sequence[str] = (), *, dry_run: bool = False) -> CompactResult:
    """Compact the named tables, all where none is named; one failing table never stops the others.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    targets = select(mapping, names)
    results = tuple(compact_table(workspace, target, dry_run=dry_run) for target in targets)
    return CompactResult(tables=results, problems=mapping.problems)


def compact_table(
    workspace: Workspace, target: TableTarget, *, dry_run: bool = False, applied: Applied | None = None
) -> Compacted:
    """Compact one table; its errors are part of the result. A dry run writes nothing and does not apply."""
    if applied is None:
        nothing = (lambda _: False) if dry_run else (lambda _: True)
        applied = apply_table(workspace, target, allowed=nothing, admitting=not dry_run)
    state = _state(applied)
    if applied.error is not None or state is None:
        return Compacted(target=target, applied=applied)
    shape, properties = state
    try:
        return _compact(workspace, shape, properties, applied, dry_run=dry_run)
    except Exception as error:
        failure = as_ours(error)
        return Compacted(target=target, applied=applied, generation=properties.state.generation, error=failure)


def _state(applied: Applied) -> tuple[Shape, TableProperties] | None:
    """Return shape and properties of the table as apply left it, None where there is no table of ours."""
    plan: TablePlan = applied.plan
    if plan.view is None or applied.shape is None or applied.properties is None:
        return None
    return applied.shape, applied.properties


def _compact(
    workspace: Workspace, shape: Shape, properties: TableProperties, applied: Applied, *, dry_run: bool
) -> Compacted:
    target = applied.target
    lake = workspace.storage(target.location).lake
    if not dry_run:
        properties = recover(workspace, target, properties)
    manifest = read_manifest(lake, target, properties)
    started = workspace.now_ms()
    fold = plan_fold(
        manifest,
        now_ms=started,
        tombstone_retention_ms=target.compaction.tombstone_retention,
        schema_version=shape.version.version,
    )
    if fold is not None and _something_waits(applied):
        # A file that could not be admitted may hold an older event of a deleted key.
        fold = replace(fold, purge_before_ms=0)
    if fold is None or dry_run:
        if not dry_run:
            # Those of a run that was killed once its state was written: nothing is left to fold after it.
            drop_per_run_tables(workspace, target)
            retire(workspace, target, shape, properties, manifest)
        return Compacted(target=target, applied=applied, generation=manifest.state.generation, fold=fold)
    require_files(lake, (*fold.rewrite, *fold.fold))
    with _per_run_tables(workspace, target, shape, manifest, fold) as location:
        workspace.progress(target.table, f"folding {fold.events} events into generation {fold.generation}")
        with _abandoned(lake, location):
            counts = _run(workspace, target, shape, manifest, fold, location)
            written = _read_back(workspace, target, shape, location, counts)
        manifest = after_fold(manifest, fold, written=written, now_ms=workspace.now_ms())
        properties = publish(workspace, target, properties, manifest)
    refresh_view(workspace, target, shape, manifest)
    seconds = (workspace.now_ms() - started) / 1000
    retire(workspace, target, shape, properties, manifest)
    return Compacted(
        target=target,
        applied=applied,
        generation=fold.generation,
        fold=fold,
        counts=counts,
        bytes_written=written.bytes,
        seconds=seconds,
    )


@contextmanager
def _abandoned(lake: Lake, directory: str) -> Iterator[None]:
    """Delete what a failing run wrote: no state names it yet. On a full disk that is what makes the next run fit."""
    try:
        yield
    except SchemasyncError:
        with suppress(SchemasyncError):
            lake.delete_directory(directory)
        raise


def _something_waits(applied: Applied) -> bool:
    if applied.admitted is None or applied.admitted.waiting:
        return True
    return any(d.severity is Severity.ERROR for d in applied.admitted.findings)


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
    )
    by_name = {c.name: c for c in shape.columns}
    keys = [shape.layout.current(by_name[key]).name for key in shape.keys]
    # By path, not by the compactor's name: another run's table of that name has another directory.
    into = workspace.storage(target.location).lake.uri(directory)
    return workspace.fold.run(workspace.text(statement), into=into, sort_by=keys)


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
