"""From shards to write to a `schemasync.core.merging.MergeRequest`: which file is read how, and written where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from schemasync.core.ddl import expected_columns
from schemasync.core.envelope import is_shared
from schemasync.core.layout import SCHEMA_VERSION, MetaColumn, ordering_columns
from schemasync.core.manifest import Manifest, SegmentKind
from schemasync.core.mapping import TableTarget
from schemasync.core.merging import MergeRequest, ShardMerge, SortedFile, StoredColumn
from schemasync.core.projection import Carried, Fill, carried
from schemasync.core.reshape import Keep
from schemasync.core.schema import Column
from schemasync.core.shape import Shape
from schemasync.core.sharding import ShardFold
from schemasync.core.toast import carry_rule


def merge_request(
    target: TableTarget,
    shape: Shape,
    manifest: Manifest,
    shards: Iterable[ShardFold],
    *,
    kind: SegmentKind,
    directories: Mapping[str, str],
    purge_before_ms: int,
) -> MergeRequest:
    """Return the merge that writes these shards, each into its directory; all segments are sorted by the key."""
    merges = tuple(_shard_merge(shard, directories[shard.shard]) for shard in shards)
    versions = {f.version for merge in merges for f in merge.files}
    return MergeRequest(
        kind=kind,
        shards=merges,
        columns=tuple((c.name, c.type) for c in expected_columns(shape)),
        keys=shape.key_columns,
        ordering=ordering_columns(shape.envelope),
        stored={version: tuple(stored_columns(shape, version)) for version in versions},
        purge_before_ms=purge_before_ms,
        unsent=carry_rule(target, shape, manifest),
        memory=target.compaction.memory,
        partition_by=shape.partitions,
        shared=is_shared(shape.envelope.ordering),
    )


def _shard_merge(shard: ShardFold, directory: str) -> ShardMerge:
    base = (SortedFile(path=f.path, version=s.schema_version, rank=0) for s in shard.rewrite for f in s.files)
    changes = (
        SortedFile(path=f.path, version=s.schema_version, rank=rank)
        for rank, s in enumerate(sorted(shard.deltas, key=lambda s: s.name), start=1)
        for f in s.files
    )
    return ShardMerge(
        shard=shard.shard,
        directory=directory,
        keys=shard.keys,
        files=(*base, *changes),
        bytes=sum(s.bytes for s in (*shard.rewrite, *shard.deltas)),
    )


def stored_columns(shape: Shape, version: int) -> Iterator[StoredColumn]:
    """Yield, for each physical column to write, where rows stored under ``version`` have its value."""
    for column in shape.columns:
        yield _stored_column(shape, column, version)
    for meta in shape.own_columns:
        yield StoredColumn(name=meta.name, type=meta.type, source=_own(shape, meta))


def _own(shape: Shape, meta: MetaColumn) -> Carried | Fill:
    if meta.name == SCHEMA_VERSION:
        return Fill(value=shape.version.version)
    return Carried(name=meta.name, shape=Keep(target=meta.type))


def _stored_column(shape: Shape, column: Column, version: int) -> StoredColumn:
    current = shape.layout.current(column)
    source = carried(
        shape.history, column=column, layout=shape.layout, version=version, fill_defaults=shape.fill_defaults
    )
    return StoredColumn(name=current.name, type=current.type, source=source)
