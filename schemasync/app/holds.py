"""Since when a table is held. A hold begins when an apply meets it and ends with the first that does not.

Noted beside the data, under the version that the table goes on with, so that any process can say it.
"""

from __future__ import annotations

import json

from schemasync.app.workspace import Workspace
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import Lake

HOLDS = "_schemasync/holds"


def note_hold(workspace: Workspace, target: TableTarget, version: int, *, held: bool) -> int | None:
    """Note that the table, at this version, is held from now on, or that it no longer is; return since when it is."""
    lake = workspace.storage(target).lake
    if held:
        lake.create(_path(version), json.dumps({"version": version, "since_ms": workspace.now_ms()}).encode())
        return held_since_ms(lake, version)
    for file in lake.files(HOLDS):
        lake.delete(file.path)
    return None


def held_since_ms(lake: Lake, version: int) -> int | None:
    """Return since when (ms since 1970 UTC) the table is held at this version; None where no apply met the hold yet."""
    if not any(file.path == _path(version) for file in lake.files(HOLDS)):
        return None
    try:
        return int(json.loads(lake.read(_path(version)))["since_ms"])
    except (ValueError, KeyError, TypeError):
        return None  # a note that a person mangled is no reason to say nothing of the table


def _path(version: int) -> str:
    return f"{HOLDS}/{version:06}.json"
