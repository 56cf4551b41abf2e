"""Files that were just written are looked at before anyone publishes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs, orc

from schemasync.app import reading_back
from schemasync.app.reading_back import changed_keys, checked_footer, extents, key_range, moments
from schemasync.core.admission import WrittenFooter
from schemasync.core.changed_keys import LISTED, LISTED_FOR_SPARK, MOST_ASIDE, MOST_HASHED, MOST_TEXT, ChangedKeys
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile, Segment, SegmentKind
from schemasync.core.moments import NEVER, Moment, Newest
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive, Type
from schemasync.errors import DataError, StorageError
from schemasync.io.parquet.arrow import ArrowFiles
from tests.core.builders import target
from tests.naming import NAMED, hashed_words_of, in_text, naming, words_of

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


def test_a_file_whose_numbers_are_packed_is_not_published(tmp_path: Path) -> None:
    columns = {"id": pa.array([3, 9], pa.int64()), "at": pa.array([1, 5], pa.int64())}
    packed = {"use_dictionary": False, "column_encoding": {"at": "DELTA_BINARY_PACKED"}}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", **packed)
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(StorageError, match="at is stored as INT64 DELTA_BINARY_PACKED and declared as bigint"):
        checked_footer(files, "x.parquet", DECLARED[:2], ordering="at", keys=KEYS)


@pytest.mark.parametrize("keys", [KEYS, (("born", Primitive.DATE), *KEYS)])
def test_a_file_with_other_columns_is_not_published(tmp_path: Path, keys: tuple[tuple[str, Type], ...]) -> None:
    pq.write_table(pa.table({"id": pa.array([3], pa.int64())}), tmp_path / "x.parquet")
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(DataError, match=r"x\.parquet: a file that was written has other columns"):
        checked_footer(files, "x.parquet", DECLARED, ordering="id", keys=keys)


def test_a_key_that_is_no_whole_number_is_read_from_the_first_and_the_last_row(tmp_path: Path) -> None:
    """Arrow raises where a date's statistics are beyond Python's years."""
    keys = (("born", Primitive.DATE), ("id", Primitive.BIGINT))
    found = footer(tmp_path, pa.date32(), keys=keys)
    assert (found.extents, found.ends) == ({"at": (1, 5)}, ((7, 3), (2**31 - 1, 9)))
    assert key_range([found], keys) == (("7", "3"), (str(2**31 - 1), "9"))
    assert footer(tmp_path, pa.date32()).ends is None
    # Its files are in no order.
    assert footer(tmp_path, pa.date32(), keys=(("born", Primitive.DOUBLE), *KEYS)).ends is None


@pytest.mark.parametrize(("at", "ends"), [(0, (None, (9,))), (1, ((3,), (9,))), (4, ((3,), None))])
def test_a_key_without_a_value_is_none(tmp_path: Path, at: int, ends: tuple[Key | None, Key | None]) -> None:
    values: list[int | None] = [3, 4, 5, 9]
    values.insert(at, None)
    pq.write_table(pa.table({"id": pa.array(values, pa.int64())}), tmp_path / "x.parquet", row_group_size=2)
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    assert files.written("x.parquet", (), keys=["id"]).ends == ends


def test_a_file_without_a_row_has_no_ends(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "x.parquet")
    assert ArrowFiles(fs.LocalFileSystem(), str(tmp_path)).written("x.parquet", (), keys=["id"]).ends is None


def test_a_file_that_cannot_be_read_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(StorageError, match=r"x\.parquet: a written file does not read back"):
        checked_footer(files, "x.parquet", DECLARED, ordering="at", keys=KEYS)


def test_files_without_a_row_say_nothing_of_the_others() -> None:
    assert extents([*of((3, 9)), *of(None, rows=0)], "id") == ((3, 9),)


def test_one_file_that_does_not_tell_makes_all_unknown() -> None:
    found = extents(of((3, 9), None), "id")
    assert (found, key_range(of((3, 9), None), KEYS)) == (None, None)


def test_the_range_of_several_files_is_that_of_all_their_rows() -> None:
    assert key_range(of((3, 9), (1, 4)), KEYS) == (1, 9)
    assert key_range([], KEYS) is None


def ordered(first: tuple[Moment, Moment] | None, newest: Newest | None = None, *, rows: int = 1) -> WrittenFooter:
    return WrittenFooter(rows=rows, columns=("__seq1",), leaves=(), extents={"__seq1": first}, newest=newest)


def by(type_: Primitive, *, second: bool = True) -> Envelope:
    fields = [OrderingField(path=("a",), type=type_), *[OrderingField(path=("b",), type=Primitive.INT)] * second]
    return Envelope(kind=EnvelopeKind.PLAIN, ordering=tuple(fields))


def said(oldest: Moment, newest: Moment, then: Moment | None = None) -> dict[str, Any]:
    return {"oldest": oldest, "newest": newest, "newest_then": then}


def test_a_segment_is_as_old_and_as_new_as_its_files() -> None:
    text, number = by(Primitive.STRING), by(Primitive.BIGINT)
    assert moments([ordered((3, 9)), ordered((1, 4)), ordered(None, rows=0)], number) == said(1, 9)
    assert moments([ordered(("b", "c"), Newest("c", 5)), ordered(("", "b"))], text) == said("", "c", 5)
    assert moments([ordered(("b", "c"), Newest("c", 5)), ordered(("a", "c"))], text) == said("a", "c")
    # A footer that says another thing than its statistics is not believed.
    assert moments([ordered(("b", "c"), Newest("b", 5))], text) == said("b", "c")
    assert moments([ordered(("b", "c"), Newest("c", 5))], by(Primitive.STRING, second=False)) == said("b", "c", 5)
    assert (moments([], number), moments([], text)) == (said(NEVER, NEVER), said("", ""))
    assert moments([ordered((3, 9)), ordered(None)], number) == {}


def ending(low: Key | None, high: Key | None) -> WrittenFooter:
    return WrittenFooter(rows=1, columns=("a", "b"), leaves=(), extents={}, ends=(low, high))


def test_the_range_of_keys_of_several_columns_is_that_of_all_files() -> None:
    keys = (("a", Primitive.STRING), ("b", Primitive.INT))
    one, other = ending(("a", 10), ("a", 11)), ending(("a", 9), ("a", 9))
    assert key_range([one, other], keys) == (("a", "9"), ("a", "11"))
    nothing = WrittenFooter(rows=0, columns=("a", "b"), leaves=(), extents={})
    assert key_range([nothing, one], keys) == (("a", "10"), ("a", "11"))
    unknown: list[list[WrittenFooter]] = [[], [nothing], [one, ending(None, ("b", 1))], [ending(("a", 1), None), one]]
    assert [key_range(footers, keys) for footers in unknown] == [None] * 4


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
        location="d",
        files=tuple(written),
        bytes=2,
        schema_version=1,
        columns=("id",),
        **told | said,
    )


def changed(directory: Path, segment: Segment, *, beside: Sequence[Segment] = (), **said: Any) -> ChangedKeys | None:
    files = ArrowFiles(fs.LocalFileSystem(), str(directory))
    return changed_keys(files, segment, KEYS, beside=beside, target=target(**{"only_spark": True} | said))


def words_in(directory: Path, keys: ChangedKeys) -> list[int]:
    """Read the words that lie aside."""
    (row,) = orc.read_table(directory / keys.path)["words"].to_pylist()
    assert len(row) == keys.count
    return list(row)


def test_keys_of_changes_are_those_of_all_files(tmp_path: Path) -> None:
    assert changed(tmp_path, delta(tmp_path, [9, 3], [7])) == ChangedKeys(listed=(3, 7, 9))
    with naming("in text"):
        assert changed(tmp_path, delta(tmp_path, [9, 3], [7, 900])) == in_text([3, 7, 9, 900])
    with naming("aside"):
        found = changed(tmp_path, delta(tmp_path, [9, 3], [7, 900]))
    assert found is not None
    assert (found.path, found.low, words_in(tmp_path, found)) == ("d/_keys/words.orc", *words_of([3, 7, 9, 900]))


def test_keys_that_a_view_need_not_or_cannot_name_are_not_read(tmp_path: Path) -> None:
    gone = tmp_path / "not there"
    many = {"rows": LISTED_FOR_SPARK + 1}
    for said in ({"ahead": False}, {"rows": 0}, many | {"key_range": None}, many | {"key_range": (0, 2**40)}):
        assert changed(gone, delta(tmp_path, [3], **said)) is None
    for columns in ((("id", Primitive.BINARY),), (*KEYS, ("of", Primitive.STRING)), ()):
        files = ArrowFiles(fs.LocalFileSystem(), str(gone))
        assert changed_keys(files, delta(tmp_path, [3]), columns, beside=[], target=target(only_spark=True)) is None
    for way in NAMED:
        with naming(way), pytest.raises(StorageError, match=r"0\.parquet: a written file does not read back"):
            changed(gone, delta(tmp_path, [3]))


def test_bits_that_turn_out_to_take_too_long_a_text_lie_aside(tmp_path: Path) -> None:
    """Every word has a bit and many digits."""
    close = range(63, 64 * 10_000, 64)
    found = changed(tmp_path, delta(tmp_path, list(close)))
    assert found is not None
    assert (found.path, words_in(tmp_path, found)) == ("d/_keys/words.orc", [-(2**63)] * len(close))
    assert changed(tmp_path, delta(tmp_path, list(close)), location="file:/lake/[a]") is None
    for location in ("file:/lake", "file:/lake/[a]"):
        few = range(LISTED_FOR_SPARK + 1)
        assert changed(tmp_path, delta(tmp_path, list(few)), location=location) == in_text(few)


def test_bits_that_cannot_be_put_aside_are_told(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("no directory")
    with (
        naming("aside"),
        pytest.raises(StorageError, match=r"words\.orc: a file of the table cannot be written"),
    ):
        changed(tmp_path, delta(tmp_path, [3]))


def test_keys_are_named_only_beside_deltas_whose_keys_are(tmp_path: Path) -> None:
    text, aside, unknown, none = (
        delta(tmp_path, [1]).model_copy(update=said)
        for said in (
            {"changed": ChangedKeys(words="7" * (MOST_TEXT - 10))},
            {"changed": ChangedKeys(path="x", count=MOST_ASIDE)},
            {},
            {"rows": 0},
        )
    )
    cases = ((3, [text, none]), (63, [text]), (3, [unknown]), (3, [aside]))
    found = [changed(tmp_path, delta(tmp_path, [key]), beside=beside) for key, beside in cases]
    assert found == [ChangedKeys(listed=(3,)), None, None, ChangedKeys(listed=(3,))]
    with naming("aside"):
        assert changed(tmp_path, delta(tmp_path, [3]), beside=[aside]) is None


def test_a_list_that_does_not_fit_beside_others_is_bits_where_these_do(tmp_path: Path) -> None:
    other = delta(tmp_path, [1]).model_copy(update={"changed": ChangedKeys(words="7" * (MOST_TEXT - 100))})
    keys = list(range(LISTED))
    segment = delta(tmp_path, [*keys])
    assert changed(tmp_path, segment, beside=[other]) == in_text(keys)
    assert changed(tmp_path, segment, beside=[other], only_spark=False) is None


def test_few_keys_are_listed_and_fewer_where_others_than_spark_read_the_view(tmp_path: Path) -> None:
    def is_listed(count: int, *, only_spark: bool) -> bool:
        found = changed(tmp_path, delta(tmp_path, list(range(count))), only_spark=only_spark)
        assert only_spark or found is None or found.listed
        return found is not None and bool(found.listed)

    assert [is_listed(LISTED + more, only_spark=False) for more in (0, 1)] == [True, False]
    assert [is_listed(LISTED_FOR_SPARK + more, only_spark=True) for more in (0, 1)] == [True, False]


@pytest.mark.parametrize("way", NAMED)
def test_a_row_without_a_key_has_none_that_a_view_can_name(tmp_path: Path, way: str) -> None:
    with naming(way):
        assert changed(tmp_path, delta(tmp_path, [3, None])) is None


def of_columns(directory: Path, rows: int) -> Segment:
    """Write a delta of rows whose key has columns of several types."""
    numbers = pa.array(range(rows), pa.int64())
    columns = {"id": numbers.cast(pa.string()), "of": numbers, "raw": pa.array([b"\xff"] * rows, pa.binary())}
    segment = delta(directory, [1]).model_copy(update={"rows": rows, "key_range": None})
    pq.write_table(pa.table(columns), directory / "0.parquet")
    return segment


OF_COLUMNS = (("id", Primitive.STRING), ("of", Primitive.BIGINT), ("raw", Primitive.BINARY), ("size", Primitive.DOUBLE))


def test_many_keys_of_any_kind_are_hashes_where_spark_alone_reads_the_view(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))

    def found(keys: Sequence[tuple[str, Type]], *beside: Segment, most: int = 9, **to: Any) -> ChangedKeys | None:
        segment = of_columns(tmp_path, 10)
        with patch.multiple(reading_back, HASHED_FROM=most, LISTED_FOR_SPARK=0):
            return changed_keys(files, segment, keys, beside=beside, target=target(**{"only_spark": True} | to))

    for count in range(1, 4):
        hashed = found(OF_COLUMNS[:count])
        assert hashed is not None
        assert (hashed.hashed, hashed.path) == (("id", "of", "raw")[:count], "d/_keys/words.orc")
        some = [(str(n), n, b"\xff")[:count] for n in range(10)]
        assert words_in(tmp_path, hashed) == hashed_words_of(some, hashed.count)
    all_of_it = found(OF_COLUMNS)
    assert all_of_it is not None
    assert all_of_it.hashed == ("id", "of", "raw")
    assert [found(OF_COLUMNS[3:]), found(OF_COLUMNS, only_spark=False), found(OF_COLUMNS, most=10)] == [None] * 3
    assert found(OF_COLUMNS, location="file:/lake/[a]") is None
    other, full = (
        delta(tmp_path, [1]).model_copy(update={"changed": ChangedKeys(path="x", count=count, hashed=("id",))})
        for count in (1, MOST_HASHED - 1000)
    )
    assert [found(OF_COLUMNS, beside, most=10) is None for beside in (other, full)] == [False, True]


def test_texts_are_listed_and_never_bits(tmp_path: Path) -> None:
    def found(*keys: str, only_spark: bool = True) -> ChangedKeys | None:
        segment = delta(tmp_path, [1] * len(keys)).model_copy(update={"key_range": None})
        pq.write_table(pa.table({"id": pa.array(keys, pa.string())}), tmp_path / "0.parquet")
        files, column = ArrowFiles(fs.LocalFileSystem(), str(tmp_path)), (("id", Primitive.STRING),)
        return changed_keys(files, segment, column, beside=[], target=target(only_spark=only_spark))

    assert found("b", "a") == found("b", "a", only_spark=False) == ChangedKeys(listed=("a", "b"))
    assert found("b", "é") is None
    for most, only_spark in ((LISTED, False), (LISTED_FOR_SPARK, True)):
        texts = [f"k{n}" for n in range(most + 1)]
        assert [found(*some, only_spark=only_spark) is None for some in (texts[1:], texts)] == [False, True]
    assert [found("k" * size) is None for size in (MOST_TEXT - 9, MOST_TEXT - 8)] == [False, True]
