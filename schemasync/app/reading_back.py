"""What a run has just written: looked at before anyone else does, and deleted where the run fails before that.

Called by admission and compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.admission import WrittenFooter
from schemasync.core.changed_keys import (
    LISTED,
    LISTED_FOR_SPARK,
    WORDS_FILE,
    ChangedKeys,
    fit,
    hashed_columns,
    listed,
    may_be_asked_for,
    may_be_text,
    places,
    words_for_hashes,
)
from schemasync.core.in_place import misreads
from schemasync.core.keys import Bound, is_ordered, print_key, whole_number, whole_number_or_text
from schemasync.core.layout import ordering_columns
from schemasync.core.manifest import HASHED_FROM, DataFile, Segment, SegmentKind, named_keys
from schemasync.core.mapping import TableTarget
from schemasync.core.merging import MergedShard
from schemasync.core.moments import Moment, Newest, never, newest_of
from schemasync.core.names import is_hidden
from schemasync.core.ports import Lake, LandedFiles
from schemasync.core.schema import Envelope
from schemasync.core.shape import Shape
from schemasync.core.types import Primitive, Type
from schemasync.errors import DataError, SchemasyncError, StorageError


@contextmanager
def abandoned(lake: Lake, directory: str) -> Iterator[None]:
    """Delete what a failing run wrote: no state names it yet. On a full disk that is what makes the next run fit."""
    try:
        yield
    except SchemasyncError:
        with suppress(SchemasyncError):
            lake.delete_directory(directory)
        raise


def read_back(
    workspace: Workspace,
    target: TableTarget,
    shape: Shape,
    merged: MergedShard,
    *,
    kind: SegmentKind,
    low: Bound | None = None,
    placeholders: tuple[str, ...] = (),
) -> Segment:
    """Look at what was written before anyone else does: files, rows, columns; return it as a segment.

    ``placeholders`` are those that rows may still have.

    Raises:
        StorageError: it is not what the job said that it wrote; nothing is published then.
    """
    storage, keys, ordering = workspace.storage(target), shape.key_columns, ordering_columns(shape.envelope)[0]
    files: list[DataFile] = []
    footers: list[WrittenFooter] = []
    declared = [(name, type_) for name, type_, _ in ddl.physical_columns(shape)]
    columns = tuple(name for name, _ in declared)
    for file in storage.lake.files(merged.directory):
        if is_hidden(file.path):
            continue
        footer = checked_footer(storage.small, file.path, declared, ordering=ordering, keys=keys)
        footers.append(footer)
        files.append(DataFile(path=file.path, rows=footer.rows, bytes=file.bytes))
    if not files:
        # It is a partition's place all the same, which a metastore would have to make itself.
        storage.lake.make_directory(merged.directory)
    rows = sum(f.rows for f in files)
    if rows != merged.counts.written:
        raise StorageError(
            "what was written is not what the job says",
            where=storage.lake.uri(merged.directory),
            why=f"{rows} rows read back, {merged.counts.written} written",
            fix="Run again; the old state is in force.",
        )
    return Segment(
        name=merged.shard,
        kind=kind,
        location=merged.directory,
        files=tuple(files),
        rows=rows,
        bytes=sum(f.bytes for f in files),
        schema_version=shape.version.version,
        columns=columns,
        toasted=merged.counts.unsent,
        placeholders=placeholders if merged.counts.unsent else (),
        created_ms=workspace.now_ms(),
        partition_by=tuple(p.name for p in shape.partitions),
        tombstones=merged.counts.written - merged.counts.rows,
        sorted_by=tuple(name for name, _ in shape.key_columns),
        low=low,
        key_range=key_range(footers, keys),
        **moments(footers, shape.envelope),
    )


def checked_footer(
    files: LandedFiles,
    path: str,
    declared: Sequence[tuple[str, Type]],
    *,
    ordering: str,
    keys: Sequence[tuple[str, Type]],
) -> WrittenFooter:
    """Read the footer of a file that was just written, with the extents that `moments` and `key_range` are made of.

    Raises:
        DataError: it has other columns; nobody may publish it.
        StorageError: Spark could misread it, or it cannot be read; nobody may publish it.
    """
    column = whole_number(keys)
    # Statistics tell what one whole number is about; of a date beyond Python's years they raise.
    sorted_by = [name for name, _ in keys] if column is None and all(is_ordered(type_) for _, type_ in keys) else []
    footer = files.written(path, {ordering} if column is None else {ordering, column}, keys=sorted_by)
    if footer.columns != tuple(name for name, _ in declared):
        raise DataError("a file that was written has other columns than the table", where=path)
    if reasons := misreads(declared, footer.leaves):
        raise StorageError(
            "a file that was written would not be read as the table declares it",
            where=path,
            why="; ".join(reasons[:3]),
            fix="It was not published. Take settings of spark.sql.parquet and spark.hadoop.parquet from spark: conf: "
            "and run again.",
        )
    return footer


def extents(footers: Iterable[WrittenFooter], column: str) -> tuple[tuple[Moment, Moment], ...] | None:
    """Return the least and the largest value of a column by file; None where footers do not tell.

    Files without a row are left out.
    """
    found = [footer.extents[column] for footer in footers if footer.rows]
    known = tuple(extent for extent in found if extent is not None)
    return known if len(known) == len(found) else None


def key_range(
    footers: Iterable[WrittenFooter], keys: Sequence[tuple[str, Type]]
) -> tuple[int, int] | tuple[Bound, Bound] | None:
    """Return the lowest and the highest key, as a segment says them; None without a row, or where one is not known."""
    column = whole_number(keys)
    if column is None:
        ends = [footer.ends for footer in footers if footer.rows]
        known = [(low, high) for low, high in filter(None, ends) if low is not None and high is not None]
        if not known or len(known) < len(ends):
            return None
        return print_key(min(low for low, _ in known)), print_key(max(high for _, high in known))
    # Whole numbers, which is more than a moment's type says.
    found: Sequence[tuple[Any, Any]] = extents(footers, column) or ()
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def changed_keys(
    files: LandedFiles,
    segment: Segment,
    keys: Sequence[tuple[str, Type]],
    *,
    beside: Iterable[Segment],
    target: TableTarget,
) -> ChangedKeys | None:
    """Read the keys of a delta that was just written, as a view can name them with those of the deltas ``beside`` it.

    Bits that are too long for the view's text are written beside the delta. None where a row has no key or one that no
    view can say, where they are too many, and where more than the keys is to be compared. In place of that, and of keys
    of several columns, there are bits of hashes where Spark alone reads the view and changes have many rows.

    Raises:
        StorageError: a file cannot be read, or cannot be written.
    """
    beside = tuple(beside)
    named = named_keys(beside)
    if not segment.ahead or not segment.rows or named is None:
        return None
    others = [other for _, other in named]
    column = whole_number_or_text(keys)
    changed = None if column is None else _by_themselves(files, segment, column, others, target)
    if changed is None and target.only_spark and sum(s.rows for s in (*beside, segment)) > HASHED_FROM:
        return _hashed(files, segment, hashed_columns(keys), others, target)
    return changed


def _by_themselves(
    files: LandedFiles, segment: Segment, column: str, others: Sequence[ChangedKeys], target: TableTarget
) -> ChangedKeys | None:
    if segment.rows <= (LISTED_FOR_SPARK if target.only_spark else LISTED):
        changed = listed(key for file in segment.files for key in files.keys(file.path, column))
        if changed is None or fit((*others, changed)):
            return changed
    if segment.whole_numbers is None or not target.only_spark:
        return None
    return _bits(files, segment, column, segment.whole_numbers, others, target)


def _hashed(
    files: LandedFiles, segment: Segment, columns: tuple[str, ...], others: Sequence[ChangedKeys], target: TableTarget
) -> ChangedKeys | None:
    count = words_for_hashes(segment.rows, others) if columns else 0
    aside = ChangedKeys(path=f"{segment.location}/{WORDS_FILE}", count=count, hashed=columns)
    if not (count and may_be_asked_for(target.location) and fit((*others, aside))):
        return None
    files.write_words(aside.path, files.hashed_words([f.path for f in segment.files], columns, count=count))
    return aside


def _bits(
    files: LandedFiles,
    segment: Segment,
    column: str,
    key_range: tuple[int, int],
    others: Sequence[ChangedKeys],
    target: TableTarget,
) -> ChangedKeys | None:
    low, count = places(key_range)
    aside = ChangedKeys(low=low, path=f"{segment.location}/{WORDS_FILE}", count=count)
    may_be_aside = may_be_asked_for(target.location) and fit((*others, aside))
    if not (may_be_aside or may_be_text(count)):
        return None
    words = files.words([file.path for file in segment.files], column, low=low, count=count)
    if words is None:
        return None
    if may_be_text(count):
        in_text = ChangedKeys(low=low, words=",".join(map(str, words)))
        if fit((*others, in_text)):
            return in_text
    if not may_be_aside:
        return None
    files.write_words(aside.path, words)
    return aside


def moments(footers: Iterable[WrittenFooter], envelope: Envelope) -> dict[str, Any]:
    """Return what a segment of these files says of when its rows are from, by the names of its fields."""
    column = ordering_columns(envelope)[0]
    filled = [footer for footer in footers if footer.rows]
    known: Sequence[tuple[Any, Any]] | None = extents(filled, column)
    if known is None:
        return {}
    told = [
        footer.newest if footer.newest is not None and footer.newest.first == high else Newest(high)
        for footer, (_, high) in zip(filled, known, strict=True)
    ]
    nothing = never(is_text=bool(envelope.ordering) and envelope.ordering[0].type is Primitive.STRING)
    newest = newest_of(told) or Newest(nothing)
    oldest = min((low for low, _ in known), default=nothing)
    return {"oldest": oldest, "newest": newest.first, "newest_then": newest.then}
