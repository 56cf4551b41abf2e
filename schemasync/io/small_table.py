"""A few rows as one Parquet file in memory, for tables that are written whole.

Called by the use cases, which hand the bytes to the lake: so the file is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.core.types import Primitive

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_TYPES: Final = {Primitive.INT: pa.int32(), Primitive.STRING: pa.string(), Primitive.TIMESTAMP: _INSTANT}
"""What such tables consist of."""


def parquet_bytes(columns: Sequence[tuple[str, Primitive]], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a Parquet file of these columns (INT, STRING, TIMESTAMP) and rows; instants are given in ms since 1970."""
    arrays = [_array(type_, [row[n] for row in rows]) for n, (_, type_) in enumerate(columns)]
    stream = pa.BufferOutputStream()
    table = pa.table(dict(zip([name for name, _ in columns], arrays, strict=True)))
    pq.write_table(table, stream, compression="snappy", store_schema=False)
    return bytes(stream.getvalue().to_pybytes())


def _array(type_: Primitive, values: Sequence[Any]) -> pa.Array:
    if type_ is Primitive.TIMESTAMP:
        return pa.array(values, pa.timestamp("ms", tz="UTC")).cast(_INSTANT)
    return pa.array(values, _TYPES[type_])
