"""Moments (`schemasync.core.moments`) of columns, and as Parquet's statistics and our own footers tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemasync.core.moments import Moment, Newest, never, newest_of
from schemasync.io.parquet.sorted_rows import comparable

_NEWEST: Final = "schemasync.newest"
"""Where a footer says what statistics do not: a JSON list of the two moments of `Newest`."""


def as_moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an ordering column's values as moments, nulls as they are."""
    return column if pa.types.is_string(column.type) else comparable(column).cast(pa.int64())


def without_nulls(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put the least moment in the place of nulls."""
    return pc.fill_null(moments, never(is_text=pa.types.is_string(moments.type)))


def extent(told: pq.Statistics | None) -> tuple[Moment, Moment] | None:
    """Return the least and the largest moment of a row group; None where it does not tell."""
    if told is None or not told.has_null_count:
        return None
    least = never(is_text=told.physical_type == "BYTE_ARRAY")
    if not told.num_values:
        return least, least
    if not told.has_min_max:
        return None
    # As they are stored: dates and times may lie beyond Python's years.
    low, high = _moment(told.min_raw), _moment(told.max_raw)
    if low is None or high is None:
        return None
    return least if told.null_count else low, high


def _moment(stored: Any) -> Moment | None:
    if isinstance(stored, bytes):
        try:
            return stored.decode()
        except UnicodeDecodeError:
            return None
    return stored if isinstance(stored, int) else None


def is_shared(type_: pa.DataType) -> bool:
    """Tell whether values of an ordering column are those of many events, as names of a log's files and dates are.

    A number of a log or of a clock tells by itself, nearly always, which of two rows is newer.
    """
    return bool(pa.types.is_string(type_) or pa.types.is_date(type_))


class NewestSeen:
    """What bounds the rows of a file by the first two of its ordering columns, noted while they are written.

    Statistics tell it of the first one alone, which is enough where that nearly always decides.
    """

    def __init__(self, ordering: Sequence[str], *, shared: bool = False) -> None:
        """Nothing was written yet; ``shared`` is of an AdmissionRequest."""
        self._ordering = ordering[:2] if len(ordering) > 1 else ()
        self._shared = shared
        self._newest: Newest | None = None

    def note(self, rows: pa.Table) -> None:
        """Take some rows, of which there must be one, into account."""
        if not self._ordering or not (self._shared or is_shared(rows.schema.field(self._ordering[0]).type)):
            return
        first, then = (without_nulls(as_moments(rows.column(name))) for name in self._ordering)
        newest = pc.max(first)
        try:
            found = Newest(newest.as_py(), pc.max(then.filter(pc.equal(first, newest))).as_py())
        except UnicodeDecodeError:
            self._ordering, self._newest = (), None
        else:
            self._newest = newest_of([found] if self._newest is None else [self._newest, found])

    @property
    def metadata(self) -> dict[str, str]:
        """What a footer is to say."""
        return {} if self._newest is None else {_NEWEST: json.dumps([self._newest.first, self._newest.then])}


def newest_told(metadata: Mapping[bytes, bytes] | None) -> Newest | None:
    """Return what a footer says that was written by `NewestSeen`, None where it does not."""
    said = (metadata or {}).get(_NEWEST.encode())
    return None if said is None else Newest(*json.loads(said))
