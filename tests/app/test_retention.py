"""What is remembered and for how long: tombstones, landed files, superseded partitions and directories."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrameWriter

from schemasync.app.history import history
from schemasync.app.watching import watch
from schemasync.errors import EngineError, SchemasyncError, StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.metastore_hive import HiveMetastore
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.shards import ArrowShards
from tests.lab import DAY, HOUR, Begun, Lab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"
MINUTE = HOUR // 60
WEEK = 7 * DAY + HOUR + 1
"""After that what was superseded is deleted: the reader grace and the vacuum retention. The clock of these tests stands
still, and a state that follows another at once counts as a millisecond younger."""


def event(key: int, ts_ms: int, op: str = "u", a: int | None = 0) -> dict[str, Any]:
    return {"id": key, "a": a, "op": op, "ts_ms": ts_ms}


by_both_kernels = pytest.mark.parametrize("kernel", ["arrow", "spark"])


@pytest.fixture
def kernel() -> str:
    return "arrow"


def one_deleted(lab: Lab, kernel: str) -> None:
    """Make a base that holds key 1 alive and key 2 deleted; all graces are over."""
    lab.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(1, 1), event(2, 1), event(2, 5, "d")], name="first.parquet")
    lab.compact()
    lab.now_ms += 2 * HOUR
    lab.compact()


@pytest.fixture
def table(begun: Begun, kernel: str) -> Lab:
    return begun(one_deleted, kernel)


def changed(lab: Lab, *events: dict[str, Any], later: int = 0) -> None:
    """Let time pass, land events, and compact."""
    lab.now_ms += later
    lab.land(TOPIC, events, hour="2026112001")
    assert [t.failure for t in lab.compact().tables] == [None]


def keys(lab: Lab) -> list[int]:
    return [row["id"] for row in lab.rows(TABLE)]


def stored(lab: Lab) -> list[tuple[int, str]]:
    found = lab.workspace.sql.query(f"SELECT id, __op FROM `{lab.database}`.`{TABLE}` ORDER BY 1, 2")
    return [(key, op) for key, op in found.rows]


def segments(lab: Lab) -> list[str]:
    return sorted(lab.workspace.metastore.partitions(lab.database, TABLE))


def files(lab: Lab, directory: str) -> list[str]:
    top = lab.root / "lake" / TOPIC / directory
    return sorted(str(p.relative_to(top)) for p in top.rglob("*.parquet"))


def test_a_tombstone_stays_while_its_retention_lasts(table: Lab) -> None:
    changed(table, event(3, 1), later=6 * DAY)
    assert (2, "d") in stored(table)


@by_both_kernels
def test_a_tombstone_goes_once_its_retention_is_over(table: Lab) -> None:
    changed(table, event(3, 1), later=7 * DAY)
    changed(table, later=2 * HOUR)
    assert (stored(table), keys(table)) == ([(1, "u"), (3, "u")], [1, 3])


def test_a_deleted_key_does_not_come_back_through_a_late_event(table: Lab) -> None:
    changed(table, event(2, 4), later=6 * DAY)
    assert keys(table) == [1]


@by_both_kernels
def test_a_late_event_does_not_come_back_when_the_tombstone_that_beat_it_goes(table: Lab) -> None:
    """The late event came in time and lost; while its folded delta is still registered the tombstone is needed."""
    changed(table, event(2, 4), later=7 * DAY - 2 * HOUR - 10 * MINUTE)
    changed(table, event(3, 1), later=20 * MINUTE)
    seen = [keys(table)]
    changed(table, event(4, 1), later=30 * MINUTE)
    seen.append(keys(table))
    assert seen == [[1, 3], [1, 3, 4]]


def test_a_new_event_of_a_forgotten_key_brings_it_back(table: Lab) -> None:
    changed(table, event(3, 1), later=8 * DAY)
    changed(table, event(2, 9))
    assert keys(table) == [1, 2, 3]


def test_a_landed_file_that_no_generation_holds_is_never_deleted(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(1, 1)], name="a.parquet")
    lab.apply()
    lab.now_ms += 365 * DAY
    lab.apply()
    assert files(lab, "incremental") == ["increment_2026112000/a.parquet"]


def test_a_landed_file_stays_until_the_reader_grace_of_its_generation_is_over(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(1, 1)], name="a.parquet")
    seen = []
    for later in (0, 59 * MINUTE, MINUTE):
        lab.now_ms += later
        lab.compact()
        seen.append((files(lab, "incremental"), segments(lab)))
    assert seen == [
        (["increment_2026112000/a.parquet"], ["base_s00000001"]),
        (["increment_2026112000/a.parquet"], ["base_s00000001"]),
        ([], ["base_s00000001"]),
    ]


def test_a_file_that_landed_while_older_ones_are_retired_stays(table: Lab) -> None:
    table.land(TOPIC, [event(7, 1)], hour="2026112002", name="late.parquet")
    table.now_ms += 8 * DAY
    table.compact()
    assert (files(table, "incremental"), keys(table)) == (["increment_2026112002/late.parquet"], [1, 7])


def columns(lab: Lab) -> list[str]:
    """Return what the metastore's table has of the row's columns."""
    found = lab.workspace.metastore.table(lab.database, TABLE)
    assert found is not None
    return [c.name for c in found.columns if c.name in ("a", "b")]


def test_a_dropped_column_stays_while_segments_that_have_it_are_registered(table: Lab) -> None:
    """Whoever resolved the view before reads these."""
    table.register(TOPIC, table.flat("S", ("b", ["null", "int"])))
    table.compact()
    seen = [columns(table)]
    for later in (59 * MINUTE, MINUTE):
        table.now_ms += later
        table.compact()
        seen.append(columns(table))
    assert seen == [["a", "b"], ["a", "b"], ["b"]]


def test_a_dropped_column_that_no_file_has_stays_while_there_are_files_of_earlier_versions(table: Lab) -> None:
    """Whoever resolved the view while it had the column finds NULL there, in the same files."""
    for added in ([("b", ["null", "int"])], []):
        table.register(TOPIC, table.flat("S", ("a", ["null", "int"]), *added))
        table.apply()
    table.compact()
    seen = [columns(table)]
    table.land(TOPIC, [event(1, 9)], hour="2026112001")
    for _ in range(2):
        table.compact()
        seen.append(columns(table))
        table.now_ms += 2 * HOUR
    assert seen == [["a", "b"], ["a", "b"], ["a"]]


@pytest.mark.parametrize(
    ("on_fold", "landed", "archived"),
    [("delete", [], []), ("keep", ["h/a.parquet"], []), ("archive", [], ["incremental/h/a.parquet"])],
)
def test_folded_files_are_deleted_kept_or_archived(
    lab: Lab, on_fold: str, landed: list[str], archived: list[str]
) -> None:
    lab.settings = {"defaults": {"compaction": {"on_fold": on_fold}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(1, 1)], name="a.parquet")
    for _ in range(3):
        lab.compact()
        lab.now_ms += 8 * DAY
    found = ([p.replace("increment_2026112000", "h") for p in files(lab, d)] for d in ("incremental", "archive"))
    assert (*found, keys(lab)) == (landed, archived, [1])


@pytest.mark.parametrize(("on_fold", "verb"), [("delete", "delete"), ("archive", "move")])
def test_landed_files_that_may_not_be_touched_are_told_and_stop_nothing_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, on_fold: str, verb: str
) -> None:
    """The sink is another user, and its directories are its own."""
    lab.settings = {"defaults": {"compaction": {"on_fold": on_fold}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    for name, hour in [("a.parquet", "2026112000"), ("b.parquet", "2026112000"), ("c.parquet", "2026112001")]:
        lab.land(TOPIC, [event(1, 1)], name=name, hour=hour)
    lab.compact()
    done, asked = getattr(ArrowLake, verb), []

    def touch(lake: ArrowLake, path: str, *more: Any, **seen: Any) -> None:
        asked.append(path.rpartition("/")[2])
        if "2026112000" in path:
            raise StorageError(
                f"cannot {verb} it", where=path, why="permission denied", fix="Give this user write permission."
            )
        done(lake, path, *more, **seen)

    monkeypatch.setattr(ArrowLake, verb, touch)
    told = []
    for _ in range(3):
        lab.now_ms += 8 * DAY
        told.append(str(lab.compact().tables[0].failure))
    assert (asked, files(lab, "delta"), keys(lab)) == (["c.parquet", "a.parquet", "a.parquet", "a.parquet"], [], [1])
    assert files(lab, "incremental") == ["increment_2026112000/a.parquet", "increment_2026112000/b.parquet"]
    assert states(lab) == ["000001", "000001-0001"]
    assert {*told} == {
        f"{lab.database}.{TABLE}: landed files that were compacted cannot be cleaned up: "
        f"incremental/increment_2026112000/a.parquet: cannot {verb} it: permission denied. Give this user "
        "write permission. Where they are the sink's alone to delete, let them stay: compaction: {on_fold: keep}."
    }


def denied(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Let no directory be deleted whose path has this in it."""
    deleted = ArrowLake.delete_directory

    def delete(lake: ArrowLake, directory: str) -> None:
        if part in directory:
            raise StorageError("cannot delete it", where=directory, why="permission denied")
        deleted(lake, directory)

    monkeypatch.setattr(ArrowLake, "delete_directory", delete)


def test_a_superseded_directory_that_may_not_be_deleted_is_told_and_stops_nothing_else(
    table: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user compacted once."""
    for key in (3, 4):
        changed(table, event(key, 1))
    before = [len(files(table, place)) for place in ("base", "delta", "incremental")]
    with monkeypatch.context() as patched:
        denied(patched, "base/g=000001/")
        told = []
        for _ in range(2):
            table.now_ms += WEEK
            told.append(str(table.compact().tables[0].failure))
    left = [files(table, place) for place in ("base", "delta", "incremental")]
    assert (before, [len(found) for found in left], keys(table)) == ([3, 3, 2], [2, 0, 0], [1, 3, 4])
    stayed = left[0][0].rpartition("/")[0]
    assert {*told} == {
        f"{table.database}.{TABLE}: superseded directories cannot be cleaned up: base/{stayed}: cannot delete it: "
        "permission denied. Let this user own what lies there, or delete it: nobody reads it any more."
    }
    assert [t.failure for t in table.compact().tables] == [None]
    assert files(table, "base") == left[0][1:]


def test_where_the_sink_s_directories_are_denied_one_after_the_other_those_between_are_not_asked_for(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    for number in range(22):
        lab.land(TOPIC, [event(1, number)], hour=f"20261120{number:02}")
    lab.compact()
    asked: list[str] = []

    def delete(_: ArrowLake, path: str, **__: Any) -> None:
        asked.append(path.split("/")[1])
        raise StorageError("cannot delete it", where=path, why="permission denied")

    monkeypatch.setattr(ArrowLake, "delete", delete)
    lab.now_ms += 2 * HOUR
    lab.compact()
    assert asked == [f"increment_20261120{number:02}" for number in (*range(21, 11, -1), *range(10))]


def test_an_hour_is_listed_once_however_many_files_of_it_go(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        lab.land(TOPIC, [event(1, 1)], name=name)
    lab.compact()
    lab.now_ms += 2 * HOUR
    listed, asked = ArrowLake.files, []

    def files_of(lake: ArrowLake, directory: str) -> Any:
        asked.append(directory)
        return listed(lake, directory)

    monkeypatch.setattr(ArrowLake, "files", files_of)
    lab.compact()
    assert (files(lab, "incremental"), asked.count("incremental/increment_2026112000")) == ([], 1)


@pytest.mark.parametrize(
    ("pattern", "hours", "left"),
    [
        ("incremental/increment_%Y%m%d%H", ["2026091800", "2026092112"], ["incremental/increment_2026092112"]),
        (
            "in/day=%Y%m%d/hour=%H",
            ["2026091800", "2026091801", "2026092112"],
            ["in/day=20260921", "in/day=20260921/hour=12"],
        ),
        ("%Y/%m/%d/%H", ["2026083123", "2026091800"], []),
        ("in/day=%Y-%m-%d", ["2026091800", "2026092100"], ["in/day=2026-09-21"]),
    ],
)
def test_directories_of_hours_go_once_nothing_is_in_them_and_no_sink_comes_back(
    lab: Lab, pattern: str, hours: list[str], left: list[str]
) -> None:
    letters = {"%Y": "{yyyy}", "%m": "{MM}", "%d": "{dd}", "%H": "{HH}"}
    lab.settings = {"defaults": {"increments": re.sub("%.", lambda found: letters[found[0]], pattern)}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    top = lab.root / "lake" / TOPIC
    for key, hour in enumerate(hours):
        written = lab.land(TOPIC, [event(key, 1)], hour="elsewhere")
        place = top / datetime.strptime(hour, "%Y%m%d%H").strftime(pattern)
        place.mkdir(parents=True)
        written.rename(place / "a.parquet")
        written.parent.rmdir()
    lab.compact()
    lab.now_ms += 2 * HOUR
    lab.compact()
    made = re.compile("20|in/|incremental/increment_20")
    found = (str(path.relative_to(top)) for path in top.rglob("*") if path.is_dir())
    assert (sorted(d for d in found if made.match(d)), keys(lab)) == (left, [*range(len(hours))])


def test_an_hour_in_which_a_file_landed_stays(table: Lab) -> None:
    hours = table.root / "lake" / TOPIC / "incremental"
    for hour in ("2026091800", "2026091801"):
        table.land(TOPIC, [event(3, 1)], hour=hour)
    changed(table, event(4, 1))
    left = hours / "increment_2026091800" / "_half.tmp"
    left.touch()
    changed(table, later=2 * HOUR)
    changed(table, later=2 * HOUR)
    assert (left.exists(), (hours / "increment_2026091801").exists()) == (True, False)


def test_where_hours_lie_right_in_the_tables_directory_its_own_files_are_not_listed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.settings = {"defaults": {"increments": "year={yyyy}/month={MM}/day={dd}/hour={HH}"}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    place = lab.land(TOPIC, [event(1, 1)], name="a.parquet")
    hour = lab.root / "lake" / TOPIC / "year=2026" / "month=11" / "day=20" / "hour=00"
    hour.mkdir(parents=True)
    place.rename(hour / "a.parquet")
    lab.compact()
    listed, asked = ArrowLake.files, set()

    def files_of(lake: ArrowLake, directory: str, *, below: bool = True) -> Any:
        if below:
            asked.add(directory.partition("/")[0])
        return listed(lake, directory, below=below)

    monkeypatch.setattr(ArrowLake, "files", files_of)
    (planned,) = lab.plan().tables
    assert (keys(lab), planned.error) == ([1], None)
    assert asked & {"", "base", "delta", "archive"} == set()
    assert {"year=2026", "incremental"} <= asked


def test_an_archive_keeps_both_of_two_files_that_had_one_name(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": {"on_fold": "archive"}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    kept = []
    for count in (1, 2):
        path = lab.land(TOPIC, [event(n, count) for n in range(count)], name="a.parquet")
        kept.append(path.read_bytes())
        lab.compact()
        lab.now_ms += 2 * HOUR
        lab.compact()
    archive = lab.root / "lake" / TOPIC / "archive"
    assert sorted(p.read_bytes() for p in archive.rglob("*.parquet")) == sorted(kept)


def test_superseded_directories_go_after_the_vacuum_retention(table: Lab) -> None:
    deltas = [files(table, "delta")]
    table.now_ms += 7 * DAY
    table.compact()
    deltas.append(files(table, "delta"))
    assert [len(found) for found in deltas] == [1, 0]


def test_a_base_that_was_replaced_goes_after_the_vacuum_retention(table: Lab) -> None:
    changed(table, event(3, 1))
    before = len(files(table, "base"))
    table.now_ms += WEEK
    table.compact()
    assert (before, len(files(table, "base")), keys(table)) == (2, 1, [1, 3])


def compacting(lab: Lab) -> str:
    return str(lab.compact().tables[0].failure)


def watching(lab: Lab) -> str:
    return str(watch(lab.workspace, once=True).tables[0].failure)


def broken(monkeypatch: pytest.MonkeyPatch, job: type, verb: str, *, first: Callable[[], object] = list) -> None:
    """Let a job do something ``first`` and fail then."""

    def fail(*_: object) -> None:
        first()
        raise StorageError("it cannot be written", why="no space is left on the device")

    monkeypatch.setattr(job, verb, fail)


@pytest.fixture
def late(table: Lab) -> Lab:
    """Two bases, of which one is to be cleaned up, with the changes of both, as what landed for them; and an event."""
    changed(table, event(3, 1))
    table.now_ms += WEEK
    table.land(TOPIC, [event(4, 1)], hour="2026112002", name="new.parquet")
    return table


PLACES = ("base", "delta", "incremental")


@pytest.mark.parametrize("run", [compacting, watching])
@pytest.mark.parametrize(
    ("job", "verb", "admitted"), [(ArrowShards, "merge", 1), (ArrowFiles, "admit", 0)], ids=["fold", "admission"]
)
def test_what_is_due_goes_though_the_work_fails(
    late: Lab, monkeypatch: pytest.MonkeyPatch, run: Callable[[Lab], str], job: type, verb: str, admitted: int
) -> None:
    """On a full disk nothing else makes room."""
    before = [len(files(late, place)) for place in PLACES]
    broken(monkeypatch, job, verb)
    told = run(late)
    assert (before, [len(files(late, place)) for place in PLACES]) == ([2, 2, 2], [1, admitted, 1])
    assert told == "it cannot be written: no space is left on the device"
    monkeypatch.undo()
    assert ([t.failure for t in late.compact().tables], keys(late)) == ([None], [1, 3, 4])


@pytest.mark.parametrize("kernel", ["spark"])
@pytest.mark.parametrize("run", [compacting, watching])
def test_what_is_due_goes_though_spark_finds_no_room(
    late: Lab, monkeypatch: pytest.MonkeyPatch, run: Callable[[Lab], str]
) -> None:
    said = "DSQuotaExceededException: The DiskSpace quota of /lake is exceeded"
    before = len(files(late, "base"))

    def fail(*_: object, **__: object) -> None:
        raise Py4JError(f"An error occurred.\n: org.apache.hadoop.hdfs.protocol.{said}")

    monkeypatch.setattr(DataFrameWriter, "parquet", fail)
    told = run(late)
    assert (said in told, before, len(files(late, "base"))) == (True, 2, 1)


def test_where_files_of_the_table_are_missing_nothing_goes_that_they_may_be_restored_from(late: Lab) -> None:
    (base,) = late.root.joinpath("lake", TOPIC, "base", "g=000002").rglob("*.parquet")
    base.unlink()
    before = [files(late, place) for place in PLACES[:2]]
    assert "a file of the table is missing" in compacting(late)
    after = [files(late, place) for place in PLACES[:2]]
    assert (after[0], len(after[1]) - len(before[1]), len(files(late, "incremental"))) == (before[0], 1, 2)


@by_both_kernels
@pytest.mark.parametrize("run", [compacting, watching])
def test_where_a_file_of_the_table_is_damaged_nothing_goes_that_it_may_be_restored_from(
    late: Lab, run: Callable[[Lab], str]
) -> None:
    late.apply()
    (base,) = late.root.joinpath("lake", TOPIC, "base", "g=000002").rglob("*.parquet")
    base.write_bytes(bytes(base.stat().st_size))
    before = [files(late, place) for place in PLACES]
    assert run(late) != "None"
    assert [files(late, place) for place in PLACES] == before


@pytest.mark.parametrize("kind", [EngineError, StorageError])
def test_what_waits_to_be_put_in_force_is_not_passed_by_a_cleaning_up(
    late: Lab, monkeypatch: pytest.MonkeyPatch, kind: type[SchemasyncError]
) -> None:
    late.apply()

    def fail(*_: object, **__: object) -> bool:
        raise kind("it timed out")

    monkeypatch.setattr(HiveMetastore, "swap_properties", fail)
    compacting(late)
    written = files(late, "base")
    monkeypatch.undo()
    assert ([t.fold for t in late.compact().tables], files(late, "base")) == ([None], written)


def test_where_the_view_is_not_that_of_the_state_in_force_nothing_goes_that_it_may_read(
    late: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    late.apply()
    change = f"ALTER VIEW `{late.database}`.`{TABLE}_view` AS SELECT 1"
    broken(monkeypatch, ArrowShards, "merge", first=lambda: late.workspace.sql.execute(change))
    compacting(late)
    assert [len(files(late, place)) for place in PLACES] == [2, 3, 2]


def left_behind(lab: Lab, path: str, *, ago: int = 0) -> None:
    """Write what a run that was killed left."""
    left = lab.root / "lake" / TOPIC / path / "part-0.parquet"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, ((lab.now_ms - ago) / 1000,) * 2)


@pytest.mark.parametrize("place", ["base/g=000001/dead/s=00000001", "delta/g=000001/dead"])
def test_what_a_killed_run_left_goes_with_the_generation_that_another_one_published(table: Lab, place: str) -> None:
    left_behind(table, place, ago=3 * HOUR)
    seen = []
    for later in (0, 5 * DAY, WEEK - 5 * DAY):
        changed(table, event(3, table.now_ms), later=later)
        seen.append(table.strangers())
    generation = table.root.joinpath("lake", TOPIC, *place.split("/")[:2])
    assert (seen[1:], generation.exists(), keys(table)) == ([[f"{place}/part-0.parquet"], []], False, [1, 3])


def test_what_killed_admissions_put_aside_goes_once_it_is_as_old_as_what_is_vacuumed(table: Lab) -> None:
    changed(table, event(3, 1))
    table.now_ms += WEEK
    for name, ago in (("dead", WEEK), ("slow", WEEK - 1000)):
        left_behind(table, f"_schemasync/staging/{name}", ago=ago)
    staging = table.root.joinpath("lake", TOPIC, "_schemasync", "staging")
    staging.joinpath("beginning").mkdir()
    changed(table)
    assert sorted(path.name for path in staging.iterdir()) == ["beginning", "slow"]


def test_what_was_put_aside_and_may_not_be_deleted_does_not_let_the_rest_stay(
    table: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(table, event(3, 1))
    table.now_ms += WEEK
    for name in "abc":
        left_behind(table, f"_schemasync/staging/{name}", ago=WEEK)
    denied(monkeypatch, "staging/b")
    changed(table)
    assert files(table, "_schemasync/staging") == ["b/part-0.parquet"]


def test_a_run_that_still_writes_for_an_older_generation_may_find_out_that_it_lost(table: Lab) -> None:
    changed(table, event(3, 1))
    table.now_ms += WEEK
    left_behind(table, "base/g=000001/slow/s=00000001", ago=WEEK - 1000)
    changed(table)
    assert (table.strangers(), files(table, "base/g=000001")) == (
        ["base/g=000001/slow/s=00000001/part-0.parquet"],
        ["slow/s=00000001/part-0.parquet"],
    )


def cut_in_shards(lab: Lab) -> int:
    """Compact a table into many shards whose files are old; return how many."""
    lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(n, 1) for n in range(1000)], name="first.parquet")
    lab.compact()
    for shard in (lab.root / "lake" / TOPIC / "base").rglob("*.parquet"):
        os.utime(shard, (0, 0))
    return len(files(lab, "base"))


def test_shards_that_are_in_force_stay_though_others_of_their_run_go(lab: Lab) -> None:
    shards = cut_in_shards(lab)
    left_behind(lab, "base/g=000001/dead/s=00000001")
    changed(lab, event(3, 2))
    for later in (0, WEEK):
        changed(lab, later=later)
    assert 0 < len(files(lab, "base/g=000001")) < shards
    assert (lab.strangers(), keys(lab)) == ([], [*range(1000)])


def test_a_file_that_was_written_again_unseen_is_kept(lab: Lab) -> None:
    """Without keys another file of that name and size counts as the one that was admitted."""
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])), key=None)
    path = lab.land(TOPIC, [event(1, 1, a=1)], name="a.parquet")
    lab.compact()
    size = path.stat().st_size
    os.utime(lab.land(TOPIC, [event(2, 1, a=2)], name="a.parquet"), (1, 1))
    assert path.stat().st_size == size
    written = path.read_bytes()
    lab.now_ms += 2 * HOUR
    lab.compact()
    archived = lab.root / "lake" / TOPIC / "archive" / "incremental" / "increment_2026112000" / "a.parquet"
    assert (keys(lab), path.exists(), archived.read_bytes()) == ([1], False, written)


@pytest.mark.parametrize("rule", ["delete", "archive"])
def test_a_file_that_is_written_anew_while_its_hour_is_cleaned_up_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    lab.settings = {"defaults": {"compaction": {"on_fold": rule}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.land(TOPIC, [event(1, 1)], name="a.parquet")
    lab.compact()
    lab.now_ms += 2 * HOUR
    listed = ArrowLake.files
    asked: list[str] = []

    def files_of(lake: ArrowLake, directory: str) -> Any:
        found = listed(lake, directory)
        if directory == "incremental/increment_2026112000" and not asked:
            asked.append(directory)
            os.utime(lab.land(TOPIC, [event(2, 2)], name="a.parquet"), (1, 1))
        return found

    monkeypatch.setattr(ArrowLake, "files", files_of)
    lab.compact()
    assert (len(asked), files(lab, "incremental")) == (1, ["increment_2026112000/a.parquet"])
    lab.compact()
    assert keys(lab) == [1, 2]


def states(lab: Lab) -> list[str]:
    return sorted(path.stem for path in (lab.root / "lake" / TOPIC / "_schemasync" / "generations").iterdir())


def test_states_that_nobody_asks_for_any_more_are_forgotten_after_the_vacuum_retention(table: Lab) -> None:
    """Of each generation the first stays, for its history, and what is in force with the one before it."""
    for step in range(2, 8):
        table.land(TOPIC, [event(step, step)], hour=f"202611200{step}")
        table.apply()
    changed(table, event(9, 9))
    written = states(table)
    assert written == ["000001", *(f"000001-{n:04}" for n in range(1, 8)), "000002"]
    table.date_files()
    changed(table, later=DAY)
    assert states(table) == [*written, "000003"]
    told = [str(manifest.state) for manifest in history(table.workspace, TABLE).generations]
    changed(table, later=WEEK)
    assert states(table) == ["000001", "000001-0001", "000002", "000003", "000004"]
    assert [str(manifest.state) for manifest in history(table.workspace, TABLE).generations] == [*told, "000004"]
    assert keys(table) == [1, *range(3, 8), 9]


def test_states_that_are_younger_than_the_vacuum_retention_stay(table: Lab) -> None:
    table.date_files()
    table.now_ms += 6 * DAY
    for step in range(2, 6):
        table.land(TOPIC, [event(step, step)], hour=f"202611200{step}")
        table.apply()
    table.date_files()
    written, deltas = states(table), files(table, "delta")
    changed(table, event(9, 9), later=DAY)
    assert (deltas[0] in files(table, "delta"), states(table)) == (False, [*written, "000002"])


def test_what_cannot_be_deleted_beside_a_vacuumed_directory_stops_nothing(
    table: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind(table, "base/g=000001/dead/s=00000001", ago=3 * HOUR)
    denied(monkeypatch, "base/g=000001/dead")
    for later in (0, 8 * DAY, HOUR):
        changed(table, event(3, table.now_ms), later=later)
    assert (table.strangers(), keys(table)) == (["base/g=000001/dead/s=00000001/part-0.parquet"], [1, 3])


def test_a_storage_that_does_not_tell_all_directories_loses_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = cut_in_shards(lab)
    monkeypatch.setattr(ArrowLake, "directories", lambda *_: ())
    changed(lab, event(3, 2))
    for later in (0, WEEK):
        changed(lab, later=later)
    assert (0 < len(files(lab, "base/g=000001")) < shards, keys(lab)) == (True, [*range(1000)])
