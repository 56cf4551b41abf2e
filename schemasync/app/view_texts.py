"""The texts of a table's view: of the state in force, and those that an earlier run may have left it with."""

from __future__ import annotations

from collections.abc import Sequence

from schemasync.app.inspecting import TableView
from schemasync.app.states import state_before
from schemasync.app.workspace import Renderer, Workspace
from schemasync.core import ddl
from schemasync.core.kept import NOTHING, Kept
from schemasync.core.manifest import Contents, Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect
from schemasync.core.ports import HiveTable
from schemasync.core.shape import Shape
from schemasync.core.view_drift import same_text
from schemasync.core.view_statement import ends_with_query, proper_query
from schemasync.errors import UsageError


def view_select(workspace: Workspace, target: TableTarget, shape: Shape, contents: Contents) -> str:
    """Render the dedup view's SELECT for what its segments hold, as a view that is made of it has it.

    Raises:
        UsageError: a template of the user's own leaves out which segments are read. Superseded ones stay registered
            for a while: their rows would count, too.
    """
    select = workspace.text(ddl.view_body(target, shape, contents, Dialect.SPARK))
    if has_own_select(workspace.renderer) and (left_out := _left_out(contents, select)):
        raise UsageError(
            "the template reads other segments than those of the state",
            where=f"templates: {ddl.VIEW_BODY}",
            why=f"its SELECT does not name {left_out}",
            fix="Compare it with the one that ships: conditions such as {{ segments }} say which rows count.",
        )
    return as_stored(workspace.renderer, select, Dialect.SPARK)


def _left_out(contents: Contents, select: str) -> str | None:
    """Return a segment of a state that a SELECT does not name, None where it names all.

    Of a state without any it is to read nothing: so a plan tells before there is a table, and every plan asks for that.
    """
    names = [name for names in contents.segments for name in names] or [ddl.of_segments(contents, Dialect.SPARK)]
    return next((name for name in names if name not in select), None)


def as_stored(renderer: Renderer, select: str, dialect: Dialect) -> str:
    """Return a SELECT that was rendered for the dedup view as engines keep it.

    What ships has nothing before or after it, and may name thousands of keys. Trino keeps a text as it is.
    """
    return proper_query(select) if dialect is not Dialect.TRINO and has_own_select(renderer, dialect) else select


def has_own_select(renderer: Renderer, dialect: Dialect = Dialect.SPARK) -> bool:
    """Tell whether the dedup view's SELECT is laid out by a template of the user's own."""
    return renderer.own_file(ddl.VIEW_BODY, dialect=dialect.value) is not None


def view_statement(
    workspace: Workspace, target: TableTarget, shape: Shape, select: str, *, kept: Kept = NOTHING
) -> str:
    """Render the statement that makes the view of its SELECT; ``kept`` is what people wrote on it.

    Raises:
        UsageError: as `require_select_alone`.
    """
    statement = workspace.text(ddl.create_view(target, shape, select, Dialect.SPARK, kept))
    require_select_alone(workspace.renderer, statement, select, Dialect.SPARK)
    return statement


def require_select_alone(renderer: Renderer, statement: str, select: str, dialect: Dialect) -> None:
    """Make sure that what a statement makes a view of is the SELECT that was rendered for it, and nothing else.

    Trino's is only printed, and nothing is made of it.

    Raises:
        UsageError: a template of the user's own has something around the SELECT, or changes it. States that follow
            replace the view's text by the next SELECT, and what it was around it, a filter perhaps, would be gone.
    """
    own = None if dialect is Dialect.TRINO else renderer.own_file(ddl.VIEW, dialect=dialect.value)
    if own is None or ends_with_query(statement, select):
        return
    raise UsageError(
        "the template has something around {{ body }}, or another text in its place",
        where=own,
        why="the view of the next state would be without that, as its text alone is replaced",
        fix="Let the statement end with AS {{ body }}; where only some rows are to show, make a view of your own that "
        "reads this one.",
    )


def text_of(view: HiveTable | None, texts: Sequence[str]) -> str:
    """Return which of the texts a view has, the first where it has none of them."""
    return next((text for text in texts if view is not None and same_text(view.query, text)), texts[0])


class LeftTexts:
    """The texts that a view may have been left with. Each is written once: one may name thousands of keys."""

    def __init__(self, workspace: Workspace, found: TableView) -> None:
        self._workspace = workspace
        self._found = found
        self._written: list[tuple[Shape, str]] = []

    def of(self, *shapes: Shape) -> tuple[str, ...]:
        """Return those of the state in force, by shape, then that of the state before, if it could be that.

        A run that was killed once it had published leaves the view of the state before.
        """
        found = self._found
        target, view, manifest = found.decision.target, found.inspected.view, found.manifest
        left = tuple(self._in_force(shape) for shape in shapes)
        if manifest is None or view is None or any(same_text(view.query, text) for text in left):
            return left
        before = text_before(self._workspace, target, found.decision.current, manifest)
        return left if before is None else (*left, before)

    def _in_force(self, shape: Shape) -> str:
        for known, text in self._written:
            if known == shape:
                return text
        text = view_select(self._workspace, self._found.decision.target, shape, _contents(self._found))
        self._written.append((shape, text))
        return text


def _contents(found: TableView) -> Contents:
    return Contents() if found.manifest is None else found.manifest.contents


def text_before(workspace: Workspace, target: TableTarget, shape: Shape | None, manifest: Manifest) -> str | None:
    """Return the view's text of the last state that showed something else, None where this shape can show none."""
    lake = workspace.storage(target).lake
    before = state_before(lake, target, manifest)
    while before is not None and before.contents == manifest.contents:
        # It shows the same, and what went before it may be what a killed run left.
        before = state_before(lake, target, before)
    if before is None or shape is None:
        return None
    try:
        return view_select(workspace, target, shape, before.contents)
    except ValueError:  # its rows had types that nothing of this shape can be made of
        return None
