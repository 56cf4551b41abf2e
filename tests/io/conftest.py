from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from schemasync.io.parquet import pages


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have servers of tests reached as they are."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def short_files_are_long() -> Iterator[None]:
    """Files of tests have page footers wherever these are written."""
    with patch.object(pages, "LONG_ROWS", 0):
        yield
