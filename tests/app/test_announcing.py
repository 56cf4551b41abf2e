"""Receivers that fail or are slow are tried for a day, take nothing from the others and hold nobody up."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from schemasync.app.announcing import LAST_MS, LONGEST_MS, MOST_WAITING, ONCE_MS, PASSED_AFTER, Outbox
from schemasync.core.events import SchemaEvent
from schemasync.errors import NotificationError

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
EVENT = SchemaEvent(
    table="student", subject="shop.student-value", from_version=1, to_version=2, verdict="evolve", time=NOON
)
START = round(NOON.timestamp() * 1000)
HOUR = 3_600_000


class Receiver:
    """Fails as often as it is told to, and always for poisonous versions; else takes what it is given."""

    def __init__(self, *, failures: int = 0, error: Exception | None = None, poison: Collection[int] = ()) -> None:
        self.failures = failures
        self.error = error or NotificationError("refused")
        self.poison = poison
        self.taken: list[int] = []
        self.tries = 0

    def send(self, event: SchemaEvent) -> None:
        self.tries += 1
        self.failures -= 1
        if self.failures >= 0 or event.to_version in self.poison:
            raise self.error
        self.taken.append(event.to_version)


class Box:
    """An outbox, its clock, and what it is done with. Without its threads, which `offer` does the work of."""

    def __init__(self, *notifiers: Receiver) -> None:
        self.now_ms = START
        self.outbox = Outbox(notifiers, first_ms=1000, draw=lambda: 1.0, now_ms=lambda: self.now_ms)
        self.done: list[int] = []

    def post(self, *versions: int) -> None:
        for version in versions:
            self.outbox.post(replace(EVENT, to_version=version), done=partial(self.done.append, version))

    def offer(self) -> None:
        for receiver in self.outbox.receivers:
            receiver.offer()

    def finish(self) -> int:
        return self.outbox.finish(threading.Event())


def lost(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_an_event_is_done_when_everyone_has_it() -> None:
    receivers = [Receiver(), Receiver(failures=1)]
    box = Box(*receivers)
    box.post(2)
    box.offer()
    before = list(box.done)
    box.offer()
    assert (before, box.done, [r.taken for r in receivers]) == ([], [2], [[2], [2]])


def test_an_event_for_nobody_is_done() -> None:
    box = Box()
    box.post(2)
    assert (box.done, box.outbox.waiting) == ([2], 0)


@pytest.mark.parametrize("error", [NotificationError("refused"), ValueError("closed file")])
def test_a_receiver_that_fails_takes_nothing_from_the_others(error: Exception) -> None:
    failing, good = Receiver(failures=1, error=error), Receiver()
    box = Box(failing, good)
    box.post(2, 3)
    box.offer()
    before = (list(failing.taken), list(good.taken), box.outbox.waiting)
    box.offer()
    assert (before, failing.taken, good.taken, box.outbox.waiting) == (([], [2, 3], 2), [2, 3], [2, 3], 0)


def test_an_event_that_nobody_takes_is_given_up_after_a_day_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    failing = Receiver(failures=1000)
    box = Box(failing)
    box.post(2)
    while box.now_ms < START + LONGEST_MS:
        box.offer()
        box.now_ms += HOUR
    before = (box.outbox.waiting, list(box.done), lost(caplog))
    box.offer()
    assert before == (1, [], [])
    assert (box.outbox.waiting, box.outbox.given_up, box.done) == (0, 1, [2])
    assert lost(caplog) == [f"event {EVENT.id} of table student is given up: refused"]


def test_an_event_that_is_old_is_tried_once_more() -> None:
    good = Receiver()
    box = Box(good)
    box.outbox.post(replace(EVENT, time=NOON - timedelta(days=3)))
    box.offer()
    assert (good.taken, box.outbox.given_up) == ([2], 0)


def test_order_is_kept_while_a_receiver_fails() -> None:
    failing = Receiver(failures=2 * PASSED_AFTER)
    box = Box(failing)
    box.post(2, 3, 4)
    for _ in range(2 * PASSED_AFTER):
        box.offer()
    assert failing.taken == [2, 3, 4]


def test_an_event_that_a_receiver_refuses_for_itself_does_not_hold_up_the_others() -> None:
    picky = Receiver(poison=[2])
    box = Box(picky)
    box.post(2, 3, 4)
    for _ in range(PASSED_AFTER - 1):
        box.offer()
    before = list(picky.taken)
    box.offer()
    assert (before, picky.taken, box.outbox.waiting) == ([], [3, 4], 1)


@pytest.mark.parametrize(
    ("poison", "rounds"),
    [
        ([2, 3, 4, 6], [[7, 5], [7, 5], [7, 5]]),
        ([2, 3, 4, 6, 7], [[], [], [5]]),
    ],
    ids=["the newest is taken", "all but one are refused"],
)
def test_several_events_that_a_receiver_refuses_do_not_hold_up_the_others(
    poison: list[int], rounds: list[list[int]]
) -> None:
    picky = Receiver(poison=poison)
    box = Box(picky)
    box.post(2, 3, 4, 5, 6, 7)
    taken = []
    for _ in range(PASSED_AFTER + 2):
        box.offer()
        taken.append(list(picky.taken))
    box.post(8)
    box.offer()
    assert taken[PASSED_AFTER - 1 :] == rounds
    assert (picky.taken, box.outbox.waiting) == ([*rounds[-1], 8], len(poison))


def test_order_is_kept_where_a_receiver_is_down_for_long() -> None:
    asked_by_round = 3
    failing = Receiver(failures=PASSED_AFTER - 1 + 5 * asked_by_round)
    box = Box(failing)
    box.post(2, 3, 4)
    while box.outbox.waiting:
        box.offer()
    assert failing.taken == [2, 3, 4]


def test_a_receiver_that_is_down_is_not_asked_for_every_event() -> None:
    down = Receiver(failures=1000)
    box = Box(down)
    box.post(2, 3, 4)
    for _ in range(PASSED_AFTER):
        box.offer()
    assert down.tries == PASSED_AFTER + 2


def test_no_more_than_so_many_events_wait(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(Receiver())
    box.post(*range(MOST_WAITING + 2))
    assert (box.outbox.waiting, box.outbox.given_up, box.done, len(lost(caplog))) == (MOST_WAITING, 2, [0, 1], 2)


class Slow(Receiver):
    """Takes an event and does not come back before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()

    def send(self, event: SchemaEvent) -> None:
        self.begun.set()
        assert self.may.wait(60)
        super().send(event)


def test_a_receiver_that_is_slow_holds_up_neither_who_posts_nor_the_others() -> None:
    slow, quick = Slow(), Receiver()
    box = Box(slow, quick)
    box.outbox.start()
    box.post(2)
    assert slow.begun.wait(60)
    box.post(3)
    while quick.taken != [2, 3]:
        threading.Event().wait(0.01)
    before = list(slow.taken)
    slow.may.set()
    assert (box.finish(), before, slow.taken, box.done) == (0, [], [2, 3], [2, 3])


def test_a_receiver_that_failed_is_left_alone_for_a_while_and_then_tried_again() -> None:
    failing = Receiver(failures=1)
    box = Box(failing)
    box.post(2)
    box.offer()
    box.outbox.start()
    # A thread that does not wait for the clock would have it by now.
    threading.Event().wait(0.05)
    before = list(failing.taken)
    box.now_ms += 1000
    box.post(3)
    while failing.taken != [2, 3]:
        threading.Event().wait(0.01)
    assert (before, box.finish()) == ([], 0)


def test_in_the_end_all_that_waits_is_offered_once_more(caplog: pytest.LogCaptureFixture) -> None:
    troubled, gone = Receiver(failures=1), Receiver(failures=3)
    box = Box(troubled, gone)
    box.post(2, 3)
    box.offer()
    box.outbox.start()
    assert (box.finish(), troubled.taken, gone.taken, gone.tries, box.done) == (2, [2, 3], [], 3, [])
    assert [message.partition(": ")[2] for message in lost(caplog)] == ["refused"] * 2
    assert all("is not delivered yet" in message for message in lost(caplog))
    assert box.finish() == 0


def test_an_event_that_is_refused_in_the_end_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """A run of ``watch --once`` has no other time for them, and neither has the next one."""
    picky = Receiver(poison=(2,))
    box = Box(picky)
    box.post(2, 3, 4)
    box.offer()
    box.outbox.start()
    assert (box.finish(), picky.taken) == (1, [3, 4])
    assert [message.partition(": ")[2] for message in lost(caplog)] == ["refused"]


def test_what_was_not_offered_in_the_end_is_said_so(caplog: pytest.LogCaptureFixture) -> None:
    gone = Receiver(failures=9)
    box = Box(gone)
    box.post(2, 3, 4, 5)
    box.offer()
    box.outbox.start()
    assert (box.finish(), gone.tries) == (4, 4)
    because = [message.partition(": ")[2] for message in lost(caplog)]
    assert because == ["refused", "refused", "it was not offered: refused", "refused"]


@pytest.mark.parametrize(("stopped", "patience"), [(True, LAST_MS), (False, ONCE_MS)])
def test_a_receiver_that_is_slow_does_not_keep_the_process(
    caplog: pytest.LogCaptureFixture, *, stopped: bool, patience: int
) -> None:
    slow, stop = Slow(), threading.Event()
    if stopped:
        stop.set()
    box = Box(slow)
    box.outbox.start()
    box.post(2, 3)
    assert slow.begun.wait(60)
    clock = itertools.count(START, patience // 4)
    box.outbox._now_ms = lambda: next(clock)
    missed = box.outbox.finish(stop)
    slow.may.set()
    box.outbox.receivers[0].thread.join(60)
    # The one at hand may arrive; none is begun.
    assert (missed, slow.taken, next(clock), len(lost(caplog))) == (2, [2], START + 5 * patience // 4, 2)
