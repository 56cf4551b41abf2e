"""What physics allows: Arrow reads and writes the files that schemasync replaced, and Spark scans plain files."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from benchmarks.history import Step
from benchmarks.systems.base import Setting
from benchmarks.values import NAMES

CORES: Final = 2


class Limit:
    """Merges nothing. Its table is the truth itself, so what it answers is right by definition."""

    layered = False
    relation = "limit_view"

    def __init__(self, setting: Setting) -> None:
        """Use a directory for what is rewritten."""
        self.root = setting.root
        self._session = setting.session
        self.root.mkdir(parents=True)

    def prepare(self, base: Path) -> None:
        """Show the base."""
        self._show(base)

    def land(self, step: Step) -> None:
        """Show the truth after the change set."""
        self._show(step.truth)

    def _show(self, files: Path) -> None:
        self._session.read.parquet(str(files)).select(*NAMES).createOrReplaceTempView(self.relation)

    def rewrite(self, files: list[str]) -> None:
        """Read files and write them again, as many at once as there are cores."""
        with ThreadPoolExecutor(CORES) as threads:
            list(threads.map(self._rewrite, files))

    def _rewrite(self, file: str) -> None:
        with (
            pq.ParquetFile(file) as parquet,
            pq.ParquetWriter(self.root / os.path.basename(file), parquet.schema_arrow) as writer,  # noqa: PTH119
        ):
            for group in range(parquet.num_row_groups):
                writer.write_table(parquet.read_row_group(group))

    def compact(self) -> None:
        """Do nothing."""

    def show(self) -> None:
        """Do nothing."""

    def settle(self) -> None:
        """Do nothing."""

    def tidy(self) -> None:
        """Remove what was rewritten."""
        shutil.rmtree(self.root)
        self.root.mkdir()
