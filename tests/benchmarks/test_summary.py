"""What is said about the benchmark's records: means, spread, and ratios to the best peer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.records import Record, read_records, write_records
from benchmarks.report import page
from benchmarks.summary import Group, Line, summarize


def _record(system: str, wall_s: float, *, rep: int = 0, work: str = "compact", ok: bool = True) -> Record:
    return Record(
        work=work,
        shape="100-rows",
        system=system,
        rows=1000,
        rep=rep,
        wall_s=wall_s,
        cpu_s=wall_s * 2,
        bytes_read=900,
        bytes_written=600 if work == "compact" else 0,
        files_written=rep,
        landed_bytes=300,
        ok=ok,
    )


def _walls(groups: tuple[Group, ...]) -> list[tuple[str, float, float | None]]:
    return [(line.system, line.wall_s, line.ratio) for group in groups for line in group.lines]


def test_repetitions_become_one_line_with_their_geometric_mean_and_spread() -> None:
    records = [_record("delta", 1.0), _record("delta", 27.0, rep=1), _record("delta", 8.0, rep=2)]

    (group,) = summarize(records)

    assert [replace(line, wall_s=round(line.wall_s, 9), cpu_s=round(line.cpu_s, 9)) for line in group.lines] == [
        Line(
            system="delta",
            wall_s=6.0,
            median_s=8.0,
            fastest_s=1.0,
            slowest_s=27.0,
            cpu_s=12.0,
            read=3.0,
            written=2.0,
            files=1.0,
            reps=3,
            ratio=1.0,
        ),
    ]


def test_ratios_are_to_the_best_peer_which_is_neither_the_limit_nor_schemasync() -> None:
    records = [_record("schemasync", 1.0), _record("limit", 0.5), _record("delta", 4.0), _record("iceberg-cow", 2.0)]

    assert _walls(summarize(records)) == [
        ("limit", 0.5, 0.25),
        ("schemasync", 1.0, 0.5),
        ("iceberg-cow", 2.0, 1.0),
        ("delta", 4.0, 2.0),
    ]


def test_without_a_peer_there_is_no_ratio() -> None:
    assert _walls(summarize([_record("schemasync", 1.0)])) == [("schemasync", 1.0, None)]


def test_who_was_wrong_once_is_out_at_every_work_of_that_shape_and_size() -> None:
    read = "read:count/pending"
    wrong = [_record("delta", 4.0), _record("delta", 1.0, work=read), _record("delta", 0.1, work=read, rep=1, ok=False)]
    others = [_record("iceberg-cow", 5.0), replace(_record("delta", 4.0), rows=10)]

    found = [(g.work, g.rows, line.system) for g in summarize([*wrong, *others]) for line in g.lines]
    assert found == [("compact", 1000, "iceberg-cow"), ("compact", 10, "delta")]


def test_the_page_says_who_was_wrong_and_has_no_figures_of_him() -> None:
    wrong = replace(_record("delta", 0.0, rep=1, ok=False), problem="it shows 1, not 2\nat line 3")
    unloaded = Record(work="prepare", shape="", system="paimon-mor", rows=1000, rep=0, ok=False, problem="no jar")

    shown = page([_record("schemasync", 1.0), _record("delta", 4.0), wrong, unloaded])

    assert shown.partition("## Left out\n\n")[2] == (
        "Wrong, or failed, and so not in the figures of that shape and size.\n\n"
        "- delta, 100-rows, 1,000 rows, `compact`: it shows 1, not 2\n"
        "- paimon-mor, base, 1,000 rows, `prepare`: no jar\n"
        "\n"
        "## Compaction\n\n"
        "### 100-rows, 1,000 rows\n\n"
        "| system | wall s | median s | spread | CPU s | read | written | files | ratio |\n"
        "|---|---:|---:|---|---:|---:|---:|---:|---:|\n"
        "| **schemasync** | 1.00 | 1.00 | 1.00 - 1.00, 1 runs | 2.0 | 3.00 | 2.00 | 0 |  |\n"
        "\n"
        "## Reads\n"
    )


def test_each_work_is_compared_for_itself() -> None:
    records = [_record("delta", 4.0), _record("delta", 1.0, work="read:count/pending")]

    found = [(group.work, line.read, line.written, line.files) for group in summarize(records) for line in group.lines]
    assert found == [("compact", 3.0, 2.0, 0.0), ("read:count/pending", None, None, None)]


def test_what_was_not_counted_every_time_is_not_told() -> None:
    records = [_record("delta", 4.0), replace(_record("delta", 4.0, rep=1), bytes_read=None)]

    assert [line.read for group in summarize(records) for line in group.lines] == [None]


def test_records_survive_their_file(tmp_path: Path) -> None:
    records = (_record("delta", 4.0), _record("schemasync", 1.0))

    write_records(records, tmp_path / "out" / "one.json")

    assert read_records([tmp_path / "out" / "one.json"]) == records


def test_the_page_has_a_table_for_compactions_and_one_for_reads() -> None:
    reads = [
        _record("schemasync", 0.2, work="read:count/pending"),
        _record("schemasync", 0.3, work="read:count/pending", rep=1),
        _record("delta", 0.5, work="read:count/pending"),
    ]

    shown = page([_record("schemasync", 1.0), _record("delta", 4.0), *reads])

    assert shown.partition("## Compaction\n\n")[2] == (
        "### 100-rows, 1,000 rows\n\n"
        "| system | wall s | median s | spread | CPU s | read | written | files | ratio |\n"
        "|---|---:|---:|---|---:|---:|---:|---:|---:|\n"
        "| **schemasync** | 1.00 | 1.00 | 1.00 - 1.00, 1 runs | 2.0 | 3.00 | 2.00 | 0 | 0.25 |\n"
        "| delta | 4.00 | 4.00 | 4.00 - 4.00, 1 runs | 8.0 | 3.00 | 2.00 | 0 | 1.00 |\n"
        "\n"
        "## Reads\n\n"
        "### 100-rows, 1,000 rows, pending\n\n"
        "Wall seconds, the ratio to the best peer, and the spread.\n\n"
        "| system | count |\n"
        "|---|---:|\n"
        "| delta | 0.50 (1.00), 0.50 - 0.50 |\n"
        "| **schemasync** | 0.24 (0.49), 0.20 - 0.30 |\n"
    )
