"""From a configuration file and the environment to a checked `Config`.

Called once at the start of every command. Promises that relative paths are absolute afterwards, that one UsageError
names every wrong setting by its file (or variable) and its path, and that no value of the file or of the environment
appears in an error: the wrong value may be a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemasync.core.config import BLANK, REFUSED, Config, Notice, known_keys, nearest, relocated, setting_type
from schemasync.core.config_values import Identifier
from schemasync.core.locations import parse_location
from schemasync.errors import UsageError

DEFAULT_NAME = "schemasync.yaml"
PREFIX = "SCHEMASYNC_"
FILE_VARIABLE = "SCHEMASYNC_CONFIG"

Where = tuple[str | int, ...]
"""The path of a setting: keys, and indices of lists."""

# Kubernetes sets these in every pod beside a service whose name begins with schemasync.
_SERVICE_LINK = re.compile(r"(?!.*__)([A-Z0-9]+_)*(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)\w*)")
_SERVICE_PORT = re.compile(r"(?!.*__)((?:[A-Z0-9]+_)*)PORT")
_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A configuration, and the file that it came from."""

    config: Config
    path: Path


def load_config(path: Path | None, *, environ: Mapping[str, str], cwd: Path) -> LoadedConfig:
    """Find, read, complete and check the configuration.

    ``path`` is ``--config``'s; without it ``schemasync.yaml`` in ``cwd`` counts, then ``$SCHEMASYNC_CONFIG``.
    ``SCHEMASYNC_A__B`` in the environment sets ``a.b``, ``__0`` an element of a list; text is taken as it stands,
    lists and mappings are read as YAML.

    Raises:
        UsageError: no file, not readable, not YAML, or a setting that is wrong.
    """
    file = _find(path, environ, cwd)
    raw, used = _interpolated(_parse(_read(file), str(file)), environ, file)
    variables = _setting_variables(environ, used)
    try:
        config = Config.model_validate(_overlaid(raw, variables, environ))
    except ValidationError as error:
        # Not from error: its text shows unknown keys, and `password:secret` without the space is one.
        raise _explained(error, file, variables) from None
    return LoadedConfig(config=resolve(config, file.parent), path=file)


def resolve(config: Config, root: Path) -> Config:
    """Return the configuration with every relative path made absolute against ``root``.

    Directories of our own become paths; the registry's and the lake's become ``file:///...`` (not percent-encoded),
    because an engine would look for a bare path in its default file system. Other URIs stay.
    """
    registry, metastore = config.registry, config.metastore
    mtls = registry.auth.mtls
    if mtls:
        mtls = mtls.model_copy(update={"cert": _absolute(mtls.cert, root), "key": _absolute(mtls.key, root)})
    oauth = registry.auth.oauth
    if oauth and oauth.ca:
        oauth = oauth.model_copy(update={"ca": _absolute(oauth.ca, root)})
    auth = registry.auth.model_copy(update={"mtls": mtls, "oauth": oauth})
    where = {"url": _absolute_uri(registry.url, root), "ca": registry.ca and _absolute(registry.ca, root), "auth": auth}
    return relocated(config, lambda location: _absolute_uri(location, root)).model_copy(
        update={
            "registry": registry.model_copy(update=where),
            "metastore": metastore.model_copy(update={"dir": _absolute(metastore.dir, root)}),
            "notify": tuple(_placed(notice, root) for notice in config.notify),
            "templates": config.templates and _absolute(config.templates, root),
        }
    )


def _placed(notice: Notice, root: Path) -> Notice:
    """Let a command that is named by a path start from there; a bare name is looked up on PATH."""
    program, *rest = notice.command or ("",)
    if "/" not in program:
        return notice
    return notice.model_copy(update={"command": (_absolute(program, root), *rest)})


def _absolute(path: str, root: Path) -> str:
    return os.path.normpath(root / path)


def _absolute_uri(text: str, root: Path) -> str:
    place = parse_location(text)
    return f"file://{_absolute(place.path, root)}" if place.is_local else text


def _find(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    named = environ.get(FILE_VARIABLE)
    if path is not None:
        found = cwd / path
    elif holds_config(cwd) or not named:
        found = cwd / DEFAULT_NAME
    else:
        found = cwd / named
    return Path(os.path.normpath(found))


def holds_config(directory: Path) -> bool:
    """Tell whether a directory holds a configuration of the usual name, as far as this user may know."""
    with suppress(OSError):
        return (directory / DEFAULT_NAME).is_file()
    return False


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            "there is no such configuration file",
            where=str(file),
            fix="Write one with `schemasync init`, or name yours with --config FILE or $SCHEMASYNC_CONFIG.",
        ) from None
    except OSError as error:
        raise UsageError(
            "the configuration file cannot be read", where=str(file), why=error.strerror or "", fix="Check its path."
        ) from error
    except UnicodeDecodeError:
        raise UsageError("the configuration file is not UTF-8", where=str(file), fix="Save it as UTF-8.") from None


class _Loader(yaml.SafeLoader):
    """YAML of which only nulls, lists and mappings are recognised: what a scalar is, the setting knows, not YAML.

    So ``on``, ``0123`` and ``2026-01-01`` stay text where text is wanted. A key that stands twice is an error; one with
    nothing behind it has the value BLANK, unlike one with a null that somebody wrote.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"the key {dotted((key.value,))} {_TWICE}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
            if value.tag == _NULL and value.value == "":
                value.tag = _NOTHING
        return node


_NULL = "tag:yaml.org,2002:null"
_NOTHING = "no tag"
"""With a space, so that nobody can write it."""
_Loader.add_constructor(_NOTHING, lambda _loader, _node: BLANK)
_KEPT = (_NULL, "tag:yaml.org,2002:merge")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag in _KEPT]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_TWICE = "stands twice"
_FIXES = {
    _TWICE: "Keep one of them.",
    "'\\t'": "Indent with spaces, which YAML wants instead of tabs.",
    "another document": "Remove the line ---: a configuration is one document.",
}
"""What to do where a problem has this in its text."""
_QUOTE = "Put quotes around a value that holds any of [ ] { } * & ! % @ # or a colon."


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader with fewer types)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = _without_content(getattr(error, "problem", None) or "")
        fix = next((fix for sign, fix in _FIXES.items() if sign in why), _QUOTE)
        raise UsageError("this YAML cannot be read", where=f"{where}{place}", why=why, fix=fix) from None
    except (RecursionError, ValueError, KeyError, AttributeError):
        # The last two are what PyYAML (6.0) makes of a wrong !!bool and !!timestamp.
        raise UsageError("this YAML cannot be read", where=where, fix="Remove !!tags and deep nesting.") from None


def _without_content(problem: str) -> str:
    """Cut what PyYAML quotes from the file, which may be the secret that breaks the syntax; keep quoted signs."""
    rest = re.sub(r"'(<[a-z ]+>|..?)'", "", problem)
    return problem.split("'", maxsplit=1)[0].rstrip() if "'" in rest else problem


def _interpolated(raw: Any, environ: Mapping[str, str], file: Path) -> tuple[dict[Any, Any], frozenset[str]]:
    """Return the file's mapping with ``${NAME}`` replaced, and the names that were used."""
    if not isinstance(raw, dict | None):
        raise UsageError("the file must hold keys and values, such as registry:", where=str(file))
    used: set[str] = set()

    def replaced(text: str, where: Where) -> str:
        return _VARIABLE.sub(lambda found: value_of(found, f"{file}: {dotted(where)}"), text)

    def value_of(found: re.Match[str], where: str) -> str:
        if found[1] is None:
            return "${"
        name = _variable_name(found, where)
        if name not in environ:
            raise UsageError(f"the environment variable {name} is not set", where=where, fix="Set it.")
        used.add(name)
        return environ[name]

    try:
        return _mapped(raw or {}, (), replaced), frozenset(used)
    except RecursionError:
        raise UsageError("an alias (*name) stands inside what it names", where=str(file), fix="Remove it.") from None


def _mapped(node: Any, where: Where, change: Callable[[str, Where], str]) -> Any:
    match node:
        case dict():
            return {key: _mapped(value, (*where, key), change) for key, value in node.items()}
        case list():
            return [_mapped(value, (*where, index), change) for index, value in enumerate(node)]
        case str():
            return change(node, where)
        case _:
            return node


def _variable_name(found: re.Match[str], where: str) -> str:
    if found[0].endswith("}") and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", found[1]):
        return found[1]
    raise UsageError(
        "${ must begin the name of a variable: ${NAME}", where=where, fix="Write $${ where ${ itself is meant."
    )


def _setting_variables(environ: Mapping[str, str], used: Iterable[str]) -> dict[str, Where]:
    """Return the variables that set something, and the path of each; parents before their elements, in order."""
    found = {}
    for name in environ.keys() - set(used) - {FILE_VARIABLE}:
        tail = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and not _is_service_link(tail, environ):
            found[name] = _path(tail)
    return dict(sorted(found.items(), key=lambda item: [(isinstance(p, str), p) for p in item[1]]))


def _path(tail: str) -> Where:
    """Return the path that a variable's name means: our own keys in lower case, keys that are free as they stand."""
    where: Where = ()
    for part in tail.split("__"):
        kind = setting_type(where)
        free = get_origin(kind) is dict and get_args(kind)[0] is not Identifier
        where += (int(part) if re.fullmatch("[0-9]{1,6}", part) else part if free else part.lower(),)
    return where


def _is_service_link(tail: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a variable is Kubernetes's; one that ends in PORT may be a setting that is spelled wrongly."""
    port = _SERVICE_PORT.fullmatch(tail)
    return bool(_SERVICE_LINK.fullmatch(tail) or (port and f"{PREFIX}{port[1]}SERVICE_HOST" in environ))


def _overlaid(raw: Mapping[Any, Any], variables: Mapping[str, Where], environ: Mapping[str, str]) -> Any:
    whole: Any = raw
    for name, where in variables.items():
        whole = _put(whole, where, _variable_value(name, where, environ[name]), name)
    return whole


def _variable_value(name: str, where: Where, text: str) -> Any:
    kind = setting_type(where)
    if text == "":
        # A setting that does not exist stays, to be refused.
        return None if kind is None else BLANK
    if get_origin(kind) in (dict, tuple) or known_keys(where):
        return _parse(text, f"environment variable {name}")
    return text


def _put(node: Any, where: Where, value: Any, name: str) -> Any:
    match where:
        case ():
            return value
        case (int() as index, *_):
            items = list(node) if isinstance(node, list) else []
            if index > len(items):
                parts = name.split("__")
                parts[-len(where)] = str(len(items))
                raise UsageError(
                    f"the list has no entry {len(items)} yet, which comes before {index}",
                    where=f"environment variable {name}",
                    fix=f"Entries are counted from 0: set {'__'.join(parts)}.",
                )
            inner = items[index] if index < len(items) else None
            return [*items[:index], _put(inner, where[1:], value, name), *items[index + 1 :]]
        case (key,) if value is BLANK:
            return {k: v for k, v in node.items() if k != key} if isinstance(node, dict) else {}
        case _:
            members = node if isinstance(node, dict) else {}
            return {**members, where[0]: _put(members.get(where[0]), where[1:], value, name)}


def dotted(where: Iterable[str | int]) -> str:
    """Return the path as people write it: ``tables[1].keys``.

    A key that is no plain name is not shown: ``password:secret``, without the space, is one key for YAML.
    """
    shown = (f"[{p}]" if isinstance(p, int) else f".{p}" if _KEY.fullmatch(str(p)) else ".(...)" for p in where)
    return "".join(shown).removeprefix(".")


_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a known key",
    "model_type": "must be a mapping, key: value",
    "dict_type": "must be a mapping, key: value",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "invalid_key": "is a key, and no text",
}
"""Pydantic's error types in our words; what is not here keeps pydantic's text."""
_DOES = {
    "invalid_key": "Put quotes around it.",
    "tuple_type": "Write [ONE, OTHER].",
    "string_too_short": "Write a value, or leave the key out.",
    "too_short": "Write a value, or leave the key out.",
}
"""What to do about them, where the words do not say it."""


def _explained(error: ValidationError, file: Path, variables: Mapping[str, Where]) -> UsageError:
    details = error.errors(include_url=False, include_input=False)
    found = [_one(detail, file, variables) for detail in details]
    if len(found) == 1:
        return found[0]
    lines = "".join(f"\n  {problem}" for problem in found)
    return UsageError(f"{len(found)} settings are wrong:{lines}", where=str(file))


def _one(detail: ErrorDetails, file: Path, variables: Mapping[str, Where]) -> UsageError:
    where = tuple(part for part in detail["loc"] if part != "[key]")
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "invalid_key" or (kind == "string_type" and detail["loc"][-1] == "[key]"):
        # Pydantic names it as Python does; of keys that are no text YAML has this one, where no tag makes others.
        kind, where = "invalid_key", (*where[:-1], "null" if where[-1] == "None" else where[-1])
    place = f"{_source(where, variables, file, kind)}: {dotted(where)}"
    match kind:
        case "extra_forbidden":
            return UsageError(_WORDS[kind], where=place, fix=_known(where))
        case "literal_error" | "enum":
            return UsageError(f"must be one of {context['expected']}", where=place)
        case "missing":
            return UsageError(_WORDS[kind], where=place, fix="Set it in the file or by an environment variable.")
        case _ if kind == REFUSED:
            return UsageError(context["what"], where=place, fix=context["fix"])
        case _:
            what = _WORDS.get(kind, detail["msg"].replace("Input should", "must"))
            return UsageError(what, where=place, fix=_DOES.get(kind, ""))


def _known(where: Where) -> str:
    keys = known_keys(where[:-1])
    close = nearest(str(where[-1]), keys)
    if not _KEY.fullmatch(str(where[-1])):
        return "Is a space missing after a colon?"
    hint = f"Did you mean {dotted((*where[:-1], close))}? " if close else ""
    return f"{hint}Known here: {', '.join(keys)}."


def _source(where: Where, variables: Mapping[str, Where], file: Path, kind: str) -> str:
    """Return where a wrong value comes from: a variable, the file, or both."""
    if name := next((name for name, path in variables.items() if where[: len(path)] == path), None):
        return f"environment variable {name}"
    inside = next((name for name, path in variables.items() if where and path[: len(where)] == where), None)
    if inside is None:
        return str(file)
    # What a variable puts inside of something makes a mapping or a list of it; a refusal there is of all its parts.
    return f"{file} and environment variable {inside}" if kind == REFUSED else f"environment variable {inside}"
