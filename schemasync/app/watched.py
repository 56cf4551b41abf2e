"""What the watcher did, as values: one table's last outcome, the whole result, and what there is to tell of a look.

Made by `schemasync.app.tending` and `schemasync.app.watching`; the command line prints and counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schemasync.app.applying import Applied
from schemasync.app.compacting import Compacted
from schemasync.app.planning import SCHEMA_STEPS, TablePlan
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.news import Seen
from schemasync.core.policy import Verdict
from schemasync.core.watching import Listed
from schemasync.errors import UsageError
from schemasync.io.logs import told


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTable:
    """What the watcher last did with one table.

    ``failure`` is set where that went wrong, ``misconfigured`` where that is for what is wrong in the configuration.
    """

    table: str
    database: str
    subject: str
    verdict: str = Verdict.NONE.value
    version: int | None = None
    generation: int = 0
    files: int = 0
    events: int = 0
    waiting: int = 0
    held: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    compacted: Compacted | None = None
    failure: str | None = None
    misconfigured: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``watch --json``."""
        return {
            "table": self.table,
            "database": self.database,
            "subject": self.subject,
            "version": self.version,
            "verdict": self.verdict,
            "generation": self.generation,
            "admitted": {"files": self.files, "events": self.events, "waiting": self.waiting},
            "compacted": self.compacted.to_json() if self.compacted else None,
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
            "error": self.failure,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchResult:
    """How things were left: every table's last outcome, ticks since the start, and what is wrong in the configuration.

    ``stopped``: a stop was asked for. ``given_up``: deliveries of events that could not be made.
    """

    tables: tuple[WatchedTable, ...]
    ticks: int
    problems: tuple[UsageError, ...] = ()
    stopped: bool = False
    given_up: int = 0

    @property
    def any_failed(self) -> bool:
        """Tell whether a table is not well."""
        return any(table.failure for table in self.tables)

    @property
    def exit_code(self) -> int:
        """0 after a stop; else 2 for a wrong configuration, 1 for a table or a delivery that failed, 4 for a hold."""
        if self.stopped:
            return 0
        if self.problems or any(table.misconfigured for table in self.tables):
            return UsageError.exit_code
        if self.any_failed or self.given_up:
            return 1
        return 4 if any(table.held for table in self.tables) else 0

    def to_json(self) -> dict[str, Any]:
        """Return what ``watch --json`` prints at its end."""
        return {
            "tables": [table.to_json() for table in self.tables],
            "ticks": self.ticks,
            "problems": [str(problem) for problem in self.problems],
            "given_up": self.given_up,
        }


def outcome_of(applied: Applied, *, held: bool) -> WatchedTable:
    """Return what apply did, as the watcher's outcome; ``held``: something waits for a person."""
    admitted, properties = applied.admitted, applied.properties
    return WatchedTable(
        table=applied.target.table,
        database=applied.target.database,
        subject=applied.target.subject,
        verdict=Verdict.HOLD.value if held else applied.plan.verdict.value,
        version=properties.version if properties else None,
        generation=properties.state.generation if properties else 0,
        files=admitted.files if admitted else 0,
        events=admitted.events if admitted else 0,
        waiting=applied.waiting,
        held=held,
        diagnostics=applied.diagnostics,
        failure=told(applied.unrecorded),
        misconfigured=isinstance(applied.unrecorded, UsageError),
    )


def seen_of(applied: Applied, listed: Listed, *, refused: bool, mode: str) -> Seen:
    """Return what a look came to; ``refused``: ``watch.apply`` (``mode``) did not let the plan's changes through."""
    plan = applied.plan
    steps = [step for step in plan.steps if step.kind in SCHEMA_STEPS]
    changed = plan.pending and all(step in applied.done for step in steps)
    standing = applied.properties or (plan.properties if changed else None)
    newest = [v for v in (plan.desired_version, *listed.versions[-1:]) if v is not None]
    return Seen(
        target=plan.target,
        before=plan.current_version,
        after=standing.version if standing else None,
        desired=max(newest, default=None),
        verdict=plan.verdict,
        changes=plan.changes,
        diagnostics=(*applied.diagnostics, *([_waits(plan, mode)] if refused else [])),
        changed=changed,
        held=applied.held or refused,
        held_since_ms=applied.held_since_ms,
        keys=standing.keys if standing else None,
        key_version=standing.key_version if standing else 0,
        state=str(standing.state) if standing else "",
    )


def _waits(plan: TablePlan, mode: str) -> Diagnostic:
    table = plan.target.name
    return diagnose(
        "SS124",
        f"watch.apply is {mode}: the changes of {table} wait for a person",
        fix=f"Look at `schemasync plan {table}`, then run `schemasync apply {table}`.",
    )
