"""What every metastore must do, of one that serves Thrift: as the embedded one, and the twin in memory."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.io import test_metastore_behaviour as behaviour

pytestmark = pytest.mark.services

globals().update(
    {
        name: test
        for name, test in vars(behaviour).items()
        if name.startswith("test_") and "server" in inspect.signature(test).parameters
    }
)


@pytest.fixture
def server(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> behaviour.Server:
    return behaviour.ready(behaviour.Hive(spark, f"file:{tmp_path}"), monkeypatch)
