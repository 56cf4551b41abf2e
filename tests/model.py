"""What the tables should show, worked out in plain Python: nothing here knows schemasync.

A generated history is a list of schema versions whose fields carry their identity (``life``) with them, and events
that were written under one of the versions. `fold` replays events: newest per key, projected to one version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column or a struct's member. ``frozen`` is what rows older than it read: its default when it was added."""

    name: str
    type: str
    life: int
    nullable: bool = True
    default: Any = None
    frozen: Any = None
    members: tuple[Field, ...] = ()

    def avro(self) -> dict[str, Any]:
        plain: Any = self.type
        if self.members:
            plain = {"type": "record", "name": f"S{self.life}", "fields": [m.avro() for m in self.members]}
        node: dict[str, Any] = {"name": self.name, "type": ["null", plain] if self.nullable else plain}
        return node if self.default is None else node | {"default": self.default}


Schema = tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``order`` decides which event of a key is newer: larger wins, element by element, None is smallest."""

    key: int
    op: str
    version: int
    order: tuple[int | None, ...]
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One file: all its events were written under one version (counted from 1)."""

    version: int
    events: tuple[Event, ...]
    hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What happens after a version was registered: files land, then something runs."""

    landings: tuple[Landing, ...]
    runs: tuple[str, ...]
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One table's life: block n begins with the registration of version n."""

    schemas: tuple[Schema, ...]
    blocks: tuple[Block, ...]


def newness(event: Event) -> tuple[tuple[bool, int], ...]:
    return tuple((part is not None, part or 0) for part in event.order)


def newest(events: Iterable[Event]) -> dict[int, Event]:
    found: dict[int, Event] = {}
    for event in events:
        if event.key not in found or newness(event) >= newness(found[event.key]):
            found[event.key] = event
    return found


def fold(events: Iterable[Event], schemas: Sequence[Schema], version: int) -> list[Row]:
    """Return the rows that a table of ``version`` shows, ordered by key."""
    alive = (event for _, event in sorted(newest(events).items()) if event.op != "d")
    return [shown(event, schemas, version) for event in alive]


def shown(event: Event, schemas: Sequence[Schema], version: int) -> Row:
    return _projected(event.row, schemas[event.version - 1], schemas[version - 1])


def _projected(row: Mapping[str, Any], written: Sequence[Field], wanted: Sequence[Field]) -> Row:
    by_life = {f.life: f for f in written}
    return {f.name: _value(row, by_life.get(f.life), f) for f in wanted}


def _value(row: Mapping[str, Any], written: Field | None, wanted: Field) -> Any:
    if written is None:
        return wanted.frozen
    value = row[written.name]
    if value is None:
        return None
    if wanted.members:
        return _projected(value, written.members, wanted.members)
    return _as(value, wanted.type)


def _as(value: Any, type_: str) -> Any:
    """Return a value under a later type of its column: the same number, or its text."""
    if type_ in {"float", "double"}:
        return float(value)
    return str(value) if type_ == "string" else value


WIDER = {"int": ("long", "double"), "float": ("double",)}
WRITTEN_OUT = {"int", "long"}
"""Types whose every value has one text on all engines: such columns may be retyped to string."""
NAMES = ("a", "b", "c", "d")
_LEAVES = ("int", "long", "float", "double", "string")
_DEFAULTS: dict[str, Any] = {"int": 42, "long": -7, "float": 0.5, "double": 2.25, "string": "it's ? né"}


class _Evolution:
    """Draws versions one after the other; each new field gets a life of its own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lives = 0

    def first(self) -> Schema:
        key = Field(name="id", type=self.draw(st.sampled_from(["int", "long"])), life=0, nullable=False)
        count = self.draw(st.integers(1, 3))
        return (key, *(self.field(name) for name in NAMES[:count]))

    def field(self, name: str, *, nested: bool = False) -> Field:
        self.lives += 1
        life = self.lives
        kinds = _LEAVES if nested else (*_LEAVES, "struct")
        kind = self.draw(st.sampled_from(kinds))
        if kind == "struct":
            members = tuple(self.field(f"m{n}", nested=True) for n in range(self.draw(st.integers(1, 2))))
            return Field(name=name, type="struct", life=life, members=members)
        if nested or self.draw(st.booleans()):
            return Field(name=name, type=kind, life=life)
        default = _DEFAULTS[kind]
        return Field(name=name, type=kind, life=life, nullable=False, default=default, frozen=default)

    def next(self, before: Schema) -> Schema:
        now = before
        for _ in range(self.draw(st.integers(1, 2))):
            changes = (self.add, self.add, self.drop, self.widen, self.retype, self.nest, self.relax, self.turn)
            now = self.draw(st.sampled_from(changes))(before, now)
        return now

    def add(self, before: Schema, now: Schema) -> Schema:
        taken = {f.name for f in (*before, *now)}
        free = [name for name in NAMES if name not in taken]
        if not free:
            return now
        place = self.draw(st.integers(1, len(now)))
        return (*now[:place], self.field(self.draw(st.sampled_from(free))), *now[place:])

    def drop(self, _: Schema, now: Schema) -> Schema:
        if len(now) < 3:
            return now
        place = self.draw(st.integers(1, len(now) - 1))
        return (*now[:place], *now[place + 1 :])

    def widen(self, _: Schema, now: Schema) -> Schema:
        candidates = [n for n, f in enumerate(now) if f.type in WIDER]
        if not candidates:
            return now
        place = self.draw(st.sampled_from(candidates))
        wider = [t for t in WIDER[now[place].type] if place or t == "long"]
        default = now[place].default
        kind = self.draw(st.sampled_from(wider))
        changed = replace(now[place], type=kind, default=float(default) if default and kind == "double" else default)
        if changed.frozen is not None and kind == "double":
            changed = replace(changed, frozen=float(changed.frozen))
        return (*now[:place], changed, *now[place + 1 :])

    def retype(self, _: Schema, now: Schema) -> Schema:
        candidates = [n for n, f in enumerate(now) if n and f.type in WRITTEN_OUT]
        if not candidates:
            return now
        place = self.draw(st.sampled_from(candidates))
        return (*now[:place], self.text(now[place]), *now[place + 1 :])

    def text(self, field: Field) -> Field:
        default, frozen = (None if v is None else str(v) for v in (field.default, field.frozen))
        return replace(field, type="string", default=default, frozen=frozen)

    def nest(self, before: Schema, now: Schema) -> Schema:
        structs = [n for n, f in enumerate(now) if f.members]
        if not structs:
            return now
        place = self.draw(st.sampled_from(structs))
        old = next((f.members for f in before if f.life == now[place].life), ())
        members = self.inside(old, now[place].members)
        return (*now[:place], replace(now[place], members=members), *now[place + 1 :])

    def inside(self, before: Sequence[Field], now: tuple[Field, ...]) -> tuple[Field, ...]:
        if len(now) > 1 and self.draw(st.booleans()):
            return now[1:]
        if now[0].type in WRITTEN_OUT and self.draw(st.booleans()):
            return (self.text(now[0]), *now[1:])
        taken = {m.name for m in (*before, *now)}
        free = [name for name in ("m0", "m1", "m2") if name not in taken]
        return (*now, self.field(free[0], nested=True)) if free else now

    def relax(self, _: Schema, now: Schema) -> Schema:
        """Make what was NOT NULL nullable: what is frozen stays frozen."""
        return (now[0], *(replace(f, nullable=True, default=None) for f in now[1:]))

    def turn(self, _: Schema, now: Schema) -> Schema:
        return (now[0], *reversed(now[1:]))


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text("aé'\\ \n", max_size=3),
}


def values(field: Field) -> st.SearchStrategy[Any]:
    plain: st.SearchStrategy[Any] = (
        st.fixed_dictionaries({m.name: values(m) for m in field.members}) if field.members else _VALUES[field.type]
    )
    return st.none() | plain if field.nullable else plain


class _Writer:
    """Draws files of events; no two different events of a story have the same place in the order."""

    def __init__(self, draw: st.DrawFn, schemas: Sequence[Schema], *, snapshots: bool) -> None:
        self.draw = draw
        self.schemas = schemas
        self.snapshots = snapshots
        self.used: set[int] = set()
        self.read: set[int] = set()
        self.landed: list[Landing] = []

    def landing(self, newest_version: int) -> Landing:
        if self.landed and self.draw(st.integers(0, 4)) == 0:
            again = replace(self.draw(st.sampled_from(self.landed)), hour=self.hour())
            self.landed.append(again)
            return again
        version = self.draw(st.sampled_from([newest_version, newest_version, *range(1, newest_version + 1)]))
        events = [self.event(version) for _ in range(self.draw(st.sampled_from([4, 3, 5, 2, 1, 0])))]
        repeated = self.draw(st.booleans())
        if events and repeated:
            twice: Event = self.draw(st.sampled_from(events))
            events.append(twice)
        found = Landing(version=version, events=tuple(events), hour=self.hour())
        self.landed.append(found)
        return found

    def hour(self) -> int:
        return self.draw(st.integers(0, 2))

    def event(self, version: int) -> Event:
        key, op = self.draw(st.integers(1, 4)), self.draw(st.sampled_from("ccuuudd"))
        row = {f.name: self.draw(values(f)) for f in self.schemas[version - 1][1:]} | {"id": key}
        position: int | None = self.draw(st.integers(1, 60))
        while position in self.used:
            position = (position or 0) + 1
        self.used.add(position or 0)
        if self.snapshots and key not in self.read and self.draw(st.integers(0, 3)) == 0:
            self.read.add(key)
            op, position = "r", None
        return Event(key=key, op=op, version=version, order=(position, self.draw(st.integers(0, 2))), row=row)


RUNS = (("apply",), ("compact",), (), ("apply", "compact"))


@st.composite
def stories(draw: st.DrawFn, *, snapshots: bool) -> Story:
    """Draw two to four versions, and what happens between their registrations."""
    evolution = _Evolution(draw)
    schemas = [evolution.first()]
    for _ in range(draw(st.integers(1, 3))):
        schemas.append(evolution.next(schemas[-1]))
    writer = _Writer(draw, schemas, snapshots=snapshots)
    blocks = []
    for version in range(1, len(schemas) + 1):
        landings = tuple(writer.landing(version) for _ in range(draw(st.integers(1, 3))))
        runs = draw(st.sampled_from(RUNS))
        blocks.append(Block(landings=landings, runs=runs, minutes=draw(st.sampled_from([1, 30, 120]))))
    return Story(schemas=tuple(schemas), blocks=tuple(blocks))
