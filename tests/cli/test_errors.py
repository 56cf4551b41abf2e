"""Bad input and bad luck: one clear line on stderr, the promised exit code, one document with --json."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from schemasync.app.inspecting import require_known
from schemasync.cli import program
from schemasync.cli.context import SessionOpener
from schemasync.core.config import Config
from schemasync.errors import MetastoreBusyError, StorageError, UsageError
from tests.cli.bench import Bench
from tests.io.http_registry_server import HANG_UP, HTML, Canned, RegistryServer, error
from tests.twins.registry import MemoryRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def failing(problem: BaseException) -> SessionOpener:
    def opener(*_: object, **__: object) -> AbstractContextManager[SparkSession]:
        raise problem

    return opener


@pytest.fixture
def configured(bench: Bench) -> Bench:
    bench.write("schemasync.yaml", "registry: {url: 'file:.'}\n")
    return bench


def test_an_unknown_configuration_key_names_its_place_and_the_nearest_key(bench: Bench) -> None:
    bench.write("schemasync.yaml", "registry: {url: 'file:.'}\ndefaults: {databse: lake}\n")
    answer = bench("plan")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {bench.root}/schemasync.yaml: defaults.databse: is not a known key.")
    assert "Did you mean defaults.database?" in answer.err


def test_a_setting_that_is_not_read_is_told_by_every_command_and_stops_none(bench: Bench) -> None:
    bench.write("registry/a-value/1.avsc", '{"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}')
    more = "metastore: {kind: embedded, uri: 'thrift://hms:9083'}\n"
    bench.write("schemasync.yaml", f"registry: {{url: 'file:registry'}}\n{more}")
    answer = bench("ddl", "a", "--kind", "table", "--json")
    assert (answer.code, answer.json["subject"]) == (0, "a-value")
    assert answer.err.startswith(f"{bench.root}/schemasync.yaml: metastore.uri is not read: kind is embedded")


def test_a_template_that_nothing_uses_is_told_by_every_command_and_stops_none(bench: Bench) -> None:
    bench.write("registry/a-value/1.avsc", '{"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}')
    bench.write("schemasync.yaml", "registry: {url: 'file:registry'}\ntemplates: mine\n")
    bench.write("mine/tabel.sql.j2", "CREATE TABLE {{ table }}")
    answer = bench("ddl", "a", "--kind", "table", "--json")
    assert (answer.code, answer.json["subject"]) == (0, "a-value")
    assert answer.err.startswith(f"{bench.root}/schemasync.yaml: templates: tabel.sql.j2 is not used: ")
    assert "Did you mean table.sql.j2?" in answer.err


def test_a_folder_of_templates_that_is_not_there_is_told_once(bench: Bench) -> None:
    bench.write("registry/a-value/1.avsc", '{"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}')
    bench.write("schemasync.yaml", "registry: {url: 'file:registry'}\ntemplates: mine\n")
    answer = bench("ddl", "a")
    assert (answer.code, answer.err.count("there is no such folder")) == (2, 1)


def test_a_missing_configuration_says_what_to_do(bench: Bench) -> None:
    parts = bench("status", "--json").json["error"]
    assert parts == {
        "what": "there is no such configuration file",
        "where": f"{bench.root}/schemasync.yaml",
        "why": "",
        "fix": "Write one with `schemasync init`, or name yours with --config FILE or $SCHEMASYNC_CONFIG.",
        "type": "UsageError",
    }


@pytest.mark.parametrize(
    ("canned", "words"),
    [
        (error(401, 401, "Unauthorized"), "401"),
        (HTML, "HTML"),
        (HANG_UP, "no usable answer"),
        (Canned(status=503, body="busy"), "503"),
    ],
)
def test_a_registry_that_does_not_answer_as_it_should_is_one_error(bench: Bench, canned: Canned, words: str) -> None:
    with RegistryServer() as server:
        server.always = canned
        bench.write("schemasync.yaml", f"registry: {{url: '{server.url}', retries: 0}}\n")
        answer = bench("ddl", "student")
    assert (answer.code, answer.out, answer.err.count("error: ")) == (1, "", 1)
    assert words.lower() in answer.err.lower()


def test_a_metastore_that_another_process_holds_exits_with_1_and_names_the_holder(configured: Bench) -> None:
    configured.open_session = failing(MetastoreBusyError("it serves one process", why="held by process 7"))
    answer = configured("plan")
    assert (answer.code, answer.err) == (1, "error: it serves one process: held by process 7\n")


def test_an_unexpected_error_is_one_line_and_a_hint(configured: Bench) -> None:
    configured.open_session = failing(RuntimeError("lost\nin space"))
    answer = configured("plan")
    assert (answer.code, answer.out, answer.err) == (
        1,
        "",
        "error: RuntimeError: lost. This should not happen; run again with -v for the traceback.\n",
    )


def test_v_shows_the_traceback_without_secrets(configured: Bench) -> None:
    configured.open_session = failing(RuntimeError("password=tiger"))
    answer = configured("-v", "plan")
    assert ("Traceback (most recent call last)" in answer.err, "tiger" in answer.err) == (True, False)


SECRET = StorageError("password=tiger", where="s3a://u:tiger@b", why="AccountKey=tiger;", fix="token=tiger")


def test_the_document_of_an_error_has_no_secret(configured: Bench) -> None:
    configured.open_session = failing(SECRET)
    assert configured("plan", "--json").json["error"] == {
        "what": "password=***",
        "where": "s3a://u:***@b",
        "why": "AccountKey=***;",
        "fix": "token=***",
        "type": "StorageError",
    }


def test_a_check_of_doctor_shows_no_secret(configured: Bench) -> None:
    configured.open_session = failing(SECRET)
    text, document = configured("doctor"), configured("doctor", "--json")
    assert ["tiger" in text.out, "tiger" in document.out, "AccountKey=***" in text.out] == [False, False, True]


def test_an_unexpected_error_with_json_is_one_document(configured: Bench) -> None:
    configured.open_session = failing(RuntimeError("lost"))
    answer = configured("plan", "--json")
    assert (answer.code, answer.json["error"]["what"]) == (1, "RuntimeError: lost")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_working_directory_that_is_gone_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    found = CliRunner().invoke(program, ["status", *options])
    monkeypatch.chdir(tmp_path)
    line = "the working directory cannot be found: No such file or directory. Change to a directory that is there."
    assert (found.exit_code, found.stderr, '"UsageError"' in found.stdout) == (2, f"error: {line}\n", bool(options))


def test_an_interrupt_is_said_and_exits_like_other_programs(configured: Bench) -> None:
    configured.open_session = failing(KeyboardInterrupt())
    answer = configured("plan")
    assert (answer.code, answer.err.strip()) == (130, "error: interrupted")


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), RuntimeError("lost"), StorageError("lost")])
def test_every_error_has_the_keys_that_are_told(configured: Bench, problem: BaseException) -> None:
    configured.open_session = failing(problem)
    assert list(configured("plan", "--json").json["error"]) == ["what", "where", "why", "fix", "type"]


def test_with_json_logs_every_line_on_stderr_is_a_record(configured: Bench) -> None:
    configured.open_session = failing(RuntimeError("lost"))
    answer = configured("plan", "--log-format", "json")
    records = [json.loads(line) for line in answer.err.splitlines()]
    assert [(r["level"], r["message"].split(".")[0]) for r in records] == [("ERROR", "RuntimeError: lost")]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tables": [{}], "fingerprint": "x"}', '{"tables": 3, "fingerprint": ""}']
)
def test_a_file_that_is_no_plan_is_refused(configured: Bench, text: str) -> None:
    configured.write("p.json", text)
    answer = configured("apply", "--plan", "p.json")
    assert (answer.code, "this is not a plan" in answer.err) == (2, True)


@pytest.mark.parametrize(
    "more", [("nosuch.avsc",), ("s.avsc", "--key", "k.avsc"), ("s.avsc", "--reference", "T=t.avsc")]
)
def test_a_schema_file_that_is_not_there_is_said_before_spark_starts(configured: Bench, more: tuple[str, ...]) -> None:
    configured.write("s.avsc", "{}")
    answer = configured("check", *more, "--subject", "student-value")
    assert (answer.code, "the schema file cannot be read: No such file" in answer.err) == (2, True)


def test_a_kept_plan_and_tables_exclude_each_other(configured: Bench) -> None:
    answer = configured("apply", "student", "--plan", "p.json")
    assert (answer.code, answer.err) == (
        2,
        "error: --plan: a kept plan says which tables it is for. Leave the tables out.\n",
    )


@pytest.mark.parametrize(
    ("path", "why", "out"),
    [
        ("p.json", "No such file or directory", "{root}/p.json"),
        ("kept/p.json", "No such file or directory", "{root}/kept/p.json"),
        ("nowhere/p.json", "No such file or directory", "plan.json"),
        ("kept", "Is a directory", "plan.json"),
    ],
)
def test_a_plan_that_is_not_there_is_wrong_usage(configured: Bench, path: str, why: str, out: str) -> None:
    (configured.root / "kept").mkdir()
    answer = configured("apply", "--plan", path)
    told = f"the plan cannot be read: {why}. Make one: schemasync plan --out {out.format(root=configured.root)}\n"
    assert (answer.code, answer.err) == (2, f"error: --plan {configured.root}/{path}: {told}")


def test_what_is_no_plan_is_neither_taken_for_one_nor_advised_nor_written_over(configured: Bench) -> None:
    text = (configured.root / "schemasync.yaml").read_text()
    applied = configured("apply", "--plan", "schemasync.yaml")
    assert (applied.code, applied.err.endswith("Make one: schemasync plan --out plan.json\n")) == (2, True)
    planned = configured("plan", "--out", "schemasync.yaml")
    assert (planned.code, planned.err) == (
        2,
        f"error: --out {configured.root}/schemasync.yaml: this file is there and is not a plan, and it is not "
        "overwritten. Name another.\n",
    )
    assert (configured.root / "schemasync.yaml").read_text() == text


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 1), ('{"tables": [], "fin', 1), ('{"tables": [], "problems": []}', 2), ('{"fingerprint": ""}', 2), ("[]", 2)],
)
def test_a_plan_is_written_over_nothing_but_a_plan(configured: Bench, text: str, code: int) -> None:
    """One that was cut off may be, and what another command answered may not."""
    configured.open_session = failing(RuntimeError("no Spark"))
    configured.write("p.json", text)
    assert (configured("plan", "--out", "p.json").code, (configured.root / "p.json").read_text()) == (code, text)


@pytest.mark.parametrize("command", ["plan", "apply", "compact", "vacuum", "status", "history", "release"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("studnet", "there is no table studnet. The tables here: student."),
        ("", "the name of a table is empty. The tables here: student."),
    ],
)
def test_a_name_that_no_table_has_is_refused_before_spark_is_started(
    bench: Bench, command: str, name: str, told: str
) -> None:
    bench.write("schemasync.yaml", "registry: {url: 'file:./registry'}")
    bench.write("registry/student-value/1.avsc", "{}")
    answer = bench(command, name)
    assert (answer.code, answer.err) == (2, f"error: {told}\n")


def test_a_name_that_is_part_of_what_the_metastore_decides_is_refused_by_no_list_of_subjects() -> None:
    """Of two subjects that claim one view the one whose table is there keeps it."""
    config = Config.model_validate(
        {
            "registry": {"url": "file:."},
            "tables": [{"subject": "a-value"}, {"subject": "b-value", "table": "c", "names": {"view": "a_view"}}],
        }
    )
    registry = MemoryRegistry()
    for subject in ("a-value", "b-value"):
        registry.register(subject, "{}")
    for name in ("a", "c", "lake.a", "b-value", "a_view"):
        require_known(registry, config, [name])
    with pytest.raises(UsageError, match="there is no table b"):
        require_known(registry, config, ["a", "bb"])
