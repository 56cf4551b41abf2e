from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from schemasync.core.changes import (
    AddColumn,
    AddField,
    Change,
    ChangeAliases,
    ChangeDefault,
    ChangeDetail,
    ChangeDoc,
    ChangeEnvelope,
    ChangeKey,
    ChangeNullability,
    ChangeSemanticType,
    DropColumn,
    DropField,
    RenameColumn,
    RenameField,
    ReorderColumns,
    RetypeColumn,
    WidenColumn,
)
from schemasync.core.config import Policies
from schemasync.core.describe import KINDS
from schemasync.core.diff import diff
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning
from schemasync.core.policy import Judgement, Verdict, judge, worst
from schemasync.core.schema import EnvelopeKind, Life, TableSchema
from schemasync.core.types import Primitive
from tests.core.builders import BIGINT, DATE, DEBEZIUM, FLAT, INT, MICROS, MILLIS, PLAIN, STRING, ZONED, col, rec

A = Life(name="a", since=1)
ADD = AddColumn(column=col("a"), position=0)
ADD_DEFAULT = AddColumn(column=col("a", nullable=False, default="42"), position=0)
ADD_BARE = AddColumn(column=col("a", nullable=False), position=0)
DROP = DropColumn(column=col("a"))
RENAME = RenameColumn(life=A, current="a", desired="b")
WIDEN = WidenColumn(life=A, name="a", current=INT, desired=BIGINT)
MICRO_DURATION = replace(BIGINT, name="io.debezium.time.MicroDuration")
INTERVAL = replace(STRING, name="io.debezium.time.Interval")
MODE = RetypeColumn(life=A, name="a", current=MICRO_DURATION, desired=INTERVAL)
RETYPE = RetypeColumn(life=A, name="a", current=INT, desired=STRING)
BEYOND = RetypeColumn(life=A, name="a", current=DATE, desired=INT)
SEMANTIC = ChangeSemanticType(life=A, name="a", current=MILLIS, desired=MICROS)
ADD_FIELD = AddField(life=A, path="a.x", current=rec(), desired=rec(x=INT))
RENAME_FIELD = RenameField(life=A, path="a.y", old="x", current=rec(x=INT), desired=rec(y=INT))
DROP_FIELD = DropField(life=A, path="a.x", current=rec(x=INT), desired=rec())
DETAIL = ChangeDetail(life=A, name="a", current=STRING, desired=replace(STRING, symbols=("A",)))
NULLABILITY = ChangeNullability(life=A, name="a", current=True, desired=False)
DEFAULT = ChangeDefault(life=A, name="a", current="1", desired="2")
DOC = ChangeDoc(life=A, name="a", current="", desired="d")
ALIASES = ChangeAliases(life=A, name="a", current=(), desired=("x",))
REORDER = ReorderColumns(current=("a", "b"), desired=("b", "a"))
KEY = ChangeKey(current=("a",), desired=("a", "b"))
ENVELOPE = ChangeEnvelope(current=FLAT, desired=PLAIN)

TABLE: list[tuple[Change, dict[str, Any], Verdict, str]] = [
    (ADD, {}, Verdict.EVOLVE, "SS101: column a was added"),
    (ADD, {"add": "null"}, Verdict.EVOLVE, "SS101: column a was added"),
    (ADD, {"add": "hold"}, Verdict.HOLD, "SS124: column a was added, and policies.add says hold"),
    (ADD_DEFAULT, {}, Verdict.EVOLVE, "SS102: column a was added NOT NULL: older rows read its default 42"),
    (ADD_DEFAULT, {"add": "null"}, Verdict.EVOLVE, "SS101: column a was added"),
    (ADD_BARE, {}, Verdict.EVOLVE, "SS103: column a was added NOT NULL without a default: older rows read NULL"),
    (ADD_BARE, {"add": "null"}, Verdict.EVOLVE, "SS101: column a was added"),
    (DROP, {}, Verdict.EVOLVE, "SS104: column a was dropped"),
    (DROP, {"drop": "keep"}, Verdict.EVOLVE, "SS104: column a was dropped"),
    (DROP, {"drop": "hold"}, Verdict.HOLD, "SS124: column a was dropped, and policies.drop says hold"),
    (RENAME, {}, Verdict.EVOLVE, "SS107: column a is now called b"),
    (RENAME, {"rename": "drop_add"}, Verdict.EVOLVE, "SS107: column a is now called b"),
    (WIDEN, {}, Verdict.EVOLVE, "SS106: column a: int to bigint, lossless"),
    (WIDEN, {"widen": "hold"}, Verdict.HOLD, "SS124: column a: int to bigint, lossless, and policies.widen says hold"),
    (RETYPE, {}, Verdict.MIGRATE, "SS113: column a: int to string, every value that the table has fits"),
    (
        RETYPE, {"retype": "hold"}, Verdict.HOLD,
        "SS124: column a: int to string, every value that the table has fits, and policies.retype says hold",
    ),
    (BEYOND, {}, Verdict.HOLD, "SS120: column a: date to int: no value can be converted"),
    (
        MODE, {}, Verdict.HOLD,
        "SS120: column a: io.debezium.time.MicroDuration to io.debezium.time.Interval: "
        "nothing says how one is written as the other",
    ),
    (
        SEMANTIC, {}, Verdict.HOLD,
        "SS121: column a: io.debezium.time.Timestamp to io.debezium.time.MicroTimestamp: "
        "the same values mean something else",
    ),
    (
        replace(SEMANTIC, name="a.x", current=rec(x=INT), desired=DATE), {}, Verdict.HOLD,
        "SS121: column a.x: struct<x:int> to days: the same values mean something else",
    ),
    (
        SEMANTIC, {"semantic": "migrate"}, Verdict.MIGRATE,
        "SS115: column a: io.debezium.time.Timestamp to io.debezium.time.MicroTimestamp: "
        "values from before are kept as they are shown",
    ),
    (RENAME_FIELD, {}, Verdict.EVOLVE, "SS107: field a.y was called x"),
    (ADD_FIELD, {}, Verdict.EVOLVE, "SS111: field a.x was added"),
    (ADD_FIELD, {"add": "hold"}, Verdict.HOLD, "SS124: field a.x was added, and policies.add says hold"),
    (DROP_FIELD, {}, Verdict.EVOLVE, "SS112: field a.x was dropped"),
    (DROP_FIELD, {"drop": "keep"}, Verdict.EVOLVE, "SS112: field a.x was dropped"),
    (DROP_FIELD, {"drop": "hold"}, Verdict.HOLD, "SS124: field a.x was dropped, and policies.drop says hold"),
    (DETAIL, {}, Verdict.EVOLVE, "SS110: column a: symbols or nested details changed"),
    (NULLABILITY, {}, Verdict.EVOLVE, "SS110: column a: nullability changed"),
    (DEFAULT, {}, Verdict.EVOLVE, "SS110: column a: the default changed"),
    (DOC, {}, Verdict.EVOLVE, "SS110: column a: the comment changed"),
    (ALIASES, {}, Verdict.EVOLVE, "SS110: column a: the aliases changed"),
    (REORDER, {}, Verdict.EVOLVE, "SS109: columns now stand in the order b, a"),
    (KEY, {}, Verdict.HOLD, "SS122: the key changed from (a) to (a, b)"),
    (
        KEY, {"key": "rebuild"}, Verdict.MIGRATE,
        "SS116: the key changed from (a) to (a, b): the base is rebuilt under it",
    ),
    (
        ChangeKey(current=(), desired=("a",)), {"key": "rebuild"}, Verdict.HOLD,
        "SS122: the table was made without a key, and now has (a)",
    ),
    (
        ChangeKey(current=("a",), desired=()), {"key": "rebuild"}, Verdict.HOLD,
        "SS122: the key changed from (a) to ()",
    ),
    (ENVELOPE, {}, Verdict.HOLD, "SS123: events were wrapped as flat and now are plain"),
]  # fmt: skip


def told(judgement: Judgement) -> list[str]:
    return [f"{d.code}: {d.message}" for d in judgement.diagnostics]


@pytest.mark.parametrize(("change", "policies", "verdict", "text"), TABLE)
def test_each_change_under_each_policy(change: Change, policies: dict[str, Any], verdict: Verdict, text: str) -> None:
    judgement = judge((change,), Policies(**policies))
    assert (judgement.verdict, told(judgement)) == (verdict, [text])


def test_the_table_has_every_kind_of_change() -> None:
    assert {type(row[0]) for row in TABLE} == set(KINDS)


def test_the_worst_change_decides() -> None:
    judgement = judge((ADD, BEYOND, RETYPE, DOC), Policies())
    codes = [d.code for d in judgement.diagnostics]
    assert (judgement.verdict, codes) == (Verdict.HOLD, ["SS101", "SS120", "SS113", "SS110"])


NUMBERED = Leaf(type=BIGINT.type, name="io.debezium.time.MicroDuration")


@pytest.mark.parametrize(
    ("current", "desired", "alike"),
    [
        (MILLIS, MICROS, True),
        (replace(STRING, name="a"), replace(STRING, name="b"), True),
        (NUMBERED, replace(NUMBERED, name="io.debezium.time.NanoDuration"), False),
        (BIGINT, MILLIS, False),
        (STRING, ZONED, False),
        (DATE, Leaf(type=STRING.type, meaning=Meaning.TIME_MILLIS, name="io.debezium.time.Time"), False),
        (ListOf(element=MILLIS), ListOf(element=MICROS), True),
        (MapOf(key=STRING, value=MILLIS), MapOf(key=STRING, value=MICROS), True),
        (MapOf(key=NUMBERED, value=INT), MapOf(key=BIGINT, value=INT), False),
        (rec(x=MILLIS, y=INT), rec(x=MICROS, z=INT), True),
        (rec(x=MILLIS, y=INT), rec(x=MICROS, y=BIGINT), True),
        (rec(x=NUMBERED), rec(x=BIGINT), False),
        (rec(x=INT), INT, False),
    ],
)
def test_values_of_another_meaning_are_kept_where_they_are_shown_alike(
    current: Encoding, desired: Encoding, alike: bool
) -> None:
    change = ChangeSemanticType(life=A, name="a", current=current, desired=desired)
    judged = judge((change,), Policies(semantic="migrate"))
    assert judged.verdict is (Verdict.MIGRATE if alike else Verdict.HOLD)
    # The policy is advised where it would help.
    held = judge((change,), Policies())
    assert ["policies.semantic" in d.fix for d in held.diagnostics] == [alike]
    assert alike or held == judged


def test_no_change_is_no_verdict() -> None:
    assert judge((), Policies()) == Judgement(verdict=Verdict.NONE)
    assert worst([]) is Verdict.NONE


def test_verdicts_grow_graver_in_this_order() -> None:
    assert [worst([v, Verdict.EVOLVE]) for v in Verdict] == [
        Verdict.EVOLVE, Verdict.EVOLVE, Verdict.MIGRATE, Verdict.HOLD,
    ]  # fmt: skip


def test_a_column_that_was_there_before_is_told_as_such() -> None:
    judgement = judge((AddColumn(column=col("A", since=3), position=0),), Policies(), readded=frozenset({"a"}))
    assert told(judgement) == ["SS105: column A was dropped earlier and came back in version 3"]


def test_of_a_column_that_was_there_before_it_is_told_what_is_held() -> None:
    again = AddColumn(column=col("a", nullable=False, default="7", since=3), position=0)
    assert told(judge((again,), Policies(add="hold"), readded=frozenset({"a"}))) == [
        "SS124: column a was dropped earlier and came back in version 3; "
        "column a was added NOT NULL: older rows read its default 7, and policies.add says hold"
    ]


@pytest.mark.parametrize(
    ("encoding", "default", "type_"),
    [(Leaf(type=Primitive.TINYINT), "300", "tinyint"), (rec(x=INT), "[]", "struct<x:int>")],
)
def test_a_default_that_is_no_value_of_its_type_is_not_read(encoding: Encoding, default: str, type_: str) -> None:
    change = AddColumn(column=col("a", encoding, nullable=False, default=default), position=0)
    assert told(judge((change,), Policies())) == [
        f"SS103: column a was added NOT NULL with the default {default}, which is no {type_}: older rows read NULL"
    ]


def test_a_drop_and_an_add_of_one_type_may_be_a_rename() -> None:
    judgement = judge((DROP, AddColumn(column=col("b", since=2), position=0)), Policies())
    (hint,) = (d for d in judgement.diagnostics if d.code == "SS108")
    assert hint.message == "a was dropped and b of the same type added: a rename looks like that"
    assert hint.fix == "If it is one, say so before applying: renames: {b: a}."


@pytest.mark.parametrize(
    "added",
    [(col("A", since=3),), (col("b", STRING),), (col("b"), col("c")), ()],
    ids=["the same name", "another type", "two of its type", "no add"],
)
def test_other_drops_and_adds_are_no_rename(added: tuple[Any, ...]) -> None:
    adds = tuple(AddColumn(column=c, position=0) for c in added)
    assert "SS108" not in [d.code for d in judge((DROP, *adds), Policies()).diagnostics]


def test_a_rename_beside_other_changes_is_told_where_its_type_is_that_of_no_other() -> None:
    changes = (DROP, DropColumn(column=col("x", DATE)), AddColumn(column=col("b"), position=0))
    beside = (*changes, AddColumn(column=col("y", STRING), position=1), AddColumn(column=col("z", STRING), position=2))
    fixes = [d.fix for d in judge(beside, Policies()).diagnostics if d.code == "SS108"]
    assert fixes == ["If it is one, say so before applying: renames: {b: a}."]
    two = (*changes, DropColumn(column=col("c")), AddColumn(column=col("y", STRING), position=1))
    assert "SS108" not in [d.code for d in judge(two, Policies()).diagnostics]


@pytest.mark.parametrize(
    ("encoding", "default"),
    [(DATE, "0"), (MILLIS, "0"), (MICROS, "0"), (ZONED, '"1970-01-01T02:00:00+02:00"')],
)
def test_the_beginning_of_1970_may_stand_for_the_time_at_hand(encoding: Encoding, default: str) -> None:
    def said(
        default: str | None,
        *,
        encoding: Encoding = encoding,
        nullable: bool = False,
        add: Literal["evolve", "null"] = "evolve",
    ) -> str:
        column = col("a", encoding, nullable=nullable, default=default)
        return told(judge((AddColumn(column=column, position=0),), Policies(add=add)))[0]

    assert said(default) == (
        f"SS118: column a was added NOT NULL: older rows read its default {default}, the beginning of 1970"
    )
    assert said(default, nullable=True)[:5] == said(default, add="null")[:5] == "SS101"
    assert said(default.replace("0", "1", 1) if default == "0" else default.replace("1970", "1971"))[:5] == "SS102"
    assert said("0", encoding=BIGINT)[:5] == "SS102"


@pytest.mark.parametrize(
    ("current", "desired"),
    [
        (ListOf(element=MICRO_DURATION), ListOf(element=INTERVAL)),
        (MapOf(key=STRING, value=MICRO_DURATION), MapOf(key=STRING, value=INTERVAL)),
        (rec(x=MICRO_DURATION), rec(x=INTERVAL)),
        (DATE, replace(STRING, name="io.debezium.time.IsoDate")),
        (replace(BIGINT, name="io.debezium.time.NanoTimestamp"), STRING),
    ],
)
def test_another_mode_of_writing_holds_wherever_it_is_and_in_both_directions(
    current: Encoding, desired: Encoding
) -> None:
    for sides in ((current, desired), (desired, current)):
        (change,) = retyped(*sides)
        assert told(judge((change,), Policies()))[0][:5] == "SS120"


def retyped(current: Encoding, desired: Encoding) -> list[Change]:
    sides = (TableSchema(columns=(col("a", e),), keys=(), envelope=FLAT) for e in (current, desired))
    return [change for change in diff(*sides) if isinstance(change, RetypeColumn)]


def test_only_the_field_that_is_written_otherwise_is_blamed() -> None:
    date = replace(STRING, name="io.debezium.time.IsoDate")
    (other,) = retyped(rec(d=date, x=INT), rec(d=STRING, x=STRING))
    assert told(judge((other,), Policies()))[0][:5] == "SS113"
    found = judge(tuple(retyped(rec(d=MICRO_DURATION, x=INT), rec(d=STRING, x=STRING))), Policies())
    assert [text for text in told(found) if text.startswith("SS120")] == [
        "SS120: column a.d: io.debezium.time.MicroDuration to string: nothing says how one is written as the other"
    ]


def test_a_variant_is_no_new_name_of_a_column_that_was_dropped_beside_it() -> None:
    variant = replace(col("b", STRING), since=2, replaces=Life(name="b", since=1))
    moved = RenameColumn(life=Life(name="b", since=1), current="b", desired="b__v1")
    changes = (DropColumn(column=col("a", STRING)), moved, AddColumn(column=variant, position=0))
    assert "SS108" not in [d.code for d in judge(changes, Policies(retype="variant")).diagnostics]


def test_an_envelope_that_tells_more_is_followed() -> None:
    more = replace(FLAT, kind=EnvelopeKind.UNWRAPPED, op="__op", deleted="__deleted", ts_ms=("__ts_ms",))
    less = replace(more, op=None, ts_ms=None)
    judgement = judge((ChangeEnvelope(current=less, desired=more),), Policies())
    assert (judgement.verdict, told(judgement)) == (Verdict.EVOLVE, ["SS110: events now have __op, __ts_ms"])
    rewritten = judge((ChangeEnvelope(current=replace(more, deleted=None), desired=more),), Policies())
    assert (rewritten.verdict, told(rewritten)) == (Verdict.EVOLVE, ["SS110: events now have __deleted"])
    for current, desired in ((more, less), (less, replace(more, ordering=())), (more, replace(more, deleted="gone"))):
        assert judge((ChangeEnvelope(current=current, desired=desired),), Policies()).verdict is Verdict.HOLD


@pytest.mark.parametrize(
    ("current", "desired", "text"),
    [
        (DEBEZIUM, replace(DEBEZIUM, ordering=FLAT.ordering), "ordered by source.lsn, ts_ms and now carry ts_ms"),
        (DEBEZIUM, replace(DEBEZIUM, ordering=()), "ordered by source.lsn, ts_ms and now carry nothing"),
        (FLAT, replace(FLAT, offset="kafka_offset"), "the fields that wrap the events moved"),
    ],
)
def test_a_change_of_the_envelope_says_what_moved(current: Any, desired: Any, text: str) -> None:
    judgement = judge((ChangeEnvelope(current=current, desired=desired),), Policies())
    assert text in told(judgement)[0]
