"""Short ways to make the core's values, and generated histories of whole subjects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from schemasync.core.config import Config, Policies
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.history import History, read_history
from schemasync.core.manifest import AdmittedFile, Manifest, Segment, SegmentKind, after_admission, empty
from schemasync.core.mapping import TableTarget, map_subjects
from schemasync.core.schema import Column, Envelope, EnvelopeKind, OrderingField, SubjectVersion, TableSchema
from schemasync.core.types import Decimal, Primitive

P = Primitive
INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, BOOLEAN = (
    Leaf(type=t) for t in (P.INT, P.BIGINT, P.FLOAT, P.DOUBLE, P.STRING, P.BINARY, P.BOOLEAN)
)
DATE = Leaf(type=P.DATE, meaning=Meaning.DAYS)
MILLIS = Leaf(type=P.TIMESTAMP, meaning=Meaning.EPOCH_MILLIS, name="io.debezium.time.Timestamp")
MICROS = Leaf(type=P.TIMESTAMP, meaning=Meaning.EPOCH_MICROS, name="io.debezium.time.MicroTimestamp")
ZONED = Leaf(type=P.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP, name="io.debezium.time.ZonedTimestamp")
SUBJECT = "shop.student-value"


def dec(precision: int, scale: int) -> Leaf:
    return Leaf(type=Decimal(precision=precision, scale=scale), name="decimal")


def rec(**members: Encoding) -> Record:
    return Record(members=tuple(Member(name=n, encoding=e) for n, e in members.items()))


def union(*branches: Encoding) -> Record:
    members = tuple(Member(name=f"member{n}", encoding=e) for n, e in enumerate(branches))
    return Record(members=members, union=True)


def col(name: str, encoding: Encoding = INT, **more: Any) -> Column:
    return Column(name=name, encoding=encoding, **({"nullable": True} | more))


FLAT = Envelope(
    kind=EnvelopeKind.FLAT, op="op", ts_ms=("ts_ms",), ordering=(OrderingField(path=("ts_ms",), type=P.BIGINT),)
)
PLAIN = Envelope(kind=EnvelopeKind.PLAIN)
DEBEZIUM = Envelope(
    kind=EnvelopeKind.DEBEZIUM,
    op="op",
    ts_ms=("ts_ms",),
    ordering=(OrderingField(path=("source", "lsn"), type=P.BIGINT), OrderingField(path=("ts_ms",), type=P.BIGINT)),
)


def event_of(columns: tuple[Column, ...], envelope: Envelope = FLAT) -> Record:
    """Return the event as the sink holds it."""
    row = tuple(Member(name=c.name, encoding=c.encoding, nullable=c.nullable) for c in columns)
    stamps = (Member(name="op", encoding=STRING), Member(name="ts_ms", encoding=BIGINT))
    match envelope.kind:
        case EnvelopeKind.FLAT:
            return Record(members=(*row, *stamps))
        case EnvelopeKind.DEBEZIUM:
            sides = tuple(Member(name=n, encoding=Record(members=row)) for n in ("before", "after"))
            return Record(members=(*sides, Member(name="source", encoding=rec(lsn=BIGINT)), *stamps))
        case _:
            return Record(members=row)


def version(number: int, *columns: Column, envelope: Envelope = FLAT) -> SubjectVersion:
    return SubjectVersion(
        subject=SUBJECT,
        version=number,
        schema_id=100 + number,
        columns=columns,
        envelope=envelope,
        fingerprint=f"fp{number}",
        event=event_of(columns, envelope),
    )


def history(*rows: tuple[Column, ...], envelope: Envelope = FLAT, **options: Any) -> History:
    """Return the versions 1, 2, ... with these columns, lives computed."""
    return read_history((version(n, *r, envelope=envelope) for n, r in enumerate(rows, start=1)), **options)


def schema(*columns: Column, keys: tuple[str, ...] = (), envelope: Envelope = FLAT) -> TableSchema:
    return TableSchema(columns=columns, keys=keys, envelope=envelope)


def target(**changes: Any) -> TableTarget:
    """Return the target of the one subject under an otherwise empty configuration."""
    config = Config.model_validate({"registry": {"url": "file:///registry"}})
    (found,) = map_subjects((SUBJECT, "shop.student-key"), config).targets
    policies = changes.pop("policies", {})
    given = {"table": "student", "view": "student_view", "location": "file:/lake/student"}
    names = {"base": "student_base", "incremental": "student_incremental_{hour}", "compactor": "student_compactor"}
    names |= {"history": "student_history"}
    return replace(found, policies=Policies(**policies), **(given | names | changes))


def segment(name: str, *, schema_version: int = 1, **more: Any) -> Segment:
    kind = SegmentKind.BASE if name.startswith("base") else SegmentKind.DELTA
    given: dict[str, Any] = {"location": f"data/{name}", "files": (), "rows": 1, "bytes": 10, "columns": ("id",)}
    return Segment(name=name, kind=kind, schema_version=schema_version, **(given | more))


def landed(path: str, segment_name: str) -> AdmittedFile:
    return AdmittedFile(path=path, bytes=7, rows=1, modified_ms=0, writer_version=1, segment=segment_name)


def admitted(manifest: Manifest, *, now_ms: int = 0, schema_version: int = 1, files: int = 1) -> Manifest:
    """Return the manifest after one more admission of that many files."""
    number = manifest.next_delta
    name = f"delta_{number:08}"
    return after_admission(
        manifest,
        segment=segment(name, schema_version=schema_version, events=3, created_ms=now_ms),
        files=[landed(f"incremental/{number}-{n}.parquet", name) for n in range(files)],
        schema_version=schema_version,
        now_ms=now_ms,
    )


def fresh(*, keyed: bool = True) -> Manifest:
    return empty("student", SUBJECT, schema_version=1, keyed=keyed)


WIDER: dict[Leaf, tuple[Leaf, ...]] = {
    INT: (BIGINT, DOUBLE),
    FLOAT: (DOUBLE,),
    dec(5, 2): (dec(7, 2), dec(9, 4)),
    BIGINT: (dec(19, 0),),
}
NAMES = ("a", "b", "c", "d", "segment", "__op", "a__2", "State", "state__2")
LEAVES = (INT, FLOAT, STRING, dec(5, 2), BIGINT, DATE)
DEFAULTS: dict[Leaf, str] = {INT: "42", FLOAT: "0.1", STRING: '"x"', dec(5, 2): '"\\u0001"', BIGINT: "-7", DATE: "-1"}


@st.composite
def _new_column(draw: st.DrawFn, name: str) -> Column:
    if draw(st.integers(0, 3)) == 0:
        nested: Encoding = rec(x=draw(st.sampled_from(LEAVES)), y=INT)
        shaped = draw(st.sampled_from([nested, ListOf(element=nested), MapOf(key=STRING, value=nested)]))
        return col(name, shaped)
    leaf = draw(st.sampled_from(LEAVES))
    nullable = draw(st.booleans())
    return col(name, leaf, nullable=nullable, default=None if nullable else DEFAULTS[leaf])


KINDS: tuple[Encoding, ...] = (STRING, rec(x=INT, y=INT), ListOf(element=rec(x=INT)), union(INT, rec(x=INT)))


def _evolved(draw: st.DrawFn, encoding: Encoding, *, kinds: bool) -> Encoding:
    """Draw what an earlier encoding may become: wider, with members added, dropped, moved; or of another kind."""
    if kinds and draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(KINDS))
    match encoding:
        case Leaf():
            return draw(st.sampled_from((encoding, *WIDER.get(encoding, ()))))
        case ListOf(element=element):
            return ListOf(element=_evolved(draw, element, kinds=kinds))
        case MapOf(value=value):
            return replace(encoding, value=_evolved(draw, value, kinds=kinds))
        case Record(members=members):
            kept = [replace(m, encoding=_evolved(draw, m.encoding, kinds=kinds)) for m in members]
            if len(kept) > 1 and draw(st.booleans()):
                kept.pop(draw(st.integers(0, len(kept) - 1)))
            free = sorted({"x", "y", "z"} - {m.name for m in members})
            if draw(st.booleans()) and free:
                kept.append(Member(name=free[0], encoding=STRING))
            return replace(encoding, members=tuple(draw(st.permutations(kept))))


@st.composite
def _next_version(draw: st.DrawFn, before: tuple[Column, ...], *, kinds: bool) -> tuple[Column, ...]:
    """Draw the columns of the following version: drops, renames by alias, evolution, additions, another order."""
    row: list[Column] = []
    taken = {c.name.lower() for c in before}
    for column in before:
        fate = draw(st.integers(0, 6))
        if fate == 0:
            continue
        free = [n for n in NAMES if n.lower() not in taken]
        if fate == 1 and free:
            name = draw(st.sampled_from(free))
            taken.add(name.lower())
            row.append(replace(column, name=name, aliases=(column.name,)))
        elif fate == 2:
            row.append(replace(column, name=column.name.swapcase(), aliases=()))
        else:
            changed = _evolved(draw, column.encoding, kinds=kinds)
            row.append(replace(column, encoding=changed, nullable=draw(st.booleans()), aliases=()))
    free = [n for n in NAMES if n.lower() not in taken]
    several: st.SearchStrategy[list[str]] = st.lists(st.sampled_from(free or [""]), max_size=2, unique_by=str.lower)
    added = draw(several) if free else []
    row += [draw(_new_column(n)) for n in added]
    return tuple(draw(st.permutations(row))) or before


@st.composite
def histories(draw: st.DrawFn, *, kinds: bool = False) -> History:
    """Draw subjects whose every version a table can follow without loss; with other ``kinds`` it may have to wait."""
    first = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower))
    rows = [tuple(draw(_new_column(n)) for n in first)]
    for _ in range(draw(st.integers(0, 4))):
        rows.append(draw(_next_version(rows[-1], kinds=kinds)))
    return history(*rows)
