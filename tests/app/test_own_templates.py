"""Templates of the user's own, through a table's life on real Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schemasync.io.templates import template_directory
from tests.lab import Lab, NewLab

pytestmark = pytest.mark.spark

TEXT: Any = ["null", "string"]


@pytest.fixture
def own(new_lab: NewLab) -> Callable[..., Lab]:
    """Return what makes a lab of one table, in which some templates are changed: name -> what it is now."""

    def made(**templates: Callable[[str], str]) -> Lab:
        lab = new_lab()
        (lab.root / "templates").mkdir()
        for name, changed in templates.items():
            shipped = (template_directory() / f"{name}.sql.j2").read_text()
            (lab.root / "templates" / f"{name}.sql.j2").write_text(changed(shipped))
        lab.settings = {"templates": str(lab.root / "templates")}
        lab.register("student", lab.flat("Student", ("a", TEXT)))
        land(lab, 1, a="first")
        return lab

    return made


def land(lab: Lab, *keys: int, ts_ms: int = 1, **row: str) -> None:
    lab.land("student", [{"id": key, **row, "op": "u", "ts_ms": ts_ms} for key in keys])


def errors(lab: Lab) -> list[str]:
    return [str(table.error) for table in lab.apply().tables if table.error is not None]


def test_comments_before_a_views_statement_may_name_the_view(own: Callable[..., Lab]) -> None:
    lab = own(view=lambda shipped: "-- {{ view }} is kept by a program\n" + shipped)
    assert errors(lab) == []
    lab.register("student", lab.flat("Student", ("a", TEXT), ("b", TEXT)))
    land(lab, 2, a="second", b="new")
    assert errors(lab) == []
    assert lab.rows("student", "id") == [{"id": 1, "a": "first", "b": None}, {"id": 2, "a": "second", "b": "new"}]
    assert [table.steps for table in lab.plan().tables] == [()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ";\n"),
        ("-- our view\n\n/* of /* all */ */", ""),
        ("", "\n-- done"),
        ("/* v1 */\n", ";\n-- end\n;/* v2 */\n"),
    ],
)
def test_what_stands_before_and_after_a_views_select_is_no_part_of_the_view(
    own: Callable[..., Lab], before: str, after: str
) -> None:
    lab = own(view_body=lambda shipped: before + shipped.rstrip() + after)
    assert errors(lab) == []
    assert [table.steps for table in lab.plan().tables] == [()]
    land(lab, 2, a="second")
    assert errors(lab) == []
    assert lab.rows("student", "id") == [{"id": 1, "a": "first"}, {"id": 2, "a": "second"}]
    assert [table.steps for table in lab.plan().tables] == [()]


def test_a_state_whose_select_is_no_sql_is_not_shown_until_it_is(own: Callable[..., Lab]) -> None:
    lab = own(
        view_body=lambda shipped: shipped.replace("{% elif ahead", "{% elif ahead %}NO SQL {{ segments }}{% elif ahead")
    )
    lab.compact()
    land(lab, 1, 2, ts_ms=2, a="second")
    for _ in range(2):
        (error,) = errors(lab)
        assert "PARSE_SYNTAX_ERROR" in error
        assert lab.rows("student", "id") == [{"id": 1, "a": "first"}]
    (lab.root / "templates" / "view_body.sql.j2").unlink()
    assert errors(lab) == []
    assert lab.rows("student", "id") == [{"id": 1, "a": "second"}, {"id": 2, "a": "second"}]
    assert [table.steps for table in lab.plan().tables] == [()]


def test_a_select_that_would_read_superseded_segments_is_refused(own: Callable[..., Lab]) -> None:
    # As releases had it whose views read the whole table: after a compaction, replaced rows and deleted ones counted.
    lab = own(view_body=lambda shipped: shipped)
    lab.compact()
    land(lab, 1, ts_ms=2, a="second")
    body = lab.root / "templates" / "view_body.sql.j2"
    shipped = body.read_text()
    body.write_text(shipped.replace("segments ~ ", "'TRUE' ~ ").replace("{% elif ahead", "{% elif false"))
    body.write_text(body.read_text().replace("{% if segments %}", "{% if false %}"))
    (error,) = errors(lab)
    assert error == (
        "templates: view_body: the template reads other segments than those of the state: its SELECT does not name "
        "base_s00000001. Compare it with the one that ships: conditions such as {{ segments }} say which rows count."
    )
    assert lab.rows("student", "id") == [{"id": 1, "a": "first"}]
    assert [d.code for table in lab.plan().tables for d in table.diagnostics] == ["SS217"]
    body.write_text(shipped)
    assert errors(lab) == []
    assert lab.rows("student", "id") == [{"id": 1, "a": "second"}]


def test_a_view_that_shows_some_rows_of_its_select_is_refused(own: Callable[..., Lab]) -> None:
    # As the text of the next state it would be the bare SELECT, and show all rows.
    lab = own(view=lambda shipped: shipped)
    assert errors(lab) == []
    file = lab.root / "templates" / "view.sql.j2"
    shipped = file.read_text()
    file.write_text(shipped.replace("{{ body }}", "SELECT * FROM (\n{{ body }}\n) v WHERE a = 'first'"))
    land(lab, 2, a="second")
    (error,) = errors(lab)
    assert error == (
        f"{file}: the template has something around {{{{ body }}}}, or another text in its place: the view of the next "
        "state would be without that, as its text alone is replaced. Let the statement end with AS {{ body }}; where "
        "only some rows are to show, make a view of your own that reads this one."
    )
    assert lab.rows("student", "id") == [{"id": 1, "a": "first"}]
    assert [d.code for table in lab.plan().tables for d in table.diagnostics] == ["SS217"]
    file.write_text(shipped.replace("{{ body }}", "-- all rows\n{{ body }}"))
    assert errors(lab) == []
    assert lab.rows("student", "id") == [{"id": 1, "a": "first"}, {"id": 2, "a": "second"}]
    assert [table.steps for table in lab.plan().tables] == [()]


def test_statements_may_end_with_a_semicolon_and_a_comment(own: Callable[..., Lab]) -> None:
    names = ("create_database", "table", "view", "fold", "add_columns", "set_properties")
    lab = own(**dict.fromkeys(names, lambda shipped: shipped.rstrip() + ";\n-- done\n"))
    assert errors(lab) == []
    lab.register("student", lab.flat("Student", ("a", TEXT), ("b", TEXT)))
    land(lab, 2, a="second", b="new")
    assert [table.error for table in lab.compact().tables] == [None]
    assert lab.rows("student", "id") == [{"id": 1, "a": "first", "b": None}, {"id": 2, "a": "second", "b": "new"}]
    assert [table.steps for table in lab.plan().tables] == [()]


def test_a_select_that_reads_all_segments_is_refused_before_there_is_a_table(own: Callable[..., Lab]) -> None:
    lab = own(view_body=lambda shipped: shipped.replace("{% if segments %}", "{% if false %}"))
    (table,) = lab.plan().tables
    assert ([d.code for d in table.diagnostics], table.steps) == (["SS217"], ())
    assert "its SELECT does not name FALSE" in str(table.error)
