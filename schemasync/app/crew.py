"""Several tables at once: a bounded number of threads, results in the order of the tables, one end for all of them.

Used by apply, compact, vacuum and the watcher. What a table's work raises on purpose is part of its result, so what
reaches this module is about all tables: then no other table is begun, and those at hand are finished first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

from schemasync.app.inspecting import map_tables, select
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.mapping import TableMapping, TableTarget

_NAP_SECONDS: Final = 0.2
"""So long an interrupt may go unseen."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Crew:
    """The threads of one run; see `crew`."""

    def __init__(self, workspace: Workspace, threads: ThreadPoolExecutor | None) -> None:
        """Work in these threads, or in the caller's where there are none."""
        self._threads = threads
        self._interrupted = threading.Event()
        self._given = workspace
        self.workspace = replace(workspace, progress=self._progress, storage=self._storage)

    def each(
        self, items: Sequence[_Item], work: Callable[[_Item], _Result], *, stop: threading.Event | None = None
    ) -> tuple[_Result, ...]:
        """Do the work for every item that is begun before ``stop`` is set; return the results in the items' order.

        Work that raises ends it: no other item is begun, and the error is raised once those at hand are finished. An
        interrupt ends it, too, and all pauses; work that uses `workspace` is given up when it next tells of a step or
        asks for the storage.
        """
        stopped = stop or threading.Event()
        if self._threads is None or len(items) < 2:
            return tuple(work(item) for item in items if not stopped.is_set())
        failed = threading.Event()
        at_hand: list[_Item] = []

        def begin(item: _Item) -> tuple[_Result, ...]:
            at_hand.append(item)
            try:
                return () if stopped.is_set() or failed.is_set() else (work(item),)
            except BaseException:
                failed.set()
                raise
            finally:
                at_hand.remove(item)

        futures: list[Future[tuple[_Result, ...]]] = []
        try:
            # One by one: an interrupt may come here, too.
            for item in items:
                futures.append(self._threads.submit(begin, item))
            finished(futures)
        except BaseException:
            failed.set()
            self.give_up()
            wait(futures)
            # Where it came while a thread was started, nobody else knows of that.
            while at_hand:
                time.sleep(_NAP_SECONDS)
            raise
        return tuple(result for future in futures for result in future.result())

    @property
    def size(self) -> int:
        """How many tables are worked on at once."""
        return self.workspace.config.spark.tables_at_once

    @property
    def interrupted(self) -> bool:
        """Whether all work was given up."""
        return self._interrupted.is_set()

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Do the work beside whatever the caller does next; before that, where there are no threads."""
        if self._threads is not None:
            return self._threads.submit(work)
        work()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def give_up(self) -> None:
        """End all pauses, and all work that uses `workspace` when it next tells of a step or asks for the storage."""
        self._interrupted.set()
        self._given.stop.set()

    def _progress(self, table: str, text: str) -> None:
        self._go_on()
        self._given.progress(table, text)

    def _storage(self, target: TableTarget) -> Storage:
        self._go_on()
        return self._given.storage(target)

    def _go_on(self) -> None:
        """Raise what an interrupt raises in the main thread: work may be given up wherever it may be killed."""
        if self._interrupted.is_set():
            raise KeyboardInterrupt


@contextmanager
def crew(workspace: Workspace) -> Iterator[Crew]:
    """Open threads for as many tables at once as the configuration says.

    The context ends once their work is done; where it ends with an error, work is given up as far as it can be.
    """
    size = workspace.config.spark.tables_at_once
    if size == 1:
        yield Crew(workspace, None)
        return
    with workspace.lanes() as enter, ThreadPoolExecutor(size, "tables", initializer=enter) as threads:
        opened = Crew(workspace, threads)
        try:
            yield opened
        except BaseException:
            opened.give_up()
            raise


def each_table(
    workspace: Workspace,
    names: Sequence[str],
    work: Callable[[Workspace, TableTarget], _Result],
    *,
    among: Container[str] | None = None,
) -> tuple[tuple[_Result, ...], TableMapping]:
    """Do the work for the named tables, all where none is named; return the results, and what the registry has.

    ``among`` are the only ones that it is done for (``database.table``). So many at once as the configuration says,
    results in its order; work puts what goes wrong with one table into its result.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    targets = [t for t in select(mapping, names) if among is None or t.full_name in among]
    with crew(workspace) as workers:
        return workers.each(targets, lambda target: work(workers.workspace, target)), mapping


def finished(futures: Iterable[Future[Any]]) -> None:
    """Wait for all of them; an interrupt is noticed meanwhile."""
    # One that comes right before this thread falls asleep does not wake it.
    while wait(futures, timeout=_NAP_SECONDS).not_done:
        pass
