"""The published recipe that schemasync grew from: every hour a window over base and increment, and a new base.

With its mistakes put right (UNION ALL, the filter outside of the window, deletes filtered by the view), or it would
not take part: wrong results do not count.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from benchmarks.history import Step
from benchmarks.systems.base import Setting
from benchmarks.values import ENVELOPE, NAMES

_COLUMNS: Final = ", ".join((*NAMES, *ENVELOPE))


class Recipe:
    """Two external tables, a view over both, and a compactor that starts from nothing every time."""

    layered = True
    relation = "recipe_view"

    def __init__(self, setting: Setting) -> None:
        """Make no more than the directories."""
        self.root = setting.root
        self._setting = setting
        self._base, self._incremental = self.root / "base_dir", self.root / "incremental"
        self._compactor = self.root / "compactor"
        self._incremental.mkdir(parents=True)

    def prepare(self, base: Path) -> None:
        """Write the base with Spark, and define tables and view."""
        rows = self._setting.session.read.parquet(str(base)).selectExpr(*NAMES, *ENVELOPE)
        sorted_rows = rows.repartitionByRange(self._setting.files, "id").sortWithinPartitions("id")
        sorted_rows.write.parquet(str(self._base))
        columns = rows.schema.simpleString().removeprefix("struct<").removesuffix(">").replace(":", " ")
        for name, place in (("recipe_base", self._base), ("recipe_incremental", self._incremental)):
            self._sql(f"CREATE TABLE {name} ({columns}) USING parquet LOCATION '{place}'")
        newest = f"SELECT {', '.join(NAMES)} FROM ({self._newest()}) AS newest WHERE op <> 'd'"
        self._sql(f"CREATE VIEW recipe_view AS {newest}")

    def land(self, step: Step) -> None:
        """Link the files to where the external table looks."""
        for file in sorted(step.landed.glob("*.parquet")):
            (self._incremental / f"{step.number:04}-{file.name}").hardlink_to(file)
        self._refresh()

    def compact(self) -> None:
        """Write everything anew beside the base, copy it over the base, delete the increment."""
        shutil.rmtree(self._compactor, ignore_errors=True)
        self._refresh()
        self._setting.session.sql(self._newest()).write.parquet(str(self._compactor))
        for file in self._base.iterdir():
            file.unlink()
        for file in sorted(self._compactor.glob("*.parquet")):
            shutil.copyfile(file, self._base / file.name)
        for file in self._incremental.iterdir():
            file.unlink()
        self._refresh()

    def show(self) -> None:
        """Do nothing: the view reads the increment where it landed."""

    def settle(self) -> None:
        """Compact."""
        self.compact()

    def tidy(self) -> None:
        """Remove the compactor's copy."""
        shutil.rmtree(self._compactor, ignore_errors=True)

    def _newest(self) -> str:
        both = f"SELECT {_COLUMNS} FROM recipe_base UNION ALL SELECT {_COLUMNS} FROM recipe_incremental"
        order = "ORDER BY ts_ms DESC, kafka_offset DESC"
        ranked = f"SELECT *, row_number() OVER (PARTITION BY id {order}) AS n FROM ({both}) AS events"
        return f"SELECT {_COLUMNS} FROM ({ranked}) AS ranked WHERE n = 1"

    def _refresh(self) -> None:
        for name in ("recipe_base", "recipe_incremental"):
            self._setting.session.catalog.refreshTable(name)

    def _sql(self, statement: str) -> None:
        self._setting.session.sql(statement)
