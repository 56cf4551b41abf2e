"""Tables that a release made which did not mark deleted rows by a column of their own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemasync.app.applying import apply_table
from schemasync.app.compacting import Compacted, compact
from schemasync.app.inspecting import map_tables
from schemasync.app.status import status
from schemasync.core import shape
from schemasync.core.layering import Mode
from schemasync.core.shape import Shape
from tests.lab import Lab

pytestmark = pytest.mark.spark

MARKED, BY_OPERATION = "t.`__tombstone` IS NULL", "t.`__op` <> 'd'"


def event(key: int, at: int, *, op: str = "u") -> dict[str, Any]:
    return {"id": key, "n": at, "op": op, "ts_ms": at}


@pytest.fixture
def made(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A table with a shard, a deleted row in it, and a delta beside it."""
    with monkeypatch.context() as before:
        before.setattr(shape, "Shape", partial(Shape, marks=False))
        lab.register("student", lab.flat("Student", ("n", "long")))
        lab.land("student", [event(key, 1, op="c") for key in range(6)])
        lab.land("student", [event(0, 2, op="d")])
        lab.compact()
        lab.land("student", [event(1, 3, op="d"), event(2, 3)], hour="2026112001")
        lab.apply()
    assert "__tombstone" not in columns(lab)
    return lab


def columns(lab: Lab) -> list[str]:
    return list(lab.session.table(f"`{lab.database}`.student").columns)


def tells_by(lab: Lab) -> list[str]:
    """Return the conditions by which the view tells deleted rows."""
    found = lab.workspace.metastore.table(lab.database, "student_view")
    assert found is not None
    return [condition for condition in (MARKED, BY_OPERATION) if condition in found.view_text]


def values(lab: Lab) -> dict[int, int]:
    return {row["id"]: row["n"] for row in lab.rows("student")}


def marks(lab: Lab) -> dict[int, Any]:
    """Return what the base's newest file says of each key."""
    files = (lab.root / "lake" / "student" / "base").rglob("*.parquet")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    return {row["id"]: row["__tombstone"] for row in pq.ParquetFile(newest).read().to_pylist()}


def kinds(steps: Iterable[Any]) -> list[str]:
    return [step.kind for step in steps]


def compacted(lab: Lab, mode: Mode) -> Compacted:
    (table,) = compact(lab.workspace, mode=mode).tables
    assert table.failure is None
    return table


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_a_table_of_an_earlier_release_gets_the_column_and_its_rows_stay_right(made: Lab, kernel: str) -> None:
    made.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    (looked,) = status(made.workspace).tables
    assert looked.drift == ()

    made.land("student", [event(3, 4, op="d"), event(0, 4, op="c")], hour="2026112002")
    (applied,) = made.apply().tables
    assert kinds(applied.done) == ["add_columns", "set_version", "admit"]
    assert columns(made)[-2:] == ["__tombstone", "segment"]
    assert (values(made), tells_by(made)) == ({0: 4, 2: 3, 4: 1, 5: 1}, [BY_OPERATION])

    assert compacted(made, Mode.MINOR).merge is not None
    assert (values(made), tells_by(made)) == ({0: 4, 2: 3, 4: 1, 5: 1}, [BY_OPERATION])
    assert compacted(made, Mode.MAJOR).fold is not None
    assert (values(made), tells_by(made)) == ({0: 4, 2: 3, 4: 1, 5: 1}, [MARKED])
    assert marks(made) == {0: None, 1: True, 2: None, 3: True, 4: None, 5: None}
    assert made.apply().tables[0].done == ()


def test_until_someone_lets_its_schema_change_it_goes_on_as_it_was(made: Lab) -> None:
    more = made.flat("Student", ("n", "long"), ("more", ["null", "string"]))
    made.settings = {"defaults": {"policies": {"add": "hold"}}}
    made.register("student", more)
    made.land("student", [event(3, 4, op="d")], version=1, hour="2026112002")
    (held,) = made.apply().tables
    assert (kinds(held.done), held.held) == (["admit"], True)
    compacted(made, Mode.MAJOR)
    assert (values(made), tells_by(made)) == ({2: 3, 4: 1, 5: 1}, [BY_OPERATION])

    made.settings = {}
    made.land("student", [event(4, 5, op="d")], version=1, hour="2026112003")
    (target,) = map_tables(made.workspace).targets
    told = apply_table(made.workspace, target, allowed=lambda _: False)
    assert (kinds(told.done), "__tombstone" in columns(made)) == (["admit"], False)
    (applied,) = made.apply().tables
    assert kinds(applied.done)[:3] == ["add_columns", "replace_view", "set_version"]
    compacted(made, Mode.MAJOR)
    assert (values(made), tells_by(made)) == ({2: 3, 5: 1}, [MARKED])


def test_what_else_is_put_right_at_that_moment_stays_right(made: Lab) -> None:
    table = made.workspace.metastore.table(made.database, "student")
    assert table is not None
    left = [column for column in table.columns if column.name != "n"]
    made.workspace.metastore.replace_columns(made.database, "student", left)
    (applied,) = made.apply().tables
    assert kinds(applied.done) == ["repair_columns", "add_columns", "set_version"]
    compacted(made, Mode.MAJOR)
    assert (values(made), tells_by(made)) == ({2: 3, 3: 1, 4: 1, 5: 1}, [MARKED])
