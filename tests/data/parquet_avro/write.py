"""Write the files beside this one with parquet-avro itself, the writer inside Kafka Connect's Parquet sinks.

Run by hand when `row.avsc` changes; needs the jars parquet-avro and parquet-variant of Spark's Parquet version
(1.16.0 for Spark 4.1): ``python tests/data/parquet_avro/write.py DIRECTORY_OF_JARS``.

``bytes_old_lists``: decimals as bytes, lists of two levels, dictionaries (its defaults). ``fixed_new_lists``: decimals
as fixed, lists of three levels, plain pages of version 2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

HERE: Final = Path(__file__).resolve().parent
MILLIS: Final = 1_795_136_523_123
_DAY: Final = 20_777
_NUMBERS: Final = {"money": 150, "total": -12_345_678_901_234_567_890}


def record(jvm: Any, schema: Any, values: dict[str, Any]) -> Any:
    """Return a GenericRecord; nested values come as dicts and lists, numbers of decimals as bytes."""
    made = jvm.org.apache.avro.generic.GenericData.Record(schema)
    for field in schema.getFields():
        made.put(field.name(), value_of(jvm, branch(field.schema()), values[field.name()]))
    return made


def branch(schema: Any) -> Any:
    """Return the branch of a union that is not null, any other schema itself."""
    if str(schema.getType()) != "UNION":
        return schema
    return next(s for s in schema.getTypes() if str(s.getType()) != "NULL")


def value_of(jvm: Any, schema: Any, value: Any) -> Any:
    """Return a value as parquet-avro takes it."""
    if value is None:
        return None
    data = jvm.org.apache.avro.generic.GenericData
    match str(schema.getType()):
        case "RECORD":
            return record(jvm, schema, value)
        case "ARRAY":
            found = jvm.java.util.ArrayList()
            for item in value:
                found.add(value_of(jvm, branch(schema.getElementType()), item))
            return found
        case "MAP":
            pairs = jvm.java.util.LinkedHashMap()
            for key, item in value.items():
                pairs.put(key, value_of(jvm, branch(schema.getValueType()), item))
            return pairs
        case "ENUM":
            return data.EnumSymbol(schema, value)
        case "LONG":
            return jvm.java.lang.Long.valueOf(str(value))
        case "BYTES":
            return jvm.java.nio.ByteBuffer.wrap(value if isinstance(value, bytes) else number(value, None))
        case "FIXED":
            return data.Fixed(schema, value if isinstance(value, bytes) else number(value, schema.getFixedSize()))
        case _:
            return value


def number(unscaled: int, size: int | None) -> bytes:
    """Return two's complement, big endian, in as few bytes as possible where no size is given."""
    return unscaled.to_bytes(size or unscaled.bit_length() // 8 + 1, "big", signed=True)


ROWS: Final = (
    {
        "flag": True, "small": -7, "count": 2**40, "ratio": 0.5, "name": "né", "raw": b"\x00\xff", "kind": "B",
        "uid": bytes(range(16)), "day": _DAY, "at_ms": MILLIS, "at_us": MILLIS * 1000 + 456,
        "dbz_day": _DAY, "dbz_us": MILLIS * 1000 + 456, "zoned": "2026-11-20T06:32:03.123456+05:30",
        "tags": ["a", "b", "a"], "attrs": {"x": 1, "y": 2},
        "lines": [{"sku": "s", "price": 1999, "at": MILLIS}, {"sku": None, "price": None, "at": None}],
        **_NUMBERS,
    },
    {
        "flag": False, "small": 32_767, "count": -(2**63), "ratio": float("nan"), "name": "", "raw": b"", "kind": "A",
        "uid": bytes(16), "day": -1, "at_ms": -1, "at_us": -1, "dbz_day": -1, "dbz_us": -1,
        "zoned": "1969-12-31T23:59:59.999999Z", "tags": [], "attrs": {}, "lines": [], "money": -1, "total": 0,
    },
)  # fmt: skip
"""Then one of nulls alone."""


def with_fixed(node: Any) -> Any:
    """Return a schema whose decimals are fixed instead of bytes."""
    if isinstance(node, list):
        return [with_fixed(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("logicalType") == "decimal":
        size = 4 if node["precision"] <= 9 else 9
        return {**node, "type": "fixed", "name": f"Number{node['precision']}_{node['scale']}", "size": size}
    return {key: with_fixed(item) for key, item in node.items()}


def write(jvm: Any, name: str, schema_text: str, *, first: int, plain: bool) -> None:
    """Write one file of three rows with the keys ``first``, ``first + 1``, ``first + 2``."""
    avro = jvm.org.apache.avro.Schema.Parser().parse(schema_text)
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.setBoolean("parquet.avro.write-old-list-structure", not plain)
    path = HERE / f"{name}.parquet"
    path.unlink(missing_ok=True)
    builder = jvm.org.apache.parquet.avro.AvroParquetWriter.builder(jvm.org.apache.hadoop.fs.Path(str(path)))
    builder = builder.withSchema(avro).withConf(conf).withDictionaryEncoding(not plain)
    if plain:
        version = jvm.org.apache.parquet.column.ParquetProperties.WriterVersion.PARQUET_2_0
        builder = builder.withWriterVersion(version)
    writer = builder.build()
    fields = [f.name() for f in avro.getFields()]
    for index, values in enumerate((*ROWS, dict.fromkeys(fields))):
        writer.write(record(jvm, avro, {**values, "id": first + index, "op": "c", "ts_ms": 1}))
    writer.close()
    (HERE / f".{name}.parquet.crc").unlink(missing_ok=True)


def main() -> None:
    """Write both files."""
    jars = ",".join(str(jar) for jar in Path(sys.argv[1]).glob("*.jar"))
    session = SparkSession.builder.master("local[1]").config("spark.jars", jars).getOrCreate()
    text = (HERE / "row.avsc").read_text(encoding="utf-8")
    write(session._jvm, "bytes_old_lists", text, first=100, plain=False)
    write(session._jvm, "fixed_new_lists", json.dumps(with_fixed(json.loads(text))), first=200, plain=True)
    session.stop()


if __name__ == "__main__":
    main()
