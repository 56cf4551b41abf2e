"""Results as text: complete, uncut, readable without colours."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from schemasync.app.planning import Plan, TablePlan
from schemasync.app.status import Status, status
from schemasync.cli.progress import PlainConsole, Teller
from schemasync.cli.rendering import plan_text, rows_text, status_text
from schemasync.core.changes import AddColumn, ReorderColumns, WidenColumn
from schemasync.core.config import Config
from schemasync.core.diagnostics import diagnose
from schemasync.core.encoding import Leaf
from schemasync.core.mapping import map_subjects
from schemasync.core.plan import Step
from schemasync.core.policy import Verdict
from schemasync.core.ports import Rows
from schemasync.core.schema import Column, Life
from schemasync.core.types import Primitive
from tests.app.still import Still, avro

TARGET = map_subjects(["student-value"], Config.model_validate({"registry": {"url": "file:/r"}})).targets[0]
LONG = "x" * 200


def text_of(lines: Iterable[str | Text]) -> str:
    return "\n".join(line if isinstance(line, str) else line.plain for line in lines)


def test_a_plan_shows_every_change_finding_and_step_with_its_whole_sql() -> None:
    column = Column(name="age", encoding=Leaf(type=Primitive.INT), nullable=True)
    plan = TablePlan(
        target=TARGET,
        verdict=Verdict.EVOLVE,
        current_version=1,
        desired_version=2,
        changes=(
            AddColumn(column=column, position=1),
            WidenColumn(
                life=Life(name="n", since=1),
                name="n",
                current=Leaf(type=Primitive.INT),
                desired=Leaf(type=Primitive.BIGINT),
            ),
            ReorderColumns(current=("a", "b"), desired=("b", "a")),
        ),
        diagnostics=(diagnose("SS108", "this may be a rename"),),
        steps=(Step(kind="add_columns", why="appended", sql=f"ALTER TABLE t\nADD COLUMNS ({LONG} int)"),),
    )
    assert text_of(plan_text(Plan(tables=(plan,)))) == (
        "lake.student  evolve  version 1 -> 2  student-value\n"
        "  + add column age  int\n"
        "  ~ widen column n  int -> bigint\n"
        '  ~ reorder columns  ["a", "b"] -> ["b", "a"]\n'
        "  SS108 warning  this may be a rename\n"
        "      fix: If it is, say so before applying: renames: {new: old}.\n"
        "  1. add columns: appended\n"
        "       ALTER TABLE t\n"
        f"       ADD COLUMNS ({LONG} int)\n"
        "\n"
        "1 table: 1 to change, 0 held, 0 with landed files"
    )


def test_a_table_that_is_held_by_a_landed_file_counts_as_held() -> None:
    plan = TablePlan(target=TARGET, verdict=Verdict.NONE, diagnostics=(diagnose("SS301", "a.parquet: no Parquet"),))
    assert text_of(plan_text(Plan(tables=(plan,)))).splitlines()[-1] == (
        "1 table: 0 to change, 1 held, 0 with landed files"
    )


def test_a_plan_names_the_subjects_that_it_left_out_for_their_names() -> None:
    assert text_of(plan_text(Plan(tables=(), skipped=("bank.transaction-value", "dbhistory.bank-value")))) == (
        "no tables by their names: bank.transaction-value, dbhistory.bank-value\n"
        "    fix: Where one of them holds rows, add an entry to tables: that names it exactly.\n"
        "0 tables: 0 to change, 0 held, 0 with landed files"
    )


def test_so_does_status() -> None:
    assert text_of(status_text(Status(tables=(), skipped=("bank.transaction-value",)))).splitlines()[0] == (
        "no tables by their names: bank.transaction-value"
    )


def test_since_when_a_table_is_held_is_said_as_far_as_somebody_noted_it(tmp_path: Path) -> None:
    still = Still(tmp_path)

    def held() -> str:
        lines = text_of(status_text(status(still.workspace))).splitlines()
        return next(line for line in lines if line.startswith("  held"))

    still.register(avro(), keys=("elsewhere",))
    new = held()
    still.put("student", properties={})
    foreign = held()
    assert (new, foreign) == (
        "  held       there is no table yet",
        "  held       since: not recorded, because it is not known to be a table of schemasync's",
    )


def test_since_when_a_table_of_ours_is_held_is_noted_by_the_next_apply(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register(avro(("a", "string")))
    still.settle()
    still.register(avro(("a", {"type": "array", "items": "int"})))
    later = "  held       since: not recorded yet (the next apply or watch does)"
    assert later in text_of(status_text(status(still.workspace))).splitlines()


def rows(*found: tuple[Any, ...], columns: tuple[str, ...] = ("id", "name")) -> Rows:
    return Rows(columns=columns, rows=found)


def test_rows_that_fit_are_a_table() -> None:
    shown = text_of(rows_text(rows((1, "a"), (22, None), (3, {"k": [True]})), width=80))
    assert shown == 'id  name\n--  -------------\n1   a\n22  NULL\n3   {"k": [true]}\n(3 rows)'


def test_rows_that_are_wider_than_the_terminal_are_blocks_and_nothing_is_cut() -> None:
    assert text_of(rows_text(rows((1, LONG)), width=80)) == f"row 1\n  id    1\n  name  {LONG}\n(1 row)"


def test_a_line_break_in_a_value_does_not_break_the_table() -> None:
    assert text_of(rows_text(rows((1, "a\nb\x1b[31m")), width=80)).splitlines()[2] == "1   a\\nb\\x1b[31m"


def test_no_rows_are_said_so() -> None:
    assert text_of(rows_text(rows(), width=80)) == "id  name\n--  ----\n(0 rows)"


def test_one_text_of_many_lines_is_shown_as_it_is() -> None:
    assert (
        text_of(rows_text(rows(("== Plan ==\n*(1) Scan\n",), columns=("plan",)), width=80)) == "== Plan ==\n*(1) Scan"
    )


def test_a_console_never_wraps_and_takes_no_brackets_for_markup() -> None:
    stream = io.StringIO()
    PlainConsole(stream).print(f"[bold]{LONG} :smile:")
    assert stream.getvalue() == f"[bold]{LONG} :smile:\n"


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    tell = Teller(stream, log_format="text", spinner=True)
    tell("", "starting Spark")
    tell("student", "folding")
    tell.stop()
    assert stream.getvalue() == "starting Spark\nstudent: folding\n"


class Full(io.StringIO):
    """A file on a full disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_where_progress_cannot_be_told_the_work_goes_on() -> None:
    stream = Full()
    Teller(stream, log_format="text", spinner=False)("student", "admitting 1 landed file")
    with pytest.raises(OSError, match="No space left"):
        stream.flush()


def test_a_stream_of_another_encoding_is_told_by_its_number_what_it_cannot_show() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    PlainConsole(stream).print("ü 学")
    stream.flush()
    assert raw.getvalue() == b"\xfc \\u5b66\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_spinner_on_a_terminal_and_leaves_nothing_behind() -> None:
    stream = Terminal()
    tell = Teller(stream, log_format="text", spinner=True)
    tell("student", "folding")
    tell.stop()
    tell.stop()
    assert ("student: folding" in stream.getvalue(), stream.getvalue().endswith("\x1b[2K")) == (True, True)
