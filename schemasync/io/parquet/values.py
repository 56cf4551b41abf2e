"""Decoding and reshaping values with Arrow: the inner loop of the small admission.

Executes what `schemasync.core.encoding`, `schemasync.core.reshape` and `schemasync.core.beyond` say, array by array,
decides nothing. Values beyond their type are replaced and noted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as Number
from typing import Any, Final, assert_never
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from schemasync.core.beyond import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US, Shown, zoned_micros
from schemasync.core.conversion import FLOATS, MOST_EXACT, keeps_all, notation, single_text
from schemasync.core.defaults import clock_text, decimal_text
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.names import Dialect
from schemasync.core.reshape import Convert, Elements, Entries, Field, Fields, Keep, Reshape, target_of
from schemasync.core.type_strings import print_type
from schemasync.core.types import MAX_PRECISION, Array, Decimal, Map, Primitive, Struct, Type
from schemasync.errors import DataError

_EXACT: Final = Context(prec=2 * MAX_PRECISION)

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


@dataclasses.dataclass(slots=True)
class Losses:
    """What was beyond its type while one column was decoded: how many values, and the first as it was written."""

    found: dict[Shown, tuple[int, str]] = dataclasses.field(default_factory=dict)
    cut: str = ""
    """The first value of more digits than its type has, which shows without them: only a key may not."""

    @property
    def unheld(self) -> str:
        """Say of a value that shows otherwise than it was written, what is wrong with it; empty where there is none."""
        beyond = next((f"{sample} is beyond its type" for _, sample in self.found.values()), "")
        return beyond or (self.cut and f"{self.cut} has more digits than its type")

    def note(self, written: Sequence[Any] | pa.Array, beyond: pa.Array, shown: Shown) -> None:
        """Count the values that the mask ``beyond`` (null where the value is) marks."""
        count = beyond.true_count
        if count:
            sample = str(written[pc.index(beyond, pa.scalar(True)).as_py()])[:80]
            before, first = self.found.get(shown, (0, sample))
            self.found[shown] = before + count, first

    def note_cut(self, written: pa.Array, cut: pa.Array) -> None:
        """Remember the first value that the mask ``cut`` (null where the value is) marks."""
        if not self.cut and cut.true_count:
            self.cut = str(written[pc.index(cut, pa.scalar(True)).as_py()])[:80]


def decode(values: pa.Array, encoding: Encoding, losses: Losses) -> pa.Array:
    """Return written values as shown ones, of the encoding's shown type."""
    values = _unwrapped(values, encoding)
    match encoding:
        case Leaf():
            return _LEAVES[encoding.meaning](values, encoding, losses)
        case ListOf(element=element):
            lists = _as_lists(values)
            return _list(lists, decode(lists.values, element, losses))
        case MapOf(key=key, value=value):
            # Of a map, or of a list of pairs: some write the one for the other.
            entries = values.values
            keys, items = pc.struct_field(entries, 0), pc.struct_field(entries, 1)
            return _map(values, decode(keys, key, losses), decode(items, value, losses))
        case Record(members=members):
            parts = {m.name: decode(pc.struct_field(values, m.name), m.encoding, losses) for m in members}
            return _struct(values, parts)
        case _:  # pragma: no cover
            assert_never(encoding)


def _as_lists(values: pa.Array) -> pa.Array:
    """Return lists of one length, or views, as others are. A cast takes wrong values of views (Arrow 26)."""
    return values if isinstance(values, pa.ListArray | pa.LargeListArray) else _bare(values)


def _bare(values: pa.Array) -> pa.Array:
    """Return lists of any kind, or maps as lists of pairs, without the elements of those that are null."""
    lists = values.cast(pa.list_(values.values.type)) if isinstance(values, pa.MapArray) else values
    lengths = pc.fill_null(pc.list_value_length(lists).cast(pa.int32()), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    type_ = pa.list_(lists.type.value_field)
    return pa.ListArray.from_arrays(offsets, lists.flatten(), type=type_, mask=lists.is_null())


def _unwrapped(values: pa.Array, encoding: Encoding) -> pa.Array:
    """Take a value out of the group that parquet-avro writes for a union of one type, ``["T"]``."""
    is_group = pa.types.is_struct(values.type) and values.type.num_fields == 1
    if not is_group or values.type.field(0).name != "member0":
        return values
    if isinstance(encoding, Record) and any(m.name == "member0" for m in encoding.members):
        return values
    return pc.struct_field(values, "member0")


def reshape(values: pa.Array, shape: Reshape) -> pa.Array:
    """Return shown values in their new form.

    Raises:
        DataError: one does not fit its new type.
    """
    match shape:
        case Keep():
            return values
        case Convert(stored=stored, target=target):
            return convert(values, stored, target)
        case Fields(fields=fields, lost=lost):
            for name in lost:
                _none(pc.struct_field(values, name), target_of(shape))
            return _struct(values, {f.name: _field(values, f) for f in fields})
        case Elements(element=element):
            return _list(values, reshape(values.values, element))
        case Entries(key=key, value=value):
            return _map(values, reshape(values.keys, key), reshape(values.items, value))
        case _:  # pragma: no cover
            assert_never(shape)


def _field(values: pa.Array, field: Field) -> pa.Array:
    if field.source is None:
        return pa.nulls(len(values), arrow_type(target_of(field.shape)))
    return reshape(pc.struct_field(values, field.source), field.shape)


def convert(values: pa.Array, stored: Type, target: Type) -> pa.Array:
    """Return values of another type, each of them the same.

    Raises:
        DataError: one is not of the notation that is converted, or would be rounded, cut or out of range.
    """
    try:
        if stored is Primitive.STRING:
            _only(pc.match_substring_regex(values, notation(target)), values, target)
            if isinstance(target, Decimal):
                # Arrow (26.0.1) shows another number where one has too many digits before its point.
                whole = rf"^-?0*[0-9]{{0,{target.precision - target.scale}}}(\.|\z)"
                _only(pc.match_substring_regex(values, whole), values, target)
        found = _cast(values, arrow_type(target))
        if stored is Primitive.STRING and pa.types.is_floating(found.type):
            _only(pc.is_finite(found), values, target)
        if not keeps_all(stored, target) and stored is not Primitive.STRING:
            _only(_alike(_cast(found, values.type, safe=False), values), values, target)
        if stored in FLOATS and isinstance(target, Decimal):
            _only(pc.less(pc.abs(values), float(MOST_EXACT)), values, target)
        if stored is Primitive.FLOAT and isinstance(target, Decimal):
            # Spark takes the shortest text of the double that it is, Hive and Trino that of itself.
            _only(_alike(_shortest(values, found.type, single_text), found), values, target)
    except pa.ArrowInvalid as error:
        raise _misfit(values, target, str(error).splitlines()[0]) from error
    return found


def _cast(values: pa.Array, target: pa.DataType, *, safe: bool = True) -> pa.Array:
    if pa.types.is_integer(values.type) and pa.types.is_decimal(target):
        # By itself Arrow refuses where the largest number of the type would not fit, whatever the values are.
        values = values.cast(_anything(target.scale))
    if pa.types.is_integer(values.type) and pa.types.is_floating(target):
        # By itself Arrow refuses all numbers from where some are not exact. One that is rounded to above its type
        # becomes NaN: what casting such a number back gives depends on the processor.
        found = values.cast(target, safe=False)
        beyond = pc.greater_equal(found, pa.scalar(float(1 << (values.type.bit_width - 1)), target))
        return pc.if_else(beyond, pa.scalar(float("nan"), target), found)
    if pa.types.is_decimal(values.type) and pa.types.is_floating(target):
        # By itself Arrow divides, and what it gives is not always the nearest: 0.35 becomes 0.35000000000000003.
        values = values.cast(pa.string())
    if pa.types.is_floating(values.type) and pa.types.is_decimal(target):
        return _shortest(values, target)
    return values.cast(target, safe=safe)


def _shortest(values: pa.Array, target: pa.DataType, text: Callable[[float], str] = repr) -> pa.Array:
    """Return floating numbers as decimals by their shortest texts, as Spark does; Arrow takes their exact values."""
    coded = values.cast(pa.float64()).dictionary_encode()
    unit, context = Number(1).scaleb(-target.scale), Context(prec=MAX_PRECISION, rounding=ROUND_HALF_UP)
    try:
        numbers = [Number(text(value)).quantize(unit, context=context) for value in coded.dictionary.to_pylist()]
        return pa.array(numbers, target).take(coded.indices)
    except ArithmeticError as error:
        # What has no digits, or too many of them.
        raise pa.ArrowInvalid(f"a number does not fit {target}") from error


def _alike(one: pa.Array, other: pa.Array) -> pa.Array:
    same = pc.equal(one, other)
    return pc.or_(same, pc.and_(pc.is_nan(one), pc.is_nan(other))) if pa.types.is_floating(other.type) else same


def _only(fits: pa.Array, values: pa.Array, target: Type) -> None:
    wrong = values.filter(pc.invert(pc.fill_null(fits, True)))
    if len(wrong):
        raise _misfit(wrong, target, "for example " + ", ".join(repr(v) for v in wrong[:3].to_pylist()))


def _none(values: pa.Array, target: Type) -> None:
    """Refuse values of a branch that a union no longer has."""
    if len(there := values.drop_null()):
        raise _misfit(there, target, f"a union's branch is gone, for example of {there[0].as_py()!r}")


def _misfit(values: pa.Array, target: Type, why: str) -> DataError:
    return DataError(
        f"{len(values)} values do not fit {print_type(target, Dialect.SPARK)}",
        why=why,
        fix="The column was retyped; the file is of a version before, and its values cannot follow.",
    )


def rebuilt(values: pa.Array, leaf: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return values of which ``leaf`` made others where they have no members; nothing stays below a null.

    What is made null by a mask has its elements still, which whatever is rebuilt by its offsets gave to others.
    """
    match values:
        case pa.StructArray():
            return _struct(
                values, {f.name: rebuilt(part, leaf) for f, part in zip(values.type, values.flatten(), strict=True)}
            )
        case pa.MapArray():
            lists = _bare(values)
            keys, items = lists.values.flatten()
            return _map(lists, rebuilt(keys, leaf), rebuilt(items, leaf))
        case pa.ListArray() | pa.LargeListArray():
            lists = _bare(values)
            return _list(lists, rebuilt(lists.values, leaf))
        case _:
            return leaf(values)


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


def _plain(values: pa.Array, leaf: Leaf, losses: Losses) -> pa.Array:
    target = arrow_type(leaf.type)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(leaf.type, Decimal):
        return _decimals(values, leaf.type, losses)
    if pa.types.is_integer(target) and values.type.bit_width > target.bit_width:
        bound = 1 << (target.bit_width - 1)
        return _or_null(values, -bound, bound - 1, losses).cast(target)
    if pa.types.is_binary(target) and not pa.types.is_binary(values.type):
        return values.cast(pa.binary())
    if pa.types.is_string(target) and values.type == _UUID_BYTES:
        # Parquet's own form of a UUID, which newer writers give a string that Avro calls one.
        return _uuid(values, leaf, losses)
    return values.cast(target)


_UUID_BYTES: Final = pa.binary(16)


def _decimals(values: pa.Array, type_: Decimal, losses: Losses) -> pa.Array:
    if _is_bytes(values.type):
        return _from_bytes(values, type_, losses)
    # A writer may declare fewer digits than it writes, and Arrow takes its word for it.
    highest = Number(10**type_.precision - 1).scaleb(-type_.scale, _EXACT)
    lowest = highest.copy_negate()  # a minus would round to 28 digits
    as_written = pa.types.is_decimal128(values.type) and values.type.scale == type_.scale
    # 128 bits hold any number of the same scale, and are compared in a third of the time.
    wide = pa.decimal128(MAX_PRECISION, type_.scale) if as_written else _anything(type_.scale)
    return _or_null(values.cast(wide), lowest, highest, losses).cast(arrow_type(type_))


def _anything(scale: int) -> pa.DataType:
    return pa.decimal256(76, scale)


def _from_bytes(values: pa.Array, type_: Decimal, losses: Losses) -> pa.Array:
    numbers = [None if v is None else int.from_bytes(v, "big", signed=True) for v in values.to_pylist()]
    beyond = [n is not None and abs(n) >= 10**type_.precision for n in numbers]
    losses.note(numbers, pa.array(beyond, pa.bool_()), Shown.NULL)
    kept = (None if is_beyond else n for n, is_beyond in zip(numbers, beyond, strict=True))
    unscaled = pa.array(kept, pa.decimal128(MAX_PRECISION, 0))
    return unscaled.view(pa.decimal128(MAX_PRECISION, type_.scale)).cast(arrow_type(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_kind(type_) for is_kind in kinds)


def _outside(values: pa.Array, lowest: Any, highest: Any) -> pa.Array:
    low, high = pa.scalar(lowest, values.type), pa.scalar(highest, values.type)
    return pc.or_(pc.less(values, low), pc.greater(values, high))


def _or_null(values: pa.Array, lowest: Any, highest: Any, losses: Losses) -> pa.Array:
    beyond = _outside(values, lowest, highest)
    losses.note(values, beyond, Shown.NULL)
    return pc.if_else(beyond, pa.scalar(None, values.type), values) if beyond.true_count else values


def _days(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
    days = values.cast(pa.int32())
    return _within(days, FIRST_DAY, LAST_DAY, days, losses).cast(pa.date32())


def _millis(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return _timestamps(values, losses)
    return _instants(values, 1000, values, losses)


def _micros(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return _timestamps(values, losses)
    return _instants(values, 1, values, losses)


_MICROS_PER: Final[dict[str, int]] = {"s": 1_000_000, "ms": 1000, "us": 1}


def _timestamps(values: pa.Array, losses: Losses) -> pa.Array:
    counts = values.cast(pa.int64())
    if values.type.unit == "ns":
        return _instants(_cut(counts, 1000, losses), 1, counts, losses)
    return _instants(counts, _MICROS_PER[values.type.unit], counts, losses)


def _cut(counts: pa.Array, by: int, losses: Losses) -> pa.Array:
    """Return counts of a unit as those of one that is so many times as long."""
    found = pc.divide(counts, by)
    losses.note_cut(counts, pc.not_equal(pc.multiply(found, by), counts))
    return found


def _instants(counts: pa.Array, micros: int, written: pa.Array, losses: Losses) -> pa.Array:
    """Return counts of so many microseconds as timestamps; bounded before they are multiplied, which may overflow."""
    bounded = _within(counts, -(-FIRST_US // micros), LAST_US // micros, written, losses)
    return pc.multiply(bounded, micros).cast(_TIMESTAMP)


def _within(values: pa.Array, lowest: int, highest: int, written: pa.Array, losses: Losses) -> pa.Array:
    beyond = _outside(values, lowest, highest)
    if not beyond.true_count:
        return values
    losses.note(written, beyond, Shown.NEAREST)
    low, high = pa.scalar(lowest, values.type), pa.scalar(highest, values.type)
    # skip_nulls=False: a null stays null instead of becoming the bound.
    capped = pc.min_element_wise(values, high, skip_nulls=False)
    return pc.max_element_wise(capped, low, skip_nulls=False)


_FINER: Final = "[.,][0-9]{6}0*[1-9]"
"""In an ISO 8601 timestamp: not of whole microseconds."""


def _zoned(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return _timestamps(values, losses)
    # Whatever holds the texts: bytes, views, a dictionary.
    try:
        values = values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise DataError("a value is no timestamp", why=str(error)) from error
    try:
        micros = values.cast(_TIMESTAMP).cast(pa.int64())
    except pa.ArrowInvalid:
        # Arrow takes no text of more than six digits behind the point.
        losses.note_cut(values, pc.match_substring_regex(values, _FINER))
        micros = pa.array(map(_zoned_micros, values.to_pylist()), pa.int64())
    return _instants(micros, 1, values, losses)


def _zoned_micros(text: str | None) -> int | None:
    try:
        return None if text is None else zoned_micros(text)
    except ValueError as error:
        raise DataError("a value is no timestamp", why=str(error)) from error


def _clock(digits: int) -> Callable[[pa.Array, Leaf, Losses], pa.Array]:
    def decode_clock(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
        ticks = _ticks(values, digits, losses).to_pylist()
        return pa.array([None if v is None else clock_text(v, digits=digits) for v in ticks], pa.string())

    return decode_clock


DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Of Arrow's units, behind the second's point."""


def _ticks(values: pa.Array, digits: int, losses: Losses) -> pa.Array:
    """Return times as counts of so many digits behind the second's point, whatever a writer counts them by."""
    counts = values.cast(pa.int32() if pa.types.is_time32(values.type) else pa.int64()).cast(pa.int64())
    if not (pa.types.is_time(values.type) or pa.types.is_duration(values.type)):
        return counts
    # Some have one unit only: Polars nanoseconds, DuckDB microseconds.
    more = DIGITS[values.type.unit] - digits
    return _cut(counts, 10**more, losses) if more > 0 else pc.multiply(counts, 10**-more)


def _variable_decimal(values: pa.Array, _: Leaf, losses: Losses) -> pa.Array:
    written = values.to_pylist()
    texts = [_decimal_text(v) for v in written]
    scales = [v and f"scale {v['scale']}" for v in written]
    losses.note(scales, pa.array([text == "" for text in texts], pa.bool_()), Shown.NULL)
    return pa.array([text or None for text in texts], pa.string())


def _decimal_text(value: dict[str, Any] | None) -> str | None:
    """Return a number's text, empty where it is too long to be written out."""
    if value is None or value["value"] is None:
        return None
    try:
        return decimal_text(value["scale"], value["value"])
    except ValueError:
        return ""


def _uuid(values: pa.Array, _: Leaf, __: Losses) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return pa.array([None if v is None else str(UUID(bytes=v)) for v in values.to_pylist()], pa.string())


_PLACES: Final = r'^\[ *(?:null|"(?P<commit>[0-9]+)") *, *(?:null|"(?P<own>[0-9]+)") *\]$'


def _log_sequence(values: pa.Array, _: Leaf, __: Losses) -> pa.Array:
    texts = values.cast(pa.string())
    places = pc.extract_regex(texts, _PLACES)
    if places.null_count > texts.null_count:
        strange = texts.filter(pc.and_(places.is_null(), texts.is_valid()))
        raise DataError("a value is no list of two places in a log", why=strange[0].as_py())
    commit, own = (pc.if_else(pc.equal(part, ""), None, part) for part in places.flatten())
    try:
        return pc.coalesce(commit, own).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError("a value is no place in a log", why=str(error)) from error


_LEAVES: Final[dict[Meaning, Callable[[pa.Array, Leaf, Losses], pa.Array]]] = {
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
    Meaning.LOG_SEQUENCE: _log_sequence,
}


def constant(value: Any, type_: Type, length: int) -> pa.Array:
    """Return an array of one value; structs and maps come as dicts."""
    target = arrow_type(type_)
    if value is None or not length:
        return pa.nulls(length, target)
    return pa.repeat(pa.scalar(_for_arrow(value, type_), target), length)


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
