"""What something costs: wall time, CPU and bytes read of a process and all below it, what it wrote, memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil

_MOST_LOOKS: Final = 20
"""So often all processes are looked at where some of them end meanwhile."""
_COUNTS_READ: Final = hasattr(psutil.Process, "io_counters")


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
    before, tree = _files(root), _Tree()
    # To look reads, too, some hundred bytes for each process of the machine.
    there, started = tree.spent(own_last=True), time.perf_counter()
    value = action()
    wall_s, spent = time.perf_counter() - started, tree.spent(own_last=False)
    written = [size for file, size in _files(root).items() if file not in before]
    return Cost(
        value=value,
        wall_s=wall_s,
        cpu_s=spent.cpu_s - there.cpu_s,
        bytes_read=max(spent.read - there.read, 0) if _COUNTS_READ else None,
        bytes_written=sum(written),
        files_written=len(written),
    )


def _files(root: Path) -> dict[tuple[Path, int], int]:
    """Return path and time of change -> size: a file that was written over counts as a new one."""
    stats = ((path, path.stat()) for path in root.rglob("*") if path.is_file())
    return {(path, stat.st_mtime_ns): stat.st_size for path, stat in stats}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spent:
    """What processes have taken since they began, and those that they waited for: seconds of CPU, bytes read."""

    cpu_s: float = 0.0
    read: int = 0

    def __add__(self, other: _Spent) -> _Spent:
        return _Spent(cpu_s=self.cpu_s + other.cpu_s, read=self.read + other.read)


class _Tree:
    """What is measured: this process and all below it."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._below: list[psutil.Process] = []

    def spent(self, *, own_last: bool) -> _Spent:
        """Return what all of them have taken, while none of them ends.

        What one took goes to its parent when it ends, which may have been looked at before.
        """
        found: list[_Spent] = []
        for _ in range(_MOST_LOOKS):
            known = [process for process in self._below if _is_there(process)]
            found = [] if own_last else [_look(self._own)]
            # Parents come first.
            self._below = self._own.children(recursive=True)
            for process in (*self._below, self._own) if own_last else self._below:
                with suppress(psutil.NoSuchProcess):
                    found.append(_look(process))
            if len(found) == len(self._below) + 1 and all(map(_is_there, (*known, *self._below))):
                break
        return sum(found, start=_Spent())


def _look(process: psutil.Process) -> _Spent:
    # Of a process that has ended its parent's children_* have the time; Linux adds what it read to what its parent did.
    cpu_s = sum(process.cpu_times()[:4])
    return _Spent(cpu_s=cpu_s, read=int(process.io_counters().read_chars) if _COUNTS_READ else 0)


def _is_there(process: psutil.Process) -> bool:
    """Tell whether nobody has waited for a process yet; nothing is read for that."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


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
