"""Events that come late: rows of a delta that were there in a newer form, found before the delta is written.

Rows that are newer than what bounds those of the base, or of a delta, need no look there. For the others keys and the
ordering columns that nearly always decide are read, where statistics say that such keys may be; the rest of these where
that leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest, EarlierDelta, EarlierRows, FoldedShard
from schemasync.core.manifest import DataFile
from schemasync.core.moments import Newest, newest_of
from schemasync.io.parquet.moments import as_moments, is_shared, without_nulls
from schemasync.io.parquet.newest import firsts, newest_order, positions
from schemasync.io.parquet.same_keys import SHARE, sharing
from schemasync.io.parquet.sorted_rows import spread

MOST_ROWS: Final = 50_000_000
"""Rows, of the base or of deltas, that may be read to find newer ones: beyond that a view that compares costs less."""

_PLACE: Final = "schemasync_rank"
_NONE: Final = pa.nulls(0, pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Rows without those that are late; whether all are known to be newer than the base, and than earlier deltas.

    So many late ones are ``contradicted`` by the clock.
    """

    rows: pa.Table
    ahead: bool = False
    ahead_of_deltas: bool = False
    contradicted: int = 0


def without_late_rows(filesystem: fs.FileSystem, base: str, rows: pa.Table, request: AdmissionRequest) -> Compared:
    """Leave out rows that are older than what is there of their key.

    ``rows`` are one per key, sorted by key.

    Raises:
        OSError: a file of the base or of a delta cannot be read.
        pa.ArrowException: the same.
    """
    beside = request.beside
    if beside is None:
        return Compared(rows=rows)
    columns = [*request.keys, *request.ordering]
    asked = rows.select(columns).append_column(_PLACE, positions(rows))
    suspects = _not_above(asked, request, beside.newest)
    near = [f for shard in _near(suspects, request.keys, beside) for f in shard.files]
    of_base = _late(filesystem, base, suspects, near, request, among=rows.num_rows)
    of_deltas = None
    if beside.deltas is not None:
        suspects, near = _beside_deltas(asked, request, beside.deltas)
        of_deltas = _late(filesystem, base, suspects, near, request, among=rows.num_rows)
    found = [late for late in (of_base, of_deltas) if late is not None]
    gone = pc.is_in(asked.column(_PLACE), value_set=pa.concat_arrays([_NONE, *(late.places for late in found)]))
    contradicted = pa.concat_arrays([_NONE, *(late.contradicted for late in found)])
    return Compared(
        rows=rows.filter(pc.invert(gone)),
        ahead=of_base is not None,
        ahead_of_deltas=of_deltas is not None,
        contradicted=pc.count_distinct(contradicted).as_py(),
    )


@dataclass(frozen=True, slots=True)
class _Late:
    """Places of rows that are older than what there is of their key, and of those that the clock says are newer."""

    places: pa.Array
    contradicted: pa.Array


def _late(
    filesystem: fs.FileSystem,
    base: str,
    suspects: pa.Table,
    files: Sequence[DataFile],
    request: AdmissionRequest,
    *,
    among: int,
) -> _Late | None:
    """Find suspects, of ``among`` rows, that are older than what files have; None where there is too much to read."""
    paths = [f"{base}/{file.path}" for file in files]
    places = _older(filesystem, paths, suspects, request)
    if places is None:
        return None
    # Once a log begins anew most may be late. A few are nothing new, and this reads what there is of their keys again.
    doubted = request.clock is not None and len(places) > 0 and 2 * suspects.num_rows >= among
    contradicted = _contradicted(filesystem, paths, _at(suspects, places), request) if doubted else _NONE
    return _Late(places=places, contradicted=contradicted)


def _older(
    filesystem: fs.FileSystem, paths: Sequence[str], suspects: pa.Table, request: AdmissionRequest
) -> pa.Array | None:
    """Return the places of suspects that are older than what files have; None where there is too much to read."""
    deciding = _deciding(suspects, request)
    found = _standing(filesystem, paths, suspects, replace(request, ordering=deciding))
    if found is None:
        return None
    if not len(found.tied) or deciding == request.ordering:
        return found.late
    of_these = _standing(filesystem, paths, _at(suspects, found.tied), request)
    return None if of_these is None else pa.concat_arrays([found.late, of_these.late])


def _contradicted(
    filesystem: fs.FileSystem, paths: Sequence[str], late: pa.Table, request: AdmissionRequest
) -> pa.Array:
    """Return the places of late rows that are newer than what files have by the request's clock."""
    found = _standing(filesystem, paths, late, replace(request, ordering=(request.clock or "",)))
    if found is None:
        return _NONE
    places = late.column(_PLACE)
    not_newer = pc.is_in(places, value_set=pa.concat_arrays([found.late, found.tied]))
    return places.filter(pc.invert(not_newer)).combine_chunks()


def _at(rows: pa.Table, places: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows.column(_PLACE), value_set=places))


def _deciding(rows: pa.Table, request: AdmissionRequest) -> tuple[str, ...]:
    """Return the first ordering columns that nearly always tell which of two rows is newer."""
    shared = request.shared or is_shared(rows.schema.field(request.ordering[0]).type)
    return request.ordering[: 2 if shared else 1]


def _not_above(rows: pa.Table, request: AdmissionRequest, newest: Newest) -> pa.Table:
    """Return the rows that are not known to be newer than all that this bounds."""
    first = as_moments(rows.column(request.ordering[0]))
    above = pc.greater(first, newest.first)
    if newest.then is not None:
        then = as_moments(rows.column(request.ordering[1]))
        above = pc.or_kleene(above, pc.and_kleene(pc.equal(first, newest.first), pc.greater(then, newest.then)))
    return rows.filter(pc.invert(pc.fill_null(above, fill_value=False)))


def _beside_deltas(
    rows: pa.Table, request: AdmissionRequest, deltas: Sequence[EarlierDelta]
) -> tuple[pa.Table, list[DataFile]]:
    """Return the rows that deltas may have newer ones of, and the files of these."""
    newest = newest_of([delta.newest for delta in deltas])
    suspects = rows.slice(0, 0) if newest is None else _not_above(rows, request, newest)
    first = without_nulls(as_moments(suspects.column(request.ordering[0])))
    near = (delta for delta in deltas if pc.any(pc.less_equal(first, delta.newest.first)).as_py())
    return suspects, [file for delta in near for file in delta.files]


def touched(rows: pa.Table, request: AdmissionRequest) -> tuple[str, ...] | None:
    """Return the shards of the base in whose ranges these rows, sorted by key, have keys."""
    beside = request.beside
    return None if beside is None else tuple(shard.name for shard in _near(rows, request.keys, beside))


def _near(rows: pa.Table, keys: Sequence[str], beside: EarlierRows) -> list[FoldedShard]:
    """Return the shards that have such keys in their range."""
    bounds = [shard.low for shard in beside.shards if shard.low is not None]
    return [beside.shards[place] for place in sorted(spread(iter(rows.to_batches()), keys, bounds))]


def _some(found: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    """Gather rows up to a size: many may share the first column of their key with few suspects."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in found:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= most_bytes:
            yield held
            held, size = [], 0
    if held:
        yield held


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where suspects stand: places of those that are older than what there is of their key, and as new."""

    late: pa.Array
    tied: pa.Array


def _standing(
    filesystem: fs.FileSystem, paths: Sequence[str], suspects: pa.Table, request: AdmissionRequest
) -> _Standing | None:
    """Compare suspects with what files have of their keys; None where there is too much to read."""
    asked = suspects.select([*request.keys, *request.ordering, _PLACE])
    there = sharing(filesystem, paths, asked, request, most_rows=MOST_ROWS)
    if there is None:
        return None
    with closing(there):
        compared = [_compared(asked, some, request) for some in _some(there, request.memory // SHARE)]
    return _Standing(
        late=pa.concat_arrays([_NONE, *(some.late for some in compared)]),
        tied=pa.concat_arrays([_NONE, *(some.tied for some in compared)]),
    )


def _compared(suspects: pa.Table, found: Sequence[pa.RecordBatch], request: AdmissionRequest) -> _Standing:
    """Tell which suspects are not the newest of their key, and which are not alone in that."""
    # Batch by batch: what was an int in one file may be a bigint in another.
    schema = suspects.schema.remove(suspects.schema.get_field_index(_PLACE))
    there = pa.concat_tables([pa.Table.from_batches([batch]).cast(schema) for batch in found])
    rows = pa.concat_tables([suspects, there.append_column(_PLACE, pa.nulls(there.num_rows, pa.int64()))])
    # Nulls come last: of equal rows the suspect is first, as the one that came later.
    order = newest_order(rows, request.keys, request.ordering, (_PLACE, "ascending"))
    ordered = rows.take(order).combine_chunks()
    newest = firsts(ordered, request.keys)
    differs = firsts(ordered, [*request.keys, *request.ordering])
    followed = pa.concat_arrays([pc.invert(differs.slice(1)), pa.array([False])])
    beaten, tied = pc.invert(newest), pc.and_(newest, followed)
    return _Standing(late=_places(ordered.filter(beaten)), tied=_places(ordered.filter(tied)))


def _places(rows: pa.Table) -> pa.Array:
    return pc.drop_null(rows.column(_PLACE)).combine_chunks()
