from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.encoding import Encoding, ListOf, MapOf, Member, Record, shown_type
from schemasync.core.names import Dialect
from schemasync.core.reshape import Keep, NoConversion, Reshape, lost_sql, reshape, reshape_sql, reshaped, target_of
from schemasync.core.types import Primitive
from schemasync.errors import SchemaError
from tests.core.builders import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, MICROS, STRING, dec, rec, union
from tests.strategies import encodings

SPARK, HIVE, TRINO = Dialect.SPARK, Dialect.HIVE, Dialect.TRINO


def shape(stored: Encoding, target: Encoding) -> Reshape:
    found = reshape(stored, target)
    assert not isinstance(found, NoConversion)
    return found


def sql(stored: Encoding, target: Encoding, dialect: Dialect = SPARK) -> str:
    return reshape_sql("t.`a`", shape(stored, target), dialect)


def lost(stored: Encoding, target: Encoding) -> str:
    return lost_sql("a", shape(stored, target))


def later(**fields: Encoding) -> Record:
    """Return a record whose members all began in version 2."""
    return Record(members=tuple(Member(name=n, encoding=e, since=2) for n, e in fields.items()))


def joined(*records: Record) -> Record:
    return Record(members=tuple(m for r in records for m in r.members))


def renamed(old: str, new: str) -> Record:
    return Record(members=(Member(name=new, encoding=INT, origin=old),))


def test_a_widened_leaf_is_cast() -> None:
    assert sql(INT, BIGINT) == "CAST(t.`a` AS bigint)"


@given(encodings())
def test_the_same_encoding_is_kept(encoding: Encoding) -> None:
    found = shape(encoding, encoding)
    assert (found, reshape_sql("x", found, HIVE), lost_sql("x", found)) == (Keep(target=shown_type(encoding)), "x", "")


@given(encodings(), encodings())
def test_what_a_reshape_makes_has_the_target_type(stored: Encoding, target: Encoding) -> None:
    found = reshape(stored, target)
    assert isinstance(found, NoConversion) or target_of(found) == shown_type(target)


def test_a_struct_is_built_anew_in_the_targets_order_and_null_stays_null() -> None:
    assert sql(rec(x=INT, gone=INT), rec(new=STRING, x=BIGINT)) == (
        "CASE WHEN t.`a` IS NOT NULL THEN named_struct('new', CAST(NULL AS string), 'x', CAST(t.`a`.`x` AS bigint)) END"
    )


def test_a_member_that_was_dropped_and_came_back_reads_null() -> None:
    assert sql(rec(x=INT, y=INT), joined(rec(x=INT), later(y=INT))) == (
        "CASE WHEN t.`a` IS NOT NULL THEN named_struct('x', t.`a`.`x`, 'y', CAST(NULL AS int)) END"
    )


def test_a_renamed_member_keeps_its_values() -> None:
    assert sql(rec(zip=INT), renamed("zip", "postcode")) == (
        "CASE WHEN t.`a` IS NOT NULL THEN named_struct('postcode', t.`a`.`zip`) END"
    )


def test_what_holds_for_structs_holds_inside_them() -> None:
    assert sql(rec(s=rec(x=INT, y=INT)), rec(s=joined(rec(x=INT), later(y=INT)))) == (
        "CASE WHEN t.`a` IS NOT NULL THEN named_struct('s', CASE WHEN t.`a`.`s` IS NOT NULL THEN "
        "named_struct('x', t.`a`.`s`.`x`, 'y', CAST(NULL AS int)) END) END"
    )


def test_members_inside_an_array_are_built_anew_element_by_element() -> None:
    assert sql(ListOf(element=rec(x=INT, y=INT)), ListOf(element=rec(x=INT))) == (
        "transform(t.`a`, e -> CASE WHEN e IS NOT NULL THEN named_struct('x', e.`x`) END)"
    )


def test_arrays_in_arrays_have_an_element_each() -> None:
    assert sql(ListOf(element=ListOf(element=INT)), ListOf(element=ListOf(element=BIGINT))) == (
        "transform(t.`a`, e -> transform(e, e -> CAST(e AS bigint)))"
    )


def entry(key: Encoding, value: Encoding) -> MapOf:
    return MapOf(key=key, value=value)


def test_keys_and_values_of_a_map_are_changed_apart() -> None:
    start = entry(INT, FLOAT)
    assert sql(start, entry(BIGINT, FLOAT)) == "transform_keys(t.`a`, (k, v) -> CAST(k AS bigint))"
    assert sql(start, entry(INT, DOUBLE)) == "transform_values(t.`a`, (k, v) -> CAST(v AS double))"
    assert sql(start, entry(BIGINT, DOUBLE)) == (
        "transform_values(transform_keys(t.`a`, (k, v) -> CAST(k AS bigint)), (k, v) -> CAST(v AS double))"
    )


def test_member_names_are_quoted() -> None:
    assert "e.`select`" in sql(ListOf(element=rec(select=INT)), ListOf(element=rec(select=BIGINT)))


def test_trino_builds_rows() -> None:
    assert sql(rec(x=INT), rec(x=BIGINT, y=STRING), TRINO) == (
        "CASE WHEN t.`a` IS NOT NULL THEN "
        'CAST(ROW(CAST(t.`a`."x" AS bigint), CAST(NULL AS varchar)) AS row(x bigint, y varchar)) END'
    )


def test_hive_builds_structs() -> None:
    assert sql(rec(x=INT), rec(x=BIGINT), HIVE) == (
        "CASE WHEN t.`a` IS NOT NULL THEN named_struct('x', CAST(t.`a`.`x` AS bigint)) END"
    )


def test_hive_writes_booleans_as_all_others_do_in_what_spark_stored_too() -> None:
    found = shape(BOOLEAN, STRING)
    said = "CASE WHEN a THEN 'true' WHEN NOT a THEN 'false' END"
    texts = [reshape_sql("a", found, dialect) for dialect in (HIVE, SPARK, TRINO)]
    assert texts == [said, said, "CAST(a AS varchar)"]


@pytest.mark.parametrize(
    ("stored", "target"),
    [(ListOf(element=INT), ListOf(element=BIGINT)), (entry(INT, INT), entry(INT, BIGINT))],
)
def test_hive_cannot_change_elements_and_says_so(stored: Encoding, target: Encoding) -> None:
    with pytest.raises(SchemaError, match="Compact the table first"):
        sql(stored, target, HIVE)


@pytest.mark.parametrize(
    ("stored", "target", "told"),
    [
        (DATE, INT, "date does not fit int"),
        (rec(x=rec(y=DATE)), rec(x=rec(y=INT)), ".x.y: date does not fit int"),
        (ListOf(element=DATE), ListOf(element=INT), ".element: date does not fit int"),
        (entry(STRING, DATE), entry(STRING, INT), ".value: date does not fit int"),
        (entry(DATE, INT), entry(INT, INT), ".key: date does not fit int"),
        (entry(STRING, INT), entry(INT, INT), ".key: string does not fit int"),
        (entry(rec(x=INT, y=INT), INT), entry(rec(x=INT), INT), ".key: struct<x:int,y:int> does not fit struct<x:int>"),
        (
            entry(ListOf(element=INT), INT),
            entry(ListOf(element=BIGINT), INT),
            ".key: array<int> does not fit array<bigint>",
        ),
        (rec(x=INT), union(INT), "struct<x:int> does not fit struct<member0:int>"),
        (INT, ListOf(element=INT), "int does not fit array<int>"),
    ],
)
def test_what_cannot_be_converted_is_named_with_its_place(stored: Encoding, target: Encoding, told: str) -> None:
    found = reshape(stored, target)
    assert isinstance(found, NoConversion)
    assert f"{found.path}: {found}".removeprefix(": ") == told


def test_keys_that_are_structs_may_gain_members() -> None:
    assert isinstance(reshape(entry(rec(x=INT), INT), entry(rec(x=BIGINT, y=INT), INT)), NoConversion) is False


@pytest.mark.parametrize(
    ("stored", "target"), [(INT, BIGINT), (INT, STRING), (DATE, MICROS), (BOOLEAN, INT), (dec(5, 2), STRING)]
)
def test_what_always_fits_is_not_asked_about(stored: Encoding, target: Encoding) -> None:
    assert lost(stored, target) == ""


def test_a_number_that_is_another_one_there_and_back_again_is_lost() -> None:
    assert lost(BIGINT, INT) == "(a IS NOT NULL AND NOT (try_cast(try_cast(a AS int) AS bigint) <=> a))"


def test_a_text_is_lost_unless_it_is_written_as_the_type_is() -> None:
    assert lost(STRING, dec(5, 2)) == (
        r"(a IS NOT NULL AND NOT (a RLIKE '^-?[0-9]+(\\.[0-9]{1,2})?\\z' AND try_cast(a AS decimal(5,2)) IS NOT NULL))"
    )


def test_values_inside_of_values_are_looked_at() -> None:
    inner = "(e IS NOT NULL AND NOT (try_cast(try_cast(e AS int) AS bigint) <=> e))"
    assert lost(ListOf(element=BIGINT), ListOf(element=INT)) == f"coalesce(exists(a, e -> {inner}), FALSE)"
    assert lost(entry(STRING, BIGINT), entry(STRING, INT)) == f"coalesce(exists(map_values(a), e -> {inner}), FALSE)"
    two = lost(rec(x=BIGINT, y=BIGINT, z=INT), rec(x=INT, y=INT, z=INT, new=INT))
    assert two == f"({inner.replace('e ', 'a.`x` ').replace('e)', 'a.`x`)').replace('(e', '(a.`x`')} OR " + (
        f"{inner.replace('e ', 'a.`y` ').replace('e)', 'a.`y`)').replace('(e', '(a.`y`')})"
    )


TAGGED = Record(members=(Member(name="member0", encoding=STRING), Member(name="member1", encoding=INT)), union=True)
UNTAGGED = Record(members=TAGGED.members[:1], union=True)


def test_values_of_a_branch_that_is_gone_are_looked_for() -> None:
    assert lost(TAGGED, UNTAGGED) == "(a.`member1` IS NOT NULL)"
    assert lost(rec(x=INT, y=INT), rec(x=INT)) == ""
    assert reshaped({"member0": "a", "member1": None}, shape(TAGGED, UNTAGGED)) == {"member0": "a"}
    with pytest.raises(ValueError, match="7 is of a branch that the union no longer has"):
        reshaped({"member0": None, "member1": 7}, shape(TAGGED, UNTAGGED))


@pytest.mark.parametrize(
    ("nested", "wider"),
    [
        (ListOf(element=INT), ListOf(element=BIGINT)),
        (entry(STRING, INT), entry(STRING, BIGINT)),
        (rec(x=INT), rec(x=BIGINT)),
    ],
)
def test_nested_values_that_always_fit_are_not_asked_about(nested: Encoding, wider: Encoding) -> None:
    assert lost(nested, wider) == ""


VALUES: list[tuple[Encoding, Encoding, Any, Any]] = [
    (INT, STRING, 42, "42"),
    (BOOLEAN, STRING, True, "true"),
    (BOOLEAN, STRING, False, "false"),
    (dec(5, 2), STRING, Number("1.50"), "1.50"),
    (DATE, STRING, date(2026, 1, 2), "2026-01-02"),
    (STRING, DATE, "2026-01-02", date(2026, 1, 2)),
    (STRING, INT, "-7", -7),
    (STRING, BOOLEAN, "true", True),
    (STRING, DOUBLE, "1e3", 1000.0),
    (STRING, dec(5, 2), "1.5", Number("1.5")),
    (BIGINT, INT, 7, 7),
    (INT, BOOLEAN, 1, True),
    (BOOLEAN, INT, True, 1),
    (DOUBLE, INT, 7.0, 7),
    (DOUBLE, FLOAT, 0.5, 0.5),
    (DOUBLE, dec(5, 2), 0.25, Number("0.25")),
    (DATE, MICROS, date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
    (MICROS, DATE, datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2)),
    (ListOf(element=INT), ListOf(element=STRING), [1, None], ["1", None]),
    (entry(INT, INT), entry(STRING, DOUBLE), {1: 2}, {"1": 2.0}),
    (rec(x=INT, gone=INT), rec(x=STRING, new=INT), {"x": 1, "gone": 2}, {"x": "1", "new": None}),
    (INT, STRING, None, None),
]


@pytest.mark.parametrize(("stored", "target", "value", "expected"), VALUES)
def test_one_value_is_reshaped(stored: Encoding, target: Encoding, value: Any, expected: Any) -> None:
    found = reshaped(value, shape(stored, target))
    assert (found, type(found)) == (expected, type(expected))


MISFITS: list[tuple[Encoding, Encoding, Any]] = [
    (BIGINT, INT, 2**31),
    (INT, BOOLEAN, 2),
    (DOUBLE, INT, 0.5),
    (DOUBLE, FLOAT, 0.1),
    (DOUBLE, FLOAT, 1e300),
    (DOUBLE, dec(5, 2), 0.125),
    (dec(5, 2), dec(4, 2), Number("123.45")),
    (STRING, dec(5, 2), "1.555"),
    (STRING, INT, " 7"),
    (STRING, INT, "1_0"),
    (STRING, BOOLEAN, "yes"),
    (STRING, DATE, "2026-02-30"),
    (MICROS, DATE, datetime(2026, 1, 2, 3, tzinfo=UTC)),
]


@pytest.mark.parametrize(("stored", "target", "value"), MISFITS)
def test_a_value_that_does_not_fit_is_refused(stored: Encoding, target: Encoding, value: Any) -> None:
    with pytest.raises(ValueError, match=r"does not fit|out of range|month"):
        reshaped(value, shape(stored, target))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_and_its_text_are_the_same_number(value: int) -> None:
    text = reshaped(value, shape(BIGINT, STRING))
    assert reshaped(text, shape(STRING, BIGINT)) == value


def test_not_a_number_stays_one() -> None:
    assert math.isnan(reshaped(float("nan"), shape(DOUBLE, FLOAT)))


def test_types_are_primitive_where_a_leaf_is() -> None:
    assert target_of(shape(INT, STRING)) is Primitive.STRING
