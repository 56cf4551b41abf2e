"""What the watcher does at a tick, decided from values: how far to look, which tables, and when again.

Called by `schemasync.app.watching`, which asks the registry and lists files, by `schemasync.app.tending`, which keeps
what is remembered here of each table, and for their pauses by `schemasync.app.outage` and `schemasync.app.announcing`.
Nothing in it is needed for correctness: whoever starts with an empty memory looks at everything and compares states.
Times and durations are ms; ``draw`` is a random number from 0 to 1, so that many watchers do not ask in step.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from schemasync.core.changes import (
    AddColumn,
    AddField,
    Change,
    ChangeAliases,
    ChangeDefault,
    ChangeDetail,
    ChangeDoc,
    ChangeEnvelope,
    ChangeNullability,
    ReorderColumns,
    WidenColumn,
)
from schemasync.core.compaction import needs_fold, next_fold_ms
from schemasync.core.config import Compaction, Watch
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import FileInfo

LISTS_EVERY_MS: Final = 180_000
"""How often subjects and their versions are listed while a probe says that nothing was registered: equal content
under another subject, and deletions, do not move it."""

QUESTION_MS: Final = 100
"""One question to the registry per this time on average, without a probe and where others register all the time."""

LONG_BYTES: Final = 1_000_000_000
"""To admit more than so many bytes takes minutes, and may take hours. What is less is not left to wait for a compaction
of another table."""

TABLE_PATIENCE_MS: Final = 900_000
"""Longest pause between two tries of a table that fails."""

SERVICE_PATIENCE_MS: Final = 300_000
"""Longest pause between two tries of a registry or a metastore that does not answer."""

SAFE: Final[frozenset[type[Change]]] = frozenset(
    {
        AddColumn,
        AddField,
        WidenColumn,
        ReorderColumns,
        ChangeNullability,
        ChangeDefault,
        ChangeDoc,
        ChangeAliases,
        ChangeDetail,
        # One that does not only tell more of an event is held.
        ChangeEnvelope,
    }
)
"""Changes after which a query that worked goes on working and sees all it saw: what ``watch.apply: safe`` applies."""


def is_safe(changes: Iterable[Change]) -> bool:
    """Tell whether all of these only add or keep."""
    return all(type(change) in SAFE for change in changes)


def jittered(duration_ms: int, draw: float) -> int:
    """Return the duration, a tenth shorter to a tenth longer."""
    return round(duration_ms * (0.9 + 0.2 * draw))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often something failed in a row, when it did last, and until when it is left alone."""

    failures: int = 0
    failed_ms: int = 0
    until_ms: int = 0

    def waits(self, now_ms: int) -> bool:
        """Tell whether it is too early to try again; where the clock was set back nobody knows, and it is not."""
        return self.failed_ms <= now_ms < self.until_ms

    def failed(self, *, now_ms: int, first_ms: int, longest_ms: int, draw: float) -> Backoff:
        """Return the state after one more failure: the pause doubles up to the longest, and its half is random."""
        pause = min(first_ms * 2 ** min(self.failures, 30), longest_ms)
        until = now_ms + round(pause * (0.5 + draw / 2))
        return Backoff(failures=self.failures + 1, failed_ms=now_ms, until_ms=until)


class Reach(Enum):
    """How far a tick looks."""

    PROBE = "probe"
    """Only at landed files and at the clock."""
    LISTS = "lists"
    """At the subjects, and at the versions of those that feed a table."""
    SWEEP = "sweep"
    """At everything: each table is compared with its subject, whatever was noticed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """When the registry is looked at again; the first tick sweeps, and so does one after the clock was set back.

    ``listed_ms`` is when it was listed last, ``rested_ms`` until when it is not, whatever others register;
    ``newest_id`` is the probe's largest answer.
    """

    sweep_ms: int = 0
    lists_ms: int = 0
    listed_ms: int = 0
    rested_ms: int = 0
    newest_id: int | None = None

    def reach(self, *, now_ms: int, newest_id: int | None) -> Reach:
        """Say how far to look now; ``newest_id`` is the probe's answer, None where it cannot tell."""
        if not self.listed_ms <= now_ms < self.sweep_ms:
            return Reach.SWEEP
        if now_ms >= self.lists_ms or (now_ms >= self.rested_ms and self._grew(newest_id)):
            return Reach.LISTS
        return Reach.PROBE

    def _grew(self, newest_id: int | None) -> bool:
        # Replicas may lag behind each other, so a smaller number says nothing.
        return newest_id is not None and newest_id > (self.newest_id or 0)

    def after(
        self, reach: Reach, *, watch: Watch, now_ms: int, newest_id: int | None, subjects: int, draw: float
    ) -> Rhythm:
        """Return the rhythm after that much was looked at, successfully."""
        if reach is Reach.PROBE:
            return self
        sweep = now_ms + jittered(watch.sweep, draw) if reach is Reach.SWEEP else self.sweep_ms
        pause = lists_every_ms(watch.poll, probed=newest_id is not None, subjects=subjects)
        # A replica may tell of a new id before the lists of another one show it: ask once more.
        again = self.newest_id is not None and self._grew(newest_id)
        rested = now_ms + lists_every_ms(watch.poll, probed=False, subjects=subjects)
        lists = rested if again else now_ms + jittered(pause, draw)
        newest = max(newest_id or 0, self.newest_id or 0) or None
        return Rhythm(sweep_ms=sweep, lists_ms=lists, listed_ms=now_ms, rested_ms=rested, newest_id=newest)


def lists_every_ms(poll_ms: int, *, probed: bool, subjects: int) -> int:
    """Return the pause between two listings of all versions; 0 means at every tick."""
    if probed:
        return LISTS_EVERY_MS
    wanted = subjects * QUESTION_MS
    return 0 if wanted <= poll_ms else min(wanted, LISTS_EVERY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the registry lists for one table: versions of its subject and of its key's; ``trouble`` where it refused."""

    versions: tuple[int, ...] = ()
    key_versions: tuple[int, ...] = ()
    trouble: str = ""


class Reason(Enum):
    """Why a table is looked at."""

    RETRY = "it failed before"
    REGISTRY = "the registry says something new, or it is time to compare everything"
    LANDED = "files landed"
    TIME = "something is due by the clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMemory:
    """What a watcher remembers of one table between ticks; all of it may be forgotten.

    ``looked`` and ``landed`` are what was there when the table was last looked at; ``stale`` asks for another look.
    ``due_ms`` is when the clock alone asks for one; ``decided_ms`` when this process last compacted, were it to find
    that nothing was worth it, which no state says; ``admitted`` are the (path, bytes) that the manifest knows.
    """

    listed: Listed = Listed()
    looked: Listed | None = None
    target: TableTarget | None = None
    landed: frozenset[FileInfo] = frozenset()
    admitted: frozenset[tuple[str, int]] = frozenset()
    stale: bool = True
    due_ms: int | None = None
    decided_ms: int = 0
    applying: Backoff = Backoff()
    folding: Backoff = Backoff()

    def listing(self, target: TableTarget, listed: Listed, *, sweep: bool) -> TableMemory:
        """Return the memory after the registry listed this."""
        moved = listed != self.looked or target != self.target
        return replace(self, target=target, listed=listed, stale=self.stale or sweep or moved)

    def pending(self, landed: frozenset[FileInfo]) -> int:
        """Return how many landed files no manifest knew at the last look."""
        return len(self._unknown(landed))

    def takes_long(self, landed: frozenset[FileInfo]) -> bool:
        """Tell whether so much landed that others should not wait until it is admitted."""
        return sum(file.bytes for file in self._unknown(landed)) > LONG_BYTES

    def _unknown(self, landed: frozenset[FileInfo]) -> list[FileInfo]:
        return [file for file in landed if (file.path, file.bytes) not in self.admitted]

    def calls(self, landed: frozenset[FileInfo], *, now_ms: int) -> Reason | None:
        """Say why the table is looked at now, None where nothing asks for it."""
        if self.applying.waits(now_ms):
            return None
        if self.applying.failures:
            return Reason.RETRY
        if self.stale:
            return Reason.REGISTRY
        if landed != self.landed:
            return Reason.LANDED
        return Reason.TIME if self.due_ms is not None and now_ms >= self.due_ms else None

    def forgiven(self) -> TableMemory:
        """Return the memory after what may have made it fail is over: then it is looked at, and folded, at once."""
        if not (self.applying.failures or self.folding.failures):
            return self
        return replace(self, stale=True, applying=Backoff(), folding=Backoff())

    def knowing(self, manifest: Manifest | None) -> TableMemory:
        """Return the memory that knows what a state has admitted; None: nobody could say."""
        return replace(self, admitted=frozenset((f.path, f.bytes) for f in manifest.admitted)) if manifest else self

    def looked_at(self, landed: frozenset[FileInfo], *, manifest: Manifest | None, due_ms: int | None) -> TableMemory:
        """Return the memory after a look that went well; ``landed`` was listed before it."""
        return replace(
            self.knowing(manifest),
            looked=self.listed,
            landed=landed,
            stale=False,
            due_ms=due_ms,
            applying=Backoff(),
        )


def fold_due_ms(
    manifest: Manifest, *, rules: Compaction, outdated: AbstractSet[str], decided_ms: int, now_ms: int
) -> int | None:
    """Return when a compaction is due, None where there is nothing to fold.

    ``compaction.every`` counts from the last compaction; a table that has no base is due at once. ``decided_ms`` is of
    `TableMemory`.
    """
    if not needs_fold(manifest, outdated=outdated):
        return None
    if not manifest.base:
        return 0
    return next_fold_ms(manifest, every_ms=rules.every, decided_ms=decided_ms, now_ms=now_ms)


def cleanup_due_ms(manifest: Manifest, *, rules: Compaction) -> int | None:
    """Return when the next partition, directory or landed file is due for cleaning up; see `compaction.due`."""
    grace, vacuum = rules.reader_grace, rules.reader_grace + rules.vacuum_retention
    partitions = [s.since_ms + grace for s in manifest.superseded if s.registered]
    directories = [s.since_ms + vacuum for s in manifest.superseded]
    folded = [f.folded_ms + grace for f in manifest.admitted if f.folded_ms is not None]
    return min([*partitions, *directories, *(folded if rules.on_fold != "keep" else ())], default=None)
