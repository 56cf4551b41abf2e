"""DDL without Spark: from a subject's history or one schema file, the same bytes every time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.ddl_printing import PrintedDdl, from_file, from_registry, print_ddl, write_files
from schemasync.core.config import Config
from schemasync.core.names import Dialect
from schemasync.errors import SchemaError, UsageError
from schemasync.io.templates import TemplateRenderer
from tests.twins.registry import MemoryRegistry

RENDERER = TemplateRenderer()
OWN = [{"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}]


def schema(*columns: tuple[str, Any]) -> str:
    fields = [{"name": "id", "type": "long"}, *({"name": n, "type": t} for n, t in columns), *OWN]
    return json.dumps({"type": "record", "name": "Student", "fields": fields})


def config(**more: Any) -> Config:
    defaults = {"location": "file:///lake/{topic}"}
    return Config.model_validate({"registry": {"url": "file:/r"}, "defaults": defaults} | more)


@pytest.fixture
def registry() -> MemoryRegistry:
    made = MemoryRegistry()
    made.register(
        "student-key", json.dumps({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]})
    )
    made.register("student-value", schema(("age", "int")))
    made.register("student-value", schema(("age", "long"), ("name", ["null", "string"])))
    return made


def columns(printed: PrintedDdl) -> list[str]:
    table = next(s.sql for s in printed.statements if s.kind == "table")
    body = table.partition("(\n")[2].partition("\n)")[0]
    return [line.strip(" ,").partition(" COMMENT")[0] for line in body.splitlines() if "`__" not in line]


def printed(registry: MemoryRegistry, subject: str = "student-value", **more: Any) -> PrintedDdl:
    version = more.pop("version", None)
    return print_ddl(from_registry(registry, config(), subject, version=version), RENDERER, **more)


def test_all_statements_are_printed_in_the_order_in_which_they_can_run(registry: MemoryRegistry) -> None:
    found = [(s.kind, s.name) for s in printed(registry).statements]
    assert found == [
        ("database", "lake"),
        ("table", "student"),
        ("view", "student_view"),
        ("per-run", "student_base"),
        ("per-run", "student_incremental_2026010100"),
        ("per-run", "student_compactor"),
    ]


def test_the_newest_version_is_printed_unless_another_is_named(registry: MemoryRegistry) -> None:
    assert columns(printed(registry)) == ["`id` bigint", "`age` bigint", "`name` string"]
    assert columns(printed(registry, version=1)) == ["`id` bigint", "`age` int"]


def test_a_subject_may_be_named_by_topic_and_table_too(registry: MemoryRegistry) -> None:
    names = ("student-value", "student", "lake.student")
    assert {printed(registry, name).script for name in names} == {printed(registry).script}


def test_the_same_call_gives_the_same_bytes(registry: MemoryRegistry) -> None:
    assert printed(registry).to_json() == printed(registry).to_json()


def test_a_table_made_by_hand_from_it_carries_what_schemasync_looks_for(registry: MemoryRegistry) -> None:
    table = printed(registry, kind="table").script
    assert "'schemasync.version' = '2'" in table
    assert "'schemasync.keys' = '[\"id\"]'" in table


@pytest.mark.parametrize(
    ("dialect", "first"),
    [
        (Dialect.SPARK, "CREATE EXTERNAL TABLE `lake`.`student` ("),
        (Dialect.HIVE, "CREATE EXTERNAL TABLE `lake`.`student` ("),
        (Dialect.TRINO, 'CREATE TABLE "lake"."student" ('),
    ],
)
def test_each_dialect_quotes_in_its_own_way(registry: MemoryRegistry, dialect: Dialect, first: str) -> None:
    assert printed(registry, dialect=dialect, kind="table").script.splitlines()[0] == first


def test_the_per_run_tables_lie_where_a_first_compaction_would_put_them(registry: MemoryRegistry) -> None:
    script = printed(registry, kind="per-run", hour="2026112007").script
    places = [line.split("'")[1] for line in script.splitlines() if line.startswith("LOCATION")]
    assert places == [
        "file:///lake/student/base/g=000000/00000000/s=00000000",
        "file:///lake/student/incremental/increment_2026112007",
        "file:///lake/student/base/g=000001/00000000/s=00000000",
    ]


def test_a_column_lives_since_the_version_that_brought_it_though_events_had_no_order_then() -> None:
    """The table would be held else: its columns would be told apart otherwise than when it was made."""
    without = MemoryRegistry()
    without.register("student-value", schema(("name", "string")))
    without.register("student-value", schema(("name", "string"), ("seq", "long")))
    ordered = config(tables=[{"subject": "student-value", "sequence_by": ["seq"], "keys": ["id"]}])
    source = from_registry(without, ordered, "student-value")
    assert [version.version for version in source.versions] == [1, 2]


@pytest.mark.parametrize("hour", ["2026", "2026133000", "20260101aa", "\uff12" * 10])
def test_what_is_no_hour_is_refused(registry: MemoryRegistry, hour: str) -> None:
    with pytest.raises(UsageError, match="is no hour"):
        printed(registry, hour=hour)


@pytest.mark.parametrize(
    ("subject", "version", "words"),
    [("nope", None, "The subjects here: student-value."), ("student", 3, "There are: 1, 2.")],
)
def test_what_the_registry_does_not_have_is_refused_with_what_it_has(
    registry: MemoryRegistry, subject: str, version: int | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        from_registry(registry, config(), subject, version=version)


def test_a_broken_version_in_the_past_does_not_stand_in_the_way(registry: MemoryRegistry) -> None:
    registry.register("course-value", '"string"')
    registry.register("course-value", schema())
    assert columns(printed(registry, "course")) == ["`id` bigint"]
    with pytest.raises(SchemaError):
        printed(registry, "course", version=1)


def test_a_key_that_is_not_in_the_value_is_refused_as_apply_would(registry: MemoryRegistry) -> None:
    source = from_registry(registry, config(tables=[{"subject": "student-value", "keys": ["nr"]}]), "student")
    with pytest.raises(SchemaError, match="SS402: key column nr"):
        print_ddl(source, RENDERER)


def test_a_key_that_names_no_column_is_refused_as_apply_would(registry: MemoryRegistry) -> None:
    registry.register("student-key", '"long"')
    with pytest.raises(SchemaError, match="SS402: student-key names no column"):
        print_ddl(from_registry(registry, config(), "student"), RENDERER)


def test_renames_of_the_configuration_count(registry: MemoryRegistry) -> None:
    tables = [{"subject": "student-value", "table": "pupil", "renames": {"name": "age"}}]
    source = from_registry(registry, config(tables=tables), "pupil")
    assert print_ddl(source, RENDERER, kind="table").statements[0].name == "pupil"


def files(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("student.avsc", "student-value"),
        ("shop.student-value.avsc", "shop.student-value"),
        ("shop.student-value/3.avsc", "shop.student-value"),
        ("a%2Eb.avsc", "a.b-value"),
    ],
)
def test_the_name_of_a_schema_file_says_its_subject(tmp_path: Path, name: str, subject: str) -> None:
    files(tmp_path, {name: schema()})
    found = print_ddl(from_file(config(), tmp_path / name, keys=("id",)), RENDERER)
    assert (found.subject, found.version, found.diagnostics) == (subject, 1, ())


def test_a_schema_file_takes_the_configuration_of_its_subject(tmp_path: Path) -> None:
    files(tmp_path, {"student.avsc": schema()})
    tables = [{"subject": "student-value", "table": "pupil"}, {"subject": "other-value", "table": "x"}]
    assert from_file(config(tables=tables), tmp_path / "student.avsc").target.table == "pupil"


def test_a_schema_file_that_no_entry_takes_has_the_defaults(tmp_path: Path) -> None:
    files(tmp_path, {"student.avsc": schema()})
    assert from_file(config(tables=[{"subject": "o-value"}]), tmp_path / "student.avsc").target.table == "student"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'"string"', b'{"type": "record"}'])
def test_what_is_no_schema_is_one_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.avsc").write_bytes(content)
    with pytest.raises((SchemaError, UsageError)):
        from_file(config(), tmp_path / "s.avsc")


def test_a_missing_schema_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"s\.avsc: the schema file cannot be read: No such file"):
        from_file(config(), tmp_path / "s.avsc")


def test_files_hold_one_statement_each(registry: MemoryRegistry, tmp_path: Path) -> None:
    found = printed(registry)
    paths = write_files(found, tmp_path / "sql")
    assert [path.name for path in paths][:2] == ["lake.database.sql", "student.sql"]
    assert "\n\n".join(path.read_text().rstrip("\n") for path in paths) == found.script


def test_a_directory_that_cannot_be_written_is_one_error(registry: MemoryRegistry, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="the DDL cannot be written there: Not a directory"):
        write_files(printed(registry), tmp_path / "file" / "sql")


def test_a_statement_of_a_users_own_template_ends_with_one_semicolon(registry: MemoryRegistry, tmp_path: Path) -> None:
    (tmp_path / "table.sql.j2").write_text("CREATE TABLE {{ table }} ;\n;\n")
    (tmp_path / "view_body.sql.j2").write_text("-- ours\nSELECT 1; -- done\n")
    found = print_ddl(from_registry(registry, config(), "student-value"), TemplateRenderer(tmp_path))
    sqls = {s.kind: s.sql for s in found.statements}
    assert (sqls["table"], sqls["view"].rpartition("AS\n")[2]) == ("CREATE TABLE `lake`.`student`", "SELECT 1")


def test_no_semicolon_lies_in_the_comment_that_a_users_own_template_ends_with(
    registry: MemoryRegistry, tmp_path: Path
) -> None:
    (tmp_path / "table.sql.j2").write_text("CREATE TABLE {{ table }}\n-- done\n")
    found = print_ddl(from_registry(registry, config(), "student-value"), TemplateRenderer(tmp_path))
    assert "\n\nCREATE TABLE `lake`.`student`\n-- done\n;\n\n" in found.script


def test_a_backslash_escapes_nothing_in_a_query_for_trino(registry: MemoryRegistry, tmp_path: Path) -> None:
    query = r"SELECT 1 WHERE sep <> '\\' AND name <> '--'"
    (tmp_path / "view_body.sql.j2").write_text(query)
    source = from_registry(registry, config(), "student-value")
    found = print_ddl(source, TemplateRenderer(tmp_path), dialect=Dialect.TRINO)
    (view,) = (s.sql for s in found.statements if s.kind == "view")
    assert view.endswith(query)
