"""With values that the source did not send, too, view = compacted table = a plain Python replay, on real Spark.

A law of its own, because most stories of `tests.app.test_laws` have no placeholders and shall stay fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.test_laws import FEW, MANY, MINUTE, TABLE, TOPIC
from tests.lab import HOUR, Lab, NewLab

pytestmark = pytest.mark.spark

TEXT = "__debezium_unavailable_value"
UNSENT: dict[str, Any] = {
    "text": TEXT,
    "scan": TEXT.encode(),
    "tags": [TEXT],
    "codes": [*TEXT.encode()],
    "pairs": [(TEXT, TEXT)],
}
YOUNGER: dict[str, Any] = {"late": None, "given": "x"}
"""What only version 2 has -> what rows of version 1 read there."""
ALL_UNSENT = UNSENT | dict.fromkeys(YOUNGER, TEXT)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``place`` is the position in the log. Version 2 calls ``text`` ``body``, and adds ``n`` and `YOUNGER`."""

    key: int
    op: str
    place: int
    version: int
    row: tuple[tuple[str, Any], ...]

    def landed(self) -> dict[str, Any]:
        """Return the event as the sink writes it: a delete has its key in ``before`` and no more."""
        row = dict(self.row)
        if self.version == 2:
            row = {"body" if name == "text" else name: value for name, value in row.items()} | {"n": self.place}
        whole, bare = {"id": self.key} | row, {"id": self.key} | dict.fromkeys(row) | {"n": 0, "given": ""}
        before, after = (bare, None) if self.op == "d" else (None, whole)
        return {"before": before, "after": after, "source": {"lsn": self.place}, "op": self.op, "ts_ms": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Files land, each of one version; then something runs, and time passes."""

    files: tuple[tuple[Event, ...], ...]
    runs: tuple[str, ...]
    minutes: int


Story = tuple[Block, ...]
"""Version 2 is registered before the second block."""


def nullable(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None} | more


LARGE = (
    nullable("scan", "bytes"),
    nullable("tags", {"type": "array", "items": "string"}),
    nullable("codes", {"type": "array", "items": "int"}),
    nullable("pairs", {"type": "map", "values": "string"}),
)
FIRST = Lab.debezium(nullable("text", "string"), *LARGE, key="int")
SECOND = Lab.debezium(
    nullable("body", "string", aliases=["text"]),
    *LARGE,
    {"name": "n", "type": "int", "default": 7},
    nullable("late", "string"),
    {"name": "given", "type": "string", "default": "x"},
    key="long",
)


class Replay:
    """All events in their order, by key; a compaction settles what its newest ones carry."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[int, str, Row]]] = {}

    def admit(self, events: Iterable[Event]) -> None:
        for event in events:
            row = YOUNGER | dict(event.row) | {"n": event.place if event.version == 2 else 7}
            mine = self.rows.setdefault(event.key, [])
            mine.append((event.place, event.op, row))
            # Of events in one place the one that came last is the newest.
            mine.sort(key=lambda found: found[0])

    def shown(self) -> dict[int, Row]:
        return {key: _carried(rows) for key, rows in sorted(self.rows.items()) if rows[-1][1] != "d"}

    def settle(self) -> None:
        """Only the newest event of a key is in the base, with what it carries."""
        self.rows = {key: [(*rows[-1][:2], _carried(rows))] for key, rows in self.rows.items()}


def _carried(rows: list[tuple[int, str, Row]]) -> Row:
    newest = rows[-1][2]
    return newest | {name: _said(rows, name) for name in ALL_UNSENT}


def _said(rows: list[tuple[int, str, Row]], name: str) -> Any:
    for _, op, row in reversed(rows):
        if op == "d":
            return None
        if op != "u" or row[name] != ALL_UNSENT[name]:
            # Of a column that came later NULL tells no value: rows from before it read the same.
            return rows[-1][2][name] if name == "late" and row[name] is None else row[name]
    return ALL_UNSENT[name]


VALUES: dict[str, list[Any]] = {
    "text": ["a", "b", None],
    "scan": [b"a", b"", None],
    "tags": [["a", TEXT], [], None],
    "codes": [[*TEXT.encode()[:-1], 0], [], None],
    "pairs": [[(TEXT, "a")], [], None],
    "late": ["a", None, None],
    "given": ["a", "b"],
}


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw three blocks whose events come in any order, some of them twice."""
    places = draw(st.permutations(range(1, 31)))
    landed: list[tuple[Event, ...]] = []

    def event(version: int) -> Event:
        op = draw(st.sampled_from("uuuucrd"))
        row = {name: draw(st.sampled_from(values)) for name, values in VALUES.items()}
        if op == "u":
            # Mostly in what came later: rows from before it are in few stories the newest that have no placeholder.
            row |= {name: it for name, it in ALL_UNSENT.items() if draw(st.integers(0, 3)) >= 2 - (name in YOUNGER)}
        row = {name: value for name, value in row.items() if version == 2 or name not in YOUNGER}
        return Event(key=draw(st.integers(1, 3)), op=op, place=places.pop(), version=version, row=tuple(row.items()))

    def file(newest: int) -> tuple[Event, ...]:
        if landed and draw(st.integers(0, 4)) == 0:
            return draw(st.sampled_from(landed))
        version = draw(st.sampled_from([1, newest, newest]))
        landed.append(tuple(event(version) for _ in range(draw(st.integers(2, 5)))))
        return landed[-1]

    blocks = []
    for number in range(3):
        files = tuple(file(min(number + 1, 2)) for _ in range(draw(st.integers(1, 2))))
        runs = draw(st.sampled_from([("apply",), ("compact",), ("apply", "compact")]))
        blocks.append(Block(files=files, runs=runs, minutes=draw(st.sampled_from([1, 120]))))
    return tuple(blocks)


def holds(lab: Lab, story: Story) -> None:
    replay = Replay()
    waiting: list[Event] = []
    for number, block in enumerate(story):
        if number < 2:
            lab.register(TOPIC, (FIRST, SECOND)[number])
        for events in block.files:
            lab.land(TOPIC, [e.landed() for e in events], version=events[0].version)
            waiting += events
        for run in block.runs:
            replay.admit(waiting)
            waiting.clear()
            runs(lab, run, replay, name="text" if number == 0 else "body")
        lab.now_ms += block.minutes * MINUTE
    # Past every grace: now only the base is left, and what it does not know.
    lab.now_ms += 2 * HOUR
    runs(lab, "compact", replay, name="body")
    assert lab.plan().tables[0].steps == ()


def runs(lab: Lab, what: str, replay: Replay, *, name: str) -> None:
    done = lab.apply() if what == "apply" else lab.compact()
    assert [getattr(t, "failure", None) or getattr(t, "error", None) for t in done.tables] == [None]
    if what == "compact":
        replay.settle()
    expected = [
        {"id": key, name: row["text"], **{large: row[large] for large in UNSENT if large != "text"}}
        | ({later: row[later] for later in ("n", *YOUNGER)} if name == "body" else {})
        for key, row in replay.shown().items()
    ]
    shown = [row | {"scan": None if row["scan"] is None else bytes(row["scan"])} for row in lab.rows(TABLE)]
    assert shown == expected, f"after {what}"


KERNELS = {"arrow": 4, "spark": 3}
"""What folds -> how many stories the gate has time for."""


def folding(new_lab: NewLab, kernel: str) -> Lab:
    lab = new_lab()
    lab.settings = {"defaults": {"compaction": {"kernel": kernel, "shard_size": "1KB"}}}
    return lab


@pytest.mark.parametrize("kernel", [pytest.param("arrow", marks=pytest.mark.one_spark), "spark"])
def test_view_and_compacted_table_are_the_replay_of_events_with_placeholders(new_lab: NewLab, kernel: str) -> None:
    @settings(parent=FEW, max_examples=KERNELS[kernel])
    @given(story=stories())
    def law(story: Story) -> None:
        holds(folding(new_lab, kernel), story)

    law()


@pytest.mark.parametrize("kernel", [pytest.param("arrow", marks=pytest.mark.one_spark), "spark"])
def test_a_placeholder_stays_one_when_another_is_set_later(lab: Lab, kernel: str) -> None:
    """The one that counts is the one that was set when a file was admitted."""
    shown = []
    for place, text in enumerate(("?", "!", "#")):
        compaction = {"kernel": kernel}
        entry = {"subject": f"{TOPIC}-value", "table": TABLE, "toast_placeholder": text, "compaction": compaction}
        lab.settings = {"tables": [entry]}
        if place == 0:
            numbers = {"type": "array", "items": "int"}
            lab.register(TOPIC, lab.debezium(nullable("text", "string"), nullable("codes", numbers)))
            land(lab, (1, "c", 1, "a"), (2, "c", 2, "b"))
            lab.apply()
        if place < 2:
            # Of the third key nobody ever says the value.
            land(lab, (1 + place, "u", 3 + place, text), (3, "u", 5 + place, text))
            lab.apply()
        shown.append(texts(lab))
    lab.compact()
    shown.append(texts(lab))
    land(lab, (3, "u", 1, "found"))
    lab.apply()
    assert shown == [["a", "b", "?"], ["a", "b", "!"], ["a", "b", "!"], ["a", "b", "!"]]
    assert texts(lab) == ["a", "b", "found"]


def land(lab: Lab, *events: tuple[int, str, int, str]) -> None:
    lab.land(
        TOPIC,
        [
            {
                "before": None,
                "after": {"id": key, "text": text, "codes": codes(text)},
                "source": {"lsn": place},
                "op": op,
                "ts_ms": 1,
            }
            for key, op, place, text in events
        ],
    )


def codes(text: str) -> list[int]:
    """Return the numbers that stand beside a text: of a placeholder those that Debezium writes; some have none."""
    return [] if text == "b" else [*text.encode()]


def texts(lab: Lab) -> list[str]:
    rows = lab.rows(TABLE)
    assert [row["codes"] for row in rows] == [codes(row["text"]) for row in rows]
    return [row["text"] for row in rows]


@pytest.mark.parametrize("kernel", [pytest.param("arrow", marks=pytest.mark.one_spark), "spark"])
def test_rows_from_before_a_column_do_not_say_that_it_was_null(lab: Lab, kernel: str) -> None:
    """A rename that nobody told is a drop and an add, and PostgreSQL sends no placeholder for a NULL."""
    lab.settings = {"defaults": {"compaction": {"kernel": kernel}}}

    def send(name: str, *events: tuple[int, str, int, str | None]) -> None:
        landed = [
            {"before": None, "after": {"id": key, name: value}, "source": {"lsn": place}, "op": op, "ts_ms": 1}
            for key, op, place, value in events
        ]
        lab.land(TOPIC, landed, version=1 if name == "big" else 2)

    def shown() -> list[str | None]:
        return [row["large"] for row in lab.rows(TABLE)]

    def codes() -> set[str]:
        return {d.code for d in lab.plan().tables[0].diagnostics}

    lab.register(TOPIC, lab.debezium(nullable("big", "string")))
    send("big", (1, "c", 1, "one"), (2, "u", 2, "two"), (4, "c", 3, "four"))
    lab.apply()
    lab.register(TOPIC, lab.debezium(nullable("large", "string")))
    send("large", (1, "u", 11, TEXT))
    lab.apply()
    assert shown() == [TEXT, None, None]
    lab.compact()
    assert (shown(), "SS320" in codes()) == ([TEXT, None, None], True)
    # The base has the second row under the new version by now, and the third one was written under the old one.
    send("big", (3, "u", 4, "three"))
    send("large", (2, "u", 12, TEXT), (3, "u", 13, TEXT))
    lab.apply()
    assert shown() == [TEXT, TEXT, TEXT, None]
    send("large", (2, "u", 10, "late"), (3, "u", 14, "new"))
    lab.apply()
    assert shown() == [TEXT, "late", "new", None]
    lab.compact()
    send("large", (1, "u", 10, "later"))
    lab.apply()
    assert shown() == ["later", "late", "new", None]
    lab.compact()
    assert (shown(), "SS320" in codes()) == (["later", "late", "new", None], False)


@pytest.mark.long
def test_view_and_compacted_table_are_the_replay_of_many_more_events_with_placeholders(new_lab: NewLab) -> None:
    @MANY
    @given(story=stories(), kernel=st.sampled_from(sorted(KERNELS)))
    def law(story: Story, kernel: str) -> None:
        holds(folding(new_lab, kernel), story)

    law()
