"""Killed after any of its writing calls, a run leaves a view that is right at once, and right after the next run.

In the gate a kill is an exception that nothing catches, at the calls that publish; the long run dies after every
call, and really dies (SIGKILL) at some.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from schemasync.app.applying import ApplyResult, apply
from schemasync.app.compacting import Compacted, CompactResult, compact
from schemasync.app.workspace import Workspace
from schemasync.core.layering import Mode
from schemasync.errors import SchemasyncError
from tests.app.mortal import Fuse, KilledError, mortal, raise_killed
from tests.children import SHORT_LIVED
from tests.lab import DAY, HOUR, Lab, NewLab, event
from tests.naming import naming

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

TOPIC, TABLE = "shop.student", "shop_student"
MINUTE = HOUR // 60
PLACEHOLDER = "__debezium_unavailable_value"
Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What goes before, the run that is killed, and the rows before and after it (None: there is no view yet).

    ``between`` are rows that a reader may see of a half-done run besides those.
    """

    prepare: Callable[[Lab], None]
    run: Callable[[Workspace], ApplyResult | CompactResult]
    old: Rows | None
    new: Rows
    settings: dict[str, Any] = field(default_factory=dict)
    between: tuple[Rows, ...] = ()


def created(lab: Lab) -> None:
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"]), ("b", ["null", "string"])))
    lab.land(TOPIC, [event(1, 1, "c", a=1, b="x"), event(2, 1, "c", a=2, b="y"), event(3, 1, "c", a=3, b="z")])


def evolved(lab: Lab) -> None:
    """Version 2 widens ``a``, drops ``b`` and adds ``e`` NOT NULL with a default; files of both versions wait."""
    created(lab)
    lab.apply()
    lab.land(TOPIC, [event(2, 2, "u", a=20, b="yy")], hour="2026112001")
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "long"]), ("e", {"type": "int", "default": 42})))
    lab.land(TOPIC, [event(1, 3, "d", a=None, e=0), event(4, 3, "c", a=2**40, e=7)], hour="2026112001")


def first_base(lab: Lab) -> None:
    created(lab)
    lab.apply()
    lab.now_ms += MINUTE
    lab.land(TOPIC, [event(1, 2, "u", a=10, b="x"), event(3, 2, "d", a=None, b=None)], hour="2026112001")


def second_base(lab: Lab) -> None:
    evolved(lab)
    lab.compact()
    lab.now_ms += MINUTE
    lab.land(TOPIC, [event(1, 2, "u", a=10, e=1), event(2, 9, "u", a=5, e=1)], hour="2026112001", name="late.parquet")


def superfluous(lab: Lab) -> None:
    """A base of version 2 beside folded deltas of both versions, and every grace is over."""
    evolved(lab)
    lab.compact()
    lab.now_ms += 8 * DAY


def unsent(lab: Lab) -> None:
    """The first value that the source does not send: the view must carry it before a reader can meet the row."""
    created(lab)
    lab.apply()
    lab.land(TOPIC, [event(1, 2, "u", a=10, b=PLACEHOLDER)], hour="2026112001")


def unsent_base(lab: Lab) -> None:
    unsent(lab)
    lab.apply()
    lab.now_ms += MINUTE


def retyped(lab: Lab) -> None:
    """Version 2 makes a text of ``a``; a base, and files of both versions that wait."""
    created(lab)
    lab.compact()
    lab.now_ms += MINUTE
    lab.land(TOPIC, [event(2, 2, "u", a=20, b="y")], hour="2026112001")
    lab.register(TOPIC, lab.flat("S", ("a", ["null", "string"]), ("b", ["null", "string"])))
    lab.land(TOPIC, [event(4, 3, "c", a="four", b="w")], hour="2026112001")


SMALL = {"compaction": {"shard_size": "1KB"}}
BY_SQL = {"compaction": {"kernel": "spark", "shard_size": "1KB"}}
IN_TASKS = {"compaction": {"arrow_limit": "0", "shard_size": "1KB"}}


def one_shard(lab: Lab) -> None:
    """A base in one shard, which is too large for the settings from now on."""
    lab.settings = {}
    created(lab)
    lab.compact()
    lab.now_ms += MINUTE
    lab.land(TOPIC, [event(1, 2, "u", a=10, b="x"), event(5, 2, "c", a=5, b=None)], hour="2026112001")
    lab.settings = {"defaults": SMALL}
    lab.apply()
    lab.now_ms += MINUTE


def many_shards(lab: Lab) -> None:
    """A base in several shards, which are small for the settings from now on; changes fall into all of them."""
    one_shard(lab)
    lab.compact()
    lab.now_ms += MINUTE
    lab.settings = {}
    changes = [event(1, 3, "d", a=None, b=None), event(3, 3, a=30, b="z"), event(5, 3, a=50, b=None)]
    lab.land(TOPIC, changes, hour="2026112002")
    lab.apply()
    lab.now_ms += MINUTE


def gathering(lab: Lab) -> None:
    """A base, and changes of three admissions beside it, one of them not admitted yet."""
    created(lab)
    lab.compact()
    for hour, key in ((1, 1), (2, 5), (3, 3)):
        lab.now_ms += MINUTE
        lab.land(TOPIC, [event(key, hour + 1, "u", a=10 * hour, b="x")], hour=f"202611200{hour}")
        if hour < 3:
            lab.apply()


def merge(workspace: Workspace) -> CompactResult:
    return compact(workspace, mode=Mode.MINOR)


def rekeyed(lab: Lab) -> None:
    """``line`` joins the key; a base, a folded delta beside it, a new delta, and a file that waits."""
    lab.register(TOPIC, lab.flat("S", ("a", "int"), ("line", "long")))
    lab.land(TOPIC, [event(1, 1, "c", a=1, line=7), event(2, 1, "c", a=2, line=0)])
    lab.compact()
    lab.land(TOPIC, [event(1, 2, "u", a=10, line=0)], hour="2026112001")
    lab.now_ms += MINUTE
    lab.compact()
    lab.land(TOPIC, [event(2, 2, "u", a=20, line=0)], hour="2026112002")
    lab.now_ms += MINUTE
    lab.apply()
    fields = [{"name": name, "type": "long"} for name in ("id", "line")]
    lab.registry.register(f"{TOPIC}-key", json.dumps({"type": "record", "name": "Key", "fields": fields}))
    lab.land(TOPIC, [event(3, 3, "c", a=3, line=1)], hour="2026112003")
    lab.now_ms += MINUTE


def row(key: int, **rest: Any) -> dict[str, Any]:
    return {"id": key} | rest


FIRST = [row(1, a=1, b="x"), row(2, a=2, b="y"), row(3, a=3, b="z")]
EVOLVED = [row(2, a=20, e=42), row(3, a=3, e=42), row(4, a=2**40, e=7)]
HALF = [row(r["id"], a=r["a"], e=42) for r in FIRST]
"""The old rows under the new schema."""
SECOND = [row(2, a=5, e=1), row(3, a=3, e=42), row(4, a=2**40, e=7)]

GATHERING = [row(1, a=10, b="x"), *FIRST[1:], row(5, a=20, b="x")]
GATHERED = [row(1, a=10, b="x"), FIRST[1], row(3, a=30, b="x"), row(5, a=20, b="x")]
SPLIT = [row(1, a=10, b="x"), row(2, a=2, b="y"), row(3, a=3, b="z"), row(5, a=5, b=None)]
JOINED = [row(2, a=2, b="y"), row(3, a=30, b="z"), row(5, a=50, b=None)]
CARRIED = [row(1, a=10, b="x"), *FIRST[1:]]

RETYPED = [row(1, a="1", b="x"), row(2, a="20", b="y"), row(3, a="3", b="z"), row(4, a="four", b="w")]
ADMITTED_FIRST = [FIRST[0], row(2, a=20, b="y"), FIRST[2]]
REKEYED = [row(1, a=10, line=0), row(2, a=20, line=0), row(3, a=3, line=1)]

SCENES = {
    "create and admit": Scene(prepare=created, run=apply, old=None, new=FIRST),
    "evolve and admit": Scene(prepare=evolved, run=apply, old=FIRST, new=EVOLVED, between=(HALF,)),
    "first base": Scene(prepare=first_base, run=compact, old=FIRST, new=[row(1, a=10, b="x"), row(2, a=2, b="y")]),
    "evolve and compact": Scene(prepare=evolved, run=compact, old=FIRST, new=EVOLVED, between=(HALF,)),
    "second base": Scene(prepare=second_base, run=compact, old=EVOLVED, new=SECOND),
    "merge": Scene(prepare=gathering, run=merge, old=GATHERING, new=GATHERED),
    "second base by SQL": Scene(prepare=second_base, run=compact, old=EVOLVED, new=SECOND, settings=BY_SQL),
    "merge by SQL": Scene(prepare=gathering, run=merge, old=GATHERING, new=GATHERED, settings=BY_SQL),
    "second base in tasks": Scene(prepare=second_base, run=compact, old=EVOLVED, new=SECOND, settings=IN_TASKS),
    "merge in tasks": Scene(prepare=gathering, run=merge, old=GATHERING, new=GATHERED, settings=IN_TASKS),
    "split": Scene(prepare=one_shard, run=compact, old=FIRST, new=SPLIT, settings=SMALL),
    "join": Scene(prepare=many_shards, run=compact, old=SPLIT, new=JOINED),
    "carry": Scene(prepare=unsent, run=apply, old=FIRST, new=CARRIED),
    "fold what is carried": Scene(prepare=unsent_base, run=compact, old=CARRIED, new=CARRIED),
    "migrate": Scene(prepare=retyped, run=apply, old=FIRST, new=RETYPED, between=(ADMITTED_FIRST, RETYPED[:3])),
    "rebuild": Scene(
        prepare=rekeyed, run=apply, old=REKEYED[:2], new=REKEYED, settings={"policies": {"key": "rebuild"}}
    ),
    "retire": Scene(
        prepare=superfluous,
        run=compact,
        old=EVOLVED,
        new=EVOLVED,
        settings={"compaction": {"on_fold": "archive"}},
    ),
}

PUBLISHING = (
    "create _schemasync/generations",
    "swap_properties",
    "add_partitions",
    "move_partitions",
    "drop_partitions",
    "redefine_view",
    "set_view_text",
    "CREATE VIEW",
    "CREATE OR REPLACE",
)
"""Calls after which readers may see something else; before such a call is after the one in front of it."""


def set_up(new_lab: NewLab, scene: Scene) -> Lab:
    lab = new_lab()
    lab.settings = {"defaults": scene.settings}
    scene.prepare(lab)
    return lab


def failures(done: ApplyResult | CompactResult) -> list[SchemasyncError]:
    """Return what went wrong with tables."""
    found = [table.failure if isinstance(table, Compacted) else table.error for table in done.tables]
    return [error for error in found if error is not None]


def calls_of(lab: Lab, scene: Scene) -> list[str]:
    """Return the writing calls of one whole run, in which nothing goes wrong."""
    fuse = Fuse()
    assert failures(scene.run(mortal(lab.workspace, fuse))) == []
    return fuse.calls


def visible(lab: Lab) -> Rows | None:
    view = lab.workspace.metastore.table(lab.database, f"{TABLE}_view")
    return lab.rows(TABLE) if view else None


def allowed(scene: Scene) -> list[Rows | None]:
    """What a reader may see of a half-done run."""
    empty: list[Rows | None] = [[]] if scene.old is None else []
    return [scene.old, scene.new, *scene.between, *empty]


def per_run_tables(lab: Lab) -> set[str]:
    return set(lab.workspace.metastore.names(lab.database, "*")) - {TABLE, f"{TABLE}_view", f"{TABLE}_history"}


def dies_well(lab: Lab, scene: Scene, after: int) -> None:
    fuse = Fuse(after)
    with pytest.raises(KilledError):
        scene.run(mortal(lab.workspace, fuse))
    where = f"killed after {fuse.calls}"
    assert visible(lab) in allowed(scene), where
    lab.now_ms += MINUTE
    failed = failures(scene.run(lab.workspace))
    assert (failed, visible(lab), per_run_tables(lab)) == ([], scene.new, set()), where
    assert calls_of(lab, scene) == [], where


def publishing_points(calls: Sequence[str]) -> list[int]:
    """Return after how many calls a run is killed: right before and right after every one that publishes.

    A compaction begins with an admission; that is a scene of its own.
    """
    first = next((n for n, call in enumerate(calls) if call in {"run", "merge"}), 0)
    places = [n for n, call in enumerate(calls) if call in PUBLISHING and n >= first]
    return sorted({after for n in places for after in (n, n + 1) if after < len(calls)})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "create and admit",
            "evolve and admit",
            "migrate",
            "rebuild",
            "carry",
            "second base",
            "second base by SQL",
            "second base in tasks",
            "retire",
            "merge",
            "merge by SQL",
            "split",
            "join",
        )
    ],
)
def test_killed_before_and_after_every_publishing_step_the_view_is_right(new_lab: NewLab, name: str) -> None:
    scene = SCENES[name]
    lab = set_up(new_lab, scene)
    again = lab.kept()
    calls = calls_of(lab, scene)
    points = publishing_points(calls)
    assert points, calls
    for after in points:
        again()
        dies_well(lab, scene, after)


@pytest.mark.parametrize(
    ("name", "call", "where"),
    [
        ("create and admit", "admit", "delta"),
        ("second base", "merge", "base"),
        ("merge", "merge", "delta"),
        ("merge", "write_words", "delta"),
    ],
)
def test_files_of_killed_runs_go_once_what_was_published_instead_is_vacuumed(
    new_lab: NewLab, name: str, call: str, where: str
) -> None:
    scene = SCENES[name]
    lab = set_up(new_lab, scene)
    left: set[str] = set()
    for _ in range(2):
        with naming("aside" if call == "write_words" else "listed"), pytest.raises(KilledError):
            scene.run(mortal(lab.workspace, After(call)))
        left |= {path for path in lab.strangers() if path.startswith(f"{where}/")}
    # The files are as old as the machine's clock says.
    lab.now_ms = max(lab.now_ms, time.time_ns() // 10**6)
    scene.run(lab.workspace)
    rows = visible(lab)
    lab.land(TOPIC, [event(9, 100, "d", a=None, **({"e": 0} if name == "second base" else {"b": None}))])
    for later in (0, MINUTE, 8 * DAY):
        lab.now_ms += later
        assert [t.failure for t in compact(lab.workspace, mode=Mode.MAJOR).tables] == [None]
    assert (len(left) > 1, lab.strangers(), rows, visible(lab)) == (True, [], scene.new, scene.new)


def test_what_a_killed_run_left_is_put_in_force_before_the_next_version_decides_on_the_view(
    new_lab: NewLab,
) -> None:
    """The view of version 2 must know of the rows of version 1 that only the killed run's manifest names."""
    lab = new_lab()
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.apply()
    lab.land(TOPIC, [event(1, 1, a=1)])
    with pytest.raises(KilledError):
        apply(mortal(lab.workspace, Fuse(2)))
    lab.register(TOPIC, lab.flat("S", ("a", "int"), ("e", {"type": "int", "default": 42})))
    lab.apply()
    assert lab.rows(TABLE) == [row(1, a=1, e=42)]


WRITTEN = "create _schemasync/generations"


@pytest.mark.parametrize("evolves", [False, True])
@pytest.mark.parametrize(
    "kills", [(WRITTEN,), ("swap_properties",), ("add_partitions",), (WRITTEN, WRITTEN, "swap_properties")]
)
def test_what_was_superseded_stays_for_the_reader_grace_after_a_later_run_has_shown_that(
    new_lab: NewLab, kills: tuple[str, ...], evolves: bool
) -> None:
    """Until a later run shows it, the view names what it superseded: readers may have resolved it a moment ago."""
    lab = new_lab()
    created(lab)
    lab.compact()
    lab.land(TOPIC, [event(1, 2, a=10, b="x")], hour="2026112001")
    for call in kills:
        with pytest.raises(KilledError):
            compact(mortal(lab.workspace, After(call)), mode=Mode.MAJOR)
        lab.now_ms += 2 * HOUR
    if evolves:
        lab.register(TOPIC, lab.flat("S", ("a", ["null", "int"]), ("b", ["null", "string"]), ("c", ["null", "int"])))
    seen = []
    for later in (0, HOUR - 1, 1):
        lab.now_ms += later
        assert failures(lab.compact()) == []
        seen.append("base_s00000001" in lab.workspace.metastore.partitions(lab.database, TABLE))
    assert seen == [True, True, False]


class After(Fuse):
    """Blows once the first of these calls is done."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self.call = call

    def done(self, call: str) -> None:
        if call == self.call:
            self.after = 0
        super().done(call)


class AfterView(Fuse):
    """Blows once the view was replaced: its version is not in force then."""

    def done(self, call: str) -> None:
        if call in {"redefine_view", "set_view_text"}:
            raise_killed()


class Looking(Fuse):
    """Notes what readers see after every call."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self.lab = lab
        self.seen: list[Rows | None] = []

    def done(self, call: str) -> None:
        super().done(call)
        shown = visible(self.lab)
        if self.seen[-1:] != [shown]:
            self.seen.append(shown)


def killed_after_the_view(lab: Lab) -> None:
    with pytest.raises(KilledError):
        apply(mortal(lab.workspace, AfterView()))


@pytest.mark.parametrize("third", [False, True])
def test_the_first_rows_of_a_version_are_read_right_though_a_killed_run_left_the_view_of_the_next(
    new_lab: NewLab, third: bool
) -> None:
    """The view of version 2 was made when there were no rows; those of version 1 that come now are converted."""
    lab = new_lab()
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "string")))
    killed_after_the_view(lab)
    lab.land(TOPIC, [event(1, 1, a=5)], version=1)
    if third:
        lab.register(TOPIC, lab.flat("S", ("a", "string"), ("b", ["null", "int"])))
    fuse = Looking(lab)
    apply(mortal(lab.workspace, fuse))
    assert fuse.seen == [[], [row(1, a=5)], [row(1, a="5", b=None) if third else row(1, a="5")]]


def test_a_fold_is_read_right_though_a_killed_run_left_the_view_of_a_version_that_never_came(
    new_lab: NewLab,
) -> None:
    """Version 3 is killed, version 4 is held: rows of version 1 become rows of version 2, of which there were none."""
    lab = new_lab()
    lab.register(TOPIC, lab.flat("S", ("a", "int")))
    lab.land(TOPIC, [event(1, 1, a=5)])
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "long")))
    lab.apply()
    lab.register(TOPIC, lab.flat("S", ("a", "string")))
    killed_after_the_view(lab)
    lab.register(TOPIC, lab.flat("S", ("a", {"type": {"type": "array", "items": "int"}})))
    fuse = Looking(lab)
    compact(mortal(lab.workspace, fuse))
    assert fuse.seen == [[row(1, a="5")], [row(1, a=5)]]


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_killed_after_any_writing_call_the_view_is_right(new_lab: NewLab, name: str) -> None:
    scene = SCENES[name]
    lab = set_up(new_lab, scene)
    again = lab.kept()
    for after in range(len(calls_of(lab, scene))):
        again()
        dies_well(lab, scene, after)


@pytest.mark.long
@pytest.mark.parametrize("whom", ["group", "process"])
@pytest.mark.parametrize("step", ["merge", "create _schemasync/generations", "swap_properties"])
def test_really_killed_in_a_compaction_the_view_is_right(tmp_path: Path, step: str, whom: str) -> None:
    """SIGKILL, to Python and its JVM or to Python alone; another process looks, and then goes on."""
    root, home = str(tmp_path / "lab"), str(tmp_path / "home")
    killed = child(root, home, "die", step, whom)
    resumed = child(root, home, "resume", step, whom)
    assert (killed.returncode, resumed.returncode) == (-signal.SIGKILL, 0), (
        killed.stderr[-3000:] + resumed.stderr[-3000:]
    )
    answer = json.loads(resumed.stdout.splitlines()[-1])
    assert answer["at once"] in (SCENES["second base"].old, SCENES["second base"].new)
    assert (answer["next run"], answer["left"], answer["second run"]) == (SCENES["second base"].new, [], [])


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.app.crash_child", *arguments],
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **SHORT_LIVED},
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
    )
