"""What every metastore must do: the embedded one, and the twin in memory.

Above all what publishing stands on: a compare-and-set that loses no update, and partitions that move in one
transaction for readers.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from schemasync.core.drift import PARQUET
from schemasync.core.partitioning import directory_of, partition_name
from schemasync.core.ports import HiveColumn, HivePartition, HiveTable, Metastore
from schemasync.core.spark_schema import disagreement
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

    def retype(self, segment: str, type_: str) -> None:
        """Give a partition's first column another type, as a person would."""
        ...

    def locations(self) -> Callable[[], Mapping[str, str]]:
        """Return a reader of its own, as another process would have one."""
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
                spark_columns=("id", "name", "segment", *by),
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

    def retype(self, segment: str, type_: str) -> None:
        self.metastore.retype_first(self.database, TABLE, segment, type_)

    def locations(self) -> Callable[[], Mapping[str, str]]:
        return lambda: self.metastore.partitions(self.database, TABLE)


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

    def retype(self, segment: str, type_: str) -> None:
        jvm: Any = self.session._jvm
        catalog: Any = self.session._jsparkSession.sharedState().externalCatalog()
        client = catalog.unwrapped().client().client().getMSC()
        (partition,) = (p for p in client.listPartitions(self.database, TABLE, -1) if p.getValues().get(0) == segment)
        partition.getSd().getCols().get(0).setType(type_)
        context = jvm.org.apache.hadoop.hive.metastore.api.EnvironmentContext()
        context.setProperties(jvm.java.util.HashMap())
        client.alter_partition(self.database, TABLE, partition, context)

    def locations(self) -> Callable[[], Mapping[str, str]]:
        jvm: Any = self.session._jvm
        catalog: Any = self.session._jsparkSession.sharedState().externalCatalog()
        conf = catalog.unwrapped().client().client().getConf()
        client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)

        def read() -> Mapping[str, str]:
            found = client.listPartitions(self.database, TABLE, -1)
            return {p.getValues().get(0): p.getSd().getLocation() for p in found}

        return read


@pytest.fixture(params=["memory", pytest.param("hive", marks=pytest.mark.spark)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    made: Server = Memory() if request.param == "memory" else Hive(request.getfixturevalue("spark"), f"file:{tmp_path}")
    made.create(TABLE, {KEY: "0"})
    return made


def partitions(server: Server) -> Mapping[str, str]:
    return server.metastore.partitions(server.database, TABLE)


def value(server: Server) -> str:
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    return table.properties[KEY]


def test_a_table_is_read_as_it_is(server: Server) -> None:
    table = server.metastore.table(server.database, TABLE)
    assert table is not None
    assert (table.kind, table.columns, table.partition_keys, table.location, table.spark_columns) == (
        "EXTERNAL_TABLE",
        (HiveColumn(name="id", type="bigint"), HiveColumn(name="name", type="string", comment="who")),
        (HiveColumn(name="segment", type="string"),),
        f"{server.root}/{TABLE}",
        ("id", "name", "segment"),
    )


def test_a_table_that_is_not_there_is_none(server: Server) -> None:
    assert server.metastore.table(server.database, "teacher") is None


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
    texts = {"names": "SELECT 1 AS one", "a_view": "SELECT 2 AS two"}
    for name, text in texts.items():
        server.view(name, text)
    here = [v for v in server.metastore.views() if v.database == server.database]
    assert [(v.name, v.kind, v.view_text, v.expanded_text) for v in here] == [
        (name, "VIRTUAL_VIEW", texts[name], texts[name]) for name in sorted(texts)
    ]


def test_added_partitions_stand_at_their_places(server: Server) -> None:
    places = {f"delta_{n:08}": f"{server.root}/delta/{n}" for n in range(1, 4)}
    server.metastore.add_partitions(server.database, TABLE, places)
    assert partitions(server) == places


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
    server.create("parted", {}, "country", "city")
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


def test_replaced_columns_are_those_of_the_table_of_its_partitions_and_of_sparks_copy(server: Server) -> None:
    columns = (HiveColumn(name="id", type="bigint"), HiveColumn(name="age", type="int", comment="in years"))
    server.metastore.add_partitions(server.database, TABLE, {"a": f"{server.root}/a"})
    server.metastore.replace_columns(server.database, TABLE, columns)
    table = server.metastore.table(server.database, TABLE)
    described = server.metastore.described_partitions(server.database, TABLE)
    assert table is not None
    assert (table.columns, table.spark_columns, table.properties[KEY]) == (columns, ("id", "age", "segment"), "0")
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
    before, wanted = (server.metastore.table(server.database, name) for name in ("seen", "next"))
    server.metastore.redefine_view(server.database, "seen", source="next")
    after = server.metastore.table(server.database, "seen")
    assert before is not None
    assert wanted is not None
    assert after is not None
    assert (after.name, after.owner, after.view_text) == ("seen", before.owner, wanted.view_text)
    assert (after.columns, after.spark_columns) == (wanted.columns, wanted.spark_columns)
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


READERS = 3
MOVES = 12


def test_partitions_that_move_in_one_call_are_one_transaction_for_readers(server: Server) -> None:
    """A writer moves 12 partitions from generation to generation; no read may see two generations."""
    segments = [f"base_s{n:08}" for n in range(12)]
    server.metastore.add_partitions(server.database, TABLE, {s: f"{server.root}/g=0/{s}" for s in segments})
    reads: list[set[str]] = []
    done = threading.Event()

    def write() -> None:
        try:
            # So many moves however slow the machine is, and a look between any two.
            for generation in range(1, MOVES + 1):
                looks = len(reads)
                places = {s: f"{server.root}/g={generation}/{s}" for s in segments}
                server.metastore.move_partitions(server.database, TABLE, places)
                while len(reads) == looks:
                    time.sleep(0.001)
        finally:
            done.set()

    def read(_: int) -> None:
        locations = server.locations()
        while not done.is_set():
            reads.append({place.split("/")[-2] for place in locations().values()})

    with ThreadPoolExecutor(READERS + 1) as threads:
        writer = threads.submit(write)
        list(threads.map(read, range(READERS)))
        writer.result()
    moved = {generation for seen in reads for generation in seen}
    assert [seen for seen in reads if len(seen) != 1] == []
    assert len(moved) >= 3, "the readers hardly saw anything move: this proves nothing"
