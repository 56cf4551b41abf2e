"""Running command lines in this process: a directory, an environment, and the program's answer as one value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from schemasync.app.workspace import Progress
from schemasync.cli import program
from schemasync.cli.context import SessionOpener, World
from tests.lab import Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@contextmanager
def no_spark(*_: object, **__: object) -> Iterator[SparkSession]:
    raise AssertionError("this command must not need Spark")
    yield


class Bench:
    """Runs command lines in one directory; Spark must not be needed unless an opener is given."""

    def __init__(self, root: Path, *, open_session: SessionOpener = no_spark) -> None:
        self.root = root
        self.environ: dict[str, str] = {}
        self.open_session = open_session

    def __call__(self, *argv: str) -> Answer:
        world = World(environ=self.environ, cwd=self.root, open_session=self.open_session)
        result = CliRunner().invoke(program, list(argv), obj=world, env={"COLUMNS": "100"})
        return Answer(code=result.exit_code, out=result.stdout, err=result.stderr)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Project(Bench):
    """A project directory on real Spark: a file registry, a lake, and a configuration for a database of its own."""

    def __init__(self, root: Path, lab: Lab) -> None:
        @contextmanager
        def shared(*_: object, progress: Progress, **__: object) -> Iterator[SparkSession]:
            progress("", "starting Spark")
            yield lab.session

        super().__init__(root, open_session=shared)
        self.lab = lab
        (root / "registry").mkdir()
        self.configure()

    def configure(self, more: str = "") -> None:
        self.write(
            "schemasync.yaml", f"registry: {{url: 'file:./registry'}}\ndefaults: {{database: {self.database}}}\n{more}"
        )

    @property
    def database(self) -> str:
        return self.lab.database

    def register(self, topic: str, *columns: tuple[str, Any], key: Sequence[str] | None = ("id",)) -> int:
        schema = self.lab.flat("Row", *columns)
        version = self.lab.register(topic, schema, key)
        self.write(f"registry/{topic}-value/{version}.avsc", json.dumps(schema))
        if key:
            self.write(f"registry/{topic}-key/1.avsc", self.lab.registry.schema(f"{topic}-key", 1).text)
        return version

    def land(self, topic: str, *events: Mapping[str, Any], **more: Any) -> Path:
        return self.lab.land(topic, events, **more)


def event(number: int, **values: Any) -> dict[str, Any]:
    return {"id": number, "op": "c", "ts_ms": number} | values
