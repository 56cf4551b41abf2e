"""Which manifests go: those that are old, and that neither a history nor the state in force needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest.mock import patch

from schemasync.app import states
from schemasync.app.states import GENERATIONS, forget_states
from schemasync.core.manifest import StateId, empty
from schemasync.io.lake.arrow import ArrowLake

DAY = 86_400
LONG_AGO = 10 * DAY


def left(
    root: Path, *, in_force: tuple[int, int], young: Iterable[str] = (), days: Sequence[int] = (1, 2, 3)
) -> list[str]:
    """Write manifests of generations of these days, all but the ``young`` ones long ago; return which are left."""
    lake = ArrowLake(str(root))
    for generation, day in enumerate(days, start=1):
        for admission in range(5):
            name = str(StateId(generation=generation, admission=admission))
            lake.create(f"{GENERATIONS}/{name}.json", b"{}")
            written = LONG_AGO + 1 if name in young else day * DAY + generation
            os.utime(root / GENERATIONS / f"{name}.json", (written, written))
    (root / GENERATIONS / "notes.txt").touch()
    now = StateId(generation=in_force[0], admission=in_force[1])
    parent = StateId(generation=in_force[0], admission=in_force[1] - 1)
    manifest = empty("t", "s", schema_version=1, keyed=True).model_copy(update={"state": now, "parent": parent})
    forget_states(lake, manifest, before_ms=1000 * LONG_AGO)
    return sorted(path.stem for path in (root / GENERATIONS).glob("*.json"))


def test_the_first_two_of_a_generation_stay_and_what_is_young_in_force_or_after_it(tmp_path: Path) -> None:
    assert left(tmp_path, in_force=(3, 4), young={"000001-0004"}) == [
        *("000001", "000001-0001", "000001-0004"),
        *("000002", "000002-0001"),
        *("000003", "000003-0001", "000003-0003", "000003-0004"),
    ]


def test_what_was_begun_of_a_manifest_goes_once_it_is_old(tmp_path: Path) -> None:
    """A day more than the rest, as that may be configured to wait for nothing."""
    for name, written in (("_old.tmp", LONG_AGO - DAY), ("_young.tmp", LONG_AGO - DAY + 1)):
        begun = tmp_path / GENERATIONS / name
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.touch()
        os.utime(begun, (written, written))
    left(tmp_path, in_force=(3, 4))
    assert [path.name for path in (tmp_path / GENERATIONS).glob("*.tmp")] == ["_young.tmp"]


def test_of_one_day_the_first_generation_stays(tmp_path: Path) -> None:
    assert left(tmp_path, in_force=(5, 4), days=(1, 1, 2, 2, 9), young={"000004"}) == [
        *("000001", "000001-0001"),
        *("000003", "000003-0001", "000004"),
        *("000005", "000005-0001", "000005-0003", "000005-0004"),
    ]


def test_a_generation_that_goes_on_into_the_next_day_does_not_stand_for_that(tmp_path: Path) -> None:
    """Its own first states went with those of the day on which it began."""
    left(tmp_path, in_force=(5, 4), days=(1, 1, 2, 3, 9), young=[f"000002-{n:04}" for n in (2, 3, 4)])
    lake = ArrowLake(str(tmp_path))
    for path in sorted((tmp_path / GENERATIONS).glob("000002-*.json")):
        os.utime(path, (2 * DAY, 2 * DAY))
    state, parent = (StateId(generation=5, admission=n) for n in (4, 3))
    manifest = empty("t", "s", schema_version=1, keyed=True).model_copy(update={"state": state, "parent": parent})
    forget_states(lake, manifest, before_ms=1000 * LONG_AGO)
    assert {path.stem[:6] for path in (tmp_path / GENERATIONS).glob("*.json")} == {
        "000001",
        "000003",
        "000004",
        "000005",
    }


def test_no_state_after_the_one_in_force_goes(tmp_path: Path) -> None:
    """It may be another run's, about to be in force."""
    assert left(tmp_path, in_force=(2, 3)) == [
        *("000001", "000001-0001"),
        *("000002", "000002-0001", "000002-0002", "000002-0003", "000002-0004"),
        *("000003", *(f"000003-{n:04}" for n in range(1, 5))),
    ]


def test_what_was_left_for_years_goes_in_several_runs(tmp_path: Path) -> None:
    with patch.object(states, "MOST_FORGOTTEN", 2):
        assert len(left(tmp_path, in_force=(3, 4))) == 15 - 2
