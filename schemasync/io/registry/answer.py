"""What came of one GET request: an answer of whatever kind, or silence.

Made by the transport and read by `wire`. It promises that what an answer shows of itself in errors is one short line
without the credentials that were sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from schemasync.io.registry.auth import secrets
from schemasync.io.registry.endpoint import Endpoint, redact_url

RETRIED_STATUSES = frozenset({408, 429, *range(500, 600)}) - {501, 505}
"""What is temporary: also what proxies answer for a registry that they do not reach (Cloudflare: 520 to 526). That
something is not implemented, or not in this version of HTTP, is no accident."""
EXCERPT = 80
"""How many characters of a strange answer an error shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: any status, any body. ``retry_after`` is the pause that it asks for, in seconds."""

    endpoint: Endpoint
    path: str
    status: int
    content_type: str
    retry_after: float
    location: str
    body: bytes

    @property
    def where(self) -> str:
        """What was asked of whom."""
        return self.endpoint.place(self.path)

    @property
    def final(self) -> bool:
        """Whether the same question would get the same answer again."""
        return self.status not in RETRIED_STATUSES

    @property
    def reason(self) -> str:
        """What is wrong with an answer that is not final."""
        return f"it answered with status {self.status}"

    @property
    def cause(self) -> Exception | None:
        """Nothing was raised."""
        return None

    @property
    def not_found(self) -> bool:
        """Whether the registry itself, not something in front of it, says that there is no such thing."""
        return self.status == 404 and 40400 < (self._error_code() or 0) < 40500

    def _error_code(self) -> int | None:
        """Return the registry's own five-digit code (40401, ...); None where the body is not its JSON."""
        try:
            code = json.loads(self.body)["error_code"]
        except (ValueError, RecursionError, TypeError, KeyError, IndexError):
            return None
        return code if isinstance(code, int) else None

    def excerpt(self) -> str:
        """Return what came back in one line: status, content type and the first characters."""
        kind = self._shown(self.content_type)[:EXCERPT] or "unknown"
        text = self._shown(self.body[:4096].decode("utf-8", "replace"))[:EXCERPT]
        return f"status {self.status}, content type {kind}, beginning with '{text}'"

    @property
    def elsewhere(self) -> str:
        """Where it points to instead, empty where it points nowhere."""
        return self._shown(redact_url(self.location))

    def _shown(self, text: str) -> str:
        for secret in secrets(self.endpoint.auth, self.endpoint.headers.values()):
            text = text.replace(secret, "***")
        return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Why no answer came."""

    reason: str
    cause: Exception | None
    retry_after: float = 0.0
    final: bool = False
