"""Placeholders of values that a source did not send: both ways of admission keep what tells the values."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemasync.core.admission import UnsentRule
from schemasync.core.beyond import Beyond, Shown
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, shown_type
from schemasync.core.ports import LandedFiles
from schemasync.core.types import Array, Primitive
from tests.io.landing import land, request
from tests.io.test_landed_files import arrow_ways, open_arrow, open_spark
from tests.io.test_landed_files import opened as opened  # noqa: PLC0414 - a fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNSENT = "?"
TEXT = Leaf(type=Primitive.STRING)
ID: dict[str, Encoding] = {"id": Leaf(type=Primitive.BIGINT)}
COLUMNS: dict[str, Encoding] = {
    "id": Leaf(type=Primitive.BIGINT),
    "v": TEXT,
    "b": Leaf(type=Primitive.BINARY),
    "l": ListOf(element=TEXT),
}
TYPES = (("v", Primitive.STRING), ("b", Primitive.BINARY), ("l", Array(element=Primitive.STRING)))
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("op", pa.string()),
        ("ts_ms", pa.int64()),
        ("v", pa.string()),
        ("b", pa.binary()),
        ("l", pa.list_(pa.string())),
    ]
)
Event = dict[str, Any]


def event(key: int, ts_ms: int | None, v: str | None, op: str | None = "u", **more: Any) -> Event:
    return {"id": key, "op": op, "ts_ms": ts_ms, "v": v, "b": None, "l": None} | more


def admit(
    files: LandedFiles,
    root: Path,
    *several: Iterable[Event],
    carry: bool = True,
    keys: tuple[str, ...] = ("id",),
    younger: str = "",
) -> tuple[list[Event], tuple[str, ...]]:
    """Admit files of events; return the rows, newest first inside a key, and the columns with placeholders."""
    rows, toasted, _ = admitted(files, root, *several, carry=carry, keys=keys, younger=younger)
    return rows, toasted


def admitted(
    files: LandedFiles,
    root: Path,
    *several: Iterable[Event],
    carry: bool = True,
    keys: tuple[str, ...] = ("id",),
    younger: str = "",
) -> tuple[list[Event], tuple[str, ...], tuple[Beyond, ...]]:
    """The same, and what was counted of the files."""
    names = []
    for number, found in enumerate(several):
        table = pa.Table.from_pylist(list(found), schema=SCHEMA)
        columns = dict(zip(table.column_names, (c.combine_chunks() for c in table.columns), strict=True))
        names.append(land(root, f"{number}.parquet", columns, row_group_size=2))
    wanted = request(root, names, COLUMNS, directory="delta/1", keys=keys)
    rule = UnsentRule(placeholders=(UNSENT,), carry=carry, columns=TYPES, younger=frozenset(younger))
    done = files.admit(replace(wanted, unsent=rule))
    rows = [row for f in done.files for row in pa.parquet.read_table(root / f.path).to_pylist()]
    shown = [
        {name: row["__op" if name == "op" else "__ts_ms" if name == "ts_ms" else name] for name in SCHEMA.names}
        for row in rows
    ]
    return sorted(shown, key=_place, reverse=True), done.toasted, done.beyond


def _place(row: Event) -> tuple[int, bool, int]:
    return -row["id"], row["ts_ms"] is not None, row["ts_ms"] or 0


def test_the_newest_event_that_says_the_value_stays_beside_the_newest(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [event(1, 1, "old", "c"), event(1, 2, "a"), event(1, 3, UNSENT), event(1, 4, UNSENT), event(2, 1, "b")]
    assert admit(opened, tmp_path, landed) == ([landed[3], landed[1], landed[4]], ("v",))


def test_each_column_keeps_the_event_that_says_its_own_value(tmp_path: Path, opened: LandedFiles) -> None:
    first = event(1, 1, "a", "c", b=b"x", l=["?", "?"])
    second = event(1, 2, UNSENT, b=b"y", l=["?"])
    third = event(1, 3, UNSENT, b=b"?", l=["?"])
    assert admit(opened, tmp_path, [third, event(1, 0, "z", "r")], [first, second]) == (
        [third, second, first],
        ("v", "b", "l"),
    )


def test_a_key_whose_newest_event_says_everything_has_one_row(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [
        event(1, 1, "a", "c"),
        event(1, 2, UNSENT),
        event(1, 3, None),
        event(2, 1, UNSENT),
        event(2, 2, None, "d"),
    ]
    assert admit(opened, tmp_path, landed) == ([landed[2], landed[4]], ())


def test_a_placeholder_that_nothing_older_explains_stays(tmp_path: Path, opened: LandedFiles) -> None:
    assert admit(opened, tmp_path, [event(1, 2, UNSENT), event(1, 1, UNSENT)]) == ([event(1, 2, UNSENT)], ("v",))


def test_only_updates_have_placeholders(tmp_path: Path, opened: LandedFiles) -> None:
    """An insert of that text, a snapshot's read of it and a delete end the search: nothing older is of that row."""
    landed = [event(1, 1, "a", "c"), event(1, 2, UNSENT, "r"), event(2, 1, UNSENT, "c"), event(2, 2, UNSENT, "d")]
    assert admit(opened, tmp_path, landed) == ([landed[1], landed[3]], ())


def test_a_create_without_its_value_is_told(tmp_path: Path, opened: LandedFiles) -> None:
    """An update of a primary key is a delete and a create, which lacks what the update did not touch."""
    moved = event(2, 2, UNSENT, "c", b=b"?", l=["?", "a"])
    landed = [event(1, 1, "a", "c"), event(1, 2, None, "d"), moved, event(3, 2, UNSENT, "c")]
    rows, toasted, beyond = admitted(opened, tmp_path, landed, [event(3, 3, "b")])
    assert (rows, toasted) == ([landed[1], moved, event(3, 3, "b")], ())
    assert {(b.path, b.column, b.shown, b.count) for b in beyond} == {
        ("0.parquet", "v", Shown.PLACEHOLDER, 2),
        ("0.parquet", "b", Shown.PLACEHOLDER, 1),
    }


def test_a_null_is_a_value(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [event(1, 1, "a", "c"), event(1, 2, None), event(1, 3, UNSENT)]
    assert admit(opened, tmp_path, landed) == ([landed[2], landed[1]], ("v",))


def test_events_that_nothing_tells_apart_become_one_row(tmp_path: Path, opened: LandedFiles) -> None:
    """A view could not choose among them; nothing can ever come to lie between them."""
    landed = [
        event(1, 5, "a", "c", l=["x"]),
        event(1, 5, UNSENT, l=["?"]),
        event(2, None, "b", "d"),
        event(2, None, UNSENT),
    ]
    assert admit(opened, tmp_path, landed) == ([event(1, 5, "a", l=["x"]), event(2, None, None)], ())


def test_what_nothing_tells_apart_stays_unknown_where_null_of_a_younger_column_is_all_that_is_said(
    tmp_path: Path, opened: LandedFiles
) -> None:
    """The column may not have been there; a delete says that the row was not."""
    landed = [
        event(1, 5, None, "c"),
        event(1, 5, UNSENT, b=b"?"),
        event(2, 5, None, "d"),
        event(2, 5, UNSENT, b=b"?"),
        event(3, 5, "a"),
        event(3, 5, UNSENT, b=b"?"),
    ]
    expected = [event(1, 5, UNSENT), event(2, 5, None), event(3, 5, "a")]
    assert admit(opened, tmp_path, landed, younger="v") == (expected, ("v",))


def test_a_null_of_a_younger_column_ends_the_search(tmp_path: Path, opened: LandedFiles) -> None:
    """What is older was before the column, too."""
    landed = [event(1, 1, "a", "c"), event(1, 2, None), event(1, 3, UNSENT)]
    assert admit(opened, tmp_path, landed, younger="v") == ([landed[2], landed[1]], ("v",))


def test_an_operation_that_is_null_is_an_update(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [event(1, 1, "a", None), event(1, 2, UNSENT, None)]
    assert admit(opened, tmp_path, landed) == ([{**e, "op": "u"} for e in reversed(landed)], ("v",))


@pytest.mark.parametrize("keys", [("id",), ()])
def test_placeholders_of_updates_and_creates_can_become_null(
    tmp_path: Path, opened: LandedFiles, keys: tuple[str, ...]
) -> None:
    create = event(3, 1, UNSENT, "c", b=b"?", l=["?", "?"])
    landed = [event(1, 1, UNSENT, b=b"?", l=["?"]), event(2, 1, UNSENT, "r", b=b"??", l=[]), create]
    expected = [event(1, 1, None), landed[1], create | {"v": None, "b": None}]
    assert admit(opened, tmp_path, landed, carry=False, keys=keys) == (expected, ())


def test_without_keys_placeholders_stay(tmp_path: Path, opened: LandedFiles) -> None:
    landed = [event(1, 2, UNSENT), event(1, 1, "a")]
    assert admit(opened, tmp_path, landed, keys=()) == (landed, ())


BYTES = [*b"???"]
UUID = str(uuid.UUID(bytes=md5(b"???", usedforsecurity=False).digest(), version=3))
FORMS: dict[str, tuple[Encoding, pa.DataType, Any, list[Any]]] = {
    "uuids": (ListOf(element=TEXT), pa.list_(pa.string()), [UUID], [[UUID, UUID], [UUID.upper()]]),
    "bytes in an array": (
        ListOf(element=Leaf(type=Primitive.BINARY)),
        pa.list_(pa.binary()),
        [b"???"],
        [[b"???", b"???"], [b"??"], [None]],
    ),
    "numbers": (
        ListOf(element=Leaf(type=Primitive.BIGINT)),
        pa.list_(pa.int64()),
        BYTES,
        [BYTES[:2], [*BYTES, 63], [63, 63, 0], [63, None, 63], []],
    ),
    "a map": (
        MapOf(key=TEXT, value=TEXT),
        pa.map_(pa.string(), pa.string()),
        [("???", "???")],
        [[("???", "?")], [("?", "???")], [("???", "???"), ("a", "b")], [("???", None)], []],
    ),
}


@pytest.mark.parametrize(("encoding", "type_", "unsent", "others"), FORMS.values(), ids=FORMS)
def test_a_placeholder_is_known_in_the_form_of_its_type_alone(
    tmp_path: Path, opened: LandedFiles, encoding: Encoding, type_: pa.DataType, unsent: Any, others: list[Any]
) -> None:
    """Of each key an older event says something, which is kept where the newest does not."""
    older, newest = next(iter(others)), [*others, None, unsent]
    keys = range(1, len(newest) + 1)
    columns = {
        "id": pa.array([*keys, *keys]),
        "op": pa.array(["u"] * len(keys) * 2),
        "ts_ms": pa.array([1] * len(keys) + [2] * len(keys)),
        "v": pa.array([older] * len(keys) + newest, type_),
    }
    land(tmp_path, "x.parquet", columns, row_group_size=4)
    shown = shown_type(encoding)
    wanted = request(tmp_path, ["x.parquet"], ID | {"v": encoding}, directory="delta/1")
    done = opened.admit(replace(wanted, unsent=UnsentRule(placeholders=("???",), carry=True, columns=(("v", shown),))))
    rows = [row for f in done.files for row in pa.parquet.read_table(tmp_path / f.path).to_pylist()]
    found = sorted(((row["id"], row["__ts_ms"], row["v"]) for row in rows), key=lambda row: row[:2])
    asking = keys[-1]
    expected = [*((key, 2, value) for key, value in zip(keys, newest, strict=True))]
    assert (done.toasted, found) == (("v",), [*expected[:-1], (asking, 1, older), expected[-1]])


@pytest.mark.parametrize(("encoding", "type_", "unsent", "others"), FORMS.values(), ids=FORMS)
def test_a_placeholder_of_any_form_can_become_null(
    tmp_path: Path, encoding: Encoding, type_: pa.DataType, unsent: Any, others: list[Any]
) -> None:
    values = [*others, None, unsent]
    columns = {
        "id": pa.array(range(len(values))),
        "op": pa.array(["u"] * len(values)),
        "ts_ms": pa.array([1] * len(values)),
        "v": pa.array(values, type_),
    }
    land(tmp_path, "x.parquet", columns)
    wanted = request(tmp_path, ["x.parquet"], ID | {"v": encoding}, directory="delta/1")
    rule = UnsentRule(placeholders=("???",), carry=False, columns=(("v", shown_type(encoding)),))
    (file,) = open_arrow(tmp_path).admit(replace(wanted, unsent=rule)).files
    assert pa.parquet.read_table(tmp_path / file.path).sort_by("id")["v"].to_pylist() == [*others, None, None]


def saying(operation: str) -> st.SearchStrategy[Event]:
    """Draw an event; what always says everything is not given the placeholder as a value of its own."""
    texts = [UNSENT, UNSENT, "a", "b", None] if operation == "u" else ["a", "b", None]
    texts_of_bytes = [text and text.encode() for text in texts]
    when = st.none() | st.integers(0, 3)
    return st.builds(
        event, st.integers(1, 2), when, st.sampled_from(texts), st.just(operation), b=st.sampled_from(texts_of_bytes)
    )


events = st.sampled_from("uuucrd").flatmap(saying)


def told(rows: Iterable[Event], younger: str) -> dict[int, Any]:
    """Return per key what its newest row shows; of rows that tie the later one given is newer."""
    shown: dict[int, Any] = {}
    for key in (1, 2):
        mine = sorted((r for r in rows if r["id"] == key), key=_place)
        if mine:
            values = (_told(mine, n, younger=n in younger) for n in "vb" if mine[-1]["op"] != "d")
            shown[key] = (mine[-1]["op"], mine[-1]["ts_ms"], *values)
    return shown


def _told(rows: list[Event], name: str, *, younger: bool) -> Any:
    for row in reversed(rows):
        if row["op"] == "d":
            return None
        if row["op"] != "u" or row[name] not in {UNSENT, UNSENT.encode()}:
            return rows[-1][name] if younger and row[name] is None else row[name]
    return rows[-1][name]


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    opens=arrow_ways,
    landed=st.lists(events, max_size=8),
    late=st.lists(events, max_size=4),
    younger=st.sampled_from(["", "v"]),
)
def test_a_delta_tells_what_its_events_tell_whatever_lands_later(
    tmp_path_factory: pytest.TempPathFactory,
    opens: Callable[[Path], LandedFiles],
    landed: list[Event],
    late: list[Event],
    younger: str,
) -> None:
    root = tmp_path_factory.mktemp("law")
    if younger:
        # One row of those that nothing tells apart asks on where all that they say is such a NULL.
        landed = list({_place(row): row for row in landed}.values())
    kept, toasted = admit(opens(root), root, landed, younger=younger)
    assert told([*kept, *late], younger) == told([*landed, *late], younger)
    assert set(toasted) == {n for n in "vb" for r in kept if r["op"] == "u" and r[n] in {UNSENT, UNSENT.encode()}}


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(opens=arrow_ways, landed=st.lists(events, max_size=8))
def test_a_delta_has_no_two_rows_that_the_ordering_does_not_tell_apart(
    tmp_path_factory: pytest.TempPathFactory, opens: Callable[[Path], LandedFiles], landed: list[Event]
) -> None:
    root = tmp_path_factory.mktemp("law")
    places = [_place(row) for row in admit(opens(root), root, landed)[0]]
    assert len(set(places)) == len(places)


@pytest.mark.spark
@settings(max_examples=3, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(several=st.lists(st.lists(events, min_size=4, max_size=10), min_size=2, max_size=3))
def test_spark_keeps_the_rows_that_arrow_keeps(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, several: list[list[Event]]
) -> None:
    roots = [tmp_path_factory.mktemp("law") for _ in range(2)]
    ways = [open_arrow(roots[0]), open_spark(spark, roots[1])]
    found = [admit(files, root, *several) for files, root in zip(ways, roots, strict=True)]
    assert found[0] == found[1]
