"""What the tables should show, worked out in plain Python: nothing here knows schemasync.

A generated history is a list of schema versions whose fields carry their identity (``life``) with them, and events
that were written under one of the versions. `fold` replays events: newest per key, projected to one version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column or a struct's member. ``frozen`` is what rows older than it read: its default when it was added.

    ``ways`` are the types that it may have: its values are whole numbers that all of these hold. ``alias`` is its name
    in the version before, where this one renames it. A list's elements have the ``members``.
    """

    name: str
    type: str
    life: int
    nullable: bool = True
    default: Any = None
    frozen: Any = None
    members: tuple[Field, ...] = ()
    ways: tuple[str, ...] = ()
    alias: str | None = None

    def avro(self) -> dict[str, Any]:
        node: dict[str, Any] = {"name": self.name, "type": ["null", self._plain] if self.nullable else self._plain}
        if self.alias is not None:
            node["aliases"] = [self.alias]
        return node if self.default is None else node | {"default": _avro_default(self.default)}

    @property
    def _plain(self) -> Any:
        if self.type in DECIMALS:
            precision, scale = DECIMALS[self.type]
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        if not self.members:
            return self.type
        record = {"type": "record", "name": f"S{self.life}", "fields": [m.avro() for m in self.members]}
        return {"type": "array", "items": record} if self.type == "list" else record


DECIMALS = {"decimal(12,0)": (12, 0), "decimal(12,2)": (12, 2), "decimal(14,4)": (14, 4)}


def _avro_default(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    unscaled = int("".join(map(str, value.as_tuple().digits)))
    return unscaled.to_bytes(8, signed=True).decode("latin-1")


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
class Run:
    """An apply or a compact (minor, major, or as it decides).

    ``killed``: after how many writing calls, if it gets that far; None: never.
    ``again``: a killed run is followed by another one at once; else the story goes on.
    """

    what: str
    killed: int | None = None
    again: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Files land under a version that is registered by then, then something runs."""

    version: int
    landings: tuple[Landing, ...]
    runs: tuple[Run, ...]
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One table's life, whose versions come one after the other; the ``last`` run comes past every grace."""

    schemas: tuple[Schema, ...]
    blocks: tuple[Block, ...]
    ending: tuple[Run, ...]
    last: Run


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
    if wanted.type == "list":
        return [_projected(element, written.members, wanted.members) for element in value]
    if wanted.members:
        return _projected(value, written.members, wanted.members)
    return _as(value, wanted.type)


def _as(value: Any, type_: str) -> Any:
    """Return a value under a later type of its column: the same number, or its text."""
    if type_ in DECIMALS:
        return Decimal(value).quantize(Decimal(1).scaleb(-DECIMALS[type_][1]))
    return {"int": int, "long": int, "float": float, "double": float, "string": str}[type_](value)


WIDER = {"int": ("long", "double"), "float": ("double",)}
WRITTEN_OUT = {"int", "long"}
"""Types whose every value has one text on all engines: such columns may be retyped to string."""
WAYS = (("int", "long", "string", "decimal(12,0)"), ("int", "long", "double", "decimal(12,2)", "decimal(14,4)"))
"""Types between which a column of whole numbers may be retyped, back and forth."""
NAMES = ("a", "b", "c", "d")
MEMBERS = ("m0", "m1", "m2")
_LEAVES = ("int", "long", "float", "double", "string", "whole", "whole", "whole")
_DEFAULTS: dict[str, Any] = {"int": 42, "long": -7, "float": 0.5, "double": 2.25, "string": "it's ? né"}


class _Evolution:
    """Draws versions one after the other; each new field gets a life of its own, the key has life 0.

    A change is given the columns of the version before and those of the new one so far; the changes of columns are
    those of a struct's members, too.
    """

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
        kinds = _LEAVES if nested else (*_LEAVES, "struct", "list")
        kind = self.draw(st.sampled_from(kinds))
        if kind in {"struct", "list"}:
            members = tuple(self.field(name, nested=True) for name in MEMBERS[: self.draw(st.integers(1, 2))])
            return Field(name=name, type=kind, life=life, members=members)
        ways: tuple[str, ...] = self.draw(st.sampled_from(WAYS)) if kind == "whole" else ()
        type_ = self.draw(st.sampled_from(ways)) if ways else kind
        if nested or self.draw(st.booleans()):
            return Field(name=name, type=type_, life=life, ways=ways)
        default = _as(42, type_) if ways else _DEFAULTS[type_]
        return Field(name=name, type=type_, life=life, ways=ways, nullable=False, default=default)

    def next(self, before: Schema) -> Schema:
        now = tuple(_settled(f) for f in before)
        ours = (self.retype, self.retype, self.add, self.drop, self.widen, self.rename)
        for _ in range(self.draw(st.integers(1, 3))):
            change = self.draw(st.sampled_from((*ours, self.nest, self.nest, self.relax, self.tighten, self.turn)))
            now = change(before, now)
        there = {f.life for f in before}
        return tuple(f if f.life in there else replace(f, frozen=None if f.nullable else f.default) for f in now)

    def pick(self, now: Schema, wanted: Iterable[bool]) -> int | None:
        """Draw the place of a column that may be changed; the key may not."""
        places = [n for n, (field, fits) in enumerate(zip(now, wanted, strict=True)) if field.life and fits]
        return self.draw(st.sampled_from(places)) if places else None

    def free(self, before: Schema, now: Schema) -> str | None:
        """Draw a name that neither version has."""
        taken = {f.name for f in (*before, *now)}
        names = [name for name in (NAMES if _has_key(now) else MEMBERS) if name not in taken]
        return self.draw(st.sampled_from(names)) if names else None

    def add(self, before: Schema, now: Schema) -> Schema:
        name = self.free(before, now)
        if name is None:
            return now
        place = self.draw(st.integers(int(_has_key(now)), len(now)))
        return (*now[:place], self.field(name, nested=not _has_key(now)), *now[place:])

    def drop(self, _: Schema, now: Schema) -> Schema:
        place = self.pick(now, (len(now) > 1 + _has_key(now) for _ in now))
        return now if place is None else (*now[:place], *now[place + 1 :])

    def widen(self, _: Schema, now: Schema) -> Schema:
        if _has_key(now) and now[0].type == "int" and self.draw(st.booleans()):
            return (replace(now[0], type="long"), *now[1:])
        place = self.pick(now, (f.type in WIDER and not f.ways for f in now))
        return (
            now
            if place is None
            else _put(now, place, _become(now[place], self.draw(st.sampled_from(WIDER[now[place].type]))))
        )

    def retype(self, _: Schema, now: Schema) -> Schema:
        place = self.pick(now, (bool(f.ways) or f.type in WRITTEN_OUT for f in now))
        if place is None:
            return now
        others = [type_ for type_ in now[place].ways or ("string",) if type_ != now[place].type]
        return _put(now, place, _become(now[place], self.draw(st.sampled_from(others))))

    def rename(self, before: Schema, now: Schema) -> Schema:
        place, name = self.pick(now, (True for _ in now)), self.free(before, now)
        if place is None or name is None:
            return now
        old = next((f.name for f in before if f.life == now[place].life), None)
        return _put(now, place, replace(now[place], name=name, alias=old))

    def nest(self, before: Schema, now: Schema) -> Schema:
        place = self.pick(now, (bool(f.members) for f in now))
        if place is None:
            return now
        old = next((f.members for f in before if f.life == now[place].life), ())
        change = self.draw(st.sampled_from((self.add, self.drop, self.widen, self.retype, self.rename)))
        return _put(now, place, replace(now[place], members=change(old, now[place].members)))

    def relax(self, _: Schema, now: Schema) -> Schema:
        """Make what was NOT NULL nullable: what is frozen stays frozen."""
        return (now[0], *(replace(f, nullable=True, default=None) for f in now[1:]))

    def tighten(self, _: Schema, now: Schema) -> Schema:
        """Make a column NOT NULL: rows from before go on having what they have."""
        place = self.pick(now, (f.nullable for f in now))
        return now if place is None else _put(now, place, replace(now[place], nullable=False))

    def turn(self, _: Schema, now: Schema) -> Schema:
        return (now[0], *reversed(now[1:]))


def _has_key(now: Schema) -> bool:
    return now[0].life == 0


def _put(now: Schema, place: int, field: Field) -> Schema:
    return (*now[:place], field, *now[place + 1 :])


def _become(field: Field, type_: str) -> Field:
    default, frozen = (None if v is None else _as(v, type_) for v in (field.default, field.frozen))
    return replace(field, type=type_, default=default, frozen=frozen)


def _settled(field: Field) -> Field:
    """Return a field as the next version has it by itself: under a name that needs no alias."""
    return replace(field, alias=None, members=tuple(_settled(m) for m in field.members))


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text("aé'\\ \n", max_size=3),
}


def values(field: Field) -> st.SearchStrategy[Any]:
    plain = _plain_values(field)
    return st.none() | plain if field.nullable else plain


def _plain_values(field: Field) -> st.SearchStrategy[Any]:
    if field.ways:
        return _VALUES["int"].map(lambda number: _as(number, field.type))
    if not field.members:
        return _VALUES[field.type]
    record = st.fixed_dictionaries({m.name: values(m) for m in field.members})
    return st.lists(record, max_size=2) if field.type == "list" else record


class _Writer:
    """Draws files of events; of different ones only two of one file have the same place in the order."""

    def __init__(self, draw: st.DrawFn, schemas: Sequence[Schema], *, snapshots: bool) -> None:
        self.draw = draw
        self.schemas = schemas
        self.snapshots = snapshots
        self.used: set[int] = set()
        self.read: set[int] = set()
        self.landed: list[Landing] = []
        self.first = 1

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
            # Or another one in its place: of these the one that arrived last is newer, however often the file lands.
            events.append(self.changed(twice) if self.draw(st.booleans()) else twice)
        found = Landing(version=version, events=tuple(events), hour=self.hour())
        self.landed.append(found)
        return found

    def hour(self) -> int:
        return self.draw(st.integers(0, 2))

    def event(self, version: int) -> Event:
        # By turns, so that the simplest story has several rows, too.
        key = 1 + (len(self.used) + self.draw(st.integers(0, 3))) % 4
        op, row = self.change(key, version)
        position: int | None = self.first + self.draw(st.integers(0, 59))
        while position in self.used:
            position = (position or 0) + 1
        self.used.add(position or 0)
        if self.snapshots and key not in self.read and self.draw(st.integers(0, 3)) == 0:
            self.read.add(key)
            op, position = "r", None
        return Event(key=key, op=op, version=version, order=(position, self.draw(st.integers(0, 2))), row=row)

    def change(self, key: int, version: int) -> tuple[str, Row]:
        row = {f.name: self.draw(values(f)) for f in self.schemas[version - 1][1:]} | {"id": key}
        return self.draw(st.sampled_from("ccuuudd")), row

    def changed(self, event: Event) -> Event:
        op, row = self.change(event.key, event.version)
        return replace(event, op="r" if event.op == "r" else op, row=row)


RUNS = (("apply",), ("compact",), (), ("apply", "compact"), ("minor",), ("minor", "major"))
GATHERING = (("minor",), ("apply", "minor"), ("minor", "minor"))
CALLS = {
    what: sorted(range(1, most), key=lambda call: abs(call - 9))
    for what, most in (("apply", 17), ("compact", 33), ("minor", 25), ("major", 33))
}
"""The writing calls of most runs, those in the middle first; there are fewer where there is little to do."""


def gathered() -> Story:
    """Return a story that needs all that is asked of some story: of shards one is changed, by more deltas than one.

    In each of these is a late event, too.
    """
    schema = (Field(name="id", type="long", life=0, nullable=False), Field(name="a", type="int", life=1))

    def event(key: int, at: int, op: str = "u") -> Event:
        return Event(key=key, op=op, version=1, order=(at, 0), row={"id": key, "a": at})

    def block(what: str, *events: Event) -> Block:
        return Block(
            version=1, landings=(Landing(version=1, events=events, hour=0),), runs=(Run(what=what),), minutes=1
        )

    whole = [block("major", *(event(key, 20 * time + key) for key in range(1, 5))) for time in (1, 2)]
    beside = [block("minor", event(1, 60 + 20 * time), event(2, time), event(5, 61 + 20 * time)) for time in (1, 2, 3)]
    return Story(
        schemas=(schema,),
        blocks=(*whole, *beside),
        ending=(Run(what="apply"), Run(what="compact")),
        last=Run(what="compact"),
    )


@st.composite
def stories(draw: st.DrawFn, *, snapshots: bool, kills: bool = False, gathering: bool = False) -> Story:
    """Draw two to four versions, and what happens between their registrations; ``kills``: some runs are killed.

    ``gathering``: a base is made under the newest version, and changes gather beside it.
    """
    evolution = _Evolution(draw)
    schemas = [evolution.first()]
    for _ in range(draw(st.integers(1, 3))):
        schemas.append(evolution.next(schemas[-1]))
    writer = _Writer(draw, schemas, snapshots=snapshots)

    def run(what: str, *, again: bool = False) -> Run:
        if not kills or draw(st.integers(0, 2)) == 2:
            return Run(what=what)
        return Run(what=what, killed=draw(st.sampled_from(CALLS[what])), again=again or draw(st.booleans()))

    def block(version: int, among: Sequence[tuple[str, ...]]) -> Block:
        landings = tuple(writer.landing(version) for _ in range(draw(st.integers(1, 3))))
        runs = tuple(run(what) for what in draw(st.sampled_from([runs for runs in among if runs or not kills])))
        return Block(version=version, landings=landings, runs=runs, minutes=draw(st.sampled_from([1, 30, 120])))

    blocks = [block(version, RUNS) for version in range(1, len(schemas) + 1)]
    if gathering:
        blocks.append(block(len(schemas), [("major",)]))
        for _ in range(draw(st.integers(2, 4))):
            writer.first += 40  # late events are not all that there is
            blocks.append(block(len(schemas), GATHERING))
    ending = (run("apply"), run("compact", again=True))
    return Story(schemas=tuple(schemas), blocks=tuple(blocks), ending=ending, last=run("compact", again=True))
