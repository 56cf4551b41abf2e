"""The benchmark's data: the same for everybody, with the promised mix, and a truth that a plain fold agrees with."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.changes import DAY_MS, SHAPES, START_MS, Shape, Source, base_tables
from benchmarks.history import FILES_PER_SET, History
from benchmarks.truth import fold, newest
from benchmarks.values import ENVELOPE, NAMES, Key, avro_schema
from schemasync.core.avro import read_value_schema
from schemasync.core.ports import RegisteredSchema
from schemasync.core.schema import EnvelopeKind

ROWS = 2_000
KEYS: tuple[Key, ...] = ("bigint", "uuid")


def _sets(key: Key, *shapes: Shape) -> list[pa.Table]:
    source = Source(rows=ROWS, key=key)
    return [source.change(shape, ROWS) for shape in shapes]


def _digest(tables: Iterable[pa.Table]) -> str:
    values = [column.cast(pa.string()).to_pylist() for table in tables for column in table.columns]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("key", "expected"), [("bigint", "02a56415ca1927c0"), ("uuid", "b6f78c6bb635a5cd")])
def test_the_same_values_are_generated_on_every_machine(key: Key, expected: str) -> None:
    generated = [*base_tables(100, key), *_sets(key, SHAPES["100-rows"], SHAPES["recent-1%"])]

    assert _digest(generated) == expected


@pytest.mark.parametrize("key", KEYS)
def test_a_table_has_twenty_columns_and_the_envelope(key: Key) -> None:
    (base,) = base_tables(10, key)

    assert (len(NAMES), tuple(base.column_names)) == (20, (*NAMES, *ENVELOPE))


@pytest.mark.parametrize("key", KEYS)
def test_the_registered_schema_describes_what_is_generated(key: Key) -> None:
    text = json.dumps(avro_schema(key))
    registered = RegisteredSchema(subject="bench.public.orders-value", version=1, schema_id=1, text=text)

    read = read_value_schema(registered)

    assert ([c.name for c in read.columns], read.envelope.kind) == (list(NAMES), EnvelopeKind.FLAT)


@pytest.mark.parametrize("key", KEYS)
def test_a_change_set_has_the_promised_mix(key: Key) -> None:
    known = set(_ids(base_tables(ROWS, key)))

    (events,) = _sets(key, SHAPES["uniform-20%"])

    latest = newest(events).to_pylist()
    late = sum(row["ts_ms"] < START_MS - DAY_MS + DAY_MS // 24 for row in latest)
    assert {
        "keys": len(latest),
        "new": sum(row["id"] not in known for row in latest),
        "deleted": sum(row["op"] == "d" for row in latest),
        "late": late,
    } == {"keys": 400, "new": 40, "deleted": 20, "late": 4}


def test_keys_have_up_to_three_events_that_land_out_of_order() -> None:
    (events,) = _sets("bigint", SHAPES["uniform-20%"])

    many = Counter(Counter(_ids([events])).values())
    offsets = events.column("kafka_offset").to_pylist()
    assert (sorted(many), min(many.values()) > 100, offsets == sorted(offsets)) == ([1, 2, 3], True, False)


def test_recent_changes_fall_on_the_newest_tenth() -> None:
    (events,) = _sets("bigint", Shape(name="recent", part=0.05, recent=True))

    assert min(_ids([events])) >= ROWS * 9 // 10


def test_deleted_keys_never_change_again() -> None:
    sets = _sets("bigint", *[SHAPES["uniform-20%"]] * 4)

    gone: set[Any] = set()
    for events in sets:
        assert gone.isdisjoint(_ids([events]))
        gone |= set(_ids([newest(events).filter(pc.field("op") == "d")]))


@pytest.mark.parametrize("key", KEYS)
def test_the_truth_is_what_a_plain_fold_says(key: Key) -> None:
    sets = _sets(key, *SHAPES.values())
    expected = {row["id"]: row for table in base_tables(ROWS, key) for row in table.to_pylist()}
    for row in sorted((row for events in sets for row in events.to_pylist()), key=lambda row: row["kafka_offset"]):
        if row["id"] not in expected or expected[row["id"]]["ts_ms"] < row["ts_ms"]:
            expected[row["id"]] = row

    parts = list(base_tables(ROWS, key))
    for events in sets:
        parts = list(fold(parts, events))

    found = sorted((row for part in parts for row in part.to_pylist()), key=lambda row: row["id"])
    assert found == [expected[name] for name in sorted(expected) if expected[name]["op"] != "d"]


def test_a_change_set_lands_as_the_files_of_an_hour(tmp_path: Path) -> None:
    history = History(tmp_path, rows=ROWS, key="bigint", changes_of=ROWS)

    step = history.advance(SHAPES["100-rows"])

    files = sorted(path.name for path in step.landed.iterdir())
    assert (step.number, len(files), step.landed_bytes > 0) == (1, FILES_PER_SET, True)


def _ids(tables: Iterable[pa.Table]) -> list[Any]:
    return [value for table in tables for value in table.column("id").to_pylist()]
