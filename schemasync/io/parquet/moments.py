"""Moments (`schemasync.core.moments`) of columns, and as Parquet's statistics tell them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemasync.core.moments import NEVER, Moment


def as_moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an ordering column's values as moments, nulls as they are."""
    if pa.types.is_string(column.type):
        return column
    return (column.cast(pa.int32()) if pa.types.is_date(column.type) else column).cast(pa.int64())


def without_nulls(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put the least moment in the place of nulls."""
    return pc.fill_null(moments, "" if pa.types.is_string(moments.type) else NEVER)


def extent(told: pq.Statistics | None) -> tuple[Moment, Moment] | None:
    """Return the least and the largest moment of a row group, or of a page; None where it does not tell."""
    if told is None or not told.has_null_count:
        return None
    never: Moment = "" if told.physical_type == "BYTE_ARRAY" else NEVER
    if not told.num_values:
        return never, never
    if not told.has_min_max:
        return None
    # As they are stored: dates and times may lie beyond Python's years.
    low, high = _moment(told.min_raw), _moment(told.max_raw)
    if low is None or high is None:
        return None
    return never if told.null_count else low, high


def _moment(stored: Any) -> Moment | None:
    if isinstance(stored, bytes):
        try:
            return stored.decode()
        except UnicodeDecodeError:
            return None
    return stored if isinstance(stored, int) else None
