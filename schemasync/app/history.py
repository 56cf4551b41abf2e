"""What became of one table: versions with the time they were applied, columns with their lives, generations.

Reads only: the registry and the schemas that were kept, the records of applied versions, the manifests. What was
never recorded is unknown, not wrong: tables are older than the records of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from schemasync.app.applied_records import applied_versions
from schemasync.app.inspecting import inspect, map_tables, select_one
from schemasync.app.states import read_manifest, written_states
from schemasync.app.workspace import Workspace
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, damaged
from schemasync.core.manifest import Manifest, StateId
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import decide
from schemasync.core.properties import TableProperties
from schemasync.core.timeline import Timeline, iso, timeline
from schemasync.errors import SchemasyncError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """One table's past. ``version`` is the one that it has, None where there is no table of ours.

    ``generations`` are the manifests of all bases that are still there, and the state in force, oldest first.
    """

    target: TableTarget
    version: int | None
    past: Timeline
    generations: tuple[Manifest, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``history --json`` prints.

        ::

        {"table", "database", "subject", "version",           version: None where there is no table
         "versions": [{"version", "schema_id",
                       "applied",                              whether the table has it, or one after it
                       "applied_with", "applied_at",           its own version, or the later one that passed over it,
                                                               and when (ISO 8601, UTC); None: not (or not recorded)
                       "verdict", "policies",                  under which it was applied
                       "changes": [{"kind", "column", "physical", "from", "to"}]}],
         "columns": [{"column", "type", "names",               as it stood last, and under all its names
                      "brought_in", "changed_in": [...], "retired_in",             versions
                      "physical": [{"name", "since", "until"}]}],                  versions; until None: still
         "generations": [{"state", "generation", "published_at", "schema_version", "segments", "rows", "bytes"}],
                                                               published_at: None where nothing was published yet;
                                                               rows: stored ones, deletes and older ones included
         "diagnostics": [{"code", "severity", "message", "fix"}],
         "problems": ["..."]}                                 of the configuration
        """
        return {
            "table": self.target.table,
            "database": self.target.database,
            "subject": self.target.subject,
            "version": self.version,
            "versions": [entry.to_json() for entry in self.past.versions],
            "columns": [column.to_json() for column in self.past.columns],
            "generations": [_generation_json(manifest) for manifest in self.generations],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
            "problems": [str(problem) for problem in self.problems],
        }


def _generation_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "state": str(manifest.state),
        "generation": manifest.state.generation,
        "published_at": published_at(manifest),
        "schema_version": manifest.schema_version,
        "segments": len(manifest.segments),
        "rows": sum(s.rows for s in manifest.segments),
        "bytes": sum(s.bytes for s in manifest.segments),
    }


def published_at(manifest: Manifest) -> str | None:
    """Return when a state was published (ISO 8601, UTC), None for that of a table which nothing was published for."""
    return iso(manifest.published_ms or None)


def history(workspace: Workspace, name: str) -> TableHistory:
    """Tell one table's past.

    Raises:
        UsageError: the name is no configured table, or that of several.
        DataError: the record of an applied version cannot be read.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    target = select_one(mapping, name)
    inspected = inspect(workspace, target)
    decision = decide(inspected)
    properties = decision.properties
    lake = workspace.storage(target).lake
    records = applied_versions(lake) if properties else ()
    generations, unreadable = _generations(workspace, target, properties) if properties else ((), ())
    return TableHistory(
        target=target,
        version=properties.version if properties else None,
        past=timeline(inspected.history, properties, records) if inspected.history else Timeline(),
        generations=generations,
        diagnostics=tuple(dict.fromkeys((*inspected.trouble, *decision.diagnostics, *unreadable))),
        problems=mapping.problems,
    )


def _generations(
    workspace: Workspace, target: TableTarget, properties: TableProperties
) -> tuple[tuple[Manifest, ...], tuple[Diagnostic, ...]]:
    """Return the manifests of every generation's first state and of the state in force; admissions are many."""
    lake = workspace.storage(target).lake
    unreadable: list[Diagnostic] = []

    def read(states: Iterable[StateId]) -> Iterator[Manifest]:
        for state in states:
            try:
                yield read_manifest(lake, target, replace(properties, state=state))
            except SchemasyncError as error:
                # One that was never in force may have been deleted since it was listed.
                if state in written_states(lake, properties):
                    unreadable.append(damaged(error))
                    return

    by_generation = groupby(written_states(lake, properties), key=lambda state: state.generation)
    firsts = (_first(read(states)) for _, states in by_generation)
    found = [manifest for manifest in firsts if manifest is not None]
    if properties.state not in {manifest.state for manifest in found}:
        found += read([properties.state])
    return tuple(found), tuple(dict.fromkeys(unreadable))


def _first(generation: Iterable[Manifest]) -> Manifest | None:
    """Return the first state of a generation, given all that were written for it, that was in force.

    What comes too late is passed over: that with the next number follows a state of an earlier generation, too.
    Generation 0 follows none.
    """
    first = None
    for manifest in generation:
        if manifest.parent is None or not manifest.parent.generation < manifest.state.generation:
            break
        first = manifest
    return first
