"""The watcher's loop over a memory registry and a scripted clock; what is done to a table is only recorded here.

`tests/app/test_watching_tables.py` watches real tables.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from schemasync.app import tending, watching
from schemasync.app.admitting import AdmissionOutcome
from schemasync.app.announcing import Outbox
from schemasync.app.applying import Applied
from schemasync.app.inspecting import map_tables
from schemasync.app.planning import TablePlan
from schemasync.app.replaying import replay
from schemasync.app.tending import TendedTable
from schemasync.app.watched import WatchResult
from schemasync.app.watching import watch
from schemasync.app.workspace import Workspace
from schemasync.core.config import Config
from schemasync.core.diagnostics import diagnose
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.policy import Verdict
from schemasync.core.ports import FileInfo, Metastore, Rows, SqlEngine
from schemasync.core.watching import LONG_BYTES
from schemasync.errors import (
    DataError,
    EngineError,
    RegistryError,
    RegistryUnavailableError,
    SchemasyncError,
    StorageError,
    UsageError,
)
from schemasync.io.status_server import Board, TableMetrics, serving
from tests.app.test_crew import PATIENCE_SECONDS, submitted
from tests.twins.registry import MemoryRegistry

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
START = 1_790_000_000_000
METASTORE_GONE = EngineError("the metastore refused the call", where="lake")
DOWN = RegistryUnavailableError("the registry does not answer", where="http://registry")


class CountingRegistry(MemoryRegistry):
    """Writes down every question."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []
        self.probes = True

    def subjects(self) -> tuple[str, ...]:
        self.questions.append("subjects")
        return super().subjects()

    def versions(self, subject: str) -> tuple[int, ...]:
        self.questions.append(subject)
        return super().versions(subject)

    def newest_id(self) -> int | None:
        self.questions.append("probe")
        newest = super().newest_id()
        return newest if self.probes else None


class World:
    """Two subjects, a clock, and a record of every look at a table."""

    def __init__(self) -> None:
        self.registry = CountingRegistry()
        self.now_ms = START
        # One after the other, so that the looks have an order.
        self.settings: dict[str, Any] = {"spark": {"tables_at_once": 1}}
        self.landed: dict[str, list[FileInfo]] = {}
        self.errors: dict[str, Exception] = {}
        self.unreadable: dict[str, int] = {}
        self.refused: set[str] = set()
        self.looks: list[str] = []
        self.targets: dict[str, TableTarget] = {}
        self.stop = threading.Event()
        self.waits: list[float] = []
        self.spark_is_gone = False
        self.metastore_is_gone = False
        self.asked_metastore = 0
        self.on_look: Callable[[str], None] = lambda _: None
        for name in ("a", "b"):
            self.register(name, 1)

    def register(self, name: str, number: int) -> None:
        self.registry.register(f"{name}-value", json.dumps({"type": "fixed", "name": name, "size": number}))

    @property
    def workspace(self) -> Workspace:
        defaults = {"defaults": {"location": "/{topic}"}, "registry": {"url": "file:///unused"}}
        unused: Any = None
        return Workspace(
            config=Config.model_validate({**defaults, **self.settings}),
            registry=self.registry,
            metastore=cast(Metastore, SimpleNamespace(names=self.names, table=lambda *_: None, tables=lambda *_: {})),
            sql=cast(SqlEngine, SimpleNamespace(query=self.query)),
            renderer=unused,
            fold=unused,
            storage=self.storage,
            now_ms=lambda: self.now_ms,
            token=lambda: "token",
        )

    def query(self, sql: str) -> Rows:
        if self.spark_is_gone:
            raise EngineError("Spark refused the statement or failed in it", where=sql)
        return Rows(columns=("1",), rows=((1,),))

    def names(self, _: str, pattern: str) -> tuple[str, ...]:
        self.asked_metastore += 1
        if self.metastore_is_gone:
            raise METASTORE_GONE
        return (pattern,)

    def loses_metastore(self) -> None:
        self.metastore_is_gone = True
        self.errors |= dict.fromkeys(("a", "b"), METASTORE_GONE)
        self.land("a")
        self.land("b")

    def finds_metastore(self) -> None:
        self.metastore_is_gone = False
        self.errors.clear()

    def storage(self, target: TableTarget) -> Any:
        location = target.location
        if location in self.unreadable:
            self.unreadable[location] += 1
            raise StorageError("permission denied", where=location)
        files = tuple(self.landed.get(location.removeprefix("/"), ()))
        return SimpleNamespace(lake=SimpleNamespace(files=lambda _: files))

    def goes_down(self, down: bool) -> None:
        self.registry.fail_with = DOWN if down else None

    def land(self, name: str, size: int = 1) -> None:
        there = self.landed.setdefault(name, [])
        path = f"incremental/increment_2026112000/{len(there)}.parquet"
        there.append(FileInfo(path=path, bytes=size, modified_ms=1))

    def apply_table(self, workspace: Workspace, target: TableTarget, **_: Any) -> Applied:
        del workspace
        self.looks.append(target.table)
        self.targets[target.table] = target
        self.on_look(target.table)
        error = self.errors.get(target.table)
        if error is not None and not isinstance(error, SchemasyncError):
            raise error
        refused = tuple(diagnose("SS406", "503") for name in self.refused if name == target.table)
        return Applied(plan=TablePlan(target=target, verdict=Verdict.NONE, diagnostics=refused), error=error)

    def watch(self, *between: Callable[[], object]) -> WatchResult:
        """Tick once, and once more after each of the given acts."""
        acts = iter(between)

        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            act = next(acts, self.stop.set)
            act()

        return watch(self.workspace, stop=self.stop, draw=lambda: 0.5, wait=wait)

    def later(self, milliseconds: int, *acts: Callable[[], object]) -> Callable[[], None]:
        """Forget what was recorded, let time pass, and do what is given."""

        def pass_time() -> None:
            self.looks.clear()
            self.registry.questions.clear()
            self.now_ms += milliseconds
            for act in acts:
                act()

        return pass_time


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(tending, "apply_table", made.apply_table)
    return made


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.WARNING, "schemasync.watch"):
        yield lambda: [record.getMessage() for record in caplog.records]


def test_the_first_tick_looks_at_every_table(world: World) -> None:
    result = world.watch()
    assert (world.looks, result.ticks, result.exit_code) == (["a", "b"], 1, 0)


def test_a_quiet_tick_asks_one_question_and_touches_no_table(world: World) -> None:
    world.watch(world.later(15 * SECOND))
    assert (world.registry.questions, world.looks) == (["probe"], [])


def test_a_new_version_is_noticed_at_the_next_tick_and_only_its_table_looked_at(world: World) -> None:
    world.watch(world.later(15 * SECOND, lambda: world.register("b", 2)))
    assert (world.registry.questions, world.looks) == (["probe", "subjects", "a-value", "b-value"], ["b"])


def test_content_that_another_subject_has_already_is_noticed_within_minutes(world: World) -> None:
    world.register("b", 2)
    text = world.registry.schema("b-value", 2).text
    noticed: list[list[str]] = []
    world.watch(
        world.later(15 * SECOND, lambda: world.registry.register("a-value", text)),
        world.later(3 * MINUTE, lambda: noticed.append(list(world.looks))),
    )
    assert (noticed, world.looks) == ([[]], ["a"])


def test_without_a_probe_the_lists_of_a_few_subjects_are_asked_for_at_every_tick(world: World) -> None:
    world.registry.probes = False
    world.watch(world.later(15 * SECOND, lambda: world.register("b", 2)))
    assert world.looks == ["b"]


def test_a_registry_that_takes_long_to_list_is_left_alone_for_a_while_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = world.registry.versions

    def slowly(subject: str) -> tuple[int, ...]:
        world.now_ms += 2 * MINUTE
        return listed(subject)

    monkeypatch.setattr(world.registry, "versions", slowly)
    world.watch(world.later(15 * SECOND))
    assert world.registry.questions == ["probe"]


def test_a_new_subject_becomes_a_table_at_the_next_tick(world: World) -> None:
    world.watch(world.later(15 * SECOND, lambda: world.register("c", 1)))
    assert world.looks == ["c"]


def test_landed_files_are_noticed_at_each_tick(world: World) -> None:
    world.watch(world.later(15 * SECOND, lambda: world.land("a")))
    assert world.looks == ["a"]


def test_files_that_waited_since_the_last_look_call_for_no_other(world: World) -> None:
    world.land("a")
    world.watch(world.later(15 * SECOND))
    assert world.looks == []


def test_a_file_that_lands_during_a_look_is_noticed_at_the_next_tick(world: World) -> None:
    def land_once(table: str) -> None:
        if table == "a" and not world.landed:
            world.land("a")

    world.on_look = land_once
    world.watch(world.later(15 * SECOND))
    assert world.looks == ["a"]


def test_a_sweep_looks_at_everything_again(world: World) -> None:
    world.watch(world.later(60 * MINUTE))
    assert world.looks == ["a", "b"]


def test_a_clock_that_is_set_back_holds_no_sweep_up(world: World) -> None:
    world.watch(world.later(-24 * 60 * MINUTE), world.later(60 * MINUTE))
    assert world.looks == ["a", "b"]


@pytest.mark.parametrize("error", [DataError("broken"), KeyError("a bug")])
def test_one_broken_table_never_stops_the_others(world: World, error: Exception) -> None:
    world.errors["a"] = error
    result = world.watch()
    assert (world.looks, [t.failure is not None for t in result.tables]) == (["a", "b"], [True, False])


def test_the_document_of_a_failure_has_no_secret(world: World) -> None:
    world.errors["a"] = DataError("AccountKey=hush")
    assert [t["error"] for t in world.watch().to_json()["tables"]] == ["AccountKey=***", None]


def test_a_failure_names_its_table_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.errors["a"] = DataError("broken")
    world.watch()
    [record] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert (record.getMessage(), vars(record)["table"]) == ("table lake.a failed: broken", "lake.a")


def test_what_is_odd_about_admitted_files_is_logged(
    world: World, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    unused: Any = None
    odd = (diagnose("SS310", "2 rows are older"), diagnose("SS308", "3 values"))
    findings = (diagnose("SS304", "another file waits"), *odd)

    def apply_table(workspace: Workspace, target: TableTarget, **given: Any) -> Applied:
        applied = world.apply_table(workspace, target, **given)
        admitted = AdmissionOutcome(draft=unused, files=1, findings=findings, odd=odd)
        return replace(applied, admitted=admitted if target.table == "a" else None)

    monkeypatch.setattr(tending, "apply_table", apply_table)
    world.watch()
    assert warnings() == ["table lake.a: SS310 2 rows are older"]


def test_a_table_that_fails_is_tried_ever_more_seldom(world: World) -> None:
    world.errors["a"] = DataError("broken")
    ticks: list[int] = []
    world.on_look = lambda table: ticks.append((world.now_ms - START) // SECOND) if table == "a" else None
    world.watch(*[world.later(5 * SECOND) for _ in range(24)])
    # Half of a pause is random; the draw here makes each three quarters of 15 s, 30 s, 60 s, ...
    assert ticks == [0, 15, 40, 85]


def test_a_location_that_cannot_be_listed_is_tried_ever_more_seldom_too(world: World) -> None:
    world.unreadable["/a"] = 0
    result = world.watch(*[world.later(5 * SECOND) for _ in range(24)])
    assert (world.unreadable, result.tables[0].failure) == ({"/a": 4}, "/a: permission denied")


def test_a_table_that_recovers_is_forgiven(world: World) -> None:
    world.errors["a"] = DataError("broken")
    result = world.watch(world.later(15 * SECOND, world.errors.clear), world.later(15 * SECOND))
    assert ([t.failure for t in result.tables], world.looks) == ([None, None], [])


def test_while_the_registry_is_down_nothing_is_touched_and_it_is_said_once(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    def fail() -> None:
        world.registry.fail_with = DOWN
        world.land("a")

    world.watch(world.later(15 * SECOND, fail), world.later(MINUTE), world.later(MINUTE))
    assert (world.looks, warnings()) == (
        [],
        ["nothing is done until the registry answers again: http://registry: the registry does not answer"],
    )


def test_that_the_registry_is_still_down_is_said_every_hour(world: World, warnings: Callable[[], list[str]]) -> None:
    world.registry.fail_with = DOWN
    world.watch(*[world.later(10 * MINUTE) for _ in range(12)])
    assert len(warnings()) == 3


def test_a_registry_that_is_down_is_asked_ever_more_seldom(world: World) -> None:
    world.registry.fail_with = DOWN
    asked: list[int] = []

    def count() -> None:
        asked.append(world.registry.questions.count("probe"))
        world.later(15 * SECOND)()

    world.watch(*[count] * 8)
    assert asked == [1, 1, 0, 1, 0, 0, 1, 0]


def test_what_was_missed_while_the_registry_was_down_is_done_when_it_answers(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    def fail(error: SchemasyncError | None) -> None:
        world.registry.fail_with = error

    world.watch(
        world.later(15 * SECOND, lambda: fail(DOWN), lambda: world.land("a"), lambda: world.register("b", 2)),
        world.later(MINUTE, lambda: fail(None)),
    )
    assert (world.looks, warnings()[-1]) == (["a", "b"], "the registry answers again")


def test_another_trouble_of_the_registry_is_said_too(world: World, warnings: Callable[[], list[str]]) -> None:
    def fail(error: SchemasyncError) -> Callable[[], None]:
        return lambda: setattr(world.registry, "fail_with", error)

    world.watch(fail(DOWN), world.later(5 * MINUTE, fail(RegistryError("401"))))
    assert warnings()[1:] == ["nothing is done until the registry answers again: 401"]


def test_while_the_metastore_is_down_nothing_is_tried_and_it_is_said_once(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    world.watch(world.later(15 * SECOND, world.loses_metastore), *[world.later(MINUTE) for _ in range(3)])
    assert (world.looks, world.registry.questions) == ([], [])
    assert warnings() == [
        "table lake.a failed: lake: the metastore refused the call",
        "nothing is done until the metastore answers again: lake: the metastore refused the call",
    ]


def four_side_by_side(world: World) -> None:
    """Let there be four tables, of which two are worked on at once."""
    world.settings["spark"] = {"tables_at_once": 2}
    for name in "cd":
        world.register(name, 1)


def test_one_tick_without_a_metastore_is_a_failure_of_every_table(world: World) -> None:
    world.loses_metastore()
    result = watch(world.workspace, once=True)
    assert ([table.failure is None for table in result.tables], result.exit_code) == ([False] * 2, 1)


def test_side_by_side_no_table_is_begun_once_one_has_found_that_the_metastore_is_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    four_side_by_side(world)
    world.loses_metastore()
    meeting = threading.Barrier(2)
    world.on_look = lambda _: _meet(meeting)
    at_once = world.names

    def names(database: str, pattern: str) -> tuple[str, ...]:
        # It takes its time not to answer.
        time.sleep(0.2)
        return at_once(database, pattern)

    monkeypatch.setattr(world, "names", names)
    world.watch()
    assert (sorted(world.looks), world.asked_metastore) == (["a", "b"], 1)


def test_a_metastore_that_is_down_is_asked_ever_more_seldom(world: World) -> None:
    asked: list[int] = []

    def count() -> None:
        asked.append(world.asked_metastore)
        world.later(15 * SECOND)()

    world.watch(world.loses_metastore, *[count] * 8)
    assert asked == [1, 2, 2, 3, 3, 3, 4, 4]


def test_what_was_missed_while_the_metastore_was_down_is_done_when_it_answers(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    world.watch(
        world.later(15 * SECOND, world.loses_metastore),
        *[world.later(5 * MINUTE) for _ in range(6)],
        world.later(5 * MINUTE, world.finds_metastore),
    )
    assert (world.looks, warnings()[-1]) == (["a", "b"], "the metastore answers again")


def test_a_table_that_fails_while_the_metastore_answers_is_that_tables_failure(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    world.errors["a"] = METASTORE_GONE
    world.watch(world.later(15 * SECOND, lambda: world.land("b")))
    assert (world.looks, warnings()) == (["a", "b"], ["table lake.a failed: lake: the metastore refused the call"] * 2)


def test_spark_that_is_gone_is_no_metastore_that_is(world: World) -> None:
    def spark_goes() -> None:
        world.spark_is_gone = True

    with pytest.raises(EngineError, match="Spark does not answer any more"):
        world.watch(world.loses_metastore, world.later(MINUTE, spark_goes))


def cannot_list(world: World, monkeypatch: pytest.MonkeyPatch, lacking: str, error: Exception) -> None:
    """Let the registry fail to list the versions of one subject."""
    listed = world.registry.versions

    def versions(subject: str) -> tuple[int, ...]:
        if subject == lacking:
            raise error
        return listed(subject)

    monkeypatch.setattr(world.registry, "versions", versions)


@pytest.mark.parametrize("trouble", [DOWN, RegistryError("please log in")])
def test_a_registry_that_goes_down_during_a_look_is_no_failure_of_the_table(
    world: World, trouble: SchemasyncError
) -> None:
    world.errors["a"] = trouble
    world.on_look = lambda _: world.goes_down(bool(world.errors))
    back = (world.errors.clear, partial(world.goes_down, False))
    result = world.watch(world.later(15 * SECOND, *back))
    assert (world.looks, [t.failure for t in result.tables]) == (["a", "b"], [None, None])


def test_a_registry_that_fails_for_one_subject_alone_is_that_tables_failure(world: World) -> None:
    world.errors["a"] = DOWN
    result = world.watch()
    assert (world.looks, [bool(t.failure) for t in result.tables]) == (["a", "b"], [True, False])


def test_a_subject_of_which_the_registry_cannot_list_versions_is_that_tables_matter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cannot_list(world, monkeypatch, "a-value", DOWN)
    world.watch()
    assert world.looks == ["a", "b"]


def test_a_subject_that_the_registry_refuses_to_list_is_that_table_s_matter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cannot_list(world, monkeypatch, "a-value", RegistryError("403"))
    world.watch(world.later(3 * MINUTE))
    assert world.looks == []


def test_a_version_that_the_registry_refused_is_asked_for_again_soon(world: World) -> None:
    world.refused.add("a")
    seen: list[list[str]] = []

    def note() -> None:
        seen.append([*world.looks])

    answers = world.refused.clear
    world.watch(world.later(59 * SECOND), note, world.later(2 * SECOND, answers), note, world.later(MINUTE), note)
    assert seen == [[], ["a"], []]


def test_a_vanished_subject_is_said_and_its_table_left_alone(world: World, warnings: Callable[[], list[str]]) -> None:
    world.watch(world.later(3 * MINUTE, lambda: world.registry.delete("a-value")), world.later(15 * SECOND))
    assert (world.looks, warnings()) == (
        [],
        ["table lake.a: its subject a-value is no longer in the registry; the table stays as it is"],
    )


def test_a_subject_that_comes_back_is_said_too(world: World, warnings: Callable[[], list[str]]) -> None:
    world.watch(
        world.later(3 * MINUTE, lambda: world.registry.delete("a-value")),
        world.later(3 * MINUTE, lambda: world.register("a", 1)),
        world.later(3 * MINUTE),
    )
    assert warnings()[1:] == ["table lake.a: its subject a-value is in the registry again"]


NOTHING = (
    "file:///unused has no subjects for us. Check tables: in the configuration, and whether this user may see the "
    "subjects."
)


@pytest.mark.parametrize("tables", [[], [{"subject": "shop[.].*-value"}]])
def test_that_the_configuration_takes_no_subject_is_said_to_whoever_asks_for_tables(
    world: World, tables: list[dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    world.settings["tables"] = tables
    for subject in () if tables else ("a-value", "b-value"):
        world.registry.delete(subject)
    map_tables(world.workspace)
    replay(world.registry, world.workspace.config, open_lake=lambda target: world.storage(target).lake)
    assert [record.getMessage() for record in caplog.records] == [NOTHING, NOTHING]


def test_tables_of_which_one_is_missing_or_in_the_way_are_no_reason_to_say_that_there_are_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for tables in ([{"subject": "c-value"}], [{"subject": "a-value"}] * 2):
        world.settings["tables"] = tables
        map_tables(world.workspace)
    assert caplog.records == []


def test_that_no_subject_is_taken_is_said_once_and_again_when_it_is_so_again(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    world.settings["tables"] = [{"subject": "shop[.].*-value"}]
    said: list[int] = []

    def note() -> None:
        said.append(warnings().count(NOTHING))

    world.watch(
        world.later(3 * MINUTE, note),
        world.later(3 * MINUTE, note, lambda: world.register("shop.a", 1)),
        world.later(3 * MINUTE, note, lambda: world.registry.delete("shop.a-value")),
        world.later(3 * MINUTE),
    )
    note()
    assert said == [1, 1, 1, 2]


def test_of_a_table_that_failed_nothing_is_listed_while_it_is_left_alone(world: World) -> None:
    world.registry.probes = False
    world.errors["a"] = EngineError("no")
    world.watch(world.later(SECOND))
    assert world.registry.questions == ["probe", "subjects", "b-value"]


def test_a_key_that_is_registered_while_its_table_is_left_alone_is_there_when_that_is_tried_again(world: World) -> None:
    world.errors["a"] = EngineError("no")

    def key() -> None:
        world.registry.register("a-key", json.dumps({"type": "fixed", "name": "key", "size": 1}))

    # New ids are asked for twice.
    listed = world.later(5 * SECOND, key), world.later(5 * SECOND)
    world.watch(world.later(15 * SECOND), *listed, world.later(15 * SECOND, world.errors.clear))
    assert world.targets["a"].key_subject == "a-key"


def test_a_subject_that_clashes_with_another_one_is_not_called_gone(
    world: World, warnings: Callable[[], list[str]]
) -> None:
    world.watch(world.later(3 * MINUTE, lambda: world.registry.register("A-value", "{}")), world.later(3 * MINUTE))
    assert [text for text in warnings() if "registry" in text] == []


def test_a_stop_ends_a_listing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def versions(registry: CountingRegistry, subject: str) -> tuple[int, ...]:
        world.stop.set()
        return answer(registry, subject)

    answer = CountingRegistry.versions
    monkeypatch.setattr(CountingRegistry, "versions", versions)
    world.watch()
    assert (world.registry.questions, world.looks) == (["probe", "subjects", "a-value"], [])


def test_a_mistake_in_the_configuration_is_shown_and_said_once_an_hour_and_the_others_go_on(
    world: World, warnings: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    boards, said = kept_boards(monkeypatch), list[int]()

    def note() -> None:
        said.append(len(warnings()))

    world.settings["tables"] = [{"subject": "a-value", "table": "x"}, {"subject": "a-value"}, {"subject": "b-value"}]
    result = world.watch(world.later(59 * MINUTE), note, world.later(MINUTE), note)
    assert (world.looks, said, len(set(warnings())), len(result.problems)) == (["b"], [1, 2], 1, 1)
    assert boards[0].snapshot.problems == tuple(set(warnings()))


def test_a_stop_lets_the_table_at_hand_finish_and_begins_no_other(world: World) -> None:
    world.on_look = lambda _: world.stop.set()
    result = world.watch()
    assert (world.looks, result.exit_code) == (["a"], 0)


def _meet(meeting: threading.Barrier) -> None:
    meeting.wait(10)


def test_tables_are_looked_at_side_by_side_and_told_of_in_their_order(world: World) -> None:
    world.settings["spark"] = {"tables_at_once": 2}
    meeting = threading.Barrier(2)
    world.on_look = lambda _: _meet(meeting)
    result = world.watch()
    assert sorted(world.looks) == ["a", "b"]
    assert [(t.table, t.failure) for t in result.tables] == [("a", None), ("b", None)]


def kept_boards(monkeypatch: pytest.MonkeyPatch) -> list[Board]:
    """Return the boards of all watchers from now on."""
    boards: list[Board] = []

    def board(**given: Any) -> Board:
        boards.append(Board(**given))
        return boards[-1]

    monkeypatch.setattr(watching, "Board", board)
    return boards


class Upkeep:
    """Lets tables have something to compact: each compaction lasts until it is allowed to end."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wanted = {"lake.a"}
        self.begun: list[str] = []
        self.begins, self.may_end = threading.Event(), threading.Event()
        world.settings["spark"] = {"tables_at_once": 2}
        monkeypatch.setattr(TendedTable, "wants_upkeep", property(lambda table: table.name in self.wanted))

        def keep_up(table: TendedTable) -> None:
            self.wanted.discard(table.name)
            self.begun.append(table.name)
            self.begins.set()
            assert self.may_end.wait(PATIENCE_SECONDS)
            table.outcome = replace(table.outcome, failure="compacted")

        monkeypatch.setattr(TendedTable, "keep_up", keep_up)


def test_a_long_compaction_holds_up_nobody_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, futures, seen = Upkeep(world, monkeypatch), submitted(monkeypatch), list[list[str]]()

    def landed() -> None:
        assert upkeep.begins.wait(PATIENCE_SECONDS)
        for name in "ab":
            world.land(name)
        world.register("c", 1)

    def note() -> None:
        seen.append([*world.looks])

    def ends() -> None:
        upkeep.may_end.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)

    world.watch(world.later(15 * SECOND, landed), note, world.later(15 * SECOND, ends), note)
    assert [sorted(names) for names in seen] == [["b", "c"], ["a"]]


def test_a_compaction_that_goes_on_for_hours_is_no_sign_of_life(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, boards, alive = Upkeep(world, monkeypatch), kept_boards(monkeypatch), list[int]()

    def begun() -> None:
        assert upkeep.begins.wait(PATIENCE_SECONDS)

    def note() -> None:
        alive.append(boards[0].alive_ms - START)

    world.watch(begun, world.later(HOUR), note, upkeep.may_end.set)
    assert alive == [0]


def test_compactions_leave_a_thread_to_looks_and_wait_for_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep, futures = Upkeep(world, monkeypatch), submitted(monkeypatch)
    upkeep.wanted |= {"lake.b"}
    seen: list[list[str]] = []

    def landed() -> None:
        assert upkeep.begins.wait(PATIENCE_SECONDS)
        world.register("c", 1)
        world.land("b")

    def note_and_end() -> None:
        seen.extend([sorted(world.looks), [*upkeep.begun]])
        upkeep.may_end.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)

    world.watch(world.later(15 * SECOND, landed), note_and_end)
    assert (seen, upkeep.begun) == ([["b", "c"], ["lake.a"]], ["lake.a", "lake.b"])


class Admission:
    """Lets very much land for ``a``: each look at it lasts until it is allowed to end."""

    def __init__(self, world: World) -> None:
        self.begins, self.may_end = threading.Event(), threading.Event()
        world.settings["spark"] = {"tables_at_once": 2}
        world.land("a", LONG_BYTES + 1)
        world.on_look = self.look

    def look(self, table: str) -> None:
        if table == "a":
            self.begins.set()
            assert self.may_end.wait(PATIENCE_SECONDS)


def test_an_admission_of_very_much_holds_up_nobody_else_and_is_done_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission, futures, boards = Admission(world), submitted(monkeypatch), kept_boards(monkeypatch)
    seen: list[tuple[list[str], bool]] = []

    def begun() -> None:
        assert admission.begins.wait(PATIENCE_SECONDS)

    def landed() -> None:
        world.land("b")
        world.register("c", 1)

    def note() -> None:
        seen.append((sorted(world.looks), boards[0].snapshot.ready))

    def ends() -> None:
        admission.may_end.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)

    threading.Timer(PATIENCE_SECONDS / 2, admission.may_end.set).start()
    world.watch(begun, world.later(15 * SECOND, landed), note, ends, world.later(15 * SECOND), note)
    assert seen == [(["b", "c"], False), ([], True)]


def test_a_start_while_very_much_is_admitted_lets_nobody_wait_whose_files_are_admitted_already(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission, seen = Admission(world), list[list[str]]()
    world.land("b", LONG_BYTES + 1)
    kept = Manifest.model_construct(admitted=tuple(world.landed["b"]))
    monkeypatch.setattr(tending, "manifest_in_force", lambda _, target: kept if target.table == "b" else None)

    def note() -> None:
        assert admission.begins.wait(PATIENCE_SECONDS)
        seen.append(sorted(world.looks))
        admission.may_end.set()

    world.watch(note)
    assert seen == [["a", "b"]]


def test_one_tick_admits_very_much_too_and_its_failure_is_that_tables(world: World) -> None:
    Admission(world).may_end.set()
    world.errors["a"] = DataError("mangled")
    result = watch(world.workspace, once=True)
    assert (sorted(world.looks), [t.failure for t in result.tables]) == (["a", "b"], ["mangled", None])


def test_a_registry_that_goes_down_before_an_admission_of_very_much_leaves_it_due(world: World) -> None:
    Admission(world).may_end.set()
    world.settings["spark"] = {"tables_at_once": 1}
    looked: list[list[str]] = []

    def down(table: str) -> None:
        if table == "a":
            world.goes_down(down=True)
            world.errors["a"] = DOWN

    world.on_look = down

    def up() -> None:
        world.goes_down(down=False)
        world.on_look = lambda _: None
        world.errors.clear()

    world.watch(world.later(HOUR, up), lambda: looked.append([*world.looks]))
    assert looked == [["b", "a"]]


def test_an_outage_that_is_over_is_no_failure_again_for_an_admission_of_very_much_that_it_ended(
    world: World, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    Admission(world).may_end.set()
    futures, boards = submitted(monkeypatch), kept_boards(monkeypatch)
    seen: list[tuple[bool, list[str]]] = []

    def goes_down(table: str) -> None:
        if table == "a":
            world.goes_down(down=True)
            world.errors["a"] = DOWN

    def ended() -> None:
        futures[-1].exception(PATIENCE_SECONDS)

    def up() -> None:
        world.goes_down(down=False)
        world.on_look = lambda _: None
        world.errors.clear()

    def note() -> None:
        ended()
        seen.append((bool(boards[0].snapshot.registry_trouble), [*world.looks]))

    world.on_look = goes_down
    world.watch(ended, note, world.later(HOUR, up), note)
    assert seen == [(True, ["b", "a"]), (False, ["b", "a"])]
    assert [line for line in warnings() if "begins again" in line] == [
        f"what was done with a table ended with an error, and begins again: {DOWN}"
    ]


class Due:
    """Lets a compaction of each of these tables be due once it was looked at, and keeps what is done in its order."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
        self.done: list[str] = []
        self.begins, self.may_end = threading.Event(), threading.Event()
        world.settings["spark"] = {"tables_at_once": 2}
        world.on_look = lambda table: self.done.append(f"look {table}")
        none_more = Manifest.model_construct(admitted=())
        due = SimpleNamespace(due_ms=lambda _: 0, manifest=none_more)

        def upkeep(applied: Applied, **_: int) -> Any:
            table = applied.target.table
            return due if table in names and f"compact {table}" not in self.done else None

        def compact(table: TendedTable, _: Any) -> None:
            self.done.append(f"compact {table.target.table}")
            self.begins.set()
            assert self.may_end.wait(PATIENCE_SECONDS)

        monkeypatch.setattr(tending, "_upkeep", upkeep)
        monkeypatch.setattr(TendedTable, "_compact_or_retire", compact)


def test_what_landed_is_admitted_before_compactions_that_wait_however_much_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, futures = Due(world, monkeypatch, "bc"), submitted(monkeypatch)
    world.register("c", 1)

    def landed() -> None:
        assert due.begins.wait(PATIENCE_SECONDS)
        due.done.clear()
        world.land("a", LONG_BYTES + 1)

    def ends() -> None:
        due.may_end.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)

    world.watch(world.later(15 * SECOND, landed), ends)
    assert due.done[:2] == ["look a", "compact c"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_table_for_which_very_much_lands_all_the_time_is_compacted_too(
    world: World, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    due, futures = Due(world, monkeypatch, "a"), submitted(monkeypatch)
    due.may_end.set()
    world.settings["spark"] = {"tables_at_once": at_once}
    world.land("a", LONG_BYTES + 1)

    def landed() -> None:
        for future in tuple(futures):
            future.result(PATIENCE_SECONDS)
        world.land("a", LONG_BYTES + 1)

    world.watch(*[world.later(15 * SECOND, landed) for _ in range(3)])
    assert [done for done in due.done if done.endswith(" a")][:3] == ["look a", "compact a", "look a"]


def test_a_failure_of_upkeep_while_the_registry_lists_no_table_any_more_stops_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, futures = Due(world, monkeypatch, "a"), submitted(monkeypatch)

    def compact(*_: Any) -> None:
        due.begins.set()
        assert due.may_end.wait(PATIENCE_SECONDS)
        raise DataError("mangled")

    monkeypatch.setattr(TendedTable, "_compact_or_retire", compact)

    def gone() -> None:
        assert due.begins.wait(PATIENCE_SECONDS)
        monkeypatch.setattr(world.registry, "subjects", lambda: ())

    def ends() -> None:
        due.may_end.set()
        for future in futures:
            future.exception(PATIENCE_SECONDS)

    assert world.watch(world.later(60 * MINUTE, gone), ends).ticks == 3


def test_a_stop_while_very_much_is_admitted_begins_no_compaction(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    due = Due(world, monkeypatch, "a")
    world.settings["spark"] = {"tables_at_once": 1}
    world.land("a", LONG_BYTES + 1)
    world.on_look = lambda table: world.stop.set() if table == "a" else None
    world.watch()
    assert due.done == []


def test_one_tick_compacts_what_it_admitted_however_much_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    due = Due(world, monkeypatch, "ab")
    due.may_end.set()
    for name in "ab":
        world.land(name, LONG_BYTES + 1)
    watch(world.workspace, once=True)
    assert sorted(due.done) == ["compact a", "compact b", "look a", "look b"]


def test_no_compaction_is_begun_once_a_look_has_found_that_the_metastore_is_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, futures = Due(world, monkeypatch, "acd"), submitted(monkeypatch)
    for name in "cd":
        world.register(name, 1)

    def goes() -> None:
        assert due.begins.wait(PATIENCE_SECONDS)
        due.done.clear()
        world.loses_metastore()

    def ends() -> None:
        due.may_end.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)

    world.watch(world.later(15 * SECOND, goes), ends)
    assert due.done == ["look b"]


def test_one_by_one_no_admission_of_very_much_is_begun_either_once_the_metastore_is_down(world: World) -> None:
    for name in "ab":
        world.land(name, LONG_BYTES + 1)
    world.loses_metastore()
    world.watch()
    assert (world.looks, world.asked_metastore) == (["a"], 1)


def test_one_tick_waits_for_its_compactions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(world, monkeypatch)
    upkeep.wanted |= {"lake.b"}
    threading.Timer(0.2, upkeep.may_end.set).start()
    result = watch(world.workspace, once=True)
    assert [table.failure for table in result.tables] == ["compacted"] * 2


def test_one_tick_uses_all_threads_for_its_compactions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, meeting = Upkeep(world, monkeypatch), threading.Barrier(2)
    upkeep.wanted |= {"lake.b"}
    monkeypatch.setattr(upkeep.may_end, "wait", lambda patience: meeting.wait(patience) >= 0)
    watch(world.workspace, once=True)
    assert sorted(upkeep.begun) == ["lake.a", "lake.b"]


def test_a_stop_lets_a_compaction_finish_and_begins_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(world, monkeypatch)
    upkeep.wanted |= {"lake.b"}

    def stopped() -> None:
        assert upkeep.begins.wait(PATIENCE_SECONDS)
        world.stop.set()
        upkeep.may_end.set()

    world.watch(stopped)
    assert upkeep.begun == ["lake.a"]


def test_side_by_side_a_stop_lets_the_tables_at_hand_finish_and_begins_no_other(world: World) -> None:
    four_side_by_side(world)
    meeting = threading.Barrier(2, action=world.stop.set)
    world.on_look = lambda _: _meet(meeting)
    result = world.watch()
    assert (sorted(world.looks), [t.failure for t in result.tables]) == (["a", "b"], [None] * 4)


def test_side_by_side_a_registry_that_goes_down_is_no_failure_of_a_table_and_the_others_at_hand_finish(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    four_side_by_side(world)
    world.errors["a"] = DOWN
    meeting, futures = threading.Barrier(2), submitted(monkeypatch)
    listings = 4
    finished: list[str] = []

    def look(table: str) -> None:
        if world.errors:
            world.goes_down(True)
            meeting.wait(10)
        if table == "b":
            # Once the other table's error is known.
            futures[listings].exception(10)
            finished.extend(world.looks)

    world.on_look = look
    result = world.watch(world.later(15 * SECOND, world.errors.clear, partial(world.goes_down, False)))
    assert (sorted(finished), sorted(world.looks)) == (["a", "b"], ["a", "c", "d"])
    assert [t.failure for t in result.tables] == [None] * 4


def test_ticks_are_a_jittered_poll_apart(world: World) -> None:
    draws = iter([0.5, 0.5, 0.0, 0.5, 1.0])

    def wait(seconds: float) -> None:
        world.waits.append(seconds)
        if len(world.waits) == 2:
            world.stop.set()

    watch(world.workspace, stop=world.stop, draw=lambda: next(draws, 0.5), wait=wait)
    assert all(13.5 <= seconds <= 16.5 for seconds in world.waits)


@pytest.mark.parametrize("poll", ["15s", "100000d"])
def test_waiting_ends_at_once_when_a_stop_is_asked_for(world: World, poll: str) -> None:
    world.settings["watch"] = {"poll": poll}
    timer = threading.Timer(0.05, world.stop.set)
    world.on_look = lambda table: timer.start() if table == "b" else None
    result = watch(world.workspace, stop=world.stop, draw=lambda: 1.0)
    timer.join()
    assert (result.ticks, result.stopped) == (1, True)


@pytest.mark.parametrize(
    ("errors", "tables", "expected"),
    [
        ({}, [], 0),
        ({"a": DataError("broken")}, [], 1),
        ({"a": DataError("broken"), "b": UsageError("the template cannot be rendered")}, [], 2),
        ({"b": DataError("broken")}, [{"subject": "a-value"}, {"subject": "a-value"}, {"subject": "b-value"}], 2),
    ],
)
def test_one_tick_ends_with_an_exit_code(
    world: World, errors: dict[str, Exception], tables: list[dict[str, str]], expected: int
) -> None:
    world.errors |= errors
    world.settings["tables"] = tables
    assert watch(world.workspace, once=True).exit_code == expected


def test_one_tick_without_a_registry_is_one_error(world: World) -> None:
    world.registry.fail_with = DOWN
    with pytest.raises(RegistryUnavailableError, match="does not answer"):
        watch(world.workspace, once=True)


def test_the_result_as_json(world: World) -> None:
    world.errors["b"] = DataError("broken")
    nothing: dict[str, Any] = {
        "version": None,
        "verdict": "none",
        "generation": 0,
        "admitted": {"files": 0, "events": 0, "waiting": 0},
        "compacted": None,
        "diagnostics": [],
    }
    assert watch(world.workspace, once=True).to_json() == {
        "tables": [
            {"table": "a", "database": "lake", "subject": "a-value", **nothing, "error": None},
            {"table": "b", "database": "lake", "subject": "b-value", **nothing, "error": "broken"},
        ],
        "ticks": 1,
        "problems": [],
        "given_up": 0,
    }


def test_a_result_says_how_many_deliveries_were_not_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox, "finish", lambda *_: 3)
    assert (watch(world.workspace, once=True).given_up, world.watch().given_up) == (3, 3)


def test_where_it_is_to_listen_it_tells_of_itself_until_it_stops(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    world.settings["server"] = {"listen": "127.0.0.1:0"}
    urls: list[str] = []

    @contextmanager
    def served(*given: Any, **named: Any) -> Iterator[str]:
        with serving(*given, **named) as url:
            urls.append(url)
            yield url

    monkeypatch.setattr(watching, "serving", served)
    world.errors["a"] = DataError("broken")
    world.land("b")
    answers: list[tuple[int, str]] = []

    def ask() -> None:
        for page in ("healthz", "readyz", "metrics", ""):
            answer = requests.get(f"{urls[0]}/{page}", timeout=5)
            answers.append((answer.status_code, answer.text))

    world.watch(ask)
    with pytest.raises(requests.ConnectionError):
        ask()
    assert [status for status, _ in answers] == [200, 200, 200, 200]
    assert 'schemasync_table_failed_total{table="lake.a"} 1.0' in answers[2][1]
    assert 'schemasync_pending_files{table="lake.b"} 1.0' in answers[2][1]
    assert "<td>lake.b</td><td>in step</td><td></td><td>0</td><td>1</td><td>0</td>" in answers[3][1]


def test_tables_are_shown_before_the_first_sweep_has_looked_at_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards, shown = kept_boards(monkeypatch), list[list[tuple[str, str]]]()
    world.on_look = lambda _: shown.append([(t.table, t.state) for t in boards[0].snapshot.tables])
    world.watch()
    assert shown[0] == [("lake.a", "not looked at yet"), ("lake.b", "not looked at yet")]


def test_what_is_wrong_with_the_registry_the_metastore_and_receivers_can_be_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = kept_boards(monkeypatch)
    monkeypatch.setattr(Outbox, "waiting", 7)
    monkeypatch.setattr(Outbox, "given_up", 2)
    seen: list[tuple[str, str, int, int]] = []

    def note() -> None:
        now = boards[0].snapshot
        seen.append((now.registry_trouble, now.metastore_trouble, now.events_waiting, now.events_given_up))

    trouble = RegistryUnavailableError("token=hush")
    fails, answers = (lambda error=error: setattr(world.registry, "fail_with", error) for error in (trouble, None))
    world.watch(
        *[note, world.later(MINUTE, fails), note, world.later(5 * MINUTE, answers), note],
        *[world.loses_metastore, note, world.later(5 * MINUTE, world.finds_metastore), note],
    )
    well, gone = ("", "", 7, 2), "lake: the metastore refused the call"
    assert seen == [well, ("token=***", "", 7, 2), well, ("", gone, 7, 2), well]


@pytest.mark.parametrize(
    ("stops_at", "states"),
    [("", ["in step", "held", "failing"]), ("b", ["in step", "held", "not looked at yet"])],
)
def test_the_page_says_how_a_table_was_left_and_not_what_was_done(
    world: World, monkeypatch: pytest.MonkeyPatch, stops_at: str, states: list[str]
) -> None:
    def apply_table(workspace: Workspace, target: TableTarget, **given: Any) -> Applied:
        applied = world.apply_table(workspace, target, **given)
        return replace(applied, plan=replace(applied.plan, verdict=verdicts[target.table]))

    def snapshot(**given: Any) -> TableMetrics:
        made = TableMetrics(**given)
        shown.append(made.state)
        return made

    verdicts, shown = {"a": Verdict.EVOLVE, "b": Verdict.HOLD}, list[str]()
    world.register("c", 1)
    world.unreadable["/c"] = 0
    world.on_look = lambda table: world.stop.set() if table == stops_at else None
    monkeypatch.setattr(tending, "apply_table", apply_table)
    monkeypatch.setattr(tending, "TableMetrics", snapshot)
    world.watch()
    assert shown[-3:] == states


def test_spark_gone_ends_the_daemon_so_that_its_supervisor_starts_it_again(world: World) -> None:
    refused = EngineError("the metastore refused the call")
    world.errors |= {"a": refused, "b": refused}
    world.spark_is_gone = True
    with pytest.raises(EngineError, match="Spark does not answer any more"):
        world.watch()


def test_spark_gone_is_noticed_by_the_first_table_that_fails(world: World) -> None:
    world.errors |= {"a": EngineError("the metastore refused the call")}
    world.spark_is_gone = True
    with pytest.raises(EngineError, match="Spark does not answer any more"):
        world.watch()


def test_spark_that_was_ended_together_with_us_is_no_error(world: World) -> None:
    world.errors |= {"a": EngineError("the metastore refused the call")}
    world.spark_is_gone = True
    world.on_look = lambda _: world.stop.set()
    assert world.watch().exit_code == 0


def test_every_table_failing_does_not_end_the_daemon_while_spark_answers(world: World) -> None:
    world.errors |= {"a": StorageError("no space"), "b": StorageError("no space")}
    assert world.watch().exit_code == 0
