"""Single pages of a long file, for whoever wants few of its rows: Arrow reads a column's row group from its start.

*Page footers* lie beside such a file, hidden from engines: for each of some columns a Parquet footer of its own, whose
row groups are the column's pages. Arrow reads the file itself by them. They are made of the file's own footer and page
index (parquet.thrift of apache/parquet-format says which field is which). Pages that mean nothing without their row
group's dictionary stay together.
"""

from __future__ import annotations

import struct as bytes_of
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.io.parquet.structs import Fields, binary, dump, i32, i64, parse, struct, structs

_MAGIC: Final = b"PAR1"
_TAIL: Final = 8
"""Bytes behind a footer: its length, and the magic number."""


def write_page_footers(filesystem: fs.FileSystem, path: str, columns: Sequence[str]) -> None:
    """Write the page footers of a file that has a page index, for those of its columns that are no structs.

    Raises:
        OSError: the file cannot be read, or its page footers cannot be written.
    """
    with filesystem.open_input_file(path) as source:
        file = _File(source)
        footers = {name: footer for name in columns if (footer := file.footer(name)) is not None}
    table = pa.table({name: pa.array([footer], pa.binary()) for name, footer in footers.items()})
    with filesystem.open_output_stream(_beside(path)) as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def page_footers(
    filesystem: fs.FileSystem, path: str, columns: Sequence[str], rows: int
) -> Mapping[str, pq.FileMetaData] | None:
    """Return the page footers of a file that has so many rows, by column; None where there are not all of them.

    Raises:
        OSError: they cannot be read.
        pa.ArrowException: the same.
    """
    try:
        with filesystem.open_input_file(_beside(path)) as source, pa.ipc.open_file(source) as reader:
            table = reader.read_all()
    except FileNotFoundError:
        return None
    if not set(columns) <= set(table.column_names):
        return None
    found = {name: pq.read_metadata(pa.BufferReader(table.column(name)[0].as_buffer())) for name in columns}
    return found if all(metadata.num_rows == rows for metadata in found.values()) else None


def _beside(path: str) -> str:
    directory, _, name = path.rpartition("/")
    return f"{directory}/_{name}.pages"


class _File:
    """A Parquet file's footer, taken apart."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        size = source.size()
        (length,) = bytes_of.unpack("<I", source.read_at(_TAIL, size - _TAIL)[:4])
        self._footer = parse(source.read_at(length, size - _TAIL - length))
        root, *elements = self._footer[2].value.items
        self._root: Fields = root
        self._leaves: list[Fields] = [element for element in elements if 5 not in element]

    def footer(self, column: str) -> bytes | None:
        """Return a footer for one column alone; None where it has none, or its pages are not told."""
        groups = [group for group in self._footer[4].value.items if group[3].value]
        paths = [_path(chunk) for chunk in groups[0][1].value.items] if groups else []
        if [column] not in paths:
            return None
        place = paths.index([column])
        pieces: list[Fields] = []
        for group in groups:
            found = self._pieces(group[1].value.items[place], group[3].value)
            if found is None:
                return None
            pieces += found
        footer = {
            1: self._footer[1],
            2: structs([{**self._root, 5: i32(1)}, self._leaves[place]]),
            3: i64(sum(piece[3].value for piece in pieces)),
            4: structs(pieces),
            6: self._footer[6],
        }
        if 7 in self._footer:
            footer[7] = structs([self._footer[7].value.items[place]])
        data = dump(footer)
        return b"".join((_MAGIC, data, bytes_of.pack("<I", len(data)), _MAGIC))

    def _pieces(self, chunk: Fields, rows: int) -> list[Fields] | None:
        """Return a row group for each page of a column of one, or one for all of them."""
        whole: Fields = chunk[3].value
        if 11 in whole:
            return [_group(whole, rows)]
        if not {4, 6} <= set(chunk):
            return None
        locations = self._struct(chunk[4].value, chunk[5].value)[1].value.items
        told = self._struct(chunk[6].value, chunk[7].value)
        ends = pairwise([*(location[3].value for location in locations), rows])
        return [
            _group(
                {
                    **{number: field for number, field in whole.items() if number in {1, 2, 3, 4}},
                    5: i64(end - start),
                    6: i64(location[2].value),
                    7: i64(location[2].value),
                    9: i64(location[1].value),
                    **({} if empty else {12: struct({5: binary(most), 6: binary(least)})}),
                },
                end - start,
            )
            for location, (start, end), empty, least, most in zip(
                locations, ends, *(told[number].value.items for number in (1, 2, 3)), strict=True
            )
        ]

    def _struct(self, offset: int, length: int) -> Fields:
        return parse(self._source.read_at(length, offset))


def _path(chunk: Fields) -> list[str]:
    return [part.decode() for part in chunk[3].value[3].value.items]


def _group(column: Fields, rows: int) -> Fields:
    return {1: structs([{2: i64(0), 3: struct(column)}]), 2: column[6], 3: i64(rows)}


class Pages:
    """Values of one column, read page by page."""

    def __init__(self, source: pa.NativeFile, footer: pq.FileMetaData) -> None:
        """Read a file's pages as its page footer for the column says."""
        self._file = pq.ParquetFile(source, metadata=footer, pre_buffer=False)
        self.starts = list(accumulate((footer.row_group(n).num_rows for n in range(footer.num_row_groups)), initial=0))
        """The first row of each page, and the number of all rows."""
        self._last: tuple[int, pa.Array] | None = None

    @property
    def field(self) -> pa.Field:
        """The column."""
        return self._file.schema_arrow.field(0)

    def page(self, number: int) -> pa.Array:
        """Return all values of a page; the last one that was asked for is kept."""
        if self._last is None or self._last[0] != number:
            self._last = number, self._file.read_row_group(number, use_threads=False).column(0).combine_chunks()
        return self._last[1]

    def take(self, rows: Sequence[int]) -> pa.Array:
        """Return the values of some rows of the file, whose numbers ascend."""
        return pa.concat_arrays([pa.array([], self.field.type), *self._taken(rows)])

    def _taken(self, rows: Sequence[int]) -> Iterator[pa.Array]:
        for number, some in groupby(rows, lambda row: bisect_right(self.starts, row) - 1):
            yield self.page(number).take(pa.array([row - self.starts[number] for row in some], pa.int64()))
