"""Which physical columns a long-lived table has, and where each logical column of each version stands in it.

Hive maps a partition's columns to the table's by position, so a table is only ever altered by appending columns.
A life that keeps its type keeps its physical column, under any name; a life whose type changes, and a name that
comes back, get a new one with a numbered suffix. Everything follows from the subject's history and the version that
the table was created with (its baseline), so every process computes the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from schemasync.core.history import History
from schemasync.core.names import RESERVED_COLUMNS, TakenNames
from schemasync.core.reshape import Keep, reshape
from schemasync.core.schema import Column, Envelope, Life
from schemasync.core.types import Primitive, Type

SEGMENT: Final = "segment"
"""The partition column."""
OP: Final = "__op"
TS_MS: Final = "__ts_ms"
OFFSET: Final = "__offset"
SCHEMA_VERSION: Final = "__schema_version"
ADMITTED_MS: Final = "__admitted_ms"
TOMBSTONE: Final = "__tombstone"
"""Says of a row that it is a remembered delete, as `OP` does, at next to no cost for a scan: nearly all rows have NULL
there, which are runs of a few bytes, where each operation is a text that is compared."""

METADATA: Final = (("__op", OP), ("__ts_ms", TS_MS), ("__segment", SEGMENT))
"""What ``view: {metadata: true}`` adds to a view, and the physical columns that it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalColumn:
    """One data column of the long-lived table: a life's values from version ``since`` on, while the type held."""

    name: str
    type: Type
    life: Life
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaColumn:
    """One of our own columns, beside the row's."""

    name: str
    type: Primitive
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The physical columns of a table from its baseline to one version, in the order in which they were appended."""

    baseline: int
    version: int
    columns: tuple[PhysicalColumn, ...]
    _phases: Mapping[Life, tuple[PhysicalColumn, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the columns by life: wide tables ask for each of theirs."""
        found: dict[Life, list[PhysicalColumn]] = {}
        for column in self.columns:
            found.setdefault(column.life, []).append(column)
        object.__setattr__(self, "_phases", {life: tuple(phases) for life, phases in found.items()})

    def phases(self, life: Life) -> tuple[PhysicalColumn, ...]:
        """Return all columns in which values of a life stand, in the order of their versions."""
        return self._phases.get(life, ())

    def phase(self, life: Life, version: int) -> PhysicalColumn | None:
        """Return where that life's values stand in rows written under ``version``; None before it began."""
        phases = [c for c in self.phases(life) if c.since <= max(version, self.baseline)]
        return phases[-1] if phases and version >= life.since else None

    @property
    def last_phases(self) -> Mapping[Life, PhysicalColumn]:
        """By life: where its values stand in rows of the layout's own version, or of the last one that had it."""
        return {life: phases[-1] for life, phases in self._phases.items()}

    def current(self, column: Column) -> PhysicalColumn:
        """Return where a column of the layout's own version stands."""
        found = self.phase(column.life, self.version)
        if found is None:  # pragma: no cover
            raise AssertionError(f"layout of version {self.version} lacks {column.name}")
        return found


def lay_out(history: History, *, baseline: int, version: int) -> Layout:
    """Walk the versions from the table's baseline on and append a physical column per phase of each life."""
    columns: list[PhysicalColumn] = []
    taken, latest = TakenNames(RESERVED_COLUMNS), dict[Life, PhysicalColumn]()
    for step in history.between(baseline, version):
        for column in step.columns:
            last = latest.get(column.life)
            if last is None or not _goes_on(history, last, column):
                name = taken.take(column.name.lower())
                latest[column.life] = PhysicalColumn(name=name, type=column.type, life=column.life, since=step.version)
                columns.append(latest[column.life])
    return Layout(baseline=baseline, version=version, columns=tuple(columns))


def _goes_on(history: History, phase: PhysicalColumn, column: Column) -> bool:
    """Tell whether a column's values can stand where those of its present phase do: same type, same members."""
    before = history.column(column.life, phase.since)
    return before is not None and isinstance(reshape(before.encoding, column.encoding), Keep)


def shown_metadata(columns: Iterable[Column]) -> tuple[tuple[str, str], ...]:
    """Return `METADATA` with the names that a view shows beside these columns: the row's own come first."""
    taken = TakenNames(c.name for c in columns)
    return tuple((taken.take(wanted), physical) for wanted, physical in METADATA)


def meta_columns(envelope: Envelope) -> tuple[MetaColumn, ...]:
    """Return our own columns for a table whose events have this envelope."""
    sequence = (
        MetaColumn(name=f"__seq{n}", type=field.type, comment=f"ordering key {n}: {field}")
        for n, field in enumerate(envelope.ordering, start=1)
    )
    return (
        MetaColumn(name=OP, type=Primitive.STRING, comment="c create, u update, r snapshot read, d delete"),
        MetaColumn(name=TS_MS, type=Primitive.BIGINT, comment="time of the event, ms since 1970 UTC"),
        *sequence,
        MetaColumn(name=OFFSET, type=Primitive.BIGINT, comment="place in the topic partition, where known"),
        MetaColumn(name=SCHEMA_VERSION, type=Primitive.INT, comment="subject version the row was written under"),
        MetaColumn(name=ADMITTED_MS, type=Primitive.BIGINT, comment="when schemasync admitted it, ms since 1970 UTC"),
        MetaColumn(name=TOMBSTONE, type=Primitive.BOOLEAN, comment="TRUE in a deleted row, NULL in all others"),
    )


def ordering_columns(envelope: Envelope) -> tuple[str, ...]:
    """Return the columns by which the newest row of a key is the first in descending order.

    What the source said comes first, then the place in the topic, then the time of admission: of two rows that
    nothing else tells apart, the one admitted later wins. A folded row keeps all of these, so it ties only with the
    very delta that it came from; there `SEGMENT`, ascending, lets the base win.
    """
    return (*(f"__seq{n}" for n in range(1, len(envelope.ordering) + 1)), OFFSET, ADMITTED_MS)
