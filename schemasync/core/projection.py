"""What each physical column holds of a row written under an earlier version: in a file, or in a segment of ours.

``project`` answers for a sink file (encodings as the writer's schema has them), ``carried`` for rows that are already
in the long-lived table. Both say the same three things: take this field, fill with this value, or it cannot be done.
The Arrow and the Spark admission, the view and the compaction all execute these answers and decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from schemasync.core.config import Policies
from schemasync.core.defaults import Value, default_value
from schemasync.core.describe import type_text
from schemasync.core.encoding import Encoding
from schemasync.core.envelope import standing_at, written_as
from schemasync.core.history import History
from schemasync.core.layout import Layout
from schemasync.core.names import Dialect
from schemasync.core.policy import Hindrance, hindrances, unlike_key
from schemasync.core.reshape import Keep, NoConversion, Reshape, reshape, reshaped
from schemasync.core.schema import Column, Envelope, OrderingField, SubjectVersion
from schemasync.core.type_strings import print_type
from schemasync.core.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Read the field at the first of ``paths``, decode it by ``encoding``, reshape it.

    Of a delete, and where the struct that holds it is null, at the first of them that is not null.
    """

    paths: tuple[tuple[str, ...], ...]
    encoding: Encoding
    shape: Reshape


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """The row's version does not have the column: every value is this one (NULL, or the frozen default)."""

    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """One physical column and where its values come from."""

    name: str
    type: Type
    source: Take | Fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """All columns of a table for the files of one writer version, and how their events are read.

    ``ordering`` are the table's ordering fields, with what they mean in these files.
    """

    writer: int
    columns: tuple[Projected, ...]
    envelope: Envelope
    ordering: tuple[OrderingField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unprojectable:
    """The writer's values cannot become the table's; ``reasons`` name column and types, ``fix`` what lets them in."""

    writer: int
    reasons: tuple[str, ...]
    fix: str


def project(
    history: History,
    *,
    writer: SubjectVersion,
    layout: Layout,
    columns: tuple[Column, ...],
    keys: tuple[str, ...],
    ordering: tuple[OrderingField, ...],
    policies: Policies,
    fill_defaults: bool = True,
) -> Projection | Unprojectable:
    """Say how a file of version ``writer`` is read into the table as ``layout`` has it.

    ``columns`` are the table's logical columns, ``ordering`` the fields that it is ordered by. The ``policies`` of
    today say which meanings may show beside others in one column; what the table went through under others, once
    somebody released it, is settled.
    """
    projected: list[Projected] = []
    reasons: list[Hindrance] = []
    written: list[OrderingField] = []
    for column in columns:
        target = layout.current(column)
        source = _from_file(
            history,
            column,
            writer,
            layout,
            is_key=column.name in keys,
            policies=policies,
            fill_defaults=fill_defaults,
        )
        if isinstance(source, tuple):
            reasons += source
        else:
            projected.append(Projected(name=target.name, type=target.type, source=source))
    for field in ordering:
        found = _as_written(field, writer)
        if isinstance(found, Hindrance):
            reasons.append(found)
        else:
            written.append(found)
    if reasons:
        fixes = dict.fromkeys(r.fix or _LAND_ANEW for r in reasons)
        return Unprojectable(
            writer=writer.version,
            reasons=tuple(r.said for r in reasons),
            # What lets some of the values in is of no use while others are kept out.
            fix=_LAND_ANEW if _LAND_ANEW in fixes else " ".join(fixes),
        )
    return Projection(
        writer=writer.version, columns=tuple(projected), envelope=writer.envelope, ordering=tuple(written)
    )


_LAND_ANEW: Final = "Land its events anew as the table has them, or move it away; it stays where it is."
_ADD_NULL: Final = "Set policies.add to null: rows from before the column then read NULL in it."


def _as_written(field: OrderingField, writer: SubjectVersion) -> OrderingField | Hindrance:
    """Return an ordering field as the writer's events have it, or why the two cannot be compared.

    Where they lack it every value is NULL.
    """
    found = standing_at(writer.event, field.path)
    if found is None:
        return field
    now = print_type(field.type, Dialect.SPARK)
    told = f"{field}, which tells newer events from older ones, was {type_text(found)} and is {now}"
    return written_as(field, found) or Hindrance(said=told)


def _from_file(
    history: History,
    column: Column,
    writer: SubjectVersion,
    layout: Layout,
    *,
    is_key: bool,
    policies: Policies,
    fill_defaults: bool,
) -> Take | Fill | tuple[Hindrance, ...]:
    """Say where a column's values come from, or why not."""
    written = history.column(column.life, writer.version)
    if written is None:
        return _fill_of_file(history, column, writer, layout, policies, fill_defaults)
    shape = reshape(written.encoding, column.encoding)
    if isinstance(shape, NoConversion):
        return (Hindrance(said=_loss(column.name, shape)),)
    if found := _between(history, column, written, writer.version, layout, is_key=is_key, policies=policies):
        return found
    return Take(paths=_paths(written.name, writer.envelope, is_key), encoding=written.encoding, shape=shape)


def _between(
    history: History,
    column: Column,
    written: Column,
    version: int,
    layout: Layout,
    *,
    is_key: bool,
    policies: Policies,
) -> tuple[Hindrance, ...]:
    """Find what hinders that values show in a column as they are ``written`` under a ``version``.

    Nothing does where each step from that version to the table's passes by itself: labels of a text come and go, and
    the first and the last one alone look like two forms.
    """
    found = _step(written.encoding, column, is_key, policies)
    if not found:
        return ()
    held, migrated = (policies.model_copy(update={"semantic": said}) for said in ("hold", "migrate"))
    between = (history.column(column.life, v.version) for v in history.between(version, layout.version))
    steps = pairwise([written, *(c for c in between if c is not None), column])
    if not any(_step(before.encoding, after, is_key, held) for before, after in steps):
        return ()
    if _is_past(history, column, written, version, layout, held):
        return _step(written.encoding, column, is_key, migrated)
    return found


def _step(written: Encoding, column: Column, is_key: bool, policies: Policies) -> tuple[Hindrance, ...]:
    of_key = unlike_key(column, written) if is_key else ()
    return (*hindrances(column, written, policies), *(Hindrance(said=message) for _, message in of_key))


def _is_past(history: History, column: Column, written: Column, version: int, layout: Layout, held: Policies) -> bool:
    """Tell whether the table went through a change of a column's meaning, and has rows of that version's shown so.

    Its first meaning is another one than its present one then: ``held`` would not have let it through. A version in
    between that has neither is one on the way; one from before the table came in as the first.
    """
    first = history.column(column.life, max(layout.baseline, column.since))
    if first is None or not any(hindrances(column, first.encoding, held)):
        return False
    return version >= layout.baseline or not any(hindrances(first, written.encoding, held))


def _paths(name: str, envelope: Envelope, is_key: bool) -> tuple[tuple[str, ...], ...]:
    if envelope.row is None:
        return ((name,),)
    # A delete carries its key in `before` only (REPLICA IDENTITY DEFAULT leaves everything else there null).
    return ((envelope.row, name), ("before", name)) if is_key else ((envelope.row, name),)


def _fill_of_file(
    history: History, column: Column, writer: SubjectVersion, layout: Layout, policies: Policies, fill_defaults: bool
) -> Fill | tuple[Hindrance, ...]:
    """Fill, or the reasons why not: a table that was created later never asked what older rows would read.

    One that was there shows rows of that version with this very default.
    """
    try:
        fill = _fill(history, column, writer.version, fill_defaults)
    except ValueError as error:
        type_ = print_type(column.type, Dialect.SPARK)
        said = f"column {column.name}: the default that older rows read does not fit {type_}: {error}"
        return (Hindrance(said=said, fix=_ADD_NULL),)
    born = history.born(column.life)
    if born is None or fill.value is None or writer.version >= layout.baseline:
        return fill
    hindered = _between(history, column, born, column.since, layout, is_key=False, policies=policies)
    default = "the default that older rows read in"
    # That takes the default from the table's own rows, too.
    return tuple(Hindrance(said=f"{default} {one.said}", fix=one.fix or _ADD_NULL) for one in hindered) or fill


def _fill_of_rows(history: History, column: Column, version: int, fill_defaults: bool) -> Fill:
    """Fill, with NULL where the default does not fit: only under `add: null` does a table come to that.

    The policy may be another one since.
    """
    try:
        return _fill(history, column, version, fill_defaults)
    except ValueError:
        return Fill(value=None)


def reads_null_before(history: History, column: Column, layout: Layout, *, fill_defaults: bool) -> bool:
    """Tell whether there may be rows from before a column, which read NULL in it."""
    first = min(history.versions[0].version, layout.baseline)
    return first < column.since and _fill_of_rows(history, column, first, fill_defaults).value is None


def _loss(name: str, found: NoConversion) -> str:
    return f"column {name}{found.path}: {found}"


def _fill(history: History, column: Column, version: int, fill_defaults: bool) -> Fill:
    """Rows older than the column read its frozen default; those newer than its end (``drop: keep``) NULL."""
    older = version < column.since
    return Fill(value=frozen_default(history, column) if fill_defaults and older else None)


def born_default(history: History, column: Column) -> Value:
    """Return the default with which a version added the column, if it was NOT NULL, in the type that it had then.

    For a nullable column that is NULL, and for one that took another's place (`variant`): rows from before have their
    value there.
    """
    born = history.born(column.life)
    if born is None or born.nullable or history.replaced(column) is not None:
        return None
    return default_value(born.encoding, born.default)


def frozen_default(history: History, column: Column) -> Value:
    """Return what rows older than the column read: its `born_default`, in the type that the column has now.

    It is frozen: later changes of default or nullability do not touch it, changes of type do, as for every row.

    Raises:
        ValueError: it does not fit the column's present type.
    """
    value, born = born_default(history, column), history.born(column.life)
    if value is None or born is None:
        return None
    shape = reshape(born.encoding, column.encoding)
    if isinstance(shape, NoConversion):
        raise ValueError(_loss(column.name, shape))
    found: Value = reshaped(value, shape)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Rows of one earlier version: the physical column that holds the value, and how it is reshaped."""

    name: str
    shape: Reshape


def carried(
    history: History, *, column: Column, layout: Layout, version: int, fill_defaults: bool = True
) -> Carried | Fill:
    """Say where a logical column's value stands in rows that the table holds under an earlier ``version``.

    Raises:
        ValueError: the value cannot be carried; policy never lets a table come to that.
    """
    target = layout.current(column)
    stored = layout.phase(column.life, version)
    if stored is None:
        return _fill_of_rows(history, column, version, fill_defaults)
    then = history.column(column.life, stored.since)
    if stored == target or then is None:
        return Carried(name=stored.name, shape=Keep(target=target.type))
    shape = reshape(then.encoding, column.encoding)
    if isinstance(shape, NoConversion):
        raise ValueError(_loss(column.name, shape))
    return Carried(name=stored.name, shape=shape)
