"""The words and lines that all texts for people are made of: styles, versions, changes, findings, amounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from schemasync.app.planning import TablePlan
from schemasync.core.changes import Change
from schemasync.core.describe import change_json
from schemasync.core.diagnostics import Diagnostic, Severity
from schemasync.core.policy import Verdict
from schemasync.core.timeline import value_text

Line = str | Text

VERDICTS: Final = {
    Verdict.NONE: "dim",
    Verdict.EVOLVE: "green",
    Verdict.MIGRATE: "yellow",
    Verdict.HOLD: "bold red",
}
SEVERITIES: Final = {Severity.INFO: "dim", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_SIGNS: Final = {"add": ("+", "green"), "drop": ("-", "red")}


def head_line(table: TablePlan, word: str, style: str) -> Text:
    """Say which table it is, in a word how it stands, its versions, and its subject."""
    return Text.assemble(
        (table.target.full_name, "bold"),
        "  ",
        (word, style),
        f"  {versions_text(table)}  ",
        (table.target.subject, "dim"),
    )


def versions_text(table: TablePlan) -> str:
    """Say from which version to which a table goes."""
    current, desired = table.current_version, table.desired_version
    if current == desired:
        return f"version {current}" if current else "no version"
    if table.unread:
        return f"no readable version, newest {desired}"
    if current is None:
        return f"new, version {desired}"
    # What nobody could read is all there.
    gone = "gone" if any(d.code == "SS405" for d in table.diagnostics) else "none that can be followed"
    return f"version {current} -> {desired or gone}"


def change_lines(changes: Iterable[Change]) -> Iterator[Line]:
    """Say what differs, one line per change."""
    for change in changes:
        shown = change_json(change)
        kind = shown["kind"]
        sign, style = sign_of(kind)
        sides = " -> ".join(text for end in ("from", "to") if (text := value_text(shown[end])) is not None)
        column = f" {shown['column']}" if shown["column"] else ""
        yield Text.assemble((f"  {sign} {kind.replace('_', ' ')}{column}", style), f"  {sides}".rstrip())


def sign_of(kind: str) -> tuple[str, str]:
    """Return the sign of a kind of change, and its style."""
    return _SIGNS.get(kind.partition("_")[0], ("~", "yellow"))


def diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[Line]:
    """Say what was found, and what to do about it."""
    for one in diagnostics:
        yield Text.assemble("  ", (f"{one.code} {one.severity.value}", SEVERITIES[one.severity]), f"  {one.message}")
        if one.fix:
            yield f"      fix: {one.fix}"


def size_text(size: int) -> str:
    """Return a number of bytes in the largest unit that leaves a number before the point."""
    amount, units = float(size), ("B", "KiB", "MiB", "GiB")
    for unit in units:
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def duration_text(seconds: float) -> str:
    """Return a duration in the largest unit of which there are two."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
