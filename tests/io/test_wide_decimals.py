"""Decimals of more digits than Arrow has (PostgreSQL's numeric(78,0)) stop no file."""

from __future__ import annotations

import struct as bytes_of
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from schemasync.core.admission import Footer, Unreadable
from schemasync.core.beyond import Beyond, Shown
from schemasync.core.encoding import Encoding, Leaf, ListOf
from schemasync.core.ports import FileInfo, LandedFiles
from schemasync.core.types import Decimal, Primitive, Struct, StructField, Type
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.parquet.structs import DecimalType, FileMetaData, LogicalType, dump, parse
from tests.io.landing import as_they_are, request
from tests.io.test_landed_files import open_arrow
from tests.io.test_landed_files import opened as opened  # noqa: PLC0414 - a fixture

ID: dict[str, Encoding] = {"id": Leaf(type=Primitive.BIGINT)}
UINT = Leaf(type=Decimal(precision=38, scale=0))
EVENTS = {"id": pa.array([1, 2, 3, 4]), "op": pa.array(["u"] * 4), "ts_ms": pa.array([1] * 4)}
_BYTES = {6, 7}
"""Parquet's numbers of bytes, of any and of fixed length."""
NUMBERS = [10**38 - 1, -(10**77), None, -5]


def declare(path: Path, precision: int, scale: int, *, older: bool = True, newer: bool = True) -> None:
    """Let the leaf ``v`` of a file, or the elements of it, be decimals; by either annotation of Parquet, or both."""
    whole = path.read_bytes()
    (length,) = bytes_of.unpack("<I", whole[-8:-4])
    footer = parse(FileMetaData, whole[-8 - length : -8])
    # No writer but Arrow has it, and Arrow has no such decimals.
    footer.key_value_metadata = [one for one in footer.key_value_metadata if one.key != "ARROW:schema"]
    for element in footer.schema:
        if element.name in {"v", "element"} and element.type in _BYTES:
            if older:
                element.converted_type, element.precision, element.scale = 5, precision, scale
            if newer:
                element.logicalType = LogicalType(DECIMAL=DecimalType(precision=precision, scale=scale))
    data = dump(footer)
    path.write_bytes(whole[: -8 - length] + data + bytes_of.pack("<I", len(data)) + b"PAR1")


def as_bytes(size: int | None = None) -> pa.Array:
    values = [None if n is None else n.to_bytes(size or 33, "big", signed=True) for n in NUMBERS]
    return pa.array(values, pa.binary(size or -1))


def landed(root: Path, *declared: int, v: pa.Array | None = None, newer: bool = True, **columns: pa.Array) -> FileInfo:
    """Land a file; ``v`` is declared with so many digits."""
    values = {} if v is None else {"v": v}
    table = pa.table(EVENTS | columns | values).replace_schema_metadata({"parquet.avro.schema": "{}"})
    path = root / "x.parquet"
    pq.write_table(table, path)
    if declared:
        declare(path, *declared, newer=newer)
    return FileInfo(path=path.name, bytes=path.stat().st_size, modified_ms=0)


def shown(
    files: LandedFiles, root: Path, encoding: Encoding, values: pa.Array, *declared: int, **annotations: bool
) -> tuple[list[Any], tuple[Beyond, ...]]:
    """Land numbers that are declared with so many digits, and admit them."""
    file = landed(root, v=values)
    wanted = request(root, [file.path], ID | {"v": encoding}, directory="delta/1")
    declare(root / file.path, *declared, **annotations)
    done = files.admit(as_they_are(root, wanted))
    rows = pa.concat_tables([pq.read_table(root / file.path) for file in done.files]).sort_by("id")
    return rows["v"].to_pylist(), done.beyond


FORMS: dict[str, tuple[pa.Array, dict[str, bool]]] = {
    "bytes": (as_bytes(), {}),
    "fixed": (as_bytes(33), {}),
    "older annotation": (as_bytes(), {"newer": False}),
    "newer annotation": (as_bytes(), {"older": False}),
}


@pytest.mark.parametrize(("values", "annotations"), FORMS.values(), ids=FORMS)
def test_numbers_of_up_to_38_digits_show_and_longer_ones_are_counted(
    tmp_path: Path, opened: LandedFiles, values: pa.Array, annotations: dict[str, bool]
) -> None:
    lost = Beyond(path="x.parquet", column="v", shown=Shown.NULL, count=1, sample=str(-(10**77)))
    expected = [Number(10**38 - 1), None, None, Number(-5)], (lost,)
    assert shown(opened, tmp_path, UINT, values, 78, 0, **annotations) == expected


def test_numbers_inside_of_others_are_read_too(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays([0, 2, 3, 4, 4], as_bytes())
    found, (lost,) = shown(open_arrow(tmp_path), tmp_path, ListOf(element=UINT), lists, 78, 0)
    assert (found, lost.count) == ([[Number(10**38 - 1), None], [None], [Number(-5)], []], 1)


def test_numbers_with_more_digits_after_the_point_than_there_are_show_as_their_bytes(tmp_path: Path) -> None:
    found = shown(open_arrow(tmp_path), tmp_path, Leaf(type=Primitive.BINARY), as_bytes(), 100, 80)
    assert found == (as_bytes().to_pylist(), ())


@pytest.mark.parametrize(
    ("precision", "scale", "type_"),
    [(78, 2, Decimal(precision=76, scale=2)), (100, 80, Primitive.BINARY), (76, 2, Decimal(precision=76, scale=2))],
)
def test_a_footer_tells_the_type_and_the_schema(tmp_path: Path, precision: int, scale: int, type_: Type) -> None:
    file = landed(tmp_path, precision, scale, v=as_bytes())
    types = {"id": Primitive.BIGINT, "op": Primitive.STRING, "ts_ms": Primitive.BIGINT, "v": type_}
    fields = tuple(StructField(name=name, type=type_) for name, type_ in types.items())
    found = ArrowFiles(fs.LocalFileSystem(), str(tmp_path)).footer(file, now_ms=0)
    assert found == Footer(rows=4, avro="{}", type=Struct(fields=fields))


def test_other_columns_of_such_a_file_keep_their_types(tmp_path: Path) -> None:
    """The footer is written anew: what is not known of Parquet's types would be lost."""
    others = {
        "m": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int32())),
        "l": pa.array([[1]] * 4, pa.list_(pa.int64())),
        "t": pa.array([1] * 4, pa.timestamp("us", tz="UTC")),
        "d": pa.array([Number("1.5")] * 4, pa.decimal128(5, 2)),
    }
    files = ArrowFiles(fs.LocalFileSystem(), str(tmp_path))
    before = files.footer(landed(tmp_path, **others), now_ms=0)
    after = landed(tmp_path, 78, 0, v=as_bytes(), **others)
    found = files.footer(after, now_ms=0)
    assert isinstance(before, Footer)
    assert isinstance(found, Footer)
    assert found.type.fields[:-1] == before.type.fields


def test_a_file_that_is_unreadable_for_its_decimals_and_more_is_told_as_ever(tmp_path: Path) -> None:
    """Arrow's word for it counts where the footer cannot be written anew."""
    file = landed(tmp_path, 0, 0, v=as_bytes(), newer=False)
    found = ArrowFiles(fs.LocalFileSystem(), str(tmp_path)).footer(file, now_ms=0)
    assert isinstance(found, Unreadable)
    assert "precision" in found.reason
