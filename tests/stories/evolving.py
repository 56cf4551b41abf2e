"""How ``cdc.inventory.evolving`` could have gone on after its captured version 6: schemas, and messages of each.

The schemas are the captured version 6 with other columns, as Debezium's PostgreSQL connector registers them through the
Avro converter. One change of the source table is one version:

====  =====================================================================================================
   7  ``alter column e type text``
   8  ``drop column d``
   9  ``add column d numeric(8,2) default 1.50``: the name of a timestamp that is gone
  10  ``alter column d type numeric(12,4)``
  11  ``add column c text[], add column status order_status not null default 'new'``: ``c`` was a number once
  12  ``alter type order_status add value 'refunded'``
  13  ``add column region text not null default 'eu'`` (one of the two ways on)
====  =====================================================================================================

Then the key becomes ``(id, e)`` under version 12, whose schema does not change by that, or ``(id, region)`` under
version 13.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from schemasync.io.samples import SAMPLES

DATA = Path(__file__).parents[1] / "data"
TOPIC = "cdc.inventory.evolving"
CAPTURED = 6
BEFORE = 1000
"""What is taken off the offset of a captured message, so that it is older than every other."""

Field = dict[str, Any]


def _optional(name: str, type_: Any) -> Field:
    return {"name": name, "type": ["null", type_], "default": None}


def _text(default: str, **more: Any) -> Field:
    return {"type": {"type": "string", **more, "connect.default": default}, "default": default}


def _numeric(precision: int, scale: int, default: str) -> Field:
    """Return a nullable decimal with a default; as JSON that is its bytes, one letter each."""
    type_ = {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
        "connect.default": default,
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }
    return {"name": "d", "type": [type_, "null"], "default": default}


def _status(*symbols: str) -> Field:
    named = {"connect.parameters": {"allowed": ",".join(symbols)}, "connect.name": "io.debezium.data.Enum"}
    return {"name": "status"} | _text("new", **{"connect.version": 1}, **named)


_ID: Field = {"name": "id", "type": "int"}
_HEAD = (_ID, _optional("a", "long"), _optional("b_renamed", "string"))
_ZONED = _optional("d", {"type": "string", "connect.version": 1, "connect.name": "io.debezium.time.ZonedTimestamp"})
_E: Field = {"name": "e"} | _text("42")
_D = _numeric(12, 4, ":\u0098")
_C = _optional("c", {"type": "array", "items": ["null", "string"]})
_REGION: Field = {"name": "region"} | _text("eu")

FIELDS: Mapping[int, Sequence[Field]] = {
    6: (*_HEAD, _ZONED, {"name": "e", "type": {"type": "int", "connect.default": 42}, "default": 42}),
    7: (*_HEAD, _ZONED, _E),
    8: (*_HEAD, _E),
    9: (*_HEAD, _E, _numeric(8, 2, "\u0000\u0096")),
    10: (*_HEAD, _E, _D),
    11: (*_HEAD, _E, _D, _C, _status("new", "paid")),
    12: (*_HEAD, _E, _D, _C, _status("new", "paid", "refunded")),
    13: (*_HEAD, _E, _D, _C, _status("new", "paid", "refunded"), _REGION),
}
"""The columns of a version, as Avro fields."""

_DEFAULTS: Mapping[str, Any] = {"d": None, "e": "42", "status": "new", "region": "eu"}


def captured_schema(version: int) -> str:
    return (SAMPLES / "registry" / f"{TOPIC}-value" / f"{version}.avsc").read_text()


def value_schema(version: int) -> str:
    """Return the value schema of a version, captured or continued."""
    if version <= CAPTURED:
        return captured_schema(version)
    schema = json.loads(captured_schema(CAPTURED))
    value = schema["fields"][0]["type"][1]
    value["fields"] = list(FIELDS[version])
    return json.dumps(schema, separators=(",", ":"))


def key_schema(*columns: Field) -> str:
    """Return the key schema over these columns."""
    return json.dumps(
        {
            "type": "record",
            "name": "Key",
            "namespace": TOPIC,
            "fields": list(columns),
            "connect.name": f"{TOPIC}.Key",
        }
    )


KEYS: Mapping[tuple[str, ...], str] = {
    ("id",): key_schema(_ID),
    ("id", "e"): key_schema(_ID, _E),
    ("id", "region"): key_schema(_ID, _REGION),
}
"""The key schemas, by the columns that they name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One message. ``row`` is the row after the change, of a delete the one before it.

    ``at`` is when and where in the source's log it happened; ``located`` is False for a read of an incremental
    snapshot, which has no place in the log.
    """

    version: int
    op: str
    row: Mapping[str, Any]
    at: int
    located: bool = True

    @property
    def lsn(self) -> int | None:
        """The place in the log, behind all captured ones."""
        return 37_100_000 + 8 * self.at if self.located else None

    @property
    def ts_ns(self) -> int:
        """When the connector saw it, ns since 1970 UTC."""
        return (1_795_220_500_000 + self.at) * 1_000_000

    @property
    def envelope(self) -> dict[str, Any]:
        """The value of the message."""
        milliseconds = self.ts_ns // 1_000_000 - 40
        source = {
            "version": "3.7.0.Final",
            "connector": "postgresql",
            "name": "cdc",
            "ts_ms": milliseconds,
            "snapshot": "false" if self.located else "incremental",
            "db": "inv",
            "sequence": f'["{self.lsn}","{self.lsn}"]' if self.located else None,
            "ts_us": milliseconds * 1000,
            "ts_ns": milliseconds * 1_000_000,
            "schema": "inventory",
            "table": "evolving",
            "txId": 800 + self.at if self.located else None,
            "lsn": self.lsn,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        }
        deleted = self.op == "d"
        return {
            "before": self.row if deleted else None,
            "after": None if deleted else self.row,
            "source": source,
            "transaction": None,
            "op": self.op,
            "ts_ms": self.ts_ns // 1_000_000,
            "ts_us": self.ts_ns // 1000,
            "ts_ns": self.ts_ns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """What the sink lands as one file: messages of one schema, in one hour."""

    version: int
    hour: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What comes with one version: files that land together, one group after the other."""

    version: int
    landings: tuple[tuple[File, ...], ...]
    key: tuple[str, ...] = field(default=("id",))


def _row(version: int, **values: Any) -> dict[str, Any]:
    names = [f["name"] for f in FIELDS[version]]
    assert values.keys() <= set(names), values
    return {name: values.get(name, _DEFAULTS.get(name)) for name in names}


def _read(version: int, at: int, id_: int, **values: Any) -> Change:
    return Change(version=version, op="r", row=_row(version, id=id_, **values), at=at, located=False)


def _made(version: int, at: int, id_: int, **values: Any) -> Change:
    return Change(version=version, op="c", row=_row(version, id=id_, **values), at=at)


def _changed(version: int, at: int, id_: int, **values: Any) -> Change:
    return Change(version=version, op="u", row=_row(version, id=id_, **values), at=at)


def _deleted(version: int, at: int, id_: int, **keys: Any) -> Change:
    """Return a delete under REPLICA IDENTITY DEFAULT: the key, and the defaults of columns that have one."""
    has_default = {"d": Decimal("1.50")} if version >= 9 else {}
    return Change(version=version, op="d", row=_row(version, id=id_, **(has_default | keys)), at=at)


def _file(version: int, hour: int, *changes: Change) -> File:
    return File(version=version, hour=f"20261120{hour:02}", changes=changes)


_SEVEN = _changed(7, 701, 1, a=9, b_renamed="b1", e="seven")
_LINES = _made(11, 1101, 205, c=["x", None, ""], status="paid")

ONWARDS: tuple[Step, ...] = (
    Step(
        version=7,
        landings=(
            (
                # Sent before the DDL, landed in the same hour.
                _file(6, 6, _changed(6, 650, 8, a=88, e=8), _made(6, 651, 200, d="2026-11-21T00:21:00.5Z", e=-7)),
                _file(7, 6, _SEVEN, _made(7, 702, 201, e="42"), _deleted(7, 703, 7)),
            ),
        ),
    ),
    Step(
        version=8,
        landings=(
            # An older event late, one twice, one in time.
            (_file(7, 7, _changed(7, 700, 1, a=8, e="late"), _SEVEN, _changed(7, 704, 9, e="")),),
            (_file(8, 7, _changed(8, 801, 1, b_renamed="no a"), _made(8, 802, 202, e="-1"), _deleted(8, 803, 101)),),
        ),
    ),
    Step(
        version=9,
        landings=(
            (
                # The old life of d, and an event of a row that has been deleted since.
                _file(6, 8, _changed(6, 652, 4, d="2026-11-21T00:21:30Z", e=4), _changed(6, 653, 7, e=7)),
                _file(9, 8, _changed(9, 901, 3, d=Decimal("1.50")), _made(9, 902, 203, d=Decimal("-999999.99"))),
            ),
            (_file(9, 9, _deleted(9, 903, 202), _made(9, 904, 202, e="again")),),
        ),
    ),
    Step(
        version=10,
        landings=(
            (
                _file(10, 10, _changed(10, 1001, 3, d=Decimal("0.0001")), _made(10, 1002, 204, d=Decimal(12345678))),
                _file(9, 10, _changed(9, 905, 5, d=Decimal("2.25"))),
            ),
        ),
    ),
    Step(
        version=11,
        landings=(
            (_file(11, 11, _LINES, _changed(11, 1102, 1, c=[], e="one", d=Decimal("0.1"))),),
            (
                # What the sink projected to its newest schema: messages of version 10 among those of 11.
                _file(11, 12, _changed(11, 1005, 6, d=Decimal("-0.5")), _changed(11, 1103, 204, c=["y"])),
                _file(7, 12, _changed(7, 705, 6, a=0, e="long ago")),
            ),
        ),
    ),
    Step(
        version=12,
        landings=(
            (
                _file(11, 13, _changed(11, 1100, 205, c=["late"], status="paid"), _LINES),
                _file(12, 13, _changed(12, 1201, 205, status="refunded"), _deleted(12, 1202, 203)),
            ),
            (_file(12, 14, _read(12, 1203, 10, e="read"), _read(12, 1204, 301, d=Decimal(3), c=["r"])),),
        ),
    ),
)
"""What every way has after the captured versions."""

UNDER_E = Step(
    version=12,
    key=("id", "e"),
    landings=(
        (
            # A key that is updated comes as a delete and a create.
            _file(12, 15, _deleted(12, 1301, 3, e="42"), _made(12, 1301, 3, e="43", d=Decimal("0.0001"))),
            _file(12, 15, _made(12, 1302, 1, e="two", status="paid"), _changed(12, 1303, 1, e="one", a=13)),
        ),
        (_file(12, 16, _changed(12, 1300, 1, e="two", a=-1), _deleted(12, 1304, 6, e="42")),),
    ),
)
UNDER_REGION = Step(
    version=13,
    key=("id", "region"),
    landings=(
        (
            _file(12, 15, _changed(12, 1205, 9, c=["old key"])),
            _file(13, 15, _made(13, 1301, 3, region="us"), _changed(13, 1302, 3, region="eu", a=3)),
            _file(13, 15, _deleted(13, 1303, 2, region="eu"), _made(13, 1303, 2, region="asia")),
        ),
        # Messages of the old key, landed under the new one.
        (_file(12, 16, _changed(12, 1206, 204, c=["late"]), _changed(12, 1207, 3, a=0)),),
    ),
)
"""The two ways on: the first group of files lands before anyone has let the new key through."""


def captured_changes() -> Iterator[Change]:
    """Yield the captured messages, Kafka's tombstones aside: ``at`` is the offset, put before all that follows."""
    versions: dict[int, int] = {}
    for line in (DATA / "messages" / f"{TOPIC}.jsonl").read_text().splitlines():
        message = json.loads(line)
        value = message["value"]
        if value is not None:
            version = versions.setdefault(message["value_schema_id"], len(versions) + 1)
            row = value["before"] if value["op"] == "d" else value["after"]
            read = {name: _decoded(found) for name, found in row.items()}
            yield Change(version=version, op=value["op"], row=read, at=message["offset"] - BEFORE)


def _decoded(value: Any) -> Any:
    return Decimal(value["__decimal"]) if isinstance(value, dict) else value
