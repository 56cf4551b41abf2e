"""docs/interface.md says what programs read: keys, events and names are those of the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import schemasync
from schemasync.app.applying import Applied, ApplyResult
from schemasync.app.checking import CheckResult
from schemasync.app.compacting import Compacted, CompactResult
from schemasync.app.ddl_printing import PrintedDdl
from schemasync.app.doctor import Report
from schemasync.app.history import history
from schemasync.app.opening import open_lake
from schemasync.app.querying import rows_json
from schemasync.app.replaying import replay
from schemasync.app.scaffolding import Scaffold
from schemasync.app.status import status
from schemasync.app.vacuuming import vacuum
from schemasync.app.watched import WatchedTable, WatchResult
from schemasync.cli import program
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import diagnose
from schemasync.core.events import CHANGED, CREATED, HELD
from schemasync.core.names import Dialect
from schemasync.core.ports import Rows
from tests.app.still import Still, avro
from tests.core.test_events import EVENT

PAGE = (Path(__file__).resolve().parents[2] / "docs/interface.md").read_text(encoding="utf-8")
CHAPTERS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
ROWS = {
    command: (set(re.findall(r"`(\w+)`", document)), set(re.findall(r"`(\w+)`", table)))
    for commands, document, table in re.findall(
        r"^\| (`[a-z].*?) \| (.*?) \| (.*?) ?\|$", CHAPTERS["JSON"], re.MULTILINE
    )
    for command in re.findall("`(.*?)`", commands)
}


@pytest.fixture
def documents(tmp_path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the document of each command whose result can be made without Spark, each of a table that is new."""
    still = Still(tmp_path)
    still.register(avro())
    planned = still.plan()
    (table,) = planned.tables
    applied = ApplyResult(tables=(Applied(plan=table),)).to_json()
    watched = WatchedTable(table="student", database="lake", subject="student-value")
    ddl = PrintedDdl(subject="", version=1, dialect=Dialect.SPARK, statements=(), diagnostics=())
    return {
        "plan": planned.to_json(),
        "plan --replay": replay(still.registry, still.config, open_lake=open_lake).to_json(),
        "apply": applied,
        "release": applied,
        "compact": CompactResult(tables=(Compacted(target=table.target, applied=Applied(plan=table)),)).to_json(),
        "vacuum": vacuum(still.workspace).to_json(),
        "status": status(still.workspace).to_json(),
        "watch": WatchResult(tables=(watched,), ticks=0).to_json(),
        "history": history(still.workspace, "student").to_json(),
        "check": {"file": "", **CheckResult(plan=table).to_json()},
        "ddl": {**ddl.to_json(), "files": []},
        "sql": rows_json(Rows(columns=(), rows=())),
        "doctor": Report(checks=()).to_json(),
        "init": Scaffold(path=tmp_path, registry="", tables=(("a-value", "a"),)).to_json(),
    }


def test_every_command_is_told_of() -> None:
    assert set(ROWS) == {*program.commands, "plan --replay"}


def test_the_keys_of_every_document_are_told(documents: Mapping[str, Mapping[str, Any]]) -> None:
    found = {
        command: (set(document), set(document["tables"][0]) if "tables" in document else set())
        for command, document in documents.items()
    }
    assert found == {command: keys for command, keys in ROWS.items() if command != "quickstart"}


def test_the_keys_inside_are_told(documents: Mapping[str, Mapping[str, Any]]) -> None:
    table, standing = documents["plan"]["tables"][0], documents["status"]["tables"][0]
    parts = [table["changes"][0], table["steps"][0], table["cost"], diagnostic_json(diagnose("SS101", ""))]
    parts += [standing[name] for name in ("pending", "lag", "to_retire")] + [standing["segments"]["base"]]
    parts += [documents["apply"]["tables"][0]["admitted"], documents["plan --replay"]["tables"][0]["timeline"][0]]
    parts += [documents["history"]["versions"][0], documents["history"]["columns"][0]]
    told = [re.findall(r'"(\w+)"', braces) for braces in re.findall(r"\{(.*?)\}", CHAPTERS["JSON"], re.DOTALL)]
    assert [list(part) for part in parts if list(part) not in told] == []


def test_the_events_are_told() -> None:
    types = set(re.findall(r"`(io\.\S+)`", CHAPTERS["Events"]))
    data = CHAPTERS["Events"].partition("\n`data`:")[2]
    assert (types, re.findall(r"`(\w+)`", data)) == ({CREATED, CHANGED, HELD}, list(EVENT.cloudevent()["data"]))  # type: ignore[call-overload]


def test_the_python_door_has_what_is_told_of_it() -> None:
    assert set(re.findall(r"schemasync\.([A-Za-z]+)\b(?!\")", CHAPTERS["Python"])) - {"yaml"} <= {*schemasync.__all__}
