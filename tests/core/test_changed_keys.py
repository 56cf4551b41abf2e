import json
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.changed_keys import (
    BITS,
    MOST_ASIDE,
    MOST_HASHED,
    MOST_TEXT,
    ChangedKeys,
    bucket_of,
    buckets,
    fit,
    hash_of,
    hashed_columns,
    listed,
    may_be_asked_for,
    may_be_text,
    places,
    together,
    words_for_hashes,
)
from schemasync.core.types import Decimal, Primitive, Type
from tests.naming import in_text

ANY_KEY = st.integers(-(2**63), 2**63 - 1)


@given(ends=st.tuples(ANY_KEY, ANY_KEY))
def test_words_have_a_bit_for_every_key_of_a_range_and_none_is_to_spare(ends: tuple[int, int]) -> None:
    lowest, highest = sorted(ends)
    low, count = places((lowest, highest))
    assert (low % BITS, low <= lowest < low + 1024 * BITS) == (0, True)
    assert low + BITS * (count - 1) <= highest < low + BITS * count
    beyond = ChangedKeys(low=low, path="x", count=count).beyond
    assert (beyond < 2**63, beyond >= highest) == (True, count <= MOST_ASIDE)


def test_most_states_begin_their_words_at_the_same_key() -> None:
    assert {places((first, 2_000_000))[0] for first in range(65_536)} == {0}


@given(first=st.integers(-(2**40), 2**40), step=st.integers(1, 500), count=st.integers(1, 600))
def test_words_that_fit_the_text_are_tried(first: int, step: int, count: int) -> None:
    keys = range(first, first + step * count, step)
    named, (low, count) = in_text(keys), places((keys[0], keys[-1]))
    assert (named.low, named.words.count(",") + 1) == (low, count)
    assert may_be_text(count) or not fit([named])


def test_what_names_of_keys_take_is_counted() -> None:
    assert ChangedKeys(listed=(-5, 100)).size == len("-5100") + 2 * 9
    assert ChangedKeys(listed=("", "a-1")).size == len("a-1") + 2 * 9
    assert [fit([ChangedKeys(words="7" * size)] * 2) for size in (MOST_TEXT // 2, MOST_TEXT // 2 + 1)] == [True, False]
    assert [fit([ChangedKeys(path="7" * size)] * 2) for size in (MOST_TEXT // 2, MOST_TEXT // 2 + 1)] == [True, False]
    aside = [ChangedKeys(path="x", count=count) for count in (MOST_ASIDE - 1, 1, 1)]
    hashed = [ChangedKeys(path="x", count=count, hashed=("id",)) for count in (MOST_HASHED - 1, 1, 1)]
    assert [fit([*aside[:n], *hashed[:m]]) for n, m in ((2, 2), (3, 2), (2, 3))] == [True, False, False]


@pytest.mark.parametrize("sign", ["*", "?", "[", "]", "{", "}", "\\"])
def test_a_file_whose_name_spark_takes_for_a_pattern_is_never_asked_for(sign: str) -> None:
    assert not may_be_asked_for(f"file:/lake/a{sign}b")
    assert may_be_asked_for("s3a://lake/it's `here`, (0) +~!$&=%20ä")


def test_keys_are_listed_in_order_as_what_they_are() -> None:
    assert listed(iter([9, -3, 0])) == ChangedKeys(listed=(-3, 0, 9))
    texts = listed(["b", "10", "9", "", "A c", "0b1e-4/x@y.z:1,+~_="])
    assert texts == ChangedKeys(listed=("", "0b1e-4/x@y.z:1,+~_=", "10", "9", "A c", "b"))
    assert ChangedKeys.model_validate_json(texts.model_dump_json()) == texts
    assert (listed([]), listed([0])) == (ChangedKeys(), ChangedKeys(listed=(0,)))
    assert [listed(keys) for keys in ([1, None], ["a", None], [None])] == [None] * 3


SIGNS = re.compile("[0-9A-Za-z_ .,:/@+=~-]*")


@given(keys=st.lists(st.text() | st.from_regex(SIGNS, fullmatch=True), max_size=3))
def test_text_is_listed_where_no_engine_or_metastore_reads_it_as_another(keys: list[str]) -> None:
    plain = all(map(partial(re.fullmatch, SIGNS), keys))
    assert listed(keys) == (ChangedKeys(listed=tuple(sorted(keys))) if plain else None)


@pytest.mark.parametrize("key", ["it's", "a\\b", "a\n", "${x}", "é", "a\x00", '"', "`", "a;b", "٣"])
def test_such_text_is_never_listed(key: str) -> None:
    assert listed(["a", key]) is None


@given(keys=st.lists(ANY_KEY, min_size=1, unique=True) | st.lists(st.text(), min_size=1, unique=True))
def test_every_key_is_in_its_bucket(keys: list[int] | list[str]) -> None:
    found = buckets(keys)
    assert sorted(key for bucket in found for key in bucket) == sorted(keys)
    assert all(bucket_of(key, len(found)) == place for place, bucket in enumerate(found) for key in bucket)


def test_buckets_are_about_as_many_as_keys_and_their_number_seldom_changes() -> None:
    counts = {count: len(buckets(range(count))) for count in (*range(1, 40), *range(41, 4_001, 97))}
    assert all(count <= 2 * there and 2 * count >= there // 2 for count, there in counts.items())
    assert sorted(set(counts.values())) == [1, 4, 16, 64, 256, 1024, 4096]


@pytest.mark.parametrize("step", [1, 7, 100, 4096, 2**16, 2**22, 2**40])
def test_no_bucket_has_many_keys_however_these_are_given_out(step: int) -> None:
    """One after the other, by the thousand, or made of a time and small numbers below it."""
    assert max(map(len, buckets([step * n for n in range(2_000)]))) <= 40


@given(keys=st.lists(ANY_KEY, min_size=1, max_size=300, unique=True))
def test_what_a_list_takes_in_a_view_is_not_more_than_is_reckoned_with(keys: list[int]) -> None:
    texts = [f"{key:x}" for key in keys]
    taken = [len(json.dumps(buckets(found), separators=(",", ":"))) for found in (keys, texts)]
    assert taken[0] <= ChangedKeys(listed=tuple(keys)).size
    assert taken[1] <= ChangedKeys(listed=tuple(texts)).size


SOME_KEYS = st.lists(st.integers(0, 4), min_size=1, unique=True).map(lambda keys: ChangedKeys(listed=tuple(keys)))
BITS_OF_SOME = st.sets(st.integers(0, 4), min_size=1).map(in_text)


def has(keys: ChangedKeys, key: int) -> bool:
    return key in keys.listed or (bool(keys.words) and int(keys.words) >> key & 1 == 1)


def stays(delta: int, key: int, changed: list[tuple[str, ChangedKeys]]) -> bool:
    """Whether a view shows a row of that delta, or of the base, 0."""
    return all(str(delta) >= name or not has(keys, key) for name, keys in changed)


@given(keys=st.lists(SOME_KEYS | BITS_OF_SOME, max_size=5))
def test_lists_of_several_deltas_say_the_same_together(keys: list[ChangedKeys]) -> None:
    changed = [(str(number), one) for number, one in enumerate(keys, start=1)]
    found = together(changed)
    rows = [(0, key) for key in range(5)]
    rows += [(delta, key) for delta, one in enumerate(keys, start=1) for key in range(5) if has(one, key)]
    assert [stays(*row, found) for row in rows] == [stays(*row, changed) for row in rows]
    assert len({name for name, _ in found}) == len(found) <= len(changed)


def test_a_hash_is_of_all_columns_that_everybody_can_write_in_one_way() -> None:
    keys: list[tuple[str, Type]] = [(type_.value, type_) for type_ in Primitive]
    keys += [(f"of {scale}", Decimal(precision=9, scale=scale)) for scale in (0, 2)]
    assert hashed_columns(keys) == (
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "string",
        "binary",
        "date",
        "timestamp",
        "of 0",
        "of 2",
    )


@given(key=st.lists(st.none() | ANY_KEY | st.text()), power=st.integers(6, 25))
def test_a_hash_is_one_of_so_many_bits(key: list[int | str | None], power: int) -> None:
    assert 0 <= hash_of(key, 2**power) < 2**power


@given(rows=st.integers(1, 160_000_000), used=st.integers(0, MOST_HASHED))
def test_hashes_have_bits_to_spare_or_as_many_as_there_is_room_for(rows: int, used: int) -> None:
    others = [ChangedKeys(path="x", count=used, hashed=("id",)), ChangedKeys(path="z", count=MOST_ASIDE)]
    count, left = words_for_hashes(rows, others), MOST_HASHED - used
    if count:
        assert count & count - 1 == 0
        assert fit([*others, ChangedKeys(path="y", count=count, hashed=("id",))])
        assert (4 * count <= 3 * left, BITS * count >= 2 * rows) == (True, True)
        assert BITS * count >= 8 * rows or 8 * count > 3 * left
        assert count == 1024 or BITS * count < 16 * rows
    else:
        assert left < 1366 or 3 * left * BITS // 8 < 2 * rows


def test_sixteen_million_keys_leave_room_for_those_of_later_changes() -> None:
    others: list[ChangedKeys] = []
    for rows in (16_000_000, 8_000_000, 4_000_000, 400_000, 40_000, 400):
        others.append(ChangedKeys(path="x", count=words_for_hashes(rows, others), hashed=("id",)))
    assert [keys.count for keys in others] == [2**21, 2**20, 2**19, 2**16, 2**13, 1024]


def test_what_deltas_of_other_keys_list_is_looked_for_at_once() -> None:
    first, second, bits = ChangedKeys(listed=(3, 1)), ChangedKeys(listed=(4, 3)), in_text([9])
    assert together([("1", first), ("2", second)]) == [
        ("1", ChangedKeys(listed=(3, 1, 4))),
        ("2", ChangedKeys(listed=(3,))),
    ]
    assert together([("1", first), ("2", ChangedKeys(listed=("a",)))]) == [("1", ChangedKeys(listed=(3, 1, "a")))]
    assert together([("1", first), ("2", bits), ("3", second)]) == [("1", first), ("2", bits), ("3", second)]
