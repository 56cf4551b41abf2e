"""What a proposed schema would do to the warehouse: the plan, were a file the registry's next version of its subject.

Nothing is registered and nothing is written. The verdict is plan's own, so that check and plan cannot disagree; views
that read the table are looked at whether or not it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schemasync.app.dependents import ReadingViews
from schemasync.app.inspecting import look
from schemasync.app.kept_schemas import kept_schemas
from schemasync.app.planning import TablePlan, lay_out_steps
from schemasync.app.proposing import ProposedRegistry, SchemaFile, propose, read_schema_file
from schemasync.app.workspace import Workspace
from schemasync.core.dependents import Dependent, Effect
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import Diagnostic
from schemasync.core.field_lines import line_for
from schemasync.core.locations import parse_location
from schemasync.core.mapping import TableMapping, TableTarget, map_subjects
from schemasync.core.policy import Verdict
from schemasync.core.ports import RegisteredSchema
from schemasync.core.renamed import is_old_view
from schemasync.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is to be checked: a schema for a subject, and one for its key subject, as `read_proposal` finds them."""

    subject: str
    value: SchemaFile
    key: SchemaFile | None = None


def read_proposal(file: Path, subject: str, *, key: Path | None, references: Mapping[str, Path]) -> Proposal:
    """Read what is to be checked; ``references`` are files by the name of the type that they define.

    Raises:
        UsageError: a file is missing or no JSON.
    """
    value = read_schema_file(file, references)
    return Proposal(subject=subject, value=value, key=read_schema_file(key, {}) if key else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A diagnostic, and the line of the schema file that it is about."""

    diagnostic: Diagnostic
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What would happen. ``registered`` is the registry's version that is this schema already, None where none is."""

    plan: TablePlan
    findings: tuple[Finding, ...] = ()
    dependents: tuple[Dependent, ...] = ()
    registered: int | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        """The views whose queries would fail."""
        return tuple(
            d.view for d in self.dependents if any(t.effect in {Effect.SHIFTED, Effect.GONE} for t in d.touched)
        )

    @property
    def refused(self) -> bool:
        """Tell whether the table would be held, or somebody's view would break."""
        return self.plan.verdict is Verdict.HOLD or bool(self.broken)

    def to_json(self) -> dict[str, Any]:
        """Return what ``check --json`` prints: the table as in ``plan --json``, lines, and the views that read it.

        ``registered`` is null unless the schema is a version already.
        """
        found = [{**diagnostic_json(f.diagnostic), "line": f.line} for f in self.findings]
        return {
            **self.plan.to_json(),
            "registered": self.registered,
            "diagnostics": found,
            "dependents": [dependent.to_json() for dependent in self.dependents],
        }


def check(workspace: Workspace, proposal: Proposal) -> CheckResult:
    """Plan a table as if a file were the next version of its subject.

    Raises:
        UsageError: no table is configured for the subject.
        RegistryUnavailableError: the registry does not answer.
    """
    value, key = proposal.value, proposal.key
    target = _target(workspace, proposal.subject, keyed=key is not None)
    registry, repeats = workspace.registry, parse_location(workspace.config.registry.url).is_local
    group, given = target.compatibility_group, 0 if repeats else _newest_kept(workspace, target)
    proposed = propose(registry, target.subject, value, group=group, given=given, repeats=repeats)
    news = [proposed]
    if key is not None and target.key_subject is not None:
        news.append(propose(registry, target.key_subject, key, repeats=repeats))
    made = [version for version in news if isinstance(version, RegisteredSchema)]
    if isinstance(proposed, int) and not made:
        return _nothing_new(workspace, target, proposed)
    return _planned(replace(workspace, registry=ProposedRegistry(registry, made)), target, value)


def _newest_kept(workspace: Workspace, target: TableTarget) -> int:
    """Return the highest version that the table had, which may be deleted by now."""
    kept = kept_schemas(workspace.storage(target).lake)
    return max((one.version for one in kept if one.subject == target.subject), default=0)


def _planned(workspace: Workspace, target: TableTarget, value: SchemaFile) -> CheckResult:
    found = look(workspace, target)
    plan = lay_out_steps(workspace, found)
    old = found.inspected.old_view
    # That it will be called otherwise is not this schema's doing, and until then people read it by its old name.
    view = old.name if old is not None and is_old_view(old, found.decision.target) else found.decision.target.view
    named = replace(found.decision, target=replace(found.decision.target, view=view))
    readers = ReadingViews(workspace.metastore).of(named)
    columns = {column for change in plan.changes if (column := change_json(change)["column"])}
    return CheckResult(
        plan=plan,
        findings=tuple(
            Finding(diagnostic=d, line=line_for(value.text, d.message, columns))
            for d in (*plan.diagnostics, *readers.diagnostics)
        ),
        dependents=readers.dependents,
    )


def _nothing_new(workspace: Workspace, target: TableTarget, registered: int) -> CheckResult:
    """Say that nothing would change; what the table still has to follow is not this schema's doing."""
    plan = lay_out_steps(workspace, look(workspace, target))
    unchanged = TablePlan(
        target=target,
        verdict=Verdict.NONE,
        current_version=plan.current_version,
        desired_version=plan.desired_version,
    )
    return CheckResult(plan=unchanged, registered=registered)


def _target(workspace: Workspace, subject: str, *, keyed: bool) -> TableTarget:
    """Return the table that a subject has or would have.

    Raises:
        UsageError: the configuration has no table for it.
    """
    key_subject = f"{subject.removesuffix('-value')}-key"
    proposed = {subject, key_subject} if keyed else {subject}
    mapping = map_subjects(sorted({*workspace.registry.subjects(), *proposed}), workspace.config)
    found = next((target for target in mapping.targets if target.subject == subject), None)
    if found is None:
        raise _no_table(mapping, subject)
    return found


def _no_table(mapping: TableMapping, subject: str) -> UsageError:
    if problem := mapping.problem_of(subject):
        return problem
    known = ", ".join(target.subject for target in mapping.targets) or "none"
    return UsageError(
        f"no table is configured for the subject {subject}",
        where="--subject",
        fix=f"Correct it, or add it under tables:. The subjects here: {known}.",
    )
