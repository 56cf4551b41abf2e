"""Range shards: how the base is cut by key, which shards a compaction rewrites, when they split and merge.

A shard holds all rows whose keys lie between its lower bound and the next shard's. Only shards that changes fall into
are rewritten; one that became too large is cut where a sample of its keys says, neighbours that are rewritten together
and became small are joined, and take others along of which hardly anything is left. A base whose key has no order, or
whose files were sorted by another key, is one shard; one without keys grows by a shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from schemasync.core.keys import Bound, Key, is_ordered, parse_key, print_key
from schemasync.core.manifest import DataFile, Manifest, Segment, shard_name
from schemasync.core.types import Type

SMALL: Final = 8
"""A shard of this part of the target is joined with a whole one, which takes it along also where nothing changed in it.

What is deleted by ranges of keys leaves such shards; each was written once and would never be again."""

Spread = Mapping[str, Mapping[int, int]]
"""By path of a delta's file: how many of its rows lie in a shard's range, by its place in their order; no zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Keys from ``low`` on and below ``high``; None: no end on that side."""

    low: Key | None = None
    high: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFold:
    """One shard to write: its name, the keys that it will hold, and the segments of which rows may lie there.

    The deltas list only those of their files that have rows in the range.
    """

    shard: str
    keys: KeyRange
    rewrite: tuple[Segment, ...]
    deltas: tuple[Segment, ...]

    @property
    def low(self) -> Bound | None:
        """The lower bound as the manifest holds it."""
        return None if self.keys.low is None else print_key(self.keys.low)


Sample = Callable[[ShardFold, int], Sequence[Key]]
"""Answers where to cut a shard into so many about equal pieces: ascending keys inside its range, maybe fewer."""


def in_one_shard(current: Manifest) -> tuple[ShardFold, ...]:
    """Fold everything into one shard: what a base without bounds allows."""
    return _with_all_changes(current, current.base)


def behind(current: Manifest, *, outdated: AbstractSet[str], shard_bytes: int) -> tuple[ShardFold, ...]:
    """Fold changes without keys into a shard behind the others; with them goes what is ``outdated``, or small yet.

    Nothing of theirs replaces a row, so no other shard is written.
    """
    return _with_all_changes(
        current, tuple(s for s in current.base if s.name in outdated or s.bytes * 2 <= shard_bytes)
    )


def _with_all_changes(current: Manifest, rewrite: tuple[Segment, ...]) -> tuple[ShardFold, ...]:
    name = shard_name(current.next_shard)
    return (ShardFold(shard=name, keys=KeyRange(), rewrite=rewrite, deltas=current.deltas),)


def has_ranges(keys: Sequence[tuple[str, Type]], segments: Iterable[Segment]) -> bool:
    """Tell whether ranges of a key, (name, type) by column, mean something in all segments.

    They do where its columns have an order, and all segments are sorted by them.
    """
    by = tuple(name for name, _ in keys)
    ordered = bool(by) and all(is_ordered(type_) for _, type_ in keys)
    return ordered and all(segment.sorted_by == by for segment in segments)


def by_key(base: Iterable[Segment], types: Sequence[Type]) -> list[tuple[Key | None, Segment]]:
    """Return the shards in the order of their keys, each after its lower bound; ``types`` are those of key columns."""
    found = ((None if s.low is None else parse_key(s.low, types), s) for s in base)
    return sorted(found, key=lambda pair: (pair[0] is not None, pair[0] or ()))


def bounds(base: Iterable[Segment], types: Sequence[Type]) -> tuple[Key, ...]:
    """Return the lower bounds of all shards but the first, ascending; ``types`` are those of the key columns."""
    return tuple(low for low, _ in by_key(base, types) if low is not None)


def cut(
    current: Manifest,
    spread: Spread,
    *,
    types: Sequence[Type],
    outdated: AbstractSet[str],
    shard_bytes: int,
    sample: Sample,
) -> tuple[ShardFold, ...]:
    """Decide which shards are written, in the order of their keys.

    ``spread`` says where the rows of the deltas lie. Written is what has changes or is ``outdated``, and what is small
    beside it; what is more than half as large again as ``shard_bytes`` is split, what is together well below it, or
    small, is joined.
    """

    def is_touched(found: ShardFold) -> bool:
        return bool(found.deltas) or any(s.name in outdated for s in found.rewrite)

    ranges = _ranges(current, spread, types)
    groups = _joined((r for r in ranges if is_touched(r) or _is_small(_bytes(r), shard_bytes)), shard_bytes)
    written = (_whole(group) for group in groups if any(map(is_touched, group)))
    cuts = ((whole, keys) for whole in written for keys in _pieces(whole, shard_bytes, sample))
    return tuple(
        replace(whole, shard=shard_name(number), keys=keys)
        for number, (whole, keys) in enumerate(cuts, start=current.next_shard)
    )


def _ranges(current: Manifest, spread: Spread, types: Sequence[Type]) -> list[ShardFold]:
    """Return all ranges; what is written of them gets its name later."""
    shards: list[tuple[Key | None, Segment | None]] = [*by_key(current.base, types)] or [(None, None)]
    highs = (*(low for low, _ in shards[1:]), None)
    within = _within(current.deltas, spread)
    return [
        ShardFold(
            shard="",
            keys=KeyRange(low=low, high=high),
            rewrite=() if shard is None else (shard,),
            deltas=tuple(within.get(n, ())),
        )
        for n, ((low, shard), high) in enumerate(zip(shards, highs, strict=True))
    ]


def _within(deltas: Iterable[Segment], spread: Spread) -> Mapping[int, Sequence[Segment]]:
    """Return, by range, the deltas that have rows there, with the files, rows and bytes that are about these."""
    found: defaultdict[int, list[Segment]] = defaultdict(list)
    for delta in deltas:
        files: defaultdict[int, list[DataFile]] = defaultdict(list)
        for file in delta.files:
            for place in spread.get(file.path, ()):
                files[place].append(file)
        for place, inside in files.items():
            rows = [spread[f.path][place] for f in inside]
            share = sum(f.bytes * n // f.rows for f, n in zip(inside, rows, strict=True))
            part = {"files": tuple(inside), "rows": sum(rows), "bytes": share}
            found[place].append(delta.model_copy(update=part))
    return found


def _is_small(size: int, shard_bytes: int) -> bool:
    return size * SMALL <= shard_bytes


def _bytes(found: ShardFold) -> int:
    return sum(s.bytes for s in (*found.rewrite, *found.deltas))


def _joined(ranges: Iterable[ShardFold], shard_bytes: int) -> list[list[ShardFold]]:
    """Put neighbours together while they stay well below the target: a shard that was just split is not joined.

    With one that is small they may stay somewhat above it, well below what is split.
    """
    groups: list[list[ShardFold]] = []
    before = 0
    for found in ranges:
        size = _bytes(found)
        most = shard_bytes * (5 if _is_small(min(before, size), shard_bytes) else 3) // 4
        if groups and groups[-1][-1].keys.high == found.keys.low and before + size <= most:
            groups[-1].append(found)
            before += size
        else:
            groups.append([found])
            before = size
    return groups


def _whole(group: Sequence[ShardFold]) -> ShardFold:
    """Return a run of neighbouring ranges as one."""
    deltas: dict[str, Segment] = {}
    for delta in (d for found in group for d in found.deltas):
        before = deltas.get(delta.name)
        deltas[delta.name] = delta if before is None else _together(before, delta)
    return ShardFold(
        shard=group[0].shard,
        keys=KeyRange(low=group[0].keys.low, high=group[-1].keys.high),
        rewrite=tuple(s for found in group for s in found.rewrite),
        deltas=tuple(deltas.values()),
    )


def _together(one: Segment, other: Segment) -> Segment:
    files = tuple({f.path: f for f in (*one.files, *other.files)}.values())
    return one.model_copy(update={"files": files, "rows": one.rows + other.rows, "bytes": one.bytes + other.bytes})


def _pieces(whole: ShardFold, shard_bytes: int, sample: Sample) -> list[KeyRange]:
    size = _bytes(whole)
    if size * 2 <= shard_bytes * 3:
        return [whole.keys]
    cuts = sample(whole, -(-size // shard_bytes))
    ends = [whole.keys.low, *cuts, whole.keys.high]
    return [KeyRange(low=low, high=high) for low, high in pairwise(ends)]
