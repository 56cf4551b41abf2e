"""The command line: `main` is what the ``schemasync`` command runs, `program` what tests call."""

from __future__ import annotations

from schemasync.cli.program import program


def main() -> None:
    """Run this process's command line, and end the process with its exit code."""
    program.main()


__all__ = ["main", "program"]
