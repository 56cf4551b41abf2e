"""Telling people what is being done, on stderr: a spinner on a terminal, plain lines elsewhere, JSON where asked for.

Standard output is never written to: it belongs to results.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from schemasync.io.logs import Format


class PlainConsole(Console):
    """A console that prints lines as they are, and that falls silent when its reader has gone (``| head``)."""

    def __init__(self, stream: TextIO) -> None:
        if isinstance(stream, TextIOWrapper):
            # What a terminal or a file of another encoding cannot show must not end what is to be told.
            stream.reconfigure(errors="backslashreplace")
        super().__init__(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._stream = stream

    def on_broken_pipe(self) -> None:
        """Write nothing any more."""
        self.quiet = True
        give_up(self._stream)


def give_up(stream: TextIO) -> None:
    """Let nothing more reach a stream's reader, also not what Python would flush at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_LOGGER = logging.getLogger("schemasync.progress")


class Teller:
    """One `schemasync.app.workspace.Progress` per call; `stop` it before anything else is printed."""

    def __init__(self, stream: TextIO, *, log_format: Format, spinner: bool) -> None:
        """Tell on ``stream``; ``spinner`` is only heeded where that is a terminal."""
        self._console = PlainConsole(stream)
        self._json = log_format == "json"
        self._spin = spinner and self._console.is_terminal and not self._json
        self._status: Status | None = None
        # Several tables may be worked on at once: there is one line for all of them, or one after the other.
        self._lock = threading.Lock()

    def __call__(self, table: str, text: str) -> None:
        """Say that ``text`` begins for ``table``."""
        line = f"{table}: {text}" if table else text
        with self._lock:
            if self._json:
                _LOGGER.setLevel(logging.INFO)
                _LOGGER.info(text, extra={"table": table} if table else {})
            elif self._spin:
                self._turn(line)
            else:
                # Where nobody can be told, on a full disk perhaps, the work goes on.
                with suppress(OSError):
                    self._console.print(Text(line))

    def _turn(self, line: str) -> None:
        if self._status is None:
            self._status = self._console.status(Text(line))
            self._status.start()
        self._status.update(Text(line))

    def stop(self) -> None:
        """Take the spinner away; the next call brings it back."""
        with self._lock:
            if self._status is not None:
                self._status.stop()
                self._status = None
