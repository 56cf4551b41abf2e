"""A registry with one version more, and the files that it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.proposing import ProposedRegistry, SchemaFile, propose, read_schema_file
from schemasync.core.ports import RegisteredSchema
from schemasync.errors import UsageError
from tests.twins.registry import MemoryRegistry

ONE = '{"type": "record", "name": "One", "fields": [{"name": "id", "type": "long"}]}'


def record(name: str, *uses: Any) -> str:
    fields = [{"name": f"f{n}", "type": t} for n, t in enumerate(uses)]
    return json.dumps({"type": "record", "name": name, "fields": fields or [{"name": "x", "type": "int"}]})


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def test_a_proposal_is_the_next_version_and_all_else_is_the_registrys(registry: MemoryRegistry) -> None:
    registry.register("a-value", ONE)
    registry.register("b-value", ONE, version=4)
    proposed = RegisteredSchema(subject="a-value", version=2, schema_id=0, text="{}")
    with_it = ProposedRegistry(registry, [proposed])
    assert with_it.subjects() == ("a-value", "b-value")
    assert [with_it.versions(s) for s in ("a-value", "b-value", "c-value")] == [(1, 2), (4,), ()]
    assert with_it.schema("a-value", 2) is proposed
    assert [with_it.schema(s, n) for s, n in (("a-value", 1), ("b-value", 4))] == [
        registry.schema("a-value", 1),
        registry.schema("b-value", 4),
    ]
    assert with_it.newest_id() == registry.newest_id()


def test_a_proposal_for_a_subject_that_is_not_there_makes_it(registry: MemoryRegistry) -> None:
    with_it = ProposedRegistry(registry, [RegisteredSchema(subject="a-value", version=1, schema_id=0, text="{}")])
    assert (with_it.subjects(), with_it.versions("a-value")) == (("a-value",), (1,))


def proposed(registry: MemoryRegistry, text: str, **references: str) -> RegisteredSchema | int:
    return propose(registry, "a-value", SchemaFile(text=text, references=references))


def test_the_version_is_the_one_behind_the_newest(registry: MemoryRegistry) -> None:
    registry.register("a-value", ONE, version=7)
    found = proposed(registry, record("Two"))
    assert found == RegisteredSchema(subject="a-value", version=8, schema_id=0, text=record("Two"))


def test_a_proposal_is_of_the_newest_versions_compatibility_group(registry: MemoryRegistry) -> None:
    """Else a table that follows that group would not look at it, and anything would be allowed."""
    registry.register("a-value", ONE, group="1")
    found = proposed(registry, record("Two"))
    assert found == RegisteredSchema(subject="a-value", version=2, schema_id=0, text=record("Two"), group="1")


def test_a_proposal_is_of_the_group_that_the_table_is_told_to_follow(registry: MemoryRegistry) -> None:
    registry.register("a-value", ONE, group="1")
    registry.register("a-value", record("Two"), group="2")
    found = propose(registry, "a-value", SchemaFile(text=record("Two"), references={}), group="1")
    assert found == RegisteredSchema(subject="a-value", version=3, schema_id=0, text=record("Two"), group="1")
    assert propose(registry, "a-value", SchemaFile(text=ONE, references={}), group="1") == 1
    other = propose(registry, "a-value", SchemaFile(text=ONE, references={}), group="3")
    assert isinstance(other, RegisteredSchema)
    assert other.group == "3"


def test_what_the_registry_has_as_any_version_is_no_proposal(registry: MemoryRegistry) -> None:
    """It answers such a schema with its id, and makes no new version."""
    registry.register("a-value", record("Two"))
    registry.register("a-value", ONE, kind="PROTOBUF")
    registry.register("a-value", ONE)
    assert proposed(registry, json.dumps(json.loads(ONE), indent=4, sort_keys=True)) == 3
    assert proposed(registry, record("Two")) == 1
    registry.delete("a-value", 1)
    assert isinstance(proposed(registry, record("Two")), RegisteredSchema)


def test_a_directory_of_files_may_have_an_older_version_again(registry: MemoryRegistry) -> None:
    registry.register("a-value", record("Two"))
    registry.register("a-value", ONE)
    texts = (ONE, record("Two"))
    found = [propose(registry, "a-value", SchemaFile(text=t, references={}), repeats=True) for t in texts]
    assert found == [2, RegisteredSchema(subject="a-value", version=3, schema_id=0, text=record("Two"))]


def test_references_come_from_the_newest_version_where_they_are_needed(registry: MemoryRegistry) -> None:
    inner, middle, other = record("Inner"), record("Middle", "Inner"), record("Other")
    registry.register("inner", inner)
    registry.register("middle", middle, references=[("Inner", "inner", 1)])
    registry.register("other", other)
    pins = [("Middle", "middle", 1), ("Other", "other", 1)]
    registry.register("a-value", record("A", "Middle", "Other"), references=pins)
    found = proposed(registry, record("A", "Middle"))
    assert isinstance(found, RegisteredSchema)
    assert found.references == (inner, middle)
    assert proposed(registry, record("A", "Middle", "Other")) == 1


def test_references_that_are_given_replace_those_of_the_same_name(registry: MemoryRegistry) -> None:
    registry.register("inner", record("Inner"))
    registry.register("a-value", record("A", "Inner"), references=[("Inner", "inner", 1)])
    mine, new = record("Inner", "New"), record("New")
    found = proposed(registry, record("A", "Inner"), Inner=mine, New=new)
    assert isinstance(found, RegisteredSchema)
    assert found.references == (new, mine)


def test_where_a_name_stands_inside_a_reference_all_are_taken(registry: MemoryRegistry) -> None:
    outer = record("Outer", {"type": "enum", "name": "Colour", "symbols": ["RED"]})
    registry.register("outer", outer)
    registry.register("a-value", record("A", "Outer", "Colour"), references=[("Outer", "outer", 1)])
    found = proposed(registry, record("A", "Colour"))
    assert isinstance(found, RegisteredSchema)
    assert found.references == (outer,)


def test_a_name_that_its_namespace_does_not_know_is_looked_for_without_one(registry: MemoryRegistry) -> None:
    registry.register("inner", record("Inner"))
    registry.register("a-value", record("A", "Inner"), references=[("Inner", "inner", 1)])
    found = proposed(registry, json.dumps(json.loads(record("A", "Inner", "int")) | {"namespace": "shop"}))
    assert isinstance(found, RegisteredSchema)
    assert found.references == (record("Inner"),)


def test_a_reference_that_is_no_json_is_left_to_the_plan(registry: MemoryRegistry) -> None:
    registry.register("broken", "{")
    registry.register("a-value", record("A", "B"), references=[("B", "broken", 1)])
    found = proposed(registry, record("A", "B", "int"))
    assert isinstance(found, RegisteredSchema)
    assert found.references == ("{",)


def test_a_newest_version_that_the_registry_cannot_give_is_left_to_the_plan(registry: MemoryRegistry) -> None:
    registry.register("a-value", ONE, kind="PROTOBUF")
    found = proposed(registry, ONE)
    assert isinstance(found, RegisteredSchema)
    assert found.version == 2


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_bytes(b"\xef\xbb\xbf" + ONE.encode())
    (tmp_path / "b.avsc").write_text("{}")
    read = read_schema_file(tmp_path / "a.avsc", {"B": tmp_path / "b.avsc"})
    assert read == SchemaFile(text=ONE, references={"B": "{}"})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "the schema file cannot be read: No such file or directory"),
        (b"\xff", "the schema file cannot be read: it is not UTF-8 text"),
        (b"{", "the schema file is not JSON"),
    ],
)
def test_a_file_that_cannot_be_understood_is_wrong_usage(tmp_path: Path, content: bytes | None, what: str) -> None:
    file = tmp_path / "a.avsc"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=f"{file}: {what}"):
        read_schema_file(file, {})
