"""Compatibility groups: which versions of a subject are the history of its table, where the subject forks.

Confluent's ``compatibilityGroup`` names a metadata property (``application.major.version``); versions are only compared
with those that have the same value. So "the latest" may belong to another line than the one that a table follows, and
comparing the two would drop and re-add columns back and forth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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


def line_of(
    versions: Sequence[RegisteredSchema], *, wanted: str | None, current: int | None, applied: Collection[int] = ()
) -> Line:
    """Choose the line that a table follows: the group that is ``wanted``, else the one of its ``current`` version.

    ``applied`` are the versions that the table went through, as far as that is known: they are its line up to the
    current one, whatever groups it followed then. A table that does not exist yet follows the group that came up last.
    Subjects without groups are one line. A table whose version is past the fork of the wanted group stays in its own:
    its rows would have no place in the other one.
    """
    groups = list(dict.fromkeys(v.group for v in versions))
    known = next((v.group for v in versions if v.version == current), None)
    own = known if known is not None else groups[-1] if groups else ""
    if wanted is None:
        chosen, findings = own, _fork(versions, own, current)
    elif wanted not in groups:
        chosen, findings = own, _unheard_of(groups, wanted)
    elif known in {None, wanted} or _forks_later(versions, wanted, current):
        chosen, findings = wanted, ()
    else:
        chosen, findings = own, _too_late(versions, own, wanted, current)
    past = () if known is None or current is None else _past(versions, known, current, applied)
    line = (*past, *(v for v in _of_new_table(versions, chosen) if not past or v.version > past[-1].version))
    return Line(versions=line, others=tuple(v for v in versions if v not in line), findings=findings)


def _past(
    versions: Sequence[RegisteredSchema], group: str, current: int, applied: Collection[int]
) -> tuple[RegisteredSchema, ...]:
    """Return the versions up to the current one that a table of this group went through."""
    # Of its own group it went through all: somebody may have deleted the copy that tells of one.
    told = applied if current in applied else {v.version for v in _of_new_table(versions, group)}
    return tuple(v for v in versions if v.version <= current and (v.group == group or v.version in told))


def _of_new_table(versions: Sequence[RegisteredSchema], group: str) -> Iterator[RegisteredSchema]:
    """Yield the versions of a group, and before it came up those of the group that had come up last at the time.

    Nobody says which version a group forks from; majors go on from the one before. Versions that another group got
    meanwhile (an older major's fix) are not between two of one line: they would end the lives of its columns.
    """
    followed: str | None = None
    known: set[str] = set()
    for version in versions:
        if followed != group and version.group not in known:
            followed = version.group
        known.add(version.group)
        if version.group == followed:
            yield version


def _forks_later(versions: Sequence[RegisteredSchema], group: str, current: int | None) -> bool:
    """Tell whether a group came up after a table's version: from there the table can go on in it."""
    return current is None or current < next(v.version for v in versions if v.group == group)


def _fork(versions: Sequence[RegisteredSchema], chosen: str, current: int | None) -> tuple[Diagnostic, ...]:
    if not versions or versions[-1].group == chosen:
        return ()
    newest = versions[-1]
    message = (
        f"{newest.subject}: version {newest.version} belongs to {_named(newest.group)}, "
        f"the table follows {_named(chosen)}"
    )
    fix = f'Say which to follow: compatibility_group: "{newest.group}" or "{chosen}".'
    return (
        diagnose("SS409", message, fix=fix if _forks_later(versions, newest.group, current) else _STAY.format(chosen)),
    )


def _unheard_of(groups: Sequence[str], wanted: str) -> tuple[Diagnostic, ...]:
    listed = ", ".join(group or "none" for group in groups)
    message = f"no version belongs to the compatibility group {wanted!r} (there are: {listed})"
    return (diagnose("SS409", message),)


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
