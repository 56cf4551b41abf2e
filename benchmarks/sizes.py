"""The size of the base's files against Spark's own: `python -m benchmarks.sizes`.

schemasync lays a generated snapshot out by its first compaction. Spark reads those files and writes the same rows and
columns, sorted by the same key, into as many files, by its own defaults and with the same codec.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from benchmarks.history import History
from benchmarks.places import OUT, scratch, write_figures
from benchmarks.processes import stoppable
from benchmarks.sessions import started
from benchmarks.systems.base import Setting
from benchmarks.systems.ours import Schemasync
from benchmarks.trial import say
from benchmarks.values import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of the same rows, ``ours`` and as Spark writes them, and their ratio."""

    key: Key
    rows: int
    files: int
    ours: int
    spark: int
    ratio: float


def measured(root: Path, key: Key, rows: int) -> Sizes:
    """Write a base both ways.

    Raises:
        RuntimeError: Spark did not write the rows that it read.
    """
    base = History(root / "data", rows=rows, key=key, changes_of=rows).base
    session = started(root / "home", memory="2g")
    system = Schemasync(Setting(session=session, home=root, name="sizes", rows=rows, key=key))
    system.prepare(base)
    ours = sorted(system.root.glob("*/base/**/*.parquet"))
    read = session.read.parquet(*map(str, ours))
    again = root / "again"
    by_key = read.repartitionByRange(len(ours), "id").sortWithinPartitions("id")
    by_key.write.option("compression", "snappy").parquet(str(again))
    if session.read.parquet(str(again)).count() != rows:
        raise RuntimeError(f"{key}: Spark did not write {rows} rows")
    session.stop()
    written = _bytes(again.glob("*.parquet"))
    return Sizes(
        key=key, rows=rows, files=len(ours), ours=_bytes(ours), spark=written, ratio=round(_bytes(ours) / written, 3)
    )


def _bytes(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def main() -> int:
    """Run what the arguments say, and write what was found as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.sizes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the base")
    parser.add_argument("--key", choices=get_args(Key), default="bigint", help="type of the key")
    parser.add_argument("--out", type=Path, default=OUT / "sizes.json", help="where the figures are written")
    given = parser.parse_args()
    with scratch(given.out.stem) as root:
        found = measured(root, given.key, given.rows)
        write_figures(given.out, asdict(found))
    say(f"{found.key}: {found.ours} bytes in {found.files} files, {found.spark} as Spark writes them: {found.ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
