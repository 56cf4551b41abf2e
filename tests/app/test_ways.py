"""Which way work goes: in this process, or in Spark's tasks."""

from __future__ import annotations

from typing import Any

import pytest

from schemasync.app.workspace import Storage

MB = 2**20


@pytest.mark.parametrize(
    ("local", "limit", "size", "small"),
    [
        (False, None, 256 * MB, True),
        (False, None, 256 * MB + 1, False),
        (True, None, 1024 * MB, True),
        (True, 0, 1, False),
        (True, 10 * MB, 10 * MB, True),
        (False, 1024 * MB, 512 * MB, True),
    ],
)
def test_one_process_works_up_to_the_limit_and_on_all_where_spark_is_local(
    local: bool, limit: int | None, size: int, small: bool
) -> None:
    nobody: Any = None
    storage = Storage(
        lake=nobody,
        small=nobody,
        large=nobody,
        shards=nobody,
        large_shards=nobody,
        scratch=nobody,
        local=local,
    )

    assert storage.is_small(size, limit) == small
