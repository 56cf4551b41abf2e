"""What settings call their secrets: those are masked wherever they show, and are no arguments of another program."""

from __future__ import annotations

from typing import Final

KEYS: Final = r"(?:api|secret|access|account|private|encryption|provided)[._-]?key|oauth2\.credential"
"""Regular expression of what storages call theirs, beside passwords, tokens and what says that it is secret."""
