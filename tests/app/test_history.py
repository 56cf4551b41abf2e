"""A table's past on real Spark: what `schemasync history` says, and the table that people query for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.applying import Applied, apply
from schemasync.app.history import TableHistory, history
from schemasync.errors import EngineError, UsageError
from tests.app.mortal import Fuse, KilledError, mortal
from tests.lab import HOUR, START, Lab

pytestmark = pytest.mark.spark

INT, LONG, TEXT = ["null", "int"], ["null", "long"], ["null", "string"]
MINUTE = HOUR // 60
RENAME = {"tables": [{"subject": "student-value", "table": "student", "renames": {"full_name": "name"}}]}


def versions(lab: Lab, *rows: tuple[tuple[str, Any], ...], applying: bool = True) -> None:
    """Register versions of a student with these columns, a minute between them, each applied when it comes."""
    for row in rows:
        lab.register("student", lab.flat("Student", *row))
        lab.now_ms += MINUTE
        if applying:
            applied(lab)


def applied(lab: Lab) -> Applied:
    (one,) = lab.apply().tables
    assert (one.error, one.unrecorded) == (None, None)
    return one


def past(lab: Lab) -> TableHistory:
    return history(lab.workspace, "student")


def queried(lab: Lab, columns: str, where: str = "TRUE") -> list[tuple[Any, ...]]:
    table = f"`{lab.database}`.`student_history`"
    return list(lab.workspace.sql.query(f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {columns}").rows)


def steps(lab: Lab) -> list[str]:
    return [step.kind for step in lab.plan().tables[0].steps]


def directories(lab: Lab) -> list[str]:
    return sorted(path.name for path in (lab.root / "lake" / "student" / "history").iterdir())


EVOLVING = (
    (("name", TEXT), ("n", INT)),
    (("full_name", TEXT), ("n", LONG)),
    (("full_name", TEXT),),
    (("full_name", TEXT), ("n", TEXT)),
)
"""Version 2 renames and widens, 3 drops, 4 adds the dropped name again."""


def test_every_column_has_its_life_with_the_places_where_it_stood(lab: Lab) -> None:
    lab.settings = RENAME
    versions(lab, *EVOLVING)
    lives = [(c.names, c.type, c.brought_in, c.changed_in, c.retired_in) for c in past(lab).past.columns]
    places = [[(p.name, p.since, p.until) for p in c.places] for c in past(lab).past.columns]
    assert lives == [
        (("id",), "bigint", 1, (), None),
        (("name", "full_name"), "string", 1, (2,), None),
        (("n",), "bigint", 1, (2,), 3),
        (("n",), "string", 4, (), None),
    ]
    assert places == [[("id", 1, None)], [("name", 1, None)], [("n", 1, 1), ("n__2", 2, 2)], [("n__3", 4, None)]]


def test_every_version_says_when_it_was_applied_and_what_it_changed(lab: Lab) -> None:
    lab.settings = RENAME
    versions(lab, *EVOLVING)
    found = [(v.version, v.applied_with, v.applied_ms, v.shown) for v in past(lab).past.versions]
    assert found == [(n, n, START + n * MINUTE, True) for n in (1, 2, 3, 4)]
    events = [[(e.kind, e.column, e.physical) for e in v.events] for v in past(lab).past.versions[1:]]
    assert events == [
        [("rename_column", "full_name", "name"), ("widen_column", "n", "n__2")],
        [("drop_column", "n", "n__2")],
        [("add_column", "n", "n__3")],
    ]


def test_the_past_is_a_table_that_spark_reads(lab: Lab) -> None:
    lab.settings = RENAME
    versions(lab, *EVOLVING)
    found = queried(
        lab,
        "version, applied_with, unix_millis(applied_at), kind, column_name, physical, from_value, to_value",
        "version > 1",
    )
    at = [START + n * MINUTE for n in range(5)]
    assert found == [
        (2, 2, at[2], "rename_column", "full_name", "name", "name", "full_name"),
        (2, 2, at[2], "widen_column", "n", "n__2", "int", "bigint"),
        (3, 3, at[3], "drop_column", "n", "n__2", "bigint", None),
        (4, 4, at[4], "add_column", "n", "n__3", None, "string"),
    ]


def test_a_version_that_was_passed_over_is_applied_with_the_one_after_it(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    versions(lab, (("a", INT), ("b", INT)), (("a", INT), ("b", INT), ("c", INT)), applying=False)
    lab.now_ms += MINUTE
    applied(lab)
    versions(lab, (("a", INT),), applying=False)
    found = [(v.version, v.applied_with, v.applied_ms, v.shown) for v in past(lab).past.versions]
    then = START + 4 * MINUTE
    assert found == [(1, 1, START + MINUTE, True), (2, 3, then, True), (3, 3, then, True), (4, None, None, False)]
    assert queried(lab, "version, applied_with, column_name", "version > 1") == [(2, 3, "b"), (3, 3, "c")]


def test_versions_from_before_the_table_are_applied_with_the_one_that_made_it(lab: Lab) -> None:
    versions(lab, (("a", INT), ("old", INT)), (("a", INT),), applying=False)
    applied(lab)
    assert [(v.version, v.applied_with) for v in past(lab).past.versions] == [(1, 2), (2, 2)]
    assert [(c.column, [p.name for p in c.places]) for c in past(lab).past.columns] == [
        ("id", ["id"]),
        ("a", ["a"]),
        ("old", []),
    ]


def test_a_table_without_records_has_a_past_without_times(lab: Lab) -> None:
    versions(lab, (("a", INT),), (("a", LONG),))
    shutil.rmtree(lab.root / "lake" / "student" / "_schemasync" / "applied")
    lab.session.sql(f"DROP TABLE {lab.database}.student_history")
    assert [step.kind for step in applied(lab).done] == ["record_history"]
    assert [(v.applied_ms, v.shown) for v in past(lab).past.versions] == [(None, True), (None, True)]
    assert queried(lab, "version, applied_with, applied_at", "version = 2") == [(2, None, None)]


def test_a_table_that_is_not_there_yet_has_only_what_the_registry_says(lab: Lab) -> None:
    versions(lab, (("a", INT),), applying=False)
    found = past(lab)
    assert (found.version, found.generations, [(v.shown, v.applied_ms) for v in found.past.versions]) == (
        None,
        (),
        [(False, None)],
    )


def test_generations_are_listed_with_the_state_in_force(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    lab.land("student", [{"id": 1, "a": 1, "op": "c", "ts_ms": 1}])
    lab.compact()
    lab.now_ms += MINUTE
    lab.land("student", [{"id": 2, "a": 1, "op": "c", "ts_ms": 2}])
    lab.apply()
    found = [(str(m.state), m.published_ms, len(m.segments)) for m in past(lab).generations]
    assert found == [("000001", START + MINUTE, 1), ("000001-0001", START + 2 * MINUTE, 2)]


def test_an_unknown_table_is_wrong_usage(lab: Lab) -> None:
    versions(lab, (("a", INT),), applying=False)
    with pytest.raises(UsageError, match="there is no table nobody"):
        history(lab.workspace, "nobody")


def test_the_step_is_in_the_plan_is_no_schema_change_and_a_second_apply_does_nothing(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    again = (steps(lab), applied(lab).done)
    lab.session.sql(f"DROP TABLE {lab.database}.student_history")
    plan = lab.plan().tables[0]
    assert again == ([], ())
    assert ([step.kind for step in plan.steps], plan.pending, plan.verdict.value) == (["record_history"], False, "none")


def test_every_change_is_a_directory_of_its_own_and_old_ones_go_after_the_reader_grace(lab: Lab) -> None:
    versions(lab, (("a", INT),), (("a", INT), ("b", INT)), (("a", INT), ("b", INT), ("c", INT)))
    young = [name[:8] for name in directories(lab)]
    lab.now_ms += 2 * HOUR
    versions(lab, (("a", INT), ("b", INT)))
    assert young == ["v=000001", "v=000002", "v=000003"]
    assert [name[:8] for name in directories(lab)] == ["v=000003", "v=000004"]


def test_a_table_of_that_name_that_is_not_ours_is_left_alone_and_the_table_itself_goes_on(lab: Lab) -> None:
    lab.session.sql(f"CREATE DATABASE {lab.database}")
    lab.session.sql(f"CREATE TABLE {lab.database}.student_history (x int) USING parquet LOCATION '{lab.root}/theirs'")
    versions(lab, (("a", INT),))
    (plan,) = lab.plan().tables
    assert [(d.code, d.severity.value) for d in plan.diagnostics] == [("SS201", "warning")]
    assert (plan.steps, plan.held, plan.current_version) == ((), False, 1)
    assert lab.workspace.metastore.table(lab.database, "student_history") is not None
    assert queried(lab, "x") == []


def test_a_history_that_cannot_be_written_is_told_and_the_table_is_applied_all_the_same(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [{"id": 1, "op": "c", "ts_ms": 1}])
    blocked = lab.root / "lake" / "student" / "history"
    blocked.write_text("a file where the directory would be")
    (one,) = lab.apply().tables
    assert (one.error, one.unrecorded is not None, lab.rows("student")) == (None, True, [{"id": 1}])
    blocked.unlink()
    assert ([step.kind for step in applied(lab).done], steps(lab)) == (["record_history"], [])


def test_a_held_table_keeps_the_past_that_it_has(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    lab.settings = {"defaults": {"policies": {"add": "hold"}}}
    versions(lab, (("a", INT), ("b", INT)), applying=False)
    assert (lab.plan().tables[0].verdict.value, steps(lab), queried(lab, "max(version)")) == ("hold", [], [(1,)])


def calls_of(lab: Lab) -> list[str]:
    fuse = Fuse()
    apply(mortal(lab.workspace, fuse))
    return fuse.calls


class RecordedAndDead(Fuse):
    """Blows right after a version was recorded, and before it comes into force."""

    def done(self, call: str) -> None:
        super().done(call)
        if call == "create _schemasync/applied":
            self.die()


def evolving(root: Path, lab: Lab) -> Lab:
    found = Lab(root=root, session=lab.session, database=f"{lab.database}_{root.name}")
    versions(found, (("a", INT),))
    versions(found, (("a", INT), ("b", INT)), applying=False)
    return found


@pytest.mark.one_spark
def test_killed_after_any_call_the_past_is_what_came_into_force_and_whole_after_the_next_run(
    lab: Lab, tmp_path: Path
) -> None:
    places = (tmp_path / f"n{number}" for number in range(100))
    for after in range(len(calls_of(evolving(next(places), lab)))):
        dying = evolving(next(places), lab)
        fuse = Fuse(after)
        with pytest.raises(KilledError):
            apply(mortal(dying.workspace, fuse))
        table = dying.workspace.metastore.table(dying.database, "student")
        version = int(table.properties["schemasync.version"]) if table else 0
        shown = [v.version for v in past(dying).past.versions if v.shown and v.applied_ms is not None]
        assert shown == list(range(1, version + 1)), fuse.calls
        dying.now_ms += MINUTE
        applied(dying)
        assert queried(dying, "count(DISTINCT applied_at), max(version)") == [(2, 2)], fuse.calls
        assert calls_of(dying) == [], fuse.calls


def test_a_version_that_was_recorded_and_passed_over_then_is_not_shown_as_applied_alone(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    versions(lab, (("a", INT), ("b", INT)), applying=False)
    with pytest.raises(KilledError):
        apply(mortal(lab.workspace, RecordedAndDead()))
    versions(lab, (("a", INT), ("b", INT), ("c", INT)))
    assert [(v.version, v.applied_with) for v in past(lab).past.versions] == [(1, 1), (2, 3), (3, 3)]


def test_a_record_of_a_killed_attempt_that_decided_otherwise_is_written_anew(lab: Lab) -> None:
    versions(lab, (("a", INT),))
    versions(lab, (("a", INT), ("b", INT)), applying=False)
    with pytest.raises(KilledError):
        apply(mortal(lab.workspace, RecordedAndDead()))
    lab.settings = {"defaults": {"policies": {"add": "null"}}}
    lab.now_ms += MINUTE
    applied(lab)
    entry = past(lab).past.versions[-1]
    assert entry.record is not None
    assert (entry.record.policies["add"], entry.applied_ms) == ("null", lab.now_ms)


def test_hive_and_spark_see_one_external_table(lab: Lab) -> None:
    versions(lab, (("a", INT),), (("a", INT), ("b", INT)))
    table = lab.workspace.metastore.table(lab.database, "student_history")
    assert table is not None
    assert (table.kind, [(c.name, c.type) for c in table.columns][:4], table.properties["schemasync.history_of"]) == (
        "EXTERNAL_TABLE",
        [("version", "int"), ("applied_with", "int"), ("applied_at", "timestamp"), ("verdict", "string")],
        "student",
    )
    with pytest.raises(EngineError):
        lab.workspace.sql.query(f"SELECT nothing FROM {lab.database}.student_history")
