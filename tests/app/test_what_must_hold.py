"""Ways in which rows were once lost or came back; each is a scenario that a reviewer reproduced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab import DAY, HOUR, Lab, event

pytestmark = pytest.mark.spark

TEXT = ["null", "string"]


def codes(lab: Lab) -> list[str]:
    return [d.code for d in lab.plan().tables[0].diagnostics]


def test_a_rename_that_is_said_too_late_holds_instead_of_losing_values(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", ("name", TEXT)))
    lab.apply()
    lab.register("student", lab.flat("Student", ("full_name", TEXT)))
    lab.land("student", [event(1, 1, full_name="kept")])
    lab.compact()
    lab.settings = {"tables": [{"subject": "student-value", "table": "student", "renames": {"full_name": "name"}}]}
    assert codes(lab) == ["SS408"]
    lab.compact()
    assert lab.rows("student") == [{"id": 1, "full_name": "kept"}]


@pytest.mark.parametrize(
    ("entry", "told"), [({}, ["SS419"]), ({"keys": ["id"]}, []), ({"insert_only": True}, [])], ids=str
)
def test_a_key_that_repeats_among_tables_that_were_routed_to_one_topic_is_told(
    lab: Lab, entry: dict[str, Any], told: list[str]
) -> None:
    lab.settings = {"tables": [{"subject": "student-value", "table": "student", **entry}]}
    lab.register("student", lab.flat("Student"), key=("id", "__dbz__physicalTableIdentifier"))
    before = codes(lab)
    lab.apply()
    assert [before, codes(lab)] == [told, told]


def held_back(lab: Lab) -> Callable[[], object]:
    lab.settings = {"defaults": {"policies": {"add": "hold"}}}
    lab.register("student", lab.flat("Student", ("name", TEXT)))
    lab.land("student", [event(1, 5, name="older than the delete")])
    return lab.settings.clear


def of_no_version(lab: Lab) -> Callable[[], object]:
    lab.register("student", lab.flat("Student", ("name", TEXT)))
    lab.land("student", [event(1, 5, name="older than the delete")])
    lab.registry.delete("student-value", 2)
    return lambda: lab.register("student", lab.flat("Student", ("name", TEXT)))


def of_an_unknown_operation(lab: Lab) -> Callable[[], object]:
    lab.land("student", [event(1, 5, "truncate")], name="odd.parquet")
    return lambda: lab.land("student", [event(1, 5)], name="odd.parquet")


def corrupt(lab: Lab) -> Callable[[], object]:
    path = lab.land("student", [event(1, 5)])
    whole = path.read_bytes()
    path.write_bytes(b"no parquet at all")
    return lambda: path.write_bytes(whole)


@pytest.mark.parametrize("waiting", [held_back, of_no_version, of_an_unknown_operation, corrupt])
def test_a_tombstone_stays_while_a_file_waits_that_may_be_older(
    lab: Lab, waiting: Callable[[Lab], Callable[[], object]]
) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [event(1, 1, "c"), event(1, 6, "d")])
    lab.compact()
    # Where a file holds the table, nothing is folded but what was admitted before.
    lab.land("student", [event(2, 7)])
    lab.apply()
    lab.now_ms += 8 * DAY
    repair = waiting(lab)
    (done,) = lab.compact().tables
    assert done.fold is not None
    repair()
    lab.compact()
    assert [row["id"] for row in lab.rows("student")] == [2]


def test_a_tombstone_goes_though_a_file_is_still_being_written(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [event(1, 1, "c"), event(1, 6, "d")])
    lab.compact()
    lab.land("student", [event(2, 7)]).with_name("empty.parquet").touch()
    lab.now_ms += 8 * DAY
    (done,) = lab.compact().tables
    assert done.fold is not None
    assert ([d.code for d in done.applied.diagnostics], done.fold.purge_before_ms > 0) == (["SS305"], True)


def test_of_two_equal_events_the_one_admitted_later_counts_though_the_clock_was_put_back(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", ("name", TEXT)))
    lab.land("student", [event(1, 1, name="first")])
    lab.apply()
    lab.now_ms -= 1000
    lab.land("student", [event(1, 1, name="second")])
    lab.apply()
    seen = lab.rows("student")
    lab.compact()
    assert [seen, lab.rows("student")] == [[{"id": 1, "name": "second"}]] * 2


def test_a_file_that_was_replaced_by_one_of_the_same_size_is_admitted_and_not_deleted_before(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", ("name", TEXT)))
    path = lab.land("student", [event(1, 1, name="aa")], name="part.parquet")
    lab.compact()
    size, before = path.stat().st_size, path.stat().st_mtime
    lab.land("student", [event(1, 2, name="bb")], name="part.parquet")
    os.utime(path, (before + 5, before + 5))
    lab.now_ms += 2 * HOUR
    lab.compact()
    assert (path.stat().st_size, lab.rows("student")) == (size, [{"id": 1, "name": "bb"}])
    assert lab.plan().tables[0].landed == 0


def test_the_view_of_a_held_table_comes_back(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", ("n", "long")))
    lab.land("student", [event(1, 1, n=7)])
    lab.apply()
    lab.register("student", lab.flat("Student", ("n", {"type": {"type": "array", "items": "long"}})))
    lab.session.sql(f"DROP VIEW {lab.database}.student_view")
    lab.apply()
    assert lab.rows("student") == [{"id": 1, "n": 7}]


def test_a_table_whose_subject_vanished_goes_on_answering_and_is_told_of(lab: Lab) -> None:
    for name in ("student", "teacher"):
        lab.register(name, lab.flat(name.title()))
        lab.land(name, [event(1, 1)])
    assert lab.apply().diagnostics == ()
    lab.registry.delete("student-value")
    done = lab.apply()
    assert [table.target.table for table in done.tables] == ["teacher"]
    assert [f"{d.code} {d.message}" for d in done.diagnostics] == [
        f"SS421 {lab.database}.student is of student-value, which the registry does not have: nothing is done for it"
    ]
    assert lab.rows("student") == [{"id": 1}]


def test_parquet_in_no_hour_is_told_of(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [event(1, 1)], hour="notes")
    (table,) = lab.apply().tables
    (found,) = table.diagnostics
    assert found.code == "SS307"
    assert found.message.startswith("1 Parquet file matches no hour of ")


def test_what_landed_before_increments_was_changed_is_told_of_until_it_is_admitted(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [event(1, 1)])
    lab.apply()
    lab.land("student", [event(2, 2)], hour="2026112001", name="left.parquet")
    lab.settings = {"defaults": {"increments": "landing/{yyyyMMddHH}"}}
    (left,) = lab.plan().tables
    lab.settings = {}
    (back,) = lab.plan().tables
    lab.apply()
    lab.settings = {"defaults": {"increments": "landing/{yyyyMMddHH}"}}
    (admitted,) = lab.plan().tables
    file = "incremental/increment_2026112001/left.parquet"
    told = f"1 Parquet file matches no hour of landing/{{yyyyMMddHH}}, first {file}"
    assert [[d.message for d in table.diagnostics] for table in (left, back, admitted)] == [[told], [], []]


def test_what_lies_beside_the_increments_of_a_new_table_is_told_of_before_it_is_made(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    lab.land("student", [event(1, 1)], name="first.parquet")
    lab.settings = {"defaults": {"increments": "landing/{yyyyMMddHH}"}}
    (table,) = lab.plan().tables
    file = "incremental/increment_2026112000/first.parquet"
    told = f"1 Parquet file matches no hour of landing/{{yyyyMMddHH}}, first {file}"
    assert [f"{d.code} {d.message}" for d in table.diagnostics if d.code != "SS101"] == [f"SS307 {told}"]


def test_a_kept_schema_that_cannot_be_read_stops_its_own_table_only(lab: Lab) -> None:
    for name in ("student", "teacher"):
        lab.register(name, lab.flat(name.title()))
        lab.land(name, [event(1, 1)])
    lab.apply("student")
    (kept,) = (lab.root / "lake" / "student" / "_schemasync" / "schemas").iterdir()
    kept.write_text("{")
    errors = {t.target.table: t.error for t in lab.apply().tables}
    assert (str(kept) in str(errors["student"]), errors["teacher"]) == (True, None)


def test_plan_says_that_a_corrupt_file_holds_the_table(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"))
    path: Path = lab.land("student", [event(1, 1)])
    path.write_bytes(b"no parquet at all")
    plan = lab.plan().tables[0]
    assert (plan.held, "SS301" in codes(lab)) == (True, True)


def test_a_file_that_nobody_published_is_not_folded(lab: Lab) -> None:
    lab.register("student", lab.flat("Student"), key=None)
    lab.land("student", [event(1, 1)])
    lab.compact()
    (data,) = (lab.root / "lake" / "student" / "base").rglob("*.parquet")
    data.with_name("stranger.parquet").write_bytes(data.read_bytes())
    lab.land("student", [event(2, 2)])
    failure = lab.compact().tables[0].failure
    assert "stranger.parquet" in str(failure)
