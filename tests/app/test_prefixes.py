"""Every prefix of every run leaves a view that answers and is a fold, for generated chains of schemas, on real Spark.

The stories are those of `tests.app.test_laws`, with kills. After every call that changes what readers may see the view
is looked at; a killed run is done again, or the next version and its files come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import model
from tests.app.mortal import Fuse, KilledError, mortal
from tests.app.test_laws import FEW, MANY, MINUTE, TABLE, Debezium, Flat, Kind, Telling, carry_out, holds
from tests.lab import ALL_ROWS, Lab, NewLab
from tests.naming import WAYS as TOLD
from tests.naming import naming

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

SEEN = ("redefine_view", "set_view_text", "add_partitions", "drop_partitions", "replace_columns", "delete")
"""How the calls begin that change what a view shows or reads; the long run looks after every call."""

SOME = settings(FEW, max_examples=2)
"""The simplest story, killed in the middle of its runs, and one that is not simple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a view may show: these landed files under this version; version 0: there is no view yet."""

    version: int
    files: frozenset[int]


class Witness(Fuse):
    """Has the view looked at after every call that changes what it shows, and right before it blows."""

    def __init__(self, look: Callable[[str], None], after: int | None = None, *, everywhere: bool = False) -> None:
        super().__init__(after)
        self.look = look
        self.everywhere = everywhere

    def done(self, call: str) -> None:
        self.calls.append(call)
        if self.everywhere or call.startswith(SEEN) or len(self.calls) == self.after:
            self.look(f"after {self.calls}")
        self.check()


class Watched(Telling):
    """A story whose runs are watched at every step, and may be killed.

    ``may`` are the states that the view may be in: what was admitted never goes back, and a run brings one version.
    ``versions`` are those that the table or its view may have; killed runs leave several, and the next one shows what
    it admits under the one in force, before it brings its own (``left``). ``reach`` has by run, since the last that was
    done, how many files had landed: what a killed one put in force shows when the next one begins.
    """

    def __init__(self, lab: Lab, kind: Kind, story: model.Story, *, everywhere: bool = False) -> None:
        super().__init__(lab, kind, story)
        self.everywhere = everywhere
        self.versions = {0}
        self.left: set[int] = set()
        self.reach: set[int] = set()
        self.may = {State(version=0, files=frozenset())}

    def run(self, run: model.Run) -> None:
        if self.killed(run):
            self.lab.now_ms += MINUTE
            if not run.again:
                return
            self.killed(model.Run(what=run.what))
            assert self.calls(run.what) == [], f"{run.what} again"

    def killed(self, run: model.Run) -> bool:
        """Do a run under watch; tell whether it was killed."""
        self.may = {
            State(version=v, files=s.files) for v in self.versions for s in self.may if bool(v) == bool(s.version)
        }
        self.left = self.versions - {0} if len(self.versions) > 1 else set()
        self.versions.add(self.version)
        self.reach.add(len(self.landed))
        witness = Witness(self.look, run.killed, everywhere=self.everywhere)
        try:
            carry_out(mortal(self.lab.workspace, witness), run)
        except KilledError:
            return True
        self.may = {State(version=self.version, files=frozenset(range(len(self.landed))))}
        self.versions = {self.version}
        self.reach = {len(self.landed)}
        self.look(f"after all of {run.what}")
        return False

    def calls(self, what: str) -> list[str]:
        fuse = Fuse()
        carry_out(mortal(self.lab.workspace, fuse), model.Run(what=what))
        return fuse.calls

    def look(self, when: str) -> None:
        seen = self.seen()
        self.may = {state for state in self.next_states() if self.shown(state) == seen}
        assert self.may, f"{when} under version {self.version}: {seen}"

    def seen(self) -> str:
        if self.lab.workspace.metastore.table(self.lab.database, f"{TABLE}_view") is None:
            return repr(None)
        found = self.lab.workspace.sql.query(
            f"SELECT * FROM `{self.lab.database}`.`{TABLE}_view` ORDER BY id LIMIT {ALL_ROWS}"
        )
        return repr((found.columns, found.rows))

    def shown(self, state: State) -> str:
        if not state.version:
            return repr(None)
        events = (event for number in sorted(state.files) for event in self.landed[number].events)
        rows = model.fold(events, self.story.schemas, state.version)
        names = tuple(field.name for field in self.story.schemas[state.version - 1])
        return repr((names, tuple(tuple(row.values()) for row in rows)))

    def next_states(self) -> Iterable[State]:
        """Yield the states that may follow: another version, or more files, those that the table's version can read.

        The table's version is never later than the one that the view shows, so no file is, either.
        """
        for state in self.may:
            for version in {state.version, self.version, *self.left}:
                if any(self.landed[n].version > version for n in state.files):
                    continue
                for readable, reach in product(range(version + 1), self.reach):
                    more = (n for n, landing in enumerate(self.landed[:reach]) if landing.version <= readable)
                    yield State(version=version, files=state.files.union(more))


WAYS = {
    "one shard": {},
    "many shards": {"shard_size": "1KB"},
    "in tasks": {"shard_size": "1KB", "arrow_limit": "0"},
    "by SQL": {"kernel": "spark"},
}


def compacting(new_lab: NewLab, way: str) -> Lab:
    lab = new_lab()
    lab.settings = {"defaults": {"compaction": WAYS[way]}}
    return lab


@SOME
@given(story=model.stories(snapshots=True, kills=True, gathering=True))
def test_killed_anywhere_in_a_chain_of_schemas_the_view_is_a_fold_of_debezium_events(
    new_lab: NewLab, story: model.Story
) -> None:
    holds(Watched(compacting(new_lab, "many shards"), Debezium, story))


@SOME
@given(story=model.stories(snapshots=False, kills=True))
def test_killed_anywhere_in_a_chain_of_schemas_the_view_is_a_fold_of_flat_events(
    new_lab: NewLab, story: model.Story
) -> None:
    holds(Watched(compacting(new_lab, "by SQL"), Flat, story))


@SOME
@given(story=model.stories(snapshots=True, kills=True, gathering=True))
def test_killed_anywhere_while_tasks_of_spark_merge_the_view_is_a_fold(new_lab: NewLab, story: model.Story) -> None:
    with naming("aside"):
        holds(Watched(compacting(new_lab, "in tasks"), Debezium, story))


@pytest.mark.long
@pytest.mark.parametrize("kind", [Debezium, Flat])
@pytest.mark.parametrize("gathering", [False, True])
def test_killed_anywhere_in_many_more_chains_the_view_is_right_after_every_single_call(
    new_lab: NewLab, kind: Kind, gathering: bool
) -> None:
    stories = model.stories(snapshots=kind.snapshots, kills=True, gathering=gathering)

    @MANY
    @given(story=stories, way=st.sampled_from(sorted(WAYS)), told=st.sampled_from([*TOLD, "hashed"]))
    def law(story: model.Story, way: str, told: str) -> None:
        with naming(told):
            holds(Watched(compacting(new_lab, way), kind, story, everywhere=True))

    law()
