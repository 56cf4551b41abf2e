"""All versions of one subject, and the lives of its columns.

A column's identity cannot be told from two versions: a name that is dropped and added again is a new column, one
that is renamed is not. So lives are computed by walking every version, oldest first, and the result is what diff,
projection and layout are asked about. Members of structs have lives of their own, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Member, Record
from schemasync.core.names import folded
from schemasync.core.promotion import widens
from schemasync.core.schema import Column, Life, SubjectVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The versions of one subject in ascending order, each column with its life.

    ``elsewhere`` are those of compatibility groups that the table does not follow: files may be of one.
    """

    versions: tuple[SubjectVersion, ...]
    elsewhere: tuple[SubjectVersion, ...] = ()
    _columns: dict[int, Mapping[Life, Column]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By version: its columns by life, once somebody asked for one; whoever asks goes on to ask for all."""

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
        if version not in self._columns:
            found = self.at(version)
            self._columns[version] = {column.life: column for column in found.columns} if found else {}
        return self._columns[version].get(life)

    def born(self, life: Life) -> Column | None:
        """Return the column as the version that added it declared it: the source of the frozen default."""
        return self.column(life, life.since)

    def replaced(self, column: Column) -> Column | None:
        """Return the column whose place a life took at once, as its last version had it; None where it took none."""
        before = [v.version for v in self.versions if v.version < column.since]
        return self.column(column.replaces, before[-1]) if before and column.replaces else None


Splits = Callable[[Encoding, Encoding], bool]
"""Says of a column's earlier and later encoding whether the later one begins a new life."""


def read_history(
    versions: Iterable[SubjectVersion],
    *,
    renames: Mapping[str, str] | None = None,
    aliases: bool = True,
    splits: Splits = lambda _, __: False,
) -> History:
    """Compute the lives of all columns, and of the members of structs in them.

    A column continues the life of the previous version's column that ``renames`` (new: old, case aside) names; of the
    one of the same name (case aside); of the one that an Avro alias names, unless ``aliases`` is off. ``splits`` may
    say that its encoding begins a new life all the same. The old name must be gone in the version that brings the new
    one, unless ``renames`` says of all names that go on where they come from (``price: new_price, old_price: price``);
    a circle of them counts in the version whose aliases begin to say the same: nothing else tells which it is.
    Members are named by path: ``address.zip``, in lists and maps ``lines.element.price``, ``tags.value.text``.
    """
    family = _Family(said={folded(new): folded(old) for new, old in (renames or {}).items()}, aliases=aliases)
    walked: list[SubjectVersion] = []
    previous: Sequence[Column] = ()
    for version in sorted(versions, key=lambda v: v.version):
        previous = _live(version, previous, family, splits)
        walked.append(replace(version, columns=tuple(previous)))
    return History(versions=tuple(walked))


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


_N = TypeVar("_N", bound=_Named)

_Place = tuple[object, ...]
"""Where something stands, by lives: its column's, then step by step those of members, elements, keys and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Who descends from whom: what the configuration says, whether Avro aliases count, and whoever lived so far."""

    said: Mapping[str, str]
    aliases: bool
    last: dict[_Place, Record] = field(default_factory=dict)
    """By place: the last record that stood there, and the last union. What stands there in between (a struct becomes a
    text, and a struct again) ends the lives of members no more than that of the column."""

    def ancestors(self, before: Iterable[_N], after: Sequence[_N], path: str) -> list[_N | None]:
        """Return for each of ``after`` the one of ``before`` whose life it continues; the first claim counts."""
        free = {folded(one.name): one for one in before}
        here = {folded(one.name): one for one in after}
        moves = self._moves(free, here, path) if self.said else {}
        found = {name: free.pop(old) for name, old in moves.items() if old in free}
        found |= {name: free.pop(name) for name in here if name not in found and name in free}
        for name, one in here.items():
            if self.aliases and name not in found:
                old = next((old for old in _aliases(one) if old in free and old not in here), None)
                found |= {name: free.pop(old)} if old else {}
        return [found.get(name) for name in here]

    def _moves(self, before: Mapping[str, _N], after: Mapping[str, _N], path: str) -> dict[str, str]:
        """Return (new: old) what the configuration says and this version brings: chains of names, and circles."""
        paths = {name: self.said.get(folded(f"{path}{name}"), "") for name in after}
        said = {name: old.rpartition(".")[2] for name, old in paths.items()}
        moves: dict[str, str] = {}
        for name in after:
            chain, old = [name], said[name]
            while old in after and old in before and old not in chain:
                chain.append(old)
                old = said[old]
            if old in before:
                moved = dict(zip(chain, [*chain[1:], old], strict=True))
                if old == name:
                    brought = all(_is_said_anew(before[new], after[new], old) for new, old in moved.items())
                else:
                    brought = name not in before and old not in after
                moves |= moved if brought else {}
        return moves

    def inherit(self, encoding: Encoding, version: int, path: str, place: _Place) -> Encoding:
        """Return an encoding with the lives of its members; ``place`` is where it stands, from its column's life on."""
        match encoding:
            case ListOf(element=element):
                return ListOf(element=self.inherit(element, version, f"{path}element.", (*place, "element")))
            case MapOf(key=key, value=value):
                keys = self.inherit(key, version, f"{path}key.", (*place, "key"))
                values = self.inherit(value, version, f"{path}value.", (*place, "value"))
                return replace(encoding, key=keys, value=values)
            case Record(members=members, union=union):
                here = (*place, "union" if union else "record")
                found = replace(encoding, members=self._members(self.last.get(here), members, version, path, here))
                self.last[here] = found
                return found
            case _:
                return encoding

    def _members(
        self, before: Record | None, members: Sequence[Member], version: int, path: str, place: _Place
    ) -> tuple[Member, ...]:
        old = before.members if before else ()
        union = before is not None and before.union
        ancestors = _same_branches(old, members) if union else self.ancestors(old, members, path)
        return tuple(self._member(a, m, version, path, place) for a, m in zip(ancestors, members, strict=True))

    def _member(self, ancestor: Member | None, member: Member, version: int, path: str, place: _Place) -> Member:
        since, origin = (ancestor.since, ancestor.origin) if ancestor else (version, member.name)
        here = (*place, origin.lower(), since)
        encoding = self.inherit(member.encoding, version, f"{path}{member.name}.", here)
        return replace(member, encoding=encoding, since=since, origin=origin)


def _aliases(one: _Named) -> list[str]:
    return [folded(alias) for alias in one.aliases]


def _is_said_anew(before: _Named, after: _Named, old: str) -> bool:
    return old in _aliases(after) and old not in _aliases(before)


def _same_branches(before: Sequence[Member], after: Sequence[Member]) -> list[Member | None]:
    """Match the branches of a union: parquet-avro names them by position, which may change.

    By what Avro tells them apart by; those that look alike by their order where the names of all of them are new; then
    with one all of whose values it holds (``int`` and ``long``). Whose values would be lost is a matter of policy.
    """
    free = list(before)
    found: dict[int, Member] = {}

    def match(alike: Callable[[Member, Member], bool]) -> None:
        for place, member in enumerate(after):
            if place not in found and (old := next((m for m in free if alike(m, member)), None)) is not None:
                found[place] = old
                free.remove(old)

    match(_is_named_alike)
    told = {_branch(member.encoding) for member in found.values()}
    match(lambda old, new: _branch(old.encoding) == _branch(new.encoding) not in told)
    match(_is_held)
    return [found.get(place) for place in range(len(after))]


def _is_named_alike(before: Member, after: Member) -> bool:
    return bool(after.branch) and before.branch == after.branch


def _is_held(before: Member, after: Member) -> bool:
    match before.encoding, after.encoding:
        case Leaf(type=old, meaning=meant), Leaf(type=new, meaning=means):
            return meant is means and widens(old, new)
        case _:
            return False


def _branch(encoding: Encoding) -> object:
    match encoding:
        case Leaf():
            return encoding.type, encoding.meaning, encoding.name
        case Record(name=name):
            return name
        case _:
            return type(encoding)


def _live(version: SubjectVersion, previous: Sequence[Column], family: _Family, splits: Splits) -> tuple[Column, ...]:
    """Return the version's columns with their lives."""
    columns: list[Column] = []
    for found, column in zip(family.ancestors(previous, version.columns, ""), version.columns, strict=True):
        path, born = f"{column.name}.", Life(name=column.name.lower(), since=version.version)
        encoding = family.inherit(column.encoding, version.version, path, (found.life if found else born,))
        if found is None:
            since, origin, replaces = version.version, column.name, None
        elif splits(found.encoding, encoding):  # with its members' lives, as the earlier one has them, too
            since, origin, replaces = version.version, column.name, found.life
            encoding = family.inherit(column.encoding, version.version, path, (born,))
        else:
            since, origin, replaces = found.since, found.origin, found.replaces
        columns.append(replace(column, encoding=encoding, since=since, origin=origin, replaces=replaces))
    return tuple(columns)
