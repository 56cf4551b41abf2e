"""Steps side by side give what they give one after the other, and let go of each other at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from schemasync.io.parquet.ahead import ahead, side_by_side

_SOON = 20
"""Seconds that a wait takes at most before the test fails."""


def test_parts_come_in_their_order_whatever_they_are() -> None:
    assert list(ahead(iter([3, None, 0, [], 1]))) == [3, None, 0, [], 1]
    assert list(ahead(iter([]))) == []


def test_the_next_part_is_made_while_this_one_is_worked_on() -> None:
    made = threading.Event()

    def parts() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    coming = ahead(parts())
    assert next(coming) == 1
    assert made.wait(_SOON)
    assert list(coming) == [2]


def test_one_part_is_made_ahead_and_no_more() -> None:
    made: list[int] = []

    def parts() -> Iterator[int]:
        for n in range(9):
            made.append(n)
            yield n

    coming = ahead(parts())
    assert (next(coming), next(coming)) == (0, 1)
    coming.close()
    assert made == [0, 1, 2]


def test_streams_are_worked_on_at_once_and_their_parts_come_in_turn() -> None:
    together = threading.Barrier(2)

    def parts(name: str, count: int) -> Iterator[str]:
        for n in range(count):
            if n == 0:
                together.wait(_SOON)
            yield f"{name}{n}"

    assert list(side_by_side([parts("a", 3), parts("b", 1)])) == ["a0", "b0", "a1", "a2"]
    assert list(side_by_side([])) == []


def test_an_error_arises_after_the_parts_before_it() -> None:
    def parts() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    seen: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        seen.extend(ahead(parts()))
    coming = ahead(parts())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no more"):
        next(coming)


def test_nothing_is_left_running_when_the_consumer_fails() -> None:
    before = set(threading.enumerate())

    def fail_at_once() -> None:
        for part in ahead(iter(range(9))):
            raise KeyError(part)

    with pytest.raises(KeyError):
        fail_at_once()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("fails", [True, False], ids=["a stream fails", "who asks stops"])
def test_however_it_ends_no_stream_is_left_to_the_garbage_collector(*, fails: bool) -> None:
    closed: list[str] = []

    def parts(name: str, *, fails: bool) -> Iterator[int]:
        try:
            yield 1
            if fails:
                raise ValueError(name)
            yield 2
            yield 3
        finally:
            closed.append(name)

    # Held here, as by the traceback of an error: nobody but their reader can have closed them.
    streams = (parts("good", fails=False), parts("bad", fails=fails))
    seen = side_by_side(streams)
    assert (next(seen), next(seen)) == (1, 1)
    if fails:
        with pytest.raises(ValueError, match="bad"):
            list(seen)
    else:
        seen.close()
    assert (len(streams), sorted(closed)) == (2, ["bad", "good"])
