"""A directory that plays schema registry: ``SUBJECT/VERSION.avsc``, ``SUBJECT/VERSION.json`` or ``SUBJECT.avsc``.

Made by the app where the configuration's ``registry.url`` is ``file:DIR``; the quickstart and the golden stories live
on it. Implements `schemasync.core.ports.Registry`. It reads the disk at every question, so an edit counts at once, and
promises that everything wrong with a file is one RegistryError that names it. One bad subject leaves others alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from schemasync.core.ports import RegisteredSchema
from schemasync.errors import RegistryError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED_TYPES = frozenset({"record", "error", "enum", "fixed"})
COMPLEX_TYPES = NAMED_TYPES | {"array", "map"}
LARGEST_ID = 2**31 - 1
LAYOUT_FIX = "Expected are SUBJECT/VERSION.avsc with versions from 1, SUBJECT/VERSION.json, or SUBJECT.avsc."

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One file, understood. ``pins`` are a wrapper's references (None for .avsc: they are found by name)."""

    path: Path
    schema_id: int
    text: str
    schema: object
    pins: tuple[tuple[str, _Key], ...] | None


class FileRegistry:
    """The registry in one directory; see `schemasync.core.ports.Registry` for the questions.

    A subject's name may be percent-encoded on disk (``a%2Fb``). An ``.avsc`` file holds the bare schema. Named types
    that it uses and does not define are looked up by full name among the schemas at the top of the other subjects'
    newest versions, transitively. Its schema id is made up: the first four bytes of the SHA-256 of its canonical
    JSON (sorted keys, no spaces), brought into 1 to 2**31 - 1; the same on every machine, equal for equal content
    (rarely also for other content), and meaningless in its order.

    A ``.json`` file holds what a registry answers to ``GET /subjects/S/versions/N``: ``{"id", "schema",
    "references": [{"name", "subject", "version"}]}``; its references are followed inside this directory. The file's
    place says which subject it belongs to. Hidden files and files with other names are ignored.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def __repr__(self) -> str:
        return f"FileRegistry({str(self._directory)!r})"

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects that have a file, sorted; a directory without one is none."""
        return tuple(sorted({subject for subject, place in self._places() if not place.is_dir() or _has_files(place)}))

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the versions that have a file in ascending order, empty where the subject has none."""
        return tuple(sorted(self._files(subject)))

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved."""
        entry = self._entry((subject, version), ())
        texts: dict[_Key, _Entry] = {}
        self._follow(entry, ((subject, version),), texts, {})
        unique: dict[str, str] = {}
        for found in texts.values():
            unique.setdefault(_canonical(found.schema), found.text)
        return RegisteredSchema(
            subject=subject,
            version=version,
            schema_id=entry.schema_id,
            text=entry.text,
            references=tuple(unique.values()),
        )

    def newest_id(self) -> int | None:
        """Return None: ids that are made up do not grow, and looking at all files is no cheap probe."""
        return None

    def _places(self) -> Iterator[tuple[str, Path]]:
        """Yield (subject, directory or .avsc file) for everything in the directory that can be one."""
        for path in _listed(self._directory):
            if path.is_dir():
                yield unquote(path.name), path
            elif path.suffix == ".avsc":
                yield unquote(path.stem), path

    def _files(self, subject: str) -> dict[int, Path]:
        """Return the file of each version; two files for one version are an error."""
        files: dict[int, Path] = {}
        for version, path in self._numbered(subject):
            other = files.setdefault(version, path)
            if other != path:
                raise RegistryError(
                    f"two files claim version {version} of subject '{subject}'",
                    where=str(path),
                    why=f"the other one is {other}",
                    fix="Keep one of them.",
                )
        return files

    def _numbered(self, subject: str) -> Iterator[tuple[int, Path]]:
        for name, place in self._places():
            if name != subject:
                continue
            if place.is_dir():
                yield from ((_number(path), path) for path in _listed(place) if _is_version_file(path))
            else:
                yield 1, place

    def _entry(self, key: _Key, trail: Sequence[_Key]) -> _Entry:
        subject, version = key
        path = self._files(subject).get(version)
        if path is None:
            raise RegistryError(
                f"there is no version {version} of subject '{subject}'",
                where=str(self._directory),
                why=f"referred to by {_trail(trail)}" if trail else "",
                fix="Add the file, or look at the directory's name in registry.url.",
            )
        return _wrapped(path, version) if path.suffix == ".json" else _bare(path)

    def _follow(
        self, entry: _Entry, path: tuple[_Key, ...], done: dict[_Key, _Entry], named: dict[str, tuple[_Key, ...]]
    ) -> None:
        """Collect what an entry refers to into ``done``, depth first, so that each comes after what it needs."""
        for name, key in self._dependencies(entry, path):
            trail = (*path, key)
            if key in path:
                raise RegistryError(
                    "the references of a schema lead back to it",
                    where=str(entry.path),
                    why=_trail(trail),
                    fix="Define the types that need each other in one file.",
                )
            if key not in done:
                found = self._entry(key, path)
                self._follow(found, trail, done, named)
                done[key] = found
            first = named.setdefault(name, trail)
            if _canonical(done[first[-1]].schema) != _canonical(done[key].schema):
                raise RegistryError(
                    f"the reference '{name}' stands for two different schemas",
                    where=str(entry.path),
                    why=f"by {_trail(trail)}, and by {_trail(first)}",
                    fix="Make the references agree on one version.",
                )

    def _dependencies(self, entry: _Entry, path: tuple[_Key, ...]) -> tuple[tuple[str, _Key], ...]:
        if entry.pins is not None:
            return entry.pins
        missing = _missing_names(entry.schema)
        if not missing:
            return ()
        homes, unreadable = self._homes(path[-1][0])
        return tuple((name, self._home(name, entry, homes.get(name, {}), unreadable)) for name in missing)

    def _homes(self, apart_from: str) -> tuple[dict[str, dict[str, _Key]], list[RegistryError]]:
        """Return {full name: {content: the first (subject, version) with it}} of the other subjects' newest versions.

        A subject that cannot be read is no reason to fail as long as nothing turns out to be missing.
        """
        homes: dict[str, dict[str, _Key]] = {}
        unreadable: list[RegistryError] = []
        for subject in self.subjects():
            try:
                versions = () if subject == apart_from else self.versions(subject)
                for version in versions[-1:]:
                    schema = self._entry((subject, version), ()).schema
                    homes.setdefault(_fullname(schema), {}).setdefault(_canonical(schema), (subject, version))
            except RegistryError as error:
                unreadable.append(error)
        return homes, unreadable

    def _home(self, name: str, entry: _Entry, found: Mapping[str, _Key], unreadable: Sequence[RegistryError]) -> _Key:
        match tuple(found.values()):
            case (key,):
                return key
            case ():
                raise RegistryError(
                    f"the type '{name}' is neither defined in this file nor by another subject's newest version",
                    where=str(entry.path),
                    why=f"not looked at: {unreadable[0]}" if unreadable else "",
                    fix="Add a file that defines it, or correct the name (names without a dot take the namespace).",
                )
            case keys:
                raise RegistryError(
                    f"the type '{name}' is defined in different ways",
                    where=str(entry.path),
                    why=f"by {', '.join(_trail([key]) for key in keys)}",
                    fix="Define it in this file, or make the others agree.",
                )


def _trail(path: Sequence[_Key]) -> str:
    return " -> ".join(f"{subject} version {version}" for subject, version in path)


def _listed(directory: Path) -> list[Path]:
    """Return what stands in a directory by name, hidden files left out.

    Raises:
        RegistryError: there is no such directory, or it may not be read.
    """
    try:
        with os.scandir(directory) as entries:
            return sorted(Path(entry.path) for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        raise RegistryError(
            "the directory of the file registry cannot be read",
            where=str(directory),
            why=error.strerror or str(error),
            fix="Check registry.url: file:DIR is relative to the configuration file.",
        ) from error


def _is_version_file(path: Path) -> bool:
    return path.suffix == ".avsc" or (path.suffix == ".json" and _is_decimal(path.stem))


def _is_decimal(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _has_files(directory: Path) -> bool:
    return any(_is_version_file(path) for path in _listed(directory))


def _number(path: Path) -> int:
    if not _is_decimal(path.stem) or int(path.stem) < 1:
        raise RegistryError(f"'{path.name}' does not begin with a version number", where=str(path), fix=LAYOUT_FIX)
    return int(path.stem)


def _bare(path: Path) -> _Entry:
    text = _text(path)
    schema = _json(text, path)
    digest = hashlib.sha256(_canonical(schema).encode()).digest()
    schema_id = int.from_bytes(digest[:4], "big") % LARGEST_ID + 1
    return _Entry(path=path, schema_id=schema_id, text=text, schema=schema, pins=None)


def _wrapped(path: Path, version: int) -> _Entry:
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
            return _Entry(path=path, schema_id=schema_id, text=text, schema=_json(text, path), pins=pins)
        case _:
            raise _no_wrapper(path, "an id (from 1) and a schema (text)")


def _pins(listed: object, path: Path) -> Iterator[tuple[str, _Key]]:
    for reference in listed if isinstance(listed, list) else [listed] if listed else []:
        match reference:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                yield name, (subject, version)
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


def _canonical(schema: object) -> str:
    return json.dumps(schema, sort_keys=True, separators=(",", ":"))


def _fullname(schema: object) -> str:
    """Return the full name of the named type at the top of a schema, empty where there is none."""
    match schema:
        case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
            return _qualified(name, _namespace(name, rest.get("namespace"), ""))
        case _:
            return ""


def _namespace(name: str, attribute: object, enclosing: str) -> str:
    """Return the namespace that holds inside a named type (Avro 1.12, "Names"): a dotted name beats the attribute."""
    if "." in name:
        return name.rpartition(".")[0]
    return attribute if isinstance(attribute, str) else enclosing


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _missing_names(schema: object) -> tuple[str, ...]:
    """Return the full names that a schema uses and does not define, in the order of their first use."""
    defined: set[str] = set()
    used: dict[str, None] = {}
    _walk(schema, "", defined, used)
    return tuple(name for name in used if name not in defined)


def _walk(schema: object, namespace: str, defined: set[str], used: dict[str, None]) -> None:
    """Collect names. What is malformed is passed over here: reading the schema will say so, and where."""
    match schema:
        case str() if schema not in PRIMITIVES:
            used[_qualified(schema, namespace)] = None
        case list():
            for branch in schema:
                _walk(branch, namespace, defined, used)
        case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
            inner = _namespace(name, rest.get("namespace"), namespace)
            defined.add(_qualified(name, inner))
            fields = rest.get("fields")
            for one in fields if isinstance(fields, list) else []:
                _walk(one.get("type") if isinstance(one, dict) else None, inner, defined, used)
        case {"type": "array", "items": inside} | {"type": "map", "values": inside}:
            _walk(inside, namespace, defined, used)
        case {"type": str(kind)} if kind in COMPLEX_TYPES:
            pass
        case {"type": inside}:
            _walk(inside, namespace, defined, used)
        case _:
            pass
