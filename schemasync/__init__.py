"""Keep a Hive metastore and plain Parquet in step with a schema registry.

One small door for programs: ``plan``, ``apply`` and ``compact``, the types of configuration and results, and the
exceptions. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from schemasync.errors import (
    ConflictError,
    DataError,
    EngineError,
    MetastoreBusyError,
    NotificationError,
    OwnershipError,
    PermanentError,
    RegistryError,
    RegistryUnavailableError,
    SchemaError,
    SchemasyncError,
    SettingError,
    StorageError,
    TemporaryError,
    UnforeseenError,
    UsageError,
)

if TYPE_CHECKING:
    from schemasync.app.applying import Applied, ApplyResult
    from schemasync.app.compacting import Compacted, CompactResult
    from schemasync.app.door import apply, compact, plan
    from schemasync.app.planning import Plan, TablePlan
    from schemasync.core.config import Config
    from schemasync.core.diagnostics import Diagnostic, Severity
    from schemasync.core.plan import Step
    from schemasync.core.policy import Verdict

__all__ = [
    "Applied",
    "ApplyResult",
    "CompactResult",
    "Compacted",
    "Config",
    "ConflictError",
    "DataError",
    "Diagnostic",
    "EngineError",
    "MetastoreBusyError",
    "NotificationError",
    "OwnershipError",
    "PermanentError",
    "Plan",
    "RegistryError",
    "RegistryUnavailableError",
    "SchemaError",
    "SchemasyncError",
    "SettingError",
    "Severity",
    "Step",
    "StorageError",
    "TablePlan",
    "TemporaryError",
    "UnforeseenError",
    "UsageError",
    "Verdict",
    "apply",
    "compact",
    "plan",
]

_LAZY: Final = {
    "Applied": "schemasync.app.applying",
    "ApplyResult": "schemasync.app.applying",
    "CompactResult": "schemasync.app.compacting",
    "Compacted": "schemasync.app.compacting",
    "Config": "schemasync.core.config",
    "Diagnostic": "schemasync.core.diagnostics",
    "Plan": "schemasync.app.planning",
    "Severity": "schemasync.core.diagnostics",
    "Step": "schemasync.core.plan",
    "TablePlan": "schemasync.app.planning",
    "Verdict": "schemasync.core.policy",
    "apply": "schemasync.app.door",
    "compact": "schemasync.app.door",
    "plan": "schemasync.app.door",
}
"""Where the names live that are imported only when someone asks for them."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
