"""SQL through a Spark session; results come back through Arrow, so that types and time zones survive.

Handed to the use cases as a `schemasync.core.ports.SqlEngine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from schemasync.core.ports import Rows
from schemasync.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkSql:
    """Runs statements and queries in one session."""

    def __init__(self, session: SparkSession) -> None:
        """Use this session."""
        self._session = session

    def execute(self, sql: str) -> None:
        """Run one statement; raises EngineError where Spark refuses it."""
        with translated(sql):
            # Commands run at once; only queries wait for an action.
            self._session.sql(sql)

    def query(self, sql: str) -> Rows:
        """Run one query and return all its rows; structs are dicts, maps lists of pairs, timestamps aware (UTC)."""
        with translated(sql):
            table = self._session.sql(sql).toArrow()
        columns = [column.to_pylist() for column in table.columns]
        rows = tuple(zip(*columns, strict=True)) if columns else ()
        return Rows(columns=tuple(table.column_names), rows=rows)


@contextmanager
def translated(statement: str) -> Iterator[None]:
    """Turn Spark's errors into one that carries its first line and the statement's."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise EngineError(
            "Spark refused the statement or failed in it",
            where=_first_line(statement),
            why=_reason(error),
        ) from error


def _first_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    return lines[0][:120]


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, Py4JError):
        # The first line only says that a call into the JVM failed.
        lines = [line for line in text.splitlines() if line.startswith((":", "Caused by:"))]
        text = lines[-1].lstrip(": ") if lines else text
    return _first_line(text)[:500]
