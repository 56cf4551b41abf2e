import errno
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from schemasync.core.config import Config
from schemasync.errors import UsageError
from schemasync.io.config_file import LoadedConfig, load_config

MINIMAL = "registry: {url: 'http://r:8081'}\n"


def load(directory: Path, text: str | None = None, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    if text is not None:
        (directory / "schemasync.yaml").write_text(text, encoding="utf-8")
    return load_config(None, environ=environ or {}, cwd=directory)


def refused(directory: Path, text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the error's text with the file's path as FILE."""
    with pytest.raises(UsageError) as caught:
        load(directory, text, environ)
    return str(caught.value).replace(str(directory / "schemasync.yaml"), "FILE")


def test_the_file_in_the_current_directory_is_found(tmp_path: Path) -> None:
    loaded = load(tmp_path, MINIMAL)
    assert (loaded.config.registry.url, loaded.path) == ("http://r:8081", tmp_path / "schemasync.yaml")


def test_a_file_that_is_named_beats_the_one_beside_us(tmp_path: Path) -> None:
    (tmp_path / "schemasync.yaml").write_text(MINIMAL)
    (tmp_path / "other.yaml").write_text("registry: {url: 'http://other'}")
    loaded = load_config(Path("other.yaml"), environ={"SCHEMASYNC_CONFIG": "third.yaml"}, cwd=tmp_path)
    assert loaded.config.registry.url == "http://other"


def test_the_file_beside_us_beats_the_environments(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("registry: {url: 'http://other'}")
    environ = {"SCHEMASYNC_CONFIG": "other.yaml"}
    urls = [load(tmp_path, text, environ).config.registry.url for text in (None, MINIMAL)]
    assert urls == ["http://other", "http://r:8081"]


@pytest.mark.parametrize("named", [None, "lost.yaml"])
def test_without_a_file_we_say_how_to_get_one(tmp_path: Path, named: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, environ={"SCHEMASYNC_CONFIG": named} if named else {})
    assert str(caught.value) == (
        f"{tmp_path / (named or 'schemasync.yaml')}: there is no such configuration file. "
        "Write one with `schemasync init`, or name yours with --config FILE or $SCHEMASYNC_CONFIG."
    )


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load_config(tmp_path, environ={}, cwd=tmp_path)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "the configuration file cannot be read: Permission denied"),
        ({"SCHEMASYNC_CONFIG": "/x.yaml"}, "/x.yaml: there is no"),
    ],
)
def test_a_directory_that_may_not_be_looked_into_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], why: str
) -> None:
    """Permissions do not bind root, as which tests may run."""

    def guarded(inner: Any) -> Any:
        def looked(path: Path, *args: Any, **options: Any) -> Any:
            if path.parent == tmp_path:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return inner(path, *args, **options)

        return looked

    for name in ("stat", "open"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))
    with pytest.raises(UsageError, match=why):
        load_config(None, environ=environ, cwd=tmp_path)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schemasync.yaml").write_bytes(b"registry: {url: '\xff'}")
    with pytest.raises(UsageError, match="is not UTF-8"):
        load(tmp_path)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeff" + MINIMAL).config.registry.url == "http://r:8081"


DOCUMENTED = r"""
registry:
  url: http://localhost:8081            # or file:./registry
  auth: {basic: {username: u, password: "${SR_PASSWORD}"}}
metastore:
  kind: embedded
  uri: thrift://localhost:9083
spark: {master: "local[*]", conf: {spark.sql.shuffle.partitions: 4, spark.ui.enabled: false}}
defaults:
  database: lake
  location: s3a://lake/{topic}
  increments: incremental/increment_{yyyyMMddHH}
  policies: {add: null, drop: drop, retype: migrate, rename: alias}
  compaction: {every: 1h, tombstone_retention: 7d, reader_grace: 1h, vacuum_retention: 7d, on_fold: delete}
tables:
  - subject: "shop\\.public\\.(?P<name>.+)-value"
    table: "shop_{name}"
    exclude: ["shop.public.audit_.*"]
  - subject: "shop.public.student-value"
    table: student
    keys: [id]
    sequence_by: [ts_ms, kafka_offset]
    insert_only: false
    renames: {full_name: name}
    adopt: no
watch: {poll: 15s, apply: auto, sweep: 1h}
server: {listen: "127.0.0.1:8090"}
notify:
  - webhook: https://example.org/hook
"""


def test_the_documented_file_says_what_it_says(tmp_path: Path) -> None:
    loaded = load(tmp_path, DOCUMENTED, {"SR_PASSWORD": "hush: #1"})
    assert loaded.config == Config.model_validate(
        {
            "registry": {
                "url": "http://localhost:8081",
                "auth": {"basic": {"username": "u", "password": SecretStr("hush: #1")}},
            },
            "metastore": {"kind": "embedded", "uri": "thrift://localhost:9083", "dir": str(tmp_path / ".schemasync")},
            "spark": {"conf": {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}},
            "defaults": {"location": "s3a://lake/{topic}", "policies": {"add": "null"}},
            "tables": [
                {
                    "subject": r"shop\.public\.(?P<name>.+)-value",
                    "table": "shop_{name}",
                    "exclude": ["shop.public.audit_.*"],
                },
                {
                    "subject": "shop.public.student-value",
                    "table": "student",
                    "keys": ["id"],
                    "sequence_by": ["ts_ms", "kafka_offset"],
                    "renames": {"full_name": "name"},
                },
            ],
            "server": {"listen": "127.0.0.1:8090"},
            "notify": [{"webhook": "https://example.org/hook"}],
        }
    )


def test_relative_paths_start_from_the_file_not_from_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "s.yaml").write_text(
        """
        registry: {url: "file:./registry", ca: ca.pem, auth: {mtls: {cert: c.pem, key: /k.pem}}}
        metastore: {dir: ../state}
        templates: templates
        defaults: {location: "./my lake/{topic}"}
        tables:
          - {subject: a-value, location: "file:a"}
          - {subject: b-value, location: "/b"}
          - {subject: c-value, location: "hdfs://nn/c"}
          - {subject: d-value}
        """
    )
    config = load_config(Path("etc/s.yaml"), environ={}, cwd=tmp_path).config
    mtls = config.registry.auth.mtls
    assert (
        [config.registry.url, config.registry.ca, mtls and mtls.cert, mtls and mtls.key],
        [config.metastore.dir, config.templates, config.defaults.location],
        [t.location for t in config.tables],
    ) == (
        [f"file://{tmp_path}/etc/registry", f"{tmp_path}/etc/ca.pem", f"{tmp_path}/etc/c.pem", "/k.pem"],
        [f"{tmp_path}/state", f"{tmp_path}/etc/templates", f"file://{tmp_path}/etc/my lake/{{topic}}"],
        [f"file://{tmp_path}/etc/a", "file:///b", "hdfs://nn/c", None],
    )


def test_a_command_that_is_a_path_starts_from_the_file_and_a_bare_name_is_looked_up(tmp_path: Path) -> None:
    text = (
        MINIMAL
        + "notify: [{command: ./tell a/b}, {command: bin/tell}, {command: /bin/t}, {command: t}, {webhook: 'http://r'}]"
    )
    assert [notice.command for notice in load(tmp_path, text).config.notify] == [
        (f"{tmp_path}/tell", "a/b"),
        (f"{tmp_path}/bin/tell",),
        ("/bin/t",),
        ("t",),
        (),
    ]


@pytest.mark.parametrize("url", ["file:/srv/r", "file:///srv/r", "file://localhost/srv/r", "FILE:/srv/./r/"])
def test_one_directory_has_one_uri(tmp_path: Path, url: str) -> None:
    assert load(tmp_path, f"registry: {{url: '{url}'}}").config.registry.url == "file:///srv/r"


@pytest.mark.parametrize(
    "location", ["/data/lake", "file:/data/lake", "file:///data/lake", "file://localhost/data/lake"]
)
def test_a_location_on_the_local_disk_has_one_uri_so_that_no_engine_looks_elsewhere(
    tmp_path: Path, location: str
) -> None:
    """A bare path would lie in an engine's default file system, which may be HDFS."""
    config = load(tmp_path, MINIMAL + f"defaults: {{location: '{location}'}}").config
    assert config.defaults.location == "file:///data/lake"


def test_a_directory_keeps_the_signs_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "c#?%41").mkdir()
    config = load(tmp_path / "c#?%41", "registry: {url: 'file:r'}\ndefaults: {location: lake}").config
    assert [config.registry.url, config.defaults.location] == [
        f"file://{tmp_path}/c#?%41/r",
        f"file://{tmp_path}/c#?%41/lake",
    ]


def test_an_unknown_key_is_named_with_its_path_and_the_nearest_one(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "tables:\n- subject: a-value\n- {subject: b-value, keyz: [id]}\n") == (
        "FILE: tables[1].keyz: is not a known key. Did you mean tables[1].keys? Known here: subject, table, exclude, "
        "keys, sequence_by, partition_by, insert_only, renames, toast, compatibility_group, toast_placeholder, "
        "adopt, envelope, database, location, increments, policies, compaction, names, view."
    )


def test_an_unknown_key_that_is_near_to_none_is_told_the_known_ones(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "server: {xyz: 1}\n") == (
        "FILE: server.xyz: is not a known key. Known here: listen."
    )


DURATION = "must be a duration: a whole number with a unit. Write for example 15s, 10m, 1h or 7d."
KINDS = "'debezium', 'flat', 'debezium-unwrapped' or 'plain'"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("watch: {apply: always}", "watch.apply: must be one of 'auto', 'safe' or 'manual'"),
        ("tables: [{subject: a-value, envelope: x}]", f"tables[0].envelope: must be one of {KINDS}"),
        ("watch: [poll]", "watch: must be a mapping, key: value"),
        ("tables: a-value", "tables: must be a list. Write [ONE, OTHER]."),
        ("tables: [a-value]", "tables[0]: must be a mapping, key: value"),
        ("tables: [{table: x}]", "tables[0].subject: is missing. Set it in the file or by an environment variable."),
        ("tables: [{subject: a-value, keys: id}]", "tables[0].keys: must be a list. Write [ONE, OTHER]."),
        ("tables: [{subject: a-value, adopt: maybe}]", "tables[0].adopt: must be true or false"),
        ("tables: [{subject: ''}]", "tables[0].subject: must not be empty. Write a value, or leave the key out."),
        ("tables: [{subject: [a]}]", "tables[0].subject: must be text"),
        ("spark: {conf: [a]}", "spark.conf: must be a mapping, key: value"),
        ("spark: {conf: {a.b: [c]}}", "spark.conf.a.b: must be text"),
        ("watch: {poll: '15'}", f"watch.poll: {DURATION}"),
        (
            "metastore: {kind: script}",
            "metastore.kind: script is not supported yet by this version. This version has embedded and thrift.",
        ),
        (
            "tables: [{subject: 'a(-value'}]",
            "tables[0].subject: is not a regular expression (missing ), unterminated subpattern at position 1). "
            "Write .* where any text is meant.",
        ),
    ],
)
def test_a_wrong_value_is_told_by_path_and_what_is_allowed(tmp_path: Path, text: str, error: str) -> None:
    assert refused(tmp_path, MINIMAL + text) == f"FILE: {error}"


def test_a_number_that_pydantic_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    assert refused(tmp_path, "registry: {url: 'file:r', retries: 101}") == (
        "FILE: registry.retries: must be less than or equal to 100"
    )


def test_all_wrong_settings_are_told_at_once(tmp_path: Path) -> None:
    assert refused(tmp_path, "registry: {url: 'file:r', retries: x}\nserver: 1") == (
        "FILE: 2 settings are wrong:\n  FILE: registry.retries: must be a whole number\n"
        "  FILE: server: must be a mapping, key: value"
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "registry:\n"])
def test_an_empty_file_is_told_what_is_missing(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text) == (
        "FILE: registry.url: is missing. Set it in the file or by an environment variable."
    )


def test_a_file_that_is_a_list_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "- registry") == "FILE: the file must hold keys and values, such as registry:"


QUOTE = "Put quotes around a value that holds any of [ ] { } * & ! % @ # or a colon."


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "registry: {url: file:r\nspark: {}",
            "FILE, line 2, column 6: this YAML cannot be read: expected ',' or '}', but got ':'",
        ),
        (
            "spark: {master: local[*]}",
            "FILE, line 1, column 22: this YAML cannot be read: expected ',' or '}', but got '['",
        ),
        ("a: \x01", "FILE: this YAML cannot be read"),
    ],
)
def test_yaml_that_cannot_be_read_is_told_by_line_and_column(tmp_path: Path, text: str, error: str) -> None:
    assert refused(tmp_path, text) == f"{error}. {QUOTE}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a: 1\nwatch:\n  poll: 1s\n  poll: 2s",
            "line 4, column 3: this YAML cannot be read: the key poll stands twice. Keep one of them.",
        ),
        (
            "watch:\n\tpoll: 1s",
            "line 2, column 1: this YAML cannot be read: found character '\\t' that cannot start any token. "
            "Indent with spaces, which YAML wants instead of tabs.",
        ),
        (
            "a: 1\n---\nb: 1",
            "line 2, column 1: this YAML cannot be read: but found another document. "
            "Remove the line ---: a configuration is one document.",
        ),
    ],
)
def test_what_to_do_about_yaml_fits_what_is_wrong(tmp_path: Path, text: str, error: str) -> None:
    assert refused(tmp_path, text) == f"FILE, {error}"


def test_keys_merged_from_an_alias_do_not_stand_twice(tmp_path: Path) -> None:
    text = MINIMAL + "tables:\n- &a {subject: a-value, adopt: true}\n- {<<: *a, subject: b-value}\n"
    assert [(t.subject, t.adopt) for t in load(tmp_path, text).config.tables] == [("a-value", True), ("b-value", True)]


def test_a_key_that_is_a_list_is_refused(tmp_path: Path) -> None:
    assert "found unhashable key" in refused(tmp_path, "? [a]\n: b")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("null: x", "null"),
        ("server: {~: x}", "server.null"),
        ("spark: {conf: {Null: x}}", "spark.conf.null"),
        ("tables: [{subject: a-value, renames: {null: a}}]", "tables[0].renames.null"),
    ],
)
def test_a_key_that_is_null_is_told_as_people_write_it(tmp_path: Path, text: str, place: str) -> None:
    assert refused(tmp_path, MINIMAL + text) == f"FILE: {place}: is a key, and no text. Put quotes around it."


def test_a_key_called_like_pythons_null_is_text(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "None: x").startswith("FILE: None: is not a known key.")
    said = refused(tmp_path, MINIMAL + "tables: [{subject: a-value, partition_by: {None: year(a)}}]")
    assert said.startswith("FILE: tables[0].partition_by.None: ")


def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "watch: {? : b}").startswith("FILE: watch")


@pytest.mark.parametrize(
    "text", ["registry: &a {url: *a}", "[" * 2000, "registry: !!int x", "registry: !!bool maybe", "a: !!timestamp x"]
)
def test_yaml_that_is_a_trap_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text).startswith("FILE: ")


def test_words_that_yaml_takes_for_something_else_stay_words(tmp_path: Path) -> None:
    text = "registry: {url: 'file:r', auth: {bearer: 0123}}\ntables: [{subject: a-value, table: on}]"
    config = load(tmp_path, text).config
    assert (config.registry.auth.bearer, config.tables[0].table) == (SecretStr("0123"), "on")


def test_variables_fill_values_and_can_be_escaped(tmp_path: Path) -> None:
    text = MINIMAL + 'spark: {conf: {a: "${X}-${_y1}-$${X}-$X"}}'
    assert load(tmp_path, text, {"X": "x", "_y1": "${X}"}).config.spark.conf == {"a": "x-${X}-${X}-$X"}


def test_variables_fill_numbers_durations_and_lists(tmp_path: Path) -> None:
    text = 'registry: {url: "file:${N}", retries: "${N}"}\nwatch: {poll: ${N}s}\ntables: [{subject: a, keys: ["${K}"]}]'
    config = load(tmp_path, text.replace("${N}s", "'${N}s'"), {"N": "7", "K": "id"}).config
    assert (config.registry.retries, config.watch.poll, config.tables[0].keys) == (7, 7_000, ("id",))


def test_a_variable_that_is_not_set_is_named_with_its_place(tmp_path: Path) -> None:
    assert refused(tmp_path, 'tables: [{subject: "${LOST}"}]') == (
        "FILE: tables[0].subject: the environment variable LOST is not set. Set it."
    )


@pytest.mark.parametrize("text", ["hush${", "hush${hush", "${hush:-x}", "${}", "${2}"])
def test_a_reference_that_names_no_variable_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, f'registry: {{url: "{text}"}}') == (
        "FILE: registry.url: ${ must begin the name of a variable: ${NAME}. Write $${ where ${ itself is meant."
    )


ENVIRON = {
    "SCHEMASYNC_REGISTRY__URL": "file:/r",
    "SCHEMASYNC_REGISTRY__AUTH__BASIC": "{username: u, password: p}",
    "SCHEMASYNC_REGISTRY__AUTH__BASIC__PASSWORD": "{a: #b",
    "SCHEMASYNC_REGISTRY__RETRIES": "2",
    "SCHEMASYNC_WATCH__POLL": "",
    "SCHEMASYNC_DEFAULTS__POLICIES__ADD": "null",
    "SCHEMASYNC_TABLES__0__TABLE": "one",
    "SCHEMASYNC_TABLES__1__SUBJECT": "b-value",
    "SCHEMASYNC_TABLES__1__KEYS": "[x, y]",
    "SCHEMASYNC_TABLES__1__KEYS__1": "z",
    "SCHEMASYNC_TABLES__1__INSERT_ONLY": "true",
    "SCHEMASYNC_SPARK__CONF": "{spark.ui.enabled: false}",
    "SCHEMASYNC_SERVICE_HOST": "10.0.0.1",
    "SCHEMASYNC_PORT_8090_TCP": "tcp://10.0.0.1:8090",
    "SCHEMASYNC_CONFIG": "elsewhere.yaml",
    "SCHEMASYNCX": "unrelated",
}


def test_the_environment_sets_any_value_over_the_files(tmp_path: Path) -> None:
    text = (
        "registry: {url: 'http://r', ca: /c}\nwatch: {poll: 1s}\ntables: [{subject: a-value, table: zero, keys: [id]}]"
    )
    assert load(tmp_path, text, ENVIRON).config == Config.model_validate(
        {
            "registry": {
                "url": "file:///r",
                "ca": "/c",
                "auth": {"basic": {"username": "u", "password": "{a: #b"}},
                "retries": 2,
            },
            "metastore": {"dir": str(tmp_path / ".schemasync")},
            "defaults": {"policies": {"add": "null"}, "location": f"file://{tmp_path}/lake/{{topic}}"},
            "tables": [
                {"subject": "a-value", "table": "one", "keys": ["id"]},
                {"subject": "b-value", "keys": ["x", "z"], "insert_only": True},
            ],
            "spark": {"conf": {"spark.ui.enabled": "false"}},
        }
    )


WORDS = "defaults: {policies: {add: %s, drop: %s}}\ntables: [{subject: a-value, toast: %s}]"
DEFAULTS = ("evolve", "drop", "carry")


def words(directory: Path, text: str, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the settings of WORDS; two of them know null as a word."""
    config = load(directory, MINIMAL + text, environ).config
    return (config.defaults.policies.add, config.defaults.policies.drop, config.tables[0].toast)


@pytest.mark.parametrize("text", [WORDS % ("hold", "hold", "placeholder"), "tables: [{subject: a-value}]"])
def test_an_empty_variable_takes_the_files_value_away_also_where_null_is_a_word(tmp_path: Path, text: str) -> None:
    names = ("DEFAULTS__POLICIES__ADD", "DEFAULTS__POLICIES__DROP", "TABLES__0__TOAST")
    assert words(tmp_path, text, {f"SCHEMASYNC_{name}": "" for name in names}) == DEFAULTS


def test_an_empty_variable_takes_free_keys_away_too(tmp_path: Path) -> None:
    environ = {f"SCHEMASYNC_SPARK__CONF__{key}": "" for key in ("a.b", "e.f")}
    assert load(tmp_path, MINIMAL + "spark: {conf: {a.b: 1, c.d: 2}}", environ).config.spark.conf == {"c.d": "2"}


def test_an_empty_variable_of_no_setting_is_refused_like_any(tmp_path: Path) -> None:
    assert "is not a known key" in refused(tmp_path, MINIMAL, {"SCHEMASYNC_WACTH__POLL": ""})


@pytest.mark.parametrize("null", ["null", "~"])
def test_null_is_a_word_where_it_is_written(tmp_path: Path, null: str) -> None:
    assert words(tmp_path, WORDS % (null, null, null)) == ("null", "drop", "null")


def test_a_key_with_nothing_behind_it_is_not_given(tmp_path: Path) -> None:
    environ = {"SCHEMASYNC_DEFAULTS": "{policies: {add: , drop: }}"}
    assert words(tmp_path, WORDS % ("", "", "")) == DEFAULTS
    assert words(tmp_path, WORDS % ("hold", "hold", ""), environ) == DEFAULTS


@pytest.mark.parametrize("text", ["watch: {pol: }", "spark: {conf: {a.b: }}", "tables: [{subject: }]"])
def test_nothing_behind_a_key_that_is_unknown_free_or_needed_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, MINIMAL + text).startswith("FILE: ")


def test_free_keys_keep_their_case_and_those_of_ours_may_be_written_in_any(tmp_path: Path) -> None:
    environ = {
        "SCHEMASYNC_SPARK__CONF__spark.driver.maxResultSize": "2g",
        "SCHEMASYNC_TABLES__0__SUBJECT": "a-value",
        "SCHEMASYNC_TABLES__0__RENAMES__FullName": "Name",
        "SCHEMASYNC_TABLES__0__PARTITION_BY__YEAR": "year(created)",
    }
    config = load(tmp_path, MINIMAL, environ).config
    assert (config.spark.conf, config.tables[0].renames, config.tables[0].partition_by) == (
        {"spark.driver.maxResultSize": "2g"},
        {"FullName": "Name"},
        {"year": "year(created)"},
    )


LINKS = {
    f"SCHEMASYNC_{service}{name}": "tcp://10.0.0.1:80"
    for service in ("", "WATCH_", "METRICS_2_")
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR")
}


def test_what_kubernetes_says_of_services_beside_us_is_no_setting(tmp_path: Path) -> None:
    assert load(tmp_path, MINIMAL, LINKS) == load(tmp_path, MINIMAL)


@pytest.mark.parametrize("name", ["SERVER_PORT", "PORT", "SPARK__CONF_PORT_80_TCP"])
def test_what_only_looks_like_kubernetes_is_refused_like_any_unknown_setting(tmp_path: Path, name: str) -> None:
    assert "is not a known key" in refused(tmp_path, MINIMAL, {f"SCHEMASYNC_{name}": "1"})


def test_the_environment_alone_can_complete_an_empty_file(tmp_path: Path) -> None:
    assert load(tmp_path, "", {"SCHEMASYNC_REGISTRY__URL": "http://r"}).config.registry.url == "http://r"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        (
            "REGISTRY__URLL",
            "x",
            "registry.urll: is not a known key. Did you mean registry.url? "
            "Known here: url, auth, headers, ca, timeout, retries.",
        ),
        (
            "WACTH__POLL",
            "1s",
            "wacth: is not a known key. Did you mean watch? "
            "Known here: registry, metastore, spark, defaults, tables, watch, server, notify, templates.",
        ),
        ("WATCH__POLL", "1", f"watch.poll: {DURATION}"),
        (
            "WATCH",
            "{pole: 1s}",
            "watch.pole: is not a known key. Did you mean watch.poll? Known here: poll, apply, sweep.",
        ),
        ("TABLES__X__SUBJECT", "a-value", "tables: must be a list. Write [ONE, OTHER]."),
        ("DEFAULTS__DATABASE__X", "a", "defaults.database: must be text"),
        (
            "TABLES__1__TABLE",
            "x",
            "the list has no entry 0 yet, which comes before 1. Entries are counted from 0: set "
            "SCHEMASYNC_TABLES__0__TABLE.",
        ),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, name: str, value: str, error: str) -> None:
    assert refused(tmp_path, MINIMAL, {f"SCHEMASYNC_{name}": value}) == (
        f"environment variable SCHEMASYNC_{name}: {error}"
    )


def test_file_and_variable_are_named_where_either_may_be_wrong(tmp_path: Path) -> None:
    said = "metastore: has a uri, which is read for kind thrift only. Add kind: thrift, or leave the uri out."
    variable = {"SCHEMASYNC_METASTORE__URI": "thrift://hms:9083"}
    assert refused(tmp_path, MINIMAL, variable) == f"FILE and environment variable SCHEMASYNC_METASTORE__URI: {said}"


def test_a_variable_with_broken_yaml_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL, {"SCHEMASYNC_WATCH": "{poll: hush"}) == (
        "environment variable SCHEMASYNC_WATCH, line 1, column 12: this YAML cannot be read: "
        f"expected ',' or '}}', but got '<stream end>'. {QUOTE}"
    )


def test_the_file_is_blamed_for_its_own_mistakes_when_variables_are_set(tmp_path: Path) -> None:
    assert refused(tmp_path, MINIMAL + "server: x", {"SCHEMASYNC_WATCH__POLL": "1s"}) == (
        "FILE: server: must be a mapping, key: value"
    )


def test_a_variable_that_the_file_refers_to_is_no_setting(tmp_path: Path) -> None:
    text = 'registry: {url: "file:r", auth: {bearer: "${SCHEMASYNC_TOKEN}"}}'
    assert load(tmp_path, text, {"SCHEMASYNC_TOKEN": "t"}).config.registry.auth.bearer == SecretStr("t")


LEAKS = [
    "registry: {url: 'http://hush:hush@r'}",
    "registry: {url: hush}",
    "registry: hush",
    "registry: {url: 'file:r', auth: hush}",
    "registry: {url: 'file:r', auth: {bearer: [hush]}}",
    "registry: {url: 'file:r', auth: {basic: {username: u, password:hush}}}",
    "registry: {url: 'file:r', auth: {basic: {username: u, 'password:hush', 'password:hush'}}}",
    "registry: {url: 'file:r', auth: {bearer: *hush}}",
    "registry: {url: 'file:r', auth: {bearer: !hush x}}",
    "registry: {url: 'file:r', auth: {bearer: @hush}}",
    "registry: {url: 'file:r', auth: {bearer: \"hush}}",
    "registry: {url: 'file:r', auth: {bearer: !!int hush}}",
    "registry: {url: 'file:r', auth: {oauth: {token_url: t, client_id: c, client_secret: hush}}}",
    "registry: {url: '${SECRET}'}",
    "registry: {url: 'file:r'}\nnotify: [{webhook: hush}]",
    "registry: {url: 'file:r'}\nnotify: [{slack: hush}]",
    "registry: {url: 'file:r'}\nnotify: [{webhook: 'http://r', headers: {Authorization:hush}}]",
    "registry: {url: 'file:r'}\nnotify: [{webhook: 'http://r', headers: {'Authorization: hush': x}}]",
    "registry: {url: 'file:r'}\nnotify: [{command: \"it's hush\"}]",
    "registry: {url: 'file:r'}\nwatch: {apply: hush, poll: hush}\nserver: {listen: hush}",
    "registry: {url: 'file:r'}\ntables: [{subject: a-value, adopt: hush}]",
    "registry: {url: 'file:r', auth: {bearer: !a'hush x}}",
    "registry: {url: 'file:r', auth: {bearer: !'hush'x x}}",
]


@pytest.mark.parametrize("text", LEAKS)
def test_no_value_appears_in_an_error(tmp_path: Path, text: str) -> None:
    assert "hush" not in refused(tmp_path, text, {"SECRET": "hush"})


@pytest.mark.parametrize("text", LEAKS)
def test_no_value_appears_in_what_a_traceback_shows(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text, {"SECRET": "hush"})
    assert "hush" not in "".join(traceback.format_exception_only(caught.value))
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)
