from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from schemasync.core.diff import retypes
from schemasync.core.encoding import Encoding, ListOf, MapOf, Member, Record
from schemasync.core.history import History, read_history
from schemasync.core.schema import Life
from tests.core.builders import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MICROS,
    MILLIS,
    STRING,
    col,
    histories,
    history,
    rec,
    union,
    version,
)


def lives(found: History) -> list[dict[str, str]]:
    """Return, per version, name -> life as ``name@since``."""
    return [{c.name: f"{c.life.name}@{c.life.since}" for c in v.columns} for v in found.versions]


def test_a_column_keeps_its_life_while_its_name_stays() -> None:
    assert lives(history((col("a"),), (col("a", BIGINT),))) == [{"a": "a@1"}, {"a": "a@1"}]


def test_a_name_that_comes_back_begins_a_new_life() -> None:
    found = history((col("a"), col("b")), (col("b"),), (col("a"), col("b")))
    assert lives(found)[2] == {"a": "a@3", "b": "b@1"}


def test_an_alias_carries_the_life_to_the_new_name() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)),), (col("b", aliases=("a",)),))
    assert lives(found) == [{"a": "a@1"}, {"b": "a@1"}, {"b": "a@1"}]


def test_aliases_do_not_count_where_the_configuration_says_so() -> None:
    assert lives(history((col("a"),), (col("b", aliases=("a",)),), aliases=False))[1] == {"b": "b@2"}


def test_a_configured_rename_carries_the_life_whatever_its_case() -> None:
    assert lives(history((col("Old"),), (col("New"),), renames={"new": "OLD"}))[1] == {"New": "old@1"}


def test_a_rename_counts_in_every_version_that_brings_the_new_name() -> None:
    found = history((col("a"),), (col("b"),), (col("a"),), (col("b"),), renames={"b": "a"})
    assert lives(found) == [{"a": "a@1"}, {"b": "a@1"}, {"a": "a@3"}, {"b": "a@3"}]


def test_an_alias_of_a_column_that_is_still_there_is_no_rename() -> None:
    found = history(
        (col("a"), col("b")), (col("b", aliases=("a",)), col("a", aliases=("b",)), col("c", aliases=("a",)))
    )
    assert lives(found)[1] == {"b": "b@1", "a": "a@1", "c": "c@2"}


PRICES = ((col("price"), col("new_price")), (col("price"), col("old_price")), (col("old_price"), col("price")))


def test_configured_renames_may_pass_names_on() -> None:
    """All of them together say where each column of the version comes from."""
    found = history(*PRICES, renames={"Price": "new_price", "old_price": "PRICE"})
    assert lives(found)[1:] == [{"price": "new_price@1", "old_price": "price@1"}] * 2


@pytest.mark.parametrize(
    "renames",
    [{"price": "new_price"}, {"old_price": "price"}, {"price": "gone", "old_price": "price"}],
    ids=["where would price go", "where would price come from", "from no column"],
)
def test_configured_renames_onto_a_name_that_is_still_there_have_to_say_all(renames: dict[str, str]) -> None:
    assert lives(history(*PRICES, renames=renames))[1] == {"price": "price@1", "old_price": "old_price@2"}


def test_a_configured_rename_is_none_where_both_names_go_on() -> None:
    """One is copied into the other, version by version; and a name that is free again may be another column's."""
    renames = {"b": "a"}
    copied = history((col("a"),), (col("a"), col("b")), (col("b"),), renames=renames)
    assert lives(copied)[1:] == [{"a": "a@1", "b": "b@2"}, {"b": "b@2"}]
    again = history((col("a"),), (col("b"),), (col("b"), col("a")), (col("b"),), renames=renames)
    assert lives(again)[2:] == [{"b": "a@1", "a": "a@3"}, {"b": "a@1"}]


A, B = col("a"), col("b")
SWAPPED = (col("a", aliases=("b",)), col("b", aliases=("a",)))


@pytest.mark.parametrize("aliases", [True, False])
def test_configured_renames_in_a_circle_count_in_the_version_whose_aliases_say_the_same(*, aliases: bool) -> None:
    renames = {"a": "b", "b": "a"}
    found = history((A, B), (A, B, col("c")), SWAPPED, SWAPPED, (A, B), renames=renames, aliases=aliases)
    assert [{n: v[n] for n in "ab"} for v in lives(found)] == [
        *[{"a": "a@1", "b": "b@1"}] * 2,
        *[{"a": "b@1", "b": "a@1"}] * 3,
    ]
    half = history((A, B), (SWAPPED[0], B), renames=renames)
    assert lives(half)[1] == {"a": "a@1", "b": "b@1"}
    assert lives(history((A,), SWAPPED, renames=renames))[1] == {"a": "a@1", "b": "b@2"}


def test_a_circle_of_configured_renames_is_not_entered_from_outside() -> None:
    found = history((A, B), (*SWAPPED, col("c")), renames={"c": "A", "a": "b", "b": "a"})
    assert lives(found)[1] == {"a": "b@1", "b": "a@1", "c": "c@2"}


def test_a_configured_rename_comes_before_any_alias() -> None:
    found = history((A,), (col("b", aliases=("a",)), col("c")), renames={"c": "a"})
    assert lives(found)[1] == {"b": "b@2", "c": "a@1"}


def test_configured_renames_pass_names_of_members_on() -> None:
    rows = [(col("s", rec(price=INT, new_price=INT)),), (col("s", rec(price=INT, old_price=INT)),)]
    found = history(*rows, renames={"s.price": "s.new_price", "s.old_price": "s.price"})
    assert members(found, 2) == [("price", "new_price", 1), ("old_price", "price", 1)]


def test_of_two_columns_that_claim_one_ancestor_the_first_has_its_life() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)), col("c", aliases=("a",))))
    assert lives(found)[1] == {"b": "a@1", "c": "c@2"}


def test_a_new_column_may_take_the_old_name_of_a_renamed_one() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)),), (col("b", aliases=("a",)), col("a")))
    assert lives(found)[2] == {"b": "a@1", "a": "a@3"}


def test_a_rename_onto_a_name_of_earlier_times_keeps_the_renamed_columns_life() -> None:
    found = history((col("a"), col("b")), (col("a"),), (col("b", aliases=("a",)),))
    assert lives(found)[2] == {"b": "a@1"}


def test_another_case_is_the_same_column() -> None:
    assert lives(history((col("State"),), (col("state"),))) == [{"State": "state@1"}, {"state": "state@1"}]


def test_versions_may_come_in_any_order_and_with_gaps() -> None:
    found = read_history([version(7, col("a")), version(2, col("a")), version(4, col("b"))])
    assert [(v.version, v.columns[0].since) for v in found.versions] == [(2, 2), (4, 4), (7, 7)]


def test_a_history_answers_by_version_and_life() -> None:
    found = history((col("a"),), (col("a", BIGINT), col("b")))
    a, b = Life(name="a", since=1), Life(name="b", since=2)
    assert (found.newest.version, found.at(2), found.at(3)) == (2, found.versions[1], None)
    assert found.between(2, 9) == found.versions[1:]
    assert [found.column(a, n) for n in (1, 2, 3)] == [found.versions[0].columns[0], found.versions[1].columns[0], None]
    assert (found.column(b, 1), found.born(b)) == (None, found.versions[1].columns[1])


@given(histories(kinds=True))
def test_a_life_is_a_contiguous_run_of_versions_and_unique_in_each(found: History) -> None:
    where: dict[Life, list[int]] = {}
    for v in found.versions:
        assert len({c.life for c in v.columns}) == len(v.columns)
        for c in v.columns:
            where.setdefault(c.life, []).append(v.version)
    assert all(runs == list(range(life.since, life.since + len(runs))) for life, runs in where.items())


@given(histories(kinds=True))
def test_reading_a_history_again_changes_nothing(found: History) -> None:
    assert read_history(reversed(found.versions)) == found


def members(found: History, version: int) -> list[tuple[str, str, int]]:
    """Return (name, origin, since) of the members of the first column."""
    at = found.at(version)
    assert at is not None
    encoding = at.columns[0].encoding
    while not isinstance(encoding, Record):
        assert isinstance(encoding, ListOf | MapOf)
        encoding = encoding.element if isinstance(encoding, ListOf) else encoding.value
    return [(m.name, *m.life) for m in encoding.members]


SHAPES: list[Callable[[Encoding], Encoding]] = [
    lambda r: r,
    lambda r: ListOf(element=r),
    lambda r: MapOf(key=STRING, value=ListOf(element=r)),
]


@pytest.mark.parametrize("shaped", SHAPES)
def test_a_member_that_was_gone_in_between_begins_a_new_life(shaped: Callable[[Encoding], Encoding]) -> None:
    rows = [
        (col("s", shaped(rec(x=INT, y=INT))),),
        (col("s", shaped(rec(x=INT))),),
        (col("s", shaped(rec(x=INT, y=INT))),),
    ]
    assert members(history(*rows), 3) == [("x", "x", 1), ("y", "y", 3)]


@pytest.mark.parametrize("between", [STRING, ListOf(element=rec(x=INT)), union(INT, STRING)])
@pytest.mark.parametrize("shaped", SHAPES)
def test_members_go_on_where_something_else_stood_in_their_place_for_a_while(
    shaped: Callable[[Encoding], Encoding], between: Encoding
) -> None:
    rows = [(col("s", shaped(one)),) for one in (rec(x=INT), between, rec(x=INT))]
    assert members(history(*rows), 3) == [("x", "x", 1)]
    inside = history(*((col("s", shaped(rec(m=one))),) for one in (rec(x=INT), between, rec(x=INT))))
    assert inside.versions[2].columns == inside.versions[0].columns


def test_branches_go_on_where_something_else_stood_in_the_place_of_their_union_for_a_while() -> None:
    rows = [(col("u", one),) for one in (union(STRING, INT), STRING, union(INT, STRING))]
    assert members(history(*rows), 3) == [("member0", "member1", 1), ("member1", "member0", 1)]


def test_a_member_that_was_gone_before_something_else_stood_there_begins_a_new_life() -> None:
    rows = [(col("s", one),) for one in (rec(x=INT, y=INT), rec(x=INT), STRING, rec(x=INT, y=INT))]
    assert members(history(*rows), 4) == [("x", "x", 1), ("y", "y", 4)]


def test_members_of_a_column_whose_life_ended_in_between_are_new() -> None:
    rows = [(col("s", rec(x=INT)),), (col("s", STRING),), (col("s", rec(x=INT)),)]
    assert members(history(*rows, splits=retypes), 3) == [("x", "x", 3)]


def aliased(name: str, *aliases: str) -> Record:
    return Record(members=(Member(name=name, encoding=INT, aliases=aliases),))


def test_a_member_follows_its_alias_unless_aliases_are_off() -> None:
    rows = [(col("s", aliased("zip")),), (col("s", aliased("postcode", "ZIP")),)]
    found = [members(history(*rows, aliases=on), 2) for on in (True, False)]
    assert found == [[("postcode", "zip", 1)], [("postcode", "postcode", 2)]]


def test_a_member_follows_what_the_configuration_says_of_its_path() -> None:
    rows = [(col("s", ListOf(element=rec(zip=INT))),), (col("S", ListOf(element=rec(postcode=INT))),)]
    found = history(*rows, renames={"s.element.postcode": "s.element.zip"})
    assert members(found, 2) == [("postcode", "zip", 1)]


def test_a_member_of_a_column_that_is_new_is_new_too() -> None:
    rows = [(col("a", rec(x=INT)),), (col("b", INT),), (col("a", rec(x=INT)),)]
    assert members(history(*rows), 3) == [("x", "x", 3)]


def test_the_branches_of_a_union_are_followed_wherever_they_stand() -> None:
    rows = [(col("u", union(INT, STRING)),), (col("u", union(DATE, STRING, INT)),)]
    assert members(history(*rows), 2) == [
        ("member0", "member0", 2),
        ("member1", "member1", 1),
        ("member2", "member0", 1),
    ]


def test_a_branch_that_another_one_holds_goes_on_as_that() -> None:
    rows = [(col("u", union(STRING, INT, FLOAT)),), (col("u", union(BIGINT, STRING, DOUBLE)),)]
    assert [origin for _, origin, _ in members(history(*rows), 2)] == ["member1", "member0", "member2"]


def test_a_branch_of_the_same_name_goes_on_whatever_it_means_now() -> None:
    def branches(meaning: Encoding) -> Record:
        return Record(members=(Member(name="member0", encoding=meaning, branch="long"),), union=True)

    assert members(history((col("u", branches(MILLIS)),), (col("u", branches(MICROS)),)), 2) == [
        ("member0", "member0", 1)
    ]


def test_records_lists_and_maps_in_a_union_are_told_apart_by_what_they_are() -> None:
    one, other = Record(members=rec(x=INT).members, name="One"), Record(members=rec(y=INT).members, name="Other")
    listed = ListOf(element=INT)
    found = history((col("u", union(one, other, listed)),), (col("u", union(listed, other, one)),))
    assert [origin for _, origin, _ in members(found, 2)] == ["member2", "member1", "member0"]


def test_branches_that_look_alike_are_told_by_their_names() -> None:
    def cards(*names: str) -> Record:
        fields = rec(number=STRING, holder=STRING).members
        branches = (
            Member(name=f"member{n}", encoding=Record(members=fields), branch=name) for n, name in enumerate(names)
        )
        return Record(members=tuple(branches), union=True)

    rows = [cards("Card", "Iban"), cards("Cash", "Iban", "Card"), cards("shop.Cash", "shop.Iban", "shop.Card")]
    found = history(*((col("u", encoding),) for encoding in rows))
    assert [(origin, since) for _, origin, since in members(found, 2)] == [
        ("member0", 2),
        ("member1", 1),
        ("member0", 1),
    ]
    # All names are new, as with another namespace: their order tells.
    assert members(found, 3) == members(found, 2)


def test_a_branch_in_the_place_of_another_is_a_new_one() -> None:
    one, other = rec(x=INT).members, rec(y=INT).members
    rows = [
        Record(
            members=(
                Member(name="member0", encoding=Record(members=one), branch="A"),
                Member(name="member1", encoding=Record(members=other), branch=name),
            ),
            union=True,
        )
        for name in ("D", "C")
    ]
    assert members(history(*((col("u", row),) for row in rows)), 2) == [
        ("member0", "member0", 1),
        ("member1", "member1", 2),
    ]


def test_a_union_that_stays_as_it_is_does_not_split() -> None:
    rows = (union(INT, STRING), union(DATE, INT, STRING), union(DATE, INT, STRING))
    found = history(*((col("u", encoding), col("n", INT)) for encoding in rows), splits=retypes)
    assert [v["u"] for v in lives(found)] == ["u@1"] * 3


def test_a_column_whose_encoding_splits_begins_a_new_life_and_the_old_one_is_known() -> None:
    found = history((col("a", INT),), (col("A", STRING),), splits=lambda one, other: one != other)
    column = found.newest.columns[0]
    assert (column.life, found.replaced(column)) == (Life(name="a", since=2), found.versions[0].columns[0])


def test_nothing_was_replaced_by_a_column_that_was_added() -> None:
    found = history((col("a"),), (col("b"),), (col("a"), col("b")))
    assert [found.replaced(c) for v in found.versions for c in v.columns] == [None] * 4


@given(histories(kinds=True))
def test_members_of_one_record_have_lives_of_their_own(found: History) -> None:
    for encoding in (c.encoding for v in found.versions for c in v.columns):
        if isinstance(encoding, Record):
            assert len({m.life for m in encoding.members}) == len(encoding.members)
