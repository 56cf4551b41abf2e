"""Receivers that fail are tried again a bounded number of times and take nothing from the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemasync.app.announcing import LAST_MS, MOST_WAITING, TRIES, Outbox
from schemasync.core.events import SchemaEvent
from schemasync.errors import NotificationError

EVENT = SchemaEvent(
    table="student",
    subject="shop.student-value",
    from_version=1,
    to_version=2,
    verdict="evolve",
    time=datetime(2026, 11, 21, tzinfo=UTC),
)
HOUR = 3_600_000


class Receiver:
    """Fails as often as it is told to, then takes what it is given."""

    def __init__(self, *, failures: int = 0, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or NotificationError("refused")
        self.taken: list[int] = []
        self.tries = 0

    def send(self, event: SchemaEvent) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise self.error
        self.taken.append(event.to_version)


def at(now_ms: int) -> Callable[[], int]:
    return lambda: now_ms


def outbox(*receivers: Receiver) -> Outbox:
    return Outbox(receivers, first_ms=1000, draw=lambda: 1.0)


def test_an_event_goes_to_everyone_at_once() -> None:
    receivers = [Receiver(), Receiver()]
    outbox(*receivers).post(EVENT, now_ms=at(0))
    assert [r.taken for r in receivers] == [[2], [2]]


def test_in_the_end_all_that_waits_is_offered_once_more(caplog: pytest.LogCaptureFixture) -> None:
    troubled, gone = Receiver(failures=1), Receiver(failures=3)
    box = outbox(troubled, gone)
    for number in (2, 3):
        box.post(replace(EVENT, to_version=number), now_ms=at(0))
    assert (box.finish(lambda: 0), troubled.taken, gone.taken, gone.tries, box.waiting) == (2, [2, 3], [], 2, 0)
    lost = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [message.partition(": ")[2] for message in lost] == ["refused"] * 2
    assert box.finish(lambda: 0) == 0


def test_a_receiver_that_is_slow_does_not_keep_the_process() -> None:
    slow = Receiver(failures=1)
    box = outbox(slow)
    for number in (2, 3, 4):
        box.post(replace(EVENT, to_version=number), now_ms=at(0))
    clock = iter((0, 0, LAST_MS - 1, LAST_MS))
    assert (box.finish(lambda: next(clock)), slow.taken) == (1, [2, 3])


@pytest.mark.parametrize("error", [NotificationError("refused"), ValueError("closed file")])
def test_a_receiver_that_fails_gets_the_event_later_and_others_at_once(error: Exception) -> None:
    failing, good = Receiver(failures=1, error=error), Receiver()
    box = outbox(failing, good)
    box.post(EVENT, now_ms=at(0))
    box.deliver(now_ms=at(999))
    before = (list(failing.taken), list(good.taken), box.waiting)
    box.deliver(now_ms=at(1000))
    assert (before, failing.taken, good.taken, box.waiting) == (([], [2], 1), [2], [2], 0)


def test_a_receiver_that_is_slow_to_fail_is_left_alone_from_then_on() -> None:
    failing = Receiver(failures=2)
    box = outbox(failing)
    clock = iter((0, 40_000, 40_001))
    box.post(EVENT, now_ms=lambda: next(clock))
    assert (failing.tries, box.waiting) == (1, 1)


def test_order_is_kept_while_a_receiver_fails() -> None:
    failing = Receiver(failures=1)
    box = outbox(failing)
    for version in (2, 3, 4):
        box.post(replace(EVENT, to_version=version), now_ms=at(0))
    box.deliver(now_ms=at(1000))
    assert failing.taken == [2, 3, 4]


def test_an_event_that_nobody_takes_is_given_up_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    failing = Receiver(failures=TRIES)
    box = outbox(failing)
    box.post(EVENT, now_ms=at(0))
    for hour in range(1, 2 * TRIES):
        box.deliver(now_ms=at(hour * HOUR))
    given_up = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert (failing.tries, box.waiting, given_up) == (
        TRIES,
        0,
        [f"event {EVENT.id} of table student is given up: refused"],
    )


def test_every_event_gets_all_its_tries() -> None:
    failing = Receiver(failures=TRIES - 1)
    box = outbox(failing)
    box.post(EVENT, now_ms=at(0))
    for hour in range(1, TRIES):
        box.deliver(now_ms=at(hour * HOUR))
    failing.failures = 1
    box.post(replace(EVENT, to_version=3), now_ms=at(TRIES * HOUR))
    box.deliver(now_ms=at(TRIES * HOUR + 1000))
    assert failing.taken == [2, 3]


def test_no_more_than_so_many_events_wait() -> None:
    box = outbox(Receiver(failures=1))
    for version in range(MOST_WAITING + 2):
        box.post(replace(EVENT, to_version=version), now_ms=at(0))
    assert box.waiting == MOST_WAITING
