"""Apache Hudi: upserts, copy-on-write or merge-on-read, with its bloom index or its record index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.systems.base import TABLE_COLUMNS, Family, Setting, TableFormat, base_rows, newest_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_INDEXES: Final = {
    "bloom": {"hoodie.index.type": "BLOOM"},
    # "Record index": the metadata table maps every key to its file; the only index that does not grow with the files.
    "record": {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
}


class Hudi(TableFormat):
    """One table of Hudi's, of one type and with one index."""

    def __init__(self, setting: Setting, *, type_: str, index: str) -> None:
        """Name the table by both."""
        super().__init__(setting)
        self.layered = type_ == "mor"
        self.relation = f"hudi_{type_}_{index}"
        self.root = setting.root
        self._options = {
            "hoodie.table.name": self.relation,
            "hoodie.datasource.write.table.type": _TYPES[type_],
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            # "Record mergers": events are ordered by the time at which they happened, so late ones lose.
            "hoodie.table.ordering.fields": "ts_ms",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            # After each commit by default: nobody's clean-up is timed, and `tidy` does it.
            "hoodie.clean.automatic": "false",
            # gzip by default; everybody else here writes snappy.
            "hoodie.parquet.compression.codec": "snappy",
            # As many tasks as there are cores, or a few more, instead of what clusters want.
            "hoodie.upsert.shuffle.parallelism": "4",
            "hoodie.bloom.index.parallelism": "4",
            **_INDEXES[index],
        }

    def prepare(self, base: Path) -> None:
        """Load the base with ``bulk_insert``, sorted by key ("Writing data: bulk insert")."""
        rows = base_rows(self._setting, base).selectExpr("*", "false AS _hoodie_is_deleted")
        sizes = {"hoodie.bulkinsert.shuffle.parallelism": str(self._setting.files)}
        self._write(rows, "bulk_insert", "overwrite", sizes | {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
        self._sql(f"CREATE TABLE {self.relation} USING hudi LOCATION '{self.root}'")

    def _take_in(self, landed: Path) -> None:
        """Upsert; ``_hoodie_is_deleted`` is how a stream with deletes among upserts says so ("Deletes")."""
        events = newest_events(self._setting.session, landed)
        rows = events.selectExpr(*TABLE_COLUMNS, "op = 'd' AS _hoodie_is_deleted")
        self._write(rows, "upsert", "append", {})
        self._setting.session.catalog.refreshTable(self.relation)

    def _write(self, rows: DataFrame, operation: str, mode: str, more: dict[str, str]) -> None:
        writer = rows.write.format("hudi").options(**self._options, **more)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(str(self.root))

    def settle(self) -> None:
        """Upsert, and compact the log files."""
        self.compact()
        if self.layered:
            for operation in ("schedule", "run"):
                self._sql(f"CALL run_compaction(op => '{operation}', table => '{self.relation}')").collect()
            self._setting.session.catalog.refreshTable(self.relation)

    def tidy(self) -> None:
        """Keep the newest file of each group only: nobody reads an older state here."""
        policy = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1"
        self._sql(f"CALL run_clean(table => '{self.relation}', {policy})").collect()


def _conf(_: Path) -> dict[str, str]:
    return {
        # "Spark quick start"
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }


HUDI: Final = Family(
    systems={
        "hudi-cow-bloom": lambda setting: Hudi(setting, type_="cow", index="bloom"),
        "hudi-cow-record": lambda setting: Hudi(setting, type_="cow", index="record"),
        "hudi-mor-bloom": lambda setting: Hudi(setting, type_="mor", index="bloom"),
        "hudi-mor-record": lambda setting: Hudi(setting, type_="mor", index="record"),
    },
    packages=("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
    conf=_conf,
)
