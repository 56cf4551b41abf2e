"""What someone changed by hand: status names it, apply puts it right or keeps it, and then all is quiet.

One table serves them all: what is put right is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.app.status import TableStatus, status
from schemasync.core.policy import Verdict
from tests.lab import DAY, Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAME = {"name": "fullName", "type": ["null", "string"], "doc": "first and last"}
SPARK_SCHEMA = "spark.sql.sources.schema"


class Hands:
    """A person with a client of the metastore."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.jvm: Any = lab.session._jvm
        catalog: Any = lab.session._jsparkSession.sharedState().externalCatalog()
        self.client = catalog.unwrapped().client().client().getMSC()

    def table(self, change: Callable[[Any], Any], name: str = "student") -> None:
        table = self.client.getTable(self.lab.database, name)
        change(table)
        self.client.alter_table(self.lab.database, name, table)

    def view(self, change: Callable[[Any], Any]) -> None:
        self.table(change, "student_view")

    def partition(self, change: Callable[[Any], Any]) -> None:
        found = self.client.listPartitions(self.lab.database, "student", -1)
        (one,) = (p for p in found if p.getValues().get(0) == "base_s00000001")
        change(one)
        context = self.jvm.org.apache.hadoop.hive.metastore.api.EnvironmentContext()
        context.setProperties(self.jvm.java.util.HashMap())
        self.client.alter_partition(self.lab.database, "student", one, context)

    def add_partition(self, segment: str) -> None:
        place = f"file:{self.lab.root}/elsewhere"
        self.lab.workspace.metastore.add_partitions(self.lab.database, "student", {segment: place})

    def sql(self, text: str) -> None:
        self.lab.session.sql(text.format(self.lab.database))


def put(key: str, value: str) -> Callable[[Any], Any]:
    return lambda table: table.getParameters().put(key, value)


def remove(key: str) -> Callable[[Any], Any]:
    return lambda table: table.getParameters().remove(key)


def retype(position: int, type_: str) -> Callable[[Any], Any]:
    return lambda thing: thing.getSd().getCols().get(position).setType(type_)


def swap(thing: Any) -> None:
    columns = thing.getSd().getCols()
    columns.insert(0, columns.pop(1))


def drop(position: int) -> Callable[[Any], Any]:
    return lambda thing: thing.getSd().getCols().pop(position)


def stale(table: Any) -> None:
    text = table.getParameters().get(SPARK_SCHEMA)
    table.getParameters().put(SPARK_SCHEMA, text.replace('"fullname","type":"string"', '"fullname","type":"integer"'))


def partial(table: Any) -> None:
    text = table.getParameters().remove(SPARK_SCHEMA)
    table.getParameters().put(f"{SPARK_SCHEMA}.numParts", "2")
    table.getParameters().put(f"{SPARK_SCHEMA}.part.0", text[:50])


def lower(view: Any) -> None:
    text = view.getParameters().get(SPARK_SCHEMA)
    view.getParameters().put(SPARK_SCHEMA, text.replace("fullName", "fullname"))


def to_managed(table: Any) -> None:
    table.setTableType("MANAGED_TABLE")
    table.getParameters().put("EXTERNAL", "FALSE")


def to_orc(thing: Any) -> None:
    thing.getSd().getSerdeInfo().setSerializationLib("org.apache.hadoop.hive.ql.io.orc.OrcSerde")


def moved(lab: Lab) -> Callable[[Any], Any]:
    return lambda thing: thing.getSd().setLocation(f"file:{lab.root}/elsewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a person does; the codes that status then names, a place, and the steps that put it right."""

    name: str
    does: Callable[[Hands], None]
    codes: tuple[str, ...]
    says: str
    steps: tuple[str, ...]


CASES = (
    Case(
        name="a column of the table has another type",
        does=lambda hands: hands.table(retype(1, "int")),
        codes=("SS204", "SS208"),
        says="student.fullname is int, not string",
        steps=("repair_columns",),
    ),
    Case(
        name="a column of a partition has another type",
        does=lambda hands: hands.partition(retype(1, "int")),
        codes=("SS207",),
        says="partition base_s00000001 has fullname int where the table has fullname string (column 2)",
        steps=("repair_columns",),
    ),
    Case(
        name="a partition has its columns in another order",
        does=lambda hands: hands.partition(swap),
        codes=("SS207",),
        says="base_s00000001 has fullname string where the table has id bigint (column 1)",
        steps=("repair_columns",),
    ),
    Case(
        name="a partition lacks a column that its files carry",
        does=lambda hands: hands.partition(drop(9 - 1)),
        codes=("SS207",),
        says="base_s00000001 lacks __tombstone, which its files carry",
        steps=("repair_columns",),
    ),
    Case(
        name="Spark's copy of the schema is gone",
        does=lambda hands: hands.table(remove(SPARK_SCHEMA)),
        codes=("SS208",),
        says=f"student, {SPARK_SCHEMA}: it is missing",
        steps=("repair_columns",),
    ),
    Case(
        name="Spark's copy of the schema is only a part",
        does=lambda hands: hands.table(partial),
        codes=("SS208",),
        says="or parts of it are",
        steps=("repair_columns",),
    ),
    Case(
        name="Spark's copy of the schema is stale",
        does=lambda hands: hands.table(stale),
        codes=("SS208",),
        says="it has other types of fullname",
        steps=("repair_columns",),
    ),
    Case(
        name="a partition is dropped",
        does=lambda hands: hands.sql("ALTER TABLE {0}.student DROP PARTITION (segment = 'base_s00000001')"),
        codes=("SS209",),
        says="partition base_s00000001 is missing",
        steps=("repair_partitions",),
    ),
    Case(
        name="a partition points elsewhere",
        does=lambda hands: hands.partition(moved(hands.lab)),
        codes=("SS209",),
        says="partition base_s00000001 points elsewhere",
        steps=("repair_partitions",),
    ),
    Case(
        name="a partition is added",
        does=lambda hands: hands.add_partition("mine"),
        codes=("SS209",),
        says="partition mine is none of the state in force",
        steps=("repair_partitions",),
    ),
    Case(
        name="the view's text is replaced",
        does=lambda hands: hands.sql("ALTER VIEW {0}.student_view AS SELECT 1 AS x"),
        codes=("SS203",),
        says="student_view is missing, or its text is not what this configuration needs",
        steps=("replace_view",),
    ),
    Case(
        name="the view's columns are other ones for Hive",
        does=lambda hands: hands.view(retype(0, "int")),
        codes=("SS210",),
        says="student_view: its columns are stale: id is int in Hive and long in Spark",
        steps=("replace_view",),
    ),
    Case(
        name="the view's columns have lost their case for Spark",
        does=lambda hands: hands.view(lower),
        codes=("SS210",),
        says="student_view: its columns are stale: Spark has id, fullname",
        steps=("replace_view",),
    ),
    Case(
        name="the view's columns are gone for Spark",
        does=lambda hands: hands.view(remove(SPARK_SCHEMA)),
        codes=("SS210",),
        says="Spark's copy of them is missing",
        steps=("replace_view",),
    ),
    Case(
        name="the table is managed",
        does=lambda hands: hands.table(to_managed),
        codes=("SS211",),
        says="student is a managed_table: DROP TABLE would delete its data",
        steps=("restore_table",),
    ),
    Case(
        name="the table purges",
        does=lambda hands: hands.table(put("external.table.purge", "true")),
        codes=("SS211",),
        says="student has external.table.purge",
        steps=("restore_table",),
    ),
    Case(
        name="the table points elsewhere",
        does=lambda hands: hands.table(moved(hands.lab)),
        codes=("SS212",),
        says="/elsewhere, its data is in file:",
        steps=("restore_table",),
    ),
    Case(
        name="the table is read by another serde",
        does=lambda hands: hands.table(to_orc),
        codes=("SS213",),
        says="student is read by OrcSerde",
        steps=("restore_table",),
    ),
    Case(
        name="a partition is read by another serde",
        does=lambda hands: hands.partition(to_orc),
        codes=("SS213",),
        says="student, base_s00000001 is read by OrcSerde",
        steps=("restore_table",),
    ),
    Case(
        name="the generation is edited",
        does=lambda hands: hands.table(put("schemasync.generation", "7")),
        codes=("SS214",),
        says="schemasync.generation is '7', not '1'",
        steps=("set_version",),
    ),
    Case(
        name="the schema id is edited",
        does=lambda hands: hands.table(put("schemasync.schema_id", "77")),
        codes=("SS214",),
        says="schemasync.schema_id is '77', not '2'",
        steps=("set_version",),
    ),
)
DROPPED = Case(
    name="a column of the table is dropped",
    does=lambda hands: hands.table(drop(1)),
    codes=("SS202", "SS207", "SS208"),
    says="student lacks fullname",
    steps=("repair_columns",),
)


@pytest.fixture(scope="module")
def tended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with one table: a base, and a delta beside it."""
    yield made(Lab(root=tmp_path_factory.mktemp("tended"), session=spark, database="tended"))
    # A worker that does other tests in between makes it anew, and would find the table of the one before.
    spark.sql("DROP DATABASE tended CASCADE")


def made(lab: Lab, ada: str = "Ada", bob: str = "Bob") -> Lab:
    lab.register("student", lab.flat("Student", ("fullName", NAME)))
    lab.land("student", [{"id": 1, "op": "c", "ts_ms": 1, "fullName": ada}])
    lab.compact()
    lab.land("student", [{"id": 2, "op": "c", "ts_ms": 1, "fullName": bob}])
    lab.apply()
    return lab


ROWS = [{"id": 1, "fullName": "Ada"}, {"id": 2, "fullName": "Bob"}]


def looked(lab: Lab) -> TableStatus:
    (table,) = status(lab.workspace).tables
    return table


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_differs_is_named_and_apply_puts_it_right(tended: Lab, case: Case) -> None:
    is_named_and_put_right(tended, case)


def test_a_column_that_was_dropped_comes_back_behind_all_others(lab: Lab) -> None:
    # Not with the others, which know where each column is.
    is_named_and_put_right(made(lab), DROPPED)


def is_named_and_put_right(lab: Lab, case: Case) -> None:
    case.does(Hands(lab))
    found = looked(lab)
    codes = tuple(sentence.partition(":")[0] for sentence in found.drift)
    (applied,) = lab.apply().tables
    done = tuple(step.kind for step in applied.done)
    after = looked(lab)
    assert (codes, case.says in "; ".join(found.drift), found.held) == (case.codes, True, False), found.drift
    assert (done, applied.error) == (case.steps, None)
    assert (after.drift, after.diagnostics, after.plan.steps) == ((), (), ())
    assert lab.rows("student") == ROWS


@pytest.mark.parametrize(("ada", "held"), [("7", False), ("Ada", True)])
def test_a_column_that_was_dropped_and_is_retyped_at_once_comes_back_before_its_values_are_looked_at(
    lab: Lab, ada: str, held: bool
) -> None:
    made(lab, ada, "8")
    Hands(lab).table(drop(1))
    lab.register("student", lab.flat("Student", ("fullName", ["null", "int"])))
    (planned,) = lab.plan().tables
    assert (planned.verdict, planned.steps[0].kind) == (Verdict.MIGRATE, "repair_columns")
    (applied,) = lab.apply().tables
    assert ([step.kind for step in applied.done][:1], applied.held) == (["repair_columns"], held), applied.error
    assert [row["fullName"] for row in lab.rows("student", order_by="id")] == ([ada, "8"] if held else [7, 8])


def test_a_data_file_with_other_columns_is_named(lab: Lab) -> None:
    made(lab)
    (data,) = (lab.root / "lake" / "student" / "base").rglob("*.parquet")
    small = lab.root / "small.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), small)
    content, size = small.read_bytes(), data.stat().st_size
    data.write_bytes(content[:4] + b"\0" * (size - len(content)) + content[4:])
    (finding,) = looked(lab).drift
    assert finding.startswith("SS216: base/")
    assert "disagree about the columns __admitted_ms" in finding
    assert "id is int, the table says bigint" in finding


def test_what_people_wrote_survives_an_evolution_and_a_compaction(lab: Lab) -> None:
    made(lab)
    hands = Hands(lab)
    hands.sql("ALTER TABLE {0}.student ADD COLUMNS (mine INT COMMENT 'my own')")
    for name in ("student", "student_view"):
        hands.table(lambda table: table.setOwner("anna"), name)
        hands.table(put("team", "it's blue"), name)
        hands.table(put("comment", "ask anna"), name)
        hands.table(lambda table: table.getSd().getCols().get(0).setComment("by hand"), name)
    lab.register("student", lab.flat("Student", ("fullName", NAME), ("age", "int")))
    lab.land("student", [{"id": 3, "op": "c", "ts_ms": 1, "fullName": "Cy", "age": 7}])
    evolved = lab.apply()
    one = written(lab)
    (compacted,) = lab.compact().tables
    lab.now_ms += 30 * DAY
    lab.compact()
    assert (evolved.tables[0].error, compacted.failure) == (None, None)
    assert one == {
        "student": ("anna", "it's blue", "ask anna", "by hand"),
        "student_view": ("anna", "it's blue", "ask anna", "by hand"),
    }
    assert written(lab) == one
    table = lab.workspace.metastore.table(lab.database, "student")
    assert table is not None
    assert [(c.name, c.comment) for c in table.columns if c.name in {"mine", "age"}] == [
        ("mine", "my own"),
        ("age", ""),
    ]


def written(lab: Lab) -> dict[str, tuple[str, ...]]:
    """Return owner, a property, comment, and the comment of the first column, of table and view."""
    found: dict[str, tuple[str, ...]] = {}
    for name in ("student", "student_view"):
        table = lab.workspace.metastore.table(lab.database, name)
        assert table is not None
        properties = table.properties
        owner = Hands(lab).client.getTable(lab.database, name).getOwner()
        found[name] = (owner, properties["team"], properties["comment"], table.columns[0].comment)
    return found


def test_a_comment_by_hand_is_kept_and_told_and_is_no_drift(lab: Lab) -> None:
    made(lab)
    Hands(lab).view(lambda view: view.getSd().getCols().get(1).setComment("by hand"))
    before = [d.code for d in looked(lab).diagnostics]
    lab.apply()
    after = looked(lab)
    columns = lab.session.table(f"{lab.database}.student_view").schema
    assert (before, [d.code for d in after.diagnostics], after.drift) == (["SS210", "SS215"], ["SS215"], ())
    assert columns["fullName"].metadata == {"comment": "by hand"}


def test_a_view_that_lost_its_subject_is_held_not_overwritten(lab: Lab) -> None:
    made(lab)
    Hands(lab).view(remove("schemasync.subject"))
    (applied,) = lab.apply().tables
    assert ([d.code for d in looked(lab).diagnostics], applied.done, applied.held) == (["SS201"], (), True)


def test_partitions_of_a_held_table_are_put_right_too(lab: Lab) -> None:
    made(lab)
    lab.register("student", lab.flat("Student", ("fullName", "int")))
    hands = Hands(lab)
    hands.add_partition("mine")
    codes = [sentence.partition(":")[0] for sentence in looked(lab).drift]
    (applied,) = lab.apply().tables
    assert (codes, [step.kind for step in applied.done]) == (
        ["the registry is at version 2, the table at 1", "SS209"],
        ["repair_partitions"],
    )
    # Also where nobody knows how its columns are told apart.
    hands.table(put("schemasync.columns", "edited"))
    hands.sql("ALTER TABLE {0}.student DROP PARTITION (segment = 'base_s00000001')")
    (again,) = lab.apply().tables
    assert ([step.kind for step in again.done], again.held) == (["repair_partitions"], True)
    assert sorted(lab.workspace.metastore.partitions(lab.database, "student")) == [
        "base_s00000001",
        "delta_00000002",
    ]
