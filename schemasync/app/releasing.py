"""Releasing a held table: apply it once under the policies that a person agrees to, and admit what waited."""

from __future__ import annotations

from dataclasses import replace

from schemasync.app.applying import ApplyResult, apply_table
from schemasync.app.inspecting import TableView, map_tables, select_one
from schemasync.app.migrating import with_values_checked
from schemasync.app.rekeying import with_keys_checked
from schemasync.app.workspace import Workspace
from schemasync.core.plan import decide
from schemasync.core.policy import Verdict
from schemasync.core.release import RELEASES, Release, released


def release(workspace: Workspace, name: str, how: Release) -> ApplyResult:
    """Apply one table under the policies of a release; what is held all the same is part of the result.

    Raises:
        UsageError: the name is no configured table, or that of several.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    target = select_one(mapping, name)
    return ApplyResult(tables=(apply_table(workspace, released(target, how)),), problems=mapping.problems)


def way_out(workspace: Workspace, found: TableView) -> Release | None:
    """Return the release that agrees to the least and lifts a table's hold, None where none does."""
    if any(d.code == "SS306" for d in found.decision.diagnostics):
        return None  # a file of ours is missing; that is no decision which policies could make otherwise
    for how in RELEASES:
        inspected = replace(found.inspected, target=released(found.inspected.target, how))
        tried = with_values_checked(workspace, replace(found, inspected=inspected, decision=decide(inspected)))
        tried = with_keys_checked(workspace, tried)
        if tried.decision.verdict is not Verdict.HOLD:
            return how
    return None
