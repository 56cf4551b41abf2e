"""Admission through Spark, for landed files that one process should not hold in memory.

Every file is decoded by the same Arrow code as a small one, in Spark's tasks, batch by batch; Spark deduplicates by a
window and writes. So both ways give the same rows, and none of the traps of Spark's own Parquet reader is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation, Window
from pyspark.sql import functions as f

from schemasync.core.admission import AdmissionRequest, Admitted, Footer, Unreadable
from schemasync.core.manifest import DataFile
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.ports import FileInfo, Lake
from schemasync.core.type_strings import print_type
from schemasync.errors import DataError, EngineError, SchemasyncError
from schemasync.io.landed.arrow import ArrowFiles
from schemasync.io.landed.rows import read_rows, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RANK: Final = "schemasync_rank"
_DATA_ERROR: Final = f"{DataError.__module__}.{DataError.__qualname__}: "
"""How a DataError of a task appears in the text of Spark's error."""


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

    def admit(self, request: AdmissionRequest) -> Admitted:
        """Write one delta."""
        observation = Observation()
        try:
            events = self._events(request).observe(observation, f.count(f.lit(1)).alias("events"))
            newest_per_key(events, request).write.parquet(self._lake.uri(request.directory))
            count = int(observation.get["events"])
        except (PySparkException, Py4JError) as error:
            raise _translated(error, request) from error
        files = tuple(self._written(file) for file in self._lake.files(request.directory))
        return Admitted(files=files, rows=sum(file.rows for file in files), events=count)

    def _events(self, request: AdmissionRequest) -> DataFrame:
        numbers = self._session.range(0, len(request.files), 1, numPartitions=len(request.files))
        return numbers.mapInArrow(_decoder(self._arrow, request), _ddl(request))

    def _written(self, file: FileInfo) -> DataFile:
        footer = self._arrow.footer(file, now_ms=file.modified_ms)
        if isinstance(footer, Unreadable):
            raise DataError("a written file does not read back", where=file.path, why=footer.reason)
        return DataFile(path=file.path, rows=footer.rows, bytes=file.bytes)


def _decoder(
    arrow: ArrowFiles, request: AdmissionRequest
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    filesystem, base = arrow.filesystem, arrow.base

    def decode_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in read_rows(filesystem, base, request.files[number], request):
                    yield from rows.cast(table_schema(request)).to_batches()

    return decode_files


def _ddl(request: AdmissionRequest) -> str:
    spark = Dialect.SPARK
    return ", ".join(f"{quote_identifier(name, spark)} {print_type(type_, spark)}" for name, type_ in request.columns)


def newest_per_key(events: DataFrame, request: AdmissionRequest) -> DataFrame:
    """Keep one row per key, the largest by the ordering (null is smallest); files are sorted by key inside."""
    if not request.keys:
        return events
    keys = [f.col(quote_identifier(key, Dialect.SPARK)) for key in request.keys]
    newest = [f.col(quote_identifier(name, Dialect.SPARK)).desc_nulls_last() for name in request.ordering]
    ranked = events.withColumn(_RANK, f.row_number().over(Window.partitionBy(*keys).orderBy(*newest)))
    return ranked.where(f.col(_RANK) == 1).drop(_RANK).sortWithinPartitions(*keys)


def _translated(error: Exception, request: AdmissionRequest) -> SchemasyncError:
    text = str(error)
    if _DATA_ERROR in text:
        return DataError(text.partition(_DATA_ERROR)[2].splitlines()[0])
    return EngineError(
        "Spark failed to admit landed files", where=request.directory, why=text.strip().splitlines()[0][:500]
    )
