"""Several tables at once: results in order, a bound that holds, and one end for all of them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemasync.app.crew import crew
from schemasync.app.workspace import Workspace
from tests.app.still import Still

PATIENCE_SECONDS = 20.0
SOMEWHERE: Any = SimpleNamespace(location="/lake/table")


@pytest.fixture
def three(tmp_path: Path) -> Workspace:
    return Still(tmp_path, spark={"tables_at_once": 3}).workspace


def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """Return the futures of all that is given to threads from now on, in order."""
    futures: list[Future[Any]] = []
    submit = ThreadPoolExecutor.submit

    def submit_and_keep(threads: ThreadPoolExecutor, *work: Any) -> Future[Any]:
        futures.append(submit(threads, *work))
        return futures[-1]

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_and_keep)
    return futures


class Meter:
    """Counts who is at work."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def work(self, item: int) -> int:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.01)
        with self._lock:
            self._now -= 1
        return item


def test_results_come_in_the_order_of_the_tables_whatever_finishes_first(three: Workspace) -> None:
    last = threading.Event()

    def work(item: int) -> int:
        assert item == 2 or last.wait(PATIENCE_SECONDS)
        last.set()
        return item * 10

    with crew(three) as workers:
        assert workers.each(range(3), work) == (0, 10, 20)


def test_so_many_are_at_work_and_never_more(three: Workspace) -> None:
    meeting, meter = threading.Barrier(3), Meter()

    def work(item: int) -> int:
        if item < 3:
            meeting.wait(PATIENCE_SECONDS)
        return meter.work(item)

    with crew(three) as workers:
        workers.each(range(12), work)
    assert meter.most == 3


def test_one_at_a_time_is_done_by_the_caller_itself(tmp_path: Path) -> None:
    with crew(Still(tmp_path, spark={"tables_at_once": 1}).workspace) as workers:
        assert set(workers.each(range(3), lambda _: threading.get_ident())) == {threading.get_ident()}


def test_threads_stay_from_run_to_run_and_end_with_the_crew(three: Workspace) -> None:
    meeting = threading.Barrier(3)

    def who(_: int) -> threading.Thread:
        meeting.wait(PATIENCE_SECONDS)
        return threading.current_thread()

    with crew(three) as workers:
        runs = [set(workers.each(range(3), who)) for _ in range(2)]
    assert (runs[0], len(runs[0]), [t for t in runs[0] if t.is_alive()]) == (runs[1], 3, [])


def test_an_error_begins_no_other_table_and_is_raised_once_those_at_hand_are_finished(
    three: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, futures, finished = threading.Barrier(3), submitted(monkeypatch), []

    def work(item: int) -> None:
        meeting.wait(PATIENCE_SECONDS)
        if item == 0:
            raise KeyError("about all tables")
        futures[0].exception(PATIENCE_SECONDS)
        finished.append(item)

    with crew(three) as workers, pytest.raises(KeyError, match="about all tables"):
        workers.each(range(9), work)
    assert sorted(finished) == [1, 2]


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_stop_begins_no_other_table_and_gives_what_was_done(tmp_path: Path, at_once: int) -> None:
    stop, meeting = threading.Event(), threading.Barrier(at_once)

    def work(item: int) -> int:
        meeting.wait(PATIENCE_SECONDS)
        stop.set()
        return item

    with crew(Still(tmp_path, spark={"tables_at_once": at_once}).workspace) as workers:
        assert workers.each(range(9), work, stop=stop) == tuple(range(at_once))


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt here, and nothing more: Spark, too, has a handler for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize(
    "step", [lambda w: w.progress("table", "next step"), lambda w: w.storage(SOMEWHERE)], ids=["told", "storage"]
)
def test_an_interrupt_gives_up_what_is_at_hand_at_its_next_step_and_begins_no_other(
    three: Workspace, step: Callable[[Workspace], object]
) -> None:
    told: list[str] = []
    main = threading.get_ident()
    meeting = threading.Barrier(3, action=lambda: signal.pthread_kill(main, signal.SIGINT))
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        step(workers.workspace)
        meeting.wait(PATIENCE_SECONDS)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            step(workers.workspace)
            time.sleep(0.01)
        told.append("went on")

    with crew(replace(three, progress=lambda *_: None)) as workers, pytest.raises(KeyboardInterrupt):
        workers.each(range(9), work)
    assert (sorted(begun), told) == ([0, 1, 2], [])


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_ends_the_pauses_of_what_is_at_hand(three: Workspace) -> None:
    main = threading.get_ident()
    meeting = threading.Barrier(3, action=lambda: signal.pthread_kill(main, signal.SIGINT))
    woken: list[bool] = []

    def work(_: int) -> None:
        meeting.wait(PATIENCE_SECONDS)
        woken.append(workers.workspace.stop.wait(PATIENCE_SECONDS))

    with crew(three) as workers, pytest.raises(KeyboardInterrupt):
        workers.each(range(9), work)
    assert woken == [True] * 3


def test_every_thread_enters_its_lane_before_it_works_and_lanes_outlive_the_threads(three: Workspace) -> None:
    entered: set[threading.Thread] = set()
    left: list[threading.Thread] = []
    meeting = threading.Barrier(3)

    @contextmanager
    def lanes() -> Iterator[Callable[[], None]]:
        yield lambda: entered.add(threading.current_thread())
        left.extend(thread for thread in entered if thread.is_alive())

    def work(_: int) -> bool:
        meeting.wait(PATIENCE_SECONDS)
        return threading.current_thread() in entered

    with crew(replace(three, lanes=lanes)) as workers:
        assert workers.each(range(3), work) == (True, True, True)
    assert (len(entered), left) == (3, [])
