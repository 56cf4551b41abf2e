"""What a system must be able to do to take part, and what the table formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks.history import Step
from benchmarks.queries import literal
from benchmarks.values import NAMES, Key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a system is given: its family's session and directory, its own name, and the base's size."""

    session: SparkSession
    home: Path
    name: str
    rows: int
    key: Key

    @property
    def root(self) -> Path:
        """A directory that nobody else uses."""
        return self.home / "tables" / self.name

    @property
    def files(self) -> int:
        """How many files a base has at first: one for 62,500 rows, which is about 10 MB."""
        return max(4, self.rows // 62_500)


class System(Protocol):
    """One system. ``relation`` is what queries name; ``layered`` where changes can be read before they are merged."""

    root: Path
    relation: str
    layered: bool

    def prepare(self, base: Path) -> None:
        """Load the base, sorted by key as a well-kept table is. Not measured."""
        ...

    def land(self, step: Step) -> None:
        """Note, or link, where a change set landed. Not measured."""
        ...

    def compact(self) -> None:
        """Take in what landed, as the system does it hour by hour. Measured."""
        ...

    def show(self) -> None:
        """Make what landed readable without merging it; only where ``layered``. Not measured."""
        ...

    def settle(self) -> None:
        """Leave nothing to readers: merge whatever is not merged yet. Not measured."""
        ...

    def tidy(self) -> None:
        """Remove what earlier states left behind, for the disk's sake. Not measured."""
        ...


class TableFormat(ABC):
    """A table format's table: it takes in a change set once, and shows it by taking it in."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._landed: Path | None = None

    def land(self, step: Step) -> None:
        """Note where it landed."""
        self._landed = step.landed

    def compact(self) -> None:
        """Take in what landed, if something did."""
        if self._landed is not None:
            self._take_in(self._landed)
            self._landed = None

    def show(self) -> None:
        """Take in what landed: a layered table's readers merge it, or pass over what it replaced."""
        self.compact()

    @abstractmethod
    def _take_in(self, landed: Path) -> None: ...

    def _sql(self, statement: str) -> DataFrame:
        return self._setting.session.sql(statement)


Build = Callable[[Setting], System]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Systems that share a session. ``packages`` are Maven coordinates; ``conf`` is asked with the session's home."""

    systems: Mapping[str, Build]
    packages: tuple[str, ...] = ()
    conf: Callable[[Path], dict[str, str]] = field(default=lambda _: {})


TABLE_COLUMNS = (*NAMES, "ts_ms")
"""What a peer's table holds: the row, and the time by which a late event is known."""


def base_rows(setting: Setting, base: Path) -> DataFrame:
    """Return the base's rows, range-partitioned and sorted by key."""
    rows = setting.session.read.parquet(str(base)).select(*TABLE_COLUMNS)
    return rows.repartitionByRange(setting.files, "id").sortWithinPartitions("id")


def newest_events(session: SparkSession, landed: Path) -> DataFrame:
    """Return the newest event per key of a change set: a MERGE refuses several source rows for one target row."""
    rank = "row_number() OVER (PARTITION BY id ORDER BY ts_ms DESC, kafka_offset DESC)"
    return session.sql(f"SELECT *, {rank} AS n FROM parquet.`{landed}`").where("n = 1").drop("n")


def keys_between(session: SparkSession, landed: Path) -> str:
    """Return the range of a change set's keys as a condition on the target's rows ``t``."""
    bounds = session.read.parquet(str(landed)).selectExpr("min(id)", "max(id)").collect()[0]
    return "t.id BETWEEN {} AND {}".format(*map(literal, bounds))


def merge_sql(target: str, source: str, *, only: str = "TRUE") -> str:
    """Return the MERGE that table formats document for change capture, late events left out.

    ``only`` is a further condition on the target's rows ``t``, true for all that can match.
    """
    sets = ", ".join(f"t.{c} = s.{c}" for c in TABLE_COLUMNS)
    values = ", ".join(f"s.{c}" for c in TABLE_COLUMNS)
    return f"""
        MERGE INTO {target} AS t USING {source} AS s ON t.id = s.id AND {only}
        WHEN MATCHED AND s.ts_ms > t.ts_ms AND s.op = 'd' THEN DELETE
        WHEN MATCHED AND s.ts_ms > t.ts_ms THEN UPDATE SET {sets}
        WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({", ".join(TABLE_COLUMNS)}) VALUES ({values})
    """
