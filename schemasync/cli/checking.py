"""The command for pipelines: check, which says what a proposed schema would do before anybody registers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from schemasync.app.checking import check as examine
from schemasync.app.checking import read_proposal
from schemasync.cli import outcomes, rendering_checks
from schemasync.cli.context import Call, pass_call
from schemasync.cli.options import global_options
from schemasync.errors import UsageError


@click.command(short_help="Say what a proposed schema would do, for CI.")
@click.argument("file", metavar="FILE.avsc", type=click.Path(path_type=Path))
@click.option("--subject", required=True, metavar="SUBJECT", help="Whose next version it would be.")
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE.avsc", help="The key's next version, with it.")
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="NAME=FILE",
    help="Where a named type that it uses is; default: the newest version's.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github"]),
    default="text",
    help="Default: text; github: annotations of FILE.avsc.",
)
@global_options
@pass_call
def check(call: Call, *, file: Path, subject: str, key: Path | None, references: Sequence[str], form: str) -> int:
    """Say what a schema would do, were it registered as the next version of a subject; nothing is changed.

    Shows what plan would say, what it costs, and the views that read the table. Exits with 0 when nothing would
    change, with 3 when the changes are allowed, with 4 when the table would be held or a view that reads it would
    break.
    """
    # Before Spark is started for it.
    proposal = read_proposal(
        call.path(file), subject, key=call.path(key) if key else None, references=_references(call, references)
    )
    found = examine(call.workspace("check"), proposal)
    lines = (
        rendering_checks.check_text(found) if form == "text" else rendering_checks.github_text(found, file.as_posix())
    )
    call.answer({"file": str(file), **found.to_json()}, lines)
    return outcomes.check_exit(found)


def _references(call: Call, given: Sequence[str]) -> Mapping[str, Path]:
    found = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            raise UsageError(f"{one} is no reference", where="--reference", fix="Write it as NAME=FILE.")
        found[name] = call.path(Path(path))
    return found
