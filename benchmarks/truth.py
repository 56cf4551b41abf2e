"""What a table must hold after a change set: a fold with Arrow that shares no code with anything that is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.values import count_up


def newest(events: pa.Table) -> pa.Table:
    """Return the newest event of every key, by ``ts_ms`` and then ``kafka_offset``, sorted by key."""
    ordered = events.sort_by([("id", "ascending"), ("ts_ms", "descending"), ("kafka_offset", "descending")])
    ids = ordered.column("id").combine_chunks()
    if len(ids) < 2:
        return ordered
    changed = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1))
    return ordered.filter(pa.concat_arrays([pa.array([True]), changed]))


def fold(parts: Iterable[pa.Table], events: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows that live after these events: what is left of each part, and then the rows that replace or join.

    Parts and results have the row's columns and the envelope; an event counts where no row of its key is newer.
    """
    latest = newest(events)
    ids, times = latest.column("id"), latest.column("ts_ms")
    losers = [pa.array([], pa.int32())]
    for part in parts:
        place = pc.index_in(part.column("id"), value_set=ids)
        replaced = pc.less(part.column("ts_ms"), times.take(place))
        yield part.filter(pc.invert(pc.fill_null(replaced, False)))
        losers.append(pc.filter(place, pc.invert(replaced)).combine_chunks())
    lost = pc.is_in(count_up(0, len(latest)).cast(pa.int32()), value_set=pa.concat_arrays(losers))
    yield latest.filter(pc.and_(pc.invert(lost), pc.not_equal(latest.column("op"), "d")))
