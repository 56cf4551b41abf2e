"""`schemasync history`: the past as text and as JSON, and its exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from rich.text import Text

from schemasync.app.history import TableHistory
from schemasync.cli.history_text import history_text
from schemasync.core.diagnostics import diagnose
from schemasync.core.timeline import Timeline, timeline
from tests.cli.bench import Project, event
from tests.core.builders import BIGINT, INT, admitted, col, fresh, history, rec, target
from tests.core.test_applied import properties, record

NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])


def text_of(lines: Iterable[str | Text]) -> list[str]:
    return [line if isinstance(line, str) else line.plain for line in lines]


def test_a_past_reads_as_a_timeline_then_columns_then_generations() -> None:
    found = history(
        (col("id"), col("old"), col("n", INT), col("at", rec(x=INT))),
        (col("id"), col("new", aliases=("old",)), col("n", BIGINT), col("at", rec(x=INT))),
        (col("id"), col("new", aliases=("old",)), col("at", rec(x=INT, y=INT))),
        (col("id"), col("new", aliases=("old",)), col("at", rec(x=INT, y=INT)), col("n")),
    )
    past = timeline(found, properties(3), [record(3, 1)])
    generations = (admitted(fresh(), now_ms=1_790_000_000_000),)
    shown = history_text(
        TableHistory(
            target=target(), version=3, past=past, generations=generations, diagnostics=(diagnose("SS405", "gone"),)
        )
    )
    assert text_of(shown) == [
        "lake.student  version 3  shop.student-value",
        "  version 1  applied, nobody recorded when",
        "    + add column id  int",
        "    + add column old  int",
        "    + add column n  int",
        "    + add column at  struct<x:int>",
        "  version 2  applied with version 3 at 1970-01-01T00:00:03.000Z (evolve)",
        "    ~ rename column new  old -> new  (in old)",
        '    ~ change aliases new  [] -> ["old"]  (in old)',
        "    ~ widen column n  int -> bigint  (in n__2)",
        "  version 3  applied at 1970-01-01T00:00:03.000Z (evolve)",
        "    - drop column n  bigint  (in n__2)",
        "    + add field at.y  struct<x:int> -> struct<x:int,y:int>  (in at__2)",
        "  version 4  not applied",
        "    + add column n  int",
        "  columns",
        "    id          int                  brought by 1",
        "    new <- old  int                  brought by 1; changed by 2                in old",
        "    n           bigint               brought by 1; changed by 2; retired by 3  in n, then n__2",
        "    at          struct<x:int,y:int>  brought by 1; changed by 3                in at, then at__2",
        "    n           int                  brought by 4",
        "  generations",
        "    000000-0001  2026-09-21T14:13:20.000Z  1 row  1 segment  schema version 1",
        "  SS405 error  gone",
        "      fix: Check the subject's name and this user's rights. A table that is there stays as it is.",
    ]


def test_a_table_that_is_not_there_and_has_no_versions_says_so() -> None:
    shown = history_text(TableHistory(target=target(), version=None, past=Timeline()))
    assert text_of(shown) == ["lake.student  no table yet  shop.student-value"]


@pytest.mark.spark
def test_the_json_of_history_has_the_promised_shape(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    project("compact")
    project.register("student", AGE)
    document = project("history", "student", "--json").json
    (applied, waiting), (generation,) = document["versions"], document["generations"]
    added = {"kind": "add_column", "column": "id", "physical": "id", "from": None, "to": "bigint not null"}
    parts = ["columns", "database", "diagnostics", "generations", "problems", "subject", "table", "version", "versions"]
    assert sorted(document) == parts
    assert (document["table"], document["database"], document["version"]) == ("student", project.database, 1)
    assert (document["subject"], document["problems"]) == ("student-value", [])
    assert (applied["applied"], applied["applied_with"], applied["verdict"]) == (True, 1, "evolve")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", applied["applied_at"])
    assert (applied["changes"][0], waiting["applied"], waiting["applied_at"]) == (added, False, None)
    assert document["columns"][1] == {
        "column": "name",
        "type": "string",
        "names": ["name"],
        "brought_in": 1,
        "changed_in": [],
        "retired_in": 2,
        "physical": [{"name": "name", "since": 1, "until": None}],
    }
    measured = {key: generation[key] for key in ("published_at", "bytes")}
    assert generation == {
        "state": "000001",
        "generation": 1,
        "schema_version": 1,
        "segments": 1,
        "rows": 1,
        **measured,
    }


@pytest.mark.spark
def test_history_exits_with_0_for_a_table_and_2_for_none(project: Project) -> None:
    project.register("student", NAME)
    project("apply")
    answers = [project("history", name) for name in ("student", "nobody")]
    assert [answer.code for answer in answers] == [0, 2]
    assert ("in name" not in answers[0].out, "there is no table nobody" in answers[1].err) == (True, True)


@pytest.mark.spark
def test_a_history_that_cannot_be_written_makes_apply_fail_and_changes_nothing_else(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    blocked = project.write("lake/student/history", "a file where the directory would be")
    answers = [project("apply"), project("release", "student"), project("compact")]
    blocked.unlink()
    assert [(answer.code, str(blocked) in answer.err) for answer in answers] == [(1, True)] * 3
    assert project("apply").code == 0
    assert project("sql", "--json", "SELECT count(*) FROM student_view").json["rows"] == [[1]]
