from __future__ import annotations

import pytest

from schemasync.core.moments import NEVER, Newest, never, newest_of
from schemasync.core.types import Primitive, Type


@pytest.mark.parametrize(
    ("type_", "least"),
    [(Primitive.STRING, ""), *((type_, NEVER) for type_ in (Primitive.BIGINT, Primitive.DATE, Primitive.TIMESTAMP))],
)
def test_a_null_counts_as_the_least_moment(type_: Type, least: str | int) -> None:
    assert never(type_) == least


def test_what_bounds_several_bounds_all_of_them() -> None:
    assert newest_of([]) is None
    assert newest_of([Newest("a", 9), Newest("b", 1), Newest("b", 3)]) == Newest("b", 3)
    assert newest_of([Newest("a"), Newest("b", 1)]) == Newest("b", 1)
    assert newest_of([Newest("b"), Newest("b", 1)]) == Newest("b")
    assert newest_of([Newest(3), Newest(NEVER)]) == Newest(3)
