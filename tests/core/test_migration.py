from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemasync.core.ddl import count_misfits, physical_columns, show_misfits
from schemasync.core.history import History
from schemasync.core.manifest import Contents, Segment, shard_name
from schemasync.core.migration import (
    Misfits,
    Question,
    detoured,
    outdated,
    questions,
    stuck,
    to_rewrite,
    unfit_defaults,
)
from schemasync.core.names import Dialect
from schemasync.core.schema import Column
from schemasync.core.shape import Shape, shape_of
from schemasync.core.view import RowSource, view_columns
from tests.core.builders import BIGINT, BOOLEAN, DOUBLE, INT, STRING, col, dec, fresh, history, segment, target

ID = col("id", BIGINT, nullable=False)
MISFIT = "(t.`a` IS NOT NULL AND NOT (try_cast(try_cast(t.`a` AS int) AS bigint) <=> t.`a`))"


def shaped(found: History) -> Shape:
    return shape_of(target(), found, found.newest, key=("id",), baseline=1)[0]


def stored(name: str, **more: Any) -> Segment:
    """Return a segment in the order of the usual key."""
    return segment(name, **({"sorted_by": ("id",)} | more))


def table(*rows: tuple[Column, ...]) -> Shape:
    return shaped(history(*rows))


NARROWED = table((ID, col("a", BIGINT)), (ID, col("a", BIGINT), col("b")), (ID, col("a", INT), col("b")))
QUESTION = Question(
    column="a", type="int", value="t.`a`", predicate=f"t.`__op` <> 'd' AND {MISFIT}", versions=(1, 2)
)  # fmt: skip


def test_a_narrowed_column_is_asked_about_in_the_rows_of_every_older_version() -> None:
    assert questions(NARROWED, [2, 1]) == (QUESTION,)


def test_nothing_is_asked_where_every_value_fits_or_there_was_none() -> None:
    assert questions(table((ID, col("a", INT)), (ID, col("a", STRING), col("b"))), [1]) == ()


def test_a_key_is_asked_about_in_deletes_too() -> None:
    (asked,) = questions(table((col("id", BIGINT), col("a")), (col("id", INT), col("a"))), [1])
    assert asked.predicate == MISFIT.replace("`a`", "`id`")


def test_the_question_in_sql() -> None:
    contents = Contents(base=(("base_s00000001", "base_s00000001"),))
    asked = count_misfits(target(), [QUESTION], contents)
    assert asked.values == {
        "table": "`lake`.`student`",
        "segments": "t.`segment` = 'base_s00000001'",
        "predicates": [f"t.`__schema_version` IN (1, 2) AND t.`__op` <> 'd' AND {MISFIT}"],
    }
    assert show_misfits(target(), QUESTION, contents, 5).values == {
        "table": "`lake`.`student`",
        "segments": "t.`segment` = 'base_s00000001'",
        "predicate": f"t.`__schema_version` IN (1, 2) AND t.`__op` <> 'd' AND {MISFIT}",
        "value": "t.`a`",
        "most": 5,
    }


def test_what_does_not_fit_is_counted_and_shown() -> None:
    findings = [Misfits(question=QUESTION, count=n, samples=("7", "8")).finding for n in (1, 2)]
    assert [(f.code, f.message) for f in findings] == [
        ("SS125", "column a: 1 value does not fit int: '7', '8'"),
        ("SS125", "column a: 2 values do not fit int: '7', '8'"),
    ]


def added(*encodings: Any, default: str, policies: dict[str, str] | None = None, first: bool = False) -> Shape:
    """Return a table whose column ``a`` a version added with a default, in the type that others gave it."""
    born = col("a", encodings[0], nullable=False, default=default)
    later = (col("a", encoding, nullable=False, default="1") for encoding in encodings[1:])
    rows = [(ID, column) for column in (born, *later)]
    found = history(*rows) if first else history((ID,), *rows)
    return shape_of(target(policies=policies or {}), found, found.newest, key=("id",), baseline=1)[0]


def test_a_default_that_older_rows_read_must_fit_too() -> None:
    assert unfit_defaults(added(BIGINT, INT, default="7"), [1, 2]) == ()
    (finding,) = unfit_defaults(added(BIGINT, INT, default=str(2**40)), [1, 2])
    assert finding.message == (
        "column a: the default that older rows read does not fit int: 1099511627776 does not fit"
    )
    (beyond,) = unfit_defaults(added(BOOLEAN, INT, DOUBLE, default="true"), [1])
    assert beyond.message.endswith("does not fit double: column a: boolean does not fit double")


UNFIT: dict[str, Any] = {"default": '"n/a"'}


@pytest.mark.parametrize(
    ("shape", "versions"),
    [
        (added(STRING, INT, **UNFIT), [2]),
        (added(STRING, INT, **UNFIT), []),
        (added(STRING, INT, **UNFIT, first=True), [1]),
        (added(STRING, INT, **UNFIT, policies={"add": "null"}), [1, 2]),
        (added(BOOLEAN, INT, DOUBLE, default="null"), [1, 2, 3]),
    ],
    ids=["older rows are gone", "no rows", "of the first version", "add: null", "there is none"],
)
def test_a_default_that_no_row_reads_holds_nothing(shape: Shape, versions: list[int]) -> None:
    assert unfit_defaults(shape, versions) == ()


def test_rows_that_read_null_in_place_of_a_default_are_rewritten_whether_it_fits_or_not() -> None:
    shape = added(STRING, INT, **UNFIT, policies={"add": "null"})
    old = stored(shard_name(1), columns=("id",), schema_version=1)
    assert outdated(shape, fresh().model_copy(update={"segments": (old,)})) == {old.name}


def test_rows_that_cannot_follow_over_two_changes_of_type_are_named() -> None:
    found = table((ID, col("a", BOOLEAN)), (ID, col("a", INT)), (ID, col("a", DOUBLE)))
    assert [(d.code, d.message) for d in stuck(found, [2, 1])] == [
        ("SS120", "column a: what rows of version 1 hold cannot become double (column a: boolean does not fit double)")
    ]
    assert stuck(found, [2]) == ()


def before(newest: Shape, version: int) -> Shape:
    """Return the table as it is under an earlier version."""
    found = newest.history
    at = found.at(version)
    assert at is not None
    return shape_of(target(), found, at, key=("id",), baseline=1)[0]


def detours(*encodings: Any, current: int = 2, rows: tuple[int, ...] = (1, 2)) -> list[str]:
    """Return what is told of a column ``a`` that had these types, where rows are of these versions."""
    newest = table(*((ID, col("a", encoding)) for encoding in encodings))
    return [f"{d.code}: {d.message}" for d in detoured(before(newest, current), newest, rows)]


def test_rows_that_would_read_otherwise_than_by_way_of_the_type_that_they_show_are_named() -> None:
    assert detours(BOOLEAN, INT, STRING) == [
        "SS127: column a: rows of version 1 still hold boolean; as string they would read otherwise than by way of int"
    ]
    assert detours(BOOLEAN, INT, STRING, rows=(2,)) == []


def test_a_type_that_the_table_never_had_comes_in_between_no_others() -> None:
    """A version that was held showed nothing: going back at the source ends the hold, and texts stay what they are."""
    assert detours(STRING, INT, STRING, current=1, rows=(1,)) == []


def test_what_is_the_same_either_way_waits_for_nothing() -> None:
    assert detours(INT, BIGINT, dec(20, 0)) == detours(STRING, INT, BIGINT) == detours(INT, INT, STRING) == []


def test_a_column_that_is_new_comes_from_nothing() -> None:
    newest = table((ID, col("a")), (ID, col("a"), col("b")))
    assert detoured(before(newest, 1), newest, [1]) == ()


@pytest.mark.parametrize(
    ("policies", "default", "told"),
    [({}, "true", ["SS127"]), ({"add": "null"}, "true", []), ({}, "null", [])],
    ids=["read", "add: null", "there is none"],
)
def test_a_default_that_older_rows_read_takes_the_same_way(
    policies: dict[str, str], default: str, told: list[str]
) -> None:
    newest = added(BOOLEAN, INT, STRING, default=default, policies=policies)
    shown = replace(before(newest, 3), fill_defaults=newest.fill_defaults)
    assert [d.code for d in detoured(shown, newest, [1])] == told


BEFORE = (ID, col("a", INT), col("b", STRING))
NOT_NULL = col("c", INT, nullable=False, default="7")


@pytest.mark.parametrize(
    ("after", "policies", "rewritten", "converted"),
    [
        ((*BEFORE, col("c")), {}, False, False),
        ((ID, col("b", STRING), col("a", INT, doc="says more")), {}, False, False),
        ((*BEFORE, NOT_NULL), {}, True, True),
        ((*BEFORE, NOT_NULL), {"add": "null"}, True, False),
        (BEFORE[:2], {}, True, False),
        (BEFORE[:2], {"drop": "keep"}, False, False),
        ((ID, col("a", BIGINT), col("b", STRING)), {}, True, True),
        ((ID, col("a", STRING), col("b", STRING)), {}, True, True),
    ],
    ids=["added", "other order", "filled", "unfilled", "dropped", "kept", "widened", "retyped"],
)
def test_only_rows_that_would_be_stored_otherwise_are_rewritten(
    after: tuple[Column, ...], policies: dict[str, str], rewritten: bool, converted: bool
) -> None:
    before, found = table(BEFORE), history(BEFORE, after)
    shape = shape_of(target(policies=policies), found, found.newest, key=("id",), baseline=1)[0]
    shards = [
        stored(shard_name(n), columns=tuple(name for name, _, _ in physical_columns(of)), schema_version=n)
        for n, of in enumerate((before, shape), start=1)
    ]
    manifest = fresh().model_copy(update={"segments": tuple(shards)})
    assert outdated(shape, manifest) == ({shards[0].name} if rewritten else set())
    shown = view_columns(RowSource(shape=shape, segment_versions=frozenset({1, 2})), Dialect.SPARK)
    assert any("CASE" in column.expression for column in shown) == converted


def test_files_that_carry_what_was_kept_once_are_rewritten_whatever_their_version_is() -> None:
    """A policy may change while the schema does not."""
    kept = stored(shard_name(1), columns=("id", "a", "b"), schema_version=2)
    shape = table(BEFORE, BEFORE[:2])
    assert outdated(shape, fresh().model_copy(update={"segments": (kept,)})) == {kept.name}


def test_rows_in_the_order_of_another_key_are_rewritten() -> None:
    found = history(BEFORE, (*BEFORE, col("c")))
    shape = shape_of(target(), found, found.newest, key=("id", "a"), baseline=1)[0]
    manifest = fresh().model_copy(update={"segments": (stored(shard_name(1), columns=("id", "a", "b")),)})
    assert outdated(shape, manifest) == {shard_name(1)}


def test_rows_that_another_version_stored_in_the_same_form_stay_converted_ones_go() -> None:
    segments = (stored("delta_00000001", schema_version=2), stored("delta_00000002", schema_version=3))
    assert to_rewrite(NARROWED, fresh().model_copy(update={"segments": segments})) == segments[:1]
