"""What a run has just written, looked at before anyone else does; called by admission and compaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemasync.core.admission import WrittenFooter
from schemasync.core.changed_keys import ChangedKeys, may_be_named, named
from schemasync.core.in_place import misreads
from schemasync.core.keys import whole_number
from schemasync.core.manifest import NEVER, Segment, named_keys
from schemasync.core.ports import LandedFiles
from schemasync.core.types import Type
from schemasync.errors import DataError, StorageError


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
    footer = files.written(path, {ordering} if column is None else {ordering, column})
    if footer.columns != tuple(name for name, _ in declared):
        raise DataError("a file that was written has other columns than the table", where=path)
    if reasons := misreads(declared, footer.leaves):
        raise StorageError(
            "a file that was written would not be read as the table declares it",
            where=path,
            why="; ".join(reasons[:3]),
            fix="It was not published. Take settings of spark.sql.parquet from spark: conf: and run again.",
        )
    return footer


def extents(footers: Iterable[WrittenFooter], column: str) -> tuple[tuple[int, int], ...] | None:
    """Return the least and the largest value of a whole-number column by file; None where footers do not tell.

    Files without a row are left out.
    """
    found = [footer.extents[column] for footer in footers if footer.rows]
    known = tuple(extent for extent in found if extent is not None)
    return known if len(known) == len(found) else None


def key_range(footers: Iterable[WrittenFooter], keys: Sequence[tuple[str, Type]]) -> tuple[int, int] | None:
    """Return the lowest and the highest key; None where it is not one whole number, or no row."""
    column = whole_number(keys)
    known = None if column is None else extents(footers, column)
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def changed_keys(
    files: LandedFiles,
    segment: Segment,
    keys: Sequence[tuple[str, Type]],
    *,
    beside: Iterable[Segment],
    only_spark: bool,
) -> ChangedKeys | None:
    """Read the keys of a delta that was just written, as a view can name them with those of the deltas ``beside`` it.

    None where a row has no key, where the text would be too long, and where more than the keys is to be compared.
    ``only_spark``: nobody else reads the view.

    Raises:
        StorageError: a file cannot be read.
    """
    column, others = whole_number(keys), tuple(beside)
    possible = segment.ahead and named_keys(others) is not None
    if column is None or not possible or not may_be_named(segment.rows, segment.key_range, only_spark=only_spark):
        return None
    found = [key for file in segment.files for key in files.whole_numbers(file.path, column)]
    known = [key for key in found if key is not None]
    if len(known) < len(found):
        return None
    changed = named(known)
    return changed if named_keys((*others, segment.model_copy(update={"changed": changed}))) is not None else None


def moments(known: Sequence[tuple[int, int]] | None) -> tuple[int, int] | tuple[None, None]:
    """Return the least and the largest value of an ordering column in all files, as a segment holds them."""
    if known is None:
        return None, None
    return min((low for low, _ in known), default=NEVER), max((high for _, high in known), default=NEVER)
