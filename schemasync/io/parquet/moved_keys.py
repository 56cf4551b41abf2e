"""Updates that changed the key of their row: a delete of the old key beside the create of the new one.

Debezium parts such an update itself where its own key changes, and knows nothing of another one that is configured.
A create, because older events of the new key are of another row: an update would carry that row's values.
Called by `schemasync.io.parquet.rows`; without it the row would stay under its old key, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from schemasync.core.admission import CREATE, DELETE, UPSERT
from schemasync.core.layout import OP, TOMBSTONE
from schemasync.core.types import Primitive
from schemasync.io.parquet.newest import counted
from schemasync.io.parquet.values import constant


def moved(operations: pa.ChunkedArray, keys: Iterable[tuple[pa.Array, pa.Array]]) -> pa.Array:
    """Return the places of the updates that say all of the key before them, and another one after them.

    ``keys`` are the key's columns as they were written, of each the values (before, after).
    """
    sides = list(keys)
    told = reduce(pc.and_, (before.is_valid() for before, _ in sides))
    other = reduce(pc.or_, (pc.fill_null(_differ(before, after), False) for before, after in sides))
    found = pc.and_(pc.and_(told, other), pc.equal(operations, UPSERT))
    return pc.indices_nonzero(found)


def _differ(one: pa.Array, other: pa.Array) -> pa.Array:
    if not pa.types.is_struct(one.type):
        return pc.not_equal(one, other)
    # A number with its scale, which Arrow does not compare as a whole.
    fields = [_differ(pc.struct_field(one, n), pc.struct_field(other, n)) for n in range(one.type.num_fields)]
    return reduce(pc.or_, fields)


def deletes(updates: pa.Table, old: Mapping[str, pa.Array], row: Iterable[str]) -> pa.Table:
    """Return deletes of ``old`` keys in place of their updates, without the other values of the ``row``."""
    columns = dict(zip(updates.column_names, updates.columns, strict=True))
    columns |= {name: pa.nulls(updates.num_rows, columns[name].type) for name in row}
    columns |= old
    columns |= {
        OP: constant(DELETE, Primitive.STRING, updates.num_rows),
        TOMBSTONE: constant(True, Primitive.BOOLEAN, updates.num_rows),
    }
    return pa.table(columns)


def parted(found: pa.Table, events: pa.Array, table: pa.Table) -> pa.Table:
    """Return the rows of a table with deletes among them, each right before the update at its place in ``events``.

    That is a create then.
    """
    rows, moves = counted(table.num_rows), events.cast(pa.int64())
    operations = pc.if_else(pc.is_in(rows, value_set=moves), CREATE, table.column(OP))
    table = table.set_column(table.column_names.index(OP), OP, operations)
    # The sort is stable: of one place the delete comes first.
    return pa.concat_tables([found, table]).take(pc.sort_indices(pa.concat_arrays([moves, rows])))
