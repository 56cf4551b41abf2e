from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.quickstart import STORY, quickstart
from schemasync.errors import PermanentError, StorageError, UsageError
from schemasync.io.config_file import load_config
from schemasync.io.samples import SAMPLES
from tests.children import SHORT_LIVED

README = Path(__file__).resolve().parents[2] / "README.md"
EVOLVING = "registry/cdc.inventory.evolving-value"


class Runs:
    """Stands in for the command line: keeps what was run, and which versions were registered at that moment."""

    def __init__(self, directory: Path, codes: Mapping[str, int] | None = None) -> None:
        self.directory = directory
        self.codes = codes or {"plan": 3}
        self.lines: list[str] = []
        self.versions: list[list[str]] = []
        self.said: list[str] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        self.lines.append(" ".join(arguments))
        self.versions.append(sorted(f.stem for f in (self.directory / EVOLVING).iterdir()))
        return self.codes.get(arguments[0], 0)

    def quickstart(self, environ: Mapping[str, str] | None = None) -> None:
        quickstart(self.directory, environ=environ or {}, say=self.said.append, run=self)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "project")


def files(directory: Path) -> list[str]:
    return sorted(str(f.relative_to(directory)) for f in directory.rglob("*") if f.is_file())


def test_the_ordinary_commands_run_while_the_versions_arrive_one_after_the_other(runs: Runs) -> None:
    runs.quickstart()
    assert list(zip(runs.lines, [v[-1] for v in runs.versions], strict=True)) == [
        ("plan", "1"),
        ("apply", "1"),
        ("compact", "1"),
        ("plan evolving", "3"),
        ("apply", "3"),
        ("plan evolving", "4"),
        ("apply", "4"),
        ("compact evolving", "4"),
        ("apply", "5"),
        ("plan evolving", "6"),
        ("apply", "6"),
        ("compact", "6"),
        ("sql SELECT * FROM evolving_view ORDER BY id", "6"),
    ]


def test_in_the_end_every_sample_lies_where_the_configuration_looks(runs: Runs) -> None:
    runs.quickstart()
    steps = ("steps/", ".schemasync-quickstart")
    assert [f for f in files(runs.directory) if not f.startswith(steps)] == files(SAMPLES)


def test_the_configuration_keeps_to_the_directory(runs: Runs) -> None:
    runs.quickstart()
    config = load_config(None, environ={}, cwd=runs.directory).config
    assert (config.registry.url, config.metastore.kind, config.defaults.location) == (
        f"file://{runs.directory}/registry",
        "embedded",
        f"file://{runs.directory}/lake/{{topic}}",
    )


def test_hour_two_brings_two_versions_at_once() -> None:
    columns_added = next(act for act in STORY if act.name == "1-columns-added")
    found = [f for pattern in columns_added.arrives for f in SAMPLES.glob(pattern) if "evolving" in str(f)]
    assert [f.name for f in sorted(found)] == [
        "cdc.inventory.evolving+0+0000000015.parquet",
        "cdc.inventory.evolving+0+0000000016.parquet",
        "2.avsc",
        "3.avsc",
    ]


def test_the_place_is_named_also_where_it_is_here(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.directory.mkdir()
    monkeypatch.chdir(runs.directory)
    runs.quickstart()
    runs.quickstart()
    begun = [line for line in runs.said if "the project in" in line]
    assert begun == [f"{word} the project in {runs.directory}." for word in ("Made", "Going on with")]


def test_each_command_is_shown_as_a_shell_takes_it(runs: Runs) -> None:
    runs.directory = runs.directory.with_name("my project")
    runs.quickstart({"PATH": ""})
    shown = [line for line in runs.said if line.startswith("$")]
    program = shown[0].removeprefix("$ ").split(" --config ")[0]
    config = f"'{runs.directory}/schemasync.yaml'"
    assert (shown[3], shown[4]) == (
        f"$ cp -R '{runs.directory}/steps/1-columns-added/.' '{runs.directory}/'",
        f"$ {program} --config {config} plan evolving",
    )


def test_sql_is_shown_in_the_quotes_that_people_write_around_it(runs: Runs) -> None:
    runs.quickstart()
    assert next(s for s in runs.said if " sql " in s).endswith(' sql "SELECT * FROM evolving_view ORDER BY id"')


def test_what_it_shows_for_copying_is_what_it_does(runs: Runs, tmp_path: Path) -> None:
    runs.quickstart()
    copies = [line.removeprefix("$ ") for line in runs.said if line.startswith("$ cp")]
    before = files(runs.directory)
    for version in (2, 3, 4, 5, 6):
        (runs.directory / EVOLVING / f"{version}.avsc").unlink()
    subprocess.run(["/bin/sh", "-ec", "\n".join(copies)], check=True, cwd=tmp_path)
    assert files(runs.directory) == before


def test_it_ends_with_what_to_type_next(runs: Runs) -> None:
    runs.quickstart()
    first, *rest = runs.said[-1].strip().splitlines()[1:]
    assert (first.strip(), [line.split()[-1] for line in rest[:2]]) == (f"cd {runs.directory}", ["status", "plan"])


def test_a_directory_with_anything_else_in_it_is_not_touched(runs: Runs) -> None:
    runs.directory.mkdir()
    (runs.directory / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="the directory is not empty, and no quickstart made it"):
        runs.quickstart()
    assert (files(runs.directory), runs.lines) == (["thesis.txt"], [])


def test_a_file_is_no_directory(runs: Runs) -> None:
    runs.directory.write_text("mine")
    with pytest.raises(UsageError, match="this is a file"):
        runs.quickstart()


def test_an_earlier_quickstart_is_gone_on_with_and_its_edits_stay(runs: Runs) -> None:
    runs.quickstart()
    config = runs.directory / "schemasync.yaml"
    config.write_text(config.read_text() + "watch: {poll: 5s}\n")
    runs.quickstart()
    assert config.read_text().endswith("watch: {poll: 5s}\n")


def test_an_empty_directory_is_as_good_as_none(runs: Runs) -> None:
    runs.directory.mkdir()
    runs.quickstart()
    assert len(runs.lines) == 13


def test_a_command_that_fails_ends_the_story(runs: Runs) -> None:
    runs.codes = {"plan": 3, "apply": 4}
    with pytest.raises(PermanentError, match="`apply` ended with exit code 4"):
        runs.quickstart()
    assert runs.lines == ["plan", "apply"]


def test_variables_that_point_elsewhere_are_refused_before_anything_runs(runs: Runs) -> None:
    with pytest.raises(UsageError, match="environment variables change metastore of the sample project"):
        runs.quickstart({"SCHEMASYNC_METASTORE__KIND": "thrift", "SCHEMASYNC_METASTORE__URI": "thrift://prod:9083"})
    assert runs.lines == []


def test_a_metastore_that_spark_itself_would_be_told_of_is_refused_too(runs: Runs) -> None:
    with pytest.raises(UsageError, match=r"environment variables change spark\.conf of the sample project"):
        runs.quickstart({"SCHEMASYNC_SPARK__CONF": "{spark.hadoop.hive.metastore.uris: 'thrift://prod:9083'}"})
    assert runs.lines == []


def test_variables_that_only_tune_spark_are_fine(runs: Runs) -> None:
    tuned = {"SCHEMASYNC_SPARK__MASTER": "local[1]", "SCHEMASYNC_SPARK__CONF": "{spark.driver.memory: 2g}"}
    runs.quickstart(tuned)
    assert len(runs.lines) == 13


def test_a_place_that_cannot_be_made_is_one_clear_error(runs: Runs) -> None:
    runs.directory.write_text("a file where a directory is needed")
    runs.directory = runs.directory / "below"
    with pytest.raises(StorageError, match="the directory cannot be written: Not a directory"):
        runs.quickstart()


def cli(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "schemasync", *arguments]
    environ = {**os.environ, **SHORT_LIVED, "PYTHONPATH": str(SAMPLES.parent.parent)}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.one_spark
def test_the_readme_shows_what_it_says_and_its_view_ends_with_the_newest_row_of_every_key(tmp_path: Path) -> None:
    told = cli("quickstart", cwd=tmp_path)
    assert missing_from(re.sub(r"^\$ .* --config ", "$ schemasync --config ", told, flags=re.MULTILINE)) == []
    columns = "id, a, b_renamed, d, e"
    query = f"SELECT {columns} FROM evolving_view ORDER BY id"
    shown = json.loads(cli("--json", "sql", query, cwd=tmp_path / "schemasync-quickstart"))
    assert shown == {"columns": columns.split(", "), "rows": expected_rows()}


def missing_from(told: str) -> list[str]:
    """Return the lines that README shows and the quickstart does not say there; between others `...` must stand."""
    lines, rest, missing = README.read_text(encoding="utf-8").splitlines(), told.splitlines(), []
    first = lines.index("Made the project in schemasync-quickstart.")
    gap = False
    for line in lines[first : lines.index("```", first)]:
        if line.strip() == "...":
            gap = True
            continue
        place = rest.index(line) if line in rest else -1
        if place == 0 or (gap and place > 0):
            rest, gap = rest[place + 1 :], False
        else:
            missing.append(line)
    return missing


def expected_rows() -> list[list[Any]]:
    # Debezium reports the rename as drop and add: b_renamed is empty where no later event filled it.
    kept: list[list[Any]] = [[n, n, None, None, 42] for n in range(7, 11)]
    added = [
        [101, 1, None, "2026-11-21T00:19:49.725274Z", 42],
        [102, 1, None, "2026-11-21T00:19:49.727259Z", 5],
    ]
    changed: list[list[Any]] = [
        [1, 3, None, None, 42],
        [2, 22, None, None, 42],
        [3, 77, None, None, 42],
        [4, 4, "renamed", None, 42],
        [5, 78, "b5", None, 42],
        [6, 5_000_000_000, "b6", None, 42],
    ]
    return [*changed, *kept, *added]
