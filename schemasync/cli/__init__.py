"""The command line: `main` is what the ``schemasync`` command runs, `program` what tests call."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Final

from schemasync.cli.program import program
from schemasync.cli.signals import ENDING

_OPEN_FILES: Final = 65_536
"""A merge opens every file of a shard's changes, and one for each user partition; systems allow 1,024 by themselves."""


def main() -> None:
    """Run this process's command line, and end the process with its exit code."""
    allow_open_files()
    try:
        program.main()
    finally:
        # Nothing is left to be ended but the interpreter, which takes its time and would die by them.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


def allow_open_files() -> None:
    """Let this process have as many files open as the system lets it say, where it says so."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


__all__ = ["allow_open_files", "main", "program"]
