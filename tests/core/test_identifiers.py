"""Every row of docs/identifiers.md is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from schemasync.core.avro import read_value_schema
from schemasync.core.history import read_history
from schemasync.core.names import table_name
from schemasync.core.ports import RegisteredSchema
from schemasync.core.schema import EnvelopeKind
from schemasync.core.shape import shape_of
from schemasync.errors import SchemaError
from tests.core.builders import target

PAGE = (Path(__file__).parents[2] / "docs" / "identifiers.md").read_text(encoding="utf-8")


def rows(cells: int) -> list[list[str]]:
    found = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in found if len(row) == cells]


def names(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def outcome(columns: list[str]) -> tuple[list[str], list[str], str]:
    """Return the table's columns, the view's, and the code for a schema with these fields."""
    fields = [{"name": name, "type": "string"} for name in columns]
    own = [{"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}]
    text = json.dumps({"type": "record", "name": "R", "fields": [*fields, *own]})
    registered = RegisteredSchema(subject="shop.student-value", version=1, schema_id=1, text=text)
    try:
        found = read_history([read_value_schema(registered, envelope=EnvelopeKind.FLAT)])
    except SchemaError as error:
        return [], [], error.code
    shape, remarks = shape_of(target(insert_only=True), found, found.newest, key=None, baseline=1)
    shown = [c.name for c in shape.columns]
    return [shape.layout.current(c).name for c in shape.columns], shown, "".join(r.code for r in remarks)


@pytest.mark.parametrize(("schema", "table", "view", "code"), rows(4))
def test_a_column_becomes_what_the_page_says(schema: str, table: str, view: str, code: str) -> None:
    assert outcome(names(schema)) == (names(table), names(view), code)


@pytest.mark.parametrize(("topic", "table"), rows(2))
def test_a_topic_becomes_what_the_page_says(topic: str, table: str) -> None:
    assert [table_name(names(topic)[0])] == names(table)


def test_the_page_has_rows_of_both_kinds() -> None:
    assert (len(rows(4)), len(rows(2))) == (23, 5)


@pytest.mark.parametrize(
    ("field", "code"),
    [("a" * 767, "SS413"), ("a" * 768, "SS411"), ("a" * 128, ""), ("a" * 129, "SS413")],
)
def test_long_names_are_said_or_refused(field: str, code: str) -> None:
    assert outcome([field])[2] == code
