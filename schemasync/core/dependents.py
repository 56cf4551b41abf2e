"""Views of other people that read a table or its dedup view, and what a schema change does to them.

Nothing here changes a view: its owner is told. What each view reads comes in through a `ViewReader`; which of its
columns that touches, also through views between, is decided here from the table's two shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from schemasync.core import ddl
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.drift import same_type
from schemasync.core.layout import SEGMENT, PhysicalColumn
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect
from schemasync.core.ports import HiveColumn, HiveTable
from schemasync.core.properties import SUBJECT, is_ours
from schemasync.core.schema import Column
from schemasync.core.shape import Shape
from schemasync.core.type_strings import print_type
from schemasync.core.view_origin import Unclear, ViewQuery, query_of

Relation = tuple[str, str]
"""Database and name of a table or view, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Which relations a query reads, and of each the columns that it uses (lower case); None: all of them."""

    columns: Mapping[Relation, frozenset[str] | None]


class ViewReader(Protocol):
    """Understands the queries of views."""

    def read(self, query: ViewQuery) -> Reads | Unclear:
        """Tell what a query reads; a column that may belong to several relations counts for each."""
        ...


class Effect(Enum):
    """What happens to a column that a view uses, the gravest last; the value is what ``check --json`` prints."""

    STALE = "stale"
    """Of the table itself: newer rows do not fill it."""
    CHANGED = "changed"
    SHIFTED = "shifted"
    """New, in another place or of another type: Trino refuses a view that handed on others by a star when it was made.

    Spark and Hive note which columns a star was.
    """
    GONE = "gone"


_ORDER: Final = tuple(Effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One column of the table or its view, and what happens to it; ``note`` ends a sentence about it.

    Without a ``column`` it is the whole relation, whatever of it is used.
    """

    relation: str
    column: str
    effect: Effect
    note: str


Impact = Mapping[Relation, tuple[Touched, ...]]
"""What a schema change does to the columns of the table and of its dedup view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A view that reads the table or its dedup view, maybe through others.

    ``reads`` are those of the two that it reads itself, ``through`` the views between; ``touched`` are the columns
    that it or a view between uses and that do not stay as they are. ``unclear`` says why nothing certain can be told,
    and is empty where all is known.
    """

    view: str
    reads: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    touched: tuple[Touched, ...] = ()
    unclear: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return ``{"view", "reads", "through", "columns": [{"relation", "column", "effect"}], "unclear"}``."""
        return {
            "view": self.view,
            "reads": list(self.reads),
            "through": list(self.through),
            "columns": [{"relation": t.relation, "column": t.column, "effect": t.effect.value} for t in self.touched],
            "unclear": self.unclear or None,
        }


def impact(target: TableTarget, current: Shape | None, desired: Shape | None) -> Impact:
    """Compare what readers of the table and of its view see under two shapes; without both nothing changes."""
    table, view = (_relation(target.database, name) for name in (target.table, target.view))
    if current is None or desired is None:
        return {table: (), view: ()}
    return {
        table: (
            *_stale(target.full_name, current, desired),
            *_shifted(target.full_name, *(_names(s.layout.columns) for s in (current, desired))),
        ),
        view: tuple(_unlike(f"{target.database}.{target.view}", current, desired)),
    }


def renamed_view(target: TableTarget, old: str) -> Impact:
    """Return what becomes of the dedup view under the name that it had: it is dropped."""
    note = f"which is called {target.view} then"
    whole = Touched(relation=f"{target.database}.{old}", column="", effect=Effect.GONE, note=note)
    return {_relation(target.database, old): (whole,)}


def taken_over(target: TableTarget, table: HiveTable, desired: Shape) -> Impact:
    """Compare what readers of somebody else's table see in it, and in the one that takes its place."""
    after = {c.name.lower(): c.type for c in map(ddl.hive_column, ddl.expected_columns(desired))}
    after |= {p.name.lower(): ddl.hive_type(p.type) for p in desired.partitions}
    after[SEGMENT] = "string"
    columns = (*table.columns, *table.partition_keys)
    return {_relation(target.database, target.table): tuple(_replaced(target.full_name, columns, after))}


def _replaced(relation: str, columns: Iterable[HiveColumn], after: Mapping[str, str]) -> Iterator[Touched]:
    for name, type_ in ((c.name.lower(), c.type) for c in columns):
        if name not in after:
            yield Touched(relation=relation, column=name, effect=Effect.GONE, note="which goes away")
        elif not same_type(type_, after[name]):
            note = f"which changes from {type_} to {after[name]}"
            yield Touched(relation=relation, column=name, effect=Effect.CHANGED, note=note)


def _relation(database: str, name: str) -> Relation:
    return database.lower(), name.lower()


def _unlike(relation: str, current: Shape, desired: Shape) -> Iterator[Touched]:
    """Yield the columns of the dedup view that are gone, or another thing under their old name."""
    after = {c.name.lower(): c for c in desired.columns}
    names = {c.life: c.name for c in desired.columns}
    for column in current.columns:
        name = column.name.lower()
        if name not in after:
            renamed = names.get(column.life)
            note = f"which is called {renamed} then" if renamed else "which goes away"
            yield Touched(relation=relation, column=name, effect=Effect.GONE, note=note)
        elif note := _change(column, after[name]):
            yield Touched(relation=relation, column=name, effect=Effect.CHANGED, note=note)
            if column.type != after[name].type:
                yield Touched(relation=relation, column=name, effect=Effect.SHIFTED, note=note)
    yield from _shifted(relation, _names(current.columns), list(after))


def _names(columns: Iterable[Column | PhysicalColumn]) -> list[str]:
    return list(dict.fromkeys(c.name.lower() for c in columns))


def _change(column: Column, after: Column) -> str:
    """Say how a column of one name differs, empty where readers see no difference."""
    if column.type != after.type:
        before, then = (print_type(c.type, Dialect.SPARK) for c in (column, after))
        return f"which changes from {before} to {then}"
    return "" if column.life == after.life else "which is another column of the same name then"


def _shifted(relation: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Touched]:
    """Yield the columns that come, and those that stand elsewhere among the ones that stay."""
    moved = zip((n for n in before if n in after), (n for n in after if n in before), strict=True)
    notes = {name: "which is new there" for name in after if name not in before}
    notes |= {name: "which stands elsewhere then" for name, other in moved if name != other}
    for name, note in notes.items():
        yield Touched(relation=relation, column=name, effect=Effect.SHIFTED, note=note)


def _stale(relation: str, current: Shape, desired: Shape) -> Iterator[Touched]:
    """Yield the physical columns that rows of the new version do not fill: the table itself only gains columns."""
    filled = {desired.layout.current(c).name for c in desired.version.columns}
    for column in current.version.columns:
        name = current.layout.current(column).name
        if name not in filled:
            note = "which newer rows leave NULL"
            yield Touched(relation=relation, column=name, effect=Effect.STALE, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Which views are schemasync's: of the table's ``subject`` only those under names that it gives to any.

    A copy that somebody made of the view by SHOW CREATE TABLE has its properties, too, and names the segments of its
    day. Of other subjects no view reads this table.
    """

    subject: str
    relations: frozenset[Relation]

    def has(self, view: HiveTable) -> bool:
        """Tell whether a view is one of ours."""
        if view.properties.get(SUBJECT) == self.subject:
            return _relation(view.database, view.name) in self.relations
        return is_ours(view.properties)


def find_dependents(
    views: Sequence[HiveTable], reader: ViewReader, impact: Impact, ours: Ours
) -> tuple[Dependent, ...]:
    """Find the views that lead to the table or its dedup view, sorted by name; our own views are left out.

    A view whose text names none of them is not parsed. A view that cannot be understood is a dependent of unknown
    effect, and so is whatever reads it.
    """
    roots = {r: _Known(touched=t) for r, t in impact.items()}
    walk = _Walk(reader=reader, roots=frozenset(roots), known=roots)
    others = {_relation(v.database, v.name): v for v in views if not ours.has(v)}
    candidates = {r: query_of(v) for r, v in sorted(others.items()) if r not in impact}
    while sum(walk.visit(relation, query) for relation, query in candidates.items()):
        pass  # what was learnt of one view may be news for those that read it
    return tuple(walk.dependent(relation) for relation in candidates if relation in walk.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of one relation that leads to the table."""

    touched: tuple[Touched, ...] = ()
    reads: tuple[Relation, ...] = ()
    unclear: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    reader: ViewReader
    roots: frozenset[Relation]
    known: dict[Relation, _Known]
    readings: dict[Relation, Reads | Unclear] = field(default_factory=dict)

    def visit(self, relation: Relation, query: ViewQuery | Unclear) -> bool:
        """Learn what one view reads of what is known by now; tell whether that is news."""
        found = self._look(relation, query)
        if found is None or found == self.known.get(relation):
            return False
        self.known[relation] = found
        return True

    def _look(self, relation: Relation, query: ViewQuery | Unclear) -> _Known | None:
        named = tuple(r for r in self.known if r != relation and _may_name(query, r))
        if not named:
            return None
        reading = self._reading(relation, query)
        if isinstance(reading, Unclear):
            return _Known(reads=named, unclear=reading.reason)
        read = tuple(r for r in named if r in reading.columns)
        return self._known(read, reading, counts=_counts_columns(query)) if read else None

    def _reading(self, relation: Relation, query: ViewQuery | Unclear) -> Reads | Unclear:
        if relation not in self.readings:
            self.readings[relation] = query if isinstance(query, Unclear) else self.reader.read(query)
        return self.readings[relation]

    def _known(self, read: tuple[Relation, ...], reading: Reads, *, counts: bool) -> _Known:
        touched: dict[Touched, None] = {}
        for relation in read:
            known, used = self.known[relation], reading.columns[relation]
            # Of a view between any broken column breaks all of it; of the table and its view only those that are used.
            between = relation not in self.roots
            touched |= {t: None for t in known.touched if between or _reaches(t, used, counts=counts)}
        blind = [".".join(r) for r in read if self.known[r].unclear]
        unclear = f"it reads {', '.join(blind)}, which cannot be understood" if blind else ""
        return _Known(touched=tuple(touched), reads=read, unclear=unclear)

    def dependent(self, relation: Relation) -> Dependent:
        known = self.known[relation]
        direct, between = ([".".join(r) for r in known.reads if (r in self.roots) is root] for root in (True, False))
        return Dependent(
            view=".".join(relation),
            reads=tuple(direct),
            through=tuple(between),
            touched=known.touched,
            unclear=known.unclear,
        )


def _counts_columns(query: ViewQuery | Unclear) -> bool:
    """Tell whether the engine of a view compares what a star is with what it was when the view was made."""
    return isinstance(query, ViewQuery) and query.dialect is Dialect.TRINO


def _reaches(touched: Touched, used: frozenset[str] | None, *, counts: bool) -> bool:
    if not touched.column:
        return True
    if touched.effect is Effect.SHIFTED:
        return counts and used is None
    return used is None or touched.column in used


def _may_name(query: ViewQuery | Unclear, relation: Relation) -> bool:
    return isinstance(query, Unclear) or relation[1] in query.text.lower()


_CODES: Final = {Effect.GONE: "SS501", Effect.CHANGED: "SS502", Effect.STALE: "SS503", Effect.SHIFTED: "SS505"}


_OF_RENAMED: Final = "Make that view anew once this is applied, so that it reads the dedup view by its new name."


def findings(dependents: Sequence[Dependent]) -> Iterator[Diagnostic]:
    """Yield one diagnostic per view and effect; views that use nothing that changes have none."""
    for dependent in dependents:
        through = f" (through {', '.join(dependent.through)})" if dependent.through else ""
        for whole in (t for t in dependent.touched if not t.column):
            message = f"{dependent.view}{through} reads {whole.relation}, {whole.note}"
            yield diagnose(_CODES[whole.effect], message, fix=_OF_RENAMED)
        columns = [t for t in dependent.touched if t.column]
        for effect in reversed(_ORDER):
            if uses := [f"{t.column} of {t.relation}, {t.note}" for t in columns if t.effect is effect]:
                how = "takes by a star" if effect is Effect.SHIFTED else "uses"
                yield diagnose(_CODES[effect], f"{dependent.view}{through} {how} {'; '.join(uses)}")
        if dependent.unclear:
            named = ", ".join((*dependent.reads, *dependent.through))
            yield diagnose("SS504", f"{dependent.view} may read {named}, and cannot be understood: {dependent.unclear}")
