"""Tables in every state that a view has a form of its own for: what the engines are asked that share a metastore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import wraps
from hashlib import sha256
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq

from schemasync.app.ddl_printing import PrintedDdl, from_registry, print_ddl
from schemasync.core import manifest
from schemasync.core.names import Dialect
from schemasync.io.parquet import late
from tests import fold
from tests.app.test_toast_law import FIRST, LARGE, TEXT, UNSENT, nullable
from tests.lab import Lab
from tests.naming import naming

TOPIC, TABLE = "shop.student", "shop_student"
VIEW = f"{TABLE}_view"
Row = dict[str, Any]

FORMS = {
    "list": "THEN 1 ELSE 0 END = 0",
    "join": "LEFT JOIN",
    "segments": "schemasync_segment",
    "bits": "schemasync_bits",
    "union": "UNION ALL",
    "window": "row_number()",
    "sum": "SUM(1) OVER (",
    "carry": "first_value(",
    "versions": "`__schema_version` <=",
}
"""What a view's text is made of -> by which words one knows it."""


@dataclass(frozen=True, slots=True)
class State:
    """Of what the view's text is made now, and the rows that it must show."""

    forms: str
    rows: list[Row]


Story = Callable[[Lab], Iterator[State]]


def view_text(lab: Lab) -> str:
    view = lab.workspace.metastore.table(lab.database, VIEW)
    assert view is not None
    return view.view_text


OWN = {"op", "ts_ms"}


def change(key: Any, ts_ms: int | None, op: Any = "u", **row: Any) -> Row:
    return {"id": key, "op": op, "ts_ms": ts_ms} | row


def newest(events: Sequence[Mapping[str, Any]], keys: tuple[str, ...] = ("id",)) -> list[Row]:
    columns = {name for event in events for name in event} - OWN
    found = fold.fold(
        fold.Event(
            key=tuple(event[name] for name in keys),
            order=(event["ts_ms"],),
            row={name: event.get(name) for name in columns},
            deleted=event["op"] == "d",
        )
        for event in events
    )
    return [row for _, row in sorted(found.items())]


class Landed:
    """Events as they land, each file in an hour of its own; remembers them all."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.events: list[Row] = []

    def __call__(self, *events: Row) -> None:
        self.lab.land(TOPIC, events, hour=f"20261120{len(list(self.lab.root.rglob('increment_*'))):02}")
        self.events += events


def compacted(lab: Lab) -> None:
    lab.now_ms += 1000
    (done,) = lab.compact().tables
    assert (done.failure, done.applied.error, done.applied.held) == (None, None, False), str(done.applied.diagnostics)


def applied(lab: Lab) -> None:
    lab.now_ms += 1000
    (done,) = lab.apply().tables
    assert (done.error, done.held) == (None, False), done.diagnostics


def decimal(precision: int, scale: int) -> Row:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


DAY = {"type": "int", "logicalType": "date"}
MOMENT = {"type": "long", "logicalType": "timestamp-micros"}


def types(lab: Lab) -> Iterator[State]:
    """All that the table has is in the base."""
    who = [{"name": "name", "type": "string"}, {"name": "n", "type": ["null", "long"]}, {"name": "born", "type": DAY}]
    columns: dict[str, Any] = {
        "flag": "boolean",
        "n": "int",
        "f": "float",
        "d": "double",
        "price": decimal(8, 2),
        "vast": decimal(38, 10),
        "born": DAY,
        "at": MOMENT,
        "raw": "bytes",
        "text": "string",
        "who": {"type": "record", "name": "Who", "fields": who},
        "tags": {"type": "array", "items": "string"},
        "codes": {"type": "map", "values": "int"},
    }
    lab.register(TOPIC, lab.flat("Student", *((name, ["null", type_]) for name, type_ in columns.items())))
    landed = Landed(lab)
    nobody = dict.fromkeys(columns)
    first = {
        "flag": True,
        "n": -(2**31),
        "f": 0.5,
        "d": -1e300,
        "price": Decimal("-0.01"),
        "vast": Decimal("1234567890123456789012345678.0123456789"),
        "born": date(1969, 12, 31),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "raw": b"\x00\xff'",
        "text": "it's ü \U0001f600 \\ \"",
        "who": {"name": "ann", "n": None, "born": date(2004, 2, 29)},
        "tags": ["a", "", None][:2],
        "codes": {"x": 1},
    }
    edges = nobody | {"born": date(1, 1, 1), "at": datetime(1, 1, 1), "tags": [], "codes": {}, "text": ""}
    last = nobody | {"born": date(9999, 12, 31), "at": datetime(9999, 12, 31, 23, 59, 59, 999999), "d": 0.1}
    landed(change(1, 1, **first), change(2, 1, **nobody), change(3, 1, **edges), change(4, 1, **last))
    landed(change(2, 2, op="d", **nobody), change(5, 1, **nobody), change(5, 1, **nobody))
    compacted(lab)
    yield State("", newest(landed.events))


def based(lab: Lab, keys: Iterable[Any] = range(12), type_: Any = "long", **settings: Any) -> Landed:
    """Lay down a base in shards of six rows or so."""
    lab.settings = {
        "defaults": {"compaction": {"shard_size": "1KB"} | settings},
        "tables": [{"subject": f"{TOPIC}-value", "keys": ["id"]}],
    }
    value = lab.flat("Student", ("name", ["null", "string"]))
    value["fields"][0] = {"name": "id", "type": type_}
    lab.register(TOPIC, value, key=None)
    landed = Landed(lab)
    landed(*(change(key, 10, name=f"n{key}") for key in keys))
    compacted(lab)
    return landed


def newer(lab: Lab, *forms: str) -> Iterator[State]:
    """Changes are known to be newer than the base, some came too late."""
    first, second = forms or ("list", "list")
    landed = based(lab)
    landed(change(3, 20, name="new"), change(30, 20, name="more"), change(5, 20, op="d"), change(9, 5, name="late"))
    applied(lab)
    yield State(first, newest(landed.events))
    landed(change(3, 30, name="newer"), change(5, 30, name="back"), change(30, 30, op="d"), change(4, 20))
    applied(lab)
    yield State(second, newest(landed.events))


def ends(lab: Lab) -> Iterator[State]:
    """Keys at the ends of their range are listed."""
    keys = [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1]
    landed = based(lab, keys)
    landed(*(change(key, 20, name="new") for key in keys[::2]), change(keys[-1], 20, op="d"))
    applied(lab)
    yield State("list", newest(landed.events))


def texts(lab: Lab) -> Iterator[State]:
    """Texts of any length are listed as they are, and rows of such keys as differ in case or spaces stay."""
    changed = ["", "a", "a b", "0b1e2c3d-0000-4000-8000-00000000000a", "x" * 300, "2026-11-25T10:00:00+01:00", "1e1"]
    landed = based(lab, [*changed, "A", "a ", " a", "aa", "é", "10", "\0"], "string")
    landed(*(change(key, 20, op="d" if key == "a b" else "u", name="new") for key in [*changed, "b@c.example/~_=,"]))
    applied(lab)
    yield State("list", newest(landed.events))


def digests(lab: Lab) -> Iterator[State]:
    """Texts that do not compress, which files have by their lengths."""
    keys = [sha256(str(n).encode()).hexdigest() for n in range(300)]
    landed = based(lab, keys, "string", shard_size="1MB")
    files = list((lab.root / "lake").rglob("base/**/*.parquet"))
    texts = [pq.read_metadata(file).row_group(0).column(place) for file in files for place in range(2)]
    assert {column.compression for column in texts} == {"UNCOMPRESSED"}
    landed(change(keys[7], 20, name=keys[8]), change(keys[8], 20, name=None), change(keys[9], 20, op="d"))
    applied(lab)
    yield State("list", newest(landed.events))


def texts_joined(lab: Lab) -> Iterator[State]:
    """Of texts that not every engine would read alike none is listed."""
    changed = ["it's", "a\\", "${a}", "é\U0001f600", "a\n", '"']
    landed = based(lab, [*changed, "its", "a", "b"], "string")
    landed(*(change(key, 20, name="new") for key in changed))
    applied(lab)
    yield State("join", newest(landed.events))


def newer_joined(lab: Lab) -> Iterator[State]:
    return newer(lab, "join", "join segments")


def elsewhere(lab: Lab) -> Iterator[State]:
    """Changes fall into few of the shards."""
    landed = based(lab, range(400))
    landed(change(3, 20, name="new"), change(399, 5, name="late"), change(1, 20, op="d"))
    applied(lab)
    yield State("join union", newest(landed.events))


def uncompared(lab: Lab) -> Iterator[State]:
    """Changes are known to be newer than the base, but not which of them are newer than others."""
    landed = based(lab)
    with patch.object(late, "MOST_ROWS", 0):
        for at, event in enumerate([change(3, 40, name="new"), change(3, 30, name="late"), change(7, 20, op="d")]):
            landed(event, change(20 + at, 20))
            applied(lab)
    yield State("join union sum", newest(landed.events))


def late_events(lab: Lab) -> Iterator[State]:
    """Nobody looked whether changes are newer: all rows are sorted, by moments that some events lack."""
    value = lab.flat("Line", ("line", "string"), ("name", ["null", "string"]))
    value["fields"][-1] = {"name": "ts_ms", "type": ["null", "long"]}
    lab.register(TOPIC, value, key=None)
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "keys": ["id", "line"]}]}
    landed = Landed(lab)
    keys = [(n, line) for n in (-1, 7) for line in ("", "a", "é")]
    landed(*(change(n, None if line else 10, line=line, name="old") for n, line in keys))
    compacted(lab)
    with patch.object(late, "MOST_ROWS", 0):
        landed(change(7, 20, line="a", name="new"), change(-1, None, line="", name="unknown"))
        landed(change(7, 5, line="", name="late"), change(-1, 20, op="d", line="a"), change(8, 1, line="é"))
        applied(lab)
    yield State("window", newest(landed.events, keys=("id", "line")))


def packed(lab: Lab, keys: range, type_: str) -> Iterator[State]:
    """Many changes, looked for by words of keys."""
    landed = based(lab, keys[3:], type_)
    with patch.object(manifest, "FEW_ROWS", 0):
        for at, changed in enumerate([[*keys[:3], *keys[20:70], keys[99]], [*keys[60:75], *keys[98:]]]):
            gone = set(changed[::7])
            landed(*(change(key, 20 + at, op="d" if key in gone else "u", name=f"c{at}") for key in changed))
            applied(lab)
            yield State("join union bits sum" if at else "join bits", newest(landed.events))
            if type_ != "int":
                return


def packed_int(lab: Lab) -> Iterator[State]:
    return packed(lab, range(-40, 60), "int")


def packed_lowest(lab: Lab) -> Iterator[State]:
    return packed(lab, range(-(2**63), -(2**63) + 100), "long")


def packed_highest(lab: Lab) -> Iterator[State]:
    return packed(lab, range(2**63 - 100, 2**63), "long")


def all_keys(lab: Lab) -> Iterator[State]:
    """A key of columns of many types, joined."""
    columns = {"word": "string", "price": decimal(22, 2), "born": DAY, "at": MOMENT, "raw": "bytes", "flag": "boolean"}
    lab.register(
        TOPIC,
        lab.flat("Student", *((n, {"type": t}) for n, t in columns.items()), ("name", ["null", "string"])),
        key=None,
    )
    keys = ("id", *columns)
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "keys": list(keys)}]}
    landed = Landed(lab)
    usual: Row = {
        "word": "it's é\U0001f600",
        "price": Decimal("-0.50"),
        "born": date(1969, 12, 31),
        "at": datetime(1, 1, 1),
        "raw": b"\x00\x80",
        "flag": False,
    }
    other = {
        "word": "",
        "price": Decimal("0.50"),
        "born": date(1, 1, 1),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "raw": b"\x00\x81",
        "flag": True,
    }
    landed(change(0, 10, **usual, name="old"), *(change(1, 10, **usual | {n: v}, name=n) for n, v in other.items()))
    compacted(lab)
    landed(change(0, 20, **usual, name="new"), change(1, 20, **usual | {"price": Decimal("0.50")}, op="d", name=None))
    applied(lab)
    yield State("join", newest(landed.events, keys))


def unordered(lab: Lab) -> Iterator[State]:
    """A key that files are not sorted by."""
    landed = based(lab, [], "double")
    landed(*(change(key, 10, name="old") for key in (-0.5, 0.0, 1.5, float("inf"))))
    compacted(lab)
    landed(change(1.5, 20, name="new"), change(float("inf"), 20, op="d"))
    applied(lab)
    yield State("window", newest(landed.events))


def carried(lab: Lab) -> Iterator[State]:
    """Placeholders for what the source did not send."""

    def event(key: int, lsn: int, op: str, text: Any, *large: Any) -> Row:
        row = {"id": key, "text": text} | dict(zip((field["name"] for field in LARGE), large, strict=True))
        before, after = (row, None) if op == "d" else (None, row)
        return {"before": before, "after": after, "source": {"lsn": lsn}, "op": op, "ts_ms": 1}

    unsent = tuple(UNSENT.values())
    values = b"\x00", ["x", TEXT], [95, 7], {TEXT: "x"}
    nothing: tuple[Any, ...] = None, [], [], {}
    lab.register(TOPIC, FIRST)
    first = [event(1, 1, "c", "a", *values), event(2, 1, "c", "b", *nothing), event(3, 1, "c", *unsent)]
    lab.land(TOPIC, first)
    compacted(lab)
    again = [event(3, 6, "u", *unsent), event(4, 7, "u", *unsent)]
    lab.land(
        TOPIC, [event(1, 2, "u", "new", *unsent[1:]), event(1, 4, "u", *unsent), event(2, 5, "u", *unsent), *again]
    )
    applied(lab)
    told = (("new", *values), ("b", *nothing), unsent, unsent)
    rows = [event(key, 0, "c", *shown)["after"] for key, shown in enumerate(told, start=1)]
    rows = [row | {"pairs": dict(row["pairs"])} for row in rows]
    yield State("window carry", rows)
    asks: Row = {"late": TEXT, "lists": [TEXT]}
    said: Row = {"late": "x", "lists": []}
    neither: Row = dict.fromkeys(asks)
    lists = nullable("lists", {"type": "array", "items": "string"})
    lab.register(TOPIC, lab.debezium(nullable("text", "string"), *LARGE, nullable("late", "string"), lists, key="int"))
    younger = [event(key, lsn, "u", *unsent) for key, lsn in ((1, 8), (2, 9), (2, 10))]
    lab.land(TOPIC, [e | {"after": e["after"] | more} for e, more in zip(younger, (asks, said, asks), strict=True)])
    applied(lab)
    # Rows from before a column, which read NULL in it, do not say that there was none.
    yield State("window carry", [row | more for row, more in zip(rows, (asks, said, neither, neither), strict=True)])


def evolved(lab: Lab) -> Iterator[State]:
    """Rows of three versions: retyped, widened, renamed, dropped, added again, with a default, inside of a struct."""

    def who(*fields: tuple[str, Any]) -> Row:
        return {"type": "record", "name": "Who", "fields": [{"name": n, "type": ["null", t]} for n, t in fields]}

    lab.register(
        TOPIC,
        lab.flat(
            "Student",
            ("n", "int"),
            ("code", "int"),
            ("name", "string"),
            ("again", ["null", "string"]),
            ("price", {"type": decimal(8, 2)}),
            ("sure", "boolean"),
            ("who", ["null", who(("a", "int"), ("b", "string"))]),
        ),
    )
    row = {"n": 1, "code": -7, "name": "ann", "again": "old", "price": Decimal("1.50"), "sure": True}
    lab.land(TOPIC, [change(n, 10, **row, who={"a": n, "b": "x"} if n else None) for n in range(4)])
    compacted(lab)
    yield State("", [{"id": n, **row, "who": {"a": n, "b": "x"} if n else None} for n in range(4)])
    title = {"name": "title", "type": "string", "aliases": ["name"]}
    added = {"name": "e", "type": "int", "default": 42}
    second = lab.flat(
        "Student", ("n", "long"), ("code", "string"), ("title", title), ("price", {"type": decimal(12, 4)})
    )
    second["fields"][5:5] = [
        {"name": "sure", "type": "string"},
        {"name": "who", "type": ["null", who(("c", "double"), ("a", "long"))]},
        added,
    ]
    lab.register(TOPIC, second)
    newer = {"n": 2**40, "code": "c", "title": "bob", "price": Decimal("1.5555"), "sure": "no"}
    lab.land(TOPIC, [change(1, 20, **newer, who={"c": 0.5, "a": 2**40}, e=5)], hour="2026112001")
    applied(lab)
    old = {"n": 1, "code": "-7", "title": "ann", "price": Decimal("1.5"), "sure": "true"}
    rows = [{"id": n, **old, "who": {"c": None, "a": n} if n else None, "e": 42} for n in range(4)]
    rows[1] = {"id": 1, **newer, "who": {"c": 0.5, "a": 2**40}, "e": 5}
    yield State("join versions", rows)
    second["fields"].insert(7, {"name": "again", "type": ["null", "int"]})
    lab.register(TOPIC, second)
    lab.land(TOPIC, [change(2, 30, **newer, who=None, again=7, e=6)], hour="2026112002")
    applied(lab)
    rows = [{n: v for n, v in row.items() if n != "e"} | {"again": None, "e": row["e"]} for row in rows]
    rows[2] = {"id": 2, **newer, "who": None, "again": 7, "e": 6}
    yield State("join segments versions", rows)


def made(lab: Lab) -> Iterator[State]:
    """What no file has: the defaults that older rows read, and NULLs of all types inside of their structs."""
    codes = {"type": "map", "values": "int"}
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": ["null", "int"]}]}
    words: dict[str, tuple[Any, Any]] = {
        "price": ("string", "\u20ac\U0001f600 ${it's}\\\n\0"),
        "latin": ("string", "\u00fc it's"),
        "words": ({"type": "array", "items": "string"}, ["a", "longer", "\u20ac"]),
        "none": ({"type": "array", "items": "string"}, []),
        "codes": (codes, {"k": 1, "\u20ac": 2}),
        "inners": ({"type": "array", "items": ["null", "int"]}, [1, 2]),
    }
    yield from _made(lab, words, ("tags", {"type": "array", "items": "string"}), ("codes", codes), ("inner", inner))


def made_empty(lab: Lab) -> Iterator[State]:
    """Of empty arrays Hive knows only those of texts."""
    return _made(lab, {"numbers": ({"type": "array", "items": "int"}, [])})


def _made(lab: Lab, defaults: dict[str, tuple[Any, Any]], *inside: tuple[str, Any]) -> Iterator[State]:
    def version(*fields: tuple[str, Any], **added: tuple[Any, Any]) -> Row:
        who = {"type": "record", "name": "Who", "fields": [{"name": n, "type": ["null", t]} for n, t in fields]}
        columns = [{"name": name, "type": type_, "default": value} for name, (type_, value) in added.items()]
        value = lab.flat("Student", ("who", ["null", who]))
        return value | {"fields": [*value["fields"][:2], *columns, *value["fields"][2:]]}

    lab.register(TOPIC, version(("a", "int")))
    lab.land(TOPIC, [change(n, 10, who={"a": n} if n else None) for n in range(3)])
    compacted(lab)
    lab.register(TOPIC, version(("a", "int"), *inside, **defaults))
    values = {name: value for name, (_, value) in defaults.items()}
    lab.land(TOPIC, [change(1, 20, who=None, **values)], hour="2026112001")
    applied(lab)
    older = {"a": 2} | {name: None for name, _ in inside}
    yield State("list versions", [{"id": n, "who": older if n == 2 else None, **values} for n in range(3)])


def widened_key(lab: Lab) -> Iterator[State]:
    """A key that stands in another column in older rows."""
    landed = based(lab, range(4), "int")
    lab.register(TOPIC, lab.flat("Student", ("name", ["null", "string"])), key=None)
    landed(change(2, 20, name="new"), change(2**40, 20, name="more"), change(3, 20, op="d"))
    applied(lab)
    yield State("window versions", newest(landed.events))


def partitioned(lab: Lab) -> Iterator[State]:
    """User partitions; rows move from one to another, and to that without a value."""
    by = {"birth_year": "year(born)", "letter": "left(name, 1)"}
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "partition_by": by}]}
    lab.register(TOPIC, lab.flat("Student", ("born", ["null", DAY]), ("name", ["null", "string"])))
    landed = Landed(lab)
    names = ["ann", "ü", "/x", "=y", "%z", "'q", ' "', None, ""]
    landed(*(change(n, 10, born=date(2000 + n // 4, 1, 1), name=name) for n, name in enumerate(names)))
    compacted(lab)
    yield State("", [_parted(row) for row in newest(landed.events)])
    landed(change(0, 20, born=None, name="bob"), change(1, 20, op="d"), change(7, 20, born=date(1, 1, 1), name="ü"))
    applied(lab)
    yield State("list", [_parted(row) for row in newest(landed.events)])


def _parted(row: Row) -> Row:
    born, name = row["born"], row["name"]
    return row | {"birth_year": born and born.year, "letter": name[:1] if name else None}


def names(lab: Lab) -> Iterator[State]:
    """Names that must be quoted, and those of ours; columns of ours shown, too."""
    lab.settings = {"defaults": {"view": {"metadata": True}}}
    odd = ["State", "select", "timestamp", "größe", "名前", "segment", "t", "k", "schemasync_rank"]
    lab.register(TOPIC, lab.flat("Student", *((name, "string") for name in odd)))
    landed = Landed(lab)
    for at in (1, 2):
        landed(*(change(n, at, **{name: f"{name}{at}" for name in odd}) for n in range(at, 3)))
        compacted(lab) if at == 1 else applied(lab)
    own = [{"__op": "u", "__ts_ms": at, "__segment": s} for at, s in [(1, "base_s00000001"), (2, "delta_00000002")]]
    yield State("join", [row | mine for row, mine in zip(newest(landed.events), own, strict=True)])


def log(lab: Lab) -> Iterator[State]:
    """No key: every event is a row."""
    lab.settings = {"tables": [{"subject": f"{TOPIC}-value", "insert_only": True}]}
    lab.register(TOPIC, lab.flat("Student", ("name", "string")))
    landed = Landed(lab)
    landed(change(1, 1, name="a"), change(2, 1, name="b"))
    compacted(lab)
    landed(change(3, 1, name="a"))
    applied(lab)
    yield State("", [{name: event[name] for name in ("id", "name")} for event in landed.events])


def joined(story: Story) -> Story:
    """Let no view of a story name keys of changes."""

    @wraps(story)
    def told(lab: Lab) -> Iterator[State]:
        with naming("joined"):
            yield from story(lab)

    return told


STORIES: list[Story] = [
    types,
    newer,
    ends,
    texts,
    digests,
    texts_joined,
    joined(newer_joined),
    joined(elsewhere),
    uncompared,
    late_events,
    joined(packed_int),
    joined(packed_lowest),
    joined(packed_highest),
    all_keys,
    unordered,
    carried,
    joined(evolved),
    made,
    widened_key,
    partitioned,
    joined(names),
    log,
]


def printed(lab: Lab, dialect: Dialect) -> PrintedDdl:
    """Return what ``schemasync ddl`` prints in a dialect."""
    workspace = lab.workspace
    return print_ddl(from_registry(workspace.registry, workspace.config, TABLE), workspace.renderer, dialect=dialect)


def told(lab: Lab, story: Story) -> Iterator[State]:
    """Yield the states of a story, once Spark has shown for each of them what it should; others read the view, too."""
    lab.readers = "any"
    for state in story(lab):
        text = view_text(lab)
        assert {name for name, words in FORMS.items() if words in text} == set(state.forms.split())
        assert comparable(lab.rows(TABLE)) == comparable(state.rows)
        yield state


def assert_found(query: Callable[[str], list[Row]], view: str, rows: Sequence[Row]) -> None:
    """Look for one row of a view, and count all."""
    # Texts that every engine writes alike.
    some = [row["id"] for row in rows if not isinstance(row["id"], str) or row["id"].isalnum()][-1]
    assert comparable(query(f"SELECT * FROM {view} WHERE id = {some!r}")) == [row for row in rows if row["id"] == some]
    assert query(f"SELECT count(*) AS found FROM {view}") == [{"found": len(rows)}]


def comparable(rows: Iterable[Row]) -> list[Row]:
    """Return rows in an order of their own, with values that every client can tell."""
    plain = ({name.lower(): _plain(value) for name, value in row.items()} for row in rows)
    return sorted(plain, key=lambda row: (row["id"], repr(sorted(row.items()))))


def _plain(value: Any) -> Any:
    """Return moments without their zone, which is UTC; days inside of others as text; no map beside an empty list."""
    match value:
        case datetime():
            return value.replace(tzinfo=None)
        case dict():
            return {name: _text(inner) for name, inner in value.items()} or []
        case [(_, _), *_]:
            return {name: _text(inner) for name, inner in value}
        case list():
            return [_text(item) for item in value]
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, date) else value
