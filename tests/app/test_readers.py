"""Queries that run while changes are admitted, folded and cleaned up: each sees one state that was published."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from schemasync.app.compacting import compact
from schemasync.core.layering import Mode
from tests.lab import HOUR, Lab

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
KEYS = 40
Rows = tuple[tuple[int, int], ...]


class Writer:
    """Changes some keys at each step, keeps book of the states, and compacts at every other step, by turns both ways.

    A step takes 25 minutes of the table's time: what a state names goes two steps after the next one.
    """

    def __init__(self, lab: Lab, settings: dict[str, Any]) -> None:
        self.lab = lab
        self.random = Random(7)  # noqa: S311 - the same changes in every run
        self.rows: dict[int, int] = {}
        self.states: list[Rows] = []
        self.modes = cycle((Mode.MAJOR, Mode.MINOR, Mode.MINOR))
        self.kinds: set[str | None] = set()
        self.files: set[Path] = set()
        self.manifests: set[Path] = set()
        self.value: Callable[[int], Any] = int
        lab.register(TOPIC, lab.flat("Student", ("n", "int")))
        lab.settings = {"defaults": {"compaction": {"vacuum_retention": "0s"} | settings}}
        self.step()

    def retype(self) -> None:
        """From the next step on ``n`` is a text."""
        self.lab.register(TOPIC, self.lab.flat("Student", ("n", "string")))
        self.value = str

    def step(self) -> None:
        number = len(self.states) + 1
        keys = range(KEYS) if number == 1 else [0, *self.random.sample(range(1, KEYS + 5), 6)]
        events: list[dict[str, Any]] = [{"id": key, "n": number, "op": "u", "ts_ms": number * 10} for key in keys]
        gone = self.random.choice(sorted(self.rows)[1:]) if self.rows else None
        self.rows |= dict.fromkeys(keys, number)
        if gone is not None:
            events.append({"id": gone, "n": 0, "op": "d", "ts_ms": number * 10 + 1})
            del self.rows[gone]
        if number % 3 == 0:  # late: it shows nowhere
            events.append({"id": 0, "n": -1, "op": "u", "ts_ms": 5})
        self.states.append(tuple(sorted(self.rows.items())))
        landed = [event | {"n": self.value(event["n"])} for event in events]
        self.lab.land(TOPIC, landed, hour=f"20261120{number % 24:02}", name=f"{number}.parquet")
        self.lab.date_files()
        if number % 2:
            assert [t.error for t in self.lab.apply().tables] == [None]
        else:
            (done,) = compact(self.lab.workspace, mode=next(self.modes)).tables
            assert done.failure is None
            self.kinds.add(done.to_json()["kind"])
        self.lab.date_files()
        self.files |= {*self.lab.root.glob(f"lake/{TOPIC}/*/g=*/**/*.parquet")}
        self.manifests |= {*self.lab.root.glob(f"lake/{TOPIC}/_schemasync/generations/*")}
        self.lab.now_ms += 25 * HOUR // 60


Ask = Callable[[str], Iterable[Iterable[Any]]]
"""Runs a query and returns its rows."""


def by_spark(lab: Lab) -> Ask:
    session = lab.session.newSession()
    return lambda query: session.sql(query).collect()


class Reader:
    """Asks the view until the writer is done, resolving it anew each time."""

    def __init__(self, ask: Ask, writer: Writer) -> None:
        self._ask = ask
        self._writer = writer
        self._begun: float = 0
        self._begins = threading.Condition()
        self.done = False

    def read(self) -> list[Rows]:
        query = f"SELECT id, CAST(n AS INT) AS n FROM {self._writer.lab.database}.{TABLE}_view ORDER BY id"
        seen: list[Rows] = []
        try:
            while not self.done:
                self._begin(len(self._writer.states))
                seen.append(tuple((id_, n) for id_, n in self._ask(query)))
        finally:
            self._begin(math.inf)
        return seen

    def _begin(self, states: float) -> None:
        with self._begins:
            self._begun = states
            self._begins.notify_all()

    def keep_up(self) -> None:
        """Wait while a query goes on that began more than a step ago: what it reads may go two steps after the next."""
        with self._begins:
            assert self._begins.wait_for(lambda: self._begun >= len(self._writer.states) - 1, timeout=120)


def reads_well(
    lab: Lab,
    settings: dict[str, Any],
    goes_on: Callable[[int], bool],
    *,
    retyped_after: int | None = None,
    by: Callable[[Lab], Ask] = by_spark,
) -> Writer:
    writer = Writer(lab, settings)
    readers = [Reader(by(lab), writer) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        reading = [threads.submit(reader.read) for reader in readers]
        try:
            while goes_on(len(writer.states)):
                for reader in readers:
                    reader.keep_up()
                if len(writer.states) == retyped_after:
                    writer.retype()
                writer.step()
        finally:
            for reader in readers:
                reader.done = True
        seen = [found.result() for found in reading]
    assert writer.kinds == {"major", "minor"}
    assert gone(writer.files) != []
    for shown in seen:
        places = [writer.states.index(rows) for rows in shown]
        assert all(one <= other for one, other in pairwise(places))
        assert len(set(places)) > 1
    assert lab.rows(TABLE) == [{"id": key, "n": writer.value(n)} for key, n in writer.states[-1]]
    return writer


def gone(written: Iterable[Path]) -> list[Path]:
    return [path for path in written if not path.exists()]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="one shard", marks=pytest.mark.one_spark),
        pytest.param({"shard_size": "1KB"}, id="shards", marks=pytest.mark.one_spark),
        pytest.param({"kernel": "spark"}, id="SQL"),
    ],
)
def test_every_query_sees_a_state_that_was_published_and_none_before_it_again(
    lab: Lab, settings: dict[str, Any]
) -> None:
    assert gone(reads_well(lab, settings, lambda steps: steps < 8).manifests) != []


def test_no_query_fails_or_sees_anything_else_while_a_column_is_migrated(lab: Lab) -> None:
    """The steps of the migration, the rewrite of old rows, and what compactions remove hours later."""
    reads_well(lab, {}, lambda steps: steps < 9, retyped_after=3)


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_every_query_sees_a_published_state_for_minutes(lab: Lab, kernel: str) -> None:
    end = time.monotonic() + 120
    reads_well(lab, {"shard_size": "1KB", "kernel": kernel}, lambda _: time.monotonic() < end)
