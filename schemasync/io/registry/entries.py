"""One file of a file registry, read and understood: a bare schema (``.avsc``), or a registry's answer (``.json``).

Used by the file registry. It promises an `Entry`, or one RegistryError that names the file and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemasync.core.canonical import canonical_text
from schemasync.core.references import LARGEST_VERSION, Reference
from schemasync.errors import RegistryError

LARGEST_ID = 2**31 - 1
LAYOUT_FIX = "Expected are SUBJECT/VERSION.avsc with versions from 1, SUBJECT/VERSION.json, or SUBJECT.avsc."


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file, understood. ``pins`` are a wrapper's references (None for .avsc: they are found by name)."""

    path: Path
    schema_id: int
    text: str
    schema: object
    pins: tuple[Reference, ...] | None


def is_version_file(path: Path) -> bool:
    """Tell whether a file in a subject's directory is meant to be a version."""
    return path.suffix == ".avsc" or (path.suffix == ".json" and _is_decimal(path.stem))


def version_number(path: Path) -> int:
    """Return the version that a file's name says.

    Raises:
        RegistryError: its name does not begin with a number from 1 to `LARGEST_VERSION`.
    """
    if not _is_decimal(path.stem) or int(path.stem) < 1:
        raise RegistryError(f"'{path.name}' does not begin with a version number", where=str(path), fix=LAYOUT_FIX)
    if int(path.stem) > LARGEST_VERSION:
        fix = "Rename it: dates do for numbers, but not with times."
        raise RegistryError(f"the largest version is {LARGEST_VERSION}", where=str(path), fix=fix)
    return int(path.stem)


def read_entry(path: Path, version: int) -> Entry:
    """Read the file of a version.

    Raises:
        RegistryError: it cannot be read, is no JSON, or is no answer of a registry for this version.
    """
    return _wrapped(path, version) if path.suffix == ".json" else _bare(path)


def _is_decimal(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _bare(path: Path) -> Entry:
    text = _text(path)
    schema = _json(text, path)
    digest = hashlib.sha256(canonical_text(text).encode()).digest()
    schema_id = int.from_bytes(digest[:4], "big") % LARGEST_ID + 1
    return Entry(path=path, schema_id=schema_id, text=text, schema=schema, pins=None)


def _wrapped(path: Path, version: int) -> Entry:
    """Read a registry's answer; fields that we do not know are ignored."""
    match _json(_text(path), path):
        case {"schemaType": str(kind)} if kind != "AVRO":
            raise RegistryError(
                f"this is a schema of type {kind}, and only Avro is supported",
                where=str(path),
                fix="Exclude the subject under tables in the configuration, or remove the file.",
            )
        case {"version": other} if other != version:
            raise RegistryError(f"the file says that it is version {other}", where=str(path), fix=LAYOUT_FIX)
        case {"id": int(schema_id), "schema": str(text), **rest} if schema_id > 0 and schema_id is not True:
            pins = tuple(_pins(rest.get("references"), path))
            return Entry(path=path, schema_id=schema_id, text=text, schema=_json(text, path), pins=pins)
        case _:
            raise _no_wrapper(path, "an id (from 1) and a schema (text)")


def _pins(listed: object, path: Path) -> Iterator[Reference]:
    for reference in listed if isinstance(listed, list) else [listed] if listed else []:
        match reference:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                yield Reference(name=name, key=(subject, version))
            case _:
                raise _no_wrapper(path, "references that each have a name, a subject and a version (number)")


def _no_wrapper(path: Path, expected: str) -> RegistryError:
    return RegistryError(
        f"the file does not have {expected}",
        where=str(path),
        fix="A .json file holds a registry's answer to GET /subjects/S/versions/N; a bare schema is called .avsc.",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RegistryError("the file cannot be read", where=str(path), why=why or str(error)) from error


def _json(text: str, path: Path) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RegistryError(
            "the schema is not JSON", where=str(path), why=str(error), fix="Correct the file."
        ) from error
