"""The versions that an HTTP registry answered, kept in memory, so that each is asked for once.

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

    def pop_old(self, key: Key) -> HeldSchema | None:
        """Take out a version that was fetched too long ago to be trusted; None where there is none such."""
        with self._lock:
            kept = self._subjects.get(key[0], {}).get(key[1])
            if kept is None or self._clock() - kept.since < TRUSTED_SECONDS:
                return None
            return self._pop(key)

    def forget(self, subject: str) -> None:
        """Drop all of a subject."""
        with self._lock:
            self._drop(subject)

    def forget_unless_listed(self, subject: str, versions: Iterable[int]) -> None:
        """Drop all of a subject of which a version is gone: those that are listed may be another subject's."""
        with self._lock:
            if not self._subjects.get(subject, {}).keys() <= set(versions):
                self._drop(subject)

    def forget_all_but(self, subjects: Iterable[str]) -> None:
        """Drop what is of no listed subject."""
        with self._lock:
            for subject in self._subjects.keys() - set(subjects):
                self._drop(subject)

    def _pop(self, key: Key) -> HeldSchema | None:
        kept = self._subjects.get(key[0], {}).pop(key[1], None)
        self._characters -= len(kept.held.text) if kept else 0
        return kept.held if kept else None

    def _drop(self, subject: str) -> None:
        gone = self._subjects.pop(subject, {})
        self._characters -= sum(len(kept.held.text) for kept in gone.values())
