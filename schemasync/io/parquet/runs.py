"""Events of an admission that may be more than memory holds: the newest per key, sorted, part by part.

Events are gathered up to a share of the memory. Where there are more, each such run is reduced to what
`schemasync.io.parquet.newest` keeps of it and put aside on disk, sorted, while the next one is gathered; at the end the
runs are merged. Reducing twice gives what reducing once would: what a run leaves out is older than what it keeps, and
says nothing that this does not.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest
from schemasync.core.keys import is_ordered
from schemasync.core.sharding import KeyRange
from schemasync.errors import StorageError
from schemasync.io.parquet.ahead import ahead
from schemasync.io.parquet.newest import newest_per_key
from schemasync.io.parquet.rows import table_schema
from schemasync.io.parquet.sorted_rows import SortedRows

_SHARE: Final = 10
"""Sorting rows and keeping some takes room for them, their copies in order, those that are kept, and a column more.
With a run that is gathered meanwhile that is about half of the memory; an allocator keeps as much of what was freed."""
_FAN_IN: Final = 16
"""Runs that are merged at once; where there are more, neighbours become one run first."""


class Runs:
    """The events of one admission, in the order of their arrival.

    A key whose columns have no order cannot be merged: all its events are held then.
    """

    def __init__(self, filesystem: fs.FileSystem, base: str, request: AdmissionRequest) -> None:
        """Put runs aside in a directory of their own below ``base``."""
        self._filesystem = filesystem
        self._directory = f"{base}/_schemasync/staging/{uuid.uuid4().hex}"
        self._request = request
        self._schema = table_schema(request.columns)
        self._share = request.memory // _SHARE
        types = dict(request.columns)
        self._spills = all(is_ordered(types[key]) for key in request.keys)
        self._puts_aside = False
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

    def parts(self, events: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, tuple[str, ...]]]:
        """Yield what `newest_per_key` returns of all events, for ascending ranges of keys.

        Raises:
            StorageError: a run cannot be put aside, or read again.
        """
        few = self._runs_of(events)
        if few is not None:
            yield newest_per_key(few, self._request)
            return
        while len(self._runs) > _FAN_IN:
            groups = [self._runs[n : n + _FAN_IN] for n in range(0, len(self._runs), _FAN_IN)]
            self._runs = [self._put_aside(rows for rows, _ in self._merged(group)) for group in groups]
        yield from self._merged(self._runs)

    def _runs_of(self, events: Iterable[pa.Table]) -> pa.Table | None:
        """Sort each run and put it aside while the next is gathered; return the events if they are less than one."""
        for rows, is_whole in ahead(self._gathered(events)):
            if not is_whole and not self._runs:
                return rows
            if rows.num_rows:
                self._runs.append(self._put_aside(iter([newest_per_key(rows, self._request)[0]])))
        return None

    def _gathered(self, events: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
        """Yield runs, and at last what is left, which is less than one; tell which it is."""
        held: list[pa.Table] = []
        size = 0
        for rows in events:
            held.append(rows)
            size += rows.nbytes
            if self._spills and size >= self._share:
                # Whoever works on a run must be the only one to hold it.
                run, held, size = self._together(held), [], 0
                yield run, True
                del run
        yield self._together(held), False

    def _together(self, held: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *held])

    def _merged(self, runs: Sequence[str]) -> Iterator[tuple[pa.Table, tuple[str, ...]]]:
        """Merge neighbouring runs: of equal events those of a later run arrived later, so their order is kept."""
        part_bytes = self._share // (2 * len(runs))
        sources = [SortedRows(self._batches(run), self._request.keys, KeyRange(), part_bytes) for run in runs]
        while any(not rows.is_empty for rows in sources):
            for rows in sources:
                rows.fill()
            below = min((key for rows in sources if (key := rows.open_from) is not None), default=None)
            taken = [batch for rows in sources for batch in rows.take_below(below)]
            yield newest_per_key(pa.Table.from_batches(taken, self._schema), self._request)

    def _put_aside(self, tables: Iterator[pa.Table]) -> str:
        """Write a run in small batches, so that many can be read at once; Parquet's pages would be larger."""
        path = f"{self._directory}/{uuid.uuid4().hex}.run"
        self._puts_aside = True
        try:
            self._filesystem.create_dir(self._directory, recursive=True)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with (
                self._filesystem.open_output_stream(path) as sink,
                pa.ipc.new_stream(sink, self._schema, options=options) as run,
            ):
                for rows in tables:
                    row_bytes = rows.nbytes // max(rows.num_rows, 1) + 1
                    run.write_table(rows, max_chunksize=max(self._share // (4 * _FAN_IN * row_bytes), 1))
        except (OSError, pa.ArrowException) as error:
            raise self._failed("cannot put aside what is admitted", path, error) from error
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
