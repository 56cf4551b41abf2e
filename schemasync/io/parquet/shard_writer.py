"""The file of a segment, or one for each of its user partitions, written row group by row group."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.admission import AdmissionRequest
from schemasync.core.manifest import SegmentKind
from schemasync.core.partitioning import PartitionColumn
from schemasync.errors import StorageError
from schemasync.io.parquet.calendar import CALENDAR
from schemasync.io.parquet.moments import NewestSeen
from schemasync.io.parquet.open_files import MORE_FILES, allow_open_files, is_too_many
from schemasync.io.parquet.pages import is_long, write_page_footers
from schemasync.io.parquet.partitions import by_partition
from schemasync.io.parquet.rows import give_back, table_schema
from schemasync.io.parquet.writing import make_directory, open_writer

_GROUP_ROWS: Final = {SegmentKind.BASE: 262_144, SegmentKind.DELTA: 65_536}
"""Rows of a row group. Those of deltas are small: who merges one shard reads no more of a delta than it needs, and
while one is written the rows of the next can be merged."""
_GROUP_SHARE: Final = 8
"""This part of the memory gathers rows for a group of their own; the rest holds what is sorted or merged meanwhile."""


class ShardWriter:
    """Writes tables of one schema into one file of a directory, or of each partition below it; no rows, no file."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        base: str,
        directory: str,
        schema: pa.Schema,
        memory: int,
        *,
        kind: SegmentKind,
        keys: Sequence[str],
        ordering: Sequence[str],
        shared: bool = False,
        partition_by: Sequence[PartitionColumn] = (),
    ) -> None:
        """Write below ``base``; rows that wait for their row group are an eighth of the ``memory`` at most.

        Where there are ``keys`` somebody will look for few rows: pages of these columns and of the ``ordering`` can be
        read one by one where a file is long, and the footer tells what bounds the rows where statistics do not.
        """
        self._filesystem = filesystem
        self._base = base
        self._directory = directory
        self._schema = schema
        self._memory = memory
        self._group_bytes = memory // _GROUP_SHARE
        self._partition_by = partition_by
        self._keys = keys
        self._looked_at = [*keys, *ordering] if keys else []
        self._ordering = ordering if keys else []
        self._shared = shared
        self._newest: dict[str, NewestSeen] = {}
        self._group_rows = _GROUP_ROWS[kind]
        self.rows: dict[str, int] = {}
        """Path of each file -> how many rows it has."""
        self._held: dict[str, list[pa.Table]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._kept = self._written = 0
        """Bytes that Arrow's allocator may have kept of what was written, and of all that was."""
        self._name = f"part-00000-{uuid.uuid4().hex}.parquet"

    def __enter__(self) -> Self:
        """Make the directory.

        Raises:
            StorageError: that is not possible.
        """
        allow_open_files()
        self._attempt(lambda: self._make_directory(self._directory))
        return self

    def _make_directory(self, directory: str) -> None:
        make_directory(self._filesystem, f"{self._base}/{directory}")

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            StorageError: they cannot be written.
        """
        if rows.num_rows:
            for place, part in by_partition(rows, self._partition_by):
                self._held.setdefault(place, []).append(part)
        while self._is_group():
            # The largest first: small row groups make files large and slow.
            self._attempt(lambda: self._flush(max(self._held, key=lambda place: _rows(self._held[place]))))

    def _is_group(self) -> bool:
        size = sum(t.nbytes for held in self._held.values() for t in held)
        return any(_rows(held) >= self._group_rows for held in self._held.values()) or size >= max(self._group_bytes, 1)

    def _flush(self, place: str) -> None:
        group = pa.concat_tables(self._held.pop(place))
        if place not in self._writers:
            self._writers[place] = self._opened(place, group)
            self._newest[place] = NewestSeen(self._ordering, shared=self._shared)
        self._writers[place].write_table(group, row_group_size=self._group_rows)
        self._newest[place].note(group)
        path = self._path(place)
        self.rows[path] = self.rows.get(path, 0) + group.num_rows
        self._kept += group.nbytes
        self._written += group.nbytes
        del group
        self._kept = give_back(self._kept, passed=self._written, memory=self._memory)

    def _path(self, place: str) -> str:
        return "/".join(part for part in (self._directory, place, self._name) if part)

    def _opened(self, place: str, first: pa.Table) -> pq.ParquetWriter:
        path = self._path(place)
        self._make_directory(path.rpartition("/")[0])
        return open_writer(self._filesystem, f"{self._base}/{path}", first, self._group_bytes, keys=self._keys)

    def _close(self) -> None:
        for place in tuple(self._held):
            self._flush(place)
        for place, writer in self._writers.items():
            writer.add_key_value_metadata(CALENDAR | self._newest[place].metadata)
            writer.close()
            path = self._path(place)
            if self._looked_at and is_long(self.rows[path]):
                write_page_footers(self._filesystem, f"{self._base}/{path}", self._looked_at)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, pa.ArrowException) as error:
            raise not_written(f"{self._base}/{self._directory}/{self._name}", error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and the footer; after an error only let go of the file."""
        if kind is None:
            self._attempt(self._close)
        else:
            for writer in self._writers.values():
                # Each writes a footer, for which there may be no room either.
                with suppress(OSError, pa.ArrowException):
                    writer.close()


def delta_writer(
    filesystem: fs.FileSystem,
    base: str,
    directory: str,
    request: AdmissionRequest,
    *,
    partition_by: Sequence[PartitionColumn] = (),
) -> ShardWriter:
    """Return what writes rows of the delta that a request asks for."""
    return ShardWriter(
        filesystem,
        base,
        directory,
        table_schema(request.columns),
        request.memory,
        kind=SegmentKind.DELTA,
        keys=request.keys,
        ordering=request.ordering,
        shared=request.shared,
        partition_by=partition_by,
    )


def _rows(tables: Sequence[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)


def not_written(where: str, error: Exception) -> StorageError:
    """Return the error to raise where a file of ours could not be written."""
    return StorageError(
        "a file of the table cannot be written",
        where=where,
        why=str(error),
        fix=MORE_FILES
        if is_too_many(error)
        else "Free some space or give this user write permission, and run again: the old state is in force.",
    )
