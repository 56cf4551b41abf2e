"""Cleaning up, as far as that needs no rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from schemasync.app.retiring import clean_up, dead_columns
from schemasync.app.states import Draft
from schemasync.core.manifest import Segment, Superseded
from schemasync.errors import StorageError
from schemasync.io.lake.arrow import ArrowLake
from tests.app.still import Still, avro
from tests.core.builders import fresh, segment


def test_where_superseded_directories_are_denied_one_after_the_other_those_between_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may cost a storage a call, and there may be hundreds."""
    still = Still(tmp_path)
    still.register(avro())
    (plan,) = still.plan().tables
    places = [f"base/g=000001/0001/s={number:08}" for number in range(30)]
    superseded = tuple(Superseded(segment=place, location=place, since_ms=0, registered=False) for place in places)
    manifest = fresh().model_copy(update={"superseded": superseded})
    asked: list[str] = []

    def delete(_: ArrowLake, directory: str) -> None:
        asked.append(directory)
        raise StorageError("cannot delete it", where=directory)

    monkeypatch.setattr(ArrowLake, "delete_directory", delete)
    draft = Draft(properties=cast(Any, None), in_force=manifest, manifest=manifest)
    later = replace(still.workspace, now_ms=lambda: 365 * 86_400_000)
    left, _ = clean_up(later, plan.target, cast(Any, None), draft)
    assert (left, asked) == (draft, [*reversed(places[20:]), *places[:10]])


def test_a_column_is_dead_once_no_reader_may_meet_it(tmp_path: Path) -> None:
    """Taken out of the metastore while an earlier view, or a file, still has it, queries of that would fail."""
    still = Still(tmp_path)
    still.register(avro(("v", "string")))
    still.settle()
    still.register(avro())
    (plan,) = still.plan().tables
    shape = plan.view.decision.desired if plan.view else None
    assert shape is not None
    left = Superseded(segment="base_s00000001", location="x", since_ms=0)

    def dead(*segments: Segment, superseded: Superseded | None = None) -> set[str]:
        state = fresh().model_copy(update={"segments": segments, "superseded": (superseded,) if superseded else ()})
        return {*dead_columns(shape, state)}

    new = segment("base_s00000002", schema_version=2, columns=("id",))
    assert dead(new) == {"v"}
    assert dead(new, superseded=left.model_copy(update={"registered": False})) == {"v"}
    assert dead(new, superseded=left) == set()
    assert dead(new, segment("delta_00000001", schema_version=2, columns=("id", "v"))) == set()
    assert dead(new, segment("delta_00000001", schema_version=1, columns=("id",))) == set()
