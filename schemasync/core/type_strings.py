"""Types as the engines write them, and back.

Called by whoever renders DDL or reads columns from a metastore. The promise is a law: for every type that a dialect
can carry, ``parse_type(print_type(t, d), d) == t``; everything else raises SchemaError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from schemasync.core.names import Dialect, is_field_name, quote_identifier
from schemasync.core.types import MAX_PRECISION, Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.errors import SchemaError

MAX_DEPTH = 100
"""Deepest nesting that is parsed; no engine stores a type string that deep."""

_SHARED = {p.value: p for p in Primitive}
_TRINO_OWN = {
    "integer": Primitive.INT,
    "real": Primitive.FLOAT,
    "varchar": Primitive.STRING,
    "varbinary": Primitive.BINARY,
    "timestamp(6)": Primitive.TIMESTAMP,
}
_TRINO = {text: p for text, p in _SHARED.items() if p not in _TRINO_OWN.values()} | _TRINO_OWN

_PLAIN_NAME = {
    # Unicode letters and leading digits are legal in some versions only, so Spark gets them quoted.
    Dialect.SPARK: re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    # Trino folds unquoted names to lower case.
    Dialect.TRINO: re.compile(r"[a-z_][a-z0-9_]*"),
}


def _fits_hive(name: str) -> bool:
    """Tell whether Hive's TypeInfoUtils takes a text as one name; it also takes a digit first.

    Less the dot, blank and dollar, which other readers refuse.
    """
    return name != "" and is_field_name(f"_{name}")


_TRINO_RESERVED = """
alter and as between by case cast constraint create cross cube current_catalog current_date current_path current_role
current_schema current_time current_timestamp current_user deallocate delete describe distinct drop else end escape
except exists extract false for from full group grouping having in inner insert intersect into is join json_array
json_exists json_object json_query json_table json_value left like listagg localtime localtimestamp natural normalize
not null on or order outer prepare recursive right rollup select skip table then trim true uescape union unnest using
values when where with
"""
_TRINO_TYPE_WORDS = "array date decimal double interval map row time timestamp"
_TRINO_QUOTED = frozenset(_TRINO_RESERVED.split()) | frozenset(_TRINO_TYPE_WORDS.split())
"""Row field names that Trino takes only in quotes: its reserved words, and words that begin a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grammar:
    """How one dialect writes types."""

    primitives: Mapping[str, Primitive]
    struct: str
    opening: str
    closing: str
    separator: str
    quote: str


_METASTORE = _Grammar(primitives=_SHARED, struct="struct", opening="<", closing=">", separator=":", quote="`")
_GRAMMARS = {
    Dialect.SPARK: _METASTORE,
    Dialect.HIVE: _METASTORE,
    Dialect.TRINO: _Grammar(primitives=_TRINO, struct="row", opening="(", closing=")", separator=" ", quote='"'),
}
_PRINTED = {d: {p: text for text, p in grammar.primitives.items()} for d, grammar in _GRAMMARS.items()}


def print_type(t: Type, dialect: Dialect, *, declared: bool = False) -> str:
    """Return the type as the dialect writes it (``struct<a:int,b:array<string>>``, ``row(a integer, ...)``).

    ``declared``: in a statement. Hive's metastore has types without quotes, its SQL reserves words in them, too.

    Raises:
        SchemaError: the Hive dialect and a struct field whose name Hive's type grammar cannot carry.
    """
    grammar = _GRAMMARS[dialect]

    def inner(of: Type) -> str:
        return print_type(of, dialect, declared=declared)

    match t:
        case Primitive():
            return _PRINTED[dialect][t]
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Array(element=element):
            return _bracketed(grammar, "array", (inner(element),))
        case Map(key=key, value=value):
            return _bracketed(grammar, "map", (inner(key), inner(value)))
        case Struct(fields=fields):
            names = (_field_name(f.name, dialect, declared=declared) for f in fields)
            parts = tuple(f"{name}{grammar.separator}{inner(f.type)}" for name, f in zip(names, fields, strict=True))
            return _bracketed(grammar, grammar.struct, parts)
        case _:  # pragma: no cover
            assert_never(t)


def _bracketed(grammar: _Grammar, head: str, inner: tuple[str, ...]) -> str:
    joint = ", " if grammar.opening == "(" else ","
    return f"{head}{grammar.opening}{joint.join(inner)}{grammar.closing}"


def _field_name(name: str, dialect: Dialect, *, declared: bool) -> str:
    if dialect is Dialect.HIVE:
        return quote_identifier(_hive_name(name), dialect) if declared else _hive_name(name)
    plain = _PLAIN_NAME[dialect].fullmatch(name) is not None
    if plain and not (dialect is Dialect.TRINO and name in _TRINO_QUOTED):
        return name
    return quote_identifier(name, dialect)


def _hive_name(name: str) -> str:
    if _fits_hive(name):
        return name
    raise SchemaError(
        "a struct field's name does not fit into a Hive type",
        where=f"struct field {name!r}",
        why="Hive's type grammar has no quotes and takes letters, digits and _ only (SPARK-39936, SPARK-54028)",
        fix="Rename the field at its source.",
        code="SS411",
    )


def parse_type(text: str, dialect: Dialect) -> Type:
    """Return the type that the text writes. Case of type words and blanks between tokens do not matter.

    Trino's ``timestamp(3)``, ``(6)`` and ``(9)`` all stand for TIMESTAMP: the precision is a setting of its Hive
    connector (``hive.timestamp-precision``), not of the table.

    Raises:
        SchemaError: the text is anything else.
    """
    parser = _Parser(text=text, dialect=dialect)
    parsed = parser.type(0)
    parser.end()
    return parsed


_TOKEN = re.compile(r"""\s*(?:(?P<word>\w+)|(?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")|(?P<mark>[<>():,]))""")


class _Parser:
    """A cursor over the tokens of one type string; recursive descent, one method per rule."""

    def __init__(self, *, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._grammar = _GRAMMARS[dialect]
        self._tokens = tuple(self._scan())
        self._at = 0

    def _scan(self) -> Iterator[str]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._error(f"character {at + 1} starts no name and no mark")
            yield found[0].lstrip()
            at = found.end()

    def type(self, depth: int) -> Type:
        """Read one type that stands inside ``depth`` others."""
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels")
        rule = self._rules().get(word := self._next().lower())
        return rule(depth + 1) if rule else self._primitive(word)

    def end(self) -> None:
        """Check that nothing is left."""
        if self._at < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._at]!r}")

    def _rules(self) -> Mapping[str, Callable[[int], Type]]:
        nested: dict[str, Callable[[int], Type]] = {"array": self._array, "map": self._map, "decimal": self._decimal}
        return nested | {self._grammar.struct: self._struct}

    def _primitive(self, word: str) -> Primitive:
        if self._dialect is Dialect.TRINO and word == "timestamp":
            return self._trino_timestamp()
        if word in self._grammar.primitives:
            return self._grammar.primitives[word]
        raise self._error(f"{word!r} is no type that schemasync knows" if word else "it ends too early")

    def _trino_timestamp(self) -> Primitive:
        self._take("(")
        self._one_of("3", "6", "9")
        self._take(")")
        return Primitive.TIMESTAMP

    def _decimal(self, _depth: int) -> Decimal:
        self._take("(")
        precision = self._number()
        self._take(",")
        scale = self._number()
        self._take(")")
        if 1 <= precision <= MAX_PRECISION and scale <= precision:
            return Decimal(precision=precision, scale=scale)
        raise self._error(f"decimal({precision},{scale}) is out of range")

    def _array(self, depth: int) -> Array:
        self._take(self._grammar.opening)
        element = self.type(depth)
        self._take(self._grammar.closing)
        return Array(element=element)

    def _map(self, depth: int) -> Map:
        self._take(self._grammar.opening)
        key = self.type(depth)
        self._take(",")
        value = self.type(depth)
        self._take(self._grammar.closing)
        return Map(key=key, value=value)

    def _struct(self, depth: int) -> Struct:
        self._take(self._grammar.opening)
        fields = [self._field(depth)]
        while self._one_of(",", self._grammar.closing) == ",":
            fields.append(self._field(depth))
        return Struct(fields=tuple(fields))

    def _field(self, depth: int) -> StructField:
        name = self._name(self._next())
        if self._grammar.separator == ":":
            self._take(":")
        return StructField(name=name, type=self.type(depth))

    def _name(self, token: str) -> str:
        quote = self._grammar.quote
        if self._dialect is not Dialect.HIVE and token.startswith(quote):
            return token[1:-1].replace(quote * 2, quote)
        if _fits_hive(token) if self._dialect is Dialect.HIVE else re.fullmatch(r"[A-Za-z0-9_]+", token):
            return token
        raise self._error(f"{token!r} is no field name" if token else "it ends too early")

    def _number(self) -> int:
        token = self._next()
        if re.fullmatch(r"[0-9]{1,2}", token):
            return int(token)
        raise self._error(f"{token!r} is no precision and no scale")

    def _next(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return token

    def _take(self, mark: str) -> None:
        self._one_of(mark)

    def _one_of(self, *marks: str) -> str:
        token = self._next()
        if token in marks:
            return token
        raise self._error(f"expected {' or '.join(marks)}, found {token!r}" if token else "it ends too early")

    def _error(self, why: str) -> SchemaError:
        shown = self._text if len(self._text) <= 80 else self._text[:77] + "..."
        return SchemaError(
            f"{shown!r} cannot be read as a {self._dialect.value} type",
            why=why,
            fix="Change the column to a supported type, or leave this table to the tool that made it.",
        )
