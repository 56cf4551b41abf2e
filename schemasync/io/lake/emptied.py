"""Directories that are deleted only where they are empty, in one step of the storage: somebody may be writing there.

Arrow can delete directories only with all that is in them. On S3 it puts an empty object in the place of a directory
whose last file it deletes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyarrow import fs

from schemasync.io.lake.creating import ask_s3
from schemasync.io.lake.hadoop import HadoopFileSystem

Remove = Callable[[str], None]
"""(path) -> deletes a directory.

Raises:
    OSError: there is something in it, it is not there, or it cannot be deleted.
"""


def removal(filesystem: fs.FileSystem) -> Remove:
    """Return how empty directories are deleted; on Google's and Azure's storage, and in memory, they stay."""
    if isinstance(filesystem, fs.LocalFileSystem):
        return _from_disk
    if isinstance(filesystem, fs.PyFileSystem) and isinstance(filesystem.handler, HadoopFileSystem):
        remove: Remove = filesystem.handler.remove_directory
        return remove
    if isinstance(filesystem, fs.S3FileSystem):
        return partial(_from_s3, filesystem.region)
    return _nothing


def _from_disk(path: str) -> None:
    Path(path).rmdir()


def _from_s3(region: str, path: str) -> None:
    """Delete the object that stands for a directory: what lies below it has other names."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only tables on S3 need it

    bucket, _, key = path.partition("/")
    try:
        ask_s3(region, "delete_object", Bucket=bucket, Key=f"{key}/")
    except (BotoCoreError, ClientError, ValueError) as error:
        raise OSError(errno.EIO, str(error), path) from error


def _nothing(path: str) -> None:
    del path
