"""``schemasync watch`` while its metastore cannot be reached, and afterwards."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.gate import Gate, gate_to
from tests.services.project import CONFIG, PATIENCE_SECONDS, Project, wait_for

pytestmark = [pytest.mark.services, pytest.mark.one_spark]


@pytest.fixture
def gate(hive_metastore: str) -> Iterator[Gate]:
    with gate_to(int(hive_metastore.rpartition(":")[2])) as gate:
        yield gate


def test_watch_waits_for_its_metastore_and_then_goes_on(tmp_path: Path, gate: Gate) -> None:
    served = json.dumps({"kind": "thrift", "uri": f"thrift://127.0.0.1:{gate.port}"})
    project = Project(tmp_path, CONFIG.replace("{kind: embedded}", served).replace("lake\n", "outage\n"))
    project.register("name")
    project.land(10, ("name",))
    with project.watching(until="is compacted") as process:
        gate.shut()
        project.land(10, ("name",))
        wait_for(lambda: "nothing is done until the metastore answers again" in project.log, process)
        gate.open()
        wait_for(lambda: "is compacted" in project.log.partition("the metastore answers again")[2], process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    assert project.rows() == project.expected
