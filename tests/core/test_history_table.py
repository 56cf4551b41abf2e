"""The rows of the history table, and when it has to be written anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemasync.core.history_table import (
    COLUMNS,
    HISTORY_HASH,
    HISTORY_OF,
    history_rows,
    is_current,
    is_history_of,
    made_ms,
    marks,
    new_directory,
)
from schemasync.core.manifest import StateId
from schemasync.core.ports import HiveTable
from schemasync.core.timeline import timeline
from tests.core.builders import BIGINT, col, history, target
from tests.core.test_applied import properties, record


def table(**more: Any) -> HiveTable:
    given: dict[str, Any] = {"kind": "EXTERNAL_TABLE", "properties": marks(target(), properties(2))}
    return HiveTable(
        database="lake",
        name="student_history",
        columns=(),
        partition_keys=(),
        location="file:/lake/student/history/v=000001-5-abc",
        **(given | more),
    )


def test_every_change_of_every_applied_version_is_a_row() -> None:
    found = history((col("a"),), (col("a", BIGINT, nullable=False),), (col("b"),))
    rows = history_rows(timeline(found, properties(2), [record(2, 1)]))
    assert rows == (
        (1, None, None, None, "add_column", "a", "a", None, "int"),
        (2, 2, 2000, "evolve", "widen_column", "a", "a__2", "int", "bigint"),
        (2, 2, 2000, "evolve", "change_nullability", "a", "a__2", "true", "false"),
    )
    assert {len(row) for row in rows} == {len(COLUMNS)}


def test_a_version_that_changed_nothing_has_one_row() -> None:
    rows = history_rows(timeline(history((col("a"),), (col("a"),)), properties(2), [record(2, 1)]))
    assert rows[1:] == ((2, 2, 2000, "evolve", "no_change", None, None, None, None),)


@pytest.mark.parametrize(
    "other",
    [
        {"version": 3},
        {"schema_id": 7},
        {"fingerprint": "else"},
        {"baseline": 2},
        {"keys": ("a", "b")},
        {"columns": "c1"},
    ],
    ids=str,
)
def test_what_the_rows_follow_from_marks_the_table(other: dict[str, Any]) -> None:
    changed = marks(target(), replace(properties(2), **other))
    assert (changed[HISTORY_OF], changed == marks(target(), properties(2))) == ("student", False)


@pytest.mark.parametrize("more", [{"renames": (("b", "a"),)}, {"policies": {"rename": "drop_add"}}], ids=str)
def test_what_is_said_of_renames_marks_it_too(more: dict[str, Any]) -> None:
    assert marks(target(**more), properties(2)) != marks(target(), properties(2))


def test_an_admission_leaves_it_as_it_is() -> None:
    admitted = replace(properties(2), state=StateId(generation=3, admission=1))
    assert marks(target(), admitted) == marks(target(), properties(2))


def test_a_table_with_all_marks_is_current_whatever_else_people_wrote_on_it() -> None:
    wanted = marks(target(), properties(2))
    assert is_current(table(properties=wanted | {"owner": "ann"}), wanted)
    assert not is_current(table(properties=wanted | {HISTORY_HASH: "old"}), wanted)
    assert not is_current(None, wanted)


@pytest.mark.parametrize(
    ("more", "ours"),
    [({}, True), ({"properties": {}}, False), ({"properties": {HISTORY_OF: "teacher"}}, False), ({"kind": "x"}, False)],
)
def test_only_an_external_table_that_says_so_is_ours(more: dict[str, Any], ours: bool) -> None:
    assert is_history_of(table(**more), target()) is ours


def test_a_directory_says_when_it_was_made() -> None:
    directory = new_directory(3, now_ms=1_790_000_000_000, token="0007")
    assert (directory, made_ms(directory)) == ("history/v=000003-1790000000000-0007", 1_790_000_000_000)


@pytest.mark.parametrize("other", ["history/theirs", "history/v=000003-x-0007", "file:/elsewhere/"])
def test_a_directory_of_another_name_is_older_than_anything(other: str) -> None:
    assert made_ms(other) == 0
