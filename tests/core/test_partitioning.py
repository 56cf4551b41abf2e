from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.encoding import Encoding
from schemasync.core.partitioning import (
    NULL_VALUE,
    Call,
    PartitionBy,
    PartitionColumn,
    date_regex,
    directory_of,
    parse_partition,
    partition_name,
    require_storable,
    resolve,
    segment_of,
    unusable_name,
    values_of,
)
from schemasync.core.types import Primitive
from schemasync.errors import DataError
from tests.core.builders import BIGINT, DATE, INT, MILLIS, STRING, col, dec, rec


def test_calls_are_read_from_the_inside_out() -> None:
    found = parse_partition("p", "YEAR(to_date(create_date, 'MM/dd/yyyy'))")
    assert found == PartitionBy(name="p", column="create_date", calls=(Call("to_date", ("MM/dd/yyyy",)), Call("year")))
    assert parse_partition("p", "`a b`") == PartitionBy(name="p", column="a b")
    assert parse_partition("p", "substr(c, 2, 3)").calls == (Call("substring", (2, 3)),)
    assert parse_partition("p", "trunc(c, 'MONTH')").calls == (Call("trunc", ("month",)),)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "no expression"),
        ("f(", "no expression"),
        (f"{'lower(' * 500}a{')' * 500}", "too many functions"),
        ("1", "1 is neither a column nor a function of one"),
        ("a.b", "a.b is neither a column"),
        ("id % 4", "neither a column nor a function"),
        ("a; b", "neither a column"),
        ("year(1)", "1 is neither a column"),
        ("year(a, b)", "takes texts and whole numbers behind its first argument"),
        ("left(a, 1.5)", "takes texts and whole numbers"),
        ("left(a)", "left with 1 arguments is none of left(string, length)"),
        ("md5(a)", "there is no function md5 here"),
        ("left(a, 0)", "left is called as left(string, length)"),
        ("left(a, 2147483648)", "left is called as left(string, length)"),
        ("substring(a, 0, 2)", "substring is called as"),
        ("pmod(a, 0)", "pmod is called as"),
        ("trunc(a, 'week')", "trunc is called as"),
        ("to_date(a, 'MM-dd')", "to_date is called as"),
        ("to_date(a, 'YYYY')", "to_date is called as"),
        ("to_date(a, 'yyyy yyyy')", "to_date is called as"),
        ("date_format(a, '%Y')", "date_format is called as"),
        ("date_format(a, 'w')", "date_format is called as"),
        ("date_format(a, '-')", "date_format is called as"),
        ("date_format(a, 1)", "date_format is called as"),
    ],
)
def test_what_is_no_partition_is_refused_with_the_reason(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_partition("p", expression)


def resolved(expression: str, encoding: Encoding = STRING) -> PartitionColumn:
    columns = [col("other"), col("Name", encoding)]
    return resolve(parse_partition("p", expression), columns, lambda column: f"{column.name.lower()}__2")


@pytest.mark.parametrize(
    ("expression", "encoding", "type_"),
    [
        ("name", INT, Primitive.BIGINT),
        ("name", BIGINT, Primitive.BIGINT),
        ("NAME", DATE, Primitive.DATE),
        ("year(name)", DATE, Primitive.INT),
        ("to_date(name)", MILLIS, Primitive.DATE),
        ("date_format(name, 'yyyy')", MILLIS, Primitive.STRING),
        ("pmod(name, 4)", INT, Primitive.INT),
        ("pmod(name, 4)", BIGINT, Primitive.INT),
    ],
)
def test_the_type_follows_from_the_columns(expression: str, encoding: Encoding, type_: Primitive) -> None:
    found = resolved(expression, encoding)
    assert (found.name, found.type, found.source) == ("p", type_, "name__2")


@pytest.mark.parametrize(
    ("expression", "encoding", "why"),
    [
        ("gone", STRING, "there is no column gone (but other, Name)"),
        ("year(name)", STRING, "year(date or timestamp) does not take a string"),
        ("hour(name)", DATE, "hour(timestamp) does not take a date"),
        ("to_date(name)", STRING, "does not take a string"),
        ("left(name, 1)", rec(a=INT), "does not take a struct"),
        ("name", MILLIS, "a timestamp is no value of a partition"),
        ("name", dec(5, 2), "a decimal(5,2) is no value of a partition"),
        ("name", rec(a=INT), "is no value of a partition"),
    ],
)
def test_an_expression_that_does_not_fit_its_column_is_refused(expression: str, encoding: Encoding, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        resolved(expression, encoding)


@pytest.mark.parametrize(("name", "usable"), [("id", False), ("segment", False), ("_p", False), ("p", True)])
def test_a_name_must_be_free(name: str, usable: bool) -> None:
    assert (unusable_name(name, ["ID"]) == "") is usable


@pytest.mark.parametrize(
    ("pattern", "text", "day"),
    [
        ("MM/dd/yyyy", "02/29/2024", "2024-02-29"),
        ("yyyyMM", "202402", "2024-02-01"),
        ("yyyy", "2024", "2024-01-01"),
        ("dd.MM.yyyy HH", "01.12.2024 23", "2024-12-01"),
    ],
)
def test_a_text_of_a_pattern_becomes_a_day(pattern: str, text: str, day: str) -> None:
    regex, replacement = date_regex(pattern)
    python = regex.replace(r"\z", r"\Z")
    assert re.sub(python, replacement, text) == day
    assert re.search(python, text + "\n") is None


@given(values=st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=1))
def test_values_come_back_from_a_partitions_name(values: list[str | None]) -> None:
    names = [f"p{n}" for n in range(len(values))]
    name = partition_name("base_s00000001", directory_of(names, values))
    assert (segment_of(name), name.count("/")) == ("base_s00000001", len(values))
    assert values_of(name) == ("base_s00000001", *(value or NULL_VALUE for value in values))


def test_a_segment_without_user_partitions_is_one() -> None:
    assert (partition_name("delta_00000001"), values_of("delta_00000001")) == ("delta_00000001", ("delta_00000001",))


NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "values",
    [(), ("",), ("%00",), ("x" * 253,), ("𝄞" * 63,), ("%" * 84,), ("x" * 238,) * 3],
    ids=lambda values: repr(values)[:10],
)
def test_what_a_metastore_and_a_directory_hold_is_a_partition(values: tuple[str, ...]) -> None:
    require_storable(directory_of(NAMES[: len(values)], values))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (("x" * 254,), "a is 'x{40}'... of 254 characters"),
        (("y", "𝄞" * 64), "b is '𝄞{40}'... of 64 characters"),
        (("%" * 85,), "a is '%{40}'... of 85 characters"),
        (("x" * 240,) * 4, "a=x{78}... has 971 characters"),
    ],
)
def test_values_that_nothing_holds_are_refused(values: tuple[str, ...], why: str) -> None:
    with pytest.raises(DataError, match=re.escape(why.partition("{")[0])) as refused:
        require_storable(directory_of(NAMES[: len(values)], values))
    assert re.search(why, str(refused.value))


def test_a_value_with_a_nul_is_refused() -> None:
    with pytest.raises(DataError, match=r"b is 'D.x00', and no directory can have a NUL in its name"):
        require_storable(directory_of(NAMES[:2], ["y", "D\0"]))


@pytest.mark.parametrize(
    ("expression", "needed"),
    [("c", True), ("left(c, 4)", True), ("to_date(left(c, 4), 'yyyy')", True), ("year(to_date(c, 'yyyy'))", False)],
)
def test_only_days_are_read_of_what_is_no_text(expression: str, needed: bool) -> None:
    column = resolve(parse_partition("p", expression), [col("c", STRING)], lambda c: c.name)
    assert column.needs_text is needed
