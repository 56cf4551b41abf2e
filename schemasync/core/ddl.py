"""Statements, decided: which template, with which values. Every name and literal is quoted here, once.

Used by plan, apply, ddl and the compaction. The same schema and configuration always give the same values, and so
the same bytes of DDL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from schemasync.core.defaults import null_sql
from schemasync.core.history_table import COLUMNS as HISTORY_COLUMNS
from schemasync.core.kept import NOTHING, Kept, shows, view_comment
from schemasync.core.keys import at_or_above, whole_number
from schemasync.core.layout import (
    ADMITTED_MS,
    OP,
    SCHEMA_VERSION,
    SEGMENT,
    TOMBSTONE,
    MetaColumn,
    PhysicalColumn,
    shown_metadata,
)
from schemasync.core.manifest import WORD, Contents, Names
from schemasync.core.mapping import TableTarget
from schemasync.core.migration import Question
from schemasync.core.names import Dialect, comment_text, free_name, quote_identifier, quote_string
from schemasync.core.ports import HiveColumn
from schemasync.core.properties import SUBJECT, TableProperties, write_properties
from schemasync.core.shape import Shape
from schemasync.core.sharding import KeyRange, ShardFold
from schemasync.core.toast import asked_placeholders, carried_columns, carried_partitions
from schemasync.core.type_strings import parse_type, print_type
from schemasync.core.types import Primitive, Type
from schemasync.core.unchanged import unchanged
from schemasync.core.view import RowSource, ViewColumn, key_expressions, order_by
from schemasync.core.written import written_type

VIEW: Final = "view"
"""The template of the statement that makes the dedup view."""
VIEW_BODY: Final = "view_body"
"""The template of the dedup view's SELECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A template's name (without dialect and ending) and the values that it lays out."""

    template: str
    values: Mapping[str, Any]


def qualified(database: str, name: str, dialect: Dialect) -> str:
    """Return ``database.name``, quoted."""
    return f"{quote_identifier(database, dialect)}.{quote_identifier(name, dialect)}"


def set_property(target: TableTarget, name: str, value: str) -> str:
    """Return the statement that gives a table this property; for people, who run it by hand."""
    key, text = (quote_string(part, Dialect.SPARK) for part in (name, value))
    return f"ALTER TABLE {qualified(target.database, target.table, Dialect.SPARK)} SET TBLPROPERTIES ({key} = {text})"


def physical_columns(shape: Shape) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of the long-lived table's data columns, for a table created now.

    Phases that ended before the present version have no files yet, so a new table does not get them.
    """
    row = ((c, column.doc) for column in shape.columns for c in (shape.layout.current(column),))
    return (
        *((c.name, c.type, comment_text(doc)) for c, doc in row),
        *((c.name, c.type, c.comment) for c in shape.own_columns),
    )


def expected_columns(shape: Shape) -> tuple[PhysicalColumn | MetaColumn, ...]:
    """Return the columns that files of the present version carry: each must be in the metastore's table."""
    return (*(shape.layout.current(c) for c in shape.columns), *shape.own_columns)


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
            "type": print_type(type_, dialect, declared=True),
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


def says_no_place(sql: str, database: str) -> bool:
    """Tell whether this makes a database and says no more of it, as the template that ships does; a user's may."""
    return sql == f"CREATE DATABASE IF NOT EXISTS {quote_identifier(database, Dialect.SPARK)}"


def create_table(target: TableTarget, shape: Shape, properties: TableProperties, dialect: Dialect) -> Statement:
    """Create the long-lived table."""
    return _external(
        "table",
        name=qualified(target.database, target.table, dialect),
        columns=physical_columns(shape),
        partitions=_partition_columns(shape),
        location=target.location,
        properties=write_properties(properties),
        comment=f"{target.subject}: query {target.view} instead, it shows {shows(shape)}",
        dialect=dialect,
    )


def _partition_columns(shape: Shape) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of what a table is partitioned by: the segment, then what users want."""
    return ((SEGMENT, *_SEGMENT_COLUMN), *((p.name, p.type, "") for p in shape.partitions))


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
    may_exist: bool = False,
) -> Statement:
    values = {
        "table": name,
        "may_exist": may_exist,
        "columns": _columns(columns, dialect),
        "partitions": _columns(partitions, dialect),
        "location": quote_string(location, dialect),
        "properties": _properties(properties or {}, dialect),
        "comment": quote_string(comment_text(comment), dialect) if comment else "",
    }
    return Statement(template=template, values=values)


def create_history(target: TableTarget, location: str, properties: Mapping[str, str]) -> Statement:
    """Create the table that people query for the past of this one; see `schemasync.core.history_table`."""
    return _external(
        "history",
        name=qualified(target.database, target.history, Dialect.SPARK),
        columns=HISTORY_COLUMNS,
        location=location,
        properties=properties,
        comment=f"which version of {target.subject} brought, changed and retired each column, and when",
        dialect=Dialect.SPARK,
    )


def move_history(target: TableTarget, location: str) -> Statement:
    """Let the history table be read from another directory."""
    name = qualified(target.database, target.history, Dialect.SPARK)
    return Statement(template="set_location", values={"table": name, "location": quote_string(location, Dialect.SPARK)})


def mark_history(target: TableTarget, properties: Mapping[str, str]) -> Statement:
    """Say on the history table what it was made from."""
    name = qualified(target.database, target.history, Dialect.SPARK)
    return Statement(
        template="set_properties", values={"table": name, "properties": _properties(properties, Dialect.SPARK)}
    )


def add_columns(target: TableTarget, columns: Sequence[HiveColumn]) -> Statement:
    """Append columns, typed as the metastore writes types, to the long-lived table."""
    typed = ((c.name, parse_type(c.type, Dialect.HIVE), c.comment) for c in columns)
    values = {
        "table": qualified(target.database, target.table, Dialect.SPARK),
        "columns": _columns(typed, Dialect.SPARK),
    }
    return Statement(template="add_columns", values=values)


def drop_table(database: str, name: str) -> Statement:
    """Drop an external table's definition; its files stay."""
    return Statement(template="drop_table", values={"table": qualified(database, name, Dialect.SPARK)})


def drop_view(database: str, name: str) -> Statement:
    """Drop a view's definition."""
    return Statement(template="drop_view", values={"view": qualified(database, name, Dialect.SPARK)})


MAP_JOIN: Final = {Dialect.SPARK: " /*+ MAPJOIN(k) */", Dialect.HIVE: "", Dialect.TRINO: ""}
"""Hive passes over the hint where Spark stored it, but itself stores a view without the signs of a comment."""


def view_body(target: TableTarget, shape: Shape, contents: Contents, dialect: Dialect) -> Statement:
    """Return the SELECT of the dedup view: the newest row per key of a state's segments, deletes left out.

    Where the base alone has it all, nothing is sorted. Where all changes are known to be newer than the base, it is
    read but for their keys, and only they are sorted; not even they where each segment of changes is newer than those
    before it: a row counts where no later segment has its key, and names of segments ascend. Then changes are read in
    one scan with the base: a union would hand on row by row what a scan alone hands to an aggregate as it is.
    Where the keys of the changes are too many for every task to hold, but lie close, tasks hold a bit for each: a join
    that shuffles the base takes several times as long. No query's range of keys reaches the changes then, and keys of
    several segments say nothing of which is newer.
    Where the text can name the keys of the changes, nothing is joined: there is one scan, of base and changes. Where it
    names their hashes, only rows that share one are joined, in a second scan.
    A join rather than NOT EXISTS, which Spark rewrites too late to push a query's range of keys down to the changes.
    """
    source = RowSource(shape=shape, segment_versions=contents.versions)
    placeholders = asked_placeholders(target, contents.placeholders)
    columns = (
        *carried_columns(source, contents.toasted, placeholders, dialect),
        *carried_partitions(source, contents.toasted, placeholders, dialect),
    )
    metadata = shown_metadata(shape.columns) if target.metadata else ()
    shown = [{"name": quote_identifier(c.name, dialect), "expression": c.expression} for c in columns]
    shown += [
        {"name": quote_identifier(name, dialect), "expression": f"t.{quote_identifier(column, dialect)}"}
        for name, column in metadata
    ]
    taken = {c.name for c in columns} | {name for name, _ in metadata}
    named = unchanged(target, shape, contents, dialect)
    keys = list(key_expressions(source, dialect))
    physical = [quote_identifier(name, dialect) for name, _ in shape.key_columns]
    values = {
        "table": qualified(target.database, target.table, dialect),
        "columns": shown,
        "op_alias": free_name("schemasync_op", taken),
        "rank_alias": free_name("schemasync_rank", taken),
        "keys": keys,
        "order_by": list(order_by(shape.envelope, dialect)),
        "op": f"t.{quote_identifier(OP, dialect)}",
        # Not by the operation: that is a text of each row to compare.
        "alive": f"t.{quote_identifier(TOMBSTONE, dialect)} IS NULL",
        "settled": contents.settled,
        "segments": of_segments(contents, dialect),
        # A key that stood in another column in older rows is not the one that changes were compared by.
        "ahead": contents.ahead and keys == [f"t.{name}" for name in physical],
        "untouched": _among_ranges("t", contents.untouched, dialect),
        "one_scan": _among_ranges("t", (*contents.base, *contents.deltas), dialect),
        "base": _among_ranges("t", contents.base, dialect),
        "deltas": _among_ranges("t", contents.deltas, dialect),
        "unchanged": () if named.hashes else named.conditions,
        "unhashed": named.conditions if named.hashes else (),
        "hashes": named.hashes,
    }
    return Statement(template=VIEW_BODY, values=values | _join(shape, contents, physical, dialect))


def _join(shape: Shape, contents: Contents, keys: Sequence[str], dialect: Dialect) -> dict[str, Any]:
    """Return how rows ``t`` are joined with the keys of the changes; ``keys`` are the quoted physical columns."""
    changed_keys = [f"d.{name} AS schemasync_key{n}" for n, name in enumerate(keys, start=1)]
    same_key = [f"k.schemasync_key{n} = t.{name}" for n, name in enumerate(keys, start=1)]
    deltas = sorted({name for names in contents.deltas for name in names})
    several, last = len(deltas) > 1, quote_string(deltas[-1] if deltas else "", dialect)
    packed = _packed(shape, contents, dialect)
    ascending = contents.ascending and packed is None
    if several and ascending:
        segment = quote_identifier(SEGMENT, dialect)
        changed_keys.append(f"d.{segment} AS schemasync_segment")
        same_key.append(f"t.{segment} < k.schemasync_segment")
    return {
        "several": several,
        "ascending": ascending,
        "hint": MAP_JOIN[dialect] if contents.few else "",
        "changed": _among_ranges("d", contents.deltas, dialect),
        # Under names of their own, as nothing but them may be seen there: a column of the table may be called t.
        "changed_keys": ", ".join(changed_keys),
        "same_key": " AND ".join(same_key),
        "packed": packed,
        "before_last": f"t.{quote_identifier(SEGMENT, dialect)} < {last}",
        # All its rows count. With IS NULL alone Hive 4 makes an anti join, and forgets what is asked of t alone.
        "last_delta": _among_ranges("t", [(name, name) for name in deltas[-1:]], dialect),
    }


def _packed(shape: Shape, contents: Contents, dialect: Dialect) -> dict[str, str] | None:
    """Return how keys of changes are joined as bits of words, None where they are not.

    By sums and quotients of powers, exact as a word has fewer bits than a double: all that reads the text knows these.
    What Trino reads Hive's views with knows no operators of bits, its older way no functions of Hive's. A power is a
    product of cases: with ``pow`` an aggregate over six million rows took Spark 3.5.9 a third longer.
    """
    column = whole_number(shape.key_columns)
    if not contents.packed or column is None:
        return None
    key = quote_identifier(column, dialect)
    bits = {alias: f"(({alias}.{key} % {WORD} + {WORD}) % {WORD})" for alias in "dt"}
    return {
        "word": f"d.{key} - {bits['d']}",
        "bit": bits["d"],
        "power": _power_of_two("w.schemasync_bit"),
        "same_word": f"k.schemasync_word = t.{key} - {bits['t']}",
        "unset": f"floor(k.schemasync_bits / ({_power_of_two(bits['t'])})) % 2 = 0",
        "hint": MAP_JOIN[dialect],
    }


def _power_of_two(exponent: str) -> str:
    """Return 2 to the power of a whole number from 0 to below `WORD`, as a bigint."""
    places = [1 << n for n in reversed(range((WORD - 1).bit_length()))]
    cases = (f"CASE WHEN {exponent} % {2 * place} >= {place} THEN {1 << place} ELSE 1 END" for place in places)
    return " * ".join(("CAST(1 AS BIGINT)", *cases))


def of_segments(contents: Contents, dialect: Dialect) -> str:
    """Return the condition that a row ``t`` is of a state's segments, empty where nothing is known of a state."""
    if not contents.segments:
        return "FALSE" if contents.known else ""
    return _among_ranges("t", contents.segments, dialect)


def _among_ranges(alias: str, ranges: Sequence[Names], dialect: Dialect) -> str:
    segment = f"{alias}.{quote_identifier(SEGMENT, dialect)}"
    found = [_between(segment, first, last, dialect) for first, last in ranges]
    return " OR ".join(found) if len(found) < 2 else f"({' OR '.join(found)})"


def _between(column: str, first: str, last: str, dialect: Dialect) -> str:
    low, high = quote_string(first, dialect), quote_string(last, dialect)
    return f"{column} = {low}" if first == last else f"{column} BETWEEN {low} AND {high}"


def count_misfits(target: TableTarget, questions: Sequence[Question], contents: Contents) -> Statement:
    """Count the values that do not fit, one number per question; Spark's SQL only."""
    values = {
        "table": qualified(target.database, target.table, Dialect.SPARK),
        "segments": of_segments(contents, Dialect.SPARK),
        "predicates": [_of_versions(question) for question in questions],
    }
    return Statement(template="count_misfits", values=values)


def show_misfits(target: TableTarget, question: Question, contents: Contents, most: int) -> Statement:
    """Select some of the values that do not fit, as text; Spark's SQL only."""
    values = {
        "table": qualified(target.database, target.table, Dialect.SPARK),
        "segments": of_segments(contents, Dialect.SPARK),
        "predicate": _of_versions(question),
        "value": question.value,
        "most": most,
    }
    return Statement(template="show_misfits", values=values)


def count_unkeyed(
    target: TableTarget,
    current: Shape,
    desired: Shape,
    contents: Contents,
    *,
    present: AbstractSet[str],
) -> Statement:
    """Count live rows that have no value in the desired key, and those that share it with another; Spark's SQL only.

    ``present`` are the table's columns: a key column of the same version is not among them yet.
    """
    before, after = (RowSource(shape=s, segment_versions=contents.versions) for s in (current, desired))
    physical = (desired.layout.current(c) for c in desired.columns if c.name in desired.keys)
    missing = (c for c in physical if c.name not in present)
    values = {
        "table": qualified(target.database, target.table, Dialect.SPARK),
        "segments": of_segments(contents, Dialect.SPARK),
        "missing": [f"{null_sql(c.type, Dialect.SPARK)} AS {quote_identifier(c.name, Dialect.SPARK)}" for c in missing],
        "keys": list(key_expressions(after, Dialect.SPARK)),
        "old_keys": list(key_expressions(before, Dialect.SPARK)),
        "order_by": list(order_by(current.envelope, Dialect.SPARK)),
        "op": f"t.{quote_identifier(OP, Dialect.SPARK)}",
    }
    return Statement(template="count_unkeyed", values=values)


def _of_versions(question: Question) -> str:
    version = quote_identifier(SCHEMA_VERSION, Dialect.SPARK)
    return f"t.{version} IN ({', '.join(map(str, question.versions))}) AND {question.predicate}"


def shown_columns(target: TableTarget, shape: Shape, kept: Kept = NOTHING) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of what the view shows."""
    row = ((c.name, c.type, kept.comments.get(c.name, comment_text(c.doc))) for c in shape.columns)
    metadata = shown_metadata(shape.columns) if target.metadata else ()
    partitions = ((p.name, p.type, "") for p in shape.partitions)
    own = {c.name: (c.type, c.comment) for c in shape.own_columns} | {SEGMENT: _SEGMENT_COLUMN}
    return (*row, *partitions, *((name, *own[physical]) for name, physical in metadata))


_SEGMENT_COLUMN: Final = (Primitive.STRING, "base_*: shards; delta_*: changes admitted since")


def _documented(shape: Shape) -> frozenset[str]:
    """Return the columns that had a doc in any version: Spark gives a view the comments of the table's columns."""
    had = {c.life for v in shape.history.versions for c in v.columns if c.doc}
    return frozenset(c.name for c in shape.columns if c.life in had)


def create_view(target: TableTarget, shape: Shape, body: str, dialect: Dialect, kept: Kept = NOTHING) -> Statement:
    """Create or replace the dedup view around a rendered body; ``kept`` is what people wrote on the one before."""
    comment = kept.comment or view_comment(shape, target.full_name)
    documented = _documented(shape)
    values = {
        "view": qualified(target.database, target.view, dialect),
        "columns": [
            {
                "name": quote_identifier(name, dialect),
                "comment": quote_string(comment, dialect) if comment or name in documented else "",
            }
            for name, _, comment in shown_columns(target, shape, kept)
        ],
        "comment": quote_string(comment, dialect),
        "properties": _properties({**kept.properties, SUBJECT: target.subject}, dialect),
        "body": body,
    }
    return Statement(template=VIEW, values=values)


PER_RUN: Final = "schemasync.per_run_of"
"""Marks the tables of one compaction with the long-lived table that they are for: what carries it may be dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerRun:
    """Where one compaction's tables lie: the base (which has no rows), the hours that it folds, the new shards."""

    base: str
    compactor: str
    increments: Mapping[str, str]
    """Hour (yyyyMMddHH) -> location."""
    present: frozenset[str]
    """Columns of the long-lived table: phases that were never needed, or that were removed, are not among them."""


def per_run_tables(target: TableTarget, shape: Shape, run: PerRun, dialect: Dialect) -> tuple[Statement, ...]:
    """Create the tables of one compaction from the newest schema, for people to look at while it runs.

    The base table declares every phase of every column: its files may be of any earlier version. The incremental
    ones have the sink's shape, the compactor exactly the columns that the new shard carries. Another run may have made
    them a moment ago, or drop them: `fold` reads none of them.
    """
    event = shape.version.event
    landed = [(m.name, written_type(m.encoding), "") for m in event.members] if event else []
    hours = [
        ("incremental", target.incremental_table(hour), landed, place, ())
        for hour, place in sorted(run.increments.items())
    ]
    tables = (
        ("base", target.base, stored_columns(shape, run.present), run.base, _partition_columns(shape)),
        *hours,
        ("compactor", target.compactor, physical_columns(shape), run.compactor, ()),
    )
    return tuple(
        _external(
            template,
            name=qualified(target.database, name, dialect),
            columns=columns,
            partitions=partitions,
            location=location,
            properties={PER_RUN: target.table},
            dialect=dialect,
            may_exist=True,
        )
        for template, name, columns, location, partitions in tables
    )


def stored_columns(shape: Shape, present: frozenset[str]) -> tuple[tuple[str, Type, str], ...]:
    """Return (name, type, comment) of every column that files of any version of the table may carry."""
    row = ((c.name, c.type, "") for c in shape.layout.columns if c.name in present)
    return (*row, *((c.name, c.type, c.comment) for c in shape.own_columns))


def fold(
    target: TableTarget,
    shape: Shape,
    shard: ShardFold,
    *,
    segment_versions: frozenset[int],
    present: frozenset[str],
    purge_before_ms: int,
    toasted: AbstractSet[str] = frozenset(),
    placeholders: AbstractSet[str | None] = frozenset(),
    next_keys: Collection[str] | None = None,
) -> Statement:
    """Select what a new shard holds: the newest row per key of base and deltas, projected to the newest version.

    Four flags stand beside the columns: the key was alive in the base; a delta has the key; the row itself comes from
    a delta; the row is a tombstone that may go. Then how many rows the key had: all that were read add up to those that
    the manifest lists, if the metastore has all partitions.

    A tombstone may go if no delta has its key, or if it has none: only the old key's columns are known of a delete.
    ``next_keys`` are of `schemasync.core.compaction.FoldPlan`. Spark's SQL only.
    """
    source = RowSource(shape=shape, segment_versions=segment_versions)
    columns = carried_columns(source, toasted, asked_placeholders(target, placeholders), Dialect.SPARK)
    segment = quote_identifier(SEGMENT, Dialect.SPARK)
    inside = _inside(shape, shard.keys)
    stored = [quote_identifier(name, Dialect.SPARK) for name, _, _ in stored_columns(shape, present)]
    base = f"(t.{segment} = 'base')"
    values = {
        "columns": _folded(shape, columns),
        "keys": list(key_expressions(source, Dialect.SPARK)),
        "order_by": list(order_by(shape.envelope, Dialect.SPARK)),
        "op": f"t.{quote_identifier(OP, Dialect.SPARK)}",
        "admitted": f"t.{quote_identifier(ADMITTED_MS, Dialect.SPARK)}",
        "base": base,
        "delta": f"NOT {base}",
        "purge_before": purge_before_ms,
        "rekeyed": next_keys is not None,
        "next_keys": [
            f"r.{quote_identifier(shape.layout.current(c).name, Dialect.SPARK)}"
            for c in shape.columns
            if c.name in (next_keys or ())
        ],
        "written_op": f"r.{quote_identifier(OP, Dialect.SPARK)}",
        "segment": segment,
        "stored": stored,
        "table": qualified(target.database, target.table, Dialect.SPARK),
        "sources": [
            {"segment": "'base'", "filter": _among(segment, [s.name for s in shard.rewrite]) + inside},
            {"segment": segment, "filter": _among(segment, [s.name for s in shard.deltas]) + inside},
        ],
    }
    return Statement(template="fold", values=values)


def _inside(shape: Shape, keys: KeyRange) -> str:
    """Return the further condition that a row's key lies in a range."""
    columns = shape.key_columns
    low = "" if keys.low is None else f" AND {at_or_above(columns, keys.low)}"
    return low if keys.high is None else f"{low} AND NOT {at_or_above(columns, keys.high)}"


def _among(column: str, names: Sequence[str]) -> str:
    listed = ", ".join(quote_string(name, Dialect.SPARK) for name in names)
    return f"{column} IN ({listed})" if names else "FALSE"


def _folded(shape: Shape, columns: Iterable[ViewColumn]) -> list[dict[str, str]]:
    row = [(shape.layout.current(c).name, v.expression) for c, v in zip(shape.columns, columns, strict=True)]
    meta = [(c.name, f"t.{quote_identifier(c.name, Dialect.SPARK)}") for c in shape.own_columns]
    rewritten = {SCHEMA_VERSION: f"CAST({shape.version.version} AS INT)"}
    found = row + [(name, rewritten.get(name, sql)) for name, sql in meta]
    return [{"name": quote_identifier(name, Dialect.SPARK), "expression": sql} for name, sql in found]
