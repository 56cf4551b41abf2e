"""A directory that plays schema registry: ``SUBJECT/VERSION.avsc``, ``SUBJECT/VERSION.json`` or ``SUBJECT.avsc``.

Made by the app where the configuration's ``registry.url`` is ``file:DIR``; the quickstart and the golden stories live
on it. Implements `schemasync.core.ports.Registry`. It reads the disk at every question, so an edit counts at once, and
promises that everything wrong with a file is one RegistryError that names it. One bad subject leaves others alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote

from schemasync.core.avro_names import full_name, missing_names, without_namespace
from schemasync.core.canonical import canonical_text
from schemasync.core.ports import RegisteredSchema
from schemasync.core.references import HeldSchema, Key, Reference, Trail, resolve, trail_text
from schemasync.errors import RegistryError
from schemasync.io.registry.entries import Entry, is_version_file, read_entry, version_number


class FileRegistry:
    """The registry in one directory; see `schemasync.core.ports.Registry` for the questions.

    A subject's name may be percent-encoded on disk (``a%2Fb``). An ``.avsc`` file holds the bare schema. Named types
    that it uses and does not define are looked up by full name, else by the name alone, among the schemas at the top of
    the other subjects' versions that are the newest when it is asked for, transitively. Its schema id is made up: the
    first four bytes of the SHA-256 of its canonical JSON (sorted keys, no spaces), brought into 1 to 2**31 - 1; the
    same on every machine, equal for equal content (rarely also for other content), and meaningless in its order.

    A ``.json`` file holds what a registry answers to ``GET /subjects/S/versions/N``: ``{"id", "schema",
    "references": [{"name", "subject", "version"}]}``; its references are followed inside this directory. The file's
    place says which subject it belongs to. Hidden files and files with other names are ignored.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def __repr__(self) -> str:
        return f"FileRegistry({str(self._directory)!r})"

    def subjects(self) -> tuple[str, ...]:
        """Return all subjects that have a file, sorted; a directory without one is none, one that hides them is."""
        return tuple(
            sorted({subject for subject, place in self._places() if not _is_directory(place) or _has_files(place)})
        )

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the versions that have a file in ascending order, empty where the subject has none."""
        return tuple(sorted(self._files(subject)))

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved."""
        return resolve(subject, version, self._fetch)

    def newest_id(self) -> int | None:
        """Return None: ids that are made up do not grow, and looking at all files is no cheap probe."""
        return None

    def _places(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield (subject, directory or .avsc file) for everything in the directory that can be one."""
        for place in _listed(self._directory):
            if _is_directory(place):
                yield unquote(place.name), place
            elif place.name.endswith(".avsc"):
                yield unquote(place.name.removesuffix(".avsc")), place

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
            if _is_directory(place):
                paths = map(Path, _listed(Path(place)))
                yield from ((version_number(path), path) for path in paths if is_version_file(path))
            else:
                yield 1, Path(place)

    def _fetch(self, trail: Trail) -> HeldSchema:
        entry = self._entry(trail)
        references = self._found_by_name(entry, trail[-1][0]) if entry.pins is None else entry.pins
        return HeldSchema(
            schema_id=entry.schema_id,
            text=entry.text,
            references=references,
            place=str(entry.path),
            unpinned=bool(references) and entry.pins is None,
        )

    def _entry(self, trail: Trail) -> Entry:
        subject, version = trail[-1]
        path = self._files(subject).get(version)
        if path is None:
            raise RegistryError(
                f"there is no version {version} of subject '{subject}'",
                where=str(self._directory),
                why=f"referred to by {trail_text(trail[:-1])}" if trail[1:] else "",
                fix="Add the file, or look at the directory's name in registry.url.",
            )
        return read_entry(path, version)

    def _found_by_name(self, entry: Entry, subject: str) -> tuple[Reference, ...]:
        missing = missing_names(entry.schema)
        if not missing:
            return ()
        homes, unreadable = self._homes(subject)
        found = {name: homes.get(name) or homes.get(without_namespace(name), {}) for name in missing}
        return tuple(Reference(name=name, key=_home(name, entry, of, unreadable)) for name, of in found.items())

    def _homes(self, apart_from: str) -> tuple[dict[str, dict[str, Key]], list[RegistryError]]:
        """Return {full name: {content: the first (subject, version) with it}} of the other subjects' newest versions.

        A subject that cannot be read is no reason to fail as long as nothing turns out to be missing.
        """
        homes: dict[str, dict[str, Key]] = {}
        unreadable: list[RegistryError] = []
        for subject in self.subjects():
            try:
                versions = () if subject == apart_from else self.versions(subject)
                for version in versions[-1:]:
                    entry = self._entry(((subject, version),))
                    contents = homes.setdefault(full_name(entry.schema), {})
                    contents.setdefault(canonical_text(entry.text), (subject, version))
            except RegistryError as error:
                unreadable.append(error)
        return homes, unreadable


def _home(name: str, entry: Entry, found: Mapping[str, Key], unreadable: Sequence[RegistryError]) -> Key:
    """Return the only version that defines a type."""
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
                why=f"by {', '.join(trail_text([key]) for key in keys)}",
                fix="Define it in this file, or make the others agree.",
            )


def _listed(directory: Path) -> list[os.DirEntry[str]]:
    """Return what stands in a directory by name, hidden files left out.

    As entries, which know what is a directory: a listing asks for thousands of subjects one by one.

    Raises:
        RegistryError: there is no such directory, or it may not be read.
    """
    try:
        with os.scandir(directory) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=attrgetter("name"))
    except OSError as error:
        raise RegistryError(
            "the directory of the file registry cannot be read",
            where=str(directory),
            why=error.strerror or str(error),
            fix="Check registry.url: file:DIR is relative to the configuration file.",
        ) from error


def _is_directory(place: os.DirEntry[str]) -> bool:
    # Of links that lead in a circle the entry raises an error.
    return Path(place).is_dir() if place.is_symlink() else place.is_dir()


def _has_files(directory: os.DirEntry[str]) -> bool:
    try:
        return any(is_version_file(Path(entry)) for entry in _listed(Path(directory)))
    except RegistryError:
        return True  # its own table, if it has one, tells of it; all others go on
