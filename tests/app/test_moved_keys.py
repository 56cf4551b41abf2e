"""A row whose configured key changes is one row: Debezium parts such an update only where its own key changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

Row = dict[str, Any]


COLUMNS = [{"name": name, "type": ["null", "string"]} for name in ("email", "shop", "name")]


def row(email: str, name: str, *, shop: str = "x") -> Row:
    return {"id": 1, "email": email, "shop": shop, "name": name}


def event(lsn: int, before: Row | None, after: Row | None) -> Row:
    op = "c" if before is None else "u"
    return {"before": before, "after": after, "source": {"lsn": lsn}, "op": op, "ts_ms": 1}


CREATED = event(1, None, row("a@x", "first"))
MOVED = event(2, row("a@x", "first"), row("b@x", "second"))


def keyed(lab: Lab, *keys: str) -> None:
    lab.settings = {"tables": [{"subject": "student-value", "table": "student", "keys": list(keys)}]}
    lab.register("student", Lab.debezium(*COLUMNS))


def emails(lab: Lab) -> list[tuple[str, str, str]]:
    return [(r["email"], r["shop"], r["name"]) for r in lab.rows("student", "email, shop")]


@pytest.mark.parametrize("between", [["apply"], ["compact"], []], ids=["delta", "base", "one file"])
def test_a_row_whose_key_changed_is_one_row(lab: Lab, between: list[str]) -> None:
    keyed(lab, "email")
    if between:
        lab.land("student", [CREATED])
        getattr(lab, between[0])()
    lab.land("student", [MOVED] if between else [CREATED, MOVED])
    lab.apply()
    seen = emails(lab)
    lab.compact()
    assert [seen, emails(lab)] == [[("b@x", "x", "second")]] * 2


def test_the_old_key_stays_deleted_when_what_it_was_lands_late(lab: Lab) -> None:
    keyed(lab, "email")
    lab.land("student", [MOVED])
    lab.compact()
    lab.land("student", [CREATED])
    lab.compact()
    assert emails(lab) == [("b@x", "x", "second")]


def test_what_a_move_did_not_send_stays_unknown_where_its_key_was_of_another_row(lab: Lab) -> None:
    keyed(lab, "email")
    unsent = "__debezium_unavailable_value"
    lab.land("student", [CREATED, event(2, row("a@x", "first"), row("b@x", unsent))])
    lab.apply()
    lab.land("student", [event(3, row("b@x", unsent), row("a@x", unsent))])
    lab.apply()
    seen = emails(lab)
    lab.compact()
    assert [seen, emails(lab)] == [[("a@x", "x", unsent)]] * 2


def test_one_of_several_key_columns_may_change(lab: Lab) -> None:
    keyed(lab, "email", "shop")
    lab.land("student", [CREATED, event(2, row("a@x", "first"), row("a@x", "second", shop="y"))])
    lab.compact()
    assert emails(lab) == [("a@x", "y", "second")]


def test_an_update_that_does_not_say_what_was_before_deletes_nothing(lab: Lab) -> None:
    keyed(lab, "email")
    lab.land("student", [CREATED, MOVED | {"before": None}])
    lab.compact()
    assert emails(lab) == [("a@x", "x", "first"), ("b@x", "x", "second")]
