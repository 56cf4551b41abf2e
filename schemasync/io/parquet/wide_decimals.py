"""Footers of files with decimals of more digits than Arrow has, which refuses these files: PostgreSQL's numeric(78,0).

Called wherever a landed file is opened; without it one such column would stop its table.
"""

from __future__ import annotations

import struct as bytes_of
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.io.parquet.structs import FileMetaData, dump, parse

MOST: Final = 76
"""Digits of Arrow's widest decimal."""
_DECIMAL: Final = 5
"""The older annotation's number of decimals."""
_MAGIC: Final = b"PAR1"
_TAIL: Final = 8
"""Bytes after a footer: its length, and what every Parquet file ends with."""


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
    data = dump(footer)
    return pq.read_metadata(pa.BufferReader(b"".join((_MAGIC, data, bytes_of.pack("<I", len(data)), _MAGIC))))


def _understood(source: pa.NativeFile) -> Any:
    size = source.size()
    (length,) = bytes_of.unpack("<I", source.read_at(_TAIL, size - _TAIL)[:4])
    try:
        return parse(FileMetaData, source.read_at(length, size - _TAIL - length))
    except ValueError:
        return None


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
