"""Merging shards with Arrow = a plain Python fold, whatever the files, their parts and the range."""

from __future__ import annotations

import resource
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from schemasync.core.admission import UnsentRule
from schemasync.core.compaction import FoldCounts
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile, SegmentKind
from schemasync.core.merging import MergeRequest, ShardMerge, SortedFile, StoredColumn
from schemasync.core.projection import Carried, Fill
from schemasync.core.reshape import Convert, Elements, Keep
from schemasync.core.sharding import KeyRange
from schemasync.core.types import Array, Primitive, Type
from schemasync.errors import DataError, StorageError
from schemasync.io.parquet import shard_writer, sorted_rows
from schemasync.io.parquet.merge import merge_shard
from schemasync.io.parquet.shards import ArrowShards
from schemasync.io.parquet.sorted_rows import Stored
from schemasync.io.parquet.values import arrow_type

P = Primitive
Row = dict[str, Any]
KEYS: tuple[tuple[str, Type], ...] = (("a", P.INT), ("b", P.STRING))
COLUMNS: tuple[tuple[str, Type], ...] = (
    *KEYS,
    ("v", P.BIGINT),
    ("t", P.STRING),
    ("__op", P.STRING),
    ("__seq1", P.BIGINT),
    ("__admitted_ms", P.BIGINT),
    ("__schema_version", P.INT),
    ("__tombstone", P.BOOLEAN),
)
PURGE_BEFORE = 100
UNSENT = UnsentRule(placeholders=("?", "!"), carry=True, columns=(("t", P.STRING),))
"""What stood for a value changed once."""
YOUNGER = replace(UNSENT, younger=frozenset({"t"}))
EVERYWHERE = KeyRange()


def stored(version: int) -> tuple[StoredColumn, ...]:
    """Return how rows are read: version 1 had ``v`` as an int in another column, both get the newest version."""
    old_v = Carried(name="v_old", shape=Convert(stored=P.INT, target=P.BIGINT))
    sources = {name: Carried(name=name, shape=Keep(target=type_)) for name, type_ in COLUMNS}
    given: dict[str, Any] = sources | {"__schema_version": Fill(value=2)}
    given |= {"v": old_v} if version == 1 else {}
    return tuple(StoredColumn(name=name, type=type_, source=given[name]) for name, type_ in COLUMNS)


def key(row: Row) -> tuple[int, str]:
    return row["a"], row["b"]


def merging(
    shards: Sequence[ShardMerge], kind: SegmentKind = SegmentKind.BASE, unsent: UnsentRule | None = None
) -> MergeRequest:
    return MergeRequest(
        kind=kind,
        shards=tuple(shards),
        columns=COLUMNS,
        keys=KEYS,
        ordering=("__seq1", "__admitted_ms"),
        stored={1: stored(1), 2: stored(2)},
        purge_before_ms=PURGE_BEFORE,
        unsent=unsent,
        memory=4000,
    )


class Files:
    """Files of a table on a scratch disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._numbers = count()

    def write(self, rows: Sequence[Row], version: int = 2, *, group: int = 3) -> str:
        columns = [("v_old" if name == "v" and version == 1 else name, type_) for name, type_ in COLUMNS]
        narrow = {"v_old": pa.int32()}
        schema = pa.schema([pa.field(name, narrow.get(name, arrow_type(type_))) for name, type_ in columns])
        renamed = [
            {("v_old" if n == "v" and version == 1 else n): v for n, v in row.items()}
            | {"__tombstone": True if row["__op"] == "d" else None}
            for row in rows
        ]
        path = f"file-{next(self._numbers)}.parquet"
        pq.write_table(pa.Table.from_pylist(renamed, schema=schema), self.root / path, row_group_size=group)
        return path

    def merge(
        self,
        files: Sequence[SortedFile],
        keys: KeyRange = EVERYWHERE,
        unsent: UnsentRule | None = None,
        *,
        alone: bool = False,
        kind: SegmentKind = SegmentKind.BASE,
    ) -> tuple[list[Row], FoldCounts]:
        directory = f"out-{next(self._numbers)}"
        shard = ShardMerge(shard="base_s00000000", directory=directory, keys=keys, files=tuple(files), bytes=0)
        request = merging([shard], kind, unsent)
        merged = merge_shard(fs.LocalFileSystem(), str(self.root), request, shard, directory, alone=alone)
        written = sorted((self.root / directory).iterdir())
        return [row for path in written for row in pq.read_table(path).to_pylist()], merged.counts


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def of(row: Row, **changes: Any) -> Row:
    return (
        {"a": 1, "b": "x", "v": 0, "t": "t", "__op": "u", "__seq1": 1, "__admitted_ms": 500, "__schema_version": 2}
        | row
        | changes
    )


def expected(
    base: Sequence[Row], deltas: Sequence[Sequence[Row]], keys: KeyRange, unsent: UnsentRule | None = None
) -> Any:
    """Return rows and counts by a plain fold."""
    rows: list[Row] = []
    counts: dict[str, Any] = dict.fromkeys(("keys", "inserted", "updated", "deleted", "purged"), 0)
    everything = [(0, row) for row in base] + [(n, row) for n, rows in enumerate(deltas, 1) for row in rows]
    for found in sorted({key(row) for _, row in everything}):
        if (keys.low is not None and found < keys.low) or (keys.high is not None and found >= keys.high):
            continue
        of_key = [(rank, row) for rank, row in everything if key(row) == found]
        of_key.sort(key=lambda pair: (newness(pair[1]), -pair[0]), reverse=True)
        rank, row = of_key[0]
        saying = next((older for _, older in of_key if not asks(older)), None)
        known = saying is not None and (unsent != YOUNGER or saying["__op"] == "d" or saying["t"] is not None)
        if unsent and asks(row) and saying is not None and known:
            row = row | {"t": None if saying["__op"] == "d" else saying["t"]}
        was = any(rank == 0 and row["__op"] != "d" for rank, row in of_key)
        changed = any(rank for rank, _ in of_key)
        is_old_tombstone = row["__op"] == "d" and row["__admitted_ms"] < PURGE_BEFORE
        if is_old_tombstone and not changed:
            counts["purged"] += 1
            continue
        alive = row["__op"] != "d"
        counts["keys"] += changed
        counts["inserted"] += alive and not was
        counts["updated"] += alive and was and rank > 0
        counts["deleted"] += not alive and was
        rows.append(row | {"__schema_version": 2, "__tombstone": None if alive else True})
    alive = sum(row["__op"] != "d" for row in rows)
    left = ("t",) if unsent and any(map(asks, rows)) else ()
    return rows, FoldCounts(written=len(rows), rows=alive, unsent=left, **counts)


def asks(row: Row) -> bool:
    return row["__op"] == "u" and row["t"] in UNSENT.placeholders


def newness(row: Row) -> tuple[bool, int, int]:
    return row["__seq1"] is not None, row["__seq1"] or 0, row["__admitted_ms"]


PLACES = st.tuples(st.integers(0, 4), st.sampled_from(["", "x", "y", "é", "\U0001f600"]))


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    """Draw rows sorted by key, one per key."""
    places = draw(st.lists(PLACES, unique=True, max_size=12))
    return [
        of(
            {"a": a, "b": b},
            v=draw(st.integers(0, 99)),
            t=draw(st.sampled_from(["s", "t", "?", "!", None])),
            __op=draw(st.sampled_from("cud")),
            __seq1=draw(st.sampled_from([None, 1, 2, 3])),
            __admitted_ms=draw(st.sampled_from([1, 99, 100, 500])),
        )
        for a, b in sorted(places)
    ]


@given(
    base=some_rows(),
    cut=st.integers(0, 12),
    deltas=st.lists(some_rows(), max_size=3),
    ends=st.lists(PLACES, max_size=2, unique=True).map(sorted),
    version=st.sampled_from([1, 2]),
    unsent=st.sampled_from([None, UNSENT, YOUNGER]),
    alone=st.booleans(),
)
def test_a_merged_shard_is_the_fold_of_its_files(
    base: list[Row],
    cut: int,
    deltas: list[list[Row]],
    ends: list[Key],
    version: int,
    unsent: UnsentRule | None,
    *,
    alone: bool,
) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        patch.object(sorted_rows, "_BATCH_ROWS", 2),
        patch.object(sorted_rows, "PART_ROWS", 3),
    ):
        files = Files(Path(directory))
        keys = KeyRange(low=ends[0] if ends else None, high=ends[1] if len(ends) == 2 else None)
        # A base that Spark's SQL wrote has several files, each sorted for itself.
        parts = [base[:cut:2] + base[cut:], base[1:cut:2]]
        sources = [
            SortedFile(path=files.write(sorted(part, key=key), version), version=version, rank=0) for part in parts
        ]
        sources += [SortedFile(path=files.write(rows), version=2, rank=n) for n, rows in enumerate(deltas, 1)]
        merged = files.merge(sources, keys, unsent, alone=alone)
        assert merged == expected(base, deltas, keys, unsent)


@pytest.mark.parametrize(
    ("unsent", "op", "shown"),
    [(YOUNGER, "c", "?"), (YOUNGER, "u", "?"), (YOUNGER, "d", None), (UNSENT, "c", None), (UNSENT, "u", None)],
)
def test_a_null_of_a_younger_column_answers_no_placeholder_but_where_it_is_a_delete(
    files: Files, unsent: UnsentRule, op: str, shown: str | None
) -> None:
    base, asking = of({"__op": op, "t": None}), of({"t": "?", "__seq1": 3})
    sources = [SortedFile(path=files.write([row]), version=2, rank=rank) for rank, row in enumerate((base, asking))]
    (row,), counts = files.merge(sources, unsent=unsent)
    assert (row["t"], counts.unsent) == (shown, () if shown is None else ("t",))


def test_files_that_are_not_sorted_are_refused(files: Files) -> None:
    wrong = [of({"a": 2}), of({"a": 1})]
    with pytest.raises(DataError, match="not sorted by key"):
        files.merge([SortedFile(path=files.write(wrong), version=2, rank=0)])


def test_a_key_that_the_base_has_twice_is_refused(files: Files) -> None:
    twice = [SortedFile(path=files.write([of({"a": 2})]), version=2, rank=0) for _ in range(2)]
    with pytest.raises(DataError, match="gave keys out of order"):
        files.merge(twice)


def test_where_no_row_is_left_no_file_is_written(files: Files) -> None:
    gone = files.write([of({}, __op="d", __admitted_ms=1)])
    assert files.merge([SortedFile(path=gone, version=2, rank=0)]) == ([], FoldCounts(purged=1))


def test_a_directory_that_cannot_be_made_is_an_error_of_ours(files: Files) -> None:
    path = files.write([of({})])
    (files.root / "out-1").write_text("in the way")
    with pytest.raises(StorageError, match="a file of the table cannot be written"):
        files.merge([SortedFile(path=path, version=2, rank=0)])


@given(
    rows=some_rows(),
    bounds=st.lists(PLACES, max_size=4, unique=True).map(sorted),
    pieces=st.integers(2, 5),
)
def test_rows_are_counted_in_their_ranges_and_cuts_lie_between_them(
    rows: list[Row], bounds: list[Key], pieces: int
) -> None:
    with tempfile.TemporaryDirectory() as directory, patch.object(sorted_rows, "PART_ROWS", 3):
        path = Files(Path(directory)).write(rows)
        job = ArrowShards(fs.LocalFileSystem(), directory)
        file = DataFile(path=path, rows=len(rows), bytes=1)
        ends = [(-1, ""), *bounds, (99, "")]
        keys = [key(row) for row in rows]
        counts = {n: sum(low <= k < high for k in keys) for n, (low, high) in enumerate(pairwise(ends))}
        expected = {place: count for place, count in counts.items() if count}
        assert job.spread([file], ["a", "b"], bounds) == {path: expected}
        inside = [k for k in keys if ends[1] <= k] if bounds else keys
        cuts = job.cuts([file], ["a", "b"], KeyRange(low=bounds[0] if bounds else None), pieces)
        assert list(cuts) == sorted(set(cuts))
        assert set(cuts) <= set(inside[1:])
        assert len(cuts) == min(pieces, len(inside)) - 1 if inside else not cuts


def test_keys_that_are_times_in_int96_are_those_of_other_files(tmp_path: Path) -> None:
    """Arrow makes nanoseconds of them, which end in the year 2262: Spark writes them where it is told to."""
    days = [datetime(y, 1, 1, tzinfo=UTC) for y in (1, 2000, 2001, 9999)]
    table = pa.table({"a": pa.array(days, pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "new.parquet")
    pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    job = ArrowShards(fs.LocalFileSystem(), str(tmp_path))
    files = [DataFile(path=f"{name}.parquet", rows=4, bytes=1) for name in ("new", "old")]
    cuts = [job.cuts([file], ["a"], EVERYWHERE, 2) for file in files]
    assert cuts[0] == cuts[1] != ()
    new, old = job.spread(files, ["a"], cuts[0]).values()
    assert new == old == {0: 2, 1: 2}


def test_of_a_remembered_delete_only_the_key_must_fit(tmp_path: Path) -> None:
    """One of a flat event repeats the whole row."""
    path = str(tmp_path / "old.parquet")
    rows = {"a": ["0", "1", "2"], "v": ["7", "x", "8"], "tags": [["5"], ["6", "x"], []], "__op": ["u", "d", "u"]}
    pq.write_table(pa.table(rows), path)
    shape = Convert(stored=P.STRING, target=P.INT)
    columns = [StoredColumn(name=n, type=P.INT, source=Carried(name=n, shape=shape)) for n in ("a", "v")]
    listed = Elements(element=shape, target=Array(element=P.INT))
    columns.append(StoredColumn(name="tags", type=listed.target, source=Carried(name="tags", shape=listed)))
    kept = StoredColumn(name="__op", type=P.STRING, source=Carried(name="__op", shape=Keep(target=P.STRING)))
    whole = Stored(
        fs.LocalFileSystem(), path, [*columns, kept], keys=["a"], within=EVERYWHERE, part_bytes=1, threads=False
    )
    assert [row for batch in whole.batches() for row in batch.to_pylist()] == [
        {"a": 0, "v": 7, "tags": [5], "__op": "u"},
        {"a": 1, "v": None, "tags": None, "__op": "d"},
        {"a": 2, "v": 8, "tags": [], "__op": "u"},
    ]


def test_row_groups_outside_of_the_shard_are_not_read(files: Files) -> None:
    rows = [of({"a": a, "b": "x"}) for a in range(10)]
    source = SortedFile(path=files.write(rows, group=2), version=2, rank=0)
    read, original = [], pq.ParquetFile.iter_batches

    def watched(*args: Any, **options: Any) -> Any:
        read.append(options["row_groups"])
        return original(*args, **options)

    with patch.object(pq.ParquetFile, "iter_batches", watched):
        merged, _ = files.merge([source], KeyRange(low=(3, "y"), high=(6, "x")))
    assert (read, [row["a"] for row in merged]) == ([[1, 2, 3]], [4, 5])


@pytest.mark.parametrize(("kind", "largest"), [(SegmentKind.BASE, 4), (SegmentKind.DELTA, 2)])
def test_row_groups_of_a_merged_delta_are_as_small_as_those_of_an_admitted_one(
    files: Files, kind: SegmentKind, largest: int
) -> None:
    source = SortedFile(path=files.write([of({"a": a}) for a in range(9)]), version=2, rank=0)
    with patch.object(shard_writer, "_GROUP_ROWS", {SegmentKind.BASE: 4, SegmentKind.DELTA: 2}):
        files.merge([source], kind=kind)
    (written,) = files.root.glob("out-*/*.parquet")
    metadata = pq.read_metadata(written)
    assert max(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)) == largest


@pytest.fixture
def few_files_open() -> Iterator[None]:
    """Let this process have 100 files open, as some systems let it have 1,024, until it says that it wants more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def of_many_files(files: Files) -> list[SortedFile]:
    """Return files that are read side by side to their ends, as those of a shard with many user partitions are."""
    rows = [[of({"a": 200 * n + number}) for n in range(3)] for number in range(200)]
    return [SortedFile(path=files.write(some, group=1), version=2, rank=0) for some in rows]


@pytest.mark.usefixtures("few_files_open")
def test_a_shard_of_more_files_than_a_process_may_have_open_by_itself_is_merged(files: Files) -> None:
    assert [row["a"] for row in files.merge(of_many_files(files))[0]] == list(range(600))


@pytest.mark.usefixtures("few_files_open")
def test_where_no_more_files_may_be_open_the_error_says_so(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "allow_open_files", lambda: None)
    shard = ShardMerge(
        shard="base_s00000000", directory="out", keys=EVERYWHERE, files=tuple(of_many_files(files)), bytes=0
    )
    with pytest.raises(DataError, match="Too many open files") as caught:
        ArrowShards(fs.LocalFileSystem(), str(files.root)).merge(merging([shard]))
    assert "ulimit -n" in caught.value.fix


@pytest.mark.parametrize(("shards", "alone"), [(1, True), (2, False)])
def test_one_shard_has_all_cores_and_several_share_them(files: Files, shards: int, alone: bool) -> None:
    source = SortedFile(path=files.write([of({})]), version=2, rank=0)
    request = merging(
        [
            ShardMerge(shard=f"base_s0000000{n}", directory=f"out-{n}", keys=EVERYWHERE, files=(source,), bytes=0)
            for n in range(shards)
        ]
    )
    read, original = [], pq.ParquetFile.iter_batches

    def watched(*args: Any, **options: Any) -> Any:
        read.append((threading.current_thread().name.startswith("ahead"), options["use_threads"]))
        return original(*args, **options)

    with patch.object(pq.ParquetFile, "iter_batches", watched):
        ArrowShards(fs.LocalFileSystem(), str(files.root)).merge(request)
    assert read == [(alone, alone)] * shards
