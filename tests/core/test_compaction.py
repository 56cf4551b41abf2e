from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from schemasync.core.compaction import (
    FoldCounts,
    FoldPlan,
    Retirement,
    after_fold,
    after_retirement,
    due,
    needs_fold,
    plan_fold,
    plan_rekey,
    shown_by_now,
    shown_late,
)
from schemasync.core.manifest import Manifest, Segment, SegmentKind, StateId, Superseded, delta_name, shard_name
from schemasync.core.sharding import KeyRange, ShardFold, in_one_shard
from tests.core.builders import admitted, fresh, landed, segment

HOUR = 3_600_000


def plan(manifest: Manifest, *, now_ms: int = 1000, outdated: frozenset[str] = frozenset()) -> FoldPlan | None:
    if not needs_fold(manifest, outdated=outdated):
        return None
    return plan_fold(manifest, in_one_shard(manifest), now_ms=now_ms, tombstone_retention_ms=300)


def folded(manifest: Manifest, *, now_ms: int = 1000, version: int = 1) -> Manifest:
    """Return the manifest after a whole compaction."""
    found = plan(manifest, now_ms=now_ms, outdated=frozenset(s.name for s in manifest.segments))
    assert found is not None
    (shard,) = found.shards
    base = segment(shard.shard, schema_version=version, location=f"base/{found.generation}")
    return after_fold(manifest, found, written=[base], now_ms=now_ms)


def left(of: Segment, since_ms: int) -> Superseded:
    return Superseded(segment=of.name, location=of.location, since_ms=since_ms)


def test_nothing_to_fold_is_no_plan() -> None:
    assert plan(fresh()) is None
    assert plan(folded(admitted(fresh()))) is None


def test_all_deltas_are_folded_into_the_only_shard() -> None:
    manifest = admitted(admitted(folded(admitted(fresh(), now_ms=1000))))
    assert plan(manifest) == FoldPlan(
        shards=(ShardFold(shard=shard_name(2), keys=KeyRange(), rewrite=manifest.base, deltas=manifest.deltas),),
        fold=manifest.deltas,
        generation=2,
        purge_before_ms=700,
    )


def test_a_base_that_is_outdated_is_rewritten_without_any_delta() -> None:
    manifest = folded(admitted(fresh()))
    found = plan(manifest, outdated=frozenset({manifest.base[0].name}))
    assert found is not None
    assert (found.rewrite, found.fold) == (manifest.base, ())


def test_what_was_in_force_a_moment_ago_is_not_old_because_the_clock_was_behind() -> None:
    """By the clock of this run it is 1000, and the state before it was published at 5000."""
    current = admitted(fresh(), now_ms=5000)
    after = folded(current, now_ms=1000)
    assert [s.since_ms for s in after.superseded] == [5000]
    assert [f.folded_ms for f in after.admitted] == [5000]


def test_a_plan_says_what_it_costs() -> None:
    found = plan(admitted(admitted(folded(admitted(fresh())))))
    assert found is not None
    assert (found.bytes_read, found.events) == (30, 6)


def test_the_new_shard_replaces_what_was_read_and_the_rest_is_listed_for_later() -> None:
    before = admitted(folded(admitted(fresh(), files=2)), now_ms=1500)
    after = folded(before, now_ms=2000, version=2)
    assert after.segments == (segment(shard_name(2), schema_version=2, location="base/2"),)
    assert (after.state, after.parent, after.schema_version) == (StateId(generation=2, admission=0), before.state, 2)
    assert after.superseded == (
        left(segment("delta_00000001"), 1000),
        left(segment("delta_00000002", created_ms=1500), 2000),
        left(segment(shard_name(1), location="base/1"), 2000),
    )
    assert [(f.path, f.folded_in, f.folded_ms) for f in after.admitted] == [
        ("incremental/1-0.parquet", 1, 1000),
        ("incremental/1-1.parquet", 1, 1000),
        ("incremental/2-0.parquet", 2, 2000),
    ]


def test_before_a_key_changes_all_deltas_are_folded_and_no_tombstone_goes() -> None:
    before = admitted(folded(admitted(fresh())))
    found = plan_rekey(before, ("code",))
    assert found is not None
    assert ([s.name for s in found.fold], found.purge_before_ms) == (["delta_00000002"], 0)
    assert found.next_keys == ("code",)


def test_a_base_that_remembers_deletes_is_looked_at_before_its_key_changes() -> None:
    before = folded(admitted(fresh()))
    (shard,) = before.base

    def planned(**told: Any) -> list[str] | None:
        changed = before.model_copy(update={"segments": (shard.model_copy(update=told),)})
        found = plan_rekey(changed, ("code",))
        return None if found is None else [s.name for s in found.rewrite]

    assert planned() is None
    assert planned(tombstones=1) == [shard.name]


def test_one_of_several_shards_that_remembers_deletes_is_reason_enough_to_look_at_all() -> None:
    """Its tombstones are of the key before: left as they are, they would hide rows of the next one."""
    shards = (segment(shard_name(1), tombstones=1), segment(shard_name(2), low=("5",)))
    before = fresh().model_copy(
        update={"segments": shards, "next_shard": 3, "state": StateId(generation=4, admission=0)}
    )
    found = plan_rekey(before, ("code",))
    assert found is not None
    assert (found.rewrite, found.generation) == (shards, 5)


def test_a_delta_that_came_after_the_plan_stays() -> None:
    before = admitted(fresh())
    found = plan(before)
    assert found is not None
    later = admitted(before)
    after = after_fold(later, found, written=[segment(shard_name(1))], now_ms=2000)
    assert [s.name for s in after.segments] == [shard_name(1), "delta_00000002"]
    assert [f.folded_in for f in after.admitted] == [1, None]


def test_what_was_ahead_of_the_base_before_need_not_be_ahead_of_the_one_that_follows() -> None:
    """A view that took it to be would show it where the new base has something newer."""
    before = admitted(fresh())
    found = plan(before)
    assert found is not None
    (folded_one,) = before.deltas
    late = segment("delta_00000002", ahead=True, ahead_of_deltas=True)
    after = after_fold(
        before.model_copy(update={"segments": (folded_one, late), "next_delta": 3}),
        found,
        written=[segment(shard_name(1))],
        now_ms=2000,
    )
    assert [(s.name, s.ahead, s.ahead_of_deltas) for s in after.deltas] == [(late.name, False, False)]


def test_shards_that_are_not_written_stay_and_no_name_is_given_twice() -> None:
    shards = (segment(shard_name(1)), segment(shard_name(2), low=("5",)), segment(shard_name(3), low=("9",)))
    before = fresh().model_copy(update={"segments": shards, "next_shard": 4})
    pieces = tuple(ShardFold(shard=shard_name(n), keys=KeyRange(), rewrite=shards[:2], deltas=()) for n in (4, 5))
    found = plan_fold(before, pieces, now_ms=1000, tombstone_retention_ms=300)
    written = [segment(piece.shard, location=f"base/2/{piece.shard}") for piece in pieces]
    after = after_fold(before, found, written=written, now_ms=2000)
    assert [s.name for s in after.segments] == [shard_name(4), shard_name(5), shard_name(3)]
    assert [(s.segment, s.registered) for s in after.superseded] == [(shard_name(1), True), (shard_name(2), True)]
    assert (found.rewrite, after.next_shard) == (shards[:2], 6)


def test_what_two_shards_counted_is_added() -> None:
    one = FoldCounts(read=8, written=1, rows=2, keys=3, inserted=4, updated=5, deleted=6, purged=7, unsent=("b", "a"))
    other = FoldCounts(
        read=80, written=10, rows=20, keys=30, inserted=40, updated=50, deleted=60, purged=70, unsent=("a", "c")
    )
    assert one + other == FoldCounts(
        read=88, written=11, rows=22, keys=33, inserted=44, updated=55, deleted=66, purged=77, unsent=("a", "b", "c")
    )


def dues(manifest: Manifest, now_ms: int, *, vacuum: int = 7 * HOUR) -> list[list[str]]:
    """Return what is due: partitions, directories, sink files."""
    found = due(manifest, now_ms=now_ms, reader_grace_ms=HOUR, vacuum_retention_ms=vacuum)
    places = [s.location for s in found.directories]
    return [[s.segment for s in found.partitions], places, [f.path for f in found.sink_files]]


def test_what_is_due_comes_with_time() -> None:
    manifest = folded(admitted(fresh()), now_ms=0)
    sink = ["incremental/1-0.parquet"]
    assert dues(manifest, HOUR - 1) == [[], [], []]
    assert dues(manifest, HOUR) == [["delta_00000001"], [], sink]
    assert dues(manifest, 8 * HOUR - 1) == [["delta_00000001"], [], sink]
    assert dues(manifest, 8 * HOUR) == [["delta_00000001"], ["data/delta_00000001"], sink]


def test_no_directory_goes_before_its_partition_may() -> None:
    assert dues(folded(admitted(fresh()), now_ms=0), HOUR - 1, vacuum=0) == [[], [], []]


def test_the_oldest_goes_first() -> None:
    manifest = folded(admitted(admitted(fresh())), now_ms=0)
    entries = tuple(reversed(folded(admitted(manifest), now_ms=5).superseded))
    reordered = manifest.model_copy(update={"superseded": entries})
    assert dues(reordered, 9 * HOUR)[:2] == [
        ["delta_00000001", "delta_00000002", "base_s00000001", "delta_00000003"],
        ["data/delta_00000001", "data/delta_00000002", "base/1", "data/delta_00000003"],
    ]


def test_what_a_sink_wrote_is_not_due_before_it_is_folded() -> None:
    assert dues(admitted(fresh()), 10**12) == [[], [], []]


def test_what_a_state_superseded_counts_from_when_it_is_shown() -> None:
    first = folded(admitted(fresh()), now_ms=5)
    second = folded(admitted(first), now_ms=7)
    later = shown_late(second, now_ms=HOUR)
    assert later is not None
    assert [(s.segment, s.since_ms) for s in later.superseded] == [
        ("delta_00000001", 5),
        ("delta_00000002", HOUR),
        ("base_s00000001", HOUR),
    ]
    assert shown_late(later, now_ms=0) == later


@pytest.mark.parametrize(
    ("now_ms", "since_ms"), [(7, 7), (7 + HOUR // 10, 7), (8 + HOUR // 10, 8 + HOUR // 10), (3, 7)]
)
def test_what_a_state_superseded_counts_anew_where_it_took_long_to_show_it(now_ms: int, since_ms: int) -> None:
    published = folded(admitted(fresh()), now_ms=7)
    shown = shown_by_now(published, now_ms=now_ms, reader_grace_ms=HOUR)
    assert {s.since_ms for s in shown.superseded} == {since_ms}
    assert (shown is published) == (since_ms == 7)


def test_a_state_that_superseded_nothing_is_not_counted_anew() -> None:
    assert shown_late(admitted(folded(admitted(fresh()), now_ms=5), now_ms=6), now_ms=HOUR) is None
    current = admitted(folded(admitted(fresh()), now_ms=5), now_ms=6)
    assert shown_by_now(current, now_ms=HOUR, reader_grace_ms=1) is current


def test_retirement_is_empty_or_not() -> None:
    """What counts as empty is not looked at: each of the three kinds is due at a time of its own."""
    assert Retirement().empty
    superseded = (left(segment("delta_00000001"), 0),)
    assert not Retirement(partitions=superseded).empty
    assert not Retirement(directories=superseded).empty
    assert not Retirement(sink_files=(landed("a", "d"),)).empty


def test_what_was_cleaned_up_is_no_longer_listed() -> None:
    manifest = admitted(folded(admitted(fresh()), now_ms=0))
    first = due(manifest, now_ms=HOUR, reader_grace_ms=HOUR, vacuum_retention_ms=2 * HOUR)
    after = after_retirement(manifest, first, now_ms=HOUR)
    assert [(s.segment, s.registered) for s in after.superseded] == [("delta_00000001", False)]
    assert [f.path for f in after.admitted] == ["incremental/2-0.parquet"]
    assert (after.segments, after.parent, after.state) == (
        manifest.segments, manifest.state, StateId(generation=1, admission=2),
    )  # fmt: skip
    assert due(after, now_ms=3 * HOUR - 1, reader_grace_ms=HOUR, vacuum_retention_ms=2 * HOUR).directories == ()
    second = due(after, now_ms=3 * HOUR, reader_grace_ms=HOUR, vacuum_retention_ms=2 * HOUR)
    assert after_retirement(after, second, now_ms=3 * HOUR).superseded == ()


def test_a_partition_that_is_gone_stays_gone_when_the_next_one_goes() -> None:
    """Listed as registered again it would be dropped again, and each cleaning up would publish one more state."""
    first = folded(admitted(fresh()), now_ms=0)
    first = after_retirement(first, _due(first, HOUR), now_ms=HOUR)
    second = folded(admitted(first), now_ms=HOUR)
    after = after_retirement(second, _due(second, 2 * HOUR), now_ms=2 * HOUR)
    assert len(after.superseded) == 3
    assert [s.segment for s in after.superseded if s.registered] == []


def _due(manifest: Manifest, now_ms: int) -> Retirement:
    return due(manifest, now_ms=now_ms, reader_grace_ms=HOUR, vacuum_retention_ms=9 * HOUR)


def test_of_a_name_that_the_sink_wrote_twice_only_the_file_that_is_due_is_no_longer_listed() -> None:
    first = folded(admitted(fresh()), now_ms=0)
    (early,) = first.admitted
    late = early.model_copy(
        update={"modified_ms": 5, "segment": "delta_00000002", "folded_in": None, "folded_ms": None}
    )
    manifest = first.model_copy(update={"admitted": (early, late)})
    found = due(manifest, now_ms=HOUR, reader_grace_ms=HOUR, vacuum_retention_ms=2 * HOUR)
    assert (found.sink_files, after_retirement(manifest, found, now_ms=HOUR).admitted) == ((early,), (late,))


@given(st.lists(st.sampled_from(["admit", "fold", "retire"]), max_size=12))
def test_cleaning_up_twice_finds_nothing(steps: list[str]) -> None:
    machine = Lifecycle()
    for step in steps:
        getattr(machine, step)()
    machine.manifest = machine.retired()
    again = due(machine.manifest, now_ms=machine.now, reader_grace_ms=HOUR, vacuum_retention_ms=3 * HOUR)
    assert again.empty


class Lifecycle(RuleBasedStateMachine):
    """Admits, folds and cleans up in any order, and keeps book of where every event is."""

    def __init__(self) -> None:
        super().__init__()
        self.manifest = fresh()
        self.now = 0
        self.version = 1
        self.in_base: set[str] = set()
        self.deleted: set[str] = set()

    @rule()
    def admit(self) -> None:
        self.now += 1
        self.manifest = admitted(self.manifest, now_ms=self.now, schema_version=self.version)

    @rule()
    def evolve(self) -> None:
        self.version += 1

    @rule()
    def fold(self) -> None:
        self.now += HOUR
        deltas = {s.name for s in self.manifest.deltas}
        older = frozenset(s.name for s in self.manifest.segments if s.schema_version != self.version)
        if plan(self.manifest, outdated=older) is not None:
            self.manifest = folded(self.manifest, now_ms=self.now, version=self.version)
            self.in_base |= deltas

    @rule()
    def wait(self) -> None:
        self.now += HOUR

    def retired(self) -> Manifest:
        found = due(self.manifest, now_ms=self.now, reader_grace_ms=HOUR, vacuum_retention_ms=3 * HOUR)
        assert not {s.location for s in found.directories} & {s.location for s in self.manifest.segments}
        assert not {s.segment for s in found.partitions} & {s.name for s in self.manifest.segments}
        assert {f.segment for f in found.sink_files} <= self.in_base
        return after_retirement(self.manifest, found, now_ms=self.now)

    @rule()
    def retire(self) -> None:
        self.manifest = self.retired()

    @invariant()
    def every_event_is_in_the_base_or_in_one_delta(self) -> None:
        names = [s.name for s in self.manifest.segments]
        deltas = {f"delta_{n:08}" for n in range(1, self.manifest.next_delta)} - self.in_base
        assert len(set(names)) == len(names)
        base = {s.name for s in self.manifest.segments if s.kind is SegmentKind.BASE}
        assert set(names) - base == deltas
        assert len(base) == bool(self.in_base)

    @invariant()
    def the_view_names_what_is_in_the_table_and_nothing_else_that_is_registered(self) -> None:
        names = {s.name for s in self.manifest.segments}
        there = names | {s.segment for s in self.manifest.superseded if s.registered}
        later = {shard_name(self.manifest.next_shard), delta_name(self.manifest.next_delta)}
        contents = self.manifest.contents
        ranges = (*contents.base, *contents.deltas)
        assert {name for name in there | later if any(low <= name <= high for low, high in ranges)} == names

    @invariant()
    def a_landed_file_is_folded_exactly_when_its_delta_is(self) -> None:
        assert all((f.folded_in is not None) == (f.segment in self.in_base) for f in self.manifest.admitted)

    @invariant()
    def what_is_registered_has_a_directory_that_is_listed(self) -> None:
        places = [s.location for s in self.manifest.segments] + [s.location for s in self.manifest.superseded]
        assert len(set(places)) == len(places)


LifecycleTest = Lifecycle.TestCase
LifecycleTest.settings = settings(max_examples=30, stateful_step_count=25)
