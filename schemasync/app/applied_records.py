"""Records of applied versions: written right before a version comes into force, read to tell a table's past.

They are create-only. What stands under a version that the table does not have yet is of an attempt that was killed: it
is left where it says the same, and written anew where it is another change by now.
"""

from __future__ import annotations

import json
from typing import Final

from schemasync.core.applied import FORMAT, AppliedVersion
from schemasync.core.ports import Lake
from schemasync.errors import DataError

APPLIED: Final = "_schemasync/applied"


def keep_record(lake: Lake, record: AppliedVersion) -> None:
    """Record a version that is about to come into force.

    Raises:
        StorageError: it cannot be written.
    """
    path = f"{APPLIED}/{record.version:06}.json"
    content = record.model_dump_json(indent=1).encode()
    if not lake.create(path, content) and not _is_there(lake, path, record):
        lake.delete(path)
        lake.create(path, content)


def _is_there(lake: Lake, path: str, record: AppliedVersion) -> bool:
    try:
        return record.says_the_same(_parse(lake.read(path), lake.uri(path)))
    except DataError:
        return False


def applied_versions(lake: Lake) -> tuple[AppliedVersion, ...]:
    """Return all records that lie beside a table's data, also those of attempts that were killed.

    Raises:
        DataError: one is mangled, or written by a newer schemasync.
    """
    return tuple(_parse(lake.read(f.path), lake.uri(f.path)) for f in lake.files(APPLIED) if _is_record(f.path))


def _is_record(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.endswith(".json") and name.removesuffix(".json").isdecimal()


def _parse(content: bytes, where: str) -> AppliedVersion:
    try:
        raw = json.loads(content)
        if isinstance(raw, dict) and raw.get("format", 0) > FORMAT:
            raise DataError("a newer schemasync wrote this record", where=where, fix="Upgrade schemasync.")
        return AppliedVersion.model_validate(raw)
    except ValueError as error:
        raise DataError(
            "the record of an applied version cannot be read",
            where=where,
            why=str(error).splitlines()[0],
            fix="Restore it from a backup; or delete it: when that version was applied is unknown then.",
        ) from error
