from __future__ import annotations

from schemasync.core.moments import NEVER, Newest, never, newest_of


def test_a_null_counts_as_the_least_moment() -> None:
    assert (never(is_text=True), never(is_text=False)) == ("", NEVER)


def test_what_bounds_several_bounds_all_of_them() -> None:
    assert newest_of([]) is None
    assert newest_of([Newest("a", 9), Newest("b", 1), Newest("b", 3)]) == Newest("b", 3)
    assert newest_of([Newest("a"), Newest("b", 1)]) == Newest("b", 1)
    assert newest_of([Newest("b"), Newest("b", 1)]) == Newest("b")
    assert newest_of([Newest(3), Newest(NEVER)]) == Newest(3)
