from __future__ import annotations

import pytest
from hypothesis import given

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.core.written import avro_type, may_be_written_as, written_type
from tests.core.builders import BIGINT, BINARY, DATE, INT, MILLIS, STRING, dec, rec, union
from tests.strategies import encodings, leaves

P = Primitive
LOGICAL = Leaf(type=P.TIMESTAMP, meaning=Meaning.EPOCH_MICROS, name="timestamp-micros")
VARIABLE = Leaf(type=P.STRING, meaning=Meaning.VARIABLE_DECIMAL)
TINY = Leaf(type=P.TINYINT)
UUID = Leaf(type=P.STRING, meaning=Meaning.UUID_BYTES)
ZONED = Leaf(type=P.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP)


def struct(**fields: Type) -> Struct:
    return Struct(fields=tuple(StructField(name=n, type=t) for n, t in fields.items()))


PARTS = struct(scale=P.INT, value=P.BINARY)
ENTRIES = Array(element=struct(key=P.INT, value=P.STRING))


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (INT, P.INT),
        (TINY, P.INT),
        (Leaf(type=P.SMALLINT), P.INT),
        (MILLIS, P.BIGINT),
        (LOGICAL, P.TIMESTAMP),
        (DATE, P.DATE),
        (Leaf(type=P.DATE, meaning=Meaning.DAYS, name="io.debezium.time.Date"), P.INT),
        (Leaf(type=P.STRING, meaning=Meaning.TIME_NANOS, name="io.debezium.time.NanoTime"), P.BIGINT),
        (UUID, P.BINARY),
        (VARIABLE, PARTS),
        (dec(5, 2), Decimal(precision=21, scale=2)),
        (dec(30, 2), Decimal(precision=30, scale=2)),
        (dec(38, 38), Decimal(precision=38, scale=38)),
        (ListOf(element=MILLIS), Array(element=P.BIGINT)),
        (MapOf(key=STRING, value=TINY), Map(key=P.STRING, value=P.INT)),
        (MapOf(key=TINY, value=STRING, entries=True), ENTRIES),
        (rec(a=MILLIS, b=rec(c=INT)), struct(a=P.BIGINT, b=struct(c=P.INT))),
        (union(INT, STRING), struct(member0=P.INT, member1=P.STRING)),
    ],
)
def test_what_a_table_over_the_sinks_files_declares(encoding: Encoding, expected: Type) -> None:
    assert written_type(encoding) == expected


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        (TINY, P.TINYINT), (TINY, P.SMALLINT), (Leaf(type=P.SMALLINT), P.INT), (STRING, P.BINARY),
        (MILLIS, P.TIMESTAMP), (MILLIS, P.BIGINT), (DATE, P.DATE), (DATE, P.INT), (VARIABLE, PARTS),
        (dec(5, 2), Decimal(precision=5, scale=2)), (dec(38, 2), Decimal(precision=64, scale=2)),
        (MapOf(key=INT, value=STRING, entries=True), ENTRIES),
        (rec(a=INT, b=INT), struct(b=P.INT, a=P.INT)),
        (ZONED, P.STRING), (ZONED, P.BINARY),
    ],
)  # fmt: skip
def test_a_file_of_these_types_may_hold_it(encoding: Encoding, found: Type) -> None:
    assert may_be_written_as(encoding, found)


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        (INT, P.BIGINT), (BIGINT, P.INT), (BINARY, P.STRING), (MILLIS, P.INT), (VARIABLE, P.STRING), (UUID, P.STRING),
        (dec(5, 2), Decimal(precision=6, scale=2)), (dec(38, 2), Decimal(precision=64, scale=3)), (dec(5, 2), P.BINARY),
        (ListOf(element=INT), P.INT),
        (ListOf(element=INT), Array(element=P.STRING)),
        (MapOf(key=INT, value=STRING), ENTRIES), (MapOf(key=STRING, value=INT, entries=True), ENTRIES),
        (MapOf(key=INT, value=INT, entries=True), ENTRIES),
        (MapOf(key=STRING, value=INT), Map(key=P.STRING, value=P.STRING)),
        (rec(a=INT), struct(a=P.STRING)), (rec(a=INT), struct(a=P.INT, b=P.INT)), (rec(a=INT, b=INT), struct(a=P.INT)),
        (rec(a=INT), P.INT),
    ],
)  # fmt: skip
def test_a_file_of_these_types_cannot_hold_it(encoding: Encoding, found: Type) -> None:
    assert not may_be_written_as(encoding, found)


def _without_decimals(encoding: Encoding) -> bool:
    return "Decimal(" not in repr(encoding)


@given(encodings().filter(_without_decimals))
def test_what_is_declared_may_hold_it(encoding: Encoding) -> None:
    assert may_be_written_as(encoding, written_type(encoding))


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [(INT, P.INT), (TINY, P.INT), (dec(5, 2), P.BINARY), (BINARY, P.BINARY), (LOGICAL, P.BIGINT), (MILLIS, P.BIGINT),
     (DATE, P.INT), (VARIABLE, PARTS), (UUID, P.BINARY)],
)  # fmt: skip
def test_the_avro_type_does_not_depend_on_the_meaning(leaf: Leaf, expected: Type) -> None:
    assert avro_type(leaf) == expected


@given(leaves())
def test_every_leaf_has_an_avro_type(leaf: Leaf) -> None:
    assert avro_type(leaf) not in {P.DATE, P.TIMESTAMP}
