"""What was told of one table, as it is kept beside its data for the next process, and what that goes on from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from schemasync.core.events import SchemaEvent
from schemasync.core.news import Told


class ToldRecord(BaseModel):
    """The version that was told of last, the hold that lasts, and the events that somebody does not have yet.

    ``version`` is None where there was no table, ``keys`` are None there, too, and where they were not kept yet.
    ``holds`` are the ids of the hold's events, sorted. ``table`` is ``database.table``: a location may become
    another's.
    """

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    table: str
    version: int | None
    keys: tuple[str, ...] | None = None
    holds: tuple[str, ...] = ()
    waiting: tuple[SchemaEvent, ...] = ()

    @property
    def told(self) -> Told:
        """What the next look at the table is compared with."""
        return Told(met=True, version=self.version, keys=self.keys, holds=frozenset(self.holds))


def record(table: str, told: Told, waiting: tuple[SchemaEvent, ...]) -> ToldRecord:
    """Return what there is to keep."""
    holds = tuple(sorted(told.holds))
    return ToldRecord(table=table, version=told.version, keys=told.keys, holds=holds, waiting=waiting)


def parse(content: bytes, *, table: str) -> ToldRecord | None:
    """Read what was kept; None where it is another table's, another release's, or nonsense."""
    try:
        found = ToldRecord.model_validate_json(content)
    except ValueError:
        return None
    return found if found.table == table else None
