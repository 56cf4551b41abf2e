from __future__ import annotations

import pytest

from schemasync.core.view_statement import ends_with_query, proper_query, replacing_none, under_name

STATEMENT = "CREATE OR REPLACE VIEW `l`.`v` (\n  `id`\n)\nCOMMENT 'rows of `l`.`v`'\nAS\nSELECT 1"
COMMENTS = (
    "",
    "\n",
    "/* one /* within */ of `l`.`v` */",
    "-- `l`.`v` is ours\n",
    "-- CREATE OR REPLACE VIEW `l`.`v`\n\n  /* `l`.`v`;\n * */ -- ` '\n",
)


@pytest.mark.parametrize("comments", COMMENTS)
def test_only_the_view_itself_gets_another_name(comments: str) -> None:
    expected = comments + STATEMENT.replace("VIEW `l`.`v`", "VIEW `l`.`next`")
    assert under_name(comments + STATEMENT, "`l`.`v`", "`l`.`next`") == expected


def test_what_a_comment_within_the_statement_names_is_not_the_view() -> None:
    statement = "CREATE OR REPLACE VIEW /* `l`.`v`, -- */ `l`.`v` AS SELECT 1"
    assert under_name(statement, "`l`.`v`", "`l`.`n`") == statement.replace("`l`.`v` AS", "`l`.`n` AS")


def test_a_view_that_only_a_comment_names_gets_no_other_name() -> None:
    assert under_name("-- `l`.`v`\nCREATE OR REPLACE VIEW l.v AS SELECT 1", "`l`.`v`", "`l`.`next`") is None


@pytest.mark.parametrize("comments", COMMENTS)
def test_a_view_is_only_made_where_none_is(comments: str) -> None:
    assert replacing_none(comments + STATEMENT) == comments + STATEMENT.replace("CREATE OR REPLACE", "CREATE", 1)


AROUND = ("", "\n ", "-- it's ours\n", "/* one /* 'two' */ ; */ ;\n", ";; -- end \\\n of it\n;", '-- "\r\n--\n')
QUERIES = (
    "SELECT 1",
    "SELECT /*+ BROADCAST(k) */ -- of all\n 1 /* one */ FROM `a;--``b` t",
    r"""SELECT 'it\'s -- no' WHERE "a\";" <> 'comment: /*' OR b = ';--'""",
    r"""SELECT bar'x\'y' WHERE a = r'\' OR b = R"\" OR c = '''--'""",
    "(SELECT 1 -- one\n)",
)


@pytest.mark.parametrize("before", AROUND)
@pytest.mark.parametrize("after", [*AROUND, " -- done", "/* never ended", ";\n/* v2 */"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_without_what_stands_before_and_after_it(before: str, query: str, after: str) -> None:
    assert proper_query(f"{before}{query}{after}") == query


def test_of_comments_alone_no_query_is_left() -> None:
    assert proper_query("-- none\n;") == ""


HEAD = "CREATE OR REPLACE VIEW `l`.`v` COMMENT 'AS --' "


@pytest.mark.parametrize("before", AROUND)
@pytest.mark.parametrize("after", [*AROUND, " -- done", "/* never ended"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_view_may_have_comments_around_its_query(before: str, query: str, after: str) -> None:
    assert ends_with_query(f"{HEAD}as {before}{query} {after}", query)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("AS SELECT * FROM (", ") v WHERE tenant = 'a'"),
        ("AS", " LIMIT 10"),
        ("AS (", ")"),
        ("AS SELECT 1 AS x UNION ALL", ""),
        ("AS SELECT 2 -- ", ""),
        ("-- AS\n", ""),
    ],
)
def test_a_view_has_nothing_else_around_its_query(before: str, query: str, after: str) -> None:
    assert not ends_with_query(f"{HEAD}{before}\n{query}{after}", query)


def test_a_view_has_its_query_as_it_is() -> None:
    assert not ends_with_query(f"{HEAD}AS SELECT 1\n  WHERE TRUE", "SELECT 1\nWHERE TRUE")
