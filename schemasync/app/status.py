"""How the tables stand: versions, state, what waits, what is held, and where reality drifted. Reads only.

Built from the same look as plan, so both always agree. *Drift* means that the table does not show what the registry
has, or that the metastore's table or view is not as schemasync made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from schemasync.app.forsaken import forsaken
from schemasync.app.holds import held_since_ms
from schemasync.app.inspecting import map_tables, select
from schemasync.app.planning import TablePlan, left_out, plan_table
from schemasync.app.releasing import way_out
from schemasync.app.repairing import find_drift
from schemasync.app.retiring import retirement
from schemasync.app.states import require_files
from schemasync.app.workspace import Workspace
from schemasync.core.admission import Unreadable
from schemasync.core.compaction import Retirement
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, damaged, diagnose, names_held_file
from schemasync.core.drift import DRIFT
from schemasync.core.footers import footer_drift, sample
from schemasync.core.manifest import Manifest, Segment
from schemasync.core.mapping import TableTarget
from schemasync.core.names import parse_hour
from schemasync.core.policy import Verdict
from schemasync.core.ports import FileInfo
from schemasync.errors import SchemasyncError, StorageError, UsageError
from schemasync.io.logs import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A schema change that waits for a person.

    ``since_ms`` is None until an apply has met it, and where there is no table to note it of; ``release`` is the
    command that lifts it, None where the cause has to be mended first. Both are None also where SS218 says why they
    are not known.
    """

    since_ms: int | None
    release: str | None

    def to_json(self) -> dict[str, Any]:
        """Return ``{"since": "2026-11-20T00:00:00Z", "release": "schemasync release student --migrate"}``."""
        return {"since": None if self.since_ms is None else iso_time(self.since_ms), "release": self.release}


def iso_time(ms: int) -> str:
    """Write a time (ms since 1970 UTC) to the second, as ISO 8601."""
    return datetime.fromtimestamp(ms // 1000, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """How one table stands. ``manifest`` is None where there is no table of ours yet.

    ``pending`` are landed files that are not admitted, ``waiting`` those of them that cannot be yet; ``now_ms`` is
    when this was looked at.
    """

    plan: TablePlan
    manifest: Manifest | None
    pending: tuple[FileInfo, ...]
    waiting: int
    due: Retirement
    now_ms: int
    diagnostics: tuple[Diagnostic, ...]
    hold: Hold | None = None

    @property
    def target(self) -> TableTarget:
        """The table."""
        return self.plan.target

    @property
    def held(self) -> bool:
        """Tell whether something about the table waits for a person."""
        return self.plan.verdict is Verdict.HOLD or names_held_file(self.diagnostics)

    @property
    def drift(self) -> tuple[str, ...]:
        """Say what does not agree, one sentence each; empty where all does."""
        return tuple(self._drift())

    def _drift(self) -> Iterator[str]:
        current, desired = self.plan.current_version, self.plan.desired_version
        if self.plan.unread:
            yield "which version the table has cannot be read"
        elif current is None and desired is not None:
            yield f"the registry is at version {desired}, and no table shows it"
        elif current != desired and desired is not None:
            yield f"the registry is at version {desired}, the table at {current}"
        yield from (f"{d.code}: {d.message}" for d in self.diagnostics if d.code in DRIFT)

    @property
    def oldest_hour(self) -> str | None:
        """The oldest hour (yyyyMMddHH) that files wait in."""
        directories = (f.path.rpartition("/")[0] for f in self.pending)
        hours = (parse_hour(self.target.increments, directory) for directory in directories)
        return min((hour for hour in hours if hour), default=None)

    @property
    def lag_s(self) -> float | None:
        """Seconds since the oldest waiting file was written; None where none waits."""
        oldest = min((f.modified_ms for f in self.pending), default=None)
        return None if oldest is None else max(0.0, (self.now_ms - oldest) / 1000)

    def to_json(self) -> dict[str, Any]:
        """Return the table's part of ``status --json``.

        ::

        {"table", "database", "subject",
         "current_version", "desired_version",                          versions are None where there is none
         "verdict", "held", "drift": ["..."],                           drift: sentences
         "hold": {"since", "release"},                                  None where no schema change is held
         "state": "000001-0002", "generation": 1,                       None where there is no table
         "segments": {"base": {"segments", "rows", "bytes"}, "delta": {"segments", "rows", "bytes"}},
         "pending": {"files", "bytes", "oldest_hour": "2026112000", "waiting"},
         "lag": {"versions", "seconds"},                                seconds: None where nothing waits
         "to_retire": {"partitions", "directories", "files"},           what is due now
         "diagnostics": [{"code", "severity", "message", "fix"}]}
        """
        current, desired = self.plan.current_version, self.plan.desired_version
        lag = self.lag_s
        return {
            "table": self.target.table,
            "database": self.target.database,
            "subject": self.target.subject,
            "current_version": current,
            "desired_version": desired,
            "verdict": self.plan.verdict.value,
            "held": self.held,
            "drift": list(self.drift),
            "hold": self.hold.to_json() if self.hold else None,
            "state": str(self.manifest.state) if self.manifest else None,
            "generation": self.manifest.state.generation if self.manifest else None,
            "segments": {
                "base": _sizes(self.manifest.base if self.manifest else ()),
                "delta": _sizes(self.manifest.deltas if self.manifest else ()),
            },
            "pending": {
                "files": len(self.pending),
                "bytes": sum(f.bytes for f in self.pending),
                "oldest_hour": self.oldest_hour,
                "waiting": self.waiting,
            },
            "lag": {
                "versions": (desired or 0) - (current or 0),
                "seconds": None if lag is None else round(lag, 3),
            },
            "to_retire": self.due.to_json(),
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


def _sizes(segments: Sequence[Segment]) -> dict[str, int]:
    return {
        "segments": len(segments),
        "rows": sum(s.rows for s in segments),
        "bytes": sum(s.bytes for s in segments),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How all tables stand, and what in the configuration stands in the way; the rest is as in a plan."""

    tables: tuple[TableStatus, ...]
    problems: tuple[UsageError, ...] = ()
    skipped: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def drifted(self) -> bool:
        """Tell whether any table drifted."""
        return any(table.drift for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"tables": [...], "problems": ["..."], "skipped": ["..."], "diagnostics": [...]}``.

        Tables are as `TableStatus.to_json` says, diagnostics as there; ``skipped`` are subjects.
        """
        return {
            "tables": [t.to_json() for t in self.tables],
            "problems": [str(p) for p in self.problems],
            "skipped": list(self.skipped),
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


def status(workspace: Workspace, names: Sequence[str] = ()) -> Status:
    """Say how the named tables stand, all where none is named.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    targets = select(mapping, names)
    return Status(
        tables=tuple(table_status(workspace, t) for t in targets),
        problems=mapping.problems,
        skipped=() if names else left_out(workspace, mapping),
        diagnostics=forsaken(workspace, mapping, names),
    )


def table_status(workspace: Workspace, target: TableTarget) -> TableStatus:
    """Say how one table stands."""
    plan = plan_table(workspace, target)
    found = plan.view
    manifest = found.manifest if found else None
    pending = found.pending if found else ()
    findings: tuple[Diagnostic, ...] = ()
    if manifest is not None:
        findings = _missing(workspace, target, manifest) or _odd_footers(workspace, plan, manifest)
    hold, unknown = _hold(workspace, plan)
    now = workspace.now_ms()
    return TableStatus(
        plan=plan,
        manifest=manifest,
        pending=pending,
        waiting=plan.waiting,
        due=retirement(target, manifest, now_ms=now) if manifest else Retirement(),
        now_ms=now,
        diagnostics=tuple(dict.fromkeys((*plan.diagnostics, *findings, *unknown))),
        hold=hold,
    )


def _hold(workspace: Workspace, plan: TablePlan) -> tuple[Hold | None, tuple[Diagnostic, ...]]:
    """Say what there is to know of a table's hold, None where it is not held, and why the rest is not known.

    Which release lifts it may depend on values that cannot be read, and a watcher may lift it while this looks.
    """
    found = plan.view
    if plan.verdict is not Verdict.HOLD or found is None:
        return None, ()
    since = command = None
    try:
        if plan.current_version is not None:
            since = held_since_ms(workspace.storage(plan.target).lake, plan.current_version)
        how = way_out(workspace, found)
        command = None if how is None else f"schemasync release {plan.target.name}{how}"
    except SchemasyncError as error:
        return Hold(since_ms=since, release=command), (diagnose("SS218", redact(str(error))),)
    return Hold(since_ms=since, release=command), ()


def _missing(workspace: Workspace, target: TableTarget, manifest: Manifest) -> tuple[Diagnostic, ...]:
    """Notice data files that are gone: engines read a directory without one in silence."""
    try:
        require_files(workspace.storage(target).lake, manifest.segments)
    except SchemasyncError as error:
        return (damaged(error),)
    return ()


def _odd_footers(workspace: Workspace, plan: TablePlan, manifest: Manifest) -> tuple[Diagnostic, ...]:
    """Look into a few data files of ours."""
    if plan.view is None:
        return ()
    columns = find_drift(workspace, plan.view).wanted
    reader, now = workspace.storage(plan.target).small, workspace.now_ms()
    findings: list[Diagnostic] = []
    for sampled in sample(manifest):
        file = FileInfo(path=sampled.file.path, bytes=sampled.file.bytes, modified_ms=0)
        try:
            footer = reader.footer(file, now_ms=now)
        except StorageError as error:
            footer = Unreadable(reason=str(error))
        findings += footer_drift(sampled, footer, columns)
    return tuple(findings)
