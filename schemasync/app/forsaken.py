"""Tables of ours whose subject is gone: nothing is planned for them, and without a word they would look well.

Where an entry names a subject exactly its table is planned, and held, all the same (SS405). Where an expression took
it, or no entry at all was needed, only the metastore still knows of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from schemasync.app.workspace import Workspace
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.drift import is_table_of
from schemasync.core.mapping import TableMapping, map_subjects
from schemasync.core.names import expand_pattern
from schemasync.core.ports import HiveTable
from schemasync.core.properties import STATE, SUBJECT, is_ours
from schemasync.errors import SchemasyncError

_log: Final = logging.getLogger("schemasync.forsaken")
_AT_ONCE: Final = 200
"""Tables that are asked for in one call."""


def forsaken(workspace: Workspace, mapping: TableMapping, names: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Tell of tables whose subject the registry does not have, and that would be this configuration's if it had it.

    Others may have tables in the same databases, of subjects of other registries, and many that are not ours. Looked at
    is what no table of the mapping has the name of, and a view like ours stands beside; nothing where tables are asked
    for by ``names``. What is planned or done is told all the same where this cannot be found out.
    """
    if names:
        return ()
    try:
        return tuple(_forsaken(workspace, mapping))
    except SchemasyncError as error:
        _log.debug("whether there are tables whose subjects are gone is not known: %s", error)
        return ()


def _forsaken(workspace: Workspace, mapping: TableMapping) -> Iterator[Diagnostic]:
    found = {f"{table.database}.{table.name}": table for table in _strangers(workspace, mapping)}
    if not found:
        return
    subjects = set(workspace.registry.subjects())
    gone = {name: subject for name, table in found.items() if (subject := table.properties[SUBJECT]) not in subjects}
    would = {t.full_name: t for t in map_subjects(sorted(subjects | set(gone.values())), workspace.config).targets}
    for name, subject in sorted(gone.items()):
        ours = would.get(name)
        if ours and is_table_of(found[name], ours):
            message = f"{name} is of {subject}, which the registry does not have: nothing is done for it"
            yield diagnose("SS421", message)


def _strangers(workspace: Workspace, mapping: TableMapping) -> Iterator[HiveTable]:
    """Yield the tables with a state that no target of the mapping has the name of."""
    config, targets = workspace.config, (*mapping.targets, *mapping.missing)
    databases = {config.defaults.database, *(entry.database for entry in config.tables if entry.database)}
    views = {config.defaults.names.view, *(entry.names.view for entry in config.tables)}
    for database in sorted(databases):
        names = ((t.table, t.view, t.base, t.compactor, t.history) for t in targets if t.database == database)
        known = {name.lower() for name in chain.from_iterable(names)}
        there = {name.lower() for name in workspace.metastore.names(database, "*")}
        others = [
            n for n in sorted(there - known) if any(expand_pattern(v, {"table": n}).lower() in there for v in views)
        ]
        for first in range(0, len(others), _AT_ONCE):
            some = workspace.metastore.tables(database, others[first : first + _AT_ONCE])
            yield from (table for table in some.values() if is_ours(table.properties) and STATE in table.properties)
