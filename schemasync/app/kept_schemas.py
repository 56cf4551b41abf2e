"""A subject's versions, kept beside the table's data: a registry may delete them, or say something else some day.

Written before a version comes into force (`schemasync.app.altering`), read with every look at the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from schemasync.core.ports import FileInfo, Lake, RegisteredSchema
from schemasync.errors import DataError

SCHEMAS = "_schemasync/schemas"
_KEPT: Final[dict[tuple[str, int, int], RegisteredSchema]] = {}
"""Versions that were read, by where they lie, size and time of change."""
_MOST_KEPT: Final = 10_000


def keep_schema(lake: Lake, registered: RegisteredSchema, *, applied: bool) -> None:
    """Keep a copy of a version beside the data: the history must outlive what is deleted from a registry.

    What was kept of one that is not ``applied`` yet is of an attempt that failed; the registry may say otherwise now.
    """
    content = {
        "subject": registered.subject,
        "version": registered.version,
        "id": registered.schema_id,
        "schema": registered.text,
        "references": list(registered.references),
        "group": registered.group,
    }
    path, text = _schema_path(registered.version), json.dumps(content, indent=1).encode()
    if not lake.create(path, text) and not applied and lake.read(path) != text:
        lake.delete(path)
        lake.create(path, text)


def forget_schemas(lake: Lake, versions: Iterable[int]) -> None:
    """Delete the copies of these versions, which never came into force."""
    for version in versions:
        lake.delete(_schema_path(version))


def _schema_path(version: int) -> str:
    return f"{SCHEMAS}/{version:06}.json"


def kept_schemas(lake: Lake) -> tuple[RegisteredSchema, ...]:
    """Return the versions that were kept beside the data."""
    names = (file for file in lake.files(SCHEMAS) if file.path.endswith(".json"))
    return tuple(_kept_in(lake, file) for file in names if not file.path.rsplit("/", 1)[-1].startswith("_"))


def _kept_in(lake: Lake, file: FileInfo) -> RegisteredSchema:
    """Read a kept version, once in a process: every look at a table asks for all of them, and none ever changes."""
    place = (lake.uri(file.path), file.bytes, file.modified_ms)
    found = _KEPT.get(place)
    if found is None:
        found = _kept(lake.read(file.path), place[0])
        # Other threads look at other tables: what one of them clears, this one still has.
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        _KEPT[place] = found
    return found


def _kept(content: bytes, where: str) -> RegisteredSchema:
    try:
        raw = json.loads(content)
        return RegisteredSchema(
            subject=raw["subject"],
            version=raw["version"],
            schema_id=raw["id"],
            text=raw["schema"],
            references=tuple(raw["references"]),
            group=raw.get("group", ""),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            "a kept schema cannot be read",
            where=where,
            why=f"{type(error).__name__}: {error}",
            fix="Restore it from a backup; or delete it while the registry still has that version, then apply.",
        ) from error
