from __future__ import annotations

import json
from dataclasses import replace

import pytest

from schemasync.core.events import SchemaEvent
from schemasync.core.slack import LONGEST, slack_message
from tests.core.test_events import EVENT

DIAGNOSTICS = (
    {"code": "SS101", "severity": "info", "message": "a column comes", "fix": ""},
    {"code": "SS108", "severity": "warning", "message": "a <rename>?", "fix": "Say so & go on."},
    {"code": "SS110", "severity": "error", "message": "no", "fix": ""},
)


def text_of(event: SchemaEvent) -> str:
    message = json.loads(slack_message(event))
    assert list(message) == ["text"]
    return str(message["text"])


def test_a_message_says_what_happened_and_what_is_to_be_done() -> None:
    changes = (
        {"kind": "add_column", "column": "age", "from": None, "to": "int"},
        {"kind": "change_default", "column": "size", "from": None, "to": 7},
        {"kind": "change_key", "column": None, "from": ["id"], "to": ["id", "k"]},
    )
    assert text_of(replace(EVENT, changes=changes, diagnostics=DIAGNOSTICS)) == (
        "*lake.student* went from version 1 to 2 (shop.public.student-value)\n```\n"
        "add column age  int\n"
        "change default size  7\n"
        'change key  ["id"] -&gt; ["id", "k"]\n'
        "SS108 warning: a &lt;rename&gt;? Say so &amp; go on.\n"
        "SS110 error: no\n```"
    )


@pytest.mark.parametrize(
    ("verdict", "versions", "said"),
    [
        ("evolve", (None, 3), "was created at version 3"),
        ("migrate", (3, 3), "was changed at version 3"),
        ("hold", (3, 4), "is held at version 3, the registry's newest is 4"),
        ("hold", (3, 3), "is held at version 3"),
        ("hold", (None, 3), "is held"),
    ],
)
def test_each_kind_of_news_has_its_words(verdict: str, versions: tuple[int | None, int], said: str) -> None:
    event = replace(
        EVENT, verdict=verdict, from_version=versions[0], to_version=versions[1], changes=(), diagnostics=()
    )
    assert text_of(event) == f"*lake.student* {said} (shop.public.student-value)"


def test_lines_that_are_too_many_are_counted() -> None:
    changes = tuple({"kind": "add_column", "column": f"c{n:03}", "from": None, "to": "int"} for n in range(300))
    lines = text_of(replace(EVENT, changes=changes)).splitlines()
    shown = len("\n".join(lines[2:-2]))
    assert (lines[2], lines[-2]) == (
        "add column c000  int",
        f"... and {300 - len(lines[2:-2])} more: schemasync plan lake.student",
    )
    assert LONGEST - len("add column c000  int") <= shown <= LONGEST


def test_a_message_of_others_cannot_end_the_block() -> None:
    odd = ({"code": "SS108", "severity": "warning", "message": "``` @channel", "fix": ""},)
    assert "'''" in text_of(replace(EVENT, diagnostics=odd)).splitlines()[-2]
