"""The dedup view and the compaction's SELECT, decided: templates only lay these values out.

For each logical column one expression: the physical column; while segments of older versions exist, a CASE on
``__schema_version``. As soon as no registered segment is older than the column's present phase the CASE is gone, and
predicates reach the files again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from schemasync.core.admission import DELETE
from schemasync.core.defaults import literal_sql
from schemasync.core.layout import OP, SCHEMA_VERSION, SEGMENT, ordering_columns
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.projection import Fill, carried
from schemasync.core.reshape import may_misfit, reshape_sql
from schemasync.core.schema import Column, Envelope
from schemasync.core.shape import Shape
from schemasync.core.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """One column that a view shows: its name, its type and the expression over the long-lived table (alias ``t``)."""

    name: str
    type: Type
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """What it takes to read logical rows out of the long-lived table; all that the expressions depend on."""

    shape: Shape
    segment_versions: frozenset[int]


def view_columns(source: RowSource, dialect: Dialect) -> tuple[ViewColumn, ...]:
    """Return the row's columns in registry order."""
    return tuple(
        ViewColumn(name=column.name, type=column.type, expression=column_sql(source, column, dialect))
        for column in source.shape.columns
    )


def column_sql(source: RowSource, column: Column, dialect: Dialect) -> str:
    """Return the expression that yields a logical column for every row of every registered segment."""
    shape = source.shape
    plain = _physical(shape.layout.current(column).name, dialect)
    older = sorted(v for v in source.segment_versions if v < shape.layout.version)
    cases = [(version, _older_sql(shape, column, version, dialect)) for version in older]
    while cases and cases[-1][1] == plain:
        cases.pop()
    if not cases:
        return plain
    whens = []
    for expression, group in groupby(cases, key=lambda case: case[1]):
        last = [version for version, _ in group][-1]
        whens.append(f"WHEN {_physical(SCHEMA_VERSION, dialect)} <= {last} THEN {expression}")
    return f"CASE {' '.join(whens)} ELSE {plain} END"


def _older_sql(shape: Shape, column: Column, version: int, dialect: Dialect) -> str:
    found = carried(
        shape.history, column=column, layout=shape.layout, version=version, fill_defaults=shape.fill_defaults
    )
    if not isinstance(found, Fill):
        reshaped = reshape_sql(_physical(found.name, dialect), found.shape, dialect)
        if column.name in shape.keys or not may_misfit(found.shape):
            return reshaped
        # Engines may fail at a value that does not fit, and that of a delete is never looked at.
        return f"CASE WHEN {_physical(OP, dialect)} <> {quote_string(DELETE, dialect)} THEN {reshaped} END"
    current = shape.layout.current(column)
    if found.value is None:
        # Files of that version do not have the column, and what a file lacks reads NULL by itself.
        return _physical(current.name, dialect)
    return literal_sql(found.value, current.type, dialect)


def _physical(name: str, dialect: Dialect) -> str:
    return f"t.{quote_identifier(name, dialect)}"


def order_by(envelope: Envelope, dialect: Dialect) -> tuple[str, ...]:
    """Return the window's ordering: newest first, NULL is oldest.

    Spark and Trino put NULL last by themselves, Hive 4 first (``hive.default.nulls.last``). None is told NULLS LAST:
    what Trino reads views of a metastore with (Coral) does not know that inside of a window.
    """
    columns = (_physical(name, dialect) for name in ordering_columns(envelope))
    newest = (f"{column} IS NULL, {column} DESC" for column in columns)
    return (*newest, _physical(SEGMENT, dialect))


def key_expressions(source: RowSource, dialect: Dialect) -> tuple[str, ...]:
    """Return the expressions of the key columns, in the order of the key."""
    by_name = {c.name: c for c in source.shape.columns}
    return tuple(column_sql(source, by_name[key], dialect) for key in source.shape.keys)
