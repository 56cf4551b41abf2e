"""Something that all tables need, and that does not answer: what is said of it, and when it is asked again.

Used by `schemasync.app.watching` for the registry and the metastore.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from schemasync.core.watching import SERVICE_PATIENCE_MS, Backoff
from schemasync.errors import SchemasyncError
from schemasync.io.logs import redact

REMIND_MS: Final = 3_600_000
"""So often it is said that it still does not answer, or that something else is still wrong for tables."""

_log: Final = logging.getLogger("schemasync.watch")


class Outage:
    """Whether ``service`` answers; ``first_ms`` is the first pause before it is asked again."""

    def __init__(self, service: str, *, first_ms: int, draw: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._service = service
        self._first_ms = first_ms
        self._draw = draw
        self._now_ms = now_ms
        self._backoff = Backoff()
        self._said = ""
        self._said_ms = 0

    @property
    def trouble(self) -> str:
        """Why nothing is done, without secrets; empty while it answers."""
        return redact(self._said)

    @property
    def waits(self) -> bool:
        """Whether it is too early to ask it again."""
        return self._backoff.waits(self._now_ms())

    def failed(self, error: SchemasyncError) -> None:
        """Take note that it did not answer, and say so where that is news, or was said an hour ago."""
        now = self._now_ms()
        self._backoff = self._backoff.failed(
            now_ms=now, first_ms=self._first_ms, longest_ms=SERVICE_PATIENCE_MS, draw=self._draw()
        )
        if str(error) != self._said or now - self._said_ms >= REMIND_MS:
            _log.warning("nothing is done until the %s answers again: %s", self._service, error)
            self._said_ms = now
        self._said = str(error)

    def answered(self) -> bool:
        """Take note that it answered; return whether it did not before."""
        over = bool(self._said)
        if over:
            _log.warning("the %s answers again", self._service)
        self._backoff, self._said = Backoff(), ""
        return over
