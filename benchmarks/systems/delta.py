"""Delta Lake: MERGE, with whole files rewritten or with deletion vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.systems.base import Family, Setting, TableFormat, base_rows, keys_between, merge_sql, newest_events


class Delta(TableFormat):
    """One table of Delta's, with or without deletion vectors."""

    def __init__(self, setting: Setting, *, vectors: bool) -> None:
        """Name the table by its form."""
        super().__init__(setting)
        self.layered = vectors
        self.relation = "delta_vectors" if vectors else "delta_files"
        self.root = setting.root

    def prepare(self, base: Path) -> None:
        """Load the base; deletion vectors are a property of the table ("Deletion vectors" in Delta's documentation)."""
        base_rows(self._setting, base).createOrReplaceTempView("base_rows")
        properties = f"'delta.enableDeletionVectors' = '{str(self.layered).lower()}'"
        place = f"USING delta LOCATION '{self.root}' TBLPROPERTIES ({properties})"
        self._sql(f"CREATE TABLE {self.relation} {place} AS SELECT * FROM base_rows")

    def _take_in(self, landed: Path) -> None:
        """Merge; the keys' range is said ("Performance tuning: reduce the search space for matches")."""
        newest_events(self._setting.session, landed).createOrReplaceTempView("changes")
        self._sql(merge_sql(self.relation, "changes", only=keys_between(self._setting.session, landed)))

    def settle(self) -> None:
        """Merge, rewrite what has deletion vectors, and join small files ("Purge", "Optimize")."""
        self.compact()
        if self.layered:
            self._sql(f"REORG TABLE {self.relation} APPLY (PURGE)")
        self._sql(f"OPTIMIZE {self.relation}")

    def tidy(self) -> None:
        """Vacuum at once: nobody reads an older state here."""
        self._sql(f"VACUUM {self.relation} RETAIN 0 HOURS")


def _conf(_: Path) -> dict[str, str]:
    return {
        # "Set up Apache Spark with Delta Lake"
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # VACUUM at once, below.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # The log of a table of this size fits one task; the default of 50 is for clusters.
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists directories in so many tasks; with the default of 10,000 it takes half a minute.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }


DELTA: Final = Family(
    systems={
        "delta": lambda setting: Delta(setting, vectors=False),
        "delta-dv": lambda setting: Delta(setting, vectors=True),
    },
    packages=("io.delta:delta-spark_2.12:3.3.3",),
    conf=_conf,
)
