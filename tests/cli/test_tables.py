"""The commands on real tables: what they answer, and the exit codes along a project's life."""

from __future__ import annotations

import _thread
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from schemasync.core import layering
from schemasync.core.config_values import MB
from tests.cli.bench import Project, event

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])


def test_a_projects_life_in_exit_codes(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    first = [project(*argv).code for argv in (["plan"], ["status"], ["apply"], ["plan"], ["status"])]
    project.register("student", NAME, AGE)
    second = [project(*argv).code for argv in (["plan"], ["status"], ["compact"], ["plan"], ["status"], ["apply"])]
    assert (first, second) == ([3, 3, 0, 0, 0], [3, 3, 0, 0, 0, 0])


def test_the_json_of_plan_has_the_promised_shape(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    document = project("plan", "--json").json
    table = document["tables"][0]
    assert sorted(document) == ["diagnostics", "fingerprint", "problems", "skipped", "tables"]
    assert {**table, "steps": [step["kind"] for step in table["steps"]]} == {
        "table": "student",
        "database": project.database,
        "subject": "student-value",
        "current_version": None,
        "desired_version": 1,
        "verdict": "evolve",
        "changes": [
            {"kind": "add_column", "column": "id", "from": None, "to": "bigint not null"},
            {"kind": "add_column", "column": "name", "from": None, "to": "string"},
        ],
        "diagnostics": [],
        "steps": ["create_database", "create_table", "replace_view", "admit", "record_history"],
        "cost": {"files": 0, "bytes": 0},
        "fingerprint": table["fingerprint"],
    }


def test_the_json_of_compact_has_the_promised_shape(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"), event(2, name="b"), event(2, name="c", op="d", ts_ms=3))
    table = project("compact", "--json").json["tables"][0]
    measured = {key: table[key] for key in ("change_bytes", "bytes_read", "bytes_written", "seconds")}
    assert table == {
        "table": "student",
        "database": project.database,
        "kind": "major",
        "why": None,
        "generation": 1,
        "events": 3,
        "keys": table["keys"],
        "rows": 1,
        "inserted": 1,
        "updated": 0,
        "deleted": 0,
        "shards_rewritten": 1,
        "shards": 1,
        "deltas": 0,
        "rewrite_bytes": 0,
        "held": False,
        "error": None,
        **measured,
    }
    assert min(measured.values()) > 0


def test_what_is_due_is_cleaned_up_when_asked_for(project: Project) -> None:
    project.register("student", NAME)
    for name in "ab":
        project.land("student", event(1, name=name))
        project("compact", "--major")
    project.configure("tables: [{subject: student-value, compaction: {reader_grace: 1ms, vacuum_retention: 1d}}]")
    table = f"{project.database}.student"
    due = project("vacuum", "--dry-run")
    (shown,) = project("vacuum", "--json").json["tables"]
    counted, left = ({"partitions": p, "directories": 0, "files": f} for p, f in ((3, 2), (0, 0)))
    assert (due.code, due.out) == (0, f"{table}  due: 3 partitions, 0 directories, 2 landed files\n")
    assert shown == {"table": "student", "database": project.database, "due": counted, "left": left, "error": None}
    assert project("vacuum").out == f"{table}  nothing is due\n"


def test_the_rows_of_the_base_are_told_also_where_nothing_is_folded_into_it(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"), event(2, name="b"))
    project("compact")
    asked: list[list[str]] = [[], ["--dry-run"], ["--minor"]]
    told = [project("compact", "--json", *options).json["tables"][0]["rows"] for options in asked]
    assert told == [2, 2, 2]


def test_a_dry_run_compacts_nothing(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    project("apply")
    answer = project("compact", "--dry-run", "student")
    assert (answer.code, answer.out.partition(", reading")[0]) == (
        0,
        f"{project.database}.student  would fold 1 event of 1 segment into generation 1",
    )
    written = answer.out.splitlines()[1]
    assert written.startswith("  1 of 1 shard would be written: folding changes writes 0 B of shards anew, leaving")
    told = project("compact", "--dry-run", "--json").json["tables"][0]
    assert (told["kind"], told["shards_rewritten"], told["bytes_written"]) == ("major", 1, 0)
    assert project("status", "--json").json["tables"][0]["generation"] == 0


def test_a_minor_compaction_that_cannot_be_says_why(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    project("apply")
    would, did = (project("compact", "--minor", *more).out for more in (["--dry-run"], []))
    assert "  would be folded although --minor was asked for: there is no base yet" in would.splitlines()
    assert "  folded although --minor was asked for: there is no base yet" in did.splitlines()


def test_changes_are_left_or_folded_as_asked(project: Project) -> None:
    project.register("student", NAME)
    kinds = []
    asked: list[tuple[int, list[str]]] = [(MB, []), (MB, ["--minor"]), (MB, []), (0, []), (0, ["--major"])]
    for number, (cheap, options) in enumerate(asked):
        project.land("student", event(1, name="a", ts_ms=number))
        with patch.object(layering, "CHEAP_BYTES", cheap), patch.object(layering, "WORTH", 0):
            (done,) = project("compact", "--json", *options).json["tables"]
        kinds.append((done["kind"], done["deltas"], done["generation"]))
    assert kinds == [("major", 0, 1), ("minor", 1, 1), ("major", 0, 2), ("minor", 1, 2), ("major", 0, 3)]


def test_a_dry_run_says_what_a_run_does_first_and_whether_the_figures_are_with_it(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    first = project("compact", "--dry-run").out.splitlines()
    assert first[0] == f"{project.database}.student  nothing to fold"
    assert first[1] == "  a run changes the schema first (schemasync plan): these figures are without that"
    assert first[2].endswith(" bytes) not in the table yet: a run takes them in first, these figures are without them")
    assert "a run" not in project("compact").out
    assert "a run" not in project("compact", "--dry-run").out
    project.land("student", event(2, name="b"))
    would = project("compact", "--dry-run")
    assert would.out.startswith(
        f"{project.database}.student  would fold 1 event of 1 segment into generation 2, reading"
    )
    last = would.out.splitlines()[-1]
    assert last.startswith("  1 landed file (")
    assert last.endswith(" bytes) not in the table yet: a run takes them in first, these figures are with 1 of them")
    assert would.err.splitlines()[-1] == "student: trying: admitting 1 landed file"


def test_apply_says_what_it_did(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    assert project("apply").out == (
        f"{project.database}.student  ok  version 1\n"
        "  create database: tables need it; kept where it exists\n"
        "  create table: student-value version 1 has no table yet\n"
        "  replace view: the view does not exist yet\n"
        "  record history: student_history will say what became of the columns up to version 1\n"
        "  admitted 1 event from 1 file\n"
        "1 table: 0 failed, 0 held\n"
    )


def test_progress_goes_to_stderr(project: Project) -> None:
    project.register("student", NAME)
    err = project("apply").err.splitlines()
    assert err[:2] == ["starting Spark", "student: create database: tables need it; kept where it exists"]


def test_sql_reads_the_tables_database_by_default(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"), event(2))
    project("apply")
    answer = project("sql", "--json", "SELECT * FROM student_view ORDER BY id")
    assert answer.json == {"columns": ["id", "name"], "rows": [[1, "a"], [2, None]]}


def test_sql_refuses_to_change_anything(project: Project) -> None:
    project.register("student", NAME)
    project("apply")
    answer = project("sql", "DROP TABLE student")
    assert (answer.code, project("sql", "SELECT 1 FROM student").code) == (2, 0)


def test_a_kept_plan_is_applied_as_it_was_seen(project: Project) -> None:
    project.register("student", NAME)
    project.register("course", NAME)
    codes = [project(*argv).code for argv in (["plan", "student", "--out", "p"], ["apply", "--plan", "p"])]
    left = [t["table"] for t in project("plan", "--json").json["tables"] if t["verdict"] == "evolve"]
    assert (codes, left) == ([3, 0], ["course"])


def test_a_kept_plan_of_one_table_leaves_the_one_of_its_name_in_another_database_alone(project: Project) -> None:
    other = f"{project.database}_other"
    for topic in ("student", "pupil"):
        project.register(topic, NAME)
    entries = [{"subject": "student-value"}, {"subject": "pupil-value", "table": "student", "database": other}]
    project.configure(f"tables: {json.dumps(entries)}")
    commands = ["plan", f"{other}.student", "--out", "p"], ["apply", "--plan", "p"], ["plan", "--out", "p"]
    codes = [project(*argv).code for argv in (*commands, ["apply", "--plan", "p"])]
    assert (codes, project("plan").code) == ([3, 0, 3, 0], 0)


def test_a_kept_plan_is_refused_when_the_registry_has_moved(project: Project) -> None:
    project.register("student", NAME)
    project("plan", "--out", "p")
    project.register("student", NAME, AGE)
    answer = project("apply", "--plan", "p")
    assert (answer.code, "what the plan saw has moved" in answer.err) == (1, True)
    assert project("status", "--json").json["tables"][0]["current_version"] is None


def test_two_entries_that_claim_one_table_are_wrong_configuration_and_others_go_on(project: Project) -> None:
    for topic in ("student", "pupil", "course"):
        project.register(topic, NAME)
    entries = [{"subject": f"{topic}-value", "table": "student"} for topic in ("student", "pupil")]
    project.configure(f"tables: {json.dumps([*entries, {'subject': 'course-value'}])}")
    for argv in (("apply",), ("release", "course")):
        answer = project(*argv)
        assert (answer.code, f"{project.database}.student is claimed 2 times" in answer.err) == (2, True)
    assert project("sql", "SELECT * FROM course_view").code == 0


def test_a_table_that_is_not_ours_is_held_and_never_touched(project: Project) -> None:
    project.register("student", NAME)
    session = project.lab.session
    session.sql(f"CREATE DATABASE {project.database}")
    session.sql(f"CREATE TABLE {project.database}.student (mine INT) STORED AS PARQUET")
    codes = [project(command).code for command in ("plan", "apply", "compact")]
    assert (codes, project("sql", "SELECT mine FROM student").code) == ([4, 4, 4], 0)


def test_a_location_that_cannot_be_written_fails_that_table_and_others_go_on(project: Project) -> None:
    project.write("lake/file", "a regular file stands in the way")
    project.register("student", NAME)
    project.register("course", NAME)
    project.configure("tables: [{subject: student-value, location: ./lake/file/student}, {subject: course-value}]")
    answer = project("apply", "--json")
    errors = {table["table"]: table["error"] for table in answer.json["tables"]}
    assert (answer.code, errors["course"]) == (1, None)
    assert f"{project.root}/lake/file/student" in errors["student"]


def test_a_corrupt_file_holds_its_table_by_name_and_others_go_on(project: Project) -> None:
    for topic in ("student", "course"):
        project.register(topic, NAME)
        project.land(topic, event(1, name="a"))
    project.write("lake/student/incremental/increment_2026112000/bad.parquet", "PAR1 this is none PAR1")
    os.utime(project.root / "lake/student/incremental/increment_2026112000/bad.parquet", (1, 1))
    answer = project("apply")
    assert (answer.code, "bad.parquet" in answer.out) == (4, True)
    assert project("sql", "--json", "SELECT count(*) AS n FROM course_view").json["rows"] == [[1]]


def test_an_unknown_table_is_wrong_usage(project: Project) -> None:
    project.register("student", NAME)
    answer = project("plan", "studnet")
    assert (answer.code, "there is no table studnet" in answer.err) == (2, True)


def test_status_shows_drift_by_hand_and_exits_with_3(project: Project) -> None:
    project.register("student", NAME)
    project("apply")
    project.lab.session.sql(f"DROP VIEW {project.database}.student_view")
    answer = project("status")
    assert answer.code == 3
    assert f"drift      SS203: {project.database}.student_view is missing, or its text is not" in answer.out


def test_the_text_of_status_tells_what_waits(project: Project) -> None:
    project.register("student", NAME)
    project("apply")
    project.land("student", event(1, name="a"), hour="2026112007")
    answer = project("status")
    assert (answer.code, "pending    1 file, " in answer.out, "the oldest of hour 2026112007" in answer.out) == (
        0,
        True,
        True,
    )


def test_watch_once_applies_and_tells_of_the_change_as_a_line_of_json(project: Project) -> None:
    project.register("student", NAME)
    answer = project("watch", "--once")
    event_ = json.loads(answer.out.splitlines()[0])
    assert (answer.code, event_["type"], event_["data"]["table"]) == (0, "io.schemasync.schema.created", "student")


def test_watch_once_with_json_is_one_document(project: Project) -> None:
    project.register("student", NAME)
    answer = project("watch", "--once", "--json")
    assert (answer.code, [t["table"] for t in answer.json["tables"]]) == (0, ["student"])


def test_watch_ends_with_0_on_sigterm_and_puts_the_handlers_back(project: Project) -> None:
    project.register("student", NAME)
    before = signal.getsignal(signal.SIGTERM)

    def terminate() -> None:
        # Not before the watcher handles it: it would end the tests.
        for _ in range(600):
            if signal.getsignal(signal.SIGTERM) != before:
                return os.kill(os.getpid(), signal.SIGTERM)
            if ended.wait(0.1):
                return None
        return _thread.interrupt_main()

    ended, terminating = threading.Event(), threading.Thread(target=terminate)
    terminating.start()
    answer = project("watch")
    ended.set()
    terminating.join()
    assert (answer.code, signal.getsignal(signal.SIGTERM)) == (0, before)


def test_doctor_finds_a_sound_project_sound(project: Project) -> None:
    project.register("student", NAME)
    answer = project("doctor", "--json")
    wrong: list[Any] = [check for check in answer.json["checks"] if check["status"] != "ok"]
    assert (answer.code, wrong) == (0, [])


def test_nothing_is_written_by_plan_status_sql_and_doctor(project: Project) -> None:
    project.register("student", NAME)
    project.land("student", event(1, name="a"))
    project("apply")
    before = contents(project.root)
    for argv in (["plan"], ["status"], ["sql", "SELECT * FROM student_view"], ["doctor"]):
        project(*argv)
    assert contents(project.root) == before


def contents(root: Path) -> dict[str, int]:
    found = (path for path in root.rglob("*") if path.is_file() and ".schemasync" not in path.parts)
    return {str(path): path.stat().st_mtime_ns for path in found}
