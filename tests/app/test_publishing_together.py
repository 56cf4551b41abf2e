"""What one compaction does is published together; what it admitted is shown in any case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from schemasync.app import compacting
from schemasync.app.compacting import Compacted, compact
from schemasync.app.states import published_states
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.layering import Mode
from schemasync.core.merging import MergeRequest
from schemasync.core.ports import ShardJob
from schemasync.core.properties import read_properties
from schemasync.errors import StorageError
from tests.app.mortal import Fuse, mortal
from tests.lab import HOUR, Lab

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
FULL = StorageError("the disk is full")
BEFORE, AFTER = {1: 1, 2: 1}, {1: 2, 2: 1, 3: 2}


def land(lab: Lab, ts_ms: int, *keys: int) -> None:
    lab.now_ms += HOUR
    lab.land(TOPIC, [{"id": k, "n": ts_ms, "op": "u", "ts_ms": ts_ms} for k in keys], hour=f"20261120{ts_ms:02}")


@pytest.fixture
def table(lab: Lab) -> Lab:
    """A base that holds an earlier one, which is due for cleaning up, and a file that landed since."""
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
    lake = lab.workspace.storage(lab.config.defaults.location.replace("{topic}", TOPIC)).lake
    return [str(state) for state in published_states(lake, read_properties(found.properties))]


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

    def storage(location: str) -> Storage:
        real = workspace.storage(location)
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


def test_a_failure_after_another_writer_published_leaves_what_that_one_did(table: Lab) -> None:
    failing = merging(table.workspace, fails(FULL))
    done = compacted(merging(failing, table.apply))
    assert (done.failure, rows(table), states(table)[-1]) == (FULL, AFTER, "000002-0001")


def test_long_work_shows_first_what_was_admitted(table: Lab) -> None:
    seen: list[dict[int, int]] = []
    workspace = merging(table.workspace, lambda: seen.append(rows(table)))
    compacted(workspace)
    land(table, 3, 2)
    with patch.object(compacting, "_LONG_BYTES", 0):
        compacted(workspace)
    assert seen == [BEFORE, AFTER | {2: 3}]
