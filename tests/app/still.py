"""A workspace that never moves: registry and metastore are twins, so looking and planning need no Spark.

`Still.settle` leaves the metastore as apply would, without its data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from schemasync.app.inspecting import look, map_tables
from schemasync.app.opening import in_this_process, open_renderer
from schemasync.app.planning import Plan, TablePlan, lay_out_steps, plan
from schemasync.app.view_texts import view_select
from schemasync.app.workspace import Storage, Workspace
from schemasync.core import ddl, spark_schema
from schemasync.core.config import Config
from schemasync.core.drift import PARQUET
from schemasync.core.layout import SEGMENT
from schemasync.core.manifest import Contents
from schemasync.core.ports import HiveColumn, HiveTable
from schemasync.core.properties import SUBJECT, write_properties
from schemasync.io.lake.arrow import ArrowLake
from tests.twins.metastore import MemoryMetastore
from tests.twins.registry import MemoryRegistry

ID = {"name": "id", "type": "long"}
EVENT = [{"name": "op", "type": ["null", "string"]}, {"name": "ts_ms", "type": "long"}]


def avro(*columns: tuple[str, Any], name: str = "Student") -> str:
    """Return a flat value schema: ``id``, these columns, and what says which event is newer."""
    fields = [ID, *({"name": n, "type": t} for n, t in columns), *EVENT]
    return json.dumps({"type": "record", "name": name, "fields": fields}, indent=1)


def key(*names: str) -> str:
    return json.dumps({"type": "record", "name": "Key", "fields": [{"name": n, "type": "long"} for n in names]})


class Still:
    """One configuration, one registry, one metastore."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        self.registry = MemoryRegistry()
        self.metastore = MemoryMetastore()
        self.settings = settings

    @property
    def config(self) -> Config:
        defaults = {"location": f"file://{self.root}/lake/{{topic}}"} | self.settings.get("defaults", {})
        return Config.model_validate({"registry": {"url": "file:///unused"}} | self.settings | {"defaults": defaults})

    @property
    def workspace(self) -> Workspace:
        @lru_cache
        def storage(location: str) -> Storage:
            lake = ArrowLake(location)
            return in_this_process(lake, lake.filesystem)

        return Workspace(
            config=self.config,
            registry=self.registry,
            metastore=self.metastore,
            sql=cast(Any, None),
            renderer=open_renderer(self.config),
            fold=cast(Any, None),
            storage=lambda target: storage(target.location),
            now_ms=lambda: 0,
            token=lambda: "0000",
        )

    def register(self, *texts: str, topic: str = "student", keys: Sequence[str] = ("id",), **more: Any) -> None:
        """Register the next versions of a topic's value, and its key the first time."""
        if keys and not self.registry.versions(f"{topic}-key"):
            self.registry.register(f"{topic}-key", key(*keys))
        for text in texts:
            self.registry.register(f"{topic}-value", text, **more)

    def plan(self) -> Plan:
        return plan(self.workspace)

    def settle(self) -> None:
        """Leave every table and view that is not held as apply would."""
        for target in map_tables(self.workspace).targets:
            self._put(lay_out_steps(self.workspace, look(self.workspace, target)))

    def _put(self, table: TablePlan) -> None:
        assert table.view is not None
        shape, target = table.view.decision.effective, table.target
        if not table.pending or shape is None or table.properties is None:
            return
        columns = tuple(ddl.hive_column(c) for c in ddl.expected_columns(shape))
        keys = (HiveColumn(name=SEGMENT, type="string"),)
        self.put(
            target.table,
            database=target.database,
            columns=columns,
            partition_keys=keys,
            location=self.workspace.storage(target).lake.root,
            formats=PARQUET,
            properties=spark_schema.rewritten(write_properties(table.properties), columns, keys),
        )
        body = view_select(self.workspace, target, shape, Contents())
        shown = tuple(
            HiveColumn(name=name, type=ddl.hive_type(type_), comment=comment)
            for name, type_, comment in ddl.shown_columns(target, shape)
        )
        properties = spark_schema.rewritten({SUBJECT: target.subject}, shown, ())
        self.put(
            target.view,
            database=target.database,
            kind="VIRTUAL_VIEW",
            columns=shown,
            properties=properties,
            view_text=body,
        )

    def view(self, name: str, text: str, database: str = "lake", **properties: str) -> None:
        """Make a view of somebody else."""
        self.put(name, database=database, kind="VIRTUAL_VIEW", properties=properties, view_text=text)

    def put(self, name: str, *, properties: Mapping[str, str], **more: Any) -> None:
        given: dict[str, Any] = {"database": "lake", "kind": "EXTERNAL_TABLE", "columns": (), "partition_keys": ()}
        self.metastore.put(HiveTable(name=name, properties=properties, **({"location": ""} | given | more)))
