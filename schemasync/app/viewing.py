"""Showing a published state: the dedup view names the segments that it reads, and follows the state in force.

What a partition holds never changes, and one that a state named stays registered until the reader grace is over. So
a reader sees exactly the state whose view it resolved, whatever is published meanwhile, and the view's replacement is
the moment at which a state becomes visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schemasync.app.inspecting import entries_of, look
from schemasync.app.repairing import replace_view
from schemasync.app.states import Draft, properties_in_force, publish, sync_partitions
from schemasync.app.view_texts import has_own_select, text_before, view_select, view_statement
from schemasync.app.workspace import Workspace
from schemasync.core.compaction import shown_late
from schemasync.core.kept import Kept, kept_of
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import HiveTable
from schemasync.core.renamed import is_old_view
from schemasync.core.shape import Shape
from schemasync.core.view_drift import as_shown, same_text, view_reasons


def refresh_view(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, *, seen: HiveTable | None = None
) -> None:
    """Make the view the one of a state that is in force, or of a later one that another writer published meanwhile.

    It keeps the names and the columns of ours that it has: others are steps of a plan, which a person may have to let
    through. A view of an earlier state that replaces one of a later one takes back what was visible: so whoever
    replaced it looks again. ``seen`` is the view as planning found it, None where this run has changed it, or where it
    stands under its old name, too.
    """
    changed = [seen is not None and _move_on(workspace, target, shape, manifest, seen)]
    if not any(changed):
        changed = [_show(workspace, one, shape, manifest, view) for one, view in _standing(workspace, target)]
    if any(changed) and _is_overtaken(workspace, target, shape, manifest):
        follow_state(workspace, target)


def restore_view(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest) -> None:
    """Make the view anew under the name that is configured, whichever others it has; all else as `refresh_view`."""
    view = workspace.metastore.table(target.database, target.view)
    if _show(workspace, target, shape, manifest, view) and _is_overtaken(workspace, target, shape, manifest):
        follow_state(workspace, target)


def follow_state(workspace: Workspace, target: TableTarget) -> None:
    """Make the view the one of the state in force, whoever put it there, where its shape is understood.

    Whoever did may have been killed before its partitions were there.
    """
    found = look(workspace, target)
    shape, manifest = found.decision.current, found.manifest
    if shape is not None and manifest is not None:
        sync_partitions(workspace, target, manifest)
        refresh_view(workspace, target, shape, manifest)


def catch_up(workspace: Workspace, target: TableTarget, shape: Shape, draft: Draft, *, seen: HiveTable) -> bool:
    """Make the view that of the state in force where a run that was killed in between left that of the state before.

    What that state superseded was shown until now: its reader grace counts from now, and that is published first.
    ``seen`` is the view as planning found it, by one of its names. Return whether it was left behind.

    Raises:
        ConflictError: another writer published first.
    """
    manifest, told = draft.manifest, as_shown(target, shape, seen)
    if same_text(seen.query, view_select(workspace, told, shape, manifest.contents)):
        return False
    before = text_before(workspace, told, shape, manifest)
    if before is None or not same_text(seen.query, before):
        return False
    if (later := shown_late(manifest, now_ms=workspace.now_ms())) is not None:
        manifest = publish(workspace, target, draft.with_(later)).manifest
    refresh_view(workspace, target, shape, manifest)
    return True


def _standing(workspace: Workspace, target: TableTarget) -> Iterator[tuple[TableTarget, HiveTable | None]]:
    """Yield the table as each name of its view has it, with what is there; the configured one alone where none is."""
    found = entries_of(workspace, target)
    old = found.old_view if is_old_view(found.old_view, target) else None
    if old is not None:
        yield replace(target, view=old.name), old
    if old is None or is_old_view(found.view, target):
        yield target, found.view


def _move_on(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, seen: HiveTable) -> bool:
    """Give the view the text of a state where it is as it was seen; return False where it was not, or has it.

    What else somebody changed of it since is for the next run's plan.
    """
    if has_own_select(workspace.renderer):
        return False
    target = as_shown(target, shape, seen)
    select = view_select(workspace, target, shape, manifest.contents)
    return (
        not same_text(seen.query, select)
        and _lacks_text_only(seen, target, shape)
        and workspace.metastore.set_view_text(target.database, target.view, select, expected=seen.query)
    )


def _show(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, view: HiveTable | None) -> bool:
    """Make the view that of a state; return False where it was already."""
    target = as_shown(target, shape, view)
    select = view_select(workspace, target, shape, manifest.contents)
    if view is not None and same_text(view.query, select):
        return False
    # What a template of the user's own makes of a state may be no SQL: Spark is to refuse it before anyone reads it.
    as_it_is = not has_own_select(workspace.renderer)
    if as_it_is and view is not None and _lacks_text_only(view, target, shape):
        workspace.metastore.set_view_text(target.database, target.view, select)
    else:
        kept = _kept(view, target, shape)
        replace_view(workspace, target, view_statement(workspace, target, shape, select, kept=kept))
    return True


def _lacks_text_only(view: HiveTable, target: TableTarget, shape: Shape) -> bool:
    """Tell whether a view is that of a shape, whatever its text is."""
    return not view_reasons(view, target, shape, view.query, _kept(view, target, shape))


def _kept(view: HiveTable | None, target: TableTarget, shape: Shape) -> Kept:
    return kept_of(view, table=target.full_name, current=shape, desired=shape)


def _is_overtaken(workspace: Workspace, target: TableTarget, shape: Shape, shown: Manifest) -> bool:
    properties = properties_in_force(workspace, target)
    if properties is None:
        return False
    same_shape = (properties.version, properties.keys) == (shape.version.version, shape.keys)
    return shown.state < properties.state or not same_shape
