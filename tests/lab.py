"""A whole schemasync on a scratch directory: register schemas, land events, apply, compact, look at the view.

Everything but the registry (a memory twin) and the clock is real: Spark, the embedded metastore, files on disk.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.app.applying import ApplyResult, apply
from schemasync.app.compacting import CompactResult, compact
from schemasync.app.inspecting import map_tables
from schemasync.app.opening import workspace_of
from schemasync.app.planning import Plan, plan
from schemasync.app.states import properties_in_force, read_manifest
from schemasync.app.workspace import Workspace
from schemasync.core.avro import read_value_schema
from schemasync.core.config import Config
from schemasync.core.types import Struct
from schemasync.core.written import written_type
from schemasync.io.parquet.values import arrow_type
from tests.twins.registry import MemoryRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3_600_000
DAY = 24 * HOUR
ALL_ROWS = 100_000
"""A limit that leaves out none: no lab has so many."""
START = 1_790_000_000_000
"""The lab's clock begins here, ms since 1970 UTC."""


def event(key: int, ts_ms: int, op: str = "u", **row: Any) -> dict[str, Any]:
    """Return a flat event of a table whose key is ``id``."""
    return {"id": key, "op": op, "ts_ms": ts_ms} | row


@contextmanager
def own_spark(home: Path, *, purpose: str, **settings: Any) -> Iterator[SparkSession]:
    """Run a Spark whose metastore lies in ``home``; other ``settings`` are those of `SessionSettings`."""
    from schemasync.io.java import find_java
    from schemasync.io.spark_session import SessionSettings, held, start_session

    with held(home, purpose=purpose):
        java = find_java(os.environ, cache_dir=home / "java")
        session = start_session(SessionSettings(home=home, **settings), java_home=java.home, python=sys.executable)
        yield session
        session.stop()


@contextmanager
def _client(session: SparkSession) -> Iterator[Any]:
    """Lend a client of the metastore, to do what no edge of ours does: put back whole tables."""
    jvm: Any = session._jvm
    conf = session._jsparkSession.sharedState().externalCatalog().unwrapped().client().client().getConf()
    client = jvm.org.apache.hadoop.hive.metastore.RetryingMetaStoreClient.getProxy(conf, True)
    try:
        yield client
    finally:
        client.close()


def _each(names: Any) -> list[str]:
    # By number: the end of a Java iterator is an exception, which takes 20 ms to tell.
    return [names.get(number) for number in range(names.size())]


class Lab:
    """One configuration, one registry, one clock."""

    def __init__(self, *, root: Path, session: SparkSession, database: str) -> None:
        self.root = root
        self.session = session
        self.database = database
        self.registry = MemoryRegistry()
        self.now_ms = START
        self.settings: dict[str, Any] = {}
        self.readers = "auto"
        self._tokens = itertools.count(1)
        self._files = itertools.count(0)
        self._dated: dict[Path, int] = {}
        self._workspace: Workspace | None = None

    def register(
        self, topic: str, value: Mapping[str, Any], key: Sequence[str] | None = ("id",), *, group: str = ""
    ) -> int:
        """Register the next value schema of a topic, and its key (fields as the value has them) the first time."""
        subject = f"{topic}-value"
        if key is not None and not self.registry.versions(f"{topic}-key"):
            fields = [{"name": name, "type": "long"} for name in key]
            self.registry.register(f"{topic}-key", json.dumps({"type": "record", "name": "Key", "fields": fields}))
        self.registry.register(subject, json.dumps(value), group=group)
        return self.registry.versions(subject)[-1]

    def land(
        self,
        topic: str,
        events: Iterable[Mapping[str, Any]],
        *,
        version: int | None = None,
        hour: str = "2026112000",
        name: str | None = None,
        footer: bool = True,
    ) -> Path:
        """Write events as the sink does: one Parquet file of one schema version, Avro schema in its footer."""
        subject = f"{topic}-value"
        number = version or self.registry.versions(subject)[-1]
        understood = read_value_schema(self.registry.schema(subject, number))
        assert understood.event is not None
        event = written_type(understood.event)
        assert isinstance(event, Struct)
        schema = pa.schema([pa.field(f.name, arrow_type(f.type)) for f in event.fields])
        if footer:
            schema = schema.with_metadata({"parquet.avro.schema": self.registry.schema(subject, number).text})
        directory = self.root / "lake" / topic / "incremental" / f"increment_{hour}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / (name or f"part-{next(self._files):05}.parquet")
        pq.write_table(pa.Table.from_pylist([dict(e) for e in events], schema=schema), path)
        return path

    def date_files(self) -> None:
        """Let what was written since the last call look as if it was written now, by the lab's clock.

        The disk's clock is another one: to what goes by the age of files they are all young, or all old, until then.
        """
        for path in (self.root / "lake").rglob("*"):
            if path.is_file() and path.stat().st_mtime_ns != self._dated.get(path):
                self._dated[path] = self.now_ms * 1_000_000
                os.utime(path, ns=(self._dated[path],) * 2)

    @property
    def config(self) -> Config:
        """The configuration: defaults, plus ``settings``; ``readers`` are those of views, whatever else these show."""
        given = dict(self.settings)
        defaults: dict[str, Any] = {"database": self.database, "location": f"file://{self.root}/lake/{{topic}}"}
        defaults |= given.get("defaults", {})
        defaults["view"] = {"readers": self.readers} | defaults.get("view", {})
        base: dict[str, Any] = {"registry": {"url": "file:///unused"}}
        return Config.model_validate(base | given | {"defaults": defaults})

    def only_hadoop_reaches_it(self, **compaction: Any) -> None:
        """Let the table lie where Arrow has no file system for it, and compact it so."""
        location = f"viewfs://tests/disk{self.root}/lake/{{topic}}"
        self.settings = {"defaults": {"location": location, "compaction": compaction}}

    @property
    def workspace(self) -> Workspace:
        """A workspace with this lab's registry and clock."""
        config = self.config
        if self._workspace is None or self._workspace.config != config:
            # To look up the JVM's classes and to compile templates is a tenth of a test's time.
            wired = workspace_of(config, self.session, clock=lambda: self.now_ms)
            self._workspace = replace(wired, registry=self.registry, token=lambda: f"{next(self._tokens):04}")
        return self._workspace

    def leave(self) -> None:
        """Drop the views: a plan looks at those of all databases, which takes longer with each that stays."""
        with _client(self.session) as client:
            for name in _each(client.getTables(self.database, "*_view")):
                client.dropTable(self.database, name, False, True)

    def kept(self) -> Callable[[], None]:
        """Keep what is there: schemas, files, tables, the clock. Return what brings it back, sooner than it was made.

        Names that were given out since are not given again, so no path is used twice.
        """
        files, copy = self.root / "lake", self.root / f"kept-{next(self._files)}"
        shutil.copytree(files, copy)
        schemas = deepcopy(vars(self.registry))
        now_ms, settings, readers, dated = self.now_ms, self.settings, self.readers, dict(self._dated)
        with _client(self.session) as client:
            tables = [client.getTable(self.database, name) for name in _each(client.getAllTables(self.database))]
            parted = [client.listPartitions(self.database, table.getTableName(), -1) for table in tables]

        def bring_back() -> None:
            shutil.rmtree(files)
            shutil.copytree(copy, files)
            vars(self.registry).clear()
            vars(self.registry).update(deepcopy(schemas))
            self.now_ms, self.settings, self.readers, self._dated = now_ms, settings, readers, dict(dated)
            with _client(self.session) as client:
                for name in _each(client.getAllTables(self.database)):
                    client.dropTable(self.database, name, False, True)
                for table in tables:
                    client.createTable(table)
                for partitions in parted:
                    client.add_partitions(partitions)
            catalog: Any = self.session._jsparkSession.sessionState().catalog()
            catalog.invalidateAllCachedTables()

        return bring_back

    def plan(self, *tables: str) -> Plan:
        return plan(self.workspace, tables)

    def apply(self, *tables: str) -> ApplyResult:
        return apply(self.workspace, tables)

    def compact(self, *tables: str) -> CompactResult:
        return compact(self.workspace, tables)

    def rows(self, table: str, order_by: str = "1") -> list[dict[str, Any]]:
        """Return the dedup view's rows."""
        return self.queried(f"SELECT * FROM `{self.database}`.`{table}_view`", order_by)

    def queried(self, text: str, order_by: str = "") -> list[dict[str, Any]]:
        """Return the rows of any query, by the names of their columns."""
        # Without a limit Spark reads all twice: first to see where the values lie, then to sort them.
        found = self.workspace.sql.query(f"{text} ORDER BY {order_by} LIMIT {ALL_ROWS}" if order_by else text)
        assert len(found.rows) < ALL_ROWS
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def strangers(self) -> list[str]:
        """Return the files of ours that the manifest in force of the only table does not know."""
        workspace = self.workspace
        (target,) = map_tables(workspace).targets
        properties = properties_in_force(workspace, target)
        assert properties is not None
        lake = workspace.storage(target).lake
        manifest = read_manifest(lake, target, properties)
        found = {file.path for top in ("base", "delta", "_schemasync/staging") for file in lake.files(top)}
        known = tuple(f"{location}/" for location in manifest.locations)
        return sorted(path for path in found if not path.startswith(known))

    def flat(self, name: str, *columns: tuple[str, Any]) -> dict[str, Any]:
        """Return a flat schema: ``id`` and the given columns, with ``op`` and ``ts_ms`` beside them."""
        fields = [
            {"name": n, "type": t} if not isinstance(t, dict) or "type" not in t else {"name": n} | t
            for n, t in columns
        ]
        own = [{"name": "op", "type": ["null", "string"]}, {"name": "ts_ms", "type": "long"}]
        return {"type": "record", "name": name, "fields": [{"name": "id", "type": "long"}, *fields, *own]}

    @staticmethod
    def debezium(*columns: dict[str, Any], key: str = "long") -> dict[str, Any]:
        """Return a schema of PostgreSQL's events as Debezium sends them, of rows with an ``id`` and these columns."""
        value = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": key}, *columns]}
        source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
        return {
            "type": "record",
            "name": "Envelope",
            "fields": [
                {"name": "before", "type": ["null", value]},
                {"name": "after", "type": ["null", "Value"]},
                {"name": "source", "type": source},
                {"name": "op", "type": "string"},
                {"name": "ts_ms", "type": ["null", "long"]},
            ],
        }


NewLab = Callable[[], Lab]
"""Makes a lab with a directory and a database of its own."""


class Begun:
    """Lends labs to tests that begin alike: what they begin with is made once, and brought back for each.

    No two tests may use one lab at the same time.
    """

    def __init__(self, new_lab: NewLab) -> None:
        self._new_lab = new_lab
        self._kept: dict[tuple[Any, ...], tuple[Lab, Callable[[], None]]] = {}

    def __call__(self, make: Callable[..., object], *options: Any) -> Lab:
        """Return a lab with which nothing was done but ``make(lab, *options)``."""
        if (make, *options) not in self._kept:
            lab = self._new_lab()
            make(lab, *options)
            self._kept[make, *options] = lab, lab.kept()
        lab, bring_back = self._kept[make, *options]
        bring_back()
        return lab
