"""One logical row, however a sink wrote it, and values beyond their type: what the view shows, fold or no fold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import compute as pc

from schemasync.core.beyond import EXAMPLES, Example
from schemasync.core.encoding import Meaning
from schemasync.core.types import Decimal, Primitive
from schemasync.core.written import avro_type
from schemasync.errors import StorageError
from schemasync.io.parquet.values import arrow_type
from tests.io.test_wide_decimals import declare
from tests.lab import DAY, HOUR, Lab

pytestmark = pytest.mark.spark

PARQUET_AVRO = Path(__file__).resolve().parent.parent / "data" / "parquet_avro"
AT = datetime(2026, 11, 20, 1, 2, 3, 123456, UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)


def to_millis(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


LINE = {"sku": "s", "price": Number("19.99"), "at": to_millis(AT)}
FIRST: dict[str, Any] = {
    "flag": True, "small": -7, "count": 2**40, "ratio": 0.5, "name": "né", "raw": b"\x00\xff", "kind": "B",
    "uid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "money": Number("1.50"), "total": Number("-1234567890123456.7890"),
    "day": date(2026, 11, 20), "at_ms": to_millis(AT), "at_us": AT, "dbz_day": date(2026, 11, 20), "dbz_us": AT,
    "zoned": AT, "tags": ["a", "b", "a"], "attrs": [("x", 1), ("y", 2)],
    "lines": [LINE, {"sku": None, "price": None, "at": None}],
}  # fmt: skip
SECOND: dict[str, Any] = {
    "flag": False, "small": 32_767, "count": -(2**63), "ratio": float("nan"), "name": "", "raw": b"", "kind": "A",
    "uid": "00000000-0000-0000-0000-000000000000", "money": Number("-0.01"), "total": Number("0.0000"),
    "day": date(1969, 12, 31), "at_ms": to_millis(BEFORE), "at_us": BEFORE, "dbz_day": date(1969, 12, 31),
    "dbz_us": BEFORE, "zoned": BEFORE, "tags": [], "attrs": [], "lines": [],
}  # fmt: skip
ROWS = [FIRST, SECOND, dict.fromkeys(FIRST)]
"""What every writer's three rows show as."""

BY_ARROW: dict[str, dict[str, Any]] = {
    "decimals as fixed, dictionaries": {},
    "decimals as integers, INT96, plain": {
        "store_decimal_as_integer": True, "use_deprecated_int96_timestamps": True, "use_dictionary": False,
    },
    "micros, old list names, pages of version 2": {
        "coerce_timestamps": "us", "use_compliant_nested_type": False, "data_page_version": "2.0",
    },
    "no Arrow schema, zstd": {"store_schema": False, "compression": "zstd"},
}  # fmt: skip
BY_SPARK: dict[str, dict[str, str]] = {
    "INT96": {"outputTimestampType": "INT96", "writeLegacyFormat": "false"},
    "legacy lists and decimals, micros": {"outputTimestampType": "TIMESTAMP_MICROS", "writeLegacyFormat": "true"},
    "millis": {"outputTimestampType": "TIMESTAMP_MILLIS", "writeLegacyFormat": "false"},
}


def increment(lab: Lab, topic: str) -> Path:
    directory = lab.root / "lake" / topic / "incremental" / "increment_2026112000"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def settings(lab: Lab, given: Mapping[str, str]) -> Iterator[None]:
    """Set some of Spark's Parquet settings for a while."""
    names = {f"spark.sql.parquet.{key}": value for key, value in given.items()}
    before = {key: lab.session.conf.get(key) for key in names}
    for key, value in names.items():
        lab.session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            lab.session.conf.set(key, str(old))


def land_by_arrow(directory: Path, number: int, options: Mapping[str, Any]) -> None:
    """Write the rows with the types that an Arrow or Spark sink gives them: nothing is left to a schema's names."""
    written = pq.read_table(PARQUET_AVRO / "bytes_old_lists.parquet").replace_schema_metadata()
    casts = {"kind": pa.string(), "dbz_day": pa.date32(), "dbz_us": pa.timestamp("us", tz="UTC")}
    columns = {name: written[name].cast(casts.get(name, written[name].type)) for name in written.column_names}
    columns["id"] = pc.add(columns["id"], number * 100 - 100)
    pq.write_table(pa.table(columns), directory / f"{number}.parquet", **options)


def land_by_spark(lab: Lab, directory: Path, number: int, given: Mapping[str, str]) -> None:
    from pyspark.sql import functions as f

    source = str(PARQUET_AVRO / "bytes_old_lists.parquet")
    # The vectorized reader crashes on this very file: decimals of less than 19 digits as bytes.
    with settings(lab, {"enableVectorizedReader": "false", **given}):
        rows = lab.session.read.parquet(source).withColumn("id", f.col("id") + f.lit(number * 100 - 100))
        rows.coalesce(1).write.parquet(str(lab.root / f"spark{number}"))
    (written,) = (lab.root / f"spark{number}").glob("*.parquet")
    shutil.move(written, directory / f"{number}.parquet")


def plain(rows: list[dict[str, Any]]) -> list[str]:
    """Write rows out; NaN equals itself then, and UTC is UTC whoever names it."""
    return [repr(row).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") for row in rows]


def test_a_row_shows_the_same_whichever_writer_and_physical_form_it_came_in(lab: Lab) -> None:
    lab.register("shop.row", json.loads((PARQUET_AVRO / "row.avsc").read_text()))
    directory = increment(lab, "shop.row")
    for number, name in enumerate(("bytes_old_lists", "fixed_new_lists"), start=1):
        shutil.copy(PARQUET_AVRO / f"{name}.parquet", directory / f"{number}.parquet")
    for number, options in enumerate(BY_ARROW.values(), start=3):
        land_by_arrow(directory, number, options)
    for number, given in enumerate(BY_SPARK.values(), start=7):
        land_by_spark(lab, directory, number, given)
    (applied,) = lab.apply().tables
    expected = [{"id": number * 100 + n, **row} for number in range(1, 9) for n, row in enumerate(ROWS)]
    # A writer of milliseconds loses the rest itself.
    lossy = [{k: to_millis(v) if k in {"at_us", "dbz_us"} and v else v for k, v in row.items()} for row in ROWS]
    lossy = [{**row, "dbz_us": full["dbz_us"]} for row, full in zip(lossy, ROWS, strict=True)]
    expected += [{"id": 900 + n, **row} for n, row in enumerate(lossy)]
    assert (applied.error, applied.diagnostics) == (None, applied.plan.diagnostics)
    assert plain(lab.rows("shop_row")) == plain(expected)
    lab.compact()
    assert plain(lab.rows("shop_row")) == plain(expected)


POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": "int"}]}


def test_no_query_passes_over_a_number_that_is_none(lab: Lab) -> None:
    """To Spark NaN is the largest number and equal to itself; what Arrow says of a file leaves it out."""
    lab.register(
        "shop.row", lab.flat("Row", ("d", {"type": "double"}), ("f", {"type": "float"}), ("p", {"type": POINT}))
    )
    nan = float("nan")
    events = [
        {"id": n, "d": d, "f": d, "p": {"x": d, "y": n}, "op": "c", "ts_ms": n} for n, d in enumerate((0.0, nan, 0.0))
    ]
    lab.land("shop.row", events)
    lab.apply()
    for _ in ("admitted", "folded"):
        for condition in ("d > 100", "f > 100", "p.x > 100", "d = double('NaN')", "f <> 0", "p.x <> 0"):
            found = lab.queried(f"SELECT id FROM `{lab.database}`.shop_row_view WHERE {condition}")
            assert found == [{"id": 1}], condition
        lab.compact()


@pytest.mark.parametrize("way", [{}, {"kernel": "spark"}, {"arrow_limit": "0"}], ids=["arrow", "spark", "tasks"])
def test_no_query_passes_over_a_zero_that_has_a_sign(lab: Lab, way: dict[str, str]) -> None:
    """-0.0 equals 0.0, and to Parquet's reader not where it looks into a dictionary for what a query asks for."""
    lab.settings = {"defaults": {"compaction": way}}
    lab.register(
        "shop.row", lab.flat("Row", ("d", {"type": "double"}), ("f", {"type": "float"}), ("p", {"type": POINT}))
    )
    values = [5.0, -0.0] * 25
    lab.land(
        "shop.row",
        [{"id": n, "d": d, "f": d, "p": {"x": d, "y": n}, "op": "c", "ts_ms": n} for n, d in enumerate(values)],
    )
    lab.compact()
    for condition in ("d = 0", "f = 0", "p.x = 0", "d IN (0D, 1D)", "d <=> 0D"):
        found = lab.queried(f"SELECT count(*) AS n FROM `{lab.database}`.shop_row_view WHERE {condition}")
        assert found == [{"n": 25}], condition


AVRO: dict[Meaning, Any] = {
    Meaning.DAYS: {"type": "int", "connect.name": "io.debezium.time.Date"},
    Meaning.EPOCH_MILLIS: {"type": "long", "connect.name": "io.debezium.time.Timestamp"},
    Meaning.EPOCH_MICROS: {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
    Meaning.ZONED_TIMESTAMP: {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"},
    Meaning.TIME_MICROS: {"type": "long", "connect.name": "io.debezium.time.MicroTime"},
}
VARIABLE_FIELDS = [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]


def avro(number: int, example: Example) -> Any:
    """Return the Avro type of an example's column."""
    leaf = example.leaf
    if leaf.meaning is Meaning.VARIABLE_DECIMAL:
        name = "io.debezium.data.VariableScaleDecimal"
        return {"type": "record", "name": f"V{number}", "connect.name": name, "fields": VARIABLE_FIELDS}
    if isinstance(leaf.type, Decimal):
        declared = 64 if leaf.type.precision == 38 else leaf.type.precision
        return {"type": "bytes", "logicalType": "decimal", "precision": declared, "scale": leaf.type.scale}
    if leaf.type is Primitive.TINYINT:
        return {"type": "int", "connect.type": "int8"}
    return AVRO.get(leaf.meaning, "double")


def land_examples(lab: Lab, topic: str) -> Path:
    """Register a column per example, and land one event of all of them as parquet-avro would write it."""
    fields = [{"name": f"v{n}", "type": ["null", avro(n, e)]} for n, e in enumerate(EXAMPLES)]
    own = [{"name": "op", "type": ["null", "string"]}, {"name": "ts_ms", "type": "long"}]
    schema = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, *fields, *own]}
    lab.register(topic, schema)
    columns = {f"v{n}": values_of(e) for n, e in enumerate(EXAMPLES)}
    event = {"id": pa.array([1]), **columns, "op": pa.array(["c"]), "ts_ms": pa.array([1])}
    table = pa.table(event).replace_schema_metadata({"parquet.avro.schema": json.dumps(schema)})
    path = increment(lab, topic) / "a.parquet"
    pq.write_table(table, path)
    return path


def values_of(example: Example) -> pa.Array:
    if isinstance(example.written, tuple):
        pair = {"scale": example.written[0], "value": example.written[1]}
        return pa.array([pair], pa.struct([("scale", pa.int32()), ("value", pa.binary())]))
    return pa.array([example.written], arrow_type(avro_type(example.leaf)))


def texts(lab: Lab, table: str) -> list[str]:
    """Return the row's values as SQL prints them."""
    columns = ", ".join(f"CAST(v{n} AS STRING)" for n in range(len(EXAMPLES)))
    (row,) = lab.workspace.sql.select(f"SELECT {columns} FROM {table}_view", database=lab.database).rows
    return ["NULL" if value is None else value for value in row]


def test_values_beyond_their_type_show_as_published_stop_nothing_and_are_kept(lab: Lab) -> None:
    landed = land_examples(lab, "shop.odd")
    (applied,) = lab.apply().tables
    told = [d.code for d in applied.diagnostics if d.code in {"SS308", "SS309"}]
    assert (applied.error, applied.held) == (None, False)
    assert sorted(told) == sorted(e.shown.value for e in EXAMPLES if e.shown)
    expected = [e.text for e in EXAMPLES]
    assert texts(lab, "shop_odd") == expected
    # What `schemasync sql` prints, as JSON: nothing in it is outside of what a client can hold.
    shown = lab.workspace.sql.select("SELECT * FROM shop_odd_view", database=lab.database)
    assert json.loads(json.dumps(shown.rows[0])) == list(shown.rows[0])
    lab.compact()
    with settings(lab, {"enableVectorizedReader": "false"}):
        assert texts(lab, "shop_odd") == expected
    assert texts(lab, "shop_odd") == expected
    lab.now_ms += 8 * DAY
    lab.compact()
    kept = lab.root / "lake" / "shop.odd" / "archive" / "incremental" / "increment_2026112000" / "a.parquet"
    assert (landed.exists(), kept.exists()) == (False, True)


def test_a_number_of_more_digits_than_arrow_has_stops_no_table(lab: Lab) -> None:
    """PostgreSQL's numeric(78,0), in which others keep 256 bits."""
    number = {"type": "bytes", "logicalType": "decimal", "precision": 78, "scale": 0}
    lab.register("shop.coin", lab.flat("Row", ("v", ["null", number])))
    schema = lab.registry.schema("shop.coin-value", 1).text
    values = [v.to_bytes(33, "big", signed=True) for v in (10**37, 2**256 - 1)]
    events = {"id": [1, 2], "v": pa.array(values, pa.binary()), "op": ["c", "c"], "ts_ms": [1, 1]}
    path = increment(lab, "shop.coin") / "a.parquet"
    pq.write_table(pa.table(events).replace_schema_metadata({"parquet.avro.schema": schema}), path)
    declare(path, 78, 0)
    (applied,) = lab.apply().tables
    assert (applied.held, [d.code for d in applied.diagnostics if d.code.startswith("SS3")]) == (False, ["SS309"])
    assert [row["v"] for row in lab.rows("shop_coin")] == [10**37, None]


def test_a_fold_that_engines_would_misread_is_not_published(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": {"kernel": "spark"}}}
    lab.register("shop.item", lab.flat("Row", ("at", ["null", {"type": "long", "logicalType": "timestamp-micros"}])))
    lab.land("shop.item", [{"id": 1, "at": AT, "op": "c", "ts_ms": 1}])
    lab.apply()
    before = lab.rows("shop_item")
    with settings(lab, {"outputTimestampType": "TIMESTAMP_MILLIS"}):
        (refused,) = lab.compact().tables
    assert isinstance(refused.error, StorageError)
    assert "at is stored as INT64 timestamp(milliseconds,utc) and declared as timestamp" in str(refused.error)
    view = lab.plan().tables[0].view
    assert view is not None
    assert view.manifest is not None
    assert (lab.rows("shop_item"), view.manifest.state.generation) == (before, 0)
    lab.now_ms += HOUR
    (folded,) = lab.compact().tables
    assert (folded.error, lab.rows("shop_item")) == (None, before)
