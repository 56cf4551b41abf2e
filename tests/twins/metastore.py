"""A Hive metastore in memory, for tests that need its answers and not its engine.

Implements `schemasync.core.ports.Metastore` and passes the same behaviour suite as the real one. Tables are put into
it with ``put``, as SQL would make them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from schemasync.core import spark_schema
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable, PartitionSize
from schemasync.errors import EngineError


class MemoryMetastore:
    """Every call is one transaction."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.databases: set[str] = set()
        self._lock = threading.Lock()
        self._tables: dict[tuple[str, str], HiveTable] = {}
        self._partitions: dict[tuple[str, str], dict[str, HivePartition]] = {}

    def put(self, table: HiveTable) -> None:
        """Create or replace a table or view."""
        with self._lock:
            self._tables[table.database, table.name] = table
            self._partitions.setdefault((table.database, table.name), {})

    def retype_first(self, database: str, name: str, segment: str, type_: str) -> None:
        """Give a partition's first column another type, as someone with a client of their own would."""
        with self._lock:
            there = self._partitions[database, name]
            first, *rest = there[segment].columns
            there[segment] = replace(there[segment], columns=(replace(first, type=type_), *rest))

    def table(self, database: str, name: str) -> HiveTable | None:
        with self._lock:
            return self._tables.get((database, name))

    def tables(self, database: str, names: Iterable[str]) -> Mapping[str, HiveTable]:
        with self._lock:
            return {name: self._tables[database, name] for name in names if (database, name) in self._tables}

    def names(self, database: str, pattern: str) -> tuple[str, ...]:
        with self._lock:
            patterns = pattern.split("|")
            here = (n for d, n in self._tables if d == database)
            return tuple(sorted(n for n in here if any(fnmatchcase(n, one) for one in patterns)))

    def views(self) -> tuple[HiveTable, ...]:
        with self._lock:
            return tuple(t for _, t in sorted(self._tables.items()) if t.kind in {"VIRTUAL_VIEW", "MATERIALIZED_VIEW"})

    def swap_properties(self, database: str, name: str, *, key: str, expected: str, changes: Mapping[str, str]) -> bool:
        with self._lock:
            table = self._found(database, name)
            if table.properties.get(key) != expected:
                return False
            self._tables[database, name] = replace(table, properties={**table.properties, **changes})
            return True

    def partitions(self, database: str, name: str) -> Mapping[str, str]:
        return {s: p.location for s, p in self.described_partitions(database, name).items()}

    def described_partitions(
        self, database: str, name: str, *, about: int | None = None
    ) -> Mapping[str, HivePartition]:
        del about
        with self._lock:
            self._found(database, name)
            return dict(self._partitions[database, name])

    def create_database(self, name: str) -> None:
        with self._lock:
            self.databases.add(name)

    def add_partitions(
        self,
        database: str,
        name: str,
        locations: Mapping[str, str],
        sizes: Mapping[str, PartitionSize] | None = None,
    ) -> None:
        with self._lock:
            table = self._found(database, name)
            new = {
                s: HivePartition(
                    location=place, columns=table.columns, formats=table.formats, size=(sizes or {}).get(s)
                )
                for s, place in locations.items()
            }
            self._partitions[database, name] = new | self._partitions[database, name]

    def move_partitions(self, database: str, name: str, locations: Mapping[str, str]) -> None:
        with self._lock:
            columns = self._found(database, name).columns
            there = self._partitions[database, name]
            moved = {
                s: replace(there[s], location=place, columns=columns) for s, place in locations.items() if s in there
            }
            self._partitions[database, name] = there | moved

    def drop_partitions(self, database: str, name: str, partitions: Iterable[str]) -> None:
        gone = set(partitions)
        with self._lock:
            self._found(database, name)
            there = self._partitions[database, name]
            self._partitions[database, name] = {s: p for s, p in there.items() if s not in gone}

    def setting(self, key: str, default: str) -> str:
        return self.settings.get(key, default)

    def replace_columns(self, database: str, name: str, columns: Sequence[HiveColumn]) -> None:
        with self._lock:
            table = self._found(database, name)
            properties = spark_schema.rewritten(table.properties, columns, table.partition_keys)
            self._tables[database, name] = replace(table, columns=tuple(columns), properties=properties)
            there = self._partitions[database, name]
            self._partitions[database, name] = {s: replace(p, columns=tuple(columns)) for s, p in there.items()}

    def restore_table(self, database: str, name: str, *, location: str, formats: Sequence[str]) -> None:
        with self._lock:
            table = self._found(database, name)
            properties = {k: v for k, v in table.properties.items() if k != "external.table.purge"}
            self._tables[database, name] = replace(
                table,
                kind="EXTERNAL_TABLE",
                location=location,
                formats=tuple(formats),
                properties=properties | {"EXTERNAL": "TRUE"},
            )
            there = self._partitions[database, name]
            self._partitions[database, name] = {s: replace(p, formats=tuple(formats)) for s, p in there.items()}

    def redefine_view(self, database: str, name: str, *, source: str) -> None:
        with self._lock:
            self._found(database, name)
            self._tables[database, name] = replace(self._found(database, source), name=name)
            del self._tables[database, source]

    def set_view_text(self, database: str, name: str, text: str, *, expected: str | None = None) -> bool:
        with self._lock:
            there = self._tables.get((database, name))
            if expected is not None and (there is None or there.query != expected):
                return False
            view = self._found(database, name)
            self._tables[database, name] = replace(view, view_text=text, expanded_text=text)
            return True

    def _found(self, database: str, name: str) -> HiveTable:
        if (database, name) not in self._tables:
            raise EngineError("the metastore refused the call", where=f"{database}.{name}", why="no such table")
        return self._tables[database, name]
