from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.names import Dialect
from schemasync.core.ports import HiveColumn
from schemasync.core.spark_schema import PREFIX, disagreement, holds, read_fields, rewritten, without_float_dictionaries
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive
from tests.strategies import types

ID = HiveColumn(name="id", type="bigint")
NAME = HiveColumn(name="fullname", type="struct<a:int,B:array<string>>", comment="who")
SEGMENT = HiveColumn(name="segment", type="string")


def field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def copy(*fields: dict[str, Any]) -> dict[str, str]:
    return {PREFIX: json.dumps({"type": "struct", "fields": fields})}


ARRAY = {"type": "array", "elementType": "string", "containsNull": False}
STRUCT = {"type": "struct", "fields": [field("a", "integer", comment="x"), field("B", ARRAY)]}


def test_the_copy_is_written_from_hives_columns_and_names_keep_their_case() -> None:
    old = copy(field("ID", "integer"), field("fullName", STRUCT, comment="old", extra=1))
    found = rewritten({**old, "team": "blue"}, (ID, NAME), (SEGMENT,))
    wanted = [field("ID", "long"), field("fullName", STRUCT, extra=1, comment="who"), field("segment", "string")]
    fields = json.loads(found.pop(PREFIX))["fields"]
    assert (fields, found) == (
        wanted,
        {"team": "blue", f"{PREFIX}.numPartCols": "1", f"{PREFIX}.partCol.0": "segment"},
    )


def test_a_long_copy_is_split_and_read_again() -> None:
    columns = tuple(HiveColumn(name=f"c{n}", type="map<string,decimal(9,2)>", comment="x" * 200) for n in range(40))
    found = rewritten({}, columns, ())
    fields = read_fields(found)
    assert fields is not None
    assert max(len(value) for value in found.values()) <= 4000
    assert [(f.name, f.comment) for f in fields] == [(c.name, c.comment) for c in columns]


def test_splitting_leaves_nothing_of_the_copy_before() -> None:
    split = {f"{PREFIX}.numParts": "2", f"{PREFIX}.part.0": "{", f"{PREFIX}.part.1": "}", f"{PREFIX}.numPartCols": "3"}
    assert rewritten(split, (ID,), ()).keys() == {PREFIX}


def test_a_type_that_is_unknown_here_leaves_spark_to_hives_columns() -> None:
    odd = HiveColumn(name="x", type="varchar(10)")
    assert rewritten({**copy(field("x", "string")), "team": "blue"}, (odd,), ()) == {"team": "blue"}


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {PREFIX: "{"},
        {PREFIX: "[]"},
        {PREFIX: '{"fields": [{"type": "long"}]}'},
        {f"{PREFIX}.numParts": "2", f"{PREFIX}.part.0": '{"fields": []}'},
        {f"{PREFIX}.numParts": "two"},
    ],
)
def test_a_copy_that_is_missing_partial_or_mangled_is_none(properties: dict[str, str]) -> None:
    assert (read_fields(properties), disagreement(properties, (ID,))) == (None, "it is missing, or parts of it are")


def test_other_columns_types_and_comments_are_named() -> None:
    odd = HiveColumn(name="odd", type="varchar(10)")
    assert [
        disagreement(
            copy(field("Id", "long"), field("odd", "string"), field("segment", "string")), (ID, odd), (SEGMENT,)
        ),
        disagreement(copy(field("Id", "long")), (ID, NAME)),
        disagreement(copy(field("id", "integer"), field("fullname", STRUCT)), (ID, NAME)),
        disagreement(copy(field("id", "long"), field("fullname", STRUCT, comment="old")), (ID, NAME)),
    ] == ["", "it has the columns Id", "it has other types of id", "it has other comments of fullname"]


@given(types(), types())
def test_a_written_copy_holds_the_types_that_it_was_written_from_and_no_other(one: Any, other: Any) -> None:
    column = HiveColumn(name="c", type=print_type(one, Dialect.HIVE))
    fields = read_fields(rewritten({}, (column,), ()))
    assert fields is not None
    assert (holds(fields[0], one), holds(fields[0], other)) == (True, one == other)


@given(st.sampled_from(list(Primitive)))
def test_writing_again_changes_nothing(type_: Primitive) -> None:
    column = HiveColumn(name="c", type=type_.value, comment="x")
    once = rewritten({"team": "blue"}, (column,), (SEGMENT,))
    assert rewritten(once, (column,), (SEGMENT,)) == once


def test_floats_and_those_in_structs_get_no_dictionary() -> None:
    point = {"type": "struct", "fields": [field("x", "double"), field("n", "long"), field("in", STRUCT)]}
    array = {"type": "array", "elementType": "double", "containsNull": True}
    schema = {
        "type": "struct",
        "fields": [field("f", "float"), field("s", "string"), field("p", point), field("a", array)],
    }
    assert without_float_dictionaries(schema) == {
        "parquet.enable.dictionary#f": "false",
        "parquet.enable.dictionary#p.x": "false",
    }
