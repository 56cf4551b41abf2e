"""The past of a table, from its versions and the records of what was applied."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.encoding import ListOf
from schemasync.core.history import History, read_history
from schemasync.core.layout import lay_out
from schemasync.core.schema import Life
from schemasync.core.timeline import Event, Place, Timeline, VersionEntry, iso, timeline, value_text
from tests.core.builders import BIGINT, DEBEZIUM, FLAT, INT, STRING, col, histories, history, rec, version
from tests.core.test_applied import properties, record


def told(found: Timeline) -> dict[int, list[tuple[str, str | None, str | None]]]:
    return {v.version: [(e.kind, e.column, e.physical) for e in v.events] for v in found.versions}


def when(found: Timeline) -> list[tuple[int, bool, int | None, int | None]]:
    return [(v.version, v.shown, v.applied_with, v.applied_ms) for v in found.versions]


def places(found: Timeline) -> dict[str, list[tuple[str, int, int | None]]]:
    return {f"{c.column}@{c.brought_in}": [(p.name, p.since, p.until) for p in c.places] for c in found.columns}


def test_the_first_version_brings_all_its_columns() -> None:
    found = timeline(history((col("a"), col("b", STRING, nullable=False))), properties(1))
    assert found.versions == (
        VersionEntry(
            version=1,
            schema_id=101,
            shown=True,
            events=(
                Event(kind="add_column", column="a", physical="a", desired="int"),
                Event(kind="add_column", column="b", physical="b", desired="string not null"),
            ),
        ),
    )


def test_drop_re_add_rename_and_widen_are_told_with_the_physical_columns() -> None:
    found = timeline(
        history(
            (col("a"), col("old")),
            (col("a", BIGINT), col("new", aliases=("old",))),
            (col("new", aliases=("old",)),),
            (col("a"), col("new", aliases=("old",))),
        ),
        properties(4),
    )
    assert told(found) == {
        1: [("add_column", "a", "a"), ("add_column", "old", "old")],
        2: [("widen_column", "a", "a__2"), ("rename_column", "new", "old"), ("change_aliases", "new", "old")],
        3: [("drop_column", "a", "a__2")],
        4: [("add_column", "a", "a__3")],
    }
    assert places(found) == {
        "a@1": [("a", 1, 1), ("a__2", 2, 2)],
        "new@1": [("old", 1, None)],
        "a@4": [("a__3", 4, None)],
    }
    assert [(c.names, c.changed_in, c.retired_in) for c in found.columns] == [
        (("a",), (2,), 3),
        (("old", "new"), (2,), None),
        (("a",), (), None),
    ]


def test_nested_changes_are_told_by_their_path() -> None:
    found = timeline(
        history((col("tags", ListOf(element=rec(x=INT))),), (col("tags", ListOf(element=rec(x=INT, y=INT))),)),
        properties(2),
    )
    assert told(found)[2] == [("add_field", "tags.element.y", "tags__2")]


def test_changes_of_the_whole_table_have_no_column() -> None:
    versions = (version(1, col("a"), col("b"), envelope=FLAT), version(2, col("b"), col("a"), envelope=DEBEZIUM))
    found = timeline(read_history(versions), properties(2))
    assert told(found)[2] == [("reorder_columns", None, None), ("change_envelope", None, None)]


def test_a_change_of_the_key_is_told_from_the_record() -> None:
    change = {"kind": "change_key", "column": None, "from": ["a"], "to": ["a", "b"]}
    other = {"kind": "add_column", "column": "b", "from": None, "to": "int"}
    found = timeline(history((col("a"),), (col("a"),)), properties(2), [record(2, 1, changes=(other, change))])
    assert found.versions[1].events == (Event(kind="change_key", current=["a"], desired=["a", "b"]),)


def test_a_version_that_was_passed_over_is_applied_with_the_next_and_later_ones_are_not() -> None:
    found = timeline(history(*[(col("a"),)] * 5), properties(4), [record(1, None), record(4, 1)])
    assert when(found) == [
        (1, True, 1, 1000),
        (2, True, 4, 4000),
        (3, True, 4, 4000),
        (4, True, 4, 4000),
        (5, False, None, None),
    ]


def test_what_came_before_the_first_record_is_unknown() -> None:
    found = timeline(history(*[(col("a"),)] * 3), properties(3), [record(3, 2)])
    assert when(found) == [(1, True, None, None), (2, True, None, None), (3, True, 3, 3000)]


def test_a_table_that_was_made_later_never_had_what_was_gone_by_then() -> None:
    found = timeline(history((col("a"), col("b")), (col("a"),)), properties(2, baseline=2), [record(2, None)])
    assert (when(found), places(found)) == (
        [(1, True, 2, 2000), (2, True, 2, 2000)],
        {"a@1": [("a", 2, None)], "b@1": []},
    )
    assert told(found) == {1: [("add_column", "a", "a"), ("add_column", "b", None)], 2: [("drop_column", "b", None)]}


def test_what_is_not_applied_yet_stands_nowhere_and_what_will_go_where_it_is() -> None:
    found = timeline(history((col("a"),), (col("b"),)), properties(1))
    assert told(found)[2] == [("drop_column", "a", "a"), ("add_column", "b", None)]


def test_without_a_table_nothing_is_applied_and_nothing_stands_anywhere() -> None:
    found = timeline(history((col("a"),), (col("a"), col("b"))), None)
    assert (when(found), places(found)) == (
        [(1, False, None, None), (2, False, None, None)],
        {"a@1": [], "b@2": []},
    )


def test_what_was_recorded_holds_where_the_names_would_be_told_otherwise_now() -> None:
    found = timeline(history((col("a"),)), properties(1), [record(1, None, columns={"a": "then"})])
    assert places(found) == {"a@1": [("then", 1, None)]}


def test_a_version_that_is_gone_from_the_registry_leaves_a_gap() -> None:
    found = timeline(read_history([version(1, col("a")), version(3, col("b"))]), properties(3))
    assert (told(found)[3], found.columns[0].retired_in) == ([("drop_column", "a", "a"), ("add_column", "b", "b")], 3)


def test_the_json_of_a_past() -> None:
    found = timeline(history((col("a"),)), properties(1), [record(1, None)])
    assert ([v.to_json() for v in found.versions], [c.to_json() for c in found.columns]) == (
        [
            {
                "version": 1,
                "schema_id": 101,
                "applied": True,
                "applied_with": 1,
                "applied_at": "1970-01-01T00:00:01.000Z",
                "verdict": "evolve",
                "policies": {"add": "evolve"},
                "changes": [{"kind": "add_column", "column": "a", "physical": "a", "from": None, "to": "int"}],
            }
        ],
        [
            {
                "column": "a",
                "type": "int",
                "names": ["a"],
                "brought_in": 1,
                "changed_in": [],
                "retired_in": None,
                "physical": [{"name": "a", "since": 1, "until": None}],
            }
        ],
    )
    unknown = timeline(history((col("a"),)), properties(1)).versions[0].to_json()
    assert [unknown[key] for key in ("applied_with", "applied_at", "verdict", "policies")] == [None] * 4


def test_times_are_utc_with_milliseconds() -> None:
    assert (iso(1_790_000_000_007), iso(None)) == ("2026-09-21T14:13:20.007Z", None)


@pytest.mark.parametrize(
    ("value", "text"), [(None, None), ("int", "int"), (True, "true"), (["a", "ä"], '["a", "ä"]'), (0, "0")]
)
def test_sides_of_a_change_as_text(value: object, text: str | None) -> None:
    assert value_text(value) == text


def overlap(one: Place, other: Place, newest: int) -> bool:
    return one.since <= (other.until or newest) and other.since <= (one.until or newest)


@given(histories(), st.data())
def test_every_column_of_every_version_has_one_life_in_one_place(found: History, data: st.DataObject) -> None:
    newest = found.newest.version
    baseline = data.draw(st.integers(1, newest))
    now = data.draw(st.integers(baseline, newest))
    told = timeline(found, properties(now, baseline=baseline))
    layout = lay_out(found, baseline=baseline, version=now)
    lives = {Life(name=c.names[0].lower(), since=c.brought_in): c for c in told.columns}
    for step in found.versions:
        for column in step.columns:
            life = lives[column.life]
            assert (column.name in life.names, life.brought_in <= step.version) == (True, True)
            assert step.version < (life.retired_in or newest + 1)
            stands = [p.name for p in life.places if p.since <= step.version <= (p.until or now)]
            phase = layout.phase(column.life, step.version)
            assert stands == ([phase.name] if phase and baseline <= step.version <= now else [])
    everywhere = [place.name for life in told.columns for place in life.places]
    assert len(set(everywhere)) == len(everywhere)
    assert not any(overlap(a, b, now) for life in told.columns for a, b in pairwise(life.places))


@given(histories())
def test_events_say_which_versions_brought_changed_and_retired_a_column(found: History) -> None:
    told = timeline(found, properties(found.newest.version))
    for entry in told.versions:
        kinds = [e.kind for e in entry.events]
        assert kinds.count("add_column") == sum(c.brought_in == entry.version for c in told.columns)
        assert kinds.count("drop_column") == sum(c.retired_in == entry.version for c in told.columns)
        changed = [c for c in told.columns if entry.version in c.changed_in]
        others = {"add_column", "drop_column", "reorder_columns"}
        assert bool(changed) == any(kind not in others for kind in kinds)
    assert all(e.physical for v in told.versions for e in v.events if e.column)
