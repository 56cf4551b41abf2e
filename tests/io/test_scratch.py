"""A storage to which one may write without changing it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from schemasync.errors import StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.lake.scratch import scratch


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A storage with one file, and a directory for what is written besides."""
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "there").write_bytes(b"as it was")
    (tmp_path / "local").mkdir()
    return tmp_path / "storage"


@pytest.fixture
def local(storage: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = storage.parent / "local"
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


def read(filesystem: fs.FileSystem, path: str) -> bytes:
    with filesystem.open_input_file(path) as file, filesystem.open_input_stream(path) as stream:
        found = bytes(file.read())
        assert bytes(stream.read()) == found
    return found


def test_what_is_written_is_read_again_and_the_storage_stays_as_it_is(storage: Path, local: Path) -> None:
    with scratch(fs.LocalFileSystem()) as filesystem:
        filesystem.create_dir(f"{storage}/new/deep", recursive=True)
        for name in ("new/deep/file", "there"):
            with filesystem.open_output_stream(f"{storage}/{name}") as stream:
                stream.write(name.encode())
        assert [read(filesystem, f"{storage}/{name}") for name in ("new/deep/file", "there")] == [
            b"new/deep/file",
            b"there",
        ]
        told = filesystem.get_file_info([f"{storage}/{name}" for name in ("new/deep/file", "there", "nowhere")])
        assert [(found.type, found.size) for found in told] == [
            (fs.FileType.File, 13),
            (fs.FileType.File, 5),
            (fs.FileType.NotFound, None),
        ]
        assert told[0].mtime_ns > 0
        listed = filesystem.get_file_info(fs.FileSelector(str(storage), recursive=True))
        assert sorted(found.path.removeprefix(f"{storage}/") for found in listed) == [
            "new",
            "new/deep",
            "new/deep/file",
            "there",
        ]
        assert len([*local.iterdir()]) == 1
    assert ([*storage.iterdir()], (storage / "there").read_bytes()) == ([storage / "there"], b"as it was")
    assert [*local.iterdir()] == []


def test_what_nobody_wrote_is_the_storages(storage: Path, local: Path) -> None:
    with scratch(fs.LocalFileSystem()) as filesystem:
        assert read(filesystem, f"{storage}/there") == b"as it was"
        with pytest.raises(FileNotFoundError):
            filesystem.open_input_file(f"{storage}/nowhere")
        with filesystem.open_output_stream(f"{storage.parent}/x") as stream:
            stream.write(b"x")
        filesystem.delete_dir(str(storage.parent))
        assert not filesystem.get_file_info(f"{storage.parent}/x").is_file
        assert read(filesystem, f"{storage}/there") == b"as it was"
    assert local.exists()


def test_nothing_of_the_storage_can_be_moved_or_deleted(storage: Path, local: Path) -> None:
    there = f"{storage}/there"
    with scratch(fs.LocalFileSystem()) as filesystem:
        forbidden: list[Callable[[], object]] = [
            lambda: filesystem.delete_file(there),
            lambda: filesystem.move(there, f"{there}2"),
            lambda: filesystem.copy_file(there, f"{there}2"),
            lambda: filesystem.open_append_stream(there),
            lambda: filesystem.delete_dir_contents(str(storage)),
        ]
        for call in forbidden:
            with pytest.raises(NotImplementedError):
                call()
    assert (storage / "there").exists()
    assert local.exists()


def test_an_empty_directory_of_the_storage_stays(storage: Path, local: Path) -> None:
    (storage / "empty").mkdir()
    lake = ArrowLake(str(storage))
    with scratch(lake.filesystem) as filesystem:
        lake.within(filesystem).delete_if_empty("empty")
        assert (storage / "empty").exists()
    lake.delete_if_empty("empty")
    assert not (storage / "empty").exists()
    assert local.exists()


def test_a_machine_without_room_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match=r"no directory to try it in.*TMPDIR"), scratch(fs.LocalFileSystem()):
        pass
