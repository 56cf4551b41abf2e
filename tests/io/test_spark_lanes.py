"""What a thread finds in Spark once it has entered its lane."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from schemasync.io.spark_lanes import POOL, SparkLanes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LANES = 3


def at_once(session: SparkSession, ask: Callable[[], Any]) -> list[Any]:
    """Ask in several threads, each in a lane of its own."""
    meeting = threading.Barrier(LANES)

    def met(_: int) -> Any:
        meeting.wait(20)
        return ask()

    with SparkLanes(session)() as enter, ThreadPoolExecutor(LANES, initializer=enter) as threads:
        return list(threads.map(met, range(LANES)))


def test_every_thread_has_a_pool_of_its_own_that_its_jobs_go_to(spark: SparkSession) -> None:
    context: Any = spark.sparkContext

    def pool() -> str:
        spark.range(10).count()
        return str(context.getLocalProperty(POOL))

    pools = at_once(spark, pool)
    known = {p.name() for p in _sequence(context._jsc.sc().getAllPools())}
    assert (sorted(pools), set(pools) <= known) == (["tables-1", "tables-2", "tables-3"], True)
    assert (context._jsc.sc().getSchedulingMode().toString(), context.getLocalProperty(POOL)) == ("FAIR", None)


def test_a_thread_parses_and_casts_under_the_sessions_settings(spark: SparkSession) -> None:
    jvm: Any = spark._jvm

    def settings() -> tuple[bool, str]:
        found = jvm.org.apache.spark.sql.internal.SQLConf.get()
        return found.ansiEnabled(), found.getConfString("spark.sql.shuffle.partitions")

    assert at_once(spark, settings) == [(True, "4")] * LANES


def test_a_thread_has_the_job_properties_of_the_one_that_opened_the_lanes(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty("callers.own", "here")
    try:
        assert at_once(spark, lambda: context.getLocalProperty("callers.own")) == ["here"] * LANES
    finally:
        context.setLocalProperty("callers.own", None)  # type: ignore[arg-type]  # that is how one is taken away


def test_the_threads_connections_end_with_them(spark: SparkSession) -> None:
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]

    def opened() -> Any:
        spark.range(1).count()
        return weakref.ref(client.get_thread_connection())

    # Only these are looked at, never how many there are: py4j's finalizer has one of its own, which comes and goes.
    connections = at_once(spark, opened)
    assert len(set(map(id, connections))) == LANES
    assert [connection() for connection in connections] == [None] * LANES


def _sequence(values: Any) -> list[Any]:
    return [values.apply(index) for index in range(values.size())]
