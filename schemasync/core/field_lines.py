"""Where in the text of a schema a field stands: for annotations that point at lines.

Found by looking for names in their order, not by parsing: a schema that is no Avro has lines, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_WORD = re.compile(r"(\b(?:field|column) )?(\w+(?:\.\w+)*)")


def line_of(text: str, path: str) -> int | None:
    """Return the line (from 1) of a field; steps of its dotted path that are no names (``element``) are passed over."""
    at: int | None = None
    for step in path.split("."):
        if found := re.compile(rf'"name"\s*:\s*"{re.escape(step)}"').search(text, at or 0):
            at = found.end()
    return None if at is None else text.count("\n", 0, at) + 1


def line_for(text: str, message: str, columns: Collection[str]) -> int:
    """Return the line of the first field that a message names, 1 where it names none that the text has.

    Of its words those count that are among the ``columns``, or that stand behind "field" or "column".
    """
    lines = (line_of(text, name) for name in _named(message, columns))
    return next((line for line in lines if line is not None), 1)


def _named(message: str, columns: Collection[str]) -> Iterator[str]:
    for announced, word in _WORD.findall(message):
        if announced or word in columns:
            yield word
