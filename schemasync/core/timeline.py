"""What became of a table's columns: per version what it changed and when that was applied, per column its life.

Made from the subject's history, the records of what was applied and the layout; shown by `schemasync history` and
written as rows into the history table. A version that the table passed over (from 3 to 5) is *applied with* the one
after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from schemasync.core.applied import AppliedVersion, in_force
from schemasync.core.changes import (
    AddColumn,
    Change,
    ChangeEnvelope,
    ChangeKey,
    DropColumn,
    ReorderColumns,
)
from schemasync.core.describe import change_json
from schemasync.core.diff import diff
from schemasync.core.history import History
from schemasync.core.layout import Layout, lay_out
from schemasync.core.names import Dialect
from schemasync.core.properties import TableProperties
from schemasync.core.schema import Column, Life, SubjectVersion, TableSchema
from schemasync.core.type_strings import print_type

CHANGE_KEY: Final = "change_key"
"""The kind of the one change that no version says: which columns are the key is in the records only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change: ``column`` is a name, or a path into a struct; ``physical`` the column of the long-lived table.

    Both are None for changes of the whole table, ``physical`` also where the table never had the column. The sides
    are as `schemasync.core.describe.change_json` gives them.
    """

    kind: str
    column: str | None = None
    physical: str | None = None
    current: Any = None
    desired: Any = None

    def to_json(self) -> dict[str, Any]:
        """Return ``{"kind", "column", "physical", "from", "to"}``."""
        return {
            "kind": self.kind,
            "column": self.column,
            "physical": self.physical,
            "from": self.current,
            "to": self.desired,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionEntry:
    """One version of the subject. ``shown``: the table has it, or one after it.

    ``record`` is what is known of how it came into force, alone or with a later version; None where it was never
    recorded, or did not come into force yet.
    """

    version: int
    schema_id: int
    shown: bool
    record: AppliedVersion | None = None
    events: tuple[Event, ...] = ()

    @property
    def applied_with(self) -> int | None:
        """The version with which it was applied: itself, or a later one that passed over it. None where unknown."""
        return self.record.version if self.record else None

    @property
    def applied_ms(self) -> int | None:
        """When it was applied, ms since 1970 UTC; None where that is unknown or did not happen yet."""
        return self.record.applied_ms if self.record else None

    def to_json(self) -> dict[str, Any]:
        """Return the version's part of ``history --json``."""
        return {
            "version": self.version,
            "schema_id": self.schema_id,
            "applied": self.shown,
            "applied_with": self.applied_with,
            "applied_at": iso(self.applied_ms),
            "verdict": self.record.verdict if self.record else None,
            "policies": self.record.policies if self.record else None,
            "changes": [event.to_json() for event in self.events],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A physical column that holds a life's values of versions ``since`` to ``until`` (None: still does)."""

    name: str
    since: int
    until: int | None

    def to_json(self) -> dict[str, Any]:
        """Return ``{"name", "since", "until"}``."""
        return {"name": self.name, "since": self.since, "until": self.until}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLife:
    """One column from the version that brought it to the one that no longer has it, under all its names.

    ``column`` and ``type`` are as they stood last. ``places`` is empty where the table never had it.
    """

    column: str
    type: str
    names: tuple[str, ...]
    brought_in: int
    changed_in: tuple[int, ...] = ()
    retired_in: int | None = None
    places: tuple[Place, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the column's part of ``history --json``."""
        return {
            "column": self.column,
            "type": self.type,
            "names": list(self.names),
            "brought_in": self.brought_in,
            "changed_in": list(self.changed_in),
            "retired_in": self.retired_in,
            "physical": [place.to_json() for place in self.places],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A table's past: its versions in ascending order, its columns in the order in which they came."""

    versions: tuple[VersionEntry, ...] = ()
    columns: tuple[ColumnLife, ...] = ()


def iso(time_ms: int | None) -> str | None:
    """Return a time in ms since 1970 as ISO 8601 in UTC, milliseconds included; None stays None."""
    if time_ms is None:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timeline(history: History, properties: TableProperties | None, records: Sequence[AppliedVersion] = ()) -> Timeline:
    """Tell a table's past; ``properties`` are None where there is no table yet, so that nothing is applied."""
    past = _Past(
        history=history,
        properties=properties,
        records=in_force(records, properties) if properties else (),
        layout=lay_out(history, baseline=properties.baseline, version=properties.version) if properties else None,
    )
    changes = _changes(history)
    return Timeline(
        versions=tuple(_entry(past, version, changes[version.version]) for version in history.versions),
        columns=tuple(_column_life(past, life, changes) for life in _lives(history)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    history: History
    properties: TableProperties | None
    records: tuple[AppliedVersion, ...]
    layout: Layout | None

    def shows(self, version: int) -> bool:
        return self.properties is not None and version <= self.properties.version

    def record_of(self, version: int) -> AppliedVersion | None:
        """Return the record of the step that brought a version: its own, or that of a later one."""
        return next((r for r in self.records if (r.from_version or 0) < version <= r.version), None)

    def physical(self, life: Life, version: int) -> str | None:
        """Return where a life's values of one version stand in the table."""
        column = self.history.column(life, version)
        if column is None or self.layout is None or not self.shows(version):
            return None
        # What was recorded holds, whatever the configuration says of renames by now.
        said = next((r.columns.get(column.name) for r in self.records if r.version == version), None)
        phase = self.layout.phase(life, version)
        return said or (phase.name if phase else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What one version changed, compared with the one before it (None: the first)."""

    before: int | None = None
    changes: tuple[Change, ...] = ()


def _changes(history: History) -> dict[int, _Step]:
    first, *_ = history.versions
    began = tuple(AddColumn(column=c, position=n) for n, c in enumerate(first.columns))
    steps = {first.version: _Step(changes=began)}
    for before, after in pairwise(history.versions):
        steps[after.version] = _Step(before=before.version, changes=diff(_schema(before), _schema(after)))
    return steps


def _schema(version: SubjectVersion) -> TableSchema:
    return TableSchema(columns=version.columns, keys=(), envelope=version.envelope)


def _entry(past: _Past, version: SubjectVersion, step: _Step) -> VersionEntry:
    record = past.record_of(version.version)
    events = [_event(past, version.version, step, change) for change in step.changes]
    own = record if record and record.version == version.version else None
    events += [
        Event(kind=CHANGE_KEY, current=change["from"], desired=change["to"])
        for change in (own.changes if own else ())
        if change["kind"] == CHANGE_KEY
    ]
    return VersionEntry(
        version=version.version,
        schema_id=version.schema_id,
        shown=past.shows(version.version),
        record=record,
        events=tuple(events),
    )


def _event(past: _Past, version: int, step: _Step, change: Change) -> Event:
    shown = change_json(change)
    life = _life_of(change)
    # A dropped column is looked for where it stood last.
    at = step.before if isinstance(change, DropColumn) and step.before is not None else version
    physical = past.physical(life, at) if life else None
    return Event(
        kind=shown["kind"], column=shown["column"], physical=physical, current=shown["from"], desired=shown["to"]
    )


def _life_of(change: Change) -> Life | None:
    match change:
        case AddColumn() | DropColumn():
            return change.column.life
        case ReorderColumns() | ChangeKey() | ChangeEnvelope():
            return None
        case _:
            return change.life


def _lives(history: History) -> tuple[Life, ...]:
    return tuple(dict.fromkeys(c.life for version in history.versions for c in version.columns))


def _column_life(past: _Past, life: Life, steps: dict[int, _Step]) -> ColumnLife:
    stood = tuple(_stood(past.history, life))
    last, column = stood[-1]
    return ColumnLife(
        column=column.name,
        type=print_type(column.type, Dialect.SPARK),
        names=tuple(dict.fromkeys(c.name for _, c in stood)),
        brought_in=stood[0][0],
        changed_in=tuple(v for v, _ in stood[1:] if any(_life_of(change) == life for change in steps[v].changes)),
        retired_in=next((v.version for v in past.history.versions if v.version > last), None),
        places=tuple(_places(past, life, [v for v, _ in stood])),
    )


def _stood(history: History, life: Life) -> Iterator[tuple[int, Column]]:
    for version in history.versions:
        found = history.column(life, version.version)
        if found is not None:
            yield version.version, found


def _places(past: _Past, life: Life, versions: Sequence[int]) -> Iterator[Place]:
    """Yield the physical columns of a life one after the other; versions from before the table never had one."""
    if past.properties is None:
        return
    began, now = past.properties.baseline, past.properties.version
    found = [(v, past.physical(life, v)) for v in versions if began <= v <= now]
    names = dict.fromkeys(name for _, name in found if name)
    for name in names:
        stood = [v for v, place in found if place == name]
        still = name == found[-1][1] and stood[-1] == max(v.version for v in past.history.between(began, now))
        yield Place(name=name, since=stood[0], until=None if still else stood[-1])


def value_text(value: Any) -> str | None:
    """Return one side of a change as text: text as it is, anything else as JSON; None stays None."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
