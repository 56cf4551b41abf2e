"""From records to pages: `python -m benchmarks.report benchmarks/out/*.json` writes a table and a plot into docs/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.records import Record, read_records
from benchmarks.summary import OURS, Group, Line, summarize

DOCS: Final = Path(__file__).parent.parent / "docs"
_COLORS: Final = {OURS: "#1b7837", "limit": "#999999", "recipe-s1": "#b35806"}
_PEER: Final = "#5e83ba"

_HEAD: Final = """\
<!-- Written by `python -m benchmarks.report` from the records of a run; run it again instead of changing this. -->

# Benchmark

What is measured, what is fair about it and what is not: [benchmarks/README.md](../benchmarks/README.md). Wall
seconds are geometric means over the repetitions; *spread* is fastest to slowest; *ratio* is to the best peer (below 1
is faster than it); *read* and *written* are bytes for each byte that landed, read from a disk or from memory. `limit`
merges nothing: Arrow reads and writes the files that schemasync replaced, Spark scans plain files.

![Compaction: wall seconds](benchmark.svg)
"""


def page(records: Iterable[Record]) -> str:
    """Return the whole page, as Markdown."""
    known = tuple(records)
    compactions, reads = _parted(summarize(known))
    parts = [_HEAD, *_left_out(known), "## Compaction\n", *map(_table, compactions), "## Reads\n", *_read_tables(reads)]
    return "\n".join(parts)


def _left_out(records: Iterable[Record]) -> Iterator[str]:
    """Say who was wrong, or failed: tables and plot do without him."""
    wrong = [record for record in records if not record.ok]
    if wrong:
        yield "## Left out\n\nWrong, or failed, and so not in the figures of that shape and size.\n"
        yield "\n".join(map(_problem, wrong)) + "\n"


def _problem(record: Record) -> str:
    first, *_ = record.problem.splitlines() or [""]
    return f"- {_named(record.system)}, {record.shape or 'base'}, {record.rows:,} rows, `{record.work}`: {first}"


def _parted(groups: Iterable[Group]) -> tuple[list[Group], list[Group]]:
    known = list(groups)
    return [g for g in known if g.work == "compact"], [g for g in known if g.work != "compact"]


def _table(group: Group) -> str:
    rows = [
        "| system | wall s | median s | spread | CPU s | read | written | files | ratio |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
        *(_row(line) for line in group.lines),
    ]
    return f"### {group.shape}, {group.rows:,} rows\n\n" + "\n".join(rows) + "\n"


def _row(line: Line) -> str:
    spread = f"{_spread(line)}, {line.reps} runs"
    return (
        f"| {_named(line.system)} | {line.wall_s:.2f} | {line.median_s:.2f} | {spread} | {line.cpu_s:.1f} "
        f"| {_number(line.read)} | {_number(line.written)} | {_number(line.files, 0)} | {_number(line.ratio)} |"
    )


def _read_tables(groups: Sequence[Group]) -> Iterator[str]:
    """Yield one table for each shape and state: systems down, queries across."""
    states = dict.fromkeys((g.shape, g.rows, g.work.rpartition("/")[2]) for g in groups)
    for shape, rows, when in states:
        found = [g for g in groups if (g.shape, g.rows, g.work.rpartition("/")[2]) == (shape, rows, when)]
        names = [g.work.removeprefix("read:").rpartition("/")[0] for g in found]
        systems = dict.fromkeys(line.system for g in found for line in g.lines)
        lines = [
            f"| system | {' | '.join(names)} |",
            f"|---{'|---:' * len(names)}|",
            *(f"| {_named(s)} | {' | '.join(_cell(g.of(s)) for g in found)} |" for s in sorted(systems)),
        ]
        yield f"### {shape}, {rows:,} rows, {when}\n\nWall seconds, the ratio to the best peer, and the spread.\n"
        yield "\n".join(lines) + "\n"


def _cell(line: Line | None) -> str:
    return f"{line.wall_s:.2f} ({_number(line.ratio)}), {_spread(line)}" if line else ""


def _spread(line: Line) -> str:
    return f"{line.fastest_s:.2f} - {line.slowest_s:.2f}"


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _named(system: str) -> str:
    return f"**{system}**" if system == OURS else system


def draw(groups: Iterable[Group], path: Path) -> None:
    """Draw the compactions: one panel for each shape and size."""
    import matplotlib as mpl  # noqa: PLC0415 - only the benchmark's own environment has it

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "schemasync"
    from matplotlib import pyplot  # noqa: PLC0415

    panels, _ = _parted(groups)
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure, axes = pyplot.subplots(down, across, figsize=(6.5 * across, 3.2 * down), squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for group, axis in zip(panels, axes.flat, strict=False):
        lines = group.lines[::-1]
        names, walls = [line.system for line in lines], [line.wall_s for line in lines]
        # A mean of one is itself but for its last digit.
        below = [max(0.0, line.wall_s - line.fastest_s) for line in lines]
        above = [max(0.0, line.slowest_s - line.wall_s) for line in lines]
        colors = [_COLORS.get(name, _PEER) for name in names]
        bars = axis.barh(names, walls, color=colors, xerr=[below, above], ecolor="#444444")
        axis.bar_label(bars, fmt="%.1f", padding=4)
        axis.set_title(f"{group.shape}, {group.rows:,} rows")
        axis.set_xlabel("wall seconds")
        axis.margins(x=0.15)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Write docs/benchmark.md and docs/benchmark.svg."""
    parser = argparse.ArgumentParser(prog="benchmarks.report", description=__doc__)
    parser.add_argument("records", nargs="+", type=Path, help="what runs have written")
    parser.add_argument("--into", type=Path, default=DOCS, help="where the page goes")
    given = parser.parse_args()
    records = read_records(given.records)
    (given.into / "benchmark.md").write_text(page(records))
    draw(summarize(records), given.into / "benchmark.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
