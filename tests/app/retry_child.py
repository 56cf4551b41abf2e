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
from schemasync.core.layering import Mode
from schemasync.io.parquet import shards
from schemasync.io.parquet.merge import merge_shard
from tests.app.test_hadoop import TABLE, TOPIC, changes
from tests.lab import Lab, own_spark


def main(root: Path, home: Path) -> None:
    root.mkdir()
    died = root / "died"
    died.mkdir()

    def dies_once(*arguments: Any, alone: bool) -> Any:
        merged = merge_shard(*arguments, alone=alone)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            (died / str(context.taskAttemptId())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return merged

    # It has no name that a worker could import, so Spark sends it as it is.
    spark = own_spark(home, purpose="retries", master="local[2,2]")
    with patch.object(shards, "merge_shard", dies_once), spark as session:
        lab = Lab(root=root, session=session, database="retries")
        lab.settings = {"defaults": {"compaction": {"arrow_limit": "0", "shard_size": "1KB"}}}
        print(json.dumps(tell(lab, died)))  # noqa: T201


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
                "written": done.to_json()["shards_rewritten"],
                "died": len(list(died.iterdir())),
                "strangers": lab.strangers(),
            }
        )
    return told


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
