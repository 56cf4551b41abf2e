"""What is in a table: its segments, the landed files they were made from, and what still has to be cleaned up.

One manifest is one published state; it is written once, beside the data, and the table's property
``schemasync.state`` says which one is in force. A *generation* is a state of the base; between two of them every
admission adds a delta segment and publishes a state of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field

FORMAT: Final = 3
"""Version of this file format; a newer one is refused rather than misread."""

_STATE: Final = re.compile(r"(?P<generation>[0-9]{6,})(-(?P<admission>[0-9]{4,}))?")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StateId(_Value):
    """Names a published state: the base's generation, and how many admissions followed it."""

    generation: int = Field(ge=0)
    admission: int = Field(ge=0)

    def __str__(self) -> str:
        """Return ``000007`` for a generation, ``000007-0002`` for an admission after it."""
        return f"{self.generation:06}-{self.admission:04}" if self.admission else f"{self.generation:06}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` wrote.

        Raises:
            ValueError: it is not one.
        """
        found = _STATE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no state")
        return cls(generation=int(found["generation"]), admission=int(found["admission"] or 0))

    def __lt__(self, other: StateId) -> bool:
        """Order states as they were published."""
        return (self.generation, self.admission) < (other.generation, other.admission)


class SegmentKind(Enum):
    """What a segment is: a shard of the base, or changes admitted since."""

    BASE = "base"
    DELTA = "delta"


class DataFile(_Value):
    """A file of ours: path relative to the table's location."""

    path: str
    rows: int
    bytes: int


class Segment(_Value):
    """One partition of the long-lived table. Its directory is written once and never changes."""

    name: str
    kind: SegmentKind
    location: str
    """Directory, relative to the table's location."""
    files: tuple[DataFile, ...]
    rows: int
    bytes: int
    schema_version: int
    """Subject version that every row was projected to."""
    columns: tuple[str, ...]
    """Physical columns that the files carry."""
    toasted: tuple[str, ...] = ()
    """Physical columns in which rows have a placeholder for a value that the source did not send."""
    events: int = 0
    """Landed events that a delta was made from."""
    tombstones: int = 0
    """Rows of a shard that are remembered deletes."""
    sorted_by: tuple[str, ...] = ()
    """Physical columns by which every file is sorted: the key's when it was written."""
    low: tuple[str, ...] | None = None
    """Lowest key that a shard may hold (`schemasync.core.keys.print_key`); None for the first one."""
    created_ms: int = 0


class AdmittedFile(_Value):
    """A file that the sink wrote and a segment now holds; identity is path, size and time of change."""

    path: str
    """Relative to the table's location."""
    bytes: int
    rows: int
    modified_ms: int
    writer_version: int
    segment: str
    folded_in: int | None = None
    """Generation whose base holds it, None while only a delta does."""
    folded_ms: int | None = None
    lost: int = 0
    """Values in it that the table shows as NULL: their types do not hold them, so the file itself is kept."""


class Superseded(_Value):
    """A segment whose rows a published base holds; its partition goes after the reader grace, its files later."""

    segment: str
    location: str
    schema_version: int
    since_ms: int
    registered: bool = True
    """Whether the metastore still has a partition for it (a rewritten shard's old directory has none)."""
    hidden: bool = False
    """Whether that partition points to an empty directory: its rows, beside the new base, would show again."""
    toasted: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()


class Contents(_Value):
    """What a view of one state has to reckon with.

    Schema versions of rows, physical columns with placeholders to carry a value for, and whether the base alone has it
    all (``settled``): then every row of it is the newest of its key.
    """

    versions: frozenset[int] = frozenset()
    toasted: frozenset[str] = frozenset()
    settled: bool = False


class Manifest(_Value):
    """One published state of one table."""

    format: int = FORMAT
    table: str
    subject: str
    state: StateId
    parent: StateId | None
    schema_version: int
    keyed: bool
    """Whether rows have a key; without one every event is a row, and no row may ever be registered twice."""
    published_ms: int
    next_delta: int = 1
    next_shard: int = 1
    """Number of the next shard that a split makes."""
    segments: tuple[Segment, ...] = ()
    superseded: tuple[Superseded, ...] = ()
    admitted: tuple[AdmittedFile, ...] = ()

    @property
    def base(self) -> tuple[Segment, ...]:
        """The shards."""
        return tuple(s for s in self.segments if s.kind is SegmentKind.BASE)

    @property
    def deltas(self) -> tuple[Segment, ...]:
        """What was admitted since the base was written, oldest first."""
        return tuple(s for s in self.segments if s.kind is SegmentKind.DELTA)

    @property
    def met(self) -> tuple[Superseded, ...]:
        """Folded deltas that readers may still meet."""
        return tuple(s for s in self.superseded if s.registered and not s.hidden)

    @property
    def segment_versions(self) -> frozenset[int]:
        """Subject versions of the rows that readers may still meet; superseded segments count while registered."""
        folded = {s.schema_version for s in self.met}
        return frozenset(s.schema_version for s in self.segments) | folded

    @property
    def toasted(self) -> frozenset[str]:
        """Physical columns in which readers may meet a placeholder; superseded segments count while registered."""
        folded = {name for s in self.met for name in s.toasted}
        return frozenset(name for s in self.segments for name in s.toasted) | folded

    @property
    def contents(self) -> Contents:
        """What the view has to reckon with.

        Folded deltas count only beside others: a view of the base alone does not meet them.
        """
        if self.keyed and self.base and not self.deltas:
            return Contents(versions=frozenset(s.schema_version for s in self.base), settled=True)
        return self.everything

    @property
    def everything(self) -> Contents:
        """What a view of all that is registered has to reckon with: such a view is right in every state."""
        return Contents(versions=self.segment_versions, toasted=self.toasted)

    def knows(self, path: str, size: int) -> bool:
        """Tell whether a landed file was admitted already."""
        return any(f.path == path and f.bytes == size for f in self.admitted)


def empty(table: str, subject: str, *, schema_version: int, keyed: bool) -> Manifest:
    """Return the state of a table that has just been created: generation 0, no segments."""
    return Manifest(
        table=table,
        subject=subject,
        state=StateId(generation=0, admission=0),
        parent=None,
        schema_version=schema_version,
        keyed=keyed,
        published_ms=0,
    )


def after_admission(
    current: Manifest, *, segment: Segment, files: Iterable[AdmittedFile], schema_version: int, now_ms: int
) -> Manifest:
    """Return the state in which one more delta is visible."""
    state = StateId(generation=current.state.generation, admission=current.state.admission + 1)
    return current.model_copy(
        update={
            "state": state,
            "parent": current.state,
            "schema_version": schema_version,
            "published_ms": now_ms,
            "next_delta": current.next_delta + 1,
            "segments": (*current.segments, segment),
            "admitted": (*current.admitted, *files),
        }
    )
