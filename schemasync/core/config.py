"""Everything that a configuration file may say, as values.

Built by `schemasync.io.config_file` from YAML and the environment, or from Python with ``Config.model_validate``;
read by `schemasync.core.mapping` and the use cases. What is here is complete and checked: unknown keys, unreadable
values and settings that this version cannot honour are refused by pydantic's ValidationError, never ignored.
Units are in the types of `schemasync.core.config_values`: milliseconds, bytes. Secrets are SecretStr.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator, model_validator

from schemasync.core.config_values import (
    DAY,
    HOUR,
    MB,
    REFUSED,
    SECOND,
    Columns,
    Command,
    Duration,
    HeaderName,
    HourName,
    Identifier,
    Increments,
    Listen,
    Location,
    Period,
    PositiveSize,
    RegistryUrl,
    Renames,
    Secret,
    Size,
    SparkConf,
    TableName,
    Text,
    TokenUrl,
    Webhook,
    check_name_pattern,
    check_regex,
    is_pattern,
    is_thrift,
    parse_duration,
    parse_size,
    refusal,
)
from schemasync.core.partitioning import USAGES, parse_partition
from schemasync.core.schema import EnvelopeKind

__all__ = [
    "BLANK",
    "REFUSED",
    "UNSUPPORTED",
    "Auth",
    "Basic",
    "Compaction",
    "Config",
    "Defaults",
    "Metastore",
    "Mtls",
    "Names",
    "Notice",
    "OAuth",
    "Policies",
    "RegistrySettings",
    "Server",
    "Settings",
    "SparkSettings",
    "TableEntry",
    "Unsupported",
    "View",
    "Watch",
    "is_pattern",
    "known_keys",
    "nearest",
    "parse_duration",
    "parse_size",
    "refusal",
    "relocated",
    "remarks",
    "setting_type",
]


BLANK: Final = object()
"""The value of a key with nothing behind it: not given. None, which somebody wrote, may be the word null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A setting that interface.md promises and this version cannot honour yet.

    ``values`` are the refused ones; empty means that the setting must stay empty.
    """

    model: str
    field: str
    values: tuple[str, ...] = ()
    instead: str


UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported(
        model="Metastore", field="kind", values=("sql", "script"), instead="This version has embedded and thrift."
    ),
)
"""Delete a row when the feature arrives; nothing else needs to know."""


class Settings(BaseModel):
    """What all parts of the configuration share: frozen, no unknown keys, no input in error texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _absent(cls, data: Any) -> Any:
        """Read YAML's null as "not given", or as the word null where the setting knows that word; BLANK is no word."""
        if not isinstance(data, dict):
            return data
        given = {k: "null" if v is None and cls._knows_null(k) else v for k, v in data.items()}
        return {k: v for k, v in given.items() if v not in (None, BLANK) or k not in cls.model_fields}

    @classmethod
    def _knows_null(cls, name: object) -> bool:
        field = cls.model_fields.get(str(name))
        return field is not None and "null" in get_args(field.annotation)

    @field_validator("*", mode="after")
    @classmethod
    def _supported(cls, value: Any, info: ValidationInfo) -> Any:
        for row in UNSUPPORTED:
            if (row.model, row.field) != (cls.__name__, info.field_name):
                continue
            if value in row.values or (value and not row.values):
                name = f"{value} is" if row.values else "is"
                raise refusal(f"{name} not supported yet by this version", row.instead)
        return value


class Basic(Settings):
    """HTTP basic authentication."""

    username: Text
    password: SecretStr


class OAuth(Settings):
    """OAuth2 client credentials. ``ca``: a PEM file that the server of tokens is checked against."""

    token_url: TokenUrl
    client_id: Text
    client_secret: Secret
    scope: Text | None = None
    ca: Text | None = None


class Mtls(Settings):
    """A client certificate and its key: paths of PEM files."""

    cert: Text
    key: Text


class Auth(Settings):
    """Who we are to the registry. At most one of basic, bearer, oauth; mtls may stand beside it."""

    basic: Basic | None = None
    bearer: Secret | None = None
    oauth: OAuth | None = None
    mtls: Mtls | None = None

    @model_validator(mode="after")
    def _one(self) -> Auth:
        given = [name for name in ("basic", "bearer", "oauth") if getattr(self, name)]
        if len(given) > 1:
            raise refusal(f"must have only one of {' and '.join(given)}", "Leave the other out.")
        return self


class RegistrySettings(Settings):
    """The registry. ``url``: http(s)://HOST[/path], several with commas, or file:DIRECTORY; ``ca``: a PEM file.

    ``headers`` are sent with each request, such as Confluent Cloud asks for beside OAuth2's tokens.
    """

    url: RegistryUrl
    auth: Auth = Auth()
    headers: dict[HeaderName, SecretStr] = {}
    ca: Text | None = None
    timeout: Period = 10 * SECOND
    retries: Annotated[int, Field(ge=0, le=100)] = 4

    @field_validator("headers", mode="after")
    @classmethod
    def _others(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        if any(name.lower() == "authorization" for name in headers):
            raise refusal("must not hold Authorization", "Say under registry.auth who you are.")
        return headers


class Metastore(Settings):
    """Where the tables are. ``dir`` is the embedded metastore's directory; ``uri`` is read for thrift only.

    Where ``kind`` is not given there must be no ``uri``: the tables would be made in the embedded metastore, unseen.
    """

    kind: Literal["embedded", "thrift", "sql", "script"] = "embedded"
    uri: Text | None = None
    dir: Text = ".schemasync"

    @model_validator(mode="after")
    def _has_uri(self) -> Metastore:
        if self.kind == "thrift" and not is_thrift(self.uri or ""):
            raise refusal("needs uri: thrift://HOST:PORT for kind thrift", "Write for example thrift://localhost:9083.")
        if self.uri and "kind" not in self.model_fields_set:
            raise refusal("has a uri, which is read for kind thrift only", "Add kind: thrift, or leave the uri out.")
        return self


class SparkSettings(Settings):
    """How Spark is started, and used. ``conf`` may hold credentials of the storage, so it is never shown.

    ``tables_at_once``: how many tables are applied or compacted side by side. Two is the least with which a large table
    does not hold up all others, and what one table needs of this process's memory is needed at most twice.
    """

    master: Text = "local[*]"
    tables_at_once: Annotated[int, Field(ge=1, le=100)] = 2
    conf: SparkConf = Field(default={}, repr=False)


class Policies(Settings):
    """What is done by itself for each kind of schema change; architecture.md section 5."""

    add: Literal["evolve", "null", "hold"] = "evolve"
    drop: Literal["drop", "keep", "hold"] = "drop"
    widen: Literal["evolve", "hold"] = "evolve"
    retype: Literal["migrate", "variant", "hold"] = "migrate"
    rename: Literal["alias", "drop_add"] = "alias"
    semantic: Literal["hold", "migrate"] = "hold"
    key: Literal["hold", "rebuild"] = "hold"


class Compaction(Settings):
    """When and how increments are folded; durations in ms.

    ``arrow_limit``: bytes up to which one process admits landed files and merges shards, beyond it Spark does;
    None: 256 MB, and no limit where Spark is local, because its tasks would have the same cores.
    ``shard_size``: about how many bytes a shard of the base has. ``memory``: bytes that merging one, or
    an admission in one process, may hold of rows. ``kernel``: what merges shards, Arrow or Spark's SQL.
    """

    every: Duration = HOUR
    tombstone_retention: Duration = 7 * DAY
    reader_grace: Duration = HOUR
    vacuum_retention: Duration = 7 * DAY
    on_fold: Literal["delete", "archive", "keep"] = "delete"
    arrow_limit: Size | None = None
    shard_size: PositiveSize = 128 * MB
    memory: PositiveSize = 512 * MB
    kernel: Literal["arrow", "spark"] = "arrow"


class Names(Settings):
    """Patterns of the names beside the long-lived table's; ``{table}`` is its name, ``{hour}`` yyyyMMddHH."""

    view: TableName = "{table}_view"
    base: TableName = "{table}_base"
    incremental: HourName = "{table}_incremental_{hour}"
    compactor: TableName = "{table}_compactor"
    history: TableName = "{table}_history"


class View(Settings):
    """What the view shows beside the row's columns, and who reads it.

    ``readers``: Spark alone, or any engine; auto: Spark alone where the metastore is embedded in its process.
    """

    metadata: bool = False
    readers: Literal["auto", "any", "spark"] = "auto"


class Defaults(Settings):
    """What holds for every table that does not say otherwise."""

    database: Identifier = "lake"
    location: Location = "./lake/{topic}"
    increments: Increments = "incremental/increment_{yyyyMMddHH}"
    policies: Policies = Policies()
    compaction: Compaction = Compaction()
    names: Names = Names()
    view: View = View()


class TableEntry(Settings):
    """One subject, or all subjects that a regular expression matches, and what is different for them.

    ``policies``, ``compaction``, ``names`` and ``view`` override the defaults key by key: only their set fields count.
    """

    subject: Text
    table: Text | None = None
    exclude: tuple[Text, ...] = ()
    keys: Columns = ()
    sequence_by: Columns = ()
    partition_by: dict[Identifier, Text] = {}
    insert_only: bool = False
    renames: Renames = {}
    toast: Literal["carry", "placeholder", "null"] = "carry"
    compatibility_group: str | None = None
    toast_placeholder: Text = "__debezium_unavailable_value"
    adopt: bool = False
    envelope: EnvelopeKind | None = None
    database: Identifier | None = None
    location: Location | None = None
    increments: Increments | None = None
    policies: Policies = Policies()
    compaction: Compaction = Compaction()
    names: Names = Names()
    view: View = View()

    @field_validator("subject", mode="after")
    @classmethod
    def _value_subject(cls, value: str) -> str:
        if value.endswith("-key"):
            raise refusal("names a key subject", "Name the -value subject; its -key is found by itself.")
        return check_regex(value) if is_pattern(value) else value

    @field_validator("table", mode="after")
    @classmethod
    def _known_groups(cls, value: str | None, info: ValidationInfo) -> str | None:
        # A subject that was refused is told of already, and gives no groups.
        if value is not None and (subject := info.data.get("subject")) is not None:
            groups = re.compile(subject).groupindex if is_pattern(subject) else ()
            check_name_pattern(value, ("topic", *groups))
        return value

    @field_validator("partition_by", mode="after")
    @classmethod
    def _expressions(cls, value: dict[str, str]) -> dict[str, str]:
        for name, expression in value.items():
            try:
                parse_partition(name, expression)
            except ValueError as error:
                raise refusal(f"has for {name} what is no partition: {error}", f"Use {', '.join(USAGES)}.") from None
        return value

    @field_validator("exclude", mode="after")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(check_regex, value))


class Watch(Settings):
    """The daemon's rhythm, in ms, and what it may do by itself."""

    poll: Period = 15 * SECOND
    apply: Literal["auto", "safe", "manual"] = "auto"
    sweep: Period = HOUR


class Server(Settings):
    """Where the status page is served; nowhere unless said."""

    listen: Listen | None = None


class Notice(Settings):
    """One receiver of news: a webhook with its headers, one of Slack's, or a command (text is split like a shell's)."""

    webhook: Webhook | None = None
    command: Command = Field(default=(), repr=False)
    slack: Webhook | None = None
    headers: dict[HeaderName, SecretStr] = {}

    @model_validator(mode="after")
    def _one(self) -> Notice:
        if sum(map(bool, (self.webhook, self.command, self.slack))) != 1:
            raise refusal(
                "must have one of webhook, slack and command",
                "Set webhook: URL, slack: URL, or command: [PROGRAM, ARGUMENT].",
            )
        if self.headers and not self.webhook:
            raise refusal("has headers but no webhook", "Leave them out: only a webhook has headers.")
        return self


class Config(Settings):
    """A whole configuration. ``templates`` is the path of a directory whose templates replace ours."""

    registry: RegistrySettings
    metastore: Metastore = Metastore()
    spark: SparkSettings = SparkSettings()
    defaults: Defaults = Defaults()
    tables: tuple[TableEntry, ...] = ()
    watch: Watch = Watch()
    server: Server = Server()
    notify: tuple[Notice, ...] = ()
    templates: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _registry(cls, data: Any) -> Any:
        """Let an absent registry be told by the key that is missing in it."""
        missing = isinstance(data, dict) and data.get("registry") in (None, BLANK)
        return {**data, "registry": {}} if missing else data


def remarks(config: Config) -> tuple[str, ...]:
    """Say what stands in a configuration and is not read: it may be what somebody relies on."""
    return tuple(_in_vain(config))


def _in_vain(config: Config) -> Iterator[str]:
    if config.metastore.uri and config.metastore.kind == "embedded":
        yield (
            "metastore.uri is not read: kind is embedded, and nobody else sees its tables. Set kind: thrift, or leave "
            "the uri out."
        )
    for index, entry in enumerate(config.tables):
        if entry.insert_only and entry.keys:
            yield (
                f"tables[{index}].keys are not read: insert_only says that rows have no identity. Leave one of them "
                "out."
            )
        if entry.exclude and not is_pattern(entry.subject):
            yield (
                f"tables[{index}].exclude is not read: the subject is an exact name, which takes that one alone. Leave "
                "it out."
            )


def relocated(config: Config, change: Callable[[str], str]) -> Config:
    """Return a configuration in which every table's location is what ``change`` makes of it."""
    defaults = config.defaults.model_copy(update={"location": change(config.defaults.location)})
    tables = tuple(t.model_copy(update={"location": change(t.location)}) if t.location else t for t in config.tables)
    return config.model_copy(update={"defaults": defaults, "tables": tables})


def read_by_any(config: Config) -> Config:
    """Return a configuration in which ``view.readers: auto`` is ``any``: others may open the metastore, too."""

    def said(view: View) -> View:
        return view.model_copy(update={"readers": "any"}) if view.readers == "auto" else view

    defaults = config.defaults.model_copy(update={"view": said(config.defaults.view)})
    # One that says nothing of it goes by the default.
    tables = tuple(
        t.model_copy(update={"view": said(t.view)}) if "readers" in t.view.model_fields_set else t
        for t in config.tables
    )
    return config.model_copy(update={"defaults": defaults, "tables": tables})


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that a person most likely meant by ``name``, None where none is close (1: the same)."""
    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def setting_type(path: Iterable[str | int]) -> Any:
    """Return the annotation of the setting at a path, without ``None``; None where there is no such setting."""
    node: Any = Config
    for part in path:
        node = _bare(_member(node, part))
    return node


def known_keys(path: Iterable[str | int]) -> tuple[str, ...]:
    """Return the keys that the mapping at a path may have, empty where it may have any or is none."""
    node = setting_type(path)
    return tuple(node.model_fields) if _is_settings(node) else ()


def _is_settings(node: Any) -> bool:
    return isinstance(node, type) and issubclass(node, Settings)


def _member(node: Any, part: str | int) -> Any:
    if _is_settings(node):
        field = node.model_fields.get(part)
        return field.annotation if field else None
    inner = get_args(node)
    if get_origin(node) is tuple:
        return inner[0]
    return inner[1] if get_origin(node) is dict else None


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) in (Annotated, UnionType, Union):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    return annotation
