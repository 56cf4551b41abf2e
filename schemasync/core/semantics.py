"""What a value means: the one table from semantic names to shown types.

Called by `schemasync.core.avro` for every leaf. A semantic name is Connect's ``connect.name`` (Debezium's types among
them) or an Avro logical type. A name counts only on the Avro type that it is defined for; on any other, as for
unknown names, the value is shown as it is written and the name is kept, so that a change of it is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from schemasync.core.encoding import Leaf, Meaning, Member
from schemasync.core.types import MAX_PRECISION, Decimal, Primitive

Node = Mapping[str, Any]
"""One Avro type as a JSON object, names already resolved."""

Rule = tuple[Meaning, Primitive]

_AVRO: Final[Mapping[str, Primitive]] = {
    "boolean": Primitive.BOOLEAN,
    "int": Primitive.INT,
    "long": Primitive.BIGINT,
    "float": Primitive.FLOAT,
    "double": Primitive.DOUBLE,
    "string": Primitive.STRING,
    "bytes": Primitive.BINARY,
    "fixed": Primitive.BINARY,
    "enum": Primitive.STRING,
}

LEAF_TYPES: Final = frozenset(_AVRO)
"""The Avro types without members, null aside."""

_DAYS: Final = (Meaning.DAYS, Primitive.DATE)
_MILLIS: Final = (Meaning.EPOCH_MILLIS, Primitive.TIMESTAMP)
_MICROS: Final = (Meaning.EPOCH_MICROS, Primitive.TIMESTAMP)
_ZONED: Final = (Meaning.ZONED_TIMESTAMP, Primitive.TIMESTAMP)
_TIME_MILLIS: Final = (Meaning.TIME_MILLIS, Primitive.STRING)
_TIME_MICROS: Final = (Meaning.TIME_MICROS, Primitive.STRING)
_TIME_NANOS: Final = (Meaning.TIME_NANOS, Primitive.STRING)
_UUID: Final = (Meaning.UUID_BYTES, Primitive.STRING)
_TEXT: Final = (Meaning.PLAIN, Primitive.STRING)
_INT: Final = (Meaning.PLAIN, Primitive.INT)
_LONG: Final = (Meaning.PLAIN, Primitive.BIGINT)
_BYTES: Final = (Meaning.PLAIN, Primitive.BINARY)

SEMANTICS: Final[Mapping[str, Mapping[str, Rule]]] = {
    # Avro 1.12, "Logical Types". Nanoseconds do not fit a TIMESTAMP: shown as the number.
    "date": {"int": _DAYS},
    "time-millis": {"int": _TIME_MILLIS},
    "time-micros": {"long": _TIME_MICROS},
    "timestamp-millis": {"long": _MILLIS},
    "timestamp-micros": {"long": _MICROS},
    "timestamp-nanos": {"long": _LONG},
    "local-timestamp-millis": {"long": _MILLIS},
    "local-timestamp-micros": {"long": _MICROS},
    "local-timestamp-nanos": {"long": _LONG},
    "uuid": {"string": _TEXT, "fixed(16)": _UUID},
    "duration": {"fixed(12)": _BYTES},
    "big-decimal": {"bytes": _BYTES},
    # Kafka Connect.
    "org.apache.kafka.connect.data.Date": {"int": _DAYS},
    "org.apache.kafka.connect.data.Time": {"int": _TIME_MILLIS},
    "org.apache.kafka.connect.data.Timestamp": {"long": _MILLIS},
    # Debezium 3, "Temporal types" of its connectors' documentation.
    "io.debezium.time.Date": {"int": _DAYS},
    "io.debezium.time.Time": {"int": _TIME_MILLIS},
    "io.debezium.time.MicroTime": {"long": _TIME_MICROS},
    "io.debezium.time.NanoTime": {"long": _TIME_NANOS},
    "io.debezium.time.Timestamp": {"long": _MILLIS},
    "io.debezium.time.MicroTimestamp": {"long": _MICROS},
    "io.debezium.time.NanoTimestamp": {"long": _LONG},
    "io.debezium.time.ZonedTimestamp": {"string": _ZONED},
    "io.debezium.time.ZonedTime": {"string": _TEXT},
    "io.debezium.time.IsoDate": {"string": _TEXT},
    "io.debezium.time.IsoTime": {"string": _TEXT},
    "io.debezium.time.IsoTimestamp": {"string": _TEXT},
    "io.debezium.time.Interval": {"string": _TEXT},
    "io.debezium.time.MicroDuration": {"long": _LONG},
    "io.debezium.time.NanoDuration": {"long": _LONG},
    "io.debezium.time.Year": {"int": _INT},
    # Debezium 3, "Basic types".
    "io.debezium.data.Bits": {"bytes": _BYTES},
    "io.debezium.data.Enum": {"string": _TEXT, "enum": _TEXT},
    "io.debezium.data.EnumSet": {"string": _TEXT},
    "io.debezium.data.Json": {"string": _TEXT},
    "io.debezium.data.Ltree": {"string": _TEXT},
    "io.debezium.data.Tsvector": {"string": _TEXT},
    "io.debezium.data.Uuid": {"string": _TEXT},
    "io.debezium.data.Xml": {"string": _TEXT},
}

_CONNECT_WIDTHS: Final[Mapping[str, Primitive]] = {"int8": Primitive.TINYINT, "int16": Primitive.SMALLINT}
"""``connect.type`` on an Avro int: the width that the source really has."""

DECIMALS: Final = frozenset({"decimal", "org.apache.kafka.connect.data.Decimal"})
_VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
_LISTED_SYMBOLS: Final = frozenset({"io.debezium.data.Enum", "io.debezium.data.EnumSet"})
_SYMBOL_PREFIXES: Final = ("io.confluent.connect.avro.Enum.", "org.apache.kafka.connect.data.Enum.")


def leaf_of(node: Node) -> Leaf:
    """Return how values of an Avro type without members are shown.

    ``node["type"]`` is one of LEAF_TYPES; a fixed has its ``size``, an enum its ``symbols``, both checked.
    """
    names = (semantic_name(node), text_of(node, "logicalType"))
    name = names[0] or names[1]
    decimal = _decimal(node) if DECIMALS.intersection(names) else None
    if decimal is not None:
        return Leaf(type=decimal, name=name)
    meaning, shown = _rule(node, names)
    return Leaf(type=shown, meaning=meaning, name=name, symbols=_symbols(node, name))


def record_leaf(name: str, members: tuple[Member, ...]) -> Leaf | None:
    """Return the leaf that a record of this semantic name is, None for every ordinary record."""
    shape = tuple((m.name, m.encoding) for m in members)
    parts = (("scale", Leaf(type=Primitive.INT)), ("value", Leaf(type=Primitive.BINARY)))
    if name != _VARIABLE_DECIMAL or shape != parts:
        return None
    return Leaf(type=Primitive.STRING, meaning=Meaning.VARIABLE_DECIMAL, name=name)


def semantic_name(node: Node) -> str:
    """Return Connect's name of a type, empty where it has none."""
    return text_of(node, "connect.name")


def text_of(node: Node, key: str) -> str:
    """Return an attribute that should be text; empty where it is missing or is something else."""
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _rule(node: Node, names: tuple[str, ...]) -> Rule:
    base = f"fixed({node['size']})" if node["type"] == "fixed" else node["type"]
    for name in names:
        rule = SEMANTICS.get(name, {}).get(base)
        if rule is not None:
            return rule
    width = _CONNECT_WIDTHS.get(text_of(node, "connect.type")) if base == "int" else None
    return Meaning.PLAIN, width or _AVRO[node["type"]]


def _decimal(node: Node) -> Decimal | None:
    """Return the decimal that bytes or a fixed hold; None where Avro says to ignore the logical type, or none fits.

    Connect writes precision 64 when the source names none; no engine stores more than 38 digits, so the column is
    declared with 38 and a value that needs more shows as NULL (`schemasync.core.beyond`). A scale of more than 38
    leaves no decimal that would hold any value.
    """
    if node["type"] not in {"bytes", "fixed"}:
        return None
    capacity = _digits(node["size"]) if node["type"] == "fixed" else None
    parameters = _parameters(node)
    declared = node.get("precision", parameters.get("connect.decimal.precision"))
    precision = min(MAX_PRECISION, capacity or MAX_PRECISION) if declared is None else _integer(declared)
    scale = _integer(node.get("scale", parameters.get("scale", 0)))
    if precision is None or scale is None or not 0 <= scale <= min(precision, MAX_PRECISION) or precision < 1:
        return None
    if capacity is not None and precision > capacity:
        return None
    return Decimal(precision=min(precision, MAX_PRECISION), scale=scale)


def _digits(size: int) -> int:
    """Return how many decimal digits always fit into that many bytes (Avro specification, "Decimal")."""
    return math.floor(math.log10(2) * (8 * min(size, 1024) - 1))


def _integer(value: Any) -> int | None:
    # Connect's parameters are text.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parameters(node: Node) -> Node:
    value = node.get("connect.parameters")
    return value if isinstance(value, dict) else {}


def _symbols(node: Node, name: str) -> tuple[str, ...]:
    """Return the symbols of an Avro enum, or those that Connect and Debezium list beside a string."""
    if node["type"] == "enum":
        return tuple(node["symbols"])
    if node["type"] != "string":
        return ()
    parameters = _parameters(node)
    if name in _LISTED_SYMBOLS:
        return tuple(s for s in text_of(parameters, "allowed").split(",") if s)
    # One parameter per symbol, in the order of a hash map; its value is the ordinal in newer converters.
    found = [
        (_integer(v) or 0, k[len(p) :]) for k, v in parameters.items() for p in _SYMBOL_PREFIXES if k.startswith(p)
    ]
    return tuple(symbol for _, symbol in sorted(found))
