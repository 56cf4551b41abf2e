"""The program: its commands, and what becomes of every error.

Promises that nothing but results is written to stdout, that an error is one clear line on stderr (and one JSON
document on stdout with ``--json``), never a traceback unless ``-v`` asks for it, and that the exit code says the rest.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from schemasync.cli import checking, commands, project
from schemasync.cli.context import Call, Opened, World
from schemasync.cli.options import global_options
from schemasync.cli.outcomes import Exit
from schemasync.cli.signals import stopping
from schemasync.errors import SchemasyncError, StorageError, UsageError
from schemasync.io.logs import redact

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""


class Program(click.Group):
    """The group of all commands; its ``main`` ends the process with the outcome's exit code."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run one command line; ``obj`` may be a `World` other than this process's."""
        argv = sys.argv[1:] if args is None else args
        try:
            world = extra.get("obj") or World()
        except OSError as error:
            sys.exit(_nowhere(error, argv))
        call = Call(world=world, opened=Opened())
        try:
            code = run(argv, call)
        except KeyboardInterrupt:
            # Another one, while the first was told of.
            code = INTERRUPTED
        finally:
            # What a second signal asks for is being done.
            with stopping(call.stop):
                call.opened.close()
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which people need them."""
        del ctx
        return list(self.commands)

    def parsed(self, argv: Sequence[str], call: Call) -> int:
        """Parse and carry out one command line, leaving errors to the caller; return the exit code."""
        return int(super().main(list(argv), prog_name="schemasync", standalone_mode=False, obj=call) or 0)


def _version() -> str:
    try:
        return version("schemasync")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "unknown"


EXIT_CODES = (
    "Exit codes: 0 done, nothing left to do; 1 failed; 2 wrong usage or configuration, also where that stands in the "
    "way of some tables and the others were served; 3 schema changes are pending (plan) or allowed (check), or "
    "something drifted (status); 4 a table is held, or a check would break; 130 interrupted."
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(_version())
@global_options
def program() -> None:
    """Keep a Hive metastore and plain Parquet in step with a schema registry."""


for _command in (
    project.quickstart,
    project.init,
    commands.plan,
    commands.apply,
    project.ddl,
    checking.check,
    commands.compact,
    commands.vacuum,
    commands.watch,
    commands.status,
    commands.release,
    commands.history,
    commands.sql,
    project.doctor,
):
    program.add_command(_command)


def run(argv: Sequence[str], call: Call) -> int:
    """Carry out one command line in a call that may share what others opened; return the exit code."""
    try:
        return program.parsed(argv, call)
    except click.ClickException as error:
        return _wrong_usage(error, argv, call)
    except click.Abort:
        return _say(call, "interrupted", {"what": "interrupted", "type": "KeyboardInterrupt"}, INTERRUPTED)
    except SchemasyncError as error:
        return _say(call, str(error), _parts(error), error.exit_code)
    except Exception as error:
        return _unexpected(error, call)
    finally:
        call.progress.stop()


def _wrong_usage(error: click.ClickException, argv: Sequence[str], call: Call) -> int:
    call.options.json = call.options.json or "--json" in argv
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        call.show([error.format_message()], call.err)
        return Exit.USAGE
    context = getattr(error, "ctx", None)
    fix = f"Try {context.command_path} --help." if context else "Try schemasync --help."
    usage = UsageError(error.format_message().rstrip("."), fix=fix)
    return _say(call, str(usage), _parts(usage), Exit.USAGE)


def _nowhere(error: OSError, argv: Sequence[str]) -> int:
    call = Call(world=World(cwd=Path("/")), opened=Opened())
    call.options.json = "--json" in argv
    fix = "Change to a directory that is there."
    usage = UsageError("the working directory cannot be found", why=error.strerror or str(error), fix=fix)
    return _say(call, str(usage), _parts(usage), Exit.USAGE)


def _unexpected(error: Exception, call: Call) -> int:
    what = redact(f"{type(error).__name__}: {error}".splitlines()[0])
    if call.options.verbosity:
        call.show([redact(traceback.format_exc())], call.err)
    fix = "This should not happen; run again with -v for the traceback."
    parts = {"what": what, "fix": fix, "type": type(error).__name__}
    return _say(call, f"{what.rstrip('.')}. {fix}", parts, Exit.FAILED)


def _say(call: Call, line: str, parts: dict[str, str], code: int) -> int:
    call.complain(line)
    if call.options.json:
        try:
            call.answer({"error": {**dict.fromkeys(("what", "where", "why", "fix"), ""), **parts}}, ())
        except StorageError as error:
            call.complain(str(error))
            return Exit.FAILED
    return code


def _parts(error: SchemasyncError) -> dict[str, str]:
    return {
        "what": redact(error.what),
        "where": redact(error.where),
        "why": redact(error.why),
        "fix": redact(error.fix),
        "type": type(error).__name__,
    }
