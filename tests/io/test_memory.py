"""Memory is what the configuration says, however much lands: Arrow's own count, in a process that does nothing else."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest, Admitted, EarlierRows, FoldedShard
from schemasync.core.encoding import Encoding, Leaf
from schemasync.core.keys import Key
from schemasync.core.layout import meta_columns, ordering_columns
from schemasync.core.manifest import DataFile, SegmentKind
from schemasync.core.merging import MergedShard, MergeRequest, ShardMerge, SortedFile, StoredColumn
from schemasync.core.moments import Newest
from schemasync.core.projection import Carried
from schemasync.core.reshape import Keep
from schemasync.core.sharding import KeyRange
from schemasync.core.types import Primitive, Type
from schemasync.io.parquet import shard_writer
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.batches import batches
from schemasync.io.parquet.merge import merge_shard
from schemasync.io.parquet.rows import give_back
from schemasync.io.parquet.shard_writer import ShardWriter
from schemasync.io.parquet.shards import ArrowShards
from tests.io.landing import FLAT, land, request

MEMORY = 8 * 2**20
MOST = MEMORY * 3 // 4
"""What Arrow may have allocated of it: its allocator holds on to some of what was freed."""
ROWS = 72_000
"""Of 500 bytes that cannot be compressed: more than four times the memory."""
GROUP = 20_000
"""Rows of a landed row group."""
ENCODINGS: dict[str, Encoding] = {
    "part": Leaf(type=Primitive.STRING),
    "id": Leaf(type=Primitive.BIGINT),
    "v": Leaf(type=Primitive.STRING),
}
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("part", Primitive.STRING),
    ("id", Primitive.BIGINT),
    ("v", Primitive.STRING),
    *((c.name, c.type) for c in meta_columns(FLAT)),
)


def peak_of(work: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """Do it in a process of its own; return the most bytes that Arrow had allocated, and what came out."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments).result()


def _measured(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[int, Any]:
    done = work(*arguments)
    return pa.default_memory_pool().max_memory(), done


def land_events(root: Path, name: str, ids: Sequence[int], *, ts_ms: int, bytes_each: int = 480) -> str:
    """Write one event of each key, in no order, all in one row group."""
    source = random.Random(ts_ms)  # noqa: S311 - nobody has to guess it
    shuffled = source.sample(ids, len(ids))
    columns = {
        "part": pa.array(["everywhere"] * len(ids)),
        "id": pa.array(shuffled, pa.int64()),
        "v": pa.array([source.randbytes(bytes_each // 2).hex() for _ in ids]),
        "op": pa.array(["u"] * len(ids)),
        "ts_ms": pa.array([ts_ms] * len(ids), pa.int64()),
    }
    return land(root, name, columns, use_dictionary=False, data_page_size=16 * 1024)


def admit(root: Path, wanted: AdmissionRequest) -> Admitted:
    return ArrowFiles(fs.LocalFileSystem(), str(root)).admit(wanted)


def merge(root: Path, wanted: MergeRequest, alone: bool) -> MergedShard:
    (shard,) = wanted.shards
    return merge_shard(fs.LocalFileSystem(), str(root), wanted, shard, shard.directory, alone=alone)


def merging(files: Sequence[DataFile]) -> MergeRequest:
    """Return the merge of files into one shard, the base first."""
    sources = tuple(SortedFile(path=file.path, version=1, rank=n) for n, file in enumerate(files))
    return MergeRequest(
        kind=SegmentKind.BASE,
        shards=(ShardMerge(shard="base_s00000000", directory="out", keys=KeyRange(), files=sources, bytes=0),),
        columns=COLUMNS,
        keys=(("part", Primitive.STRING), ("id", Primitive.BIGINT)),
        ordering=ordering_columns(FLAT),
        stored={
            1: tuple(StoredColumn(name=n, type=t, source=Carried(name=n, shape=Keep(target=t))) for n, t in COLUMNS)
        },
        purge_before_ms=0,
        unsent=None,
        memory=MEMORY,
    )


def cuts(root: Path, files: Sequence[DataFile], keys: Sequence[str], pieces: int) -> tuple[Key, ...]:
    return ArrowShards(fs.LocalFileSystem(), str(root)).cuts(files, keys, KeyRange(), pieces)


def admission(root: Path, names: Sequence[str], directory: str, memory: int, keys: tuple[str, ...]) -> AdmissionRequest:
    return request(root, names, ENCODINGS, directory=directory, keys=keys, memory=memory)


def sorted_file(root: Path, name: str, ids: Sequence[int], *, ts_ms: int, bytes_each: int = 480) -> DataFile:
    """Write a file of ours."""
    landed = land_events(root, f"landed-{name}", ids, ts_ms=ts_ms, bytes_each=bytes_each)
    (file,) = admit(root, admission(root, [landed], f"delta/{name}", MEMORY, ("part", "id"))).files
    return file


def ids_and_times(path: Path) -> list[tuple[int, int]]:
    table = pq.read_table(path, columns=["id", "__seq1"])
    return list(zip(table.column("id").to_pylist(), table.column("__seq1").to_pylist(), strict=True))


@pytest.mark.parametrize("keys", [("id",), ("part", "id"), ()])
def test_an_admission_holds_no_more_than_it_is_given(tmp_path: Path, keys: tuple[str, ...]) -> None:
    half, third = range(ROWS // 2), range(0, ROWS, 3)
    names = [
        land_events(tmp_path, "3.parquet", third, ts_ms=3),
        land_events(tmp_path, "1.parquet", half, ts_ms=1),
        land_events(tmp_path, "2.parquet", third, ts_ms=2),
    ]
    assert sum((tmp_path / name).stat().st_size for name in names) > 4 * MEMORY

    peak, done = peak_of(admit, tmp_path, admission(tmp_path, names, "delta/1", MEMORY, keys))

    newest = sorted((dict.fromkeys(half, 1) | dict.fromkeys(third, 3)).items())
    found = ids_and_times(tmp_path / done.files[0].path)
    assert (found if keys else len(found)) == (newest if keys else len(half) + 2 * len(third))
    assert not list((tmp_path / "_schemasync" / "staging").glob("*"))
    assert peak <= MOST


@pytest.mark.parametrize("alone", [False, True])
def test_a_merge_holds_no_more_than_it_is_given(tmp_path: Path, alone: bool) -> None:
    changes = [range(n, ROWS, 5) for n in range(3)]
    base = sorted_file(tmp_path, "base", range(ROWS), ts_ms=1)
    deltas = [sorted_file(tmp_path, f"delta-{n}", ids, ts_ms=2 + n) for n, ids in enumerate(changes)]
    assert base.bytes > 4 * MEMORY

    peak, _ = peak_of(merge, tmp_path, merging((base, *deltas)), alone)

    (written,) = (tmp_path / "out").iterdir()
    assert ids_and_times(written) == [(n, 2 + n % 5 if n % 5 < 3 else 1) for n in range(ROWS)]
    assert peak <= MOST


def test_footers_are_gone_when_a_shard_is_merged(tmp_path: Path) -> None:
    """The next shard reads them again, and the one after that; each may have megabytes that Python does not see."""
    file = sorted_file(tmp_path, "base", range(100), ts_ms=1)
    wanted = merging((file,))
    gc.collect()
    gc.disable()
    try:
        merge(tmp_path, wanted, alone=True)
        assert not [one for one in gc.get_objects() if isinstance(one, pq.FileMetaData)]
    finally:
        gc.enable()


@pytest.mark.parametrize(("keys", "every"), [(("part", "id"), 400), (("id",), 8_192)])
def test_looking_for_late_events_holds_no_more_than_it_is_given(
    tmp_path: Path, keys: tuple[str, ...], every: int
) -> None:
    """All rows of the base share the first column of the key with every event; or few do, among all that are read."""
    base = sorted_file(tmp_path, "base", range(8 * ROWS), ts_ms=5, bytes_each=2)
    landed = land_events(tmp_path, "late.parquet", range(0, 8 * ROWS, every), ts_ms=4)
    beside = EarlierRows(shards=(FoldedShard(name="base_s00000000", low=None, files=(base,)),), newest=Newest(5))
    wanted = replace(admission(tmp_path, [landed], "delta/1", MEMORY, keys), beside=beside)

    peak, done = peak_of(admit, tmp_path, wanted)

    assert (done.rows, done.ahead) == (0, True)
    assert peak <= MOST


def test_looking_where_to_cut_holds_no_more_the_more_files_there_are(tmp_path: Path) -> None:
    ids = range(ROWS)
    files = [sorted_file(tmp_path, str(n), ids[n::10], ts_ms=1, bytes_each=2) for n in range(10)]

    one, _ = peak_of(cuts, tmp_path, files[:1], ["part", "id"], 2)
    ten, found = peak_of(cuts, tmp_path, files, ["part", "id"], 2)

    assert [abs(key[1] - ROWS // 2) < ROWS // 100 for key in found] == [True]
    assert ten < one * 3 // 2


def nulls() -> dict[str, pa.Array]:
    return {f"n{n}": pa.array([None] * 5_999 + [n], pa.int64()) for n in range(200)}


def texts() -> dict[str, pa.Array]:
    return {"v": pa.array([f"{n % 5}" + "x" * 3_000 for n in range(4_000)])}


def long_texts() -> dict[str, pa.Array]:
    return {"v": pa.array([f"{n % 5}" + "x" * 9_000 for n in range(1_300)])}


def nulls_first() -> dict[str, pa.Array]:
    return {"v": pa.array([None] * GROUP + [f"{n % 5}" + "x" * 3_000 for n in range(4_000)])}


def short_extremes() -> dict[str, pa.Array]:
    return {"v": pa.array(["", "zz", *(f"{n % 40:02}" + "x" * 20_000 for n in range(2_000))])}


def many_of_few() -> dict[str, pa.Array]:
    """All values could be as short as these extremes: in the file they would take as much."""
    return {"v": pa.array(["", "zz", *(f"{n % 40:02}" + "x" * 2_000 for n in range(GROUP - 2))])}


@pytest.mark.parametrize("of", [nulls, texts, long_texts, nulls_first, short_extremes, many_of_few])
def test_what_takes_next_to_nothing_in_a_file_takes_no_more_than_is_given(
    tmp_path: Path, of: Callable[[], dict[str, pa.Array]]
) -> None:
    """Nulls and entries of dictionaries are as wide as others once they are decoded."""
    values = of()
    count = len(next(iter(values.values())))
    rows = {"id": pa.array(range(count)), "op": pa.array(["u"] * count), "ts_ms": pa.array([1] * count)} | values
    names = [land(tmp_path, f"{n}.parquet", rows, row_group_size=GROUP) for n in (1, 2)]
    assert sum((tmp_path / name).stat().st_size for name in names) < MEMORY // 4
    assert sum(column.nbytes for column in rows.values()) > MEMORY
    kind = Primitive.STRING if "v" in values else Primitive.BIGINT
    encodings: dict[str, Encoding] = {n: Leaf(type=kind) for n in values}
    encodings["id"] = Leaf(type=Primitive.BIGINT)

    def asked(name: str) -> AdmissionRequest:
        return request(tmp_path, [name], encodings, directory=f"delta/{name}", keys=("id",), memory=MEMORY)

    peak, done = peak_of(admit, tmp_path, asked(names[0]))
    (other,) = admit(tmp_path, asked(names[1])).files
    assert peak <= MEMORY

    wanted = merging([done.files[0], other])
    columns = asked(names[0]).columns
    stored = tuple(StoredColumn(name=n, type=t, source=Carried(name=n, shape=Keep(target=t))) for n, t in columns)
    wanted = replace(wanted, columns=columns, keys=(("id", Primitive.BIGINT),), stored={1: stored})
    peak, merged = peak_of(merge, tmp_path, wanted, False)
    assert (merged.counts.written, peak <= MEMORY) == (count, True)


def test_a_batch_has_as_many_rows_as_what_the_one_before_it_took_allows(tmp_path: Path) -> None:
    """The first one has few, and none has so many that rows which become wider would be too much."""
    land(tmp_path, "x.parquet", {"v": pa.array([None] * 10_000 + ["x" * 2_000, "", "zz"] * 1_000)})
    with pq.ParquetFile(tmp_path / "x.parquet") as file:
        sizes = batches(file.metadata, share=2**16, most=4_000)
        assert [batch.num_rows for batch in sizes.of(file)][:6] == [128, 2_048, 4_000, 4_000, 1_927, 97]


@pytest.mark.parametrize(
    ("values", "width"),
    [
        (pa.array([b"x" * 100] * 1_000, pa.binary(100)), 100),
        (pa.array([Decimal("1.5")] * 1_000, pa.decimal128(20, 2)), 16),
        (pa.array(["x"] * 999 + ["x" * 300]), 304),
    ],
    ids=["bytes of one length", "decimals", "texts"],
)
def test_values_that_repeat_count_each_time(tmp_path: Path, values: pa.Array, width: int) -> None:
    land(tmp_path, "x.parquet", {"v": values})
    assert batches(pq.read_metadata(tmp_path / "x.parquet"), 10**6, 10**9).most == 10**6 // (width + 1)


@pytest.mark.parametrize(
    ("kept", "passed", "stays"),
    [(4, 1_000, True), (5, 32, True), (5, 33, False), (1_000, 1_000, False)],
    ids=["little", "half of the memory", "more than half", "much"],
)
def test_memory_is_given_back_where_all_that_passed_may_not_stay(
    monkeypatch: pytest.MonkeyPatch, kept: int, passed: int, stays: bool
) -> None:
    given_back: list[str] = []

    class Pool:
        def release_unused(self) -> None:
            given_back.append("all")

    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    left = give_back(kept * 2**20, passed=passed * 2**20, memory=64 * 2**20)
    assert (left, given_back) == ((kept * 2**20, []) if stays else (0, ["all"]))


@pytest.mark.parametrize("said", [None, "7"])
def test_arrow_keeps_pages_for_a_minute_unless_somebody_says_otherwise(said: str | None) -> None:
    others = {name: value for name, value in os.environ.items() if not name.startswith("MIMALLOC")}
    look = "import sys, os, schemasync.io; print(os.environ['MIMALLOC_PURGE_DELAY'], 'pyarrow' in sys.modules)"
    environ = others if said is None else others | {"MIMALLOC_PURGE_DELAY": said}
    told = subprocess.run([sys.executable, "-c", look], env=environ, check=True, capture_output=True, text=True).stdout
    assert told.split() == [said or "60000", "False"]


def test_what_is_written_is_given_back_row_group_by_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def give_all_back(kept: int, *, passed: int, memory: int) -> int:
        assert memory == MEMORY
        asked.append((kept, passed))
        return 0

    monkeypatch.setattr(shard_writer, "give_back", give_all_back)
    rows = pa.table({"id": range(MEMORY // 8 // 8)})
    local, kind = fs.LocalFileSystem(), SegmentKind.DELTA
    with ShardWriter(local, str(tmp_path), "d", rows.schema, MEMORY, kind=kind, keys=["id"], ordering=[]) as writer:
        for _ in range(3):
            writer.write(rows)
    assert asked == [(rows.nbytes, n * rows.nbytes) for n in (1, 2, 3)]
