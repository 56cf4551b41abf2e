"""An update that changed a configured key deletes the row under its old key, in both ways of admission."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.core.admission import AdmissionRequest, Admitted, UnsentRule
from schemasync.core.beyond import Shown
from schemasync.core.encoding import Encoding, Leaf, Meaning
from schemasync.core.partitioning import Call, PartitionColumn
from schemasync.core.ports import LandedFiles
from schemasync.core.projection import Take
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive
from schemasync.errors import DataError
from tests.io.landing import Rows, admitted, as_they_are, land, request
from tests.io.test_landed_files import open_arrow
from tests.io.test_landed_files import opened as opened  # noqa: PLC0414 - a fixture

TEXT = Leaf(type=Primitive.STRING)
COLUMNS: dict[str, Encoding] = {"email": TEXT, "shop": Leaf(type=Primitive.INT), "v": TEXT}
ROW = pa.struct([("email", pa.string()), ("shop", pa.int32()), ("v", pa.string())])
OP, PLACE = ("op", pa.string()), ("ts_ms", pa.int64())
DEBEZIUM = Envelope(
    kind=EnvelopeKind.DEBEZIUM,
    op="op",
    ts_ms=("ts_ms",),
    ordering=(OrderingField(path=("ts_ms",), type=Primitive.BIGINT),),
)
Row = dict[str, Any]


def row(email: str | None, v: str | None = None, shop: int | None = 1) -> Row:
    return {"email": email, "shop": shop, "v": v}


def event(place: int, before: Row | None, after: Row | None, op: str | None = "u") -> Row:
    return {"before": before, "after": after, "op": op, "ts_ms": place}


def wanted(
    root: Path,
    landed: Iterable[Row],
    keys: tuple[str, ...],
    *,
    columns: dict[str, Encoding] = COLUMNS,
    type_: pa.DataType = ROW,
    sides: tuple[str, ...] = ("before", "after"),
) -> AdmissionRequest:
    """Land events with Debezium's envelope, and ask for them."""
    schema = pa.schema([*((side, type_) for side in sides), OP, PLACE])
    table = pa.Table.from_pylist(list(landed), schema=schema)
    arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
    name = land(root, "x.parquet", arrays, row_group_size=3)
    found = request(root, [name], columns, directory="delta/1", keys=keys)
    (file,) = found.files
    projected = []
    for column in file.projection.columns:
        assert isinstance(column.source, Take)
        paths = (("after", column.name), ("before", column.name))[: 2 if column.name in keys else 1]
        projected.append(replace(column, source=replace(column.source, paths=paths)))
    projection = replace(file.projection, columns=tuple(projected), envelope=DEBEZIUM)
    return replace(found, files=(replace(file, projection=projection),))


def told(rows: Rows) -> list[tuple[Any, ...]]:
    return [(r["email"], r["shop"], r["v"], r["__op"], r["__tombstone"], r["__ts_ms"], r["__seq1"]) for r in rows]


CHAIN = (
    event(1, None, row("a", "1"), "c"),
    event(2, row("a", "1"), row("b", "2")),
    event(3, row("b", "2"), row("c", "3")),
    event(4, None, row("x", "y"), "c"),
    event(5, row("x", "y"), row("x", "z")),
)


def test_an_update_of_the_key_is_a_delete_and_a_create_at_one_place(tmp_path: Path, opened: LandedFiles) -> None:
    assert told(admitted(opened, tmp_path, wanted(tmp_path, CHAIN, ("email",)))) == [
        ("a", None, None, "d", True, 2, 2),
        ("b", None, None, "d", True, 3, 3),
        ("c", 1, "3", "c", None, 3, 3),
        ("x", 1, "z", "u", None, 5, 5),
    ]


def test_a_delete_stands_right_before_its_update(tmp_path: Path, opened: LandedFiles) -> None:
    """Of events at one place the last one counts: here the key came back."""
    landed = [event(1, row("a"), row("b", "1")), event(1, row("b", "1"), row("a", "2"))]
    assert told(admitted(opened, tmp_path, wanted(tmp_path, landed, ("email",)))) == [
        ("a", 1, "2", "c", None, 1, 1),
        ("b", None, None, "d", True, 1, 1),
    ]


@pytest.mark.parametrize(
    "order", [[0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1, 0], [0, 2, 4, 6, 8, 1, 3, 5, 7]]
)
def test_rows_that_change_their_keys_over_and_over_and_with_each_other_are_one_each(
    tmp_path: Path, order: list[int]
) -> None:
    landed = [
        event(1, None, row("a", "1"), "c"),
        event(2, None, row("b", "2"), "c"),
        event(3, row("a", "1"), row("c", "1")),
        event(4, row("c", "1"), row("d", "1")),
        event(5, row("d", "1"), row("e", "1")),
        event(6, row("b", "2"), row("t", "2")),
        event(7, row("e", "1"), row("b", "1")),
        event(8, row("t", "2"), row("e", "2")),
        event(9, row("b", "1"), row("a", "1")),
    ]
    found = admitted(open_arrow(tmp_path), tmp_path, wanted(tmp_path, [landed[n] for n in order], ("email",)))
    assert [(r["email"], r["v"]) for r in found if not r["__tombstone"]] == [("a", "1"), ("e", "2")]
    assert [r["email"] for r in found] == ["a", "b", "c", "d", "e", "t"]


def test_the_delete_has_what_is_told_of_its_update(tmp_path: Path, opened: LandedFiles) -> None:
    asked = wanted(tmp_path, CHAIN[:2], ("email",))
    (file,) = asked.files
    deleted, _ = admitted(opened, tmp_path, replace(asked, files=(replace(file, first_offset=70),)))
    names = ("__offset", "__schema_version", "__admitted_ms")
    assert [deleted[name] for name in names] == [71, asked.schema_version, asked.admitted_ms]


def test_a_move_counts_as_two_events_as_it_does_where_debezium_parts_it(tmp_path: Path, opened: LandedFiles) -> None:
    done: Admitted = opened.admit(wanted(tmp_path, [event(2, row("a"), row("b"))], ("email",)))
    assert (done.events, done.rows) == (2, 2)


def test_of_several_key_columns_one_that_changed_is_enough(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [event(1, row("a", shop=1), row("a", "1", shop=2)), event(2, row("b", shop=1), row("b", "2", shop=1))]
    assert told(admitted(opened, tmp_path, wanted(tmp_path, landed, ("email", "shop")))) == [
        ("a", 1, None, "d", True, 1, 1),
        ("a", 2, "1", "c", None, 1, 1),
        ("b", 1, "2", "u", None, 2, 2),
    ]


@pytest.mark.parametrize(
    "landed",
    [
        event(1, None, row("b", "1")),
        event(1, row(None), row("b", "1")),
        event(1, row("a", shop=None), row("b", "1")),
        event(1, row("a"), row("b", "1"), "c"),
        event(1, row("a"), row("b", "1"), "r"),
    ],
    ids=["no row before", "no key before", "a part of the key before", "a create", "a read"],
)
def test_what_does_not_tell_another_key_deletes_nothing(tmp_path: Path, landed: Row) -> None:
    (found,) = admitted(open_arrow(tmp_path), tmp_path, wanted(tmp_path, [landed], ("email", "shop")))
    assert (found["email"], found["v"], found["__op"]) == ("b", "1", landed["op"])


def test_a_file_without_rows_before_is_read_as_ever(tmp_path: Path) -> None:
    asked = wanted(tmp_path, [event(1, None, row("b", "1"))], ("email",), sides=("after",))
    assert [r["email"] for r in admitted(open_arrow(tmp_path), tmp_path, asked)] == ["b"]


def test_without_keys_an_update_is_one_row(tmp_path: Path) -> None:
    asked = wanted(tmp_path, CHAIN[1:2], ())
    assert [r["email"] for r in admitted(open_arrow(tmp_path), tmp_path, asked)] == ["b"]


def test_an_old_key_is_decoded_as_the_new_one_is(tmp_path: Path) -> None:
    """A number with its own scale is a struct in the file, and a text in the table."""
    number = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
    columns: dict[str, Encoding] = {"n": Leaf(type=Primitive.STRING, meaning=Meaning.VARIABLE_DECIMAL), "v": TEXT}
    ten, tenth = {"scale": 0, "value": b"\x0a"}, {"scale": 1, "value": b"\x0a"}
    landed = [
        event(1, {"n": ten, "v": "a"}, {"n": tenth, "v": "b"}),
        event(2, {"n": tenth, "v": "b"}, {"n": tenth, "v": "c"}),
    ]
    type_ = pa.struct([("n", number), ("v", pa.string())])
    asked = wanted(tmp_path, landed, ("n",), columns=columns, type_=type_)
    found = admitted(open_arrow(tmp_path), tmp_path, asked)
    assert [(r["n"], r["v"], r["__op"]) for r in found] == [("1.0", "c", "u"), ("10", None, "d")]


@pytest.mark.parametrize(
    ("landed", "count"),
    [
        ([event(1, None, row("a", "1"), "c"), event(2, row("a"), row("b", "?")), event(3, row("b"), row("a", "?"))], 2),
        ([event(1, None, row("a", "1"), "c"), event(2, row("a"), None, "d"), event(3, row("b"), row("a", "?"))], 1),
        ([event(1, None, row("a", "1"), "c"), event(3, row("b"), row("a", "?"))], 1),
    ],
    ids=["there and back again", "another row was deleted", "another row is there"],
)
def test_a_move_carries_nothing_that_another_row_had_under_its_new_key(
    tmp_path: Path, opened: LandedFiles, landed: list[Row], count: int
) -> None:
    """Neither its value nor the NULL of its delete: what the move does not say stays unknown, and is told."""
    rule = UnsentRule(placeholders=("?",), carry=True, columns=(("v", Primitive.STRING),))
    done = opened.admit(replace(wanted(tmp_path, landed, ("email",)), unsent=rule))
    tables = [pq.read_table(tmp_path / file.path) for file in done.files]
    rows = [r for r in told(pa.concat_tables(tables).to_pylist()) if r[0] == "a"]
    assert (rows, done.toasted) == ([("a", 1, "?", "c", None, 3, 3)], ())
    assert [(b.column, b.shown, b.count) for b in done.beyond] == [("v", Shown.PLACEHOLDER, count)]


def test_a_delete_lies_in_the_partition_of_rows_that_have_no_value(tmp_path: Path) -> None:
    first = PartitionColumn(name="p", type=Primitive.STRING, source="v", calls=(Call("left", (1,)),))
    asked = replace(wanted(tmp_path, CHAIN[1:2], ("email",)), partition_by=(first,))
    places = [(file.path.split("/")[2], file.rows) for file in open_arrow(tmp_path).admit(asked).files]
    assert sorted(places) == [("p=2", 1), ("p=__HIVE_DEFAULT_PARTITION__", 1)]


def broken(*sides: str) -> pa.Array:
    """Return rows whose e-mail is no UTF-8 where it begins with an exclamation mark."""
    raw = pa.array([side.encode().replace(b"!", b"\xff") for side in sides], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    return pa.StructArray.from_arrays([texts], names=["email"])


def test_an_old_key_that_is_no_text_is_refused_with_its_row(tmp_path: Path) -> None:
    asked = wanted(tmp_path, CHAIN, ("email",), columns={"email": TEXT})
    columns = {"before": broken("a", "a", "b!"), "after": broken("a", "b", "c")}
    places, operations = pa.array([1, 2, 3]), pa.array(["u", "u", "u"])
    land(tmp_path, "x.parquet", columns | {"op": operations, "ts_ms": places})
    with pytest.raises(DataError, match=r"x\.parquet: the text of an event in the key column email .*: row 3"):
        open_arrow(tmp_path).admit(as_they_are(tmp_path, asked))


def test_an_event_without_a_key_is_named_by_its_row_whatever_comes_before_it(tmp_path: Path) -> None:
    landed = [event(1, row("a"), row("b")), event(2, None, None, "m"), event(3, None, row(None))]
    with pytest.raises(DataError, match=r"no value for the key column email: row 3"):
        open_arrow(tmp_path).admit(wanted(tmp_path, landed, ("email",)))


@pytest.mark.parametrize("op", ["u", "c", None])
@pytest.mark.parametrize("after", [row(None, "2"), row("b", "2", shop=None)], ids=["email", "shop"])
def test_an_event_that_makes_a_part_of_its_key_null_has_no_key(
    tmp_path: Path, opened: LandedFiles, after: Row, op: str | None
) -> None:
    asked = wanted(tmp_path, [event(1, None, row("a", "1")), event(2, row("a", "1"), after, op)], ("email", "shop"))
    with pytest.raises(DataError, match=r"no value for the key column (email|shop).*: row 2"):
        opened.admit(asked)


@pytest.mark.parametrize("after", [None, row(None, shop=None)], ids=["no row", "a row of nulls"])
def test_a_delete_has_the_key_of_the_row_before_it(tmp_path: Path, after: Row | None) -> None:
    asked = wanted(tmp_path, [event(1, row("a"), after, "d")], ("email", "shop"))
    assert [r["email"] for r in admitted(open_arrow(tmp_path), tmp_path, asked)] == ["a"]
