"""How files of ours are written with Arrow: encodings and pages, chosen by the first rows."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.in_place import INT64_DIGITS
from schemasync.io.parquet.newest import counted

PAGE_BYTES: Final = 128 * 1024
"""Who merges files holds a page of every column of each; by themselves Arrow and Spark make them of 1 MB."""
_PAGE_ROWS: Final = 20_000
"""Whoever looks for a key reads a page's rows of all columns, and 128 KB of packed keys may be a whole row group."""
_BATCH_ROWS: Final = 1024
_SAMPLE: Final = 2_500
_REPEATING: Final = 0.97
"""A column whose distinct values are at most this share of a sample is written with a dictionary: about what has a
sixth as many values as a row group has rows. Arrow would begin every column with one and keep what it wrote of it,
which makes files of mostly distinct values larger than Spark's."""

_PACKED: Final = "DELTA_BINARY_PACKED"
"""Differences of neighbours, in as many bits as those of 32 rows need. Keys in order, times and positions are a half to
a thousandth of what they are as numbers by snappy, read four to eight times as fast and written two to three times as
fast; numbers without any order are no larger. Spark reads it since 3.3 (SPARK-36879), and so do Hive 4 and Trino."""


def open_writer(filesystem: fs.FileSystem, path: str, first: pa.Table, memory: int) -> pq.ParquetWriter:
    """Open a writer of tables like ``first``, into which that has yet to be written.

    ``memory`` is about how many bytes a look at it may take.

    Raises:
        OSError: the file cannot be made.
    """
    row_bytes = first.nbytes // max(first.num_rows, 1) + 1
    repeating = [name for name in first.schema.names if _repeats(first.column(name), memory // 16)]
    return pq.ParquetWriter(
        path,
        first.schema,
        filesystem=filesystem,
        compression="snappy",
        store_schema=False,
        # Of up to 18 digits, as Spark writes them: Arrow reads bytes in four times the time.
        store_decimal_as_integer=True,
        use_dictionary=repeating,
        column_encoding={f.name: _PACKED for f in first.schema if f.name not in repeating and _may_be_packed(f)},
        write_page_index=True,
        data_page_size=PAGE_BYTES,
        max_rows_per_page=_PAGE_ROWS,
        # Whether a page is full is asked after each batch only.
        write_batch_size=min(PAGE_BYTES // row_bytes + 1, _BATCH_ROWS),
    )


def _may_be_packed(field: pa.Field) -> bool:
    # An encoding is chosen by the path of a column, and "a.b" may also be a field of a struct.
    return "." not in field.name and _is_stored_whole(field.type)


def _is_stored_whole(type_: pa.DataType) -> bool:
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= INT64_DIGITS)
    whole = pa.types.is_int32(type_) or pa.types.is_int64(type_)
    return bool(whole or pa.types.is_date32(type_) or pa.types.is_timestamp(type_))


def _repeats(values: pa.ChunkedArray, most_bytes: int) -> bool:
    if pa.types.is_nested(values.type):
        return True
    # Spread over all rows: neighbours in the order of the key are alike more often than others.
    step = max(len(values) // _SAMPLE, values.nbytes // (most_bytes + 1), 1)
    sample = values if step == 1 else _every(step, values)
    return bool(pc.count_distinct(sample).as_py() <= _REPEATING * (len(sample) - sample.null_count))


def _every(step: int, values: pa.ChunkedArray) -> pa.ChunkedArray:
    # Chunk by chunk: Arrow would make one of all of them to take from.
    places = (pc.multiply(counted(-(-len(chunk) // step)), step) for chunk in values.chunks)
    return pa.chunked_array([c.take(p) for c, p in zip(values.chunks, places, strict=False)], values.type)
