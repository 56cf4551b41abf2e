"""How a value of an earlier type becomes one of a later type of the same life, worked out once and executed by all.

The view and the compaction execute it as SQL for rows of older versions, the admission with Arrow for files of older
writers, and a frozen default goes through it as one value. Members of structs are matched by life: one that was
dropped in between reads NULL even where its name came back, one that was renamed keeps its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, assert_never

from schemasync.core.conversion import FLOATS, MOST_EXACT, converted, converts, keeps_all, notation
from schemasync.core.defaults import beyond_hive, cast_sql, null_sql, struct_sql
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Member, Record, shown_type
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.type_strings import print_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type

_ABOVE_BIGINT: Final = "CAST('9223372036854775808' AS DOUBLE)"
"""The lowest double that no bigint is. To Spark it is one, the bigint below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The value stays as it is."""

    target: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert:
    """A value without members becomes one of another type; `schemasync.core.conversion` says how."""

    stored: Type
    target: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the new struct: from which field of the old one, None where every value is NULL."""

    name: str
    source: str | None
    shape: Reshape


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A struct is made anew, field by field; ``lost`` are branches of a union that it no longer has, by old name.

    A value in one of these has no place any more. (A field that was dropped is meant to be gone.)
    """

    fields: tuple[Field, ...]
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """Every element of an array is reshaped."""

    element: Reshape
    target: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Every key and value of a map is reshaped."""

    key: Reshape
    value: Reshape
    target: Map


Reshape = Keep | Convert | Fields | Elements | Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class NoConversion:
    """No conversion is known; ``path`` leads to the place inside of the column, empty for the column itself."""

    path: str
    stored: Type
    target: Type

    def __str__(self) -> str:
        return f"{print_type(self.stored, Dialect.SPARK)} does not fit {print_type(self.target, Dialect.SPARK)}"


def reshape(stored: Encoding, target: Encoding) -> Reshape | NoConversion:
    """Say how shown values of one encoding become those of a later one, lives known in both."""
    return _between(stored, target, "")


def _between(stored: Encoding, target: Encoding, path: str) -> Reshape | NoConversion:
    match stored, target:
        case Leaf(type=old), Leaf(type=new) if old == new:
            return Keep(target=new)
        case Leaf(type=old), Leaf(type=new) if converts(old, new):
            return Convert(stored=old, target=new)
        case Record(), Record() if stored.union == target.union:
            return _record(stored, target, path)
        case ListOf(), ListOf():
            element = _between(stored.element, target.element, f"{path}.element")
            return element if isinstance(element, NoConversion) else _list(element, shown_type(target.element))
        case MapOf(), MapOf():
            return _map(stored, target, path)
        case _:
            return NoConversion(path=path, stored=shown_type(stored), target=shown_type(target))


def _list(element: Reshape, type_: Type) -> Reshape:
    target = Array(element=type_)
    return Keep(target=target) if isinstance(element, Keep) else Elements(element=element, target=target)


def _map(stored: MapOf, target: MapOf, path: str) -> Reshape | NoConversion:
    key = _between(stored.key, target.key, f"{path}.key")
    value = _between(stored.value, target.value, f"{path}.value")
    if isinstance(key, NoConversion) or not _tells_apart(stored.key, key):
        return NoConversion(path=f"{path}.key", stored=shown_type(stored.key), target=shown_type(target.key))
    if isinstance(value, NoConversion):
        return value
    type_ = Map(key=shown_type(target.key), value=shown_type(target.value))
    if isinstance(key, Keep) and isinstance(value, Keep):
        return Keep(target=type_)
    return Entries(key=key, value=value, target=type_)


def _tells_apart(stored: Encoding, shape: Reshape) -> bool:
    """Tell whether different values stay different: map keys that become equal would push each other out."""
    match stored, shape:
        case _, Keep():
            return True
        case _, Convert(stored=old, target=new):
            return keeps_all(old, new)
        case Record(members=members), Fields(fields=fields):
            kept = {f.source: f.shape for f in fields}
            return all(m.name in kept and _tells_apart(m.encoding, kept[m.name]) for m in members)
        case _:
            return False


def _record(stored: Record, target: Record, path: str) -> Reshape | NoConversion:
    by_life = {m.life: m for m in stored.members}
    fields: list[Field] = []
    for member in target.members:
        field = _field(by_life.get(member.life), member, f"{path}.{member.name}")
        if isinstance(field, NoConversion):
            return field
        fields.append(field)
    type_ = shown_type(target)
    if shown_type(stored) == type_ and all(isinstance(f.shape, Keep) and f.source == f.name for f in fields):
        return Keep(target=type_)
    taken = {m.life for m in target.members} if target.union else by_life.keys()
    return Fields(fields=tuple(fields), lost=tuple(m.name for life, m in by_life.items() if life not in taken))


def _field(stored: Member | None, target: Member, path: str) -> Field | NoConversion:
    if stored is None:
        return Field(name=target.name, source=None, shape=Keep(target=shown_type(target.encoding)))
    shape = _between(stored.encoding, target.encoding, path)
    return shape if isinstance(shape, NoConversion) else Field(name=target.name, source=stored.name, shape=shape)


def target_of(shape: Reshape) -> Type:
    """Return the type of the values that a reshape makes."""
    match shape:
        case Fields(fields=fields):
            return Struct(fields=tuple(StructField(name=f.name, type=target_of(f.shape)) for f in fields))
        case Keep() | Convert() | Elements() | Entries():
            return shape.target
        case _:  # pragma: no cover
            assert_never(shape)


def reshaped(value: Any, shape: Reshape) -> Any:
    """Return one decoded value (structs and maps are dicts) in its new form.

    Raises:
        ValueError: a value inside does not fit its new type.
    """
    match shape, value:
        case Keep(), _:
            return value
        case _, None:
            return None
        case Convert(stored=stored, target=target), _:
            return converted(value, stored, target)
        case Fields(fields=fields, lost=lost), _:
            if gone := [name for name in lost if value.get(name) is not None]:
                raise ValueError(f"{value[gone[0]]!r} is of a branch that the union no longer has")
            return {f.name: None if f.source is None else reshaped(value.get(f.source), f.shape) for f in fields}
        case Elements(element=element), _:
            return [reshaped(item, element) for item in value]
        case Entries(key=key, value=inner), _:
            return {reshaped(k, key): reshaped(v, inner) for k, v in value.items()}
        case _:  # pragma: no cover
            assert_never(shape)


def reshape_sql(expression: str, shape: Reshape, dialect: Dialect) -> str:
    """Return SQL that reshapes the value of an expression.

    Raises:
        SchemaError: Hive's SQL cannot do it.
    """
    match shape:
        case Keep():
            return expression
        case Convert():
            return _convert_sql(expression, shape, dialect)
        case Fields(fields=fields):
            parts = [_field_sql(expression, field, dialect) for field in fields]
            made = struct_sql(_struct(shape), parts, dialect)
            # Coral, which reads views for Trino, knows no struct beside a NULL that stands first.
            return f"CASE WHEN {expression} IS NOT NULL THEN {made} END"
        case Elements() | Entries() if dialect is Dialect.HIVE:
            raise beyond_hive(shape.target)
        case Elements(element=element):
            return f"transform({expression}, e -> {reshape_sql('e', element, dialect)})"
        case Entries():
            return _entries_sql(expression, shape, dialect)
        case _:  # pragma: no cover
            assert_never(shape)


def _struct(shape: Fields) -> Struct:
    return Struct(fields=tuple(StructField(name=f.name, type=target_of(f.shape)) for f in shape.fields))


def _convert_sql(expression: str, shape: Convert, dialect: Dialect) -> str:
    if shape.stored is Primitive.BOOLEAN and shape.target is Primitive.STRING and dialect is not Dialect.TRINO:
        # Hive, which reads the views that Spark stores, too, writes TRUE.
        return f"CASE WHEN {expression} THEN 'true' WHEN NOT {expression} THEN 'false' END"
    return cast_sql(expression, shape.target, dialect)


def _field_sql(expression: str, field: Field, dialect: Dialect) -> str:
    if field.source is None:
        return null_sql(target_of(field.shape), dialect)
    return reshape_sql(f"{expression}.{quote_identifier(field.source, dialect)}", field.shape, dialect)


def _entries_sql(expression: str, shape: Entries, dialect: Dialect) -> str:
    if not isinstance(shape.key, Keep):
        expression = f"transform_keys({expression}, (k, v) -> {reshape_sql('k', shape.key, dialect)})"
    if not isinstance(shape.value, Keep):
        expression = f"transform_values({expression}, (k, v) -> {reshape_sql('v', shape.value, dialect)})"
    return expression


def lost_sql(expression: str, shape: Reshape) -> str:
    """Return a predicate in Spark's SQL: the value holds something that does not fit. Empty where all values do."""
    match shape:
        case Keep():
            return ""
        case Convert():
            return _misfit_sql(expression, shape)
        case Fields(fields=fields, lost=lost):
            inside = [lost_sql(_member_sql(expression, f.source), f.shape) for f in fields if f.source]
            return _any([*inside, *(f"{_member_sql(expression, name)} IS NOT NULL" for name in lost)])
        case Elements(element=element):
            inner = lost_sql("e", element)
            return f"coalesce(exists({expression}, e -> {inner}), FALSE)" if inner else ""
        case Entries(value=value):
            inner = lost_sql("e", value)
            return f"coalesce(exists(map_values({expression}), e -> {inner}), FALSE)" if inner else ""
        case _:  # pragma: no cover
            assert_never(shape)


def may_misfit(shape: Reshape) -> bool:
    """Tell whether there are values that do not fit. Of a remembered delete only the key's columns must."""
    return bool(lost_sql("", shape))


def _member_sql(expression: str, name: str) -> str:
    return f"{expression}.{quote_identifier(name, Dialect.SPARK)}"


def _any(predicates: Iterable[str]) -> str:
    found = [p for p in predicates if p]
    return f"({' OR '.join(found)})" if found else ""


def _misfit_sql(expression: str, shape: Convert) -> str:
    if keeps_all(shape.stored, shape.target):
        return ""
    fits = " AND ".join(_fits_sql(expression, shape))
    return f"({expression} IS NOT NULL AND NOT ({fits}))"


def _fits_sql(expression: str, shape: Convert) -> Iterator[str]:
    new = print_type(shape.target, Dialect.SPARK)
    tried = f"try_cast({expression} AS {new})"
    if shape.stored is Primitive.STRING:
        yield f"{expression} RLIKE {quote_string(notation(shape.target), Dialect.SPARK)}"
        yield f"{tried} IS NOT NULL"
        if shape.target in FLOATS:
            yield f"abs({tried}) < CAST('Infinity' AS DOUBLE)"
        return
    # There and back again: what is not the same value then was rounded, cut or out of range.
    yield f"try_cast({tried} AS {print_type(shape.stored, Dialect.SPARK)}) <=> {expression}"
    match shape.stored, shape.target:
        case Primitive.BIGINT, target if target in FLOATS:
            yield f"{tried} < {_ABOVE_BIGINT}"
        case stored, Primitive.BIGINT if stored in FLOATS:
            yield f"{expression} < {_ABOVE_BIGINT}"
        case stored, Decimal() if stored in FLOATS:
            yield f"abs({expression}) < {MOST_EXACT}"
            if stored is Primitive.FLOAT:
                # Spark takes the shortest text of the double that it is, Hive and Trino that of itself.
                yield f"try_cast(CAST({expression} AS STRING) AS {new}) <=> {tried}"
