"""Encodings of files of ours: a dictionary where values repeat, and only there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.io.parquet.writing import open_writer

ROWS, MEMORY = 262_144, 2**27


@pytest.mark.parametrize(
    ("distinct", "has_one"), [(1, True), (1_000, True), (20_000, True), (120_000, False), (ROWS, False)]
)
@pytest.mark.parametrize("chunks", [1, 40])
@pytest.mark.parametrize("nulls", [0, 0.3])
def test_a_column_has_a_dictionary_where_its_values_repeat(
    tmp_path: Path, distinct: int, has_one: bool, chunks: int, nulls: float
) -> None:
    random = Random(1)  # noqa: S311 - the same ones every time
    chosen = random.choices(range(distinct), k=ROWS) if distinct < ROWS else range(ROWS)
    values = pa.array(None if random.random() < nulls else value for value in chosen)
    step = ROWS // chunks
    pieces = [values.slice(n, step) for n in range(0, ROWS, step)]
    table = pa.table({"number": pa.chunked_array(pieces), "text": pa.chunked_array([p.cast("string") for p in pieces])})
    path = str(tmp_path / "a.parquet")
    with open_writer(fs.LocalFileSystem(), path, table, MEMORY) as writer:
        writer.write_table(table)
    group = pq.read_metadata(path).row_group(0)
    assert [group.column(n).has_dictionary_page for n in range(2)] == [has_one, has_one]
