"""What else is made of the statement that creates a view: the same view under another name, or only where none is.

Pure. The statement is a template's, which may be one of the user's own: what that says in comments before it begins is
no part of it, whatever it names.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""Comments, and what is between them; it is found at the beginning of every text."""


def under_name(statement: str, name: str, other: str) -> str | None:
    """Return the statement that makes the same view under another name, None where it does not have this one."""
    comments, proper = _parts(statement)
    return comments + proper.replace(name, other, 1) if name in proper else None


def replacing_none(statement: str) -> str:
    """Return the statement that fails where there is a view."""
    comments, proper = _parts(statement)
    return comments + proper.replace("CREATE OR REPLACE VIEW", "CREATE VIEW", 1)


def _parts(statement: str) -> tuple[str, str]:
    found = _BEFORE.match(statement)
    end = found.end() if found else 0
    return statement[:end], statement[end:]
