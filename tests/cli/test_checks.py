"""check on real tables and real views: exit codes, answers, and whether what it foretells comes true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.bench import Answer, Project, event

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])


@pytest.fixture
def school(project: Project) -> Project:
    """A table of two columns with a row in it, and the views that people made of it."""
    project.register("student", NAME, AGE)
    project.land("student", event(1, name="a", age=7))
    project("apply")
    run = project.lab.session.sql
    run(f"USE {project.database}")
    run("CREATE VIEW names AS SELECT id, upper(name) AS n FROM student_view")
    run("CREATE VIEW shout AS SELECT n FROM names")
    run("CREATE VIEW ages AS SELECT id FROM (SELECT * FROM student_view) WHERE age > 3")
    run("USE default")
    return project


def check(project: Project, *columns: tuple[str, Any], more: tuple[str, ...] = ()) -> Answer:
    project.write("next.avsc", json.dumps(project.lab.flat("Row", *columns), indent=1))
    return project("check", "next.avsc", "--subject", "student-value", *more)


def test_the_exit_code_says_whether_it_is_safe(school: Project) -> None:
    added, same = check(school, NAME, AGE, ("zip", ["null", "string"])), check(school, NAME, AGE)
    broken = check(school, AGE)
    held = check(school, ("name", ["null", "int"]), AGE)
    school.write("next.avsc", '{"type": "record"')
    wrong = [
        school("check", "next.avsc", "--subject", "student-value").code,
        school("check", "nope.avsc", "--subject", "student-value").code,
        school("check", "next.avsc").code,
    ]
    assert ([a.code for a in (added, same, broken, held)], wrong) == ([3, 0, 4, 4], [2, 2, 2])


def test_views_that_it_says_break_do_and_the_others_answer(school: Project) -> None:
    document = check(school, AGE, more=("--json",)).json
    foretold = {d["view"].partition(".")[2]: [c["effect"] for c in d["columns"]] for d in document["dependents"]}
    school.register("student", AGE)
    assert [d["code"] for d in school("plan", "--json").json["tables"][0]["diagnostics"]].count("SS501") == 2
    applied = school("apply").code
    answers = {view: school("sql", f"SELECT * FROM {view}").code for view in ("ages", "names", "shout")}
    assert foretold == {"ages": [], "names": ["gone"], "shout": ["gone"]}
    assert (applied, answers) == (0, {"ages": 0, "names": 1, "shout": 1})


def test_the_document_is_the_plans_with_lines_and_readers(school: Project) -> None:
    document = check(school, NAME, AGE, ("zip", ["null", "string"]), more=("--json", "--format", "github")).json
    shown = {k: document[k] for k in ("file", "table", "current_version", "desired_version", "verdict", "changes")}
    assert shown == {
        "file": "next.avsc",
        "table": "student",
        "current_version": 1,
        "desired_version": 2,
        "verdict": "evolve",
        "changes": [{"kind": "add_column", "column": "zip", "from": None, "to": "string"}],
    }
    assert [(d["code"], d["line"]) for d in document["diagnostics"]] == [("SS101", 24)]
    assert sorted(document["cost"]) == ["bytes", "files"]


def test_annotations_name_the_file_as_it_was_given(school: Project) -> None:
    (school.root / "schemas").mkdir()
    school.write("schemas/next.avsc", json.dumps(school.lab.flat("Row", NAME, AGE, ("zip", ["null", "string"]))))
    answer = school("check", "schemas/next.avsc", "--subject", "student-value", "--format", "github")
    lines = answer.out.splitlines()
    assert (answer.code, lines[0]) == (
        3,
        "::notice file=schemas/next.avsc,line=1,title=SS101::column zip was added",
    )
    assert lines[1].startswith("::notice file=schemas/next.avsc,line=1,title=schemasync::")


def test_files_of_keys_and_references_are_given_by_path(school: Project) -> None:
    address = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "string"}]}
    school.write("address.avsc", json.dumps(address))
    school.write("key.avsc", school.lab.registry.schema("student-key", 1).text)
    more = ("--reference", "Address=address.avsc", "--key", "key.avsc")
    found = check(school, NAME, AGE, ("home", ["null", "Address"]), more=("--json", *more)).json
    assert [(c["column"], c["to"]) for c in found["changes"]] == [("home", "struct<zip:string>")]
    assert check(school, NAME, more=("--reference", "address.avsc")).code == 2
