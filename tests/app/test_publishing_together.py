"""What one compaction does is published together; what it admitted is shown in any case."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from schemasync.app import compacting
from schemasync.app.applying import apply
from schemasync.app.compacting import Compacted, compact
from schemasync.app.states import written_states
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.layering import Mode
from schemasync.core.mapping import TableTarget
from schemasync.core.merging import MergeRequest
from schemasync.core.ports import FileInfo, Lake, ShardJob
from schemasync.core.properties import read_properties
from schemasync.errors import ConflictError, EngineError, StorageError
from schemasync.io.lake.arrow import ArrowLake
from tests.app.mortal import Fuse, KilledError, mortal
from tests.lab import HOUR, Lab, NewLab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"
FULL = StorageError("the disk is full")
BEFORE, AFTER = {1: 1, 2: 1}, {1: 2, 2: 1, 3: 2}


def land(lab: Lab, ts_ms: int, *keys: int) -> None:
    lab.now_ms += HOUR
    lab.land(TOPIC, [{"id": k, "n": ts_ms, "op": "u", "ts_ms": ts_ms} for k in keys], hour=f"20261120{ts_ms:02}")


@pytest.fixture
def table(new_lab: NewLab) -> Lab:
    return prepared(new_lab())


def prepared(lab: Lab) -> Lab:
    """Return a lab with a base, what it replaced and is due for cleaning up, and a file that landed since."""
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    land(lab, 0, 1)
    lab.compact()
    land(lab, 1, 1, 2)
    lab.compact()
    land(lab, 2, 1, 3)
    return lab


def rows(lab: Lab) -> dict[int, int]:
    return {row["id"]: row["n"] for row in lab.rows(TABLE)}


def compacted(workspace: Workspace, mode: Mode = Mode.MAJOR) -> Compacted:
    (done,) = compact(workspace, mode=mode).tables
    return done


def partitions(lab: Lab) -> list[str]:
    return sorted(lab.workspace.metastore.partitions(lab.database, TABLE))


def states(lab: Lab) -> list[str]:
    found = lab.workspace.metastore.table(lab.database, TABLE)
    assert found is not None
    lake = ArrowLake(lab.config.defaults.location.replace("{topic}", TOPIC))
    return [str(state) for state in written_states(lake, read_properties(found.properties))]


@pytest.mark.parametrize("mode", [Mode.MAJOR, Mode.MINOR])
def test_a_compaction_admits_works_and_cleans_up_in_one_publication(table: Lab, mode: Mode) -> None:
    fuse, before = Fuse(), states(table)
    done = compacted(mortal(table.workspace, fuse), mode)
    calls = [call for call in fuse.calls if call in {"swap_properties", "set_view_text", "drop_partitions"}]
    assert (done.failure, rows(table), len(states(table)) - len(before)) == (None, AFTER, 1)
    assert calls == ["drop_partitions", "swap_properties", "set_view_text"]


def test_changes_that_are_folded_at_once_are_never_registered(table: Lab) -> None:
    assert compacted(table.workspace).fold is not None
    assert partitions(table) == ["base_s00000002", "base_s00000003"]


class Standing:
    """Stands before a job that merges shards, and does something before each merge."""

    def __init__(self, real: ShardJob, *, before: Callable[[], object]) -> None:
        self._real = real
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def merge(self, request: MergeRequest) -> Any:
        self._before()
        return self._real.merge(request)


def merging(workspace: Workspace, before: Callable[[], object]) -> Workspace:
    """Return a workspace that does something before each merge."""

    def storage(target: TableTarget) -> Storage:
        real = workspace.storage(target)
        return replace(real, shards=Standing(real.shards, before=before))

    return replace(workspace, storage=storage)


def fails(error: BaseException) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def test_what_was_admitted_is_shown_where_the_work_fails_that_follows(table: Lab) -> None:
    done = compacted(merging(table.workspace, fails(FULL)))
    assert (done.failure, rows(table)) == (FULL, AFTER)
    assert compacted(table.workspace).failure is None
    assert (rows(table), table.plan().tables[0].landed) == (AFTER, 0)


def test_what_was_admitted_is_shown_when_people_interrupt_the_work(table: Lab) -> None:
    with pytest.raises(KeyboardInterrupt):
        compacted(merging(table.workspace, fails(KeyboardInterrupt())))
    assert rows(table) == AFTER


def test_a_failure_after_others_published_leaves_what_they_did(table: Lab) -> None:
    def others() -> None:
        table.apply()
        land(table, 3, 1)
        table.apply()

    failing = merging(table.workspace, fails(FULL))
    done = compacted(merging(failing, others))
    assert (done.failure, rows(table)) == (FULL, AFTER | {1: 3})
    # What was due is cleaned up in a state that follows theirs.
    assert states(table)[-4:] == ["000002", "000002-0001", "000002-0002", "000002-0003"]


def test_what_was_shown_first_stays_where_the_work_fails(table: Lab) -> None:
    with patch.object(compacting, "_LONG_BYTES", 0):
        done = compacted(merging(table.workspace, fails(FULL)))
    assert (done.failure, rows(table)) == (FULL, AFTER)
    assert (compacted(table.workspace).failure, rows(table)) == (None, AFTER)


class Failing(Fuse):
    """Lets one call fail, before it is done or after; people may also interrupt it there."""

    def __init__(self, number: int, error: BaseException, *, done: bool) -> None:
        super().__init__(number)
        self._error = error
        self._done = done
        self.failed = False

    def check(self) -> None:
        if not self._done:
            self._fail()

    def done(self, call: str) -> None:
        self.calls.append(call)
        if self._done:
            self._fail()

    def _fail(self) -> None:
        if len(self.calls) == self.after and not self.failed:
            self.failed = True
            raise self._error


def gathered(lab: Lab) -> Lab:
    """Return a lab in which a part of what landed was admitted already, so that there is something to merge."""
    prepared(lab).apply()
    land(lab, 3, 2)
    return lab


@pytest.mark.parametrize(
    ("error", "done"),
    [(EngineError("the metastore is gone"), False), (EngineError("no answer"), True), (KeyboardInterrupt(), True)],
    ids=["refused", "done all the same", "ctrl-c"],
)
@pytest.mark.parametrize(
    ("prepare", "mode"),
    [(prepared, Mode.MAJOR), (prepared, Mode.MINOR), (gathered, Mode.MINOR)],
    ids=["fold", "nothing", "merge"],
)
def test_whatever_call_fails_nothing_is_lost(
    new_lab: NewLab, prepare: Callable[[Lab], Lab], mode: Mode, done: bool, error: BaseException
) -> None:
    lab, whole = prepare(new_lab()), Fuse()
    bring_back = lab.kept()
    compacted(mortal(lab.workspace, whole), mode)
    after = rows(lab)
    publishing = [n for n, call in enumerate(whole.calls) if call not in {"admit", "merge", "make_directory"}]
    for number in publishing:
        bring_back()
        before, fuse = rows(lab), Failing(number + done, error, done=done)
        with suppress(KeyboardInterrupt):
            compacted(mortal(lab.workspace, fuse), mode)
        where = (fuse.calls, whole.calls[number])
        assert (fuse.failed, rows(lab) in (before, after)) == (True, True), where
        lab.now_ms += HOUR
        again = compacted(lab.workspace)
        assert (again.failure, rows(lab), lab.plan().tables[0].landed) == (None, after, 0), where
        # A rewrite of all there is reads every file that the state in force names.
        land(lab, 4, 1, 2)
        assert (compacted(lab.workspace).failure, rows(lab)) == (None, after | {1: 4, 2: 4}), where


class Until(Fuse):
    """Dies once a call of this name is done."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self._last = last

    def done(self, call: str) -> None:
        self.calls.append(call)
        if call == self._last:
            self.after = len(self.calls)
        self.check()


@pytest.mark.parametrize("mode", [Mode.MAJOR, Mode.MINOR])
def test_another_writer_that_is_killed_half_way_takes_nothing_with_it(table: Lab, mode: Mode) -> None:
    def other() -> None:
        with pytest.raises(KilledError):
            compact(mortal(table.workspace, Until("create _schemasync/generations")), mode=mode)

    done = compacted(merging(table.workspace, other))
    # Both folds would be the next generation.
    assert isinstance(done.failure, ConflictError) == (mode is Mode.MAJOR)
    assert rows(table) == AFTER
    land(table, 3, 1, 2)
    assert (compacted(table.workspace).failure, rows(table)) == (None, AFTER | {1: 3, 2: 3})


class Meeting(Fuse):
    """Lets another writer come once a call of this name is done, the first time."""

    def __init__(self, call: str, other: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self._others = [other]

    def done(self, call: str) -> None:
        if call == self._call and self._others:
            self._others.pop()()


def test_the_view_of_a_winner_that_was_killed_names_only_what_is_registered(table: Lab) -> None:
    def winner() -> None:
        with pytest.raises(KilledError):
            compacted(mortal(table.workspace, Until("swap_properties")))

    apply(mortal(table.workspace, Meeting("set_view_text", winner)))
    assert rows(table) == AFTER


def test_a_view_that_nobody_changed_is_not_asked_for_again(table: Lab) -> None:
    metastore = table.workspace.metastore
    with patch.object(metastore, "table", wraps=metastore.table) as asked:
        assert compacted(table.workspace).fold is not None
    assert rows(table) == AFTER
    assert asked.called
    assert f"{TABLE}_view" not in [name for (_, name), _ in asked.call_args_list]


@pytest.mark.parametrize("gone", [True, False])
def test_a_view_that_somebody_changed_meanwhile_is_made_right(table: Lab, *, gone: bool) -> None:
    def somebody() -> None:
        if gone:
            table.workspace.sql.execute(f"DROP VIEW {table.database}.{TABLE}_view")
        else:
            table.workspace.metastore.set_view_text(table.database, f"{TABLE}_view", "SELECT 1 AS other")

    done = compacted(merging(table.workspace, somebody))
    assert (done.failure, rows(table)) == (None, AFTER)


def generations(lab: Lab) -> Path:
    return lab.root / "lake" / TOPIC / "_schemasync" / "generations"


def test_a_state_that_others_put_in_force_and_followed_is_kept(table: Lab) -> None:
    def winner() -> None:
        land(table, 3, 2)
        table.apply()

    done = compacted(mortal(table.workspace, Meeting("create _schemasync/generations", winner)))
    assert (type(done.failure), rows(table)) == (ConflictError, AFTER | {2: 3})
    assert {"000003.json", "000003-0001.json"} <= {file.name for file in generations(table).iterdir()}


class Full:
    """Stands before a lake that refuses to delete a sink's files."""

    def __init__(self, real: Lake) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def delete(self, path: str, *, seen: FileInfo | None = None) -> None:
        if path.startswith("incremental/"):
            raise FULL
        self._real.delete(path, seen=seen)


def test_trouble_with_what_is_old_stops_no_compaction(table: Lab) -> None:
    workspace = table.workspace

    def storage(target: TableTarget) -> Storage:
        real = workspace.storage(target)
        return replace(real, lake=Full(real.lake))

    done = compacted(replace(workspace, storage=storage))
    assert done.failure is not None
    assert (done.failure.__cause__, rows(table), states(table)[-1]) == (FULL, AFTER, "000003")


def test_what_a_view_reads_that_was_left_behind_stays_until_it_follows(table: Lab) -> None:
    """That of a table that is held is not written anew, but where a compaction shows what it published."""
    view, read = table.workspace.metastore.table(table.database, f"{TABLE}_view"), set(partitions(table))
    assert view is not None
    compacted(table.workspace)
    table.land(TOPIC, [{"id": 1, "n": 3, "op": "u", "ts_ms": 3}], hour="2026112003")
    compacted(table.workspace)
    table.workspace.metastore.set_view_text(table.database, view.name, view.view_text)
    assert rows(table) == BEFORE
    land(table, 4, 1)
    table.register(TOPIC, table.flat("Student", ("n", "bytes")))
    refused = EngineError("Spark refuses the view")
    with patch.object(compacting, "refresh_view", side_effect=refused):
        done = compacted(table.workspace)
    assert (done.failure, done.applied.held, rows(table)) == (refused, True, BEFORE)
    assert compacted(table.workspace).failure is None
    assert (rows(table), set(partitions(table)) & read) == ({1: 4, 2: 1, 3: 2}, set())


def test_the_view_of_a_table_that_is_held_for_its_key_follows_the_state_in_force(table: Lab) -> None:
    """What nobody may read any more is cleaned up while files wait, so nothing may still read it."""
    with pytest.raises(KilledError):
        compacted(mortal(table.workspace, Until("swap_properties")))
    assert rows(table) == BEFORE
    fields = [{"name": name, "type": type_} for name, type_ in (("id", "long"), ("n", "int"))]
    table.registry.register(f"{TOPIC}-key", json.dumps({"type": "record", "name": "Key", "fields": fields}))
    land(table, 3, 1)
    (applied,) = table.apply().tables
    assert (applied.held, applied.diagnostics[-1].code, rows(table)) == (True, "SS304", AFTER)


def test_long_work_shows_first_what_was_admitted(table: Lab) -> None:
    seen: list[dict[int, int]] = []
    workspace = merging(table.workspace, lambda: seen.append(rows(table)))
    compacted(workspace)
    land(table, 3, 2)
    with patch.object(compacting, "_LONG_BYTES", 0):
        done = compacted(workspace)
    assert (done.failure, seen) == (None, [BEFORE, AFTER | {2: 3}])
