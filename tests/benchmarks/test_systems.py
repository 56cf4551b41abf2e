"""What table formats are told, without a session that has them."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from benchmarks.history import Step
from benchmarks.systems import FAMILIES, SYSTEMS
from benchmarks.systems.base import Setting


def merges(system: str) -> list[str]:
    """Return the MERGEs of a compaction of what landed with keys from 3 to 9."""
    session = MagicMock()
    session.read.parquet.return_value.selectExpr.return_value.collect.return_value = [(3, 9)]
    setting = Setting(session=session, home=Path("home"), name=system, rows=1000, key="bigint")
    table = FAMILIES[SYSTEMS[system]].systems[system](setting)
    table.land(Step(number=1, landed=Path("landed"), landed_bytes=1, truth=Path("truth")))
    table.compact()
    return [statement for (statement,), _ in session.sql.call_args_list if "MERGE" in statement]


@pytest.mark.parametrize("system", ["delta", "delta-dv", "iceberg-mor"])
def test_the_keys_range_is_said_and_read_from_what_landed(system: str) -> None:
    (merge,) = merges(system)
    assert "ON t.id = s.id AND t.id BETWEEN 3 AND 9\n" in merge
