from __future__ import annotations

from dataclasses import replace

from schemasync.core.admission import UnsentRule
from schemasync.core.history import read_history
from schemasync.core.manifest import DataFile, Segment, SegmentKind
from schemasync.core.merge_request import merge_request
from schemasync.core.merging import MergeRequest, ShardMerge, SortedFile, StoredColumn
from schemasync.core.projection import Carried, Fill
from schemasync.core.reshape import Convert, Keep
from schemasync.core.shape import Shape
from schemasync.core.sharding import KeyRange, ShardFold
from schemasync.core.types import Primitive, Type
from tests.core.builders import BIGINT, INT, STRING, col, fresh, segment, target, version
from tests.core.test_ddl import shape

P = Primitive
FIRST = version(1, col("id", BIGINT, nullable=False), col("n", INT), col("t", STRING))
SECOND = version(
    2,
    col("id", BIGINT, nullable=False),
    col("n", BIGINT),
    col("t", STRING),
    col("e", INT, nullable=False, default="42"),
)
SHAPE: Shape = replace(shape(read_history([FIRST, SECOND])), keys=("id",))


def with_file(name: str, path: str, **more: object) -> Segment:
    files = (DataFile(path=path, rows=1, bytes=10),)
    return segment(name, files=files, **more)  # type: ignore[arg-type]


def kept(name: str, type_: Type, at: str | None = None) -> StoredColumn:
    return StoredColumn(name=name, type=type_, source=Carried(name=at or name, shape=Keep(target=type_)))


META = (("__op", P.STRING), ("__ts_ms", P.BIGINT), ("__seq1", P.BIGINT), ("__offset", P.BIGINT))
VERSION = StoredColumn(name="__schema_version", type=P.INT, source=Fill(value=2))
LAST = (kept("__admitted_ms", P.BIGINT), kept("__tombstone", P.BOOLEAN))


def request(found: Shape = SHAPE, **manifest: object) -> MergeRequest:
    old, new = with_file("base_s00000001", "b/1"), with_file("delta_00000003", "d/3", schema_version=2)
    other = with_file("delta_00000002", "d/2", schema_version=2)
    shard = ShardFold(shard="base_s00000001", keys=KeyRange(low=(5,)), rewrite=(old,), deltas=(new, other))
    return merge_request(
        target(),
        found,
        fresh().model_copy(update={"segments": (old, other, new), **manifest}),
        [shard],
        kind=SegmentKind.BASE,
        directories={"base_s00000001": "base/g=2/s=0001"},
        purge_before_ms=700,
    )


def test_a_shard_is_merged_from_its_files_and_the_oldest_delta_counts_first() -> None:
    found = request()
    assert found.shards == (
        ShardMerge(
            shard="base_s00000001",
            directory="base/g=2/s=0001",
            keys=KeyRange(low=(5,)),
            files=(
                SortedFile(path="b/1", version=1, rank=0),
                SortedFile(path="d/2", version=2, rank=1),
                SortedFile(path="d/3", version=2, rank=2),
            ),
            bytes=30,
        ),
    )
    assert (found.keys, found.ordering) == ((("id", P.BIGINT),), ("__seq1", "__offset", "__admitted_ms"))
    assert (found.purge_before_ms, found.memory, found.unsent) == (700, 2**29, None)


def test_rows_of_every_version_are_read_as_the_newest_has_them() -> None:
    meta = tuple(kept(*column) for column in META)
    widened = StoredColumn(
        name="n__2", type=P.BIGINT, source=Carried(name="n", shape=Convert(stored=P.INT, target=P.BIGINT))
    )
    filled = StoredColumn(name="e", type=P.INT, source=Fill(value=42))
    assert request().stored == {
        1: (kept("id", P.BIGINT), widened, kept("t", P.STRING), filled, *meta, VERSION, *LAST),
        2: (
            kept("id", P.BIGINT),
            kept("n__2", P.BIGINT),
            kept("t", P.STRING),
            kept("e", P.INT),
            *meta,
            VERSION,
            *LAST,
        ),
    }


def test_every_text_that_stands_for_a_value_in_some_segment_is_asked_for() -> None:
    old, new, stored = (
        with_file(f"base_s0000000{n}", f"b/{n}", toasted=("t",), placeholders=texts)
        for n, texts in enumerate(((), ("!",), ("!", "?")), start=1)
    )
    found = request(segments=(old, new, stored)).unsent
    assert found is not None
    assert found.placeholders == ("!", "?", "__debezium_unavailable_value")


def test_a_null_tells_no_value_in_a_column_that_rows_from_before_it_read_as_null() -> None:
    toasted = with_file("base_s00000001", "b/1", toasted=("t", "late", "given"))
    later = (col("late", STRING), col("given", STRING, nullable=False, default='"x"'))
    found = read_history([FIRST, version(2, *FIRST.columns, *later)])
    for fills, younger in ((True, {"late"}), (False, {"late", "given"})):
        unsent = request(replace(shape(found), fill_defaults=fills), segments=(toasted,)).unsent
        assert unsent is not None
        assert unsent.younger == younger


def test_only_columns_that_have_placeholders_are_asked_for_them() -> None:
    toasted = with_file("base_s00000001", "b/1", toasted=("t", "n"))
    assert request(segments=(toasted,)).unsent == UnsentRule(
        placeholders=("__debezium_unavailable_value",), carry=True, columns=(("t", P.STRING),)
    )
