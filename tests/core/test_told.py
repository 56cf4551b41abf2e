"""What was told of a table comes back from its file as it went in; whatever else lies there says nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemasync.core.events import SchemaEvent
from schemasync.core.news import Told
from schemasync.core.told import ToldRecord, parse, record

EVENT = SchemaEvent(
    table="student",
    subject="student-value",
    from_version=None,
    to_version=2,
    verdict="hold",
    time=datetime(2026, 11, 21, 12, 0, 0, 123000, tzinfo=UTC),
    occasion='[["SS113"], 7, null]',
    changes=({"kind": "add_column", "column": "größe", "from": None, "to": {"type": "int"}},),
    diagnostics=({"code": "SS113", "fix": ""},),
)
WHOLE = record("lake.student", Told(met=True, version=2, keys=("id",), holds=frozenset({"b", "a"})), (EVENT,))


def written(**changes: object) -> bytes:
    return json.dumps(WHOLE.model_dump(mode="json") | changes).encode()


def test_events_come_back_with_all_that_they_said() -> None:
    back = parse(WHOLE.model_dump_json().encode(), table="lake.student")
    assert back == WHOLE
    assert [event.cloudevent() for event in back.waiting] == [EVENT.cloudevent()]


def test_a_start_goes_on_from_the_version_the_key_and_the_hold() -> None:
    assert WHOLE.told == Told(met=True, version=2, keys=("id",), holds=frozenset({"a", "b"}))


def test_what_is_the_same_is_equal() -> None:
    holds = frozenset({"a", "b"})
    told = Told(met=True, version=2, keys=("id",), planned=(2, ()), ids=frozenset({"c"}), holds=holds)
    assert record("lake.student", told, (replace(EVENT),)) == WHOLE


def test_a_table_that_was_not_there_is_known_as_such() -> None:
    assert parse(b'{"table": "t", "version": null}', table="t") == ToldRecord(table="t", version=None)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff{", id="no text"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"table": "lake.student"}', id="lacking"),
        pytest.param(written(format=2), id="a newer release's"),
        pytest.param(written(table="lake.teacher"), id="another table's"),
        pytest.param(written(waiting=[{"table": "student"}]), id="half an event"),
        pytest.param(
            written(waiting=[WHOLE.model_dump(mode="json")["waiting"][0] | {"time": "2026-11-21T12:00:00"}]),
            id="no time zone",
        ),
    ],
)
def test_nonsense_says_nothing(content: bytes) -> None:
    assert parse(content, table="lake.student") is None
