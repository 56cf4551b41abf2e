"""What is in a table: its segments, the landed files they were made from, and what still has to be cleaned up.

One manifest is one published state; it is written once, beside the data, and the table's property
``schemasync.state`` says which one is in force. A *generation* is a state of the base; between two of them every
admission adds a delta segment and publishes a state of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import groupby
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from schemasync.core.changed_keys import ChangedKeys, fit
from schemasync.core.keys import Bound
from schemasync.core.moments import Moment
from schemasync.core.partitioning import partition_name

FORMAT: Final = 14
"""Version of this file format; a newer one is refused rather than misread."""

_STATE: Final = re.compile(r"(?P<generation>[0-9]{6,})(-(?P<admission>[0-9]{4,}))?")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StateId(_Value):
    """Names a published state: the base's generation, and a number that grows with each state of that base."""

    generation: int = Field(ge=0)
    admission: int = Field(ge=0)

    def __str__(self) -> str:
        """Return ``000007`` for a generation's first number, ``000007-0002`` for a later one."""
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

    @property
    def after(self) -> StateId:
        """The next number for a state of the same base."""
        return StateId(generation=self.generation, admission=self.admission + 1)

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
    placeholders: tuple[str, ...] = ()
    """What was configured to be one when the rows were admitted."""
    events: int = 0
    """Landed events that a delta was made from."""
    tombstones: int = 0
    """Rows of a shard that are remembered deletes."""
    sorted_by: tuple[str, ...] = ()
    """Physical columns by which every file is sorted: the key's when it was written."""
    low: Bound | None = None
    """Lowest key that a shard may hold (`schemasync.core.keys.print_key`); None for the first one."""
    key_range: tuple[int, int] | tuple[Bound, Bound] | None = None
    """Lowest and highest key of its rows: numbers where it is one whole number. None where a key has no order, or one
    of these lacks a value."""
    oldest: Moment | None = None
    """No row of it is older (`schemasync.core.moments`); None where that is not known."""
    newest: Moment | None = None
    """No row of it is newer; None where that is not known."""
    newest_then: Moment | None = None
    """Of the rows with that moment none has a later one in the second ordering column; None where that is not known."""
    ahead: bool = False
    """Whether every row of a delta is newer than what the base has of its key."""
    ahead_of_deltas: bool = False
    """Whether every row of a delta is newer than what the deltas before it have of its key."""
    touches: tuple[str, ...] | None = None
    """Shards of the base in whose ranges a delta has keys; None where that is not known, or where there are many."""
    touched_bytes: int | None = None
    """Bytes of all shards in whose ranges a delta has keys; None where these are not known."""
    changed: ChangedKeys | None = None
    """Keys of a delta that is ahead, where a view can name them."""
    created_ms: int = 0
    partition_by: tuple[str, ...] = ()
    """User partitions of the table: files lie in a directory of their values below the segment's."""

    @property
    def whole_numbers(self) -> tuple[int, int] | None:
        """Lowest and highest key of its rows, where the key is one whole number."""
        match self.key_range:
            case int() as low, int() as high:
                return low, high
            case _:
                return None

    @property
    def partitions(self) -> dict[str, str]:
        """Name of each partition -> its directory, relative to the table's location."""
        if not self.partition_by:
            return {self.name: self.location}
        directories = sorted({f.path.rpartition("/")[0] for f in self.files})
        return {partition_name(self.name, d.removeprefix(f"{self.location}/")): d for d in directories}

    def superseded(self, now_ms: int) -> Superseded:
        """Return what a state lists of it that no longer has it."""
        return Superseded(segment=self.name, location=self.location, since_ms=now_ms)


FEW_ROWS: Final = 1_000_000
"""Rows of changes whose keys every task may hold, some 100 MB of them: engines guess sizes, and shuffle the base."""
WORD: Final = 32
"""So many whole numbers that follow each other are one row where keys of changes are packed, a bit for each.

Fewer than the 53 bits of a double, in which engines divide.
"""
MOST_WORDS: Final = 1_000_000
"""Such rows that every task may hold: the lowest and the highest key may lie 32 million apart."""
APART: Final = 2
"""Shards that no change falls into are read apart where they have more than this many times the rows of the others.
Measured per row of the base: adding up two scans costs Spark 100 ns, a look into the changes' keys 70 to 200 ns."""
HASHED_FROM: Final = FEW_ROWS // 8
"""Hashes of keys are written once changes have so many rows: deltas that are there already when all keys become too
many for every task have them then, or are soon merged."""
FEW_DELTAS: Final = 8
"""So many are joined with each other: of a key that is in all of n deltas the join makes n (n + 1) / 2 rows."""


class AdmittedFile(_Value):
    """A file that the sink wrote and a segment now holds; identity is path, size and time of change."""

    path: str
    """Relative to the table's location."""
    bytes: int
    rows: int
    modified_ms: int
    writer_version: int
    segment: str
    """The delta that holds it; of one that is folded, the delta that held it last."""
    folded_in: int | None = None
    """Generation in which a compaction took it in, folded into the base or merged beside it; None while none has."""
    folded_ms: int | None = None
    """When that was published."""
    lost: int = 0
    """Values in it that the table shows as NULL, as their types do not hold them, and rows of the whole admission that
    did not count though the clock says that they are newer: the file itself is kept."""

    def taken_in(self, *, generation: int, now_ms: int) -> AdmittedFile:
        """Return it as a compaction leaves it; one that an earlier compaction took in goes by the time of that."""
        if self.folded_ms is not None:
            return self
        return self.model_copy(update={"folded_in": generation, "folded_ms": now_ms})


class Superseded(_Value):
    """A segment that is not in the state in force any more; its partition goes after the reader grace, then its files.

    Until then whoever still has the view of an earlier state finds everything that it names, unchanged.
    """

    segment: str
    location: str
    since_ms: int
    registered: bool = True
    """Whether the metastore may still have a partition for it."""


Names = tuple[str, str]
"""The first and the last of some segments whose names follow each other: nothing else has a name between them."""


class Contents(_Value):
    """What a view of one state has to reckon with.

    Schema versions of rows, physical columns with placeholders to carry a value for, what these are
    (`Manifest.placeholders`), and the segments that it reads: all that are registered where it is no ``known`` state.
    ``few``: the keys of the changes fit the memory of every task that joins them; ``packed``: only as bits, `WORD` keys
    to a row. ``unique``: the base has one row per key. ``ahead``: so does each delta, all of these are newer than the
    base's, and none has a key in a shard that is ``untouched``. Few such shards are read like the others.
    ``ascending``: the deltas are few, and rows of each are newer than those before it. ``changed``: the keys of each
    delta by its name, oldest first, where the view can name them all and each delta is newer than those before it; not
    their hashes while all keys fit the memory of every task.
    """

    versions: frozenset[int] = frozenset()
    toasted: frozenset[str] = frozenset()
    placeholders: frozenset[str | None] = frozenset()
    base: tuple[Names, ...] = ()
    untouched: tuple[Names, ...] = ()
    deltas: tuple[Names, ...] = ()
    known: bool = True
    few: bool = False
    packed: bool = False
    unique: bool = False
    ahead: bool = False
    ascending: bool = False
    changed: tuple[tuple[str, ChangedKeys], ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the base alone has it all, and every row of it is the newest of its key."""
        return self.unique and bool(self.base) and not self.deltas

    @property
    def segments(self) -> tuple[Names, ...]:
        """All segments that the view reads."""
        return (*self.untouched, *self.base, *self.deltas)


class Manifest(_Value):
    """One published state of one table."""

    format: int = FORMAT
    table: str
    subject: str
    state: StateId
    parent: StateId | None
    schema_version: int
    made_under: int = 0
    """Version that the table had when it was written: its rows were made, and looked at, for that one alone."""
    keys: tuple[str, ...] | None = None
    """Key that the table had then, by the names of that version; None where that is not known."""
    keyed: bool
    """Whether rows have a key; without one every event is a row, and no row may ever be registered twice."""
    published_ms: int
    compacted_ms: int = 0
    """When a compaction last folded changes, merged them beside the base, or published that neither would pay."""
    next_delta: int = 1
    next_shard: int = 1
    """Numbers of the next segments: no name is ever given twice."""
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
    def passing(self) -> frozenset[str]:
        """Superseded segments that the metastore may still have partitions for."""
        return frozenset(s.segment for s in self.superseded if s.registered)

    @property
    def locations(self) -> frozenset[str]:
        """Directories of all segments, of superseded ones, too."""
        return frozenset(s.location for s in self.segments) | {s.location for s in self.superseded}

    @property
    def segment_versions(self) -> frozenset[int]:
        """Subject versions of the rows."""
        return frozenset(s.schema_version for s in self.segments)

    @property
    def toasted(self) -> frozenset[str]:
        """Physical columns in which rows have a placeholder."""
        return frozenset(name for s in self.segments for name in s.toasted)

    @property
    def placeholders(self) -> frozenset[str | None]:
        """The texts that such rows may have there; None is the one that is configured now."""
        return frozenset(text for s in self.segments if s.toasted for text in s.placeholders or (None,))

    @property
    def contents(self) -> Contents:
        """What the view has to reckon with.

        Placeholders count only beside changes: those of a base alone have nothing that could answer them.
        """
        ahead = self.keyed and bool(self.base and self.deltas) and all(d.ahead for d in self.deltas)
        everywhere = not ahead or bool(self.toasted) or any(d.touches is None for d in self.deltas)
        names = {name for d in self.deltas for name in d.touches or ()}
        touched = [s for s in self.base if everywhere or s.name in names]
        if sum(s.rows for s in self.base) <= (1 + APART) * sum(s.rows for s in touched):
            touched = list(self.base)
        untouched = {s.name for s in self.base} - {s.name for s in touched}
        ahead = ahead and not self.toasted
        ascending = ahead and len(self.deltas) <= FEW_DELTAS and all(d.ahead_of_deltas for d in self.deltas[1:])
        few = bool(self.deltas) and sum(d.rows for d in self.deltas) <= FEW_ROWS
        packed = ahead and not few and self._words() <= MOST_WORDS
        toasted = self.toasted if self.deltas or not self.keyed else frozenset()
        return Contents(
            versions=self.segment_versions,
            toasted=toasted,
            placeholders=self.placeholders if toasted else frozenset(),
            base=self._named({s.name for s in touched}),
            untouched=self._named(untouched),
            deltas=self._named({s.name for s in self.deltas}),
            few=few,
            packed=packed,
            unique=self.keyed,
            ahead=ahead,
            ascending=ascending,
            changed=self._changed(hashes=not (few or packed)) if ascending else (),
        )

    def _changed(self, *, hashes: bool) -> tuple[tuple[str, ChangedKeys], ...]:
        named = named_keys(self.deltas) or ()
        return named if hashes or not any(keys.hashed for _, keys in named) else ()

    def _words(self) -> float:
        """Return in how many words the keys of all deltas are at most, infinity where that is not known."""
        filled = [d for d in self.deltas if d.rows]
        ranges = [d.whole_numbers for d in filled if d.whole_numbers is not None]
        if not ranges or len(ranges) < len(filled):
            return math.inf
        return (max(high for _, high in ranges) - min(low for low, _ in ranges)) // WORD + 2

    def _named(self, wanted: AbstractSet[str]) -> tuple[Names, ...]:
        """Write segments as few ranges of names between which no other partition is registered.

        A later segment never has a name inside of them: numbers only grow, and are written with as many digits.
        """
        there = self.passing | {s.name for s in self.segments}
        runs = (list(run) for _, run in groupby(sorted(there), key=wanted.__contains__))
        return tuple((run[0], run[-1]) for run in runs if run[0] in wanted)

    def followed(self, *, now_ms: int, **changes: Any) -> Manifest:
        """Return the next state of the same base, with these fields changed."""
        update = {"state": self.state.after, "parent": self.state, "published_ms": self.next_ms(now_ms), **changes}
        return self.model_copy(update=update)

    def next_ms(self, now_ms: int) -> int:
        """Return the time of a state that follows: never before this one, whatever the clock did."""
        return max(now_ms, self.published_ms)


def named_keys(deltas: Iterable[Segment]) -> tuple[tuple[str, ChangedKeys], ...] | None:
    """Return the keys of each delta that has rows, by its name; None where a view cannot name them all."""
    filled = [d for d in deltas if d.rows]
    found = tuple((d.name, d.changed) for d in filled if d.changed is not None)
    return found if len(found) == len(filled) and fit(keys for _, keys in found) else None


def new_run_directory(kind: SegmentKind, number: int, token: str) -> str:
    """Return the directory that a run writes to; ``number`` is that of the generation, or of the delta."""
    return f"{kind.value}/g={number:06}/{token}"


def run_directory(location: str) -> str:
    """Return the directory that all segments of one run share: ``base/g=000007/<token of the run>``."""
    return "/".join(location.split("/")[:3])


_DIGITS: Final = 8
"""Names are compared as text: all numbers have as many digits."""

_SHARD: Final = "base_s"


def delta_name(number: int) -> str:
    """Return the name of a segment of changes."""
    return f"delta_{number:0{_DIGITS}}"


def shard_name(number: int) -> str:
    """Return the name of a shard of the base."""
    return f"{_SHARD}{number:0{_DIGITS}}"


def shard_directory(run: str, shard: str) -> str:
    """Return the directory of a shard of the base in that of the run which writes it."""
    return f"{run}/s={shard.removeprefix(_SHARD)}"


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
    return current.followed(
        now_ms=now_ms,
        schema_version=schema_version,
        next_delta=current.next_delta + 1,
        segments=(*current.segments, segment),
        admitted=(*current.admitted, *files),
    )
