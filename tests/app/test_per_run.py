"""The tables of a compaction by SQL, as statements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from schemasync.app.per_run import MOST_HOURS, per_run_tables
from tests.app.still import Still, avro
from tests.core.builders import fresh, landed, segment


def test_a_long_backlog_has_tables_of_its_newest_hours_alone(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register(avro(("name", ["null", "string"])))
    (plan,) = still.plan().tables
    assert plan.view is not None
    assert plan.view.decision.effective is not None
    hours = [f"20261{month}{day:02}12" for month in (1, 2) for day in range(1, 31)]
    files = tuple(landed(f"incremental/increment_{hour}/a.parquet", "delta_000001") for hour in hours)
    delta = segment("delta_000001")
    manifest = fresh().model_copy(update={"segments": (delta,), "admitted": files})
    told: list[str] = []
    sql: Any = SimpleNamespace(execute=told.append)
    workspace = replace(still.workspace, sql=sql)
    run = per_run_tables(
        workspace, plan.target, plan.view.decision.effective, manifest, deltas=[delta], directory="base/g=000001/x"
    )
    with run:
        names = [text.split("`")[3] for text in told]
    assert names == [
        "student_base",
        *(f"student_incremental_{hour}" for hour in hours[-MOST_HOURS:]),
        "student_compactor",
    ]
