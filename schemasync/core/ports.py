"""What the use cases ask of the outside: one small Protocol per outside thing.

`schemasync.io` implements them for real; the tests' twins implement them in memory and pass the same behaviour
suites. They live in the core because they are only words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """What a registry holds under one (subject, version).

    ``text`` is the Avro JSON as the registry gave it; ``references`` are the texts of the named types that it
    refers to, resolved transitively and in an order in which each only needs those before it.
    """

    subject: str
    version: int
    schema_id: int
    text: str
    references: tuple[str, ...] = ()


class Registry(Protocol):
    """Read side of a schema registry. Answers are states, never events: ask again and compare."""

    def subjects(self) -> tuple[str, ...]:
        """Return the names of all live subjects, sorted.

        Raises:
            RegistryError: the registry answered something final that is not a list of subjects.
            RegistryUnavailableError: no usable answer after all retries.
        """
        ...

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the live versions of a subject in ascending order, empty where there is no such subject."""
        ...

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved.

        Raises:
            RegistryError: there is no such version, or a reference cannot be resolved.
        """
        ...

    def newest_id(self) -> int | None:
        """Return the largest schema id that the registry knows of, None where it cannot tell cheaply.

        A cheap probe: while the number does not grow, no new content was registered.
        """
        ...
