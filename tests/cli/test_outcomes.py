"""The exit codes, one row per outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemasync.app.admitting import AdmissionOutcome
from schemasync.app.applying import Applied, ApplyResult
from schemasync.app.checking import CheckResult
from schemasync.app.compacting import Compacted, CompactResult
from schemasync.app.doctor import Check, Health, Report
from schemasync.app.planning import Plan, TablePlan
from schemasync.app.replaying import Moment, Replay, TableReplay
from schemasync.app.states import Draft
from schemasync.app.status import Status, TableStatus
from schemasync.cli.outcomes import (
    apply_exit,
    check_exit,
    compact_exit,
    doctor_exit,
    plan_exit,
    replay_exit,
    status_exit,
)
from schemasync.core.compaction import Retirement
from schemasync.core.config import Config
from schemasync.core.dependents import Dependent, Effect, Touched
from schemasync.core.diagnostics import diagnose
from schemasync.core.drift import DRIFT
from schemasync.core.manifest import StateId, empty
from schemasync.core.mapping import map_subjects
from schemasync.core.plan import Step
from schemasync.core.policy import Verdict
from schemasync.core.properties import TableProperties
from schemasync.errors import ConflictError, StorageError, UsageError

TARGET = map_subjects(["student-value"], Config.model_validate({"registry": {"url": "file:/r"}})).targets[0]
PROPERTIES = TableProperties(
    subject="student-value",
    version=1,
    schema_id=1,
    fingerprint="",
    baseline=1,
    keys=("id",),
    ordering=(),
    columns="",
    lives="",
    state=StateId(generation=0, admission=0),
)
PROBLEM = (UsageError("two entries claim one table"),)
LOST = ConflictError("lost the race")
WRONG = UsageError("the template cannot be rendered")

BROKEN = TablePlan(target=TARGET, verdict=Verdict.HOLD, error=LOST)
NOTHING = TablePlan(target=TARGET, verdict=Verdict.NONE, current_version=1, desired_version=1)
ADMITTING = TablePlan(target=TARGET, verdict=Verdict.NONE, steps=(Step(kind="admit", why="landed"),))
EVOLVING = TablePlan(target=TARGET, verdict=Verdict.EVOLVE, steps=(Step(kind="add_columns", why="new"),))
REPAIRED = TablePlan(target=TARGET, verdict=Verdict.NONE, steps=(Step(kind="repair_partitions", why="one is gone"),))
MIGRATING = TablePlan(target=TARGET, verdict=Verdict.MIGRATE, steps=(Step(kind="add_columns", why="retyped"),))
HELD = TablePlan(target=TARGET, verdict=Verdict.HOLD, current_version=1, desired_version=1)


@pytest.mark.parametrize(
    ("tables", "problems", "code"),
    [
        ((), (), 0),
        ((NOTHING,), (), 0),
        ((NOTHING, ADMITTING), (), 0),
        ((NOTHING, EVOLVING), (), 3),
        ((REPAIRED,), (), 3),
        ((replace(REPAIRED, verdict=Verdict.HOLD), HELD), (), 3),
        ((MIGRATING,), (), 3),
        ((HELD, EVOLVING), (), 3),
        ((HELD, NOTHING), (), 4),
        ((HELD, EVOLVING), PROBLEM, 2),
        ((NOTHING,), PROBLEM, 2),
        ((NOTHING, HELD, BROKEN), (), 1),
        ((BROKEN, EVOLVING), (), 3),
        ((replace(BROKEN, error=WRONG), BROKEN), (), 2),
        ((replace(BROKEN, error=WRONG), EVOLVING), (), 2),
    ],
)
def test_plan_exits(tables: tuple[TablePlan, ...], problems: tuple[UsageError, ...], code: int) -> None:
    assert plan_exit(Plan(tables=tables, problems=problems)) == code


def reader(effect: Effect) -> tuple[Dependent, ...]:
    touched = Touched(relation="lake.student_view", column="name", effect=effect, note="")
    return (Dependent(view="lake.report", touched=(touched,)), Dependent(view="lake.other", unclear="no SQL"))


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (CheckResult(plan=NOTHING, registered=4), 0),
        (CheckResult(plan=NOTHING, dependents=reader(Effect.CHANGED)), 0),
        (CheckResult(plan=ADMITTING), 0),
        (CheckResult(plan=EVOLVING), 3),
        (CheckResult(plan=MIGRATING, dependents=reader(Effect.STALE)), 3),
        (CheckResult(plan=EVOLVING, dependents=reader(Effect.GONE)), 4),
        (CheckResult(plan=HELD), 4),
    ],
)
def test_check_exits(check: CheckResult, code: int) -> None:
    assert check_exit(check) == code


def past(*verdicts: Verdict) -> TableReplay:
    moments = (Moment(from_version=n or None, to_version=n + 1, verdict=v) for n, v in enumerate(verdicts))
    return TableReplay(target=TARGET, timeline=tuple(moments))


@pytest.mark.parametrize(
    ("tables", "problems", "code"),
    [
        ((), (), 0),
        ((past(), past(Verdict.EVOLVE, Verdict.MIGRATE)), (), 0),
        ((past(Verdict.EVOLVE, Verdict.HOLD, Verdict.EVOLVE),), (), 4),
        ((past(Verdict.EVOLVE), replace(past(), diagnostics=(diagnose("SS406", "refused"),))), (), 4),
        ((past(Verdict.HOLD),), PROBLEM, 2),
    ],
)
def test_replay_exits(tables: tuple[TableReplay, ...], problems: tuple[UsageError, ...], code: int) -> None:
    assert replay_exit(Replay(tables=tables, problems=problems)) == code


BLOCKED = AdmissionOutcome(
    draft=Draft.of(PROPERTIES, empty("student", "student-value", schema_version=1, keyed=True)),
    findings=(diagnose("SS301", "corrupt"),),
)
DONE = Applied(plan=EVOLVING)
REFUSED = Applied(plan=HELD)
UNREADABLE = Applied(plan=NOTHING, admitted=BLOCKED)
FAILED = Applied(plan=EVOLVING, error=LOST)


@pytest.mark.parametrize(
    ("tables", "problems", "code"),
    [
        ((), (), 0),
        ((DONE,), (), 0),
        ((DONE, REFUSED), (), 4),
        ((DONE, UNREADABLE), (), 4),
        ((DONE, REFUSED, FAILED), (), 1),
        ((DONE,), PROBLEM, 2),
        ((FAILED,), PROBLEM, 2),
        ((REFUSED, FAILED, replace(FAILED, error=WRONG)), (), 2),
        ((replace(DONE, unrecorded=WRONG),), (), 2),
    ],
)
def test_apply_exits(tables: tuple[Applied, ...], problems: tuple[UsageError, ...], code: int) -> None:
    assert apply_exit(ApplyResult(tables=tables, problems=problems)) == code


def test_what_failed_is_told_without_secrets() -> None:
    applied = Applied(plan=EVOLVING, error=StorageError("password=hush"), unrecorded=StorageError("token=hush"))
    whole = applied.to_json()
    told = [whole["error"], whole["unrecorded"], Compacted(target=TARGET, applied=applied).to_json()["error"]]
    assert told == ["password=***", "token=***", "password=***"]


@pytest.mark.parametrize(
    ("table", "problems", "code"),
    [
        (Compacted(target=TARGET, applied=DONE), (), 0),
        (Compacted(target=TARGET, applied=REFUSED), (), 4),
        (Compacted(target=TARGET, applied=FAILED), (), 1),
        (Compacted(target=TARGET, applied=DONE, error=LOST), (), 1),
        (Compacted(target=TARGET, applied=DONE, error=WRONG), (), 2),
        (Compacted(target=TARGET, applied=replace(FAILED, error=WRONG)), (), 2),
        (Compacted(target=TARGET, applied=DONE), PROBLEM, 2),
    ],
)
def test_compact_exits(table: Compacted, problems: tuple[UsageError, ...], code: int) -> None:
    assert compact_exit(CompactResult(tables=(table,), problems=problems)) == code


def standing(plan: TablePlan, *codes: str) -> TableStatus:
    return TableStatus(
        plan=plan,
        manifest=None,
        pending=(),
        waiting=0,
        due=Retirement(),
        now_ms=0,
        diagnostics=tuple(diagnose(code, "") for code in codes),
    )


BEHIND = TablePlan(target=TARGET, verdict=Verdict.EVOLVE, current_version=1, desired_version=2)
NEW = TablePlan(target=TARGET, verdict=Verdict.EVOLVE, desired_version=1)
GONE = TablePlan(target=TARGET, verdict=Verdict.NONE, current_version=1)


@pytest.mark.parametrize(
    ("table", "problems", "code"),
    [
        (standing(NOTHING), (), 0),
        (standing(NOTHING, "SS301", "SS305"), (), 0),
        (standing(HELD), (), 0),
        (standing(GONE), (), 0),
        (standing(BEHIND), (), 3),
        (standing(NEW), (), 3),
        (standing(NOTHING, "SS202"), (), 3),
        (standing(NOTHING, "SS203"), (), 3),
        (standing(NOTHING, "SS204"), (), 3),
        (standing(NOTHING, "SS205"), (), 3),
        *((standing(NOTHING, code), (), 3) for code in sorted(DRIFT)),
        (standing(NOTHING, "SS215"), (), 0),
        (standing(BROKEN, "SS217"), (), 1),
        (standing(BROKEN, "SS217"), PROBLEM, 2),
        (standing(replace(BROKEN, error=WRONG), "SS202", "SS217"), (), 2),
        (standing(NOTHING), PROBLEM, 2),
    ],
)
def test_status_exits(table: TableStatus, problems: tuple[UsageError, ...], code: int) -> None:
    assert status_exit(Status(tables=(table,), problems=problems)) == code


@pytest.mark.parametrize(("health", "code"), [(Health.OK, 0), (Health.WARN, 0), (Health.SKIPPED, 0), (Health.FAIL, 1)])
def test_doctor_exits(health: Health, code: int) -> None:
    assert doctor_exit(Report(checks=(Check(name="java", health=health, detail=""),))) == code


def test_doctor_exits_as_other_commands_would_at_what_failed_first() -> None:
    wrong = Check(name="config", health=Health.FAIL, detail="", exit_code=2)
    broken = Check(name="registry", health=Health.FAIL, detail="")
    told = [doctor_exit(Report(checks=checks)) for checks in ((wrong, broken), (broken, wrong))]
    assert told == [2, 1]
