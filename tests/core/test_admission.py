from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from schemasync.core.admission import Footer, NoWriter, first_offset, lacking_order, lost_order, match_writer, writer_in
from schemasync.core.avro import read_value_schema
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning
from schemasync.core.history import read_history
from schemasync.core.schema import Column, SubjectVersion
from schemasync.core.types import Primitive, Struct, StructField, Type
from schemasync.core.written import written_type
from tests.core.avro_schemas import field, record, registered
from tests.core.builders import (
    BIGINT,
    BINARY,
    DEBEZIUM,
    INT,
    MICROS,
    MILLIS,
    STRING,
    col,
    dec,
    event_of,
    history,
    rec,
    version,
)


def footer(type_: Type | None = None) -> Footer:
    """Return the footer of a file whose columns have these types."""
    assert type_ is None or isinstance(type_, Struct)
    return Footer(rows=1, avro=None, type=type_ or Struct(fields=()))


def written(*columns: Any) -> Footer:
    """Return the footer of a file that parquet-avro wrote, without its Avro schema."""
    return footer(written_type(event_of(columns)))


def matched(found: Footer, versions: Sequence[SubjectVersion], embedded: SubjectVersion | None = None) -> int | str:
    """Return the version that is found, or why there is none."""
    outcome = match_writer(found, versions, embedded=embedded)
    return outcome.reason if isinstance(outcome, NoWriter) else outcome.version


def avro(*fields: dict[str, Any], version: int, order: bool = False) -> SubjectVersion:
    text = json.dumps(record("Row", *fields), sort_keys=order)
    return read_value_schema(registered(text, version=version))


A, B = field("a", "int"), field("b", ["null", "string"], default=None)


@pytest.mark.parametrize(
    ("fields", "lacks"),
    [
        ({"after": STRING, "Source": rec(LSN=BIGINT), "TS_ms": BIGINT}, ""),
        ({"source": rec(lsn=BIGINT)}, "ts_ms"),
        ({"source": rec(snapshot=STRING), "ts_ms": BIGINT}, "source.lsn"),
        ({"source": STRING}, "source.lsn, ts_ms"),
    ],
)
def test_a_file_that_lacks_what_orders_its_events_is_told(fields: dict[str, Encoding], lacks: str) -> None:
    said = lacking_order(footer(written_type(rec(**fields))), version(1, col("id"), envelope=DEBEZIUM))
    assert said == (lacks and f"it lacks {lacks}, which the Avro schema in its footer has: its events have no order")


POSITION, CLOCK = DEBEZIUM.ordering
WITH, WITHOUT = {"source": rec(lsn=BIGINT), "ts_ms": BIGINT}, {"__lsn": BIGINT, "__ts_ms": BIGINT}


@pytest.mark.parametrize(
    ("before", "written", "lacks"),
    [
        ([WITH], WITH, ""),
        ([WITH], {"Source": rec(LSN=BIGINT), "TS_MS": BIGINT}, ""),
        ([WITHOUT], WITHOUT, ""),
        ([WITH], {"ts_ms": BIGINT}, "source.lsn"),
        ([WITH], WITHOUT, "source.lsn, ts_ms"),
        ([WITH, WITHOUT], WITHOUT, "source.lsn, ts_ms"),
        ([{"ts_ms": BIGINT}], {"source": STRING}, "ts_ms"),
        ([{"source": rec(lsn=STRING), "ts_ms": BIGINT}], {"ts_ms": BIGINT}, ""),
        ([None], WITHOUT, ""),
        ([WITH], None, "source.lsn, ts_ms"),
    ],
)
def test_what_orders_a_table_may_have_come_later_and_not_have_gone(
    before: list[dict[str, Encoding] | None], written: dict[str, Encoding] | None, lacks: str
) -> None:
    """Events from before it came are older than all that have it, as NULL says; those from after it went are not."""
    versions = [
        replace(version(n, col("id")), event=rec(**fields) if fields else None)
        for n, fields in enumerate((*before, written, WITH), start=1)
    ]
    said = lost_order(read_history(versions), versions[-2], (POSITION, CLOCK))
    which = "which orders the table, and which those of version 1 have: they would count as older"
    assert said == (lacks and f"its events lack {lacks}, {which}")


def test_a_version_between_which_and_its_like_a_nested_field_was_dropped_and_added_again_is_not_guessed() -> None:
    def shaped(number: int, **fields: Encoding) -> SubjectVersion:
        columns = (col("a", ListOf(element=rec(**fields))), col("m", MapOf(key=STRING, value=rec(**fields))))
        return replace(version(number, *columns), fingerprint=f"fp{number}")

    found = read_history([shaped(1, x=INT, y=INT), shaped(2, x=INT), shaped(3, x=INT, y=INT)])
    embedded = replace(shaped(1, x=INT, y=INT), fingerprint="another")
    reason = "it fits versions 1, 3, between which a column was dropped and added again"
    assert matched(footer(), found.versions, embedded) == reason
    assert matched(footer(), found.versions[1:], embedded) == 3


def test_a_footers_schema_is_found_among_the_versions() -> None:
    versions = [avro(A, version=1), avro(A, B, version=2)]
    assert [matched(footer(), versions, avro(*fields, version=9)) for fields in ((A,), (A, B))] == [1, 2]


def test_what_connect_calls_types_that_it_did_not_make_does_not_matter() -> None:
    """Its converter writes such names into the schema that its sinks put into footers."""
    millis, inner = {"type": "long", "logicalType": "timestamp-millis"}, record("shop.Address", field("city", "string"))
    stamp = {**millis, "connect.name": "org.apache.kafka.connect.data.Timestamp", "connect.version": 1}

    def shaped(at: Any, address: Any, version: int) -> SubjectVersion:
        listed, mapped = {"type": "array", "items": at}, {"type": "map", "values": at}
        return avro(field("at", at), field("l", listed), field("m", mapped), field("a", address), version=version)

    plain, named = shaped(millis, inner, 1), shaped(stamp, {**inner, "connect.name": "shop.Address"}, 9)
    assert matched(footer(), [plain], named) == 1
    other = shaped("long", inner, 1)
    assert matched(footer(), [other], named) == "the Avro schema in its footer is no version of the subject"


def test_symbols_of_an_enum_that_connect_writes_again_are_no_other_type() -> None:
    """Its converter makes strings of enums, with their symbols as parameters, which have no order."""
    made = {"connect.name": "shop.State", "connect.parameters": {}}
    prefix = "io.confluent.connect.avro.Enum"
    made["connect.parameters"] = {prefix: "shop.State"} | {f"{prefix}.{s}": s for s in ("CANCELLED", "NEW", "PAID")}
    state = {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "CANCELLED"]}
    again = {"type": "string", **made}
    for found in (again, "string"):
        assert matched(footer(), [avro(field("s", state), version=1)], avro(field("s", found), version=9)) == 1


MICROS_OF = {"type": "long", "logicalType": "timestamp-micros"}
NESTED = [
    lambda t: t,
    lambda t: {"type": "array", "items": t},
    lambda t: {"type": "map", "values": t},
    lambda t: record("R", field("x", t)),
]


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize(
    ("logical", "plain"),
    [
        (MICROS_OF, "long"),
        ({"type": "long", "logicalType": "time-micros"}, "long"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "long"),
    ],
)
def test_logical_types_that_connect_does_not_know_are_plain_in_its_footers(
    nested: Callable[[Any], Any], logical: dict[str, str], plain: str
) -> None:
    def of(type_: Any, number: int) -> SubjectVersion:
        return avro(field("at", nested(type_)), field("n", "int"), version=number)

    assert matched(footer(), [of(logical, 1)], of(plain, 9)) == 1
    assert matched(footer(), [of(logical, 1), of(plain, 2)], of(plain, 9)) == 2
    none = "the Avro schema in its footer is no version of the subject"
    assert matched(footer(), [of(logical, 1)], of("int", 9)) == none
    for known in ("timestamp-millis", "date"):
        type_ = {"type": "int" if known == "date" else "long", "logicalType": known}
        assert matched(footer(), [of(type_, 1)], of(type_["type"], 9)) == none


@pytest.mark.parametrize(
    "other",
    [
        avro(field("at", ["null", "long"]), version=9),
        avro(field("at", record("R", field("y", "long"))), version=9),
        avro(field("at", "long"), A, version=9),
        avro(field("other", "long"), version=9),
    ],
)
def test_what_is_not_only_a_logical_type_less_is_no_version(other: SubjectVersion) -> None:
    for at in (MICROS_OF, record("R", field("x", MICROS_OF)), {"type": "array", "items": MICROS_OF}):
        assert isinstance(matched(footer(), [avro(field("at", at), version=1)], other), str)


def test_plain_numbers_that_may_be_of_two_meanings_are_not_guessed() -> None:
    found = [
        avro(field("at", logical), version=n)
        for n, logical in enumerate((MICROS_OF, {"type": "long", "logicalType": "time-micros"}), start=1)
    ]
    reason = "its columns fit versions 1, 2, which give the values different meanings"
    assert matched(footer(), found, avro(field("at", "long"), version=9)) == reason


def test_branches_of_another_namespace_are_the_same_where_nothing_else_tells() -> None:
    def card(name: str) -> dict[str, Any]:
        return field(
            "pay", ["null", record(name, field("n", "int")), {"type": "enum", "name": f"{name}E", "symbols": ["A"]}]
        )

    assert matched(footer(), [avro(card("shop.Card"), version=1)], avro(card("other.Card"), version=9)) == 1


def test_another_order_of_the_jsons_keys_is_the_same_schema() -> None:
    assert matched(footer(), [avro(A, version=1), avro(A, B, version=2)], avro(A, version=9, order=True)) == 1


def test_an_equal_schema_beats_a_newer_one_that_reads_alike() -> None:
    versions = [avro(field("a", "int", doc=f"text {n}"), version=n) for n in (1, 2, 3)]
    assert matched(footer(), versions, avro(field("a", "int", doc="text 2"), version=9)) == 2


def test_of_versions_that_differ_in_comments_defaults_and_aliases_only_the_newest_is_taken() -> None:
    versions = [avro(field("a", "int", doc=str(n), default=n, aliases=[f"x{n}"]), version=n) for n in (1, 2)]
    assert matched(footer(), versions, avro(A, version=9)) == 2


def test_a_file_of_an_earlier_life_is_not_taken_for_one_of_the_later() -> None:
    later = field("b", ["null", "string"], default=None, doc="again")
    versions = read_history([avro(A, B, version=1), avro(A, version=2), avro(A, later, version=3)]).versions
    assert [matched(footer(), versions, avro(*fields, version=9)) for fields in ((A, B), (A,), (A, later))] == [1, 2, 3]


def test_a_file_that_fits_two_lives_of_a_name_is_not_guessed() -> None:
    dropped = [
        avro(A, B, version=1),
        avro(A, version=2),
        avro(A, field("b", ["null", "string"], doc="again"), version=3),
    ]
    versions = read_history(dropped).versions
    reason = NoWriter(reason="it fits versions 1, 3, between which a column was dropped and added again")
    undocumented = avro(A, field("b", ["null", "string"]), version=9)
    bare = history((col("a"), col("b")), (col("a"),), (col("a"), col("b"))).versions
    found = [
        match_writer(footer(), versions, embedded=undocumented),
        match_writer(written(col("a"), col("b")), bare, embedded=None),
    ]
    assert found == [reason, reason]


@pytest.mark.parametrize(
    "other",
    [
        avro(A, field("c", "int"), version=9),
        avro(field("a", "long"), version=9),
        avro(field("a", ["null", "int"]), version=9),
        avro(A, field("op", "string"), field("ts_ms", "long"), version=9),
    ],
    ids=["another column", "another type", "nullable", "another envelope"],
)
def test_a_schema_that_reads_otherwise_is_no_version(other: SubjectVersion) -> None:
    found = matched(footer(), [avro(A, version=1)], other)
    assert str(found).startswith("the Avro schema in its footer is no version of the subject")


ROW = record("Value", field("id", "int"), field("at", {"type": "long", "logicalType": "timestamp-micros"}))
WRAPPED = (field("before", ["null", ROW]), field("after", ["null", "Value"]), field("op", "string"))
BARE = (field("id", "int"), field("at", "long"))
UNWRAPPED = "the row that version 1 has in after: a transform of the sink's has unwrapped it"


@pytest.mark.parametrize(
    ("registered_fields", "found", "told", "fix"),
    [
        (WRAPPED, BARE, UNWRAPPED, "A transform belongs to"),
        (WRAPPED, (*BARE, field("__deleted", "string"), field("__op", "string")), UNWRAPPED, "A transform belongs to"),
        ((A,), (field("z", "int"), A, B, field("x", "int"), field("y", "int")),
         "version 1 with more fields: z, b, x, 1 more", "If a transform"),
    ],
    ids=["row", "row with fields", "fields"],
)  # fmt: skip
def test_what_a_transform_of_the_sinks_makes_of_a_version_is_told_as_that(
    registered_fields: Sequence[Any], found: Sequence[Any], told: str, fix: str
) -> None:
    versions = [avro(*registered_fields, version=1), avro(field("other", "int"), version=2)]
    outcome = match_writer(footer(), versions, embedded=avro(*found, version=9))
    assert isinstance(outcome, NoWriter)
    assert outcome.reason == f"the Avro schema in its footer is no version of the subject, but {told}"
    assert (outcome.fix.startswith(fix), "under a subject of its own, and map that" in outcome.fix) == (True, True)


@pytest.mark.parametrize(
    ("registered_fields", "found"),
    [
        (WRAPPED, (field("id", "int"), field("at", "string"))),
        (WRAPPED, (field("id", "int"),)),
        ((A, B), (B, A)),
        ((A, B), (A, field("b", "int"), field("c", "int"))),
    ],
    ids=["another type", "less", "another order", "more fields and another type"],
)
def test_what_no_transform_that_is_known_makes_of_a_version_is_not_taken_for_one(
    registered_fields: Sequence[Any], found: Sequence[Any]
) -> None:
    reason = NoWriter(reason="the Avro schema in its footer is no version of the subject")
    assert match_writer(footer(), [avro(*registered_fields, version=1)], embedded=avro(*found, version=9)) == reason


def test_without_a_footers_schema_the_types_tell_the_version() -> None:
    versions = history((col("a"),), (col("a", BIGINT),), (col("a", BIGINT), col("b"))).versions
    rows = ((col("a"),), (col("a", BIGINT),), (col("a", BIGINT), col("b")))
    assert [matched(written(*row), versions) for row in rows] == [1, 2, 3]


def test_of_versions_that_mean_the_same_the_newest_is_taken() -> None:
    versions = history((col("a"),), (col("a", nullable=False, doc="d", default="1"),)).versions
    assert matched(written(col("a")), versions) == 2


@pytest.mark.parametrize("nest", [lambda x, y: rec(**x, **y), lambda x, y: ListOf(element=rec(**x, **y))])
def test_another_order_of_columns_or_fields_is_no_other_meaning(nest: Any) -> None:
    one, two = nest({"x": INT}, {"y": STRING}), nest({"y": STRING}, {"x": INT})
    versions = history((col("a"), col("b", one)), (col("b", two), col("a"))).versions
    files = (written(col("a"), col("b", one)), written(col("b", two), col("a")))
    assert [matched(file, versions) for file in files] == [2, 2]


def test_fields_that_swapped_their_names_by_way_of_a_third_are_not_taken_for_another_order() -> None:
    shapes = [rec(x=INT, y=INT), rec(z=INT, y=INT), rec(z=INT, x=INT), rec(y=INT, x=INT)]
    tags = [col("a", MapOf(key=STRING, value=shape)) for shape in shapes]
    renames = {"a.value.z": "a.value.x", "a.value.x": "a.value.y", "a.value.y": "a.value.z"}
    found = read_history([version(n, tag) for n, tag in enumerate(tags, start=1)], renames=renames).versions
    assert matched(written(tags[0]), found) == (
        "it fits versions 1, 4, between which a column was dropped and added again"
    )


NESTS = [
    lambda e: e,
    lambda e: rec(x=e),
    lambda e: ListOf(element=e),
    lambda e: MapOf(key=STRING, value=e),
]


@pytest.mark.parametrize("nest", NESTS)
def test_where_versions_give_the_same_bytes_other_meanings_none_is_guessed(nest: Any) -> None:
    versions = history((col("a", nest(MILLIS)),), (col("a", nest(MICROS)),)).versions
    assert matched(written(col("a", nest(MILLIS))), versions) == (
        "its columns fit versions 1, 2, which give the values different meanings"
    )


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize(
    ("one", "other", "guessed"),
    [
        (Leaf(type=BIGINT.type, name="io.debezium.time.MicroDuration"), BIGINT, False),
        (Leaf(type=BINARY.type, name="duration"), BINARY, False),
        (Leaf(type=STRING.type, name="io.debezium.data.Json"), STRING, True),
        (dec(30, 2), replace(dec(30, 2), name="org.apache.kafka.connect.data.Decimal"), True),
    ],
)
def test_the_same_numbers_under_another_name_are_another_meaning(
    nest: Any, one: Leaf, other: Leaf, guessed: bool
) -> None:
    """Where the footer has a schema, which Connect wrote anew under names of its own.

    A stream of files without one would stop for good: they go on as the newest.
    """
    versions = history((col("a", nest(one)),), (col("a", nest(other)),)).versions
    embedded = replace(version(9, col("a", nest(replace(one, name="Own")))), fingerprint="another")
    expected = 2 if guessed else "its columns fit versions 1, 2, which give the values different meanings"
    assert matched(footer(), versions, embedded) == expected
    assert matched(written(col("a", nest(one))), versions) == 2


def test_the_file_is_not_guessed_either_where_bytes_may_be_text() -> None:
    versions = history((col("a", STRING),), (col("a", BINARY),)).versions
    assert "different meanings" in str(matched(written(col("a", BINARY)), versions))


def test_a_rename_alone_is_told_by_the_name() -> None:
    versions = history((col("a"),), (col("b", aliases=("a",)),)).versions
    assert [matched(written(col(n)), versions) for n in "ab"] == [1, 2]


UNFIT = "its columns fit no version of the subject, and its footer has no Avro schema"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        (BIGINT, "bigint"),
        (STRING, "string"),
        (rec(x=INT), "struct<x:int>"),
        (Leaf(type=Primitive.STRING, meaning=Meaning.UUID_BYTES), "binary"),
    ],
)
def test_a_file_that_fits_no_version_is_refused(encoding: Encoding, shown: str) -> None:
    found = matched(written(col("a", encoding)), history((col("z"),), (col("a"),)).versions)
    assert found == f"{UNFIT}; compared with version 2, a is {shown}"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ((col("a"), col("s", rec(x=INT))), "s.y is missing"),
        ((col("A"), col("s", rec(x=BIGINT, y=INT))), "a is missing, s.x is bigint, A is not known"),
        ((col("b"), col("s", rec(z=INT))), "a is missing, s.x is missing, s.y is missing, 2 more"),
    ],
)
def test_what_does_not_fit_is_named(columns: tuple[Column, ...], told: str) -> None:
    versions = [version(7, col("a"), col("s", rec(x=INT, y=INT))), replace(version(8, col("a")), event=None)]
    assert matched(written(*columns), versions) == f"{UNFIT}; compared with version 7, {told}"


def test_where_no_versions_events_are_known_nothing_is_compared() -> None:
    assert matched(written(col("a")), [replace(version(1, col("a")), event=None)]) == UNFIT


def test_the_same_columns_in_another_envelope_are_another_meaning() -> None:
    one = version(1, col("a"))
    two = replace(version(2, col("a")), envelope=replace(DEBEZIUM))
    assert "different meanings" in str(matched(written(col("a")), [one, two]))


def test_a_version_whose_events_are_not_known_is_no_candidate() -> None:
    versions = [version(1, col("a")), replace(version(2, col("a")), event=None)]
    assert matched(written(col("a")), versions) == 1


FORKED = replace(history((col("a"),), (col("a"), col("c"))), elsewhere=(version(3, col("b")), version(4, col("a"))))
"""Versions 1 and 2 are followed, 3 and 4 are of another compatibility group."""


@pytest.mark.parametrize(("found", "number"), [("fp2", 2), ("fp3", 3), ("fp4", 4)])
def test_a_footer_says_also_that_a_file_is_of_another_group(found: str, number: int) -> None:
    embedded = replace(version(9, col("z")), fingerprint=found)
    outcome = writer_in(FORKED, footer(), embedded=embedded)
    assert not isinstance(outcome, NoWriter)
    assert outcome.version == number


@pytest.mark.parametrize(("columns", "number"), [((col("a"),), 1), ((col("a"), col("c")), 2), ((col("b"),), 3)])
def test_a_file_without_a_footer_is_of_another_group_where_only_that_fits(
    columns: tuple[Column, ...], number: int
) -> None:
    outcome = writer_in(FORKED, written(*columns), embedded=None)
    assert not isinstance(outcome, NoWriter)
    assert outcome.version == number


def test_a_file_that_two_groups_read_otherwise_is_not_guessed() -> None:
    forked = replace(history((col("t", MILLIS),)), elsewhere=(version(2, col("t", MICROS)),))
    unclear = replace(history((col("t", MILLIS),), (col("t", MICROS),)), elsewhere=(version(3, col("t", MICROS)),))
    assert [writer_in(found, written(col("t", MILLIS)), embedded=None) for found in (forked, unclear)] == [
        NoWriter(reason="its columns fit versions 1 and 2, which give the values different meanings"),
        NoWriter(reason="its columns fit versions 1, 2, which give the values different meanings"),
    ]


def test_a_file_of_no_group_is_refused() -> None:
    assert writer_in(FORKED, written(col("x")), embedded=None) == NoWriter(
        reason=f"{UNFIT}; compared with version 2, a is missing, c is missing, x is not known"
    )


@pytest.mark.parametrize(
    ("path", "offset"),
    [
        ("incremental/h=1/shop.student+0+0000000042.parquet", 42),
        ("a+b+3+7.parquet", 7),
        ("h=1/shop.student+0+0000000100+0000000199.parquet", 100),
        ("shop.student+0+0000000042.snappy.parquet", 42),
        ("shop.student+0+0000000042.parquet.tmp", None),
        ("part-00001.parquet", None),
        ("shop.student+0+x.parquet", None),
    ],
)
def test_connects_file_names_say_the_first_offset(path: str, offset: int | None) -> None:
    assert first_offset(path) == offset


def test_a_struct_of_other_fields_is_no_event_of_ours() -> None:
    one = Struct(fields=(StructField(name="z", type=Primitive.INT),))
    assert "fit no version" in str(matched(footer(one), history((col("a"),)).versions))
