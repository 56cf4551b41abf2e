"""Whose fault it is that a file cannot be read: its own, or that of a storage that fails, which may pass.

Used where landed files are read: a corrupt one waits for a person, and is not to be taken for one because of a
connection that broke. Files that we wrote ourselves must be readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from schemasync.errors import StorageError

_OF_REMOTE: Final = re.compile(r"AWS Error|google::cloud::|Azure Error")
"""How Arrow's file systems for S3, Google's and Azure's storage begin the reason of an OSError (26.0)."""
_OF_THE_FILE: Final = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


def is_of_storage(error: Exception) -> bool:
    """Tell whether a storage failed.

    What is wrong with a file's content Arrow raises as an OSError, too (a page that cannot be unpacked, a footer that
    makes no sense): without a number, as those of its remote file systems are.
    """
    if not isinstance(error, OSError) or isinstance(error, _OF_THE_FILE):
        return False
    return error.errno is not None or type(error) is not OSError or _OF_REMOTE.search(str(error)) is not None


def not_read(path: str, error: Exception) -> StorageError:
    """Return the error of a storage that failed while a landed file was read."""
    return StorageError(
        "the storage failed while a landed file was read",
        where=path,
        why=str(error).splitlines()[0] if str(error) else type(error).__name__,
        fix="Run again, and look at the storage if it goes on; nothing of the file was admitted.",
    )


@contextmanager
def reading_back(path: str) -> Iterator[None]:
    """Raise a StorageError where a file that we wrote cannot be read."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise StorageError("a written file does not read back", where=path, why=str(error)) from error
