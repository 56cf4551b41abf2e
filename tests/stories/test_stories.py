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


@pytest.mark.parametrize("story", STORIES)
def test_the_story_goes_as_it_is_written(story: str, lab: Lab) -> None:
    path = HERE / f"{story}.md"
    written = path.read_text()
    told = _told(written, Teller(lab))
    if os.environ.get("SCHEMASYNC_RETELL"):
        path.write_text(told)
    assert told == path.read_text()


def _told(text: str, teller: Teller) -> str:
    """Return the story with what really happened in every block that shows something."""
    told, position = "", 0
    for block in blocks(text):
        shown = teller.run(block)
        told += text[position : block.start] + (block.body if shown is None else shown)
        position = block.end
    teller.end()
    return told + text[position:]
