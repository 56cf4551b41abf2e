"""Single pages of a long file, for whoever wants few of its rows: Arrow reads a column's row group from its start.

*Page footers* lie beside such a file, hidden from engines: for each of some columns a Parquet footer of its own, whose
row groups are the column's pages. Arrow reads the file itself by them. They are made of the file's own footer and page
index. Pages that mean nothing without their row group's dictionary stay together.
"""

from __future__ import annotations

import struct as bytes_of
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.io.parquet.rows import open_parquet
from schemasync.io.parquet.structs import (
    ColumnChunk,
    ColumnIndex,
    ColumnMetaData,
    FileMetaData,
    OffsetIndex,
    RowGroup,
    SchemaElement,
    Statistics,
    as_file,
    footer_of,
    parse,
)

LONG_ROWS: Final = 262_144
"""A file of more rows than these has page footers; of others whoever looks for few rows reads little anyway."""


def is_long(rows: int) -> bool:
    """Tell whether a file of so many rows has page footers."""
    return rows > LONG_ROWS


def write_page_footers(filesystem: fs.FileSystem, path: str, columns: Sequence[str]) -> None:
    """Write the page footers of a file that has a page index, for those of its columns that are no structs.

    Raises:
        OSError: the file cannot be read, or its page footers cannot be written.
    """
    try:
        with filesystem.open_input_file(path) as source:
            file = _File(source)
        footers = {name: footer for name in columns if (footer := file.footer(name)) is not None}
    except (ValueError, bytes_of.error) as error:
        raise OSError(f"{path}: its footer does not read back: {error}") from error
    if footers:
        table = pa.table({name: pa.array([footer], pa.binary()) for name, footer in footers.items()})
        with filesystem.open_output_stream(_beside(path)) as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def page_footers(
    filesystem: fs.FileSystem, path: str, columns: Sequence[str], rows: int
) -> Mapping[str, pq.FileMetaData] | None:
    """Return the page footers of a file that has so many rows, by column; None where there are not all of them.

    Raises:
        OSError: they cannot be read.
    """
    if not is_long(rows):
        return None
    try:
        with filesystem.open_input_file(_beside(path)) as source, pa.ipc.open_file(source) as reader:
            table = reader.read_all()
        if table.num_rows != 1 or not set(columns) <= set(table.column_names):
            return None
        found = {name: pq.read_metadata(pa.BufferReader(table.column(name)[0].as_buffer())) for name in columns}
    except (FileNotFoundError, pa.ArrowInvalid):
        # What somebody spoiled is not needed: row groups tell the same.
        return None
    return found if all(metadata.num_rows == rows for metadata in found.values()) else None


def _beside(path: str) -> str:
    directory, _, name = path.rpartition("/")
    return f"{directory}/_{name}.pages"


class _File:
    """A Parquet file's footer and page indexes, read at once: these lie right before the footer."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._footer, end = footer_of(source)
        self._groups = [group for group in self._footer.row_groups if group.num_rows]
        chunks = [chunk for group in self._groups for chunk in group.columns]
        offsets = [chunk.column_index_offset or end for chunk in chunks]
        self._start = min([*offsets, *(chunk.offset_index_offset or end for chunk in chunks), end])
        self._indexes: bytes = source.read_at(end - self._start, self._start)

    def footer(self, column: str) -> bytes | None:
        """Return a footer for one column alone; None where it has none, or its pages are not told.

        Raises:
            ValueError: an index is no such struct.
        """
        paths = [chunk.meta_data.path_in_schema for chunk in self._groups[0].columns] if self._groups else []
        if [column] not in paths:
            return None
        place = paths.index([column])
        pieces: list[Any] = []
        for group in self._groups:
            found = self._pieces(group.columns[place], group.num_rows)
            if found is None:
                return None
            pieces += found
        root, *elements = self._footer.schema
        leaves = [element for element in elements if element.num_children is None]
        orders = self._footer.column_orders
        return as_file(
            FileMetaData(
                version=self._footer.version,
                schema=[SchemaElement(name=root.name, num_children=1), leaves[place]],
                num_rows=sum(piece.num_rows for piece in pieces),
                row_groups=pieces,
                created_by=self._footer.created_by,
                column_orders=orders and orders[place : place + 1],
            )
        )

    def _pieces(self, chunk: Any, rows: int) -> list[Any] | None:
        """Return a row group for each page of a column of one, or one for all of them."""
        whole = chunk.meta_data
        if whole.dictionary_page_offset is not None:
            return [_group(whole, rows)]
        if chunk.offset_index_offset is None or chunk.column_index_offset is None:
            return None
        locations = self._index(OffsetIndex, chunk.offset_index_offset, chunk.offset_index_length).page_locations
        told = self._index(ColumnIndex, chunk.column_index_offset, chunk.column_index_length)
        ends = pairwise([*(location.first_row_index for location in locations), rows])
        return [
            _group(
                ColumnMetaData(
                    type=whole.type,
                    encodings=whole.encodings,
                    path_in_schema=whole.path_in_schema,
                    codec=whole.codec,
                    num_values=end - start,
                    total_uncompressed_size=location.compressed_page_size,
                    total_compressed_size=location.compressed_page_size,
                    data_page_offset=location.offset,
                    statistics=None if empty else Statistics(min_value=least, max_value=most),
                ),
                end - start,
            )
            for location, (start, end), empty, least, most in zip(
                locations, ends, told.null_pages, told.min_values, told.max_values, strict=True
            )
        ]

    def _index(self, struct: Any, offset: int, length: int) -> Any:
        return parse(struct, self._indexes[offset - self._start :][:length])


def _group(column: Any, rows: int) -> Any:
    chunk = ColumnChunk(file_offset=0, meta_data=column)
    return RowGroup(columns=[chunk], total_byte_size=column.total_uncompressed_size, num_rows=rows)


class Pages:
    """Values of one column, read page by page."""

    def __init__(self, source: pa.NativeFile, footer: pq.FileMetaData) -> None:
        """Read a file's pages as its page footer for the column says."""
        column = footer.row_group(0).column(0)
        # Each text once, and a number for each row.
        coded = [column.path_in_schema] if column.has_dictionary_page and column.physical_type == "BYTE_ARRAY" else None
        self._file = open_parquet(source, metadata=footer, read_dictionary=coded)
        self.starts = list(accumulate((footer.row_group(n).num_rows for n in range(footer.num_row_groups)), initial=0))
        """The first row of each page, and the number of all rows."""
        self._last: tuple[int, pa.Array] | None = None

    @property
    def field(self) -> pa.Field:
        """The column."""
        found = self._file.schema_arrow.field(0)
        return found.with_type(found.type.value_type) if pa.types.is_dictionary(found.type) else found

    def page(self, number: int) -> pa.Array:
        """Return all values of a page, texts as Arrow's dictionaries where they have one; the last one is kept."""
        if self._last is None or self._last[0] != number:
            self._last = number, self._file.read_row_group(number, use_threads=False).column(0).combine_chunks()
        return self._last[1]

    def take(self, rows: Sequence[int]) -> pa.Array:
        """Return the values of some rows of the file, whose numbers ascend."""
        return pa.concat_arrays([pa.array([], self.field.type), *self._taken(rows)])

    def _taken(self, rows: Sequence[int]) -> Iterator[pa.Array]:
        for number, some in groupby(rows, lambda row: bisect_right(self.starts, row) - 1):
            found = self.page(number).take(pa.array([row - self.starts[number] for row in some], pa.int64()))
            yield found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
