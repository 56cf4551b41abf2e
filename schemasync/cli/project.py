"""The commands around a project: init, ddl, doctor, quickstart. None of them needs a table to be there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from schemasync.app import ddl_printing, scaffolding
from schemasync.app import doctor as examining
from schemasync.app.opening import open_registry, open_renderer
from schemasync.app.workspace import Workspace
from schemasync.cli import outcomes, rendering
from schemasync.cli.context import Call, pass_call
from schemasync.cli.options import global_options
from schemasync.core.config import Config
from schemasync.core.names import Dialect
from schemasync.errors import UsageError
from schemasync.io.config_file import DEFAULT_NAME, FILE_VARIABLE, holds_config, resolve


@click.command(short_help="Write a commented schemasync.yaml.")
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option("--registry", metavar="URL", help="Ask this registry what it holds; file:DIR is relative to DIR.")
@global_options
@pass_call
def init(call: Call, directory: Path, registry: str | None) -> int:
    """Write a commented schemasync.yaml into DIR; never overwrites one."""
    _refuse_config(call, "init")
    made = scaffolding.scaffold(
        call.path(directory), registry=registry, environ=call.world.environ, open_registry=open_registry
    )
    call.answer(made.to_json(), _scaffold_text(made))
    return outcomes.Exit.DONE


def _refuse_config(call: Call, command: str) -> None:
    """Refuse a configuration where one is about to be written: nothing would be read from it."""
    if call.options.config is not None:
        fix = f"Leave it out, and name the directory: schemasync {command} DIR."
        raise UsageError(f"{command} writes a configuration, and reads none", where="--config", fix=fix)


def _scaffold_text(made: scaffolding.Scaffold) -> Iterator[str]:
    yield f"wrote {made.path}"
    for subject, table in made.tables:
        yield f"  {subject} -> {table}"
    if made.skipped:
        yield f"left out, they hold no table's rows: {', '.join(made.skipped)}"
    for problem in made.problems:
        yield f"left out: {problem}"
    yield f"Look through it, then: schemasync --config {shlex.quote(str(made.path))} plan"


@click.command(short_help="Print the DDL of a version or schema file.")
@click.argument("source", metavar="SUBJECT|FILE.avsc")
@click.option("--dialect", type=click.Choice([d.value for d in Dialect]), default="spark", help="Default: spark.")
@click.option("--kind", type=click.Choice(ddl_printing.KINDS), default="all", help="Default: all.")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Default: the newest version.")
@click.option("--keys", metavar="A,B", help="The key columns, for a FILE.avsc.")
@click.option("--hour", metavar="yyyyMMddHH", default=ddl_printing.HOUR, help="Of the per-run table of an increment.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write one file per statement.")
@global_options
@pass_call
def ddl(
    call: Call,
    *,
    source: str,
    dialect: str,
    kind: ddl_printing.Kind,
    version: int | None,
    keys: str | None,
    hour: str,
    out: Path | None,
) -> int:
    """Print the DDL of a subject's version, or of a schema file. Needs neither Spark nor a metastore.

    The view is for a table that nothing was published into yet: it reads all segments. Run on a live table it would
    show superseded rows, too, until the next apply.
    """
    found, config = _source(call, source, version, keys)
    printed = ddl_printing.print_ddl(found, open_renderer(config), dialect=Dialect(dialect), kind=kind, hour=hour)
    for diagnostic in printed.diagnostics:
        said = f"{diagnostic.code} {diagnostic.severity.value}: {diagnostic.message}"
        call.warn(f"{said}. {diagnostic.fix}" if diagnostic.fix else said)
    files = ddl_printing.write_files(printed, call.path(out)) if out else ()
    names = [str(file) for file in files]
    call.answer({**printed.to_json(), "files": names}, names if out else [printed.script])
    return outcomes.Exit.DONE


def _source(call: Call, source: str, version: int | None, keys: str | None) -> tuple[ddl_printing.Source, Config]:
    if not source:
        raise UsageError("the name is empty", where="SUBJECT|FILE.avsc", fix="Name a subject, or a file with a schema.")
    columns = tuple(name.strip() for name in (keys or "").split(",") if name.strip())
    if source.endswith(".avsc"):
        if version is not None:
            raise UsageError("a schema file is version 1", where="--version", fix="Leave it out, or name a SUBJECT.")
        config = _config_or_defaults(call)
        return ddl_printing.from_file(config, call.path(Path(source)), keys=columns), config
    if columns:
        fix = "Set keys: in the configuration; of a subject they are known."
        raise UsageError("--keys is for a schema file", where="--keys", fix=fix)
    config = call.loaded().config
    return ddl_printing.from_registry(open_registry(config), config, source, version=version), config


def _config_or_defaults(call: Call) -> Config:
    """Return the configuration, or the defaults where nobody asked for one: a schema file can stand alone."""
    world = call.world
    named = call.options.config is not None or FILE_VARIABLE in world.environ
    if named or holds_config(world.cwd):
        return call.loaded().config
    return resolve(Config.model_validate({"registry": {"url": "file:."}}), world.cwd)


@click.command(short_help="Check everything, and say what to do.")
@global_options
@pass_call
def doctor(call: Call) -> int:
    """Check configuration, Java, Spark, metastore, registry and storage, and say what to do about each."""

    @contextmanager
    def opened(config: Config) -> Iterator[Workspace]:
        yield call.workspace("doctor", config)

    around = examining.Surroundings(load=call.loaded, environ=call.world.environ, open_workspace=opened)
    report = examining.examine(around)
    call.answer(report.to_json(), rendering.doctor_text(report))
    return outcomes.doctor_exit(report)


@click.command(short_help="Show it all on real sample data.")
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("schemasync-quickstart"))
@global_options
@pass_call
def quickstart(call: Call, directory: Path) -> int:
    """Make a project with real sample data in DIR, and run the ordinary commands on it.

    Needs no server. What it shows is what the commands print; each of them can be repeated by hand.
    """
    from schemasync.app.quickstart import quickstart as show  # noqa: PLC0415 - a command of its own, rarely run
    from schemasync.cli.program import run  # noqa: PLC0415 - the program knows its commands, not the other way round

    _refuse_config(call, "quickstart")
    place = call.path(directory)
    # With --json stdout holds the one document; the story goes where logs go.
    stream = call.err if call.options.json else call.out
    done: list[dict[str, object]] = []

    def carry_out(arguments: Sequence[str]) -> int:
        options = replace(call.options, json=False)
        inner = Call(world=call.world, opened=call.opened, options=options, out=stream, err=call.err)
        code = run(["--config", str(place / DEFAULT_NAME), *arguments], inner)
        done.append({"command": list(arguments), "exit_code": code})
        return code

    def say(text: str) -> None:
        call.progress.stop()
        call.show([text], stream)

    show(place, environ=call.world.environ, say=say, run=carry_out)
    call.answer({"directory": str(place), "config": str(place / DEFAULT_NAME), "commands": done}, ())
    return outcomes.Exit.DONE
