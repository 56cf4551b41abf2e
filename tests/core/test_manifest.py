from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemasync.core.changed_keys import MOST_ASIDE, MOST_TEXT, ChangedKeys
from schemasync.core.manifest import (
    FEW_DELTAS,
    FEW_ROWS,
    FORMAT,
    MOST_WORDS,
    WORD,
    AdmittedFile,
    Contents,
    DataFile,
    Manifest,
    Segment,
    SegmentKind,
    StateId,
    Superseded,
    new_run_directory,
    run_directory,
    shard_directory,
    shard_name,
)
from tests.core.builders import SUBJECT, admitted, fresh, landed, segment

states = st.builds(StateId, generation=st.integers(0, 10**7), admission=st.integers(0, 10**5))
listed = st.builds(StateId, generation=st.integers(0, 999_999), admission=st.integers(0, 9_999))
texts = st.text(max_size=5)
sizes = st.integers(0, 2**62)
files = st.lists(st.builds(DataFile, path=texts, rows=sizes, bytes=sizes), max_size=2).map(tuple)
segments = st.builds(
    Segment,
    name=texts,
    kind=st.sampled_from(SegmentKind),
    location=texts,
    files=files,
    rows=sizes,
    bytes=sizes,
    schema_version=sizes,
    columns=st.lists(texts, max_size=2).map(tuple),
    events=sizes,
    created_ms=sizes,
)
manifests = st.builds(
    Manifest,
    table=texts,
    subject=texts,
    state=states,
    parent=st.none() | states,
    schema_version=sizes,
    keyed=st.booleans(),
    published_ms=sizes,
    next_delta=sizes,
    segments=st.lists(segments, max_size=2).map(tuple),
    superseded=st.lists(st.builds(Superseded, segment=texts, location=texts, since_ms=sizes), max_size=2).map(tuple),
    admitted=st.lists(
        st.builds(
            AdmittedFile,
            path=texts,
            bytes=sizes,
            rows=sizes,
            writer_version=sizes,
            segment=texts,
            folded_in=st.none() | sizes,
            folded_ms=st.none() | sizes,
        ),
        max_size=2,
    ).map(tuple),
)


@given(manifests)
def test_a_manifest_survives_its_file(manifest: Manifest) -> None:
    assert Manifest.model_validate_json(manifest.model_dump_json(indent=1)) == manifest


def test_what_a_manifest_does_not_know_is_refused() -> None:
    with pytest.raises(ValidationError):
        Manifest.model_validate(fresh().model_dump() | {"shards": 2})


@given(states)
def test_a_state_is_read_back(state: StateId) -> None:
    assert StateId.parse(str(state)) == state


def test_a_state_as_people_see_it() -> None:
    assert str(StateId(generation=7, admission=0)) == "000007"
    assert str(StateId(generation=7, admission=2)) == "000007-0002"


@pytest.mark.parametrize(
    "text", ["", "7", "00000a", "000007-", "000007-2", "000007-0002-1", "-0002", " 000007", "00000\u0667"]
)
def test_anything_else_is_no_state(text: str) -> None:
    with pytest.raises(ValueError, match="is no state"):
        StateId.parse(text)


@given(listed, listed)
def test_states_are_ordered_like_their_texts(one: StateId, other: StateId) -> None:
    assert (one < other) == (str(one) < str(other))


@given(states, states)
def test_states_are_ordered_by_generation_then_admission(one: StateId, other: StateId) -> None:
    numbers = [(s.generation, s.admission) for s in (one, other)]
    assert (one < other) == (numbers[0] < numbers[1])


def test_a_new_tables_state_is_empty() -> None:
    assert fresh(keyed=False) == Manifest(
        format=FORMAT,
        table="student",
        subject=SUBJECT,
        state=StateId(generation=0, admission=0),
        parent=None,
        schema_version=1,
        keyed=False,
        published_ms=0,
        next_delta=1,
    )


def test_an_admission_adds_one_delta_and_its_files() -> None:
    before = admitted(fresh(), now_ms=5)
    after = admitted(before, now_ms=9, schema_version=2)
    assert after == before.model_copy(
        update={
            "state": StateId(generation=0, admission=2),
            "parent": StateId(generation=0, admission=1),
            "schema_version": 2,
            "published_ms": 9,
            "next_delta": 3,
            "segments": (*before.segments, segment("delta_00000002", schema_version=2, events=3, created_ms=9)),
            "admitted": (*before.admitted, landed("incremental/2-0.parquet", "delta_00000002")),
        }
    )


def test_all_that_a_run_writes_lies_in_its_directory() -> None:
    delta, base = (new_run_directory(kind, 7, "0ab") for kind in (SegmentKind.DELTA, SegmentKind.BASE))
    shard = shard_directory(base, shard_name(3))
    assert (delta, shard) == ("delta/g=000007/0ab", "base/g=000007/0ab/s=00000003")
    assert [run_directory(place) for place in (delta, shard)] == [delta, base]


def test_segments_are_shards_or_deltas() -> None:
    base, delta = segment("base_s00000000"), segment("delta_00000001")
    manifest = fresh().model_copy(update={"segments": (base, delta)})
    assert (manifest.base, manifest.deltas) == ((base,), (delta,))


def test_a_manifest_from_before_placeholders_were_carried_is_read() -> None:
    manifest = admitted(fresh())
    old = manifest.model_dump(mode="json")
    for found in old["segments"]:
        del found["toasted"]
    assert Manifest.model_validate(old) == manifest


def test_a_view_names_what_it_reads_and_sorts_nothing_where_the_base_has_it_all() -> None:
    old, new = segment("base_s00000001", schema_version=1), segment("base_s00000003", schema_version=2)
    deltas = [segment(f"delta_0000000{n}", schema_version=3, toasted=("v",)) for n in (2, 3)]
    gone = [Superseded(segment=name, location=name, since_ms=0) for name in ("base_s00000002", "delta_00000001")]
    pending = fresh().model_copy(update={"segments": (old, new, *deltas), "superseded": tuple(gone)})
    settled = pending.model_copy(update={"segments": (old, new)})
    unregistered = settled.model_copy(update={"superseded": (gone[0].model_copy(update={"registered": False}),)})
    shards = (("base_s00000001", "base_s00000001"), ("base_s00000003", "base_s00000003"))
    changes = (("delta_00000002", "delta_00000003"),)
    placeholders, configured = frozenset({"v"}), frozenset({None})
    carried = {"toasted": placeholders, "placeholders": configured, "deltas": changes, "few": True, "unique": True}
    assert [
        fresh().contents,
        settled.contents,
        unregistered.contents,
        pending.contents,
        pending.model_copy(update={"segments": tuple(deltas)}).contents,
        settled.model_copy(update={"keyed": False}).contents,
    ] == [
        Contents(unique=True),
        Contents(versions=frozenset({1, 2}), unique=True, base=shards),
        Contents(versions=frozenset({1, 2}), unique=True, base=(("base_s00000001", "base_s00000003"),)),
        Contents.model_validate(carried | {"versions": {1, 2, 3}, "base": shards}),
        Contents.model_validate(carried | {"versions": {3}}),
        Contents(versions=frozenset({1, 2}), base=shards),
    ]
    assert [m.contents.settled for m in (fresh(), settled, pending)] == [False, True, False]
    unanswered = settled.model_copy(update={"segments": (segment("base_s00000001", toasted=("v",)),)})
    assert (unanswered.toasted, unanswered.contents.toasted) == (placeholders, frozenset())


def test_changes_are_ahead_where_all_of_them_are_and_none_has_a_placeholder() -> None:
    base = segment("base_s00000001")
    one, other = (segment(f"delta_0000000{n}", ahead=True) for n in (1, 2))
    late, toasted = segment("delta_00000003"), segment("delta_00000003", ahead=True, toasted=("v",))
    tables = [(base, one, other), (base, one, late), (base, one, toasted), (one,), (base,)]
    manifests = [fresh().model_copy(update={"segments": segments}) for segments in tables]
    assert [m.contents.ahead for m in manifests] == [True, False, False, False, False]
    assert not manifests[0].model_copy(update={"keyed": False}).contents.ahead
    many = segment("delta_00000002", ahead=True, rows=FEW_ROWS)
    assert [m.contents.few for m in (manifests[0], fresh().model_copy(update={"segments": (base, one, many)}))] == [
        True,
        False,
    ]


def test_only_segments_with_placeholders_say_what_these_are() -> None:
    """What is configured now is none where it was another text then: it may be a value of the source's own."""
    base, change = segment("base_s00000001"), segment("delta_00000001", toasted=("v",), placeholders=("then",))
    state = fresh().model_copy(update={"segments": (base, change)})
    then: frozenset[str | None] = frozenset({"then"})
    assert (state.placeholders, state.contents.placeholders) == (then, then)


def test_keys_of_many_changes_are_packed_where_all_lie_within_so_many_words() -> None:
    def packed(*deltas: Segment, **more: object) -> bool:
        state = fresh().model_copy(update={"segments": (segment("base_s00000001"), *deltas)} | more)
        return state.contents.packed

    many = segment("delta_00000001", ahead=True, rows=FEW_ROWS + 1, key_range=(-5, 7))
    apart = WORD * (MOST_WORDS - 1) - 1
    near, far, unknown = (
        segment("delta_00000002", ahead=True, key_range=found) for found in ((0, apart - 5), (0, apart - 4), None)
    )
    few = many.model_copy(update={"rows": FEW_ROWS})
    late = many.model_copy(update={"ahead": False})
    empty = segment("delta_00000002", ahead=True, rows=0)
    assert [packed(many), packed(many, near), packed(many, empty)] == [True, True, True]
    assert [packed(many, far), packed(many, unknown), packed(few), packed(late)] == [False] * 4
    assert not packed(many, keyed=False)
    texts = segment("delta_00000002", ahead=True, key_range=(("0",), ("7",)))
    again = Segment.model_validate_json(texts.model_dump_json())
    assert [again == texts, again.whole_numbers, packed(many, again)] == [True, None, False]


def test_few_changes_ascend_where_each_was_compared_with_those_before_it() -> None:
    def ascending(*deltas: Segment) -> tuple[bool, bool]:
        found = fresh().model_copy(update={"segments": (segment("base_s00000001"), *deltas)}).contents
        return found.ahead, found.ascending

    one, *others = (segment(f"delta_{n:08}", ahead=True, ahead_of_deltas=n > 1) for n in range(1, FEW_DELTAS + 2))
    unknown = segment("delta_00000002", ahead=True)
    assert (ascending(one), ascending(one, *others[:-1])) == ((True, True), (True, True))
    assert (ascending(one, *others), ascending(one, unknown)) == ((True, False), (True, False))
    assert ascending(segment("delta_00000001"), *others[:1]) == (False, False)


def test_the_view_names_the_keys_of_changes_where_it_can_name_all_of_them() -> None:
    def changed(*deltas: Segment) -> tuple[str, ...]:
        found = fresh().model_copy(update={"segments": (segment("base_s00000001"), *deltas)}).contents
        return tuple(name for name, _ in found.changed)

    def delta(number: int, text: int | None = 1, *, rows: int = 1, **said: object) -> Segment:
        keys = None if text is None else ChangedKeys(words="7" * text)
        told: dict[str, Any] = {"ahead": True, "ahead_of_deltas": True, "changed": keys, "rows": rows} | said
        return segment(f"delta_{number:08}", **told)

    one, two, three = (f"delta_0000000{n}" for n in (1, 2, 3))
    assert [changed(delta(1)), changed(delta(1), delta(2))] == [(one,), (one, two)]
    assert changed(delta(1), delta(2, None, rows=0), delta(3)) == (one, three)
    assert changed(delta(1), delta(2, None)) == ()
    assert changed(delta(1), delta(2, ahead=False)) == changed(delta(1), delta(2, ahead_of_deltas=False)) == ()
    assert changed(delta(1, 1), delta(2, MOST_TEXT - 1)) == (one, two)
    assert changed(delta(1, 1), delta(2, MOST_TEXT)) == ()
    aside = [ChangedKeys(path="x", count=count) for count in (MOST_ASIDE, 1)]
    assert changed(delta(1, changed=aside[0]), delta(2)) == (one, two)
    assert changed(delta(1, changed=aside[0]), delta(2, changed=aside[1])) == ()


def test_hashes_of_keys_count_where_the_keys_themselves_are_too_many_and_cannot_be_packed() -> None:
    def changed(rows: int, **said: Any) -> int:
        hashed = ChangedKeys(path="x", count=1, hashed=("id",))
        one = segment("delta_00000001", ahead=True, changed=hashed, rows=rows, **said)
        listed = ChangedKeys(listed=(1,))
        two = segment("delta_00000002", ahead=True, ahead_of_deltas=True, changed=listed, rows=1)
        state = fresh().model_copy(update={"segments": (segment("base_s00000001"), one, two)})
        return len(state.contents.changed)

    close: dict[str, Any] = {"key_range": (0, 9)}
    assert [changed(FEW_ROWS - 1), changed(FEW_ROWS), changed(FEW_ROWS, **close)] == [0, 2, 2]
    two = segment("delta_00000002", ahead=True, changed=ChangedKeys(path="x", count=1, hashed=("id",)), **close)
    both = (segment("base_s00000001"), two.model_copy(update={"rows": FEW_ROWS + 1}))
    assert fresh().model_copy(update={"segments": both}).contents.changed == ()


def test_shards_without_a_changed_key_are_told_from_the_others_where_they_are_most_of_the_base() -> None:
    sizes = {1: 10, 2: 1, 3: 23}
    shards = tuple(segment(f"base_s0000000{n}", rows=rows) for n, rows in sizes.items())
    first, second = (segment(f"delta_0000000{n}", ahead=True, touches=(f"base_s0000000{n}",)) for n in (1, 2))
    everywhere = segment("delta_00000003", ahead=True)
    found = [
        fresh().model_copy(update={"segments": (*shards, *deltas)}).contents
        for deltas in ([first], [first, second], [first, everywhere])
    ]
    one, two, three, rest, both, all_ = (
        (f"base_s0000000{a}", f"base_s0000000{b}") for a, b in ((1, 1), (2, 2), (3, 3), (2, 3), (1, 2), (1, 3))
    )
    assert [(c.base, c.untouched) for c in found] == [((one,), (rest,)), ((both,), (three,)), ((all_,), ())]
    assert two not in found[1].segments
    # A union would cost more than looking for the few others' keys as well.
    fewer = (*shards[:2], segment("base_s00000003", rows=22))
    seen = fresh().model_copy(update={"segments": (*fewer, first, second)}).contents
    assert (seen.base, seen.untouched) == ((all_,), ())
