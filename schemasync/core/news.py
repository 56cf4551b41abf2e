"""What people are told of the tables that are watched: each schema change and each hold, once while a process lives.

Called by `schemasync.app.telling` after every look at a table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from schemasync.core.changes import Change, ChangeKey
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import FILE_ERRORS, Diagnostic, Severity
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import TableTarget
from schemasync.core.policy import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look at a table came to, as far as people want to know.

    ``before`` and ``after`` are the versions that the table had and has (None: no table, or not known because the
    look failed halfway); ``desired`` is the newest that the registry lists. ``changed``: the plan's schema steps were
    all done. ``held``: something waits for a person; ``held_since_ms`` is noted where that is a schema. ``keys`` are
    those that the table has, None as for ``after``, and ``key_version`` is the version that they are from, 0 for none.
    ``state`` is that in force where there is a table, as a text.
    """

    target: TableTarget
    before: int | None
    after: int | None
    desired: int | None
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    changed: bool = False
    held: bool = False
    held_since_ms: int | None = None
    keys: tuple[str, ...] | None = None
    key_version: int = 0
    state: str = ""

    @property
    def made(self) -> bool:
        """Whether the table was not there before."""
        return self.changed and self.before is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told of one table so far.

    ``version`` is the table's when it was first looked at (``met``), later the last one that was told of; ``keys`` are
    its keys then, None where they are not known; ``planned`` are the changes towards a version that are under way;
    ``ids`` the events but for holds; ``holds`` those of the hold that lasts, of which there are several where its
    reasons changed.
    """

    met: bool = False
    version: int | None = None
    keys: tuple[str, ...] | None = None
    planned: tuple[int | None, tuple[Change, ...]] = (None, ())
    ids: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()


def news(told: Told, seen: Seen, *, time: datetime) -> tuple[tuple[SchemaEvent, ...], Told]:
    """Return what to tell of a look, and the memory of having told it.

    Versions and keys are compared, not remembered steps: a change that was interrupted and finished later, or done by
    someone else, is told like any other. The same news (table, versions, verdict, another key) is told once; a hold
    that is over and comes again, or has other reasons, is told again, under an id of its own.
    """
    known = told.version if told.met and not seen.made else seen.before
    planned = (seen.desired, seen.changes) if seen.changes else told.planned
    events = []
    rekeyed = _rekeyed(told, seen)
    if seen.after is not None and (seen.after != known or rekeyed or (seen.changed and seen.changes)):
        changes = planned[1] if planned[0] == seen.after else ()
        verdict = seen.verdict if seen.changed else Verdict.EVOLVE
        if seen.after == known and not (seen.changed and seen.changes):
            # By a release, which moves no version; what was planned for this one may be what made it.
            changes, verdict = rekeyed, Verdict.MIGRATE
        # One of this name was told of before.
        again = seen.state if seen.made and told.version is not None else ""
        occasion = _new_key(seen, changes) or again
        events.append(_event(seen, known, seen.after, verdict, changes, time=time, occasion=occasion))
    fresh = [event for event in events if event.id not in told.ids]
    ids = told.ids | {event.id for event in fresh}
    current = known if seen.after is None else seen.after
    newest = current if seen.desired is None else seen.desired
    # A look that failed does not know whether a hold lasts.
    holds = told.holds if seen.after is None else frozenset()
    if seen.held and newest is not None:
        changes = seen.changes if not seen.changed else ()
        held = _event(seen, current, newest, Verdict.HOLD, changes, time=time, occasion=_occasion(seen))
        fresh += [held] if held.id not in told.holds else []
        holds = told.holds | {held.id}
    keys = told.keys if seen.keys is None else seen.keys
    return tuple(fresh), Told(met=True, version=current, keys=keys, planned=planned, ids=ids, holds=holds)


def _rekeyed(told: Told, seen: Seen) -> tuple[ChangeKey, ...]:
    if told.keys is None or seen.keys is None or told.keys == seen.keys:
        return ()
    return (ChangeKey(current=told.keys, desired=seen.keys),)


def _occasion(seen: Seen) -> str:
    """Return what tells a hold from others of the same versions, before it and after it, in any process.

    Files that are held have no note of when that began; the first of them stands for it.
    """
    errors = [d for d in seen.diagnostics if d.severity is Severity.ERROR]
    files = [d.first or d.message for d in errors if d.code in FILE_ERRORS]
    return json.dumps([sorted({d.code for d in errors}), seen.held_since_ms, min(files, default=None)])


def _new_key(seen: Seen, changes: Sequence[Change]) -> str:
    """Return what tells changes of the key apart: several may leave the table at one version."""
    keys = [change.desired for change in changes if isinstance(change, ChangeKey)]
    return json.dumps([*keys, seen.key_version]) if keys else ""


def _event(
    seen: Seen,
    current: int | None,
    desired: int,
    verdict: Verdict,
    changes: Sequence[Change],
    *,
    time: datetime,
    occasion: str,
) -> SchemaEvent:
    return SchemaEvent(
        table=seen.target.name,
        subject=seen.target.subject,
        from_version=current,
        to_version=desired,
        verdict=verdict.value,
        time=time,
        occasion=occasion,
        changes=tuple(change_json(change) for change in changes),
        diagnostics=tuple(diagnostic_json(d) for d in seen.diagnostics),
    )
