"""Compatibility groups: which versions of a subject are the history of its table, where the subject forks.

Confluent's ``compatibilityGroup`` names a metadata property (``application.major.version``); versions are only compared
with those that have the same value. So "the latest" may belong to another line than the one that a table follows, and
comparing the two would drop and re-add columns back and forth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.ports import RegisteredSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a subject's versions, in ascending order; ``findings`` say what a person must decide."""

    versions: tuple[RegisteredSchema, ...]
    findings: tuple[Diagnostic, ...] = ()


def line_of(versions: Sequence[RegisteredSchema], *, wanted: str | None, current: int | None) -> Line:
    """Choose the line that a table follows: the group that is ``wanted``, else the one of its ``current`` version.

    A table that does not exist yet follows the group that came up last. What was registered before the group came up
    is its past; versions of other groups since then are not. Subjects without groups are one line.
    """
    groups = list(dict.fromkeys(v.group for v in versions))
    known = next((v.group for v in versions if v.version == current), None)
    chosen = next((g for g in (wanted, known) if g is not None), groups[-1] if groups else "")
    if wanted is not None and wanted not in groups:
        listed = ", ".join(group or "none" for group in groups)
        message = f"no version belongs to the compatibility group {wanted!r} (there are: {listed})"
        return Line(versions=tuple(versions), findings=(diagnose("SS409", message),))
    first = next((v.version for v in versions if v.group == chosen), 0)
    line = tuple(v for v in versions if v.group == chosen or v.version < first)
    findings = () if wanted is not None or not versions else tuple(_fork(versions[-1], chosen))
    return Line(versions=line, findings=findings)


def _fork(newest: RegisteredSchema, chosen: str) -> tuple[Diagnostic, ...]:
    if newest.group == chosen:
        return ()
    names = (
        f"compatibility group {group!r}" if group else "no compatibility group" for group in (newest.group, chosen)
    )
    newer, ours = names
    message = f"{newest.subject}: version {newest.version} belongs to {newer}, the table follows {ours}"
    fix = f'Say which to follow: compatibility_group: "{newest.group}" or "{chosen}".'
    return (diagnose("SS409", message, fix=fix),)
