"""Every story beside this file, told on real Spark; ``SCHEMASYNC_RETELL=1`` writes down anew what they show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.stories.teller import Teller, blocks

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
STORIES = sorted(path.stem for path in HERE.glob("*.md") if path.stem != "README")
DECISIONS = frozenset(
    [
        "add-not-null-no-default",
        "create-composite-key",
        "delete-then-late",
        "doc",
        "drift-held",
        "drift-kept",
        "drift-repaired",
        "drop-readd",
        "drop-readd-at-once",
        "envelope-change",
        "groups",
        "groups-stay",
        "insert-only",
        "insert-only-said",
        "kafka-offset",
        "key-change",
        "key-change-lifted",
        "key-new-column",
        "landed-files-retire",
        "late-event",
        "metadata",
        "mixed-versions",
        "nullability",
        "older-version-late",
        "policy-add-hold",
        "policy-add-null",
        "policy-drop-hold",
        "policy-drop-keep",
        "policy-retype-hold",
        "policy-widen-hold",
        "rename-alias-off",
        "rename-as-debezium",
        "rename-said",
        "reorder",
        "replay",
        "retype-beyond",
        "shape-plain",
        "shape-plain-unordered",
        "subject-recreated",
        "tombstone-retention",
    ]
)
"""Stories of what we decide or keep: Spark does in them what it does in others, too."""


@pytest.mark.parametrize(
    "story", [pytest.param(name, marks=pytest.mark.one_spark if name in DECISIONS else ()) for name in STORIES]
)
def test_the_story_goes_as_it_is_written(story: str, lab: Lab) -> None:
    path = HERE / f"{story}.md"
    written = path.read_text()
    told = _told(written, Teller(lab))
    if os.environ.get("SCHEMASYNC_RETELL"):
        path.write_text(told)
    assert told == path.read_text()


def test_decisions_are_stories() -> None:
    assert set(STORIES) >= DECISIONS


def _told(text: str, teller: Teller) -> str:
    """Return the story with what really happened in every block that shows something."""
    told, position = "", 0
    for block in blocks(text):
        shown = teller.run(block)
        told += text[position : block.start] + (block.body if shown is None else shown)
        position = block.end
    teller.end()
    return told + text[position:]
