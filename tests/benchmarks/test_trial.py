"""How a trial goes: whoever is wrong is found and leaves it, and systems take turns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.changes import SHAPES
from benchmarks.history import History, Step
from benchmarks.meter import Cost
from benchmarks.queries import Query
from benchmarks.records import Record
from benchmarks.trial import Terms, Trial
from benchmarks.worker import Crew, FailedError

SYSTEMS = ("schemasync", "delta", "iceberg-mor", "limit")


class Systems:
    """Answers for all systems; ``wrong`` says who answers which query wrongly, ``failing`` who cannot do what."""

    def __init__(self, *, wrong: tuple[str, str] | None = None, failing: tuple[str, str] | None = None) -> None:
        self.wrong, self.failing = wrong, failing
        self.done: list[tuple[str, str]] = []

    def do(self, system: str, verb: str, *_: Any) -> Cost:
        if (system, verb) == self.failing:
            raise FailedError("it cannot")
        self.done.append((system, verb))
        return cost([])

    def ask(self, system: str, query: Query) -> Cost:
        if (system, query.name) == self.failing:
            raise FailedError("it cannot")
        self.done.append((system, query.name))
        return cost("another answer" if (system, query.name) == self.wrong else query.name)

    def layered(self, system: str) -> bool:
        return system != "limit"


class ChangeSets:
    base = Path("base")

    def __init__(self) -> None:
        self.number = 0

    def advance(self, _: Any) -> Step:
        self.number += 1
        return Step(number=self.number, landed=Path("landed"), landed_bytes=1, truth=Path("truth"))


def cost(value: Any) -> Cost:
    return Cost(value=value, wall_s=1.0, cpu_s=1.0, bytes_read=1, bytes_written=1, files_written=1)


def records(systems: Systems, *, reps: int = 2, warmups: int = 0, read_warmups: int = 0) -> list[Record]:
    terms = Terms(
        rows=1000, key="bigint", shapes=(SHAPES["100-rows"],), systems=SYSTEMS, reps=reps, warmups=warmups,
        read_reps=1, read_warmups=read_warmups, changes_of=1000, master="local[2]", memory="1g",
    )  # fmt: skip
    return list(Trial(terms, cast("Crew", systems), cast("History", ChangeSets())).run())


def compacted(systems: Systems) -> list[str]:
    return [system for system, verb in systems.done if verb == "compact"]


def test_systems_take_turns_and_warm_up_unrecorded() -> None:
    systems = Systems()
    found = records(systems, reps=2, warmups=1)
    there = ["schemasync", "delta", "iceberg-mor"]
    assert compacted(systems) == [*reversed(there), *there, *reversed(there)]
    assert [(r.system, r.rep) for r in found if r.work == "compact"] == [
        *((name, 0) for name in there),
        *((name, 1) for name in reversed(there)),
    ]


def test_change_sets_that_are_read_before_the_one_that_counts_are_not_recorded() -> None:
    systems = Systems()
    found = records(systems, read_warmups=2)
    asked = Counter(system for system, verb in systems.done if verb == "filter")
    # The truth answers once more for each change set: that is what others' answers are compared with.
    assert asked == {"schemasync": 6, "iceberg-mor": 6, "delta": 6, "limit": 6}
    assert [r.work for r in found if r.system == "schemasync" and "filter" in r.work] == [
        "read:filter/pending", "read:filter/compacted"
    ]  # fmt: skip


def test_a_query_that_fails_before_those_that_count_is_told() -> None:
    found = records(Systems(wrong=("delta", "look-up")), read_warmups=1)
    assert [(r.work, r.ok) for r in found if r.system == "delta" and r.work.startswith("read:")] == [
        ("read:look-up/pending", False)
    ]


def test_a_wrong_table_takes_a_system_out_before_its_time_counts() -> None:
    systems = Systems(wrong=("delta", "digest"))
    found = records(systems)
    assert [(r.work, r.ok, "another answer" in r.problem) for r in found if r.system == "delta"] == [
        ("compact", False, True)
    ]
    assert compacted(systems).count("delta") == 1
    assert all(r.ok for r in found if r.system != "delta")


def test_a_wrong_answer_to_a_query_takes_a_system_out() -> None:
    found = records(Systems(wrong=("delta", "look-up")))
    of_delta = [(r.work, r.ok) for r in found if r.system == "delta" and r.work.startswith("read:")]
    assert of_delta[-1] == ("read:look-up/pending", False)
    assert [ok for _, ok in of_delta].count(False) == 1
    assert "read:look-up/compacted" in {r.work for r in found if r.system == "iceberg-mor"}


def test_a_warm_up_that_fails_is_told() -> None:
    found = records(Systems(failing=("iceberg-mor", "compact")), warmups=1)
    assert [(r.rep, r.ok, r.problem) for r in found if r.system == "iceberg-mor"] == [(-1, False, "it cannot")]


@pytest.mark.parametrize("failing", [("limit", "land"), ("limit", "digest"), ("limit", "filter")])
def test_without_a_truth_a_trial_is_over_and_says_so(failing: tuple[str, str]) -> None:
    systems = Systems(failing=failing)
    found = records(systems)
    assert [(r.work, r.system, r.problem) for r in found if not r.ok] == [("truth", "limit", "it cannot")]
    assert not found[-1].ok
