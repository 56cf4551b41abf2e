"""How many files a process may have open where shards are merged: systems allow 1,024 by themselves."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Final

_OPEN_FILES: Final = 65_536
"""A merge opens every file of a shard and of its changes, of each one for each user partition, and writes as many."""

MORE_FILES: Final = (
    "Let the process, and Spark's workers, have more files open (ulimit -n), or have fewer user partitions; "
    "the old state is in force."
)
"""What to do where all that the system allows is not enough."""


def allow_open_files() -> None:
    """Let this process have as many files open as the system lets it say, where it says so."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def is_too_many(error: Exception) -> bool:
    """Tell whether an error says that no more files may be open."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
