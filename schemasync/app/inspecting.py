"""Looking at everything that a decision needs, and changing nothing: registry, metastore, manifest, landed files.

One table's trouble is a finding about that table; it never stops the others.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from schemasync.app.kept_schemas import kept_schemas
from schemasync.app.landed import files_there, of_strays, pending_among, strays_among
from schemasync.app.states import GENERATIONS, read_manifest, token_in_force
from schemasync.app.workspace import Workspace
from schemasync.core.avro import read_key_schema, routing_fields, schema_fingerprint
from schemasync.core.canonical import fingerprint
from schemasync.core.config import Config, nearest
from schemasync.core.diagnostics import Diagnostic, damaged, diagnose, refused
from schemasync.core.drift import is_table_of, same_place
from schemasync.core.groups import line_of
from schemasync.core.history import History
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import NOTHING, NOTHING_FIX, TableMapping, TableTarget, map_subjects
from schemasync.core.names import MAX_NAME
from schemasync.core.partitioning import segment_of
from schemasync.core.plan import Decision, Inspected, decide, in_place_of_next_view
from schemasync.core.policy import Verdict
from schemasync.core.ports import FileInfo, HivePartition, HiveTable, Lake, RegisteredSchema, Registry
from schemasync.core.properties import is_ours, read_properties, readable
from schemasync.core.renamed import OldNames, old_names
from schemasync.core.schema import SubjectVersion
from schemasync.core.shape import history_of, version_of
from schemasync.errors import DataError, EngineError, RegistryError, RegistryUnavailableError, SchemaError, UsageError

_log: Final = logging.getLogger("schemasync.inspecting")


def map_tables(workspace: Workspace) -> TableMapping:
    """Ask the registry for its subjects and map them to tables, as `map_quietly`; that there are none is logged."""
    mapping = map_quietly(workspace)
    tell_nothing(mapping, workspace.config, _log)
    return mapping


def tell_nothing(mapping: TableMapping, config: Config, log: logging.Logger) -> None:
    """Say where no subject is taken: all that is done then looks as if all was done."""
    if mapping.is_empty:
        log.warning("%s %s. %s", config.registry.url, NOTHING, NOTHING_FIX)


def map_quietly(workspace: Workspace) -> TableMapping:
    """Ask the registry for its subjects and map them to tables.

    A table that is there goes on where a new subject claims what it has: it would stop by what somebody else registers.
    """
    subjects = workspace.registry.subjects()
    mapping = map_subjects(subjects, workspace.config)
    living = frozenset(target.subject for target in mapping.clashing if _lives(workspace, target))
    return map_subjects(subjects, workspace.config, living=living) if living else mapping


def _lives(workspace: Workspace, target: TableTarget) -> bool:
    """Tell whether there is a table of a subject; not where the metastore does not answer."""
    try:
        table = workspace.metastore.tables(target.database, (target.table,)).get(target.table)
    except EngineError as error:
        _log.debug("whether there is a table %s is not known: %s", target.name, error)
        return False
    return table is not None and is_table_of(table, target)


def is_silence(error: Exception, registry: Registry) -> bool:
    """Tell whether an error is that of a registry which answers nothing, or nonsense: it may be of one subject."""
    if not isinstance(error, RegistryError | RegistryUnavailableError):
        return False
    try:
        registry.subjects()
    except (RegistryError, RegistryUnavailableError):
        return True
    return False


def require_known(registry: Registry, config: Config, names: Sequence[str]) -> None:
    """Refuse names that no table has, as `select` will: asked before Spark is started for them.

    What subjects both claim is not refused yet: which of them has a table is for the metastore to say.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_subjects(registry.subjects(), config)
    claimed = {name for t in mapping.clashing for name in _names_of(t)} | mapping.named.keys()
    select(mapping, [name for name in names if name not in claimed])


def _names_of(target: TableTarget) -> tuple[str, ...]:
    return target.table, target.full_name, target.subject


def select(mapping: TableMapping, names: Sequence[str]) -> tuple[TableTarget, ...]:
    """Return the targets of these tables (``table`` or ``database.table``), all where no name is given.

    Raises:
        UsageError: a name is no configured table, or is part of what is wrong with the configuration.
    """
    known = (*mapping.targets, *mapping.missing)
    if not names:
        return known
    chosen = []
    for name in names:
        found = [t for t in known if name in _names_of(t)]
        if not found and (problem := mapping.problem_of(name)):
            raise problem
        if not found:
            what = f"there is no table {name}" if name.strip() else "the name of a table is empty"
            tables = ", ".join(t.name for t in known) or "none"
            raise UsageError(what, fix=f"The tables here: {tables}.")
        chosen += found
    return tuple(dict.fromkeys(chosen))


def select_one(mapping: TableMapping, name: str) -> TableTarget:
    """Return the target of this table.

    Raises:
        UsageError: the name is no configured table, or that of several.
    """
    found = select(mapping, (name,))
    if len(found) > 1:
        names = ", ".join(t.full_name for t in found)
        raise UsageError(f"there are several tables {name}", fix=f"Name one of them: {names}.")
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the metastore has under a table's names, whoever made it; None where there is nothing.

    ``aside`` is the next definition of the view, which only a killed run leaves; ``old_view`` and ``old_history`` have
    names that the configuration has changed since.
    """

    table: HiveTable | None
    view: HiveTable | None
    aside: HiveTable | None
    history: HiveTable | None
    old_view: HiveTable | None = None
    old_history: HiveTable | None = None


def entries_of(workspace: Workspace, target: TableTarget) -> Entries:
    """Ask the metastore once for all of a table's names, and once more for those that it had before."""
    names = (target.table, target.view, aside_name(target), target.history)
    found = workspace.metastore.tables(target.database, names)
    table, view, aside, history = (found.get(name) for name in names)
    known = readable(table.properties) if table else None
    old = old_names(target, known) if known else OldNames()
    left = workspace.metastore.tables(target.database, old.all) if old.all else {}
    return Entries(
        table=table,
        view=view,
        aside=aside,
        history=history,
        old_view=left.get(old.view or ""),
        old_history=left.get(old.history or ""),
    )


def aside_name(target: TableTarget) -> str:
    """Return the name under which the next definition of the view is made."""
    name = f"{target.view}__next"
    return name if len(name) <= MAX_NAME else f"{target.view[:100]}__{fingerprint(target.view)[:20]}"


def inspect(workspace: Workspace, target: TableTarget, entries: Entries | None = None) -> Inspected:
    """Look at one table: its subject's history, its key, and what the metastore has, ``entries`` if that is known.

    Raises:
        RegistryUnavailableError: the registry does not answer; `is_silence` tells whether that is about all tables.
        RegistryError: it answers everything with a refusal or nonsense.
    """
    there = entries or entries_of(workspace, target)
    table = there.table
    kept = _kept(workspace, target, table)
    # Where it cannot be read, `decide` says so.
    known = readable(table.properties) if table else None
    history, trouble = _history(workspace, target, kept, known.version if known else None)
    key = read_key(workspace.registry, target)
    if table is None or not is_ours(table.properties):
        trouble = (*trouble, *_leftovers(workspace, target))
    elif there.aside is not None and (obstacle := in_place_of_next_view(there.aside, target)):
        trouble = (*trouble, obstacle)
    return Inspected(
        target=target,
        history=history,
        key=key.columns,
        table=table,
        view=there.view,
        history_table=there.history,
        old_view=there.old_view,
        old_history=there.old_history,
        misplaced=_misplaced(workspace, target, table, kept),
        trouble=(*trouble, *key.trouble),
        remarks=key.remarks,
        key_version=key.version,
    )


def is_misplaced(workspace: Workspace, target: TableTarget, table: HiveTable) -> bool:
    """Tell whether a table of ours is to be elsewhere than the metastore has it, and its data is not there."""
    if same_place(table.location, workspace.storage(target).lake.root):
        return False
    return _misplaced(workspace, target, table, _kept(workspace, target, table)) is not None


def _kept(workspace: Workspace, target: TableTarget, table: HiveTable | None) -> tuple[RegisteredSchema, ...]:
    ours = table is not None and is_ours(table.properties)
    return kept_schemas(workspace.storage(target).lake) if ours else ()


def _misplaced(
    workspace: Workspace, target: TableTarget, table: HiveTable | None, kept: Sequence[RegisteredSchema]
) -> Diagnostic | None:
    """Notice a location that is not the one of a table of ours: states have numbers that another table's have, too."""
    if table is None or not is_ours(table.properties):
        return None
    root = workspace.storage(target).lake.root
    if others := {one.subject for one in kept} - {target.subject}:
        return _of_others(target, root, others)
    if kept or same_place(table.location, root):
        return None
    said = f"has its data in {table.location}, and nothing of it is in {root}, where location: says"
    return diagnose("SS219", f"{target.full_name} {said}")


def _leftovers(workspace: Workspace, target: TableTarget) -> tuple[Diagnostic, ...]:
    """Notice states of an earlier table: a new one would have other columns, and must not take them for its own.

    Where nothing has landed yet another table has only its schemas there, and would lose them to a new one.
    """
    lake = workspace.storage(target).lake
    if lake.files(GENERATIONS):
        return (diagnose("SS206", f"{lake.uri(GENERATIONS)} has manifests, but {target.full_name} is gone"),)
    if others := {one.subject for one in kept_schemas(lake)} - {target.subject}:
        return (_of_others(target, lake.root, others, fix=_OWN_LOCATION),)
    return ()


def _of_others(target: TableTarget, root: str, subjects: Collection[str], *, fix: str = "") -> Diagnostic:
    said = f"{root}, where location: of {target.full_name} says, has data of {', '.join(sorted(subjects))}"
    return diagnose("SS219", said, fix=fix)


_OWN_LOCATION: Final = (
    "Give each table a location of its own (location:). Where none has this one any more, move _schemasync/ out of it."
)


_GO_ON: Final = (
    "The view goes on under the old schema and nothing is lost; restore version {0}, or let the schema to go on with "
    "be a version above {0}: a registry that remembers what was deleted gives it such a number."
)


def _history(
    workspace: Workspace, target: TableTarget, kept: Sequence[RegisteredSchema], current: int | None
) -> tuple[History | None, tuple[Diagnostic, ...]]:
    trouble: list[Diagnostic] = []
    # Of an attempt that failed there may be more: what the table never came to counts as the registry has it.
    found = {r.version: r for r in of_subject(kept, target) if current is not None and r.version <= current}
    applied = dict(found)
    try:
        live = workspace.registry.versions(target.subject)
        fetched = dict(fetched_versions(workspace.registry, target.subject, live, kept=applied))
        trouble += compared(workspace.registry, target.subject, applied=applied, live=live, fetched=fetched)
        # What was applied counts as it was then; the registry only says what came after.
        found = fetched | found
    except RegistryError as error:
        if is_silence(error, workspace.registry):
            raise
        trouble.append(diagnose("SS406", str(error)))
    versions = [found[number] for number in sorted(found)]
    line = line_of(versions, wanted=target.compatibility_group, current=current, applied=frozenset(applied))
    trouble += line.findings
    followed, broken = _understood(target, line.versions)
    elsewhere, _ = _understood(target, line.others)
    history = replace(history_of(target, followed), elsewhere=tuple(elsewhere)) if followed else None
    return history, (*trouble, *broken)


def of_subject(kept: Iterable[RegisteredSchema], target: TableTarget) -> Iterator[RegisteredSchema]:
    """Return what is of this subject: in a place of two tables, after a typo perhaps, is kept what another one had."""
    return (one for one in kept if one.subject == target.subject)


def compared(
    registry: Registry,
    subject: str,
    *,
    applied: Mapping[int, RegisteredSchema],
    live: Sequence[int],
    fetched: Mapping[int, RegisteredSchema],
) -> Iterator[Diagnostic]:
    """Say where the registry's history is none that goes on from what was applied; ``live`` are all its versions."""
    if not live:
        yield _unknown(registry, subject, known=bool(applied))
        return
    rewritten = tuple(_rewritten(applied, fetched))
    yield from rewritten
    newest = max((*applied, *live))
    if newest > max(live):
        message = f"{subject} was at version {newest}, and the registry's newest is {max(live)}"
        goes_on = applied.keys() >= set(live) and not rewritten
        yield diagnose("SS404", message, fix=_GO_ON.format(newest) if goes_on else "")


def _unknown(registry: Registry, subject: str, *, known: bool) -> Diagnostic:
    found = diagnose("SS405", f"the registry has no versions of {subject}")
    if known:
        # It was spelt right.
        return found
    others = [other for other in registry.subjects() if other != subject and not other.endswith("-key")]
    meant = nearest(subject, others, cutoff=_AS_TYPOS_ARE)
    return replace(found, fix=f"Perhaps {meant} is meant. {found.fix}") if meant else found


_AS_TYPOS_ARE: Final = 0.85
"""How alike subjects must be: all of one schema begin and end alike."""


def fetched_versions(
    registry: Registry, subject: str, live: Sequence[int], *, kept: Collection[int]
) -> Iterator[tuple[int, RegisteredSchema]]:
    """Yield the registry's versions; what is kept counts also where the registry lost a type that it refers to."""
    for number in live:
        try:
            yield number, registry.schema(subject, number)
        except RegistryError:
            if number not in kept:
                raise


def _rewritten(kept: Mapping[int, RegisteredSchema], live: Mapping[int, RegisteredSchema]) -> Iterator[Diagnostic]:
    """Notice versions whose content is no longer what it was when they were applied: another history."""
    for number in sorted(kept.keys() & live.keys()):
        if not _is_same(kept[number], live[number]):
            message = f"{live[number].subject}: version {number} has another content than the one that was applied"
            yield diagnose("SS404", message)


def _is_same(kept: RegisteredSchema, live: RegisteredSchema) -> bool:
    if live.unpinned:
        # Their newest versions are nothing that was said of this one.
        kept, live = (replace(one, references=()) for one in (kept, live))
    try:
        return schema_fingerprint(kept) == schema_fingerprint(live)
    except SchemaError:
        return False  # what is no JSON was never applied


def _understood(
    target: TableTarget, registered: Sequence[RegisteredSchema]
) -> tuple[list[SubjectVersion], list[Diagnostic]]:
    versions: list[SubjectVersion] = []
    broken: dict[int, Diagnostic] = {}
    for one in registered:
        try:
            versions.append(version_of(target, one))
        except SchemaError as error:
            broken[one.version] = refused(error)
            versions += without_order(target, one)
    # A broken version in the past is history; only the newest decides whether the table can follow.
    newest_broken = bool(broken) and registered[-1].version in broken
    return versions, list(broken.values()) if newest_broken else []


def without_order(target: TableTarget, registered: RegisteredSchema) -> Iterator[SubjectVersion]:
    """Yield a version that lacks what orders the events now, none where that is not all that is wrong with it."""
    if target.sequence_by:
        with suppress(SchemaError):
            yield version_of(target, registered, past=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFound:
    """The columns and version of the newest key schema, None and 0 where there is none; what is wrong and odd there."""

    columns: tuple[str, ...] | None = None
    version: int = 0
    trouble: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()


def read_key(registry: Registry, target: TableTarget) -> KeyFound:
    """Look at the newest key schema, where it is asked for the key.

    Raises:
        RegistryUnavailableError: the registry does not answer.
        RegistryError: it answers everything with a refusal or nonsense.
    """
    subject = target.key_source
    if subject is None:
        return KeyFound()
    try:
        versions = registry.versions(subject)
        if not versions:
            # It is among the subjects: without it the table would be made as one that has no key, and stay so.
            message = f"{subject} is listed, and the registry has no versions of it"
            fix = "A replica of the registry may lag, and it passes. Else check this user's rights to the subject."
            return KeyFound(trouble=(diagnose("SS406", message, fix=fix),))
        found = registry.schema(subject, versions[-1])
        remarks = tuple(_repeated(subject, routing_fields(found)))
        return KeyFound(columns=read_key_schema(found), version=versions[-1], remarks=remarks)
    except (SchemaError, RegistryError) as error:
        if is_silence(error, registry):
            raise
        if isinstance(error, SchemaError):
            return KeyFound(trouble=(refused(error),))
        fix = "Look at the message. Or say with keys: which columns are the key: then the subject is not read."
        return KeyFound(trouble=(diagnose("SS406", str(error), fix=fix),))


def _repeated(subject: str, fields: Iterable[str]) -> Iterator[Diagnostic]:
    """Notice a key that repeats among the tables whose rows came to one topic."""
    for name in fields:
        yield diagnose("SS419", f"{subject} has {name}, which rows lack: equal keys of its tables are one row")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """One table, looked at and decided: what every command starts from."""

    inspected: Inspected
    decision: Decision
    manifest: Manifest | None
    pending: tuple[FileInfo, ...]
    partitions: Mapping[str, HivePartition] = field(default_factory=dict)


def look(workspace: Workspace, target: TableTarget, entries: Entries | None = None) -> TableView:
    """Inspect and decide one table, and list what landed for it; ``entries`` are the metastore's, if just asked for.

    Partitions are asked for last: where another writer published meanwhile they are those of his state, and no damage.

    Raises:
        RegistryUnavailableError: as `inspect`.
        StorageError: the storage does not say what is there.
    """
    found = _look(workspace, target, entries)
    for _ in range(_MOST_AGAIN):
        if not _is_overtaken(workspace, found):
            break
        found = _look(workspace, target)
    return found


_MOST_AGAIN: Final = 3
"""How often a table is looked at again that others publish while it is looked at."""


def _is_overtaken(workspace: Workspace, found: TableView) -> bool:
    """Tell whether a later state is in force than the one that was looked at; asked only where partitions differ."""
    properties, manifest = found.decision.properties, found.manifest
    if properties is None or manifest is None:
        return False
    named = {name for s in manifest.segments for name in s.partitions}
    passing, there = manifest.passing, found.partitions.keys()
    if named <= there and all(segment_of(name) in passing for name in there - named):
        return False
    return token_in_force(workspace, found.decision.target) != properties.token


def _look(workspace: Workspace, target: TableTarget, entries: Entries | None = None) -> TableView:
    inspected = inspect(workspace, target, entries)
    decision = decide(inspected)
    lake, pattern = workspace.storage(target).lake, target.increments
    manifest, missing = _manifest(lake, inspected, decision)
    if missing:
        # Without the manifest nobody knows which rows there are, so no view can be planned for them.
        decision = replace(decision, verdict=Verdict.HOLD, diagnostics=(*decision.diagnostics, *missing))
    # Once for both: that may be many, and every tick asks.
    files = tuple(files_there(lake, pattern))
    pending = () if missing else pending_among(files, pattern, manifest)
    told = (*decision.diagnostics, *of_strays(strays_among(files, pattern), pattern))
    decision = replace(decision, diagnostics=told)
    partitions = _partitions(workspace, target, manifest) if manifest else {}
    return TableView(inspected=inspected, decision=decision, manifest=manifest, pending=pending, partitions=partitions)


def _manifest(lake: Lake, inspected: Inspected, decision: Decision) -> tuple[Manifest | None, tuple[Diagnostic, ...]]:
    """Return the manifest of the state in force, None where there is no table of ours, and what is wrong with it."""
    table = inspected.table
    if table is None or not is_ours(table.properties) or decision.properties is None:
        return None, ()
    try:
        return read_manifest(lake, decision.target, read_properties(table.properties)), ()
    except DataError as error:
        return None, (damaged(error),)


def _partitions(workspace: Workspace, target: TableTarget, manifest: Manifest) -> Mapping[str, HivePartition]:
    about = sum(len(s.partitions) for s in manifest.segments) + sum(s.registered for s in manifest.superseded)
    return workspace.metastore.described_partitions(target.database, target.table, about=about)
