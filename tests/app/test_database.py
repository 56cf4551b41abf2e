"""The database of a table that is the first in it; run again on a metastore that serves Thrift."""

from __future__ import annotations

import pytest

from schemasync.core.drift import same_place
from schemasync.core.locations import parse_location
from tests.lab import Lab

pytestmark = pytest.mark.spark


def described(lab: Lab) -> dict[str, str]:
    """Let the lab's database come to be with a first table; return what Spark tells of it."""
    lab.register("student", lab.flat("Student", ("n", "int")))
    assert [table.error for table in lab.apply().tables] == [None]
    rows = lab.queried(f"DESCRIBE DATABASE EXTENDED {lab.database}")
    return {row["info_name"]: row["info_value"] for row in rows}


def test_it_lies_where_the_metastore_itself_keeps_databases_and_is_the_users(lab: Lab) -> None:
    told = described(lab)
    warehouse = parse_location(lab.workspace.metastore.setting("hive.metastore.warehouse.dir", "")).path
    assert same_place(told["Location"], f"file:{warehouse}/{lab.database}.db")
    assert told["Owner"] == lab.session.sparkContext.sparkUser()


def test_a_template_of_the_users_own_says_what_it_is(lab: Lab) -> None:
    (lab.root / "templates").mkdir()
    text = f"CREATE DATABASE IF NOT EXISTS {{{{ database }}}} COMMENT 'ours' LOCATION 'file:{lab.root}/there'"
    (lab.root / "templates" / "create_database.sql.j2").write_text(text)
    lab.settings = {"templates": str(lab.root / "templates")}
    told = described(lab)
    assert (told["Comment"], told["Location"]) == ("ours", f"file:{lab.root}/there")
