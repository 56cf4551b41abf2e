"""Keys as places in an order: where a shard of the base begins, and which rows belong to it.

A table's key columns have one order that Arrow, Spark and Python agree on: numbers by value, text and bytes by their
bytes, dates and instants by time. Columns of other types (floats with their NaN and two zeros, structs) have none, and
a table with such a key keeps its base in one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import Final

from schemasync.core.defaults import Value, literal_sql
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.promotion import INTEGER_DIGITS
from schemasync.core.types import Decimal, Primitive, Type

Place = int | str | bytes | Number
"""One key column's value, comparable: dates as days, timestamps as microseconds since 1970, booleans as 0 and 1."""
Key = tuple[Place, ...]
"""One value per key column, in the order of the key; compares like a tuple."""
Bound = tuple[str, ...]
"""A key as a manifest holds it: one text per column."""

_WHOLE: Final = (
    Primitive.BOOLEAN,
    Primitive.TINYINT,
    Primitive.SMALLINT,
    Primitive.INT,
    Primitive.BIGINT,
    Primitive.DATE,
    Primitive.TIMESTAMP,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def whole_number(keys: Sequence[tuple[str, Type]]) -> str | None:
    """Return the column of a key (name, type) that is one whole number, None for another key."""
    columns = [name for name, type_ in keys if type_ in INTEGER_DIGITS]
    return columns[0] if len(columns) == len(keys) == 1 else None


def whole_number_or_text(keys: Sequence[tuple[str, Type]]) -> str | None:
    """Return the column of a key (name, type) that is one whole number or one text, None for another key."""
    return keys[0][0] if len(keys) == 1 and keys[0][1] is Primitive.STRING else whole_number(keys)


def is_ordered(type_: Type) -> bool:
    """Tell whether keys of this type can be put in an order that everybody agrees on."""
    return isinstance(type_, Decimal) or type_ in (*_WHOLE, Primitive.STRING, Primitive.BINARY)


def print_key(key: Key) -> Bound:
    """Write a key for a manifest."""
    return tuple(place.hex() if isinstance(place, bytes) else str(place) for place in key)


def parse_key(bound: Bound, types: Sequence[Type]) -> Key:
    """Read what `print_key` wrote.

    Raises:
        ValueError: it is not a key of these types.
    """
    return tuple(_reader(type_)(text) for text, type_ in zip(bound, types, strict=True))


def _reader(type_: Type) -> Callable[[str], Place]:
    match type_:
        case Primitive.STRING:
            return str
        case Primitive.BINARY:
            return bytes.fromhex
        case Decimal():
            return Number
        case _:
            return int


def at_or_above(columns: Sequence[tuple[str, Type]], key: Key) -> str:
    """Return the condition under which a row's key is this one or comes after it; ``columns`` are (name, type)."""
    conditions: list[str] = []
    equal: list[str] = []
    for n, ((name, type_), place) in enumerate(zip(columns, key, strict=True), start=1):
        column = f"t.{quote_identifier(name, Dialect.SPARK)}"
        literal = literal_sql(_value(place, type_), type_, Dialect.SPARK)
        operator = ">=" if n == len(key) else ">"
        conditions.append(" AND ".join([*equal, f"{column} {operator} {literal}"]))
        equal.append(f"{column} = {literal}")
    return f"({' OR '.join(conditions)})"


def _value(place: Place, type_: Type) -> Value:
    match type_, place:
        case Primitive.BOOLEAN, int():
            return bool(place)
        case Primitive.DATE, int():
            return date(1970, 1, 1) + timedelta(days=place)
        case Primitive.TIMESTAMP, int():
            return _EPOCH + timedelta(microseconds=place)
        case _:
            return place
