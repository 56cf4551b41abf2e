from __future__ import annotations

from collections.abc import Collection

import pytest

from schemasync.core.groups import line_of
from schemasync.core.ports import RegisteredSchema


def forked(*groups: str) -> list[RegisteredSchema]:
    """Return versions 1, 2, ... of these groups."""
    return [
        RegisteredSchema(subject="s-value", version=n, schema_id=n, text="", group=group)
        for n, group in enumerate(groups, start=1)
    ]


def followed(
    *groups: str, wanted: str | None = None, current: int | None = None, applied: Collection[int] = ()
) -> tuple[list[int], list[str]]:
    line = line_of(forked(*groups), wanted=wanted, current=current, applied=applied)
    return [v.version for v in line.versions], [d.message for d in line.findings]


@pytest.mark.parametrize("current", [None, 2])
def test_a_subject_without_groups_is_one_line(current: int | None) -> None:
    assert followed("", "", "", current=current) == ([1, 2, 3], [])
    assert followed() == ([], [])


def test_a_new_table_follows_the_group_that_came_up_last_with_its_past_before_the_fork() -> None:
    assert followed("1", "1", "2", "2") == ([1, 2, 3, 4], [])


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        (("1", "2", "1", "3"), [1, 2, 4]),
        (("1", "1", "2", "1", "2", "3", "2", "1", "3"), [1, 2, 3, 5, 6, 9]),
        (("", "1", "", "1", "2"), [1, 2, 4, 5]),
    ],
)
def test_what_an_older_group_got_meanwhile_is_not_between_two_versions_of_a_line(
    groups: tuple[str, ...], line: list[int]
) -> None:
    """Else a column that the older group lacks would end there, and be another one afterwards."""
    assert followed(*groups, wanted=groups[-1]) == (line, [])


@pytest.mark.parametrize(
    ("groups", "current", "line"),
    [
        (("1", "2", "1", "3"), 2, [1, 2, 4]),
        (("1", "2", "1", "3", "1"), 3, [1, 3, 4]),
        (("1", "2", "1", "3"), 1, [1, 2, 4]),
    ],
)
def test_a_table_takes_its_own_past_along_to_a_group_that_forked_later(
    groups: tuple[str, ...], current: int, line: list[int]
) -> None:
    assert followed(*groups, wanted="3", current=current) == (line, [])


@pytest.mark.parametrize("applied", [(1, 3, 4), (1, 2, 4), (1, 2, 3, 4)])
def test_what_a_table_went_through_stays_its_past(applied: tuple[int, ...]) -> None:
    assert followed("1", "2", "1", "3", "1", "3", wanted="3", current=4, applied=applied) == ([*applied, 6], [])


def test_where_nobody_knows_what_a_table_went_through_it_is_what_a_new_one_would_have() -> None:
    for applied in ((), (1, 3)):
        assert followed("1", "2", "1", "3", wanted="3", current=4, applied=applied) == ([1, 2, 4], [])
    # The copy of version 1 was deleted.
    assert followed("1", "1", "2", wanted="1", current=2, applied=(2,)) == ([1, 2], [])


def test_a_table_goes_on_in_its_own_group_and_the_fork_is_told() -> None:
    told = "s-value: version 3 belongs to compatibility group '2', the table follows compatibility group '1'"
    assert followed("1", "1", "2", current=2) == ([1, 2], [told])
    told = "s-value: version 4 belongs to compatibility group '1', the table follows compatibility group '2'"
    assert followed("1", "1", "2", "1", current=3) == ([1, 2, 3], [told])


def test_where_the_configuration_says_which_group_nothing_has_to_be_told() -> None:
    assert followed("1", "1", "2", "1", "2", wanted="2", current=3) == ([1, 2, 3, 5], [])
    assert followed("1", "1", "2", "1", "2", wanted="1", current=2) == ([1, 2, 4], [])


def test_a_table_from_before_the_fork_moves_to_the_group_that_is_wanted() -> None:
    assert followed("1", "2", "1", "2", wanted="2", current=1) == ([1, 2, 4], [])
    assert followed("", "1", "2", wanted="2", current=1) == ([1, 2, 3], [])


@pytest.mark.parametrize(
    ("groups", "wanted", "current", "line", "told"),
    [
        (
            ("1", "2", "1", "2"), "2", 3, [1, 3],
            "s-value: the table has version 3 of compatibility group '1', which compatibility group '2' does not go on "
            "from",
        ),
        (
            ("1", "2", "1"), "1", 2, [1, 2],
            "s-value: the table has version 2 of compatibility group '2', which compatibility group '1' does not go on "
            "from",
        ),
        (
            ("1", "", "1"), "1", 2, [1, 2],
            "s-value: the table has version 2 of no compatibility group, which compatibility group '1' does not go on "
            "from",
        ),
    ],
)  # fmt: skip
def test_a_table_past_the_fork_stays_in_its_group_and_that_is_told(
    groups: tuple[str, ...], wanted: str, current: int, line: list[int], told: str
) -> None:
    assert followed(*groups, wanted=wanted, current=current) == (line, [told])


def test_the_fix_names_the_groups_that_the_table_can_follow() -> None:
    (before,), (past,) = (
        line_of(forked(*groups), wanted=None, current=current).findings
        for groups, current in ((("1", "2"), 1), (("1", "2", "1", "2"), 3))
    )
    assert (before.fix, past.fix) == (
        'Say which to follow: compatibility_group: "2" or "1".',
        'Stay: compatibility_group: "1". To follow the other group the table has to be made anew.',
    )


def test_a_wanted_group_counts_also_where_nobody_knows_what_the_table_has() -> None:
    assert followed("1", "2", "1", wanted="2", current=9) == ([1, 2], [])


def test_versions_of_other_groups_are_kept_apart() -> None:
    line = line_of(forked("1", "2", "1"), wanted="1", current=None)
    assert [v.version for v in line.others] == [2]


def test_a_group_that_no_version_has_is_told_with_those_there_are() -> None:
    told = "no version belongs to the compatibility group '3' (there are: none, 1)"
    assert followed("", "1", wanted="3") == ([1, 2], [told])


def test_a_table_that_is_told_to_follow_no_group_there_is_keeps_its_line() -> None:
    (told,) = followed("1", "2", "1", wanted="3", current=2)[1]
    assert followed("1", "2", "1", wanted="3", current=2) == ([1, 2], [told])


def test_versions_of_no_group_are_a_group_of_their_own() -> None:
    told = "s-value: version 2 belongs to no compatibility group, the table follows compatibility group '1'"
    assert followed("1", "", current=1) == ([1], [told])
