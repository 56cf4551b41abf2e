"""Apache Paimon: a primary key table, merge-on-read or merge-on-write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.systems.base import TABLE_COLUMNS, Family, Setting, TableFormat, base_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CATALOG: Final = "paimon"
_BUCKET_ROWS: Final = 2_500_000
"""About 300 MB: a bucket should have between 200 MB and 1 GB ("Table mode")."""


class Paimon(TableFormat):
    """One table of Paimon's, in one of two modes.

    It needs no MERGE: it takes all events, keeps the newest by its sequence fields, late ones or not, and knows deletes
    by a column ("Sequence and rowkind").
    """

    def __init__(self, setting: Setting, *, vectors: bool) -> None:
        """Name the table by its mode: with deletion vectors it is merge-on-write."""
        super().__init__(setting)
        self.layered = True
        name = "merge_on_write" if vectors else "merge_on_read"
        self.relation = f"{_CATALOG}.bench.{name}"
        # Where the catalog's warehouse puts it: its tables have no location of their own.
        self.root = setting.home / _CATALOG / "bench.db" / name
        self._table = f"bench.{name}"
        self._vectors = vectors

    def prepare(self, base: Path) -> None:
        """Load the base; as many buckets as there are cores, or as they should be large."""
        rows = self._events(base_rows(self._setting, base), kind="'+I'", offset="-1")
        properties = {
            "primary-key": "id",
            "bucket": str(max(2, self._setting.rows // _BUCKET_ROWS)),
            "sequence.field": "ts_ms,kafka_offset",
            "rowkind.field": "row_kind",
            "deletion-vectors.enabled": str(self._vectors).lower(),
            # ORC by default in this version, and zstd; everybody else here writes snappy.
            "file.format": "parquet",
            "file.compression": "snappy",
        }
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
        self._sql(f"CREATE DATABASE IF NOT EXISTS {_CATALOG}.bench")
        self._sql(f"CREATE TABLE {self.relation} ({columns}) TBLPROPERTIES ({listed})")
        self._insert(rows)
        self._merge_all()

    def _take_in(self, landed: Path) -> None:
        """Insert the events; what a write compacts by itself is waited for."""
        events = self._setting.session.read.parquet(str(landed))
        self._insert(self._events(events, kind="IF(op = 'd', '-D', '+U')", offset="kafka_offset"))

    def settle(self) -> None:
        """Insert, and compact fully."""
        self.compact()
        self._merge_all()

    def tidy(self) -> None:
        """Keep the newest snapshot only: nobody reads an older state here."""
        newest = ("retain_max => 1", "retain_min => 1")
        self._call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00'", *newest)

    def _events(self, rows: DataFrame, *, kind: str, offset: str) -> DataFrame:
        offset_of = f"CAST({offset} AS BIGINT) AS kafka_offset"
        return rows.selectExpr(*TABLE_COLUMNS, offset_of, f"{kind} AS row_kind")

    def _insert(self, rows: DataFrame) -> None:
        rows.write.insertInto(self.relation)

    def _merge_all(self) -> None:
        self._call("compact")

    def _call(self, procedure: str, *arguments: str) -> None:
        listed = ", ".join((f"table => '{self._table}'", *arguments))
        self._sql(f"CALL {_CATALOG}.sys.{procedure}({listed})")


def _conf(home: Path) -> dict[str, str]:
    return {
        # "Spark quick start"
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        f"spark.sql.catalog.{_CATALOG}": "org.apache.paimon.spark.SparkCatalog",
        f"spark.sql.catalog.{_CATALOG}.warehouse": str(home / _CATALOG),
    }


PAIMON: Final = Family(
    systems={
        "paimon-mor": lambda setting: Paimon(setting, vectors=False),
        "paimon-mow": lambda setting: Paimon(setting, vectors=True),
    },
    packages=("org.apache.paimon:paimon-spark-3.5:0.9.0",),
    conf=_conf,
)
