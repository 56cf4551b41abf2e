"""What the use cases ask of the outside: one small Protocol per outside thing.

`schemasync.io` implements them for real; the tests' twins implement them in memory and pass the same behaviour
suites. They live in the core because they are only words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from schemasync.core.admission import AdmissionRequest, Admitted, Footer, Unreadable, WrittenFooter
from schemasync.core.compaction import FoldCounts
from schemasync.core.events import SchemaEvent
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile
from schemasync.core.merging import MergedShard, MergeRequest
from schemasync.core.partitioning import PartitionColumn
from schemasync.core.sharding import KeyRange, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """What a registry holds under one (subject, version).

    ``text`` is the Avro JSON as the registry gave it; ``references`` are the texts of the named types that it
    refers to, resolved transitively and in an order in which each only needs those before it. ``group`` is the
    compatibility group that the version belongs to, empty where the subject has none. ``unpinned`` tells that the
    registry found one of the types by its name alone: it is the newest one of today, whatever the version is.
    """

    subject: str
    version: int
    schema_id: int
    text: str
    references: tuple[str, ...] = ()
    group: str = ""
    unpinned: bool = False


class Registry(Protocol):
    """Read side of a schema registry. Answers are states, never events: ask again and compare."""

    def subjects(self) -> tuple[str, ...]:
        """Return the names of all live subjects, sorted.

        Raises:
            RegistryError: the registry answered something final that is not a list of subjects.
            RegistryUnavailableError: no usable answer after all retries.
        """
        ...

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the live versions of a subject in ascending order, empty where there is no such subject."""
        ...

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved.

        Raises:
            RegistryError: there is no such version, or a reference cannot be resolved.
        """
        ...

    def newest_id(self) -> int | None:
        """Return the largest schema id that the registry knows of, None where it cannot tell cheaply.

        A cheap probe: while the number does not grow, no new content was registered.
        """
        ...


class Notifier(Protocol):
    """Someone who wants to know of schema changes. May be told the same event twice: its id says so."""

    def send(self, event: SchemaEvent) -> None:
        """Deliver one event, or fail within a bounded time.

        Raises:
            NotificationError: it was refused, or not taken after all retries.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One file of the lake: path relative to the root that was asked for, bytes, time of change in ms UTC."""

    path: str
    bytes: int
    modified_ms: int


class Lake(Protocol):
    """The storage under one table's location. Paths are relative to it, with ``/``."""

    @property
    def root(self) -> str:
        """The location as engines write it (``file:/lake/student``, ``s3a://...``)."""
        ...

    def files(self, directory: str, *, below: bool = True) -> tuple[FileInfo, ...]:
        """Return the files in a directory, and ``below`` it, sorted by path; none where there is no such directory."""
        ...

    def directories(self, directory: str) -> tuple[str, ...]:
        """Return the directories right below a directory, sorted; none where there is no such directory."""
        ...

    def read(self, path: str) -> bytes:
        """Return a small file's content.

        Raises:
            StorageError: there is no such file, or it cannot be read.
        """
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that must not exist yet, all or nothing; return False where it exists."""
        ...

    def delete(self, path: str, *, seen: FileInfo | None = None) -> None:
        """Delete one file; no error where it is gone already, or is no longer the one that was ``seen`` in a list."""
        ...

    def delete_directory(self, directory: str) -> None:
        """Delete a directory with all that is in it; no error where it is gone already."""
        ...

    def delete_if_empty(self, directory: str) -> None:
        """Delete a directory that has nothing in it, where the storage has such a thing.

        Any other stays, whatever came into it just now; no error where it is gone already.
        """
        ...

    def make_directory(self, directory: str) -> None:
        """Make an (empty) directory where the storage has such a thing."""
        ...

    def move(self, source: str, target: str, *, seen: FileInfo | None = None) -> None:
        """Move one file; no error where only the target exists already, or it is not the one that was ``seen``."""
        ...

    def uri(self, path: str) -> str:
        """Return the path as engines write it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveColumn:
    """A column as the metastore holds it: lower-case name, Hive type string, comment."""

    name: str
    type: str
    comment: str = ""


_OF_FORMATS: Final = re.compile(
    r"delta|hudi|iceberg|paimon|org\.apache\.(spark\.sql\.delta|hudi|iceberg|paimon)(\..*)?|io\.delta\..*",
    re.IGNORECASE,
)
"""Providers of table formats. Spark keeps one as it was typed: a short name, a class, or what its name begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveTable:
    """A table or view as the metastore holds it.

    ``kind`` is Hive's (``EXTERNAL_TABLE``, ``MANAGED_TABLE``, ``VIRTUAL_VIEW``, ``MATERIALIZED_VIEW``). ``view_text``
    is a view's query as it was written, ``expanded_text`` as the engine completed it. ``formats`` are the class names
    of input format, output format and serde, in this order.
    """

    database: str
    name: str
    kind: str
    columns: tuple[HiveColumn, ...]
    partition_keys: tuple[HiveColumn, ...]
    location: str
    properties: Mapping[str, str]
    view_text: str = ""
    expanded_text: str = ""
    formats: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """What engines run where this is a view: Spark and Hive run the expanded text, and show that one, too.

        Spark writes both alike.
        """
        return self.expanded_text or self.view_text

    @property
    def purges(self) -> str:
        """Why a DROP TABLE would delete its data, empty where it would not."""
        if self.kind != "EXTERNAL_TABLE":
            return f"is a {self.kind.lower()}"
        # Hive 4 makes one of every CREATE TABLE that does not say EXTERNAL.
        purged = self.properties.get("external.table.purge", "").lower() == "true"
        return "has external.table.purge" if purged else ""

    @property
    def table_format(self) -> str:
        """The table format or storage handler to which its data belongs, empty where these are plain files.

        Iceberg and Paimon say so in ``table_type``, Delta and Hudi by the provider of Spark's that reads them.
        """
        provider = self.properties.get("spark.sql.sources.provider", "")
        named = self.properties.get("table_type") or self.properties.get("storage_handler", "")
        return named or (provider if _OF_FORMATS.fullmatch(provider) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSize:
    """What a partition holds. Engines plan by it: where Trino does not know the rows, a join sends both sides round."""

    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HivePartition:
    """A partition as the metastore holds it, with the columns and formats (as of `HiveTable`) that it declares.

    ``size`` is None where it does not say how many rows there are.
    """

    location: str
    columns: tuple[HiveColumn, ...]
    formats: tuple[str, ...] = ()
    size: PartitionSize | None = None


class Metastore(Protocol):
    """A Hive metastore, as far as SQL does not reach: exact reads, guarded writes, partitions in one call."""

    def table(self, database: str, name: str) -> HiveTable | None:
        """Return a table or view as it is now, never from a cache; None where there is none."""
        ...

    def tables(self, database: str, names: Iterable[str]) -> Mapping[str, HiveTable]:
        """Return those of these tables and views that there are by name, as they are now, in one call."""
        ...

    def names(self, database: str, pattern: str) -> tuple[str, ...]:
        """Return the names of tables and views that match a pattern, sorted.

        ``*`` stands for any text, ``|`` lies between patterns of which one must match.
        """
        ...

    def views(self) -> tuple[HiveTable, ...]:
        """Return the views of all databases, materialized ones too, sorted by database and name.

        A materialized view of which the metastore tells nothing has no text.
        """
        ...

    def swap_properties(self, database: str, name: str, *, key: str, expected: str, changes: Mapping[str, str]) -> bool:
        """Set table properties if ``key`` still has the ``expected`` value; return False where it has another.

        ``changes`` must give ``key`` a new value. One compare-and-set in the metastore (HIVE-26882).
        """
        ...

    def partitions(self, database: str, name: str) -> Mapping[str, str]:
        """Return name -> location of every registered partition.

        A name is the segment's, with the directories of user partitions behind it (`schemasync.core.partitioning`).
        """
        ...

    def described_partitions(
        self, database: str, name: str, *, about: int | None = None
    ) -> Mapping[str, HivePartition]:
        """Return name -> all that is known of every registered partition.

        ``about`` is how many there should be, where that is known: by it they are asked for in one way or another.
        """
        ...

    def create_database(self, name: str) -> None:
        """Make a database where the metastore itself keeps those that say no place; one that is there stays."""
        ...

    def add_partitions(
        self,
        database: str,
        name: str,
        locations: Mapping[str, str],
        sizes: Mapping[str, PartitionSize] | None = None,
    ) -> None:
        """Register partitions in one call, with their sizes where given; those that exist already are left as they are.

        A metastore that is told no size lists the partition's files for itself, and does not know its rows.
        """
        ...

    def move_partitions(self, database: str, name: str, locations: Mapping[str, str]) -> None:
        """Give existing partitions new locations in ONE ``alter_partitions`` call: all move, or none.

        A metastore on Derby shows a reader who comes in that moment some of both: it locks what it reads row by row.
        """
        ...

    def drop_partitions(self, database: str, name: str, partitions: Iterable[str]) -> None:
        """Unregister partitions; their files stay. Those that are gone already are passed over."""
        ...

    def setting(self, key: str, default: str) -> str:
        """Return a setting of the metastore itself, ``default`` where it does not say."""
        ...

    def replace_columns(self, database: str, name: str, columns: Sequence[HiveColumn]) -> None:
        """Set the data columns of a table and of all its partitions: what ADD COLUMNS cannot do.

        Removes dead columns and repairs drift; data files are not touched. Spark's copy of the schema says the same
        afterwards (`schemasync.core.spark_schema`).
        """
        ...

    def restore_table(self, database: str, name: str, *, location: str, formats: Sequence[str]) -> None:
        """Make a table external again, at this location, and give it and its partitions these formats.

        DROP TABLE deletes no data of it then: ``external.table.purge`` is taken away too. No data moves.
        """
        ...

    def redefine_view(self, database: str, name: str, *, source: str) -> None:
        """Give a view the text, columns and properties of another one in ONE call, and drop the other.

        No reader ever misses the view, as it would between the drop and the create that Spark makes of CREATE OR
        REPLACE VIEW. Its owner stays.
        """
        ...

    def set_view_text(self, database: str, name: str, text: str, *, expected: str | None = None) -> bool:
        """Give a view another SELECT in ONE call; its columns, properties and comments are the same as before.

        Where it has another one than an ``expected`` text, or is gone, nothing is done, and the answer is False. It is
        compared right before, and not guarded: another writer may come in between.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A query's result: column names, and rows of plain Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class SqlEngine(Protocol):
    """Runs SQL against the tables."""

    def execute(self, sql: str) -> None:
        """Run one statement.

        Raises:
            EngineError: the engine refused it; the message is the engine's first line.
        """
        ...

    def query(self, sql: str) -> Rows:
        """Run one query and return all its rows.

        Raises:
            EngineError: the engine refused it or failed.
        """
        ...

    def select(self, sql: str, *, database: str) -> Rows:
        """Run one query that only reads, with ``database`` as the default; values are such as JSON can hold.

        Decimals are strings, timestamps ISO 8601 (with Z where they are instants), binary base64, NaN and the
        infinities strings, structs and maps with string keys objects, other maps lists of [key, value].

        Raises:
            UsageError: the statement would change something.
            EngineError: the engine refused it or failed.
        """
        ...


class FoldJob(Protocol):
    """Executes the SELECT of a fold."""

    def run(
        self,
        select: str,
        *,
        into: str,
        sort_by: Sequence[str],
        unsent: Mapping[str, str],
        partition_by: Sequence[PartitionColumn] = (),
    ) -> FoldCounts:
        """Write what ``select`` yields, without its flags and purged rows, as Parquet into an empty directory.

        ``into`` is its URI; ``sort_by`` are plain column names; ``unsent`` holds by column the condition under which
        a row has a placeholder in it. Rows lie in directories below it that ``partition_by`` says.

        Raises:
            EngineError: the job failed; what it wrote so far is of no consequence.
            StorageError: there is no space left.
        """
        ...

    def repeats_keys(self, directory: str, keys: Sequence[str]) -> bool:
        """Tell whether two rows of the Parquet files below a directory (its URI) have the same key.

        Raises:
            EngineError: they cannot be read.
        """
        ...


class ShardJob(Protocol):
    """Cuts and merges shards, whose files are sorted by key."""

    def spread(self, files: Sequence[DataFile], keys: Sequence[str], bounds: Sequence[Key]) -> Spread:
        """Return, by file, how many rows lie before the first bound, between each two, and from the last one on."""
        ...

    def cuts(self, files: Sequence[DataFile], keys: Sequence[str], within: KeyRange, pieces: int) -> tuple[Key, ...]:
        """Return where a range is cut into about equal pieces: at most one key less than these, ascending."""
        ...

    def merge(self, request: MergeRequest) -> tuple[MergedShard, ...]:
        """Write all shards of a request, in any order.

        Raises:
            DataError: a value does not fit the type that its column has now.
            EngineError: the engine failed.
            StorageError: a shard cannot be written, or a file is not what it should be.
        """
        ...


class LandedFiles(Protocol):
    """Reads what the sink landed, and writes deltas of it."""

    def footer(self, file: FileInfo, *, now_ms: int) -> Footer | Unreadable:
        """Read one file's footer.

        Raises:
            StorageError: the storage failed; the file may be as it should be.
        """
        ...

    def written(self, path: str, columns: Collection[str], *, keys: Sequence[str] = ()) -> WrittenFooter:
        """Read the footer of a file of ours, with the extents of these columns, and its first and last key.

        Raises:
            StorageError: it cannot be read.
        """
        ...

    def keys(self, path: str, column: str) -> Sequence[int | str | None]:
        """Read a key's column from a file of ours: whole numbers, or text (U+FFFD where that is no UTF-8).

        Raises:
            StorageError: it cannot be read.
        """
        ...

    def words(self, paths: Sequence[str], column: str, *, low: int, count: int) -> Sequence[int] | None:
        """Read a column of whole numbers, none twice, from files of ours: as bits of ``count`` signed words.

        See `schemasync.core.changed_keys.ChangedKeys`; no number is below ``low`` or beyond the last word. None where
        a row has no number.

        Raises:
            StorageError: a file cannot be read.
        """
        ...

    def hashed_words(self, paths: Sequence[str], columns: Sequence[str], *, count: int) -> Sequence[int]:
        """Read columns that can be hashed from files of ours: hashes of their rows as bits of signed words.

        ``count`` is a power of two; a bit is set for each row's `schemasync.core.changed_keys.hash_of`.

        Raises:
            StorageError: a file cannot be read.
        """
        ...

    def write_words(self, path: str, words: Sequence[int]) -> None:
        """Write words as an ORC file of one row, whose one column `schemasync.core.changed_keys.WORDS_COLUMN` is.

        Raises:
            StorageError: it cannot be written.
        """
        ...

    def admit(self, request: AdmissionRequest) -> Admitted:
        """Write one delta.

        Raises:
            DataError: a file is missing or corrupt, or holds events that cannot be applied; names file and row.
            StorageError: the delta cannot be written, or the storage failed while a file was read.
        """
        ...
