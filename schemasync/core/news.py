"""What people are told of the tables that are watched: each schema change and each hold, once while a process lives.

Called by `schemasync.app.tending` after every look at a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from schemasync.core.changes import Change
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import Diagnostic
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import TableTarget
from schemasync.core.policy import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look at a table came to, as far as people want to know.

    ``before`` and ``after`` are the versions that the table had and has (None: no table, or not known because the
    look failed halfway); ``desired`` is the newest that the registry lists. ``changed``: the plan's schema steps were
    all done. ``held``: something waits for a person.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told of one table so far.

    ``version`` is the table's when it was first looked at (``met``), later the last one that was told of; ``planned``
    are the changes towards a version that are under way; ``ids`` the events but for holds; ``hold`` is that of the hold
    that lasts.
    """

    met: bool = False
    version: int | None = None
    planned: tuple[int | None, tuple[Change, ...]] = (None, ())
    ids: frozenset[str] = frozenset()
    hold: str | None = None


def news(told: Told, seen: Seen, *, time: datetime) -> tuple[tuple[SchemaEvent, ...], Told]:
    """Return what to tell of a look, and the memory of having told it.

    Versions are compared, not remembered steps: a change that was interrupted and finished later, or done by someone
    else, is told like any other. The same news (table, versions, verdict) is told once; a hold that is over and comes
    again is told again.
    """
    known = told.version if told.met else seen.before
    planned = (seen.desired, seen.changes) if seen.changes else told.planned
    events = []
    if seen.after is not None and (seen.after != known or (seen.changed and seen.changes)):
        changes = planned[1] if planned[0] == seen.after else ()
        verdict = seen.verdict if seen.changed else Verdict.EVOLVE
        events.append(_event(seen, known, seen.after, verdict, changes, time))
    fresh = [event for event in events if event.id not in told.ids]
    ids = told.ids | {event.id for event in fresh}
    current = known if seen.after is None else seen.after
    newest = current if seen.desired is None else seen.desired
    # A look that failed does not know whether a hold lasts.
    hold = told.hold if seen.after is None else None
    if seen.held and newest is not None:
        held = _event(seen, current, newest, Verdict.HOLD, seen.changes if not seen.changed else (), time)
        hold = held.id
        fresh += [held] if hold != told.hold else []
    return tuple(fresh), Told(met=True, version=current, planned=planned, ids=ids, hold=hold)


def _event(
    seen: Seen, current: int | None, desired: int, verdict: Verdict, changes: Iterable[Change], time: datetime
) -> SchemaEvent:
    return SchemaEvent(
        table=seen.target.name,
        subject=seen.target.subject,
        from_version=current,
        to_version=desired,
        verdict=verdict.value,
        time=time,
        changes=tuple(change_json(change) for change in changes),
        diagnostics=tuple(diagnostic_json(d) for d in seen.diagnostics),
    )
