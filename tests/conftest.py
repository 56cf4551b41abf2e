"""One embedded Spark for the whole run; every test gets a database and a directory of its own."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.lab import Begun, Lab, NewLab, own_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A busy machine makes generated cases slow, not wrong.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

_NUMBERS = itertools.count(1)
HADOOP_ONLY = {"spark.hadoop.fs.viewfs.mounttable.tests.link./disk": "file:///"}
"""The local disk as ``viewfs://tests/disk/``, which nothing but Hadoop's client reaches."""

_TIER_4 = {
    "InvocationThreshold": 5_000,
    "MinInvocationThreshold": 600,
    "CompileThreshold": 15_000,
    "BackEdgeThreshold": 40_000,
}
PATIENT = {
    "spark.driver.defaultJavaOptions": " ".join(f"-XX:Tier4{name}={20 * usual}" for name, usual in _TIER_4.items())
}
"""Spark's second compiler waits for twenty times as many calls as it does by itself: no query of ours is asked often.

It took two fifths of the JVM's time. Without it all is slower still: see `tests.children.SHORT_LIVED`.
"""


@pytest.fixture(scope="session")
def spark_conf() -> dict[str, str]:
    """Return the settings of the run's Spark."""
    return HADOOP_ONLY


@pytest.fixture(scope="session")
def metastore_uri() -> str | None:
    """Return where the metastore of the run's Spark is; None is one of its own, embedded."""
    return None


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, spark_conf: dict[str, str], metastore_uri: str | None
) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    with own_spark(home, purpose="tests", conf=PATIENT | spark_conf, metastore_uri=metastore_uri) as session:
        yield session


@pytest.fixture
def lab(tmp_path: Path, spark: SparkSession) -> Iterator[Lab]:
    made = Lab(root=tmp_path, session=spark, database=f"lab{next(_NUMBERS)}")
    yield made
    made.leave()


@pytest.fixture(scope="module")
def new_lab(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[NewLab]:
    """Return what makes a lab: for tests that need several, or one for each example."""
    made: list[Lab] = []

    def make() -> Lab:
        made.append(Lab(root=tmp_path_factory.mktemp("lab"), session=spark, database=f"lab{next(_NUMBERS)}"))
        return made[-1]

    yield make
    for lab in made:
        lab.leave()


@pytest.fixture(scope="module")
def begun(new_lab: NewLab) -> Begun:
    """Return what lends labs to the tests of a module that begin alike."""
    return Begun(new_lab)


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Put back what pytest and the other tests rely on. The silenced loggers stay silent: nobody listens to them."""
    root, ours = logging.getLogger(), logging.getLogger("schemasync")
    before = (root.handlers[:], root.level, ours.level)
    root.handlers.clear()  # to set logging up closes the handlers that it finds
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])
    for name in ("urllib3", "botocore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
