"""Showing a published state: the dedup view names the segments that it reads, and follows the state in force.

What a partition holds never changes, and one that a state named stays registered until the reader grace is over. So
a reader sees exactly the state whose view it resolved, whatever is published meanwhile, and the view's replacement is
the moment at which a state becomes visible.
"""

from __future__ import annotations

from schemasync.app.inspecting import look
from schemasync.app.repairing import replace_view
from schemasync.app.states import Draft, properties_in_force, publish, sync_partitions
from schemasync.app.view_texts import has_own_select, text_before, view_select, view_statement
from schemasync.app.workspace import Workspace
from schemasync.core.compaction import shown_late
from schemasync.core.kept import Kept, kept_of
from schemasync.core.manifest import Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import HiveTable
from schemasync.core.shape import Shape
from schemasync.core.view_drift import same_text, view_reasons


def refresh_view(
    workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, *, seen: HiveTable | None = None
) -> None:
    """Make the view the one of a state that is in force, or of a later one that another writer published meanwhile.

    A view of an earlier state that replaces one of a later one takes back what was visible: so whoever replaced it
    looks again. ``seen`` is the view as planning found it, None where this run has changed it.
    """
    if _show(workspace, target, shape, manifest, seen) and _is_overtaken(workspace, target, shape, manifest):
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
    ``seen`` is the view as planning found it. Return whether it was left behind.

    Raises:
        ConflictError: another writer published first.
    """
    manifest = draft.manifest
    if same_text(seen.view_text, view_select(workspace, target, shape, manifest.contents)):
        return False
    before = text_before(workspace, target, shape, manifest)
    if before is None or not same_text(seen.view_text, before):
        return False
    if (later := shown_late(manifest, now_ms=workspace.now_ms())) is not None:
        manifest = publish(workspace, target, draft.with_(later)).manifest
    refresh_view(workspace, target, shape, manifest, seen=seen)
    return True


def _show(workspace: Workspace, target: TableTarget, shape: Shape, manifest: Manifest, seen: HiveTable | None) -> bool:
    """Make the view that of a state; return False where it was already.

    What else somebody changed of a view since it was seen is for the next run's plan.
    """
    metastore, name = workspace.metastore, (target.database, target.view)
    select = view_select(workspace, target, shape, manifest.contents)
    # What a template of the user's own makes of a state may be no SQL: Spark is to refuse it before anyone reads it.
    as_it_is = not has_own_select(workspace.renderer)
    if (
        as_it_is
        and seen is not None
        and not same_text(seen.view_text, select)
        and _lacks_text_only(seen, target, shape)
        and metastore.set_view_text(*name, select, expected=seen.view_text)
    ):
        return True
    view = metastore.table(*name)
    if view is not None and same_text(view.view_text, select):
        return False
    if as_it_is and view is not None and _lacks_text_only(view, target, shape):
        metastore.set_view_text(*name, select)
    else:
        kept = _kept(view, target, shape)
        replace_view(workspace, target, view_statement(workspace, target, shape, select, kept=kept))
    return True


def _lacks_text_only(view: HiveTable, target: TableTarget, shape: Shape) -> bool:
    """Tell whether a view is that of a shape, whatever its text is."""
    return not view_reasons(view, target, shape, view.view_text, _kept(view, target, shape))


def _kept(view: HiveTable | None, target: TableTarget, shape: Shape) -> Kept:
    return kept_of(view, table=target.full_name, current=shape, desired=shape)


def _is_overtaken(workspace: Workspace, target: TableTarget, shape: Shape, shown: Manifest) -> bool:
    properties = properties_in_force(workspace, target)
    if properties is None:
        return False
    same_shape = (properties.version, properties.keys) == (shape.version.version, shape.keys)
    return shown.state < properties.state or not same_shape
