"""Footers of files that wait are read once, as far as there is room; no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from schemasync.app import kept_footers
from schemasync.app.kept_footers import footers
from schemasync.app.workspace import Storage
from schemasync.core.admission import Footer, Unreadable
from schemasync.core.ports import FileInfo
from schemasync.core.types import Primitive, Struct, StructField


class Files:
    """Files of one location, by name; those that are called so are broken."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.opened: list[str] = []

    def footer(self, file: FileInfo, *, now_ms: int) -> Footer | Unreadable:
        self.opened.append(file.path)
        if file.path == "broken":
            return Unreadable(reason=f"no Parquet at {now_ms}", incomplete=True)
        type_ = Struct(fields=(StructField(name="id", type=Primitive.INT),))
        return Footer(rows=file.bytes, avro="".join(["te", "xt"]), type=type_)

    def look(self, names: Iterable[str], **of: int) -> list[Footer | Unreadable]:
        """Return what is found, and forget what was opened before."""
        self.opened.clear()
        files = [FileInfo(path=name, **({"bytes": 7, "modified_ms": 1} | of)) for name in names]
        storage = cast(Storage, SimpleNamespace(lake=self, small=self))
        return [footer for _, footer in footers(storage, files, now_ms=0)]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    monkeypatch.setattr(kept_footers, "_KEPT", kept)
    return kept


@pytest.mark.parametrize(
    ("of", "opened"), [({}, ["broken"]), ({"bytes": 8}, ["a", "broken"]), ({"modified_ms": 2}, ["a", "broken"])]
)
def test_what_is_whole_is_opened_again_only_where_it_was_replaced(of: dict[str, int], opened: list[str]) -> None:
    files = Files("file:/t")
    files.look(["a", "broken"])
    (found, _) = files.look(["a", "broken"], **of)
    assert isinstance(found, Footer)
    assert (files.opened, found.rows) == (opened, of.get("bytes", 7))
    assert Files("file:/other").look(["a"]) != []


def test_files_that_say_the_same_share_it() -> None:
    files = Files("file:/t")
    files.look("a")
    first, second = (cast(Footer, footer) for footer in files.look("ab"))
    assert (first.avro is second.avro, first.type is second.type) == (True, True)


def test_what_is_gone_is_forgotten(kept: dict[str, Any]) -> None:
    files = Files("file:/t")
    files.look("ab")
    files.look("b")
    files.look("ab")
    assert files.opened == ["a"]
    files.look("")
    assert kept == {}


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]) -> None:
    monkeypatch.setattr(kept_footers, "_MOST_KEPT", 1200)
    files, others = Files("file:/t"), Files("file:/others")
    others.look("a")
    files.look("abc")
    files.look("abc")
    assert (files.opened, list(kept)) == (["c"], ["file:/t"])
    others.look("a")
    assert (others.opened, list(kept)) == (["a"], ["file:/others"])
