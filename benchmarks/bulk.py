"""Landed files that are larger than memory, written in a stream: a snapshot, then change sets of a fifth of its keys.

Values are hashes: they do not compress, and keys come in no order. What a row holds, and which change sets touch it,
follows from its number alone, so the result that everything must have is summed up while the files are written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.changes import HOUR_MS, START_MS
from benchmarks.values import below, count_up, noise, uuids

NUMBERS: Final = tuple(f"n{n}" for n in range(1, 9))
TEXTS: Final = tuple(f"t{n}" for n in range(1, 5))
COLUMNS: Final = ("id", *NUMBERS, *TEXTS)

ROW_BYTES: Final = 518
"""What a landed event takes at least: nine numbers, four texts of 110 characters, the envelope."""
_FILE_EVENTS: Final = 100_000
"""Events of a file, which is one row group, as sinks write them: about 50 MB."""
_PART: Final = 5
_MOST_EVENTS: Final = 3
_DELETED: Final = 20
"""One row in 5 changes in a set, with one to three events; for one in 20 of them the last is a delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """How many rows a table shows, and the sum of their CRC32s."""

    rows: int = 0
    crc: int = 0

    def __add__(self, other: Digest) -> Digest:
        """Return the digest of both tables' rows."""
        return Digest(rows=self.rows + other.rows, crc=self.crc + other.crc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One change set that landed: its bytes, and what the table shows with it and all before it."""

    bytes: int
    digest: Digest


def digest_sql(table: str) -> str:
    """Return the query that finds a table's `Digest`."""
    return f"SELECT count(*) AS r, sum(crc32(concat_ws('|', {', '.join(COLUMNS)}))) AS c FROM {table}"


def value_schema() -> dict[str, Any]:
    """Return the value's Avro schema: flat events with their operation and time."""
    types = {"id": "long"} | dict.fromkeys(NUMBERS, "long") | dict.fromkeys(TEXTS, "string")
    types |= {"op": "string", "ts_ms": "long", "kafka_offset": "long"}
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": "Value", "namespace": "bench.public.bulk", "fields": fields}


def land(directory: Path, *, rows: int, number: int) -> Landing:
    """Write the snapshot of so many rows (number 0) or a change set (from 1 on) into a new directory."""
    directory.mkdir(parents=True)
    for place, events in enumerate(_files(rows, number)):
        path = directory / f"bulk+0+{place}.parquet"
        avro = {"parquet.avro.schema": json.dumps(value_schema())}
        pq.write_table(events.replace_schema_metadata(avro), path, store_schema=False, use_dictionary=False)
    digest = sum((_shown(chunk, number) for chunk in _chunks(rows)), start=Digest())
    return Landing(bytes=sum(path.stat().st_size for path in directory.iterdir()), digest=digest)


def _chunks(rows: int) -> Iterator[pa.Array]:
    for start in range(0, rows, _FILE_EVENTS):
        yield count_up(start, min(_FILE_EVENTS, rows - start))


def _files(rows: int, number: int) -> Iterator[pa.Table]:
    """Yield what each landed file holds; the newest events land first."""
    held: list[pa.Table] = []
    for turn in reversed(range(_MOST_EVENTS if number else 1)):
        for chunk in _chunks(rows):
            held.append(_events(chunk, number, turn))
            if sum(len(t) for t in held) >= _FILE_EVENTS:
                yield pa.concat_tables(held)
                held = []
    if held:
        yield pa.concat_tables(held)


def _many(chunk: pa.Array, number: int) -> pa.Array:
    """Return how many events each row has in a change set, 0 for most."""
    touched = pc.equal(below(noise(chunk, 100 + number), _PART), 0)
    return pc.if_else(touched, pc.add(below(noise(chunk, 200 + number), _MOST_EVENTS), 1), 0)


def _gone(chunk: pa.Array, number: int) -> pa.Array:
    """Tell for which rows a change set ends with a delete, if it touches them."""
    return pc.equal(below(noise(chunk, 300 + number), _DELETED), 0)


def _events(chunk: pa.Array, number: int, turn: int) -> pa.Table:
    """Return the events of a turn: later than those of the turns before it."""
    many = _many(chunk, number) if number else pa.repeat(pa.scalar(1, pa.int64()), len(chunk))
    last = pc.equal(many, turn + 1)
    deletes = pc.and_(_gone(chunk, number), last) if number else pa.repeat(pa.scalar(False), len(chunk))
    there = pc.greater(many, turn)
    rows, op = chunk.filter(there), pc.if_else(deletes, "d", "u" if number else "r").filter(there)
    time = START_MS + number * HOUR_MS + turn * (HOUR_MS // _MOST_EVENTS)
    table = _values(rows, number, turn)
    table |= {"op": op, "ts_ms": pc.add(below(noise(rows, 3), 1000), time)}
    table |= {"kafka_offset": pc.add(rows.cast(pa.int64()), (number * _MOST_EVENTS + turn) * 2**36)}
    return pa.table(table)


def _values(rows: pa.Array, number: int, turn: int) -> dict[str, pa.Array]:
    event = 1000 * (number * _MOST_EVENTS + turn + 1)
    found = {"id": noise(rows, 1).view(pa.int64())}
    for place, name in enumerate(NUMBERS):
        found[name] = noise(rows, event + place).view(pa.int64())
    for place, name in enumerate(TEXTS):
        parts = [uuids(noise(rows, event + 100 + 10 * place + part)) for part in range(3)]
        found[name] = pc.binary_join_element_wise(*parts, " ")
    return found


def _shown(chunk: pa.Array, number: int) -> Digest:
    """Sum up the rows of a chunk as the newest event of each leaves them."""
    found, left = Digest(), chunk
    for before in reversed(range(1, number + 1)):
        many = _many(left, before)
        touched = pc.greater(many, 0)
        alive = pc.and_(touched, pc.invert(_gone(left, before)))
        for turn in range(_MOST_EVENTS):
            found += _digest(left.filter(pc.and_(alive, pc.equal(many, turn + 1))), before, turn)
        left = left.filter(pc.invert(touched))
    return found + _digest(left, 0, 0)


def _digest(rows: pa.Array, number: int, turn: int) -> Digest:
    values = [column.cast(pa.string()) for column in _values(rows, number, turn).values()]
    lines = pc.binary_join_element_wise(*values, "|")
    return Digest(rows=len(rows), crc=sum(zlib.crc32(line.as_buffer()) for line in lines))
