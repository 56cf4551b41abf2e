"""Avro defaults as values, and values as SQL literals.

An Avro default is JSON whose meaning depends on the type: bytes are text in ISO-8859-1, a decimal is its unscaled
bytes, a Debezium date a number of days. It is decoded the same way as a value in a file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from decimal import localcontext
from typing import Any, Final, TypeVar, assert_never
from uuid import UUID

from schemasync.core.beyond import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US, MAX_SCALE, nearest, zoned_micros
from schemasync.core.conversion import FLOATS
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.names import Dialect, quote_string
from schemasync.core.type_strings import print_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type
from schemasync.errors import SchemaError

Value = None | bool | int | float | str | bytes | Number | date | datetime | list[Any] | dict[Any, Any]
"""A decoded value: structs and maps are dicts."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BITS: Final = {Primitive.TINYINT: 8, Primitive.SMALLINT: 16, Primitive.INT: 32, Primitive.BIGINT: 64}


def default_value(encoding: Encoding, default: str | None) -> Value:
    """Decode an Avro default (canonical JSON text). None stands for no default, ``"null"``, and undecodable ones."""
    if default is None:
        return None
    try:
        return _decode(encoding, json.loads(default))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _decode(encoding: Encoding, value: Any) -> Value:
    if value is None:
        return None
    match encoding:
        case Leaf():
            return _decode_leaf(encoding, value)
        case ListOf(element=element):
            return [_decode(element, item) for item in _a(list, value)]
        case MapOf(key=key, value=item, entries=True):
            return {_decode(key, e["key"]): _decode(item, e["value"]) for e in _a(list, value)}
        case MapOf(value=item):
            return {key: _decode(item, found) for key, found in _a(dict, value).items()}
        case Record(union=True):
            return _decode_branch(encoding.members, value)
        case Record():
            return {m.name: _decode(m.encoding, _a(dict, value).get(m.name)) for m in encoding.members}
        case _:  # pragma: no cover
            assert_never(encoding)


def _decode_branch(members: Sequence[Member], value: Any) -> Value:
    """Decode the default of a union: one of its first branch, and since Avro 1.12 of any.

    A text is one of a branch of texts or bytes before it is a number as text: Java's Avro takes it for none in a union.
    """
    fitting = [m for m in members if _may_be(m.encoding, value)]
    for member in sorted(fitting, key=lambda m: isinstance(value, str) and _is_float(m.encoding)):
        with suppress(ValueError, TypeError, KeyError, OverflowError):
            found = _decode(member.encoding, value)
            return {m.name: found if m is member else None for m in members}
    raise TypeError(f"{value!r} is of no branch")


def _is_float(encoding: Encoding) -> bool:
    return isinstance(encoding, Leaf) and encoding.type in FLOATS


def _may_be(encoding: Encoding, value: Any) -> bool:
    """Tell whether a whole default is one of a branch: a record's has all of its fields, an enum's is a symbol."""
    match encoding:
        case Record(union=False, members=members):
            return isinstance(value, dict) and value.keys() == {m.name for m in members}
        case Leaf(symbols=symbols):
            return not symbols or value in symbols
        case _:
            return True


_T = TypeVar("_T")


def _a(kind: type[_T], value: Any) -> _T:
    """Return the JSON value if it is of this kind; true and false are no numbers."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _decode_leaf(leaf: Leaf, value: Any) -> Value:
    match leaf.meaning:
        case Meaning.PLAIN:
            return _decode_plain(leaf.type, value)
        case Meaning.DAYS:
            return date(1970, 1, 1) + timedelta(days=nearest(_a(int, value), FIRST_DAY, LAST_DAY))
        case Meaning.EPOCH_MILLIS:
            return _EPOCH + timedelta(milliseconds=nearest(_a(int, value), FIRST_US // 1000, LAST_US // 1000))
        case Meaning.EPOCH_MICROS:
            return _instant(_a(int, value))
        case Meaning.ZONED_TIMESTAMP:
            return _instant(zoned_micros(_a(str, value)))
        case Meaning.TIME_MILLIS:
            return clock_text(_a(int, value), digits=3)
        case Meaning.TIME_MICROS:
            return clock_text(_a(int, value), digits=6)
        case Meaning.TIME_NANOS:
            return clock_text(_a(int, value), digits=9)
        case Meaning.VARIABLE_DECIMAL:
            return decimal_text(_a(int, _a(dict, value)["scale"]), _bytes(value["value"]))
        case Meaning.UUID_BYTES:
            return str(UUID(bytes=_bytes(value)))
        case Meaning.LOG_SEQUENCE:  # pragma: no cover - what orders events is no column, and has no default
            raise TypeError(leaf.meaning)
        case _:  # pragma: no cover
            assert_never(leaf.meaning)


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nearest(micros, FIRST_US, LAST_US))


def _bytes(value: Any) -> bytes:
    return _a(str, value).encode("iso-8859-1")


def _decode_plain(type_: Primitive | Decimal, value: Any) -> Value:
    match type_:
        case Decimal(precision=precision, scale=scale):
            return _decimal(int.from_bytes(_bytes(value), "big", signed=True), precision, scale)
        case Primitive.BINARY:
            return _bytes(value)
        case Primitive.STRING:
            return _a(str, value)
        case Primitive.BOOLEAN:
            return _a(bool, value)
        case Primitive.DOUBLE:
            return _number(value)
        case Primitive.FLOAT:
            # The nearest float, so that a later DOUBLE shows what a FLOAT column held.
            nearest: float = struct.unpack("<f", struct.pack("<f", _number(value)))[0]
            return nearest
        case _:
            return _integer(_a(int, value), _BITS[type_])


def _number(value: Any) -> float:
    if type(value) not in {int, float, str}:
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _integer(value: int, bits: int) -> int:
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"{value} has more than {bits} bits")
    return value


def _decimal(unscaled: int, precision: int, scale: int) -> Number:
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"{unscaled} has more than {precision} digits")
    return _scaled(unscaled, scale)


def clock_text(count: int, *, digits: int) -> str:
    """Write a time of day as ``HH:MM:SS.fff``; ``count`` is in units of 10**-digits seconds since midnight.

    MySQL's times are durations: they may be negative, and longer than a day.
    """
    seconds, fraction = divmod(abs(count), 10**digits)
    return (
        f"{'-' if count < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"
    )


def decimal_text(scale: int, unscaled: bytes) -> str:
    """Write Debezium's VariableScaleDecimal (big endian two's complement) in plain decimal notation.

    Raises:
        ValueError: it has more digits than any source writes (`MAX_SCALE`): a scale alone could fill the memory.
    """
    if abs(scale) > MAX_SCALE:
        raise ValueError(f"a number of scale {scale}")
    return format(_scaled(int.from_bytes(unscaled, "big", signed=True), scale), "f")


def _scaled(unscaled: int, scale: int) -> Number:
    with localcontext() as context:
        # At least the digits: Python refuses to print an integer of more than 4300.
        context.prec = unscaled.bit_length() * 31 // 100 + abs(scale) + 2
        return Number(unscaled).scaleb(-scale)


def literal_sql(value: Value, type_: Type, dialect: Dialect) -> str:
    """Write a decoded value, fitted to the type, as a SQL literal of exactly that type.

    Raises:
        SchemaError: Hive's SQL has no literals of empty maps, and of empty arrays only those of texts.
    """
    if value is None:
        return null_sql(type_, dialect)
    match type_, value:
        case Struct(fields=fields), dict():
            return struct_sql(type_, [literal_sql(value[f.name], f.type, dialect) for f in fields], dialect)
        case Array(element=element), list():
            return _list_sql(type_, [literal_sql(item, element, dialect) for item in value], dialect)
        case Map(key=key, value=item), dict():
            entries = [(literal_sql(k, key, dialect), literal_sql(v, item, dialect)) for k, v in value.items()]
            return _map_sql(type_, entries, dialect)
        case _:
            return _scalar_sql(value, type_, dialect)


def null_sql(type_: Type, dialect: Dialect) -> str:
    """Return NULL of a type."""
    if dialect is Dialect.TRINO or not isinstance(type_, Array | Map | Struct):
        return cast_sql("NULL", type_, dialect)
    # Hive casts to primitive types only, and so does what Trino reads the views that Spark stores with (Coral).
    return f"CASE WHEN FALSE THEN {_of_nulls(type_, dialect)} END"


def _of_nulls(type_: Array | Map | Struct, dialect: Dialect) -> str:
    """Return a value that is there for its type alone."""
    match type_:
        case Struct(fields=fields):
            return struct_sql(type_, [null_sql(f.type, dialect) for f in fields], dialect)
        case Array(element=element):
            return f"array({null_sql(element, dialect)})"
        case Map(key=key, value=value):
            return f"map({null_sql(key, dialect)}, {null_sql(value, dialect)})"
        case _:  # pragma: no cover
            assert_never(type_)


def cast_sql(expression: str, type_: Type, dialect: Dialect) -> str:
    """Return a cast; only Trino's own SQL is cast to arrays, maps and structs."""
    return f"CAST({expression} AS {print_type(type_, dialect)})"


def beyond_hive(type_: Type) -> SchemaError:
    """Return the error for a nested value that Hive's SQL cannot make."""
    return SchemaError(
        f"Hive's SQL cannot convert rows of older versions to {print_type(type_, Dialect.HIVE)}",
        why="it casts to primitive types only, and has no functions over the elements of arrays and maps",
        fix="Compact the table first: the view needs no conversion then.",
    )


def struct_sql(type_: Struct, values: Iterable[str], dialect: Dialect) -> str:
    """Return a struct made of one expression per field, in order."""
    if dialect is Dialect.TRINO:
        return cast_sql(f"ROW({', '.join(values)})", type_, dialect)
    pairs = (f"{quote_string(f.name, dialect)}, {value}" for f, value in zip(type_.fields, values, strict=True))
    return f"named_struct({', '.join(pairs)})"


def _list_sql(type_: Array, items: Sequence[str], dialect: Dialect) -> str:
    if dialect is Dialect.TRINO:
        return cast_sql(f"ARRAY[{', '.join(items)}]", type_, dialect)
    return f"array({', '.join(items)})" if items else _empty_sql("array", type_, dialect)


def _map_sql(type_: Map, entries: Sequence[tuple[str, str]], dialect: Dialect) -> str:
    if dialect is Dialect.TRINO:
        keys, values = (", ".join(entry[side] for entry in entries) for side in (0, 1))
        return cast_sql(f"MAP(ARRAY[{keys}], ARRAY[{values}])", type_, dialect)
    items = ", ".join(item for entry in entries for item in entry)
    return f"map({items})" if items else _empty_sql("map", type_, dialect)


def _empty_sql(made_by: str, type_: Array | Map, dialect: Dialect) -> str:
    # Hive's array() is one of texts.
    if dialect is Dialect.HIVE and type_ != Array(element=Primitive.STRING):
        raise beyond_hive(type_)
    return f"CASE WHEN FALSE THEN {_of_nulls(type_, dialect)} ELSE {made_by}() END"


def text_sql(text: str, dialect: Dialect) -> str:
    """Return a text as a literal that all read alike who read a view.

    What Trino reads Hive's views with (Coral) knows no escape but that of a quote, and fails at what Latin-1 lacks:
    such a text is written as its bytes.
    """
    if dialect is Dialect.TRINO or _is_plain(text):
        return quote_string(text, dialect)
    return cast_sql(f"unhex('{text.encode().hex().upper()}')", Primitive.STRING, dialect)


def _is_plain(text: str) -> bool:
    unquoted = text.replace("'", "")
    return max(text, default="") <= "\xff" and quote_string(unquoted, Dialect.SPARK) == f"'{unquoted}'"


_NO_NUMBERS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""How Python writes the floats that are no numbers, and how every engine reads them."""

LOWEST: Final = -(2**63)
"""What Trino reads Hive's views with (Coral) takes this BIGINT for the negative of a number out of range."""


def _scalar_sql(value: Value, type_: Type, dialect: Dialect) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            digits = value.hex().upper()
            # Hive, which reads the views that Spark stores, too, has no literals of bytes.
            return f"X'{digits}'" if dialect is Dialect.TRINO else f"unhex('{digits}')"
        case str():
            return text_sql(value, dialect)
        case datetime():
            # Spark reads a text without an offset in the session's time zone; the others know no zones here.
            zone = "+00:00" if dialect is Dialect.SPARK else ""
            text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds") + zone
        case date():
            text = value.isoformat()
        case Number():
            text = format(value, "f")
        case float():
            text = _NO_NUMBERS.get(repr(value), repr(value))
        case int() if value == LOWEST:
            text = str(value)
        case _:
            return cast_sql(str(value), type_, dialect)
    return cast_sql(quote_string(text, dialect), type_, dialect)
