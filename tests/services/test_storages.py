"""A table on a real HDFS, which Arrow does not reach without Hadoop's own native libraries, and on S3."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from schemasync.app.applying import apply
from schemasync.app.compacting import compact
from schemasync.app.inspecting import map_tables
from schemasync.core.changed_keys import WORDS_FILE
from schemasync.core.layering import Mode
from schemasync.io.lake.arrow import ArrowLake
from tests.app.mortal import Fuse, KilledError, mortal
from tests.app.test_hadoop import TABLE, TOPIC, by_default, changes, gathers, settles
from tests.io.lake_behaviour import OneWinnerBehaviour, by_hadoop
from tests.lab import DAY, Lab
from tests.naming import naming
from tests.services.s3_server import BUCKET

pytestmark = pytest.mark.services

_NUMBERS = itertools.count(1)


class TestHdfs(OneWinnerBehaviour):
    """What every storage does, and one winner of several creators: no manifest is ever half there."""

    @pytest.fixture
    def lake(self, hdfs: str, spark: SparkSession) -> ArrowLake:
        return by_hadoop(spark, f"{hdfs}/behaviour/{next(_NUMBERS)}")


class TestS3(OneWinnerBehaviour):
    """What every storage does; here, too, of several creators one wins."""

    @pytest.fixture
    def lake(self, s3: str) -> ArrowLake:
        return ArrowLake(f"{s3}/behaviour/{next(_NUMBERS)}")


class TestS3ByHadoop(OneWinnerBehaviour):
    """S3 again, by Hadoop's client for it."""

    @pytest.fixture
    def lake(self, s3: str, spark: SparkSession) -> ArrowLake:
        return by_hadoop(spark, f"{s3}/behaviour/{next(_NUMBERS)}")

    def test_of_racing_creators_exactly_one_wins_and_its_content_stays_whole(self, lake: ArrowLake) -> None:
        if not lake.filesystem.handler.creates_only(lake.path("")):
            pytest.skip("S3A cannot do that before Hadoop 3.4.2")
        super().test_of_racing_creators_exactly_one_wins_and_its_content_stays_whole(lake)


@pytest.fixture
def put(lab: Lab, storage: str, request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Return what puts a landed file where the table lies."""
    address = request.getfixturevalue(storage)
    # No sign in a path is anything but itself, to none of those who read it.
    lab.settings = {"defaults": {"location": f"{address}/{lab.database} %41#ü/{{topic}}"}}
    lake = by_hadoop(lab.session, f"{address}/{lab.database} %41#ü")

    def put(landed: Path) -> None:
        lake.create(str(landed.relative_to(lab.root / "lake")), landed.read_bytes())
        landed.unlink()

    return put


@pytest.mark.parametrize(
    ("storage", "way", "named", "kinds"),
    [
        ("hdfs", {}, "aside", "minor minor major"),
        pytest.param("hdfs", {"arrow_limit": "0"}, "listed", "minor minor major", marks=pytest.mark.one_spark),
        ("hdfs", {"kernel": "spark"}, "aside", "minor minor major"),
        ("s3", {}, "aside", "minor minor major"),
        pytest.param("s3", {"arrow_limit": "0"}, "listed", "minor minor major", marks=pytest.mark.one_spark),
        ("s3", {"kernel": "spark"}, "aside", "minor minor major"),
    ],
)
def test_changes_gather_are_folded_and_cleaned_up(
    lab: Lab, put: Callable[[Path], None], way: dict[str, Any], named: str, kinds: str
) -> None:
    lab.settings["defaults"]["compaction"] = way
    lab.readers = "spark"
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(*range(40), ts_ms=1)))
    with naming(named):
        assert [kind for kind, _, _ in gathers(lab, put=put)] == kinds.split()
    assert bool(words_aside(lab)) == (named == "aside")
    rows = lab.rows(TABLE, order_by="id")
    lab.now_ms += 8 * DAY
    assert [t.failure for t in lab.compact().tables] == [None]
    assert (lab.rows(TABLE, order_by="id"), words_aside(lab)) == (rows, [])


@pytest.mark.one_spark
@pytest.mark.parametrize("storage", ["hdfs"])
def test_a_location_without_a_host_is_left_alone_once_it_is_applied(
    lab: Lab, put: Callable[[Path], None], hdfs: str
) -> None:
    """The metastore has another default, so all depends on what it is told."""
    lab.settings["defaults"]["location"] = lab.settings["defaults"]["location"].replace(f"{hdfs}/", "hdfs:////")
    with by_default(lab, hdfs):
        assert settles(lab, put=put) == [()]


def words_aside(lab: Lab) -> list[str]:
    (target,) = map_tables(lab.workspace).targets
    files = lab.workspace.storage(target).lake.files("delta")
    return [file.path for file in files if file.path.endswith(WORDS_FILE)]


@pytest.mark.one_spark
@pytest.mark.parametrize("storage", ["hdfs", "s3"])
def test_a_run_that_is_killed_anywhere_leaves_what_the_next_one_finishes(lab: Lab, put: Callable[[Path], None]) -> None:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(1, 2, 3, ts_ms=1)))
    lab.compact()
    rows = {1: 1, 2: 1, 3: 1}
    killed = 0
    for after in itertools.count(1):
        put(lab.land(TOPIC, changes(2, 10 + after, ts_ms=1 + after), hour=f"202611{20 + after // 24}{after % 24:02}"))
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


@pytest.mark.one_spark
@pytest.mark.parametrize("storage", ["s3"])
def test_no_object_is_made_above_a_table(lab: Lab, put: Callable[[Path], None]) -> None:
    """Whoever writes a table need have no right to write beside it."""
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(1, 2, ts_ms=1)))
    assert [t.failure for t in lab.compact().tables] == [None]
    objects = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=lab.database)["Contents"]
    assert [o["Key"] for o in objects if not o["Key"].startswith(f"{lab.database} %41#ü/{TOPIC}/")] == []
