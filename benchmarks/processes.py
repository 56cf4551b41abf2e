"""How a benchmark's processes end: told to stop, it puts away what it began, and nothing outlives it.

Commands run by way of `stoppable`; the process of a `helper` ends with the one that made it, whatever becomes of that.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Final, NoReturn

import psutil

INTERRUPTED: Final = 130
"""Exit code of whoever was told to stop, by Ctrl-C or SIGTERM."""

_ENDING_S: Final = 30.0
"""A JVM that is told to end takes a second or two."""


class ToldToStopError(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, but that this process alone was told, while a terminal tells all of its processes."""


def stoppable(main: Callable[[], int]) -> int:
    """Return what a command returns; SIGTERM interrupts it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


def _stop(*_: Any) -> NoReturn:
    # Whoever is putting things away is left in peace.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise ToldToStopError


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off that this process is told to stop until what it begins here is known, so that it can be ended, too."""
    told: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: told.append(got)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for first in told[:1]:
        signal.raise_signal(first)


def helper() -> ProcessPoolExecutor:
    """Return a pool of one process, which starts with its first task and ends when this process is gone."""
    return ProcessPoolExecutor(1, get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
    # What a session's JVM reads from ends with it, and so does the JVM.
    os._exit(1)


def end(helpers: Collection[ProcessPoolExecutor], *, at_once: bool) -> None:
    """End helpers and wait for all that runs below them: with what they do done, or at once."""
    # Public from Python 3.14 on, as terminate_workers.
    processes = [process for helper in helpers for process in (helper._processes or {}).values()]
    below = [found for process in processes for found in _below(process.pid)]
    for process in processes if at_once else ():
        process.terminate()
    for helper in helpers:
        helper.shutdown()
    latest = time.monotonic() + _ENDING_S
    while any(map(_runs, below)) and time.monotonic() < latest:
        time.sleep(0.05)


def _below(pid: int | None) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(pid).children(recursive=True)
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
