"""How many rows of a Parquet file are decoded at once, so that these take about so many bytes.

A footer says what values take in the file; nulls, runs and entries of dictionaries take next to nothing there. So it is
asked for the most rows only: the first batch is small, and each one after it is as large as what the last one took
allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

BATCH_ROWS: Final = 65_536
"""Events that are decoded at once, unless they are too wide for that."""
BATCH_SHARE: Final = 32
"""This part of the memory holds a batch: it is there as it was read, as it is shown, and as what is kept of it, and
the next one is read meanwhile."""

_WIDE: Final = 16 * 1024
"""Bytes that a row may well have where there is a text in the file that is longer than the footer tells."""
_NARROW: Final = 512
_FEW: Final = 4096
"""The same where nothing shows that, and the most rows of a first batch then: a small file is one batch."""
_GROWTH: Final = 16
"""A batch has at most so many times the rows of the one before it: rows may become wider on the way."""

_LEAST_READ: Final = 16 * 1024
_LARGEST_READ: Final = 1024 * 1024
"""Bytes of a column that are read at once."""

_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_OFFSET_BYTES: Final = 4
_DECIMAL_BYTES: Final = 16
_HEADER_BYTES: Final = 1024
_LONG_TEXT: Final = 4096
"""Arrow writes no statistics of texts that are longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """How a file is read, about ``share`` bytes at once: rows of the ``first`` batch, and the ``most`` of any."""

    first: int
    most: int
    share: int

    def of(self, file: pq.ParquetFile, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield batches of a file; ``options`` are those of its ``iter_batches``."""
        rows = self.first
        for batch in file.iter_batches(rows, **options):
            width = batch.nbytes // max(batch.num_rows, 1) + 1
            rows = max(min(self.share // width, self.most, rows * _GROWTH), 1)
            # Who iterates already asks for it before each batch (Arrow 26.0.1).
            file.reader.set_batch_size(rows)
            yield batch


def batches(metadata: pq.FileMetaData, share: int, most: int) -> Batches:
    """Say how many rows of a file are to be decoded at once; at least one, at ``most`` so many."""
    groups = [_told(metadata.row_group(n)) for n in range(metadata.num_row_groups)]
    rows = int(min(max(share // (max((group.width for group in groups), default=0) + 1), 1), most))
    first = min(share // _NARROW, _FEW) if all(group.is_sure for group in groups) else share // _WIDE
    return Batches(first=min(max(first, 1), rows), most=rows, share=share)


class _Told(NamedTuple):
    """About how many bytes Arrow has for a row, or for a column; whether nothing shows that these must be more."""

    width: int
    is_sure: bool


def _told(group: pq.RowGroupMetaData) -> _Told:
    columns = [_decoded(group.column(n)) for n in range(group.num_columns)]
    decoded = max(group.total_byte_size, sum(column.width for column in columns))
    return _Told(decoded // max(group.num_rows, 1), all(column.is_sure for column in columns))


def _decoded(column: pq.ColumnChunkMetaData) -> _Told:
    stored, values = column.total_uncompressed_size, column.num_values
    if column.physical_type in _WIDTHS:
        return _Told(max(stored, values * _WIDTHS[column.physical_type]), True)
    told = column.statistics
    # The longer one of the least and the largest stands for all.
    length = max(len(told.min_raw), len(told.max_raw)) if told is not None and told.has_min_max else None
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return _Told(max(stored, values * max(length or 0, _DECIMAL_BYTES)), True)
    if not any(encoding.endswith("DICTIONARY") for encoding in column.encodings):
        return _Told(stored + values * _OFFSET_BYTES, True)
    if length is None:
        length = 0 if told is not None and not told.num_values else min(stored, _LONG_TEXT)
    # All values as long as that, none of them twice, each with its place in the dictionary, would be less.
    is_sure = stored <= values * (length + 2 * _OFFSET_BYTES) + _HEADER_BYTES
    return _Told(max(stored, values * (length + _OFFSET_BYTES)), is_sure)


def buffer_size(metadata: pq.FileMetaData, share: int) -> int:
    """Return how many bytes of a column are read at once; by itself Arrow reads all that a row group has."""
    return int(min(max(share // max(metadata.num_columns, 1), _LEAST_READ), _LARGEST_READ))
