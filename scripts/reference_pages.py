"""Write the reference pages in docs/ from the code that they describe; with ``--check`` only tell which are stale.

Run by `scripts/docs`. Keys, defaults, codes and types come from the package, so a page can be stale but never of another opinion. What a key
means is said here: `MEANINGS` must name every key of the configuration and no other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from schemasync.core import config
from schemasync.core.beyond import EXAMPLES
from schemasync.core.conversion import converts, keeps_all, notation
from schemasync.core.diagnostics import CODES, Severity
from schemasync.core.encoding import Meaning
from schemasync.core.in_place import FORMS, forms_of
from schemasync.core.mapping import DEFAULT_EXCLUDES
from schemasync.core.names import Dialect
from schemasync.core.promotion import widens
from schemasync.core.schema import EnvelopeKind
from schemasync.core.semantics import LEAF_TYPES, SEMANTICS, leaf_of
from schemasync.core.type_strings import print_type
from schemasync.core.types import Decimal, Primitive

TOP: Final = Path(__file__).resolve().parent.parent
PAGES: Final = TOP / "docs"
RECORDS: Final = TOP / "tests" / "data" / "in_place"
"""What tests/io/test_in_place_reads.py measured, one file for each version of an engine."""

GENERATED: Final = (
    "<!-- Written by scripts/docs from the code; change that, or scripts/reference_pages.py, and run it. -->"
)

MEANINGS: Final[Mapping[str, str]] = {
    "registry.url": "Where the schemas are: `http(s)://HOST[:PORT][/path]` (several with commas: the next is asked when one does not answer), or `file:DIR` with `SUBJECT/VERSION.avsc` files (`SUBJECT.avsc` is version 1) or `SUBJECT/VERSION.json`, a registry's answer to `GET /subjects/SUBJECT/versions/VERSION`.",
    "registry.auth.basic.username": "HTTP basic authentication.",
    "registry.auth.basic.password": "Its password; write `${NAME}` to take it from the environment.",
    "registry.auth.bearer": "A bearer token, instead of basic. An empty one is refused.",
    "registry.auth.oauth.token_url": "OAuth2 client credentials, instead of basic: where tokens come from. One is asked for again shortly before it expires, and where the registry refuses it.",
    "registry.auth.oauth.client_id": "The client.",
    "registry.auth.oauth.client_secret": "Its secret, sent by HTTP basic authentication to `token_url` alone.",
    "registry.auth.oauth.scope": "The scope to ask for.",
    "registry.auth.oauth.ca": "PEM file of the certificate authority that `token_url` is checked against; without it those of the system.",
    "registry.auth.mtls.cert": "PEM file of a client certificate.",
    "registry.auth.mtls.key": "PEM file of its key.",
    "registry.headers": "Headers that go with each request, such as `target-sr-cluster` and `Confluent-Identity-Pool-Id`, which Confluent Cloud asks for beside `oauth`. `Authorization` is refused: `auth` says it.",
    "registry.ca": "PEM file of the certificate authority that the registry is checked against; without it those of the system. Checking is never off.",
    "registry.timeout": "How long one request may take.",
    "registry.retries": "How often a request is repeated after no answer, 408, 429 or 5xx (but for 501 and 505), with growing pauses (`Retry-After` is respected).",
    "metastore.kind": "`embedded`: Derby in `dir`, one process at a time. `thrift`: a Hive metastore service.",
    "metastore.uri": "`thrift://HOST:PORT` (several with commas), for `kind: thrift`; beside `kind: embedded` nothing reads it, and commands say so. A database that is missing is made in this metastore's own warehouse. One that hangs is given up after Hive's own ten minutes a call, or what `spark.hadoop.hive.metastore.client.socket.timeout` says under `spark: {conf: ...}`.",
    "metastore.dir": "Directory of the embedded metastore, of Spark's log, and of an unpacked Java.",
    "spark.master": "Spark's master.",
    "spark.tables_at_once": "How many tables `apply`, `compact` and `watch` work on side by side; 1: one after the other. `watch` keeps one of them for new schemas and files while it compacts. They share Spark's cores fairly, and each needs its own memory in this process (`arrow_limit`).",
    "spark.conf": "Any Spark settings, such as those of the storage. They win over ours, but `spark.sql.session.timeZone` "
    "is refused unless it is UTC, and so is `spark.sql.parser.escapedStringLiterals: true`. Never shown, and those whose names tell of a secret are no arguments of Spark's JVM "
    "either: what it fetches when it starts (`spark.jars: s3a://...`) finds keys in the environment or a credential provider.",
    "defaults.database": "Database of the tables.",
    "defaults.location": "Root of a table; `{topic}`, `{table}` and `{database}` are filled in. Every sign of a path stands for itself (`%20` is no blank).",
    "defaults.increments": "The sink's directory of one hour, below `location`; `{yyyy}`, `{MM}`, `{dd}`, `{HH}` or several of them at once are filled in. Without `{HH}` it is that of a day.",
    "defaults.policies.add": "A column was added. `evolve`: older rows read NULL, or its default where it is NOT NULL. `null`: always NULL.",
    "defaults.policies.drop": "A column was dropped. `drop`: gone from the view at once. `keep`: it stays in the view; new rows read NULL.",
    "defaults.policies.widen": "A column was widened without loss.",
    "defaults.policies.retype": "A column got a type that may lose values: convert them where all fit, keep the old column beside it, or ask.",
    "defaults.policies.rename": "`alias`: an Avro alias is a rename. `drop_add`: it is not, only `renames` are.",
    "defaults.policies.semantic": "The same Avro type means something else (another `connect.name`).",
    "defaults.policies.key": "The key columns changed.",
    "defaults.compaction.every": "How often `watch` compacts a table that has something to fold.",
    "defaults.compaction.tombstone_retention": "How long a delete is remembered, counted from when it was admitted; events that are later than that may bring a row back.",
    "defaults.compaction.reader_grace": "How long superseded partitions stay registered for queries that are running. A plan of the view that is kept for longer (a DataFrame, what Trino caches of the metastore) shows fewer rows then, without an error.",
    "defaults.compaction.vacuum_retention": "How long superseded directories stay on disk after `reader_grace`.",
    "defaults.compaction.on_fold": "What becomes of the sink's files once a compaction took them in, folded or merged beside the base, and `reader_grace` is over: `delete`, `archive` (moved below `archive/`), or `keep`.",
    "defaults.compaction.arrow_limit": "Largest job that one process does by itself. Default: 256MB; none with `local[*]`. Above it Spark does the work.",
    "defaults.compaction.shard_size": "About how large a shard of the base is: what a change makes a compaction rewrite.",
    "defaults.compaction.memory": "How much the merge of one shard, or an admission in one process, may hold of rows, however much there is of them.",
    "defaults.compaction.kernel": "What merges shards: Arrow (`arrow`), or Spark's SQL (`spark`), which is slower and asks for nothing but Spark: files that are not on local disks pass through its JVM.",
    "defaults.names.view": "Name of the dedup view. Where it is changed, `apply` drops the view under its old name, which goes on until then.",
    "defaults.names.base": "Name of a compaction's table with the columns of the base.",
    "defaults.names.incremental": "Name of a compaction's table over one hour of the sink's files; `{hour}` stands in it once.",
    "defaults.names.compactor": "Name of a compaction's table over the new base.",
    "defaults.names.history": "Name of the table that says which version brought, changed and retired each column, and when. Where it is changed, `apply` drops the table under its old name, which goes on until then.",
    "defaults.view.metadata": "Let the view show `__op`, `__ts_ms` and `__segment`, too.",
    "defaults.view.readers": "Choose `any` if Hive or Trino read the views; Trino needs `hive.timestamp-precision=MICROSECONDS`. `spark` is faster while changes wait, but only Spark can read them.",
    "tables[].subject": "A subject, or a Python regular expression that matches whole subjects. An exact subject beats any expression, the first expression that matches beats later ones. Without any entry every `-value` subject is taken. An expression that can match `-value` subjects takes these alone; others (RecordNameStrategy, TopicRecordNameStrategy) are taken by one that cannot, such as `shop\\.public\\.(?P<name>\\w+)\\.Envelope`. There the record of the key has a subject of its own (Debezium's `shop.public.student.Key`), which an expression for all records takes, too, unless `exclude` names it; and nothing says which key belongs to a value, or which topic, so set `keys` and `location`. `-key` subjects are never taken.",
    "tables[].table": "Name of the table; `{topic}` and the expression's named groups are filled in. Default: the topic, made an identifier.",
    "tables[].exclude": "Subjects or topics, or expressions for them, that an expression does not take.",
    "tables[].keys": "Key columns. Default: the fields of the `-key` subject. Where they are others than the source's own key, an update of them is a delete of the old key and a create of the new one if the event has the whole row before it (Debezium's `before` from MySQL, or with REPLICA IDENTITY FULL); flat and unwrapped events have none. One that makes a key column null is refused (SS303). A delete must have the values of all of them: PostgreSQL's has those of columns that are not in the source's key under REPLICA IDENTITY FULL only, and the row stays without (`plan` and `status` tell, SS424).",
    "tables[].sequence_by": "Fields of the event (dotted paths, in any case) that say which of two events of a key is newer. Deletes must have them, too: fields of the row that come before a position, clock or offset are not taken for a new table of wrapped events (SS403), and else warned of (SS423). Versions from before a field read NULL there, the oldest. Default: by envelope.",
    "tables[].partition_by": "User partitions: name to expression, such as `year(created)`; the view shows them, and queries prune by them. Chosen once, when the table is created. [Which expressions](partitions.md).",
    "tables[].insert_only": "Rows have no identity: the view shows every event but deletes. `keys` beside it are not read.",
    "tables[].renames": "`{new: old}`: one column dropped and another added were a rename. Leave it there once it was applied: without it the table is held (SS408), as with one that had no effect when its version was applied. Columns that no version has mean nothing; a name that goes on counts where other entries say where it goes and comes from (`{price: new_price, old_price: price}`); names that are only swapped, where aliases say the same.",
    "tables[].toast": "What becomes of the placeholder for a value that the source did not send (PostgreSQL TOAST): `carry` shows what the row held before, `placeholder` leaves it as it is, `null` makes it NULL. It decides about files that are admitted from then on. [How it works](types.md#values-that-the-source-did-not-send).",
    "tables[].compatibility_group": 'Which compatibility group of the subject the table follows, where the registry groups its versions (`""`: those without a group); its own without it.',
    "tables[].toast_placeholder": "Debezium's `unavailable.value.placeholder`, as text. It decides about files that are admitted from then on.",
    "tables[].adopt": "Take over a table or view of that name which schemasync did not make. Its definition is replaced, its files are not touched. A managed table, or one with `external.table.purge`, is refused: dropping it deletes its files. So is one of a table format (Iceberg, Delta, Hudi, Paimon) or a storage handler, which only what made it can drop.",
    "tables[].envelope": "How events are wrapped. Default: recognised by the fields.",
    "tables[].database": "As under `defaults`.",
    "tables[].location": "As under `defaults`.",
    "tables[].increments": "As under `defaults`.",
    "tables[].policies": "As under `defaults`; only the keys that stand here differ.",
    "tables[].compaction": "As under `defaults`; only the keys that stand here differ.",
    "tables[].names": "As under `defaults`; only the keys that stand here differ.",
    "tables[].view": "As under `defaults`; only the keys that stand here differ.",
    "watch.poll": "How often `watch` looks for new versions and files. Registries are asked ten questions a second at most on average: with many tables, where others register all the time or nothing cheap tells of a new version, one may be noticed up to three minutes later.",
    "watch.apply": "`auto`: apply whatever policy lets through. `safe`: only changes that lose nothing. `manual`: tell, and wait for `schemasync apply`.",
    "watch.sweep": "How often every subject is looked at, whatever the cheap probes say.",
    "server.listen": "`HOST:PORT` where `watch` serves [`/metrics`](interface.md#http) (Prometheus), `/healthz`, `/readyz` and a status page at `/`; nothing listens unless said.",
    "notify[].webhook": "URL that gets every schema change, and every hold, as a [CloudEvent](interface.md#events) (structured JSON, POST).",
    "notify[].command": "Command that gets the same JSON on its standard input; text is split as a shell does. A program with a `/` in it starts from this file's directory, others are looked up on `PATH`.",
    "notify[].slack": "URL of a Slack incoming webhook, which gets the same as a message for people.",
    "notify[].headers": "Headers of the webhook's requests.",
    "templates": "Directory whose `*.sql.j2` files replace ours of the same name; commands tell of others that no template includes. They lay statements out. Columns are not theirs to say: a view with others is replaced by every run (SS210), and a table without our properties is not taken for ours (SS201). Nor are the rows: a `view_body` that leaves out which segments are read is refused, and so is a `view` with more than comments around `{{ body }}`.",
}

SECTIONS: Final[Mapping[str, str]] = {
    "registry": "",
    "metastore": "",
    "spark": "",
    "defaults": "What holds for every table that does not say otherwise.",
    "tables[]": "A list. Each entry takes one subject, or all that an expression matches, but for those that hold no "
    "table's rows by their names: "
    + ", ".join(f"`{pattern}`" for pattern in DEFAULT_EXCLUDES)
    + ". `plan` and `status` name those of them that an entry's expression matches; an entry that names one exactly takes it.",
    "watch": "",
    "server": "",
    "notify[]": "A list of receivers; each has one of `webhook`, `slack` and `command`, and is told of everything [at least once](interface.md#events).",
    "templates": "",
}

NOTES: Final[Mapping[str, str]] = {
    "defaults": """\
What `arrow_limit` counts are the bytes of landed files per admission, and those of shards and changes per compaction. Above it
Spark's tasks do the work, or its SQL where they do not reach the files. With `spark.master: local[*]` Spark would have the same cores.

`view.readers: auto` is `spark` where the metastore is embedded, which nobody else opens, and neither `spark.conf`
(`hive.metastore.uris`, `ConnectionURL`) nor the session that a program gives has another; else it is `any`. The text of views for
Spark alone may have 64 KB more, of which Spark keeps some 0.3 MB for each of `spark.sql.ui.retainedExecutions` queries (1000) of a
session. It may name files beside the changes: Spark reads them with `spark.sql.runSQLOnFiles` (on by default) and the rights on the
table's location.""",
}
"""What is said below the table of a section."""

CONFIGURATION_HEAD: Final = """\
# Configuration

One YAML file: `--config FILE`, else `schemasync.yaml` in the current directory, else `$SCHEMASYNC_CONFIG`. Only
`registry.url` must be set.

- Relative paths start from the file's directory.
- `${NAME}` in a value is taken from the environment; `$${` stands for `${`.
- `SCHEMASYNC_A__B` in the environment sets `a.b`, `SCHEMASYNC_TABLES__0__TABLE` an element of a list. A list or a mapping is
  written as YAML (`SCHEMASYNC_TABLES='[{subject: a-value}]'`). A variable that is empty takes the file's value away.
- A key with nothing behind it is not given. `null` and `~` are a word for `policies.add` and `toast`, for others the same as nothing.
- Durations are a whole number of `ms`, `s`, `m`, `h` or `d` (`15s`, `7d`), at most `100000d`.
- Sizes are a whole number of `B`, `KB`, `MB`, `GB` or `TB`, of 1024 (`256MB`); `MiB` and the like mean the same.
- Unknown keys and unreadable values are refused, all at once, each by its path."""

DIAGNOSTICS_HEAD: Final = """\
# Diagnostics

What `plan`, `check`, `apply`, `status` and notifications say about a table. Codes are stable: programs may rely on them, and
none is ever reused for something else. An *error* means that something waits for a person: the table is held, its view
goes on answering, and other tables go on. Some errors hold nothing: what `apply` puts right by itself, because queries may be
wrong until then (SS204, SS207, SS209, SS211, SS213, and SS214 where the value follows from others); SS216, which asks for a file
to be restored; SS501 and SS505, which ask for a change of a view that is not schemasync's."""

TYPES_HEAD: Final = """\
# Types

What an Avro type becomes in tables and views. Values are converted once, when files are admitted. Nullability belongs to
the schema, not to the table's types: Hive has none. A semantic name (`connect.name`, else the logical type) counts only
on the Avro type that stands beside it here; any other combination, and any unknown name, is shown as it is written."""

MEANING_TEXTS: Final[Mapping[Meaning, str]] = {
    Meaning.PLAIN: "as it is written",
    Meaning.DAYS: "days since 1970-01-01",
    Meaning.EPOCH_MILLIS: "milliseconds since 1970, UTC",
    Meaning.EPOCH_MICROS: "microseconds since 1970, UTC",
    Meaning.ZONED_TIMESTAMP: "ISO 8601 with an offset, the instant of it",
    Meaning.TIME_MILLIS: "text `HH:MM:SS.mmm`",
    Meaning.TIME_MICROS: "text `HH:MM:SS.uuuuuu`",
    Meaning.TIME_NANOS: "text `HH:MM:SS.nnnnnnnnn`",
    Meaning.VARIABLE_DECIMAL: "text, plain decimal notation",
    Meaning.UUID_BYTES: "text, lower case with dashes",
}

COMPLEX: Final = (
    ("record", "`struct<...>`", "fields by name; a record without fields or one that contains itself is refused"),
    ("array", "`array<...>`", ""),
    ("array of Connect's `MapEntry` records", "`map<key, value>`", "how Connect writes maps whose keys are not text"),
    ("map", "`map<string, ...>`", ""),
    ("union of null and one type", "that type", "nullable"),
    ("union of several types", "`struct<member0, member1, ...>`", "one member per branch, exactly one is not NULL"),
    ("null alone", "no column", "Parquet has no type for it"),
)

DECIMALS: Final = (
    (
        "`decimal`, `org.apache.kafka.connect.data.Decimal`",
        "bytes, fixed",
        "`decimal(p, s)`",
        "precision up to 38; see below",
    ),
    ("`io.debezium.data.VariableScaleDecimal`", "record", "`string`", MEANING_TEXTS[Meaning.VARIABLE_DECIMAL]),
    ("`connect.type: int8`, `int16`", "int", "`tinyint`, `smallint`", "the width that the source has"),
)

BEYOND_HEAD: Final = """\
## Values beyond the type

Sources hold values that a column's type does not have. One rule says what shows, for columns and nested fields alike:

- A date or timestamp outside of the years 1 to 9999 shows as the nearer end of them: `infinity` stays an open end that
  comparisons find. Told as SS308.
- Any other value that the type cannot hold shows as NULL, because no other number is near enough. Told as SS309, and the
  landed file that holds the value is moved to `archive/` where `on_fold` says `delete`.
- Digits of a moment or a time that its type does not have are cut, which is not told: those of SQL Server's
  `datetimeoffset(7)` behind the microsecond, and of files with nanoseconds.
- A key is held exactly: a file with a key value beyond its type, or of more digits than it has, is refused (SS303), because two
  keys could become one.

SS308 and SS309 are told by the run that admits the file: column, how many values, the first of them and its file. No such
value stops a table. What is no value of its kind at all (a timestamp that is no timestamp) is refused with its file, as SS303.

A decimal that is declared with more than 38 digits (Connect's default is 64, PostgreSQL has up to 1000) is shown as `decimal(38, s)`; with a scale of more
than 38 it is shown as the bytes that it is. A default in the schema follows the same rule as a value.
"""

BEYOND_TAIL: Final = """
Exact numbers have no NaN in Avro; where a source's numbers come as doubles (`decimal.handling.mode: double`) NaN and the
infinities show as such, and Spark holds NaN equal to itself and larger than any other number. Of nanosecond timestamps the number is shown, as
`bigint`: a `timestamp` has microseconds. Times of day are text: Spark and Hive have no such type."""

UNSENT_TAIL: Final = """
## Values that the source did not send

PostgreSQL leaves a large value (TOAST) that an UPDATE did not touch out of its log, and Debezium writes
`__debezium_unavailable_value` in its place. It is known as a placeholder in updates and creates (an update of the primary
key is written as a delete of the old key and a create of the new one; snapshot reads and deletes never have it), in
columns that are no key: as a `string`; as a `binary` with the bytes of that text; as an array with one of these alone, or
in an array of uuid the UUID that Java makes of these bytes; as an array of `smallint`, `int` or `bigint` with a number for each
byte; as a `map<string, string>` (hstore) of the text to itself. In other forms (`hstore.handling.mode: json`, arrays of
other types) it shows as a value. `toast_placeholder` sets another text.

| `toast` | the placeholder becomes |
|---|---|
| `carry` (default) | the value of the newest older event of the key that has one; NULL where that event is a delete |
| `null` | NULL, when the file is admitted |
| `placeholder` | nothing else: it shows as it is |

Carrying looks at all events that were admitted, so files may land late and in any order. A compaction writes into the
base what it found; an event that is older than a row of the base, and is admitted after that, no longer changes what the
row carries. Where no event has the value, the placeholder shows, also in the base (SS320), until an event that has it
comes, late or not. An event from before a column has no value of it, unless it reads the column's default. Where such
events read NULL, no NULL counts as the value: once admitted they look alike, and PostgreSQL sends no placeholder for a
NULL. Nothing older than a create is of the same row, so there the placeholder shows, which is told when its file is
admitted (SS320). Rows without a key have no history: there `carry` leaves the placeholder.

While a segment has placeholders, the view has a window per such column, which every query pays for: until a compaction
has folded that segment and `reader_grace` is over, and for as long as the base itself has some (SS320).
A value that someone set to just this text is taken for the placeholder.
`REPLICA IDENTITY FULL` at the source lets every event say everything, and nothing has to be carried."""

IN_PLACE_HEAD: Final = """\
# What is read in place

Spark's Parquet readers convert some columns into another type than the file's on their own. Some of these conversions are
right, some fail, and some **show wrong values without an error**. schemasync therefore never lets an engine convert: landed
files are decoded once, when they are admitted; a column of the long-lived table never changes its type (a widened or
retyped column gets a new physical column); and a file that was written is published only if each of its columns has one of the
forms in the first table, and none has its numbers packed (`DELTA_BINARY_PACKED`), as Spark misreads those where a query needs
some pages only. The other tables say what each version of Spark makes of every form under every type."""

MEASURED_HEAD: Final = """
Each form was read as a column, and where that did not fail in a struct, an array and a map, with the vectorized and with the
row reader. *right*: the same value, whatever reads it. *wrong*: in some place, some reader shows another value, or NULL,
without an error. *fails*: an error, with both readers or with one of them. The outcomes of each reader are in
`tests/data/in_place/`.
"""


def configuration() -> Iterator[str]:
    """Yield the lines of docs/configuration.md."""
    yield CONFIGURATION_HEAD
    rows = dict(_settings(config.Config, ""))
    if missing := sorted(rows.keys() ^ MEANINGS.keys()):
        raise SystemExit(f"scripts/reference_pages.py: MEANINGS and the configuration differ in {', '.join(missing)}")
    for section, about in SECTIONS.items():
        yield f"\n## {section}\n"
        if about:
            yield f"{about}\n"
        yield from _table(("key", "values", "default", "meaning"), _rows(section, rows))
        if section in NOTES:
            yield f"\n{NOTES[section]}"


def _rows(section: str, rows: Mapping[str, tuple[str, str, str]]) -> Iterator[tuple[str, ...]]:
    for key, (values, default, note) in rows.items():
        if key == section or key.startswith(f"{section}."):
            yield f"`{key}`", values, default, MEANINGS[key] + note


def _settings(model: type[config.Settings], prefix: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield (dotted key, (values, default, note)) of every setting."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        inner = _inner(field.annotation)
        if isinstance(inner, type) and issubclass(inner, config.Settings) and not _as_in_defaults(key):
            listed = get_origin(field.annotation) is tuple
            yield from _settings(inner, f"{key}[]." if listed else f"{key}.")
        else:
            yield key, (_values(field), _default(field, key), _note(model, name))


def _as_in_defaults(key: str) -> bool:
    return key.startswith("tables[].")


def _inner(annotation: Any) -> Any:
    """Return the settings class inside ``X | None`` or ``tuple[X, ...]``, else the annotation."""
    found = [a for a in get_args(annotation) if isinstance(a, type) and issubclass(a, config.Settings)]
    return found[0] if found else annotation


def _values(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(field.annotation))
    if _is_measured(field, "parse_duration"):
        return "duration"
    if _is_measured(field, "parse_size"):
        return "size"
    if field.annotation is int:
        limits = {type(m).__name__: m for m in field.metadata}
        return f"number, {limits['Ge'].ge} to {limits['Le'].le}"
    kinds = (a for a in (field.annotation, *get_args(field.annotation)) if a is not type(None))
    return next((_KINDS[k] for k in map(_kind, kinds) if k in _KINDS), "text")


_KINDS: Final[Mapping[Any, str]] = {
    bool: "`true`, `false`",
    tuple: "list",
    dict: "mapping",
    EnvelopeKind: ", ".join(f"`{kind.value}`" for kind in EnvelopeKind),
    config.Settings: "mapping",
}


def _kind(annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin in (tuple, dict):
        return origin
    is_settings = isinstance(annotation, type) and issubclass(annotation, config.Settings)
    return config.Settings if is_settings else annotation


def _is_measured(field: FieldInfo, parser: str) -> bool:
    # Of ``Size | None`` the member has the metadata.
    members = (m for a in get_args(field.annotation) for m in getattr(a, "__metadata__", ()))
    return any(getattr(getattr(m, "func", None), "__name__", "") == parser for m in (*field.metadata, *members))


_DURATIONS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_SIZES: Final = (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024), ("B", 1))


def _default(field: FieldInfo, key: str) -> str:
    value = field.default
    if field.is_required():
        return f"required{_within(key)}"
    if value is None:
        return ""
    if _is_measured(field, "parse_duration"):
        return f"`{_measured(value, _DURATIONS)}`"
    if _is_measured(field, "parse_size"):
        return f"`{_measured(value, _SIZES)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if isinstance(value, str | int) else ""


def _within(key: str) -> str:
    """Say with what a key is required, where that is not every configuration."""
    parent = key.rpartition(".")[0].rpartition(".")[2]
    if parent.endswith("[]"):
        return " in each"
    return "" if key == "registry.url" else f" with `{parent}`"


def _measured(amount: int, units: tuple[tuple[str, int], ...]) -> str:
    unit, size = next((u, s) for u, s in units if amount and amount % s == 0)
    return f"{amount // size}{unit}"


def _note(model: type[config.Settings], name: str) -> str:
    for row in config.UNSUPPORTED:
        if row.model == model.__name__ and row.field == name:
            what = " and ".join(f"`{value}`" for value in row.values)
            return f" Not in this version{f': {what}' if what else ''}."
    return ""


_SEVERITIES: Final = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.ERROR: "error"}
_CHAPTERS: Final = {
    "SS1": "Schema changes",
    "SS2": "Tables and views",
    "SS3": "Landed files",
    "SS4": "Subjects and keys",
    "SS5": "Views that read a table",
}


def diagnostics() -> Iterator[str]:
    """Yield the lines of docs/diagnostics.md."""
    yield DIAGNOSTICS_HEAD
    for prefix, title in _CHAPTERS.items():
        yield f"\n## {title}\n"
        rows = (
            (c.code, _SEVERITIES[c.severity], c.meaning, c.example, c.fix)
            for c in CODES.values()
            if c.code.startswith(prefix)
        )
        yield from _table(("code", "severity", "meaning", "for example", "what to do"), rows)


CONVERSIONS_HEAD: Final = """\
# Conversions

What becomes of the values of a column that gets another type. *kept*: every value of the old type is one of the new, the
column is widened. *fits*: every value can be converted, the column is migrated. *checked*: migrated once every value that
the table has was found to fit, there and back again. Where nothing stands the table is held, unless `policies.retype` is
`variant`; so it is where only the connector's mode of writing changed (SS120). Only conversions are made that Arrow, Spark,
Hive and Trino agree on: the text of a float or a timestamp is another one in each of them."""

CONVERTED: Final[tuple[Primitive | Decimal, ...]] = (
    *Primitive,
    Decimal(precision=10, scale=2),
    Decimal(precision=20, scale=8),
)


def conversions() -> Iterator[str]:
    """Yield the lines of docs/conversions.md."""
    yield f"{CONVERSIONS_HEAD}\n"
    names = tuple(f"`{print_type(t, Dialect.SPARK)}`" for t in CONVERTED)
    rows = ((name, *(_conversion(old, new) for new in CONVERTED)) for name, old in zip(names, CONVERTED, strict=True))
    yield from _table(("from \\ to", *names), rows)
    yield "\nText that is converted is written like this:\n"
    targets = (t for t in CONVERTED if converts(Primitive.STRING, t) and t is not Primitive.STRING)
    yield from _table(
        ("to", "regular expression"), ((f"`{print_type(t, Dialect.SPARK)}`", f"`{notation(t)}`") for t in targets)
    )


def _conversion(old: Primitive | Decimal, new: Primitive | Decimal) -> str:
    if old == new:
        return "same"
    if widens(old, new):
        return "kept"
    if not converts(old, new):
        return ""
    return "fits" if keeps_all(old, new) else "checked"


def types() -> Iterator[str]:
    """Yield the lines of docs/types.md."""
    yield TYPES_HEAD
    yield "\n## Avro types\n"
    yield from _table(("Avro", "column", ""), (*_leaves(), *COMPLEX))
    yield "\n## Semantic types\n"
    yield from _table(("name", "on", "column", "the value is"), (*_semantics(), *DECIMALS))
    yield f"\n{BEYOND_HEAD}"
    yield from _table(("value", "column", "shows as", "told"), _examples())
    yield BEYOND_TAIL
    yield UNSENT_TAIL


def _examples() -> Iterator[tuple[str, ...]]:
    for example in EXAMPLES:
        column = f"`{print_type(example.leaf.type, Dialect.SPARK)}`"
        text = example.text if len(example.text) < 30 else "the exact number"
        yield example.about, column, text, example.shown.value if example.shown else ""


def in_place() -> Iterator[str]:
    """Yield the lines of docs/in-place-reads.md."""
    yield IN_PLACE_HEAD
    yield "\n## The whitelist\n"
    yield from _table(("declared as", "read from"), _whitelist())
    for record in sorted(RECORDS.glob("*.json")):
        yield f"\n## {record.stem.replace('spark-', 'Spark ')}"
        yield MEASURED_HEAD
        outcomes = json.loads(record.read_text(encoding="utf-8"))
        yield from _table(("form in the file", "right as", "**wrong as**", "fails as"), _outcomes(outcomes))


def _whitelist() -> Iterator[tuple[str, str]]:
    for type_ in FORMS:
        yield f"`{print_type(type_, Dialect.SPARK)}`", _codes(sorted(forms_of(type_), key=len, reverse=True))
    for digits, homes in (("up to 9", "`INT32` or"), ("10 to 18", "`INT64` or"), ("19 to 38", "")):
        yield f"`decimal(p, s)`, p {digits}", f"{homes} `FIXED_LEN_BYTE_ARRAY` of the same precision and scale".strip()


def _outcomes(outcomes: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    for form, types in outcomes.items():
        wrong = [t for t, found in types.items() if "wrong" in found]
        right = [t for t, found in types.items() if found == "right"]
        yield f"`{form}`", _codes(right), _codes(wrong), _codes(t for t in types if t not in {*right, *wrong})


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _leaves() -> Iterator[tuple[str, str, str]]:
    for name in sorted(LEAF_TYPES):
        leaf = leaf_of({"type": name, "size": 1, "symbols": []})
        yield name, f"`{print_type(leaf.type, Dialect.SPARK)}`", "the symbol" if name == "enum" else ""


def _semantics() -> Iterator[tuple[str, str, str, str]]:
    for name, rules in SEMANTICS.items():
        for base, (meaning, shown) in rules.items():
            yield f"`{name}`", base, f"`{print_type(shown, Dialect.SPARK)}`", MEANING_TEXTS[meaning]


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | tuple[tuple[str, ...], ...]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |".replace("  ", " ")


BUILDERS: Final = {
    "configuration": configuration,
    "conversions": conversions,
    "diagnostics": diagnostics,
    "types": types,
    "in-place-reads": in_place,
}


def main() -> None:
    """Write the pages, or with ``--check`` exit 1 when one is stale."""
    stale = []
    for name, build in BUILDERS.items():
        path, text = PAGES / f"{name}.md", "\n".join((GENERATED, "", *build())) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                PAGES.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        raise SystemExit(f"stale: {', '.join(stale)}. Run scripts/docs.")


if __name__ == "__main__":
    main()
