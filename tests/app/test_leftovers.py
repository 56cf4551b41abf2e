"""What a run that did its work cannot delete of its own: the work is published all the same, and the log tells it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from schemasync.core.merging import MergedShard, MergeRequest
from schemasync.errors import EngineError, StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.parquet.shards import SparkShards
from schemasync.io.spark_sql import SparkSql
from tests.lab import HOUR, Lab, event

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"


@pytest.fixture
def table(lab: Lab) -> Lab:
    lab.register(TOPIC, lab.flat("Student"))
    lab.land(TOPIC, [event(1, 1), event(2, 1)])
    return lab


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what lets no directory be deleted whose path has this in it."""
    deleted = ArrowLake.delete_directory

    def refuse(part: str) -> None:
        def delete(lake: ArrowLake, directory: str) -> None:
            if part in directory:
                raise StorageError("cannot delete it", where=directory, why="503 SlowDown")
            deleted(lake, directory)

        monkeypatch.setattr(ArrowLake, "delete_directory", delete)

    return refuse


def compacts(lab: Lab, **compaction: str) -> list[int]:
    """Compact, which must go well; return the keys that the view shows."""
    lab.settings = {"defaults": {"compaction": compaction}}
    assert [t.failure for t in lab.compact().tables] == [None]
    return [row["id"] for row in lab.rows(TABLE)]


def test_what_an_admission_put_aside(
    table: Lab, refusing: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    refusing("_schemasync/staging/")
    assert compacts(table, arrow_limit="0") == [1, 2]
    assert "what was put aside stays until it is cleaned up: _schemasync/staging/" in caplog.text


def test_what_a_task_wrote_that_was_tried_again(
    table: Lab, refusing: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusing("/try-dead")
    merged = SparkShards.merge

    def merge(shards: SparkShards, request: MergeRequest) -> tuple[MergedShard, ...]:
        left = table.root.joinpath("lake", TOPIC, request.shards[0].directory, "try-dead", "part-0.parquet")
        left.parent.mkdir(parents=True)
        left.touch()
        return merged(shards, request)

    monkeypatch.setattr(SparkShards, "merge", merge)
    assert compacts(table, arrow_limit="0") == [1, 2]
    assert [Path(path).parent.name for path in table.strangers()] == ["try-dead"]
    assert "what tasks wrote that were tried again stays beside the shards: base/g=000001/" in caplog.text


def test_the_tables_of_a_fold_by_sql(
    table: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execute = SparkSql.execute

    def refuse(engine: SparkSql, sql: str) -> None:
        if sql.startswith("DROP TABLE"):
            raise EngineError("the metastore timed out", where=sql)
        execute(engine, sql)

    with monkeypatch.context() as patched:
        patched.setattr(SparkSql, "execute", refuse)
        assert compacts(table, kernel="spark") == [1, 2]
        # What is due is cleaned up before a run that has nothing to fold stops at them.
        table.now_ms += 2 * HOUR
        told = str(table.compact().tables[0].failure)
        assert (told.startswith("DROP TABLE"), [*table.root.rglob("increment_*/*.parquet")]) == (True, [])
    assert (
        f"table {table.database}.{TABLE}: tables of this run stay for the next one to drop: DROP TABLE" in caplog.text
    )
    table.land(TOPIC, [event(3, 2)])
    found = [table.workspace.metastore.names(table.database, f"{TABLE}_base|{TABLE}_compactor")]
    assert compacts(table, kernel="spark") == [1, 2, 3]
    found.append(table.workspace.metastore.names(table.database, f"{TABLE}_base|{TABLE}_compactor"))
    assert found == [(f"{TABLE}_base", f"{TABLE}_compactor"), ()]


def test_what_folds_wrote_that_were_killed(table: Lab) -> None:
    """Each try of one that is killed again and again leaves all that it wrote, for a generation that never is."""
    generation = table.root / "lake" / TOPIC / "base/g=000001"
    written = {name: generation / name / "s=00000000" / "part-0.parquet" for name in ("dead", "young")}
    for name, file in written.items():
        file.parent.mkdir(parents=True)
        file.write_text("cut off")
        moment = table.now_ms / 1000 - (7 if name == "dead" else 5) * 3600
        os.utime(file, (moment, moment))
    assert compacts(table) == [1, 2]
    assert {name: file.exists() for name, file in written.items()} == {"dead": False, "young": True}
