"""Tells one story: runs the fenced blocks of a Markdown file one after the other on a lab, and says what came of each.

Blocks that begin with ```yaml`` give something (a schema, landed events, a configuration), the others show what
happened; README.md beside the stories lists them all. What differs from run to run is replaced by fixed words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import yaml

from schemasync.app.applying import Applied
from schemasync.app.compacting import Compacted, CompactResult, compact
from schemasync.app.planning import TablePlan
from schemasync.app.releasing import release
from schemasync.app.status import status
from schemasync.core.compaction import FoldCounts
from schemasync.core.config import parse_duration
from schemasync.core.diagnostics import Diagnostic
from schemasync.core.plan import Step
from schemasync.core.ports import FoldJob, Metastore, Rows, SqlEngine
from schemasync.core.release import Release
from tests.lab import Lab

TOPIC = "shop.student"
TABLE = "shop_student"

_BLOCK = re.compile(r"^```(?P<head>\w+ [^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class _Loader(yaml.SafeLoader):
    """YAML with ``!decimal 1.50``; dates stay text."""


_Loader.add_constructor("!decimal", lambda _, node: Decimal(node.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, the words after it, its text, and where the text stands in the file."""

    language: str
    words: tuple[str, ...]
    body: str
    start: int
    end: int

    @property
    def given(self) -> Any:
        """The body as a value."""
        return yaml.load(self.body, _Loader)  # noqa: S506 - a SafeLoader with one tag more


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a story."""
    for found in _BLOCK.finditer(text):
        language, *words = found["head"].split()
        yield Block(
            language=language, words=tuple(words), body=found["body"], start=found.start("body"), end=found.end("body")
        )


class Teller:
    """Runs blocks on one lab. ``run`` returns what a block shows, None for those that only give."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._seen: list[dict[str, Any]] | None = None

    def run(self, block: Block) -> str | None:
        self.lab.now_ms += 1000
        if block.words[0] not in (*_LOOKING, "compact"):
            self._seen = None
        shown = _COMMANDS[block.words[0]](self, block)
        return None if shown is None else self._steady("".join(f"{line}\n" for line in shown))

    def config(self, block: Block) -> None:
        entry = block.given
        defaults = entry.pop("defaults", {})
        self.lab.settings = {"defaults": defaults, "tables": [{"subject": f"{TOPIC}-value"} | entry]}

    def key(self, block: Block) -> None:
        schema = {"type": "record", "name": "Key", "fields": block.given}
        self.lab.registry.register(f"{TOPIC}-key", json.dumps(schema))

    def register(self, block: Block) -> None:
        _, wrapper, *group = block.words
        schema = _WRAPPERS[wrapper](block.given)
        self.lab.register(TOPIC, schema, key=None, group=group[1] if group else "")

    def forget(self, block: Block) -> None:
        del block
        self.lab.registry.delete(f"{TOPIC}-value")

    def land(self, block: Block) -> None:
        _, version, hour, *name = block.words
        self.lab.land(
            TOPIC, block.given, version=int(version.removeprefix("v")), hour=hour, name=name[0] if name else None
        )

    def by_hand(self, block: Block) -> None:
        for statement in filter(str.strip, block.body.split(";\n")):
            self.lab.session.sql(statement.replace("lake.", f"`{self.lab.database}`."))

    def clock(self, block: Block) -> None:
        milliseconds = parse_duration(block.words[1])
        assert isinstance(milliseconds, int)
        self.lab.now_ms += milliseconds

    def apply(self, block: Block) -> Iterable[str] | None:
        (planned,) = self.lab.plan().tables
        (applied,) = self.lab.apply().tables
        assert applied.error is None, applied.error
        wanted = [
            step for step in planned.steps if step.kind != "admit" or (applied.admitted and applied.admitted.files)
        ]
        assert _stated(applied.done) == _stated(wanted), "a plan says everything that apply does"
        return None if "quietly" in block.words else (*_plan_lines(planned), *_applied_lines(applied))

    def release(self, block: Block) -> Iterable[str]:
        how = Release(migrate="--migrate" in block.words, rebuild="--rebuild" in block.words)
        (applied,) = release(self.lab.workspace, TABLE, how).tables
        assert applied.error is None, applied.error
        return (*_plan_lines(applied.plan), *_applied_lines(applied))

    def status(self, block: Block) -> Iterator[str]:
        del block
        (found,) = status(self.lab.workspace).tables
        hold = found.hold
        yield "not held" if hold is None else f"held since {hold.to_json()['since']}; release: {hold.release}"

    def drift(self, block: Block) -> Iterator[str]:
        del block
        (found,) = status(self.lab.workspace).tables
        yield "drift" if found.drift else "no drift"
        for told in found.diagnostics:
            yield f"{told.code} {told.severity.value}: {told.message}"
            yield from [f"  {told.fix}"] if told.fix else []

    def properties(self, block: Block) -> Iterator[str]:
        for name in (TABLE, f"{TABLE}_view"):
            table = self.lab.workspace.metastore.table(self.lab.database, name)
            assert table is not None
            yield from (f"{name}: {key} = {table.properties.get(key)}" for key in block.words[1:])

    def compact(self, block: Block) -> Iterable[str] | None:
        before = self.values()
        recorder = Recorder(self.lab.workspace.sql, self.lab.workspace.fold)
        metastore: Any = ViewTexts(self.lab.workspace.metastore, recorder.statements)
        workspace = replace(self.lab.workspace, sql=recorder, fold=recorder, metastore=metastore)
        result = compact(workspace)
        self._seen = None
        assert self.values() == before, "compaction changes no row of the view"
        return None if "quietly" in block.words else _compact_lines(result, recorder, in_full="full" in block.words)

    def view(self) -> Iterator[str]:
        frame = self.lab.session.table(f"`{self.lab.database}`.`{TABLE}_view`")
        header = [f"{name} {kind}" for name, kind in frame.dtypes]
        return _table_lines([header, *[[_cell(value) for value in row] for row in self.rows()]])

    def describe(self, block: Block) -> Iterator[str]:
        name = f"`{self.lab.database}`.`{TABLE}{'_view' if 'view' in block.words else ''}`"
        found = self.lab.workspace.sql.query(f"DESCRIBE {name}").rows
        columns = [row for row in found if row[0] and not row[0].startswith("#")]
        return _table_lines([[_cell(value) for value in row] for row in dict.fromkeys(columns)])

    def files(self) -> Iterator[str]:
        top = self.lab.root / "lake" / TOPIC / "incremental"
        yield from sorted(str(path.relative_to(top)) for path in top.rglob("*.parquet"))

    def rows(self, *, without: Collection[str] = ()) -> list[tuple[Any, ...]]:
        """Return the view's rows, in an order that does not depend on how they are stored.

        Nobody asks for them again while nothing is done: queries are half of what a story takes.
        """
        if self._seen is None:
            self._seen = self.lab.rows(TABLE, order_by="")
        rows = [tuple(v for k, v in row.items() if k not in without) for row in self._seen]
        return sorted(rows, key=lambda row: [_cell(value) for value in row])

    def values(self) -> list[tuple[Any, ...]]:
        """Return what no compaction may change: the rows, but not the segments that they stand in."""
        return self.rows(without=("__segment",))

    def end(self) -> None:
        """Assert what holds at the end of every story: compacting keeps all rows, and doing all again does nothing."""
        rows = self.values()
        self.lab.now_ms += 1000
        self.lab.compact()
        (planned,) = self.lab.plan().tables
        (applied,) = self.lab.apply().tables
        (compacted,) = self.lab.compact().tables
        self._seen = None
        steps = [step for step in planned.steps if step.kind != "admit"]
        outcome = (self.values(), steps, applied.done, compacted.fold, compacted.failure)
        assert outcome == (rows, [], (), None, None)

    def _steady(self, text: str) -> str:
        text = text.replace(f"file://{self.lab.root}", "file://").replace(f"file:{self.lab.root}", "file:")
        text = re.sub(rf"\b{self.lab.database}\b", "lake", text).replace(f"`{TABLE}_view__next`", f"`{TABLE}_view`")
        return re.sub(r"\(\d+ bytes\)", "(N bytes)", text)


_LOOKING = ("view", "describe", "files", "status", "drift", "properties")
_COMMANDS: dict[str, Callable[[Teller, Block], Iterable[str] | None]] = {
    "config": Teller.config,
    "key": Teller.key,
    "register": Teller.register,
    "forget": Teller.forget,
    "land": Teller.land,
    "by": Teller.by_hand,
    "clock": Teller.clock,
    "apply": Teller.apply,
    "compact": Teller.compact,
    "release": Teller.release,
    "status": Teller.status,
    "drift": Teller.drift,
    "properties": Teller.properties,
    "view": lambda teller, _: teller.view(),
    "describe": Teller.describe,
    "files": lambda teller, _: teller.files(),
}


def _stated(steps: Iterable[Step]) -> list[Step]:
    """Return steps without the view's statement: it names the segments of the moment, and files may come in between."""
    return [replace(step, sql="") if step.kind == "replace_view" else step for step in steps]


class ViewTexts:
    """Stands before a metastore, and keeps the texts that the view is given."""

    def __init__(self, inner: Metastore, kept: list[str]) -> None:
        self._inner = inner
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def set_view_text(self, database: str, name: str, text: str, *, expected: str | None = None) -> bool:
        done = self._inner.set_view_text(database, name, text, expected=expected)
        if done:
            self._kept.append(f"-- the view's text is now\n{text}")
        return done


class Recorder:
    """Stands before the SQL engine and the fold job, and keeps the statements that change something."""

    def __init__(self, sql: SqlEngine, job: FoldJob) -> None:
        self._sql = sql
        self._job = job
        self.statements: list[str] = []

    def execute(self, sql: str) -> None:
        self.statements.append(sql)
        self._sql.execute(sql)

    def query(self, sql: str) -> Rows:
        return self._sql.query(sql)

    def select(self, sql: str, *, database: str) -> Rows:
        return self._sql.select(sql, database=database)

    def run(self, select: str, **rest: Any) -> FoldCounts:
        self.statements.append(select)
        return self._job.run(select, **rest)

    def repeats_keys(self, directory: str, keys: Sequence[str]) -> bool:
        return self._job.repeats_keys(directory, keys)


def _record(fields: Sequence[Any], name: str = "Student") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def _optional(name: str, type_: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None}


def _flat(fields: Sequence[Any]) -> dict[str, Any]:
    return _record([*fields, _optional("op", "string"), {"name": "ts_ms", "type": "long"}])


def _debezium(fields: Sequence[Any]) -> dict[str, Any]:
    row = {"name": "before", "type": ["null", _record(fields, "Value")], "default": None}
    after = {"name": "after", "type": ["null", "shop.Value"], "default": None}
    source = {"name": "source", "type": _record([_optional("ts_ms", "long"), _optional("lsn", "long")], "Source")}
    return _record([row, after, source, {"name": "op", "type": "string"}, _optional("ts_ms", "long")], "Envelope")


def _unwrapped(fields: Sequence[Any]) -> dict[str, Any]:
    ours = [_optional("__op", "string"), _optional("__deleted", "string"), _optional("__source_ts_ms", "long")]
    return _record([*fields, *ours])


_WRAPPERS: dict[str, Callable[[Sequence[Any]], dict[str, Any]]] = {
    "flat": _flat,
    "plain": _record,
    "debezium": _debezium,
    "unwrapped": _unwrapped,
}


def _plan_lines(plan: TablePlan) -> Iterator[str]:
    yield f"-- {plan.verdict.value}: version {plan.current_version or 'none'} to {plan.desired_version}"
    for change in plan.to_json()["changes"]:
        name = f" {change['column']}" if change["column"] else ""
        yield f"-- {change['kind']}{name}: {_side(change['from'])} -> {_side(change['to'])}"
    yield from _diagnostic_lines(plan.diagnostics)
    for step in plan.steps:
        yield f"-- step {step.kind}: {step.why}"
        yield from [step.sql.strip()] if step.sql else []


def _side(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value)


def _diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    for found in diagnostics:
        yield f"-- {found.code} {found.severity.value}: {found.message}"


def _applied_lines(applied: Applied) -> Iterator[str]:
    admitted = applied.admitted
    if admitted is None:
        yield "-- nothing is there to admit into"
        return
    yield from _diagnostic_lines(admitted.findings)
    yield f"-- admitted: files {admitted.files}, events {admitted.events}, waiting {admitted.waiting}"


def _compact_lines(result: CompactResult, recorder: Recorder, *, in_full: bool) -> Iterator[str]:
    (table,) = result.tables
    assert table.failure is None, table.failure
    yield _counts_line(table)
    for statement in recorder.statements:
        if in_full or statement.lstrip().startswith(("CREATE OR REPLACE VIEW", "-- the view's text")):
            yield statement.strip()


def _counts_line(table: Compacted) -> str:
    if table.counts is None:
        return "-- nothing to fold"
    told = table.to_json()
    names = ("events", "keys", "rows", "inserted", "updated", "deleted")
    numbers = ", ".join(f"{name} {told[name]}" for name in names)
    return f"-- generation {table.generation}: {numbers}, purged {table.counts.purged}"


def _cell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dict() | list():
            return json.dumps(value, default=str)
        case _:
            return str(value)


def _table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        yield " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
