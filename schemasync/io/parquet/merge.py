"""The merge of one shard with its changes, with Arrow: sorted files in, one sorted file out, a part at a time.

All rows below the least key up to which every file is held are merged at once. Of these only the rows of the base
whose keys occur among the changes are compared; the others pass as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from schemasync.core.admission import DELETE, UnsentRule
from schemasync.core.compaction import FoldCounts
from schemasync.core.keys import Key
from schemasync.core.layout import ADMITTED_MS, OP
from schemasync.core.merging import MergedShard, MergeRequest, ShardMerge, SortedFile
from schemasync.errors import DataError
from schemasync.io.parquet.ahead import ahead
from schemasync.io.parquet.newest import (
    Masks,
    answers,
    first_saying,
    firsts,
    newest_order,
    positions,
    unsent_values,
)
from schemasync.io.parquet.rows import give_back, table_schema
from schemasync.io.parquet.shard_writer import ShardWriter
from schemasync.io.parquet.sorted_rows import KeyColumns, SortedRows, Stored

_RANK: Final = "schemasync_rank"
_PART_SHARE: Final = 16
_PART_SHARE_ALONE: Final = 20
"""Parts of the memory: of a part there are up to four copies while it is merged, one more of it waits where the next
is merged meanwhile, a row group waits to be written, and every file has a page of each of its columns. That is about
half; an allocator keeps as much of what was freed."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Rows to write, sorted by key, and what happened to the keys of one part; what is written is counted later."""

    rows: pa.Table
    counts: FoldCounts


@dataclass(frozen=True, slots=True)
class _Resolved:
    """Where the newest row of each contested key is, by key, and the columns in which that row says something else."""

    places: pa.Array
    settled: Mapping[str, pa.ChunkedArray]
    counts: FoldCounts


def merge_shard(
    filesystem: fs.FileSystem, base: str, request: MergeRequest, shard: ShardMerge, directory: str, *, alone: bool
) -> MergedShard:
    """Write one shard below ``base`` into ``directory``, which nobody else writes to.

    Where it is ``alone``, no other shard has the other cores: columns are decoded side by side, and parts are merged
    while those before them are written.

    Raises:
        DataError: a file is not sorted by key.
        StorageError: the shard cannot be written.
    """
    keys = [name for name, _ in request.keys]
    merging = _Merging(filesystem, base, request, shard, alone=alone)
    counts = FoldCounts()
    with ShardWriter(
        filesystem,
        base,
        directory,
        merging.schema,
        request.memory,
        kind=request.kind,
        keys=keys,
        ordering=request.ordering,
        shared=request.shared,
        partition_by=request.partition_by,
    ) as writer:
        above: Key | None = None
        for outcome in merging.outcomes():
            above = _check_order(outcome.rows, keys, above, shard)
            writer.write(outcome.rows)
            counts += outcome.counts + merging.written(outcome.rows)
    # One shard after the other is merged, on several threads: what the allocator kept of each would add up.
    give_back(shard.bytes, passed=request.bytes, memory=request.memory)
    return MergedShard(shard=shard.shard, directory=directory, counts=counts)


def _check_order(rows: pa.Table, keys: Sequence[str], above: Key | None, shard: ShardMerge) -> Key | None:
    """Make sure that every key comes after the one before it: sorted, and one row per key."""
    if not rows.num_rows:
        return above
    ends = KeyColumns(rows, keys)
    if (above is not None and ends[0] <= above) or not _ascends(rows, keys):
        raise DataError(
            "files of the table are not sorted by key",
            where=", ".join(file.path for file in shard.files[:3]),
            why=f"merging them into {shard.shard} gave keys out of order",
            fix="Set compaction: {kernel: spark} for the table, which sorts them anew, and report this.",
        )
    return ends[len(ends) - 1]


def _ascends(rows: pa.Table, keys: Sequence[str]) -> bool:
    ascends = pa.repeat(pa.scalar(False), rows.num_rows - 1)
    for name in reversed(keys):
        column = rows.column(name).combine_chunks()
        above, this = column.slice(0, len(column) - 1), column.slice(1)
        ascends = pc.or_(pc.less(above, this), pc.and_(pc.equal(above, this), ascends))
    return pc.all(ascends).as_py() is not False


class _Merging:
    """The parts of one shard, in the order of their keys."""

    def __init__(
        self, filesystem: fs.FileSystem, base: str, request: MergeRequest, shard: ShardMerge, *, alone: bool
    ) -> None:
        self._filesystem = filesystem
        self._base = base
        self._request = request
        self._shard = shard
        self._keys = [name for name, _ in request.keys]
        self._sort = [(name, "ascending") for name in self._keys]
        self._alone = alone
        share = _PART_SHARE_ALONE if alone else _PART_SHARE
        self._part_bytes = request.memory // (share * max(len(shard.files), 1))
        self.schema: pa.Schema = table_schema(request.columns)

    def outcomes(self) -> Iterator[_Outcome]:
        """Yield what becomes of each part; where the shard is alone the next is merged while one is written."""
        return ahead(self._outcomes()) if self._alone else self._outcomes()

    def _outcomes(self) -> Iterator[_Outcome]:
        files = [(file, self._open(file)) for file in self._shard.files]
        while files:
            for _, rows in files:
                rows.fill()
            below = min((k for _, rows in files if (k := rows.open_from) is not None), default=None)
            taken = [(file.rank, rows.take_below(below)) for file, rows in files]
            old = pa.Table.from_batches([b for rank, part in taken if rank == 0 for b in part], self.schema)
            changes = [self._ranked(part, rank) for rank, part in taken if rank and part]
            yield self._merged(self._in_order(old, files), changes)
            files = [(file, rows) for file, rows in files if not rows.is_empty]

    def written(self, rows: pa.Table) -> FoldCounts:
        """Count rows that are written."""
        alive = pc.sum(pc.not_equal(rows.column(OP), DELETE)).as_py() or 0
        return FoldCounts(written=rows.num_rows, rows=alive, unsent=tuple(sorted(self._unsent(rows))))

    def _open(self, file: SortedFile) -> SortedRows:
        columns, keys = self._request.stored[file.version], self._shard.keys
        stored = Stored(
            self._filesystem,
            f"{self._base}/{file.path}",
            columns,
            keys=self._keys,
            within=keys,
            part_bytes=self._part_bytes,
            threads=self._alone,
        )
        return SortedRows(stored.batches(), self._keys, keys, self._part_bytes)

    def _in_order(self, old: pa.Table, files: Sequence[tuple[SortedFile, SortedRows]]) -> pa.Table:
        """Return rows of the base sorted, wherever it had several files."""
        several = sum(file.rank == 0 for file, _ in files) > 1
        return old.sort_by(self._sort) if several else old

    def _ranked(self, part: Sequence[pa.RecordBatch], rank: int) -> pa.Table:
        rows = pa.Table.from_batches(part, self.schema)
        return rows.append_column(_RANK, pa.repeat(pa.scalar(rank, pa.int32()), rows.num_rows))

    def _merged(self, old: pa.Table, changes: Sequence[pa.Table]) -> _Outcome:
        changed = pa.concat_tables(changes) if changes else None
        kept = self._without_old_tombstones(old, changed)
        purged = old.num_rows - kept.num_rows
        if changed is None:
            return _Outcome(kept, FoldCounts(purged=purged))
        rows = pa.concat_tables([self._ranked(kept.to_batches(), 0), changed])
        # By the first column of the key only: rows that share no more than that are compared for nothing.
        asking = changed.column(self._keys[0]).combine_chunks()
        asked = pc.is_in(rows.column(self._keys[0]), value_set=asking).combine_chunks()
        places = positions(rows)
        found = self._resolved(rows, places.filter(asked))
        others = places.filter(pc.invert(asked))
        chosen = pa.concat_arrays([others, found.places])
        order = pc.sort_indices(rows.select(self._keys).take(chosen), sort_keys=self._sort)
        # Whole rows are put in order once, at the very end: that is what a merge's time goes into.
        merged = rows.drop_columns([_RANK]).take(chosen.take(order))
        for name, values in found.settled.items():
            column = pa.chunked_array([*rows.column(name).take(others).chunks, *values.chunks], values.type)
            merged = merged.set_column(merged.column_names.index(name), name, column.take(order))
        return _Outcome(merged, found.counts + FoldCounts(purged=purged))

    def _resolved(self, rows: pa.Table, contested: pa.Array) -> _Resolved:
        """Find the newest row per key among some, and count what that does to the base."""
        sparse = [name for name, _ in self._request.unsent.columns] if self._request.unsent else []
        wanted = dict.fromkeys([*self._keys, *self._request.ordering, OP, _RANK, *sparse])
        some = rows.select(list(wanted)).take(contested)
        order = newest_order(some, self._keys, self._request.ordering, (_RANK, "ascending"))
        ordered = some.take(order).combine_chunks()
        first = firsts(ordered, self._keys)
        key_of = pc.cumulative_sum(first.cast(pa.int64()))
        of_base = pc.equal(ordered.column(_RANK), 0)
        alive = pc.not_equal(ordered.column(OP), DELETE)
        masks = self._unsent(ordered)
        rule = self._request.unsent
        settled = _settled(ordered, first, key_of, self._keys, masks, rule) if rule else ordered
        key = key_of.filter(first)
        was = pc.is_in(key, value_set=key_of.filter(pc.and_(of_base, alive).combine_chunks()))
        changed = pc.is_in(key, value_set=key_of.filter(pc.invert(of_base).combine_chunks()))
        lives = alive.filter(first).combine_chunks()
        from_change = pc.invert(of_base.filter(first).combine_chunks())
        return _Resolved(
            contested.take(order.filter(first)),
            {name: settled.column(name).filter(first) for name in masks},
            FoldCounts(
                keys=_count(changed),
                inserted=_count(pc.and_(lives, pc.invert(was))),
                updated=_count(pc.and_(pc.and_(lives, was), from_change)),
                deleted=_count(pc.and_(pc.invert(lives), was)),
            ),
        )

    def _unsent(self, rows: pa.Table) -> Masks:
        rule = self._request.unsent
        return unsent_values(rows, rule) if rule else {}

    def _without_old_tombstones(self, old: pa.Table, changed: pa.Table | None) -> pa.Table:
        """Leave out tombstones whose time is over and whose keys no change has."""
        over = pc.and_(
            pc.equal(old.column(OP), DELETE), pc.less(old.column(ADMITTED_MS), self._request.purge_before_ms)
        )
        if not pc.any(over).as_py():
            return old
        numbered = old.select(self._keys).append_column(_RANK, positions(old)).filter(over)
        if changed is not None:
            numbered = numbered.join(changed.select(self._keys), keys=self._keys, join_type="left anti")
        gone = pc.is_in(positions(old), value_set=numbered.column(_RANK).combine_chunks())
        return old.filter(pc.invert(gone))


def _count(mask: pa.BooleanArray) -> int:
    return int(mask.true_count)


def _settled(
    ordered: pa.Table, first: pa.BooleanArray, key_of: pa.Array, keys: Sequence[str], masks: Masks, rule: UnsentRule
) -> pa.Table:
    """Fill placeholders in the newest row of a key with what its newest row that has none says.

    That is NULL where it is a delete; where no row tells the value the placeholder stays.
    """
    for name, mask in masks.items():
        saying = first_saying(ordered, keys, mask)
        place = pc.index_in(key_of, value_set=key_of.take(saying))
        answer, tells = answers(ordered, name, saying.take(place), rule)
        column = pc.if_else(pc.and_(pc.and_(mask, first), tells), answer, ordered.column(name))
        ordered = ordered.set_column(ordered.column_names.index(name), name, column)
    return ordered
