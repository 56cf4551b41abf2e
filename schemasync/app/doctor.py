"""Checks of everything that has to be right before schemasync can work, and what to do about each.

Called by `schemasync doctor`. A check that fails never stops the others; those that cannot say anything without it
are skipped. What is written (a probe file, ``.schemasync``) is what every command would write, and removed again, but
for the directory of a table that is not on the local disk.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from schemasync.app.ddl_printing import from_text, print_ddl
from schemasync.app.opening import is_left_to_spark, open_registry, open_renderer
from schemasync.app.workspace import Workspace
from schemasync.core.amounts import many
from schemasync.core.config import Config, Names
from schemasync.core.config_values import UTC_NAMES, ZONE
from schemasync.core.locations import parse_location
from schemasync.core.mapping import NOTHING, NOTHING_FIX, TableMapping, TableTarget, map_subjects
from schemasync.core.names import Dialect
from schemasync.core.ports import Lake, Registry
from schemasync.errors import SchemasyncError, StorageError, as_ours
from schemasync.io.config_file import LoadedConfig
from schemasync.io.java import find_java
from schemasync.io.lake.arrow import ArrowLake
from schemasync.io.logs import redact

PYSPARK: Final = "4.1"
"""The Spark that is installed by default."""
SPARKS: Final = {"3.5": 9, "4.1": 0}
"""The series of Spark that this version is made for, each with its first such release; pyproject.toml says the same."""

GIB: Final = 1024**3
LITTLE: Final = 1 * GIB
"""Free bytes below which a warning is due; a compaction writes its table's base anew."""
TOO_LITTLE: Final = GIB // 16

INCOMPATIBLE: Final = "hive.metastore.disallow.incompatible.col.type.changes"

TRAPS: Final = (
    ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS", "INT96 timestamps have no statistics"),
    ("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED", "Spark 3.5 cannot read dates before 1582"),
    ("spark.sql.hive.convertMetastoreParquet", "true", "Hive's reader finds Parquet columns by position"),
    ("spark.sql.parquet.binaryAsString", "false", "bytes would read as text"),
    ("spark.sql.caseSensitive", "false", "the metastore does not tell State from state"),
    ("spark.sql.files.ignoreCorruptFiles", "false", "a corrupt file would be missing rows, silently"),
    ("spark.sql.files.ignoreMissingFiles", "false", "a missing file would be missing rows, silently"),
)
"""(setting, the value that Parquet tables need, what goes wrong with another): the known traps of Spark 3.5 and 4.1."""

_SAMPLE: Final = """{"type": "record", "name": "Sample", "fields": [
  {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]},
  {"name": "op", "type": "string"}, {"name": "ts_ms", "type": "long"}]}"""


class Health(Enum):
    """How a check ended; the value is what ``doctor --json`` prints."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: what was found, and what to do where it is not ok.

    ``exit_code`` is that of a command which meets what failed.
    """

    name: str
    health: Health
    detail: str
    fix: str = ""
    exit_code: int = SchemasyncError.exit_code

    def to_json(self) -> dict[str, str]:
        """Return ``{"check", "status": "ok|warn|fail|skipped", "detail", "fix"}``."""
        return {"check": self.name, "status": self.health.value, "detail": self.detail, "fix": self.fix}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All checks, in the order in which they were made."""

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Tell whether nothing failed; warnings do not count."""
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.health is Health.FAIL)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"healthy": true, "checks": [...]}``."""
        return {"healthy": self.healthy, "checks": [check.to_json() for check in self.checks]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is examined: how to load the configuration and open the world, and how much room a directory has."""

    load: Callable[[], LoadedConfig]
    environ: Mapping[str, str]
    open_workspace: Callable[[Config], AbstractContextManager[Workspace]]
    open_registry: Callable[[Config], Registry] = open_registry
    free_bytes: Callable[[Path], int] = lambda directory: shutil.disk_usage(directory).free


def examine(around: Surroundings) -> Report:
    """Make all checks."""
    checks = (replace(c, detail=redact(c.detail), fix=redact(c.fix)) for c in _checks(around))
    return Report(checks=tuple(checks))


def _checks(around: Surroundings) -> Iterator[Check]:
    loaded: list[LoadedConfig] = []
    yield _made("config", lambda: _config(around, loaded))
    config = loaded[0].config if loaded else None
    java = _made("java", lambda: _java(around, config))
    yield java
    yield _made("pyspark", _pyspark)
    if config is None:
        names = ("templates", "registry", "tables", "storage", "disk", *_SPARK_CHECKS)
        yield from (_skipped(name, "config") for name in names)
        return
    yield _made("templates", lambda: _templates(config))
    targets, found = _registered(around, config)
    yield from found
    of_hadoop = tuple(t for t in targets if is_left_to_spark(t.location, t.compaction.kernel))
    locations = _outside_of_spark(config, targets, of_hadoop)
    yield _made("storage", lambda: _storage(locations, {target.location for target in of_hadoop}))
    yield _made("disk", lambda: _disk(around, config, locations))
    if java.health is Health.FAIL:
        yield from (_skipped(name, "java") for name in _SPARK_CHECKS)
        return
    yield from _spark(around, config, of_hadoop)


def _made(name: str, probe: Callable[[], Check]) -> Check:
    try:
        return probe()
    except Exception as error:
        # The others may say what is wrong.
        return _failed(name, as_ours(error))


def _failed(name: str, error: SchemasyncError) -> Check:
    return Check(name=name, health=Health.FAIL, detail=error.said, fix=error.fix, exit_code=error.exit_code)


def _ok(name: str, detail: str) -> Check:
    return Check(name=name, health=Health.OK, detail=detail)


def _skipped(name: str, needed: str) -> Check:
    return Check(name=name, health=Health.SKIPPED, detail=f"needs {needed}", fix=f"See {needed}.")


def _config(around: Surroundings, loaded: list[LoadedConfig]) -> Check:
    loaded.append(around.load())
    return _ok("config", str(loaded[0].path))


def _java(around: Surroundings, config: Config | None) -> Check:
    with TemporaryDirectory() as scratch:
        cache = Path(config.metastore.dir) / "java" if config else Path(scratch)
        java = find_java(around.environ, cache_dir=cache)
    return _ok("java", f"Java {java.version} from {java.source} ({java.home})")


def _pyspark() -> Check:
    fix = f"Install pyspark {PYSPARK}: pip install 'pyspark=={PYSPARK}.*'"
    try:
        found = version("pyspark")
    except PackageNotFoundError:  # pragma: no cover - a dependency of this package
        return Check(name="pyspark", health=Health.FAIL, detail="not installed", fix=fix)
    series, _, release = found.rpartition(".")
    if series in SPARKS and release.isdecimal() and int(release) >= SPARKS[series]:
        return _ok("pyspark", found)
    detail = f"{found}, made for {' and '.join(f'{known}.{first}+' for known, first in SPARKS.items())}"
    return Check(name="pyspark", health=Health.WARN, detail=detail, fix=fix)


def _templates(config: Config) -> Check:
    renderer = open_renderer(config)
    # Names that clash are the tables' matter, and not this sample's.
    own = config.model_copy(update={"defaults": config.defaults.model_copy(update={"names": Names()})})
    source = from_text(own, "schemasync.doctor-value", _SAMPLE, keys=("id",))
    made = [s for dialect in Dialect for s in print_ddl(source, renderer, dialect=dialect).statements]
    if passed_over := renderer.passed_over():
        fix = f"Call them in {config.templates} like those that ship, or take them out."
        return Check(name="templates", health=Health.WARN, detail=" ".join(passed_over), fix=fix)
    whose = f", with overrides from {config.templates}" if config.templates else ""
    return _ok("templates", f"{len(made)} statements in {len(Dialect)} dialects{whose}")


def _registered(around: Surroundings, config: Config) -> tuple[tuple[TableTarget, ...], tuple[Check, ...]]:
    """Return the tables that the registry makes, also those whose subjects it lacks, and what was found on the way."""
    try:
        mapping = map_subjects(around.open_registry(config).subjects(), config)
        checks = (_registry(config, mapping), _tables(mapping))
    except SchemasyncError as error:
        return (), (_failed("registry", error), _skipped("tables", "registry"))
    return (*mapping.targets, *mapping.missing), checks


def _outside_of_spark(config: Config, targets: Sequence[TableTarget], left: Collection[TableTarget]) -> tuple[str, ...]:
    """Return where the tables lie, but for those that are ``left`` to Spark; the default where there are no tables."""
    if not targets and not is_left_to_spark(_top(config), config.defaults.compaction.kernel):
        return (_top(config),)
    return tuple(sorted({target.location for target in targets} - {target.location for target in left}))


def _registry(config: Config, mapping: TableMapping) -> Check:
    auth = config.registry.auth
    given = [name for name in ("basic", "bearer", "oauth", "mtls") if getattr(auth, name) is not None]
    known = len(mapping.targets) + len(mapping.skipped)
    detail = f"{config.registry.url} answers, with {' and '.join(given) or 'no'} authentication"
    if known:
        return _ok("registry", detail)
    return Check(name="registry", health=Health.WARN, detail=f"{detail}; it {NOTHING}", fix=NOTHING_FIX)


def _tables(mapping: TableMapping) -> Check:
    if mapping.problems:
        detail = "; ".join(problem.what for problem in mapping.problems)
        first = mapping.problems[0]
        return Check(name="tables", health=Health.FAIL, detail=detail, fix=first.fix, exit_code=first.exit_code)
    if mapping.missing:
        names = ", ".join(target.subject for target in mapping.missing)
        fix = "Check the subjects' names in tables:, and this user's rights."
        return Check(name="tables", health=Health.WARN, detail=f"the registry does not have {names}", fix=fix)
    return _ok(
        "tables", f"{many(len(mapping.targets), 'table')}: {', '.join(t.name for t in mapping.targets)}".rstrip(": ")
    )


def _top(config: Config) -> str:
    """Return the directory that the default location begins with."""
    return config.defaults.location.split("{", 1)[0].rpartition("/")[0]


def _local(location: str) -> Path | None:
    """Return the nearest existing place on the way to a local location, None where it is elsewhere."""
    parts = parse_location(location)
    if not parts.is_local:
        return None
    place = Path(parts.path)
    while not _exists(place):
        place = place.parent
    return place


def _exists(place: Path) -> bool:
    """Tell whether a place is there, as far as this user may know."""
    with suppress(PermissionError):
        return place.exists()
    return False


def _storage(locations: Sequence[str], left: Collection[str]) -> Check:
    places = sorted({str(_local(location) or location) for location in locations})
    for place in places:
        if Path(place).is_file():
            fix = "Move the file, or change location:."
            raise StorageError("a file stands where a directory is needed", where=place, fix=fix)
        _probe(ArrowLake(place))
    written = f"{many(len(locations), 'location')} can be written, tried in {', '.join(places)}" if places else ""
    by_spark = f"{many(len(left), 'location')} reached by Spark only" if left else ""
    return _ok("storage", "; ".join(part for part in (written, by_spark) if part))


def _storage_of_hadoop(workspace: Workspace, targets: Sequence[TableTarget]) -> Check:
    places = {target.location: target for target in targets}
    for target in places.values():
        _probe(workspace.storage(target).lake)
    return _ok("hadoop", f"{many(len(places), 'location')} can be written, tried in {', '.join(sorted(places))}")


def _probe(lake: Lake) -> None:
    name = f"_schemasync-doctor-{uuid.uuid4().hex}"
    lake.create(name, b"")
    lake.delete(name)


def _disk(around: Surroundings, config: Config, locations: Sequence[str]) -> Check:
    places = {place for location in (*locations, config.metastore.dir) if (place := _local(location))}
    free = {place: around.free_bytes(place) for place in sorted(places)}
    least = min(free, key=lambda place: free[place])
    detail = f"{free[least] / GIB:.1f} GiB are free at {least}"
    if free[least] >= LITTLE:
        return _ok("disk", detail)
    health = Health.FAIL if free[least] < TOO_LITTLE else Health.WARN
    return Check(name="disk", health=health, detail=detail, fix="A compaction writes the base anew: free some space.")


_SPARK_CHECKS: Final = ("spark", "metastore", "column_types", "time_zone", "parquet")


def _spark(around: Surroundings, config: Config, of_hadoop: Sequence[TableTarget]) -> Iterator[Check]:
    try:
        with around.open_workspace(config) as workspace:
            yield _made("spark", lambda: _starts(config, workspace))
            yield _made("metastore", lambda: _metastore(config, workspace))
            yield _made("column_types", lambda: _column_types(workspace))
            yield _made("time_zone", lambda: _time_zone(workspace))
            yield _made("parquet", lambda: _parquet(workspace))
            if of_hadoop:
                yield _made("hadoop", lambda: _storage_of_hadoop(workspace, of_hadoop))
    except SchemasyncError as error:
        yield _failed("spark", error)
        yield from (_skipped(name, "spark") for name in _SPARK_CHECKS[1:])


def _starts(config: Config, workspace: Workspace) -> Check:
    row = workspace.sql.query("SELECT version()").rows[0]
    return _ok("spark", f"Spark {str(row[0]).split(' ', maxsplit=1)[0]} at {config.spark.master}")


def _metastore(config: Config, workspace: Workspace) -> Check:
    names = workspace.metastore.names(config.defaults.database, "*")
    kind = config.metastore
    where = kind.dir if kind.kind == "embedded" else kind.uri
    return _ok("metastore", f"{kind.kind} at {where}; tables and views in {config.defaults.database}: {len(names)}")


def _column_types(workspace: Workspace) -> Check:
    if workspace.metastore.setting(INCOMPATIBLE, "true").lower() == "false":
        return _ok("column_types", f"{INCOMPATIBLE} is false")
    return Check(
        name="column_types",
        health=Health.WARN,
        detail=f"{INCOMPATIBLE} is true: apply cannot repair columns whose type was altered by hand",
        fix="Set it to false in the metastore's hive-site.xml.",
    )


def _time_zone(workspace: Workspace) -> Check:
    found = str(workspace.sql.query("SELECT current_timezone()").rows[0][0])
    if found in UTC_NAMES:
        return _ok("time_zone", f"the session's is {found}")
    detail = f"the session's is {found}: timestamps in results would not be what Debezium sent"
    fix = f"Remove {ZONE} from spark: {{conf: ...}}."
    return Check(name="time_zone", health=Health.FAIL, detail=detail, fix=fix)


def _parquet(workspace: Workspace) -> Check:
    wrong = [
        f"{key} is {value}, so {why}"
        for key, wanted, why in TRAPS
        if (value := str(workspace.sql.query(f"SET {key}").rows[0][1])).lower() not in {wanted.lower(), "<undefined>"}
    ]
    if not wrong:
        return _ok("parquet", f"{len(TRAPS)} settings are as Parquet tables need them")
    fix = "Remove these settings from spark: {conf: ...}."
    return Check(name="parquet", health=Health.WARN, detail="; ".join(wrong), fix=fix)
