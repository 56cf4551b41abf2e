"""What every metastore must do: the embedded one, and the twin in memory.

Above all what publishing stands on: a compare-and-set that loses no update.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pytest
from py4j.java_collections import JavaList
from py4j.protocol import Py4JJavaError

from schemasync.core.drift import PARQUET
from schemasync.core.partitioning import directory_of, partition_name
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable, Metastore, PartitionSize
from schemasync.core.spark_schema import disagreement, read_fields
from schemasync.errors import EngineError
from tests.twins.metastore import MemoryMetastore

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEY = "schemasync.state"
TABLE = "student"

_NUMBERS = itertools.count(1)


class Server(Protocol):
    """A metastore with one database, and how tables come into it."""

    @property
    def metastore(self) -> Metastore: ...

    database: str
    root: str

    def create(self, name: str, properties: Mapping[str, str], *by: str) -> None:
        """Make a table that is partitioned by the segment, and by texts of these names."""
        ...

    def view(self, name: str, text: str) -> None: ...

    def materialize(self, name: str) -> None:
        """Make a view a materialized one, as Hive would."""
        ...

    def expand(self, name: str, text: str) -> None:
        """Change the text of a view that engines run alone, as a person with a client of his own would."""
        ...

    def retype(self, segment: str, type_: str) -> None:
        """Give a partition's first column another type, as a person would."""
        ...

    def manage(self) -> None:
        """Make the table a managed one, as a person would: Hive deletes what is dropped of it, unless it is told."""
        ...


class Memory:
    metastore: MemoryMetastore

    def __init__(self) -> None:
        self.metastore = MemoryMetastore()
        self.database, self.root = "lake", "file:/lake"

    def create(self, name: str, properties: Mapping[str, str], *by: str) -> None:
        self.metastore.put(
            HiveTable(
                database=self.database,
                name=name,
                kind="EXTERNAL_TABLE",
                columns=(HiveColumn(name="id", type="bigint"), HiveColumn(name="name", type="string", comment="who")),
                partition_keys=tuple(HiveColumn(name=key, type="string") for key in ("segment", *by)),
                location=f"{self.root}/{name}",
                properties=properties,
                formats=PARQUET,
            )
        )

    def view(self, name: str, text: str) -> None:
        self.metastore.put(
            HiveTable(
                database=self.database,
                name=name,
                kind="VIRTUAL_VIEW",
                columns=(),
                partition_keys=(),
                location="",
                properties={},
                view_text=text,
                expanded_text=text,
            )
        )

    def materialize(self, name: str) -> None:
        self._change(name, kind="MATERIALIZED_VIEW")

    def expand(self, name: str, text: str) -> None:
        self._change(name, expanded_text=text)

    def _change(self, name: str, **changes: Any) -> None:
        view = self.metastore.table(self.database, name)
        assert view is not None
        self.metastore.put(replace(view, **changes))

    def retype(self, segment: str, type_: str) -> None:
        self.metastore.retype_first(self.database, TABLE, segment, type_)

    def manage(self) -> None:
        """Nothing here deletes files."""


class Hive:
    def __init__(self, session: SparkSession, root: str) -> None:
        from schemasync.io.metastore_hive import HiveMetastore

        self.session = session
        self.metastore = HiveMetastore(session)
        self.database, self.root = f"behaviour{next(_NUMBERS)}", root
        session.sql(f"CREATE DATABASE {self.database}")

    def create(self, name: str, properties: Mapping[str, str], *by: str) -> None:
        keys = ", ".join(f"{key} STRING" for key in ("segment", *by))
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        self.session.sql(
            f"CREATE EXTERNAL TABLE {self.database}.{name} (id BIGINT, name STRING COMMENT 'who') "
            f"PARTITIONED BY ({keys}) STORED AS PARQUET LOCATION '{self.root}/{name}' TBLPROPERTIES ({listed})"
        )

    def view(self, name: str, text: str) -> None:
        self.session.sql(f"CREATE VIEW {self.database}.{name} AS {text}")

    def materialize(self, name: str) -> None:
        view = self._client.getTable(self.database, name)
        view.setTableType("MATERIALIZED_VIEW")
        view.getSd().setLocation(f"{self.root}/{name}")
        self._client.alter_table(self.database, name, view)

    def expand(self, name: str, text: str) -> None:
        view = self._client.getTable(self.database, name)
        view.setViewExpandedText(text)
        self._client.alter_table(self.database, name, view)

    @property
    def _client(self) -> Any:
        catalog: Any = self.session._jsparkSession.sharedState().externalCatalog()
        return catalog.unwrapped().client().client().getMSC()

    def retype(self, segment: str, type_: str) -> None:
        jvm: Any = self.session._jvm
        client = self._client
        partition = client.getPartition(self.database, TABLE, f"segment={segment}")
        partition.getSd().getCols().get(0).setType(type_)
        context = jvm.org.apache.hadoop.hive.metastore.api.EnvironmentContext()
        context.setProperties(jvm.java.util.HashMap())
        client.alter_partition(self.database, TABLE, partition, context)

    def manage(self) -> None:
        jvm: Any = self.session._jvm
        client = self._client
        table = client.getTable(self.database, TABLE)
        table.setTableType("MANAGED_TABLE")
        table.getParameters().put("EXTERNAL", "FALSE")
        context = jvm.org.apache.hadoop.hive.metastore.api.EnvironmentContext()
        context.setProperties(jvm.java.util.HashMap())
        client.alter_table_with_environmentContext(self.database, TABLE, table, context)


def _slow(_: JavaList) -> NoReturn:
    raise AssertionError("the end of a Java iterator is an exception, which pyspark takes 20 ms to tell")


def ready(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    server.create(TABLE, {KEY: "0"})
    monkeypatch.setattr(JavaList, "__iter__", _slow)
    return server


@pytest.fixture(params=["memory", pytest.param("hive", marks=pytest.mark.spark)])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    made: Server = Memory() if request.param == "memory" else Hive(request.getfixturevalue("spark"), f"file:{tmp_path}")
    return ready(made, monkeypatch)


def partitions(server: Server) -> Mapping[str, str]:
    return server.metastore.partitions(server.database, TABLE)


def value(server: Server) -> str:
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    return table.properties[KEY]


def test_a_table_is_read_as_it_is(server: Server) -> None:
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    assert (table.kind, table.columns, table.partition_keys, table.location) == (
        "EXTERNAL_TABLE",
        (HiveColumn(name="id", type="bigint"), HiveColumn(name="name", type="string", comment="who")),
        (HiveColumn(name="segment", type="string"),),
        f"{server.root}/{TABLE}",
    )


def test_a_table_that_is_not_there_is_none(server: Server) -> None:
    assert server.metastore.table(server.database, "teacher") is None


def test_tables_and_views_are_read_together_and_what_is_not_there_is_left_out(server: Server) -> None:
    server.view("student_view", "SELECT 1 AS one")
    found = server.metastore.tables(server.database, ["student_view", "teacher", TABLE])
    assert found == {name: server.metastore.table(server.database, name) for name in ("student_view", TABLE)}


def test_of_a_database_that_is_not_there_no_tables_are_read(server: Server) -> None:
    assert server.metastore.tables("nowhere", [TABLE]) == {}


def test_names_match_a_pattern_and_are_sorted(server: Server) -> None:
    for name in ("student_incremental_2026112001", "student_incremental_2026112000", "students"):
        server.create(name, {KEY: "0"})
    assert server.metastore.names(server.database, "student_incremental_*") == (
        "student_incremental_2026112000",
        "student_incremental_2026112001",
    )


def test_names_match_one_of_several_patterns(server: Server) -> None:
    for name in ("student_base", "student_incremental_2026112000", "students"):
        server.create(name, {KEY: "0"})
    found = server.metastore.names(server.database, "student_base|student_incremental_*|student_compactor")
    assert found == ("student_base", "student_incremental_2026112000")


def test_a_name_without_a_star_matches_itself_only(server: Server) -> None:
    server.create("student_view", {KEY: "0"})
    assert server.metastore.names(server.database, "student") == ("student",)


def test_the_views_of_all_databases_are_listed_with_their_texts_and_no_tables(server: Server) -> None:
    texts = {"names": "SELECT 1 AS one", "kept": "SELECT 3 AS three", "a_view": "SELECT 2 AS two"}
    for name, text in texts.items():
        server.view(name, text)
    server.materialize("kept")
    kinds = dict.fromkeys(texts, "VIRTUAL_VIEW") | {"kept": "MATERIALIZED_VIEW"}
    here = [v for v in server.metastore.views() if v.database == server.database]
    assert [(v.name, v.kind, v.view_text, v.expanded_text) for v in here] == [
        (name, kinds[name], texts[name], texts[name]) for name in sorted(texts)
    ]


def test_a_database_is_made_once_and_stays_as_it_is(server: Server) -> None:
    server.database = f"{server.database}_new"
    for _ in range(2):
        server.metastore.create_database(server.database)
    server.create("teacher", {KEY: "0"})
    server.metastore.create_database(server.database)
    assert server.metastore.names(server.database, "*") == ("teacher",)


def test_added_partitions_stand_at_their_places(server: Server) -> None:
    places = {f"delta_{n:08}": f"{server.root}/delta/{n}" for n in range(1, 4)}
    server.metastore.add_partitions(server.database, TABLE, places)
    assert partitions(server) == places


def test_of_added_partitions_it_is_known_what_they_hold(server: Server) -> None:
    sizes = {f"s{n}": PartitionSize(files=n, rows=2**40 + n, bytes=10 * n) for n in range(2)}
    places = {name: f"{server.root}/{name}" for name in (*sizes, "untold")}
    server.metastore.add_partitions(server.database, TABLE, places, sizes)
    server.metastore.move_partitions(server.database, TABLE, {"s1": f"{server.root}/other"})
    described = server.metastore.described_partitions(server.database, TABLE)
    assert {name: partition.size for name, partition in described.items()} == {**sizes, "untold": None}


def test_adding_again_leaves_what_is_there(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/1"})
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/2", "b": f"{server.root}/3"})
    assert partitions(server) == {"a": f"{server.root}/1", "b": f"{server.root}/3"}


def test_moved_partitions_stand_at_their_new_places_and_others_where_they_were(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {s: f"{server.root}/1/{s}" for s in "abc"})
    server.metastore.move_partitions(server.database, TABLE, {s: f"{server.root}/2/{s}" for s in "ab"})
    assert partitions(server) == {
        "a": f"{server.root}/2/a",
        "b": f"{server.root}/2/b",
        "c": f"{server.root}/1/c",
    }


def test_moving_nothing_does_nothing(server: Server) -> None:
    server.metastore.move_partitions(server.database, TABLE, {})
    assert partitions(server) == {}


def test_dropping_passes_over_what_is_gone(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {s: f"{server.root}/{s}" for s in "abc"})
    server.metastore.drop_partitions(server.database, TABLE, ["a", "gone", "c"])
    server.metastore.drop_partitions(server.database, TABLE, ["a"])
    assert partitions(server) == {"b": f"{server.root}/b"}


def test_user_partitions_are_registered_moved_and_dropped_by_their_names(server: Server) -> None:
    server.create("parted", {KEY: "0"}, "country", "city")
    directories = [directory_of(["country", "city"], pair) for pair in (("DE", "a/b=c %"), ("DE", None), (None, "ü'"))]
    names = [partition_name(segment, place) for segment in ("base_s1", "delta_1") for place in directories]
    places = {name: f"{server.root}/parted/{n}" for n, name in enumerate(names)}
    metastore, database = server.metastore, server.database
    metastore.add_partitions(database, "parted", places)
    assert metastore.partitions(database, "parted") == places
    moved = {names[0]: f"{server.root}/parted/elsewhere", names[2]: f"{server.root}/parted/there"}
    metastore.move_partitions(database, "parted", moved)
    assert metastore.partitions(database, "parted") == places | moved
    metastore.drop_partitions(database, "parted", [names[0], names[4], "base_s2"])
    gone = {names[0], names[4]}
    assert metastore.partitions(database, "parted") == {n: p for n, p in (places | moved).items() if n not in gone}


@pytest.mark.parametrize("batch", [2, 500])
def test_any_number_of_partitions_is_dropped_and_others_stay(
    server: Server, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr("schemasync.io.metastore_hive._BATCH", batch)
    segments = [f"delta_{n:08}" for n in range(7)]
    server.metastore.add_partitions(server.database, TABLE, {s: f"{server.root}/{s}" for s in segments})
    server.metastore.drop_partitions(server.database, TABLE, ["gone", *segments[:3], "gone too", *segments[4:6]])
    assert list(partitions(server)) == [segments[3], segments[6]]
    server.metastore.drop_partitions(server.database, TABLE, ["gone", segments[6]])
    assert list(partitions(server)) == [segments[3]]


@pytest.mark.parametrize("about", [0, 3, 100])
def test_partitions_are_described_alike_however_many_there_should_be(server: Server, about: int) -> None:
    places = {f"delta_{n:08}": f"{server.root}/{n}" for n in range(3)}
    server.metastore.add_partitions(server.database, TABLE, places)
    told = server.metastore.described_partitions(server.database, TABLE, about=about)
    assert told == server.metastore.described_partitions(server.database, TABLE)
    assert {name: found.location for name, found in told.items()} == places


def test_partitions_that_people_named_oddly_are_dropped_and_those_called_alike_stay(server: Server) -> None:
    odd = [partition_name(text) for text in ("a=b", "50%", "a/b", 'who\'s "who"', "[a] {b}", "ü 中", "a b")]
    server.metastore.add_partitions(
        server.database, TABLE, {s: f"{server.root}/{n}" for n, s in enumerate([*odd, "a"])}
    )
    server.metastore.drop_partitions(server.database, TABLE, odd)
    assert list(partitions(server)) == ["a"]


def test_the_files_of_dropped_partitions_stay_also_where_someone_made_the_table_managed(
    server: Server, tmp_path: Path
) -> None:
    server.manage()
    files = [tmp_path / segment / "part-00000.parquet" for segment in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(b"rows")
    server.metastore.add_partitions(server.database, TABLE, {f.parent.name: f"file:{f.parent}" for f in files})
    server.metastore.drop_partitions(server.database, TABLE, ["a", "b"])
    assert (partitions(server), [file.read_bytes() for file in files]) == ({}, [b"rows", b"rows"])


def test_dropping_nothing_does_nothing(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/a"})
    server.metastore.drop_partitions(server.database, TABLE, [])
    assert list(partitions(server)) == ["a"]


def test_dropping_partitions_of_a_table_that_is_not_there_is_an_error_that_names_it(server: Server) -> None:
    with pytest.raises(EngineError, match=rf"{server.database}\.teacher"):
        server.metastore.drop_partitions(server.database, "teacher", ["a"])


def test_replaced_columns_are_those_of_the_table_of_its_partitions_and_of_sparks_copy(server: Server) -> None:
    columns = (HiveColumn(name="id", type="bigint"), HiveColumn(name="age", type="int", comment="in years"))
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/a"})
    server.metastore.replace_columns(server.database, TABLE, columns)
    table = server.metastore.table(server.database, TABLE)
    described = server.metastore.described_partitions(server.database, TABLE)
    assert table is not None
    assert (table.columns, table.properties[KEY]) == (columns, "0")
    assert (described["a"].columns, disagreement(table.properties, columns, table.partition_keys)) == (columns, "")


def test_replacing_columns_with_those_that_are_there_makes_partitions_follow(server: Server) -> None:
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/a"})
    server.retype("a", "int")
    before = server.metastore.described_partitions(server.database, TABLE)["a"].columns[0].type
    server.metastore.replace_columns(server.database, TABLE, table.columns)
    after = server.metastore.described_partitions(server.database, TABLE)["a"].columns
    assert (before, after) == ("int", table.columns)


def test_partitions_are_described_with_the_columns_and_formats_of_their_table(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {s: f"{server.root}/{s}" for s in "ab"})
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    assert server.metastore.described_partitions(server.database, TABLE) == {
        s: HivePartition(location=f"{server.root}/{s}", columns=table.columns, formats=PARQUET) for s in "ab"
    }


def test_a_restored_table_is_external_in_its_place_and_purges_nothing(server: Server) -> None:
    server.create("managed", {KEY: "0", "external.table.purge": "true", "team": "blue"})
    server.metastore.add_partitions(server.database, "managed", {"a": f"{server.root}/a"})
    server.metastore.restore_table(server.database, "managed", location=f"{server.root}/there", formats=PARQUET[::-1])
    table = server.metastore.table(server.database, "managed")
    partition = server.metastore.described_partitions(server.database, "managed")["a"]
    assert table is not None
    assert (table.kind, table.location, table.formats) == (
        "EXTERNAL_TABLE",
        f"{server.root}/there",
        PARQUET[::-1],
    )
    assert (table.properties["team"], "external.table.purge" in table.properties) == ("blue", False)
    assert (partition.location, partition.formats) == (f"{server.root}/a", PARQUET[::-1])


def test_a_view_takes_the_definition_of_another_which_goes(server: Server) -> None:
    server.view("seen", "SELECT 1 AS a")
    server.view("next", "SELECT 2 AS b")
    wanted = server.metastore.table(server.database, "next")
    server.metastore.redefine_view(server.database, "seen", source="next")
    after = server.metastore.table(server.database, "seen")
    assert wanted is not None
    assert after is not None
    assert (after.name, after.view_text) == ("seen", wanted.view_text)
    assert (after.columns, read_fields(after.properties)) == (wanted.columns, read_fields(wanted.properties))
    assert server.metastore.table(server.database, "next") is None


def test_a_view_gets_another_text_and_keeps_all_else(server: Server) -> None:
    server.view("seen", "SELECT 1 AS a")
    before = server.metastore.table(server.database, "seen")
    server.metastore.set_view_text(server.database, "seen", "SELECT 2 AS a")
    after = server.metastore.table(server.database, "seen")
    assert before is not None
    assert after is not None
    clock = {"transient_lastDdlTime"}
    before, after = (
        replace(v, properties={k: v.properties[k] for k in v.properties.keys() - clock}) for v in (before, after)
    )
    assert after == replace(before, view_text="SELECT 2 AS a", expanded_text="SELECT 2 AS a")


@pytest.mark.parametrize("text", ["SELECT 1 AS a", "SELECT 'Grüße, 日本\\n' AS a", f"SELECT '{'x' * 30_000}' AS a"])
def test_a_view_gets_another_text_only_if_it_has_the_one_that_was_seen(server: Server, text: str) -> None:
    server.view("seen", "SELECT 0 AS a")
    store, database = server.metastore, server.database
    assert not store.set_view_text(database, "gone", text, expected="SELECT 0 AS a")
    assert not store.set_view_text(database, "seen", text, expected="SELECT 9 AS a")
    before = store.table(database, "seen")
    assert before is not None
    assert before.view_text == before.expanded_text == "SELECT 0 AS a"
    assert store.set_view_text(database, "seen", text, expected=before.view_text)
    seen = store.table(database, "seen")
    assert seen is not None
    assert store.set_view_text(database, "seen", "SELECT 2 AS a", expected=seen.view_text)
    after = store.table(database, "seen")
    assert after is not None
    assert after.view_text == after.expanded_text == "SELECT 2 AS a"


def test_of_a_views_two_texts_the_one_that_engines_run_is_compared(server: Server) -> None:
    server.view("seen", "SELECT 0 AS a")
    server.expand("seen", "SELECT 9 AS a")
    store, database = server.metastore, server.database
    assert not store.set_view_text(database, "seen", "SELECT 1 AS a", expected="SELECT 0 AS a")
    assert store.set_view_text(database, "seen", "SELECT 1 AS a", expected="SELECT 9 AS a")
    after = store.table(database, "seen")
    assert after is not None
    assert after.view_text == after.expanded_text == after.query == "SELECT 1 AS a"


def test_a_view_that_is_redefined_over_and_over_is_never_missing(server: Server) -> None:
    server.view("seen", "SELECT 0 AS a")
    done = threading.Event()

    def look() -> list[bool]:
        seen = []
        while not done.is_set():
            seen.append(server.metastore.table(server.database, "seen") is not None)
        return seen

    with ThreadPoolExecutor(1) as threads:
        reader = threads.submit(look)
        for number in range(1, 6):
            server.view("next", f"SELECT {number} AS a")
            server.metastore.redefine_view(server.database, "seen", source="next")
        done.set()
    assert reader.result()
    assert all(reader.result())


def test_replacing_columns_keeps_the_partitions(server: Server) -> None:
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/a"})
    server.metastore.replace_columns(server.database, TABLE, [HiveColumn(name="id", type="bigint")])
    assert partitions(server) == {"a": f"{server.root}/a"}


def test_a_swap_sets_all_properties_and_keeps_others(server: Server) -> None:
    server.create("teacher", {KEY: "0", "owner.team": "people"})
    done = server.metastore.swap_properties(
        server.database, "teacher", key=KEY, expected="0", changes={KEY: "1", "schemasync.version": "2"}
    )
    table = server.metastore.table(server.database, "teacher")
    assert table is not None
    ours = {k: v for k, v in table.properties.items() if k in {KEY, "schemasync.version", "owner.team"}}
    assert (done, ours) == (True, {KEY: "1", "schemasync.version": "2", "owner.team": "people"})


def test_a_swap_is_refused_where_the_value_has_moved(server: Server) -> None:
    server.metastore.swap_properties(server.database, TABLE, key=KEY, expected="0", changes={KEY: "1"})
    again = server.metastore.swap_properties(server.database, TABLE, key=KEY, expected="0", changes={KEY: "2"})
    assert (again, value(server)) == (False, "1")


def test_a_swap_of_a_property_that_is_not_there_is_refused(server: Server) -> None:
    assert not server.metastore.swap_properties(server.database, TABLE, key="other", expected="0", changes={})


def test_a_table_that_is_not_there_is_an_error_that_names_it(server: Server) -> None:
    with pytest.raises(EngineError, match=rf"{server.database}\.teacher"):
        server.metastore.swap_properties(server.database, "teacher", key=KEY, expected="0", changes={KEY: "1"})


def test_of_racing_swaps_no_update_is_lost(server: Server) -> None:
    """Threads count up together, each swap from what it read: every success is one step."""

    def count(_: int) -> int:
        won = 0
        for _ in range(6):
            now = value(server)
            won += server.metastore.swap_properties(
                server.database, TABLE, key=KEY, expected=now, changes={KEY: str(int(now) + 1)}
            )
        return won

    with ThreadPoolExecutor(4) as threads:
        won = sum(threads.map(count, range(4)))
    assert won == int(value(server)) > 0


def test_of_swaps_from_one_state_exactly_one_wins(server: Server) -> None:
    start = threading.Barrier(4)

    def swap(who: int) -> bool:
        start.wait()
        return server.metastore.swap_properties(
            server.database, TABLE, key=KEY, expected="0", changes={KEY: f"1-{who}"}
        )

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(swap, range(4))) == [False, False, False, True]


@pytest.mark.parametrize("repair", ["restore_table", "replace_columns"])
def test_a_repair_takes_back_no_swap_and_fails_for_none(server: Server, repair: str) -> None:
    store, database = server.metastore, server.database
    table = store.table(database, TABLE)
    assert table is not None
    done = threading.Event()

    def repairs() -> None:
        while not done.is_set():
            if repair == "restore_table":
                store.restore_table(database, TABLE, location=table.location, formats=PARQUET)
            else:
                store.replace_columns(database, TABLE, table.columns)

    with ThreadPoolExecutor(1) as threads:
        repairing = threads.submit(repairs)
        try:
            for n in range(12):
                assert store.swap_properties(database, TABLE, key=KEY, expected=str(n), changes={KEY: str(n + 1)})
        finally:
            done.set()
    assert (repairing.exception(), value(server)) == (None, "12")


WORKERS = 4
ROUNDS = 2


def test_threads_that_work_on_tables_of_their_own_do_not_meet(server: Server) -> None:
    """Reads, compare-and-sets, and partitions that come, move and go: all at once, through one instance."""
    for number in range(WORKERS):
        server.create(f"of{number}", {KEY: "0"})
        server.view(f"seen{number}", "SELECT 0 AS a")
    start = threading.Barrier(WORKERS)

    def work(number: int) -> tuple[list[str], str, str]:
        name, (store, database) = f"of{number}", (server.metastore, server.database)
        root = f"{server.root}/{name}"
        start.wait()
        for turn in range(ROUNDS):
            places = {f"{name}_{turn}_{n}": f"{root}/{turn}/{n}" for n in range(4)}
            store.add_partitions(database, name, places)
            assert store.swap_properties(database, name, key=KEY, expected=str(turn), changes={KEY: str(turn + 1)})
            store.move_partitions(database, name, {s: f"{place}/moved" for s, place in places.items()})
            store.drop_partitions(database, name, sorted(places)[1:])
            store.set_view_text(database, f"seen{number}", f"SELECT {turn} AS a")
            assert store.names(database, f"{name}|seen{number}") == (name, f"seen{number}")
        table, view = store.table(database, name), store.table(database, f"seen{number}")
        assert table is not None
        assert view is not None
        return sorted(store.partitions(database, name).values()), table.properties[KEY], view.view_text

    with ThreadPoolExecutor(WORKERS) as threads:
        found = list(threads.map(work, range(WORKERS)))
    last = f"SELECT {ROUNDS - 1} AS a"
    assert found == [
        ([f"{server.root}/of{number}/{turn}/0/moved" for turn in range(ROUNDS)], str(ROUNDS), last)
        for number in range(WORKERS)
    ]


class OneAtATime:
    """A Hive client that writes down every call in which one thread meets another."""

    def __init__(self, client: Any, meetings: list[str]) -> None:
        self.inner = client
        self._meetings = meetings
        self._user: int | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            me = threading.get_ident()
            if self._user not in {None, me}:
                self._meetings.append(name)
            self._user = me
            try:
                time.sleep(0.002)
                return getattr(self.inner, name)(*arguments)
            finally:
                self._user = None

        return call


@pytest.fixture
def hive(spark: SparkSession, tmp_path: Path) -> Hive:
    made = Hive(spark, f"file:{tmp_path}")
    made.create(TABLE, {KEY: "0"})
    return made


def stand_before(hive: Hive, monkeypatch: pytest.MonkeyPatch, stand: Callable[[Any], Any]) -> None:
    """Have a metastore use new clients, and put before each, and before its service, what knows it as ``inner``."""
    from schemasync.io import metastore_hive

    monkeypatch.setattr(metastore_hive, "_IDLE", {})
    hive.metastore = metastore_hive.HiveMetastore(hive.session)
    new, service = hive.metastore._new_client, hive.metastore._service
    monkeypatch.setattr(hive.metastore, "_new_client", lambda *given: stand(new(*given)))
    monkeypatch.setattr(hive.metastore, "_service", lambda client: stand(service(client.inner)))


def watched(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> tuple[list[OneAtATime], list[str]]:
    """Have a metastore use new clients; return those that it makes, and the calls in which two threads met in one."""
    made: list[OneAtATime] = []
    meetings: list[str] = []

    def make(client: Any) -> OneAtATime:
        made.append(OneAtATime(client, meetings))
        return made[-1]

    stand_before(hive, monkeypatch, make)
    return made, meetings


@pytest.mark.spark
def test_no_client_serves_two_threads_at_a_time_and_all_are_used_again(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, meetings = watched(hive, monkeypatch)
    partitions(hive)
    start = threading.Barrier(WORKERS)

    def read(_: int) -> None:
        start.wait()
        partitions(hive)

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(read, range(WORKERS * 4)))
    assert (meetings, 1 < len(made) <= WORKERS) == ([], True)


@pytest.mark.spark
def test_a_client_under_which_a_call_failed_is_not_used_again(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = watched(hive, monkeypatch)
    for _ in range(2):
        with pytest.raises(EngineError):
            hive.metastore.partitions(hive.database, "teacher")
    assert (partitions(hive), partitions(hive), len(made)) == ({}, {}, 3)


class Counting:
    """Stands before a client or its service, and counts the calls that change partitions."""

    def __init__(self, inner: Any, calls: list[str]) -> None:
        self.inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        if name in {"add_partitions", "alter_partitions", "drop_partitions_req"}:
            self._calls.append(name)
        return getattr(self.inner, name)


@pytest.mark.spark
def test_many_partitions_take_few_calls(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches bound what one call carries; a move is one call whatever it carries: one transaction."""
    from schemasync.io import metastore_hive

    calls: list[str] = []
    monkeypatch.setattr(metastore_hive, "_BATCH", 10)
    stand_before(hive, monkeypatch, lambda inner: Counting(inner, calls))
    names = [f"delta_{number:08}" for number in range(25)]
    hive.metastore.add_partitions(hive.database, TABLE, {name: f"{hive.root}/a/{name}" for name in names})
    hive.metastore.move_partitions(hive.database, TABLE, {name: f"{hive.root}/b/{name}" for name in names})
    assert set(partitions(hive).values()) == {f"{hive.root}/b/{name}" for name in names}
    hive.metastore.drop_partitions(hive.database, TABLE, names)
    assert partitions(hive) == {}
    assert calls == ["add_partitions"] * 3 + ["alter_partitions"] + ["drop_partitions_req"] * 3


@pytest.mark.spark
def test_partitions_that_follow_the_columns_of_their_table_are_altered_in_batches(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from schemasync.io import metastore_hive

    calls: list[str] = []
    names = [f"delta_{number:08}" for number in range(5)]
    hive.metastore.add_partitions(hive.database, TABLE, {name: f"{hive.root}/{name}" for name in names})
    table = hive.metastore.table(hive.database, TABLE)
    assert table is not None
    # Once, so that no comment is NULL: the table's own columns are right from then on.
    hive.metastore.replace_columns(hive.database, TABLE, table.columns)
    for name in names:
        hive.retype(name, "int")
    monkeypatch.setattr(metastore_hive, "_BATCH", 2)
    stand_before(hive, monkeypatch, lambda inner: Counting(inner, calls))
    hive.metastore.replace_columns(hive.database, TABLE, table.columns)
    described = hive.metastore.described_partitions(hive.database, TABLE)
    assert {name: described[name].columns for name in names} == dict.fromkeys(names, table.columns)
    assert calls == ["alter_partitions"] * 3


@pytest.mark.spark
def test_columns_of_a_table_and_of_its_partitions_are_replaced_in_one_call(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hive maps them by position: whoever reads between two calls, or after a kill there, has wrong columns."""

    class Dying:
        """Dies once the table was altered."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self._altered = False

        def __getattr__(self, name: str) -> Any:
            if self._altered:
                raise KeyboardInterrupt
            self._altered = name == "alter_table_with_environmentContext"
            return getattr(self.inner, name)

    wanted = (HiveColumn(name="name", type="string", comment="who"),)
    hive.metastore.add_partitions(hive.database, TABLE, {s: f"{hive.root}/{s}" for s in "ab"})
    looking = hive.metastore
    stand_before(hive, monkeypatch, Dying)
    with pytest.raises(KeyboardInterrupt):
        hive.metastore.replace_columns(hive.database, TABLE, wanted)
    table = looking.table(hive.database, TABLE)
    assert table is not None
    described = looking.described_partitions(hive.database, TABLE)
    assert [table.columns, *(described[s].columns for s in "ab")] == [wanted] * 3


@pytest.mark.spark
def test_a_move_that_the_metastore_refuses_has_moved_nothing(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {f"base_s{n:08}": f"{hive.root}/g=0/{n}" for n in range(12)}
    last = "base_s00000011"

    class Dropping:
        """Drops the last partition in the moment before all are moved."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            if name == "alter_partitions":
                self.inner.dropPartition(hive.database, TABLE, f"segment={last}", False)
            return getattr(self.inner, name)

    hive.metastore.add_partitions(hive.database, TABLE, places)
    stand_before(hive, monkeypatch, Dropping)
    with pytest.raises(EngineError):
        hive.metastore.move_partitions(hive.database, TABLE, {s: f"{place}/moved" for s, place in places.items()})
    del places[last]
    assert partitions(hive) == places


@pytest.mark.spark
@pytest.mark.parametrize(("digits", "pieces"), [(100, {0}), (30_000, set(range(2, 7))), (1_000_000, {0})])
def test_what_is_long_is_told_in_pieces_that_are_sent_at_once_unless_there_are_too_many(
    hive: Hive, monkeypatch: pytest.MonkeyPatch, digits: int, pieces: set[int]
) -> None:
    text = f"SELECT '{random.Random(digits).randbytes(digits // 2).hex()}' AS a"  # noqa: S311 - no secret
    hive.view("seen", "SELECT '' AS a")
    hive.metastore.set_view_text(hive.database, "seen", text)
    answers: list[str] = []
    lines = hive.metastore._lines

    class Reading:
        def __init__(self, source: Any) -> None:
            self.inner = lines(source)

        def readLine(self) -> str | None:  # noqa: N802 - Java's
            line: str | None = self.inner.readLine()
            answers.extend([] if line is None else [line])
            return line

    monkeypatch.setattr(hive.metastore, "_lines", Reading)
    view = hive.metastore.table(hive.database, "seen")
    assert view is not None
    assert (view.view_text, len(answers) in pieces) == (text, True)
    # With what py4j puts around it.
    assert all(len(answer) + 100 < 8192 for answer in answers)


@pytest.mark.spark
def test_a_materialized_view_of_which_hive_tells_nothing_is_listed_without_a_text(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm: Any = hive.session._jvm
    said = jvm.org.apache.hadoop.hive.metastore.api.MetaException("Your client does not appear to support it")

    class Hive3:
        """Refuses what its client is too old for, as one does that has materialized views which only take inserts."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def getTableObjectsByName(self, database: str, names: Any) -> Any:  # noqa: N802 - Java's
            if names.contains("kept"):
                raise Py4JJavaError("an error in Java", said)
            return self.inner.getTableObjectsByName(database, names)

    for name in ("a_view", "kept", "known"):
        hive.view(name, "SELECT 1 AS one")
    for name in ("kept", "known"):
        hive.materialize(name)
    stand_before(hive, monkeypatch, Hive3)
    here = [(v.name, v.query) for v in hive.metastore.views() if v.database == hive.database]
    assert here == [("a_view", "SELECT 1 AS one"), ("kept", ""), ("known", "SELECT 1 AS one")]


@pytest.mark.spark
def test_only_few_partitions_are_asked_for_one_by_one_and_spark_asks_as_before(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from schemasync.io import metastore_hive

    direct: list[str] = []
    setting = metastore_hive._DIRECT_SQL

    class Asking:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            if name in {"listPartitions", "drop_partitions_req"}:
                direct.append(self.inner.getMetaConf(setting))
            return getattr(self.inner, name)

    stand_before(hive, monkeypatch, Asking)
    names = [f"delta_{number:08}" for number in range(17)]
    hive.metastore.add_partitions(hive.database, TABLE, {name: f"{hive.root}/{name}" for name in names})
    for about in (None, 15, 16):
        hive.metastore.described_partitions(hive.database, TABLE, about=about)
    with pytest.raises(EngineError):
        hive.metastore.described_partitions(hive.database, "teacher", about=1)
    hive.metastore.drop_partitions(hive.database, TABLE, names[:1])
    hive.metastore.drop_partitions(hive.database, TABLE, names[1:])
    assert direct == ["true", "false", "true", "false", "false", "true"]
    with hive.metastore._client(hive.database, TABLE) as client:
        assert client.getMetaConf(setting) == "true"
