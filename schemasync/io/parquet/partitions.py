"""User partitions with Arrow: in which directory each row lies; the same as `spark_sql` says to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from schemasync.core.partitioning import (
    ALWAYS_STORABLE,
    FIRST_DAY,
    LAST_DAY,
    NO_VALUES,
    NUL,
    Call,
    PartitionColumn,
    date_regex,
    directory_of,
    require_storable,
    strftime_format,
)
from schemasync.core.types import Primitive

_FIRST: Final = pa.scalar(date.fromisoformat(FIRST_DAY))
_LAST: Final = pa.scalar(date.fromisoformat(LAST_DAY))
_NO_VALUES: Final = pa.array(NO_VALUES)


def by_partition(rows: pa.Table, partitions: Sequence[PartitionColumn]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each partition with the directory that is theirs, in the order that they have.

    Without user partitions that is all rows, and an empty directory.
    """
    if not partitions:
        yield "", rows
        return
    encoded = [_texts(rows, partition).combine_chunks().dictionary_encode("encode") for partition in partitions]
    code = reduce(_combined, encoded[1:], pc.cast(encoded[0].indices, pa.int64())) if rows.num_rows else None
    for one in pc.unique(code) if code is not None else ():
        mask = pc.equal(code, one)
        row = pc.index(mask, True).as_py()
        values = [texts[row].as_py() for texts in encoded]
        yield directory_of([p.name for p in partitions], values), rows.filter(mask)


def check_partitions(rows: pa.Table, partitions: Sequence[PartitionColumn]) -> None:
    """Refuse rows whose partition nothing could store.

    Raises:
        DataError: there is one; names the value.
    """
    values = [_texts(rows, p) for p in partitions]
    lengths = (pc.max(pc.binary_length(texts)).as_py() or 0 for texts in values)
    if sum(lengths) > ALWAYS_STORABLE or any(pc.any(pc.match_substring(texts, NUL)).as_py() for texts in values):
        for directory, _ in by_partition(rows, partitions):
            require_storable(directory)


def _combined(code: pa.Array, texts: pa.DictionaryArray) -> pa.Array:
    return pc.add(pc.multiply(code, len(texts.dictionary)), pc.cast(texts.indices, pa.int64()))


def _texts(rows: pa.Table, partition: PartitionColumn) -> pa.ChunkedArray:
    """Return the partition's value of each row as a text, null where it has none."""
    values = rows.column(partition.source)
    for call in partition.calls:
        values = _called(call, values)
    if partition.type is Primitive.DATE:
        values = _in_calendar(values, values)
    texts = pc.cast(values, pa.string())
    return pc.if_else(pc.is_in(texts, _NO_VALUES), pa.scalar(None, pa.string()), texts)


def _in_calendar(days: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    inside = pc.and_(pc.greater_equal(days, _FIRST), pc.less_equal(days, _LAST))
    return pc.if_else(inside, values, pa.scalar(None, values.type))


def _called(call: Call, values: pa.ChunkedArray) -> pa.ChunkedArray:
    match call:
        case Call("year" | "month" | "day" | "hour" as part):
            return pc.cast(getattr(pc, part)(values), pa.int32())
        case Call("bigint"):
            return pc.cast(values, pa.int64())
        case Call("to_date", ()):
            return _day(values)
        case Call("to_date", (str(pattern),)):
            return _parsed(values, pattern)
        case Call("trunc", (str(unit),)):
            return pc.floor_temporal(values, unit=unit)
        case Call("date_format", (str(pattern),)):
            return _formatted(values, pattern)
        case Call("left", (int(length),)):
            return pc.utf8_slice_codeunits(values, 0, length)
        case Call("substring", (int(first), int(length))):
            return pc.utf8_slice_codeunits(values, first - 1, first - 1 + length)
        case Call("pmod", (int(n),)):
            return _modulo(values, n)
        case _:  # pragma: no cover - the configuration takes no other
            raise AssertionError(call)


def _day(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values if values.type == pa.date32() else pc.cast(pc.floor_temporal(values, unit="day"), pa.date32())


def _parsed(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    regex, replacement = date_regex(pattern)
    matches = pc.match_substring_regex(values, regex)
    iso = pc.replace_substring_regex(values, regex, replacement)
    iso = pc.if_else(matches, iso, pa.scalar(None, iso.type))
    found = pc.strptime(iso, "%Y-%m-%d", "s", error_is_null=True)
    # The 30th of February is taken for a day in March.
    real = pc.equal(pc.strftime(found, "%Y-%m-%d"), iso)
    return pc.cast(pc.if_else(real, found, pa.scalar(None, found.type)), pa.date32())


def _formatted(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return _in_calendar(_day(values), pc.strftime(values, strftime_format(pattern)))


def _modulo(values: pa.ChunkedArray, n: int) -> pa.ChunkedArray:
    rest = pc.subtract(values, pc.multiply(pc.divide(values, n), n))
    return pc.cast(pc.if_else(pc.less(rest, 0), pc.add(rest, n), rest), pa.int32())
