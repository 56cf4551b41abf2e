"""A table whose view and history the configuration calls otherwise: what stands under the old names goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.app.applying import Applied, apply_table
from schemasync.app.inspecting import look, map_tables
from schemasync.app.retiring import retire_all_the_same
from schemasync.app.states import Draft, publish, read_draft
from schemasync.app.view_texts import view_select
from schemasync.core.history_table import HISTORY_OF
from schemasync.core.manifest import Contents, Manifest, Superseded
from schemasync.core.plan import Step
from schemasync.core.ports import SqlEngine
from schemasync.core.properties import SUBJECT
from schemasync.errors import StorageError
from tests.app.still import Still, avro
from tests.core.builders import admitted
from tests.lab import Lab

NAME = ("name", ["null", "string"])
DROPS = {"drop_old_view", "drop_old_history"}


def named(view: str = "{table}_view", history: str = "{table}_history", **more: Any) -> dict[str, Any]:
    return {"defaults": {"names": {"view": view, "history": history}, **more}}


def with_metadata(settings: dict[str, Any]) -> dict[str, Any]:
    return {"defaults": settings["defaults"] | {"view": {"metadata": True}}}


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


def land(still: Still, *keys: int) -> None:
    directory = still.root / "lake/student/incremental/increment_2026112000"
    directory.mkdir(parents=True, exist_ok=True)
    rows = [{"id": key, "name": "a", "op": "c", "ts_ms": 1} for key in keys]
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string()), ("ts_ms", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), directory / f"{keys[0]}.parquet")


def watched(still: Still, *, statements: list[str] | None = None) -> Applied:
    """Do what `watch` does where ``watch.apply`` lets nothing through; what its SQL would be is noted."""
    (target,) = map_tables(still.workspace).targets
    sql = cast(SqlEngine, SimpleNamespace(execute=([] if statements is None else statements).append))
    applied = apply_table(replace(still.workspace, sql=sql), target, allowed=lambda _: False)
    assert applied.error is None
    return applied


def manifest(still: Still) -> Manifest:
    (target,) = map_tables(still.workspace).targets
    found = look(still.workspace, target).manifest
    assert found is not None
    return found


def shown(still: Still, contents: Contents) -> str:
    """Return the text of a view that shows this, without columns of ours."""
    (target,) = map_tables(still.workspace).targets
    shape = look(still.workspace, target).decision.current
    assert shape is not None
    return view_select(still.workspace, replace(target, metadata=False), shape, contents)


def texts(still: Still) -> dict[str, str]:
    return {view.name: view.view_text for view in still.metastore.views()}


def test_a_view_keeps_its_name_and_shows_what_landed_until_another_name_is_let_through(still: Still) -> None:
    still.settings = named()
    before = planned(still)
    for key in (1, 2):
        land(still, key)
        watched(still)
        assert len(manifest(still).admitted) == key
        assert texts(still) == {"people": shown(still, manifest(still).contents)}
    assert planned(still) == before


def test_a_view_that_has_its_new_name_already_is_kept_in_step_under_both(still: Still) -> None:
    """A run that was let through may have been killed before it dropped the old one."""
    people = still.metastore.table("lake", "people")
    assert people is not None
    still.metastore.put(replace(people, name="student_view"))
    still.settings = named()
    land(still, 1)
    watched(still)
    text = shown(still, manifest(still).contents)
    assert texts(still) == {"people": text, "student_view": text}


def test_a_view_whose_old_name_is_somebody_elses_by_now_is_made_under_its_new_name(still: Still) -> None:
    still.view("people", "SELECT 1")
    still.settings = named()
    land(still, 1)
    statements: list[str] = []
    watched(still, statements=statements)
    assert [s.split(" (")[0] for s in statements if "VIEW" in s] == ["CREATE VIEW `lake`.`student_view`"]


def test_what_a_killed_run_published_is_shown_under_the_old_name(still: Still) -> None:
    (target,) = map_tables(still.workspace).targets
    properties = look(still.workspace, target).decision.properties
    assert properties is not None
    draft = read_draft(still.workspace, target, properties)
    publish(still.workspace, target, draft, admitted(draft.manifest))
    still.settings = named()
    assert texts(still)["people"] != shown(still, manifest(still).contents)
    watched(still)
    assert texts(still) == {"people": shown(still, manifest(still).contents)}


@pytest.mark.parametrize(
    ("in_step", "cleaned"),
    [
        ({"people": True}, True),
        ({"people": True, "student_view": True}, True),
        ({"people": False, "student_view": True}, False),
    ],
)
def test_a_storage_that_refuses_has_what_is_due_cleaned_up_where_each_name_shows_the_state_in_force(
    still: Still, in_step: dict[str, bool], *, cleaned: bool
) -> None:
    land(still, 1)
    watched(still)
    people = still.metastore.table("lake", "people")
    assert people is not None
    for name, follows in in_step.items():
        text = people.query if follows else "SELECT 1"
        still.metastore.put(replace(people, name=name, view_text=text, expanded_text=text))
    still.settings = named()
    (target,) = map_tables(still.workspace).targets
    found = look(still.workspace, target)
    assert found.decision.properties is not None
    gone = Superseded(segment="base_s0", location="base/g=000000/0000/s=00000000", since_ms=0, registered=True)
    state = manifest(still).model_copy(update={"superseded": (gone,)})
    publish(still.workspace, target, Draft.of(found.decision.properties, manifest(still)).with_(state))
    later = replace(still.workspace, now_ms=lambda: 365 * 86_400_000)
    retire_all_the_same(later, target, StorageError("the disk is full"))
    assert (manifest(still).superseded == ()) is cleaned


def test_columns_of_ours_do_not_show_before_that_is_let_through(still: Still) -> None:
    still.settings = with_metadata(named("people"))
    before, fingerprint = planned(still), still.plan().fingerprint
    assert before == [("replace_view", "")]
    land(still, 1)
    statements: list[str] = []
    watched(still, statements=statements)
    assert (texts(still), [s for s in statements if "VIEW" in s]) == (
        {"people": shown(still, manifest(still).contents)},
        [],
    )
    # What a person has looked at and is about to apply is still what apply would do.
    assert (planned(still), still.plan().fingerprint) == (before, fingerprint)
    still.settings = with_metadata(named())
    land(still, 2)
    watched(still)
    assert texts(still) == {"people": shown(still, manifest(still).contents)}


@pytest.mark.parametrize("policy", ["evolve", "hold"])
def test_a_history_goes_on_under_its_old_name_until_that_is_dropped(still: Still, policy: str) -> None:
    still.register(avro(NAME, ("age", ["null", "int"])))
    still.put("student_history", columns=(), properties={HISTORY_OF: "student"})
    still.settings = named("people", "past", policies={"add": policy})
    statements: list[str] = []
    watched(still, statements=statements)
    assert [s.split(" SET")[0] for s in statements] == ["ALTER TABLE `lake`.`student_history`"] * 2


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
