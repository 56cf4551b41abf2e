"""What footers of ours say of their newest row where statistics of one column do not tell enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from schemasync.core.manifest import SegmentKind
from schemasync.core.moments import NEVER, Newest
from schemasync.io.parquet import shard_writer
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.moments import NewestSeen, newest_told
from schemasync.io.parquet.shard_writer import ShardWriter

FILES = st.one_of(st.none(), st.sampled_from(["", "binlog.000001", "binlog.000002"]))
ROWS = st.lists(st.tuples(FILES, st.one_of(st.none(), st.integers(0, 3))), min_size=1, max_size=6)


def table(rows: list[tuple[Any, Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({"first": pa.array(columns[0], pa.string()), "then": pa.array(columns[1], pa.int64())})


def told(seen: NewestSeen) -> Newest | None:
    return newest_told({key.encode(): value.encode() for key, value in seen.metadata.items()})


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_it_is_the_newest_of_all_rows_a_null_being_the_oldest(parts: list[list[tuple[Any, Any]]]) -> None:
    seen = NewestSeen(["first", "then", "other"])
    for part in parts:
        seen.note(table(part))
    known = [(file or "", NEVER if place is None else place) for part in parts for file, place in part]
    assert told(seen) == Newest(*max(known))


@pytest.mark.parametrize(
    ("first", "value", "found"),
    [
        (pa.date32(), 7, Newest(7, 2)),
        (pa.int64(), 7, None),
        (pa.timestamp("us", "UTC"), 7, None),
        (pa.string(), b"\xff", None),
    ],
)
def test_numbers_and_times_need_none_and_what_is_no_text_has_none(
    first: pa.DataType, value: Any, found: Newest | None
) -> None:
    seen = NewestSeen(["first", "then"])
    values = pa.array([value]).view(first) if isinstance(value, bytes) else pa.array([value], first)
    rows = pa.table({"first": values, "then": pa.array([2])})
    for _ in range(2):
        seen.note(rows)
    assert told(seen) == found


def test_nothing_is_said_where_there_is_no_second_column() -> None:
    seen = NewestSeen(["first"])
    seen.note(table([("a", 1)]))
    assert told(seen) is None


@pytest.mark.parametrize("keys", [["first"], []], ids=["keys", "no keys"])
def test_a_footer_says_it_of_its_own_file(tmp_path: Path, keys: list[str]) -> None:
    rows = table([("a", 1), ("b", 2), ("b", 7), ("a", 9), ("b", 3)])
    with (
        patch.dict(shard_writer._GROUP_ROWS, {SegmentKind.DELTA: 2}),
        ShardWriter(
            fs.LocalFileSystem(),
            str(tmp_path),
            "d",
            rows.schema,
            8_000_000,
            kind=SegmentKind.DELTA,
            keys=keys,
            ordering=["first", "then"],
        ) as writer,
    ):
        for place in range(5):
            writer.write(rows.slice(place, 1))
    (path,) = writer.rows
    found = ArrowFiles(fs.LocalFileSystem(), str(tmp_path)).written(path, ["first"])
    assert (found.rows, found.newest) == (5, Newest("b", 7) if keys else None)
