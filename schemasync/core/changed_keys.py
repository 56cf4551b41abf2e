"""Keys of changes, as the text of a view can name them: then no query looks for them in the changes.

That saves a query the scan of the changes' keys before its own, and the join with them: about 0.1 s of Spark, a stage
in Hive. Whole numbers only. Few are listed, which everybody reads; many that lie close are bits, which only Spark's
SQL can look into. The text has an end: each query parses it again, about 0.3 µs for a character, and Spark keeps it
five times for each of the last queries of a session (``spark.sql.ui.retainedExecutions``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

LISTED: Final = 200
"""So many keys of a delta are listed, and of all deltas where not Spark alone reads the view.

Engines look into a list by hash, but plan it as so many expressions; some metastores hold 32,700 characters of a view.
"""
MOST_TEXT: Final = 64 * 1024
"""Characters of all keys in one view at most."""
MOST_KEYS: Final = 100_000
"""Of more keys nobody looks whether they lie close: that takes about 0.5 µs for each."""
BITS: Final = 64
"""So many keys that follow each other share a word, a bit for each."""


class ChangedKeys(BaseModel):
    """The keys that a delta has rows of: ``listed``, ascending, or as bits.

    Bit b of the word at place p, both from zero, stands for the key ``low + 64 p + b``. ``words`` are signed, with
    commas between.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    listed: tuple[int, ...] = ()
    low: int = 0
    words: str = ""

    @property
    def high(self) -> int:
        """The last key that the words have a bit for."""
        return self.low + BITS * (self.words.count(",") + 1) - 1

    @property
    def size(self) -> int:
        """About how many characters of a view name them."""
        return len(self.words) + sum(len(str(key)) + 2 for key in self.listed)


def may_be_named(rows: int, key_range: tuple[int, int] | None, *, only_spark: bool) -> bool:
    """Tell whether the keys of a delta could fit into a view's text; ``key_range`` as in a segment."""
    if key_range is None:
        return False
    words = (key_range[1] - key_range[0]) // BITS + 1
    # A word takes a digit and a comma at least.
    return rows <= LISTED or (only_spark and rows <= MOST_KEYS and 2 * words <= MOST_TEXT)


def named(keys: Sequence[int]) -> ChangedKeys:
    """Write keys, in any order, as a view can name them, however long that is."""
    if len(keys) <= LISTED:
        return ChangedKeys(listed=tuple(sorted(keys)))
    low = min(keys) // BITS * BITS
    words = [0] * ((max(keys) - low) // BITS + 1)
    for key in keys:
        words[(key - low) // BITS] |= 1 << (key - low) % BITS
    return ChangedKeys(low=low, words=",".join(str(_signed(word)) for word in words))


def _signed(word: int) -> int:
    return word - 2**BITS if word >= 2 ** (BITS - 1) else word
