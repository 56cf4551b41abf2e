"""The event that tells of one schema change of one table, and its form as a CloudEvent.

Made by the use cases from a plan or its outcome; sent by the notifiers of `schemasync.io.notify`. The same change
always has the same id, so that whoever receives an event twice can tell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

CHANGED: Final = "io.schemasync.schema.changed"
CREATED: Final = "io.schemasync.schema.created"
HELD: Final = "io.schemasync.schema.held"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvent:
    """A table went, or was refused to go, from one version of its subject to another.

    ``table`` is a name that no other configured table has: without its database where that is enough.
    ``from_version`` is None where the table is new. ``verdict`` is the plan's (``none``, ``evolve``, ``migrate``,
    ``hold``); ``changes`` and ``diagnostics`` have the shape that ``plan --json`` prints, and hold only what JSON can.
    ``time`` is when the change was decided, with a time zone. ``occasion`` tells holds and changes of the key apart
    that are of the same versions.

    Raises:
        ValueError: ``time`` has no time zone.
    """

    table: str
    subject: str
    from_version: int | None
    to_version: int
    verdict: str
    time: datetime
    occasion: str = ""
    changes: tuple[Mapping[str, object], ...] = ()
    diagnostics: tuple[Mapping[str, object], ...] = ()

    def __post_init__(self) -> None:
        if self.time.utcoffset() is None:
            raise ValueError(f"the time of an event needs a time zone: {self.time!r}")

    @property
    def id(self) -> str:
        """32 hexadecimal digits: a hash of table, versions, verdict and occasion, never of the time."""
        parts = [self.table, self.from_version, self.to_version, self.verdict]
        parts += [self.occasion] if self.occasion else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    @property
    def type(self) -> str:
        """The CloudEvents type: ``io.schemasync.schema.`` and ``held``, ``created`` or ``changed``."""
        if self.verdict == "hold":
            return HELD
        return CREATED if self.from_version is None else CHANGED

    def cloudevent(self) -> dict[str, object]:
        """Return the event in the JSON format of CloudEvents 1.0 (structured mode)."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": f"/schemasync/tables/{quote(self.table, safe='')}",
            "type": self.type,
            "subject": self.subject,
            "time": _rfc3339(self.time),
            "datacontenttype": "application/json",
            "data": {
                "table": self.table,
                "subject": self.subject,
                "from_version": self.from_version,
                "to_version": self.to_version,
                "verdict": self.verdict,
                "changes": [dict(change) for change in self.changes],
                "diagnostics": [dict(diagnostic) for diagnostic in self.diagnostics],
            },
        }

    def json(self) -> str:
        """Return ``cloudevent()`` as one line of ASCII JSON."""
        return json.dumps(self.cloudevent(), allow_nan=False)


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
