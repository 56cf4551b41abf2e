"""Admissions, compactions and cleaning up of a small table: Arrow does it all in this process, and Spark nothing.

What `tests/app/test_retention.py`, `tests/app/test_layering.py` and their neighbours tell of views and of large tables,
these tell of states: what one lists, whether that is so, and what lies on the disk then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from schemasync.app.applying import Applied, apply_table
from schemasync.app.compacting import Compacted, compact_table
from schemasync.app.inspecting import look, map_tables
from schemasync.app.retiring import clean_up
from schemasync.app.states import Draft, properties_in_force, read_manifest
from schemasync.app.view_texts import view_select
from schemasync.app.workspace import Workspace
from schemasync.core import layering
from schemasync.core.layering import Mode
from schemasync.core.manifest import Manifest, Segment, SegmentKind
from schemasync.core.mapping import TableTarget
from schemasync.core.sharding import by_key
from schemasync.core.types import Primitive
from schemasync.errors import DataError, SchemasyncError, StorageError
from schemasync.io.parquet.shards import ArrowShards
from tests.app.still import Still, avro

HOUR = 3_600_000
DAY = 24 * HOUR
INT64, TEXT = pa.int64(), pa.string()
SCHEMA = pa.schema([("id", INT64), ("v", TEXT), ("op", TEXT), ("ts_ms", INT64)])
Event = tuple[int, str | None, str, int]
"""Key, value, operation and time."""


class Small:
    """A table with a key and one column; ``now`` is the clock of all that is done with it.

    It begins when all files are old: whatever cleaning up takes for nobody's is deleted at once.
    """

    def __init__(self, root: Path, *, keys: Sequence[str] = ("id",), **compaction: Any) -> None:
        self.still = Still(root, defaults={"compaction": compaction})
        self.still.register(avro(("v", ["null", "string"])), keys=keys)
        self.still.settle()
        self.now = 100_000 * DAY
        self._tokens = count()

    @property
    def workspace(self) -> Workspace:
        return replace(self.still.workspace, now_ms=lambda: self.now, token=lambda: f"{next(self._tokens):04}")

    @property
    def target(self) -> TableTarget:
        (target,) = map_tables(self.workspace).targets
        return target

    @property
    def root(self) -> Path:
        return self.still.root / "lake" / "student"

    def land(self, name: str, *events: Event) -> Path:
        path = self.root / "incremental" / "increment_2026112010" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [dict(zip(SCHEMA.names, event, strict=True)) for event in events]
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
        return path

    def apply(self) -> Applied:
        done = apply_table(self.workspace, self.target)
        if done.error is not None:
            raise done.error
        return done

    def compact(self, mode: Mode = Mode.AUTO) -> Compacted:
        done = compact_table(self.workspace, self.target, mode=mode)
        if done.failure is not None:
            raise done.failure
        return done

    @property
    def manifest(self) -> Manifest:
        properties = properties_in_force(self.workspace, self.target)
        assert properties is not None
        return read_manifest(self.workspace.storage(self.target).lake, self.target, properties)

    @property
    def partitions(self) -> set[str]:
        return {*self.still.metastore.partitions("lake", "student")}

    def stored(self, segment: Segment) -> list[Event]:
        names = ["id", "v", "__op", "__ts_ms"]
        tables = [pq.read_table(self.root / file.path, columns=names).to_pylist() for file in segment.files]
        return [(row["id"], row["v"], row["__op"], row["__ts_ms"]) for rows in tables for row in rows]

    def files(self) -> set[str]:
        """Return all that lies in the table's directory."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def rows(self) -> dict[int, str | None]:
        """Return what a view of the state in force shows."""
        return shown(event for segment in self.manifest.segments for event in self.stored(segment))


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def newest(events: Iterable[Event]) -> dict[int, Event]:
    found: dict[int, Event] = {}
    for event in events:
        if event[0] not in found or found[event[0]][3] < event[3]:
            found[event[0]] = event
    return found


def shown(events: Iterable[Event]) -> dict[int, str | None]:
    return {key: value for key, value, op, _ in newest(events).values() if op != "d"}


KEYS = 8
"""Keys are from 0 on, so many."""


def check(small: Small) -> None:
    """What a state says of its segments is so, and the view is that of the state."""
    manifest = small.manifest
    stored = {s.name: small.stored(s) for s in manifest.segments}
    for segment in manifest.segments:
        assert (segment.rows, segment.sorted_by) == (len(stored[segment.name]), ("id",))
        assert len(newest(stored[segment.name])) == segment.rows
    check_shards(manifest, stored)
    check_deltas(manifest, stored)
    # What was admitted and folded at once never was a partition.
    assert stored.keys() <= small.partitions <= stored.keys() | manifest.passing
    found = look(small.workspace, small.target)
    shape, view = found.decision.current, found.inspected.view
    assert shape is not None
    assert view is not None
    assert view.view_text == view_select(small.workspace, small.target, shape, manifest.contents)


def places(manifest: Manifest) -> dict[int, str]:
    """Return the shard in whose range each key lies."""
    lows = sorted((low, shard.name) for low, shard in by_key(manifest.base, (Primitive.BIGINT,)) if low is not None)
    first = [shard.name for shard in manifest.base if shard.low is None]
    return {key: [*first, *(name for low, name in lows if low <= (key,))][-1] for key in range(KEYS) if first}


def check_shards(manifest: Manifest, stored: Mapping[str, Sequence[Event]]) -> None:
    place = places(manifest)
    for shard in manifest.base:
        assert all(place[event[0]] == shard.name for event in stored[shard.name])
        assert shard.tombstones == sum(event[2] == "d" for event in stored[shard.name])


def check_deltas(manifest: Manifest, stored: Mapping[str, Sequence[Event]]) -> None:
    place = places(manifest)
    base = newest(event for shard in manifest.base for event in stored[shard.name])
    earlier: dict[int, Event] = {}
    for delta in manifest.deltas:
        found = newest(stored[delta.name])
        assert not delta.ahead or all(base.get(key, event)[3] <= event[3] for key, event in found.items())
        assert not delta.ahead_of_deltas or all(earlier.get(key, event)[3] <= event[3] for key, event in found.items())
        assert delta.touches is None or {*delta.touches} == {place[key] for key in found}
        assert delta.changed is None or delta.changed.listed == tuple(sorted(found))
        earlier = newest((*earlier.values(), *found.values()))


class Reader:
    """Resolves the view now and then, and finds all that it named until the reader grace is over."""

    def __init__(self, small: Small) -> None:
        self._small = small
        self._known: dict[str, Segment] = {}
        self._left: dict[str, int] = {}

    def look(self) -> None:
        small, there = self._small, {s.name: s for s in self._small.manifest.segments}
        for name, segment in self._known.items():
            assert there.get(name, segment) == segment or segment.kind is SegmentKind.DELTA
            left = small.now if name in there else self._left.setdefault(name, small.now)
            assert name in small.partitions or left + GRACE <= small.now
            assert all((small.root / f.path).exists() for f in segment.files) or left + GRACE + VACUUM <= small.now
        self._known |= there


GRACE, VACUUM = HOUR, DAY
EVENTS = st.lists(
    st.tuples(st.integers(0, KEYS - 1), st.sampled_from("abc"), st.sampled_from("cuud"), st.integers(0, 9)), max_size=4
)
STEPS = st.lists(
    st.one_of(
        EVENTS,
        EVENTS,
        st.sampled_from([*Mode, Mode.MINOR, None]),
        st.sampled_from([HOUR - 1, HOUR, DAY]),
    ),
    max_size=14,
)
"""Events that land, a compaction or (None) an apply, so much time that passes."""
LONG: list[list[Event] | Mode | int | None] = [
    [(key, "a", "c", key % 3) for key in range(KEYS)],
    Mode.MAJOR,
    [(1, "b", "u", 5)],
    None,
    [(1, "c", "u", 4), (2, None, "d", 6)],
    None,
    [(5, "d", "u", 5), (6, "d", "u", 0)],
    Mode.MINOR,
    HOUR - 1,
    [(3, None, "d", 9)],
    Mode.MINOR,
    HOUR,
    [],
    Mode.MAJOR,
    DAY,
    [(2, "late", "u", 5), (7, "e", "u", 7)],
    None,
    [(4, "f", "u", 6)],
    None,
    [(4, "g", "u", 7)],
    None,
    [(4, "h", "u", 8)],
    None,
    [(4, "i", "u", 9)],
    None,
    Mode.MINOR,
    DAY,
    [(0, "j", "u", 8)],
    Mode.AUTO,
    Mode.AUTO,
]
"""Updates, deletes and late events; more deltas than are merged at once; folds with what went before to clean up."""


@pytest.mark.parametrize("shard_size", ["128MB", "2KB"], ids=["one shard", "many"])
@settings(max_examples=3, phases=[Phase.explicit, Phase.generate])
@example(steps=LONG)
@given(steps=STEPS)
def test_whatever_is_admitted_merged_folded_and_cleaned_up_a_state_shows_all_and_tells_the_truth(
    shard_size: str, steps: list[list[Event] | Mode | int | None]
) -> None:
    """So few deltas are merged at once that some are merged before anything else is done with them."""
    with TemporaryDirectory() as root, patch.multiple(layering, MOST_AT_ONCE=3, FEWEST_AT_ONCE=2):
        small = Small(Path(root), shard_size=shard_size, reader_grace="1h", vacuum_retention="1d")
        reader, landed = Reader(small), list[Event]()
        for number, step in enumerate([*steps, Mode.MINOR, Mode.MAJOR]):
            if isinstance(step, list):
                # No two are of one time.
                times = count(len(landed))
                events = [(key, value, op, 1000 * time + next(times)) for key, value, op, time in step]
                small.land(f"{number:03}", *events)
                landed += events
            elif isinstance(step, int):
                small.now += step
            else:
                do(small, step)
                assert small.rows() == shown(landed)
                check(small)
                reader.look()
        finish(small, landed)


def do(small: Small, step: Mode | None) -> None:
    """Apply, or compact as a dry run said before, which leaves everything as it was."""
    if step is None:
        small.apply()
        return
    before = small.manifest, small.files()
    tried = compact_table(small.workspace, small.target, dry_run=True, mode=step)
    assert (small.manifest, small.files()) == before
    done = small.compact(step)
    assert _kind(tried) == _kind(done)


def _kind(found: Compacted) -> tuple[object, ...]:
    merged = None if found.merge is None else len(found.merge.merge)
    folded = None if found.fold is None else (len(found.fold.shards), len(found.fold.fold))
    return merged, folded, found.why


def finish(small: Small, landed: Sequence[Event]) -> None:
    """Once all is folded and nobody reads what was before, there is nothing but the base."""
    small.now += 2 * VACUUM
    small.compact()
    manifest = small.manifest
    assert (manifest.deltas, manifest.superseded, manifest.admitted) == ((), (), ())
    assert small.partitions == {shard.name for shard in manifest.base}
    named = {file.path for shard in manifest.base for file in shard.files}
    assert {path for path in small.files() if not path.startswith(("_schemasync/", "history/"))} == named
    assert small.rows() == shown(landed)


def test_where_nothing_landed_nothing_is_published(small: Small) -> None:
    """A daemon comes by all the time."""
    small.land("a", (1, "a", "c", 1))
    small.compact()
    small.land("b", (1, "b", "u", 2))
    for again in (None, Mode.MINOR, Mode.MAJOR, Mode.AUTO):
        for _ in range(2):
            before = small.manifest
            do(small, again)
        assert small.manifest == before


def test_whoever_admits_with_a_clock_that_is_behind_still_admits_later(small: Small) -> None:
    """The time of admission decides between events that nothing else tells apart."""
    small.land("a", (1, "first", "c", 1))
    small.apply()
    small.now -= DAY
    small.land("b", (1, "second", "c", 1))
    small.apply()
    one, other = (delta.created_ms for delta in small.manifest.deltas)
    assert one < other


def test_a_file_without_rows_is_a_partition_and_is_not_admitted_again(small: Small) -> None:
    small.land("a")
    small.apply()
    (delta,) = small.manifest.deltas
    assert (delta.files, (small.root / delta.location).is_dir()) == ((), True)
    assert [file.segment for file in small.manifest.admitted] == [delta.name]


def test_what_deltas_become_names_the_shards_of_all_of_them(tmp_path: Path) -> None:
    """A view looks for the keys of changes in no other shard."""
    small = Small(tmp_path, shard_size="2KB")
    small.land("a", *((key, f"{key}" * 300, "c", 1) for key in range(KEYS)))
    small.compact()
    first, last = (places(small.manifest)[key] for key in (0, KEYS - 1))
    for name, key in (("b", 0), ("c", KEYS - 1)):
        small.land(name, (key, name, "u", 2))
        small.apply()
    assert [delta.touches for delta in small.manifest.deltas] == [(first,), (last,)]
    small.compact(Mode.MINOR)
    assert first != last
    assert [delta.touches for delta in small.manifest.deltas] == [(first, last)]
    check(small)


def test_an_event_that_is_older_than_what_is_there_shows_nowhere(small: Small) -> None:
    """Be it older than the base, or only than a delta before it."""
    small.land("a", (1, "base", "c", 10), (2, "base", "c", 20))
    small.compact()
    for name, event in (("b", (1, "newer", "u", 30)), ("c", (1, "between", "u", 25)), ("d", (2, "old", "u", 15))):
        small.land(name, event)
        small.apply()
    assert ([delta.rows for delta in small.manifest.deltas], small.rows()) == ([1, 0, 0], {1: "newer", 2: "base"})
    check(small)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("change", ["time", "size"])
def test_a_file_that_is_written_anew_is_admitted_where_that_doubles_no_row(
    tmp_path: Path, *, keyed: bool, change: str
) -> None:
    """Without keys every event is a row: one that is only touched, or copied to where it was, would show twice."""
    small = Small(tmp_path, keys=("id",) if keyed else ())
    path = small.land("a", (1, "a", "c", 1))
    small.apply()
    if change == "size":
        small.land("a", (1, "a", "c", 1), (2, "a longer text", "c", 1))
    os.utime(path, ns=(0, 0))
    small.apply()
    assert len(small.manifest.deltas) == (2 if keyed or change == "size" else 1)


def test_no_tombstone_goes_while_a_file_waits_that_may_hold_an_older_event(tmp_path: Path) -> None:
    small = Small(tmp_path, tombstone_retention="1h")
    small.land("a", (1, "a", "c", 1), (2, "b", "c", 1))
    small.land("b", (1, None, "d", 2))
    small.compact()
    waiting = small.root / "incremental" / "increment_2026112010" / "other.parquet"
    pq.write_table(pa.table({"colour": ["red"]}), waiting)
    tombstones = []
    for name, passes in (("c", HOUR), ("d", HOUR), ("e", 0)):
        small.now += passes
        if name == "e":
            waiting.unlink()
        small.land(name, (2, name, "u", small.now))
        small.compact()
        tombstones.append([shard.tombstones for shard in small.manifest.base])
    assert tombstones == [[1], [1], [0]]


@pytest.mark.parametrize(("passes", "left"), [(HOUR, 1), (HOUR + 1, 0)])
def test_a_tombstone_goes_once_its_retention_is_over(tmp_path: Path, passes: int, left: int) -> None:
    small = Small(tmp_path, tombstone_retention="1h")
    small.land("a", (1, None, "d", 2), (2, "b", "c", 1))
    small.compact()
    (admitted,) = {
        row["__admitted_ms"] for row in pq.read_table(small.root / small.manifest.base[0].location).to_pylist()
    }
    small.now = admitted + passes
    small.land("b", (2, "c", "u", 3))
    small.compact()
    assert [shard.tombstones for shard in small.manifest.base] == [left]


@pytest.mark.parametrize(
    ("on_fold", "place"),
    [
        ("delete", None),
        ("archive", "archive/incremental/increment_2026112010/a.parquet"),
        ("keep", "incremental/increment_2026112010/a.parquet"),
    ],
)
def test_a_landed_file_goes_its_way_once_a_published_base_holds_it(
    tmp_path: Path, on_fold: str, place: str | None
) -> None:
    small = Small(tmp_path, on_fold=on_fold)
    path = small.land("a", (1, "a", "c", 1))
    small.apply()
    small.now += 30 * DAY
    small.compact(Mode.MINOR)
    assert path.exists()
    small.compact(Mode.MAJOR)
    assert path.exists()
    small.now += HOUR
    small.compact()
    assert [name for name in small.files() if name.endswith("/a.parquet")] == ([] if place is None else [place])


def test_a_file_that_the_sink_wrote_anew_is_not_cleaned_up_for_the_one_before(small: Small) -> None:
    """Nobody has its rows yet."""
    path = small.land("a", (1, "a", "c", 1))
    small.compact()
    small.now += HOUR
    properties = properties_in_force(small.workspace, small.target)
    shape = look(small.workspace, small.target).decision.current
    assert properties is not None
    assert shape is not None
    small.land("a", (1, "a", "c", 1), (2, "and another", "c", 1))
    left, failure = clean_up(small.workspace, small.target, shape, Draft.of(properties, small.manifest))
    assert (path.exists(), left.manifest.admitted, failure) == (True, (), None)


def replace_by_another(path: Path) -> None:
    """One that can be read, but has no rows."""
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def add(path: Path) -> None:
    path.with_name("part-1.parquet").write_bytes(path.read_bytes())


@pytest.mark.parametrize("damage", [Path.unlink, replace_by_another, add])
@pytest.mark.parametrize(("of", "mode"), [("base", Mode.MAJOR), ("delta", Mode.MAJOR), ("delta", Mode.MINOR)])
def test_nothing_is_made_of_a_directory_that_is_not_as_it_was_published(
    small: Small, damage: Callable[[Path], None], of: str, mode: Mode
) -> None:
    """What is folded then is lost for good: the files that it was made from go."""
    small.land("a", (1, "a", "c", 1))
    small.compact()
    for name in "bc":
        small.land(name, (1, name, "u", 2))
        small.apply()
    before = small.manifest
    (file,) = (before.base if of == "base" else before.deltas[:1])[0].files
    damage(small.root / file.path)
    with pytest.raises(DataError):
        small.compact(mode)
    assert small.manifest == before


def test_what_hidden_files_lie_beside_ours_is_nobodys_concern(small: Small) -> None:
    small.land("a", (1, "a", "c", 1))
    small.apply()
    (delta,) = small.manifest.deltas
    (small.root / delta.location / "_SUCCESS").touch()
    small.compact(Mode.MAJOR)
    assert (small.manifest.deltas, small.rows()) == ((), {1: "a"})


@pytest.mark.parametrize("error", [StorageError, DataError])
def test_what_was_admitted_is_shown_though_the_work_behind_it_fails(
    small: Small, monkeypatch: pytest.MonkeyPatch, error: type[SchemasyncError]
) -> None:
    """And what is due is cleaned up where a storage has no room, not where data may have to be restored from it."""
    old = small.land("a", (1, "a", "c", 1))
    small.compact()
    small.now += HOUR
    small.land("b", (2, "b", "c", 1))

    def fail(*_: object) -> None:
        raise error("no")

    monkeypatch.setattr(ArrowShards, "merge", fail)
    with pytest.raises(error):
        small.compact()
    assert (small.rows(), len(small.manifest.deltas)) == ({1: "a", 2: "b"}, 1)
    assert old.exists() is (error is DataError)
    check(small)


def test_shards_in_force_stay_though_another_of_their_run_goes(tmp_path: Path) -> None:
    """They lie in one directory, that of their run: it goes when nothing in it is named any more."""
    small = Small(tmp_path, shard_size="2KB")
    small.land("a", *((key, f"{key}" * 300, "c", 1) for key in range(KEYS)))
    small.compact()
    before = small.manifest.base
    small.land("b", (0, "b", "u", 2))
    small.compact()
    small.now += 30 * DAY
    small.compact()
    still = {shard.location for shard in before} & {shard.location for shard in small.manifest.base}
    assert 0 < len(still) < len(before)
    assert {shard.location for shard in before if (small.root / shard.location).exists()} == still
    assert small.rows() == {0: "b"} | {key: f"{key}" * 300 for key in range(1, KEYS)}
