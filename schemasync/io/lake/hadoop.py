"""Hadoop's file systems for Arrow, through the JVM that Spark runs in: HDFS, viewfs, vendors' connectors.

Whatever Spark reads this process reads, too, with Spark's settings and credentials. Tasks of Spark have no such JVM.
What is large passes through an unnamed file of the local disk: the socket to the JVM takes a tenth of a second for a
megabyte that is read.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyarrow import fs

from schemasync.io.lake.handler import LakeFileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LITTLE: Final = 4 * 1024
"""So many bytes are passed through the socket: in base64, less than the 8 KB of which its JVM makes one piece."""
_CREATE_ONLY: Final = "fs.option.create.conditional.overwrite"
"""Hadoop's name of writing that fails where something was written meanwhile: S3A from 3.4.2 on."""
_NUMBERS: Final = {
    "java.io.FileNotFoundException": errno.ENOENT,
    "java.nio.file.NoSuchFileException": errno.ENOENT,
    "org.apache.hadoop.fs.FileAlreadyExistsException": errno.EEXIST,
    "java.nio.file.FileAlreadyExistsException": errno.EEXIST,
    "org.apache.hadoop.fs.s3a.RemoteFileChangedException": errno.EEXIST,
    "org.apache.hadoop.security.AccessControlException": errno.EACCES,
    "java.nio.file.AccessDeniedException": errno.EACCES,
    "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException": errno.EDQUOT,
    "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException": errno.EDQUOT,
}
"""What the system would call it that Java throws."""


def open_hadoop(session: SparkSession, location: str) -> fs.FileSystem:
    """Return the file system in which ``location``, a URI, lies for this session.

    Raises:
        OSError: Hadoop has no such file system, or cannot reach it.
    """
    return fs.PyFileSystem(HadoopFileSystem(session, location))


def default_filesystem(session: SparkSession) -> str:
    """Return the URI of the file system that has what a location without a host names."""
    jvm: Any = session._jvm
    context: Any = session.sparkContext
    return str(jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(context._jsc.hadoopConfiguration()).toString())


class HadoopFileSystem(LakeFileSystem):
    """One of Hadoop's file systems, as far as a lake is asked for; paths have neither scheme nor authority."""

    def __init__(self, session: SparkSession, location: str) -> None:
        """Reach ``location``, a URI, as this session does.

        Raises:
            OSError: Hadoop has no such file system, or cannot reach it.
        """
        jvm: Any = session._jvm
        context: Any = session.sparkContext
        self._jvm = jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        with _as_os_error(location):
            self._hadoop = self._path(location).getFileSystem(context._jsc.hadoopConfiguration())
            self._name = f"hadoop+{self._hadoop.getUri().toString()}"

    def get_type_name(self) -> str:
        """Return the storage's address."""
        return self._name

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Look at files or directories."""
        return [self._looked_at(path) for path in paths]

    def _looked_at(self, path: str) -> fs.FileInfo:
        try:
            with _as_os_error(path):
                status = self._hadoop.getFileStatus(self._path(path))
                return fs.FileInfo(path, fs.FileType.Directory) if status.isDirectory() else _file(path, status)
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List what lies right in a directory, or the files at any depth below it, where directories are not told."""
        try:
            with _as_os_error(selector.base_dir):
                return list(self._listed(selector.base_dir, recursive=selector.recursive))
        except FileNotFoundError:
            # It may be a directory below that vanished meanwhile: the others are not gone with it.
            if selector.allow_not_found and self._looked_at(selector.base_dir).type is fs.FileType.NotFound:
                return []
            raise

    def _listed(self, directory: str, *, recursive: bool) -> Iterator[fs.FileInfo]:
        if not recursive:
            yield from (_told(status) for status in self._hadoop.listStatus(self._path(directory)))
            return
        found = self._hadoop.listFiles(self._path(directory), True)
        while found.hasNext():
            yield _told(found.next())

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002 - Hadoop makes parents always
        """Make a directory, and those above it."""
        with _as_os_error(path):
            if not self._hadoop.mkdirs(self._path(path)):
                raise OSError(errno.EIO, "it was not made", path)

    def delete_dir(self, path: str) -> None:
        """Delete a directory with all that is in it."""
        with _as_os_error(path):
            self._hadoop.delete(self._path(path), True)

    def remove_directory(self, path: str) -> None:
        """Delete a directory in which nothing is.

        Raises:
            OSError: there is something in it, or it cannot be deleted.
        """
        with _as_os_error(path):
            self._hadoop.delete(self._path(path), False)

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        with _as_os_error(path):
            if not self._hadoop.delete(self._path(path), False):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def move(self, src: str, dest: str) -> None:
        """Move a file to where none is; HDFS does that in one step, others may overwrite one that comes meanwhile.

        Raises:
            FileExistsError: there is one.
        """
        with _as_os_error(src):
            if self._hadoop.exists(self._path(dest)) or not self._hadoop.rename(self._path(src), self._path(dest)):
                if self._hadoop.exists(self._path(dest)):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), dest)
                raise OSError(errno.EIO, "it was not renamed", src)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file to read it from its beginning."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file to read anywhere in it."""
        with _as_os_error(path):
            size = self._hadoop.getFileStatus(self._path(path)).getLen()
            return pa.PythonFile(_Input(self._jvm, self._hadoop.open(self._path(path)), path, size), mode="r")

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:  # noqa: ARG002 - Hadoop has none
        """Open a new file to write it."""
        with _as_os_error(path):
            return pa.PythonFile(_Output(self._jvm, self._hadoop.create(self._path(path), False), path), mode="w")

    def creates_only(self, path: str) -> bool:
        """Tell whether the storage itself lets one of several writers of a file win."""
        with _as_os_error(path):
            return bool(self._hadoop.hasPathCapability(self._path(path), _CREATE_ONLY))

    def create_only(self, path: str, content: bytes) -> None:
        """Write a file where ``creates_only``.

        Raises:
            FileExistsError: there is one.
        """
        with _as_os_error(path):
            builder = self._hadoop.createFile(self._path(path)).must(_CREATE_ONLY, True)
            builder.overwrite(False)
            stream = _Output(self._jvm, builder.build(), path)
        try:
            stream.write(content)
        except BaseException:
            stream.abort()
            raise
        stream.close()


def _told(status: Any) -> fs.FileInfo:
    path = status.getPath().toUri().getPath()
    return fs.FileInfo(path, fs.FileType.Directory) if status.isDirectory() else _file(path, status)


def _file(path: str, status: Any) -> fs.FileInfo:
    return fs.FileInfo(path, fs.FileType.File, size=status.getLen(), mtime_ns=status.getModificationTime() * 1_000_000)


class _Between:
    """An unnamed local file that both sides have open: Python by its descriptor, Java as a channel."""

    def __init__(self, jvm: Any) -> None:
        # Its name goes at once, so that nothing is left of it whatever happens.
        with _on_the_way(), tempfile.NamedTemporaryFile(prefix="schemasync-") as named:
            self._channel = jvm.java.io.RandomAccessFile(named.name, "rw").getChannel()
            self._descriptor = os.dup(named.fileno())
        self._close_ours = weakref.finalize(self, os.close, self._descriptor)

    def read(self, source: Any, size: int) -> bytes:
        """Return the next bytes of a Java channel, fewer where it ends."""
        done = 0
        while done < size and (moved := self._channel.transferFrom(source, done, size - done)):
            done += moved
        return os.pread(self._descriptor, done, 0)

    def write(self, content: memoryview, target: Any) -> None:
        """Write bytes to a Java channel."""
        done = 0
        while done < len(content):
            with _on_the_way():
                done += os.pwrite(self._descriptor, content[done:], done)
        done = 0
        while done < len(content):
            done += self._channel.transferTo(done, len(content) - done, target)

    def close(self) -> None:
        self._close_ours()
        self._channel.close()


class _Open:
    """What Arrow asks of a Python file that is open."""

    def __init__(self, jvm: Any, stream: Any, path: str) -> None:
        self._jvm = jvm
        self._stream = stream
        self._where = path
        self._at = 0
        self._spare: _Between | None = None
        self._channel: Any = None
        self.closed = False

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Do nothing: what counts is the end."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._end(self._stream.close)

    def _end(self, how: Callable[[], object]) -> None:
        with _as_os_error(self._where):
            try:
                how()
            finally:
                if self._spare is not None:
                    self._spare.close()

    @property
    def _between(self) -> _Between:
        self._spare = self._spare or _Between(self._jvm)
        return self._spare

    @property
    def _streamed(self) -> Any:
        self._channel = self._channel or self._jvm.java.nio.channels.Channels.newChannel(self._stream)
        return self._channel


class _Input(_Open):
    """A file that is read."""

    def __init__(self, jvm: Any, stream: Any, path: str, size: int) -> None:
        super().__init__(jvm, stream, path)
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        with _as_os_error(self._where):
            self._stream.seek(self._at)
            if wanted <= _LITTLE:
                found = bytes(self._stream.readNBytes(wanted))
            else:
                found = self._between.read(self._streamed, wanted)
        if len(found) < wanted:
            raise OSError(errno.EIO, "it ended early", self._where)
        self._at += wanted
        return found


class _Output(_Open):
    """A file that is written."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def abort(self) -> None:
        """Give up: nothing of what was written becomes a file. Only where the storage can do that."""
        self.closed = True
        self._end(self._stream.abort)

    def write(self, content: bytes | pa.Buffer) -> int:
        held = memoryview(content)
        with _as_os_error(self._where):
            if len(held) <= _LITTLE:
                self._stream.write(bytes(held))
            else:
                self._between.write(held, self._streamed)
        self._at += len(held)
        return len(held)


@contextmanager
def _on_the_way() -> Iterator[None]:
    """Blame the local disk for what it does, not the storage."""
    try:
        yield
    except OSError as error:
        why = f"it passes through {tempfile.gettempdir()}, and there: {error.strerror}"
        raise OSError(errno.EIO, why) from error


@contextmanager
def _as_os_error(path: str) -> Iterator[None]:
    """Raise what Java throws as the error that Python has for it."""
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        name, text = thrown.getClass().getName(), str(thrown.getMessage() or thrown.toString()).splitlines()[0]
        raise OSError(_NUMBERS.get(name, errno.EIO), text, path) from error
    except Py4JError as error:
        raise OSError(errno.EIO, f"Spark's JVM does not answer: {error}", path) from error
    except Exception as error:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - whoever comes here has a session

        # What Java throws most, such as IllegalArgumentException, pyspark replaces by exceptions of its own.
        if not isinstance(error, PySparkException):
            raise
        text = (str(error) or type(error).__name__).splitlines()[0]
        raise OSError(errno.EIO, text, path) from error
