"""Compatibility groups: which versions of a subject are the history of its table, where the subject forks.

Confluent's ``compatibilityGroup`` names a metadata property (``application.major.version``); versions are only compared
with those that have the same value. So "the latest" may belong to another line than the one that a table follows, and
comparing the two would drop and re-add columns back and forth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.ports import RegisteredSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a subject's versions, in ascending order; ``findings`` say what a person must decide.

    ``others`` are the versions that are not of it.
    """

    versions: tuple[RegisteredSchema, ...]
    others: tuple[RegisteredSchema, ...] = ()
    findings: tuple[Diagnostic, ...] = ()


def line_of(versions: Sequence[RegisteredSchema], *, wanted: str | None, current: int | None) -> Line:
    """Choose the line that a table follows: the group that is ``wanted``, else the one of its ``current`` version.

    A table that does not exist yet follows the group that came up last. What was registered before the group came up
    is its past; versions of other groups since then are not. Subjects without groups are one line. A table whose
    version is not of the wanted line stays in its own: its rows would have no place in the other one.
    """
    groups = list(dict.fromkeys(v.group for v in versions))
    known = next((v.group for v in versions if v.version == current), None)
    chosen = next((g for g in (wanted, known) if g is not None), groups[-1] if groups else "")
    if wanted is not None and wanted not in groups:
        listed = ", ".join(group or "none" for group in groups)
        message = f"no version belongs to the compatibility group {wanted!r} (there are: {listed})"
        return Line(versions=tuple(versions), findings=(diagnose("SS409", message),))
    if known is not None and known != chosen and not _passes(versions, chosen, current):
        return _line(versions, known, _too_late(versions, known, chosen, current))
    return _line(versions, chosen, () if wanted is not None else _fork(versions, chosen, current))


def _line(versions: Sequence[RegisteredSchema], group: str, findings: tuple[Diagnostic, ...]) -> Line:
    line = _of(versions, group)
    return Line(versions=line, others=tuple(v for v in versions if v not in line), findings=findings)


def _of(versions: Sequence[RegisteredSchema], group: str) -> tuple[RegisteredSchema, ...]:
    first = next((v.version for v in versions if v.group == group), 0)
    return tuple(v for v in versions if v.group == group or v.version < first)


def _passes(versions: Sequence[RegisteredSchema], group: str, current: int | None) -> bool:
    """Tell whether a group's line has a version: from there a table can go on in it."""
    return current is None or any(v.version == current for v in _of(versions, group))


def _fork(versions: Sequence[RegisteredSchema], chosen: str, current: int | None) -> tuple[Diagnostic, ...]:
    if not versions or versions[-1].group == chosen:
        return ()
    newest = versions[-1]
    message = (
        f"{newest.subject}: version {newest.version} belongs to {_named(newest.group)}, "
        f"the table follows {_named(chosen)}"
    )
    fix = f'Say which to follow: compatibility_group: "{newest.group}" or "{chosen}".'
    return (diagnose("SS409", message, fix=fix if _passes(versions, newest.group, current) else _STAY.format(chosen)),)


def _too_late(
    versions: Sequence[RegisteredSchema], known: str, chosen: str, current: int | None
) -> tuple[Diagnostic, ...]:
    message = (
        f"{versions[-1].subject}: the table has version {current} of {_named(known)}, which {_named(chosen)} "
        "does not go on from"
    )
    return (diagnose("SS409", message, fix=_STAY.format(known)),)


_STAY: Final = 'Stay: compatibility_group: "{}". To follow the other group the table has to be made anew.'


def _named(group: str) -> str:
    return f"compatibility group {group!r}" if group else "no compatibility group"
