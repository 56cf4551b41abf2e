"""JSON text that is the same for equal values, and its hash: what is compared with what was written before."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal values: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def canonical_text(text: str) -> str:
    """Return a text that is equal for equal JSON, as `canonical` writes it. What is no JSON is its own.

    Some servers sort the keys or drop the spaces of what was registered.
    """
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return text


def fingerprint(value: Any) -> str:
    """Return the hex SHA-256 of a JSON value in canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
