"""Which type changes keep every value: the one table of widenings, by law reflexive, transitive and lossless.

`schemasync.core.diff` classifies with it, `schemasync.core.projection` casts by it. What is not here is a retype.
"""

from __future__ import annotations

from typing import Final

from schemasync.core.names import folded
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type

_P = Primitive

WIDENINGS: Final[dict[Primitive, frozenset[Primitive]]] = {
    _P.TINYINT: frozenset({_P.SMALLINT, _P.INT, _P.BIGINT, _P.FLOAT, _P.DOUBLE}),
    _P.SMALLINT: frozenset({_P.INT, _P.BIGINT, _P.FLOAT, _P.DOUBLE}),
    _P.INT: frozenset({_P.BIGINT, _P.DOUBLE}),
    _P.FLOAT: frozenset({_P.DOUBLE}),
}
"""Primitive -> the other primitives that hold each of its values exactly (float has 24 bits, double 53)."""

INTEGER_DIGITS: Final[dict[Primitive, int]] = {_P.TINYINT: 3, _P.SMALLINT: 5, _P.INT: 10, _P.BIGINT: 19}
"""Integer -> the decimal digits that its largest value needs."""


def widens(current: Type, desired: Type) -> bool:
    """Tell whether every value of ``current`` is also one of ``desired``, equal to itself included.

    A struct widens to one that has all its members (case aside), widened, and possibly more: those read NULL.
    """
    match current, desired:
        case Primitive(), Primitive():
            return current is desired or desired in WIDENINGS.get(current, frozenset())
        case Primitive(), Decimal(precision=precision, scale=scale):
            return current in INTEGER_DIGITS and precision - scale >= INTEGER_DIGITS[current]
        case Decimal(), Decimal():
            return desired.scale >= current.scale and _integer_digits(desired) >= _integer_digits(current)
        case Array(), Array():
            return widens(current.element, desired.element)
        case Map(), Map():
            return widens(current.key, desired.key) and widens(current.value, desired.value)
        case Struct(), Struct():
            wider = {folded(field.name): field.type for field in desired.fields}
            names = ((folded(f.name), f.type) for f in current.fields)
            return all(name in wider and widens(type_, wider[name]) for name, type_ in names)
        case _:
            return False


def _integer_digits(decimal: Decimal) -> int:
    return decimal.precision - decimal.scale
