"""A first configuration, commented, for `schemasync init`: with the tables that a registry holds, if one is given.

Never overwrites anything; what it writes loads as it stands.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from schemasync.core.config import Config
from schemasync.core.mapping import TableMapping, TableTarget, map_subjects
from schemasync.core.ports import Registry
from schemasync.errors import StorageError, UsageError
from schemasync.io.config_file import DEFAULT_NAME, PREFIX, load_config

DEFAULT_REGISTRY: Final = "http://localhost:8081"

_HEAD: Final = """\
# What schemasync keeps in step with what. Relative paths are relative to this file.
# Any value can be set by the environment, too: SCHEMASYNC_REGISTRY__URL sets registry.url.
# ${{NAME}} stands for an environment variable, so that passwords need not be in here.

registry:
  url: {url}                 # or file:./registry (SUBJECT/VERSION.avsc, or SUBJECT.avsc)
  # auth: {{basic: {{username: me, password: "${{SR_PASSWORD}}"}}}}   # or bearer: "${{TOKEN}}"
  #   or: {{oauth: {{token_url: "https://...", client_id: me, client_secret: "${{SR_SECRET}}"}}}}
  #   or: {{mtls: {{cert: client.pem, key: client.key}}}}
  # ca: ca.pem                               # the registry's own certificate authority

metastore:
  kind: embedded                             # Spark's own, in .schemasync/ beside this file; or thrift
  # uri: thrift://localhost:9083             # with kind: thrift alone; nothing reads it beside kind: embedded

# spark: {{master: "local[*]", tables_at_once: 2, conf: {{spark.driver.memory: 4g}}}}

defaults:
  database: lake
  location: ./lake/{{topic}}                   # where the sink writes; s3a://bucket/{{topic}} works, too
  increments: incremental/increment_{{yyyyMMddHH}}   # or year={{yyyy}}/month={{MM}}/day={{dd}}/hour={{HH}}
  # policies: {{add: evolve, drop: drop, widen: evolve, retype: migrate, rename: alias}}
  # compaction: {{every: 1h, tombstone_retention: 7d, reader_grace: 1h, vacuum_retention: 7d, on_fold: delete}}
"""

_TAIL: Final = """
# watch: {poll: 15s, apply: auto, sweep: 1h}   # apply: auto | safe | manual
# notify:
#   - webhook: https://example.org/hook        # CloudEvents; or slack: URL, or command: ./tell-someone
"""

_EXAMPLE: Final = """
# Without tables: every subject that ends in -value becomes a table named after its topic.
# tables:
#   - subject: "shop\\\\.public\\\\.(?P<name>.+)-value"   # a regular expression; an exact subject beats it
#     table: "shop_{name}"
#   - subject: shop.public.student-value
#     table: student
#     keys: [id]                             # default: the columns of the -key subject
"""


_NOTHING_KNOWN: Final = TableMapping(targets=(), missing=(), skipped=(), problems=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffold:
    """What was written: the file, the registry that it names, and (subject, table) of every entry in it.

    ``skipped`` are subjects that were left out for what they are called, ``problems`` say why others were.
    """

    path: Path
    registry: str
    tables: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return ``{"config", "registry", "tables": [{"subject", "table"}], "skipped": [...], "problems": [...]}``."""
        return {
            "config": str(self.path),
            "registry": self.registry,
            "tables": [{"subject": subject, "table": table} for subject, table in self.tables],
            "skipped": list(self.skipped),
            "problems": list(self.problems),
        }


def scaffold(
    directory: Path,
    *,
    registry: str | None,
    environ: Mapping[str, str],
    open_registry: Callable[[Config], Registry],
) -> Scaffold:
    """Write ``schemasync.yaml`` into a directory, which is made where it is missing.

    ``registry`` is asked for its subjects; a ``file:`` one is relative to ``directory``, as in the file itself. User
    and password come from the environment (``SCHEMASYNC_REGISTRY__AUTH__...``), as for every command.

    Raises:
        UsageError: there is a configuration already, or ``registry`` is no URL.
        StorageError: the directory cannot be written.
        RegistryError, RegistryUnavailableError: the registry does not answer as it should.
    """
    path = directory / DEFAULT_NAME
    with _translated(directory):
        if path.exists():
            raise _exists(path)
    with _made(directory):
        mapping = _ask(registry, directory, environ, open_registry) if registry is not None else _NOTHING_KNOWN
        _write(path, config_text(registry or DEFAULT_REGISTRY, mapping))
    return Scaffold(
        path=path,
        registry=registry or DEFAULT_REGISTRY,
        tables=tuple((t.subject, t.table) for t in mapping.targets),
        skipped=mapping.skipped,
        problems=tuple(str(problem) for problem in mapping.problems),
    )


def _ask(
    registry: str, directory: Path, environ: Mapping[str, str], open_registry: Callable[[Config], Registry]
) -> TableMapping:
    """Load a configuration of nothing but the registry, as every command would, and map what the registry holds."""
    others = {name: value for name, value in environ.items() if name != f"{PREFIX}REGISTRY__URL"}
    named = partial(tempfile.NamedTemporaryFile, "w", dir=directory, prefix=".init-", suffix=".yaml", encoding="utf-8")
    with _translated(directory), named() as file:
        file.write(f"registry: {{url: {_quoted(registry)}}}\n")
        file.flush()
        try:
            config = load_config(Path(file.name), environ=others, cwd=directory).config
        except UsageError as error:
            _, variable, name = error.where.partition("environment variable ")
            raise UsageError(
                error.what, where=f"{variable}{name}" or "--registry", why=error.why, fix=error.fix
            ) from error
    return map_subjects(open_registry(config).subjects(), config)


def config_text(registry: str, mapping: TableMapping) -> str:
    """Return the file's text: entries for what ``mapping`` found, or an example, and what was left out."""
    tables = "\n".join(_tables(mapping)) + "\n" if mapping.targets else _EXAMPLE
    remarks = "".join(f"# {remark}\n" for remark in _remarks(mapping))
    return _HEAD.format(url=_quoted(registry)) + tables + remarks + _TAIL


def _tables(mapping: TableMapping) -> Iterator[str]:
    yield ""
    yield "tables:                                      # what the registry holds; delete what you don't want"
    for target in mapping.targets:
        yield from _entry(target)


def _remarks(mapping: TableMapping) -> Iterator[str]:
    if mapping.skipped:
        yield f"Left out, they hold no table's rows: {', '.join(map(_quoted, mapping.skipped))}"
    for problem in mapping.problems:
        yield f"Left out: {' '.join(str(problem).split())}"


def _entry(target: TableTarget) -> Iterator[str]:
    yield f"  - subject: {_quoted(target.subject)}"
    yield f"    table: {target.table}"
    if target.key_subject is None:
        yield "    # keys: [id]                             # it has no -key subject: insert-only unless keys are named"


def _quoted(text: str) -> str:
    """Return a YAML string; ``${`` would begin a variable."""
    return json.dumps(text.replace("${", "$${"))


def _write(path: Path, text: str) -> None:
    with _translated(path.parent):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise _exists(path) from None


@contextmanager
def _made(directory: Path) -> Iterator[None]:
    """Make a directory where it is missing; take away what was made where nothing comes of it."""
    with _translated(directory):
        missing = [place for place in (directory, *directory.parents) if not place.exists()]
        directory.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
        raise


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        fix = "Give this user write permission there, or name another directory: schemasync init DIR."
        raise StorageError("the directory cannot be written", where=str(directory), why=why, fix=fix) from error


def _exists(path: Path) -> UsageError:
    return UsageError(
        "there is a configuration already, and it is not overwritten",
        where=str(path),
        fix="Edit it, move it away, or name another directory: schemasync init DIR.",
    )
