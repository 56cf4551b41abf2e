"""Keys of changes, as the text of a view can name them: then no query looks for them in the changes.

That saves a query the scan of the changes' keys before its own, and the join with them: about 0.1 s of Spark, a stage
in Hive. Few whole numbers or plain texts are listed, which everybody reads; some thousand are buckets, and many whole
numbers that lie close bits, which only Spark's SQL can look into. The text has an end: each query parses it again,
about 0.3 µs for a character, and Spark keeps it five times for each of the last queries of a session
(``spark.sql.ui.retainedExecutions``). What is longer lies in a file that the text names: a query reads it before its
own scan, 31,000 words in about 0.05 s, a million in 0.15 s.

Keys of any other kind, too many to be sent to each task, are bits of hashes in such a file, for Spark alone: a row
whose bit is not set did not change, and only those of the others are joined, most of which did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal as Number
from functools import cached_property
from itertools import groupby
from typing import Final
from zlib import crc32

from pydantic import BaseModel, ConfigDict

from schemasync.core.locations import PATTERN_SIGNS
from schemasync.core.promotion import INTEGER_DIGITS
from schemasync.core.types import Decimal, Primitive, Type

LISTED: Final = 200
"""So many keys of a delta are listed, and of all deltas where not Spark alone reads the view.

Engines look into a list by hash, but plan it as so many expressions; some metastores hold 32,700 characters of a view.
"""
LISTED_TEXT: Final = 10 * 1024
"""Characters of all listed keys where not Spark alone reads the view: `LISTED` uuids have fewer."""
LISTED_FOR_SPARK: Final = 4_000
"""So many keys of a delta are listed where Spark alone reads the view: buckets of a hash, one literal for its planner.

It reads them faster than bits in a file, which take a query of their own.
"""
FEW: Final = 10
"""So many are one bucket."""
SHIFTS: Final = range(0, 64, 8)
"""A whole number's bucket is told by all of its bytes: many are made of a time and something small below it."""
_BESIDE: Final = 9
"""Signs that a listed key may take beside its own, with quotes and empty buckets."""
MOST_TEXT: Final = 64 * 1024
"""Characters of all keys in one view at most."""
MOST_ASIDE: Final = 1_000_000
"""Words in files of one view at most, 8 MB that each task is sent: keys of one delta lie at most 64 million apart."""
MOST_HASHED: Final = 4_000_000
"""Words of hashes beside these, 32 MB: bits for 67 million keys. To read so many takes 0.3 s, and a row's look 0.1 µs
more than into few, which a core's cache holds (Spark 4, 20 million rows); what it saves is sorting all these rows."""
BITS: Final = 64
"""So many keys that follow each other share a word, a bit for each."""
_STEP: Final = 1024 * BITS
"""Words begin at a multiple of it, so that most states have the same numbers in their views.

Spark writes numbers into the code that it generates, and compiles that again where one is another: the first query of
each kind took 0.2 s to 0.6 s longer (Spark 3.5.9, 2 million rows). Zeros before the first bit take 2 KB at most.
"""
BITS_PER_KEY: Final = 8
"""So many bits are there for each key at least where they are of hashes, while there is room: one row in eight or
fewer of those that did not change shares one with a key."""
FEWEST_BITS: Final = 2
"""With fewer for each key four rows in ten would share one."""
HASHED: Final = (*INTEGER_DIGITS, Primitive.STRING, Primitive.BINARY, Primitive.DATE, Primitive.TIMESTAMP)
"""Types of the columns of a key that hashes are made of, beside decimals: engines write floats in ways of their own."""
HASHED_SCALE: Final = 6
"""Digits behind the point that a hash is made of, the last one rounded: with more of them, engines and settings differ
in where they write an exponent."""
SEPARATOR: Final = ","
"""Between the texts or bytes of several columns."""
WORDS_COLUMN: Final = "words"
"""The one column of a file of words; its one row has all of them."""
WORDS_FILE: Final = "_keys/words.orc"
"""Where a delta's words lie in its directory; engines that read its rows pass over such a name.

ORC, as Spark reads its schema without a job of its own, which Parquet's takes.
"""
_PLAIN: Final = re.compile(r"[\w .,:/@+=~-]*", re.ASCII)
"""Text that stands in a view as it is: some metastores store Latin-1, and every engine that reads or translates the
view has escapes of its own."""


class ChangedKeys(BaseModel):
    """The keys that a delta has rows of: ``listed``, ascending, whole numbers or texts, or as bits.

    Bit b of the word at place p, both from zero, stands for the key ``low + 64 p + b``. ``words`` are signed, with
    commas between; or ``path``, relative to the table's location, is that of a file that has ``count`` of them.

    Where columns of the key are ``hashed``, a bit stands for their `hash_of` in place of the key, and tells of a row
    only that it may be replaced; ``count`` is a power of two then.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    listed: tuple[int | str, ...] = ()
    low: int = 0
    words: str = ""
    path: str = ""
    count: int = 0
    hashed: tuple[str, ...] = ()

    @property
    def beyond(self) -> int:
        """The last key for which the words may have a bit, whatever their number: the same with each ``low``."""
        return min(self.low + BITS * MOST_ASIDE, 2**63) - 1

    @cached_property
    def size(self) -> int:
        """About how many characters of a view name them."""
        return len(self.words) + len(self.path) + sum(len(str(key)) + _BESIDE for key in self.listed)


def listed(keys: Iterable[int | str | None]) -> ChangedKeys | None:
    """List the keys of all rows: whole numbers or texts. None where a row has none, or one that no view can say."""
    found = tuple(keys)
    if numbers := [key for key in found if isinstance(key, int)]:
        return ChangedKeys(listed=tuple(sorted(numbers))) if len(numbers) == len(found) else None
    texts = [key for key in found if isinstance(key, str) and _PLAIN.fullmatch(key)]
    return ChangedKeys(listed=tuple(sorted(texts))) if len(texts) == len(found) else None


def together(changed: Iterable[tuple[str, ChangedKeys]]) -> list[tuple[str, ChangedKeys]]:
    """Put lists of deltas that follow each other together, by the name of the first: one look for each row of the base.

    Of each later delta are left the keys that those before it have, too: rows of these are what it alone replaces.
    """
    found: list[tuple[str, ChangedKeys]] = []
    for are_listed, run in groupby(changed, key=lambda delta: bool(delta[1].listed)):
        deltas = list(run)
        if not are_listed:
            found += deltas
            continue
        seen: dict[int | str, None] = {}
        again: list[tuple[str, ChangedKeys]] = []
        for name, keys in deltas:
            if twice := tuple(key for key in keys.listed if key in seen):
                again.append((name, ChangedKeys(listed=twice)))
            seen |= dict.fromkeys(keys.listed)
        found += [(deltas[0][0], ChangedKeys(listed=tuple(seen))), *again]
    return found


def buckets(keys: Sequence[int | str]) -> list[list[int | str]]:
    """Share keys out by `bucket_of`: about as many lists as keys, a power of four, which seldom changes."""
    count = 1
    while 2 * count < len(keys):
        count *= 4
    found: list[list[int | str]] = [[] for _ in range(count)]
    for key in keys:
        found[bucket_of(key, count)].append(key)
    return found


def bucket_of(key: int | str, count: int) -> int:
    """Return which of ``count`` buckets, a power of two, a key is in; Spark's SQL works out the same."""
    if isinstance(key, int):
        # All bytes in three steps: each puts twice as many together.
        key ^= key >> 32
        key ^= key >> 16
        return (key ^ key >> 8) & count - 1
    return hash_of([key], count)


def hash_of(key: Iterable[int | Number | str | bytes | None], count: int) -> int:
    """Return which of ``count`` places, a power of two, a key has; Spark's SQL works out the same.

    ``key`` has the values of the columns that are hashed: days of dates, microseconds of moments, decimals with
    `HASHED_SCALE` digits behind the point at most. What a row does not have is an empty text.
    """
    values = ("" if value is None else value for value in key)
    joined = SEPARATOR.encode().join(v if isinstance(v, bytes) else str(v).encode() for v in values)
    return crc32(joined) & count - 1


def hashed_columns(keys: Sequence[tuple[str, Type]]) -> tuple[str, ...]:
    """Return those of a key's columns, (name, type), that hashes are made of."""
    return tuple(name for name, type_ in keys if type_ in HASHED or isinstance(type_, Decimal))


def words_for_hashes(rows: int, others: Iterable[ChangedKeys]) -> int:
    """Return how many words hashes of so many keys take beside those of ``others``, 0 where there is no room.

    A power of two, which seldom changes, and never all that is left: the next changes are fewer, but want some, too.
    """
    left = MOST_HASHED - sum(keys.count for keys in others if keys.hashed)
    count = _STEP // BITS
    while count * BITS < BITS_PER_KEY * rows and 8 * count <= 3 * left:
        count *= 2
    return count if FEWEST_BITS * rows <= count * BITS and 4 * count <= 3 * left else 0


def fit(keys: Iterable[ChangedKeys]) -> bool:
    """Tell whether one view can name all these."""
    found = tuple(keys)
    words = [sum(k.count for k in found if bool(k.hashed) is hashed) for hashed in (False, True)]
    return sum(k.size for k in found) <= MOST_TEXT and words[0] <= MOST_ASIDE and words[1] <= MOST_HASHED


def places(key_range: tuple[int, int]) -> tuple[int, int]:
    """Return the key of the first bit of the words that have a bit for every key of a range, and how many these are."""
    low = key_range[0] // _STEP * _STEP
    return low, (key_range[1] - low) // BITS + 1


def may_be_text(count: int) -> bool:
    """Tell whether so many words could stand in a view's text: each takes a digit and a comma at least."""
    return 2 * count <= MOST_TEXT


def may_be_asked_for(location: str) -> bool:
    """Tell whether a view can name files of a table: Spark takes such a name for a pattern of names where it is one."""
    return PATTERN_SIGNS.search(location) is None
