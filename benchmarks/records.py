"""What was measured, as it is written to benchmarks/out: one record for each repetition of each work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One measurement. ``work`` is ``compact`` or ``read:QUERY/pending``, ``read:QUERY/compacted``.

    ``rows`` are the base's, ``landed_bytes`` the change set's, ``bytes_read`` is None where nobody counts them. Where
    not ``ok`` the result was wrong, or there was none, and ``problem`` says what happened; the other figures count for
    nothing then.
    """

    work: str
    shape: str
    system: str
    rows: int
    rep: int
    wall_s: float = 0.0
    cpu_s: float = 0.0
    bytes_read: int | None = None
    bytes_written: int = 0
    files_written: int = 0
    landed_bytes: int = 0
    ok: bool = True
    problem: str = ""


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write records as a JSON list, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(asdict(record)) for record in records) + "\n]\n")


def read_records(paths: Iterable[Path]) -> tuple[Record, ...]:
    """Read the records of several files."""
    return tuple(Record(**record) for path in paths for record in json.loads(path.read_text()))
