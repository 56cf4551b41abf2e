"""Several writers publish states of one table, and stall or die between any two calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemasync.app.history import history
from schemasync.app.inspecting import map_tables
from schemasync.app.states import (
    GENERATIONS,
    manifest_path,
    properties_in_force,
    publish,
    read_draft,
    read_manifest,
    require_files,
    roll_forward,
)
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.compaction import FoldPlan, after_fold
from schemasync.core.manifest import DataFile, Manifest, Segment, SegmentKind, StateId, after_admission
from schemasync.core.mapping import TableTarget
from schemasync.core.properties import STATE, TableProperties, write_properties
from schemasync.errors import ConflictError, DataError
from schemasync.io.lake.arrow import ArrowLake
from tests.app.mortal import KilledError
from tests.app.still import Still, avro

RUNS = 3
"""Of each writer, if nobody kills it."""


class Writer:
    """A process of its own: admits and folds by turns, and waits before each call that reaches beyond it."""

    def __init__(self, table: Table, number: int) -> None:
        self.next_call = ""
        self.ended = False
        self.published: list[bool] = []
        """Of each of its runs."""
        self._table = table
        self._number = number
        self._tokens = count()
        self._go = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self._killed = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        self._waits.acquire()

    def go_on(self, *until: str) -> None:
        """Let it do its next call and others, up to one of these or the next run; all where none is given."""
        self._step()
        while not self.ended and not (until and self.next_call in {*until, "run"}):
            self._step()

    def _step(self) -> None:
        if not self.ended:
            self._go.release()
            self._waits.acquire()
            if self._error is not None:
                raise self._error
            self._table.look()

    def kill(self) -> None:
        self._killed = True
        self.go_on()

    def _pause(self, call: str) -> None:
        self.next_call = call
        if not self._killed:
            self._waits.release()
            self._go.acquire()
        if self._killed:
            raise KilledError

    def _work(self) -> None:
        workspace = replace(self._table.workspace, token=lambda: f"{self._number}-{next(self._tokens)}")
        try:
            for run in range(RUNS):
                self._pause("run")
                folds = (self._number + run) % 2 == 0
                self.published.append(run_once(paused(workspace, self._pause), self._table.target, folds=folds))
        except KilledError:
            pass
        except Exception as error:
            self._error = error
        finally:
            self.ended = True
            self._waits.release()


class Paused:
    """Stands before an edge, and pauses before each call."""

    def __init__(self, inner: Any, pause: Callable[[str], None]) -> None:
        self._inner = inner
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in {"root", "uri", "path"}:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._pause(name)
            return found(*args, **kwargs)

        return call


def paused(workspace: Workspace, pause: Callable[[str], None]) -> Workspace:
    def storage(target: TableTarget) -> Storage:
        real = workspace.storage(target)
        return replace(real, lake=Paused(real.lake, pause))

    return replace(workspace, metastore=Paused(workspace.metastore, pause), storage=storage)


def run_once(workspace: Workspace, target: TableTarget, *, folds: bool) -> bool:
    """Finish what others left, and publish a delta, or a base in place of everything, unless somebody was first."""
    try:
        properties = properties_in_force(workspace, target)
        assert properties is not None
        draft = read_draft(workspace, target, roll_forward(workspace, target, properties))
        publish(workspace, target, draft, following(workspace, target, draft.manifest, folds=folds))
    except ConflictError:
        return False
    return True


def following(workspace: Workspace, target: TableTarget, now: Manifest, *, folds: bool) -> Manifest:
    top, number = ("base", now.state.generation + 1) if folds else ("delta", now.next_delta)
    location = f"{top}/g={number:06}/{workspace.token()}/0"
    file = DataFile(path=f"{location}/0.parquet", rows=1, bytes=1)
    assert workspace.storage(target).lake.create(file.path, b"0")
    segment = Segment(
        name=f"{top}_{number:08}",
        kind=SegmentKind.BASE if folds else SegmentKind.DELTA,
        location=location,
        files=(file,),
        rows=1,
        bytes=1,
        schema_version=1,
        columns=(),
    )
    if folds:
        plan = FoldPlan(shards=(), fold=now.segments, generation=number, purge_before_ms=0)
        return after_fold(now, plan, written=[segment], now_ms=0)
    return after_admission(now, segment=segment, files=(), schema_version=1, now_ms=0)


class Table:
    """An empty table; knows each state that is put in force."""

    def __init__(self, root: Path) -> None:
        still = Still(root)
        still.register(avro())
        still.settle()
        (self.target,) = map_tables(still.workspace).targets
        self.workspace = still.workspace
        self.lake = self.workspace.storage(self.target).lake
        self.published: dict[StateId, bytes] = {}

    def look(self) -> None:
        """See which state is in force, and that its manifest is there and never another."""
        properties = properties_in_force(self.workspace, self.target)
        assert properties is not None
        state = properties.state
        if state.generation or state.admission:
            assert not any(state < earlier for earlier in self.published)
            there = self.lake.read(manifest_path(state))
            assert self.published.setdefault(state, there) == there

    def check(self, *, killed: set[int]) -> None:
        """All states that were in force are as they were; nothing is missing; only who was killed leaves files."""
        self.look()
        assert {state: self.lake.read(manifest_path(state)) for state in self.published} == self.published
        properties = properties_in_force(self.workspace, self.target)
        assert properties is not None
        manifest = read_manifest(self.lake, self.target, properties)
        require_files(self.lake, manifest.segments)
        files = [file.path for top in ("base", "delta") for file in self.lake.files(top)]
        left = {path for path in files if path.rpartition("/")[0] not in manifest.locations}
        assert {int(path.split("/")[2].partition("-")[0]) for path in left} <= killed
        bases = {state.generation: state for state in sorted(self.published, reverse=True) if state.generation}
        told = [found.state for found in history(self.workspace, "student").generations]
        assert told == sorted({*bases.values(), properties.state})


@contextmanager
def opened() -> Iterator[Table]:
    with TemporaryDirectory() as root:
        yield Table(Path(root))


CALLS = ("run", "create", "read", "delete", "delete_directory", "swap_properties")
STALLS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(CALLS), st.integers(0, 9)), max_size=30)
"""Which writer goes on, up to which of its calls, where it stalls; where the last is 0 it is killed there."""


@settings(max_examples=50)
@given(STALLS)
def test_writers_that_stall_or_die_anywhere_never_touch_what_was_in_force(stalls: list[tuple[int, str, int]]) -> None:
    with opened() as table:
        writers = [Writer(table, number) for number in range(3)]
        killed: set[int] = set()
        for number, call, fate in stalls:
            writers[number].go_on(call)
            if not fate:
                killed.add(number)
                writers[number].kill()
        for writer in writers:
            writer.go_on()
        finish(table, killed=killed)


def finish(table: Table, *, killed: set[int]) -> None:
    """Let somebody come who has the table for himself: each of his runs publishes, and all is as it should be."""
    last = Writer(table, 3)
    last.go_on()
    assert last.published == [True] * RUNS
    table.check(killed=killed)


def states(table: Table) -> list[str]:
    return [str(state) for state in table.published]


def manifests(table: Table) -> list[str]:
    return [file.path.rpartition("/")[2].removesuffix(".json") for file in table.lake.files(GENERATIONS)]


def test_who_stalls_over_his_own_lost_state_never_deletes_another_of_its_number() -> None:
    with opened() as table:
        folds, admits = Writer(table, 0), Writer(table, 1)
        admits.go_on("create")
        folds.go_on("swap_properties")
        admits.go_on("run")
        folds.go_on("delete")
        admits.go_on()
        assert states(table) == ["000000-0001", "000001-0001", "000001-0002"]
        folds.go_on()
        finish(table, killed=set())


def test_who_finds_his_number_taken_and_free_again_leaves_no_file() -> None:
    """What had it came too late, and went with a state that passed it before he could read it."""
    with opened() as table:
        folds, admits, stalls = (Writer(table, number) for number in range(3))
        folds.go_on("create")
        admits.go_on("run")
        stalls.go_on("create")
        folds.go_on("run")
        stalls.go_on("read")
        for writer in (folds, admits, stalls):
            writer.go_on()
        finish(table, killed=set())


def pass_by(table: Table) -> None:
    """Leave the manifest of a fold that came too late, and died, where another's has passed it, who died, too."""
    folds, admits = Writer(table, 0), Writer(table, 1)
    admits.go_on("create")
    folds.go_on("swap_properties")
    folds.kill()
    admits.go_on("run")
    admits.go_on("delete")
    admits.kill()


def test_a_state_that_never_was_is_not_told_of_where_its_manifest_stays() -> None:
    with opened() as table:
        pass_by(table)
        assert manifests(table) == [*states(table), "000001"] == ["000000-0001", "000001-0001", "000001"]
        finish(table, killed=set())


def test_who_passes_a_state_deletes_what_was_written_for_it() -> None:
    with opened() as table:
        folds, admits = Writer(table, 0), Writer(table, 1)
        folds.go_on("create")
        admits.go_on("run")
        admits.go_on("create")
        folds.go_on("swap_properties")
        folds.kill()
        admits.go_on()
        assert states(table) == manifests(table) == ["000000-0001", "000001-0001", "000001-0002"]
        finish(table, killed=set())


def admitted(table: Table) -> TableProperties:
    """Admit once; return what is in force then."""
    writer = Writer(table, 1)
    writer.go_on("run")
    writer.kill()
    properties = properties_in_force(table.workspace, table.target)
    assert properties is not None
    return properties


def write_later(
    table: Table, *, parent: int, state: int, made_under: int = 1, key: str = "id", run: str = "later"
) -> StateId:
    """Write a manifest like that of the first admission, with a file of its own, under these numbers."""
    content = table.lake.read("_schemasync/generations/000000-0001.json").replace(b"/1-0/", f"/{run}/".encode())
    later = json.loads(content) | {"made_under": made_under, "keys": [key]}
    later |= {"state": {"generation": 0, "admission": state}, "parent": {"generation": 0, "admission": parent}}
    (segment,) = later["segments"]
    assert table.lake.create(segment["files"][0]["path"], b"0")
    number = StateId(generation=0, admission=state)
    assert table.lake.create(manifest_path(number), json.dumps(later).encode())
    return number


def left_behind(table: Table, **later: Any) -> str:
    """Write a manifest after the first admission, and return why nobody goes on; nothing is changed by that."""
    properties = admitted(table)
    write_later(table, **later)
    before = table.lake.files("")
    with pytest.raises(DataError) as caught:
        roll_forward(table.workspace, table.target, properties)
    assert table.lake.files("") == before
    return str(caught.value)


def test_a_state_after_one_that_is_missing_stops_everything_and_stays() -> None:
    """As where the metastore is restored from a backup, and a manifest is not there."""
    with opened() as table:
        said = left_behind(table, parent=3, state=4)
    assert "it follows state 000000-0003, and 000000-0001 is in force" in said
    assert "SET TBLPROPERTIES ('schemasync.state' = '000000-0004@1')" in said


def test_a_state_of_a_later_version_than_the_table_has_stops_everything_and_stays() -> None:
    """As where the metastore is restored from a backup that was made before a version was applied."""
    with opened() as table:
        said = left_behind(table, parent=1, state=2, made_under=2)
    assert "it was made under version 2, and the table has version 1" in said
    assert said.endswith("Restore a later state of the metastore. Nothing was deleted.")


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ({"made_under": 2}, "it was made under version 2, and the table has version 1"),
        ({"key": "name"}, r"it was made under the key \(name\), and the table has the key \(id\)"),
    ],
    ids=["version", "key"],
)
def test_nothing_is_put_in_force_beside_a_state_of_what_the_table_has_not_yet(later: dict[str, Any], said: str) -> None:
    """A run that was killed may have left a state that follows the same one, and has a lower number."""
    with opened() as table:
        properties = admitted(table)
        write_later(table, parent=1, state=2)
        write_later(table, parent=1, state=3, **later, run="other")
        before = table.lake.files("")
        with pytest.raises(DataError, match=said):
            roll_forward(table.workspace, table.target, properties)
        assert (properties_in_force(table.workspace, table.target), table.lake.files("")) == (properties, before)


def test_of_two_states_that_follow_one_that_is_missing_none_is_advised() -> None:
    with opened() as table:
        properties = admitted(table)
        for state in (4, 5):
            write_later(table, parent=3, state=state, run=f"run{state}")
        with pytest.raises(DataError, match=r"Restore a later state of the metastore\. Nothing was deleted\.$"):
            roll_forward(table.workspace, table.target, properties)


def test_a_state_of_another_key_stops_everything_and_is_none_to_go_on_from() -> None:
    """Rows that it tells apart would be one row under the key that the table has."""
    with opened() as table:
        said = left_behind(table, parent=1, state=2, key="name")
    assert "it was made under the key (name), and the table has the key (id)" in said
    assert said.endswith("Restore a later state of the metastore. Nothing was deleted.")


def test_who_saw_a_table_before_its_version_was_applied_deletes_nothing_that_came_since() -> None:
    with opened() as table:
        stale, target = admitted(table), table.target
        following = replace(stale, version=2, state=write_later(table, parent=1, state=2, made_under=2))
        assert table.workspace.metastore.swap_properties(
            target.database, target.table, key=STATE, expected=stale.token, changes=write_properties(following)
        )
        before = table.lake.files("")
        assert (roll_forward(table.workspace, target, stale), table.lake.files("")) == (stale, before)


def test_history_passes_over_a_state_that_is_deleted_as_it_looks() -> None:
    real = ArrowLake.read

    def read(lake: ArrowLake, path: str) -> bytes:
        if path.endswith("000001.json"):
            lake.delete(path)
        return real(lake, path)

    with opened() as table:
        pass_by(table)
        with patch.object(ArrowLake, "read", read):
            found = history(table.workspace, "student")
        assert ([str(m.state) for m in found.generations], found.diagnostics) == (["000001-0001"], ())
