"""One query that only reads, for `schemasync sql`; the tables' own database is the default one."""

from __future__ import annotations

from typing import Any

from schemasync.app.workspace import Workspace
from schemasync.core.ports import Rows


def query(workspace: Workspace, sql: str) -> Rows:
    """Run one statement with ``defaults.database`` as the default; the values are such as JSON can hold.

    Raises:
        UsageError: the statement is no query.
        EngineError: Spark refused it, or failed in it.
    """
    return workspace.sql.select(sql, database=workspace.config.defaults.database)


def rows_json(rows: Rows) -> dict[str, Any]:
    """Return ``{"columns": [...], "rows": [[...]]}``."""
    return {"columns": list(rows.columns), "rows": [list(row) for row in rows.rows]}
