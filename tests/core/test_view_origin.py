"""Which engine made a view, and where its query is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from schemasync.core.names import Dialect
from schemasync.core.ports import HiveTable
from schemasync.core.view_origin import Unclear, ViewQuery, query_of

TEXT = "SELECT id FROM student_view"


def view(text: str = TEXT, expanded: str = "", **properties: str) -> HiveTable:
    return HiveTable(
        database="lake",
        name="report",
        kind="VIRTUAL_VIEW",
        columns=(),
        partition_keys=(),
        location="",
        properties={name.replace("_", "."): value for name, value in properties.items()},
        view_text=text,
        expanded_text=expanded,
    )


def trino(content: Any, kind: str = "View") -> str:
    return f"/* Presto {kind}: {base64.b64encode(json.dumps(content).encode()).decode()} */"


@pytest.mark.parametrize(
    ("found", "query"),
    [
        (view(), ViewQuery(text=TEXT, dialect=Dialect.HIVE, database="lake")),
        (view(expanded="full"), ViewQuery(text="full", dialect=Dialect.HIVE, database="lake")),
        (view(spark_sql_create_version="4.1.0"), ViewQuery(text=TEXT, dialect=Dialect.SPARK, database="lake")),
        (view(view_default_database="shop"), ViewQuery(text=TEXT, dialect=Dialect.SPARK, database="shop")),
        (
            view(view_catalogAndNamespace_part_1="shop", expanded="x"),
            ViewQuery(text="x", dialect=Dialect.SPARK, database="shop"),
        ),
        (
            view(trino({"originalSql": TEXT, "schema": "shop"})),
            ViewQuery(text=TEXT, dialect=Dialect.TRINO, database="shop"),
        ),
        (view(trino({"originalSql": TEXT})), ViewQuery(text=TEXT, dialect=Dialect.TRINO, database="lake")),
        (
            view(trino({"originalSql": TEXT, "schema": "shop"}, "Materialized View"), "/* Presto Materialized View */"),
            ViewQuery(text=TEXT, dialect=Dialect.TRINO, database="shop"),
        ),
        (view(" "), Unclear(reason="it has no text")),
        (view("/* Presto View: !!! */"), Unclear(reason="it is no view as Trino writes them (JSONDecodeError)")),
        (
            view("/* Presto Materialized View: */"),
            Unclear(reason="it is no view as Trino writes them (JSONDecodeError)"),
        ),
        (view(trino({})), Unclear(reason="it is no view as Trino writes them (KeyError)")),
        (view(trino([])), Unclear(reason="it is no view as Trino writes them (TypeError)")),
    ],
)
def test_a_views_query_is_found_as_its_engine_wrote_it(found: HiveTable, query: ViewQuery | Unclear) -> None:
    assert query_of(found) == query
