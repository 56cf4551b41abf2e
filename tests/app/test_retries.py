"""Spark tries a task again whose worker was killed: the shard is that of one try, and nothing is left of the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import SHORT_LIVED

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]


def test_a_shard_whose_first_task_was_killed_is_that_of_the_second_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.app.retry_child", str(tmp_path / "lab"), str(tmp_path / "home")],
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **SHORT_LIVED},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    deaths = [one.pop("died") for one in told]
    written = [one.pop("written") for one in told]
    assert told == [
        {"failure": None, "kind": kind, "changed": changed, "rows": 150, "strangers": []}
        for kind, changed in (
            ("major", []),
            ("minor", [2, 102]),
            ("minor", [2, 3, 102, 103]),
            ("major", [2, 3, 4, 102, 103, 104]),
        )
    ]
    # A task for each shard, and one for what is merged beside the base: the first change lies there as it was admitted.
    assert min(written[0], written[3]) > 1
    assert deaths == [written[0], written[0], written[0] + 1, written[0] + 1 + written[3]]
