"""What an HTTP registry answered, kept in memory: versions, so that each is asked for once, and what it listed.

Used by the HTTP registry alone. The content of a version never changes while its subject lives; a subject that was
deleted for good and made again restarts at version 1, and then nothing of the old one is kept. Safe to call from
several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from schemasync.core.references import HeldSchema, Key

MOST_CHARACTERS = 256_000_000
"""So much text is kept: 50,000 versions of 5 KB. Where there is more, looks at tables fetch versions anew."""
TRUSTED_SECONDS = 3600.0
"""So long the newest version of a subject is what it was: between two lists a subject may be another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    held: HeldSchema
    since: float


class KeptVersions:
    """Versions by subject, of which the least recently used ones give way. ``clock`` is in seconds, and never set."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._subjects: OrderedDict[str, dict[int, _Kept]] = OrderedDict()
        self._characters = 0
        # None: the subject was listed, and nobody asked for its versions yet.
        self._listed: dict[str, frozenset[int] | None] = {}
        # Not those alone that were asked for by their names: a list may never have these.
        self._names: frozenset[str] = frozenset()

    def get(self, key: Key) -> HeldSchema | None:
        """Return a version, None where it is not here."""
        subject, version = key
        with self._lock:
            kept = self._subjects.get(subject, {}).get(version)
            if kept is None:
                return None
            self._subjects.move_to_end(subject)
            return kept.held

    def put(self, key: Key, held: HeldSchema) -> None:
        """Keep a version; whole subjects give way, for who looks at a table needs all of its versions."""
        subject, version = key
        with self._lock:
            self._pop(key)
            self._subjects.setdefault(subject, {})[version] = _Kept(held=held, since=self._clock())
            self._subjects.move_to_end(subject)
            self._characters += len(held.text)
            while self._characters > MOST_CHARACTERS and len(self._subjects) > 1:
                self._drop(next(iter(self._subjects)))

    def pop_doubtful(self, subject: str, listed: Iterable[int]) -> tuple[int, HeldSchema] | None:
        """Take out the newest version that is here where it may be another one by now; None where there is none such.

        It was fetched too long ago, or more versions are ``listed`` than were before: of another subject, maybe.
        """
        with self._lock:
            newest = max(self._subjects.get(subject, {}), default=None)
            if newest is None:
                return None
            grew = max(listed, default=0) > max(self._listed.get(subject) or (), default=0)
            old = self._clock() - self._subjects[subject][newest].since >= TRUSTED_SECONDS
            held = self._pop((subject, newest)) if grew or old else None
            return (newest, held) if held else None

    def lacks_subjects(self, names: Iterable[str]) -> bool:
        """Tell whether a subject is missing that was listed before."""
        with self._lock:
            return not self._names <= set(names)

    def lacks_versions(self, subject: str, versions: Iterable[int]) -> bool:
        """Tell whether the newest version is missing that was listed before, or all of a subject that was.

        Older ones are deleted by and by; a list without them lags behind nothing.
        """
        with self._lock:
            known = self._listed.get(subject, frozenset())
            newest = max(versions, default=0)
            return newest < max(known, default=0) if known is not None else not newest

    def list_versions(self, subject: str, versions: Iterable[int]) -> None:
        """Remember what was listed."""
        with self._lock:
            self._listed[subject] = frozenset(versions)

    def forget(self, subject: str) -> None:
        """Drop all of a subject."""
        with self._lock:
            self._drop(subject)

    def forget_unless_listed(self, subject: str, versions: Iterable[int]) -> None:
        """Drop all of a subject of which a version is gone: those that are listed may be another subject's."""
        with self._lock:
            if not self._subjects.get(subject, {}).keys() <= set(versions):
                self._drop(subject)

    def list_subjects(self, subjects: Iterable[str]) -> None:
        """Remember what was listed, and drop what is of no listed subject."""
        with self._lock:
            self._names = frozenset(subjects)
            self._listed = {subject: self._listed.get(subject) for subject in self._names}
            for subject in self._subjects.keys() - self._names:
                self._drop(subject)

    def _pop(self, key: Key) -> HeldSchema | None:
        kept = self._subjects.get(key[0], {}).pop(key[1], None)
        self._characters -= len(kept.held.text) if kept else 0
        return kept.held if kept else None

    def _drop(self, subject: str) -> None:
        gone = self._subjects.pop(subject, {})
        self._characters -= sum(len(kept.held.text) for kept in gone.values())
