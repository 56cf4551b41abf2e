"""What every use case is handed: the configuration, the edges, and the clock.

Built once per process by the command line (and by the tests, with twins). Nothing in the use cases opens a
connection, reads a clock or sleeps by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from schemasync.core.config import Config
from schemasync.core.config_values import MB
from schemasync.core.ddl import Statement
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect
from schemasync.core.ports import FoldJob, Lake, LandedFiles, Metastore, Registry, ShardJob, SqlEngine


class Renderer(Protocol):
    """Lays out a statement's values; see `schemasync.io.templates`."""

    def render(self, name: str, values: Mapping[str, Any], *, dialect: str) -> str:
        """Return the text of one template."""
        ...

    def own_file(self, name: str, *, dialect: str) -> str | None:
        """Return the file of a template that is the user's own, None where the one that ships is used."""
        ...


class Progress(Protocol):
    """Tells people what is being done; one line per step."""

    def __call__(self, table: str, text: str) -> None:
        """Say that ``text`` begins for ``table``."""
        ...


def silent(table: str, text: str) -> None:
    """Tell nobody."""


@contextmanager
def no_lanes() -> Iterator[Callable[[], None]]:
    """Let threads use the engine as they are."""
    yield lambda: None


_ARROW_LIMIT: Final = 256 * MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """One table's location: its files, the two ways to admit what landed there, and the two to merge shards.

    ``local``: the second ways would do it on the cores of this machine, too. ``everywhere``: there are second ways;
    else Arrow reaches the files in this process only, and Spark's SQL does what is too much for it. ``scratch`` opens
    the same for somebody who only tries: files are written to the local disk, and are gone in the end.
    """

    lake: Lake
    small: LandedFiles
    large: LandedFiles
    shards: ShardJob
    large_shards: ShardJob
    scratch: Callable[[], AbstractContextManager[Storage]]
    local: bool = False
    everywhere: bool = True

    def is_small(self, size: int, limit: int | None) -> bool:
        """Tell whether this process does the work on so many bytes; ``limit`` is the table's ``arrow_limit``."""
        if limit is None:
            return self.local or size <= _ARROW_LIMIT
        return size <= limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The wired world. ``now_ms`` is the clock, ms since 1970 UTC; ``token`` gives names that were never used.

    ``stop`` is set where the process is to end; the pauses of the registry's retries end then, too.

    All of it may be used by several threads. Each calls what ``lanes`` yields before anything else: it gets a fair
    share of the engine then, and finds there what the thread has that opened the lanes.
    """

    config: Config
    registry: Registry
    metastore: Metastore
    sql: SqlEngine
    renderer: Renderer
    fold: FoldJob
    storage: Callable[[TableTarget], Storage]
    now_ms: Callable[[], int]
    token: Callable[[], str]
    progress: Progress = field(default=silent)
    lanes: Callable[[], AbstractContextManager[Callable[[], None]]] = field(default=no_lanes)
    stop: threading.Event = field(default_factory=threading.Event)

    def text(self, statement: Statement) -> str:
        """Render a statement for Spark."""
        return self.renderer.render(statement.template, statement.values, dialect=Dialect.SPARK.value)
