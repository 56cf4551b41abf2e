"""The systems that take part, by the session that they need: extensions of one would slow down the plans of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.systems.base import Family
from benchmarks.systems.delta import DELTA
from benchmarks.systems.hudi import HUDI
from benchmarks.systems.iceberg import ICEBERG
from benchmarks.systems.limit import Limit
from benchmarks.systems.ours import Schemasync
from benchmarks.systems.paimon import PAIMON
from benchmarks.systems.recipe import Recipe

OURS: Final = "schemasync"
LIMIT: Final = "limit"

PLAIN: Final = Family(systems={OURS: Schemasync, "recipe-s1": Recipe, LIMIT: Limit})

FAMILIES: Final[Mapping[str, Family]] = {
    "plain": PLAIN,
    "delta": DELTA,
    "iceberg": ICEBERG,
    "hudi": HUDI,
    "paimon": PAIMON,
}

SYSTEMS: Final[Mapping[str, str]] = {system: name for name, family in FAMILIES.items() for system in family.systems}
"""System -> its family."""
