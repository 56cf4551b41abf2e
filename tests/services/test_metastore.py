"""A Spark of its own process works through a metastore that serves Thrift."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.test_database import test_it_lies_where_the_metastore_itself_keeps_databases_and_is_the_users

__all__ = ["test_it_lies_where_the_metastore_itself_keeps_databases_and_is_the_users"]

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


AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from schemasync.io import metastore_hive
from schemasync.io.spark_session import SessionSettings, start_session

settings = SessionSettings(home=Path(sys.argv[2]), master="local[1]", metastore_uri=sys.argv[1])
spark = start_session(settings, java_home=Path(sys.argv[3]), python=sys.executable)
spark.sql("CREATE DATABASE together")
for number in range(4):
    spark.sql(
        f"CREATE EXTERNAL TABLE together.of{number} (id INT) PARTITIONED BY (segment STRING) STORED AS PARQUET "
        f"LOCATION 'file:{sys.argv[2]}/{number}' TBLPROPERTIES ('state' = '0')"
    )
store = metastore_hive.HiveMetastore(spark)
metastore_hive._BATCH = 2

def work(number):
    name = f"of{number}"
    places = {f"a%3Db {n}": f"file:{sys.argv[2]}/{number}/{n}" for n in range(5)}
    for turn in range(3):
        store.add_partitions("together", name, places)
        changes = {"state": str(turn + 1)}
        assert store.swap_properties("together", name, key="state", expected=str(turn), changes=changes)
        store.drop_partitions("together", name, ["gone", *sorted(places)[1:]])
    return list(store.partitions("together", name)), store.table("together", name).properties["state"]

with ThreadPoolExecutor(4) as threads:
    print(sorted(threads.map(work, range(4))))
spark.stop()
"""


def run(program: str, tmp_path: Path, environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    path = os.pathsep.join([str(Path(__file__).parents[2]), environ.get("PYTHONPATH", "")])
    environ = {**environ, "PYTHONPATH": path}
    return subprocess.run(command, check=False, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)


def test_spark_creates_and_reads_a_table_through_it(
    hive_metastore: str, java_environ: dict[str, str], tmp_path: Path
) -> None:
    done = run(PROGRAM, tmp_path, java_environ, hive_metastore, str(tmp_path / "warehouse"))
    assert (done.stdout, (tmp_path / "metastore_db").exists()) == ("[(7, 'base_s1')]\n", False), done.stderr[-3000:]


def test_threads_work_on_tables_of_their_own_through_it(
    hive_metastore: str, java_environ: dict[str, str], tmp_path: Path
) -> None:
    done = run(AT_ONCE, tmp_path, java_environ, hive_metastore, str(tmp_path / "home"), java_environ["JAVA_HOME"])
    assert done.stdout == f"{[(['a%3Db 0'], '3')] * 4}\n", done.stderr[-3000:]
