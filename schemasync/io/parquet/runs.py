"""Events of an admission that may be more than memory holds: the newest per key, sorted, part by part.

Events are gathered while they and the sorting of their keys fit. Where there are more, what was gathered becomes a run:
what `schemasync.io.parquet.newest` keeps of it, sorted, put aside on disk; at the end the runs are merged. Reducing
twice gives what reducing once would: what a run leaves out is older than what it keeps, and says nothing that this does
not.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from pyarrow import fs

from schemasync.core.admission import STAGING, AdmissionRequest
from schemasync.core.keys import is_ordered
from schemasync.core.sharding import KeyRange
from schemasync.errors import StorageError
from schemasync.io.parquet.ahead import ahead, side_by_side
from schemasync.io.parquet.newest import newest_per_key, newest_places, unsent_values
from schemasync.io.parquet.rows import give_back, table_schema
from schemasync.io.parquet.sorted_rows import SortedRows
from schemasync.io.parquet.writing import make_directory

_SHARE: Final = 32
"""This part of the memory is worked on at once; there are several of them: gathered, read, two taken, one that waits,
one written. Where values are carried to placeholders, whoever sorts rows makes a copy of all in order, and one of those
that are kept."""
_HELD: Final = 15 / 32
"""This part of the memory may events have that are sorted together, with what sorting them takes."""
_PLACE_BYTES: Final = 32
"""By row: when it arrived, where it is before and after sorting, and whether it is kept."""
_ADDRESSED: Final = 2**31 - 1
"""Bytes of texts that Arrow holds in one piece."""
_STREAMS: Final = 2
"""Threads that put rows in order at once."""
_FAN_IN: Final = 16
"""Runs that are merged at once; where there are more, neighbours become one run first."""

_Part = tuple[pa.Table, tuple[str, ...]]


class Runs:
    """The events of one admission, in the order of their arrival.

    A key whose columns have no order cannot be merged: all its events are held then.
    """

    def __init__(self, filesystem: fs.FileSystem, base: str, request: AdmissionRequest) -> None:
        """Put runs aside in a directory of their own below ``base``."""
        self._filesystem = filesystem
        self._directory = f"{base}/{STAGING}/{uuid.uuid4().hex}"
        self._request = request
        self._schema = table_schema(request.columns)
        # To compress takes longer than to write to a local disk.
        self._codec = None if isinstance(filesystem, fs.LocalFileSystem) else "lz4"
        self._share = request.memory // _SHARE
        self._most_held = min(request.memory * _HELD, _ADDRESSED)
        types = dict(request.columns)
        self._spills = all(is_ordered(types[key]) for key in request.keys)
        self._puts_aside = False
        self._passed = 0
        self._runs: list[str] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete what was put aside."""
        if self._puts_aside:
            with suppress(OSError):
                self._filesystem.delete_dir(self._directory)

    def parts(self, events: Iterable[pa.Table]) -> Iterator[_Part]:
        """Yield what `newest_per_key` returns of all events, for ascending ranges of keys.

        Raises:
            StorageError: a run cannot be put aside, or read again.
        """
        held: list[pa.Table] = []
        size, asks = 0, False
        for rows in ahead(self._gathered(events)):
            more, alone = self._size(rows), self._has_unsent(rows)
            if held and (asks or alone or size + more > self._most_held):
                self._runs.append(self._put_aside(self._reduced(held, self._share)))
                size = 0
            held.append(rows)
            del rows
            size, asks = size + more, alone
        if not self._runs:
            # Whoever looks for late events reads a row group again for every part that has keys of it.
            yield from self._reduced(held, 2 * self._share)
            return
        self._runs.append(self._put_aside(self._reduced(held, self._share)))
        yield from self._merged(self._few_runs())

    def _few_runs(self) -> list[str]:
        while len(self._runs) > _FAN_IN:
            groups = [self._runs[n : n + _FAN_IN] for n in range(0, len(self._runs), _FAN_IN)]
            self._runs = [self._put_aside(self._merged(group)) for group in groups]
        return self._runs

    def _gathered(self, events: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield events, a share at a time."""
        held: list[pa.Table] = []
        size = 0
        for rows in events:
            held.append(rows)
            size += rows.nbytes
            if self._spills and size >= self._share:
                # Whoever works on them must be the only one to hold them.
                share, held, size = self._together(held), [], 0
                yield share
                del share
        if held:
            yield self._together(held)

    def _size(self, rows: pa.Table) -> int:
        """Return how many bytes these rows take at most while they are sorted, or a column is made one piece."""
        sorting = rows.select(self._request.keys).nbytes + rows.num_rows * _PLACE_BYTES
        return int(rows.nbytes + max(sorting, *(column.nbytes for column in rows.columns)))

    def _has_unsent(self, rows: pa.Table) -> bool:
        """Tell whether rows have placeholders: these are put aside a share at a time."""
        rule = self._request.unsent
        return rule is not None and bool(unsent_values(rows, rule))

    def _reduced(self, held: list[pa.Table], part_bytes: int) -> Iterator[_Part]:
        """Yield what is kept of events, of which nobody else holds one, by parts where there are many."""
        if len(held) > 1:
            yield from self._sorted(held, part_bytes)
        else:
            rows = self._together(held)
            held.clear()
            yield newest_per_key(rows, self._request)

    def _sorted(self, held: list[pa.Table], part_bytes: int) -> Iterator[_Part]:
        """Look for the newest of events without placeholders, and put only these in order, part by part."""
        rows = self._together(held)
        held.clear()
        kept = newest_places(rows, self._request)
        at_once = _rows_of(rows, part_bytes)
        columns = rows.columns
        del rows
        for number, column in enumerate(columns):
            # Arrow would make one of all chunks for every part that is taken; one column after the other, because
            # there would be two of everything otherwise.
            columns[number] = column.combine_chunks()
            del column
        whole = pa.Table.from_arrays(columns, schema=self._schema)
        parts = [kept.slice(first, at_once) for first in range(0, len(kept), at_once)]
        streams = [(whole.take(places) for places in parts[number::_STREAMS]) for number in range(_STREAMS)]
        for rows in side_by_side(streams):
            yield rows, ()

    def _together(self, held: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *held])

    def _merged(self, runs: Sequence[str]) -> Iterator[_Part]:
        for rows in ahead(self._neighbours(runs)):
            yield newest_per_key(rows, self._request)

    def _neighbours(self, runs: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the events of neighbouring runs, for ascending ranges of keys.

        Of equal events those of a later run arrived later, so their order is kept.
        """
        # Nothing else is held, and larger parts are looked at for late events in fewer row groups twice.
        part_bytes = 2 * self._share // len(runs)
        sources = [SortedRows(self._batches(run), self._request.keys, KeyRange(), part_bytes) for run in runs]
        while any(not rows.is_empty for rows in sources):
            for rows in sources:
                rows.fill()
            below = min((key for rows in sources if (key := rows.open_from) is not None), default=None)
            taken = [batch for rows in sources for batch in rows.take_below(below)]
            yield pa.Table.from_batches(taken, self._schema)

    def _put_aside(self, parts: Iterator[_Part]) -> str:
        """Write a run in small batches, so that many can be read at once; Parquet's pages would be larger."""
        path = f"{self._directory}/{uuid.uuid4().hex}.run"
        self._puts_aside = True
        before = self._passed
        try:
            make_directory(self._filesystem, self._directory)
            options = pa.ipc.IpcWriteOptions(compression=self._codec)
            with (
                self._filesystem.open_output_stream(path) as sink,
                pa.ipc.new_stream(sink, self._schema, options=options) as run,
            ):
                for rows, _ in ahead(parts):
                    run.write_table(rows, max_chunksize=_rows_of(rows, self._share // (4 * _FAN_IN)))
                    self._passed += rows.nbytes
        except (OSError, pa.ArrowException) as error:
            raise self._failed("cannot put aside what is admitted", path, error) from error
        give_back(self._passed - before, passed=self._passed, memory=self._request.memory)
        return path

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        try:
            with self._filesystem.open_input_stream(path) as source, pa.ipc.open_stream(source) as run:
                yield from run
        except (OSError, pa.ArrowException) as error:
            raise self._failed("cannot read what was put aside", path, error) from error

    @staticmethod
    def _failed(what: str, path: str, error: Exception) -> StorageError:
        fix = "Free some space or give this user write permission, and run again."
        return StorageError(what, where=path, why=str(error), fix=fix)


def _rows_of(table: pa.Table, most_bytes: int) -> int:
    """Return how many rows of a table take about so many bytes, at least one."""
    row_bytes = table.nbytes // max(table.num_rows, 1) + 1
    return max(int(most_bytes // row_bytes), 1)
