from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.changed_keys import BITS, LISTED, MOST_KEYS, MOST_TEXT, ChangedKeys, may_be_named, named

ANY_KEY = st.integers(-(2**63), 2**63 - 1)


def keys_of(found: ChangedKeys) -> list[int]:
    """Read keys as the view's SQL does."""
    words = [int(word) for word in found.words.split(",")] if found.words else []
    places = range(found.low, found.low + BITS * len(words))
    bits = [key for key in places if words[(key - found.low) >> 6] >> ((key - found.low) & 63) & 1]
    return [*found.listed, *bits]


@given(keys=st.lists(ANY_KEY, unique=True, max_size=5))
def test_few_keys_are_listed_in_their_order(keys: list[int]) -> None:
    assert named(keys) == ChangedKeys(listed=tuple(sorted(keys)))


@given(first=st.integers(-(2**63), 2**63 - 1 - 10 * LISTED), places=st.sets(st.integers(0, 10 * LISTED)))
def test_more_keys_are_bits_that_stand_for_them(first: int, places: set[int]) -> None:
    keys = {first + place for place in places | set(range(LISTED + 1))}
    found = named(sorted(keys, key=lambda key: key % 7))
    assert (found.listed, set(keys_of(found))) == ((), keys)
    assert found.low <= min(keys) <= max(keys) <= found.high < 2**63
    assert (found.low % BITS, all(-(2**63) <= int(word) < 2**63 for word in found.words.split(","))) == (0, True)


@given(first=st.integers(-(2**40), 2**40), step=st.integers(1, 500), count=st.integers(LISTED + 1, 3 * LISTED))
def test_keys_that_may_not_be_named_do_not_fit(first: int, step: int, count: int) -> None:
    keys = range(first, first + step * count, step)
    assert may_be_named(len(keys), (keys[0], keys[-1]), only_spark=True) or named(keys).size > MOST_TEXT


def test_keys_may_be_named_where_they_are_few_or_close() -> None:
    def may_be(rows: int, key_range: tuple[int, int] | None) -> tuple[bool, ...]:
        return tuple(may_be_named(rows, key_range, only_spark=only) for only in (True, False))

    assert may_be(LISTED, (-(2**63), 2**63 - 1)) == (True, True)
    assert may_be(MOST_KEYS, (-5, 10 * MOST_KEYS)) == (True, False)
    assert may_be(MOST_KEYS + 1, (-5, 10 * MOST_KEYS)) == (False, False)
    assert may_be(LISTED + 1, (0, 2**40)) == may_be(1, None) == (False, False)


def test_what_a_list_takes_is_counted() -> None:
    assert named([-5, 100]).size == len("-5, 100, ")
