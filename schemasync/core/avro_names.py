"""Which named types an Avro schema defines and which it needs, read from its JSON alone, by the rules of Java's Avro.

Used before a schema is parsed, and by the file registry, whose bare ``.avsc`` files say of no reference where it is.
What is malformed is passed over here: reading the schema will say so, and where.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED_TYPES: Final = frozenset({"record", "error", "enum", "fixed"})
COMPLEX_TYPES: Final = NAMED_TYPES | {"array", "map"}


def full_name(schema: object) -> str:
    """Return the full name of the named type at the top of a schema, empty where there is none."""
    match schema:
        case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
            return _qualified(name, _namespace(name, rest.get("namespace"), ""))
        case _:
            return ""


def without_namespace(name: str) -> str:
    """Return the name that is looked for where nothing is known under the full one (Java: ``ParseContext.resolve``)."""
    return name.rpartition(".")[2]


def missing_names(schema: object) -> tuple[str, ...]:
    """Return the full names that a schema uses and does not define, in the order of their first use."""
    walk = _Walk(known=set())
    # What is nested too deep to be followed is no schema of ours either.
    with suppress(RecursionError):
        walk.type(schema, "")
    return tuple(name for name in walk.missing if not {name, without_namespace(name)} & walk.known)


def with_marked_names(schema: object, known: Iterable[str], mark: str) -> tuple[object, frozenset[str]]:
    """Return a schema with a ``mark`` before each name that only the null namespace knows; and these marked names.

    ``known`` are the full names that other schemas define.
    """
    walk = _Walk(known=set(known), mark=mark)
    return walk.type(schema, ""), frozenset(walk.marked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """One pass in the order of the text; ``known`` grows with what is defined, ``missing`` with what is not yet."""

    known: set[str]
    mark: str = ""
    marked: set[str] = field(default_factory=set)
    missing: dict[str, None] = field(default_factory=dict)

    def type(self, node: Any, namespace: str) -> Any:
        match node:
            case str() if node not in PRIMITIVES:
                return self.name(node, _qualified(node, namespace))
            case list():
                return [self.type(branch, namespace) for branch in node]
            case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
                inner = _namespace(name, rest.get("namespace"), namespace)
                self.known.add(_qualified(name, inner))
                fields = rest.get("fields")
                return {**node, "fields": [self.field(f, inner) for f in fields]} if isinstance(fields, list) else node
            case {"type": "array", "items": inside}:
                return {**node, "items": self.type(inside, namespace)}
            case {"type": "map", "values": inside}:
                return {**node, "values": self.type(inside, namespace)}
            case {"type": str(kind)} if kind in COMPLEX_TYPES:
                return node
            case {"type": inside}:
                return {**node, "type": self.type(inside, namespace)}
            case _:
                return node

    def field(self, node: Any, namespace: str) -> Any:
        match node:
            case {"type": inside}:
                return {**node, "type": self.type(inside, namespace)}
            case _:
                return node

    def name(self, written: str, full: str) -> str:
        if full in self.known:
            return written
        bare = without_namespace(full)
        if bare not in self.known:
            self.missing[full] = None
            return written
        self.marked.add(f"{self.mark}{bare}")
        return f"{self.mark}{bare}"


def _namespace(name: str, attribute: object, enclosing: str) -> str:
    """Return the namespace that holds inside a named type (Avro 1.12, "Names"): a dotted name beats the attribute."""
    if "." in name:
        return name.rpartition(".")[0]
    return attribute if isinstance(attribute, str) else enclosing


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
