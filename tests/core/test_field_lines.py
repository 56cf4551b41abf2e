from __future__ import annotations

import pytest

from schemasync.core.field_lines import line_for, line_of

TEXT = """{"type": "record", "name": "Student", "fields": [
  {"name": "id", "type": "long"},
  {"name": "address", "type": {"type": "record", "name": "Address", "fields": [
    {"name" : "zip", "type": "string"}]}},
  {"name":
     "tags", "type": {"type": "array", "items": "string"}},
  {"name": "zip", "type": "int"}
]}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [("id", 2), ("address", 3), ("address.zip", 4), ("tags", 6), ("tags.element", 6), ("tags.zip", 7), ("nope", None)],
)
def test_a_field_is_found_by_its_path(path: str, line: int | None) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize(
    ("message", "columns", "line"),
    [
        ("column id was added", (), 2),
        ("field address.zip was dropped.", (), 4),
        ("s-value version 3, field tags.element: recursive type", (), 6),
        ("name was dropped and tags of the same type added", {"name", "tags"}, 6),
        ("columns now stand in the order id, tags", (), 1),
        ("column gone was dropped", {"gone"}, 1),
        ("lake.report uses zip of lake.student_view", {"zip"}, 4),
        ("", (), 1),
    ],
)
def test_a_message_is_about_the_first_field_that_it_names(message: str, columns: set[str], line: int) -> None:
    assert line_for(TEXT, message, columns) == line
