"""Several real tables at once: the same as one after the other, whatever becomes of one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from schemasync.app.applying import apply
from schemasync.app.compacting import Compacted, compact
from schemasync.app.watching import watch
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.mapping import TableTarget
from tests.lab import Lab, event

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TABLES = ("ada", "bob", "cyd", "dan", "eve", "fay")
BROKEN = "cyd"
PATIENCE_SECONDS = 60.0


def land(lab: Lab, topic: str, turn: int) -> None:
    """Land changes that differ from table to table: a row of one in another would be seen."""
    first = TABLES.index(topic) * 100
    lab.land(topic, [event(first + n, turn, name=f"{topic} {turn}") for n in range(turn + 1)])


def prepared(root: Path, lab: Lab, topics: Sequence[str], *, at_once: int, kernel: str) -> Lab:
    """Return a lab of its own: a state of each table in force, changes that wait, and one manifest mangled."""
    made = Lab(root=root, session=lab.session, database=f"{lab.database}_{at_once}")
    made.settings = {"spark": {"tables_at_once": at_once}, "defaults": {"compaction": {"kernel": kernel}}}
    for topic in topics:
        made.register(topic, made.flat("Row", ("name", ["null", "string"])))
        land(made, topic, 1)
    made.compact()
    for topic in topics:
        made.register(topic, made.flat("Row", ("name", ["null", "string"]), (f"of_{topic}", ["null", "int"])))
        land(made, topic, 2)
    (newest,) = sorted((root / "lake" / BROKEN / "_schemasync" / "generations").glob("*.json"))[-1:]
    newest.write_text("{}")
    return made


def outcome(one: Compacted) -> tuple[Any, ...]:
    return one.target.table, one.generation, one.rows, one.fold and one.fold.events, one.counts, one.applied.held


@pytest.mark.parametrize(("kernel", "topics"), [("arrow", TABLES), ("spark", TABLES[1:4])])
def test_what_comes_of_several_at_once_is_what_comes_of_one_after_the_other(
    lab: Lab, tmp_path: Path, kernel: str, topics: Sequence[str]
) -> None:
    found = []
    for at_once in (1, 3):
        made = prepared(tmp_path / str(at_once), lab, topics, at_once=at_once, kernel=kernel)
        result = made.compact()
        views = {topic: made.rows(topic) for topic in topics if topic != BROKEN}
        found.append(([outcome(one) for one in result.tables], views))
    (alone, alone_rows), (together, together_rows) = found
    assert [table for table, *_ in together] == list(topics)
    assert (together, together_rows) == (alone, alone_rows)
    assert [table for table, generation, *_ in together if generation != 2] == [BROKEN]
    assert together_rows["dan"][-1] == {"id": 302, "name": "dan 2", "of_dan": None}


class Meeting:
    """Stands before an edge; the first call of each thread of a crew waits until all of them are there."""

    def __init__(self, inner: Any, name: str, barrier: threading.Barrier, met: set[str]) -> None:
        self._inner = inner
        self._name = name
        self._barrier = barrier
        self._met = met

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._name:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            here = threading.current_thread().name
            if here.startswith("tables") and here not in self._met:
                self._barrier.wait(PATIENCE_SECONDS)
                self._met.add(here)
            return found(*args, **kwargs)

        return call


def meeting_in_the_lake(workspace: Workspace, threads: int, met: set[str]) -> Workspace:
    """Let no table go on to write a manifest until so many are about to do that."""
    barrier = threading.Barrier(threads)

    def storage(target: TableTarget) -> Storage:
        found = workspace.storage(target)
        lake: Any = Meeting(found.lake, "create", barrier, met)
        return replace(found, lake=lake)

    return replace(workspace, storage=storage)


def registered(lab: Lab, topics: Sequence[str], at_once: int) -> None:
    lab.settings = {"spark": {"tables_at_once": at_once}}
    for topic in topics:
        lab.register(topic, lab.flat("Row", ("name", ["null", "string"])))
        land(lab, topic, 1)


def one_round(workspace: Workspace) -> None:
    watch(workspace, once=True)


def applied(workspace: Workspace) -> None:
    apply(workspace)


def compacted(workspace: Workspace) -> None:
    compact(workspace)


@pytest.mark.parametrize("work", [applied, compacted, one_round])
def test_several_tables_are_really_at_work_at_the_same_time(lab: Lab, work: Callable[[Workspace], None]) -> None:
    registered(lab, TABLES[:3], at_once=3)
    met: set[str] = set()
    work(meeting_in_the_lake(lab.workspace, 3, met))
    assert (len(met), [len(lab.rows(topic)) for topic in TABLES[:3]]) == (3, [2, 2, 2])


def test_a_table_that_fails_in_the_middle_of_others_stops_none_of_them(lab: Lab) -> None:
    registered(lab, TABLES, at_once=3)
    workspace = lab.workspace

    def storage(target: TableTarget) -> Storage:
        if target.location.endswith(f"/{BROKEN}"):
            raise RuntimeError("a bug")
        return workspace.storage(target)

    result = apply(replace(workspace, storage=storage))
    assert [one.target.table for one in result.tables if one.error] == [BROKEN]
    assert [one.target.table for one in result.tables] == list(TABLES)
    assert [len(lab.rows(topic)) for topic in TABLES if topic != BROKEN] == [2] * 5
