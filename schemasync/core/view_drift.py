"""Where the view is no longer as schemasync left it: its text, its columns as Hive and Spark hold them, its comments.

Pure. Planning asks whether the view must be replaced and why, and names what is not as it was left; what people wrote
on it (`schemasync.core.kept`) is named and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from schemasync.core import ddl, spark_schema
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.drift import same_type
from schemasync.core.kept import Kept
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import HiveTable
from schemasync.core.properties import SUBJECT
from schemasync.core.shape import Shape
from schemasync.core.spark_schema import SparkField
from schemasync.core.types import Type


def view_reasons(view: HiveTable | None, target: TableTarget, shape: Shape, body: str, kept: Kept) -> tuple[str, ...]:
    """Say why a view must be replaced so that it is the one of this shape, empty where it is."""
    if view is None:
        return ("the view does not exist yet",)
    if not same_text(view.query, body):
        return ("its columns or the versions behind them changed",)
    if view.properties.get(SUBJECT) != target.subject:
        return (f"{SUBJECT} is to say whose it is",)
    shown = ddl.shown_columns(target, shape, kept)
    fields = spark_schema.read_fields(view.properties)
    if stale := _stale_columns(view, fields, shown):
        return (f"its columns are stale: {stale}",)
    actual = {c.name.lower(): c.comment for c in view.columns}
    spark = {f.name.lower(): f.comment for f in fields or ()}
    wanted = {name.lower(): comment for name, _, comment in shown}
    if any(actual[name] != comment or spark[name] != comment for name, comment in wanted.items()):
        return ("its comments changed",)
    return ()


def as_shown(target: TableTarget, shape: Shape, view: HiveTable | None) -> TableTarget:
    """Return the table with ``view.metadata`` as its view has it: to show another is a step of a plan.

    Who only has the view follow the state in force leaves its columns as they are.
    """
    other = replace(target, metadata=not target.metadata)
    names = [] if view is None else [c.name.lower() for c in view.columns]
    return other if names == [name.lower() for name, _, _ in ddl.shown_columns(other, shape)] else target


def _stale_columns(view: HiveTable, fields: Sequence[SparkField] | None, shown: Sequence[tuple[str, Type, str]]) -> str:
    """Say how a view's columns, as Hive or as Spark (``fields``) holds them, differ from what its text yields."""
    if [c.name.lower() for c in view.columns] != [name.lower() for name, _, _ in shown]:
        return f"Hive has {', '.join(c.name for c in view.columns)}"
    if fields is None:
        return "Spark's copy of them is missing, or parts of it are"
    if [f.name for f in fields] != [name for name, _, _ in shown]:
        return f"Spark has {', '.join(f.name for f in fields)}"
    for column, spark, (name, type_, _) in zip(view.columns, fields, shown, strict=True):
        # Of a type that is none of Hive's (letters beyond ASCII) only Spark's copy tells; the metastore's is empty.
        told = not column.type or same_type(column.type, ddl.hive_type(type_))
        if not spark_schema.holds(spark, type_) or not told:
            return f"{name} is {column.type} in Hive and {spark.type} in Spark"
    return ""


def same_text(actual: str, wanted: str) -> bool:
    """Compare view texts; engines may trim what they store."""
    return actual.strip() == wanted.strip()


def view_drift(
    view: HiveTable | None, target: TableTarget, *, left: tuple[str, ...], reasons: Sequence[str], kept: Kept
) -> Iterator[Diagnostic]:
    """Name what of a view is not as it was left: ``left`` are the texts that schemasync may have left.

    ``reasons`` are those of `view_reasons` for the shape that the table has.
    """
    name = f"{target.database}.{target.view}"
    if view is None or not any(same_text(view.query, text) for text in left):
        yield diagnose("SS203", f"{name} is missing, or its text is not what this configuration needs")
        return
    if view.properties.get(SUBJECT) != target.subject:
        yield diagnose("SS214", f"{name}: {SUBJECT} is {view.properties.get(SUBJECT)!r}, not {target.subject!r}")
    elif reasons:
        yield diagnose("SS210", f"{name}: {'; '.join(reasons)}")
    for column, comment in kept.comments.items():
        yield diagnose("SS215", f"{name}.{column} says {comment!r}")
    if kept.comment:
        yield diagnose("SS215", f"{name} says {kept.comment!r}")
