"""What something costs, as the benchmark counts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from benchmarks.meter import Cost, measure

MB = 1 << 20

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts by process")


def alone(work: Callable[[Path], Cost], root: Path) -> Cost:
    """Do it in a new process: what reads here, and below, is not ours alone."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, root).result()


def reads_and_writes(root: Path) -> Cost:
    (root / "old").write_bytes(bytes(3 * MB))

    def work() -> int:
        size = len((root / "old").read_bytes())
        (root / "new").write_bytes(bytes(2 * MB))
        (root / "passing").write_bytes(bytes(MB))
        (root / "passing").unlink()
        return size

    return measure(work, root=root)


def test_what_is_read_and_what_is_left_behind_counts(tmp_path: Path) -> None:
    cost = alone(reads_and_writes, tmp_path)
    assert (cost.value, cost.bytes_written, cost.files_written) == (3 * MB, 2 * MB, 1)
    assert cost.bytes_read is None or 3 * MB <= cost.bytes_read < 4 * MB


def nothing(root: Path) -> Cost:
    with ExitStack() as others:
        for _ in range(20):
            child = others.enter_context(below(root))
            child.read()
        return measure(lambda: None, root=root)


@on_linux
def test_what_the_meter_reads_itself_does_not_count(tmp_path: Path) -> None:
    cost = alone(nothing, tmp_path)
    assert cost.bytes_read is not None
    assert cost.bytes_read < 4096


class Below:
    """A process that reads a file each time it is asked to, and ends when it is told to."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def read(self) -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(b"read\n")
        return int(self._child.stdout.readline())

    def end(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


@contextmanager
def below(root: Path) -> Iterator[Below]:
    (root / "old").write_bytes(bytes(3 * MB))
    reads = "import sys; [print(len(open(sys.argv[1], 'rb').read()), flush=True) for line in sys.stdin]"
    command = [sys.executable, "-c", reads, str(root / "old")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        made = Below(child)
        yield made
        made.end()


def one_below_reads(root: Path) -> Cost:
    with below(root) as child:
        return measure(child.read, root=root)


@on_linux
def test_what_processes_below_read_counts(tmp_path: Path) -> None:
    cost = alone(one_below_reads, tmp_path)
    assert cost.value == 3 * MB
    assert cost.bytes_read is not None
    assert 3 * MB <= cost.bytes_read < 4 * MB


def one_below_ends(root: Path) -> Cost:
    """What it had read before is its parent's by then, which may have been looked at already."""
    looked = psutil.Process.io_counters
    with below(root) as child, ExitStack() as patches:
        child.read()

        def then_it_ends(process: psutil.Process) -> object:
            found: object = looked(process)
            child.end()
            return found

        def work() -> int:
            patches.enter_context(patch.object(psutil.Process, "io_counters", then_it_ends))
            return child.read()

        return measure(work, root=root)


@on_linux
def test_what_one_read_before_does_not_count_though_it_ends_while_it_is_looked_at(tmp_path: Path) -> None:
    cost = alone(one_below_ends, tmp_path)
    assert cost.bytes_read is not None
    assert 3 * MB <= cost.bytes_read < 4 * MB
