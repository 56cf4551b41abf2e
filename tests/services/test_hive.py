"""Hive shows what the dedup views should: every form that a view has, on a real HiveServer2.

What Spark did to its metastore is done to Hive's by schemasync's own DDL in Hive's dialect, step by step: so a
partition that is older than a column does not know it there either. Then the view is asked in both of the texts that
Hive meets: the one that is rendered for it, and the one that Spark stored, which Hive's users read where both share a
metastore.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyhive import hive
from pyhive.hive import Cursor

from schemasync.app.inspecting import look, map_tables
from schemasync.core import ddl
from schemasync.core.ddl import Statement
from schemasync.core.names import Dialect, quote_identifier
from schemasync.core.partitioning import NULL_VALUE, values_of
from schemasync.core.ports import HiveColumn
from schemasync.core.type_strings import parse_type, print_type
from tests.lab import Lab
from tests.services.states import (
    STORIES,
    TABLE,
    TOPIC,
    VIEW,
    Row,
    Story,
    assert_found,
    based,
    comparable,
    newest,
    printed,
    told,
    view_text,
)

pytestmark = [pytest.mark.services, pytest.mark.one_spark]


class Hive:
    """One table of a lab, as a Hive has it that is told what Spark was told."""

    def __init__(self, lab: Lab, cursor: Cursor) -> None:
        self.lab = lab
        self.cursor = cursor
        self.columns: set[str] = set()
        self.partitions: set[str] = set()

    def run(self, sql: str) -> None:
        self.cursor.execute(sql)

    def query(self, sql: str) -> list[Row]:
        """Return rows; arrays, maps and structs are what Hive writes of them, which is JSON."""
        self.cursor.execute(sql)
        described = [(name.rpartition(".")[2], type_) for name, type_, *_ in self.cursor.description]
        return [
            {name: _value(value, type_) for (name, type_), value in zip(described, row, strict=True)}
            for row in self.cursor.fetchall()
        ]

    def follow(self) -> None:
        """Do what was done to Spark's table since."""
        workspace = self.lab.workspace
        (target,) = map_tables(workspace).targets
        if not self.columns:
            for statement in printed(self.lab, Dialect.HIVE).statements:
                if statement.kind in {"database", "table"}:
                    self.run(statement.sql)
            self.columns = {name for name, *_ in self._described()}
        table = workspace.metastore.table(target.database, target.table)
        assert table is not None
        if more := [c for c in table.columns if c.name not in self.columns]:
            added = ", ".join(_column(column) for column in more)
            self.run(f"ALTER TABLE {self.lab.database}.{TABLE} ADD COLUMNS ({added})")
            self.columns |= {c.name for c in more}
        there = workspace.metastore.partitions(target.database, target.table)
        keys = [key.name for key in table.partition_keys]
        self._alter("DROP", [_spec(keys, name) for name in self.partitions - there.keys()], joint=", ")
        # Hive refuses to register the partition of rows without a value; it may not know that it is this.
        self.run("SET hive.exec.default.partition.name=another")
        self._alter("ADD", [f"{_spec(keys, n)} LOCATION '{there[n]}'" for n in sorted(there.keys() - self.partitions)])
        self.run(f"SET hive.exec.default.partition.name={NULL_VALUE}")
        self.partitions = set(there)

    def make_view(self) -> None:
        """Make the view of the state in force as it is rendered for Hive."""
        workspace = self.lab.workspace
        (target,) = map_tables(workspace).targets
        found = look(workspace, target)
        assert found.decision.current is not None
        assert found.manifest is not None
        shape, contents = found.decision.current, found.manifest.contents
        select = self._text(ddl.view_body(target, shape, contents, Dialect.HIVE))
        self.run(self._text(ddl.create_view(target, shape, select, Dialect.HIVE)))

    def _text(self, statement: Statement) -> str:
        return self.lab.workspace.renderer.render(statement.template, statement.values, dialect=Dialect.HIVE.value)

    def _alter(self, what: str, partitions: list[str], joint: str = " ") -> None:
        if partitions:
            self.run(f"ALTER TABLE {self.lab.database}.{TABLE} {what} {joint.join(partitions)}")

    def _described(self) -> list[tuple[str, ...]]:
        self.run(f"DESCRIBE {self.lab.database}.{TABLE}")
        return list(self.cursor.fetchall())


def _column(column: HiveColumn) -> str:
    type_ = print_type(parse_type(column.type, Dialect.HIVE), Dialect.HIVE, declared=True)
    return f"{quote_identifier(column.name, Dialect.HIVE)} {type_}"


def _spec(keys: Iterable[str], partition: str) -> str:
    values = (f'"{value}"' for value in values_of(partition))  # Hive reads no escapes there
    named = zip((quote_identifier(key, Dialect.HIVE) for key in keys), values, strict=True)
    return f"PARTITION ({', '.join(f'{key} = {value}' for key, value in named)})"


def _value(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ in {"ARRAY_TYPE", "MAP_TYPE", "STRUCT_TYPE"}:
        return json.loads(value, parse_float=Decimal)
    return date.fromisoformat(value) if type_ == "DATE_TYPE" else value


@pytest.fixture
def shared(lab: Lab, hiveserver2: int) -> Iterator[Hive]:
    with (
        closing(hive.connect("127.0.0.1", port=hiveserver2, username="tests", auth="NONE")) as connection,
        closing(connection.cursor()) as cursor,
    ):
        cursor.execute("SET hive.parquet.date.proleptic.gregorian.default=true")
        cursor.execute("SET hive.typecheck.on.insert=false")
        yield Hive(lab, cursor)


UNVECTORIZED = {"types", "carried", "evolved", "made"}
"""Stories with what Hive 4.0.1 misreads by vectors: empty arrays are NULL, a struct that a file lacks is an error."""


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_hive_shows_what_the_view_should(lab: Lab, shared: Hive, story: Story) -> None:
    shared.run(f"SET hive.vectorized.execution.enabled={'false' if story.__name__ in UNVECTORIZED else 'true'}")
    for state in told(lab, story):
        shared.follow()
        shared.make_view()
        expected = comparable(in_hive(state.rows))
        assert comparable(shared.query(f"SELECT * FROM {lab.database}.{VIEW} ORDER BY id")) == expected
        # Hive puts a view's text into a query like this; stored by Hive itself, it would lose its hints.
        assert comparable(shared.query(f"SELECT * FROM ({view_text(lab)}) {VIEW}")) == expected
    assert_found(shared.query, f"{lab.database}.{VIEW}", expected)


def test_what_is_printed_for_hive_runs_there(lab: Lab, shared: Hive) -> None:
    """The view of a table that was not looked at sorts all that is registered."""
    landed = based(lab)
    shared.follow()
    for statement in printed(lab, Dialect.HIVE).statements:
        if statement.kind in {"view", "per-run"}:
            shared.run(statement.sql)
    assert comparable(shared.query(f"SELECT * FROM {lab.database}.{VIEW}")) == comparable(newest(landed.events))
    assert shared.query(f"SELECT * FROM {lab.database}.{TABLE}_base") == []


def test_what_is_printed_for_hive_runs_there_where_fields_have_names_that_it_reserves(lab: Lab, shared: Hive) -> None:
    names = ("order", "table", "date", "timestamp", "_x")
    who = {"type": "record", "name": "Who", "fields": [{"name": name, "type": "int"} for name in names]}
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "keys": ["id"]}]}
    lab.register(TOPIC, lab.debezium({"name": "who", "type": who}))
    lab.apply()
    shared.follow()
    for statement in printed(lab, Dialect.HIVE).statements:
        if statement.kind == "per-run":
            shared.run(statement.sql)
    assert shared.query(f"SELECT who.`order`, who.`_x` FROM {lab.database}.{TABLE}") == []


def in_hive(rows: Iterable[Row]) -> list[Row]:
    """Return rows as Hive has them: of a user partition of texts it shows the name where there is none."""
    return [row | {"letter": row["letter"] or NULL_VALUE} if "letter" in row else row for row in rows]
