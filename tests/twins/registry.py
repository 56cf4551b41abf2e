"""A schema registry in memory, for tests of what uses one.

Implements `schemasync.core.ports.Registry` and passes the same behaviour suite as the real ones. Tests change it
with ``register`` and ``delete``; ``fail_with`` makes every question raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemasync.core import references as walk
from schemasync.core.ports import RegisteredSchema
from schemasync.errors import RegistryError, SchemasyncError

Reference = tuple[str, str, int]
"""(name, subject, version)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    schema_id: int
    text: str
    references: tuple[Reference, ...]
    kind: str
    group: str


class MemoryRegistry:
    """Ids count up over all subjects; equal content under two subjects has one id, as in a real registry."""

    def __init__(self) -> None:
        self.fail_with: SchemasyncError | None = None
        self._held: dict[str, dict[int, _Held]] = {}
        self._ids: dict[tuple[str, tuple[Reference, ...]], int] = {}

    def register(
        self,
        subject: str,
        text: str,
        *,
        references: Sequence[Reference] = (),
        version: int | None = None,
        kind: str = "AVRO",
        group: str = "",
    ) -> RegisteredSchema:
        """Add a version (the next one, unless it is given); return it with its references not yet resolved."""
        versions = self._held.setdefault(subject, {})
        number = version or max(versions, default=0) + 1
        schema_id = self._ids.setdefault((text, tuple(references)), len(self._ids) + 1)
        versions[number] = _Held(schema_id=schema_id, text=text, references=tuple(references), kind=kind, group=group)
        return RegisteredSchema(subject=subject, version=number, schema_id=schema_id, text=text)

    def delete(self, subject: str, version: int | None = None) -> None:
        """Delete one version, or the subject; its last version takes the subject along."""
        if version is not None:
            del self._held[subject][version]
        if version is None or not self._held[subject]:
            del self._held[subject]

    def subjects(self) -> tuple[str, ...]:
        self._answer_or_fail()
        return tuple(sorted(self._held))

    def versions(self, subject: str) -> tuple[int, ...]:
        self._answer_or_fail()
        return tuple(sorted(self._held.get(subject, {})))

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        self._answer_or_fail()
        return walk.resolve(subject, version, self._fetch)

    def newest_id(self) -> int | None:
        self._answer_or_fail()
        return len(self._ids) or None

    def _answer_or_fail(self) -> None:
        if self.fail_with:
            raise self.fail_with

    def _fetch(self, trail: walk.Trail) -> walk.HeldSchema:
        subject, version = trail[-1]
        held = self._held.get(subject, {}).get(version)
        if held is None:
            raise RegistryError(f"there is no version {version} of subject '{subject}'")
        if held.kind != "AVRO":
            raise RegistryError(f"this is a schema of type {held.kind}, and only Avro is supported")
        references = tuple(walk.Reference(name=name, key=(to, number)) for name, to, number in held.references)
        return walk.HeldSchema(schema_id=held.schema_id, text=held.text, references=references, group=held.group)
