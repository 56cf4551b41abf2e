"""What a schema file would do, were it the next version; nothing is registered and nothing moves."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.checking import CheckResult, check, read_proposal
from schemasync.app.inspecting import map_tables
from schemasync.app.kept_schemas import keep_schema
from schemasync.core.policy import Verdict
from schemasync.core.ports import HiveColumn, HiveTable
from schemasync.errors import EngineError, UsageError
from tests.app.still import Still, avro, key

NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])
SPARK = {"spark.sql.create.version": "4.1.4"}


def checked(
    still: Still,
    text: str,
    subject: str = "student-value",
    *,
    key: Path | None = None,
    references: Mapping[str, Path] | None = None,
) -> CheckResult:
    file = still.root / "proposed.avsc"
    file.write_text(text)
    return check(still.workspace, read_proposal(file, subject, key=key, references=references or {}))


def told(found: CheckResult) -> list[tuple[str, int]]:
    return [(f.diagnostic.code, f.line) for f in found.findings]


def line(text: str, field: str) -> int:
    return text[: text.index(f'"{field}"')].count("\n") + 1


def kinds(found: CheckResult) -> list[str]:
    return [f"{c['kind']} {c['column']}" for c in found.to_json()["changes"]]


def test_a_change_is_what_plan_would_say_of_it(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    text = avro(NAME, AGE)
    found = checked(still, text)
    still.register(text)
    (planned,) = still.plan().to_json()["tables"]
    said = found.to_json()
    assert (said.pop("dependents"), said.pop("registered")) == ([], None)
    assert [d.pop("line") for d in said["diagnostics"]] == [line(text, "age")]
    del planned["fingerprint"]  # a proposal is nothing that apply could do
    for document in (said, planned):
        del document["steps"]  # a proposal has no schema id yet
    assert said == planned
    assert (found.plan.pending, found.refused, found.registered) == (True, False, None)


def test_nothing_is_registered_and_nothing_is_written(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    tables = [still.metastore.table("lake", name) for name in ("student", "student_view")]
    checked(still, avro(AGE))
    assert still.registry.versions("student-value") == (1,)
    assert [still.metastore.table("lake", name) for name in ("student", "student_view")] == tables
    assert [path.name for path in still.root.rglob("*")] == ["proposed.avsc"]


def test_the_newest_version_changes_nothing_whatever_the_table_still_has_to_follow(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    still.register(avro(NAME, AGE))
    found = checked(still, json.dumps(json.loads(avro(NAME, AGE))))
    assert (found.plan.verdict, found.registered, found.refused, found.plan.pending) == (
        Verdict.NONE,
        2,
        False,
        False,
    )
    assert (found.plan.current_version, found.plan.desired_version, found.findings) == (1, 2, ())


def test_an_older_version_stays_what_it_is_but_for_a_directory_of_files(tmp_path: Path) -> None:
    """A registry makes no new version of a schema that it has, and what is asked is whether one would be safe."""
    still = Still(tmp_path, registry={"url": "http://registry:8081"})
    still.register(avro(NAME), avro(NAME, AGE))
    still.settle()
    found = checked(still, avro(NAME))
    assert (found.registered, found.plan.verdict, found.plan.desired_version, found.findings) == (
        1,
        Verdict.NONE,
        2,
        (),
    )
    still.settings = {}
    again = checked(still, avro(NAME))
    assert (again.registered, again.plan.desired_version, kinds(again)) == (None, 3, ["drop_column age"])


def test_a_registry_gives_no_number_again_that_a_deleted_version_had_but_a_directory_does(tmp_path: Path) -> None:
    still = Still(tmp_path, registry={"url": "http://registry:8081"})
    still.register(avro(NAME), avro(NAME, AGE))
    still.settle()
    workspace = still.workspace
    (target,) = map_tables(workspace).targets
    for version in (1, 2):
        keep_schema(workspace.storage(target).lake, workspace.registry.schema("student-value", version), applied=True)
    still.registry.delete("student-value", 2)
    found = checked(still, avro(NAME, ("born", ["null", "int"])))
    assert (found.plan.verdict, found.plan.desired_version, kinds(found)) == (
        Verdict.EVOLVE,
        3,
        ["drop_column age", "add_column born"],
    )
    still.settings = {}
    assert [code for code, _ in told(checked(still, avro(NAME, ("born", ["null", "int"]))))] == ["SS404"]


def test_a_proposal_is_compared_with_the_table_not_with_versions_that_it_never_had(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    still.register(avro(("name", ["null", "int"])))
    found = checked(still, avro(NAME, AGE))
    assert (found.plan.verdict, found.plan.current_version, found.plan.desired_version) == (Verdict.EVOLVE, 1, 3)


def test_a_subject_that_is_not_there_yet_makes_a_new_table(still: Still) -> None:
    found = checked(still, avro(NAME), subject="teacher-value")
    assert (found.plan.verdict, found.plan.target.table, kinds(found)) == (
        Verdict.EVOLVE,
        "teacher",
        ["add_column id", "add_column name"],
    )
    assert told(found) == [("SS401", 1)]


def test_a_key_file_is_the_keys_next_version(still: Still) -> None:
    file = still.root / "key.avsc"
    file.write_text(key("id"))
    found = checked(still, avro(NAME), subject="teacher-value", key=file)
    assert told(found) == []
    still.register(avro(NAME))
    still.settle()
    file.write_text(key("id", "name"))
    changed = checked(still, avro(NAME), key=file)
    assert (changed.plan.verdict, kinds(changed), told(changed)) == (
        Verdict.HOLD,
        ["change_key None"],
        [("SS122", 1)],
    )


def test_a_change_that_may_lose_values_points_at_its_field(still: Still) -> None:
    still.register(avro(NAME, AGE))
    still.settle()
    text = avro(("age", ["null", {"type": "array", "items": "int"}]), NAME)
    found = checked(still, text)
    assert (found.refused, ("SS120", line(text, "age")) in told(found)) == (True, True)


def test_a_schema_that_can_be_no_table_is_refused_with_its_field(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    twice = avro(NAME, ("Name", "string"))
    found = checked(still, twice)
    assert (found.plan.verdict, found.refused, [code for code, _ in told(found)]) == (Verdict.HOLD, True, ["SS410"])
    recursive = avro(("parent", ["null", "Student"]))
    assert told(checked(still, recursive)) == [("SS406", line(recursive, "parent"))]


def test_json_that_is_no_schema_is_refused_also_for_a_new_subject(still: Still) -> None:
    found = checked(still, '{"no": "schema"}', subject="teacher-value")
    assert (found.plan.verdict, [code for code, _ in told(found)]) == (Verdict.HOLD, ["SS406"])


def test_references_are_taken_from_files_and_from_the_newest_version(still: Still) -> None:
    still.registry.register("address", record("Address", "zip"))
    still.register(avro(("home", "Address")), references=[("Address", "address", 1)])
    still.settle()
    assert kinds(checked(still, avro(("home", "Address"), AGE))) == ["add_column age"]
    file = still.root / "address.avsc"
    file.write_text(record("Address", "zip", "town"))
    assert kinds(checked(still, avro(("home", "Address")), references={"Address": file})) == ["add_field home.town"]


def record(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": f, "type": "string"} for f in fields]})


@pytest.mark.parametrize(
    ("settings", "subject", "words"),
    [
        ({}, "student", "no table is configured for the subject student. .* The subjects here: student-value"),
        ({"tables": [{"subject": "x-value"}]}, "y-value", "add it under tables:. The subjects here: none"),
        (
            {"tables": [{"subject": "student-value", "table": "t"}, {"subject": "pupil-value", "table": "t"}]},
            "pupil-value",
            "lake.t is claimed 2 times",
        ),
    ],
)
def test_a_subject_without_a_table_is_wrong_usage(
    tmp_path: Path, settings: Mapping[str, Any], subject: str, words: str
) -> None:
    still = Still(tmp_path, **settings)
    still.register(avro(NAME))
    with pytest.raises(UsageError, match=words):
        checked(still, avro(NAME), subject=subject)


def test_views_that_use_what_goes_away_are_told_and_refuse_the_change(still: Still) -> None:
    still.register(avro(NAME, AGE))
    still.settle()
    still.view("report", "SELECT id, name FROM student_view", **SPARK)
    still.view("board", "SELECT r.id FROM lake.report r", database="shop")
    still.view("ages", "SELECT age FROM lake.student_view", database="shop")
    still.view("raw", "SELECT id, name FROM lake.student")
    found = checked(still, avro(AGE))
    assert [d.to_json() for d in found.dependents] == [
        dependent("lake.raw", reads="lake.student", column=("lake.student", "name", "stale")),
        dependent("lake.report", reads="lake.student_view", column=("lake.student_view", "name", "gone")),
        dependent("shop.ages", reads="lake.student_view"),
        dependent("shop.board", through="lake.report", column=("lake.student_view", "name", "gone")),
    ]
    assert told(found) == [("SS104", 1), ("SS503", 1), ("SS501", 1), ("SS501", 1)]
    assert (found.plan.verdict, found.broken, found.refused) == (Verdict.EVOLVE, ("lake.report", "shop.board"), True)


def dependent(
    view: str, *, reads: str = "", through: str = "", column: tuple[str, str, str] | None = None
) -> dict[str, Any]:
    columns = [dict(zip(("relation", "column", "effect"), column, strict=True))] if column else []
    return {
        "view": view,
        "reads": [reads] if reads else [],
        "through": [through] if through else [],
        "columns": columns,
        "unclear": None,
    }


def test_views_that_nothing_happens_to_are_listed(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    still.view("report", "SELECT * FROM student_view", **SPARK)
    found = checked(still, avro(NAME, AGE))
    assert ([d.view for d in found.dependents], [code for code, _ in told(found)]) == (["lake.report"], ["SS101"])


def test_a_star_of_trino_refuses_a_column_that_comes(still: Still) -> None:
    """Trino answers VIEW_IS_STALE to whoever queries it then."""
    still.register(avro(NAME))
    still.settle()
    text = b64encode(json.dumps({"originalSql": "SELECT * FROM student_view", "schema": "lake"}).encode()).decode()
    still.view("report", f"/* Presto View: {text} */")
    found = checked(still, avro(NAME, AGE))
    assert [code for code, _ in told(found)] == ["SS101", "SS505"]
    assert (found.broken, found.refused) == (("lake.report",), True)


def test_a_view_that_cannot_be_understood_is_told(still: Still) -> None:
    still.register(avro(NAME))
    still.settle()
    still.view("report", "SELEC * FROM student_view", **SPARK)
    found = checked(still, avro(NAME, AGE))
    assert ([code for code, _ in told(found)], found.refused) == (["SS101", "SS504"], False)


def test_a_copy_of_the_view_under_another_name_is_told_of_and_what_has_our_names_is_not(still: Still) -> None:
    still.register(avro(NAME, AGE))
    still.settle()
    view = still.metastore.table("lake", "student_view")
    assert view is not None
    for name in ("mine", "student_view__next"):
        still.metastore.put(replace(view, name=name))
    assert [d.to_json() for d in checked(still, avro(NAME)).dependents] == [
        dependent("lake.mine", reads="lake.student", column=("lake.student", "age", "stale"))
    ]


def test_a_metastore_that_does_not_list_its_views_is_told(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise EngineError("the metastore refused the call")

    still.register(avro(NAME))
    still.settle()
    monkeypatch.setattr(still.metastore, "views", refused)
    found = checked(still, avro(NAME, AGE))
    assert [f.diagnostic.message for f in found.findings if f.diagnostic.code == "SS504"] == [
        "which views read lake.student cannot be told: the metastore refused the call"
    ]


def test_plan_tells_of_views_that_a_change_reaches_and_lists_them_once(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("student", "pupil", "course"):
        still.register(avro(NAME), topic=topic)
    still.settle()
    still.view("report", "SELECT name FROM pupil_view", **SPARK)
    for topic in ("student", "pupil"):
        still.register(avro(), topic=topic)
    still.register(avro(NAME, AGE), topic="course")
    listings: list[int] = []
    views = still.metastore.views()

    def listed() -> tuple[HiveTable, ...]:
        listings.append(len(views))
        return views

    monkeypatch.setattr(still.metastore, "views", listed)
    codes = {t.target.table: [d.code for d in t.diagnostics] for t in still.plan().tables}
    assert codes == {"course": ["SS101"], "pupil": ["SS104", "SS501"], "student": ["SS104"]}
    assert listings == [len(views)]


def test_plan_tells_of_views_that_read_the_dedup_view_by_its_old_name_and_a_check_of_columns_there(
    still: Still,
) -> None:
    still.register(avro(NAME))
    still.settle()
    still.view("report", "SELECT count(*) FROM student_view", **SPARK)
    still.view("names", "SELECT name FROM student_view", **SPARK)
    still.settings = {"defaults": {"names": {"view": "people"}}}
    assert [d.message for t in still.plan().tables for d in t.diagnostics] == [
        f"lake.{name} reads lake.student_view, which is called people then" for name in ("names", "report")
    ]
    found = checked(still, avro())
    assert [(d.view, len(d.touched)) for d in found.dependents] == [("lake.names", 1), ("lake.report", 0)]


@pytest.mark.parametrize(("adopt", "told"), [(True, ["SS501"]), (False, ["SS201"])])
def test_plan_tells_of_views_that_break_with_a_table_that_is_taken_over(
    still: Still, *, adopt: bool, told: list[str]
) -> None:
    still.register(avro(NAME))
    still.put("student", columns=(HiveColumn(name="fax", type="string"),), properties={})
    still.view("report", "SELECT fax FROM student", **SPARK)
    still.settings = {"tables": [{"subject": "student-value", "adopt": adopt}]}
    assert [d.code for t in still.plan().tables for d in t.diagnostics] == told


def test_plan_lists_no_views_where_no_column_changes_for_them(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    still.register(avro(NAME))
    still.settle()
    still.register(avro(("name", "string")))
    monkeypatch.setattr(still.metastore, "views", None)
    assert [d.code for t in still.plan().tables for d in t.diagnostics] == ["SS110"]
