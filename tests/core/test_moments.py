from __future__ import annotations

from typing import Any

import pytest

from schemasync.core.layout import ordering_columns
from schemasync.core.moments import NEVER, Newest, comparable, never, newest_of, ordering_types
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive, Type

TEXT, NUMBER = (Primitive.STRING, Primitive.BIGINT), (Primitive.BIGINT, Primitive.BIGINT)


def test_every_ordering_column_has_a_type() -> None:
    file = OrderingField(path=("source", "file"), type=Primitive.STRING)
    for ordering in ((file,), ()):
        envelope = Envelope(kind=EnvelopeKind.PLAIN, ordering=ordering)
        types = dict(zip(ordering_columns(envelope), ordering_types(envelope), strict=True))
        own = {"__offset": Primitive.BIGINT, "__admitted_ms": Primitive.BIGINT}
        assert types == {f"__seq{n}": field.type for n, field in enumerate(ordering, 1)} | own


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


@pytest.mark.parametrize(
    ("given", "types", "found"),
    [
        ([Newest("a", 1), Newest("", 2)], TEXT, (Newest("a", 1), Newest("", 2))),
        ([Newest("a", "b")], TEXT, (Newest("a"),)),
        ([Newest("a")], TEXT, (Newest("a"),)),
        ([Newest("a", 1), Newest(1, 1)], TEXT, None),
        ([Newest("1")], NUMBER, None),
        ([Newest(None)], NUMBER, None),
        ([Newest(NEVER)], NUMBER, (Newest(NEVER),)),
        ([], NUMBER, ()),
    ],
)
def test_moments_compare_with_those_of_their_type_alone(
    given: list[Newest], types: tuple[Type, ...], found: Any
) -> None:
    assert comparable(given, types) == found
