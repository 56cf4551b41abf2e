"""A row's user partition is the same whether Arrow or Spark writes it, and the name of its directory is Hive's."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from schemasync.core.encoding import Leaf
from schemasync.core.partitioning import PartitionColumn, directory_of, parse_partition, resolve, spark_sql
from schemasync.core.types import Primitive
from schemasync.errors import DataError
from schemasync.io.parquet.partitions import by_partition, check_partitions
from schemasync.io.parquet.values import arrow_type
from tests.core.builders import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS: Final = {
    Primitive.DATE: ["c", "year(c)", "month(c)", "day(c)", "date_format(c, 'yyyy-MM')", "trunc(c, 'quarter')",
                     "trunc(c, 'MONTH')", "year(trunc(c, 'year'))"],
    Primitive.TIMESTAMP: ["year(c)", "month(c)", "day(c)", "hour(c)", "to_date(c)", "date_format(c, 'yyyyMMddHH')",
                          "trunc(to_date(c), 'month')"],
    Primitive.STRING: ["c", "left(c, 2)", "substring(c, 2, 2)", "to_date(c, 'MM/dd/yyyy')", "to_date(c, 'yyyyMM')",
                       "year(to_date(c, 'yyyy-MM-dd HH'))", "left(left(c, 3), 1)"],
    Primitive.TINYINT: ["c", "pmod(c, 3)"],
    Primitive.SMALLINT: ["c", "pmod(c, 16)"],
    Primitive.INT: ["c", "pmod(c, 1)", "pmod(c, 2147483647)"],
    Primitive.BIGINT: ["c", "pmod(c, 9)"],
    Primitive.BOOLEAN: ["c"],
}  # fmt: skip
TEXTS: Final = [
    "", " ", "a", "ab", "a/b=c%d", "ß𝄞x", "02/30/2020", "02/29/2020", "2/3/2020", "12/31/0001", "01/01/0000",
    "13/01/2020", "202013", "202012", "2020-12-31 99", "2020-12-31 01", "2020-12-31 01\n", "\uff12\uff10\uff1220",
    "#?*:[]^{}\\\"'", "__HIVE_DEFAULT_PARTITION__", "0000-12-31 01",
]  # fmt: skip


def values(type_: Primitive, random: Random) -> list[Any]:
    """Return a hundred values of a type, its extremes and null among them."""
    days = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29)]
    days += [date(1, 1, 1) + timedelta(days=random.randrange(3_652_058)) for _ in range(95)]
    match type_:
        case Primitive.DATE:
            return [None, *days]
        case Primitive.TIMESTAMP:
            midnights = (datetime(d.year, d.month, d.day, tzinfo=UTC) for d in days)
            parts = ((random.randrange(86_400), random.choice([0, 1, 999_999])) for _ in days)
            pairs = zip(midnights, parts, strict=True)
            return [None, *(at + timedelta(seconds=s, microseconds=us) for at, (s, us) in pairs)]
        case Primitive.STRING:
            shown = (d.strftime(random.choice(["%m/%d/%Y", "%Y%m", "%Y-%m-%d %H"])) for d in days)
            return [None, *TEXTS, *shown]
        case Primitive.BOOLEAN:
            return [None, True, False]
        case _:
            most = 2 ** ({Primitive.TINYINT: 8, Primitive.SMALLINT: 16, Primitive.INT: 32}.get(type_, 64) - 1)
            return [None, 0, -1, most - 1, -most, *(random.randrange(-most, most) for _ in range(95))]


def partition(expression: str, type_: Primitive) -> PartitionColumn:
    return resolve(parse_partition("p", expression), [col("c", Leaf(type=type_))], lambda column: column.name)


@pytest.mark.spark
@pytest.mark.parametrize("type_", EXPRESSIONS, ids=lambda type_: type_.value)
def test_arrow_and_spark_put_a_row_into_one_partition(spark: SparkSession, type_: Primitive) -> None:
    from pyspark.sql import functions as f

    rows = list(enumerate(values(type_, Random(7))))  # noqa: S311 - the same values in every run
    table = pa.table({"n": [n for n, _ in rows], "c": pa.array([v for _, v in rows], arrow_type(type_))})
    found = spark.createDataFrame(rows, f"n INT, c {type_.value}")
    columns = {expression: partition(expression, type_) for expression in EXPRESSIONS[type_]}
    said = found.select("n", *(f.expr(spark_sql(column)).alias(name) for name, column in columns.items()))
    types = {field.name: field.dataType.simpleString() for field in said.schema}
    texts = said.select("n", *(f.col(f"`{name}`").cast("string") for name in columns)).collect()
    for expression, column in columns.items():
        expected = {row["n"]: directory_of(["p"], [row[expression]]) for row in texts}
        written = {n: place for place, part in by_partition(table, [column]) for n in part.column("n").to_pylist()}
        assert (types[expression], written) == (column.type.value, expected), expression


def test_rows_of_a_partition_keep_their_order_and_all_columns() -> None:
    texts = ["x", "y", None, "x", "", "__HIVE_DEFAULT_PARTITION__", None]
    rows = pa.table({"a": texts, "b": pa.array([1, 1, 1, 2, 1, 1, 1], pa.int32()), "n": [1, 2, 3, 4, 5, 6, 7]})
    columns = [
        PartitionColumn(name="pa", type=Primitive.STRING, source="a"),
        PartitionColumn(name="pb", type=Primitive.INT, source="b"),
    ]
    found = {place: part.to_pydict() for place, part in by_partition(rows, columns)}
    assert found == {
        "pa=x/pb=1": {"a": ["x"], "b": [1], "n": [1]},
        "pa=y/pb=1": {"a": ["y"], "b": [1], "n": [2]},
        "pa=__HIVE_DEFAULT_PARTITION__/pb=1": {
            "a": [None, "", "__HIVE_DEFAULT_PARTITION__", None],
            "b": [1, 1, 1, 1],
            "n": [3, 5, 6, 7],
        },
        "pa=x/pb=2": {"a": ["x"], "b": [2], "n": [4]},
    }
    assert [place for place, _ in by_partition(rows.slice(0, 0), columns)] == []
    assert [(place, part.num_rows) for place, part in by_partition(rows, [])] == [("", 7)]


def test_days_that_engines_write_in_different_ways_have_no_partition() -> None:
    rows = pa.table({"c": pa.array([-719_163, -719_162, 2_932_896, 2_932_897], pa.date32())})
    for expression in ("c", "date_format(c, 'yyyy-MM-dd')"):
        found = {place: part.num_rows for place, part in by_partition(rows, [partition(expression, Primitive.DATE)])}
        assert found == {"p=__HIVE_DEFAULT_PARTITION__": 2, "p=0001-01-01": 1, "p=9999-12-31": 1}


@pytest.mark.parametrize("text", ["D\0E", "\0", "x" * 300])
def test_a_short_value_that_cannot_be_stored_is_refused_as_a_long_one_is(text: str) -> None:
    partition = resolve(parse_partition("p", "c"), [col("c", Leaf(type=Primitive.STRING))], lambda column: column.name)
    check_partitions(pa.table({"c": ["DE", None, "", "\x01"]}), [partition])
    with pytest.raises(DataError, match="make a partition that cannot be stored: p is "):
        check_partitions(pa.table({"c": ["DE", None, text]}), [partition])
