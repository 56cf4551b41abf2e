"""Folded deltas stay registered for the readers' sake; what is in them must not show through."""

from __future__ import annotations

import pytest

from schemasync.app.applying import apply
from tests.app.mortal import Fuse, mortal
from tests.lab import HOUR, Lab

pytestmark = pytest.mark.spark

TOPIC = "shop.student"


def test_a_folded_delta_does_not_show_under_a_widened_key(lab: Lab) -> None:
    narrow = lab.flat("Student", ("name", ["null", "string"]))
    narrow["fields"][0]["type"] = "int"
    lab.register(TOPIC, narrow)
    lab.apply()
    lab.land(TOPIC, [{"id": 1, "name": "Ada", "op": "c", "ts_ms": 1}])
    lab.apply()
    lab.register(TOPIC, lab.flat("Student", ("name", ["null", "string"])))
    lab.compact()
    assert lab.rows("shop_student") == [{"id": 1, "name": "Ada"}]
    lab.now_ms += 2 * HOUR
    lab.compact()
    assert lab.rows("shop_student") == [{"id": 1, "name": "Ada"}]
    assert not lab.plan().tables[0].steps


def test_a_late_row_does_not_show_when_the_tombstone_that_beat_it_is_purged(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": {"tombstone_retention": "3h"}}}
    lab.register(TOPIC, lab.flat("Student", ("name", ["null", "string"])))
    lab.apply()
    steps = ((0, 1, "d", 20), (2 * HOUR, 2, "c", 30), (HOUR // 2, 1, "u", 10), (HOUR * 3 // 4, 3, "c", 40))
    for wait, key, op, when in steps:
        lab.now_ms += wait
        lab.land(TOPIC, [{"id": key, "name": "Ada", "op": op, "ts_ms": when}])
        lab.compact()
    assert [row["id"] for row in lab.rows("shop_student")] == [2, 3]


def test_a_delta_without_a_row_has_a_directory_whatever_the_storage_makes_of_files(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("Student", ("name", ["null", "string"])))
    lab.apply()
    lab.land(TOPIC, [])
    fuse = Fuse()
    assert [table.error for table in apply(mortal(lab.workspace, fuse)).tables] == [None]
    assert "make_directory" in fuse.calls[: fuse.calls.index("add_partitions")]
