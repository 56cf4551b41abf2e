"""Published states of one table: reading them, publishing the next, and rolling forward what a crash left.

The manifest is written first (create-only), then the table's ``schemasync.state`` moves by compare-and-set, then new
partitions are added. No view names these yet, so readers go on seeing the state before until the view is replaced
(`schemasync.app.viewing`); what a partition holds never changes. A manifest that is written is complete, so whoever
finds one that was not published yet finishes it. One whose parent is no longer in force can never be published: what
was written for it is deleted, its manifest only when a later number is in force. Whoever deletes it may have stalled
since he read it, so its number must not have become another state's: that takes the next one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Final

from pydantic import ValidationError

from schemasync.app.workspace import Workspace
from schemasync.core.ddl import set_property
from schemasync.core.drift import Placed, same_place
from schemasync.core.manifest import FORMAT, DataFile, Manifest, Segment, StateId, empty, run_directory
from schemasync.core.mapping import TableTarget
from schemasync.core.names import is_hidden
from schemasync.core.partitioning import segment_of
from schemasync.core.ports import FileInfo, Lake, PartitionSize
from schemasync.core.properties import STATE, TableProperties, is_ours, read_properties, write_properties
from schemasync.errors import ConflictError, DataError, SchemasyncError, StorageError

GENERATIONS = "_schemasync/generations"
_RESTORE: Final = "Restore it from a backup of the table's location; the data files are untouched."
_DAY_MS: Final = 86_400_000
MOST_FORGOTTEN: Final = 1000
"""Manifests that one run deletes: what was left for years goes in several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is in force of a table, and what a run has done since and will publish with all else that it does.

    ``manifest`` is what is ``in_force`` with that done; it keeps the number until it is published.
    """

    properties: TableProperties
    in_force: Manifest
    manifest: Manifest

    @classmethod
    def of(cls, properties: TableProperties, in_force: Manifest) -> Draft:
        """Begin with what is in force."""
        return cls(properties=properties, in_force=in_force, manifest=in_force)

    @property
    def unpublished(self) -> bool:
        """Whether there is something to publish."""
        return self.manifest is not self.in_force

    @property
    def following(self) -> Manifest:
        """The state that follows where the draft is published as it is."""
        return self.manifest.followed(now_ms=self.manifest.published_ms)

    def with_(self, manifest: Manifest) -> Draft:
        """Return the draft of what would follow this one; it gets its number when it is published."""
        number = {"state": self.in_force.state, "parent": self.in_force.parent}
        return replace(self, manifest=manifest.model_copy(update=number))


def manifest_path(state: StateId) -> str:
    """Return where the manifest of a state lies, relative to the table's location."""
    return f"{GENERATIONS}/{state}.json"


def read_manifest(lake: Lake, target: TableTarget, properties: TableProperties) -> Manifest:
    """Return the manifest of the state in force.

    Raises:
        DataError: it is missing, mangled, or written by a newer schemasync.
        StorageError: it is there, and cannot be read.
    """
    if properties.state == StateId(generation=0, admission=0):
        return empty(target.table, target.subject, schema_version=properties.version, keyed=bool(properties.keys))
    path = manifest_path(properties.state)
    try:
        content = lake.read(path)
    except StorageError as error:
        if path in (file.path for file in lake.files(GENERATIONS)):
            raise
        raise DataError("the table's manifest is missing", where=lake.uri(path), why=error.why, fix=_RESTORE) from error
    return _parse(content, lake.uri(path))


def read_draft(workspace: Workspace, target: TableTarget, properties: TableProperties) -> Draft:
    """Begin a draft with the state in force.

    Raises:
        DataError: as `read_manifest`.
    """
    return Draft.of(properties, read_manifest(workspace.storage(target).lake, target, properties))


def state_before(lake: Lake, target: TableTarget, manifest: Manifest) -> Manifest | None:
    """Return the state that a state followed, None where nothing is known of it any more."""
    if manifest.parent is None:
        return None
    if manifest.parent == StateId(generation=0, admission=0):
        return empty(target.table, target.subject, schema_version=manifest.schema_version, keyed=manifest.keyed)
    path = manifest_path(manifest.parent)
    try:
        return _parse(lake.read(path), lake.uri(path))
    except (DataError, StorageError):
        return None


def _parse(content: bytes, where: str) -> Manifest:
    try:
        raw = json.loads(content)
        if isinstance(raw, dict) and raw.get("format", 0) > FORMAT:
            raise DataError("a newer schemasync wrote this manifest", where=where, fix="Upgrade schemasync.")
        manifest = Manifest.model_validate(raw)
    except (ValueError, ValidationError) as error:
        raise DataError(
            "the table's manifest cannot be read",
            where=where,
            why=str(error).splitlines()[0],
            fix=_RESTORE,
        ) from error
    # States that follow it say more than its format knows.
    return manifest.model_copy(update={"format": FORMAT})


def require_files(lake: Lake, segments: Iterable[Segment]) -> None:
    """Make sure that every file of these segments is there, whole: engines read a directory without one in silence.

    Raises:
        DataError: one is missing or has another size; names it.
    """
    for segment in segments:
        there = {f.path: f.bytes for f in lake.files(segment.location) if not is_hidden(f.path)}
        if unknown := sorted(there.keys() - {file.path for file in segment.files}):
            raise DataError(
                "a directory of the table holds a file that nobody published",
                where=lake.uri(unknown[0]),
                why=f"segment {segment.name} has {len(segment.files)} files",
                fix="Move it away; engines read every file of the directory.",
            )
        for file in segment.files:
            if there.get(file.path) != file.bytes:
                raise DataError(
                    "a file of the table is missing" if file.path not in there else "a file of the table was changed",
                    where=lake.uri(file.path),
                    why=f"segment {segment.name} had it with {file.rows} rows in {file.bytes} bytes",
                    fix="Restore it from a backup; until then nothing is folded, so that no row is lost for good.",
                )


def publish(
    workspace: Workspace,
    target: TableTarget,
    draft: Draft,
    manifest: Manifest | None = None,
    *,
    becoming: TableProperties | None = None,
) -> Draft:
    """Make a state visible that follows a draft, as it is where no other is given; its data is written.

    What the state in force until then names is registered already, or a repair for the next run. ``becoming`` are the
    properties that come into force with it, the draft's where none are given.

    Raises:
        ConflictError: another writer published first; nothing of this state is visible.
    """
    lake = workspace.storage(target).lake
    following, passed = _written(workspace, target, draft, manifest)
    try:
        properties = _put_in_force(workspace, target, draft.properties, following, becoming=becoming)
    except ConflictError:
        with suppress(SchemasyncError, ValueError):
            withdraw(workspace, target, following)
        raise
    _forget(lake, passed, following)
    _register(
        workspace, target, following, placed_of(lake, following).locations, placed_of(lake, draft.in_force).locations
    )
    return Draft.of(properties, following)


def _written(
    workspace: Workspace, target: TableTarget, draft: Draft, manifest: Manifest | None
) -> tuple[Manifest, list[Manifest]]:
    """Write the manifest that `publish` puts in force; return it, and those that it passes, which come too late.

    Folds pass those of other generations. What has a number after the draft's in the same generation has the draft's as
    its parent, and is passed where it was made under another version.

    Raises:
        ConflictError: another state has its number; what was written for it is deleted.
    """
    lake = workspace.storage(target).lake
    made = {"made_under": draft.properties.version, "keys": draft.properties.keys}
    following = (manifest or draft.following).model_copy(update=made)
    passed: list[Manifest] = []
    while not lake.create(path := manifest_path(following.state), following.model_dump_json(indent=1).encode()):
        try:
            there = _parse(lake.read(path), lake.uri(path))
        except SchemasyncError as error:
            # Where a later state passed it, and it is deleted, this one follows none that is in force.
            with suppress(SchemasyncError, ValueError):
                withdraw(workspace, target, following)
            raise _conflict(target, f"{path} exists, and cannot be read") from error
        if not _never_follows(there, draft.properties):
            # Where something else was to follow the draft, that may still be shown; and what stands there may be this
            # run's own, of an attempt that failed without telling how far it came.
            kept = draft.manifest if manifest else draft.in_force
            _delete_unnamed(lake, following, kept.locations | there.locations)
            raise _conflict(target, f"{path} exists already")
        passed.append(there)
        following = following.model_copy(update={"state": following.state.after})
    return following, passed


def _put_in_force(
    workspace: Workspace,
    target: TableTarget,
    properties: TableProperties,
    manifest: Manifest,
    *,
    becoming: TableProperties | None = None,
) -> TableProperties:
    published = replace(becoming or properties, state=manifest.state)
    swapped = workspace.metastore.swap_properties(
        target.database, target.table, key=STATE, expected=properties.token, changes=write_properties(published)
    )
    if not swapped:
        raise _conflict(target, f"{STATE} is no longer {properties.token}")
    return published


def withdraw(workspace: Workspace, target: TableTarget, lost: Manifest) -> None:
    """Delete what was written for a state that can never be in force, and its manifest where a later number is.

    One that was in force stays: whoever found it may have put it in force, and gone on from there.
    """
    properties = properties_in_force(workspace, target)
    if properties is None or not _never_follows(lost, properties):
        return
    lake = workspace.storage(target).lake
    in_force = read_manifest(lake, target, properties)
    later: Manifest | None = in_force
    while later is not None and _comes_too_late(lost, later.state):
        if later == lost:
            return
        later = state_before(lake, target, later)
    _delete_unnamed(lake, lost, in_force.locations)
    path = manifest_path(lost.state)
    # Where a state between could not be read it may have been in force; and it need not have been written.
    if later is not None and lost.state < in_force.state and _parse(lake.read(path), lake.uri(path)) == lost:
        lake.delete(path)


def _comes_too_late(manifest: Manifest, in_force: StateId) -> bool:
    """Tell whether its parent is no longer in force: where it was not in force by now it never will be."""
    return manifest.parent is not None and manifest.parent < in_force


def _never_follows(manifest: Manifest, properties: TableProperties) -> bool:
    """Tell whether a state can never be put in force: it comes too late, or was made under an earlier version.

    What a version changes is decided with the values that the table has then; these rows were not among them. No table
    goes back to an earlier version by itself: a state that was made under a later one was in force, or is by now.
    """
    if manifest.made_under > properties.version:
        return False
    moved = manifest.parent == properties.state and manifest.made_under < properties.version
    return moved or _comes_too_late(manifest, properties.state)


def _forget(lake: Lake, lost: Iterable[Manifest], in_force: Manifest) -> None:
    """Delete what was written for states that come too late, and the manifests of those that have a lower number."""
    for manifest in lost:
        _delete_unnamed(lake, manifest, in_force.locations)
        if manifest.state < in_force.state:
            with suppress(StorageError):
                lake.delete(manifest_path(manifest.state))


def _conflict(target: TableTarget, why: str) -> ConflictError:
    return ConflictError(
        "another writer published first; nothing of this run became visible",
        where=target.full_name,
        why=why,
        fix="Run again: what is left to do is done then.",
    )


def sync_partitions(workspace: Workspace, target: TableTarget, manifest: Manifest) -> None:
    """Make sure that the metastore has a partition for every segment of a manifest that is in force, at its place."""
    actual = workspace.metastore.partitions(target.database, target.table)
    wanted = placed_of(workspace.storage(target).lake, manifest).locations
    _register(workspace, target, manifest, wanted, actual)
    # Ours never move: these were moved by hand.
    if moved := {s: p for s, p in wanted.items() if s in actual and not same_place(actual[s], p)}:
        workspace.metastore.move_partitions(target.database, target.table, moved)


def _register(
    workspace: Workspace, target: TableTarget, manifest: Manifest, wanted: Mapping[str, str], there: Container[str]
) -> None:
    """Add the partitions of a state that are not there yet; ``wanted`` says by name where each lies."""
    if missing := {name: place for name, place in wanted.items() if name not in there}:
        new = [s for s in manifest.segments if not missing.keys().isdisjoint(s.partitions)]
        sizes = {name: size for s in new for name, size in _sizes(s).items()}
        workspace.metastore.add_partitions(target.database, target.table, missing, sizes)


def _sizes(segment: Segment) -> dict[str, PartitionSize]:
    """Return what each of a segment's partitions holds, by name."""
    files: dict[str, list[DataFile]] = defaultdict(list)
    for file in segment.files:
        files[file.path.rpartition("/")[0]].append(file)
    return {
        name: PartitionSize(
            files=len(files[place]), rows=sum(f.rows for f in files[place]), bytes=sum(f.bytes for f in files[place])
        )
        for name, place in segment.partitions.items()
    }


def placed_of(lake: Lake, manifest: Manifest) -> Placed:
    """Return where a state wants its segments."""
    return Placed(
        root=lake.root,
        locations={name: lake.uri(place) for s in manifest.segments for name, place in s.partitions.items()},
        carried={name: s.columns for s in manifest.segments for name in s.partitions},
        passing=manifest.passing,
    )


def roll_forward(workspace: Workspace, target: TableTarget, properties: TableProperties) -> TableProperties:
    """Put in force what a killed writer had written whole, and return the properties in force then.

    Raises:
        ConflictError: another writer is at work right now.
        DataError: a manifest cannot be read, or the metastore has the table as it was before that state.
        StorageError: a manifest cannot be read.
    """
    lake = workspace.storage(target).lake
    late: list[Manifest] = []
    found = [_read_unpublished(workspace, target, properties, path) for path in unpublished(lake, properties)]
    # Nothing may be put in force before all were looked at: what was published since may follow the same state.
    for manifest in (m for m in found if _is_ahead(m, properties)):
        if token_in_force(workspace, target) != properties.token:
            break  # another writer applied that version, or key, just now
        raise _left_behind(lake, target, properties, manifest, found)
    for manifest in found:
        if _never_follows(manifest, properties):
            late.append(manifest)
        elif manifest.parent == properties.state and _fits(manifest, properties):
            workspace.progress(target.table, f"finishing the publication of state {manifest.state}")
            properties = _put_in_force(workspace, target, properties, manifest)
            sync_partitions(workspace, target, manifest)
        elif token_in_force(workspace, target) == properties.token:
            raise _left_behind(lake, target, properties, manifest, found)
    if late:
        _forget(lake, late, read_manifest(lake, target, properties))
    return properties


def _read_unpublished(workspace: Workspace, target: TableTarget, properties: TableProperties, path: str) -> Manifest:
    lake = workspace.storage(target).lake
    try:
        return _parse(lake.read(path), lake.uri(path))
    except StorageError as error:
        if token_in_force(workspace, target) == properties.token:
            raise
        raise _conflict(target, f"{path} was passed by a later state") from error


def _is_ahead(manifest: Manifest, properties: TableProperties) -> bool:
    """Tell whether a state was made under a version, or a key, that the table does not have yet."""
    ahead = manifest.made_under > properties.version or not _of_one_key(manifest, properties)
    return ahead and not _never_follows(manifest, properties)


def _fits(manifest: Manifest, properties: TableProperties) -> bool:
    """Tell whether a state was made under the version and the key that the table has."""
    return manifest.made_under == properties.version and _of_one_key(manifest, properties)


def _of_one_key(manifest: Manifest, properties: TableProperties) -> bool:
    """Tell whether rows that a state tells apart are not one row to the table, as far as that is known."""
    return manifest.keys in (None, properties.keys)


def _left_behind(
    lake: Lake, target: TableTarget, properties: TableProperties, following: Manifest, found: Sequence[Manifest]
) -> DataError:
    """Say how a table goes on that the metastore has as it was before states which were in force since.

    The sink's files that those have folded may be gone: to go on without them would lose rows for good. Nor may it go
    on from one that was made under another version: a shape that lacks its columns would fold them away.
    """
    last, fix = _published_last(found), "Restore a later state of the metastore"
    if last is not None and _fits(last, properties):
        token = replace(properties, state=last.state).token
        fix += f", or let the table go on from the last state here, and apply: {set_property(target, STATE, token)}"
    return DataError(
        "the metastore has the table as it was before this state",
        where=lake.uri(manifest_path(following.state)),
        why=_gap(following, properties),
        fix=f"{fix}. Nothing was deleted.",
    )


def _gap(following: Manifest, properties: TableProperties) -> str:
    if following.parent != properties.state:
        return f"it follows state {following.parent}, and {properties.state} is in force"
    if following.made_under != properties.version:
        return f"it was made under version {following.made_under}, and the table has version {properties.version}"
    made, has = (", ".join(keys or ()) for keys in (following.keys, properties.keys))
    return f"it was made under the key ({made}), and the table has the key ({has})"


def _published_last(found: Sequence[Manifest]) -> Manifest | None:
    """Return of the states after the one in force that which was published last, None where that cannot be told.

    One that another follows was in force. Of several that follow the last of these one was, whatever their numbers: the
    others come from runs that were stopped.
    """
    before = max((m.parent for m in found if m.parent is not None), default=None)
    last = [m for m in found if m.parent == before]
    return last[0] if len(last) == 1 else None


def _delete_unnamed(lake: Lake, lost: Manifest, known: AbstractSet[str]) -> None:
    """Delete the directories of a state that will never be in force, but for those that others know.

    Also those that it superseded: what it admitted and folded at once. Those that are gone are not asked for: every
    run comes here until a state has passed this one. What cannot be deleted does no harm: it may be of another user.
    """
    unnamed = lost.locations - known
    runs = {run_directory(location) for location in unnamed}
    with suppress(StorageError):
        there = {str(above) for run in runs for file in lake.files(run) for above in PurePosixPath(file.path).parents}
        for location in sorted(unnamed & there):
            lake.delete_directory(location)


def token_in_force(workspace: Workspace, target: TableTarget) -> str | None:
    """Return the value of the compare-and-set key as it is now, None where there is no table of ours."""
    table = workspace.metastore.table(target.database, target.table)
    return None if table is None else table.properties.get(STATE)


def properties_in_force(workspace: Workspace, target: TableTarget) -> TableProperties | None:
    """Return a table's properties as they are now, None where there is no table of ours.

    Raises:
        ValueError: they are mangled.
    """
    table = workspace.metastore.table(target.database, target.table)
    return read_properties(table.properties) if table is not None and is_ours(table.properties) else None


def manifest_in_force(workspace: Workspace, target: TableTarget) -> Manifest | None:
    """Return the manifest of a table's state in force, None where there is no table of ours or it is mangled."""
    try:
        properties = properties_in_force(workspace, target)
        return None if properties is None else read_manifest(workspace.storage(target).lake, target, properties)
    except (DataError, ValueError):
        return None


def repair_partitions(
    workspace: Workspace, target: TableTarget, properties: TableProperties, manifest: Manifest
) -> None:
    """Make the partitions those of the state in force, and unregister those that it does not know."""
    sync_partitions(workspace, target, manifest)
    _drop_strangers(workspace, target, properties, manifest)


def _drop_strangers(workspace: Workspace, target: TableTarget, properties: TableProperties, manifest: Manifest) -> None:
    """Unregister partitions that the state in force does not know: a stalled writer of an earlier one added them."""
    known = manifest.passing | {s.name for s in manifest.segments}
    there = workspace.metastore.partitions(target.database, target.table)
    strangers = [name for name in there if segment_of(name) not in known]
    if not strangers:
        return
    if token_in_force(workspace, target) == properties.token:
        workspace.metastore.drop_partitions(target.database, target.table, sorted(strangers))


def unpublished(lake: Lake, properties: TableProperties) -> list[str]:
    """Return the paths of manifests that come after the state in force: they wait to be put in force, or never will."""
    return [file.path for state, file in _manifests(lake) if properties.state < state]


def written_states(lake: Lake, properties: TableProperties) -> tuple[StateId, ...]:
    """Return up to the state in force those whose manifests are there, in order; some were perhaps never in force."""
    return tuple(state for state, _ in _manifests(lake) if not properties.state < state)


def forget_states(lake: Lake, in_force: Manifest, *, before_ms: int) -> None:
    """Delete manifests that nobody asks for any more, where they are older than ``before_ms``.

    Every run lists all that there are. Kept are the state in force and the one before it, and of one generation a day
    the first, which the history tells: of two, as the lowest number may be one that was never in force. What a killed
    process had begun to write of a manifest goes, too.
    """
    before = in_force.parent or in_force.state
    files = [file for file in lake.files(GENERATIONS) if file.modified_ms <= before_ms]
    old = [(state, file) for state, file in _manifests_of(files) if state < before]
    days: set[int] = set()
    # A day, as one may be configured to wait for nothing, and a live writer's is there for a moment.
    spare = [file for file in files if file.path.endswith(".tmp") and file.modified_ms <= before_ms - _DAY_MS]
    for _, states in groupby(old, key=lambda pair: pair[0].generation):
        first, *more = states
        day = first[1].modified_ms // _DAY_MS
        # Its first states may be gone already, with those of the day before: then these tell nothing.
        told = first[0].admission < 2 and day not in days
        spare += [file for _, file in (more[1:] if told else (first, *more))]
        days |= {day} if told else set()
    for file in spare[:MOST_FORGOTTEN]:
        with suppress(StorageError):
            lake.delete(file.path)


def _manifests(lake: Lake) -> list[tuple[StateId, FileInfo]]:
    """Return all states that were written, in order, with their files."""
    return _manifests_of(lake.files(GENERATIONS))


def _manifests_of(files: Iterable[FileInfo]) -> list[tuple[StateId, FileInfo]]:
    found = [(state, file) for file in files if (state := _state_of(file.path)) is not None]
    return sorted(found, key=itemgetter(0))


def _state_of(path: str) -> StateId | None:
    """Return the state that a manifest is of, None for files that are no manifests."""
    try:
        return StateId.parse(path.rsplit("/", 1)[-1].removesuffix(".json"))
    except ValueError:
        return None
