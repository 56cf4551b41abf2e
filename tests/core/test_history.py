from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given

from schemasync.core.encoding import Encoding, ListOf, MapOf
from schemasync.core.history import History, read_history, surviving
from schemasync.core.schema import Life
from tests.core.builders import BIGINT, INT, STRING, col, histories, history, rec, version
from tests.strategies import encodings


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


@given(histories())
def test_a_life_is_a_contiguous_run_of_versions_and_unique_in_each(found: History) -> None:
    where: dict[Life, list[int]] = {}
    for v in found.versions:
        assert len({c.life for c in v.columns}) == len(v.columns)
        for c in v.columns:
            where.setdefault(c.life, []).append(v.version)
    assert all(runs == list(range(life.since, life.since + len(runs))) for life, runs in where.items())


@given(histories())
def test_reading_a_history_again_changes_nothing(found: History) -> None:
    assert read_history(reversed(found.versions)) == found


def kept(first: Encoding, *later: Encoding) -> Encoding:
    return surviving(first, later)


def test_a_nested_member_that_was_gone_in_between_does_not_survive() -> None:
    whole, less = rec(a=INT, b=rec(x=INT, y=STRING)), rec(a=BIGINT, b=rec(y=STRING))
    assert kept(whole, less, whole) == rec(a=INT, b=rec(y=STRING))


def test_members_inside_arrays_and_map_values_do_not_survive_either() -> None:
    whole, less = rec(a=INT, b=INT), rec(a=INT)
    assert kept(ListOf(element=whole), ListOf(element=less)) == ListOf(element=less)
    assert kept(MapOf(key=STRING, value=whole), MapOf(key=STRING, value=less)) == MapOf(key=STRING, value=less)


def test_a_type_of_another_kind_takes_nothing_away() -> None:
    assert kept(rec(a=INT), STRING) == rec(a=INT)


@given(encodings())
def test_what_stays_the_same_survives_whole(encoding: Encoding) -> None:
    repeated: Iterable[Encoding] = [encoding, encoding]
    assert surviving(encoding, repeated) == encoding


def test_a_name_in_another_case_goes_on_and_so_does_a_member() -> None:
    found = history((col("ς"), col("State")), (col("\N{GREEK SMALL LETTER SIGMA}"), col("state")))
    assert [c.since for c in found.newest.columns] == [1, 1]
    assert surviving(rec(State=INT, b=INT), [rec(state=INT)]) == rec(State=INT)
