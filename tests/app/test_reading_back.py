"""Files that were just written are looked at before anyone publishes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.app.reading_back import changed_keys, checked_footer, extents, key_range, moments
from schemasync.core.admission import WrittenFooter
from schemasync.core.changed_keys import LISTED, MOST_TEXT, ChangedKeys
from schemasync.core.manifest import NEVER, DataFile, Segment, SegmentKind
from schemasync.core.types import Primitive, Type
from schemasync.errors import DataError, StorageError
from schemasync.io.parquet.arrow import ArrowFiles

KEYS = (("id", Primitive.BIGINT),)
DECLARED = (("id", Primitive.BIGINT), ("at", Primitive.BIGINT), ("born", Primitive.DATE))


def footer(directory: Path, born: pa.DataType, *, keys: Sequence[tuple[str, Type]] = KEYS) -> WrittenFooter:
    days = pa.array([7, 2**31 - 1], pa.int32()).cast(born)
    columns = {"id": pa.array([3, 9], pa.int64()), "at": pa.array([1, 5], pa.int64()), "born": days}
    pq.write_table(pa.table(columns), directory / "x.parquet")
    files = ArrowFiles(fs.LocalFileSystem(), str(directory))
    return checked_footer(files, "x.parquet", DECLARED, ordering="at", keys=keys)


def of(*told: tuple[int, int] | None, rows: int = 1) -> list[WrittenFooter]:
    return [WrittenFooter(rows=rows, columns=("id",), leaves=(), extents={"id": one}) for one in told]


def test_a_footer_tells_rows_columns_and_how_far_they_go(tmp_path: Path) -> None:
    found = footer(tmp_path, pa.date32())
    assert (found.rows, found.columns, found.extents) == (2, ("id", "at", "born"), {"at": (1, 5), "id": (3, 9)})


def test_a_file_that_spark_would_misread_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"x\.parquet: a file that was written would not be read.*born"):
        footer(tmp_path, pa.int32())


def test_a_file_with_other_columns_is_not_published(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([3], pa.int64())}), tmp_path / "x.parquet")
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(DataError, match=r"x\.parquet: a file that was written has other columns"):
        checked_footer(files, "x.parquet", DECLARED, ordering="id", keys=KEYS)


def test_no_key_is_asked_for_but_a_whole_number(tmp_path: Path) -> None:
    """Arrow raises where a date's statistics are beyond Python's years."""
    assert footer(tmp_path, pa.date32(), keys=(("born", Primitive.DATE),)).extents == {"at": (1, 5)}


def test_a_file_that_cannot_be_read_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(StorageError, match=r"x\.parquet: a written file does not read back"):
        checked_footer(files, "x.parquet", DECLARED, ordering="at", keys=KEYS)


def test_files_without_a_row_say_nothing_of_the_others() -> None:
    assert extents([*of((3, 9)), *of(None, rows=0)], "id") == ((3, 9),)


def test_one_file_that_does_not_tell_makes_all_unknown() -> None:
    found = extents(of((3, 9), None), "id")
    assert (found, moments(found), key_range(of((3, 9), None), KEYS)) == (None, (None, None), None)


def test_the_range_of_several_files_is_that_of_all_their_rows() -> None:
    assert key_range(of((3, 9), (1, 4)), KEYS) == (1, 9)
    assert moments(extents(of((3, 9), (1, 4)), "id")) == (1, 9)
    assert (key_range([], KEYS), moments(())) == (None, (NEVER, NEVER))


@pytest.mark.parametrize("keys", [(), (("id", Primitive.STRING),), (*KEYS, ("of", Primitive.BIGINT))])
def test_keys_that_are_not_one_whole_number_have_no_range(keys: tuple[tuple[str, Type], ...]) -> None:
    assert key_range(of((3, 9)), keys) is None


def delta(directory: Path, *files: list[int | None], **said: Any) -> Segment:
    """Write a delta of keys."""
    written = []
    for number, keys in enumerate(files):
        pq.write_table(pa.table({"id": pa.array(keys, pa.int64())}), directory / f"{number}.parquet")
        written.append(DataFile(path=f"{number}.parquet", rows=len(keys), bytes=1))
    known = [key for keys in files for key in keys if key is not None]
    told: dict[str, Any] = {"rows": sum(map(len, files)), "ahead": True, "key_range": (min(known), max(known))}
    return Segment(
        name="delta_00000001",
        kind=SegmentKind.DELTA,
        location="",
        files=tuple(written),
        bytes=2,
        schema_version=1,
        columns=("id",),
        **told | said,
    )


def test_keys_of_changes_are_those_of_all_files(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    assert changed_keys(files, delta(tmp_path, [9, 3], [7]), KEYS, beside=[], only_spark=True) == ChangedKeys(
        listed=(3, 7, 9)
    )


def test_keys_that_a_view_need_not_or_cannot_name_are_not_read(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path / "not there"))
    for said in ({"ahead": False}, {"key_range": None}, {"rows": LISTED + 1, "key_range": (0, 2**40)}):
        assert changed_keys(files, delta(tmp_path, [3], **said), KEYS, beside=[], only_spark=True) is None
    with pytest.raises(StorageError, match=r"0\.parquet: a written file does not read back"):
        changed_keys(files, delta(tmp_path, [3]), KEYS, beside=[], only_spark=True)


def test_keys_that_turn_out_to_take_too_long_a_text_are_not_named(tmp_path: Path) -> None:
    """Every word has a bit and many digits."""
    files, close = ArrowFiles(fs.LocalFileSystem(), str(tmp_path)), range(63, 64 * 10_000, 64)
    assert changed_keys(files, delta(tmp_path, list(close)), KEYS, beside=[], only_spark=True) is None
    few = changed_keys(files, delta(tmp_path, list(close[: LISTED + 1])), KEYS, beside=[], only_spark=True)
    assert few is not None
    assert (few.listed, few.low, few.high) == ((), 0, 64 * (LISTED + 1) - 1)


def test_keys_are_named_only_beside_deltas_whose_keys_are(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    named, unknown, none = (
        delta(tmp_path, [1]).model_copy(update=said)
        for said in ({"changed": ChangedKeys(words="7" * (MOST_TEXT - 3))}, {}, {"rows": 0})
    )
    found = [
        changed_keys(files, delta(tmp_path, [key]), KEYS, beside=beside, only_spark=True)
        for key, beside in ((3, [named, none]), (33, [named]), (3, [unknown]))
    ]
    assert found == [ChangedKeys(listed=(3,)), None, None]


def test_keys_are_only_listed_where_others_than_spark_read_the_view(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    found = [
        changed_keys(files, delta(tmp_path, list(range(count))), KEYS, beside=[], only_spark=False) is not None
        for count in (LISTED, LISTED + 1)
    ]
    assert found == [True, False]


def test_a_row_without_a_key_has_none_that_a_view_can_name(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    assert changed_keys(files, delta(tmp_path, [3, None]), KEYS, beside=[], only_spark=True) is None
