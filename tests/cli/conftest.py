from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.bench import Bench, Project
from tests.lab import Lab


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Put back what pytest relies on: every command line sets logging up anew."""
    root, ours = logging.getLogger(), logging.getLogger("schemasync")
    before = (root.handlers[:], root.level, ours.level)
    root.handlers.clear()  # setting up closes the handlers that it finds
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])
    logging.getLogger("urllib3").setLevel(logging.NOTSET)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def project(tmp_path: Path, lab: Lab) -> Project:
    return Project(tmp_path, lab)
