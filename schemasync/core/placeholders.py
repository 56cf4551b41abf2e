"""What Debezium's placeholder looks like in each type, and the SQL that finds it.

A placeholder stands for a value that PostgreSQL did not send; `schemasync.core.toast` says what becomes of it, and
`schemasync.io.parquet.newest` finds it with Arrow. Where a form is missing here, it shows as a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import Final, assert_never
from uuid import UUID

from schemasync.core.defaults import literal_sql, text_sql
from schemasync.core.names import Dialect
from schemasync.core.types import Array, Map, Primitive, Type

_NUMBERS: Final = tuple(Array(element=t) for t in (Primitive.SMALLINT, Primitive.INT, Primitive.BIGINT))
_BYTES: Final = Array(element=Primitive.BINARY)
TYPES: Final[tuple[Type, ...]] = (
    Primitive.STRING,
    Primitive.BINARY,
    Array(element=Primitive.STRING),
    _BYTES,
    *_NUMBERS,
    Map(key=Primitive.STRING, value=Primitive.STRING),
)
"""Text; its bytes in UTF-8; an array of one of these alone, or of a UUID made of them; an array of a number for each
byte; a map (hstore) of the text to itself. So Debezium's connector for PostgreSQL writes it."""


def elements(placeholder: str, type_: Array) -> list[tuple[str | bytes | int, ...]]:
    """Return the arrays that stand for a value of an array's type, which is one of `TYPES`."""
    data = placeholder.encode()
    match type_.element:
        case Primitive.STRING:
            # An array of uuid is one of texts, too.
            return [(placeholder,), (str(UUID(bytes=md5(data, usedforsecurity=False).digest(), version=3)),)]
        case Primitive.BINARY:
            return [(data,)]
        case _:
            # Java's bytes are signed.
            return [tuple(memoryview(data).cast("b"))]


def is_placeholder_sql(value: str, type_: Type, placeholder: str, dialect: Dialect) -> str:
    """Return the condition under which a value of one of `TYPES` is the placeholder."""
    match type_:
        case Array():
            either = [_is_array(value, type_, found, dialect) for found in elements(placeholder, type_)]
            return f"({' OR '.join(either)})" if len(either) > 1 else either[0]
        case Map():
            return _is_map(value, text_sql(placeholder, dialect), dialect)
        case Primitive.BINARY:
            return f"{value} = {literal_sql(placeholder.encode(), type_, dialect)}"
        case _:
            return f"{value} = {text_sql(placeholder, dialect)}"


def _is_array(value: str, type_: Array, found: Sequence[str | bytes | int], dialect: Dialect) -> str:
    match dialect:
        case Dialect.SPARK | Dialect.HIVE:  # Hive, which reads the views that Spark stores, too, has no = for arrays
            if type_ in _NUMBERS:
                # No element is asked for by its place: of several conditions Spark takes what they share first, also
                # where the array is empty, and fails at that.
                return f"array_contains(array({value}), {literal_sql(list(found), type_, dialect)})"
            each = (f"array_contains({value}, {literal_sql(e, type_.element, dialect)})" for e in found)
            return " AND ".join((f"size({value}) = {len(found)}", *each))
        case Dialect.TRINO:
            literals = (str(e) if isinstance(e, int) else literal_sql(e, type_.element, dialect) for e in found)
            return f"{value} = ARRAY[{', '.join(literals)}]"
        case _:  # pragma: no cover
            assert_never(dialect)


def _is_map(value: str, text: str, dialect: Dialect) -> str:
    match dialect:
        case Dialect.SPARK | Dialect.HIVE:
            sides = (f"array_contains(map_{side}({value}), {text})" for side in ("keys", "values"))
            return " AND ".join((f"size({value}) = 1", *sides))
        case Dialect.TRINO:
            return f"cardinality({value}) = 1 AND element_at({value}, {text}) = {text}"
        case _:  # pragma: no cover
            assert_never(dialect)
