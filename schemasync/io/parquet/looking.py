"""A look at a delta for events that come late, part after part: while it is written, or at a file of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest
from schemasync.io.parquet.batches import BATCH_ROWS, BATCH_SHARE, batches, buffer_size
from schemasync.io.parquet.blame import reading_back
from schemasync.io.parquet.late import Compared, touched, without_late_rows
from schemasync.io.parquet.newest import positions
from schemasync.io.parquet.rows import open_parquet, table_schema
from schemasync.io.parquet.shard_writer import delta_writer

_ROW: Final = "schemasync_arrival"
_NONE: Final = pa.nulls(0, pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of rows of a delta, in the words of `Admitted`; by itself of none."""

    ahead: bool = True
    ahead_of_deltas: bool = True
    touches: tuple[str, ...] | None = ()
    contradicted: int = 0

    def __and__(self, other: Seen) -> Seen:
        """Return what is known of the rows of both."""
        touches = None
        if self.touches is not None and other.touches is not None:
            touches = tuple(dict.fromkeys((*self.touches, *other.touches)))
        return Seen(
            ahead=self.ahead and other.ahead,
            ahead_of_deltas=self.ahead_of_deltas and other.ahead_of_deltas,
            touches=touches,
            contradicted=self.contradicted + other.contradicted,
        )


NOTHING_SEEN: Final = Seen(ahead=False, ahead_of_deltas=False, touches=None)
"""Of rows at which nobody looked."""


class Look:
    """Leaves out the late rows of parts as they pass; ``seen`` is what it found of all of them."""

    def __init__(self, filesystem: fs.FileSystem, base: str, request: AdmissionRequest) -> None:
        """Look below ``base`` of a file system at what is there."""
        self._filesystem = filesystem
        self._base = base
        self._request = request
        self.seen = Seen()

    def at(self, rows: pa.Table) -> pa.Table:
        """Return one part without its late rows; parts have one row per key, sorted by key."""
        compared = self._compared(rows)
        touches = touched(compared.rows, self._request)
        self.seen &= Seen(
            ahead=compared.ahead,
            ahead_of_deltas=compared.ahead_of_deltas,
            touches=touches,
            contradicted=compared.contradicted,
        )
        return compared.rows

    def _compared(self, rows: pa.Table) -> Compared:
        try:
            return without_late_rows(self._filesystem, self._base, rows, self._request)
        except (OSError, pa.ArrowException):
            # What is wrong with the table's files is for the compaction to say; new rows are visible without it.
            return Compared(rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look at one file of a delta told of its rows.

    Those that are not late lie in ``directory``, in a file, or in none where all are; None: no row is late.
    """

    path: str
    directory: str | None
    seen: Seen


def looked_at(filesystem: fs.FileSystem, base: str, path: str, request: AdmissionRequest, *, directory: str) -> Looked:
    """Look at a file that is written already, sorted by key; what stays of it goes to ``directory`` if rows are late.

    Raises:
        StorageError: the file does not read back, or what stays of it cannot be written.
    """
    look = Look(filesystem, base, request)
    with reading_back(f"{base}/{path}"):
        late = pa.concat_arrays([_NONE, *_late(filesystem, f"{base}/{path}", request, look)])
        if len(late):
            _write_others(filesystem, base, path, request, late, directory)
    return Looked(path=path, directory=directory if len(late) else None, seen=look.seen)


def _late(filesystem: fs.FileSystem, path: str, request: AdmissionRequest, look: Look) -> Iterator[pa.Array]:
    """Yield the places of late rows."""
    compared = dict.fromkeys((*request.keys, *request.ordering))
    schema = table_schema((name, type_) for name, type_ in request.columns if name in compared)
    for places, rows in _parts(filesystem, path, schema, request):
        stay = look.at(rows.append_column(_ROW, places)).column(_ROW)
        if len(stay) < len(places):
            yield places.filter(pc.invert(pc.is_in(places, value_set=stay)))


def _write_others(
    filesystem: fs.FileSystem, base: str, path: str, request: AdmissionRequest, late: pa.Array, directory: str
) -> None:
    schema = table_schema(request.columns)
    # Without partitions: a file that is written already lies in one.
    with delta_writer(filesystem, base, directory, request) as writer:
        for places, rows in _parts(filesystem, f"{base}/{path}", schema, request):
            writer.write(rows.filter(pc.invert(pc.is_in(places, value_set=late))))


def _parts(
    filesystem: fs.FileSystem, path: str, schema: pa.Schema, request: AdmissionRequest
) -> Iterator[tuple[pa.Array, pa.Table]]:
    """Yield columns of a file, some rows at a time, and the places of these in it."""
    share = request.memory // BATCH_SHARE
    with filesystem.open_input_file(path) as source:
        metadata = pq.read_metadata(source)
        file, row = open_parquet(source, metadata=metadata, buffer_size=buffer_size(metadata, share)), 0
        for batch in batches(metadata, share, BATCH_ROWS).of(file, columns=schema.names):
            rows = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield pc.add(positions(rows), row), rows
            row += rows.num_rows
