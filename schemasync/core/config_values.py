"""The values that settings can have: their units, their checks, and the refusals that say what is wrong.

Used by `schemasync.core.config` as the types of its fields. A duration becomes milliseconds, a size bytes. What cannot
be read is refused with one `refusal`, which says what is wrong in one clause and what to do, and never shows a secret.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from schemasync.core.locations import parse_location
from schemasync.core.names import MAX_NAME, expand_pattern, folded, hour_directory_regex
from schemasync.errors import UsageError

REFUSED = "schemasync"
"""The error type of the configuration's own refusals; their context holds ``what`` and ``fix``."""
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
"""Milliseconds."""
MB = 1024**2
"""Bytes."""

LONGEST = 100_000 * DAY
"""Longest duration, in milliseconds: with much longer ones no clock of a machine can be reckoned."""
_DURATION_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_SIZE_UNITS = {"b": 1} | {f"{prefix}{end}": 1024**n for n, prefix in enumerate("kmgt", 1) for end in ("b", "ib")}
_AMOUNT = re.compile(r"([0-9]{1,12}) ?([A-Za-z]+)")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")
_HERE = ("", "localhost")
"""Hosts of a ``file:`` URI that mean this machine."""
_PATTERN_SIGNS = frozenset("\\^$*+?{}[]|()")


def refusal(what: str, fix: str = "") -> PydanticCustomError:
    """Return the error that a validator raises: ``what`` is wrong in one clause, ``fix`` says what to do."""
    return PydanticCustomError(REFUSED, "{what}", {"what": what, "fix": fix})


def parse_duration(value: object) -> object:
    """Turn ``15s`` into milliseconds; units are ms, s, m, h, d. An int is milliseconds already."""
    return _parse_amount(value, _DURATION_UNITS, what="a duration", example="15s, 10m, 1h or 7d")


def parse_size(value: object) -> object:
    """Turn ``256MB`` into bytes; units are B, KB, MB, GB, TB, of 1024 like Spark's. An int is bytes already."""
    return _parse_amount(value, _SIZE_UNITS, what="a size", example="512KB, 256MB or 1GB")


def is_pattern(subject: str) -> bool:
    """Tell whether a configured subject can only be meant as a regular expression.

    Dots do not count: nearly every subject has some.
    """
    return not _PATTERN_SIGNS.isdisjoint(subject)


def check_regex(pattern: str) -> str:
    """Return a regular expression that compiles."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise refusal(f"is not a regular expression ({error})", "Write .* where any text is meant.") from None
    return pattern


def check_name_pattern(text: str, allowed: Iterable[str]) -> str:
    """Return a pattern that gives a metastore's name whatever stands for its ``allowed`` placeholders."""
    _identifier(_expands(text, allowed))
    return text


def _hour_name(text: str) -> str:
    check_name_pattern(text, ("table", "hour"))
    if text.count("{hour}") != 1:
        # Hours would share a name, or no name would say its hour.
        raise refusal("must hold {hour} once", "Write for example {table}_incremental_{hour}.")
    return text


def _parse_amount(value: object, units: dict[str, int], *, what: str, example: str) -> object:
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value.strip())
    if match and match[2].lower() in units:
        return int(match[1]) * units[match[2].lower()]
    if value.strip() == "0":
        return 0
    raise refusal(f"must be {what}: a whole number with a unit", f"Write for example {example}.")


def _within_clocks(value: int) -> int:
    if value > LONGEST:
        raise refusal(f"must be at most {LONGEST // DAY} days", f"Write {LONGEST // DAY}d where it is never to end.")
    return value


def _positive(value: int) -> int:
    if value == 0:
        raise refusal("must be longer than 0s", "Write for example 15s.")
    return value


def _identifier(value: str) -> str:
    if not _IDENTIFIER.fullmatch(value):
        raise refusal(
            "must be lower-case letters, digits and _, not beginning with a digit", "Metastores keep no case."
        )
    if len(value) > MAX_NAME:
        raise refusal(f"must be at most {MAX_NAME} characters long", "Metastores store no longer names.")
    return value


def _expands(text: str, allowed: Iterable[str]) -> str:
    """Return what a pattern becomes with every allowed placeholder replaced by x."""
    try:
        return expand_pattern(text, dict.fromkeys(allowed, "x"))
    except UsageError as error:
        raise refusal(error.what, error.fix) from None


def _location(value: str) -> str:
    _expands(value, ("topic", "table", "database"))
    place = parse_location(value)
    if place.scheme == "file" and place.host not in _HERE:
        raise refusal("names a host, and a local disk has none", "Write file:///DIRECTORY with three slashes.")
    if place.is_local and place.path.startswith("~"):
        raise refusal("begins with ~, which only a shell replaces", "Write the whole path of the directory.")
    if not place.is_local and not {".", ".."}.isdisjoint(place.path.split("/")):
        # What reaches it takes them for names, or for steps.
        raise refusal("holds . or .. among its directories", "Write the path without them.")
    if not {"{", "}"}.isdisjoint(re.sub(r"\{\w+\}", "", value)):
        raise refusal(
            "has a { or } that no other one closes or opens", "Placeholders are {topic}, {table}, {database}."
        )
    if not place.path.strip("/"):
        raise refusal(
            "names no directory, and a table cannot be a whole bucket or disk", "Write one: s3a://BUCKET/DIRECTORY."
        )
    return value


def _increments(value: str) -> str:
    try:
        hour_directory_regex(value)
    except UsageError as error:
        raise refusal(error.what, error.fix) from None
    # An object storage takes paths as they are: one with . or // in it is another directory, and an empty one.
    if value.startswith("/") or ":" in value or not {"", ".", ".."}.isdisjoint(value.rstrip("/").split("/")):
        raise refusal(
            "must be a path below the table's location, without . or .. or //", "Put the rest of it into location."
        )
    return value


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len({folded(name) for name in names}) != len(names):
        raise refusal("names one column twice", "Keep one of them.")
    return names


def _renames(renames: dict[str, str]) -> dict[str, str]:
    if any(new == old for new, old in renames.items()) or len(set(renames.values())) != len(renames):
        raise refusal("must map each new name to another old one, {new: old}", "Write for example {full_name: name}.")
    return renames


def _registry_url(value: str) -> str:
    several = value.lower().startswith("http")
    for url in value.split(",") if several else [value]:
        _one_url(url.strip(), local=not several)
    return value


def _one_url(text: str, *, local: bool) -> None:
    try:
        url = urlsplit(text)
        url.port  # noqa: B018 (reading it checks it)
    except ValueError:
        raise refusal("is not a URL", "Write for example http://localhost:8081, or file:./registry.") from None
    if url.username is not None:
        raise refusal("must not hold a user or password", "Put them under registry.auth.basic.")
    place = parse_location(text)
    directory = local and place.scheme == "file" and place.host in _HERE and place.path
    if not (directory or (url.scheme in ("http", "https") and url.hostname)):
        what = "must be http://HOST[:PORT], https://HOST[:PORT] or file:DIRECTORY"
        raise refusal(what, "Write for example http://localhost:8081, or file:./registry.")


def is_thrift(uri: str) -> bool:
    """Tell whether a text is the address of a Hive metastore service, or several with commas."""
    return all(
        re.fullmatch(r"thrift://[^/:\s]+:[0-9]+/?|thrift://\[[0-9A-Fa-f:.]+\]:[0-9]+/?", one.strip())
        for one in uri.split(",")
    )


def _listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise refusal("must be HOST:PORT", "Write for example 127.0.0.1:8090.")
    return value


def _web_address(value: str) -> str:
    if not re.match(r"https?://[^/]", value):
        raise refusal("must be http://... or https://...", "Write for example https://example.org/hook.")
    return value


def _webhook(value: SecretStr) -> SecretStr:
    _web_address(value.get_secret_value())
    return value


def _header_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", value):
        raise refusal("must be the name of a header: letters, digits and -", "Write for example X-Token: VALUE.")
    return value


def _command(value: object) -> object:
    try:
        return shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        raise refusal("has a quote that is not closed", "Close it, or write a list: [PROGRAM, ARGUMENT].") from None


ZONE: Final = "spark.sql.session.timeZone"
UTC_NAMES: Final = frozenset(
    {"UTC", "GMT", "UCT", "Universal", "Zulu", "Z", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Universal", "Etc/Zulu"}
)
"""What a Spark session's time zone may be called; in another one a date is another moment."""


LITERALS: Final = "spark.sql.parser.escapedStringLiterals"


def takes_escapes(value: str) -> bool:
    """Tell whether a session in which `LITERALS` is this reads the texts of our statements as they are meant."""
    return value.strip().lower() != "true"


def _as_meant(conf: dict[str, str]) -> dict[str, str]:
    if conf.get(ZONE, "UTC") not in UTC_NAMES:
        raise refusal(
            f"has {ZONE}, and it must be UTC: dates that become timestamps would be other moments before a compaction "
            "than after it",
            "Leave it out. What reads the views may have a time zone of its own.",
        )
    if not takes_escapes(conf.get(LITERALS, "false")):
        raise refusal(
            f"has {LITERALS}, and it must be false: texts in statements, as of defaults, would be others",
            "Leave it out. What reads the views may have it.",
        )
    return conf


Text = Annotated[str, Field(min_length=1)]
Secret = Annotated[SecretStr, Field(min_length=1)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Duration = Annotated[int, BeforeValidator(parse_duration), Field(ge=0), AfterValidator(_within_clocks)]
Period = Annotated[
    int, BeforeValidator(parse_duration), Field(ge=0), AfterValidator(_within_clocks), AfterValidator(_positive)
]
Size = Annotated[int, BeforeValidator(parse_size), Field(ge=0)]
PositiveSize = Annotated[int, BeforeValidator(parse_size), Field(gt=0)]
Columns = Annotated[tuple[Text, ...], AfterValidator(_distinct)]
Renames = Annotated[dict[Text, Text], AfterValidator(_renames)]
Location = Annotated[Text, AfterValidator(_location)]
Increments = Annotated[Text, AfterValidator(_increments)]
TableName = Annotated[Text, AfterValidator(lambda text: check_name_pattern(text, ("table",)))]
HourName = Annotated[Text, AfterValidator(_hour_name)]
RegistryUrl = Annotated[Text, AfterValidator(_registry_url)]
TokenUrl = Annotated[Text, AfterValidator(_web_address)]
Listen = Annotated[str, AfterValidator(_listen)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
Webhook = Annotated[SecretStr, AfterValidator(_webhook)]
Command = Annotated[tuple[Text, ...], BeforeValidator(_command)]
SparkConf = Annotated[dict[Text, str], AfterValidator(_as_meant)]


def require_header_values(values: Mapping[str, str]) -> None:
    """Refuse, by the setting that they come from, what HTTP cannot carry: the libraries' own errors print the value.

    Raises:
        UsageError: a value is empty or holds spaces at its ends, line breaks or characters outside ASCII.
    """
    for setting, value in values.items():
        if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
            raise UsageError(
                "the value is empty or holds spaces at its ends, line breaks or characters outside ASCII",
                where=setting,
                fix="Look for a line break at the end of the file or variable that it comes from.",
            )
