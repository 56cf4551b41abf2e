from __future__ import annotations

from typing import Any

import pytest

from schemasync.core.admission import Footer, Unreadable
from schemasync.core.footers import Sampled, footer_drift, sample
from schemasync.core.manifest import DataFile
from schemasync.core.ports import HiveColumn
from schemasync.core.types import Primitive, Struct, StructField, Type
from tests.core.builders import fresh, segment

P = Primitive


def data(path: str) -> DataFile:
    return DataFile(path=path, rows=1, bytes=10)


def chosen(count: int) -> list[str]:
    segments = tuple(
        segment(f"delta_{n}", created_ms=100 - n, files=(data(f"{n}/b"), data(f"{n}/a"))) for n in range(count)
    )
    empty = segment("delta_empty", created_ms=0)
    manifest = fresh().model_copy(update={"segments": (*segments, empty)})
    return [found.file.path for found in sample(manifest)]


def test_the_oldest_the_newest_and_some_between_are_looked_at() -> None:
    assert [chosen(0), chosen(1), chosen(2), chosen(10)] == [
        [],
        ["0/a"],
        ["1/a", "0/a"],
        ["9/a", "6/a", "3/a", "0/a"],
    ]


SAMPLED = Sampled(segment=segment("base", columns=("id", "name")), file=data("base/a"))
TABLE = (
    HiveColumn(name="id", type="bigint"),
    HiveColumn(name="name", type="string"),
    HiveColumn(name="x", type="char(1)"),
)


def footer(rows: int = 1, **columns: Type) -> Footer:
    fields = tuple(StructField(name=name, type=type_) for name, type_ in columns.items())
    return Footer(rows=rows, avro=None, type=Struct(fields=fields))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (footer(id=P.BIGINT, name=P.STRING), None),
        (footer(rows=2, id=P.BIGINT, name=P.STRING), "it has 2 rows, the manifest says 1"),
        (footer(id=P.BIGINT), "it and the manifest disagree about the columns name"),
        (footer(id=P.INT, name=P.STRING), "id is int, the table says bigint"),
        (footer(id=P.BIGINT, name=P.STRING, x=P.INT), "it and the manifest disagree about the columns x"),
        (footer(id=P.BIGINT, name=P.STRING, y=P.INT), "it and the manifest disagree about the columns y"),
        (Unreadable(reason="no footer"), "it cannot be read: no footer"),
    ],
)
def test_a_footer_is_what_manifest_and_table_say(found: Any, reason: str | None) -> None:
    told = [(d.code, d.message) for d in footer_drift(SAMPLED, found, TABLE)]
    assert told == ([("SS216", f"base/a of base: {reason}")] if reason else [])
