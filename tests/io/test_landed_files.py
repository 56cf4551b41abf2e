"""Both ways of admission show what was written: the same rows, and the ones that Python expects."""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import ROUND_HALF_UP
from decimal import Decimal as Number
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import fs, orc

from schemasync.core.admission import STAGING, AdmissionRequest, Admitted, Footer, LandedFile, Unreadable
from schemasync.core.beyond import EXAMPLES, Beyond, Example, Shown
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.manifest import DataFile
from schemasync.core.partitioning import NULL_VALUE, Call, PartitionColumn
from schemasync.core.ports import FileInfo, LandedFiles
from schemasync.core.schema import OrderingField
from schemasync.core.types import Decimal, Primitive, Struct, StructField
from schemasync.core.written import avro_type
from schemasync.errors import DataError, EngineError, StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.rows import null_in_deletes
from schemasync.io.parquet.values import Losses, arrow_type, decode
from tests.io.failing import Failing
from tests.io.landing import Rows, admitted, land, ordered_by, request
from tests.io.written_values import CASES, MOMENTS, ZONED, Written, at
from tests.naming import hashed_words_of, words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = Leaf(type=Primitive.STRING)
DATE = Leaf(type=Primitive.DATE, meaning=Meaning.DAYS)


def open_arrow(root: Path) -> LandedFiles:
    return ArrowFiles(fs.LocalFileSystem(), str(root))


class WithLittle(ArrowFiles):
    """Arrow with little memory: what does not fit is put aside, and merged again."""

    def __init__(self, filesystem: fs.FileSystem, base: str, memory: int) -> None:
        super().__init__(filesystem, base)
        self._memory = memory

    def admit(self, request: AdmissionRequest) -> Admitted:
        return super().admit(replace(request, memory=self._memory))


def open_runs(root: Path) -> LandedFiles:
    """Every event is a run."""
    return WithLittle(fs.LocalFileSystem(), str(root), 1)


def open_parts(root: Path) -> LandedFiles:
    """Some events at a time are sorted, by parts, and some of these are a run, on what is no local disk."""
    return WithLittle(fs.SubTreeFileSystem("/", fs.LocalFileSystem()), str(root), 2_000)


ARROW = {"arrow": open_arrow, "arrow in runs": open_runs, "arrow in parts": open_parts}
arrow_ways = st.sampled_from([*ARROW.values()])


@pytest.fixture(params=[*ARROW, pytest.param("spark", marks=pytest.mark.spark)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> LandedFiles:
    """One of the two ways, on the test's directory; the first with much memory and with little."""
    if request.param in ARROW:
        return ARROW[request.param](tmp_path)
    return open_spark(request.getfixturevalue("spark"), tmp_path)


def open_spark(session: SparkSession, root: Path) -> LandedFiles:
    from schemasync.io.parquet.spark import SparkFiles

    lake = ArrowLake(f"file://{root}")
    return SparkFiles(session, ArrowFiles(lake.filesystem, lake.path("")), lake)


def own(count: int, **columns: list[Any]) -> dict[str, pa.Array]:
    """Return the envelope's columns of ``count`` events: keys count up, all upserts at one time."""
    found = {"id": list(range(count)), "op": ["u"] * count, "ts_ms": [1] * count} | columns
    return {name: pa.array(values, pa.string() if name == "op" else pa.int64()) for name, values in found.items()}


ID: dict[str, Encoding] = {"id": Leaf(type=Primitive.BIGINT)}


def shown(files: LandedFiles, root: Path, case: Written, **options: Any) -> list[Any]:
    land(root, "x.parquet", own(len(case.values)) | {"v": case.values}, **options)
    rows = admitted(files, root, request(root, ["x.parquet"], ID | {"v": case.encoding}, directory="delta/1"))
    return [row["v"] for row in rows]


def plain(value: Any) -> str:
    """Write a value with its type; NaN equals itself then, and a time zone is its offset."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {plain(v)}' for k, v in value.items())}}}"
    return value.isoformat() if isinstance(value, datetime) else repr(value)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_written_value_shows_as_what_it_means(tmp_path: Path, case: Written) -> None:
    assert plain(shown(open_arrow(tmp_path), tmp_path, case)) == plain(case.shown)


LAYOUTS: dict[str, dict[str, Any]] = {
    "small row groups": {"row_group_size": 2},
    "old list names": {"use_compliant_nested_type": False},
    "no Arrow schema": {"store_schema": False},
    "data pages of version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "no dictionaries": {"use_dictionary": False},
}


@pytest.mark.parametrize("options", LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_of_a_file_changes_no_value(tmp_path: Path, options: dict[str, Any]) -> None:
    """All cases in one file; those whose type only the Arrow schema tells are left out where there is none."""
    lost = (
        {"large string", "large list", "time micros as a while of nanoseconds"}
        if not options.get("store_schema", True)
        else set()
    )
    for case in CASES:
        if case.name not in lost:
            directory = tmp_path / case.name.replace(" ", "_")
            directory.mkdir()
            assert plain(shown(open_arrow(directory), directory, case, **options)) == plain(case.shown), case.name


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_timestamps_as_int96_are_read_over_their_whole_range(tmp_path: Path, unit: str) -> None:
    """Spark writes them by default; Arrow reads them as nanoseconds, which end in 2262, unless it is told otherwise."""
    case = next(c for c in CASES if c.name == "millis as timestamps")
    far = pa.array([253_402_300_799_000, -62_135_596_800_000]).cast(pa.timestamp("ms", tz="UTC"))
    values = pa.concat_arrays([case.values, far]).cast(pa.timestamp(unit, tz="UTC"))
    written = Written(name="int96", encoding=case.encoding, values=values, shown=[])
    found = shown(open_arrow(tmp_path), tmp_path, written, use_deprecated_int96_timestamps=True)
    assert plain(found) == plain([*MOMENTS, at(9999, 12, 31, 23, 59, 59), at(1, 1, 1)])


def written_as(example: Example) -> pa.Array:
    """Return a null, then the example's value, as parquet-avro writes it."""
    if isinstance(example.written, tuple):
        pair = {"scale": example.written[0], "value": example.written[1]}
        return pa.array([None, pair], pa.struct([("scale", pa.int32()), ("value", pa.binary())]))
    return pa.array([None, example.written], arrow_type(avro_type(example.leaf)))


def sql_text(value: Any) -> str:
    """Return a value as SQL prints it."""
    match value:
        case None:
            return "NULL"
        case datetime():
            whole, _, fraction = value.strftime("%Y-%m-%d %H:%M:%S.%f").partition(".")
            return (
                f"{whole.rjust(19, '0')}.{fraction}".rstrip("0").rstrip(".") if int(fraction) else whole.rjust(19, "0")
            )
        case float():
            return {"nan": "NaN", "-inf": "-Infinity"}[str(value)]
        case _:
            return str(value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.about)
def test_a_value_beyond_its_type_shows_as_the_published_table_says_and_is_counted(
    tmp_path: Path, example: Example
) -> None:
    values = written_as(example)
    land(tmp_path, "x.parquet", own(2) | {"v": values})
    wanted = request(tmp_path, ["x.parquet"], ID | {"v": example.leaf}, directory="delta/1")
    done = open_arrow(tmp_path).admit(wanted)
    found = pq.read_table(tmp_path / done.files[0].path)["v"].to_pylist()
    told = [(b.path, b.column, b.shown, b.count) for b in done.beyond]
    assert (sql_text(found[0]), sql_text(found[1])) == ("NULL", example.text)
    assert told == ([("x.parquet", "v", example.shown, 1)] if example.shown else [])


_MONEY = Decimal(precision=5, scale=2)
_TOO_MUCH = [Number("999.99"), None, Number("-1000.00"), Number("1.50")]
_IN_NINE = pa.array(_TOO_MUCH, pa.decimal128(9, 2))
PHYSICAL: dict[str, tuple[Leaf, pa.Array, dict[str, Any], list[str]]] = {
    "the ends of millis": (
        Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MILLIS),
        pa.array([2**63 - 1, -(2**63), None, 0]).cast(pa.timestamp("ms", tz="UTC")),
        {},
        ["9999-12-31 23:59:59.999", "0001-01-01 00:00:00", "NULL", "1970-01-01 00:00:00"],
    ),
    "the ends of micros": (
        Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MICROS),
        pa.array([2**63 - 1, -(2**63), None, 0]).cast(pa.timestamp("us", tz="UTC")),
        {},
        ["9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "NULL", "1970-01-01 00:00:00"],
    ),
    "a decimal of 64 digits": (
        Leaf(type=_MONEY), pa.array(_TOO_MUCH, pa.decimal256(64, 2)), {}, ["999.99", "NULL", "NULL", "1.50"],
    ),
    "a decimal of as many digits as there are": (
        Leaf(type=Decimal(precision=38, scale=10)),
        pa.array([None, Number("-" + "9" * 28 + ".9999999999")], pa.decimal128(38, 10)),
        {},
        ["NULL", "-" + "9" * 28 + ".9999999999"],
    ),
    "a decimal whose file holds more digits than it says": (
        Leaf(type=_MONEY),
        _IN_NINE.view(pa.decimal128(5, 2)),
        {"store_decimal_as_integer": True},
        ["999.99", "NULL", "NULL", "1.50"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("leaf", "values", "options", "texts"), PHYSICAL.values(), ids=PHYSICAL)
def test_values_beyond_their_type_are_found_in_every_physical_form(
    tmp_path: Path, leaf: Leaf, values: pa.Array, options: dict[str, Any], texts: list[str]
) -> None:
    case = Written(name="v", encoding=leaf, values=values, shown=[])
    assert [sql_text(v) for v in shown(open_arrow(tmp_path), tmp_path, case, **options)] == texts


def test_values_beyond_their_type_are_counted_over_all_batches_with_the_first_of_them(
    tmp_path: Path, opened: LandedFiles
) -> None:
    until = Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP)
    for name, texts in (("a.parquet", ["infinity", None, "infinity"]), ("b.parquet", ["-infinity"])):
        land(tmp_path, name, own(len(texts)) | {"v": pa.array(texts)}, row_group_size=1)
    done = opened.admit(request(tmp_path, ["a.parquet", "b.parquet"], ID | {"v": until}, directory="delta/1"))
    assert set(done.beyond) == {
        Beyond(path="a.parquet", column="v", shown=Shown.NEAREST, count=2, sample="infinity"),
        Beyond(path="b.parquet", column="v", shown=Shown.NEAREST, count=1, sample="-infinity"),
    }


def test_what_arrow_writes_says_by_which_calendar_it_counts(tmp_path: Path, opened: LandedFiles) -> None:
    """Without it Spark 3.5 fails on the first years, -infinity among them: whoever wrote, Arrow or Spark."""
    land(tmp_path, "x.parquet", own(1))
    (written,) = opened.admit(request(tmp_path, ["x.parquet"], ID, directory="delta/1")).files
    version = (pq.read_metadata(tmp_path / written.path).metadata or {})[b"org.apache.spark.version"]
    assert version >= b"3.1.0"


def test_a_position_beyond_the_type_that_it_had_first_is_refused(tmp_path: Path, opened: LandedFiles) -> None:
    """As NULL, the oldest of all, the newest event would lose."""
    land(tmp_path, "x.parquet", own(2, id=[1, 1], lsn=[2**31 - 1, 2**31]))
    field = OrderingField(path=("lsn",), type=Primitive.INT)
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    wanted = ordered_by(wanted, field)
    told = r"lsn, which tells newer events from older ones.*: 2147483648 is beyond the type that it had first, int"
    with pytest.raises(DataError, match=told):
        opened.admit(wanted)


@pytest.mark.parametrize("path", [("at", "LSN"), ("AT", "lsn")])
def test_a_position_is_found_in_any_case(tmp_path: Path, path: tuple[str, ...]) -> None:
    """A table goes on with the path that it began with; each file has the names of its own version."""
    land(tmp_path, "x.parquet", own(2, id=[1, 1]) | {"At": pa.array([{"Lsn": 2}, {"Lsn": 1}])})
    field = OrderingField(path=path, type=Primitive.BIGINT)
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    wanted = ordered_by(wanted, field)
    (row,) = admitted(open_arrow(tmp_path), tmp_path, wanted)
    assert row["__seq1"] == 2


_MS = 1_790_000_000_123
_UNITS = (("ms", "UTC"), ("us", "UTC"), ("ns", "UTC"), ("us", None))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        *((pa.array([_MS, None]).cast(pa.timestamp("ms")).cast(pa.timestamp(*unit)), _MS) for unit in _UNITS),
        (pa.array([date(2027, 1, 15), None]), 1_799_971_200_000),
        (pa.array([str(_MS), "2027-01-15"]), _MS),
    ],
    ids=["ms", "us", "ns", "local", "a date", "texts"],
)
def test_the_time_of_an_event_is_in_milliseconds_however_it_is_written(
    tmp_path: Path, times: pa.Array, expected: int
) -> None:
    """What is no number is no reason to refuse its file."""
    land(tmp_path, "x.parquet", own(2) | {"at": times})
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    (file,) = wanted.files
    envelope = replace(file.projection.envelope, ts_ms=("at",))
    file = replace(file, projection=replace(file.projection, envelope=envelope))
    found = admitted(open_arrow(tmp_path), tmp_path, replace(wanted, files=(file,)))
    assert [row["__ts_ms"] for row in found] == [expected, None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_clock_tells_newer_events_in_whatever_unit_a_file_has_it(tmp_path: Path, unit: str) -> None:
    """Of two writers that land events of one key, one by one, the one of finer clocks would always be the newer."""
    older = own(1) | {
        "v": pa.array(["older"]),
        "ts_ms": pa.array([_MS]).cast(pa.timestamp("ms")).cast(pa.timestamp(unit)),
    }
    land(tmp_path, "y.parquet", older)
    land(tmp_path, "x.parquet", own(1) | {"v": pa.array(["newer"]), "ts_ms": pa.array([_MS + 1])})
    wanted = request(tmp_path, ["x.parquet", "y.parquet"], ID | {"v": TEXT}, directory="delta/1")
    (row,) = admitted(open_arrow(tmp_path), tmp_path, wanted)
    assert (row["v"], row["__seq1"]) == ("newer", _MS + 1)


def test_of_two_clocks_that_differ_in_case_the_very_one_tells_newer_events(tmp_path: Path) -> None:
    land(tmp_path, "x.parquet", own(1) | {"ts_ms": pa.array([_MS]), "TS_MS": pa.array([7])})
    (row,) = admitted(open_arrow(tmp_path), tmp_path, request(tmp_path, ["x.parquet"], ID, directory="delta/1"))
    assert row["__seq1"] == _MS


def test_an_infinite_moment_is_a_position_like_any_other(tmp_path: Path, opened: LandedFiles) -> None:
    """It counts as the last one that there is, as it does in a column."""
    day = Leaf(type=Primitive.DATE, meaning=Meaning.DAYS)
    land(tmp_path, "x.parquet", own(2, id=[1, 1]) | {"at": pa.array([2**31 - 1, 5], pa.int32())})
    field = OrderingField(path=("at",), type=Primitive.DATE, meaning=Meaning.DAYS)
    wanted = request(tmp_path, ["x.parquet"], ID | {"at": day}, directory="delta/1")
    wanted = ordered_by(wanted, field)
    (row,) = admitted(opened, tmp_path, wanted)
    assert row["at"] == date(9999, 12, 31)


def test_what_orders_events_is_read_as_each_file_has_it(tmp_path: Path, opened: LandedFiles) -> None:
    micros = OrderingField(path=("at",), type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MICROS)
    files: list[LandedFile] = []
    for field, moment, v in (
        (micros, _MS * 1000, "older"),
        (replace(micros, meaning=Meaning.EPOCH_MILLIS), _MS + 1, "newer"),
    ):
        name = land(tmp_path, f"{v}.parquet", own(1) | {"v": pa.array([v]), "at": pa.array([moment])})
        wanted = ordered_by(request(tmp_path, [name], ID | {"v": TEXT}, directory="delta/1"), field)
        files += wanted.files
    (row,) = admitted(opened, tmp_path, replace(wanted, files=tuple(reversed(files))))
    assert (row["v"], row["__seq1"].timestamp()) == ("newer", (_MS + 1) / 1000)


def test_a_key_beyond_its_type_is_refused_for_two_of_them_would_be_one_row(tmp_path: Path) -> None:
    day: dict[str, Encoding] = {"day": Leaf(type=Primitive.DATE, meaning=Meaning.DAYS)}
    land(tmp_path, "x.parquet", own(2) | {"day": pa.array([2**31 - 1, 2**31 - 2], pa.int32())})
    wanted = request(tmp_path, ["x.parquet"], day, directory="delta/1", keys=("day",))
    with pytest.raises(DataError, match="the key column day cannot hold the value of an event: 2147483647 is beyond"):
        open_arrow(tmp_path).admit(wanted)


CLOCK = Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MICROS)
FINER = {
    "texts": (ZONED, pa.array(["2026-11-20T00:00:00.123456Z", "2026-11-20T00:00:00.1234561+01:00"]), r"\S+4561\+01:00"),
    "timestamps": (ZONED, pa.array([1_000, 1_001], pa.timestamp("ns", tz="UTC")), "1001"),
    "times": (CLOCK, pa.array([1_000, 1_001], pa.time64("ns")), "1001"),
}
"""Values of which the second is none of whole microseconds, as those of SQL Server's ``datetimeoffset(7)``."""


@pytest.mark.parametrize(("leaf", "values", "told"), FINER.values(), ids=FINER)
def test_a_key_finer_than_its_type_is_refused_for_two_of_them_would_be_one_row(
    tmp_path: Path, opened: LandedFiles, leaf: Leaf, values: pa.Array, told: str
) -> None:
    land(tmp_path, "x.parquet", own(2) | {"at": values})
    wanted = request(tmp_path, ["x.parquet"], {"at": leaf}, directory="delta/1", keys=("at",))
    said = f"the key column at cannot hold the value of an event: {told} has more digits than its type"
    with pytest.raises(DataError, match=said):
        opened.admit(wanted)


@pytest.mark.parametrize(("leaf", "values", "_"), FINER.values(), ids=FINER)
def test_digits_that_a_column_does_not_show_are_not_told(tmp_path: Path, leaf: Leaf, values: pa.Array, _: str) -> None:
    land(tmp_path, "x.parquet", own(2) | {"at": values})
    done = open_arrow(tmp_path).admit(request(tmp_path, ["x.parquet"], ID | {"at": leaf}, directory="delta/1"))
    assert (done.rows, done.beyond) == (2, ())


def test_a_key_of_more_digits_that_are_zeros_is_held(tmp_path: Path) -> None:
    """What has a fixed width is written with them."""
    land(tmp_path, "x.parquet", own(2) | {"at": pa.array(["2026-11-20T00:00:00.1234560Z", "2026-11-20T00:00:00,000Z"])})
    wanted = request(tmp_path, ["x.parquet"], {"at": ZONED}, directory="delta/1", keys=("at",))
    assert [row["at"].microsecond for row in admitted(open_arrow(tmp_path), tmp_path, wanted)] == [0, 123456]


def test_a_key_that_is_no_text_is_refused_with_its_row(tmp_path: Path) -> None:
    """Whoever reads it sees another text: Python none at all."""
    word: dict[str, Encoding] = {"word": Leaf(type=Primitive.STRING), "note": Leaf(type=Primitive.STRING)}
    raw = pa.array([b"a", "é".encode(), b"", b"b\xff", b"\xff"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    land(tmp_path, "x.parquet", own(5) | {"word": texts, "note": texts})
    land(tmp_path, "y.parquet", own(3) | {"word": texts[:3], "note": texts[2:]})
    bad, good = (
        request(tmp_path, [n], word, directory=f"delta/{n}", keys=("word",)) for n in ("x.parquet", "y.parquet")
    )
    with pytest.raises(DataError, match=r"x\.parquet: the text of an event in the key column word .*: row 4"):
        open_arrow(tmp_path).admit(bad)
    assert open_arrow(tmp_path).admit(good).rows == 3


NO_TEXT = pa.array(["é".encode(), b"\xff2020", None, b"2020"], pa.binary()).view(pa.string())
"""The second is no text."""


@pytest.mark.parametrize(
    "calls",
    [(), (Call("left", (1,)),), (Call("left", (4,)), Call("to_date", ("yyyy",)))],
    ids=lambda calls: f"{len(calls)} calls",
)
def test_no_directory_is_called_by_what_is_no_text(
    tmp_path: Path, opened: LandedFiles, calls: tuple[Call, ...]
) -> None:
    note: dict[str, Encoding] = ID | {"note": Leaf(type=Primitive.STRING)}
    land(tmp_path, "x.parquet", own(4) | {"note": NO_TEXT})
    part = PartitionColumn(name="p", type=Primitive.STRING, source="note", calls=calls)
    wanted = replace(request(tmp_path, ["x.parquet"], note, directory="delta/1"), partition_by=(part,))
    with pytest.raises(DataError, match=r"x\.parquet: .* that cannot be stored: the text in note is not UTF-8, row 2"):
        opened.admit(wanted)
    assert list(tmp_path.rglob("p=*")) == []


def test_what_is_no_text_is_no_day_either(tmp_path: Path, opened: LandedFiles) -> None:
    note: dict[str, Encoding] = ID | {"note": Leaf(type=Primitive.STRING)}
    land(tmp_path, "x.parquet", own(4) | {"note": NO_TEXT})
    year = PartitionColumn(name="p", type=Primitive.DATE, source="note", calls=(Call("to_date", ("yyyy",)),))
    wanted = replace(request(tmp_path, ["x.parquet"], note, directory="delta/1"), partition_by=(year,))
    written = {file.path.split("/")[-2]: file.rows for file in opened.admit(wanted).files}
    assert written == {f"p={NULL_VALUE}": 3, "p=2020-01-01": 1}


def test_a_timestamp_without_an_offset_is_refused_not_guessed(tmp_path: Path) -> None:
    land(tmp_path, "x.parquet", own(1) | {"v": pa.array(["2026-11-20T01:02:03"])})
    with pytest.raises(DataError, match=r"x\.parquet: a value is no timestamp: '2026-11-20T01:02:03'"):
        open_arrow(tmp_path).admit(request(tmp_path, ["x.parquet"], ID | {"v": ZONED}, directory="delta/1"))


@pytest.mark.spark
def test_spark_shows_every_written_value_as_arrow_does(tmp_path: Path, spark: SparkSession) -> None:
    """All cases side by side in one file, padded with nulls, in several row groups."""
    length = max(len(c.values) for c in CASES)
    columns = own(length) | {c.name.replace(" ", "_"): padded(c.values, length) for c in CASES}
    encodings = ID | {c.name.replace(" ", "_"): c.encoding for c in CASES}
    land(tmp_path, "x.parquet", columns, row_group_size=2)
    found = [
        admitted(files, tmp_path, request(tmp_path, ["x.parquet"], encodings, directory=f"delta/{n}"))
        for n, files in enumerate((open_arrow(tmp_path), open_spark(spark, tmp_path)))
    ]
    assert plain(found[0]) == plain(found[1])


@pytest.mark.spark
def test_a_job_that_fails_says_why_and_not_only_that_a_call_did(tmp_path: Path, spark: SparkSession) -> None:
    """The job is made to fail by the one setting that lets Spark refuse a value of ours."""
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    land(tmp_path, "x.parquet", own(1) | {"v": pa.array([date(1000, 1, 1)])})
    spark.conf.set(mode, "EXCEPTION")
    try:
        with pytest.raises(EngineError, match=r"Spark failed to admit landed files: .*WRITE_ANCIENT_DATETIME"):
            open_spark(spark, tmp_path).admit(request(tmp_path, ["x.parquet"], ID | {"v": DATE}, directory="delta/1"))
    finally:
        spark.conf.set(mode, "CORRECTED")


def test_a_job_that_finds_no_room_is_the_storage_s_fault() -> None:
    from schemasync.io.parquet.tasks import of_task

    said = "could only be written to 0 of the 1 minReplication nodes."
    error = of_task(ConnectionError(f"Caused by: java.io.IOException: File /x {said}"), "it failed", where="delta/1")
    told = f"delta/1: it failed: {said} Free some space and run again: the old state is in force."
    assert (type(error), str(error)) == (StorageError, told)


def test_what_cannot_be_put_aside_for_spark_is_the_storage_s_fault(tmp_path: Path) -> None:
    from schemasync.io.parquet.spark import _decoder

    land(tmp_path, "x.parquet", own(1))
    decode = _decoder(
        ArrowFiles(fs.LocalFileSystem(), str(tmp_path)),
        request(tmp_path, ["x.parquet"], ID, directory="delta/1"),
        "no such directory",
    )
    with pytest.raises(StorageError, match=r"no such directory/part-000000-.*: a file of the table cannot be written"):
        decode(0)


@pytest.mark.spark
@pytest.mark.one_spark
@pytest.mark.parametrize("harm", [Path.unlink, partial(os.truncate, length=100)], ids=["missing", "corrupt"])
def test_what_was_put_aside_is_read_to_the_last_row_whatever_the_session_passes_over(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], object]
) -> None:
    from schemasync.io.parquet.spark import SparkFiles

    write = SparkFiles._write

    def written(*arguments: Any) -> tuple[str, ...]:
        (part,) = tmp_path.joinpath(STAGING).glob("*/part-000001-*")
        harm(part)
        return write(*arguments)

    monkeypatch.setattr(SparkFiles, "_write", written)
    ignoring = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    for setting in ignoring:
        spark.conf.set(setting, "true")
    try:
        with pytest.raises(EngineError, match="Spark failed to admit landed files"):
            events(open_spark(spark, tmp_path), tmp_path, [event(1, 1, "a")], [event(2, 1, "b")])
    finally:
        for setting in ignoring:
            spark.conf.unset(setting)


@pytest.mark.spark
def test_what_is_put_aside_and_cannot_be_deleted_does_not_hide_why_a_job_failed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(_: ArrowLake, directory: str) -> None:
        raise StorageError("cannot delete it", where=directory)

    monkeypatch.setattr(ArrowLake, "delete_directory", delete)
    with pytest.raises(DataError, match="an event has the operation 't'"):
        events(open_spark(spark, tmp_path), tmp_path, [event(1, 1, "a", "t")])


def padded(values: pa.Array, length: int) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(length - len(values), values.type)])


def event(key: int, ts_ms: int | None, v: str | None, op: str | None = "u") -> dict[str, Any]:
    return {"id": key, "op": op, "ts_ms": ts_ms, "v": v}


SCHEMA = pa.schema([("id", pa.int64()), ("op", pa.string()), ("ts_ms", pa.int64()), ("v", pa.string())])


def events(files: LandedFiles, root: Path, *several: list[dict[str, Any]], keys: tuple[str, ...] = ("id",)) -> Rows:
    names = []
    for number, found in enumerate(several):
        table = pa.Table.from_pylist(found, schema=SCHEMA)
        columns = dict(zip(table.column_names, (c.combine_chunks() for c in table.columns), strict=True))
        names.append(land(root, f"{number}.parquet", columns, row_group_size=2))
    rows = admitted(files, root, request(root, names, ID | {"v": TEXT}, directory="delta/1", keys=keys))
    return [{"id": row["id"], "v": row["v"], "op": row["__op"]} for row in rows]


def test_a_file_without_rows_makes_an_empty_delta(tmp_path: Path, opened: LandedFiles) -> None:
    assert events(opened, tmp_path, []) == []


def test_messages_have_no_rows(tmp_path: Path, opened: LandedFiles) -> None:
    assert events(opened, tmp_path, [event(1, 1, "a", "m")], []) == []


def test_a_null_ordering_value_is_older_than_every_other(tmp_path: Path, opened: LandedFiles) -> None:
    assert events(opened, tmp_path, [event(1, -(2**63), "known"), event(1, None, "unknown")]) == [
        {"id": 1, "v": "known", "op": "u"}
    ]


def test_of_events_that_nothing_tells_apart_the_last_one_written_wins(tmp_path: Path, opened: LandedFiles) -> None:
    """Within a file rows stand in the order of the topic; files come in the order of their hours and names."""
    first = [event(1, 5, "a", "c"), event(1, 5, "b"), event(2, 5, "c"), event(2, 5, None, "d")]
    second = [event(1, 5, "d"), event(3, 5, "e"), event(3, 5, "f")]
    assert events(opened, tmp_path, first, second) == [
        {"id": 1, "v": "d", "op": "u"},
        {"id": 2, "v": None, "op": "d"},
        {"id": 3, "v": "f", "op": "u"},
    ]


@pytest.mark.parametrize("view", [pa.string_view(), pa.struct([("x", pa.string_view())])], ids=str)
def test_a_delete_need_not_fit_whatever_arrow_can_do_with_its_type(view: pa.DataType) -> None:
    values = pa.array([None, "x"]).cast(pa.string_view())
    given = values if view == values.type else pa.StructArray.from_arrays([values], ["x"])
    found = null_in_deletes(given, pa.array(["u", "d"]))
    assert (found.type, found.to_pylist()) == (view, [given[0].as_py(), None])


LISTS = pa.list_(pa.int64())
NUMBER = Leaf(type=Primitive.INT)


@pytest.mark.parametrize(
    ("type_", "encoding", "rows"),
    [
        (LISTS, ListOf(element=NUMBER), [[1, 2], [3, 2**40], [5], None, [6]]),
        (pa.large_list(pa.int64()), ListOf(element=NUMBER), [[1], [2**40, 3], [], None, [6, 7]]),
        (pa.list_(LISTS), ListOf(element=ListOf(element=NUMBER)), [[[1], []], [[2**40]], [[5, 6]], None, [[7]]]),
        (
            pa.map_(pa.string(), pa.int64()),
            MapOf(key=TEXT, value=NUMBER),
            [[("a", 1)], [("b", 2**40), ("c", 3)], [("d", 4)], None, []],
        ),
        (
            pa.struct([("x", LISTS)]),
            Record(members=(Member(name="x", encoding=ListOf(element=NUMBER)),)),
            [{"x": [1]}, {"x": [2, 2**40]}, {"x": [3]}, None, {"x": [4]}],
        ),
    ],
    ids=["lists", "large lists", "lists of lists", "maps", "structs"],
)
@pytest.mark.parametrize("first", [0, 1])
def test_what_a_delete_lists_is_neither_decoded_nor_anybody_elses(
    type_: pa.DataType, encoding: Encoding, rows: list[Any], first: int
) -> None:
    """Arrow leaves the elements of what is made null where they were."""
    operations = ["u", "d", "u", "u", "d"]
    bare = null_in_deletes(pa.array(rows, type_)[first:], pa.array(operations[first:]))
    wanted = [None if op == "d" else row for row, op in zip(rows, operations, strict=True)][first:]
    assert (bare.to_pylist(), decode(bare, encoding, Losses()).to_pylist()) == (wanted, wanted)


def test_without_keys_every_event_is_a_row(tmp_path: Path, opened: LandedFiles) -> None:
    found = events(opened, tmp_path, [event(1, 1, "a"), event(1, 1, "a")], [event(1, 1, "b")], keys=())
    assert [row["v"] for row in found] == ["a", "a", "b"]


def test_an_unknown_operation_is_refused_with_file_and_row(tmp_path: Path, opened: LandedFiles) -> None:
    with pytest.raises(DataError, match=rf"^{tmp_path}/0\.parquet: an event has the operation 't': row 4: "):
        events(opened, tmp_path, [event(n, 1, "a", "t" if n == 3 else "u") for n in range(5)])


def test_a_corrupt_file_is_refused_by_name(tmp_path: Path, opened: LandedFiles) -> None:
    land(tmp_path, "x.parquet", own(3))
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    size = (tmp_path / "x.parquet").stat().st_size
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + b" no ".ljust(size - 8) + b"PAR1")
    with pytest.raises(DataError, match=rf"^{tmp_path}/x\.parquet: a landed file cannot be read"):
        opened.admit(wanted)


def test_rows_of_a_file_that_was_replaced_since_it_was_looked_at_are_not_taken(
    tmp_path: Path, opened: LandedFiles
) -> None:
    land(tmp_path, "x.parquet", own(3))
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    land(tmp_path, "x.parquet", own(2000))
    told = rf"^{tmp_path}/x\.parquet: a landed file was changed since it was looked at: it had \d+ bytes and has \d+"
    with pytest.raises(DataError, match=told):
        opened.admit(wanted)


BROKEN = OSError(errno.EIO, "Input/output error")
AWAY = OSError(
    "When reading information for key 'x.parquet' in bucket 'lake': AWS Error NETWORK_CONNECTION during HeadObject "
    "operation: curlCode: 28, Timeout was reached"
)


@pytest.mark.parametrize("reading", [False, True])
@pytest.mark.parametrize("error", [BROKEN, AWAY, ConnectionResetError()], ids=["disk", "S3", "connection"])
def test_a_storage_that_fails_makes_no_file_a_corrupt_one(tmp_path: Path, error: OSError, reading: bool) -> None:
    land(tmp_path, "x.parquet", own(3))
    files = ArrowFiles(Failing([error, error], reading=reading), str(tmp_path))
    file = FileInfo(path="x.parquet", bytes=(tmp_path / "x.parquet").stat().st_size, modified_ms=0)
    told = rf"^{tmp_path}/x\.parquet: the storage failed while a landed file was read: "
    with pytest.raises(StorageError, match=told):
        files.footer(file, now_ms=0)
    with pytest.raises(StorageError, match=told):
        files.admit(request(tmp_path, ["x.parquet"], ID, directory="delta/1"))
    footer = files.footer(file, now_ms=0)
    assert (isinstance(footer, Footer) and footer.rows, len(events_again(files, tmp_path))) == (3, 3)


def events_again(files: LandedFiles, root: Path) -> Rows:
    return admitted(files, root, request(root, ["x.parquet"], ID, directory="delta/2"))


def test_the_writers_schema_is_found_beside_one_of_arrows_own(tmp_path: Path) -> None:
    """There Polars and Arrow's writers put what they are given."""
    with pq.ParquetWriter(tmp_path / "x.parquet", pa.schema([("id", pa.int64())])) as writer:
        writer.add_key_value_metadata({"parquet.avro.schema": "{}"})
    file = FileInfo(path="x.parquet", bytes=(tmp_path / "x.parquet").stat().st_size, modified_ms=0)
    footer = open_arrow(tmp_path).footer(file, now_ms=0)
    assert footer == Footer(rows=0, avro="{}", type=Struct(fields=(StructField(name="id", type=Primitive.BIGINT),)))


def test_of_files_that_may_not_be_read_all_tell_the_same(tmp_path: Path) -> None:
    """Arrow names each in its words; thousands are one finding."""
    land(tmp_path, "x.parquet", own(3))
    said = f"[Errno 13] Failed to open local file '{tmp_path}/x.parquet'"
    files = ArrowFiles(Failing([PermissionError(errno.EACCES, said)]), str(tmp_path))
    file = FileInfo(path="x.parquet", bytes=1, modified_ms=0)
    told = Unreadable(reason="Permission denied", denied=True)
    assert files.footer(file, now_ms=10**9) == told


@pytest.mark.parametrize("listed", [0, 4, 10_000])
def test_a_footer_of_another_file_than_the_one_in_the_list_is_not_taken(tmp_path: Path, listed: int) -> None:
    """A sink that writes in place ended it meanwhile: the next look would take it for a new file."""
    land(tmp_path, "x.parquet", own(3))
    file = FileInfo(path="x.parquet", bytes=listed, modified_ms=0)
    told = Unreadable(reason="it changed while it was looked at", incomplete=True)
    assert open_arrow(tmp_path).footer(file, now_ms=10**9) == told


def test_a_page_that_cannot_be_unpacked_is_its_files_fault(tmp_path: Path) -> None:
    """Arrow raises that as what a storage that fails may raise, too."""
    land(tmp_path, "x.parquet", own(3), compression="snappy", use_dictionary=False)
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    start = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0).data_page_offset
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[:start] + b"\xff" * 40 + content[start + 40 :])
    with pytest.raises(DataError, match=r"x\.parquet: a landed file cannot be read: OSError: "):
        open_arrow(tmp_path).admit(wanted)


def test_runs_that_cannot_be_put_aside_are_told_and_nobody_goes_on_reading(tmp_path: Path) -> None:
    """Also while the error is kept: its frames hold what read, and whoever collects them waits for its threads."""
    before = set(threading.enumerate())
    land(tmp_path, "x.parquet", own(9))
    (tmp_path / "_schemasync").mkdir()
    (tmp_path / "_schemasync" / "staging").write_text("no directory")
    told = rf"^{tmp_path}/_schemasync/staging/.*: cannot put aside what is admitted"
    with pytest.raises(StorageError, match=told) as kept:
        open_runs(tmp_path).admit(request(tmp_path, ["x.parquet"], ID, directory="delta/1"))
    assert (set(threading.enumerate()) - before, kept.tb is not None) == (set(), True)


def test_runs_are_deleted_when_a_later_file_cannot_be_read(tmp_path: Path) -> None:
    names = [land(tmp_path, name, own(3)) for name in ("x.parquet", "y.parquet")]
    wanted = request(tmp_path, names, ID, directory="delta/1")
    whole = (tmp_path / "y.parquet").stat().st_size
    (tmp_path / "y.parquet").write_bytes(b"PAR1".ljust(whole - 4) + b"PAR1")
    with pytest.raises(DataError, match=r"y\.parquet: a landed file cannot be read"):
        open_runs(tmp_path).admit(wanted)
    assert not list((tmp_path / "_schemasync" / "staging").glob("*"))


_NUMBERS = itertools.count(1)

event_lists = st.lists(
    st.builds(
        event,
        st.integers(1, 4),
        st.none() | st.integers(0, 2),
        st.none() | st.text("ab", max_size=2),
        st.sampled_from(["c", "u", "d", "r", None, "m"]),
    ),
    max_size=8,
)


def newest(several: list[list[dict[str, Any]]]) -> Rows:
    """Return what an admission keeps: by time, then by arrival."""
    kept: dict[int, dict[str, Any]] = {}
    for found in itertools.chain(*several):
        if found["op"] == "m":
            continue
        old = kept.get(found["id"])
        if old is None or (old["ts_ms"] is None) or (found["ts_ms"] is not None and found["ts_ms"] >= old["ts_ms"]):
            kept[found["id"]] = found
    return [{"id": k, "v": e["v"], "op": e["op"] or "u"} for k, e in sorted(kept.items())]


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(opens=arrow_ways, several=st.lists(event_lists, min_size=1, max_size=3))
def test_arrow_keeps_the_newest_event_of_each_key(
    tmp_path_factory: pytest.TempPathFactory,
    opens: Callable[[Path], LandedFiles],
    several: list[list[dict[str, Any]]],
) -> None:
    root = tmp_path_factory.mktemp("law")
    assert events(opens(root), root, *several) == newest(several)


@pytest.mark.spark
@settings(max_examples=3, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(several=st.lists(event_lists.filter(lambda found: len(found) > 3), min_size=2, max_size=3))
def test_spark_keeps_the_newest_event_of_each_key(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, several: list[list[dict[str, Any]]]
) -> None:
    root = tmp_path_factory.mktemp("law")
    assert events(open_spark(spark, root), root, *several) == newest(several)


def test_keys_are_read_as_what_they_are(tmp_path: Path, opened: LandedFiles) -> None:
    columns = {"n": pa.array([3, None, -1], pa.int32()), "text": pa.array(["é", None, ""])}
    pq.write_table(pa.table(columns), tmp_path / "keys.parquet")
    assert [list(opened.keys("keys.parquet", name)) for name in columns] == [[3, None, -1], ["é", None, ""]]
    with pytest.raises(StorageError, match=r"gone\.parquet: a written file does not read back"):
        opened.keys("gone.parquet", "n")


class Lossy(ArrowFiles):
    """On a storage that loses a row of each file before it is looked at again."""

    def _read_back(self, path: str, rows: int) -> DataFile:
        whole = pq.read_table(self._path(path))
        pq.write_table(whole.slice(1), self._path(path))
        return super()._read_back(path, rows)


def test_a_delta_of_other_rows_than_were_written_is_refused(tmp_path: Path) -> None:
    land(tmp_path, "x.parquet", own(2))
    wanted = request(tmp_path, ["x.parquet"], ID, directory="delta/1")
    with pytest.raises(StorageError, match="a written file does not read back whole"):
        Lossy(fs.LocalFileSystem(), str(tmp_path)).admit(wanted)


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.int64()])
def test_words_have_a_bit_for_each_number_in_all_files(tmp_path: Path, opened: LandedFiles, type_: pa.DataType) -> None:
    least = -(2 ** (type_.bit_width - 1))
    numbers = [[least, least + 63, least + 64], [], [least + 127, least + 66]]
    for n, some in enumerate(numbers):
        pq.write_table(pa.table({"n": pa.array(some, type_)}), tmp_path / f"{n}.parquet", row_group_size=1)
    paths = [f"{n}.parquet" for n in range(len(numbers))]
    low, words = words_of(itertools.chain.from_iterable(numbers))
    assert list(opened.words(paths, "n", low=low, count=len(words) + 1) or ()) == [*words, 0]
    pq.write_table(pa.table({"n": pa.array([None, least + 1], type_)}), tmp_path / "null.parquet")
    assert opened.words([*paths, "null.parquet"], "n", low=low, count=len(words)) is None


@given(keys=st.sets(st.integers(-3_000, 3_000), min_size=1), most=st.integers(-3_000, 3_000))
def test_words_are_the_same_in_whatever_order_numbers_come(keys: set[int], most: int) -> None:
    low, words = words_of(keys)
    arranged = pa.array(sorted(keys, key=lambda key: (key > most, -key)), pa.int64())
    with TemporaryDirectory() as root:
        pq.write_table(pa.table({"n": arranged}), f"{root}/n.parquet")
        found = open_arrow(Path(root)).words(["n.parquet"], "n", low=low, count=len(words))
    assert list(found or ()) == words


HASHED = pa.schema(
    {
        "n": pa.int64(),
        "t": pa.string(),
        "b": pa.binary(),
        "d": pa.decimal128(38, 0),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "fraction": pa.decimal128(9, 2),
        "small": pa.decimal128(38, 38),
    }
)
PLAIN = {"day": pa.int32(), "at": pa.int64()}
"""Dates and moments by their numbers: Python has no word for most."""
ROW = st.tuples(
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.text() | st.none(),
    st.binary() | st.none(),
    st.integers(1 - 10**38, 10**38 - 1).map(Number) | st.none(),
    st.integers(-(2**31), 2**31 - 1) | st.none(),
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    st.integers(1 - 10**9, 10**9 - 1).map(lambda n: Number(f"{n}e-2")) | st.none(),
    st.integers(1 - 10**38, 10**38 - 1).map(lambda n: Number(f"{n}e-38")) | st.none(),
)


@given(files=st.lists(st.lists(ROW, max_size=9), max_size=3), power=st.integers(0, 4))
@example(files=[[(None,) * len(HASHED)]], power=0)
@example(files=[[(0, "", b"\xff", Number(10**37), -1, -1, Number("0.00"), Number(f"0.{'9' * 38}"))]], power=4)
@example(files=[[(0, "", b"", Number(0), 0, 0, Number("0.05"), Number(f"-0.0000005{'0' * 31}"))]], power=4)
def test_words_have_a_bit_for_the_hash_of_each_row(files: list[list[tuple[Any, ...]]], power: int) -> None:
    count = 2**power
    paths = [f"{n}.parquet" for n in range(len(files))]
    with TemporaryDirectory() as root:
        for path, rows in zip(paths, files, strict=True):
            columns = zip(HASHED, zip(*rows, strict=True) if rows else [()] * len(HASHED), strict=True)
            table = pa.table(
                [pa.array(values, PLAIN.get(field.name, field.type)).cast(field.type) for field, values in columns],
                HASHED,
            )
            pq.write_table(table, f"{root}/{path}", row_group_size=2)
        found = open_arrow(Path(root)).hashed_words(paths, HASHED.names, count=count)
    rounded = ([*row[:-1], _rounded(row[-1])] for row in itertools.chain.from_iterable(files))
    assert list(found) == hashed_words_of(rounded, count)


def _rounded(fraction: Number | None) -> Number | None:
    return None if fraction is None else fraction.quantize(Number("1e-6"), ROUND_HALF_UP) + 0


def test_words_are_written_as_one_row(tmp_path: Path, opened: LandedFiles) -> None:
    opened.write_words("a/_keys/w.orc", [-(2**63), 0, 2**63 - 1])
    assert orc.read_table(tmp_path / "a/_keys/w.orc").to_pylist() == [{"words": [-(2**63), 0, 2**63 - 1]}]
