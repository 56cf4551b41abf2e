"""Names and literals: quoted, cleaned, expanded, one function per need.

Whoever writes SQL or a path asks here; nobody else escapes anything. What these functions return is right for any
input text, or they raise; they never return a name that an engine would read as something else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache
from typing import assert_never

from schemasync.errors import SchemaError, UsageError

MAX_NAME = 128
"""Longest table name that every metastore schema stores (its TBL_NAME and SERDES.NAME columns), and the longest column
name that one made before Hive 2 stores."""

MAX_COLUMN = 767
"""Longest column name, in UTF-16 units, that a metastore since Hive 2 stores (COLUMN_NAME; measured: 768 fails)."""

MAX_COMMENT = 255
"""Longest column comment, in UTF-16 units: the Hive metastore stores 256, AWS Glue 255."""

MAX_TYPE = 4000
"""Longest type that a metastore stores whose schema has TYPE_NAME VARCHAR(4000); newer ones store any length."""

HIVE_VIRTUAL_COLUMNS = frozenset(
    {
        "input__file__name",
        "block__offset__inside__file",
        "row__offset__inside__block",
        "raw__data__size",
        "row__id",
        "row__is__deleted",
        "grouping__id",
    }
)
"""What Hive puts beside every table's columns (VirtualColumn.java): of a column of that name it reads its own."""

WORKING_COLUMNS = frozenset(f"schemasync_{name}" for name in ("was", "changed", "last", "purge", "rank", "arrival"))
"""What admission and compaction add to physical columns while they work; one more would rename columns of that name in
tables that are there already."""

RESERVED_COLUMNS = (
    HIVE_VIRTUAL_COLUMNS
    | WORKING_COLUMNS
    | frozenset(
        {
            "segment",
            "__op",
            "__ts_ms",
            "__offset",
            "__schema_version",
            "__admitted_ms",
            "__tombstone",
            *(f"__seq{n}" for n in range(1, 10)),
        }
    )
)
"""Physical column names that a row's column never gets; compare lower-cased names with them."""


class Dialect(Enum):
    """A SQL engine's way of writing types, names and literals; the value is what ``--dialect`` takes."""

    SPARK = "spark"
    HIVE = "hive"
    TRINO = "trino"


def is_hidden(path: str) -> bool:
    """Tell whether engines pass over a file: its name begins with a dot or an underscore, or that of a directory does.

    A directory of a partition's values does not count, whatever its column is called.
    """
    *directories, name = path.split("/")
    return name.startswith(("_", ".")) or any(d.startswith(("_", ".")) and "=" not in d for d in directories)


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

    Spark and Hive read backslash escapes (Spark: unless ``spark.sql.parser.escapedStringLiterals`` is true, which no
    session of ours may have); Trino reads none and doubles single quotes.
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
    """Return a doc text as a column comment: one line, printable, at most 255 UTF-16 units (cut with ``...``)."""
    line = "".join(c for c in " ".join(doc.split()) if c.isprintable())
    return line if utf16_length(line) <= MAX_COMMENT else _cut(line, MAX_COMMENT - 3) + "..."


def utf16_length(text: str) -> int:
    """Return the length that Java, and so a metastore, counts: characters beyond U+FFFF count twice."""
    return len(text) + sum(c > "\uffff" for c in text)


def _cut(text: str, units: int) -> str:
    """Return the longest beginning of at most that many UTF-16 units."""
    while utf16_length(text) > units:
        text = text[: units if len(text) > units else -1]
    return text


def is_field_name(text: str) -> bool:
    """Tell whether Avro's Java parser, and Hive's grammar for struct fields, take a text as a field's name.

    Both ask Java char by char: letters of any script, digits and _, no digit first, nothing beyond U+FFFF.
    """
    return text != "" and not _is_digit(text[0]) and all(_is_letter(c) or _is_digit(c) or c == "_" for c in text)


def _is_letter(character: str) -> bool:
    return character <= "\uffff" and unicodedata.category(character) in {"Lu", "Ll", "Lt", "Lm", "Lo"}


def _is_digit(character: str) -> bool:
    return character <= "\uffff" and unicodedata.category(character) == "Nd"


@lru_cache(maxsize=10_000)
def folded(name: str) -> str:
    """Return what engines compare names by: equal texts are one name to Spark and Hive.

    As Java's ``equalsIgnoreCase``: character by character, upper case first; so the Greek final sigma is a sigma
    and the Turkish dotless i is an i, which lower case alone does not tell.
    """
    return "".join(_folded(c) for c in name)


def _folded(character: str) -> str:
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[0]


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return the name, or with the first numbered suffix (``name__2``) that makes it differ from all that are taken.

    Whatever `folded` makes equal counts as the same name. The result is no longer than a metastore stores.
    """
    return TakenNames(taken).take(wanted)


class TakenNames:
    """Names that are taken, for whoever needs many that are free: a table of thousands of columns, one for each."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._folded = {folded(name) for name in taken}

    def take(self, wanted: str) -> str:
        """Return what `free_name` does of these names; from then on it is one of them."""
        name = next(name for name in _candidates(wanted) if folded(name) not in self._folded)
        self._folded.add(folded(name))
        return name


def _candidates(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        suffix = f"__{number}"
        yield _cut(name, MAX_COLUMN - len(suffix)) + suffix
        number += 1


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


_DAY_PARTS = {"yyyy": "[0-9]{4}", "MM": "[0-9]{2}", "dd": "[0-9]{2}"}
_HOUR_PARTS = {**_DAY_PARTS, "HH": "[0-9]{2}"}
_HOUR_TOKEN = re.compile(r"yyyy|MM|dd|HH|[^A-Za-z]")


@cache
def hour_directory_regex(pattern: str) -> re.Pattern[str]:
    """Return a regex that matches exactly the directories of an hour pattern, with groups yyyy, MM, dd and HH.

    Inside braces stand ``yyyy``, ``MM``, ``dd``, ``HH`` in any arrangement (``increment_{yyyyMMddHH}``,
    ``year={yyyy}/month={MM}/day={dd}/hour={HH}``); outside, everything is literal. A part that is named twice must
    hold the same value in both places. Without ``HH`` a directory is that of a whole day, and there is no such group.

    Raises:
        UsageError: other letters in braces, or a part of the day is missing.
    """
    seen: set[str] = set()
    pieces = _PLACEHOLDER.split(pattern.strip("/"))
    body = [_hour_regex(piece, pattern, seen) if n % 2 else re.escape(piece) for n, piece in enumerate(pieces)]
    if missing := [part for part in _DAY_PARTS if part not in seen]:
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
        fix="Use {yyyy}, {MM} and {dd}, and {HH} where each hour has its own, alone or joined as in {yyyyMMddHH}.",
    )


def parse_hour(pattern: str, relative_dir: str) -> str | None:
    """Return the hour ``YYYYMMDDHH`` that a directory (relative to the table's root) stands for, a day's is its first.

    None where the directory does not match the pattern, or matches with an hour that does not exist.

    Raises:
        UsageError: the pattern is not an hour pattern.
    """
    found = hour_directory_regex(pattern).fullmatch(relative_dir.strip("/"))
    if found is None:
        return None
    year, month, day, hour = (found.groupdict().get(part, "00") for part in _HOUR_PARTS)
    try:
        datetime(int(year), int(month), int(day), int(hour))
    except ValueError:
        return None
    return year + month + day + hour


def hour_directory(pattern: str, hour: str) -> str:
    """Return the increment directory that an hour (yyyyMMddHH) lies in, relative to the table's location."""
    parts = {"yyyy": hour[:4], "MM": hour[4:6], "dd": hour[6:8], "HH": hour[8:]}

    def filled(braced: re.Match[str]) -> str:
        return re.sub("yyyy|MM|dd|HH", lambda part: parts[part[0]], braced[1])

    return re.sub(r"\{([^{}]*)\}", filled, pattern.strip("/"))
