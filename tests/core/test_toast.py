from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from schemasync.core.admission import UnsentRule
from schemasync.core.diagnostics import diagnose
from schemasync.core.encoding import Encoding, ListOf, MapOf, shown_type
from schemasync.core.history import History
from schemasync.core.names import Dialect
from schemasync.core.shape import Shape, shape_of
from schemasync.core.toast import (
    asked_placeholders,
    carried_columns,
    left_unsent,
    unknown_values,
    unsent_rule,
    unsent_sql,
)
from schemasync.core.types import Primitive
from schemasync.core.view import RowSource, view_columns
from tests.core.builders import BIGINT, BINARY, DATE, INT, STRING, col, histories, history, segment, target

SPARK = Dialect.SPARK
LARGE: dict[str, Encoding] = {
    "v": STRING,
    "b": BINARY,
    "l": ListOf(element=STRING),
    "i": ListOf(element=INT),
    "m": MapOf(key=STRING, value=STRING),
}
ROW = (col("id"), *(col(name, encoding) for name, encoding in LARGE.items()), col("n", ListOf(element=DATE)))
DOCUMENTS = history(ROW)


def shape(found: History = DOCUMENTS, *, keys: tuple[str, ...] = ("id",)) -> Shape:
    to = target(keys=keys, insert_only=not keys)
    return shape_of(to, found, found.newest, key=None, baseline=1)[0]


def source(found: History, *versions: int, keys: tuple[str, ...] = ("id",)) -> RowSource:
    return RowSource(shape=shape(found, keys=keys), segment_versions=frozenset(versions))


def changed(found: RowSource, *toasted: str) -> list[str]:
    """Return the names of the columns that carry."""
    carried = carried_columns(found, frozenset(toasted), ["?"], SPARK)
    return [c.name for c, plain in zip(carried, view_columns(found, SPARK), strict=True) if c != plain]


TYPED = tuple((name, shown_type(encoding)) for name, encoding in LARGE.items())


@pytest.mark.parametrize("carry", [True, False])
def test_a_rule_names_the_columns_that_can_have_a_placeholder(carry: bool) -> None:
    to = target(toast="carry" if carry else "null", toast_placeholder="?")
    assert unsent_rule(to, shape()) == UnsentRule(placeholders=("?",), carry=carry, columns=TYPED)


def test_a_key_column_never_has_a_placeholder() -> None:
    found = unsent_rule(target(), shape(keys=("id", "v")))
    assert found is not None
    assert [name for name, _ in found.columns] == ["b", "l", "i", "m"]


@pytest.mark.parametrize(("toast", "keys"), [("placeholder", ("id",)), ("placeholder", ()), ("carry", ())])
def test_placeholders_are_left_alone_where_policy_says_so_or_rows_have_no_history(
    toast: str, keys: tuple[str, ...]
) -> None:
    assert unsent_rule(target(toast=toast), shape(keys=keys)) is None


def test_null_needs_no_key() -> None:
    assert unsent_rule(target(toast="null"), shape(keys=())) is not None


@pytest.mark.parametrize("dialect", Dialect)
def test_only_an_update_has_placeholders(dialect: Dialect) -> None:
    found = unsent_sql("x", Primitive.STRING, operation="o", placeholders=["?"], dialect=dialect)
    assert found == "o = 'u' AND x = '?'"


def test_each_text_that_was_ever_set_is_asked_for() -> None:
    found = unsent_sql("x", Primitive.STRING, operation="o", placeholders=["?", "!"], dialect=SPARK)
    assert found == "o = 'u' AND (x = '?' OR x = '!')"


@pytest.mark.parametrize(
    ("told", "asked"),
    [(set(), ("?",)), ({None}, ("?",)), ({"!"}, ("!",)), ({"!", None}, ("!", "?")), ({"?", None}, ("?",))],
)
def test_rows_are_asked_for_the_text_under_which_they_were_admitted(
    told: set[str | None], asked: tuple[str, ...]
) -> None:
    assert asked_placeholders(target(toast_placeholder="?"), told) == asked


def test_the_newest_row_that_says_something_answers() -> None:
    (_, column, *_) = carried_columns(source(DOCUMENTS, 1), {"v"}, ["?"], SPARK)
    assert column.expression == (
        "first_value(CASE WHEN t.`__op` <> 'd' THEN t.`v` END) OVER (PARTITION BY t.`id` "
        "ORDER BY CASE WHEN t.`__op` = 'u' AND t.`v` = '?' THEN 1 ELSE 0 END, t.`__seq1` IS NULL, t.`__seq1` DESC, "
        "t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment` "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )


YOUNGER = history((col("id"),), (col("id"), col("v", STRING), col("w", STRING, nullable=False, default='"x"')))
AGAIN = history((col("id"), col("v", STRING)), (col("id"),), (col("id"), col("v", STRING)))
RETYPED = history((col("id"), col("v", ListOf(element=INT))), (col("id"), col("v", ListOf(element=BIGINT))))


def test_a_null_of_a_column_that_came_later_says_nothing() -> None:
    """Nor does what a delete has in it say that the value is unknown."""
    carried = carried_columns(source(YOUNGER, 1, 2), {"v"}, ["?"], SPARK)[1].expression
    window = (
        "OVER (PARTITION BY t.`id` "
        "ORDER BY CASE WHEN t.`__op` = 'u' AND t.`v` = '?' THEN 1 ELSE 0 END, t.`__seq1` IS NULL, t.`__seq1` DESC, "
        "t.`__offset` IS NULL, t.`__offset` DESC, t.`__admitted_ms` IS NULL, t.`__admitted_ms` DESC, t.`segment` "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    assert carried == (
        f"CASE WHEN first_value(CASE WHEN t.`__op` <> 'd' AND t.`v` IS NULL THEN 1 END) {window} = 1 THEN t.`v` "
        f"ELSE first_value(CASE WHEN t.`__op` <> 'd' THEN t.`v` END) {window} END"
    )


@pytest.mark.parametrize(
    ("found", "fills", "younger"),
    [
        (DOCUMENTS, True, set()),
        (YOUNGER, True, {"v"}),
        (YOUNGER, False, {"v", "w"}),
        (AGAIN, True, {"v__2"}),
        (RETYPED, True, set()),
    ],
)
def test_a_null_answers_where_no_row_from_before_the_column_reads_it(
    found: History, *, fills: bool, younger: set[str]
) -> None:
    """A default that rows from before read is an answer, and so is what a column held before its type changed."""
    rule = unsent_rule(target(), replace(shape(found), fill_defaults=fills))
    assert rule is not None
    assert rule.younger == younger


def test_a_table_that_is_older_than_the_versions_that_are_left_may_have_rows_from_before_them() -> None:
    found = History(versions=YOUNGER.versions[1:])
    rule = unsent_rule(target(), shape(found))
    assert rule is not None
    assert rule.younger == {"v"}


def test_only_columns_with_placeholders_carry_and_only_under_a_key() -> None:
    assert (changed(source(DOCUMENTS), "v", "l"), changed(source(DOCUMENTS, keys=()), "v")) == (["v", "l"], [])


def test_a_column_carries_under_whatever_name_its_placeholders_were_written() -> None:
    found = history((col("id"), col("v", STRING)), (col("id"), col("w", STRING, aliases=("v",))))
    assert changed(source(found, 1, 2), "v") == ["w"]


def test_the_new_life_of_a_dropped_column_does_not_carry_for_the_old_one() -> None:
    found = history((col("id"), col("v", STRING)), (col("id"),), (col("id"), col("v", STRING)))
    assert (changed(source(found, 1, 3), "v"), changed(source(found, 1, 3), "v__2")) == ([], ["v"])


def test_a_column_whose_type_has_no_placeholder_does_not_carry() -> None:
    assert changed(source(DOCUMENTS), "n", "gone") == []


@given(histories())
def test_without_placeholders_every_column_reads_as_it_is(found: History) -> None:
    rows = source(found, 1, keys=(found.newest.columns[0].name,))
    assert carried_columns(rows, frozenset(), ["?"], SPARK) == view_columns(rows, SPARK)


def test_a_fold_is_asked_about_the_columns_that_had_placeholders() -> None:
    found = left_unsent(shape(), {"v", "gone"}, ["?"])
    assert found == {"v": "`__op` = 'u' AND `v` = '?'"}


def test_a_fold_is_asked_about_a_column_whose_values_stood_in_another_one() -> None:
    row = (col("id"), col("i", ListOf(element=INT)))
    moved = history(row, (col("id"), col("i", ListOf(element=BIGINT))))
    assert list(left_unsent(shape(moved), {"i"}, ["?"])) == ["i__2"]


def test_a_base_with_placeholders_is_told() -> None:
    shards = (segment("base_s00000000", toasted=("v",)), segment("base_s00000001", toasted=("b", "v")))
    message = "lake.student: b, v: no admitted event has the value of some rows; they show the placeholder"
    assert list(unknown_values(target(database="lake"), shards)) == [diagnose("SS320", message)]


def test_a_base_without_placeholders_is_not_mentioned() -> None:
    assert list(unknown_values(target(), (segment("base_s00000000"),))) == []
