from __future__ import annotations

import pytest

from schemasync.core.moments import NEVER, Moment, comparable, first_ordering, never
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive, Type


def envelope(*ordering: OrderingField) -> Envelope:
    return Envelope(kind=EnvelopeKind.PLAIN, ordering=ordering)


def test_the_first_ordering_column_is_what_the_source_says_or_the_place_in_the_topic() -> None:
    file = OrderingField(path=("source", "file"), type=Primitive.STRING)
    assert first_ordering(envelope(file)) == ("__seq1", Primitive.STRING)
    assert first_ordering(envelope()) == ("__offset", Primitive.BIGINT)


@pytest.mark.parametrize(
    ("type_", "moments", "others"),
    [
        (Primitive.STRING, ["binlog.000001", ""], [3]),
        (Primitive.BIGINT, [3, -1], ["3"]),
        (Primitive.DATE, [20_000, NEVER], [None]),
        (Primitive.TIMESTAMP, [2**63 - 1], [""]),
    ],
)
def test_moments_compare_with_those_of_their_type_alone(
    type_: Type, moments: list[Moment], others: list[Moment | None]
) -> None:
    assert comparable([*moments, never(type_)], type_) == (*moments, never(type_))
    assert min([*moments, never(type_)]) == never(type_)
    assert comparable([*moments, *others], type_) is None
    assert comparable([], type_) == ()
