"""A workspace that can be killed after any of its writing calls.

A kill is no error: nothing runs after it, no ``finally``, no clean-up. So once the fuse has blown every further call of
the dead run dies, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schemasync.app.workspace import Storage, Workspace
from schemasync.core.mapping import TableTarget

_OF_THE_LAKE = ("create", "delete", "delete_directory", "delete_if_empty", "make_directory", "move")
_OF_THE_METASTORE = (
    "create_database",
    "swap_properties",
    "add_partitions",
    "move_partitions",
    "drop_partitions",
    "replace_columns",
    "redefine_view",
    "set_view_text",
)
WRITING = frozenset((*_OF_THE_LAKE, *_OF_THE_METASTORE, "execute", "run", "admit", "write_words", "merge"))
"""The calls of the Lake, the Metastore, the SqlEngine, the jobs and the LandedFiles that change something."""


class KilledError(BaseException):
    """The process is dead: whatever production code still tries to write then dies, too."""


def raise_killed() -> None:
    raise KilledError


class Fuse:
    """Counts writing calls and calls ``die`` once ``after`` of them are done (None: never)."""

    def __init__(self, after: int | None = None, die: Callable[[], None] = raise_killed) -> None:
        self.after = after
        self.die = die
        self.calls: list[str] = []

    def check(self) -> None:
        if self.after is not None and len(self.calls) >= self.after:
            self.die()

    def done(self, call: str) -> None:
        self.calls.append(call)
        self.check()


class Mortal:
    """Stands before an edge; passes everything on, and tells the fuse."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in WRITING:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._fuse.check()
            answer = found(*args, **kwargs)
            self._fuse.done(_label(name, args))
            return answer

        return call


def _label(name: str, args: tuple[Any, ...]) -> str:
    """Name a call: for SQL its first two words, for files what kind of file."""
    if name == "execute":
        return " ".join(args[0].split()[:3])
    if name == "create":
        return f"create {args[0].rpartition('/')[0]}"
    return name


def mortal(workspace: Workspace, fuse: Fuse) -> Workspace:
    """Return the workspace with the fuse before every edge that writes."""

    def storage(target: TableTarget) -> Storage:
        real = workspace.storage(target)
        return replace(
            real,
            lake=Mortal(real.lake, fuse),
            small=Mortal(real.small, fuse),
            large=Mortal(real.large, fuse),
            shards=Mortal(real.shards, fuse),
            large_shards=Mortal(real.large_shards, fuse),
        )

    return replace(
        workspace,
        metastore=Mortal(workspace.metastore, fuse),
        sql=Mortal(workspace.sql, fuse),
        fold=Mortal(workspace.fold, fuse),
        storage=storage,
    )
