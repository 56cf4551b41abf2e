"""One embedded Spark for the whole run; every test gets a database and a directory of its own."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab import Lab, NewLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count(1)
HADOOP_ONLY = {"spark.hadoop.fs.viewfs.mounttable.tests.link./disk": "file:///"}
"""The local disk as ``viewfs://tests/disk/``, which nothing but Hadoop's client reaches."""


@pytest.fixture(scope="session")
def spark_conf() -> dict[str, str]:
    """Return the settings of the run's Spark."""
    return HADOOP_ONLY


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    from schemasync.io.java import find_java
    from schemasync.io.spark_session import SessionSettings, held, start_session

    home = tmp_path_factory.mktemp("spark")
    with held(home, purpose="tests"):
        java = find_java(os.environ, cache_dir=home / "java")
        settings = SessionSettings(home=home, conf=spark_conf)
        session = start_session(settings, java_home=java.home, python=sys.executable)
        yield session
        session.stop()


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> Lab:
    return Lab(root=tmp_path, session=spark, database=f"lab{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def new_lab(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> NewLab:
    """Return what makes a lab: for tests that need several, or one for each example."""
    return lambda: Lab(root=tmp_path_factory.mktemp("lab"), session=spark, database=f"lab{next(_NUMBERS)}")
