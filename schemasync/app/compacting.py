"""Compaction: fold what was admitted into the base, or merge it beside the base, publish, clean up what is due.

Every run first does what apply does, so that it works under the newest schema that policy lets through; its per-run
tables are made from that schema and dropped again, also those that a killed run left. Whatever fails, the state in
force stays readable.

What it admits, cleans up, and folds or merges is published together: each publication costs several calls of the
metastore, which is what a small compaction's time goes into. A long one shows first what it admitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from schemasync.app.admitting import show, take_in
from schemasync.app.applying import Applied, apply_table
from schemasync.app.crew import each_table
from schemasync.app.folding import Folded, can_be_cut, is_by_sql, run_fold, shards_to_write
from schemasync.app.layering import Layered, merged_delta, run_merge
from schemasync.app.per_run import drop_per_run_tables
from schemasync.app.planning import TablePlan, admits
from schemasync.app.retiring import clean_up_before, retire, retire_all_the_same
from schemasync.app.states import Draft, read_draft, token_in_force, withdraw
from schemasync.app.viewing import refresh_view
from schemasync.app.workspace import Progress, Storage, Workspace
from schemasync.core.compaction import FoldCounts, FoldPlan, needs_fold, plan_fold, shown_by_now
from schemasync.core.config_values import MB
from schemasync.core.layering import MergePlan, Mode, after_merge, plan_gathering, plan_merge, why_folded
from schemasync.core.manifest import Manifest, Segment
from schemasync.core.mapping import TableTarget
from schemasync.core.migration import outdated
from schemasync.core.ports import HiveTable
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape
from schemasync.core.unchanged import shuffled
from schemasync.errors import SchemasyncError, UsageError, as_ours
from schemasync.io.logs import told

_TRIED_BYTES: Final = 256 * MB
"""A dry run takes in so much: it waits for that, and the local disk may be the machine's memory."""
_LONG_BYTES: Final = 512 * MB
"""To read so much, and to write what becomes of it, takes some ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did with one table: folded, or merged beside the base; both None: there was nothing to do.

    ``manifest`` is that of the state in force then, None where there is no table of ours, where nothing can be read of
    its state, and where it failed. ``counts`` are None in a dry run, and after a merge, which looks at no row of the
    base. ``seconds`` is the wall time of the work and its publication. ``why`` it folds, where it was told not to.
    """

    target: TableTarget
    applied: Applied
    manifest: Manifest | None = None
    fold: FoldPlan | None = None
    merge: MergePlan | None = None
    why: str | None = None
    counts: FoldCounts | None = None
    bytes_written: int = 0
    seconds: float = 0.0
    error: SchemasyncError | None = None

    @property
    def generation(self) -> int | None:
        """The generation in force, None without a manifest."""
        return self.manifest.state.generation if self.manifest else None

    @property
    def base(self) -> tuple[Segment, ...]:
        """The shards that are in force."""
        return self.manifest.base if self.manifest else ()

    @property
    def deltas(self) -> tuple[Segment, ...]:
        """The changes beside them."""
        return self.manifest.deltas if self.manifest else ()

    @property
    def rows(self) -> int:
        """Live rows of the base."""
        return sum(shard.rows - shard.tombstones for shard in self.base)

    @property
    def failure(self) -> SchemasyncError | None:
        """What went wrong, in the compaction or in the apply before it."""
        return self.error or self.applied.error

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``compact --json``.

        ``rows`` are the live ones of the whole base as it is then. They, ``generation``, ``shards`` and ``deltas`` are
        None where that is not known, or there is no table.
        """
        known = self.manifest is not None
        counts = self.counts or FoldCounts()
        work = self.fold or self.merge
        return {
            "table": self.target.table,
            "database": self.target.database,
            "kind": "major" if self.fold else "minor" if self.merge else None,
            "why": self.why,
            "generation": self.generation,
            "events": work.events if work else 0,
            "keys": counts.keys,
            "rows": self.rows if known else None,
            "inserted": counts.inserted,
            "updated": counts.updated,
            "deleted": counts.deleted,
            "shards_rewritten": len(self.fold.shards) if self.fold else 0,
            "shards": len(self.base) if known else None,
            "deltas": len(self.deltas) if known else None,
            "rewrite_bytes": work.rewrite_bytes if work else 0,
            "change_bytes": work.change_bytes if work else 0,
            "bytes_read": work.bytes_read if work else 0,
            "bytes_written": self.bytes_written,
            "seconds": round(self.seconds, 3),
            "held": self.applied.held,
            "error": told(self.failure),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """What a compaction did with all tables."""

    tables: tuple[Compacted, ...]
    problems: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what ``compact --json`` prints."""
        return {"tables": [t.to_json() for t in self.tables], "problems": [str(p) for p in self.problems]}


def compact(
    workspace: Workspace, names: Sequence[str] = (), *, dry_run: bool = False, mode: Mode = Mode.AUTO
) -> CompactResult:
    """Compact the named tables, all where none is named; one failing table never stops the others.

    So many at once as the configuration says, results in the order of the configuration.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    results, mapping = each_table(workspace, names, partial(compact_table, dry_run=dry_run, mode=mode))
    return CompactResult(tables=results, problems=mapping.problems)


def compact_table(
    workspace: Workspace,
    target: TableTarget,
    *,
    dry_run: bool = False,
    mode: Mode = Mode.AUTO,
    applied: Applied | None = None,
) -> Compacted:
    """Compact one table; its errors are part of the result.

    A dry run changes nothing and does not apply: what landed is taken in on the local disk alone, to be decided with.
    """
    if applied is None:
        nothing = (lambda _: False) if dry_run else (lambda _: True)
        applied = apply_table(workspace, target, allowed=nothing, admitting=not dry_run, publishing=False)
    state = _state(applied)
    if applied.error is not None or state is None:
        view = applied.plan.view
        if view is not None and not dry_run:
            retire_all_the_same(workspace, target, applied.error)
        # Also a table that is held because its shape is not understood goes on showing what it has.
        manifest = view.manifest if view is not None and applied.error is None else None
        return Compacted(target=target, applied=applied, manifest=manifest)
    shape, properties = state
    try:
        draft = _draft(workspace, applied, properties)
        if dry_run:
            return _decided(workspace, shape, draft, applied, mode=mode)
        return _compact(workspace, shape, draft, applied, mode=mode)
    except Exception as error:
        return Compacted(target=target, applied=applied, error=as_ours(error))


def _state(applied: Applied) -> tuple[Shape, TableProperties] | None:
    """Return shape and properties of the table as apply left it, None where there is no table of ours."""
    plan: TablePlan = applied.plan
    if plan.view is None or applied.shape is None or applied.properties is None:
        return None
    return applied.shape, applied.properties


def _draft(workspace: Workspace, applied: Applied, properties: TableProperties) -> Draft:
    if applied.admitted is not None:
        return applied.admitted.draft
    return read_draft(workspace, applied.target, properties)


def _decided(workspace: Workspace, shape: Shape, draft: Draft, applied: Applied, *, mode: Mode) -> Compacted:
    """Decide with what is in the table, and with what a run would take in and merge first, and do nothing of it.

    What is too much for one process, or for its disk perhaps, is left out.
    """
    target, storage = applied.target, workspace.storage(applied.target)
    size = sum(file.bytes for file in applied.plan.view.pending) if applied.plan.view else 0
    lands = size > 0 and _is_tried(storage, target, size) and admits(applied.plan)
    gathers = _gathers(workspace, target, shape, draft.manifest, more=size if lands else 0)
    with ExitStack() as stack:
        if lands or gathers:
            scratch = stack.enter_context(storage.scratch())
            workspace = replace(workspace, storage=lambda _: scratch, progress=_trying(workspace.progress))
        if lands:
            admitted = take_in(workspace, target, shape, draft)
            draft, applied = admitted.draft, replace(applied, admitted=admitted)
        if gathers:
            draft = _gathered_to_try(workspace, target, shape, draft)
        work, old = _work(workspace, shape, draft.manifest, applied, mode)
    return _found(shape, draft.manifest, applied, mode, work, old)


def _is_tried(storage: Storage, target: TableTarget, size: int) -> bool:
    return size <= _TRIED_BYTES and storage.is_small(size, target.compaction.arrow_limit)


def _gathers(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, *, more: int) -> bool:
    """Tell whether deltas, and the one of ``more`` bytes that would be admitted, are merged on the local disk."""
    if not more and plan_gathering(manifest, in_order=can_be_cut(shape, manifest)) is None:
        return False
    size = more + sum(s.bytes for s in manifest.deltas)
    by_sql = is_by_sql(workspace, target, shape, manifest, size=size)
    return not by_sql and _is_tried(workspace.storage(target), target, size)


def _gathered_to_try(workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft) -> Draft:
    """Return the draft after what `_gathered` does, of which nothing is published."""
    while plan := plan_gathering(draft.manifest, in_order=can_be_cut(shape, draft.manifest)):
        written = merged_delta(workspace, target, shape, draft.manifest, plan)
        now = workspace.now_ms()
        draft = draft.with_(after_merge(draft.manifest, plan, written=(written,), now_ms=now))
    return draft


def _trying(progress: Progress) -> Progress:
    return lambda table, text: progress(table, f"trying: {text}")


def _compact(workspace: Workspace, shape: Shape, draft: Draft, applied: Applied, *, mode: Mode) -> Compacted:
    target, seen = applied.target, applied.view
    started = workspace.now_ms()
    done: Folded | Layered | None = None
    gathered = 0
    try:
        draft, seen, gathered = _gathered(workspace, target, shape, draft, seen)
        manifest = draft.manifest
        work, old = _work(workspace, shape, manifest, applied, mode)
        if work is not None:
            draft, seen = _shown_before(workspace, target, shape, draft, seen, work)
            done = _done(workspace, target, shape, draft, work, seen=seen)
    except BaseException as error:
        _shown_all_the_same(workspace, target, shape, draft)
        retire_all_the_same(workspace, target, error)
        raise
    found = _found(shape, manifest, applied, mode, work, old)
    if done is None:
        refresh_view(workspace, target, shape, manifest)
        try:
            # Those of a run that was killed once its state was written: nothing is left to fold after it.
            drop_per_run_tables(workspace, target)
        finally:
            retire(workspace, target, shape, draft)
        return found
    now = done.draft.manifest
    refresh_view(workspace, target, shape, now, seen=seen)
    # Where nothing was worth doing the state before stays, which was shown long ago.
    shown = draft if done.draft is draft else _shown_by_now(workspace, target, done.draft)
    # The clock may have been put back meanwhile.
    seconds = max(workspace.now_ms() - started, 0) / 1000
    retire(workspace, target, shape, shown)
    return replace(
        found,
        manifest=now,
        counts=done.counts if isinstance(done, Folded) else None,
        bytes_written=gathered + sum(segment.bytes for segment in done.written),
        seconds=seconds,
    )


def _found(
    shape: Shape,
    manifest: Manifest,
    applied: Applied,
    mode: Mode,
    work: FoldPlan | MergePlan | None,
    old: frozenset[str],
) -> Compacted:
    """Return what there is to do, before anything of it is done."""
    return Compacted(
        target=applied.target,
        applied=applied,
        manifest=manifest,
        fold=work if isinstance(work, FoldPlan) else None,
        merge=work if isinstance(work, MergePlan) else None,
        why=_why_not_minor(shape, manifest, old) if mode is Mode.MINOR and isinstance(work, FoldPlan) else None,
    )


def _gathered(
    workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft, seen: HiveTable | None
) -> tuple[Draft, HiveTable | None, int]:
    """Merge deltas until they are few enough to be merged at once, and publish that.

    Return the view, too, where it still is as it was seen, and how many bytes were written. SQL merges any number.
    """
    size = 0
    while plan := plan_gathering(draft.manifest, in_order=can_be_cut(shape, draft.manifest)):
        if is_by_sql(workspace, target, shape, draft.manifest, size=plan.bytes_read):
            break
        draft, seen = _shown_before(workspace, target, shape, draft, seen, plan)
        done = run_merge(workspace, target, shape, draft, plan, clean=lambda draft: draft)
        size += sum(segment.bytes for segment in done.written)
        refresh_view(workspace, target, shape, done.draft.manifest, seen=seen)
        draft, seen = _shown_by_now(workspace, target, done.draft), None
    return draft, seen, size


def _shown_by_now(workspace: Workspace, target: TableTarget, draft: Draft) -> Draft:
    """Return the draft of a state that this run published and shows since now, to be published where that took long.

    What it superseded counts from now then: until now readers resolved the view of the state before.
    """
    grace = target.compaction.reader_grace
    manifest = shown_by_now(draft.manifest, now_ms=workspace.now_ms(), reader_grace_ms=grace)
    return draft if manifest is draft.manifest else draft.with_(manifest)


def _shown_before(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    draft: Draft,
    seen: HiveTable | None,
    work: FoldPlan | MergePlan,
) -> tuple[Draft, HiveTable | None]:
    """Show what was admitted before work that takes long, or is done in such a way that it needs that.

    Return the view, too, where it still is as it was seen.
    """
    size = work.bytes_read
    if not draft.unpublished:
        return draft, seen
    by_sql = is_by_sql(workspace, target, shape, draft.manifest, size=size)
    if size <= (0 if by_sql else _LONG_BYTES):
        return draft, seen
    return show(workspace, target, shape, draft, seen=seen), None


def _shown_all_the_same(workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft) -> None:
    """Show what was admitted though the work failed, as far as that is possible.

    Not where something was published meanwhile: also by this run, where the metastore did it and could not say so.
    """
    with suppress(Exception):
        if draft.unpublished:
            if token_in_force(workspace, target) == draft.properties.token:
                show(workspace, target, shape, draft)
            else:
                withdraw(workspace, target, draft.following)


def _done(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    draft: Draft,
    work: FoldPlan | MergePlan,
    *,
    seen: HiveTable | None,
) -> Folded | Layered:
    """Do the work, and publish it with the draft and with what is cleaned up."""
    clean = partial(clean_up_before, workspace, target, shape, seen=seen)
    if isinstance(work, FoldPlan):
        return run_fold(workspace, target, shape, draft, work, clean=clean)
    return run_merge(workspace, target, shape, draft, work, clean=clean)


def _work(
    workspace: Workspace, shape: Shape, manifest: Manifest, applied: Applied, mode: Mode
) -> tuple[FoldPlan | MergePlan | None, frozenset[str]]:
    """Decide what to do, None where there is nothing; return also the segments that are outdated."""
    old = outdated(shape, manifest)
    if not needs_fold(manifest, outdated=old):
        return None, old
    return _planned(workspace, shape, manifest, applied, mode, old), old


def _planned(
    workspace: Workspace, shape: Shape, manifest: Manifest, applied: Applied, mode: Mode, old: frozenset[str]
) -> FoldPlan | MergePlan:
    target = applied.target
    merge = plan_merge(
        manifest,
        outdated=old,
        in_order=can_be_cut(shape, manifest),
        mode=mode,
        shuffled=shuffled(target, shape, manifest.contents, rows=sum(d.rows for d in manifest.deltas)),
    )
    if merge is not None:
        return merge
    fold = plan_fold(
        manifest,
        shards_to_write(workspace, target, shape, manifest, outdated=old),
        now_ms=workspace.now_ms(),
        tombstone_retention_ms=target.compaction.tombstone_retention,
    )
    return replace(fold, purge_before_ms=0) if _something_waits(applied) else fold


def _why_not_minor(shape: Shape, manifest: Manifest, old: frozenset[str]) -> str | None:
    return why_folded(manifest, outdated=old, in_order=can_be_cut(shape, manifest))


def _something_waits(applied: Applied) -> bool:
    """Tell whether a file that could not be admitted may hold an older event of a deleted key.

    One that is still being written lands after this, as any other later on: a sink may have one open at all times, and
    leave an empty one for good.
    """
    admitted = applied.admitted
    return admitted is None or admitted.waiting > admitted.unfinished
