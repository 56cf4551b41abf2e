"""SQL that turns a shown value of an earlier type into one of a later type of the same life.

Used by the view and the compaction for rows of older versions, and by the Spark admission. ``kept`` is the earlier
encoding without the nested members that were dropped in between: those read NULL even where the name came back.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemasync.core.defaults import beyond_hive, cast_sql, null_sql, struct_sql
from schemasync.core.names import Dialect, folded, quote_identifier
from schemasync.core.types import Array, Map, Struct, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """From the type that is ``stored``, of which the part ``kept`` still counts, to the ``target`` type."""

    stored: Type
    kept: Type
    target: Type

    @property
    def is_identity(self) -> bool:
        """Tell whether nothing needs doing."""
        return self.stored == self.kept == self.target


def members(stored: Struct, kept: Struct) -> dict[str, tuple[str, Type, Type]]:
    """Return folded name -> (name as it is stored, stored type, kept type) of the members that still count."""
    written = {folded(f.name): f for f in stored.fields}
    usable = ((written[folded(f.name)], f.type) for f in kept.fields)
    return {folded(there.name): (there.name, there.type, type_) for there, type_ in usable}


def reshape_sql(expression: str, shape: Reshape, dialect: Dialect) -> str:
    """Return SQL of type ``shape.target`` for an expression of type ``shape.stored``.

    The caller has made sure that ``shape.kept`` widens to ``shape.target``.

    Raises:
        SchemaError: Hive's SQL cannot do it.
    """
    if shape.is_identity:
        return expression
    if dialect is Dialect.HIVE and isinstance(shape.target, Array | Map):
        raise beyond_hive(shape.target)
    match shape.stored, shape.kept, shape.target:
        case Struct() as stored, Struct() as kept, Struct() as target:
            return _struct_sql(expression, stored, kept, target, dialect)
        case Array() as stored, Array() as kept, Array() as target:
            inner = Reshape(stored=stored.element, kept=kept.element, target=target.element)
            return f"transform({expression}, e -> {reshape_sql('e', inner, dialect)})"
        case Map() as stored, Map() as kept, Map() as target:
            keys = Reshape(stored=stored.key, kept=kept.key, target=target.key)
            values = Reshape(stored=stored.value, kept=kept.value, target=target.value)
            return _values_sql(_keys_sql(expression, keys, dialect), values, dialect)
        case _:
            return cast_sql(expression, shape.target, dialect)


def _keys_sql(expression: str, keys: Reshape, dialect: Dialect) -> str:
    if keys.is_identity:
        return expression
    return f"transform_keys({expression}, (k, v) -> {reshape_sql('k', keys, dialect)})"


def _values_sql(expression: str, values: Reshape, dialect: Dialect) -> str:
    if values.is_identity:
        return expression
    return f"transform_values({expression}, (k, v) -> {reshape_sql('v', values, dialect)})"


def _struct_sql(expression: str, stored: Struct, kept: Struct, target: Struct, dialect: Dialect) -> str:
    found = members(stored, kept)
    parts: list[str] = []
    for field in target.fields:
        if (part := found.get(folded(field.name))) is None:
            parts.append(null_sql(field.type, dialect))
        else:
            name, written, usable = part
            shape = Reshape(stored=written, kept=usable, target=field.type)
            parts.append(reshape_sql(f"{expression}.{quote_identifier(name, dialect)}", shape, dialect))
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE {struct_sql(target, parts, dialect)} END"
