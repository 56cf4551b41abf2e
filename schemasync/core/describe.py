"""Changes and diagnostics as JSON: the shapes that ``plan --json`` and notifications promise."""

from __future__ import annotations

from typing import Any, assert_never

from schemasync.core.changes import (
    AddColumn,
    AddField,
    Change,
    ChangeAliases,
    ChangeDefault,
    ChangeDetail,
    ChangeDoc,
    ChangeEnvelope,
    ChangeKey,
    ChangeNullability,
    ChangeSemanticType,
    DropColumn,
    DropField,
    RenameColumn,
    RenameField,
    ReorderColumns,
    RetypeColumn,
    WidenColumn,
)
from schemasync.core.diagnostics import Diagnostic
from schemasync.core.encoding import Encoding, Leaf, shown_type
from schemasync.core.names import Dialect
from schemasync.core.schema import Column, Envelope
from schemasync.core.type_strings import print_type

KINDS: dict[type[Change], str] = {
    AddColumn: "add_column",
    DropColumn: "drop_column",
    RenameColumn: "rename_column",
    WidenColumn: "widen_column",
    RetypeColumn: "retype_column",
    ChangeSemanticType: "change_semantic_type",
    AddField: "add_field",
    DropField: "drop_field",
    RenameField: "rename_field",
    ChangeDetail: "change_detail",
    ChangeNullability: "change_nullability",
    ChangeDefault: "change_default",
    ChangeDoc: "change_doc",
    ChangeAliases: "change_aliases",
    ReorderColumns: "reorder_columns",
    ChangeKey: "change_key",
    ChangeEnvelope: "change_envelope",
}
"""Every kind of change, as programs read it."""


def change_json(change: Change) -> dict[str, Any]:
    """Return ``{"kind", "column", "from", "to"}``; column is None for changes of the whole table."""
    column, current, desired = _sides(change)
    return {"kind": KINDS[type(change)], "column": column, "from": current, "to": desired}


def _sides(change: Change) -> tuple[str | None, Any, Any]:
    match change:
        case AddColumn():
            return change.column.name, None, _column(change.column)
        case DropColumn():
            return change.column.name, _column(change.column), None
        case RenameColumn():
            return change.desired, change.current, change.desired
        case RenameField():
            return change.path, change.old, change.path.rpartition(".")[2]
        case AddField() | DropField():
            return change.path, type_text(change.current), type_text(change.desired)
        case WidenColumn() | RetypeColumn() | ChangeDetail():
            return change.name, type_text(change.current), type_text(change.desired)
        case ChangeSemanticType():
            return change.name, _meaning(change.current), _meaning(change.desired)
        case ChangeNullability() | ChangeDefault() | ChangeDoc():
            return change.name, change.current, change.desired
        case ChangeAliases():
            return change.name, list(change.current), list(change.desired)
        case ReorderColumns() | ChangeKey():
            return None, list(change.current), list(change.desired)
        case ChangeEnvelope():
            return None, _envelope(change.current), _envelope(change.desired)
        case _:  # pragma: no cover
            assert_never(change)


def _column(column: Column) -> str:
    return type_text(column.encoding) + ("" if column.nullable else " not null")


def type_text(encoding: Encoding) -> str:
    """Return the type that values are shown as, as people and programs are told it."""
    return print_type(shown_type(encoding), Dialect.SPARK)


def _meaning(encoding: Encoding) -> str:
    if isinstance(encoding, Leaf):
        return f"{type_text(encoding)} ({encoding.name or encoding.meaning.value})"
    return type_text(encoding)


def _envelope(envelope: Envelope) -> dict[str, Any]:
    return {
        "kind": envelope.kind.value,
        "op": envelope.op,
        "deleted": envelope.deleted,
        "ordering": [str(field) for field in envelope.ordering],
    }


def diagnostic_json(diagnostic: Diagnostic) -> dict[str, str]:
    """Return ``{"code", "severity", "message", "fix"}``."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "fix": diagnostic.fix,
    }
