"""The recorded history of the subjects, judged version by version against the configured policies.

Asks the registry (and what is kept beside the data, where that can be reached) and neither Spark nor a metastore. Each
version is decided by the very function that plan calls, for a table as apply would have left it: a version that is
held changes nothing, and the next one is compared with the last that was not. No values are looked at: whether those
of a retyped column fit, a plan says when the version comes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from schemasync.app.inspecting import compared, fetched_versions, of_subject, read_key, select, tell_nothing
from schemasync.app.kept_schemas import kept_schemas
from schemasync.core.avro import read_key_schema
from schemasync.core.changes import Change
from schemasync.core.config import Config
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.groups import line_of
from schemasync.core.mapping import TableTarget, map_subjects
from schemasync.core.plan import Decision, Inspected, decide, next_properties
from schemasync.core.policy import ALL_FIT, Verdict
from schemasync.core.ports import HiveColumn, HiveTable, Lake, RegisteredSchema, Registry
from schemasync.core.properties import TableProperties, write_properties
from schemasync.core.schema import SubjectVersion
from schemasync.core.shape import history_of, version_of
from schemasync.errors import RegistryError, SchemaError, SchemasyncError, UsageError

_log: Final = logging.getLogger("schemasync.replaying")

_NOT_LOOKED: Final = "provided that every value fits (a replay looks at none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One version when it was the newest. ``from_version`` is the one that the table had, None before it existed."""

    from_version: int | None
    to_version: int
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return one element of a timeline."""
        return {
            "from_version": self.from_version,
            "to_version": self.to_version,
            "verdict": self.verdict.value,
            "changes": [change_json(change) for change in self.changes],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReplay:
    """One table's timeline, oldest version first. ``unread`` says why what lies beside its data was not looked at.

    ``diagnostics`` are about the subject as a whole: why its versions were not looked at, then there is no timeline;
    that the registry has none (any more); or that it has another history than the one that was applied.
    """

    target: TableTarget
    timeline: tuple[Moment, ...]
    unread: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def held(self) -> int:
        """How many versions would have been held."""
        return sum(moment.verdict is Verdict.HOLD for moment in self.timeline)

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``plan --replay --json``."""
        return {
            "table": self.target.table,
            "database": self.target.database,
            "subject": self.target.subject,
            "timeline": [moment.to_json() for moment in self.timeline],
            "unread": self.unread or None,
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The timelines of all tables that were asked for, and what in the configuration stands in the way."""

    tables: tuple[TableReplay, ...]
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan --replay --json`` prints."""
        return {
            "tables": [table.to_json() for table in self.tables],
            "problems": [str(problem) for problem in self.problems],
        }


def replay(
    registry: Registry, config: Config, names: Sequence[str] = (), *, open_lake: Callable[[TableTarget], Lake]
) -> Replay:
    """Judge every version of the named tables' subjects, of all where none is named.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_subjects(registry.subjects(), config)
    tell_nothing(mapping, config, _log)
    tables = tuple(_table(registry, target, open_lake) for target in select(mapping, names))
    return Replay(tables=tables, problems=mapping.problems)


def _table(registry: Registry, target: TableTarget, open_lake: Callable[[TableTarget], Lake]) -> TableReplay:
    unread = ""
    kept: tuple[RegisteredSchema, ...] = ()
    try:
        kept = tuple(of_subject(kept_schemas(open_lake(target)), target))
    except SchemasyncError as error:
        unread = str(error)
    run = _Run(target=target, keys=_Keys(registry, target))
    try:
        applied = {one.version: one for one in kept}
        live = registry.versions(target.subject)
        again = dict(fetched_versions(registry, target.subject, [n for n in live if n in applied], kept=applied))
        told = tuple(compared(registry, target.subject, applied=applied, live=live, fetched=again))
        timeline = tuple(run.moment(number, found) for number, found in _versions(registry, target, applied, live))
    except RegistryError as error:
        # As in a plan: that one subject is refused is no trouble of the other tables.
        return TableReplay(target=target, timeline=(), unread=unread, diagnostics=(diagnose("SS406", str(error)),))
    return TableReplay(target=target, timeline=timeline, unread=unread, diagnostics=told)


def _versions(
    registry: Registry, target: TableTarget, applied: Mapping[int, RegisteredSchema], live: Sequence[int]
) -> Iterator[tuple[int, _Understood | Diagnostic]]:
    """Yield every version, understood or with what is wrong with it; what was applied counts as it was then."""
    for number in sorted({*applied, *live}):
        try:
            found = applied.get(number) or registry.schema(target.subject, number)
            version = version_of(target, found)
            yield number, _Understood(registered=found, version=version)
        except (RegistryError, SchemaError) as error:
            yield number, diagnose("SS406", str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Understood:
    registered: RegisteredSchema
    version: SubjectVersion


class _Keys:
    """The key of a table in each version of its value."""

    def __init__(self, registry: Registry, target: TableTarget) -> None:
        found = read_key(registry, target)
        self.newest, self.trouble, self.remarks = found.columns, found.trouble, found.remarks
        self._known = tuple(_key_versions(registry, target)) if self.newest else ()

    def of(self, version: SubjectVersion) -> tuple[str, ...] | None:
        """Return the newest key whose columns the version has: nobody recorded which key stood beside which value."""
        names = {column.name.lower() for column in version.columns}
        return next((key for key in self._known if names.issuperset(map(str.lower, key))), self.newest)


def _key_versions(registry: Registry, target: TableTarget) -> Iterator[tuple[str, ...]]:
    """Yield the columns of every key version that can be understood, newest first."""
    subject = target.key_source or ""
    for number in reversed(registry.versions(subject)):
        try:
            yield read_key_schema(registry.schema(subject, number))
        except (RegistryError, SchemaError):
            continue  # the newest is sound, and only it decides what holds


@dataclass(slots=True, kw_only=True)
class _Run:
    """One table on its way through the versions."""

    target: TableTarget
    keys: _Keys
    versions: list[_Understood] = field(default_factory=list)
    properties: TableProperties | None = None

    def moment(self, number: int, found: _Understood | Diagnostic) -> Moment:
        """Decide what becomes of the table with this version the newest, and let it become that."""
        before = self.properties
        decision = self._decided(found)
        # Of a version that is held these are the properties that the table has.
        self.properties = next_properties(decision)
        return Moment(
            from_version=before.version if before else None,
            to_version=number,
            verdict=decision.verdict,
            changes=decision.changes,
            diagnostics=tuple(
                replace(d, message=d.message.replace(ALL_FIT, _NOT_LOOKED)) for d in decision.diagnostics
            ),
        )

    def _decided(self, found: _Understood | Diagnostic) -> Decision:
        if isinstance(found, Diagnostic):
            return decide(self._inspected(self.keys.newest, (found, *self.keys.trouble)))
        self.versions.append(found)
        return decide(self._inspected(self.keys.of(found.version), self.keys.trouble))

    def _inspected(self, key: tuple[str, ...] | None, trouble: tuple[Diagnostic, ...]) -> Inspected:
        target = self.target
        current = self.properties.version if self.properties else None
        seen = [one.registered for one in self.versions]
        line = line_of(seen, wanted=target.compatibility_group, current=current)
        followed = {registered.version for registered in line.versions}
        versions = [one.version for one in self.versions if one.version.version in followed]
        return Inspected(
            target=target,
            history=history_of(target, versions) if versions else None,
            key=key,
            table=self._table(),
            view=None,
            trouble=(*trouble, *line.findings),
            remarks=self.keys.remarks,
        )

    def _table(self) -> HiveTable | None:
        if self.properties is None:
            return None
        return HiveTable(
            database=self.target.database,
            name=self.target.table,
            kind="EXTERNAL_TABLE",
            columns=(),
            partition_keys=tuple(HiveColumn(name=name, type="string") for name, _ in self.properties.partition_by),
            location=self.target.location,
            properties=write_properties(self.properties),
        )
