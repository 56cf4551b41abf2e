"""Sources that order events by a text first, or by a date or a time, are read and compacted as those with a number are.

MySQL's place in its log is a file and a position in it, SQL Server's a hexadecimal text; ``sequence_by`` may name any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from schemasync.app.compacting import compact
from schemasync.core import layering
from schemasync.core.layering import Mode
from schemasync.io.parquet import late, same_keys
from tests.lab import Lab

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
MIDNIGHT = 20_000
DAY = 86_400_000


class Source(NamedTuple):
    """Fields of an event's source, their values by a number that grows with the log, and what a table is told."""

    fields: list[dict[str, Any]]
    place: Callable[[int], dict[str, Any]]
    sequence_by: list[str] | None = None


def nullable(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_]}


SOURCES = {
    "PostgreSQL": Source(
        [nullable("sequence", "string"), nullable("lsn", "long")],
        lambda n: {"sequence": f'["{100 + n // 10}","{5000 - n // 10 + n}"]', "lsn": 5000 - n // 10 + n},
    ),
    "MySQL": Source(
        [nullable("file", "string"), nullable("pos", "long"), nullable("row", "int")],
        lambda n: {"file": f"binlog.{n // 100:06}", "pos": 4 + n % 100 // 2, "row": n % 2},
    ),
    "SQL Server": Source(
        [nullable("commit_lsn", "string"), nullable("change_lsn", "string"), nullable("event_serial_no", "long")],
        lambda n: {"commit_lsn": f"0000002c:{n // 10:08x}:0003", "change_lsn": f"0000002c:{n:08x}:0002"},
    ),
    "a day, then a number": Source(
        [nullable("day", {"type": "int", "logicalType": "date"}), nullable("number", "long")],
        lambda n: {"day": MIDNIGHT + n // 100, "number": n % 100},
        ["source.day", "source.number"],
    ),
    "a time": Source(
        [nullable("at", {"type": "long", "logicalType": "timestamp-micros"})],
        lambda n: {"at": -5 + n},
        ["source.at"],
    ),
}


class Log:
    """A table of a source: a base of twenty rows, of which no rewrite is cheap."""

    def __init__(self, lab: Lab, source: Source, **compaction: str) -> None:
        self.lab = lab
        self.source = source
        self.hour = 0
        row = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, nullable("n", "long")]}
        fields = [
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "Row"]},
            {"name": "source", "type": {"type": "record", "name": "Source", "fields": source.fields}},
            {"name": "op", "type": "string"},
            nullable("ts_ms", "long"),
        ]
        lab.register(TOPIC, {"type": "record", "name": "Envelope", "fields": fields})
        table: dict[str, Any] = {"subject": f"{TOPIC}-value"}
        if source.sequence_by:
            table["sequence_by"] = source.sequence_by
        lab.settings = {"tables": [table], "defaults": {"compaction": compaction}}
        self.land({key: 300 + key for key in range(20)})
        self.compact(Mode.MAJOR)

    def land(self, places: dict[int, int | None], *, op: str = "u") -> None:
        """Land one event for each key, at a place in the log, which is also its value; None: at no known one."""
        events = []
        for key, place in places.items():
            row = {"id": key, "n": place}
            nowhere: dict[str, Any] = {field["name"]: None for field in self.source.fields}
            source = nowhere if place is None else nowhere | self.source.place(place)
            sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
            # The connector's clock says the contrary of the log.
            events.append({**sides, "source": source, "op": op, "ts_ms": 1000 - (place or 0)})
        self.hour += 1
        self.lab.land(TOPIC, events, hour=f"20261120{self.hour:02}")

    def compact(self, mode: Mode) -> dict[str, Any]:
        self.lab.now_ms += 1000
        with patch.object(layering, "CHEAP_BYTES", 0), patch.object(layering, "WORTH", 0):
            (done,) = compact(self.lab.workspace, mode=mode).tables
        assert done.failure is None
        return done.to_json()

    def rows(self) -> dict[int, int | None]:
        return {row["id"]: row["n"] for row in self.lab.rows(TABLE)}

    def view(self) -> str:
        view = self.lab.workspace.metastore.table(self.lab.database, f"{TABLE}_view")
        assert view is not None
        return view.view_text


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("MySQL", "arrow"),
        ("MySQL", "spark"),
        ("PostgreSQL", "arrow"),
        *(pytest.param(name, "arrow", marks=pytest.mark.one_spark) for name in SOURCES if name[-3:] != "SQL"),
    ],
)
def test_changes_gather_beside_the_base_and_nothing_of_it_is_sorted(lab: Lab, name: str, kernel: str) -> None:
    log = Log(lab, SOURCES[name], kernel=kernel)
    expected: dict[int, int | None] = {key: 300 + key for key in range(20)}
    # Late: in an earlier file, in the same one, at the same position, and at no known place.
    log.land({1: 330, 2: 250, 3: 302, 19: 318, 4: None, 5: 401, 30: 319})
    lab.apply()
    expected |= {1: 330, 5: 401, 30: 319}
    assert (log.rows(), "row_number" in log.view()) == (expected, False)
    for mode, places in ((Mode.AUTO, {1: 329, 6: 402, 31: 200}), (Mode.MINOR, {5: 400, 7: 403, 30: 300, 31: 320})):
        log.land(dict(places))
        assert (log.compact(mode)["kind"], log.compact(mode)["deltas"]) == ("minor", 1)
        expected |= {key: place for key, place in places.items() if place > (expected.get(key) or 0)}
        assert (log.rows(), "row_number" in log.view()) == (expected, False)
    log.land({0: 500, 7: 400}, op="d")
    assert log.compact(Mode.MAJOR)["kind"] == "major"
    del expected[0]
    assert (log.rows(), "row_number" in log.view()) == (expected, False)


@pytest.mark.parametrize("kernel", ["arrow", pytest.param("spark", marks=pytest.mark.one_spark)])
def test_what_an_incremental_snapshot_reads_is_newer_than_what_was_committed_before(lab: Lab, kernel: str) -> None:
    """It has no place of its own in PostgreSQL's log; a change that was under way then has an earlier one, and wins."""
    log = Log(lab, SOURCES["PostgreSQL"], kernel=kernel)
    fields = log.source.fields

    def land(key: int, n: int, commit: int, own: int, *, op: str) -> None:
        place = {"sequence": f'["{commit}","{own}"]', "lsn": None if op == "r" else own}
        source = {field["name"]: place[field["name"]] for field in fields}
        event = {"before": None, "after": {"id": key, "n": n}, "source": source, "op": op, "ts_ms": n}
        lab.land(TOPIC, [event], hour=f"20261121{log.hour:02}")
        log.hour += 1

    expected: dict[int, int | None] = {key: 300 + key for key in range(20)}
    land(1, 1, 200, 6000, op="r")
    land(2, 2, 200, 6000, op="r")
    land(40, 40, 200, 6000, op="r")
    land(2, 3, 201, 5999, op="u")
    lab.apply()
    expected |= {1: 1, 2: 3, 40: 40}
    assert log.rows() == expected
    log.compact(Mode.MAJOR)
    assert log.rows() == expected


@pytest.mark.parametrize("limit", ["256MB", pytest.param("0", marks=pytest.mark.one_spark)])
def test_a_log_that_begins_anew_is_told_and_its_events_are_kept(lab: Lab, limit: str) -> None:
    log = Log(lab, SOURCES["MySQL"], arrow_limit=limit)
    log.land({5: 1, 6: 2, 30: 3})
    (applied,) = lab.apply().tables
    told = [d.message for d in applied.diagnostics if d.code == "SS310"]
    assert told == ["2 rows are older by source.file than what is there of their keys, and newer by ts_ms"]
    assert (applied.held, log.rows()[5], log.rows()[30]) == (False, 305, 3)
    log.compact(Mode.MAJOR)
    lab.now_ms += 8 * DAY
    log.compact(Mode.MAJOR)
    assert [path.parent.name for path in (lab.root / "lake" / TOPIC / "archive").rglob("*.parquet")] == [
        "increment_2026112002"
    ]


@pytest.mark.one_spark
@pytest.mark.parametrize("name", ["MySQL", "PostgreSQL"])
def test_nothing_is_read_for_events_after_the_newest_one_in_the_same_file(lab: Lab, name: str) -> None:
    """Or after the newest one of the same transaction."""
    log = Log(lab, SOURCES[name])
    for places, found in (({1: 320}, 0), ({1: 322, 7: 323}, 0), ({2: 318, 8: 324}, 2)):
        log.land(dict(places))
        with patch.object(late, "sharing", wraps=same_keys.sharing) as read:
            lab.apply()
        assert len([call for call in read.call_args_list if call.args[1]]) == found
    expected = {key: 300 + key for key in range(20)} | {2: 318, 1: 322, 7: 323, 8: 324}
    assert (log.rows(), "row_number" in log.view()) == (expected, False)


@pytest.mark.one_spark
@pytest.mark.parametrize(
    ("compaction", "found"),
    [({}, 13), ({"arrow_limit": "0"}, 13), ({"kernel": "spark"}, None)],
    ids=["in this process", "in tasks", "SQL"],
)
def test_the_manifest_says_which_place_of_a_log_a_shard_goes_to(
    lab: Lab, compaction: dict[str, str], found: int | None
) -> None:
    Log(lab, SOURCES["MySQL"], **compaction)
    (planned,) = lab.plan().tables
    assert planned.view is not None
    assert planned.view.manifest is not None
    (shard,) = planned.view.manifest.base
    assert (shard.oldest, shard.newest, shard.newest_then) == ("binlog.000003", "binlog.000003", found)
