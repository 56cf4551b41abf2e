"""A table's past as text: a timeline of its versions, the life of each column, its generations."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from schemasync.app.history import TableHistory, published_at
from schemasync.cli.lines import Line, diagnostic_lines, sign_of
from schemasync.core.amounts import many
from schemasync.core.manifest import Manifest
from schemasync.core.timeline import ColumnLife, Event, VersionEntry, iso, value_text


def history_text(history: TableHistory) -> Iterator[Line]:
    """Say per version when it was applied and what it changed, per column its life, then the generations."""
    name = history.target.full_name
    version = f"version {history.version}" if history.version else "no table yet"
    yield Text.assemble((name, "bold"), f"  {version}  ", (history.target.subject, "dim"))
    for entry in history.past.versions:
        yield Text.assemble((f"  version {entry.version}", "bold"), f"  {_when(entry)}")
        yield from (_event(event) for event in entry.events)
    yield from _part("columns", [_column(column) for column in history.past.columns])
    yield from _part("generations", [_generation(manifest) for manifest in history.generations])
    yield from diagnostic_lines(history.diagnostics)


def _when(entry: VersionEntry) -> str:
    if not entry.shown:
        return "not applied"
    if entry.record is None:
        return "applied, nobody recorded when"
    later = "" if entry.applied_with == entry.version else f" with version {entry.applied_with}"
    return f"applied{later} at {iso(entry.applied_ms)} ({entry.record.verdict})"


def _event(event: Event) -> Text:
    sign, style = sign_of(event.kind)
    name = f" {event.column}" if event.column else ""
    sides = " -> ".join(text for side in (event.current, event.desired) if (text := value_text(side)))
    where = f"  (in {event.physical})" if event.physical and not _stands_in(event.column or "", event.physical) else ""
    return Text.assemble((f"    {sign} {event.kind.replace('_', ' ')}{name}", style), f"  {sides}{where}".rstrip())


def _stands_in(column: str, physical: str) -> bool:
    """Tell whether the physical column is the one that the name, or the path into it, leads to expect."""
    return column.lower() == physical or column.lower().startswith(f"{physical}.")


def _part(title: str, rows: list[tuple[str, ...]]) -> Iterator[Line]:
    if not rows:
        return
    yield Text(f"  {title}", "bold")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _column(column: ColumnLife) -> tuple[str, ...]:
    said = [f"brought by {column.brought_in}"]
    said += [f"changed by {', '.join(map(str, column.changed_in))}"] if column.changed_in else []
    said += [f"retired by {column.retired_in}"] if column.retired_in else []
    names = [place.name for place in column.places]
    places = f"in {', then '.join(names)}" if names and names != [column.column.lower()] else ""
    return (" <- ".join(reversed(column.names)), column.type, "; ".join(said), places)


def _generation(manifest: Manifest) -> tuple[str, ...]:
    rows = sum(s.rows for s in manifest.segments)
    parts = (many(rows, "row"), many(len(manifest.segments), "segment"), f"schema version {manifest.schema_version}")
    return (str(manifest.state), published_at(manifest) or "", *parts)
