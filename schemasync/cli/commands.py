"""The commands of every day: plan, apply, compact, vacuum, watch, status, sql.

Each parses, calls one use case, hands its value to the renderer and returns the outcome's exit code.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from schemasync.app import applying, compacting, planning, querying, releasing, replaying, vacuuming
from schemasync.app import history as remembering
from schemasync.app import status as standing
from schemasync.app.opening import is_left_to_spark, open_lake, open_notifiers, open_registry
from schemasync.app.plan_file import read_plan, require_plan_or_nothing, write_plan
from schemasync.cli import outcomes, rendering, rendering_checks
from schemasync.cli.context import Call, pass_call
from schemasync.cli.history_text import history_text
from schemasync.cli.options import global_options
from schemasync.cli.signals import stopping
from schemasync.core.layering import Mode
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import Lake, Notifier
from schemasync.core.release import Release
from schemasync.errors import MetastoreBusyError, UsageError
from schemasync.io.notify import LinesNotifier

tables_argument = click.argument("tables", nargs=-1, metavar="[TABLE]...")


@click.command(short_help="Show what apply would do, and why.")
@tables_argument
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Keep the plan, for apply --plan FILE.")
@click.option(
    "--replay",
    is_flag=True,
    help="Judge every recorded version instead, looking at no values; without Spark, unless only that reaches tables.",
)
@global_options
@pass_call
def plan(call: Call, tables: tuple[str, ...], *, out: Path | None, replay: bool) -> int:
    """Show what apply would do, and why; nothing is changed.

    Exits with 3 when a table can be created or changed, with 4 when only holds remain.

    With --replay: show what the policies would have made of every version that the subjects ever had. It looks at no
    values: whether those of a column that got another type fit (SS125), only a plan says. Exits with 4 when any version
    would have been held, or the registry refuses those of a subject, has none, or has others than were applied, else
    with 0.
    """
    if replay:
        return _replay(call, tables, out)
    if out is not None:
        require_plan_or_nothing(call.path(out))  # before Spark is started for it
    found = planning.plan(call.workspace("plan", tables=tables), tables)
    if out is not None:
        write_plan(found, call.path(out))
    call.answer(found.to_json(), rendering.plan_text(found))
    _complain(call, found.problems)
    return outcomes.plan_exit(found)


def _replay(call: Call, tables: tuple[str, ...], out: Path | None) -> int:
    if out is not None:
        raise UsageError("a replay is nothing that apply could do", where="--out", fix="Leave out --replay or --out.")
    call.configure_logging()
    config = call.loaded().config

    def lake(target: TableTarget) -> Lake:
        if is_left_to_spark(target.location, target.compaction.kernel):
            return call.workspace("plan", config).storage(target).lake
        return open_lake(target)

    result = replaying.replay(open_registry(config), config, tables, open_lake=lake)
    call.answer(result.to_json(), rendering_checks.replay_text(result))
    _complain(call, result.problems)
    return outcomes.replay_exit(result)


@click.command(short_help="Do it, and admit what has landed.")
@tables_argument
@click.option(
    "--plan",
    "kept",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Apply a kept plan's tables; refuse where what it saw has moved.",
)
@global_options
@pass_call
def apply(call: Call, tables: tuple[str, ...], kept: Path | None) -> int:
    """Create and change tables as plan shows, and admit what has landed.

    Exits with 1 when a table failed, with 4 when one is held; the others are applied all the same.
    """
    if kept is not None and tables:
        raise UsageError("a kept plan says which tables it is for", where="--plan", fix="Leave the tables out.")
    expected = None if kept is None else read_plan(call.path(kept))
    names = tables or tuple(expected or ())
    return _applied(call, applying.apply(call.workspace("apply", tables=names), names, expected=expected))


@click.command(short_help="Lift a table's hold, once.")
@click.argument("table", metavar="TABLE")
@click.option("--migrate", is_flag=True, help="Convert values to their new type or meaning, where all of them fit.")
@click.option("--rebuild", is_flag=True, help="Go on under another key, from a base that is folded under the old one.")
@global_options
@pass_call
def release(call: Call, table: str, *, migrate: bool, rebuild: bool) -> int:
    """Apply a held table once, whatever its policies say of the change, and admit what waited for it.

    What cannot be done without losing values stays held: exits with 4 then.
    """
    wanted = Release(migrate=migrate, rebuild=rebuild)
    return _applied(call, releasing.release(call.workspace("release", tables=(table,)), table, wanted))


def _applied(call: Call, result: applying.ApplyResult) -> int:
    call.answer(result.to_json(), rendering.apply_text(result))
    _complain(call, [e for table in result.tables for e in (table.error, table.unrecorded) if e])
    _complain(call, result.problems)
    return outcomes.apply_exit(result)


@click.command(short_help="Fold the increments into the base.")
@tables_argument
@click.option("--minor", is_flag=True, help="Leave them beside the base where the view can, merged with each other.")
@click.option("--major", is_flag=True, help="Fold them into the base, whatever that rewrites.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and what it costs.")
@global_options
@pass_call
def compact(call: Call, tables: tuple[str, ...], *, minor: bool, major: bool, dry_run: bool) -> int:
    """Apply, then fold what was admitted into the base, and clean up what is due.

    Where few rows changed in many shards, changes are left beside the base, merged with each other, until they are
    worth the rewrite; --minor and --major say which, whatever it costs.
    """
    if minor and major:
        raise UsageError("--minor and --major exclude each other", where="schemasync compact", fix="Leave one out.")
    mode = Mode.MINOR if minor else Mode.MAJOR if major else Mode.AUTO
    result = compacting.compact(call.workspace("compact", tables=tables), tables, dry_run=dry_run, mode=mode)
    call.answer(result.to_json(), rendering.compact_text(result, dry_run=dry_run))
    _complain(call, [e for table in result.tables for e in (table.failure, table.applied.unrecorded) if e])
    _complain(call, result.problems)
    return outcomes.compact_exit(result)


@click.command(short_help="Clean up what is due, and nothing else.")
@tables_argument
@click.option("--dry-run", is_flag=True, help="Only say what is due.")
@global_options
@pass_call
def vacuum(call: Call, tables: tuple[str, ...], *, dry_run: bool) -> int:
    """Delete what compactions have made superfluous, where its time has come.

    Partitions of superseded segments go after compaction.reader_grace, their directories a vacuum_retention later,
    landed files as on_fold says. compact and watch do it, too.
    """
    result = vacuuming.vacuum(call.workspace("vacuum", tables=tables), tables, dry_run=dry_run)
    call.answer(result.to_json(), rendering.vacuum_text(result, dry_run=dry_run))
    _complain(call, [table.error for table in result.tables if table.error])
    _complain(call, result.problems)
    return outcomes.vacuum_exit(result)


@click.command(short_help="Show versions, state, holds and drift.")
@tables_argument
@global_options
@pass_call
def status(call: Call, tables: tuple[str, ...]) -> int:
    """Show versions, state, what waits, what is held, and drift; nothing is changed.

    Exits with 3 when anything drifted, with 1 when a table could not be looked at.
    """
    found = standing.status(call.workspace("status", tables=tables), tables)
    call.answer(found.to_json(), rendering.status_text(found))
    _complain(call, found.problems)
    return outcomes.status_exit(found)


@click.command(short_help="Show what became of a table's columns, and when.")
@click.argument("table")
@global_options
@pass_call
def history(call: Call, table: str) -> int:
    """Show which version brought, changed and retired each column, when it was applied, and all generations.

    Nothing is changed. The same is in the table TABLE_history, for queries.
    """
    found = remembering.history(call.workspace("history", tables=(table,)), table)
    call.answer(found.to_json(), history_text(found))
    _complain(call, found.problems)
    return outcomes.history_exit(found)


@click.command(short_help="Run one query.")
@click.argument("statement", metavar='"SELECT ..."')
@global_options
@pass_call
def sql(call: Call, statement: str) -> int:
    """Run one query; the tables' database is the default one. What would change something is refused."""
    # Before Spark is started for it.
    if not statement.strip():
        raise UsageError("the statement is empty", where='"SELECT ..."', fix="Write a query.")
    rows = querying.query(call.workspace("sql"), statement)
    width = shutil.get_terminal_size().columns
    call.answer(querying.rows_json(rows), rendering.rows_text(rows, width=width))
    return outcomes.Exit.DONE


@click.command(short_help="Keep on doing all of it.")
@click.option("--once", is_flag=True, help="Do one round and exit, for cron.")
@global_options
@pass_call
def watch(call: Call, *, once: bool) -> int:
    """Poll the registry; plan, apply, admit, compact when due; tell of every schema change.

    Each change is one line of JSON (a CloudEvent) on stdout, or on stderr with --json. SIGTERM, SIGINT and SIGHUP
    finish the step at hand and exit with 0.
    """
    # Only the daemon needs its machinery.
    from schemasync.app.watched import WatchResult  # noqa: PLC0415
    from schemasync.app.watching import watch as keep_watching  # noqa: PLC0415
    from schemasync.io.status_server import require_listenable  # noqa: PLC0415

    config = call.loaded().config
    if config.server.listen and not once:
        require_listenable(config.server.listen)  # before Spark is started for it
    with stopping(call.stop):
        try:
            workspace = call.workspace("watch", config)
        except MetastoreBusyError:
            if not call.stop.is_set():
                raise
            call.answer(WatchResult(tables=(), ticks=0, stopped=True).to_json(), ())
            return outcomes.Exit.DONE
        stream = call.err if call.options.json else call.out
        # Closed by whoever started us (>&-), it is None.
        lines: tuple[Notifier, ...] = (LinesNotifier(stream=stream),) if stream else ()
        notifiers = (*lines, *open_notifiers(config, sleep=call.stop.wait))
        result = keep_watching(workspace, notifiers=notifiers, once=once, stop=call.stop)
    call.answer(result.to_json(), ())
    return int(result.exit_code)


def _complain(call: Call, errors: Sequence[Exception]) -> None:
    for error in errors:
        call.complain(str(error))
