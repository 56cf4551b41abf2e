"""Dates and timestamps of files that count by the Julian calendar before 15 October 1582, as Spark's may.

Those of Spark 2 do, and later ones where it is told so (``datetimeRebaseModeInWrite: LEGACY``); their footers say it.
Everybody else, and every file of ours, counts by the Gregorian calendar all the way back. Called where landed files
are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemasync.io.parquet.values import rebuilt

_VERSION: Final = b"org.apache.spark.version"
_ZONE: Final = b"org.apache.spark.timeZone"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"

_DAY_S: Final = 86_400
_JULIAN_BEGAN: Final = -719_164
"""0001-01-01 of the Julian calendar, in days since 1970; two days before the Gregorian one's."""
_JULIAN_ENDED: Final = -141_427
"""1582-10-15."""
_CENTURIES: Final = tuple(year for year in range(100, 1582, 100) if year % 400)
"""Years that only the Julian calendar has a 29 February in."""
_SWITCHES: Final = tuple(_JULIAN_BEGAN + 365 * (year - 1) + (year - 1) // 4 + 60 for year in _CENTURIES)
"""The 1 March of each, by the Julian calendar: from there on its dates are one day less before the Gregorian ones."""
_ZONES_BEGAN_S: Final = -2_208_988_800
"""1900: what writes by the Julian calendar knows one offset of a zone before that, which was another one then."""
_UNITS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Which values of a file count so: ``dates``, ``moments``; the latter by the clocks of ``zone``."""

    dates: bool
    moments: bool
    zone: str


def calendar_of(metadata: pq.FileMetaData) -> Calendar | None:
    """Return by which calendar a file counts; None: by the Gregorian one."""
    words = metadata.metadata or {}
    if _VERSION not in words:
        return None
    ancient = words[_VERSION].startswith((b"1.", b"2."))
    dates, int96 = ancient or _LEGACY in words, ancient or _LEGACY_INT96 in words
    leaves = (metadata.schema.column(n) for n in range(len(metadata.schema)))
    moments = int96 if any(leaf.physical_type == "INT96" for leaf in leaves) else dates
    zone = words.get(_ZONE, b"UTC").decode()
    return Calendar(dates=dates, moments=moments, zone=zone) if dates or moments else None


def gregorian(batch: pa.RecordBatch, calendar: Calendar) -> pa.RecordBatch:
    """Return rows whose dates and timestamps, inside of structs, lists and maps too, read as they were meant."""

    def leaf(values: pa.Array) -> pa.Array:
        if pa.types.is_date32(values.type) and calendar.dates:
            days = values.cast(pa.int32())
            return pc.add(days, _behind(days)).cast(values.type)
        if pa.types.is_timestamp(values.type) and calendar.moments:
            return _moments(values, calendar.zone)
        return values

    columns = [rebuilt(column, leaf) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _behind(days: pa.Array) -> pa.Array:
    """Return how many days later than by the Julian calendar a date of the same name is by the Gregorian one."""
    passed = (pc.greater_equal(days, pa.scalar(day, days.type)).cast(days.type) for day in _SWITCHES)
    behind = reduce(pc.subtract, passed, pa.scalar(2, days.type))
    return pc.if_else(pc.less(days, pa.scalar(_JULIAN_ENDED, days.type)), behind, pa.scalar(0, days.type))


def _moments(values: pa.Array, zone: str) -> pa.Array:
    unit = _UNITS[values.type.unit]
    counts = values.cast(pa.int64())
    old = pc.less(counts, _ZONES_BEGAN_S * unit)
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
    clocks = pa.array([datetime(2020, 1, 1), datetime(2020, 7, 1)], pa.timestamp("s"))
    found = pc.subtract(clocks.cast(pa.int64()), pc.assume_timezone(clocks, zone).cast(pa.int64()))
    return int(pc.min(found).as_py())
