"""What Spark reads in place: every physical form under every type, measured, recorded and published.

``SCHEMASYNC_REGENERATE=1 pytest -m long tests/io/test_in_place_reads.py`` records the running version under
tests/data/in_place; ``scripts/docs`` then writes docs/in-place-reads.md from all records.

The gate reads what is on the whitelist. All other pairs are hundreds of queries that fail, on a version whose record
says so already.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.core.in_place import FORMS, forms_of
from schemasync.core.names import Dialect
from schemasync.core.type_strings import print_type
from schemasync.core.types import Decimal, Primitive
from schemasync.io.parquet.arrow import ArrowFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DATA = Path(__file__).resolve().parent.parent / "data"
REGENERATE = bool(os.environ.get("SCHEMASYNC_REGENERATE"))

DECIMALS = tuple(Decimal(precision=p, scale=2) for p in (5, 9, 10, 18, 20, 38))
DECLARED: tuple[Primitive | Decimal, ...] = (*FORMS, *DECIMALS)
READERS = {"vectorized": "true", "row": "false"}
PLACES = {"column": "v", "struct": "s.a", "array": "l[0]", "map": "m['k']"}


@dataclass(frozen=True, kw_only=True)
class Form:
    """Values of one Arrow type, and the options that give them one physical form."""

    values: pa.Array
    options: Mapping[str, Any]


def form(values: list[Any], type_: pa.DataType, **options: Any) -> Form:
    return Form(values=pa.array(values, type_), options=options)


DAY = date(2026, 11, 20)
MOMENT = datetime(2026, 11, 20, 1, 2, 3, 123000, tzinfo=UTC)
EARLY = datetime(1960, 1, 1, 1, 2, 3, 456000, tzinfo=UTC)
INTEGERS = {"store_decimal_as_integer": True}


def numbers(precision: int) -> list[Number]:
    return [Number("1.25"), Number("-" + "9" * (precision - 2) + ".99")]


FIXED = {
    f"FIXED_LEN_BYTE_ARRAY decimal({d.precision},2)": form(numbers(d.precision), pa.decimal128(d.precision, 2))
    for d in DECIMALS
}
AS_INTEGERS = {
    f"{'INT32' if p <= 9 else 'INT64'} decimal({p},2)": form(numbers(p), pa.decimal128(p, 2), **INTEGERS)
    for p in (5, 9, 10, 18)
}

WRITTEN: dict[str, Form] = {
    "BOOLEAN": form([True, False], pa.bool_()),
    "INT32 int(8)": form([7, -128], pa.int8()),
    "INT32 int(16)": form([7, -32768], pa.int16()),
    "INT32": form([7, 2**31 - 1], pa.int32()),
    "INT64": form([7, 2**62 + 1], pa.int64()),
    "FLOAT": form([0.5, 2.0**100], pa.float32()),
    "DOUBLE": form([0.5, 1e300], pa.float64()),
    "BYTE_ARRAY string": form(["a", "12"], pa.string()),
    "BYTE_ARRAY": form([b"ab", b"12"], pa.binary()),
    "INT32 date": form([DAY, date(1960, 1, 1)], pa.date32()),
    "INT64 timestamp(milliseconds,utc)": form([MOMENT, EARLY], pa.timestamp("ms", tz="UTC")),
    "INT64 timestamp(microseconds,utc)": form([MOMENT, EARLY], pa.timestamp("us", tz="UTC")),
    "INT64 timestamp(nanoseconds,utc)": form([MOMENT, EARLY], pa.timestamp("ns", tz="UTC")),
    "INT64 timestamp(microseconds,local)": form(
        [MOMENT.replace(tzinfo=None), EARLY.replace(tzinfo=None)], pa.timestamp("us")
    ),
    "INT96": form([MOMENT, EARLY], pa.timestamp("us", tz="UTC"), use_deprecated_int96_timestamps=True),
    **FIXED,
    **AS_INTEGERS,
}
"""Physical form -> what has it. Of two values one needs the whole width of its type."""

AVRO = {"BYTE_ARRAY decimal(9,2)": "money", "BYTE_ARRAY decimal(20,4)": "total"}
"""Physical form -> column of the file that parquet-avro wrote: Arrow writes no decimals as bytes."""

KNOWN_WRONG = (
    ("INT32 decimal(5,2)", Primitive.INT), ("INT64 decimal(10,2)", Primitive.BIGINT), ("INT32 date", Primitive.INT),
    ("INT32", Primitive.DATE), ("INT64 timestamp(microseconds,utc)", Primitive.BIGINT),
)  # fmt: skip
"""Pairs that some version reads without an error, wrongly: unscaled numbers, days, raw microseconds."""


def write(root: Path, name: str, found: Form) -> Path:
    """Write the values as a column, in a struct, an array and a map."""
    single = [[v] for v in found.values.to_pylist()]
    type_ = found.values.type
    columns = {
        "v": found.values,
        "s": pa.StructArray.from_arrays([found.values], names=["a"]),
        "l": pa.array(single, pa.list_(type_)),
        "m": pa.array([[("k", v)] for (v,) in single], pa.map_(pa.string(), type_)),
    }
    path = root / f"{name}.parquet"
    pq.write_table(pa.table(columns), path, store_schema=False, **found.options)
    return path


def ddl(place: str, type_: str) -> str:
    nested = {"column": f"v {type_}", "struct": f"s struct<a:{type_}>", "array": f"l array<{type_}>"}
    return nested.get(place, f"m map<string,{type_}>")


Files = Mapping[str, tuple[Path, list[Any]]]
"""Form -> a file, and the values that were written."""


class Measure:
    """Reads files under a type, with one of Spark's readers; an outcome is right, error or wrong."""

    def __init__(self, session: SparkSession, type_: str, reader: str) -> None:
        self.session, self.type = session, type_
        session.conf.set("spark.sql.parquet.enableVectorizedReader", READERS[reader])

    def outcomes(self, files: Files) -> dict[tuple[str, str], str]:
        """Return (form, place) -> outcome; what fails as a column is not tried nested."""
        found = {(key, "column"): one for key, one in self.outcomes_at("column", files).items()}
        nested = {key: file for key, file in files.items() if found[key, "column"] != "error"}
        places = [place for place in PLACES if place != "column"]
        # Nearly all are right in all places: one query instead of one for each.
        together = self._read(places, nested) if nested else {}
        right = {
            key
            for key, (path, values) in nested.items()
            if all(outcome(one, values) == "right" for one in (together or {}).get(path.name, [[]]))
        }
        found |= {(key, place): "right" for key in right for place in places}
        others = {key: file for key, file in nested.items() if key not in right}
        for place in places:
            found |= {(key, place): one for key, one in self.outcomes_at(place, others).items()}
        return found

    def outcomes_at(self, place: str, files: Files, column: str | None = None) -> dict[str, str]:
        """Return form -> outcome in one place; ``column`` is what files call theirs."""
        if not files:
            return {}
        everything = self._read([place], files, column)
        if everything is None:
            # An error that is more than a corrupt file to Spark ends the whole query: one file at a time then.
            everything = {}
            for key, file in files.items():
                everything |= self._read([place], {key: file}, column) or {}
        return {key: outcome(everything.get(path.name, [[]])[0], values) for key, (path, values) in files.items()}

    def _read(self, places: list[str], files: Files, column: str | None = None) -> dict[str, list[list[Any]]] | None:
        """Return file name -> values by place; a file that Spark cannot read is passed over. None: the query failed."""
        schema = ", ".join(f"{column} {self.type}" if column else ddl(place, self.type) for place in places)
        reader = self.session.read.schema(schema).option("ignoreCorruptFiles", "true")
        found: dict[str, list[list[Any]]] = defaultdict(lambda: [[] for _ in places])
        # Python's own dates end in the year 9999; a date that Spark made of any number must not fail there.
        shown = "CAST({} AS STRING)" if self.type in {"date", "timestamp"} else "{}"
        asked = [f"{shown.format(column or PLACES[place])} AS v{at}" for at, place in enumerate(places)]
        try:
            frame = reader.parquet(*[str(path) for path, _ in files.values()])
            rows = frame.selectExpr(*asked, "_metadata.file_name AS f").collect()
        except Exception:  # whatever a reader throws, it is no silent misread
            return None
        for row in rows:
            for values, value in zip(found[row["f"]], row, strict=False):
                values.append(value)
        return found


def outcome(found: list[Any], values: list[Any]) -> str:
    if len(found) != len(values):
        return "error"
    return "right" if all(same(f, v) for f, v in zip(found, values, strict=True)) else "wrong"


def same(found: Any, value: Any) -> bool:
    """Tell whether a value is the written one, whatever type holds it now."""
    match found, value:
        case None, None:
            return True
        case bool(), bool():
            return found == value
        case (bool(), _) | (_, bool()):
            return False
        case ((int() | float() | Number()), (int() | float() | Number())):
            return math.isfinite(found) and Number(found) == Number(value)
        case ((str() | bytes() | bytearray()), (str() | bytes())):
            return _bytes(found) == _bytes(value)
        case str(), datetime():
            return found.rstrip("0") == value.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0")
        case str(), date():
            return found.removesuffix(" 00:00:00") == value.isoformat()
        case _:
            return False


def _bytes(text: str | bytes | bytearray) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def summary(outcomes: Mapping[tuple[str, str], str]) -> str:
    """Write the outcomes of one pair: one word where all agree, else each reader's, else each place's."""
    if len(set(outcomes.values())) == 1:
        return next(iter(outcomes.values()))
    parts = []
    for reader in READERS:
        by_place = {place: found for (r, place), found in outcomes.items() if r == reader}
        if len(set(by_place.values())) == 1:
            parts.append(f"{reader}: {by_place[next(iter(by_place))]}")
        else:
            parts.append(f"{reader}: " + ", ".join(f"{place} {found}" for place, found in by_place.items()))
    return "; ".join(parts)


def spelled(type_: Primitive | Decimal) -> str:
    return print_type(type_, Dialect.SPARK)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one version of Spark does with files under a root."""

    session: SparkSession
    root: Path

    def pairs(self, *, of: Callable[[str, str], bool]) -> dict[str, dict[str, str]]:
        """Return form -> declared type -> outcome, for pairs of (form, type)."""
        files = {
            key: (write(self.root, f"{number:02}", found), found.values.to_pylist())
            for number, (key, found) in enumerate(WRITTEN.items())
        }
        pairs: dict[str, dict[str, dict[tuple[str, str], str]]] = defaultdict(lambda: defaultdict(dict))
        before = self.session.conf.get("spark.sql.parquet.enableVectorizedReader")
        for type_ in map(spelled, DECLARED):
            for reader in READERS:
                measure = Measure(self.session, type_, reader)
                wanted = {key: file for key, file in files.items() if of(key, type_)}
                for (key, place), one in measure.outcomes(wanted).items():
                    pairs[key][type_][reader, place] = one
                for key, column in AVRO.items():
                    if of(key, type_):
                        path = DATA / "parquet_avro" / "bytes_old_lists.parquet"
                        avro = {key: (path, pq.read_table(path, columns=[column])[column].to_pylist())}
                        pairs[key][type_][reader, "column"] = measure.outcomes_at("column", avro, column)[key]
        self.session.conf.set("spark.sql.parquet.enableVectorizedReader", str(before))
        return {key: {type_: summary(found) for type_, found in types.items()} for key, types in pairs.items()}


@pytest.fixture
def measured(spark: SparkSession, tmp_path: Path) -> Measured:
    return Measured(session=spark, root=tmp_path)


LISTED = {(key, spelled(type_)) for type_ in DECLARED for key in forms_of(type_)}


def record() -> Path:
    """Return where the running version's record is, or the newest one of its line.

    A release that only fixes comes without notice, and the gate takes it: what is on the whitelist is read there
    whether it is recorded or not.
    """
    running = version("pyspark")
    own = DATA / "in_place" / f"spark-{running}.json"
    if REGENERATE or own.exists():
        return own
    of_line = own.parent.glob(f"spark-{running.rpartition('.')[0]}.*.json")
    return max(of_line, key=lambda path: int(path.stem.rpartition(".")[2]), default=own)


def test_the_files_have_the_forms_that_they_are_filed_under(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    found = {}
    for key, written in WRITTEN.items():
        write(tmp_path, "x", written)
        found[key] = {leaf.form for leaf in files.written("x.parquet", ()).leaves} - {"BYTE_ARRAY string"}
    assert found == {key: {key} - {"BYTE_ARRAY string"} for key in WRITTEN}


def test_every_pair_on_the_whitelist_is_read_right(measured: Measured) -> None:
    found = measured.pairs(of=lambda key, type_: (key, type_) in LISTED)
    assert {(key, type_): one for key, types in found.items() for type_, one in types.items()} == dict.fromkeys(
        LISTED, "right"
    )


def test_no_pair_that_any_version_reads_wrongly_is_on_the_whitelist() -> None:
    wrong = {(key, spelled(type_)) for key, type_ in KNOWN_WRONG}
    for path in (DATA / "in_place").glob("*.json"):
        recorded = json.loads(path.read_text())
        wrong |= {(key, t) for key, types in recorded.items() for t, found in types.items() if "wrong" in found}
    assert wrong & LISTED == set()


def test_the_line_of_the_running_version_is_recorded() -> None:
    assert record().exists(), "run this file once with SCHEMASYNC_REGENERATE=1 and -m long, then scripts/docs"


@pytest.mark.long
def test_the_running_version_does_what_is_recorded_of_it(measured: Measured) -> None:
    found = measured.pairs(of=lambda *_: True)
    if REGENERATE:
        record().parent.mkdir(exist_ok=True)
        record().write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(record().read_text())
