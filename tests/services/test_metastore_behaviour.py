"""What every metastore must do, of one that serves Thrift: as the embedded one, and the twin in memory."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.io import test_metastore_behaviour as behaviour

pytestmark = pytest.mark.services
NOT_DERBYS = "test_partitions_that_move_in_one_call_are_one_transaction_for_readers"
"""Derby locks what it reads row by row, so a read may have some rows of before; embedded, that is hardly ever met."""

globals().update(
    {
        name: test
        for name, test in vars(behaviour).items()
        if name.startswith("test_") and "server" in inspect.signature(test).parameters and name != NOT_DERBYS
    }
)


@pytest.fixture
def server(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> behaviour.Server:
    return behaviour.ready(behaviour.Hive(spark, f"file:{tmp_path}"), monkeypatch)
