"""Landed files, decided: which are new, under which version each was written, and how an operation code reads.

Pure. The doing (Arrow when the files are small, Spark when they are not) is handed an `AdmissionRequest` and returns
what it wrote; both give the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from schemasync.core.beyond import Beyond
from schemasync.core.encoding import (
    Encoding,
    Leaf,
    ListOf,
    MapOf,
    Meaning,
    Member,
    Record,
    lives_by_name,
    without_lives,
    without_names,
)
from schemasync.core.envelope import standing_at, written_as
from schemasync.core.history import History
from schemasync.core.in_place import Stored
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile
from schemasync.core.moments import Moment, Newest
from schemasync.core.names import folded
from schemasync.core.partitioning import PartitionColumn
from schemasync.core.projection import Projection
from schemasync.core.schema import Column, OrderingField, SubjectVersion
from schemasync.core.types import Decimal, Primitive, Struct, Type
from schemasync.core.written import avro_type, may_be_written_as, misfits

OPERATIONS: Final[dict[str, str]] = {
    # Debezium; what other tools write for the same; r is a snapshot's read.
    "c": "c", "u": "u", "r": "r", "d": "d",
    "i": "c", "create": "c", "insert": "c", "update": "u", "read": "r", "delete": "d",
}  # fmt: skip
"""Operation as written, lower case -> ours. A null operation is an upsert."""

MESSAGE: Final = "m"
"""Debezium's logical decoding message: it has no row, and is passed over."""
UPSERT: Final = "u"
CREATE: Final = "c"
DELETE: Final = "d"

STAGING: Final = "_schemasync/staging"
"""Where admissions put aside what they still need, each in a directory of its own; relative to the table's location."""

_OFFSET: Final = re.compile(r"\+\d+\+(\d+)(?:\+\d+)?(?:\.[a-z0-9]+)?\.parquet$")
"""Connect's file names: ``TOPIC+PARTITION+FIRST_OFFSET.parquet``; its sink for HDFS puts ``+LAST_OFFSET`` behind,
that for S3 the codec (``.snappy``)."""

STILL_WRITING_MS: Final = 60_000
"""A file without a footer that changed less than this ago may still be being written; an empty one always may."""


def first_offset(path: str) -> int | None:
    """Return the offset of a file's first event where its name says it."""
    found = _OFFSET.search(path)
    return int(found.group(1)) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """What a landed file says of itself. ``avro`` is the writer's Avro schema where the footer has it."""

    rows: int
    avro: str | None
    type: Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFooter:
    """What a file of ours says of itself: rows, columns, how it holds them (one entry per leaf, in the file's order).

    ``extents``: the least and the largest value of columns by name, as far as they were asked for, as moments
    (`schemasync.core.moments`). None: the footer does not say, or they are no moments. ``newest`` is None where it says
    no more of the newest row than that. ``ends``: the keys of the first and the last row, where they were asked for and
    there are any; None stands for one that lacks a value.
    """

    rows: int
    columns: tuple[str, ...]
    leaves: tuple[Stored, ...]
    extents: Mapping[str, tuple[Moment, Moment] | None]
    newest: Newest | None = None
    ends: tuple[Key | None, Key | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A landed file whose footer could not be read.

    ``incomplete``: it may still be being written. ``denied``: we may not read it, and it may be as it should.
    """

    reason: str
    incomplete: bool = False
    denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedFile:
    """One file to admit: where it is, and how it is read."""

    path: str
    bytes: int
    modified_ms: int
    rows: int
    first_offset: int | None
    projection: Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentRule:
    """What becomes of placeholders in updates, for values that the source did not send, in these columns.

    ``carry``: they stay, and so does the newest older event of the key that has the value; else they become NULL.
    In the ``younger`` ones NULL tells no value: rows from before them read it, too (`schemasync.core.toast`).
    """

    placeholders: tuple[str, ...]
    carry: bool
    columns: tuple[tuple[str, Type], ...]
    younger: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedShard:
    """A shard of the base: the least key that it may hold (None: no end), and its files, sorted by key."""

    name: str
    low: Key | None
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDelta:
    """A delta without placeholders: its files, sorted by key, and what bounds its rows."""

    files: tuple[DataFile, ...]
    newest: Newest


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRows:
    """What a delta comes beside: the base and the deltas before it, none with more than one row per key.

    ``newest`` bounds those of the base; it compares with that of each delta and with what comes beside them. ``deltas``
    is None where one of them cannot be compared with.
    """

    shards: tuple[FoldedShard, ...]
    newest: Newest
    deltas: tuple[EarlierDelta, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What becomes one delta segment: the newest row per key, sorted by key, projected to the table's version.

    ``columns`` are all physical columns to write, in order; ``ordering`` those that decide which row is newer
    (descending, null is oldest); each file's projection says where the first of these stand in an event.
    Without ``keys`` every event is kept. Without an ``unsent`` rule placeholders are values like any other. Rows that
    are older than ``beside`` has of their keys may be left out: they show nowhere. ``memory`` is how many bytes one
    process may hold of events. ``clock`` is the ordering column of a clock that stands behind a log position.
    ``shared``: many events have one value of the first ordering column, also where that is a number.
    """

    files: tuple[LandedFile, ...]
    directory: str
    columns: tuple[tuple[str, Type], ...]
    keys: tuple[str, ...]
    ordering: tuple[str, ...]
    schema_version: int
    admitted_ms: int
    memory: int
    clock: str | None = None
    shared: bool = False
    unsent: UnsentRule | None = None
    beside: EarlierRows | None = None
    partition_by: tuple[PartitionColumn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What an admission wrote.

    ``toasted`` are the physical columns in which rows have a placeholder to carry, ``beyond`` the values that it could
    not show as they were written. ``ahead``, ``ahead_of_deltas``: every row is newer than what the base, or a delta,
    of the request's ``beside`` has of its key; ``touches`` are the shards of that in whose ranges there are keys, None
    where nobody looked. ``contradicted`` rows were left out as older, and are newer by the request's clock: of a delta
    most of whose rows may be older.
    """

    files: tuple[DataFile, ...]
    rows: int
    events: int
    toasted: tuple[str, ...] = ()
    beyond: tuple[Beyond, ...] = ()
    ahead: bool = False
    ahead_of_deltas: bool = False
    touches: tuple[str, ...] | None = None
    contradicted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWriter:
    """No version, or several with different meanings, could have written a file; ``fix`` says what helps, if known."""

    reason: str
    fix: str = ""


def writer_in(history: History, footer: Footer, *, embedded: SubjectVersion | None) -> SubjectVersion | NoWriter:
    """Say under which version of a history a file was written, be it one of ``history.elsewhere``.

    A file that fits both is of those that the table follows, unless the other gives the values another meaning and
    its footer does not say which it is.
    """
    found = match_writer(footer, history.versions, embedded=embedded)
    other = match_writer(footer, history.elsewhere, embedded=embedded)
    match found, other:
        case SubjectVersion(), SubjectVersion() if embedded is None and not _means_alike(found, other, named=False):
            numbers = f"{found.version} and {other.version}"
            return NoWriter(reason=f"its columns fit versions {numbers}, which give the values different meanings")
        case NoWriter(), SubjectVersion() if embedded is not None or not _fitting(footer, history.versions):
            return other
        case _:
            return found


def match_writer(
    footer: Footer, versions: Sequence[SubjectVersion], *, embedded: SubjectVersion | None
) -> SubjectVersion | NoWriter:
    """Say under which version a file was written.

    ``embedded`` is the schema of the file's own footer, understood. It must be equal to a version in all that
    matters for reading, if need be but for what its types are called, and for logical types that Connect does not know;
    one that is equal in all, down to comments, comes first: it alone tells a column from the one that had its name
    before. Without a footer the file's column types are matched; where several versions fit and mean the same the
    newest is taken, where they mean different things none is. What a plain number is called tells only files apart
    that have a schema: a stream without any would stop for good at a version that calls one otherwise.
    """
    if embedded is not None:
        equal = [v for v in versions if v.fingerprint == embedded.fingerprint]
        if equal:
            return equal[-1]
        alike = [v for v in versions if _reads_alike(v, embedded)]
        if alike:
            return _one_of(alike)
        # Connect's converter writes its own names of types beside those of a schema that Connect did not make, and an
        # enum's symbols in no order.
        alike = [v for v in versions if _reads_alike(v, embedded, named=False)]
        alike = alike or [v for v in versions if _may_pass_as(v, embedded)]
        return _of_one_meaning(alike, named=True) if alike else _of_no_version(embedded, versions)
    fitting = _fitting(footer, versions)
    if not fitting:
        return NoWriter(reason=f"{_UNFIT}{_difference(footer, versions)}")
    return _of_one_meaning(fitting, named=False)


_OF_NO_VERSION: Final = "the Avro schema in its footer is no version of the subject"
_BEFORE: Final = "belongs to the source's connector, before the registry"
_OWN_SUBJECT: Final = "register the schema of these files under a subject of its own, and map that (README, Limits)"


def _of_no_version(embedded: SubjectVersion, versions: Sequence[SubjectVersion]) -> NoWriter:
    """Say that a file is of no version, and which one a transform of the sink's connector made it of, if it did."""
    theirs = {m.name: without_names(m.encoding) for m in _fields(embedded)}
    for version in reversed(versions):
        ours = {m.name: m.encoding for m in _fields(version)}
        row = ours.get(version.envelope.row or "")
        if isinstance(row, Record) and _has_all(theirs, {m.name: m.encoding for m in row.members}):
            said = f"the row that version {version.version} has in {version.envelope.row}"
            return NoWriter(
                reason=f"{_OF_NO_VERSION}, but {said}: a transform of the sink's has unwrapped it",
                fix=f"A transform {_BEFORE}. Or {_OWN_SUBJECT}.",
            )
        more = [name for name in theirs if name not in ours]
        if ours and more and _has_all(theirs, ours):
            said = f"version {version.version} with more fields: {', '.join(_first_of(more))}"
            return NoWriter(
                reason=f"{_OF_NO_VERSION}, but {said}",
                fix=f"If a transform of the sink's adds them: it {_BEFORE}; or {_OWN_SUBJECT}. Else register the "
                "schema as the subject's next version, or move the file away; it stays where it is.",
            )
    return NoWriter(reason=_OF_NO_VERSION)


def _fields(version: SubjectVersion) -> tuple[Member, ...]:
    return version.event.members if version.event is not None else ()


def _has_all(theirs: Mapping[str, Encoding], ours: Mapping[str, Encoding]) -> bool:
    """Tell whether there is, of each of these fields, what Connect would have written for it."""
    return all(name in theirs and _passes_as(encoding, theirs[name]) for name, encoding in ours.items())


def lacking_order(footer: Footer, writer: SubjectVersion) -> str:
    """Say what a file lacks of the fields that order the events of its version, empty where it has them all.

    Its rows would have NULL there, and be older than any other. Only a file whose footer has a schema can lack one:
    somebody wrote it anew with fewer columns, and kept the schema.
    """
    missing = [field.path for field in writer.envelope.ordering if not _has(footer.type, field.path)]
    names = ", ".join(".".join(path) for path in missing)
    return f"it lacks {names}, which the Avro schema in its footer has: its events have no order" if missing else ""


def lost_order(history: History, writer: SubjectVersion, ordering: Iterable[OrderingField]) -> str:
    """Say what a version's events lack of the fields that order a table, though a version before it has them.

    Empty where there is nothing: NULL, the oldest, is right for events from before a field came, and never for those
    from after it went.
    """
    lost = {
        field: version.version
        for field in ordering
        if standing_at(writer.event, field.path) is None
        for version in history.versions
        if version.version < writer.version and _orders(version, field)
    }
    if not lost:
        return ""
    names = ", ".join(map(str, lost))
    return (
        f"its events lack {names}, which orders the table, and which those of version {max(lost.values())} have: "
        "they would count as older"
    )


def _orders(version: SubjectVersion, field: OrderingField) -> bool:
    found = standing_at(version.event, field.path)
    return found is not None and written_as(field, found) is not None


def _has(type_: Type, path: Sequence[str]) -> bool:
    for step in path:
        members = {folded(f.name): f.type for f in type_.fields} if isinstance(type_, Struct) else {}
        if folded(step) not in members:
            return False
        type_ = members[folded(step)]
    return True


_UNFIT: Final = "its columns fit no version of the subject, and its footer has no Avro schema"
_SHOWN: Final = 3
"""So many columns are named that do not fit."""


def _difference(footer: Footer, versions: Iterable[SubjectVersion]) -> str:
    """Say what is other in a file than in the newest version, after a text."""
    number, event = next(((v.version, v.event) for v in reversed([*versions]) if v.event is not None), (0, None))
    if event is None:
        return ""
    return f"; compared with version {number}, {', '.join(_first_of([*misfits(event, footer.type)]))}"


def _first_of(found: Sequence[str]) -> tuple[str, ...]:
    more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return (*found[:_SHOWN], *more)


def _of_one_meaning(fitting: Sequence[SubjectVersion], *, named: bool) -> SubjectVersion | NoWriter:
    if any(not _means_alike(v, fitting[-1], named=named) for v in fitting):
        numbers = ", ".join(str(v.version) for v in fitting)
        return NoWriter(reason=f"its columns fit versions {numbers}, which give the values different meanings")
    return _one_of(fitting)


def _fitting(footer: Footer, versions: Iterable[SubjectVersion]) -> list[SubjectVersion]:
    return [v for v in versions if v.event is not None and may_be_written_as(v.event, footer.type)]


def _one_of(alike: Sequence[SubjectVersion]) -> SubjectVersion | NoWriter:
    """Return the newest of versions that read alike, unless a name stands for different columns in them."""
    named = [{c.name: (c.life, lives_by_name(c.encoding)) for c in v.columns} for v in alike]
    if any(one != named[-1] for one in named):
        numbers = ", ".join(str(v.version) for v in alike)
        return NoWriter(reason=f"it fits versions {numbers}, between which a column was dropped and added again")
    return alike[-1]


def _reads_alike(one: SubjectVersion, other: SubjectVersion, *, named: bool = True) -> bool:
    """Tell whether two versions are equal in all that matters for reading; ``named``: what types are called does."""
    bare = _bare if named else _unnamed
    return bare(one.columns) == bare(other.columns) and one.envelope == other.envelope


def _bare(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(
        replace(
            c, encoding=without_lives(c.encoding), doc="", aliases=(), since=1, origin="", replaces=None, default=None
        )
        for c in columns
    )


def _unnamed(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(replace(c, encoding=without_names(c.encoding)) for c in _bare(columns))


_KEPT_BY_CONNECT: Final = (
    "date",
    "time-millis",
    "timestamp-millis",
    "decimal",
    "io.debezium.",
    "org.apache.kafka.connect.",
)
"""How names of meanings begin that Connect's converter for Avro writes again; of others only the plain type is left."""


def _may_pass_as(version: SubjectVersion, embedded: SubjectVersion) -> bool:
    """Tell whether Connect would have written ``embedded`` for a version whose logical types it does not all know."""
    columns = zip(_unnamed(version.columns), _unnamed(embedded.columns), version.columns, strict=False)
    return (
        len(version.columns) == len(embedded.columns)
        and version.envelope == embedded.envelope
        and all(
            replace(theirs, encoding=ours.encoding) == ours and _passes_as(column.encoding, theirs.encoding)
            for ours, theirs, column in columns
        )
    )


def _passes_as(encoding: Encoding, plain: Encoding) -> bool:
    match encoding, plain:
        case Leaf(), Leaf(meaning=Meaning.PLAIN) if encoding.meaning is not Meaning.PLAIN:
            return avro_type(encoding) == plain.type and not encoding.name.startswith(_KEPT_BY_CONNECT)
        case ListOf(), ListOf():
            return _passes_as(encoding.element, plain.element)
        case MapOf(), MapOf():
            return _passes_as(encoding.key, plain.key) and _passes_as(encoding.value, plain.value)
        case Record(), Record():
            named = [(m.name, m.nullable) for m in encoding.members] == [(m.name, m.nullable) for m in plain.members]
            members = zip(encoding.members, plain.members, strict=False)
            return named and all(_passes_as(ours.encoding, theirs.encoding) for ours, theirs in members)
        case _:
            return without_names(encoding) == plain


def _means_alike(one: SubjectVersion, other: SubjectVersion, *, named: bool) -> bool:
    """Tell whether two versions read the same bytes as the same values: names and meanings, not nullability.

    Nor in which order they stand: files are read by name. ``named``: what a plain number is called counts.
    """
    sides = ({c.name: _meaning(c.encoding, named) for c in v.columns} for v in (one, other))
    first, second = sides
    return first == second and one.envelope == other.envelope


def _meaning(encoding: Encoding, named: bool) -> object:
    match encoding:
        case Leaf(type=type_, meaning=meaning, name=name):
            # A text is shown as it is; what a number counts only its name says.
            number = meaning is Meaning.PLAIN and type_ is not Primitive.STRING and not isinstance(type_, Decimal)
            return type_, meaning, name if named and number else ""
        case ListOf(element=element):
            return ("list", _meaning(element, named))
        case MapOf(key=key, value=value):
            return ("map", _meaning(key, named), _meaning(value, named))
        case Record(members=members):
            return {m.name: _meaning(m.encoding, named) for m in members}
        case _:  # pragma: no cover
            assert_never(encoding)
