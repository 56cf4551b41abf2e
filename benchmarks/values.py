"""The benchmark's table: its columns, and what stands in them.

Every value is a hash of the row's number or of the event's offset, so the same numbers give the same values on every
machine, whatever else is generated. Arrow computes whole columns; there is no random state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

Key = Literal["bigint", "uuid"]

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MICROS: Final = 1_000_000
_START_S: Final = 1_600_000_000
"""No timestamp of a row is earlier, seconds since 1970 UTC."""
_START_DAY: Final = _START_S // 86_400


def count_up(start: int, count: int) -> pa.Array:
    """Return ``start, start + 1, ...`` as uint64."""
    steps = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.uint64()), count))
    return pc.add(steps, _whole(start - 1)) if start else pc.subtract(steps, _whole(1))


def noise(numbers: pa.Array, salt: int) -> pa.Array:
    """Return a hash (splitmix64) of every number, uint64; another salt gives an independent one."""
    mixed = pc.multiply(pc.add(numbers, _whole(salt * 0x632BE59BD9B4E019)), _whole(0x9E3779B97F4A7C15))
    mixed = pc.multiply(_folded(mixed, 30), _whole(0xBF58476D1CE4E5B9))
    mixed = pc.multiply(_folded(mixed, 27), _whole(0x94D049BB133111EB))
    return _folded(mixed, 31)


def below(hashes: pa.Array, limit: int) -> pa.Array:
    """Return hashes as int64 from 0 to below ``limit``."""
    rest = pc.subtract(hashes, pc.multiply(pc.divide(hashes, _whole(limit)), _whole(limit)))
    return rest.cast(pa.int64())


def _folded(numbers: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_xor(numbers, pc.shift_right(numbers, _whole(bits)))


def _whole(number: int) -> pa.Scalar:
    return pa.scalar(number % 2**64, pa.uint64())


_HEX: Final = pa.array([f"{number:04x}" for number in range(65_536)])
_SYLLABLES: Final = pa.array([a + b + c for a, b, c in product("bdfklmnprstvz", "aeiou", ("", "l", "n", "r", "s"))])
_CITIES: Final = pa.array([f"{a}{b}{c}" for a, b, c in product(("Nor", "Sud", "Ober"), "aeiou", ("burg", "ton", "au"))])
_STATES: Final = pa.array(["new", "paid", "packed", "sent", "delivered", "returned", "cancelled", "lost"])
_WORDS: Final = pa.array(["red", "green", "blue", "large", "small", "fast", "fragile", "spare", "broken", "gift"])


def uuids(rows: pa.Array) -> pa.Array:
    """Return a random-looking uuid for every row, as text; its order has nothing to do with the rows'."""
    groups = [_quarter(noise(rows, salt), shift) for salt in (91, 92) for shift in (48, 32, 16, 0)]
    ends = [pc.binary_join_element_wise(a, b, "") for a, b in ((groups[0], groups[1]), (groups[6], groups[7]))]
    last = pc.binary_join_element_wise(groups[5], ends[1], "")
    return pc.binary_join_element_wise(ends[0], groups[2], groups[3], groups[4], last, "-")


def _quarter(hashes: pa.Array, shift: int) -> pa.Array:
    return _HEX.take(pc.bit_wise_and(pc.shift_right(hashes, _whole(shift)), _whole(0xFFFF)))


def _picked(words: pa.Array) -> Callable[[pa.Array], pa.Array]:
    return lambda hashes: words.take(below(hashes, len(words)))


def _integer(limit: int, type_: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda hashes: below(hashes, limit).cast(type_)


_CENT: Final = pa.scalar(Decimal("0.01"), pa.decimal128(3, 2))


def _decimal(limit: int, precision: int) -> Callable[[pa.Array], pa.Array]:
    def build(hashes: pa.Array) -> pa.Array:
        cents = below(hashes, limit * 100).cast(pa.int32()).cast(pa.decimal128(10, 0))
        return pc.multiply(cents, _CENT).cast(pa.decimal128(precision, 2))

    return build


def _double(limit: int) -> Callable[[pa.Array], pa.Array]:
    return lambda hashes: pc.divide(below(hashes, limit).cast(pa.float64()), 1000.0)


def _name(hashes: pa.Array) -> pa.Array:
    parts = [_picked(_SYLLABLES)(noise(hashes, salt)) for salt in (1, 2, 3)]
    family = pc.binary_join_element_wise(parts[1], parts[2], "")
    return pc.binary_join_element_wise(pc.utf8_capitalize(parts[0]), pc.utf8_capitalize(family), " ")


def _email(hashes: pa.Array) -> pa.Array:
    number = below(hashes, 10_000_000).cast(pa.string())
    user = pc.binary_join_element_wise(_picked(_SYLLABLES)(hashes), number, ".")
    return pc.binary_join_element_wise(user, "example.org", "@")


def _note(hashes: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*[_picked(_WORDS)(noise(hashes, salt)) for salt in range(1, 6)], " ")


def _date(hashes: pa.Array) -> pa.Array:
    return pc.add(below(hashes, 2000), _START_DAY).cast(pa.int32()).cast(pa.date32())


def _timestamp(hashes: pa.Array) -> pa.Array:
    return pc.add(below(hashes, 150_000_000 * _MICROS), _START_S * _MICROS).cast(TIMESTAMP)


def _sometimes_null(build: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    def built(hashes: pa.Array) -> pa.Array:
        values = build(hashes)
        return pc.if_else(pc.equal(below(noise(hashes, 7), 5), 0), pa.scalar(None, values.type), values)

    return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column beside the key. ``avro`` is its type in the registry; a ``lasting`` one never changes in a row."""

    name: str
    avro: Any
    build: Callable[[pa.Array], pa.Array]
    lasting: bool = False
    nullable: bool = False


def _avro(type_: str, logical: str, **more: int) -> dict[str, Any]:
    return {"type": type_, "logicalType": logical, **more}


_PRICE: Final = _avro("bytes", "decimal", precision=12, scale=2)
_DATE: Final = _avro("int", "date")
_INSTANT: Final = _avro("long", "timestamp-micros")

COLUMNS: Final = (
    Column(name="customer_id", avro="long", build=_integer(200_000, pa.int64()), lasting=True),
    Column(name="product_id", avro="int", build=_integer(10_000, pa.int32()), lasting=True),
    Column(name="store_id", avro="int", build=_integer(300, pa.int32()), lasting=True),
    Column(name="quantity", avro="int", build=_integer(50, pa.int32())),
    Column(name="status", avro="string", build=_picked(_STATES)),
    Column(name="price", avro=_PRICE, build=_decimal(100_000, 12)),
    Column(name="discount", avro=_avro("bytes", "decimal", precision=5, scale=2), build=_decimal(100, 5)),
    Column(name="tax", avro=_PRICE, build=_decimal(20_000, 12)),
    Column(name="amount", avro="double", build=_double(10_000_000)),
    Column(name="score", avro="double", build=_double(100_000)),
    Column(name="weight", avro="double", build=_sometimes_null(_double(1_000_000)), nullable=True),
    Column(name="name", avro="string", build=_name, lasting=True),
    Column(name="email", avro="string", build=_email, lasting=True),
    Column(name="city", avro="string", build=_picked(_CITIES)),
    Column(name="note", avro="string", build=_sometimes_null(_note), nullable=True),
    Column(name="order_date", avro=_DATE, build=_date, lasting=True),
    Column(name="due_date", avro=_DATE, build=_sometimes_null(_date), nullable=True),
    Column(name="created_at", avro=_INSTANT, build=_timestamp, lasting=True),
    Column(name="updated_at", avro=_INSTANT, build=_timestamp),
)
"""Nineteen columns beside the key, which is called ``id``."""

NAMES: Final = ("id", *(column.name for column in COLUMNS))
"""The row's columns, in order."""
ENVELOPE: Final = ("op", "ts_ms", "kafka_offset")
"""What stands beside them in a landed event."""


def key_of(rows: pa.Array, key: Key) -> pa.Array:
    """Return the key of every row number."""
    return rows.cast(pa.int64()) if key == "bigint" else uuids(rows)


def columns_of(rows: pa.Array, offsets: pa.Array, key: Key) -> dict[str, pa.Array]:
    """Return the row's columns for events: lasting ones go by the row's number, the others by the event's offset."""
    found = {"id": key_of(rows, key)}
    for salt, column in enumerate(COLUMNS, start=11):
        found[column.name] = column.build(noise(rows if column.lasting else offsets, salt))
    return found


def avro_schema(key: Key) -> dict[str, Any]:
    """Return the value's schema in the registry: a flat envelope, as Debezium's unwrapping transform leaves it."""
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long" if key == "bigint" else "string"}]
    fields += [{"name": c.name, "type": ["null", c.avro] if c.nullable else c.avro} for c in COLUMNS]
    fields += [{"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}]
    fields += [{"name": "kafka_offset", "type": "long"}]
    return {"type": "record", "name": "Value", "namespace": "bench.public.orders", "fields": fields}
