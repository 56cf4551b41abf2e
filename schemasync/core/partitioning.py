"""User partitions: an expression over one column whose value says in which partition of its segment a row lies.

The expression is a chain of calls around a column, such as ``year(to_date(create_date, 'MM/dd/yyyy'))``. Only what
gives the same value in Spark's SQL (`spark_sql`) and in Arrow (`schemasync.io.parquet.partitions`) is taken: both
write files. A partition's name is its segment and, behind it, the directories as Hive names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Final

from schemasync.core.conversion import YEAR
from schemasync.core.names import RESERVED_COLUMNS, Dialect, quote_identifier, quote_string, utf16_length
from schemasync.core.schema import Column
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive
from schemasync.errors import DataError

NULL_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive calls the directory of rows without a value."""
NO_VALUES: Final = ("", NULL_VALUE)
"""Texts that are none: Hive and Spark have no other directory for their rows."""
FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
"""Between these all engines write a date alike; others are in the partition without a value."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function around what is inside of it, with its other arguments."""

    function: str
    arguments: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBy:
    """``name: expression`` of the configuration, parsed: calls from the inside out around a column of the row."""

    name: str
    column: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A partition column of a table: its type, and how it follows from the physical column ``source``."""

    name: str
    type: Primitive
    source: str
    calls: tuple[Call, ...] = ()

    @property
    def needs_text(self) -> bool:
        """Whether nothing follows from a text that is not UTF-8; where days are read, it is just none."""
        return not any(call.function == "to_date" for call in self.calls[:1])


_DATES = frozenset({Primitive.DATE, Primitive.TIMESTAMP})
_NUMBERS = frozenset({Primitive.TINYINT, Primitive.SMALLINT, Primitive.INT, Primitive.BIGINT})
_WIDEN: Final = Call("bigint")
"""How every whole number is taken: a column that is widened later keeps its partitions."""
_VALUES = frozenset({Primitive.INT, Primitive.BIGINT, Primitive.BOOLEAN, Primitive.DATE, Primitive.STRING})
"""Types that a partition column can have: all engines write their values alike."""

_UNITS: Final = frozenset({"year", "quarter", "month"})
_FIELDS: Final = {
    "yyyy": (YEAR, "%Y"),
    "MM": (r"(\d{2})", "%m"),
    "dd": (r"(\d{2})", "%d"),
    "HH": (r"(\d{2})", "%H"),
}
"""What the fields of a pattern match in a text, and how C writes them."""
_RUN: Final = re.compile(r"([A-Za-z])\1*|[^A-Za-z]+")
"""A field of a pattern (a letter, repeated), or what stands between two."""


def _is_pattern(text: object) -> bool:
    if not isinstance(text, str) or set(text) & set("'[]{}#%"):
        return False
    fields = [run.group() for run in _RUN.finditer(text) if run[1]]
    return bool(fields) and all(field in _FIELDS for field in fields) and len(set(fields)) == len(fields)


def _is_date_pattern(text: object) -> bool:
    return _is_pattern(text) and "yyyy" in str(text)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 1 <= value < 2**31


def _is_unit(text: object) -> bool:
    return isinstance(text, str) and text in _UNITS


@dataclass(frozen=True, slots=True)
class _Function:
    """What a function takes and gives; ``usage`` shows it to people."""

    usage: str
    takes: frozenset[Primitive]
    gives: Primitive
    arguments: tuple[Callable[[object], bool], ...] = ()


_FUNCTIONS: Final[dict[tuple[str, int], _Function]] = {
    ("year", 0): _Function("year(date or timestamp)", _DATES, Primitive.INT),
    ("month", 0): _Function("month(date or timestamp)", _DATES, Primitive.INT),
    ("day", 0): _Function("day(date or timestamp)", _DATES, Primitive.INT),
    ("hour", 0): _Function("hour(timestamp)", frozenset({Primitive.TIMESTAMP}), Primitive.INT),
    ("to_date", 0): _Function("to_date(timestamp)", frozenset({Primitive.TIMESTAMP}), Primitive.DATE),
    ("to_date", 1): _Function(
        "to_date(string, 'a pattern of yyyy, MM, dd and HH')",
        frozenset({Primitive.STRING}),
        Primitive.DATE,
        (_is_date_pattern,),
    ),
    ("trunc", 1): _Function(
        "trunc(date, 'year', 'quarter' or 'month')", frozenset({Primitive.DATE}), Primitive.DATE, (_is_unit,)
    ),
    ("date_format", 1): _Function(
        "date_format(date or timestamp, 'a pattern of yyyy, MM, dd and HH')", _DATES, Primitive.STRING, (_is_pattern,)
    ),
    ("left", 1): _Function("left(string, length)", frozenset({Primitive.STRING}), Primitive.STRING, (_is_count,)),
    ("substring", 2): _Function(
        "substring(string, first, length)",
        frozenset({Primitive.STRING}),
        Primitive.STRING,
        (_is_count, _is_count),
    ),
    ("pmod", 1): _Function("pmod(whole number, n)", frozenset({Primitive.BIGINT}), Primitive.INT, (_is_count,)),
}
USAGES: Final = tuple(function.usage for function in _FUNCTIONS.values())
"""All functions, as people read of them."""


@cache
def _calls() -> Any:
    """Return a grammar that knows of no function more than its name: each stays what was written."""
    from sqlglot import parser, tokens  # noqa: PLC0415
    from sqlglot.dialects.dialect import Dialect as Grammar  # noqa: PLC0415

    class Calls(Grammar):
        """Names, literals and calls, quoted as Spark does."""

        class Tokenizer(tokens.Tokenizer):
            IDENTIFIERS: ClassVar = ["`"]
            QUOTES: ClassVar = ["'", '"']

        class Parser(parser.Parser):
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}

    return Calls


def parse_partition(name: str, expression: str) -> PartitionBy:
    """Read one entry of ``partition_by``.

    Raises:
        ValueError: it is no such expression; the text says why.
    """
    import sqlglot  # noqa: PLC0415 - importing it costs a tenth of a second, and few tables need it
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    grammar = _calls()

    def unwrap(node: Any) -> PartitionBy:
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            return PartitionBy(name=name, column=node.name)
        if not isinstance(node, exp.Anonymous) or not node.expressions:
            raise ValueError(f"{node.sql(dialect=grammar)} is neither a column nor a function of one")
        inner, *rest = node.expressions
        if not all(isinstance(a, exp.Literal) and (a.is_string or a.is_int) for a in rest):
            raise ValueError(f"{node.name} takes texts and whole numbers behind its first argument")
        arguments = tuple(a.this if a.is_string else int(a.this) for a in rest)
        call = _checked(Call(node.name.lower(), arguments))
        found = unwrap(inner)
        return replace(found, calls=(*found.calls, call))

    try:
        return unwrap(sqlglot.parse_one(expression, read=grammar))
    except SqlglotError as error:
        raise ValueError(f"{expression} is no expression: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise ValueError("the expression has too many functions around functions") from error


def _checked(call: Call) -> Call:
    name = "substring" if call.function == "substr" else call.function
    if name == "trunc" and call.arguments and isinstance(call.arguments[0], str):
        call = Call(name, (call.arguments[0].lower(), *call.arguments[1:]))
    function = _FUNCTIONS.get((name, len(call.arguments)))
    if function is None:
        known = [f.usage for (known, _), f in _FUNCTIONS.items() if known == name]
        if not known:
            raise ValueError(f"there is no function {name} here")
        raise ValueError(f"{name} with {len(call.arguments) + 1} arguments is none of {', '.join(known)}")
    fits = zip(call.arguments, function.arguments, strict=True)
    if not all(accepts(argument) for argument, accepts in fits):
        raise ValueError(f"{name} is called as {function.usage}")
    return Call(name, call.arguments)


def resolve(parsed: PartitionBy, columns: Iterable[Column], physical: Callable[[Column], str]) -> PartitionColumn:
    """Find the column that an expression is about, and the type that it gives.

    Raises:
        ValueError: there is no such column, or a function does not take its type.
    """
    columns = tuple(columns)
    found = next((c for c in columns if c.name.lower() == parsed.column.lower()), None)
    if found is None:
        raise ValueError(f"there is no column {parsed.column} (but {', '.join(c.name for c in columns)})")
    widen = (_WIDEN,) if found.type in _NUMBERS else ()
    type_ = Primitive.BIGINT if widen else found.type
    for call in parsed.calls:
        function = _FUNCTIONS[call.function, len(call.arguments)]
        if type_ not in function.takes:
            raise ValueError(f"{function.usage} does not take a {print_type(type_, Dialect.SPARK)}")
        type_ = function.gives
    if not isinstance(type_, Primitive) or type_ not in _VALUES:
        raise ValueError(f"a {print_type(type_, Dialect.SPARK)} is no value of a partition")
    calls = (*widen, *parsed.calls)
    return PartitionColumn(name=parsed.name, type=type_, source=physical(found), calls=calls)


def unusable_name(name: str, taken: Iterable[str]) -> str:
    """Say why a partition column cannot be called so beside the table's columns, empty where it can."""
    if name in {t.lower() for t in taken}:
        return f"{name} is a column of the table already"
    if name in RESERVED_COLUMNS or name.startswith("_"):
        return f"{name} is one of schemasync's own names, or begins like one"
    return ""


def spark_sql(column: PartitionColumn) -> str:
    """Return the expression over the physical column for Spark."""
    sql = _calls_sql(column)
    if column.type is Primitive.DATE:
        return _in_calendar(sql, sql)
    if column.type is Primitive.STRING:
        # Rows of one directory are of one partition, in one order.
        none = ", ".join(quote_string(text, Dialect.SPARK) for text in NO_VALUES)
        return f"CASE WHEN {sql} NOT IN ({none}) THEN {sql} END"
    return sql


def _calls_sql(column: PartitionColumn) -> str:
    sql = quote_identifier(column.source, Dialect.SPARK)
    for call in column.calls:
        sql = _spark_call(call, sql)
    return sql


def _in_calendar(day: str, value: str) -> str:
    return f"CASE WHEN {day} BETWEEN DATE '{FIRST_DAY}' AND DATE '{LAST_DAY}' THEN {value} END"


def _spark_call(call: Call, inner: str) -> str:
    match call:
        case Call("to_date", ()):
            return f"CAST({inner} AS DATE)"
        case Call("to_date", (str(pattern),)):
            regex, replacement = date_regex(pattern)
            found = quote_string(regex, Dialect.SPARK)
            said = quote_string(re.sub(r"\\(\d)", r"$\1", replacement), Dialect.SPARK)
            # Not by Spark's parser of dates: it fails on texts that an older one would have taken.
            iso = f"regexp_replace({inner}, {found}, {said})"
            return f"CASE WHEN {inner} RLIKE {found} THEN try_cast({iso} AS DATE) END"
        case Call("pmod", (int(n),)):
            return f"CAST(pmod({inner}, {n}) AS INT)"
        case Call("date_format", (str(pattern),)):
            shown = f"date_format({inner}, {quote_string(pattern, Dialect.SPARK)})"
            return _in_calendar(f"CAST({inner} AS DATE)", shown)
        case _:
            said = "".join(f", {quote_string(a, Dialect.SPARK) if isinstance(a, str) else a}" for a in call.arguments)
            return f"{call.function}({inner}{said})"


def date_regex(pattern: str) -> tuple[str, str]:
    r"""Return what a text of that pattern matches whole, and the date in it as a replacement (``\3-\1-01``)."""
    regex = ""
    groups: dict[str, int] = {}
    for run in _RUN.finditer(pattern):
        if run[1]:
            groups[run.group()] = len(groups) + 1
        regex += _FIELDS[run.group()][0] if run[1] else re.escape(run.group())
    place = {field: f"\\{groups[field]}" if field in groups else "01" for field in ("yyyy", "MM", "dd")}
    return rf"^{regex}\z", f"{place['yyyy']}-{place['MM']}-{place['dd']}"


def strftime_format(pattern: str) -> str:
    """Return a pattern as C's strftime takes it."""
    return _RUN.sub(lambda run: _FIELDS[run.group()][1] if run[1] else run.group(), pattern)


_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""What Hive escapes in the name of a directory (FileUtils.escapePathName); Spark does the same."""
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")


def escaped(text: str) -> str:
    """Return a text as Hive writes it into the name of a directory."""
    return _UNSAFE.sub(lambda found: f"%{ord(found.group()):02X}", text)


def directory_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return where rows with these values lie below their segment's directory: ``year=2020/country=DE``."""
    said = (NULL_VALUE if value is None or value in NO_VALUES else escaped(value) for value in values)
    return "/".join(f"{escaped(name)}={value}" for name, value in zip(names, said, strict=True))


def partition_name(segment: str, directory: str = "") -> str:
    """Return the name of a segment's partition, the segment's own where the table has no user partitions."""
    return f"{escaped(segment)}/{directory}" if directory else escaped(segment)


_MOST_VALUE: Final = 256
"""UTF-16 units of a partition's value, and of a partition's whole name below, that a metastore's tables hold."""
_MOST_NAME: Final = 767
_MOST_DIRECTORY: Final = 255
"""Bytes of a directory's name on the file systems of Linux, and on HDFS."""
_SEGMENT_NAME: Final = len("segment=/") + 32
"""What the partition's name begins with; no segment has a longer one."""
ALWAYS_STORABLE: Final = 40
"""Values of so many bytes together are, but for `NUL`: each byte escaped, behind the longest name of a column."""
NUL: Final = "\0"
"""Hive and Spark escape all other control characters (FileUtils.escapePathName)."""
_UNSTORABLE: Final = "the values of an event make a partition that cannot be stored"


def require_storable(directory: str) -> None:
    """Refuse the directory of a partition that no metastore, or no file system, could have.

    Raises:
        DataError: it cannot be stored; names the value.
    """
    for part in directory.split("/") if directory else ():
        name, _, value = part.partition("=")
        if NUL in _unescaped(value):
            raise DataError(
                _UNSTORABLE,
                why=f"{name} is {_unescaped(value)[:40]!r}, and no directory can have a NUL in its name",
                fix="Partition by a part of the value without it, or correct the events at their source.",
            )
        if utf16_length(_unescaped(value)) > _MOST_VALUE or len(part.encode()) > _MOST_DIRECTORY:
            raise _unstorable(f"{name} is {_unescaped(value)[:40]!r}... of {len(_unescaped(value))} characters")
    if (length := utf16_length(directory)) > _MOST_NAME - _SEGMENT_NAME:
        raise _unstorable(f"{directory[:80]}... has {length} characters")


def no_text(column: str, row: int) -> DataError:
    """Return the refusal of an event whose text, which names a partition, is not UTF-8."""
    return DataError(
        _UNSTORABLE,
        why=f"the text in {column} is not UTF-8, row {row}",
        fix="Correct the events at their source, or partition by another column.",
    )


def _unstorable(why: str) -> DataError:
    return DataError(
        _UNSTORABLE,
        why=f"{why}; a metastore takes {_MOST_VALUE} of each, {_MOST_NAME} of all, a directory {_MOST_DIRECTORY} bytes",
        fix="Partition by a part of the value (left, substring, pmod), or correct the events at their source.",
    )


def segment_of(partition: str) -> str:
    """Return the segment that a partition is of."""
    return partition.partition("/")[0]


def values_of(partition: str) -> tuple[str, ...]:
    """Return a partition's values as the metastore lists them, the segment first."""
    segment, *directories = partition.split("/")
    values = (segment, *(directory.partition("=")[2] for directory in directories))
    return tuple(_unescaped(value) for value in values)


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
