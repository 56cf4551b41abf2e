"""The SQL of every statement in every dialect, as files that people read.

After a change that is meant, ``SCHEMASYNC_REGENERATE=1 pytest tests/core/test_ddl.py`` writes the files under
``tests/golden/ddl`` anew (the tests fail once while they do). Read the difference before you commit it. Hive has a file
only where its statement is not Spark's.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core import changed_keys, ddl, manifest
from schemasync.core.changed_keys import ChangedKeys
from schemasync.core.ddl import PerRun, Statement
from schemasync.core.encoding import ListOf, MapOf
from schemasync.core.history import History
from schemasync.core.manifest import Contents, StateId
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.ports import HiveColumn
from schemasync.core.properties import SUBJECT, TableProperties
from schemasync.core.shape import Shape, shape_of
from schemasync.core.sharding import KeyRange, ShardFold
from schemasync.core.unchanged import shuffled
from schemasync.errors import SchemaError
from schemasync.io.templates import TemplateRenderer
from tests.core.builders import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DEBEZIUM,
    DOUBLE,
    FLOAT,
    INT,
    MICROS,
    MILLIS,
    STRING,
    col,
    dec,
    histories,
    history,
    rec,
    segment,
    target,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "ddl"
REGENERATE = bool(os.environ.get("SCHEMASYNC_REGENERATE"))
RENDERER = TemplateRenderer()
SPARK, HIVE, TRINO = Dialect.SPARK, Dialect.HIVE, Dialect.TRINO

ROWS = (
    (
        col("id", INT, nullable=False, doc="the student's number"),
        col("Full_Name", STRING),
        col("born", DATE),
        col("address", rec(street=STRING, zip=INT)),
        col("gone", STRING),
    ),
    (
        col("id", BIGINT, nullable=False, doc="the student's number"),
        col("Name", STRING, aliases=("Full_Name",), doc='since 2: "Name"\nthe student\'s `full` name'),
        col("born", DATE),
        col("address", rec(street=STRING, zip=INT, country=STRING)),
        col("select", dec(10, 2), nullable=False, default='"\\u0001"'),
        col("first-seen", MILLIS, nullable=False, default="-1"),
        col("segment", STRING),
    ),
)
STUDENT, STUDENT_FLAT = history(*ROWS, envelope=DEBEZIUM), history(*ROWS)
"""Reserved words, mixed case, a dash, a column called like our partition; widened, renamed, added, dropped."""

BY_TEXT = history((col("id", STRING), col("n", INT)))
BY_BOTH = history((col("id", BIGINT), col("line", INT)))

LIKE_OURS = history(
    tuple(
        col(name, BIGINT)
        for name in (
            "id",
            "schemasync_rank",
            "Schemasync_Op",
            "schemasync_was",
            "__op",
            "__segment",
            "ROW__ID",
            "t",
            "r",
        )
    )
)

TYPES = history(
    (
        col("id", BIGINT, nullable=False),
        *(col(f"c{n}", e) for n, e in enumerate((BOOLEAN, FLOAT, DOUBLE, BINARY, MILLIS, dec(10, 2)))),
        col("tags", ListOf(element=rec(name=STRING, order=INT))),
        col("labels", MapOf(key=STRING, value=ListOf(element=DATE))),
    ),
    envelope=DEBEZIUM,
)
DOCUMENT = history(
    (
        col("id", BIGINT, nullable=False),
        col("body", STRING),
        col("note", STRING),
        col("scan", BINARY),
        col("tags", ListOf(element=STRING)),
    ),
    envelope=DEBEZIUM,
)
YOUNGER = history((col("id", BIGINT, nullable=False),), DOCUMENT.newest.columns, envelope=DEBEZIUM)
TOASTED = frozenset({"body", "scan", "tags"})
STUDENTS = target(database="lake", table="student", location="file:/lake/it's here")
PROPERTIES = TableProperties(
    subject=STUDENTS.subject,
    version=2,
    schema_id=102,
    fingerprint="fp2",
    baseline=2,
    keys=("id",),
    ordering=DEBEZIUM.ordering,
    columns="c0",
    lives="l0",
    state=StateId(generation=0, admission=0),
)


def shape(found: History, *, keys: tuple[str, ...] = ("id",), baseline: int = 1) -> Shape:
    return shape_of(target(keys=keys, insert_only=not keys), found, found.newest, key=None, baseline=baseline)[0]


def text(statement: Statement, dialect: Dialect) -> str:
    return RENDERER.render(statement.template, statement.values, dialect=dialect.value)


def view(
    found: Shape,
    dialect: Dialect,
    *versions: int,
    toasted: frozenset[str] = frozenset(),
    contents: Contents = Contents(known=False),  # noqa: B008 - frozen
    **options: Any,
) -> str:
    to = target(database="lake", **options)
    contents = contents.model_copy(update={"versions": frozenset(versions), "toasted": toasted})
    body = text(ddl.view_body(to, found, contents, dialect), dialect)
    return text(ddl.create_view(to, found, body, dialect), dialect)


RUN = PerRun(
    base="file:/lake/student/base/g=000001/s=0000",
    compactor="file:/lake/student/base/g=000002/s=0000",
    increments={
        "2026112011": "file:/lake/student/incremental/increment_2026112011",
        "2026112010": "file:/lake/student/incremental/increment_2026112010",
    },
    present=frozenset({"id", "full_name", "born", "address", "gone", "id__2"}),
)


def per_run(found: History, dialect: Dialect) -> str:
    return ";\n\n".join(text(s, dialect) for s in ddl.per_run_tables(STUDENTS, shape(found), RUN, dialect))


def fold(
    found: Shape,
    deltas: tuple[str, ...] = ("delta_00000002", "delta_00000003"),
    **more: Any,
) -> str:
    columns = frozenset(c.name for c in found.layout.columns)
    statement = ddl.fold(
        STUDENTS,
        found,
        ShardFold(
            shard="base_s00000000",
            keys=KeyRange(),
            rewrite=(segment("base_s00000000"),),
            deltas=tuple(segment(name) for name in deltas),
        ),
        segment_versions=frozenset({1, 2}),
        present=columns,
        purge_before_ms=1_789_000_000_000,
        **more,
    )
    return text(statement, SPARK)


RETYPED = history((col("id", BIGINT), col("a", INT)), (col("id", BIGINT), col("a", BIGINT), col("b", STRING)))

SHARDS = (("base_s00000004", "base_s00000009"), ("base_s00000012", "base_s00000012"))
CHANGES = (("delta_00000007", "delta_00000007"),)
SOME = Contents(base=SHARDS, deltas=CHANGES, unique=True)
SETTLED = Contents(base=SHARDS[:1], unique=True)
AHEAD = Contents(untouched=SHARDS[:1], base=SHARDS[1:], deltas=CHANGES, unique=True, ahead=True)
ELSEWHERE = Contents(untouched=SHARDS, deltas=CHANGES, unique=True, ahead=True)
UNORDERED = AHEAD.model_copy(
    update={"untouched": (), "base": SHARDS[:1], "deltas": (("delta_00000007", "delta_00000008"),), "few": True}
)
SEVERAL = UNORDERED.model_copy(update={"ascending": True})
PACKED = AHEAD.model_copy(update={"ascending": True, "packed": True})
LISTED = AHEAD.model_copy(update={"changed": (("delta_00000007", ChangedKeys(listed=(-7, 3, 2**40))),)})
TEXTS = ("", "0b1e-4", "a b")
LISTED_TEXTS = AHEAD.model_copy(update={"changed": (("delta_00000007", ChangedKeys(listed=TEXTS)),)})
BUCKETS, TEXT_BUCKETS = (
    AHEAD.model_copy(update={"changed": (("delta_00000007", ChangedKeys(listed=keys)),)})
    for keys in ((-(2**63), *range(-5, 5), 2**40, 2**63 - 1), tuple(f"a-{n}" for n in range(10, 22)))
)
BITS = ("delta_00000008", ChangedKeys(low=-65536, words="1,0,-9223372036854775808"))
NAMED_SEVERAL = SEVERAL.model_copy(update={"changed": (*LISTED.changed, BITS)})
ASIDE = ("delta_00000008", ChangedKeys(low=-65536, path="delta/g=000008/t/_keys/words.orc", count=3))
NAMED_ASIDE = SEVERAL.model_copy(update={"changed": (*LISTED.changed, ASIDE)})
HASHED = ChangedKeys(path="delta/g=000007/t/_keys/words.orc", count=2**10, hashed=("id",))
NAMED_BY_HASHES = AHEAD.model_copy(update={"ascending": True, "changed": (("delta_00000007", HASHED),)})
NAMED_BY_HASHES_SEVERAL = SEVERAL.model_copy(
    update={
        "few": False,
        "changed": (("delta_00000007", HASHED), ("delta_00000008", ChangedKeys(listed=("a", "b")))),
    }
)
HASHED_OF_BOTH = NAMED_BY_HASHES.model_copy(
    update={"changed": (("delta_00000007", HASHED.model_copy(update={"hashed": ("id", "line")})),)}
)
PACKED_SEVERAL = SEVERAL.model_copy(update={"few": False, "packed": True})

ADDED = (HiveColumn(name="first-seen", type="timestamp"), HiveColumn(name="n", type="int", comment="it's new"))

HISTORY = "file:/lake/it's here/history/v=000002-1790000000000-0007"
MARKS = {"schemasync.history_of": "student", "schemasync.history_hash": "0f"}

BY = (("bucket", "pmod(id, 16)"), ("letter", "left(body, 1)"))
PARTITIONED = replace(PROPERTIES, partition_by=BY[:1])


def partitioned(found: History) -> Shape:
    """Partition by all columns of `BY` that a row has."""
    there = {c.name for c in found.newest.columns}
    by = tuple(pair for pair in BY if there & {"id" if "id" in pair[1] else "body"})
    to = target(keys=("id",), partition_by=by if "body" in there else by[:1])
    return shape_of(to, found, found.newest, key=None, baseline=1)[0]


STATEMENTS: dict[str, dict[Dialect, str]] = {
    "create_database": {d: text(ddl.create_database("lake", d), d) for d in Dialect},
    "table": {d: text(ddl.create_table(STUDENTS, shape(STUDENT, baseline=2), PROPERTIES, d), d) for d in Dialect},
    "table_types": {d: text(ddl.create_table(STUDENTS, shape(TYPES), PROPERTIES, d), d) for d in Dialect},
    "view": {d: view(shape(STUDENT, baseline=2), d, 2) for d in Dialect},
    "view_older_versions": {d: view(shape(STUDENT), d, 1, 2) for d in Dialect},
    "view_metadata": {d: view(shape(STUDENT, baseline=2), d, 2, metadata=True) for d in Dialect},
    "view_names_like_ours": {d: view(shape(LIKE_OURS), d, 1, metadata=True) for d in Dialect},
    "view_insert_only": {d: view(shape(STUDENT, keys=(), baseline=2), d, 2) for d in Dialect},
    "view_of_segments": {d: view(shape(STUDENT, baseline=2), d, 2, contents=SOME) for d in Dialect},
    "view_insert_only_of_segments": {
        d: view(shape(STUDENT, keys=(), baseline=2), d, 2, contents=SOME) for d in Dialect
    },
    "view_of_nothing": {d: view(shape(STUDENT, baseline=2), d, 2, contents=Contents(unique=True)) for d in Dialect},
    "view_settled": {d: view(shape(STUDENT, baseline=2), d, 2, contents=SETTLED) for d in Dialect},
    "view_ahead": {d: view(shape(STUDENT, baseline=2), d, 2, contents=AHEAD) for d in Dialect},
    "view_ahead_elsewhere": {d: view(shape(STUDENT, baseline=2), d, 2, contents=ELSEWHERE) for d in Dialect},
    "view_ahead_of_several": {d: view(shape(STUDENT, baseline=2), d, 2, contents=SEVERAL) for d in Dialect},
    "view_ahead_unordered": {d: view(shape(STUDENT, baseline=2), d, 2, contents=UNORDERED) for d in Dialect},
    "view_ahead_listed": {d: view(shape(STUDENT, baseline=2), d, 2, contents=LISTED) for d in Dialect},
    "view_ahead_named_for_any": {
        d: view(shape(STUDENT, baseline=2), d, 2, contents=NAMED_SEVERAL, only_spark=False) for d in Dialect
    },
    "view_ahead_named": {
        d: view(shape(STUDENT, baseline=2), d, 2, contents=NAMED_SEVERAL, only_spark=True) for d in Dialect
    },
    "view_ahead_named_aside": {
        d: view(shape(STUDENT, baseline=2), d, 2, contents=NAMED_ASIDE, only_spark=True, location="file:/it's `here`")
        for d in Dialect
    },
    "view_ahead_listed_in_buckets": {d: view(shape(STUDENT, baseline=2), d, 2, contents=BUCKETS) for d in Dialect},
    "view_ahead_listed_texts_in_buckets": {d: view(shape(BY_TEXT), d, 1, contents=TEXT_BUCKETS) for d in Dialect},
    "view_ahead_listed_texts": {d: view(shape(BY_TEXT), d, 1, contents=LISTED_TEXTS) for d in Dialect},
    "view_ahead_listed_texts_for_any": {
        d: view(shape(BY_TEXT), d, 1, contents=LISTED_TEXTS, only_spark=False) for d in Dialect
    },
    "view_ahead_hashed": {d: view(shape(BY_TEXT), d, 1, contents=NAMED_BY_HASHES, only_spark=True) for d in Dialect},
    "view_ahead_hashed_several": {
        d: view(shape(BY_TEXT), d, 1, contents=NAMED_BY_HASHES_SEVERAL, only_spark=True) for d in Dialect
    },
    "view_ahead_hashed_columns": {
        d: view(shape(BY_BOTH, keys=("id", "line")), d, 1, contents=HASHED_OF_BOTH, only_spark=True) for d in Dialect
    },
    "view_ahead_packed": {d: view(shape(STUDENT, baseline=2), d, 2, contents=PACKED) for d in Dialect},
    "view_ahead_packed_several": {d: view(shape(STUDENT, baseline=2), d, 2, contents=PACKED_SEVERAL) for d in Dialect},
    "view_ahead_packed_under_a_text": {d: view(shape(BY_TEXT), d, 1, contents=PACKED) for d in Dialect},
    "view_ahead_of_other_versions": {d: view(shape(RETYPED), d, 1, 2, contents=AHEAD) for d in Dialect},
    "view_ahead_under_a_widened_key": {d: view(shape(STUDENT), d, 1, 2, contents=AHEAD) for d in Dialect},
    "view_toasted": {d: view(shape(DOCUMENT), d, 1, toasted=TOASTED) for d in Dialect},
    "per_run_tables": {d: per_run(STUDENT_FLAT, d) for d in Dialect},
    "per_run_tables_debezium": {d: per_run(TYPES, d) for d in Dialect},
    "view_toasted_younger": {
        d: view(partitioned(YOUNGER), d, 1, 2, toasted=frozenset({"body", "tags"})) for d in Dialect
    },
    "fold": {SPARK: fold(shape(STUDENT))},
    "fold_insert_only": {SPARK: fold(shape(STUDENT, keys=()))},
    "fold_without_deltas": {SPARK: fold(shape(STUDENT), ())},
    "fold_toasted": {SPARK: fold(shape(DOCUMENT), toasted=TOASTED)},
    "history": {SPARK: text(ddl.create_history(STUDENTS, HISTORY, MARKS), SPARK)},
    "move_history": {SPARK: text(ddl.move_history(STUDENTS, HISTORY), SPARK)},
    "mark_history": {SPARK: text(ddl.mark_history(STUDENTS, MARKS), SPARK)},
    "table_partitioned": {
        d: text(ddl.create_table(STUDENTS, partitioned(STUDENT_FLAT), PARTITIONED, d), d) for d in Dialect
    },
    "view_partitioned": {d: view(partitioned(DOCUMENT), d, 1, contents=SOME, metadata=True) for d in Dialect},
    "view_partitioned_toasted": {d: view(partitioned(DOCUMENT), d, 1, toasted=TOASTED) for d in Dialect},
    "add_columns": {SPARK: text(ddl.add_columns(STUDENTS, ADDED), SPARK)},
    "drop_view": {SPARK: text(ddl.drop_view("lake", "student_view"), SPARK)},
    "drop_table": {SPARK: text(ddl.drop_table("lake", "student"), SPARK)},
}
CASES = [(name, dialect) for name, found in STATEMENTS.items() for dialect in found]


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_the_statement_reads_as_its_file(name: str, dialect: Dialect) -> None:
    path, sql = _file(name, dialect), STATEMENTS[name][dialect] + "\n"
    if REGENERATE and (not path.exists() or path.read_text() != sql):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sql)
        pytest.fail(f"{path.name} was written anew: read the difference")
    assert sql == path.read_text()


def test_there_is_a_file_for_each_statement_and_no_other() -> None:
    files = {_file(name, dialect) for name, dialect in CASES}
    if REGENERATE:
        for path in set(GOLDEN.iterdir()) - files:
            path.unlink()
    assert set(GOLDEN.iterdir()) == files


def _file(name: str, dialect: Dialect) -> Path:
    """Return where a statement stands; Hive's has a file of its own only where it differs from Spark's."""
    found = STATEMENTS[name]
    same = dialect is HIVE and SPARK in found and found[HIVE] == found[SPARK]
    return GOLDEN / f"{name}.{(SPARK if same else dialect).value}.sql"


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_no_statement_selects_a_star_or_leaves_a_name_to_the_current_database(name: str, dialect: Dialect) -> None:
    sql = STATEMENTS[name][dialect]
    places = re.findall(r"(?:FROM|TABLE|VIEW|EXISTS) ([`\"][^\s;]+)", sql)
    assert all(place.startswith(quote_identifier("lake", dialect)) for place in places)
    for harmless in ("count(*)", "base_*", "delta_*", "/*+ MAPJOIN(k) */", " * CASE WHEN "):
        sql = sql.replace(harmless, "")
    assert "*" not in sql


def test_a_power_of_two_is_right_for_every_bit_of_a_word() -> None:
    powers = ", ".join(ddl._power_of_two(str(bit)) for bit in range(manifest.WORD))
    with closing(sqlite3.connect(":memory:")) as database:
        (found,) = database.execute(f"SELECT {powers}")
    assert found == tuple(2**bit for bit in range(manifest.WORD))


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_every_subquery_has_an_alias_as_hive_wants_it(name: str, dialect: Dialect) -> None:
    sql = STATEMENTS[name][dialect]
    closed = re.findall(r"^\s*\) ?(\w*)$", sql, flags=re.MULTILINE)
    subqueries = sql.count("FROM (")
    assert len([alias for alias in closed if alias]) == subqueries


@given(histories(), st.sampled_from(Dialect))
def test_the_same_input_always_gives_the_same_bytes(found: History, dialect: Dialect) -> None:
    laid = shape(found, keys=())

    def all_of_it() -> list[str]:
        table = text(ddl.create_table(STUDENTS, laid, PROPERTIES, dialect), dialect)
        run = (text(s, dialect) for s in ddl.per_run_tables(STUDENTS, laid, RUN, dialect))
        return [table, view(laid, dialect, found.newest.version), *run]

    assert all_of_it() == all_of_it()


def test_a_view_that_not_only_spark_reads_lists_so_many_keys_of_all_changes() -> None:
    def lists(more: int, *, only_spark: bool) -> bool:
        listed = ChangedKeys(listed=tuple(range(changed_keys.LISTED - 3 + more)))
        contents = SEVERAL.model_copy(update={"changed": (*LISTED.changed, ("delta_00000008", listed))})
        sql = view(shape(STUDENT, baseline=2), SPARK, 2, contents=contents, only_spark=only_spark)
        return "JOIN" not in sql

    found = [lists(more, only_spark=only_spark) for more in (0, 1) for only_spark in (False, True)]
    assert found == [True, True, False, True]


def test_a_view_that_not_only_spark_reads_lists_texts_that_are_not_too_long() -> None:
    def lists(more: int, *, only_spark: bool) -> bool:
        room = changed_keys.LISTED_TEXT - LISTED_TEXTS.changed[0][1].size - ChangedKeys(listed=("",)).size
        changed = (*LISTED_TEXTS.changed, ("delta_00000008", ChangedKeys(listed=("k" * (room + more),))))
        contents = SEVERAL.model_copy(update={"changed": changed})
        return "JOIN" not in view(shape(BY_TEXT), SPARK, 1, contents=contents, only_spark=only_spark)

    found = [lists(more, only_spark=only_spark) for more in (0, 1) for only_spark in (False, True)]
    assert found == [True, True, False, True]


def test_keys_of_several_columns_are_joined_whatever_changes_list() -> None:
    assert "JOIN" in view(shape(BY_BOTH, keys=("id", "line")), SPARK, 1, contents=LISTED)


def test_the_lowest_key_is_listed_as_what_every_engine_reads() -> None:
    listed = ChangedKeys(listed=(-(2**63), -(2**63) + 1, 2**63 - 1))
    contents = AHEAD.model_copy(update={"changed": (("delta_00000007", listed),)})
    sql = view(shape(STUDENT, baseline=2), SPARK, 2, contents=contents, only_spark=False)
    assert " IN (CAST('-9223372036854775808' AS BIGINT), -9223372036854775807, 9223372036854775807)" in sql


def test_a_new_table_has_the_columns_that_files_of_its_version_carry() -> None:
    laid = shape(STUDENT)
    names = [c.name for c in ddl.expected_columns(laid)]
    assert [name for name, _, _ in ddl.physical_columns(laid)] == names


def test_columns_as_the_metastore_holds_them() -> None:
    held = [ddl.hive_column(c) for c in ddl.expected_columns(shape(TYPES))]
    assert [held[0], *held[-1:]] == [
        HiveColumn(name="id", type="bigint"),
        HiveColumn(name="__tombstone", type="boolean", comment="TRUE in a deleted row, NULL in all others"),
    ]


def test_the_base_table_has_the_old_phases_that_the_table_still_has_and_no_others() -> None:
    stored = ddl.stored_columns(shape(STUDENT), frozenset({"id", "id__2", "gone", "foreign"}))
    assert [name for name, _, _ in stored if not name.startswith("__")] == ["id", "gone", "id__2"]


def test_a_version_whose_events_are_not_known_makes_a_table_without_columns_of_the_sink() -> None:
    laid = shape(STUDENT)
    blind = replace(laid, version=replace(laid.version, event=None))
    (_, hour, *_) = ddl.per_run_tables(STUDENTS, blind, RUN, SPARK)
    assert hour.values["columns"] == []


def test_the_views_columns_are_as_many_as_its_select_has() -> None:
    for metadata in (False, True):
        to, laid = target(metadata=metadata), shape(STUDENT)
        body = ddl.view_body(to, laid, Contents(versions=frozenset({1, 2})), SPARK)
        statement = ddl.create_view(to, laid, "SELECT 1", SPARK)
        assert [c["name"] for c in statement.values["columns"]] == [c["name"] for c in body.values["columns"]]


def test_rows_of_one_key_are_counted_by_another() -> None:
    found = history((col("id"), col("a"), col("b")), (col("id"), col("a", BIGINT), col("b")))
    current, desired = (
        shape_of(target(), found, v, key=key, baseline=1)[0]
        for v, key in zip(found.versions, (("id",), ("a", "b")), strict=True)
    )
    values = ddl.count_unkeyed(
        target(), current, desired, Contents(versions=frozenset({1})), present={"id", "a", "b"}
    ).values
    assert (values["keys"], values["old_keys"], values["missing"]) == (
        ["CASE WHEN t.`__schema_version` <= 1 THEN CAST(t.`a` AS bigint) ELSE t.`a__2` END", "t.`b`"],
        ["t.`id`"],
        ["CAST(NULL AS bigint) AS `a__2`"],
    )


def test_what_hive_cannot_say_is_an_error_not_wrong_sql() -> None:
    found = history((col("id"), col("l", ListOf(element=INT))), (col("id"), col("l", ListOf(element=BIGINT))))
    with pytest.raises(SchemaError, match="Compact the table first"):
        view(shape(found), HIVE, 1, 2)


def test_our_tables_say_whose_they_are() -> None:
    statement = ddl.create_table(STUDENTS, shape(STUDENT), PROPERTIES, SPARK)
    assert {"key": f"'{SUBJECT}'", "value": "'shop.student-value'"} in statement.values["properties"]


# Words that at least one of Spark (ANSI mode), Hive 4 and Trino reserves.
_WORDS = """
all alter and any array as asc at between both by case cast char collate column commit constraint create cross cube
current_date current_time current_timestamp current_user cursor database date decimal deallocate default delete desc
describe distinct double drop else end escape except exchange execute exists export extract false fetch filter float
following for foreign from full function generated grant group grouping having if import in inner insert int integer
intersect interval into is join json_array lateral leading left like listagg local localtime map merge natural none
normalize not null of offset on only option or order outer overlaps partition percent position preceding prepare
primary procedure qualify range recursive references regexp revoke right rlike rollup row rows select session_user set
skip smallint some start struct table tablesample then time timestamp to trailing transform trim true truncate
unbounded uescape union unique uniquejoin unknown unnest update user using utc_timestamp values view when where window
with within without
"""
RESERVED_WORDS = _WORDS.split()


@pytest.mark.parametrize("dialect", Dialect)
def test_columns_of_all_reserved_words_are_read_as_columns(dialect: Dialect) -> None:
    row = (col("id", BIGINT), *(col(word, rec(**{word: INT})) for word in RESERVED_WORDS))
    body = ddl.view_body(target(table="table", database="user"), shape(history(row)), Contents(), dialect)
    parsed = sqlglot.parse_one(text(body, dialect), dialect=dialect.value)
    assert isinstance(parsed, sqlglot.exp.Select)
    assert parsed.named_selects == ["id", *RESERVED_WORDS]
    assert [(t.db, t.name) for t in parsed.find_all(sqlglot.exp.Table)] == [("user", "table")]


def test_the_statement_that_ships_leaves_it_to_the_metastore_where_a_database_lies_and_a_users_need_not() -> None:
    shipped = text(ddl.create_database("lake", SPARK), SPARK)
    assert [ddl.says_no_place(sql, "lake") for sql in (shipped, f"{shipped} COMMENT 'ours'")] == [True, False]


def test_hashes_of_a_key_that_has_moved_to_another_column_are_not_looked_for() -> None:
    widened = history(
        (col("id", INT, nullable=False), col("n", INT)), (col("id", BIGINT, nullable=False), col("n", INT))
    )
    contents = NAMED_BY_HASHES.model_copy(update={"versions": frozenset({1})})
    values = ddl.view_body(target(only_spark=True), shape(widened), contents, Dialect.SPARK).values
    assert [values[name] for name in ("ahead", "hashes", "unhashed", "unchanged")] == [False, (), (), ()]


def test_queries_shuffle_for_changes_that_are_many_far_apart_and_of_no_keys_that_views_could_have_hashes_of() -> None:
    by_number, by_price, by_moment, by_ratio = (
        history((col("id", of, nullable=False), col("n", INT))) for of in (dec(38, 0), dec(10, 2), MICROS, DOUBLE)
    )

    def shuffles(contents: Contents, *, of: History = STUDENT, rows: int = 2_000_000, **options: Any) -> bool:
        return shuffled(target(**{"only_spark": False} | options), shape(of), contents, rows=rows)

    assert [shuffles(AHEAD), shuffles(AHEAD, of=by_ratio, only_spark=True)] == [True] * 2
    hashed = (STUDENT, BY_TEXT, by_number, by_price, by_moment)
    assert [shuffles(AHEAD, of=of, only_spark=True) for of in hashed] == [False] * 5
    assert [shuffles(AHEAD, rows=rows, only_spark=True) for rows in (2**26, 2**26 + 1)] == [False, True]
    assert shuffles(AHEAD, location="file:/lake/[a]", only_spark=True)
    assert [shuffles(contents) for contents in (SEVERAL, PACKED, SETTLED)] == [False, False, False]
