"""Each schema change and each hold is told once, by comparing versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemasync.core.changes import AddColumn, ChangeKey, DropColumn
from schemasync.core.config import Config
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import diagnose
from schemasync.core.encoding import Leaf
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import map_subjects
from schemasync.core.news import Seen, Told, news
from schemasync.core.policy import Verdict
from schemasync.core.schema import Column
from schemasync.core.types import Primitive

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
[TARGET] = map_subjects(["shop.student-value"], Config.model_validate({"registry": {"url": "file:///u"}})).targets
COLUMN = Column(name="age", encoding=Leaf(type=Primitive.INT), nullable=True)
ADD, DROP = AddColumn(column=COLUMN, position=1), DropColumn(column=COLUMN)
NOTE = diagnose("SS101", "column age was added")

QUIET = Seen(target=TARGET, before=1, after=1, desired=1, verdict=Verdict.NONE)
WENT = Seen(
    target=TARGET,
    before=1,
    after=2,
    desired=2,
    verdict=Verdict.EVOLVE,
    changes=(ADD,),
    diagnostics=(NOTE,),
    changed=True,
)
CREATED = replace(WENT, before=None)
HELD = Seen(target=TARGET, before=1, after=1, desired=2, verdict=Verdict.HOLD, changes=(DROP,), held=True)

Short = tuple[int | None, int, str, tuple[str, ...]]


def told_of(*looks: Seen) -> list[Short]:
    told, found = Told(), []
    for seen in looks:
        events, told = news(told, seen, time=NOON)
        found += [short(event) for event in events]
    return found


def short(event: SchemaEvent) -> Short:
    return event.from_version, event.to_version, event.verdict, tuple(str(c["kind"]) for c in event.changes)


def test_an_event_says_what_the_plan_said() -> None:
    [event], _ = news(Told(), WENT, time=NOON)
    assert event == SchemaEvent(
        table="shop_student",
        subject="shop.student-value",
        from_version=1,
        to_version=2,
        verdict="evolve",
        time=NOON,
        changes=(change_json(ADD),),
        diagnostics=(diagnostic_json(NOTE),),
    )


def test_tables_of_one_name_in_two_databases_have_events_of_their_own() -> None:
    targets = [replace(TARGET, database=database, shares_name=True) for database in ("a", "b")]
    events = [event for target in targets for event in news(Told(), replace(WENT, target=target), time=NOON)[0]]
    assert [event.cloudevent()["source"] for event in events] == [
        "/schemasync/tables/a.shop_student",
        "/schemasync/tables/b.shop_student",
    ]
    assert len({event.id for event in events}) == 2


EVOLVED: Short = (1, 2, "evolve", ("add_column",))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([QUIET, QUIET], [], id="nothing happened"),
        pytest.param([CREATED], [(None, 2, "evolve", ("add_column",))], id="created"),
        pytest.param([WENT, replace(QUIET, before=2, after=2, desired=2)], [EVOLVED], id="evolved"),
        pytest.param([HELD, HELD], [(1, 2, "hold", ("drop_column",))], id="a standing hold, once"),
        pytest.param(
            [HELD, replace(HELD, after=None, held=False), HELD],
            [(1, 2, "hold", ("drop_column",))],
            id="a look that failed while it is held",
        ),
        pytest.param([HELD, QUIET, HELD], [(1, 2, "hold", ("drop_column",))] * 2, id="a hold that comes again"),
        pytest.param(
            [HELD, replace(HELD, desired=3)],
            [(1, 2, "hold", ("drop_column",)), (1, 3, "hold", ("drop_column",))],
            id="held at a newer version",
        ),
        pytest.param(
            [HELD, replace(QUIET, before=2, after=2, desired=2)],
            [(1, 2, "hold", ("drop_column",)), (1, 2, "evolve", ("drop_column",))],
            id="held, then applied by a person",
        ),
        pytest.param(
            [HELD, replace(QUIET, before=3, after=3, desired=3)],
            [(1, 2, "hold", ("drop_column",)), (1, 3, "evolve", ())],
            id="held, then taken back by a newer version that someone else applied",
        ),
        pytest.param(
            [replace(WENT, after=None, changed=False), replace(WENT, before=1, changes=())],
            [EVOLVED],
            id="interrupted and finished later",
        ),
        pytest.param(
            [replace(CREATED, after=None, changed=False), replace(WENT, before=2, changes=(), changed=True)],
            [(None, 2, "evolve", ("add_column",))],
            id="a creation that was interrupted is still told as one",
        ),
        pytest.param(
            [replace(WENT, before=2), replace(WENT, before=2)],
            [(2, 2, "evolve", ("add_column",))],
            id="another policy under the same version",
        ),
        pytest.param([replace(WENT, changes=(), before=2)], [], id="a repair that changes no schema is no news"),
        pytest.param(
            [replace(WENT, held=True)], [EVOLVED, (2, 2, "hold", ())], id="evolved, and held for a landed file"
        ),
        pytest.param([replace(HELD, desired=None)], [(1, 1, "hold", ("drop_column",))], id="the subject has vanished"),
        pytest.param(
            [replace(HELD, before=None, after=None, desired=None)], [], id="neither table nor subject: nothing to name"
        ),
        pytest.param(
            [replace(HELD, before=None, after=None)], [(None, 2, "hold", ("drop_column",))], id="held before it exists"
        ),
    ],
)
def test_each_change_is_told_once(looks: list[Seen], expected: list[Short]) -> None:
    assert told_of(*looks) == expected


REASON = diagnose("SS113", "column price was retyped")
FILE = diagnose("SS302", "increment_2026112001/a.parquet: its columns fit no version of the subject")
NEXT = diagnose("SS302", "increment_2026112002/b.parquet: its columns fit no version of the subject")
NOTED = replace(HELD, diagnostics=(REASON,), held_since_ms=7)
MANY = diagnose("SS302", f"4 files, first {FILE.message}", first=FILE.message)
FILES = replace(QUIET, diagnostics=(FILE,), held=True)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(NOTED, NOTED, True, id="nothing changed"),
        pytest.param(NOTED, replace(NOTED, diagnostics=(REASON, NOTE)), True, id="a note beside it"),
        pytest.param(NOTED, replace(NOTED, diagnostics=(replace(REASON, message="2 values"),)), True, id="a count"),
        pytest.param(NOTED, replace(NOTED, held_since_ms=8), False, id="it was over in between"),
        pytest.param(NOTED, replace(NOTED, diagnostics=(FILE, REASON)), False, id="a file beside it"),
        pytest.param(FILES, replace(FILES, diagnostics=(NEXT, FILE)), True, id="more files"),
        pytest.param(FILES, replace(FILES, diagnostics=(MANY,)), True, id="so many that they are told of together"),
        pytest.param(FILES, replace(FILES, diagnostics=(NEXT,)), False, id="another file"),
    ],
)
def test_a_hold_has_an_id_of_its_own(first: Seen, second: Seen, *, same: bool) -> None:
    """Whoever drops what was there before would never hear of it."""
    [before], [after] = (news(Told(), seen, time=NOON)[0] for seen in (first, second))
    assert (before.id == after.id) is same


def test_a_table_that_is_made_anew_is_told_as_made_each_time() -> None:
    standing = replace(QUIET, before=2, after=2, desired=2)
    first, second, third = (replace(CREATED, state=f"{n}.0-abcd") for n in (1, 2, 3))
    assert told_of(first, standing, second, standing, second) == [(None, 2, "evolve", ("add_column",))] * 2
    told, ids = Told(), []
    for seen in (first, standing, second, third):
        events, told = news(told, seen, time=NOON)
        ids += [event.id for event in events]
    [alone], _ = news(Told(), third, time=NOON)
    assert (len(set(ids)), alone.id) == (3, ids[0])


def test_a_hold_whose_reasons_come_and_go_tells_each_once() -> None:
    other = replace(NOTED, diagnostics=(diagnose("SS406", "403"),))
    assert len(told_of(NOTED, other, NOTED, other)) == 2


WIDER = ChangeKey(current=("id",), desired=("id", "r"))
REKEYED = replace(QUIET, verdict=Verdict.MIGRATE, changes=(WIDER,), changed=True, keys=("id", "r"), key_version=2)
BACK = replace(REKEYED, changes=(ChangeKey(current=("id", "r"), desired=("id",)),), keys=("id",), key_version=3)


def test_each_change_of_the_key_is_told_though_the_version_stays() -> None:
    told, ids = Told(), []
    for seen in (REKEYED, REKEYED, BACK, replace(REKEYED, key_version=4)):
        events, told = news(told, seen, time=NOON)
        ids += [event.id for event in events]
    assert len(set(ids)) == len(ids) == 3


def test_another_key_that_a_person_applied_is_told() -> None:
    made, standing = replace(CREATED, keys=("id",)), replace(QUIET, before=2, after=2, desired=2)
    looks = [made, replace(standing, keys=None), replace(standing, keys=("id",)), replace(standing, keys=("id", "r"))]
    assert told_of(*looks[:3]) == [(None, 2, "evolve", ("add_column",))]
    assert told_of(*looks) == [(None, 2, "evolve", ("add_column",)), (2, 2, "migrate", ("change_key",))]


def test_another_key_that_comes_with_another_version_is_one_event() -> None:
    looks = [replace(QUIET, keys=("id",)), replace(WENT, keys=("id", "r"))]
    assert told_of(*looks) == [EVOLVED]


def test_after_a_restart_a_standing_hold_has_the_id_that_it_had() -> None:
    [before], _ = news(Told(), HELD, time=NOON)
    [after], _ = news(Told(), HELD, time=datetime(2026, 11, 22, tzinfo=UTC))
    assert before.id == after.id
