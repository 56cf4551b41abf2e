"""Results as text for people: lines that nothing wraps or cuts, readable without colours.

The other form, JSON, is what the results' own ``to_json`` gives; `schemasync.cli.context.Call.answer` chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from schemasync.app.applying import Applied, ApplyResult
from schemasync.app.compacting import Compacted, CompactResult
from schemasync.app.doctor import Check, Health, Report
from schemasync.app.planning import Plan, TablePlan
from schemasync.app.status import Status, TableStatus
from schemasync.app.vacuuming import VacuumResult
from schemasync.cli.lines import (
    VERDICTS,
    Line,
    change_lines,
    diagnostic_lines,
    duration_text,
    head_line,
    size_text,
)
from schemasync.core.amounts import many
from schemasync.core.compaction import FoldPlan
from schemasync.core.layering import MergePlan
from schemasync.core.manifest import Segment
from schemasync.core.plan import Step
from schemasync.core.policy import Verdict
from schemasync.core.ports import Rows
from schemasync.core.step_kinds import ADMIT
from schemasync.io.logs import printable

_HEALTHS: Final = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "bold red", Health.SKIPPED: "dim"}


def plan_text(plan: Plan) -> Iterator[Line]:
    """Say per table: verdict, versions, each change, each finding with its fix, each step with its SQL."""
    for table in plan.tables:
        yield from _table_plan(table)
        yield ""
    yield from _skipped(plan.skipped)
    yield from diagnostic_lines(plan.diagnostics)
    pending = sum(table.due for table in plan.tables)
    held = sum(table.held for table in plan.tables)
    admitting = sum(1 for table in plan.tables if table.landed)
    yield f"{many(len(plan.tables), 'table')}: {pending} to change, {held} held, {admitting} with landed files"


def _skipped(subjects: Sequence[str]) -> Iterator[Line]:
    """Name subjects that were left out for what they are called: whoever wrote the expression may miss a table."""
    if subjects:
        yield Text(f"no tables by their names: {', '.join(subjects)}", "dim")
        yield "    fix: Where one of them holds rows, add an entry to tables: that names it exactly."


def _table_plan(table: TablePlan) -> Iterator[Line]:
    yield head_line(table, table.verdict.value, VERDICTS[table.verdict])
    yield from change_lines(table.changes)
    yield from diagnostic_lines(table.diagnostics)
    if table.rewrite:
        yield f"  the next compaction rewrites {many(table.files, 'file')} ({size_text(table.bytes)}) for it"
    if not table.steps and table.verdict is Verdict.NONE:
        yield "  nothing to do"
    for number, step in enumerate(table.steps, start=1):
        yield from _step(number, step)


def _step(number: int, step: Step) -> Iterator[Line]:
    yield Text.assemble((f"  {number}. {step.kind.replace('_', ' ')}", "bold"), f": {step.why}")
    for line in step.sql.splitlines():
        yield Text(f"       {line}", "cyan")


def apply_text(result: ApplyResult) -> Iterator[Line]:
    """Say per table what was done, what it admitted, and what stands in the way."""
    for table in result.tables:
        yield from _applied(table)
    yield from diagnostic_lines(result.diagnostics)
    failed = sum(table.error is not None for table in result.tables)
    held = sum(table.held for table in result.tables)
    yield f"{many(len(result.tables), 'table')}: {failed} failed, {held} held"


def _applied(table: Applied) -> Iterator[Line]:
    word, style = ("failed", "bold red") if table.error else ("held", "bold red") if table.held else ("ok", "green")
    version = f"  version {table.version}" if table.version is not None else ""
    yield Text.assemble((table.target.full_name, "bold"), "  ", (word, style), version)
    for step in table.done:
        if step.kind == ADMIT:
            continue  # told below, with what came of it
        yield f"  {step.kind.replace('_', ' ')}: {step.why}"
    if table.admitted and table.admitted.files:
        yield f"  admitted {many(table.admitted.events, 'event')} from {many(table.admitted.files, 'file')}"
    if table.waiting:
        yield f"  {many(table.waiting, 'file')} waiting"
    yield from diagnostic_lines(table.diagnostics)


def compact_text(result: CompactResult, *, dry_run: bool) -> Iterator[Line]:
    """Say per table what was folded, or would be."""
    for table in result.tables:
        yield from _compacted(table, dry_run=dry_run)


def _compacted(table: Compacted, *, dry_run: bool) -> Iterator[Line]:
    name = Text(table.target.full_name, "bold")
    fold, counts = table.fold, table.counts
    if table.failure is not None:
        yield name + Text("  failed", "bold red")
    elif table.merge is not None:
        yield from _left(name, table, table.merge, dry_run=dry_run)
    elif fold is None:
        yield name + Text("  nothing to fold")
    elif counts is None:
        would = f"  would fold {many(fold.events, 'event')} of {many(len(fold.fold), 'segment')}"
        yield name + Text(f"{would} into generation {fold.generation}, reading {size_text(fold.bytes_read)}")
        yield f"  {_shards(fold, table.base)} would be written: {_costs(fold.rewrite_bytes, fold.change_bytes)}"
    else:
        yield name + Text(f"  generation {table.generation}: {many(fold.events, 'event')} folded", "green")
        counted = f"{counts.inserted} inserted, {counts.updated} updated, {counts.deleted} deleted"
        yield f"  {many(table.rows, 'row')}: {counted}"
        sizes = f"read {size_text(fold.bytes_read)}, wrote {size_text(table.bytes_written)}"
        yield f"  {_shards(fold, table.base)} written: {sizes} in {table.seconds:.1f} s"
    if table.why:
        yield f"  {'would be ' if dry_run else ''}folded although --minor was asked for: {table.why}"
    if dry_run:
        yield from _first(table.applied)
    if table.applied.held or not dry_run:
        yield from diagnostic_lines(table.applied.diagnostics)


def _first(applied: Applied) -> Iterator[Line]:
    """Say what a run does before it compacts, and whether the figures are with it."""
    if applied.plan.pending:
        yield "  a run changes the schema first (schemasync plan): these figures are without that"
    admitted = applied.admitted.files if applied.admitted else 0
    for step in applied.plan.steps:
        if step.kind == ADMIT:
            counted = f"these figures are with {admitted} of them" if admitted else "these figures are without them"
            yield f"  {step.why}: a run takes them in first, {counted}"


def _left(name: Text, table: Compacted, merge: MergePlan, *, dry_run: bool) -> Iterator[Line]:
    """Say what a minor compaction did, and why it was none that folds."""
    would = "would be " if dry_run else ""
    merged = f"{len(merge.merge)} merged into one" if merge.merge else "few enough"
    yield name + Text(f"  changes {would}left beside the base: {many(len(table.deltas), 'delta')}, {merged}", "green")
    yield f"  {_costs(merge.rewrite_bytes, merge.change_bytes)}"


def _costs(rewrite_bytes: int, change_bytes: int) -> str:
    """Say between what a compaction chooses."""
    rewrite, change = size_text(rewrite_bytes), size_text(change_bytes)
    return f"folding changes writes {rewrite} of shards anew, leaving them lets queries read {change} more"


def _shards(fold: FoldPlan, base: Sequence[Segment]) -> str:
    return f"{len(fold.shards)} of {many(max(len(base), len(fold.shards)), 'shard')}"


def vacuum_text(result: VacuumResult, *, dry_run: bool) -> Iterator[Line]:
    """Say per table what was cleaned up, or is due."""
    for table in result.tables:
        name = Text(table.target.full_name, "bold")
        due, left = table.due.to_json(), table.left.to_json()
        gone = {what: due[what] - left[what] for what in due}
        if table.error is not None:
            yield name + Text("  failed", "bold red")
        elif table.due.empty:
            yield name + Text("  nothing is due")
        if dry_run and not table.due.empty:
            yield name + Text(f"  due: {_counted(due)}")
        elif any(gone.values()):
            yield name + Text(f"  gone: {_counted(gone)}", "green")


def _counted(parts: Mapping[str, int]) -> str:
    singular = {"partitions": "partition", "directories": "directory", "files": "landed file"}
    return ", ".join(many(parts[what], singular[what]) for what in parts)


def status_text(status: Status) -> Iterator[Line]:
    """Say per table how it stands."""
    for table in status.tables:
        yield from _status(table)
        yield ""
    yield from _skipped(status.skipped)
    yield from diagnostic_lines(status.diagnostics)
    drifted = sum(bool(table.drift) for table in status.tables)
    held = sum(table.held for table in status.tables)
    yield f"{many(len(status.tables), 'table')}: {drifted} drifted, {held} held"


def _status(table: TableStatus) -> Iterator[Line]:
    word, style = ("held", "bold red") if table.held else ("drift", "yellow") if table.drift else ("ok", "green")
    yield head_line(table.plan, word, style)
    shown = table.to_json()
    if table.manifest is not None:
        yield f"  state      {shown['state']} (generation {shown['generation']})"
        for kind in ("base", "delta"):
            part = shown["segments"][kind]
            counted = f"{many(part['segments'], 'segment')}, {many(part['rows'], 'row')}, {size_text(part['bytes'])}"
            yield f"  {kind:<10} {counted}"
    pending = shown["pending"]
    if pending["files"]:
        since = f", the oldest of hour {pending['oldest_hour']}" if pending["oldest_hour"] else ""
        lag = f", {duration_text(table.lag_s)} old" if table.lag_s is not None else ""
        yield f"  pending    {many(pending['files'], 'file')}, {size_text(pending['bytes'])}{since}{lag}"
    if pending["waiting"]:
        yield f"  waiting    {many(pending['waiting'], 'file')} cannot be admitted"
    due = shown["to_retire"]
    if any(due.values()):
        yield f"  to retire  {_counted(due)}"
    if table.hold is not None:
        hold = table.hold.to_json()
        yield Text.assemble(("  held       ", "bold red"), _since(table.plan, hold["since"]))
        yield f"  release    {hold['release'] or 'not before the cause is mended, see below'}"
    for sentence in table.drift:
        yield Text.assemble(("  drift      ", "yellow"), sentence)
    yield from diagnostic_lines(table.diagnostics)


def _since(plan: TablePlan, moment: str | None) -> str:
    if moment is not None:
        return f"since {moment}"
    # It is noted beside the data of a table that is known to be ours.
    if plan.view is None or plan.view.inspected.table is None:
        return "there is no table yet"
    if plan.view.decision.properties is None:
        return "since: not recorded, because it is not known to be a table of schemasync's"
    return "since: not recorded yet (the next apply or watch does)"


def doctor_text(report: Report) -> Iterator[Line]:
    """Say what each check found, and what to do."""
    width = max((len(check.name) for check in report.checks), default=0)
    for check in report.checks:
        yield from _check(check, width)
    yield "all is well" if report.healthy else "something has to be done"


def _check(check: Check, width: int) -> Iterator[Line]:
    mark = Text(f"{check.health.value:<7}", _HEALTHS[check.health])
    yield mark + Text(f"  {check.name.replace('_', ' '):<{width}}  {check.detail}", "")
    if check.fix and check.health is not Health.SKIPPED:
        yield f"{'':<{width + 11}}fix: {check.fix}"


def rows_text(rows: Rows, *, width: int) -> Iterator[Line]:
    """Lay rows out as a table; where that is wider than ``width``, as one block per row: nothing is cut."""
    if len(rows.columns) == len(rows.rows) == 1 and isinstance(rows.rows[0][0], str):
        yield rows.rows[0][0].rstrip()  # EXPLAIN and SHOW CREATE TABLE answer with one text of many lines
        return
    cells = [[_cell(value) for value in row] for row in rows.rows]
    widths = [max(map(len, column)) for column in zip(rows.columns, *cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        yield from _aligned(rows.columns, cells, widths)
    else:
        yield from _blocks(rows.columns, cells)
    yield f"({many(len(cells), 'row')})"


def _aligned(columns: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[Line]:
    yield Text(_row(columns, widths), "bold")
    yield _row(["-" * width for width in widths], widths)
    for row in cells:
        yield _row(row, widths)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _blocks(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[Line]:
    width = max(map(len, columns))
    for number, row in enumerate(cells, start=1):
        yield Text(f"row {number}", "bold")
        for name, cell in zip(columns, row, strict=True):
            yield f"  {name:<{width}}  {cell}".rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text)
