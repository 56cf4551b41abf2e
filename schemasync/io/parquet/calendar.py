"""Dates and timestamps of files that count by the Julian calendar before 15 October 1582, as Spark's may.

Those of Spark 2 do, INT96 of Spark 3.0 too, and later ones where it is told so (``datetimeRebaseModeInWrite: LEGACY``);
their footers say it, since Spark 2.4. What has no such mark, as every file of ours, is read by the Gregorian calendar
all the way back. Called where landed files are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemasync.io.parquet.values import DIGITS, rebuilt

_VERSION: Final = b"org.apache.spark.version"
CALENDAR: Final = {_VERSION.decode(): "3.1.0"}
"""For the footers of files that Arrow writes: Spark 3 refuses dates before 1582 and timestamps before 1900 in files
that do not say that they count by the Gregorian calendar, as its own do since this version."""
_ZONE: Final = b"org.apache.spark.timeZone"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"

_DAY_S: Final = 86_400
_JULIAN_BEGAN: Final = -719_164
"""0001-01-01 of the Julian calendar, in days since 1970; two days before the Gregorian one's."""
_JULIAN_ENDED: Final = -141_427
"""1582-10-15."""
_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_CENTURIES: Final = tuple(year for year in range(100, 1582, 100) if year % 400)
"""Years that only the Julian calendar has a 29 February in."""
_SWITCHES: Final = tuple(_JULIAN_BEGAN + 365 * (year - 1) + (year - 1) // 4 + 60 for year in _CENTURIES)
"""The 1 March of each, by the Julian calendar: from there on its dates are one day less before the Gregorian ones."""
_ZONES_BEGAN_S: Final = -2_208_988_800
"""1900: what writes by the Julian calendar knows one offset of a zone before that, which was another one then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Which values of a file count so: dates and ``annotated`` moments, and its ``int96`` leaves, told in their order.

    Moments count by the clocks of ``zone``.
    """

    annotated: bool
    int96: tuple[bool, ...]
    zone: str


def calendar_of(metadata: pq.FileMetaData) -> Calendar | None:
    """Return by which calendar a file counts; None: by the Gregorian one."""
    words = metadata.metadata or {}
    if _VERSION not in words:
        return None
    annotated = words[_VERSION] < b"3.0.0" or _LEGACY in words
    legacy = words[_VERSION] < b"3.1.0" or _LEGACY_INT96 in words
    leaves = (metadata.schema.column(n) for n in range(len(metadata.schema)))
    int96 = tuple(legacy and leaf.physical_type == "INT96" for leaf in leaves)
    zone = _as_arrow_calls_it(words.get(_ZONE, b"UTC").decode())
    return Calendar(annotated=annotated, int96=int96, zone=zone) if annotated or any(int96) else None


def _as_arrow_calls_it(zone: str) -> str:
    """Return a zone's name, or that of an offset; UTC for one that only Java knows."""
    if fixed := _FIXED.fullmatch(zone):
        sign, hours, minutes = fixed.groups()
        return f"{sign}{int(hours):02}:{minutes or '00'}"
    try:
        pc.assume_timezone(pa.scalar(datetime(2022, 1, 1), pa.timestamp("s")), zone)
    except pa.ArrowInvalid:
        return "UTC"
    return zone


def gregorian(batch: pa.RecordBatch, calendar: Calendar) -> pa.RecordBatch:
    """Return rows whose dates and timestamps, inside of structs, lists and maps too, read as they were meant."""
    int96 = iter(calendar.int96)

    def leaf(values: pa.Array) -> pa.Array:
        is_int96 = next(int96)
        if pa.types.is_date32(values.type) and calendar.annotated:
            days = values.cast(pa.int32())
            return pc.add(days, _behind(days)).cast(values.type)
        # Without a zone, and no INT96: a clock's reading, which Spark writes as it is.
        is_moment = pa.types.is_timestamp(values.type) and values.type.tz is not None
        return _moments(values, calendar.zone) if is_int96 or (is_moment and calendar.annotated) else values

    columns = [rebuilt(column, leaf) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _behind(days: pa.Array) -> pa.Array:
    """Return how many days later than by the Julian calendar a date of the same name is by the Gregorian one."""
    passed = (pc.greater_equal(days, pa.scalar(day, days.type)).cast(days.type) for day in _SWITCHES)
    behind = reduce(pc.subtract, passed, pa.scalar(2, days.type))
    return pc.if_else(pc.less(days, pa.scalar(_JULIAN_ENDED, days.type)), behind, pa.scalar(0, days.type))


def _moments(values: pa.Array, zone: str) -> pa.Array:
    unit = 10 ** DIGITS[values.type.unit]
    counts = values.cast(pa.int64())
    # An open end, long before all calendars, stays one.
    known = pc.greater_equal(counts, (_JULIAN_BEGAN - 1) * _DAY_S * unit)
    old = pc.and_(pc.less(counts, _ZONES_BEGAN_S * unit), known)
    if not old.true_count:
        return values
    clocks = pc.add(counts, _offset_s(zone) * unit)
    day = _DAY_S * unit
    # Of negative counts only: as the day before, where it is none whole.
    days = pc.divide(pc.subtract(clocks, day - 1), day)
    clocks = pc.add(clocks, pc.multiply(_behind(days), day))
    then = pc.if_else(old, clocks, None).cast(pa.timestamp(values.type.unit))
    found = pc.assume_timezone(then, zone, ambiguous="earliest", nonexistent="earliest").cast(pa.int64())
    return pc.if_else(old, found, counts).cast(values.type)


def _offset_s(zone: str) -> int:
    """Return a zone's offset by standard time, in seconds."""
    clocks = pa.array([datetime(2022, month, 1) for month in range(1, 13)], pa.timestamp("s"))
    found = pc.subtract(clocks.cast(pa.int64()), pc.assume_timezone(clocks, zone).cast(pa.int64()))
    return int(pc.min(found).as_py())
