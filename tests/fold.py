"""What a table must show, by a plain Python fold of its events: the judge of the view and of the compaction.

Shares no code with schemasync on purpose. Stories and laws build `Event`s of their own, or read captured messages.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of one row. ``order`` says which of two events is newer; None in it is older than any value.

    ``row`` is the row after the change; what a delete has there does not matter.
    """

    key: Key
    order: tuple[Any, ...]
    row: Mapping[str, Any]
    deleted: bool = False


def fold(events: Iterable[Event]) -> dict[Key, dict[str, Any]]:
    """Return the row of every key that is alive, by key: its newest event; of events that tie, the later one given."""
    newest: dict[Key, Event] = {}
    for event in events:
        known = newest.get(event.key)
        if known is None or _rank(event) >= _rank(known):
            newest[event.key] = event
    return {key: dict(event.row) for key, event in newest.items() if not event.deleted}


def _rank(event: Event) -> tuple[tuple[bool, Any], ...]:
    return tuple((part is not None, 0 if part is None else part) for part in event.order)


def captured_events(path: Path) -> Iterator[tuple[int, Event]]:
    """Yield (value schema id, event) of the captured Debezium messages of one topic; Kafka's tombstones are left out.

    The place in the topic is the order: one partition, and Debezium writes the changes of a row in their order.
    """
    for line in path.read_text().splitlines():
        message = json.loads(line)
        value = message["value"]
        if value is not None:
            yield message["value_schema_id"], _event(message, value)


def _event(message: Mapping[str, Any], value: Mapping[str, Any]) -> Event:
    deleted = value["op"] == "d"
    return Event(
        key=tuple(message["key"].values()),
        order=(message["offset"],),
        row={} if deleted else {name: _plain(found) for name, found in value["after"].items()},
        deleted=deleted,
    )


def _plain(value: Any) -> Any:
    return Decimal(value["__decimal"]) if isinstance(value, dict) and "__decimal" in value else value
