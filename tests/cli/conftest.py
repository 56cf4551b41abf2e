from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench import Bench, Project
from tests.lab import Lab


@pytest.fixture(autouse=True)
def _as_before(logging_restored: None) -> None:
    """Every command line sets logging up anew."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def project(tmp_path: Path, lab: Lab) -> Project:
    return Project(tmp_path, lab)
