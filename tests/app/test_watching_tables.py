"""The watcher on real tables: what it applies, admits, compacts, cleans up and tells, tick by tick."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from schemasync.app import tending
from schemasync.app.announcing import Outbox
from schemasync.app.applying import apply_table
from schemasync.app.compacting import Compacted, compact_table
from schemasync.app.inspecting import map_tables
from schemasync.app.releasing import release
from schemasync.app.telling import TOLD, Telling
from schemasync.app.tending import TendedTable
from schemasync.app.watched import WatchResult
from schemasync.app.watching import watch
from schemasync.app.workspace import Storage, Workspace
from schemasync.core import layering
from schemasync.core.compaction import FoldCounts
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import TableTarget
from schemasync.core.release import Release
from schemasync.errors import EngineError, NotificationError
from schemasync.io.parquet.arrow import ArrowFiles
from tests.app.mortal import Fuse, mortal
from tests.app.still import key
from tests.io.failing import Failing
from tests.lab import DAY, HOUR, Lab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

MINUTE = 60_000
ONE_BY_ONE = {"spark": {"tables_at_once": 1}}
"""Lets a tick end only when its compactions do."""
NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])

Told = tuple[str, int | None, int, str]


class Listener:
    """Takes every event."""

    def __init__(self) -> None:
        self.events: list[SchemaEvent] = []

    def send(self, event: SchemaEvent) -> None:
        self.events.append(event)

    @property
    def told(self) -> list[Told]:
        return [(e.table, e.from_version, e.to_version, e.verdict) for e in self.events]


@pytest.fixture
def listener() -> Listener:
    return Listener()


def once(lab: Lab, *listeners: Listener) -> WatchResult:
    return watch(lab.workspace, notifiers=listeners, once=True)


def watching(lab: Lab, *between: Callable[[], object], listener: Listener | None = None) -> WatchResult:
    """Tick once, and after each act let a minute pass and tick again."""
    acts, stop = iter(between), threading.Event()
    lab.settings = lab.settings | ONE_BY_ONE

    def wait(_: float) -> None:
        next(acts, stop.set)()
        lab.now_ms += MINUTE

    return watch(lab.workspace, notifiers=[listener] if listener else [], stop=stop, draw=lambda: 0.5, wait=wait)


def event(key: int, ts_ms: int = 1, **columns: Any) -> dict[str, Any]:
    return {"id": key, "op": "u", "ts_ms": ts_ms, **columns}


def register(lab: Lab, *columns: tuple[str, Any], topic: str = "student") -> None:
    lab.register(topic, lab.flat("Row", *columns))


def test_one_tick_creates_admits_compacts_and_tells(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    result = once(lab, listener)
    [table] = result.tables
    assert (listener.told, lab.rows("student"), table.generation, result.exit_code) == (
        [("student", None, 1, "evolve")],
        [{"id": 1, "name": "Ada"}],
        1,
        0,
    )


def test_a_second_start_finds_nothing_to_do_and_nothing_to_tell(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    once(lab)
    [table] = once(lab, listener).tables
    assert (listener.told, table.verdict, table.files, table.compacted) == ([], "none", 0, None)


def test_a_history_that_cannot_be_written_is_a_failure_of_what_is_done_all_the_same(lab: Lab) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ann")])
    blocked = lab.root / "lake" / "student" / "history"
    blocked.write_text("a file where the directory would be")
    result = once(lab)
    assert (result.exit_code, lab.rows("student")) == (1, [{"id": 1, "name": "Ann"}])
    assert "history" in (result.tables[0].failure or "")
    blocked.unlink()
    assert once(lab).exit_code == 0


def test_an_evolution_and_what_was_written_under_it_arrive_while_it_watches(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    watching(
        lab,
        lambda: register(lab, NAME, AGE),
        lambda: lab.land("student", [event(1, name="Ada", age=36)]),
        listener=listener,
    )
    [_, evolved] = listener.events
    assert (listener.told[1], [c["column"] for c in evolved.changes], lab.rows("student")) == (
        ("student", 1, 2, "evolve"),
        ["age"],
        [{"id": 1, "name": "Ada", "age": 36}],
    )


def test_a_hold_is_told_once_also_after_a_restart(lab: Lab, listener: Listener) -> None:
    register(lab, AGE)
    once(lab)
    register(lab, ("age", {"type": {"type": "array", "items": "int"}}))
    watching(lab, lambda: lab.land("student", [event(1, age=[7])]), listener=listener)
    result = once(lab, listener)
    [told] = listener.events
    assert (listener.told, [d["code"] for d in told.diagnostics], result.exit_code) == (
        [("student", 1, 2, "hold")],
        ["SS120", "SS110"],
        4,
    )


class Deaf(Listener):
    """Takes nothing."""

    def send(self, event: SchemaEvent) -> None:
        raise NotificationError(f"{event.id} was refused")


def test_what_somebody_did_not_get_is_told_again_by_the_next_start(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    heard = Listener()
    lost = once(lab, Deaf(), heard)
    again = once(lab, listener)
    last = once(lab, listener)
    assert ([r.exit_code for r in (lost, again, last)], [r.given_up for r in (lost, again, last)]) == (
        [1, 0, 0],
        [1, 0, 0],
    )
    assert (listener.told, listener.events) == ([("student", None, 1, "evolve")], heard.events)


def test_what_was_applied_while_nobody_watched_is_told_by_the_next_start(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    once(lab)
    register(lab, NAME, AGE)
    lab.apply()
    once(lab, listener)
    once(lab, listener)
    assert listener.told == [("student", 1, 2, "evolve")]


class Killed(BaseException):
    """What ends a process without letting it do anything more."""


def test_a_table_that_was_created_by_a_process_that_was_killed_then_is_told_by_the_next(
    lab: Lab, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(*_: object) -> None:
        raise Killed

    register(lab, NAME)
    with monkeypatch.context() as patched:
        patched.setattr(Telling, "tell", tell)
        with pytest.raises(Killed):
            once(lab)
    assert lab.workspace.metastore.table(lab.database, "student") is not None
    once(lab, listener)
    assert listener.told == [("student", None, 1, "evolve")]


def test_what_was_told_is_one_small_file(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    once(lab, listener)
    register(lab, NAME, AGE)
    once(lab, listener)
    [path] = (lab.root / "lake" / "student" / TOLD).iterdir()
    assert json.loads(path.read_text()) == {
        "format": 1,
        "table": f"{lab.database}.student",
        "version": 2,
        "keys": ["id"],
        "holds": [],
        "waiting": [],
    }


def test_a_table_of_which_nothing_can_be_kept_is_watched_all_the_same(
    lab: Lab, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    register(lab, NAME)
    blocked = lab.root / "lake" / "student" / TOLD
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where the directory would be")
    lab.land("student", [event(1, name="Ada")])
    watching(lab, lambda: register(lab, NAME, AGE), listener=listener)
    said = [r.getMessage() for r in caplog.records if "cannot be kept" in r.getMessage()]
    assert (listener.told, len(said), len(lab.rows("student"))) == (
        [("student", None, 1, "evolve"), ("student", 1, 2, "evolve")],
        1,
        1,
    )


def test_nonsense_about_what_was_told_is_as_good_as_nothing(
    lab: Lab, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    register(lab, NAME)
    once(lab)
    [path] = (lab.root / "lake" / "student" / TOLD).iterdir()
    path.write_text("{}")
    once(lab, listener)
    register(lab, NAME, AGE)
    once(lab, listener)
    assert listener.told == [("student", 1, 2, "evolve")]
    assert sum("says nothing that is understood" in r.getMessage() for r in caplog.records) == 1


def test_a_hold_that_is_over_is_said_in_the_log(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "schemasync.watch")
    register(lab, AGE)
    once(lab)
    register(lab, ("age", {"type": {"type": "array", "items": "int"}}))
    once(lab)
    lab.registry.delete("student-value", 2)
    once(lab)
    once(lab)
    said = [r.getMessage() for r in caplog.records if "no longer held" in r.getMessage()]
    assert said == [f"table {lab.database}.student is no longer held"]


def test_a_hold_until_rows_are_rewritten_ends_by_itself_at_the_next_compaction(lab: Lab, listener: Listener) -> None:
    def pass_time() -> None:
        lab.now_ms += HOUR

    register(lab, ("age", "boolean"))
    lab.land("student", [event(1, age=True)])
    watching(
        lab,
        lambda: register(lab, ("age", "int")),
        lambda: register(lab, ("age", "string")),
        pass_time,
        lambda: None,
        listener=listener,
    )
    assert listener.told == [
        ("student", None, 1, "evolve"),
        *(
            ("student", *of)
            for of in (
                (1, 2, "migrate"),
                (2, 3, "hold"),
                (2, 3, "migrate"),
            )
        ),
    ]
    assert lab.rows("student") == [{"id": 1, "age": "1"}]


def test_a_hold_that_comes_again_has_an_id_of_its_own(lab: Lab, listener: Listener) -> None:
    register(lab, AGE)
    once(lab)
    register(lab, ("age", {"type": {"type": "array", "items": "int"}}))
    once(lab, listener)
    held = lab.registry.schema("student-value", 2)
    lab.registry.delete("student-value", 2)
    once(lab, listener)
    lab.now_ms += MINUTE
    lab.registry.register("student-value", held.text, version=2)
    once(lab, listener)
    assert (listener.told, len({e.id for e in listener.events})) == ([("student", 1, 2, "hold")] * 2, 2)


def test_a_corrupt_file_holds_its_table_and_no_other_until_it_is_gone(lab: Lab, listener: Listener) -> None:
    for topic in ("student", "teacher"):
        register(lab, NAME, topic=topic)
        lab.land(topic, [event(1, name="Ada")])
    bad = lab.land("student", [event(2, name="Bob")])
    bad.write_bytes(b"not Parquet at all")
    # A file that changed just now might still be being written.
    os.utime(bad, (1, 1))
    held = once(lab, listener)
    bad.unlink()
    lifted = once(lab, listener)
    assert (held.exit_code, lifted.exit_code, len(lab.rows("student")), len(lab.rows("teacher"))) == (4, 0, 1, 1)
    # Tables are worked on side by side: whichever is told of first.
    assert sorted(listener.told, key=itemgetter(0)) == [
        ("student", None, 1, "evolve"),
        ("student", 1, 1, "hold"),
        ("teacher", None, 1, "evolve"),
    ]


def test_manual_changes_no_schema_and_still_admits_what_fits(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    lab.apply()
    lab.settings["watch"] = {"apply": "manual"}
    lab.land("student", [event(1, name="Ada")])
    register(lab, NAME, AGE)
    lab.land("student", [event(2, name="Bob", age=1)])
    result = once(lab, listener)
    assert (lab.rows("student"), listener.told, result.exit_code) == (
        [{"id": 1, "name": "Ada"}],
        [("student", 1, 2, "hold")],
        4,
    )
    assert [d["code"] for d in listener.events[0].diagnostics] == ["SS101", "SS304", "SS124"]


def test_manual_keeps_a_views_name_and_shows_all_there_whatever_is_folded(lab: Lab) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    lab.apply()
    lab.settings = {"watch": {"apply": "manual"}, "defaults": {"names": {"view": "people", "history": "past"}}}
    for number in (2, 3):
        lab.land("student", [event(number, name="Bob")])
        lab.now_ms += DAY
        once(lab)
        once(lab)
    names = "student_view|people|student_history|past"
    assert lab.workspace.metastore.names(lab.database, names) == ("student_history", "student_view")
    assert [row["id"] for row in lab.rows("student", "id")] == [1, 2, 3]
    lab.apply()
    assert lab.workspace.metastore.names(lab.database, names) == ("past", "people")
    assert len(lab.queried(f"SELECT * FROM `{lab.database}`.people")) == 3


def test_what_a_person_applied_while_it_watches_is_told_as_done(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    lab.apply()
    lab.settings["watch"] = {"apply": "manual"}
    watching(lab, lambda: register(lab, NAME, AGE), lab.apply, lambda: lab.land("student", []), listener=listener)
    assert listener.told == [("student", 1, 2, "hold"), ("student", 1, 2, "evolve")]


def test_another_key_that_a_person_released_is_told_too(lab: Lab, listener: Listener) -> None:
    register(lab, ("line", {"type": "long", "default": 0}))
    once(lab, listener)
    lab.registry.register("student-key", key("id", "line"))
    once(lab, listener)
    release(lab.workspace, "student", Release(rebuild=True))
    once(lab, listener)
    once(lab, listener)
    assert listener.told[1:] == [("student", 1, 1, "hold"), ("student", 1, 1, "migrate")]
    assert [dict(change)["to"] for change in listener.events[-1].changes] == [["id", "line"]]


def test_safe_adds_by_itself_and_leaves_drops_to_a_person(lab: Lab, listener: Listener) -> None:
    lab.settings["watch"] = {"apply": "safe"}
    register(lab, NAME)
    watching(lab, lambda: register(lab, NAME, AGE), lambda: register(lab, AGE), listener=listener)
    view = lab.workspace.metastore.table(lab.database, "student_view")
    assert view is not None
    assert (listener.told, tuple(c.name for c in view.columns)) == (
        [("student", None, 1, "evolve"), ("student", 1, 2, "evolve"), ("student", 2, 3, "hold")],
        ("id", "name", "age"),
    )


def test_compaction_waits_for_its_hour(lab: Lab) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    once(lab)
    lab.land("student", [event(2, name="Bob")])
    lab.now_ms += HOUR - MINUTE
    [early] = once(lab).tables
    lab.now_ms += MINUTE
    [due] = once(lab).tables
    assert (early.generation, early.files, due.generation) == (1, 1, 2)


def test_an_hour_that_passes_while_it_watches_is_enough_to_compact(lab: Lab) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])

    def let_time_pass() -> None:
        lab.now_ms += HOUR

    result = watching(lab, lambda: lab.land("student", [event(2, name="Bob")]), let_time_pass)
    assert [table.generation for table in result.tables] == [2]


@pytest.mark.parametrize(("every", "tries"), [("0s", 5), ("3m", 2)])
def test_a_compaction_that_finds_nothing_worth_doing_publishes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, every: str, tries: int
) -> None:
    """Each state would be one manifest more, for good where nothing is superseded."""
    lab.settings = {"defaults": {"compaction": {"every": every, "reader_grace": "1d"}}}
    register(lab, NAME)
    lab.land("student", [event(key, name="Ada") for key in range(20)])
    once(lab)
    lab.land("student", [event(3, 2, name="Eve")])
    lab.apply()
    lab.now_ms += HOUR
    for rule in ("CHEAP_BYTES", "WORTH"):
        monkeypatch.setattr(layering, rule, 0)
    tried: list[int] = []

    def compacting(*arguments: Any, **options: Any) -> Compacted:
        tried.append(lab.now_ms)
        return compact_table(*arguments, **options)

    monkeypatch.setattr(tending, "compact_table", compacting)
    states = lab.root / "lake" / "student" / "_schemasync" / "generations"
    before = {*states.iterdir()}
    watching(lab, *[lambda: None] * 4)
    assert ({*states.iterdir()}, len(tried)) == (before, tries)


def test_what_is_superseded_is_cleaned_up_at_its_time_without_anything_else_due(lab: Lab) -> None:
    register(lab, NAME)
    landed = lab.land("student", [event(1, name="Ada")])

    def let_time_pass() -> None:
        lab.now_ms += 8 * DAY

    watching(lab, let_time_pass)
    location = lab.root / "lake" / "student"
    partitions = lab.workspace.metastore.partitions(lab.database, "student")
    assert (landed.exists(), list(partitions), list(location.glob("delta/*/*"))) == (False, ["base_s00000001"], [])


def test_a_cleaning_up_that_had_to_wait_takes_back_nothing_that_another_process_shows_since(lab: Lab) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    lab.compact()
    lab.now_ms += HOUR
    fuse, (target,) = Fuse(), map_tables(lab.workspace).targets
    outbox = Outbox([], first_ms=1, draw=lambda: 0.5, now_ms=lambda: lab.now_ms)
    table = TendedTable(mortal(lab.workspace, fuse), target, outbox, draw=lambda: 0.5)
    table.look()
    assert table.wants_upkeep
    lab.land("student", [event(2, name="Bob")])
    lab.apply()
    done = len(fuse.calls)
    table.keep_up()
    assert (fuse.calls[done:], table.failures) == ([], 0)
    table.look()
    table.keep_up()
    assert "drop_partitions" in fuse.calls[done:]
    assert [row["id"] for row in lab.rows("student")] == [1, 2]


EIO, EACCES = (OSError(number, os.strerror(number)) for number in (errno.EIO, errno.EACCES))


@pytest.mark.parametrize(
    ("errors", "told"),
    [([EIO], ["evolve"]), ([None, EIO], ["evolve"]), ([EACCES], ["evolve", "hold"])],
    ids=["footers", "events", "permission"],
)
def test_what_a_storage_that_fails_did_not_give_is_admitted_a_while_later(
    lab: Lab, listener: Listener, errors: list[Exception | None], told: list[str]
) -> None:
    register(lab, NAME)
    lab.settings = lab.settings | ONE_BY_ONE
    once(lab, listener)
    # A file that changed just now might still be being written.
    os.utime(lab.land("student", [event(1, name="Ada")]), (1, 1))
    workspace, stop, ticks, disk = lab.workspace, threading.Event(), iter(range(2)), Failing(errors)

    def failing(target: TableTarget) -> Storage:
        return replace(workspace.storage(target), small=ArrowFiles(disk, str(lab.root / "lake" / "student")))

    def wait(_: float) -> None:
        lab.now_ms += MINUTE
        if next(ticks, None) is None:
            stop.set()

    watch(replace(workspace, storage=failing), notifiers=[listener], stop=stop, draw=lambda: 0.5, wait=wait)
    assert (lab.rows("student"), [e.verdict for e in listener.events]) == ([{"id": 1, "name": "Ada"}], told)


class BrokenFold:
    """A compaction that always fails."""

    def __init__(self) -> None:
        self.tries = 0

    def run(self, *_: object, **__: object) -> FoldCounts:
        self.tries += 1
        raise EngineError("the job failed")

    def repeats_keys(self, *_: object) -> bool:
        raise AssertionError("nothing was written")


def test_a_compaction_that_fails_is_tried_more_seldom_and_admissions_go_on(lab: Lab) -> None:
    register(lab, NAME)
    lab.settings = {"defaults": {"compaction": {"kernel": "spark"}}} | ONE_BY_ONE
    lab.land("student", [event(1, name="Ada")])
    fold, stop, ticks = BrokenFold(), threading.Event(), iter(range(4))

    def wait(_: float) -> None:
        lab.now_ms += 5_000
        key = next(ticks, None)
        if key is None:
            stop.set()
        else:
            lab.land("student", [event(10 + key, name="Bob")])

    workspace = replace(lab.workspace, fold=fold)
    watch(workspace, stop=stop, draw=lambda: 0.5, wait=wait)
    assert (fold.tries, len(lab.rows("student"))) == (2, 5)


def test_what_lands_for_a_table_that_waits_for_anothers_compaction_shows_meanwhile(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("long", "short"):
        register(lab, NAME, topic=topic)
        lab.land(topic, [event(1, name="Ada")])
    begun, may_end, done, stop = (threading.Event() for _ in range(4))
    looks: list[str] = []

    def compacting(workspace: Workspace, target: TableTarget, **more: Any) -> Any:
        if target.table == "long":
            begun.set()
            assert may_end.wait(60)
        found = compact_table(workspace, target, **more)
        if target.table == "short":
            done.set()
        return found

    def looking(workspace: Workspace, target: TableTarget, **more: Any) -> Any:
        looks.append(target.table)
        return apply_table(workspace, target, **more)

    monkeypatch.setattr(tending, "compact_table", compacting)
    monkeypatch.setattr(tending, "apply_table", looking)

    def acts() -> Iterator[None]:
        assert begun.wait(60)
        lab.land("short", [event(2, name="Bob")])
        yield
        assert [row["id"] for row in lab.rows("short")] == [1, 2]
        looks.clear()
        yield
        # That its compaction is due is no reason to look again.
        assert looks == []
        may_end.set()
        assert done.wait(60)
        stop.set()
        yield

    act = acts()
    result = watch(lab.workspace, stop=stop, draw=lambda: 0.5, wait=lambda _: next(act))
    assert [table.generation for table in result.tables] == [1, 1]


def test_a_vanished_subject_drops_nothing(lab: Lab, listener: Listener) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    an_hour = partial(setattr, lab, "now_ms", lab.now_ms + HOUR)
    watching(lab, lambda: lab.registry.delete("student-value"), an_hour, listener=listener)
    lab.settings["tables"] = [{"subject": "student-value"}]
    result = once(lab, listener)
    assert (lab.rows("student"), listener.told, result.exit_code) == (
        [{"id": 1, "name": "Ada"}],
        [("student", None, 1, "evolve"), ("student", 1, 1, "hold")],
        4,
    )


def test_a_stop_after_an_apply_begins_no_compaction(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    register(lab, NAME)
    lab.land("student", [event(1, name="Ada")])
    stop = threading.Event()
    monkeypatch.setattr(Telling, "tell", lambda *_: stop.set())
    result = watch(lab.workspace, stop=stop)
    [table] = result.tables
    assert (table.files, table.generation, table.compacted, result.exit_code) == (1, 0, None, 0)
