"""The daemon: notice what is new, bring each table to it, admit what landed, compact when due, tell people.

Called by ``schemasync watch``. Every look at a table compares states, so nothing depends on having seen an event, and
the process may be killed anywhere. One broken table never stops the others. While the registry or the metastore does
not answer, nothing is done for any table, because without them no plan can be made; what landed waits where it is.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from schemasync.app.announcing import Outbox
from schemasync.app.crew import Crew, crew, finished
from schemasync.app.inspecting import is_silence, map_quietly, select, tell_nothing
from schemasync.app.outage import REMIND_MS, Outage
from schemasync.app.tending import TendedTable
from schemasync.app.watched import WatchResult
from schemasync.app.workspace import Workspace
from schemasync.core.mapping import TableMapping, TableTarget
from schemasync.core.ports import Notifier
from schemasync.core.watching import Listed, Reach, Rhythm, jittered
from schemasync.errors import EngineError, RegistryError, RegistryUnavailableError, UsageError
from schemasync.io.logs import redact
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
        outbox = Outbox(notifiers, first_ms=poll, draw=draw, now_ms=workspace.now_ms)
        tended: dict[str, TendedTable] = {}
        outbox.start()
        missed: list[int] = []
        # Also where it ends with an error.
        stack.callback(lambda: missed.append(_end(outbox, tended, stop)))
        board = Board(alive_ms=workspace.now_ms())
        listen = "" if once else workspace.config.server.listen
        if listen:
            stack.enter_context(serving(listen, board, now_ms=workspace.now_ms, poll_ms=poll))
        workers = stack.enter_context(crew(workspace))
        watcher = _Watcher(
            workspace, workers, board=board, outbox=outbox, tended=tended, stop=stop, draw=draw, once=once
        )
        if once:
            watcher.tick()
            watcher.finish()
        while not (once or stop.is_set()):
            watcher.patient_tick()
            # A tenth more than the longest poll is longer than a thread can wait.
            (wait or stop.wait)(min(jittered(poll, draw()) / 1000, threading.TIMEOUT_MAX))
    return replace(watcher.result(), given_up=sum(missed))


def _end(outbox: Outbox, tended: Mapping[str, TendedTable], stop: threading.Event) -> int:
    """Tell what is still to be told, and keep what was; return how many deliveries were not made."""
    missed = outbox.finish(stop)
    for table in tended.values():
        table.settle()
    return missed


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
        *,
        board: Board,
        outbox: Outbox,
        tended: dict[str, TendedTable],
        stop: threading.Event,
        draw: Callable[[], float],
        once: bool,
    ) -> None:
        self.board = board
        self._workspace = workspace
        self._workers = workers
        self._upkeep = _Upkeep(workers, stop, workspace.now_ms, self._keep_up, self._is_over)
        self._outbox = outbox
        self._stop = stop
        self._draw = draw
        self._once = once
        self._rhythm = Rhythm()
        outage = partial(Outage, first_ms=workspace.config.watch.poll, draw=draw, now_ms=workspace.now_ms)
        self._registry = outage("registry")
        self._metastore = outage("metastore")
        # Several looks may fail at once.
        self._asking = threading.Lock()
        self._problems: tuple[UsageError, ...] = ()
        self._problems_said_ms = 0
        self._empty = False
        self._tables: tuple[TendedTable, ...] = ()
        # Also those that are gone from the registry: should they come back, what was told is not told again.
        self._ever = tended
        self._gone: set[TendedTable] = set()

    def result(self) -> WatchResult:
        return WatchResult(
            tables=tuple(table.outcome for table in self._tables),
            ticks=self.board.snapshot.ticks,
            problems=self._problems,
            stopped=self._stop.is_set(),
        )

    def patient_tick(self) -> None:
        """Tick; where the registry or the metastore does not answer, leave it alone for a while.

        Raises:
            EngineError: a table failed and Spark does not answer any more.
        """
        if self._metastore.trouble:
            self._ask_metastore()
        if self._registry.waits or self._metastore.trouble:
            self._begin(self._workspace.now_ms())
        else:
            self._tick_unless_silent()
        self.board.snapshot = replace(
            self.board.snapshot,
            registry_trouble=self._registry.trouble,
            metastore_trouble=self._metastore.trouble,
        )

    def _tick_unless_silent(self) -> None:
        try:
            self.tick()
        except (RegistryUnavailableError, RegistryError) as error:
            self._registry.failed(error)
        else:
            self._registry.answered()
        if self.result().any_failed:
            self._ask_metastore()

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
            # The looks of a first sweep may take long.
            self._show_tables()
            self._work()
        finally:
            self._show_tables()

    def _show_tables(self) -> None:
        self.board.snapshot = replace(
            self.board.snapshot,
            problems=tuple(redact(str(problem)) for problem in self._problems),
            tables=tuple(table.metrics for table in self._tables),
        )

    def finish(self) -> None:
        """Wait for what the last tick began, and for what looks that took long found due."""
        self._upkeep.finish()
        self._upkeep.begin(table for table in self._tables if table.wants_upkeep)
        self._upkeep.finish()

    def _begin(self, now_ms: int) -> None:
        self._gives_a_sign()
        before = self.board.snapshot
        self.board.snapshot = replace(
            before,
            ticks=before.ticks + 1,
            last_tick_ms=now_ms,
            events_waiting=self._outbox.waiting,
            events_given_up=self._outbox.given_up,
        )

    def _ask_metastore(self) -> None:
        """Find out whether tables fail because the metastore does not answer, and whether it does again."""
        with self._asking:
            # Who ends all processes at once has ended Spark, too.
            if self._metastore.waits or self._stop.is_set():
                return
            _require_spark(self._workspace)
            # Its registry may list none any more while the upkeep of one goes on.
            anyone = next(iter(self._ever.values())).target
            try:
                self._workspace.metastore.names(anyone.database, anyone.table)
            except EngineError as error:
                self._metastore.failed(error)
                self._upkeep.recall()
                return
            if self._metastore.answered():
                for table in self._tables:
                    table.forgive()

    def _detect(self, now_ms: int) -> None:
        """Ask the registry what is new, with as few questions as that takes."""
        newest = self._workspace.registry.newest_id()
        reach = self._rhythm.reach(now_ms=now_ms, newest_id=newest)
        if reach is not Reach.PROBE:
            self._list(sweep=reach is Reach.SWEEP)
        self._rhythm = self._rhythm.after(
            reach,
            watch=self._workspace.config.watch,
            # To list may have taken longer than the pause until the next list.
            now_ms=self._workspace.now_ms(),
            newest_id=newest,
            subjects=sum(2 if table.target.key_source else 1 for table in self._tables),
            draw=self._draw(),
        )

    def _list(self, *, sweep: bool) -> None:
        mapping = map_quietly(self._workspace)
        self._tell_problems(mapping.problems)
        self._tell_nothing(mapping)
        targets = select(mapping, ())
        tables = tuple(self._table(target) for target in targets)
        self._tables = tables
        self._tell_gone(mapping)
        now = self._workspace.now_ms()

        def ask(one: tuple[TendedTable, TableTarget]) -> None:
            table, target = one
            # One that failed is looked at whatever is listed, and these questions may be what takes long.
            table.listed(target, None if table.waits(now) else self._versions(target), sweep=sweep)

        self._workers.each(tuple(zip(tables, targets, strict=True)), ask, stop=self._stop)

    def _tell_nothing(self, mapping: TableMapping) -> None:
        if not self._empty:
            tell_nothing(mapping, self._workspace.config, _log)
        self._empty = mapping.is_empty

    def _tell_gone(self, mapping: TableMapping) -> None:
        there = set(self._tables)
        gone = {t for t in self._ever.values() if t not in there and not mapping.problem_of(t.target.subject)}
        for table in sorted(gone ^ self._gone, key=lambda table: table.name):
            text = "no longer in the registry; the table stays as it is" if table in gone else "in the registry again"
            extra = {"table": table.name}
            _log.warning("table %s: its subject %s is %s", table.name, table.target.subject, text, extra=extra)
        self._gone = gone

    def _table(self, target: TableTarget) -> TendedTable:
        name = target.full_name
        if name not in self._ever:
            self._ever[name] = TendedTable(self._workspace, target, self._outbox, draw=self._draw)
        return self._ever[name]

    def _tell_problems(self, problems: tuple[UsageError, ...]) -> None:
        """Say what is new, and once an hour all that lasts: tables that were watched before may not be now."""
        now = self._workspace.now_ms()
        known = {str(problem) for problem in self._problems}
        again = now - self._problems_said_ms >= REMIND_MS
        for problem in problems:
            if again or str(problem) not in known:
                _log.error("%s", problem)
        if again or not known:
            self._problems_said_ms = now
        self._problems = problems

    def _versions(self, target: TableTarget) -> Listed:
        registry = self._workspace.registry
        try:
            keys = registry.versions(target.key_source) if target.key_source else ()
            return Listed(versions=registry.versions(target.subject), key_versions=keys)
        except (RegistryError, RegistryUnavailableError) as error:
            if is_silence(error, registry):
                raise
            # It is about this subject: the look at its table says what it means.
            return Listed(trouble=str(error))

    def _work(self) -> None:
        """Look at the tables that ask for it, then begin what takes long: to compact, to clean up, to admit very much.

        A table is only ever worked on by one thread at a time: what it remembers needs no guard.
        """
        waited = self._upkeep.recall()
        free = [table for table in self._tables if table not in self._upkeep.at_hand]
        self._workers.each(free, self._look, stop=self._stop)
        if not self._stop.is_set():
            ready = self.board.snapshot.ready or all(table.seen for table in self._tables)
            self.board.snapshot = replace(self.board.snapshot, ready=ready)
            if self._metastore.trouble:
                return
            wanting = (table for table in free if table.wants_upkeep)
            # New rows come before tidiness.
            order = sorted(wanting, key=lambda table: (not table.takes_long, waited.get(table, len(waited))))
            self._upkeep.begin(order)

    def _look(self, table: TendedTable) -> None:
        if self._metastore.trouble:
            # It may take its time not to answer, for each table again.
            return
        self._gives_a_sign()
        self._asks_where_it_fails(table, table.look)

    def _keep_up(self, table: TendedTable) -> None:
        self._asks_where_it_fails(table, table.keep_up)

    def _asks_where_it_fails(self, table: TendedTable, work: Callable[[], None]) -> None:
        failures = table.failures
        work()
        if table.failures > failures and not self._once:
            self._ask_metastore()

    def _is_over(self, error: BaseException | None) -> bool:
        """Tell whether an error is one of the registry's, and that answers by now."""
        registry = self._workspace.registry
        return isinstance(error, RegistryError | RegistryUnavailableError) and not is_silence(error, registry)

    def _gives_a_sign(self) -> None:
        # A compaction that hangs does so beside the ticks: it counts from when it began.
        self.board.alive_ms = min([self._workspace.now_ms(), *self._upkeep.at_hand.copy().values()])


class _Upkeep:
    """Compactions, cleaning up, admissions of very much: beside the ticks, however long, leaving a thread to looks."""

    def __init__(
        self,
        workers: Crew,
        stop: threading.Event,
        now_ms: Callable[[], int],
        keep_up: Callable[[TendedTable], None],
        is_over: Callable[[BaseException | None], bool],
    ) -> None:
        self.at_hand: dict[TendedTable, int] = {}
        """Tables whose upkeep goes on, and since when."""
        self._workers = workers
        self._stop = stop
        self._now_ms = now_ms
        self._keep_up = keep_up
        self._is_over = is_over
        # Guards the way from the one to the other.
        self._claim = threading.Lock()
        self._waiting: deque[TendedTable] = deque()
        self._rounds: list[Future[None]] = []

    def recall(self) -> Mapping[TendedTable, int]:
        """Begin no other for now: who waits may be looked at again; return these tables with their places."""
        with self._claim:
            waited = {table: place for place, table in enumerate(self._waiting)}
            self._waiting.clear()
        return waited

    def begin(self, tables: Iterable[TendedTable]) -> None:
        """Let these have theirs, one after the other, in as many threads as are to spare."""
        self._waiting.extend(tables)
        for ended in self._ended():
            # Maybe hours ago, before an outage that is over; its table is still due.
            if self._is_over(error := ended.exception()):
                _log.warning("what was done with a table ended with an error, and begins again: %s", error)
            else:
                ended.result()
        self._start(self._workers.size - 1 or 1)

    def finish(self) -> None:
        """Wait until all had theirs; nobody else wants a thread."""
        self._start(self._workers.size)
        finished(self._rounds)
        for ended in self._ended():
            ended.result()

    def _ended(self) -> Iterator[Future[None]]:
        for ended in [going for going in self._rounds if going.done()]:
            self._rounds.remove(ended)
            yield ended

    def _start(self, threads: int) -> None:
        for _ in range(min(len(self._waiting), threads - len(self._rounds))):
            self._rounds.append(self._workers.begin(self._round))

    def _round(self) -> None:
        while not (self._stop.is_set() or self._workers.interrupted):
            with self._claim:
                if not self._waiting:
                    return
                table = self._waiting.popleft()
                self.at_hand[table] = self._now_ms()
            try:
                self._keep_up(table)
            finally:
                del self.at_hand[table]
