"""Peak memory of compactions whose changes are larger than what they are given: `python -m benchmarks.memory`.

Given are Spark's heap and ``compaction.memory``; what lands is a multiple of both together. Every command is the
program itself, in a process of its own whose tree is watched. A run with a handful of rows tells what interpreter and
libraries take; benchmarks/README.md says what is within what was given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import bulk
from benchmarks.bulk import Landing
from benchmarks.meter import Peaks, watched
from benchmarks.places import OUT, emptied, scratch, write_figures
from benchmarks.processes import helper, stoppable
from benchmarks.trial import say

MB: Final = 2**20
_TOPIC: Final = "bench.public.bulk"
_CORES: Final = 2
_IDLE_ROWS: Final = 1000
WAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "arrow": {"arrow_limit": "1000GB"},
    "spark": {"arrow_limit": "1KB"},
    "sql": {"arrow_limit": "1KB", "kernel": "spark"},
}
"""What of ``compaction`` sends everything this way: in the program's process, in Spark's tasks, or by Spark's SQL."""
STEPS: Final[Mapping[str, tuple[bool, tuple[str, ...]]]] = {
    "first": (True, ("compact",)),
    "major": (True, ("compact", "--major")),
    "admit": (True, ("apply",)),
    "admit another": (True, ("apply",)),
    "minor": (False, ("compact", "--minor")),
}
"""Whether something lands before, and the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Bytes: Spark's heap and ``compaction.memory``."""

    heap: int
    memory: int

    @property
    def both(self) -> int:
        """What landed bytes are a multiple of."""
        return self.heap + self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One step: bytes that landed before its command, how long that took, and its peaks in bytes."""

    way: str
    step: str
    landed_bytes: int
    wall_s: float
    peak: Peaks
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether it finished, with the right result, within what was given."""
        return not self.problem

    def to_json(self) -> dict[str, Any]:
        """Return it as it is written."""
        return asdict(self) | {"ok": self.ok}


class Site:
    """One table of a project of its own, and the program that works on it."""

    def __init__(self, root: Path, given: Given, way: str) -> None:
        """Write the configuration and a registry of files."""
        self.root = root
        self._sets = 0
        subject = root / "registry" / f"{_TOPIC}-value"
        subject.mkdir(parents=True)
        (subject / "1.avsc").write_text(json.dumps(bulk.value_schema()))
        compaction = {"memory": f"{given.memory // MB}MB", **WAYS[way]}
        config = {
            "registry": {"url": f"file://{root}/registry"},
            "metastore": {"dir": str(root / "home")},
            "spark": {"master": f"local[{_CORES}]", "conf": {"spark.driver.memory": f"{given.heap // MB}m"}},
            "defaults": {"location": f"file://{root}/{{topic}}", "compaction": compaction},
            "tables": [{"subject": f"{_TOPIC}-value", "table": "bulk", "keys": ["id"]}],
        }
        # JSON is YAML.
        (root / "schemasync.yaml").write_text(json.dumps(config))

    def land(self, rows: int) -> Landing:
        """Let the next change set land; the process that writes it ends with it."""
        number, self._sets = self._sets, self._sets + 1
        directory = self.root / _TOPIC / "incremental" / f"increment_20261120{number:02}"
        with helper() as pool:
            return pool.submit(bulk.land, directory, rows=rows, number=number).result()

    def run(self, *command: str) -> tuple[Peaks, str]:
        """Run a command of the program; return its peaks, and its last words where it failed."""
        with (self.root / "said.txt").open("w+") as said:
            program = [sys.executable, "-m", "schemasync", "--config", str(self.root / "schemasync.yaml"), *command]
            with subprocess.Popen(program, stdout=said, stderr=subprocess.STDOUT) as process:  # noqa: S603
                try:
                    peaks = watched(process)
                except KeyboardInterrupt:
                    process.terminate()
                    process.wait()
                    raise
            said.seek(0)
            return peaks, said.read()[-2000:] if process.returncode else ""

    def shown(self) -> bulk.Digest:
        """Ask the view what it shows."""
        program = [sys.executable, "-m", "schemasync", "--config", str(self.root / "schemasync.yaml"), "--json"]
        done = subprocess.run([*program, "sql", bulk.digest_sql("bulk_view")], stdout=subprocess.PIPE, check=True)  # noqa: S603
        row = dict(zip(("r", "c"), json.loads(done.stdout)["rows"][0], strict=True))
        return bulk.Digest(rows=int(row["r"]), crc=int(row["c"]))


def idle(root: Path, given: Given, way: str) -> Peaks:
    """Compact a handful of rows: what interpreters and libraries take.

    Raises:
        RuntimeError: the program failed.
    """
    site = Site(root, given, way)
    site.land(_IDLE_ROWS)
    peak, problem = site.run("compact")
    if problem:
        raise RuntimeError(problem)
    return peak


def runs(root: Path, given: Given, way: str, rows: int, allowed: Peaks) -> Iterator[Run]:
    """Land, run and check each of `STEPS`, and yield what it took; the last one is the first that fails."""
    site, expected = Site(root, given, way), bulk.Digest()
    for step, (lands, command) in STEPS.items():
        landed = site.land(rows) if lands else Landing(bytes=0, digest=expected)
        expected = landed.digest
        started = time.perf_counter()
        peak, failure = site.run(*command)
        wall_s = round(time.perf_counter() - started, 1)
        problem = failure or _wrong(site.shown(), expected) or _beyond(peak, allowed)
        yield Run(way=way, step=step, landed_bytes=landed.bytes, wall_s=wall_s, peak=peak, problem=problem)
        if failure:
            return


def _allowed(given: Given, way: str, idle: Peaks) -> Peaks:
    tasks = os.cpu_count() or 1 if way == "arrow" else 1
    return Peaks(
        python=idle.python + tasks * given.memory,
        jvm=idle.jvm + given.heap,
        worker=idle.worker + given.memory,
    )


def _wrong(found: bulk.Digest, expected: bulk.Digest) -> str:
    return "" if found == expected else f"it shows {found}, not {expected}"


def _beyond(peak: Peaks, allowed: Peaks) -> str:
    parts = (name for name in asdict(peak) if getattr(peak, name) > getattr(allowed, name))
    return ", ".join(f"{name} took {getattr(peak, name)} bytes, not {getattr(allowed, name)}" for name in parts)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.memory", description=__doc__)
    parser.add_argument("--heap", type=int, default=512, help="Spark's heap, MB")
    parser.add_argument("--memory", type=int, default=128, help="compaction.memory, MB")
    parser.add_argument("--times", type=float, default=4.0, help="the snapshot lands so many times both, in bytes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=tuple(WAYS), help="who admits and merges")
    parser.add_argument("--out", type=Path, default=OUT / "memory.json", help="where the figures are written")
    return parser


def _write(path: Path, given: Given, limits: Mapping[str, Peaks], found: Sequence[Run]) -> None:
    allowed = {way: asdict(limit) for way, limit in limits.items()}
    done = {"runs": [run.to_json() for run in found], "ok": all(run.ok for run in found)}
    write_figures(path, {"given": asdict(given), "allowed": allowed, **done})


def main() -> int:
    """Run what the arguments say; return 1 where a run failed, was wrong or took more than it was given."""
    arguments = _arguments().parse_args()
    given = Given(heap=arguments.heap * MB, memory=arguments.memory * MB)
    rows = int(given.both * arguments.times) // bulk.ROW_BYTES + 1
    found: list[Run] = []
    limits: dict[str, Peaks] = {}
    with scratch(arguments.out.stem) as place:
        for way in arguments.ways:
            with emptied(place / way) as work:
                limits[way] = _allowed(given, way, idle(work, given, way))
            say(f"{way}: may take {limits[way]}")
            with emptied(place / way) as work:
                for run in runs(work, given, way, rows, limits[way]):
                    landed = f"{run.landed_bytes // MB} MB landed"
                    say(f"{way} {run.step}: {landed}, {run.wall_s} s, {run.peak} {run.problem}")
                    found.append(run)
                    _write(arguments.out, given, limits, found)
    print(arguments.out.read_text())
    return 0 if all(run.ok for run in found) else 1


if __name__ == "__main__":
    sys.exit(stoppable(main))
