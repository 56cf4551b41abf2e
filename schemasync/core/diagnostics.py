"""The one table of diagnostics: stable codes that programs may rely on, with what each means and what to do.

A code is never reused for something else. ``SS1xx`` are about schema changes, ``SS2xx`` about tables and views in
the metastore, ``SS3xx`` about landed files, ``SS4xx`` about subjects and keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Severity(Enum):
    """How much a diagnostic weighs; ``ERROR`` means that something waits for a person."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a code means, and the usual way out."""

    code: str
    severity: Severity
    meaning: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding about one table: a code, and the sentence that names the place."""

    code: str
    severity: Severity
    message: str
    fix: str


_HOLD = "The view goes on under the old schema and nothing is lost; "

_ALL: Final = (
    Code(code="SS101", severity=Severity.INFO, meaning="A column was added.", fix=""),
    Code(
        code="SS102",
        severity=Severity.INFO,
        meaning="A NOT NULL column with a default was added: rows written before read that default, frozen.",
        fix="Set policies.add to null if older rows should read NULL.",
    ),
    Code(
        code="SS103",
        severity=Severity.WARNING,
        meaning="A NOT NULL column was added without a default: rows written before read NULL.",
        fix="Give the column a default at the source if NULL is wrong for older rows.",
    ),
    Code(
        code="SS104",
        severity=Severity.INFO,
        meaning="A column was dropped: gone from the view now, from the files with their next rewrite.",
        fix="Set policies.drop to keep or hold to decide otherwise.",
    ),
    Code(
        code="SS105",
        severity=Severity.WARNING,
        meaning="A dropped column came back: a new life, old values do not show.",
        fix="",
    ),
    Code(code="SS106", severity=Severity.INFO, meaning="A column was widened, every old value is kept.", fix=""),
    Code(code="SS107", severity=Severity.INFO, meaning="A column was renamed; its values are kept.", fix=""),
    Code(
        code="SS108",
        severity=Severity.WARNING,
        meaning="One column was dropped and one of the same type added in one version: this may be a rename.",
        fix="If it is, say so before applying: renames: {new: old}.",
    ),
    Code(code="SS109", severity=Severity.INFO, meaning="Columns were reordered; the view follows.", fix=""),
    Code(code="SS110", severity=Severity.INFO, meaning="Nullability, default, comment or symbols changed.", fix=""),
    Code(code="SS111", severity=Severity.INFO, meaning="A nested field was added; older rows read NULL there.", fix=""),
    Code(code="SS112", severity=Severity.INFO, meaning="A nested field was dropped.", fix=""),
    Code(
        code="SS120",
        severity=Severity.ERROR,
        meaning="A column got a type that may not hold every old value.",
        fix=_HOLD + "this version cannot migrate a retyped column yet: change the type back at the source, or drop "
        "the column and add it under the new type, which begins a new life.",
    ),
    Code(
        code="SS121",
        severity=Severity.ERROR,
        meaning="A column kept its type but its values mean something else (another connect.name or logical type).",
        fix=_HOLD + "set the source's precision or type mode back.",
    ),
    Code(
        code="SS122",
        severity=Severity.ERROR,
        meaning="The key columns changed: which rows are the same row would be decided anew.",
        fix=_HOLD + "restore the key, or set keys: in the configuration to the columns to go on with.",
    ),
    Code(
        code="SS123",
        severity=Severity.ERROR,
        meaning="Events are wrapped or ordered in another way than those before.",
        fix=_HOLD + "restore the converter's settings, or give the new events a topic of their own.",
    ),
    Code(
        code="SS124",
        severity=Severity.ERROR,
        meaning="A policy in the configuration says hold for this kind of change.",
        fix=_HOLD + "change the policy to let it through.",
    ),
    Code(
        code="SS201",
        severity=Severity.ERROR,
        meaning="A table or view of that name exists and was not made by schemasync.",
        fix="Choose another name (table:, names:), or take it over with adopt: true.",
    ),
    Code(
        code="SS202",
        severity=Severity.WARNING,
        meaning="The metastore's table lacks columns that it had: someone altered it by hand.",
        fix="apply adds them again.",
    ),
    Code(
        code="SS203",
        severity=Severity.WARNING,
        meaning="The view is missing or its text is not the one that this state needs.",
        fix="apply writes it again.",
    ),
    Code(
        code="SS204",
        severity=Severity.ERROR,
        meaning="A column of the metastore's table has another type than schemasync gave it.",
        fix="apply repairs the table's columns; data files are not touched.",
    ),
    Code(
        code="SS205",
        severity=Severity.INFO,
        meaning="The table has columns that are not schemasync's; they are left alone.",
        fix="",
    ),
    Code(
        code="SS206",
        severity=Severity.ERROR,
        meaning="The location holds the state of a table that the metastore no longer has.",
        fix="Restore the table in the metastore; or, to begin anew from the landed files, move base/, delta/ and "
        "_schemasync/ out of the location.",
    ),
    Code(
        code="SS207",
        severity=Severity.ERROR,
        meaning="A partition has other columns than its table. Hive reads by position: values would show in the wrong "
        "column.",
        fix="apply gives every partition the table's columns; data files are not touched.",
    ),
    Code(
        code="SS208",
        severity=Severity.WARNING,
        meaning="Spark's copy of the table's schema (spark.sql.sources.schema) is not what Hive has.",
        fix="apply writes it again from Hive's columns, names keep their case.",
    ),
    Code(
        code="SS209",
        severity=Severity.ERROR,
        meaning="The partitions are not those of the state in force: one is missing, points elsewhere or is unknown.",
        fix="apply registers, moves and unregisters partitions; data files are not touched.",
    ),
    Code(
        code="SS210",
        severity=Severity.WARNING,
        meaning="The view's columns or comments, as Hive or as Spark holds them, are not those that its text yields.",
        fix="apply writes the view again; what people wrote on it stays.",
    ),
    Code(
        code="SS211",
        severity=Severity.ERROR,
        meaning="The table is managed, or purges: DROP TABLE would delete its data.",
        fix="apply makes it external again and takes external.table.purge away.",
    ),
    Code(
        code="SS212",
        severity=Severity.WARNING,
        meaning="The metastore's location of the table is not the one where its data is.",
        fix="apply sets it again; no data moves.",
    ),
    Code(
        code="SS213",
        severity=Severity.ERROR,
        meaning="The table, or a partition, is not read as Parquet any more: its format or serde was changed.",
        fix="apply sets the formats again.",
    ),
    Code(
        code="SS214",
        severity=Severity.ERROR,
        meaning="A property under schemasync. was removed or edited.",
        fix="apply writes it again where its value follows from others; else the table is held: restore the property.",
    ),
    Code(
        code="SS215",
        severity=Severity.INFO,
        meaning="Someone wrote a comment on the view by hand; it is kept, also when the view is replaced.",
        fix="To get the registry's doc back, set the comment to the empty text and apply.",
    ),
    Code(
        code="SS216",
        severity=Severity.ERROR,
        meaning="A data file of ours (of the few that status looks at) is not what manifest and metastore say.",
        fix="Restore the file from a backup of the table's location.",
    ),
    Code(
        code="SS301",
        severity=Severity.ERROR,
        meaning="A landed file is corrupt or cannot be read.",
        fix="Restore the file or move it out of the increment directory; nothing of it was admitted.",
    ),
    Code(
        code="SS302",
        severity=Severity.ERROR,
        meaning="A landed file fits no version of the subject, or several with different meanings.",
        fix="Register the schema it was written with, or move the file away; it stays where it is.",
    ),
    Code(
        code="SS303",
        severity=Severity.ERROR,
        meaning="A landed file holds events that cannot be applied (unknown operation, truncate, null key).",
        fix="Look at the named file and row; nothing of it was admitted.",
    ),
    Code(
        code="SS304",
        severity=Severity.WARNING,
        meaning="Files of a newer schema wait until the hold is lifted.",
        fix="They stay where the sink put them.",
    ),
    Code(
        code="SS305",
        severity=Severity.INFO,
        meaning="A landed file is still being written; it is tried again later.",
        fix="",
    ),
    Code(
        code="SS306",
        severity=Severity.ERROR,
        meaning="A file that the table's manifest names is missing.",
        fix="Restore it from a backup of the table's location; sink files that it was made from may still exist.",
    ),
    Code(
        code="SS307",
        severity=Severity.WARNING,
        meaning="Parquet files below the increment directories match no hour of increments: and are left alone.",
        fix="Correct increments: if they should be admitted, or move them away.",
    ),
    Code(
        code="SS401",
        severity=Severity.WARNING,
        meaning="The subject has no key: the table is insert-only and the view shows every event.",
        fix="Set keys: if rows have an identity, or insert_only: true to say that this is meant.",
    ),
    Code(
        code="SS402",
        severity=Severity.ERROR,
        meaning="A key column is not among the row's columns.",
        fix="Correct keys: in the configuration, or the -key subject.",
    ),
    Code(
        code="SS403",
        severity=Severity.ERROR,
        meaning="Events carry nothing that says which of two is newer.",
        fix="Set sequence_by: to fields that grow with every change.",
    ),
    Code(
        code="SS404",
        severity=Severity.ERROR,
        meaning="The subject was deleted and made anew, or its version went backwards: another history.",
        fix=_HOLD + "give the new subject a table of its own, or restore the old versions.",
    ),
    Code(
        code="SS405",
        severity=Severity.WARNING,
        meaning="The subject is not in the registry (any more). Nothing is dropped because of that.",
        fix="Check the subject's name and this user's rights.",
    ),
    Code(
        code="SS406",
        severity=Severity.ERROR,
        meaning="The registry's schema cannot become a table.",
        fix="Look at the message; earlier versions go on being served.",
    ),
    Code(
        code="SS407",
        severity=Severity.ERROR,
        meaning="A key column has a type that rows cannot be told apart by (struct, array, map).",
        fix="Set keys: to columns of simple types.",
    ),
    Code(
        code="SS408",
        severity=Severity.ERROR,
        meaning="renames:, policies.rename or an old version changed after it was applied: columns swap identity.",
        fix=_HOLD + "undo that change. A rename can only be said before the version that brings it is applied.",
    ),
)

CODES: Final[dict[str, Code]] = {code.code: code for code in _ALL}
"""Every code, in order."""


def diagnose(code: str, message: str, *, fix: str = "") -> Diagnostic:
    """Make a diagnostic of a known code; ``fix`` replaces the table's general advice where more is known."""
    known = CODES[code]
    return Diagnostic(code=code, severity=known.severity, message=message, fix=fix or known.fix)
