"""Rows of sorted files that have their key in common with some others, found by reading as little as there is to read.

Row groups tell the range of their keys, and so do the pages of long files (`schemasync.io.parquet.pages`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest
from schemasync.core.keys import Key
from schemasync.io.parquet.ahead import side_by_side
from schemasync.io.parquet.batches import BATCH_ROWS, batches, buffer_size
from schemasync.io.parquet.moments import as_moments, extent, without_nulls
from schemasync.io.parquet.pages import Pages, page_footers
from schemasync.io.parquet.rows import open_parquet
from schemasync.io.parquet.sorted_rows import KeyColumns, statistics

SHARE: Final = 40
"""This part of the memory is read at once, and compared at once: there are several copies while that is sorted."""
_STREAMS: Final = 2
"""Threads that read at once."""
_SEARCHED: Final = 4096
"""Up to one suspect in so many rows is searched for among them; where there are more, to compare all takes less.

A page has about so many rows, or some times as many, so these would be most pages.
"""
_PLACE_BYTES: Final = 4
"""What a row takes whose text is in a dictionary, beside that."""
_AT_ONCE: Final = 1024
"""About so many rows that were found are handed over at once."""


def sharing(
    filesystem: fs.FileSystem, paths: Iterable[str], suspects: pa.Table, request: AdmissionRequest, *, most_rows: int
) -> Generator[pa.RecordBatch, None, None] | None:
    """Yield the rows of files that share the first column of their key with a suspect, in no order.

    Left out are row groups that say of themselves that they have no newer one. None where more than ``most_rows`` would
    have to be read, in row groups and pages.

    Raises:
        OSError: a file cannot be read.
        pa.ArrowException: the same.
    """
    newer = _Newer(suspects, request)
    files = _Files(filesystem, (*request.keys, *request.ordering), request.memory // (SHARE * _STREAMS))
    found: list[_InGroups | _InPages] = []
    read = dealt = 0
    for path in paths:
        metadata = pq.read_metadata(path, filesystem=filesystem)
        groups = list(newer.groups(metadata))
        pages = files.pages(path, metadata, newer, groups)
        read += sum(metadata.row_group(group.number).num_rows for group in groups) if pages is None else pages.rows
        if read > most_rows:
            return None
        # In turn across all files: in many there is one row group only, or one page.
        if pages is None:
            found.append(_InGroups(files, path, metadata, newer, _dealt(groups, dealt)))
            dealt += len(groups)
        else:
            found.append(_InPages(files, path, metadata.num_rows, newer.key, _dealt(pages.sought, dealt)))
            dealt += len(pages.sought)

    def stream(number: int) -> Iterator[pa.RecordBatch]:
        for rows in found:
            yield from rows.stream(number)

    return side_by_side([stream(number) for number in range(_STREAMS)])


class _Group(NamedTuple):
    """A row group, and the first suspect that it may have the key of, and the first one after all of these."""

    number: int
    low: int
    reach: int


Part = TypeVar("Part")


def _dealt(parts: Sequence[Part], before: int) -> list[Sequence[Part]]:
    """Deal parts to the streams, which got so many before; those of one follow each other."""
    ends = [(len(parts) * number + before % _STREAMS) // _STREAMS for number in range(_STREAMS + 1)]
    return [parts[start:end] for start, end in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class _Pages:
    """Pages of the key, each with the keys that are looked for in it, and how many rows they have."""

    sought: Sequence[tuple[int, list[Key]]]
    rows: int


@dataclass(frozen=True, slots=True)
class _Files:
    """How files are read: these columns, about so many bytes at once."""

    filesystem: fs.FileSystem
    columns: tuple[str, ...]
    share: int

    def pages(self, path: str, metadata: pq.FileMetaData, newer: _Newer, groups: Sequence[_Group]) -> _Pages | None:
        """Return the pages that may have some of what row groups may have; None where these take no longer to read."""
        sought = sum(group.reach - group.low for group in groups)
        if not 0 < sought <= metadata.num_rows // _SEARCHED + 1:
            return None
        footers = page_footers(self.filesystem, path, self.columns, metadata.num_rows)
        if footers is None or any(self._may_be_large(footer, metadata) for footer in footers.values()):
            return None
        footer = footers[newer.key]
        found = newer.pages(footer, groups)
        # One by one they take twice as long as in a row.
        if found is None or 2 * len(found) > footer.num_row_groups:
            return None
        return _Pages(sorted(found.items()), sum(footer.row_group(page).num_rows for page in found))

    def _may_be_large(self, footer: pq.FileMetaData, metadata: pq.FileMetaData) -> bool:
        """Tell whether texts, whose dictionary leaves a row group in one piece, may be more than is read at once."""
        groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
        if groups[0].column(0).physical_type != "BYTE_ARRAY" or len(groups) > metadata.num_row_groups:
            return False
        sizes = [group.column(0).total_uncompressed_size + _PLACE_BYTES * group.num_rows for group in groups]
        return bool(max(sizes) > self.share)


@dataclass(frozen=True, slots=True)
class _InGroups:
    """Row groups that are read up to their last suspect, each by one stream."""

    files: _Files
    path: str
    metadata: pq.FileMetaData
    newer: _Newer
    shares: Sequence[Sequence[_Group]]

    def stream(self, number: int) -> Iterator[pa.RecordBatch]:
        if not (mine := self.shares[number]):
            return
        columns, share = list(self.files.columns), self.files.share
        size, sizes = buffer_size(self.metadata, share), batches(self.metadata, share, BATCH_ROWS)
        files = self.files
        with open_parquet(self.path, metadata=self.metadata, filesystem=files.filesystem, buffer_size=size) as file:
            for group in mine:
                read = sizes.of(file, row_groups=[group.number], columns=columns, use_threads=False)
                yield from self.newer.sharing((batch.select(columns) for batch in read), group.reach)


@dataclass(frozen=True, slots=True)
class _InPages:
    """Pages that are read one by one, each by one stream; of other columns those that have rows which were found."""

    files: _Files
    path: str
    rows: int
    key: str
    shares: Sequence[Sequence[tuple[int, list[Key]]]]

    def stream(self, number: int) -> Iterator[pa.RecordBatch]:
        if not (mine := self.shares[number]):
            return
        # Read again: thousands of files may be looked at before the first of them is read.
        footers = page_footers(self.files.filesystem, self.path, self.files.columns, self.rows)
        if footers is None:  # pragma: no cover - they were there a moment ago
            raise OSError(f"{self.path}: its page footers were deleted or replaced while they were read")
        with self.files.filesystem.open_input_file(self.path) as source:
            columns = {name: Pages(source, footer) for name, footer in footers.items()}
            schema = pa.schema([columns[name].field for name in self.files.columns])
            for rows in _together(self._rows(columns[self.key], mine)):
                yield pa.record_batch([columns[name].take(rows) for name in schema.names], schema=schema)

    def _rows(self, keys: Pages, mine: Sequence[tuple[int, list[Key]]]) -> Iterator[list[int]]:
        """Yield the numbers of the rows that have such a key, page by page."""
        for page, sought in mine:
            there = KeyColumns(pa.record_batch([keys.page(page)], [self.key]), [self.key])
            yield [keys.starts[page] + row for key in sought for row in there.rows_of(key)]


def _together(parts: Iterable[list[int]]) -> Iterator[list[int]]:
    """Join what is little: threads that hand over each row wait for each other."""
    held: list[int] = []
    for rows in parts:
        held += rows
        if len(held) >= _AT_ONCE:
            yield held
            held = []
    if held:
        yield held


class _Newer:
    """Which rows may be newer than suspects of their key."""

    def __init__(self, suspects: pa.Table, request: AdmissionRequest) -> None:
        self.key = request.keys[0]
        self._first = request.ordering[0]
        self._values = suspects.column(self.key).combine_chunks()
        self._keys = list(KeyColumns(suspects, [self.key]))
        """Ascending."""
        self._moments = without_nulls(as_moments(suspects.column(self._first))).combine_chunks()

    def groups(self, metadata: pq.FileMetaData) -> Iterator[_Group]:
        """Yield the row groups that may have some. What statistics do not tell may be."""
        told = zip(statistics(metadata, self.key), statistics(metadata, self._first), strict=True)
        for number, (keys, moments) in enumerate(told):
            low, reach = self._within(_range(keys))
            if low < reach and self._may_be(low, reach, extent(moments)):
                yield _Group(number, low, reach)

    def _within(self, keys: tuple[Any, Any] | None) -> tuple[int, int]:
        if keys is None or not self._is_alike(keys[0]):
            return 0, len(self._keys)
        return bisect_left(self._keys, keys[:1]), bisect_right(self._keys, keys[1:])

    def _is_alike(self, value: object) -> bool:
        """Tell whether what statistics tell compares with keys: other types they tell as other values than those."""
        return isinstance(value, (int, str)) and bool(self._keys) and isinstance(value, type(self._keys[0][0]))

    def _may_be(self, low: int, reach: int, moments: tuple[Any, Any] | None) -> bool:
        if moments is None:
            return True
        # Compared by Arrow: a text need not be UTF-8.
        return bool(pc.any(pc.less_equal(self._moments.slice(low, reach - low), moments[1])).as_py())

    def pages(self, footer: pq.FileMetaData, groups: Iterable[_Group]) -> Mapping[int, list[Key]] | None:
        """Return the pages that may have keys of these groups' suspects, each with those; None: that is not told."""
        told = [_range(page) for page in statistics(footer, self.key)]
        least = [keys[0] for keys in told if keys is not None and self._is_alike(keys[0])]
        if len(least) < len(told):
            return None
        found: dict[int, list[Key]] = {}
        for key in sorted({key for group in groups for key in self._keys[group.low : group.reach]}):
            # Of a key with more columns rows that share this one may begin in the page before.
            for page in range(max(bisect_left(least, key[0]) - 1, 0), bisect_right(least, key[0])):
                found.setdefault(page, []).append(key)
        return found

    def sharing(self, batches: Iterator[pa.RecordBatch], reach: int) -> Iterator[pa.RecordBatch]:
        """Yield rows that share the first column of their key with one of the first ``reach`` suspects.

        The rows are sorted by key, so those after the last of these are not read.
        """
        for batch in batches:
            keys = KeyColumns(batch, [self.key])
            if batch.column(self.key).type != self._values.type:
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
        return batch.filter(pc.is_in(batch.column(self.key), value_set=self._values))

    @staticmethod
    def _searched(batch: pa.RecordBatch, keys: KeyColumns, sought: Iterable[Key]) -> Iterator[pa.RecordBatch]:
        for key in dict.fromkeys(sought):
            # Copied: a slice holds all of its batch, and there may be one of each.
            yield batch.take(pa.array(keys.rows_of(key), pa.int64()))


def _range(told: pq.Statistics | None) -> tuple[Any, Any] | None:
    return (told.min, told.max) if told is not None and told.has_min_max else None
