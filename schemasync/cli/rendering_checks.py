"""What check and a replay found, as text for people and as GitHub's workflow commands.

Annotations follow "Workflow commands for GitHub Actions": one per finding, at the line of its field, and a summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rich.text import Text

from schemasync.app.checking import CheckResult
from schemasync.app.replaying import Moment, Replay, TableReplay
from schemasync.cli.lines import VERDICTS, Line, change_lines, diagnostic_lines, head_line, size_text, versions_text
from schemasync.core.amounts import many
from schemasync.core.dependents import Dependent
from schemasync.core.diagnostics import Severity
from schemasync.core.policy import Verdict

_LEVELS: Final = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.ERROR: "error"}


def check_text(check: CheckResult) -> Iterator[Line]:
    """Say what a proposed schema would do: verdict, changes, findings, cost, and the views that read the table."""
    plan = check.plan
    yield head_line(plan, plan.verdict.value, VERDICTS[plan.verdict])
    yield from change_lines(plan.changes)
    yield from diagnostic_lines(finding.diagnostic for finding in check.findings)
    if plan.files:
        yield f"  cost       {_cost(check)}"
    for dependent in check.dependents:
        yield f"  read by    {dependent.view}: {_use(dependent)}"
    yield _summary(check)


def _cost(check: CheckResult) -> str:
    return f"{many(check.plan.files, 'file')}, {size_text(check.plan.bytes)}"


def _use(dependent: Dependent) -> str:
    if dependent.unclear:
        return "what it reads cannot be told"
    used = ", ".join(f"{t.column} ({t.effect.value})" for t in dependent.touched)
    return f"uses {used}" if used else "uses nothing that changes"


def _summary(check: CheckResult) -> str:
    plan = check.plan
    if check.registered is not None:
        already = f"nothing would change: the registry's version {check.registered} is this schema"
        newest = check.registered == plan.desired_version
        return already if newest else f"{already}, and no new one would come of it"
    if plan.verdict is Verdict.HOLD:
        return "the table would be held"
    if check.broken:
        return f"the change is allowed, and would break {', '.join(check.broken)}"
    return f"the change is allowed ({plan.verdict.value})" if plan.pending else "nothing would change"


def github_text(check: CheckResult, file: str) -> Iterator[Line]:
    """Write the findings as annotations of ``file``, its path from the repository's root, and a summary."""
    plan = check.plan
    for finding in check.findings:
        one = finding.diagnostic
        message = f"{one.message}\n{one.fix}" if one.fix else one.message
        yield _command(_LEVELS[one.severity], {"file": file, "line": str(finding.line), "title": one.code}, message)
    counted = [many(len(plan.changes), "change"), many(len(check.dependents), "dependent view")]
    cost = [f"cost {_cost(check)}"] if plan.files else []
    name = plan.target.full_name
    message = f"{name}, {versions_text(plan)}: {_summary(check)}; {', '.join([*counted, *cost])}"
    yield _command("error" if check.refused else "notice", {"file": file, "line": "1", "title": "schemasync"}, message)


def _command(level: str, properties: Mapping[str, str], message: str) -> str:
    given = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{level} {given}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    """Escape what would end a command, the percent sign first and so only once."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)


def replay_text(replay: Replay) -> Iterator[Line]:
    """Say per table and version what would have become of it."""
    for table in replay.tables:
        yield from _timeline(table)
        yield ""
    moments = sum(len(table.timeline) for table in replay.tables)
    held = sum(table.held for table in replay.tables)
    yield f"{many(len(replay.tables), 'table')}, {many(moments, 'version')}: {held} held"


def _timeline(table: TableReplay) -> Iterator[Line]:
    name = table.target.full_name
    yield Text.assemble((name, "bold"), "  ", (table.target.subject, "dim"))
    yield from diagnostic_lines(table.diagnostics)
    if table.unread:
        yield f"  schemas kept beside the data were not read: {table.unread}"
    for moment in table.timeline:
        yield from _moment(moment)


def _moment(moment: Moment) -> Iterator[Line]:
    before = f"version {moment.from_version} -> " if moment.from_version else "new, version "
    yield Text.assemble(f"{before}{moment.to_version}  ", (moment.verdict.value, VERDICTS[moment.verdict]))
    yield from change_lines(moment.changes)
    yield from diagnostic_lines(moment.diagnostics)
