"""What a change of types costs and what it could lose: which rows are converted, and whether every value fits.

A migration is no step of its own. The table gets a new physical column, the view converts the rows of older versions,
and every rewrite of a segment projects it to the newest version. Before the view changes, the values that the table
has are looked at; one that does not fit holds the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from schemasync.core.admission import DELETE
from schemasync.core.detour import is_the_same_at_once
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.layout import OP
from schemasync.core.manifest import Manifest, Segment
from schemasync.core.names import Dialect, quote_identifier, quote_string
from schemasync.core.projection import Carried, Fill, born_default, carried, frozen_default
from schemasync.core.reshape import lost_sql
from schemasync.core.schema import Column
from schemasync.core.shape import Shape
from schemasync.core.type_strings import print_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which values of one column do not fit: ``predicate`` over the long-lived table (alias ``t``), in Spark's SQL.

    ``value`` is the expression that yields them, ``versions`` those whose rows are asked about.
    """

    column: str
    type: str
    value: str
    predicate: str
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfits:
    """The answer: how many values of a column do not fit, and some of them."""

    question: Question
    count: int
    samples: tuple[str, ...]

    @property
    def finding(self) -> Diagnostic:
        """What to tell about it."""
        shown = ", ".join(repr(value) for value in self.samples)
        values = "1 value does" if self.count == 1 else f"{self.count} values do"
        return diagnose("SS125", f"column {self.question.column}: {values} not fit {self.question.type}: {shown}")


def questions(shape: Shape, versions: Iterable[int]) -> tuple[Question, ...]:
    """Say what must be asked of rows of these versions before they are shown under a shape."""
    asked: dict[Question, tuple[int, ...]] = {}
    for version in sorted(versions):
        for question in _asked(shape, version):
            asked[question] = (*asked.get(question, ()), version)
    return tuple(replace(question, versions=versions) for question, versions in asked.items())


def _asked(shape: Shape, version: int) -> Iterator[Question]:
    for column in shape.columns:
        found = _carried(shape, column, version)
        if not isinstance(found, Carried):
            continue
        value = f"t.{quote_identifier(found.name, Dialect.SPARK)}"
        if predicate := lost_sql(value, found.shape):
            if column.name not in shape.keys:
                # Nothing shows what a delete of a flat event repeats of the row beside its key.
                predicate = f"{_ALIVE} AND {predicate}"
            type_ = print_type(column.type, Dialect.SPARK)
            yield Question(column=column.name, type=type_, value=value, predicate=predicate)


_ALIVE: Final = f"t.{quote_identifier(OP, Dialect.SPARK)} <> {quote_string(DELETE, Dialect.SPARK)}"


def _carried(shape: Shape, column: Column, version: int) -> Carried | Fill:
    return carried(
        shape.history, column=column, layout=shape.layout, version=version, fill_defaults=shape.fill_defaults
    )


def unfit_defaults(shape: Shape, versions: Iterable[int]) -> tuple[Diagnostic, ...]:
    """Find defaults that rows of these versions read, and that do not fit their column's present type."""
    oldest = min(versions, default=shape.version.version)
    read = (c for c in shape.columns if shape.fill_defaults and oldest < c.since)
    return tuple(found for column in read if (found := _unfit_default(shape, column)) is not None)


def _unfit_default(shape: Shape, column: Column) -> Diagnostic | None:
    try:
        frozen_default(shape.history, column)
    except ValueError as error:
        type_ = print_type(column.type, Dialect.SPARK)
        return diagnose(
            "SS125",
            f"column {column.name}: the default that older rows read does not fit {type_}: {error}",
            fix="Set policies.add to null if older rows should read NULL. Or compact, where the table shows the "
            "column already: then the default counts as any value of it.",
        )
    return None


def stuck(shape: Shape, versions: Iterable[int]) -> tuple[Diagnostic, ...]:
    """Find columns whose values in rows of these versions cannot be shown under a shape.

    Each change of type was fine by itself (boolean to int, then int to double); the one over both of them is not.
    """
    older = sorted(versions)
    return tuple(found for column in shape.columns if (found := _stuck(shape, column, older)) is not None)


def _stuck(shape: Shape, column: Column, versions: Iterable[int]) -> Diagnostic | None:
    for version in versions:
        try:
            _carried(shape, column, version)
        except ValueError as error:
            type_ = print_type(column.type, Dialect.SPARK)
            return diagnose(
                "SS120",
                f"column {column.name}: what rows of version {version} hold cannot become {type_} ({error})",
                fix="Compact: rows that are rewritten as the table has them now can follow; then apply goes on.",
            )
    return None


def detoured(current: Shape, desired: Shape, versions: Iterable[int]) -> tuple[Diagnostic, ...]:
    """Find columns that rows of these versions hold in a type before the last one, and that has to come in between.

    Made at once of what is stored, their values would read otherwise than made of what they show now, and than where a
    compaction ran in time. Only the version that the table has counts: one that was held never showed anything.
    """
    now, older = {c.life: c for c in current.columns}, sorted(versions)
    both = ((now[column.life], column) for column in desired.columns if column.life in now)
    return tuple(found for before, after in both if (found := _detoured(current, before, after, older)) is not None)


def _detoured(current: Shape, before: Column, after: Column, versions: Iterable[int]) -> Diagnostic | None:
    for version in versions:
        then = _column_then(current, before, version)
        if then is not None and not is_the_same_at_once(then.encoding, before.encoding, after.encoding):
            stored, shown, wanted = (print_type(c.type, Dialect.SPARK) for c in (then, before, after))
            return diagnose(
                "SS127",
                f"column {after.name}: rows of version {version} still hold {stored}; "
                f"as {wanted} they would read otherwise than by way of {shown}",
            )
    return None


def _column_then(current: Shape, column: Column, version: int) -> Column | None:
    """Return the column as rows of this version have its value: stored, or as the default that older rows read."""
    phase = current.layout.phase(column.life, version)
    if phase is not None:
        return current.history.column(column.life, phase.since)
    reads_default = current.fill_defaults and born_default(current.history, column) is not None
    return current.history.born(column.life) if reads_default else None


def to_rewrite(shape: Shape, manifest: Manifest) -> tuple[Segment, ...]:
    """Return the segments that the next compaction rewrites, changes or none.

    The view converts or fills their rows, their files carry a dropped column, or they are sorted by another key. A
    segment whose rows read as if the newest version had stored them stays: what a file lacks reads NULL by itself.
    """
    current = shape.layout.last_phases
    names = {current[c.life].name for c in shape.columns} | {m.name for m in shape.own_columns}
    key = tuple(name for name, _ in shape.key_columns)
    older = {version for version in manifest.segment_versions if version < shape.version.version}
    converted = _converted(shape, older)
    return tuple(
        s
        for s in manifest.segments
        if s.schema_version in converted or s.sorted_by != key or not names.issuperset(s.columns)
    )


def outdated(shape: Shape, manifest: Manifest) -> frozenset[str]:
    """Return the names of what `to_rewrite` returns."""
    return frozenset(segment.name for segment in to_rewrite(shape, manifest))


def _converted(shape: Shape, versions: AbstractSet[int]) -> frozenset[int]:
    """Return the versions whose rows have a value that stands, or reads, otherwise than the table has it now.

    A default counts whatever the policy is: under `add: null` a rewrite settles that older rows have NULL.
    """
    current, baseline = shape.layout.last_phases, shape.layout.baseline
    found: set[int] = set()
    for column in shape.columns:
        before = {version for version in versions if version < column.life.since}
        if before and born_default(shape.history, column) is not None:
            found |= before
        since = current[column.life].since
        found |= {version for version in versions - before if max(version, baseline) < since}
    return frozenset(found)
