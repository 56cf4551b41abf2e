"""The one table of diagnostics: stable codes that programs may rely on, with what each means and what to do.

A code is never reused for something else. ``SS1xx`` are about schema changes, ``SS2xx`` about tables and views in
the metastore, ``SS3xx`` about landed files, ``SS4xx`` about subjects and keys, ``SS5xx`` about views of others that
read a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from schemasync.errors import SchemaError, SchemasyncError, SettingError


class Severity(Enum):
    """How much a diagnostic weighs; ``ERROR``: it waits for a person, or queries may be wrong until then."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a code means, a message that it may come with, and the usual way out."""

    code: str
    severity: Severity
    meaning: str
    example: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding about one table: a code, and the sentence that names the place.

    ``first`` is what one about many files would say of the first alone.
    """

    code: str
    severity: Severity
    message: str
    fix: str
    first: str = ""


_HOLD = "The view goes on under the old schema and nothing is lost; "
_ANOTHER = (
    "another table: with a location: of its own. increments: lie below that, and nothing has landed there: let the "
    "sink write there, and copy the files there that it wrote so far"
)
ANOTHER_TABLE: Final = f"Give the subject {_ANOTHER}."
"""The way out of what a table cannot become: its rows have to be admitted anew."""
WITHOUT_VARIANT: Final = {
    "SS113": "Set policies.retype to hold to be asked first.",
    "SS120": f"{_HOLD}change the type, or the connector's mode of writing it, back.",
}
"""What to do about a retyped column that ``policies.retype: variant`` can keep nothing of."""
WITHOUT_MIGRATION: Final = f"{_HOLD}set the source's precision or type mode back. Or: {ANOTHER_TABLE}"
"""What to do about a column that means something else and that ``policies.semantic: migrate`` lets not through."""
UNFIT_BY_NOW: Final = (
    "In partition_by: a column that was renamed is called there by its new name; nothing else can be changed there. "
    f"Restore the column at the source, or give the subject {_ANOTHER}."
)
"""What to do about a partition that fitted when its table was made."""
TAKEN_BY_NOW: Final = (
    "Call the column otherwise at the source, without the alias {0}; what was written before that has no value in it. "
    f"Or call the partition otherwise, and give the subject {_ANOTHER}."
)
"""What to do where a column came that is called like a partition of a table that is there."""
KEY_FROM_NONE: Final = (
    f"{_HOLD}set insert_only: true to go on without a key, for rows of before cannot be told apart by one. Or give the "
    f"subject {_ANOTHER}."
)
KEY_TO_NONE: Final = (
    f"{_HOLD}restore the key, or set keys: in the configuration to its columns; where insert_only: says true, take "
    "that out."
)

_ALL: Final = (
    Code(
        code="SS101",
        severity=Severity.INFO,
        meaning="A column was added; or one that was dropped is shown again, as policies.drop says keep now.",
        example="column nickname was added",
        fix="",
    ),
    Code(
        code="SS102",
        severity=Severity.INFO,
        meaning="A NOT NULL column with a default was added: rows written before read that default, frozen.",
        example="column credits was added NOT NULL: older rows read its default 0",
        fix="Set policies.add to null before this is applied, if older rows should read NULL.",
    ),
    Code(
        code="SS103",
        severity=Severity.WARNING,
        meaning="A NOT NULL column was added without a default, or with one that is no value of its type: rows written "
        "before read NULL.",
        example="column email was added NOT NULL without a default: older rows read NULL",
        fix="Give the column a default of its type at the source if NULL is wrong for older rows.",
    ),
    Code(
        code="SS104",
        severity=Severity.INFO,
        meaning="A column was dropped: gone from the view now, from the files with their next rewrite.",
        example="column fax was dropped",
        fix="Set policies.drop to keep or hold to decide otherwise.",
    ),
    Code(
        code="SS105",
        severity=Severity.WARNING,
        meaning="A dropped column came back: a new life, old values do not show.",
        example="column fax was dropped earlier and came back in version 7",
        fix="",
    ),
    Code(
        code="SS106",
        severity=Severity.INFO,
        meaning="A column was widened, every old value is kept.",
        example="column credits: int to bigint, lossless",
        fix="",
    ),
    Code(
        code="SS107",
        severity=Severity.INFO,
        meaning="A column was renamed; its values are kept.",
        example="column name is now called full_name",
        fix="",
    ),
    Code(
        code="SS108",
        severity=Severity.WARNING,
        meaning="This may be a rename: of one type one column was dropped and one added in one version; or aliases "
        "pass names on from column to column, and some are still there: these no alias takes away.",
        example="name was dropped and full_name of the same type added: a rename looks like that",
        fix="If it is, say so before applying: renames: {new: old}.",
    ),
    Code(
        code="SS109",
        severity=Severity.INFO,
        meaning="Columns were reordered; the view follows.",
        example="columns now stand in the order id, email, name",
        fix="",
    ),
    Code(
        code="SS110",
        severity=Severity.INFO,
        meaning="Nullability, default, comment or symbols changed, or events tell more of themselves.",
        example="column state: symbols or nested details changed",
        fix="",
    ),
    Code(
        code="SS111",
        severity=Severity.INFO,
        meaning="A nested field was added; older rows read NULL there.",
        example="field address.zip was added",
        fix="",
    ),
    Code(
        code="SS112",
        severity=Severity.INFO,
        meaning="A nested field was dropped.",
        example="field address.fax was dropped",
        fix="",
    ),
    Code(
        code="SS113",
        severity=Severity.WARNING,
        meaning="A column was retyped and is migrated: the values that the table has were looked at, all of them fit. "
        "The view converts older rows; the next compaction rewrites them.",
        example="column price: string to decimal(10,2), every value that the table has fits",
        fix="Set policies.retype to hold to be asked first; or, before this is applied, to variant to keep the old "
        "column beside the new one.",
    ),
    Code(
        code="SS114",
        severity=Severity.WARNING,
        meaning="A column was retyped; policies.retype: variant keeps its old values in a column of their own.",
        example="column code became string; its values from before stay visible as code__v6",
        fix="",
    ),
    Code(
        code="SS115",
        severity=Severity.WARNING,
        meaning="A column's values are written in another way; those from before are kept as they are shown.",
        example="column paid: timestamp-millis to timestamp-micros: values from before are kept as they are shown",
        fix="",
    ),
    Code(
        code="SS116",
        severity=Severity.WARNING,
        meaning="The key columns changed: the table is folded under the old key, then goes on under the new one.",
        example="the key changed from (id) to (id, line): the base is rebuilt under it",
        fix="",
    ),
    Code(
        code="SS117",
        severity=Severity.WARNING,
        meaning="What a column shows of rows from before is beyond Hive's SQL: Hive, and mostly Trino, which reads "
        "Hive's views, cannot read the view while there are such rows.",
        example="column tags: of rows from before Hive's SQL cannot make array<string>",
        fix="Compact once it is applied where others than Spark read the view: it needs no conversion then.",
    ),
    Code(
        code="SS118",
        severity=Severity.WARNING,
        meaning="A NOT NULL date or time was added whose default is the beginning of 1970. Debezium says that also "
        "where the source's default is the time at hand: its older rows have that of the ALTER, which no event tells.",
        example="column created_at was added NOT NULL: older rows read its default 0, the beginning of 1970",
        fix="Where the source's default is now() or CURRENT_TIMESTAMP, set policies.add to null before this is "
        "applied: older rows read NULL then.",
    ),
    Code(
        code="SS120",
        severity=Severity.ERROR,
        meaning="A column got a type that its values cannot be converted to.",
        example="column born: date to int: no value can be converted",
        fix=_HOLD + "change the type, or the connector's mode of writing it, back, or set policies.retype to variant: "
        "the old column then stays visible beside the new one.",
    ),
    Code(
        code="SS121",
        severity=Severity.ERROR,
        meaning="A column kept its type but its values mean something else (another connect.name or logical type).",
        example="column paid: io.debezium.time.Date to io.debezium.time.Year: the same values mean something else",
        fix=_HOLD + "set the source's precision or type mode back; or, where the values are dates, times or texts, "
        "set policies.semantic to migrate.",
    ),
    Code(
        code="SS122",
        severity=Severity.ERROR,
        meaning="The key columns changed: which rows are the same row would be decided anew.",
        example="the key changed from (id) to (id, region)",
        fix=_HOLD + "restore the key, set keys: in the configuration to the columns to go on with, or let the base be "
        "rebuilt under the new key: schemasync release TABLE --rebuild.",
    ),
    Code(
        code="SS123",
        severity=Severity.ERROR,
        meaning="Events are wrapped or ordered in another way than those before.",
        example="events were wrapped as debezium and now are flat",
        fix=_HOLD + "restore the converter's settings, or what envelope: and sequence_by: said; or give the new events "
        "a topic of their own.",
    ),
    Code(
        code="SS124",
        severity=Severity.ERROR,
        meaning="A policy in the configuration says hold for this kind of change.",
        example="column fax was dropped, and policies.drop says hold",
        fix=_HOLD + "change the policy to let it through.",
    ),
    Code(
        code="SS125",
        severity=Severity.ERROR,
        meaning="Values of a retyped column do not fit its new type.",
        example="column price: 2 values do not fit decimal(10,2): 'free', 'n/a'",
        fix=_HOLD + "correct them at the source and let the events arrive, or change the type back. Rows that a newer "
        "event has replaced count until a compaction has folded them.",
    ),
    Code(
        code="SS126",
        severity=Severity.ERROR,
        meaning="Rows of the table cannot be told apart by its new key.",
        example="3 rows have no value in the new key (id, line)",
        fix=_HOLD + "give every row its own key at the source and let the events arrive, or restore the old key.",
    ),
    Code(
        code="SS127",
        severity=Severity.ERROR,
        meaning="A column got a third type before a compaction has rewritten its rows in the second; made of the first "
        "at once, their values would read otherwise.",
        example="column a: rows of version 1 still hold boolean; "
        "as string they would read otherwise than by way of int",
        fix=_HOLD + "compact: rows that are rewritten as the table has them now follow from there; then apply goes on.",
    ),
    Code(
        code="SS201",
        severity=Severity.ERROR,
        meaning="A table or view of that name exists and was not made by schemasync, or is that of another subject.",
        example="lake.student exists and is not schemasync's",
        fix="Choose another name (table:, names:), or take it over with adopt: true, if it is an external table or a "
        "view.",
    ),
    Code(
        code="SS202",
        severity=Severity.WARNING,
        meaning="The metastore's table lacks columns that it had: someone altered it by hand.",
        example="lake.student lacks nickname",
        fix="apply adds them again.",
    ),
    Code(
        code="SS203",
        severity=Severity.WARNING,
        meaning="The view is missing, or its text is not what the table's state and the configuration need: somebody "
        "replaced it, or the configuration was changed.",
        example="lake.student_view is missing, or its text is not what this configuration needs",
        fix="apply writes it again.",
    ),
    Code(
        code="SS204",
        severity=Severity.ERROR,
        meaning="A column of the metastore's table has another type than schemasync gave it.",
        example="lake.student.age is string, not int",
        fix="apply repairs the table's columns; data files are not touched.",
    ),
    Code(
        code="SS205",
        severity=Severity.INFO,
        meaning="The table has columns that are not schemasync's; they are left alone.",
        example="lake.student has remark, which schemasync did not add",
        fix="",
    ),
    Code(
        code="SS206",
        severity=Severity.ERROR,
        meaning="The location holds the state of a table that the metastore no longer has.",
        example="s3a://lake/student/_schemasync/generations has manifests, but lake.student is gone",
        fix="Where table:, database: or metastore: was changed, undo that: the table may be there under its old name. "
        "Or restore it in the metastore. Or begin anew: move base/, delta/ and _schemasync/ out of the location, and "
        "keep them. Only what still lies in the increment directories comes back: with on_fold: delete, the default, "
        "what was compacted is gone from there; with archive it lies below archive/.",
    ),
    Code(
        code="SS207",
        severity=Severity.ERROR,
        meaning="A partition has other columns than its table. Hive reads by position: values would show in the wrong "
        "column.",
        example="lake.student: partition delta_00000007 has a, id where the table has id, a",
        fix="apply gives every partition the table's columns; data files are not touched.",
    ),
    Code(
        code="SS208",
        severity=Severity.WARNING,
        meaning="Spark's copy of the table's schema (spark.sql.sources.schema) is not what Hive has.",
        example="lake.student: Spark's copy of the schema lacks email",
        fix="apply writes it again from Hive's columns, names keep their case.",
    ),
    Code(
        code="SS209",
        severity=Severity.ERROR,
        meaning="The partitions are not those of the state in force: one is missing, points elsewhere or is unknown.",
        example="lake.student: partition base_s00000000 points to file:/elsewhere",
        fix="apply registers, moves and unregisters partitions; data files are not touched.",
    ),
    Code(
        code="SS210",
        severity=Severity.WARNING,
        meaning="The view's columns or comments, as Hive or as Spark holds them, are not those that its text yields.",
        example="lake.student_view: Hive has other columns than its text yields",
        fix="apply writes the view again; what people wrote on it stays.",
    ),
    Code(
        code="SS211",
        severity=Severity.ERROR,
        meaning="The table is managed, or purges: DROP TABLE would delete its data.",
        example="lake.student is a managed table",
        fix="apply makes it external again and takes external.table.purge away.",
    ),
    Code(
        code="SS212",
        severity=Severity.WARNING,
        meaning="The metastore's location of the table is not the one where its data is.",
        example="lake.student: the metastore says file:/elsewhere",
        fix="apply sets it again; no data moves.",
    ),
    Code(
        code="SS213",
        severity=Severity.ERROR,
        meaning="The table, or a partition, is not read as Parquet any more: its format or serde was changed.",
        example="lake.student is read by another serde than that of Parquet",
        fix="apply sets the formats again.",
    ),
    Code(
        code="SS214",
        severity=Severity.ERROR,
        meaning="A property under schemasync. was removed or edited.",
        example="lake.student: the property schemasync.keys is missing",
        fix="apply writes it again where its value follows from others; else the table is held: restore the property.",
    ),
    Code(
        code="SS215",
        severity=Severity.INFO,
        meaning="Someone wrote a comment on the view by hand; it is kept, also when the view is replaced.",
        example="lake.student_view: the comment of email was written by hand",
        fix="To get the registry's doc back, set the comment to the empty text and apply.",
    ),
    Code(
        code="SS216",
        severity=Severity.ERROR,
        meaning="A data file of ours (of the few that status looks at) is not what manifest and metastore say.",
        example="delta/g=000007/part-0.parquet has a as binary, the table as int",
        fix="Restore the file from a backup of the table's location.",
    ),
    Code(
        code="SS217",
        severity=Severity.ERROR,
        meaning="The table could not be looked at, so nothing is known of it, and nothing is done with it.",
        example="file:/lake/student/incremental: the directory cannot be listed: Permission denied",
        fix="Mend what the message names; other tables go on.",
    ),
    Code(
        code="SS218",
        severity=Severity.WARNING,
        meaning="The table is held, and since when, or which release lifts that, could not be found out.",
        example="SELECT COUNT(*): Spark refused the statement or failed in it: part-0.parquet is not a Parquet file",
        fix="Mend what the message names, and ask for the status again.",
    ),
    Code(
        code="SS219",
        severity=Severity.ERROR,
        meaning="location: is not where the table's data is: nothing of it is there, or another table's data.",
        example="lake.student has its data in s3a://lake/student, and nothing of it is in s3a://lake/pupil, where "
        "location: says",
        fix="Set location: back. Or move all that is in the table's directory to the new one, and leave nothing else "
        "there: apply goes on in it.",
    ),
    Code(
        code="SS301",
        severity=Severity.ERROR,
        meaning="A landed file is corrupt or cannot be read.",
        example="lake/student/incremental/.../part-0.parquet: Parquet magic bytes not found in footer",
        fix="Restore the file, or move it out of the increment directory. Until then nothing that lands for the table "
        "is admitted.",
    ),
    Code(
        code="SS302",
        severity=Severity.ERROR,
        meaning="A landed file fits no version of the subject, or several with different meanings, or one whose values "
        "or order cannot be the table's.",
        example="lake/student/incremental/.../part-0.parquet: its columns fit no version of the subject",
        fix="Register the schema it was written with, or move the file away; it stays where it is. Where several fit, "
        "let the sink write the Avro schema into its files' footers: that tells which.",
    ),
    Code(
        code="SS303",
        severity=Severity.ERROR,
        meaning="A landed file holds events that cannot be applied (unknown operation, truncate, null key).",
        example="lake/student/incremental/.../part-0.parquet: an event has the operation 't': row 17",
        fix="Look at the named file and row, and replace the file, or move it out of the increment directory. Until "
        "then nothing that lands for the table is admitted.",
    ),
    Code(
        code="SS304",
        severity=Severity.WARNING,
        meaning="Files of a schema that the table does not have wait: of a newer one until the next run, or "
        "until the hold is lifted; of another compatibility group until the table follows it.",
        example="lake/student/incremental/.../part-0.parquet was written under version 4",
        fix="They stay where the sink put them.",
    ),
    Code(
        code="SS305",
        severity=Severity.INFO,
        meaning="A landed file is still being written; it is tried again later. That is one that is empty, or has no "
        "end yet and changed less than a minute ago; after that, one without an end counts as broken off (SS301). Also "
        "one that changed while it was looked at or read.",
        example="lake/student/incremental/.../part-0.parquet: it vanished while it was looked at",
        fix="",
    ),
    Code(
        code="SS306",
        severity=Severity.ERROR,
        meaning="A file that the table's manifest names is missing.",
        example="s3a://lake/student/base/g=000007/3f9c01ab/s=00000000/part-0.parquet: there is no such file",
        fix="Restore it from a backup of the table's location; sink files that it was made from may still exist.",
    ),
    Code(
        code="SS307",
        severity=Severity.WARNING,
        meaning="Files below the table's location are left alone: Parquet files that match no hour of increments:, and "
        "whatever lies in an hour's directory and is not called *.parquet, but for hidden and unfinished files. Of "
        "those outside of the directory in which all hours lie only a plan tells.",
        example="3 Parquet files match no hour of incremental/increment_{yyyyMMddHH}, first incremental/a.parquet",
        fix="Correct increments: if they should be admitted, or move them away.",
    ),
    Code(
        code="SS308",
        severity=Severity.INFO,
        meaning="Dates or timestamps outside of the years 1 to 9999 (infinity, BC) show as the nearer end of them.",
        example="column paid: 3 values beyond the years 1 to 9999 show as the nearer end, first 9223372036854775807",
        fix="docs/types.md says how each shows; filter on the end to find open ones.",
    ),
    Code(
        code="SS309",
        severity=Severity.WARNING,
        meaning="Values that their column's type cannot hold show as NULL; their files are archived, not deleted.",
        example="column price: 1 value beyond decimal(38,2) shows as NULL",
        fix="Look at the named file; change the column's type at the source so that it holds them.",
    ),
    Code(
        code="SS310",
        severity=Severity.WARNING,
        meaning="Rows are older than what the table has of their keys by the log position, and newer by the clock. "
        "They do not count; their files are archived, not deleted.",
        example="3 rows are older by source.lsn than what is there of their keys, and newer by ts_ms",
        fix="Where a connector sent events again nothing is lost. Where the source's log began anew (another server, a "
        "new cluster) no change of a row that the table has shows from now on: make the table anew. What an "
        "incremental snapshot of PostgreSQL reads is older than every change where source.lsn comes first: "
        "take a blocking one.",
    ),
    Code(
        code="SS320",
        severity=Severity.WARNING,
        meaning="Rows show a placeholder: the source did not send a value (PostgreSQL TOAST), and no event has it.",
        example="lake.student.note: no admitted event has the value of some rows; they show the placeholder",
        fix="It goes away with the next event that has the value: a later update of it, an older event that lands "
        "late, a new snapshot (a blocking one where source.lsn comes first in the table's order). "
        "REPLICA IDENTITY FULL at the source keeps it from coming back.",
    ),
    Code(
        code="SS401",
        severity=Severity.WARNING,
        meaning="The subject has no key: the table is insert-only and the view shows every event but deletes.",
        example="shop.log-value has no key: lake.shop_log is insert-only",
        fix="If rows have an identity, set keys: before the table is made: one that was made without a key gets none "
        "later (SS122). insert_only: true says that this is meant.",
    ),
    Code(
        code="SS402",
        severity=Severity.ERROR,
        meaning="A key column is not among the row's columns, or the key of a table that is yet to be made names none.",
        example="key column uuid is not in the value (which has id, name)",
        fix="Correct keys: in the configuration, or the -key subject.",
    ),
    Code(
        code="SS403",
        severity=Severity.ERROR,
        meaning="Events, or some kinds of them, carry nothing that says which of two is newer.",
        example="events of shop.student-value have no known log position, clock or offset",
        fix="Set sequence_by: to fields that grow with every change.",
    ),
    Code(
        code="SS404",
        severity=Severity.ERROR,
        meaning="The subject was deleted and made anew, or its version went backwards: another history.",
        example="shop.student-value was at version 6, and the registry's newest is 2",
        fix=_HOLD + "give the new subject a table of its own, or restore the old versions.",
    ),
    Code(
        code="SS405",
        severity=Severity.ERROR,
        meaning="The subject that an entry names is not in the registry (any more). Nothing is dropped for that.",
        example="the registry has no versions of shop.student-value",
        fix="Check the subject's name and this user's rights. A table that is there stays as it is.",
    ),
    Code(
        code="SS406",
        severity=Severity.ERROR,
        meaning="The registry's schema cannot become a table, or not with what envelope: or sequence_by: say.",
        example="shop.student-value version 4, field parent: recursive type shop.Person",
        fix="Look at the message; a table that is there goes on under the version that it has.",
    ),
    Code(
        code="SS407",
        severity=Severity.ERROR,
        meaning="A key column has a type that rows cannot be told apart by (struct, array, map).",
        example="key column address is a struct, array or map",
        fix="Set keys: to columns of simple types.",
    ),
    Code(
        code="SS408",
        severity=Severity.ERROR,
        meaning="renames:, policies.rename, policies.retype (to or from variant), envelope: or an old version changed "
        "after it was applied: columns swap identity.",
        example="lake.student: its columns would be told apart otherwise than when they were applied",
        fix=_HOLD + "undo that change. A rename can only be said before the version that brings it is applied. Where "
        "nothing was changed but schemasync itself, take out the entry of renames: that had no effect so far (names "
        "that are passed on, or an alias contradicts).",
    ),
    Code(
        code="SS409",
        severity=Severity.ERROR,
        meaning="The subject's versions fork into compatibility groups, and the newest is not of the table's group.",
        example="shop.student-value: version 7 belongs to compatibility group '1', the table follows "
        "compatibility group '2'",
        fix=_HOLD + "set compatibility_group: to the one that the table should follow.",
    ),
    Code(
        code="SS410",
        severity=Severity.ERROR,
        meaning="Two columns, or two fields of one struct, differ only in case: to the engines they are one name.",
        example="fields State and state differ only in case",
        fix="Rename one of them at the source; a table that is there goes on under the version that it has.",
    ),
    Code(
        code="SS411",
        severity=Severity.ERROR,
        meaning="A column or field has a name that Avro does not take, or that no metastore can keep.",
        example="'a-b' is no field name",
        fix="Rename it at the source; a table that is there goes on under the version that it has.",
    ),
    Code(
        code="SS412",
        severity=Severity.WARNING,
        meaning="The row has a column called like one that view.metadata shows: the row's keeps its name, ours gets a "
        "suffix.",
        example="lake.student_view shows our __op as __op__2",
        fix="Read ours under the name in the message.",
    ),
    Code(
        code="SS413",
        severity=Severity.WARNING,
        meaning="A column's name is longer than 128 characters: metastores made before Hive 2 do not store it.",
        example="lake.student: the name a_very_long_name... has 131 characters",
        fix="Shorten it at the source if yours is one of them; others store 767 characters.",
    ),
    Code(
        code="SS414",
        severity=Severity.WARNING,
        meaning="A column's type is written in more than 4,000 characters: some metastores store no more.",
        example="lake.student: the type of address is a text of 5210 characters",
        fix="If yours refuses the table, make TYPE_NAME of its COLUMNS_V2 longer, or flatten the struct at the source. "
        "The embedded one stores 32,672 characters at most.",
    ),
    Code(
        code="SS415",
        severity=Severity.WARNING,
        meaning="A field inside a struct has a name with letters beyond ASCII: Spark stores such a view so that only "
        "Spark can read it.",
        example="lake.student: a field inside column address has letters beyond ASCII in its name",
        fix="Rename the field at the source if Hive or Trino should read the view; the table is readable by all.",
    ),
    Code(
        code="SS416",
        severity=Severity.ERROR,
        meaning="A partition of partition_by: does not fit the row: no such column, another type, a taken name.",
        example="lake.student, partition create_year: there is no column create_date (but id, name)",
        fix="Correct partition_by:.",
    ),
    Code(
        code="SS417",
        severity=Severity.ERROR,
        meaning="partition_by: is not what the table was created with: rows that are written already lie elsewhere.",
        example="lake.student was made with the partitions birth_year: year(born), and partition_by: now says "
        "birth_month: month(born)",
        fix=f"Undo that change, or give the subject {_ANOTHER}.",
    ),
    Code(
        code="SS418",
        severity=Severity.WARNING,
        meaning="A field that orders events is text, which is compared as text, byte by byte: a number in it with "
        "fewer digits may count as newer than one with more.",
        example="lake.student: revision, which orders events, is compared as text, byte by byte: '10' is before '9'",
        fix="Order by a number, a date or a timestamp (sequence_by:); or see to it that all texts are of one "
        "length, as dates are.",
    ),
    Code(
        code="SS419",
        severity=Severity.WARNING,
        meaning="The key has a field by which Debezium's topic routing (ByLogicalTableRouter) tells several tables "
        "apart; the rows lack it, so rows of different tables that have the same key otherwise are taken for one row.",
        example="student-key has __dbz__physicalTableIdentifier, which rows lack: equal keys of its tables are one row",
        fix="Set keys: to columns that tell rows of all these tables apart; to those of the key if they never repeat.",
    ),
    Code(
        code="SS420",
        severity=Severity.WARNING,
        meaning="Events list the names and the values of their row's columns: what these are is not in the schema, so "
        "the table shows such lists.",
        example="shop.student-value: the columns of its rows are in columnNames and columnValues",
        fix="Unwrap the events before they are written: a field for each column.",
    ),
    Code(
        code="SS421",
        severity=Severity.WARNING,
        meaning="A table's subject is gone from the registry, and no entry names it exactly: nothing is planned for "
        "the table, and what lands is not admitted. Nothing is dropped because of that.",
        example="lake.student is of shop.student-value, which the registry does not have: nothing is done for it",
        fix="Check this user's rights at the registry. If the subject is gone for good, the view goes on answering: "
        "drop table and view where nobody needs them.",
    ),
    Code(
        code="SS422",
        severity=Severity.WARNING,
        meaning="Unwrapped events have no field __deleted: Debezium drops deletes then, or writes them without a row, "
        "which no file holds. Rows that are deleted at the source stay.",
        example="events of shop.student-value have no __deleted: rows that are deleted at the source stay",
        fix="Let ExtractNewRecordState keep deletes (delete.tombstone.handling.mode: rewrite; older versions call it "
        "delete.handling.mode); the table follows. Those before it are not made up for. Where another transformation "
        "writes d to __op, nothing is to be done.",
    ),
    Code(
        code="SS423",
        severity=Severity.WARNING,
        meaning="Events are ordered by a column of the row, or by what may be one: ts_ms, where nothing tells it from "
        "Debezium's. Its deletes have in a column what that held last, nothing, or zero (PostgreSQL's REPLICA IDENTITY "
        "DEFAULT): a delete may count as older than the row, which then stays.",
        example="events of shop.student-value are ordered by updated_at of the row: what deletes have there may be "
        "older, or nothing",
        fix="Order by a field that is written for each event (sequence_by:): one of Debezium's (add.fields), the Kafka "
        "offset. Where deletes come with a newer value in it, as they do in Debezium's ts_ms, nothing is to be done.",
    ),
    Code(
        code="SS424",
        severity=Severity.WARNING,
        meaning="A column of keys: is not in the source's key. PostgreSQL's deletes have the source's key alone unless "
        "REPLICA IDENTITY is FULL, and zeros, empty texts or nothing elsewhere: the rows that they are about stay. "
        "Only plan and status ask the registry for the -key subject of a table with keys:, and tell.",
        example="lake.student: deletes may lack sku, which shop.student-key has not",
        fix="Set REPLICA IDENTITY FULL for the table at the source, or keys: to columns of the source's key. Rows that "
        "were deleted before that stay. Of a source whose deletes are whole rows nothing is to be done.",
    ),
    Code(
        code="SS501",
        severity=Severity.ERROR,
        meaning="A view of somebody else uses a column that goes away, or the dedup view by a name that goes away: its "
        "queries fail from then on.",
        example="lake.report uses fax of lake.student_view, which goes away",
        fix="Take the column out of that view first; or keep the column with policies.drop: keep.",
    ),
    Code(
        code="SS502",
        severity=Severity.WARNING,
        meaning="A view of somebody else uses a column that gets another type or meaning.",
        example="lake.report uses credits of lake.student_view, which changes from int to bigint",
        fix="Look at what it does with the column, and create the view anew: engines keep the types of its columns, "
        "and Trino refuses a view whose columns got others.",
    ),
    Code(
        code="SS503",
        severity=Severity.WARNING,
        meaning="A view of somebody else reads a column of the table itself that newer rows do not fill.",
        example="lake.report uses fax of lake.student, which newer rows leave NULL",
        fix="Let it read the dedup view, which knows where each row's values stand.",
    ),
    Code(
        code="SS504",
        severity=Severity.WARNING,
        meaning="A view of somebody else may read the table: its text, or the list of views, cannot be understood.",
        example="lake.report may read lake.student_view, and cannot be understood: Invalid expression (line 3)",
        fix="Look at that view yourself.",
    ),
    Code(
        code="SS505",
        severity=Severity.ERROR,
        meaning="A view of Trino's has all columns by a star, and one comes, moves or gets another type: its queries "
        "fail from then on, until it is made anew.",
        example="lake.report takes by a star nickname of lake.student_view, which is new there",
        fix="Create that view anew once this is applied; or name its columns in it, before.",
    ),
)

CODES: Final[dict[str, Code]] = {code.code: code for code in _ALL}
"""Every code, in order."""

FILE_ERRORS: Final = frozenset(c.code for c in _ALL if c.code.startswith("SS3") and c.severity is Severity.ERROR)
"""Codes of landed files and data files that a person must look at; what they say of one begins with the file."""


def diagnose(code: str, message: str, *, fix: str = "", first: str = "") -> Diagnostic:
    """Make a diagnostic of a known code; ``fix`` replaces the table's general advice where more is known."""
    known = CODES[code]
    return Diagnostic(code=code, severity=known.severity, message=message, fix=fix or known.fix, first=first)


def refused(error: SchemaError) -> Diagnostic:
    """Return what to tell of a schema that cannot become a table; where a setting is wrong, how to correct that."""
    if isinstance(error, SettingError):
        return diagnose(error.code, error.said, fix=error.fix)
    return diagnose(error.code, str(error))


def damaged(error: SchemasyncError) -> Diagnostic:
    """Return what to tell of a file of ours that is missing, changed, or cannot be read: the error knows what helps."""
    return diagnose("SS306", error.said, fix=error.fix)


def names_held_file(diagnostics: Iterable[Diagnostic]) -> bool:
    """Tell whether one of them is about a landed file or a data file that waits for a person."""
    return any(d.code in FILE_ERRORS for d in diagnostics)
