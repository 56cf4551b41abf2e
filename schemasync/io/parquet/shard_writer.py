"""One shard's file, or one for each of its user partitions, written row group by row group."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.partitioning import PartitionColumn
from schemasync.errors import StorageError
from schemasync.io.parquet.partitions import by_partition
from schemasync.io.parquet.rows import CALENDAR

_GROUP_ROWS: Final = 262_144
_SAMPLE: Final = 10_000
_REPEATING: Final = 0.9
"""A column whose distinct values are at most this share of a sample is written with a dictionary: about what has a
fifth as many values as a row group has rows. Arrow would begin every column with one and keep what it wrote of it,
which makes files of mostly distinct values larger than Spark's."""


class ShardWriter:
    """Writes tables of one schema into one file of a directory, or of each partition below it; no rows, no file."""

    def __init__(
        self,
        filesystem: fs.FileSystem,
        base: str,
        directory: str,
        schema: pa.Schema,
        group_bytes: int,
        partition_by: Sequence[PartitionColumn] = (),
    ) -> None:
        """Write below ``base``; a row group ends when all that wait are ``group_bytes``, or it has its usual rows."""
        self._filesystem = filesystem
        self._base = base
        self._directory = directory
        self._schema = schema
        self._group_bytes = group_bytes
        self._partition_by = partition_by
        self._held: dict[str, list[pa.Table]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._name = f"part-00000-{uuid.uuid4().hex}.parquet"

    def __enter__(self) -> Self:
        """Make the directory.

        Raises:
            StorageError: that is not possible.
        """
        self._attempt(lambda: self._make_directory(self._directory))
        return self

    def _make_directory(self, directory: str) -> None:
        self._filesystem.create_dir(f"{self._base}/{directory}", recursive=True)

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
        return any(_rows(held) >= _GROUP_ROWS for held in self._held.values()) or size >= max(self._group_bytes, 1)

    def _flush(self, place: str) -> None:
        group = pa.concat_tables(self._held.pop(place))
        if place not in self._writers:
            self._writers[place] = self._opened(place, group)
        self._writers[place].write_table(group, row_group_size=_GROUP_ROWS)

    def _opened(self, place: str, first: pa.Table) -> pq.ParquetWriter:
        directory = f"{self._directory}/{place}".rstrip("/")
        self._make_directory(directory)
        return pq.ParquetWriter(
            f"{self._base}/{directory}/{self._name}",
            self._schema,
            filesystem=self._filesystem,
            compression="snappy",
            store_schema=False,
            use_dictionary=[name for name in self._schema.names if _repeats(first.column(name))],
            write_page_index=True,
        )

    def _close(self) -> None:
        for place in tuple(self._held):
            self._flush(place)
        for writer in self._writers.values():
            writer.add_key_value_metadata(CALENDAR)
            writer.close()

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                "a shard cannot be written",
                where=f"{self._base}/{self._directory}/{self._name}",
                why=str(error),
                fix="Free some space or give this user write permission, and run again: the old state is in force.",
            ) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and the footer; after an error only let go of the file."""
        if kind is None:
            self._attempt(self._close)
        else:
            for writer in self._writers.values():
                writer.close()


def _rows(tables: Sequence[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)


def _repeats(values: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(values.type):
        return True
    # Spread over all rows: neighbours in the order of the key are alike more often than others.
    step = max(len(values) // _SAMPLE, 1)
    sample = values.take(pa.array(range(0, len(values), step), pa.int64()))
    return bool(pc.count_distinct(sample).as_py() <= _REPEATING * len(sample))
