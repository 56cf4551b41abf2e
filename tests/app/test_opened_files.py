"""Planning and admission open the files that are new, however many others there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemasync.core.ports import FileInfo
from schemasync.io.parquet.arrow import ArrowFiles
from tests.lab import Lab

pytestmark = pytest.mark.spark

TOPIC = "shop.student"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every Parquet file that this process opens from now on, by its path from the topic on."""
    paths: set[str] = set()
    inner, footer = ArrowFiles._opened, ArrowFiles.footer

    def opened(self: ArrowFiles, path: str) -> Any:
        paths.add(path)
        return inner(self, path)

    def looked_at(self: ArrowFiles, file: FileInfo, *, now_ms: int) -> Any:
        paths.add(file.path)
        return footer(self, file, now_ms=now_ms)

    def telling(inner: Callable[..., Any]) -> Callable[..., Any]:
        def open_(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, str):
                paths.add(path.partition(f"/{TOPIC}/")[2])
            return inner(path, *args, **kwargs)

        return open_

    monkeypatch.setattr(ArrowFiles, "_opened", opened)
    monkeypatch.setattr(ArrowFiles, "footer", looked_at)
    monkeypatch.setattr(pq, "ParquetFile", telling(pq.ParquetFile))
    monkeypatch.setattr(pq, "read_metadata", telling(pq.read_metadata))
    return paths


def test_only_files_that_are_new_are_opened(lab: Lab, opened: set[str]) -> None:
    lab.settings = {"defaults": {"compaction": {"shard_size": "1KB", "on_fold": "keep"}}}
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.land(TOPIC, [{"id": key, "n": key, "op": "c", "ts_ms": 1} for key in range(40)])
    lab.compact()
    for number in range(4):
        lab.now_ms += 1000
        lab.land(TOPIC, [{"id": number, "n": 0, "op": "u", "ts_ms": 2 + number}], hour=f"202611200{number}")
        lab.apply()
    opened.clear()
    lab.plan()
    assert opened == set()
    new = "incremental/increment_2026112009/new.parquet"
    lab.land(TOPIC, [{"id": 7, "n": 0, "op": "u", "ts_ms": 9}], hour="2026112009", name="new.parquet")
    lab.plan()
    assert opened == {new}
    lab.apply()
    (delta,) = opened - {new}
    assert delta.startswith("delta/g=000006/")


def test_files_that_wait_are_opened_once(lab: Lab, opened: set[str]) -> None:
    lab.settings = {"defaults": {"policies": {"add": "hold"}}}
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    lab.land(TOPIC, [{"id": 1, "n": 1, "op": "c", "ts_ms": 1}])
    lab.apply()
    lab.register(TOPIC, lab.flat("Student", ("n", "int"), ("more", ["null", "int"])))
    event = {"id": 2, "n": 1, "more": 1, "op": "c", "ts_ms": 2}
    for name in "abc":
        lab.land(TOPIC, [event], name=f"{name}.parquet")
    (applied,) = lab.apply().tables
    assert [d.code for d in applied.diagnostics].count("SS304") == 3
    opened.clear()
    lab.land(TOPIC, [event], name="d.parquet")
    lab.land(TOPIC, [event, {**event, "id": 3}], name="a.parquet")
    lab.apply()
    assert opened == {f"incremental/increment_2026112000/{name}.parquet" for name in "ad"}
