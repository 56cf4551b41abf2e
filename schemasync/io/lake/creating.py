"""Files that come to be with all of their content or not at all; one way for every kind of storage.

Of several writers of one name one wins: on local disks by a link, on HDFS by a renaming, on S3 by a condition of the
request, which Arrow's own client cannot make. On Google's and Azure's storage it is only looked whether something is
there: of two at the same moment the later one stays.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import posixpath
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from pyarrow import fs
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from schemasync.errors import UsageError
from schemasync.io.lake.hadoop import HadoopFileSystem

Create = Callable[[str, bytes], bool]
"""(path, content) -> whether it was created; False where something is there.

Raises:
    OSError: it cannot be written.
"""

MakeDirectory = Callable[[str], None]
"""(path) -> makes a directory, and those above it where they have to be there.

Raises:
    OSError: it cannot be made.
"""

BOTO3: Final = "boto3>=1.36"
"""As the extra ``s3`` of pyproject.toml has it; by its own name, because ours means another project on PyPI."""

_WHOLE_WHEN_CLOSED: Final = {"gcs", "abfs"}
"""Arrow's names of storages where a file is there with all that was written to it, or not at all."""
_WITHOUT_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}
"""What file systems answer that have none: where a link is denied for want of a right it is EACCES."""
_OLD_KEYS: Final = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId"}
"""What S3 says of keys that it does not take any more; a file of credentials may have other ones by now."""
_CONTENDED: Final = "ConditionalRequestConflict"
"""What S3 calls a request that met another one at the same moment; it is to be made again."""


class _ContendedError(OSError):
    """Another request of the same name came in between; nobody has won yet."""


_again = retry(
    retry=retry_if_exception_type(_ContendedError),
    stop=stop_after_attempt(5),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)


def creation(filesystem: fs.FileSystem) -> Create:
    """Return how files are created in a file system.

    Raises:
        UsageError: a library is missing for it.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        return _linked
    if isinstance(filesystem, fs.S3FileSystem):
        if importlib.util.find_spec("boto3") is None:
            raise UsageError(
                "S3 needs boto3",
                why="Arrow's client cannot let one of two writers win",
                fix=f"Install it: pip install '{BOTO3}'.",
            )
        return partial(_put, filesystem.region)
    if isinstance(filesystem, fs.PyFileSystem) and isinstance(filesystem.handler, HadoopFileSystem):
        return partial(_by_hadoop, filesystem)
    return partial(_looked_at_first if filesystem.type_name in _WHOLE_WHEN_CLOSED else _renamed, filesystem)


def making(filesystem: fs.FileSystem) -> MakeDirectory:
    """Return how directories are made in a file system."""
    if isinstance(filesystem, fs.S3FileSystem):
        return partial(_marked, filesystem.region)
    return partial(filesystem.create_dir, recursive=True)


@_again
def _marked(region: str, path: str) -> None:
    """Put the object that stands for a directory, as S3A and Arrow do, and none for those above it."""
    bucket, _, key = path.partition("/")
    with _as_os_error(path):
        ask_s3(region, "put_object", Bucket=bucket, Key=f"{key}/", Body=b"")


def _linked(path: str, content: bytes) -> bool:
    target, temporary = Path(path), Path(_beside(path))
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        _link(temporary, target)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _link(file: Path, other: Path) -> None:
    try:
        os.link(file, other)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        why = "this file system has no hard links, by which one of two writers wins; change location"
        raise OSError(errno.ENOTSUP, why, str(other)) from error


@_again
def _put(region: str, path: str, content: bytes) -> bool:
    bucket, _, key = path.partition("/")
    try:
        with _as_os_error(path):
            ask_s3(region, "put_object", Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
    except FileExistsError:
        return False
    return True


@contextmanager
def _as_os_error(path: str) -> Iterator[None]:
    """Raise what boto3 raises as the error that Python has for it."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only tables on S3 need it

    try:
        yield
    except ClientError as error:
        # Not its code, which is the status where the answer has no body.
        match error.response["ResponseMetadata"]["HTTPStatusCode"]:
            case HTTPStatus.PRECONDITION_FAILED:
                raise FileExistsError(errno.EEXIST, str(error), path) from error
            case HTTPStatus.CONFLICT:
                raise _ContendedError(errno.EIO, str(error), path) from error
            case HTTPStatus.FORBIDDEN:
                raise OSError(errno.EACCES, str(error), path) from error
            case _:
                raise OSError(errno.EIO, str(error), path) from error
    except (BotoCoreError, ValueError) as error:
        raise OSError(errno.EIO, str(error), path) from error


_opening = threading.Lock()


def ask_s3(region: str, verb: str, **request: Any) -> None:
    """Make one request, once more where S3 refuses its keys: Arrow's client reads their file again, boto3's never."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - only tables on S3 need it

    try:
        getattr(s3_client(region), verb)(**request)
    except ClientError as error:
        if error.response["Error"]["Code"] not in _OLD_KEYS:
            raise
        _client.cache_clear()
        getattr(s3_client(region), verb)(**request)


def s3_client(region: str) -> Any:
    """Return boto3's client of S3; credentials and an endpoint are found where Arrow's own client finds them."""
    with _opening:
        return _client(region)


@cache
def _client(region: str) -> Any:
    import boto3  # noqa: PLC0415

    return boto3.session.Session().client("s3", region_name=region)


@_again
def _by_hadoop(filesystem: fs.FileSystem, path: str, content: bytes) -> bool:
    if not filesystem.handler.creates_only(path):
        return _renamed(filesystem, path, content)
    try:
        filesystem.handler.create_only(path, content)
    except FileExistsError:
        return False
    except OSError as error:
        if _CONTENDED in str(error):
            raise _ContendedError(error.errno, error.strerror, path) from error
        raise
    return True


def _looked_at_first(filesystem: fs.FileSystem, path: str, content: bytes) -> bool:
    if _is_there(filesystem, path):
        return False
    _written(filesystem, path, content)
    return True


def _renamed(filesystem: fs.FileSystem, path: str, content: bytes) -> bool:
    if _is_there(filesystem, path):
        return False
    temporary = _beside(path)
    try:
        _written(filesystem, temporary, content)
        filesystem.move(temporary, path)
    except OSError:
        with suppress(OSError):
            filesystem.delete_file(temporary)
        if not _is_there(filesystem, path):
            raise
        return False
    return True


def _is_there(filesystem: fs.FileSystem, path: str) -> bool:
    return filesystem.get_file_info(path).type is not fs.FileType.NotFound


def _written(filesystem: fs.FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def _beside(path: str) -> str:
    """Return a new path in the same directory; a leading underscore hides it from engines that list that."""
    return posixpath.join(posixpath.dirname(path), f"_{uuid.uuid4().hex}.tmp")
