"""DDL and the compaction's SQL through Jinja2: layout only, values arrive decided and quoted.

The templates ship with the package; a user's folder may override any of them by file name. A template that names a
value that does not exist fails loudly (StrictUndefined), and says which template and which line.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2.nodes import Call, Expr, Extends, FromImport, Import, Impossible, Include, Name

from schemasync.core.config import nearest
from schemasync.core.names import Dialect
from schemasync.errors import SchemasyncError, UsageError

_PACKAGE = Path(__file__).resolve().parent.parent / "templates"
_END: Final = ".sql.j2"
_CHECKOUT = Path(__file__).resolve().parent.parent.parent / "templates"


def template_directory() -> Path:
    """Return where the shipped templates are: inside the wheel, or at the top of a checkout."""
    return _PACKAGE if _PACKAGE.is_dir() else _CHECKOUT


class _Loader(jinja2.FileSystemLoader):
    """Sees a file that comes to lie before another, and names one that is not UTF-8: Jinja's own does neither."""

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        try:
            source, file, is_unchanged = super().get_source(environment, template)
        except UnicodeDecodeError as error:
            where = str(self._first(template))
            raise UsageError("the template is not UTF-8", where=where, fix="Save it as UTF-8.") from error
        first = self._first(template)
        # Processes that began before and after it was put there would take turns to replace each other's views.
        return source, file, lambda: self._first(template) == first and is_unchanged is not None and is_unchanged()

    def _first(self, template: str) -> Path | None:
        return next((file for folder in self.searchpath if (file := Path(folder) / template).is_file()), None)


class TemplateRenderer:
    """Renders templates by name, the user's before ours."""

    def __init__(self, overrides: Path | None = None) -> None:
        """Look in ``overrides`` first.

        Raises:
            UsageError: there is no such folder.
        """
        if overrides is not None and not overrides.is_dir():
            raise UsageError("there is no such folder", where=f"templates: {overrides}", fix="Create it, or remove it.")
        self._overrides = overrides
        folders = [str(overrides)] if overrides else []
        self._environment = jinja2.Environment(
            loader=_Loader([*folders, str(template_directory())]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701 - this writes SQL; every value is quoted for its dialect before it comes here
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
        )

    def passed_over(self) -> tuple[str, ...]:
        """Tell of each ``*.sql.j2`` in the user's folder that nothing uses: its name may be mistyped.

        It is called like none that we ask for, and no other template includes it, as far as that can be told.
        """
        if self._overrides is None:
            return ()
        files = self._overrides.glob(f"*{_END}")
        there = {file.name for file in files if file.is_file() and not file.name.startswith(".")}
        known = _known()
        if there <= known:
            return ()
        included = self._included(there)
        meant = [name.removesuffix(_END) for name in sorted(known)]
        strays = () if included is None else sorted(there - known - included)
        return tuple(
            f"{name} is not used: no template of ours is called so, and no other one of yours includes it."
            + (f" Did you mean {close}{_END}?" if (close := nearest(name.removesuffix(_END), meant)) else "")
            for name in strays
        )

    def _included(self, names: Collection[str]) -> set[str] | None:
        """Return what these templates include, and what that does; None where one says only when it is rendered."""
        left, included = list(names), set[str]()
        while left:
            name = left.pop()
            found = self._includes(name)
            if found is None:
                return None
            found -= {name}
            left += found - included - set(names)
            included |= found
        return included

    def _includes(self, name: str) -> set[str] | None:
        try:
            tree = self._environment.parse(_source(self._environment, name))
        except (jinja2.TemplateError, UsageError, OSError):
            return set()  # whoever renders it says what is wrong
        nodes: Iterator[Any] = tree.find_all((Include, Import, FromImport, Extends))
        try:
            return {_path(one) for node in nodes for one in _named(node.template)}
        except Impossible:
            return None

    def own_file(self, name: str, *, dialect: str) -> str | None:
        """Return the file of a template that is the user's own, None where the one that ships is used.

        Raises:
            UsageError: it is broken.
        """
        with _translated(name, dialect):
            chosen = self._environment.select_template(_candidates(name, dialect))
        file = str(chosen.filename)
        return None if Path(file).parent == template_directory() else file

    def render(self, name: str, values: Mapping[str, Any], *, dialect: str) -> str:
        """Return the text of ``name.DIALECT.sql.j2`` where there is one, else of ``name.sql.j2``.

        Raises:
            UsageError: a template is broken, or names a value that does not exist.
        """
        with _translated(name, dialect):
            chosen = self._environment.select_template(_candidates(name, dialect))
            return chosen.render(values, template_of=lambda other: _candidates(other, dialect)).strip()


def _known() -> frozenset[str]:
    """Return the names of all files that a user's folder may have in place of ours."""
    names = {file.name.split(".", 1)[0] for file in template_directory().glob(f"*{_END}")}
    return frozenset(file for name in names for dialect in Dialect for file in _candidates(name, dialect.value))


def _source(environment: jinja2.Environment, name: str) -> str:
    loader: Any = environment.loader
    source, *_ = loader.get_source(environment, name)
    return str(source)


def _named(template: Expr) -> list[str]:
    """Return the templates that an include may mean, of which there may be several.

    Raises:
        Impossible: that is known only when it is rendered.
    """
    if isinstance(template, Call) and isinstance(template.node, Name) and template.node.name == "template_of":
        names = [str(argument.as_const()) for argument in template.args]
        return [file for name in names for dialect in Dialect for file in _candidates(name, dialect.value)]
    found = template.as_const()
    return [found] if isinstance(found, str) else [str(one) for one in found]


def _path(name: str) -> str:
    """Return a template's name as Jinja takes it."""
    return "/".join(part for part in name.split("/") if part not in {"", "."})


@contextmanager
def _translated(name: str, dialect: str) -> Iterator[None]:
    try:
        yield
    except SchemasyncError:
        raise
    except Exception as error:
        # A template calculates with what it is given: it may fail like any code.
        file, line = _place(error)
        raise UsageError(
            "the template cannot be rendered",
            where=f"{file or name}{f':{line}' if line else ''}",
            why=str(error) or type(error).__name__,
            fix=f"Compare it with the one that ships: {_shipped(name, dialect)}.",
        ) from error


def _place(error: Exception) -> tuple[str | None, int | None]:
    """Return the template and the line in which it failed, as far as that is known."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.filename, error.lineno
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
    return (frames[-1].filename, frames[-1].lineno) if frames else (None, None)


def _candidates(name: str, dialect: str) -> list[str]:
    return [f"{name}.{dialect}{_END}", f"{name}{_END}"]


def _shipped(name: str, dialect: str) -> Path:
    """Return the file of ours that this name means, or would mean."""
    files = [template_directory() / candidate for candidate in _candidates(name, dialect)]
    return next((file for file in files if file.is_file()), files[-1])
