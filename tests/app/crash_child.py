"""One process that is killed in a compaction, or that looks at what was left: ``ROOT HOME die|resume STEP WHOM``.

Started by test_crash. ``die`` plays the scene "second base" on a metastore of its own and kills itself right after
STEP; ``resume`` looks, runs the compaction twice, and prints what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schemasync.app.compacting import compact
from tests.app.mortal import Fuse, mortal
from tests.app.test_crash import SCENES, calls_of, per_run_tables, second_base, visible
from tests.lab import Lab, own_spark


class StepFuse(Fuse):
    """Blows right after the last call of that name that the scene's run makes."""

    def __init__(self, step: str, whom: str) -> None:
        super().__init__()
        self.step, self.whom = step, whom
        self.folded = False

    def done(self, call: str) -> None:
        self.folded |= call == "merge"
        if self.folded and call == self.step:
            kill(self.whom)


def kill(whom: str) -> None:
    if whom == "group":
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def lab(root: Path, home: Path) -> Iterator[Lab]:
    root.mkdir(exist_ok=True)
    with own_spark(home, purpose="crash test") as session:
        yield Lab(root=root, session=session, database="crash")


def die(found: Lab, step: str, whom: str) -> None:
    second_base(found)
    compact(mortal(found.workspace, StepFuse(step, whom)))


def resume(found: Lab) -> None:
    """Go on as a process that knows nothing but the registry, and whose names are its own."""
    registered_again(found)
    scene = SCENES["second base"]
    found.now_ms += 60_000
    answer: dict[str, object] = {"at once": visible(found)}
    calls_of(found, scene)
    answer |= {"next run": visible(found), "left": sorted(per_run_tables(found)), "second run": calls_of(found, scene)}
    print(json.dumps(answer))  # noqa: T201


def registered_again(found: Lab) -> None:
    """Fill the registry, which lives in memory, as the scene does; what landed lies there already."""
    found.land = lambda *_, **__: None  # type: ignore[assignment]
    found.apply = found.compact = lambda *_: None  # type: ignore[assignment]
    second_base(found)
    del found.land, found.apply, found.compact
    for _ in range(1000):
        next(found._tokens)


if __name__ == "__main__":
    where, what, step, whom = (Path(sys.argv[1]), Path(sys.argv[2])), sys.argv[3], sys.argv[4], sys.argv[5]
    with lab(*where) as opened:
        if what == "die":
            die(opened, step, whom)
        resume(opened)
