"""A column gets another type: its values follow where all of them fit, at every step; else the table is held."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal as Number
from typing import Any

import pytest

from schemasync.app.applying import apply
from schemasync.app.compacting import compact
from schemasync.core.policy import Verdict
from tests.app.mortal import Fuse, mortal
from tests.lab import DAY, Lab, event

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"


def retyped(lab: Lab, old: Any, new: Any, *values: Any) -> None:
    """Make a table whose column ``a`` has these values, in a base and in a delta, and register its new type."""
    lab.register(TOPIC, lab.flat("S", ("a", {"type": old})))
    lab.land(TOPIC, [event(1, 1, a=values[0])])
    lab.compact()
    lab.land(TOPIC, [event(n, 2, a=value) for n, value in enumerate(values[1:], start=2)], hour="2026112001")
    lab.now_ms += 1000
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", {"type": new})))


def column(lab: Lab) -> list[Any]:
    return [row["a"] for row in lab.rows(TABLE, order_by="id")]


def codes(lab: Lab) -> tuple[Verdict, list[str]]:
    (planned,) = lab.plan().tables
    return planned.verdict, [d.code for d in planned.diagnostics]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}
NARROW_DECIMAL = DECIMAL | {"precision": 3, "scale": 1}
FINE_DECIMAL = DECIMAL | {"precision": 20, "scale": 8}
DAYS = {"type": "int", "connect.name": "io.debezium.time.Date"}
LONGS, INTS = ({"type": "array", "items": t} for t in ("long", "int"))
MAP, INT_MAP = ({"type": "map", "values": t} for t in ("long", "int"))


def point(type_: str) -> Any:
    return ["null", {"type": "record", "name": "P", "fields": [{"name": "x", "type": type_}]}]


POINT, NARROW_POINT = point("long"), point("string")

DATES = [date(1970, 1, 1), date(2026, 2, 3), date(1, 1, 1)]
PAIRS: dict[str, tuple[Any, Any, list[Any], list[Any]]] = {
    "int_text": (["null", "int"], ["null", "string"], [1, None, -7], ["1", None, "-7"]),
    "boolean_text": ("boolean", "string", [True, False, True], ["true", "false", "true"]),
    "text_int": ("string", "int", ["1", "-7", "007"], [1, -7, 7]),
    "text_decimal": ("string", DECIMAL, ["1", "-7.5", "0.01"], [Number("1.00"), Number("-7.50"), Number("0.01")]),
    "text_date": ("string", DAYS, ["1970-01-01", "2026-02-03", "0001-01-01"], DATES),
    "date_text": (DAYS, "string", [0, 1, -719162], ["1970-01-01", "1970-01-02", "0001-01-01"]),
    "decimal_text": (DECIMAL, "string", [Number("1.50"), Number("-0.01"), Number("0.00")], ["1.50", "-0.01", "0.00"]),
    "decimal_narrow": (DECIMAL, NARROW_DECIMAL, *([Number(n) for n in ("1.50", "-9.10", "0.00")],) * 2),
    "long_decimal": ("long", DECIMAL, [1, -7, 99999], [Number("1.00"), Number("-7.00"), Number("99999.00")]),
    "int_decimal": ("int", FINE_DECIMAL, [1, -7, 2**31 - 1], [Number(n) for n in (1, -7, 2**31 - 1)]),
    "long_int": ("long", "int", [1, 2**31 - 1, -(2**31)], [1, 2**31 - 1, -(2**31)]),
    "double_float": ("double", "float", [0.5, 2.0**30, -1.25], [0.5, 2.0**30, -1.25]),
    "double_long": ("double", "long", [0.0, 2.0**30, -1.0], [0, 2**30, -1]),
    "int_boolean": ("int", "boolean", [0, 1, 0], [False, True, False]),
    "float_decimal": ("float", DECIMAL, [0.5, 19.989999771118164, 0.0], [Number(n) for n in ("0.50", "19.99", "0.00")]),
    "list": (LONGS, INTS, [[1], [], [2]], [[1], [], [2]]),
    "struct": (POINT, NARROW_POINT, [{"x": 1}, {"x": 2}, None], [{"x": "1"}, {"x": "2"}, None]),
    "map": (MAP, INT_MAP, [{"k": 1}, {}, {"k": 2}], [[("k", 1)], [], [("k", 2)]]),
}  # fmt: skip
"""Name -> old type, new type, values as they land, values as they show afterwards."""


def test_values_that_fit_follow_and_read_the_same_before_and_after_they_are_rewritten(lab: Lab) -> None:
    olds, news = ([(name, {"type": pair[side]}) for name, pair in PAIRS.items()] for side in (0, 1))
    events = [event(n + 1, n + 1, **{name: pair[2][n] for name, pair in PAIRS.items()}) for n in range(3)]
    expected = [{"id": n + 1} | {name: pair[3][n] for name, pair in PAIRS.items()} for n in range(3)]
    lab.register(TOPIC, lab.flat("S", *olds))
    lab.land(TOPIC, events[:1])
    lab.compact()
    lab.land(TOPIC, events[1:2], hour="2026112001")
    lab.now_ms += 1000
    lab.apply()
    lab.register(TOPIC, lab.flat("S", *news))
    (planned,) = lab.plan().tables
    assert (planned.verdict, planned.files, planned.bytes > 0) == (Verdict.MIGRATE, 2, True)
    lab.apply()
    assert lab.rows(TABLE, order_by="id") == expected[:2]
    lab.land(TOPIC, events[2:], version=1, hour="2026112002")
    lab.now_ms += 1000
    lab.apply()
    assert lab.rows(TABLE, order_by="id") == expected
    lab.compact()
    assert lab.rows(TABLE, order_by="id") == expected
    lab.now_ms += 8 * DAY
    lab.compact()
    assert (lab.rows(TABLE, order_by="id"), codes(lab)) == (expected, (Verdict.NONE, []))


MISFITS: list[tuple[str, Any, Any, list[Any], str]] = [
    ("a number too large", "long", "int", [1, 2**31, 2], "column a: 1 value does not fit int: '2147483648'"),
    ("a text that is none", "string", "int", ["1", "x", "07 "], "column a: 2 values do not fit int: '07 ', 'x'"),
    ("a text with a line break", "string", "double", ["1", "2\n", "3"],
     r"column a: 1 value does not fit double: '2\n'"),
    ("a date with a line break", "string", DAYS, ["2026-02-03", "2026-02-03\u2028"],
     r"column a: 1 value does not fit date: '2026-02-03\u2028'"),
    ("a fraction", "double", "long", [1.0, 0.5, 2.0], "column a: 1 value does not fit bigint: '0.5'"),
    ("the largest number", "long", "double", [1, 2**63 - 1, -(2**63)],
     "column a: 1 value does not fit double: '9223372036854775807'"),
    ("a number just too large", "double", "long", [1.0, 2.0**63, -(2.0**63)],
     "column a: 1 value does not fit bigint: '9.223372036854776E18'"),
    ("what engines take for two numbers", "float", FINE_DECIMAL, [0.5, 19.989999771118164, 1.25],
     "column a: 1 value does not fit decimal(20,8): '19.99'"),
    ("a text of no finite number", "string", "float", ["1", "1e39", "2"],
     "column a: 1 value does not fit float: '1e39'"),
    ("a text of a year that there is not", "string", DAYS, ["2026-02-03", "0000-01-01"],
     "column a: 1 value does not fit date: '0000-01-01'"),
    ("in a list", LONGS, INTS, [[1], [2**40], []],
     "column a: 1 value does not fit array<int>: '[1099511627776]'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "values", "told"), [m[1:] for m in MISFITS], ids=[m[0] for m in MISFITS])
def test_one_value_that_does_not_fit_holds_the_table_and_is_shown(
    lab: Lab, old: Any, new: Any, values: list[Any], told: str
) -> None:
    retyped(lab, old, new, *values)
    lab.land(TOPIC, [event(9, 9, a=[] if isinstance(values[0], list) else 3)], hour="2026112002")
    (applied,) = lab.apply().tables
    assert (applied.held, [d.message for d in applied.plan.diagnostics]) == (True, [told])
    assert column(lab) == values
    assert applied.admitted is not None
    assert applied.admitted.waiting == 1


def test_a_held_migration_goes_on_once_the_value_is_corrected_and_folded(lab: Lab) -> None:
    retyped(lab, "long", "int", 1, 2**31)
    lab.apply()
    lab.land(TOPIC, [event(2, 3, a=7)], version=1, hour="2026112002")
    lab.now_ms += 1000
    lab.apply()
    assert codes(lab) == (Verdict.HOLD, ["SS125"])
    lab.compact()
    assert codes(lab) == (Verdict.MIGRATE, ["SS113"])
    lab.apply()
    assert (column(lab), codes(lab)) == ([1, 7], (Verdict.NONE, []))


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_a_held_migration_goes_on_once_the_row_that_does_not_fit_is_deleted_and_folded(lab: Lab, kernel: str) -> None:
    """Deletes of flat events repeat the whole row, with the value that does not fit."""
    lab.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    retyped(lab, "string", "int", "1", "x")
    lab.land(TOPIC, [event(2, 3, "d", a="x")], version=1, hour="2026112002")
    lab.now_ms += 1000
    lab.compact()
    assert codes(lab) == (Verdict.MIGRATE, ["SS113"])
    lab.apply()
    assert column(lab) == [1]
    (compacted,) = lab.compact().tables
    assert (compacted.failure, column(lab), codes(lab)) == (None, [1], (Verdict.NONE, []))


def test_values_that_follow_in_two_steps_only_hold_the_table_until_the_first_is_in_the_files(lab: Lab) -> None:
    """No boolean becomes a double, but as the int that it became in between it does."""
    retyped(lab, "boolean", "int", True, False)
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "double")))
    (applied,) = lab.apply().tables
    assert (applied.held, [d.code for d in applied.plan.diagnostics]) == (True, ["SS106", "SS120"])
    lab.compact()
    assert (column(lab), codes(lab)) == ([1, 0], (Verdict.EVOLVE, ["SS106"]))
    # What the state before had cannot be shown any more: no view of it is looked for.
    lab.session.sql(f"ALTER VIEW {lab.database}.{TABLE}_view AS SELECT 1 AS id")
    assert codes(lab) == (Verdict.EVOLVE, ["SS106", "SS203"])
    lab.apply()
    assert (column(lab), codes(lab)) == ([1.0, 0.0], (Verdict.NONE, []))


LARGE = DECIMAL | {"precision": 20, "scale": 0}


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_what_another_type_shows_does_not_depend_on_whether_a_compaction_ran_in_between(lab: Lab, kernel: str) -> None:
    """A boolean becomes the text 'true', and the int that it became in between '1'; some doubles no decimal at all."""
    lab.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    for types in (("boolean", "double"), ("int", "long"), ("string", LARGE)):
        lab.register(TOPIC, lab.flat("S", *((name, {"type": type_}) for name, type_ in zip("ab", types, strict=True))))
        if types[0] == "boolean":
            lab.land(TOPIC, [event(1, 1, a=True, b=1e16)])
        (applied,) = lab.apply().tables
        lab.now_ms += 1000
    assert applied.held
    assert [d.message for d in applied.plan.diagnostics if d.code == "SS127"] == [
        "column a: rows of version 1 still hold boolean; as string they would read otherwise than by way of int",
        "column b: rows of version 1 still hold double; "
        "as decimal(20,0) they would read otherwise than by way of bigint",
    ]
    assert lab.rows(TABLE) == [{"id": 1, "a": 1, "b": 10**16}]
    lab.compact()
    lab.apply()
    (compacted,) = lab.compact().tables
    assert (compacted.failure, lab.rows(TABLE), codes(lab)) == (
        None,
        [{"id": 1, "a": "1", "b": Number(10**16)}],
        (Verdict.NONE, []),
    )


def test_what_landed_under_the_old_type_is_looked_at_before_the_view_changes(lab: Lab) -> None:
    retyped(lab, "long", "int", 1, 2)
    lab.land(TOPIC, [event(3, 3, a=2**40)], version=1, hour="2026112002")
    (applied,) = lab.apply().tables
    assert ([d.code for d in applied.plan.diagnostics], column(lab)) == (["SS125"], [1, 2, 2**40])


def test_what_is_in_a_partition_that_was_dropped_by_hand_is_looked_at_before_the_view_changes(lab: Lab) -> None:
    retyped(lab, "long", "int", 1, 2**40)
    metastore = lab.workspace.metastore
    (delta,) = (name for name in metastore.partitions(lab.database, TABLE) if name.startswith("delta"))
    metastore.drop_partitions(lab.database, TABLE, [delta])
    (applied,) = lab.apply().tables
    assert [step.kind for step in applied.done] == ["repair_partitions"]
    assert ([d.code for d in applied.plan.diagnostics], column(lab)) == (["SS125"], [1, 2**40])


def test_values_that_do_not_fit_are_looked_for_once_while_the_rows_are_the_same(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    retyped(lab, "long", "int", 1, 2**40)
    sql, asked = lab.workspace.sql, []
    query = sql.query

    def counted(text: str) -> Any:
        asked.append(text)
        return query(text)

    monkeypatch.setattr(sql, "query", counted)

    def looked(**landed: Any) -> tuple[list[str], int]:
        """Let an event land and return what holds the table, and how often its values were asked for."""
        asked.clear()
        lab.land(TOPIC, [event(3, 3, a=landed.pop("a"))], **landed)
        lab.now_ms += 1000
        (applied,) = lab.apply().tables
        told = [d.message for d in applied.plan.diagnostics if d.code == "SS125"]
        return told, sum("count_if" in text for text in asked)

    one = ["column a: 1 value does not fit int: '1099511627776'"]
    assert looked(a=1, hour="2026112002") == (one, 1)
    assert looked(a=1, hour="2026112003") == (one, 0)
    assert looked(a=2**41, hour="2026112004", version=1) == (one, 0)
    assert looked(a=1, hour="2026112005")[1] == 1


def test_a_late_file_of_the_old_type_follows_or_is_named(lab: Lab) -> None:
    retyped(lab, "string", "int", "1", "2")
    lab.apply()
    lab.land(TOPIC, [event(3, 3, a="30")], version=1, hour="2026112000", name="late.parquet")
    lab.apply()
    assert column(lab) == [1, 2, 30]
    lab.land(TOPIC, [event(4, 4, a="many")], version=1, hour="2026112000", name="later.parquet")
    (applied,) = lab.apply().tables
    assert [(d.code, "later.parquet" in d.message, "'many'" in d.message) for d in applied.diagnostics] == [
        ("SS303", True, True)
    ]
    assert column(lab) == [1, 2, 30]


def test_a_view_that_others_than_spark_cannot_read_is_told_while_it_is_so(lab: Lab) -> None:
    lab.settings = {"defaults": {"view": {"readers": "any"}}}
    lab.register(TOPIC, lab.flat("S", ("a", {"type": LONGS})))
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", {"type": INTS})))
    told = [codes(lab)]
    lab.land(TOPIC, [event(1, 1, a=[1])])
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", {"type": {"type": "array", "items": "string"}})))
    told.append(codes(lab))
    lab.apply()
    told.append(codes(lab))
    lab.compact()
    told.append(codes(lab))
    assert told == [
        (Verdict.MIGRATE, ["SS113"]),
        (Verdict.MIGRATE, ["SS113", "SS117"]),
        (Verdict.NONE, ["SS117"]),
        (Verdict.NONE, []),
    ]
    assert column(lab) == [["1"]]


def test_a_late_delete_need_not_fit_beside_its_key(lab: Lab) -> None:
    retyped(lab, "string", "int", "1", "2")
    lab.apply()
    lab.land(TOPIC, [event(2, 3, "d", a="many")], version=1, hour="2026112000", name="late.parquet")
    lab.apply()
    assert (column(lab), codes(lab)) == ([1], (Verdict.NONE, []))


def test_under_variant_the_old_column_stays_beside_the_new_one(lab: Lab) -> None:
    lab.settings = {"defaults": {"policies": {"retype": "variant"}}}
    retyped(lab, ["null", "int"], ["null", {"type": "array", "items": "int"}], 1, 2)
    lab.land(TOPIC, [event(2, 3, a=[20])], hour="2026112002")
    lab.apply()
    expected = [{"id": 1, "a": None, "a__v1": 1}, {"id": 2, "a": [20], "a__v1": None}]
    assert lab.rows(TABLE, order_by="id") == expected
    lab.compact()
    assert (lab.rows(TABLE, order_by="id"), codes(lab)) == (expected, (Verdict.NONE, []))


def test_under_variant_a_column_that_is_renamed_at_once_keeps_its_values_too(lab: Lab) -> None:
    lab.settings = {"defaults": {"policies": {"retype": "variant"}}}
    retyped(lab, ["null", "int"], ["null", "int"], 1, 2)
    text = {"type": ["null", "string"], "aliases": ["a"]}
    lab.register(TOPIC, lab.flat("S", ("b", text)))
    lab.land(TOPIC, [event(2, 3, b="x")], hour="2026112002")
    lab.apply()
    expected = [{"id": 1, "b": None, "a__v2": 1}, {"id": 2, "b": "x", "a__v2": None}]
    assert lab.rows(TABLE, order_by="id") == expected
    lab.compact()
    assert (lab.rows(TABLE, order_by="id"), codes(lab)) == (expected, (Verdict.NONE, []))


def test_times_of_another_precision_follow_where_the_configuration_says_so(lab: Lab) -> None:
    lab.settings = {"defaults": {"policies": {"semantic": "migrate"}}}
    units = [{"type": "long", "connect.name": f"io.debezium.time.{name}"} for name in ("Timestamp", "MicroTimestamp")]
    retyped(lab, *units, 1_000, 2_000)
    lab.land(TOPIC, [event(3, 3, a=3_000_000)], hour="2026112002")
    (applied,) = lab.apply().tables
    assert [d.code for d in applied.plan.diagnostics] == ["SS115"]
    assert [moment.timestamp() for moment in column(lab)] == [1.0, 2.0, 3.0]
    lab.compact()
    assert [moment.timestamp() for moment in column(lab)] == [1.0, 2.0, 3.0]


def test_a_member_renamed_by_alias_keeps_its_values_in_lists_too(lab: Lab) -> None:
    def lines(name: str, *aliases: str) -> Any:
        fields = [{"name": name, "type": "int", "aliases": list(aliases)}]
        return {"type": "array", "items": {"type": "record", "name": "L", "fields": fields}}

    retyped(lab, lines("zip"), lines("postcode", "zip"), [{"zip": 1}], [{"zip": 2}])
    lab.land(TOPIC, [event(3, 3, a=[{"postcode": 3}])], hour="2026112002")
    (applied,) = lab.apply().tables
    assert [d.code for d in applied.plan.diagnostics] == ["SS107"]
    expected = [[{"postcode": n}] for n in (1, 2, 3)]
    assert column(lab) == expected
    lab.compact()
    assert column(lab) == expected


class Asking(Fuse):
    """Asks after every writing call."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        super().__init__()
        self.ask = ask
        self.answers: list[Any] = []

    def done(self, call: str) -> None:
        super().done(call)
        self.answers.append(self.ask())


def test_whoever_resolved_the_view_before_a_migration_reads_what_it_had_then_through_every_step(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", "long")))
    lab.land(TOPIC, [event(1, 1, a=10), event(2, 2, a=20)], version=1)
    lab.compact()
    earlier = lab.session.table(f"{lab.database}.{TABLE}_view").select("id", "a").orderBy("id")
    lab.register(TOPIC, lab.flat("S", ("a", "string")))
    lab.land(TOPIC, [event(1, 3, a="x")], hour="2026112003")
    asking = Asking(lambda: [tuple(row) for row in earlier.where("true").collect()])
    for run in (apply, compact):
        lab.now_ms += 1000
        (done,) = run(mortal(lab.workspace, asking)).tables
        assert (getattr(done, "failure", None) or getattr(done, "error", None)) is None
    assert (column(lab), {"redefine_view", "swap_properties", "merge"} - {*asking.calls}) == (["x", "20"], set())
    assert asking.answers == [[(1, 10), (2, 20)]] * len(asking.calls)


def test_a_union_that_gains_a_branch_keeps_what_it_holds(lab: Lab) -> None:
    retyped(
        lab, ["int", "string"], ["string", "int", "boolean"],
        {"member0": 1, "member1": None}, {"member0": None, "member1": "x"},
    )  # fmt: skip
    lab.apply()
    expected = [
        {"member0": None, "member1": 1, "member2": None},
        {"member0": "x", "member1": None, "member2": None},
    ]
    assert column(lab) == expected
    lab.compact()
    assert column(lab) == expected


@pytest.mark.parametrize("arrow_limit", ["256MB", "0"])
def test_a_union_whose_branch_is_widened_keeps_what_it_holds(lab: Lab, arrow_limit: str) -> None:
    lab.settings = {"defaults": {"compaction": {"arrow_limit": arrow_limit}}}
    one, two = {"member0": None, "member1": 1}, {"member0": "x", "member1": None}
    retyped(lab, ["string", "int"], ["string", "long"], one, two)
    lab.land(TOPIC, [event(3, 3, a=one)], version=1, hour="2026112001", name="late.parquet")
    lab.apply()
    assert column(lab) == [one, two, one]
    lab.compact()
    assert (column(lab), codes(lab)) == ([one, two, one], (Verdict.NONE, []))


def test_a_branch_that_is_gone_takes_no_value_with_it(lab: Lab) -> None:
    retyped(lab, ["string", "int"], ["string", "boolean"], {"member0": "x", "member1": None}, {"member1": 7})
    (applied,) = lab.apply().tables
    assert (applied.held, [d.code for d in applied.diagnostics if d.code == "SS125"]) == (True, ["SS125"])
    assert column(lab)[1] == {"member0": None, "member1": 7}


def test_a_branch_that_nothing_holds_may_go_and_a_late_file_that_does_is_named(lab: Lab) -> None:
    empty = {"member0": "x", "member1": None}
    retyped(lab, ["string", "int"], ["string", "boolean"], empty, empty)
    lab.apply()
    assert column(lab) == [empty, empty]
    lab.land(TOPIC, [event(3, 3, a={"member1": 7})], version=1, hour="2026112001", name="late.parquet")
    (applied,) = lab.apply().tables
    (refused,) = [d for d in applied.diagnostics if d.code == "SS303"]
    assert "late.parquet" in refused.message
    assert "a union's branch is gone, for example of 7" in refused.message
