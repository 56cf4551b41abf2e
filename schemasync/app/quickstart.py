"""The quickstart: a project with real Debezium events, and the ordinary commands run on it one after the other.

Called by the command line, which hands in how to run one of its own command lines. There is no other code path than
theirs: every line that begins with ``$`` can be repeated by hand, the ``cp`` that lets the schema evolve included.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemasync.core.config import Config
from schemasync.core.mapping import METASTORES
from schemasync.errors import PermanentError, UsageError
from schemasync.io.config_file import DEFAULT_NAME, load_config
from schemasync.io.samples import claim, copy_into, scaffold

Run = Callable[[Sequence[str]], int]
"""Runs one command line of schemasync with the project's ``--config``, prints its output, returns its exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One part of the story: what arrives (patterns of sample files), and the commands that are run then.

    ``name`` is the directory below ``steps/`` that the files wait in; empty for what is there from the beginning.
    """

    name: str = ""
    title: str
    arrives: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


def _version(*numbers: int) -> tuple[str, ...]:
    return tuple(f"registry/cdc.inventory.evolving-value/{number}.avsc" for number in numbers)


def _hour(*hours: int) -> tuple[str, ...]:
    return tuple(f"lake/*/incremental/increment_20261120{hour:02}/*.parquet" for hour in hours)


STORY: Final = (
    Act(
        title="Three subjects in version 1, two hours of events. What would be done, and why?",
        arrives=("schemasync.yaml", "registry/*/1.avsc", *_hour(0, 1)),
        commands=(("plan",), ("apply",), ("compact",)),
    ),
    Act(
        name="1-columns-added",
        title="Versions 2 and 3 add d, and e NOT NULL DEFAULT 42; the next hour holds events of both.",
        arrives=(*_version(2, 3), *_hour(2)),
        commands=(("plan", "evolving"), ("apply",)),
    ),
    Act(
        name="2-column-renamed",
        title="Version 4 renames b to b_renamed, which Debezium reports as a drop and an add.",
        arrives=(*_version(4), *_hour(3)),
        commands=(("plan", "evolving"), ("apply",), ("compact", "evolving")),
    ),
    Act(
        name="3-column-dropped",
        title="Version 5 drops c.",
        arrives=(*_version(5), *_hour(4)),
        commands=(("apply",),),
    ),
    Act(
        name="4-column-widened",
        title="Version 6 turns a from int into bigint, and a value that needs it arrives.",
        arrives=(*_version(6), *_hour(5)),
        commands=(("plan", "evolving"), ("apply",), ("compact",)),
    ),
)
"""The captured history in the order in which it happened."""

LAST_QUERY: Final = ("sql", "SELECT * FROM evolving_view ORDER BY id")

_ACCEPTED: Final[Mapping[str, frozenset[int]]] = {"plan": frozenset({0, 3})}
"""Exit codes that are no failure; of other commands only 0. A plan with changes to make answers 3."""

_NEXT: Final = (
    ("status",),
    ("plan",),
    ("ddl", "cdc.inventory.evolving-value"),
    ("sql", "SELECT order_id, sum(qty * price) AS total FROM order_lines_view GROUP BY order_id ORDER BY order_id"),
)


def quickstart(directory: Path, *, environ: Mapping[str, str], say: Callable[[str], None], run: Run) -> None:
    """Make the sample project in ``directory``, run the story on it, and end with the view's rows.

    A directory that an earlier quickstart made is gone on with: what is done already is found to be done.

    Raises:
        UsageError: the directory holds something else, or the environment changes the project's settings.
        StorageError: the directory cannot be written.
        PermanentError: a command failed; it has said why.
    """
    again = claim(directory)
    directory = _shortest(directory)
    scaffold(directory, {f"steps/{act.name}" if act.name else "": act.arrives for act in STORY})
    config = directory / DEFAULT_NAME
    _refuse_other_settings(config, environ)
    program = _program(environ)
    shown = Path.cwd() if directory == Path() else directory
    say(f"{'Going on with' if again else 'Made'} the project in {shown}.")
    for act in STORY:
        say(f"\n# {act.title}")
        _arrive(act, directory, say)
        for command in act.commands:
            _command(command, config=config, program=program, say=say, run=run)
    say("\n# What people query: the newest row of every key.")
    _command(LAST_QUERY, config=config, program=program, say=say, run=run)
    say(_what_next(directory, program))


def _shortest(directory: Path) -> Path:
    """Return the path that people would type here."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _refuse_other_settings(config: Path, environ: Mapping[str, str]) -> None:
    """Refuse variables that would send the sample tables into a registry, lake or metastore of the user's."""
    cwd = Path.cwd()
    wanted, actual = (load_config(config, environ=e, cwd=cwd).config for e in ({}, environ))
    parts = ("registry", "metastore", "defaults", "tables")
    changed = [part for part in parts if getattr(wanted, part) != getattr(actual, part)]
    if _stores(wanted) != _stores(actual):
        changed.append("spark.conf")
    if changed:
        raise UsageError(
            f"environment variables change {', '.join(changed)} of the sample project",
            where=str(config),
            why="the quickstart keeps to its own directory",
            fix="Unset the variables that begin with SCHEMASYNC_ and run it again.",
        )


def _stores(config: Config) -> dict[str, str]:
    """Return the settings of Spark by which it keeps tables elsewhere; all others only tune it."""
    return {name: value for name, value in config.spark.conf.items() if name.endswith((*METASTORES, "warehouse.dir"))}


def _program(environ: Mapping[str, str]) -> str:
    """Return how a shell with this environment calls this very installation."""
    own = Path(sys.executable).parent / "schemasync"
    if not own.exists():
        return shlex.join([sys.executable, "-m", "schemasync"])
    found = shutil.which("schemasync", path=environ.get("PATH", ""))
    return "schemasync" if found and Path(found).samefile(own) else shlex.quote(str(own))


def _arrive(act: Act, directory: Path, say: Callable[[str], None]) -> None:
    if act.name:
        source = directory / "steps" / act.name
        say(f"$ cp -R {shlex.quote(f'{source}/.')} {shlex.quote(f'{directory}/')}")
        copy_into(source, directory)


def _command(arguments: Sequence[str], *, config: Path, program: str, say: Callable[[str], None], run: Run) -> None:
    say(f"$ {program} --config {shlex.quote(str(config))} {_shown(arguments)}")
    code = run(arguments)
    if code not in _ACCEPTED.get(arguments[0], frozenset({0})):
        raise PermanentError(
            f"the quickstart stopped, because `{_shown(arguments)}` ended with exit code {code}",
            where=str(config.parent),
            fix="It said why. `schemasync doctor` looks at this machine. Run the quickstart again to go on.",
        )


def _shown(arguments: Sequence[str]) -> str:
    """Return the arguments as a shell takes them, with the double quotes that people write around SQL."""
    return " ".join(f'"{a}"' if " " in a else shlex.quote(a) for a in arguments)


def _what_next(directory: Path, program: str) -> str:
    lines = ("", "# Next:", f"  cd {shlex.quote(str(directory))}")
    return "\n".join((*lines, *(f"  {program} {_shown(arguments)}" for arguments in _NEXT)))
