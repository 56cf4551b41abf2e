"""Cleaning up what a published compaction has made superfluous, at its time and in its order.

Partitions of superseded segments go after the reader grace, directories a vacuum retention later, the sink's files by
name once a published compaction took them in. With the first directory of a generation goes what runs left there that
never published it; with any directory go manifests of states that nobody asks for any more, and what killed admissions
had put aside. Killed anywhere, the next run does the rest. What may not be deleted, a landed file that is the
sink's, or a directory that another user wrote, stops nothing of that.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count, groupby
from typing import Final, TypeVar

from schemasync.app.inspecting import TableView, look
from schemasync.app.landed import hours_there, replaced
from schemasync.app.states import Draft, forget_states, publish, unpublished
from schemasync.app.view_texts import view_select
from schemasync.app.workspace import Workspace
from schemasync.core.admission import STAGING
from schemasync.core.amounts import many
from schemasync.core.compaction import Retirement, after_retirement, due
from schemasync.core.ddl import expected_columns
from schemasync.core.manifest import AdmittedFile, Manifest, Superseded, run_directory
from schemasync.core.mapping import TableTarget
from schemasync.core.partitioning import segment_of
from schemasync.core.ports import FileInfo, HiveTable, Lake
from schemasync.core.shape import Shape
from schemasync.core.view_drift import as_shown, same_text
from schemasync.errors import SchemasyncError, StorageError

_log: Final = logging.getLogger("schemasync.compaction")

_QUIET_MS: Final = 48 * 3_600_000
"""So long after an hour, in whatever time zone it was counted, no sink is expected to begin a file of it."""
_MOST_REFUSED: Final = 10
"""After so many directories in a row, from either end, the next cleaning up tries again: a storage that is down takes
its time."""

_Piece = TypeVar("_Piece")
_Gone = TypeVar("_Gone")


def retirement(target: TableTarget, manifest: Manifest, *, now_ms: int) -> Retirement:
    """Say what is due for one table."""
    rules = target.compaction
    found = due(manifest, now_ms=now_ms, reader_grace_ms=rules.reader_grace, vacuum_retention_ms=rules.vacuum_retention)
    if rules.on_fold == "keep":
        return Retirement(partitions=found.partitions, directories=found.directories)
    return found


def retire(workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft) -> None:
    """Clean up what is due, then publish the state that no longer lists it; its view shows the same.

    Raises:
        ConflictError: another writer published meanwhile; what was cleaned up stays so, and is noticed next time.
        StorageError: directories or landed files could not be deleted; all else was.
    """
    left, failure = clean_up(workspace, target, shape, draft)
    if left.unpublished:
        left = publish(workspace, target, left)
    remove_dead_columns(workspace, target, shape, left.manifest)
    if failure is not None:
        raise failure


def retire_all_the_same(workspace: Workspace, target: TableTarget, error: BaseException | None) -> None:
    """Clean up what is due though the work before it failed: on a full disk that is what makes the next run fit.

    What goes wrong is logged: the ``error`` of the work is the one to tell. Nothing goes unless the storage refused:
    where data is damaged it may have to be restored from what is due. Nor does it while a state that was written waits
    to be put in force, which a later one would pass, or while the view is not that of the state in force.
    """
    if not isinstance(error, StorageError):
        return
    try:
        if standing := shown(workspace, look(workspace, target)):
            retire(workspace, target, *standing)
    except Exception as failure:
        if str(failure) != str(error):
            extra = {"table": target.full_name}
            _log.warning("table %s: what is due is not all cleaned up: %s", target.full_name, failure, extra=extra)


def shown(workspace: Workspace, found: TableView) -> tuple[Shape, Draft] | None:
    """Return the state in force where the table's views show it, and no later one waits to be put there.

    Else they may read what is due, or it may be what a person needs to put them right.
    """
    target, views = found.decision.target, found.inspected.views
    shape, properties, manifest = found.decision.current, found.decision.properties, found.manifest
    if shape is None or properties is None or manifest is None or not views:
        return None
    if not all(_shows(workspace, target, shape, manifest, view) for view in views):
        return None
    return None if unpublished(workspace.storage(target).lake, properties) else (shape, Draft.of(properties, manifest))


def clean_up_before(
    workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft, *, seen: HiveTable | None
) -> Draft:
    """Clean up what is due before work is published, and return the draft that no longer lists it.

    ``seen`` is the view as planning found it, None where this run has changed it.

    What fails is tried again once the work is shown, and told then: trouble with what is old must not stop it. So is
    all of it while the view is not that of the state in force: it may read what is due, and the work may not be shown.
    """
    if not retirement(target, draft.manifest, now_ms=workspace.now_ms()).empty:
        with suppress(SchemasyncError):
            view = seen or workspace.metastore.table(target.database, target.view)
            if view is not None and _shows(workspace, target, shape, draft.in_force, view):
                return clean_up(workspace, target, shape, draft)[0]
    return draft


def _shows(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, view: HiveTable) -> bool:
    """Tell whether a view is that of a state."""
    select = view_select(workspace, as_shown(target, shape, view), shape, manifest.contents)
    return same_text(view.query, select)


def clean_up(
    workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft
) -> tuple[Draft, StorageError | None]:
    """Clean up what is due, and return the draft that no longer lists it; until that is published, anyone may again.

    Return also why directories or landed files stayed, where some did; the draft lists these.
    """
    now, manifest = workspace.now_ms(), draft.manifest
    found = retirement(target, manifest, now_ms=now)
    if found.empty:
        return draft, None
    workspace.progress(target.table, _summary(found))
    lake = workspace.storage(target).lake
    if found.partitions:
        workspace.metastore.drop_partitions(target.database, target.table, _names(workspace, target, shape, found))
    directories, denied = _retire_directories(lake, target, found.directories)
    gone, failure = _retire_files(lake, target, found.sink_files, keyed=manifest.keyed)
    failure = denied or failure
    done = replace(found, directories=directories, sink_files=gone)
    if done.empty:
        return draft, failure
    if gone:
        _sweep_hours(lake, target, before_ms=now - _QUIET_MS)
    vacuumed, rules = {s.location for s in directories}, target.compaction
    named = (draft.in_force.locations | manifest.locations) - vacuumed
    old = now - rules.reader_grace - rules.vacuum_retention
    _sweep(lake, vacuumed, named, before_ms=old)
    if vacuumed:
        _sweep_staging(lake, before_ms=old)
        forget_states(lake, draft.in_force, before_ms=old)
    return draft.with_(after_retirement(manifest, done, now_ms=now)), failure


def _sweep(lake: Lake, vacuumed: AbstractSet[str], named: AbstractSet[str], *, before_ms: int) -> None:
    """Delete what lies beside vacuumed directories and no state will ever name, in ``base/g=000007/<token of a run>``.

    A generation whose segments were superseded was in force. Whoever else wrote for its number was killed, or will
    find that another one was first; to let it find that, what is younger than ``before_ms`` stays. What cannot be
    deleted does no harm: it may be of another user.
    """
    kept = {run_directory(location) for location in named}
    for generation in sorted({run_directory(location).rpartition("/")[0] for location in vacuumed}):
        still = {run for run in kept if run.startswith(f"{generation}/")}
        with suppress(StorageError):
            runs = set(lake.directories(generation))
            if not still <= runs:
                # A storage that tells less than there is, or by other names, is not to be relied on here.
                continue
            for gone in (*sorted(runs - still), *(() if still else (generation,))):
                if all(file.modified_ms <= before_ms for file in lake.files(gone)):
                    lake.delete_directory(gone)


def _sweep_hours(lake: Lake, target: TableTarget, *, before_ms: int) -> None:
    """Delete directories of hours that have nothing in them any more, and those above that have nothing else.

    Every look lists them all. A sink that comes back to such an hour makes it anew.
    """
    before = datetime.fromtimestamp(before_ms / 1000, UTC).strftime("%Y%m%d%H")
    top = target.increments.split("{", 1)[0].count("/")
    with suppress(StorageError):
        for directory in (d for d, hour in hours_there(lake, target.increments) if hour < before):
            parts = directory.split("/")
            for depth in range(len(parts), top, -1):
                lake.delete_if_empty("/".join(parts[:depth]))


def _sweep_staging(lake: Lake, *, before_ms: int) -> None:
    """Delete what admissions that were killed had put aside. One that has no file yet may have begun just now."""

    def sweep(aside: str) -> Iterator[str]:
        files = lake.files(aside)
        if files and all(file.modified_ms <= before_ms for file in files):
            lake.delete_directory(aside)
            yield aside

    with suppress(StorageError):
        _from_both_ends(lake.directories(STAGING), sweep)


def _names(workspace: Workspace, target: TableTarget, shape: Shape, found: Retirement) -> list[str]:
    """Return the partitions of superseded segments: where users have partitions too, only the metastore knows them."""
    gone = {s.segment for s in found.partitions}
    there = workspace.metastore.partitions(target.database, target.table) if shape.partitions else gone
    return sorted(name for name in there if segment_of(name) in gone)


def dead_columns(shape: Shape, manifest: Manifest) -> frozenset[str]:
    """Return the columns that were ours and that no file a reader may meet carries any more.

    Nothing is dead while segments of earlier states are still registered, or a segment is of an earlier version:
    whoever has an earlier view may name any column that there was.
    """
    if any(s.registered for s in manifest.superseded):
        return frozenset()
    if any(s.schema_version != shape.version.version for s in manifest.segments):
        return frozenset()
    needed = {c.name for c in expected_columns(shape)}
    carried = {name for segment in manifest.segments for name in segment.columns}
    ours = {c.name for c in shape.layout.columns}
    return frozenset(ours - needed - carried)


def remove_dead_columns(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest) -> None:
    """Take dead columns out of the metastore's table and its partitions; files never change for that."""
    dead = dead_columns(shape, manifest) if manifest.segments else frozenset()
    if not dead:
        # Nearly always, and the metastore need not be asked.
        return
    table = workspace.metastore.table(target.database, target.table)
    if table is not None and (gone := sorted(c.name for c in table.columns if c.name in dead)):
        workspace.progress(target.table, f"removing the dead columns {', '.join(gone)}")
        kept = [c for c in table.columns if c.name not in dead]
        workspace.metastore.replace_columns(target.database, target.table, kept)


def _directory(file: AdmittedFile) -> str:
    return file.path.rpartition("/")[0]


def _retire_files(
    lake: Lake, target: TableTarget, files: Iterable[AdmittedFile], *, keyed: bool
) -> tuple[tuple[AdmittedFile, ...], StorageError | None]:
    """Archive or delete files; return those that are gone, and why others stay.

    Sinks often are another user: whom one file of a directory is denied, all others of it are.
    """

    def retire_those_of(directory: str) -> Iterator[AdmittedFile]:
        there = {f.path: f for f in lake.files(directory)}
        for file in by_directory[directory]:
            _retire_file(lake, target, file, there, keyed=keyed)
            yield file

    by_directory = {d: tuple(of_it) for d, of_it in groupby(sorted(files, key=_directory), key=_directory)}
    gone, refused = _from_both_ends(by_directory, retire_those_of)
    fix = "Where they are the sink's alone to delete, let them stay: compaction: {on_fold: keep}."
    return gone, _stay("landed files that were compacted", target, refused, fix=fix)


def _retire_directories(
    lake: Lake, target: TableTarget, directories: Iterable[Superseded]
) -> tuple[tuple[Superseded, ...], StorageError | None]:
    """Delete directories; return those that are gone, and why others stay: another user may once have compacted."""

    def delete(superseded: Superseded) -> Iterator[Superseded]:
        lake.delete_directory(superseded.location)
        yield superseded

    gone, refused = _from_both_ends(directories, delete)
    fix = "Let this user own what lies there, or delete it: nobody reads it any more."
    return gone, _stay("superseded directories", target, refused, fix=fix)


def _from_both_ends(
    pieces: Iterable[_Piece], clean: Callable[[_Piece], Iterator[_Gone]]
) -> tuple[tuple[_Gone, ...], StorageError | None]:
    """Clean up piece by piece; return what is gone, and the first reason why others stay.

    Whom some in a row are denied, the next to them are, too. Those may be the oldest (they were another user's), or the
    newest (a storage keeps what is young): it is tried from both ends.
    """
    gone: list[_Gone] = []
    refused: list[StorageError] = []
    left = deque(pieces)
    for take in (left.pop, left.popleft):
        in_a_row = 0
        while left and in_a_row < _MOST_REFUSED:
            try:
                for one in clean(take()):
                    gone.append(one)
                in_a_row = 0
            except StorageError as error:
                in_a_row += 1
                refused.append(error)
    return tuple(gone), refused[0] if refused else None


def _stay(what: str, target: TableTarget, error: StorageError | None, *, fix: str) -> StorageError | None:
    if error is None:
        return None
    fix = f"{error.fix} {fix}".lstrip()
    failure = StorageError(f"{what} cannot be cleaned up", where=target.full_name, why=error.said, fix=fix)
    failure.__cause__ = error
    return failure


def _retire_file(
    lake: Lake, target: TableTarget, file: AdmittedFile, there: Mapping[str, FileInfo], *, keyed: bool
) -> None:
    """Archive or delete a file, unless the sink wrote another; ``there`` is what its directory held just now.

    Others of the directory may go before it, which takes a while, and sinks that begin anew use the old names again.
    """
    seen = there.get(file.path)
    if seen is None or replaced(seen, file, keyed=keyed):
        # Gone already, or the sink wrote another file of that name: that one was not admitted yet.
        return
    rewritten = seen.modified_ms != file.modified_ms
    # Without keys another file of the same size is not admitted; what it holds may be in no generation.
    if target.compaction.on_fold == "archive" or file.lost or rewritten:
        lake.move(file.path, _free_place(lake, f"archive/{file.path}"), seen=seen)
    else:
        lake.delete(file.path, seen=seen)


def _free_place(lake: Lake, path: str) -> str:
    """Return a path that no file has yet: sinks use names again, and an archive keeps what it was given."""
    directory, _, name = path.rpartition("/")
    there = {f.path for f in lake.files(directory)}
    again = (f"{directory}/{number}-{name}" for number in count(2))
    return next(place for place in chain([path], again) if place not in there)


def _summary(found: Retirement) -> str:
    return (
        f"cleaning up {many(len(found.partitions), 'partition')}, {many(len(found.directories), 'directory')}, "
        f"{many(len(found.sink_files), 'landed file')}"
    )
