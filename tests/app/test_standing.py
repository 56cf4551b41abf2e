"""How tables stand in plan and status, on the twins of registry and metastore: no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
