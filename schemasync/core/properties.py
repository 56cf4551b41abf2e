"""What schemasync writes on its tables and views: the properties under ``schemasync.*``.

The metastore is the state; the daemon keeps nothing else. Values stay short (a metastore's limit is 4,000 characters
in production): whole schemas lie beside the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from schemasync.core.encoding import Meaning
from schemasync.core.manifest import StateId
from schemasync.core.schema import OrderingField
from schemasync.core.types import Primitive

SUBJECT: Final = "schemasync.subject"
VERSION: Final = "schemasync.version"
SCHEMA_ID: Final = "schemasync.schema_id"
GENERATION: Final = "schemasync.generation"
STATE: Final = "schemasync.state"
"""The compare-and-set key: every publication and every schema change gives it a new value."""

PARTITION_BY: Final = "schemasync.partition_by"
KEPT: Final = "schemasync.kept"
VIEW: Final = "schemasync.view"
HISTORY: Final = "schemasync.history"
KEY_VERSION: Final = "schemasync.key_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """The state of one of our tables, as its properties hold it."""

    subject: str
    version: int
    schema_id: int
    fingerprint: str
    baseline: int
    keys: tuple[str, ...]
    ordering: tuple[OrderingField, ...]
    columns: str
    """Hash of which physical column each column of the version stands in: identities must never be told anew."""
    lives: str
    """Hash of the identity of each column, and of all members inside of it, which ``columns`` alone does not tell where
    a type changes, too."""
    state: StateId
    partition_by: tuple[tuple[str, str], ...] = ()
    """(name, expression) of the user partitions that the table was created with."""
    kept: bool | None = None
    """Whether the view shows dropped columns, which ``policies.drop: keep`` kept: another policy would drop them. None
    where it never did."""
    view: str = ""
    """Name of the view, empty while it was never another one than ``{table}_view``."""
    history: str = ""
    """Name of the history's table, empty while it was never another one than ``{table}_history``."""
    key_version: int = 0
    """Version of the key subject that ``keys`` were taken from, 0 where they were not, or by a release that did not
    say."""

    @property
    def token(self) -> str:
        """The value of the compare-and-set key: state and version, so that each change of either moves it."""
        return f"{self.state}@{self.version}"


def write_properties(values: TableProperties) -> dict[str, str]:
    """Return the properties as the metastore holds them."""
    ordering = [["/".join(field.path), field.type.value, field.meaning.value] for field in values.ordering]
    some = {PARTITION_BY: json.dumps(values.partition_by)} if values.partition_by else {}
    some |= {} if values.kept is None else {KEPT: json.dumps(values.kept)}
    some |= {name: value for name, value in ((VIEW, values.view), (HISTORY, values.history)) if value}
    some |= {KEY_VERSION: str(values.key_version)} if values.key_version else {}
    return some | {
        SUBJECT: values.subject,
        VERSION: str(values.version),
        SCHEMA_ID: str(values.schema_id),
        "schemasync.fingerprint": values.fingerprint,
        "schemasync.baseline": str(values.baseline),
        "schemasync.keys": json.dumps(values.keys),
        "schemasync.ordering": json.dumps(ordering),
        "schemasync.columns": values.columns,
        "schemasync.lives": values.lives,
        GENERATION: str(values.state.generation),
        STATE: values.token,
    }


def is_ours(properties: Mapping[str, str]) -> bool:
    """Tell whether schemasync made a table or view."""
    return SUBJECT in properties


def made_by_us(properties: Mapping[str, str]) -> bool:
    """Tell whether a table is ours, also where somebody took the property away by which `is_ours` knows it."""
    return is_ours(properties) or STATE in properties


def read_properties(properties: Mapping[str, str]) -> TableProperties:
    """Read what `write_properties` wrote.

    Raises:
        ValueError: a property is missing or mangled; the message names it.
    """
    return TableProperties(
        subject=_read(properties, SUBJECT, str),
        version=_read(properties, VERSION, int),
        schema_id=_read(properties, SCHEMA_ID, int),
        fingerprint=_read(properties, "schemasync.fingerprint", str),
        baseline=_read(properties, "schemasync.baseline", int),
        keys=_read(properties, "schemasync.keys", _keys),
        ordering=_read(properties, "schemasync.ordering", _ordering),
        columns=_read(properties, "schemasync.columns", str),
        lives=_read(properties, "schemasync.lives", str),
        state=_read(properties, STATE, lambda text: StateId.parse(text.partition("@")[0])),
        partition_by=_read(properties, PARTITION_BY, _pairs) if PARTITION_BY in properties else (),
        kept=properties[KEPT] == "true" if KEPT in properties else None,
        view=properties.get(VIEW, ""),
        history=properties.get(HISTORY, ""),
        key_version=_read(properties, KEY_VERSION, int) if KEY_VERSION in properties else 0,
    )


def readable(properties: Mapping[str, str]) -> TableProperties | None:
    """Read the properties of a table of ours; None of any other, and where one is missing or mangled."""
    with suppress(ValueError):
        return read_properties(properties) if is_ours(properties) else None
    return None


_T = TypeVar("_T")


def _read(properties: Mapping[str, str], name: str, parse: Callable[[str], _T]) -> _T:
    if name not in properties:
        raise ValueError(f"the property {name} is missing")
    try:
        return parse(properties[name])
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the property {name} is mangled: {properties[name]!r}") from error


def _keys(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise TypeError("not a list of names")
    return tuple(found)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(expression)) for name, expression in json.loads(text))


def _ordering(text: str) -> tuple[OrderingField, ...]:
    return tuple(
        OrderingField(path=tuple(path.split("/")), type=Primitive(type_), meaning=Meaning(meaning))
        for path, type_, meaning in json.loads(text)
    )
