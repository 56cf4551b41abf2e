"""Every error that schemasync raises on purpose.

The tree::

    SchemasyncError
    ├── PermanentError           trying again changes nothing
    │   ├── UsageError           wrong call or configuration; exit code 2
    │   ├── SchemaError          an Avro schema that cannot become a table
    │   │   └── SettingError     not with what a setting says of its events
    │   ├── RegistryError        the registry answered, and the answer is final
    │   ├── DataError            a landed file that is missing, corrupt or fits no version
    │   ├── StorageError         no permission, no space, no such scheme
    │   ├── OwnershipError       a table that exists and is not ours
    │   ├── EngineError          Spark or the metastore refused a statement
    │   ├── UnforeseenError      something failed that nobody thought of
    │   └── NotificationError    an event that a receiver refused, or did not take after all retries
    └── TemporaryError           the same call may succeed later
        ├── RegistryUnavailableError  no answer, or 408, 429, 5xx after all retries
        ├── ConflictError             another writer published first; nothing was changed
        └── MetastoreBusyError        the embedded metastore is held by another process

An error says what is wrong, where, why, and what to do. Errors of libraries are translated once, at the
edge that called them, with ``from``.
"""

from __future__ import annotations


class SchemasyncError(Exception):
    """Root of the tree.

    ``what`` is one sentence; ``where`` names the place (file, table, column path, subject and version);
    ``fix`` says what to do. ``retryable`` tells loops whether to try again.
    """

    retryable = False
    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.why = why
        self.fix = fix
        super().__init__(self.text())

    @property
    def said(self) -> str:
        """The message without its fix: ``where: what: why``, leaving out what is empty."""
        return ": ".join(filter(None, (self.where, self.what, self.why)))

    def text(self) -> str:
        """Return the message: ``where: what: why. fix``, leaving out what is empty."""
        head = self.said
        if not self.fix:
            return head
        stop = "" if head.endswith((".", "!", "?")) else "."
        return f"{head}{stop} {self.fix}"


class PermanentError(SchemasyncError):
    """Trying again changes nothing until someone acts."""


class UnforeseenError(PermanentError):
    """Something failed that nobody thought of; it is one table's failure, and never stops the others."""


def as_ours(error: Exception) -> SchemasyncError:
    """Return an error of the tree as it is, and any other as an UnforeseenError caused by it."""
    if isinstance(error, SchemasyncError):
        return error
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    unforeseen = UnforeseenError(what, fix="This should not happen; please report it with the log that -v gives.")
    unforeseen.__cause__ = error
    return unforeseen


class TemporaryError(SchemasyncError):
    """The same call may succeed later."""

    retryable = True


class UsageError(PermanentError):
    """Wrong call, wrong option, or a configuration that cannot be understood."""

    exit_code = 2


class SchemaError(PermanentError):
    """An Avro schema that cannot become a table; ``code`` is its diagnostic's."""

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "", code: str = "SS406") -> None:
        self.code = code
        super().__init__(what, where=where, why=why, fix=fix)


class SettingError(SchemaError):
    """A setting of the table that the subject's schema does not fit; ``fix`` names it."""


class RegistryError(PermanentError):
    """The registry answered, and asking again would give the same answer (401, 403, 404, not JSON)."""


class DataError(PermanentError):
    """A landed file that is missing, corrupt, or fits no version of its subject."""


class StorageError(PermanentError):
    """The lake's storage refused: no permission, no space, no such scheme."""


class OwnershipError(PermanentError):
    """A table or view that exists and was not made by schemasync."""


class EngineError(PermanentError):
    """Spark or the metastore refused a statement."""


class NotificationError(PermanentError):
    """An event could not be delivered: refused, or not taken after all retries. The change itself is done."""


class RegistryUnavailableError(TemporaryError):
    """The registry could not be reached, or kept answering 408, 429 or 5xx."""


class ConflictError(TemporaryError):
    """Another writer published first. Nothing of this run became visible."""


class MetastoreBusyError(TemporaryError):
    """The embedded metastore serves one process at a time, and another one holds it."""
