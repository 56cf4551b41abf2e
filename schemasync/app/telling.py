"""Telling of one table's changes and holds, each at least once, whatever becomes of the process.

Used by `schemasync.app.tending`. What was told, and what somebody does not have yet, is kept beside the table's data:
before anybody is told of something, and again once all have it. A start goes on from there, so it tells of what changed
meanwhile, and again of what may not have arrived; ids tell repeats apart. Where nothing can be kept all the rest goes
on as if nothing had been.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from schemasync.app.announcing import Outbox
from schemasync.app.planning import TablePlan
from schemasync.app.workspace import Workspace
from schemasync.core.diagnostics import Diagnostic, Severity
from schemasync.core.events import SchemaEvent
from schemasync.core.mapping import TableTarget
from schemasync.core.news import Seen, Told, news
from schemasync.core.policy import Verdict
from schemasync.core.told import ToldRecord, parse, record

TOLD: Final = "_schemasync/told"
"""Files are numbered and never overwritten; the last one counts."""

_log: Final = logging.getLogger("schemasync.watch")


class Telling:
    """One table's news. Used by one thread at a time; only what the outbox says comes from others."""

    def __init__(self, workspace: Workspace, outbox: Outbox) -> None:
        self._workspace = workspace
        self._outbox = outbox
        self._told = Told()
        self._begun = False
        self._kept: ToldRecord | None = None
        self._paths: tuple[str, ...] = ()
        self._last = 0
        self._complained = False
        self._logged: tuple[Diagnostic, ...] = ()
        # For what the receivers' threads change.
        self._guard = threading.Lock()
        self._waiting: dict[str, SchemaEvent] = {}
        self._arrived = False

    def begin(self, target: TableTarget) -> None:
        """Go on from what an earlier process kept; done once."""
        if self._begun:
            return
        try:
            self._read(target)
        except Exception as error:
            # Nothing is written before it was read: somebody may wait for what is there.
            self._complain(target, error)
            return
        self._begun = True
        if self._kept is None:
            return
        if not self._told.ids:
            # Looks while it could not be read told of no change: what there was is still to be told.
            kept = self._kept.told
            self._told = replace(
                self._told, met=True, version=kept.version, keys=kept.keys, holds=self._told.holds | kept.holds
            )
        for event in self._kept.waiting:
            _log.info("table %s: %s is told again", target.full_name, event.id, extra=_extra(target, event))
            self._waiting[event.id] = event
        for event in self._kept.waiting:
            self._post(event)

    def before(self, plan: TablePlan) -> None:
        """Keep what the table is before it is changed: who is killed right after that tells of it at the next start."""
        if self._kept is None and not self._told.met:
            properties = plan.view.decision.properties if plan.view else None
            keys = properties.keys if properties else None
            self._keep(plan.target, Told(met=True, version=plan.current_version, keys=keys))

    def tell(self, found: Seen) -> None:
        """Tell of what a look found, where that is new."""
        now = self._workspace.now_ms()
        before = self._told
        events, self._told = news(before, found, time=datetime.fromtimestamp(now / 1000, UTC))
        for event in events:
            level = logging.WARNING if event.verdict == Verdict.HOLD.value else logging.INFO
            text = "table %s: %s from version %s to %s%s"
            names = (found.target.full_name, event.verdict, event.from_version, event.to_version, _reasons(event))
            _log.log(level, text, *names, extra=_extra(found.target, event))
        if before.holds and not self._told.holds:
            name = found.target.full_name
            _log.info("table %s is no longer held", name, extra={"table": name})
        self._log_nameless(found)
        with self._guard:
            self._waiting |= {event.id: event for event in events}
        self._keep(found.target, self._told)
        for event in events:
            self._post(event)

    def _log_nameless(self, found: Seen) -> None:
        """Log why a table is held of which nothing else tells: it is not there, and no version is known to name."""
        nameless = found.held and found.desired is None and self._told.version is None
        errors = tuple(d for d in found.diagnostics if nameless and d.severity is Severity.ERROR)
        if {d.code for d in errors} != {d.code for d in self._logged}:
            for error in errors:
                name = found.target.full_name
                _log.warning("table %s is held: %s %s", name, error.code, error.message, extra={"table": name})
        self._logged = errors

    def settle(self, target: TableTarget) -> None:
        """Keep what has arrived since the last time."""
        if self._arrived:
            self._keep(target, self._told)

    def _post(self, event: SchemaEvent) -> None:
        self._outbox.post(event, done=partial(self._is_done, event.id))

    def _is_done(self, event: str) -> None:
        with self._guard:
            self._waiting.pop(event, None)
            self._arrived = True

    def _read(self, target: TableTarget) -> None:
        lake = self._workspace.storage(target).lake
        self._paths = tuple(file.path for file in lake.files(TOLD) if _number(file.path))
        if not self._paths:
            return
        self._last = _number(self._paths[-1])
        self._kept = parse(lake.read(self._paths[-1]), table=target.full_name)
        if self._kept is None:
            text = "table %s: %s says nothing that is understood; what was told before is not known"
            _log.warning(text, target.full_name, lake.uri(self._paths[-1]), extra={"table": target.full_name})

    def _keep(self, target: TableTarget, told: Told) -> None:
        with self._guard:
            self._arrived = False
            new = record(target.full_name, told, tuple(self._waiting.values()))
        if not self._begun or new == self._kept:
            return
        try:
            self._write(target, new)
        except Exception as error:
            self._complain(target, error)

    def _write(self, target: TableTarget, new: ToldRecord) -> None:
        lake = self._workspace.storage(target).lake
        content = new.model_dump_json(indent=1).encode()
        self._last += 1
        while not lake.create(_path(self._last), content):
            self._last += 1
        self._kept = new
        old, self._paths = self._paths, (_path(self._last),)
        for path in old:
            lake.delete(path)

    def _complain(self, target: TableTarget, error: Exception) -> None:
        """Warn once: it fails as long as whatever is wrong lasts, and nothing else does."""
        if not self._complained:
            text = "table %s: what was told of it cannot be kept, so that a restart may not tell of something: %s"
            _log.warning(text, target.full_name, error, extra={"table": target.full_name})
        self._complained = True


def _reasons(event: SchemaEvent) -> str:
    """Return the codes of what holds a table, as a line goes on; empty where nothing does."""
    codes = dict.fromkeys(str(d["code"]) for d in event.diagnostics if d["severity"] == Severity.ERROR.value)
    return f": {', '.join(codes)}" if codes else ""


def _extra(target: TableTarget, event: SchemaEvent) -> dict[str, str]:
    return {"table": target.full_name, "event": event.id}


def _path(number: int) -> str:
    return f"{TOLD}/{number:08}.json"


def _number(path: str) -> int:
    """Return the number in a file's name, 0 where it is none of ours."""
    name = path.rsplit("/", 1)[-1].removesuffix(".json")
    return int(name) if path == f"{TOLD}/{name}.json" and name.isdecimal() else 0
