"""How tables stand in plan and status, on the twins of registry and metastore: no Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.app.admitting import AdmissionOutcome, take_in
from schemasync.app.applying import ApplyResult, apply
from schemasync.app.compacting import Compacted, compact
from schemasync.app.ddl_printing import from_registry
from schemasync.app.history import history
from schemasync.app.holds import HOLDS
from schemasync.app.inspecting import look, map_tables, select
from schemasync.app.kept_schemas import keep_schema
from schemasync.app.landed import pending_among, strays_among
from schemasync.app.planning import TablePlan, plan
from schemasync.app.states import GENERATIONS, properties_in_force, publish, read_draft
from schemasync.app.status import Hold, TableStatus, status
from schemasync.app.watched import outcome_of
from schemasync.app.workspace import Storage, Workspace
from schemasync.cli.history_text import history_text
from schemasync.cli.rendering import apply_text
from schemasync.core.admission import Footer, Unreadable
from schemasync.core.events import SchemaEvent
from schemasync.core.manifest import FORMAT
from schemasync.core.mapping import TableTarget
from schemasync.core.news import Seen, Told, news
from schemasync.core.policy import Verdict
from schemasync.core.ports import FileInfo, Lake, RegisteredSchema, Rows, SqlEngine
from schemasync.core.properties import KEPT, PARTITION_BY, STATE
from schemasync.errors import EngineError, RegistryError, RegistryUnavailableError, SchemasyncError, StorageError
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.parquet.arrow import ArrowFiles
from schemasync.io.registry.file import FileRegistry
from tests.app.still import Still, avro, key
from tests.core.builders import admitted
from tests.lab import Lab


def without_storage(workspace: Workspace) -> Workspace:
    def storage(target: TableTarget) -> Storage:
        raise StorageError("the directory cannot be listed", where=target.location, why="secret_key=hush")

    return replace(workspace, storage=storage)


def landed(still: Still, *events: dict[str, Any], name: str = "a.parquet") -> Path:
    """Write events of the first version as the sink does."""
    directory = still.root / "lake/student/incremental/increment_2026112000"
    directory.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("id", pa.int64()), ("op", pa.string()), ("ts_ms", pa.int64())])
    pq.write_table(pa.Table.from_pylist(list(events), schema=schema), directory / name)
    return directory / name


def edited(still: Still, **properties: str) -> None:
    """Edit properties of the table as a person might."""
    table = still.metastore.table("lake", "student")
    assert table is not None
    still.metastore.put(replace(table, properties={**table.properties, **properties}))


def codes(table: TablePlan | TableStatus) -> list[str]:
    return [d.code for d in table.diagnostics]


def test_a_table_that_cannot_be_looked_at_is_no_drift(still: Still) -> None:
    still.register(avro())
    still.settle()
    (table,) = status(without_storage(still.workspace)).tables
    (finding,) = table.diagnostics
    assert (finding.code, table.drift, table.held) == ("SS217", (), True)
    assert finding.message.endswith("/lake/student: the directory cannot be listed: secret_key=***")


@pytest.mark.parametrize(
    ("refusal", "code"), [(RegistryUnavailableError("500"), "SS217"), (RegistryError("403"), "SS406")]
)
def test_a_subject_of_which_the_registry_cannot_answer_is_its_own_table_s_matter(
    still: Still, monkeypatch: pytest.MonkeyPatch, refusal: SchemasyncError, code: str
) -> None:
    for topic in ("course", "student"):
        still.register(avro(), topic=topic)
    still.settle()
    answered = still.registry.schema

    def schema(subject: str, version: int) -> RegisteredSchema:
        if subject == "course-value":
            raise refusal
        return answered(subject, version)

    monkeypatch.setattr(still.registry, "schema", schema)
    for tables in (still.plan().tables, status(still.workspace).tables):
        assert [(t.target.table, codes(t)) for t in tables] == [("course", [code]), ("student", [])]


@pytest.mark.parametrize("trouble", [RegistryUnavailableError("no answer"), RegistryError("please log in")])
@pytest.mark.parametrize("during", ["student-value", "student-key"])
def test_nothing_is_said_of_any_table_where_the_registry_goes_down(
    still: Still, monkeypatch: pytest.MonkeyPatch, trouble: SchemasyncError, during: str
) -> None:
    still.register(avro())
    listed = still.registry.versions

    def versions(subject: str) -> tuple[int, ...]:
        if subject == during:
            still.registry.fail_with = trouble
        return listed(subject)

    monkeypatch.setattr(still.registry, "versions", versions)
    with pytest.raises(type(trouble), match=str(trouble)):
        status(still.workspace)


def test_subjects_that_an_entry_matches_and_that_are_left_out_are_named(still: Still) -> None:
    for topic in ("bank.student", "bank.transaction"):
        still.register(avro(), topic=topic)
    by_default = still.plan().skipped
    still.settings = {"tables": [{"subject": r"bank\..+"}]}
    named = plan(still.workspace, ["bank_student"])
    said = [found.to_json()["skipped"] for found in (still.plan(), status(still.workspace), named)]
    assert (by_default, said) == ((), [["bank.transaction-value"], ["bank.transaction-value"], []])


def with_rows(still: Still) -> None:
    """Let the table have rows of its present version."""
    (target,) = select(map_tables(still.workspace), ["student"])
    properties = properties_in_force(still.workspace, target)
    assert properties is not None
    draft = read_draft(still.workspace, target, properties)
    publish(still.workspace, target, draft, admitted(draft.manifest, schema_version=properties.version))


def with_state(still: Still) -> Path:
    """Bring a state into force; return its manifest."""
    still.register(avro())
    still.settle()
    with_rows(still)
    (path,) = (still.root / "lake" / "student" / GENERATIONS).iterdir()
    return path


def with_another_key(still: Still) -> Workspace:
    """Change a table's key, and return a workspace whose engine cannot read the table's values."""
    for topic in ("course", "student"):
        still.register(avro(("region", "long")), topic=topic)
    still.settle()
    with_rows(still)
    still.registry.register("student-key", key("id", "region"))

    def query(_: str) -> Rows:
        raise EngineError("Spark refused the statement", why="secret_key=hush")

    return replace(still.workspace, sql=cast(SqlEngine, SimpleNamespace(query=query)))


def test_a_held_table_whose_values_cannot_be_read_stands_beside_the_others(still: Still) -> None:
    course, student = status(with_another_key(still)).tables
    assert (course.held, student.hold) == (False, Hold(since_ms=None, release=None))
    finding = next(d for d in student.diagnostics if d.code == "SS218")
    assert finding.message == "Spark refused the statement: secret_key=***"


def hold(still: Still) -> Hold | None:
    (table,) = status(still.workspace).tables
    return table.hold


def test_no_release_is_advised_where_a_file_of_ours_is_missing(still: Still) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{STATE: "000001-0001@0000"})
    assert hold(still) == Hold(since_ms=None, release=None)


@pytest.mark.parametrize("refused", ["incremental", GENERATIONS])
def test_a_storage_that_fails_is_no_hold_and_nothing_that_is_missing(
    still: Still, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    with_state(still)
    name = "files" if refused == "incremental" else "read"
    found = getattr(ArrowLake, name)

    def failing(lake: ArrowLake, path: str) -> Any:
        if path.startswith(refused):
            raise StorageError("cannot reach it", where=path, why="503")
        return found(lake, path)

    monkeypatch.setattr(ArrowLake, name, failing)
    (table,) = apply(still.workspace).tables
    assert (type(table.error), table.held, codes(still.plan().tables[0])) == (StorageError, False, ["SS217"])


def test_a_look_lists_once_what_landed(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    with_state(still)
    listed: list[str] = []
    found = ArrowLake.files

    def files(lake: ArrowLake, directory: str, **given: Any) -> tuple[FileInfo, ...]:
        listed.append(directory)
        return found(lake, directory, **given)

    monkeypatch.setattr(ArrowLake, "files", files)
    (table,) = still.plan().tables
    assert (codes(table), listed.count("incremental")) == ([], 1)


def test_files_that_landed_are_looked_into_once(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    with_state(still)
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    pq.write_table(pa.table({"x": [1]}), landed(still, name="b.parquet"))
    looked: list[str] = []
    found = ArrowFiles.footer

    def footer(files: ArrowFiles, file: FileInfo, **given: Any) -> Footer | Unreadable:
        looked.append(file.path.rpartition("/")[2])
        return found(files, file, **given)

    monkeypatch.setattr(ArrowFiles, "footer", footer)
    (table,) = status(still.workspace).tables
    assert (looked, codes(table), len(table.pending), table.waiting) == (["a.parquet", "b.parquet"], ["SS302"], 2, 1)
    landed(still, name="b.parquet").write_bytes(b"corrupt")
    (table,) = status(still.workspace).tables
    assert (codes(table), table.waiting) == (["SS301"], 2)
    assert table.diagnostics[0].fix.startswith("Restore the file")


def test_whoever_may_not_read_a_landed_file_is_not_told_to_restore_it(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_state(still)
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    told = Unreadable(reason="Permission denied", denied=True)
    monkeypatch.setattr(ArrowFiles, "footer", lambda *_, **__: told)
    (table,) = status(still.workspace).tables
    (found,) = table.diagnostics
    assert (found.code, found.fix) == (
        "SS301",
        "Give this user read permission. Until then nothing that lands for the table is admitted.",
    )


@pytest.mark.parametrize(
    ("name", "content", "code", "held"),
    [
        ("a.parquet", b"corrupt", "SS301", True),
        ("a.parquet", b"", "SS305", False),
        ("../b.parquet", b"", "SS307", False),
        ("b.PARQUET", b"", "SS307", False),
        ("b.parq", b"", "SS307", False),
        ("part-0f3c-0", b"", "SS307", False),
    ],
)
def test_plan_status_and_apply_agree_on_what_waits_for_a_person(
    still: Still, name: str, content: bytes, code: str, held: bool
) -> None:
    with_state(still)
    landed(still, name=name).write_bytes(content)
    (planned,), (stands,), (applied,) = (found(still.workspace).tables for found in (plan, status, apply))
    assert [t.held for t in (planned, stands, applied)] == [held] * 3
    assert {d.code for t in (planned, stands, applied) for d in t.diagnostics} == {code}


def test_a_plan_tells_of_files_right_in_the_tables_location(still: Still) -> None:
    """There a table that was somebody else's has its own."""
    still.register(avro())
    landed(still, name="../../part-0.parquet").write_bytes(b"")
    landed(still, name="../../readme.txt").write_bytes(b"")
    (table,) = still.plan().tables
    told = "1 Parquet file matches no hour of incremental/increment_{yyyyMMddHH}, first part-0.parquet"
    assert [d.message for d in table.diagnostics if d.code == "SS307"] == [told]


def test_whatever_lies_in_an_hour_under_another_name_is_told_of_together(still: Still) -> None:
    """Flink's files have no ending, Connect's sinks write Avro, JSON and packed text, too."""
    still.register(avro())
    hour = still.root / "lake/student/incremental/increment_2026112000"
    misnamed = ("part-0f3c-0", "t-0-0.gz", "t+0+0000000000.avro", "t+0+0000000000.json", "b.parq")
    passed_over = ("_SUCCESS", "_t/part-0", ".part-0.crc", "part-0.crc", "below/readme", "../readme")
    written = ("a.parquet.tmp", "a.parquet._COPYING_", "part-0.inprogress.5", "a.parquet.partial")
    beside = ("t+0+42.keys.avro", "t+0+42.headers.avro")
    for name in (*misnamed, *passed_over, *written, *beside):
        (hour / name).parent.mkdir(parents=True, exist_ok=True)
        (hour / name).touch()
    (table,) = still.plan().tables
    told = "5 files not called *.parquet, first incremental/increment_2026112000/b.parq"
    assert [d.message for d in table.diagnostics if d.code == "SS307"] == [told]


def test_a_key_with_an_empty_name_in_it_is_no_landed_file() -> None:
    """S3 lists it, and no client that thinks of directories opens it."""
    names, pattern = ("a.parquet", "/b.parquet"), "incremental/increment_{yyyyMMddHH}"
    files = [FileInfo(path=f"incremental/increment_2026112000/{name}", bytes=1, modified_ms=0) for name in names]
    assert (pending_among(files, pattern, None), strays_among(files, pattern)) == ((files[0],), (files[1],))


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_manifest_that_is_not_there_or_mangled_holds_its_table(still: Still, content: str | None) -> None:
    path = with_state(still)
    path.unlink()
    if content is not None:
        path.write_text(content)
    (table,) = still.plan().tables
    assert (codes(table), table.held, table.landed) == (["SS306"], True, 0)
    assert str(path) in table.diagnostics[0].message


def test_a_manifest_of_a_newer_schemasync_is_not_to_be_restored(still: Still) -> None:
    path = with_state(still)
    path.write_text(json.dumps({"format": FORMAT + 1}))
    (table,) = still.plan().tables
    message = f"file:{path}: a newer schemasync wrote this manifest"
    assert [(d.message, d.fix) for d in table.diagnostics] == [(message, "Upgrade schemasync.")]


not_understood = pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("schemasync.version", "7", "SS404"),
        ("schemasync.columns", "0", "SS408"),
        (PARTITION_BY, '[["year", "year(born)"]]', "SS417"),
    ],
)


@not_understood
def test_a_hold_is_dated_also_where_the_table_is_not_understood(still: Still, name: str, value: str, code: str) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{name: value})
    (applied,) = apply(still.workspace).tables
    assert (applied.error, [d.code for d in applied.diagnostics]) == (None, [code])
    assert hold(still) == Hold(since_ms=0, release=None)


@not_understood
def test_all_that_landed_waits_for_a_table_that_is_not_understood(
    still: Still, name: str, value: str, code: str
) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{name: value})
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    (stands,), (applied,) = status(still.workspace).tables, apply(still.workspace).tables
    watched = outcome_of(applied, held=True).to_json()
    told = [applied.to_json()["admitted"], watched["admitted"]]
    assert (codes(stands), stands.waiting, told) == ([code], 1, [{"files": 0, "events": 0, "waiting": 1}] * 2)
    assert "  1 file waiting" in map(str, apply_text(ApplyResult(tables=(applied,))))


def in_force(table: Compacted) -> tuple[Any, ...]:
    document = table.to_json()
    return tuple(document[name] for name in ("generation", "rows", "shards", "deltas"))


@not_understood
def test_a_compaction_tells_of_a_table_that_is_not_understood_what_its_view_shows(
    still: Still, name: str, value: str, code: str
) -> None:
    with_state(still)
    edited(still, **{name: value})
    (table,) = compact(still.workspace).tables
    assert ([d.code for d in table.applied.diagnostics], in_force(table)) == ([code], (0, 0, 0, 1))


def test_what_is_in_force_is_not_known_where_a_table_failed_or_there_is_none(still: Still) -> None:
    still.register(avro())
    (new,) = compact(still.workspace, dry_run=True).tables
    still.settle()
    still.register(NAMED)
    (failed,) = compact(still.workspace).tables  # there is no engine
    assert (in_force(new), new.failure, failed.applied.error is not None) == ((None,) * 4, None, True)
    assert in_force(failed) == (None,) * 4


def test_a_hold_that_is_lifted_while_it_is_looked_at_is_not_dated(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    still.register(avro())
    still.settle()
    edited(still, **{"schemasync.version": "7"})
    apply(still.workspace)
    found = ArrowLake.read

    def read(lake: ArrowLake, path: str) -> bytes:
        if path.startswith(HOLDS):
            lake.delete(path)
        return found(lake, path)

    monkeypatch.setattr(ArrowLake, "read", read)
    (table,) = status(still.workspace).tables
    assert (codes(table), table.hold) == (["SS404", "SS218"], Hold(since_ms=None, release=None))


def standing(still: Still) -> tuple[list[str], bool]:
    """Return what is told of the table, and whether it goes on under a shape that is known."""
    (table,) = still.plan().tables
    assert table.view is not None
    return [d.code for d in table.diagnostics], table.view.decision.effective is not None


BY_REVISION = {"tables": [{"subject": "student-value", "sequence_by": ["rev"]}]}


def test_an_order_by_a_field_that_older_versions_lack_holds_the_table_and_takes_none_of_its_past(still: Still) -> None:
    still.register(avro(("n", "long")))
    still.settle()
    still.register(avro(("n", "long"), ("rev", "long")))
    still.settings = BY_REVISION
    assert standing(still) == (["SS103", "SS123", "SS423"], True)


@pytest.mark.parametrize("configured", ["rev", "REV"])
def test_a_field_that_orders_the_table_may_change_its_case(still: Still, configured: str) -> None:
    still.settings = BY_REVISION
    still.register(avro(("n", "long"), ("rev", "long")))
    still.settle()
    still.register(avro(("n", "long"), ("REV", "long")))
    still.settings = {"tables": [{"subject": "student-value", "sequence_by": [configured]}]}
    assert standing(still) == (["SS107", "SS423"], True)
    (table,) = still.plan().tables
    assert table.properties is not None
    assert (table.verdict, [str(f) for f in table.properties.ordering]) == (Verdict.EVOLVE, ["rev"])
    del still.settings["tables"]
    assert standing(still) == (["SS107", "SS423"], True)


def test_a_newest_version_that_lacks_what_orders_the_table_holds_it_where_it_is(still: Still) -> None:
    still.settings = BY_REVISION
    still.register(avro(("n", "long"), ("rev", "long")))
    still.settle()
    still.register(avro(("n", "long")))
    assert standing(still) == (["SS406"], True)


ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
MORE = ADDRESS | {"fields": [*ADDRESS["fields"], {"name": "zip", "type": ["null", "string"]}]}


class Shared:
    """A registry of files, two of whose versions use a type of another subject, and a table of the first of them."""

    def __init__(self, still: Still) -> None:
        self.still, self.root = still, still.root / "registry"
        still.registry = cast(Any, FileRegistry(self.root))
        self.write("address", 1, json.dumps(ADDRESS))
        self.write("student-key", 1, key("id"))
        self.write("student-value", 1, avro(("home", "Address")))
        still.settle()
        keep_schema(self.lake, still.registry.schema("student-value", 1), applied=True)

    @property
    def lake(self) -> Lake:
        return self.still.workspace.storage(map_tables(self.still.workspace).targets[0]).lake

    def write(self, subject: str, version: int, text: str) -> None:
        (self.root / subject).mkdir(parents=True, exist_ok=True)
        (self.root / subject / f"{version}.avsc").write_text(text)


def test_the_next_version_of_a_type_that_is_found_by_name_is_for_the_next_version_that_uses_it(still: Still) -> None:
    shared = Shared(still)
    shared.write("address", 2, json.dumps(MORE))
    assert standing(still) == ([], True)
    shared.write("student-value", 2, avro(("home", "Address")))
    assert standing(still) == (["SS111"], True)
    shared.write("student-value", 1, avro(("home", "Address"), ("age", "int")))
    assert standing(still)[0][0] == "SS404"


def test_a_type_that_is_gone_is_missed_by_versions_that_are_not_applied_yet(still: Still) -> None:
    shared = Shared(still)
    shared.write("student-value", 2, avro(("home", "string")))
    (shared.root / "address/1.avsc").unlink()
    assert standing(still) == (["SS120"], True)
    shared.write("student-value", 3, avro(("home", "Address")))
    assert standing(still) == (["SS406"], True)


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', avro(("m", "long"))])
def test_another_text_of_an_applied_version_is_another_history_also_where_it_is_no_schema(
    still: Still, text: str
) -> None:
    still.register(avro(("n", "long")))
    still.settle()
    workspace = still.workspace
    (target,) = map_tables(workspace).targets
    keep_schema(workspace.storage(target).lake, workspace.registry.schema("student-value", 1), applied=True)
    still.registry.register("student-value", text, version=1)
    assert standing(still) == (["SS404"], True)
    still.register(avro(("n", "long"), ("m", "long")))
    assert standing(still) == (["SS404"], True)


@pytest.mark.parametrize("there", [False, True])
def test_a_key_subject_that_is_listed_without_versions_is_no_table_without_a_key(
    still: Still, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    still.register(avro())
    if there:
        still.settle()
    listed = still.registry.versions
    monkeypatch.setattr(still.registry, "versions", lambda subject: listed(subject) if subject[-3:] != "key" else ())
    assert standing(still) == (["SS406"], there)


@pytest.mark.parametrize(
    ("said", "found"), [({}, ["SS406"]), ({"keys": ["id"]}, []), ({"insert_only": True}, [])], ids=str
)
def test_a_key_that_nobody_can_read_is_in_nobody_s_way_where_the_configuration_says_what_is_the_key(
    still: Still, said: dict[str, Any], found: list[str]
) -> None:
    still.settings = {"tables": [{"subject": "student-value", **said}]}
    still.registry.register("student-key", '{"type": "object"}', kind="JSON")
    still.register(avro(), keys=())
    assert standing(still) == (found, not found)
    assert [d.fix.rpartition("Or ")[2][:14] for d in still.plan().tables[0].diagnostics] == [
        "say with keys:" for _ in found
    ]
    shown = partial(from_registry, still.registry, still.config, "student")
    with pytest.raises(RegistryError) if found else nullcontext():
        shown()


WRAPPED = json.dumps(Lab.debezium({"name": "sku", "type": "string"}))


@pytest.mark.parametrize(
    ("keys", "sources", "lacking"),
    [
        (["id", "sku"], ["id"], "sku"),
        (["sku", "id"], ["nr"], "sku, id"),
        (["ID"], ["id"], ""),
        (["sku"], ["id", "sku"], ""),
        (["id", "sku"], [], ""),
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_key_that_deletes_may_lack_is_told_by_a_plan_and_costs_a_look_nothing(
    still: Still, monkeypatch: pytest.MonkeyPatch, keys: list[str], sources: list[str], lacking: str, there: bool
) -> None:
    still.settings = {"tables": [{"subject": "student-value", "keys": keys}]}
    still.register(WRAPPED, keys=sources)
    if there:
        still.settle()
    told = [f"lake.student: deletes may lack {lacking}, which student-key has not"] if lacking else []
    assert [d.message for d in still.plan().tables[0].diagnostics if d.code == "SS424"] == told
    asked: list[str] = []
    versions = still.registry.versions

    def counted(subject: str) -> tuple[int, ...]:
        asked.append(subject)
        return versions(subject)

    monkeypatch.setattr(still.registry, "versions", counted)
    (target,) = map_tables(still.workspace).targets
    assert "SS424" not in {d.code for d in look(still.workspace, target).decision.diagnostics}
    assert asked == ["student-value"]


@pytest.mark.parametrize("error", [RegistryUnavailableError("no answer"), RegistryError("forbidden")])
def test_a_key_subject_that_cannot_be_read_changes_nothing_where_keys_are_named(
    still: Still, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    still.settings = {"tables": [{"subject": "student-value", "keys": ["id", "sku"]}]}
    still.register(WRAPPED)
    versions = still.registry.versions

    def refusing(subject: str) -> tuple[int, ...]:
        if subject == "student-key":
            raise error
        return versions(subject)

    monkeypatch.setattr(still.registry, "versions", refusing)
    (table,) = still.plan().tables
    assert (table.held, [d.code for d in table.diagnostics], bool(table.steps)) == (False, [], True)


def keeping(drop: str) -> dict[str, Any]:
    return {"defaults": {"policies": {"drop": drop}}}


def test_a_table_remembers_that_dropped_columns_are_shown(still: Still) -> None:
    still.settings = keeping("keep")
    for columns in ((("n", "long"),), ()):
        still.register(avro(*columns))
        still.settle()
    assert not still.plan().tables[0].pending
    still.settings = keeping("hold")
    assert standing(still)[0] == ["SS124"]
    still.settings = keeping("drop")
    assert standing(still)[0] == ["SS104"]
    still.settle()
    assert not still.plan().tables[0].pending
    table = still.metastore.table("lake", "student")
    assert table is not None
    assert table.properties[KEPT] == "false"


TEXT, NUMBER = {"type": "string", "default": "n/a"}, {"type": "int", "default": 42}


def with_default(still: Still, *, rows: bool, policies: dict[str, str]) -> None:
    """Leave a table to which version 2 added a column whose default does not fit the type that version 3 gives it."""
    still.settings = {"defaults": {"policies": policies}}
    for default in (None, TEXT):
        still.register(with_a(default))
        still.settle()
        if default is None and rows:
            with_rows(still)
    still.register(with_a(NUMBER))


def with_a(column: dict[str, Any] | None) -> str:
    schema = json.loads(avro())
    schema["fields"] += [{"name": "a"} | column] if column else []
    return json.dumps(schema)


def of_schema(still: Still) -> list[str]:
    """Return what is told of the table, but for the partitions that its metastore does not have."""
    found, known = standing(still)
    assert known
    return [code for code in found if code != "SS207"]


@pytest.mark.parametrize(
    ("rows", "policies", "told"),
    [
        (True, {}, ["SS110", "SS125"]),
        (False, {}, ["SS113", "SS110"]),
        (True, {"add": "null"}, ["SS113", "SS110"]),
    ],
    ids=["read", "no older row", "NULL instead"],
)
def test_a_default_that_does_not_fit_holds_its_table_while_rows_read_it(
    still: Still, rows: bool, policies: dict[str, str], told: list[str]
) -> None:
    with_default(still, rows=rows, policies=policies)
    assert of_schema(still) == told


def test_rows_that_read_null_in_place_of_a_default_may_be_asked_for_it_later(still: Still) -> None:
    with_default(still, rows=True, policies={"add": "null"})
    still.settle()
    still.settings = {}
    assert of_schema(still) == ["SS125"]


def kept(still: Still, *defaults: int) -> str:
    """Return the fingerprint of a plan for a table to which versions add a column, and then give it other defaults."""
    still.register(with_a(None))
    still.settle()
    still.register(*(with_a(NUMBER | {"default": default}) for default in defaults))
    return still.plan().fingerprint


@pytest.mark.parametrize("later", [(), (1,)], ids=["newest", "before the newest"])
def test_a_kept_plan_is_of_what_older_rows_read_once_it_is_carried_out(tmp_path: Path, later: tuple[int, ...]) -> None:
    def plans() -> list[str]:
        null = Still(tmp_path, defaults={"policies": {"add": "null"}})
        return [kept(Still(tmp_path), 42, *later), kept(Still(tmp_path), 43, *later), kept(null, 42, *later)]

    assert (len(set(plans())), plans()) == (3, plans())


def test_a_kept_plan_stays_good_where_the_keys_next_version_says_the_same(still: Still) -> None:
    before = kept(still, 42)
    still.registry.register("student-key", key("id") + " ")
    assert still.registry.versions("student-key") == (1, 2)
    assert still.plan().fingerprint == before


def test_a_kept_plan_is_of_what_a_field_was_called_before(tmp_path: Path) -> None:
    def planned(renames: dict[str, str]) -> str:
        still = Still(tmp_path, tables=[{"subject": "student-value", "renames": renames}])
        before, after = (
            avro(("s", {"type": "record", "name": "S", "fields": [{"name": name, "type": ["null", "int"]}]}))
            for name in "ab"
        )
        still.register(before)
        still.settle()
        still.register(after)
        return still.plan().fingerprint

    assert planned({"s.b": "s.a"}) != planned({})


_PLANS = """
import json
from pathlib import Path
from tests.app.still import Still, avro, key
still = Still(Path("/nowhere"), defaults={"policies": {"drop": "keep"}})
for names in ("abcdefghi", "aklmnopqr", "abkl"):
    still.register(avro(*((name, ["null", "string", "long"]) for name in names)))
    print(json.dumps(still.plan().to_json()))
    still.settle()
"""


def test_a_plan_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets of texts are walked in another order in each, unless the order of their hashes is fixed."""

    def planned(seed: str) -> str:
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", _PLANS]
        return subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, text=True).stdout

    first = planned("1")
    assert [line.count("CREATE OR REPLACE VIEW") for line in first.splitlines()] == [1, 1, 1]
    assert planned("2") == first


def emptied_long_ago(path: Path) -> None:
    path.write_bytes(b"")
    os.utime(path, (-3600, -3600))  # by the still clock


def taken_in(still: Still, since: Callable[[], object] = lambda: None) -> AdmissionOutcome:
    """Take in what landed; ``since`` happens between the look at the registry and that."""
    (target,) = select(map_tables(still.workspace), ())
    decision = look(still.workspace, target).decision
    assert decision.current is not None
    assert decision.properties is not None
    since()
    return take_in(still.workspace, target, decision.current, read_draft(still.workspace, target, decision.properties))


@pytest.mark.parametrize(
    ("harm", "files", "waiting"),
    [
        (lambda path: path, 2, 0),
        (emptied_long_ago, 1, 1),
        (lambda path: path.write_bytes(b"no parquet at all"), 0, 2),
        (lambda path: pq.write_table(pa.table({"other": [1]}), path), 1, 1),
        (lambda path: pq.write_table(pa.table({"id": [2], "op": ["truncate"], "ts_ms": [2]}), path), 0, 2),
    ],
    ids=["sound", "empty for long", "corrupt", "of no version", "of an unknown operation"],
)
def test_apply_and_status_count_alike_what_cannot_be_admitted(
    still: Still, harm: Callable[[Path], object], files: int, waiting: int
) -> None:
    still.register(avro())
    still.settle()
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    harm(landed(still, {"id": 2, "op": "c", "ts_ms": 2}, name="b.parquet"))
    admitted = taken_in(still)
    assert (admitted.files, admitted.waiting) == (files, waiting)
    if not any(finding.code == "SS303" for finding in admitted.findings):  # which only reading its rows tells
        assert status(still.workspace).tables[0].waiting == waiting


NAMED = avro(("name", ["null", "string"]))


def landed_with(still: Still, text: str | None, *names: str, **row: Any) -> None:
    """Write files of one event with these columns, with this schema in their footers."""
    event = {"id": 2, **row, "op": "c", "ts_ms": 2}
    table = pa.table({column: [value] for column, value in event.items()})
    for name in names:
        pq.write_table(
            table.replace_schema_metadata({"parquet.avro.schema": text} if text else None), landed(still, name=name)
        )


@pytest.mark.parametrize("footer", [NAMED, None], ids=["with a schema", "without a schema"])
def test_files_of_a_version_that_was_registered_since_the_look_wait_for_it(
    still: Still, monkeypatch: pytest.MonkeyPatch, footer: str | None
) -> None:
    still.register(avro())
    still.settle()
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    asked: list[str] = []

    versions = still.registry.versions

    def counted(subject: str) -> tuple[int, ...]:
        asked.append(subject)
        return versions(subject)

    def since() -> None:
        still.register('"string"', NAMED)
        landed_with(still, footer, "b.parquet", "c.parquet", name="b")
        monkeypatch.setattr(still.registry, "versions", counted)

    admitted = taken_in(still, since)
    assert (admitted.files, admitted.waiting, asked) == (1, 2, ["student-value"])
    assert [(d.code, d.message.rpartition("/")[2]) for d in admitted.findings] == [
        ("SS304", "b.parquet was written under version 3"),
        ("SS304", "c.parquet was written under version 3"),
    ]


def silent(still: Still) -> None:
    still.registry.fail_with = RegistryUnavailableError("no answer")


@pytest.mark.parametrize(
    "since",
    [
        lambda _: None,
        lambda still: still.register(NAMED),
        silent,
    ],
    ids=["nothing", "another version", "the registry is silent"],
)
def test_a_file_of_no_version_waits_for_a_person_whatever_was_registered_since_the_look(
    still: Still, since: Callable[[Still], object]
) -> None:
    still.register(avro())
    still.settle()
    landed(still, {"id": 1, "op": "c", "ts_ms": 1})
    landed_with(still, avro(("colour", "string")), "b.parquet", colour="red")
    admitted = taken_in(still, lambda: since(still))
    assert (admitted.files, [d.code for d in admitted.findings]) == (1, ["SS302"])


def test_many_files_that_wait_for_one_reason_are_told_of_together(still: Still) -> None:
    """Receivers refuse events of a megabyte; and the hold is the same one, however many land."""
    still.register(avro())
    still.settle()
    still.register(NAMED)
    landed_with(still, NAMED, "new-0000.parquet", name="b")
    landed_with(still, avro(("colour", "string")), "odd-0000.parquet", colour="red")
    (target,) = map_tables(still.workspace).targets

    def held_by(count: int) -> tuple[Sequence[str], SchemaEvent]:
        for kind in ("new", "odd"):
            first = still.root / f"lake/student/incremental/increment_2026112000/{kind}-0000.parquet"
            for number in range(1, count):
                first.with_name(f"{kind}-{number:04}.parquet").unlink(missing_ok=True)
                os.link(first, first.with_name(f"{kind}-{number:04}.parquet"))
        found = taken_in(still)
        assert found.waiting == 2 * count
        seen = Seen(target=target, before=1, after=1, desired=1, verdict=Verdict.NONE, held=True)
        (event,), _ = news(Told(), replace(seen, diagnostics=found.findings), time=datetime(2026, 11, 20, tzinfo=UTC))
        place = f"{target.location}/incremental/increment_2026112000/"
        return [f"{d.code} {d.message.replace(place, '')}" for d in found.findings], event

    few, before = held_by(3)
    many, after = held_by(1000)
    odd = "the Avro schema in its footer is no version of the subject, but version 1 with more fields: colour"
    assert few == [
        *(f"SS304 new-000{n}.parquet was written under version 2" for n in range(3)),
        *(f"SS302 odd-000{n}.parquet: {odd}" for n in range(3)),
    ]
    assert many == [
        "SS304 1000 files, first new-0000.parquet, were written under version 2",
        f"SS302 1000 files, first odd-0000.parquet: {odd}",
    ]
    assert (after.id, len(after.json()) < 2000) == (before.id, True)


def test_files_that_a_transform_of_the_sinks_may_have_changed_come_with_advice_about_that(still: Still) -> None:
    still.register(avro())
    still.settle()
    landed_with(still, avro(("colour", "string")), "odd.parquet", colour="red")
    (finding,) = taken_in(still).findings
    assert (finding.code, finding.fix.partition(":")[0]) == ("SS302", "If a transform of the sink's adds them")


def test_a_file_whose_footer_speaks_of_an_order_that_it_lacks_is_not_admitted_as_the_oldest(still: Still) -> None:
    still.register(avro())
    still.settle()
    bare = pa.table({"id": [1], "op": ["u"]}).replace_schema_metadata({"parquet.avro.schema": avro()})
    pq.write_table(bare, landed(still, name="a.parquet"))
    admitted = taken_in(still)
    (finding,) = admitted.findings
    assert (admitted.files, finding.code, finding.message.rpartition("/")[2]) == (
        0,
        "SS302",
        "a.parquet: it lacks ts_ms, which the Avro schema in its footer has: its events have no order",
    )


UNWRAPPED = [{"name": "id", "type": "long"}, {"name": "__op", "type": "string"}, {"name": "__lsn", "type": "long"}]
US = {"name": "__ts_us", "type": "long"}


def number(name: str = "") -> Any:
    """Return the Avro type of whole numbers that mean this to Connect."""
    return {"type": "long", "connect.name": name} if name else "long"


MICROSECONDS, MILLISECONDS = (number(f"io.debezium.time.{name}") for name in ("MicroTimestamp", "Timestamp"))
ORDERED_BY_AT = {"tables": [{"subject": "student-value", "sequence_by": ["at"]}]}


def rows_there(still: Still, admitted: AdmissionOutcome) -> list[dict[str, Any]]:
    """Return the rows of all deltas."""
    files = [file.path for delta in admitted.draft.manifest.deltas for file in delta.files]
    return [row for path in files for row in pq.read_table(still.root / "lake/student" / path).to_pylist()]


def test_what_orders_the_events_of_an_earlier_version_is_read_as_it_was_written(still: Still) -> None:
    """Microseconds that are read as milliseconds are thousands of years ahead of all that comes after."""
    still.settings = ORDERED_BY_AT
    first, second = (avro(("at", type_)) for type_ in (MICROSECONDS, MILLISECONDS))
    still.register(first, second)
    still.settle()
    landed_with(still, first, "a.parquet", at=1_790_000_000_000_000)
    landed_with(still, second, "b.parquet", at=1_790_000_000_001)
    admitted = taken_in(still)
    (row,) = rows_there(still, admitted)
    assert (admitted.files, row["__seq1"]) == (2, datetime(2026, 9, 21, 14, 13, 20, 1000, tzinfo=UTC))


def test_a_file_of_a_version_that_lacks_what_orders_the_table_and_came_after_one_that_has_it_waits(
    still: Still,
) -> None:
    """The version held the table, and the next one is as the first: its events would count as older than all there."""
    still.settings = BY_REVISION
    ordered, bare = avro(("rev", "long"), name="Old"), avro()
    still.register(ordered)
    still.settle()
    still.register(bare, avro(("rev", "long")))
    still.settle()
    landed_with(still, bare, "a.parquet")
    admitted = taken_in(still)
    (finding,) = admitted.findings
    assert (admitted.files, finding.code, finding.message.rpartition("/")[2]) == (
        0,
        "SS302",
        "a.parquet, written under version 2: its events lack rev, which orders the table, and which those of version 1 "
        "have: they would count as older",
    )


@pytest.mark.parametrize(("sequence_by", "files"), [(None, 1), (["__lsn", "__ts_us"], 0)])
def test_a_clock_behind_a_position_is_missed_only_where_somebody_asked_for_it(
    still: Still, sequence_by: list[str] | None, files: int
) -> None:
    still.settings = {"tables": [{"subject": "student-value", "sequence_by": sequence_by}]}
    finer, coarse = (json.dumps({"type": "record", "name": "S", "fields": [*UNWRAPPED, *more]}) for more in ([US], []))
    still.register(finer)
    still.settle()
    still.register(coarse, finer.replace('"S"', '"T"'))
    still.settle()
    row = pa.table({"id": [1], "__op": ["u"], "__lsn": [7]})
    pq.write_table(row.replace_schema_metadata({"parquet.avro.schema": coarse}), landed(still))
    assert taken_in(still).files == files


def test_a_file_whose_order_cannot_be_compared_with_the_tables_waits(still: Still) -> None:
    still.settings = ORDERED_BY_AT
    first, second = (avro(("at", type_)) for type_ in ("long", "string"))
    still.register(first, second)
    still.settle()
    landed_with(still, first, "a.parquet", at=10)
    (finding,) = taken_in(still).findings
    assert (finding.code, finding.message.rpartition("/")[2]) == (
        "SS302",
        "a.parquet, written under version 1: at, which tells newer events from older ones, was bigint and is string",
    )


MICRO_DURATION, NANO_DURATION = (number(f"io.debezium.time.{name}Duration") for name in ("Micro", "Nano"))
INTERVAL = {"type": "string", "connect.name": "io.debezium.time.Interval"}


@pytest.mark.parametrize(
    ("held", "value", "told"),
    [
        (
            NANO_DURATION,
            5_000,
            "io.debezium.time.NanoDuration to io.debezium.time.MicroDuration: the same values mean something else",
        ),
        (
            INTERVAL,
            "P1D",
            "io.debezium.time.Interval to io.debezium.time.MicroDuration: nothing says how one is written as the other",
        ),
    ],
    ids=["SS121", "SS120"],
)
def test_files_of_a_version_that_held_the_table_for_what_its_values_mean_wait_once_the_source_went_back(
    still: Still, held: Any, value: Any, told: str
) -> None:
    first, between = avro(("d", MICRO_DURATION)), avro(("d", held))
    still.register(first)
    still.settle()
    still.register(between, avro(("d", MICRO_DURATION), name="Again"))
    still.settle()
    landed_with(still, first, "a.parquet", d=5)
    landed_with(still, between, "b.parquet", d=value)
    admitted = taken_in(still)
    (finding,) = admitted.findings
    assert (admitted.files, finding.code, finding.message.rpartition("/")[2], finding.fix) == (
        1,
        "SS302",
        f"b.parquet, written under version 2: column d: {told}",
        "Land its events anew as the table has them, or move it away; it stays where it is.",
    )


def test_files_of_before_come_in_late_once_a_release_let_the_change_of_meaning_through(still: Still) -> None:
    millis = {"type": "int", "connect.name": "io.debezium.time.Time"}
    first, then = avro(("t", millis)), avro(("t", number("io.debezium.time.MicroTime")))
    still.register(first)
    still.settle()
    still.register(then)
    still.settings = {"defaults": {"policies": {"semantic": "migrate"}}}
    still.settle()
    still.settings = {}
    landed_with(still, first, "a.parquet", t=1)
    admitted = taken_in(still)
    assert (admitted.files, admitted.findings) == (1, ())


def test_files_of_any_label_of_a_text_come_into_a_new_table(still: Still) -> None:
    """Each step on the way is a matter of the comment (SS110), and each text is shown as it is."""
    names = ("io.debezium.data.Enum", "io.debezium.data.Json")
    one, other = (avro(("d", {"type": "string", "connect.name": name})) for name in names)
    still.register(one, avro(("d", "string")), other)
    still.settle()
    landed_with(still, one, "a.parquet", d="x")
    admitted = taken_in(still)
    assert (admitted.files, admitted.findings) == (1, ())


@pytest.mark.parametrize(("semantic", "files"), [("hold", 1), ("migrate", 2)])
def test_a_new_table_reads_times_of_its_past_beside_others_where_the_configuration_says_so(
    still: Still, semantic: str, files: int
) -> None:
    still.settings = {"defaults": {"policies": {"semantic": semantic}}}
    micros = avro(("t", number("io.debezium.time.MicroTime")))
    nanos = avro(("t", number("io.debezium.time.NanoTime")))
    still.register(micros, nanos)
    still.settle()
    landed_with(still, micros, "a.parquet", t=1)
    landed_with(still, nanos, "b.parquet", t=1)
    admitted = taken_in(still)
    assert (admitted.files, [d.fix for d in admitted.findings]) == (
        files,
        ["Set policies.semantic to migrate: its values then show beside the others."] * (2 - files),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", ": the schema is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (avro(("a", "nothing")), ": unknown type: nothing"),
        (
            avro(("a", {"type": "record", "name": "A", "fields": []})),
            ", field a: record A has no fields: Parquet and Hive have no empty structs, and fields that can only be "
            "null do not count",
        ),
    ],
    ids=["no JSON", "no type", "no fields"],
)
def test_a_footers_schema_that_cannot_be_understood_is_none_of_the_registrys(
    still: Still, text: str, told: str
) -> None:
    """What its subject is told to do about a version would change nothing."""
    still.register(avro())
    still.settle()
    landed_with(still, text, "a.parquet")
    (finding,) = taken_in(still).findings
    path = f"file://{still.root}/lake/student/incremental/increment_2026112000/a.parquet"
    assert (finding.code, finding.message) == ("SS302", f"{path}: the Avro schema in its footer{told}")


def test_a_footers_schema_that_a_setting_does_not_fit_comes_with_how_to_correct_that(still: Still) -> None:
    still.settings = {"tables": [{"subject": "student-value", "envelope": "flat"}]}
    still.register(avro())
    still.settle()
    landed_with(
        still, json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}), "a.parquet"
    )
    (finding,) = taken_in(still).findings
    assert "the Avro schema in its footer" in finding.message
    assert "version 1" not in finding.message
    assert "envelope" in finding.fix


def test_a_state_that_was_never_published_has_no_date(still: Still) -> None:
    still.register(avro())
    still.settle()
    found = history(still.workspace, "student")
    (generation,) = found.to_json()["generations"]
    assert (generation["state"], generation["published_at"]) == ("000000", None)
    assert not any("1970" in str(line) for line in history_text(found))


@pytest.mark.parametrize(
    ("there", "refused", "version"),
    [(False, "EXTERNAL TABLE", None), (False, "VIEW", 1), (True, "ADD COLUMNS", 1), (True, "VIEW", 1)],
)
def test_a_table_that_failed_has_the_version_that_the_metastore_has(
    still: Still, *, there: bool, refused: str, version: int | None
) -> None:
    def execute(statement: str) -> None:
        if refused in statement:
            raise EngineError("refused")
        if "EXTERNAL TABLE" in statement:
            still.settle()

    still.register(avro())
    if there:
        still.settle()
        still.register(NAMED)
    sql = cast(SqlEngine, SimpleNamespace(execute=execute))
    result = apply(replace(still.workspace, sql=sql))
    (told,) = result.to_json()["tables"]
    assert (told["version"], told["error"]) == (version, "refused")
    first = next(iter(apply_text(result)))
    assert str(first) == "lake.student  failed" + (f"  version {version}" if version else "")
