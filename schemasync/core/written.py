"""How the sink's Parquet holds an event: the types of its files, not those that are shown.

Used for the per-run incremental table (the sink's shape), for Spark's explicit read schemas, and for telling which
subject version an unlabelled file was written under.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.names import Dialect
from schemasync.core.type_strings import print_type
from schemasync.core.types import MAX_PRECISION, Array, Decimal, Map, Primitive, Struct, StructField, Type

_P = Primitive

_RAW: Final[dict[Meaning, Primitive]] = {
    Meaning.DAYS: _P.INT,
    Meaning.EPOCH_MILLIS: _P.BIGINT,
    Meaning.EPOCH_MICROS: _P.BIGINT,
    Meaning.ZONED_TIMESTAMP: _P.STRING,
    Meaning.TIME_MILLIS: _P.INT,
    Meaning.TIME_MICROS: _P.BIGINT,
    Meaning.TIME_NANOS: _P.BIGINT,
    Meaning.UUID_BYTES: _P.BINARY,
}
"""Meaning -> what a writer stores that knows nothing of it: Debezium's names are no Avro logical types."""

_ANNOTATED: Final[dict[Meaning, Primitive]] = {
    Meaning.DAYS: _P.DATE,
    Meaning.EPOCH_MILLIS: _P.TIMESTAMP,
    Meaning.EPOCH_MICROS: _P.TIMESTAMP,
}
"""Meaning -> what parquet-avro annotates, where the schema has the Avro logical type."""

_DEBEZIUM: Final = "io.debezium."

_WIDE: Final[dict[Primitive, frozenset[Primitive]]] = {
    # Parquet has no smaller integer than INT32; writers may or may not annotate the width.
    _P.TINYINT: frozenset({_P.TINYINT, _P.SMALLINT, _P.INT}),
    _P.SMALLINT: frozenset({_P.SMALLINT, _P.INT}),
    _P.STRING: frozenset({_P.STRING, _P.BINARY}),
}

MIN_BYTES_PRECISION: Final = 19
"""Spark's vectorized reader crashes on bytes decimals declared with a precision of up to 18 (4.1.4, 4.3.0)."""


def written_type(encoding: Encoding) -> Type:
    """Return the type to declare for a column that parquet-avro wrote, safe for every reader of Spark 3.5 and 4."""
    match encoding:
        case Leaf():
            return _written_leaf(encoding)
        case ListOf(element=element):
            return Array(element=written_type(element))
        case MapOf(key=key, value=value, entries=True):
            fields = (
                StructField(name="key", type=written_type(key)),
                StructField(name="value", type=written_type(value)),
            )
            return Array(element=Struct(fields=fields))
        case MapOf(key=key, value=value):
            return Map(key=written_type(key), value=written_type(value))
        case Record(members=members):
            return Struct(fields=tuple(StructField(name=m.name, type=written_type(m.encoding)) for m in members))
        case _:  # pragma: no cover
            assert_never(encoding)


def _written_leaf(leaf: Leaf) -> Type:
    if leaf.meaning is Meaning.VARIABLE_DECIMAL:
        return Struct(fields=(StructField(name="scale", type=_P.INT), StructField(name="value", type=_P.BINARY)))
    if leaf.meaning is Meaning.PLAIN:
        match leaf.type:
            case Decimal(precision=precision, scale=scale):
                return Decimal(precision=max(precision, min(MIN_BYTES_PRECISION + scale, MAX_PRECISION)), scale=scale)
            case _P.TINYINT | _P.SMALLINT:
                return _P.INT
            case primitive:
                return primitive
    annotated = _ANNOTATED.get(leaf.meaning) if not leaf.name.startswith(_DEBEZIUM) else None
    return annotated or _RAW[leaf.meaning]


def avro_type(leaf: Leaf) -> Type:
    """Return the type that the value has in Avro, whatever it means; of bytes, fixed and their decimals ``binary``."""
    if leaf.meaning is Meaning.PLAIN:
        return _P.BINARY if isinstance(leaf.type, Decimal) else _written_leaf(leaf)
    return _RAW.get(leaf.meaning) or _written_leaf(leaf)


def may_be_written_as(encoding: Encoding, found: Type) -> bool:
    """Tell whether a file's column of type ``found`` can hold values of this encoding, whoever wrote it."""
    match encoding, found:
        case Leaf(meaning=Meaning.VARIABLE_DECIMAL), _:
            return found == _written_leaf(encoding)
        case Leaf(meaning=Meaning.PLAIN, type=Decimal() as shown), Decimal(precision=precision, scale=scale):
            # What is declared with more digits than any engine has is shown with as many as there are.
            return shown == Decimal(precision=min(precision, MAX_PRECISION), scale=scale)
        case Leaf(meaning=Meaning.PLAIN), _:
            return found == encoding.type or found in _wide(encoding.type)
        case Leaf(), _:
            raw = _RAW.get(encoding.meaning)
            return found in {raw, _ANNOTATED.get(encoding.meaning)} or (raw is not None and found in _wide(raw))
        case ListOf(), Array():
            return may_be_written_as(encoding.element, found.element)
        case MapOf(entries=False), Map():
            return may_be_written_as(encoding.key, found.key) and may_be_written_as(encoding.value, found.value)
        case MapOf(entries=True), Array(element=Struct(fields=(key, value))):
            return may_be_written_as(encoding.key, key.type) and may_be_written_as(encoding.value, value.type)
        case Record(), Struct():
            return next(misfits(encoding, found), None) is None
        case _:
            return False


def _wide(type_: Primitive | Decimal) -> frozenset[Primitive]:
    return _WIDE.get(type_, frozenset()) if isinstance(type_, Primitive) else frozenset()


_LONGEST: Final = 80
"""So many characters of a type are shown."""


def misfits(record: Record, found: Struct, *, within: str = "") -> Iterator[str]:
    """Yield what keeps a file's columns from being those of events like these, field by field; nothing where they are.

    ``within`` is what the fields' names begin with.
    """
    there = {f.name: f.type for f in found.fields}
    for member in record.members:
        name, type_ = f"{within}{member.name}", there.pop(member.name, None)
        if type_ is None:
            yield f"{name} is missing"
        elif isinstance(member.encoding, Record) and isinstance(type_, Struct):
            yield from misfits(member.encoding, type_, within=f"{name}.")
        elif not may_be_written_as(member.encoding, type_):
            shown = print_type(type_, Dialect.SPARK)
            yield f"{name} is {shown if len(shown) <= _LONGEST else f'{shown[:_LONGEST]}...'}"
    yield from (f"{within}{name} is not known" for name in there)
