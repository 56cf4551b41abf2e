"""Going on under another key: the table is folded under the old one, so that every row is there once, then re-read.

Rows that a newer event of the old key has replaced must not come back as rows of the new key. So the base is rebuilt
first; only then the view, which names this base alone, groups by the new key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schemasync.app.folding import run_fold
from schemasync.app.inspecting import TableView
from schemasync.app.repairing import lacks_columns
from schemasync.app.states import read_draft
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.changes import ChangeKey
from schemasync.core.compaction import plan_rekey
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.plan import Decision
from schemasync.core.policy import Verdict
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape


def changes_key(decision: Decision) -> bool:
    """Tell whether a decision is about another key."""
    return any(isinstance(change, ChangeKey) for change in decision.changes)


def key_is_unclear(decision: Decision) -> bool:
    """Tell whether landed files may be of the old key or the new one: the version they carry does not say it."""
    current, desired = decision.current, decision.desired
    same_version = current is not None and desired is not None and current.version.version == desired.version.version
    return changes_key(decision) and same_version


def with_keys_checked(workspace: Workspace, found: TableView) -> TableView:
    """Return the view of a table with its new key held where rows cannot be told apart by it."""
    decision = found.decision
    current, desired = decision.current, decision.desired
    if decision.verdict is not Verdict.MIGRATE or current is None or desired is None or not changes_key(decision):
        return found
    findings = tuple(_misfits(workspace, found, current, desired))
    if not findings:
        return found
    kept = (d for d in decision.diagnostics if d.code != "SS116")  # it says that all rows have a key of their own
    return replace(found, decision=replace(decision, verdict=Verdict.HOLD, diagnostics=(*kept, *findings)))


def _misfits(workspace: Workspace, found: TableView, current: Shape, desired: Shape) -> Iterator[Diagnostic]:
    table, manifest = found.inspected.table, found.manifest
    if table is None or manifest is None or not manifest.segments or lacks_columns(found):
        return
    present = {c.name for c in table.columns}
    statement = ddl.count_unkeyed(found.decision.target, current, desired, manifest.contents, present=present)
    ((unkeyed, repeated),) = workspace.sql.query(workspace.text(statement)).rows
    key = ", ".join(desired.keys)
    if unkeyed:
        yield diagnose("SS126", f"{unkeyed} rows have no value in the new key ({key})")
    if repeated:
        yield diagnose("SS126", f"{repeated} rows have the same new key ({key}) as another row")


def keys_before(current: Shape, desired: Shape) -> tuple[str, ...]:
    """Return what the columns of the desired key are called now, without those that are not there yet."""
    wanted = {column.life for column in desired.columns if column.name in desired.keys}
    return tuple(column.name for column in current.columns if column.life in wanted)


def rebuild(
    workspace: Workspace, target: TableTarget, current: Shape, properties: TableProperties, *, keys: tuple[str, ...]
) -> tuple[TableProperties, Manifest]:
    """Fold the table under the key that it has, to go on under another one; return it as it is in force then.

    Raises:
        ConflictError: another writer published first; nothing of this became visible.
        StorageError: the new base cannot be written.
    """
    draft = read_draft(workspace, target, properties)
    fold = plan_rekey(draft.manifest, keys)
    if fold is not None:
        draft = run_fold(workspace, target, current, draft, fold).draft
    return draft.properties, draft.manifest
