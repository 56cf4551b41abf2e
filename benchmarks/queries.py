"""The queries of the read benchmark, and the one that compares a whole table with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.values import NAMES, Key, count_up, key_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL_SCAN: Final = "full-scan"
DIGEST: Final = "digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query; ``sql`` has ``{t}`` where the table stands. ``discards``: rows are read and not collected."""

    name: str
    sql: str
    discards: bool = False

    def run(self, session: SparkSession, table: str) -> list[list[str]]:
        """Run it to its end; return what it found as sorted text, nothing where it discards."""
        rows = session.sql(self.sql.format(t=table))
        if self.discards:
            # Spark's own "noop" sink cannot read Delta's tables with deletion vectors (3.3.3).
            plan: Any = rows._jdf
            plan.queryExecution().toRdd().count()
            return []
        return sorted([str(value) for value in row] for row in rows.collect())


def queries(rows: int, key: Key) -> tuple[Query, ...]:
    """Return the read queries for a base of so many rows."""
    one = literal(key_of(count_up(rows * 3 // 7, 1), key)[0].as_py())
    # A hundredth of the keys.
    low, high = (one, str(rows * 3 // 7 + rows // 100)) if key == "bigint" else ("'4000'", "'428f'")
    columns = ", ".join(NAMES)
    return (
        Query(name="count", sql="SELECT count(*) FROM {t}"),
        Query(name="aggregate", sql="SELECT status, sum(price) FROM {t} GROUP BY status"),
        Query(name=FULL_SCAN, sql=f"SELECT {columns} FROM {{t}}", discards=True),
        Query(name="look-up", sql=f"SELECT {columns} FROM {{t}} WHERE id = {one}"),
        Query(name="key-range", sql=f"SELECT count(*), sum(price) FROM {{t}} WHERE id BETWEEN {low} AND {high}"),
        Query(name="filter", sql="SELECT id, price, note FROM {t} WHERE customer_id = 4711"),
    )


def digest() -> Query:
    """Return the query that says how many rows there are and what is in them, indifferent to their order.

    Spark's hash passes over nulls, so it is told where they are, too.
    """
    values = ", ".join(f"{name}, isnull({name})" for name in NAMES)
    hashed = f"SELECT xxhash64({values}) AS h FROM {{t}}"
    sums = "count(*), sum(CAST(h AS DECIMAL(38, 0))), bit_xor(h)"
    return Query(name=DIGEST, sql=f"SELECT {sums} FROM ({hashed}) AS hashes")


def literal(value: Any) -> str:
    """Return a key as SQL has it."""
    return f"'{value}'" if isinstance(value, str) else str(value)
