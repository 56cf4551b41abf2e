"""One whole Debezium history in one table: what was captured, and what could have come after it (`evolving`).

Files land as a Connect sink writes them, late, twice and mixed; applies and compactions come at drawn moments. The
judge is a plain Python fold of the messages, which knows of schemasync only what its documentation promises.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from schemasync.app.releasing import release
from schemasync.app.status import status
from schemasync.core.policy import Verdict
from schemasync.core.release import Release
from tests.connect_sink import ConnectSink
from tests.lab import HOUR, Lab
from tests.stories.evolving import (
    BEFORE,
    CAPTURED,
    KEYS,
    ONWARDS,
    TOPIC,
    UNDER_E,
    UNDER_REGION,
    Change,
    File,
    Step,
    captured_changes,
    value_schema,
)
from tests.stories.test_debezium_replay import land_captured

pytestmark = pytest.mark.spark

TABLE = "evolving"
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way through the history: the table's configuration, how the key changes in the end, and the draw."""

    name: str
    last: Step
    seed: int
    renamed: bool = False
    beside: bool = False
    """Nothing goes away: ``retype: variant`` and ``drop: keep``."""

    @property
    def settings(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"subject": f"{TOPIC}-value", "table": TABLE}
        if self.renamed:
            entry["renames"] = {"b_renamed": "b"}
        if self.beside:
            entry["policies"] = {"retype": "variant", "drop": "keep"}
        return {"tables": [entry]}


WAYS = (
    Way(name="as reported", last=UNDER_E, seed=1),
    Way(name="rename named", last=UNDER_REGION, seed=2, renamed=True),
    Way(name="nothing goes away", last=UNDER_REGION, seed=3, beside=True),
)


CASES = [
    # Names and policies are what we decide.
    pytest.param(way, id=way.name, marks=[pytest.mark.one_spark] if way.renamed or way.beside else [])
    for way in WAYS
]


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def scaled(digits: str) -> Callable[[Decimal | None], Decimal | None]:
    return lambda value: None if value is None else value.quantize(Decimal(digits))


def text(value: int | str | None) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A column of the view: whose values it shows, as what; ``older`` is what rows from before that life show."""

    name: str
    type: str
    life: str
    older: Any = None
    read: Callable[[Any], Any] = lambda value: value


_BORN = {"b": 1, "c": 1, "a": 1, "id": 1, "d": 2, "e": 3, "b_renamed": 4, "e text": 7, "d again": 9}
_BORN |= {"c again": 11, "status": 11, "region": 13}
"""In which version each life begins. A second one under the same name is another column."""


def shown(version: int, way: Way) -> tuple[Shown, ...]:
    """Return the columns of the view under one version."""
    columns = tuple(_shown(version, way))
    names = {column.name for column in columns}
    gone = (column for last, column in _DROPPED if way.beside and version > last and column.name not in names)
    return (*columns, *gone)


def _shown(version: int, way: Way) -> Iterator[Shown]:
    numeric, digits = ("decimal(8,2)", "0.01") if version == 9 else ("decimal(12,4)", "0.0001")
    yield Shown(name="id", type="int", life="id")
    yield Shown(name="a", type="bigint" if version >= 6 else "int", life="a")
    yield Shown(name="b_renamed" if version >= 4 else "b", type="string", life=life_of("b_renamed", version, way))
    if version <= 4:
        yield Shown(name="c", type="decimal(8,2)", life="c")
    if 2 <= version <= 7:
        yield Shown(name="d", type="timestamp", life="d", read=instant)
    if version >= 3:
        yield from _shown_e(version, way)
    if version >= 9:
        yield Shown(name="d", type=numeric, life="d again", read=scaled(digits))
    if version >= 11:
        yield Shown(name="c", type="array<string>", life="c again")
        yield Shown(name="status", type="string", life="status", older="new")
    if version >= 13:
        yield Shown(name="region", type="string", life="region", older="eu")


_DROPPED = (
    (3, Shown(name="b", type="string", life="b")),
    (4, Shown(name="c", type="decimal(8,2)", life="c")),
    (7, Shown(name="d", type="timestamp", life="d", read=instant)),
)
"""Columns that go away with the version after this one, unless they are kept: until their name comes back."""


def _shown_e(version: int, way: Way) -> Iterator[Shown]:
    number = Shown(name="e", type="int", life="e", older=42)
    if version <= 6:
        yield number
    elif way.beside:
        yield Shown(name="e", type="string", life="e text")
        yield Shown(name="e__v6", type="int", life="e", older=42)
    else:
        yield Shown(name="e", type="string", life="e", older="42", read=text)


def life_of(name: str, version: int, way: Way) -> str:
    """Return which life a field of a message of one version belongs to."""
    match name:
        case "b" | "b_renamed":
            return "b_renamed" if version >= 4 and not way.renamed else "b"
        case "c" if version >= 11:
            return "c again"
        case "d" if version >= 9:
            return "d again"
        case "e" if version >= 7 and way.beside:
            return "e text"
        case _:
            return name


def read_row(change: Change, columns: Iterable[Shown], way: Way) -> dict[str, Any]:
    """Return a message's row under the columns of a view."""
    held = {life_of(name, change.version, way): value for name, value in change.row.items()}
    return {
        c.name: c.read(held[c.life]) if c.life in held else c.older if change.version < _BORN[c.life] else None
        for c in columns
    }


def newer(one: Change, other: Change) -> bool:
    """Tell whether a message counts more than an earlier one; without a place in the log it is the oldest."""
    ranks = [(c.lsn is not None, c.lsn or 0, c.ts_ns) for c in (one, other)]
    return ranks[0] >= ranks[1]


@dataclass(slots=True, kw_only=True)
class Fold:
    """The messages that count, folded by key: of those that have the same, the newest."""

    way: Way
    version: int = 1
    keys: tuple[str, ...] = ("id",)
    newest: dict[Row, Change] = field(default_factory=dict)

    def add(self, changes: Iterable[Change]) -> None:
        for change in changes:
            row = self.row(change)
            key = tuple(row[name] for name in self.keys)
            known = self.newest.get(key)
            if known is None or newer(change, known):
                self.newest[key] = change

    def go_on_under(self, version: int, keys: tuple[str, ...]) -> None:
        """Take what is left as rows of another version, told apart by another key."""
        left, self.newest = tuple(self.newest.values()), {}
        self.version, self.keys = version, keys
        self.add(left)

    def row(self, change: Change) -> dict[str, Any]:
        return read_row(change, shown(self.version, self.way), self.way)

    @property
    def view(self) -> tuple[Any, ...]:
        """The columns and rows that the view must show."""
        columns = [f"{c.name} {c.type}" for c in shown(self.version, self.way)]
        rows = (self.row(change) for change in self.newest.values() if change.op != "d")
        return columns, ordered(tuple(row.values()) for row in rows)


def ordered(rows: Iterable[Row]) -> list[str]:
    """Return rows as text, so that 1.50 is not 1.5, in an order of their own."""
    return sorted(", ".join(cell(value) for value in row) for row in rows)


def cell(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What the view showed after a run, and what it had to show."""

    after: str
    seen: tuple[Any, ...]
    wanted: tuple[Any, ...]


class Telling:
    """Plays a way on a lab, and keeps what the view showed beside what it had to show."""

    def __init__(self, lab: Lab, way: Way) -> None:
        self.lab = lab
        self.way = way
        self.sink = ConnectSink(lab.session)
        self.drawn = random.Random(way.seed)  # noqa: S311 - the same draw in every run
        self.fold = Fold(way=way)
        self.moments: list[Moment] = []
        self._names = itertools.count(1000)

    def tell(self) -> None:
        self.lab.settings = self.way.settings
        self.lab.registry.register(f"{TOPIC}-key", KEYS["id",])
        self.captured()
        for step in ONWARDS:
            self.register(step.version)
            self.fold.go_on_under(step.version, self.fold.keys)
            self.evolve(step)
        self.rekey(self.way.last)
        self.lab.now_ms += 2 * HOUR
        self.run("compact")

    def captured(self) -> None:
        messages = list(captured_changes())
        after = -1
        for version in range(1, CAPTURED + 1):
            self.register(version)
            self.fold.go_on_under(version, self.fold.keys)
            mine = [change for change in messages if change.version == version]
            until = mine[-1].at + BEFORE
            land_captured(self.lab, TOPIC, after=after, until=until)
            self.fold.add(mine)
            self.run(self.drawn.choice(("apply", "compact")))
            after = until

    def register(self, version: int) -> None:
        self.lab.registry.register(f"{TOPIC}-value", value_schema(version))

    def evolve(self, step: Step) -> None:
        *first, last = step.landings
        for files in first:
            self.fold.add(self.land(files))
            if drawn := self.drawn.choice((None, "apply", "compact")):
                self.run(drawn)
        self.fold.add(self.land(last))
        self.run(self.drawn.choice(("apply", "compact")))

    def rekey(self, step: Step) -> None:
        """The key changes: held first, then released, then all goes on."""
        before, after = step.landings
        at_once = step.version != self.fold.version
        if at_once:
            self.register(step.version)
        self.lab.registry.register(f"{TOPIC}-key", KEYS[step.key])
        changes = self.land(before)
        # Where files tell that they are of the old key, they count at once; the others wait.
        old = [c for c in changes if at_once and c.version < step.version]
        self.fold.add(old)
        self.run(self.drawn.choice(("apply", "compact")), held=True)
        self.fold.go_on_under(step.version, step.key)
        self.fold.add(c for c in changes if c not in old)
        self.run("release")
        self.fold.add(self.land(after))
        self.run(self.drawn.choice(("apply", "compact")))

    def land(self, files: Iterable[File]) -> list[Change]:
        return [change for file in files for change in self.land_one(file)]

    def land_one(self, file: File) -> Sequence[Change]:
        directory = self.lab.root / "lake" / TOPIC / "incremental" / f"increment_{file.hour}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{TOPIC}+0+{next(self._names):010}.parquet"
        self.sink.write(path, value_schema(file.version), [change.envelope for change in file.changes])
        return file.changes

    def run(self, what: str, *, held: bool = False) -> None:
        self.lab.now_ms += self.drawn.choice((HOUR // 60, HOUR, 3 * HOUR))
        if held:
            assert self.lab.plan().tables[0].verdict is Verdict.HOLD
        _RUNS[what](self.lab)
        frame = self.lab.session.table(f"{self.lab.database}.{TABLE}_view")
        columns = [f"{name} {type_}" for name, type_ in frame.dtypes]
        seen = columns, ordered(tuple(row.values()) for row in self.lab.rows(TABLE))
        after = f"version {self.fold.version}, {what}"
        self.moments.append(Moment(after=after, seen=seen, wanted=self.fold.view))


def _apply(lab: Lab) -> None:
    (applied,) = lab.apply().tables
    assert applied.error is None, applied.error


def _compact(lab: Lab) -> None:
    (compacted,) = lab.compact().tables
    assert compacted.failure is None, compacted.failure


def _release(lab: Lab) -> None:
    (found,) = status(lab.workspace).tables
    assert found.hold is not None
    assert found.hold.release == f"schemasync release {TABLE} --rebuild"
    (released,) = release(lab.workspace, TABLE, Release(rebuild=True)).tables
    assert (released.error, released.held) == (None, False)


_RUNS: Mapping[str, Callable[[Lab], None]] = {"apply": _apply, "compact": _compact, "release": _release}


@pytest.mark.parametrize("way", CASES)
def test_the_view_is_the_fold_of_the_messages_through_the_whole_history(lab: Lab, way: Way) -> None:
    telling = Telling(lab, way)
    telling.tell()
    (planned,) = lab.plan().tables
    wrong = [moment for moment in telling.moments if moment.seen != moment.wanted]
    assert (wrong, planned.verdict, planned.steps) == ([], Verdict.NONE, ())
