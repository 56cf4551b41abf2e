"""What people wrote on a view of ours: it stays when the view is replaced.

A replaced view is a new one for the metastore, without the properties and comments of the old. So the statement that
replaces it says them again. What counts as a person's: properties that are neither ours nor an engine's, and comments
other than the ones that schemasync wrote under the version that the table has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from schemasync.core.names import comment_text
from schemasync.core.ports import HiveTable
from schemasync.core.shape import Shape

_ENGINES: Final = ("schemasync.", "spark.sql.", "view.")
_BOOKKEEPING: Final = frozenset(
    {
        "bucketing_version",
        "collation",
        "column_stats_accurate",
        "comment",
        "external",
        "is_managed_location",
        "last_modified_by",
        "last_modified_time",
        "location",
        "numfiles",
        "numrows",
        "owner",
        "presto_query_id",
        "presto_version",
        "presto_view",
        "provider",
        "rawdatasize",
        "totalsize",
        "transient_lastddltime",
        "trino_created_by",
        "trino_query_id",
        "trino_version",
    }
)
"""Properties (lower case) that engines write by themselves, or that Spark takes only by clauses of their own. By
``presto_view`` Trino tells a view whose text is its own JSON."""
_COMMENTS_OF_TRINO: Final = frozenset({"Presto View", "Trino View"})
"""What it says on every view that it makes: the comment that a person gave it stands in the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a new view takes over: foreign properties, comments by (new) column name, and the view's own comment."""

    properties: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""


NOTHING: Final = Kept()


def shows(shape: Shape) -> str:
    """Say what the view of a table shows."""
    return "the newest row per key" if shape.keys else "every event but deletes"


def view_comment(shape: Shape, table: str) -> str:
    """Return the comment that schemasync writes on the view of ``database.table``."""
    return f"{shows(shape)} of {table}"


def kept_of(view: HiveTable | None, *, table: str, current: Shape | None, desired: Shape) -> Kept:
    """Return what of a view over ``database.table`` is a person's, under the names that its columns have next.

    ``current`` is the shape that the view was written under, as far as the table's properties know: a run that was
    killed may have written it under ``desired`` already.
    """
    if view is None:
        return NOTHING
    before = current or desired
    ours = {"", view_comment(before, table), view_comment(desired, table)}
    said = view.properties.get("comment", "")
    return Kept(
        properties={k: v for k, v in view.properties.items() if _is_foreign(k)},
        comments=_comments(view, before, desired),
        comment="" if said in ours | _COMMENTS_OF_TRINO else said,
    )


def _is_foreign(key: str) -> bool:
    return not key.startswith(_ENGINES) and key.lower() not in _BOOKKEEPING


def _comments(view: HiveTable, before: Shape, desired: Shape) -> dict[str, str]:
    actual = {c.name.lower(): c.comment for c in view.columns}
    written = {c.life: c for c in before.columns}
    # What stands under a column's next name may be said of another column, which has that name still.
    lives = {c.name.lower(): c.life for c in before.columns}
    kept = {}
    for column in desired.columns:
        old = written.get(column.life, column)
        names = (one.name.lower() for one in (old, column))
        own = (actual.get(name, "") for name in names if lives.get(name, column.life) == column.life)
        said = next(filter(None, own), "")
        if said and said not in {comment_text(old.doc), comment_text(column.doc)}:
            kept[column.name] = said
    return kept
