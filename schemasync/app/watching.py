"""The daemon: notice what is new, bring each table to it, admit what landed, compact when due, tell people.

Called by ``schemasync watch``. Every look at a table compares states, so nothing depends on having seen an event, and
the process may be killed anywhere. One broken table never stops the others. While the registry does not answer,
nothing is done for any table, because without it no plan can be made; what landed waits where it is.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from schemasync.app.announcing import Outbox
from schemasync.app.crew import Crew, crew
from schemasync.app.inspecting import is_silence, map_tables, select
from schemasync.app.tending import TendedTable
from schemasync.app.watched import WatchResult
from schemasync.app.workspace import Workspace
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import Notifier
from schemasync.core.watching import REGISTRY_PATIENCE_MS, Backoff, Listed, Reach, Rhythm, jittered
from schemasync.errors import EngineError, RegistryError, RegistryUnavailableError, SchemasyncError, UsageError
from schemasync.io.status_server import Board, serving

_log: Final = logging.getLogger("schemasync.watch")


def watch(
    workspace: Workspace,
    *,
    notifiers: Sequence[Notifier] = (),
    once: bool = False,
    stop: threading.Event | None = None,
    draw: Callable[[], float] = random.random,
    wait: Callable[[float], object] | None = None,
) -> WatchResult:
    """Watch until ``stop`` is set, or for one whole tick.

    A set ``stop`` lets the steps at hand finish and begins no other. ``draw`` gives random numbers from 0 to 1;
    ``wait`` sleeps up to that many seconds and returns as soon as ``stop`` is set: its own ``wait`` unless given.

    Raises:
        RegistryUnavailableError: with ``once``, the registry does not answer.
        RegistryError: with ``once``, the registry refuses to list its subjects.
        UsageError: ``server.listen`` cannot be listened on.
        EngineError: a table failed and Spark does not answer any more; whoever supervises us starts us again.
    """
    stop = stop or threading.Event()
    poll = workspace.config.watch.poll
    with ExitStack() as stack:
        outbox = Outbox(notifiers, first_ms=poll, draw=draw)
        # Also where it ends with an error: the next process knows of no change that is done.
        stack.callback(outbox.finish, workspace.now_ms)
        workers = stack.enter_context(crew(workspace))
        watcher = _Watcher(workspace, workers, outbox, stop, draw)
        if once:
            watcher.tick()
            return replace(watcher.result(), given_up=outbox.finish(workspace.now_ms))
        if listen := workspace.config.server.listen:
            stack.enter_context(serving(listen, watcher.board, now_ms=workspace.now_ms, poll_ms=poll))
        while not stop.is_set():
            watcher.patient_tick()
            if watcher.result().any_failed:
                _require_spark(workspace)
            (wait or stop.wait)(jittered(poll, draw()) / 1000)
    return watcher.result()


def _require_spark(workspace: Workspace) -> None:
    """Notice that a table failed because Spark is gone; then only a new process helps."""
    try:
        workspace.sql.query("SELECT 1")
    except EngineError as error:
        raise EngineError(
            "Spark does not answer any more", why=error.why or error.what, fix="Start schemasync again."
        ) from error


class _Watcher:
    """What is kept between ticks: the rhythm, the registry's health, and the tables."""

    def __init__(
        self,
        workspace: Workspace,
        workers: Crew,
        outbox: Outbox,
        stop: threading.Event,
        draw: Callable[[], float],
    ) -> None:
        self.board = Board(alive_ms=workspace.now_ms())
        self._workspace = workspace
        self._workers = workers
        self._outbox = outbox
        self._stop = stop
        self._draw = draw
        self._rhythm = Rhythm()
        self._registry = Backoff()
        self._trouble = ""
        self._problems: tuple[UsageError, ...] = ()
        self._tables: tuple[TendedTable, ...] = ()
        # Also those that are gone from the registry: should they come back, what was told is not told again.
        self._ever: dict[str, TendedTable] = {}

    def result(self) -> WatchResult:
        return WatchResult(
            tables=tuple(table.outcome for table in self._tables),
            ticks=self.board.snapshot.ticks,
            problems=self._problems,
            stopped=self._stop.is_set(),
        )

    def patient_tick(self) -> None:
        """Tick; where the registry does not answer, leave it alone for a while."""
        now = self._workspace.now_ms()
        if self._registry.waits(now):
            self._begin(now)
            self._outbox.deliver(now_ms=self._workspace.now_ms)
            return
        try:
            self.tick()
        except (RegistryUnavailableError, RegistryError) as error:
            self._registry_failed(error)
        else:
            self._registry_answered()

    def tick(self) -> None:
        """Do all that is due now.

        Raises:
            RegistryUnavailableError: the registry does not answer; what is due stays due.
            RegistryError: the registry refuses to list its subjects, or answers everything with nonsense by now.
        """
        now = self._workspace.now_ms()
        self._begin(now)
        try:
            self._detect(now)
            self._work()
        finally:
            tables = tuple(table.metrics for table in self._tables)
            self.board.snapshot = replace(self.board.snapshot, tables=tables)
            self._outbox.deliver(now_ms=self._workspace.now_ms)

    def _begin(self, now_ms: int) -> None:
        self.board.alive_ms = now_ms
        before = self.board.snapshot
        self.board.snapshot = replace(before, ticks=before.ticks + 1, last_tick_ms=now_ms)

    def _registry_failed(self, error: SchemasyncError) -> None:
        self._registry = self._registry.failed(
            now_ms=self._workspace.now_ms(),
            first_ms=self._workspace.config.watch.poll,
            longest_ms=REGISTRY_PATIENCE_MS,
            draw=self._draw(),
        )
        if str(error) != self._trouble:
            _log.warning("nothing is done until the registry answers again: %s", error)
        self._trouble = str(error)

    def _registry_answered(self) -> None:
        if self._trouble:
            _log.warning("the registry answers again")
        self._registry, self._trouble = Backoff(), ""

    def _detect(self, now_ms: int) -> None:
        """Ask the registry what is new, with as few questions as that takes."""
        newest = self._workspace.registry.newest_id()
        reach = self._rhythm.reach(now_ms=now_ms, newest_id=newest)
        if reach is not Reach.PROBE:
            self._list(sweep=reach is Reach.SWEEP)
        self._rhythm = self._rhythm.after(
            reach,
            watch=self._workspace.config.watch,
            now_ms=now_ms,
            newest_id=newest,
            subjects=len(self._tables),
            draw=self._draw(),
        )

    def _list(self, *, sweep: bool) -> None:
        mapping = map_tables(self._workspace)
        self._tell_problems(mapping.problems)
        targets = select(mapping, ())
        tables = tuple(self._table(target) for target in targets)
        for gone in set(self._tables) - set(tables):
            text = "table %s: its subject %s is no longer in the registry; the table stays as it is"
            _log.warning(text, gone.name, gone.target.subject, extra={"table": gone.name})
        self._tables = tables
        for table, target in zip(tables, targets, strict=True):
            table.listed(target, self._versions(target), sweep=sweep)

    def _table(self, target: TableTarget) -> TendedTable:
        name = target.full_name
        if name not in self._ever:
            self._ever[name] = TendedTable(self._workspace, target, self._outbox, draw=self._draw)
        return self._ever[name]

    def _tell_problems(self, problems: tuple[UsageError, ...]) -> None:
        known = {str(problem) for problem in self._problems}
        for problem in problems:
            if str(problem) not in known:
                _log.error("%s", problem)
        self._problems = problems

    def _versions(self, target: TableTarget) -> Listed:
        registry = self._workspace.registry
        try:
            keys = registry.versions(target.key_subject) if target.key_subject else ()
            return Listed(versions=registry.versions(target.subject), key_versions=keys)
        except (RegistryError, RegistryUnavailableError) as error:
            if is_silence(error, registry):
                raise
            # It is about this subject: the look at its table says what it means.
            return Listed(trouble=str(error))

    def _work(self) -> None:
        """Look at the tables that ask for it, then compact and clean up: new rows come before tidiness.

        A table is only ever worked on by one thread at a time: what it remembers needs no guard.
        """
        for step in (TendedTable.look, TendedTable.keep_up):
            self._workers.each(self._tables, partial(self._do, step), stop=self._stop)
        if not self._stop.is_set():
            self.board.snapshot = replace(self.board.snapshot, ready=True)

    def _do(self, step: Callable[[TendedTable], None], table: TendedTable) -> None:
        self.board.alive_ms = self._workspace.now_ms()
        step(table)
