"""Telling of schema changes without ever being held up or stopped by whoever wants to know.

Used by `schemasync.app.watching`. Each receiver has a queue and a thread of its own: one that is slow or fails takes
nothing from the others, and nobody who posts waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from schemasync.core.events import SchemaEvent
from schemasync.core.ports import Notifier
from schemasync.core.watching import Backoff

LONGEST_MS: Final = 24 * 3_600_000
"""An event that a receiver refuses is given up once it is that old."""

PASSED_AFTER: Final = 5
"""Tries after which the events behind one are offered, too: maybe the receiver refuses nothing but this one."""

MOST_WAITING: Final = 1000
"""Events that wait for one receiver; beyond it the oldest are given up."""

LAST_MS: Final = 10_000
"""So long receivers are offered what waits when a stop was asked for: whoever asks for it kills after a while."""

ONCE_MS: Final = 120_000
"""The same where nobody asked: nothing but this is left to do."""

PATIENCE_MS: Final = 600_000
"""Longest pause between two tries of a receiver that fails."""

_NAP_SECONDS: Final = 0.05

_log: Final = logging.getLogger("schemasync.watch")


class _Letter:
    """An event on its way; ``done`` is called once, when nobody is to get it any more."""

    def __init__(self, event: SchemaEvent, receivers: int, done: Callable[[], None]) -> None:
        self.event = event
        self._left = receivers
        self._done = done
        self._guard = threading.Lock()

    def settled(self) -> None:
        """Take note that one receiver has it, or never gets it."""
        with self._guard:
            self._left -= 1
            over = self._left == 0
        if over:
            self._done()


class Receiver:
    """One notifier, what waits for it, and when it is tried again."""

    def __init__(
        self, notifier: Notifier, *, first_ms: int, draw: Callable[[], float], now_ms: Callable[[], int]
    ) -> None:
        self.given_up = 0
        self.thread = threading.Thread(target=self._work, name="notify", daemon=True)
        self._notifier = notifier
        self._first_ms = first_ms
        self._draw = draw
        self._now_ms = now_ms
        # Guards the queue and the flags; not held while something is sent.
        self._turn = threading.Condition()
        self._letters: deque[_Letter] = deque()
        # Refused when they were offered before an older one: what is behind them is offered first then.
        self._passed: set[_Letter] = set()
        self._tries = 0
        self._backoff = Backoff()
        self._closing = False
        self._over = False
        self._why = "the process ends, and this receiver is slow"

    @property
    def waiting(self) -> int:
        """How many events it has not taken yet."""
        return len(self._letters)

    def take(self, letter: _Letter) -> None:
        """Queue an event."""
        with self._turn:
            self._letters.append(letter)
            surplus = self._letters[0] if len(self._letters) > MOST_WAITING else None
            self._turn.notify()
        if surplus is not None:
            self._give_up(surplus, "too many events wait for this receiver")

    def offer(self) -> None:
        """Offer what waits, the oldest first, until something is refused."""
        with self._turn:
            waiting = tuple(self._letters)
        for letter in waiting:
            error = self._sent(letter)
            if error is not None:
                self._refused(letter, error, waiting)
                return
            self._tries, self._backoff = 0, Backoff()

    def close(self) -> None:
        """Let what waits be offered a last time, also where it was left alone for now."""
        with self._turn:
            self._closing = True
            self._turn.notify()

    def abandon(self) -> int:
        """Begin no other delivery; return how many events stay behind, and say so of each."""
        with self._turn:
            self._over = True
            left = tuple(self._letters)
            self._letters.clear()
        for letter in left:
            refused = letter is left[0] or letter in self._passed
            why = self._why if refused else f"it was not offered: {self._why}"
            _tell_missed(letter.event, "not delivered yet", why)
        return len(left)

    def _work(self) -> None:
        while self._is_due():
            self.offer()
        if self._letters:
            self.offer()

    def _is_due(self) -> bool:
        """Wait until there is something to offer; return False once nothing is to be offered but a last time."""
        with self._turn:
            while not self._closing:
                now = self._now_ms()
                pause = self._backoff.until_ms - now if self._backoff.waits(now) else 0
                if self._letters and not pause:
                    return True
                self._turn.wait(pause / 1000 if self._letters else None)
            return False

    def _sent(self, letter: _Letter) -> Exception | None:
        """Send one event, unless all is over; return what went wrong."""
        if self._over:
            return None
        try:
            self._notifier.send(letter.event)
        except Exception as error:
            # Whatever is wrong with a receiver, known (NotificationError) or not, is no reason to stop telling it.
            return error
        self._remove(letter)
        return None

    def _refused(self, letter: _Letter, error: Exception, waiting: Sequence[_Letter]) -> None:
        self._tries += 1
        self._why = str(error)
        # To fail may have taken longer than the pause.
        now = self._now_ms()
        self._backoff = self._backoff.failed(
            now_ms=now, first_ms=self._first_ms, longest_ms=PATIENCE_MS, draw=self._draw()
        )
        event = letter.event
        if now - event.time.timestamp() * 1000 >= LONGEST_MS:
            self._give_up(letter, str(error))
            self._tries = 0
        elif self._tries >= PASSED_AFTER or self._closing:
            # In the end there is no later: a run by cron would come no further for a day.
            _log.warning("%s; others are offered before it", error, extra={"table": event.table, "event": event.id})
            self._offer_behind(waiting[waiting.index(letter) + 1 :])
        else:
            _log.warning("%s; it is tried again", error, extra={"table": event.table, "event": event.id})

    def _offer_behind(self, others: Sequence[_Letter]) -> None:
        """Offer what is behind an event that is refused: the next that was not refused yet, and the newest.

        Maybe all are refused. Where one of these is taken that is not so, and all are offered.
        """
        fresh = [other for other in others if other not in self._passed] or others
        left = list(others)
        for probe in dict.fromkeys((*fresh[:1], *fresh[-1:])):
            left.remove(probe)
            if self._taken(probe):
                for other in left:
                    self._taken(other)
                return

    def _taken(self, letter: _Letter) -> bool:
        """Send one event from behind another; take note where it is refused, too."""
        if self._sent(letter) is None:
            return True
        with self._turn:
            # Too many may wait by now, and then it is gone.
            if letter in self._letters:
                self._passed.add(letter)
        return False

    def _give_up(self, letter: _Letter, why: str) -> None:
        if self._remove(letter):
            self.given_up += 1
            _tell_missed(letter.event, "given up", why)

    def _remove(self, letter: _Letter) -> bool:
        """Take an event off the queue; return whether it was there: its thread may have been slower than others."""
        with self._turn:
            there = letter in self._letters
            if there:
                self._letters.remove(letter)
                self._passed.discard(letter)
        if there:
            letter.settled()
        return there


def _tell_missed(event: SchemaEvent, what: str, why: str) -> None:
    extra = {"table": event.table, "event": event.id}
    _log.error("event %s of table %s is %s: %s", event.id, event.table, what, why, extra=extra)


class Outbox:
    """Events on their way to all receivers.

    ``first_ms`` is the pause after a first failure; ``draw`` is random. Nothing is delivered before `start`.
    """

    def __init__(
        self, notifiers: Sequence[Notifier], *, first_ms: int, draw: Callable[[], float], now_ms: Callable[[], int]
    ) -> None:
        self.receivers = tuple(Receiver(n, first_ms=first_ms, draw=draw, now_ms=now_ms) for n in notifiers)
        self._now_ms = now_ms

    @property
    def waiting(self) -> int:
        """How many deliveries are still to be made."""
        return sum(receiver.waiting for receiver in self.receivers)

    @property
    def given_up(self) -> int:
        """How many deliveries will never be made."""
        return sum(receiver.given_up for receiver in self.receivers)

    def start(self) -> None:
        """Deliver from now on."""
        for receiver in self.receivers:
            receiver.thread.start()

    def post(self, event: SchemaEvent, *, done: Callable[[], None] = lambda: None) -> None:
        """Take one event for all receivers; ``done`` is called when each has it, or never gets it, in any thread."""
        letter = _Letter(event, len(self.receivers), done)
        for receiver in self.receivers:
            receiver.take(letter)
        if not self.receivers:
            done()

    def finish(self, stop: threading.Event) -> int:
        """Offer all that waits a last time; return how many deliveries were not made, and those that never will be.

        No other is begun once that took `LAST_MS`, or `ONCE_MS` where ``stop`` is not set.
        """
        begun = self._now_ms()
        for receiver in self.receivers:
            receiver.close()
        for receiver in self.receivers:
            while receiver.thread.is_alive() and self._now_ms() - begun < (LAST_MS if stop.is_set() else ONCE_MS):
                receiver.thread.join(_NAP_SECONDS)
        return self.given_up + sum(receiver.abandon() for receiver in self.receivers)
