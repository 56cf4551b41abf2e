"""A table that lies where only Hadoop's client reaches it: what is little is done here, all else by Spark's SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.compacting import compact
from schemasync.app.inspecting import map_tables
from schemasync.app.opening import is_left_to_spark
from schemasync.app.workspace import Storage
from schemasync.core.layering import Mode
from schemasync.errors import StorageError
from tests.app.mortal import Fuse, mortal
from tests.lab import DAY, Lab
from tests.naming import naming

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
WAYS: dict[str, dict[str, Any]] = {
    "here": {"shard_size": "2KB"},
    "too much for one process": {"arrow_limit": "0"},
    "by nothing but Spark": {"kernel": "spark"},
}


def changes(*keys: int, ts_ms: int, op: str = "u") -> list[dict[str, Any]]:
    return [{"id": key, "n": ts_ms, "op": op, "ts_ms": ts_ms} for key in keys]


@contextmanager
def by_default(lab: Lab, address: str) -> Iterator[None]:
    """Let locations without a host be those of one file system, for Spark alone."""
    context: Any = lab.session.sparkContext
    conf = context._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    conf.set("fs.defaultFS", address)
    try:
        yield
    finally:
        conf.set("fs.defaultFS", before)


def settles(lab: Lab, *, put: Callable[[Path], object]) -> list[tuple[Any, ...]]:
    """Let rows come to a table, and changes; return the steps that are left then, by table."""
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    put(lab.land(TOPIC, changes(1, 2, ts_ms=1)))
    assert [t.failure for t in lab.compact().tables] == [None]
    put(lab.land(TOPIC, changes(2, ts_ms=2), hour="2026112001"))
    assert [t.error for t in lab.apply().tables] == [None]
    assert {row["id"]: row["n"] for row in lab.rows(TABLE)} == {1: 1, 2: 2}
    return [table.steps for table in lab.plan().tables]


def opened(lab: Lab) -> Storage:
    workspace = lab.workspace
    (target,) = map_tables(workspace).targets
    return workspace.storage(target)


@pytest.fixture
def table(lab: Lab) -> Lab:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.land(TOPIC, changes(*range(40), ts_ms=1))
    return lab


def gathers(lab: Lab, *, put: Callable[[Path], object]) -> list[tuple[str, bool, bool]]:
    """Let changes come to a table of forty landed rows: two minor compactions, then a major one.

    ``put`` is told where each file landed. Returns by compaction its kind, whether SQL and whether Arrow merged.
    """
    assert [t.failure for t in lab.compact().tables] == [None]
    rows, kinds = dict.fromkeys(range(40), 1), []
    for step, mode in ((2, Mode.MINOR), (3, Mode.MINOR), (4, Mode.MAJOR)):
        put(lab.land(TOPIC, changes(step, 50 + step, ts_ms=step) + changes(1, ts_ms=0), hour=f"202611200{step}"))
        lab.now_ms += 1000
        fuse = Fuse()
        (done,) = compact(mortal(lab.workspace, fuse), mode=mode).tables
        rows |= {step: step, 50 + step: step}
        assert (done.failure, {row["id"]: row["n"] for row in lab.rows(TABLE)}) == (None, rows)
        kinds.append((done.to_json()["kind"], "run" in fuse.calls, "merge" in fuse.calls))
    return kinds


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=pytest.mark.one_spark if way == "too much for one process" else ()) for way in WAYS],
)
def test_changes_gather_are_folded_and_cleaned_up(table: Lab, way: str) -> None:
    table.only_hadoop_reaches_it(**WAYS[way])
    by_sql, here = way != "here", way == "here"
    with naming("aside" if here else "listed"):
        kinds = gathers(table, put=lambda _: None)
    # The first change lies beside the base as it was admitted.
    assert kinds == [("minor", False, False), ("minor", by_sql, here), ("major", by_sql, here)]
    assert table.compact().tables[0].base[0].location.startswith("base/g=000002/")
    table.now_ms += 8 * DAY
    assert [t.failure for t in table.compact().tables] == [None]
    left = {path.relative_to(table.root / "lake" / TOPIC).parts[:2] for path in table.root.rglob("*.parquet")}
    assert {place for place in left if place[0] != "history"} == {("base", "g=000002")}


def test_where_arrow_reaches_it_spark_is_asked_for_nothing_else(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    found = {}
    places = {"disk": f"file://{lab.root}/{{topic}}", "hdfs": "viewfs://tests/disk/{topic}"}
    for place, kernel in product(places, ("arrow", "spark")):
        lab.settings = {"defaults": {"location": places[place], "compaction": {"kernel": kernel}}}
        found[place, kernel] = opened(lab).everywhere
    assert [place for place, everywhere in found.items() if everywhere] == [("disk", "arrow"), ("disk", "spark")]
    locations = ("/lake", "s3a://bucket", "hdfs://host:8020", "oss://bucket")
    left = [place for place in product(locations, ("arrow", "spark")) if is_left_to_spark(*place)]
    assert left == [("s3a://bucket", "spark"), *product(locations[2:], ("arrow", "spark"))]


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_a_location_that_nobody_reaches_is_an_error_that_says_so(lab: Lab, kernel: str) -> None:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.settings = {"defaults": {"location": "nowhere://host/{topic}", "compaction": {"kernel": kernel}}}
    with pytest.raises(
        StorageError, match=r"nowhere://host/shop\.student: the location cannot be opened: No FileSystem"
    ):
        opened(lab)


@pytest.mark.one_spark
def test_a_location_without_a_host_is_left_alone_once_it_is_applied(lab: Lab) -> None:
    lab.settings = {"defaults": {"location": f"viewfs:///disk{lab.root}/lake/{{topic}}"}}
    with by_default(lab, "viewfs://tests/"):
        assert settles(lab, put=lambda _: None) == [()]


def test_landed_files_that_are_no_parquet_are_told_of_with_their_names(table: Lab) -> None:
    table.only_hadoop_reaches_it()
    table.apply()
    path = table.land(TOPIC, changes(1, ts_ms=2), hour="2026112001", name="broken.parquet")
    path.write_bytes(b"no Parquet")
    (applied,) = table.apply().tables
    assert applied.admitted is not None
    assert [d.code for d in applied.admitted.findings] == ["SS301"]
    assert "broken.parquet" in applied.admitted.findings[0].message


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted as Linux tells them")
def test_files_that_cannot_be_read_leave_nothing_open(table: Lab) -> None:
    table.only_hadoop_reaches_it()
    table.apply()
    path = table.land(TOPIC, changes(1, ts_ms=2), hour="2026112001", name="broken.parquet")
    path.write_bytes(b"no Parquet" * 10_000)
    table.apply()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        table.apply()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
