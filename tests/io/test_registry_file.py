"""The file registry beyond what all registries do: its layout, made-up ids, types found by name, broken files."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.ports import RegisteredSchema
from schemasync.errors import RegistryError
from schemasync.io.registry.file import FileRegistry

ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
PERSON = {"type": "record", "name": "shop.Person", "fields": [{"name": "homes", "type": ["null", "Address"]}]}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def failure(directory: Path, subject: str) -> str:
    with pytest.raises(RegistryError) as caught:
        FileRegistry(directory).schema(subject, 1)
    return str(caught.value)


def record(name: str, *types: object) -> dict[str, object]:
    fields = [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return {"type": "record", "name": name, "namespace": "shop", "fields": fields}


def test_a_file_beside_the_directories_is_version_1_of_its_subject(tmp_path: Path) -> None:
    write(tmp_path / "student-value.avsc", '"string"')
    write(tmp_path / "teacher" / "2.avsc", '"int"')
    registry = FileRegistry(tmp_path)
    assert {subject: registry.versions(subject) for subject in registry.subjects()} == {
        "student-value": (1,),
        "teacher": (2,),
    }


def test_an_avsc_file_is_the_bare_schema_with_a_made_up_id(tmp_path: Path) -> None:
    write(tmp_path / "s" / "4.avsc", '{"type": "int"}')
    assert FileRegistry(tmp_path).schema("s", 4) == RegisteredSchema(
        subject="s", version=4, schema_id=36156676, text='{"type": "int"}'
    )


@given(schema=st.dictionaries(st.text(), st.integers() | st.text()), indent=st.none() | st.integers(0, 4))
def test_a_made_up_id_is_a_positive_int32_that_depends_on_content_alone(
    tmp_path_factory: pytest.TempPathFactory, schema: dict[str, object], indent: int | None
) -> None:
    directory = tmp_path_factory.mktemp("registry")
    schema = {**schema, "type": "int"}
    write(directory / "a.avsc", json.dumps(schema))
    write(directory / "b" / "7.avsc", json.dumps(dict(reversed(schema.items())), indent=indent))
    registry = FileRegistry(directory)
    first, second = registry.schema("a", 1).schema_id, registry.schema("b", 7).schema_id
    assert (first == second, 0 < first < 2**31) == (True, True)


def test_percent_encoded_names_are_decoded(tmp_path: Path) -> None:
    write(tmp_path / "a%2Fb.avsc", '"string"')
    write(tmp_path / "c%3ad" / "1.avsc", '"string"')
    assert FileRegistry(tmp_path).subjects() == ("a/b", "c:d")


def test_no_name_leads_out_of_the_directory(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "1.avsc", '"string"')
    write(tmp_path / "registry" / "s.avsc", '"string"')
    assert FileRegistry(tmp_path / "registry").versions("../outside") == ()


def test_stray_files_and_empty_directories_are_ignored(tmp_path: Path) -> None:
    for stray in (
        "README.md",
        ".hidden.avsc",
        "s/notes.txt",
        "s/package.json",
        "s/.2.avsc",
        ".git/1.avsc",
        "docs/x.md",
    ):
        write(tmp_path / stray, "?")
    write(tmp_path / "s" / "1.avsc", '"string"')
    registry = FileRegistry(tmp_path)
    assert (registry.subjects(), registry.versions("s")) == (("s",), (1,))


@pytest.mark.parametrize("name", ["foo.avsc", "v1.avsc", "-1.avsc", "0.avsc", "1.5.avsc", "0.json"])
def test_a_version_that_is_no_number_from_1_is_an_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    bad = write(tmp_path / "s" / name, '"string"')
    with pytest.raises(RegistryError) as caught:
        FileRegistry(tmp_path).versions("s")
    assert str(caught.value) == (
        f"{bad}: '{name}' does not begin with a version number. "
        "Expected are SUBJECT/VERSION.avsc with versions from 1, SUBJECT/VERSION.json, or SUBJECT.avsc."
    )


def test_a_version_may_be_a_date_but_has_an_end(tmp_path: Path) -> None:
    write(tmp_path / "s" / "20261129.avsc", '"string"')
    assert FileRegistry(tmp_path).versions("s") == (20261129,)
    bad = write(tmp_path / "s" / "20261129120000.avsc", '"string"')
    with pytest.raises(RegistryError) as caught:
        FileRegistry(tmp_path).versions("s")
    assert str(caught.value) == (
        f"{bad}: the largest version is 2147483647. Rename it: dates do for numbers, but not with times."
    )


def test_one_bad_subject_leaves_the_others_alone(tmp_path: Path) -> None:
    write(tmp_path / "bad" / "foo.avsc", "?")
    write(tmp_path / "good" / "1.avsc", '"string"')
    registry = FileRegistry(tmp_path)
    assert (registry.subjects(), registry.schema("good", 1).text) == (("bad", "good"), '"string"')


def test_a_directory_that_may_not_be_read_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden = tmp_path / "lost+found"
    forbidden.mkdir()
    write(tmp_path / "good" / "1.avsc", '"string"')
    listed = os.scandir

    def scandir(directory: Path) -> Any:
        if directory == forbidden:  # its mode would not stop root, who may run this
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(directory)

    monkeypatch.setattr(os, "scandir", scandir)
    registry = FileRegistry(tmp_path)
    assert (registry.subjects(), registry.schema("good", 1).text) == (("good", "lost+found"), '"string"')
    with pytest.raises(RegistryError, match=f"^{re.escape(str(forbidden))}: .*Permission denied"):
        registry.versions("lost+found")


def test_a_link_that_leads_nowhere_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    write(tmp_path / "elsewhere" / "1.avsc", '"string"')
    (tmp_path / "good").symlink_to("elsewhere")
    assert FileRegistry(tmp_path).subjects() == ("elsewhere", "good")


@pytest.mark.parametrize("other", ["s.avsc", "s/01.avsc", "s/1.json", "%73/1.avsc"])
def test_two_files_for_one_version_are_an_error_that_names_both(tmp_path: Path, other: str) -> None:
    paths = {str(write(tmp_path / "s" / "1.avsc", '"string"')), str(write(tmp_path / other, '"string"'))}
    with pytest.raises(RegistryError, match="two files claim version 1 of subject 's'") as caught:
        FileRegistry(tmp_path).versions("s")
    assert {path for path in paths if path in str(caught.value)} == paths


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError) as caught:
        FileRegistry(tmp_path / "nowhere").subjects()
    assert str(caught.value) == (
        f"{tmp_path / 'nowhere'}: the directory of the file registry cannot be read: No such file or directory. "
        "Check registry.url: file:DIR is relative to the configuration file."
    )


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "registry", "?")
    with pytest.raises(RegistryError, match="cannot be read: Not a directory"):
        FileRegistry(path).versions("s")


def test_a_file_that_is_no_json_is_named_with_the_place_of_the_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "s" / "1.avsc", '{"type": }')
    assert failure(tmp_path, "s") == (
        f"{path}: the schema is not JSON: Expecting value: line 1 column 10 (char 9). Correct the file."
    )


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.avsc"
    path.write_bytes(b"\xff\xfe")
    assert failure(tmp_path, "s") == f"{path}: the file cannot be read: it is not UTF-8 text"


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s" / "1.avsc"
    path.mkdir(parents=True)
    assert failure(tmp_path, "s") == f"{path}: the file cannot be read: Is a directory"


def test_a_byte_order_mark_is_not_part_of_the_schema(tmp_path: Path) -> None:
    write(tmp_path / "s.avsc", '\ufeff"string"')
    assert FileRegistry(tmp_path).schema("s", 1).text == '"string"'


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"schema": '"int"'}, "does not have an id (from 1) and a schema (text)"),
        ({"id": 0, "schema": '"int"'}, "does not have an id (from 1) and a schema (text)"),
        ({"id": True, "schema": '"int"'}, "does not have an id (from 1) and a schema (text)"),
        ({"id": 1, "schema": {"type": "int"}}, "does not have an id (from 1) and a schema (text)"),
        (["int"], "does not have an id (from 1) and a schema (text)"),
        ({"id": 1, "schema": "{"}, "the schema is not JSON"),
        ({"id": 1, "schema": '"int"', "version": 2}, "the file says that it is version 2"),
        ({"id": 1, "schema": '"int"', "references": [{"name": "a"}]}, "references that each have a name"),
        ({"id": 1, "schema": '"int"', "references": "a"}, "references that each have a name"),
    ],
)
def test_a_wrapper_that_is_no_answer_of_a_registry_is_an_error(tmp_path: Path, content: object, complaint: str) -> None:
    path = write(tmp_path / "s" / "1.json", content)
    assert [part in failure(tmp_path, "s") for part in (str(path), complaint)] == [True, True]


def test_a_wrapper_keeps_its_id_and_unknown_fields_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path / "s" / "1.json", {"id": 11, "schema": '"int"', "guid": "x", "schema_json": "int", "ruleSet": None})
    assert FileRegistry(tmp_path).schema("s", 1).schema_id == 11


def test_types_that_a_file_does_not_define_come_from_the_others_newest_versions(tmp_path: Path) -> None:
    write(tmp_path / "address" / "1.avsc", record("Address"))
    write(tmp_path / "address" / "2.avsc", ADDRESS)
    write(tmp_path / "person.avsc", PERSON)
    write(tmp_path / "nameless.avsc", ["null", "int"])
    order = record("Order", {"type": "array", "items": "shop.Person"}, {"type": "map", "values": "Address"}, "Order")
    write(tmp_path / "order.avsc", order)
    assert FileRegistry(tmp_path).schema("order", 1).references == (json.dumps(ADDRESS), json.dumps(PERSON))


def test_types_that_are_found_by_name_are_pinned_by_nobody(tmp_path: Path) -> None:
    write(tmp_path / "address.avsc", ADDRESS)
    write(tmp_path / "person.avsc", PERSON)
    for subject, used in (("order", "Person"), ("visit", "Address")):
        pins = [{"name": f"shop.{used}", "subject": used.lower(), "version": 1}]
        content = {"id": 1, "schema": json.dumps(record(subject, used)), "references": pins}
        write(tmp_path / subject / "1.json", content)
    registry = FileRegistry(tmp_path)
    assert {subject: registry.schema(subject, 1).unpinned for subject in registry.subjects()} == {
        "address": False, "person": True, "order": True, "visit": False,
    }  # fmt: skip


def test_names_take_the_namespace_that_encloses_them(tmp_path: Path) -> None:
    write(tmp_path / "a.avsc", {"type": "enum", "name": "Color", "namespace": "inner", "symbols": ["RED"]})
    write(tmp_path / "b.avsc", {"type": "fixed", "name": "Color", "size": 2})
    inner = {"type": "record", "name": "inner.Box", "fields": [{"name": "c", "type": {"type": "Color"}}]}
    write(tmp_path / "s.avsc", {"type": "record", "name": "S", "fields": [{"name": "box", "type": inner}]})
    assert [json.loads(text)["type"] for text in FileRegistry(tmp_path).schema("s", 1).references] == ["enum"]


def test_a_name_that_its_namespace_does_not_know_is_looked_for_without_one(tmp_path: Path) -> None:
    address = write(tmp_path / "address.avsc", ADDRESS | {"namespace": ""})
    colour = {"type": "enum", "name": "Colour", "namespace": "", "symbols": ["RED"]}
    write(tmp_path / "s.avsc", record("S", colour, "Colour", "Address"))
    assert FileRegistry(tmp_path).schema("s", 1).references == (address.read_text(),)


def test_a_type_that_nobody_defines_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "person.avsc", PERSON)
    assert failure(tmp_path, "person") == (
        f"{path}: the type 'shop.Address' is neither defined in this file nor by another subject's newest version. "
        "Add a file that defines it, or correct the name (names without a dot take the namespace)."
    )


def test_a_subject_does_not_look_for_types_in_its_own_other_versions(tmp_path: Path) -> None:
    write(tmp_path / "person" / "1.avsc", PERSON)
    write(tmp_path / "person" / "2.avsc", ADDRESS)
    assert "'shop.Address' is neither defined in this file" in failure(tmp_path, "person")


def test_a_file_that_may_have_defined_a_missing_type_is_named_too(tmp_path: Path) -> None:
    broken = write(tmp_path / "address.avsc", "{")
    write(tmp_path / "person.avsc", PERSON)
    assert f"not looked at: {broken}" in failure(tmp_path, "person")


def test_a_type_that_two_subjects_define_differently_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.avsc", ADDRESS)
    write(tmp_path / "b.avsc", record("Address"))
    write(tmp_path / "person.avsc", PERSON)
    assert "in different ways: by a version 1, b version 1" in failure(tmp_path, "person")


def test_files_that_need_each_other_are_an_error_that_names_the_path(tmp_path: Path) -> None:
    write(tmp_path / "address.avsc", record("Address", "Person"))
    write(tmp_path / "person.avsc", PERSON)
    assert "person version 1 -> address version 1 -> person version 1" in failure(tmp_path, "person")


@pytest.mark.parametrize(
    "schema",
    [{"type": "enum"}, {"type": "array"}, {"type": "record", "name": "R", "fields": 7}, {"no": "type"}, 7, None],
)
def test_what_is_malformed_in_avro_is_left_to_those_who_understand_it(tmp_path: Path, schema: object) -> None:
    write(tmp_path / "s.avsc", schema)
    assert FileRegistry(tmp_path).schema("s", 1).references == ()


def test_a_file_registry_cannot_tell_its_newest_id(tmp_path: Path) -> None:
    assert FileRegistry(tmp_path).newest_id() is None


def test_its_repr_names_the_directory(tmp_path: Path) -> None:
    assert repr(FileRegistry(tmp_path)) == f"FileRegistry('{tmp_path}')"
