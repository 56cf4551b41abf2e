"""The small door: what ``import schemasync`` offers, and that it is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

import schemasync
from schemasync import errors
from tests.cli.bench import Project, event
from tests.lab import Lab

HEAVY = ("pyspark", "pyarrow", "requests", "pydantic", "click", "rich", "jinja2")


def test_the_door_offers_these_names_and_no_others() -> None:
    results = {"Plan", "TablePlan", "ApplyResult", "Applied", "CompactResult", "Compacted", "Step", "Verdict"}
    exceptions = {name for name, value in vars(errors).items() if isinstance(value, type)}
    verbs = {"plan", "apply", "compact"}
    assert set(schemasync.__all__) == verbs | results | exceptions | {"Config", "Diagnostic", "Severity"}


def test_every_name_can_be_had() -> None:
    assert [name for name in schemasync.__all__ if getattr(schemasync, name, None) is None] == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'schemasync' has no attribute 'nope'"):
        _ = schemasync.nope


def test_importing_it_imports_nothing_heavy() -> None:
    code = f"import sys, schemasync; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout == "[]\n"


@pytest.mark.spark
def test_plan_apply_and_compact_work_on_a_file_and_a_session(lab: Lab) -> None:
    project = Project(lab.root, lab)
    project.register("student", ("name", ["null", "string"]))
    project.land("student", event(1, name="a"))
    config = lab.root / "schemasync.yaml"
    planned = schemasync.plan(config, spark=lab.session)
    applied = schemasync.apply(str(config), "student", spark=lab.session)
    folded = schemasync.compact(config, ["student"], spark=lab.session)
    assert planned.tables[0].verdict is schemasync.Verdict.EVOLVE
    assert (applied.tables[0].error, folded.tables[0].generation) == (None, 1)


@pytest.mark.spark
def test_a_config_of_ones_own_will_do(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.root)
    (lab.root / "registry").mkdir()
    config = schemasync.Config.model_validate({"registry": {"url": "file:./registry"}})
    assert schemasync.plan(config, spark=lab.session).tables == ()


def test_a_session_without_a_metastore_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        conf: ClassVar[dict[str, str]] = {}

    monkeypatch.chdir(tmp_path)
    bare: Any = Bare()
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    with pytest.raises(schemasync.UsageError, match=r"no Hive metastore\. Build it with enableHiveSupport\(\)\."):
        schemasync.plan(config, spark=bare)


def test_a_session_outside_of_utc_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Abroad:
        conf: ClassVar[dict[str, str]] = {"spark.sql.session.timeZone": "Asia/Tokyo"}

    monkeypatch.chdir(tmp_path)
    abroad: Any = Abroad()
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    with pytest.raises(schemasync.UsageError, match=r"time zone is Asia/Tokyo, and it must be UTC: .*newSession\(\)"):
        schemasync.apply(config, spark=abroad)


def test_a_missing_configuration_is_the_same_error_as_on_the_command_line(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(schemasync.UsageError, match="there is no such configuration file"):
        schemasync.plan()
