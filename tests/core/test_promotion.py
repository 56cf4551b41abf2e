from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.promotion import widens
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.io.parquet.values import arrow_type
from tests.strategies import decimals, types

P = Primitive
ALL_NUMBERS: tuple[Type, ...] = (
    *(P.TINYINT, P.SMALLINT, P.INT, P.BIGINT, P.FLOAT, P.DOUBLE),
    *(Decimal(precision=p, scale=s) for p in range(1, 39) for s in range(p + 1)),
)
numbers: st.SearchStrategy[Type] = st.sampled_from(ALL_NUMBERS)
leaves: st.SearchStrategy[Type] = st.one_of(st.sampled_from(P), decimals())


def dec(precision: int, scale: int) -> Decimal:
    return Decimal(precision=precision, scale=scale)


def struct(**fields: Type) -> Struct:
    return Struct(fields=tuple(StructField(name=n, type=t) for n, t in fields.items()))


@pytest.mark.parametrize(
    ("current", "desired"),
    [
        (P.TINYINT, P.SMALLINT), (P.TINYINT, P.FLOAT), (P.SMALLINT, P.DOUBLE), (P.INT, P.BIGINT), (P.INT, P.DOUBLE),
        (P.FLOAT, P.DOUBLE), (P.TINYINT, dec(3, 0)), (P.BIGINT, dec(21, 2)), (dec(5, 2), dec(6, 3)),
        (Array(element=P.INT), Array(element=P.BIGINT)), (Map(key=P.INT, value=P.INT), Map(key=P.BIGINT, value=P.INT)),
        (struct(a=P.INT), struct(b=P.STRING, a=P.BIGINT)),
    ],
)  # fmt: skip
def test_these_keep_every_value(current: Type, desired: Type) -> None:
    assert widens(current, desired)
    assert not widens(desired, current)


@pytest.mark.parametrize(
    ("current", "desired"),
    [
        (P.INT, P.FLOAT), (P.BIGINT, P.DOUBLE), (P.INT, P.STRING), (P.DATE, P.TIMESTAMP), (P.BOOLEAN, P.TINYINT),
        (P.BIGINT, dec(20, 2)), (P.TINYINT, dec(2, 0)), (P.STRING, dec(5, 2)), (dec(5, 2), P.DOUBLE),
        (dec(5, 2), dec(7, 1)), (dec(5, 2), dec(6, 4)), (P.STRING, P.BINARY),
        (Array(element=P.INT), P.STRING), (Array(element=P.BIGINT), Array(element=P.INT)),
        (Map(key=P.INT, value=P.BIGINT), Map(key=P.INT, value=P.INT)), (struct(a=P.INT, b=P.INT), struct(a=P.INT)),
        (struct(a=P.BIGINT), struct(a=P.INT)),
    ],
)  # fmt: skip
def test_these_may_lose_values(current: Type, desired: Type) -> None:
    assert not widens(current, desired)


@given(types())
def test_every_type_widens_to_itself(type_: Type) -> None:
    assert widens(type_, type_)


NESTS: tuple[Callable[[Type], Type], ...] = (
    lambda t: t,
    lambda t: Array(element=t),
    lambda t: Map(key=t, value=P.INT),
    lambda t: Map(key=P.INT, value=t),
    lambda t: struct(a=t, b=P.STRING),
)


@given(leaves, leaves, leaves, st.sampled_from(NESTS))
def test_widening_is_transitive(first: Type, second: Type, third: Type, nest: Callable[[Type], Type]) -> None:
    first, second, third = nest(first), nest(second), nest(third)
    assert widens(first, third) or not (widens(first, second) and widens(second, third))


@given(st.data())
def test_chains_of_widenings_hold_from_end_to_end(data: st.DataObject) -> None:
    first = data.draw(numbers)
    second = data.draw(st.sampled_from([t for t in ALL_NUMBERS if widens(first, t)] or [first]))
    third = data.draw(st.sampled_from([t for t in ALL_NUMBERS if widens(second, t)] or [second]))
    assert widens(first, third)


_BITS = {P.TINYINT: 8, P.SMALLINT: 16, P.INT: 32, P.BIGINT: 64}


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Return values of a numeric type, its ends among them."""
    match type_:
        case Decimal(precision=precision, scale=scale):
            largest = 10**precision - 1
            unscaled = st.sampled_from([-largest, largest, 0, 1]) | st.integers(-largest, largest)
            return unscaled.map(lambda n: Number(f"{n}E-{scale}"))
        case P.FLOAT:
            return st.floats(width=32, allow_nan=False)
        case P.DOUBLE:
            return st.floats(allow_nan=False)
        case _:
            half = 2 ** (_BITS[type_] - 1)  # type: ignore[index]
            return st.sampled_from([-half, half - 1]) | st.integers(-half, half - 1)


@given(st.data())
def test_a_widened_value_comes_back_equal(data: st.DataObject) -> None:
    first = data.draw(numbers)
    second = data.draw(st.sampled_from([t for t in ALL_NUMBERS if widens(first, t)] or [first]))
    current, desired = arrow_type(first), arrow_type(second)
    written = pa.array([data.draw(values(first))], current)
    assert written.cast(desired).cast(current).equals(written)


@given(leaves, leaves)
def test_no_two_leaves_widen_to_each_other(one: Type, other: Type) -> None:
    assert one == other or not (widens(one, other) and widens(other, one))


def test_a_struct_widens_whatever_the_case_of_its_members() -> None:
    narrow = Struct(fields=(StructField(name="State", type=Primitive.INT),))
    wide = Struct(fields=(StructField(name="state", type=Primitive.BIGINT),))
    assert (widens(narrow, wide), widens(wide, narrow)) == (True, False)
