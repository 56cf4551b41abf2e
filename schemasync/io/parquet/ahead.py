"""Steps of one job side by side: the next parts are made while this one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def ahead(parts: Iterator[T]) -> Generator[T, None, None]:
    """Yield the parts in their order, each made by a thread of its own while the one before it is worked on.

    One more part is held than without. Errors arise where they would, after the parts before them. Whoever stops
    early waits for the part that is being made; no further one is.
    """
    return side_by_side((parts,))


def side_by_side(streams: Sequence[Iterator[T]]) -> Generator[T, None, None]:
    """Yield the parts of several streams in turn, as `ahead` does those of one; each stream has a thread of its own.

    However it ends, generators among the streams are closed then. One that is left to an error's traceback is closed by
    the garbage collector, wherever that runs: in a thread that just starts, and so has locks that the end of the
    generator's own threads needs, it would wait for itself.
    """
    if not streams:
        return
    with ExitStack() as at_the_end:
        for stream in streams:
            if isinstance(stream, Generator):
                at_the_end.callback(stream.close)
        threads = at_the_end.enter_context(ThreadPoolExecutor(len(streams), "ahead"))
        # A generator cannot run in two threads at once: only one part of each is asked for at a time.
        coming = deque((stream, threads.submit(_some, stream)) for stream in streams)
        while coming:
            stream, part = coming.popleft()
            if some := part.result():
                coming.append((stream, threads.submit(_some, stream)))
                yield from some


def _some(parts: Iterator[T]) -> list[T]:
    """Return the next part alone, or nothing at the end: a part may be any value, None among them."""
    return list(islice(parts, 1))
