"""Statements, decided: which template, with which values. Every name and literal is quoted here, once.

Used by plan, apply, ddl and the compaction. The same schema and configuration always give the same values, and so
the same bytes of DDL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemasync.core.kept import NOTHING, Kept, shows, view_comment
from schemasync.core.layout import (
    ADMITTED_MS,
    OP,
    SCHEMA_VERSION,
    SEGMENT,
    TS_MS,
    MetaColumn,
    PhysicalColumn,
    meta_columns,
)
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, comment_text, quote_identifier, quote_string
from schemasync.core.plan import Shape
from schemasync.core.ports import HiveColumn
from schemasync.core.properties import SUBJECT, TableProperties, write_properties
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive, Type
from schemasync.core.view import RowSource, column_sql, key_expressions, order_by, view_columns
from schemasync.core.written import written_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A template's name (without dialect and ending) and the values that it lays out."""

    template: str
    values: Mapping[str, Any]


def qualified(database: str, name: str, dialect: Dialect) -> str:
    """Return ``database.name``, quoted."""
    return f"{quote_identifier(database, dialect)}.{quote_identifier(name, dialect)}"


def physical_columns(shape: Shape) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of the long-lived table's data columns, for a table created now.

    Phases that ended before the present version have no files yet, so a new table does not get them.
    """
    row = ((c, column.doc) for column in shape.columns for c in (shape.layout.current(column),))
    meta = meta_columns(shape.envelope)
    return (
        *((c.name, c.type, comment_text(doc)) for c, doc in row),
        *((c.name, c.type, c.comment) for c in meta),
    )


def expected_columns(shape: Shape) -> tuple[PhysicalColumn | MetaColumn, ...]:
    """Return the columns that files of the present version carry: each must be in the metastore's table."""
    return (*(shape.layout.current(c) for c in shape.columns), *meta_columns(shape.envelope))


def hive_type(type_: Type) -> str:
    """Return a type as the metastore holds it."""
    return print_type(type_, Dialect.HIVE)


def hive_column(column: PhysicalColumn | MetaColumn) -> HiveColumn:
    """Return a column as the metastore holds it."""
    comment = column.comment if isinstance(column, MetaColumn) else ""
    return HiveColumn(name=column.name, type=hive_type(column.type), comment=comment)


def _columns(columns: Iterable[tuple[str, Type, str]], dialect: Dialect) -> list[dict[str, str]]:
    return [
        {
            "name": quote_identifier(name, dialect),
            "type": print_type(type_, dialect),
            "comment": quote_string(comment, dialect) if comment else "",
        }
        for name, type_, comment in columns
    ]


def _properties(properties: Mapping[str, str], dialect: Dialect) -> list[dict[str, str]]:
    return [
        {"key": quote_string(key, dialect), "value": quote_string(value, dialect)}
        for key, value in sorted(properties.items())
    ]


def create_database(database: str, dialect: Dialect) -> Statement:
    """Make the database where it is missing."""
    return Statement(template="create_database", values={"database": quote_identifier(database, dialect)})


def create_table(target: TableTarget, shape: Shape, properties: TableProperties, dialect: Dialect) -> Statement:
    """Create the long-lived table."""
    return _external(
        "table",
        name=qualified(target.database, target.table, dialect),
        columns=physical_columns(shape),
        partitions=((SEGMENT, Primitive.STRING, "base_*: shards; delta_*: changes admitted since"),),
        location=target.location,
        properties=write_properties(properties),
        comment=f"{target.subject}: query {target.view} instead, it shows {shows(shape)}",
        dialect=dialect,
    )


def _external(
    template: str,
    *,
    name: str,
    columns: Sequence[tuple[str, Type, str]],
    location: str,
    dialect: Dialect,
    partitions: Sequence[tuple[str, Type, str]] = (),
    properties: Mapping[str, str] | None = None,
    comment: str = "",
) -> Statement:
    values = {
        "table": name,
        "columns": _columns(columns, dialect),
        "partitions": _columns(partitions, dialect),
        "location": quote_string(location, dialect),
        "properties": _properties(properties or {}, dialect),
        "comment": quote_string(comment_text(comment), dialect) if comment else "",
    }
    return Statement(template=template, values=values)


def add_columns(target: TableTarget, columns: Sequence[HiveColumn], dialect: Dialect) -> Statement:
    """Append columns to the long-lived table."""
    listed = [
        {
            "name": quote_identifier(c.name, dialect),
            "type": c.type,
            "comment": quote_string(c.comment, dialect) if c.comment else "",
        }
        for c in columns
    ]
    values = {"table": qualified(target.database, target.table, dialect), "columns": listed}
    return Statement(template="add_columns", values=values)


def drop_table(database: str, name: str, dialect: Dialect) -> Statement:
    """Drop an external table's definition; its files stay."""
    return Statement(template="drop_table", values={"table": qualified(database, name, dialect)})


def row_source(shape: Shape, segment_versions: frozenset[int]) -> RowSource:
    """Return what expressions over a table of this shape depend on."""
    return RowSource(
        history=shape.history,
        layout=shape.layout,
        columns=shape.columns,
        keys=shape.keys,
        envelope=shape.envelope,
        segment_versions=segment_versions,
        fill_defaults=shape.fill_defaults,
    )


def view_body(target: TableTarget, shape: Shape, segment_versions: frozenset[int], dialect: Dialect) -> Statement:
    """Return the SELECT of the dedup view, exact form: the newest row per key over all segments, deletes left out."""
    source = row_source(shape, segment_versions)
    shown = [
        {"name": quote_identifier(c.name, dialect), "expression": c.expression} for c in view_columns(source, dialect)
    ]
    if target.metadata:
        shown += [
            {"name": quote_identifier(name, dialect), "expression": f"t.{quote_identifier(column, dialect)}"}
            for name, column in _METADATA
        ]
    values = {
        "table": qualified(target.database, target.table, dialect),
        "columns": shown,
        "keys": list(key_expressions(source, dialect)),
        "order_by": list(order_by(shape.envelope, dialect)),
        "op": f"t.{quote_identifier(OP, dialect)}",
    }
    return Statement(template="view_body", values=values)


_METADATA = (("__op", OP), ("__ts_ms", TS_MS), ("__segment", SEGMENT))
"""What ``view: {metadata: true}`` adds, and the physical columns that it comes from."""


def shown_columns(target: TableTarget, shape: Shape, kept: Kept = NOTHING) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of what the view shows."""
    row = ((c.name, c.type, kept.comments.get(c.name, comment_text(c.doc))) for c in shape.columns)
    return (*row, *((name, _METADATA_TYPES[name], "") for name, _ in _METADATA if target.metadata))


_METADATA_TYPES: Final = {"__op": Primitive.STRING, "__ts_ms": Primitive.BIGINT, "__segment": Primitive.STRING}


def create_view(target: TableTarget, shape: Shape, body: str, dialect: Dialect, kept: Kept = NOTHING) -> Statement:
    """Create or replace the dedup view around a rendered body; ``kept`` is what people wrote on the one before."""
    comment = kept.comment or view_comment(shape, f"{target.database}.{target.table}")
    values = {
        "view": qualified(target.database, target.view, dialect),
        "columns": [
            {"name": quote_identifier(name, dialect), "comment": quote_string(comment, dialect) if comment else ""}
            for name, _, comment in shown_columns(target, shape, kept)
        ],
        "comment": quote_string(comment, dialect),
        "properties": _properties({**kept.properties, SUBJECT: target.subject}, dialect),
        "body": body,
    }
    return Statement(template="view", values=values)


PER_RUN: Final = "schemasync.per_run_of"
"""Marks the tables of one compaction with the long-lived table that they are for: what carries it may be dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerRun:
    """Where one compaction's tables lie: the old base, the hours that it folds, the new shard."""

    base: str
    compactor: str
    increments: Mapping[str, str]
    """Hour (yyyyMMddHH) -> location."""
    present: frozenset[str]
    """Columns of the long-lived table: phases that were never needed, or that were removed, are not among them."""


def per_run_tables(target: TableTarget, shape: Shape, run: PerRun, dialect: Dialect) -> tuple[Statement, ...]:
    """Create the tables of one compaction from the newest schema.

    The base table declares every phase of every column: its files may be of any earlier version. The incremental
    ones have the sink's shape, the compactor exactly the columns that the new shard carries.
    """
    event = shape.version.event
    landed = [(m.name, written_type(m.encoding), "") for m in event.members] if event else []
    hours = [
        ("incremental", target.incremental_table(hour), landed, place) for hour, place in sorted(run.increments.items())
    ]
    tables = (
        ("base", target.base, stored_columns(shape, run.present), run.base),
        *hours,
        ("compactor", target.compactor, physical_columns(shape), run.compactor),
    )
    return tuple(
        _external(
            template,
            name=qualified(target.database, name, dialect),
            columns=columns,
            location=location,
            properties={PER_RUN: target.table},
            dialect=dialect,
        )
        for template, name, columns, location in tables
    )


def stored_columns(shape: Shape, present: frozenset[str]) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of every column that files of any version of the table may carry."""
    row = ((c.name, c.type, "") for c in shape.layout.columns if c.name in present)
    return (*row, *((c.name, c.type, c.comment) for c in meta_columns(shape.envelope)))


def fold(
    target: TableTarget,
    shape: Shape,
    *,
    segment_versions: frozenset[int],
    deltas: Sequence[str],
    present: frozenset[str],
    purge_before_ms: int,
    dialect: Dialect,
    witnesses: Sequence[str] = (),
) -> Statement:
    """Select what the new shard holds: the newest row per key of base and deltas, projected to the newest version.

    Four flags stand beside the columns: the key was alive in the base; a delta has the key; the row itself comes from
    a delta; the row is a tombstone that may go. ``witnesses`` are folded deltas that are still registered: a tombstone
    stays while one of them has its key, or an older event there would show again.
    """
    source = row_source(shape, segment_versions)
    segment = quote_identifier(SEGMENT, dialect)
    stored = [quote_identifier(name, dialect) for name, _, _ in stored_columns(shape, present)]
    base = f"(t.{segment} = 'base')"
    values = {
        "columns": _folded(shape, source, dialect),
        "keys": list(key_expressions(source, dialect)),
        "order_by": list(order_by(shape.envelope, dialect)),
        "op": f"t.{quote_identifier(OP, dialect)}",
        "admitted": f"t.{quote_identifier(ADMITTED_MS, dialect)}",
        "base": base,
        "delta": f"({_among(f't.{segment}', deltas, dialect)})" if witnesses else f"NOT {base}",
        "purge_before": purge_before_ms,
        "segment": segment,
        "stored": stored,
        "sources": [
            {"table": qualified(target.database, target.base, dialect), "segment": "'base'", "filter": ""},
            {
                "table": qualified(target.database, target.table, dialect),
                "segment": segment,
                "filter": _among(segment, (*deltas, *witnesses), dialect),
            },
        ],
    }
    return Statement(template="fold", values=values)


def _among(column: str, names: Sequence[str], dialect: Dialect) -> str:
    listed = ", ".join(quote_string(name, dialect) for name in names)
    return f"{column} IN ({listed})" if names else "FALSE"


def _folded(shape: Shape, source: RowSource, dialect: Dialect) -> list[dict[str, str]]:
    row = [(shape.layout.current(c).name, column_sql(source, c, dialect)) for c in shape.columns]
    meta = [(c.name, f"t.{quote_identifier(c.name, dialect)}") for c in meta_columns(shape.envelope)]
    version = f"CAST({shape.version.version} AS INT)"
    columns = row + [(name, version if name == SCHEMA_VERSION else sql) for name, sql in meta]
    return [{"name": quote_identifier(name, dialect), "expression": sql} for name, sql in columns]
