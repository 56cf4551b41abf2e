"""Changes that gather beside the base: merged with each other, folded once they are worth the rewrite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from schemasync.app import compacting
from schemasync.app import layering as app_layering
from schemasync.app.compacting import compact
from schemasync.app.viewing import refresh_view
from schemasync.core import layering
from schemasync.core import manifest as manifests
from schemasync.core.layering import Mode
from schemasync.core.manifest import Manifest, Segment, SegmentKind
from schemasync.core.sharding import by_key
from schemasync.core.types import Primitive
from schemasync.io.parquet import late, shard_writer, shards
from schemasync.io.parquet.merge import merge_shard
from tests.lab import HOUR, Begun, Lab

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"


def changes(*keys: int, ts_ms: int, op: str = "u") -> list[dict[str, Any]]:
    return [{"id": key, "n": ts_ms, "op": op, "ts_ms": ts_ms} for key in keys]


@pytest.fixture
def kernel() -> str:
    return "arrow"


def twenty_rows(lab: Lab, kernel: str) -> None:
    """Make a base of which no rewrite is cheap."""
    lab.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.land(TOPIC, changes(*range(20), ts_ms=1))
    lab.compact()


@pytest.fixture
def table(begun: Begun, kernel: str) -> Lab:
    return begun(twenty_rows, kernel)


def compacted(lab: Lab, mode: Mode = Mode.AUTO, **options: Any) -> dict[str, Any]:
    lab.now_ms += 1000
    with patch.object(layering, "CHEAP_BYTES", 0), patch.object(layering, "WORTH", 0):
        (done,) = compact(lab.workspace, mode=mode, **options).tables
    assert done.failure is None
    return done.to_json()


def manifest(lab: Lab) -> Manifest:
    (planned,) = lab.plan().tables
    assert planned.view is not None
    assert planned.view.manifest is not None
    return planned.view.manifest


def segments(lab: Lab) -> list[str]:
    """Return the segments that the view reads."""
    return [s.name for s in manifest(lab).segments]


def sum_of(found: Iterable[Segment]) -> int:
    return sum(s.bytes for s in found)


def with_many_deltas(lab: Lab) -> dict[int, int]:
    """Let nine deltas wait, the last of which has landed and is not admitted; return the rows."""
    rows = dict.fromkeys(range(20), 1)
    for step in range(2, 11):
        lab.apply()
        lab.land(TOPIC, changes(step, 30, ts_ms=step) + changes(1, ts_ms=0), hour=f"20261120{step:02}")
        rows |= {step: step, 30: step}
    assert len(segments(lab)) == 1 + 8
    return rows


def test_row_groups_of_changes_are_small_however_they_came_and_those_of_the_base_large(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    with patch.object(shard_writer, "_GROUP_ROWS", {SegmentKind.BASE: 6, SegmentKind.DELTA: 2}):
        for step, mode in enumerate((Mode.MAJOR, Mode.MINOR, Mode.MINOR), start=1):
            lab.land(TOPIC, changes(*range(20), ts_ms=step), hour=f"202611200{step}")
            compacted(lab, mode)
    largest = []
    for kind in ("base", "delta"):
        for path in (lab.root / "lake" / TOPIC / kind).rglob("*.parquet"):
            metadata = pq.read_metadata(path)
            largest.append((kind, max(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))))
    # Three were admitted, and two of these were merged.
    assert largest == [("base", 6), *[("delta", 2)] * 4]


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_changes_gather_beside_the_base_and_are_merged_with_each_other(table: Lab) -> None:
    rows = dict.fromkeys(range(20), 1)
    for step in (2, 3, 4):
        table.land(TOPIC, changes(step, 30 + step, ts_ms=step) + changes(1, ts_ms=0), hour=f"202611200{step}")
        done = compacted(table)
        rows |= {step: step, 30 + step: step}
        assert (done["kind"], done["generation"], done["shards_rewritten"]) == ("minor", 1, 0)
        assert {row["id"]: row["n"] for row in table.rows(TABLE)} == rows
    assert segments(table) == ["base_s00000001", "delta_00000006"]
    table.land(TOPIC, changes(2, 32, ts_ms=5, op="d"), hour="2026112005")
    done = compacted(table, Mode.MAJOR)
    del rows[2], rows[32]
    assert (done["kind"], done["events"], done["deleted"], done["deltas"]) == ("major", 11, 1, 0)
    assert ({row["id"]: row["n"] for row in table.rows(TABLE)}, segments(table)) == (rows, ["base_s00000002"])
    table.now_ms += HOUR
    compacted(table)
    assert not list((table.root / "lake" / TOPIC / "incremental").rglob("*.parquet"))


@pytest.mark.parametrize(("readers", "kind"), [("any", "major"), ("spark", "minor")])
def test_changes_that_queries_would_shuffle_the_base_for_are_folded(table: Lab, readers: str, kind: str) -> None:
    table.readers = readers
    table.land(TOPIC, changes(2, 32, ts_ms=2), hour="2026112002")
    # Too many for every task to hold them, and too far apart for their bits.
    with patch.multiple(manifests, FEW_ROWS=1, MOST_WORDS=0):
        done = compacted(table)
        assert {row["id"]: row["n"] for row in table.rows(TABLE)} == dict.fromkeys(range(20), 1) | {2: 2, 32: 2}
    assert done["kind"] == kind


@pytest.mark.parametrize("mode", [Mode.MINOR, Mode.MAJOR])
def test_of_many_deltas_few_are_merged_at_once(table: Lab, mode: Mode) -> None:
    rows = with_many_deltas(table)
    with (
        patch.object(layering, "MOST_AT_ONCE", 3),
        patch.object(shards, "merge_shard", wraps=merge_shard) as merge,
    ):
        done = compacted(table, mode)
    files = [[file.rank for file in call.args[3].files] for call in merge.call_args_list]
    assert files == [[1, 2, 3]] * 3 + ([[0, 1, 2, 3]] if mode is Mode.MAJOR else [[1, 2, 3]])
    assert (done["kind"], done["events"]) == (("major", 27) if mode is Mode.MAJOR else ("minor", 27))
    assert {row["id"]: row["n"] for row in table.rows(TABLE)} == rows
    there = manifest(table)
    assert done["bytes_written"] > sum_of(there.base if mode is Mode.MAJOR else there.deltas)


def test_what_deltas_become_is_not_newer_than_the_base_where_one_of_them_was_not_compared(table: Lab) -> None:
    for step in range(2, 8):
        table.land(TOPIC, changes(30 + step, ts_ms=step) + changes(1, ts_ms=0), hour=f"202611200{step}")
        with patch.object(late, "MOST_ROWS", 0 if step == 6 else late.MOST_ROWS):
            table.apply()
    with patch.object(layering, "MOST_AT_ONCE", 3):
        done = compacted(table, Mode.MINOR)
    assert (done["kind"], done["why"]) == (
        "major",
        "changes are not known to be newer than what the base has of their keys",
    )
    assert [(row["id"], row["n"]) for row in table.rows(TABLE)] == [
        *((key, 1) for key in range(20)),
        *((30 + step, step) for step in range(2, 8)),
    ]


def test_what_deltas_become_is_not_newer_than_earlier_ones_where_one_of_them_was_not_compared(table: Lab) -> None:
    """The first is so large that it stays as it is, and the one that was not compared is older than it."""
    table.land(TOPIC, changes(*range(20, 2000), ts_ms=9), hour="2026112001")
    table.apply()
    for step in range(2, 8):
        table.land(TOPIC, changes(30, ts_ms=8), hour=f"202611200{step}")
        with patch.object(late, "MOST_ROWS", 0 if step == 6 else late.MOST_ROWS):
            table.apply()
    with patch.object(layering, "MOST_AT_ONCE", 3):
        done = compacted(table, Mode.MINOR)
    assert (done["kind"], done["deltas"]) == ("minor", 2)
    assert [row["n"] for row in table.rows(TABLE)] == [1] * 20 + [9] * 1980


@pytest.mark.one_spark
@pytest.mark.parametrize("kernel", ["spark"])
@pytest.mark.parametrize("mode", [Mode.MINOR, Mode.MAJOR])
def test_sql_merges_as_many_deltas_as_there_are(table: Lab, mode: Mode) -> None:
    """It reads those that are published, which the one that just landed is not at first."""
    rows = with_many_deltas(table)
    with patch.object(layering, "MOST_AT_ONCE", 3):
        done = compacted(table, mode)
    assert (done["kind"], done["events"], done["deltas"]) == (mode.value, 27, int(mode is Mode.MINOR))
    assert len([*(table.root / "lake" / TOPIC / "delta").iterdir()]) == 10 + int(mode is Mode.MINOR)
    assert {row["id"]: row["n"] for row in table.rows(TABLE)} == rows


@pytest.mark.one_spark
def test_what_a_fold_would_rewrite_is_known_also_of_changes_in_many_shards(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"}}}
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    for step in (1, 2):  # each of two becomes two
        lab.land(TOPIC, changes(*range(40), ts_ms=step), hour=f"202611200{step}")
        compacted(lab, Mode.MAJOR)
    shards = [s for _, s in by_key(manifest(lab).base, [Primitive.BIGINT])]
    assert len(shards) > 3
    first, second = (int(shard.low[0]) for shard in shards[1:3] if shard.low)
    with patch.object(layering, "MOST_TOUCHED", 1):
        # Each falls into two shards, the second one of both is the same.
        for step, keys in enumerate(((0, first), (first + 1, second)), start=3):
            lab.land(TOPIC, changes(*keys, ts_ms=step), hour=f"202611200{step}")
            lab.apply()
        told = [(d.touches, d.touched_bytes) for d in manifest(lab).deltas]
        assert told == [(None, sum_of(some)) for some in (shards[:2], shards[1:3])]
        assert compacted(lab, Mode.MINOR)["rewrite_bytes"] == min(sum(size or 0 for _, size in told), sum_of(shards))
        (merged,) = manifest(lab).deltas
    assert (merged.touches, merged.touched_bytes) == (None, sum_of(shards[:3]))


@pytest.mark.one_spark
def test_a_dry_run_says_what_it_would_do_and_what_that_costs(table: Lab) -> None:
    table.land(TOPIC, changes(3, ts_ms=2), hour="2026112002")
    table.apply()
    before = segments(table)
    would = compacted(table, dry_run=True)
    forced = compacted(table, Mode.MAJOR, dry_run=True)
    assert (would["kind"], forced["kind"], segments(table)) == ("minor", "major", before)
    assert forced["bytes_read"] > would["bytes_read"] == 0
    costs = [(done["rewrite_bytes"], done["change_bytes"]) for done in (would, forced)]
    assert costs[0] == costs[1] == (forced["bytes_read"] - costs[0][1], costs[0][1])
    assert min(costs[0]) > 0


def everything(lab: Lab) -> dict[str, int]:
    """Return all files of the lake, and when they were written."""
    return {str(path): path.stat().st_mtime_ns for path in (lab.root / "lake").rglob("*") if path.is_file()}


FIGURES = ("kind", "why", "events", "rewrite_bytes", "change_bytes", "bytes_read")


@pytest.mark.one_spark
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("beside", [False, True])
def test_a_dry_run_decides_with_what_landed_and_is_not_admitted(table: Lab, mode: Mode, beside: bool) -> None:
    if beside:
        table.land(TOPIC, changes(5, ts_ms=2), hour="2026112002")
        table.apply()
    # One of them is late, and shows nowhere.
    table.land(TOPIC, changes(3, 30, ts_ms=3) + changes(7, ts_ms=0), hour="2026112003")
    before, files, rows = manifest(table), everything(table), table.rows(TABLE)
    would = compacted(table, mode, dry_run=True)
    assert (manifest(table), everything(table), table.rows(TABLE)) == (before, files, rows)
    table.now_ms -= 1000
    did = compacted(table, mode)
    assert [would[figure] for figure in FIGURES] == [did[figure] for figure in FIGURES]
    assert (would["kind"], would["events"]) == (
        "major" if mode is Mode.MAJOR else "minor",
        {(Mode.MAJOR, False): 3, (Mode.MAJOR, True): 4}.get((mode, beside), 4 if beside else 0),
    )


@pytest.mark.one_spark
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("landed", [True, False])
def test_a_dry_run_decides_with_what_many_deltas_are_merged_to_first(table: Lab, mode: Mode, landed: bool) -> None:
    with_many_deltas(table)
    if not landed:
        table.apply()
    before, files = manifest(table), everything(table)
    with patch.object(layering, "MOST_AT_ONCE", 3):
        would = compacted(table, mode, dry_run=True)
        assert (manifest(table), everything(table)) == (before, files)
        table.now_ms -= 1000
        did = compacted(table, mode)
    assert [would[figure] for figure in FIGURES] == [did[figure] for figure in FIGURES]


@pytest.mark.one_spark
def test_a_dry_run_of_a_table_without_a_base_says_into_how_many_shards(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"}}}
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.apply()
    lab.land(TOPIC, changes(*range(1000), ts_ms=1))
    (would,) = compact(lab.workspace, dry_run=True).tables
    (did,) = lab.compact().tables
    assert would.fold is not None
    assert did.fold is not None
    assert len(would.fold.shards) == len(did.fold.shards) > 5


@pytest.mark.one_spark
def test_a_dry_run_leaves_out_what_is_too_much_for_one_process(table: Lab) -> None:
    table.land(TOPIC, changes(3, ts_ms=2), hour="2026112002")
    table.settings = {"defaults": {"compaction": {"arrow_limit": "0"}}}
    (would,) = compact(table.workspace, dry_run=True).tables
    assert (would.failure, would.fold, would.merge, would.applied.admitted) == (None, None, None, None)


@pytest.mark.one_spark
def test_a_dry_run_of_a_held_table_does_not_bring_back_its_view(table: Lab) -> None:
    table.register(TOPIC, table.flat("Student", ("n", {"type": "array", "items": "int"})))
    table.workspace.sql.execute(f"DROP VIEW `{table.database}`.`{TABLE}_view`")
    compact(table.workspace, dry_run=True)
    gone = table.workspace.metastore.table(table.database, f"{TABLE}_view")
    compact(table.workspace)
    back = table.workspace.metastore.table(table.database, f"{TABLE}_view")
    assert (gone, back is not None) == (None, True)


@pytest.mark.one_spark
def test_a_dry_run_says_that_a_file_holds_the_table(table: Lab) -> None:
    table.land(TOPIC, changes(3, ts_ms=2), hour="2026112002")
    table.land(TOPIC, [{"id": 4, "n": 1, "op": "truncate", "ts_ms": 3}], hour="2026112003")
    (would,) = compact(table.workspace, dry_run=True).tables
    assert [d.code for d in would.applied.diagnostics] == ["SS303"]
    assert (would.applied.held, would.fold, segments(table)) == (True, None, ["base_s00000001"])


@pytest.mark.one_spark
def test_where_a_minor_one_is_asked_for_and_cannot_be_it_says_why(table: Lab) -> None:
    """A column that is retyped makes all shards outdated."""
    table.register(TOPIC, table.flat("Student", ("n", "string")))
    done = compacted(table, Mode.MINOR)
    assert (done["kind"], done["why"]) == ("major", "shards are of an older version of the schema")
    assert compacted(table, Mode.MINOR)["why"] is None


def test_the_manifest_says_which_keys_and_moments_a_segment_holds(table: Lab) -> None:
    table.land(TOPIC, changes(30, ts_ms=9) + changes(3, ts_ms=4), hour="2026112002")
    compacted(table)
    told = {s.kind.value: (s.low, s.key_range, s.oldest, s.newest) for s in manifest(table).segments}
    assert told == {"base": (None, (0, 19), 1, 1), "delta": (None, (3, 30), 4, 9)}


@pytest.mark.one_spark
def test_a_small_base_is_folded_whatever_the_change_is(table: Lab) -> None:
    table.land(TOPIC, changes(3, ts_ms=2), hour="2026112002")
    (done,) = table.compact().tables
    assert (done.to_json()["kind"], segments(table)) == ("major", ["base_s00000002"])


@pytest.mark.one_spark
def test_landed_files_go_once_they_are_merged_beside_the_base(table: Lab) -> None:
    for key in (3, 4):
        table.land(TOPIC, changes(key, ts_ms=key), hour=f"20261120{key:02}")
        table.apply()
    landed = [*(table.root / "lake" / TOPIC / "incremental").rglob("*.parquet")]
    rows, merged = table.rows(TABLE), compacted(table, Mode.MINOR)
    assert (len(landed), merged["kind"], segments(table)) == (3, "minor", ["base_s00000001", "delta_00000004"])
    table.now_ms += HOUR
    compacted(table, Mode.MINOR)
    assert [path for path in landed if path.exists()] == []
    assert (manifest(table).admitted, table.rows(TABLE)) == ((), rows)
    assert [s.name for s in manifest(table).deltas] == ["delta_00000004"]


@pytest.mark.one_spark
def test_nothing_is_published_where_there_is_nothing_to_merge(table: Lab) -> None:
    table.land(TOPIC, changes(3, ts_ms=2), hour="2026112002")
    table.apply()
    states = [state(table)]
    for later in (0, HOUR):
        table.now_ms += later
        assert compacted(table, Mode.MINOR)["kind"] == "minor"
        states.append(state(table))
    # What the fold before has superseded is cleaned up, and that is published.
    assert (states[0] == states[1], states[1] == states[2]) == (True, False)
    table.now_ms += HOUR
    compacted(table, Mode.MINOR)
    assert state(table) == states[2]


@pytest.mark.one_spark
def test_what_a_long_merge_supersedes_stays_for_the_whole_reader_grace(
    table: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_many_deltas(table)
    table.apply()
    deltas = {s.name for s in manifest(table).deltas}
    write = app_layering.merged_delta

    def written(*arguments: Any) -> Segment:
        table.now_ms += 2 * HOUR
        return write(*arguments)

    monkeypatch.setattr(app_layering, "merged_delta", written)
    stays_for_the_grace(table, deltas)


@pytest.mark.one_spark
@pytest.mark.parametrize("mode", [Mode.MINOR, Mode.MAJOR])
def test_what_is_shown_late_supersedes_nothing_sooner(table: Lab, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """To add the partitions of thousands of values, and to replace a view, may take a while."""
    with_many_deltas(table)
    table.apply()
    deltas = {s.name for s in manifest(table).deltas}

    def shown(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(compacting, "refresh_view", refresh_view)
        table.now_ms += 2 * HOUR
        refresh_view(*arguments, **options)

    monkeypatch.setattr(compacting, "refresh_view", shown)
    stays_for_the_grace(table, deltas, mode)


def stays_for_the_grace(lab: Lab, deltas: set[str], mode: Mode = Mode.MINOR) -> None:
    """Compact; whoever resolved the view right before it was replaced still finds what that named."""
    there: list[bool] = []
    for later in (0, HOUR - 2000, 0):
        lab.now_ms += later
        compacted(lab, mode)
        there.append(deltas <= {*lab.workspace.metastore.partitions(lab.database, TABLE)})
    assert there == [True, True, False]


def state(lab: Lab) -> str:
    table = lab.workspace.metastore.table(lab.database, TABLE)
    assert table is not None
    return table.properties["schemasync.state"]
