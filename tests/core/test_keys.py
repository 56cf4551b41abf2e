from __future__ import annotations

from decimal import Decimal as Number

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.keys import Key, at_or_above, is_ordered, parse_key, print_key
from schemasync.core.types import Array, Decimal, Primitive, Type

P = Primitive
WHOLE = st.integers(-(2**62), 2**62)
PLACES: dict[Type, st.SearchStrategy[object]] = {
    P.BIGINT: WHOLE,
    P.DATE: st.integers(-700_000, 2_900_000),
    P.TIMESTAMP: WHOLE,
    P.BOOLEAN: st.integers(0, 1),
    P.STRING: st.text(),
    P.BINARY: st.binary(),
    Decimal(precision=38, scale=4): st.decimals(allow_nan=False, allow_infinity=False, places=4),
}


@given(st.lists(st.sampled_from(list(PLACES)), min_size=1, max_size=3).flatmap(
    lambda types: st.tuples(st.just(types), st.tuples(*(PLACES[t] for t in types)))
))  # fmt: skip
def test_a_key_is_read_as_it_was_written(drawn: tuple[list[Type], Key]) -> None:
    types, key = drawn
    assert parse_key(print_key(key), types) == key


def test_types_without_one_order_for_all_are_known() -> None:
    unordered = (P.FLOAT, P.DOUBLE, Array(element=P.INT))
    assert ([is_ordered(t) for t in unordered], all(map(is_ordered, PLACES))) == ([False] * 3, True)


@pytest.mark.parametrize(
    ("columns", "key", "expected"),
    [
        ([("id", P.BIGINT)], (7,), "(t.`id` >= CAST(7 AS bigint))"),
        (
            [("a", P.STRING), ("b", P.INT)],
            ("it's", -1),
            "(t.`a` > 'it\\'s' OR t.`a` = 'it\\'s' AND t.`b` >= CAST(-1 AS int))",
        ),
        ([("d", P.DATE)], (1,), "(t.`d` >= CAST('1970-01-02' AS date))"),
        ([("t", P.TIMESTAMP)], (1_000_001,), "(t.`t` >= CAST('1970-01-01 00:00:01.000001+00:00' AS timestamp))"),
        ([("f", P.BOOLEAN)], (1,), "(t.`f` >= TRUE)"),
        ([("x", P.BINARY)], (b"\x00\xff",), "(t.`x` >= unhex('00FF'))"),
        (
            [("n", Decimal(precision=5, scale=2))],
            (Number("1.50"),),
            "(t.`n` >= CAST('1.50' AS decimal(5,2)))",
        ),
    ],
)
def test_rows_from_a_key_on_are_told_in_sql(columns: list[tuple[str, Type]], key: Key, expected: str) -> None:
    assert at_or_above(columns, key) == expected
