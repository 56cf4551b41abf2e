"""The newest event per key in Spark, by a window or by `max_by` on a struct: `python -m benchmarks.dedup`.

Both read the same decoded events and write the same delta, as the admission of large increments does: its own window,
and a rival that decides by the same total order. Results are compared before any time counts; the two take turns.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.meter import measure
from benchmarks.places import OUT, scratch, write_figures
from benchmarks.processes import stoppable
from benchmarks.sessions import started
from benchmarks.trial import say
from benchmarks.values import COLUMNS, below, count_up, noise
from schemasync.core.admission import AdmissionRequest
from schemasync.io.parquet.spark import ARRIVAL, newest_per_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = 8
_ORDERING: Final = ("ts_ms", "kafka_offset")
_REQUEST: Final = AdmissionRequest(
    files=(),
    directory="",
    columns=(),
    keys=("id",),
    ordering=_ORDERING,
    schema_version=1,
    admitted_ms=0,
    memory=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Columns beside the key, and events per key on average."""

    columns: int
    events: float


SHAPES: Final = tuple(Shape(columns=c, events=e) for c, e in product((3, 38), (1.5, 20)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A shape's repetitions: wall and CPU seconds by form; ratios are those of medians, max_by's to the window's."""

    columns: int
    events: float
    rows: int
    wall_s: dict[str, list[float]]
    cpu_s: dict[str, list[float]]
    wall_ratio: float
    cpu_ratio: float


def by_window(events: DataFrame) -> DataFrame:
    """Let the admission's own code choose."""
    return newest_per_key(events, _REQUEST, frozenset())


def by_max_by(events: DataFrame) -> DataFrame:
    """Choose by an aggregate: structs compare field by field, and a null is smallest, as in the window's order."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    # The key comes from the grouping: Spark would not know that rows are sorted by a field of the struct.
    kept = [name for name in events.columns if name not in {"id", ARRIVAL}]
    newest = f.max_by(f.struct(*kept), f.struct(*_ORDERING, ARRIVAL))
    chosen = events.groupBy("id").agg(newest.alias("newest"))
    return chosen.select("id", "newest.*").sortWithinPartitions("id")


FORMS: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {"window": by_window, "max_by": by_max_by}


def decoded(directory: Path, shape: Shape, rows: int) -> None:
    """Write events as the decoding of landed files leaves them; some tie, some have no time."""
    directory.mkdir(parents=True)
    keys = max(int(rows / shape.events), 1)
    for number in range(_FILES):
        numbers = count_up(number * rows // _FILES, (number + 1) * rows // _FILES - number * rows // _FILES)
        time_ms = below(noise(numbers, 1), 1000)
        columns = {"id": below(noise(numbers, 2), keys)}
        for place in range(shape.columns):
            column = COLUMNS[place % len(COLUMNS)]
            columns[f"{column.name}_{place}"] = column.build(noise(numbers, 10 + place))
        columns["ts_ms"] = pc.if_else(pc.equal(below(time_ms, 50), 0), pa.scalar(None, pa.int64()), time_ms)
        columns["kafka_offset"] = below(noise(numbers, 3), 10)
        columns[ARRIVAL] = numbers.cast(pa.int64())
        pq.write_table(pa.table(columns), directory / f"part-{number:03}.parquet", store_schema=False)


def compared(session: SparkSession, root: Path, shape: Shape, rows: int, reps: int) -> Found:
    """Let both forms work, in turn and every other time in reverse order.

    Raises:
        RuntimeError: they did not write the same rows.
    """
    events = root / "events"
    decoded(events, shape, rows)
    wall_s: dict[str, list[float]] = {name: [] for name in FORMS}
    cpu_s: dict[str, list[float]] = {name: [] for name in FORMS}
    for rep in range(-1, reps):
        digests = set()
        for name in FORMS if rep % 2 else reversed(FORMS):
            delta = root / name
            chosen = FORMS[name](session.read.parquet(str(events)))
            cost = measure(partial(chosen.write.parquet, str(delta)), root=delta)
            digests.add(_digest(session, delta))
            shutil.rmtree(delta)
            # The first turn warms up.
            if rep >= 0:
                wall_s[name].append(round(cost.wall_s, 3))
                cpu_s[name].append(round(cost.cpu_s, 3))
        if len(digests) > 1:
            raise RuntimeError(f"{shape}: the forms wrote different rows: {digests}")
    shutil.rmtree(events)
    return Found(
        columns=shape.columns,
        events=shape.events,
        rows=rows,
        wall_s=wall_s,
        cpu_s=cpu_s,
        wall_ratio=_ratio(wall_s),
        cpu_ratio=_ratio(cpu_s),
    )


def _ratio(seconds: dict[str, list[float]]) -> float:
    return round(median(seconds["max_by"]) / median(seconds["window"]), 3)


def _digest(session: SparkSession, written: Path) -> tuple[Any, ...]:
    rows = session.read.parquet(str(written))
    values = ", ".join(f"{name}, isnull({name})" for name in rows.columns)
    sums = rows.selectExpr(f"xxhash64({values}) AS h").selectExpr("count(*)", "sum(CAST(h AS DECIMAL(38, 0)))")
    return tuple(sums.collect()[0])


def measured(root: Path, shapes: Sequence[Shape], rows: int, reps: int) -> Iterator[Found]:
    """Compare both forms on each shape, in one session."""
    session = started(root / "home", memory="1500m")
    for shape in shapes:
        yield compared(session, root, shape, rows, reps)
    session.stop()


def main() -> int:
    """Run what the arguments say, and write what was found as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.dedup", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events of every shape")
    parser.add_argument("--reps", type=int, default=7, help="repetitions of each form")
    parser.add_argument("--out", type=Path, default=OUT / "dedup.json", help="where the figures are written")
    given = parser.parse_args()
    found = []
    with scratch(given.out.stem) as root:
        for one in measured(root, SHAPES, given.rows, given.reps):
            say(f"{one.columns} columns, {one.events} events per key: wall {one.wall_ratio}, CPU {one.cpu_ratio}")
            found.append(asdict(one))
        write_figures(given.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
