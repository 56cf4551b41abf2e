"""What something costs: wall time, CPU and bytes read of a process and all below it, what it wrote, memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil

_T = TypeVar("_T")

_MOST_LOOKS: Final = 20
"""So often all processes are looked at where some of them end meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds and bytes; ``value`` is what was returned. Files that are gone again at the end do not count as written.

    Bytes are read whether from a disk or from the page cache; None where the system does not count them (only Linux
    does by process).
    """

    value: Any
    wall_s: float
    cpu_s: float
    bytes_read: int | None
    bytes_written: int
    files_written: int


def measure(action: Callable[[], Any], *, root: Path) -> Cost:
    """Do something that writes below ``root``, and say what it cost."""
    before = _files(root)
    there, cpu, started = _bytes_read(), _cpu_s(), time.perf_counter()
    value = action()
    wall_s, cpu_s, read = time.perf_counter() - started, _cpu_s() - cpu, _bytes_read()
    written = [size for file, size in _files(root).items() if file not in before]
    return Cost(
        value=value,
        wall_s=wall_s,
        cpu_s=cpu_s,
        bytes_read=None if read is None or there is None else max(read - there, 0),
        bytes_written=sum(written),
        files_written=len(written),
    )


def _files(root: Path) -> dict[tuple[Path, int], int]:
    """Return path and time of change -> size: a file that was written over counts as a new one."""
    stats = ((path, path.stat()) for path in root.rglob("*") if path.is_file())
    return {(path, stat.st_mtime_ns): stat.st_size for path, stat in stats}


def _cpu_s() -> float:
    # Of a process that has ended its parent's children_* have the time.
    return sum(_of_all(lambda process: sum(process.cpu_times()[:4])))


def _bytes_read() -> int | None:
    if not hasattr(psutil.Process, "io_counters"):
        return None
    # Linux adds to a process's what those had read that it waited for.
    return sum(_of_all(lambda process: int(process.io_counters().read_chars)))


def _of_all(look: Callable[[Any], _T]) -> list[_T]:
    """Return what is found of this process and of all below it, while none of them ends.

    What one counted goes to its parent, which may have been looked at before.
    """
    process = psutil.Process()
    found: list[_T] = []
    for _ in range(_MOST_LOOKS):
        # Parents come first.
        there, found = [process, *process.children(recursive=True)], []
        for one in there:
            with suppress(psutil.NoSuchProcess):
                found.append(look(one))
        if len(found) == len(there):
            break
    return found


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
