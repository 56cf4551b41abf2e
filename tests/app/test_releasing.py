"""A held table goes on as it is, says since when and what would release it, and nothing that waited is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from schemasync.app.applying import Applied
from schemasync.app.releasing import release
from schemasync.app.status import Hold, status
from schemasync.core.policy import Verdict
from schemasync.core.release import Release
from tests.lab import HOUR, START, Lab, event

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"


def released(lab: Lab, **how: bool) -> Applied:
    (applied,) = release(lab.workspace, TABLE, Release(**how)).tables
    return applied


def hold(lab: Lab) -> Hold | None:
    (found,) = status(lab.workspace).tables
    return found.hold


def test_a_hold_is_dated_told_with_its_way_out_and_lifted_once(lab: Lab) -> None:
    lab.settings = {"defaults": {"policies": {"add": "hold", "retype": "hold"}}}
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.land(TOPIC, [event(1, 1, a=1)])
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "string"), ("b", ["null", "int"])))
    lab.land(TOPIC, [event(2, 2, a="2", b=2)], hour="2026112001")
    assert hold(lab) == Hold(since_ms=None, release=f"schemasync release {TABLE} --migrate")
    lab.apply()
    lab.now_ms += HOUR
    lab.apply()
    assert hold(lab) == Hold(since_ms=START, release=f"schemasync release {TABLE} --migrate")
    assert released(lab).held
    assert lab.rows(TABLE) == [{"id": 1, "a": 1}]
    assert not released(lab, migrate=True).held
    assert lab.rows(TABLE, order_by="id") == [{"id": 1, "a": "1", "b": None}, {"id": 2, "a": "2", "b": 2}]
    assert hold(lab) is None
    lab.register(TOPIC, lab.flat("S", ("a", "string"), ("b", ["null", "int"]), ("c", ["null", "int"])))
    lab.apply()
    assert hold(lab) == Hold(since_ms=START + HOUR, release=f"schemasync release {TABLE}")


def test_a_hold_that_ends_by_itself_leaves_no_date(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", "string")))
    lab.land(TOPIC, [event(1, 1, a="x")])
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.apply()
    assert hold(lab) == Hold(since_ms=START, release=None)
    lab.register(TOPIC, lab.flat("S", ("a", "string")))
    lab.apply()
    lab.now_ms += HOUR
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.apply()
    assert hold(lab) == Hold(since_ms=START + HOUR, release=None)


def keyed(lab: Lab, *fields: str) -> None:
    schema = {"type": "record", "name": "Key", "fields": [{"name": name, "type": "long"} for name in fields]}
    lab.registry.register(f"{TOPIC}-key", json.dumps(schema))


LINE = ("line", {"type": "long", "default": 0})


def test_a_table_goes_on_under_another_key_and_no_row_that_was_replaced_comes_back(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", "string"), LINE))
    lab.land(TOPIC, [event(1, 1, a="old", line=7), event(2, 1, a="gone", line=0)])
    lab.compact()
    lab.land(TOPIC, [event(1, 2, a="new", line=0), event(2, 2, "d", a="", line=0)], hour="2026112001")
    lab.now_ms += 1000
    lab.compact()
    lab.land(TOPIC, [event(3, 3, a="three", line=0)], hour="2026112002")
    lab.now_ms += 1000
    lab.apply()
    keyed(lab, "id", "line")
    lab.land(TOPIC, [event(1, 4, a="second line", line=1), event(3, 4, a="3", line=0)], hour="2026112003")
    (applied,) = lab.apply().tables
    assert [d.code for d in applied.diagnostics] == ["SS122", "SS304"]
    before = [{"id": 1, "a": "new", "line": 0}, {"id": 3, "a": "three", "line": 0}]
    assert lab.rows(TABLE, order_by="id") == before
    done = released(lab, rebuild=True)
    assert [step.kind for step in done.done] == ["rebuild", "replace_view", "set_version", "admit", "record_history"]
    after = [
        {"id": 1, "a": "new", "line": 0},
        {"id": 1, "a": "second line", "line": 1},
        {"id": 3, "a": "3", "line": 0},
    ]
    assert lab.rows(TABLE, order_by="id, line") == after
    lab.now_ms += 1000
    lab.compact()
    assert lab.rows(TABLE, order_by="id, line") == after
    lab.now_ms += 2 * HOUR
    lab.compact()
    (planned,) = lab.plan().tables
    assert (lab.rows(TABLE, order_by="id, line"), planned.verdict, planned.steps) == (after, Verdict.NONE, ())


def test_a_registry_that_forgets_the_newest_key_gives_no_table_its_old_one_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.settings = {"defaults": {"policies": {"key": "rebuild"}}}
    lab.register(TOPIC, lab.flat("S", LINE))
    lab.apply()
    keyed(lab, "id", "line")
    lab.apply()
    versions = lab.registry.versions
    lagging = {f"{TOPIC}-key": 1}
    monkeypatch.setattr(lab.registry, "versions", lambda subject: versions(subject)[: lagging.get(subject)])
    rows = [{"id": 1, "line": line} for line in (0, 1)]
    lab.land(TOPIC, [event(1, 1, line=row["line"]) for row in rows])
    (applied,) = lab.apply().tables
    # Which of the keys the file is of, nobody can tell: it waits.
    assert [d.code for d in applied.diagnostics] == ["SS116", "SS404", "SS304"]
    lagging.clear()
    (applied,) = lab.apply().tables
    assert (applied.held, applied.plan.diagnostics) == (False, ())
    assert lab.rows(TABLE, order_by="line") == rows


def test_the_view_of_a_table_that_was_rebuilt_carries_no_value_that_was_not_sent(lab: Lab) -> None:
    """All that were are in the new base: there is nothing left to look through."""
    lab.settings = {"defaults": {"policies": {"key": "rebuild"}}}
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "string"]), LINE))
    unsent = "__debezium_unavailable_value"
    lab.land(TOPIC, [event(1, 1, "c", a="long", line=0), event(1, 2, a=unsent, line=1)])
    lab.apply()
    keyed(lab, "id", "line")
    (applied,) = lab.apply().tables
    assert (applied.error, "rebuild" in [step.kind for step in applied.done]) == (None, True)
    assert lab.rows(TABLE) == [{"id": 1, "a": "long", "line": 1}]
    view = lab.workspace.metastore.table(lab.database, f"{TABLE}_view")
    assert view is not None
    assert (" OVER (" in view.view_text, lab.plan().tables[0].steps) == (False, ())


NULLABLE = ("tenant", ["null", "long"])


def deleted_and_rekeyed(lab: Lab, *, keys: tuple[str, ...], folded: bool) -> None:
    """Go on under another key, with deletes that have no value in the column ``tenant``, or share it with a row."""
    lab.settings = {"defaults": {"policies": {"key": "rebuild"}}}
    keyed(lab, "id", "line")
    lab.register(TOPIC, lab.flat("S", ("line", "long"), NULLABLE))
    lab.land(TOPIC, [event(n, 1, line=line, tenant=n) for n in range(1, 9) for line in (0, 1)])
    lab.compact()
    lab.now_ms += 1000
    gone = [event(n, 5, "d", line=int(n != 7), tenant=None) for n in range(1, 9)]
    lab.land(TOPIC, [*gone, event(8, 5, "d", line=0, tenant=None)], hour="2026112001")
    lab.now_ms += 1000
    (lab.compact if folded else lab.apply)()
    keyed(lab, *keys)
    lab.now_ms += 1000
    assert [t.error for t in lab.apply().tables] == [None]


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("keys", [("id",), ("tenant", "id"), ("tenant",)])
def test_a_delete_under_the_old_key_takes_no_row_of_the_new_one_with_it(
    lab: Lab, keys: tuple[str, ...], folded: bool
) -> None:
    deleted_and_rekeyed(lab, keys=keys, folded=folded)
    rows = [{"id": n, "line": int(n == 7), "tenant": n} for n in range(1, 8)]
    assert lab.rows(TABLE, order_by="id") == rows
    lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"}}}
    lab.land(TOPIC, [event(9, 3, line=0, tenant=9)], hour="2026112002")
    lab.now_ms += 1000
    lab.apply()
    rows.append({"id": 9, "line": 0, "tenant": 9})
    assert lab.rows(TABLE, order_by="id") == rows
    for step in (3, 4, 5):
        # Events that may be late, so that what is there of their keys is looked up; shards are cut meanwhile.
        lab.land(TOPIC, [event(step, 2, line=9, tenant=step), event(9, 2, line=9, tenant=9)], hour=f"202611200{step}")
        lab.now_ms += 1000
        (done,) = lab.compact().tables
        assert done.failure is None
        rows[step - 1]["line"] = 9
        assert lab.rows(TABLE, order_by="id") == rows


def test_a_late_event_does_not_bring_back_what_was_deleted_before_the_key_changed(lab: Lab) -> None:
    deleted_and_rekeyed(lab, keys=("id",), folded=True)
    lab.land(TOPIC, [event(8, 4, line=0, tenant=8)], hour="2026112002")
    for run in (lab.apply, lab.compact):
        lab.now_ms += 1000
        run()
        assert [row["id"] for row in lab.rows(TABLE, order_by="id")] == [*range(1, 8)]


def test_a_key_column_that_is_renamed_with_the_key_is_the_same_column(lab: Lab) -> None:
    lab.settings = {"defaults": {"policies": {"key": "rebuild"}}}
    lab.register(TOPIC, lab.flat("S", ("code", "long")))
    keyed(lab, "id")
    lab.land(TOPIC, [event(n, 1, code=n) for n in range(1, 5)])
    lab.land(TOPIC, [event(n, 5, "d", code=n) for n in (1, 2)], hour="2026112001")
    lab.compact()
    lab.now_ms += 1000
    lab.register(TOPIC, lab.flat("S", ("number", {"type": "long", "aliases": ["code"]})))
    keyed(lab, "number")
    (planned,) = lab.plan().tables
    assert planned.rewrite
    assert [t.error for t in lab.apply().tables] == [None]
    # Late: what was deleted is remembered under the new name.
    lab.land(TOPIC, [event(1, 4, number=1), event(9, 4, number=9)], hour="2026112002")
    for run in (lab.apply, lab.compact):
        lab.now_ms += 1000
        run()
        assert [row["number"] for row in lab.rows(TABLE, order_by="number")] == [3, 4, 9]


def nothing(_: Lab) -> None:
    """Leave the table as it is."""


def partitions(lab: Lab) -> None:
    metastore = lab.workspace.metastore
    metastore.drop_partitions(lab.database, TABLE, metastore.partitions(lab.database, TABLE))


def the_column(lab: Lab) -> None:
    metastore = lab.workspace.metastore
    table = metastore.table(lab.database, TABLE)
    assert table is not None
    metastore.replace_columns(lab.database, TABLE, [c for c in table.columns if c.name != "code"])


@pytest.mark.parametrize("dropped", [nothing, partitions, the_column])
def test_rows_that_a_new_key_cannot_tell_apart_hold_the_table(lab: Lab, dropped: Callable[[Lab], None]) -> None:
    """Also where somebody dropped some of it by hand right before."""
    lab.settings = {"defaults": {"policies": {"key": "rebuild"}}}
    lab.register(TOPIC, lab.flat("S", ("code", ["null", "long"])))
    lab.land(TOPIC, [event(n, 1, code=code) for n, code in enumerate([7, 7, 8, None])])
    lab.apply()
    dropped(lab)
    keyed(lab, "code")
    (applied,) = lab.apply().tables
    assert [d.message for d in applied.plan.diagnostics if d.code == "SS126"] == [
        "1 rows have no value in the new key (code)",
        "1 rows have the same new key (code) as another row",
    ]
    assert len(lab.rows(TABLE)) == 4
