"""Names and literals: quoted, cleaned, expanded, one function per need.

Whoever writes SQL or a path asks here; nobody else escapes anything. What these functions return is right for any
input text, or they raise; they never return a name that an engine would read as something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import assert_never

from schemasync.errors import SchemaError, UsageError

MAX_NAME = 128
"""Longest table or column name that every metastore schema stores (its TBL_NAME and SERDES.NAME columns)."""

MAX_COMMENT = 255
"""Longest column comment: the Hive metastore stores 256 characters, AWS Glue 255."""

RESERVED_COLUMNS = frozenset(
    {
        "segment",
        "__op",
        "__ts_ms",
        "__offset",
        "__schema_version",
        "__admitted_ms",
        *(f"__seq{n}" for n in range(1, 10)),
    }
)
"""Physical column names that the long-lived table keeps for itself; compare lower-cased names with them."""


class Dialect(Enum):
    """A SQL engine's way of writing types, names and literals; the value is what ``--dialect`` takes."""

    SPARK = "spark"
    HIVE = "hive"
    TRINO = "trino"


def quote_identifier(name: str, dialect: Dialect) -> str:
    """Return the name quoted: back-ticks for Spark and Hive, double quotes for Trino, the quote itself doubled."""
    match dialect:
        case Dialect.SPARK | Dialect.HIVE:
            return f"`{name.replace('`', '``')}`"
        case Dialect.TRINO:
            return '"' + name.replace('"', '""') + '"'
        case _:  # pragma: no cover
            assert_never(dialect)


# "${" starts a variable that Spark and Hive replace in the text of a statement, inside literals too. NUL is written
# as \u0000 because a short "\0" before digits would be read as an octal escape.
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "${": "\\u0024{"}
_ESCAPED = re.compile("|".join(re.escape(plain) for plain in _ESCAPES))


def quote_string(text: str, dialect: Dialect) -> str:
    """Return the text as a string literal.

    Spark and Hive read backslash escapes (Spark: with its default ``spark.sql.parser.escapedStringLiterals=false``);
    Trino reads none and doubles single quotes.
    """
    match dialect:
        case Dialect.SPARK | Dialect.HIVE:
            return "'" + _ESCAPED.sub(lambda found: _ESCAPES[found.group()], text) + "'"
        case Dialect.TRINO:
            return "'" + text.replace("'", "''") + "'"
        case _:  # pragma: no cover
            assert_never(dialect)


def table_name(topic: str) -> str:
    """Return a topic as a table name: lower case, ``[a-z0-9_]``, not starting with a digit.

    Raises:
        SchemaError: the name would be empty or longer than 128 characters.
    """
    name = re.sub(r"[^a-z0-9_]", "_", topic.lower())
    name = f"_{name}" if name[:1].isdigit() else name
    if 1 <= len(name) <= MAX_NAME:
        return name
    raise SchemaError(
        f"a topic of {len(topic)} characters makes no table name",
        where=f"topic {topic[:40]!r}",
        why=f"metastores store names of 1 to {MAX_NAME} characters",
        fix="Set `table:` for this subject in the configuration.",
    )


def comment_text(doc: str) -> str:
    """Return a doc text as a column comment: one line, printable, at most 255 characters (cut with ``...``)."""
    line = "".join(c for c in " ".join(doc.split()) if c.isprintable())
    return line if len(line) <= MAX_COMMENT else line[: MAX_COMMENT - 3] + "..."


_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def expand_pattern(pattern: str, values: Mapping[str, str]) -> str:
    """Return the pattern with each ``{placeholder}`` replaced by its value (once: values are not expanded again).

    Raises:
        UsageError: a placeholder that has no value; the message names those that have one.
    """

    def value_of(found: re.Match[str]) -> str:
        if found[1] in values:
            return values[found[1]]
        raise UsageError(
            f"unknown placeholder {{{found[1]}}}",
            where=f"pattern {pattern!r}",
            fix=f"Known here: {', '.join(f'{{{name}}}' for name in sorted(values)) or 'none'}.",
        )

    return _PLACEHOLDER.sub(value_of, pattern)


_HOUR_PARTS = {"yyyy": "[0-9]{4}", "MM": "[0-9]{2}", "dd": "[0-9]{2}", "HH": "[0-9]{2}"}
_HOUR_TOKEN = re.compile(r"yyyy|MM|dd|HH|[^A-Za-z]")


@cache
def hour_directory_regex(pattern: str) -> re.Pattern[str]:
    """Return a regex that matches exactly the directories of an hour pattern, with groups yyyy, MM, dd and HH.

    Inside braces stand ``yyyy``, ``MM``, ``dd``, ``HH`` in any arrangement (``increment_{yyyyMMddHH}``,
    ``year={yyyy}/month={MM}/day={dd}/hour={HH}``); outside, everything is literal. A part that is named twice must
    hold the same value in both places.

    Raises:
        UsageError: other letters in braces, or one of the four parts is missing.
    """
    seen: set[str] = set()
    pieces = _PLACEHOLDER.split(pattern.strip("/"))
    body = [_hour_regex(piece, pattern, seen) if n % 2 else re.escape(piece) for n, piece in enumerate(pieces)]
    if missing := [part for part in _HOUR_PARTS if part not in seen]:
        raise _hour_error(pattern, f"an hour pattern without {', '.join(missing)}")
    return re.compile("".join(body))


def _hour_regex(braced: str, pattern: str, seen: set[str]) -> str:
    tokens = _HOUR_TOKEN.findall(braced)
    if "".join(tokens) != braced:
        raise _hour_error(pattern, f"unknown placeholder {{{braced}}}")
    return "".join(_hour_piece(token, seen) for token in tokens)


def _hour_piece(token: str, seen: set[str]) -> str:
    if token not in _HOUR_PARTS:
        return re.escape(token)
    if token in seen:
        return f"(?P={token})"
    seen.add(token)
    return f"(?P<{token}>{_HOUR_PARTS[token]})"


def _hour_error(pattern: str, what: str) -> UsageError:
    return UsageError(
        what,
        where=f"pattern {pattern!r}",
        fix="Use {yyyy}, {MM}, {dd} and {HH}, each at least once, alone or joined as in {yyyyMMddHH}.",
    )


def parse_hour(pattern: str, relative_dir: str) -> str | None:
    """Return the hour ``YYYYMMDDHH`` that a directory (relative to the table's root) stands for.

    None where the directory does not match the pattern, or matches with an hour that does not exist.

    Raises:
        UsageError: the pattern is not an hour pattern.
    """
    found = hour_directory_regex(pattern).fullmatch(relative_dir.strip("/"))
    if found is None:
        return None
    try:
        datetime(int(found["yyyy"]), int(found["MM"]), int(found["dd"]), int(found["HH"]))
    except ValueError:
        return None
    return found["yyyy"] + found["MM"] + found["dd"] + found["HH"]
