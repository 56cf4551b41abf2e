"""Compare two table schemas: ``diff(current, desired)``.

Laws: ``diff(x, x)`` is empty, and ``a`` with the changes of ``diff(a, b)`` made is ``b``. Columns are matched by life,
never by name or position. Inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, assert_never

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
    ColumnChange,
    DropColumn,
    DropField,
    EncodingChange,
    RenameColumn,
    RenameField,
    ReorderColumns,
    RetypeColumn,
    WidenColumn,
)
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Record
from schemasync.core.names import folded
from schemasync.core.promotion import INTEGER_DIGITS, widens
from schemasync.core.schema import Column, Life, TableSchema
from schemasync.core.semantics import DECIMALS
from schemasync.core.types import Primitive
from schemasync.core.written import avro_type

_Fact = Literal["add", "drop", "rename", "widen", "retype", "semantic"]
"""What can be said of one place inside a column."""


class _Found(NamedTuple):
    """One fact, where inside the column it is, what a renamed member was called, and what it is of without members."""

    fact: _Fact
    path: str
    old: str = ""
    leaves: tuple[Leaf, Leaf] | None = None


def diff(current: TableSchema, desired: TableSchema) -> tuple[Change, ...]:
    """Return what must change so that ``current`` becomes ``desired``; drops first, then the rest in column order."""
    before = {c.life: c for c in current.columns}
    after = {c.life: c for c in desired.columns}
    changes: list[Change] = [DropColumn(column=c) for c in current.columns if c.life not in after]
    for position, column in enumerate(desired.columns):
        if column.life not in before:
            changes.append(AddColumn(column=column, position=position))
        else:
            changes.extend(_column_changes(before[column.life], column))
    changes.extend(_order_changes(current, desired))
    if _respelled(current, after) != desired.keys:
        changes.append(ChangeKey(current=current.keys, desired=desired.keys))
    if current.envelope != desired.envelope:
        changes.append(ChangeEnvelope(current=current.envelope, desired=desired.envelope))
    return tuple(changes)


def passed_on(current: Iterable[Column], desired: Iterable[Column]) -> dict[str, str]:
    """Return (new: old) the names that aliases pass on from column to column though some of them are still there.

    The columns are those of two versions: what a table shows beside them is not there any more.
    By aliases alone what is still there is no rename's old name. Only aliases that are new count, and only where each
    name that goes on is given away and taken from another one.
    """
    before, after = ({folded(c.name): c for c in side} for side in (current, desired))
    found: dict[str, str] = {}
    for new, column in after.items():
        known = before[new].aliases if new in before else ()
        olds = (folded(alias) for alias in column.aliases if alias not in known)
        others = (old for old in olds if old in before and old not in (new, *found.values()))
        if (old := next(others, None)) is not None and before[old].life != column.life:
            found[new] = old
    while unclear := [
        new
        for new, old in found.items()
        if (new in before and new not in found.values()) or (old in after and old not in found)
    ]:
        found = {new: old for new, old in found.items() if new not in unclear}
    return {after[new].name: before[old].name for new, old in found.items() if new in before or old in after}


def _respelled(current: TableSchema, after: Mapping[Life, Column]) -> tuple[str, ...]:
    """Return the current keys under the names that their columns have now: a renamed column is no other key."""
    now = {c.name: after[c.life].name for c in current.columns if c.life in after}
    return tuple(now.get(key, key) for key in current.keys)


def _column_changes(current: Column, desired: Column) -> Iterator[ColumnChange]:
    life, name = desired.life, desired.name
    if current.name != desired.name:
        yield RenameColumn(life=life, current=current.name, desired=name)
    yield from encoding_changes(life, name, current.encoding, desired.encoding)
    if current.nullable != desired.nullable:
        yield ChangeNullability(life=life, name=name, current=current.nullable, desired=desired.nullable)
    if current.default != desired.default:
        yield ChangeDefault(life=life, name=name, current=current.default, desired=desired.default)
    if current.doc != desired.doc:
        yield ChangeDoc(life=life, name=name, current=current.doc, desired=desired.doc)
    if current.aliases != desired.aliases:
        yield ChangeAliases(life=life, name=name, current=current.aliases, desired=desired.aliases)


def encoding_changes(life: Life, name: str, current: Encoding, desired: Encoding) -> Iterator[EncodingChange]:
    """Yield what must change of the column ``name`` so that its values are written as ``desired`` says."""
    if current == desired:
        return
    sides = {"current": current, "desired": desired}
    found = tuple(dict.fromkeys(found[:3] for found in _facts(name, current, desired)))
    for fact, path, old in found:
        match fact:
            case "add":
                yield AddField(life=life, path=path, **sides)
            case "drop":
                yield DropField(life=life, path=path, **sides)
            case "widen":
                yield WidenColumn(life=life, name=path, **sides)
            case "retype":
                yield RetypeColumn(life=life, name=path, **sides)
            case "semantic":
                yield ChangeSemanticType(life=life, name=path, **sides)
            case "rename":
                yield RenameField(life=life, path=path, old=old, **sides)
            case _:  # pragma: no cover
                assert_never(fact)
    if not found:
        yield ChangeDetail(life=life, name=name, **sides)


def _facts(path: str, current: Encoding, desired: Encoding) -> Iterator[_Found]:
    """Yield facts by walking both encodings side by side."""
    match current, desired:
        case Record(), Record() if current.union == desired.union:
            yield from _member_facts(path, current, desired)
        case ListOf(), ListOf():
            yield from _facts(f"{path}.element", current.element, desired.element)
        case MapOf(), MapOf() if current.entries == desired.entries:
            # Keys that lose a member may become equal, and one entry would push out the other.
            keys = _facts(f"{path}.key", current.key, desired.key)
            yield from (found._replace(fact="retype") if found.fact == "drop" else found for found in keys)
            yield from _facts(f"{path}.value", current.value, desired.value)
        case Leaf(), Leaf():
            yield from _leaf_facts(path, current, desired)
        case _:
            yield _Found("retype", path)


def _member_facts(path: str, current: Record, desired: Record) -> Iterator[_Found]:
    before = {m.life: m for m in current.members}
    after = {m.life for m in desired.members}
    gone: _Fact = "retype" if desired.union else "drop"  # a dropped branch may be the one that holds the value
    yield from (_Found(gone, f"{path}.{m.name}") for m in current.members if m.life not in after)
    for member in desired.members:
        place, old = f"{path}.{member.name}", before.get(member.life)
        if old is None:
            yield _Found("add", place)
            continue
        if folded(old.name) != folded(member.name) and not desired.union:
            yield _Found("rename", place, old.name)
        yield from _facts(place, old.encoding, member.encoding)


def _leaf_facts(path: str, current: Leaf, desired: Leaf) -> Iterator[_Found]:
    meaning_kept = same_meaning(current, desired)
    if meaning_kept and current.type == desired.type:
        return
    if meaning_kept and widens(current.type, desired.type):
        yield _Found("widen", path)
    elif not meaning_kept and (current.type == desired.type or avro_type(current) == avro_type(desired)):
        yield _Found("semantic", path, leaves=(current, desired))
    else:
        yield _Found("retype", path, leaves=(current, desired))


def same_meaning(current: Leaf, desired: Leaf) -> bool:
    """Tell whether a value means the same on both sides.

    A text that gains or loses a label (Json, Uuid) is the same text; a number under another name is another number,
    but for a decimal, which Avro and Connect call differently, and which a whole number without a name may become.
    """
    if current.meaning is not desired.meaning:
        return False
    if _is_exact(current) and _is_exact(desired):
        return True
    label_only = "" in {current.name, desired.name} and current.type is desired.type is Primitive.STRING
    return current.name == desired.name or label_only


def _is_exact(leaf: Leaf) -> bool:
    return leaf.name in DECIMALS if leaf.name else leaf.type in INTEGER_DIGITS


def _order_changes(current: TableSchema, desired: TableSchema) -> Iterator[ReorderColumns]:
    """Yield a reorder where the columns that both sides have stand differently: adds and drops alone are none."""
    before = {c.life for c in current.columns}
    names = {c.life: c.name for c in desired.columns}
    old = tuple(names[c.life] for c in current.columns if c.life in names)
    new = tuple(c.name for c in desired.columns if c.life in before)
    if old != new:
        yield ReorderColumns(current=old, desired=new)


def changed_leaves(change: RetypeColumn | ChangeSemanticType) -> Iterator[tuple[Leaf, Leaf]]:
    """Yield both sides of the place that was changed so where neither has members."""
    root, _, _ = change.name.partition(".")
    fact = "retype" if isinstance(change, RetypeColumn) else "semantic"
    for found in _facts(root, change.current, change.desired):
        if (found.fact, found.path) == (fact, change.name) and found.leaves:
            yield found.leaves


def retypes(current: Encoding, desired: Encoding) -> bool:
    """Tell whether a column's values may not all fit their new type: such a change begins a life under `variant`."""
    return any(found.fact == "retype" for found in _facts("", current, desired))
