"""A project as people have it, a directory that ``schemasync`` is called in, each time as a process of its own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.children import SHORT_LIVED
from tests.fold import Event, fold
from tests.lab import Lab

PATIENCE_SECONDS = 120.0

CONFIG = """
registry: {url: "file:./registry"}
metastore: {kind: embedded}
defaults:
  database: lake
  location: ./lake/{topic}
  compaction: {every: 0s, reader_grace: 0s, vacuum_retention: 0s}
watch: {poll: 100ms}
"""
"""Everything is due at every tick, so that a kill may meet any step."""


class Project:
    """A directory with a configuration, a file registry, and a sink that lands events."""

    def __init__(self, root: Path, config: str = CONFIG) -> None:
        self.root = root
        self.events: list[Event] = []
        session: Any = None  # landing files needs no Spark
        self._lab = Lab(root=root, session=session, database="lake")
        self._clock = itertools.count(1)
        self._log = root / "log"
        ours = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        self._environ = {**os.environ, **SHORT_LIVED, "PYTHONPATH": os.pathsep.join(ours)}
        (root / "schemasync.yaml").write_text(config)

    def register(self, *columns: str) -> None:
        schema = self._lab.flat("Student", *((name, ["null", "string"]) for name in columns))
        self._lab.register("student", schema)
        for subject in self._lab.registry.subjects():
            (self.root / "registry" / subject).mkdir(parents=True, exist_ok=True)
            for version in self._lab.registry.versions(subject):
                text = self._lab.registry.schema(subject, version).text
                (self.root / "registry" / subject / f"{version}.avsc").write_text(text)

    def land(self, number: int, columns: tuple[str, ...]) -> None:
        """Land some changes of seven keys, every fifth one a delete."""
        batch = []
        for n in range(number):
            at = next(self._clock)
            row = {"id": at % 7, **{name: f"{name} {at}" for name in columns}}
            batch.append({**row, "op": "u" if n % 5 else "d", "ts_ms": at})
            self.events.append(Event(key=(at % 7,), order=(at,), row=row, deleted=n % 5 == 0))
        self._lab.land("student", batch)

    def rows(self) -> list[dict[str, Any]]:
        """Return what the view shows, without nulls."""
        query = ["sql", "SELECT * FROM student_view ORDER BY id", "--json"]
        answer = json.loads(self.run(*query).stdout)
        rows = (dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"])
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    @property
    def expected(self) -> list[dict[str, Any]]:
        return sorted(fold(self.events).values(), key=lambda row: int(row["id"]))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            cwd=self.root,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    @contextmanager
    def watching(self, until: str) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a watcher that has logged something; whatever is left of it is killed."""
        self._log = self.root / f"log{next(self._clock)}"
        with self._log.open("wb") as errors, (self.root / "lines").open("ab") as lines:
            process = self._start("watch", "-vv", stdout=lines, stderr=errors, start_new_session=True)
        try:
            wait_for(lambda: until in self.log, process)
            yield process
        finally:
            process.kill()
            process.wait()

    @property
    def log(self) -> str:
        """What the last watcher has logged by now."""
        return self._log.read_text()

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line)["data"] for line in (self.root / "lines").read_text().splitlines() if line[:1] == "{"]

    def at_once(self, times: int, *arguments: str) -> list[tuple[int, str]]:
        """Run several processes at the same time; return the exit code of each, and its stderr."""
        started = [
            self._start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(times)
        ]
        try:
            told = [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in started]
        finally:
            for process in started:
                process.kill()
        return [(process.returncode, text) for process, text in zip(started, told, strict=True)]

    def _start(self, *arguments: str, **how: Any) -> subprocess.Popen[Any]:
        return subprocess.Popen(self._command(*arguments), cwd=self.root, env=self._environ, **how)

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "schemasync", *arguments]


def wait_for(condition: Any, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert process.poll() is None, "the watcher ended by itself"
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
