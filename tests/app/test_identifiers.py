"""Names that fight with the engines, the metastore and ours, through a table's whole life on real Spark."""

from __future__ import annotations

from typing import Any

import pytest

from schemasync.core.names import WORKING_COLUMNS, Dialect, is_field_name
from schemasync.core.type_strings import parse_type, print_type
from schemasync.core.types import Primitive, Struct, StructField
from tests.lab import DAY, Lab

pytestmark = pytest.mark.spark

TEXT: Any = ["null", "string"]
OURS = ("segment", "__op", "__ts_ms", "__segment", "__schema_version", "__seq1")
WORKING = (*sorted(WORKING_COLUMNS), "schemasync_op")
ENGINES = (
    "select",
    "Order",
    "table",
    "timestamp",
    "row__id",
    "input__file__name",
    "_metadata",
    "t",
    "r",
    "größe",
    "ΟΔΟΣ",
)
NAMES = (*OURS, *WORKING, *ENGINES)
COUNTED = ("n", "count", "rows", "written")
"""What somebody who counts rows may call that."""
BY_SQL = {"kernel": "spark"}


def nested(*fields: str) -> dict[str, Any]:
    record = {"type": "record", "name": "S", "fields": [{"name": f, "type": TEXT, "default": None} for f in fields]}
    return {"type": ["null", record], "default": None}


def fought(lab: Lab) -> list[str]:
    """Plan, apply, compact; return the codes. Whatever is refused fails the test."""
    result = lab.apply()
    compacted = lab.compact()
    assert [t.error for t in result.tables] + [t.failure for t in compacted.tables] == [None, None]
    (again,) = lab.plan().tables
    assert again.steps == ()
    return [d.code for t in result.tables for d in t.plan.diagnostics]


def test_columns_of_all_hostile_names_live_and_evolve(lab: Lab) -> None:
    lab.settings = {"tables": [{"subject": "t-value", "envelope": "flat"}], "defaults": {"view": {"metadata": True}}}
    # Spark 3.5 reads no such name in a struct's type; Spark 4 does, in tables.
    odd = "grosse" if lab.session.version.startswith("3.") else "größe"
    first = [(name, TEXT) for name in NAMES]
    lab.register("t", lab.flat("R", *first, ("s", nested("State", "select", odd)), ("n", "int")))
    values = {name: f"{name} 1" for name in NAMES}
    inner = {"State": "a", "select": "b", odd: "c"}
    lab.land("t", [{"id": 1, "op": "c", "ts_ms": 1, "n": 1, "s": inner, **values}])
    assert fought(lab) == ["SS412"] * 3 + ["SS415"] * (not odd.isascii())
    # Two dropped, one in another case, one struct field in another case, one wider, one new.
    kept = [name for name in NAMES if name not in {"table", "schemasync_was"}]
    second = [("oRDER" if name == "Order" else name, TEXT) for name in kept]
    changed = (("s", nested("state", "select", odd, "order")), ("n", "long"), ("schemasync_keys", TEXT))
    lab.register("t", lab.flat("R", *second, *changed))
    lab.land("t", [{"id": 2, "op": "c", "ts_ms": 2, "n": 2, "oRDER": "x", "s": {"state": "y"}}])
    fought(lab)
    lab.now_ms += 8 * DAY
    lab.compact()
    old, new = lab.rows("t")
    assert {name: old["oRDER" if name == "Order" else name] for name in kept} == {name: values[name] for name in kept}
    assert (old["s"], old["n"]) == ({"state": "a", "select": "b", odd: "c", "order": None}, 1)
    assert (new["oRDER"], new["s"]["state"], new["n"], new["__op"], new["__op__2"]) == ("x", "y", 2, None, "c")
    assert [*old][-4:] == ["schemasync_keys", "__op__2", "__ts_ms__2", "__segment__2"]


def test_keys_of_all_hostile_names_are_folded_by_sql(lab: Lab) -> None:
    lab.settings = {"tables": [{"subject": "t-value", "envelope": "flat"}], "defaults": {"compaction": BY_SQL}}
    keys = (*NAMES, *COUNTED)
    lab.register("t", lab.flat("R", *((name, "long") for name in keys), ("a", TEXT)), key=keys)
    values = {"id": 1, "op": "c", **dict.fromkeys(keys, 7)}
    for turn in (1, 2):
        lab.land("t", [values | {"ts_ms": turn, "a": f"{turn}"}])
        fought(lab)
    assert [row["a"] for row in lab.rows("t")] == ["2"]


def test_a_long_comment_of_emojis_is_stored_at_once(lab: Lab) -> None:
    doc = 'it\'s\n"x" \\ ${env:HOME} ; -- `\0' + "\N{GRINNING FACE}" * 300
    lab.register("t", lab.flat("R", ("a", {"type": TEXT, "doc": doc}), ("b" * 767, {"type": TEXT, "doc": doc})))
    lab.land("t", [{"id": 1, "op": "c", "ts_ms": 1, "a": "v"}])
    assert fought(lab) == ["SS413"]
    view = lab.workspace.metastore.table(lab.database, "t_view")
    assert view is not None
    assert view.columns[1].comment.startswith('it\'s "x" \\ ${env:HOME} ; -- `')
    assert lab.rows("t")[0]["a"] == "v"


def test_a_key_in_another_case_goes_on(lab: Lab) -> None:
    lab.register("t", lab.flat("R", ("Uid", "long"), ("State", TEXT)), key=("Uid",))
    lab.land("t", [{"id": 1, "Uid": 7, "State": "old", "op": "c", "ts_ms": 1}])
    fought(lab)
    lab.register("t", lab.flat("R", ("uid", "long"), ("state", TEXT)), key=None)
    lab.land("t", [{"id": 1, "uid": 7, "state": "new", "op": "u", "ts_ms": 2}])
    assert fought(lab) == ["SS107", "SS107"]
    assert lab.rows("t") == [{"id": 1, "uid": 7, "state": "new"}]


@pytest.mark.parametrize("compaction", [{}, BY_SQL | {"arrow_limit": 0}])
def test_a_lake_lies_in_a_directory_of_any_name(lab: Lab, compaction: dict[str, Any]) -> None:
    """For Spark's readers, not for its tables, ? [ ] and * would name other directories."""
    lab.root = lab.root / "c# 100%41? [x]*"
    lab.settings = {"defaults": {"compaction": compaction}}
    lab.register("t", lab.flat("R", ("a", TEXT)))
    for hour in range(2):
        lab.land("t", [{"id": hour, "a": "x", "op": "c", "ts_ms": 1}], hour=f"202611200{hour}")
        fought(lab)
    (table,) = lab.apply().tables
    assert table.target.location == f"file://{lab.root}/lake/t"
    assert lab.rows("t") == [{"id": 0, "a": "x"}, {"id": 1, "a": "x"}]


def test_a_version_with_a_clash_is_held_under_the_one_before(lab: Lab) -> None:
    lab.register("t", lab.flat("R", ("State", TEXT)))
    lab.land("t", [{"id": 1, "State": "a", "op": "c", "ts_ms": 1}])
    fought(lab)
    lab.register("t", lab.flat("R", ("State", TEXT), ("state", TEXT)))
    (held,) = lab.apply().tables
    assert [(d.code, "fields State and state" in d.message) for d in held.plan.diagnostics] == [("SS410", True)]
    assert lab.rows("t") == [{"id": 1, "State": "a"}]


@pytest.mark.parametrize(
    "name",
    [*NAMES, "名前", "a\N{ARABIC-INDIC DIGIT ONE}", "x²", "Ⅷ", "a-b", "a:b", "a,b", "a<b", "a>b", "a`b", "a;b", "é|"],
)
def test_hives_own_parser_takes_a_struct_field_where_we_do(lab: Lab, name: str) -> None:
    jvm: Any = lab.session._jvm
    text = f"struct<{name}:array<int>>"
    try:
        info = jvm.org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils.getTypeInfoFromTypeString(text)
        taken = [n.lower() for n in info.getAllStructFieldNames()] == [name.lower()]
    except Exception:  # whatever it raises
        taken = False
    assert taken is is_field_name(name)


def test_spark_reads_the_struct_types_that_we_print(lab: Lab) -> None:
    fields = (*NAMES, "a-b", "a.b", "a:b", "a,b", "a<b>", "a`b", "名前")
    printed = Struct(fields=tuple(StructField(name=name, type=Primitive.INT) for name in fields))
    rows = lab.workspace.sql.query(f"SELECT CAST(NULL AS {print_type(printed, Dialect.SPARK)}) AS s, 'x' AS `a``.b c`")
    schema = lab.session.sql(f"SELECT CAST(NULL AS {print_type(printed, Dialect.SPARK)}) AS s").schema
    assert (rows.columns, schema["s"].dataType.fieldNames()) == (("s", "a`.b c"), list(fields))  # type: ignore[attr-defined]
    assert parse_type(print_type(printed, Dialect.SPARK), Dialect.SPARK) == printed
