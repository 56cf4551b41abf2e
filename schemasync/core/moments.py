"""When rows are from, by their ordering: what manifests keep of segments, so that few rows are compared at admission.

A *moment* is a value of an ordering column: a whole number (a date as days, a timestamp as microseconds since 1970),
or a text, such as the file of MySQL's log or a position of SQL Server's. Moments of one column compare in Python as its
rows do everywhere, text by its bytes. They only bound what is there: a null, the oldest of all, counts as the least
moment that its type has. So only what is *strictly* later than a moment is known to be newer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Moment = int | str

NEVER: Final = -(2**63)
"""The least whole number: no event has it."""


def never(*, is_text: bool) -> Moment:
    """Return the least moment of a column, which a null counts as, and what has no row."""
    return "" if is_text else NEVER


@dataclass(frozen=True, slots=True)
class Newest:
    """What bounds some rows: none has a later moment than ``first`` in the first ordering column.

    None of those that have that one has a later moment than ``then`` in the second column; None: that is not known.
    All moments of a table's column are of one type, since a table keeps its ordering (SS123).
    """

    first: Any
    then: Any = None


def newest_of(known: Sequence[Newest]) -> Newest | None:
    """Return what bounds all of some rows, given what bounds each part of them; None where there is none."""
    if not known:
        return None
    first = max(part.first for part in known)
    then = [part.then for part in known if part.first == first]
    return Newest(first, None if None in then else max(then))
