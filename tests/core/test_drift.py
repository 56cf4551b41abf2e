"""Every way in which a metastore can disagree, one change each on a table that is as it was left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemasync.core import ddl, spark_schema
from schemasync.core.drift import PARQUET, Drift, Found, Placed, same_place, same_type, table_drift
from schemasync.core.history import History
from schemasync.core.kept import NOTHING, Kept, kept_of
from schemasync.core.manifest import StateId
from schemasync.core.names import Dialect
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable
from schemasync.core.properties import SUBJECT, TableProperties, write_properties
from schemasync.core.shape import Shape, shape_of
from schemasync.core.view_drift import same_text, view_drift, view_reasons
from tests.core.builders import BIGINT, STRING, col, history, target

ID = col("id", BIGINT, nullable=False)
NAME = col("fullName", STRING, doc="first and last")
HISTORY = history(
    (ID, NAME), (ID, replace(NAME, doc="both names"), col("age")), (ID, replace(NAME, encoding=BIGINT), col("age"))
)
ROOT = "file:/lake/student"
TARGET = target()


def shape(number: int, found: History = HISTORY, **options: Any) -> Shape:
    version = found.at(number)
    assert version is not None
    return shape_of(target(**options), found, version, key=("id",), baseline=1)[0]


V1, V2, V3 = shape(1), shape(2), shape(3)
COLUMNS = tuple(ddl.hive_column(c) for c in ddl.expected_columns(V1))
KEYS = (HiveColumn(name="segment", type="string"),)
PROPERTIES = TableProperties(
    subject=TARGET.subject,
    version=1,
    schema_id=101,
    fingerprint="fp1",
    baseline=1,
    keys=("id",),
    ordering=V1.envelope.ordering,
    columns=V1.columns_hash,
    lives=V1.lives_hash,
    state=StateId(generation=1, admission=0),
)


def hive(columns: tuple[HiveColumn, ...] = COLUMNS, **changes: Any) -> HiveTable:
    properties = spark_schema.rewritten(write_properties(PROPERTIES), columns, KEYS)
    made = HiveTable(
        database="lake",
        name="student",
        kind="EXTERNAL_TABLE",
        columns=columns,
        partition_keys=KEYS,
        location=ROOT,
        properties=properties | changes.pop("properties", {}),
        formats=PARQUET,
    )
    return replace(made, **changes)


BASE = HivePartition(location=f"{ROOT}/base/1", columns=COLUMNS, formats=PARQUET)
CARRIED = tuple(c.name for c in COLUMNS)
PLACED = Placed(root=ROOT, locations={"base": f"{ROOT}/base/1"}, carried={"base": CARRIED})


def looked(**changes: Any) -> Drift:
    found = Found(
        table=hive(),
        partitions={"base": BASE},
        properties=PROPERTIES,
        current=V1,
        effective=V1,
        placed=PLACED,
    )
    return table_drift(replace(found, **changes))


def said(drift: Drift) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in drift.diagnostics]


def retyped(name: str, type_: str) -> tuple[HiveColumn, ...]:
    return tuple(replace(c, type=type_) if c.name == name else c for c in COLUMNS)


def without(name: str) -> tuple[HiveColumn, ...]:
    return tuple(c for c in COLUMNS if c.name != name)


def in_base(**changes: Any) -> dict[str, HivePartition]:
    return {"base": replace(BASE, **changes)}


def test_a_table_as_it_was_left_asks_for_nothing() -> None:
    assert looked() == Drift(wanted=COLUMNS)


def test_columns_of_the_next_version_are_missing_and_no_drift() -> None:
    drift = looked(effective=V2)
    assert (drift.missing, drift.diagnostics, drift.columns) == ((HiveColumn(name="age", type="int"),), (), ())


def test_a_lost_column_comes_back_at_the_end_and_is_none_of_the_missing() -> None:
    drift = looked(table=hive(without("fullname")), partitions=in_base(columns=(*without("fullname"), COLUMNS[1])))
    assert said(drift) == [("SS202", "lake.student lacks fullname")]
    assert (drift.missing, drift.wanted[-1], drift.columns) == (
        (),
        HiveColumn(name="fullname", type="string"),
        ("fullname, which someone dropped",),
    )


def test_a_lost_column_that_only_files_of_earlier_versions_carry_is_missed_too() -> None:
    columns = tuple(ddl.hive_column(c) for c in ddl.expected_columns(V3))
    lost = looked(current=V3, effective=V3, table=hive(columns), partitions={}, properties=PROPERTIES)
    nothing = looked(current=V3, effective=V3, table=hive(columns), partitions={}, placed=None)
    assert [d.message for d in lost.diagnostics if d.code == "SS202"] == ["lake.student lacks fullname"]
    assert [d.message for d in nothing.diagnostics if d.code == "SS202"] == []


def test_a_retyped_column_is_put_back_and_its_comment_and_foreign_columns_stay() -> None:
    mine = HiveColumn(name="mine", type="varchar(3)")
    changed = (replace(COLUMNS[0], comment="who"), replace(COLUMNS[1], type="int"), *COLUMNS[2:], mine)
    drift = looked(table=hive(changed), partitions={})
    assert drift.wanted == (replace(COLUMNS[0], comment="who"), *COLUMNS[1:], mine)
    assert said(drift)[:2] == [
        ("SS204", "lake.student.fullname is int, not string"),
        ("SS205", "lake.student has mine, which schemasync did not add"),
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (retyped("fullname", "int"), "has fullname int where the table has fullname string (column 2)"),
        ((COLUMNS[1], COLUMNS[0], *COLUMNS[2:]), "has fullname string where the table has id bigint (column 1)"),
        ((*COLUMNS, HiveColumn(name="x", type="int")), "has x, which the table lacks"),
        (COLUMNS[:-1], "lacks __tombstone, which its files carry"),
    ],
)
def test_a_partition_is_compared_by_position(columns: tuple[HiveColumn, ...], reason: str) -> None:
    drift = looked(partitions=in_base(columns=columns))
    assert said(drift) == [("SS207", f"lake.student: partition base {reason}")]
    assert drift.columns == ("the columns of 1 partition, which Hive reads by position",)


def test_a_partition_may_end_before_columns_that_its_files_do_not_carry() -> None:
    longer = (*COLUMNS, HiveColumn(name="age", type="int"))
    drift = looked(table=hive(longer), current=V2, effective=V2, properties=replace(PROPERTIES, schema_id=102))
    assert [code for code, _ in said(drift)] == ["SS214"]
    unplaced = looked(partitions=in_base(columns=COLUMNS[:-1]), placed=None)
    assert said(unplaced) == []


def test_of_many_partitions_three_are_named() -> None:
    odd = replace(BASE, columns=COLUMNS[1:])
    drift = looked(partitions={f"s{n}": odd for n in range(5)}, placed=None)
    assert said(drift)[0][1].endswith(" and 2 more")


def test_sparks_copy_is_compared_with_hives_columns() -> None:
    drift = looked(table=hive(properties={spark_schema.PREFIX: "{"}))
    assert said(drift) == [("SS208", "lake.student, spark.sql.sources.schema: it is missing, or parts of it are")]
    assert drift.columns == ("Spark's copy of the schema, which is not what Hive has",)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            {"table": hive(kind="MANAGED_TABLE", properties={"external.table.purge": "true"})},
            "SS211",
            "lake.student is a managed_table: DROP TABLE would delete its data",
        ),
        (
            {"table": hive(properties={"external.table.purge": "TRUE"})},
            "SS211",
            "lake.student has external.table.purge: DROP TABLE would delete its data",
        ),
        (
            {"table": hive(location="file:/else")},
            "SS212",
            "lake.student points to file:/else, its data is in file:/lake/student",
        ),
        (
            {"table": hive(formats=(*PARQUET[:2], "org.x.OrcSerde"))},
            "SS213",
            "lake.student is read by OrcSerde, not as Parquet",
        ),
        (
            {"partitions": in_base(formats=("org.x.OrcInput", *PARQUET[1:]))},
            "SS213",
            "lake.student, base is read by OrcInput, not as Parquet",
        ),
    ],
)
def test_what_the_table_is_has_one_repair(changes: dict[str, Any], code: str, message: str) -> None:
    drift = looked(**changes)
    assert (said(drift), drift.table) == ([(code, message)], (message,))


def test_formats_in_another_order_are_others_too() -> None:
    drift = looked(table=hive(formats=(PARQUET[1], PARQUET[0], PARQUET[2])))
    assert said(drift) == [("SS213", "lake.student is read by MapredParquetOutputFormat, not as Parquet")]


def test_without_a_state_nobody_knows_where_the_data_is() -> None:
    assert said(looked(table=hive(location="file:/else"), partitions={}, placed=None)) == []


def test_partitions_are_those_of_the_state() -> None:
    placed = replace(
        PLACED,
        locations={"base": f"{ROOT}/base/2", **{f"d{n}": f"{ROOT}/{n}" for n in range(5)}},
        passing=frozenset({"old"}),
    )
    drift = looked(placed=placed, partitions={"base": BASE, "old": BASE, "mine": BASE})
    reasons = ("d0, d1, d2... is missing", "base points elsewhere", "mine is none of the state in force")
    assert drift.partitions == reasons
    assert said(drift) == [("SS209", f"lake.student: partition {'; '.join(reasons)}")]


def test_properties_that_follow_from_others_are_checked() -> None:
    drift = looked(table=hive(properties={"schemasync.generation": "7", "schemasync.schema_id": "9"}))
    message = "lake.student: schemasync.generation is '7', not '1', schemasync.schema_id is '9', not '101'"
    assert (said(drift), drift.properties) == (
        [("SS214", message)],
        ("schemasync.generation", "schemasync.schema_id"),
    )


def test_places_and_types_are_compared_by_what_they_are() -> None:
    assert [
        same_place("file:///a/", "file:/a"),
        same_place("hdfs:///a//b", "hdfs:/a/b"),
        same_place("s3a://a", "s3a://b"),
        same_place("hdfs://nn/a", "hdfs:/a"),
        same_type("INT", "int"),
        same_type("varchar(3)", "VARCHAR(3)"),
        same_type("int", "bigint"),
        same_text("SELECT 1\n", "SELECT 1"),
    ] == [True, True, False, False, True, True, False, True]


BODY = "SELECT x"


def view(shown: Shape = V1, body: str = BODY, kept: Kept = NOTHING, **changes: Any) -> HiveTable:
    """Return a view as Spark makes it."""
    columns = ddl.shown_columns(TARGET, shown, kept)
    named = tuple(HiveColumn(name=n, type=ddl.hive_type(t), comment=c) for n, t, c in columns)
    properties = {
        SUBJECT: TARGET.subject,
        "comment": kept.comment or "the newest row per key of lake.student",
        "view.schemaMode": "COMPENSATION",
        "transient_lastDdlTime": "1",
        **kept.properties,
    }
    made = HiveTable(
        database="lake",
        name="student_view",
        kind="VIRTUAL_VIEW",
        columns=tuple(replace(c, name=c.name.lower()) for c in named),
        partition_keys=(),
        location="",
        properties=spark_schema.rewritten(properties, named, ()) | changes.pop("properties", {}),
        view_text=body,
    )
    return replace(made, **changes)


def spark_copy(*columns: HiveColumn) -> dict[str, str]:
    return spark_schema.rewritten({}, columns, ())


NAMED = (HiveColumn(name="id", type="bigint"), HiveColumn(name="fullName", type="string", comment="first and last"))
FOLDED = tuple(replace(c, name=c.name.lower()) for c in NAMED)


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        (view(), ()),
        (None, ("the view does not exist yet",)),
        (view(body="SELECT y"), ("its columns or the versions behind them changed",)),
        (view(expanded_text="SELECT y"), ("its columns or the versions behind them changed",)),
        (view(expanded_text=f"{BODY}\n"), ()),
        (view(properties={SUBJECT: "other"}), ("schemasync.subject is to say whose it is",)),
        (view(columns=FOLDED[:1]), ("its columns are stale: Hive has id",)),
        (
            view(properties={spark_schema.PREFIX: ""}),
            ("its columns are stale: Spark's copy of them is missing, or parts of it are",),
        ),
        (view(properties=spark_copy(*FOLDED)), ("its columns are stale: Spark has id, fullname",)),
        (
            view(columns=(replace(FOLDED[0], type="int"), FOLDED[1])),
            ("its columns are stale: id is int in Hive and long in Spark",),
        ),
        (
            view(properties=spark_copy(replace(NAMED[0], type="int"), NAMED[1])),
            ("its columns are stale: id is bigint in Hive and integer in Spark",),
        ),
        (view(columns=(FOLDED[0], replace(FOLDED[1], comment=""))), ("its comments changed",)),
        (view(properties=spark_copy(NAMED[0], replace(NAMED[1], comment=""))), ("its comments changed",)),
    ],
)
def test_a_view_is_replaced_for_a_reason(found: HiveTable | None, reasons: tuple[str, ...]) -> None:
    assert view_reasons(found, TARGET, V1, BODY, NOTHING) == reasons


def test_a_view_whose_types_only_spark_keeps_is_compared_by_sparks_copy() -> None:
    parked = view(columns=tuple(replace(c, type="") for c in FOLDED))
    assert view_reasons(parked, TARGET, V1, BODY, NOTHING) == ()


HANDS = Kept(properties={"team": "blue"}, comments={"fullName": "by hand"}, comment="ask anna")


def test_what_people_wrote_on_a_view_is_kept_and_asks_for_nothing() -> None:
    found = view(kept=HANDS)
    kept = kept_of(found, table="lake.student", current=V1, desired=V2)
    assert (kept, view_reasons(found, TARGET, V1, BODY, kept)) == (HANDS, ())


@pytest.mark.parametrize("current", [V1, None])
def test_what_schemasync_wrote_is_not_kept(current: Shape | None) -> None:
    assert kept_of(view(), table="lake.student", current=current, desired=shape(1)) == NOTHING


@pytest.mark.parametrize("comment", ["Presto View", "Trino View"])
def test_what_trino_wrote_on_a_view_that_was_its_own_is_not_kept(comment: str) -> None:
    """By that Trino tells what it reads as a view of its own: it would look for its JSON in the new text."""
    marks = ("presto_view", "presto_version", "presto_query_id", "trino_version", "trino_created_by", "trino_query_id")
    adopted = view(kept=Kept(properties={**dict.fromkeys(marks, "true"), "team": "blue"}, comment=comment))
    found = kept_of(adopted, table="lake.student", current=None, desired=V1)
    assert found == Kept(properties={"team": "blue"})


def test_what_a_killed_run_wrote_already_is_not_kept() -> None:
    assert kept_of(view(V2), table="lake.student", current=V1, desired=V2) == NOTHING


def test_what_schemasync_wrote_on_a_column_whose_name_another_one_takes_is_not_kept() -> None:
    again = history((ID, NAME), (ID,), (ID, replace(NAME, doc="another")))
    found = view(shape(1, again))
    assert kept_of(found, table="lake.student", current=shape(1, again), desired=shape(3, again)) == NOTHING


def test_what_a_person_said_of_a_column_is_said_of_no_other_one_that_takes_its_name() -> None:
    again = history((ID, NAME), (ID,), (ID, NAME))
    commented = view(shape(1, again), kept=HANDS)
    found = kept_of(commented, table="lake.student", current=shape(1, again), desired=shape(3, again))
    assert found == replace(HANDS, comments={})


def test_a_comment_that_was_emptied_is_ours_again() -> None:
    emptied = view(columns=(FOLDED[0], replace(FOLDED[1], comment="")), properties={"comment": ""})
    assert kept_of(emptied, table="lake.student", current=V1, desired=V2) == NOTHING


def test_a_comment_stays_on_a_column_that_is_renamed() -> None:
    renamed = history((ID, NAME), (ID, replace(NAME, name="name", aliases=("fullName",))), aliases=True)
    found = kept_of(view(kept=HANDS), table="lake.student", current=shape(1, renamed), desired=shape(2, renamed))
    assert found.comments == {"name": "by hand"}


def test_without_a_view_there_is_nothing_to_keep() -> None:
    assert kept_of(None, table="lake.student", current=None, desired=V1) == NOTHING


def test_the_statement_says_again_what_is_kept() -> None:
    values = ddl.create_view(TARGET, V1, BODY, Dialect.SPARK, HANDS).values
    assert [c["comment"] for c in values["columns"]] == ["", "'by hand'"]
    assert (values["comment"], values["properties"]) == (
        "'ask anna'",
        [
            {"key": f"'{SUBJECT}'", "value": f"'{TARGET.subject}'"},
            {"key": "'team'", "value": "'blue'"},
        ],
    )


@pytest.mark.parametrize(
    ("found", "kept", "findings"),
    [
        (view(), NOTHING, []),
        (view(V2, "SELECT y"), NOTHING, []),
        (None, NOTHING, [("SS203", "lake.student_view is missing, or its text is not what this configuration needs")]),
        (
            view(body="SELECT 1"),
            HANDS,
            [("SS203", "lake.student_view is missing, or its text is not what this configuration needs")],
        ),
        (
            view(properties={SUBJECT: "other"}),
            NOTHING,
            [("SS214", f"lake.student_view: schemasync.subject is 'other', not '{TARGET.subject}'")],
        ),
        (
            view(columns=FOLDED[:1]),
            NOTHING,
            [("SS210", "lake.student_view: its columns are stale: Hive has id")],
        ),
        (
            view(kept=HANDS),
            HANDS,
            [
                ("SS215", "lake.student_view.fullName says 'by hand'"),
                ("SS215", "lake.student_view says 'ask anna'"),
            ],
        ),
    ],
)
def test_what_is_not_as_it_was_left_is_named(
    found: HiveTable | None, kept: Kept, findings: list[tuple[str, str]]
) -> None:
    # A run that was killed may have written the next version's view already: that is no drift.
    written_already = found is not None and found.view_text == "SELECT y"
    reasons = () if written_already else view_reasons(found, TARGET, V1, BODY, kept)
    told = view_drift(found, TARGET, left=(BODY, "SELECT y"), reasons=reasons, kept=kept)
    assert [(d.code, d.message) for d in told] == findings
