from __future__ import annotations

import itertools
import struct
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pytest

from schemasync.core.conversion import converted, converts
from schemasync.core.detour import is_the_same_at_once
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Member, Record
from schemasync.core.types import Decimal, Primitive
from tests.core.builders import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, MILLIS, STRING, dec, rec

P = Primitive
Kind = Primitive | Decimal
CENTS, WHOLE, FINE, NARROW = (Decimal(precision=p, scale=s) for p, s in ((5, 2), (20, 0), (12, 4), (3, 1)))


def single(value: float) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def whole(bits: int) -> list[int]:
    wanted = [0, 1, -1, 7, 127, 2**24 + 1, 2**31 - 1, 2**31 - 128, 2**53, 2**53 + 1, 2**60, 2**63 - 1]
    return [sign * n for n in wanted for sign in (1, -1) if n < 2 ** (bits - 1)]


def exact(type_: Decimal) -> list[Number]:
    numbers = (Number(n) for n in ("0", "1", "7", "7.5", "0.1", "-1.2345", "19.99", str(2**53 + 1), "1e16"))
    unit = Number(1).scaleb(-type_.scale)
    within = (n for n in numbers if abs(n) < 10 ** (type_.precision - type_.scale))
    return [n.quantize(unit) for n in within if n == n.quantize(unit)]


REALS = [0.0, -0.0, 1.0, 0.5, single(0.1), single(19.99), 1e10, 2.0**53, 2.0**60, float("nan"), float("inf")]
SAMPLES: dict[Kind, list[Any]] = {
    P.BOOLEAN: [True, False],
    P.TINYINT: whole(8),
    P.INT: whole(32),
    P.BIGINT: whole(64),
    P.FLOAT: [single(value) for value in REALS],
    P.DOUBLE: [*REALS, 0.1, 19.99, 1e16],
    P.STRING: [
        "0",
        "-0",
        "1",
        "007",
        "-7",
        "7.0",
        "7.00",
        "7.0000",
        "7.5",
        "0.1",
        "1e3",
        "true",
        "2026-01-02",
        str(2**53 + 1),
        "x",
        "",
    ],
    P.DATE: [date(2026, 1, 2), date(1, 1, 1)],
    P.TIMESTAMP: [datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, 3, tzinfo=UTC)],
    **{type_: exact(type_) for type_ in (CENTS, WHOLE, FINE, NARROW)},
}
WAYS = [
    (first, second, third)
    for first, second, third in itertools.product(SAMPLES, repeat=3)
    if converts(first, second) and converts(second, third) and converts(first, third)
]


def one_by_one(value: Any, *types: Kind) -> Any:
    """Return what a value of the first type is in the end, with its sign, None where it does not fit."""
    for current, desired in itertools.pairwise(types):
        try:
            value = value if current == desired else converted(value, current, desired)
        except ValueError:
            return None
    # To Python alone a decimal has a zero below zero.
    return repr(value + 0 if isinstance(value, Number) else value)


def differ(first: Kind, second: Kind, third: Kind) -> list[Any]:
    """Return values that fit the second type, and are something else in the third than at once."""
    fit = (value for value in SAMPLES[first] if one_by_one(value, first, second) is not None)
    return [v for v in fit if one_by_one(v, first, second, third) != one_by_one(v, first, third)]


def of(first: Kind, second: Kind, third: Kind) -> bool:
    return is_the_same_at_once(Leaf(type=first), Leaf(type=second), Leaf(type=third))


def test_what_is_the_same_at_once_is_the_same_value_by_value() -> None:
    assert [(way, found) for way in WAYS if of(*way) and (found := differ(*way))] == []


def test_what_needs_no_digits_waits_only_where_some_value_differs() -> None:
    """Of decimals beside floating numbers, and of texts that become these, the rule says less than it could."""
    plain = [way for way in WAYS if {P.FLOAT, P.DOUBLE}.isdisjoint(way)]
    assert [way for way in plain if not of(*way) and not differ(*way)] == []


@pytest.mark.parametrize(
    "way",
    [
        (INT, BIGINT, dec(20, 0)),
        (STRING, INT, BIGINT),
        (STRING, INT, dec(12, 4)),
        (INT, dec(20, 0), STRING),
        (INT, STRING, BIGINT),
        (STRING, BOOLEAN, STRING),
        (DATE, STRING, DATE),
        (MILLIS, DATE, MILLIS),
        (INT, DOUBLE, BIGINT),
        (INT, FLOAT, DOUBLE),
        (DOUBLE, FLOAT, DOUBLE),
        (INT, INT, STRING),
        (rec(x=INT), rec(x=INT), rec(x=STRING, y=INT)),
        (ListOf(element=INT), ListOf(element=BIGINT), ListOf(element=dec(20, 0))),
        (MapOf(key=INT, value=INT), MapOf(key=BIGINT, value=STRING), MapOf(key=STRING, value=STRING)),
        (INT, ListOf(element=INT), INT),
    ],
)
def test_the_same_at_once(way: tuple[Encoding, Encoding, Encoding]) -> None:
    assert is_the_same_at_once(*way)


@pytest.mark.parametrize(
    "way",
    [
        (BOOLEAN, INT, STRING),
        (STRING, INT, STRING),
        (STRING, dec(8, 2), STRING),
        (STRING, dec(8, 2), INT),
        (INT, dec(8, 2), STRING),
        (dec(8, 2), STRING, INT),
        (dec(8, 2), FLOAT, DOUBLE),
        (DOUBLE, BIGINT, dec(20, 0)),
        (DOUBLE, BIGINT, DOUBLE),
        (STRING, INT, BOOLEAN),
        (rec(x=BOOLEAN), rec(x=INT), rec(x=STRING)),
        (ListOf(element=STRING), ListOf(element=INT), ListOf(element=STRING)),
        (MapOf(key=STRING, value=STRING), MapOf(key=STRING, value=INT), MapOf(key=STRING, value=STRING)),
        (MapOf(key=BOOLEAN, value=INT), MapOf(key=INT, value=INT), MapOf(key=STRING, value=INT)),
    ],
)
def test_another_value_at_once(way: tuple[Encoding, Encoding, Encoding]) -> None:
    assert not is_the_same_at_once(*way)


def test_a_member_that_came_later_reads_null_either_way_and_one_that_was_gone_would_not() -> None:
    one, other = rec(x=INT), Record(members=(Member(name="x", encoding=STRING, since=2),))
    assert is_the_same_at_once(one, other, other)
    assert is_the_same_at_once(one, one, other)
    assert not is_the_same_at_once(one, other, one)
