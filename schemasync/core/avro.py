"""Avro schemas -> columns, encodings, envelope: what a subject version says about a table.

Called with what a registry holds. Every named type is followed to its definition, nullability and meaning are worked
out, and whatever cannot become a table is refused with one SchemaError that names subject, version and field path.
Arbitrary text provokes no other exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from schemasync.core.avro_text import (
    ResolvedSchema,
    branch_name,
    branches_of,
    default_fits,
    is_null,
    resolve,
    schema_error,
    schema_fingerprint,
    whole_default,
)
from schemasync.core.canonical import canonical
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Member, Record
from schemasync.core.envelope import envelope_of, row_columns
from schemasync.core.names import MAX_COLUMN, folded, is_field_name
from schemasync.core.ports import RegisteredSchema
from schemasync.core.schema import Column, Envelope, EnvelopeKind, SubjectVersion
from schemasync.core.semantics import LEAF_TYPES, leaf_of, record_leaf, semantic_name, text_of
from schemasync.core.types import Primitive
from schemasync.errors import SchemaError, SettingError

__all__ = ["read_key_schema", "read_value_schema", "routing_fields", "schema_fingerprint"]

MAX_DEPTH: Final = 48
"""Deepest nesting of a column; named types can nest deeper than the text does."""

MAX_NODES: Final = 50_000
"""Most types in one schema, counted at every use: named types that use each other can multiply without end."""

_SYNTHETIC_KEY_FIELDS: Final = frozenset({"__dbz__physicalTableIdentifier"})
"""Added to keys by Debezium's topic routing (``ByLogicalTableRouter``); it is not in the value."""


def read_value_schema(
    registered: RegisteredSchema,
    *,
    envelope: EnvelopeKind | None = None,
    sequence_by: tuple[str, ...] = (),
    past: bool = False,
) -> SubjectVersion:
    """Return what a value subject's version says about the table.

    ``envelope`` overrules detection; ``sequence_by`` (dotted paths from the event's root) the detected ordering, as far
    as a version of the ``past`` has such fields. All columns have ``since=1``: lives are a matter of the whole history.

    Raises:
        SchemaError: the text cannot become a table, the envelope does not fit, or a path of ``sequence_by`` is none.
    """
    walk = _Walk(registered=registered, schema=resolve(registered))
    root = walk.root_record()
    fields = walk.columns(root, _At(inside=(root["name"],)))
    event = Record(members=_members(fields))
    found = _envelope(registered, fields, kind=envelope, sequence_by=sequence_by, past=past)
    if found.row is not None:
        after = walk.sole_record(next(f["type"] for f in root["fields"] if f["name"] == found.row))
        fields = walk.columns(after, _At(path=(found.row,), inside=(root["name"], after["name"])))
    columns = row_columns(found.kind, fields)
    if not columns:
        raise schema_error(
            registered, "the row has no columns", why=f"beside those of its envelope ({found.kind.value})"
        )
    return SubjectVersion(
        subject=registered.subject,
        version=registered.version,
        schema_id=registered.schema_id,
        columns=columns,
        envelope=found,
        fingerprint=schema_fingerprint(registered),
        event=event,
    )


def read_key_schema(registered: RegisteredSchema) -> tuple[str, ...]:
    """Return the names of a key record's fields, in order.

    Empty for keys that are no record (``"string"``, ``"long"``, ...): such a key does not say which column it is, so
    the table then needs ``keys:`` in the configuration.

    Raises:
        SchemaError: the text is not a usable Avro schema.
    """
    return tuple(name for name in _key_fields(registered) if name not in _SYNTHETIC_KEY_FIELDS)


def routing_fields(registered: RegisteredSchema) -> tuple[str, ...]:
    """Return the fields of a key record that tell tables apart whose rows came to one topic, and that no row has.

    Raises:
        SchemaError: the text is not a usable Avro schema.
    """
    return tuple(name for name in _key_fields(registered) if name in _SYNTHETIC_KEY_FIELDS)


def _key_fields(registered: RegisteredSchema) -> tuple[str, ...]:
    walk = _Walk(registered=registered, schema=resolve(registered))
    root = walk.sole_record(walk.schema.root)
    return () if root is None else tuple(c.name for c in walk.columns(root, _At(inside=(root["name"],))))


def _envelope(registered: RegisteredSchema, fields: tuple[Column, ...], **said: Any) -> Envelope:
    try:
        return envelope_of(fields, **said)
    except SettingError as error:
        where = f"{registered.subject} version {registered.version}"
        raise SettingError(error.what, where=where, why=error.why, fix=error.fix) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """Where the walk stands: the path for people, and the records around for recursion."""

    path: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    def down(self, step: str) -> _At:
        return replace(self, path=(*self.path, step))

    def into(self, fullname: str) -> _At:
        return replace(self, inside=(*self.inside, fullname))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """One pass over one resolved schema; ``budget`` and ``values`` bound its work, of types and of defaults."""

    registered: RegisteredSchema
    schema: ResolvedSchema
    budget: Iterator[int] = field(default_factory=lambda: iter(range(MAX_NODES)))
    values: Iterator[int] = field(default_factory=lambda: iter(range(MAX_NODES)))

    def root_record(self) -> Mapping[str, Any]:
        root: Mapping[str, Any] | None = self.sole_record(self.schema.root)
        if root is None:
            raise self.error(_At(), "the top level is not a record", "Only records have columns.")
        return root

    def sole_record(self, node: Any) -> Any:
        """Return the one record that a type is, directly or as the only branch beside null; None for other types."""
        branches = [b for b in branches_of(node) if not is_null(b)]
        found = self.definition(branches[0]) if len(branches) == 1 else None
        return found if isinstance(found, dict) and found.get("type") == "record" else None

    def definition(self, node: Any) -> Mapping[str, Any]:
        """Follow a name; what is no name of a defined type is a primitive's."""
        return self.schema.names.get(node, {"type": node}) if isinstance(node, str) else node

    def error(self, at: _At, what: str, why: str = "", fix: str = "", code: str = "SS406") -> SchemaError:
        return schema_error(self.registered, what, path=at.path, why=why, fix=fix, code=code)

    def columns(self, record: Mapping[str, Any], at: _At) -> tuple[Column, ...]:
        """Return a record's fields; those that can only be null are left out, as parquet-avro does."""
        self.check_names([f["name"] for f in record["fields"]], at)
        columns = tuple(c for c in (self.column(f, at) for f in record["fields"]) if c is not None)
        if columns:
            return columns
        why = "Parquet and Hive have no empty structs, and fields that can only be null do not count"
        raise self.error(at, f"record {record['name']} has no fields", why)

    def check_names(self, names: list[Any], at: _At) -> None:
        """Refuse names that Avro or a metastore do not take, and those that engines, which ignore case, mix up."""
        seen: dict[str, str] = {}
        for name in names:
            self.check_name(name, at)
            if (other := seen.setdefault(folded(name), name)) != name:
                what, why = f"fields {other} and {name} differ only in case", "Hive, Spark and Trino ignore case"
                raise self.error(at, what, why, "Rename one of them at the source.", "SS410")
        if twice := next((name for name in seen.values() if names.count(name) > 1), None):
            raise self.error(at, f"there are two fields {twice}")

    def check_name(self, name: Any, at: _At) -> None:
        if not (isinstance(name, str) and is_field_name(name)):
            why = "Avro takes letters, digits and _, no digit first"
            raise self.error(at, f"{name!r} is no field name", why, code="SS411")
        if len(name.lower()) != len(name):
            why = "its lower case has more letters, and a metastore keeps names in lower case"
            raise self.error(at, f"the field name {name} cannot be kept", why, "Rename it at the source.", "SS411")
        if len(name) > MAX_COLUMN:
            what = f"the field name {name[:40]}... has {len(name)} characters"
            why = f"metastores store {MAX_COLUMN}"
            raise self.error(at, what, why, "Shorten it at the source.", "SS411")

    def column(self, node: Mapping[str, Any], parent: _At) -> Column | None:
        at = parent.down(node["name"])
        encoding, nullable = self.value(node["type"], at)
        if encoding is None:
            return None
        return Column(
            name=node["name"],
            encoding=encoding,
            nullable=nullable,
            default=self.default(node, at),
            doc=_doc(node),
            aliases=tuple(a for a in node.get("aliases", ()) if isinstance(a, str)),
        )

    def default(self, node: Mapping[str, Any], at: _At) -> str | None:
        if "default" not in node:
            return None
        if default_fits(node["type"], node["default"], self.schema.names):
            try:
                return canonical(whole_default(node["type"], node["default"], self.schema.names, self.values))
            except ValueError as error:
                why = f"the defaults of a schema may have {MAX_NODES}, with those of fields that they leave out"
                raise self.error(at, "the default has too many values", why) from error
        raise self.error(at, f"the default {canonical(node['default'])[:80]} is no value of the field's type")

    def value(self, node: Any, at: _At) -> tuple[Encoding | None, bool]:
        """Return a type's encoding (None where it can only be null) and whether null is one of its values."""
        branches = branches_of(node)
        self.check_union(branches, at)
        kept = [b for b in branches if not is_null(b)]
        nullable = len(kept) < len(branches)
        match kept:
            case []:
                return None, nullable
            case [only]:
                return self.encode(only, at), nullable
            case _:
                names = [f"member{n}" for n in range(len(kept))]
                members = (
                    Member(name=n, encoding=self.encode(b, at.down(n)), branch=branch_name(b))
                    for n, b in zip(names, kept, strict=True)
                )
                return Record(members=tuple(members), union=True), nullable

    def check_union(self, branches: list[Any], at: _At) -> None:
        """Check what fastavro does not ("Unions" in Avro's specification)."""
        if not branches or any(isinstance(b, list) for b in branches):
            raise self.error(at, "a union that is empty or holds another union directly")
        names = [branch_name(b) for b in branches]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise self.error(at, f"a union with two branches {twice}")

    def encode(self, node: Any, at: _At) -> Encoding:
        if len(at.path) > MAX_DEPTH:
            raise self.error(at, f"nested deeper than {MAX_DEPTH} levels")
        if next(self.budget, None) is None:
            raise self.error(at, f"more than {MAX_NODES} types", "every use of a named type counts")
        defined = self.definition(node)
        match defined["type"]:
            case "record":
                return self.record(defined, at)
            case "array":
                return self.array(defined, at)
            case "map":
                values = self.member(defined["values"], at.down("value"))
                return MapOf(key=Leaf(type=Primitive.STRING), value=values)
            case leaf if leaf in LEAF_TYPES:
                self.check_leaf(defined, at)
                return leaf_of(defined)
            case other:
                raise self.error(at, f"a column cannot have the Avro type {other}")

    def record(self, node: Mapping[str, Any], at: _At) -> Encoding:
        fullname = node["name"]
        if fullname in at.inside:
            why = "a table's columns have a fixed depth"
            raise self.error(
                at, f"recursive type {fullname}", why, "Flatten it at its source, or write it as text there."
            )
        members = _members(self.columns(node, at.into(fullname)))
        name = semantic_name(node)
        return record_leaf(name or fullname, members) or Record(members=members, name=name)

    def array(self, node: Mapping[str, Any], at: _At) -> Encoding:
        element = self.member(node["items"], at.down("element"))
        match element:
            case Record(members=(Member(name="key") as key, Member(name="value") as value)) if self.is_entries(node):
                return MapOf(key=key.encoding, value=value.encoding, entries=True)
            case _:
                return ListOf(element=element)

    def is_entries(self, array: Mapping[str, Any]) -> bool:
        """Tell whether Connect wrote an array for a map whose keys are not strings."""
        entry = self.sole_record(array["items"])
        marks = (text_of(array, "connect.internal.type"), text_of(entry, "connect.internal.type"))
        return "MapEntry" in (*marks, entry["name"].rpartition(".")[2])

    def member(self, node: Any, at: _At) -> Encoding:
        encoding, _ = self.value(node, at)
        if encoding is None:
            raise self.error(at, "values that can only be null", "Parquet has no type for them")
        return encoding

    def check_leaf(self, node: Mapping[str, Any], at: _At) -> None:
        match node:
            case {"type": "fixed", "size": size} if not (type(size) is int and size > 0):
                raise self.error(at, f"a fixed of size {size!r}")
            case {"type": "enum", "symbols": symbols} if not _are_symbols(symbols):
                raise self.error(at, "an enum without a list of symbols")
            case _:
                return


def _members(columns: tuple[Column, ...]) -> tuple[Member, ...]:
    return tuple(Member(name=c.name, encoding=c.encoding, nullable=c.nullable, aliases=c.aliases) for c in columns)


def _are_symbols(symbols: Any) -> bool:
    return isinstance(symbols, list) and symbols != [] and all(isinstance(s, str) for s in symbols)


def _doc(field_node: Mapping[str, Any]) -> str:
    """Return a field's doc, or what Connect wrote beside its type."""
    types = (b for b in branches_of(field_node["type"]) if isinstance(b, dict))
    docs = (text_of(field_node, "doc"), text_of(field_node, "connect.doc"), *(text_of(t, "connect.doc") for t in types))
    return next(filter(None, docs), "")
