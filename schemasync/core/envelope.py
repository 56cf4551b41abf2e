"""How one change event is wrapped, and which of two events of one key is newer.

Called by `schemasync.core.avro` with the fields at an event's root. Detection goes by the presence of Debezium's
own field names; configuration can overrule it. Without the ordering rules a late or replayed event would win by
arriving last.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard, assert_never

from schemasync.core.encoding import Encoding, Leaf, Meaning, Member, Record
from schemasync.core.names import folded
from schemasync.core.promotion import INTEGER_DIGITS
from schemasync.core.schema import Column, Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive
from schemasync.errors import SettingError

_FLAT_FIELDS: Final = frozenset({"op", "ts_ms", "kafka_offset"})
_UNWRAPPED_PREFIX: Final = "__"
_TS: Final = ("ts_ns", "ts_us", "ts_ms")
_BARE_CLOCK: Final = "ts_ms"
_WRITTEN_FOR_EACH: Final = frozenset(
    {*_TS, "lsn", "file", "pos", "row", "commit_lsn", "change_lsn", "event_serial_no", "ord", "scn"}
)
"""Debezium's own positions and clocks, as its ``source`` calls them."""

_ORDERED_TYPES: Final = frozenset(
    {
        Primitive.TINYINT,
        Primitive.SMALLINT,
        Primitive.INT,
        Primitive.BIGINT,
        Primitive.STRING,
        Primitive.DATE,
        Primitive.TIMESTAMP,
    }
)
_UNORDERED_MEANINGS: Final = frozenset(
    {Meaning.VARIABLE_DECIMAL, Meaning.UUID_BYTES, Meaning.TIME_MILLIS, Meaning.TIME_MICROS, Meaning.TIME_NANOS}
)
"""Shown as text whose order is not that of the values."""

_TEXT: Final = (Primitive.STRING, Meaning.PLAIN)

_LISTS: Final = ("columnnames", "columnvalues")

_MADE_FOR_ORDER: Final = frozenset(
    f"{before}{name}" for before in ("source.", "__source_", "__") for name in ("file", "commit_lsn", "change_lsn")
)
"""Debezium's own positions that are text: padded to a fixed width, as they are and as its unwrapping calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingRule:
    """For events that have all of ``when`` (dotted paths): of each alternative in ``order`` the first that exists.

    ``numbers`` says that ``when`` must be whole numbers; a ``source`` of a record type in ``unless`` has another rule.
    """

    when: tuple[str, ...] = ()
    order: tuple[tuple[str, ...], ...] = ()
    numbers: bool = False
    unless: tuple[str, ...] = ()


_UNWRAPPED_CLOCKS: Final = (
    ("__source_ts_ns", "__source_ts_us", "__source_ts_ms"),
    ("__ts_ns", "__ts_us", "__ts_ms", _BARE_CLOCK),
)


def _unwrapped(prefix: str) -> tuple[OrderingRule, ...]:
    """Return the rules for log positions that were added to an unwrapped row under names with this prefix."""
    of_source, of_connector = clocks = _UNWRAPPED_CLOCKS
    files, lsns = (f"{prefix}file", f"{prefix}pos"), (f"{prefix}commit_lsn", f"{prefix}change_lsn")
    number = f"{prefix}ord"
    return (
        OrderingRule(when=(f"{prefix}lsn",), order=((f"{prefix}sequence",), (f"{prefix}lsn",), *clocks), numbers=True),
        OrderingRule(when=files, order=(*((path,) for path in files), (f"{prefix}row",), *clocks)),
        OrderingRule(when=lsns, order=(*((path,) for path in lsns), (f"{prefix}event_serial_no",), *clocks)),
        # MongoDB: its source's clock has seconds, whatever their unit, and ``ord`` counts the changes of each
        *(
            OrderingRule(when=(number, clock), order=((clock,), (number,), of_connector), numbers=True)
            for clock in of_source
        ),
    )


ORDERINGS: Final[Mapping[EnvelopeKind, tuple[OrderingRule, ...]]] = {
    EnvelopeKind.DEBEZIUM: (
        # PostgreSQL; YugabyteDB's is a text
        OrderingRule(when=("source.lsn",), order=(("source.sequence",), ("source.lsn",), _TS), numbers=True),
        # MySQL, MariaDB: names of binlog files are zero-padded; one event may hold several rows
        OrderingRule(
            when=("source.file", "source.pos"), order=(("source.file",), ("source.pos",), ("source.row",), _TS)
        ),
        # SQL Server, Db2: fixed-width hexadecimal text; Informix's are decimal numbers without leading zeros
        OrderingRule(
            when=("source.commit_lsn", "source.change_lsn"),
            order=(("source.commit_lsn",), ("source.change_lsn",), ("source.event_serial_no",), _TS),
            unless=("io.debezium.connector.informix.Source",),
        ),
        OrderingRule(order=(tuple(f"source.{ts}" for ts in _TS), _TS)),
    ),
    EnvelopeKind.FLAT: (OrderingRule(order=(("ts_ms",), ("kafka_offset",))),),
    EnvelopeKind.UNWRAPPED: (
        *_unwrapped("__"),
        *_unwrapped("__source_"),
        OrderingRule(order=_UNWRAPPED_CLOCKS),
    ),
    EnvelopeKind.PLAIN: (OrderingRule(),),
}
"""The ordering key of an event, by its envelope and by what its ``source`` holds; the first rule that fits counts.

The log position stands before every clock. For one key that is right although transactions overlap: a row is locked
from its change to the commit, so the second writer of a row gets its position after the first one's commit. Clocks
are coarser (all events of a PostgreSQL transaction share ``source.ts_*``) and may step back. The connector's own
clock comes last and only parts events that share a position.

PostgreSQL's ``sequence`` stands before the position: it says which commit was the last one before an event, and events
come in the order of commits. Rows that an incremental snapshot reads have that, and no position of their own: they are
newer than all that was committed before they were read, and older than what came after. At first there may be no commit
yet that the connector knows of; an event's own position is behind the commits of all that changed its row before.

Null is oldest: rows of a snapshot by an old connector have no position, and the snapshot was read before the changes
that follow it.
"""


def envelope_of(
    fields: Iterable[Column],
    *,
    kind: EnvelopeKind | None = None,
    sequence_by: tuple[str, ...] = (),
    past: bool = False,
) -> Envelope:
    """Return where the parts of an event stand.

    ``fields`` are those at the event's root, ``kind`` overrules detection, ``sequence_by`` (dotted paths from the
    root in any case, most significant first) replaces the detected ordering key. Events of the ``past`` may not have
    had all of these fields yet: a table that is ordered by them reads NULL there.

    Raises:
        SettingError: the fields that ``kind`` needs are missing, or a path of ``sequence_by`` is none or has no order.
            Its ``where`` names the path only; the caller knows the subject.
    """
    root = {field.name: field for field in fields}
    known = detect_envelope(root.values()) if kind is None else _required(kind, root)
    asked = (_spelled(root, path) for path in sequence_by)
    demanded = (path for path in asked if not past or _found(root, path) is not None)
    ordering = tuple(_demanded(root, path) for path in demanded) or tuple(_detected(known, root))
    return Envelope(
        kind=known,
        op=_first(root, {EnvelopeKind.PLAIN: (), EnvelopeKind.UNWRAPPED: ("__op",)}.get(known, ("op",))),
        deleted=_first(root, ("__deleted",)) if known is EnvelopeKind.UNWRAPPED else None,
        ts_ms=_ts_ms(known, root),
        offset=_first(root, ("__offset", "kafka_offset") if known is EnvelopeKind.UNWRAPPED else ("kafka_offset",)),
        ordering=ordering,
    )


def detect_envelope(fields: Iterable[Column]) -> EnvelopeKind:
    """Return the envelope that the fields at an event's root look like; PLAIN where they look like none."""
    root = {field.name: field for field in fields}
    candidates = (EnvelopeKind.DEBEZIUM, EnvelopeKind.UNWRAPPED, EnvelopeKind.FLAT)
    return next((kind for kind in candidates if _looks_like(kind, root)), EnvelopeKind.PLAIN)


def compared_as_text(ordering: Iterable[OrderingField]) -> tuple[str, ...]:
    """Return the paths whose text decides which event is newer, byte by byte, though nobody may have written it so."""
    texts = (f for f in ordering if f.type is Primitive.STRING and f.meaning is Meaning.PLAIN)
    return tuple(str(field) for field in texts if str(field) not in _MADE_FOR_ORDER)


def inside_row(envelope: Envelope, columns: Iterable[Column], keys: Iterable[str]) -> tuple[str, ...]:
    """Return the paths into the row by which events are ordered, none where no event can be a delete.

    A delete has no ``after``. What stands in its ``before``, which unwrapping makes its row of, is what the row held
    last, or beside the key nothing and zeros (PostgreSQL's REPLICA IDENTITY DEFAULT): never anything newer.
    Behind what is written for each event, a position, a clock or an offset, paths into the row do no harm: only ties
    reach them. ``columns`` are the row's, ``keys`` those that every delete has.
    """
    keyed = set(map(folded, keys))
    match envelope.kind:
        case EnvelopeKind.PLAIN:
            return ()
        case EnvelopeKind.DEBEZIUM:
            inside = {"before", "after"}
        case _:
            names = {folded(column.name) for column in columns}
            bare = _is_bare({*names, envelope.op or ""})
            added = {n for n in names if n.startswith("_") or (bare and _is_written_for_each(n))}
            inside = names - added - keyed - {folded(envelope.offset or "")}
    apart = {folded(name or "") for name in (envelope.op, envelope.deleted)} | keyed
    found = []
    for field in envelope.ordering:
        first, *rest = map(folded, field.path)
        if first in inside:
            found.append(str(field))
        elif _is_written_for_each(rest[-1]) if rest else first not in apart:
            break
    return tuple(found)


def may_be_clock(envelope: Envelope, inside: Container[str]) -> bool:
    """Tell whether what `inside_row` found has a clock of unwrapping's in it: nothing tells it from a column."""
    return envelope.kind is EnvelopeKind.UNWRAPPED and envelope.op is None and _BARE_CLOCK in inside


def clock_behind(ordering: Sequence[OrderingField]) -> int | None:
    """Return the place of the first clock, None where no log position stands before one."""
    clocks = (place for place, field in enumerate(ordering) if _is_clock(field.path[-1]))
    return next(clocks, None) or None


def is_shared(ordering: Sequence[OrderingField]) -> bool:
    """Tell whether many events have one value of the first ordering field, as all of a transaction have a commit."""
    return bool(ordering) and ordering[0].meaning is Meaning.LOG_SEQUENCE


def deciding(ordering: Sequence[OrderingField]) -> Sequence[OrderingField]:
    """Return a detected ordering key without the clocks behind a log position: these part only what shares one."""
    return ordering[: clock_behind(ordering)]


def has_partial_deletes(envelope: Envelope, event: Record | None) -> bool:
    """Tell whether events may be deletes that have the values of their source's key alone.

    PostgreSQL's are, under its default REPLICA IDENTITY: Debezium's ``before`` has zeros, empty texts and nulls
    elsewhere. Other databases, which their positions in a log tell, send whole rows.
    """
    can_delete = envelope.deleted if envelope.kind is EnvelopeKind.UNWRAPPED else envelope.op
    root = {member.name: member for member in event.members} if event else {}
    if envelope.kind is EnvelopeKind.DEBEZIUM:
        return can_delete is not None and _found(root, "source.lsn") is not None
    return can_delete is not None and not root.keys() & _MADE_FOR_ORDER


def _is_clock(name: str) -> bool:
    return _of_source(name) in _TS


def _is_written_for_each(name: str) -> bool:
    return _of_source(name) in _WRITTEN_FOR_EACH


def _of_source(name: str) -> str:
    """Return what ``source`` calls a field that unwrapping added."""
    return folded(name).removeprefix(_UNWRAPPED_PREFIX).removeprefix("source_")


def listed_columns(row: Iterable[Column]) -> tuple[str, ...]:
    """Return which columns of a row are lists of its real ones, of an envelope that is not unwrapped here."""
    found = {folded(column.name): column.name for column in row}
    return tuple(found[name] for name in _LISTS if name in found) if "changetype" in found else ()


def row_columns(kind: EnvelopeKind, fields: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return which of an event's columns are the row's; for DEBEZIUM ``fields`` are those of ``after``."""
    match kind:
        case EnvelopeKind.DEBEZIUM | EnvelopeKind.PLAIN:
            return fields
        case EnvelopeKind.FLAT:
            return tuple(f for f in fields if f.name not in _FLAT_FIELDS)
        case EnvelopeKind.UNWRAPPED:
            return tuple(f for f in fields if not f.name.startswith(_UNWRAPPED_PREFIX))
        case _:  # pragma: no cover
            assert_never(kind)


def _looks_like(kind: EnvelopeKind, root: Mapping[str, Column]) -> bool:
    match kind:
        case EnvelopeKind.DEBEZIUM:
            after = root["after"].encoding if "after" in root else None
            return "op" in root and isinstance(after, Record) and not after.union
        case EnvelopeKind.UNWRAPPED:
            return "__op" in root or "__deleted" in root
        case EnvelopeKind.FLAT:
            return "op" in root and "ts_ms" in root
        case EnvelopeKind.PLAIN:
            return True
        case _:  # pragma: no cover
            assert_never(kind)


_NEEDS: Final[Mapping[EnvelopeKind, str]] = {
    EnvelopeKind.DEBEZIUM: "`op` and a record `after`",
    EnvelopeKind.UNWRAPPED: "`__op` or `__deleted`",
    EnvelopeKind.FLAT: "`op` and `ts_ms`",
}


def _required(kind: EnvelopeKind, root: Mapping[str, Column]) -> EnvelopeKind:
    if _looks_like(kind, root):
        return kind
    raise SettingError(
        f"the events are not wrapped as {kind.value}",
        why=f"that needs {_NEEDS[kind]} at the root, which has {', '.join(root) or 'no fields'}",
        fix="Correct `envelope:` of this table, or leave it out to have it detected.",
    )


def _detected(kind: EnvelopeKind, root: Mapping[str, Column]) -> Iterator[OrderingField]:
    if kind is EnvelopeKind.UNWRAPPED and _is_prefixed(root):
        root = {name: field for name, field in root.items() if name != _BARE_CLOCK}
    rule = next(r for r in ORDERINGS[kind] if _applies(r, root))
    for alternatives in rule.order:
        found = next(filter(None, (_detected_at(root, path) for path in alternatives)), None)
        if found is not None:
            yield found


def _detected_at(root: Mapping[str, Column], path: str) -> OrderingField | None:
    found = _ordered(root, path)
    if found is None or _of_source(found.path[-1]) != "sequence":
        return found
    places = replace(found, type=Primitive.BIGINT, meaning=Meaning.LOG_SEQUENCE)
    return places if (found.type, found.meaning) == _TEXT else None


def _is_bare(names: Container[str]) -> bool:
    """Tell whether unwrapping added its fields under their own names (``add.fields.prefix``): the operation's, too."""
    return "op" in names and "__op" not in names


def _is_prefixed(root: Mapping[str, Column]) -> bool:
    """Tell whether unwrapping added its fields under its prefix: `_BARE_CLOCK` is a column of the row then.

    That may say anything. Where nothing else was added, it may be either, and is all that there is.
    """
    added = (name for name in root if name.startswith(_UNWRAPPED_PREFIX))
    return not _is_bare(root) and any(name == "__op" or _is_written_for_each(name) for name in added)


def _applies(rule: OrderingRule, root: Mapping[str, Column]) -> bool:
    found = [_ordered(root, path) for path in rule.when]
    source = root["source"].encoding if "source" in root else None
    return all(field is not None and not (rule.numbers and field.type is Primitive.STRING) for field in found) and not (
        isinstance(source, Record) and source.name in rule.unless
    )


def _spelled(root: Mapping[str, Column], path: str) -> str:
    """Return a path as the event has its names, as it is where they lead nowhere; their case may be another one."""
    found: list[str] = []
    members: Iterable[Column | Member] = root.values()
    for step in path.split("."):
        same = next((m for m in members if folded(m.name) == folded(step)), None)
        if same is None:
            return path
        found.append(same.name)
        members = same.encoding.members if isinstance(same.encoding, Record) else ()
    return ".".join(found)


def _demanded(root: Mapping[str, Column], path: str) -> OrderingField:
    found = _ordered(root, path)
    if found is not None:
        return found
    raise SettingError(
        f"events cannot be ordered by {path}",
        why="`sequence_by` takes paths, from the event's root, of whole numbers, text, dates and timestamps",
        fix=f"Correct `sequence_by:` of this table, or leave it out to have the order detected. "
        f"At the root there are: {', '.join(root)}.",
    )


def _ordered(root: Mapping[str, Column], path: str) -> OrderingField | None:
    encoding = _found(root, path)
    if not _has_order(encoding) or not isinstance(encoding.type, Primitive):
        return None
    return OrderingField(path=tuple(path.split(".")), type=encoding.type, meaning=encoding.meaning)


def _has_order(encoding: Encoding | None) -> TypeGuard[Leaf]:
    """Tell whether what is shown of values has their order."""
    return (
        isinstance(encoding, Leaf) and encoding.meaning not in _UNORDERED_MEANINGS and encoding.type in _ORDERED_TYPES
    )


def standing_at(event: Encoding | None, path: Sequence[str]) -> Encoding | None:
    """Return what stands at a path of an event, in whatever case its names are; None where nothing does."""
    for step in path:
        # Of several names that differ in case alone the very one, which comes last here.
        found = sorted(event.members, key=lambda m: m.name == step) if isinstance(event, Record) else ()
        event = {folded(m.name): m.encoding for m in found}.get(folded(step))
    return event


def written_as(field: OrderingField, encoding: Encoding) -> OrderingField | None:
    """Return a table's ordering field as events have it whose own is of this encoding.

    None where the values of one are not in the order of those of the other, like numbers and their texts.
    """
    if not _has_order(encoding):
        return None
    if field.meaning is Meaning.LOG_SEQUENCE:
        return field if (encoding.type, encoding.meaning) == _TEXT else None
    both_whole = encoding.type in INTEGER_DIGITS and field.type in INTEGER_DIGITS
    return replace(field, meaning=encoding.meaning) if both_whole or encoding.type is field.type else None


def _found(root: Mapping[str, Column | Member], path: str) -> Encoding | None:
    """Return what stands at a path, None where nothing does."""
    first, *rest = path.split(".")
    encoding = root[first].encoding if first in root else None
    for name in rest:
        members = encoding.members if isinstance(encoding, Record) else ()
        encoding = next((m.encoding for m in members if m.name == name), None)
    return encoding


def _ts_ms(kind: EnvelopeKind, root: Mapping[str, Column]) -> tuple[str, ...] | None:
    paths = {
        EnvelopeKind.DEBEZIUM: ("ts_ms", "source.ts_ms"),
        EnvelopeKind.FLAT: ("ts_ms",),
        EnvelopeKind.UNWRAPPED: ("__ts_ms", "__source_ts_ms"),
        EnvelopeKind.PLAIN: (),
    }
    return next((tuple(path.split(".")) for path in paths[kind] if _ordered(root, path)), None)


def _first(root: Mapping[str, Column], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in root), None)
