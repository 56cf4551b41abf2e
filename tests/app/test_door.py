"""The small door: what ``import schemasync`` offers, and that it is cheap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import schemasync
from schemasync import errors
from schemasync.app.opening import workspace_of
from schemasync.core.mapping import map_subjects
from tests.children import SHORT_LIVED
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


def test_every_name_is_listed_where_people_ask_what_there_is() -> None:
    assert dir(schemasync) == sorted(schemasync.__all__)


def test_another_type_than_a_configuration_is_told_what_may_be_given() -> None:
    given: Any = {"registry": {"url": "file:/srv/registry"}}
    with pytest.raises(errors.UsageError) as raised:
        schemasync.plan(given)
    assert str(raised.value) == (
        "config is a dict, which is no configuration. Give a schemasync.Config, which schemasync.Config.model_validate("
        "{...}) makes of a dict, the path of a file, or None for the file that commands would use."
    )


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
    assert (planned.tables[0].verdict, planned.tables[0].target.only_spark) == (schemasync.Verdict.EVOLVE, True)
    assert (applied.tables[0].error, folded.tables[0].generation) == (None, 1)


@pytest.mark.spark
def test_a_config_of_ones_own_will_do(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.root)
    (lab.root / "registry").mkdir()
    config = schemasync.Config.model_validate({"registry": {"url": "file:./registry"}})
    assert schemasync.plan(config, spark=lab.session).tables == ()


class Conf:
    """A session's settings: one that nobody set is what Spark goes by, unless the caller has a default of his own."""

    def __init__(self, zone_of_jvm: str, **settings: str) -> None:
        self.by_spark = {"spark.sql.session.timeZone": zone_of_jvm, "spark.sql.parser.escapedStringLiterals": "false"}
        self.settings = settings

    def get(self, key: str, default: str | None = None) -> str:
        found = self.settings.get(key, default)
        return self.by_spark[key] if found is None else found


class Session:
    def __init__(self, zone_of_jvm: str, **settings: str) -> None:
        self.conf = Conf(zone_of_jvm, **settings)


def test_a_session_without_a_metastore_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare: Any = Session("UTC")
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    with pytest.raises(schemasync.UsageError, match=r"no Hive metastore\. Build it with enableHiveSupport\(\)\."):
        schemasync.plan(config, spark=bare)


@pytest.mark.parametrize(
    "abroad", [Session("UTC", **{"spark.sql.session.timeZone": "Asia/Tokyo"}), Session("Asia/Tokyo")]
)
def test_a_session_outside_of_utc_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abroad: Any) -> None:
    monkeypatch.chdir(tmp_path)
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    with pytest.raises(schemasync.UsageError, match=r"time zone is Asia/Tokyo, and it must be UTC: .*newSession\(\)"):
        schemasync.apply(config, spark=abroad)


def test_a_session_that_takes_backslashes_as_they_are_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    literal: Any = Session("UTC", **{"spark.sql.parser.escapedStringLiterals": "true"})
    with pytest.raises(
        schemasync.UsageError, match=r"escapedStringLiterals is true, and it must be false: .*newSession"
    ):
        schemasync.plan(config, spark=literal)


ABROAD = """
import schemasync
from pyspark.sql import SparkSession

if __name__ == "__main__":
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        schemasync.compact(config, spark=session)
    except schemasync.UsageError as error:
        print(error.what)
    finally:
        session.stop()
"""


@pytest.mark.spark
@pytest.mark.one_spark
def test_a_session_that_has_its_zone_from_the_machine_is_refused(tmp_path: Path) -> None:
    environ = os.environ | SHORT_LIVED | {"TZ": "Europe/Berlin", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ABROAD]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    said = "the Spark session's time zone is Europe/Berlin, and it must be UTC\n"
    assert done.stdout == said, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("metastore", "only_spark"),
    [
        ({"javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore_db"}, True),
        ({"hive.metastore.uris": "thrift://prod:9083", "javax.jdo.option.ConnectionURL": "jdbc:derby:;x"}, False),
        ({"javax.jdo.option.ConnectionURL": "jdbc:derby://prod:1527/metastore"}, False),
        ({"javax.jdo.option.ConnectionURL": "jdbc:mysql://prod/metastore"}, False),
    ],
)
def test_views_are_for_spark_alone_only_where_nobody_else_opens_the_metastore_of_the_session(
    metastore: dict[str, str], only_spark: bool
) -> None:
    session = MagicMock()
    session.conf.get.return_value = "hive"
    client = session._jsparkSession.sharedState.return_value.externalCatalog.return_value.unwrapped.return_value.client
    client.return_value.client.return_value.getConf.return_value = metastore
    config = schemasync.Config.model_validate({"registry": {"url": "file:."}})
    (target,) = map_subjects(["student-value"], workspace_of(config, session).config).targets
    assert target.only_spark is only_spark


def test_a_missing_configuration_is_the_same_error_as_on_the_command_line(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(schemasync.UsageError, match="there is no such configuration file"):
        schemasync.plan()
