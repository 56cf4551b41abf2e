"""The walk over the references of one schema version, the same for every kind of registry.

Called by the registries of `schemasync.io.registry` and the tests' twin, which only know how to fetch one version. It
promises texts in an order in which each only needs those before it, each content once, and an error in place of an
endless or all too deep walk, or of one name with two meanings. Each (subject, version) is fetched once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from schemasync.core.canonical import canonical_text
from schemasync.core.ports import RegisteredSchema
from schemasync.errors import RegistryError

Key = tuple[str, int]
"""(subject, version)."""
Trail = tuple[Key, ...]
"""How a version was reached: from the one that was asked for, by references, to itself."""

LARGEST_VERSION: Final = 2**31 - 1
"""Rows tell in an INT which version they were written under."""
LONGEST_TRAIL: Final = 100
"""So many schemas may be behind each other: columns are not nested half as deep, and each is a call in a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A name that a schema uses, and the version that defines it."""

    name: str
    key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSchema:
    """One version as a registry holds it, its references not yet followed.

    ``place`` is where errors about its references point to (a file); empty where the trail says enough. ``group`` is
    its compatibility group. ``unpinned`` references were found by name: nobody said which version defines it.
    """

    schema_id: int
    text: str
    references: tuple[Reference, ...] = ()
    place: str = ""
    group: str = ""
    unpinned: bool = False


Fetch = Callable[[Trail], HeldSchema]
"""Return the last version of a trail; the rest of it is for the error if there is none."""


def resolve(subject: str, version: int, fetch: Fetch) -> RegisteredSchema:
    """Return one version with its references resolved, fetching what it refers to.

    Raises:
        RegistryError: references lead back to where they came from, or one name stands for two contents;
            and whatever ``fetch`` raises.
    """
    trail = ((subject, version),)
    root = fetch(trail)
    walk = _Walk(fetch=fetch)
    walk.follow(root, trail)
    return RegisteredSchema(
        subject=subject,
        version=version,
        schema_id=root.schema_id,
        text=root.text,
        references=walk.texts(),
        group=root.group,
        unpinned=root.unpinned or any(held.unpinned for held in walk.done.values()),
    )


def trail_text(trail: Sequence[Key]) -> str:
    """Return a trail for people: ``a version 1 -> b version 3``."""
    return " -> ".join(f"{subject} version {version}" for subject, version in trail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """Depth first. ``done`` is in the order of the result; ``named`` tells by which trail a name came first."""

    fetch: Fetch
    done: dict[Key, HeldSchema] = field(default_factory=dict)
    named: dict[str, Trail] = field(default_factory=dict)

    def texts(self) -> tuple[str, ...]:
        first: dict[str, str] = {}
        for held in self.done.values():
            first.setdefault(canonical_text(held.text), held.text)
        return tuple(first.values())

    def follow(self, held: HeldSchema, path: Trail) -> None:
        for reference in held.references:
            trail = (*path, reference.key)
            where = ": ".join(filter(None, (held.place, trail_text(trail))))
            if reference.key in path:
                raise RegistryError(
                    "the references of a schema lead back to it",
                    where=where,
                    fix="Types that need each other belong into one schema.",
                )
            if len(path) > LONGEST_TRAIL:
                raise RegistryError(
                    f"more than {LONGEST_TRAIL} schemas stand behind each other",
                    where=f"{trail_text(trail[:1])} -> ... -> {trail_text(trail[-1:])}",
                    fix="Put types that use each other into one schema.",
                )
            self._visit(trail)
            self._check_name(reference.name, trail, where)

    def _visit(self, trail: Trail) -> None:
        if trail[-1] not in self.done:
            found = self.fetch(trail)
            self.follow(found, trail)
            self.done[trail[-1]] = found

    def _check_name(self, name: str, trail: Trail, where: str) -> None:
        first = self.named.setdefault(name, trail)
        if canonical_text(self.done[first[-1]].text) != canonical_text(self.done[trail[-1]].text):
            raise RegistryError(
                f"the reference '{name}' stands for two different schemas",
                where=where,
                why=f"another one came by {trail_text(first)}",
                fix="Make the references agree on one version.",
            )
