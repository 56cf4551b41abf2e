"""Which events of one admission become rows, with Arrow: the newest per key, and what tells it the values it lacks.

Where the newest event of a key has a placeholder for a value that the source did not send, the newest older one that
says something about the column stays beside it (`schemasync.core.toast` tells why).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from schemasync.core.admission import CREATE, DELETE, UPSERT, AdmissionRequest, UnsentRule
from schemasync.core.layout import OP
from schemasync.core.placeholders import elements
from schemasync.core.types import Array, Map, Primitive, Type

_ARRIVAL = "schemasync_arrival"
Masks = Mapping[str, pa.BooleanArray]
"""By column: which rows have a placeholder in it."""


def unsent_values(table: pa.Table, rule: UnsentRule, *operations: str) -> Masks:
    """Return the columns that have placeholders in rows of these operations (updates by default), and where."""
    asked = pc.is_in(table.column(OP), value_set=pa.array(operations or (UPSERT,)))
    masks = {
        name: pc.and_(asked, pc.fill_null(_is_any(table.column(name), type_, rule.placeholders), fill_value=False))
        for name, type_ in rule.columns
    }
    return {name: mask.combine_chunks() for name, mask in masks.items() if pc.any(mask).as_py()}


def _is_any(values: pa.ChunkedArray, type_: Type, placeholders: Sequence[str]) -> pa.ChunkedArray:
    return reduce(pc.or_kleene, (_is(values, type_, text) for text in placeholders))


def _is(values: pa.ChunkedArray, type_: Type, placeholder: str) -> pa.ChunkedArray:
    match type_:
        case Array():
            return reduce(pc.or_kleene, (_is_array(values, found) for found in elements(placeholder, type_)))
        case Map():
            alone = pc.equal(pc.list_value_length(values.cast(_entries(values.type))), 1)
            return pc.and_kleene(alone, pc.equal(pc.map_lookup(values, placeholder, "first"), placeholder))
        case _:
            return pc.equal(values, placeholder.encode() if type_ is Primitive.BINARY else placeholder)


def _is_array(values: pa.ChunkedArray, found: Sequence[str | bytes | int]) -> pa.ChunkedArray:
    long = pc.fill_null(pc.equal(pc.list_value_length(values), len(found)), False)
    if not pc.any(long).as_py():
        return long
    # Arrow compares no arrays: of those that are as long it compares element by element.
    some = values.filter(long)
    same = reduce(pc.and_kleene, (pc.equal(pc.list_element(some, n), one) for n, one in enumerate(found)))
    answers = pc.fill_null(same, False).combine_chunks()
    return pa.chunked_array([pc.replace_with_mask(long.combine_chunks(), long.combine_chunks(), answers)])


def _entries(type_: pa.MapType) -> pa.DataType:
    """Return a map's type as that of the list which it is."""
    return pa.list_(pa.struct([pa.field("key", type_.key_type, False), pa.field("value", type_.item_type)]))


def without_placeholders(table: pa.Table, rule: UnsentRule) -> pa.Table:
    """Return the rows with NULL where there were placeholders."""
    for name, mask in unsent_values(table, rule, UPSERT, CREATE).items():
        values = table.column(name)
        nulled = pc.if_else(mask, pa.scalar(None, values.type), values)
        table = table.set_column(table.column_names.index(name), name, nulled)
    return table


def newest_per_key(table: pa.Table, request: AdmissionRequest) -> tuple[pa.Table, tuple[str, ...]]:
    """Keep the newest row per key, sorted by key; return also the columns in which rows have placeholders to carry.

    The newest is the largest by the request's ordering (null is smallest); of rows that it does not tell apart the
    last one, for a sink writes in the order of the topic.
    """
    rule = request.unsent
    if rule is None or not unsent_values(table, rule):
        # Rows that are not kept are never put in order: most of the time goes into that.
        return table.take(newest_places(table, request)), ()
    ordered = table.take(_newest_first(table, request)).combine_chunks()
    ordered = _settled(ordered, request, rule)
    kept = ordered.take(_saying(ordered, request.keys, unsent_values(ordered, rule)))
    return kept, tuple(unsent_values(kept, rule))


def newest_places(table: pa.Table, request: AdmissionRequest) -> pa.Array:
    """Return the place of every key's newest row, by key; no row has a placeholder."""
    order = _newest_first(table, request)
    return order.filter(firsts(table.select(request.keys).take(order), request.keys))


def _newest_first(table: pa.Table, request: AdmissionRequest) -> pa.Array:
    arrived = table.append_column(_ARRIVAL, positions(table))
    return newest_order(arrived, request.keys, request.ordering, (_ARRIVAL, "descending"))


def newest_order(rows: pa.Table, keys: Sequence[str], ordering: Sequence[str], tie: tuple[str, str]) -> pa.Array:
    """Return the places of rows sorted by key, of each the newest first.

    ``tie`` (column, direction) decides what the ordering does not.
    """
    # Arrow sorts nulls last in both directions.
    sort = [*((key, "ascending") for key in keys), *((name, "descending") for name in ordering), tie]
    return pc.sort_indices(rows, sort_keys=sort)


def positions(table: pa.Table) -> pa.Array:
    """Return 0, 1, ... for the rows."""
    return counted(table.num_rows)


def counted(rows: int) -> pa.Array:
    """Return 0, 1, ... for so many rows."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


def firsts(ordered: pa.Table, by: Sequence[str]) -> pa.BooleanArray:
    """Tell which rows differ from the one above in any of these columns; null equals null."""
    if not ordered.num_rows:
        return pa.array([], pa.bool_())
    changed = pa.repeat(pa.scalar(False), ordered.num_rows - 1)
    for name in by:
        column = ordered.column(name).combine_chunks()
        this, above = column.slice(1), column.slice(0, len(column) - 1)
        either = pc.xor(this.is_null(), above.is_null())
        changed = pc.or_(changed, pc.coalesce(pc.not_equal(this, above), either))
    return pa.concat_arrays([pa.array([True]), changed])


def first_saying(ordered: pa.Table, by: Sequence[str], unsent: pa.BooleanArray) -> pa.Array:
    """Return the positions of the first row of every group that has no placeholder; some groups have none."""
    saying = positions(ordered).filter(pc.invert(unsent))
    return saying.filter(firsts(ordered.select(by).take(saying), by))


def answers(
    ordered: pa.Table, name: str, places: pa.Array, rule: UnsentRule
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return what rows at these places say of a column, NULL where they are deletes, and where they tell the value.

    No row is at a place that is null; one that is NULL in a younger column tells nothing.
    """
    values = ordered.column(name)
    alive = pc.not_equal(ordered.column(OP), DELETE)
    tells = pc.invert(pc.and_(alive, values.is_null())) if name in rule.younger else pa.repeat(True, len(values))
    said = pc.if_else(alive, values, pa.scalar(None, values.type))
    return said.take(places), pc.fill_null(tells.take(places), fill_value=False)


def _saying(ordered: pa.Table, keys: Sequence[str], masks: Masks) -> pa.Array:
    """Return the positions of every key's newest row, and of the rows that say what it has placeholders for."""
    newest = positions(ordered).filter(firsts(ordered, keys))
    chosen = [newest, *(first_saying(ordered, keys, mask) for mask in masks.values())]
    return pa.concat_arrays(chosen).unique().sort()


def _settled(ordered: pa.Table, request: AdmissionRequest, rule: UnsentRule) -> pa.Table:
    """Make one row of those that the ordering does not tell apart: nothing can ever come to lie between them.

    The last one counts, with what the others say where it has placeholders; a view could not choose among them.
    """
    by = (*request.keys, *request.ordering)
    newest = firsts(ordered, by)
    group = pc.cumulative_sum(newest.cast(pa.int64()))
    settled = ordered.filter(newest)
    for name, mask in unsent_values(ordered, rule).items():
        saying = first_saying(ordered, by, mask)
        # Counts from 1, as the groups do; null where a group has no such row.
        place = pc.index_in(pc.add(positions(settled), 1), value_set=group.take(saying))
        answer, tells = answers(ordered, name, saying.take(place), rule)
        column = pc.if_else(pc.and_(mask.filter(newest), tells), answer, settled.column(name))
        settled = settled.set_column(settled.column_names.index(name), name, column)
    return settled
