"""One table under watch: when it is looked at, what is done then, and what is remembered of it until the next tick.

Used by `schemasync.app.watching`. A failure stays with its table: it is logged, counted, and tried again ever more
seldom. Only a registry that does not answer is passed on, because then nothing can be said about any table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from schemasync.app.announcing import Outbox
from schemasync.app.applying import Applied, apply_table
from schemasync.app.compacting import compact_table
from schemasync.app.inspecting import is_silence
from schemasync.app.landed import pending_files
from schemasync.app.planning import TablePlan
from schemasync.app.retiring import retire, retire_all_the_same
from schemasync.app.states import Draft, manifest_in_force, token_in_force
from schemasync.app.telling import Telling
from schemasync.app.viewing import refresh_view
from schemasync.app.watched import WatchedTable, outcome_of, seen_of
from schemasync.app.workspace import Workspace
from schemasync.core.diagnostics import Severity
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.migration import outdated
from schemasync.core.ports import FileInfo
from schemasync.core.shape import Shape
from schemasync.core.step_kinds import DROP_TABLE
from schemasync.core.watching import (
    TABLE_PATIENCE_MS,
    Backoff,
    Listed,
    Reason,
    TableMemory,
    cleanup_due_ms,
    fold_due_ms,
    is_safe,
)
from schemasync.errors import RegistryError, RegistryUnavailableError, SchemasyncError, UsageError
from schemasync.io.logs import redact
from schemasync.io.status_server import TableMetrics

_REFUSALS: Final = frozenset({"SS301", "SS305", "SS406"})
_REFUSAL_MS: Final = 60_000
"""So long after a version could not be had, or not be understood, or a file not be read, the table is looked at again:
a registry's refusal may pass, as that of a replica that lags or of a proxy does, and so may a storage's."""

_log: Final = logging.getLogger("schemasync.watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """A table as apply left it, and what its files may need now or later; ``decided_ms`` is of `TableMemory`."""

    applied: Applied
    shape: Shape
    draft: Draft
    decided_ms: int

    @property
    def manifest(self) -> Manifest:
        """The state in force."""
        return self.draft.manifest

    def fold_due_ms(self, now_ms: int) -> int | None:
        """Return when a compaction is due, None where there is nothing to fold."""
        return fold_due_ms(
            self.manifest,
            rules=self.applied.target.compaction,
            outdated=outdated(self.shape, self.manifest),
            decided_ms=self.decided_ms,
            now_ms=now_ms,
        )

    def due_ms(self, now_ms: int) -> int | None:
        """Return when a compaction or a cleaning up is due, None where nothing will be."""
        due = (self.fold_due_ms(now_ms), cleanup_due_ms(self.manifest, rules=self.applied.target.compaction))
        return min((d for d in due if d is not None), default=None)


class TendedTable:
    """One table, its memory and its last outcome."""

    def __init__(self, workspace: Workspace, target: TableTarget, outbox: Outbox, *, draw: Callable[[], float]) -> None:
        self.target = target
        self.outcome = WatchedTable(table=target.table, database=target.database, subject=target.subject)
        self._workspace = workspace
        self._settings = workspace.config.watch
        self._draw = draw
        self._memory = TableMemory()
        self._telling = Telling(workspace, outbox)
        self._upkeep: Upkeep | None = None
        self._listing: tuple[TableTarget, Listed, bool] | None = None
        self._forgiven = False
        self.takes_long = False
        """Whether the last look left it to `keep_up` to look: very much landed."""
        self._looked_aside = False
        """Whether `keep_up` did look the last time: then what that found due has its turn, however much lands."""
        self.seen = False
        """Whether a look at it has ended, however."""
        self.failures = 0
        """How often it failed since the start."""
        self._pending = 0

    @property
    def name(self) -> str:
        """``database.table``."""
        return self.target.full_name

    @property
    def metrics(self) -> TableMetrics:
        """The table as the status endpoint shows it."""
        return TableMetrics(
            table=self.name,
            held=self.outcome.held,
            state=self._state,
            version=self.outcome.version,
            generation=self.outcome.generation,
            pending_files=self._pending,
            failures=self.failures,
        )

    @property
    def _state(self) -> str:
        """How it was left: what a look did is past."""
        if self.outcome.failure:
            return "failing"
        if self._memory.looked is None:
            return "not looked at yet"
        return "held" if self.outcome.held else "in step"

    @property
    def wants_upkeep(self) -> bool:
        """Whether the last look found something to compact or to clean up, or too much to be admitted in it."""
        return self._upkeep is not None or self.takes_long

    def waits(self, now_ms: int) -> bool:
        """Tell whether it failed, and is left alone for now."""
        return self._memory.applying.waits(now_ms)

    def listed(self, target: TableTarget, listed: Listed | None, *, sweep: bool) -> None:
        """Take note of what the registry lists for the table, for the next look: something else may be at hand.

        None: it was not asked, and what it said before stands.
        """
        _, before, swept = self._listing or (target, self._memory.listed, False)
        self._listing = (target, before if listed is None else listed, sweep or swept)

    def forgive(self) -> None:
        """Take note that what all tables need is there again, for the next look: something else may be at hand."""
        self._forgiven = True

    def look(self) -> None:
        """Plan, apply and admit where anything asks for it; all of that is left to `keep_up` where it takes long.

        Raises:
            RegistryUnavailableError: the registry does not answer, about nothing at all; the table is looked at when it
                does again.
            RegistryError: its answers are refusals or nonsense, to whatever is asked; the same.
        """
        now = self._workspace.now_ms()
        if self._listing:
            (self.target, listed, sweep), self._listing = self._listing, None
            self._memory = self._memory.listing(self.target, listed, sweep=sweep)
        if self._forgiven:
            self._memory, self._forgiven = self._memory.forgiven(), False
        self.settle()
        if not self.waits(now):
            self._try(now, patient=False)

    def settle(self) -> None:
        """Keep what has been told by now, for the next process."""
        self._telling.settle(self.target)

    def keep_up(self) -> None:
        """Look where the last look left that to this, else compact or clean up where it is due.

        Not both: others may wait for a look, and a stop may have been asked for. Where the latter fails, admissions go
        on all the same.

        Raises:
            RegistryUnavailableError, RegistryError: as `look`.
        """
        if self.takes_long:
            self._try(self._workspace.now_ms(), patient=True)
            self._looked_aside = True
            return
        self._looked_aside = False
        upkeep, self._upkeep = self._upkeep, None
        if upkeep is None:
            return
        try:
            tried = self._compact_or_retire(upkeep)
        except Exception as error:
            backoff = self._failed(self._memory.folding, error)
            self._memory = replace(self._memory, folding=backoff, due_ms=backoff.until_ms)
        else:
            # Look again at the next tick: what was just published may have made something else due.
            folding = Backoff() if tried else self._memory.folding
            self._memory = replace(self._memory, folding=folding, due_ms=self._workspace.now_ms())

    def _try(self, now_ms: int, *, patient: bool) -> None:
        try:
            self._look(now_ms, patient=patient)
        except Exception as error:
            self._upkeep = None
            if is_silence(error, self._workspace.registry):
                raise
            self._memory = replace(self._memory, applying=self._failed(self._memory.applying, error))
        self.seen = self.seen or not self.takes_long

    def _failed(self, backoff: Backoff, error: Exception) -> Backoff:
        backoff = backoff.failed(
            now_ms=self._workspace.now_ms(),
            first_ms=self._settings.poll,
            longest_ms=TABLE_PATIENCE_MS,
            draw=self._draw(),
        )
        expected = isinstance(error, SchemasyncError)
        text = str(error) if expected else f"{type(error).__name__}: {error}"
        self.failures += 1
        self.outcome = replace(self.outcome, failure=redact(text), misconfigured=isinstance(error, UsageError))
        extra = {"table": self.name, "failures": backoff.failures, "until_ms": backoff.until_ms}
        _log.error("table %s failed: %s", self.name, text, extra=extra, exc_info=None if expected else error)
        return backoff

    def _look(self, now_ms: int, *, patient: bool) -> None:
        self.takes_long = False
        landed = frozenset(pending_files(self._workspace, self.target, None))
        self._pending = self._memory.pending(landed)
        reason = self._memory.calls(landed, now_ms=now_ms)
        # What is due may have had to wait for that of others.
        if reason is None or (reason is Reason.TIME and self.wants_upkeep):
            return
        if not patient and self._much_landed(landed):
            self.takes_long = self._upkeep is None or not self._looked_aside
            return
        _log.debug("looking at table %s: %s", self.name, reason.value, extra={"table": self.name})
        self._telling.begin(self.target)
        applied = apply_table(self._workspace, self.target, allowed=self._begins)
        if isinstance(applied.error, RegistryError | RegistryUnavailableError):
            raise applied.error
        refused = applied.plan.pending and not self._allowed(applied.plan)
        if applied.plan.view is not None:
            self._telling.tell(seen_of(applied, self._memory.listed, refused=refused, mode=self._settings.apply))
        if applied.error is not None:
            if applied.plan.view is not None:
                retire_all_the_same(self._workspace, self.target, applied.error)
            raise applied.error
        if applied.unrecorded is not None:
            _log.warning("table %s: %s", self.name, applied.unrecorded, extra={"table": self.name})
        self._tell_findings(applied)
        self.outcome = outcome_of(applied, held=applied.held or refused)
        self._remember(applied, landed)

    def _much_landed(self, landed: frozenset[FileInfo]) -> bool:
        if self._memory.looked is None and self._memory.takes_long(landed):
            # An earlier process may have admitted it.
            self._memory = self._memory.knowing(manifest_in_force(self._workspace, self.target))
            self._pending = self._memory.pending(landed)
        return self._memory.takes_long(landed)

    def _tell_findings(self, applied: Applied) -> None:
        """Log what is not as it should be in files that were admitted; what holds the table is told as an event."""
        for found in applied.admitted.odd if applied.admitted else ():
            if found.severity is Severity.WARNING:
                _log.warning("table %s: %s %s", self.name, found.code, found.message, extra={"table": self.name})

    def _begins(self, plan: TablePlan) -> bool:
        if not self._allowed(plan):
            return False
        self._telling.before(plan)
        return True

    def _allowed(self, plan: TablePlan) -> bool:
        match self._settings.apply:
            case "auto":
                return True
            case "manual":
                return False
            case "safe":
                return is_safe(plan.changes) and all(step.kind != DROP_TABLE for step in plan.steps)

    def _remember(self, applied: Applied, landed: frozenset[FileInfo]) -> None:
        now = self._workspace.now_ms()
        upkeep = _upkeep(applied, decided_ms=self._memory.decided_ms)
        due = upkeep.due_ms(now) if upkeep else None
        if due is not None and self._memory.folding.waits(now):
            due = max(due, self._memory.folding.until_ms)
        self._upkeep = upkeep if due is not None and due <= now else None
        dues = [] if due is None else [due]
        if any(d.code in _REFUSALS for d in applied.diagnostics):
            dues.append(now + _REFUSAL_MS)
        self._memory = self._memory.looked_at(
            landed, manifest=upkeep.manifest if upkeep else None, due_ms=min(dues, default=None)
        )
        self._pending = self._memory.pending(landed)

    def _compact_or_retire(self, upkeep: Upkeep) -> bool:
        """Return whether it was tried: not where the state in force is not that of the last look any more."""
        if token_in_force(self._workspace, self.target) != upkeep.draft.properties.token:
            told = "table %s: another process published; what is due is for the next look"
            _log.info(told, self.name, extra={"table": self.name})
            return False
        now, applied = self._workspace.now_ms(), upkeep.applied
        fold = upkeep.fold_due_ms(now)
        if fold is not None and fold <= now:
            compacted = compact_table(self._workspace, self.target, applied=applied)
            if compacted.failure is not None:
                raise compacted.failure
            self._memory = replace(self._memory, decided_ms=self._workspace.now_ms())
            generation = compacted.generation or 0
            self.outcome = replace(self.outcome, compacted=compacted, generation=generation)
            extra = {"table": self.name, "generation": generation}
            _log.info("table %s is compacted: generation %s", self.name, generation, extra=extra)
        elif applied.properties is not None:
            refresh_view(self._workspace, self.target, upkeep.shape, upkeep.manifest)
            retire(self._workspace, self.target, upkeep.shape, upkeep.draft)
        return True


def _upkeep(applied: Applied, *, decided_ms: int) -> Upkeep | None:
    if applied.admitted is None or applied.shape is None:
        return None
    return Upkeep(applied=applied, shape=applied.shape, draft=applied.admitted.draft, decided_ms=decided_ms)
