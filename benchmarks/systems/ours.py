"""schemasync, as `schemasync compact` and `schemasync apply` run it, with a clock that goes an hour with every set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from benchmarks.history import Step
from benchmarks.systems.base import Setting
from benchmarks.values import avro_schema
from schemasync.app.applying import apply
from schemasync.app.compacting import Compacted, compact
from schemasync.app.opening import now_ms, workspace_of
from schemasync.app.workspace import Workspace
from schemasync.core.config import Config
from schemasync.core.layering import Mode

_TOPIC: Final = "bench.public.orders"
_HOUR_MS: Final = 3_600_000


class Schemasync:
    """One table of a configuration with a registry of files; everything else is as by default.

    Directories go an hour after their partitions did, not a week: a benchmark's day is short and its disk is small.
    """

    layered = True
    relation = "lake.orders_view"

    def __init__(self, setting: Setting) -> None:
        """Write a registry with one version of one subject."""
        self.root = setting.root
        self._session = setting.session
        self._hours = 0
        self._replaced: list[str] = []
        subject = self.root / "registry" / f"{_TOPIC}-value"
        subject.mkdir(parents=True)
        (subject / "1.avsc").write_text(json.dumps(avro_schema(setting.key)))
        self._workspace = self._wired()

    def _wired(self) -> Workspace:
        config = {
            "registry": {"url": f"file://{self.root}/registry"},
            "defaults": {
                "location": f"file://{self.root}/{{topic}}",
                "compaction": {"vacuum_retention": "1h"},
            },
            "tables": [{"subject": f"{_TOPIC}-value", "table": "orders", "keys": ["id"]}],
        }
        clock = lambda: now_ms() + self._hours * _HOUR_MS  # noqa: E731 - it is one
        return workspace_of(Config.model_validate(config), self._session, clock=clock)

    def prepare(self, base: Path) -> None:
        """Land the base as a snapshot, and make it the base by a first compaction."""
        self._link(base, 0)
        self.compact()

    def land(self, step: Step) -> None:
        """Link the change set into the increment of its hour."""
        self._hours += 1
        self._link(step.landed, step.number)

    def _link(self, files: Path, hour: int) -> None:
        day, hour = divmod(hour, 24)
        increment = self.root / _TOPIC / "incremental" / f"increment_202611{day + 1:02}{hour:02}"
        increment.mkdir(parents=True)
        for file in sorted(files.glob("*.parquet")):
            (increment / file.name).hardlink_to(file)

    def compact(self) -> None:
        """Admit, and fold or merge as it decides."""
        done = self._compacted(Mode.AUTO)
        if done.fold is None and done.merge is None:
            raise RuntimeError("the compaction found nothing to fold")

    def _compacted(self, mode: Mode) -> Compacted:
        table = compact(self._workspace, mode=mode).tables[0]
        if table.failure or table.applied.held:
            raise RuntimeError(f"the compaction failed: {table.to_json()}, {table.applied.diagnostics}")
        rewritten = table.fold.rewrite if table.fold else ()
        self._replaced = [f"{self.root}/{_TOPIC}/{file.path}" for shard in rewritten for file in shard.files]
        return table

    def show(self) -> None:
        """Admit, so that the view has it."""
        table = apply(self._workspace).tables[0]
        if table.error or table.held:
            raise RuntimeError(f"the change set was not admitted: {table.to_json()}")

    def settle(self) -> None:
        """Fold what was admitted, if there is something."""
        self._compacted(Mode.MAJOR)

    def tidy(self) -> None:
        """Do nothing: compactions retire what is due."""

    def replaced(self) -> list[str]:
        """Return the base's files that the last compaction replaced; none where it left the changes beside the base."""
        return self._replaced
