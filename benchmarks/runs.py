"""What every run of trials shares: its usual terms, how its records are kept, and its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.changes import SHAPES
from benchmarks.places import scratch
from benchmarks.processes import INTERRUPTED
from benchmarks.records import Record, write_records
from benchmarks.systems import SYSTEMS
from benchmarks.trial import Terms, say

WHOLE: Final = Terms(
    rows=2_000_000,
    key="bigint",
    shapes=tuple(SHAPES.values()),
    systems=tuple(SYSTEMS),
    reps=5,
    warmups=4,
    read_reps=5,
    read_warmups=1,
    changes_of=2_000_000,
    master="local[2]",
    memory="1200m",
)
SMALL: Final = replace(
    WHOLE,
    rows=50_000,
    changes_of=50_000,
    # The most: something is done with every file.
    shapes=(SHAPES["uniform-20%"],),
    reps=1,
    warmups=0,
    read_reps=1,
    read_warmups=0,
    memory="800m",
)


def collected(measured: Callable[[Path], Iterator[Record]], out: Path) -> list[Record]:
    """Measure in a directory that is empty and goes afterwards, and tell and return what was found.

    Every record is written at once, into ``.part`` beside ``out`` until the last one is: a benchmark that is
    interrupted has measured something all the same, which nobody takes for the whole.

    Raises:
        SystemExit: it was interrupted, or another process measures the same.
    """
    records: list[Record] = []
    part = out.with_suffix(".part")
    try:
        with scratch(out.stem) as work:
            write_records(records, part)
            for record in measured(work):
                records.append(record)
                write_records(records, part)
                say(
                    f"  {record.work} {record.system}: {record.wall_s:.2f} s"
                    if record.ok
                    else f"  {record.system}: WRONG"
                )
            part.replace(out)
    except KeyboardInterrupt:
        say(f"Interrupted; what was measured until then is in {part}")
        raise SystemExit(INTERRUPTED) from None
    return records


def judged(records: Sequence[Record]) -> int:
    """Say what was wrong or failed; return 1 where something was."""
    wrong = [record for record in records if not record.ok]
    for record in wrong:
        say(f"WRONG {record.system} {record.work} {record.shape}: {record.problem}")
    say(f"{len(records) - len(wrong)} measurements, {len(wrong)} failures")
    return 1 if wrong else 0
