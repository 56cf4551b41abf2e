from __future__ import annotations

import pytest

from schemasync.core.names import Dialect
from schemasync.core.placeholders import TYPES, elements, is_placeholder_sql
from schemasync.core.types import Array, Map, Primitive, Type

SPARK, HIVE, TRINO = Dialect.SPARK, Dialect.HIVE, Dialect.TRINO
UUID = "8e9f8ab4-ddf5-371c-a6d8-1cd3ff26f96d"


def array(element: Primitive) -> Array:
    return Array(element=element)


def bytes_as(element: Primitive) -> str:
    return ", ".join(f"CAST({number} AS {element.value})" for number in (39, -61, -87))


TEXTS, MAP = array(Primitive.STRING), Map(key=Primitive.STRING, value=Primitive.STRING)
CONDITIONS: list[tuple[Type, tuple[Dialect, ...], str]] = [
    (Primitive.STRING, (SPARK, HIVE), "x = '\\'é'"),
    (Primitive.STRING, (TRINO,), "x = '''é'"),
    (Primitive.BINARY, (SPARK, HIVE), "x = unhex('27C3A9')"),
    (Primitive.BINARY, (TRINO,), "x = X'27C3A9'"),
    (
        TEXTS,
        (SPARK, HIVE),
        f"(size(x) = 1 AND array_contains(x, '\\'é') OR size(x) = 1 AND array_contains(x, '{UUID}'))",
    ),
    (TEXTS, (TRINO,), f"(x = ARRAY['''é'] OR x = ARRAY['{UUID}'])"),
    (array(Primitive.BINARY), (SPARK, HIVE), "size(x) = 1 AND array_contains(x, unhex('27C3A9'))"),
    (array(Primitive.BINARY), (TRINO,), "x = ARRAY[X'27C3A9']"),
    *(
        (array(element), dialects, condition)
        for element in (Primitive.SMALLINT, Primitive.INT, Primitive.BIGINT)
        for dialects, condition in (
            ((SPARK, HIVE), f"array_contains(array(x), array({bytes_as(element)}))"),
            ((TRINO,), "x = ARRAY[39, -61, -87]"),
        )
    ),
    (
        MAP,
        (SPARK, HIVE),
        "size(x) = 1 AND array_contains(map_keys(x), '\\'é') AND array_contains(map_values(x), '\\'é')",
    ),
    (MAP, (TRINO,), "cardinality(x) = 1 AND element_at(x, '''é') = '''é'"),
]


@pytest.mark.parametrize(("type_", "dialects", "condition"), CONDITIONS)
def test_a_placeholder_is_found_in_its_form(type_: Type, dialects: tuple[Dialect, ...], condition: str) -> None:
    assert {is_placeholder_sql("x", type_, "'é", dialect) for dialect in dialects} == {condition}


def test_a_placeholder_that_not_every_engine_reads_as_text_is_asked_for_by_its_bytes() -> None:
    assert is_placeholder_sql("x", Primitive.STRING, "\u20ac", SPARK) == "x = CAST(unhex('E282AC') AS string)"


def test_every_type_has_its_form_in_every_dialect() -> None:
    told = {(type_, dialect) for type_, dialects, _ in CONDITIONS for dialect in dialects}
    assert told == {(type_, dialect) for type_ in TYPES for dialect in Dialect}


def test_a_uuid_is_made_of_the_default_as_java_makes_one() -> None:
    """UUID.nameUUIDFromBytes of its bytes."""
    assert elements("__debezium_unavailable_value", TEXTS)[1] == ("b68a35a7-17ad-35b3-af2a-ae46edb4545a",)
