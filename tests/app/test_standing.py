"""How tables stand in plan and status, on the twins of registry and metastore: no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schemasync.app.applying import apply
from schemasync.app.planning import plan
from schemasync.app.status import Hold, status
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.mapping import TableTarget
from schemasync.core.properties import PARTITION_BY, STATE
from schemasync.errors import StorageError
from tests.app.still import Still, avro


@pytest.fixture
def still(tmp_path: Path) -> Still:
    return Still(tmp_path)


def without_storage(workspace: Workspace) -> Workspace:
    def storage(target: TableTarget) -> Storage:
        raise StorageError("the directory cannot be listed", where=target.location)

    return replace(workspace, storage=storage)


def edited(still: Still, **properties: str) -> None:
    """Edit properties of the table as a person might."""
    table = still.metastore.table("lake", "student")
    assert table is not None
    still.metastore.put(replace(table, properties={**table.properties, **properties}))


def test_a_table_that_cannot_be_looked_at_is_no_drift(still: Still) -> None:
    still.register(avro())
    still.settle()
    (table,) = status(without_storage(still.workspace)).tables
    assert ([d.code for d in table.diagnostics], table.drift, table.held) == (["SS217"], (), True)


def test_subjects_that_an_entry_matches_and_that_are_left_out_are_named(still: Still) -> None:
    for topic in ("bank.student", "bank.transaction"):
        still.register(avro(), topic=topic)
    by_default = still.plan().skipped
    still.settings = {"tables": [{"subject": r"bank\..+"}]}
    named = plan(still.workspace, ["bank_student"])
    said = [found.to_json()["skipped"] for found in (still.plan(), status(still.workspace), named)]
    assert (by_default, said) == ((), [["bank.transaction-value"], ["bank.transaction-value"], []])


def hold(still: Still) -> Hold | None:
    (table,) = status(still.workspace).tables
    return table.hold


def test_no_release_is_advised_where_a_file_of_ours_is_missing(still: Still) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{STATE: "000001-0001@0000"})
    assert hold(still) == Hold(since_ms=None, release=None)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("schemasync.version", "7", "SS404"),
        ("schemasync.columns", "0", "SS408"),
        (PARTITION_BY, '[["year", "year(born)"]]', "SS417"),
    ],
)
def test_a_hold_is_dated_also_where_the_table_is_not_understood(still: Still, name: str, value: str, code: str) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{name: value})
    (applied,) = apply(still.workspace).tables
    assert (applied.error, [d.code for d in applied.diagnostics]) == (None, [code])
    assert hold(still) == Hold(since_ms=0, release=None)
