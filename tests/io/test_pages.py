"""Page footers: what is read page by page is what the file has."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from schemasync.core.manifest import SegmentKind
from schemasync.errors import StorageError
from schemasync.io.parquet import pages, shard_writer
from schemasync.io.parquet.pages import Pages, page_footers, write_page_footers
from schemasync.io.parquet.shard_writer import ShardWriter

LOCAL = fs.LocalFileSystem()
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(0, 3),
    pa.bool_(): st.booleans(),
    pa.decimal128(9, 2): st.decimals(-100, 100, places=2),
    pa.timestamp("us", tz="UTC"): st.integers(0, 10**9),
}


pytestmark = pytest.mark.usefixtures("short_files_are_long")


@st.composite
def columns(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 30))
    values = {
        f"{number}": pa.array(draw(st.lists(st.none() | TYPES[type_], min_size=rows, max_size=rows)), type_)
        for number, type_ in enumerate(draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3)))
    }
    return pa.table(values)


def paged(path: Path, table: pa.Table, *, rows: int = 3, group: int = 10, **options: Any) -> None:
    pq.write_table(table, path, row_group_size=group, max_rows_per_page=rows, **{"write_page_index": True, **options})
    write_page_footers(LOCAL, str(path), table.column_names)


@given(
    table=columns(),
    sizes=st.tuples(st.integers(1, 8), st.sampled_from([4, 10, 100])),
    options=st.fixed_dictionaries(
        {
            "use_dictionary": st.booleans(),
            "compression": st.sampled_from(["none", "snappy"]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
        }
    ),
    data=st.data(),
)
def test_rows_are_those_of_the_file(
    table: pa.Table, sizes: tuple[int, int], options: dict[str, Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.parquet"
        paged(path, table, rows=sizes[0], group=sizes[1], **options)
        written = pq.read_table(path)
        footers = page_footers(LOCAL, str(path), table.column_names, table.num_rows)
        if not table.num_rows:
            assert footers is None
            return
        assert footers is not None
        with LOCAL.open_input_file(str(path)) as source:
            for name, footer in footers.items():
                column = Pages(source, footer)
                expected = written.column(name)
                assert column.field == written.schema.field(name)
                assert column.starts[-1] == table.num_rows
                # Backwards, too: what was read last is kept.
                for number in [*range(footer.num_row_groups), *reversed(range(footer.num_row_groups))]:
                    start, end = column.starts[number : number + 2]
                    found = column.page(number)
                    plain = found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
                    assert plain.equals(expected.slice(start, end - start).combine_chunks())
                rows = sorted(data.draw(st.sets(st.integers(0, table.num_rows - 1))))
                assert column.take(rows).to_pylist() == [expected[row].as_py() for row in rows]


def test_every_page_is_a_piece_and_tells_its_range_unless_there_is_a_dictionary(tmp_path: Path) -> None:
    numbers = pa.array([*range(19), None])
    paged(tmp_path / "a.parquet", pa.table({"plain": numbers, "coded": numbers}), use_dictionary=["coded"])
    footers = page_footers(LOCAL, str(tmp_path / "a.parquet"), ["plain", "coded"], 20)
    assert footers is not None
    plain, coded = ([f.row_group(n) for n in range(f.num_row_groups)] for f in footers.values())
    assert [group.num_rows for group in plain] == [3, 3, 3, 1, 3, 3, 3, 1]
    ranges = [(told.min, told.max) for group in plain[:-1] if (told := group.column(0).statistics)]
    assert ranges == [(0, 2), (3, 5), (6, 8), (9, 9), (10, 12), (13, 15), (16, 18)]
    assert plain[-1].column(0).statistics is None  # it has a null alone
    assert [group.num_rows for group in coded] == [10, 10]
    assert (coded[1].column(0).statistics.min, coded[1].column(0).statistics.max) == (10, 18)


def test_a_column_without_pages_of_its_own_has_none(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    numbers = pa.array(range(20))
    nested = pa.StructArray.from_arrays([numbers, numbers], names=["a", "b"])
    paged(path, pa.table({"nested": nested, "b": numbers, "list": [[1]] * 20}))
    footers = page_footers(LOCAL, str(path), ["b"], 20)
    assert footers is not None
    assert footers["b"].row_group(1).column(0).path_in_schema == "b"
    for name in ("nested", "a", "nested.a", "list", "other"):
        assert page_footers(LOCAL, str(path), ["b", name], 20) is None


def test_there_are_none_without_a_page_index_or_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"a": pa.array(range(20))})
    pq.write_table(table, path)
    assert page_footers(LOCAL, str(path), ["a"], 20) is None
    paged(path, table, write_page_index=False, use_dictionary=False)
    assert page_footers(LOCAL, str(path), ["a"], 20) is None
    paged(path, table)
    assert page_footers(LOCAL, str(path), ["a"], 20) is not None
    assert page_footers(LOCAL, str(path), ["a"], 21) is None
    with patch.object(pages, "LONG_ROWS", 20):  # nobody looks
        assert page_footers(LOCAL, str(path), ["a"], 20) is None


def test_files_that_nobody_looks_into_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LONG_ROWS", 10)
    table = pa.table({"a": pa.array(range(30))})
    with ShardWriter(
        LOCAL, str(tmp_path), "d", table.schema, 8_000_000, kind=SegmentKind.DELTA, keys=[], ordering=["a"]
    ) as writer:
        writer.write(table)
    assert len(list((tmp_path / "d").iterdir())) == 1


@pytest.mark.parametrize("kind", SegmentKind)
def test_long_files_of_ours_have_page_footers_and_engines_do_not_see_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SegmentKind
) -> None:
    monkeypatch.setattr(pages, "LONG_ROWS", 10)
    table = pa.table({"a": pa.array(range(30)), "b": ["x"] * 30, "__op": ["c"] * 30})
    for rows, directory in ((10, "short"), (11, "long")):
        with ShardWriter(
            LOCAL, str(tmp_path), directory, table.schema, 8_000_000, kind=kind, keys=["a"], ordering=["b"]
        ) as writer:
            writer.write(table.slice(0, rows))
        (path,) = writer.rows
        footers = page_footers(LOCAL, str(tmp_path / path), ["a", "b"], rows)
        assert (footers is not None) == (directory == "long")
        assert page_footers(LOCAL, str(tmp_path / path), ["__op"], rows) is None
        assert {p.name[0] for p in (tmp_path / directory).iterdir()} == ({"_", "p"} if footers else {"p"})


def test_page_footers_that_cannot_be_written_are_an_error_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LONG_ROWS", 10)

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(shard_writer, "write_page_footers", full)
    table = pa.table({"a": pa.array(range(30))})

    def write() -> None:
        with ShardWriter(
            LOCAL, str(tmp_path), "d", table.schema, 8_000_000, kind=SegmentKind.BASE, keys=["a"], ordering=[]
        ) as writer:
            writer.write(table)

    with pytest.raises(StorageError, match="No space left"):
        write()
