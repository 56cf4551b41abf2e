"""Avro defaults as values, and values as SQL literals.

An Avro default is JSON whose meaning depends on the type: bytes are text in ISO-8859-1, a decimal is its unscaled
bytes, a Debezium date a number of days. It is decoded the same way as a value in a file.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from decimal import localcontext
from typing import Any, Final, assert_never

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.names import Dialect, quote_string
from schemasync.core.type_strings import print_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type

Value = None | bool | int | float | str | bytes | Number | date | datetime | list[Any] | dict[str, Any]
"""A decoded value: structs and string-keyed maps are dicts."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def default_value(encoding: Encoding, default: str | None) -> Value:
    """Decode an Avro default (canonical JSON text). None stands for no default, ``"null"``, and undecodable ones."""
    if default is None:
        return None
    try:
        return _decode(encoding, json.loads(default))
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
        return None


def _decode(encoding: Encoding, value: Any) -> Value:
    if value is None:
        return None
    match encoding:
        case Leaf():
            return _decode_leaf(encoding, value)
        case ListOf(element=element):
            return [_decode(element, item) for item in value]
        case MapOf(entries=True):
            return {str(item["key"]): _decode(encoding.value, item["value"]) for item in value}
        case MapOf():
            return {key: _decode(encoding.value, item) for key, item in value.items()}
        case Record(union=True):
            # The default of a union is one of its first branch.
            first, *rest = encoding.members
            return {first.name: _decode(first.encoding, value)} | {m.name: None for m in rest}
        case Record():
            return {m.name: _decode(m.encoding, value.get(m.name)) for m in encoding.members}
        case _:  # pragma: no cover
            assert_never(encoding)


def _decode_leaf(leaf: Leaf, value: Any) -> Value:
    match leaf.meaning:
        case Meaning.PLAIN:
            return _decode_plain(leaf.type, value)
        case Meaning.DAYS:
            return date(1970, 1, 1) + timedelta(days=value)
        case Meaning.EPOCH_MILLIS:
            return _EPOCH + timedelta(milliseconds=value)
        case Meaning.EPOCH_MICROS:
            return _EPOCH + timedelta(microseconds=value)
        case Meaning.ZONED_TIMESTAMP:
            return datetime.fromisoformat(value).astimezone(UTC)
        case Meaning.TIME_MILLIS:
            return clock_text(value, digits=3)
        case Meaning.TIME_MICROS:
            return clock_text(value, digits=6)
        case Meaning.TIME_NANOS:
            return clock_text(value, digits=9)
        case Meaning.VARIABLE_DECIMAL:
            return decimal_text(value["scale"], value["value"].encode("iso-8859-1"))
        case Meaning.UUID_BYTES:
            digits = value.encode("iso-8859-1").hex()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        case _:  # pragma: no cover
            assert_never(leaf.meaning)


def _decode_plain(type_: Primitive | Decimal, value: Any) -> Value:
    if isinstance(type_, Decimal):
        return _scaled(int.from_bytes(value.encode("iso-8859-1"), "big", signed=True), type_.scale)
    if type_ is Primitive.BINARY:
        return bytes(value, "iso-8859-1")
    if type_ in {Primitive.FLOAT, Primitive.DOUBLE}:
        return float(value)
    return value  # type: ignore[no-any-return]


def clock_text(count: int, *, digits: int) -> str:
    """Write a time of day as ``HH:MM:SS.fff``; ``count`` is in units of 10**-digits seconds since midnight."""
    seconds, fraction = divmod(count, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def decimal_text(scale: int, unscaled: bytes) -> str:
    """Write Debezium's VariableScaleDecimal (big endian two's complement) in plain decimal notation."""
    return format(_scaled(int.from_bytes(unscaled, "big", signed=True), scale), "f")


def _scaled(unscaled: int, scale: int) -> Number:
    with localcontext() as context:
        context.prec = max(len(str(unscaled)) + abs(scale), 1)
        return Number(unscaled).scaleb(-scale)


def literal_sql(value: Value, type_: Type, dialect: Dialect) -> str:
    """Write a decoded value as a SQL literal of exactly that type."""
    if value is None:
        return f"CAST(NULL AS {print_type(type_, dialect)})"
    match type_, value:
        case Struct(fields=fields), dict():
            pairs = (f"{quote_string(f.name, dialect)}, {literal_sql(value[f.name], f.type, dialect)}" for f in fields)
            return f"named_struct({', '.join(pairs)})"
        case Array(element=element), list():
            items = ", ".join(literal_sql(item, element, dialect) for item in value)
            return f"CAST(array({items}) AS {print_type(type_, dialect)})"
        case Map(), dict():
            pairs = (
                f"{literal_sql(k, type_.key, dialect)}, {literal_sql(v, type_.value, dialect)}"
                for k, v in value.items()
            )
            return f"CAST(map({', '.join(pairs)}) AS {print_type(type_, dialect)})"
        case _:
            return _scalar_sql(value, type_, dialect)


def _scalar_sql(value: Value, type_: Type, dialect: Dialect) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            text = quote_string(value.strftime("%Y-%m-%d %H:%M:%S.%f"), dialect)
        case date():
            text = quote_string(value.isoformat(), dialect)
        case str():
            text = quote_string(value, dialect)
            if type_ is Primitive.STRING:
                return text
        case Number():
            text = format(value, "f")
        case float():
            # repr writes nan and inf, which are names in SQL; as text every engine casts them.
            text = quote_string(repr(value), dialect)
        case _:
            text = str(value)
    return f"CAST({text} AS {print_type(type_, dialect)})"
