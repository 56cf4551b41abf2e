"""One call of the program: its options, the world around it, what it opened, and where its answer goes.

Commands are handed a `Call`. Several calls can share one `Opened`, so that a quickstart's commands run in one Spark
session; the tests hand in a `World` of their own.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

import click
from rich.text import Text

from schemasync.app.inspecting import require_known
from schemasync.app.opening import open_registry, open_session, template_remarks, workspace_of
from schemasync.app.workspace import Progress, Workspace
from schemasync.cli.options import Options
from schemasync.cli.progress import PlainConsole, Teller, give_up
from schemasync.core.config import Config, remarks
from schemasync.errors import StorageError
from schemasync.io.config_file import LoadedConfig, load_config
from schemasync.io.logs import configure_logging, redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionOpener(Protocol):
    """Starts Spark for a configuration; see `schemasync.app.opening.open_session`."""

    def __call__(
        self,
        config: Config,
        *,
        environ: Mapping[str, str],
        purpose: str,
        wait_s: float,
        progress: Progress,
        sleep: Callable[[float], object],
    ) -> AbstractContextManager[SparkSession]:
        """Return a context with a running session."""
        ...


_UNICODE: Final = ("utf-8", "utf8")
"""Encodings that have all characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the program takes from the process that it runs in."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    cwd: Path = field(default_factory=Path.cwd)
    open_session: SessionOpener = open_session


class Opened:
    """The Spark session of one process: started when a command first needs it, ended by `close`."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._settings = ""

    def session(self, config: Config, start: Callable[[], AbstractContextManager[SparkSession]]) -> SparkSession:
        """Return the running session; one that was started under other settings is ended first."""
        settings = f"{config.metastore!r} {config.spark.master} {sorted(config.spark.conf.items())}"
        if self._session is None or settings != self._settings:
            self.close()
            self._session = self._stack.enter_context(start())
            self._settings = settings
        return self._session

    def close(self) -> None:
        """End the session."""
        self._session = None
        self._stack.close()


@dataclass(slots=True, kw_only=True)
class Call:
    """One command line being carried out; ``stop`` is set where it is to end.

    ``out`` and ``err`` are the streams of the answer and of everything else.
    """

    world: World
    opened: Opened
    options: Options = field(default_factory=Options)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    stop: threading.Event = field(default_factory=threading.Event)
    _teller: Teller | None = None

    @property
    def progress(self) -> Teller:
        """Where the use cases say what they are doing."""
        if self._teller is None:
            self.configure_logging()
            # Log lines and a spinner would write over each other.
            quiet = self.options.verbosity == 0
            self._teller = Teller(self.err, log_format=self.options.log_format, spinner=quiet)
        return self._teller

    def loaded(self) -> LoadedConfig:
        """Read the configuration; what it, or a file beside it, says in vain is told.

        Raises:
            UsageError: there is none, or it is wrong.
        """
        found = load_config(self.options.config, environ=self.world.environ, cwd=self.world.cwd)
        for remark in (*remarks(found.config), *template_remarks(found.config)):
            self.warn(f"{found.path}: {remark}")
        return found

    def workspace(self, purpose: str, config: Config | None = None, *, tables: Sequence[str] = ()) -> Workspace:
        """Return the wired world for the configuration; Spark is started where it does not run yet.

        Raises:
            UsageError: one of the ``tables`` that the command names is none; Spark is not started for that.
        """
        complete = config or self.loaded().config
        if tables:
            require_known(open_registry(complete, sleep=self.stop.wait), complete, tables)
        session = self.opened.session(
            complete,
            lambda: self.world.open_session(
                complete,
                environ=self.world.environ,
                purpose=f"schemasync {purpose}",
                wait_s=self.options.wait_s,
                progress=self.progress,
                sleep=self.stop.wait,
            ),
        )
        return workspace_of(complete, session, progress=self.progress, stop=self.stop)

    def path(self, path: Path) -> Path:
        """Return a path of the command line as an absolute one."""
        return self.world.cwd / path

    def answer(self, document: Mapping[str, Any], text: Iterable[str | Text]) -> None:
        """Print the result: the document with ``--json``, else the text.

        Raises:
            StorageError: it cannot be written; no answer can be from then on.
        """
        self.progress.stop()
        if self.options.json:
            told = (getattr(self.out, "encoding", None) or "utf-8").lower()
            text = [json.dumps(document, indent=2, ensure_ascii=told not in _UNICODE, allow_nan=False)]
        try:
            self.show(text, self.out)
        except OSError as error:
            give_up(self.out)
            raise StorageError("the answer cannot be written", why=error.strerror or str(error)) from error

    def show(self, text: Iterable[str | Text], stream: TextIO) -> None:
        """Print lines as they are: never wrapped, never cut; with colours only on a terminal.

        A reader that went away (``| head``) is no error: what is to be done was done.
        """
        console = PlainConsole(stream)
        for line in text:
            console.print(line)

    def complain(self, error: str) -> None:
        """Tell of one error on stderr: a line, or a log record where those were asked for as JSON."""
        self._tell(logging.ERROR, error, Text.assemble(("error: ", "bold red"), redact(error)))

    def warn(self, remark: str) -> None:
        """Tell of something remarkable on stderr, as `complain` does of an error."""
        self._tell(logging.WARNING, remark, Text(redact(remark)))

    def _tell(self, level: int, text: str, line: Text) -> None:
        self.progress.stop()
        if self.options.log_format == "json":
            self.configure_logging()
            logging.getLogger("schemasync").log(level, text)
        else:
            self.show([line], self.err)

    def configure_logging(self) -> None:
        """Send log lines to stderr, as the options say."""
        configure_logging(self.options.log_format, self.options.verbosity, self.err)


pass_call = click.make_pass_decorator(Call)
"""Hands a command its `Call`."""
