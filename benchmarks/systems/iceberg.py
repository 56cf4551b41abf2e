"""Apache Iceberg: MERGE, copy-on-write or merge-on-read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.systems.base import Family, Setting, TableFormat, base_rows, keys_between, merge_sql, newest_events

_CATALOG: Final = "iceberg"


class Iceberg(TableFormat):
    """One table of Iceberg's, in one of its two modes."""

    def __init__(self, setting: Setting, *, mode: str) -> None:
        """Name the table by its mode: ``copy-on-write`` or ``merge-on-read``."""
        super().__init__(setting)
        self.layered = mode == "merge-on-read"
        self._mode = mode
        self._table = f"bench.{mode.replace('-', '_')}"
        self.relation = f"{_CATALOG}.{self._table}"
        # Where the catalog's warehouse puts it: tables of a hadoop catalog have no location of their own.
        self.root = setting.home / "iceberg" / self._table.replace(".", "/")

    def prepare(self, base: Path) -> None:
        """Load the base. Version 3 has deletion vectors, which its specification puts in place of delete files."""
        base_rows(self._setting, base).createOrReplaceTempView("base_rows")
        properties = {
            "format-version": "3" if self.layered else "2",
            **{f"write.{verb}.mode": self._mode for verb in ("delete", "update", "merge")},
            # zstd by default; everybody else here writes snappy.
            "write.parquet.compression-codec": "snappy",
        }
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self._sql(f"CREATE TABLE {self.relation} USING iceberg TBLPROPERTIES ({listed}) AS SELECT * FROM base_rows")

    def _take_in(self, landed: Path) -> None:
        """Merge; where it is merge-on-read, the keys' range is said.

        Files without a match are left out at run time by Spark's group filter, which is on by default. In Spark 3.5 it
        serves copy-on-write alone (SPARK-56669 brings it to the others): merge-on-read would read every file.
        """
        newest_events(self._setting.session, landed).createOrReplaceTempView("changes")
        only = keys_between(self._setting.session, landed) if self.layered else "TRUE"
        self._sql(merge_sql(self.relation, "changes", only=only))

    def settle(self) -> None:
        """Merge, and rewrite every file that has deletes or is small ("Maintenance: compact data files")."""
        self.compact()
        options = "map('delete-file-threshold', '1', 'min-input-files', '2')"
        self._call("rewrite_data_files", f"options => {options}")

    def tidy(self) -> None:
        """Keep the newest snapshot only: nobody reads an older state here."""
        self._call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")

    def _call(self, procedure: str, arguments: str) -> None:
        self._sql(f"CALL {_CATALOG}.system.{procedure}(table => '{self._table}', {arguments})")


def _conf(home: Path) -> dict[str, str]:
    return {
        # "Getting started: adding catalogs"
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        f"spark.sql.catalog.{_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{_CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{_CATALOG}.warehouse": str(home / "iceberg"),
    }


ICEBERG: Final = Family(
    systems={
        "iceberg-cow": lambda setting: Iceberg(setting, mode="copy-on-write"),
        "iceberg-mor": lambda setting: Iceberg(setting, mode="merge-on-read"),
    },
    packages=("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",),
    conf=_conf,
)
