"""What the storage under a table must do: create-only, all or nothing, and errors that name the path."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyarrow import fs

from schemasync.errors import StorageError
from schemasync.io.lake import ArrowLake


@pytest.fixture(params=["path", "file", "mock"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> ArrowLake:
    """The local disk, written both ways, and Arrow's file system in memory: the code path of all the others."""
    places = {
        "path": f"{tmp_path}/shop/student",
        "file": f"file://{tmp_path}/shop/student",
        "mock": "mock://host/shop/student",
    }
    return ArrowLake(places[request.param])


def paths(lake: ArrowLake, directory: str) -> list[str]:
    return [f.path for f in lake.files(directory)]


def test_what_is_created_reads_back(lake: ArrowLake) -> None:
    created = lake.create("_schemasync/generations/000001.json", b"{}")
    assert (created, lake.read("_schemasync/generations/000001.json")) == (True, b"{}")


def test_a_file_that_exists_is_never_overwritten(lake: ArrowLake) -> None:
    lake.create("a/x.json", b"first")
    assert (lake.create("a/x.json", b"second"), lake.read("a/x.json")) == (False, b"first")


def test_creating_leaves_nothing_beside_the_file(lake: ArrowLake) -> None:
    for content in (b"first", b"second"):
        lake.create("a/x.json", content)
    assert paths(lake, "") == ["a/x.json"]


def test_files_are_listed_recursively_and_sorted_with_their_sizes(lake: ArrowLake) -> None:
    for path in ("a/h=2/y", "a/h=1/x", "b/z", "a/w"):
        lake.create(path, path.encode())
    assert [(f.path, f.bytes) for f in lake.files("a")] == [("a/h=1/x", 7), ("a/h=2/y", 7), ("a/w", 3)]


def test_a_directory_that_is_not_there_has_no_files(lake: ArrowLake) -> None:
    assert lake.files("nowhere") == ()


def test_reading_what_is_not_there_names_the_path(lake: ArrowLake) -> None:
    with pytest.raises(StorageError, match=r"_schemasync/gone\.json: cannot read it"):
        lake.read("_schemasync/gone.json")


def test_deleting_is_idempotent(lake: ArrowLake) -> None:
    lake.create("a/x", b"")
    lake.delete("a/x")
    lake.delete("a/x")
    assert paths(lake, "a") == []


def test_deleting_a_directory_takes_all_that_is_in_it_and_is_idempotent(lake: ArrowLake) -> None:
    for path in ("a/b/x", "a/b/c/y", "a/z"):
        lake.create(path, b"")
    lake.delete_directory("a/b")
    lake.delete_directory("a/b")
    assert paths(lake, "") == ["a/z"]


def test_making_a_directory_again_keeps_its_files(lake: ArrowLake) -> None:
    lake.create("a/x", b"")
    lake.make_directory("a")
    assert paths(lake, "a") == ["a/x"]


def test_a_moved_file_is_whole_at_its_new_place_only(lake: ArrowLake) -> None:
    lake.create("incremental/h/x", b"rows")
    lake.move("incremental/h/x", "archive/incremental/h/x")
    assert (paths(lake, ""), lake.read("archive/incremental/h/x")) == (["archive/incremental/h/x"], b"rows")


def test_moving_again_is_no_error(lake: ArrowLake) -> None:
    lake.create("a", b"rows")
    for _ in range(2):
        lake.move("a", "archive/a")
    assert paths(lake, "") == ["archive/a"]


def test_a_move_never_overwrites_what_stands_at_the_target(lake: ArrowLake) -> None:
    lake.create("archive/a", b"first")
    lake.create("a", b"second")
    with pytest.raises(StorageError, match="archive/a"):
        lake.move("a", "archive/a")
    assert (lake.read("a"), lake.read("archive/a")) == (b"second", b"first")


def test_a_path_goes_to_engines_below_the_root(tmp_path: Path) -> None:
    lake = ArrowLake(f"file://{tmp_path}/shop")
    assert (lake.root, lake.uri("a/b")) == (f"file:{tmp_path}/shop", f"file:{tmp_path}/shop/a/b")


def test_an_unknown_scheme_is_an_error_that_names_the_location() -> None:
    with pytest.raises(StorageError, match=r"ftp://host/lake: the location cannot be opened.*s3a:"):
        ArrowLake("ftp://host/lake")


def test_of_racing_creators_exactly_one_wins_and_its_content_stays_whole(tmp_path: Path) -> None:
    lake, start = ArrowLake(str(tmp_path)), threading.Barrier(8)

    def create(who: int) -> bool:
        start.wait()
        return lake.create("_schemasync/generations/000001.json", str(who).encode() * 100_000)

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(create, range(8)))
    content = str(won.index(True)).encode() * 100_000
    assert (won.count(True), lake.read("_schemasync/generations/000001.json") == content) == (1, True)


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    lake, done = ArrowLake(str(tmp_path)), threading.Event()

    def read() -> set[int]:
        sizes = set()
        while not done.is_set():
            sizes |= {f.bytes for f in lake.files("g") if f.path.endswith(".json")}
        return sizes

    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read)
        for number in range(50):
            lake.create(f"g/{number}.json", b"x" * 500_000)
        done.set()
    assert reading.result() <= {500_000}


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    lake = ArrowLake(str(tmp_path))
    lake.make_directory("a")
    with pytest.raises(StorageError, match=r"a/x+: cannot write it"):
        lake.create(f"a/{'x' * 300}", b"content")
    assert lake.files("") == ()


def test_a_file_where_a_directory_should_be_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match=f"file:{tmp_path}/a/b: cannot make the directory it"):
        ArrowLake(str(tmp_path)).create("a/b/x", b"")


def test_the_file_system_in_memory_is_not_the_local_disk() -> None:
    """Or the suite above would test one code path under two names."""
    assert not isinstance(ArrowLake("mock://host/shop").filesystem, fs.LocalFileSystem)
