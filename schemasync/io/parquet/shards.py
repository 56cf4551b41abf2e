"""Shards, cut and merged: in this process while they are small, in Spark's tasks when they are not.

Both run `schemasync.io.parquet.merge.merge_shard`; Spark distributes, schedules and retries it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import fs
from pyspark import TaskContext

from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile
from schemasync.core.merging import MergedShard, MergeRequest, ShardMerge
from schemasync.core.sharding import KeyRange, Spread
from schemasync.errors import DataError
from schemasync.io.parquet.merge import merge_shard
from schemasync.io.parquet.open_files import MORE_FILES, is_too_many
from schemasync.io.parquet.sorted_rows import key_batches, sampled, spread
from schemasync.io.parquet.tasks import SPARK_FAILED, of_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAMPLES = 1000
"""Keys that are looked at for each cut."""
_AT_ONCE: Final = os.cpu_count() or 1
_MERGING: Final = threading.BoundedSemaphore(_AT_ONCE)
"""Taken for each shard: however many tables are compacted at once, this process holds no more shards in memory."""


class ArrowShards:
    """Works in this process, on as many shards at once as there are cores; a `schemasync.core.ports.ShardJob`."""

    def __init__(self, filesystem: fs.FileSystem, base: str) -> None:
        """Read and write below ``base`` of a file system."""
        self._filesystem = filesystem
        self._base = base

    def spread(self, files: Sequence[DataFile], keys: Sequence[str], bounds: Sequence[Key]) -> Spread:
        """Count each file's rows before the first bound, between each two, and from the last one on."""
        if not bounds:
            return {file.path: {0: file.rows} if file.rows else {} for file in files}
        with _reading(self._base):
            return {
                file.path: spread(key_batches(self._filesystem, f"{self._base}/{file.path}", keys), keys, bounds)
                for file in files
            }

    def cuts(self, files: Sequence[DataFile], keys: Sequence[str], within: KeyRange, pieces: int) -> tuple[Key, ...]:
        """Return where a range is cut into about equal pieces: at most one key less than these, ascending."""
        every = max(sum(file.rows for file in files) // (_SAMPLES * pieces), 1)
        # File after file: each holds a part of its keys while it is read.
        with _reading(self._base):
            found = sorted(
                key
                for file in files
                for key in sampled(
                    key_batches(self._filesystem, f"{self._base}/{file.path}", keys), keys, within, every
                )
            )
        places = {found[len(found) * n // pieces] for n in range(1, pieces)} if found else set()
        return tuple(sorted(places - {found[0]})) if found else ()

    def merge(self, request: MergeRequest) -> tuple[MergedShard, ...]:
        """Write all shards of a request."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return tuple(pool.map(_merger(self._filesystem, self._base, request), request.shards))


def _merger(filesystem: fs.FileSystem, base: str, request: MergeRequest) -> Callable[[ShardMerge], MergedShard]:
    alone = len(request.shards) == 1

    def run(shard: ShardMerge) -> MergedShard:
        with _MERGING, _reading(base):
            return merge_shard(filesystem, base, request, shard, shard.directory, alone=alone)

    return run


@contextmanager
def _reading(base: str) -> Iterator[None]:
    """Say of a file that cannot be read in which table it is; what cannot be written is told by who writes."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            "a file of the table cannot be read",
            where=base,
            why=f"{error}".splitlines()[0],
            fix=MORE_FILES if is_too_many(error) else "Run again once the storage answers; the old state is in force.",
        ) from error


class SparkShards(ArrowShards):
    """Merges in Spark's tasks, one per shard; a `schemasync.core.ports.ShardJob`."""

    def __init__(self, session: SparkSession, filesystem: fs.FileSystem, base: str) -> None:
        """Use this session."""
        super().__init__(filesystem, base)
        self._session = session

    def merge(self, request: MergeRequest) -> tuple[MergedShard, ...]:
        """Write all shards of a request, the largest first.

        Raises:
            DataError: a value does not fit the type that its column has now.
            EngineError: Spark failed.
            StorageError: a shard cannot be written.
        """
        shards = sorted(request.shards, key=lambda shard: -shard.bytes)
        try:
            # An RDD, because DataFrame.mapInArrow needs pandas (pyspark 3.5, 4.1), and nothing else here does.
            tasks = self._session.sparkContext.parallelize(shards, len(shards))
            return tuple(tasks.map(_task(self._filesystem, self._base, request)).collect())
        except SPARK_FAILED as error:
            raise of_task(error, "Spark failed to merge shards", where=shards[0].directory) from error


def _task(filesystem: fs.FileSystem, base: str, request: MergeRequest) -> Callable[[ShardMerge], MergedShard]:
    def run(shard: ShardMerge) -> MergedShard:
        # Every try has a directory of its own: an earlier one may still be running, and its file must not be read.
        context = TaskContext.get()
        directory = f"{shard.directory}/try-{context.taskAttemptId()}" if context else shard.directory
        with _reading(base):
            return merge_shard(filesystem, base, request, shard, directory, alone=False)

    return run
