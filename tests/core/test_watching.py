"""What the watcher decides from values: reach, rhythm, backoff, which table, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.changes import AddColumn, ChangeEnvelope, DropColumn, ReorderColumns
from schemasync.core.config import Compaction, Config, Watch
from schemasync.core.encoding import Leaf
from schemasync.core.manifest import AdmittedFile, Manifest, Segment, SegmentKind, StateId, Superseded, empty
from schemasync.core.mapping import TableTarget, map_subjects
from schemasync.core.ports import FileInfo
from schemasync.core.schema import Column, Envelope, EnvelopeKind
from schemasync.core.types import Primitive
from schemasync.core.watching import (
    LISTS_EVERY_MS,
    Backoff,
    Listed,
    Reach,
    Reason,
    Rhythm,
    TableMemory,
    cleanup_due_ms,
    fold_due_ms,
    is_safe,
    jittered,
    lists_every_ms,
)

POLL = 15_000
WATCH = Watch(poll=POLL, sweep=3_600_000)
NOW = 1_000_000_000


def target() -> TableTarget:
    config = Config.model_validate({"registry": {"url": "file:///unused"}})
    [found] = map_subjects(["shop.student-value"], config).targets
    return found


def column(name: str) -> Column:
    return Column(name=name, encoding=Leaf(type=Primitive.INT), nullable=True)


def file(name: str, size: int = 1) -> FileInfo:
    return FileInfo(path=f"incremental/increment_2026112000/{name}", bytes=size, modified_ms=1)


def segment(kind: SegmentKind, created_ms: int) -> Segment:
    return Segment(
        name=kind.value,
        kind=kind,
        location=kind.value,
        files=(),
        rows=1,
        bytes=1,
        schema_version=1,
        columns=("id",),
        created_ms=created_ms,
    )


def manifest(*segments: Segment, **rest: Any) -> Manifest:
    nothing = empty("student", "shop.student-value", schema_version=1, keyed=True)
    return nothing.model_copy(
        update={"state": StateId(generation=1, admission=0), "segments": segments, "published_ms": NOW, **rest}
    )


def test_the_first_tick_sweeps() -> None:
    assert Rhythm().reach(now_ms=NOW, newest_id=None) is Reach.SWEEP


@pytest.mark.parametrize(
    ("rhythm", "newest_id", "expected"),
    [
        (Rhythm(sweep_ms=NOW, lists_ms=NOW + 1, newest_id=7), 7, Reach.SWEEP),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW, newest_id=7), 7, Reach.LISTS),
        (Rhythm(sweep_ms=NOW + 2, lists_ms=NOW + 2, listed_ms=NOW + 1, newest_id=7), 7, Reach.SWEEP),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, newest_id=7), 8, Reach.LISTS),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1), 1, Reach.LISTS),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, rested_ms=NOW, newest_id=7), 8, Reach.LISTS),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, rested_ms=NOW + 1, newest_id=7), 8, Reach.PROBE),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW, rested_ms=NOW + 1, newest_id=7), 7, Reach.LISTS),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, newest_id=7), 7, Reach.PROBE),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, newest_id=7), 6, Reach.PROBE),
        (Rhythm(sweep_ms=NOW + 1, lists_ms=NOW + 1, newest_id=7), None, Reach.PROBE),
    ],
)
def test_a_tick_looks_as_far_as_clock_and_probe_ask_for(rhythm: Rhythm, newest_id: int | None, expected: Reach) -> None:
    assert rhythm.reach(now_ms=NOW, newest_id=newest_id) is expected


def after(rhythm: Rhythm, reach: Reach, *, newest_id: int | None) -> Rhythm:
    return rhythm.after(reach, watch=WATCH, now_ms=NOW, newest_id=newest_id, subjects=3, draw=0.5)


def test_after_a_sweep_both_clocks_begin_anew() -> None:
    expected = Rhythm(
        sweep_ms=NOW + 3_600_000, lists_ms=NOW + LISTS_EVERY_MS, listed_ms=NOW, rested_ms=NOW, newest_id=7
    )
    assert after(Rhythm(), Reach.SWEEP, newest_id=7) == expected


def test_after_listing_because_something_was_registered_the_next_tick_lists_once_more() -> None:
    grown = after(Rhythm(sweep_ms=NOW + 9, lists_ms=NOW + 9, newest_id=7), Reach.LISTS, newest_id=8)
    again = after(grown, Reach.LISTS, newest_id=8)
    assert (grown, again) == (
        Rhythm(sweep_ms=NOW + 9, lists_ms=NOW, listed_ms=NOW, rested_ms=NOW, newest_id=8),
        Rhythm(sweep_ms=NOW + 9, lists_ms=NOW + LISTS_EVERY_MS, listed_ms=NOW, rested_ms=NOW, newest_id=8),
    )


def test_a_registry_that_others_use_all_the_time_is_listed_no_more_often_than_one_without_a_probe() -> None:
    before = Rhythm(sweep_ms=NOW + 10**9, lists_ms=NOW + 9, newest_id=7)
    many = before.after(Reach.LISTS, watch=WATCH, now_ms=NOW, newest_id=8, subjects=600, draw=0.5)
    soon, later = (many.reach(now_ms=NOW + ms, newest_id=9) for ms in (59_999, 60_000))
    assert (many.lists_ms, soon, later) == (NOW + 60_000, Reach.PROBE, Reach.LISTS)


def test_a_probe_alone_changes_nothing() -> None:
    rhythm = Rhythm(sweep_ms=NOW + 9, lists_ms=NOW + 9, newest_id=7)
    assert after(rhythm, Reach.PROBE, newest_id=7) == rhythm


def test_the_newest_id_never_goes_backwards() -> None:
    rhythm = Rhythm(sweep_ms=NOW + 9, lists_ms=NOW, newest_id=7)
    assert [after(rhythm, Reach.LISTS, newest_id=n).newest_id for n in (5, None)] == [7, 7]


@pytest.mark.parametrize(
    ("probed", "subjects", "expected"),
    [(True, 3, LISTS_EVERY_MS), (False, 150, 0), (False, 151, 15_100), (False, 10_000, LISTS_EVERY_MS)],
)
def test_without_a_probe_versions_are_listed_as_often_as_a_bounded_rate_allows(
    probed: bool, subjects: int, expected: int
) -> None:
    assert lists_every_ms(POLL, probed=probed, subjects=subjects) == expected


@given(st.integers(0, 10**10), st.floats(0, 1))
def test_jitter_stays_within_a_tenth(duration: int, draw: float) -> None:
    assert 0.9 * duration - 1 <= jittered(duration, draw) <= 1.1 * duration + 1


def failed(backoff: Backoff, draw: float = 1.0) -> Backoff:
    return backoff.failed(now_ms=NOW, first_ms=POLL, longest_ms=100_000, draw=draw)


def test_pauses_double_up_to_the_longest() -> None:
    backoff, pauses = Backoff(), []
    for _ in range(5):
        backoff = failed(backoff)
        pauses.append(backoff.until_ms - NOW)
    assert pauses == [15_000, 30_000, 60_000, 100_000, 100_000]


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_pause_is_never_shorter_than_half_and_never_longer_than_the_longest(failures: int, draw: float) -> None:
    backoff = failed(Backoff(failures=failures), draw)
    assert POLL / 2 <= backoff.until_ms - NOW <= 100_000


def test_whoever_failed_is_tried_again_where_the_clock_was_set_back() -> None:
    backoff = failed(Backoff())
    assert [backoff.waits(NOW + ms) for ms in (-1, 0, 14_999, 15_000)] == [False, True, True, False]


def test_whoever_failed_is_left_alone_until_the_pause_is_over() -> None:
    backoff = failed(Backoff())
    assert (backoff.waits(NOW), backoff.waits(NOW + POLL - 1), backoff.waits(NOW + POLL)) == (True, True, False)


def looked(memory: TableMemory, *landed: FileInfo, due_ms: int | None = None) -> TableMemory:
    return memory.looked_at(frozenset(landed), manifest=manifest(), due_ms=due_ms)


LISTED = Listed(versions=(1,), key_versions=(1,))


def listed(memory: TableMemory, what: Listed = LISTED, *, sweep: bool = False) -> TableMemory:
    return memory.listing(target(), what, sweep=sweep)


def test_a_table_is_looked_at_when_it_is_met_and_then_left_alone() -> None:
    first = listed(TableMemory())
    then = looked(first, file("a"))
    assert (first.calls(frozenset(), now_ms=NOW), then.calls(frozenset({file("a")}), now_ms=NOW)) == (
        Reason.REGISTRY,
        None,
    )


@pytest.mark.parametrize(
    ("what", "sweep", "expected"),
    [
        (LISTED, False, None),
        (LISTED, True, Reason.REGISTRY),
        (Listed(versions=(1, 2), key_versions=(1,)), False, Reason.REGISTRY),
        (Listed(versions=(1,), key_versions=(1, 2)), False, Reason.REGISTRY),
        (Listed(trouble="403"), False, Reason.REGISTRY),
    ],
)
def test_what_the_registry_lists_calls_for_a_look_where_it_differs(
    what: Listed, sweep: bool, expected: Reason | None
) -> None:
    memory = listed(looked(listed(TableMemory())), what, sweep=sweep)
    assert memory.calls(frozenset(), now_ms=NOW) is expected


def test_a_call_for_a_look_stands_until_the_look() -> None:
    called = listed(looked(listed(TableMemory())), Listed(versions=(1, 2)))
    assert listed(called).calls(frozenset(), now_ms=NOW) is Reason.REGISTRY


def test_another_configuration_of_the_table_calls_for_a_look() -> None:
    memory = looked(listed(TableMemory()))
    config = Config.model_validate({"registry": {"url": "file:///u"}, "defaults": {"view": {"metadata": True}}})
    [other] = map_subjects(["shop.student-value"], config).targets
    assert memory.listing(other, LISTED, sweep=False).calls(frozenset(), now_ms=NOW) is Reason.REGISTRY


@pytest.mark.parametrize("there", [frozenset({file("a"), file("b")}), frozenset({file("a", 2)}), frozenset()])
def test_files_that_came_went_or_changed_call_for_a_look(there: frozenset[FileInfo]) -> None:
    assert looked(listed(TableMemory()), file("a")).calls(there, now_ms=NOW) is Reason.LANDED


def test_the_clock_calls_for_a_look_when_something_is_due() -> None:
    memory = looked(listed(TableMemory()), due_ms=NOW)
    assert (memory.calls(frozenset(), now_ms=NOW - 1), memory.calls(frozenset(), now_ms=NOW)) == (None, Reason.TIME)


def test_a_table_that_failed_waits_whatever_happens_and_is_then_tried_again() -> None:
    memory = TableMemory(applying=failed(Backoff()))
    assert (memory.calls(frozenset({file("a")}), now_ms=NOW), memory.calls(frozenset(), now_ms=NOW + POLL)) == (
        None,
        Reason.RETRY,
    )


def test_a_look_that_went_well_ends_the_backoff() -> None:
    assert looked(listed(TableMemory(applying=failed(Backoff())))).applying == Backoff()


def test_what_is_forgiven_is_looked_at_and_folded_at_once() -> None:
    quiet = looked(listed(TableMemory()))
    applying = replace(quiet, applying=failed(Backoff())).forgiven()
    folding = replace(quiet, folding=failed(Backoff())).forgiven()
    assert [m.calls(frozenset(), now_ms=NOW) for m in (quiet.forgiven(), applying, folding)] == [
        None,
        Reason.REGISTRY,
        Reason.REGISTRY,
    ]
    assert folding.folding == Backoff()


def test_files_that_no_manifest_knows_are_pending() -> None:
    admitted = AdmittedFile(
        path=file("a").path, bytes=1, rows=1, modified_ms=0, writer_version=1, segment="delta_00000001"
    )
    memory = TableMemory().looked_at(frozenset(), manifest=manifest(admitted=(admitted,)), due_ms=None)
    landed = frozenset({file("a"), file("b"), file("c")})
    kept = memory.looked_at(landed, manifest=None, due_ms=None)
    assert (memory.pending(landed), kept.pending(landed)) == (2, 2)


RULES = Compaction(every=100, reader_grace=10, vacuum_retention=50)
BASE, DELTA = segment(SegmentKind.BASE, NOW), segment(SegmentKind.DELTA, NOW + 5)


@pytest.mark.parametrize(
    ("found", "decided", "expected"),
    [
        (manifest(), 0, None),
        (manifest(BASE), 0, None),
        (manifest(BASE, DELTA, compacted_ms=NOW + 7), 0, NOW + 107),
        (manifest(BASE, DELTA, compacted_ms=NOW + 7), NOW + 9, NOW + 109),
        (manifest(BASE, DELTA, compacted_ms=NOW + 7), NOW + 5, NOW + 107),
        (manifest(DELTA), NOW + 9, 0),
        # Noted while the clock was ahead.
        (manifest(BASE, DELTA, compacted_ms=NOW + 11), 0, NOW + 10),
        (manifest(BASE, DELTA, compacted_ms=NOW + 7), NOW + 11, NOW + 10),
    ],
)
def test_a_compaction_is_due_so_long_after_the_last_one(found: Manifest, decided: int, expected: int | None) -> None:
    due = fold_due_ms(found, rules=RULES, outdated=frozenset(), decided_ms=decided, now_ms=NOW + 10)
    assert due == expected


def test_a_base_that_is_outdated_is_compacted_as_one_with_changes() -> None:
    found = manifest(BASE, compacted_ms=NOW)
    assert fold_due_ms(found, rules=RULES, outdated=frozenset({BASE.name}), decided_ms=0, now_ms=NOW) == NOW + 100


def superseded(*, registered: bool) -> Superseded:
    return Superseded(segment="delta_1", location="g=1", since_ms=NOW, registered=registered)


FOLDED = AdmittedFile(
    path="a", bytes=1, rows=1, modified_ms=0, writer_version=1, segment="d", folded_in=1, folded_ms=NOW + 3
)
FRESH = AdmittedFile(path="b", bytes=1, rows=1, modified_ms=0, writer_version=1, segment="e")


@pytest.mark.parametrize(
    ("found", "rules", "expected"),
    [
        (manifest(), RULES, None),
        (manifest(superseded=(superseded(registered=True),)), RULES, NOW + 10),
        (manifest(superseded=(superseded(registered=False),)), RULES, NOW + 60),
        (
            manifest(superseded=(superseded(registered=False),)),
            RULES.model_copy(update={"reader_grace": 70}),
            NOW + 120,
        ),
        (manifest(admitted=(FOLDED, FRESH)), RULES, NOW + 13),
        (manifest(admitted=(FOLDED,)), RULES.model_copy(update={"on_fold": "keep"}), None),
        (manifest(admitted=(FRESH,)), RULES, None),
    ],
)
def test_cleaning_up_is_due_with_the_first_thing_whose_time_is_over(
    found: Manifest, rules: Compaction, expected: int | None
) -> None:
    assert cleanup_due_ms(found, rules=rules) == expected


def test_what_only_adds_is_safe_and_what_takes_away_is_not() -> None:
    add, drop = AddColumn(column=column("a"), position=0), DropColumn(column=column("b"))
    order = ReorderColumns(current=("a", "b"), desired=("b", "a"))
    unwrapped = Envelope(kind=EnvelopeKind.UNWRAPPED, op="__op")
    more = ChangeEnvelope(current=unwrapped, desired=replace(unwrapped, deleted="__deleted"))
    assert [is_safe(()), is_safe((add, order, more)), is_safe((add, drop))] == [True, True, False]
