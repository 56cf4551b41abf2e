"""What a view of the metastore says, and in whose words: its query, its dialect, the database of its bare names.

Spark, Hive and Trino keep views in one metastore, each in its own way. Pure: the text is found here and parsed
elsewhere (`schemasync.io.view_reader`).
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final

from schemasync.core.names import Dialect
from schemasync.core.ports import HiveTable

_TRINO: Final = ("/* Presto View: ", "/* Presto Materialized View: ")
"""How Trino's (and Presto's) view texts begin: JSON in base64 follows, then ``*/``."""
_SPARK_DATABASE: Final = ("view.catalogAndNamespace.part.1", "view.default.database")
"""Where Spark keeps the database that was the default when the view was made: Spark 3 and later, Spark 2."""
_SPARK: Final = (*_SPARK_DATABASE, "spark.sql.create.version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewQuery:
    """A view's query. ``database`` is the one that names without a database belong to."""

    text: str
    dialect: Dialect
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """What a view reads cannot be told, and why."""

    reason: str


def query_of(view: HiveTable) -> ViewQuery | Unclear:
    """Find the query of a view as the engine that made it wrote it."""
    if view.view_text.startswith(_TRINO):
        return _trino(view)
    if any(key in view.properties for key in _SPARK):
        named = (view.properties[key] for key in _SPARK_DATABASE if key in view.properties)
        return _query(view.query, Dialect.SPARK, next(named, view.database))
    # Hive's expanded text has every name complete; the other one has them as they were typed.
    return _query(view.query, Dialect.HIVE, view.database)


def _query(text: str, dialect: Dialect, database: str) -> ViewQuery | Unclear:
    return (
        ViewQuery(text=text, dialect=dialect, database=database) if text.strip() else Unclear(reason="it has no text")
    )


def _trino(view: HiveTable) -> ViewQuery | Unclear:
    encoded = view.view_text.partition(": ")[2].rpartition("*/")[0]
    try:
        raw = json.loads(base64.b64decode(encoded))
        return _query(str(raw["originalSql"]), Dialect.TRINO, str(raw.get("schema") or view.database))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unclear(reason=f"it is no view as Trino writes them ({type(error).__name__})")
