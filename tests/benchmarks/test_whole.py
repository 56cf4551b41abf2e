"""A benchmark that takes hours goes on where it was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks import places, whole
from benchmarks.__main__ import _arguments, _terms
from benchmarks.changes import SHAPES
from benchmarks.records import Record, read_records, write_records
from benchmarks.runs import collected
from benchmarks.whole import PIECES, Run, measure, report

RIGHT = Record(work="compact", shape="100-rows", system="schemasync", rows=10, rep=0)
WRONG = Record(work="compact", shape="100-rows", system="delta", rows=10, rep=0, ok=False)


class Ran:
    """What was run, and what each wrote; ``interrupted``: the piece that never ends."""

    def __init__(self, *records: Record, interrupted: str = "") -> None:
        self.records = records
        self.interrupted = interrupted
        self.runs: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        self.runs.append(arguments)
        if arguments[0] == "benchmarks.report":
            return 0
        path = Path(arguments[-1])
        if path.stem == f"bench-{self.interrupted}":
            raise KeyboardInterrupt
        write_records(self.records, path)
        return int(any(not record.ok for record in self.records))

    @property
    def names(self) -> list[str]:
        return [Path(arguments[-1]).stem.removeprefix("bench-") for arguments in self.runs]


TIMED = [name for name, piece in PIECES.items() if piece.timed]


def everything(out: Path, run: Run, *, anew: bool = False) -> bool:
    return measure(list(PIECES.values()), out, anew=anew, run=run) and report(PIECES.values(), out, run, into=out)


def test_what_was_interrupted_goes_on_with_the_piece_at_hand(tmp_path: Path) -> None:
    first, second = Ran(RIGHT, interrupted="growth"), Ran(RIGHT)
    with pytest.raises(KeyboardInterrupt):
        everything(tmp_path, first)
    assert everything(tmp_path, second)
    names, before = list(PIECES), list(PIECES).index("growth")
    assert (first.names, second.names[:-1]) == (names[: before + 1], names[before:])
    timed = [str(tmp_path / f"bench-{name}.json") for name in TIMED]
    assert list(second.runs[-1]) == ["benchmarks.report", *timed, "--into", str(tmp_path)]
    third, fourth = Ran(RIGHT), Ran(RIGHT)
    assert everything(tmp_path, third)
    assert everything(tmp_path, fourth, anew=True)
    assert (len(third.runs), fourth.names[:-1]) == (1, names)


def test_what_was_wrong_is_measured_again_and_fails_until_it_is_right(tmp_path: Path) -> None:
    pieces = list(PIECES.values())[:1]
    assert not measure(pieces, tmp_path, anew=False, run=Ran(WRONG, RIGHT))
    assert measure(pieces, tmp_path, anew=False, run=Ran(RIGHT))


def test_a_limit_that_does_not_hold_is_measured_again_and_fails_until_it_holds(tmp_path: Path) -> None:
    pieces = [piece for piece in PIECES.values() if not piece.timed]
    first, second, third = Ran(WRONG), Ran(RIGHT), Ran(RIGHT)
    assert not measure(pieces, tmp_path, anew=False, run=first)
    assert measure(pieces, tmp_path, anew=False, run=second)
    assert measure(pieces, tmp_path, anew=False, run=third)
    names = ["sizes-bigint", "sizes-uuid", "memory"]
    assert (first.names, second.names, third.names) == (names, names, [])


def test_there_is_no_page_of_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(RIGHT)
    assert measure(list(PIECES.values())[1:], tmp_path, anew=False, run=ran)
    count = len(ran.runs)
    assert not report(PIECES.values(), tmp_path, ran, into=tmp_path)
    assert (len(ran.runs), next(iter(PIECES)) in capsys.readouterr().err) == (count, True)


def test_the_page_is_there_also_where_memory_or_sizes_are_beyond_their_limits(tmp_path: Path) -> None:
    timed, others = ([p for p in PIECES.values() if p.timed is there] for there in (True, False))
    assert measure(timed, tmp_path, anew=False, run=Ran(RIGHT))
    assert not measure(others, tmp_path, anew=False, run=Ran(WRONG))
    assert report(PIECES.values(), tmp_path, Ran(RIGHT), into=tmp_path)


def test_a_rehearsal_is_every_piece_with_few_rows_and_leaves_the_page_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(RIGHT)
    monkeypatch.setattr(whole, "python", ran)
    monkeypatch.setattr("sys.argv", ["whole", "--rehearse", "--out", str(tmp_path)])
    assert whole.main() == 0
    *pieces, page = ran.runs
    assert ran.names[:-1] == [f"rehearsal-{name}" for name in PIECES]
    assert list(page[-2:]) == ["--into", str(tmp_path)]
    terms = [_terms(_arguments().parse_args(given[1:])) for given in pieces if given[0] == "benchmarks"]
    assert {(t.rows, t.reps, t.read_reps) for t in terms} == {(20_000, 1, 1)}
    assert {t.mark for t in terms} == {"", "day"}


def test_every_shape_is_measured_with_both_keys_and_both_sizes() -> None:
    asked = {piece.arguments[2:] for piece in PIECES.values() if piece.arguments[0] == "benchmarks"}
    shapes = [arguments[0] for arguments in asked]
    assert sorted(shapes) == sorted([*SHAPES, *SHAPES, *SHAPES, "uniform-0.1%"])
    assert {name for name in PIECES if not name.replace(".", "").replace("-", "").isalnum()} == set()


def test_records_are_there_as_they_are_measured_and_a_file_once_all_are(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    seen: list[tuple[int, bool]] = []

    def measured(_: Path) -> Iterator[Record]:
        for _repetition in range(2):
            seen.append((len(read_records([out.with_suffix(".part")])), out.exists()))
            yield RIGHT

    def interrupted(work: Path) -> Iterator[Record]:
        yield from measured(work)
        raise KeyboardInterrupt

    with patch.object(places, "_HERE", tmp_path):
        with pytest.raises(SystemExit, match="130"):
            collected(interrupted, out)
        assert (read_records([out.with_suffix(".part")]), out.exists()) == ((RIGHT, RIGHT), False)
        seen.clear()
        assert collected(measured, out) == [RIGHT, RIGHT]
    assert (seen, read_records([out]), list(tmp_path.glob("*.part"))) == ([(0, False), (1, False)], (RIGHT, RIGHT), [])


def test_whoever_measures_what_another_does_leaves_its_figures_alone(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    def measured(_: Path) -> Iterator[Record]:
        yield RIGHT
        with pytest.raises(SystemExit, match="75"):
            collected(lambda _: iter(()), out)
        assert read_records([out.with_suffix(".part")]) == (RIGHT,)

    with patch.object(places, "_HERE", tmp_path):
        assert collected(measured, out) == [RIGHT]


def test_the_whole_stops_where_a_piece_is_measured_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken.py").write_text("raise SystemExit(75)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SystemExit, match="75"):
        whole.python(["taken"])
