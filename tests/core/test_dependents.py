"""Which views of others a change reaches, directly and through each other."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from schemasync.core.dependents import (
    Dependent,
    Effect,
    Impact,
    Ours,
    Reads,
    Touched,
    find_dependents,
    findings,
    impact,
    renamed_view,
    taken_over,
)
from schemasync.core.history import History
from schemasync.core.ports import HiveColumn, HiveTable
from schemasync.core.shape import Shape, shape_of
from schemasync.core.view_origin import Unclear, ViewQuery
from tests.core.builders import BIGINT, INT, MICROS, MILLIS, STRING, col, history, rec, target

ID = col("id", BIGINT, nullable=False)
TABLE, VIEW = ("lake", "student"), ("lake", "student_view")


def shape(found: History, number: int, **options: Any) -> Shape:
    at = found.at(number)
    assert at is not None
    return shape_of(target(**options), found, at, key=("id",), baseline=1)[0]


def effects(found: History, **options: Any) -> dict[str, list[tuple[str, str, str]]]:
    """Return (column, effect, note) of what changes between the first and the newest version, for whoever names it."""
    return told(found, lambda touched: touched.effect is not Effect.SHIFTED, **options)


def shifts(found: History, **options: Any) -> dict[str, list[tuple[str, str, str]]]:
    """Return what changes for whoever counts the columns."""
    return told(found, lambda touched: touched.effect is Effect.SHIFTED, **options)


def told(found: History, which: Callable[[Touched], bool], **options: Any) -> dict[str, list[tuple[str, str, str]]]:
    newest = found.newest.version
    seen = impact(target(**options), shape(found, 1, **options), shape(found, newest, **options))
    return {".".join(r): [(t.column, t.effect.value, t.note) for t in some if which(t)] for r, some in seen.items()}


def test_a_column_that_is_dropped_is_gone_from_the_view_and_stale_in_the_table() -> None:
    assert effects(history((ID, col("Fax", STRING)), (ID, col("new")))) == {
        "lake.student": [("fax", "stale", "which newer rows leave NULL")],
        "lake.student_view": [("fax", "gone", "which goes away")],
    }


def test_a_column_that_is_kept_on_show_is_stale_in_the_table_only() -> None:
    found = history((ID, col("fax", STRING)), (ID,))
    assert effects(found, policies={"drop": "keep"}) == {
        "lake.student": [("fax", "stale", "which newer rows leave NULL")],
        "lake.student_view": [],
    }


def test_a_renamed_column_is_gone_under_its_old_name_and_the_table_keeps_it() -> None:
    assert effects(history((ID, col("name", STRING)), (ID, col("full", STRING, aliases=("name",))))) == {
        "lake.student": [],
        "lake.student_view": [("name", "gone", "which is called full then")],
    }


def test_another_type_changes_the_column_and_newer_rows_stand_elsewhere() -> None:
    assert effects(history((ID, col("n", INT)), (ID, col("N", BIGINT)))) == {
        "lake.student": [("n", "stale", "which newer rows leave NULL")],
        "lake.student_view": [("n", "changed", "which changes from int to bigint")],
    }


def test_another_field_inside_changes_the_type() -> None:
    seen = effects(history((ID, col("a", rec(x=INT))), (ID, col("a", rec(x=INT, y=INT)))))
    assert seen["lake.student_view"] == [("a", "changed", "which changes from struct<x:int> to struct<x:int,y:int>")]


def test_a_column_that_came_back_is_another_one() -> None:
    seen = effects(history((ID, col("a")), (ID,), (ID, col("a"))))
    assert seen["lake.student_view"] == [("a", "changed", "which is another column of the same name then")]


@pytest.mark.parametrize(
    "found",
    [
        history((ID, col("a")), (ID, col("a"), col("b"))),
        history((ID, col("a")), (col("a"), ID)),
        history((ID, col("a")), (ID, col("A", doc="words", nullable=False))),
        history((ID, col("at", MILLIS)), (ID, col("at", MICROS))),
    ],
    ids=["added", "reordered", "documented", "written otherwise"],
)
def test_what_readers_do_not_see_touches_nothing(found: History) -> None:
    assert effects(found) == {"lake.student": [], "lake.student_view": []}


@pytest.mark.parametrize(
    ("found", "table", "view"),
    [
        (history((ID, col("a")), (col("B"), ID, col("a"))), ["b: new"], ["b: new"]),
        (history((ID, col("a"), col("b")), (ID, col("b"))), [], []),
        (history((ID, col("a"), col("b")), (ID, col("b"), col("A"))), [], ["a: elsewhere", "b: elsewhere"]),
        (history((ID, col("n", INT)), (ID, col("n", BIGINT))), ["n__2: new"], ["n: retyped"]),
        (history((ID, col("name", STRING)), (ID, col("full", STRING, aliases=("name",)))), [], ["full: new"]),
        (history((ID, col("a")), (ID, col("a", doc="words", nullable=False))), [], []),
    ],
    ids=["added", "dropped", "reordered", "widened", "renamed", "documented"],
)
def test_what_comes_or_moves_shifts_the_columns_of_a_star(found: History, table: list[str], view: list[str]) -> None:
    seen = shifts(found)
    notes = {"which is new there": "new", "which stands elsewhere then": "elsewhere"}
    notes |= {"which changes from int to bigint": "retyped"}
    assert {r: [f"{c}: {notes[note]}" for c, _, note in some] for r, some in seen.items()} == {
        "lake.student": table,
        "lake.student_view": view,
    }


def test_a_table_that_is_new_or_cannot_be_decided_touches_nothing() -> None:
    only = shape(history((ID,)), 1)
    assert impact(target(), None, only) == impact(target(), only, None) == {TABLE: (), VIEW: ()}


def touched(column: str, effect: Effect, relation: str = "lake.student_view", note: str = "which goes away") -> Touched:
    return Touched(relation=relation, column=column, effect=effect, note=note)


NAME, AGE = touched("name", Effect.GONE), touched("age", Effect.CHANGED, note="which changes")
OLD = touched("name", Effect.STALE, "lake.student", "which newer rows leave NULL")
CHANGE: Impact = {TABLE: (OLD,), VIEW: (NAME, AGE)}


def view(name: str, text: str, database: str = "lake", **properties: str) -> HiveTable:
    return HiveTable(
        database=database,
        name=name,
        kind="VIRTUAL_VIEW",
        columns=(),
        partition_keys=(),
        location="",
        properties=properties,
        view_text=text,
    )


class Reader:
    """Understands ``db.relation: column column, db.relation: *``; what begins with ``?`` it does not."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, query: ViewQuery) -> Reads | Unclear:
        self.texts.append(query.text)
        if query.text.startswith("?"):
            return Unclear(reason="no SQL")
        found = {}
        for part in query.text.split(", "):
            relation, _, columns = part.partition(": ")
            database, _, name = relation.rpartition(".")
            found[database or query.database, name] = None if columns == "*" else frozenset(columns.split())
        return Reads(columns=found)


OURS = Ours(subject="s", relations=frozenset({("lake", "student_view__next")}))


def found(*views: HiveTable) -> tuple[Dependent, ...]:
    return find_dependents(views, Reader(), CHANGE, OURS)


NEW = touched("nick", Effect.SHIFTED, note="which is new there")


def trino(text: str) -> str:
    content = {"originalSql": text, "catalog": "hive", "schema": "lake", "columns": []}
    return f"/* Presto View: {b64encode(json.dumps(content).encode()).decode()} */"


def test_a_star_of_trino_is_told_of_columns_that_come_and_whoever_reads_it() -> None:
    views = (
        view("all", trino("student_view: *")),
        view("one", trino("student_view: id nick")),
        view("over", trino("all: id")),
        view("sparks", "student_view: *", **{"spark.sql.create.version": "4.1.4"}),
        view("hives", "student_view: *"),
    )
    seen = find_dependents(views, Reader(), {TABLE: (), VIEW: (NEW,)}, OURS)
    assert [(d.view, d.touched) for d in seen if d.touched] == [("lake.all", (NEW,)), ("lake.over", (NEW,))]
    assert [(d.code, d.message) for d in findings(seen)] == [
        ("SS505", "lake.all takes by a star nick of lake.student_view, which is new there"),
        ("SS505", "lake.over (through lake.all) takes by a star nick of lake.student_view, which is new there"),
    ]


def test_a_view_is_told_of_the_columns_that_it_uses() -> None:
    assert found(view("report", "lake.student_view: id age name")) == (
        Dependent(view="lake.report", reads=("lake.student_view",), touched=(NAME, AGE)),
    )


def test_a_view_that_uses_nothing_that_changes_depends_all_the_same() -> None:
    assert found(view("report", "lake.student_view: id")) == (
        Dependent(view="lake.report", reads=("lake.student_view",)),
    )


def test_a_star_uses_every_column() -> None:
    assert found(view("report", "lake.student_view: *"))[0].touched == (NAME, AGE)


def test_names_without_a_database_are_of_the_views_own_and_case_does_not_count() -> None:
    views = (view("Report", "student_view: name", "LAKE"), view("other", "student_view: name", "shop"))
    assert found(*views) == ()
    lower = (view("Report", "student_view: name"), view("other", "student_view: name", "shop"))
    assert [d.view for d in found(*lower)] == ["lake.report"]


def test_the_table_itself_and_its_view_are_told_apart() -> None:
    both = view("report", "lake.student: name, lake.student_view: age")
    assert found(both) == (
        Dependent(view="lake.report", reads=("lake.student", "lake.student_view"), touched=(OLD, AGE)),
    )


def test_a_view_that_breaks_breaks_those_that_read_it_whatever_they_use() -> None:
    views = (view("a", "lake.b: x"), view("b", "lake.c: y"), view("c", "lake.student_view: name"))
    assert found(*views) == (
        Dependent(view="lake.a", through=("lake.b",), touched=(NAME,)),
        Dependent(view="lake.b", through=("lake.c",), touched=(NAME,)),
        Dependent(view="lake.c", reads=("lake.student_view",), touched=(NAME,)),
    )


def test_a_view_is_told_of_what_it_reads_itself_and_through_others() -> None:
    views = (view("a", "lake.student_view: age, lake.b: x"), view("b", "lake.student_view: name"))
    assert found(*views)[0] == Dependent(
        view="lake.a", reads=("lake.student_view",), through=("lake.b",), touched=(AGE, NAME)
    )


def test_views_that_read_each_other_come_to_an_end() -> None:
    views = (view("a", "lake.b: x"), view("b", "lake.a: x, lake.student: name"))
    assert [(d.view, d.touched) for d in found(*views)] == [("lake.a", (OLD,)), ("lake.b", (OLD,))]


def test_a_view_that_cannot_be_understood_is_told_of_and_so_is_what_reads_it() -> None:
    views = (view("a", "lake.b: x"), view("b", "? student_view"))
    assert found(*views) == (
        Dependent(view="lake.a", through=("lake.b",), unclear="it reads lake.b, which cannot be understood"),
        Dependent(view="lake.b", reads=("lake.student", "lake.student_view"), unclear="no SQL"),
    )


def test_a_view_without_a_text_may_read_anything() -> None:
    (one,) = found(view("a", ""))
    assert (one.reads, one.unclear) == (("lake.student", "lake.student_view"), "it has no text")


def test_a_view_that_names_none_of_them_is_not_read_and_ours_are_left_out() -> None:
    reader = Reader()
    views: Iterable[HiveTable] = (
        view("a", "? teacher_view"),
        view("Student_View__next", "lake.student: name", **{"schemasync.subject": "s"}),
        view("pupil_view", "lake.student: name", **{"schemasync.subject": "of another table"}),
        view("b", "lake.students: name"),
    )
    assert (find_dependents(tuple(views), reader, CHANGE, OURS), reader.texts) == ((), ["lake.students: name"])


def test_a_copy_of_our_view_that_somebody_made_with_its_properties_is_a_view_like_any_other() -> None:
    ours = {"schemasync.subject": "s"}
    views = (view("mine", "lake.student: name", **ours), view("student_view__next", "lake.student: name", "x", **ours))
    assert [(d.view, d.touched) for d in found(*views)] == [("lake.mine", (OLD,)), ("x.student_view__next", (OLD,))]


def test_each_effect_on_a_view_is_one_finding() -> None:
    dependents = (
        Dependent(view="lake.a", reads=("lake.student_view",), touched=(OLD, NAME, AGE)),
        Dependent(view="lake.b", through=("lake.a",), touched=(NAME,)),
        Dependent(view="lake.c", reads=("lake.student_view",)),
        Dependent(view="lake.d", reads=("lake.student",), unclear="no SQL"),
    )
    assert [(d.code, d.message) for d in findings(dependents)] == [
        ("SS501", "lake.a uses name of lake.student_view, which goes away"),
        ("SS502", "lake.a uses age of lake.student_view, which changes"),
        ("SS503", "lake.a uses name of lake.student, which newer rows leave NULL"),
        ("SS501", "lake.b (through lake.a) uses name of lake.student_view, which goes away"),
        ("SS504", "lake.d may read lake.student, and cannot be understood: no SQL"),
    ]


def test_a_view_that_reads_the_dedup_view_by_its_old_name_breaks_whatever_it_uses() -> None:
    dropped = renamed_view(target(), "people")
    views = (view("all", "lake.people: *"), view("some", "people: "), view("over", "lake.some: x"), view("b", "x: y"))
    seen = find_dependents(views, Reader(), {**CHANGE, **dropped}, OURS)
    assert [(d.code, d.message, d.fix) for d in findings(seen)] == [
        ("SS501", f"lake.{name} reads lake.people, which is called student_view then", READ_IT)
        for name in ("all", "over (through lake.some)", "some")
    ]


READ_IT = "Make that view anew once this is applied, so that it reads the dedup view by its new name."


def test_what_goes_away_with_a_table_that_is_taken_over_is_told() -> None:
    found = history((ID, col("n", BIGINT), col("born", STRING)))
    was = [("ID", "bigint"), ("n", "int"), ("fax", "string"), ("born", "string")]
    columns = tuple(HiveColumn(name=name, type=type_) for name, type_ in was)
    partitions = (HiveColumn(name="day", type="string"), HiveColumn(name="segment", type="string"))
    table = replace(view("student", ""), kind="EXTERNAL_TABLE", columns=columns, partition_keys=partitions)
    seen = taken_over(target(), table, shape(found, 1))
    assert {r: [(t.column, t.effect.value, t.note) for t in some] for r, some in seen.items()} == {
        TABLE: [
            ("n", "changed", "which changes from int to bigint"),
            ("fax", "gone", "which goes away"),
            ("day", "gone", "which goes away"),
        ]
    }


def test_a_dependent_as_programs_read_it() -> None:
    assert Dependent(view="lake.a", through=("lake.b",), touched=(NAME,), unclear="why").to_json() == {
        "view": "lake.a",
        "reads": [],
        "through": ["lake.b"],
        "columns": [{"relation": "lake.student_view", "column": "name", "effect": "gone"}],
        "unclear": "why",
    }
