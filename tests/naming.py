"""The ways in which a view tells which rows of its base have changed: tests choose one, whatever the keys are like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal as Number
from typing import Final
from unittest.mock import patch

from schemasync.app import reading_back
from schemasync.core import changed_keys, manifest
from schemasync.core.changed_keys import ChangedKeys, hash_of

NAMED: Final = ("listed", "in text", "aside")
"""Keys in a list, bits in the view's text, and bits in a file."""
WAYS: Final = (*NAMED, "joined")


@contextmanager
def naming(way: str) -> Iterator[None]:
    """Let changes that are admitted meanwhile be told by one of `WAYS`, or ``hashed``: 64 bits for all their keys."""
    with ExitStack() as stack:
        if way == "hashed":
            stack.enter_context(patch.multiple(reading_back, HASHED_FROM=0, _by_themselves=lambda *_: None))
            stack.enter_context(patch.object(reading_back, "words_for_hashes", lambda *_: 1))
            stack.enter_context(patch.multiple(manifest, FEW_ROWS=0, MOST_WORDS=0))
        elif way == "joined":
            stack.enter_context(patch.object(changed_keys, "MOST_TEXT", 0))
        elif way != "listed":
            stack.enter_context(patch.multiple(reading_back, LISTED=0, LISTED_FOR_SPARK=0))
        if way == "aside":
            stack.enter_context(patch.object(reading_back, "may_be_text", lambda _: False))
        yield


def words_of(keys: Iterable[int]) -> tuple[int, list[int]]:
    """Return the key of the first bit, and signed words that have a bit for each key: slow, and by nobody else's code.

    There must be a key.
    """
    wanted = set(keys)
    low = min(wanted) - min(wanted) % 65_536
    places = range(low, max(wanted) + 1, 64)
    texts = ("".join("01"[place + bit in wanted] for bit in reversed(range(64))) for place in places)
    return low, [int.from_bytes(int(text, 2).to_bytes(8, "big"), "big", signed=True) for text in texts]


def hashed_words_of(keys: Iterable[Iterable[int | Number | str | bytes | None]], count: int) -> list[int]:
    """Return so many signed words that have a bit for the hash of each key, and no other."""
    bits = {hash_of(key, 64 * count) for key in keys}
    # There are fewer than 65,536 bits: they begin at the first.
    words = words_of(bits)[1] if bits else []
    return words + [0] * (count - len(words))


def in_text(keys: Iterable[int]) -> ChangedKeys:
    """Name keys, of which there must be one, as bits in a view's text."""
    low, words = words_of(keys)
    return ChangedKeys(low=low, words=",".join(map(str, words)))
