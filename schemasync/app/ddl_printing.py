"""The DDL of one subject version in any dialect, without Spark and without a metastore: what `schemasync ddl` prints.

Asks the registry only (or reads one schema file), and decides as plan does for a table that is created now. The same
schema and configuration always give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote

from schemasync.app.inspecting import without_order
from schemasync.app.view_texts import as_stored, require_select_alone
from schemasync.app.workspace import Renderer
from schemasync.core import ddl
from schemasync.core.avro import read_key_schema
from schemasync.core.config import Config, TableEntry
from schemasync.core.describe import diagnostic_json
from schemasync.core.diagnostics import Diagnostic, Severity
from schemasync.core.groups import line_of
from schemasync.core.manifest import Contents, SegmentKind, new_run_directory, shard_directory, shard_name
from schemasync.core.mapping import TableTarget, map_subjects
from schemasync.core.names import Dialect, hour_directory
from schemasync.core.plan import properties_of
from schemasync.core.ports import RegisteredSchema, Registry
from schemasync.core.schema import SubjectVersion
from schemasync.core.shape import Shape, history_of, shape_of_new, version_of
from schemasync.errors import SchemaError, UsageError

Kind = Literal["table", "view", "per-run", "all"]
KINDS: Final[tuple[Kind, ...]] = ("table", "view", "per-run", "all")
HOUR: Final = "2026010100"
"""The hour that per-run tables are printed for where none is given: fixed, so that the same call gives the same DDL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedStatement:
    """One statement: what it makes (``database``, ``table``, ``view``, ``per-run``), its name, its SQL."""

    kind: str
    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedDdl:
    """The statements of one version, in the order in which they can be run, and what to know about them."""

    subject: str
    version: int
    dialect: Dialect
    statements: tuple[PrintedStatement, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def script(self) -> str:
        """All statements, each ended by a semicolon."""
        # A template of the user's own may end with a comment, which must not take the semicolon in.
        ended = (f"{s.sql}\n;" if "--" in s.sql.rpartition("\n")[2] else f"{s.sql};" for s in self.statements)
        return "\n\n".join(ended)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"subject", "version", "dialect", "statements": [{"kind", "name", "sql"}], "diagnostics"}``."""
        return {
            "subject": self.subject,
            "version": self.version,
            "dialect": self.dialect.value,
            "statements": [{"kind": s.kind, "name": s.name, "sql": s.sql} for s in self.statements],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the DDL is of: a table's configuration, the versions up to the wanted one, the columns of its key.

    ``to_key`` is how it gets a key where it has none, empty where that is as for any subject.
    """

    target: TableTarget
    versions: tuple[SubjectVersion, ...]
    key: tuple[str, ...] | None = None
    to_key: str = ""


def from_registry(registry: Registry, config: Config, subject: str, *, version: int | None = None) -> Source:
    """Read a subject's history up to a version, the newest where none is given.

    ``subject`` may also be the topic or the table's name.

    Raises:
        UsageError: no configured subject of that name, or it has no such version.
        SchemaError: the version cannot become a table.
        RegistryError, RegistryUnavailableError: the registry does not answer as it should.
    """
    target = _target_of(registry.subjects(), config, subject)
    live = registry.versions(target.subject)
    wanted = version or max(live, default=0)
    if wanted not in live:
        known = ", ".join(map(str, live)) or "none"
        raise UsageError(f"{target.subject} has no version {wanted}", where="--version", fix=f"There are: {known}.")
    registered = [registry.schema(target.subject, number) for number in live if number <= wanted]
    line = line_of(registered, wanted=target.compatibility_group, current=version)
    return Source(target=target, versions=tuple(_understood(target, line.versions)), key=_key(registry, target))


def _target_of(subjects: Sequence[str], config: Config, name: str) -> TableTarget:
    mapping = map_subjects(subjects, config)
    known = mapping.targets
    found = [t for t in known if name in {t.subject, t.topic, t.table, t.full_name}]
    if len(found) == 1:
        return found[0]
    if problem := mapping.problem_of(name):
        raise problem
    many = "more than one table" if found else "no configured subject or table"
    listed = ", ".join(t.subject for t in known) or "none"
    raise UsageError(f"there is {many} of the name {name}", where="SUBJECT", fix=f"The subjects here: {listed}.")


def _understood(target: TableTarget, registered: Sequence[RegisteredSchema]) -> Iterator[SubjectVersion]:
    for one in registered:
        try:
            yield version_of(target, one)
        except SchemaError:
            if one.version == registered[-1].version:
                raise
            # A broken version in the past is history; only the wanted one decides. That the events of one had no order
            # yet breaks none of its columns' lives.
            yield from without_order(target, one)


def _key(registry: Registry, target: TableTarget) -> tuple[str, ...] | None:
    versions = registry.versions(target.key_source) if target.key_source else ()
    return read_key_schema(registry.schema(target.key_source or "", versions[-1])) if versions else None


def from_file(config: Config, file: Path, *, keys: tuple[str, ...] = ()) -> Source:
    """Read one schema file as version 1 of the subject that its name says.

    ``student.avsc`` and ``student-value.avsc`` are of ``student-value``; so is ``student-value/3.avsc``, as registries
    in a directory have it. ``keys`` are the key columns, since there is no key subject.

    Raises:
        UsageError: the file cannot be read, or ``keys`` are none of its columns.
        SchemaError: it is no schema that can become a table.
    """
    subject = _subject_of(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError("the schema file cannot be read", where=str(file), why=why, fix="Check its path.") from error
    found = from_text(config, subject, text, keys=keys)
    columns = [column.name for column in found.versions[-1].columns]
    if unknown := {key.lower() for key in keys} - {name.lower() for name in columns}:
        what = f"there is no column {', '.join(sorted(unknown))} in {file.name}"
        raise UsageError(what, where="--keys", fix=f"Its columns are {', '.join(columns)}.")
    return replace(found, to_key="If rows have an identity, name its columns with --keys.")


def from_text(config: Config, subject: str, text: str, *, keys: tuple[str, ...] = ()) -> Source:
    """Read a schema's text as version 1 of a subject, which the configuration need not know.

    Raises:
        SchemaError: it is no schema that can become a table.
    """
    target = _target_of_file(config, subject)
    target = replace(target, keys=keys) if keys else target
    registered = RegisteredSchema(subject=subject, version=1, schema_id=1, text=text)
    return Source(target=target, versions=tuple(_understood(target, [registered])))


def _subject_of(file: Path) -> str:
    stem = unquote(file.stem)
    name = unquote(file.resolve().parent.name) if stem.isdecimal() else stem
    return name if name.endswith("-value") else f"{name}-value"


def _target_of_file(config: Config, subject: str) -> TableTarget:
    found = [t for t in map_subjects([subject], config).targets if t.subject == subject]
    if found:
        return found[0]
    alone = config.model_copy(update={"tables": (TableEntry(subject=subject),)})
    mapping = map_subjects([subject], alone)
    if mapping.problems:
        raise mapping.problems[0]
    return mapping.targets[0]


def print_ddl(
    source: Source, renderer: Renderer, *, dialect: Dialect = Dialect.SPARK, kind: Kind = "all", hour: str = HOUR
) -> PrintedDdl:
    """Print the statements that would make the table, were it created under this version now.

    ``hour`` (yyyyMMddHH) is the one that the incremental per-run table is printed for.

    Raises:
        SchemaError: the table could not be created: its key is not in the value, or events have no order.
        UsageError: ``hour`` is none, or a template is broken.
    """
    history = history_of(source.target, source.versions)
    version = history.newest.version
    shape, problems = shape_of_new(source.target, history, history.newest, key=source.key)
    _refuse(source.target, problems)
    printing = _Printing(target=source.target, shape=shape, renderer=renderer, dialect=dialect, hour=_checked(hour))
    return PrintedDdl(
        subject=source.target.subject,
        version=version,
        dialect=dialect,
        statements=tuple(s for s in printing.statements() if kind in {"all", s.kind}),
        diagnostics=tuple(
            replace(d, fix=source.to_key) if source.to_key and d.code == "SS401" else d for d in problems
        ),
    )


def _refuse(target: TableTarget, problems: Sequence[Diagnostic]) -> None:
    for problem in problems:
        if problem.severity is Severity.ERROR:
            where = f"subject {target.subject}"
            raise SchemaError(f"{problem.code}: {problem.message}", where=where, fix=problem.fix)


def _checked(hour: str) -> str:
    try:
        if re.fullmatch("[0-9]{10}", hour) and datetime.strptime(hour, "%Y%m%d%H"):
            return hour
    except ValueError:
        pass
    raise UsageError(f"{hour} is no hour", where="--hour", fix=f"Write it as yyyyMMddHH, for example {HOUR}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Printing:
    target: TableTarget
    shape: Shape
    renderer: Renderer
    dialect: Dialect
    hour: str

    def statements(self) -> Iterator[PrintedStatement]:
        target = self.target
        yield self._printed("database", target.database, ddl.create_database(target.database, self.dialect))
        table = ddl.create_table(target, self.shape, properties_of(target, self.shape), self.dialect)
        yield self._printed("table", target.table, table)
        contents = Contents(versions=frozenset({self.shape.version.version}), known=False)
        body = self._text(ddl.view_body(target, self.shape, contents, self.dialect))
        body = as_stored(self.renderer, body, self.dialect)
        view = self._printed("view", target.view, ddl.create_view(target, self.shape, body, self.dialect))
        require_select_alone(self.renderer, view.sql, body, self.dialect)
        yield view
        names = (target.base, target.incremental_table(self.hour), target.compactor)
        tables = ddl.per_run_tables(target, self.shape, self._run(), self.dialect)
        for name, statement in zip(names, tables, strict=True):
            yield self._printed("per-run", name, statement)

    def _printed(self, kind: str, name: str, statement: ddl.Statement) -> PrintedStatement:
        # A template of the user's own may end with the semicolon that each statement gets.
        return PrintedStatement(kind=kind, name=name, sql=self._text(statement).rstrip("; \t\r\n"))

    def _text(self, statement: ddl.Statement) -> str:
        return self.renderer.render(statement.template, statement.values, dialect=self.dialect.value)

    def _run(self) -> ddl.PerRun:
        """Where the tables of the very first compaction would lie; a real one has a token of its own."""
        place = self.target.location
        runs = (new_run_directory(SegmentKind.BASE, generation, "0" * 8) for generation in (0, 1))
        base, compactor = (f"{place}/{shard_directory(run, shard_name(0))}" for run in runs)
        increment = hour_directory(self.target.increments, self.hour)
        return ddl.PerRun(
            base=base,
            compactor=compactor,
            increments={self.hour: f"{place}/{increment}"},
            present=frozenset(name for name, _, _ in ddl.physical_columns(self.shape)),
        )


def write_files(printed: PrintedDdl, directory: Path) -> tuple[Path, ...]:
    """Write one file per statement, ``NAME.sql`` (``NAME.database.sql`` for the database); return their paths.

    Raises:
        UsageError: the directory cannot be written.
    """
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for statement in printed.statements:
            ending = ".database.sql" if statement.kind == "database" else ".sql"
            path = directory / f"{statement.name}{ending}"
            path.write_text(f"{statement.sql};\n", encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise UsageError(
            "the DDL cannot be written there", where=f"--out {directory}", why=error.strerror or "", fix="Check it."
        ) from error
    return tuple(written)
