"""Values that a source did not send: a placeholder stands for what the row held before.

PostgreSQL leaves a large value (TOAST) that an UPDATE did not touch out of its log, and Debezium writes a placeholder
in its place. To *carry* is to show what the newest older event of the key says instead; inserts, snapshot reads and
deletes end the search: nothing older is of the same row, also where an insert lacks the value
(`schemasync.core.beyond` tells of it). A delta keeps the event that says it beside the newest one, so view and fold
find it over all segments, whatever arrives late between the two. The fold writes what it found: an event that is older
than a base's row and comes after it changes nothing any more, unless the base's row still asks.

NULL is an answer, but for columns that came later: rows from before them read NULL as well, and say nothing; once they
are admitted, or folded, under a later version nothing tells them from others. There a NULL that is no delete's ends the
search with nothing found, and the placeholder stays: PostgreSQL writes none for a NULL, so there was a value, and no
event that is older than the NULL can have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from schemasync.core.admission import DELETE, UPSERT, UnsentRule
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.layout import OP
from schemasync.core.manifest import Manifest, Segment
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.placeholders import TYPES, is_placeholder_sql
from schemasync.core.projection import reads_null_before
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
    columns = (c for c in shape.columns if c.name not in shape.keys and c.type in TYPES)
    return _rule(shape, columns, (target.toast_placeholder,), carry=target.toast == "carry")


def carry_rule(target: TableTarget, shape: Shape, manifest: Manifest) -> UnsentRule | None:
    """Return what a merge of segments does with the placeholders in them; None where there are none."""
    columns = [*asked_columns(shape, manifest.toasted)]
    return _rule(shape, columns, asked_placeholders(target, manifest.placeholders), carry=True) if columns else None


def _rule(shape: Shape, columns: Iterable[Column], placeholders: tuple[str, ...], *, carry: bool) -> UnsentRule:
    found = {shape.layout.current(c): _is_younger(shape, c) for c in columns}
    return UnsentRule(
        placeholders=placeholders,
        carry=carry,
        columns=tuple((c.name, c.type) for c in found),
        younger=frozenset(c.name for c, younger in found.items() if younger),
    )


def _is_younger(shape: Shape, column: Column) -> bool:
    return reads_null_before(shape.history, column, shape.layout, fill_defaults=shape.fill_defaults)


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

    ``toasted`` are physical columns. Of a key's rows that have no placeholder in a column the newest one answers, NULL
    where it is a delete. Where there is none, or it is NULL in a younger column, the placeholder stays: an unknown
    value is not NULL. The expressions are right for the newest row of a key, the only one that views and folds keep.
    """
    columns = view_columns(source, dialect)
    if not toasted or not source.shape.keys:
        return columns
    asked = {column.name: column for column in asked_columns(source.shape, toasted)}
    return tuple(
        _carried(source, shown, asked[shown.name], placeholders, dialect) if shown.name in asked else shown
        for shown in columns
    )


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
            yield _carried(source, shown, column, placeholders, dialect)


def asked_columns(shape: Shape, toasted: AbstractSet[str]) -> Iterator[Column]:
    """Yield the columns of which some version's values stand where placeholders occur."""
    for column in shape.columns:
        if column.type in TYPES and any(phase.name in toasted for phase in shape.layout.phases(column.life)):
            yield column


def _carried(
    source: RowSource, shown: ViewColumn, by: Column, placeholders: Sequence[str], dialect: Dialect
) -> ViewColumn:
    """Return what is shown, a column or what is made of it, read where ``by``, the column, was sent."""
    value, operation = shown.expression, f"t.{quote_identifier(OP, dialect)}"
    asked = column_sql(source, by, dialect)
    unsent = unsent_sql(asked, by.type, operation=operation, placeholders=placeholders, dialect=dialect)
    # An order of its own, and no IGNORE NULLS: the engines write that in different ways, and a NULL is an answer, too.
    order = (f"CASE WHEN {unsent} THEN 1 ELSE 0 END", *order_by(source.shape.envelope, dialect))
    window = (
        f"PARTITION BY {', '.join(key_expressions(source, dialect))} ORDER BY {', '.join(order)} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    )
    alive = f"{operation} <> {quote_string(DELETE, dialect)}"
    answer = f"first_value(CASE WHEN {alive} THEN {value} END) OVER ({window})"
    if _is_younger(source.shape, by):
        unknown = f"first_value(CASE WHEN {alive} AND {asked} IS NULL THEN 1 END) OVER ({window})"
        answer = f"CASE WHEN {unknown} = 1 THEN {value} ELSE {answer} END"
    return replace(shown, expression=answer)
