"""Where the metastore is no longer as schemasync left it: what differs, and which repairs that asks for.

Pure: whoever looked hands in what was found. Findings compare with what was left under the version that the table has,
repairs lead to the version that it gets; so what a person changed is named also when the next version comes at the
same moment. Planning turns the repairs into steps, status shows the findings.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from schemasync.core import ddl, spark_schema
from schemasync.core.amounts import many
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.locations import Location, parse_location, without_empty_names
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect
from schemasync.core.partitioning import segment_of
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable
from schemasync.core.properties import SCHEMA_ID, SUBJECT, TableProperties, write_properties
from schemasync.core.shape import Shape
from schemasync.core.type_strings import parse_type
from schemasync.errors import SchemaError

DRIFT: Final = frozenset({"SS202", "SS203", "SS204", "SS205", *(f"SS{n}" for n in range(207, 215)), "SS216"})
"""Diagnostics that say that the metastore, or a data file, is not as schemasync left it."""

_HADOOP: Final = "org.apache.hadoop.hive.ql.io.parquet"
PARQUET: Final = (
    f"{_HADOOP}.MapredParquetInputFormat",
    f"{_HADOOP}.MapredParquetOutputFormat",
    f"{_HADOOP}.serde.ParquetHiveSerDe",
)
"""What ``STORED AS PARQUET`` means: input format, output format, serde."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a state in force wants its partitions: locations by name, and what their files carry.

    ``passing`` are segments of earlier states that are still registered and will go by themselves.
    """

    root: str
    locations: Mapping[str, str]
    carried: Mapping[str, tuple[str, ...]]
    passing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What one look found. ``missing`` columns are to be appended; the reasons say why each repair is needed.

    ``columns`` asks for the table's and partitions' columns to be set to ``wanted``, ``table`` for its kind, location
    and formats, ``partitions`` for the partitions to be those of the state, ``properties`` for ours to be written
    again.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    missing: tuple[HiveColumn, ...] = ()
    wanted: tuple[HiveColumn, ...] = ()
    columns: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the metastore has: a table of ours with its partitions, and what schemasync knows of it.

    ``current`` is the shape that it was left in, ``effective`` the one that it will have; ``placed`` is None where the
    state in force is not known.
    """

    table: HiveTable
    partitions: Mapping[str, HivePartition]
    properties: TableProperties
    current: Shape
    effective: Shape
    placed: Placed | None


def table_drift(found: Found) -> Drift:
    """Compare a table of ours and its partitions with what schemasync left."""
    lost = _lost(found)
    wanted = (*_retyped(found), *lost)
    parts = (
        _column_drift(found, lost),
        _partition_column_drift(found, wanted),
        _spark_drift(found),
        _definition_drift(found),
        partition_drift(found.table, found.partitions, found.placed),
        _property_drift(found),
    )
    return _joined(parts, wanted)


def _joined(parts: Sequence[Drift], wanted: tuple[HiveColumn, ...]) -> Drift:
    return Drift(
        diagnostics=tuple(d for part in parts for d in part.diagnostics),
        missing=tuple(c for part in parts for c in part.missing),
        wanted=wanted,
        columns=tuple(r for part in parts for r in part.columns),
        table=tuple(r for part in parts for r in part.table),
        partitions=tuple(r for part in parts for r in part.partitions),
        properties=tuple(r for part in parts for r in part.properties),
    )


def _retyped(found: Found) -> Iterator[HiveColumn]:
    """Yield the table's columns with the types that they should have: order, comments and foreign columns stay."""
    types = {c.name: c.type for c in _needed(found.effective)}
    for column in found.table.columns:
        yield replace(column, type=_kept_or(column.type, types.get(column.name.lower(), column.type)))


def _lost(found: Found) -> tuple[HiveColumn, ...]:
    carried = {name for names in found.placed.carried.values() for name in names} if found.placed else set()
    return lost_columns(found.table, found.current, carried)


def lost_columns(table: HiveTable, current: Shape, carried: Container[str]) -> tuple[HiveColumn, ...]:
    """Return the columns that a table had and lacks: also those that only files of earlier versions carry."""
    earlier = (ddl.hive_column(c) for c in current.layout.columns if c.name in carried)
    had = {c.name: c for c in (*_needed(current), *earlier)}
    actual = {c.name.lower() for c in table.columns}
    return tuple(c for name, c in had.items() if name not in actual)


def _kept_or(actual: str, wanted: str) -> str:
    return actual if same_type(actual, wanted) else wanted


def _needed(shape: Shape) -> tuple[HiveColumn, ...]:
    return tuple(ddl.hive_column(c) for c in ddl.expected_columns(shape))


def same_type(actual: str, wanted: str) -> bool:
    """Tell whether two Hive type strings are one type."""
    if actual == wanted:
        # Nearly always, and every column of every partition is compared.
        return True
    try:
        return parse_type(actual, Dialect.HIVE) == parse_type(wanted, Dialect.HIVE)
    except SchemaError:
        return actual.lower() == wanted.lower()


def _name(table: HiveTable) -> str:
    return f"{table.database}.{table.name}"


def _column_drift(found: Found, lost: Sequence[HiveColumn]) -> Drift:
    actual = {c.name.lower(): c for c in found.table.columns}
    needed = _needed(found.effective)
    wrong = [c for c in needed if c.name in actual and not same_type(actual[c.name].type, c.type)]
    there = actual.keys() | {c.name for c in lost}
    reasons = (("the types of {}, which were altered by hand", wrong), ("{}, which someone dropped", lost))
    return Drift(
        diagnostics=tuple(_column_findings(found, actual, lost, wrong)),
        missing=tuple(c for c in needed if c.name not in there),
        columns=tuple(reason.format(_names(columns)) for reason, columns in reasons if columns),
    )


def _names(columns: Sequence[HiveColumn]) -> str:
    return ", ".join(c.name for c in columns)


def _column_findings(
    found: Found, actual: Mapping[str, HiveColumn], lost: Sequence[HiveColumn], wrong: Sequence[HiveColumn]
) -> Iterator[Diagnostic]:
    name = _name(found.table)
    if lost:
        yield diagnose("SS202", f"{name} lacks {_names(lost)}")
    if wrong:
        yield diagnose("SS204", "; ".join(f"{name}.{c.name} is {actual[c.name].type}, not {c.type}" for c in wrong))
    shapes = (found.current, found.effective)
    ours = {c.name for shape in shapes for c in (*ddl.expected_columns(shape), *shape.layout.columns)}
    if foreign := sorted(actual.keys() - ours):
        yield diagnose("SS205", f"{name} has {', '.join(foreign)}, which schemasync did not add")


def _partition_column_drift(found: Found, wanted: Sequence[HiveColumn]) -> Drift:
    """Compare by position, as Hive does: a partition may end earlier, if its files carry nothing of what follows."""
    carried = found.placed.carried if found.placed else {}
    wrong = []
    for segment, partition in sorted(found.partitions.items()):
        if reason := _unlike(partition.columns, wanted, carried.get(segment, ())):
            wrong.append(f"{segment} {reason}")
    if not wrong:
        return Drift()
    listed = "; ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
    return Drift(
        diagnostics=(diagnose("SS207", f"{_name(found.table)}: partition {listed}"),),
        columns=(f"the columns of {many(len(wrong), 'partition')}, which Hive reads by position",),
    )


_SHOWN: Final = 3
"""How many of many places a message names."""


def _unlike(columns: Sequence[HiveColumn], wanted: Sequence[HiveColumn], carried: Sequence[str]) -> str:
    for position, (actual, column) in enumerate(zip(columns, wanted, strict=False), start=1):
        if actual.name.lower() != column.name.lower() or not same_type(actual.type, column.type):
            there = f"{actual.name} {actual.type}"
            return f"has {there} where the table has {column.name} {column.type} (column {position})"
    if len(columns) > len(wanted):
        return f"has {columns[len(wanted)].name}, which the table lacks"
    undeclared = set(carried) - {c.name.lower() for c in columns}
    behind = [c.name for c in wanted if c.name.lower() in undeclared]
    return f"lacks {', '.join(behind)}, which its files carry" if behind else ""


def _spark_drift(found: Found) -> Drift:
    table = found.table
    reason = spark_schema.disagreement(table.properties, table.columns, table.partition_keys)
    if not reason:
        return Drift()
    finding = diagnose("SS208", f"{_name(table)}, {spark_schema.PREFIX}: {reason}")
    return Drift(diagnostics=(finding,), columns=("Spark's copy of the schema, which is not what Hive has",))


def _definition_drift(found: Found) -> Drift:
    """Compare what kind of table it is, where it stands, and how its files are read."""
    table, name = found.table, _name(found.table)
    findings = []
    if reason := table.purges:
        findings.append(diagnose("SS211", f"{name} {reason}: DROP TABLE would delete its data"))
    if found.placed is not None and not same_place(table.location, found.placed.root):
        findings.append(diagnose("SS212", f"{name} points to {table.location}, its data is in {found.placed.root}"))
    odd = sorted(segment for segment, p in found.partitions.items() if p.formats and p.formats != PARQUET)
    for where, formats in ((name, table.formats), *((f"{name}, {s}", found.partitions[s].formats) for s in odd[:1])):
        if formats and formats != PARQUET:
            other = next(a for a, wanted in zip(formats, PARQUET, strict=True) if a != wanted)
            findings.append(diagnose("SS213", f"{where} is read by {other.rpartition('.')[2]}, not as Parquet"))
    return Drift(diagnostics=tuple(findings), table=tuple(f.message for f in findings))


def same_place(one: str, other: str) -> bool:
    """Tell whether two locations are one: Hadoop writes ``file:/x``, URIs ``file:///x``."""
    return _plain(one) == _plain(other)


def is_table_of(found: HiveTable, target: TableTarget) -> bool:
    """Tell whether a table is that of a target: of its subject, and where the configuration has it."""
    return found.properties.get(SUBJECT) == target.subject and same_place(found.location, target.location)


def _plain(location: str) -> Location:
    return parse_location(without_empty_names(location))


def partition_drift(table: HiveTable, actual: Mapping[str, HivePartition], placed: Placed | None) -> Drift:
    """Compare the partitions of a table with those of the state in force; columns do not count."""
    if placed is None:
        return Drift()
    missing = sorted(placed.locations.keys() - actual.keys())
    moved = sorted(
        s for s, place in placed.locations.items() if s in actual and not same_place(actual[s].location, place)
    )
    others = actual.keys() - placed.locations.keys()
    strange = sorted(name for name in others if segment_of(name) not in placed.passing)
    said = (
        ("is missing", missing),
        ("points elsewhere", moved),
        ("is none of the state in force", strange),
    )
    reasons = tuple(
        f"{', '.join(names[:_SHOWN])}{'...' * (len(names) > _SHOWN)} {what}" for what, names in said if names
    )
    if not reasons:
        return Drift()
    finding = diagnose("SS209", f"{_name(table)}: partition {'; '.join(reasons)}")
    return Drift(diagnostics=(finding,), partitions=reasons)


def _property_drift(found: Found) -> Drift:
    table = found.table
    derived = {SCHEMA_ID: str(found.current.version.schema_id)}
    wanted = write_properties(found.properties) | derived
    edited = sorted(k for k, v in wanted.items() if table.properties.get(k) != v)
    if not edited:
        return Drift()
    shown = ", ".join(f"{k} is {table.properties.get(k)!r}, not {wanted[k]!r}" for k in edited)
    return Drift(diagnostics=(diagnose("SS214", f"{_name(table)}: {shown}"),), properties=tuple(edited))
