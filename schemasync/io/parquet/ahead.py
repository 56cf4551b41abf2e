"""Two steps of one job side by side: the next part is made while this one is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def ahead(parts: Iterator[T]) -> Iterator[T]:
    """Yield the parts in their order, each made by a thread of its own while the one before it is worked on.

    One more part is held than without. Errors arise where they would, after the parts before them. Whoever stops
    early waits for the part that is being made; no further one is.
    """
    with ThreadPoolExecutor(1, "ahead") as thread:
        # A generator cannot run in two threads at once: only one part is asked for at a time.
        coming = thread.submit(_some, parts)
        while some := coming.result():
            coming = thread.submit(_some, parts)
            yield from some


def _some(parts: Iterator[T]) -> list[T]:
    """Return the next part alone, or nothing at the end: a part may be any value, None among them."""
    return list(islice(parts, 1))
