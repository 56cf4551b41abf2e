"""What something costs: wall time, CPU of a process and all below it (JVM, Python workers), bytes written, memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The most bytes of memory (RSS) that parts of the program's process tree had at any moment.

    ``python`` is the program itself, ``worker`` the largest of Spark's Python workers.
    """

    python: int = 0
    jvm: int = 0
    worker: int = 0


_LOOK_S: Final = 0.02


def watched(process: subprocess.Popen[Any]) -> Peaks:
    """Wait for a program to end; look at its process tree fifty times a second."""
    peaks = Peaks()
    while process.poll() is None:
        for part, size in _sizes(process.pid):
            peaks = replace(peaks, **{part: max(getattr(peaks, part), size)})
        time.sleep(_LOOK_S)
    return peaks


def _sizes(pid: int) -> Iterator[tuple[str, int]]:
    """Yield part and RSS of every process of a tree; what ended just now is left out."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                if part := "python" if process == root else _part(process):
                    yield part, process.memory_info().rss


def _part(process: psutil.Process) -> str | None:
    """Name what runs below the program; shells and what is forked to become something else are nothing."""
    if process.name() == "java":
        return "jvm"
    return "worker" if any("pyspark.daemon" in word for word in process.cmdline()) else None
