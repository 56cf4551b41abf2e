"""View = compacted table = a plain Python fold, on real Spark, for generated histories (architecture.md section 9)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from schemasync.app.applying import apply
from schemasync.app.compacting import compact
from schemasync.app.inspecting import look, map_tables
from schemasync.app.view_texts import view_select
from schemasync.app.workspace import Workspace
from schemasync.core import ddl, manifest
from schemasync.core.changed_keys import ChangedKeys, hash_of
from schemasync.core.layering import Mode
from schemasync.core.mapping import TableTarget
from schemasync.core.shape import Shape
from schemasync.io.parquet import pages, same_keys, writing
from schemasync.io.parquet.pages import Pages
from schemasync.io.samples import SAMPLES
from tests import model
from tests.lab import HOUR, Lab, NewLab
from tests.naming import in_text, naming, words_of

pytestmark = pytest.mark.spark

TOPIC = "shop.student"
TABLE = "shop_student"
MINUTE = HOUR // 60

FEW = settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""The same stories in every run; shrinking a wrong one takes minutes, which is for the long run."""
MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck))


class Debezium:
    """Rows in ``after``, the place in the log in ``source.lsn``; a delete has its key in ``before`` and no more."""

    snapshots = True
    log: tuple[dict[str, Any], ...] = ({"name": "lsn", "type": ["null", "long"]},)

    @staticmethod
    def place(lsn: int | None) -> dict[str, Any]:
        return {"lsn": lsn}

    @classmethod
    def schema(cls, schema: model.Schema) -> dict[str, Any]:
        value = {"type": "record", "name": "Value", "fields": [f.avro() for f in schema]}
        source = {"type": "record", "name": "Source", "fields": [*cls.log, {"name": "ts_ms", "type": "long"}]}
        fields = [
            {"name": "before", "type": ["null", value]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ]
        return {"type": "record", "name": "Envelope", "fields": fields}

    @classmethod
    def event(cls, event: model.Event) -> dict[str, Any]:
        row: model.Row | None = event.row
        before: model.Row | None = None
        if event.op == "d":
            before, row = {**dict.fromkeys(event.row), "id": event.key}, None
        lsn, ts_ms = event.order
        return {
            "before": before,
            "after": row,
            "source": cls.place(lsn) | {"ts_ms": 5},
            "op": event.op,
            "ts_ms": ts_ms,
        }


class Files(Debezium):
    """As MySQL's: the place in the log is a file's name and a position in it."""

    log = ({"name": "file", "type": ["null", "string"]}, {"name": "pos", "type": ["null", "long"]})

    @staticmethod
    def place(lsn: int | None) -> dict[str, Any]:
        return {"file": None, "pos": None} if lsn is None else {"file": f"binlog.{lsn // 9:06}", "pos": lsn % 9}


class Moving(Debezium):
    """As `Debezium`, with columns that the story does not know: most events of a key have other values there."""

    MARKS = ("", "日本", "a/b", "😀x", "%2F=", "A ")
    """Texts whose beginnings name directories."""

    @classmethod
    def schema(cls, schema: model.Schema) -> dict[str, Any]:
        found = super().schema(schema)
        found["fields"][0]["type"][1]["fields"] += [
            {"name": "place", "type": ["null", "long"]},
            {"name": "mark", "type": ["null", "string"]},
        ]
        return found

    @classmethod
    def event(cls, event: model.Event) -> dict[str, Any]:
        place = event.order[0]
        return super().event(replace(event, row=event.row | {"place": place, "mark": cls.mark(place)}))

    @classmethod
    def mark(cls, place: int | None) -> str | None:
        return None if place is None else cls.MARKS[place % len(cls.MARKS)]


class Flat:
    """``op``, ``ts_ms`` and ``kafka_offset`` beside the columns: many events share a millisecond."""

    snapshots = False

    @staticmethod
    def schema(schema: model.Schema) -> dict[str, Any]:
        own = [
            {"name": "op", "type": ["null", "string"]},
            {"name": "ts_ms", "type": "long"},
            {"name": "kafka_offset", "type": "long"},
        ]
        return {"type": "record", "name": "Student", "fields": [*(f.avro() for f in schema), *own]}

    @staticmethod
    def event(event: model.Event) -> dict[str, Any]:
        offset, _ = event.order
        assert offset is not None
        return {**event.row, "op": event.op, "ts_ms": offset // 10, "kafka_offset": offset}


Kind = type[Debezium] | type[Flat]


class Telling:
    """Plays a story on a lab, and knows what the table must show."""

    def __init__(self, lab: Lab, kind: Kind, story: model.Story) -> None:
        self.lab = lab
        self.kind = kind
        self.story = story
        self.landed: list[model.Landing] = []
        self.version = 0
        self.merged = 0

    def tell(self) -> None:
        for block in self.story.blocks:
            if block.version > self.version:
                self.version = block.version
                self.lab.register(TOPIC, self.kind.schema(self.story.schemas[self.version - 1]))
            for landing in block.landings:
                self.land(landing)
            for run in block.runs:
                self.run(run)
                self.lab.now_ms += block.minutes * MINUTE
        for run in self.story.ending:
            self.run(run)
        # Past every grace: now only the base is left.
        self.lab.now_ms += 2 * HOUR
        self.run(self.story.last)

    def land(self, landing: model.Landing) -> None:
        events = [self.kind.event(e) for e in landing.events]
        self.lab.land(TOPIC, events, version=landing.version, hour=f"20261120{landing.hour:02}")
        self.landed.append(landing)

    def run(self, run: model.Run) -> None:
        self.merged += carry_out(self.lab.workspace, run)
        shown = self.table_rows()
        expected = model.fold(self.events, self.story.schemas, self.version)
        assert repr(shown) == repr(expected), f"after {run.what} under version {self.version}"

    def table_rows(self) -> list[dict[str, Any]]:
        return self.lab.rows(TABLE)

    @property
    def events(self) -> list[model.Event]:
        return [event for landing in self.landed for event in landing.events]

    def stored_keys(self) -> list[int]:
        found = self.lab.workspace.sql.query(f"SELECT * FROM `{self.lab.database}`.`{TABLE}`")
        places = [n for n, name in enumerate(found.columns) if name in {"id", "id__2"}]
        return sorted(max(row[n] for n in places if row[n] is not None) for row in found.rows)

    def segments(self) -> set[str]:
        return set(self.lab.workspace.metastore.partitions(self.lab.database, TABLE))

    def stored(self) -> list[dict[str, Any]]:
        """Return all rows of the table but for where they lie, and under which version: a shard that need not stays."""
        rows = self.lab.queried(f"SELECT * FROM `{self.lab.database}`.`{TABLE}`")
        return sorted(
            ({k: v for k, v in row.items() if k not in {"segment", "__schema_version"}} for row in rows), key=repr
        )


class EveryText(Telling):
    """Asks all texts that the view could have: keys of the changes listed, as bits, joined, and joined as packed.

    And the two that sort, as where nobody compared changes with each other, or with the base; and the one that reads
    shards apart that no change falls into.
    """

    def __init__(self, lab: Lab, kind: Kind, story: model.Story) -> None:
        super().__init__(lab, kind, story)
        self.texts: set[str] = set()
        self.apart = False
        lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"}}}

    def table_rows(self) -> list[dict[str, Any]]:
        rows = super().table_rows()
        for body in self._bodies():
            assert repr(self.lab.queried(f"SELECT * FROM ({body})", "1")) == repr(rows), body
            self.texts.add(body)
        return rows

    def _bodies(self) -> set[str]:
        (target,) = map_tables(self.lab.workspace).targets
        seen = look(self.lab.workspace, target)
        shape, state = seen.decision.current, seen.manifest
        if shape is None or state is None:
            return set()
        contents = state.contents
        bits = tuple((name, in_text(map(int, keys.listed))) for name, keys in contents.changed)
        aside = tuple((name, self._aside(target, keys)) for name, keys in bits)
        mixed = tuple(pair if n % 2 else bits[n] for n, pair in enumerate(contents.changed))
        named = (bits, aside, mixed, ())
        less: list[dict[str, Any]] = [{}, *({"changed": changed} for changed in named)]
        hashed = tuple((name, self._hashed(target, shape, keys)) for name, keys in contents.changed)
        half = tuple(pair if n % 2 else hashed[n] for n, pair in enumerate(contents.changed))
        less += [{"changed": changed, "few": False} for changed in (hashed, half)]
        less += [{"changed": (), "ascending": False}, {"changed": (), "ascending": False, "ahead": False}]
        others = [contents.model_copy(update=known) for known in less]
        texts = {view_select(self.lab.workspace, target, shape, one) for one in others}
        texts.add(view_select(self.lab.workspace, replace(target, only_spark=False), shape, contents))
        with naming("joined"), patch.object(manifest, "APART", 0):
            apart = state.contents
        self.apart |= bool(apart.untouched)
        texts.add(view_select(self.lab.workspace, target, shape, apart))
        # Two keys to a word: the stories have four.
        with (
            naming("joined"),
            patch.object(manifest, "FEW_ROWS", 0),
            patch.object(manifest, "WORD", 2),
            patch.object(ddl, "WORD", 2),
        ):
            return texts | {view_select(self.lab.workspace, target, shape, state.contents)}

    def _aside(self, target: TableTarget, keys: ChangedKeys) -> ChangedKeys:
        """Write bits into a file that has them and no others."""
        path = f"_words/{keys.low}/{keys.words}.orc"
        words = [int(word) for word in keys.words.split(",")]
        self.lab.workspace.storage(target).small.write_words(path, words)
        return ChangedKeys(low=keys.low, path=path, count=len(words))

    def _hashed(self, target: TableTarget, shape: Shape, keys: ChangedKeys) -> ChangedKeys:
        """Write bits of hashes into such a file, and of half of those that any other key has."""
        ((column, _),) = shape.key_columns
        _, (word,) = words_of({hash_of([key], 64) for key in keys.listed}.union(range(0, 64, 2)))
        path = f"_words/hashed/{word}.orc"
        self.lab.workspace.storage(target).small.write_words(path, [word])
        return ChangedKeys(path=path, count=1, hashed=(column,))


class Partitioned(Telling):
    """A story of a table whose rows move between user partitions: each is in one, and has the value that it is by."""

    BY: ClassVar = {"third": "pmod(place, 3)", "sign": "left(mark, 2)"}

    def table_rows(self) -> list[dict[str, Any]]:
        rows = super().table_rows()
        newest = model.newest(self.events)
        for row in rows:
            place = newest[row["id"]].order[0]
            mark = Moving.mark(place)
            assert (row.pop("place"), row.pop("third")) == (place, None if place is None else place % 3)
            assert (row.pop("mark"), row.pop("sign")) == (mark, (mark or "")[:2] or None)
        return rows


MODES = {"compact": Mode.AUTO, "minor": Mode.MINOR, "major": Mode.MAJOR}


def carry_out(workspace: Workspace, run: model.Run) -> int:
    """Return how many deltas were merged with each other."""
    if run.what == "apply":
        (applied,) = apply(workspace).tables
        assert applied.error is None, str(applied.error)
        return 0
    (done,) = compact(workspace, mode=MODES[run.what]).tables
    assert done.failure is None, str(done.failure)
    return len(done.merge.merge) if done.merge else 0


def holds(telling: Telling) -> Telling:
    telling.tell()
    expected = sorted(model.newest(telling.events))
    if telling.events:
        assert telling.stored_keys() == expected
        assert [s for s in telling.segments() if not s.startswith("base_s")] == []
    return telling


@FEW
@given(story=model.stories(snapshots=True))
def test_view_and_compacted_table_are_the_fold_of_debezium_events(new_lab: NewLab, story: model.Story) -> None:
    holds(Telling(new_lab(), Debezium, story))


@pytest.mark.one_spark
def test_view_and_compacted_table_are_the_fold_of_events_in_files_of_a_log(new_lab: NewLab) -> None:
    """Changes gather beside the base, and are merged with each other before they are folded."""
    merged: list[int] = []

    @FEW
    @example(story=model.gathered())
    @given(story=model.stories(snapshots=True, gathering=True))
    def law(story: model.Story) -> None:
        merged.append(holds(Telling(new_lab(), Files, story)).merged)

    law()
    assert max(merged) > 1, merged


@pytest.mark.one_spark
def test_view_and_compacted_table_are_the_fold_of_flat_events(new_lab: NewLab) -> None:
    """Every file is long, and every row is a page that late events are compared with by itself."""

    @FEW
    @example(story=model.gathered())
    @given(story=model.stories(snapshots=False))
    def law(story: model.Story) -> None:
        holds(Telling(new_lab(), Flat, story))

    with (
        patch.object(pages, "LONG_ROWS", 1),
        patch.object(writing, "_PAGE_ROWS", 1),
        patch.object(same_keys, "_SEARCHED", 1),
        patch.object(same_keys, "Pages", wraps=Pages) as read,
    ):
        law()
    assert read.called


def test_however_changes_are_found_the_view_is_the_same(new_lab: NewLab) -> None:
    texts: set[str] = set()
    apart: set[bool] = set()

    @settings(parent=FEW, max_examples=2)
    @example(story=model.gathered())
    @given(story=model.stories(snapshots=True, gathering=True))
    def law(story: model.Story) -> None:
        told = EveryText(new_lab(), Debezium, story)
        holds(told)
        texts.update(told.texts)
        apart.add(told.apart)

    law()
    assert True in apart
    words = ["array_contains(", " IN (", "getbit(get(CAST(split(", "getbit(get((SELECT words FROM orc."]
    words += ["crc32(", "schemasync_key1", "schemasync_bits", " row_number() OVER ("]
    assert [word for word in words if not any(word in text for text in texts)] == []


def test_packed_keys_are_found_by_each_bit_of_their_words(lab: Lab) -> None:
    topic, keys, changed = "shop.student", range(-100, 100), {*range(-97, 100, 3), *range(-32, 0)}
    lab.register(topic, lab.flat("Student", ("n", "int")))
    lab.land(topic, [{"id": key, "n": 0, "op": "c", "ts_ms": 0} for key in keys])
    assert [t.failure for t in lab.compact().tables] == [None]
    lab.land(topic, [{"id": key, "n": 1, "op": "u", "ts_ms": 1} for key in changed], hour="2026112001")
    with naming("joined"), patch.object(manifest, "FEW_ROWS", 0):
        assert [t.error for t in lab.apply().tables] == [None]
    view = lab.workspace.metastore.table(lab.database, "shop_student_view")
    assert view is not None
    assert "schemasync_bits" in view.view_text
    assert {row["id"]: row["n"] for row in lab.rows("shop_student")} == {key: int(key in changed) for key in keys}


def by_all_ways(new_lab: NewLab, story: model.Story) -> None:
    """Shards so small that every key gets one of its own: they are cut and rewritten all the time."""
    told = []
    arrow = ({"kernel": "arrow"}, {"kernel": "arrow", "arrow_limit": "0"})
    for way in arrow:
        lab = new_lab()
        lab.settings = {"defaults": {"compaction": {"shard_size": "1KB"} | way}}
        told.append(repr(holds(Telling(lab, Debezium, story)).stored()))
    for way in (arrow[1], {"kernel": "spark"}):
        lab = new_lab()
        lab.only_hadoop_reaches_it(shard_size="1KB", **way)
        told.append(repr(holds(Telling(lab, Debezium, story)).stored()))
    assert told == [told[0]] * 4


def in_user_partitions(new_lab: NewLab, story: model.Story) -> None:
    for way in ({"kernel": "spark"}, {"kernel": "arrow"}, {"kernel": "arrow", "arrow_limit": "0"}):
        lab = new_lab()
        lab.settings = {
            "defaults": {"compaction": {"shard_size": "1KB"} | way},
            "tables": [{"subject": f"{TOPIC}-value", "partition_by": Partitioned.BY}],
        }
        holds(Partitioned(lab, Moving, story))


@pytest.mark.one_spark
@settings(parent=FEW, max_examples=2)
@given(story=model.stories(snapshots=True))
def test_all_ways_to_merge_shards_write_the_same_rows(new_lab: NewLab, story: model.Story) -> None:
    by_all_ways(new_lab, story)


@pytest.mark.one_spark
@settings(parent=FEW, max_examples=2)
@given(story=model.stories(snapshots=True))
def test_rows_lie_in_their_user_partitions_whichever_way_they_are_merged(new_lab: NewLab, story: model.Story) -> None:
    in_user_partitions(new_lab, story)


@pytest.mark.parametrize("topic", ["cdc.inventory.evolving", "cdc.inventory.order_lines", "cdc.inventory.uuid_key"])
def test_the_large_way_of_admission_gives_the_same_table_as_the_small_one(new_lab: NewLab, topic: str) -> None:
    """Files that parquet-avro wrote of real messages; an Arrow limit of nothing sends them all through Spark."""
    found = []
    for limit in ("256MB", "0"):
        lab = new_lab()
        lab.settings = {"defaults": {"compaction": {"arrow_limit": limit}}}
        for subject in (f"{topic}-key", f"{topic}-value"):
            for path in sorted((SAMPLES / "registry" / subject).glob("*.avsc")):
                lab.registry.register(subject, path.read_text())
        shutil.copytree(SAMPLES / "lake" / topic, lab.root / "lake" / topic)
        assert [t.error for t in lab.apply().tables] == [None]
        found.append(lab.rows(topic.replace(".", "_"), order_by="ALL"))
    assert found[0] == found[1] != []


def told_as(kind: Kind, telling: type[Telling] = Telling) -> Callable[[NewLab, model.Story], object]:
    return lambda new_lab, story: holds(telling(new_lab(), kind, story))


LAWS = {
    "Debezium": told_as(Debezium),
    "files of a log": told_as(Files),
    "flat": told_as(Flat),
    "every text of the view": told_as(Debezium, EveryText),
    "all ways to merge": by_all_ways,
    "user partitions": in_user_partitions,
}


@pytest.mark.long
@pytest.mark.parametrize("gathering", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_the_laws_hold_for_many_more_stories(new_lab: NewLab, name: str, gathering: bool) -> None:
    @MANY
    @given(story=model.stories(snapshots=name != "flat", gathering=gathering))
    def law(story: model.Story) -> None:
        LAWS[name](new_lab, story)

    law()
