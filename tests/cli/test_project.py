"""init, ddl and doctor: the commands that need no table, and how they answer."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from schemasync.cli.context import Call
from schemasync.cli.options import Options
from tests.cli.bench import Bench
from tests.cli.test_options import STUDENT


def test_init_writes_a_configuration_that_loads(bench: Bench) -> None:
    made = bench("init", "lake", "--json")
    assert (made.code, made.json) == (
        0,
        {
            "config": f"{bench.root}/lake/schemasync.yaml",
            "registry": "http://localhost:8081",
            "tables": [],
            "skipped": [],
            "problems": [],
        },
    )


def test_init_asks_a_registry_and_says_which_tables_it_found(bench: Bench) -> None:
    for subject in ("shop.student-value", "dbhistory.shop-value", "a.b-value", "a_b-value"):
        bench.write(f"registry/{subject}/1.avsc", STUDENT)
    answer = bench("init", "--registry", "file:./registry")
    assert answer.out == (
        f"wrote {bench.root}/schemasync.yaml\n"
        "  shop.student-value -> shop_student\n"
        "left out, they hold no table's rows: dbhistory.shop-value\n"
        "left out: tables: lake.a_b is claimed 2 times: as the table of a.b-value and as the table of a_b-value. "
        "Give one of them another table, names or location, or exclude a subject.\n"
        f"Look through it, then: schemasync --config {bench.root}/schemasync.yaml plan\n"
    )


def test_init_never_overwrites(bench: Bench) -> None:
    path = bench.write("schemasync.yaml", "mine")
    answer = bench("init")
    assert (answer.code, path.read_text()) == (2, "mine")
    assert answer.err.startswith(f"error: {path}: there is a configuration already, and it is not overwritten.")


def test_init_says_what_to_type_as_a_shell_takes_it(bench: Bench) -> None:
    shown = bench("init", "my lake").out.splitlines()[-1]
    assert shown == f"Look through it, then: schemasync --config '{bench.root}/my lake/schemasync.yaml' plan"


@pytest.mark.parametrize("command", ["init", "quickstart"])
def test_a_configuration_is_refused_where_one_is_written(bench: Bench, command: str) -> None:
    mine = bench.write("mine.yaml", "registry: {url: 'file:.'}")
    answer = bench("--config", "mine.yaml", command, "q")
    assert (answer.code, answer.err, list(bench.root.iterdir())) == (
        2,
        f"error: --config: {command} writes a configuration, and reads none. "
        f"Leave it out, and name the directory: schemasync {command} DIR.\n",
        [mine],
    )


def test_ddl_of_a_file_needs_nothing_but_the_file(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    answer = bench("ddl", "student.avsc", "--keys", "id", "--kind", "view", "--dialect", "trino")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith('CREATE OR REPLACE VIEW "lake"."student_view"')


def test_ddl_of_a_file_needs_no_right_to_look_for_a_configuration(bench: Bench, monkeypatch: Any) -> None:
    path, inner = bench.write("etc/student.avsc", STUDENT), Path.stat

    def guarded(file: Path, **options: Any) -> Any:
        if file == bench.root / "schemasync.yaml":
            raise PermissionError(errno.EACCES, "Permission denied")
        return inner(file, **options)

    monkeypatch.setattr(Path, "stat", guarded)
    assert bench("ddl", str(path), "--keys", "id").code == 0


def test_ddl_tells_on_stderr_what_is_remarkable(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    message = "student-value has no key: lake.student is insert-only"
    fix = "If rows have an identity, name its columns with --keys."
    told = f"SS401 warning: {message}. {fix}"
    assert bench("ddl", "student.avsc").err == f"{told}\n"
    record = json.loads(bench("ddl", "student.avsc", "--log-format", "json").err)
    assert (record["level"], record["message"]) == ("WARNING", told)
    diagnostics = bench("ddl", "student.avsc", "--json").json["diagnostics"]
    assert diagnostics == [{"code": "SS401", "severity": "warning", "message": message, "fix": fix}]


def test_ddl_of_a_subject_without_a_key_says_where_to_set_one(bench: Bench) -> None:
    bench.write("schemasync.yaml", "registry: {url: 'file:./registry'}")
    bench.write("registry/student-value/1.avsc", STUDENT)
    assert "is insert-only. If rows have an identity, set keys: before" in bench("ddl", "student").err


def test_ddl_is_the_same_every_time(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    assert bench("ddl", "student.avsc").out == bench("ddl", "student.avsc").out


def test_ddl_of_a_subject_reads_the_registry(bench: Bench) -> None:
    bench.write("schemasync.yaml", "registry: {url: 'file:./registry'}")
    bench.write("registry/student-value/1.avsc", STUDENT)
    shown = bench("ddl", "student", "--version", "1", "--kind", "per-run", "--json").json
    names = [(s["kind"], s["name"]) for s in shown["statements"]]
    assert names == [
        ("per-run", "student_base"),
        ("per-run", "student_incremental_2026010100"),
        ("per-run", "student_compactor"),
    ]


def test_ddl_of_an_empty_name_is_wrong_usage(bench: Bench) -> None:
    answer = bench("ddl", "")
    assert (answer.code, answer.err) == (
        2,
        "error: SUBJECT|FILE.avsc: the name is empty. Name a subject, or a file with a schema.\n",
    )


def test_ddl_writes_one_file_per_statement(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    answer = bench("ddl", "student.avsc", "--kind", "table", "--out", "sql")
    assert answer.out == f"{bench.root}/sql/student.sql\n"
    assert (bench.root / "sql/student.sql").read_text().endswith(");\n")


def test_ddl_refuses_options_that_do_not_belong_together(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    codes = [bench("ddl", "student.avsc", "--version", "2").code, bench("ddl", "student", "--keys", "id").code]
    assert codes == [2, 2]


def test_ddl_of_a_file_takes_no_key_that_the_file_lacks(bench: Bench) -> None:
    bench.write("student.avsc", STUDENT)
    answer = bench("ddl", "student.avsc", "--keys", "ID,nope")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "error: --keys: there is no column nope in student.avsc. Its columns are id.\n"


def test_an_empty_statement_needs_no_spark(bench: Bench) -> None:
    bench.write("schemasync.yaml", "registry: {url: 'file:.'}")
    answer = bench("sql", " ")
    assert (answer.code, answer.err) == (2, 'error: "SELECT ...": the statement is empty. Write a query.\n')


def test_doctor_goes_on_without_a_configuration_and_says_what_it_could_not_check(bench: Bench) -> None:
    answer = bench("doctor", "--json")
    states = {check["check"]: check["status"] for check in answer.json["checks"]}
    assert (answer.code, states["config"], states["pyspark"], states["registry"]) == (2, "fail", "ok", "skipped")


def test_doctor_says_what_to_do(bench: Bench) -> None:
    text = bench("doctor").out
    assert "fix: Write one with `schemasync init`" in text
    assert text.endswith("something has to be done\n")


def story(directory: Any, *, environ: Any, say: Any, run: Any) -> None:
    del environ
    (directory).mkdir()
    (directory / "schemasync.yaml").write_text("registry: {url: 'file:.'}")
    (directory / "student.avsc").write_text(STUDENT)
    say("# hello")
    code = run(["ddl", str(directory / "student.avsc"), "--keys", "id", "--kind", "table"])
    say(f"it exited with {code}")


def test_quickstart_runs_the_ordinary_commands_and_shows_what_they_print(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("schemasync.app.quickstart.quickstart", story)
    lines = bench("quickstart", "q").out.splitlines()
    assert (lines[0], lines[1], lines[-1]) == (
        "# hello",
        "CREATE EXTERNAL TABLE `lake`.`student` (",
        "it exited with 0",
    )


def test_quickstart_hands_its_options_to_what_it_runs(bench: Bench, monkeypatch: Any) -> None:
    given: list[Options] = []
    monkeypatch.setattr("schemasync.app.quickstart.quickstart", story)
    monkeypatch.setattr(Call, "answer", lambda call, *_: given.append(call.options))
    bench("--log-format", "json", "-vv", "--wait-timeout", "9", "--json", "quickstart", "q")
    config = bench.root / "q" / "schemasync.yaml"
    assert given[0] == Options(config=config, log_format="json", verbosity=2, wait_s=9.0)


def test_quickstart_with_json_is_one_document_and_the_story_goes_to_stderr(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("schemasync.app.quickstart.quickstart", story)
    answer = bench("--json", "quickstart", "q")
    command = ["ddl", f"{bench.root}/q/student.avsc", "--keys", "id", "--kind", "table"]
    assert answer.json == {
        "directory": f"{bench.root}/q",
        "config": f"{bench.root}/q/schemasync.yaml",
        "commands": [{"command": command, "exit_code": 0}],
    }
    assert answer.err.startswith("# hello\nCREATE EXTERNAL TABLE")
