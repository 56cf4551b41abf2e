"""One fold, done: the new shards are written, read back and published.

Called by the compaction, and by apply before a table goes on under another key. Whatever fails, the state in force
stays readable.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from schemasync.app.per_run import per_run_tables
from schemasync.app.reading_back import abandoned, read_back
from schemasync.app.states import Draft, publish, require_files
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.compaction import FoldCounts, FoldPlan, after_fold
from schemasync.core.keys import Key
from schemasync.core.manifest import Manifest, Segment, SegmentKind, new_run_directory, run_directory, shard_directory
from schemasync.core.mapping import TableTarget
from schemasync.core.merge_request import merge_request
from schemasync.core.merging import MergedShard
from schemasync.core.ports import Lake
from schemasync.core.shape import Shape
from schemasync.core.sharding import ShardFold, behind, bounds, cut, has_ranges, in_one_shard
from schemasync.core.toast import asked_placeholders, left_unsent
from schemasync.errors import DataError, StorageError

_log: Final = logging.getLogger("schemasync.compaction")

_DEAD_MS: Final = 6 * 3_600_000
"""A fold that lives writes files, and publishes them right after it has read the last one back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What a fold made: the new shards and their counts, and the table with them in force."""

    written: tuple[Segment, ...]
    counts: FoldCounts
    draft: Draft


def shards_to_write(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, *, outdated: AbstractSet[str]
) -> tuple[ShardFold, ...]:
    """Look where the changes lie, and decide which shards a compaction writes: ``outdated`` ones, changes or none."""
    if not shape.key_columns:
        return behind(manifest, outdated=outdated, shard_bytes=target.compaction.shard_size)
    if not can_be_cut(shape, manifest):
        return in_one_shard(manifest)
    job = workspace.storage(target).shards
    keys = shape.key_columns
    names, types = [name for name, _ in keys], [type_ for _, type_ in keys]

    def sample(shard: ShardFold, pieces: int) -> Sequence[Key]:
        files = [f for s in (*shard.rewrite, *shard.deltas) for f in s.files]
        return job.cuts(files, names, shard.keys, pieces)

    changes = [f for delta in manifest.deltas for f in delta.files]
    return cut(
        manifest,
        job.spread(changes, names, bounds(manifest.base, types)),
        types=types,
        outdated=outdated,
        shard_bytes=target.compaction.shard_size,
        sample=sample,
    )


def can_be_cut(shape: Shape, manifest: Manifest) -> bool:
    """Tell whether keys have an order, and all that is there was sorted by the present one."""
    return has_ranges(shape.key_columns, manifest.segments)


def is_by_sql(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, *, size: int) -> bool:
    """Tell whether Spark's SQL does what reads ``size`` bytes; else Arrow streams sorted files.

    SQL reads changes where the metastore has them: published ones.
    """
    if target.compaction.kernel == "spark" or not can_be_cut(shape, manifest):
        return True
    storage = workspace.storage(target)
    return not (storage.everywhere or storage.is_small(size, target.compaction.arrow_limit))


def run_fold(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    draft: Draft,
    fold: FoldPlan,
    *,
    clean: Callable[[Draft], Draft] = lambda draft: draft,
) -> Folded:
    """Write and publish the shards that a plan decided, and the draft with them; ``clean`` it right before that.

    Raises:
        ConflictError: another writer published first; nothing of this run became visible.
        DataError: a file of the table is missing or was changed.
        StorageError: a new shard cannot be written, or is not what the job wrote.
    """
    manifest = draft.manifest
    lake = workspace.storage(target).lake
    directory = new_run_directory(SegmentKind.BASE, fold.generation, workspace.token())
    require_files(lake, (*fold.rewrite, *fold.fold))
    named = draft.in_force.locations | manifest.locations
    _delete_dead_tries(lake, directory, named, before_ms=workspace.now_ms() - _DEAD_MS)
    workspace.progress(target.table, f"folding {fold.events} events into generation {fold.generation}")
    with abandoned(lake, directory):
        merged = merge_shards(
            workspace,
            target,
            shape,
            manifest,
            {shard_directory(directory, s.shard): s for s in fold.shards},
            kind=SegmentKind.BASE,
            directory=directory,
            purge_before_ms=fold.purge_before_ms,
            next_keys=fold.next_keys,
            by_sql=fold.next_keys is not None or is_by_sql(workspace, target, shape, manifest, size=fold.bytes_read),
        )
        lows = {shard.shard: shard.low for shard in fold.shards}
        placeholders = asked_placeholders(target, manifest.placeholders)
        back = partial(read_back, workspace, target, shape, kind=SegmentKind.BASE, placeholders=placeholders)
        written = tuple(back(m, low=lows[m.shard]) for m in merged)
    cleaned = clean(draft)
    folded = after_fold(cleaned.manifest, fold, written=written, now_ms=workspace.now_ms())
    counts = sum((m.counts for m in merged), start=FoldCounts())
    return Folded(written=written, counts=counts, draft=publish(workspace, target, cleaned, folded))


def _delete_dead_tries(lake: Lake, directory: str, named: AbstractSet[str], *, before_ms: int) -> None:
    """Delete what runs that were killed wrote for the generation of this ``directory``: each try leaves as much again.

    Whoever is only slow finds that its files are gone when it reads them back.
    """
    kept = {run_directory(location) for location in named}
    with suppress(StorageError):
        for run in sorted(set(lake.directories(posixpath.dirname(directory))) - kept):
            files = lake.files(run)
            if files and all(file.modified_ms <= before_ms for file in files):
                lake.delete_directory(run)


def merge_shards(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    manifest: Manifest,
    places: Mapping[str, ShardFold],
    *,
    kind: SegmentKind,
    directory: str,
    purge_before_ms: int,
    by_sql: bool,
    next_keys: tuple[str, ...] | None = None,
) -> tuple[MergedShard, ...]:
    """Write shards, or a delta, each into its place: ``directory``, or one below it.

    ``by_sql`` is of `is_by_sql`; where there are ``next_keys`` (of `FoldPlan`), SQL alone knows what to do about them.

    Raises:
        DataError: a value does not fit the type that its column has now, or partitions are missing.
        EngineError: the engine failed.
        StorageError: a shard cannot be written, or a file is not what it should be.
    """
    storage, shards = workspace.storage(target), tuple(places.values())
    if by_sql:
        deltas = {s.name: s for shard in shards for s in shard.deltas}
        tables = per_run_tables(workspace, target, shape, manifest, deltas=tuple(deltas.values()), directory=directory)
        with tables as present:
            run = _Selecting(workspace, target, shape, manifest, present, purge_before_ms, next_keys)
            written = tuple(run.into(place, shard) for place, shard in places.items())
        _require_all_read(target, manifest, shards, written)
        if any(merged.counts.written for merged in written):
            _require_each_key_once(workspace, storage.lake.uri(directory), shape)
        return written
    request = merge_request(
        target,
        shape,
        manifest,
        shards,
        kind=kind,
        directories={shard.shard: place for place, shard in places.items()},
        purge_before_ms=purge_before_ms,
    )
    small = storage.is_small(request.bytes, target.compaction.arrow_limit)
    # In this process while little is read, in Spark's tasks beyond that.
    if small:
        return storage.shards.merge(request)
    merged = storage.large_shards.merge(request)
    _drop_other_tries(storage.lake, directory, merged)
    return merged


def _drop_other_tries(lake: Lake, directory: str, merged: Sequence[MergedShard]) -> None:
    """Delete what tasks wrote that Spark tried again: no state will ever name it.

    What cannot be deleted stops nothing: it goes with the directory of the run.
    """
    kept = tuple(f"{shard.directory}/" for shard in merged)
    try:
        others = {posixpath.dirname(file.path) for file in lake.files(directory) if not file.path.startswith(kept)}
        for other in sorted(others):
            lake.delete_directory(other)
    except StorageError as error:
        _log.warning("what tasks wrote that were tried again stays beside the shards: %s", error)


def _require_all_read(
    target: TableTarget, manifest: Manifest, shards: Sequence[ShardFold], written: Sequence[MergedShard]
) -> None:
    """Make sure that SQL, which goes by the metastore's partitions, read every row of the segments once."""
    names = {s.name for shard in shards for s in (*shard.rewrite, *shard.deltas)}
    listed = sum(s.rows for s in manifest.segments if s.name in names)
    read = sum(merged.counts.read for merged in written)
    if read != listed:
        raise DataError(
            "the metastore does not show what the table's manifest lists",
            where=target.full_name,
            why=f"{read} rows were read where there are {listed}",
            fix="Nothing was published. Run apply, which repairs partitions, and compact again.",
        )


def _require_each_key_once(workspace: Workspace, directory: str, shape: Shape) -> None:
    """Make sure that no key was written twice, in one shard or in two: by one look at all that a run wrote."""
    keys = [name for name, _ in shape.key_columns]
    if keys and workspace.fold.repeats_keys(directory, keys):
        raise StorageError("the job wrote a key twice", where=directory, fix="Run again; the old state is in force.")


@dataclass(frozen=True, slots=True)
class _Selecting:
    """Writes shards with Spark's SQL. ``present`` are the columns that the long-lived table has."""

    workspace: Workspace
    target: TableTarget
    shape: Shape
    manifest: Manifest
    present: frozenset[str]
    purge_before_ms: int
    next_keys: tuple[str, ...] | None

    def into(self, directory: str, shard: ShardFold) -> MergedShard:
        target, shape, toasted = self.target, self.shape, self.manifest.toasted
        placeholders = asked_placeholders(target, self.manifest.placeholders)
        statement = ddl.fold(
            target,
            shape,
            shard,
            segment_versions=self.manifest.segment_versions,
            present=self.present,
            purge_before_ms=self.purge_before_ms,
            toasted=toasted,
            placeholders=self.manifest.placeholders,
            next_keys=self.next_keys,
        )
        lake = self.workspace.storage(target).lake
        lake.make_directory(directory)
        counts = self.workspace.fold.run(
            self.workspace.text(statement),
            # By path, not by the compactor's name: another run's table of that name has another directory.
            into=lake.uri(directory),
            sort_by=[name for name, _ in shape.key_columns],
            unsent=left_unsent(shape, toasted, placeholders),
            partition_by=shape.partitions,
        )
        return MergedShard(shard=shard.shard, directory=directory, counts=counts)
