"""How values are written, and what they mean: one table of cases, each with what Python says it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.types import Decimal, Primitive

P = Primitive


@dataclass(frozen=True, kw_only=True)
class Written:
    """A column of a landed file, and the values that the table must show."""

    name: str
    encoding: Encoding
    values: pa.Array
    shown: list[Any]


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


FIRST, LAST = at(1, 1, 1), at(9999, 12, 31, 23, 59, 59, 999999)
INT = Leaf(type=P.INT)
TEXT = Leaf(type=P.STRING)
MILLIS = Leaf(type=P.TIMESTAMP, meaning=Meaning.EPOCH_MILLIS)
MICROS = Leaf(type=P.TIMESTAMP, meaning=Meaning.EPOCH_MICROS)
ZONED = Leaf(type=P.TIMESTAMP, meaning=Meaning.ZONED_TIMESTAMP)
MOMENTS = [at(1970, 1, 1), at(1969, 12, 31, 23, 59, 59, 999000), None, at(2026, 11, 20, 1, 2, 3, 123000)]
MILLIS_OF = [0, -1, None, 1_795_136_523_123]


def leaf(type_: Primitive, meaning: Meaning) -> Leaf:
    return Leaf(type=type_, meaning=meaning)


def written(name: str, encoding: Encoding, values: pa.Array, shown: list[Any]) -> Written:
    assert len(values) == len(shown)
    return Written(name=name, encoding=encoding, values=values, shown=shown)


def _moments(type_: pa.DataType, factor: int = 1) -> pa.Array:
    return pa.array([None if v is None else v * factor for v in MILLIS_OF], pa.int64()).cast(type_)


_NUMBER = Decimal(precision=9, scale=2)
_WIDE = Decimal(precision=38, scale=10)
_CENTS = [Number("1.50"), Number("-0.01"), None, Number("9999999.99")]


_EXACT = Context(prec=60)


def _unscaled(numbers: list[Number | None], scale: int) -> list[bytes | None]:
    return [
        None if n is None else _bytes(int(str(n.quantize(Number(1).scaleb(-scale), context=_EXACT)).replace(".", "")))
        for n in numbers
    ]


def _bytes(number: int) -> bytes:
    return number.to_bytes(max(1, (number.bit_length() + 8) // 8), "big", signed=True)


_UUID = "0b8a3c9e-7a5f-4f0e-9d57-2f7cbb0e6a11"
_UUID_BYTES = bytes.fromhex(_UUID.replace("-", ""))
_PAIR = Record(members=(Member(name="x", encoding=INT), Member(name="y", encoding=MILLIS)))
_PAIR_TYPE = pa.struct([("x", pa.int32()), ("y", pa.int64())])
_UNION = Record(members=(Member(name="member0", encoding=INT), Member(name="member1", encoding=TEXT)), union=True)
_ENTRIES = MapOf(key=INT, value=MICROS, entries=True)

CASES: tuple[Written, ...] = (
    written("boolean", Leaf(type=P.BOOLEAN), pa.array([True, None, False]), [True, None, False]),
    written("tinyint", Leaf(type=P.TINYINT), pa.array([127, -128, None], pa.int32()), [127, -128, None]),
    written("smallint", Leaf(type=P.SMALLINT), pa.array([32767, None], pa.int16()), [32767, None]),
    written("int", INT, pa.array([2**31 - 1, -(2**31), None], pa.int32()), [2**31 - 1, -(2**31), None]),
    written("bigint", Leaf(type=P.BIGINT), pa.array([2**63 - 1, -(2**63)]), [2**63 - 1, -(2**63)]),
    written("float", Leaf(type=P.FLOAT), pa.array([0.5, math.inf, None], pa.float32()), [0.5, math.inf, None]),
    written(
        "double", Leaf(type=P.DOUBLE), pa.array([math.nan, -math.inf, -0.0, None]), [math.nan, -math.inf, -0.0, None]
    ),
    written("string", TEXT, pa.array(["", "né\n", None, "𝄞"]), ["", "né\n", None, "𝄞"]),
    written("string as bytes", TEXT, pa.array(["né".encode(), None]), ["né", None]),
    written("string in a dictionary", TEXT, pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    written("large string", TEXT, pa.array(["a", None], pa.large_string()), ["a", None]),
    written("binary", Leaf(type=P.BINARY), pa.array([b"", b"\x00\xff", None]), [b"", b"\x00\xff", None]),
    written("fixed", Leaf(type=P.BINARY), pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    written("decimal", Leaf(type=_NUMBER), pa.array(_CENTS, pa.decimal128(9, 2)), _CENTS),
    written("decimal as bytes", Leaf(type=_NUMBER), pa.array(_unscaled(_CENTS, 2), pa.binary()), _CENTS),
    written(
        "wide decimal as bytes",
        Leaf(type=_WIDE),
        pa.array(_unscaled([Number("-1234567890123456789012345678.0123456789"), None], 10), pa.binary()),
        [Number("-1234567890123456789012345678.0123456789"), None],
    ),
    written(
        "decimal as fixed",
        Leaf(type=_NUMBER),
        pa.array([(-150).to_bytes(4, "big", signed=True)], pa.binary(4)),
        [Number("-1.50")],
    ),
    written(
        "days",
        leaf(P.DATE, Meaning.DAYS),
        pa.array([0, -1, None, 2**31 - 1, -(2**31)], pa.int32()),
        [date(1970, 1, 1), date(1969, 12, 31), None, date(9999, 12, 31), date(1, 1, 1)],
    ),
    written(
        "days before Christ",
        leaf(P.DATE, Meaning.DAYS),
        pa.array([-719_163, -800_000], pa.int32()),
        [date(1, 1, 1)] * 2,
    ),
    written("dates", leaf(P.DATE, Meaning.DAYS), pa.array([date(2026, 11, 20), None]), [date(2026, 11, 20), None]),
    written(
        "dates beyond the calendar",
        leaf(P.DATE, Meaning.DAYS),
        pa.array([2_932_897, 2**31 - 1, -719_163, -(2**31), None], pa.int32()).cast(pa.date32()),
        [date(9999, 12, 31), date(9999, 12, 31), date(1, 1, 1), date(1, 1, 1), None],
    ),
    written("millis", MILLIS, pa.array(MILLIS_OF, pa.int64()), MOMENTS),
    written(
        "millis at the ends",
        MILLIS,
        pa.array([2**63 - 1, -(2**63), 253_402_300_800_000]),
        [LAST.replace(microsecond=999000), FIRST, LAST.replace(microsecond=999000)],
    ),
    written("millis as timestamps", MILLIS, _moments(pa.timestamp("ms", tz="UTC")), MOMENTS),
    written("millis as local timestamps", MILLIS, _moments(pa.timestamp("ms")), MOMENTS),
    written("micros", MICROS, _moments(pa.int64(), 1000), MOMENTS),
    written(
        "micros at the ends",
        MICROS,
        # PostgreSQL's infinity as Debezium's connector writes it, and the ends of a long.
        pa.array([9_223_371_331_200_000_000, -9_223_372_022_400_000_000, 2**63 - 1, -(2**63)]),
        [LAST, FIRST, LAST, FIRST],
    ),
    written("micros as timestamps", MICROS, _moments(pa.timestamp("us", tz="UTC"), 1000), MOMENTS),
    written("micros as nanosecond timestamps", MICROS, _moments(pa.timestamp("ns", tz="UTC"), 1_000_000), MOMENTS),
    written(
        "zoned",
        ZONED,
        pa.array(["1970-01-01T00:00:00Z", "2026-11-20T06:32:03.123456+05:30", None, "2026-11-20T01:02:03.123456789Z"]),
        [at(1970, 1, 1), at(2026, 11, 20, 1, 2, 3, 123456), None, at(2026, 11, 20, 1, 2, 3, 123456)],
    ),
    *(
        written(
            f"zoned as {type_}",
            ZONED,
            pa.array(["2026-11-20T01:02:03Z", None, "infinity"]).cast(type_),
            [at(2026, 11, 20, 1, 2, 3), None, LAST],
        )
        for type_ in (pa.binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
    ),
    written(
        "zoned at the ends",
        ZONED,
        pa.array(
            ["infinity", "-infinity", "-0044-03-15T00:00:00Z", "+10000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
        ),
        [LAST, FIRST, FIRST, LAST, LAST],
    ),
    written(
        "zoned over the ends",
        ZONED,
        pa.array(["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"]),
        [LAST, FIRST],
    ),
    written(
        "time millis",
        leaf(P.STRING, Meaning.TIME_MILLIS),
        pa.array([0, 86_399_999, None], pa.int32()),
        ["00:00:00.000", "23:59:59.999", None],
    ),
    written(
        "time millis as times",
        leaf(P.STRING, Meaning.TIME_MILLIS),
        pa.array([3_723_004], pa.time32("ms")),
        ["01:02:03.004"],
    ),
    written(
        "time micros",
        leaf(P.STRING, Meaning.TIME_MICROS),
        pa.array([0, 86_400_000_000, None], pa.int64()),
        ["00:00:00.000000", "24:00:00.000000", None],
    ),
    written(
        "time micros as times", leaf(P.STRING, Meaning.TIME_MICROS), pa.array([1], pa.time64("us")), ["00:00:00.000001"]
    ),
    written(
        "time micros beyond what nanoseconds hold",
        leaf(P.STRING, Meaning.TIME_MICROS),
        pa.array([9_300_000_000_000_000], pa.time64("us")),
        ["2583333:20:00.000000"],
    ),
    written(
        "time millis as times of microseconds",
        leaf(P.STRING, Meaning.TIME_MILLIS),
        pa.array([3_723_004_000, None], pa.time64("us")),
        ["01:02:03.004", None],
    ),
    written(
        "time micros as times of nanoseconds",
        leaf(P.STRING, Meaning.TIME_MICROS),
        pa.array([3_723_000_004_000, None], pa.time64("ns")),
        ["01:02:03.000004", None],
    ),
    written(
        "time nanos as times of microseconds",
        leaf(P.STRING, Meaning.TIME_NANOS),
        pa.array([3_723_000_004], pa.time64("us")),
        ["01:02:03.000004000"],
    ),
    written(
        "time micros as a while of nanoseconds",
        leaf(P.STRING, Meaning.TIME_MICROS),
        pa.array([-1_000, 3_723_000_004_000], pa.duration("ns")),
        ["-00:00:00.000001", "01:02:03.000004"],
    ),
    written(
        "time nanos", leaf(P.STRING, Meaning.TIME_NANOS), pa.array([1, None], pa.int64()), ["00:00:00.000000001", None]
    ),
    written(
        "variable decimal",
        leaf(P.STRING, Meaning.VARIABLE_DECIMAL),
        pa.array(
            [{"scale": 2, "value": _bytes(-123)}, {"scale": 0, "value": _bytes(10**40)}, None],
            pa.struct([("scale", pa.int32()), ("value", pa.binary())]),
        ),
        ["-1.23", str(10**40), None],
    ),
    written(
        "uuid as parquet has it",
        leaf(P.STRING, Meaning.PLAIN),
        pa.array([_UUID_BYTES, None], pa.binary(16)),
        [_UUID, None],
    ),
    written("uuid", leaf(P.STRING, Meaning.UUID_BYTES), pa.array([_UUID_BYTES, None], pa.binary(16)), [_UUID, None]),
    written("list", ListOf(element=INT), pa.array([[1, None], [], None]), [[1, None], [], None]),
    written(
        "list of one length",
        ListOf(element=INT),
        pa.array([[1, None], None, [2, 3]], pa.list_(pa.int32(), 2)),
        [[1, None], None, [2, 3]],
    ),
    written(
        "large list",
        ListOf(element=INT),
        pa.array([[1, None], [], None, [2]], pa.large_list(pa.int32())),
        [[1, None], [], None, [2]],
    ),
    written(
        "list of moments in structs",
        ListOf(element=_PAIR),
        pa.array([[{"x": 1, "y": 0}, None], None, [{"x": None, "y": None}]], pa.list_(_PAIR_TYPE)),
        [[{"x": 1, "y": at(1970, 1, 1)}, None], None, [{"x": None, "y": None}]],
    ),
    written(
        "list of lists",
        ListOf(element=ListOf(element=MILLIS)),
        pa.array([[[0], None, []], None], pa.list_(pa.list_(pa.int64()))),
        [[[at(1970, 1, 1)], None, []], None],
    ),
    written(
        "map",
        MapOf(key=TEXT, value=_PAIR),
        pa.array([[("a", {"x": 1, "y": 0}), ("b", None)], [], None], pa.map_(pa.string(), _PAIR_TYPE)),
        [[("a", {"x": 1, "y": at(1970, 1, 1)}), ("b", None)], [], None],
    ),
    written(
        "map as entries",
        _ENTRIES,
        pa.array(
            [[{"key": 7, "value": 0}], [], None], pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
        ),
        [[(7, at(1970, 1, 1))], [], None],
    ),
    written("struct", _PAIR, pa.array([{"x": 1, "y": 0}, None], _PAIR_TYPE), [{"x": 1, "y": at(1970, 1, 1)}, None]),
    written(
        "union",
        _UNION,
        pa.array(
            [{"member0": 1, "member1": None}, {"member0": None, "member1": "a"}, None],
            pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
        ),
        [{"member0": 1, "member1": None}, {"member0": None, "member1": "a"}, None],
    ),
    written("union of one", INT, pa.array([{"member0": 1}, None], pa.struct([("member0", pa.int32())])), [1, None]),
)
"""Among them the two traps of every reader: bytes that are decimals, and numbers whose unit only the schema knows."""
