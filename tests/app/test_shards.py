"""A base in several shards: what is rewritten, how they are cut and joined, for keys of every type."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from schemasync.app.applying import apply_table
from schemasync.app.compacting import compact, compact_table
from schemasync.core import manifest
from schemasync.core.keys import print_key
from schemasync.core.layering import Mode
from schemasync.io.parquet import late
from schemasync.io.parquet.sorted_rows import KeyColumns
from tests.lab import HOUR, Begun, Lab
from tests.naming import WAYS, naming

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
NAME = ("name", ["null", "string"])
SMALL = {"defaults": {"compaction": {"shard_size": "1KB"}}}


@pytest.fixture(params=WAYS)
def scans(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many scans of rows a view with changes is: one where it names their keys, two where they are joined."""
    with naming(request.param):
        yield 2 if request.param == "joined" else 1


@pytest.fixture
def joined() -> Iterator[None]:
    """Let no view name keys of changes."""
    with naming("joined"):
        yield


def places(lab: Lab) -> dict[str, str]:
    """Return segment -> location, without folded deltas."""
    found = lab.workspace.metastore.partitions(lab.database, TABLE)
    return {name: place for name, place in found.items() if name.startswith("base")}


def keys_in(place: str) -> list[Any]:
    files = sorted(Path(place.removeprefix("file:")).glob("*.parquet"))
    return [key for file in files for key in pq.read_table(file).column("id").to_pylist()]


def compacted(lab: Lab) -> Mapping[str, Any]:
    (done,) = lab.compact().tables
    assert done.failure is None
    lab.now_ms += 1000
    return done.to_json()


def events(*keys: Any, ts_ms: int = 1, op: str = "u", **row: Any) -> list[dict[str, Any]]:
    return [{"id": key, "name": f"n{ts_ms}", "op": op, "ts_ms": ts_ms} | row for key in keys]


def first_base(lab: Lab, keys: Sequence[Any], type_: Any = "long") -> None:
    value = lab.flat("Student", NAME)
    value["fields"][0] = {"name": "id", "type": type_}
    lab.register(TOPIC, value, key=None)
    entry = {"subject": f"{TOPIC}-value", "keys": ["id"]}
    lab.settings = SMALL | {"tables": [entry]}
    lab.land(TOPIC, events(*keys))
    compacted(lab)


@pytest.fixture
def twelve(begun: Begun) -> Lab:
    """A base of twelve rows in two shards."""
    return begun(first_base, range(12))


def test_only_the_shard_that_changes_fall_into_is_rewritten(twelve: Lab) -> None:
    before = places(twelve)
    twelve.land(TOPIC, events(7, ts_ms=2), hour="2026112001")
    done = compacted(twelve)
    after = places(twelve)
    assert sorted(sorted(keys_in(p)) for p in before.values()) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    new = [place for name, place in after.items() if name not in before]
    assert {name: after[name] for name in before} == before
    assert sorted(key for place in new for key in keys_in(place)) == [6, 7, 8, 9, 10, 11]
    assert (done["shards"], done["shards_rewritten"], done["updated"]) == (1 + len(new), len(new), 1)
    assert [row["name"] for row in twelve.rows(TABLE)] == ["n1"] * 7 + ["n2"] + ["n1"] * 4


def test_what_has_no_keys_rewrites_no_shard_but_a_small_one(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("Student", NAME), key=None)
    lab.settings = SMALL
    kept: dict[str, str] = {}
    for hour in range(1, 4):
        lab.land(TOPIC, events(*range(20), ts_ms=hour), hour=f"202611200{hour}")
        done = compacted(lab)
        there = places(lab)
        assert (there.items() >= kept.items(), done["shards"], done["shards_rewritten"]) == (True, hour, 1)
        assert len(lab.rows(TABLE)) == 20 * hour
        kept = there
    # All of them are small from now on.
    lab.settings = {}
    lab.land(TOPIC, events(*range(20), ts_ms=4), hour="2026112004")
    done = compacted(lab)
    assert (done["shards"], done["shards_rewritten"], len(lab.rows(TABLE))) == (1, 1, 80)
    lab.register(TOPIC, lab.flat("Student", ("grade", ["null", "int"])), key=None)
    compacted(lab)
    assert lab.rows(TABLE) == [{"id": key, "grade": None} for key in range(20) for _ in range(4)]


def test_a_column_that_was_added_rewrites_no_shard_and_one_that_was_dropped_all(twelve: Lab) -> None:
    before = places(twelve)
    name, grade = ("name", ["null", "string"]), ("grade", ["null", "int"])
    twelve.register(TOPIC, twelve.flat("Student", name, grade), key=None)
    (applied,) = twelve.apply().tables
    assert (applied.plan.bytes, compacted(twelve)["generation"], places(twelve)) == (0, 1, before)
    twelve.land(TOPIC, events(7, ts_ms=2, grade=5), hour="2026112001")
    done = compacted(twelve)
    assert (done["shards"] - done["shards_rewritten"], done["updated"]) == (1, 1)
    seen = [{"id": key, "name": "n2" if key == 7 else "n1", "grade": 5 if key == 7 else None} for key in range(12)]
    assert twelve.rows(TABLE) == seen
    view = twelve.workspace.metastore.table(twelve.database, f"{TABLE}_view")
    assert view is not None
    assert "CASE" not in view.view_text
    files = done["shards"]
    twelve.register(TOPIC, twelve.flat("Student", grade), key=None)
    (planned,) = twelve.plan().tables
    cost = (planned.files, planned.bytes)
    done = compacted(twelve)
    assert (done["shards"] - done["shards_rewritten"], done["updated"]) == (0, 0)
    assert cost == (files, done["bytes_read"])
    assert twelve.rows(TABLE) == [{"id": row["id"], "grade": row["grade"]} for row in seen]


def test_shards_that_became_small_are_joined_and_their_partitions_go_after_the_grace(twelve: Lab) -> None:
    twelve.settings = twelve.settings | {"defaults": {}}
    twelve.land(TOPIC, events(0, 11, op="d", ts_ms=2), hour="2026112001")
    done = compacted(twelve)
    joined = places(twelve)
    assert (done["shards"], done["deleted"], len(joined)) == (1, 2, 3)
    assert keys_in(joined["base_s00000003"]) == list(range(12))
    assert [row["id"] for row in twelve.rows(TABLE)] == list(range(1, 11))
    twelve.now_ms += HOUR
    compacted(twelve)
    assert sorted(places(twelve)) == ["base_s00000003"]


def test_there_are_as_many_shards_as_the_rows_that_live_need(lab: Lab) -> None:
    """What is deleted takes its place until it need not be remembered, and small neighbours until both are written."""
    first_base(lab, [0])
    lab.settings |= {"defaults": {"compaction": {"shard_size": "64KB"}}}
    left = range(0, 6000, 100)
    shards = []
    for hour, (keys, op) in enumerate(
        [
            (range(2000), "u"),
            (range(2000, 6000), "u"),
            ([key for key in range(6000) if key not in left], "d"),
            (left, "u"),
            (left, "u"),
        ],
        start=1,
    ):
        texts = [{"id": key, "name": hashlib.sha256(f"{key}".encode()).hexdigest()} for key in keys]
        lab.land(TOPIC, [row | {"op": op, "ts_ms": hour} for row in texts], hour=f"202611200{hour}")
        lab.now_ms += 8 * 24 * HOUR
        shards.append(compacted(lab)["shards"])
    grown, most = shards[:2]
    assert 1 < grown < most
    assert shards[-1] == 1
    assert [row["id"] for row in lab.rows(TABLE)] == list(left)


def test_the_view_sorts_nothing_of_the_base_while_changes_are_known_to_be_newer(twelve: Lab) -> None:
    seen = [text_and_rows(twelve)]
    for key, ts_ms in ((3, 2), (4, 3)):
        twelve.land(TOPIC, events(key, ts_ms=ts_ms), hour=f"202611200{ts_ms}")
        twelve.apply()
        seen.append(text_and_rows(twelve))
    twelve.now_ms += 1000
    compacted(twelve)
    seen.append(text_and_rows(twelve))
    both = [*CHANGED[:4], "n3", *CHANGED[5:]]
    assert seen == [("scan", ["n1"] * 12), ("named", CHANGED), ("named", both), ("scan", both)]


@pytest.mark.parametrize("arrow_limit", ["256MB", "0"], ids=["in this process", "in tasks"])
def test_an_event_that_is_late_beside_an_earlier_delta_does_not_show(twelve: Lab, arrow_limit: str) -> None:
    twelve.settings = {"defaults": {"compaction": {"arrow_limit": arrow_limit}}, "tables": twelve.settings["tables"]}
    for number, (key, ts_ms) in enumerate([(3, 5), (4, 2), (3, 4), (4, 6)]):
        twelve.land(TOPIC, events(key, ts_ms=ts_ms), hour=f"202611200{number + 1}")
        twelve.apply()
    expected = [*["n1"] * 3, "n5", "n6", *["n1"] * 7]
    assert text_and_rows(twelve) == ("named", expected)
    compacted(twelve)
    assert text_and_rows(twelve) == ("scan", expected)


def test_changes_that_nobody_compared_with_each_other_are_sorted_without_the_base(twelve: Lab) -> None:
    with patch.object(late, "MOST_ROWS", 0):
        for number, (key, ts_ms) in enumerate([(3, 4), (3, 3)]):
            twelve.land(TOPIC, events(key, ts_ms=ts_ms), hour=f"202611200{number + 1}")
            twelve.apply()
    expected = [*["n1"] * 3, "n4", *["n1"] * 8]
    assert text_and_rows(twelve) == ("join of the newest", expected)
    twelve.now_ms += 1000
    (merged,) = compact(twelve.workspace, mode=Mode.MINOR).tables
    assert merged.failure is None
    assert text_and_rows(twelve) == ("named", expected)


def test_changes_that_nobody_compared_with_the_base_are_sorted_with_it(twelve: Lab) -> None:
    twelve.land(TOPIC, events(3, ts_ms=2), hour="2026112001")
    twelve.land(TOPIC, events(5, ts_ms=0), hour="2026112001", name="late.parquet")
    with patch.object(late, "MOST_ROWS", 0):
        twelve.apply()
    assert text_and_rows(twelve) == ("the newest", CHANGED)
    text = physical_plan(twelve, f"SELECT name FROM {twelve.database}.{TABLE}_view WHERE id = 3")
    assert ("Window" in text, {"EqualTo(id,3)" in filters for filters in pushed(text)}) == (True, {True})


@pytest.mark.usefixtures("joined")
def test_many_shards_that_no_change_falls_into_are_read_plain(lab: Lab) -> None:
    keys = [f"{number:03}{hashlib.sha256(str(number).encode()).hexdigest()}" for number in range(400)]
    first_base(lab, keys, "string")
    lab.land(TOPIC, events(keys[3], ts_ms=2) + events(keys[399], ts_ms=0), hour="2026112001")
    lab.apply()
    view = lab.workspace.metastore.table(lab.database, f"{TABLE}_view")
    assert view is not None
    plain, joined = view.view_text.split("UNION ALL")
    assert ["base_s00000002" in plain, "JOIN" in plain, "base_s00000001" in joined] == [True, False, True]
    assert [" OVER (" in joined, lab.rows(TABLE)[3:4]] == [False, [{"id": keys[3], "name": "n2"}]]
    text = physical_plan(lab, f"SELECT name FROM {lab.database}.{TABLE}_view WHERE id = '{keys[3]}'")
    assert ["EqualTo(id," in filters for filters in pushed(text)] == [True] * 3


def test_changes_are_read_in_one_scan_with_a_base_that_they_fall_into_much_of(twelve: Lab, scans: int) -> None:
    """So that what adds up their rows takes them as the scan gives them: a union would hand them on one by one."""
    twelve.land(TOPIC, events(3, 30, ts_ms=2) + events(9, ts_ms=0) + events(5, op="d", ts_ms=2), hour="2026112001")
    twelve.apply()
    text = physical_plan(twelve, f"SELECT count(name) FROM {twelve.database}.{TABLE}_view")
    assert (text.count("FileScan parquet"), "Union" in text, "Join" in text) == (scans, False, scans == 2)
    assert {row["id"]: row["name"] for row in twelve.rows(TABLE)} == {
        **{key: "n1" for key in range(12) if key != 5},
        3: "n2",
        30: "n2",
    }


def test_a_range_of_keys_reaches_the_changes(twelve: Lab, scans: int) -> None:
    twelve.land(TOPIC, events(3, 8, ts_ms=2), hour="2026112001")
    twelve.apply()
    text = physical_plan(twelve, f"SELECT name FROM {twelve.database}.{TABLE}_view WHERE id BETWEEN 2 AND 4")
    assert ["GreaterThanOrEqual(id,2)" in filters for filters in pushed(text)] == [True] * scans


@pytest.mark.parametrize("several", [False, True])
def test_no_row_is_shuffled_for_changes_that_wait(twelve: Lab, scans: int, several: bool) -> None:
    for ts_ms in (2, 3) if several else (2,):
        twelve.land(TOPIC, events(3, ts_ms=ts_ms), hour=f"202611200{ts_ms}")
        twelve.apply()
    with unsure_of_sizes(twelve):
        text = physical_plan(twelve, f"SELECT name FROM {twelve.database}.{TABLE}_view")
    joins = ("BroadcastHashJoin" in text, "SortMergeJoin" in text)
    assert (*joins, "Window" in text, "hashpartitioning" in text) == (scans == 2, False, False, False)
    picked = physical_plan(twelve, f"SELECT name FROM {twelve.database}.{TABLE}_view WHERE id = 3")
    found = [scan.partition("ReadSchema")[0] for scan in picked.split("FileScan parquet")[1:]]
    assert len(found) == scans
    assert all("EqualTo(id,3)" in scan and "segment#" in scan.partition("PartitionFilters")[2] for scan in found)


@pytest.mark.parametrize(("more", "way"), [("", "list"), ("k", "list"), ("é", "join")])
def test_texts_are_looked_for_in_a_list_where_all_engines_read_them_alike(lab: Lab, more: str, way: str) -> None:
    """Few of them, which are an array, and many; each with what could be taken for another one of them."""
    few = [*(f"{n:08}-0000-4000-8000-0123456789ab" for n in range(4)), "", "a b"]
    changed = [*few, *([f"{more}{n}" for n in range(9)] if more else [])]
    first_base(lab, [*changed[1:], "A B", "a b ", "a", "K1", "other"], "string")
    lab.land(TOPIC, events(*changed[:3], ts_ms=2) + events(*changed[3:], ts_ms=2, op="d"), hour="2026112001")
    lab.apply()
    expected = dict.fromkeys(["A B", "a b ", "a", "K1", "other"], "n1") | dict.fromkeys(changed[:3], "n2")
    assert {row["id"]: row["name"] for row in lab.rows(TABLE)} == expected
    text = physical_plan(lab, f"SELECT name FROM {lab.database}.{TABLE}_view WHERE id >= 'a'")
    assert ["Join" in text, "array_contains" in text] == [way == "join", way == "list"]
    scans = text.split("FileScan parquet")[1:]
    assert [len(scans), all("GreaterThanOrEqual(id,a)" in scan for scan in scans)] == [2 if way == "join" else 1, True]


@pytest.mark.parametrize("several", [pytest.param(False, marks=pytest.mark.one_spark), True])
@pytest.mark.parametrize(("type_", "first"), [("int", -40), ("long", -(2**63)), ("long", 2**63 - 100)])
@pytest.mark.parametrize("way", WAYS)
def test_many_changes_are_looked_for_by_words_or_buckets_of_keys(
    begun: Begun, type_: str, first: int, several: bool, way: str
) -> None:
    """All bits of some words, none of others, and words of which the base has only a part: in the text, or joined.

    Or some keys of each bucket.
    """
    keys = range(first, first + 100)
    lab = begun(first_base, keys[3:], type_)
    expected = dict.fromkeys(keys[3:], "n1")
    changes = [[*keys[:3], *keys[20:70], *keys[99:]], *[[*keys[60:75], *keys[98:]]] * several]
    with naming(way), patch.object(manifest, "FEW_ROWS", 0):
        for ts_ms, changed in enumerate(changes, start=2):
            gone, there = changed[::7], [key for key in changed if key not in changed[::7]]
            landed = events(*there, ts_ms=ts_ms) + events(*gone, ts_ms=ts_ms, op="d")
            lab.land(TOPIC, landed, hour=f"202611200{ts_ms}")
            lab.apply()
            expected = {key: n for key, n in expected.items() if key not in gone} | dict.fromkeys(there, f"n{ts_ms}")
    assert {row["id"]: row["name"] for row in lab.rows(TABLE)} == expected
    with unsure_of_sizes(lab):
        text = physical_plan(lab, f"SELECT name FROM {lab.database}.{TABLE}_view")
    joins = ["BroadcastHashJoin" in text, "SortMergeJoin" in text]
    joined = way == "joined"
    assert [*joins, "schemasync_bits" in text] == [joined, False, joined]
    assert ["getbit" in text, "FileScan orc" in text] == [way in {"in text", "aside"}, way == "aside"]


DAY = {"type": "int", "logicalType": "date"}
MOMENT = {"type": "long", "logicalType": "timestamp-micros"}


def number(precision: int, scale: int) -> dict[str, object]:
    """Return a decimal's schema."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


FAR: dict[str, dict[str, tuple[Any, Any]]] = {
    "uuid": {"id": ("string", lambda n: f"{n:08x}-0000-4000-8000-{n:012x}")},
    "any text": {"id": ("string", lambda n: f"it's {n} 😀")},
    "far apart": {"id": ("long", lambda n: n * 2**55 - 2**62)},
    "several": {
        "id": ("int", lambda n: n // 10),
        "born": (DAY, lambda n: n),
        "word": ("string", lambda n: f"é{n % 5},"),
    },
    "another order": {"word": ("string", lambda n: f"é{n % 5},"), "id": ("int", lambda n: n // 5)},
    "bytes": {"id": ("bytes", lambda n: bytes([0xFF, 0xC3, n, 0]))},
    "large numbers": {"id": (number(38, 0), lambda n: Decimal(f"{n}{'0' * 35}") - 10**37)},
    "moments and fractions": {
        "id": (MOMENT, lambda n: (n // 30 - 1) * 10**15 - 1),
        "born": (DAY, lambda n: n % 3 - 1),
        "price": (number(9, 2), lambda n: Decimal(f"{n % 2 * 105 - 5}e-2")),
        "share": (number(38, 38), lambda n: Decimal(f"{(n // 6 % 5 - 2) * ((10**38 - 1) // 2)}e-38")),
    },
    "numbers and bytes": {"id": (number(9, 0), lambda n: Decimal(n - 40)), "raw": ("bytes", lambda n: bytes([n]))},
}


@pytest.mark.parametrize(
    ("kind", "several"),
    [
        ("uuid", False),
        ("several", True),
        ("numbers and bytes", True),
        ("moments and fractions", True),
        *[
            pytest.param(kind, True, marks=pytest.mark.one_spark)
            for kind in ("uuid", "any text", "far apart", "another order", "bytes", "large numbers")
        ],
    ],
)
def test_of_changes_too_many_to_be_sent_around_only_rows_that_share_a_hash_are_joined(
    lab: Lab, kind: str, several: bool
) -> None:
    """Of 64 hashes some are of many keys, and some of none that changed: rows of both kinds are in the base."""
    columns = FAR[kind]
    value = lab.flat("Student", *((n, {"type": t}) for n, (t, _) in columns.items() if n != "id"), ("n", "int"), NAME)
    value["fields"][0]["type"] = columns["id"][0]
    lab.register(TOPIC, value, key=None)
    lab.settings = SMALL | {"tables": [{"subject": f"{TOPIC}-value", "keys": [*columns]}]}

    def land(numbers: Iterable[int], at: int, op: str) -> None:
        key = {n: {name: make(n) for name, (_, make) in columns.items()} for n in numbers}
        rows = [key[n] | {"n": n, "name": f"n{at}", "op": op, "ts_ms": at} for n in numbers]
        lab.land(TOPIC, rows, hour=f"202611200{at}")

    land(range(3, 90), 1, "c")
    compacted(lab)
    expected = dict.fromkeys(range(3, 90), "n1")
    with naming("hashed"):
        for at, changed in enumerate([[0, *range(20, 30), 95], *[[0, *range(27, 33), 99]] * several], start=2):
            gone, there = changed[:4], changed[4:]
            land(gone, at, "d")
            land(there, at, "u")
            lab.apply()
            expected = {n: name for n, name in expected.items() if n not in gone} | dict.fromkeys(there, f"n{at}")
        with unsure_of_sizes(lab):
            text = physical_plan(lab, f"SELECT name FROM {lab.database}.{TABLE}_view")
    assert {row["n"]: row["name"] for row in lab.rows(TABLE)} == expected
    assert ["SortMergeJoin" in text, "FileScan orc" in text, text.count("FileScan parquet")] == [True, True, 3]
    # What is sent around of the base and earlier changes, which is the join's first side, was looked for before.
    sent, scanned, _ = text.partition("Exchange hashpartitioning")[2].partition("FileScan parquet")
    assert ["getbit" in sent, bool(scanned)] == [True, True]


@pytest.mark.one_spark
@pytest.mark.parametrize("change", ["widened", "another"])
def test_changes_that_wait_under_hashes_of_a_key_go_on_when_the_key_does(lab: Lab, change: str) -> None:
    narrow = lab.flat("Student", ("n", "int"), NAME)
    narrow["fields"][0]["type"] = "int"
    lab.register(TOPIC, narrow, key=None)
    keys = {"subject": f"{TOPIC}-value", "keys": ["id"]}
    lab.settings = SMALL | {"tables": [keys]}

    def land(at: int, *rows: tuple[int, int]) -> None:
        events_ = [{"id": id_, "n": n, "name": f"n{at}", "op": "u", "ts_ms": at} for id_, n in rows]
        lab.land(TOPIC, events_, hour=f"202611200{at}", version=1)

    def shown() -> list[tuple[int, int, str]]:
        return [(row["id"], row["n"], row["name"]) for row in lab.rows(TABLE, order_by="id")]

    with naming("hashed"):
        land(1, (1, 10), (2, 20), (3, 30))
        compacted(lab)
        land(2, (2, 21))
        lab.apply()
        assert "crc32" in physical_plan(lab, f"SELECT name FROM {lab.database}.{TABLE}_view")
        if change == "widened":
            lab.register(TOPIC, lab.flat("Student", ("n", "int"), NAME), key=None)
        else:
            lab.settings = SMALL | {"tables": [keys | {"keys": ["n"], "policies": {"key": "rebuild"}}]}
        expected = [(1, 10, "n1"), (2, 21, "n2"), (3, 30, "n1")]
        assert (lab.apply().tables[0].error, shown()) == (None, expected)
        land(3, (3, 30))
        expected[2] = (3, 30, "n3")
        assert (lab.apply().tables[0].error, shown()) == (None, expected)
        compacted(lab)
        assert shown() == expected


def test_whoever_resolved_the_view_earlier_sees_the_state_of_then_until_the_grace_is_over(twelve: Lab) -> None:
    """A notebook resolves the view once, and asks it again after changes were admitted, folded and split."""
    readers = [resolved(twelve)]
    seen = [[names(reader) for reader in readers]]
    for step in (2, 3):
        twelve.land(TOPIC, events(step + 1, ts_ms=2), hour=f"202611200{step}")
        twelve.apply()
        readers.append(resolved(twelve))
        seen.append([names(reader) for reader in readers])
        twelve.now_ms += HOUR // 3
        compacted(twelve)
        twelve.session.catalog.refreshTable(f"{twelve.database}.{TABLE}")
        seen.append([names(reader) for reader in readers])
    states = [["n1"] * 12, CHANGED, [*CHANGED[:4], "n2", *CHANGED[5:]]]
    assert seen == [states[:1], states[:2], states[:2], states, states]


def test_a_kept_plan_stays_good_while_changes_are_admitted_and_folded_under_the_schema_before_it(twelve: Lab) -> None:
    twelve.register(TOPIC, twelve.flat("Student", ("name", ["null", "string"]), ("n", ["null", "int"])), key=None)
    settled = twelve.plan().tables[0]
    twelve.land(TOPIC, events(3, ts_ms=2), version=1, hour="2026112001")
    applied = apply_table(twelve.workspace, settled.target, allowed=lambda _: False)
    assert applied.admitted is not None
    assert (applied.admitted.files, twelve.plan().tables[0].fingerprint) == (1, settled.fingerprint)
    folded = compact_table(twelve.workspace, settled.target, applied=applied, mode=Mode.MAJOR)
    assert (folded.generation, twelve.plan().tables[0].fingerprint) == (2, settled.fingerprint)


def test_predicates_on_keys_and_segments_reach_the_files(twelve: Lab) -> None:
    twelve.land(TOPIC, events(7, ts_ms=2), hour="2026112001")
    shards = compacted(twelve)["shards"]
    assert shards < len(twelve.workspace.metastore.partitions(twelve.database, TABLE))
    text = physical_plan(twelve, f"SELECT name FROM {twelve.database}.{TABLE}_view WHERE id = 7")
    assert "Window" not in text
    assert "EqualTo(id,7)" in text
    assert f"InMemoryFileIndex({shards} paths)" in text


@pytest.mark.parametrize("changes", [0, pytest.param(1, marks=pytest.mark.one_spark), 2])
def test_of_columns_that_nobody_asks_for_nothing_is_read(twelve: Lab, scans: int, changes: int) -> None:
    for ts_ms in range(2, 2 + changes):
        twelve.land(TOPIC, events(3, ts_ms=ts_ms), hour=f"202611200{ts_ms}")
        twelve.apply()
    for asked, other in (("id", "name"), ("name", "kafka_offset")):
        text = physical_plan(twelve, f"SELECT {asked} FROM {twelve.database}.{TABLE}_view")
        found = text.split("FileScan parquet")[1:]
        read = [scan.partition("ReadSchema: struct<")[2].partition(">")[0] for scan in found]
        assert [len(read), other in "".join(read)] == [scans if changes else 1, False]


@contextmanager
def unsure_of_sizes(lab: Lab) -> Iterator[None]:
    """Let Spark send no table around because it takes it for small."""
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    lab.session.conf.set(threshold, "-1")
    try:
        yield
    finally:
        lab.session.conf.unset(threshold)


def physical_plan(lab: Lab, query: str) -> str:
    return str(lab.session.sql(query)._jdf.queryExecution().executedPlan().toString())


def pushed(plan: str) -> list[str]:
    """Return what each scan of a plan leaves to the files to filter by."""
    return [scan.partition("PushedFilters")[2].partition("]")[0] for scan in plan.split("FileScan parquet")[1:]]


CHANGED = ["n1"] * 3 + ["n2"] + ["n1"] * 8


def resolved(lab: Lab) -> DataFrame:
    return lab.session.table(f"{lab.database}.{TABLE}_view").select("id", "name").orderBy("id")


def names(found: DataFrame) -> list[str]:
    """Ask a view that was resolved earlier; its files are looked up anew, as another session would."""
    again = found.where("true")
    return [row["name"] for row in again.collect()]


def text_and_rows(lab: Lab) -> tuple[str, list[str]]:
    """Return how the view finds the newest rows, and the names that it shows."""
    view = lab.workspace.metastore.table(lab.database, f"{TABLE}_view")
    assert view is not None
    words = {"THEN 1 ELSE 0 END = 0": "named", "LEFT JOIN": "join of", " OVER (": "the newest"}
    found = " ".join(name for word, name in words.items() if word in view.view_text)
    return found or "scan", [row["name"] for row in lab.rows(TABLE)]


def key_ranges(lab: Lab, *columns: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the manifest says of the keys of each segment, and what the rows of its files say."""
    (planned,) = lab.plan().tables
    assert planned.view is not None
    assert planned.view.manifest is not None
    told, there = {}, {}
    for segment in planned.view.manifest.segments:
        paths = [lab.root / "lake" / TOPIC / file.path for file in segment.files]
        keys = [key for path in paths for key in KeyColumns(pq.read_table(path, partitioning=None), columns)]
        told[segment.name] = segment.key_range
        there[segment.name] = (print_key(min(keys)), print_key(max(keys))) if keys else None
    return told, there


UUIDS = [f"{n:08x}-0000-4000-8000-{n:012x}" for n in (7, 3, 2**31, 11, 5, 2**30)]
TEXTS = ["", "a", "Z", "é", "\U0001f600", "￿", "it's"]
LOGICAL: dict[str, tuple[Any, list[Any]]] = {
    "uuid": ({"type": "string", "logicalType": "uuid"}, UUIDS),
    "text": ("string", TEXTS),
    "bytes": ("bytes", [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"a", b"ab"]),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 22, "scale": 2},
        [Decimal(text) for text in ("-99999999999999999999.99", "-0.01", "0", "0.5", "9.99", "10", "1e19")],
    ),
    "small decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        [Decimal(text) for text in ("-9999999.99", "-0.01", "0", "0.5", "9.99", "10", "1e6")],
    ),
    "date": ({"type": "int", "logicalType": "date"}, [-719162, -1, 0, 1, 20000, 2932896]),
    "timestamp": (MOMENT, [-62135596800000000, -1, 0, 1, 10**15]),
    "boolean": ("boolean", [False, True]),
    "double": ("double", [-0.5, 0.0, 1.5, float("inf")]),
}


def keyed_by(lab: Lab, kind: str) -> None:
    type_, keys = LOGICAL[kind]
    first_base(lab, keys, type_)


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param("arrow arrow", marks=pytest.mark.one_spark),
        "spark spark",
        pytest.param("spark arrow", marks=pytest.mark.one_spark),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.one_spark if kind in {"uuid", "boolean", "double"} else ())
        for kind in LOGICAL
    ],
)
def test_keys_of_every_type_find_their_shard_again(begun: Begun, kind: str, kernels: str) -> None:
    """Whichever way shards were written, and late events find what is there of their key."""
    lab, (_, keys) = begun(keyed_by, kind), LOGICAL[kind]
    for ts_ms, some, kernel in zip((2, 4), (keys[::2], keys), kernels.split(), strict=True):
        lab.settings = lab.settings | {"defaults": {"compaction": {"shard_size": "1KB", "kernel": kernel}}}
        lab.land(TOPIC, events(*some, ts_ms=ts_ms), hour=f"20261120{ts_ms:02}")
        done = compacted(lab)
        lab.land(TOPIC, events(*keys[:2], ts_ms=ts_ms - 1), hour=f"20261120{ts_ms + 1:02}")
        lab.apply()
        newest = {key: f"n{max(ts_ms if key in some else 1, ts_ms - 1 if key in keys[:2] else 1)}" for key in keys}
        text, found = text_and_rows(lab)
        assert (sorted(found), text == "the newest") == (sorted(newest.values()), kind == "double")
    assert (done["shards"] > 1) == (kind != "double")
    told, there = key_ranges(lab, "id")
    assert told == (dict.fromkeys(told) if kind == "double" else there)


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_keys_of_several_columns_find_their_shard_again(lab: Lab, kernel: str) -> None:
    """Shards begin in the middle of a first column's rows."""
    value = lab.flat("Line", ("line", "string"), NAME)
    lab.register(TOPIC, value, key=None)
    entry = {"subject": f"{TOPIC}-value", "keys": ["id", "line"]}
    lab.settings = {"tables": [entry], "defaults": {"compaction": {"shard_size": "1KB", "kernel": kernel}}}
    keys = [(id_, line) for id_ in (-1, 7) for line in ("", "a", "b", "é", "\U0001f600")]
    for ts_ms, some in enumerate((keys, keys[::2], keys[1::2]), start=1):
        rows = [{"id": id_, "line": line, "name": f"n{ts_ms}", "op": "u", "ts_ms": ts_ms} for id_, line in some]
        lab.land(TOPIC, rows, hour=f"20261120{ts_ms:02}")
        done = compacted(lab)
    newest = dict.fromkeys(keys[::2], "n2") | dict.fromkeys(keys[1::2], "n3")
    assert {(row["id"], row["line"]): row["name"] for row in lab.rows(TABLE)} == newest
    (planned,) = lab.plan().tables
    assert planned.view is not None
    assert planned.view.manifest is not None
    lows = [s.low for s in planned.view.manifest.base]
    assert done["shards"] == len(lows) > 2
    assert len({low[0] for low in lows if low}) < len([low for low in lows if low])
    told, there = key_ranges(lab, "id", "line")
    assert told == there
