from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.defaults import Value, clock_text, decimal_text, default_value, literal_sql
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, shown_type
from schemasync.core.names import Dialect
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.errors import SchemaError
from tests.core.builders import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MICROS,
    MILLIS,
    STRING,
    dec,
    rec,
    union,
)
from tests.strategies import encodings

P = Primitive
SPARK, HIVE, TRINO = Dialect.SPARK, Dialect.HIVE, Dialect.TRINO
TINY = Leaf(type=P.TINYINT)
ZONED = Leaf(type=P.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP)
TIME_MS, TIME_US, TIME_NS = (
    Leaf(type=P.STRING, meaning=m) for m in (Meaning.TIME_MILLIS, Meaning.TIME_MICROS, Meaning.TIME_NANOS)
)
VARIABLE = Leaf(type=P.STRING, meaning=Meaning.VARIABLE_DECIMAL)
UUID_BYTES = Leaf(type=P.STRING, meaning=Meaning.UUID_BYTES)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
NEAREST = struct.unpack("<f", struct.pack("<f", 0.1))[0]


@pytest.mark.parametrize(
    ("encoding", "default", "expected"),
    [
        (INT, 42, 42), (INT, -(2**31), -(2**31)), (TINY, 127, 127), (BIGINT, 2**63 - 1, 2**63 - 1),
        (BOOLEAN, True, True), (STRING, "it's ü", "it's ü"), (STRING, "", ""), (BINARY, "\x00ÿA", b"\x00\xffA"),
        (DOUBLE, 1, 1.0), (DOUBLE, 1.5e300, 1.5e300), (DOUBLE, "-Infinity", float("-inf")), (FLOAT, 0.1, NEAREST),
        (dec(5, 2), "\x00\x96", Number("1.50")), (dec(5, 2), "ÿj", Number("-1.50")), (dec(5, 0), "", Number(0)),
        (dec(38, 10), "\x01", Number("1E-10")),
        (DATE, 0, date(1970, 1, 1)), (DATE, -1, date(1969, 12, 31)),
        (MILLIS, -1, EPOCH - timedelta(milliseconds=1)), (MICROS, -1, EPOCH - timedelta(microseconds=1)),
        (ZONED, "2020-01-02T03:04:05.123456789+02:00", datetime(2020, 1, 2, 1, 4, 5, 123456, UTC)),
        (ZONED, "1970-01-01T00:00:00Z", EPOCH),
        (DATE, 2_146_033_979, date(9999, 12, 31)), (DATE, -(2**31), date(1, 1, 1)),
        (MILLIS, 2**63 - 1, datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)), (ZONED, "-infinity", FIRST),
        (MICROS, -(2**63), FIRST),
        (TIME_MS, 3_723_004, "01:02:03.004"), (TIME_US, 1, "00:00:00.000001"),
        (TIME_NS, 86_399 * 10**9, "23:59:59.000000000"),
        (VARIABLE, {"scale": 2, "value": "\x00\x96"}, "1.50"), (VARIABLE, {"scale": -2, "value": "\x05"}, "500"),
        (UUID_BYTES, bytes(range(16)).decode("iso-8859-1"), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (ListOf(element=DATE), [0, None], [date(1970, 1, 1), None]), (ListOf(element=INT), [], []),
        (MapOf(key=STRING, value=INT), {"a": 1}, {"a": 1}),
        (MapOf(key=INT, value=DATE, entries=True), [{"key": 7, "value": 0}], {7: date(1970, 1, 1)}),
        (rec(a=INT, b=rec(c=DATE)), {"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": date(1970, 1, 2)}}),
        (rec(a=INT, b=STRING), {"a": 1, "z": 2}, {"a": 1, "b": None}),
        (union(INT, STRING), 5, {"member0": 5, "member1": None}), (union(INT, STRING), None, None),
        (union(INT, STRING), "x", {"member0": None, "member1": "x"}),
        (union(DOUBLE, STRING), "5", {"member0": None, "member1": "5"}),
        (union(FLOAT, STRING), "nan", {"member0": None, "member1": "nan"}),
        (union(DOUBLE, STRING), "NaN", {"member0": None, "member1": "NaN"}),
        (union(DOUBLE, BINARY), "5", {"member0": None, "member1": b"5"}),
        (union(DOUBLE, STRING), 5, {"member0": 5.0, "member1": None}),
        (union(DOUBLE, BOOLEAN), "-Infinity", {"member0": float("-inf"), "member1": None}),
        (union(FLOAT, DOUBLE), 1e300, {"member0": None, "member1": 1e300}),
        (union(rec(x=INT), rec(y=INT)), {"y": 1}, {"member0": None, "member1": {"y": 1}}),
        (union(INT, ListOf(element=INT)), [1], {"member0": None, "member1": [1]}),
        (union(Leaf(type=P.STRING, symbols=("A",)), STRING), "B", {"member0": None, "member1": "B"}),
    ],
)  # fmt: skip
def test_a_default_is_decoded_like_a_value(encoding: Encoding, default: Any, expected: Value) -> None:
    found = default_value(encoding, json.dumps(default))
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (INT, None), (INT, "null"), (INT, "not json"), (INT, '"1"'), (INT, "true"), (INT, "1.5"), (INT, str(2**31)),
        (TINY, "128"), (BIGINT, str(-(2**63) - 1)), (BOOLEAN, "0"), (STRING, "1"), (BINARY, '"\\u0100"'),
        (BINARY, "[1]"),
        (DOUBLE, "true"), (DOUBLE, '"many"'), (DOUBLE, "[]"), (FLOAT, "1e300"), (dec(2, 0), '"d"'), (dec(2, 0), "1"),
        (DATE, '"today"'), (MICROS, "1.5"), (ZONED, '"yesterday"'),
        (ZONED, '"2020-01-02T03:04:05"'), (ZONED, "1"), (TIME_MS, "0.5"), (VARIABLE, "[]"), (VARIABLE, '{"scale": 1}'),
        (VARIABLE, '{"value": "a"}'), (UUID_BYTES, '"short"'),
        (ListOf(element=STRING), '"abc"'), (ListOf(element=INT), '["a"]'), (MapOf(key=STRING, value=INT), "[]"),
        (MapOf(key=INT, value=INT, entries=True), "{}"), (MapOf(key=INT, value=INT, entries=True), "[1]"),
        (MapOf(key=rec(a=INT), value=INT, entries=True), '[{"key": {"a": 1}, "value": 1}]'),
        (rec(a=INT), "[]"), (rec(a=INT), '{"a": "x"}'), (union(INT, STRING), "1.5"),
        (Leaf(type=P.DATE), "1"),
    ],
)  # fmt: skip
def test_what_is_no_default_of_the_type_is_none(encoding: Encoding, text: str | None) -> None:
    assert default_value(encoding, text) is None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@given(encodings(), _json)
def test_any_json_is_decoded_or_passed_over_and_what_is_decoded_has_a_literal(encoding: Encoding, value: Any) -> None:
    type_ = shown_type(encoding)
    decoded = default_value(encoding, json.dumps(value))
    assert literal_sql(decoded, type_, SPARK)
    assert literal_sql(decoded, type_, TRINO)


@given(st.integers(0, 86_400 * 10**9 - 1))
def test_a_time_of_day_keeps_every_digit(nanos: int) -> None:
    text = clock_text(nanos, digits=9)
    hours, minutes, seconds = text.split(":")
    assert (int(hours) * 60 + int(minutes)) * 60 * 10**9 + int(seconds.replace(".", "")) == nanos


@given(st.integers(), st.integers(0, 50))
def test_a_variable_decimal_is_written_in_full(unscaled: int, scale: int) -> None:
    raw = unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)
    text = decimal_text(scale, raw)
    assert "E" not in text
    assert Number(text) == Number(f"{unscaled}E-{scale}")


def test_a_variable_decimal_may_have_as_many_digits_as_postgresql_gives_it() -> None:
    unscaled = 10**131_072
    assert decimal_text(2, unscaled.to_bytes(60_000, "big")) == "1" + "0" * 131_070 + ".00"


@pytest.mark.parametrize("scale", [16_384, -16_384, 2**31 - 1])
def test_a_scale_alone_cannot_fill_the_memory(scale: int) -> None:
    with pytest.raises(ValueError, match=f"a number of scale {scale}"):
        decimal_text(scale, b"\x01")


@pytest.mark.parametrize(("micros", "text"), [(-1, "-00:00:00.000001"), (-3_020_399_000_000, "-838:59:59.000000")])
def test_a_time_may_be_a_negative_duration(micros: int, text: str) -> None:
    assert clock_text(micros, digits=6) == text


def test_an_empty_variable_decimal_is_zero() -> None:
    assert decimal_text(0, b"") == "0"


A_B = Struct(fields=(StructField(name="a", type=P.INT), StructField(name="b", type=P.STRING)))


SAME: list[tuple[Value, Type, str]] = [
    (7, Decimal(precision=9, scale=2), "CAST(7 AS decimal(9,2))"),
    (0.1, P.DOUBLE, "CAST('0.1' AS double)"),
    (-0.0, P.DOUBLE, "CAST('-0.0' AS double)"),
    (1e300, P.DOUBLE, "CAST('1e+300' AS double)"),
    (float("nan"), P.DOUBLE, "CAST('NaN' AS double)"),
    (float("-inf"), P.DOUBLE, "CAST('-Infinity' AS double)"),
    (Number("-1E-10"), Decimal(precision=38, scale=10), "CAST('-0.0000000001' AS decimal(38,10))"),
    (-(2**63), P.BIGINT, "CAST('-9223372036854775808' AS bigint)"),
    (date(1, 1, 1), P.DATE, "CAST('0001-01-01' AS date)"),
    (True, P.BOOLEAN, "TRUE"),
    (False, P.BOOLEAN, "FALSE"),
]


@pytest.mark.parametrize(("value", "type_", "expected"), SAME)
def test_a_literal_that_every_dialect_writes_alike(value: Value, type_: Type, expected: str) -> None:
    assert {literal_sql(value, type_, d) for d in Dialect} == {expected}


SPECIAL: list[tuple[Value, Type, str, str, str]] = [
    (None, P.INT, "CAST(NULL AS int)", "CAST(NULL AS int)", "CAST(NULL AS integer)"),
    (-5, P.BIGINT, "CAST(-5 AS bigint)", "CAST(-5 AS bigint)", "CAST(-5 AS bigint)"),
    ("it's é", P.STRING, "'it\\'s é'", "'it\\'s é'", "'it''s é'"),
    ("", P.STRING, "''", "''", "''"),
    ("a'b\\", P.STRING, "CAST(unhex('6127625C') AS string)", "CAST(unhex('6127625C') AS string)", "'a''b\\'"),
    ("\n", P.STRING, "CAST(unhex('0A') AS string)", "CAST(unhex('0A') AS string)", "'\n'"),
    ("${", P.STRING, "CAST(unhex('247B') AS string)", "CAST(unhex('247B') AS string)", "'${'"),
    ("€", P.STRING, "CAST(unhex('E282AC') AS string)", "CAST(unhex('E282AC') AS string)", "'€'"),
    (b"\x00\xff", P.BINARY, "unhex('00FF')", "unhex('00FF')", "X'00FF'"),
    (float("inf"), P.FLOAT, "CAST('Infinity' AS float)", "CAST('Infinity' AS float)", "CAST('Infinity' AS real)"),
    (
        datetime(1, 2, 3, 4, 5, 6, 7, UTC), P.TIMESTAMP,
        "CAST('0001-02-03 04:05:06.000007+00:00' AS timestamp)",
        "CAST('0001-02-03 04:05:06.000007' AS timestamp)",
        "CAST('0001-02-03 04:05:06.000007' AS timestamp(6))",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "type_", "spark", "hive", "trino"), SPECIAL)
def test_a_literal_in_each_dialect(value: Value, type_: Type, spark: str, hive: str, trino: str) -> None:
    assert [literal_sql(value, type_, d) for d in (SPARK, HIVE, TRINO)] == [spark, hive, trino]


NESTED: list[tuple[Value, Type, str, str]] = [
    (
        {"a": 1, "b": None}, A_B,
        "named_struct('a', CAST(1 AS int), 'b', CAST(NULL AS string))",
        "CAST(ROW(CAST(1 AS integer), CAST(NULL AS varchar)) AS row(a integer, b varchar))",
    ),
    ([1], Array(element=P.INT), "array(CAST(1 AS int))", "CAST(ARRAY[CAST(1 AS integer)] AS array(integer))"),
    ([], Array(element=P.INT), "CASE WHEN FALSE THEN array(CAST(NULL AS int)) ELSE array() END",
     "CAST(ARRAY[] AS array(integer))"),
    (
        {"k": 1, "l": 2}, Map(key=P.STRING, value=P.INT),
        "map('k', CAST(1 AS int), 'l', CAST(2 AS int))",
        "CAST(MAP(ARRAY['k', 'l'], ARRAY[CAST(1 AS integer), CAST(2 AS integer)]) AS map(varchar, integer))",
    ),
    ({}, Map(key=P.STRING, value=P.INT),
     "CASE WHEN FALSE THEN map(CAST(NULL AS string), CAST(NULL AS int)) ELSE map() END",
     "CAST(MAP(ARRAY[], ARRAY[]) AS map(varchar, integer))"),
    (None, A_B, "CASE WHEN FALSE THEN named_struct('a', CAST(NULL AS int), 'b', CAST(NULL AS string)) END",
     "CAST(NULL AS row(a integer, b varchar))"),
    (None, Map(key=P.STRING, value=Array(element=P.INT)),
     "CASE WHEN FALSE THEN map(CAST(NULL AS string), CASE WHEN FALSE THEN array(CAST(NULL AS int)) END) END",
     "CAST(NULL AS map(varchar, array(integer)))"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "type_", "spark", "trino"), NESTED)
def test_a_nested_literal(value: Value, type_: Type, spark: str, trino: str) -> None:
    assert [literal_sql(value, type_, d) for d in (SPARK, TRINO)] == [spark, trino]


FILLED: list[tuple[Value, Type]] = [
    ({"a": 1, "b": "x"}, A_B),
    ([{"a": 1, "b": None}, None], Array(element=A_B)),
    ({"k": [1]}, Map(key=P.STRING, value=Array(element=P.INT))),
    (None, Map(key=P.STRING, value=A_B)),
    ([], Array(element=P.STRING)),
]


@pytest.mark.parametrize(("value", "type_"), FILLED)
def test_hive_reads_nested_literals_as_spark_writes_them(value: Value, type_: Type) -> None:
    assert literal_sql(value, type_, HIVE) == literal_sql(value, type_, SPARK)


EMPTY: list[tuple[Value, Type]] = [
    ([], Array(element=P.INT)),
    ({}, Map(key=P.STRING, value=P.INT)),
    ({"a": []}, Struct(fields=(StructField(name="a", type=Array(element=P.INT)),))),
]


@pytest.mark.parametrize(("value", "type_"), EMPTY)
def test_hive_says_so_where_its_sql_has_no_such_literal(value: Value, type_: Type) -> None:
    with pytest.raises(SchemaError, match="Compact the table first"):
        literal_sql(value, type_, HIVE)


@given(st.uuids())
def test_a_uuid_reads_as_its_text(uuid: UUID) -> None:
    assert default_value(UUID_BYTES, json.dumps(uuid.bytes.decode("iso-8859-1"))) == str(uuid)
