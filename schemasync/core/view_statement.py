"""What else is made of the statement that creates a view: the same view under another name, or only where none is.

Pure. The statement is a template's, which may be one of the user's own: what that says in comments before it begins is
no part of it, whatever it names, and what it says before and after the query is no part of that.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE: Final = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""Comments, and what is between them; it is found at the beginning of every text."""

_PIECE: Final = re.compile(
    r"""
    (?P<none> [\s;]+ | --(?:\\\n|[^\r\n])* )    # a backslash before the end of a line lets the comment go on
    | (?P<comment> /\*(?!\+) )                   # with a plus it is a hint
    | [rR]'[^']*' | [rR]"[^"]*"                  # there are no escapes in these
    | '[^'\\]*(?:\\.[^'\\]*)*'                   # a doubled quote is as good as the end of one and another one
    | "[^"\\]*(?:\\.[^"\\]*)*"
    | `[^`]*`
    | \w+ | .
    """,
    re.DOTALL | re.VERBOSE,
)
"""What Spark takes for one piece of a query, as far as it matters to where comments begin."""

_BRACKET: Final = re.compile(r"/\*(?!\+)|\*/")


def under_name(statement: str, name: str, other: str) -> str | None:
    """Return the statement that makes the same view under another name, None where it does not have this one."""
    comments, proper = _parts(statement)
    return comments + proper.replace(name, other, 1) if name in proper else None


def replacing_none(statement: str) -> str:
    """Return the statement that fails where there is a view."""
    comments, proper = _parts(statement)
    return comments + proper.replace("CREATE OR REPLACE VIEW", "CREATE VIEW", 1)


def proper_query(text: str) -> str:
    """Return a query without the comments, blanks and semicolons before and after it: Spark keeps none of them.

    Those in between stay.
    """
    begin, end, at = None, 0, 0
    while found := _PIECE.match(text, at):
        at = found.end()
        if found.group("comment"):
            at = _comment_end(text, at)
        elif not found.group("none"):
            begin, end = found.start() if begin is None else begin, at
    return text[begin:end]


def _comment_end(text: str, at: int) -> int:
    """Return where a comment ends that has begun before ``at``; others may be within."""
    depth = 1
    while depth and (found := _BRACKET.search(text, at)):
        depth, at = depth + (1 if found.group() != "*/" else -1), found.end()
    return len(text) if depth else at


def _parts(statement: str) -> tuple[str, str]:
    found = _BEFORE.match(statement)
    end = found.end() if found else 0
    return statement[:end], statement[end:]
