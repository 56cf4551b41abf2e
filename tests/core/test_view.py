from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.history import History
from schemasync.core.names import Dialect
from schemasync.core.shape import shape_of
from schemasync.core.view import RowSource, ViewColumn, column_sql, key_expressions, order_by, view_columns
from tests.core.builders import BIGINT, DEBEZIUM, INT, STRING, col, histories, history, rec, target

SPARK, TRINO = Dialect.SPARK, Dialect.TRINO


def source(found: History, *versions: int, keys: tuple[str, ...] = (), **more: Any) -> RowSource:
    """Return the newest version's rows in a table with segments of these versions."""
    to = target(keys=keys, insert_only=not keys)
    shape, _ = shape_of(to, found, found.newest, key=None, baseline=1)
    return RowSource(shape=replace(shape, **more), segment_versions=frozenset(versions))


def expressions(found: History, *versions: int, dialect: Dialect = SPARK, **more: Any) -> list[str]:
    return [c.expression for c in view_columns(source(found, *versions, **more), dialect)]


def test_while_all_segments_are_new_a_column_is_its_physical_column() -> None:
    found = history((col("a"),), (col("a", BIGINT),))
    assert expressions(found, 2) == expressions(found) == ["t.`a__2`"]


def test_older_rows_of_a_widened_column_are_cast() -> None:
    found = history((col("a"),), (col("a", BIGINT),))
    assert expressions(found, 1, 2) == [
        "CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END"
    ]


def test_of_a_delete_only_the_key_is_cast_where_a_value_may_not_fit() -> None:
    found = history((col("a", BIGINT), col("b", BIGINT)), (col("a"), col("b")))
    assert expressions(found, 1, keys=("a",)) == [
        "CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS int) ELSE t.`a__2` END",
        "CASE WHEN t.`__schema_version` <= 1 THEN CASE WHEN t.`__op` <> 'd' THEN CAST(t.`b` AS int) END "
        "ELSE t.`b__2` END",
    ]


def test_older_rows_of_an_added_column_need_no_case_unless_they_read_a_default() -> None:
    found = history((col("a"),), (col("b", nullable=False, default="7"), col("c")))
    assert expressions(found, 1) == ["CASE WHEN t.`__schema_version` <= 1 THEN CAST(7 AS int) ELSE t.`b` END", "t.`c`"]
    assert expressions(found, 1, fill_defaults=False) == ["t.`b`", "t.`c`"]


def test_neighbouring_versions_that_read_the_same_share_a_branch() -> None:
    rows = ((col("z"),), (col("z"),), (col("a", nullable=False, default="1"),), (col("a"),), (col("a", BIGINT),))
    assert expressions(history(*rows), 1, 2, 3, 4, 5) == [
        "CASE WHEN t.`__schema_version` <= 2 THEN CAST(1 AS bigint) "
        "WHEN t.`__schema_version` <= 4 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END"
    ]


def test_an_older_branch_that_reads_the_column_itself_stays_where_a_newer_one_does_not() -> None:
    """Rows of version 1 lack the column; they must not fall into the branch of version 2."""
    rows = ((col("z"),), (col("a"),), (col("a", BIGINT),))
    assert expressions(history(*rows), 1, 2) == [
        "CASE WHEN t.`__schema_version` <= 1 THEN t.`a__2` "
        "WHEN t.`__schema_version` <= 2 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END"
    ]


def test_versions_that_no_segment_has_are_not_mentioned() -> None:
    rows = ((col("a"),), (col("a"), col("b")), (col("a", BIGINT),))
    assert "<= 1" in expressions(history(*rows), 1, 3)[0]
    assert "<= 2" not in expressions(history(*rows), 1, 3)[0]


def test_a_renamed_column_shows_the_new_name_over_the_old_physical_one() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)),))
    assert view_columns(source(found, 1), SPARK) == (
        ViewColumn(name="b", type=found.newest.columns[0].type, expression="t.`a`"),
    )


def test_trino_quotes_and_casts_in_its_own_way() -> None:
    found = history((col("Select", rec(x=INT)),), (col("Select", rec(x=INT, y=STRING)),))
    assert expressions(found, 1, dialect=TRINO) == [
        'CASE WHEN t."__schema_version" <= 1 THEN CASE WHEN t."select" IS NOT NULL THEN '
        'CAST(ROW(t."select"."x", CAST(NULL AS varchar)) AS row(x integer, y varchar)) END ELSE t."select__2" END'
    ]


def test_keys_are_expressions_too() -> None:
    found = history((col("a"), col("b")), (col("a", BIGINT), col("b")))
    assert key_expressions(source(found, 1, keys=("b", "a")), SPARK) == (
        "t.`b`", "CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END",
    )  # fmt: skip


def test_the_newest_row_comes_first_and_the_base_before_a_delta_that_it_holds() -> None:
    assert order_by(DEBEZIUM, SPARK) == (
        "t.`__seq1` IS NULL, t.`__seq1` DESC",
        "t.`__seq2` IS NULL, t.`__seq2` DESC",
        "t.`__offset` IS NULL, t.`__offset` DESC",
        "t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC",
        "t.`segment`",
    )


@given(histories())
def test_without_older_segments_no_expression_is_more_than_a_column(found: History) -> None:
    newest = found.newest.version
    assert all(e.startswith("t.`") and e.endswith("`") for e in expressions(found, newest))


@given(histories(), st.data())
def test_the_same_input_always_gives_the_same_text(found: History, data: st.DataObject) -> None:
    versions = data.draw(st.lists(st.integers(1, found.newest.version), unique=True))
    column = data.draw(st.sampled_from(found.newest.columns))
    texts = {column_sql(source(found, *order), column, SPARK) for order in (versions, versions[::-1])}
    assert len(texts) == 1
