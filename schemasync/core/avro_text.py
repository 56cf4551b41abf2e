"""Avro JSON text -> checked, name-resolved nodes.

Called by `schemasync.core.avro` only. fastavro resolves names and namespaces; what it checks too strictly (decimals
that Avro says to ignore, whole numbers as defaults of doubles) or not at all (whether a default of a nested type
fits) is kept from it and done here. Whatever the text is, the only exception is SchemaError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from schemasync.core.avro_names import with_marked_names
from schemasync.core.canonical import fingerprint
from schemasync.core.ports import RegisteredSchema
from schemasync.errors import SchemaError

MAX_JSON_DEPTH: Final = 160
"""Deepest nesting of the JSON text: about 40 records inside each other."""

_SHIELDED: Final = {
    "default": "schemasync.default",
    "logicalType": "schemasync.logicalType",
    # Input that bears fastavro's own mark would be taken as parsed already.
    "__fastavro_parsed": "schemasync.parsed",
}
_NO_NAMESPACE: Final = "schemasync.."
"""Before a name that only the null namespace knows: fastavro looks for a name in the namespace around it alone, Java's
Avro in the null namespace, too. No name in a schema has an empty part."""
_UNSHIELDED: Final = {shield: key for key, shield in _SHIELDED.items()}
_OPAQUE: Final = frozenset({"default", "schemasync.default"})
_FASTAVRO_MARKS: Final = frozenset({"__fastavro_parsed", "__named_schemas"})
_NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSchema:
    """One schema: its top-level node, and every named type by full name, those of its references included."""

    root: Any
    names: Mapping[str, Mapping[str, Any]]


def resolve(registered: RegisteredSchema) -> ResolvedSchema:
    """Parse the text and its references, each of which may use the names of those before it.

    Raises:
        SchemaError: not JSON, not Avro, an unknown name, or one name for two different types.
    """
    names: dict[str, Any] = {}
    root: Any = None
    for text in (*registered.references, registered.text):
        before = names
        root, names = _parse(_shield(_json(text, registered)), names, registered)
        for name, node in before.items():
            if names[name] != node:
                raise schema_error(registered, f"two different types are named {name}")
    return ResolvedSchema(root=_plain(root), names={name: _plain(node) for name, node in names.items()})


def schema_fingerprint(registered: RegisteredSchema) -> str:
    """Return the hex SHA-256 of the canonical JSON (sorted keys, no blanks) of the schema and its references.

    A record that may be null counts as the record: Connect's converter registers an optional struct so, and files have
    the record alone in their footers.
    """
    texts = (registered.text, *registered.references)
    root, *references = (_json(text, registered) for text in texts)
    return fingerprint([_without_null(root), *references])


def _without_null(root: Any) -> Any:
    others = [branch for branch in branches_of(root) if branch != "null"]
    return others[0] if len(others) == 1 else root


def schema_error(
    registered: RegisteredSchema,
    what: str,
    *,
    path: tuple[str, ...] = (),
    why: str = "",
    fix: str = "",
    code: str = "SS406",
) -> SchemaError:
    """Return the error for one place in one subject version."""
    field = f", field {'.'.join(path)}" if path else ""
    return SchemaError(
        what,
        where=f"{registered.subject} version {registered.version}{field}",
        why=why,
        fix=fix or "Register a corrected schema as the next version.",
        code=code,
    )


def branches_of(node: Any) -> list[Any]:
    """Return a union's branches; any other type is its own only branch."""
    return node if isinstance(node, list) else [node]


def branch_name(node: Any) -> str:
    """Return what makes a branch unique in its union: a named type's full name, else the type."""
    return str(node) if isinstance(node, str) else str(node.get("name", node["type"]))


def is_null(node: Any) -> bool:
    """Tell whether a type is null alone."""
    return node == "null" or (isinstance(node, dict) and node["type"] == "null")


def default_fits(node: Any, value: Any, names: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether a JSON default is a value of the type.

    Of a union any branch may match (Avro 1.12; before, only the first, but ``["T", "null"]`` with null is common).
    """
    if isinstance(node, list):
        return any(default_fits(branch, value, names) for branch in node)
    if isinstance(node, str):
        return default_fits(names[node], value, names) if node in names else _primitive_fits(node, value)
    match node["type"]:
        case "record":
            return isinstance(value, dict) and all(_field_fits(field, value, names) for field in node["fields"])
        case "array":
            return isinstance(value, list) and all(default_fits(node["items"], item, names) for item in value)
        case "map":
            return isinstance(value, dict) and all(default_fits(node["values"], v, names) for v in value.values())
        case "enum":
            return value in node["symbols"]
        case "fixed":
            return _primitive_fits("bytes", value) and len(value) == node["size"]
        case primitive:
            return _primitive_fits(primitive, value)


def whole_default(node: Any, value: Any, names: Mapping[str, Mapping[str, Any]], budget: Iterator[object]) -> Any:
    """Return a JSON default that fits the type with what it leaves out: a record's fields that have defaults.

    Raises:
        ValueError: it has more values than there are in the ``budget``: each may leave out many others.
    """
    if next(budget, None) is None:
        raise ValueError("too many values")
    if isinstance(node, list):
        fitting = next(branch for branch in node if default_fits(branch, value, names))
        return whole_default(fitting, value, names, budget)
    if isinstance(node, str):
        return whole_default(names[node], value, names, budget) if node in names else value
    match node["type"]:
        case "record":
            given = ((field, value.get(field["name"], field.get("default"))) for field in node["fields"])
            return {field["name"]: whole_default(field["type"], one, names, budget) for field, one in given}
        case "array":
            return [whole_default(node["items"], item, names, budget) for item in value]
        case "map":
            return {key: whole_default(node["values"], item, names, budget) for key, item in value.items()}
        case _:
            return value


def _field_fits(field: Mapping[str, Any], value: Mapping[str, Any], names: Mapping[str, Mapping[str, Any]]) -> bool:
    if field["name"] not in value:
        return "default" in field
    return default_fits(field["type"], value[field["name"]], names)


def _primitive_fits(primitive: str, value: Any) -> bool:
    match primitive:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = _RANGES[primitive]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number or (isinstance(value, str) and value in _NOT_NUMBERS)
        case "bytes":
            # ISO-8859-1: one character is one byte.
            return isinstance(value, str) and all(ord(c) < 256 for c in value)
        case _:
            # JSON lets a text have half of a pair of surrogates, which neither files nor statements can hold.
            return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _json(text: str, registered: RegisteredSchema) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise schema_error(registered, "the schema is not JSON", why=str(error)) from error
    if _deeper_than(value, MAX_JSON_DEPTH):
        raise schema_error(registered, f"the schema's JSON is nested deeper than {MAX_JSON_DEPTH} levels")
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for node in level for child in _children(node)]
    return bool(level)


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _parse(schema: Any, names: Mapping[str, Any], registered: RegisteredSchema) -> tuple[Any, dict[str, Any]]:
    """Return the parsed schema, and the ``names`` that are known with it."""
    schema, marked = with_marked_names(schema, names, _NO_NAMESPACE)
    known = {**names, **dict.fromkeys(marked)}
    try:
        root = parse_schema(schema, known)
    except (SchemaParseException, UnknownType) as error:
        what = "unknown type" if isinstance(error, UnknownType) else "not an Avro schema"
        raise schema_error(registered, what, why=_plain_words(error)) from error
    except Exception as error:
        # fastavro trusts the shape of its input: KeyError, TypeError, AttributeError, whatever the text provokes.
        raise schema_error(registered, "not an Avro schema", why=_why(error)) from error
    return root, {name: node for name, node in known.items() if name not in marked}


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"a type without {error}"
    # What Python says of it (argument of type 'NoneType' is not iterable) helps nobody.
    return "somewhere null, a number, a text or a list stands where Avro has something else"


def _plain_words(error: Exception) -> str:
    return str(error).replace("schemasync.", "")[:200]


def _shield(node: Any) -> Any:
    return _renamed(node, _SHIELDED)


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        node = {key: value for key, value in node.items() if key not in _FASTAVRO_MARKS}
    return _renamed(node, _UNSHIELDED)


def _renamed(node: Any, keys: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_renamed(item, keys) for item in node]
    if isinstance(node, dict):
        return {keys.get(k, k): v if k in _OPAQUE else _renamed(v, keys) for k, v in node.items()}
    return node.removeprefix(_NO_NAMESPACE) if isinstance(node, str) else node
