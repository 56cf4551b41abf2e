"""Tables that a release made which did not mark deleted rows by a column of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemasync.app.compacting import compact
from schemasync.app.status import status
from schemasync.core import ddl, merge_plan
from schemasync.core.layering import Mode
from schemasync.core.layout import LATER, MetaColumn, meta_columns
from schemasync.core.schema import Envelope
from tests.lab import Lab

pytestmark = pytest.mark.spark

MARKED, BY_OPERATION = "t.`__tombstone` IS NULL", "t.`__op` <> 'd'"
HELD = {"defaults": {"policies": {"add": "hold"}}}


def earlier(envelope: Envelope) -> tuple[MetaColumn, ...]:
    return tuple(column for column in meta_columns(envelope) if column.name not in LATER)


def event(key: int, at: int, *, op: str = "u") -> dict[str, Any]:
    return {"id": key, "n": at, "op": op, "ts_ms": at}


@pytest.fixture
def made(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A table with a shard, a deleted row in it, and a delta beside it."""
    with monkeypatch.context() as before:
        for module in (ddl, merge_plan):
            before.setattr(module, "meta_columns", earlier)
        lab.register("student", lab.flat("Student", ("n", "long")))
        lab.land("student", [event(key, 1, op="c") for key in range(6)])
        lab.land("student", [event(0, 2, op="d")])
        lab.compact()
        lab.land("student", [event(1, 3, op="d"), event(2, 3)], hour="2026112001")
        lab.apply()
    return lab


def columns(lab: Lab) -> list[str]:
    return list(lab.session.table(f"`{lab.database}`.student").columns)


def text(lab: Lab) -> str:
    found = lab.workspace.metastore.table(lab.database, "student_view")
    assert found is not None
    return found.view_text


def values(lab: Lab) -> dict[int, int]:
    return {row["id"]: row["n"] for row in lab.rows("student")}


def marks(lab: Lab) -> dict[int, Any]:
    """Return what the files of the base say of each key."""
    files = (lab.root / "lake" / "student" / "base").rglob("*.parquet")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    return {row["id"]: row["__tombstone"] for row in pq.ParquetFile(newest).read().to_pylist()}


def kinds(steps: Iterable[Any]) -> list[str]:
    return [step.kind for step in steps]


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
def test_a_table_of_an_earlier_release_gets_the_column_and_its_rows_stay_right(made: Lab, kernel: str) -> None:
    made.settings = {"defaults": {"compaction": {"kernel": kernel}}}
    assert "__tombstone" not in columns(made)
    (looked,) = status(made.workspace).tables
    assert looked.drift == ()

    made.land("student", [event(3, 4, op="d"), event(0, 4, op="c")], hour="2026112002")
    (applied,) = made.apply().tables
    assert kinds(applied.done) == ["add_own_columns", "admit"]
    assert columns(made)[-2:] == ["__tombstone", "segment"]
    assert (values(made), BY_OPERATION in text(made)) == ({0: 4, 2: 3, 4: 1, 5: 1}, True)

    for mode in (Mode.MINOR, Mode.MAJOR):
        compact(made.workspace, mode=mode)
        assert values(made) == {0: 4, 2: 3, 4: 1, 5: 1}
    assert (MARKED in text(made), BY_OPERATION in text(made)) == (True, False)
    assert marks(made) == {0: None, 1: True, 2: None, 3: True, 4: None, 5: None}
    assert kinds(made.apply().tables[0].done) == []


def test_a_held_table_of_an_earlier_release_gets_it_too(made: Lab) -> None:
    made.settings = HELD
    made.register("student", made.flat("Student", ("n", "long"), ("more", ["null", "string"])))
    made.land("student", [event(3, 4, op="d")], version=1, hour="2026112002")
    (applied,) = made.apply().tables
    assert (kinds(applied.done), applied.held) == (["add_own_columns", "admit"], True)
    compact(made.workspace, mode=Mode.MAJOR)
    assert (values(made), MARKED in text(made)) == ({2: 3, 4: 1, 5: 1}, True)
