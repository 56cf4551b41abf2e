"""Trino shows what the dedup views should, of the metastore that Spark writes: every form that a view has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from trino.dbapi import Cursor, connect
from trino.exceptions import TrinoQueryError
from trino.types import NamedRowTuple

from schemasync.core.names import Dialect
from schemasync.core.partitioning import values_of
from tests.app.test_readers import reads_well
from tests.lab import Lab
from tests.services.conftest import START_SECONDS
from tests.services.states import (
    STORIES,
    TABLE,
    TOPIC,
    VIEW,
    Row,
    Story,
    applied,
    assert_found,
    based,
    change,
    comparable,
    elsewhere,
    joined,
    made_empty,
    newer_joined,
    newest,
    printed,
    told,
    view_text,
)

pytestmark = [pytest.mark.services, pytest.mark.one_spark]


class Trino:
    """A client."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def rows(self, sql: str) -> list[list[Any]]:
        """Return what a query finds; a server that has just started answers before its one node is there to work."""
        late = time.monotonic() + START_SECONDS
        while True:
            try:
                found: list[list[Any]] = self.cursor.execute(sql).fetchall()  # type: ignore[no-untyped-call]  # left untyped
            except TrinoQueryError as error:
                if error.error_name != "NO_NODES_AVAILABLE" or time.monotonic() > late:
                    raise
                time.sleep(0.1)
            else:
                return found

    def query(self, sql: str) -> list[Row]:
        rows = self.rows(sql)
        names = [column.name for column in self.cursor.description or ()]
        return [{name: _value(value) for name, value in zip(names, row, strict=True)} for row in rows]


def _value(value: Any) -> Any:
    if isinstance(value, NamedRowTuple):
        return dict(zip(value.__annotations__["names"], value, strict=True))
    return value


@contextmanager
def client(port: int) -> Iterator[Trino]:
    with (
        closing(connect(host="127.0.0.1", port=port, user="tests", catalog="hive")) as connection,  # type: ignore[no-untyped-call]
        closing(connection.cursor()) as cursor,
    ):
        yield Trino(cursor)


@pytest.fixture
def shared(trino: int) -> Iterator[Trino]:
    with client(trino) as found:
        yield found


@pytest.mark.parametrize("story", [*STORIES, made_empty], ids=lambda story: story.__name__)
def test_trino_shows_what_the_view_should(lab: Lab, shared: Trino, story: Story) -> None:
    view = f"{lab.database}.{VIEW}"
    for state in told(lab, story):
        expected = comparable(state.rows)
        assert comparable(shared.query(f"SELECT * FROM {view} ORDER BY id")) == expected
    assert_found(shared.query, view, expected)


@pytest.mark.parametrize("story", [joined(newer_joined), joined(elsewhere)])
def test_trino_sends_changes_to_the_base_and_looks_for_keys_in_every_scan(
    lab: Lab, shared: Trino, story: Story
) -> None:
    for _ in told(lab, story):
        pass
    ((plan,),) = shared.rows(f"EXPLAIN SELECT * FROM {lab.database}.{VIEW} WHERE id = 3")
    assert re.findall(r"Join\[.*distribution = (\w+)", plan) == ["REPLICATED"]
    scans = re.findall(r"Scan\w*\[.*", plan)
    assert [scan for scan in scans if "= bigint '3'" not in scan] == []
    assert len(scans) == (3 if "UNION" in view_text(lab) else 2)


def test_trino_sees_only_states_that_were_published_while_changes_are_admitted_and_folded(lab: Lab, trino: int) -> None:
    def ask(query: str) -> list[list[Any]]:
        with client(trino) as found:
            return found.rows(query)

    lab.readers = "any"
    reads_well(lab, {"shard_size": "1KB"}, lambda steps: steps < 8, by=lambda _: ask)


def test_trino_refuses_a_star_over_the_view_once_a_column_came_as_plan_told(lab: Lab, shared: Trino) -> None:
    based(lab)
    for name, columns in {"star": "*", "named": "id, name"}.items():
        shared.query(f"CREATE VIEW {lab.database}.{name} AS SELECT {columns} FROM {lab.database}.{VIEW}")
    lab.register(TOPIC, lab.flat("Student", ("name", ["null", "string"]), ("nick", ["null", "string"])))
    (planned,) = lab.plan().tables
    assert [d.message.split()[0] for d in planned.diagnostics if d.code == "SS505"] == [f"{lab.database}.star"]
    applied(lab)
    assert shared.query(f"SELECT count(*) AS rows FROM {lab.database}.named") == [{"rows": 12}]
    with pytest.raises(TrinoQueryError, match="stored view column count"):
        shared.query(f"SELECT id FROM {lab.database}.star")


def test_what_is_printed_for_trino_runs_there(lab: Lab, shared: Trino) -> None:
    """The view of a table that was not looked at sorts all that is registered."""
    landed = based(lab)
    landed(change(3, 20, name="new"), change(5, 20, op="d"), change(9, 5, name="late"))
    applied(lab)
    own = f"{lab.database}_printed"
    for statement in printed(lab, Dialect.TRINO).statements:
        if place := re.search(r"external_location = 'file://([^']*)'", statement.sql):
            Path(place[1]).mkdir(parents=True, exist_ok=True)  # Trino refuses a place that is not there
        shared.query(statement.sql.replace(lab.database, own))
    for name, location in lab.workspace.metastore.partitions(lab.database, TABLE).items():
        what = f"ARRAY['segment'], ARRAY['{values_of(name)[0]}'], '{location}'"
        shared.query(f"CALL system.register_partition('{own}', '{TABLE}', {what})")
    assert comparable(shared.query(f"SELECT * FROM {own}.{VIEW}")) == comparable(newest(landed.events))
    assert shared.query(f"SELECT * FROM {own}.{TABLE}_base") == []
