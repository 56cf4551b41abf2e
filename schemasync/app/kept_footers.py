"""Footers of landed files, kept while the files lie there: a table that is held for days has thousands that wait.

Every look at a table asks for those of all of them, and none ever changes: who replaces a file changes its size or its
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from schemasync.app.workspace import Storage
from schemasync.core.admission import Footer, Unreadable
from schemasync.core.config_values import MB
from schemasync.core.ports import FileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    footers: Mapping[FileInfo, Footer]
    bytes: int


_KEPT: Final[dict[str, _Kept]] = {}
"""What the last look at each location read: what was admitted since goes with the next one."""
_MOST_KEPT: Final = 64 * MB
"""So much memory, about, is taken for all locations."""
_FILE: Final = 500
"""So much, about, is taken for a file beside what its footer says like others."""


def footers(
    storage: Storage, files: Sequence[FileInfo], *, now_ms: int
) -> tuple[tuple[FileInfo, Footer | Unreadable], ...]:
    """Return each of these landed files with its footer; those that were read before are not opened again.

    Raises:
        StorageError: the storage failed; a file may be as it should be.
    """
    where = storage.lake.root
    kept = _KEPT.get(where)
    known = kept.footers if kept else {}
    # Those that say the same share it, and so there are few of these.
    alike = {replace(f, rows=0): f for f in {id(f.type): f for f in known.values()}.values()}
    found: list[tuple[FileInfo, Footer | Unreadable]] = []
    for file in files:
        footer = known.get(file) or storage.small.footer(file, now_ms=now_ms)
        if isinstance(footer, Footer) and file not in known:
            footer = replace(alike.setdefault(replace(footer, rows=0), footer), rows=footer.rows)
        found.append((file, footer))
    _keep(where, ((file, footer) for file, footer in found if isinstance(footer, Footer)))
    return tuple(found)


def _keep(where: str, found: Iterable[tuple[FileInfo, Footer]]) -> None:
    """Keep as many of these as there is room for; where others leave none, they go."""
    footers: dict[FileInfo, Footer] = {}
    weighed: set[int] = set()
    size = 0
    for file, footer in found:
        said = 0 if id(footer.type) in weighed else len(footer.avro or "") + len(repr(footer.type))
        if size + _FILE + said > _MOST_KEPT:
            break
        size += _FILE + said
        weighed.add(id(footer.type))
        footers[file] = footer
    _KEPT.pop(where, None)
    # Other threads look at other tables: what one of them clears, this one still has.
    if size + sum(kept.bytes for kept in [*_KEPT.values()]) > _MOST_KEPT:
        _KEPT.clear()
    if footers:
        _KEPT[where] = _Kept(footers=footers, bytes=size)
