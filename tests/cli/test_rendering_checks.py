"""What check and a replay found, as people and as GitHub read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemasync.app.checking import CheckResult, Finding
from schemasync.app.planning import TablePlan
from schemasync.app.replaying import Moment, Replay, TableReplay
from schemasync.cli.rendering_checks import check_text, github_text, replay_text
from schemasync.core.changes import AddColumn
from schemasync.core.dependents import Dependent, Effect, Touched
from schemasync.core.diagnostics import diagnose
from schemasync.core.encoding import Leaf
from schemasync.core.manifest import DataFile
from schemasync.core.plan import Step
from schemasync.core.policy import Verdict
from schemasync.core.schema import Column
from schemasync.core.types import Primitive
from tests.cli.test_rendering import TARGET, text_of
from tests.core.builders import segment

AGE = AddColumn(column=Column(name="age", encoding=Leaf(type=Primitive.INT), nullable=True), position=1)
FAX = Touched(relation="lake.student_view", column="fax", effect=Effect.GONE, note="which goes away")
PLAN = TablePlan(
    target=TARGET,
    verdict=Verdict.EVOLVE,
    current_version=3,
    desired_version=4,
    changes=(AGE,),
    steps=(Step(kind="add_columns", why="appended"),),
)
FILES = tuple(DataFile(path=f"base/{n}.parquet", rows=1, bytes=1024) for n in range(2))
CHECK = CheckResult(
    plan=replace(PLAN, rewrite=(segment("base_s00000000", files=FILES, bytes=2048),)),
    findings=(
        Finding(diagnostic=diagnose("SS101", "column age was added"), line=7),
        Finding(diagnostic=diagnose("SS501", "lake.report uses fax"), line=1),
    ),
    dependents=(
        Dependent(view="lake.report", reads=("lake.student_view",), touched=(FAX,)),
        Dependent(view="lake.other", reads=("lake.student_view",)),
        Dependent(view="lake.odd", unclear="no SQL"),
    ),
)
FIX = "Take the column out of that view first; or keep the column with policies.drop: keep."


def test_a_check_shows_changes_findings_cost_and_the_views_that_read_the_table() -> None:
    assert text_of(check_text(CHECK)) == (
        "lake.student  evolve  version 3 -> 4  student-value\n"
        "  + add column age  int\n"
        "  SS101 info  column age was added\n"
        "  SS501 error  lake.report uses fax\n"
        f"      fix: {FIX}\n"
        "  cost       2 files, 2.0 KiB\n"
        "  read by    lake.report: uses fax (gone)\n"
        "  read by    lake.other: uses nothing that changes\n"
        "  read by    lake.odd: what it reads cannot be told\n"
        "the change is allowed, and would break lake.report"
    )


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (CheckResult(plan=PLAN), "the change is allowed (evolve)"),
        (CheckResult(plan=replace(PLAN, verdict=Verdict.MIGRATE)), "the change is allowed (migrate)"),
        (CheckResult(plan=replace(PLAN, verdict=Verdict.HOLD)), "the table would be held"),
        (CheckResult(plan=replace(PLAN, verdict=Verdict.NONE, steps=())), "nothing would change"),
        (CheckResult(plan=PLAN, registered=4), "nothing would change: the registry's version 4 is this schema"),
        (
            CheckResult(plan=PLAN, registered=2),
            "nothing would change: the registry's version 2 is this schema, and no new one would come of it",
        ),
    ],
)
def test_a_check_ends_with_what_it_comes_to(check: CheckResult, words: str) -> None:
    assert text_of(check_text(check)).splitlines()[-1] == words


def test_annotations_are_one_per_finding_and_a_summary() -> None:
    assert text_of(github_text(CHECK, "schemas/student.avsc")).splitlines() == [
        "::notice file=schemas/student.avsc,line=7,title=SS101::column age was added",
        f"::error file=schemas/student.avsc,line=1,title=SS501::lake.report uses fax%0A{FIX}",
        "::error file=schemas/student.avsc,line=1,title=schemasync::lake.student, version 3 -> 4: the change is "
        "allowed, and would break lake.report; 1 change, 3 dependent views, cost 2 files, 2.0 KiB",
    ]


def test_a_warning_is_one_and_a_summary_of_what_is_allowed_is_a_notice() -> None:
    finding = Finding(diagnostic=diagnose("SS105", "came back"), line=2)
    lines = text_of(github_text(CheckResult(plan=PLAN, findings=(finding,)), "s.avsc")).splitlines()
    assert lines == [
        "::warning file=s.avsc,line=2,title=SS105::came back",
        "::notice file=s.avsc,line=1,title=schemasync::lake.student, version 3 -> 4: the change is allowed (evolve); "
        "1 change, 0 dependent views",
    ]


def test_what_would_end_a_command_is_escaped_once() -> None:
    finding = Finding(diagnostic=diagnose("SS101", "100%0A\r\n::error::x, y"), line=1)
    line = text_of(github_text(CheckResult(plan=PLAN, findings=(finding,)), "a,b:c%.avsc")).splitlines()[0]
    assert line == "::notice file=a%2Cb%3Ac%25.avsc,line=1,title=SS101::100%250A%0D%0A::error::x, y"


def moment(before: int | None, after: int, verdict: Verdict, **more: Any) -> Moment:
    return Moment(from_version=before, to_version=after, verdict=verdict, **more)


def test_a_replay_is_a_timeline_per_table() -> None:
    timeline = (
        moment(None, 1, Verdict.EVOLVE),
        moment(1, 2, Verdict.HOLD, changes=(AGE,), diagnostics=(diagnose("SS124", "policies.add says hold"),)),
        moment(1, 3, Verdict.MIGRATE),
    )
    tables = (
        TableReplay(target=TARGET, timeline=timeline),
        TableReplay(
            target=replace(TARGET, table="gone", subject="gone-value"),
            timeline=(),
            unread="no such scheme",
            diagnostics=(diagnose("SS405", "none", fix="Look."),),
        ),
        TableReplay(target=replace(TARGET, table="secret"), timeline=(), diagnostics=(diagnose("SS406", "403"),)),
    )
    fix = diagnose("SS124", "").fix
    assert text_of(replay_text(Replay(tables=tables))) == (
        "lake.student  student-value\n"
        "new, version 1  evolve\n"
        "version 1 -> 2  hold\n"
        "  + add column age  int\n"
        "  SS124 error  policies.add says hold\n"
        f"      fix: {fix}\n"
        "version 1 -> 3  migrate\n"
        "\n"
        "lake.gone  gone-value\n"
        "  SS405 error  none\n"
        "      fix: Look.\n"
        "  schemas kept beside the data were not read: no such scheme\n"
        "\n"
        "lake.secret  student-value\n"
        "  SS406 error  403\n"
        f"      fix: {diagnose('SS406', '').fix}\n"
        "\n"
        "3 tables, 3 versions: 1 held"
    )
