from __future__ import annotations

import pytest
from hypothesis import given

from schemasync.core.encoding import Encoding, ListOf, MapOf, shown_type
from schemasync.core.names import Dialect
from schemasync.core.reshape import Reshape, reshape_sql
from schemasync.core.types import Array, Map, Primitive, Type
from schemasync.errors import SchemaError
from tests.core.builders import BIGINT, DOUBLE, FLOAT, INT, STRING, rec
from tests.strategies import types

SPARK, HIVE, TRINO = Dialect.SPARK, Dialect.HIVE, Dialect.TRINO


def sql(stored: Encoding, kept: Encoding, target: Encoding, dialect: Dialect = SPARK) -> str:
    shape = Reshape(stored=shown_type(stored), kept=shown_type(kept), target=shown_type(target))
    return reshape_sql("t.`a`", shape, dialect)


def test_a_widened_leaf_is_cast() -> None:
    assert sql(INT, INT, BIGINT) == "CAST(t.`a` AS bigint)"


@given(types())
def test_the_same_type_needs_nothing(type_: Type) -> None:
    shape = Reshape(stored=type_, kept=type_, target=type_)
    assert (shape.is_identity, reshape_sql("x", shape, HIVE)) == (True, "x")


def test_a_struct_is_built_anew_in_the_targets_order_and_null_stays_null() -> None:
    assert sql(rec(x=INT, gone=INT), rec(x=INT), rec(new=STRING, x=BIGINT)) == (
        "CASE WHEN t.`a` IS NULL THEN NULL "
        "ELSE named_struct('new', CAST(NULL AS string), 'x', CAST(t.`a`.`x` AS bigint)) END"
    )


def test_a_member_that_was_dropped_and_came_back_reads_null() -> None:
    whole, less = rec(x=INT, y=INT), rec(x=INT)
    assert sql(whole, less, whole) == (
        "CASE WHEN t.`a` IS NULL THEN NULL ELSE named_struct('x', t.`a`.`x`, 'y', CAST(NULL AS int)) END"
    )


def test_what_holds_for_structs_holds_inside_them() -> None:
    whole, less = rec(s=rec(x=INT, y=INT)), rec(s=rec(x=INT))
    assert sql(whole, less, whole) == (
        "CASE WHEN t.`a` IS NULL THEN NULL ELSE named_struct('s', CASE WHEN t.`a`.`s` IS NULL THEN NULL "
        "ELSE named_struct('x', t.`a`.`s`.`x`, 'y', CAST(NULL AS int)) END) END"
    )


def test_members_inside_an_array_are_built_anew_element_by_element() -> None:
    whole, less = ListOf(element=rec(x=INT, y=INT)), ListOf(element=rec(x=INT))
    assert sql(whole, less, whole) == (
        "transform(t.`a`, e -> CASE WHEN e IS NULL THEN NULL ELSE named_struct('x', e.`x`, 'y', CAST(NULL AS int)) END)"
    )


def test_arrays_in_arrays_have_an_element_each() -> None:
    nested = ListOf(element=ListOf(element=INT))
    assert sql(nested, nested, ListOf(element=ListOf(element=BIGINT))) == (
        "transform(t.`a`, e -> transform(e, e -> CAST(e AS bigint)))"
    )


def test_keys_and_values_of_a_map_are_changed_apart() -> None:
    def entry(key: Encoding, value: Encoding) -> MapOf:
        return MapOf(key=key, value=value)

    start = entry(INT, FLOAT)
    assert sql(start, start, entry(BIGINT, FLOAT)) == "transform_keys(t.`a`, (k, v) -> CAST(k AS bigint))"
    assert sql(start, start, entry(INT, DOUBLE)) == "transform_values(t.`a`, (k, v) -> CAST(v AS double))"
    assert sql(start, start, entry(BIGINT, DOUBLE)) == (
        "transform_values(transform_keys(t.`a`, (k, v) -> CAST(k AS bigint)), (k, v) -> CAST(v AS double))"
    )


def test_member_names_are_quoted() -> None:
    before, after = ListOf(element=rec(select=INT)), ListOf(element=rec(select=BIGINT))
    assert "e.`select`" in sql(before, before, after)


def test_trino_builds_rows() -> None:
    assert sql(rec(x=INT), rec(x=INT), rec(x=BIGINT, y=STRING), TRINO) == (
        "CASE WHEN t.`a` IS NULL THEN NULL ELSE "
        'CAST(ROW(CAST(t.`a`."x" AS bigint), CAST(NULL AS varchar)) AS row(x bigint, y varchar)) END'
    )


def test_hive_builds_structs() -> None:
    assert sql(rec(x=INT), rec(x=INT), rec(x=BIGINT), HIVE) == (
        "CASE WHEN t.`a` IS NULL THEN NULL ELSE named_struct('x', CAST(t.`a`.`x` AS bigint)) END"
    )


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        (Array(element=Primitive.INT), Array(element=Primitive.BIGINT)),
        (Map(key=Primitive.INT, value=Primitive.INT), Map(key=Primitive.INT, value=Primitive.BIGINT)),
    ],
)
def test_hive_cannot_change_elements_and_says_so(stored: Type, target: Type) -> None:
    with pytest.raises(SchemaError, match="Compact the table first"):
        reshape_sql("a", Reshape(stored=stored, kept=stored, target=target), HIVE)


def test_a_member_in_another_case_is_read_where_it_is_stored() -> None:
    assert sql(rec(State=INT), rec(State=INT), rec(state=BIGINT)) == (
        "CASE WHEN t.`a` IS NULL THEN NULL ELSE named_struct('state', CAST(t.`a`.`State` AS bigint)) END"
    )
