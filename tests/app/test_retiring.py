"""Cleaning up, as far as that needs no rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from schemasync.app.retiring import clean_up
from schemasync.app.states import Draft
from schemasync.core.manifest import Superseded
from schemasync.errors import StorageError
from schemasync.io.lake.arrow import ArrowLake
from tests.app.still import Still, avro
from tests.core.builders import fresh


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
