"""What every storage under a table does, whatever holds the files: create-only, all or nothing, errors with paths."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from schemasync.errors import StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.lake.hadoop import open_hadoop


def by_hadoop(session: SparkSession, location: str) -> ArrowLake:
    return ArrowLake(location, filesystem=open_hadoop(session, location))


def paths(lake: ArrowLake, directory: str) -> list[str]:
    return [f.path for f in lake.files(directory)]


class LakeBehaviour:
    """For a fixture ``lake``, which is empty."""

    deletes_empty = True
    """Whether empty directories are deleted where nothing else may be."""

    def test_what_is_created_reads_back(self, lake: ArrowLake) -> None:
        created = lake.create("_schemasync/generations/000001.json", b"{}")
        assert (created, lake.read("_schemasync/generations/000001.json")) == (True, b"{}")

    def test_a_file_that_exists_is_never_overwritten(self, lake: ArrowLake) -> None:
        lake.create("a/x.json", b"first")
        assert (lake.create("a/x.json", b"second"), lake.read("a/x.json")) == (False, b"first")

    def test_creating_leaves_nothing_beside_the_file(self, lake: ArrowLake) -> None:
        for content in (b"first", b"second"):
            lake.create("a/x.json", content)
        assert paths(lake, "") == ["a/x.json"]

    def test_files_are_listed_recursively_and_sorted_with_their_sizes(self, lake: ArrowLake) -> None:
        for path in ("a/h=2/y", "a/h=1/x", "b/z", "a/w"):
            lake.create(path, path.encode())
        assert [(f.path, f.bytes) for f in lake.files("a")] == [("a/h=1/x", 7), ("a/h=2/y", 7), ("a/w", 3)]
        assert [f.path for f in lake.files("a", below=False)] == ["a/w"]

    def test_a_directory_that_is_not_there_has_no_files(self, lake: ArrowLake) -> None:
        assert lake.files("nowhere") == ()

    def test_directories_are_those_right_below_sorted_by_path(self, lake: ArrowLake) -> None:
        for path in ("a/h=2/y", "a/h=1/deep/x", "b/z", "a/w"):
            lake.create(path, b"")
        assert (lake.directories("a"), lake.directories("a/h=2")) == (("a/h=1", "a/h=2"), ())

    def test_a_directory_that_is_not_there_has_no_directories(self, lake: ArrowLake) -> None:
        assert lake.directories("nowhere") == ()

    def test_reading_what_is_not_there_names_the_path(self, lake: ArrowLake) -> None:
        with pytest.raises(StorageError, match=r"_schemasync/gone\.json: cannot read it"):
            lake.read("_schemasync/gone.json")

    def test_deleting_is_idempotent(self, lake: ArrowLake) -> None:
        lake.create("a/x", b"")
        lake.delete("a/x")
        lake.delete("a/x")
        assert paths(lake, "a") == []

    def test_deleting_a_directory_takes_all_that_is_in_it_and_is_idempotent(self, lake: ArrowLake) -> None:
        for path in ("a/b/x", "a/b/c/y", "a/z"):
            lake.create(path, b"")
        lake.delete_directory("a/b")
        lake.delete_directory("a/b")
        assert paths(lake, "") == ["a/z"]

    def test_a_directory_is_not_deleted_as_an_empty_one_where_it_has_something(self, lake: ArrowLake) -> None:
        for path in ("a/x", "b/c/y"):
            lake.create(path, b"")
        for directory in ("a", "b", "nowhere"):
            lake.delete_if_empty(directory)
        assert paths(lake, "") == ["a/x", "b/c/y"]

    def test_a_directory_is_deleted_once_its_last_file_is(self, lake: ArrowLake) -> None:
        for path in ("a/b/x", "a/c/y"):
            lake.create(path, b"")
        lake.delete("a/b/x")
        for _ in range(2):
            lake.delete_if_empty("a/b")
        assert lake.directories("a") == (("a/c",) if self.deletes_empty else ("a/b", "a/c"))

    def test_making_a_directory_again_keeps_its_files(self, lake: ArrowLake) -> None:
        lake.create("a/x", b"")
        lake.make_directory("a")
        assert paths(lake, "a") == ["a/x"]

    def test_a_moved_file_is_whole_at_its_new_place_only(self, lake: ArrowLake) -> None:
        lake.create("incremental/h/x", b"rows")
        lake.move("incremental/h/x", "archive/incremental/h/x")
        assert (paths(lake, ""), lake.read("archive/incremental/h/x")) == (["archive/incremental/h/x"], b"rows")

    def test_moving_again_is_no_error(self, lake: ArrowLake) -> None:
        lake.create("a", b"rows")
        for _ in range(2):
            lake.move("a", "archive/a")
        assert paths(lake, "") == ["archive/a"]

    def test_a_file_that_was_seen_is_deleted_or_moved_while_it_is_that_file(self, lake: ArrowLake) -> None:
        for path in ("a", "b", "c", "d", "e"):
            lake.create(path, b"1")
        a, b, c, d, e = lake.files("")
        for file in (c, d):
            lake.delete(file.path)
            lake.create(file.path, b"another")
        lake.delete(a.path, seen=a)
        lake.move(b.path, "moved/b", seen=b)
        lake.delete(c.path, seen=c)
        lake.move(d.path, "moved/d", seen=d)
        lake.delete(e.path, seen=replace(e, modified_ms=e.modified_ms - 1000))
        lake.move(e.path, "moved/e", seen=replace(e, modified_ms=e.modified_ms + 1000))
        assert paths(lake, "") == ["c", "d", "e", "moved/b"]

    def test_a_move_never_overwrites_what_stands_at_the_target(self, lake: ArrowLake) -> None:
        lake.create("archive/a", b"first")
        lake.create("a", b"second")
        with pytest.raises(StorageError, match="archive/a"):
            lake.move("a", "archive/a")
        assert (lake.read("a"), lake.read("archive/a")) == (b"second", b"first")

    def test_parquet_is_written_and_read_in_pieces_of_every_size(self, lake: ArrowLake) -> None:
        lake.make_directory("a")
        rows = pa.table({"small": range(300_000), "large": [f"{n:050}" for n in range(300_000)]})
        pq.write_table(rows, lake.path("a/x.parquet"), filesystem=lake.filesystem, row_group_size=100_000)
        read = pq.read_table(lake.path("a/x.parquet"), filesystem=lake.filesystem)
        (size,) = (f.bytes for f in lake.files("a"))
        with pq.ParquetFile(lake.path("a/x.parquet"), filesystem=lake.filesystem) as file:
            second = file.read_row_group(1, columns=["small"]).column("small")
        assert (read.equals(rows), second[0].as_py(), len(lake.read("a/x.parquet"))) == (True, 100_000, size)


class OneWinnerBehaviour(LakeBehaviour):
    """Where of several creators at once one wins."""

    def test_of_racing_creators_exactly_one_wins_and_its_content_stays_whole(self, lake: ArrowLake) -> None:
        start = threading.Barrier(8)

        def create(who: int) -> bool:
            start.wait()
            return lake.create("_schemasync/generations/000001.json", str(who).encode() * 100_000)

        with ThreadPoolExecutor(8) as threads:
            won = list(threads.map(create, range(8)))
        content = str(won.index(True)).encode() * 100_000
        assert (won.count(True), lake.read("_schemasync/generations/000001.json") == content) == (1, True)

    def test_a_reader_never_meets_half_a_file(self, lake: ArrowLake) -> None:
        done = threading.Event()

        def read() -> set[int]:
            sizes, last = set(), False
            while not last:
                # Once more when all are there: a reader that was never in time has seen nothing.
                last = done.is_set()
                sizes |= {f.bytes for f in lake.files("g") if f.path.endswith(".json")}
            return sizes

        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(read)
            try:
                for number in range(50):
                    lake.create(f"g/{number}.json", b"x" * 500_000)
            finally:
                done.set()
        assert reading.result() == {500_000}
