"""Admission through Spark, for landed files that one process should not hold in memory.

Every file is decoded by the same Arrow code as a small one, in Spark's tasks, batch by batch, into files of our own;
Spark deduplicates those by a window and writes. So both ways give the same rows, and Spark's own Parquet reader never
meets what a sink wrote.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as f

from schemasync.core.admission import AdmissionRequest, Admitted, Footer, Unreadable
from schemasync.core.manifest import DataFile
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.ports import FileInfo, Lake
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive
from schemasync.errors import DataError, EngineError, SchemasyncError
from schemasync.io.landed.arrow import ArrowFiles
from schemasync.io.landed.rows import read_rows, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RANK: Final = "schemasync_rank"
_ARRIVAL: Final = "schemasync_arrival"
_FILE: Final = 1 << 40
"""Arrival counts the rows of a file; this is how far the counts of two files lie apart."""
_DATA_ERROR: Final = f"{DataError.__module__}.{DataError.__qualname__}: "
"""How a DataError of a task appears in the text of Spark's error."""
_CAUSE: Final = (": ", "Caused by: ")
"""How the lines begin that name an error in the text of Py4J's; the last one is what began it."""


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
        """Write one delta; what the tasks decoded lies below ``_schemasync/staging`` until then."""
        staging = f"_schemasync/staging/{uuid.uuid4().hex}"
        self._lake.make_directory(staging)
        try:
            parts = self._decode(request, staging)
            events = sum(count for _, count in parts)
            # Only what the tasks reported: one that was tried twice leaves a file that nobody may read.
            uris = [self._lake.uri(path) for path, _ in parts]
            decoded = self._session.read.schema(_ddl(request)).parquet(*uris)
            newest_per_key(decoded, request).write.parquet(self._lake.uri(request.directory))
        except (PySparkException, Py4JError) as error:
            raise _translated(error, request) from error
        finally:
            self._lake.delete_directory(staging)
        written = (f for f in self._lake.files(request.directory) if not _is_hidden(f.path))
        files = tuple(self._written(file) for file in written)
        return Admitted(files=files, rows=sum(file.rows for file in files), events=events)

    def _decode(self, request: AdmissionRequest, staging: str) -> list[tuple[str, int]]:
        """Write every landed file as rows of the table, one task per file; return each one's path and events."""
        # An RDD, because DataFrame.mapInArrow needs pandas (pyspark 3.5, 4.1), and nothing else here does.
        numbers = self._session.sparkContext.parallelize(range(len(request.files)), len(request.files))
        return numbers.map(_decoder(self._arrow, request, staging)).collect()

    def _written(self, file: FileInfo) -> DataFile:
        footer = self._arrow.footer(file, now_ms=file.modified_ms)
        if isinstance(footer, Unreadable):
            raise DataError("a written file does not read back", where=file.path, why=footer.reason)
        return DataFile(path=file.path, rows=footer.rows, bytes=file.bytes)


def _decoder(arrow: ArrowFiles, request: AdmissionRequest, staging: str) -> Callable[[int], tuple[str, int]]:
    filesystem, base = arrow.filesystem, arrow.base

    def decode_file(number: int) -> tuple[str, int]:
        schema = table_schema(request).append(pa.field(_ARRIVAL, pa.int64()))
        count = 0
        path = f"{staging}/part-{number:06}-{uuid.uuid4().hex}.parquet"
        with pq.ParquetWriter(f"{base}/{path}", schema, filesystem=filesystem, store_schema=False) as writer:
            for rows in read_rows(filesystem, base, request.files[number], request):
                first = number * _FILE + count
                arrival = pa.array(range(first, first + rows.num_rows), pa.int64())
                writer.write_table(rows.append_column(_ARRIVAL, arrival).cast(schema))
                count += rows.num_rows
        return path, count

    return decode_file


def _ddl(request: AdmissionRequest) -> str:
    spark = Dialect.SPARK
    columns = (*request.columns, (_ARRIVAL, Primitive.BIGINT))
    return ", ".join(f"{quote_identifier(name, spark)} {print_type(type_, spark)}" for name, type_ in columns)


def newest_per_key(events: DataFrame, request: AdmissionRequest) -> DataFrame:
    """Keep one row per key, the largest by the ordering (null is smallest); files are sorted by key inside.

    Of rows that the ordering does not tell apart the one that arrived last wins.
    """
    if not request.keys:
        return events.drop(_ARRIVAL)
    keys = [f.col(quote_identifier(key, Dialect.SPARK)) for key in request.keys]
    newest = [f.col(quote_identifier(name, Dialect.SPARK)).desc_nulls_last() for name in (*request.ordering, _ARRIVAL)]
    ranked = events.withColumn(_RANK, f.row_number().over(Window.partitionBy(*keys).orderBy(*newest)))
    return ranked.where(f.col(_RANK) == 1).drop(_RANK, _ARRIVAL).sortWithinPartitions(*keys)


def _is_hidden(path: str) -> bool:
    """Hadoop leaves checksums (``.NAME.crc``) beside the files that it writes to local disks."""
    return path.rsplit("/", 1)[-1].startswith((".", "_"))


def _translated(error: Exception, request: AdmissionRequest) -> SchemasyncError:
    text = str(error)
    if _DATA_ERROR in text:
        # The last one is the one that names the file; the others are its causes.
        return DataError(text.rpartition(_DATA_ERROR)[2].splitlines()[0])
    lines = text.strip().splitlines()
    # Spark 3.5 raises a failed job as Py4J's own error, whose first line only says that a call failed.
    causes = [line.removeprefix("Caused by").removeprefix(": ") for line in lines if line.startswith(_CAUSE)]
    why = (causes or lines[:1])[-1][:500]
    return EngineError("Spark failed to admit landed files", where=request.directory, why=why)
