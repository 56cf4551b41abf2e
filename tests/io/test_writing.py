"""Encodings of files of ours: a dictionary where values repeat, and only there; none that Spark misreads.

Texts are compressed where that makes them smaller, keys of wide rows where they are no whole numbers.
"""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.core.manifest import SegmentKind
from schemasync.core.partitioning import PartitionColumn
from schemasync.core.types import Primitive
from schemasync.errors import StorageError
from schemasync.io.parquet.shard_writer import ShardWriter
from schemasync.io.parquet.writing import open_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, MEMORY = 262_144, 2**27


def written(root: Path, *tables: pa.Table) -> str:
    """Write tables as one file of ours; return its path."""
    path = str(root / "a.parquet")
    with open_writer(fs.LocalFileSystem(), path, tables[0], MEMORY) as writer:
        for table in tables:
            writer.write_table(table)
    return path


@pytest.mark.parametrize(
    ("distinct", "has_one"), [(1, True), (1_000, True), (20_000, True), (120_000, False), (ROWS, False)]
)
@pytest.mark.parametrize("chunks", [1, 40])
@pytest.mark.parametrize("nulls", [0, 0.3])
def test_a_column_has_a_dictionary_where_its_values_repeat(
    tmp_path: Path, distinct: int, has_one: bool, chunks: int, nulls: float
) -> None:
    random = Random(1)  # noqa: S311 - the same ones every time
    chosen = random.choices(range(distinct), k=ROWS) if distinct < ROWS else range(ROWS)
    values = pa.array(None if random.random() < nulls else value for value in chosen)
    step = ROWS // chunks
    pieces = [values.slice(n, step) for n in range(0, ROWS, step)]
    table = pa.table({"number": pa.chunked_array(pieces), "text": pa.chunked_array([p.cast("string") for p in pieces])})
    path = written(tmp_path, table)
    group = pq.read_metadata(path).row_group(0)
    assert [group.column(n).has_dictionary_page for n in range(2)] == [has_one, has_one]


EXTREMES = [-(2**63), 2**63 - 1, 0, -1, 1, 2**62, -(2**62) - 1]


def numbers_of(values: Iterable[int | None]) -> pa.Table:
    """Return columns that files hold as whole numbers, with values as near to these as each can have."""
    held = list(values)

    def within(least: int, most: int) -> list[int | None]:
        return [None if value is None else max(min(value, most), least) for value in held]

    def decimals(digits: int) -> pa.Array:
        return hundredths(within(1 - 10**digits, 10**digits - 1), digits)

    return pa.table(
        {
            "number": pa.array(held, pa.int64()),
            "small": pa.array(within(-(2**31), 2**31 - 1), pa.int32()),
            "price": decimals(18),
            "fee": decimals(9),
        }
    )


def hundredths(values: Iterable[int | None], digits: int) -> pa.Array:
    return pa.array(values, pa.decimal128(digits, 0)).view(pa.decimal128(digits, 2))


@pytest.fixture(params=["true", "false"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Spark, reading by vectors or by rows."""
    setting = "spark.sql.parquet.enableVectorizedReader"
    spark.conf.set(setting, request.param)
    yield spark
    spark.conf.unset(setting)


@pytest.mark.spark
def test_spark_reads_numbers_of_any_size(tmp_path: Path, reader: SparkSession) -> None:
    # The first rows choose the encoding, and what comes after them may be anything.
    first = numbers_of(range(3_000))
    later = numbers_of([None if n % 11 == 0 else EXTREMES[n % len(EXTREMES)] for n in range(500)])
    path = written(tmp_path, first, later)
    rows = reader.read.parquet(path).collect()
    expected = pa.concat_tables([first, later]).to_pylist()
    assert [row.asDict() for row in rows] == expected


PAGES = 30_000
"""Rows of several pages, of other numbers of rows by column."""


@pytest.mark.spark
def test_spark_reads_the_right_rows_of_pages_that_it_does_not_need_as_a_whole(
    tmp_path: Path, reader: SparkSession
) -> None:
    """A query for a few keys reads, of all columns, the pages that have their rows, and passes over the others."""
    numbers = pa.array(range(PAGES))
    sparse = pa.array([None if n % 7 == 0 or n // 500 % 3 == 0 else n for n in range(PAGES)])
    table = pa.table(
        {
            "key": sorted(digests(PAGES)),
            "number": numbers,
            "sparse": sparse,
            "moment": numbers.cast(pa.timestamp("us")),
            "price": hundredths(sparse.to_pylist(), 18),
            "real": numbers.cast(pa.float64()),
            "few": pa.array([n % 5 for n in range(PAGES)]),
            "text": pa.array(["x" * (n % 90) for n in range(PAGES)]),
            "digest": digests(PAGES),
            "some": [text if number % 11 % 3 else None for number, text in enumerate(digests(PAGES))],
            "small": numbers.cast(pa.int32()),
            "fee": hundredths(range(PAGES), 9),
        }
    )
    path, keys = written(tmp_path, table), table["key"].to_pylist()
    alone = ([row] for row in range(1_000, PAGES, 2_048))
    for wanted in (*alone, *(range(step - 1, PAGES, step) for step in (3_333, 10_007))):
        alike = " OR ".join(f"key = '{keys[n]}'" for n in wanted)
        rows = reader.read.parquet(path).where(alike).orderBy("number").collect()
        assert [row.asDict() for row in rows] == table.take([*wanted]).to_pylist()


def digests(count: int) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]


def codecs(path: str) -> dict[str, tuple[str, bool]]:
    """Return the codec of each column, and whether its texts are stored by their lengths."""
    group = pq.read_metadata(path).row_group(0)
    columns = (group.column(n) for n in range(group.num_columns))
    return {c.path_in_schema: (c.compression, "DELTA_LENGTH_BYTE_ARRAY" in c.encodings) for c in columns}


def test_texts_that_snappy_finds_nothing_in_are_not_compressed(tmp_path: Path) -> None:
    rows = 5_000
    texts = digests(rows)
    table = pa.table(
        {
            "digest": texts,
            "sorted": sorted(texts),
            "bytes": pa.array([bytes.fromhex(text) for text in texts]),
            "some": [text if number % 3 else None for number, text in enumerate(texts)],
            "name": [f"customer number {number}" for number in range(rows)],
            "repeated": [texts[number % 3] for number in range(rows)],
            "number": range(rows),
            "none": pa.nulls(rows, pa.string()),
            "in.place": texts,
            "in": pa.StructArray.from_arrays([pa.array(texts)], names=["place"]),
            "list": [[text] for text in texts],
            "map": pa.array([[(text, 1)] for text in texts], pa.map_(pa.string(), pa.int64())),
        }
    )
    path = written(tmp_path, table)
    found = codecs(path)
    dense = {"digest", "sorted", "bytes", "some"}
    assert {name for name, how in found.items() if how != ("SNAPPY", False)} == dense
    assert {found[name] for name in dense} == {("UNCOMPRESSED", True)}
    assert pq.read_table(path).equals(table)


@pytest.mark.parametrize(
    ("texts", "is_dense"),
    [
        (digests(120), False),
        (digests(128), True),
        ([*digests(1_000), *["a" * 64] * 4_000], False),
        ([*["a" * 64] * 1_000, *digests(4_000)], False),
        ([f"{'a' * 50}{text[:14]}" for text in digests(5_000)], False),
    ],
    ids=["few", "enough", "dense at first", "dense later", "dense at their ends"],
)
def test_a_text_is_dense_where_a_sample_of_neighbours_from_all_places_is(
    tmp_path: Path, texts: list[str], is_dense: bool
) -> None:
    # Beside a number that nobody shares: a text that repeats has a dictionary, whatever it is like.
    path = written(tmp_path, pa.table({"text": [f"{text}{number}" for number, text in enumerate(texts)]}))
    assert codecs(path)["text"] == (("UNCOMPRESSED", True) if is_dense else ("SNAPPY", False))


@pytest.mark.parametrize(
    ("name", "columns", "is_compressed"),
    [("id", 20, False), ("small", 20, False), ("id", 2, True), ("tenant", 20, True), ("number0", 20, True)],
    ids=["a key", "of four bytes", "of a narrow row", "one that repeats", "no key"],
)
def test_whole_numbers_are_not_compressed_where_they_are_keys_of_wide_rows(
    tmp_path: Path, name: str, columns: int, is_compressed: bool
) -> None:
    rows = 5_000
    keys = {"id": range(rows), "small": pa.array(range(rows), pa.int32()), "tenant": [n // 100 for n in range(rows)]}
    table = pa.table(keys | {f"number{n}": range(rows) for n in range(columns)})
    local, kind = fs.LocalFileSystem(), SegmentKind.BASE
    with ShardWriter(
        local, str(tmp_path), "s", table.schema, 2**27, kind=kind, keys=list(keys), ordering=["number1"]
    ) as writer:
        writer.write(table)
    (path,) = writer.rows
    found = codecs(f"{tmp_path}/{path}")
    assert found[name] == ("SNAPPY" if is_compressed else "UNCOMPRESSED", False)
    assert pq.read_table(f"{tmp_path}/{path}").equals(table)


@pytest.mark.spark
def test_spark_reads_keys_that_are_not_compressed(tmp_path: Path, reader: SparkSession) -> None:
    table = pa.table({"id": range(PAGES)} | {f"number{n}": range(n, PAGES + n) for n in range(12)})
    path = str(tmp_path / "a.parquet")
    with open_writer(fs.LocalFileSystem(), path, table, MEMORY, keys=["id"]) as writer:
        writer.write_table(table)
    assert codecs(path)["id"] == ("UNCOMPRESSED", False)
    rows = reader.read.parquet(path)
    assert [row.asDict() for row in rows.where("id % 4999 = 7").orderBy("id").collect()] == table.take(
        [*range(7, PAGES, 4_999)]
    ).to_pylist()
    assert [row["number3"] for row in rows.where("id = 17003").collect()] == [17_006]


def test_of_wide_texts_no_more_is_looked_at_than_memory_allows(tmp_path: Path) -> None:
    text = "".join(digests(2_000))
    table = pa.table({"text": [f"{number}{text}" for number in range(50)]})
    tracemalloc.start()
    try:
        with open_writer(fs.LocalFileSystem(), str(tmp_path / "a.parquet"), table, 16 * len(text)) as writer:
            writer.write_table(table)
        assert tracemalloc.get_traced_memory()[1] < 12 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.spark
def test_spark_reads_texts_that_are_not_compressed(tmp_path: Path, reader: SparkSession) -> None:
    first = pa.table({"text": digests(1_000), "bytes": pa.array([bytes.fromhex(text) for text in digests(1_000)])})
    later = pa.table({"text": [None, "", "é", "a" * 100_000], "bytes": [b"", None, b"\xff\x00", b"b" * 100_000]})
    path = written(tmp_path, first, later)
    assert set(codecs(path).values()) == {("UNCOMPRESSED", True)}
    rows = reader.read.parquet(path).collect()
    looked_up = reader.read.parquet(path).where(f"text = '{digests(500)[-1]}'").count()
    assert [row.asDict() for row in rows] == pa.concat_tables([first, later]).to_pylist()
    assert looked_up == 1


@pytest.mark.spark
def test_whoever_looks_for_a_key_reads_one_page(tmp_path: Path, spark: SparkSession) -> None:
    table = pa.table({"key": pa.array(range(200_000)), "text": pa.array(str(n) for n in range(200_000))})
    path = written(tmp_path, table)
    found = spark.read.parquet(path).where("key = 123456")
    assert [row["text"] for row in found.collect()] == ["123456"]
    plan: Any = found._jdf.queryExecution().executedPlan()
    scans = plan.collectLeaves()
    read = scans.apply(0).metrics().apply("numOutputRows").value()
    assert (scans.size(), read) == (1, 16_384)


def test_a_disk_that_is_full_is_told_as_such_also_with_several_files_open(tmp_path: Path) -> None:
    """Each open file would have a footer written when it is closed, for which there is no room either."""

    def refuse(writer: pq.ParquetWriter, *_: Any, **__: Any) -> None:
        writer.is_open = False
        raise OSError(28, "No space left on device")

    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    by = [PartitionColumn(name="q", type=Primitive.STRING, source="p")]
    local, kind = fs.LocalFileSystem(), SegmentKind.DELTA

    def write() -> None:
        with ShardWriter(
            local, str(tmp_path), "d", rows.schema, 1, kind=kind, keys=[], ordering=[], partition_by=by
        ) as writer:
            writer.write(rows)
            full.setattr(pq.ParquetWriter, "write_table", refuse)
            full.setattr(pq.ParquetWriter, "close", refuse)
            writer.write(rows)

    with pytest.MonkeyPatch.context() as full, pytest.raises(StorageError, match=r"cannot be written: .*No space left"):
        write()
