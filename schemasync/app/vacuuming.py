"""Cleaning up what is due, and nothing else: `schemasync vacuum`, for who compacts seldom or needs space now.

What is due, and in which order it goes, is `schemasync.app.retiring`'s; compactions and the watcher do the same by
themselves. Nothing goes while the view may still name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from schemasync.app.crew import each_table
from schemasync.app.inspecting import look
from schemasync.app.retiring import retire, retirement, shown
from schemasync.app.states import manifest_in_force
from schemasync.app.workspace import Workspace
from schemasync.core.compaction import Retirement
from schemasync.core.mapping import TableTarget
from schemasync.errors import ConflictError, DataError, SchemasyncError, UsageError, as_ours
from schemasync.io.logs import told


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """What was ``due`` for one table, and what of it is ``left``: all of it in a dry run, or where nothing could go."""

    target: TableTarget
    due: Retirement = field(default_factory=Retirement)
    left: Retirement = field(default_factory=Retirement)
    error: SchemasyncError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``vacuum --json``."""
        return {
            "table": self.target.table,
            "database": self.target.database,
            "due": self.due.to_json(),
            "left": self.left.to_json(),
            "error": told(self.error),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumResult:
    """What became of all tables."""

    tables: tuple[Vacuumed, ...]
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``vacuum --json`` prints."""
        return {"tables": [t.to_json() for t in self.tables], "problems": [str(p) for p in self.problems]}


def vacuum(workspace: Workspace, names: Sequence[str] = (), *, dry_run: bool = False) -> VacuumResult:
    """Clean up what is due for the named tables, all where none is named; in a dry run only say what that is.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    results, mapping = each_table(workspace, names, partial(vacuum_table, dry_run=dry_run))
    return VacuumResult(tables=results, problems=mapping.problems)


def vacuum_table(workspace: Workspace, target: TableTarget, *, dry_run: bool = False) -> Vacuumed:
    """Clean up what is due for one table. Its errors are part of the result."""
    due = Retirement()
    try:
        found = look(workspace, target)
        if found.inspected.table is None:
            return Vacuumed(target=target)
        if found.manifest is None:
            raise DataError(
                "what is in force cannot be read",
                where=target.full_name,
                fix=f"See why, and what to do: schemasync status {target.name}",
            )
        due = retirement(target, found.manifest, now_ms=workspace.now_ms())
        if dry_run or due.empty:
            return Vacuumed(target=target, due=due, left=due)
        standing = shown(workspace, found)
        if standing is None:
            raise ConflictError(
                "nothing is cleaned up here yet",
                where=target.full_name,
                why="its view is not that of the state in force, and may read what is due",
                fix=f"Put that right first: schemasync apply {target.name}",
            )
        retire(workspace, target, *standing)
    except Exception as error:
        return Vacuumed(target=target, due=due, left=_left(workspace, target, due), error=as_ours(error))
    return Vacuumed(target=target, due=due)


def _left(workspace: Workspace, target: TableTarget, due: Retirement) -> Retirement:
    """Return what of all that was due a state still lists."""
    try:
        manifest = None if due.empty else manifest_in_force(workspace, target)
    except SchemasyncError:
        # What went wrong before is what there is to tell.
        return due
    return due if manifest is None else due.within(retirement(target, manifest, now_ms=workspace.now_ms()))
