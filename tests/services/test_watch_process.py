"""``schemasync watch`` as a process of its own: killed at any point, stopped by SIGTERM, run once by cron."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from tests.services.project import PATIENCE_SECONDS, Project, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

KILLED_AFTER = ("looking at table", "folding", "is compacted")
"""What the watcher says before apply, before and after a fold; the kill comes within 1.5 s of it."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.register("name")
    made.land(10, ("name",))
    return made


def test_killed_anywhere_the_next_run_shows_every_event(project: Project) -> None:
    dice = random.Random()  # noqa: S311 - where a kill strikes is no secret
    columns: tuple[str, ...] = ("name",)
    for step in KILLED_AFTER:
        with project.watching(until=step) as process:
            project.land(5, columns)
            time.sleep(dice.uniform(0, 1.5))
            process.send_signal(signal.SIGKILL)
        columns = (*columns, f"column{len(columns)}")
        project.register(*columns)
        project.land(5, columns)
    last = project.run("watch", "--once", "--json")
    assert (last.returncode, project.rows()) == (0, project.expected), last.stderr


def test_sigterm_finishes_the_step_at_hand_and_exits_with_0(project: Project) -> None:
    with project.watching(until="looking at table") as process:
        wait_for(lambda: project.told, process)
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_SECONDS)
    assert (code, [(e["table"], e["from_version"], e["to_version"]) for e in project.told]) == (
        0,
        [("student", None, 1)],
    )
