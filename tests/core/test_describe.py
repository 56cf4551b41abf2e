from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from schemasync.core.changes import Change, RetypeColumn
from schemasync.core.describe import KINDS, change_json, diagnostic_json
from schemasync.core.diagnostics import diagnose
from schemasync.core.encoding import ListOf
from tests.core import test_policy as made
from tests.core.builders import BIGINT, INT, rec

FLAT_JSON = {"kind": "flat", "op": "op", "deleted": None, "ordering": ["ts_ms"]}
PLAIN_JSON: dict[str, object] = {"kind": "plain", "op": None, "deleted": None, "ordering": []}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (made.ADD, ("add_column", "a", None, "int")),
        (made.ADD_BARE, ("add_column", "a", None, "int not null")),
        (made.DROP, ("drop_column", "a", "int", None)),
        (made.RENAME, ("rename_column", "b", "a", "b")),
        (made.WIDEN, ("widen_column", "a", "int", "bigint")),
        (made.RETYPE, ("retype_column", "a", "int", "string")),
        (
            made.SEMANTIC,
            (
                "change_semantic_type",
                "a",
                "timestamp (io.debezium.time.Timestamp)",
                "timestamp (io.debezium.time.MicroTimestamp)",
            ),
        ),
        (
            replace(made.SEMANTIC, current=INT, desired=ListOf(element=INT)),
            ("change_semantic_type", "a", "int (plain)", "array<int>"),
        ),
        (
            replace(made.ADD_FIELD, current=rec(y=INT), desired=rec(y=INT, x=INT)),
            ("add_field", "a.x", "struct<y:int>", "struct<y:int,x:int>"),
        ),
        (
            replace(made.DROP_FIELD, current=rec(x=INT, y=BIGINT), desired=rec(y=BIGINT)),
            ("drop_field", "a.x", "struct<x:int,y:bigint>", "struct<y:bigint>"),
        ),
        (made.RENAME_FIELD, ("rename_field", "a.y", "x", "y")),
        (made.DETAIL, ("change_detail", "a", "string", "string")),
        (made.NULLABILITY, ("change_nullability", "a", True, False)),
        (made.DEFAULT, ("change_default", "a", "1", "2")),
        (made.DOC, ("change_doc", "a", "", "d")),
        (made.ALIASES, ("change_aliases", "a", [], ["x"])),
        (made.REORDER, ("reorder_columns", None, ["a", "b"], ["b", "a"])),
        (made.KEY, ("change_key", None, ["a"], ["a", "b"])),
        (made.ENVELOPE, ("change_envelope", None, FLAT_JSON, PLAIN_JSON)),
    ],
)
def test_a_change_as_programs_read_it(change: Change, expected: tuple[Any, ...]) -> None:
    found = change_json(change)
    assert tuple(found.values()) == expected
    assert list(json.loads(json.dumps(found))) == ["kind", "column", "from", "to"]


def test_every_kind_of_change_has_a_name_of_its_own() -> None:
    assert len(set(KINDS.values())) == len(KINDS)
    assert {k for k in KINDS if not issubclass(k, get_args(Change))} == set()
    assert len(KINDS) == len(get_args(Change))
    assert KINDS[RetypeColumn] == "retype_column"


def test_a_diagnostic_as_programs_read_it() -> None:
    assert diagnostic_json(diagnose("SS104", "column a was dropped")) == {
        "code": "SS104",
        "severity": "info",
        "message": "column a was dropped",
        "fix": "Set policies.drop to keep or hold to decide otherwise.",
    }
