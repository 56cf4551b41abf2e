"""Where benchmarks write: figures that stay, below ``out``, and scratch directories, which go."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_HERE: Final = Path(__file__).parent
OUT: Final = _HERE / "out"
"""The directory of figures, where no other is asked for."""

TAKEN: Final = 75
"""Exit code of whoever found its scratch directory taken (EX_TEMPFAIL): it may try again later."""


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Yield an empty directory that nobody else has meanwhile; whatever becomes of the work in it, it is deleted then.

    It is named as the file of figures that is written meanwhile, so that no two write the same one.

    Raises:
        SystemExit: another process has it.
    """
    directory = _HERE / "scratch" / name
    with _alone(directory.with_name(f"{name}.lock")), emptied(directory):
        yield directory


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock, which the system takes from whoever ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            print(f"Process {held.read()} measures {lock.stem} already; stop it or wait for its end", file=sys.stderr)
            raise SystemExit(TAKEN) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield


@contextmanager
def emptied(directory: Path) -> Iterator[Path]:
    """Yield a directory with nothing in it, and delete it then."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_figures(path: Path, figures: Any) -> None:
    """Write figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")
