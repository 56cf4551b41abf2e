"""The same change sets on a base and on one that is ten times larger, in one run: `python -m benchmarks.growth`.

Each base has a process and a session of its own; they take turns, and who begins changes with every repetition. Results
are checked as in every trial. Ratios are those of geometric means.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Final, get_args

from benchmarks.changes import SHAPES
from benchmarks.places import OUT
from benchmarks.processes import stoppable
from benchmarks.records import Record
from benchmarks.runs import WHOLE, collected, judged
from benchmarks.systems import LIMIT, OURS
from benchmarks.trial import Terms, Trial, prepared, say
from benchmarks.values import Key

TIMES: Final = 10


def in_turn(trials: Sequence[Trial], terms: Terms) -> Iterator[Record]:
    """Load all trials' bases, then let them compact the same change sets, one after the other."""
    for trial in trials:
        yield from trial.load()
    for shape in terms.shapes:
        for rep in terms.all_reps:
            for trial in trials if rep % 2 == 0 else reversed(trials):
                yield from trial.compact(shape, rep)


def measured(terms: Terms, work: Path) -> Iterator[Record]:
    """Run both in an empty directory; ``terms`` are those of the smaller base."""
    with ExitStack() as stack:
        sizes = (terms.rows, terms.rows * TIMES)
        trials = [stack.enter_context(prepared(replace(terms, rows=rows), work / str(rows))) for rows in sizes]
        yield from in_turn(trials, terms)


def ratios(records: Sequence[Record], rows: int) -> dict[str, float]:
    """Return shape -> how many times as long the larger base took."""
    taken: dict[str, dict[bool, list[float]]] = {}
    for record in records:
        if record.system == OURS and record.ok:
            # Labels differ in what the change set is a part of.
            by_size = taken.setdefault(record.shape.partition("/")[0], {False: [], True: []})
            by_size[record.rows > rows].append(record.wall_s)
    return {
        shape: round(geometric_mean(by_size[True]) / geometric_mean(by_size[False]), 2)
        for shape, by_size in taken.items()
        if all(by_size.values())
    }


def main() -> int:
    """Run what the arguments say, write the records, say the ratios; return 1 where a result was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__)
    parser.add_argument("--rows", type=int, default=WHOLE.rows, help="rows of the smaller base")
    parser.add_argument("--key", choices=get_args(Key), default=WHOLE.key, help="type of the key")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), help="how much changes")
    parser.add_argument("--reps", type=int, default=WHOLE.reps, help="compactions of every shape")
    parser.add_argument("--out", type=Path, default=OUT / "bench-growth.json", help="where records are written")
    given = parser.parse_args()
    terms = replace(
        WHOLE,
        rows=given.rows,
        changes_of=given.rows,
        key=given.key,
        shapes=tuple(SHAPES[name] for name in given.shapes),
        systems=(OURS, LIMIT),
        reps=given.reps,
        memory="1500m",
        mark="growth",
    )
    records = collected(partial(measured, terms), given.out)
    for shape, ratio in ratios(records, given.rows).items():
        say(f"{shape}: {TIMES} times the base take {ratio} times as long")
    return judged(records)


if __name__ == "__main__":
    sys.exit(stoppable(main))
