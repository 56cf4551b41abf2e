"""A kept plan is what was kept, or nothing: whatever changed in the file, and whatever moves while it is applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

from schemasync.app import admitting, applying
from schemasync.app.applying import Applied, apply_table
from schemasync.app.plan_file import read_plan, write_plan
from schemasync.app.planning import TablePlan, plan
from schemasync.core.policy import Verdict
from schemasync.core.ports import Rows
from schemasync.errors import UsageError
from tests.app.still import Still, avro
from tests.app.test_in_one_process import Small


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    still = Still(tmp_path)
    still.register(avro(("name", ["null", "string"])))
    write_plan(still.plan(), tmp_path / "plan.json")
    return tmp_path / "plan.json"


def edited(kept: Path, change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(kept.read_text())
    change(document)
    kept.write_text(json.dumps(document))
    with pytest.raises(UsageError) as refused:
        read_plan(kept)
    return str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["tables"][0].update(fingerprint="0"),
        lambda plan: plan["tables"][0].update(steps=[]),
        lambda plan: plan["tables"][0].update(verdict="none"),
        lambda plan: plan["tables"][0]["steps"][0].update(sql="DROP TABLE a"),
        lambda plan: plan["tables"].clear(),
        lambda plan: plan["tables"].append(plan["tables"][0]),
        lambda plan: plan.pop("diagnostics"),
        lambda plan: plan.update(note="approved"),
    ],
)
def test_a_plan_that_was_edited_is_refused(kept: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert "this plan was changed after it was made: its sha256 is that of another one" in edited(kept, change)


def test_a_plan_without_a_hash_is_of_an_earlier_release(kept: Path) -> None:
    assert "this plan was made by an earlier release: it has no sha256" in edited(kept, lambda plan: plan.pop("sha256"))


def test_a_plan_may_be_laid_out_otherwise(kept: Path) -> None:
    before = read_plan(kept)
    kept.write_text(json.dumps(json.loads(kept.read_text()), sort_keys=True))
    assert read_plan(kept) == before


class Migrated:
    """A retyped column and a landed file, while which is admitted ``meanwhile`` happens."""

    def __init__(self, root: Path, meanwhile: Callable[[Small], object]) -> None:
        self.small = Small(root)
        self.small.land("a", (1, "5", "u", 1))
        self.small.apply()
        self.small.still.register(avro(("v", ["null", "long"])))
        self.small.land("b", (2, "6", "u", 2))
        self.carried_out: list[tuple[Verdict, int | None]] = []
        self._meanwhile = meanwhile

    def apply(self, *, kept: bool) -> Applied:
        nothing = SimpleNamespace(query=lambda _: Rows(columns=("n",), rows=((0,),)))
        workspace = replace(self.small.workspace, sql=cast(Any, nothing))
        [planned] = plan(workspace).tables
        assert planned.verdict is Verdict.MIGRATE

        def admit_slowly(*args: Any, **more: Any) -> Any:
            done = admitting.admit(*args, **more)
            self._meanwhile(self.small)
            return done

        def carry_out(_: object, found: TablePlan, __: object) -> None:
            self.carried_out.append((found.verdict, found.desired_version))

        expected = {planned.target.full_name: planned.fingerprint} if kept else None
        with patch.object(applying, "admit", admit_slowly), patch.object(applying, "carry_out", carry_out):
            return apply_table(workspace, planned.target, expected=expected)


def register(small: Small) -> None:
    if len(small.still.registry.versions("student-value")) == 2:
        small.still.register(avro(("w", ["null", "string"])))


@pytest.mark.parametrize(("kept", "expected"), [(True, []), (False, [(Verdict.EVOLVE, 3)])])
def test_what_is_registered_while_files_come_in_is_no_part_of_a_kept_plan(
    tmp_path: Path, *, kept: bool, expected: list[tuple[Verdict, int]]
) -> None:
    table = Migrated(tmp_path, register)
    done = table.apply(kept=kept)
    assert table.carried_out == expected
    assert ("what the plan saw has moved" in str(done.error)) is kept


def test_a_kept_plan_goes_on_after_files_came_in(tmp_path: Path) -> None:
    table = Migrated(tmp_path, lambda _: None)
    table.apply(kept=True)
    assert table.carried_out == [(Verdict.MIGRATE, 2)]
