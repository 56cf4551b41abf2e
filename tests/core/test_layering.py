from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.compaction import after_fold, after_retirement, due, plan_fold
from schemasync.core.layering import (
    CHEAP_BYTES,
    FEWEST_AT_ONCE,
    MOST_AT_ONCE,
    MOST_TOUCHED,
    WORTH,
    WORTH_IF_SHUFFLED,
    MergePlan,
    Mode,
    after_merge,
    plan_gathering,
    plan_merge,
    touching,
    why_folded,
)
from schemasync.core.manifest import (
    DataFile,
    Manifest,
    Segment,
    StateId,
    Superseded,
    after_admission,
    delta_name,
    shard_name,
)
from schemasync.core.sharding import in_one_shard
from tests.core.builders import fresh, landed, segment

LARGE = 100 * CHEAP_BYTES


def delta(number: int, size: int, *, touches: tuple[str, ...] | None = None, ahead: bool = True) -> Segment:
    return segment(delta_name(number), bytes=size, touches=touches, ahead=ahead, events=3)


def table(*deltas: Segment, shard: int = LARGE) -> Manifest:
    shards = tuple(segment(shard_name(n), bytes=shard) for n in (1, 2))
    files = tuple(landed(f"{d.name}.parquet", d.name) for d in deltas)
    return fresh().model_copy(update={"segments": (*shards, *deltas), "admitted": files, "next_delta": len(deltas) + 1})


def merge_plan(
    manifest: Manifest,
    mode: Mode = Mode.MINOR,
    outdated: frozenset[str] = frozenset(),
    *,
    in_order: bool = True,
    shuffled: bool = False,
) -> MergePlan | None:
    return plan_merge(manifest, outdated=outdated, in_order=in_order, mode=mode, shuffled=shuffled)


def planned(
    manifest: Manifest, mode: Mode = Mode.AUTO, outdated: frozenset[str] = frozenset(), *, shuffled: bool = False
) -> tuple[list[str], int, int] | None:
    found = merge_plan(manifest, mode, outdated, shuffled=shuffled)
    return None if found is None else ([s.name for s in found.merge], found.rewrite_bytes, found.change_bytes)


def test_a_change_that_is_small_beside_what_it_would_rewrite_stays_beside_it() -> None:
    assert planned(table(delta(1, 10))) == ([], 2 * LARGE, 10)
    assert planned(table(delta(1, 10, touches=(shard_name(2),)))) == ([], LARGE, 10)


def test_it_is_folded_once_it_is_worth_the_rewrite_or_that_is_cheap() -> None:
    assert planned(table(delta(1, 2 * LARGE // WORTH))) is None
    assert planned(table(delta(1, 10), shard=CHEAP_BYTES // 2)) is None
    assert planned(table(delta(1, 10, touches=()))) is None


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (table(delta(1, 10, ahead=False)), "changes are not known to be newer"),
        (table(segment(delta_name(1), ahead=True, toasted=("v",))), "placeholders"),
        (table(), "changes are not known to be newer"),
        (fresh(), "no base yet"),
    ],
    ids=["late", "placeholders", "no changes", "no base"],
)
def test_what_the_view_cannot_add_plainly_is_folded_even_where_a_merge_is_asked_for(
    manifest: Manifest, why: str
) -> None:
    assert [planned(manifest, mode) for mode in Mode] == [None, None, None]
    assert why in str(why_folded(manifest, outdated=frozenset(), in_order=True))


def test_what_is_in_no_order_or_outdated_is_folded_for_that_reason() -> None:
    found = table(delta(1, 10))
    assert why_folded(found, outdated=frozenset(), in_order=True) is None
    assert merge_plan(found, in_order=False) is None
    assert "no order" in str(why_folded(found, outdated=frozenset(), in_order=False))
    assert "older version" in str(why_folded(found, outdated={shard_name(1)}, in_order=True))


def test_what_is_outdated_is_rewritten_and_another_version_alone_is_not() -> None:
    assert planned(table(delta(1, 10)), outdated=frozenset({shard_name(1)})) is None
    newer = segment(delta_name(1), ahead=True, touches=(shard_name(1),), schema_version=2)
    assert planned(table(newer)) == ([], LARGE, 10)


def test_it_is_folded_sooner_where_queries_would_shuffle_what_it_would_rewrite() -> None:
    small, large = (table(delta(1, 2 * LARGE // WORTH_IF_SHUFFLED - less)) for less in (1, 0))
    assert [planned(found) is None for found in (small, large)] == [False, False]
    assert [planned(found, shuffled=True) is None for found in (small, large)] == [False, True]


def test_people_may_decide() -> None:
    cheap, dear = table(delta(1, 10), shard=1), table(delta(1, 10))
    assert [planned(cheap, Mode.MINOR), planned(dear, Mode.MAJOR)] == [([], 2, 10), None]
    assert planned(cheap, Mode.MINOR, shuffled=True) == ([], 2, 10)


def test_a_delta_names_the_shards_that_it_falls_into_where_they_are_few_and_their_bytes_in_any_case() -> None:
    base = tuple(segment(shard_name(n), bytes=n) for n in range(MOST_TOUCHED + 2))
    few, many = (tuple(shard.name for shard in base[1 : 1 + count]) for count in (MOST_TOUCHED, MOST_TOUCHED + 1))
    assert touching(base, few[::-1]) == {"touches": few, "touched_bytes": sum(range(1, MOST_TOUCHED + 1))}
    assert touching(base, many) == {"touches": None, "touched_bytes": sum(range(1, MOST_TOUCHED + 2))}
    assert (touching(base, ()), touching(base, None)) == ({"touches": (), "touched_bytes": 0}, {})


def test_a_fold_rewrites_no_more_than_the_shards_of_each_change_or_all() -> None:
    named, size = delta(1, 10, touches=(shard_name(2),)), {"touched_bytes": LARGE // 4}
    many = [delta(n, 10).model_copy(update=size) for n in (2, 3)]
    for deltas, rewrite in (
        ((named, many[0]), LARGE + LARGE // 4),
        (many, LARGE // 2),
        ([delta(n, 10).model_copy(update=size) for n in range(1, 20)], 2 * LARGE),
        ((named, delta(2, 10)), 2 * LARGE),
    ):
        assert planned(table(*deltas), Mode.MINOR) == ([d.name for d in deltas], rewrite, 10 * len(deltas))


def test_the_newest_deltas_are_merged_until_each_older_one_is_twice_as_large() -> None:
    merged = {
        sizes: merge_plan(table(*(delta(n, size) for n, size in enumerate(sizes, 1))))
        for sizes in [
            (10,),
            (10, 10),
            (21, 10),
            (30, 20, 10),
            (120, 30, 14, 10),
            (1, 100, 1),
            (9, 0),
            (9, 0, 0),
            (9, 0, 5),
        ]
    }
    assert {sizes: len(plan.merge) for sizes, plan in merged.items() if plan} == {
        (10,): 0,
        (10, 10): 2,
        (21, 10): 0,
        (30, 20, 10): 3,
        (120, 30, 14, 10): 3,
        (1, 100, 1): 0,
        # Of hours without a row, or whose events are all late, nothing is left to merge.
        (9, 0): 0,
        (9, 0, 0): 2,
        (9, 0, 5): 3,
    }


@given(st.lists(st.integers(1, 1000), max_size=40))
def test_few_deltas_stay_and_a_row_is_merged_few_times(sizes: list[int]) -> None:
    manifest, written, merges = table(), 0, 0
    for size in sizes:
        number = manifest.next_delta
        more = (*manifest.segments, delta(number, size))
        manifest = manifest.model_copy(update={"segments": more, "next_delta": number + 1})
        found = merge_plan(manifest)
        assert found is not None
        if found.merge:
            merged = delta(manifest.next_delta, found.bytes_read)
            manifest = after_merge(manifest, found, written=(merged,), now_ms=1)
            written, merges = written + merged.bytes, merges + 1
    total = sum(sizes)
    assert sum(s.bytes for s in manifest.deltas) == total
    assert len(manifest.deltas) <= 1 + max(total, 1).bit_length()
    assert written <= total * (1 + max(total, 1).bit_length()) * 2


def test_more_deltas_than_are_merged_at_once_are_merged_before_anything_else() -> None:
    deltas = tuple(delta(n, 10, ahead=False) for n in range(1, 3 * MOST_AT_ONCE))
    for more, merged in ((1, 2), (5, 6), (MOST_AT_ONCE - 1, MOST_AT_ONCE), (MOST_AT_ONCE + 7, MOST_AT_ONCE)):
        there = deltas[: MOST_AT_ONCE + more]
        plan = plan_gathering(table(*there), in_order=True)
        assert plan == MergePlan(merge=there[-merged:], rewrite_bytes=2 * LARGE, change_bytes=10 * len(there))
    toasted = table(*deltas, segment(delta_name(999), toasted=("v",)))
    for other, in_order in ((table(*deltas[:MOST_AT_ONCE]), True), (table(*deltas), False), (toasted, True)):
        assert plan_gathering(other, in_order=in_order) is None


@pytest.mark.parametrize(
    ("files", "merged"),
    [
        ((5,) * 12, 0),
        ((5,) * 13, 2),
        ((5,) * 30, 12),
        ((200, *(1,) * 7), 0),
        ((200, *(1,) * 8), 2),
        ((100,) * 30, FEWEST_AT_ONCE),
    ],
)
def test_of_deltas_with_many_files_fewer_are_merged_at_once(files: tuple[int, ...], merged: int) -> None:
    there = tuple(
        delta(n, 10).model_copy(update={"files": (DataFile(path="f", bytes=1, rows=1),) * count})
        for n, count in enumerate(files, 1)
    )
    plan = plan_gathering(table(*there), in_order=True)
    assert (plan.merge if plan else ()) == there[len(there) - merged :]


def test_one_delta_stands_for_those_that_were_merged() -> None:
    before = table(delta(1, 100), delta(2, 10), delta(3, 10))
    plan = merge_plan(before)
    assert plan == MergePlan(merge=before.deltas[1:], rewrite_bytes=2 * LARGE, change_bytes=120)
    assert (plan.events, plan.bytes_read) == (6, 20)
    after = after_merge(before, plan, written=(delta(4, 15),), now_ms=9)
    assert [s.name for s in after.deltas] == [delta_name(1), delta_name(4)]
    assert (after.base, after.state, after.parent) == (before.base, StateId(generation=0, admission=1), before.state)
    assert after.superseded == tuple(
        Superseded(segment=s.name, location=s.location, since_ms=9) for s in before.deltas[1:]
    )
    assert [(f.segment, f.folded_in, f.folded_ms) for f in after.admitted] == [
        (delta_name(1), None, None),
        (delta_name(4), 0, 9),
        (delta_name(4), 0, 9),
    ]
    assert (after.next_delta, after.compacted_ms, after.published_ms) == (5, 9, 9)


def test_a_landed_file_goes_by_when_it_was_taken_in_first() -> None:
    """Else one that is merged again and again would never go."""
    manifest = after_merge(*merging(table(delta(1, 10), delta(2, 10))), written=(delta(3, 20),), now_ms=9)
    later = manifest.model_copy(update={"segments": (*manifest.segments, delta(4, 15))})
    merged = after_merge(*merging(later), written=(delta(5, 35),), now_ms=99)
    fold = plan_fold(merged, in_one_shard(merged), now_ms=999, tombstone_retention_ms=0)
    folded = after_fold(merged, fold, written=(segment(shard_name(3)),), now_ms=999)
    for after, name in ((merged, delta_name(5)), (folded, delta_name(5))):
        assert [(f.segment, f.folded_in, f.folded_ms) for f in after.admitted] == [(name, 0, 9)] * 2


def merging(manifest: Manifest) -> tuple[Manifest, MergePlan]:
    plan = merge_plan(manifest)
    assert plan is not None
    return manifest, plan


GRACE, FILES = 10, 3


def admitted_and_merged(manifest: Manifest, size: int, *, now_ms: int) -> Manifest:
    """Return the manifest after one more admission, a minor compaction and what is due then."""
    name = delta_name(manifest.next_delta)
    files = [landed(f"{name}-{n}.parquet", name) for n in range(FILES)]
    manifest = after_admission(
        manifest, segment=delta(manifest.next_delta, size), files=files, schema_version=1, now_ms=now_ms
    )
    _, plan = merging(manifest)
    written = (delta(manifest.next_delta, plan.bytes_read),) if plan.merge else ()
    manifest = after_merge(manifest, plan, written=written, now_ms=now_ms)
    found = due(manifest, now_ms=now_ms, reader_grace_ms=GRACE, vacuum_retention_ms=GRACE)
    return after_retirement(manifest, found, now_ms=now_ms)


@given(st.lists(st.integers(1, 1000), min_size=100, max_size=200))
def test_a_table_that_is_never_folded_lets_its_landed_files_go(sizes: list[int]) -> None:
    """What stays are files of deltas that were not merged yet, which are few, and of those merged within the grace."""
    manifest = table()
    for number, size in enumerate(sizes):
        manifest = admitted_and_merged(manifest, size, now_ms=number * GRACE)
    assert len(manifest.admitted) <= 2 * FILES * (2 + sum(sizes).bit_length())
    assert {f.segment for f in manifest.admitted if f.folded_ms is None} <= {s.name for s in manifest.deltas}


def test_a_manifest_grows_with_what_is_in_the_table_and_not_with_its_age() -> None:
    manifest, entries = table(), []
    for number in range(2000):
        manifest = admitted_and_merged(manifest, 100, now_ms=number)
        entries.append(len(manifest.admitted) + len(manifest.superseded))
    assert max(entries[1000:]) <= max(entries[:1000]) + FILES


def test_what_was_merged_is_not_old_because_the_clock_was_behind() -> None:
    before = table(delta(1, 10), delta(2, 10)).model_copy(update={"published_ms": 50})
    plan = merge_plan(before)
    assert plan is not None
    after = after_merge(before, plan, written=(delta(3, 15),), now_ms=9)
    assert [s.since_ms for s in after.superseded] == [50, 50]


def test_where_deltas_are_few_only_the_time_is_noted() -> None:
    before = table(delta(1, 10))
    plan = MergePlan(merge=(), rewrite_bytes=1, change_bytes=1)
    after = after_merge(before, plan, written=(), now_ms=9)
    assert (after.segments, after.next_delta, after.compacted_ms) == (before.segments, 2, 9)
