"""A table that moves to a compatibility group which forked later keeps the values of its columns."""

from __future__ import annotations

from typing import Any

import pytest

from schemasync.app.applying import Applied
from tests.lab import Lab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"
INT, TEXT = ["null", "int"], ["null", "string"]


def followed(lab: Lab, group: str) -> Applied:
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "compatibility_group": group}]}
    lab.now_ms += 1000
    (applied,) = lab.apply().tables
    return applied


def register(lab: Lab, group: str, *columns: tuple[str, Any]) -> None:
    lab.register(TOPIC, lab.flat("Student", *columns), group=group)


def test_a_fix_of_an_older_major_ends_no_column_of_the_majors_after_it(lab: Lab) -> None:
    register(lab, "1", ("a", INT))
    register(lab, "2", ("a", INT), ("x", TEXT))
    lab.land(TOPIC, [{"id": 1, "a": 1, "x": "kept", "op": "c", "ts_ms": 1}], version=2)
    followed(lab, "2")
    lab.compact()
    register(lab, "1", ("a", INT), ("fix", INT))
    register(lab, "3", ("a", INT), ("x", TEXT), ("y", INT))
    moved = followed(lab, "3")
    lab.land(TOPIC, [{"id": 2, "a": 2, "x": "late", "op": "c", "ts_ms": 2}], version=2, hour="2026112001")
    again = followed(lab, "3")
    assert ([d.code for d in moved.diagnostics], again.diagnostics, again.held) == (["SS101"], (), False)
    assert lab.rows(TABLE, order_by="id") == [
        {"id": 1, "a": 1, "x": "kept", "y": None},
        {"id": 2, "a": 2, "x": "late", "y": None},
    ]


def test_a_table_moves_past_a_group_that_it_did_not_follow(lab: Lab) -> None:
    register(lab, "1", ("x", TEXT))
    lab.land(TOPIC, [{"id": 1, "x": "kept", "op": "c", "ts_ms": 1}])
    followed(lab, "1")
    register(lab, "2", ("z", TEXT))
    register(lab, "1", ("x", TEXT), ("fix", INT))
    followed(lab, "1")
    register(lab, "3", ("x", TEXT), ("fix", INT), ("n", INT))
    moved, again = followed(lab, "3"), followed(lab, "3")
    assert ([d.code for d in moved.diagnostics], again.diagnostics, again.held) == (["SS101"], (), False)
    assert lab.rows(TABLE) == [{"id": 1, "x": "kept", "fix": None, "n": None}]
