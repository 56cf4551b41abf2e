from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from schemasync.errors import UsageError
from schemasync.io.templates import TemplateRenderer, template_directory

EVERY_TEMPLATE = sorted(path.name for path in template_directory().glob("*.sql.j2"))


@pytest.mark.parametrize("name", EVERY_TEMPLATE)
def test_every_template_can_be_overridden_from_a_users_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine: {{ table }}")
    stem, *dialect = name.removesuffix(".sql.j2").split(".")
    text = TemplateRenderer(tmp_path).render(stem, {"table": "t"}, dialect=dialect[0] if dialect else "spark")
    assert text == "mine: t"


def test_a_dialects_own_template_beats_the_common_one(tmp_path: Path) -> None:
    (tmp_path / "x.sql.j2").write_text("common")
    (tmp_path / "x.trino.sql.j2").write_text("trino")
    renderer = TemplateRenderer(tmp_path)
    assert [renderer.render("x", {}, dialect=d) for d in ("spark", "trino")] == ["common", "trino"]


def test_a_value_that_does_not_exist_is_named_with_template_and_fix(tmp_path: Path) -> None:
    (tmp_path / "drop_table.sql.j2").write_text("DROP TABLE {{ tabel }}")
    with pytest.raises(
        UsageError,
        match=r"drop_table.*'tabel' is undefined.*Compare it with the one that ships: .*/drop_table\.sql\.j2\.$",
    ):
        TemplateRenderer(tmp_path).render("drop_table", {"table": "t"}, dialect="spark")


def test_a_broken_template_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "drop_table.sql.j2").write_text("DROP\n{% if %}")
    renderer = TemplateRenderer(tmp_path)
    for ask in (partial(renderer.render, values={"table": "t"}), renderer.own_file):
        with pytest.raises(UsageError, match=r"drop_table\.sql\.j2:2: the template cannot be rendered"):
            ask("drop_table", dialect="spark")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ table + 1 }}", "can only concatenate str"),
        ("{{ 1 / 0 }}", "division by zero"),
        ('{% include "nope.sql.j2" %}', "nope"),
        ("{{ table() }}", "not callable"),
        ('{% extends "drop_table.sql.j2" %}', "recursion"),
    ],
)
def test_a_template_that_fails_like_any_code_is_named_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "drop_table.sql.j2").write_text(f"DROP\n{text}")
    with pytest.raises(UsageError, match=rf"/drop_table\.sql\.j2:\d: the template cannot be rendered.*{why}"):
        TemplateRenderer(tmp_path).render("drop_table", {"table": "t"}, dialect="spark")


def test_a_template_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "drop_table.sql.j2").write_bytes("DROP TABLE größe".encode("latin-1"))
    with pytest.raises(UsageError, match=r"/drop_table\.sql\.j2: the template is not UTF-8\. Save it as UTF-8\.$"):
        TemplateRenderer(tmp_path).render("drop_table", {"table": "t"}, dialect="spark")


def test_a_template_is_compared_with_the_one_of_its_dialect(tmp_path: Path) -> None:
    (tmp_path / "view.trino.sql.j2").write_text("{{ lost }}")
    with pytest.raises(UsageError, match=r"ships: .*/view\.trino\.sql\.j2\.$"):
        TemplateRenderer(tmp_path).render("view", {}, dialect="trino")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        TemplateRenderer(tmp_path / "nowhere")


def test_a_file_counts_from_when_it_is_put_into_the_folder_until_it_is_taken_out(tmp_path: Path) -> None:
    renderer, file = TemplateRenderer(tmp_path), tmp_path / "drop_table.sql.j2"
    texts = [renderer.render("drop_table", {"table": "t"}, dialect="spark")]
    for change in (lambda: file.write_text("mine"), file.unlink):
        change()
        texts.append(renderer.render("drop_table", {"table": "t"}, dialect="spark"))
    assert texts == ["DROP TABLE IF EXISTS t", "mine", "DROP TABLE IF EXISTS t"]


def test_a_users_own_templates_are_told_from_ours(tmp_path: Path) -> None:
    (tmp_path / "view.sql.j2").write_text("{{ body }}")
    renderer = TemplateRenderer(tmp_path)
    asked = [(name, dialect) for name in ("view", "view_body") for dialect in ("spark", "trino")]
    found = {(name, d): file for name, d in asked if (file := renderer.own_file(name, dialect=d))}
    assert found == {("view", "spark"): str(tmp_path / "view.sql.j2")}


def passed_over(folder: Path, **templates: str) -> tuple[str, ...]:
    """Return what is told of a folder with these templates."""
    for name, text in templates.items():
        (folder / f"{name.replace('__', '.')}.sql.j2").write_text(text)
    return TemplateRenderer(folder).passed_over()


def test_a_file_that_no_template_is_called_like_is_told_with_the_one_that_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / ".view_bodi.sql.j2").write_text("of an editor")
    (tmp_path / "old.sql.j2").mkdir()
    told = "is not used: no template of ours is called so, and no other one of yours includes it"
    assert passed_over(
        tmp_path, view="", view_body__hive="", view_bodi="", base__trno="", x="{% include 'x.sql.j2' %}"
    ) == (
        f"base.trno.sql.j2 {told}. Did you mean base.trino.sql.j2?",
        f"view_bodi.sql.j2 {told}. Did you mean view_body.sql.j2?",
        f"x.sql.j2 {told}.",
    )
    assert (TemplateRenderer().passed_over(), TemplateRenderer(template_directory()).passed_over()) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "{% include 'part.sql.j2' %}",
        "{% include './part.sql.j2' ignore missing %}",
        "{% include ['none.sql.j2', 'part.sql.j2'] %}",
        "{% include template_of('part') %}",
        "{% import 'part.sql.j2' as part %}",
        "{% from 'part.sql.j2' import one %}",
        "{% extends 'part.sql.j2' %}",
        "{% include 'between' %}",
        "{% include 'part' ~ '.sql.j2' %}",
        "{% include template_of(body) %}",
    ],
)
def test_a_file_that_another_template_includes_or_may_include_is_not_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "between").write_text("{% include 'part.sql.j2' %}")
    assert passed_over(tmp_path, view=text, part="") == ()


def test_a_broken_template_includes_nothing_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "table.sql.j2").write_bytes("größe".encode("latin-1"))
    (found,) = passed_over(tmp_path, view="{% include 'gone.sql.j2' %}", fold="{% if %}", part="")
    assert found.startswith("part.sql.j2 is not used")
