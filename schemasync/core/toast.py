"""Values that a source did not send: a placeholder stands for what the row held before.

PostgreSQL leaves a large value (TOAST) that an UPDATE did not touch out of its log, and Debezium writes a placeholder
in its place. To *carry* is to show what the newest older event of the key says instead; inserts, snapshot reads and
deletes end the search: nothing older is of the same row, also where an insert lacks the value
(`schemasync.core.beyond` tells of it). A delta keeps the event that says it beside the newest one, so view and fold
find it over all segments, whatever arrives late between the two. The fold writes what it found: an event that is older
than a base's row and comes after it changes nothing any more, unless the base's row still asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from schemasync.core.admission import DELETE, UPSERT, UnsentRule
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.layout import OP
from schemasync.core.manifest import Segment
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.placeholders import TYPES, is_placeholder_sql
from schemasync.core.schema import Column
from schemasync.core.shape import Shape
from schemasync.core.types import Type
from schemasync.core.view import RowSource, ViewColumn, column_sql, key_expressions, order_by, view_columns


def unsent_rule(target: TableTarget, shape: Shape) -> UnsentRule | None:
    """Return what an admission does with placeholders; None where it leaves them as they are.

    Without keys a row has no history, so there nothing can be carried.
    """
    if target.toast == "placeholder" or (target.toast == "carry" and not shape.keys):
        return None
    columns = (shape.layout.current(c) for c in shape.columns if c.name not in shape.keys)
    return UnsentRule(
        placeholders=(target.toast_placeholder,),
        carry=target.toast == "carry",
        columns=tuple((c.name, c.type) for c in columns if c.type in TYPES),
    )


def asked_placeholders(target: TableTarget, told: AbstractSet[str | None]) -> tuple[str, ...]:
    """Return the texts that stand for values in rows: those that were set when they were admitted, whatever is set now.

    ``told`` is what their segments tell (`schemasync.core.manifest.Manifest.placeholders`).
    """
    return tuple(sorted({target.toast_placeholder if text is None else text for text in told or {None}}))


def left_unsent(shape: Shape, toasted: AbstractSet[str], placeholders: Sequence[str]) -> dict[str, str]:
    """Return, by physical column, the condition under which a row of a fold's result still has a placeholder."""
    columns = (shape.layout.current(c) for c in asked_columns(shape, toasted))
    operation = quote_identifier(OP, Dialect.SPARK)
    return {
        c.name: unsent_sql(
            quote_identifier(c.name, Dialect.SPARK),
            c.type,
            operation=operation,
            placeholders=placeholders,
            dialect=Dialect.SPARK,
        )
        for c in columns
    }


def unknown_values(target: TableTarget, base: Iterable[Segment]) -> Iterator[Diagnostic]:
    """Yield a finding where the base has rows with a value that no admitted event told."""
    columns = sorted({name for shard in base for name in shard.toasted})
    if columns:
        where = f"{target.full_name}: {', '.join(columns)}"
        yield diagnose("SS320", f"{where}: no admitted event has the value of some rows; they show the placeholder")


def unsent_sql(value: str, type_: Type, *, operation: str, placeholders: Sequence[str], dialect: Dialect) -> str:
    """Return the condition under which a row has a placeholder for a value; ``type_`` is one that can have it."""
    either = [is_placeholder_sql(value, type_, text, dialect) for text in placeholders]
    unsent = f"({' OR '.join(either)})" if len(either) > 1 else either[0]
    return f"{operation} = {quote_string(UPSERT, dialect)} AND {unsent}"


def carried_columns(
    source: RowSource, toasted: AbstractSet[str], placeholders: Sequence[str], dialect: Dialect
) -> tuple[ViewColumn, ...]:
    """Return the row's columns; those in which placeholders occur read what the key's history says in their place.

    ``toasted`` are physical columns. Of a key's rows that say something about a column the newest one answers, NULL
    where it is a delete. Where no row says anything the placeholder stays: an unknown value is not NULL. The
    expressions are right for the newest row of a key, the only one that views and folds keep.
    """
    columns = view_columns(source, dialect)
    if not toasted or not source.shape.keys:
        return columns
    asked = {column.name for column in asked_columns(source.shape, toasted)}
    return tuple(_carried(source, c, placeholders, dialect) if c.name in asked else c for c in columns)


def carried_partitions(
    source: RowSource,
    toasted: AbstractSet[str],
    placeholders: Sequence[str],
    dialect: Dialect,
) -> Iterator[ViewColumn]:
    """Yield the user partitions of rows; one of a column in which placeholders occur is carried with that column."""
    shape = source.shape
    asked = {shape.layout.current(c).name: c for c in asked_columns(shape, toasted)}
    for partition in shape.partitions:
        value = f"t.{quote_identifier(partition.name, dialect)}"
        shown = ViewColumn(name=partition.name, type=partition.type, expression=value)
        column = asked.get(partition.source)
        if column is None or not shape.keys:
            yield shown
        else:
            by = column_sql(source, column, dialect)
            yield _carried(source, shown, placeholders, dialect, by=(by, column.type))


def asked_columns(shape: Shape, toasted: AbstractSet[str]) -> Iterator[Column]:
    """Yield the columns of which some version's values stand where placeholders occur."""
    for column in shape.columns:
        if column.type in TYPES and any(phase.name in toasted for phase in shape.layout.phases(column.life)):
            yield column


def _carried(
    source: RowSource,
    column: ViewColumn,
    placeholders: Sequence[str],
    dialect: Dialect,
    *,
    by: tuple[str, Type] | None = None,
) -> ViewColumn:
    """Return a column read where it was sent; ``by`` is the value, and its type, that tells, where it is another."""
    value, operation = column.expression, f"t.{quote_identifier(OP, dialect)}"
    asked, type_ = by or (value, column.type)
    unsent = unsent_sql(asked, type_, operation=operation, placeholders=placeholders, dialect=dialect)
    # An order of its own, and no IGNORE NULLS: the engines write that in different ways, and a NULL is an answer, too.
    order = (f"CASE WHEN {unsent} THEN 1 ELSE 0 END", *order_by(source.shape.envelope, dialect))
    window = (
        f"PARTITION BY {', '.join(key_expressions(source, dialect))} ORDER BY {', '.join(order)} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    )
    said = f"CASE WHEN {operation} <> {quote_string(DELETE, dialect)} THEN {value} END"
    return replace(column, expression=f"first_value({said}) OVER ({window})")
