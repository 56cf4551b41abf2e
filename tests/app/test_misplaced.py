"""A table whose `location:` is changed: it is held while its data is not there, and goes on where that is."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.lab import Begun, Lab

pytestmark = pytest.mark.spark

ROWS = {"a": [{"id": 1, "name": "of a"}], "b": [{"id": 1, "name": "of b"}]}


def two_tables_alike(lab: Lab) -> None:
    """Make two tables of one schema, and of one state: nothing in their numbers tells them apart."""
    for topic, rows in ROWS.items():
        lab.register(topic, lab.flat("Row", ("name", ["null", "string"])))
        lab.land(topic, [row | {"op": "c", "ts_ms": 1} for row in rows])
    lab.apply()
    lab.compact()


def placed(lab: Lab, **directories: str) -> dict[str, Any]:
    entries = [
        {"subject": f"{topic}-value", "table": topic, "location": f"file://{lab.root}/lake/{directory}"}
        for topic, directory in directories.items()
    ]
    return {"tables": entries}


def told(lab: Lab) -> list[tuple[str, list[str], list[str]]]:
    return [
        (t.target.table, [s.kind for s in t.steps], [d.message.replace(str(lab.root), "") for d in t.diagnostics])
        for t in lab.plan().tables
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_a_table_never_takes_the_data_of_another_one_for_its_own(begun: Begun, more: int) -> None:
    lab = begun(two_tables_alike)
    for number in range(more):
        # What the other one published since would be what this one has yet to finish.
        lab.land("b", [{"id": 1, "name": "of b", "op": "u", "ts_ms": 2 + number}], hour="2026112001")
        lab.apply()
    lab.settings = placed(lab, a="b", b="a")
    planned = told(lab)
    applied, compacted = lab.apply(), lab.compact()
    held = [table.to_json()["held"] for table in compacted.tables]
    assert planned == [
        (one, [], [f"file:/lake/{other}, where location: of {lab.database}.{one} says, has data of {other}-value"])
        for one, other in (("a", "b"), ("b", "a"))
    ]
    assert ([t.error for t in applied.tables], held) == ([None, None], [True, True])
    assert {name: lab.rows(name) for name in ROWS} == ROWS
    lab.settings = {}
    assert told(lab) == [("a", [], []), ("b", [], [])]


def test_a_location_without_the_data_is_refused_before_anything_is_done_and_taken_with_it(begun: Begun) -> None:
    lab = begun(two_tables_alike)
    lab.settings = placed(lab, a="elsewhere")
    said = f"{lab.database}.a has its data in file:/lake/a, and nothing of it is in file:/lake/elsewhere"
    (planned,) = told(lab)
    (applied,) = lab.apply().tables
    assert (planned, applied.error) == (("a", [], [f"{said}, where location: says"]), None)
    assert not (lab.root / "lake/elsewhere").exists()
    shutil.move(lab.root / "lake/a", lab.root / "lake/elsewhere")
    lab.apply()
    assert (told(lab), lab.rows("a")) == ([("a", [], [])], ROWS["a"])


def test_two_tables_that_change_their_names_are_held(begun: Begun) -> None:
    lab = begun(two_tables_alike)
    lab.settings = {"tables": [{"subject": "a-value", "table": "b"}, {"subject": "b-value", "table": "a"}]}
    lab.apply()
    assert told(lab) == [(one, [], [f"{lab.database}.{one} belongs to the subject {one}-value"]) for one in ("a", "b")]
    assert {name: lab.rows(name) for name in ROWS} == ROWS
