"""When a version was applied, and what that changed: one small record per applied version, kept beside the data.

A record is written right before the version comes into force, so one may stand there of an attempt that was killed.
What came into force is told by the table's properties: `in_force` follows the records back from the version that they
name, each to the version before it, and leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, model_validator

from schemasync.core.changes import Change
from schemasync.core.describe import change_json
from schemasync.core.mapping import TableTarget
from schemasync.core.policy import Verdict
from schemasync.core.properties import TableProperties
from schemasync.core.shape import Shape

FORMAT: Final = 1
"""Version of this file format; a newer one is refused rather than misread."""


class AppliedVersion(BaseModel):
    """One version of a subject, as it was applied to its table.

    ``from_version`` is the version that the table had before, None where this one created it. ``applied_ms`` is in ms
    since 1970 UTC. ``changes`` are as `schemasync.core.describe.change_json` gives them, ``policies`` the words of the
    configuration at that time, ``columns`` the physical column of each column that the table showed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    subject: str
    version: int
    from_version: int | None
    schema_id: int
    fingerprint: str
    applied_ms: int
    verdict: str
    policies: dict[str, str]
    changes: tuple[dict[str, Any], ...]
    columns: dict[str, str]

    @model_validator(mode="after")
    def _forward(self) -> AppliedVersion:
        if self.from_version is not None and self.from_version >= self.version:
            raise ValueError(f"version {self.version} cannot follow version {self.from_version}")
        return self

    def says_the_same(self, other: AppliedVersion) -> bool:
        """Tell whether the other is a record of the same change, maybe of an earlier attempt at it."""
        return self.model_copy(update={"applied_ms": 0}) == other.model_copy(update={"applied_ms": 0})


def record_of(
    target: TableTarget,
    shape: Shape,
    properties: TableProperties,
    *,
    before: int | None,
    verdict: Verdict,
    changes: Iterable[Change],
    now_ms: int,
) -> AppliedVersion | None:
    """Return the record of a version that comes into force now, None where the table has it already.

    ``before`` is the version that the table has, None where there is no table.
    """
    if before is not None and before >= properties.version:
        return None
    return AppliedVersion(
        subject=properties.subject,
        version=properties.version,
        from_version=before,
        schema_id=properties.schema_id,
        fingerprint=properties.fingerprint,
        applied_ms=now_ms,
        verdict=verdict.value,
        policies=target.policies.model_dump(),
        changes=tuple(change_json(change) for change in changes),
        columns={c.name: shape.layout.current(c).name for c in shape.columns},
    )


def in_force(records: Iterable[AppliedVersion], properties: TableProperties) -> tuple[AppliedVersion, ...]:
    """Return the records of the versions that a table went through, oldest first.

    They begin later than the table where some were never written: then nobody knows when the versions before were
    applied.
    """
    known = {r.version: r for r in records if r.subject == properties.subject}
    chain: list[AppliedVersion] = []
    version: int | None = properties.version
    while version is not None and version in known and _fits(known[version], properties):
        chain.append(known[version])
        version = known[version].from_version
    return tuple(reversed(chain))


def _fits(record: AppliedVersion, properties: TableProperties) -> bool:
    """Tell whether a record is of this table and not of one that stood at its location before."""
    if record.version == properties.version and record.fingerprint != properties.fingerprint:
        return False
    began = record.version if record.from_version is None else record.from_version
    return began >= properties.baseline
