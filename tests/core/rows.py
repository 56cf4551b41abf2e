"""Rows as plain Python values: what projection, view and fold should do to them, and what their answers say to do."""

from __future__ import annotations

from datetime import date
from decimal import Decimal as Number
from typing import Any

from hypothesis import strategies as st

from schemasync.core.defaults import default_value
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Record
from schemasync.core.history import History
from schemasync.core.projection import Carried, Fill
from schemasync.core.reshape import reshaped
from schemasync.core.schema import Column, Life
from schemasync.core.types import Decimal, Primitive

Row = dict[str, Any]

_LEAVES: dict[object, st.SearchStrategy[Any]] = {
    Primitive.INT: st.integers(-(2**31), 2**31 - 1),
    Primitive.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Primitive.FLOAT: st.floats(width=32, allow_nan=False),
    Primitive.DOUBLE: st.floats(allow_nan=False),
    Primitive.STRING: st.text(max_size=3),
    Primitive.DATE: st.dates(date(1900, 1, 1)),
}


def values(encoding: Encoding) -> st.SearchStrategy[Any]:
    """Return shown values of an encoding, null among them."""
    return st.none() | _present(encoding)


def _present(encoding: Encoding) -> st.SearchStrategy[Any]:
    match encoding:
        case Leaf(type=Decimal(precision=precision, scale=scale)):
            largest = 10**precision - 1
            return st.integers(-largest, largest).map(lambda n: Number(f"{n}E-{scale}"))
        case Leaf(type=type_):
            return _LEAVES[type_]
        case ListOf(element=element):
            return st.lists(values(element), max_size=2)
        case MapOf(key=key, value=value):
            return st.dictionaries(_present(key), values(value), max_size=2)
        case Record(members=members):
            return st.fixed_dictionaries({m.name: values(m.encoding) for m in members})


def rows(columns: tuple[Column, ...]) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({c.name: values(c.encoding) for c in columns})


def stepped(value: Any, current: Encoding, desired: Encoding) -> Any:
    """Return a value after one version's step: numbers are the same numbers, new members are null."""
    match current, desired:
        case _ if value is None:
            return None
        case ListOf(), ListOf():
            return [stepped(item, current.element, desired.element) for item in value]
        case MapOf(), MapOf():
            return {key: stepped(item, current.value, desired.value) for key, item in value.items()}
        case Record(), Record():
            there = {m.name: m.encoding for m in current.members}
            here = {m.name for m in desired.members}
            olds = {
                m.name: [n for n in (m.name, *m.aliases) if n in there and (n == m.name or n not in here)]
                for m in desired.members
            }
            return {
                m.name: stepped(value[old[0]], there[old[0]], m.encoding) if (old := olds[m.name]) else None
                for m in desired.members
            }
        case _:
            return value


def model(found: History, row: Row, *, written: int, shown: int) -> dict[Life, Any]:
    """Return what a row that was written under one version holds under a later one: version by version, as if each
    had rewritten it."""
    state = {c.life: row[c.name] for v in found.between(written, written) for c in v.columns}
    for before, after in zip(found.between(written, shown - 1), found.between(written + 1, shown), strict=True):
        old = {c.life: c.encoding for c in before.columns}
        state = {
            c.life: stepped(state[c.life], old[c.life], c.encoding) if c.life in old else _default(c)
            for c in after.columns
        }
    return state


def _default(column: Column) -> Any:
    return None if column.nullable else default_value(column.encoding, column.default)


def carried_value(physical: Row, found: Carried | Fill) -> Any:
    """Do to a row of the long-lived table what `carried` says."""
    return found.value if isinstance(found, Fill) else reshaped(physical.get(found.name), found.shape)
