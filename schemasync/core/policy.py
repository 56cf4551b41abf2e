"""From changes to a verdict: what is done by itself, what waits for a person, and why.

Pure: the configured policies come in as a value. The worst change decides for the table, because a table shows one
schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum
from types import MappingProxyType
from typing import Final, assert_never

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
from schemasync.core.config import Policies
from schemasync.core.defaults import default_value
from schemasync.core.describe import type_text
from schemasync.core.diagnostics import (
    KEY_FROM_NONE,
    KEY_TO_NONE,
    WITHOUT_MIGRATION,
    WITHOUT_VARIANT,
    Diagnostic,
    diagnose,
)
from schemasync.core.diff import changed_leaves, encoding_changes, same_meaning
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Record
from schemasync.core.names import folded
from schemasync.core.reshape import Convert, NoConversion, reshape
from schemasync.core.schema import Column, Life
from schemasync.core.types import Primitive

_BEGINNING: Final = (date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC))
ALL_FIT: Final = "every value that the table has fits"
"""What SS113 says, and a plan makes sure of."""


_EXPLAINED: Final = frozenset(
    {
        "timestamp-nanos",
        "local-timestamp-nanos",
        "io.debezium.time.NanoTimestamp",
        "io.debezium.time.MicroDuration",
        "io.debezium.time.NanoDuration",
        "io.debezium.time.Interval",
        "io.debezium.time.IsoDate",
        "io.debezium.time.IsoTimestamp",
    }
)
"""Numbers that count a unit, and texts of a form of their own: another type of them is another mode of the connector's,
which writes the same moments otherwise."""


class Verdict(Enum):
    """What becomes of a table; the value is what ``plan --json`` prints."""

    NONE = "none"
    EVOLVE = "evolve"
    MIGRATE = "migrate"
    HOLD = "hold"


_ORDER = tuple(Verdict)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the gravest of them, NONE where there are none."""
    return max(verdicts, key=_ORDER.index, default=Verdict.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one change, and what to tell about it."""

    verdict: Verdict
    diagnostics: tuple[Diagnostic, ...] = ()


_Born = Callable[[Life], Column | None]
"""Returns a column as the version that added it declared it, None where nobody knows another than the present one."""


def judge(
    changes: tuple[Change, ...],
    policies: Policies,
    *,
    readded: frozenset[str] = frozenset(),
    again: frozenset[Life] = frozenset(),
    passed: Mapping[str, str] = MappingProxyType({}),
    unlike: frozenset[Life] = frozenset(),
    born: _Born = lambda _: None,
    may_split: Callable[[Life], bool] = lambda _: True,
) -> Judgement:
    """Judge all changes of one table.

    ``readded`` are the names, case aside, under which columns were dropped; ``again`` are dropped columns that the
    table shows once more; ``passed`` are (new: old) the names that aliases pass on; ``unlike`` are key
    columns that no policy lets through, as one value is shown as two; ``born`` says what older rows read; ``may_split``
    tells whether a column could have a variant if the policies said so.
    """
    variants = _variants(changes) if policies.retype == "variant" else {}
    others = (c for c in changes if not _tells_of(c, variants))
    judged = [
        _again(change.column)
        if isinstance(change, AddColumn) and change.column.life in again
        else _judge_one(change, policies, readded, unlike, born, may_split)
        for change in others
    ]
    judged += [_evolve("SS114", _beside(column, old)) for column, old in variants.values()]
    diagnostics = [d for j in judged for d in j.diagnostics]
    diagnostics += _possible_renames(changes, passed)
    return Judgement(verdict=worst(j.verdict for j in judged), diagnostics=tuple(diagnostics))


def _variants(changes: tuple[Change, ...]) -> dict[Life, tuple[Column, str]]:
    """Return by old life the columns that took the place of another, and the name that this one has now."""
    added = [c.column for c in changes if isinstance(c, AddColumn)]
    named = {column.name.lower(): column for column in added}
    # One that has another name at once.
    heirs = {column.replaces: column for column in added}
    moved = (c for c in changes if isinstance(c, RenameColumn))
    return {c.life: (new, c.desired) for c in moved if (new := named.get(c.current.lower()) or heirs.get(c.life))}


def _tells_of(change: Change, variants: Mapping[Life, tuple[Column, str]]) -> bool:
    match change:
        case AddColumn(column=column):
            return any(new.life == column.life for new, _ in variants.values())
        case RenameColumn(life=life) | ChangeNullability(life=life):
            return life in variants
        case _:
            return False


def _beside(column: Column, old: str) -> str:
    return f"column {column.name} became {type_text(column.encoding)}; its values from before stay visible as {old}"


def _judge_one(
    change: Change,
    policies: Policies,
    readded: frozenset[str],
    unlike: frozenset[Life],
    born: _Born,
    may_split: Callable[[Life], bool],
) -> Judgement:
    match change:
        case AddColumn(column=column):
            return _by_policy(policies.add, "add", *_added(column, born(column.life) or column, policies, readded))
        case DropColumn():
            name = change.column.name
            return _by_policy(policies.drop, "drop", diagnose("SS104", f"column {name} was dropped"))
        case RenameColumn():
            return _evolve("SS107", f"column {change.current} is now called {change.desired}")
        case WidenColumn():
            note = diagnose("SS106", f"column {change.name}: {_types(change)}, lossless")
            return _by_policy(policies.widen, "widen", note)
        case RetypeColumn():
            return _retyped(change, policies, may_split=may_split(change.life))
        case ChangeSemanticType():
            return _redefined(change, policies, unlike)
        case AddField():
            return _by_policy(policies.add, "add", diagnose("SS111", f"field {change.path} was added"))
        case DropField():
            return _by_policy(policies.drop, "drop", diagnose("SS112", f"field {change.path} was dropped"))
        case RenameField():
            return _evolve("SS107", f"field {change.path} was called {change.old}")
        case ReorderColumns():
            return _evolve("SS109", f"columns now stand in the order {', '.join(change.desired)}")
        case ChangeNullability() | ChangeDefault() | ChangeDoc() | ChangeAliases() | ChangeDetail():
            return _evolve("SS110", f"column {change.name}: {_DETAILS[type(change)]} changed")
        case ChangeKey():
            return _rekeyed(change, policies)
        case ChangeEnvelope():
            return _rewrapped(change)
        case _:  # pragma: no cover
            assert_never(change)


_DETAILS: dict[type[Change], str] = {
    ChangeNullability: "nullability",
    ChangeDefault: "the default",
    ChangeDoc: "the comment",
    ChangeAliases: "the aliases",
    ChangeDetail: "symbols or nested details",
}


def _added(column: Column, born: Column, policies: Policies, readded: frozenset[str]) -> tuple[Diagnostic, ...]:
    """Tell of a column that was added; older rows read what the version that added it said, whatever came since."""
    found = _read_by_older_rows(column.name, born, policies)
    if folded(column.name) not in readded:
        return (found,)
    back = diagnose("SS105", f"column {column.name} was dropped earlier and came back in version {column.since}")
    return (back,) if found.code == "SS101" else (back, found)


def _read_by_older_rows(name: str, born: Column, policies: Policies) -> Diagnostic:
    if born.nullable or policies.add == "null":
        return diagnose("SS101", f"column {name} was added")
    if born.default is None:
        return diagnose("SS103", f"column {name} was added NOT NULL without a default: older rows read NULL")
    value = default_value(born.encoding, born.default)
    if value is None:
        lacks = f"with the default {born.default}, which is no {type_text(born.encoding)}"
        return diagnose("SS103", f"column {name} was added NOT NULL {lacks}: older rows read NULL")
    message = f"column {name} was added NOT NULL: older rows read its default {born.default}"
    if value in _BEGINNING:
        return diagnose("SS118", f"{message}, the beginning of 1970")
    return diagnose("SS102", message)


def _again(column: Column) -> Judgement:
    """Let a dropped column be shown once more: ``policies.drop`` asks for it, and nothing is added."""
    said = f"column {column.name} was dropped and is shown again: NULL where rows were rewritten without it"
    return _evolve("SS101", said)


def _by_policy(policy: str, kind: str, *otherwise: Diagnostic) -> Judgement:
    if policy == "hold":
        said = "; ".join(one.message for one in otherwise)
        return _hold("SS124", f"{said}, and policies.{kind} says hold")
    return Judgement(verdict=Verdict.EVOLVE, diagnostics=otherwise)


def _retyped(change: RetypeColumn, policies: Policies, *, may_split: bool) -> Judgement:
    fixes = {} if may_split else WITHOUT_VARIANT
    otherwise = (leaves for leaves in changed_leaves(change) if any(leaf.name in _EXPLAINED for leaf in leaves))
    for leaves in otherwise:
        sides = " to ".join(leaf.name or type_text(leaf) for leaf in leaves)
        message = f"column {change.name}: {sides}: nothing says how one is written as the other"
        return _hold("SS120", message, fix=fixes.get("SS120", ""))
    shape = reshape(change.current, change.desired)
    if isinstance(shape, NoConversion):
        message = f"column {change.name}: {_types(change)}: no value can be converted"
        return _hold("SS120", message, fix=fixes.get("SS120", ""))
    message = f"column {change.name}: {_types(change)}, {ALL_FIT}"
    note = diagnose("SS113", message, fix=fixes.get("SS113", ""))
    judged = _by_policy(policies.retype, "retype", note)
    return judged if judged.verdict is Verdict.HOLD else replace(judged, verdict=Verdict.MIGRATE)


def _rekeyed(change: ChangeKey, policies: Policies) -> Judgement:
    if not change.current:
        message = f"the table was made without a key, and now has ({', '.join(change.desired)})"
        return _hold("SS122", message, fix=KEY_FROM_NONE)
    sides = f"the key changed from ({', '.join(change.current)}) to ({', '.join(change.desired)})"
    if not change.desired:
        return _hold("SS122", sides, fix=KEY_TO_NONE)
    if policies.key == "rebuild":
        note = diagnose("SS116", f"{sides}: the base is rebuilt under it")
        return Judgement(verdict=Verdict.MIGRATE, diagnostics=(note,))
    return _hold("SS122", sides)


def _redefined(change: ChangeSemanticType, policies: Policies, unlike: frozenset[Life]) -> Judgement:
    meanings = f"column {change.name}: {_meanings(change)}"
    fits = _fit_one_column(change.current, change.desired)
    if policies.semantic == "migrate" and fits:
        note = diagnose("SS115", f"{meanings}: values from before are kept as they are shown")
        return Judgement(verdict=Verdict.MIGRATE, diagnostics=(note,))
    fix = "" if fits and change.life not in unlike else WITHOUT_MIGRATION
    return _hold("SS121", f"{meanings}: the same values mean something else", fix=fix)


def _fit_one_column(current: Encoding, desired: Encoding) -> bool:
    """Tell whether values of both sides can stand in one column: they were decoded to the same type of date or text.

    Plain numbers under another name (micro- and nanoseconds of a duration) cannot: nothing says how to convert them.
    What else changes in the same column is another change.
    """
    match current, desired:
        case Leaf(), Leaf():
            plain = Meaning.PLAIN in {current.meaning, desired.meaning} and current.type is not Primitive.STRING
            return same_meaning(current, desired) or (current.type == desired.type and not plain)
        case ListOf(), ListOf():
            return _fit_one_column(current.element, desired.element)
        case MapOf(), MapOf():
            return _fit_one_column(current.key, desired.key) and _fit_one_column(current.value, desired.value)
        case Record(), Record():
            there = {m.life: m.encoding for m in current.members}
            return all(_fit_one_column(there[m.life], m.encoding) for m in desired.members if m.life in there)
        case _:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """Why values of another version cannot be shown beside a column's own, and what lets them in, if anything does."""

    said: str
    fix: str = ""


def hindrances(column: Column, written: Encoding, policies: Policies) -> Iterator[Hindrance]:
    """Find what hinders that values which were written so show in a column.

    That is what would hold a step between the two, whichever version came first: another meaning of what is shown as
    it is written. What is converted, or decoded to the same thing whatever it is called, is not hindered, and neither
    is a moment, which is the same one in any unit.
    """
    for change in encoding_changes(column.life, column.name, written, column.encoding):
        match change:
            case RetypeColumn():
                judged = _retyped(change, policies, may_split=False)
                yield from (Hindrance(said=d.message) for d in judged.diagnostics if d.code == "SS120")
            case ChangeSemanticType() if not all(_shown_alike(*leaves) for leaves in changed_leaves(change)):
                fix = _MIGRATE if _fit_one_column(written, column.encoding) else ""
                judged = _redefined(change, policies, frozenset())
                yield from (Hindrance(said=d.message, fix=fix) for d in judged.diagnostics if d.code == "SS121")
            case _:
                pass


_MIGRATE: Final = "Set policies.semantic to migrate: its values then show beside the others."


def _shown_alike(current: Leaf, desired: Leaf) -> bool:
    """Tell whether what is decoded is the same value on both sides, or the same text under another label."""
    decoded = Meaning.PLAIN not in {current.meaning, desired.meaning} and current.type == desired.type
    alike = decoded and (current.type is not Primitive.STRING or current.meaning is desired.meaning)
    return alike or _are_one_text(current, desired)


def _are_one_text(current: Leaf, desired: Leaf) -> bool:
    """Tell whether both are texts that are shown as they are, whatever they are called (Enum, Json, Uuid).

    Debezium's texts of times are not: each has a form of its own, in which one value is another text.
    """
    sides = (current, desired)
    plain = all(leaf.type is Primitive.STRING and leaf.meaning is Meaning.PLAIN for leaf in sides)
    return plain and not any(leaf.name.startswith("io.debezium.time.") for leaf in sides)


def unlike_key(column: Column, current: Encoding) -> Iterator[tuple[str, str]]:
    """Find, as (code, message), why a key column's values would not tell the same rows apart as they do written so.

    Of texts that were retyped '7' and '07' are two rows before and one after; a time of 12:00 is '12:00:00.000' under
    one precision and '12:00:00.000000' under another: two rows, and a delete finds one of them.
    """
    shape = reshape(current, column.encoding)
    if isinstance(shape, Convert) and shape.stored is Primitive.STRING:
        message = f"key column {column.name} was a text: two texts can become one {type_text(column.encoding)}"
        yield "SS120", message
    if not shown_as_one(current, column.encoding):
        yield "SS121", f"key column {column.name} is shown otherwise than before: one key would be two rows"


def shown_as_one(current: Encoding, desired: Encoding) -> bool:
    """Tell whether one value of the source shows as one, however it is written; a plain retype is another matter."""
    if not isinstance(current, Leaf) or not isinstance(desired, Leaf) or same_meaning(current, desired):
        return True
    if current.type == desired.type and current.meaning is desired.meaning is not Meaning.PLAIN:
        return True  # decoded alike, whatever it is called
    if _are_one_text(current, desired):
        return True
    formatted = desired.type is Primitive.STRING and desired.meaning is not Meaning.PLAIN
    return current.type != desired.type and not formatted


def _evolve(code: str, message: str) -> Judgement:
    return Judgement(verdict=Verdict.EVOLVE, diagnostics=(diagnose(code, message),))


def _hold(code: str, message: str, *, fix: str = "") -> Judgement:
    return Judgement(verdict=Verdict.HOLD, diagnostics=(diagnose(code, message, fix=fix),))


def _rewrapped(change: ChangeEnvelope) -> Judgement:
    """Judge another envelope: one that tells more of an event changes nothing about those before.

    Each file is read by that of its own version.
    """
    before, after = change.current, change.desired
    more = {name: getattr(after, name) for name in ("op", "deleted", "ts_ms") if getattr(before, name) is None}
    if replace(before, **more) != after:
        return _hold("SS123", _envelope_sides(change))
    fields = (field if isinstance(field, str) else ".".join(field) for field in more.values() if field)
    return _evolve("SS110", f"events now have {', '.join(fields)}")


def _types(change: WidenColumn | RetypeColumn) -> str:
    return f"{type_text(change.current)} to {type_text(change.desired)}"


def _meanings(change: ChangeSemanticType) -> str:
    return " to ".join(_meaning(encoding) for encoding in (change.current, change.desired))


def _meaning(encoding: Encoding) -> str:
    if isinstance(encoding, Leaf):
        return encoding.name or encoding.meaning.value
    return type_text(encoding)


def _envelope_sides(change: ChangeEnvelope) -> str:
    before, after = change.current, change.desired
    if before.kind is not after.kind:
        return f"events were wrapped as {before.kind.value} and now are {after.kind.value}"
    old, new = (", ".join(map(str, e.ordering)) or "nothing" for e in (before, after))
    if old != new:
        return f"events were ordered by {old} and now carry {new}"
    return "the fields that wrap the events moved"


def _possible_renames(changes: tuple[Change, ...], passed: Mapping[str, str]) -> Iterator[Diagnostic]:
    if passed:
        said = " and ".join(f"{new} was {old}" for new, old in passed.items())
        renames = ", ".join(f"{new}: {old}" for new, old in passed.items())
        yield diagnose(
            "SS108",
            f"aliases say that {said}: names that are still there keep their values all the same",
            fix=f"If the values are to move, say so before applying: renames: {{{renames}}}.",
        )
    dropped = [c.column for c in changes if isinstance(c, DropColumn) and c.column.name not in passed.values()]
    # One that took the place of another is no new name of a third.
    added = [c.column for c in changes if isinstance(c, AddColumn) and c.column.replaces is None]
    for column in dropped:
        alike = [one for one in (*dropped, *added) if one.type == column.type]
        old, new = column.name, alike[-1].name
        # One of each.
        if len(alike) == 2 and alike[-1] in added and old.lower() != new.lower() and new not in passed:
            yield diagnose(
                "SS108",
                f"{old} was dropped and {new} of the same type added: a rename looks like that",
                fix=f"If it is one, say so before applying: renames: {{{new}: {old}}}.",
            )
