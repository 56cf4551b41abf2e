"""Footers of files with decimals of more digits than Arrow has, which refuses these files: PostgreSQL's numeric(78,0).

Called wherever a landed file is opened; without it one such column would stop its table.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.io.parquet.structs import as_file, footer_of

MOST: Final = 76
"""Digits of Arrow's widest decimal."""
_DECIMAL: Final = 5
"""The older annotation's number of decimals."""


def read_footer(source: pa.NativeFile, *, as_bytes: bool) -> pq.FileMetaData:
    """Read a file's footer; decimals of more than `MOST` digits are the bytes that they are written as in it.

    Unless ``as_bytes`` they are decimals of `MOST` digits: good for types, not for values, of which some are longer.

    Raises:
        ArrowInvalid: it has none that Arrow understands.
        OSError: it cannot be read.
    """
    try:
        return pq.read_metadata(source)
    except pa.ArrowInvalid as error:
        if "precision" not in str(error):
            raise
        footer = _understood(source)
        if footer is None:
            raise
    _narrow(footer, as_bytes=as_bytes)
    return pq.read_metadata(pa.BufferReader(as_file(footer)))


def _understood(source: pa.NativeFile) -> Any:
    try:
        footer, _ = footer_of(source)
    except ValueError:
        return None
    return footer


def _narrow(footer: Any, *, as_bytes: bool) -> None:
    for element in footer.schema:
        precision, scale = _digits(element)
        if precision <= MOST:
            continue
        element.converted_type = element.precision = element.scale = element.logicalType = None
        if not as_bytes and scale <= MOST:
            element.converted_type, element.precision, element.scale = _DECIMAL, MOST, scale


def _digits(element: Any) -> tuple[int, int]:
    """Return a decimal's precision and scale as either annotation says them; zeros of anything else."""
    logical = element.logicalType and element.logicalType.DECIMAL
    said = logical or element
    return said.precision or 0, said.scale or 0
