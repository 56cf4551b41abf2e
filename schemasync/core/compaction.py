"""Which shards are rewritten and which deltas are folded: decisions, apart from the doing.

One shard is the whole base here. The decision names shards and files so that many shards change this module and the
job that executes it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemasync.core.manifest import AdmittedFile, Manifest, Segment, SegmentKind, StateId, Superseded

BASE_SHARD = "base_s0000"
"""The only shard while a base has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """What one compaction does: the shards it rewrites, the deltas it folds into them."""

    shard: str
    rewrite: tuple[Segment, ...]
    fold: tuple[Segment, ...]
    generation: int
    purge_before_ms: int
    """Tombstones admitted before this time may go, where no other segment holds their key."""
    hides: bool = False
    """Whether folded deltas are hidden at once: beside a base of another key their rows would show again."""

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that the run reads."""
        return sum(s.bytes for s in (*self.rewrite, *self.fold))

    @property
    def events(self) -> int:
        """Landed events that the run folds."""
        return sum(s.events for s in self.fold)


def plan_fold(current: Manifest, *, now_ms: int, tombstone_retention_ms: int, schema_version: int) -> FoldPlan | None:
    """Decide a compaction; None where the base already holds everything in its newest form.

    A base of an older schema version is rewritten too: that is how dropped columns leave the files.
    """
    stale = any(s.schema_version != schema_version for s in current.base)
    if not current.deltas and not stale:
        return None
    return FoldPlan(
        shard=BASE_SHARD,
        rewrite=current.base,
        fold=current.deltas,
        generation=current.state.generation + 1,
        purge_before_ms=now_ms - tombstone_retention_ms,
    )


def plan_rekey(current: Manifest) -> FoldPlan | None:
    """Decide the fold before a table goes on under another key; None where the base already holds everything.

    No tombstone goes: which rows are the same is about to change.
    """
    if not current.deltas:
        return None
    return FoldPlan(
        shard=BASE_SHARD,
        rewrite=current.base,
        fold=current.deltas,
        generation=current.state.generation + 1,
        purge_before_ms=0,
        hides=True,
    )


def needs_rebuild(current: Manifest) -> bool:
    """Tell whether rows stand beside the base that another key would show as rows of their own."""
    return bool(current.deltas) or any(s.registered and not s.hidden for s in current.superseded)


def after_hiding(current: Manifest, *, now_ms: int) -> Manifest:
    """Return the state in which no folded delta can be read any more."""
    return current.model_copy(
        update={
            "state": StateId(generation=current.state.generation, admission=current.state.admission + 1),
            "parent": current.state,
            "published_ms": now_ms,
            "superseded": _hidden(current.superseded),
        }
    )


def _hidden(superseded: Iterable[Superseded]) -> tuple[Superseded, ...]:
    return tuple(s.model_copy(update={"hidden": s.registered}) for s in superseded)


def after_fold(current: Manifest, plan: FoldPlan, *, written: Segment, now_ms: int) -> Manifest:
    """Return the state in which the new shard replaces what the plan read.

    The folded deltas stay registered beside it until the reader grace is over: a reader that met the old base and the
    new partitions, or the other way round, still sees every row.
    """
    folded = {s.name for s in plan.fold}
    superseded = [_superseded(s, now_ms, registered=True) for s in plan.fold]
    superseded += [_superseded(s, now_ms, registered=False) for s in plan.rewrite]
    retired = (*current.superseded, *superseded)
    others = tuple(s for s in current.segments if s.name not in folded and s.kind is not SegmentKind.BASE)
    return current.model_copy(
        update={
            "state": StateId(generation=plan.generation, admission=0),
            "parent": current.state,
            "schema_version": written.schema_version,
            "published_ms": now_ms,
            "segments": (written, *others),
            "superseded": _hidden(retired) if plan.hides else retired,
            "admitted": tuple(_folded(f, folded, plan.generation, now_ms) for f in current.admitted),
        }
    )


def _superseded(segment: Segment, now_ms: int, *, registered: bool) -> Superseded:
    return Superseded(
        segment=segment.name,
        location=segment.location,
        schema_version=segment.schema_version,
        since_ms=now_ms,
        registered=registered,
        toasted=segment.toasted,
    )


def _folded(file: AdmittedFile, folded: set[str], generation: int, now_ms: int) -> AdmittedFile:
    if file.segment not in folded:
        return file
    return file.model_copy(update={"folded_in": generation, "folded_ms": now_ms})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """What has become due for cleaning up, in the order in which it is done."""

    partitions: tuple[Superseded, ...] = ()
    directories: tuple[Superseded, ...] = ()
    sink_files: tuple[AdmittedFile, ...] = ()

    @property
    def empty(self) -> bool:
        """Tell whether nothing is due."""
        return not (self.partitions or self.directories or self.sink_files)


def due(current: Manifest, *, now_ms: int, reader_grace_ms: int, vacuum_retention_ms: int) -> Retirement:
    """Say what may be cleaned up now.

    Partitions of folded deltas after the reader grace, oldest first; directories after the vacuum retention, once no
    partition points there; the sink's files after the reader grace, once a published generation holds them.
    """
    old = sorted(current.superseded, key=lambda s: (s.since_ms, s.segment))
    graced = now_ms - reader_grace_ms
    vacuumed = now_ms - vacuum_retention_ms
    return Retirement(
        partitions=tuple(s for s in old if s.registered and s.since_ms <= graced),
        directories=tuple(s for s in old if s.since_ms <= min(vacuumed, graced)),
        sink_files=tuple(f for f in current.admitted if f.folded_ms is not None and f.folded_ms <= graced),
    )


def after_retirement(current: Manifest, done: Retirement, *, now_ms: int) -> Manifest:
    """Return the state that no longer lists what was cleaned up."""
    dropped = {s.segment for s in done.partitions}
    deleted = {s.location for s in done.directories}
    gone = {(f.path, f.bytes) for f in done.sink_files}
    kept = (
        s.model_copy(update={"registered": s.registered and s.segment not in dropped})
        for s in current.superseded
        if s.location not in deleted
    )
    state = StateId(generation=current.state.generation, admission=current.state.admission + 1)
    return current.model_copy(
        update={
            "state": state,
            "parent": current.state,
            "published_ms": now_ms,
            "superseded": tuple(kept),
            "admitted": tuple(f for f in current.admitted if (f.path, f.bytes) not in gone),
        }
    )
