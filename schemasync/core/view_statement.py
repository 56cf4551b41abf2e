"""What else is made of the statement that creates a view: the same view under another name, or only where none is.

Pure. The statement is a template's, which may be one of the user's own: what that says in comments before it begins is
no part of it, whatever it names, and what it says before and after the query is no part of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

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
    at = next((begin for begin, _ in _pieces(statement) if statement.startswith(name, begin)), None)
    return None if at is None else statement[:at] + other + statement[at + len(name) :]


def replacing_none(statement: str) -> str:
    """Return the statement that fails where there is a view."""
    begin = next((begin for begin, _ in _pieces(statement)), 0)
    return statement[:begin] + statement[begin:].replace("CREATE OR REPLACE VIEW", "CREATE VIEW", 1)


def proper_query(text: str) -> str:
    """Return a query without the comments, blanks and semicolons before and after it: Spark keeps none of them.

    Those in between stay.
    """
    pieces = _pieces(text)
    begin, end = next(pieces, (0, 0))
    for _, last in pieces:
        end = last
    return text[begin:end]


def ends_with_query(statement: str, query: str) -> bool:
    """Tell whether a statement has AS and this query at its end, with nothing but comments and semicolons around it."""
    at = statement.rfind(query)
    if at < 0:
        return False
    last = ""
    for begin, end in _pieces(statement[:at]):
        last = statement[begin:end]
    return last.upper() == "AS" and next(_pieces(statement[at + len(query) :]), None) is None


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece begins and ends, without comments, blanks and semicolons."""
    at = 0
    while found := _PIECE.match(text, at):
        at = found.end()
        if found.group("comment"):
            at = _comment_end(text, at)
        elif not found.group("none"):
            yield found.start(), at


def _comment_end(text: str, at: int) -> int:
    """Return where a comment ends that has begun before ``at``; others may be within."""
    depth = 1
    while depth and (found := _BRACKET.search(text, at)):
        depth, at = depth + (1 if found.group() != "*/" else -1), found.end()
    return len(text) if depth else at
