"""Arrow converts a column as `schemasync.core.conversion` converts one value: the same, or neither."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemasync.core.conversion import INTEGERS, MIGRATIONS, converted, converts
from schemasync.core.names import Dialect
from schemasync.core.promotion import INTEGER_DIGITS
from schemasync.core.reshape import Convert, lost_sql, reshape_sql
from schemasync.core.type_strings import print_type
from schemasync.core.types import Decimal, Primitive, Type
from schemasync.errors import DataError
from schemasync.io.parquet.values import arrow_type, convert
from schemasync.io.spark_sql import SparkSql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECIMALS = tuple(Decimal(precision=p, scale=s) for p, s in ((5, 0), (12, 0), (12, 2), (38, 6), (38, 18)))
TYPES: tuple[Primitive | Decimal, ...] = (*MIGRATIONS, *DECIMALS)
PAIRS = [(a, b) for a, b in itertools.permutations(TYPES, 2) if converts(a, b)]


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Draw values of a type, many of them small enough for most others."""
    match type_:
        case Decimal(precision=precision, scale=scale):
            most = 10**precision - 1
            unscaled = st.one_of(
                st.integers(-99, 99), st.integers(-most, most), st.just(10**scale).map(lambda n: 7 * n)
            )
            return unscaled.filter(lambda n: abs(n) <= most).map(lambda n: Number(f"{n}E-{scale}"))
        case Primitive() if type_ in INTEGERS:
            most = 10 ** INTEGER_DIGITS[type_]
            bound = {Primitive.TINYINT: 2**7, Primitive.SMALLINT: 2**15, Primitive.INT: 2**31, Primitive.BIGINT: 2**63}
            return st.one_of(st.integers(-9, 9), st.integers(-bound[type_], bound[type_] - 1))
        case Primitive.FLOAT | Primitive.DOUBLE:
            singles = st.floats(width=32)
            return st.one_of(st.integers(-99, 99).map(float), singles if type_ is Primitive.FLOAT else st.floats())
        case Primitive.STRING:
            numbers = st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str)
            return st.one_of(
                st.integers(-200, 200).map(str),
                numbers,
                st.sampled_from(["true", "false", "2026-11-20"]),
                st.text(max_size=3),
            )
        case Primitive.BOOLEAN:
            return st.booleans()
        case Primitive.DATE:
            return st.dates(date(1, 1, 1), date(9999, 12, 31))
        case Primitive.TIMESTAMP:
            return st.one_of(
                st.dates(date(1, 1, 1), date(9999, 12, 31)).map(lambda d: datetime(d.year, d.month, d.day, tzinfo=UTC)),
                st.datetimes(timezones=st.just(UTC)),
            )
        case _:
            raise AssertionError(type_)


@pytest.mark.parametrize(("stored", "target"), PAIRS, ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_arrow_and_python_convert_alike(
    stored: Primitive | Decimal, target: Primitive | Decimal, data: st.DataObject
) -> None:
    alike(data.draw(values(stored)), stored, target)


@pytest.mark.parametrize("target", [b for a, b in PAIRS if a is Primitive.STRING], ids=str)
@pytest.mark.parametrize("around", ["{}\n", "\n{}", "{}\r\n", "{}\u2028", "{} ", " {}", "{}\0", "+{}", "{}\u0661"])
def test_no_text_is_converted_with_anything_around_its_value(target: Primitive | Decimal, around: str) -> None:
    values: dict[Type, str] = {Primitive.BOOLEAN: "true", Primitive.DATE: "2026-11-20"}
    value = values.get(target, "7")
    assert alike(value, Primitive.STRING, target) is not None
    assert alike(around.format(value), Primitive.STRING, target) is None


@pytest.mark.parametrize(
    ("text", "target"),
    [("1e39", Primitive.FLOAT), ("-1e400", Primitive.DOUBLE), ("0000-01-01", Primitive.DATE)],
)
def test_a_text_of_what_the_type_does_not_have_is_not_converted(text: str, target: Primitive) -> None:
    assert alike(text, Primitive.STRING, target) is None


@pytest.mark.parametrize(("scale", "fits"), [(2, True), (8, False)])
def test_a_single_float_becomes_a_decimal_where_all_engines_take_it_for_the_same(scale: int, fits: bool) -> None:
    """Spark takes the double, 19.989999771118164; Hive and Trino take 19.99."""
    target = Decimal(precision=20, scale=scale)
    assert alike(19.989999771118164, Primitive.FLOAT, target) == ([Number("19.99")] if fits else None)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("45648228024970122314992066839691.42", False),
        ("-99999999999999999999.5", True),
        ("0000000000000000000000000000000000000000012345678901234567890.1", True),
        ("100000000000000000000", False),
        ("0." + "1" * 18, True),
    ],
)
def test_a_text_of_too_many_digits_is_no_decimal(text: str, fits: bool) -> None:
    target = Decimal(precision=38, scale=18)
    assert alike(text, Primitive.STRING, target) == ([Number(text)] if fits else None)


@pytest.mark.parametrize("text", ["0.008076863122047880", "46406629909.416510000000000000", "0.100000000000000001"])
def test_a_decimal_that_a_real_numbers_shortest_text_says_is_that_number(text: str) -> None:
    stored, value = Decimal(precision=38, scale=18), Number(text)
    found = alike(value, stored, Primitive.DOUBLE)
    assert found == (None if text.endswith("01") else [float(value)])


@pytest.mark.spark
def test_a_real_number_becomes_the_same_decimal_in_the_view_and_in_the_base(spark: SparkSession) -> None:
    """With many digits of scale its shortest text and its exact value are two decimals, and both come back as it."""
    reals = [19.99, 1234567.89, -0.1, 1e-7, 5e-324, 123456789012.34, 2.5e-18, 0.0]
    # The double that a single float is has other digits than that itself, which is refused then.
    for stored, scale, least in ((Primitive.DOUBLE, 18, 5), (Primitive.FLOAT, 2, 3)):
        name, target = print_type(stored, Dialect.SPARK), Decimal(precision=38, scale=scale)
        rows = ", ".join(f"(CAST('{value!r}' AS {name}))" for value in reals)
        cast = f"CAST(v AS {print_type(target, Dialect.SPARK)})"
        shown = [row[0] for row in spark.sql(f"SELECT {cast} FROM VALUES {rows} AS t(v)").collect()]
        held = pa.array(reals, pa.float64()).cast(arrow_type(stored)).to_pylist()
        fits = [value for value, found in zip(held, shown, strict=True) if alike(value, stored, target) == [found]]
        assert len(fits) >= least
        assert [v for v in held if alike(v, stored, target) not in (None, [shown[held.index(v)]])] == []


@pytest.mark.spark
@pytest.mark.parametrize("stored", TYPES, ids=str)
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large])
@given(data=st.data())
def test_spark_converts_as_arrow_does_what_it_counts_as_values_that_fit(
    spark: SparkSession, tmp_path: Path, stored: Primitive | Decimal, data: st.DataObject
) -> None:
    """By its count a table is migrated; a value that Arrow refuses then would end every compaction."""
    rows = data.draw(st.lists(values(stored), min_size=30, max_size=40))
    file = tmp_path / f"{uuid4()}.parquet"
    pq.write_table(pa.table({"v": pa.array(rows, arrow_type(stored)), "n": range(len(rows))}), file)
    targets = [target for source, target in PAIRS if source == stored]
    shapes = [Convert(stored=stored, target=target) for target in targets]
    losses = [lost_sql("v", shape) or "FALSE" for shape in shapes]
    shown = [reshape_sql("v", shape, Dialect.SPARK) for shape in shapes]
    columns = (f"CASE WHEN NOT {lost} THEN {sql} END, {lost}" for sql, lost in zip(shown, losses, strict=True))
    found = SparkSql(spark).query(f"SELECT {', '.join(columns)} FROM parquet.`{file}` ORDER BY n").rows
    for value, row in zip(pq.read_table(file).column("v").to_pylist(), found, strict=True):
        for place, target in enumerate(targets):
            said = None if row[2 * place + 1] else [row[2 * place]]
            expected = alike(value, stored, target)
            assert said == expected or repr(said) == repr(expected), (value, target)


def alike(value: Any, stored: Primitive | Decimal, target: Primitive | Decimal) -> Any:
    """Convert a value both ways; return it in a list, None where it does not fit."""
    try:
        expected: Any = [converted(value, stored, target)]
    except ValueError:
        expected = None
    try:
        found: Any = convert(pa.array([value], arrow_type(stored)), stored, target).to_pylist()
    except DataError:
        found = None
    assert found == expected or repr(found) == repr(expected)  # NaN
    return found
