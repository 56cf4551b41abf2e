"""Minor compactions, decided: whether a compaction folds changes into the base or leaves them beside it, merged.

Folding rewrites every shard that a change falls into; leaving makes every query read the changes, and look for their
keys in those shards. Where few rows change everywhere the first costs hundreds of times the change, the second little.
So changes gather beside the base until they are worth the rewrite, in few segments of sizes that grow geometrically:
each row is merged a number of times that grows with the logarithm of what gathers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Any, Final

from schemasync.core.manifest import Manifest, Segment

CHEAP_BYTES: Final = 32 * 2**20
"""Shards that are together no larger are folded whatever the change is: that takes about a second."""
WORTH: Final = 4
"""Changes are folded once this many times their bytes are as much as the shards that they fall into.

Writing costs about four times as much as reading. A fold writes the shards once; queries read what is left beside them.
"""
WORTH_IF_SHUFFLED: Final = 8 * WORTH
"""The same where queries shuffle these shards: a full scan takes eight times as long then. One that looks for few keys
shuffles few rows, so a fold must still be in proportion to the changes."""
MOST_AT_ONCE: Final = 64
"""So many deltas are merged at once: the files of each are open meanwhile, with a piece of each column in memory.
Where they have several, as with user partitions, so many files, but for `FEWEST_AT_ONCE`.

Of n of them, which is many times that, a row is merged up to n / 64 times: they are as small as they are many."""
FEWEST_AT_ONCE: Final = 8
"""So many deltas are merged at once whatever files they have; by fewer, a row would be merged too often."""
MOST_TOUCHED: Final = 100
"""Shards that a delta of the manifest names: where it has keys in more, no view gains from knowing which."""


class Mode(Enum):
    """How a compaction decides: by what it costs, or as told."""

    AUTO = "auto"
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A minor compaction: the deltas that become one, the newest of all; none where they are few enough.

    ``rewrite_bytes`` are those of the shards that a fold would write instead, ``change_bytes`` those of all changes.
    """

    merge: tuple[Segment, ...]
    rewrite_bytes: int
    change_bytes: int

    @property
    def events(self) -> int:
        """Landed events in what is merged."""
        return sum(s.events for s in self.merge)

    @property
    def bytes_read(self) -> int:
        """Bytes of the files that the run reads."""
        return sum(s.bytes for s in self.merge)


def why_folded(current: Manifest, *, outdated: AbstractSet[str], in_order: bool) -> str | None:
    """Say why changes cannot be left beside the base whatever that costs, None where they can.

    ``outdated`` segments are to be rewritten; ``in_order``: all that is there was sorted by the present key.
    """
    if not current.base:
        return "there is no base yet"
    if not in_order:
        return "the key has no order, or is not the one by which files are sorted"
    if outdated:
        return "shards are of an older version of the schema"
    if current.toasted:
        return "rows have placeholders to carry"
    return None if current.contents.ahead else "changes are not known to be newer than what the base has of their keys"


def plan_merge(
    current: Manifest, *, outdated: AbstractSet[str], in_order: bool, mode: Mode, shuffled: bool
) -> MergePlan | None:
    """Decide a minor compaction, None where everything is to be folded.

    ``shuffled``: queries would shuffle the shards that a fold rewrites.
    """
    if mode is Mode.MAJOR or why_folded(current, outdated=outdated, in_order=in_order) is not None:
        return None
    plan = _merging(current, _newest_tier(current.deltas))
    worth = WORTH_IF_SHUFFLED if shuffled else WORTH
    if mode is Mode.AUTO and plan.rewrite_bytes <= max(CHEAP_BYTES, worth * plan.change_bytes):
        return None
    return plan


def plan_gathering(current: Manifest, *, in_order: bool) -> MergePlan | None:
    """Decide to merge the newest deltas before anything else is done with them, None where that is not needed.

    They pile up where changes are admitted often and compacted seldom. Rows with placeholders cannot be merged alone.
    """
    most = _most_at_once(current.deltas)
    beyond = len(current.deltas) - most
    if beyond <= 0 or not in_order or current.toasted:
        return None
    return _merging(current, current.deltas[-min(beyond + 1, most) :])


def _most_at_once(deltas: tuple[Segment, ...]) -> int:
    """Return how many of the newest deltas can be merged at once."""
    opened = accumulate(len(s.files) for s in reversed(deltas))
    fitting = sum(files <= MOST_AT_ONCE for files in opened)
    return min(max(fitting, FEWEST_AT_ONCE), MOST_AT_ONCE)


def _merging(current: Manifest, merge: tuple[Segment, ...]) -> MergePlan:
    change = sum(s.bytes for s in current.deltas)
    return MergePlan(merge=merge, rewrite_bytes=_touched_bytes(current), change_bytes=change)


def _touched_bytes(current: Manifest) -> int:
    """Return how much a fold rewrites at most: shards that changes fall into, all where a delta does not say which.

    Those of several deltas that name none count for each of these.
    """
    whole = sum(s.bytes for s in current.base)
    named = {name for s in current.deltas for name in s.touches or ()}
    size = sum(s.bytes for s in current.base if s.name in named)
    for delta in current.deltas:
        if delta.touches is None:
            size += whole if delta.touched_bytes is None else delta.touched_bytes
    return min(size, whole)


def touching(base: Iterable[Segment], names: Collection[str] | None) -> dict[str, Any]:
    """Return what a delta says of the shards in whose ranges it has keys, by the names of its fields.

    ``names`` are those of the shards, None where they are not known.
    """
    if names is None:
        return {}
    known = frozenset(names)
    size = sum(s.bytes for s in base if s.name in known)
    return {"touches": tuple(sorted(known)) if len(known) <= MOST_TOUCHED else None, "touched_bytes": size}


def _newest_tier(deltas: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Choose the newest deltas, as many as it takes for each that stays to be twice as large as all after it."""
    size, first = 0, len(deltas)
    for place in reversed(range(len(deltas))):
        if place + 1 < len(deltas) and deltas[place].bytes > 2 * size:
            break
        size += deltas[place].bytes
        first = place
    return deltas[first:] if len(deltas) - first > 1 else ()


def after_merge(current: Manifest, plan: MergePlan, *, written: tuple[Segment, ...], now_ms: int) -> Manifest:
    """Return the state in which the delta that was ``written``, if one was, stands for those that were merged.

    It holds their landed files as the base holds those that are folded: these go in time, however rarely that is.
    """
    merged, at = {s.name for s in plan.merge}, current.next_ms(now_ms)
    admitted = (
        f.taken_in(generation=current.state.generation, now_ms=at).model_copy(update={"segment": written[0].name})
        if f.segment in merged
        else f
        for f in current.admitted
    )
    return current.followed(
        now_ms=now_ms,
        compacted_ms=now_ms,
        next_delta=current.next_delta + len(written),
        segments=(*(s for s in current.segments if s.name not in merged), *written),
        superseded=(*current.superseded, *(s.superseded(at) for s in plan.merge)),
        admitted=tuple(admitted),
    )
