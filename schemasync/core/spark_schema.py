"""Spark's own copy of a table's schema, which it keeps in the table's properties beside Hive's columns.

It keeps the case of names, which Hive folds; but whatever Hive alters leaves it as it was (HIVE-25343). Read by drift,
written by whoever sets columns behind Spark's back. Spark splits what is longer than a metastore's property may be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from schemasync.core.names import Dialect
from schemasync.core.ports import HiveColumn
from schemasync.core.type_strings import parse_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type
from schemasync.errors import SchemaError

PREFIX: Final = "spark.sql.sources.schema"
_LIMIT: Final = 4000
"""Longest property value (``spark.sql.sources.schemaStringLengthThreshold``)."""

_P = Primitive
_NAMES: Final = {_P.TINYINT: "byte", _P.SMALLINT: "short", _P.INT: "integer", _P.BIGINT: "long"}
"""Types that Spark's JSON calls otherwise than SQL does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkField:
    """One column of Spark's copy: its name with its case, its type as Spark's JSON has it, and what it adds."""

    name: str
    type: Any
    metadata: Mapping[str, Any]

    @property
    def comment(self) -> str:
        """The column's comment."""
        return str(self.metadata.get("comment", ""))


def read_fields(properties: Mapping[str, str]) -> tuple[SparkField, ...] | None:
    """Return the columns (with those of the partition, last), None where the copy is missing, partial or mangled."""
    try:
        fields = json.loads(properties.get(PREFIX) or _joined(properties))["fields"]
        return tuple(SparkField(name=f["name"], type=f["type"], metadata=f.get("metadata", {})) for f in fields)
    except (ValueError, KeyError, TypeError):
        return None


def _joined(properties: Mapping[str, str]) -> str:
    count = int(properties.get(f"{PREFIX}.numParts", "0"))
    return "".join(properties[f"{PREFIX}.part.{n}"] for n in range(count))


def holds(field: SparkField, type_: Type) -> bool:
    """Tell whether a field is of this type; what it says of nulls does not count."""
    return bool(_bare(field.type) == _bare(spark_type(type_)))


def _bare(type_: Any) -> Any:
    """Return Spark's JSON of a type without what it says of nulls and comments."""
    if not isinstance(type_, dict):
        return type_
    ignored = {"containsNull", "valueContainsNull", "nullable", "metadata"}
    inner = {k: _bare(v) for k, v in type_.items() if k not in ignored}
    return inner | ({"fields": [_bare(f) for f in type_["fields"]]} if "fields" in type_ else {})


def spark_type(type_: Type) -> Any:
    """Return a type as Spark's JSON has it; everything in it may be null."""
    match type_:
        case Primitive():
            return _NAMES.get(type_, type_.value)
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Array(element=element):
            return {"type": "array", "elementType": spark_type(element), "containsNull": True}
        case Map(key=key, value=value):
            sides = {"keyType": spark_type(key), "valueType": spark_type(value)}
            return {"type": "map", **sides, "valueContainsNull": True}
        case Struct(fields=fields):
            return {"type": "struct", "fields": [_field(f.name, spark_type(f.type), {}) for f in fields]}
        case _:  # pragma: no cover
            assert_never(type_)


def _field(name: str, type_: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": dict(metadata)}


def rewritten(
    properties: Mapping[str, str], columns: Sequence[HiveColumn], partition_keys: Sequence[HiveColumn]
) -> dict[str, str]:
    """Return a table's properties with Spark's copy made anew from Hive's columns; all others stay.

    Names keep the case that the old copy has. Where Hive has a type that is unknown here the copy is left out: Spark
    then reads Hive's columns.
    """
    kept = {k: v for k, v in properties.items() if not _is_part(k)}
    old = {f.name.lower(): f for f in read_fields(properties) or ()}
    try:
        fields = [_renewed(column, old.get(column.name.lower())) for column in (*columns, *partition_keys)]
    except SchemaError:
        return kept
    partition = {f"{PREFIX}.partCol.{n}": key.name for n, key in enumerate(partition_keys)}
    count = {f"{PREFIX}.numPartCols": str(len(partition))} if partition else {}
    return kept | _split(json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))) | count | partition


def _is_part(key: str) -> bool:
    return key == PREFIX or key.startswith((f"{PREFIX}.numPart", f"{PREFIX}.part"))


def _renewed(column: HiveColumn, old: SparkField | None) -> dict[str, Any]:
    type_ = parse_type(column.type, Dialect.HIVE)
    comment = {"comment": column.comment} if column.comment else {}
    if old is None or not holds(old, type_):
        return _field(old.name if old else column.name, spark_type(type_), comment)
    rest = {k: v for k, v in old.metadata.items() if k != "comment"}
    return _field(old.name, old.type, rest | comment)


def _split(text: str) -> dict[str, str]:
    if len(text) <= _LIMIT:
        return {PREFIX: text}
    parts = [text[start : start + _LIMIT] for start in range(0, len(text), _LIMIT)]
    return {f"{PREFIX}.numParts": str(len(parts))} | {f"{PREFIX}.part.{n}": part for n, part in enumerate(parts)}


def disagreement(
    properties: Mapping[str, str], columns: Sequence[HiveColumn], partition_keys: Sequence[HiveColumn] = ()
) -> str:
    """Say how Spark's copy differs from Hive's columns, empty where it does not; unknown types are not compared."""
    fields = read_fields(properties)
    if fields is None:
        return "it is missing, or parts of it are"
    hive = (*columns, *partition_keys)
    names = [f.name.lower() for f in fields]
    if names != [c.name.lower() for c in hive]:
        return f"it has the columns {', '.join(f.name for f in fields)}"
    if wrong := [c.name for f, c in zip(fields, hive, strict=True) if not _agrees(f, c)]:
        return f"it has other types of {', '.join(wrong)}"
    # The next ADD COLUMNS of Spark would write its own comments over Hive's.
    said = [c.name for f, c in zip(fields, hive, strict=True) if f.comment != c.comment]
    return f"it has other comments of {', '.join(said)}" if said else ""


def _agrees(field: SparkField, column: HiveColumn) -> bool:
    try:
        return holds(field, parse_type(column.type, Dialect.HIVE))
    except SchemaError:
        return True


def without_float_dictionaries(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the options with which Spark writes Parquet without a dictionary of any float or double.

    ``schema`` is a frame's, as Spark's JSON has it. -0.0 equals 0.0 to a query, and not to Parquet's Java reader where
    it looks into a dictionary for what a query asks for: it would pass over such rows.
    """
    return {f"parquet.enable.dictionary#{path}": "false" for path in _floating(schema["fields"], "")}


def _floating(fields: Sequence[Mapping[str, Any]], before: str) -> Iterator[str]:
    """Yield the paths of floats and doubles, of those in structs too; no query's condition goes into other types."""
    for field in fields:
        path, kind = f"{before}{field['name']}", field["type"]
        if isinstance(kind, str) and kind in {"float", "double"}:
            yield path
        elif isinstance(kind, Mapping) and kind["type"] == "struct":
            yield from _floating(kind["fields"], f"{path}.")
