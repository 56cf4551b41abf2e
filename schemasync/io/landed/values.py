"""Decoding and reshaping values with Arrow: the inner loop of the small admission.

Executes what `schemasync.core.encoding` and `schemasync.core.reshape` say, array by array, decides nothing. Values
outside what a DATE or TIMESTAMP can show (years 1 to 9999) are brought to the nearest end: Debezium writes infinities
as the largest and smallest numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, assert_never
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from schemasync.core.defaults import clock_text, decimal_text
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.names import folded
from schemasync.core.reshape import Reshape, members
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, Type
from schemasync.errors import DataError

FIRST_DAY: Final = -719_162
"""0001-01-01, days since 1970."""
LAST_DAY: Final = 2_932_896
"""9999-12-31."""
_DAY_US: Final = 86_400_000_000
FIRST_US: Final = FIRST_DAY * _DAY_US
LAST_US: Final = (LAST_DAY + 1) * _DAY_US - 1

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

_PRIMITIVES: Final[dict[Primitive, pa.DataType]] = {
    Primitive.BOOLEAN: pa.bool_(),
    Primitive.TINYINT: pa.int8(),
    Primitive.SMALLINT: pa.int16(),
    Primitive.INT: pa.int32(),
    Primitive.BIGINT: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BINARY: pa.binary(),
    Primitive.DATE: pa.date32(),
    Primitive.TIMESTAMP: _TIMESTAMP,
}


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type whose Parquet every engine reads as ``type_``."""
    match type_:
        case Primitive():
            return _PRIMITIVES[type_]
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case Array(element=element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key=key, value=value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields=fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in fields])
        case _:  # pragma: no cover
            assert_never(type_)


def decode(values: pa.Array, encoding: Encoding) -> pa.Array:
    """Return written values as shown ones, of the encoding's shown type."""
    values = _unwrapped(values, encoding)
    match encoding:
        case Leaf():
            return _LEAVES[encoding.meaning](values, encoding)
        case ListOf(element=element):
            return _list(values, decode(values.values, element))
        case MapOf(key=key, value=value, entries=True):
            entries = values.values
            keys, items = pc.struct_field(entries, 0), pc.struct_field(entries, 1)
            return _map(values, decode(keys, key), decode(items, value))
        case MapOf(key=key, value=value):
            return _map(values, decode(values.keys, key), decode(values.items, value))
        case Record(members=members):
            parts = {m.name: decode(_member(values, m.name), m.encoding) for m in members}
            return _struct(values, parts)
        case _:  # pragma: no cover
            assert_never(encoding)


def _unwrapped(values: pa.Array, encoding: Encoding) -> pa.Array:
    """Take a value out of the group that parquet-avro writes for a union of one type, ``["T"]``."""
    is_group = pa.types.is_struct(values.type) and values.type.num_fields == 1
    if not is_group or values.type.field(0).name != "member0":
        return values
    if isinstance(encoding, Record) and any(m.name == "member0" for m in encoding.members):
        return values
    return pc.struct_field(values, "member0")


def reshape(values: pa.Array, shape: Reshape) -> pa.Array:
    """Return shown values as ones of ``shape.target``; the caller has made sure that nothing is lost."""
    if shape.is_identity:
        return values
    match shape.stored, shape.kept, shape.target:
        case Struct() as stored, Struct() as kept, Struct() as target:
            return _reshape_struct(values, stored, kept, target)
        case Array() as stored, Array() as kept, Array() as target:
            inner = Reshape(stored=stored.element, kept=kept.element, target=target.element)
            return _list(values, reshape(values.values, inner))
        case Map() as stored, Map() as kept, Map() as target:
            keys = Reshape(stored=stored.key, kept=kept.key, target=target.key)
            items = Reshape(stored=stored.value, kept=kept.value, target=target.value)
            return _map(values, reshape(values.keys, keys), reshape(values.items, items))
        case _:
            return values.cast(arrow_type(shape.target))


def _reshape_struct(values: pa.Array, stored: Struct, kept: Struct, target: Struct) -> pa.Array:
    found = members(stored, kept)
    parts: dict[str, pa.Array] = {}
    for field in target.fields:
        if (part := found.get(folded(field.name))) is None:
            parts[field.name] = pa.nulls(len(values), arrow_type(field.type))
        else:
            name, written, usable = part
            shape = Reshape(stored=written, kept=usable, target=field.type)
            parts[field.name] = reshape(_member(values, name), shape)
    return _struct(values, parts)


def _member(values: pa.Array, name: str) -> pa.Array:
    return pc.struct_field(values, name)


def _struct(values: pa.Array, parts: dict[str, pa.Array]) -> pa.Array:
    fields = [pa.field(name, part.type) for name, part in parts.items()]
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=values.is_null())


def _list(values: pa.Array, elements: pa.Array) -> pa.Array:
    type_ = pa.list_(pa.field("element", elements.type))
    return pa.ListArray.from_arrays(_offsets(values), elements, type=type_)


def _map(values: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(_offsets(values), keys, items)


def _offsets(values: pa.Array) -> pa.Array:
    """Return the offsets with nulls where the list is null: how Arrow's builders take validity."""
    valid = values.is_valid()
    ends = values.offsets
    last = pa.array([True])
    return pc.if_else(pa.concat_arrays([valid, last]), ends, pa.scalar(None, ends.type))


def _plain(values: pa.Array, leaf: Leaf) -> pa.Array:
    target = arrow_type(leaf.type)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(leaf.type, Decimal) and _is_bytes(values.type):
        numbers = [None if v is None else int.from_bytes(v, "big", signed=True) for v in values.to_pylist()]
        unscaled = pa.array(numbers, pa.decimal128(38, 0))
        return unscaled.view(pa.decimal128(38, leaf.type.scale)).cast(target)
    if pa.types.is_binary(target) and not pa.types.is_binary(values.type):
        return values.cast(pa.binary())
    return values.cast(target)


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_kind(type_) for is_kind in kinds)


def _days(values: pa.Array, _: Leaf) -> pa.Array:
    return _within(values.cast(pa.int32()), FIRST_DAY, LAST_DAY).cast(pa.date32())


def _millis(values: pa.Array, _: Leaf) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return _timestamps(values)
    bounded = _within(values, FIRST_US // 1000, LAST_US // 1000)
    return pc.multiply(bounded, 1000).cast(_TIMESTAMP)


def _micros(values: pa.Array, _: Leaf) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return _timestamps(values)
    return _within(values, FIRST_US, LAST_US).cast(_TIMESTAMP)


def _timestamps(values: pa.Array) -> pa.Array:
    micros = values.cast(pa.timestamp("us", tz=values.type.tz), safe=False).cast(pa.int64())
    return _within(micros, FIRST_US, LAST_US).cast(_TIMESTAMP)


def _within(values: pa.Array, lowest: int, highest: int) -> pa.Array:
    low, high = pa.scalar(lowest, values.type), pa.scalar(highest, values.type)
    # skip_nulls=False: a null stays null instead of becoming the bound.
    capped = pc.min_element_wise(values, high, skip_nulls=False)
    return pc.max_element_wise(capped, low, skip_nulls=False)


def _zoned(values: pa.Array, _: Leaf) -> pa.Array:
    try:
        micros = values.cast(_TIMESTAMP).cast(pa.int64())
    except pa.ArrowInvalid:
        micros = pa.array([None if v is None else zoned_micros(v) for v in values.to_pylist()], pa.int64())
    return _within(micros, FIRST_US, LAST_US).cast(_TIMESTAMP)


def zoned_micros(text: str) -> int:
    """Return an ISO 8601 timestamp with offset as us since the epoch; infinities and BC years as the nearest end.

    Near the ends an offset may lead out of the years 1 to 9999: the caller bounds what this returns.

    Raises:
        DataError: it is no such text.
    """
    if text in {"infinity", "+infinity", "Infinity"}:
        return LAST_US
    if text.startswith(("-", "0000-")):
        return FIRST_US
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if text.startswith("+"):
            return LAST_US
        raise DataError("a value is no timestamp", why=f"{text!r} is not ISO 8601") from None
    if moment.tzinfo is None:
        raise DataError("a value is no timestamp", why=f"{text!r} has no offset")
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _clock(digits: int) -> Callable[[pa.Array, Leaf], pa.Array]:
    def decode_clock(values: pa.Array, _: Leaf) -> pa.Array:
        counts = values.cast(pa.int32() if digits == 3 and values.type.bit_width == 32 else pa.int64())
        texts = [None if v is None else clock_text(v, digits=digits) for v in counts.to_pylist()]
        return pa.array(texts, pa.string())

    return decode_clock


def _variable_decimal(values: pa.Array, _: Leaf) -> pa.Array:
    texts = [
        None if v is None or v["value"] is None else decimal_text(v["scale"], v["value"]) for v in values.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _uuid(values: pa.Array, _: Leaf) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return pa.array([None if v is None else str(UUID(bytes=v)) for v in values.to_pylist()], pa.string())


_LEAVES: Final[dict[Meaning, Callable[[pa.Array, Leaf], pa.Array]]] = {
    Meaning.PLAIN: _plain,
    Meaning.DAYS: _days,
    Meaning.EPOCH_MILLIS: _millis,
    Meaning.EPOCH_MICROS: _micros,
    Meaning.ZONED_TIMESTAMP: _zoned,
    Meaning.TIME_MILLIS: _clock(3),
    Meaning.TIME_MICROS: _clock(6),
    Meaning.TIME_NANOS: _clock(9),
    Meaning.VARIABLE_DECIMAL: _variable_decimal,
    Meaning.UUID_BYTES: _uuid,
}


def constant(value: Any, type_: Type, length: int) -> pa.Array:
    """Return an array of one value; structs and maps come as dicts."""
    target = arrow_type(type_)
    if value is None:
        return pa.nulls(length, target)
    return pa.array([_for_arrow(value, type_)] * length, target)


def _for_arrow(value: Any, type_: Type) -> Any:
    match type_, value:
        case Map(value=inner), dict():
            return [(k, _for_arrow(v, inner)) for k, v in value.items()]
        case Array(element=element), list():
            return [_for_arrow(v, element) for v in value]
        case Struct(fields=fields), dict():
            return {f.name: _for_arrow(value[f.name], f.type) for f in fields}
        case _:
            return value
