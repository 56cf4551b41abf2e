"""Files of ours that are sorted by key, read a part at a time: what merges stream, and what shards are cut by.

Memory is that of the parts that are held at once, whatever the size of the files: a part ends at a number of bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.keys import Key
from schemasync.core.layout import OP
from schemasync.core.merging import StoredColumn
from schemasync.core.projection import Carried, Fill
from schemasync.core.reshape import Keep, may_misfit
from schemasync.core.sharding import KeyRange
from schemasync.io.parquet.batches import batches, buffer_size
from schemasync.io.parquet.rows import null_in_deletes, open_parquet, table_schema
from schemasync.io.parquet.values import arrow_type, constant, reshape

_BATCH_ROWS: Final = 16_384
PART_ROWS: Final = 131_072
"""Rows of one file that are held at once, unless they are too wide for that."""


class KeyColumns:
    """The key columns of some rows, comparable in Python as `schemasync.core.keys` says."""

    def __init__(self, rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> None:
        """Look at these columns."""
        self._columns = [comparable(rows.column(name)) for name in names]
        self._rows: int = rows.num_rows

    def __getitem__(self, row: int) -> Key:
        """Return one row's key."""
        return tuple(column[row].as_py() for column in self._columns)

    def __iter__(self) -> Iterator[Key]:
        """Yield all keys, in much less time than one by one."""
        return zip(*(column.to_pylist() for column in self._columns), strict=True)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def first_from(self, key: Key) -> int:
        """Return how many rows come before this key; the rows are sorted."""
        return bisect_left(self, key)

    def rows_of(self, key: Key) -> range:
        """Return the rows that have this key; the rows are sorted."""
        first = self.first_from(key)
        return range(first, bisect_right(self, key, first))


def comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return values as Python compares them: dates as days, timestamps as microseconds, booleans as 0 and 1."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return column.cast(pa.int64())
    if pa.types.is_date(type_):
        return column.cast(pa.int32())
    return column.cast(pa.int8()) if pa.types.is_boolean(type_) else column


class Stored:
    """Rows of one file as the columns that are to be written."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        path: str,
        columns: Sequence[StoredColumn],
        *,
        keys: Sequence[str],
        within: KeyRange,
        part_bytes: int,
        threads: bool,
    ) -> None:
        """Open a file whose rows were stored as ``columns`` say; ``keys`` are the columns of the key.

        About ``part_bytes`` are read at once, and decoded at once: by Arrow's ``threads``, column by column, or not.
        """
        self._filesystem = filesystem
        self._path = path
        self._columns = columns
        self._schema = table_schema((c.name, c.type) for c in columns)
        self._unless_deleted = frozenset(
            c.name
            for c in columns
            if c.name not in keys and isinstance(c.source, Carried) and may_misfit(c.source.shape)
        )
        self._key = next(c for c in columns if c.name == keys[0])
        self._within = within
        self._part_bytes = part_bytes
        self._threads = threads

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows, some at a time, without row groups that lie outside the range as a whole."""
        wanted = [c.source.name for c in self._columns if isinstance(c.source, Carried)]
        metadata = pq.read_metadata(self._path, filesystem=self._filesystem)
        size, sizes = buffer_size(metadata, self._part_bytes), batches(metadata, self._part_bytes, _BATCH_ROWS)
        with open_parquet(self._path, metadata=metadata, filesystem=self._filesystem, buffer_size=size) as file:
            there = set(file.schema_arrow.names)
            columns = [name for name in wanted if name in there]
            groups = self._groups(metadata)
            for batch in sizes.of(file, row_groups=groups, columns=columns, use_threads=self._threads):
                yield self._projected(batch)

    def _groups(self, metadata: pq.FileMetaData) -> list[int]:
        source = self._key.source
        if not isinstance(source, Carried) or not isinstance(source.shape, Keep):
            return list(range(metadata.num_row_groups))
        low: Any = None if self._within.low is None else self._within.low[0]
        high: Any = None if self._within.high is None else self._within.high[0]

        def meets(least: Any, most: Any) -> bool:
            below = type(low) is type(most) and most < low
            return not below and not (type(high) is type(least) and least > high)

        return list(groups_where(metadata, source.name, meets))

    def _projected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._column(batch, column).cast(arrow_type(column.type)) for column in self._columns]
        return pa.record_batch(arrays, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, column: StoredColumn) -> pa.Array:
        source = column.source
        if isinstance(source, Fill):
            return constant(source.value, column.type, batch.num_rows)
        place = batch.schema.get_field_index(source.name)
        if place < 0:
            return pa.nulls(batch.num_rows, arrow_type(column.type))
        values = batch.column(place)
        if column.name in self._unless_deleted:
            values = null_in_deletes(values, batch.column(OP))
        return reshape(values, source.shape)


class SortedRows:
    """A sorted file's rows in a range of keys, taken from its front."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], keys: Sequence[str], within: KeyRange, part_bytes: int
    ) -> None:
        """Take rows from ``batches``; hold about ``part_bytes`` of them at once."""
        self._batches = batches
        self._names = keys
        self._within = within
        self._part_bytes = max(part_bytes, 1)
        self._held: list[pa.RecordBatch] = []
        self._widths: list[float] = []
        """Bytes of a row of each that is held, noted once: to add up buffers again and again takes seconds."""
        self._ended = False

    def fill(self) -> None:
        """Hold rows of at least two keys, or all that are left."""
        while not self._ended and not self._is_full():
            batch = next(self._batches, None)
            if batch is None:
                self._ended = True
            elif (rows := self._inside(batch)).num_rows:
                self._held.append(rows)
                self._widths.append(rows.get_total_buffer_size() / rows.num_rows)

    def _is_full(self) -> bool:
        rows = sum(b.num_rows for b in self._held)
        size = sum(b.num_rows * width for b, width in zip(self._held, self._widths, strict=True))
        enough = rows >= PART_ROWS or size >= self._part_bytes
        return enough and KeyColumns(self._held[0], self._names)[0] < self._last()

    def _inside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not batch.num_rows:
            return batch
        keys = KeyColumns(batch, self._names)
        first, end = 0, len(keys)
        if self._within.low is not None and not self._held and keys[0] < self._within.low:
            first = keys.first_from(self._within.low)
        if self._within.high is not None and keys[len(keys) - 1] >= self._within.high:
            end = keys.first_from(self._within.high)
            self._ended = True
        return batch.slice(first, max(end - first, 0))

    def _last(self) -> Key:
        last = self._held[-1]
        return KeyColumns(last, self._names)[last.num_rows - 1]

    @property
    def open_from(self) -> Key | None:
        """The key from which on rows are not held yet; None where all that are left are held."""
        return None if self._ended else self._last()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self._ended and not self._held

    def take_below(self, key: Key | None) -> list[pa.RecordBatch]:
        """Take the held rows whose keys come before this one, None: all."""
        taken: list[pa.RecordBatch] = []
        while self._held:
            batch = self._held[0]
            keys = KeyColumns(batch, self._names)
            count = len(keys) if key is None or keys[len(keys) - 1] < key else keys.first_from(key)
            if count:
                taken.append(batch.slice(0, count))
            if count < len(keys):
                self._held[0] = batch.slice(count)
                break
            self._held.pop(0)
            self._widths.pop(0)
        return taken


def groups_where(metadata: pq.FileMetaData, column: str, meets: Callable[[Any, Any], bool]) -> Iterator[int]:
    """Yield the row groups whose least and largest value of a column do it, and those of which they are not known."""
    for number, told in enumerate(statistics(metadata, column)):
        if told is None or not told.has_min_max or meets(told.min, told.max):
            yield number


def statistics(metadata: pq.FileMetaData, column: str) -> Iterator[pq.Statistics | None]:
    """Yield what a footer says of a column, row group by row group; None where it says nothing, or has no such one."""
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    # Not asked of the footer's schema: that and the footer hold each other then, until Python looks for cycles.
    paths = [groups[0].column(n).path_in_schema for n in range(metadata.num_columns)] if groups else []
    place = paths.index(column) if column in paths else None
    for group in groups:
        chunk = None if place is None else group.column(place)
        yield chunk.statistics if chunk is not None and chunk.is_stats_set else None


def key_batches(filesystem: fs.FileSystem, path: str, keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield a file's keys, many at a time."""
    with open_parquet(path, filesystem=filesystem, buffer_size=1 << 20) as file:
        yield from file.iter_batches(batch_size=PART_ROWS, columns=list(keys), use_threads=False)


def spread(batches: Iterator[pa.RecordBatch], keys: Sequence[str], bounds: Sequence[Key]) -> dict[int, int]:
    """Count the rows of each range that has some: 0 is before the first bound, n from the nth one on."""
    counts: dict[int, int] = {}
    for batch in batches:
        found, row = KeyColumns(batch, keys), 0
        while row < len(found):
            place = bisect_right(bounds, found[row])
            ends = place == len(bounds) or found[len(found) - 1] < bounds[place]
            end = len(found) if ends else found.first_from(bounds[place])
            counts[place] = counts.get(place, 0) + end - row
            row = end
    return counts


def sampled(batches: Iterator[pa.RecordBatch], keys: Sequence[str], within: KeyRange, every: int) -> Iterator[Key]:
    """Yield every so manyth key of a range."""
    skipped = 0
    for batch in batches:
        found = KeyColumns(batch, keys)
        first = 0 if within.low is None else found.first_from(within.low)
        end = len(found) if within.high is None else found.first_from(within.high)
        yield from (found[row] for row in range(first + (-skipped) % every, end, every))
        skipped += max(end - first, 0)
        if end < len(found):
            return
