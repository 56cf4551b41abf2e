from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.events import CHANGED, CREATED, HELD, SchemaEvent

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EVENT = SchemaEvent(
    table="lake.student",
    subject="shop.public.student-value",
    from_version=1,
    to_version=2,
    verdict="evolve",
    time=NOON,
    changes=({"kind": "AddColumn", "column": "age", "from": None, "to": "int"},),
    diagnostics=({"code": "SS101", "severity": "info", "message": "m", "fix": ""},),
)


def test_an_event_is_a_cloudevent_with_the_plan_s_words_as_data() -> None:
    assert EVENT.cloudevent() == {
        "specversion": "1.0",
        "id": "9782a44c1f0bfe09d68ebca35379ab67",
        "source": "/schemasync/tables/lake.student",
        "type": "io.schemasync.schema.changed",
        "subject": "shop.public.student-value",
        "time": "2026-11-21T12:00:00Z",
        "datacontenttype": "application/json",
        "data": {
            "table": "lake.student",
            "subject": "shop.public.student-value",
            "from_version": 1,
            "to_version": 2,
            "verdict": "evolve",
            "changes": [{"kind": "AddColumn", "column": "age", "from": None, "to": "int"}],
            "diagnostics": [{"code": "SS101", "severity": "info", "message": "m", "fix": ""}],
        },
    }


def test_an_event_as_text_is_one_line_that_reads_back() -> None:
    event = replace(EVENT, subject="größe\nvalue")
    assert (json.loads(event.json()), event.json().isascii(), "\n" in event.json()) == (event.cloudevent(), True, False)


@pytest.mark.parametrize(
    ("from_version", "verdict", "expected"),
    [(1, "evolve", CHANGED), (1, "none", CHANGED), (None, "evolve", CREATED), (1, "hold", HELD), (None, "hold", HELD)],
)
def test_the_type_says_what_happened(from_version: int | None, verdict: str, expected: str) -> None:
    assert replace(EVENT, from_version=from_version, verdict=verdict).type == expected


def test_the_source_is_a_uri_whatever_the_table_is_called() -> None:
    assert replace(EVENT, table="a b/é").cloudevent()["source"] == "/schemasync/tables/a%20b%2F%C3%A9"


def test_a_time_in_any_zone_is_told_in_utc() -> None:
    local = datetime(2026, 11, 21, 14, 30, 0, 5000, tzinfo=timezone(timedelta(hours=2, minutes=30)))
    assert replace(EVENT, time=local).cloudevent()["time"] == "2026-11-21T12:00:00.005000Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a time zone"):
        replace(EVENT, time=datetime(2026, 11, 21))


def test_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        replace(EVENT, changes=({"to": float("nan")},)).json()


@given(st.datetimes(timezones=st.just(UTC)), st.text())
def test_the_id_does_not_depend_on_when_or_what_was_told(time: datetime, message: str) -> None:
    assert replace(EVENT, time=time, changes=(), diagnostics=({"message": message},)).id == EVENT.id


IDENTITY = st.tuples(
    st.text(), st.none() | st.integers(), st.integers(), st.sampled_from(("evolve", "hold")), st.text(max_size=1)
)


@given(IDENTITY, IDENTITY)
def test_two_events_share_an_id_only_when_table_versions_verdict_and_occasion_agree(
    left: tuple[str, int | None, int, str, str], right: tuple[str, int | None, int, str, str]
) -> None:
    ids = [
        replace(EVENT, table=table, from_version=old, to_version=new, verdict=verdict, occasion=occasion).id
        for table, old, new, verdict, occasion in (left, right)
    ]
    assert (ids[0] == ids[1]) == (left == right)
