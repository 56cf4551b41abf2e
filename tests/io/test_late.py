"""Rows of a delta that were there in a newer form are left out, whatever shard, delta and row group that lies in."""

from __future__ import annotations

import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest, EarlierDelta, EarlierRows, FoldedShard
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile
from schemasync.core.moments import NEVER, Moment, Newest, never
from schemasync.core.types import Primitive
from schemasync.io.parquet import late, same_keys
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.looking import looked_at
from schemasync.io.parquet.pages import Pages, write_page_footers

Row = dict[str, Any]


pytestmark = pytest.mark.usefixtures("short_files_are_long")

SCHEMA = pa.schema(
    [("a", pa.string()), ("b", pa.int64()), ("__seq1", pa.int64()), ("__admitted_ms", pa.int64()), ("v", pa.int64())]
)
CLOCKS: dict[str, tuple[list[Moment], pa.DataType]] = {
    "numbers": ([1, 2, 3, 4], pa.int64()),
    "texts": (["", "log.2", "log.3", "log.4"], pa.string()),
    "dates": ([-1, 0, 10, 2**31 - 1], pa.date32()),
    "times": ([-5, 0, 10**15, 2**63 - 1], pa.timestamp("us", "UTC")),
}
"""Values of the first ordering column for 1, 2, ..., as moments, and its type."""
DECLARED = {
    "numbers": Primitive.BIGINT,
    "texts": Primitive.STRING,
    "dates": Primitive.DATE,
    "times": Primitive.TIMESTAMP,
}
PLACES = st.tuples(st.sampled_from(["", "x", "y", "é"]), st.integers(0, 3))


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    """Draw rows sorted by key, one per key; what the first ordering column leaves open the second one decides."""
    places = draw(st.lists(PLACES, unique=True, max_size=10))
    numbers, times = st.sampled_from([None, 1, 2, 3, 4]), st.integers(1, 2)
    return [
        {"a": a, "b": b, "__seq1": draw(numbers), "__admitted_ms": draw(times), "v": n}
        for n, (a, b) in enumerate(sorted(places))
    ]


def key(row: Row) -> Key:
    return row["a"], row["b"]


def newness(row: Row) -> tuple[int, int]:
    return row["__seq1"] or 0, row["__admitted_ms"]


def largest(rows: Iterable[Row], clock: str = "numbers", *, then: bool = False) -> Newest:
    """Return what bounds rows, by the second ordering column, too, where ``then``."""
    moments, type_ = CLOCKS[clock]
    newest, time = max(map(newness, rows), default=(0, NEVER))
    least = never(is_text=type_ == pa.string())
    return Newest(moments[newest - 1] if newest else least, time if then else None)


def table(rows: list[Row], clock: str = "numbers") -> pa.Table:
    """Return rows whose first ordering column has a clock's values in the place of its numbers."""
    found = pa.Table.from_pylist(rows, schema=SCHEMA)
    if clock == "numbers":
        return found
    moments, type_ = CLOCKS[clock]
    stored = pa.array(moments, type_ if type_ == pa.string() else pa.int64())
    values = (stored.cast(pa.int32()) if type_ == pa.date32() else stored).cast(type_)
    place = SCHEMA.get_field_index("__seq1")
    return found.set_column(place, "__seq1", values.take(pc.subtract(found.column(place), 1).combine_chunks()))


def written(
    root: Path, name: str, rows: list[Row], *, group: int = 2, pages: int | None = None, clock: str = "numbers"
) -> DataFile:
    """Write rows; with ``pages`` so many rows are a page, and each page can be read by itself."""
    found = table(rows, clock)
    options: dict[str, Any] = {
        "row_group_size": group,
        "use_dictionary": ["b", "__seq1"] if clock == "texts" else ["b"],
    }
    if pages is None:
        pq.write_table(found, root / name, **options)
    else:
        pq.write_table(found, root / name, write_page_index=True, max_rows_per_page=pages, **options)
        write_page_footers(fs.LocalFileSystem(), str(root / name), ["a", "b", "__seq1", "__admitted_ms"])
    return DataFile(path=name, rows=len(rows), bytes=0)


def request(beside: EarlierRows | None, memory: int = 1000, clock: str = "numbers") -> AdmissionRequest:
    types = (Primitive.STRING, Primitive.BIGINT, DECLARED[clock], Primitive.BIGINT, Primitive.BIGINT)
    return AdmissionRequest(
        files=(),
        directory="out",
        columns=tuple(zip(SCHEMA.names, types, strict=True)),
        keys=("a", "b"),
        ordering=("__seq1", "__admitted_ms"),
        schema_version=1,
        admitted_ms=9,
        memory=memory,
        beside=beside,
    )


def left(
    root: Path, rows: list[Row], beside: EarlierRows | None, memory: int = 1000, clock: str = "numbers"
) -> tuple[list[Row], bool, bool]:
    """Return the rows that are left, and what is known of them."""
    found = late.without_late_rows(fs.LocalFileSystem(), str(root), table(rows, clock), request(beside, memory))
    there = {key(row): row for row in rows}
    kept = [there[key(row)] for row in found.rows.select(["a", "b"]).to_pylist()]
    return kept, found.ahead, found.ahead_of_deltas


def left_of_file(
    root: Path, rows: list[Row], beside: EarlierRows, memory: int, clock: str
) -> tuple[list[Row], bool, bool]:
    """Return the same of rows that are written already."""
    written(root, "new.parquet", rows, clock=clock)
    asked = request(beside, memory, clock)
    found = looked_at(fs.LocalFileSystem(), str(root), "new.parquet", asked, directory="less")
    paths = [root / "new.parquet"] if found.directory is None else [*(root / found.directory).glob("part-*.parquet")]
    stored = [pq.read_table(path) for path in paths]
    assert [t.num_rows for t in stored if t.schema != table(rows, clock).schema] == []
    there = {key(row): row for row in rows}
    kept = [there[key(row)] for t in stored for row in t.select(["a", "b"]).to_pylist()]
    assert [row["v"] for row in kept] == [v for t in stored for v in t.column("v").to_pylist()]
    assert (found.directory is None) == (kept == rows)
    assert found.seen.touches == late.touched(table(kept, clock), request(beside))
    return kept, found.seen.ahead, found.seen.ahead_of_deltas


@given(
    base=some_rows(),
    earlier=st.lists(some_rows(), max_size=2),
    delta=some_rows(),
    bounds=st.lists(PLACES, max_size=2, unique=True),
    reading=st.tuples(
        st.sampled_from([2, 10]),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([1000, 1_000_000]),
        st.sampled_from([1, same_keys._SEARCHED]),
    ),
    ordering=st.tuples(st.sampled_from(sorted(CLOCKS)), st.booleans()),
)
def test_what_is_left_is_newer_than_all_that_is_there(
    base: list[Row],
    earlier: list[list[Row]],
    delta: list[Row],
    bounds: list[Key],
    reading: tuple[int, int | None, int, int],
    ordering: tuple[str, bool],
) -> None:
    group, pages, memory, searched = reading
    clock, then = ordering
    lows: list[Key | None] = [None, *sorted(bounds)]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        shards = [
            FoldedShard(
                name=f"base_s{n}",
                low=low,
                files=(written(root, f"{n}.parquet", inside, group=group, pages=pages, clock=clock),),
            )
            for n, (low, high) in enumerate(zip(lows, [*lows[1:], None], strict=True))
            for inside in [[r for r in base if (low is None or key(r) >= low) and (high is None or key(r) < high)]]
        ]
        there = [*base, *(row for rows in earlier for row in rows)]
        deltas = tuple(
            EarlierDelta(
                files=(written(root, f"delta_{n}.parquet", rows, group=group, pages=pages, clock=clock),),
                newest=largest(rows, clock, then=then),
            )
            for n, rows in enumerate(earlier)
        )
        beside = EarlierRows(shards=tuple(shards), newest=largest(base, clock, then=then), deltas=deltas)
        with patch.multiple(same_keys, _SEARCHED=searched, _AT_ONCE=searched):
            found = left(root, delta, beside, memory, clock)
            assert left_of_file(root, delta, beside, memory, clock) == found
        touches = late.touched(table(delta, clock), request(beside))
    found_there: dict[Key, tuple[int, int]] = {}
    for row in there:
        found_there[key(row)] = max(newness(row), found_there.get(key(row), (0, 0)))
    assert touches == tuple(f"base_s{n}" for n in sorted({bisect_right(sorted(bounds), key(row)) for row in delta}))
    assert found == ([row for row in delta if newness(row) >= found_there.get(key(row), (0, 0))], True, True)


GONE = (DataFile(path="gone", rows=3, bytes=0),)


def gone(*, base: int, delta: int | None = None) -> EarlierRows:
    """Return rows whose files are not there, with these newest values."""
    shard = FoldedShard(name="base_s1", low=None, files=GONE)
    deltas = () if delta is None else (EarlierDelta(files=GONE, newest=Newest(delta)),)
    return EarlierRows(shards=(shard,), newest=Newest(base), deltas=deltas)


@pytest.mark.parametrize("beside", [gone(base=4), gone(base=1, delta=4)], ids=["base", "delta"])
def test_nothing_is_read_for_rows_that_are_newer_than_all_of_it(tmp_path: Path, beside: EarlierRows) -> None:
    rows: list[Row] = [{"a": "x", "b": 1, "__seq1": 5, "__admitted_ms": 2, "v": 1}]
    assert left(tmp_path, rows, beside) == (rows, True, True)
    with pytest.raises(FileNotFoundError):
        left(tmp_path, [rows[0] | {"__seq1": 4}], beside)


def test_the_base_is_not_read_for_rows_that_are_older_than_a_delta_alone(tmp_path: Path) -> None:
    old = written(tmp_path, "delta.parquet", [{"a": "x", "b": 1, "__seq1": 9, "__admitted_ms": 1, "v": 1}])
    shard = FoldedShard(name="base_s1", low=None, files=GONE)
    deltas = (EarlierDelta(files=GONE, newest=Newest(7)), EarlierDelta(files=(old,), newest=Newest(9)))
    beside = EarlierRows(shards=(shard,), newest=Newest(4), deltas=deltas)
    rows: list[Row] = [{"a": "x", "b": n, "__seq1": 8, "__admitted_ms": 2, "v": 1} for n in (1, 2)]
    assert left(tmp_path, rows, beside) == (rows[1:], True, True)


@pytest.mark.parametrize(
    ("news", "clock", "expected"),
    [
        (0, "__admitted_ms", 1),
        (3, "__admitted_ms", 1),
        (4, "__admitted_ms", 0),
        (0, None, 0),
    ],
)
def test_rows_that_the_clock_says_are_newer_are_counted_where_most_of_a_delta_may_be_older(
    tmp_path: Path, news: int, clock: str | None, expected: int
) -> None:
    def row(b: int, number: int, time: int) -> Row:
        return {"a": "x", "b": b, "__seq1": number, "__admitted_ms": time, "v": b}

    base, delta = [row(b, 8, 5) for b in range(4)], [row(1, 9, 4)]
    files = [written(tmp_path, name, rows) for name, rows in (("base", base), ("delta", delta))]
    shard = FoldedShard(name="base_s1", low=None, files=(files[0],))
    beside = EarlierRows(shards=(shard,), newest=Newest(8), deltas=(EarlierDelta(files=(files[1],), newest=Newest(9)),))
    # One is newer by the clock than each of the two, one as new as what there is, and one older.
    rows = [row(1, 3, 6), row(2, 3, 5), row(3, 3, 4), *(row(9 + n, 10, 1) for n in range(news))]
    asked = replace(request(beside), clock=clock)
    found = late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), table(rows), asked)
    assert (found.rows.num_rows, found.contradicted) == (news, expected)


def test_a_row_group_is_not_read_for_rows_that_are_newer_than_all_of_it(tmp_path: Path) -> None:
    there: list[Row] = [{"a": "x", "b": n, "__seq1": n, "__admitted_ms": 1, "v": 1} for n in range(4)]
    file = written(tmp_path, "base.parquet", there)
    footer = pq.read_metadata(tmp_path / "base.parquet")
    with (tmp_path / "base.parquet").open("r+b") as stream:  # the first row group, with the numbers 0 and 1
        stream.seek(4)
        stream.write(b"\xff" * footer.row_group(0).total_byte_size)
    beside = EarlierRows(shards=(FoldedShard(name="base_s1", low=None, files=(file,)),), newest=Newest(3), deltas=())
    rows: list[Row] = [{"a": "x", "b": n, "__seq1": 2, "__admitted_ms": 2, "v": 1} for n in (0, 3)]
    with pytest.raises(OSError, match="page header"):
        left(tmp_path, [rows[0] | {"__seq1": 1}], beside)
    assert left(tmp_path, rows, beside) == (rows[:1], True, True)


def test_only_the_first_ordering_column_is_read_where_it_decides(tmp_path: Path) -> None:
    there: list[Row] = [{"a": "x", "b": n, "__seq1": 3, "__admitted_ms": 1, "v": 1} for n in range(2)]
    file = written(tmp_path, "base.parquet", there)
    others = pq.read_metadata(tmp_path / "base.parquet").row_group(0).column(SCHEMA.get_field_index("__admitted_ms"))
    with (tmp_path / "base.parquet").open("r+b") as stream:
        stream.seek(others.dictionary_page_offset or others.data_page_offset)
        stream.write(b"\xff" * others.total_compressed_size)
    beside = EarlierRows(shards=(FoldedShard(name="base_s1", low=None, files=(file,)),), newest=Newest(5), deltas=())
    rows: list[Row] = [{"a": "x", "b": n, "__seq1": 4 - 2 * n, "__admitted_ms": 2, "v": 1} for n in range(2)]
    assert left(tmp_path, rows, beside) == (rows[:1], True, True)
    with pytest.raises(OSError, match="page header"):
        left(tmp_path, [rows[0] | {"__seq1": 3}], beside)


@pytest.mark.parametrize(("clock", "times"), [("numbers", 2), ("texts", 1), ("dates", 1), ("times", 2)])
def test_what_many_events_share_is_read_together_with_what_decides_then(tmp_path: Path, clock: str, times: int) -> None:
    there: list[Row] = [{"a": "x", "b": n, "__seq1": 3, "__admitted_ms": 2, "v": 1} for n in range(2)]
    file = written(tmp_path, "base.parquet", there, clock=clock)
    shards = (FoldedShard(name="base_s1", low=None, files=(file,)),)
    beside = EarlierRows(shards=shards, newest=largest(there, clock), deltas=())
    rows: list[Row] = [{"a": "x", "b": n, "__seq1": 3, "__admitted_ms": 1 + 2 * n, "v": 1} for n in range(2)]
    with patch.object(late, "sharing", wraps=same_keys.sharing) as read:
        assert left(tmp_path, rows, beside, clock=clock) == (rows[1:], True, True)
    assert len([call for call in read.call_args_list if call.args[1]]) == times


@pytest.mark.parametrize("where", ["base", "delta"])
def test_a_place_in_a_log_need_not_be_utf_8(tmp_path: Path, where: str) -> None:
    place = SCHEMA.get_field_index("__seq1")
    there: list[Row] = [{"a": "x", "b": n, "__seq1": 4, "__admitted_ms": 1, "v": 1} for n in range(2)]
    file = written(tmp_path, "there.parquet", there, clock="texts")
    files: dict[str, tuple[DataFile, ...]] = {"base": (), "delta": (), where: (file,)}
    newest = {name: Newest("log.4" if found else "") for name, found in files.items()}
    shards = (FoldedShard(name="base_s1", low=None, files=files["base"]),)
    deltas = (EarlierDelta(files=files["delta"], newest=newest["delta"]),)
    beside = EarlierRows(shards=shards, newest=newest["base"], deltas=deltas)
    texts = pa.array([b"a\xff", b"z\xff"]).view(pa.string())
    rows = table(there).set_column(place, "__seq1", pa.chunked_array([texts]))
    found = late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), rows, request(beside))
    assert (found.rows.column("b").to_pylist(), found.ahead, found.ahead_of_deltas) == ([1], True, True)


def test_rows_after_the_last_that_may_be_newer_are_not_read(tmp_path: Path) -> None:
    there = pa.table({"a": [f"{n:05}" for n in range(20_000)], "b": [1] * 20_000, "__seq1": [5] * 20_000})
    path = tmp_path / "base.parquet"
    pq.write_table(there, path, use_dictionary=False, data_page_size=1024, write_batch_size=100)
    last = pq.read_metadata(path).row_group(0).column(0)
    with path.open("r+b") as stream:
        stream.seek(last.data_page_offset + last.total_compressed_size - 2000)
        stream.write(b"\xff" * 2000)
    file = DataFile(path="base.parquet", rows=20_000, bytes=0)
    beside = EarlierRows(shards=(FoldedShard(name="base_s1", low=None, files=(file,)),), newest=Newest(5), deltas=())
    rows: list[Row] = [{"a": a, "b": 1, "__seq1": 4, "__admitted_ms": 2, "v": 1} for a in ("00007", "19999")]
    assert left(tmp_path, rows[:1], beside, 1_000_000) == ([], True, True)
    with pytest.raises(OSError, match="Corrupt snappy"):
        left(tmp_path, rows, beside, 1_000_000)


@pytest.mark.parametrize("key", ["text", "number"])
def test_of_a_long_file_the_pages_are_read_that_may_have_the_keys(tmp_path: Path, key: str) -> None:
    numbers = pa.array(range(20_000))
    texts = pc.binary_join_element_wise(pa.scalar("k"), pc.utf8_lpad(numbers.cast(pa.string()), 6, "0"), "")
    there = pa.table({"a": texts if key == "text" else numbers, "__seq1": pa.array([5] * 20_000), "b": numbers})
    path = tmp_path / "base.parquet"
    pq.write_table(there, path, use_dictionary=False, max_rows_per_page=1000, write_page_index=True)
    write_page_footers(fs.LocalFileSystem(), str(path), ["a", "__seq1"])
    spoiled = pq.read_metadata(path).row_group(0).column(0)
    with path.open("r+b") as stream:
        stream.seek(spoiled.data_page_offset)
        stream.write(b"\xff" * (spoiled.total_compressed_size // 2))
    beside = EarlierRows(
        shards=(
            FoldedShard(name="base_s1", low=None, files=(DataFile(path="base.parquet", rows=there.num_rows, bytes=0),)),
        ),
        newest=Newest(5),
        deltas=(),
    )
    asking = replace(request(beside, 1_000_000), keys=("a",), ordering=("__seq1",))
    asked = there.take([12_345, 19_999]).set_column(1, "__seq1", pa.array([4, 6]))
    found = late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), asked, asking)
    assert (found.rows.to_pylist(), found.ahead) == (asked.slice(1).to_pylist(), True)
    first = there.take([0]).set_column(1, "__seq1", pa.array([4]))
    with pytest.raises(OSError, match="page header"):
        late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), first, asking)
    (tmp_path / "_base.parquet.pages").unlink()
    with pytest.raises(OSError, match="page header"):
        late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), asked, asking)


def left_of_ten(
    root: Path, keys: str, dictionary: Sequence[str] = (), *, memory: int = 1_000_000, now: Any = 5, then: Any = 4
) -> int:
    """Return how many rows are left of older ones with these keys; ten are there, each in pages of its own."""
    there = pa.table({"a": [str(n) for n in range(10)], "__seq1": pa.array([now] * 10)})
    path = root / "base.parquet"
    pq.write_table(there, path, use_dictionary=list(dictionary), max_rows_per_page=1, write_page_index=True)
    write_page_footers(fs.LocalFileSystem(), str(path), ["a", "__seq1"])
    file = DataFile(path="base.parquet", rows=10, bytes=0)
    beside = EarlierRows(shards=(FoldedShard(name="base_s1", low=None, files=(file,)),), newest=Newest(now), deltas=())
    asking = replace(request(beside, memory), keys=("a",), ordering=("__seq1",))
    asked = pa.table({"a": list(keys), "__seq1": pa.array([then] * len(keys))})
    left: int = late.without_late_rows(fs.LocalFileSystem(), str(root), asked, asking).rows.num_rows
    return left


@pytest.mark.parametrize(
    ("keys", "dictionary", "by_pages"),
    [("1", [], True), ("1", ["__seq1"], True), ("1", ["a"], False), ("01234", [], True), ("012345", [], False)],
)
def test_pages_are_read_one_by_one_where_they_are_few_and_small(
    tmp_path: Path, keys: str, dictionary: list[str], by_pages: bool
) -> None:
    with patch.object(same_keys, "Pages", wraps=Pages) as pages, patch.object(same_keys, "_SEARCHED", 1):
        assert left_of_ten(tmp_path, keys, dictionary) == 0
    assert pages.called == by_pages


@pytest.mark.parametrize(("memory", "by_pages"), [(1_000_000, True), (1_000, False)])
def test_texts_in_a_dictionary_are_read_whole_where_they_fit_into_memory(
    tmp_path: Path, memory: int, *, by_pages: bool
) -> None:
    with patch.object(same_keys, "Pages", wraps=Pages) as pages, patch.object(same_keys, "_SEARCHED", 1):
        assert left_of_ten(tmp_path, "1", ["__seq1"], memory=memory, now="log.2", then="log.1") == 0
    assert pages.called == by_pages


def test_nobody_asks_for_the_pages_of_many_keys(tmp_path: Path) -> None:
    with patch.object(same_keys, "page_footers", return_value=None) as asked:
        assert left_of_ten(tmp_path, "01") == 0
        assert not asked.called
        assert left_of_ten(tmp_path, "0") == 0
        assert asked.called


@pytest.mark.parametrize("pages", [None, 1], ids=["row groups", "pages"])
def test_what_is_read_is_dealt_to_all_threads_also_where_it_is_alone_in_its_file(
    tmp_path: Path, pages: int | None
) -> None:
    rows = [{"a": str(n), "b": n, "__seq1": 5, "__admitted_ms": 1, "v": n} for n in range(4)]
    more = [{"a": f"{n}a", "b": 0, "__seq1": 5, "__admitted_ms": 1, "v": 0} for n in range(4)]
    files = tuple(
        written(tmp_path, f"{n}.parquet", [row, other], pages=pages)
        for n, (row, other) in enumerate(zip(rows, more, strict=True))
    )
    beside = EarlierRows(
        shards=(FoldedShard(name="base_s00000001", low=None, files=files),), newest=Newest(5), deltas=()
    )
    shares = []

    def counted(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        parts = [list(stream) for stream in streams]
        shares.append([sum(batch.num_rows for batch in part) for part in parts])
        yield from chain.from_iterable(parts)

    with patch.object(same_keys, "side_by_side", counted):
        assert left(tmp_path, [row | {"__seq1": 4} for row in rows], beside)[0] == []
    assert shares[0] == [2, 2]


def test_a_key_may_be_an_int_in_one_file_and_a_bigint_in_another(tmp_path: Path) -> None:
    files = []
    for bits, type_ in ((32, pa.int32()), (64, pa.int64())):
        pq.write_table(pa.table({"a": pa.array([bits], type_), "__seq1": [5]}), tmp_path / f"{bits}.parquet")
        files.append(DataFile(path=f"{bits}.parquet", rows=1, bytes=0))
    beside = EarlierRows(
        shards=(FoldedShard(name="base_s1", low=None, files=tuple(files)),), newest=Newest(5), deltas=()
    )
    asking = replace(request(beside, 1_000_000), keys=("a",), ordering=("__seq1",))
    asked = pa.table({"a": pa.array([1, 32, 64]), "__seq1": pa.array([4] * 3)})
    found = late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), asked, asking)
    assert (found.rows.column("a").to_pylist(), found.ahead) == ([1], True)


@pytest.mark.parametrize("spoiled", ["", "nothing of Arrow's", "no row", "other columns", "no footer"])
def test_page_footers_that_are_spoiled_are_not_needed(tmp_path: Path, spoiled: str) -> None:
    with patch.object(same_keys, "Pages", wraps=Pages) as pages, patch.object(same_keys, "_SEARCHED", 1):
        assert left_of_ten(tmp_path, "1") == 0
        assert pages.called
        beside = tmp_path / "_base.parquet.pages"
        tables = {
            "no row": pa.table({"a": pa.array([], pa.binary()), "__seq1": pa.array([], pa.binary())}),
            "other columns": pa.table({"b": [b""]}),
            "no footer": pa.table({"a": [b"?"], "__seq1": [b"?"]}),
        }
        if spoiled in tables:
            with pa.ipc.new_file(str(beside), tables[spoiled].schema) as writer:
                writer.write_table(tables[spoiled])
        else:
            beside.write_text(spoiled)
        pages.reset_mock()
        with patch("tests.io.test_late.write_page_footers"):
            assert left_of_ten(tmp_path, "1") == 0
        assert not pages.called


def test_nothing_is_known_without_a_base_to_compare_with_or_of_one_that_is_too_large(tmp_path: Path) -> None:
    rows: list[Row] = [{"a": "x", "b": 1, "__seq1": 1, "__admitted_ms": 2, "v": 1}]
    assert left(tmp_path, rows, None) == (rows, False, False)
    assert left(tmp_path, rows, replace(gone(base=0), deltas=None)) == (rows, True, False)
    three = written(tmp_path, "3.parquet", [rows[0] | {"b": n} for n in range(3)], group=3)
    of_base = FoldedShard(name="base_s1", low=None, files=(three,))
    with patch.object(late, "MOST_ROWS", 2):
        assert left(tmp_path, rows, EarlierRows(shards=(of_base,), newest=Newest(4), deltas=())) == (rows, False, True)
        earlier = (EarlierDelta(files=(three,), newest=Newest(4)),)
        assert left(tmp_path, rows, replace(gone(base=0), deltas=earlier)) == (rows, True, False)


def test_too_much_is_what_has_to_be_read_not_what_is_there(tmp_path: Path) -> None:
    there: list[Row] = [{"a": str(n), "b": 1, "__seq1": 5, "__admitted_ms": 1, "v": 1} for n in range(8)]
    beside = [
        EarlierRows(shards=(FoldedShard(name="base_s1", low=None, files=(file,)),), newest=Newest(5), deltas=())
        for file in (
            written(tmp_path, "whole.parquet", there, group=8),
            written(tmp_path, "groups.parquet", there, group=2),
            written(tmp_path, "pages.parquet", there, group=8, pages=1),
        )
    ]
    late_one, new = (there[3] | {"__seq1": time} for time in (4, 6))
    with patch.object(late, "MOST_ROWS", 2):
        assert left(tmp_path, [late_one], beside[0]) == ([late_one], False, True)
        assert left(tmp_path, [late_one], beside[1]) == ([], True, True)
        assert left(tmp_path, [late_one], beside[2]) == ([], True, True)
        with patch.object(late, "MOST_ROWS", 0):
            assert left(tmp_path, [late_one], beside[2]) == ([late_one], False, True)
        # As new as what is there in the first ordering column, so all of them are looked at.
        assert left(tmp_path, [there[3] | {"__admitted_ms": 0}], beside[2]) == ([], True, True)
        assert left(tmp_path, [new], beside[0]) == ([new], True, True)


def test_nobody_goes_on_reading_for_a_comparison_that_failed(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    there = [{"a": "x", "b": n, "__seq1": 4, "__admitted_ms": 1, "v": n} for n in range(9)]
    shard = FoldedShard(name="base_s1", low=None, files=(written(tmp_path, "base", there, group=1),))
    beside = EarlierRows(shards=(shard,), newest=largest(there))
    with patch.object(late, "_compared", side_effect=MemoryError), pytest.raises(MemoryError) as kept:
        late.without_late_rows(fs.LocalFileSystem(), str(tmp_path), table(there), request(beside, memory=1))
    assert (set(threading.enumerate()) - before, kept.tb is not None) == (set(), True)


def test_the_extent_of_a_column_is_what_its_footer_says(tmp_path: Path) -> None:
    columns = {
        "some": pa.array([None, 3, 7], pa.int64()),
        "all": pa.array([2, 3, 7], pa.int64()),
        "none": pa.array([None] * 3, pa.int64()),
        "text": pa.array(["b", "é", "c"]),
        "some texts": pa.array([None, "b", "c"]),
        "no text": pa.array([None] * 3, pa.string()),
        "dates": pa.array([-1, 2**31 - 1, None], pa.int32()).cast(pa.date32()),
        "times": pa.array([-1, 2**63 - 1, 0], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "broken": pa.array([b"\xff", b"b", b"c"]).view(pa.string()),
        "half": pa.array([0.5, 1.5, 2.5]),
    }
    pq.write_table(pa.table(columns), tmp_path / "told.parquet", row_group_size=2)
    pq.write_table(pa.table(columns), tmp_path / "silent.parquet", write_statistics=False)
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    assert files.written("told.parquet", (*columns, "other")).extents == {
        "some": (NEVER, 7),
        "all": (2, 7),
        "none": (NEVER, NEVER),
        "text": ("b", "é"),
        "some texts": ("", "c"),
        "no text": ("", ""),
        "dates": (NEVER, 2**31 - 1),
        "times": (-1, 2**63 - 1),
        "broken": None,
        "half": None,
        "other": None,
    }
    assert files.written("silent.parquet", ("all",)).extents == {"all": None}
