"""One query: values as JSON holds them, and nothing that changes anything."""

from __future__ import annotations

from typing import Any

import pytest

from schemasync.app.querying import query, rows_json
from schemasync.errors import EngineError, SchemasyncError, UsageError
from tests.lab import Lab

pytestmark = pytest.mark.spark


def one(lab: Lab, expression: str) -> Any:
    ((value,),) = query(lab.workspace, f"SELECT {expression} AS x").rows
    return value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(1.50 AS DECIMAL(10,2))", "1.50"),
        ("CAST(0 AS DECIMAL(38,18))", "0.000000000000000000"),
        ("TIMESTAMP '2026-11-21 00:19:49.725274'", "2026-11-21T00:19:49.725274Z"),
        ("TIMESTAMP '2026-11-21 00:19:49+02:00'", "2026-11-20T22:19:49Z"),
        ("TIMESTAMP_NTZ '2026-11-21 00:19:49'", "2026-11-21T00:19:49"),
        ("DATE '2026-01-31'", "2026-01-31"),
        ("X'0102ff'", "AQL/"),
        ("CAST(0.1 AS FLOAT)", 0.1),
        ("CAST(3.4028235E38 AS FLOAT)", 3.4028235e38),
        ("CAST(0.1 AS DOUBLE)", 0.1),
        ("CAST('NaN' AS DOUBLE)", "NaN"),
        ("CAST('-Infinity' AS FLOAT)", "-Infinity"),
        ("9223372036854775807", 9223372036854775807),
        ("true", True),
        ("CAST(NULL AS INT)", None),
        ("array(DATE '2026-01-31', NULL)", ["2026-01-31", None]),
        ("named_struct('a', CAST(1 AS DECIMAL(3,1)), 'b', NULL)", {"a": "1.0", "b": None}),
        ("map('k', X'00')", {"k": "AA=="}),
        ("map(1, 'v')", [[1, "v"]]),
        ("map_filter(map('k', 1), (k, v) -> v > 1)", {}),
        ("array(map('k', array(1)))", [{"k": [1]}]),
    ],
)
def test_a_value_is_such_as_json_can_hold(lab: Lab, expression: str, value: Any) -> None:
    assert one(lab, expression) == value


def test_a_timestamp_is_told_in_utc_whatever_the_sessions_time_zone(lab: Lab) -> None:
    zone = "spark.sql.session.timeZone"
    before = lab.session.conf.get(zone)
    assert before is not None
    lab.session.conf.set(zone, "Asia/Tokyo")
    try:
        assert one(lab, "array(TIMESTAMP '2026-11-21 00:19:49.5')") == ["2026-11-20T15:19:49.500000Z"]
    finally:
        lab.session.conf.set(zone, before)


def test_the_document_has_columns_and_rows(lab: Lab) -> None:
    document = rows_json(query(lab.workspace, "SELECT 1 AS a, 'x' AS a UNION ALL SELECT 2, NULL ORDER BY 1"))
    assert document == {"columns": ["a", "a"], "rows": [[1, "x"], [2, None]]}


def test_a_result_without_rows_has_its_columns(lab: Lab) -> None:
    document = rows_json(query(lab.workspace, "SELECT 1 AS a, 'x' AS a WHERE 1 = 0"))
    assert document == {"columns": ["a", "a"], "rows": []}


def test_the_tables_own_database_is_the_default_and_afterwards_it_is_not(lab: Lab) -> None:
    lab.session.sql(f"CREATE DATABASE {lab.database}")
    before = lab.session.catalog.currentDatabase()
    rows = query(lab.workspace, "SELECT current_database()").rows
    assert (rows, lab.session.catalog.currentDatabase()) == (((lab.database,),), before)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "SELECT 1;",
        "-- why\nSELECT 1",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "VALUES (1), (2)",
        "SHOW DATABASES",
        "DESCRIBE QUERY SELECT 1",
        "EXPLAIN SELECT 1",
        "EXPLAIN SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) AS t(a)",
        "SELECT rand(), (SELECT uuid())",
    ],
)
def test_what_only_reads_is_run(lab: Lab, statement: str) -> None:
    assert query(lab.workspace, statement).rows != ()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1)",
        "INSERT OVERWRITE t SELECT 1",
        "INSERT OVERWRITE DIRECTORY '/nowhere/x' USING parquet SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '/nowhere/x' STORED AS TEXTFILE SELECT 1",
        "FROM (SELECT 1 AS a) INSERT OVERWRITE DIRECTORY '/nowhere/x' USING parquet SELECT a",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "FROM s INSERT INTO t SELECT * INSERT INTO u SELECT *",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMNS (a INT)",
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "SET a = b",
        "USE default",
        "CACHE TABLE t",
        "ADD JAR 'x'",
    ],
)
def test_what_changes_something_is_refused(lab: Lab, statement: str) -> None:
    with pytest.raises(UsageError, match="only queries can be run here"):
        query(lab.workspace, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "EXECUTE IMMEDIATE 'DROP TABLE t'",
        "BEGIN DROP TABLE t; END",
        "CALL a.b()",
        "DECLARE x INT",
    ],
)
def test_what_changes_something_in_the_words_of_spark_4_is_refused(lab: Lab, statement: str) -> None:
    words = "PARSE_SYNTAX_ERROR" if lab.session.version.startswith("3.") else "only queries can be run here"
    with pytest.raises(SchemasyncError, match=words):
        query(lab.workspace, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) AS t(a)",
        "WITH x AS (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) AS t(a)) SELECT * FROM x",
        "SELECT 1 WHERE 1 IN (FROM VALUES (1) AS t(a) MAP a USING 'cat' AS b)",
        "SELECT (SELECT max(b) FROM (FROM VALUES (1) AS t(a) REDUCE a USING 'cat' AS b))",
    ],
)
def test_a_query_that_runs_a_program_is_refused(lab: Lab, statement: str) -> None:
    with pytest.raises(UsageError, match=r"this one calls something else: TRANSFORM \.\.\. USING"):
        query(lab.workspace, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
        "SELECT transform(array(1), x -> concat(x, reflect('java.lang.System', 'getProperty', 'user.home')))",
        "SELECT IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')",
        "SELECT (SELECT rand() || reflect('java.lang.System', 'getProperty', 'user.home'))",
    ],
)
def test_a_query_that_calls_any_method_of_java_is_refused(lab: Lab, statement: str) -> None:
    with pytest.raises(UsageError, match="this one calls something else: java_method, reflect or try_reflect"):
        query(lab.workspace, statement)


def test_a_query_that_calls_any_method_of_java_in_the_words_of_spark_4_is_refused(lab: Lab) -> None:
    words = "UNRESOLVED_ROUTINE" if lab.session.version.startswith("3.") else "this one calls something else"
    with pytest.raises(SchemasyncError, match=words):
        query(lab.workspace, "SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')")


def test_a_view_that_runs_a_program_is_refused(lab: Lab) -> None:
    lab.session.sql(f"CREATE DATABASE {lab.database}")
    lab.session.sql(f"CREATE VIEW {lab.database}.v AS SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) AS t(a)")
    with pytest.raises(UsageError, match="this one calls something else"):
        query(lab.workspace, "SELECT * FROM v")


@pytest.mark.parametrize("statement", ["SELEC 1", "SELECT 1; SELECT 2", ""])
def test_what_is_no_sql_is_wrong_usage(lab: Lab, statement: str) -> None:
    with pytest.raises(UsageError, match=r"this is no SQL: \[PARSE_"):
        query(lab.workspace, statement)


@pytest.mark.parametrize("statement", ["SELECT * FROM nowhere", "SELECT CAST('x' AS INT)"])
def test_what_spark_refuses_is_one_error(lab: Lab, statement: str) -> None:
    with pytest.raises(EngineError):
        query(lab.workspace, statement)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("TIMESTAMP '+11999-01-01 00:00:00'", "+11999-01-01 00:00:00"),
        ("INTERVAL '2' MONTH", "INTERVAL '2' MONTH"),
        ("ARRAY(INTERVAL '2' MONTH)", "[INTERVAL '2' MONTH]"),
    ],
)
def test_a_value_that_python_does_not_have_is_one_error_and_its_text_can_be_had(
    lab: Lab, value: str, text: str
) -> None:
    with pytest.raises(EngineError, match=r"a value of the result cannot be shown: .*CAST\(\.\.\. AS STRING\)"):
        one(lab, value)
    assert one(lab, f"CAST({value} AS STRING)") == text
