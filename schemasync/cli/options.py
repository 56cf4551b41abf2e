"""The options that every command has, accepted before and after the command's name.

`schemasync --json plan` and `schemasync plan --json` are the same: users type both. What was given is kept in the
`Options` of the running call; nothing else knows where it stood.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

import click
from click.core import ParameterSource

from schemasync.io.logs import Format

WAIT_SECONDS: Final = 600.0
"""How long ``--wait`` waits where no other time is given."""


@dataclass(slots=True, kw_only=True)
class Options:
    """What was given on the command line; ``config`` None means the default place, ``wait_s`` 0 not to wait."""

    config: Path | None = None
    json: bool = False
    log_format: Format = "text"
    verbosity: int = 0
    wait_s: float = 0.0


class Optioned(Protocol):
    """Whatever carries the options of one call: the context object of click."""

    options: Options


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if context.get_parameter_source(parameter.name or "") is ParameterSource.DEFAULT:
        return
    options = cast(Optioned, context.obj).options
    match parameter.name:
        case "verbose":
            options.verbosity += value
        case "wait":
            options.wait_s = options.wait_s or WAIT_SECONDS
        case "wait_timeout":
            options.wait_s = value
        case "as_json":
            options.json = True
        case name:
            setattr(options, str(name), value)


_F = TypeVar("_F", bound=Callable[..., Any])


class _Seconds(click.FloatRange):
    """So many seconds; NaN is in every range for click, and no time ever comes that is not before it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of seconds."""
        seconds = super().convert(value, param, ctx)
        return self.fail(f"{value} is no number.", param, ctx) if math.isnan(seconds) else seconds


def _option(*declarations: str, **rest: Any) -> Callable[[_F], _F]:
    # Eager: --json must be known before any other option can be found wrong.
    return click.option(*declarations, callback=_remember, expose_value=False, is_eager=True, **rest)


_OPTIONS: Final = (
    _option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The configuration (default: ./schemasync.yaml, then $SCHEMASYNC_CONFIG).",
    ),
    _option("--json", "as_json", is_flag=True, help="Print one JSON document; logs go to stderr."),
    _option("--log-format", type=click.Choice(["text", "json"]), help="How log lines look."),
    _option("-v", "verbose", count=True, help="Say more: what is done; -vv: everything."),
    _option("--wait", is_flag=True, help=f"Wait for the embedded metastore, up to {WAIT_SECONDS / 60:.0f} minutes."),
    _option(
        "--wait-timeout",
        type=_Seconds(min=0),
        metavar="SECONDS",
        help="Wait for the embedded metastore, up to this long.",
    ),
)


def global_options(function: _F) -> _F:
    """Give a command (or the program itself) the options that all have."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
