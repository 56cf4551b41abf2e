from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st

from schemasync.core.names import (
    RESERVED_COLUMNS,
    WORKING_COLUMNS,
    Dialect,
    TakenNames,
    comment_text,
    expand_pattern,
    folded,
    free_name,
    hour_directory,
    is_field_name,
    is_hidden,
    parse_hour,
    quote_identifier,
    quote_string,
    table_name,
    utf16_length,
)
from schemasync.errors import SchemaError, UsageError

NASTY = 'it\'s "a" \\ `b`\n\r\té\N{GRINNING FACE} ${env:HOME} \0' + "1"


@pytest.mark.parametrize(
    ("dialect", "quoted"), [(Dialect.SPARK, '`a``"b`'), (Dialect.HIVE, '`a``"b`'), (Dialect.TRINO, '"a`""b"')]
)
def test_an_identifier_is_quoted_and_its_quotes_are_doubled(dialect: Dialect, quoted: str) -> None:
    assert quote_identifier('a`"b', dialect) == quoted


@pytest.mark.parametrize("dialect", [Dialect.SPARK, Dialect.HIVE])
def test_a_spark_or_hive_literal_escapes_with_backslashes(dialect: Dialect) -> None:
    quoted = quote_string(NASTY, dialect)
    assert quoted == "'it\\'s \"a\" \\\\ `b`\\n\\r\té\N{GRINNING FACE} \\u0024{env:HOME} \\u00001'"


def test_a_trino_literal_only_doubles_single_quotes() -> None:
    assert quote_string(NASTY, Dialect.TRINO) == "'" + NASTY.replace("'", "''") + "'"


UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\'": "'", "\\\\": "\\", "\\u0000": "\0", "\\u0024": "$"}


def read_back(literal: str) -> str:
    """Read a literal as Spark's ``unescapeSQLString`` does, as far as our escapes go."""
    return re.sub(r"\\(?:u[0-9]{4}|.)", lambda found: UNESCAPED[found[0]], literal[1:-1], flags=re.DOTALL)


@given(st.text("ab'\\\n\r${}\0u01é") | st.text())
def test_every_text_survives_a_spark_literal(text: str) -> None:
    quoted = quote_string(text, Dialect.SPARK)
    assert read_back(quoted) == text
    assert "${" not in quoted


@given(st.text("a'\\"))
def test_a_spark_literal_ends_where_its_text_ends(text: str) -> None:
    assert re.fullmatch(r"'(?:[^'\\]|\\.)*'", quote_string(text, Dialect.SPARK))


@pytest.mark.parametrize(
    ("topic", "table"),
    [
        ("cdc.inventory.Order-Lines", "cdc_inventory_order_lines"),
        ("1st", "_1st"),
        ("été", "_t_"),
        ("a" * 128, "a" * 128),
    ],
)
def test_a_topic_becomes_an_identifier(topic: str, table: str) -> None:
    assert table_name(topic) == table


@pytest.mark.parametrize("topic", ["", "a" * 129, "1" * 128])
def test_a_topic_that_makes_no_table_name_is_refused(topic: str) -> None:
    with pytest.raises(SchemaError, match=r"makes no table name.*Set `table:`"):
        table_name(topic)


@given(st.text(min_size=1, max_size=60))
def test_every_short_topic_makes_a_safe_identifier(topic: str) -> None:
    assert re.fullmatch(r"[a-z_][a-z0-9_]*", table_name(topic))


def test_a_comment_is_one_printable_line() -> None:
    assert comment_text("  two\r\nlines\tand a\0 bell\a ") == "two lines and a bell"


@pytest.mark.parametrize(("length", "ending"), [(255, "xxx"), (256, "...")])
def test_a_comment_has_at_most_255_characters(length: int, ending: str) -> None:
    comment = comment_text("x" * length)
    assert (len(comment), comment[-3:]) == (255, ending)


def test_a_pattern_is_expanded_once() -> None:
    assert expand_pattern("s3a://lake/{topic}/{name}", {"topic": "{name}", "name": "b"}) == "s3a://lake/{name}/b"


@pytest.mark.parametrize(("values", "known"), [({"topic": "a", "name": "b"}, "{name}, {topic}"), ({}, "none")])
def test_an_unknown_placeholder_is_refused_and_the_known_ones_named(values: dict[str, str], known: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand_pattern("{tpoic}", values)
    assert caught.value.text() == f"pattern '{{tpoic}}': unknown placeholder {{tpoic}}. Known here: {known}."


JOINED = "incremental/increment_{yyyyMMddHH}"
HIVE_STYLE = "incremental/year={yyyy}/month={MM}/day={dd}/hour={HH}"
TWICE = "dt={yyyy-MM-dd}/increment_{yyyyMMddHH}/"
DAILY = "day={yyyy-MM-dd}"


@pytest.mark.parametrize(
    ("pattern", "directory", "hour"),
    [
        (JOINED, "incremental/increment_2026112010", "2026112010"),
        (JOINED, "/incremental/increment_2026112010/", "2026112010"),
        (JOINED, "incremental/increment_2026112024", None),
        (JOINED, "incremental/increment_20261120101", None),
        (JOINED, "incremental/increment_2026112010/_temporary", None),
        (JOINED, "incrementalXincrement_2026112010", None),
        (HIVE_STYLE, "incremental/year=2026/month=11/day=20/hour=10", "2026112010"),
        (HIVE_STYLE, "incremental/year=2026/month=13/day=20/hour=10", None),
        (TWICE, "dt=2026-11-20/increment_2026112010", "2026112010"),
        (TWICE, "dt=2026-11-20/increment_2026112110", None),
        (DAILY, "day=2026-11-20", "2026112000"),
        (DAILY, "day=2026-11-20/hour=10", None),
        (DAILY, "day=2026-11-31", None),
    ],
)
def test_a_directory_stands_for_the_hour_that_its_pattern_reads(pattern: str, directory: str, hour: str | None) -> None:
    assert parse_hour(pattern, directory) == hour


def test_an_hour_pattern_with_other_letters_is_refused() -> None:
    with pytest.raises(UsageError, match=re.escape("unknown placeholder {topic}")):
        parse_hour("{topic}/{yyyyMMddHH}", "a")


def test_an_hour_pattern_that_lacks_parts_is_refused() -> None:
    with pytest.raises(UsageError, match="an hour pattern without MM, dd"):
        parse_hour("{yyyy}/{HH}", "2026/11")


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [
        ("year={yyyy}/month={MM}/day={dd}/hour={HH}", "year=2026/month=11/day=20/hour=07"),
        (DAILY, "day=2026-11-20"),
    ],
)
def test_an_hour_fills_any_increment_pattern(pattern: str, directory: str) -> None:
    assert hour_directory(pattern, "2026112007") == directory


def test_the_tables_own_columns_are_reserved() -> None:
    assert {"segment", "__op", "__seq1", "__seq9"} < RESERVED_COLUMNS


def test_what_is_put_beside_physical_columns_is_reserved() -> None:
    root = Path(__file__).parents[2]
    files = [root / "templates/fold.sql.j2", root / "schemasync/io/spark_fold.py"]
    texts = (file.read_text(encoding="utf-8") for file in (*files, *(root / "schemasync/io/parquet").glob("*.py")))
    # What is counted has names of its own.
    found = {name for text in texts for name in re.findall(r"\bschemasync_\w+", text) if name != "schemasync_unsent_"}
    assert found == WORKING_COLUMNS


HOSTILE = (
    "a-b",
    "a.b",
    'a"b',
    "a`b",
    "a``",
    "a b",
    "order",
    "select",
    "SELECT",
    "größe",
    "名前",
    "'",
    "\\",
    "--",
    "/*",
    "{x}",
)


@pytest.mark.parametrize("dialect", Dialect)
@given(name=st.text(min_size=1).filter(lambda text: "\0" not in text and text.isprintable()) | st.sampled_from(HOSTILE))
@example(name='"`"')
def test_a_quoted_name_is_read_as_the_name(dialect: Dialect, name: str) -> None:
    parsed = sqlglot.parse_one(f"SELECT {quote_identifier(name, dialect)}", dialect=dialect.value)
    assert [(i.name, i.quoted) for i in parsed.find_all(sqlglot.exp.Identifier)] == [(name, True)]


@pytest.mark.parametrize(("length", "kept"), [(127, 127), (128, 126)])
def test_a_comment_is_counted_as_java_counts(length: int, kept: int) -> None:
    comment = comment_text("\N{GRINNING FACE}" * length)
    assert (comment.count("\N{GRINNING FACE}"), utf16_length(comment) <= 255) == (kept, True)


@given(st.text(max_size=600))
def test_a_comment_always_fits(text: str) -> None:
    assert utf16_length(comment_text(text)) <= 255


@pytest.mark.parametrize(
    "pair",
    [
        "Aa",
        "Σσ",
        "Σς",
        "\N{LATIN SMALL LETTER DOTLESS I}i",
        "İi",
        "\N{KELVIN SIGN}k",
        "\N{LATIN SMALL LETTER LONG S}s",
        "ẞß",
    ],
)
def test_engines_take_these_for_one_name(pair: str) -> None:
    assert folded(pair[0]) == folded(pair[1])


def test_other_letters_stay_other_letters() -> None:
    assert len({folded(c) for c in "aäàbßsoöø_"}) == 10


@given(st.text(), st.text())
def test_folding_is_done_once_and_letter_by_letter(one: str, other: str) -> None:
    assert folded(folded(one)) == folded(one)
    assert folded(one + other) == folded(one) + folded(other)


@pytest.mark.parametrize(
    ("wanted", "taken", "name"),
    [
        ("a", [], "a"),
        ("a", ["A", "b"], "a__2"),
        ("a", ["a", "a__2"], "a__3"),
        ("\N{GREEK SMALL LETTER SIGMA}", ["ς"], "\N{GREEK SMALL LETTER SIGMA}__2"),
        ("a" * 767, ["a" * 767], "a" * 764 + "__2"),
    ],
)
def test_a_free_name_differs_from_all_and_is_stored(wanted: str, taken: list[str], name: str) -> None:
    assert free_name(wanted, taken) == name


def test_names_that_were_given_are_taken() -> None:
    taken = TakenNames(["A"])
    assert [taken.take(name) for name in ("a", "A", "b", "a__2")] == ["a__2", "A__3", "b", "a__2__2"]


@pytest.mark.parametrize("name", ["a", "_", "_1", "größe", "名前", "a\N{ARABIC-INDIC DIGIT ONE}", "Σ"])
def test_what_javas_avro_takes_is_a_field_name(name: str) -> None:
    assert is_field_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "1", "a-b", "a.b", "x²", "Ⅷ", "e\N{COMBINING ACUTE ACCENT}", "\N{DESERET CAPITAL LETTER LONG I}", "a\n"],
)
def test_what_javas_avro_refuses_is_none(name: str) -> None:
    assert not is_field_name(name)


def test_engines_pass_over_files_whose_names_begin_so() -> None:
    hidden = ("a/_SUCCESS", "a/.part.crc", "_a/part", "a/_b/c/part", ".a/part")
    seen = ("part_", "a_/part", "_bucket=3/part", "bucket=_/part", "a.b/part")
    assert [is_hidden(path) for path in hidden + seen] == [True] * len(hidden) + [False] * len(seen)
