"""The generated data on disk: the base, one landed change set after the other, and the truth after each.

Files are those of a sink: Parquet with the writer's Avro schema in the footer, six for every hour. Systems read them
where they are, or link them to where they want them.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.changes import Shape, Source, base_tables
from benchmarks.truth import fold
from benchmarks.values import Key, avro_schema

FILES_PER_SET: Final = 6
"""A sink that flushes every ten minutes leaves so many files in an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change set that landed, and what every system must show with it. ``number`` counts from 1."""

    number: int
    landed: Path
    landed_bytes: int
    truth: Path


class History:
    """Generates the base at once and the change sets when they are asked for; only the newest truth is kept."""

    def __init__(self, root: Path, *, rows: int, key: Key, changes_of: int) -> None:
        """Write below ``root``; shapes that are a part of the base are a part of ``changes_of`` rows."""
        self.base = root / "base"
        self._root = root
        self._changes_of = changes_of
        self._source = Source(rows=rows, key=key)
        self._avro = json.dumps(avro_schema(key))
        self._truth = self.base
        self._number = 0
        self.base.mkdir(parents=True)
        for number, table in enumerate(base_tables(rows, key)):
            self._write(table, self.base / f"part-{number:05}.parquet")

    def advance(self, shape: Shape) -> Step:
        """Let the next change set land, and fold it into the truth."""
        self._number += 1
        events = self._source.change(shape, self._changes_of)
        landed = self._fresh("landed")
        size = ceil(len(events) / FILES_PER_SET)
        for number in range(FILES_PER_SET):
            if part := events.slice(number * size, size):
                self._write(part, landed / f"orders+0+{number}.parquet")
        before, self._truth = self._truth, self._fresh("truth")
        parts = (pq.read_table(path) for path in sorted(before.glob("*.parquet")))
        for number, table in enumerate(fold(parts, events)):
            pq.write_table(table, self._truth / f"part-{number:05}.parquet")
        if before != self.base:
            shutil.rmtree(before)
        landed_bytes = sum(path.stat().st_size for path in landed.iterdir())
        return Step(number=self._number, landed=landed, landed_bytes=landed_bytes, truth=self._truth)

    def _fresh(self, kind: str) -> Path:
        directory = self._root / kind / f"{self._number:04}"
        directory.mkdir(parents=True)
        return directory

    def _write(self, table: pa.Table, path: Path) -> None:
        pq.write_table(table.replace_schema_metadata({"parquet.avro.schema": self._avro}), path, store_schema=False)
