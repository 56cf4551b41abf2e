"""Where benchmarks write: figures that stay, below ``out``, and scratch directories, which go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_HERE: Final = Path(__file__).parent
OUT: Final = _HERE / "out"
"""The directory of figures, where no other is asked for."""


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Yield an empty directory; whatever becomes of the work in it, it is deleted then."""
    directory = _HERE / "scratch" / name
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
