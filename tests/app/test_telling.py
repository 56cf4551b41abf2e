"""What was told of a table is kept beside it, and the next start goes on from there.

`tests/app/test_watching_tables.py` does it with real tables.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock, patch

import pytest

from schemasync.app import applying
from schemasync.app.announcing import Outbox
from schemasync.app.applying import apply_table
from schemasync.app.inspecting import map_tables
from schemasync.app.planning import TablePlan
from schemasync.app.telling import TOLD, Telling
from schemasync.app.watched import seen_of
from schemasync.app.watching import watch
from schemasync.app.workspace import Workspace
from schemasync.core.diagnostics import diagnose
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import TableTarget
from schemasync.core.news import Seen
from schemasync.core.policy import Verdict
from schemasync.core.watching import Listed
from schemasync.errors import StorageError
from tests.app.still import Still, avro


class Process:
    """One watcher's life, as far as one table's news go; ``heard`` is what its receiver got."""

    def __init__(self, still: Still, *, workspace: Workspace | None = None) -> None:
        self.workspace = workspace or still.workspace
        self.heard: list[SchemaEvent] = []
        self.outbox = Outbox([self], first_ms=1, draw=lambda: 1.0, now_ms=lambda: 0)
        self.telling = Telling(self.workspace, self.outbox)
        [self.target] = map_tables(self.workspace).targets
        self.telling.begin(self.target)

    def send(self, event: SchemaEvent) -> None:
        self.heard.append(event)

    def deliver(self) -> None:
        for receiver in self.outbox.receivers:
            receiver.offer()
        self.telling.settle(self.target)

    def sees(self, before: int | None, after: int | None, **more: Any) -> None:
        seen = Seen(target=self.target, before=before, after=after, desired=after, verdict=Verdict.NONE)
        self.telling.tell(replace(seen, **more))

    @property
    def told(self) -> list[tuple[int | None, int]]:
        return [(event.from_version, event.to_version) for event in self.heard]


@pytest.fixture
def still(tmp_path: Path) -> Still:
    made = Still(tmp_path)
    made.register(avro())
    return made


@pytest.fixture
def kept(still: Still) -> Path:
    return still.root / "lake" / "student" / TOLD


def names(kept: Path) -> list[str]:
    return sorted(path.name for path in kept.iterdir())


def test_what_nobody_has_yet_is_told_by_the_next_as_it_was(still: Still) -> None:
    first = Process(still)
    first.sees(None, None)
    first.sees(1, 1)
    first.sees(2, 2)
    second = Process(still)
    second.deliver()
    third = Process(still)
    third.sees(2, 2)
    third.deliver()
    first.deliver()
    assert (second.told, second.heard, third.heard) == ([(None, 1), (1, 2)], first.heard, [])


def test_what_changes_meanwhile_is_told_after_what_waited(still: Still) -> None:
    Process(still).sees(1, 1)
    before = Process(still)
    before.sees(2, 2)
    after = Process(still)
    after.sees(3, 3)
    after.deliver()
    assert after.told == [(1, 2), (2, 3)]


def test_a_hold_is_told_once_by_all_processes_until_it_is_over(still: Still) -> None:
    heard = []
    for held in (True, True, False, False, True):
        process = Process(still)
        process.sees(1, 1, held=held, verdict=Verdict.HOLD)
        process.deliver()
        heard.append(len(process.heard))
    assert heard == [1, 0, 0, 0, 1]


def test_a_look_at_which_nothing_is_new_writes_nothing(still: Still, kept: Path) -> None:
    for _ in range(2):
        process = Process(still)
        process.sees(1, 1)
        process.sees(1, 1)
        process.deliver()
    assert names(kept) == ["00000001.json"]


def test_what_is_to_be_told_is_written_before_it_is_told_and_when_all_have_it(still: Still, kept: Path) -> None:
    process = Process(still)
    process.sees(1, 1)
    process.sees(2, 2)
    before = names(kept)
    process.deliver()
    assert (before, names(kept)) == (["00000002.json"], ["00000003.json"])


def test_a_start_without_a_file_keeps_what_the_table_was_before_it_is_changed(still: Still) -> None:
    killed = Process(still)
    killed.telling.before(TablePlan(target=killed.target, verdict=Verdict.EVOLVE))
    process = Process(still)
    process.telling.before(TablePlan(target=process.target, verdict=Verdict.EVOLVE))
    process.sees(1, 1)
    process.deliver()
    assert process.told == [(None, 1)]


def test_what_lies_there_besides_is_left_alone(still: Still, kept: Path) -> None:
    kept.mkdir(parents=True)
    for name in ("notes.json", "00000009.json.bak", "00000000.json"):
        (kept / name).write_text("mine")
    Process(still).sees(1, 1)
    assert names(kept) == ["00000000.json", "00000001.json", "00000009.json.bak", "notes.json"]


def test_a_file_of_another_process_is_not_overwritten(still: Still, kept: Path) -> None:
    first, second = Process(still), Process(still)
    first.sees(1, 1)
    second.sees(2, 2)
    assert names(kept) == ["00000001.json", "00000002.json"]
    third = Process(still)
    third.sees(3, 3)
    third.deliver()
    assert (third.told, names(kept)) == ([(2, 3)], ["00000004.json"])


def test_a_hold_is_logged_with_the_codes_of_its_reasons(still: Still, caplog: pytest.LogCaptureFixture) -> None:
    found = tuple(diagnose(code, "why") for code in ("SS101", "SS124", "SS113", "SS124", "SS402"))
    process = Process(still)
    process.sees(2, 2)
    process.sees(2, 2, held=True, desired=3, verdict=Verdict.HOLD, diagnostics=found)
    assert caplog.messages == ["table lake.student: hold from version 2 to 3: SS124, SS402"]


def test_a_hold_of_a_table_that_is_not_there_is_logged_where_no_version_can_be_named(
    still: Still, caplog: pytest.LogCaptureFixture
) -> None:
    still.settings["tables"] = [{"subject": "typo-value"}]
    assert watch(still.workspace, once=True).exit_code == 4
    assert caplog.messages == ["table lake.typo is held: SS405 the registry has no versions of typo-value"]


def test_such_a_hold_is_logged_again_only_when_its_reasons_are_others(
    still: Still, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(still)
    for codes in (["SS406"], ["SS406"], ["SS405"], [], ["SS405"]):
        process.sees(None, None, held=bool(codes), diagnostics=tuple(diagnose(code, "why") for code in codes))
    process.sees(None, None, held=True, desired=1, diagnostics=(diagnose("SS402", "why"),))
    logged = [message.partition(" is held: ")[2] for message in caplog.messages]
    assert [text for text in logged if text] == ["SS406 why", "SS405 why", "SS405 why"]


class Troubled:
    """A lake that fails as often as it is told to."""

    def __init__(self, lake: Any) -> None:
        self._lake = lake
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        if self.failures:
            self.failures -= 1
            raise StorageError(f"cannot {name}")
        return getattr(self._lake, name)


def test_what_cannot_be_read_is_warned_of_once_and_never_overwritten(
    still: Still, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Process(still)
    waiting.sees(1, 1)
    waiting.sees(2, 2)
    workspace = still.workspace
    storage = workspace.storage(waiting.target)
    lake = Troubled(storage.lake)
    lake.failures = 2
    troubled = replace(workspace, storage=lambda _: replace(storage, lake=cast(Any, lake)))
    process = Process(still, workspace=troubled)
    process.telling.begin(process.target)
    process.sees(2, 2)
    process.sees(3, 3)
    assert names(kept) == ["00000002.json"]
    process.telling.begin(process.target)
    process.deliver()
    assert (process.told, len(caplog.records)) == ([(2, 3), (1, 2)], 1)
    assert names(kept) == ["00000003.json"]
    late = Process(still)
    late.sees(3, 3)
    late.deliver()
    assert late.heard == []


def test_what_changed_meanwhile_is_told_once_what_was_kept_can_be_read(still: Still) -> None:
    first = Process(still)
    first.sees(1, 1, held=True)
    first.deliver()
    storage = still.workspace.storage(first.target)
    lake = Troubled(storage.lake)
    lake.failures = 1
    troubled = replace(still.workspace, storage=lambda _: replace(storage, lake=cast(Any, lake)))
    process = Process(still, workspace=troubled)
    process.sees(2, 2, held=True)
    process.telling.begin(process.target)
    process.sees(2, 2, held=True)
    process.deliver()
    assert process.told == [(2, 2), (1, 2)]


def test_what_could_not_be_written_is_written_later(still: Still, kept: Path) -> None:
    target: TableTarget
    [target] = map_tables(still.workspace).targets
    storage = still.workspace.storage(target)
    lake = Troubled(storage.lake)
    troubled = replace(still.workspace, storage=lambda _: replace(storage, lake=cast(Any, lake)))
    process = Process(still, workspace=troubled)
    lake.failures = 1
    process.sees(1, 1)
    assert not kept.exists()
    process.sees(1, 1)
    assert names(kept) == ["00000002.json"]


def test_changes_that_wait_for_a_person_again_are_another_hold(tmp_path: Path) -> None:
    """Whoever leaves out what was told before would never hear of the second time."""
    still = Still(tmp_path, watch={"apply": "manual"})
    still.register(avro())
    still.settle()
    process = Process(still, workspace=replace(still.workspace, now_ms=partial(next, count(1_800_000_000_000))))

    def look() -> None:
        done = apply_table(process.workspace, process.target, allowed=lambda _: False)
        seen = seen_of(done, Listed(versions=(1,)), refused=done.plan.pending, mode="manual")
        process.telling.tell(seen)
        process.deliver()

    look()
    for _ in range(2):
        still.metastore.set_view_text("lake", "student_view", "SELECT 1 AS a")
        look()
        look()
        still.settle()
        look()
    assert [event.verdict for event in process.heard] == ["hold"] * 2
    assert len({event.id for event in process.heard}) == 2


def test_a_look_that_fails_while_changes_wait_tells_nothing_again(tmp_path: Path) -> None:
    still = Still(tmp_path, watch={"apply": "manual"})
    still.register(avro())
    still.settle()
    still.register(avro(("name", ["null", "string"])))
    process = Process(still)
    for lost in (False, True, False):
        admit = Mock(side_effect=StorageError("lost")) if lost else applying._admit
        with patch.object(applying, "_admit", admit):
            done = apply_table(process.workspace, process.target, allowed=lambda _: False)
        assert (done.error is not None) is lost
        process.telling.tell(seen_of(done, Listed(versions=(1, 2)), refused=done.plan.pending, mode="manual"))
        process.deliver()
    assert [event.verdict for event in process.heard] == ["hold"]
