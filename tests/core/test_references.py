from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.ports import RegisteredSchema
from schemasync.core.references import LONGEST_TRAIL, HeldSchema, Key, Reference, Trail, resolve, trail_text
from schemasync.errors import RegistryError


def held(text: str, *references: tuple[str, str], place: str = "") -> HeldSchema:
    """A version that refers to version 1 of subjects, each given as (name, subject)."""
    found = tuple(Reference(name=name, key=(subject, 1)) for name, subject in references)
    return HeldSchema(schema_id=len(text), text=text, references=found, place=place)


class Shelf(dict[str, HeldSchema]):
    """Version 1 of some subjects, and the trails by which they were asked for."""

    def __init__(self, **subjects: HeldSchema) -> None:
        super().__init__(subjects)
        self.asked: list[Trail] = []

    def fetch(self, trail: Trail) -> HeldSchema:
        self.asked.append(trail)
        return self[trail[-1][0]]

    def texts(self, subject: str) -> tuple[str, ...]:
        return resolve(subject, 1, self.fetch).references


def failure(question: Callable[[], object]) -> str:
    with pytest.raises(RegistryError) as caught:
        question()
    return str(caught.value)


def test_a_schema_without_references_is_only_fetched() -> None:
    assert resolve("s", 3, Shelf(s=held('"int"')).fetch) == RegisteredSchema(
        subject="s", version=3, schema_id=5, text='"int"'
    )


def test_what_is_needed_comes_before_what_needs_it_each_once() -> None:
    shelf = Shelf(
        order=held("order", ("Person", "person"), ("Address", "address")),
        person=held("person", ("Address", "address")),
        address=held("address"),
    )
    assert shelf.texts("order") == ("address", "person")


def chain(length: int) -> Shelf:
    """A schema behind which so many others stand, each behind the one before it."""
    inner = {f"s{n}": held(f"{n}", (f"S{n + 1}", f"s{n + 1}")) for n in range(length)}
    return Shelf(**inner, **{f"s{length}": held("last")})


def test_many_schemas_may_stand_behind_each_other_but_not_any_number() -> None:
    assert len(chain(LONGEST_TRAIL).texts("s0")) == LONGEST_TRAIL
    for longer in (chain(LONGEST_TRAIL + 1), chain(10_000)):
        message = failure(partial(longer.texts, "s0"))
        assert message.startswith(
            "s0 version 1 -> ... -> s101 version 1: more than 100 schemas stand behind each other"
        )


def test_each_version_is_fetched_once_with_the_trail_that_led_to_it_first() -> None:
    shelf = Shelf(a=held("a", ("B", "b"), ("C", "c")), b=held("b", ("C", "c")), c=held("c"))
    shelf.texts("a")
    assert [trail_text(trail) for trail in shelf.asked] == [
        "a version 1",
        "a version 1 -> b version 1",
        "a version 1 -> b version 1 -> c version 1",
    ]


def test_equal_contents_are_told_once_as_they_came_first() -> None:
    shelf = Shelf(s=held("s", ("T", "t"), ("T", "u")), t=held('{"b": 1, "a": 2}'), u=held('{"a":2,"b":1}'))
    assert shelf.texts("s") == ('{"b": 1, "a": 2}',)


@pytest.mark.parametrize("unpinned", ["order", "person", "address", None])
def test_types_are_pinned_where_every_version_that_refers_to_one_says_which(unpinned: str | None) -> None:
    shelf = Shelf(order=held("order", ("P", "person")), person=held("person", ("A", "address")), address=held("a"))
    if unpinned is not None:
        shelf[unpinned] = replace(shelf[unpinned], unpinned=True)
    assert resolve("order", 1, shelf.fetch).unpinned is (unpinned is not None)


def test_two_names_may_stand_for_one_version() -> None:
    assert Shelf(s=held("s", ("T", "t"), ("U", "t")), t=held("t")).texts("s") == ("t",)


def test_one_name_with_two_contents_is_refused_with_both_trails() -> None:
    shelf = Shelf(s=held("s", ("T", "t"), ("U", "u")), t=held("1"), u=held("u", ("T", "v")), v=held("2"))
    assert failure(lambda: shelf.texts("s")) == (
        "s version 1 -> u version 1 -> v version 1: the reference 'T' stands for two different schemas: "
        "another one came by s version 1 -> t version 1. Make the references agree on one version."
    )


@pytest.mark.parametrize(("place", "shown"), [("", ""), ("dir/b.avsc", "dir/b.avsc: ")])
def test_a_circle_is_refused_where_it_closes(place: str, shown: str) -> None:
    shelf = Shelf(a=held("a", ("B", "b")), b=held("b", ("A", "a"), place=place))
    assert failure(lambda: shelf.texts("a")) == (
        f"{shown}a version 1 -> b version 1 -> a version 1: the references of a schema lead back to it. "
        "Types that need each other belong into one schema."
    )


def test_a_circle_that_the_asked_version_is_not_part_of_is_refused_too() -> None:
    shelf = Shelf(a=held("a", ("B", "b")), b=held("b", ("C", "c")), c=held("c", ("B", "b")))
    assert "a version 1 -> b version 1 -> c version 1 -> b version 1" in failure(lambda: shelf.texts("a"))


@st.composite
def shelves_without_circles(draw: st.DrawFn) -> Shelf:
    """Subjects s0, s1, ... of which each refers to some that have a smaller number."""
    count = draw(st.integers(1, 7))
    needs = [draw(st.sets(st.integers(0, number - 1))) if number else set() for number in range(count)]
    return Shelf(**{f"s{i}": held(f"s{i}", *((f"N{n}", f"s{n}") for n in sorted(needs[i]))) for i in range(count)})


def needed(shelf: Shelf, subject: str) -> set[str]:
    direct = {reference.key[0] for reference in shelf[subject].references}
    return direct.union(*(needed(shelf, one) for one in direct))


@given(shelves_without_circles())
def test_the_result_is_all_that_is_needed_each_after_its_own_needs(shelf: Shelf) -> None:
    subject = f"s{len(shelf) - 1}"
    order = shelf.texts(subject)
    in_order = all(needed(shelf, one) <= set(order[:place]) for place, one in enumerate(order))
    assert (sorted(order), in_order) == (sorted(needed(shelf, subject)), True)


def test_a_trail_reads_from_the_asked_version_on() -> None:
    trail: tuple[Key, ...] = (("a", 1), ("b", 3))
    assert trail_text(trail) == "a version 1 -> b version 3"
