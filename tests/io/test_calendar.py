"""Files that count by the Julian calendar before October 1582 show the dates that were meant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning
from schemasync.core.types import Primitive
from schemasync.io.parquet.calendar import calendar_of
from tests.io.landing import admitted, request
from tests.io.test_landed_files import ID, open_arrow, own
from tests.io.written_values import FIRST, LAST, MICROS, TEXT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = Leaf(type=Primitive.DATE, meaning=Meaning.DAYS)
DATES = [
    *(date(1, 1, 1), date(100, 2, 28), date(100, 3, 1), date(1000, 2, 28), date(1000, 3, 1), date(1500, 1, 1)),
    *(date(1582, 10, 4), date(1582, 10, 15), date(1700, 1, 1), date(2026, 11, 20)),
]
SPARK = "org.apache.spark."
NOW = {f"{SPARK}version": "4.1.4"}
LEGACY = NOW | {f"{SPARK}legacyDateTime": ""}
LEGACY_INT96 = NOW | {f"{SPARK}legacyINT96": "", f"{SPARK}timeZone": "America/Los_Angeles"}


def by_julian(day: date) -> int:
    """Return the days since 1970 of what a date is called, by the Julian calendar before 1582-10-15."""
    if day >= date(1582, 10, 15):
        return day.toordinal() - date(1970, 1, 1).toordinal()
    years = day.year + 4800 - (14 - day.month) // 12
    months = (day.month + 9) % 12
    # The Julian day number, and that of 1970.
    return day.day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083 - 2_440_588


def shown(root: Path, encoding: Encoding, values: pa.Array, marks: dict[str, str], **options: Any) -> list[Any]:
    table = pa.table(own(len(values)) | {"v": values}).replace_schema_metadata(marks)
    pq.write_table(table, root / "x.parquet", **options)
    rows = admitted(open_arrow(root), root, request(root, ["x.parquet"], ID | {"v": encoding}, directory="delta/1"))
    return [row["v"] for row in rows]


@pytest.mark.parametrize(
    "marks", [LEGACY, {f"{SPARK}version": "2.4.8"}], ids=["told so", "of a Spark that knew no other"]
)
def test_a_date_shows_as_it_was_called(tmp_path: Path, marks: dict[str, str]) -> None:
    values = pa.array([*map(by_julian, DATES), None], pa.int32()).cast(pa.date32())
    assert shown(tmp_path, DAYS, values, marks) == [*DATES, None]


@pytest.mark.parametrize("marks", [{}, NOW, LEGACY_INT96], ids=["nobody says", "Spark", "of INT96 alone"])
def test_other_files_count_by_the_gregorian_calendar(tmp_path: Path, marks: dict[str, str]) -> None:
    assert shown(tmp_path, DAYS, pa.array(DATES), marks) == DATES


def test_numbers_of_days_are_debeziums_whoever_writes_them(tmp_path: Path) -> None:
    days = pa.array([day.toordinal() - date(1970, 1, 1).toordinal() for day in DATES], pa.int32())
    assert shown(tmp_path, DAYS, days, LEGACY) == DATES


def test_dates_inside_of_lists_and_maps_are_read_alike(tmp_path: Path) -> None:
    day = by_julian(date(1500, 1, 1))
    lists = pa.array([[day, None], None, []], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))
    maps = pa.array([[("a", day)], None, []], pa.map_(pa.string(), pa.int32())).cast(pa.map_(pa.string(), pa.date32()))
    assert shown(tmp_path, ListOf(element=DAYS), lists, LEGACY) == [[date(1500, 1, 1), None], None, []]
    assert shown(tmp_path, MapOf(key=TEXT, value=DAYS), maps, LEGACY) == [[("a", date(1500, 1, 1))], None, []]


@pytest.mark.parametrize("int96", [False, True])
def test_a_moment_shows_what_the_clocks_of_its_zone_showed(tmp_path: Path, int96: bool) -> None:
    """Before it had a time of its own, Los Angeles was 7:52:58 behind Greenwich; its files count 8 hours all along."""
    marks = LEGACY_INT96 if int96 else LEGACY | {f"{SPARK}timeZone": "America/Los_Angeles"}
    clocks = [datetime(1500, 1, 1, 12, tzinfo=UTC), datetime(1700, 1, 1, 12, tzinfo=UTC)]
    written = [(by_julian(c.date()) * 24 + 12 + 8) * 3_600_000_000 for c in clocks]
    values = pa.array([*written, None, 0], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    found = shown(tmp_path, MICROS, values, marks, use_deprecated_int96_timestamps=int96)
    behind = timedelta(hours=7, minutes=52, seconds=58)
    assert found == [*(c + behind for c in clocks), None, datetime(1970, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("marks", [LEGACY, LEGACY | LEGACY_INT96], ids=["annotated", "beside INT96"])
def test_a_reading_without_a_zone_is_left_as_it_is(tmp_path: Path, marks: dict[str, str]) -> None:
    """Spark writes its TIMESTAMP_NTZ by the Gregorian calendar, whatever it is told."""
    read = datetime(1500, 1, 1, 12)
    assert shown(tmp_path, MICROS, pa.array([read], pa.timestamp("us")), marks) == [read.replace(tzinfo=UTC)]


@pytest.mark.parametrize(("version", "behind"), [("2.4.8", 9), ("3.0.3", 9), ("3.1.1", 0)])
def test_int96_of_a_spark_before_3_1_counts_so_without_a_mark(tmp_path: Path, version: str, behind: int) -> None:
    at = datetime(1500, 1, 1, tzinfo=UTC)
    values = pa.array([at + timedelta(days=behind)], pa.timestamp("us", tz="UTC"))
    marks = {f"{SPARK}version": version}
    assert shown(tmp_path, MICROS, values, marks, use_deprecated_int96_timestamps=True) == [at]


@pytest.mark.parametrize(
    ("zone", "hours"), [("Z", 0), ("+05", 5), ("GMT+3", 3), ("UTC-03:00", -3), ("PST", 0), ("Mars/Olympus", 0)]
)
def test_a_zone_may_be_one_that_only_java_knows(tmp_path: Path, zone: str, hours: int) -> None:
    clock = datetime(1700, 1, 1, 12, tzinfo=UTC)
    written = (by_julian(clock.date()) - clock.date().toordinal() + date(1970, 1, 1).toordinal()) * timedelta(days=1)
    values = pa.array([clock + written], pa.timestamp("us", tz="UTC"))
    assert shown(tmp_path, MICROS, values, LEGACY | {f"{SPARK}timeZone": zone}) == [clock]
    assert calendar_of(pq.read_metadata(tmp_path / "x.parquet")).zone in {"UTC", f"{hours:+03}:00"}  # type: ignore[union-attr]


def test_an_open_end_stays_one(tmp_path: Path) -> None:
    values = pa.array([-(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    assert shown(tmp_path, MICROS, values, LEGACY | {f"{SPARK}timeZone": "Asia/Kolkata"}) == [FIRST, LAST]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30"])
def test_what_spark_writes_by_the_julian_calendar_shows_as_it_was(
    tmp_path: Path, spark: SparkSession, zone: str, kind: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.parquet.outputTimestampType", kind)
    for of in ("datetime", "int96"):
        session.conf.set(f"spark.sql.parquet.{of}RebaseModeInWrite", "LEGACY")
    days = DATES[1:]  # the first begins before the year 1 in Greenwich
    values = ", ".join(
        f"({n}L, 'u', 1L, timestamp'{day} 01:02:03', timestamp_ntz'{day} 12:00:00')" for n, day in enumerate(days)
    )
    rows = session.sql(
        f"SELECT id, op, ts_ms, at, read, CAST(at AS DATE) AS day FROM VALUES {values} AS t(id, op, ts_ms, at, read)"
    )
    rows.coalesce(1).write.parquet(f"{tmp_path}/by_spark")
    # In Asia it writes the first hours of the Gregorian calendar as those of its second day.
    again = session.read.parquet(f"{tmp_path}/by_spark").selectExpr("unix_micros(at) AS micros").collect()
    (file,) = (tmp_path / "by_spark").glob("*.parquet")
    file.rename(tmp_path / "x.parquet")
    wanted = request(tmp_path, ["x.parquet"], ID | {"day": DAYS, "at": MICROS, "read": MICROS}, directory="delta/1")
    found = admitted(open_arrow(tmp_path), tmp_path, wanted)
    assert [row["day"] for row in found] == days
    assert [row["read"] for row in found] == [datetime(d.year, d.month, d.day, 12, tzinfo=UTC) for d in days]
    moments = [(row["at"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) for row in found]
    assert moments == [row.micros for row in again]
