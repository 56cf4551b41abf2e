"""Change sets: which rows change, how often, in which order the events land.

A `Source` is the database whose changes are captured: it knows which rows live and yields one change set after the
other. Every set has the promised mix: 10 % new keys, 5 % deletes, 1 % late events, one to three events per
key, shuffled. Two sources that are asked for the same sets in the same order yield the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.values import Key, below, columns_of, count_up, noise

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
START_MS: Final = 1_790_000_000_000
"""The base was read in this hour; the change set of number n comes n hours later, and late events a day earlier."""

NEW_PART: Final = 10
DELETED_PART: Final = 20
LATE_PART: Final = 100
"""One changed key in 10 is new, one in 20 deleted; the event of one in 100 is older than the row it is about."""
MOST_EVENTS: Final = 3
_OFFSETS_PER_SET: Final = 2**36
_CHUNK: Final = 250_000

_UPDATED, _NEW, _DELETED, _LATE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much changes: a part of the base's rows, or ``count`` keys. ``recent``: among the newest tenth only."""

    name: str
    part: float = 0.0
    count: int = 0
    recent: bool = False

    def keys(self, rows: int) -> int:
        """Return how many keys change in a base of so many rows: never so few that some kind of change is missing."""
        return self.count or max(NEW_PART + DELETED_PART, round(rows * self.part))


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape(name="100-rows", count=100),
        Shape(name="uniform-0.1%", part=0.001),
        Shape(name="recent-1%", part=0.01, recent=True),
        Shape(name="uniform-20%", part=0.2),
    )
}


def base_tables(rows: int, key: Key) -> Iterator[pa.Table]:
    """Yield the base as events of a snapshot (``op`` r), sorted by key within each table of a bounded size."""
    for start in range(0, rows, _CHUNK):
        numbers = count_up(start, min(_CHUNK, rows - start))
        ts_ms = pc.add(below(noise(numbers, 3), HOUR_MS), START_MS)
        table = columns_of(numbers, numbers, key)
        table |= {"op": pa.repeat("r", len(numbers)), "ts_ms": ts_ms, "kafka_offset": numbers.cast(pa.int64())}
        yield pa.table(table).sort_by("id")


class Source:
    """The captured database: rows 0 to ``rows`` live at first."""

    def __init__(self, *, rows: int, key: Key) -> None:
        """Start with a base of so many rows."""
        self._key = key
        self._alive = count_up(0, rows)
        self._next = rows
        self._sets = 0

    def change(self, shape: Shape, rows: int) -> pa.Table:
        """Return the next change set in the order in which it lands; ``rows`` is what the shape is a part of."""
        self._sets += 1
        count = shape.keys(rows)
        new = count_up(self._next, ceil(count / NEW_PART))
        known = self._chosen(shape, count - len(new))
        kinds = _kinds(count)
        events = _events(pa.concat_arrays([new, known]), kinds, self._sets, self._key)
        gone = known.filter(pc.equal(kinds.slice(len(new)), _DELETED))
        self._alive = pa.concat_arrays([self._alive.filter(pc.invert(pc.is_in(self._alive, gone))), new])
        self._next += len(new)
        return events

    def _chosen(self, shape: Shape, count: int) -> pa.Array:
        if not shape.recent:
            return self._sample(self._alive, count)
        # Three quarters of the changes fall on the newest fortieth of the rows, the rest on the newest tenth.
        tenth = self._alive.slice(len(self._alive) - len(self._alive) // 10)
        newest = tenth.slice(len(tenth) - len(tenth) // 4)
        others = tenth.slice(0, len(tenth) - len(newest))
        many = self._sample(newest, count * 3 // 4)
        chosen = pa.concat_arrays([many, self._sample(others, count - len(many))])
        return self._sample(chosen, count)

    def _sample(self, rows: pa.Array, count: int) -> pa.Array:
        return rows.take(pc.sort_indices(noise(rows, 1000 + self._sets)).slice(0, count))


def _kinds(count: int) -> pa.Array:
    """Return what happens to each of so many keys, the new ones first; the others were drawn in random order."""
    new, deleted, late = (ceil(count / part) for part in (NEW_PART, DELETED_PART, LATE_PART))
    counts = ((_NEW, new), (_DELETED, deleted), (_LATE, late), (_UPDATED, count - new - deleted - late))
    return pa.concat_arrays([pa.repeat(pa.scalar(kind, pa.int8()), n) for kind, n in counts])


def _events(rows: pa.Array, kinds: pa.Array, number: int, key: Key) -> pa.Table:
    many = pc.add(below(noise(rows, 2000 + number), MOST_EVENTS), 1)
    many = pc.if_else(pc.equal(kinds, _LATE), 1, many)
    rounds = [_round(rows, kinds, many, turn, number) for turn in range(MOST_EVENTS)]
    plan = pa.concat_tables(rounds).combine_chunks()
    offsets = count_up(number * _OFFSETS_PER_SET, len(plan))
    numbers = plan.column("row").combine_chunks()
    table = columns_of(numbers, offsets, key)
    table |= {"op": plan.column("op"), "ts_ms": plan.column("ts_ms"), "kafka_offset": offsets.cast(pa.int64())}
    return pa.table(table).take(pc.sort_indices(noise(offsets, 4)))


def _round(rows: pa.Array, kinds: pa.Array, many: pa.Array, turn: int, number: int) -> pa.Table:
    """Return the events of every key that has more than ``turn``: later than those of the turns before."""
    last = pc.equal(many, turn + 1)
    first = turn == 0
    op = pc.if_else(pc.and_(pc.equal(kinds, _DELETED), last), "d", "u")
    op = pc.if_else(pc.equal(kinds, _NEW), "c", op) if first else op
    spread = below(noise(rows, 3000 + number), HOUR_MS // MOST_EVENTS)
    on_time = pc.add(spread, START_MS + number * HOUR_MS + turn * (HOUR_MS // MOST_EVENTS))
    ts_ms = pc.if_else(pc.equal(kinds, _LATE), pc.add(spread, START_MS - DAY_MS), on_time)
    return pa.table({"row": rows, "op": op, "ts_ms": ts_ms}).filter(pc.greater(many, turn))
