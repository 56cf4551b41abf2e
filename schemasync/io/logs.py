"""Set up logging once per process: to one stream (stderr), as text or JSON, in UTC, without secrets.

Called by the command line before anything else. Standard output is never written to: it belongs to results. What
looks like a password, a token or an Authorization header is masked in whatever is logged, by whomever, tracebacks
included; without that, one HTTP error at debug level would put a registry's password into a log store.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TextIO

from pythonjsonlogger.json import JsonFormatter

from schemasync.core.secrets import KEYS

Format = Literal["text", "json"]

MASK: Final = "***"

LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Level of our own loggers by verbosity; libraries are one step quieter."""

_NEVER: Final = logging.CRITICAL + 1

QUIET_LOGGERS: Final[Mapping[str, int]] = {
    "py4j": _NEVER,  # tells of every broken connection while a JVM stops; the call that broke raises anyway
    "SQLQueryContextLogger": _NEVER,  # pyspark 4 prints each SQL error that it raises, too, as a JSON traceback
    "DataFrameQueryContextLogger": _NEVER,  # the same for DataFrame calls
    "sqlglot": logging.ERROR,  # tells of every text that it takes for no query; that is reported as a finding
    "urllib3": logging.ERROR,  # tells of every retry with the URL's path, which is a webhook's secret
    "botocore": logging.INFO,  # tells of each answer as a whole, which may be the keys of a role, and of what it signs
}

# After a key or secret Azure's settings have the account that it opens.
_SENSITIVE: Final = rf"(?:password|passwd|token|azure\.sas\.[\w.-]+|(?:secret|{KEYS})(?:\.[\w.-]+)?)"

# How a value may stand in a line: quoted (in JSON inside JSON the quotes are escaped), or bare up to a separator.
_VALUE: Final = r"""
    (?: b?\\+["'][^"']*["']
      | b?"(?:[^"\\]|\\.)*"
      | b?'(?:[^'\\]|\\.)*'
      | (?:(?:basic|bearer)\s+)?["']?[^\s,;&)}\]"']+ )
"""


def _pattern(key: str, value: str) -> re.Pattern[str]:
    return re.compile(f"(?P<key>{key}){value}", re.IGNORECASE | re.VERBOSE)


_SECRETS: Final = (
    # scheme://user:password@host
    _pattern(r"""\b[a-z][a-z0-9+.-]{0,20}://[^\s/?\#:@"']*:""", r"""[^\s/?\#"']+(?=@)"""),
    # Authorization: Basic ..., or an item of a mapping; unquoted, the value goes to the end of the line
    _pattern(r"""authorization\\*["']?\s*[:=]\s*[\[(]?""", rf"""(?:(?=b?\\*["']){_VALUE}|[^\r\n]+)"""),
    # A private key as files have it, whose lines may be escaped: all of it, to its end
    _pattern(r"""-----BEGIN\ [A-Z\ ]{0,20}PRIVATE\ KEY-----""", r"""(?:(?!-----END)[\s\S])+"""),
    # https://host/container/file?se=...&sig=...
    _pattern(r"""[?&](?:[\w-]+-)?sig(?:nature)?=""", r"""[^\s&\#"']+"""),
    # <SecretAccessKey>...</SecretAccessKey>; <Key> is a file's name
    _pattern(rf"""<\w{{0,40}}{_SENSITIVE}>""", r"""[^<\s]+"""),
    # A header as AWS signs it
    _pattern(r"""x-amz-security-token:""", _VALUE),
    # password=..., "token": "..."; a bare colon is prose ("unexpected token: }")
    _pattern(rf"""{_SENSITIVE}(?:\s*=\s*|\\*["']\s*[:=]\s*)""", _VALUE),
)

_SECRET_FIELD: Final = re.compile(rf"(?:{_SENSITIVE}|authorization)$", re.IGNORECASE)


def configure_logging(log_format: Format, verbosity: int, stream: TextIO) -> None:
    """Send all logging of this process to ``stream``, replacing what was set up before.

    ``verbosity`` counts the ``-v`` of the command line: 0 shows warnings, 1 what is done, 2 and more everything.
    ``text`` gives ``TIME LEVEL LOGGER: MESSAGE``, ``json`` one object per line with ``timestamp``, ``level``,
    ``logger``, ``message`` and whatever the call gave as ``extra``. Times are ISO 8601 in UTC.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    logging.basicConfig(handlers=[handler], level=_level(verbosity - 1), force=True)
    logging.getLogger("schemasync").setLevel(_level(verbosity))
    for name, level in QUIET_LOGGERS.items():
        logging.getLogger(name).setLevel(max(level, _level(verbosity - 1)))
    logging.getLogger().addFilter(_not_of_py4j)


def redact(text: str) -> str:
    """Return ``text`` with the values of passwords, tokens and Authorization headers replaced by ``***``."""
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<key>{MASK}", text)
    return text


def printable(text: str) -> str:
    """Return ``text`` as one line in which whatever cannot be seen is spelt out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def told(error: Exception | None) -> str | None:
    """Return what a result says of an error: its text without secrets."""
    return redact(str(error)) if error is not None else None


def _level(verbosity: int) -> int:
    return LEVELS[max(0, min(verbosity, len(LEVELS) - 1))]


def _utc(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _not_of_py4j(record: logging.LogRecord) -> bool:
    # Of calls that were broken off it tells not by its own logger.
    return "py4j" not in Path(record.pathname).parts


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        return _utc(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        # Names of others could write lines of their own, or talk to the terminal. A traceback keeps its lines.
        return printable(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _JsonFormatter(JsonFormatter):
    def __init__(self) -> None:
        names = {"asctime": "timestamp", "levelname": "level", "name": "logger"}
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=names)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        return _utc(record)

    # Before it becomes JSON: masking the finished line could cut a string open.
    def process_log_record(self, log_data: dict[str, object]) -> dict[str, object]:
        return {key: _redacted(key, value) for key, value in log_data.items()}


def _redacted(key: str, value: object) -> object:
    """Mask what is secret in a value of any shape, or all of it where its key says so."""
    if _SECRET_FIELD.search(key):
        return MASK
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {name: _redacted(str(name), item) for name, item in value.items()}
        case list() | tuple():
            return [_redacted(key, item) for item in value]
        case None | bool() | int() | float():
            return value
        case _:
            return redact(str(value))
