from __future__ import annotations

from typing import Any

import pytest

from schemasync.core.encoding import Leaf, Meaning
from schemasync.core.semantics import SEMANTICS, leaf_of
from schemasync.core.types import Decimal, Primitive

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def avro(base: str) -> dict[str, Any]:
    """Return the node of a base as the table writes it (``fixed(16)``)."""
    if base.startswith("fixed("):
        return {"type": "fixed", "name": "F", "size": int(base[6:-1])}
    return {"type": base, **({"symbols": ["A"]} if base == "enum" else {})}


@pytest.mark.parametrize("key", ["connect.name", "logicalType"])
@pytest.mark.parametrize(("name", "base"), [(name, base) for name, bases in SEMANTICS.items() for base in bases])
def test_a_semantic_name_on_its_own_base_has_the_tables_meaning(name: str, base: str, key: str) -> None:
    leaf = leaf_of({**avro(base), key: name})
    assert (leaf.meaning, leaf.type, leaf.name) == (*SEMANTICS[name][base], name)


@pytest.mark.parametrize(
    ("base", "shown"),
    [
        ("boolean", Primitive.BOOLEAN),
        ("int", Primitive.INT),
        ("long", Primitive.BIGINT),
        ("float", Primitive.FLOAT),
        ("double", Primitive.DOUBLE),
        ("string", Primitive.STRING),
        ("bytes", Primitive.BINARY),
        ("fixed(3)", Primitive.BINARY),
        ("enum", Primitive.STRING),
    ],
)
@pytest.mark.parametrize("name", ["", "example.Unknown", "io.debezium.time.Structured"])
def test_an_unknown_name_keeps_the_base_type_and_the_name(base: str, shown: Primitive, name: str) -> None:
    leaf = leaf_of({**avro(base), "connect.name": name})
    assert (leaf.type, leaf.meaning, leaf.name) == (shown, Meaning.PLAIN, name)


@pytest.mark.parametrize(
    ("node", "leaf"),
    [
        ({"type": "string", "logicalType": "date"}, Leaf(type=Primitive.STRING, name="date")),
        ({"type": "long", "logicalType": "date"}, Leaf(type=Primitive.BIGINT, name="date")),
        (
            {"type": "int", "connect.name": "io.debezium.time.MicroTimestamp"},
            Leaf(type=Primitive.INT, name="io.debezium.time.MicroTimestamp"),
        ),
        ({"type": "string", "logicalType": "decimal"}, Leaf(type=Primitive.STRING, name="decimal")),
        ({**avro("fixed(15)"), "logicalType": "uuid"}, Leaf(type=Primitive.BINARY, name="uuid")),
    ],
)
def test_a_semantic_name_on_another_base_is_ignored_but_kept(node: dict[str, Any], leaf: Leaf) -> None:
    assert leaf_of(node) == leaf


def test_connects_name_says_more_than_the_logical_type() -> None:
    node = {"type": "long", "logicalType": "timestamp-micros", "connect.name": "io.debezium.time.NanoTimestamp"}
    assert leaf_of(node) == Leaf(type=Primitive.BIGINT, name="io.debezium.time.NanoTimestamp")


def test_the_logical_type_counts_under_an_unknown_connect_name() -> None:
    node = {"type": "long", "logicalType": "timestamp-micros", "connect.name": "example.When"}
    assert leaf_of(node) == Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MICROS, name="example.When")


@pytest.mark.parametrize(
    ("base", "width", "shown"),
    [
        ("int", "int8", Primitive.TINYINT),
        ("int", "int16", Primitive.SMALLINT),
        ("int", "int32", Primitive.INT),
        ("long", "int16", Primitive.BIGINT),
        ("int", 16, Primitive.INT),
    ],
)
def test_connects_type_narrows_an_int(base: str, width: object, shown: Primitive) -> None:
    assert leaf_of({"type": base, "connect.type": width}) == Leaf(type=shown)


@pytest.mark.parametrize(
    ("attributes", "precision", "scale"),
    [
        ({"precision": 8, "scale": 2}, 8, 2),
        ({"precision": 8}, 8, 0),
        ({"precision": 38, "scale": 38}, 38, 38),
        ({"precision": 64, "scale": 2}, 38, 2),
        ({"precision": 64, "scale": 38}, 38, 38),
        ({"scale": 3}, 38, 3),
        ({"connect.parameters": {"connect.decimal.precision": "9", "scale": "4"}}, 9, 4),
        ({"precision": 5, "connect.parameters": {"connect.decimal.precision": "9"}}, 5, 0),
        ({"precision": 5, "connect.parameters": "nonsense"}, 5, 0),
    ],
)
def test_a_decimal_has_the_declared_precision_within_38_digits(
    attributes: dict[str, Any], precision: int, scale: int
) -> None:
    node = {"type": "bytes", "logicalType": "decimal", "connect.name": CONNECT_DECIMAL, **attributes}
    assert leaf_of(node) == Leaf(type=Decimal(precision=precision, scale=scale), name=CONNECT_DECIMAL)


@pytest.mark.parametrize(
    "attributes",
    [
        {"precision": 0},
        {"precision": -1},
        {"precision": True},
        {"precision": "x"},
        {"precision": 4.5},
        {"precision": 4, "scale": 5},
        {"precision": 4, "scale": -1},
        {"precision": 4, "scale": None},
        {"precision": 64, "scale": 39},
        {"precision": "9" * 5000},
    ],
)
def test_an_invalid_decimal_is_the_bytes_it_is_written_as(attributes: dict[str, Any]) -> None:
    node = {"type": "bytes", "logicalType": "decimal", **attributes}
    assert leaf_of(node) == Leaf(type=Primitive.BINARY, name="decimal")


@pytest.mark.parametrize(
    ("size", "attributes", "shown"),
    [
        (4, {"precision": 9, "scale": 1}, Decimal(precision=9, scale=1)),
        (4, {"precision": 10}, Primitive.BINARY),
        (4, {}, Decimal(precision=9, scale=0)),
        (16, {"precision": 38}, Decimal(precision=38, scale=0)),
        (10**400, {}, Decimal(precision=38, scale=0)),
    ],
)
def test_a_fixed_decimal_has_no_more_digits_than_fit(
    size: int, attributes: dict[str, Any], shown: Primitive | Decimal
) -> None:
    node = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", **attributes}
    assert leaf_of(node).type == shown


def symbols_of(name: str, **parameters: Any) -> tuple[str, ...]:
    return leaf_of({"type": "string", "connect.name": name, "connect.parameters": parameters}).symbols


@pytest.mark.parametrize("name", ["io.debezium.data.Enum", "io.debezium.data.EnumSet"])
def test_debezium_lists_the_symbols_of_an_enum_beside_the_string(name: str) -> None:
    assert symbols_of(name, allowed="b,a,,c") == ("b", "a", "c")


def test_other_strings_have_no_allowed_symbols() -> None:
    assert symbols_of("io.debezium.data.Json", allowed="a,b") == ()


def test_connect_names_the_symbols_of_an_enum_in_parameters() -> None:
    parameters = {"io.confluent.connect.avro.Enum": "E", "io.confluent.connect.avro.Enum.B": "B"}
    assert symbols_of("", **parameters, **{"io.confluent.connect.avro.Enum.A": "A"}) == ("A", "B")


def test_connects_newer_enum_parameters_are_ordered_by_their_ordinals() -> None:
    prefix = "org.apache.kafka.connect.data.Enum"
    assert symbols_of("", **{prefix: "E", f"{prefix}.A": "10", f"{prefix}.B": "9"}) == ("B", "A")


def test_an_avro_enum_has_its_symbols() -> None:
    assert leaf_of({"type": "enum", "name": "E", "symbols": ["B", "A"]}).symbols == ("B", "A")
