"""Advice that can be followed: what is said of a mistake of the configuration names what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from schemasync.app.applying import apply
from schemasync.app.inspecting import map_tables, select
from schemasync.app.kept_schemas import keep_schema
from schemasync.app.planning import plan
from schemasync.app.status import status
from schemasync.cli.outcomes import Exit, apply_exit, plan_exit, status_exit
from schemasync.cli.rendering import apply_text, plan_text, status_text
from schemasync.core.diagnostics import Severity
from schemasync.core.properties import SUBJECT
from schemasync.errors import EngineError, UsageError
from tests.app.still import Still, avro


def settled(root: Path, *texts: str) -> Still:
    still = Still(root)
    still.register(*(texts or (avro(),)))
    still.settle()
    return still


def head(still: Still) -> str:
    first = next(iter(plan_text(still.plan())))
    assert isinstance(first, Text)
    return first.plain


@pytest.mark.parametrize(
    ("setting", "value"), [("sequence_by", ["revision"]), ("envelope", "debezium")], ids=["order", "envelope"]
)
@pytest.mark.parametrize("there", [False, True])
def test_a_setting_that_does_not_fit_is_named_with_its_own_advice(
    tmp_path: Path, setting: str, value: Any, *, there: bool
) -> None:
    still = settled(tmp_path) if there else Still(tmp_path)
    if not there:
        still.register(avro())
    still.settings["tables"] = [{"subject": "student-value", setting: value}]
    (table,) = still.plan().tables
    finding = next(d for d in table.diagnostics if d.code == "SS406")
    assert finding.fix.startswith(f"Correct `{setting}:` of this table, or leave it out")
    assert "Correct" not in finding.message
    # The registry still has the subject.
    assert "gone" not in head(still)


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [("sequence_by", ["ts_ms", "id"], "SS123"), ("insert_only", True, "SS122")],
    ids=["order", "insert-only"],
)
def test_a_setting_that_holds_a_table_which_is_there_is_named(
    tmp_path: Path, setting: str, value: Any, code: str
) -> None:
    still = settled(tmp_path)
    still.settings["tables"] = [{"subject": "student-value", setting: value}]
    (table,) = still.plan().tables
    assert [(d.code, f"{setting}:" in d.fix) for d in table.diagnostics] == [(code, True)]


def test_where_a_table_got_another_name_the_advice_is_to_give_it_back(tmp_path: Path) -> None:
    still = settled(tmp_path)
    still.settings["tables"] = [{"subject": "student-value", "table": "pupil"}]
    manifest = tmp_path / "lake/student/_schemasync/generations/000000-0001.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    (table,) = still.plan().tables
    assert [(d.code, d.fix.partition(":")[0]) for d in table.diagnostics] == [("SS206", "Where table")]


@pytest.mark.parametrize("properties", [{}, {SUBJECT: "pupil-value"}], ids=["somebody else's", "another table's"])
def test_a_view_that_stands_where_the_next_definition_is_made_is_told_of_by_a_plan(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    still = settled(tmp_path)
    still.view("student_view__next", "SELECT 'his'", **properties)
    (table,) = still.plan().tables
    message = "lake.student_view__next stands where the view's next definition is made"
    assert (table.held, [(d.code, d.message) for d in table.diagnostics]) == (True, [("SS201", message)])
    still.view("student_view__next", "SELECT 1", **{SUBJECT: "student-value"})
    (table,) = still.plan().tables
    assert (table.held, table.diagnostics) == (False, ())


def test_a_new_table_takes_no_location_in_which_another_one_waits_for_its_first_file(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register(avro())
    still.register(avro(), topic="pupil")
    still.settings["tables"] = [{"subject": "student-value"}]
    (target,) = map_tables(still.workspace).targets
    keep_schema(still.workspace.storage(target).lake, still.registry.schema("pupil-value", 1), applied=False)
    (table,) = still.plan().tables
    said = [(d.code, d.message.replace(str(tmp_path), ""), d.fix.partition(" (")[0]) for d in table.diagnostics]
    message = "file:/lake/student, where location: of lake.student says, has data of pupil-value"
    assert (table.held, said) == (True, [("SS219", message, "Give each table a location of its own")])


def test_a_subject_that_is_gone_is_called_so(tmp_path: Path) -> None:
    still = settled(tmp_path)
    still.registry.delete("student-value")
    still.settings["tables"] = [{"subject": "student-value"}]
    assert head(still) == "lake.student  hold  version 1 -> gone  student-value"


@pytest.mark.parametrize("name", ["schemasync.subject", "schemasync.version"])
def test_a_table_whose_version_cannot_be_read_is_not_called_new(tmp_path: Path, name: str) -> None:
    still = settled(tmp_path)
    table = still.metastore.table("lake", "student")
    assert table is not None
    properties = {k: v for k, v in table.properties.items() if k != name}
    still.put("student", columns=table.columns, partition_keys=table.partition_keys, properties=properties)
    assert head(still) == "lake.student  hold  no readable version, newest 1  student-value"
    (shown,) = status(still.workspace).tables
    assert "which version the table has cannot be read" in shown.drift
    assert [sentence for sentence in shown.drift if "no table shows it" in sentence] == []


def test_a_table_that_is_part_of_a_problem_is_refused_with_that(tmp_path: Path) -> None:
    still = Still(tmp_path, defaults={"names": {"view": "{table}"}})
    still.register(avro())
    mapping = map_tables(still.workspace)
    for name in ("student", "lake.student", "student-value"):
        with pytest.raises(UsageError, match=r"lake\.student is claimed 2 times"):
            select(mapping, [name])
    with pytest.raises(UsageError, match="there is no table teacher"):
        select(mapping, ["teacher"])


@pytest.mark.parametrize(
    ("place", "answers", "goes_on"),
    [("lake/student", True, True), ("lake/pupils", True, False), ("lake/student", False, False)],
)
def test_a_table_that_is_there_goes_on_where_a_new_subject_claims_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, answers: bool, goes_on: bool
) -> None:
    still = settled(tmp_path)
    still.register(avro(), topic="Student")
    still.settings["tables"] = [
        {"subject": "student-value", "location": f"file://{tmp_path}/{place}"},
        {"subject": "Student-value", "location": f"file://{tmp_path}/lake/new"},
    ]

    def fails(*_: object) -> None:
        raise EngineError("the metastore does not answer")

    if not answers:
        monkeypatch.setattr(still.metastore, "tables", fails)
    mapping = map_tables(still.workspace)
    assert ([t.subject for t in mapping.targets], len(mapping.problems)) == (["student-value"] if goes_on else [], 1)


def told(still: Still, *names: str) -> list[list[str]]:
    """Return what plan, status and apply tell beside what they tell of each table."""
    found = (plan(still.workspace, names), status(still.workspace, names), apply(still.workspace, names))
    return [[f"{d.code} {d.message}" for d in one.diagnostics] for one in found]


GONE = ["SS421 lake.student is of student-value, which the registry does not have: nothing is done for it"]


@pytest.mark.parametrize("tables", [[], [{"subject": ".*"}]], ids=["no entries", "an expression"])
def test_a_table_whose_subject_vanished_is_told_of_and_changes_no_exit_code(
    tmp_path: Path, tables: list[dict[str, Any]]
) -> None:
    still = settled(tmp_path)
    still.settings["tables"] = tables
    assert told(still) == [[], [], []]
    still.registry.delete("student-value")
    assert told(still) == [GONE] * 3
    looked = plan(still.workspace), status(still.workspace), apply(still.workspace)
    assert [plan_exit(looked[0]), status_exit(looked[1]), apply_exit(looked[2])] == [Exit.DONE] * 3
    texts = plan_text(looked[0]), status_text(looked[1]), apply_text(looked[2])
    assert [GONE[0].partition(" ")[2] in "\n".join(map(str, text)) for text in texts] == [True] * 3
    for one in looked:
        (shown,) = one.to_json()["diagnostics"]
        assert (shown["code"], shown["severity"]) == ("SS421", "warning")


def test_a_table_whose_subject_is_named_exactly_is_told_of_once(tmp_path: Path) -> None:
    still = settled(tmp_path)
    still.registry.delete("student-value")
    still.settings["tables"] = [{"subject": "student-value"}]
    (table,) = still.plan().tables
    assert [(d.code, d.severity) for d in table.diagnostics] == [("SS405", Severity.ERROR)]
    assert still.plan().diagnostics == ()


def test_tables_of_others_are_not_told_of(tmp_path: Path) -> None:
    """Of another registry in the same database, with another name or elsewhere, and of nobody."""
    still = settled(tmp_path)
    still.settings["tables"] = [{"subject": r"shop\..*", "table": "{topic}_2"}, {"subject": "x-value", "database": "b"}]
    ours = still.metastore.table("lake", "student")
    assert ours is not None

    def put(topic: str, name: str, *, location: str = "", view: bool = True) -> None:
        properties = {**ours.properties, SUBJECT: f"{topic}-value"}
        still.put(name, properties=properties, location=location or f"file:{tmp_path}/lake/{topic}")
        if view:
            still.put(f"{name}_view", properties={SUBJECT: f"{topic}-value"}, kind="VIRTUAL_VIEW")

    put("bank.other", "other")
    put("shop.old", "shop_old")
    put("shop.moved", "shop_moved_2", location="s3://theirs/shop.moved")
    put("shop.bare", "shop_bare_2", view=False)
    still.put("foreign", properties={})
    still.put("shop_lost_2", properties={SUBJECT: "shop.lost-value"}, kind="VIRTUAL_VIEW")
    assert still.plan().diagnostics == ()
    put("shop.gone", "shop_gone_2")
    assert [d.message.partition(",")[0] for d in still.plan().diagnostics] == ["lake.shop_gone_2 is of shop.gone-value"]


def test_nothing_is_told_where_tables_are_named_or_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = settled(tmp_path)
    still.register(avro(), topic="teacher")
    still.settle()
    still.registry.delete("student-value")
    assert plan(still.workspace, ["teacher"]).diagnostics == ()
    assert [d.code for d in still.plan().diagnostics] == ["SS421"]

    def refuse(*_: Any) -> None:
        raise EngineError("the metastore does not list its tables")

    monkeypatch.setattr(still.metastore, "names", refuse)
    assert still.plan().diagnostics == ()
