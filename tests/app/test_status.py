"""How a table stands, as values; looking changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from schemasync.app.status import Status, status
from tests.lab import HOUR, START, Lab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

NAME = ("name", ["null", "string"])


def looked(lab: Lab, *tables: str) -> Status:
    return status(lab.workspace, tables)


def only(lab: Lab) -> dict[str, Any]:
    (table,) = looked(lab).to_json()["tables"]
    assert isinstance(table, dict)
    return table


def event(number: int, **values: Any) -> dict[str, Any]:
    return {"id": number, "op": "c", "ts_ms": number} | values


def test_a_table_that_is_not_there_yet_is_drift(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    table = only(lab)
    assert (table["current_version"], table["state"], table["generation"]) == (None, None, None)
    assert table["drift"] == ["the registry is at version 1, and no table shows it"]


def test_the_json_of_a_table_has_its_shape(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.land("student", [event(1, name="a"), event(2)])
    lab.compact()
    lab.land("student", [event(3)])
    lab.apply()
    waiting = lab.land("student", [event(4)], hour="2026112005")
    table = only(lab)
    sizes = table["segments"]
    assert table == {
        "table": "student",
        "database": lab.database,
        "subject": "student-value",
        "current_version": 1,
        "desired_version": 1,
        "verdict": "none",
        "held": False,
        "drift": [],
        "hold": None,
        "state": "000001-0001",
        "generation": 1,
        "segments": {
            "base": {"segments": 1, "rows": 2, "bytes": sizes["base"]["bytes"]},
            "delta": {"segments": 1, "rows": 1, "bytes": sizes["delta"]["bytes"]},
        },
        "pending": {"files": 1, "bytes": waiting.stat().st_size, "oldest_hour": "2026112005", "waiting": 0},
        "lag": {"versions": 0, "seconds": table["lag"]["seconds"]},
        "to_retire": {"partitions": 0, "directories": 0, "files": 0},
        "diagnostics": [],
    }


def test_what_is_due_for_retirement_is_counted(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.land("student", [event(1)])
    lab.compact()
    lab.now_ms = START + 2 * HOUR
    assert only(lab)["to_retire"] == {"partitions": 1, "directories": 0, "files": 1}


def test_lag_is_the_age_of_the_oldest_waiting_file_in_seconds(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.apply()
    written = lab.land("student", [event(1)]).stat().st_mtime_ns // 1_000_000
    lab.now_ms = written + 90_000
    assert only(lab)["lag"] == {"versions": 0, "seconds": 90.0}


def test_a_held_change_is_told_and_its_files_wait(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", ("age", "string")))
    lab.apply()
    lab.register("student", lab.flat("Student", ("age", {"type": {"type": "array", "items": "int"}})))
    lab.land("student", [event(1, age=[7])])
    table = only(lab)
    assert (table["held"], table["verdict"], table["pending"]["waiting"], table["lag"]["versions"]) == (
        True,
        "hold",
        1,
        1,
    )
    assert [d["code"] for d in table["diagnostics"]] == ["SS120", "SS304"]
    assert table["hold"] == {"since": None, "release": None}
    assert table["drift"] == ["the registry is at version 2, the table at 1"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DROP VIEW {0}.student_view", "SS203"),
        ("ALTER VIEW {0}.student_view AS SELECT 1 AS x", "SS203"),
        ("ALTER TABLE {0}.student ADD COLUMNS (mine INT)", "SS205"),
    ],
)
def test_what_someone_changed_by_hand_is_drift(lab: Lab, statement: str, code: str) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.apply()
    lab.session.sql(statement.format(lab.database))
    drift = only(lab)["drift"]
    assert [sentence.partition(":")[0] for sentence in drift] == [code]


def test_looking_writes_nothing(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.land("student", [event(1)])
    files = sorted(lab.root.rglob("*"))
    looked(lab)
    assert (sorted(lab.root.rglob("*")), lab.workspace.metastore.table(lab.database, "student")) == (files, None)


def test_named_tables_only(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.register("course", lab.flat("Course", NAME))
    assert [table.target.table for table in looked(lab, "course").tables] == ["course"]


def test_a_data_file_that_is_gone_is_named(lab: Lab) -> None:
    lab.register("student", lab.flat("Student", NAME))
    lab.land("student", [event(1)])
    lab.compact()
    (data,) = (lab.root / "lake" / "student" / "base").rglob("*.parquet")
    data.unlink()
    (finding,) = only(lab)["diagnostics"]
    assert finding["code"] == "SS306"
    assert data.name in finding["message"]
