"""What schemasync writes on its tables and views: the properties under ``schemasync.*``.

The metastore is the state; the daemon keeps nothing else. Values stay short (a metastore's limit is 4,000 characters
in production): whole schemas lie beside the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from schemasync.core.encoding import Meaning
from schemasync.core.manifest import StateId
from schemasync.core.schema import Envelope, OrderingField
from schemasync.core.types import Primitive

SUBJECT: Final = "schemasync.subject"
STATE: Final = "schemasync.state"
"""The compare-and-set key: every publication and every schema change gives it a new value."""


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
    state: StateId

    @property
    def token(self) -> str:
        """The value of the compare-and-set key: state and version, so that each change of either moves it."""
        return f"{self.state}@{self.version}"


def write_properties(values: TableProperties) -> dict[str, str]:
    """Return the properties as the metastore holds them."""
    ordering = [["/".join(field.path), field.type.value, field.meaning.value] for field in values.ordering]
    return {
        SUBJECT: values.subject,
        "schemasync.version": str(values.version),
        "schemasync.schema_id": str(values.schema_id),
        "schemasync.fingerprint": values.fingerprint,
        "schemasync.baseline": str(values.baseline),
        "schemasync.keys": json.dumps(values.keys),
        "schemasync.ordering": json.dumps(ordering),
        "schemasync.generation": str(values.state.generation),
        STATE: values.token,
    }


def is_ours(properties: Mapping[str, str]) -> bool:
    """Tell whether schemasync made a table or view."""
    return SUBJECT in properties


def read_properties(properties: Mapping[str, str]) -> TableProperties:
    """Read what `write_properties` wrote.

    Raises:
        ValueError: a property is missing or mangled; the message names it.
    """
    try:
        return TableProperties(
            subject=properties[SUBJECT],
            version=int(properties["schemasync.version"]),
            schema_id=int(properties["schemasync.schema_id"]),
            fingerprint=properties["schemasync.fingerprint"],
            baseline=int(properties["schemasync.baseline"]),
            keys=tuple(json.loads(properties["schemasync.keys"])),
            ordering=tuple(_ordering(pair) for pair in json.loads(properties["schemasync.ordering"])),
            state=StateId.parse(properties[STATE].partition("@")[0]),
        )
    except KeyError as error:
        raise ValueError(f"the property {error.args[0]} is missing") from error


def _ordering(pair: list[str]) -> OrderingField:
    path, type_, meaning = pair
    return OrderingField(path=tuple(path.split("/")), type=Primitive(type_), meaning=Meaning(meaning))


def with_ordering(envelope: Envelope, properties: TableProperties) -> Envelope:
    """Return an envelope with the ordering that the table was created with."""
    return replace(envelope, ordering=properties.ordering)
