"""The Hive metastore through clients of our own, made as Spark makes its own: embedded or by Thrift, the same calls.

SQL can do neither a compare-and-set of table properties nor move many partitions in one call; the metastore's own
client can. Works with Spark's built-in Hive 2.3 clients (2.3.9 in Spark 3.5, 2.3.10 in 4.1) against metastores 2.3
and 3.1. Safe to call from several threads: a client serves one at a time.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError

from schemasync.core import spark_schema
from schemasync.core.layout import SEGMENT
from schemasync.core.partitioning import directory_of, partition_name, values_of
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable, PartitionSize
from schemasync.core.properties import STATE
from schemasync.errors import EngineError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODIFIED: Final = "The table has been modified"
"""How the metastore refuses a compare-and-set (HIVE-26882)."""
_COMPARING: Final[dict[tuple[str, str], threading.Lock]] = {}
"""By database and table, held from the look at a property to the guarded write.

Spark 3.5 embeds Hive 2.3.9, which does not know the guard yet (2.3.10 does) and writes without comparing. An embedded
metastore serves one process, so there these locks alone are enough. A metastore that serves Thrift compares by itself,
and must be one that does.
"""
_IDLE: Final[WeakKeyDictionary[SparkSession, deque[Any]]] = WeakKeyDictionary()
"""By session, the clients that nobody uses now: so many as were ever used at once. They end with Spark's JVM.

Hive's client is not safe for threads. Spark guards the one that it has with a lock in the JVM which cannot be held from
here, so that one is never used.
"""
_DIRECT_SQL: Final = "hive.metastore.try.direct.sql"
"""Whether a metastore asks its database about partitions by SQL of its own, by their numbers, or one by one."""
_STATISTICS: Final = {"files": "numFiles", "rows": "numRows", "bytes": "totalSize"}
"""What engines call the fields of a `PartitionSize`. A metastore that is not told files and bytes lists them."""
_FEW: Final = 16
"""Fewer are listed and dropped one by one where Derby answers: every SQL text that it does not know yet takes it 2 ms,
and these have the partitions' numbers in them. Other databases compile faster, and are asked over a network."""
_MATERIALIZED: Final = "MATERIALIZED_VIEW"
_PIECE: Final = 8_000
"""Signs that one of py4j's answers sends at once."""
_BEST_SPEED: Final = 1
"""The Deflater's level: what a higher one saves takes longer than to send it."""
_PIECES: Final = 60
"""So many are asked for one by one, each in half a millisecond."""
_BATCH: Final = 500
"""Partitions (or views) per call: long calls run into the client's socket timeout."""
_T = TypeVar("_T")


class HiveMetastore:
    """A metastore as a `schemasync.core.ports.Metastore`."""

    def __init__(self, session: SparkSession) -> None:
        """Use the session's metastore, under the settings of the session's own client.

        Raises:
            UsageError: the session has none.
        """
        if session.conf.get("spark.sql.catalogImplementation", "in-memory") != "hive":
            raise UsageError("the Spark session has no Hive metastore", fix="Build it with enableHiveSupport().")
        sparks = session._jsparkSession.sharedState().externalCatalog().unwrapped().client()
        self._conf: Any = sparks.client().getConf()
        url = self._conf.get("javax.jdo.option.ConnectionURL", "")
        self._is_derby = not self._conf.get("hive.metastore.uris", "") and url.startswith("jdbc:derby:")
        # One that is on a host serves others, too.
        self.is_embedded: Final = self._is_derby and not url.startswith("jdbc:derby://")
        self._session_state: Any = sparks.getState
        self._idle = _IDLE.setdefault(session, deque())
        # Looked up once: every part of a class's name is a call into the JVM.
        jvm: Any = session._jvm
        self._api: Final[dict[str, Any]] = {
            name: getattr(jvm.org.apache.hadoop.hive.metastore.api, name)
            for name in (
                "Database",
                "DropPartitionsRequest",
                "EnvironmentContext",
                "FieldSchema",
                "GetTablesResult",
                "Partition",
                "PartitionListComposingSpec",
                "RequestPartsSpec",
            )
        }
        self._current_user: Any = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser
        self._new_client: Any = jvm.org.apache.hadoop.hive.metastore.RetryingMetaStoreClient.getProxy
        self._calls_of: Any = jvm.java.lang.reflect.Proxy.getInvocationHandler
        self._array_list: Any = jvm.java.util.ArrayList
        self._hash_map: Any = jvm.java.util.HashMap
        self._join: Any = jvm.java.lang.String.join
        self._listed: Any = jvm.org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore.get_table_meta_result
        self._bytes: Any = jvm.org.apache.commons.io.output.ByteArrayOutputStream
        self._reader: Any = jvm.java.io.InputStreamReader
        self._lines: Any = jvm.java.io.BufferedReader
        self._packer: Any = jvm.java.util.zip.DeflaterOutputStream
        self._deflater: Any = jvm.java.util.zip.Deflater
        self._as_text: Any = jvm.java.util.Base64.getMimeEncoder(_PIECE, bytearray(b"\n")).wrap
        self._transport: Any = jvm.org.apache.thrift.transport.TIOStreamTransport
        self._as_json: Any = jvm.org.apache.thrift.protocol.TSimpleJSONProtocol.Factory()
        state = session._jsparkSession.sessionState()
        self._identifier: Any = state.sqlParser().parseTableIdentifier
        self._forget: Any = state.catalog().refreshTable

    @contextmanager
    def _client(self, database: str, name: str) -> Iterator[Any]:
        """Lend a client to one sequence of calls, and translate what goes wrong in it.

        A client under which something went wrong is not used again: nobody knows what its connection is good for.
        """
        with self._translated(database, name):
            try:
                client = self._idle.pop()
            except IndexError:
                client = self._new_client(self._conf, True)
            try:
                yield client
            except BaseException:
                with suppress(Py4JError, ConnectionError):
                    client.close()
                raise
            self._idle.append(client)

    @contextmanager
    def _listing_client(self, what: str) -> Iterator[Any]:
        """Lend a client to calls that filter their answer: the filter asks the thread's Hive session who is asking.

        To get Spark's own makes it that of the thread.
        """
        with self._client(what, "") as client:
            self._session_state()
            yield client

    @contextmanager
    def _one_by_one(self, client: Any, *, few: bool) -> Iterator[None]:
        """Let a metastore that is embedded with Derby reach for a few partitions one by one.

        The setting is that of the thread, in which Spark's own client calls too.
        """
        if not (few and self._is_derby):
            yield
            return
        before = client.getMetaConf(_DIRECT_SQL)
        client.setMetaConf(_DIRECT_SQL, "false")
        try:
            yield
        finally:
            client.setMetaConf(_DIRECT_SQL, before)

    def table(self, database: str, name: str) -> HiveTable | None:
        """Return a table or view as it is now; None where there is none."""
        with self._client(database, name) as client:
            found = _found(client, database, name)
            return None if found is None else _table(self._told(found))

    def tables(self, database: str, names: Iterable[str]) -> Mapping[str, HiveTable]:
        """Return those of these tables and views that there are by name, as they are now, in one call."""
        with self._listing_client(database) as client:
            asked = tuple(names)
            try:
                found = {table.name: table for table in self._objects(client, database, asked)}
            except Py4JJavaError as error:
                # An older Hive (2.3.9, Spark 3.5's) has no word for it in this call over Thrift, only "internal error".
                if _class_of(error) == "UnknownDBException" or client.getDatabases(database).isEmpty():
                    return {}
                raise
            # Hive's names are in lower case, however they were asked for.
            return {name: found[name.lower()] for name in asked if name.lower() in found}

    def names(self, database: str, pattern: str) -> tuple[str, ...]:
        """Return the names of tables and views that match a pattern, sorted."""
        with self._listing_client(database) as client:
            return tuple(sorted(self._texts(client.getTables(database, pattern))))

    def views(self) -> tuple[HiveTable, ...]:
        """Return the views of all databases, materialized ones too, sorted by database and name."""
        with self._listing_client("all databases") as client:
            found = self._listed()
            found.setSuccess(client.getTableMeta("*", "*", self._list(["VIRTUAL_VIEW", _MATERIALIZED])))
            listed = sorted((v["dbName"], v["tableType"], v["tableName"]) for v in self._told(found)["success"])
            views: list[HiveTable] = []
            for (database, kind), some in groupby(listed, key=itemgetter(0, 1)):
                read = self._materialized if kind == _MATERIALIZED else self._views
                views += read(client, database, (name for *_, name in some))
            return tuple(sorted(views, key=lambda view: (view.database, view.name)))

    def _views(self, client: Any, database: str, names: Iterable[str]) -> Iterator[HiveTable]:
        for batch in _batches(names):
            # One that was dropped since it was listed is not in the answer.
            yield from self._objects(client, database, batch)

    def _materialized(self, client: Any, database: str, names: Iterable[str]) -> Iterator[HiveTable]:
        for name in names:
            try:
                yield from self._objects(client, database, [name])
            except Py4JJavaError as error:
                # Hive 3 refuses to tell clients of 2.3 of tables that only take inserts, as such a view may be.
                if _class_of(error) != "MetaException":
                    raise
                yield HiveTable(
                    database=database,
                    name=name,
                    kind=_MATERIALIZED,
                    columns=(),
                    partition_keys=(),
                    location="",
                    properties={},
                )

    def _objects(self, client: Any, database: str, names: Iterable[str]) -> Iterator[HiveTable]:
        # Told together: each call into the JVM takes half a millisecond.
        found = self._api["GetTablesResult"](client.getTableObjectsByName(database, self._list(names)))
        return map(_table, self._told(found)["tables"])

    def swap_properties(self, database: str, name: str, *, key: str, expected: str, changes: Mapping[str, str]) -> bool:
        """Set properties if ``key`` still has the ``expected`` value; return False where it has another."""
        with _comparing(database, name), self._client(database, name) as client:
            table = client.getTable(database, name)
            properties = table.getParameters()
            if properties.get(key) != expected:
                return False
            for property_, value in changes.items():
                properties.put(property_, value)
            guard = {"expected_parameter_key": key, "expected_parameter_value": expected}
            try:
                client.alter_table_with_environmentContext(database, name, table, self._context(guard))
            except Py4JJavaError as error:
                if _MODIFIED in str(error.java_exception):
                    return False
                raise
        self._refresh(database, name)
        return True

    def partitions(self, database: str, name: str) -> Mapping[str, str]:
        """Return name -> location of every registered partition."""
        return {segment: found.location for segment, found in self.described_partitions(database, name).items()}

    def described_partitions(
        self, database: str, name: str, *, about: int | None = None
    ) -> Mapping[str, HivePartition]:
        """Return name -> all that is known of every registered partition; ``about`` is how many there should be."""
        with self._client(database, name) as client:
            with self._one_by_one(client, few=about is not None and about < _FEW):
                found = client.listPartitions(database, name, -1)
            starts = range(0, len(found), _BATCH)
            batches = (found.subList(n, min(n + _BATCH, len(found))) for n in starts)
            told = [p for batch in batches for p in self._told_partitions(batch)]
            # Without user partitions a name is told by the segment alone.
            parted = any(len(p["values"]) > 1 for p in told)
            keys = _partition_keys(client.getTable(database, name)) if parted else [SEGMENT]
            return {_partition_name(keys, p["values"]): _partition(p) for p in told}

    def _told(self, struct: Any) -> dict[str, Any]:
        """Return one of Hive's structs as plain values, in one answer: to ask for each of its fields takes hundreds.

        Packed, and line by line while that takes less time: py4j's JVM writes an answer 8 KB at a time, and what
        follows the first of them waits for its acknowledgement, which this side's TCP delays by 40 ms. As text: bytes
        are decoded by py4j one by one.
        """
        written = self._bytes()
        deflater = self._deflater(_BEST_SPEED)
        packed = self._packer(self._as_text(written), deflater)
        struct.write(self._as_json.getProtocol(self._transport(packed)))
        packed.close()
        # What it has beside the heap stays until the JVM collects it otherwise.
        deflater.end()
        if _PIECE < written.size() <= _PIECES * _PIECE:
            lines = self._lines(self._reader(written.toInputStream()))
            text = "".join(iter(lines.readLine, None))
        else:
            text = written.toString("US-ASCII")
        told: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
        return told

    def _told_partitions(self, partitions: Any) -> list[dict[str, Any]]:
        told = self._told(self._api["PartitionListComposingSpec"](partitions))
        return list(told["partitions"])

    def create_database(self, name: str) -> None:
        """Make a database where the metastore itself keeps those that say no place; one that is there stays."""
        with self._listing_client(name) as client:
            if not client.getDatabases(name).isEmpty():
                return
            database = self._api["Database"]()
            database.setName(name)
            database.setOwnerName(self._current_user().getShortUserName())
            try:
                client.createDatabase(database)
            except Py4JJavaError as error:
                if _class_of(error) != "AlreadyExistsException":
                    raise

    def add_partitions(
        self,
        database: str,
        name: str,
        locations: Mapping[str, str],
        sizes: Mapping[str, PartitionSize] | None = None,
    ) -> None:
        """Register partitions, with their sizes where given; those that exist already are left as they are."""
        with self._client(database, name) as client:
            table = client.getTable(database, name)
            for batch in _batches(locations.items()):
                partitions = self._list(self._partition(table, p, place, (sizes or {}).get(p)) for p, place in batch)
                client.add_partitions(partitions, True, False)
        self._refresh(database, name)

    def _partition(self, table: Any, name: str, location: str, size: PartitionSize | None) -> Any:
        partition = self._api["Partition"]()
        partition.setDbName(table.getDbName())
        partition.setTableName(table.getTableName())
        partition.setValues(self._list(values_of(name)))
        descriptor = table.getSd().deepCopy()
        descriptor.setLocation(location)
        partition.setSd(descriptor)
        partition.setParameters(self._map(_statistics(size)))
        return partition

    def move_partitions(self, database: str, name: str, locations: Mapping[str, str]) -> None:
        """Give existing partitions new locations in one ``alter_partitions`` call."""
        if not locations:
            return
        with self._client(database, name) as client:
            table = client.getTable(database, name)
            keys = _partition_keys(table)
            moved = self._array_list()
            for batch in _batches(locations):
                moved.addAll(client.getPartitionsByNames(database, name, self._partition_names(batch)))
            for partition in _each(moved):
                partition.getSd().setLocation(locations[_partition_name(keys, list(_each(partition.getValues())))])
                partition.getSd().setCols(table.getSd().getCols())
            client.alter_partitions(database, name, moved, self._context({"DO_NOT_UPDATE_STATS": "true"}))
        self._refresh(database, name)

    def drop_partitions(self, database: str, name: str, partitions: Iterable[str]) -> None:
        """Unregister partitions; their files stay."""
        with self._client(database, name) as client:
            # A broken connection is made anew in this call; the service itself is asked without such care.
            client.getTable(database, name)
            service = self._service(client)
            for batch in _batches(partitions):
                spec = self._api["RequestPartsSpec"].names(self._partition_names(batch))
                request = self._api["DropPartitionsRequest"](database, name, spec)
                request.setDeleteData(False)
                request.setIfExists(True)
                request.setNeedResult(False)
                with self._one_by_one(client, few=len(batch) < _FEW):
                    service.drop_partitions_req(request)
        self._refresh(database, name)

    def _service(self, client: Any) -> Any:
        """Return the service that a client calls: Thrift's stub, or the handler itself where it is embedded.

        Hive 2.3's client hands its request for many partitions only expressions, serialized in a way that a standalone
        metastore cannot read. The service takes names.
        """
        return _field(_field(self._calls_of(client), "base"), "client")

    def _partition_names(self, partitions: Iterable[str]) -> Any:
        return self._list(f"{SEGMENT}={partition}" for partition in partitions)

    def setting(self, key: str, default: str) -> str:
        """Return a setting of the metastore itself, ``default`` where it does not say."""
        with self._client(key, "") as client:
            return str(client.getConfigValue(key, default))

    def replace_columns(self, database: str, name: str, columns: Sequence[HiveColumn]) -> None:
        """Set the data columns of a table and of all its partitions, and Spark's copy of the schema with them."""
        with _comparing(database, name), self._client(database, name) as client:
            table = client.getTable(database, name)
            told = self._told(table)
            fields = self._list(self._api["FieldSchema"](c.name, c.type, c.comment) for c in columns)
            table.getSd().setCols(fields)
            rewritten = spark_schema.rewritten(told["parameters"], columns, _columns(told["partitionKeys"]))
            table.setParameters(self._map(rewritten))
            # Partitions go with the table, in its transaction: Hive maps theirs to the table's by position.
            self._alter(client, table, cascade=True)
            # CASCADE passes over partitions where the table's own columns are right already.
            self._alter_partitions(client, table, lambda place: place.setCols(fields))
        self._refresh(database, name)

    def restore_table(self, database: str, name: str, *, location: str, formats: Sequence[str]) -> None:
        """Make a table external again, at this location, and give it and its partitions these formats."""

        def set_formats(place: Any) -> None:
            place.setInputFormat(formats[0])
            place.setOutputFormat(formats[1])
            place.getSerdeInfo().setSerializationLib(formats[2])

        with _comparing(database, name), self._client(database, name) as client:
            table = client.getTable(database, name)
            table.setTableType("EXTERNAL_TABLE")
            table.getParameters().put("EXTERNAL", "TRUE")
            table.getParameters().remove("external.table.purge")
            table.getSd().setLocation(location)
            set_formats(table.getSd())
            self._alter(client, table)
            self._alter_partitions(client, table, set_formats)
        self._refresh(database, name)

    def redefine_view(self, database: str, name: str, *, source: str) -> None:
        """Give a view the definition of another one in one ``alter_table`` call, and drop the other."""
        with self._client(database, name) as client:
            old, new = (client.getTable(database, view) for view in (name, source))
            new.setTableName(name)
            new.setOwner(old.getOwner())
            new.setCreateTime(old.getCreateTime())
            client.alter_table_with_environmentContext(database, name, new, self._context({}))
            client.dropTable(database, source, False, True)
        self._refresh(database, name)

    def set_view_text(self, database: str, name: str, text: str, *, expected: str | None = None) -> bool:
        """Give a view another SELECT in one ``alter_table`` call, if it still has the ``expected`` one."""
        with self._client(database, name) as client:
            if expected is None:
                view = client.getTable(database, name)
            elif (view := _found(client, database, name)) is None or not _has_text(view, expected):
                return False
            view.setViewOriginalText(text)
            view.setViewExpandedText(text)
            client.alter_table_with_environmentContext(database, name, view, self._context({}))
        self._refresh(database, name)
        return True

    def _alter(self, client: Any, table: Any, *, cascade: bool = False) -> None:
        """Write a table back: nothing that was published since it was read may be undone by that."""
        properties = {"CASCADE": "true"} if cascade else {}
        if (state := table.getParameters().get(STATE)) is not None:
            properties |= {"expected_parameter_key": STATE, "expected_parameter_value": state}
        context = self._context(properties)
        client.alter_table_with_environmentContext(table.getDbName(), table.getTableName(), table, context)

    def _alter_partitions(self, client: Any, table: Any, change: Callable[[Any], None]) -> None:
        database, name = table.getDbName(), table.getTableName()
        found = client.listPartitions(database, name, -1)
        changed = []
        for partition in _each(found):
            before = partition.getSd().deepCopy()
            change(partition.getSd())
            if not before.equals(partition.getSd()):
                changed.append(partition)
        for batch in _batches(changed):
            context = self._context({"DO_NOT_UPDATE_STATS": "true"})
            client.alter_partitions(database, name, self._list(batch), context)

    def _context(self, properties: Mapping[str, str]) -> Any:
        context = self._api["EnvironmentContext"]()
        context.setProperties(self._map(properties))
        return context

    def _map(self, items: Mapping[str, str]) -> Any:
        values = self._hash_map()
        for key, value in items.items():
            values.put(key, value)
        return values

    def _texts(self, names: Any) -> list[str]:
        """Return a list of the JVM's that holds names, in one answer."""
        return str(self._join("\n", names)).splitlines()

    def _list(self, items: Iterable[Any]) -> Any:
        values = self._array_list()
        for item in items:
            values.add(item)
        return values

    def _refresh(self, database: str, name: str) -> None:
        """Make this session forget what it cached of the table: it was changed behind Spark's back.

        Not by REFRESH TABLE, which resolves a view before it forgets it.
        """
        with self._translated(database, name):
            self._forget(self._identifier(f"`{database}`.`{name}`"))

    @contextmanager
    def _translated(self, database: str, name: str) -> Iterator[None]:
        try:
            yield
        except (Py4JError, ConnectionError) as error:
            # ConnectionError: the JVM that asks it is gone.
            raise EngineError(
                "the metastore refused the call",
                where=f"{database}.{name}" if name else database,
                why=str(getattr(error, "java_exception", error)).splitlines()[0][:300],
            ) from error


def _class_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getSimpleName())


def _comparing(database: str, name: str) -> threading.Lock:
    return _COMPARING.setdefault((database.lower(), name.lower()), threading.Lock())


def _each(values: Any) -> Iterator[Any]:
    """Go through a list of the JVM's by number: the end of its iterator is an exception, which takes 20 ms to tell."""
    return (values.get(number) for number in range(values.size()))


def _field(struct: Any, name: str) -> Any:
    """Return a field of a Java object that has no getter."""
    field = struct.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(struct)


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    queue = iter(items)
    while batch := list(islice(queue, _BATCH)):
        yield batch


def _found(client: Any, database: str, name: str) -> Any:
    """Return a table or view as Java has it, None where there is none."""
    try:
        return client.getTable(database, name)
    except Py4JJavaError as error:
        if _class_of(error) == "NoSuchObjectException":
            return None
        raise


def _has_text(view: Any, text: str) -> bool:
    """Compare where the view is: a long text takes longer to come than to go."""
    as_expected = view.deepCopy()
    as_expected.setViewExpandedText(text)
    equal: bool = as_expected.equals(view)
    return equal


def _table(told: Mapping[str, Any]) -> HiveTable:
    place, properties = told["sd"], told["parameters"]
    columns = _columns(place["cols"])
    return HiveTable(
        database=told["dbName"],
        name=told["tableName"],
        kind=told["tableType"],
        columns=_parked(properties) or columns if _is_placeholder(columns) else columns,
        partition_keys=_columns(told["partitionKeys"]),
        location=place.get("location", ""),
        properties=properties,
        view_text=told.get("viewOriginalText", ""),
        expanded_text=told.get("viewExpandedText", ""),
        formats=_formats(place),
    )


def _partition_keys(table: Any) -> list[str]:
    return [key.getName() for key in _each(table.getPartitionKeys())]


def _partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    segment, *others = values
    return partition_name(segment, directory_of(keys[1:], others))


def _statistics(size: PartitionSize | None) -> dict[str, str]:
    return {name: str(getattr(size, field)) for field, name in _STATISTICS.items()} if size else {}


def _partition(told: Mapping[str, Any]) -> HivePartition:
    place, known = told["sd"], told.get("parameters", {})
    return HivePartition(
        location=place["location"],
        columns=_columns(place["cols"]),
        formats=_formats(place),
        size=PartitionSize(**{field: int(known[name]) for field, name in _STATISTICS.items()})
        if known.keys() >= {*_STATISTICS.values()}
        else None,
    )


def _formats(place: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        place.get("inputFormat", ""),
        place.get("outputFormat", ""),
        place["serdeInfo"].get("serializationLib", ""),
    )


def _columns(fields: Iterable[Mapping[str, str]]) -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(name=f["name"], type=f["type"], comment=f.get("comment", "")) for f in fields)


def _is_placeholder(columns: Sequence[HiveColumn]) -> bool:
    """Tell whether Spark put one column in place of all: it does where it cannot read a type as Hive writes it."""
    return [(c.name, c.type) for c in columns] == [("col", "array<string>")]


def _parked(properties: Mapping[str, str]) -> tuple[HiveColumn, ...]:
    """Return the columns that Spark then keeps in properties: names and comments; their types are no Hive types."""
    fields = spark_schema.read_fields(properties) or ()
    return tuple(HiveColumn(name=field.name.lower(), type="", comment=field.comment) for field in fields)
