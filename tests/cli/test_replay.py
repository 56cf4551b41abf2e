"""plan --replay: the registry is enough, and no Spark may start."""

from __future__ import annotations

import json

import pytest

from tests.cli.bench import Bench

AGE = {"name": "age", "type": ["null", "int"]}
TEXT = {"name": "age", "type": ["null", "string"]}
BIG = {"name": "age", "type": ["null", "long"]}


@pytest.fixture
def past(bench: Bench) -> Bench:
    """Three versions of student: made, retyped with loss, widened instead; one of course."""
    for number, column in enumerate((AGE, TEXT, BIG), start=1):
        bench.write(f"registry/student-value/{number}.avsc", schema(column))
    bench.write("registry/course-value/1.avsc", schema(AGE))
    for topic in ("student", "course"):
        bench.write(f"registry/{topic}-key/1.avsc", schema())
    bench.write("schemasync.yaml", "registry: {url: 'file:./registry'}\ndefaults: {policies: {widen: evolve}}")
    return bench


def schema(*columns: object) -> str:
    fields = [{"name": "id", "type": "long"}, *columns]
    fields += [{"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}] if columns else []
    return json.dumps({"type": "record", "name": "Row", "fields": fields})


def test_a_replay_needs_no_spark_and_tells_every_version(past: Bench) -> None:
    answer = past("plan", "--replay", "--json")
    timelines = {
        table["subject"]: [(m["from_version"], m["to_version"]) for m in table["timeline"]]
        for table in answer.json["tables"]
    }
    assert timelines["course-value"] == [(None, 1)]
    assert [after for _, after in timelines["student-value"]] == [1, 2, 3]
    assert not (past.root / ".schemasync").exists()


def test_a_policy_is_tried_on_the_past_by_exit_code(past: Bench) -> None:
    codes = [past("plan", "--replay", "course").code]
    past.write("schemasync.yaml", "registry: {url: 'file:./registry'}\ndefaults: {policies: {widen: hold}}")
    past.write("registry/course-value/2.avsc", schema(BIG))
    codes.append(past("plan", "--replay", "course").code)
    assert codes == [0, 4]


def test_the_text_of_a_replay_is_a_timeline(past: Bench) -> None:
    assert past("plan", "course", "--replay").out == (
        "lake.course  course-value\n"
        "new, version 1  evolve\n"
        "  + add column id  bigint not null\n"
        "  + add column age  int\n"
        "\n"
        "1 table, 1 version: 0 held\n"
    )


def test_a_registry_with_no_subject_for_us_is_told_as_logs_are(bench: Bench) -> None:
    bench.write("registry/student-value/1.avsc", schema(AGE))
    bench.write("schemasync.yaml", "registry: {url: 'file:./registry'}\ntables: [{subject: 'shop[.].+'}]")
    answer = bench("plan", "--replay", "--log-format", "json")
    told = json.loads(answer.err)
    assert (answer.code, told["level"], " has no subjects for us. " in told["message"]) == (0, "WARNING", True)


def test_a_replay_cannot_be_kept_for_apply(past: Bench) -> None:
    answer = past("plan", "--replay", "--out", "p")
    assert (answer.code, "a replay is nothing that apply could do" in answer.err) == (2, True)


def test_an_unknown_table_is_wrong_usage(past: Bench) -> None:
    assert past("plan", "--replay", "studnet").code == 2
