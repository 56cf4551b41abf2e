"""How files of ours are written with Arrow: encodings, codecs and pages, chosen by the first rows.

Whole numbers are written as they are, never packed (`schemasync.core.in_place.PACKED`): a quarter less, and misread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.locations import needs_directories
from schemasync.io.parquet.newest import counted

PAGE_BYTES: Final = 128 * 1024
"""Who merges files holds a page of every column of each; by themselves Arrow and Spark make them of 1 MB."""
_PAGE_ROWS: Final = 20_000
"""Whoever looks for a key reads a page's rows of all columns, and what is in a dictionary takes few bits."""
_BATCH_ROWS: Final = 1024
_SAMPLE: Final = 2_500
_REPEATING: Final = 0.97
"""A column whose distinct values are at most this share of a sample is written with a dictionary: about what has a
sixth as many values as a row group has rows. Arrow would begin every column with one and keep what it wrote of it,
which makes files of mostly distinct values larger than Spark's."""

_DENSE: Final = 7 / 8
"""A text of which snappy leaves more than this part is not compressed: uuids, digests, tokens."""
_LEAST_JUDGED: Final = 8 * 1024
"""Bytes of text by which that is seen."""
_PLACES: Final = 5
"""A sample has neighbours, since what keys in order have in common is what snappy finds, from so many places."""
_BY_LENGTH: Final = "DELTA_LENGTH_BYTE_ARRAY"
"""All lengths, packed, then all bytes. A million uuids in order take 36.1 MB, read in 28 ms and written in 71 ms; by
snappy 33.3 MB, 70 ms and 160 ms. Spark adds up their lengths in three quarters of the time."""
_WIDE: Final = 12
"""Keys that are whole numbers are not compressed in rows of at least so many times their bytes: what snappy finds in
them, about half, is 4 % of such a file. Arrow reads them in a twelfth of the time then, who looks for keys first."""

_FLOATING: Final = ("FLOAT", "DOUBLE")


def make_directory(filesystem: fs.FileSystem, path: str) -> None:
    """Make a directory for files, where it has to be there.

    Raises:
        OSError: it cannot be made.
    """
    if needs_directories(filesystem.type_name):
        filesystem.create_dir(path, recursive=True)


def open_writer(
    filesystem: fs.FileSystem, path: str, first: pa.Table, memory: int, *, keys: Sequence[str] = ()
) -> pq.ParquetWriter:
    """Open a writer of tables like ``first``, into which that has yet to be written.

    ``memory`` is about how many bytes a look at it may take; ``keys`` are the columns by which rows are looked for.

    Raises:
        OSError: the file cannot be made.
    """
    row_bytes = first.nbytes // max(first.num_rows, 1) + 1
    repeating = [name for name in first.schema.names if _repeats(first.column(name), memory // 16)]
    # An encoding is chosen by the path of a column, and "a.b" may also be a field of a struct.
    others = [field for field in first.schema if field.name not in repeating and "." not in field.name]
    dense = [f.name for f in others if _is_text(f.type) and _is_dense(first.column(f.name), memory // 16 // row_bytes)]
    numbers = [f for f in others if f.name in keys and pa.types.is_integer(f.type)]
    narrow = [f.name for f in numbers if row_bytes >= _WIDE * f.type.bit_width // 8]
    plain, paths = {*dense, *narrow}, _paths(first.schema)
    # Arrow leaves NaN out of what it says of a column, and engines to whom it is the largest number pass over it.
    floating = {path for path, kind in paths.items() if kind in _FLOATING}
    return pq.ParquetWriter(
        path,
        first.schema,
        filesystem=filesystem,
        compression={path: "none" if path in plain else "snappy" for path in paths} if plain else "snappy",
        write_statistics=[path for path in paths if path not in floating] if floating else True,
        store_schema=False,
        # Of up to 18 digits, as Spark writes them: Arrow reads bytes in four times the time.
        store_decimal_as_integer=True,
        use_dictionary=repeating,
        column_encoding=dict.fromkeys(dense, _BY_LENGTH),
        write_page_index=True,
        data_page_size=PAGE_BYTES,
        max_rows_per_page=_PAGE_ROWS,
        # Whether a page is full is asked after each batch only.
        write_batch_size=min(PAGE_BYTES // row_bytes + 1, _BATCH_ROWS),
    )


def _paths(schema: pa.Schema) -> dict[str, str]:
    """Return the columns of a file, of structs those inside, with their physical types."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    # Of a row group: a footer and its schema hold each other until Python looks for cycles.
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    columns = (group.column(n) for n in range(group.num_columns))
    return {column.path_in_schema: column.physical_type for column in columns}


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _is_dense(values: pa.ChunkedArray, most_rows: int) -> bool:
    size = -(-min(_SAMPLE, most_rows, len(values)) // _PLACES)
    places = (values.slice(n * len(values) // _PLACES, size) for n in range(_PLACES))
    texts = pc.drop_null(pa.chunked_array([c for place in places for c in place.chunks], values.type)).cast(pa.binary())
    joined = b"".join(texts.to_pylist())
    return len(joined) >= _LEAST_JUDGED and pa.compress(joined, "snappy").size > _DENSE * len(joined)


def _repeats(values: pa.ChunkedArray, most_bytes: int) -> bool:
    if pa.types.is_nested(values.type):
        # Arrow knows its members by their paths, not by its name.
        return False
    if pa.types.is_floating(values.type):
        # -0.0 equals 0.0; Parquet's Java reader, who looks there for what a query asks for, holds them for two.
        return False
    # Spread over all rows: neighbours in the order of the key are alike more often than others.
    step = max(len(values) // _SAMPLE, values.nbytes // (most_bytes + 1), 1)
    sample = values if step == 1 else _every(step, values)
    return bool(pc.count_distinct(sample).as_py() <= _REPEATING * (len(sample) - sample.null_count))


def _every(step: int, values: pa.ChunkedArray) -> pa.ChunkedArray:
    # Chunk by chunk: Arrow would make one of all of them to take from.
    places = (pc.multiply(counted(-(-len(chunk) // step)), step) for chunk in values.chunks)
    return pa.chunked_array([c.take(p) for c, p in zip(values.chunks, places, strict=False)], values.type)
