"""All that the figures are made of, piece after piece: `make bench`. What is there already is not measured again.

It takes many hours. So each piece has a file of its own, which is there once all of it was measured: whoever is
interrupted goes on with the piece at hand. The page is written from all that are timed. A rehearsal is all of it with
few rows, before anybody gives it a day.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from benchmarks.changes import SHAPES
from benchmarks.places import OUT, TAKEN
from benchmarks.processes import INTERRUPTED, ToldToStopError, stoppable, undisturbed
from benchmarks.records import read_records
from benchmarks.report import DOCS
from benchmarks.runs import WHOLE
from benchmarks.trial import say

LARGE: Final = 10 * WHOLE.rows
_LARGE_TERMS: Final = ("--rows", str(LARGE), "--memory", "1500m", "--systems")
_LARGE_SYSTEMS: Final = ("schemasync", "delta-dv", "iceberg-mor", "hudi-mor-bloom", "hudi-mor-record", "paimon-mor")
"""Who rewrites whole files takes minutes for each set there."""
_DAY: Final = "uniform-0.1%"
REHEARSAL: Final = OUT / "rehearsal"
_REHEARSED: Final = {
    "benchmarks": "--rows 20000 --reps 1 --warmups 0 --read-reps 1 --read-warmups 0",
    "benchmarks.growth": "--rows 20000 --reps 1",
    "benchmarks.sizes": "--rows 200000",
    "benchmarks.memory": "--times 0.5",
}
"""By module what makes it short, whatever else it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one process measures; ``arguments`` are those of `python -m`. ``timed``: it writes records for the page."""

    name: str
    arguments: tuple[str, ...]
    timed: bool = True

    def out(self, directory: Path) -> Path:
        """Return where its figures go."""
        return directory / f"{'bench-' if self.timed else ''}{self.name}.json"

    @property
    def rehearsed(self) -> Piece:
        """The same with few rows, and with files and a scratch directory of its own."""
        return replace(
            self, name=f"rehearsal-{self.name}", arguments=(*self.arguments, *_REHEARSED[self.arguments[0]].split())
        )

    def measure(self, path: Path, run: Run) -> bool:
        """Measure it, and tell whether all was right; what is not timed is there only then."""
        written = path if self.timed else path.with_suffix(".part")
        right = run([*self.arguments, "--out", str(written)]) == 0
        if right and not self.timed:
            written.replace(path)
        return right


def _pieces() -> Iterator[Piece]:
    for key in ("bigint", "uuid"):
        for shape in SHAPES:
            yield _trial(f"{WHOLE.rows}-{key}-{shape}", shape, "--key", key)
    yield _trial("day", _DAY, "--reps", "24", "--read-reps", "0", "--mark", "day")
    yield Piece(name="growth", arguments=("benchmarks.growth",))
    for shape in SHAPES:
        yield _trial(f"{LARGE}-{WHOLE.key}-{shape}", shape, *_LARGE_TERMS, *_LARGE_SYSTEMS)
    for key in ("bigint", "uuid"):
        yield Piece(name=f"sizes-{key}", arguments=("benchmarks.sizes", "--key", key), timed=False)
    yield Piece(name="memory", arguments=("benchmarks.memory",), timed=False)


def _trial(name: str, shape: str, *terms: str) -> Piece:
    return Piece(name=name.replace("%", ""), arguments=("benchmarks", "--shapes", shape, *terms))


PIECES: Final = {piece.name: piece for piece in _pieces()}

Run = Callable[[Sequence[str]], int]
"""Runs a module of Python's with its arguments, and returns its exit code."""


def python(arguments: Sequence[str]) -> int:
    """Run one piece in a process of its own.

    Raises:
        SystemExit: another process measures it already.
    """
    child = None
    try:
        with undisturbed():
            child = subprocess.Popen([sys.executable, "-m", *arguments])  # noqa: S603 - ours, or paths
        code = child.wait()
    except KeyboardInterrupt as told:
        if child is not None:
            # A terminal has told it, too. It puts its gigabytes away.
            if isinstance(told, ToldToStopError):
                child.terminate()
            child.wait()
        raise
    if code == TAKEN:
        raise SystemExit(code)
    return code


def measure(pieces: Sequence[Piece], out: Path, *, anew: bool, run: Run) -> bool:
    """Measure what is not there, or was not all right; tell whether all of it is now."""
    right = True
    for piece in pieces:
        path = piece.out(out)
        if _is_right(piece, path) and not anew:
            say(f"{piece.name}: measured before, {datetime.fromtimestamp(path.stat().st_mtime):%Y-%m-%d %H:%M}")
        else:
            say(f"{piece.name}:")
            right &= piece.measure(path, run)
    return right


def _is_right(piece: Piece, path: Path) -> bool:
    return path.exists() and (not piece.timed or all(record.ok for record in read_records([path])))


def report(pieces: Collection[Piece], out: Path, run: Run, *, into: Path) -> bool:
    """Write the page ``into`` a directory once every timed piece is there, also where it found a system wrong."""
    timed = [piece for piece in pieces if piece.timed]
    if missing := [piece.name for piece in timed if not piece.out(out).exists()]:
        say(f"No page yet, these are missing: {', '.join(missing)}")
        return False
    return run(["benchmarks.report", *(str(piece.out(out)) for piece in timed), "--into", str(into)]) == 0


def main() -> int:
    """Measure what is missing and write the page; return 1 where a result was wrong, or something is missing still."""
    parser = argparse.ArgumentParser(prog="benchmarks.whole", description=__doc__)
    parser.add_argument(
        "--pieces", nargs="+", choices=PIECES, default=list(PIECES), metavar="PIECE", help=f"of {', '.join(PIECES)}"
    )
    parser.add_argument("--anew", action="store_true", help="measure again what is there: after a change, for one")
    parser.add_argument("--rehearse", action="store_true", help="all of it anew with few rows: does it run to its end?")
    parser.add_argument("--out", type=Path, help="where the records are")
    given = parser.parse_args()
    out = given.out or (REHEARSAL if given.rehearse else OUT)
    pieces = {name: piece.rehearsed if given.rehearse else piece for name, piece in PIECES.items()}
    try:
        right = measure([pieces[name] for name in given.pieces], out, anew=given.anew or given.rehearse, run=python)
    except KeyboardInterrupt:
        say("Interrupted." if given.rehearse else "Interrupted; the same command goes on with this piece.")
        return INTERRUPTED
    return 0 if report(pieces.values(), out, python, into=out if given.rehearse else DOCS) and right else 1


if __name__ == "__main__":
    sys.exit(stoppable(main))
