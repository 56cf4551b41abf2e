"""The command line: `main` is what the ``schemasync`` command runs, `program` what tests call."""

from __future__ import annotations

import signal

from schemasync.cli.program import program
from schemasync.cli.signals import ENDING


def main() -> None:
    """Run this process's command line, and end the process with its exit code."""
    try:
        program.main()
    finally:
        # Nothing is left to be ended but the interpreter, which takes its time and would die by them.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


__all__ = ["main", "program"]
