"""Making landed files visible: one delta segment per run, published like every other state.

Files that cannot be read hold the table: nothing of it is admitted until someone looked, and other tables go on. So do
events that cannot be applied.
Files of a schema that the table does not have wait where the sink put them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemasync.app.landed import Landed, look_at, of_changed, of_unclear_key, pending_files
from schemasync.app.reading_back import abandoned, changed_keys, checked_footer, extents, key_range, moments
from schemasync.app.states import Draft, publish, read_draft
from schemasync.app.viewing import refresh_view
from schemasync.app.workspace import Storage, Workspace
from schemasync.core import ddl
from schemasync.core.admission import AdmissionRequest, Admitted, EarlierDelta, EarlierRows, FoldedShard, LandedFile
from schemasync.core.amounts import many
from schemasync.core.beyond import findings, lost
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.envelope import clock_behind, is_shared
from schemasync.core.layering import touching
from schemasync.core.layout import ordering_columns
from schemasync.core.manifest import (
    AdmittedFile,
    Manifest,
    Segment,
    SegmentKind,
    after_admission,
    delta_name,
    new_run_directory,
)
from schemasync.core.mapping import TableTarget
from schemasync.core.moments import Moment, Newest, newest_of
from schemasync.core.ports import HiveTable, LandedFiles
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape
from schemasync.core.sharding import by_key, has_ranges
from schemasync.core.toast import unsent_rule
from schemasync.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOutcome:
    """What one admission did: files and events made visible, files that wait for whatever reason, and findings.

    Of those that wait some are ``unfinished``: they are still being written. The others are visible once the ``draft``
    is published. ``odd`` are the findings about what they hold.
    """

    draft: Draft
    files: int = 0
    events: int = 0
    waiting: int = 0
    unfinished: int = 0
    findings: tuple[Diagnostic, ...] = ()
    odd: tuple[Diagnostic, ...] = ()

    def after(self, first: AdmissionOutcome | None) -> AdmissionOutcome:
        """Return this outcome with what an earlier admission of the same run brought in."""
        if first is None:
            return self
        return replace(self, files=first.files + self.files, events=first.events + self.events)


def admit(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    properties: TableProperties,
    *,
    publishing: bool = True,
    seen: HiveTable | None = None,
) -> AdmissionOutcome:
    """Admit everything that landed and can be read; ``shape`` and ``properties`` are the table's, in force.

    Unless ``publishing``, the caller publishes it, with `show` or with what it does next. ``seen`` is of
    `refresh_view`.

    Raises:
        ConflictError: another writer published first.
        StorageError: the delta cannot be written, or engines would misread it; nothing is visible, the next run tries
            again.
    """
    draft = read_draft(workspace, target, properties)
    admitted = take_in(workspace, target, shape, draft)
    if not (admitted.files and publishing):
        return admitted
    return replace(admitted, draft=show(workspace, target, shape, admitted.draft, seen=seen))


def take_in(workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft) -> AdmissionOutcome:
    """Write what landed and can be read as one delta; the outcome's draft has it, and nobody has published it.

    Nothing is where a file is not read as it was looked at: a sink replaced it, or was still writing it.

    Raises:
        StorageError: the delta cannot be written, or engines would misread it.
    """
    files = pending_files(workspace, target, draft.manifest)
    landed = look_at(workspace, shape, target, files)
    unchanged = AdmissionOutcome(
        draft=draft, waiting=len(files), unfinished=landed.unfinished, findings=landed.findings
    )
    if landed.blocked or not landed.ready:
        return unchanged
    workspace.progress(target.table, f"admitting {many(len(landed.ready), 'landed file')}")
    try:
        return _admitted(workspace, target, shape, unchanged, landed)
    except DataError as error:
        refused = diagnose("SS303", _named(str(error), target, landed))
        # What is wrong with a file that changed meanwhile is not the file's: the next look takes it as it is then.
        return replace(unchanged, findings=(*landed.findings, *(of_changed(workspace, target, landed) or [refused])))


def _named(text: str, target: TableTarget, landed: Landed) -> str:
    """Return a text that begins with the path of a landed file, which readers have in their own way, as others have it.

    Other findings of landed files begin with the table's location, which says on which storage it is.
    """
    heads = ((file.path, text.partition(f"/{file.path}: ")) for file in landed.ready)
    return next((f"{target.location}/{path}: {rest}" for path, (_, mark, rest) in heads if mark), text)


def show(
    workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft, *, seen: HiveTable | None = None
) -> Draft:
    """Publish a draft, and make the view show it; ``seen`` is of `refresh_view`.

    Raises:
        ConflictError: another writer published first.
    """
    shown = publish(workspace, target, draft)
    refresh_view(workspace, target, shape, shown.manifest, seen=seen)
    return shown


def put_off(workspace: Workspace, target: TableTarget, properties: TableProperties) -> AdmissionOutcome:
    """Admit nothing while the key is unclear, and say what waits."""
    draft = read_draft(workspace, target, properties)
    waiting = pending_files(workspace, target, draft.manifest)
    findings = (of_unclear_key(len(waiting)),) if waiting else ()
    return AdmissionOutcome(draft=draft, waiting=len(waiting), findings=findings)


def _admitted(
    workspace: Workspace, target: TableTarget, shape: Shape, before: AdmissionOutcome, landed: Landed
) -> AdmissionOutcome:
    storage, current = workspace.storage(target), before.draft.manifest
    # Later than every admission before, whatever the clock did: the time of admission decides between equal events.
    now = max(workspace.now_ms(), current.published_ms + 1)
    directory = new_run_directory(SegmentKind.DELTA, current.next_delta, workspace.token())
    request = _request(target, shape, landed, current, directory=directory, now_ms=now)
    with abandoned(storage.lake, directory):
        written = reader_for(storage, target, landed.ready).admit(request)
        segment = _checked(storage, target, shape, request, written, current)
    manifest = after_admission(
        current,
        segment=segment,
        files=[
            _admitted_file(file, segment.name, lost=lost(written.beyond, file.path) + written.contradicted)
            for file in landed.ready
        ],
        schema_version=shape.version.version,
        now_ms=now,
    )
    odd = (*findings(written.beyond), *_contradicted(shape, written))
    return AdmissionOutcome(
        draft=before.draft.with_(manifest),
        files=len(landed.ready),
        events=written.events,
        waiting=before.waiting - len(landed.ready),
        unfinished=before.unfinished,
        findings=(*before.findings, *odd),
        odd=odd,
    )


def _contradicted(shape: Shape, written: Admitted) -> Iterator[Diagnostic]:
    ordering = shape.envelope.ordering
    place = clock_behind(ordering)
    if written.contradicted and place is not None:
        what = f"{many(written.contradicted, 'row')} {'is' if written.contradicted == 1 else 'are'}"
        text = f"{what} older by {ordering[0]} than what is there of their keys, and newer by {ordering[place]}"
        yield diagnose("SS310", text)


def _checked(
    storage: Storage,
    target: TableTarget,
    shape: Shape,
    request: AdmissionRequest,
    written: Admitted,
    current: Manifest,
) -> Segment:
    """Look at a delta before anyone else does, and return it as a segment, with what is told about it."""
    ordering, keys = request.ordering[0], shape.key_columns
    footers = [
        checked_footer(storage.small, file.path, request.columns, ordering=ordering, keys=keys)
        for file in written.files
    ]
    if not written.files:
        # It is a partition's place all the same, which a metastore would have to make itself.
        storage.lake.make_directory(request.directory)
    segment = _segment(request, written, name=delta_name(current.next_delta))
    if not request.keys:
        return segment
    told: dict[str, Any] = {"key_range": key_range(footers, keys), **moments(footers, shape.envelope)}
    if request.beside is not None and not written.toasted:
        told |= touching(current.base, written.touches)
        told |= _beside_what_is_there(request.beside, written, extents(footers, ordering))
    segment = segment.model_copy(update=told)
    changed = changed_keys(storage.small, segment, keys, beside=current.deltas, target=target)
    return segment.model_copy(update={"changed": changed})


def reader_for(storage: Storage, target: TableTarget, files: tuple[LandedFile, ...]) -> LandedFiles:
    """Choose Arrow while the files fit the limit, Spark beyond it."""
    small = storage.is_small(sum(f.bytes for f in files), target.compaction.arrow_limit)
    return storage.small if small else storage.large


def _beside_what_is_there(
    beside: EarlierRows, written: Admitted, known: Sequence[tuple[Moment, Moment]] | None
) -> dict[str, Any]:
    """Return what a segment says of itself and what was there; footers may show what was not compared."""

    def above(newest: Newest) -> bool:
        return known is not None and all(low > newest.first for low, _ in known)

    deltas = beside.deltas
    return {
        "ahead": written.ahead or above(beside.newest),
        "ahead_of_deltas": written.ahead_of_deltas or (deltas is not None and all(above(d.newest) for d in deltas)),
    }


def _beside(shape: Shape, manifest: Manifest) -> EarlierRows | None:
    """Return what new changes come beside, None where there is no base or they are not comparable with it."""
    keys, base, deltas = shape.key_columns, manifest.base, manifest.deltas
    newest = newest_of(_newest(shape, base) or ())
    if newest is None:
        return None
    ascending = by_key(base, [type_ for _, type_ in keys])
    shards = tuple(FoldedShard(name=s.name, low=low, files=s.files) for low, s in ascending)
    known = _newest(shape, deltas)
    if known is None:
        return EarlierRows(shards=shards, newest=newest, deltas=None)
    earlier = tuple(EarlierDelta(files=s.files, newest=n) for s, n in zip(deltas, known, strict=True))
    return EarlierRows(shards=shards, newest=newest, deltas=earlier)


def _newest(shape: Shape, segments: Sequence[Segment]) -> tuple[Newest, ...] | None:
    """Return what bounds each segment's rows; None where one cannot be compared with."""
    if any(s.toasted or s.newest is None for s in segments) or not has_ranges(shape.key_columns, segments):
        return None
    return tuple(Newest(s.newest, s.newest_then) for s in segments)


def _request(
    target: TableTarget, shape: Shape, landed: Landed, manifest: Manifest, *, directory: str, now_ms: int
) -> AdmissionRequest:
    columns, ordering = ddl.expected_columns(shape), ordering_columns(shape.envelope)
    clock = clock_behind(shape.envelope.ordering)
    return AdmissionRequest(
        files=landed.ready,
        directory=directory,
        columns=tuple((c.name, c.type) for c in columns),
        keys=tuple(name for name, _ in shape.key_columns),
        ordering=ordering,
        schema_version=shape.version.version,
        admitted_ms=now_ms,
        memory=target.compaction.memory,
        clock=None if clock is None else ordering[clock],
        shared=is_shared(shape.envelope.ordering),
        unsent=unsent_rule(target, shape),
        beside=_beside(shape, manifest),
        partition_by=shape.partitions,
    )


def _segment(request: AdmissionRequest, written: Admitted, *, name: str) -> Segment:
    return Segment(
        name=name,
        kind=SegmentKind.DELTA,
        location=request.directory,
        files=written.files,
        rows=written.rows,
        bytes=sum(f.bytes for f in written.files),
        schema_version=request.schema_version,
        columns=tuple(column for column, _ in request.columns),
        toasted=written.toasted,
        placeholders=request.unsent.placeholders if written.toasted and request.unsent else (),
        events=written.events,
        sorted_by=request.keys,
        created_ms=request.admitted_ms,
        partition_by=tuple(p.name for p in request.partition_by),
    )


def _admitted_file(file: LandedFile, segment: str, *, lost: int) -> AdmittedFile:
    return AdmittedFile(
        path=file.path,
        bytes=file.bytes,
        rows=file.rows,
        modified_ms=file.modified_ms,
        writer_version=file.projection.writer,
        segment=segment,
        lost=lost,
    )
