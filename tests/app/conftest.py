from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.still import Still


@pytest.fixture
def still(tmp_path: Path) -> Still:
    return Still(tmp_path)
