"""One family's process: its Spark session, its systems, and what they are told to do, one thing at a time.

Runs in a child process of the benchmark (`Crew`), so that one family's extensions, threads and garbage are
no other's, and so that a process tree is all that has to be looked at for its CPU time.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.meter import Cost, measure
from benchmarks.processes import end, helper
from benchmarks.queries import Query
from benchmarks.sessions import started
from benchmarks.systems import FAMILIES, SYSTEMS
from benchmarks.systems.base import Setting, System
from benchmarks.values import Key


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
        conf = found.conf(site.home)
        if found.packages:
            conf["spark.jars.packages"] = ",".join(found.packages)
        self._session = started(site.home, memory=site.memory, master=site.master, conf=conf)
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


@lru_cache(maxsize=1)
def _host(family: str, site: Site, names: tuple[str, ...]) -> _Host:
    return _Host(family, site, names)


def _call(family: str, site: Site, names: tuple[str, ...], method: str, *arguments: Any) -> Any:
    """Do something in a family's process, which becomes its host with the first call."""
    try:
        return getattr(_host(family, site, names), method)(*arguments)
    except Exception as error:
        # Those of Spark hold on to their JVM and cannot leave the process.
        raise FailedError(f"{type(error).__name__}: {error}"[:2000]) from None


class FailedError(Exception):
    """A system could not do what it was told; the text is what it said."""


class Crew:
    """All families' processes; each call waits for its answer, so never are two of them at work."""

    def __init__(self, systems: tuple[str, ...], *, root: Path, rows: int, key: Key, master: str, memory: str) -> None:
        """Make a process for every family that one of the systems belongs to; each starts with its first call."""
        self._members: dict[str, tuple[ProcessPoolExecutor, tuple[str, Site, tuple[str, ...]]]] = {}
        for family in dict.fromkeys(SYSTEMS[name] for name in systems):
            names = tuple(name for name in systems if SYSTEMS[name] == family)
            site = Site(home=root / family, rows=rows, key=key, master=master, memory=memory)
            self._members[family] = helper(), (family, site, names)

    def __enter__(self) -> Crew:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes, at once where they are interrupted; their JVMs end with them."""
        at_once = kind is not None and issubclass(kind, KeyboardInterrupt)
        end([pool for pool, _ in self._members.values()], at_once=at_once)

    def do(self, system: str, verb: str, *arguments: Any) -> Cost:
        """Let a system do something.

        Raises:
            FailedError: it raised something.
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
        pool, host = self._members[SYSTEMS[system]]
        try:
            return pool.submit(_call, *host, method, *arguments).result()
        except BrokenProcessPool as error:
            raise FailedError("its process ended, perhaps for want of memory") from error
