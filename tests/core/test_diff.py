from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.changes import (
    AddColumn,
    AddField,
    Change,
    ChangeAliases,
    ChangeDefault,
    ChangeDetail,
    ChangeDoc,
    ChangeEnvelope,
    ChangeKey,
    ChangeNullability,
    ChangeSemanticType,
    DropColumn,
    DropField,
    RenameColumn,
    RenameField,
    ReorderColumns,
    RetypeColumn,
    WidenColumn,
)
from schemasync.core.diff import diff, retypes
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.history import History
from schemasync.core.reshape import NoConversion, lost_sql, reshape
from schemasync.core.schema import Column, Life, TableSchema
from schemasync.core.types import Primitive
from tests.core.builders import (
    BIGINT,
    BINARY,
    DATE,
    DEBEZIUM,
    FLAT,
    INT,
    MICROS,
    MILLIS,
    PLAIN,
    STRING,
    col,
    dec,
    histories,
    history,
    rec,
    schema,
    union,
)
from tests.core.changing import apply_changes
from tests.strategies import encodings

A = Life(name="a", since=1)


def facts(current: Encoding, desired: Encoding) -> list[tuple[str, str]]:
    """Return (class, place) of the changes that turn one column ``a`` into the other."""
    found = diff(schema(col("a", current)), schema(col("a", desired)))
    return [
        (type(c).__name__, c.path if isinstance(c, AddField | DropField) else getattr(c, "name", "")) for c in found
    ]


def test_every_facet_of_a_column_is_a_change_of_its_own() -> None:
    before = col("a", origin="a")
    after = Column(name="b", origin="a", encoding=BIGINT, nullable=False, default="1", doc="d", aliases=("a",))
    assert diff(schema(before), schema(after)) == (
        RenameColumn(life=A, current="a", desired="b"),
        WidenColumn(life=A, name="b", current=INT, desired=BIGINT),
        ChangeNullability(life=A, name="b", current=True, desired=False),
        ChangeDefault(life=A, name="b", current=None, desired="1"),
        ChangeDoc(life=A, name="b", current="", desired="d"),
        ChangeAliases(life=A, name="b", current=(), desired=("a",)),
    )


def test_drops_come_first_then_adds_at_their_place_then_the_order() -> None:
    a, b, c, d = (col(n) for n in "abcd")
    assert diff(schema(a, b, c), schema(d, c, a)) == (
        DropColumn(column=b),
        AddColumn(column=d, position=0),
        ReorderColumns(current=("a", "c"), desired=("c", "a")),
    )


def test_adds_and_drops_alone_are_no_reorder() -> None:
    a, b, c = (col(n) for n in "abc")
    assert diff(schema(a, b), schema(c, b)) == (DropColumn(column=a), AddColumn(column=c, position=0))


def test_a_new_life_of_a_name_is_a_drop_and_an_add() -> None:
    old, new = col("a"), col("a", since=3)
    assert diff(schema(old), schema(new)) == (DropColumn(column=old), AddColumn(column=new, position=0))


def test_keys_and_envelope_are_changes_of_the_whole_table() -> None:
    assert diff(schema(keys=("a",)), schema(keys=("a", "b"), envelope=PLAIN)) == (
        ChangeKey(current=("a",), desired=("a", "b")),
        ChangeEnvelope(current=FLAT, desired=PLAIN),
    )


YEAR = replace(INT, name="io.debezium.time.Year")
NANOS = replace(BIGINT, name="io.debezium.time.NanoTimestamp")
ZONED = Leaf(type=Primitive.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP, name="io.debezium.time.ZonedTimestamp")
JSON, UUID = (replace(STRING, name=f"io.debezium.data.{n}") for n in ("Json", "Uuid"))
VARIABLE = Leaf(type=Primitive.STRING, meaning=Meaning.VARIABLE_DECIMAL)
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
SYMBOLS = replace(STRING, symbols=("A", "B"))


@pytest.mark.parametrize(
    ("current", "desired", "fact"),
    [
        (INT, BIGINT, "WidenColumn"),
        (INT, dec(10, 0), "WidenColumn"),
        (INT, replace(dec(12, 2), name=CONNECT_DECIMAL), "WidenColumn"),
        (BIGINT, dec(18, 0), "RetypeColumn"),
        (dec(5, 0), INT, "RetypeColumn"),
        (YEAR, dec(10, 0), "RetypeColumn"),
        (dec(5, 2), dec(7, 2), "WidenColumn"),
        (BIGINT, INT, "RetypeColumn"),
        (INT, STRING, "RetypeColumn"),
        (dec(5, 2), dec(5, 3), "RetypeColumn"),
        (DATE, BIGINT, "RetypeColumn"),
        (rec(a=INT), INT, "RetypeColumn"),
        (rec(a=INT), union(INT), "RetypeColumn"),
        (VARIABLE, dec(5, 2), "RetypeColumn"),
        (MILLIS, MICROS, "ChangeSemanticType"),
        (NANOS, MICROS, "ChangeSemanticType"),
        (BIGINT, MILLIS, "ChangeSemanticType"),
        (INT, DATE, "ChangeSemanticType"),
        (INT, YEAR, "ChangeSemanticType"),
        (YEAR, replace(BIGINT, name=""), "RetypeColumn"),
        (BINARY, dec(5, 2), "ChangeSemanticType"),
        (STRING, ZONED, "ChangeSemanticType"),
        (JSON, UUID, "ChangeSemanticType"),
        (VARIABLE, STRING, "ChangeSemanticType"),
        (STRING, JSON, "ChangeDetail"),
        (dec(5, 2), replace(dec(7, 2), name=CONNECT_DECIMAL), "WidenColumn"),
        (STRING, SYMBOLS, "ChangeDetail"),
        (rec(a=INT, b=INT), rec(b=INT, a=INT), "ChangeDetail"),
        (replace(rec(a=INT), name="x.A"), replace(rec(a=INT), name="x.B"), "ChangeDetail"),
    ],
)  # fmt: skip
def test_a_change_of_a_type_is_told_apart(current: Encoding, desired: Encoding, fact: str) -> None:
    assert facts(current, desired) == [(fact, "a")]


def test_nested_changes_name_their_place() -> None:
    before = rec(s=rec(x=INT, y=INT), l=ListOf(element=rec(z=INT)), m=MapOf(key=INT, value=rec(v=INT)), u=union(INT))
    after = rec(s=rec(x=BIGINT, w=INT), l=ListOf(element=rec()), m=MapOf(key=BIGINT, value=rec(v=STRING)), u=union(INT))
    assert facts(before, after) == [
        ("DropField", "a.s.y"),
        ("WidenColumn", "a.s.x"),
        ("AddField", "a.s.w"),
        ("DropField", "a.l.element.z"),
        ("WidenColumn", "a.m.key"),
        ("RetypeColumn", "a.m.value.v"),
    ]


@pytest.mark.parametrize(
    ("desired", "facts"),
    [
        (union(INT, STRING, DATE), [("AddField", "a.member2")]),
        (union(STRING, INT), [("ChangeDetail", "a")]),
        (union(DATE, INT), [("RetypeColumn", "a.member1"), ("AddField", "a.member0")]),
    ],
)
def test_the_branches_of_a_union_are_the_same_wherever_they_stand(
    desired: Encoding, facts: list[tuple[str, str]]
) -> None:
    found = history((col("a", union(INT, STRING)),), (col("a", desired),))
    changes = diff(*(schema(*v.columns) for v in found.versions))
    assert [(type(c).__name__, getattr(c, "path", None) or getattr(c, "name", None)) for c in changes] == facts


def test_a_member_under_another_name_is_a_rename() -> None:
    found = history((col("a", rec(x=INT)),), (col("a", rec(y=INT)),), renames={"a.y": "a.x"})
    (change,) = diff(*(schema(*v.columns) for v in found.versions))
    assert isinstance(change, RenameField)
    assert (change.path, change.old) == ("a.y", "x")


@pytest.mark.parametrize(
    ("current", "desired", "lossy"), [(INT, BIGINT, False), (BIGINT, INT, True), (MILLIS, MICROS, False)]
)
def test_a_retype_is_what_may_lose_values(current: Encoding, desired: Encoding, lossy: bool) -> None:
    assert retypes(rec(x=current), rec(x=desired)) is lossy


def test_a_map_key_that_loses_a_member_is_a_retype_because_keys_could_become_equal() -> None:
    before = MapOf(key=rec(x=INT, y=INT), value=INT, entries=True)
    after = MapOf(key=rec(x=INT, z=INT), value=INT, entries=True)
    assert facts(before, after) == [("RetypeColumn", "a.key.y"), ("AddField", "a.key.z")]


def test_a_map_that_becomes_a_list_of_entries_is_a_retype() -> None:
    assert facts(MapOf(key=STRING, value=INT), MapOf(key=STRING, value=INT, entries=True)) == [("RetypeColumn", "a")]


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, ...]:
    """Columns drawn by life, so that two draws share some; every facet at random."""
    drawn = draw(st.permutations([Life(name=n, since=s) for n in "abc" for s in (1, 2)]))
    chosen = drawn[: draw(st.integers(0, 4))]
    names = draw(st.permutations(["a", "b", "c", "d", "e"]))
    return tuple(
        Column(
            name=name,
            encoding=draw(encodings()),
            nullable=draw(st.booleans()),
            default=draw(st.sampled_from([None, "null", "1"])),
            doc=draw(st.sampled_from(["", "doc"])),
            aliases=draw(st.sampled_from([(), ("x",), ("x", "y")])),
            since=life.since,
            origin=life.name,
        )
        for life, name in zip(chosen, names, strict=False)
    )


schemas = st.builds(
    TableSchema,
    columns=columns(),
    keys=st.sampled_from([(), ("a",), ("a", "b")]),
    envelope=st.sampled_from([FLAT, PLAIN, DEBEZIUM]),
)


@given(schemas)
def test_a_schema_does_not_differ_from_itself(same: TableSchema) -> None:
    assert diff(same, same) == ()


@given(schemas, schemas)
def test_applying_the_difference_makes_the_current_schema_the_desired_one(
    current: TableSchema, desired: TableSchema
) -> None:
    assert apply_changes(diff(current, desired), current) == desired


@given(histories(kinds=True))
def test_the_versions_of_a_subject_turn_into_each_other(found: History) -> None:
    sides = [schema(*v.columns) for v in found.versions]
    assert all(apply_changes(diff(a, b), a) == b for a in sides for b in sides)


@given(encodings(), encodings(), st.booleans())
def test_what_is_neither_retype_nor_change_of_meaning_keeps_every_value_that_survives(
    current: Encoding, desired: Encoding, alike: bool
) -> None:
    desired = current if alike else desired
    changes: tuple[Change, ...] = diff(schema(col("a", current)), schema(col("a", desired)))
    if not any(isinstance(c, RetypeColumn | ChangeSemanticType) for c in changes):
        shape = reshape(current, desired)
        assert not isinstance(shape, NoConversion)
        assert lost_sql("x", shape) == ""


@given(histories())
def test_generated_evolution_is_never_a_retype(found: History) -> None:
    sides = [schema(*v.columns) for v in found.versions]
    changes = [c for a, b in pairwise(sides) for c in diff(a, b)]
    assert not [c for c in changes if isinstance(c, RetypeColumn | ChangeSemanticType)]


def test_the_record_of_a_struct_without_members_is_still_a_record() -> None:
    assert facts(Record(members=()), rec(a=INT)) == [("AddField", "a.a")]


def test_a_name_that_changes_its_case_is_a_rename_in_columns_and_keys_alike() -> None:
    changes = diff(schema(col("Id"), keys=("Id",)), schema(col("id"), keys=("id",)))
    assert changes == (RenameColumn(life=Life(name="id", since=1), current="Id", desired="id"),)
    assert apply_changes(changes, schema(col("Id"), col("b"), keys=("b", "Id"))).keys == ("b", "id")


def test_a_key_that_is_another_column_in_another_case_is_another_key() -> None:
    old, new = schema(col("Id"), keys=("Id",)), schema(col("id", since=2), keys=("id",))
    assert diff(old, new)[-1] == ChangeKey(current=("Id",), desired=("id",))
    assert apply_changes(diff(old, new), old) == new


def test_a_struct_member_that_changes_its_case_is_the_same_member() -> None:
    old, new = col("s", rec(State=INT)), col("s", rec(state=INT))
    assert diff(schema(old), schema(new)) == (
        ChangeDetail(life=new.life, name="s", current=old.encoding, desired=new.encoding),
    )
    assert diff(schema(old), schema(col("s", rec(state=BIGINT)))) == (
        WidenColumn(life=new.life, name="s.state", current=old.encoding, desired=rec(state=BIGINT)),
    )
