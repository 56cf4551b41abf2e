"""One minor compaction, done: the newest deltas become one, which is read back and published; the base stays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from schemasync.app.folding import is_by_sql, merge_shards
from schemasync.app.reading_back import abandoned, changed_keys, read_back
from schemasync.app.states import Draft, publish, require_files
from schemasync.app.workspace import Workspace
from schemasync.core.layering import MergePlan, after_merge, touching
from schemasync.core.manifest import Manifest, Segment, SegmentKind, delta_name, new_run_directory
from schemasync.core.mapping import TableTarget
from schemasync.core.shape import Shape
from schemasync.core.sharding import KeyRange, ShardFold, bounds, by_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """What a minor compaction wrote, nothing where the deltas were few enough, and the table with it in force."""

    written: tuple[Segment, ...]
    draft: Draft


def run_merge(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    draft: Draft,
    plan: MergePlan,
    *,
    clean: Callable[[Draft], Draft],
) -> Layered:
    """Write what a plan decided, and publish it with the draft; ``clean`` it right before that.

    Where there is nothing to merge, that is noted with what else there is to publish, and else nothing is published.

    Raises:
        ConflictError: another writer published first; nothing of this run became visible.
        DataError: a file of the table is missing or was changed.
        StorageError: the delta cannot be written, or is not what the job wrote.
    """
    manifest = draft.manifest
    require_files(workspace.storage(target).lake, plan.merge)
    written = (merged_delta(workspace, target, shape, manifest, plan),) if plan.merge else ()
    cleaned = clean(draft)
    if not (plan.merge or cleaned.unpublished):
        return Layered(written=(), draft=draft)
    # Not by when the merge began: until now readers resolved the view that names what it supersedes.
    merged = after_merge(cleaned.manifest, plan, written=written, now_ms=workspace.now_ms())
    return Layered(written=written, draft=publish(workspace, target, cleaned, merged))


def merged_delta(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, plan: MergePlan
) -> Segment:
    """Write what a plan decided, and return it; nobody has published it.

    Raises:
        DataError: a file of the table is missing or was changed.
        StorageError: the delta cannot be written, or is not what the job wrote.
    """
    lake = workspace.storage(target).lake
    name = delta_name(manifest.next_delta)
    workspace.progress(target.table, f"merging {len(plan.merge)} deltas into {name}")
    directory = new_run_directory(SegmentKind.DELTA, manifest.next_delta, workspace.token())
    shard = ShardFold(shard=name, keys=KeyRange(), rewrite=(), deltas=plan.merge)
    with abandoned(lake, directory):
        (merged,) = merge_shards(
            workspace,
            target,
            shape,
            manifest,
            {directory: shard},
            kind=SegmentKind.DELTA,
            directory=directory,
            purge_before_ms=0,
            by_sql=is_by_sql(workspace, target, shape, manifest, size=plan.bytes_read),
        )
        segment = read_back(workspace, target, shape, merged, kind=SegmentKind.DELTA)
        touched = _touched(workspace, target, shape, manifest, plan, segment)
        delta = segment.model_copy(
            update={
                "events": plan.events,
                "ahead": all(s.ahead for s in plan.merge),
                "ahead_of_deltas": plan.merge == manifest.deltas or all(s.ahead_of_deltas for s in plan.merge),
                **touching(manifest.base, touched),
            }
        )
        changed = changed_keys(
            workspace.storage(target).small,
            delta,
            shape.key_columns,
            beside=[s for s in manifest.deltas if s not in plan.merge],
            target=target,
        )
    return delta.model_copy(update={"changed": changed})


def _touched(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, plan: MergePlan, merged: Segment
) -> Collection[str] | None:
    """Return the shards in whose ranges merged changes have keys; None where that is not known of some of them."""
    if all(s.touches is not None for s in plan.merge):
        return {shard for s in plan.merge for shard in s.touches or ()}
    if any(s.touched_bytes is None for s in plan.merge):
        return None
    names, types = zip(*shape.key_columns, strict=True)
    ascending = [shard.name for _, shard in by_key(manifest.base, types)]
    places = workspace.storage(target).shards.spread(merged.files, names, bounds(manifest.base, types))
    return {ascending[place] for rows in places.values() for place in rows}
