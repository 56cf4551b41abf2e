"""The compaction's Spark job: one pass that writes the new shard and counts what happened.

Handed to `schemasync.app.folding`; the SELECT comes decided from `schemasync.core.ddl.fold`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as f

from schemasync.core.compaction import FoldCounts
from schemasync.core.layout import OP
from schemasync.core.locations import as_pattern
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.partitioning import PartitionColumn, spark_sql
from schemasync.core.spark_errors import cause, no_space
from schemasync.core.spark_schema import without_float_dictionaries
from schemasync.errors import EngineError, SchemasyncError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_WAS: Final = "schemasync_was"
_CHANGED: Final = "schemasync_changed"
_LAST: Final = "schemasync_last"
_PURGE: Final = "schemasync_purge"
_READ: Final = "schemasync_arrival"
_UNSENT: Final = "schemasync_unsent_"


class SparkFold:
    """Runs folds in one session; a `schemasync.core.ports.FoldJob`."""

    def __init__(self, session: SparkSession) -> None:
        """Use this session."""
        self._session = session

    def run(
        self,
        select: str,
        *,
        into: str,
        sort_by: Sequence[str],
        unsent: Mapping[str, str],
        partition_by: Sequence[PartitionColumn] = (),
    ) -> FoldCounts:
        """Write what ``select`` yields into an empty directory, counting in the same pass."""
        observation = Observation()
        try:
            rows = self._session.sql(select)
            counted = rows.observe(observation, *_metrics(unsent))
            kept = counted.where(f"NOT {_PURGE}").drop(_WAS, _CHANGED, _LAST, _PURGE, _READ)
            placed = kept.withColumns({partition.name: f.expr(spark_sql(partition)) for partition in partition_by})
            names = [partition.name for partition in partition_by]
            order = [quote_identifier(name, Dialect.SPARK) for name in (*names, *sort_by)]
            ordered = placed.sortWithinPartitions(*order) if order else placed
            options = without_float_dictionaries(ordered.schema.jsonValue())
            ordered.write.mode("append").options(**options).parquet(into, partitionBy=names)
            counts = observation.get
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise _translated(error, into) from error
        found = {name: int(count or 0) for name, count in counts.items()}
        left = tuple(name for name in unsent if found.pop(f"{_UNSENT}{name}"))
        return FoldCounts(**found, unsent=left)

    def repeats_keys(self, directory: str, keys: Sequence[str]) -> bool:
        """Look at all files below a directory, by their own columns: directories may be named like one of these."""
        try:
            rows = self._session.read.option("recursiveFileLookup", "true").parquet(as_pattern(directory))
            by_key = rows.groupBy(*(quote_identifier(key, Dialect.SPARK) for key in keys))
            return not by_key.agg(f.expr(f"count(*) AS {_READ}")).where(f"{_READ} > 1").isEmpty()
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise _translated(error, directory) from error


def _metrics(unsent: Mapping[str, str]) -> list[Column]:
    """Return what is counted; as texts, because to put each together from columns takes a tenth of a second."""
    alive = f"`{OP}` <> 'd'"
    conditions = {
        "written": f"NOT {_PURGE}",
        "rows": alive,
        "keys": _CHANGED,
        "inserted": f"{alive} AND NOT {_WAS}",
        "updated": f"{alive} AND {_WAS} AND {_LAST}",
        "deleted": f"NOT {alive} AND {_WAS}",
        "purged": _PURGE,
    }
    conditions |= {f"{_UNSENT}{name}": condition for name, condition in unsent.items()}
    counts = {name: f"CASE WHEN {condition} THEN 1 ELSE 0 END" for name, condition in conditions.items()}
    summed = {"read": _READ, **counts}
    return [f.expr(f"sum({count}) AS {quote_identifier(name, Dialect.SPARK)}") for name, count in summed.items()]


def _translated(error: Exception, into: str) -> SchemasyncError:
    if said := no_space(str(error)):
        return StorageError(
            "the new base cannot be written",
            where=into,
            why=said,
            fix="Free some space and run again: the old state is in force and untouched.",
        )
    fix = "The old state is in force."
    return EngineError("the compaction's Spark job failed", where=into, why=cause(error), fix=fix)
