"""Telling of schema changes without ever being held up or stopped by whoever wants to know.

Used by `schemasync.app.watching`. Each receiver has a queue of its own: one that fails is left alone for a while, gets
a bounded number of tries per event, and takes nothing from the others. Several tables may post at once; one thread at a
time delivers, and the others do not wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from schemasync.core.events import SchemaEvent
from schemasync.core.ports import Notifier
from schemasync.core.watching import Backoff

TRIES: Final = 5
"""How often one event is offered to one receiver, whose own retries come on top."""

MOST_WAITING: Final = 1000
"""Events that wait for one receiver; beyond it the oldest are given up."""

LAST_MS: Final = 30_000
"""So long one receiver is offered what waits when the process ends."""

PATIENCE_MS: Final = 600_000
"""Longest pause between two tries of a receiver that fails."""

_log: Final = logging.getLogger("schemasync.watch")


@dataclass(slots=True)
class _Queue:
    notifier: Notifier
    events: deque[SchemaEvent] = field(default_factory=deque)
    tries: int = 0
    backoff: Backoff = field(default_factory=Backoff)


class Outbox:
    """Events on their way to all receivers. ``first_ms`` is the pause after a first failure; ``draw`` is random."""

    def __init__(self, notifiers: Sequence[Notifier], *, first_ms: int, draw: Callable[[], float]) -> None:
        self._queues = [_Queue(notifier) for notifier in notifiers]
        self._first_ms = first_ms
        self._draw = draw
        # Whoever holds it is the only one that takes from the queues; to append to a deque needs no lock.
        self._delivering = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many deliveries are still to be made."""
        return sum(len(queue.events) for queue in self._queues)

    def post(self, event: SchemaEvent, *, now_ms: Callable[[], int]) -> None:
        """Take one event for all receivers, and deliver what can be delivered now."""
        for queue in self._queues:
            queue.events.append(event)
        self.deliver(now_ms=now_ms)

    def deliver(self, *, now_ms: Callable[[], int]) -> None:
        """Offer waiting events to all receivers that are not left alone for now, by the clock ``now_ms``. Never raises.

        While another thread delivers, that is left to it, or to the next call: the watcher makes one after every tick.
        """
        if not self._delivering.acquire(blocking=False):
            return
        try:
            for queue in self._queues:
                while queue.events and not queue.backoff.waits(now_ms()):
                    self._offer(queue, now_ms)
                while len(queue.events) > MOST_WAITING:
                    _give_up(queue, "too many events wait for this receiver")
        finally:
            self._delivering.release()

    def finish(self, now_ms: Callable[[], int]) -> int:
        """Offer all that waits a last time, also to whoever is left alone for now; return how many are given up.

        No event is offered any more once that took `LAST_MS` for one receiver, by the clock ``now_ms``.
        """
        given_up = 0
        with self._delivering:
            for queue in self._queues:
                why = _emptied(queue, now_ms)
                given_up += len(queue.events)
                while queue.events:
                    _give_up(queue, why)
        return given_up

    def _offer(self, queue: _Queue, now_ms: Callable[[], int]) -> None:
        event = queue.events[0]
        try:
            queue.notifier.send(event)
        except Exception as error:
            # Whatever is wrong with a receiver, known (NotificationError) or not, is no reason to stop watching.
            queue.tries += 1
            # To fail may have taken longer than the pause.
            queue.backoff = queue.backoff.failed(
                now_ms=now_ms(), first_ms=self._first_ms, longest_ms=PATIENCE_MS, draw=self._draw()
            )
            if queue.tries >= TRIES:
                _give_up(queue, str(error))
            else:
                _log.warning("%s; it is tried again", error, extra={"table": event.table, "event": event.id})
        else:
            queue.events.popleft()
            queue.tries, queue.backoff = 0, Backoff()


def _emptied(queue: _Queue, now_ms: Callable[[], int]) -> str:
    """Offer a receiver its events one by one; return why it does not get those that are left."""
    until = now_ms() + LAST_MS
    while queue.events and now_ms() < until:
        try:
            queue.notifier.send(queue.events[0])
        except Exception as error:
            # Each of the others would wait as long for it.
            return str(error)
        queue.events.popleft()
    return "the process ends, and this receiver is slow"


def _give_up(queue: _Queue, why: str) -> None:
    event = queue.events.popleft()
    queue.tries = 0
    _log.error(
        "event %s of table %s is given up: %s",
        event.id,
        event.table,
        why,
        extra={"table": event.table, "event": event.id},
    )
