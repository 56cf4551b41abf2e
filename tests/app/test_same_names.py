"""Two databases may have a table of one name: each is told, kept in plans, released and announced as itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemasync.app.applying import Applied, ApplyResult
from schemasync.app.compacting import Compacted, CompactResult
from schemasync.app.history import history
from schemasync.app.inspecting import map_tables, select
from schemasync.app.opening import open_lake
from schemasync.app.plan_file import read_plan, write_plan
from schemasync.app.releasing import release
from schemasync.app.replaying import replay
from schemasync.app.status import status
from schemasync.core.release import Release
from schemasync.errors import UsageError
from tests.app.still import Still, avro


@pytest.fixture
def orders(tmp_path: Path) -> Still:
    """Return a table ``orders`` in the databases ``a`` and ``b``, and one that is called like no other."""
    entries = [{"subject": f"{name}-value", "table": "orders", "database": name} for name in ("a", "b")]
    defaults = {"policies": {"add": "hold"}}
    still = Still(tmp_path, tables=[*entries, {"subject": "student-value"}], defaults=defaults)
    for topic in ("a", "b", "student"):
        still.register(avro(), topic=topic)
    return still


def test_a_kept_plan_knows_the_database_of_each_table(orders: Still) -> None:
    planned = orders.plan()
    (orders.root / "plan.json").write_text('{\n  "tables": [{"cut off')
    write_plan(planned, orders.root / "plan.json")
    names = ["a.orders", "b.orders", "lake.student"]
    assert read_plan(orders.root / "plan.json") == {
        name: table.fingerprint for name, table in zip(names, planned.tables, strict=True)
    }


def test_a_plan_that_an_earlier_release_kept_is_refused(orders: Still) -> None:
    file = orders.root / "plan.json"
    write_plan(orders.plan(), file)
    document = json.loads(file.read_text())
    for table in document["tables"]:
        del table["database"]
    file.write_text(json.dumps(document))
    with pytest.raises(UsageError) as refused:
        read_plan(file)
    assert str(refused.value) == (
        f"--plan {file}: this plan was made by an earlier release: it does not say in which database its tables are. "
        "Make one: schemasync plan --out plan.json"
    )


def test_a_name_that_two_tables_have_cannot_be_released(orders: Still) -> None:
    with pytest.raises(UsageError, match=r"there are several tables orders. Name one of them: a.orders, b.orders."):
        release(orders.workspace, "orders", Release())


def test_a_hold_names_the_table_to_release_so_that_no_other_one_is_meant(orders: Still) -> None:
    orders.settle()
    for topic in ("a", "b", "student"):
        orders.register(avro(("name", ["null", "string"])), topic=topic)
    holds = [table.hold for table in status(orders.workspace).tables]
    assert [hold and hold.release for hold in holds] == [
        "schemasync release a.orders",
        "schemasync release b.orders",
        "schemasync release student",
    ]


def test_every_answer_says_in_which_database_each_table_is(orders: Still) -> None:
    planned = orders.plan()
    told = [
        planned.to_json(),
        status(orders.workspace).to_json(),
        replay(orders.registry, orders.config, open_lake=open_lake).to_json(),
        ApplyResult(tables=tuple(Applied(plan=table) for table in planned.tables)).to_json(),
    ]
    compacted = (Compacted(target=table.target, applied=Applied(plan=table)) for table in planned.tables)
    told += [CompactResult(tables=tuple(compacted)).to_json()]
    names = [[(table["table"], table["database"]) for table in document["tables"]] for document in told]
    assert names == [[("orders", "a"), ("orders", "b"), ("student", "lake")]] * 5
    pasts = [history(orders.workspace, name).to_json() for name in ("a.orders", "b.orders")]
    assert [(past["table"], past["database"]) for past in pasts] == [("orders", "a"), ("orders", "b")]


def test_the_tables_to_choose_from_are_told_apart(orders: Still) -> None:
    with pytest.raises(UsageError, match=r"The tables here: a.orders, b.orders, student."):
        select(map_tables(orders.workspace), ["order"])
