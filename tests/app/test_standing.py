"""How tables stand in plan and status, on the twins of registry and metastore: no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schemasync.app.planning import plan
from schemasync.app.status import status
from schemasync.app.workspace import Storage, Workspace
from schemasync.core.mapping import TableTarget
from schemasync.errors import StorageError
from tests.app.still import Still, avro


@pytest.fixture
def still(tmp_path: Path) -> Still:
    return Still(tmp_path)


def without_storage(workspace: Workspace) -> Workspace:
    def storage(target: TableTarget) -> Storage:
        raise StorageError("the directory cannot be listed", where=target.location)

    return replace(workspace, storage=storage)


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
