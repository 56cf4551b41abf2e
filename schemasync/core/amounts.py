"""Numbers with their nouns, as sentences for people have them."""

from __future__ import annotations


def many(number: int, noun: str) -> str:
    """Return a number with its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
