"""What views read, in the dialects of the engines that make them."""

from __future__ import annotations

import re
from typing import Final

import pytest

from schemasync.core.dependents import Reads
from schemasync.core.names import Dialect
from schemasync.core.view_origin import Unclear, ViewQuery
from schemasync.io.view_reader import SqlglotReader

ALL: Final = "*"


def read(text: str, dialect: Dialect = Dialect.SPARK) -> Reads | Unclear:
    return SqlglotReader().read(ViewQuery(text=text, dialect=dialect, database="lake"))


def used(text: str, dialect: Dialect = Dialect.SPARK) -> dict[str, str]:
    """Return the columns of each relation, sorted, as one text."""
    found = read(text, dialect)
    assert isinstance(found, Reads), found
    return {".".join(r): ALL if names is None else " ".join(sorted(names)) for r, names in found.columns.items()}


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("SELECT `Id`, upper(name) n FROM `Lake`.`V` x WHERE x.age > 3", {"lake.v": "age id name"}),
        ("SELECT id FROM v", {"lake.v": "id"}),
        ("SELECT id FROM shop.v", {"shop.v": "id"}),
        ("SELECT v.id, lake.v.a, spark_catalog.lake.v.b FROM spark_catalog.lake.v", {"lake.v": "a b id"}),
        ("SELECT count(*) FROM v", {"lake.v": ""}),
        ("SELECT a.x, b.y FROM v a JOIN w b ON a.k = b.k", {"lake.v": "k x", "lake.w": "k y"}),
        ("SELECT x FROM v JOIN w USING (k)", {"lake.v": "k x", "lake.w": "k x"}),
        ("SELECT 1 FROM v NATURAL JOIN w", {"lake.v": ALL, "lake.w": ALL}),
        ("SELECT o.id FROM o LEFT SEMI JOIN v ON v.k = o.k", {"lake.o": "id k", "lake.v": "k"}),
        ("SELECT id FROM v UNION ALL SELECT n FROM w ORDER BY id", {"lake.v": "id", "lake.w": "n"}),
        ("(SELECT id FROM v)", {"lake.v": "id"}),
        ("SELECT id, name FROM v GROUP BY name HAVING max(age) > 1", {"lake.v": "age id name"}),
        ("SELECT id FROM range(10)", {}),
    ],
)
def test_relations_and_their_columns_are_found(text: str, relations: dict[str, str]) -> None:
    assert used(text) == relations


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        ("SELECT * FROM v", {"lake.v": ALL}),
        ("SELECT * EXCEPT (name) FROM v", {"lake.v": ALL}),
        ("SELECT v.*, w.x FROM v, w", {"lake.v": ALL, "lake.w": "x"}),
        ("SELECT * FROM v UNION ALL SELECT id FROM w", {"lake.v": ALL, "lake.w": "id"}),
        ("SELECT to_json(struct(*)) FROM v", {"lake.v": ALL}),
        ("SELECT to_json(struct(a.*)) FROM v a, w b", {"lake.v": ALL, "lake.w": ""}),
        ("SELECT count(DISTINCT *) FROM v", {"lake.v": ALL}),
        ("SELECT address.* FROM v", {"lake.v": "address"}),
        ("SELECT 1 FROM w WHERE k IN (SELECT * FROM v)", {"lake.v": ALL, "lake.w": "k"}),
        ("SELECT 1 FROM w WHERE EXISTS (SELECT * FROM v WHERE v.k = w.k)", {"lake.v": "k", "lake.w": "k"}),
    ],
)
def test_a_star_is_every_column_where_it_is_more_than_a_count(text: str, relations: dict[str, str]) -> None:
    assert used(text) == relations


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY t) r FROM v) WHERE r = 1", "id k t"),
        ("WITH c AS (SELECT * FROM v), d AS (SELECT c.* FROM c) SELECT d.x FROM d WHERE d.y = 1", "x y"),
        ("WITH v AS (SELECT id, name AS n FROM v) SELECT * FROM v", "id name"),
        ("SELECT * FROM (SELECT * FROM v)", ALL),
        ("SELECT c1 FROM (SELECT * FROM v) AS x(c1, c2)", ALL),
        ("SELECT id FROM (SELECT * FROM v UNION ALL SELECT * FROM v)", ALL),
        ("WITH RECURSIVE r AS (SELECT id FROM v UNION ALL SELECT id + 1 FROM r) SELECT * FROM r", "id"),
    ],
)
def test_a_star_inside_is_only_the_columns_that_are_asked_of_it(text: str, columns: str) -> None:
    assert used(text) == {"lake.v": columns}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT address.zip, v.geo.lat, tags[0], m['k'] FROM v", "address geo m tags"),
        ("SELECT id FROM v LATERAL VIEW explode(tags) x AS tag", "id tags"),
        ("SELECT transform(tags, e -> e + n) FROM v", "n tags"),
        ("SELECT full AS name FROM v ORDER BY name", "full"),
        ("SELECT full AS name, row_number() OVER (ORDER BY name) FROM v", "full name"),
        ("SELECT id FROM v WHERE EXISTS (SELECT 1 FROM w WHERE w.k = name)", "id name"),
        ("SELECT v.id FROM v JOIN (SELECT name FROM w) w ON true", "id"),
    ],
)
def test_names_are_looked_up_where_the_engine_would(text: str, columns: str) -> None:
    assert used(text)["lake.v"] == columns


@pytest.mark.parametrize(
    ("dialect", "text", "columns"),
    [
        (Dialect.HIVE, "SELECT `v`.`id` AS `_c0` FROM `lake`.`v` `v` WHERE `v`.`age` <=> 3", "age id"),
        (Dialect.HIVE, "SELECT tag FROM v LATERAL VIEW OUTER explode(tags) x AS tag", "tag tags"),
        (Dialect.TRINO, 'SELECT "Id" FROM hive.lake."V"', "id"),
        (Dialect.TRINO, "SELECT t.n FROM v CROSS JOIN UNNEST(tags) AS t(n)", "tags"),
        (Dialect.TRINO, "SELECT t.n FROM v CROSS JOIN LATERAL (SELECT v.name AS n) t", "name"),
        (Dialect.SPARK, "FROM v SELECT id", "id"),
    ],
)
def test_each_engine_is_read_in_its_own_dialect(dialect: Dialect, text: str, columns: str) -> None:
    assert used(text, dialect) == {"lake.v": columns}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELEC id FROM v", r".+ \(line 1\)"),
        ("SELECT 'abc", "TokenError: .+"),
        ("MSCK REPAIR TABLE v", "it is no query"),
        ("", "ParseError: .+"),
        ("SELECT " + "(" * 5000, "RecursionError: .+"),
        ("SELECT id FROM IDENTIFIER('lake.v')", r"what it names by IDENTIFIER\(\.\.\.\) is not looked up"),
        ("SELECT v.identifier('name') FROM lake.v", r"what it names by IDENTIFIER\(\.\.\.\) is not looked up"),
        ("SELECT * FROM f(given => TABLE(lake.v))", r"what it names by TABLE\(\.\.\.\) is not looked up"),
    ],
)
def test_what_cannot_be_understood_is_said_so_in_one_line(text: str, reason: str) -> None:
    found = read(text)
    assert isinstance(found, Unclear)
    assert re.fullmatch(reason, found.reason)
