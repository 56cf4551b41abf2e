"""What landed for a table and is not admitted yet: where it lies, and how each file is read into the table.

Every command lists it; only planning and admitting read footers, and ask the registry again for a version that nobody
knows. Nothing is changed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

from schemasync.app.kept_footers import footers
from schemasync.app.workspace import Workspace
from schemasync.core.admission import (
    Footer,
    LandedFile,
    NoWriter,
    Unreadable,
    first_offset,
    lacking_order,
    lost_order,
    writer_in,
)
from schemasync.core.amounts import many
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.envelope import deciding
from schemasync.core.history import History
from schemasync.core.manifest import AdmittedFile, Manifest
from schemasync.core.mapping import TableTarget
from schemasync.core.names import parse_hour
from schemasync.core.ports import FileInfo, Lake, RegisteredSchema
from schemasync.core.projection import Projection, Unprojectable, project
from schemasync.core.schema import SubjectVersion
from schemasync.core.shape import Shape, version_of
from schemasync.errors import RegistryError, RegistryUnavailableError, SchemaError, SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What lies in a table's increment directories and is not admitted yet.

    ``ready`` files can be admitted now; ``findings`` say why the others cannot: they are of a schema that the table
    does not have (a hold), still being written, or wrong. A file that fits no version stays where it is while others
    are admitted; a corrupt one holds the table, because nobody knows what it held. ``unfinished`` are still being
    written: so many.
    """

    ready: tuple[LandedFile, ...] = ()
    unfinished: int = 0
    findings: tuple[Diagnostic, ...] = ()

    @property
    def blocked(self) -> bool:
        """Tell whether a file's trouble holds the table."""
        return any(d.code == "SS301" for d in self.findings)


def pending_files(workspace: Workspace, target: TableTarget, manifest: Manifest | None) -> tuple[FileInfo, ...]:
    """List the landed files that no manifest knows, oldest hour first; no footer is read."""
    pattern = target.increments
    return pending_among(files_there(workspace.storage(target).lake, pattern), pattern, manifest)


def pending_among(files: Iterable[FileInfo], pattern: str, manifest: Manifest | None) -> tuple[FileInfo, ...]:
    """Return those of these files that landed and that the manifest does not know, in their order."""
    landed = (f for f in files if _is_landed(pattern, f.path))
    if manifest is None:
        return tuple(landed)
    known = {f.path: f for f in manifest.admitted}
    return tuple(f for f in landed if f.path not in known or replaced(f, known[f.path], keyed=manifest.keyed))


def replaced(file: FileInfo, admitted: AdmittedFile, *, keyed: bool) -> bool:
    """Tell whether the sink wrote another file under an admitted name.

    With keys an admission too many changes nothing, so the time of change counts; without them it would show every
    event twice, so only another size does.
    """
    return file.bytes != admitted.bytes or (keyed and file.modified_ms != admitted.modified_ms)


def of_unclear_key(files: int) -> Diagnostic:
    """Tell of landed files that wait because nothing says under which key they were written."""
    said = f"landed files wait until it is clear under which key they were written: {many(files, 'file')}"
    return diagnose("SS304", said)


_ENDING: Final = ".parquet"
_ENDINGS: Final = (_ENDING, ".parq", ".pq")
"""How names of Parquet files end, in capitals or not; only what ends with the first as it is is admitted."""

_IN_PASSING: Final = re.compile(
    r"\.(crc|tmp|inprogress|_copying_|partial|filepart|pending)|\.(keys|headers)\.\w+$", re.IGNORECASE
)
"""In names of checksums, of what is still being written (by Flink, by HDFS's client, by copying tools), and of the keys
and headers that Connect's sinks lay beside their files."""

_OURS = ("_schemasync/", "base/", "delta/", "archive/", "changes/", "history/")


def strays_among(files: Iterable[FileInfo], pattern: str) -> tuple[FileInfo, ...]:
    """Return the files that lie where increments are expected, and are none.

    Parquet files of no hour or misnamed, and of an hour whatever else is not hidden: sinks write other formats, too,
    and some give Parquet other names.
    """
    return tuple(f for f in files if _is_stray(pattern, f.path))


def _is_stray(pattern: str, path: str) -> bool:
    if not _is_visible(path) or _is_landed(pattern, path):
        return False
    directory, _, name = path.rpartition("/")
    in_passing = _IN_PASSING.search(name) is not None
    return _is_parquet(path) or not (in_passing or parse_hour(pattern, directory) is None)


def _is_visible(path: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in path.split("/"))
    return not hidden and not path.startswith(_OURS)


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(_ENDINGS)


def strays_beside(lake: Lake, pattern: str) -> tuple[FileInfo, ...]:
    """Return the Parquet files beside the directory in which all hours lie, and of directories there.

    It may have been another one; and a table that was somebody else's often has its files right in its location.
    """
    tops = _tops(lake, pattern)[0]
    beside = (d for d in lake.directories("") if not any(f"{top}/".startswith(f"{d}/") for top in tops))
    found = (f for d in beside if not f"{d}/".startswith(_OURS) for f in lake.files(d))
    return tuple(f for f in (*lake.files("", below=False), *found) if _is_visible(f.path) and _is_parquet(f.path))


def of_strays(strays: Sequence[FileInfo], where: str) -> Iterator[Diagnostic]:
    """Tell of files that are left alone."""
    lost = [f for f in strays if f.path.endswith(_ENDING)]
    if lost:
        counted = f"{many(len(lost), 'Parquet file')} {'matches' if len(lost) == 1 else 'match'}"
        yield diagnose("SS307", f"{counted} no hour of {where}, first {lost[0].path}")
    misnamed = [f for f in strays if not f.path.endswith(_ENDING)]
    if misnamed:
        said = f"{many(len(misnamed), 'file')} not called *{_ENDING}, first {misnamed[0].path}"
        fix = "Have the sink write Parquet files, and call them so, if they should be admitted; or move these away."
        yield diagnose("SS307", said, fix=fix)


def files_there(lake: Lake, pattern: str) -> Iterator[FileInfo]:
    """Yield the files below the directory in which all hours lie: where that is the table's, not those of ours.

    That may be many, and every tick asks.
    """
    for directory in _tops(lake, pattern)[0]:
        yield from lake.files(directory)


def _tops(lake: Lake, pattern: str) -> tuple[tuple[str, ...], int]:
    """Return the directories below which all hours lie, and how many levels below them."""
    levels = pattern.count("/")
    top = pattern.split("{", 1)[0].rpartition("/")[0]
    if top:
        return (top,), levels - top.count("/")
    return tuple(d for d in lake.directories("") if not f"{d}/".startswith(_OURS)), levels


def hours_there(lake: Lake, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the directories of hours, each with its hour (yyyyMMddHH), whatever is in them."""
    tops, levels = _tops(lake, pattern)
    for _ in range(levels):
        tops = tuple(d for directory in tops for d in lake.directories(directory))
    hours = ((directory, parse_hour(pattern, directory)) for directory in tops)
    yield from ((directory, hour) for directory, hour in hours if hour is not None)


def _is_landed(pattern: str, path: str) -> bool:
    directory, _, name = path.rpartition("/")
    if "//" in path:
        # Keys of S3 may have an empty name in them: they are listed, and neither Arrow nor Hadoop opens them.
        return False
    return name.endswith(_ENDING) and not name.startswith(("_", ".")) and parse_hour(pattern, directory) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waits:
    """Why a file is not admitted: what is told of it, behind where it lies; of ``several`` in other words."""

    code: str
    said: str
    several: str = ""
    fix: str = ""


_UNFINISHED: Final = "SS305"

_FEW: Final = 3
"""So many files that wait for one reason are told of one by one."""


def _told(why: _Waits, places: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Tell of files that wait for one reason; a hold of days may have thousands, which no receiver of events takes."""
    if len(places) <= _FEW:
        return tuple(diagnose(why.code, f"{where}{why.said}", fix=why.fix) for where in places)
    first = min(places)
    said = f"{many(len(places), 'file')}, first {first}{why.several or why.said}"
    return (diagnose(why.code, said, fix=why.fix, first=f"{first}{why.said}"),)


def look_at(workspace: Workspace, shape: Shape, target: TableTarget, files: Sequence[FileInfo]) -> Landed:
    """Read the footers of new files and say how each is read into the table as ``shape`` has it."""
    # Sinks register a version and write files of it at any time: also since the registry was asked for this table.
    asked_again = cache(lambda: _asked_again(workspace, target, shape.history))
    # Many files say the same of themselves, and mean the same as long as the history is the same.
    understood = cache(partial(_understood, shape, target, asked_again))
    ready: list[LandedFile] = []
    waiting: dict[_Waits, list[str]] = {}
    for file, footer in footers(workspace.storage(target), files, now_ms=workspace.now_ms()):
        if isinstance(footer, Unreadable):
            outcome: Projection | _Waits = _unread(footer)
        elif isinstance(outcome := understood(replace(footer, rows=0)), Projection):
            ready.append(_ready(file, footer.rows, outcome))
        if isinstance(outcome, _Waits):
            waiting.setdefault(outcome, []).append(f"{target.location}/{file.path}")
    return Landed(
        ready=tuple(ready),
        unfinished=sum(len(places) for why, places in waiting.items() if why.code == _UNFINISHED),
        findings=tuple(d for why, places in waiting.items() for d in _told(why, places)),
    )


def _unread(footer: Unreadable) -> _Waits:
    code = _UNFINISHED if footer.incomplete else "SS301"
    return _Waits(code=code, said=f": {footer.reason}", fix=_LET_READ if footer.denied else "")


_LET_READ: Final = "Give this user read permission. Until then nothing that lands for the table is admitted."


def of_changed(workspace: Workspace, target: TableTarget, landed: Landed) -> tuple[Diagnostic, ...]:
    """Tell of files that are not any more what they were when they were looked at; none where all are."""
    there = {*files_there(workspace.storage(target).lake, target.increments)}
    looked_at = (FileInfo(path=f.path, bytes=f.bytes, modified_ms=f.modified_ms) for f in landed.ready)
    changed = [f"{target.location}/{file.path}" for file in looked_at if file not in there]
    return _told(_Waits(code=_UNFINISHED, said=": it changed while it was read"), changed)


def _understood(
    shape: Shape, target: TableTarget, asked_again: Callable[[], History], footer: Footer
) -> Projection | _Waits:
    """Say how files with such a footer are read, however many rows each has."""
    try:
        embedded = _embedded(footer, target)
    except SchemaError as error:
        # It speaks of a version in the registry, which this is not, and of what to do about that.
        place = error.where.removeprefix(f"{target.subject} version {_FOOTERS}")
        said = (f": the Avro schema in its footer{place}", error.what, error.why)
        fix = error.fix if isinstance(error, SettingError) else ""
        return _Waits(code="SS302", said=": ".join(filter(None, said)), fix=fix)
    writer = writer_in(shape.history, footer, embedded=embedded)
    if isinstance(writer, NoWriter):
        writer = writer_in(asked_again(), footer, embedded=embedded)
    if isinstance(writer, NoWriter):
        return _Waits(code="SS302", said=f": {writer.reason}", fix=writer.fix)
    if lack := lacking_order(footer, writer):
        return _Waits(code="SS302", said=f": {lack}", fix=_LAND_WHOLE)
    if writer in shape.history.elsewhere:
        return _of_version(f"{writer.version}, of a compatibility group that is not followed")
    if writer.version > shape.version.version:
        return _of_version(f"{writer.version}")
    ordering = shape.envelope.ordering
    # Rows that no key tells apart are all kept, whatever their order.
    needed = ordering if target.sequence_by else deciding(ordering)
    if shape.keys and (lost := lost_order(shape.history, writer, needed)):
        return _Waits(code="SS302", said=f", written under version {writer.version}: {lost}", fix=_LAND_WHOLE)
    found = project(
        shape.history,
        writer=writer,
        layout=shape.layout,
        columns=shape.columns,
        keys=shape.keys,
        ordering=ordering,
        policies=target.policies,
        fill_defaults=shape.fill_defaults,
    )
    if isinstance(found, Unprojectable):
        told = f", written under version {found.writer}: {'; '.join(found.reasons)}"
        return _Waits(code="SS302", said=told, fix=found.fix)
    return found


_LAND_WHOLE: Final = "Land its events anew with what orders them, or move it away; it stays where it is."


def _of_version(version: str) -> _Waits:
    said = f"written under version {version}"
    return _Waits(code="SS304", said=f" was {said}", several=f", were {said}")


def _ready(file: FileInfo, rows: int, projection: Projection) -> LandedFile:
    return LandedFile(
        path=file.path,
        bytes=file.bytes,
        modified_ms=file.modified_ms,
        rows=rows,
        first_offset=first_offset(file.path),
        projection=projection,
    )


def _asked_again(workspace: Workspace, target: TableTarget, history: History) -> History:
    """Return a history with what was registered since, without its lives; as it is where the registry does not say."""
    known = max(v.version for v in (*history.versions, *history.elsewhere))
    found: list[SubjectVersion] = []
    with suppress(RegistryError, RegistryUnavailableError):
        for number in workspace.registry.versions(target.subject):
            if number > known:
                registered = workspace.registry.schema(target.subject, number)
                with suppress(SchemaError):
                    found.append(version_of(target, registered, past=True))
    return replace(history, versions=(*history.versions, *found))


_FOOTERS: Final = 1
"""The number of a schema that a file's footer has: it has none, and any would do."""


def _embedded(footer: Footer, target: TableTarget) -> SubjectVersion | None:
    """Understand the schema in a file's footer; None where there is none."""
    if footer.avro is None:
        return None
    registered = RegisteredSchema(subject=target.subject, version=_FOOTERS, schema_id=0, text=footer.avro)
    return version_of(target, registered, past=True)
