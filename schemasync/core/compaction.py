"""Compactions, decided: what a run replaces, the state after it, and what becomes superfluous with time.

Which shards are written is decided in `schemasync.core.sharding`.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from schemasync.core.manifest import AdmittedFile, Manifest, Segment, StateId, Superseded
from schemasync.core.sharding import ShardFold, in_one_shard

_LATE_SHARE: Final = 10
"""This part of the reader grace may pass until a state is shown, and readers have the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """What one compaction does: the shards it writes, and the deltas whose rows are in the base then."""

    shards: tuple[ShardFold, ...]
    fold: tuple[Segment, ...]
    generation: int
    purge_before_ms: int
    """Tombstones admitted before this time may go, where no change has their key."""
    next_keys: tuple[str, ...] | None = None
    """Columns, as far as there are any yet, of the key under which the table goes on; None: its own. Tombstones go that
    have no such key, or that of a row."""

    @property
    def rewrite(self) -> tuple[Segment, ...]:
        """The shards that are replaced, each once: a split reads one several times."""
        return tuple({s.name: s for shard in self.shards for s in shard.rewrite}.values())

    @property
    def rewrite_bytes(self) -> int:
        """Bytes of the shards that are replaced."""
        return sum(s.bytes for s in self.rewrite)

    @property
    def change_bytes(self) -> int:
        """Bytes of the changes."""
        return sum(s.bytes for s in self.fold)

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that the run reads."""
        return self.rewrite_bytes + self.change_bytes

    @property
    def events(self) -> int:
        """Landed events that the run folds."""
        return sum(s.events for s in self.fold)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldCounts:
    """What a fold found and wrote: rows written (tombstones included), live rows, and what happened to keys.

    ``read``: rows of all segments that SQL found; not counted where files are read by their paths.
    """

    read: int = 0
    written: int = 0
    rows: int = 0
    keys: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    purged: int = 0
    unsent: tuple[str, ...] = ()
    """Columns in which rows that were written still have a placeholder."""

    def __add__(self, other: FoldCounts) -> FoldCounts:
        """Return what both folds did."""
        return FoldCounts(
            read=self.read + other.read,
            written=self.written + other.written,
            rows=self.rows + other.rows,
            keys=self.keys + other.keys,
            inserted=self.inserted + other.inserted,
            updated=self.updated + other.updated,
            deleted=self.deleted + other.deleted,
            purged=self.purged + other.purged,
            unsent=tuple(sorted({*self.unsent, *other.unsent})),
        )


def needs_fold(current: Manifest, *, outdated: AbstractSet[str]) -> bool:
    """Tell whether there is something to fold, or to rewrite.

    Segments that are ``outdated`` are rewritten without any change: that is how dropped columns leave the files.
    """
    return bool(current.deltas or outdated)


def next_fold_ms(current: Manifest, *, every_ms: int, decided_ms: int, now_ms: int) -> int:
    """Return when so long will have passed since the last compaction; now where that is still to come.

    Then the clock was ahead when it was noted, and nobody knows how long ago that was. ``decided_ms`` is when one last
    looked, whether or not it published anything; 0 where that is not known.
    """
    last = max(current.compacted_ms, decided_ms)
    return now_ms if last > now_ms else last + every_ms


def plan_fold(
    current: Manifest, shards: tuple[ShardFold, ...], *, now_ms: int, tombstone_retention_ms: int
) -> FoldPlan:
    """Decide a compaction that writes these shards."""
    return FoldPlan(
        shards=shards,
        fold=current.deltas,
        generation=current.state.generation + 1,
        purge_before_ms=now_ms - tombstone_retention_ms,
    )


def plan_rekey(current: Manifest, keys: tuple[str, ...]) -> FoldPlan | None:
    """Decide the fold before a table goes on under another key; None where the base has all rows, and nothing else.

    Tombstones stay however old they are, where the key tells them from rows: a delete says nothing of another row.
    """
    if not (current.deltas or any(shard.tombstones for shard in current.base)):
        return None
    return FoldPlan(
        shards=in_one_shard(current),
        fold=current.deltas,
        generation=current.state.generation + 1,
        purge_before_ms=0,
        next_keys=keys,
    )


def after_fold(current: Manifest, plan: FoldPlan, *, written: Iterable[Segment], now_ms: int) -> Manifest:
    """Return the state in which the new shards replace what the plan read.

    That stays registered until the reader grace is over: a view of an earlier state names it.
    """
    shards = tuple(written)
    at = current.next_ms(now_ms)
    replaced = {s.name for s in (*plan.rewrite, *plan.fold)}
    superseded = (s.superseded(at) for s in (*plan.fold, *plan.rewrite))
    # What was known to be ahead of the old base need not be so of the new one.
    unknown = {"ahead": False, "ahead_of_deltas": False}
    others = tuple(s.model_copy(update=unknown) for s in current.segments if s.name not in replaced)
    folded = {s.name for s in plan.fold}
    admitted = (
        f.taken_in(generation=plan.generation, now_ms=at) if f.segment in folded else f for f in current.admitted
    )
    return current.model_copy(
        update={
            "state": StateId(generation=plan.generation, admission=0),
            "parent": current.state,
            "schema_version": max((s.schema_version for s in shards), default=current.schema_version),
            "published_ms": at,
            "compacted_ms": now_ms,
            "next_shard": current.next_shard + len(plan.shards),
            "segments": (*shards, *others),
            "superseded": (*current.superseded, *superseded),
            "admitted": tuple(admitted),
        }
    )


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

    def within(self, other: Retirement) -> Retirement:
        """Return what of this is also in another one, as some states later, when more may be due."""
        partitions, directories = ({s.segment for s in found} for found in (other.partitions, other.directories))
        files = {f.path for f in other.sink_files}
        return Retirement(
            partitions=tuple(s for s in self.partitions if s.segment in partitions),
            directories=tuple(s for s in self.directories if s.segment in directories),
            sink_files=tuple(f for f in self.sink_files if f.path in files),
        )

    def to_json(self) -> dict[str, int]:
        """Return how many there are: ``{"partitions", "directories", "files"}``."""
        return {
            "partitions": len(self.partitions),
            "directories": len(self.directories),
            "files": len(self.sink_files),
        }


def due(current: Manifest, *, now_ms: int, reader_grace_ms: int, vacuum_retention_ms: int) -> Retirement:
    """Say what may be cleaned up now.

    Partitions of superseded segments after the reader grace, oldest first; directories a vacuum retention later; the
    sink's files after the reader grace, once a published compaction took them in.
    """
    old = sorted(current.superseded, key=lambda s: (s.since_ms, s.segment))
    graced = now_ms - reader_grace_ms
    return Retirement(
        partitions=tuple(s for s in old if s.registered and s.since_ms <= graced),
        directories=tuple(s for s in old if s.since_ms <= graced - vacuum_retention_ms),
        sink_files=tuple(f for f in current.admitted if f.folded_ms is not None and f.folded_ms <= graced),
    )


def shown_late(current: Manifest, *, now_ms: int) -> Manifest | None:
    """Return a state with what it superseded counted from now, None where that is nothing.

    For one that was written and not shown until now: readers resolved the view of the state before.
    """
    new = {s.segment for s in current.superseded if s.since_ms >= current.published_ms}
    at = current.next_ms(now_ms)
    later = (s.model_copy(update={"since_ms": at}) if s.segment in new else s for s in current.superseded)
    return current.model_copy(update={"superseded": tuple(later), "published_ms": at}) if new else None


def shown_by_now(current: Manifest, *, now_ms: int, reader_grace_ms: int) -> Manifest:
    """Return a state whose view is there since now: `shown_late` where to show it took a good part of the reader grace.

    To add the partitions of thousands of values takes minutes. Else the state is as it is, which saves publishing it.
    """
    took = now_ms - current.published_ms
    late = shown_late(current, now_ms=now_ms) if took > reader_grace_ms // _LATE_SHARE else None
    return late or current


def after_retirement(current: Manifest, done: Retirement, *, now_ms: int) -> Manifest:
    """Return the state that no longer lists what was cleaned up."""
    dropped = {s.segment for s in done.partitions}
    deleted = {s.location for s in done.directories}
    # Not by path and size: the sink may have written the same name anew since, and that was admitted, too.
    gone = frozenset(done.sink_files)
    kept = (
        s.model_copy(update={"registered": s.registered and s.segment not in dropped})
        for s in current.superseded
        if s.location not in deleted
    )
    admitted = tuple(f for f in current.admitted if f not in gone)
    return current.followed(now_ms=now_ms, superseded=tuple(kept), admitted=admitted)
