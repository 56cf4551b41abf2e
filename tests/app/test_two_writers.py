"""Two processes at the same time: one wins, the other says so, and the view is right at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemasync.app.applying import Applied, apply
from schemasync.app.compacting import compact
from schemasync.app.inspecting import map_tables
from schemasync.app.planning import plan
from schemasync.app.releasing import release
from schemasync.app.repairing import replace_view
from schemasync.app.states import properties_in_force, state_before
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.layering import Mode
from schemasync.core.policy import Verdict
from schemasync.core.properties import SUBJECT
from schemasync.core.release import Release
from schemasync.errors import ConflictError, DataError, EngineError, OwnershipError, StorageError
from tests.app.mortal import Fuse, mortal
from tests.app.still import Still, avro
from tests.lab import HOUR, Lab, NewLab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"
Rows = list[dict[str, Any]]


def event(key: int, **row: Any) -> dict[str, Any]:
    return {"id": key, "op": "c", "ts_ms": key} | row


def version(lab: Lab, number: int) -> None:
    """Register the next version: ``a`` is retyped in version 2 and widened away in version 3, which adds ``b``."""
    columns: list[Any] = [("a", ["null", {1: "long", 2: "string", 3: "string"}[number]])]
    lab.register(TOPIC, lab.flat("S", *columns, *([("b", ["null", "int"])] if number == 3 else [])))


def started(new_lab: NewLab) -> Lab:
    lab = new_lab()
    version(lab, 1)
    lab.land(TOPIC, [event(1, a=1)])
    lab.apply()
    version(lab, 2)
    return lab


def the_same(lab: Lab) -> None:
    lab.apply()


def a_newer_version(lab: Lab) -> None:
    version(lab, 3)
    lab.land(TOPIC, [event(2, a="2", b=2)], hour="2026112001")
    lab.apply()


AFTER: dict[Callable[[Lab], None], Rows] = {
    the_same: [{"id": 1, "a": "1"}],
    a_newer_version: [{"id": 1, "a": "1", "b": None}, {"id": 2, "a": "2", "b": 2}],
}


def interrupted(lab: Lab, after: int, other: Callable[[Lab], None]) -> Applied:
    """Apply, and let another process do its work after that many writing calls."""
    waiting = [other]

    def come() -> None:
        if waiting:
            waiting.pop()(lab)

    (applied,) = apply(mortal(lab.workspace, Fuse(after, die=come))).tables
    return applied


def test_whoever_is_overtaken_in_an_admission_leaves_the_view_of_the_winner(new_lab: NewLab) -> None:
    """These would have been the first rows of version 1; the other process makes them rows of version 2."""
    lab = new_lab()
    version(lab, 1)
    lab.apply()
    lab.land(TOPIC, [event(1, a=1)])

    def other(there: Lab) -> None:
        version(there, 2)
        there.apply()

    applied = interrupted(lab, 1, other)
    assert (type(applied.error), lab.rows(TABLE)) == (ConflictError, [{"id": 1, "a": "1"}])


@pytest.mark.parametrize("lands_more", [False, True])
def test_an_admission_under_a_version_that_is_over_is_never_put_in_force(new_lab: NewLab, lands_more: bool) -> None:
    """Its values were not there when the other process looked whether all of them fit."""
    lab = new_lab()
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "string"])))
    lab.land(TOPIC, [event(1, a="1")])
    lab.apply()
    lab.land(TOPIC, [event(2, a="many")], hour="2026112001", name="late.parquet")

    late = lab.root / "lake" / TOPIC / "incremental" / "increment_2026112001" / "late.parquet"

    def other(there: Lab) -> None:
        # It had listed what landed before this file did.
        aside = late.rename(there.root / "aside")
        there.register(TOPIC, there.flat("S", ("a", ["null", "int"])))
        there.apply()
        aside.rename(late)

    applied = interrupted(lab, 1, other)
    assert (type(applied.error), lab.rows(TABLE)) == (ConflictError, [{"id": 1, "a": 1}])
    for _ in range(2):
        (again,) = lab.apply().tables
        assert (again.error, "SS303" in {d.code for d in again.diagnostics}) == (None, True)
        assert lab.rows(TABLE) == [{"id": 1, "a": 1}]
    late.unlink()
    if lands_more:
        lab.land(TOPIC, [event(3, a=3)], hour="2026112002")
    (compacted,) = lab.compact().tables
    assert compacted.failure is None
    assert lab.rows(TABLE, order_by="id") == [{"id": 1, "a": 1}, *([{"id": 3, "a": 3}] if lands_more else [])]
    assert unnamed(lab) == []


def test_a_view_that_another_writer_makes_first_is_never_dropped_for_ours(new_lab: NewLab) -> None:
    lab = started(new_lab)
    workspace, name = lab.workspace, f"{TABLE}_view"
    view = f"`{lab.database}`.`{name}`"
    lab.session.sql(f"DROP VIEW {view}")
    statements: list[str] = []

    class Metastore:
        def __getattr__(self, called: str) -> Any:
            return getattr(workspace.metastore, called)

        def table(self, database: str, table: str) -> Any:
            found = workspace.metastore.table(database, table)
            if not statements and found is None:
                ours = f"'{SUBJECT}' = '{target.subject}'"
                lab.session.sql(f"CREATE VIEW {view} TBLPROPERTIES ({ours}) AS SELECT 1 AS a")
            return found

    class Sql:
        def execute(self, statement: str) -> None:
            statements.append(statement)
            workspace.sql.execute(statement)

    (target,) = map_tables(workspace).targets
    metastore: Any = Metastore()
    sql: Any = Sql()
    replace_view(
        replace(workspace, metastore=metastore, sql=sql), target, f"CREATE OR REPLACE VIEW {view} AS SELECT 2 AS b"
    )
    assert lab.rows(TABLE) == [{"b": 2}]
    assert [s.split(" AS ")[0] for s in statements if view in s] == [f"CREATE VIEW {view}"]


class Meeting:
    """Makes views in a twin's metastore; the first one ``refused`` times, as another writer's may be found or gone."""

    def __init__(self, still: Still, *, refused: int) -> None:
        self._still = still
        self.refused = refused

    def execute(self, statement: str) -> None:
        if self.refused:
            self.refused -= 1
            raise EngineError(
                "Spark refused the statement or failed in it", why="[TABLE_OR_VIEW_NOT_FOUND] s_view__next"
            )
        self._still.view("s_view__next", statement.partition(" AS ")[2])


def met(still: Still, *, refused: int) -> str:
    """Replace a view while somebody else does; return its text afterwards."""
    still.register(avro(), topic="s")
    still.view("s_view", "SELECT 1", **{SUBJECT: "s-value"})
    sql: Any = Meeting(still, refused=refused)
    (target,) = map_tables(still.workspace).targets
    replace_view(replace(still.workspace, sql=sql), target, "CREATE OR REPLACE VIEW `lake`.`s_view` AS SELECT 2")
    view = still.metastore.table("lake", "s_view")
    assert view is not None
    return view.view_text


def test_a_view_whose_next_definition_another_writer_takes_meanwhile_is_replaced(tmp_path: Path) -> None:
    assert met(Still(tmp_path), refused=1) == "SELECT 2"


def test_a_view_that_spark_refuses_for_itself_is_no_conflict(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
        met(Still(tmp_path), refused=2)


def test_a_view_of_somebody_else_is_never_taken_for_the_next_definition(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.view("s_view__next", "SELECT 'his'")
    with pytest.raises(OwnershipError, match=r"lake\.s_view__next stands where the view's next definition is made"):
        met(still, refused=0)
    (his,) = (view for view in still.metastore.views() if view.name == "s_view__next")
    assert his.view_text == "SELECT 'his'"


class First:
    """Somebody who makes a view of his own right before ours is made."""

    def __init__(self, still: Still) -> None:
        self._still = still

    def execute(self, statement: str) -> None:
        assert statement.startswith("CREATE VIEW"), statement
        self._still.view("s_view", "SELECT 'his'")
        raise EngineError("there is one")


def test_a_view_that_somebody_else_makes_before_ours_is_his(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register(avro(), topic="s")
    sql: Any = First(still)
    (target,) = map_tables(still.workspace).targets
    with pytest.raises(ConflictError, match=r"lake\.s_view, which the view would replace, is not schemasync's"):
        replace_view(replace(still.workspace, sql=sql), target, "CREATE OR REPLACE VIEW `lake`.`s_view` AS SELECT 2")
    view = still.metastore.table("lake", "s_view")
    assert view is not None
    assert view.view_text == "SELECT 'his'"


def unnamed(lab: Lab) -> list[str]:
    """Return the data files in directories that no state names which was ever in force."""
    (planned,) = lab.plan().tables
    assert planned.view is not None
    lake = lab.workspace.storage(planned.target).lake
    named: set[str] = set()
    manifest = planned.view.manifest
    while manifest is not None:
        named |= manifest.locations
        manifest = state_before(lake, planned.target, manifest)
    table = lab.root / "lake" / TOPIC
    files = [f.relative_to(table).as_posix() for f in table.rglob("g=*/**/*.parquet")]
    assert files
    return [file for file in files if file.rpartition("/")[0] not in named]


def test_whoever_is_overtaken_leaves_no_file_behind(new_lab: NewLab) -> None:
    def other(there: Lab) -> None:
        there.land(TOPIC, [event(2, a=2)], hour="2026112001")
        there.apply()

    left = {}
    for after in range(5):
        lab = new_lab()
        version(lab, 1)
        lab.apply()
        lab.land(TOPIC, [event(1, a=1)])
        applied = interrupted(lab, after, other)
        if isinstance(applied.error, ConflictError):
            left[after] = unnamed(lab)
        lab.apply()
        assert (unnamed(lab), lab.rows(TABLE, order_by="id")) == ([], [{"id": 1, "a": 1}, {"id": 2, "a": 2}])
    assert (len(left) > 1, set(map(len, left.values()))) == (True, {0}), left


SHARDS = {"shard_size": "1KB"}
BY_SQL = {"kernel": "spark"}


def compactable(new_lab: NewLab, *, admitted: bool, settings: dict[str, str]) -> Lab:
    """Return a lab with a base, and changes of one of its keys, of which some are ``admitted``."""
    lab = new_lab()
    lab.settings = {"defaults": {"compaction": settings}}
    version(lab, 1)
    lab.land(TOPIC, [event(key, a=key) for key in range(40)])
    lab.compact()
    for hour in ("2026112001", "2026112002"):
        lab.now_ms += 1000
        lab.land(TOPIC, [{"id": 7, "op": "u", "ts_ms": 100 + int(hour), "a": int(hour)}], hour=hour)
        if admitted and hour == "2026112001":
            lab.apply()
    return lab


@pytest.mark.parametrize(
    ("mode", "other", "admitted", "settings"),
    [
        (Mode.MAJOR, Mode.MAJOR, True, SHARDS),
        (Mode.MAJOR, Mode.MINOR, True, SHARDS),
        (Mode.MINOR, Mode.MAJOR, True, SHARDS),
        (Mode.MINOR, Mode.MAJOR, False, SHARDS),
        (Mode.MINOR, Mode.MINOR, False, SHARDS),
        (Mode.MAJOR, Mode.MAJOR, True, BY_SQL),
        (Mode.MINOR, Mode.MAJOR, False, BY_SQL),
    ],
)
def test_of_two_compactions_at_once_one_wins_and_the_other_stops_cleanly(
    new_lab: NewLab, mode: Mode, other: Mode, admitted: bool, settings: dict[str, str]
) -> None:
    lab, fuse = compactable(new_lab, admitted=admitted, settings=settings), Fuse()
    again = lab.kept()
    compact(mortal(lab.workspace, fuse), mode=mode)
    outcomes = []
    # A fold by SQL takes seconds: every other call, others in other runs.
    calls = range(random.randrange(2), len(fuse.calls), 2) if settings is BY_SQL else range(len(fuse.calls))  # noqa: S311 - no secret
    for after in calls:
        again()
        waiting = [lab]

        def come(waiting: list[Lab] = waiting) -> None:
            if waiting:
                (winner,) = compact(waiting.pop().workspace, mode=other).tables
                assert winner.failure is None

        (done,) = compact(mortal(lab.workspace, Fuse(after, die=come)), mode=mode).tables
        assert done.failure is None or isinstance(done.failure, ConflictError), (after, done.failure)
        outcomes.append(done.failure is None)
        expected = [{"id": key, "a": 2026112002 if key == 7 else key} for key in range(40)]
        assert lab.rows(TABLE, order_by="id") == expected, after
        (next_run,) = lab.compact().tables
        assert (next_run.failure, lab.rows(TABLE, order_by="id"), unnamed(lab)) == (None, expected, []), after
    assert set(outcomes) == {True, False}


def based(new_lab: NewLab) -> Lab:
    """Return a lab whose base has all rows and nothing else, with something to clean up."""
    lab = new_lab()
    version(lab, 1)
    lab.land(TOPIC, [event(1, a=7)])
    lab.compact()
    lab.now_ms += 2 * HOUR
    return lab


def register_other_key(lab: Lab) -> None:
    if len(lab.registry.versions(f"{TOPIC}-key")) == 1:
        fields = [{"name": "a", "type": "long"}]
        lab.registry.register(f"{TOPIC}-key", json.dumps({"type": "record", "name": "Key", "fields": fields}))


def under_other_key(workspace: Workspace) -> Applied:
    (applied,) = release(workspace, TABLE, Release(rebuild=True)).tables
    return applied


def keys_in_force(lab: Lab) -> tuple[str, ...]:
    (target,) = map_tables(lab.workspace).targets
    properties = properties_in_force(lab.workspace, target)
    assert properties is not None
    return properties.keys


def test_a_key_that_changes_while_another_process_cleans_up_is_not_put_back(new_lab: NewLab) -> None:
    lab, fuse = based(new_lab), Fuse()
    again = lab.kept()
    compact(mortal(lab.workspace, fuse))
    for after in range(len(fuse.calls)):
        again()
        changed: list[Applied] = []

        def other(changed: list[Applied] = changed) -> None:
            if not changed:
                register_other_key(lab)
                changed.append(under_other_key(lab.workspace))

        (done,) = compact(mortal(lab.workspace, Fuse(after, die=other))).tables
        assert isinstance(done.failure, ConflictError), (after, done.failure)
        assert ([one.error for one in changed], keys_in_force(lab)) == ([None], ("a",)), (after, fuse.calls)
    assert (lab.rows(TABLE), unnamed(lab)) == ([{"id": 1, "a": 7}], [])


def test_a_key_changes_whole_or_not_at_all_whenever_another_process_cleans_up_meanwhile(new_lab: NewLab) -> None:
    lab, fuse = based(new_lab), Fuse()
    register_other_key(lab)
    again = lab.kept()
    under_other_key(mortal(lab.workspace, fuse))
    outcomes = []
    for after in range(fuse.calls.index("create _schemasync/generations"), len(fuse.calls)):
        again()
        waiting = [lab]

        def come(waiting: list[Lab] = waiting) -> None:
            if waiting:
                (other,) = compact(waiting.pop().workspace).tables
                assert other.failure is None, other.failure

        changed = under_other_key(mortal(lab.workspace, Fuse(after, die=come)))
        assert changed.error is None or isinstance(changed.error, ConflictError), (after, changed.error)
        outcomes.append(changed.error is None)
        assert keys_in_force(lab) == (("a",) if changed.error is None else ("id",)), (after, fuse.calls)
        assert (under_other_key(lab.workspace).error, keys_in_force(lab), unnamed(lab)) == (None, ("a",), []), after
        assert lab.rows(TABLE) == [{"id": 1, "a": 7}], after
    assert set(outcomes) == {True, False}


def test_a_fold_by_sql_reads_no_table_that_another_run_may_replace_meanwhile(lab: Lab) -> None:
    """The other one has just made its base table anew, and has nothing in it yet."""
    lab.settings = {"defaults": {"compaction": BY_SQL}}
    version(lab, 1)
    lab.land(TOPIC, [event(key, a=key) for key in range(9)])
    lab.compact()
    lab.land(TOPIC, [{"id": 7, "op": "u", "ts_ms": 100, "a": 70}], hour="2026112001")
    workspace, base = lab.workspace, f"{lab.database}.{TABLE}_base"

    def selecting(*given: Any, **named: Any) -> Any:
        columns = ", ".join(f"`{c.name}` {c.dataType.simpleString()}" for c in lab.session.table(base).schema)
        lab.session.sql(f"DROP TABLE {base}")
        empty = f"LOCATION 'file:{lab.root}/empty' TBLPROPERTIES ('{ddl.PER_RUN}' = '{TABLE}')"
        lab.session.sql(f"CREATE EXTERNAL TABLE {base} ({columns}) STORED AS PARQUET {empty}")
        return workspace.fold.run(*given, **named)

    fold: Any = SimpleNamespace(run=selecting, repeats_keys=workspace.fold.repeats_keys)
    (done,) = compact(replace(workspace, fold=fold)).tables
    expected = [{"id": key, "a": 70 if key == 7 else key} for key in range(9)]
    assert (done.failure, lab.rows(TABLE, order_by="id")) == (None, expected)


def test_a_fold_by_sql_that_writes_a_key_twice_is_not_published(lab: Lab) -> None:
    """By a fault of its own: all was read and counted as it should be."""
    lab.settings = {"defaults": {"compaction": BY_SQL}}
    version(lab, 1)
    lab.land(TOPIC, [event(key, a=key) for key in range(9)])
    workspace = lab.workspace

    def selecting(select: str, **named: Any) -> Any:
        columns = lab.session.sql(select).columns
        again = ", ".join("0" if name == "schemasync_arrival" else f"`{name}`" for name in columns)
        one_more = f"(SELECT {again} FROM ({select}) WHERE id = 7)"
        return workspace.fold.run(f"{select} UNION ALL {one_more}", **named)

    fold: Any = SimpleNamespace(run=selecting, repeats_keys=workspace.fold.repeats_keys)
    (done,) = compact(replace(workspace, fold=fold)).tables
    assert isinstance(done.failure, StorageError)
    assert done.failure.what == "the job wrote a key twice"
    assert list((lab.root / "lake" / TOPIC / "base").rglob("*.parquet")) == []
    (again,) = lab.compact().tables
    expected = [{"id": key, "a": key} for key in range(9)]
    assert (again.failure, lab.rows(TABLE, order_by="id")) == (None, expected)


def test_a_fold_that_wrote_other_than_it_says_is_not_published(lab: Lab) -> None:
    lab.settings = {"defaults": {"compaction": BY_SQL}}
    version(lab, 1)
    lab.land(TOPIC, [event(key, a=key) for key in range(9)])
    workspace = lab.workspace

    def losing_one(*given: Any, **named: Any) -> Any:
        counts = workspace.fold.run(*given, **named)
        return replace(counts, written=counts.written + 1)

    fold: Any = SimpleNamespace(run=losing_one, repeats_keys=workspace.fold.repeats_keys)
    (done,) = compact(replace(workspace, fold=fold)).tables
    assert isinstance(done.failure, StorageError)
    assert done.failure.why == "9 rows read back, 10 written"
    assert list((lab.root / "lake" / TOPIC / "base").rglob("*.parquet")) == []
    (again,) = lab.compact().tables
    expected = [{"id": key, "a": key} for key in range(9)]
    assert (again.failure, again.generation, lab.rows(TABLE, order_by="id")) == (None, 1, expected)


@pytest.mark.parametrize("gone", ["base", "delta"])
def test_a_fold_by_sql_publishes_nothing_where_a_partition_is_missing(lab: Lab, gone: str) -> None:
    """Somebody drops it while the fold is under way: SQL then reads fewer rows without a word."""
    lab.settings = {"defaults": {"compaction": BY_SQL}}
    version(lab, 1)
    lab.land(TOPIC, [event(key, a=key) for key in range(9)])
    lab.compact()
    lab.land(TOPIC, [{"id": 7, "op": "u", "ts_ms": 100, "a": 70}], hour="2026112001")
    workspace = lab.workspace

    def selecting(*given: Any, **named: Any) -> Any:
        found = workspace.metastore.partitions(lab.database, TABLE)
        workspace.metastore.drop_partitions(lab.database, TABLE, [name for name in found if name.startswith(gone)])
        return workspace.fold.run(*given, **named)

    fold: Any = SimpleNamespace(run=selecting, repeats_keys=workspace.fold.repeats_keys)
    (done,) = compact(replace(workspace, fold=fold)).tables
    assert isinstance(done.failure, DataError)
    assert done.failure.why == f"{1 if gone == 'base' else 9} rows were read where there are 10"
    (again,) = lab.compact().tables
    expected = [{"id": key, "a": 70 if key == 7 else key} for key in range(9)]
    assert (again.failure, lab.rows(TABLE, order_by="id")) == (None, expected)


@pytest.mark.parametrize(("comes", "looks"), [(1, 2), (9, 4)])
def test_a_plan_made_while_another_process_publishes_takes_its_state_for_no_damage(
    lab: Lab, comes: int, looks: int
) -> None:
    """What is in force was asked for before its partitions. That it publishes at every look is all the same an end."""
    version(lab, 1)
    lab.apply()
    workspace = lab.workspace
    waiting = [event(key, a=key) for key in range(comes)]

    class Metastore:
        def __init__(self) -> None:
            self.asked = 0

        def __getattr__(self, called: str) -> Any:
            return getattr(workspace.metastore, called)

        def described_partitions(self, *given: Any, **named: Any) -> Any:
            self.asked += 1
            if waiting:
                lab.land(TOPIC, [waiting.pop()], hour="2026112001")
                lab.apply()
            return workspace.metastore.described_partitions(*given, **named)

    metastore: Any = Metastore()
    (planned,) = plan(replace(workspace, metastore=metastore)).tables
    found = [d.code for d in planned.diagnostics], [step.kind for step in planned.steps]
    assert (metastore.asked, found) == (looks, ([], []) if comes == 1 else (["SS209"], ["repair_partitions"]))


def writing_calls(new_lab: NewLab) -> int:
    fuse = Fuse()
    apply(mortal(started(new_lab).workspace, fuse))
    return len(fuse.calls)


@pytest.mark.parametrize("other", AFTER)
def test_whenever_another_process_comes_between_one_wins_and_the_view_is_right_at_once(
    new_lab: NewLab, other: Callable[[Lab], None]
) -> None:
    outcomes = []
    for after in range(writing_calls(new_lab)):
        lab = started(new_lab)
        applied = interrupted(lab, after, other)
        assert applied.error is None or isinstance(applied.error, ConflictError), (after, applied.error)
        outcomes.append(applied.error is None)
        (planned,) = lab.plan().tables
        # The history table is derived: whoever was overtaken may have written his own past last; the next run mends it.
        steps = [step for step in planned.steps if step.kind != "record_history"]
        assert (lab.rows(TABLE, order_by="id"), planned.verdict, steps) == (AFTER[other], Verdict.NONE, []), after
    assert False in outcomes


def only_the_view(lab: Lab) -> None:
    version(lab, 1)
    lab.land(TOPIC, [event(1, a=1)])
    lab.apply()
    lab.settings = {"defaults": {"view": {"metadata": True}}}


def no_table_yet(lab: Lab) -> None:
    version(lab, 1)


def a_held_table_without_its_view(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "long"])))
    lab.land(TOPIC, [event(1, a=2**40)])
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"])))
    lab.session.sql(f"DROP VIEW {lab.database}.{TABLE}_view")


@pytest.mark.parametrize(
    ("begin", "keys"), [(only_the_view, [1, 2]), (no_table_yet, [2]), (a_held_table_without_its_view, [1, 2])]
)
def test_whenever_rows_come_while_the_view_is_made_they_are_shown_at_once(
    new_lab: NewLab, begin: Callable[[Lab], None], keys: list[int]
) -> None:
    """Nothing is written after the view that would be refused to whoever was overtaken."""

    def other(there: Lab) -> None:
        there.land(TOPIC, [event(2, a=2)], version=1, hour="2026112001")
        there.apply()

    def begun() -> Lab:
        lab = new_lab()
        begin(lab)
        return lab

    fuse = Fuse()
    apply(mortal(begun().workspace, fuse))
    for after in range(len(fuse.calls)):
        lab = begun()
        applied = interrupted(lab, after, other)
        assert applied.error is None or isinstance(applied.error, ConflictError), (after, applied.error)
        assert [row["id"] for row in lab.rows(TABLE, order_by="id")] == keys, (after, fuse.calls)
