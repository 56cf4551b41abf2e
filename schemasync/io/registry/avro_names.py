"""Which named types an Avro schema defines and which it needs, read from its JSON alone.

Used by the file registry, whose bare ``.avsc`` files say of no reference where it is. What is malformed is passed
over here: reading the schema will say so, and where.
"""

from __future__ import annotations

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED_TYPES = frozenset({"record", "error", "enum", "fixed"})
COMPLEX_TYPES = NAMED_TYPES | {"array", "map"}


def full_name(schema: object) -> str:
    """Return the full name of the named type at the top of a schema, empty where there is none."""
    match schema:
        case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
            return _qualified(name, _namespace(name, rest.get("namespace"), ""))
        case _:
            return ""


def missing_names(schema: object) -> tuple[str, ...]:
    """Return the full names that a schema uses and does not define, in the order of their first use."""
    defined: set[str] = set()
    used: dict[str, None] = {}
    _walk(schema, "", defined, used)
    return tuple(name for name in used if name not in defined)


def _walk(schema: object, namespace: str, defined: set[str], used: dict[str, None]) -> None:
    match schema:
        case str() if schema not in PRIMITIVES:
            used[_qualified(schema, namespace)] = None
        case list():
            for branch in schema:
                _walk(branch, namespace, defined, used)
        case {"type": str(kind), "name": str(name), **rest} if kind in NAMED_TYPES:
            inner = _namespace(name, rest.get("namespace"), namespace)
            defined.add(_qualified(name, inner))
            fields = rest.get("fields")
            for one in fields if isinstance(fields, list) else []:
                _walk(one.get("type") if isinstance(one, dict) else None, inner, defined, used)
        case {"type": "array", "items": inside} | {"type": "map", "values": inside}:
            _walk(inside, namespace, defined, used)
        case {"type": str(kind)} if kind in COMPLEX_TYPES:
            pass
        case {"type": inside}:
            _walk(inside, namespace, defined, used)
        case _:
            pass


def _namespace(name: str, attribute: object, enclosing: str) -> str:
    """Return the namespace that holds inside a named type (Avro 1.12, "Names"): a dotted name beats the attribute."""
    if "." in name:
        return name.rpartition(".")[0]
    return attribute if isinstance(attribute, str) else enclosing


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
