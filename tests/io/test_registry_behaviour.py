"""What every registry does, whatever holds the schemas: the memory twin, a directory, HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest

from schemasync.core.ports import RegisteredSchema, Registry
from schemasync.errors import RegistryError
from schemasync.io.registry.file import FileRegistry
from schemasync.io.registry.http import HttpRegistry
from tests.io.http_registry_server import RegistryServer
from tests.twins.registry import MemoryRegistry, Reference

ADDRESS = '{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"city","type":"string"}]}'
LONGER_ADDRESS = ADDRESS.replace('"string"', '["null","string"]')
PERSON = '{"type":"record","name":"Person","namespace":"shop","fields":[{"name":"home","type":"Address"}]}'
ORDER = (
    '{"type":"record","name":"Order","namespace":"shop","fields":'
    '[{"name":"to","type":"Address"},{"name":"by","type":"Person"}]}'
)
ODD_NAMES = ("a/b", ":.ctx:a", "50%", "a%2Fb", "with space", "zürich", "a+b", "a?b#c", "shop.public.student-value")


class Changer(Protocol):
    """The writing side, which each kind of registry has in its own way."""

    @property
    def registry(self) -> Registry: ...

    def put(
        self,
        subject: str,
        version: int,
        text: str = '"string"',
        *,
        references: Sequence[Reference] = (),
        kind: str = "",
    ) -> int:
        """Add a version; return its schema id."""
        ...

    def remove(self, subject: str, version: int) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.registry = MemoryRegistry()

    def put(
        self,
        subject: str,
        version: int,
        text: str = '"string"',
        *,
        references: Sequence[Reference] = (),
        kind: str = "",
    ) -> int:
        added = self.registry.register(subject, text, version=version, references=references, kind=kind or "AVRO")
        return added.schema_id

    def remove(self, subject: str, version: int) -> None:
        self.registry.delete(subject, version)


def wrapped_references(references: Sequence[Reference]) -> list[dict[str, object]]:
    return [{"name": name, "subject": subject, "version": version} for name, subject, version in references]


class OnDisk:
    def __init__(self, directory: Path) -> None:
        self.registry = FileRegistry(directory)
        self.directory = directory
        self.ids = 0

    def put(
        self,
        subject: str,
        version: int,
        text: str = '"string"',
        *,
        references: Sequence[Reference] = (),
        kind: str = "",
    ) -> int:
        self.ids += 1
        answer = {"subject": subject, "version": version, "id": self.ids, "schema": text}
        answer |= {"references": wrapped_references(references)} if references else {}
        answer |= {"schemaType": kind} if kind else {}
        place = self.directory / quote(subject, safe="")
        place.mkdir(exist_ok=True)
        (place / f"{version}.json").write_text(json.dumps(answer), encoding="utf-8")
        return self.ids

    def remove(self, subject: str, version: int) -> None:
        place = self.directory / quote(subject, safe="")
        (place / f"{version}.json").unlink()
        if not any(place.iterdir()):
            shutil.rmtree(place)


class OverHttp:
    def __init__(self, server: RegistryServer, registry: HttpRegistry) -> None:
        self.registry = registry
        self.server = server

    def put(
        self,
        subject: str,
        version: int,
        text: str = '"string"',
        *,
        references: Sequence[Reference] = (),
        kind: str = "",
    ) -> int:
        more = {"schemaType": kind} if kind else {}
        self.server.add(subject, version, text, references=wrapped_references(references), **more)
        return self.server.newest_id()

    def remove(self, subject: str, version: int) -> None:
        del self.server.subjects[subject][version]
        if not self.server.subjects[subject]:
            del self.server.subjects[subject]


@pytest.fixture(params=["memory", "file", "http"])
def held(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Changer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    match request.param:
        case "memory":
            yield InMemory()
        case "file":
            yield OnDisk(tmp_path)
        case _:
            with RegistryServer() as server, HttpRegistry(server.url, backoff=0) as registry:
                yield OverHttp(server, registry)


def test_an_empty_registry_has_no_subjects(held: Changer) -> None:
    assert held.registry.subjects() == ()


def test_subjects_come_sorted_each_once(held: Changer) -> None:
    for subject in ("b", "c", "a", "B"):
        held.put(subject, 1)
        held.put(subject, 2)
    assert held.registry.subjects() == ("B", "a", "b", "c")


def test_versions_come_in_numeric_order(held: Changer) -> None:
    for version in (10, 9, 100, 1):
        held.put("s", version)
    assert held.registry.versions("s") == (1, 9, 10, 100)


def test_an_unknown_subject_has_no_versions(held: Changer) -> None:
    assert held.registry.versions("nobody") == ()


@pytest.mark.parametrize("subject", ODD_NAMES)
def test_any_name_can_be_asked_for(held: Changer, subject: str) -> None:
    schema_id = held.put(subject, 1)
    assert (held.registry.subjects(), held.registry.versions(subject), held.registry.schema(subject, 1)) == (
        (subject,),
        (1,),
        RegisteredSchema(subject=subject, version=1, schema_id=schema_id, text='"string"'),
    )


def test_names_that_differ_only_in_their_encoding_are_two_subjects(held: Changer) -> None:
    held.put("a/b", 1)
    held.put("a%2Fb", 2)
    assert {subject: held.registry.versions(subject) for subject in held.registry.subjects()} == {
        "a/b": (1,),
        "a%2Fb": (2,),
    }


def test_a_schema_comes_as_it_was_written(held: Changer) -> None:
    text = '{ "type": "enum",\n "name": "E", "symbols": ["ü", "B"] }'
    schema_id = held.put("s", 3, text)
    assert held.registry.schema("s", 3) == RegisteredSchema(subject="s", version=3, schema_id=schema_id, text=text)


def test_a_version_that_was_just_added_is_listed_at_once(held: Changer) -> None:
    held.put("s", 1)
    before = held.registry.versions("s")
    held.put("s", 2)
    assert (before, held.registry.versions("s")) == ((1,), (1, 2))


def test_a_deleted_version_leaves_a_gap(held: Changer) -> None:
    for version in (1, 2, 3):
        held.put("s", version)
    held.remove("s", 2)
    assert held.registry.versions("s") == (1, 3)


def test_a_subject_that_lost_its_last_version_is_gone(held: Changer) -> None:
    held.put("s", 1)
    held.remove("s", 1)
    assert (held.registry.subjects(), held.registry.versions("s")) == ((), ())


def test_a_version_that_was_deleted_and_made_again_is_read_again(held: Changer) -> None:
    held.put("s", 1, '"int"')
    held.registry.schema("s", 1)
    held.remove("s", 1)
    held.registry.versions("s")
    held.put("s", 1, '"long"')
    assert held.registry.schema("s", 1).text == '"long"'


@pytest.mark.parametrize(("subject", "version"), [("s", 2), ("nobody", 1)])
def test_a_version_that_does_not_exist_is_an_error_that_names_it(held: Changer, subject: str, version: int) -> None:
    held.put("s", 1)
    with pytest.raises(RegistryError, match=f"no version {version} of subject '{subject}'"):
        held.registry.schema(subject, version)


def test_other_kinds_of_schema_are_refused(held: Changer) -> None:
    held.put("s", 1, 'syntax = "proto3";', kind="PROTOBUF")
    with pytest.raises(RegistryError, match="PROTOBUF, and only Avro"):
        held.registry.schema("s", 1)


def test_references_come_before_what_needs_them_each_once(held: Changer) -> None:
    held.put("address", 1, ADDRESS)
    held.put("person", 1, PERSON, references=[("shop.Address", "address", 1)])
    held.put("order", 1, ORDER, references=[("shop.Person", "person", 1), ("shop.Address", "address", 1)])
    assert held.registry.schema("order", 1).references == (ADDRESS, PERSON)


def test_a_reference_names_the_very_version(held: Changer) -> None:
    held.put("address", 1, ADDRESS)
    held.put("address", 2, LONGER_ADDRESS)
    held.put("person", 1, PERSON, references=[("shop.Address", "address", 1)])
    assert held.registry.schema("person", 1).references == (ADDRESS,)


def test_two_versions_with_one_content_agree_however_it_is_written(held: Changer) -> None:
    held.put("address", 1, ADDRESS)
    held.put("address-copy", 1, json.dumps(json.loads(ADDRESS), sort_keys=True, indent=1))
    held.put("person", 1, PERSON, references=[("shop.Address", "address-copy", 1)])
    held.put("order", 1, ORDER, references=[("shop.Address", "address", 1), ("shop.Person", "person", 1)])
    assert held.registry.schema("order", 1).references == (ADDRESS, PERSON)


def test_one_name_with_two_contents_is_an_error_that_names_the_path(held: Changer) -> None:
    held.put("address", 1, ADDRESS)
    held.put("address", 2, LONGER_ADDRESS)
    held.put("person", 1, PERSON, references=[("shop.Address", "address", 1)])
    held.put("order", 1, ORDER, references=[("shop.Address", "address", 2), ("shop.Person", "person", 1)])
    with pytest.raises(RegistryError, match="two different schemas") as caught:
        held.registry.schema("order", 1)
    assert "order version 1 -> person version 1 -> address version 1" in str(caught.value)


def test_references_in_a_circle_are_an_error_that_names_the_path(held: Changer) -> None:
    held.put("a", 1, PERSON, references=[("b", "b", 1)])
    held.put("b", 1, ADDRESS, references=[("a", "a", 1)])
    with pytest.raises(RegistryError, match="a version 1 -> b version 1 -> a version 1"):
        held.registry.schema("a", 1)


def test_a_reference_to_nothing_is_an_error_that_names_it(held: Changer) -> None:
    held.put("person", 1, PERSON, references=[("shop.Address", "address", 7)])
    with pytest.raises(RegistryError, match="no version 7 of subject 'address'"):
        held.registry.schema("person", 1)


def test_the_newest_id_grows_with_new_content_where_it_is_known(held: Changer) -> None:
    held.put("s", 1, '"int"')
    before = held.registry.newest_id()
    held.put("s", 2, '"long"')
    after = held.registry.newest_id()
    assert (before, after) in [(None, None), (1, 2)]
