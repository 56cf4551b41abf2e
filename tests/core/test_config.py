from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from schemasync.core.config import (
    BLANK,
    REFUSED,
    UNSUPPORTED,
    Compaction,
    Config,
    Notice,
    Policies,
    Server,
    TableEntry,
    Unsupported,
    Watch,
    is_pattern,
    known_keys,
    nearest,
    parse_duration,
    parse_size,
    remarks,
    setting_type,
)
from schemasync.core.partitioning import USAGES
from schemasync.core.schema import EnvelopeKind

REGISTRY = {"url": "http://localhost:8081"}


def config(**settings: Any) -> Config:
    return Config.model_validate({"registry": REGISTRY, **settings})


def problems(**settings: Any) -> list[tuple[str, str]]:
    """Return (path, text) of everything that is refused."""
    with pytest.raises(ValidationError) as caught:
        config(**settings)
    return [
        (".".join(map(str, e["loc"])), f"{e['ctx']['what']}. {e['ctx']['fix']}" if e["type"] == REFUSED else e["type"])
        for e in caught.value.errors()
    ]


def table(**settings: Any) -> dict[str, Any]:
    return {"tables": [{"subject": "shop.student-value", **settings}]}


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert config().model_dump() == {
        "registry": {
            "url": "http://localhost:8081",
            "auth": {"basic": None, "bearer": None, "oauth": None, "mtls": None},
            "headers": {},
            "ca": None,
            "timeout": 10_000,
            "retries": 4,
        },
        "metastore": {"kind": "embedded", "uri": None, "dir": ".schemasync"},
        "spark": {"master": "local[*]", "tables_at_once": 2, "conf": {}},
        "defaults": {
            "database": "lake",
            "location": "./lake/{topic}",
            "increments": "incremental/increment_{yyyyMMddHH}",
            "policies": {
                "add": "evolve",
                "drop": "drop",
                "widen": "evolve",
                "retype": "migrate",
                "rename": "alias",
                "semantic": "hold",
                "key": "hold",
            },
            "compaction": {
                "every": 3_600_000,
                "tombstone_retention": 604_800_000,
                "reader_grace": 3_600_000,
                "vacuum_retention": 604_800_000,
                "on_fold": "delete",
                "arrow_limit": None,
                "shard_size": 134_217_728,
                "memory": 536_870_912,
                "kernel": "arrow",
            },
            "names": {
                "view": "{table}_view",
                "base": "{table}_base",
                "incremental": "{table}_incremental_{hour}",
                "compactor": "{table}_compactor",
                "history": "{table}_history",
            },
            "view": {"metadata": False, "readers": "auto"},
        },
        "tables": (),
        "watch": {"poll": 15_000, "apply": "auto", "sweep": 3_600_000},
        "server": {"listen": None},
        "notify": (),
        "templates": None,
    }


def test_a_configuration_survives_its_own_dump() -> None:
    whole = config(
        metastore={"kind": "thrift", "uri": "thrift://hms:9083"},
        tables=[{"subject": "a-value", "policies": {"add": "null"}, "compaction": {"every": "0s"}}],
        notify=[{"command": "notify.sh 'two words'"}],
    )
    assert Config.model_validate(whole.model_dump()) == whole


def test_a_table_entry_takes_everything_that_the_documentation_shows() -> None:
    entry = config(
        **table(
            table="student",
            keys=["id"],
            sequence_by=["ts_ms", "kafka_offset"],
            insert_only=False,
            renames={"full_name": "name"},
            partition_by={"create_date_year": "year(create_date)"},
            adopt=False,
            envelope="debezium",
        )
    ).tables[0]
    assert entry == TableEntry(
        subject="shop.student-value",
        table="student",
        keys=("id",),
        sequence_by=("ts_ms", "kafka_offset"),
        renames={"full_name": "name"},
        partition_by={"create_date_year": "year(create_date)"},
        envelope=EnvelopeKind.DEBEZIUM,
    )


@pytest.mark.parametrize(
    ("text", "ms"), [("0s", 0), ("0", 0), ("250ms", 250), ("15s", 15_000), ("10m", 600_000), ("1h", 3_600_000)]
)
def test_durations_become_milliseconds(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@given(n=st.integers(0, 10**6))
def test_a_day_is_24_hours_is_1440_minutes(n: int) -> None:
    assert parse_duration(f"{n}d") == parse_duration(f"{24 * n}h") == parse_duration(f"{1440 * n} m")


@pytest.mark.parametrize(
    ("text", "size"), [("0B", 0), ("512KB", 524_288), ("256MB", 268_435_456), ("256mib", 268_435_456), ("1TB", 1 << 40)]
)
def test_sizes_become_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["15", "1.5h", "-1s", "h", "", "1 fortnight", "1h30m"])
def test_a_duration_needs_a_whole_number_and_a_unit(text: str) -> None:
    assert problems(watch={"poll": text}) == [
        ("watch.poll", "must be a duration: a whole number with a unit. Write for example 15s, 10m, 1h or 7d.")
    ]


@pytest.mark.parametrize("text", ["100001d", "999999999999d"])
def test_a_duration_is_none_that_no_clock_can_reckon_with(text: str) -> None:
    assert config(registry=REGISTRY | {"timeout": "100000d"}).registry.timeout == 100_000 * 86_400_000
    assert problems(registry=REGISTRY | {"timeout": text}) == [
        ("registry.timeout", "must be at most 100000 days. Write 100000d where it is never to end.")
    ]


def test_a_size_does_not_take_the_unit_of_a_duration() -> None:
    assert problems(defaults={"compaction": {"arrow_limit": "1h"}}) == [
        (
            "defaults.compaction.arrow_limit",
            "must be a size: a whole number with a unit. Write for example 512KB, 256MB or 1GB.",
        )
    ]


@pytest.mark.parametrize("name", ["shard_size", "memory"])
def test_no_shard_can_be_written_of_nothing_or_with_nothing(name: str) -> None:
    assert problems(defaults={"compaction": {name: "0"}}) == [(f"defaults.compaction.{name}", "greater_than")]


def test_numbers_are_base_units_already() -> None:
    assert Compaction(every=5, arrow_limit=7).model_dump(include={"every", "arrow_limit"}) == {
        "every": 5,
        "arrow_limit": 7,
    }


def test_a_daemon_that_never_sleeps_is_refused() -> None:
    assert problems(watch={"poll": "0s"}) == [("watch.poll", "must be longer than 0s. Write for example 15s.")]


def test_an_unknown_key_is_refused_wherever_it_stands() -> None:
    assert problems(tabels=[], watch={"pol": "1s"}, **table(keyz=["id"])) == [
        ("tables.0.keyz", "extra_forbidden"),
        ("watch.pol", "extra_forbidden"),
        ("tabels", "extra_forbidden"),
    ]


@pytest.mark.parametrize("registry", [None, {}, {"url": None}])
def test_without_a_registry_its_url_is_what_is_missing(registry: object) -> None:
    assert problems(registry=registry) == [("registry.url", "missing")]


def test_a_configuration_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ValidationError, match="valid dictionary"):
        Config.model_validate(["registry"])


def test_null_means_not_given() -> None:
    assert config(tables=None, templates=None, watch={"poll": None}) == config()


def test_null_is_a_word_where_a_policy_knows_it() -> None:
    assert config(**table(policies={"add": None, "drop": None})).tables[0].policies == Policies(add="null")


def test_blank_means_not_given_also_where_null_is_a_word() -> None:
    assert config(**table(toast=BLANK, policies={"add": BLANK, "drop": BLANK})) == config(**table())
    assert problems(watch={"pol": BLANK}) == [("watch.pol", "extra_forbidden")]


def test_null_for_an_unknown_key_is_still_an_unknown_key() -> None:
    assert problems(watch={"pol": None}) == [("watch.pol", "extra_forbidden")]


def test_only_what_an_entry_says_itself_counts_as_set() -> None:
    assert TableEntry(subject="a", policies=Policies(drop="keep")).policies.model_fields_set == {"drop"}


EXAMPLES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("Metastore", "kind"): (
        {"metastore": {"kind": "sql"}},
        "sql is not supported yet by this version. This version has embedded and thrift.",
    ),
    ("Policies", "key"): (
        {"defaults": {"policies": {"key": "rebuild"}}},
        "rebuild is not supported yet by this version. Use hold.",
    ),
    ("Policies", "retype"): (
        table(policies={"retype": "variant"}),
        "variant is not supported yet by this version. Use migrate or hold.",
    ),
    ("Policies", "semantic"): (
        {"defaults": {"policies": {"semantic": "migrate"}}},
        "migrate is not supported yet by this version. Use hold.",
    ),
    ("TableEntry", "partition_by"): (
        table(partition_by={"y": "year(d)"}),
        "is not supported yet by this version. Leave it out: the table has no user partitions.",
    ),
}


@pytest.mark.parametrize("row", UNSUPPORTED, ids=lambda row: f"{row.model}.{row.field}")
def test_what_is_not_supported_yet_is_refused(row: Unsupported) -> None:
    settings, text = EXAMPLES[row.model, row.field]
    assert [told for _, told in problems(**settings)] == [text]


def test_what_is_supported_of_the_same_settings_is_taken() -> None:
    entry = config(**table(toast=None, partition_by={}, policies={"retype": "migrate"})).tables[0]
    assert (entry.toast, entry.policies.retype) == ("null", "migrate")


@pytest.mark.parametrize(
    "url",
    [
        "http://r:8081",
        "https://r/apis/ccompat/v7",
        "file:./registry",
        "file:/r",
        "file:///r",
        "http://a:1, https://b:2",
        "file:a,b",
        "file://localhost/r",
        "file:#1/r?",
    ],
)
def test_registry_urls_are_http_or_a_directory(url: str) -> None:
    assert config(registry={"url": url}).registry.url == url


def test_spark_reads_times_in_utc_and_in_no_other_zone() -> None:
    zone = "spark.sql.session.timeZone"
    for name in ("Etc/UTC", "Zulu"):
        assert config(spark={"conf": {zone: name}}).spark.conf == {zone: name}
    assert problems(spark={"conf": {zone: "Asia/Tokyo"}}) == [
        (
            "spark.conf",
            "has spark.sql.session.timeZone, and it must be UTC: dates that become timestamps would be other moments "
            "before a compaction than after it. Leave it out. What reads the views may have a time zone of its own.",
        )
    ]


def test_spark_reads_texts_with_their_escapes() -> None:
    literals = "spark.sql.parser.escapedStringLiterals"
    assert config(spark={"conf": {literals: "False"}}).spark.conf == {literals: "False"}
    for value in ("true", " TRUE"):
        assert problems(spark={"conf": {literals: value}}) == [
            (
                "spark.conf",
                "has spark.sql.parser.escapedStringLiterals, and it must be false: texts in statements, as of defaults,"
                " would be others. Leave it out. What reads the views may have it.",
            )
        ]


WRITE = "Write for example http://localhost:8081, or file:./registry."


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("localhost:8081", "must be http://HOST[:PORT], https://HOST[:PORT] or file:DIRECTORY. " + WRITE),
        ("http://", "must be http://HOST[:PORT], https://HOST[:PORT] or file:DIRECTORY. " + WRITE),
        ("file://registry/x", "must be http://HOST[:PORT], https://HOST[:PORT] or file:DIRECTORY. " + WRITE),
        ("http://a,file:/b", "must be http://HOST[:PORT], https://HOST[:PORT] or file:DIRECTORY. " + WRITE),
        ("http://a,http://u:hush@b", "must not hold a user or password. Put them under registry.auth.basic."),
        ("http://[::1", "is not a URL. " + WRITE),
        ("http://r:eighty", "is not a URL. " + WRITE),
        ("http://:hush@r", "must not hold a user or password. Put them under registry.auth.basic."),
        ("http://u:hush@r", "must not hold a user or password. Put them under registry.auth.basic."),
    ],
)
def test_other_registry_urls_are_refused(url: str, text: str) -> None:
    assert problems(registry={"url": url}) == [("registry.url", text)]


CLIENT = {"token_url": "https://t", "client_id": "c", "client_secret": "hush"}


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        ({"basic": {"username": "u", "password": "p"}, "bearer": "t"}, "basic and bearer"),
        ({"bearer": "t", "oauth": CLIENT}, "bearer and oauth"),
    ],
)
def test_ways_to_say_who_we_are_exclude_each_other(auth: dict[str, Any], names: str) -> None:
    assert problems(registry=REGISTRY | {"auth": auth}) == [
        ("registry.auth", f"must have only one of {names}. Leave the other out.")
    ]


def test_an_address_of_tokens_is_one_of_the_web() -> None:
    assert problems(registry=REGISTRY | {"auth": {"oauth": CLIENT | {"token_url": "tokens"}}}) == [
        (
            "registry.auth.oauth.token_url",
            "must be http://... or https://.... Write for example https://example.org/hook.",
        )
    ]


def test_a_header_is_no_other_way_to_say_who_we_are() -> None:
    assert problems(registry=REGISTRY | {"headers": {"authorization": "Bearer t"}}) == [
        ("registry.headers", "must not hold Authorization. Say under registry.auth who you are.")
    ]


def test_a_token_that_is_empty_is_refused_as_without_one_nobody_is_asked_who_he_is() -> None:
    assert problems(registry=REGISTRY | {"auth": {"bearer": ""}}) == [("registry.auth.bearer", "too_short")]


@pytest.mark.parametrize("uri", ["thrift://hms:9083", "thrift://a:1,thrift://b:2", "thrift://[::1]:9083/"])
def test_a_thrift_metastore_may_have_several_addresses(uri: str) -> None:
    assert config(metastore={"kind": "thrift", "uri": uri}).metastore.uri == uri


def test_a_client_certificate_may_stand_beside_a_token() -> None:
    auth = config(registry=REGISTRY | {"auth": {"bearer": "t", "mtls": {"cert": "c", "key": "k"}}}).registry.auth
    assert (auth.bearer, auth.mtls and auth.mtls.key) == (SecretStr("t"), "k")


@pytest.mark.parametrize("uri", [None, "hms:9083", "thrift://", "thrift://hms", "thrift://:9083", "thrift://a:1,b:2"])
def test_a_thrift_metastore_needs_its_address(uri: str | None) -> None:
    assert problems(metastore={"kind": "thrift", "uri": uri}) == [
        ("metastore", "needs uri: thrift://HOST:PORT for kind thrift. Write for example thrift://localhost:9083.")
    ]


def test_a_uri_alone_does_not_leave_the_tables_to_the_embedded_metastore() -> None:
    assert problems(metastore={"uri": "thrift://hms:9083"}) == [
        ("metastore", "has a uri, which is read for kind thrift only. Add kind: thrift, or leave the uri out.")
    ]


def test_what_a_configuration_says_in_vain_can_be_told() -> None:
    in_vain = config(
        metastore={"kind": "embedded", "uri": "thrift://hms:9083"},
        tables=[
            {"subject": "a-value", "keys": ["id"]},
            {"subject": "b-value", "keys": ["id"], "insert_only": True},
            {"subject": "c-value", "exclude": ["c-value"]},
        ],
    )
    assert remarks(in_vain) == (
        "metastore.uri is not read: kind is embedded, and nobody else sees its tables. Set kind: thrift, or leave the "
        "uri out.",
        "tables[1].keys are not read: insert_only says that rows have no identity. Leave one of them out.",
        "tables[2].exclude is not read: the subject is an exact name, which takes that one alone. Leave it out.",
    )
    assert remarks(config(metastore={"kind": "thrift", "uri": "thrift://hms:9083"}, tables=in_vain.tables[:1])) == ()


def test_no_secret_shows_in_a_repr() -> None:
    whole = config(
        registry=REGISTRY | {"auth": {"basic": {"username": "u", "password": "hush"}}},
        spark={"conf": {"spark.hadoop.fs.s3a.secret.key": "hush"}},
        notify=[
            {"webhook": "https://example.org/hush", "headers": {"Authorization": "hush"}},
            {"command": "notify --token hush"},
        ],
    )
    assert "hush" not in repr(whole) + str(whole)


def test_no_input_shows_in_an_error() -> None:
    with pytest.raises(ValidationError) as caught:
        config(registry=REGISTRY | {"auth": "hush", "timeout": "hush"}, spark="hush", server={"listen": "hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("listen", ["8090", ":8090", "host:", "host:99999", "host:http"])
def test_a_listen_address_is_host_and_port(listen: str) -> None:
    assert problems(server={"listen": listen}) == [
        ("server.listen", "must be HOST:PORT. Write for example 127.0.0.1:8090.")
    ]


def test_listening_is_possible_on_any_address() -> None:
    assert config(server={"listen": "[::]:8090"}).server == Server(listen="[::]:8090")


def test_a_command_is_split_like_a_shell_does() -> None:
    assert config(notify=[{"command": "notify.sh 'two words'"}]).notify == (Notice(command=("notify.sh", "two words")),)


ONE = "must have one of webhook, slack and command. Set webhook: URL, slack: URL, or command: [PROGRAM, ARGUMENT]."


@pytest.mark.parametrize(
    ("notice", "path", "text"),
    [
        ({}, "notify.0", ONE),
        ({"webhook": "https://e.org", "command": ["x"]}, "notify.0", ONE),
        ({"webhook": "https://e.org", "slack": "https://e.org"}, "notify.0", ONE),
        (
            {"command": ["x"], "headers": {"a": "b"}},
            "notify.0",
            "has headers but no webhook. Leave them out: only a webhook has headers.",
        ),
        (
            {"command": "it's"},
            "notify.0.command",
            "has a quote that is not closed. Close it, or write a list: [PROGRAM, ARGUMENT].",
        ),
        (
            {"webhook": "example.org"},
            "notify.0.webhook",
            "must be http://... or https://.... Write for example https://example.org/hook.",
        ),
        (
            {"slack": "hooks.slack.com"},
            "notify.0.slack",
            "must be http://... or https://.... Write for example https://example.org/hook.",
        ),
    ],
)
def test_news_go_to_one_place_that_can_be_reached(notice: dict[str, Any], path: str, text: str) -> None:
    assert problems(notify=[notice]) == [(path, text)]


@pytest.mark.parametrize("name", ["Ä", "", "X Token", "X-Token:", "X\nToken"])
def test_a_header_whose_name_cannot_be_sent_is_refused(name: str) -> None:
    [(path, text)] = problems(notify=[{"webhook": "https://e.org", "headers": {name: "t", "X-Token_1.a": "t"}}])
    assert (path, text) == (
        f"notify.0.headers.{name}.[key]",
        "must be the name of a header: letters, digits and -. Write for example X-Token: VALUE.",
    )


STEPS = "holds . or .. among its directories. Write the path without them."
BRACE = "has a { or } that no other one closes or opens. Placeholders are {topic}, {table}, {database}."
TILDE = "begins with ~, which only a shell replaces. Write the whole path of the directory."
WHOLE = "names no directory, and a table cannot be a whole bucket or disk. Write one: s3a://BUCKET/DIRECTORY."
BELOW = "must be a path below the table's location, without . or .. or //. Put the rest of it into location."
IDENTIFIER = "must be lower-case letters, digits and _, not beginning with a digit. Metastores keep no case."
OTHERS = "must map each new name to another old one, {new: old}. Write for example {full_name: name}."
NO_REGEX = "is not a regular expression ({}). Write .* where any text is meant."


@pytest.mark.parametrize(
    ("settings", "path", "text"),
    [
        ({"keys": ["id", "id"]}, "keys", "names one column twice. Keep one of them."),
        ({"keys": ["id", "ID"]}, "keys", "names one column twice. Keep one of them."),
        (
            {"database": "a" * 129},
            "database",
            "must be at most 128 characters long. Metastores store no longer names.",
        ),
        ({"renames": {"a": "a"}}, "renames", OTHERS),
        ({"renames": {"a": "c", "b": "c"}}, "renames", OTHERS),
        (
            {"database": "My-Lake"},
            "database",
            IDENTIFIER,
        ),
        (
            {"location": "s3a://lake/{tpoic}"},
            "location",
            "unknown placeholder {tpoic}. Known here: {database}, {table}, {topic}.",
        ),
        (
            {"location": "file://lake/{topic}"},
            "location",
            "names a host, and a local disk has none. Write file:///DIRECTORY with three slashes.",
        ),
        *(({"location": whole}, "location", WHOLE) for whole in ("s3a://{topic}/", "hdfs://nn", "hdfs:///", "/")),
        *(({"location": f"s3a://lake/{path}"}, "location", STEPS) for path in ("{topic}/../q", "./{topic}", "..")),
        *(({"location": f"/lake/{path}"}, "location", BRACE) for path in ("{topic", "{topic}}", "a{{topic}", "a}b")),
        ({"location": "~/lake"}, "location", TILDE),
        ({"location": "file:~me/lake"}, "location", TILDE),
        ({"table": "{nmae}"}, "table", "unknown placeholder {nmae}. Known here: {topic}."),
        ({"names": {"view": "{table}_{hour}"}}, "names.view", "unknown placeholder {hour}. Known here: {table}."),
        ({"increments": "/landing/{yyyyMMddHH}"}, "increments", BELOW),
        ({"increments": "../{yyyyMMddHH}"}, "increments", BELOW),
        ({"increments": "s3a://l/{yyyyMMddHH}"}, "increments", BELOW),
        ({"increments": "./incremental/{yyyyMMddHH}"}, "increments", BELOW),
        ({"increments": "incremental//{yyyyMMddHH}"}, "increments", BELOW),
        ({"increments": "incremental/{yyyyMMddHH}/."}, "increments", BELOW),
        (
            {"partition_by": {"p": "md5(a)"}},
            "partition_by",
            f"has for p what is no partition: there is no function md5 here. Use {', '.join(USAGES)}.",
        ),
        ({"exclude": ["("]}, "exclude", NO_REGEX.format("missing ), unterminated subpattern at position 0")),
    ],
)
def test_a_table_setting_that_cannot_work_is_refused(settings: dict[str, Any], path: str, text: str) -> None:
    assert problems(**table(**settings)) == [(f"tables.0.{path}", text)]


@pytest.mark.parametrize("increments", ["incremental/increment_{yyyyMMHH}", "increment_{yymmddhh}"])
def test_an_increments_pattern_says_the_day(increments: str) -> None:
    [(path, text)] = problems(defaults={"increments": increments})
    assert (path, "Use {yyyy}, {MM} and {dd}, and {HH} where" in text) == ("defaults.increments", True)


@pytest.mark.parametrize("pattern", ["year={yyyy}/month={MM}/day={dd}/hour={HH}", "in/{yyyyMMdd}/"])
def test_increments_may_be_several_directories_deep(pattern: str) -> None:
    assert config(defaults={"increments": pattern}).defaults.increments == pattern


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"subject": "shop.student-key"}, "names a key subject. Name the -value subject; its -key is found by itself."),
        ({"subject": "*-value"}, NO_REGEX.format("nothing to repeat at position 0")),
        (
            {"subject": "shop.(?P<name>.+)-value", "table": "shop_{nmae}"},
            "unknown placeholder {nmae}. Known here: {name}, {topic}.",
        ),
        ({"subject": "shop.student-value", "table": "{name}"}, "unknown placeholder {name}. Known here: {topic}."),
        ({"subject": "shop.student-value", "table": "9lives"}, IDENTIFIER),
    ],
)
def test_an_entry_whose_subject_or_table_cannot_work_is_refused(entry: dict[str, Any], text: str) -> None:
    assert [told for _, told in problems(tables=[entry])] == [text]


@pytest.mark.parametrize(("subject", "pattern"), [("shop.public.a_b-value", False), ("shop\\.a", True), ("a.+", True)])
def test_dots_alone_make_no_regular_expression(subject: str, pattern: bool) -> None:
    assert is_pattern(subject) is pattern


@pytest.mark.parametrize(
    ("name", "known"), [("keyz", "keys"), ("KEYS", "keys"), ("tabel", "table"), ("xyz", None), ("", None)]
)
def test_the_nearest_known_name_is_found_or_none(name: str, known: str | None) -> None:
    assert nearest(name, TableEntry.model_fields) == known


def test_the_known_keys_of_any_place_can_be_asked_for() -> None:
    assert (known_keys(("watch",)), known_keys(("notify", 0))) == (
        tuple(Watch.model_fields),
        ("webhook", "command", "slack", "headers"),
    )


@pytest.mark.parametrize("path", [("wacth",), ("watch", "poll"), ("watch", "poll", "x"), ("spark", "conf", "a")])
def test_where_nothing_is_known_there_are_no_known_keys(path: tuple[str, ...]) -> None:
    assert known_keys(path) == ()


def test_the_type_of_any_setting_can_be_asked_for() -> None:
    paths = [("registry", "ca"), ("tables", 3, "location"), ("spark", "conf", "a"), ("tables", 0, "keys", 1), ("x", 0)]
    assert [setting_type(p) for p in paths] == [str, str, str, str, None]


@pytest.mark.parametrize("name", ["{table}_run", "{table}_{hour}_{hour}"])
def test_a_name_of_hours_says_each_of_them_apart(name: str) -> None:
    assert problems(defaults={"names": {"incremental": name}}) == [
        ("defaults.names.incremental", "must hold {hour} once. Write for example {table}_incremental_{hour}.")
    ]
