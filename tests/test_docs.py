"""The documents say what the code does: reference pages are current, links lead somewhere, examples load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import schemasync
from schemasync.app.quickstart import STORY
from schemasync.cli import program
from schemasync.core.config import Config
from schemasync.core.diagnostics import CODES
from schemasync.core.partitioning import USAGES
from schemasync.io.config_file import load_config

TOP = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "benchmarks/limits.md",
    "docs/benchmark.md",
    "docs/configuration.md",
    "docs/conversions.md",
    "docs/diagnostics.md",
    "docs/evolution.md",
    "docs/identifiers.md",
    "docs/interface.md",
    "docs/partitions.md",
    "docs/s3.md",
    "docs/types.md",
    "docs/in-place-reads.md",
)


def text(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


def test_the_reference_pages_are_what_the_script_writes() -> None:
    command = [sys.executable, str(TOP / "scripts/reference_pages.py"), "--check"]
    environ = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_code_has_a_row() -> None:
    assert re.findall(r"^\| (SS\d+) ", text("docs/diagnostics.md"), re.MULTILINE) == list(CODES)


def test_what_the_readme_says_is_not_there_is_not_there() -> None:
    sentence = re.compile(r"^- Not in this version: the commands (.+?); in Python (.+?);", re.MULTILINE | re.DOTALL)
    (found,) = sentence.findall(text("README.md"))
    missing = set(re.findall(r"`(\w+)`", " ".join(found)))
    assert missing == {"changes", "snapshot", "rollback", "table_changes", "read_as_of"}
    assert not missing & {*program.commands, *schemasync.__all__}


def test_every_function_of_a_partition_has_a_row() -> None:
    assert re.findall(r"^\| `(\w+\(.*?\))` \|", text("docs/partitions.md"), re.MULTILINE) == list(USAGES)


def test_the_query_about_partitions_reads_the_view_of_the_configuration_before_it(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", text("docs/partitions.md"), re.DOTALL)
    (tmp_path / "schemasync.yaml").write_text(f"registry: {{url: 'file:.'}}\n{example}", encoding="utf-8")
    (table,) = load_config(None, environ={}, cwd=tmp_path).config.tables
    assert re.findall(r"FROM (\w+)", text("docs/partitions.md")) == [f"{table.table}_view"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_to_files_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", text(name))
    assert [link for link in links if not ((TOP / name).parent / link).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_codes_that_are_named_exist(name: str) -> None:
    assert set(re.findall(r"\bSS\d{3}\b", text(name))) <= CODES.keys()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_modules_and_scripts_that_are_named_exist(name: str) -> None:
    named = re.findall(r"`(?:\./)?((?:core|io|app|tests|scripts|docker|docs)/[\w./]*)`", text(name))
    assert [n for n in named if not ((TOP / n).exists() or (TOP / "schemasync" / n).exists())] == []


def test_the_readmes_configuration_loads(tmp_path: Path) -> None:
    example = re.findall(r"```yaml\n(.*?)```", text("README.md"), re.DOTALL)[0]
    (tmp_path / "schemasync.yaml").write_text(example, encoding="utf-8")
    loaded = load_config(None, environ={}, cwd=tmp_path).config
    assert (type(loaded), [t.table for t in loaded.tables]) == (Config, ["shop_{name}", "student"])


def test_the_readmes_test_command_is_the_one_that_the_gate_calls() -> None:
    assert "```sh\n./scripts/test\n```" in text("README.md")
    assert "\n./scripts/test\n" in text(".ci/run")


def test_the_command_for_tests_without_a_jvm_starts_no_services() -> None:
    """What is said with -m stands instead of pyproject's own, which leaves the services out."""
    told = re.findall(r'^\| `pytest -m "(not .+?)"` ', text("CONTRIBUTING.md"), re.MULTILINE)
    assert told == ["not spark and not services"]


def test_the_readmes_table_has_every_command() -> None:
    listed = re.findall(r"^\| `(\w+)[^`]*` \|", text("README.md").split("## Commands")[1], re.MULTILINE)
    assert listed == list(program.commands)


def test_the_readmes_output_has_every_step_of_the_quickstart() -> None:
    shown = re.findall(r"^\$ cp -R \S+/steps/(\S+)/\. ", text("README.md"), re.MULTILINE)
    assert shown == [act.name for act in STORY if act.name]
