"""The table that people query for a table's past: its columns, its rows, and whether it is up to date.

It is derived data: each time the history changes the whole small table is written anew into a directory that never
was, and the table is moved there. `marks` says what it was made from, so that a second apply does nothing and a killed
one is completed by the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from schemasync.core.canonical import fingerprint
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import HiveTable
from schemasync.core.properties import TableProperties
from schemasync.core.timeline import Event, Timeline, VersionEntry, value_text
from schemasync.core.types import Primitive

DIRECTORY: Final = "history"
"""Where the table's directories are, relative to the location of the table that it is about."""

HISTORY_OF: Final = "schemasync.history_of"
"""Marks the table with the one that it is about: what carries it may be moved."""
HISTORY_HASH: Final = "schemasync.history_hash"
"""Hash of all that the rows follow from."""

FORMAT: Final = 1
"""Counts the layouts of the rows: a new one has every history table written anew."""

NO_CHANGE: Final = "no_change"
"""The kind of the one row of a version that changed nothing."""

COLUMNS: Final = (
    ("version", Primitive.INT, "subject version"),
    (
        "applied_with",
        Primitive.INT,
        "version with which it was applied: itself or a later one, NULL where not recorded",
    ),
    ("applied_at", Primitive.TIMESTAMP, "when that was, NULL where not recorded"),
    ("verdict", Primitive.STRING, "what was decided then: evolve or migrate"),
    ("kind", Primitive.STRING, "add_column, drop_column, widen_column and so on, no_change where nothing changed"),
    ("column_name", Primitive.STRING, "column or path into a struct, NULL for the whole table"),
    ("physical", Primitive.STRING, "column of the long-lived table, NULL where it never had one"),
    ("from_value", Primitive.STRING, "type, name or whatever changed, before"),
    ("to_value", Primitive.STRING, "the same, after"),
)
"""Name, type and comment. Rows hold ``applied_at`` in ms since 1970 UTC."""

Row = tuple[Any, ...]


def history_rows(found: Timeline) -> tuple[Row, ...]:
    """Return one row per change of every version that the table shows, as `COLUMNS` says, oldest first."""
    return tuple(row for entry in found.versions if entry.shown for row in _rows(entry))


def _rows(entry: VersionEntry) -> Iterator[Row]:
    verdict = entry.record.verdict if entry.record else None
    head = (entry.version, entry.applied_with, entry.applied_ms, verdict)
    for event in entry.events or (Event(kind=NO_CHANGE),):
        sides = (value_text(event.current), value_text(event.desired))
        yield (*head, event.kind, event.column, event.physical, *sides)


def marks(target: TableTarget, properties: TableProperties) -> dict[str, str]:
    """Return the properties of a history table that is up to date with the table's."""
    source = [
        FORMAT,
        [properties.subject, properties.version, properties.schema_id, properties.fingerprint],
        [properties.baseline, properties.keys, properties.columns],
        [target.renames, target.policies.rename],
    ]
    return {HISTORY_OF: target.table, HISTORY_HASH: fingerprint(source)}


def is_history_of(table: HiveTable, target: TableTarget) -> bool:
    """Tell whether a table is the history of this one, made by schemasync."""
    return table.kind == "EXTERNAL_TABLE" and table.properties.get(HISTORY_OF) == target.table


def is_current(table: HiveTable | None, wanted: Mapping[str, str]) -> bool:
    """Tell whether a history table says what it should."""
    return table is not None and wanted.items() <= table.properties.items()


def new_directory(version: int, *, now_ms: int, token: str) -> str:
    """Return the next directory, relative to the table's location; its name says when it was made."""
    return f"{DIRECTORY}/v={version:06}-{now_ms}-{token}"


def made_ms(directory: str) -> int:
    """Return when a directory was made, ms since 1970 UTC; 0 where its name does not say so."""
    parts = directory.rstrip("/").rsplit("/", 1)[-1].split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 0
