"""What something costs, as the benchmark counts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.meter import measure

MB = 1 << 20


def test_what_is_read_and_what_is_left_behind_counts(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(bytes(3 * MB))

    def work() -> int:
        size = len((tmp_path / "old").read_bytes())
        (tmp_path / "new").write_bytes(bytes(2 * MB))
        (tmp_path / "passing").write_bytes(bytes(MB))
        (tmp_path / "passing").unlink()
        return size

    cost = measure(work, root=tmp_path)

    assert (cost.value, cost.bytes_written, cost.files_written) == (3 * MB, 2 * MB, 1)
    assert cost.bytes_read is None or 3 * MB <= cost.bytes_read < 4 * MB


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts by process")
def test_what_processes_below_read_counts(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(bytes(3 * MB))
    # It reads once it is asked to, and ends once nobody can ask any more.
    reads = "import sys; [print(len(open(sys.argv[1], 'rb').read()), flush=True) for line in sys.stdin]"
    with subprocess.Popen(
        [sys.executable, "-c", reads, str(tmp_path / "old")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as child:
        asks, tells = child.stdin, child.stdout
        assert asks is not None
        assert tells is not None

        def work() -> int:
            asks.write(b"read\n")
            return int(tells.readline())

        cost = measure(work, root=tmp_path)
        asks.close()

    assert cost.value == 3 * MB
    assert cost.bytes_read is not None
    assert cost.bytes_read >= 3 * MB
