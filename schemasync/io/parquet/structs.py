"""Parquet footers and page indexes, as far as pages are told by them, read and written by Thrift.

Numbers and names of fields are those of parquet.thrift in apache/parquet-format; what is not listed is passed over.
"""

from __future__ import annotations

import struct as bytes_of
from typing import Any, Final

import pyarrow as pa
from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

_MAGIC: Final = b"PAR1"
"""What every Parquet file begins and ends with."""
_TAIL: Final = 8
"""Bytes behind a footer: its length, and the magic number."""

_Kind = tuple[int, Any]
"""A type of Thrift's, and what it needs to know beside."""


def _struct(name: str, /, **fields: tuple[int, _Kind]) -> Any:
    """Make a class of structs that have these fields, each with its number; a field that is not given is None."""
    spec: list[Any] = [None] * (max((number for number, _ in fields.values()), default=0) + 1)
    for field, (number, (type_, detail)) in fields.items():
        spec[number] = (number, type_, field, detail, None)

    def init(self: Any, **values: Any) -> None:
        for field in fields:
            setattr(self, field, values.get(field))

    return type(name, (TBase,), {"__init__": init, "thrift_spec": tuple(spec)})


def _of(struct: Any) -> _Kind:
    return TType.STRUCT, [struct, struct.thrift_spec]


def _list(kind: _Kind) -> _Kind:
    return TType.LIST, (*kind, False)


_BOOL: Final[_Kind] = (TType.BOOL, None)
_BYTE: Final[_Kind] = (TType.BYTE, None)
_I32: Final[_Kind] = (TType.I32, None)
_I64: Final[_Kind] = (TType.I64, None)
_BYTES: Final[_Kind] = (TType.STRING, "BINARY")
_TEXT: Final[_Kind] = (TType.STRING, "UTF8")
_EMPTY: Final = _of(_struct("Empty"))

_TimeUnit = _struct("TimeUnit", MILLIS=(1, _EMPTY), MICROS=(2, _EMPTY), NANOS=(3, _EMPTY))
_Time = _struct("TimeType", isAdjustedToUTC=(1, _BOOL), unit=(2, _of(_TimeUnit)))
DecimalType = _struct("DecimalType", scale=(1, _I32), precision=(2, _I32))
LogicalType = _struct(
    "LogicalType",
    STRING=(1, _EMPTY),
    MAP=(2, _EMPTY),
    LIST=(3, _EMPTY),
    ENUM=(4, _EMPTY),
    DECIMAL=(5, _of(DecimalType)),
    DATE=(6, _EMPTY),
    TIME=(7, _of(_Time)),
    TIMESTAMP=(8, _of(_Time)),
    INTEGER=(10, _of(_struct("IntType", bitWidth=(1, _BYTE), isSigned=(2, _BOOL)))),
    UNKNOWN=(11, _EMPTY),
    JSON=(12, _EMPTY),
    BSON=(13, _EMPTY),
    UUID=(14, _EMPTY),
    FLOAT16=(15, _EMPTY),
)
SchemaElement = _struct(
    "SchemaElement",
    type=(1, _I32),
    type_length=(2, _I32),
    repetition_type=(3, _I32),
    name=(4, _TEXT),
    num_children=(5, _I32),
    converted_type=(6, _I32),
    scale=(7, _I32),
    precision=(8, _I32),
    field_id=(9, _I32),
    logicalType=(10, _of(LogicalType)),
)
Statistics = _struct("Statistics", null_count=(3, _I64), max_value=(5, _BYTES), min_value=(6, _BYTES))
ColumnMetaData = _struct(
    "ColumnMetaData",
    type=(1, _I32),
    encodings=(2, _list(_I32)),
    path_in_schema=(3, _list(_TEXT)),
    codec=(4, _I32),
    num_values=(5, _I64),
    total_uncompressed_size=(6, _I64),
    total_compressed_size=(7, _I64),
    data_page_offset=(9, _I64),
    dictionary_page_offset=(11, _I64),
    statistics=(12, _of(Statistics)),
)
ColumnChunk = _struct(
    "ColumnChunk",
    file_offset=(2, _I64),
    meta_data=(3, _of(ColumnMetaData)),
    offset_index_offset=(4, _I64),
    offset_index_length=(5, _I32),
    column_index_offset=(6, _I64),
    column_index_length=(7, _I32),
)
RowGroup = _struct("RowGroup", columns=(1, _list(_of(ColumnChunk))), total_byte_size=(2, _I64), num_rows=(3, _I64))
_KeyValue = _struct("KeyValue", key=(1, _TEXT), value=(2, _BYTES))
_ColumnOrder = _struct("ColumnOrder", TYPE_ORDER=(1, _EMPTY))
FileMetaData = _struct(
    "FileMetaData",
    version=(1, _I32),
    schema=(2, _list(_of(SchemaElement))),
    num_rows=(3, _I64),
    row_groups=(4, _list(_of(RowGroup))),
    key_value_metadata=(5, _list(_of(_KeyValue))),
    created_by=(6, _TEXT),
    column_orders=(7, _list(_of(_ColumnOrder))),
)
_PageLocation = _struct("PageLocation", offset=(1, _I64), compressed_page_size=(2, _I32), first_row_index=(3, _I64))
OffsetIndex = _struct("OffsetIndex", page_locations=(1, _list(_of(_PageLocation))))
ColumnIndex = _struct(
    "ColumnIndex", null_pages=(1, _list(_BOOL)), min_values=(2, _list(_BYTES)), max_values=(3, _list(_BYTES))
)


def parse(struct: Any, data: bytes) -> Any:
    """Read one struct of a class.

    Raises:
        ValueError: the bytes are none.
    """
    found = struct()
    try:
        found.read(TCompactProtocolAccelerated(TMemoryBuffer(data), fallback=True))
    except (TException, EOFError, LookupError, TypeError) as error:
        raise ValueError(f"no {struct.__name__} of Thrift's compact protocol: {error}") from error
    return found


def dump(struct: Any) -> bytes:
    """Write one struct."""
    buffer = TMemoryBuffer()
    struct.write(TCompactProtocolAccelerated(buffer, fallback=True))
    return bytes(buffer.getvalue())


def footer_of(source: pa.NativeFile) -> tuple[Any, int]:
    """Read the footer of a file, and where in the file it begins.

    Raises:
        ValueError, struct.error: it has none.
        OSError: it cannot be read.
    """
    size = source.size()
    (length,) = bytes_of.unpack("<I", source.read_at(_TAIL, size - _TAIL)[:4])
    start = size - _TAIL - length
    return parse(FileMetaData, source.read_at(length, start)), start


def as_file(footer: Any) -> bytes:
    """Write a footer as a file of nothing else."""
    data = dump(footer)
    return b"".join((_MAGIC, data, bytes_of.pack("<I", len(data)), _MAGIC))
