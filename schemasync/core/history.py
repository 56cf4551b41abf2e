"""All versions of one subject, and the lives of its columns.

A column's identity cannot be told from two versions: a name that is dropped and added again is a new column, one
that is renamed is not. So lives are computed by walking every version, oldest first, and the result is what diff,
projection and layout are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from schemasync.core.encoding import Encoding, ListOf, MapOf, Member, Record
from schemasync.core.names import folded
from schemasync.core.schema import Column, Life, SubjectVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The versions of one subject in ascending order, each column with its life."""

    versions: tuple[SubjectVersion, ...]

    @property
    def newest(self) -> SubjectVersion:
        """The highest live version."""
        return self.versions[-1]

    def at(self, version: int) -> SubjectVersion | None:
        """Return that version, None where the registry does not have it (any more)."""
        return next((v for v in self.versions if v.version == version), None)

    def between(self, first: int, last: int) -> tuple[SubjectVersion, ...]:
        """Return the versions from ``first`` to ``last``, both included."""
        return tuple(v for v in self.versions if first <= v.version <= last)

    def column(self, life: Life, version: int) -> Column | None:
        """Return how a life's column stood in one version, None before it began or after it ended."""
        found = self.at(version)
        return next((c for c in found.columns if c.life == life), None) if found else None

    def born(self, life: Life) -> Column | None:
        """Return the column as the version that added it declared it: the source of the frozen default."""
        return self.column(life, life.since)


def read_history(
    versions: Iterable[SubjectVersion], *, renames: Mapping[str, str] | None = None, aliases: bool = True
) -> History:
    """Compute the lives of all columns.

    A column continues the life of the previous version's column of the same name (case aside); of the one that
    ``renames`` (new: old, case aside) names; of the one that an Avro alias names, unless ``aliases`` is off. The old
    name must be gone in the version that brings the new one.
    """
    said = {folded(new): (old,) for new, old in (renames or {}).items()}
    walked: list[SubjectVersion] = []
    previous: Sequence[Column] = ()
    for version in sorted(versions, key=lambda v: v.version):
        old_names = {c.name: (*said.get(folded(c.name), ()), *(c.aliases if aliases else ())) for c in version.columns}
        previous = _live(version, previous, old_names)
        walked.append(replace(version, columns=previous))
    return History(versions=tuple(walked))


def _live(
    version: SubjectVersion, previous: Sequence[Column], old_names: Mapping[str, Sequence[str]]
) -> tuple[Column, ...]:
    """Return the version's columns with their lives; of two that claim one ancestor the first has it."""
    here = {folded(c.name) for c in version.columns}
    before = {folded(c.name): c for c in previous}
    columns: list[Column] = []
    for column in version.columns:
        gone = (folded(name) for name in old_names[column.name] if folded(name) not in here)
        found = next((name for name in (folded(column.name), *gone) if name in before), None)
        if found is None:
            columns.append(replace(column, since=version.version, origin=column.name))
        else:
            ancestor = before.pop(found)
            columns.append(replace(column, since=ancestor.since, origin=ancestor.origin))
    return tuple(columns)


def surviving(first: Encoding, later: Iterable[Encoding]) -> Encoding:
    """Return ``first`` without the nested members that any of the later encodings lacks.

    What a struct's member held does not come back through a drop and a re-add, the same as for columns.
    """
    kept = first
    for encoding in later:
        kept = _common(kept, encoding)
    return kept


def _common(kept: Encoding, other: Encoding) -> Encoding:
    match kept, other:
        case Record(), Record():
            there = {folded(m.name): m.encoding for m in other.members}
            members = tuple(
                Member(name=m.name, encoding=_common(m.encoding, there[folded(m.name)]), nullable=m.nullable)
                for m in kept.members
                if folded(m.name) in there
            )
            return replace(kept, members=members)
        case ListOf(), ListOf():
            return replace(kept, element=_common(kept.element, other.element))
        case MapOf(), MapOf():
            return replace(kept, value=_common(kept.value, other.value))
        case _:
            return kept
