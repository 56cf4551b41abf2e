"""Which Parquet columns an engine may read in place: as they are, under the type that the table declares.

Spark reads some other pairs without an error and shows wrong values (a decimal as its unscaled number, a date as a
count of days). So a physical column never changes its type, every file of ours is checked against this table before
it is published, and what is not listed here is refused. The list is measured for every engine version by
tests/io/test_in_place_reads.py; docs/in-place-reads.md shows the outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from schemasync.core.names import Dialect
from schemasync.core.type_strings import print_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type

_P = Primitive


PACKED: Final = "DELTA_BINARY_PACKED"
"""An encoding that nothing may be read in: where a query needs some pages of a file only, Spark 3.3 to 4.1 takes the
first value of such a page for another.

Its reader begins a page anew when it is asked for no values; mended after 4.1 (apache/spark@1071110).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One leaf column of a Parquet file: dotted path with the groups of lists and maps, and its physical form.

    A form is Parquet's physical type and its annotation: ``INT32``, ``INT32 int(16)``, ``INT32 date``,
    ``BYTE_ARRAY string``, ``INT64 timestamp(microseconds,utc)``, ``FIXED_LEN_BYTE_ARRAY decimal(9,2)``; with `PACKED`
    behind them where pages have their values so.
    """

    path: str
    form: str


FORMS: Final[Mapping[Primitive, frozenset[str]]] = {
    _P.BOOLEAN: frozenset({"BOOLEAN"}),
    _P.TINYINT: frozenset({"INT32 int(8)"}),
    _P.SMALLINT: frozenset({"INT32 int(16)"}),
    _P.INT: frozenset({"INT32"}),
    _P.BIGINT: frozenset({"INT64"}),
    _P.FLOAT: frozenset({"FLOAT"}),
    _P.DOUBLE: frozenset({"DOUBLE"}),
    _P.STRING: frozenset({"BYTE_ARRAY string"}),
    _P.BINARY: frozenset({"BYTE_ARRAY"}),
    _P.DATE: frozenset({"INT32 date"}),
    _P.TIMESTAMP: frozenset({"INT64 timestamp(microseconds,utc)", "INT96"}),
}
"""Declared type -> the forms that every configured engine reads as it, with the vectorized and with the row reader."""

INT32_DIGITS: Final = 9
INT64_DIGITS: Final = 18
"""Most digits of a decimal that Parquet holds in an INT32, and in an INT64 ("DECIMAL" in its LogicalTypes)."""

LIST_LAYOUTS: Final = ("list.element", "bag.array", "array")
MAP_LAYOUTS: Final = ("key_value", "map")
"""The groups inside of lists and maps: Parquet's own first, then Spark's with ``writeLegacyFormat``."""


def forms_of(type_: Primitive | Decimal) -> frozenset[str]:
    """Return the physical forms that may be read in place as a declared type; of nothing else that we know."""
    match type_:
        case Decimal(precision=precision, scale=scale):
            homes = ("FIXED_LEN_BYTE_ARRAY", *_integers(precision))
            return frozenset(f"{home} decimal({precision},{scale})" for home in homes)
        case _:
            return FORMS[type_]


def _integers(precision: int) -> tuple[str, ...]:
    # Bytes are not among the homes: Spark's vectorized reader crashes on them up to 18 digits (4.1.4, 4.3.0).
    if precision <= INT32_DIGITS:
        return ("INT32",)
    return ("INT64",) if precision <= INT64_DIGITS else ()


def misreads(declared: Iterable[tuple[str, Type]], stored: Iterable[Stored]) -> tuple[str, ...]:
    """Say which columns of a file could not be read in place under the declared types, one sentence each.

    A declared column that the file lacks counts, too: whatever we write has all of them. Columns that nothing
    declares are never read. Names are compared as engines do, without regard to case.
    """
    found = {leaf.path.lower(): leaf.form for leaf in stored}
    return tuple(
        reason
        for name, type_ in declared
        for paths, leaf in _leaves((name.lower(),), type_)
        if (reason := _misread(paths, leaf, found))
    )


def _misread(paths: tuple[str, ...], type_: Primitive | Decimal, found: Mapping[str, str]) -> str:
    path = next((p for p in paths if p in found), None)
    shown = print_type(type_, Dialect.SPARK)
    if path is None:
        return f"{paths[0]} ({shown}) is missing"
    return "" if found[path] in forms_of(type_) else f"{path} is stored as {found[path]} and declared as {shown}"


def _leaves(paths: tuple[str, ...], type_: Type) -> Iterator[tuple[tuple[str, ...], Primitive | Decimal]]:
    """Yield the leaves of a declared type, each with the paths that it may have in a file."""
    match type_:
        case Array(element=element):
            yield from _leaves(_below(paths, LIST_LAYOUTS), element)
        case Map(key=key, value=value):
            entries = _below(paths, MAP_LAYOUTS)
            yield from _leaves(_below(entries, ("key",)), key)
            yield from _leaves(_below(entries, ("value",)), value)
        case Struct(fields=fields):
            for field in fields:
                yield from _leaves(_below(paths, (field.name.lower(),)), field.type)
        case Primitive() | Decimal():
            yield paths, type_
        case _:  # pragma: no cover
            assert_never(type_)


def _below(paths: tuple[str, ...], steps: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{path}.{step}" for path in paths for step in steps)
