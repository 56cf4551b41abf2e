"""Advice that can be followed: what is said of a mistake of the configuration names what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from schemasync.app.inspecting import map_tables, select
from schemasync.app.status import status
from schemasync.cli.rendering import plan_text
from schemasync.errors import UsageError
from tests.app.still import Still, avro


def settled(root: Path, *texts: str) -> Still:
    still = Still(root)
    still.register(*(texts or (avro(),)))
    still.settle()
    return still


def head(still: Still) -> str:
    first = next(iter(plan_text(still.plan())))
    assert isinstance(first, Text)
    return first.plain


@pytest.mark.parametrize(
    ("setting", "value"), [("sequence_by", ["revision"]), ("envelope", "debezium")], ids=["order", "envelope"]
)
@pytest.mark.parametrize("there", [False, True])
def test_a_setting_that_does_not_fit_is_named_with_its_own_advice(
    tmp_path: Path, setting: str, value: Any, *, there: bool
) -> None:
    still = settled(tmp_path) if there else Still(tmp_path)
    if not there:
        still.register(avro())
    still.settings["tables"] = [{"subject": "student-value", setting: value}]
    (table,) = still.plan().tables
    finding = next(d for d in table.diagnostics if d.code == "SS406")
    assert finding.fix.startswith(f"Correct `{setting}:` of this table, or leave it out")
    assert "Correct" not in finding.message
    # The registry still has the subject.
    assert "gone" not in head(still)


def test_a_subject_that_is_gone_is_called_so(tmp_path: Path) -> None:
    still = settled(tmp_path)
    still.registry.delete("student-value")
    still.settings["tables"] = [{"subject": "student-value"}]
    assert head(still) == "lake.student  hold  version 1 -> gone  student-value"


@pytest.mark.parametrize("name", ["schemasync.subject", "schemasync.version"])
def test_a_table_whose_version_cannot_be_read_is_not_called_new(tmp_path: Path, name: str) -> None:
    still = settled(tmp_path)
    table = still.metastore.table("lake", "student")
    assert table is not None
    properties = {k: v for k, v in table.properties.items() if k != name}
    still.put("student", columns=table.columns, partition_keys=table.partition_keys, properties=properties)
    assert head(still) == "lake.student  hold  no readable version, newest 1  student-value"
    (shown,) = status(still.workspace).tables
    assert "which version the table has cannot be read" in shown.drift
    assert [sentence for sentence in shown.drift if "no table shows it" in sentence] == []


def test_a_table_that_is_part_of_a_problem_is_refused_with_that(tmp_path: Path) -> None:
    still = Still(tmp_path, defaults={"names": {"view": "{table}"}})
    still.register(avro())
    mapping = map_tables(still.workspace)
    for name in ("student", "lake.student", "student-value"):
        with pytest.raises(UsageError, match=r"lake\.student is claimed 2 times"):
            select(mapping, [name])
    with pytest.raises(UsageError, match="there is no table teacher"):
        select(mapping, ["teacher"])
