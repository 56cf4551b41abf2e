"""Whether a value that went from one type over a second to a third is what it becomes at once.

A boolean that became the int 1 is the text '1', and at once it is 'true'. Where that may be so, rows that are stored
under the first type must be rewritten under the second before the third is shown: else what a table shows would depend
on whether a compaction ran in between. Called by `schemasync.core.migration`.
"""

from __future__ import annotations

from typing import Final

from schemasync.core.conversion import FLOATS, INTEGERS
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Member, Record
from schemasync.core.types import Decimal, Primitive, Type

_TEXT: Final = Primitive.STRING
_EXACT_TEXTS: Final = frozenset({Primitive.BOOLEAN, Primitive.DATE})
"""Each of their values has one text only."""


def is_the_same_at_once(stored: Encoding, between: Encoding, target: Encoding) -> bool:
    """Tell whether every value that fits the second encoding becomes the same at once, or fits in neither way.

    Of what cannot be converted at all others tell.
    """
    match stored, between, target:
        case Leaf(type=first), Leaf(type=second), Leaf(type=third):
            return second in {first, third} or _is_the_same(first, second, third)
        case Record(), Record(), Record():
            there = {m.life: m for m in stored.members}
            then = {m.life: m for m in between.members}
            return all(_member_is(there.get(m.life), then.get(m.life), m) for m in target.members)
        case ListOf(), ListOf(), ListOf():
            return is_the_same_at_once(stored.element, between.element, target.element)
        case MapOf(), MapOf(), MapOf():
            keys = is_the_same_at_once(stored.key, between.key, target.key)
            return keys and is_the_same_at_once(stored.value, between.value, target.value)
        case _:
            return True


def _member_is(stored: Member | None, between: Member | None, target: Member) -> bool:
    if stored is None or between is None:
        return stored is None  # it reads NULL either way
    return is_the_same_at_once(stored.encoding, between.encoding, target.encoding)


def _is_the_same(first: Type, second: Type, third: Type) -> bool:
    types = {first, second, third}
    if _TEXT in types:
        return _is_the_same_text(first, second, third)
    if types.isdisjoint(FLOATS):
        # Numbers that are exact, and truth as 0 and 1, stay the numbers that they are; a day is its midnight.
        return True
    if types <= INTEGERS | FLOATS:
        # A whole number has no sign where it is zero, and -0.0 has one.
        return second in FLOATS or first in INTEGERS or third in INTEGERS
    # Decimals are taken of the shortest text of a number, which another type may write with other digits.
    return False


def _is_the_same_text(first: Type, second: Type, third: Type) -> bool:
    scales = (_scale(first), _scale(second), _scale(third))
    match scales:
        case None, int(then), int(last):
            # '7.00' is no text of a number with less digits, and 7.00 such a number.
            return first is _TEXT and then <= last
        case int(before), None, int(last):
            return second is _TEXT and before <= last
        case int(before), int(then), None:
            return third is _TEXT and before == then
        case _:
            return first == third and (second in _EXACT_TEXTS or first is not _TEXT)


def _scale(type_: Type) -> int | None:
    """Return how many digits texts of an exact number have behind the point, None for what is none."""
    if isinstance(type_, Decimal):
        return type_.scale
    return 0 if type_ in INTEGERS else None
