"""The checks: each finds what it is for, says what to do, and never stops the others."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from packaging.requirements import Requirement

from schemasync.app import doctor
from schemasync.app.doctor import GIB, INCOMPATIBLE, TRAPS, Check, Health, Surroundings, examine
from schemasync.app.workspace import Workspace
from schemasync.core.config import Config
from schemasync.core.ports import Rows
from schemasync.errors import EngineError, RegistryError, UsageError
from schemasync.io.config_file import LoadedConfig, resolve
from schemasync.io.lake.arrow import ArrowLake
from tests.lab import Lab
from tests.twins.registry import MemoryRegistry

TOP = Path(__file__).resolve().parents[2]
WITHOUT_SPARK = {"spark": "skipped", "metastore": "skipped", "column_types": "skipped", "time_zone": "skipped"}


class Answers:
    """A metastore and an SQL engine that answer from a table."""

    def __init__(self, **changed: str) -> None:
        self.known = {INCOMPATIBLE: "false", "time_zone": "UTC", **{key: value for key, value, _ in TRAPS}} | changed

    def setting(self, key: str, default: str) -> str:
        return self.known.get(key, default)

    def names(self, database: str, pattern: str) -> tuple[str, ...]:
        return (database, pattern)

    def query(self, sql: str) -> Rows:
        answer = {"SELECT version()": "4.1.4 rev", "SELECT current_timezone()": self.known["time_zone"]}
        key = sql.removeprefix("SET ")
        return Rows(columns=("key", "value"), rows=((answer[sql],) if sql in answer else (key, self.known[key]),))


def surroundings(root: Path, answers: Answers | None = None, **settings: Any) -> Surroundings:
    registry = MemoryRegistry()
    registry.register("student-value", '"string"')
    config = resolve(Config.model_validate({"registry": {"url": "file:."}} | settings), root)

    @contextmanager
    def opened(_: Config) -> Iterator[Workspace]:
        class Fake:
            metastore = sql = answers or Answers()
            storage = staticmethod(lambda target: SimpleNamespace(lake=ArrowLake(f"mock://{target.topic}")))

        yield cast(Workspace, Fake())

    return Surroundings(
        load=lambda: LoadedConfig(config=config, path=root / "schemasync.yaml"),
        environ={},
        open_workspace=opened,
        open_registry=lambda _: registry,
        free_bytes=lambda _: 10 * GIB,
    )


def found(around: Surroundings, name: str) -> Check:
    return next(check for check in examine(around).checks if check.name == name)


def health(around: Surroundings) -> dict[str, str]:
    return {check.name: check.health.value for check in examine(around).checks}


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_a_sound_project_passes_every_check(tmp_path: Path) -> None:
    report = examine(surroundings(tmp_path))
    assert (report.healthy, {check.health for check in report.checks}) == (True, {Health.OK})


def test_the_json_of_a_check_has_its_shape(tmp_path: Path) -> None:
    checks = examine(surroundings(tmp_path)).to_json()["checks"]
    detail = f"{tmp_path}/schemasync.yaml"
    assert checks[0] == {"check": "config", "status": "ok", "detail": detail, "fix": ""}


def test_without_a_configuration_java_is_checked_and_what_needs_it_is_skipped(tmp_path: Path) -> None:
    around = replace(surroundings(tmp_path), load=failing(UsageError("no file", fix="Write one.")))
    states = health(around)
    assert (states["config"], states["java"], states["registry"], states["spark"]) == (
        "fail",
        "ok",
        "skipped",
        "skipped",
    )


def test_names_that_clash_are_told_of_the_tables_and_not_of_the_sample(tmp_path: Path) -> None:
    around = surroundings(tmp_path, defaults={"names": {"view": "{table}"}})
    assert (found(around, "templates").health, found(around, "tables").health) == (Health.OK, Health.FAIL)
    assert found(around, "tables").exit_code == UsageError.exit_code
    assert "schemasync_doctor" not in " ".join(check.detail for check in examine(around).checks)


def test_without_java_spark_is_not_tried_and_the_rest_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schemasync.app.doctor.find_java", failing(UsageError("no usable Java was found")))
    states = health(surroundings(tmp_path))
    assert states | WITHOUT_SPARK | {"java": "fail", "registry": "ok", "storage": "ok"} == states


def no_start(_: Config) -> AbstractContextManager[Workspace]:
    raise EngineError("Spark did not start", fix="Look at spark.log.")


def test_a_spark_that_does_not_start_is_one_failure(tmp_path: Path) -> None:
    around = replace(surroundings(tmp_path), open_workspace=no_start)
    states = health(around)
    assert states | WITHOUT_SPARK | {"spark": "fail"} == states
    assert found(around, "spark").fix == "Look at spark.log."


def test_a_registry_that_refuses_does_not_stop_storage_and_spark(tmp_path: Path) -> None:
    around = replace(surroundings(tmp_path), open_registry=failing(RegistryError("401", fix="Set auth.")))
    states = health(around)
    expected = {"registry": "fail", "tables": "skipped", "storage": "ok", "spark": "ok"}
    assert states | expected == states


def test_an_empty_registry_is_a_warning(tmp_path: Path) -> None:
    around = replace(surroundings(tmp_path), open_registry=lambda _: MemoryRegistry())
    assert found(around, "registry").health is Health.WARN


def test_two_entries_for_one_table_are_found(tmp_path: Path) -> None:
    around = surroundings(tmp_path, tables=[{"subject": "student-value"}, {"subject": "student-value"}])
    assert found(around, "tables").detail == "subject student-value is named by 2 entries"


def test_a_subject_that_the_registry_lacks_is_a_warning(tmp_path: Path) -> None:
    check = found(surroundings(tmp_path, tables=[{"subject": "pupil-value"}]), "tables")
    assert (check.health, check.detail) == (Health.WARN, "the registry does not have pupil-value")


def test_a_file_where_a_location_should_be_is_found(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    check = found(surroundings(tmp_path), "storage")
    assert (check.health, str(tmp_path / "lake") in check.detail) == (Health.FAIL, True)


def test_a_place_that_may_not_be_looked_into_is_told_like_any_other_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below a directory of mode 600; tests may run as root, who may look everywhere."""
    exists = Path.exists

    def refused(path: Path) -> bool:
        if "secret" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refused)
    around = surroundings(tmp_path, defaults={"location": f"file://{tmp_path}/secret/{{topic}}"})
    assert found(around, "disk").health is Health.OK
    monkeypatch.setattr(doctor, "_probe", failing(ValueError("unheard of")))
    check = found(around, "storage")
    assert (check.health, check.detail) == (Health.FAIL, "ValueError: unheard of")


def test_the_storage_is_probed_in_the_very_directory_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "c#").mkdir()
    check = found(surroundings(tmp_path, defaults={"location": "c#/{topic}"}), "storage")
    assert check.detail == f"1 location can be written, tried in {tmp_path}/c#"


def test_probing_the_storage_leaves_nothing_behind(tmp_path: Path) -> None:
    examine(surroundings(tmp_path))
    assert [path for path in tmp_path.rglob("*") if ".schemasync" not in path.parts] == []


@pytest.mark.parametrize(
    ("location", "kernel", "storage", "hadoop"),
    [
        ("/lake/{topic}", "arrow", "1 location can be written, tried in {root}", []),
        (
            "nowhere://x/{topic}",
            "arrow",
            "1 location reached by Spark only",
            ["1 location can be written, tried in {there}"],
        ),
        (
            "s3a://x/{topic}",
            "spark",
            "1 location reached by Spark only",
            ["1 location can be written, tried in {there}"],
        ),
    ],
)
def test_what_nothing_but_spark_reaches_is_tried_through_spark(
    tmp_path: Path, location: str, kernel: str, storage: str, hadoop: list[str]
) -> None:
    place = f"{tmp_path}{location}" if location.startswith("/") else location
    around = surroundings(tmp_path, defaults={"location": place, "compaction": {"kernel": kernel}})
    report = examine(around)
    told = {check.name: check.detail for check in report.checks}
    names = {"root": tmp_path, "there": place.replace("{topic}", "student")}
    assert (report.healthy, told["storage"]) == (True, storage.format(**names))
    assert [told[name] for name in told if name == "hadoop"] == [text.format(**names) for text in hadoop]


def test_without_spark_what_only_it_reaches_is_not_called_broken(tmp_path: Path) -> None:
    around = surroundings(tmp_path, defaults={"location": "nowhere://x/{topic}"})
    states = health(replace(around, open_workspace=failing(EngineError("no Spark"))))
    assert (states["storage"], states["spark"], "hadoop" in states) == ("ok", "fail", False)


@pytest.mark.parametrize(("free", "state"), [(10 * GIB, "ok"), (GIB // 2, "warn"), (1024, "fail")])
def test_a_full_disk_is_found(tmp_path: Path, free: int, state: str) -> None:
    around = replace(surroundings(tmp_path), free_bytes=lambda _: free)
    assert found(around, "disk").health.value == state


def test_a_template_that_does_not_render_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/table.sql.j2").write_text("{{ nothing_of_that_name }}")
    check = found(surroundings(tmp_path, templates="mine"), "templates")
    assert (check.health, "nothing_of_that_name" in check.detail) == (Health.FAIL, True)


def test_a_template_that_nothing_uses_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/view_bodi.sql.j2").write_text("SELECT 1")
    check = found(surroundings(tmp_path, templates="mine"), "templates")
    assert (check.health, check.detail.startswith("view_bodi.sql.j2 is not used")) == (Health.WARN, True)


def test_a_template_that_puts_something_around_a_views_rows_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine/view.sql.j2"
    file.parent.mkdir()
    file.write_text("CREATE OR REPLACE VIEW {{ view }} AS SELECT * FROM ({{ body }}) v WHERE tenant = 'a'")
    check = found(surroundings(tmp_path, templates="mine"), "templates")
    assert (check.health, check.detail.startswith(f"{file}: the template has something around {{{{ body }}}}")) == (
        Health.FAIL,
        True,
    )


@pytest.mark.parametrize(
    ("name", "key", "value", "state"),
    [
        ("column_types", INCOMPATIBLE, "true", "warn"),
        ("time_zone", "time_zone", "Europe/Berlin", "fail"),
        ("parquet", "spark.sql.hive.convertMetastoreParquet", "false", "warn"),
        ("parquet", "spark.sql.parquet.outputTimestampType", "INT96", "warn"),
    ],
)
def test_a_setting_that_spoils_results_is_found(tmp_path: Path, name: str, key: str, value: str, state: str) -> None:
    check = found(surroundings(tmp_path, Answers(**{key: value})), name)
    assert (check.health.value, check.fix != "") == (state, True)


@pytest.mark.parametrize("release", ["3.5.8", "3.5.9", "3.5.10", "4.0.1", "4.1.0", "4.1.4", "4.2.0", "5.0.0"])
def test_a_spark_is_known_where_pip_may_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = next(r for r in map(Requirement, project["dependencies"]) if r.name == "pyspark")
    monkeypatch.setattr("schemasync.app.doctor.version", lambda _: release)
    known = found(surroundings(tmp_path), "pyspark").health is Health.OK
    assert known == wanted.specifier.contains(release)


def test_another_spark_than_those_this_is_made_for_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schemasync.app.doctor.version", lambda _: "3.5.1")
    check = found(surroundings(tmp_path), "pyspark")
    assert (check.health, check.detail) == (Health.WARN, "3.5.1, made for 3.5.9+ and 4.1.0+")


@pytest.mark.spark
def test_the_session_that_we_start_has_no_trap(tmp_path: Path, lab: Lab) -> None:
    @contextmanager
    def opened(_: Config) -> Iterator[Workspace]:
        yield lab.workspace

    states = health(replace(surroundings(tmp_path), open_workspace=opened))
    assert set(states.values()) == {"ok"}
