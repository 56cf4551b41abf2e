"""What one subject version says about a table: the row's columns, the envelope around them, the ordering.

Built by `schemasync.core.avro` from Avro text; compared by `schemasync.core.diff`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from schemasync.core.encoding import Encoding, Meaning, Record, shown_type
from schemasync.core.types import Primitive, Type


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Life:
    """The span of versions in which one column means one thing: the name it began with, and when it began.

    Names are lower-case: the metastore does not tell ``State`` from ``state``.
    """

    since: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the row.

    ``default`` is the Avro default as canonical JSON text (``"42"``, ``'"x"'``, ``"null"``), or None where the
    field has none. ``since`` is the version in which the column's current life began and ``origin`` its name in
    that version (empty: the name it has now); together they are the column's identity. ``replaces`` is the life whose
    place that one took at once, None where the name was free: then it is a column that was added, maybe again.
    """

    name: str
    encoding: Encoding
    nullable: bool
    default: str | None = None
    doc: str = ""
    aliases: tuple[str, ...] = ()
    since: int = 1
    origin: str = ""
    replaces: Life | None = None

    @property
    def life(self) -> Life:
        """The column's identity: which life of which name this is."""
        return Life(name=(self.origin or self.name).lower(), since=self.since)

    @property
    def type(self) -> Type:
        """The type that tables and views show."""
        return shown_type(self.encoding)


class EnvelopeKind(Enum):
    """How one change event is wrapped; the value is what configuration and plans print."""

    DEBEZIUM = "debezium"
    """``before`` and ``after`` records beside ``op``; the row is ``after``, of a delete only the key in ``before``."""
    FLAT = "flat"
    """The row's columns with ``op`` (and ``ts_ms``, maybe ``kafka_offset``) beside them."""
    UNWRAPPED = "debezium-unwrapped"
    """The row's columns with Debezium's ``__op``, ``__deleted``, ``__ts_ms``, ... beside them."""
    PLAIN = "plain"
    """The row alone: every event is an upsert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderingField:
    """One element of the ordering key: where it stands in the event, and its type.

    ``path`` holds field names from the event's root (``("source", "lsn")``). Larger is newer; null is oldest.
    ``type`` is the shown type, ``meaning`` how it is written.
    """

    path: tuple[str, ...]
    type: Primitive
    meaning: Meaning = Meaning.PLAIN

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Where the parts of an event stand. Paths are field names from the event's root; None where there is none."""

    kind: EnvelopeKind
    op: str | None = None
    deleted: str | None = None
    ts_ms: tuple[str, ...] | None = None
    offset: str | None = None
    ordering: tuple[OrderingField, ...] = ()

    @property
    def row(self) -> str | None:
        """The field that holds the row, None where the row's columns stand at the root."""
        return "after" if self.kind is EnvelopeKind.DEBEZIUM else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersion:
    """One version of a value subject, understood.

    ``columns`` are the row's, in registry order. ``fingerprint`` is the hex SHA-256 of the schema's canonical
    JSON with its references; it tells a re-created subject from the one we know.
    """

    subject: str
    version: int
    schema_id: int
    columns: tuple[Column, ...]
    envelope: Envelope
    fingerprint: str
    event: Record | None = None
    """The whole event as the sink's files hold it, envelope included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The two sides of a diff: what a table's rows are. No version, no names of the outside."""

    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    envelope: Envelope
