"""The benchmark's command; `make bench` and `make bench-small` run it in an environment of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.changes import SHAPES
from benchmarks.places import OUT
from benchmarks.processes import stoppable
from benchmarks.records import Record
from benchmarks.runs import SMALL, WHOLE, collected, judged
from benchmarks.systems import LIMIT, SYSTEMS
from benchmarks.trial import Terms, prepared


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small base, one repetition: is everything right?")
    parser.add_argument("--rows", type=int, help="rows of the base")
    parser.add_argument("--changes-of", type=int, help="shapes are parts of so many rows (default: of the base's)")
    parser.add_argument("--key", choices=("bigint", "uuid"), help="type of the key")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, help="how much changes")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, help="who takes part; the limit always does")
    parser.add_argument("--reps", type=int, help="compactions of every shape")
    parser.add_argument("--warmups", type=int, help="compactions before those that count")
    parser.add_argument("--read-reps", type=int, help="repetitions of every query; 0: no reads")
    parser.add_argument("--read-warmups", type=int, help="change sets that are read before the one that counts")
    parser.add_argument("--master", help="Spark's master")
    parser.add_argument("--memory", help="heap of each of the five sessions")
    parser.add_argument("--mark", help="a word to put behind the shapes' names")
    parser.add_argument("--out", type=Path, help="where the records are written")
    return parser


def _terms(given: argparse.Namespace) -> Terms:
    start = SMALL if given.small else WHOLE
    plain = ("rows", "key", "reps", "warmups", "read_reps", "read_warmups", "master", "memory", "mark")
    chosen = {name: value for name in plain if (value := getattr(given, name)) is not None}
    if given.shapes:
        chosen["shapes"] = tuple(SHAPES[name] for name in given.shapes)
    if given.systems:
        chosen["systems"] = tuple(dict.fromkeys((*given.systems, LIMIT)))
    return replace(start, **chosen, changes_of=given.changes_of or chosen.get("rows", start.rows))


def _name(terms: Terms) -> str:
    of = "" if terms.changes_of == terms.rows else f"-of-{terms.changes_of}"
    return f"{terms.rows}-{terms.key}{of}{terms.mark and '-'}{terms.mark}"


def _run(terms: Terms, work: Path) -> Iterator[Record]:
    with prepared(terms, work) as trial:
        yield from trial.run()


def main() -> int:
    """Run what the arguments say; return 1 where a system was wrong or failed."""
    given = _arguments().parse_args()
    terms = _terms(given)
    out = given.out or OUT / f"{'small' if given.small else 'bench'}-{_name(terms)}.json"
    return judged(collected(partial(_run, terms), out))


if __name__ == "__main__":
    sys.exit(stoppable(main))
