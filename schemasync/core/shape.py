"""A table under one version of its subject, worked out: columns with variants and kept ones, keys, user partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from schemasync.core.avro import read_value_schema
from schemasync.core.canonical import fingerprint
from schemasync.core.diagnostics import TAKEN_BY_NOW, UNFIT_BY_NOW, Diagnostic, diagnose
from schemasync.core.diff import retypes
from schemasync.core.encoding import lives
from schemasync.core.envelope import compared_as_text, inside_row, listed_columns, may_be_clock
from schemasync.core.history import History, read_history
from schemasync.core.layout import METADATA, Layout, MetaColumn, lay_out, meta_columns, shown_metadata
from schemasync.core.locations import parse_location
from schemasync.core.mapping import TableTarget
from schemasync.core.names import MAX_NAME, MAX_TYPE, Dialect, TakenNames, folded, utf16_length
from schemasync.core.partitioning import PartitionColumn, parse_partition, resolve, unusable_name
from schemasync.core.ports import RegisteredSchema
from schemasync.core.schema import Column, Envelope, EnvelopeKind, Life, OrderingField, SubjectVersion, TableSchema
from schemasync.core.sharding import has_ranges
from schemasync.core.type_strings import print_type
from schemasync.core.types import Array, Map, Struct, Type
from schemasync.core.written import written_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A table under one version, worked out: all that DDL, view, admission and compaction ask."""

    history: History
    version: SubjectVersion
    layout: Layout
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    envelope: Envelope
    fill_defaults: bool
    partitions: tuple[PartitionColumn, ...] = ()
    """The user partitions, beside the segment."""
    keeps: bool = False
    """Whether columns are shown that were dropped."""

    @property
    def own_columns(self) -> tuple[MetaColumn, ...]:
        """Our own columns, beside the row's."""
        return meta_columns(self.envelope)

    @property
    def key_columns(self) -> tuple[tuple[str, Type], ...]:
        """(name, type) of the physical columns of the key, in its order."""
        by_name = {c.name: c for c in self.columns}
        found = (self.layout.current(by_name[key]) for key in self.keys)
        return tuple((c.name, c.type) for c in found)

    @property
    def columns_hash(self) -> str:
        """Hash of which physical column each column of the version stands in."""
        return fingerprint([[c.name.lower(), self.layout.current(c).name] for c in self.version.columns])

    @property
    def lives_hash(self) -> str:
        """Hash of what tells each column of the version, and all that is inside of it, from others of its name."""
        columns = self.version.columns
        return fingerprint([[c.name.lower(), c.life.name, c.life.since, lives(c.encoding)] for c in columns])

    @property
    def schema(self) -> TableSchema:
        """The side of a diff that this shape is."""
        return TableSchema(columns=self.columns, keys=self.keys, envelope=self.envelope)


def shape_of(
    target: TableTarget,
    history: History,
    version: SubjectVersion,
    *,
    key: tuple[str, ...] | None,
    baseline: int,
    ordering: tuple[OrderingField, ...] | None = None,
    made_with: tuple[tuple[str, str], ...] = (),
) -> tuple[Shape, tuple[Diagnostic, ...]]:
    """Work out the table under one version of its history, and what is wrong or remarkable about it.

    ``ordering`` is that of a table which goes on with what it has; None: what the version's events carry.
    ``made_with`` are (name, expression) the user partitions of a table that is there.
    """
    layout = lay_out(history, baseline=baseline, version=version.version)
    columns = tuple(_with_variants(target, history, layout, version.columns))
    kept = _kept(target, history, layout, columns) if target.policies.drop == "keep" else ()
    columns = (*columns, *kept)
    envelope = version.envelope if ordering is None else replace(version.envelope, ordering=ordering)
    keys, problems = _keys(target, version.columns, envelope, key)
    shape = Shape(
        history=history,
        version=version,
        layout=layout,
        columns=columns,
        keys=keys,
        envelope=envelope,
        fill_defaults=target.policies.add != "null",
        keeps=bool(kept),
    )
    partitions, unfit = _partitions(target, shape, made_with)
    shape = replace(shape, partitions=partitions)
    return shape, (*problems, *unfit, *_remarks(target, shape))


def shape_of_new(
    target: TableTarget, history: History, version: SubjectVersion, *, key: tuple[str, ...] | None
) -> tuple[Shape, tuple[Diagnostic, ...]]:
    """Work out a table that is yet to be made, as `shape_of`.

    Made without a key, it never gets one; made with an order by the row of wrapped events, it never gets another.
    """
    shape, problems = shape_of(target, history, version, key=key, baseline=version.version)
    if shape.envelope.row is not None:
        problems = tuple(diagnose("SS403", p.message, fix=p.fix) if p.code == "SS423" else p for p in problems)
    if key == () and not shape.keys and not target.insert_only:
        message = f"{target.key_source} names no column of the rows: which of them are the key is not known"
        problems = (*(p for p in problems if p.code != "SS401"), diagnose("SS402", message, fix=_NAME_KEY))
    return shape, problems


_NAME_KEY: Final = (
    "Set keys: to the columns that tell rows apart, or insert_only: true where each event is to be a row."
)


def _partitions(
    target: TableTarget, shape: Shape, made_with: tuple[tuple[str, str], ...]
) -> tuple[tuple[PartitionColumn, ...], tuple[Diagnostic, ...]]:
    """Return the user partitions under one version, and what is wrong with the others."""
    found, problems = [], []
    taken = {name for c in shape.columns for name in (c.name, shape.layout.current(c).name)}
    for name, expression in target.partition_by:
        fix = UNFIT_BY_NOW if (name, expression) in made_with else ""
        try:
            if reason := unusable_name(name, taken):
                fix = TAKEN_BY_NOW.format(name) if fix else ""
                raise ValueError(reason)
            parsed = parse_partition(name, expression)
            found.append(resolve(parsed, shape.columns, lambda column: shape.layout.current(column).name))
        except ValueError as error:
            where = f"{target.full_name}, partition {name}"
            problems.append(diagnose("SS416", f"{where}: {error}", fix=fix))
    return tuple(found), tuple(problems)


def _remarks(target: TableTarget, shape: Shape) -> Iterator[Diagnostic]:
    """Say what a table's names and types come to in the metastore, where that is not simply what they are."""
    table = target.full_name
    if target.metadata:
        for (wanted, _), (name, _) in zip(METADATA, shown_metadata(shape.columns), strict=True):
            if name != wanted:
                yield diagnose("SS412", f"{target.database}.{target.view} shows our {wanted} as {name}")
    for column in shape.columns:
        if (length := utf16_length(column.name)) > MAX_NAME:
            yield diagnose("SS413", f"{table}: the name {column.name[:40]}... has {length} characters")
        if not print_type(column.type, Dialect.SPARK).isascii():
            yield diagnose(
                "SS415", f"{table}: a field inside column {column.name} has letters beyond ASCII in its name"
            )
    if lists := listed_columns(shape.version.columns):
        yield diagnose("SS420", f"{target.subject}: the columns of its rows are in {' and '.join(lists)}")
    for where, name, length in _long_types(target, shape):
        yield diagnose("SS414", f"{where}: the type of {name} is a text of {length} characters")
    for path in compared_as_text(shape.envelope.ordering):
        message = f"{table}: {path}, which orders events, is compared as text, byte by byte: '10' is before '9'"
        yield diagnose("SS418", message)


def _long_types(target: TableTarget, shape: Shape) -> Iterator[tuple[str, str, int]]:
    """Yield (table, column, length) of types longer than `MAX_TYPE`, also of those in a compaction's own table."""
    columns = {c.name: c.type for c in shape.columns}
    hourly = f"{target.database}.{target.incremental_table('yyyyMMddHH')}"
    event = shape.version.event if _may_be_folded_by_sql(target, shape) else None
    landed = [(hourly, m.name, written_type(m.encoding)) for m in event.members] if event else []
    for where, name, type_ in (
        *((target.full_name, name, type_) for name, type_ in columns.items()),
        *(found for found in landed if found[1] not in columns),
    ):
        if (length := utf16_length(print_type(type_, Dialect.SPARK))) > MAX_TYPE:
            yield where, name, length


def _may_be_folded_by_sql(target: TableTarget, shape: Shape) -> bool:
    """Tell whether settings or keys let each compaction make tables of its own; see `schemasync.app.folding.is_by_sql`.

    The first one after a key was widened does, too, which only the state of the base tells.
    """
    keys = [(c.name, c.type) for c in shape.columns if c.name in shape.keys]
    return (
        target.compaction.kernel == "spark"
        or target.policies.key == "rebuild"
        or not has_ranges(keys, ())
        or not parse_location(target.location).is_of_arrow
    )


def of_wider_key(target: TableTarget, shape: Shape, source_key: Sequence[str]) -> Iterator[Diagnostic]:
    """Notice columns of the table's key that are not in the source's: a delete may have no value there.

    ``source_key`` are the fields of the key subject, none where these are not known; of events that
    `has_partial_deletes`.
    """
    known = {folded(name) for name in source_key}
    more = [name for name in shape.keys if folded(name) not in known]
    if known and more:
        message = f"{target.full_name}: deletes may lack {', '.join(more)}, which {target.key_subject} has not"
        yield diagnose("SS424", message)


def version_of(target: TableTarget, registered: RegisteredSchema, *, past: bool = False) -> SubjectVersion:
    """Return what a version of a table's subject says, read as its configuration wants; see `read_value_schema`."""
    return read_value_schema(registered, envelope=target.envelope, sequence_by=target.sequence_by, past=past)


def history_of(target: TableTarget, versions: Iterable[SubjectVersion]) -> History:
    """Return the versions of a table's subject with the lives that its configuration gives their columns."""
    policies = target.policies
    return read_history(
        versions,
        renames=dict(target.renames),
        aliases=policies.rename == "alias",
        splits=retypes if policies.retype == "variant" else lambda _, __: False,
    )


def _with_variants(
    target: TableTarget, history: History, layout: Layout, columns: Sequence[Column], *, beside: Sequence[Column] = ()
) -> Iterator[Column]:
    """Yield each column, and behind it those whose place it took, as they last stood (``policies.retype: variant``)."""
    taken = TakenNames(c.name for c in (*columns, *beside))
    for column in columns:
        yield column
        replaced = replaced_by(history, layout, column) if target.policies.retype == "variant" else ()
        for old, last in replaced:
            yield replace(old, name=taken.take(f"{old.name}__v{last}"), nullable=True)


def replaced_by(history: History, layout: Layout, column: Column) -> Iterator[tuple[Column, int]]:
    """Yield the columns that one took the place of, newest first, each with the last version that had it."""
    old = history.replaced(column)
    if old is not None and layout.phase(old.life, column.since - 1) is not None:
        yield old, max(v.version for v in history.versions if v.version < column.since)
        yield from replaced_by(history, layout, old)


def _kept(target: TableTarget, history: History, layout: Layout, shown: Sequence[Column]) -> tuple[Column, ...]:
    """Return the dropped columns that ``policies.drop: keep`` goes on showing, as they last stood, with variants.

    One whose name another column took is hidden from then on, also once that name is free: what was rewritten meanwhile
    lacks its values.
    """
    live = {c.life for c in shown}
    names = {folded(c.name) for c in shown}
    last: dict[Life, Column] = {}
    hidden: set[Life] = set()
    for version in history.between(layout.baseline, layout.version):
        last |= {c.life: replace(c, nullable=True) for c in version.columns}
        there = {folded(c.name): c.life for c in version.columns}
        hidden |= {life for life, c in last.items() if there.get(folded(c.name), life) != life}
    kept = sorted((c for c in last.values() if c.life not in live), key=lambda c: c.since)
    replaced = {old.life for c in kept for old, _ in replaced_by(history, layout, c)}
    ended = [c for c in kept if c.life not in replaced]
    found = _with_variants(target, history, layout, ended, beside=shown)
    return tuple(c for c in found if c.life not in hidden - replaced and folded(c.name) not in names)


_POSITIONS: Final = (
    "add.fields: op,source.ts_ms and the place in the source's log: lsn for PostgreSQL, file,pos,row for MySQL and "
    "MariaDB, commit_lsn,change_lsn,event_serial_no for SQL Server, commit_lsn,change_lsn for Db2, ord for MongoDB"
)
_GROWING: Final = "set sequence_by: to fields that grow with every change"
_ADD_ORDER: Final = {
    EnvelopeKind.UNWRAPPED: f"Let Debezium's ExtractNewRecordState add it ({_POSITIONS}), or {_GROWING}.",
    EnvelopeKind.PLAIN: "Where Debezium unwraps the events, let its ExtractNewRecordState add what they did and their "
    f"order ({_POSITIONS}), and keep deletes (delete.tombstone.handling.mode: rewrite), which are missing else. "
    f"Or {_GROWING}.",
}
_OUTSIDE: Final = (
    "Leave sequence_by: out, or name fields that every event has, those of source or beside it. A table that is there "
    "keeps its order: make it anew."
)
_IMAGES: Final = frozenset({"before", "after"})
_UNWRAP: Final = (
    "The events are not unwrapped: let the connector's own transformation do that (MongoDB's is "
    "ExtractNewDocumentState) before they are written."
)


def _keys(
    target: TableTarget, columns: Sequence[Column], envelope: Envelope, key: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    if target.insert_only:
        return (), ()
    wanted = target.keys or key or ()
    if not wanted:
        return (), (diagnose("SS401", f"{target.subject} has no key: {target.full_name} is insert-only"),)
    by_name = {c.name.lower(): c for c in columns}
    found = [by_name[k.lower()] for k in wanted if k.lower() in by_name]
    if len(found) < len(wanted):
        missing = ", ".join(k for k in wanted if k.lower() not in by_name)
        names = ", ".join(c.name for c in columns)
        message = f"key column {missing} is not in the value (which has {names})"
        return tuple(wanted), (diagnose("SS402", message, fix=_UNWRAP if by_name.keys() >= _IMAGES else ""),)
    problems = [
        diagnose("SS407", f"key column {c.name} is a struct, array or map")
        for c in found
        if isinstance(c.type, Struct | Array | Map)
    ]
    if not envelope.ordering and envelope.offset is None:
        message = f"events of {target.subject} have no known log position, clock or offset"
        problems.append(diagnose("SS403", message, fix=_ADD_ORDER.get(envelope.kind, "")))
    if paths := inside_row(envelope, columns, [c.name for c in found]):
        message = f"events of {target.subject} are ordered by {', '.join(paths)}"
        if envelope.row is not None:
            message += ": deletes have no row after them, creates none before"
            problems.append(diagnose("SS423", message, fix=_OUTSIDE))
        else:
            message += ", which may be a column of the row" if may_be_clock(envelope, paths) else " of the row"
            problems.append(diagnose("SS423", f"{message}: what deletes have there may be older, or nothing"))
    if envelope.kind is EnvelopeKind.UNWRAPPED and envelope.deleted is None:
        message = f"events of {target.subject} have no __deleted: rows that are deleted at the source stay"
        problems.append(diagnose("SS422", message))
    return tuple(c.name for c in found), tuple(problems)
