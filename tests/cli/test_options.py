"""The command line itself: where options may stand, what help says, how wrong usage ends."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

from tests.cli.bench import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STUDENT = """{"type": "record", "name": "Student", "fields": [
  {"name": "id", "type": "long"}, {"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}]}"""

OPTIONS = {
    "quickstart": ["[DIR]"],
    "init": ["[DIR]", "--registry URL"],
    "plan": ["[TABLE]...", "--out FILE", "--replay"],
    "apply": ["[TABLE]...", "--plan FILE"],
    "ddl": [
        "SUBJECT|FILE.avsc",
        "--dialect [spark|hive|trino]",
        "--kind [table|view|per-run|all]",
        "--version N",
        "--out DIR",
        "--keys A,B",
        "--hour yyyyMMddHH",
    ],
    "check": [
        "FILE.avsc",
        "--subject SUBJECT",
        "--key FILE.avsc",
        "--reference NAME=FILE",
        "--format [text|github]",
    ],
    "compact": ["[TABLE]...", "--minor", "--major", "--dry-run"],
    "vacuum": ["[TABLE]...", "--dry-run"],
    "watch": ["--once"],
    "status": ["[TABLE]..."],
    "sql": ['"SELECT ..."'],
    "doctor": [],
}
GLOBAL = ["--config FILE", "--json", "--log-format [text|json]", "-v", "--wait", "--wait-timeout SECONDS"]


@pytest.mark.parametrize("command", OPTIONS)
def test_the_help_of_a_command_tells_its_options_and_the_global_ones(bench: Bench, command: str) -> None:
    text = bench(command, "--help").out
    assert [option for option in OPTIONS[command] + GLOBAL if option not in text] == []


def test_the_programs_help_lists_every_command_and_the_exit_codes(bench: Bench) -> None:
    text = bench("--help").out
    assert [name for name in OPTIONS if f"  {name} " not in text] == []
    assert "4 a table is held, or a check would break" in " ".join(text.split())


@pytest.mark.parametrize(
    "argv", [("--json", "ddl", "s.avsc"), ("ddl", "--json", "s.avsc"), ("ddl", "s.avsc", "--json")]
)
def test_a_global_option_may_stand_before_and_after_the_command(bench: Bench, argv: tuple[str, ...]) -> None:
    bench.write("s.avsc", STUDENT)
    answer = bench(*argv)
    assert (answer.code, answer.json["subject"]) == (0, "s-value")


@pytest.mark.parametrize("argv", [("--config", "other.yaml", "ddl", "s"), ("ddl", "s", "--config", "other.yaml")])
def test_config_names_the_file_wherever_it_stands(bench: Bench, argv: tuple[str, ...]) -> None:
    answer = bench(*argv)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {bench.root}/other.yaml: there is no such configuration file.")


@pytest.mark.parametrize(
    ("argv", "seconds"),
    [
        ((), 0),
        (("--wait",), 600),
        (("--wait-timeout", "5"), 5),
        (("--wait", "--wait-timeout", "5"), 5),
        (("--wait-timeout", "5", "--wait"), 5),
    ],
)
def test_wait_says_how_long_to_wait_for_the_metastore(bench: Bench, argv: tuple[str, ...], seconds: float) -> None:
    asked: list[float] = []

    def opener(*_: object, wait_s: float, **__: object) -> AbstractContextManager[SparkSession]:
        asked.append(wait_s)
        raise RuntimeError

    bench.write("schemasync.yaml", "registry: {url: 'file:.'}")
    bench.open_session = opener
    bench(*argv, "plan")
    assert asked == [seconds]


def test_to_wait_for_no_number_of_seconds_is_wrong_usage(bench: Bench) -> None:
    answer = bench("--wait-timeout", "nan", "plan")
    assert (answer.code, "nan is no number" in answer.err) == (2, True)


@pytest.mark.parametrize("argv", [("plan", "--nope"), ("nope",), ("sql",), ("ddl", "x", "--dialect", "oracle"), ()])
def test_wrong_usage_exits_with_2_and_says_so_on_stderr(bench: Bench, argv: tuple[str, ...]) -> None:
    answer = bench(*argv)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err != ""


def test_wrong_usage_with_json_is_one_document(bench: Bench) -> None:
    error = bench("plan", "--nope", "--json").json["error"]
    # Some releases of click put quotes around it.
    assert error.pop("what").replace("'", "") in {"No such option --nope", "No such option: --nope"}
    assert error == {"where": "", "why": "", "fix": "Try schemasync plan --help.", "type": "UsageError"}


def test_a_compaction_is_minor_or_major(bench: Bench) -> None:
    answer = bench("compact", "--minor", "--major")
    assert (answer.code, answer.err) == (
        2,
        "error: schemasync compact: --minor and --major exclude each other. Leave one out.\n",
    )


def test_a_reader_that_goes_away_is_no_error(bench: Bench) -> None:
    more = "".join(f', {{"name": "c{n}", "type": "string"}}' for n in range(2000))
    bench.write("s.avsc", STUDENT.replace('"ts_ms", "type": "long"}', '"ts_ms", "type": "long"}' + more))
    program = subprocess.Popen(
        [sys.executable, "-m", "schemasync", "ddl", "s.avsc"],
        cwd=bench.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert program.stdout is not None
    program.stdout.readline()
    program.stdout.close()
    _, err = program.communicate(timeout=60)
    assert (program.returncode, b"Traceback" in err) == (0, False)
