"""Values beyond the type that a column shows, and those that are not there: what shows instead, what is told of them.

A time before or after what DATE and TIMESTAMP can show becomes the nearer end: an open end (``infinity``) goes on
comparing as one. Any other value that its type cannot hold becomes NULL: no number is ever near enough. Both are
counted and told; a file whose values became NULL is kept. A key must be held exactly, or its file is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import groupby
from typing import Final

from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.encoding import Leaf, Meaning
from schemasync.core.types import MAX_PRECISION, Decimal, Primitive

FIRST_DAY: Final = -719_162
"""0001-01-01, days since 1970."""
LAST_DAY: Final = 2_932_896
"""9999-12-31."""
_DAY_US: Final = 86_400_000_000
FIRST_US: Final = FIRST_DAY * _DAY_US
LAST_US: Final = (LAST_DAY + 1) * _DAY_US - 1

MAX_SCALE: Final = 16_383
"""Most digits on either side of the point that a number is written out with: PostgreSQL's largest scale."""


def nearest(count: int, lowest: int, highest: int) -> int:
    """Return a count of days or microseconds, or the nearer end of what can be shown."""
    return max(lowest, min(count, highest))


def zoned_micros(text: str) -> int:
    """Return an ISO 8601 timestamp with offset as us since the epoch.

    Infinities and years outside of 1 to 9999 lie just beyond `FIRST_US` or `LAST_US`; an offset near the ends may
    lead beyond them, too.

    Raises:
        ValueError: it is no such text.
    """
    if text in {"infinity", "+infinity", "Infinity"}:
        return LAST_US + 1
    if text.startswith(("-", "0000-")):
        return FIRST_US - 1
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if text.startswith("+"):
            return LAST_US + 1
        raise ValueError(f"{text!r} is not ISO 8601") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


class Shown(Enum):
    """What shows instead of a value beyond its type; the value is the diagnostic that says so."""

    NEAREST = "SS308"
    NULL = "SS309"
    PLACEHOLDER = "SS320"
    """A create lacks the value. An update of a primary key is written as a delete and a create, so PostgreSQL leaves
    large values out of that, too, and the new key has no history to look into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """Events of one landed file whose value of one column was beyond its type; ``sample`` is the first, as written."""

    path: str
    column: str
    shown: Shown
    count: int
    sample: str


def findings(found: Iterable[Beyond]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per column and outcome: how many values, and the first of them with its file."""
    ordered = sorted(found, key=_group)
    for (column, code), group in groupby(ordered, key=_group):
        several = list(group)
        yield diagnose(code, f"{column}: {_told(several)}")


def _told(several: Sequence[Beyond]) -> str:
    count, first = sum(one.count for one in several), several[0]
    if first.shown is Shown.PLACEHOLDER:
        creates = "1 create lacks its value" if count == 1 else f"{count} creates lack their value"
        return f"{creates}, as an update of the primary key does, first in {first.path}"
    values = "1 value is" if count == 1 else f"{count} values are"
    return f"{values} beyond its type, first {first.sample} in {first.path}"


def _group(one: Beyond) -> tuple[str, str]:
    return one.column, one.shown.value


def lost(found: Iterable[Beyond], path: str) -> int:
    """Return how many values of a file the table does not hold at all."""
    return sum(one.count for one in found if one.path == path and one.shown is Shown.NULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One line of the published table: a written value (in Avro's terms) of a leaf, and what shows.

    ``written`` of a VariableScaleDecimal is (scale, unscaled). ``text`` is what shows, as SQL prints it.
    """

    about: str
    leaf: Leaf
    written: int | float | str | bytes | tuple[int, bytes]
    text: str
    shown: Shown | None


def _number(digits: int) -> bytes:
    unscaled: int = 10**digits
    return unscaled.to_bytes(33, "big", signed=True)


_DATE: Final = Leaf(type=Primitive.DATE, meaning=Meaning.DAYS)
_MILLIS: Final = Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MILLIS)
_MICROS: Final = Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MICROS)
_ZONED: Final = Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP)
_VARIABLE: Final = Leaf(type=Primitive.STRING, meaning=Meaning.VARIABLE_DECIMAL)
_TIME: Final = Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MICROS)
_MONEY: Final = Leaf(type=Decimal(precision=8, scale=2))
_CLAMPED: Final = Leaf(type=Decimal(precision=MAX_PRECISION, scale=2))
_NEAREST, _NULL = Shown.NEAREST, Shown.NULL
_END, _END_MS, _START = "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999", "0001-01-01 00:00:00"

EXAMPLES: Final = (
    Example(about="`infinity` of a date", leaf=_DATE, written=2_146_033_979, text="9999-12-31", shown=_NEAREST),
    Example(about="a date BC", leaf=_DATE, written=-735_160, text="0001-01-01", shown=_NEAREST),
    Example(about="`infinity` in microseconds", leaf=_MICROS, written=2**63 - 1, text=_END, shown=_NEAREST),
    Example(about="`-infinity` in microseconds", leaf=_MICROS, written=-(2**63), text=_START, shown=_NEAREST),
    Example(about="`infinity` in milliseconds", leaf=_MILLIS, written=2**63 - 1, text=_END_MS, shown=_NEAREST),
    Example(about="a timestamp BC", leaf=_MILLIS, written=-63_517_824_000_000, text=_START, shown=_NEAREST),
    Example(about="`infinity` of a timestamptz", leaf=_ZONED, written="infinity", text=_END, shown=_NEAREST),
    Example(about="`-infinity` of a timestamptz", leaf=_ZONED, written="-infinity", text=_START, shown=_NEAREST),
    Example(about="a timestamptz BC", leaf=_ZONED, written="-0044-03-15T00:00:00Z", text=_START, shown=_NEAREST),
    Example(about="a number of more digits than declared", leaf=_MONEY, written=_number(8), text="NULL", shown=_NULL),
    Example(
        about="`decimal(64,2)`, up to 38 digits", leaf=_CLAMPED, written=_number(37), text="1" + "0" * 35 + ".00",
        shown=None,
    ),
    Example(about="`decimal(64,2)`, more than 38 digits", leaf=_CLAMPED, written=_number(38), text="NULL", shown=_NULL),
    Example(
        about="an int wider than its `connect.type`", leaf=Leaf(type=Primitive.TINYINT), written=300, text="NULL",
        shown=_NULL,
    ),
    Example(
        about="unbounded numeric (VariableScaleDecimal)", leaf=_VARIABLE, written=(2, _number(40)),
        text="1" + "0" * 38 + ".00", shown=None,
    ),
    Example(
        about=f"unbounded numeric with over {MAX_SCALE} digits after the point", leaf=_VARIABLE,
        written=(MAX_SCALE + 1, b"\x01"), text="NULL", shown=_NULL,
    ),
    Example(about="NaN", leaf=Leaf(type=Primitive.DOUBLE), written=float("nan"), text="NaN", shown=None),
    Example(
        about="infinity of a float", leaf=Leaf(type=Primitive.DOUBLE), written=float("-inf"), text="-Infinity",
        shown=None,
    ),
    Example(about="a time of 24:00", leaf=_TIME, written=86_400_000_000, text="24:00:00.000000", shown=None),
    Example(about="a negative time (MySQL)", leaf=_TIME, written=-1, text="-00:00:00.000001", shown=None),
)  # fmt: skip
