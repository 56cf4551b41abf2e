"""Small tables as Parquet bytes: what is handed in reads back, with the types that every engine knows."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.core.history_table import COLUMNS
from schemasync.core.types import Primitive
from schemasync.io.small_table import parquet_bytes

ALL = (("n", Primitive.INT), ("at", Primitive.TIMESTAMP), ("s", Primitive.STRING))


def read(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def test_rows_read_back_nulls_and_milliseconds_included() -> None:
    found = read(parquet_bytes(ALL, [(1, 1_790_000_000_007, "ä"), (None, None, None)]))
    assert found.to_pylist() == [
        {"n": 1, "at": datetime(2026, 9, 21, 14, 13, 20, 7000, tzinfo=UTC), "s": "ä"},
        {"n": None, "at": None, "s": None},
    ]


def test_instants_are_written_as_the_landed_ones_are() -> None:
    found = read(parquet_bytes(ALL, []))
    assert (found.num_rows, found.schema.types) == (0, [pa.int32(), pa.timestamp("us", tz="UTC"), pa.string()])


def test_all_columns_of_the_history_table_can_be_written() -> None:
    columns = [(name, type_) for name, type_, _ in COLUMNS]
    assert read(parquet_bytes(columns, [[None] * len(columns)])).column_names == [name for name, _ in columns]
