"""One family's process: its Spark session, its systems, and what they are told to do, one thing at a time.

Runs in a child process of the benchmark (`Crew`), so that one family's extensions, threads and garbage are
no other's, and so that a process tree is all that has to be looked at for its CPU time.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from benchmarks.meter import Cost, measure
from benchmarks.queries import Query
from benchmarks.systems import FAMILIES, SYSTEMS
from benchmarks.systems.base import Setting, System
from benchmarks.values import Key
from schemasync.io.java import find_java
from schemasync.io.spark_session import SessionSettings, start_session


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a family works and with how much. ``master`` and ``memory`` are Spark's."""

    home: Path
    rows: int
    key: Key
    master: str
    memory: str


class _Host:
    """A family's session and those of its systems that take part."""

    def __init__(self, family: str, site: Site, names: tuple[str, ...]) -> None:
        self._systems: dict[str, System] = {}
        found = FAMILIES[family]
        conf = found.conf(site.home) | {"spark.driver.memory": site.memory}
        if found.packages:
            conf["spark.jars.packages"] = ",".join(found.packages)
        settings = SessionSettings(home=site.home, master=site.master, conf=conf)
        java = find_java(os.environ, cache_dir=site.home / "java")
        self._session = start_session(settings, java_home=java.home, python=sys.executable)
        for name in names:
            setting = Setting(session=self._session, home=site.home, name=name, rows=site.rows, key=site.key)
            self._systems[name] = found.systems[name](setting)

    def do(self, name: str, verb: str, *arguments: Any) -> Cost:
        system = self._systems[name]
        return measure(lambda: getattr(system, verb)(*arguments), root=system.root)

    def ask(self, name: str, query: Query) -> Cost:
        system = self._systems[name]
        return measure(lambda: query.run(self._session, system.relation), root=system.root)

    def layered(self, name: str) -> bool:
        return self._systems[name].layered


_HOSTS: Final[list[_Host]] = []
"""In a family's process: its one host."""


def _open(family: str, site: Site, names: tuple[str, ...]) -> None:
    _HOSTS.append(_Host(family, site, names))


def _call(method: str, *arguments: Any) -> Any:
    return getattr(_HOSTS[0], method)(*arguments)


class Crew:
    """All families' processes; each call waits for its answer, so never are two of them at work."""

    def __init__(self, systems: tuple[str, ...], *, root: Path, rows: int, key: Key, master: str, memory: str) -> None:
        """Start a process for every family that one of the systems belongs to."""
        self._pools: dict[str, ProcessPoolExecutor] = {}
        for family in dict.fromkeys(SYSTEMS[name] for name in systems):
            names = tuple(name for name in systems if SYSTEMS[name] == family)
            site = Site(home=root / family, rows=rows, key=key, master=master, memory=memory)
            pool = ProcessPoolExecutor(1, get_context("spawn"), _open, (family, site, names))
            self._pools[family] = pool

    def __enter__(self) -> Crew:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes; their JVMs end with them."""
        for pool in self._pools.values():
            pool.shutdown()

    def do(self, system: str, verb: str, *arguments: Any) -> Cost:
        """Let a system do something.

        Raises:
            Exception: whatever it raised.
        """
        cost: Cost = self._ask(system, "do", system, verb, *arguments)
        return cost

    def ask(self, system: str, query: Query) -> Cost:
        """Let a system answer a query from what it holds."""
        cost: Cost = self._ask(system, "ask", system, query)
        return cost

    def layered(self, system: str) -> bool:
        """Tell whether its changes can be read before they are merged."""
        return bool(self._ask(system, "layered", system))

    def _ask(self, system: str, method: str, *arguments: Any) -> Any:
        return self._pools[SYSTEMS[system]].submit(_call, method, *arguments).result()


