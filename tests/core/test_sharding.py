from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.keys import Key, print_key
from schemasync.core.manifest import DataFile, Manifest, Segment, delta_name, shard_name
from schemasync.core.sharding import SMALL, KeyRange, ShardFold, behind, bounds, cut, has_ranges, in_one_shard
from schemasync.core.types import Primitive
from tests.core.builders import fresh, segment

TYPES = (Primitive.BIGINT,)


def shard(number: int, low: int | None, size: int = 100, **more: Any) -> Segment:
    place = None if low is None else print_key((low,))
    return segment(shard_name(number), low=place, bytes=size, sorted_by=("id",), **more)


def delta(number: int, rows: int, size: int = 10) -> Segment:
    file = DataFile(path=f"d{number}", rows=rows, bytes=size)
    return segment(delta_name(number), files=(file,), rows=rows, bytes=size, sorted_by=("id",))


def table(*segments: Segment) -> Manifest:
    numbers = [int(s.name[-8:]) for s in segments if s.name.startswith("base")]
    return fresh().model_copy(update={"segments": segments, "next_shard": max([*numbers, 0]) + 1})


def even(found: ShardFold, pieces: int) -> Sequence[Key]:
    """Cut 0..1000 evenly."""
    low = found.keys.low[0] if found.keys.low else 0
    high = found.keys.high[0] if found.keys.high else 1000
    assert isinstance(low, int)
    assert isinstance(high, int)
    return [(low + (high - low) * n // pieces,) for n in range(1, pieces)]


def sparse(spread: dict[str, list[int]]) -> dict[str, dict[int, int]]:
    return {path: {place: rows for place, rows in enumerate(counts) if rows} for path, counts in spread.items()}


def written(
    manifest: Manifest, spread: dict[str, list[int]], *, outdated: frozenset[str] = frozenset()
) -> list[tuple[object, ...]]:
    """Return what is written: name, bounds, shards that are read, and rows and bytes of each delta."""
    found = cut(manifest, sparse(spread), types=TYPES, outdated=outdated, shard_bytes=100, sample=even)
    return [
        (f.shard, f.keys.low, f.keys.high, [s.name for s in f.rewrite], [(d.name, d.rows, d.bytes) for d in f.deltas])
        for f in found
    ]


THREE = (shard(0, None), shard(1, 300), shard(2, 600))


def test_only_shards_that_changes_fall_into_are_written() -> None:
    assert written(table(*THREE, delta(1, 10)), {"d1": [0, 10, 0]}) == [
        ("base_s00000003", (300,), (600,), ["base_s00000001"], [("delta_00000001", 10, 10)])
    ]


def test_a_file_of_changes_counts_where_its_rows_are() -> None:
    assert written(table(*THREE, delta(1, 10), delta(2, 5)), {"d1": [4, 0, 6], "d2": [5, 0, 0]}) == [
        ("base_s00000003", None, (300,), ["base_s00000000"], [("delta_00000001", 4, 4), ("delta_00000002", 5, 10)]),
        ("base_s00000004", (600,), None, ["base_s00000002"], [("delta_00000001", 6, 6)]),
    ]


def test_a_shard_that_is_outdated_is_written_without_any_change() -> None:
    assert written(table(*THREE), {}, outdated=frozenset({"base_s00000001"})) == [
        ("base_s00000003", (300,), (600,), ["base_s00000001"], [])
    ]


def test_the_first_base_is_cut_where_the_changes_say() -> None:
    assert written(table(delta(1, 10, size=300)), {"d1": [10]}) == [
        ("base_s00000001", None, (333,), [], [("delta_00000001", 10, 300)]),
        ("base_s00000002", (333,), (666,), [], [("delta_00000001", 10, 300)]),
        ("base_s00000003", (666,), None, [], [("delta_00000001", 10, 300)]),
    ]


def test_a_shard_that_became_too_large_splits() -> None:
    assert written(table(*THREE, delta(1, 10, size=51)), {"d1": [0, 0, 10]}) == [
        ("base_s00000003", (600,), (800,), ["base_s00000002"], [("delta_00000001", 10, 51)]),
        ("base_s00000004", (800,), None, ["base_s00000002"], [("delta_00000001", 10, 51)]),
    ]


def test_half_as_much_again_does_not_split_yet() -> None:
    assert len(written(table(*THREE, delta(1, 10, size=50)), {"d1": [0, 0, 10]})) == 1


def test_small_neighbours_that_are_written_anyway_are_joined() -> None:
    small = (shard(0, None, 30), shard(1, 300, 30), shard(2, 600, 30))
    assert written(table(*small, delta(1, 10)), {"d1": [5, 5, 0]}) == [
        ("base_s00000003", None, (600,), ["base_s00000000", "base_s00000001"], [("delta_00000001", 10, 10)])
    ]
    assert len(written(table(*small, delta(1, 10)), {"d1": [5, 0, 5]})) == 2


def test_what_hardly_anything_is_left_of_goes_along_with_a_neighbour_that_is_written() -> None:
    rests = (shard(0, None, 12), shard(1, 200, 0), shard(2, 400), shard(3, 600, 12), shard(4, 800))
    one, two, three = ([f"base_s0000000{n}" for n in names] for names in ((0, 1, 2, 3), (3, 4), (2, 3)))
    for rows, read in (([0, 0, 1, 0, 0], one), ([0, 0, 0, 0, 1], two)):
        assert [found[3] for found in written(table(*rests, delta(1, 1, size=1)), {"d1": rows})] == [read]
    # Not with one that is about to be split, and not where it is more than little.
    assert [f[3] for f in written(table(*rests, delta(1, 1, size=14)), {"d1": [0, 0, 0, 0, 1]})] == [two[1:]]
    more = (shard(2, None), shard(3, 600, 13), shard(4, 800))
    assert [f[3] for f in written(table(*more, delta(1, 1, size=1)), {"d1": [1, 0, 0]})] == [three[:1]]


def test_ranges_that_are_emptied_one_after_the_other_leave_one_shard() -> None:
    shards = [shard(n, n * 100 or None) for n in range(9)]
    for emptied in range(9):
        manifest = table(*shards, delta(1, 1, size=10))
        place = next(n for n, s in enumerate(shards) if s.name == shard_name(emptied))
        (found,) = cut(manifest, {"d1": {place: 1}}, types=TYPES, outdated=frozenset(), shard_bytes=100, sample=even)
        gone = {s.name for s in found.rewrite}
        low = None if found.keys.low is None else int(str(found.keys.low[0]))
        rest = shard(20 + emptied, low, 0)
        shards = sorted((rest, *(s for s in shards if s.name not in gone)), key=lambda s: int((s.low or ["0"])[0]))
    assert [s.name for s in shards] == [shard_name(28)]


def test_neighbours_are_joined_as_long_as_all_of_them_together_are_well_below_the_target() -> None:
    small = (shard(0, None, 30), shard(1, 300, 30), shard(2, 600, 30))
    assert [f[3] for f in written(table(*small, delta(1, 9, size=0)), {"d1": [3, 3, 3]})] == [
        ["base_s00000000", "base_s00000001"],
        ["base_s00000002"],
    ]


def test_of_a_delta_with_several_files_a_joined_shard_gets_those_of_each_range() -> None:
    """What is not listed is not read: its rows would be in no segment any more."""
    files = tuple(DataFile(path=path, rows=2, bytes=4) for path in ("a", "b", "c"))
    change = segment(delta_name(1), files=files, rows=6, bytes=12, sorted_by=("id",))
    small = (shard(0, None, 30), shard(1, 300, 30))
    (found,) = cut(
        table(*small, change),
        {"a": {0: 2}, "b": {0: 1, 1: 1}, "c": {1: 2}},
        types=TYPES,
        outdated=frozenset(),
        shard_bytes=100,
        sample=even,
    )
    ((files_read, rows),) = ((d.files, d.rows) for d in found.deltas)
    assert (files_read, rows) == (files, 6)


def test_what_a_split_made_is_not_joined_again() -> None:
    halves = (shard(0, None, 76), shard(1, 300, 76))
    assert len(written(table(*halves, delta(1, 10, size=0)), {"d1": [5, 5]})) == 2


def test_changes_without_a_row_write_nothing() -> None:
    assert written(table(*THREE, delta(1, 0)), {"d1": [0, 0, 0]}) == []


def test_what_has_no_keys_goes_behind_the_base_with_what_is_outdated_or_small() -> None:
    manifest = table(*THREE, delta(1, 3))
    sizes = {shard.name: shard.bytes for shard in manifest.base}
    first, *others = manifest.base
    (found,) = behind(manifest, outdated={first.name}, shard_bytes=min(sizes.values()))
    assert (found.rewrite, found.deltas, found.keys) == ((first,), manifest.deltas, KeyRange())
    (found,) = behind(manifest, outdated=frozenset(), shard_bytes=2 * max(sizes.values()))
    assert found.rewrite == (first, *others)


def test_a_base_that_cannot_be_cut_is_one_shard() -> None:
    manifest = table(*THREE, delta(1, 3))
    assert in_one_shard(manifest) == (
        ShardFold(shard=shard_name(3), keys=KeyRange(), rewrite=manifest.base, deltas=manifest.deltas),
    )


def test_ranges_mean_something_only_where_all_is_sorted_by_the_key() -> None:
    assert [
        has_ranges([("id", Primitive.BIGINT)], THREE),
        has_ranges([("id__2", Primitive.BIGINT)], THREE),
        has_ranges([("id", Primitive.BIGINT)], (*THREE, segment("delta_00000001"))),
        has_ranges([], ()),
    ] == [True, False, False, False]
    assert not has_ranges([("id", Primitive.DOUBLE)], THREE)
    both = segment("delta_00000001", sorted_by=("id", "x"))
    assert has_ranges([("id", Primitive.BIGINT), ("x", Primitive.STRING)], [both])
    # One column without an order is enough: files of such a key lie in no order that a merge could go by.
    assert not has_ranges([("id", Primitive.BIGINT), ("x", Primitive.DOUBLE)], [both])


def test_bounds_are_in_the_order_of_the_keys_not_of_the_names() -> None:
    assert bounds((shard(2, 90), shard(0, None), shard(1, 100)), TYPES) == ((90,), (100,))
    assert bounds((shard(1, 100), shard(2, 90), shard(0, None)), TYPES) == ((90,), (100,))


@given(
    lows=st.lists(st.integers(1, 999), unique=True, max_size=6).map(sorted),
    sizes=st.lists(st.integers(0, 400), min_size=7, max_size=7),
    rows=st.lists(st.integers(0, 5), min_size=7, max_size=7),
    size=st.integers(0, 500),
)
def test_what_is_written_covers_all_changes_once_and_leaves_the_ranges_whole(
    lows: list[int], sizes: list[int], rows: list[int], size: int
) -> None:
    starts: list[int | None] = [None, *lows]
    base = tuple(shard(n, low, sizes[n]) for n, low in enumerate(starts))
    rows = rows[: len(base)]
    change = delta(1, max(sum(rows), 1), size)
    found = cut(
        table(*base, change), sparse({"d1": rows}), types=TYPES, outdated=frozenset(), shard_bytes=100, sample=even
    )
    replaced = {s.name for f in found for s in f.rewrite}
    kept = [s.low for s in base if s.name not in replaced]
    after = sorted([*kept, *(f.low for f in found)], key=lambda low: -1 if low is None else int(low[0]))
    assert after[0] is None
    assert len({f.shard for f in found} | {s.name for s in base if s.name not in replaced}) == len(after)
    assert all(s.name in replaced for s, n in zip(base, rows, strict=True) if n)
    assert all(n or s.bytes <= 100 // SMALL for s, n in zip(base, rows, strict=True) if s.name in replaced)
    assert all(one.keys.high is None or one.keys.high <= (other.keys.low or ()) for one, other in pairwise(found))
