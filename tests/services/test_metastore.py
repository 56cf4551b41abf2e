"""A Spark of its own process works through a metastore that serves Thrift."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.services

PROGRAM = """
import sys
from pyspark.sql import SparkSession

settings = {
    "spark.hadoop.hive.metastore.uris": sys.argv[1],
    "spark.sql.warehouse.dir": sys.argv[2],
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE lake")
spark.sql("CREATE TABLE lake.student (id INT) PARTITIONED BY (segment STRING) STORED AS PARQUET")
spark.sql("INSERT INTO lake.student PARTITION (segment = 'base_s1') VALUES (7)")
print([tuple(row) for row in spark.table("lake.student").collect()])
spark.stop()
"""


def test_spark_creates_and_reads_a_table_through_it(
    hive_metastore: str, java_environ: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PROGRAM, hive_metastore, str(tmp_path / "warehouse")]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=java_environ, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, (tmp_path / "metastore_db").exists()) == ("[(7, 'base_s1')]\n", False), done.stderr[-3000:]
