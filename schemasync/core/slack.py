"""A schema event as a message in Slack, for people: what an incoming webhook of theirs takes.

Called by `schemasync.io.notify`. Slack has no place for an event's id, so one that is delivered twice shows twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from schemasync.core import events
from schemasync.core.events import SchemaEvent
from schemasync.core.timeline import value_text

LONGEST: Final = 3500
"""Characters of the lines below the first: Slack advises 4,000 for a whole message, and cuts it at ten times that."""


def slack_message(event: SchemaEvent) -> str:
    """Return the JSON of a message: what happened to which table, then the changes, and what is to be done.

    What is only for information is left out, and lines that are too many are counted.
    """
    lines: list[str] = []
    room = LONGEST
    told = [*map(_change, event.changes), *_findings(event)]
    for line in told:
        room -= len(line) + 1
        if room < 0:
            left = len(told) - len(lines)
            lines.append(f"... and {left} more: schemasync plan {event.table}")
            break
        lines.append(line)
    block = "\n```\n{}\n```".format("\n".join(lines).replace("```", "'''")) if lines else ""
    return json.dumps({"text": _escaped(_head(event) + block)})


def _head(event: SchemaEvent) -> str:
    match event.type:
        case events.HELD:
            newest = "" if event.from_version == event.to_version else f", the registry's newest is {event.to_version}"
            what = f"is held at version {event.from_version}{newest}" if event.from_version else "is held"
        case events.CREATED:
            what = f"was created at version {event.to_version}"
        case _ if event.from_version == event.to_version:
            what = f"was changed at version {event.to_version}"
        case _:
            what = f"went from version {event.from_version} to {event.to_version}"
    return f"*{event.table}* {what} ({event.subject})"


def _change(change: Mapping[str, object]) -> str:
    kind = str(change["kind"]).replace("_", " ")
    column = f" {change['column']}" if change["column"] else ""
    sides = " -> ".join(text for end in ("from", "to") if (text := value_text(change[end])) is not None)
    return f"{kind}{column}  {sides}".rstrip()


def _findings(event: SchemaEvent) -> Iterator[str]:
    for one in event.diagnostics:
        if one["severity"] != "info":
            yield " ".join(filter(None, (f"{one['code']} {one['severity']}: {one['message']}", str(one["fix"]))))


def _escaped(text: str) -> str:
    """Return a text without Slack's own signs; it knows no others."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
