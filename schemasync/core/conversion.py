"""Which types a retyped column's values can be migrated to, and how one value is converted.

`schemasync.core.promotion` has the changes that keep every value; here are those that keep the values which fit, and
are refused where one does not. A pair is in the table only where Arrow, Spark, Hive and Trino give the same value:
the text of a float or of a timestamp is another one in each of them. Text is converted in one plain notation only.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, localcontext
from decimal import Decimal as Number
from typing import Any, Final

from schemasync.core.promotion import INTEGER_DIGITS, widens
from schemasync.core.types import MAX_PRECISION, Decimal, Primitive, Type

_P = Primitive
INTEGERS: Final = frozenset(INTEGER_DIGITS)
FLOATS: Final = frozenset({_P.FLOAT, _P.DOUBLE})
_NUMBERS: Final = INTEGERS | FLOATS

MOST_EXACT: Final = 2**53
"""Floating numbers that become decimals are below it, above its negative. Java before 19 writes some of the others, of
which the next one lies more than 1 away, with more digits than others do, so that engines take other decimals."""
MAX_TEXT_SCALE: Final = 6
"""Engines write a decimal of a larger scale as text in scientific notation once it is small enough."""

MIGRATIONS: Final[dict[Primitive, frozenset[Primitive]]] = {
    _P.BOOLEAN: INTEGERS | {_P.STRING},
    _P.TINYINT: _NUMBERS | {_P.BOOLEAN, _P.STRING},
    _P.SMALLINT: _NUMBERS | {_P.BOOLEAN, _P.STRING},
    _P.INT: _NUMBERS | {_P.BOOLEAN, _P.STRING},
    _P.BIGINT: _NUMBERS | {_P.BOOLEAN, _P.STRING},
    _P.FLOAT: _NUMBERS,
    _P.DOUBLE: _NUMBERS,
    _P.STRING: _NUMBERS | {_P.BOOLEAN, _P.DATE},
    _P.DATE: frozenset({_P.STRING, _P.TIMESTAMP}),
    _P.TIMESTAMP: frozenset({_P.DATE}),
}
"""Primitive -> the other primitives that its values can be migrated to where they fit; decimals: `converts`."""


def converts(current: Primitive | Decimal, desired: Primitive | Decimal) -> bool:
    """Tell whether values without members can be converted: all of them, or those that fit."""
    match current, desired:
        case _ if widens(current, desired):
            return True
        case Primitive(), Primitive():
            return desired in MIGRATIONS.get(current, frozenset())
        case Primitive(), Decimal():
            return current in _NUMBERS or current is _P.STRING
        case Decimal(scale=scale), Primitive():
            return desired in _NUMBERS or (desired is _P.STRING and scale <= MAX_TEXT_SCALE)
        case _:
            return True  # decimal to decimal


def keeps_all(current: Type, desired: Type) -> bool:
    """Tell whether a conversion fits every value: then nothing needs to be looked at."""
    if widens(current, desired) or desired is _P.STRING:
        return True
    return (current is _P.DATE and desired is _P.TIMESTAMP) or (current is _P.BOOLEAN and desired in INTEGERS)


def notation(desired: Type) -> str:
    """Return the regular expression, for engines, of the texts that are converted; a match may still be out of range.

    Java's ``$``, and Python's, would match before a line break at the end, too.
    """
    return rf"^{_notation(desired)}\z"


def _notation(desired: Type) -> str:
    if isinstance(desired, Decimal):
        return rf"-?[0-9]+(\.[0-9]{{1,{desired.scale}}})?" if desired.scale else "-?[0-9]+"
    return "-?[0-9]+" if desired in INTEGERS else _NOTATIONS[desired]


YEAR: Final = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
"""The years that there are, in notations and patterns: engines and Arrow take 0000 for one, too."""
_REAL: Final = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_NOTATIONS: Final[dict[Type, str]] = {
    _P.FLOAT: _REAL,
    _P.DOUBLE: _REAL,
    _P.BOOLEAN: "(true|false)",
    _P.DATE: f"{YEAR}-[0-9]{{2}}-[0-9]{{2}}",
}


def converted(value: Any, current: Type, desired: Type) -> Any:
    """Return one decoded value (a frozen default) of a type as one of another type.

    Raises:
        ValueError: it does not fit.
    """
    if isinstance(value, str) and desired is not _P.STRING and not re.fullmatch(_notation(desired), value):
        raise _misfit(value)
    try:
        with localcontext(prec=MAX_PRECISION):
            found = _convert(value, desired)
            fits = _is_finite(found) if isinstance(value, str) else desired is _P.STRING or _same(value, found, current)
    except (ArithmeticError, ValueError) as error:  # infinities and NaN have no digits
        raise _misfit(value) from error
    if not fits:
        raise _misfit(value)
    return found


def _is_finite(found: Any) -> bool:
    return not isinstance(found, float) or math.isfinite(found)


def single_text(value: float) -> str:
    """Return the shortest text by which a single-precision number is known from all others.

    Raises:
        ValueError: it is none, or the largest, which fewer digits round up to none.
    """
    texts = (f"{value:.{digits}g}" for digits in range(1, _SINGLE_DIGITS + 1))
    return next((text for text in texts if _single(text) == value), repr(value))


_SINGLE_DIGITS: Final = 9
"""So many tell any two of them apart."""


def _misfit(value: Any) -> ValueError:
    return ValueError(f"{value!r} does not fit")


def _same(value: Any, found: Any, current: Type) -> bool:
    """Tell whether a value comes back from what it became."""
    match value, found:
        case datetime(), date() if not isinstance(found, datetime):
            return bool(_instant(found) == value)
        case date(), _ if not isinstance(value, datetime):
            return True  # a date is the midnight that it becomes
        case Number(), float():
            # By its shortest text, as it would become one again.
            return bool(Number(repr(found)).quantize(value, ROUND_HALF_UP) == value)
        case float(), Number():
            # Spark takes the shortest text of a double, of a single float Hive and Trino that of itself.
            own = Number(single_text(value) if current is _P.FLOAT else repr(value)).quantize(found, ROUND_HALF_UP)
            return abs(value) < MOST_EXACT and own == found and bool(_CONVERSIONS[current](found) == value)
        case _:
            return bool(value == found or value != value)  # noqa: PLR0124 - NaN stays NaN


def _convert(value: Any, desired: Type) -> Any:
    match desired:
        case Decimal(precision=precision, scale=scale):
            # Of a float the shortest text, as Spark takes it: with many digits of scale its exact value is another.
            text = repr(value) if isinstance(value, float) else value
            number = Number(text).quantize(Number(1).scaleb(-scale), ROUND_HALF_UP)
            if abs(number) >= Number(10) ** (precision - scale) or (
                not isinstance(value, float) and number != Number(value)
            ):
                raise _misfit(value)
            return number
        case Primitive():
            return _CONVERSIONS.get(desired, lambda same: same)(value)
        case _:  # pragma: no cover
            raise AssertionError(desired)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Number():
            return format(value, "f")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _boolean(value: Any) -> bool:
    known = {"true": True, "false": False, 0: False, 1: True}
    if value not in known:
        raise _misfit(value)
    return known[value]


def _instant(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


def _date(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    return value.date() if isinstance(value, datetime) else value


def _single(value: Any) -> float:
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError as error:
        raise _misfit(value) from error
    return nearest


def _whole(bits: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise _misfit(value)
        return number

    return convert


_CONVERSIONS: Final[dict[Type, Callable[[Any], Any]]] = {
    _P.STRING: _text,
    _P.BOOLEAN: _boolean,
    _P.TINYINT: _whole(8),
    _P.SMALLINT: _whole(16),
    _P.INT: _whole(32),
    _P.BIGINT: _whole(64),
    _P.FLOAT: _single,
    _P.DOUBLE: float,
    _P.DATE: _date,
    _P.TIMESTAMP: _instant,
}
