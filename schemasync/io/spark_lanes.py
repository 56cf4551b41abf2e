"""Threads side by side in one Spark application: what each of them needs before it runs anything.

Handed to the use cases as ``Workspace.lanes``. pyspark gives every Python thread a thread of its own in the JVM, which
ends with it, and what Spark keeps by thread is not there yet: without the active session expressions are parsed under
Spark's defaults instead of the session's settings (3.5 has casts without ANSI there), and without a pool of its own
a large table's tasks go before all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POOL: Final = "spark.scheduler.pool"
"""The property of a thread that names its jobs' pool; pools share the cores where ``spark.scheduler.mode`` is FAIR."""


class SparkLanes:
    """Opens lanes in one session."""

    def __init__(self, session: SparkSession) -> None:
        """Use this session."""
        self._session = session

    @contextmanager
    def __call__(self) -> Iterator[Callable[[], None]]:
        """Yield what a thread calls first: it gets the session, this thread's job properties, and a pool of its own."""
        context: Any = self._session.sparkContext
        inherited = context._jsc.sc().getLocalProperties().clone()
        numbers = itertools.count(1)

        def enter() -> None:
            # Where Spark is gone, the work itself says so, and for each table.
            with suppress(Py4JError, ConnectionError):
                context._jsc.sc().setLocalProperties(inherited.clone())
                context.setLocalProperty(POOL, f"tables-{next(numbers)}")
                context._jvm.SparkSession.setActiveSession(self._session._jsparkSession)

        yield enter
