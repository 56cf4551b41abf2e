"""Short ways to write Avro schemas down, and the captured ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemasync.core.avro import read_value_schema
from schemasync.core.ports import RegisteredSchema
from schemasync.core.schema import Column
from schemasync.io.samples import SAMPLES

DATA = Path(__file__).parent.parent / "data"


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def registered(schema: Any, *references: Any, subject: str = "shop-value", version: int = 3) -> RegisteredSchema:
    """Return a schema as a registry would hold it; text is taken as it is."""
    return RegisteredSchema(
        subject=subject,
        version=version,
        schema_id=7,
        text=schema if isinstance(schema, str) else json.dumps(schema),
        references=tuple(json.dumps(r) for r in references),
    )


def captured(subject: str, version: int = 1) -> RegisteredSchema:
    text = (SAMPLES / "registry" / subject / f"{version}.avsc").read_text()
    return registered(text, subject=subject, version=version)


def columns_of(*fields: dict[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a plain row with these fields."""
    return read_value_schema(registered(record("Row", *fields))).columns


def column_of(type_: Any, **more: Any) -> Column:
    """Return the only column of a plain row with one field ``a``."""
    (column,) = columns_of(field("a", type_, **more))
    return column
