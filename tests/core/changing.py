"""What a schema becomes by changes: the inverse side of `schemasync.core.diff`, and the law that proves it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schemasync.core.changes import (
    AddColumn,
    Change,
    ChangeAliases,
    ChangeDefault,
    ChangeDoc,
    ChangeEnvelope,
    ChangeKey,
    ChangeNullability,
    ColumnChange,
    DropColumn,
    RenameColumn,
    ReorderColumns,
)
from schemasync.core.schema import Column, TableSchema


def apply_changes(changes: Iterable[Change], current: TableSchema) -> TableSchema:
    """Return ``current`` with the changes made."""
    schema = current
    for change in changes:
        schema = _apply_one(change, schema)
    return schema


def _apply_one(change: Change, schema: TableSchema) -> TableSchema:
    match change:
        case AddColumn():
            columns = list(schema.columns)
            columns.insert(change.position, change.column)
            return replace(schema, columns=tuple(columns))
        case DropColumn():
            return replace(schema, columns=tuple(c for c in schema.columns if c.life != change.column.life))
        case ReorderColumns():
            return replace(schema, columns=_reordered(schema.columns, change.desired))
        case ChangeKey():
            return replace(schema, keys=change.desired)
        case ChangeEnvelope():
            return replace(schema, envelope=change.desired)
        case _:
            columns = [_changed(c, change) if c.life == change.life else c for c in schema.columns]
            return replace(schema, columns=tuple(columns), keys=_keys_after(change, schema.keys))


def _keys_after(change: ColumnChange, keys: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(change, RenameColumn):
        return tuple(change.desired if key == change.current else key for key in keys)
    return keys


def _reordered(columns: tuple[Column, ...], names: tuple[str, ...]) -> tuple[Column, ...]:
    """Put the named columns into that order, in the places that they hold together; others stay."""
    by_name = {c.name: c for c in columns}
    queue = iter(names)
    return tuple(by_name[next(queue)] if c.name in names else c for c in columns)


def _changed(column: Column, change: ColumnChange) -> Column:
    match change:
        case RenameColumn():
            return replace(column, name=change.desired)
        case ChangeNullability():
            return replace(column, nullable=change.desired)
        case ChangeDefault():
            return replace(column, default=change.desired)
        case ChangeDoc():
            return replace(column, doc=change.desired)
        case ChangeAliases():
            return replace(column, aliases=change.desired)
        case _:
            return replace(column, encoding=change.desired)
