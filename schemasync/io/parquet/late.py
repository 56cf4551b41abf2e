"""Events that come late: rows of a delta that were there in a newer form, found before the delta is written.

Rows whose first ordering value is larger than any in the base, or in a delta, need no look there. For the others keys
and that column are read, where statistics say that such keys may be; others where it leaves it open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest, EarlierRows, FoldedShard
from schemasync.core.keys import Key
from schemasync.core.manifest import NEVER, DataFile
from schemasync.io.parquet.ahead import side_by_side
from schemasync.io.parquet.newest import firsts, newest_order, positions
from schemasync.io.parquet.rows import BATCH_ROWS, batch_rows, buffer_size
from schemasync.io.parquet.sorted_rows import KeyColumns, spread, statistics

MOST_ROWS: Final = 50_000_000
"""Rows, of the base or of deltas, whose keys may be looked at: beyond that a view that compares costs less."""

_PLACE: Final = "schemasync_place"
_NONE: Final = pa.nulls(0, pa.int64())
_SHARE: Final = 40
"""This part of the memory is read at once, and compared at once: there are several copies while that is sorted."""
_STREAMS: Final = 2
"""Threads that read at once."""
_SEARCHED: Final = 4096
"""Up to one suspect in so many rows is searched for among them; where there are more, to compare all takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Rows without those that are late; whether all are known to be newer than the base, and than earlier deltas."""

    rows: pa.Table
    ahead: bool = False
    ahead_of_deltas: bool = False


def without_late_rows(filesystem: fs.FileSystem, base: str, rows: pa.Table, request: AdmissionRequest) -> Compared:
    """Leave out rows that are older than what is there of their key.

    ``rows`` are one per key, sorted by key.

    Raises:
        OSError: a file of the base or of a delta cannot be read.
        pa.ArrowException: the same.
    """
    beside = request.beside
    if beside is None:
        return Compared(rows=rows)
    columns = [*request.keys, *request.ordering]
    asked = rows.select(columns).append_column(_PLACE, positions(rows))
    first = request.ordering[0]
    suspects = _not_above(asked, first, beside.newest)
    near = [f for shard in _near(suspects, request.keys, beside) for f in shard.files]
    of_base = _late(filesystem, base, suspects, near, request)
    of_deltas = None
    if beside.deltas is not None:
        suspects = _not_above(asked, first, max((d.newest for d in beside.deltas), default=NEVER))
        least = NEVER if suspects.column(first).null_count else pc.min(suspects.column(first)).as_py()
        near = [f for d in beside.deltas if suspects.num_rows and d.newest >= least for f in d.files]
        of_deltas = _late(filesystem, base, suspects, near, request)
    late = pa.concat_arrays([_NONE, *(places for places in (of_base, of_deltas) if places is not None)])
    gone = pc.is_in(asked.column(_PLACE), value_set=late)
    return Compared(rows=rows.filter(pc.invert(gone)), ahead=of_base is not None, ahead_of_deltas=of_deltas is not None)


def _late(
    filesystem: fs.FileSystem, base: str, suspects: pa.Table, files: Sequence[DataFile], request: AdmissionRequest
) -> pa.Array | None:
    """Return the places of suspects that are older than what files have; None where there is too much to look at."""
    if sum(file.rows for file in files) > MOST_ROWS:
        return None
    paths = [f"{base}/{file.path}" for file in files]
    # The first ordering column decides nearly always, and there are several.
    late, tied = _older(filesystem, paths, suspects, replace(request, ordering=request.ordering[:1]))
    if len(tied) and len(request.ordering) > 1:
        alike = suspects.filter(pc.is_in(suspects.column(_PLACE), value_set=tied))
        late = pa.concat_arrays([late, _older(filesystem, paths, alike, request)[0]])
    return late


def _not_above(rows: pa.Table, first: str, newest: int) -> pa.Table:
    """Return the rows that are not newer than all of which this is the largest value of the first ordering column."""
    return rows.filter(pc.fill_null(pc.less_equal(rows.column(first), newest), fill_value=True))


def touched(rows: pa.Table, request: AdmissionRequest) -> tuple[str, ...] | None:
    """Return the shards of the base in whose ranges these rows, sorted by key, have keys."""
    beside = request.beside
    return None if beside is None else tuple(shard.name for shard in _near(rows, request.keys, beside))


def _near(rows: pa.Table, keys: Sequence[str], beside: EarlierRows) -> list[FoldedShard]:
    """Return the shards that have such keys in their range."""
    bounds = [shard.low for shard in beside.shards if shard.low is not None]
    return [beside.shards[place] for place in sorted(spread(iter(rows.to_batches()), keys, bounds))]


def _read(
    filesystem: fs.FileSystem, paths: Iterable[str], suspects: pa.Table, request: AdmissionRequest
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that share the first column of their key with a suspect, in no order.

    Left out are row groups that say of themselves that they have no newer one.
    """
    columns = [*request.keys, *request.ordering]
    share = request.memory // (_SHARE * _STREAMS)
    footers = ((path, pq.read_metadata(path, filesystem=filesystem)) for path in paths)
    newer = _Newer(suspects, request)
    found, dealt = [], 0
    for path, metadata in footers:
        groups = list(newer.groups(metadata))
        # In turn across all files: many have one row group only.
        found.append((path, metadata, [groups[(number - dealt) % _STREAMS :: _STREAMS] for number in range(_STREAMS)]))
        dealt += len(groups)

    def stream(number: int) -> Iterator[pa.RecordBatch]:
        for path, metadata, shares in found:
            if not (mine := shares[number]):
                continue
            size, rows = buffer_size(metadata, share), batch_rows(metadata, share, BATCH_ROWS)
            with pq.ParquetFile(
                path, metadata=metadata, filesystem=filesystem, pre_buffer=False, buffer_size=size
            ) as file:
                for group, reach in mine:
                    batches = file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
                    yield from newer.sharing((batch.select(columns) for batch in batches), reach)

    yield from side_by_side([stream(number) for number in range(_STREAMS)])


class _Newer:
    """Where rows may be that are newer than suspects of their key."""

    def __init__(self, suspects: pa.Table, request: AdmissionRequest) -> None:
        self._key, self._first = request.keys[0], request.ordering[0]
        self._values = suspects.column(self._key).combine_chunks()
        self._keys = list(KeyColumns(suspects, [self._key]))
        """Ascending."""
        # A null is older than all.
        self._ages = pc.fill_null(suspects.column(self._first).cast(pa.int64()), NEVER).combine_chunks()

    def groups(self, metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
        """Yield the row groups that may have some, and how many suspects come before the end of each.

        What statistics do not tell may be.
        """
        told = zip(statistics(metadata, self._key), statistics(metadata, self._first), strict=True)
        for number, (keys, ages) in enumerate(told):
            low, reach = self._within(_range(keys))
            if low < reach and self._may_be(low, reach, _range(ages)):
                yield number, reach

    def _within(self, keys: tuple[Any, Any] | None) -> tuple[int, int]:
        if keys is None or not isinstance(keys[0], (int, str)):
            return 0, len(self._keys)
        return bisect_left(self._keys, keys[:1]), bisect_right(self._keys, keys[1:])

    def _may_be(self, low: int, reach: int, ages: tuple[Any, Any] | None) -> bool:
        if ages is None or not isinstance(ages[1], int):
            return True
        return bool(pc.min(self._ages.slice(low, reach - low)).as_py() <= ages[1])

    def sharing(self, batches: Iterator[pa.RecordBatch], reach: int) -> Iterator[pa.RecordBatch]:
        """Yield rows that share the first column of their key with one of the first ``reach`` suspects.

        The rows are sorted by key, so those after the last of these are not read.
        """
        for batch in batches:
            keys = KeyColumns(batch, [self._key])
            if batch.column(self._key).type != self._values.type:
                # Of an earlier version: what is in order there need not be in this one.
                yield self._filtered(batch)
            elif len(keys):
                last = keys[len(keys) - 1]
                low, high = bisect_left(self._keys, keys[0]), bisect_right(self._keys, last)
                if high - low > len(keys) // _SEARCHED:
                    yield self._filtered(batch)
                else:
                    yield from self._searched(batch, keys, self._keys[low:high])
                # Of a key with more columns the next rows may share this one.
                if bisect_left(self._keys, last) >= reach:
                    return

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.is_in(batch.column(self._key), value_set=self._values))

    @staticmethod
    def _searched(batch: pa.RecordBatch, keys: KeyColumns, sought: Iterable[Key]) -> Iterator[pa.RecordBatch]:
        for key in dict.fromkeys(sought):
            first = keys.first_from(key)
            # Copied: a slice holds all of its batch, and there may be one of each.
            yield batch.take(pa.array(range(first, bisect_right(keys, key, first)), pa.int64()))


def _range(told: pq.Statistics | None) -> tuple[Any, Any] | None:
    return (told.min, told.max) if told is not None and told.has_min_max else None


def _some(found: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    """Gather rows up to a size: many may share the first column of their key with few suspects."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in found:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= most_bytes:
            yield held
            held, size = [], 0
    if held:
        yield held


def _older(
    filesystem: fs.FileSystem, paths: Sequence[str], suspects: pa.Table, request: AdmissionRequest
) -> tuple[pa.Array, pa.Array]:
    """Return the places of suspects that are older than what files have of their key, and of those that are as new."""
    asked = suspects.select([*request.keys, *request.ordering, _PLACE])
    found = _some(_read(filesystem, paths, asked, request), request.memory // _SHARE)
    compared = [_compared(asked, some, request) for some in found]
    late = pa.concat_arrays([_NONE, *(beaten for beaten, _ in compared)])
    return late, pa.concat_arrays([_NONE, *(tied for _, tied in compared)])


def _compared(
    suspects: pa.Table, found: Sequence[pa.RecordBatch], request: AdmissionRequest
) -> tuple[pa.Array, pa.Array]:
    """Return the places of suspects that are not the newest of their key, and of those that are not alone in that."""
    there = pa.Table.from_batches(found).append_column(_PLACE, pa.nulls(sum(b.num_rows for b in found), pa.int64()))
    rows = pa.concat_tables([suspects, there.cast(suspects.schema)])
    # Nulls come last: of equal rows the suspect is first, as the one that came later.
    order = newest_order(rows, request.keys, request.ordering, (_PLACE, "ascending"))
    ordered = rows.take(order).combine_chunks()
    newest = firsts(ordered, request.keys)
    differs = firsts(ordered, [*request.keys, *request.ordering])
    followed = pa.concat_arrays([pc.invert(differs.slice(1)), pa.array([False])])
    beaten, tied = pc.invert(newest), pc.and_(newest, followed)
    return _places(ordered.filter(beaten)), _places(ordered.filter(tied))


def _places(rows: pa.Table) -> pa.Array:
    return pc.drop_null(rows.column(_PLACE)).combine_chunks()
