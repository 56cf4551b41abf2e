"""Admission through Spark, for landed files that one process should not hold in memory.

Every file is decoded by the same Arrow code as a small one, in Spark's tasks, batch by batch, into files of our own;
Spark deduplicates those by a window and writes. So both ways give the same rows, and Spark's own Parquet reader never
meets what a sink wrote.
"""

from __future__ import annotations

import logging
import posixpath
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Observation, Window
from pyspark.sql import functions as f

from schemasync.core.admission import DELETE, STAGING, AdmissionRequest, Admitted, Footer, Unreadable, WrittenFooter
from schemasync.core.beyond import Beyond
from schemasync.core.layout import OP
from schemasync.core.locations import as_pattern
from schemasync.core.manifest import DataFile
from schemasync.core.names import Dialect, is_hidden, quote_identifier
from schemasync.core.partitioning import spark_sql
from schemasync.core.ports import FileInfo, Lake
from schemasync.core.spark_schema import without_float_dictionaries
from schemasync.core.toast import unsent_sql
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive
from schemasync.errors import StorageError
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.calendar import CALENDAR
from schemasync.io.parquet.looking import NOTHING_SEEN, Looked, Seen, looked_at
from schemasync.io.parquet.newest import positions, unsent_values
from schemasync.io.parquet.rows import read_rows, table_schema
from schemasync.io.parquet.shard_writer import not_written
from schemasync.io.parquet.tasks import SPARK_FAILED, of_task
from schemasync.io.parquet.writing import PAGE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_log: Final = logging.getLogger("schemasync.admission")
_KEPT: Final = "schemasync_last"
ARRIVAL: Final = "schemasync_arrival"
"""Column of decoded events: their order of arrival, which decides what the ordering does not."""
_PAGES: Final = {
    "parquet.page.size": str(PAGE_BYTES),
    # Until a row group is full it is held in the heap, by every task that writes.
    "parquet.block.size": str(32 * 2**20),
}
_ALL_ROWS: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Whatever the session's settings say: what Spark passed over would be in no delta, and its landed file be folded."""
_FILE: Final = 1 << 40
"""Arrival counts the rows of a file; this is how far the counts of two files lie apart."""


class SparkFiles:
    """Admits with Spark; a `schemasync.core.ports.LandedFiles`."""

    def __init__(self, session: SparkSession, arrow: ArrowFiles, lake: Lake) -> None:
        """Decode with ``arrow``'s file system, write below ``lake``'s root."""
        self._session = session
        self._arrow = arrow
        self._lake = lake

    def footer(self, file: FileInfo, *, now_ms: int) -> Footer | Unreadable:
        """Read one file's footer."""
        return self._arrow.footer(file, now_ms=now_ms)

    def written(self, path: str, columns: Collection[str], *, keys: Sequence[str] = ()) -> WrittenFooter:
        """Read the footer of a file of ours."""
        return self._arrow.written(path, columns, keys=keys)

    def keys(self, path: str, column: str) -> Sequence[int | str | None]:
        """Read a key's column from a file of ours."""
        return self._arrow.keys(path, column)

    def words(self, paths: Sequence[str], column: str, *, low: int, count: int) -> Sequence[int] | None:
        """Read a column of whole numbers from files of ours as bits."""
        return self._arrow.words(paths, column, low=low, count=count)

    def hashed_words(self, paths: Sequence[str], columns: Sequence[str], *, count: int) -> Sequence[int]:
        """Read columns from files of ours as bits of their hashes."""
        return self._arrow.hashed_words(paths, columns, count=count)

    def write_words(self, path: str, words: Sequence[int]) -> None:
        """Write words as an ORC file."""
        self._arrow.write_words(path, words)

    def admit(self, request: AdmissionRequest) -> Admitted:
        """Write one delta; what the tasks decoded lies below ``_schemasync/staging`` until then."""
        staging = f"{STAGING}/{uuid.uuid4().hex}"
        self._lake.make_directory(staging)
        try:
            parts = self._decode(request, staging)
            # Only what the tasks reported: one that was tried twice leaves a file that nobody may read.
            uris = [as_pattern(self._lake.uri(part.path)) for part in parts]
            decoded = self._session.read.options(**_ALL_ROWS).schema(_ddl(request)).parquet(*uris)
            unsent = frozenset(name for part in parts for name in part.unsent)
            toasted = self._write(newest_per_key(decoded, request, unsent), request, unsent)
            seen = NOTHING_SEEN if toasted else self._without_late_rows(request, staging)
        except SPARK_FAILED as error:
            raise of_task(error, "Spark failed to admit landed files", where=request.directory) from error
        finally:
            self._delete(staging)
        files = tuple(
            DataFile(path=f.path, rows=self.written(f.path, ()).rows, bytes=f.bytes)
            for f in self._files(request.directory)
        )
        rows, events = sum(file.rows for file in files), sum(part.events for part in parts)
        beyond = tuple(one for part in parts for one in part.beyond)
        return Admitted(
            files=files,
            rows=rows,
            events=events,
            toasted=toasted,
            beyond=beyond,
            ahead=seen.ahead,
            ahead_of_deltas=seen.ahead_of_deltas,
            touches=seen.touches,
            contradicted=seen.contradicted,
        )

    def _delete(self, staging: str) -> None:
        """Delete what was put aside; where that fails, what was done stands, and why it failed is told, if it did."""
        try:
            self._lake.delete_directory(staging)
        except StorageError as error:
            _log.warning("what was put aside stays until it is cleaned up: %s", error)

    def _files(self, directory: str) -> list[FileInfo]:
        return [file for file in self._lake.files(directory) if not is_hidden(file.path)]

    def _without_late_rows(self, request: AdmissionRequest, staging: str) -> Seen:
        """Look for late rows in what was written, one task per file; put others in the place of files that have some.

        These lie in ``staging`` until they are moved: a task that was tried twice must leave nothing that engines read.
        """
        if request.beside is None:
            return NOTHING_SEEN
        paths = [file.path for file in self._files(request.directory)]
        if not paths:
            return NOTHING_SEEN
        tasks = self._session.sparkContext.parallelize(paths, len(paths))
        found = tasks.map(_looker(self._arrow, request, staging)).collect()
        for one in found:
            if one.directory is not None:
                self._lake.delete(one.path)
                for file in self._lake.files(one.directory):
                    self._lake.move(file.path, f"{posixpath.dirname(one.path)}/{posixpath.basename(file.path)}")
        return reduce(and_, (one.seen for one in found))

    def _decode(self, request: AdmissionRequest, staging: str) -> list[_Part]:
        """Write every landed file as rows of the table, one task per file."""
        # An RDD, because DataFrame.mapInArrow needs pandas (pyspark 3.5, 4.1), and nothing else here does.
        numbers = self._session.sparkContext.parallelize(range(len(request.files)), len(request.files))
        return numbers.map(_decoder(self._arrow, request, staging)).collect()

    def _write(self, rows: DataFrame, request: AdmissionRequest, unsent: frozenset[str]) -> tuple[str, ...]:
        """Write the delta; return the columns in which its rows have placeholders."""
        names = [partition.name for partition in request.partition_by]
        if names:
            # Files of several partitions are open one after the other, and inside of each rows stay sorted by key.
            values = {partition.name: f.expr(spark_sql(partition)) for partition in request.partition_by}
            rows = rows.withColumns(values).sortWithinPartitions(*map(_column, (*names, *request.keys)))
        into = self._lake.uri(request.directory)
        options = _PAGES | without_float_dictionaries(rows.schema.jsonValue())
        if not unsent:
            rows.write.options(**options).parquet(into, partitionBy=names)
            return ()
        observation = Observation()
        masks = _masks(request, unsent)
        counts = [f.count_if(mask).alias(name) for name, mask in masks.items()]
        rows.observe(observation, *counts).write.options(**options).parquet(into, partitionBy=names)
        return tuple(name for name in masks if observation.get[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One landed file as rows of the table.

    Where they lie, how many, the columns that have placeholders, and the values beyond their type.
    """

    path: str
    events: int
    unsent: frozenset[str]
    beyond: tuple[Beyond, ...]


def _decoder(arrow: ArrowFiles, request: AdmissionRequest, staging: str) -> Callable[[int], _Part]:
    filesystem, base = arrow.filesystem, arrow.base

    def decode_file(number: int) -> _Part:
        schema = table_schema(request.columns).append(pa.field(ARRIVAL, pa.int64()))
        count = 0
        unsent: set[str] = set()
        beyond: list[Beyond] = []
        path = f"{staging}/part-{number:06}-{uuid.uuid4().hex}.parquet"
        try:
            with pq.ParquetWriter(f"{base}/{path}", schema, filesystem=filesystem, store_schema=False) as writer:
                for rows in read_rows(filesystem, base, request.files[number], request, beyond):
                    arrival = pc.add(positions(rows), number * _FILE + count)
                    writer.write_table(rows.append_column(ARRIVAL, arrival).cast(schema))
                    count += rows.num_rows
                    unsent |= unsent_values(rows, request.unsent).keys() if request.unsent and request.keys else set()
                writer.add_key_value_metadata(CALENDAR)
        except OSError as error:
            # What goes wrong with the landed file is an error of ours already.
            raise not_written(f"{base}/{path}", error) from error
        return _Part(path=path, events=count, unsent=frozenset(unsent), beyond=tuple(beyond))

    return decode_file


def _looker(arrow: ArrowFiles, request: AdmissionRequest, staging: str) -> Callable[[str], Looked]:
    filesystem, base = arrow.filesystem, arrow.base

    def look(path: str) -> Looked:
        return looked_at(filesystem, base, path, request, directory=f"{staging}/look-{uuid.uuid4().hex}")

    return look


def _ddl(request: AdmissionRequest) -> str:
    spark = Dialect.SPARK
    columns = (*request.columns, (ARRIVAL, Primitive.BIGINT))
    return ", ".join(f"{quote_identifier(name, spark)} {print_type(type_, spark)}" for name, type_ in columns)


def newest_per_key(events: DataFrame, request: AdmissionRequest, unsent: frozenset[str]) -> DataFrame:
    """Keep the newest row per key, the largest by the ordering (null is smallest); files are sorted by key inside.

    Of rows that the ordering does not tell apart the one that arrived last wins. ``unsent`` are columns that have
    placeholders: what `schemasync.io.parquet.newest` does about them is done here with windows.
    """
    if not request.keys:
        return events.drop(ARRIVAL)
    keys = [_column(key) for key in request.keys]
    newest = [_column(name).desc_nulls_last() for name in (*request.ordering, ARRIVAL)]
    masks = _masks(request, unsent)
    rows = _settled(events, request, masks) if masks else events
    wanted = [_first(keys, newest), *(_first(keys, [mask, *newest]) & ~mask for mask in masks.values())]
    kept = rows.withColumn(_KEPT, reduce(or_, wanted)).where(_KEPT)
    return kept.drop(_KEPT, ARRIVAL).sortWithinPartitions(*keys)


def _settled(events: DataFrame, request: AdmissionRequest, masks: Mapping[str, Column]) -> DataFrame:
    """Make one row of those that the ordering does not tell apart: the last one, with what the others say."""
    same = [_column(name) for name in (*request.keys, *request.ordering)]
    latest = f.col(ARRIVAL).desc()
    settled = events.withColumn(_KEPT, _first(same, [latest]))
    alive = f.col(OP) != DELETE
    younger = request.unsent.younger if request.unsent else frozenset()
    whole = {}
    for name, mask in masks.items():
        saying = Window.partitionBy(*same).orderBy(mask, latest)
        asks = mask
        if name in younger:
            asks &= ~f.first(alive & _column(name).isNull()).over(saying)
        whole[name] = f.when(asks, f.first(f.when(alive, _column(name))).over(saying)).otherwise(_column(name))
    return settled.withColumns(whole).where(_KEPT).drop(_KEPT)


def _masks(request: AdmissionRequest, unsent: frozenset[str]) -> dict[str, Column]:
    """Return by column the condition under which a row has a placeholder in it."""
    rule, spark = request.unsent, Dialect.SPARK
    if rule is None:
        return {}
    conditions = {
        name: unsent_sql(
            quote_identifier(name, spark), type_, operation=OP, placeholders=rule.placeholders, dialect=spark
        )
        for name, type_ in rule.columns
        if name in unsent
    }
    return {name: f.expr(f"coalesce({condition}, FALSE)") for name, condition in conditions.items()}


def _first(keys: Sequence[Column], order: Sequence[Column]) -> Column:
    return f.row_number().over(Window.partitionBy(*keys).orderBy(*order)) == 1


def _column(name: str) -> Column:
    return f.col(quote_identifier(name, Dialect.SPARK))
