"""When rows are from, by their first ordering column: what manifests keep of segments, so that few rows are compared.

A *moment* is a whole number (a date as days, a timestamp as microseconds since 1970) or a text, such as the file of
MySQL's log or a position of SQL Server's. Moments of one table compare in Python as its rows do by that column
everywhere, text by its bytes. They only bound what is there: a null, the oldest of all, counts as the least moment that
its type has. So only what is *strictly* later than a moment is known to be newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from schemasync.core.layout import ordering_columns
from schemasync.core.schema import Envelope
from schemasync.core.types import Primitive, Type

Moment = int | str

NEVER: Final = -(2**63)
"""The least whole number: no event has it."""


def never(type_: Type) -> Moment:
    """Return the least moment of an ordering column's type, which a null counts as, and what has no row."""
    return "" if type_ is Primitive.STRING else NEVER


def first_ordering(envelope: Envelope) -> tuple[str, Type]:
    """Return the first ordering column, and its type."""
    type_ = envelope.ordering[0].type if envelope.ordering else Primitive.BIGINT
    return ordering_columns(envelope)[0], type_


def comparable(moments: Iterable[Moment | None], type_: Type) -> tuple[Any, ...] | None:
    """Return moments that compare with those of an ordering column's type; None where one is not known, or does not.

    An earlier ordering of the table may have begun with a column of another type.
    """
    kind, given = type(never(type_)), tuple(moments)
    return given if all(isinstance(moment, kind) for moment in given) else None
