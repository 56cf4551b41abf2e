from __future__ import annotations

import json
from typing import Any

import pytest

from schemasync.core.avro import read_value_schema
from schemasync.core.encoding import Meaning
from schemasync.core.envelope import clock_behind, deciding, has_partial_deletes, inside_row
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField, SubjectVersion
from schemasync.core.types import Primitive
from schemasync.errors import SchemaError
from tests.core.avro_schemas import DATA, captured, field, record, registered

ROW = record("Value", field("id", "long"))
AFTER = field("after", ["null", ROW])
OP = field("op", "string")


def read(*fields: dict[str, Any], **options: Any) -> SubjectVersion:
    return read_value_schema(registered(record("Event", *fields)), **options)


def debezium(*source: dict[str, Any], ts: tuple[str, ...] = ("ts_ms", "ts_us", "ts_ns")) -> SubjectVersion:
    return read(AFTER, field("source", record("Source", *source)), OP, *(field(t, ["null", "long"]) for t in ts))


def order(version: SubjectVersion) -> list[str]:
    return [str(f) for f in version.envelope.ordering]


def names(version: SubjectVersion) -> list[str]:
    return [c.name for c in version.columns]


def test_a_debezium_event_is_understood() -> None:
    assert read_value_schema(captured("cdc.inventory.evolving-value", 6)).envelope == Envelope(
        kind=EnvelopeKind.DEBEZIUM,
        op="op",
        ts_ms=("ts_ms",),
        ordering=(
            OrderingField(path=("source", "sequence"), type=Primitive.BIGINT, meaning=Meaning.LOG_SEQUENCE),
            OrderingField(path=("source", "lsn"), type=Primitive.BIGINT),
            OrderingField(path=("ts_ns",), type=Primitive.BIGINT),
        ),
    )


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ((AFTER, OP), EnvelopeKind.DEBEZIUM),
        ((field("after", ROW), OP), EnvelopeKind.DEBEZIUM),
        ((field("after", "string"), OP), EnvelopeKind.PLAIN),
        ((field("after", ["null", ROW, "string"]), OP), EnvelopeKind.PLAIN),
        ((AFTER,), EnvelopeKind.PLAIN),
        ((field("id", "int"), field("__op", "string")), EnvelopeKind.UNWRAPPED),
        ((field("id", "int"), field("__deleted", "string")), EnvelopeKind.UNWRAPPED),
        ((field("id", "int"), OP, field("ts_ms", "long")), EnvelopeKind.FLAT),
        ((field("id", "int"), OP), EnvelopeKind.PLAIN),
        ((field("id", "int"),), EnvelopeKind.PLAIN),
    ],
)
def test_the_envelope_is_told_by_its_fields(fields: tuple[dict[str, Any], ...], kind: EnvelopeKind) -> None:
    assert read(*fields).envelope.kind is kind


def test_the_row_of_a_flat_event_is_all_but_its_envelope() -> None:
    version = read(
        field("id", "int"), OP, field("ts_ms", "long"), field("kafka_offset", "long"), field("__note", "string")
    )
    assert names(version) == ["id", "__note"]
    assert version.envelope == Envelope(
        kind=EnvelopeKind.FLAT,
        op="op",
        ts_ms=("ts_ms",),
        offset="kafka_offset",
        ordering=(
            OrderingField(path=("ts_ms",), type=Primitive.BIGINT),
            OrderingField(path=("kafka_offset",), type=Primitive.BIGINT),
        ),
    )


def test_the_row_of_an_unwrapped_event_is_all_but_what_debezium_added() -> None:
    added = ("__op", "__lsn", "__source_ts_ms", "__ts_ms", "__deleted", "__offset")
    version = read(field("id", "int"), *(field(n, "long" if n == "__lsn" else "string") for n in added))
    assert names(version) == ["id"]
    assert order(version) == ["__lsn", "__source_ts_ms", "__ts_ms"]
    assert (version.envelope.op, version.envelope.deleted) == ("__op", "__deleted")
    assert (version.envelope.ts_ms, version.envelope.offset) == (("__ts_ms",), "__offset")


def test_an_unwrapped_event_may_have_nothing_but_its_delete_mark() -> None:
    version = read(field("id", "int"), field("__deleted", "string"))
    assert version.envelope == Envelope(kind=EnvelopeKind.UNWRAPPED, deleted="__deleted")


def test_a_plain_row_keeps_all_columns_and_has_no_order() -> None:
    version = read(field("id", "int"), field("__note", "string"), field("ts_ms", "long"))
    assert names(version) == ["id", "__note", "ts_ms"]
    assert version.envelope == Envelope(kind=EnvelopeKind.PLAIN)


LONG = ["null", "long"]
TEXT = ["null", "string"]
FILE_AND_POS = (field("file", "string"), field("pos", "long"))
LSNS = (field("commit_lsn", ["null", "string"]), field("change_lsn", ["null", "string"]))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ((field("lsn", LONG), field("ts_ms", "long")), ["source.lsn", "ts_ns"]),
        ((field("lsn", LONG), field("sequence", TEXT)), ["source.sequence", "source.lsn", "ts_ns"]),
        # Another connector's, or another Debezium's
        ((field("lsn", LONG), field("sequence", "long")), ["source.lsn", "ts_ns"]),
        ((field("sequence", TEXT), field("ts_ms", "long")), ["source.ts_ms", "ts_ns"]),
        (FILE_AND_POS, ["source.file", "source.pos", "ts_ns"]),
        ((*FILE_AND_POS, field("row", "int")), ["source.file", "source.pos", "source.row", "ts_ns"]),
        (LSNS, ["source.commit_lsn", "source.change_lsn", "ts_ns"]),
        (
            (*LSNS, field("event_serial_no", LONG)),
            ["source.commit_lsn", "source.change_lsn", "source.event_serial_no", "ts_ns"],
        ),
        ((field("ts_ms", "long"),), ["source.ts_ms", "ts_ns"]),
        ((field("ts_ms", "long"), field("ts_us", "long")), ["source.ts_us", "ts_ns"]),
        ((field("ts_ms", "long"), field("ts_ns", "long")), ["source.ts_ns", "ts_ns"]),
        ((field("db", "string"),), ["ts_ns"]),
        ((field("lsn", {"type": "array", "items": "long"}),), ["ts_ns"]),
        ((field("lsn", "double"),), ["ts_ns"]),
    ],
)
def test_the_order_follows_what_the_source_says(source: tuple[dict[str, Any], ...], expected: list[str]) -> None:
    assert order(debezium(*source)) == expected


@pytest.mark.parametrize(
    ("ts", "finest"), [(("ts_ms",), ["ts_ms"]), (("ts_ms", "ts_us"), ["ts_us"]), ((), [])], ids=str
)
def test_the_finest_clock_of_the_envelope_comes_last(ts: tuple[str, ...], finest: list[str]) -> None:
    assert order(debezium(field("lsn", LONG), ts=ts)) == ["source.lsn", *finest]


def test_positions_that_are_no_fixed_width_text_do_not_order() -> None:
    """As text 98 is after 103: YugabyteDB's and Informix's positions are decimal numbers."""
    clock = field("ts_ms", "long")
    assert order(debezium(field("lsn", ["null", "string"]), clock)) == ["source.ts_ms", "ts_ns"]
    for owner, expected in (
        ("informix", ["source.ts_ms", "ts_ns"]),
        ("db2", ["source.commit_lsn", "source.change_lsn", "ts_ns"]),
    ):
        source = record("Source", *LSNS, clock) | {"connect.name": f"io.debezium.connector.{owner}.Source"}
        version = read(AFTER, field("source", source), OP, field("ts_ns", ["null", "long"]))
        assert order(version) == expected


@pytest.mark.parametrize("prefix", ["__", "__source_"])
@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (("file", "pos", "row"), ("file", "pos", "row")),
        (("file", "pos"), ("file", "pos")),
        (("commit_lsn", "change_lsn", "event_serial_no"), ("commit_lsn", "change_lsn", "event_serial_no")),
        (("file", "lsn"), ("lsn",)),
        (("file",), ()),
    ],
)
def test_the_positions_of_unwrapped_rows_order_them(
    prefix: str, added: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    fields = [field(f"{prefix}{name}", ["null", "long"]) for name in added]
    version = read(field("id", "long"), field("__op", "string"), *fields, field("__ts_ms", ["null", "long"]))
    assert order(version) == [*(f"{prefix}{name}" for name in expected), "__ts_ms"]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (("__source_ts_ms", "__source_ord", "__ts_ms"), ["__source_ts_ms", "__source_ord", "__ts_ms"]),
        (("__source_ts_ms", "__ord"), ["__source_ts_ms", "__ord"]),
        (("__source_ts_ms", "__source_ts_ns", "__ord"), ["__source_ts_ns", "__ord"]),
        # The count begins anew in every second: without the second it says nothing.
        (("__ord", "__ts_ms"), ["__ts_ms"]),
    ],
)
def test_the_changes_of_one_second_of_mongodb_are_ordered_by_their_number_in_it(
    added: tuple[str, ...], expected: list[str]
) -> None:
    fields = [field(name, ["null", "int" if name.endswith("ord") else "long"]) for name in added]
    assert order(read(field("id", "string"), field("__op", "string"), *fields)) == expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (("__op",), []),
        # It may be either.
        (("__deleted",), ["ts_ms"]),
        (("__deleted", "__topic"), ["ts_ms"]),
        (("__deleted", "__source_ts_ms"), ["__source_ts_ms"]),
        (("__op", "__source_ts_ms"), ["__source_ts_ms"]),
        (("__op", "__lsn"), ["__lsn"]),
        # The row is one of an audit table, say.
        (("__op", "op"), []),
        (("__deleted", "op"), ["ts_ms"]),
    ],
)
def test_a_clock_without_a_prefix_is_debeziums_unless_others_of_its_fields_have_one(
    added: tuple[str, ...], expected: list[str]
) -> None:
    fields = [field(name, "long" if name.endswith(("lsn", "ms")) else "string") for name in (*added, "ts_ms")]
    version = read(field("id", "long"), *fields)
    assert (version.envelope.kind, order(version)) == (EnvelopeKind.UNWRAPPED, expected)


def test_an_event_without_its_own_clock_takes_the_sources() -> None:
    assert debezium(field("ts_ms", "long"), ts=()).envelope.ts_ms == ("source", "ts_ms")


def test_an_event_may_have_no_clock_at_all() -> None:
    assert read(AFTER, OP).envelope == Envelope(kind=EnvelopeKind.DEBEZIUM, op="op")


def test_the_events_of_one_transaction_are_ordered_as_they_happened() -> None:
    lines = (DATA / "messages" / "cdc.inventory.evolving.jsonl").read_text().splitlines()
    events = {e["offset"]: e["value"] for e in map(json.loads, lines)}
    envelope = read_value_schema(captured("cdc.inventory.evolving-value")).envelope

    def key(offset: int) -> list[Any]:
        return [_dig(events[offset], f.path) for f in envelope.ordering]

    assert sorted([14, 12, 10, 11], key=key) == [10, 11, 12, 14]


def _dig(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


@pytest.mark.parametrize(
    ("added", "by", "inside"),
    [
        ("__op __deleted __lsn", "__lsn rev", ""),
        ("__op __deleted", "rev", "rev"),
        ("__op __deleted", "rev __op", "rev"),
        ("__op __deleted lsn", "lsn", "lsn"),
        ("__op __deleted source_ts_ms", "source_ts_ms", "source_ts_ms"),
        ("__op __deleted", "__deleted rev", "rev"),
        ("__op __deleted", "id rev", "rev"),
        ("__op __deleted _offset", "_offset rev", ""),
        ("__op __deleted kafka_offset", "rev kafka_offset", "rev"),
        ("__deleted ts_ms", "", "ts_ms"),
        # An empty add.fields.prefix.
        ("op __deleted ts_ms", "", ""),
        ("op __deleted ts_ms lsn", "lsn ts_ms rev", ""),
        ("op __deleted source_ts_ms", "source_ts_ms", ""),
        ("op __deleted source_lsn", "source_lsn", ""),
        ("op __deleted source_system", "source_system", "source_system"),
        ("op __deleted lsn", "rev lsn", "rev"),
        ("op __deleted", "op", "op"),
        ("op ts_ms _kafka_offset", "ts_ms _kafka_offset", ""),
        ("op ts_ms", "ts_ms rev", ""),
        ("op ts_ms", "op REV ts_ms", "rev"),
        ("op ts_ms sequence", "sequence", "sequence"),
        ("__op __deleted __sequence", "__sequence rev", ""),
    ],
)
def test_columns_of_the_row_order_events_unless_what_is_written_for_each_comes_before(
    added: str, by: str, inside: str
) -> None:
    fields = [field(name, "long") for name in ("id", "rev", *added.split())]
    version = read(*fields, sequence_by=tuple(by.split()))
    assert inside_row(version.envelope, version.columns, ("ID",)) == tuple(inside.split())


@pytest.mark.parametrize(
    ("by", "inside"),
    [
        ("after.id", "after.id"),
        ("source.lsn after.id", ""),
        ("ts_ms before.id", ""),
        ("kafka_offset after.id", ""),
        ("source.db op after.id source.lsn before.id", "after.id"),
    ],
)
def test_the_row_of_wrapped_events_orders_them_unless_their_position_comes_before(by: str, inside: str) -> None:
    """Also by its key: a delete has no row after it."""
    source = field("source", record("Source", field("db", "string"), field("lsn", "long")))
    sides = (field("before", ["null", ROW]), field("after", ["null", "Value"]))
    version = read(*sides, source, OP, field("ts_ms", "long"), field("kafka_offset", "long"), sequence_by=by.split())
    assert inside_row(version.envelope, version.columns, ("ID",)) == tuple(inside.split())


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["source.lsn", "ts_ms"], 1),
        (["__source_file", "__source_pos", "__source_TS_us"], 2),
        (["__lsn", "__ts_ns"], 1),
        (["ts_ms", "lsn"], None),
        (["lsn", "revision"], None),
        ([], None),
    ],
)
def test_a_clock_stands_behind_a_position(paths: list[str], expected: int | None) -> None:
    ordering = [OrderingField(path=tuple(path.split(".")), type=Primitive.BIGINT) for path in paths]
    assert clock_behind(ordering) == expected


@pytest.mark.parametrize(
    ("paths", "expected"),
    [(["source.lsn", "ts_ns", "ts_ms"], 1), (["source.ts_ms", "ts_ms"], 2), (["lsn", "revision"], 2)],
)
def test_clocks_decide_nothing_behind_a_position_alone(paths: list[str], expected: int) -> None:
    ordering = [OrderingField(path=tuple(path.split(".")), type=Primitive.BIGINT) for path in paths]
    assert deciding(ordering) == ordering[:expected]


ID, DELETED = field("id", "long"), field("__deleted", "string")


@pytest.mark.parametrize(
    ("version", "partial"),
    [
        (debezium(field("lsn", ["null", "long"])), True),
        (debezium(field("lsn", "string")), True),
        (debezium(field("file", "string"), field("pos", "long")), False),
        (debezium(field("scn", "string")), False),
        (read(AFTER, OP), False),
        (read(ID, DELETED, field("__lsn", "long")), True),
        (read(ID, DELETED, field("__ts_ms", "long")), True),
        (read(ID, DELETED, field("__source_file", "string"), field("__source_pos", "long")), False),
        (read(ID, DELETED, field("__commit_lsn", "string"), field("__change_lsn", "string")), False),
        (read(ID, field("__op", "string"), field("__lsn", "long")), False),
        (read(ID, OP, field("ts_ms", "long")), True),
        (read(ID), False),
    ],
)
def test_events_of_postgres_may_be_deletes_that_have_the_sources_key_alone(
    version: SubjectVersion, partial: bool
) -> None:
    assert has_partial_deletes(version.envelope, version.event) is partial


def test_sequence_by_replaces_the_detected_order() -> None:
    when = {"type": "long", "logicalType": "timestamp-millis"}
    source = record("Source", field("lsn", "long"), field("at", ["null", when]))
    version = read(AFTER, OP, field("source", source), sequence_by=("source.at", "op"))
    assert version.envelope.ordering == (
        OrderingField(path=("source", "at"), type=Primitive.TIMESTAMP, meaning=Meaning.EPOCH_MILLIS),
        OrderingField(path=("op",), type=Primitive.STRING),
    )


def test_sequence_by_takes_a_name_in_any_case() -> None:
    source = field("Source", record("Source", field("LSN", "long")))
    assert order(read(AFTER, OP, source, sequence_by=("source.lsn", "OP"))) == ["Source.LSN", "op"]


@pytest.mark.parametrize(
    "path", ["nothing", "source.nothing", "op.x", "source", "after.id.x", "", "amount", "uuid", "time"]
)
def test_sequence_by_takes_only_paths_that_have_an_order(path: str) -> None:
    decimal = field("amount", {"type": "bytes", "logicalType": "decimal", "precision": 4})
    uuid = field("uuid", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"})
    # MySQL's may be negative, and have more than two digits of hours.
    time = field("time", {"type": "long", "connect.name": "io.debezium.time.MicroTime"})
    source = field("source", record("S", field("lsn", "long")))
    with pytest.raises(SchemaError) as caught:
        read(AFTER, OP, source, decimal, uuid, time, sequence_by=(path,))
    assert caught.value.text() == (
        f"shop-value version 3: events cannot be ordered by {path}: `sequence_by` takes paths, from the event's "
        "root, of whole numbers, text, dates and timestamps. Correct `sequence_by:` of this table, or leave it out to "
        "have the order detected. At the root there are: after, op, source, amount, uuid, time."
    )


def test_a_version_of_the_past_is_ordered_by_those_of_the_paths_that_it_has() -> None:
    def paths(*sequence_by: str) -> list[str]:
        version = read(AFTER, OP, field("ts_ms", "long"), sequence_by=sequence_by, past=True)
        return [str(one) for one in version.envelope.ordering]

    assert (paths("rev", "op"), paths("source.rev")) == (["op"], ["ts_ms"])
    with pytest.raises(SchemaError, match="events cannot be ordered by after"):
        paths("after")


def test_a_configured_envelope_overrules_detection() -> None:
    version = read(AFTER, OP, envelope=EnvelopeKind.PLAIN)
    assert (names(version), version.envelope) == (["after", "op"], Envelope(kind=EnvelopeKind.PLAIN))


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        (EnvelopeKind.DEBEZIUM, "`op` and a record `after`"),
        (EnvelopeKind.FLAT, "`op` and `ts_ms`"),
        (EnvelopeKind.UNWRAPPED, "`__op` or `__deleted`"),
    ],
)
def test_a_configured_envelope_whose_fields_are_missing_is_refused(kind: EnvelopeKind, needs: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(field("id", "int"), envelope=kind)
    assert caught.value.text() == (
        f"shop-value version 3: the events are not wrapped as {kind.value}: that needs {needs} at the root, "
        "which has id. Correct `envelope:` of this table, or leave it out to have it detected."
    )
