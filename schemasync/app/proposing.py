"""A registry as it would be with one more version of a subject: what check plans against. Nothing is registered.

The schema comes from a file, its references from the newest version that the registry has and from files that the
caller names. A file that cannot be read is wrong usage; one that is no schema is for the plan to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schemasync.core.avro_names import full_name, missing_names, without_namespace
from schemasync.core.canonical import canonical_text
from schemasync.core.ports import RegisteredSchema, Registry
from schemasync.errors import RegistryError, UsageError


class ProposedRegistry:
    """A registry, and versions that it does not have yet; see `schemasync.core.ports.Registry` for the questions."""

    def __init__(self, registry: Registry, proposed: Sequence[RegisteredSchema]) -> None:
        self._registry = registry
        self._proposed = {p.subject: p for p in proposed}

    def subjects(self) -> tuple[str, ...]:
        """Return the registry's subjects and the proposed ones, sorted."""
        return tuple(sorted({*self._registry.subjects(), *self._proposed}))

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the registry's versions of a subject, and the proposed one behind them."""
        live = self._registry.versions(subject)
        return (*live, self._proposed[subject].version) if subject in self._proposed else live

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version."""
        proposed = self._proposed.get(subject)
        if proposed is not None and proposed.version == version:
            return proposed
        return self._registry.schema(subject, version)

    def newest_id(self) -> int | None:
        """Return the registry's newest id: a proposal has none."""
        return self._registry.newest_id()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFile:
    """A schema in a file, and what its references are in, by name; both are JSON."""

    text: str
    references: Mapping[str, str]


def read_schema_file(file: Path, references: Mapping[str, Path]) -> SchemaFile:
    """Read a schema and its references.

    Raises:
        UsageError: a file is missing, cannot be read, or is not JSON.
    """
    return SchemaFile(text=_json_text(file), references={name: _json_text(path) for name, path in references.items()})


def _json_text(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError("the schema file cannot be read", where=str(file), why=why, fix="Check its path.") from error
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the schema file is not JSON", where=str(file), why=str(error), fix="Correct it.") from error
    return text


def propose(
    registry: Registry,
    subject: str,
    file: SchemaFile,
    *,
    group: str | None = None,
    given: int = 0,
    repeats: bool = False,
) -> RegisteredSchema | int:
    """Make a subject's next version of a file; return the number of the live version that is that very schema, if any.

    A registry answers a schema that it has with the version that it is, and makes no new one. Where it ``repeats``
    older ones, as a directory of files can, only the newest counts: that of the compatibility ``group`` which a table
    is told to follow, if there is one. No number up to ``given``, which a deleted version may have, is given again.
    Named types that the file uses and does not define come from the newest version's references; those that the caller
    gave replace them by name.
    """
    live = registry.versions(subject)
    newest = _newest(registry, subject, live, group)
    known = {**_named(newest.references if newest else ()), **file.references}
    proposed = RegisteredSchema(
        subject=subject,
        version=max(*live, given, 0) + 1,
        schema_id=0,
        text=file.text,
        references=_needed(file, known),
        # Else nothing would judge it: a table follows the versions of one group.
        group=newest.group if newest else group or "",
    )
    there = (newest,) if repeats else _versions(registry, subject, live)
    same = (v.version for v in there if v is not None and v.group == proposed.group and _same(proposed, v))
    return next(same, proposed)


def _versions(registry: Registry, subject: str, live: Sequence[int]) -> Iterator[RegisteredSchema]:
    """Yield the versions that the registry can give, newest first."""
    for number in reversed(live):
        with suppress(RegistryError):
            yield registry.schema(subject, number)


def _newest(registry: Registry, subject: str, live: Sequence[int], group: str | None) -> RegisteredSchema | None:
    """Return the newest version; one that the registry cannot give is the plan's to report."""
    try:
        versions = (registry.schema(subject, number) for number in reversed(live))
        return next((found for found in versions if group in {None, found.group}), None)
    except RegistryError:
        return None


def _named(references: Sequence[str]) -> dict[str, str]:
    return {full_name(_loaded(text)): text for text in references}


def _needed(file: SchemaFile, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return the references that the caller gave and those that the schema needs, each behind what it needs itself.

    Where a name is not the top of any reference, it may stand inside one: then all of them are needed.
    """
    order: dict[str, str] = {}
    seen: set[str] = set()

    def visit(wanted: str) -> None:
        name = wanted if wanted in known else without_namespace(wanted)
        if name in seen:
            return
        seen.add(name)
        for inner in missing_names(_loaded(known.get(name, ""))):
            visit(inner)
        if name in known:
            order[name] = known[name]

    for name in (*missing_names(json.loads(file.text)), *file.references):
        visit(name)
    for name in known if seen - known.keys() else ():
        visit(name)
    return tuple(order.values())


def _loaded(text: str) -> object:
    """Return a reference's JSON; what is none needs nothing, and reading the schema will say so."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _same(proposed: RegisteredSchema, live: RegisteredSchema) -> bool:
    """Tell whether two versions say the same; a reference more in the registry's changes nothing."""
    mine, theirs = ({canonical_text(text) for text in one.references} for one in (proposed, live))
    return canonical_text(proposed.text) == canonical_text(live.text) and mine <= theirs
