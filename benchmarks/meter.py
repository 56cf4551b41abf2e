"""What something costs: wall time, CPU of this process and all below it (JVM, Python workers), bytes written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds and bytes; ``value`` is what was returned. Files that are gone again at the end do not count."""

    value: Any
    wall_s: float
    cpu_s: float
    bytes_written: int
    files_written: int


def measure(action: Callable[[], Any], *, root: Path) -> Cost:
    """Do something that writes below ``root``, and say what it cost."""
    before = _files(root)
    cpu, started = _cpu_s(), time.perf_counter()
    value = action()
    wall_s, cpu_s = time.perf_counter() - started, _cpu_s() - cpu
    written = [size for file, size in _files(root).items() if file not in before]
    return Cost(value=value, wall_s=wall_s, cpu_s=cpu_s, bytes_written=sum(written), files_written=len(written))


def _files(root: Path) -> dict[tuple[Path, int], int]:
    """Return path and time of change -> size: a file that was written over counts as a new one."""
    stats = ((path, path.stat()) for path in root.rglob("*") if path.is_file())
    return {(path, stat.st_mtime_ns): stat.st_size for path, stat in stats}


def _cpu_s() -> float:
    process = psutil.Process()
    times = [process.cpu_times()]
    for child in process.children(recursive=True):
        try:
            times.append(child.cpu_times())
        except psutil.NoSuchProcess:  # it ended just now; its parent's children_* have its time
            continue
    return sum(sum(t[:4]) for t in times)
