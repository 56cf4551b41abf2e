"""The storage under a table's location, through Arrow's file systems: local disk, S3, or what Hadoop reaches.

One instance serves one location. Called by admission, compaction and publishing; promises that a file written by
`Lake.create` is whole or absent, and that nothing here ever overwrites.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from schemasync.core.locations import ARROW_NAMES, needs_directories, parse_location
from schemasync.core.ports import FileInfo
from schemasync.errors import StorageError
from schemasync.io.lake.creating import creation, making
from schemasync.io.lake.emptied import removal

_DENIED = (errno.EACCES, errno.EPERM)
_RIGHTS = {"list": "permission to list and enter it", "read": "read permission"}
"""Verb -> what it takes; every other one takes write permission."""

_REASONS = {
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the device; free some and run again, nothing was published",
    errno.EDQUOT: "the disk quota is used up; free some and run again, nothing was published",
    errno.ENOENT: "there is no such file",
}

_LISTINGS = 100
"""How often a directory is listed that changes under the listing, before that is an error."""


class ArrowLake:
    """A table's location on any file system that Arrow reaches."""

    def __init__(self, location: str, *, filesystem: fs.FileSystem | None = None) -> None:
        """Open ``location``: a URI, or an absolute path of the local disk.

        ``filesystem`` is the one that it lies in, where that is not the one that Arrow has for its scheme.

        Raises:
            StorageError: no such scheme, or the file system cannot be reached.
            UsageError: a library is missing for it.
        """
        parts = parse_location(location)
        self._local = filesystem is None and parts.is_local
        try:
            if filesystem is not None:
                self.filesystem, self._base = filesystem, parts.path.rstrip("/")
            elif self._local:
                self.filesystem, self._base = fs.LocalFileSystem(), parts.path.rstrip("/")
            else:
                scheme = ARROW_NAMES.get(parts.scheme, parts.scheme)
                # Arrow parses a URL, where Hadoop takes every character of a path for itself.
                self.filesystem, self._base = fs.FileSystem.from_uri(f"{scheme}://{parts.host}{quote(parts.path)}")
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StorageError(
                "the location cannot be opened",
                where=location,
                why=str(error),
                fix="Use file:, s3a: or hdfs:, and check the storage's settings.",
            ) from error
        self._create = creation(self.filesystem)
        self._make = making(self.filesystem)
        self._remove = removal(self.filesystem)
        self._root = f"file:{self._base}" if self._local else location.rstrip("/")

    def within(self, filesystem: fs.FileSystem) -> ArrowLake:
        """Return the same location in a file system that has the same paths."""
        other = copy(self)
        other.filesystem, other._create, other._remove = filesystem, creation(filesystem), removal(filesystem)
        other._make = making(filesystem)
        return other

    @property
    def root(self) -> str:
        """The location as engines write it."""
        return self._root

    def path(self, relative: str) -> str:
        """Return the path that ``filesystem`` understands."""
        return f"{self._base}/{relative}" if relative else self._base or "/"

    def uri(self, path: str) -> str:
        """Return the path as engines write it."""
        return f"{self._root}/{path}" if path else self._root

    def files(self, directory: str, *, below: bool = True) -> tuple[FileInfo, ...]:
        """Return the files in a directory, and ``below`` it, sorted by path; none where there is no such directory."""
        selector = fs.FileSelector(self.path(directory), recursive=below, allow_not_found=True)
        with self._translated("list", directory):
            skip = len(self._base) + 1
            infos = [
                FileInfo(path=f.path[skip:], bytes=f.size, modified_ms=_modified_ms(f))
                for f in self._list(selector)
                if f.type is fs.FileType.File
            ]
        return tuple(sorted(infos, key=lambda f: f.path))

    def directories(self, directory: str) -> tuple[str, ...]:
        """Return the directories right below a directory, sorted; none where there is no such directory."""
        selector = fs.FileSelector(self.path(directory), allow_not_found=True)
        with self._translated("list", directory):
            skip = len(self._base) + 1
            found = {f.path[skip:].rstrip("/") for f in self._list(selector) if f.type is fs.FileType.Directory}
        # A key of S3 with an empty name below a directory (``a//x``) makes Arrow list that as one of its own.
        return tuple(sorted(found - {directory.rstrip("/")}))

    def _list(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List, and list again where a file vanished in between: Arrow's local disk then raises (26.0.1).

        Sinks write under another name and rename, so that is an ordinary moment in a directory that is in use.
        """
        for _ in range(_LISTINGS - 1):
            with suppress(FileNotFoundError):
                return list(self.filesystem.get_file_info(selector))
        return list(self.filesystem.get_file_info(selector))

    def read(self, path: str) -> bytes:
        """Return a small file's content."""
        with self._translated("read", path), self.filesystem.open_input_stream(self.path(path)) as stream:
            return bytes(stream.read())

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that must not exist yet, all or nothing; return False where it exists.

        Of several writers at once one wins, but on Google's and Azure's storage (`schemasync.io.lake.creating`).
        """
        self._make_room(path)
        with self._translated("write", path):
            return self._create(self.path(path), content)

    def delete(self, path: str, *, seen: FileInfo | None = None) -> None:
        """Delete one file; no error where it is gone already, or is no longer the one that was ``seen`` in a list."""
        with self._translated("delete", path):
            if _is_there(self.filesystem.get_file_info(self.path(path)), seen):
                self.filesystem.delete_file(self.path(path))

    def delete_directory(self, directory: str) -> None:
        """Delete a directory with all that is in it; no error where it is gone already."""
        with self._translated("delete", directory):
            if self.filesystem.get_file_info(self.path(directory)).type is fs.FileType.Directory:
                self.filesystem.delete_dir(self.path(directory))

    def delete_if_empty(self, directory: str) -> None:
        """Delete a directory that has nothing in it, where the storage has such a thing; any other stays."""
        with self._translated("delete", directory):
            try:
                self._remove(self.path(directory))
            except FileNotFoundError:
                return
            except OSError:
                if not self._list(fs.FileSelector(self.path(directory), allow_not_found=True)):
                    raise

    def make_directory(self, directory: str) -> None:
        """Make an (empty) directory."""
        with self._translated("create", directory):
            self._make(self.path(directory))

    def _make_room(self, path: str) -> None:
        """Make the directory of a file, where it has to be there."""
        if needs_directories(self.filesystem.type_name):
            self.make_directory(posixpath.dirname(path))

    def move(self, source: str, target: str, *, seen: FileInfo | None = None) -> None:
        """Move one file; no error where only the target exists already, or it is not the one that was ``seen``.

        Raises:
            StorageError: both exist, and moving would overwrite.
        """
        self._make_room(target)
        with self._translated("move", source):
            here, there = self.filesystem.get_file_info([self.path(source), self.path(target)])
            if not _is_there(here, seen):
                return
            if there.type is not fs.FileType.NotFound:
                raise StorageError("a file stands where another is moved to", where=self.uri(target))
            self.filesystem.move(self.path(source), self.path(target))

    @contextmanager
    def _translated(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            # Local disks take any bytes for a name; Arrow decodes a name when it is asked for.
            raise StorageError(
                f"cannot {verb} it",
                where=self.uri(path),
                why=f"the name {error.object!r} is not UTF-8",
                fix="Rename what has that name, or move it away.",
            ) from error
        except (OSError, pa.ArrowException) as error:
            raise storage_error(error, verb=verb, where=self.uri(path)) from error


def _modified_ms(found: fs.FileInfo) -> int:
    return int(found.mtime.timestamp() * 1000)


def _is_there(found: fs.FileInfo, seen: FileInfo | None) -> bool:
    """Tell whether there is a file, and where one was ``seen`` in a list, that one.

    Asked for a single file S3 tells whole seconds, and in lists it may tell more: only there two are one that differ.
    """
    if found.type is fs.FileType.NotFound or seen is None:
        return found.type is not fs.FileType.NotFound
    return found.size == seen.bytes and _modified_ms(found) in (seen.modified_ms, seen.modified_ms // 1000 * 1000)


def storage_error(error: Exception, *, verb: str, where: str) -> StorageError:
    """Translate an error of the storage into one that says what to do."""
    number = getattr(error, "errno", None) or 0
    why, fix = _REASONS.get(number, str(error)), ""
    if number in _DENIED:
        right = _RIGHTS.get(verb, "write permission")
        why, fix = "permission denied", f"Give this user {right}, or the table another place (location:)."
    return StorageError(f"cannot {verb} it", where=where, why=why, fix=fix)
