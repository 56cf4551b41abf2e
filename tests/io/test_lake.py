"""The storage under a table: on the local disk, in memory, and through Hadoop's client."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from schemasync.core.ports import FileInfo
from schemasync.errors import StorageError
from schemasync.io.lake import hadoop
from schemasync.io.lake.arrow import ArrowLake, storage_error
from schemasync.io.lake.hadoop import HadoopFileSystem, open_hadoop
from tests.io.lake_behaviour import LakeBehaviour, OneWinnerBehaviour, by_hadoop, paths


class TestLocalDisk(OneWinnerBehaviour):
    @pytest.fixture(params=["", "file://"])
    def lake(self, request: pytest.FixtureRequest, tmp_path: Path) -> ArrowLake:
        return ArrowLake(f"{request.param}{tmp_path}/shop/student")


@pytest.mark.parametrize(("now", "is_that"), [(1_700, False), (1_500, True), (1_000, True), (999, False)])
def test_a_file_that_was_written_again_within_a_second_is_another(tmp_path: Path, now: int, is_that: bool) -> None:
    """But for one of S3, which tells whole seconds where it is asked for one file."""
    lake = ArrowLake(str(tmp_path))
    lake.create("a", b"1")
    os.utime(tmp_path / "a", ns=(0, now * 1_000_000))
    lake.delete("a", seen=FileInfo(path="a", bytes=1, modified_ms=1_500))
    assert (lake.files("") == ()) == is_that


class TestMemory(LakeBehaviour):
    """Arrow's file system in memory: the code path of all the others that it has."""

    deletes_empty = False

    @pytest.fixture
    def lake(self) -> ArrowLake:
        return ArrowLake("mock://host/shop/student")


@pytest.mark.spark
class TestHadoop(LakeBehaviour):
    """The local disk again, by Hadoop's client for it."""

    @pytest.fixture
    def lake(self, tmp_path: Path, spark: SparkSession) -> ArrowLake:
        return by_hadoop(spark, f"file://{tmp_path}/shop/student")

    def test_what_hadoop_throws_is_told_as_of_any_disk(self, lake: ArrowLake) -> None:
        lake.create("a/x", b"")
        with pytest.raises(StorageError, match="a/y: cannot read it: there is no such file"):
            lake.read("a/y")
        with pytest.raises(StorageError, match=r"a/x/y: cannot create it|a/x: cannot create it"):
            lake.create("a/x/y", b"")
        with pytest.raises(FileNotFoundError):
            lake.filesystem.get_file_info(fs.FileSelector(lake.path("nowhere")))

    def test_a_directory_that_vanishes_below_does_not_hide_the_others(
        self, lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake.create("a/x", b"")
        listed, calls = HadoopFileSystem._listed, []

        def vanishing(self: HadoopFileSystem, directory: str, *, recursive: bool) -> Iterator[fs.FileInfo]:
            calls.append(directory)
            if len(calls) == 1:
                raise FileNotFoundError(errno.ENOENT, "File does not exist", f"{directory}/a/b")
            return listed(self, directory, recursive=recursive)

        monkeypatch.setattr(HadoopFileSystem, "_listed", vanishing)
        assert (paths(lake, ""), len(calls)) == (["a/x"], 2)

    def test_a_local_disk_that_is_full_is_blamed_and_not_the_storage(
        self, lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match=r"passes through .*: No space left"):
            lake.create("a/x", b"x" * 10_000)
        assert lake.files("") == ()

    def test_what_pyspark_has_exceptions_of_its_own_for_is_told_as_of_any_disk(self, spark: SparkSession) -> None:
        with pytest.raises(OSError, match="Relative path in absolute URI: hdfs:student"):
            open_hadoop(spark, "hdfs:student")

    def test_storages_are_the_same_where_hadoop_says_so(self, lake: ArrowLake, spark: SparkSession) -> None:
        again, other = open_hadoop(spark, "file:///elsewhere"), open_hadoop(spark, "viewfs://tests/disk")
        assert (lake.filesystem == again, lake.filesystem == other) == (True, False)


def test_what_pyspark_raises_without_a_word_is_told_by_its_name() -> None:
    with pytest.raises(OSError, match="a/x") as raised, hadoop._as_os_error("a/x"):
        raise PySparkException("")
    assert (raised.value.errno, raised.value.strerror) == (errno.EIO, "PySparkException")


def test_files_of_the_top_directory_are_told_below_it() -> None:
    lake = ArrowLake("mock:///")
    lake.create("a/x", b"")
    assert (paths(lake, ""), lake.path("a"), ArrowLake("file:///").path("")) == (["a/x"], "/a", "/")


@pytest.mark.parametrize("directory", ["", "base/g=000007"])
def test_no_directory_is_one_of_its_own(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow lists it so where S3 has a key with an empty name in it: ``base/g=000007//x``."""
    lake = ArrowLake("mock://host/shop/student")
    lake.make_directory(f"{directory}/live".strip("/"))
    (live,) = found = lake.directories(directory)
    listed = [fs.FileInfo(lake.path(name).rstrip("/"), type=fs.FileType.Directory) for name in (directory, live)]
    monkeypatch.setattr(lake, "filesystem", Mock(get_file_info=Mock(return_value=listed)))
    assert lake.directories(directory) == found


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EPERM, "has no hard links"),
        (errno.ENOTSUP, "has no hard links"),
        (errno.EACCES, "denied. Give this user write permission"),
    ],
)
def test_a_disk_without_hard_links_is_not_told_as_one_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(number, os.strerror(number))))
    with pytest.raises(StorageError, match=f"x: cannot write it: .*{told}.*location"):
        ArrowLake(str(tmp_path)).create("x", b"")
    assert [*tmp_path.iterdir()] == []


def test_a_path_goes_to_engines_below_the_root(tmp_path: Path) -> None:
    lake = ArrowLake(f"file://{tmp_path}/shop")
    assert (lake.root, lake.uri("a/b")) == (f"file:{tmp_path}/shop", f"file:{tmp_path}/shop/a/b")


def test_an_unknown_scheme_is_an_error_that_names_the_location() -> None:
    with pytest.raises(StorageError, match=r"ftp://host/lake: the location cannot be opened.*s3a:"):
        ArrowLake("ftp://host/lake")


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    lake = ArrowLake(str(tmp_path))
    lake.make_directory("a")
    with pytest.raises(StorageError, match=r"a/x+: cannot write it"):
        lake.create(f"a/{'x' * 300}", b"content")
    assert lake.files("") == ()


def test_a_file_where_a_directory_should_be_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match=f"file:{tmp_path}/a/b: cannot create it"):
        ArrowLake(str(tmp_path)).create("a/b/x", b"")


@pytest.mark.parametrize(
    ("verb", "right"),
    [("list", "permission to list and enter it"), ("read", "read permission"), ("write", "write permission")],
)
def test_who_may_not_is_told_which_permission_is_missing(verb: str, right: str) -> None:
    error = storage_error(PermissionError(errno.EACCES, "Permission denied"), verb=verb, where="file:/lake/t")
    assert (error.said, error.fix) == (
        f"file:/lake/t: cannot {verb} it: permission denied",
        f"Give this user {right}, or the table another place (location:).",
    )


def test_a_name_that_is_no_text_is_told_with_what_to_do(tmp_path: Path) -> None:
    """Latin-1, for one: the disk takes it, and nothing that engines read can say it."""
    lake = ArrowLake(str(tmp_path))
    (tmp_path / "a").mkdir()
    (Path(os.fsdecode(os.fsencode(tmp_path / "a") + b"/\xe4.parquet"))).touch()
    with pytest.raises(StorageError) as caught:
        lake.files("a")
    assert str(caught.value) == (
        f"file:{tmp_path}/a: cannot list it: the name b'{tmp_path}/a/\\xe4.parquet' is not UTF-8. "
        "Rename what has that name, or move it away."
    )


def test_the_file_system_in_memory_is_not_the_local_disk() -> None:
    """Or the suite above would test one code path under two names."""
    assert not isinstance(ArrowLake("mock://host/shop").filesystem, fs.LocalFileSystem)


@pytest.mark.parametrize("sign", ["#", "?", "%41", " ", "ü"])
@pytest.mark.parametrize("scheme", ["s3a", "gs", "mock"])
def test_every_character_of_a_path_stands_for_itself_in_other_storages(
    monkeypatch: pytest.MonkeyPatch, scheme: str, sign: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # or Arrow asks S3 where the bucket is
    lake = ArrowLake(f"{scheme}://lake/raw{sign}data/student")
    bucket = "" if scheme == "mock" else "lake/"
    assert (lake.path("x"), lake.uri("x")) == (
        f"{bucket}raw{sign}data/student/x",
        f"{scheme}://lake/raw{sign}data/student/x",
    )


@pytest.mark.parametrize("sign", ["#", "?", "%41"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_every_character_of_a_local_path_stands_for_itself(tmp_path: Path, sign: str, scheme: str) -> None:
    for name in ("a", "b"):
        ArrowLake(f"{scheme}{tmp_path}/c{sign}{name}").create("x", name.encode())
    assert [(tmp_path / f"c{sign}{name}" / "x").read_text() for name in ("a", "b")] == ["a", "b"]
