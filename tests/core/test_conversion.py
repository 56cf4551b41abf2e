from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

import pytest

from schemasync.core.conversion import converted
from schemasync.core.types import Decimal, Primitive, Type

CENTS = Decimal(precision=5, scale=2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("desired", [Primitive.BIGINT, CENTS])
def test_what_has_no_digits_becomes_no_number_that_has(value: float, desired: Type) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        converted(value, Primitive.DOUBLE, desired)


@pytest.mark.parametrize(
    ("value", "current", "desired", "expected"),
    [
        (0.35, Primitive.DOUBLE, CENTS, Number("0.35")),
        (1.100000023841858, Primitive.FLOAT, CENTS, Number("1.10")),
        (Number("0.35"), CENTS, Primitive.DOUBLE, 0.35),
        (Number("1.10"), CENTS, Primitive.FLOAT, 1.100000023841858),
    ],
)
def test_a_decimal_and_the_number_nearest_to_it_become_each_other(
    value: Any, current: Type, desired: Type, expected: Any
) -> None:
    assert converted(value, current, desired) == expected


@pytest.mark.parametrize(
    ("value", "current", "desired"),
    [
        (1.100000023841858, Primitive.DOUBLE, CENTS),
        (Number("999.99"), CENTS, Decimal(precision=4, scale=2)),
        (Number(2**53 + 1), Decimal(precision=20, scale=0), Primitive.DOUBLE),
        (Number("1106871.12"), Decimal(precision=12, scale=2), Primitive.FLOAT),
        (2**63 - 1, Primitive.BIGINT, Primitive.DOUBLE),
        (2.0**63, Primitive.DOUBLE, Primitive.BIGINT),
        (19.989999771118164, Primitive.FLOAT, Decimal(precision=20, scale=8)),
        (2.925783165132001e16, Primitive.DOUBLE, Decimal(precision=38, scale=6)),
        (149284.625, Primitive.FLOAT, Decimal(precision=12, scale=2)),
        ("1e39", Primitive.STRING, Primitive.FLOAT),
        ("1e400", Primitive.STRING, Primitive.DOUBLE),
        ("0000-01-01", Primitive.STRING, Primitive.DATE),
    ],
)
def test_a_value_that_would_not_come_back_does_not_fit(value: Any, current: Type, desired: Type) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        converted(value, current, desired)
