"""The merge of shards with changes, decided: which files, how each is read, what is kept.

Pure. `schemasync.io.parquet.merge` executes a `MergeRequest` with Arrow, shard by shard, in this process or in Spark's
tasks; the SELECT of `schemasync.core.ddl.fold` says the same in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemasync.core.admission import UnsentRule
from schemasync.core.compaction import FoldCounts
from schemasync.core.manifest import SegmentKind
from schemasync.core.partitioning import PartitionColumn
from schemasync.core.projection import Carried, Fill
from schemasync.core.sharding import KeyRange
from schemasync.core.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """One physical column to write, and what it holds of rows that were stored under one version."""

    name: str
    type: Type
    source: Carried | Fill


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedFile:
    """A file of ours, sorted by key: its path, and the version under which its rows were stored.

    ``rank`` decides between rows that the ordering does not tell apart: the lowest wins, the base has 0.
    """

    path: str
    version: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMerge:
    """One shard to write into ``directory``: all rows of these files whose keys lie in the range."""

    shard: str
    directory: str
    keys: KeyRange
    files: tuple[SortedFile, ...]
    bytes: int
    """About how much is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """What becomes of some shards: the newest row per key, sorted by key, projected to the table's version.

    They become segments of a ``kind``: shards of the base, or a delta, which is merged as one shard of all keys.
    ``ordering`` are the columns that decide which row is newer (descending, null is oldest). A tombstone of the base
    that was admitted before ``purge_before_ms`` goes where no change has its key.
    ``unsent`` are the columns in which placeholders occur, None where there are none. ``memory`` is how many bytes the
    merge of one shard may hold. ``shared`` is of an AdmissionRequest.
    """

    kind: SegmentKind
    shards: tuple[ShardMerge, ...]
    columns: tuple[tuple[str, Type], ...]
    keys: tuple[tuple[str, Type], ...]
    ordering: tuple[str, ...]
    stored: Mapping[int, tuple[StoredColumn, ...]]
    purge_before_ms: int
    unsent: UnsentRule | None
    memory: int
    partition_by: tuple[PartitionColumn, ...] = ()
    shared: bool = False

    @property
    def bytes(self) -> int:
        """About how much is read of all shards."""
        return sum(shard.bytes for shard in self.shards)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedShard:
    """A shard that was written: where, and what was counted. The directory is empty where no row is left."""

    shard: str
    directory: str
    counts: FoldCounts
