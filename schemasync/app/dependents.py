"""Views of other people that read the tables: listed once per run and only when they matter, decided in the core.

Used by plan, where a change touches what views may use, and by check, always. A metastore that refuses the
list is a finding, not a failure: what can be said about the table is said all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from schemasync.app.inspecting import aside_name
from schemasync.core.dependents import Dependent, Impact, Ours, find_dependents, findings, impact
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.plan import Decision
from schemasync.core.ports import HiveTable, Metastore
from schemasync.core.renamed import old_names
from schemasync.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The views that read one table, and what there is to tell of them."""

    dependents: tuple[Dependent, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class ReadingViews:
    """The views of one metastore."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore

    @cached_property
    def _views(self) -> tuple[HiveTable, ...]:
        return self._metastore.views()

    def of(self, decision: Decision, dropped: Impact | None = None) -> Readers:
        """Find the views that read a table, and what the decision does to each; ``dropped`` is what it drops."""
        from schemasync.io.view_reader import SqlglotReader  # noqa: PLC0415 - a tenth of a second to import

        target = decision.target
        try:
            views = self._views
        except EngineError as error:
            message = f"which views read {target.full_name} cannot be told: {error}"
            return Readers(
                diagnostics=(diagnose("SS504", message, fix="Have the views of all databases made readable."),)
            )
        touched = {**impact(target, decision.current, decision.desired), **(dropped or {})}
        found = find_dependents(views, SqlglotReader(), touched, _ours(decision))
        return Readers(dependents=found, diagnostics=tuple(findings(found)))

    def troubled_by(self, decision: Decision, dropped: Impact) -> tuple[Diagnostic, ...]:
        """Return what to tell of the views; none are looked at where nothing that they may use changes for them."""
        touched = impact(decision.target, decision.current, decision.desired)
        return self.of(decision, dropped).diagnostics if any((*touched.values(), *dropped.values())) else ()


def _ours(decision: Decision) -> Ours:
    """Return the names under which views of the table may be ours; what has its own is none that reads it anyway."""
    target, known = decision.target, decision.properties
    names = (aside_name(target), *(old_names(target, known).all if known else ()))
    return Ours(
        subject=target.subject,
        relations=frozenset((target.database.lower(), name.lower()) for name in names),
    )
