"""Which exit code each outcome has: the promise of the command line to scripts.

0 done, nothing left to do; 1 failed; 2 wrong usage or configuration; 3 schema changes pending, or allowed (check), or
something drifted (status); 4 held, or refused (check). What in the configuration stands in the way of some tables is 2,
after the others were served; so is what a table itself met of that, a template of the user's own or a missing library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from schemasync.app.applying import ApplyResult
from schemasync.app.checking import CheckResult
from schemasync.app.compacting import CompactResult
from schemasync.app.doctor import Report
from schemasync.app.history import TableHistory
from schemasync.app.planning import Plan
from schemasync.app.replaying import Replay
from schemasync.app.status import Status
from schemasync.app.vacuuming import VacuumResult
from schemasync.errors import SchemasyncError, UsageError


class Exit(IntEnum):
    """The exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PENDING = 3
    HELD = 4


def plan_exit(plan: Plan) -> Exit:
    """Say whether apply has tables to change; else whether one could not be looked at, or waits for a person."""
    errors = [table.error for table in plan.tables if table.error]
    if any(table.due for table in plan.tables):
        return _unless(plan.problems, Exit.PENDING, errors)
    held = any(table.held for table in plan.tables)
    return _unless(plan.problems, _left(errors, held=held), errors)


def check_exit(check: CheckResult) -> Exit:
    """Say whether a proposed schema would be held or break a view; else whether it would change anything."""
    if check.refused:
        return Exit.HELD
    return Exit.PENDING if check.plan.pending else Exit.DONE


def replay_exit(replay: Replay) -> Exit:
    """Say whether any version would have been held, or a table's could not be asked for."""
    held = any(table.held or table.diagnostics for table in replay.tables)
    return _unless(replay.problems, Exit.HELD if held else Exit.DONE)


def apply_exit(result: ApplyResult) -> Exit:
    """Say whether a table failed; else whether one is held."""
    errors = [error for table in result.tables for error in (table.error, table.unrecorded) if error]
    held = any(table.held for table in result.tables)
    return _unless(result.problems, _left(errors, held=held), errors)


def compact_exit(result: CompactResult) -> Exit:
    """Say whether a table failed; else whether one is held: what it already has was compacted all the same."""
    errors = [error for table in result.tables for error in (table.failure, table.applied.unrecorded) if error]
    held = any(table.applied.held for table in result.tables)
    return _unless(result.problems, _left(errors, held=held), errors)


def vacuum_exit(result: VacuumResult) -> Exit:
    """Say whether something that is due could not be cleaned up."""
    errors = [table.error for table in result.tables if table.error]
    return _unless(result.problems, _left(errors, held=False), errors)


def status_exit(status: Status) -> Exit:
    """Say whether a table could not be looked at; else whether anything drifted."""
    errors = [table.plan.error for table in status.tables if table.plan.error]
    drifted = Exit.PENDING if status.drifted else Exit.DONE
    return _unless(status.problems, Exit.FAILED if errors else drifted, errors)


def history_exit(history: TableHistory) -> Exit:
    """Say whether the configuration is in the way of any table."""
    return _unless(history.problems, Exit.DONE)


def doctor_exit(report: Report) -> Exit:
    """Say what the other commands would end with for the first check that failed."""
    return Exit(report.failed[0].exit_code) if report.failed else Exit.DONE


def _left(errors: Sequence[SchemasyncError], *, held: bool) -> Exit:
    return Exit.FAILED if errors else Exit.HELD if held else Exit.DONE


def _unless(problems: Sequence[UsageError], otherwise: Exit, errors: Iterable[SchemasyncError] = ()) -> Exit:
    wrong = problems or any(isinstance(error, UsageError) for error in errors)
    return Exit.USAGE if wrong else otherwise
