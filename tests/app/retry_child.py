"""A lab whose Spark tries tasks again, and whose merging tasks all die once: ``ROOT HOME``. Started by test_retries.

They die by SIGKILL when their shard is written whole and not reported yet. Prints what was seen as one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import TaskContext

from schemasync.app.compacting import compact
from schemasync.app.inspecting import map_tables
from schemasync.app.states import properties_in_force, read_manifest
from schemasync.core.layering import Mode
from schemasync.core.manifest import Manifest
from schemasync.io.java import find_java
from schemasync.io.parquet import shards
from schemasync.io.parquet.merge import merge_shard
from schemasync.io.spark_session import SessionSettings, held, start_session
from tests.app.test_hadoop import TABLE, TOPIC, changes
from tests.lab import Lab


def main(root: Path, home: Path) -> None:
    root.mkdir()
    died = root / "died"
    died.mkdir()

    def dies_once(*arguments: Any) -> Any:
        merged = merge_shard(*arguments)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            (died / str(context.taskAttemptId())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return merged

    # It has no name that a worker could import, so Spark sends it as it is.
    with patch.object(shards, "merge_shard", dies_once), held(home, purpose="retries"):
        java = find_java(os.environ, cache_dir=home / "java")
        settings = SessionSettings(home=home, master="local[2,2]")
        session = start_session(settings, java_home=java.home, python=sys.executable)
        lab = Lab(root=root, session=session, database="retries")
        lab.settings = {"defaults": {"compaction": {"arrow_limit": "0", "shard_size": "1KB"}}}
        print(json.dumps(tell(lab, died)))  # noqa: T201
        session.stop()


def tell(lab: Lab, died: Path) -> list[dict[str, object]]:
    lab.register(TOPIC, lab.flat("Student", ("n", "int")))
    told = []
    for step, mode in enumerate((Mode.MAJOR, Mode.MINOR, Mode.MINOR, Mode.MAJOR), start=1):
        keys = range(150) if step == 1 else (step, 100 + step)
        lab.land(TOPIC, changes(*keys, ts_ms=step), hour=f"202611200{step}")
        lab.now_ms += 1000
        (done,) = compact(lab.workspace, mode=mode).tables
        rows = {row["id"]: row["n"] for row in lab.rows(TABLE)}
        told.append(
            {
                "failure": done.failure and str(done.failure),
                "kind": done.to_json()["kind"],
                "changed": sorted(key for key, n in rows.items() if n > 1),
                "rows": len(rows),
                "died": len(list(died.iterdir())),
                "strangers": strangers(lab),
            }
        )
    return told


def strangers(lab: Lab) -> list[str]:
    """Return the directories with files of ours that no manifest in force knows."""
    workspace = lab.workspace
    (target,) = map_tables(workspace).targets
    properties = properties_in_force(workspace, target)
    assert properties is not None
    lake = workspace.storage(target).lake
    manifest: Manifest = read_manifest(lake, target, properties)
    found = {file.path for top in ("base", "delta", "_schemasync/staging") for file in lake.files(top)}
    known = tuple(f"{location}/" for location in manifest.locations)
    return sorted(path for path in found if not path.startswith(known))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
