from __future__ import annotations

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark


def test_the_newest_event_of_a_key_shows_before_and_after_compaction(lab: Lab) -> None:
    lab.register("shop.student", lab.flat("Student", ("name", ["null", "string"])))
    lab.land(
        "shop.student",
        [{"id": 1, "name": "old", "op": "c", "ts_ms": 1}, {"id": 1, "name": "new", "op": "u", "ts_ms": 2}],
    )
    lab.apply()
    before = lab.rows("shop_student")
    lab.compact()
    assert (before, lab.rows("shop_student")) == ([{"id": 1, "name": "new"}],) * 2
