"""What records say when they are put together: geometric means, spread, ratios. Pure; the report prints it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import mean, median
from typing import Final

from benchmarks.records import Record

OURS: Final = "schemasync"
NO_PEERS: Final = frozenset({OURS, "limit"})
"""The limit merges nothing: it is nobody's rival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One system at one work: seconds, geometric mean, median and extremes; ``ratio`` to the best peer's mean.

    ``read`` and ``written`` are bytes for one that landed, ``files`` those written in the mean; None for reads, and
    where nobody counted what is read.
    """

    system: str
    wall_s: float
    median_s: float
    fastest_s: float
    slowest_s: float
    cpu_s: float
    read: float | None
    written: float | None
    files: float | None
    reps: int
    ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Everybody at one work: lines from the fastest to the slowest."""

    work: str
    shape: str
    rows: int
    lines: tuple[Line, ...]

    def of(self, system: str) -> Line | None:
        """Return one system's line."""
        return next((line for line in self.lines if line.system == system), None)


def summarize(records: Iterable[Record]) -> tuple[Group, ...]:
    """Return one group for each work, shape and size, in the order in which they were first measured.

    A system that was wrong once, at whatever work, has no line for that shape and size.
    """
    known = tuple(records)
    out = {(record.system, record.shape, record.rows) for record in known if not record.ok}
    found: dict[tuple[str, str, int], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in known:
        if record.shape and (record.system, record.shape, record.rows) not in out:
            found[record.work, record.shape, record.rows][record.system].append(record)
    return tuple(
        Group(work=work, shape=shape, rows=rows, lines=_lines(systems))
        for (work, shape, rows), systems in found.items()
    )


def _lines(systems: Mapping[str, list[Record]]) -> tuple[Line, ...]:
    means = {system: geometric_mean(r.wall_s for r in records) for system, records in systems.items()}
    best = min((mean for system, mean in means.items() if system not in NO_PEERS), default=None)
    ordered = sorted(systems, key=means.__getitem__)
    return tuple(_line(system, systems[system], means[system], best) for system in ordered)


def _line(system: str, records: list[Record], wall_s: float, best: float | None) -> Line:
    walls = [record.wall_s for record in records]
    landed = sum(record.landed_bytes for record in records) if records[0].work == "compact" else 0
    read = [record.bytes_read for record in records if record.bytes_read is not None]
    return Line(
        system=system,
        wall_s=wall_s,
        median_s=median(walls),
        fastest_s=min(walls),
        slowest_s=max(walls),
        cpu_s=geometric_mean(record.cpu_s for record in records),
        read=sum(read) / landed if landed and len(read) == len(records) else None,
        written=sum(record.bytes_written for record in records) / landed if landed else None,
        files=mean(record.files_written for record in records) if landed else None,
        reps=len(records),
        ratio=wall_s / best if best else None,
    )


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean; what is below a millisecond counts as one."""
    logs = [log(max(value, 0.001)) for value in values]
    return exp(sum(logs) / len(logs))
