"""Whoever is told to stop puts away what it began, and nothing outlives it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from benchmarks import places
from benchmarks.places import TAKEN, scratch
from benchmarks.processes import INTERRUPTED, end, helper


def soon(what: Callable[[], bool]) -> bool:
    latest = time.monotonic() + 20
    while not what() and time.monotonic() < latest:
        time.sleep(0.05)
    return what()


@contextmanager
def running(program: str) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """Lend a program that prints the id of a process that it started, and both are gone afterwards."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = psutil.Process(int(process.stdout.readline()))
        try:
            yield process, started
        finally:
            process.kill()
            if started.is_running():
                started.kill()


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


WITH_A_HELPER = "import os, time; from benchmarks.processes import helper; pool = helper(); {then}"
AT_WORK = "print(pool.submit(os.getpid).result(), flush=True); pool.submit(time.sleep, 60).result()"


def test_a_helper_ends_at_work_when_who_made_it_is_gone() -> None:
    with running(WITH_A_HELPER.format(then=AT_WORK)) as (process, started):
        process.kill()
        assert soon(lambda: ended(started))


def test_helpers_end_at_once_with_all_that_runs_below_them() -> None:
    pool = helper()
    below = psutil.Process(pool.submit(sleeping).result())
    asked, started = pool.submit(time.sleep, 60), time.monotonic()
    end([pool], at_once=True)
    assert (asked.done(), ended(below), time.monotonic() - started < 20) == (True, True, True)


def sleeping() -> int:
    """Start what ends when this process does, as a session's JVM."""
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE).pid


def test_who_is_terminated_puts_its_scratch_directory_away(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, sys, time
from benchmarks import places
from benchmarks.processes import stoppable
places._HERE = pathlib.Path({str(tmp_path)!r})
def main():
    with places.scratch("one"):
        print(os.getpid(), flush=True)
        time.sleep(60)
sys.exit(stoppable(main))
"""
    with running(program) as (process, _):
        assert (tmp_path / "scratch" / "one").is_dir()
        process.terminate()
        assert process.wait() == INTERRUPTED
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["one.lock"]


def test_the_whole_passes_on_that_it_is_terminated(tmp_path: Path) -> None:
    (tmp_path / "piece.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    program = f"""
import os, sys
from benchmarks import whole
from benchmarks.processes import stoppable
os.environ["PYTHONPATH"] = {str(tmp_path)!r}
sys.exit(stoppable(lambda: whole.python(["piece"])))
"""
    with running(program) as (process, started):
        process.terminate()
        assert (process.wait(), ended(started)) == (INTERRUPTED, True)


def test_the_whole_ends_a_piece_that_it_was_just_beginning(tmp_path: Path) -> None:
    """It is told between the piece's start and the moment in which it knows of that."""
    (tmp_path / "piece.py").write_text("import time; time.sleep(60)")
    program = f"""
import os, signal, subprocess, sys
from benchmarks import whole
from benchmarks.processes import stoppable
os.environ["PYTHONPATH"] = {str(tmp_path)!r}
begin = subprocess.Popen.__init__
def slowly(process, *args, **more):
    begin(process, *args, **more)
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen.__init__ = slowly
sys.exit(stoppable(lambda: whole.python(["piece"])))
"""
    with running(program) as (process, started):
        assert (process.wait(), ended(started)) == (INTERRUPTED, True)


def test_a_directory_that_somebody_works_in_is_left_to_him(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with patch.object(places, "_HERE", tmp_path):
        with scratch("one") as directory:
            (directory / "table").touch()
            with pytest.raises(SystemExit, match=str(TAKEN)), scratch("one"):
                pass
            assert (directory / "table").exists()
            with scratch("another"):
                pass
        with scratch("one") as directory:
            assert list(directory.iterdir()) == []
    assert "measures one already" in capsys.readouterr().err
