"""One shard's file, written row group by row group."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.errors import StorageError
from schemasync.io.parquet.rows import CALENDAR
from schemasync.io.parquet.writing import open_writer

_GROUP_ROWS: Final = 262_144


class ShardWriter:
    """Writes tables of one schema into one file of a directory; no rows, no file."""

    def __init__(
        self, filesystem: fs.FileSystem, base: str, directory: str, schema: pa.Schema, group_bytes: int
    ) -> None:
        """Write below ``base``; a row group ends after ``group_bytes`` of memory, or its usual number of rows."""
        self._filesystem = filesystem
        self._base = base
        self._directory = directory
        self._schema = schema
        self._group_bytes = group_bytes
        self._held: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None
        self._path = f"{directory}/part-00000-{uuid.uuid4().hex}.parquet"

    def __enter__(self) -> Self:
        """Make the directory.

        Raises:
            StorageError: that is not possible.
        """
        self._attempt(lambda: self._filesystem.create_dir(f"{self._base}/{self._directory}", recursive=True))
        return self

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            StorageError: they cannot be written.
        """
        if rows.num_rows:
            self._held.append(rows)
        if self._is_group():
            self._attempt(self._flush)

    def _is_group(self) -> bool:
        rows, size = sum(t.num_rows for t in self._held), sum(t.nbytes for t in self._held)
        return bool(rows >= _GROUP_ROWS or size >= self._group_bytes)

    def _flush(self) -> None:
        group = pa.concat_tables(self._held)
        self._held = []
        if self._writer is None:
            self._writer = open_writer(self._filesystem, f"{self._base}/{self._path}", group, self._group_bytes)
        self._writer.write_table(group, row_group_size=_GROUP_ROWS)
        del group
        # What the allocator keeps of it can be as much again, and serves this thread only.
        pa.default_memory_pool().release_unused()

    def _close(self) -> None:
        if self._held:
            self._flush()
        if self._writer is None:
            return
        self._writer.add_key_value_metadata(CALENDAR)
        self._writer.close()

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                "a shard cannot be written",
                where=f"{self._base}/{self._path}",
                why=str(error),
                fix="Free some space or give this user write permission, and run again: the old state is in force.",
            ) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and the footer; after an error only let go of the file."""
        if kind is None:
            self._attempt(self._close)
        elif self._writer is not None:
            self._writer.close()
