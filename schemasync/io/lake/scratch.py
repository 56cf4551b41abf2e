"""A storage that is only read: what is written to it goes to a directory of the local disk, and is read from there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyarrow import fs

from schemasync.errors import StorageError
from schemasync.io.lake.handler import LakeFileSystem


@contextmanager
def scratch(storage: fs.FileSystem) -> Iterator[fs.FileSystem]:
    """Hand out a storage as it is, to which anything may be written; all of that is gone in the end.

    Raises:
        StorageError: the local disk has no room for it.
    """
    try:
        made = TemporaryDirectory(prefix="schemasync-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(
            "there is no directory to try it in", why=str(error), fix="Name one in TMPDIR that can be written to."
        ) from error
    with made as directory:
        yield fs.PyFileSystem(ScratchFileSystem(storage, directory))


class ScratchFileSystem(LakeFileSystem):
    """A storage before which a local directory lies: files and directories that are written lie there."""

    def __init__(self, storage: fs.FileSystem, directory: str) -> None:
        """Read ``storage``, write below ``directory``."""
        self._storage = storage
        self._local = fs.LocalFileSystem()
        self._directory = directory

    def get_type_name(self) -> str:
        """Return what is read and where is written."""
        return f"{self._storage.type_name}+{self._directory}"

    def _here(self, path: str) -> str:
        return f"{self._directory}/{path.lstrip('/')}"

    def _holder(self, path: str) -> tuple[fs.FileSystem, str]:
        """Return who has a file, and its path there."""
        here = self._here(path)
        written = self._local.get_file_info(here).type is fs.FileType.File
        return (self._local, here) if written else (self._storage, path)

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Look at files, or at directories of the storage."""
        return [self._looked_at(path) for path in paths]

    def _looked_at(self, path: str) -> fs.FileInfo:
        holder, there = self._holder(path)
        found = holder.get_file_info(there)
        return fs.FileInfo(path, found.type, size=found.size, mtime_ns=found.mtime_ns)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Make a directory of the local disk."""
        self._local.create_dir(self._here(path), recursive=recursive)

    def delete_dir(self, path: str) -> None:
        """Delete what was written below a directory."""
        self._local.delete_dir(self._here(path))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file to read it from its beginning."""
        holder, there = self._holder(path)
        return holder.open_input_stream(there)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file to read anywhere in it."""
        holder, there = self._holder(path)
        return holder.open_input_file(there)

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:  # noqa: ARG002 - of storages alone
        """Open a new file of the local disk to write it, in a directory that the storage may have."""
        here = self._here(path)
        self._local.create_dir(posixpath.dirname(here), recursive=True)
        return self._local.open_output_stream(here)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List what is in a directory, and what was written to it."""
        base, here = selector.base_dir, self._here(selector.base_dir)
        there, local = (
            filesystem.get_file_info(fs.FileSelector(place, allow_not_found=True, recursive=selector.recursive))
            for filesystem, place in ((self._storage, base), (self._local, here))
        )
        written = (fs.FileInfo(base + f.path[len(here) :], f.type, size=f.size, mtime_ns=f.mtime_ns) for f in local)
        return list({found.path: found for found in (*there, *written)}.values())

    def delete_file(self, path: str) -> None:
        """Refuse: the storage stays as it is."""
        raise NotImplementedError

    def move(self, src: str, dest: str) -> None:
        """Refuse: the storage stays as it is."""
        raise NotImplementedError
