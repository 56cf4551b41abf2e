"""Which records of applied versions count: those that lead back from the version in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemasync.core.applied import AppliedVersion, in_force, record_of
from schemasync.core.changes import AddColumn
from schemasync.core.history import History
from schemasync.core.manifest import StateId
from schemasync.core.policy import Verdict
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape, shape_of
from tests.core.builders import BIGINT, FLAT, INT, SUBJECT, col, history, target


def properties(version: int, **more: Any) -> TableProperties:
    given: dict[str, Any] = {"baseline": 1, "fingerprint": f"fp{version}"}
    return TableProperties(
        subject=SUBJECT,
        version=version,
        schema_id=100 + version,
        keys=("id",),
        ordering=FLAT.ordering,
        columns="c0",
        lives="l0",
        state=StateId(generation=0, admission=0),
        **(given | more),
    )


def record(number: int, before: int | None, **more: Any) -> AppliedVersion:
    given: dict[str, Any] = {
        "subject": SUBJECT,
        "version": number,
        "from_version": before,
        "schema_id": 100 + number,
        "fingerprint": f"fp{number}",
        "applied_ms": 1000 * number,
        "verdict": "evolve",
        "policies": {"add": "evolve"},
        "changes": (),
        "columns": {"id": "id"},
    }
    return AppliedVersion(**(given | more))


def counted(records: list[AppliedVersion], found: TableProperties) -> list[int]:
    return [r.version for r in in_force(records, found)]


def shape(found: History, version: int) -> Shape:
    at = found.at(version)
    assert at is not None
    return shape_of(target(), found, at, key=("id",), baseline=1)[0]


def test_records_count_back_to_the_one_that_made_the_table() -> None:
    assert counted([record(1, None), record(3, 1), record(4, 3)], properties(4)) == [1, 3, 4]


def test_a_record_that_never_came_into_force_does_not_count() -> None:
    assert counted([record(1, None), record(2, 1), record(3, 1), record(4, 3)], properties(3)) == [1, 3]


def test_records_of_a_table_that_is_older_than_they_begin_later() -> None:
    assert counted([record(4, 3)], properties(4)) == [4]


def test_without_a_record_of_the_version_in_force_nothing_is_known() -> None:
    assert counted([record(1, None), record(2, 1)], properties(3)) == []


def test_records_of_another_subject_or_content_do_not_count() -> None:
    assert counted([record(2, None, subject="other-value")], properties(2, baseline=2)) == []
    assert counted([record(2, None, fingerprint="else")], properties(2, baseline=2)) == []


def test_records_of_a_table_that_stood_there_before_do_not_count() -> None:
    assert counted([record(1, None), record(2, 1), record(3, 2)], properties(3, baseline=3)) == []


def test_a_record_that_leads_forward_is_no_record() -> None:
    with pytest.raises(ValidationError, match="cannot follow"):
        record(2, 2)


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=8))
def test_whatever_was_attempted_only_what_came_into_force_counts(attempts: list[tuple[int, bool]]) -> None:
    """Each attempt is for a version so much newer, and is killed before it comes into force, or not."""
    kept: dict[int, AppliedVersion] = {}
    went_through: list[int] = []
    for newer, killed in [*attempts, (1, False)]:
        before = went_through[-1] if went_through else None
        number = (before or 0) + newer
        kept[number] = record(number, before)
        went_through += [] if killed else [number]
    found = properties(went_through[-1], baseline=went_through[0])
    assert counted(list(kept.values()), found) == went_through


def test_two_attempts_at_one_change_say_the_same() -> None:
    one = record(2, 1)
    assert [one.says_the_same(record(2, 1, applied_ms=5)), one.says_the_same(record(2, 1, policies={}))] == [
        True,
        False,
    ]


def test_a_record_says_what_changed_and_where_columns_stand() -> None:
    found = history((col("id"), col("A")), (col("id"), col("A", BIGINT), col("b")))
    change = AddColumn(column=found.newest.columns[2], position=2)
    made = record_of(
        target(), shape(found, 2), properties(2), before=1, verdict=Verdict.EVOLVE, changes=[change], now_ms=7
    )
    assert made == record(
        2,
        1,
        applied_ms=7,
        policies=target().policies.model_dump(),
        changes=({"kind": "add_column", "column": "b", "from": None, "to": "int"},),
        columns={"id": "id", "A": "a__2", "b": "b"},
    )


@pytest.mark.parametrize("before", [1, 2])
def test_a_version_that_the_table_has_is_not_recorded_again(before: int) -> None:
    found = shape(history((col("id", INT),)), 1)
    same = replace(properties(1), keys=())
    assert record_of(target(), found, same, before=before, verdict=Verdict.EVOLVE, changes=(), now_ms=7) is None
