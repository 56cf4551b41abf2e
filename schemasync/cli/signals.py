"""What signals that ask for an end do while something is finished that they must not break off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ENDING: Final = tuple(s for s in signal.Signals if s.name in ("SIGTERM", "SIGINT", "SIGHUP"))
"""A terminal that is closed, and some supervisors, ask by SIGHUP; not every system has it."""


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Let these signals set ``stop``, but for SIGHUP under ``nohup``; signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if (number.name, handler) != ("SIGHUP", signal.SIG_IGN):
            signal.signal(number, lambda *_: stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
