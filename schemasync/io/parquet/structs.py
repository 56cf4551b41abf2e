"""Thrift structs of Parquet footers, as they are: what a reader without generated classes can change and write again.

A struct is a mapping of field numbers, which parquet.thrift of apache/parquet-format gives a meaning, to values that
know their type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer


@dataclass(frozen=True, slots=True)
class Value:
    """A field's type, of `TType`, and its value: a plain one, a `Values`, or a `Fields`."""

    type: int
    value: Any


@dataclass(frozen=True, slots=True)
class Values:
    """A list, and the type of its items."""

    type: int
    items: list[Any]


Fields = dict[int, Value]

_PLAIN: Final = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.DOUBLE: "Double",
    TType.STRING: "Binary",
}


def i32(value: int) -> Value:
    """Return a field of 32 bits."""
    return Value(TType.I32, value)


def i64(value: int) -> Value:
    """Return a field of 64 bits."""
    return Value(TType.I64, value)


def binary(value: bytes) -> Value:
    """Return a field of bytes."""
    return Value(TType.STRING, value)


def struct(fields: Fields) -> Value:
    """Return a field that is a struct."""
    return Value(TType.STRUCT, fields)


def structs(items: list[Fields]) -> Value:
    """Return a field that is a list of structs."""
    return Value(TType.LIST, Values(TType.STRUCT, items))


def parse(data: bytes) -> Fields:
    """Read one struct.

    Raises:
        EOFError: the bytes end too early.
        thrift.Thrift.TException: they are no struct.
    """
    return _read_struct(TCompactProtocol(TMemoryBuffer(data)))


def dump(fields: Fields) -> bytes:
    """Write one struct."""
    buffer = TMemoryBuffer()
    _write(TCompactProtocol(buffer), TType.STRUCT, fields)
    return bytes(buffer.getvalue())


def _read(protocol: Any, type_: int) -> Any:
    if type_ == TType.STRUCT:
        return _read_struct(protocol)
    if type_ in {TType.LIST, TType.SET}:
        of, size = protocol.readListBegin()
        values = Values(of, [_read(protocol, of) for _ in range(size)])
        protocol.readListEnd()
        return values
    return getattr(protocol, f"read{_PLAIN[type_]}")()


def _read_struct(protocol: Any) -> Fields:
    fields: Fields = {}
    protocol.readStructBegin()
    while (begun := protocol.readFieldBegin())[1] != TType.STOP:
        _, type_, number = begun
        fields[number] = Value(type_, _read(protocol, type_))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return fields


def _write(protocol: Any, type_: int, value: Any) -> None:
    if type_ == TType.STRUCT:
        _write_struct(protocol, value)
    elif type_ in {TType.LIST, TType.SET}:
        protocol.writeListBegin(value.type, len(value.items))
        for item in value.items:
            _write(protocol, value.type, item)
        protocol.writeListEnd()
    else:
        getattr(protocol, f"write{_PLAIN[type_]}")(value)


def _write_struct(protocol: Any, fields: Fields) -> None:
    protocol.writeStructBegin("")
    for number, field in sorted(fields.items()):
        protocol.writeFieldBegin("", field.type, number)
        _write(protocol, field.type, field.value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()
