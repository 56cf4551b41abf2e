"""A table on a real HDFS, which Arrow does not reach without Hadoop's own native libraries."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from schemasync.app.applying import apply
from schemasync.app.compacting import compact
from schemasync.core.layering import Mode
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.lake.hadoop import open_hadoop
from tests.app.mortal import Fuse, KilledError, mortal
from tests.app.test_hadoop import TABLE, TOPIC, changes, gathers
from tests.io.lake_behaviour import OneWinnerBehaviour
from tests.lab import DAY, Lab

pytestmark = pytest.mark.services

_NUMBERS = itertools.count(1)


class TestHdfs(OneWinnerBehaviour):
    """What every storage does, and one winner of several creators: no manifest is ever half there."""

    @pytest.fixture
    def lake(self, hdfs: str, spark: SparkSession) -> ArrowLake:
        location = f"{hdfs}/behaviour/{next(_NUMBERS)}"
        return ArrowLake(location, filesystem=open_hadoop(spark, location))


@pytest.fixture
def put(lab: Lab, hdfs: str) -> Callable[[Path], None]:
    """Return what puts a landed file where the table lies: on HDFS."""
    location = f"{hdfs}/{lab.database}/{{topic}}"
    lab.settings = {"defaults": {"location": location}}
    lake = ArrowLake(f"{hdfs}/{lab.database}", filesystem=open_hadoop(lab.session, hdfs))

    def put(landed: Path) -> None:
        lake.create(str(landed.relative_to(lab.root / "lake")), landed.read_bytes())
        landed.unlink()

    return put


@pytest.mark.parametrize("way", [{}, {"arrow_limit": "0"}, {"kernel": "spark"}], ids=["here", "too much", "spark"])
def test_changes_gather_are_folded_and_cleaned_up(lab: Lab, put: Callable[[Path], None], way: dict[str, Any]) -> None:
    lab.settings["defaults"]["compaction"] = way
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(*range(40), ts_ms=1)))
    kinds = gathers(lab, put=put)
    assert [kind for kind, _, _ in kinds] == ["minor", "minor", "major"]
    rows = lab.rows(TABLE, order_by="id")
    lab.now_ms += 8 * DAY
    assert [t.failure for t in lab.compact().tables] == [None]
    assert lab.rows(TABLE, order_by="id") == rows


def test_a_run_that_is_killed_anywhere_leaves_what_the_next_one_finishes(lab: Lab, put: Callable[[Path], None]) -> None:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(1, 2, 3, ts_ms=1)))
    lab.compact()
    rows = {1: 1, 2: 1, 3: 1}
    killed = 0
    for after in itertools.count(1):
        put(lab.land(TOPIC, changes(2, 10 + after, ts_ms=1 + after), hour=f"20261120{after:02}"))
        lab.now_ms += 1000
        before, rows = rows, rows | {2: 1 + after, 10 + after: 1 + after}
        try:
            compact(mortal(lab.workspace, Fuse(after)), mode=Mode.MAJOR)
        except KilledError:
            killed = after
        assert {row["id"]: row["n"] for row in lab.rows(TABLE)} in (before, rows)
        lab.now_ms += 1000
        assert [t.error for t in apply(lab.workspace).tables] == [None]
        assert {row["id"]: row["n"] for row in lab.rows(TABLE)} == rows
        if killed < after:
            break
    assert killed > 5
