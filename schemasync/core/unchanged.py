"""Conditions by which a view tells rows that no later change replaces, where its text can name the changed keys.

One language beside another: what Python puts into lists, buckets and bits, SQL finds there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from schemasync.core.changed_keys import (
    BITS,
    FEW,
    HASHED_SCALE,
    LISTED,
    LISTED_TEXT,
    SEPARATOR,
    SHIFTS,
    WORDS_COLUMN,
    ChangedKeys,
    buckets,
    hashed_columns,
    may_be_asked_for,
    together,
    words_for_hashes,
)
from schemasync.core.defaults import LOWEST
from schemasync.core.keys import whole_number_or_text
from schemasync.core.layout import SEGMENT
from schemasync.core.manifest import Contents
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.shape import Shape
from schemasync.core.types import MAX_PRECISION, Decimal, Primitive, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """Conditions, never null, that together hold for rows ``t`` that no later delta replaces; none: keys are joined.

    Some may be ``hashes``: one of these holds for rows that share no hash with a delta's, so the keys of the others are
    to be joined.
    """

    conditions: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()


def unchanged(target: TableTarget, shape: Shape, contents: Contents, dialect: Dialect) -> Unchanged:
    """Return how a view of this state tells rows that no later delta replaces."""
    column, all_keys = whole_number_or_text(shape.key_columns), [keys for _, keys in contents.changed]
    types = dict(shape.key_columns)
    few = sum(len(k.listed) for k in all_keys) <= LISTED and sum(k.size for k in all_keys) <= LISTED_TEXT
    lists = few and all(keys.listed for keys in all_keys)
    only_spark = target.only_spark and dialect is Dialect.SPARK
    if not (lists or only_spark) or (column is None and not all(keys.hashed for keys in all_keys)):
        return Unchanged()
    if not {name for keys in all_keys for name in keys.hashed} <= types.keys():
        # They are of a key before, by which nobody may look for rows of this one.
        return Unchanged()
    segment = f"t.{quote_identifier(SEGMENT, dialect)}"
    key = "" if column is None else f"t.{quote_identifier(column, dialect)}"
    # A row without a key counts, so a condition on the key alone would not do.
    found: list[str] = []
    hashes: list[str] = []
    for name, keys in together(contents.changed):
        if keys.listed:
            is_named = _is_listed(key, keys.listed, dialect, only_spark=only_spark)
        else:
            is_named = _bit(_hash(keys, types) if keys.hashed else key, keys, target.location)
        condition = f"{segment} >= {quote_string(name, dialect)} OR {is_named} = 0"
        found.append(condition)
        if keys.hashed:
            hashes.append(condition)
    return Unchanged(conditions=tuple(found), hashes=tuple(hashes))


def shuffled(target: TableTarget, shape: Shape, contents: Contents, *, rows: int) -> bool:
    """Tell whether queries shuffle the shards that changes fall into, however these changes, ``rows``, are merged.

    They are too many for every task to hold their keys, or bits of these, and no view could name as much as hashes.
    """
    if not contents.deltas or contents.few or contents.packed:
        return False
    may_be_hashed = hashed_columns(shape.key_columns) and words_for_hashes(rows, ())
    return not (target.only_spark and may_be_asked_for(target.location) and may_be_hashed)


def _is_listed(key: str, keys: Sequence[int | str], dialect: Dialect, *, only_spark: bool) -> str:
    """Return an expression that is 1 where a key is in a list, else 0; what Spark alone reads has buckets of it."""
    if only_spark:
        among = f"array_contains({_bucket(key, keys)}, {key})"
    else:
        among = f"{key} IN ({', '.join(_key_sql(k, dialect) for k in keys)})"
    return f"CASE WHEN {among} THEN 1 ELSE 0 END"


def _bucket(key: str, keys: Sequence[int | str]) -> str:
    """Return the array of those of the keys that this one could be, in Spark's SQL.

    Spark makes the arrays once, when it plans. No key is written into its code: see `schemasync.core.changed_keys`.
    """
    whole = isinstance(keys[0], int)
    count, shared = _shared(tuple(keys))
    arrays = f"from_json({shared}, 'ARRAY<ARRAY<{'BIGINT' if whole else 'STRING'}>>')"
    if count == 1:
        return f"get({arrays}, 0)"
    bytes_ = (f"shiftright(CAST({key} AS BIGINT), {shift})" for shift in SHIFTS)
    mixed = " ^ ".join(bytes_) if whole else f"crc32(CAST({key} AS BINARY))"
    return f"get({arrays}, CAST(({mixed}) & {count - 1} AS INT))"


@lru_cache(maxsize=64)
def _shared(keys: tuple[int | str, ...]) -> tuple[int, str]:
    """Return how many buckets there are, and all of them as text: a run writes several times what its view says."""
    shared = [[*keys]] if len(keys) <= FEW else buckets(keys)
    return len(shared), quote_string(json.dumps(shared, separators=(",", ":")), Dialect.SPARK)


def _bit(key: str, keys: ChangedKeys, location: str) -> str:
    """Return an expression that is 1 where a key, or a hash, has a bit, else 0; Spark's SQL only.

    ``location`` is the table's. No number in it changes with each state: see `schemasync.core.changed_keys`.
    """
    place, power = f"{key} - ({keys.low})", BITS.bit_length() - 1
    if keys.path:
        file = quote_identifier(f"{location}/{keys.path}", Dialect.SPARK)
        words = f"(SELECT {WORDS_COLUMN} FROM orc.{file})"  # noqa: S608 - quoted
    else:
        # Spark makes the array once, when it plans.
        words = f"CAST(split('{keys.words}', ',') AS ARRAY<BIGINT>)"
    word = f"get({words}, CAST(shiftright({place}, {power}) AS INT))"
    bit = f"coalesce(getbit({word}, CAST({key} & {BITS - 1} AS INT)), 0)"
    return bit if keys.hashed else f"CASE WHEN {key} BETWEEN {keys.low} AND {keys.beyond} THEN {bit} ELSE 0 END"


def _hash(keys: ChangedKeys, types: Mapping[str, Type]) -> str:
    """Return which bit stands for a row's key, in Spark's SQL; never null."""
    columns = (_hashed(f"t.{quote_identifier(name, Dialect.SPARK)}", types[name]) for name in keys.hashed)
    # Bytes are a text as they are, whatever they say.
    texts = (f"coalesce(CAST({column} AS STRING), '')" for column in columns)
    joined = f" || {quote_string(SEPARATOR, Dialect.SPARK)} || ".join(texts)
    return f"(crc32(CAST({joined} AS BINARY)) & {BITS * keys.count - 1})"


def _hashed(column: str, type_: Type) -> str:
    """Return what hashes are made of, as `schemasync.core.changed_keys.hash_of` wants it."""
    match type_:
        case Primitive.DATE:
            return f"unix_date({column})"
        case Primitive.TIMESTAMP:
            return f"unix_micros({column})"
        case Decimal(scale=scale) if scale > HASHED_SCALE:
            return f"CAST({column} AS DECIMAL({MAX_PRECISION}, {HASHED_SCALE}))"
        case _:
            return column


def _key_sql(key: int | str, dialect: Dialect) -> str:
    if isinstance(key, str):
        return quote_string(key, dialect)
    return f"CAST('{key}' AS BIGINT)" if key == LOWEST else str(key)
