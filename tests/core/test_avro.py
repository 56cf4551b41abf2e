from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.avro import read_key_schema, read_value_schema, routing_fields, schema_fingerprint
from schemasync.core.encoding import Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.names import Dialect
from schemasync.core.schema import Column
from schemasync.core.type_strings import print_type
from schemasync.core.types import Decimal, Primitive
from schemasync.errors import SchemaError
from tests.core.avro_schemas import captured, column_of, columns_of, field, record, registered

INT = Leaf(type=Primitive.INT)
STRING = Leaf(type=Primitive.STRING)
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
ZONED = "io.debezium.time.ZonedTimestamp"


def row_of(subject: str, version: int) -> list[str]:
    columns = read_value_schema(captured(subject, version)).columns
    return [f"{c.name} {print_type(c.type, Dialect.SPARK)}{'' if c.nullable else ' not null'}" for c in columns]


@pytest.mark.parametrize(
    ("version", "row"),
    [
        (1, ["id int not null", "a int", "b string", "c decimal(8,2)"]),
        (2, ["id int not null", "a int", "b string", "c decimal(8,2)", "d timestamp"]),
        (3, ["id int not null", "a int", "b string", "c decimal(8,2)", "d timestamp", "e int not null"]),
        (4, ["id int not null", "a int", "b_renamed string", "c decimal(8,2)", "d timestamp", "e int not null"]),
        (5, ["id int not null", "a int", "b_renamed string", "d timestamp", "e int not null"]),
        (6, ["id int not null", "a bigint", "b_renamed string", "d timestamp", "e int not null"]),
    ],
)
def test_the_captured_history_reads_as_the_source_table_was(version: int, row: list[str]) -> None:
    assert row_of("cdc.inventory.evolving-value", version) == row


def test_captured_columns_carry_nullability_meaning_and_default() -> None:
    assert read_value_schema(captured("cdc.inventory.order_lines-value")).columns == (
        Column(name="order_id", encoding=Leaf(type=Primitive.BIGINT), nullable=False),
        Column(name="line_no", encoding=INT, nullable=False),
        Column(name="sku", encoding=STRING, nullable=False),
        Column(name="qty", encoding=INT, nullable=False, default="1"),
        Column(
            name="price",
            encoding=Leaf(type=Decimal(precision=10, scale=2), name=CONNECT_DECIMAL),
            nullable=True,
            default="null",
        ),
        Column(
            name="updated_at",
            encoding=Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP, name=ZONED),
            nullable=True,
            default='"1970-01-01T00:00:00.000000Z"',
        ),
    )


@pytest.mark.parametrize(
    ("subject", "keys"),
    [
        ("cdc.inventory.evolving-key", ("id",)),
        ("cdc.inventory.order_lines-key", ("order_id", "line_no")),
        ("cdc.inventory.uuid_key-key", ("id",)),
    ],
)
def test_a_captured_key_names_the_key_columns(subject: str, keys: tuple[str, ...]) -> None:
    assert read_key_schema(captured(subject)) == keys


def test_a_version_says_where_it_comes_from() -> None:
    version = read_value_schema(captured("cdc.inventory.uuid_key-value"))
    assert (version.subject, version.version, version.schema_id) == ("cdc.inventory.uuid_key-value", 1, 7)
    assert re.fullmatch("[0-9a-f]{64}", version.fingerprint)


def test_a_version_keeps_the_whole_event_as_it_is_written() -> None:
    event = read_value_schema(captured("cdc.inventory.uuid_key-value")).event
    row = Record(
        members=(
            Member(name="id", encoding=Leaf(type=Primitive.STRING, name="io.debezium.data.Uuid"), nullable=False),
            Member(name="n", encoding=INT),
        ),
        name="cdc.inventory.uuid_key.Value",
    )
    assert event is not None
    assert event.members[:2] == (Member(name="before", encoding=row), Member(name="after", encoding=row))
    assert [m.name for m in event.members[2:]] == ["source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]


# ---- structure


def struct(**members: Leaf) -> Record:
    return Record(members=tuple(Member(name=n, encoding=e, nullable=False) for n, e in members.items()))


INNER = record("Inner", field("x", "int"), field("y", ["string", "null"]))
INNER_ENCODING = Record(
    members=(Member(name="x", encoding=INT, nullable=False), Member(name="y", encoding=STRING, nullable=True))
)


@pytest.mark.parametrize(
    ("type_", "encoding", "nullable"),
    [
        ("int", INT, False),
        ({"type": "int"}, INT, False),
        (["null", "int"], INT, True),
        (["int", "null"], INT, True),
        ([{"type": "null"}, "int"], INT, True),
        (["int"], INT, False),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, Leaf(type=Primitive.STRING, symbols=("A", "B")), False),
        ({"type": "fixed", "name": "F", "size": 3}, Leaf(type=Primitive.BINARY), False),
        ({"type": "array", "items": ["null", "int"]}, ListOf(element=INT), False),
        ({"type": "map", "values": "int"}, MapOf(key=STRING, value=INT), False),
        (INNER, INNER_ENCODING, False),
        ({"type": "array", "items": INNER}, ListOf(element=INNER_ENCODING), False),
        (
            {**INNER, "connect.name": "example.Inner"},
            Record(members=INNER_ENCODING.members, name="example.Inner"),
            False,
        ),
    ],
)
def test_every_kind_of_type_has_its_encoding(type_: Any, encoding: Any, nullable: bool) -> None:
    column = column_of(type_)
    assert (column.encoding, column.nullable) == (encoding, nullable)


@pytest.mark.parametrize(
    ("union", "nullable"),
    [(["int", "long"], False), (["null", "int", "long"], True), (["int", "null", "long"], True)],
)
def test_a_union_of_several_types_is_the_group_that_parquet_avro_writes(union: list[str], nullable: bool) -> None:
    column = column_of(union)
    members = (
        Member(name="member0", encoding=INT, branch="int"),
        Member(name="member1", encoding=Leaf(type=Primitive.BIGINT), branch="long"),
    )
    assert (column.encoding, column.nullable) == (Record(members=members, union=True), nullable)


def entries(name: str = "Pair", *, on_record: bool = False, on_array: bool = False) -> dict[str, Any]:
    mark = {"connect.internal.type": "MapEntry"}
    pair = record(name, field("key", "int"), field("value", ["null", "string"]), **(mark if on_record else {}))
    return {"type": "array", "items": pair, **(mark if on_array else {})}


@pytest.mark.parametrize(
    "type_", [entries("io.confluent.connect.avro.MapEntry"), entries(on_record=True), entries(on_array=True)]
)
def test_connects_arrays_of_map_entries_are_maps(type_: dict[str, Any]) -> None:
    assert column_of(type_).encoding == MapOf(key=INT, value=STRING, entries=True)


@pytest.mark.parametrize(
    "type_", [entries(), {"type": "array", "items": record("MapEntry", field("key", "int"), field("v", "int"))}]
)
def test_other_arrays_of_records_stay_arrays(type_: dict[str, Any]) -> None:
    assert isinstance(column_of(type_).encoding, ListOf)


def test_a_variable_scale_decimal_is_text() -> None:
    name = "io.debezium.data.VariableScaleDecimal"
    encoding = Leaf(type=Primitive.STRING, meaning=Meaning.VARIABLE_DECIMAL, name=name)
    fields = (field("scale", "int"), field("value", "bytes"))
    assert column_of(record(name, *fields)).encoding == encoding
    assert column_of(record("V", *fields, **{"connect.name": name})).encoding == encoding
    assert isinstance(column_of(record(name, *reversed(fields))).encoding, Record)


@pytest.mark.parametrize("null", ["null", ["null"], {"type": "null"}])
def test_a_field_that_can_only_be_null_is_no_column(null: Any) -> None:
    assert [c.name for c in columns_of(field("a", null), field("b", "int"))] == ["b"]


# ---- names


def test_a_named_type_is_found_by_its_short_name_in_its_namespace() -> None:
    address = record("Address", field("street", "string"), namespace="com.x")
    columns = columns_of(field("home", address), field("work", ["null", "com.x.Address"]))
    assert [c.encoding for c in columns] == [struct(street=STRING)] * 2


def test_a_namespace_is_inherited_and_can_be_reset() -> None:
    inner = record("Inner", field("x", "int"), namespace="")
    other = record("Other", field("y", "int"))
    fields = (field("a", inner), field("b", other), field("c", "com.x.Other"), field("d", "Other"))
    version = read_value_schema(registered(record("Row", *fields, namespace="com.x")))
    assert [c.encoding for c in version.columns] == [struct(x=INT), *[struct(y=INT)] * 3]


def test_references_are_used_by_the_schema_and_by_each_other() -> None:
    street = record("Street", field("name", "string"), namespace="com.x")
    address = record("Address", field("street", "com.x.Street"), namespace="com.x")
    version = read_value_schema(registered(record("Row", field("home", "com.x.Address")), street, address))
    assert print_type(version.columns[0].type, Dialect.SPARK) == "struct<street:struct<name:string>>"


@pytest.mark.parametrize(
    "used", ["Address", "com.y.Address", ["null", "Address"], {"type": "array", "items": "Address"}]
)
def test_a_name_that_its_namespace_does_not_know_is_looked_for_without_one(used: Any) -> None:
    """As Java's Avro does, and so a registry takes it."""
    address, row = record("Address", field("zip", "string")), record("Row", field("a", used), namespace="com.x")
    (column,) = read_value_schema(registered(row, address)).columns
    assert "struct<zip:string>" in print_type(column.type, Dialect.SPARK)


def test_a_name_of_its_own_namespace_comes_first() -> None:
    bare, own = record("A", field("x", "int")), record("A", field("y", "int"), namespace="com.x")
    row = record(
        "Row", field("a", "A"), field("b", record("In", field("c", "A"), namespace="com.y")), namespace="com.x"
    )
    assert [c.encoding for c in read_value_schema(registered(row, bare, own)).columns] == [
        struct(y=INT),
        struct(c=struct(x=INT)),  # type: ignore[arg-type]
    ]


def test_a_name_without_a_namespace_is_one_type_however_it_was_found() -> None:
    inner = record("In", field("c", ["null", "A", "com.x.A"]), namespace="com.x")
    row = record("Row", field("a", record("A", field("x", "int"))), field("b", inner))
    with pytest.raises(SchemaError, match=r"field b\.c: a union with two branches A"):
        read_value_schema(registered(row))


def test_a_reference_may_be_repeated_but_not_contradicted() -> None:
    one, other = record("A", field("x", "int")), record("A", field("x", "long"))
    row = record("Row", field("a", "A"))
    assert read_value_schema(registered(row, one, one)).columns[0].encoding == struct(x=INT)
    with pytest.raises(SchemaError, match="two different types are named A"):
        read_value_schema(registered(row, one, other))


# ---- what columns carry beside types


def test_a_column_has_its_doc_and_aliases() -> None:
    column = column_of("int", doc="how many", aliases=["n", 5, "m"])
    assert (column.doc, column.aliases, column.since) == ("how many", ("n", "m"), 1)


@pytest.mark.parametrize(
    ("type_", "more", "doc"),
    [
        ("int", {"connect.doc": "beside the field"}, "beside the field"),
        (["null", {"type": "int", "connect.doc": "beside the type"}], {}, "beside the type"),
        ({"type": "int", "connect.doc": "of the type"}, {"doc": "of the field"}, "of the field"),
        ("int", {"doc": 5}, ""),
    ],
)
def test_connects_doc_serves_where_the_field_has_none(type_: Any, more: dict[str, Any], doc: str) -> None:
    assert column_of(type_, **more).doc == doc


FIXED = {"type": "fixed", "name": "F", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        (["string", "null"], None),
        (["null", "string"], "x"),
        ({"type": "double", "connect.default": 0}, 0),
        ("double", "NaN"),
        ("float", 1.5),
        ("boolean", False),
        ("long", -(2**63)),
        ("bytes", "\u00ff"),
        (FIXED, "\u0000\u00ff"),
        (ENUM, "B"),
        ({"type": "array", "items": "int"}, [1, 2]),
        ({"type": "map", "values": ["null", "int"]}, {"b": 1, "a": None}),
        (record("R", field("x", "int"), field("y", "int", default=1)), {"x": 5, "y": 2}),
    ],
)
def test_a_default_is_kept_as_canonical_json(type_: Any, default: Any) -> None:
    assert column_of(type_, default=default).default == json.dumps(default, sort_keys=True, separators=(",", ":"))


def test_a_default_cannot_fill_the_memory() -> None:
    """Ten records in each of ten records, and so on, of which nobody wrote more than a pair of brackets."""
    inner: Any = "int"
    for level in range(8):
        members = field("x", {"type": "array", "items": inner}, default=[{}] * 10 if level else [1])
        inner = record(f"R{level}", members)
    with pytest.raises(SchemaError, match="the default has too many values"):
        column_of(inner, default={})


INNER_DEFAULTS = record("R", field("x", "int", default=1), field("y", ["null", "string"], default=None))


@pytest.mark.parametrize(
    ("type_", "default", "whole"),
    [
        (INNER_DEFAULTS, {}, {"x": 1, "y": None}),
        (["null", INNER_DEFAULTS], {"y": "a"}, {"x": 1, "y": "a"}),
        ({"type": "array", "items": INNER_DEFAULTS}, [{}, {"x": 2}], [{"x": 1, "y": None}, {"x": 2, "y": None}]),
        ({"type": "map", "values": INNER_DEFAULTS}, {"k": {}}, {"k": {"x": 1, "y": None}}),
        (record("Outer", field("r", INNER_DEFAULTS, default={}), field("again", "R")), {"again": {"x": 3}},
         {"r": {"x": 1, "y": None}, "again": {"x": 3, "y": None}}),
    ],
)  # fmt: skip
def test_the_default_of_a_record_has_the_defaults_of_what_it_leaves_out(type_: Any, default: Any, whole: Any) -> None:
    assert json.loads(column_of(type_, default=default).default or "") == whole


def test_a_default_of_a_type_used_by_name_is_checked_too() -> None:
    columns = columns_of(field("a", ENUM), field("b", "E", default="A"))
    assert columns[1].default == '"A"'


def test_a_default_that_only_connect_names_is_none() -> None:
    assert column_of({"type": "int", "connect.default": 1}).default is None


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", "1"),
        ("int", True),
        ("int", 2**31),
        ("long", 1.5),
        ("long", 2**63),
        ("double", "1"),
        ("double", True),
        ("boolean", 0),
        ("string", None),
        ("string", "half of a pair: \ud800"),
        ("bytes", "\u0100"),
        (FIXED, "x"),
        (ENUM, "C"),
        (["null", "int"], "x"),
        ({"type": "array", "items": "int"}, {}),
        ({"type": "array", "items": "int"}, ["x"]),
        ({"type": "map", "values": "int"}, []),
        ({"type": "map", "values": "int"}, {"a": None}),
        (record("R", field("x", "int")), {}),
        (record("R", field("x", "int")), []),
        (record("R", field("x", "int")), {"x": "1"}),
    ],
)
def test_a_default_that_does_not_fit_is_refused(type_: Any, default: Any) -> None:
    with pytest.raises(SchemaError, match=r"field a: the default .* is no value of the field's type"):
        column_of(type_, default=default)


# ---- fingerprint

ROW = record("shop.Row", field("a", "int", doc="text"), field("b", ["null", record("I", field("x", "int"))]))


def test_the_fingerprint_ignores_blanks_and_order_but_no_content() -> None:
    schema = record("R", field("a", "int"))
    reordered = json.dumps(dict(reversed(schema.items())), indent=2)
    assert schema_fingerprint(registered(schema)) == schema_fingerprint(registered(reordered))
    assert schema_fingerprint(registered(schema)) != schema_fingerprint(
        registered(record("R", field("a", "int", doc="x")))
    )
    assert schema_fingerprint(registered(schema)) != schema_fingerprint(registered(schema, schema))


@pytest.mark.parametrize("nullable", [["null", ROW], [ROW, "null"], [ROW]], ids=["null first", "null last", "alone"])
def test_a_record_that_may_be_null_is_that_record(nullable: list[Any]) -> None:
    """Connect's converter writes it for an optional struct, and its sinks the record alone into footers."""
    found, bare = read_value_schema(registered(nullable)), read_value_schema(registered(ROW))
    assert found == bare


# ---- keys


def test_a_synthetic_key_field_of_topic_routing_is_left_out() -> None:
    key = record("Key", field("id", "int"), field("__dbz__physicalTableIdentifier", "string"))
    assert read_key_schema(registered(key)) == ("id",)
    assert routing_fields(registered(key)) == ("__dbz__physicalTableIdentifier",)


def test_a_key_of_one_table_has_no_field_of_topic_routing() -> None:
    assert routing_fields(registered(record("Key", field("id", "int")))) == ()


@pytest.mark.parametrize("schema", ["string", {"type": "long"}, ["null", "string"], ["int", "string"], ENUM])
def test_a_key_that_is_no_record_names_no_column(schema: Any) -> None:
    assert read_key_schema(registered(json.dumps(schema))) == ()


def test_a_nullable_key_record_counts() -> None:
    assert read_key_schema(registered(["null", record("Key", field("id", "int"))])) == ("id",)


# ---- bad input

LONG_CHAIN = [
    record(f"T{n}", field("a", f"T{n - 1}" if n else "int"), field("b", f"T{n - 1}" if n else "int")) for n in range(40)
]
DEEP_CHAIN = [record(f"T{n}", field("a", f"T{n - 1}" if n else "int")) for n in range(60)]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "shop-value version 3: the schema is not JSON"),
        ("[" * 100_000, "the schema is not JSON"),
        ("[" * 300 + "]" * 300, "nested deeper than 160 levels"),
        (json.dumps("string"), "the top level is not a record"),
        (["null", "string"], "the top level is not a record"),
        ([record("R", field("a", "int")), record("S", field("a", "int"))], "the top level is not a record"),
        (ENUM, "the top level is not a record"),
        (json.dumps("com.x.Missing"), "unknown type: com.x.Missing"),
        (record("R", field("a", "com.x.Missing")), "unknown type: com.x.Missing"),
        (record("R", field("a", {"type": "array"})), "not an Avro schema: a type without 'items'"),
        (record("R", field("a", {"type": {"type": "int"}})), "not an Avro schema"),
        (record("R", {"name": "a"}), "not an Avro schema: "),  # fastavro's releases say it otherwise
        (record("R", field("a", ENUM), field("b", ENUM)), "redefined named type: E"),
        ({**record("R", field("a", "bad")), "__fastavro_parsed": True, "__named_schemas": {}}, "unknown type: bad"),
        *(
            (text, "not an Avro schema: somewhere null, a number, a text or a list stands where")
            for text in ("null", "5", "[null]")
        ),
        (record("R"), "record R has no fields: Parquet and Hive have no empty structs"),
        (record("R", field("a", "null")), "record R has no fields"),
        (record("R", field("a", record("I"))), "field a: record I has no fields"),
        (record("R", field("a-b", "int")), "'a-b' is no field name"),
        (record("R", {"name": ["a"], "type": "int"}), "['a'] is no field name"),
        (record("R", field("Id", "int"), field("id", "int")), "fields Id and id differ only in case"),
        (record("R", field("id", "int"), field("id", "int")), "there are two fields id"),
        (record("R", field("a", [])), "field a: a union that is empty or holds another union directly"),
        (record("R", field("a", [["int"]])), "field a: a union that is empty or holds another union directly"),
        (record("R", field("a", ["int", {"type": "int"}])), "field a: a union with two branches int"),
        (record("R", field("a", {"type": "array", "items": "null"})), "field a.element: values that can only be null"),
        (record("R", field("a", {"type": "map", "values": "null"})), "field a.value: values that can only be null"),
        (record("R", field("a", {"type": "fixed", "name": "F", "size": 0})), "field a: a fixed of size 0"),
        (record("R", field("a", {"type": "fixed", "name": "F", "size": True})), "field a: a fixed of size True"),
        (record("R", field("a", {"type": "enum", "name": "E", "symbols": []})), "an enum without a list of symbols"),
        (
            record("R", field("a", {"type": "error", "name": "E", "fields": []})),
            "field a: a column cannot have the Avro type error",
        ),
        (
            record(
                "R",
                field("id", "int"),
                field("op", "string"),
                field("after", ["null", record("V", field("a", "null"))]),
            ),
            "field after: record V has no fields",
        ),
        (
            record("R", field("op", "string"), field("ts_ms", "long")),
            "the row has no columns: beside those of its envelope",
        ),
    ],
)
def test_what_cannot_become_a_table_is_refused_with_its_place(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_value_schema(registered(schema))
    assert message in caught.value.text()
    assert caught.value.where.startswith("shop-value version 3")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (record("com.x.Node", field("next", ["null", "Node"])), "field next: recursive type com.x.Node"),
        (
            record("Row", field("node", record("com.x.Node", field("next", ["null", "Node"])))),
            "field node.next: recursive type com.x.Node: a table's columns have a fixed depth",
        ),
        (
            record("Row", field("node", record("Node", field("all", {"type": "array", "items": "Node"})))),
            "field node.all.element: recursive type Node",
        ),
    ],
)
def test_recursion_is_refused_with_its_path(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read_value_schema(registered(schema))
    assert message in caught.value.text()


def test_named_types_may_not_nest_without_end() -> None:
    with pytest.raises(SchemaError, match="nested deeper than 48 levels"):
        read_value_schema(registered(record("Row", field("t", "T59")), *DEEP_CHAIN))


def test_named_types_may_not_multiply_without_end() -> None:
    with pytest.raises(SchemaError, match="more than 50000 types"):
        read_value_schema(registered(record("Row", field("t", "T39")), *LONG_CHAIN))


ATTRIBUTES = """
type name fields items values symbols size default namespace aliases doc logicalType precision scale connect.name
connect.parameters record array map enum fixed null int long string bytes decimal uuid op after ts_ms __op R E
__fastavro_parsed __named_schemas
"""
WORDS = st.sampled_from(ATTRIBUTES.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


@st.composite
def almost_schemas(draw: st.DrawFn) -> Any:
    """Avro schemas in which any part may be any JSON."""
    keys = st.sampled_from(["fields", "items", "values", "symbols", "size", "name", "logicalType", "default"])
    parts = st.sampled_from(["record", "array", "map", "enum", "fixed", "int", "bytes"])
    types = st.recursive(
        JSON | parts,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.builds(
                lambda kind, name, some, more: {"type": kind, "name": name, **some, **more},
                parts,
                WORDS,
                st.fixed_dictionaries({}, optional={"items": inner, "values": inner, "size": JSON, "symbols": JSON}),
                st.dictionaries(keys, inner, max_size=2),
            )
        ),
        max_leaves=8,
    )
    fields = st.lists(
        st.fixed_dictionaries({"name": WORDS, "type": types}, optional={"default": JSON, "aliases": JSON})
    )
    return {"type": "record", "name": "R", "fields": draw(fields)}


@given(almost_schemas() | JSON, st.booleans())
def test_any_json_is_a_schema_or_a_schema_error(schema: Any, is_key: bool) -> None:
    read = read_key_schema if is_key else read_value_schema
    with suppress(SchemaError):
        read(registered(json.dumps(schema)))


@given(st.text())
def test_any_text_is_a_schema_or_a_schema_error(text: str) -> None:
    with pytest.raises(SchemaError, match="shop-value version 3"):
        read_value_schema(registered(text))
