"""The one type algebra between Avro and the engines.

A closed family of small values; what *does* something with a type (prints, parses, promotes, converts) lives
in other modules and matches over it. Nullability belongs to columns, not to types: neither Hive nor a Parquet
table registered in it can promise it for nested values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MAX_PRECISION = 38
"""Largest decimal precision of Spark, Hive and Trino."""


class Primitive(Enum):
    """Types without parameters; the value is the name that Spark, Hive and Trino's Hive connector share."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decimal:
    """``decimal(precision, scale)``; 1 <= precision <= 38 and 0 <= scale <= precision."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """``array<element>``."""

    element: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """``map<key, value>``."""

    key: Type
    value: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class StructField:
    """One named member of a struct."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """``struct<name: type, ...>`` with at least one field."""

    fields: tuple[StructField, ...]


Type = Primitive | Decimal | Array | Map | Struct
