"""User partitions: where rows lie, what queries read of them, and what may not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemasync.core.policy import Verdict
from tests.lab import ALL_ROWS, HOUR, Lab, event
from tests.naming import WAYS, naming

pytestmark = pytest.mark.spark

TOPIC, TABLE = "shop.student", "shop_student"
SUBJECT = f"{TOPIC}-value"


def partitioned(lab: Lab, by: dict[str, str], columns: list[tuple[str, Any]], **settings: Any) -> None:
    lab.settings = {
        "defaults": {"compaction": {"on_fold": "keep"} | settings},
        "tables": [{"subject": SUBJECT, "partition_by": by}],
    }
    lab.register(TOPIC, lab.flat("S", *columns))


def shown(lab: Lab, where: str = "true") -> list[tuple[Any, ...]]:
    query = f"SELECT * FROM {lab.database}.{TABLE}_view WHERE {where} ORDER BY id LIMIT {ALL_ROWS}"
    return list(lab.workspace.sql.query(query).rows)


def partitions(lab: Lab) -> set[str]:
    return {name.partition("/")[2] for name in lab.workspace.metastore.partitions(lab.database, TABLE)}


def done(lab: Lab) -> None:
    (table,) = lab.compact().tables
    assert (table.failure, table.applied.held) == (None, False), table.applied.diagnostics


@pytest.mark.parametrize("kernel", ["arrow", "spark"])
@pytest.mark.parametrize("arrow_limit", [pytest.param("256MB", marks=pytest.mark.one_spark), "0B"])
def test_rows_lie_where_their_values_say_and_move_with_them(lab: Lab, kernel: str, arrow_limit: str) -> None:
    columns = [("born", ["null", "string"]), ("n", "int")]
    by = {"birth_year": "year(to_date(born, 'MM/dd/yyyy'))", "letter": "left(born, 1)"}
    partitioned(lab, by, columns, kernel=kernel, arrow_limit=arrow_limit)
    lab.land(TOPIC, [event(1, 1, born="02/03/2020", n=1), event(2, 1, born="12/31/2021", n=2), event(3, 1, n=3)])
    done(lab)
    rows = [(1, "02/03/2020", 1, 2020, "0"), (2, "12/31/2021", 2, 2021, "1"), (3, None, 3, None, None)]
    assert shown(lab) == rows
    nothing = "__HIVE_DEFAULT_PARTITION__"
    first = {"birth_year=2020/letter=0", "birth_year=2021/letter=1", f"birth_year={nothing}/letter={nothing}"}
    assert partitions(lab) == first
    # 2 moves to another partition; its old row shows nowhere, before and after the next compaction.
    # What comes late of 1 neither shows nor is anything left of its partition.
    late = event(1, 0, born="12/31/2021", n=100)
    lab.land(TOPIC, [event(2, 2, born="02/03/2020", n=20), event(3, 2, op="d", n=0), late], hour="2026112001")
    lab.apply()
    after = [rows[0], (2, "02/03/2020", 20, 2020, "0")]
    for _ in range(2):
        assert (shown(lab), shown(lab, "birth_year = 2021"), shown(lab, "birth_year = 2020")) == (after, [], after)
        lab.now_ms += 2 * HOUR
        done(lab)
    assert shown(lab, "letter = '0' AND n > 1") == after[1:]


@pytest.mark.parametrize(("kernel", "arrow_limit"), [("spark", "256MB"), ("arrow", "0B")], ids=["fold", "admission"])
@pytest.mark.parametrize("more", [pytest.param({}, marks=pytest.mark.one_spark), {"third": "pmod(id, 3)"}])
def test_rows_without_a_partition_lie_in_one_order(
    lab: Lab, kernel: str, arrow_limit: str, more: dict[str, str]
) -> None:
    """Empty texts, and Hive's name for no value, have its directory: Spark would write it twice, or out of order."""
    partitioned(lab, {"letter": "c"} | more, [("c", ["null", "string"])], kernel=kernel, arrow_limit=arrow_limit)
    values = ["", None, "x", "__HIVE_DEFAULT_PARTITION__"] * 3
    lab.land(TOPIC, [event(key, 1, c=value) for key, value in enumerate(values)])
    done(lab)
    lab.land(TOPIC, [event(key, 2, c=value) for key, value in enumerate(reversed(values))], hour="2026112001")
    lab.apply()
    placed = {file: pq.read_table(file, partitioning=None)["id"].to_pylist() for file in written(lab)}
    assert [len(placed) > 3, {str(file): keys for file, keys in placed.items() if keys != sorted(keys)}] == [True, {}]
    assert [row[1] for row in shown(lab)] == values[::-1]


def written(lab: Lab) -> list[Path]:
    found = lab.workspace.metastore.partitions(lab.database, TABLE).values()
    return [file for place in found for file in Path(place.removeprefix("file:")).glob("*.parquet")]


@pytest.mark.parametrize("way", WAYS)
def test_queries_read_only_the_partitions_that_they_ask_for(lab: Lab, way: str) -> None:
    partitioned(lab, {"bucket": "pmod(id, 4)"}, [("n", "int")])
    lab.land(TOPIC, [event(key, 1, n=key) for key in range(40)])
    done(lab)
    lab.land(TOPIC, [event(key, 2, n=-key) for key in range(10)], hour="2026112001")
    with naming(way):
        lab.apply()
    view = lab.session.table(f"{lab.database}.{TABLE}_view").where("bucket = 3")
    assert sorted(row.id for row in view.collect()) == list(range(3, 40, 4))
    files = {path.rpartition("/bucket=")[2][:1] for path in view.inputFiles() if path.endswith(".parquet")}
    # To join them, all keys of the changes are asked for.
    assert files == ({"0", "1", "2", "3"} if way == "joined" else {"3"})
    base = [path for path in view.inputFiles() if "/base/" in path]
    assert len(base) == 1
    assert "/bucket=3/" in base[0]


def test_a_table_without_keys_has_partitions_too(lab: Lab) -> None:
    partitioned(lab, {"day": "to_date(ts, 'yyyyMMdd')"}, [("ts", "string")])
    lab.settings["tables"][0]["insert_only"] = True
    for hour, text in enumerate(["20240229", "20230229", "20240301"]):
        lab.land(TOPIC, [event(1, 1, ts=text)], hour=f"202611200{hour}")
        done(lab)
    found = lab.workspace.sql.query(f"SELECT ts, CAST(day AS STRING) FROM {lab.database}.{TABLE}_view ORDER BY ts").rows
    assert list(found) == [("20230229", None), ("20240229", "2024-02-29"), ("20240301", "2024-03-01")]


@pytest.mark.parametrize(
    ("by", "code"),
    [
        ({"bucket": "pmod(id, 8)"}, "SS417"),
        ({}, "SS417"),
        ({"other": "pmod(id, 4)"}, "SS417"),
        ({"bucket": "pmod(id, 4)", "n_": "n"}, "SS417"),
        ({"bucket": "pmod(gone, 4)"}, "SS416"),
        ({"n": "pmod(id, 4)"}, "SS416"),
        ({"bucket": "left(id, 4)"}, "SS416"),
    ],
    ids=str,
)
def test_other_partitions_are_held_and_the_view_goes_on(lab: Lab, by: dict[str, str], code: str) -> None:
    partitioned(lab, {"bucket": "pmod(id, 4)"}, [("n", "int")])
    lab.land(TOPIC, [event(7, 1, n=1)])
    done(lab)
    lab.settings["tables"][0]["partition_by"] = by
    lab.land(TOPIC, [event(8, 1, n=2)], hour="2026112001")
    (applied,) = lab.apply().tables
    assert (applied.plan.verdict, code in {d.code for d in applied.diagnostics}) == (Verdict.HOLD, True)
    assert shown(lab) == [(7, 1, 3), (8, 2, 0)]


def test_a_column_may_be_renamed_when_the_expression_follows(lab: Lab) -> None:
    partitioned(lab, {"first": "left(name, 1)"}, [("name", "string")])
    lab.land(TOPIC, [event(1, 1, name="ann")])
    done(lab)
    lab.register(TOPIC, lab.flat("S", ("full_name", {"type": "string", "aliases": ["name"]})))
    (applied,) = lab.apply().tables
    assert applied.plan.verdict is Verdict.HOLD
    lab.settings["tables"][0]["partition_by"] = {"first": "left(full_name, 1)"}
    lab.land(TOPIC, [event(2, 2, full_name="bob")], hour="2026112001")
    done(lab)
    assert shown(lab) == [(1, "ann", "a"), (2, "bob", "b")]
    assert [t.plan.verdict for t in lab.apply().tables] == [Verdict.NONE]


def test_values_that_no_directory_may_have_are_escaped(lab: Lab) -> None:
    partitioned(lab, {"p": "c"}, [("c", "string")])
    texts = ["a/b", "x=y", "100%", "ü ñ", "", "q'\"", "#?*:[]^{}\\"]
    lab.land(TOPIC, [event(n, 1, c=text) for n, text in enumerate(texts)])
    done(lab)
    lab.land(TOPIC, [event(n, 2, c=text) for n, text in enumerate(texts[::-1])], hour="2026112001")
    for _ in range(2):
        done(lab)
        assert shown(lab) == [(n, text, text or None) for n, text in enumerate(texts[::-1])]
    assert shown(lab, "p = 'a/b'") == [(6, "a/b", "a/b")]
    lab.now_ms += 8 * 24 * HOUR
    done(lab)
    assert len(partitions(lab)) == len(texts)
    assert lab.plan().tables[0].verdict is Verdict.NONE


@pytest.mark.parametrize("arrow_limit", ["256MB", "0"])
@pytest.mark.parametrize("text", ["x" * 257, "/" * 90], ids=["a value", "a directory"])
def test_a_value_that_no_metastore_holds_is_refused_before_anybody_sees_it(
    lab: Lab, arrow_limit: str, text: str
) -> None:
    partitioned(lab, {"p": "left(c, 300)"}, [("c", "string")], arrow_limit=arrow_limit)
    lab.land(TOPIC, [event(1, 1, c="a")])
    done(lab)
    lab.land(TOPIC, [event(2, 2, c=text)], hour="2026112001", name="long.parquet")
    (applied,) = lab.apply().tables
    (found,) = [d for d in applied.diagnostics if d.code == "SS303"]
    assert "long.parquet" in found.message
    assert "make a partition that cannot be stored" in found.message
    assert shown(lab) == [(1, "a", "a")]
    assert lab.strangers() == []


def test_a_value_that_was_not_sent_is_looked_up_for_the_partition_too(lab: Lab) -> None:
    partitioned(lab, {"first": "left(big, 1)"}, [("big", "string"), ("n", "int")])
    lab.land(TOPIC, [event(1, 1, op="c", big="abc", n=1)])
    done(lab)
    lab.land(TOPIC, [event(1, 2, big="__debezium_unavailable_value", n=2)], hour="2026112001")
    lab.apply()
    for _ in range(2):
        assert (shown(lab), shown(lab, "first = 'a'")) == ([(1, "abc", 2, "a")], [(1, "abc", 2, "a")])
        done(lab)
