"""Parquet files as a Kafka Connect sink lays them out: what parquet-avro makes of an Avro schema.

Written by the writer inside Spark's own jars, because Arrow cannot write decimals as bytes. Lists have three levels, as
the sink chooses where items may be null. Only what Debezium's schemas for PostgreSQL use is known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = Mapping[str, Any]
"""Fields by name; records as mappings, arrays as lists, decimals as `Decimal`."""

_PLAIN = {"int": "int32 {}", "long": "int64 {}", "boolean": "boolean {}", "string": "binary {} (STRING)"}


class ConnectSink:
    """Writes files through one session's JVM."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        self._jvm = jvm
        self._gateway: Any = session.sparkContext._gateway
        # From Python every small number is an int; only reflection says that it is meant as a long.
        lang = jvm.java.lang
        kinds = self._array(lang.Class, [lang.Integer.TYPE, lang.Long.TYPE])
        group = "org.apache.parquet.example.data.simple.SimpleGroup"
        self._add_long = lang.Class.forName(group).getMethod("add", kinds)

    def write(self, path: Path, schema: str, records: Iterable[Record]) -> None:
        """Write records of one Avro schema as one file, the schema in its footer."""
        root = _Schema(json.loads(schema))
        message = f"message {root.node['name']} {{ {' '.join(root.members())} }}"
        type_ = self._jvm.org.apache.parquet.schema.MessageTypeParser.parseMessageType(message)
        groups = self._jvm.org.apache.parquet.example.data.simple.SimpleGroupFactory(type_)
        example = self._jvm.org.apache.parquet.hadoop.example.ExampleParquetWriter
        extra = self._jvm.java.util.HashMap()
        extra.put("parquet.avro.schema", schema)
        builder = example.builder(self._jvm.org.apache.hadoop.fs.Path(str(path))).withType(type_)
        writer = builder.withExtraMetaData(extra).build()
        for record in records:
            group = groups.newGroup()
            self._fill(group, root, record)
            writer.write(group)
        writer.close()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def _fill(self, group: Any, schema: _Schema, record: Record) -> None:
        for index, (name, inner, _) in enumerate(schema.fields()):
            if record[name] is not None:
                self._put(group, index, inner, record[name])

    def _put(self, group: Any, index: int, schema: _Schema, value: Any) -> None:
        match schema.kind:
            case "record":
                self._fill(group.addGroup(index), schema, value)
            case "array":
                self._put_items(group.addGroup(index), schema, value)
            case "long":
                self._add_long.invoke(group, self._array(self._jvm.java.lang.Object, [index, value]))
            case "bytes":
                digits = unscaled(value, schema.node["scale"])
                group.add(index, self._jvm.org.apache.parquet.io.api.Binary.fromConstantByteArray(digits))
            case _:
                group.add(index, value)

    def _put_items(self, group: Any, schema: _Schema, items: Iterable[Any]) -> None:
        inner, _ = schema.items()
        for item in items:
            entry = group.addGroup(0)
            if item is not None:
                self._put(entry, 0, inner, item)

    def _array(self, class_: Any, items: list[Any]) -> Any:
        made = self._gateway.new_array(class_, len(items))
        for index, item in enumerate(items):
            made[index] = item
        return made


class _Schema:
    """One Avro type, with the names that were defined before it."""

    def __init__(self, node: Any, names: dict[str, Any] | None = None) -> None:
        self._names = {} if names is None else names
        self.node = self._names.get(node, {"type": node}) if isinstance(node, str) else node
        if self.kind == "record":
            self._names[self.node["name"]] = self.node

    @property
    def kind(self) -> str:
        kind: str = self.node["type"]
        return kind

    def fields(self) -> Iterator[tuple[str, _Schema, bool]]:
        """Yield name, type and whether null is a value of each field of a record."""
        for field in self.node["fields"]:
            yield (field["name"], *self._optional(field["type"]))

    def items(self) -> tuple[_Schema, bool]:
        """Return the type of an array's items, and whether null is one."""
        return self._optional(self.node["items"])

    def _optional(self, node: Any) -> tuple[_Schema, bool]:
        branches = node if isinstance(node, list) else [node]
        (kept,) = (b for b in branches if b != "null")
        return _Schema(kept, self._names), "null" in branches

    def members(self) -> Iterator[str]:
        """Yield the Parquet declarations of a record's fields."""
        for name, inner, optional in self.fields():
            yield inner.declared(name, optional=optional)

    def declared(self, name: str, *, optional: bool) -> str:
        repetition = "optional" if optional else "required"
        match self.kind:
            case "record":
                return f"{repetition} group {name} {{ {' '.join(self.members())} }}"
            case "array":
                inner, nullable = self.items()
                item = inner.declared("element", optional=nullable)
                return f"{repetition} group {name} (LIST) {{ repeated group list {{ {item} }} }}"
            case "bytes":
                digits = f"{self.node['precision']},{self.node['scale']}"
                return f"{repetition} binary {name} (DECIMAL({digits}));"
            case plain:
                return f"{repetition} {_PLAIN[plain].format(name)};"


def unscaled(value: Decimal, scale: int) -> bytes:
    """Return a decimal's digits as two's complement, big endian, in as few bytes as possible."""
    number = int(value.scaleb(scale))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
