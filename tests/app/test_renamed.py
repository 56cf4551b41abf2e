"""A table whose view and history the configuration calls otherwise: what stands under the old names goes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from schemasync.core.history_table import HISTORY_OF
from schemasync.core.plan import Step
from schemasync.core.properties import SUBJECT
from tests.app.still import Still, avro
from tests.lab import Lab

NAME = ("name", ["null", "string"])
DROPS = {"drop_old_view", "drop_old_history"}


def named(view: str = "{table}_view", history: str = "{table}_history", **more: Any) -> dict[str, Any]:
    return {"defaults": {"names": {"view": view, "history": history}, **more}}


@pytest.fixture
def still(tmp_path: Path) -> Still:
    """Return a table whose view is ``people``."""
    still = Still(tmp_path, **named("people"))
    still.register(avro(NAME))
    still.settle()
    return still


def planned(still: Still) -> list[tuple[str, str]]:
    (table,) = still.plan().tables
    return [(s.kind, s.sql if s.kind in DROPS else "") for s in table.steps if s.kind != "record_history"]


def codes(still: Still) -> list[tuple[str, str]]:
    return [(d.code, d.severity.value) for t in still.plan().tables for d in t.diagnostics]


def kinds(steps: Iterable[Step]) -> list[str]:
    return [step.kind for step in steps]


def test_a_plan_names_the_step_that_drops_the_old_view(still: Still) -> None:
    before = planned(still)
    still.settings = named()
    assert (before, planned(still), codes(still)) == (
        [],
        [("replace_view", ""), ("drop_old_view", "DROP VIEW IF EXISTS `lake`.`people`"), ("set_version", "")],
        [],
    )


def test_a_view_that_is_not_ours_keeps_its_name_and_is_told(still: Still) -> None:
    still.view("people", "SELECT 1")
    still.settings = named("pupils")
    assert (planned(still), codes(still)) == ([("replace_view", ""), ("set_version", "")], [("SS201", "warning")])


def test_a_view_of_another_table_of_ours_keeps_its_name(still: Still) -> None:
    still.view("people", "SELECT 1", **{SUBJECT: "people-value"})
    still.settings = named("pupils")
    assert (planned(still), codes(still)) == ([("replace_view", ""), ("set_version", "")], [])


def test_a_default_name_needs_no_property_and_is_known_all_the_same(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register(avro(NAME))
    still.settle()
    table = still.metastore.table("lake", "student")
    assert table is not None
    assert not {"schemasync.view", "schemasync.history"} & table.properties.keys()
    still.settings = named("people")
    assert [kind for kind, _ in planned(still)] == ["replace_view", "drop_old_view", "set_version"]


def test_a_plan_names_the_step_that_drops_the_old_history(still: Still) -> None:
    still.put("student_history", columns=(), properties={HISTORY_OF: "student"})
    still.settings = named("people", "past")
    last = ("set_version", "")
    assert planned(still) == [("drop_old_history", "DROP TABLE IF EXISTS `lake`.`student_history`"), last]
    still.put("student_history", columns=(), properties={HISTORY_OF: "pupil"})
    assert planned(still) == [last]


def test_a_held_table_answers_under_its_new_name_and_not_under_the_old_one(still: Still) -> None:
    still.register(avro(NAME, ("age", ["null", "int"])))
    still.settings = named("pupils", policies={"add": "hold"})
    assert [kind for kind, _ in planned(still)] == ["restore_view", "drop_old_view"]


@pytest.mark.spark
def test_what_stands_under_the_old_names_is_dropped_and_all_else_goes_on(lab: Lab) -> None:
    lab.settings = named("people", "{table}_past")
    lab.register("student", lab.flat("Student", NAME))
    lab.land("student", [{"id": 1, "name": "a", "op": "c", "ts_ms": 1}])
    lab.compact()
    lab.workspace.sql.execute(f"ALTER VIEW `{lab.database}`.people SET TBLPROPERTIES ('mine' = 'yes')")
    for settings, view, history in ((named(), "student_view", "student_history"), (named("people"), "people", None)):
        lab.settings = settings
        (done,) = lab.apply().tables
        drops = ["drop_old_view", *(["drop_old_history"] if history else [])]
        expected = ["replace_view", *drops, "set_version", *(["record_history"] if history else [])]
        assert (done.error, kinds(done.done)) == (None, expected)
        there = lab.workspace.metastore.tables(
            lab.database, ["people", "student_past", "student_view", "student_history"]
        )
        assert sorted(there) == sorted([view, "student_history"])
        assert (there[view].properties["mine"], lab.plan().tables[0].steps) == ("yes", ())
        rows = lab.workspace.sql.query(f"SELECT id, name FROM `{lab.database}`.{view}").rows
        assert [tuple(row) for row in rows] == [(1, "a")]


@pytest.mark.spark
def test_a_held_tables_view_is_under_its_new_name_alone(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.compact()
    lab.register("student", lab.flat("Student", NAME, ("age", ["null", "int"])))
    lab.settings = named("people", policies={"add": "hold"})
    (done,) = lab.apply().tables
    assert (done.error, kinds(done.done)) == (None, ["restore_view", "drop_old_view"])
    assert lab.plan().tables[0].steps == ()
    lab.settings = named("people")
    (lifted,) = lab.apply().tables
    assert kinds(lifted.done)[-2:] == ["set_version", "record_history"]
    assert lab.workspace.metastore.names(lab.database, "student_view|people") == ("people",)
