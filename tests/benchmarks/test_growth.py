"""Two sizes of base take turns, and the ratio is of their times."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from benchmarks.changes import SHAPES
from benchmarks.growth import in_turn, ratios
from benchmarks.history import History
from benchmarks.records import Record
from benchmarks.trial import Terms, Trial
from benchmarks.worker import Crew
from tests.benchmarks.test_trial import ChangeSets, Systems

TERMS = Terms(
    rows=1000, key="bigint", shapes=(SHAPES["100-rows"], SHAPES["recent-1%"]), systems=("schemasync", "limit"), reps=2,
    warmups=1, read_reps=0, read_warmups=0, changes_of=1000, master="local[2]", memory="1g",
)  # fmt: skip


def test_bases_take_turns_and_who_begins_changes() -> None:
    trials = [
        Trial(replace(TERMS, rows=rows), cast("Crew", Systems()), cast("History", ChangeSets()))
        for rows in (1000, 10_000)
    ]
    found = [(r.shape, r.rep, r.rows) for r in in_turn(trials, TERMS) if r.system == "schemasync"]
    assert found == [
        (f"{shape}{of}", rep, rows)
        for shape in ("100-rows", "recent-1%")
        for rep, sizes in ((0, (1000, 10_000)), (1, (10_000, 1000)))
        for rows in sizes
        for of in ["/of-1000" if rows == 10_000 else ""]
    ]


def test_a_ratio_is_that_of_geometric_means_of_what_was_right() -> None:
    def record(shape: str, rows: int, wall_s: float, *, system: str = "schemasync", ok: bool = True) -> Record:
        return Record(work="compact", shape=shape, system=system, rows=rows, rep=0, wall_s=wall_s, ok=ok)

    small = [record("a/growth", 10, 1.0), record("a/growth", 10, 4.0), record("a/growth", 10, 9.0, ok=False)]
    large = [record("a/of-10/growth", 100, 3.0), record("a/of-10/growth", 100, 3.0, system="limit")]
    assert ratios([*small, *large, record("b/growth", 10, 1.0)], 10) == {"a": 1.5}
