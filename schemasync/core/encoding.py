"""How a value is written in the sink's files, and as what it is shown.

An Avro type says two things: what bytes land in Parquet (an ``int``) and what they mean (days since 1970). The
meaning is often only in ``connect.name``, so two versions of a column may share the Avro type and differ here.
The files are converted once, when they are admitted; tables and views only ever see the shown type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type


class Meaning(Enum):
    """What a leaf's written value stands for; the value is what plans and files print."""

    PLAIN = "plain"
    """Shown as it is written (after a cast between widths: int8 and int16 are written as int)."""
    DAYS = "days"
    """int, days since 1970-01-01 -> DATE."""
    EPOCH_MILLIS = "epoch-millis"
    """long, ms since the epoch, UTC -> TIMESTAMP."""
    EPOCH_MICROS = "epoch-micros"
    """long, us since the epoch, UTC -> TIMESTAMP."""
    ZONED_TIMESTAMP = "zoned-timestamp"
    """string, ISO 8601 with an offset -> TIMESTAMP."""
    TIME_MILLIS = "time-millis"
    """int, ms since midnight -> STRING ``HH:MM:SS.mmm``."""
    TIME_MICROS = "time-micros"
    """long, us since midnight -> STRING ``HH:MM:SS.uuuuuu``."""
    TIME_NANOS = "time-nanos"
    """long, ns since midnight -> STRING ``HH:MM:SS.nnnnnnnnn``."""
    VARIABLE_DECIMAL = "variable-decimal"
    """struct<scale: int, value: binary>, big endian two's complement -> STRING, plain decimal notation."""
    UUID_BYTES = "uuid-bytes"
    """fixed(16) -> STRING, lower-case with dashes."""
    LOG_SEQUENCE = "log-sequence"
    """string, Debezium's JSON list of two places in PostgreSQL's log, ``[last commit, own]`` -> BIGINT, the first that
    is there. Orders events, and is never a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value without members. ``type`` is the shown type.

    ``name`` is the semantic name that the registry gave it (``connect.name`` or the Avro logical type), empty if
    none: a change of it under the same Avro type is a change of meaning. ``symbols`` are an enum's.
    """

    type: Primitive | Decimal
    meaning: Meaning = Meaning.PLAIN
    name: str = ""
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """An Avro array."""

    element: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """An Avro map (``entries=False``), or Connect's array of key/value records for maps with other keys."""

    key: Encoding
    value: Encoding
    entries: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One field of a record, or one branch of a union.

    ``origin`` and ``since`` are its identity inside of the record, as a column's are in the row; they are known once
    the whole history is (`schemasync.core.history`). ``branch`` is what Avro tells a union's branch from the others by,
    a named type's full name or the type; empty for a field.
    """

    name: str
    encoding: Encoding
    nullable: bool = True
    aliases: tuple[str, ...] = ()
    since: int = 1
    origin: str = ""
    branch: str = ""

    @property
    def life(self) -> tuple[str, int]:
        """The name that the member's present life began with (lower case), and in which version."""
        return (self.origin or self.name).lower(), self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An Avro record, or (``union=True``) a union of several branches.

    parquet-avro writes a union's members as ``member0``, ``member1``, ... in the order of the branches, null not
    counted; exactly one of them is not null.
    """

    members: tuple[Member, ...]
    name: str = ""
    union: bool = False


Encoding = Leaf | ListOf | MapOf | Record


def shown_type(encoding: Encoding) -> Type:
    """Return the type that tables and views have for values of this encoding."""
    match encoding:
        case Leaf(type=leaf):
            return leaf
        case ListOf(element=element):
            return Array(element=shown_type(element))
        case MapOf(key=key, value=value):
            return Map(key=shown_type(key), value=shown_type(value))
        case Record(members=members):
            return Struct(fields=tuple(StructField(name=m.name, type=shown_type(m.encoding)) for m in members))
        case _:  # pragma: no cover
            assert_never(encoding)


def without_lives(encoding: Encoding) -> Encoding:
    """Return an encoding as one version alone says it: members without identity and aliases."""
    match encoding:
        case Leaf():
            return encoding
        case ListOf(element=element):
            return ListOf(element=without_lives(element))
        case MapOf():
            return replace(encoding, key=without_lives(encoding.key), value=without_lives(encoding.value))
        case Record(members=members):
            bare = (replace(m, encoding=without_lives(m.encoding), aliases=(), since=1, origin="") for m in members)
            return replace(encoding, members=tuple(bare))
        case _:  # pragma: no cover
            assert_never(encoding)


def without_names(encoding: Encoding) -> Encoding:
    """Return an encoding without what its types, those of a union's branches, and an enum's symbols are called."""
    match encoding:
        case Leaf():
            return replace(encoding, name="", symbols=())
        case ListOf(element=element):
            return ListOf(element=without_names(element))
        case MapOf():
            return replace(encoding, key=without_names(encoding.key), value=without_names(encoding.value))
        case Record(members=members):
            bare = tuple(replace(m, encoding=without_names(m.encoding), branch="") for m in members)
            return replace(encoding, members=bare, name="")
        case _:  # pragma: no cover
            assert_never(encoding)


def lives_by_name(encoding: Encoding) -> object:
    """Return the identities of all members inside of an encoding, in whatever order they stand."""
    match encoding:
        case Leaf():
            return None
        case ListOf(element=element):
            return lives_by_name(element)
        case MapOf(key=key, value=value):
            return lives_by_name(key), lives_by_name(value)
        case Record(members=members):
            return {m.name: (m.life, lives_by_name(m.encoding)) for m in members}
        case _:  # pragma: no cover
            assert_never(encoding)


def lives(encoding: Encoding) -> tuple[object, ...]:
    """Return the identities of all members inside of an encoding, in order."""
    match encoding:
        case Leaf():
            return ()
        case ListOf(element=element):
            return lives(element)
        case MapOf(key=key, value=value):
            return lives(key), lives(value)
        case Record(members=members):
            return tuple((m.life, lives(m.encoding)) for m in members)
        case _:  # pragma: no cover
            assert_never(encoding)
