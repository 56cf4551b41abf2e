"""What stands under the names that a table's view and history had before the configuration called them otherwise.

Nobody writes either of them any more. A view names the segments of its day, whose partitions go once the reader grace
is over, and the history's files are deleted then: what is left shows fewer rows, or none, without an error. So the
table's properties keep the names, and planning yields the steps that drop what is ours under the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from schemasync.core.diagnostics import Diagnostic, Severity, diagnose
from schemasync.core.history_table import is_history_of
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import HiveTable
from schemasync.core.properties import SUBJECT, TableProperties, is_ours


@dataclass(frozen=True, slots=True, kw_only=True)
class OldNames:
    """What a table's view and history were called, None where they still are."""

    view: str | None = None
    history: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(name for name in (self.view, self.history) if name is not None)


Role = Literal["view", "history"]


def kept_name(target: TableTarget, role: Role, before: str) -> str:
    """Return what the table's properties say of a name where they said ``before``: nothing until it is no default."""
    name: str = getattr(target, role)
    return name if before or name != _default(target, role) else ""


def old_names(target: TableTarget, properties: TableProperties) -> OldNames:
    """Return the names that a table's view and history had when its schema was last applied, where these are others."""
    view, history = (
        properties.view or _default(target, "view"),
        properties.history or _default(target, "history"),
    )
    there = (target.table, target.view, target.history)
    return OldNames(view=None if view in there else view, history=None if history in there else history)


def _default(target: TableTarget, role: Role) -> str:
    return f"{target.table}_{role}"


def is_old_view(found: HiveTable | None, target: TableTarget) -> bool:
    """Tell whether this is a view that was made for the table's subject."""
    return found is not None and found.kind == "VIRTUAL_VIEW" and found.properties.get(SUBJECT) == target.subject


def with_old_history(target: TableTarget, properties: TableProperties, left: HiveTable | None) -> TableTarget:
    """Return the table with the name under which its history goes on: the old one while ``left`` has that.

    Written under another name it would take the old one's files away.
    """
    name = old_names(target, properties).history
    return target if name is None or not is_old_history(left, target) else replace(target, history=name)


def is_old_history(found: HiveTable | None, target: TableTarget) -> bool:
    """Tell whether this was made for the past of the table."""
    return found is not None and is_history_of(found, target)


def left_alone(view: HiveTable | None, target: TableTarget) -> Iterator[Diagnostic]:
    """Tell that what has the view's old name is another's."""
    if view is not None and not is_ours(view.properties):
        message = f"{view.database}.{view.name}, as the view of {target.table} was called, is not schemasync's"
        found = diagnose("SS201", f"{message}: it is left alone", fix="Drop it, unless somebody needs it.")
        yield replace(found, severity=Severity.WARNING)
