"""What `import schemasync` offers programs: plan, apply and compact, each one call from a configuration to a result.

Opens what the command line would open, and closes it again; with a Spark session of the caller's own it uses that and
leaves it running.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from schemasync.app import applying, compacting, planning
from schemasync.app.applying import ApplyResult
from schemasync.app.compacting import CompactResult
from schemasync.app.opening import open_workspace, workspace_of
from schemasync.app.planning import Plan
from schemasync.app.workspace import Workspace
from schemasync.core.config import Config
from schemasync.core.config_values import LITERALS, UTC_NAMES, ZONE, takes_escapes
from schemasync.errors import UsageError
from schemasync.io.config_file import load_config, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Configured = Config | str | Path | None
"""A `Config` (its relative paths start at the working directory), a file, or None: the file that commands would use."""


def plan(config: Configured = None, tables: str | Sequence[str] = (), *, spark: SparkSession | None = None) -> Plan:
    """Say what `apply` would do with the named tables, all where none is named; nothing is changed.

    ``spark`` is a session to use; without one Spark is started and stopped again.

    Raises:
        SchemasyncError: the configuration is wrong, or the registry or Spark does not answer.
    """
    with _opened(config, spark, "plan") as workspace:
        return planning.plan(workspace, _several(tables))


def apply(
    config: Configured = None, tables: str | Sequence[str] = (), *, spark: SparkSession | None = None
) -> ApplyResult:
    """Bring the named tables to what the registry says, and admit what landed.

    A table that fails carries its error in the result; the others went on.

    Raises:
        SchemasyncError: the configuration is wrong, or the registry or Spark does not answer.
    """
    with _opened(config, spark, "apply") as workspace:
        return applying.apply(workspace, _several(tables))


def compact(
    config: Configured = None,
    tables: str | Sequence[str] = (),
    *,
    dry_run: bool = False,
    spark: SparkSession | None = None,
) -> CompactResult:
    """Apply, then fold what was admitted into the base; a dry run only says what it would fold.

    Raises:
        SchemasyncError: the configuration is wrong, or the registry or Spark does not answer.
    """
    with _opened(config, spark, "compact") as workspace:
        return compacting.compact(workspace, _several(tables), dry_run=dry_run)


@contextmanager
def _opened(config: Configured, spark: SparkSession | None, purpose: str) -> Iterator[Workspace]:
    complete = _complete(config)
    if spark is not None:
        _require_settings(spark)
        yield workspace_of(complete, spark)
        return
    with open_workspace(complete, environ=os.environ, purpose=f"schemasync.{purpose}") as workspace:
        yield workspace


def _require_settings(spark: SparkSession) -> None:
    # Not with a default: where nobody has set it, Spark answers that, and not the zone of its JVM, in which it works.
    zone = spark.conf.get(ZONE)
    if zone not in UTC_NAMES:
        raise UsageError(
            f"the Spark session's time zone is {zone}, and it must be UTC",
            why="dates that become timestamps would be other moments before a compaction than after it",
            fix=f"Set {ZONE} to UTC, in a session of its own (newSession()) where others use this one.",
        )
    literals = spark.conf.get(LITERALS)
    if not takes_escapes(str(literals)):
        raise UsageError(
            f"the Spark session's {LITERALS} is {literals}, and it must be false",
            why="texts in statements, as of defaults, would be others",
            fix="Set it to false, in a session of its own (newSession()) where others use this one.",
        )


def _several(tables: str | Sequence[str]) -> Sequence[str]:
    """Return names of tables, of which one may be said by itself: a text would be taken letter by letter."""
    return (tables,) if isinstance(tables, str) else tables


def _complete(config: Configured) -> Config:
    if isinstance(config, Config):
        return resolve(config, Path.cwd())
    if not isinstance(config, str | os.PathLike | None):
        raise UsageError(
            f"config is a {type(config).__name__}, which is no configuration",
            fix="Give a schemasync.Config, which schemasync.Config.model_validate({...}) makes of a dict, the path of "
            "a file, or None for the file that commands would use.",
        )
    path = None if config is None else Path(config)
    return load_config(path, environ=os.environ, cwd=Path.cwd()).config
