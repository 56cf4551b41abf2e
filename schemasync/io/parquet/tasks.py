"""How Spark fails, and what went wrong in its tasks, as errors of ours."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from schemasync.core.spark_errors import cause, no_space
from schemasync.errors import DataError, EngineError, SchemasyncError, StorageError

SPARK_FAILED: Final = (PySparkException, Py4JError, ConnectionError)
"""What its calls raise; the last one where its JVM is gone."""
_OURS: Final = {f"{kind.__module__}.{kind.__qualname__}: ": kind for kind in (DataError, StorageError)}
"""How an error of ours that a task raised appears in the text of Spark's error."""


def of_task(error: Exception, what: str, *, where: str) -> SchemasyncError:
    """Return the error of ours that a task raised; where it raised another, say that ``what`` failed, and why.

    Of a storage without room it is a StorageError, which lets go what is due: that may make the next run fit.
    """
    text = str(error)
    for mark, kind in _OURS.items():
        if mark in text:
            # The last one is the one that names the file; the others are its causes.
            return kind(text.rpartition(mark)[2].splitlines()[0])
    if said := no_space(text):
        fix = "Free some space and run again: the old state is in force."
        return StorageError(what, where=where, why=said, fix=fix)
    return EngineError(what, where=where, why=cause(error))
