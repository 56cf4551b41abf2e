"""One trial: all systems on one base, shape after shape, taking turns; nothing counts before it was found right.

For every shape: some change sets are compacted, each by every system, the order reversed every other time; then
one more lands and is read where it can be read unmerged, and again when nothing is left to merge.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.changes import Shape
from benchmarks.history import History, Step
from benchmarks.meter import Cost
from benchmarks.queries import Query, digest, queries
from benchmarks.records import Record
from benchmarks.systems import LIMIT, OURS
from benchmarks.values import Key
from benchmarks.worker import Crew, FailedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a trial is about. ``warmups`` are repetitions that are checked and not recorded.

    ``read_warmups``: so many change sets land and are read, as the one that counts is, before that.
    ``changes_of``: shapes that are a part of the base are a part of so many rows, where that is not ``rows``.
    ``mark`` is put behind the shapes' names, so that a trial on other terms is not taken for the same.
    """

    rows: int
    key: Key
    shapes: tuple[Shape, ...]
    systems: tuple[str, ...]
    reps: int
    warmups: int
    read_reps: int
    read_warmups: int
    changes_of: int
    master: str
    memory: str
    mark: str = ""

    @property
    def all_reps(self) -> range:
        """Numbers of the repetitions; below zero are those that do not count."""
        return range(-self.warmups, self.reps)

    def label(self, shape: Shape) -> str:
        """Return the name of a shape in this trial."""
        of = f"/of-{self.changes_of}" if self.changes_of != self.rows else ""
        key = "/uuid" if self.key == "uuid" else ""
        return shape.name + of + key + (f"/{self.mark}" if self.mark else "")


def say(text: str) -> None:
    """Tell people what is being done."""
    print(text, file=sys.stderr, flush=True)


@dataclass(slots=True, kw_only=True)
class _State:
    """What is known of the change set that all systems took in last."""

    step: Step
    truth: Any
    answers: dict[str, Any]


class Trial:
    """A trial under way."""

    def __init__(self, terms: Terms, crew: Crew, history: History) -> None:
        """Take a crew whose systems hold nothing yet."""
        self._terms = terms
        self._crew = crew
        self._history = history
        self._queries = queries(terms.rows, terms.key)
        self._out: set[str] = set()
        self._over = False

    @property
    def _systems(self) -> tuple[str, ...]:
        return tuple(name for name in self._terms.systems if name not in self._out)

    def run(self) -> Iterator[Record]:
        """Yield the records as they are measured."""
        yield from self.load()
        for shape in self._terms.shapes:
            for rep in self._terms.all_reps:
                yield from self.compact(shape, rep)
            if self._terms.read_reps and not self._over:
                yield from self._reads(shape)

    def load(self) -> Iterator[Record]:
        """Give the base to all systems; yield who could not take it."""
        for system in self._systems:
            say(f"{system}: loading {self._terms.rows} rows")
            yield from self._try(system, "prepare", None, 0, lambda s: self._crew.do(s, "prepare", self._history.base))

    def compact(self, shape: Shape, rep: int) -> Iterator[Record]:
        """Let one more change set land, and every system take it in; yield what counts of it."""
        state = yield from self._advance(shape, rep)
        if state is None:
            return
        say(f"{shape.name}, {self._terms.rows} rows: repetition {rep}, change set {state.step.number}")
        for system in self._in_turn(rep):
            found = self._try(system, "compact", shape, rep, lambda s: self._compact(s, state), state)
            yield from (record for record in found if rep >= 0 or not record.ok)
            if system == OURS and OURS in self._systems:
                yield from (r for r in self._limit(shape, rep, state) if rep >= 0 or not r.ok)

    def _advance(self, shape: Shape, rep: int, asked: tuple[Query, ...] = ()) -> Generator[Record, None, _State | None]:
        """Let one more change set land, and return what is true then.

        Nothing can count without a truth: where there is none, that is told once and the trial is over.
        """
        if self._over:
            return None
        step = self._history.advance(shape)
        try:
            self._crew.do(LIMIT, "land", step)
            truth = self._crew.ask(LIMIT, digest()).value
            answers = {query.name: self._crew.ask(LIMIT, query).value for query in asked}
        except FailedError as error:
            self._over = True
            yield self._failed(LIMIT, "truth", shape, rep, error)
            return None
        return _State(step=step, truth=truth, answers=answers)

    def _in_turn(self, rep: int) -> tuple[str, ...]:
        systems = tuple(name for name in self._systems if name != LIMIT)
        return systems if rep % 2 == 0 else systems[::-1]

    def _compact(self, system: str, state: _State) -> Cost:
        self._crew.do(system, "land", state.step)
        cost = self._crew.do(system, "compact")
        self._check(system, state)
        self._crew.do(system, "tidy")
        return cost

    def _limit(self, shape: Shape, rep: int, state: _State) -> Iterator[Record]:
        replaced = self._crew.do(OURS, "replaced").value
        if replaced:
            yield from self._try(LIMIT, "compact", shape, rep, lambda s: self._crew.do(s, "rewrite", replaced), state)
            yield from self._try(LIMIT, "tidy", shape, rep, lambda s: self._crew.do(s, "tidy"))

    def _reads(self, shape: Shape) -> Iterator[Record]:
        for system in self._in_turn(0):
            yield from self._try(system, "settle", shape, 0, lambda s: self._crew.do(s, "settle"))
        # Readers' sessions have asked such before; not all that merge have made their session warm by that.
        for _ in range(self._terms.read_warmups):
            yield from (record for record in self._read(shape) if not record.ok)
        yield from self._read(shape)

    def _read(self, shape: Shape) -> Iterator[Record]:
        """Let one more change set land, and read it before it is merged and after that."""
        state = yield from self._advance(shape, 0, self._queries)
        if state is None:
            return
        for system in self._in_turn(0):
            yield from self._try(system, "land", shape, 0, lambda s: self._crew.do(s, "land", state.step))
        layered = tuple(name for name in self._systems if self._crew.layered(name))
        yield from self._queried(shape, "pending", "show", layered, state)
        yield from self._queried(shape, "compacted", "settle", self._systems, state)

    def _queried(self, shape: Shape, when: str, verb: str, systems: tuple[str, ...], state: _State) -> Iterator[Record]:
        """Bring systems into a state, check it, and let them answer all queries in turn."""
        say(f"{shape.name}: reading, {when}")

        def bring(system: str) -> Cost:
            cost = self._crew.do(system, verb)
            self._check(system, state)
            return cost

        for system in systems:
            yield from self._try(system, f"{verb}/{when}", shape, 0, bring)
        for rep in range(self._terms.read_reps):
            there = [name for name in systems if name not in self._out]
            for query in self._queries:
                for system in there if rep % 2 == 0 else there[::-1]:
                    work = f"read:{query.name}/{when}"
                    answer = lambda s: self._answer(s, query, state)  # noqa: E731, B023 - called at once
                    yield from self._try(system, work, shape, rep, answer, state)
        for system in self._systems:
            yield from self._try(system, "tidy", shape, 0, lambda s: self._crew.do(s, "tidy"))

    def _answer(self, system: str, query: Query, state: _State) -> Cost:
        cost = self._crew.ask(system, query)
        if cost.value != state.answers[query.name]:
            raise WrongError(f"{query.sql}: {str(cost.value)[:300]}, not {str(state.answers[query.name])[:300]}")
        return cost

    def _check(self, system: str, state: _State) -> None:
        found = self._crew.ask(system, digest()).value
        if found != state.truth:
            raise WrongError(f"it shows {found} (rows, sum and xor of their hashes), not {state.truth}")

    def _try(
        self,
        system: str,
        work: str,
        shape: Shape | None,
        rep: int,
        action: Callable[[str], Cost],
        state: _State | None = None,
    ) -> Iterator[Record]:
        """Yield what an action cost, for works that are recorded; a system that fails takes no further part."""
        if system in self._out:
            return
        try:
            cost = action(system)
        except (FailedError, WrongError) as error:
            self._out.add(system)
            yield self._failed(system, work, shape, rep, error)
            return
        if state is not None:
            yield replace(
                self._blank(system, work, shape, rep),
                wall_s=round(cost.wall_s, 4),
                cpu_s=round(cost.cpu_s, 3),
                bytes_read=cost.bytes_read,
                bytes_written=cost.bytes_written,
                files_written=cost.files_written,
                landed_bytes=state.step.landed_bytes,
            )

    def _failed(self, system: str, work: str, shape: Shape | None, rep: int, error: Exception) -> Record:
        say(f"{system}: {work} failed: {error}")
        return replace(self._blank(system, work, shape, rep), ok=False, problem=str(error))

    def _blank(self, system: str, work: str, shape: Shape | None, rep: int) -> Record:
        label = self._terms.label(shape) if shape else ""
        return Record(work=work, shape=label, system=system, rows=self._terms.rows, rep=rep)


class WrongError(Exception):
    """A system shows something else than the truth."""


@contextmanager
def prepared(terms: Terms, work: Path) -> Iterator[Trial]:
    """Generate a trial's base in an empty directory, and lend the trial with a crew of its own."""
    say(f"generating {terms.rows} rows, key {terms.key}")
    history = History(work / "data", rows=terms.rows, key=terms.key, changes_of=terms.changes_of)
    place = work / "systems"
    crew = Crew(terms.systems, root=place, rows=terms.rows, key=terms.key, master=terms.master, memory=terms.memory)
    with crew:
        yield Trial(terms, crew, history)
