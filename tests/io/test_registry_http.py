"""The HTTP registry beyond what all registries do: failures, retries, failover, credentials, TLS, odd servers."""

from __future__ import annotations

import base64
import gzip
import html
import json
import logging
import socket
import ssl
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from schemasync.errors import RegistryError, RegistryUnavailableError, SchemasyncError, UsageError
from schemasync.io.registry import kept, transport
from schemasync.io.registry.auth import NO_AUTH, Auth, BasicAuth, BearerAuth
from schemasync.io.registry.endpoint import URL_FIX, endpoints_of, redact_url
from schemasync.io.registry.http import LAG_TRIES, MOST_IN_VAIN, HttpRegistry
from tests.io.http_registry_server import HANG_UP, HTML, Canned, RegistryServer, error

pytestmark = pytest.mark.usefixtures("no_proxy")


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        running.add("s", 1)
        yield running


Connect = Callable[..., HttpRegistry]


@pytest.fixture
def connect() -> Iterator[Connect]:
    opened: list[HttpRegistry] = []

    def open_one(url: Any, **options: Any) -> HttpRegistry:
        opened.append(HttpRegistry(url, **{"backoff": 0, **options}))
        return opened[-1]

    yield open_one
    for registry in opened:
        registry.close()


@pytest.fixture
def dead_url() -> Iterator[str]:
    """A port that is ours, so that nobody else can listen on it, and that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def failure(question: Callable[[], object], kind: type[SchemasyncError] = RegistryError) -> str:
    with pytest.raises(kind) as caught:
        question()
    assert type(caught.value) is kind
    return str(caught.value)


class Naps(list[float]):
    """A sleep that only takes notes."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


# What comes back is no registry's answer


def test_html_in_place_of_json_is_an_error_that_shows_it(server: RegistryServer, connect: Connect) -> None:
    server.faults.append(HTML)
    assert failure(connect(server.url).subjects) == (
        f"registry 127.0.0.1:{server.port}, GET /subjects: the answer is not JSON: status 200, content type text/html, "
        f"beginning with '<html> <body>Please log in</body></html>'. {URL_FIX}"
    )


def test_only_the_beginning_of_a_strange_answer_is_shown(server: RegistryServer, connect: Connect) -> None:
    server.faults.append(Canned(body="\x1b[31m" + "x" * 200, content_type=""))
    assert f"content type unknown, beginning with '?[31m{'x' * 75}'." in failure(connect(server.url).subjects)


@pytest.mark.parametrize("body", ["", "not json", '{"subjects": []}', "[1]", "null", '[["s"]]', "[" * 100_000, "\xff"])
def test_subjects_are_a_list_of_names_or_an_error(server: RegistryServer, connect: Connect, body: str) -> None:
    server.faults.append(Canned(body=body))
    assert "GET /subjects: the answer is not" in failure(connect(server.url).subjects)


@pytest.mark.parametrize("body", ["{}", '["1"]', "[0]", "[-1]", "[true]", "[1.5]", "7", "[2147483648]"])
def test_versions_are_a_list_of_numbers_or_an_error(server: RegistryServer, connect: Connect, body: str) -> None:
    server.faults.append(Canned(body=body))
    assert "the answer is not a list of versions" in failure(lambda: connect(server.url).versions("s"))


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"id": 1},
        {"schema": '"int"'},
        {"id": "1", "schema": '"int"'},
        {"id": 0, "schema": '"int"'},
        {"id": True, "schema": '"int"'},
        {"id": 1, "schema": {"type": "int"}},
        {"id": 1, "schema": '"int"', "version": 2},
    ],
)
def test_a_version_has_an_id_and_a_schema_or_is_an_error(
    server: RegistryServer, connect: Connect, answer: object
) -> None:
    server.faults.append(Canned(body=json.dumps(answer)))
    assert "the answer is not version 1 of a subject" in failure(lambda: connect(server.url).schema("s", 1))


def test_references_without_a_context_are_in_that_of_their_schema(server: RegistryServer, connect: Connect) -> None:
    listed = [{"name": "a", "subject": "common", "version": 1}, {"name": "b", "subject": ":.us:b", "version": 1}]
    server.add(":.eu:r", 1, '"int"', references=listed)
    server.add("common", 1, '"string"')
    server.add(":.eu:common", 1, '"long"')
    server.add(":.us:b", 1, '"bytes"')
    assert connect(server.url).schema(":.eu:r", 1).references == ('"long"', '"bytes"')


@pytest.mark.parametrize("references", ["x", 7, [7], [{}], [{"name": "a", "subject": "s", "version": -1}]])
def test_references_are_complete_or_an_error(server: RegistryServer, connect: Connect, references: object) -> None:
    server.add("r", 1, references=references)
    assert "references have a name, a subject and a version" in failure(lambda: connect(server.url).schema("r", 1))


def test_a_text_that_is_no_json_is_handed_on_for_those_who_read_avro(server: RegistryServer, connect: Connect) -> None:
    server.add("broken", 1, "{")
    server.add("r", 1, '"int"', references=[{"name": "b", "subject": "broken", "version": 1}])
    assert connect(server.url).schema("r", 1).references == ("{",)


def test_unknown_fields_do_no_harm(server: RegistryServer, connect: Connect) -> None:
    server.add("r", 1, '"int"', guid="x", schemaType="AVRO", references=None, ruleSet={}, schemaTags=[], ts=1)
    assert connect(server.url).schema("r", 1).text == '"int"'


MAJOR = {"properties": {"application.major.version": "2", "owner": "shop", "odd": 7}}


@pytest.mark.parametrize(
    ("config", "group"),
    [
        (Canned(body='{"compatibilityGroup": "application.major.version"}'), "2"),
        (Canned(body='{"compatibilityGroup": "odd"}'), ""),
        (Canned(body='{"compatibilityLevel": "BACKWARD"}'), ""),
        (None, ""),
    ],
)
def test_a_version_belongs_to_the_group_that_its_metadata_name(
    server: RegistryServer, connect: Connect, config: Canned | None, group: str
) -> None:
    server.config = config
    server.add("r/s", 1, '"int"', metadata=MAJOR)
    assert connect(server.url).schema("r/s", 1).group == group
    assert server.targets[-1] == "/config/r%2Fs?defaultToGlobal=true"


def test_the_group_is_asked_for_again_where_credentials_were_refused_meanwhile(
    server: RegistryServer, connect: Connect
) -> None:
    server.config = error(401, 40101, "expired")
    server.add("s", 2, '"int"', metadata=MAJOR)
    registry = connect(server.url)
    assert "the registry refuses us" in failure(lambda: registry.schema("s", 2))
    server.config = Canned(body='{"compatibilityGroup": "application.major.version"}')
    assert registry.schema("s", 2).group == "2"


def test_a_version_without_metadata_costs_no_question_for_its_group(server: RegistryServer, connect: Connect) -> None:
    server.add("r", 1, '"int"', metadata=None)
    assert (connect(server.url).schema("r", 1).group, len(server.targets)) == ("", 1)


def test_a_wrong_base_path_is_no_missing_subject(server: RegistryServer, connect: Connect) -> None:
    message = failure(lambda: connect(f"{server.url}/nowhere").versions("s/t"))
    assert "GET /nowhere/subjects/s%2Ft/versions: the registry refuses the request: status 404" in message


@pytest.mark.parametrize("code", [40401, 40404])
def test_a_deleted_subject_has_no_versions(server: RegistryServer, connect: Connect, code: int) -> None:
    server.faults.append(error(404, code, "gone"))
    assert connect(server.url).versions("s") == ()


@pytest.mark.parametrize("body", ["[]", '{"error_code": "40401"}', '"x"', "<html>"])
def test_a_404_that_is_not_the_registrys_own_is_an_error(server: RegistryServer, connect: Connect, body: str) -> None:
    server.faults.append(Canned(status=404, body=body))
    assert "the registry refuses the request: status 404" in failure(lambda: connect(server.url).versions("s"))


def test_a_redirect_is_not_followed(server: RegistryServer, connect: Connect) -> None:
    server.faults.append(Canned(status=302, headers={"Location": "https://u:p@sso.example.org/login?token=x"}))
    assert failure(connect(server.url).subjects) == (
        f"registry 127.0.0.1:{server.port}, GET /subjects: the registry points elsewhere: to "
        "https://sso.example.org/login: status 302; redirects are not followed, so that credentials stay here. "
        "If that is the registry, write its address into registry.url."
    )


@pytest.mark.parametrize("place", ["http://[", "http://h:99999999/", "http://jürgen.example.org/"])
def test_a_redirect_to_what_is_no_address_is_told_like_others(
    server: RegistryServer, connect: Connect, place: str
) -> None:
    server.faults.append(Canned(status=302, headers={"Location": place}))
    assert f"the registry points elsewhere: to {place}: status 302" in failure(connect(server.url).subjects)


def test_what_comes_with_a_redirect_is_no_longer_than_other_answers(
    server: RegistryServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", 5)
    server.faults.append(Canned(status=302, headers={"Location": "/login"}, body="x" * 6))
    assert "this is no answer of a registry: it is longer than" in failure(connect(server.url).subjects)


# Refused


@pytest.mark.parametrize(
    ("auth", "fix"),
    [
        (NO_AUTH, "Set registry.auth (basic, bearer, oauth or mtls): no user or token is configured."),
        (BasicAuth(username="u", password="wr0ng"), "Check username and password in registry.auth.basic."),
        (BearerAuth(token="wr0ng"), "Check the token in registry.auth.bearer: it may have expired."),
    ],
)
def test_a_401_is_final_and_says_which_setting_to_look_at(
    server: RegistryServer, connect: Connect, auth: Auth, fix: str
) -> None:
    server.authorization = "Bearer right"
    message = failure(connect(server.url, auth=auth).subjects)
    assert (fix in message, "the registry refuses us" in message, len(server.log)) == (True, True, 1)


def test_a_403_is_final(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(status=403, body="denied", content_type="text/plain")
    assert (failure(connect(server.url).subjects), len(server.log)) == (
        f"registry 127.0.0.1:{server.port}, GET /subjects: the registry does not let us read this: status 403, content "
        "type text/plain, beginning with 'denied'. Have read access granted to this user (registry.auth), or exclude "
        "the subject under tables.",
        1,
    )


def test_basic_credentials_are_sent_as_utf_8(server: RegistryServer, connect: Connect) -> None:
    server.authorization = "Basic " + base64.b64encode("jürgen:пароль".encode()).decode()
    assert connect(server.url, auth=BasicAuth(username="jürgen", password="пароль")).subjects() == ("s",)


def test_a_bearer_token_is_sent(server: RegistryServer, connect: Connect) -> None:
    server.authorization = "Bearer t0ken"
    assert connect(server.url, auth=BearerAuth(token="t0ken")).subjects() == ("s",)


def test_netrc_has_no_say(
    server: RegistryServer, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    connect(server.url).subjects()
    assert "Authorization" not in server.log[0].headers


@pytest.mark.parametrize("token", ["s3cret\n", "", "s3cret\r\nEvil: 1", "ключ s3cret"])
def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(token: str) -> None:
    message = failure(lambda: HttpRegistry("http://h", auth=BearerAuth(token=token)), UsageError)
    assert ("the value is empty or holds spaces" in message, "s3cret" in message) == (True, False)


# Credentials in the URL


def test_a_user_in_the_url_becomes_basic_auth(server: RegistryServer, connect: Connect) -> None:
    server.authorization = "Basic " + base64.b64encode(b"u:p@s/s,w").decode()
    assert connect(server.url.replace("//", "//u:p%40s%2Fs,w@")).subjects() == ("s",)


@pytest.mark.parametrize("fault", [HTML, Canned(status=401), Canned(status=302), Canned(status=503), HANG_UP])
def test_credentials_are_in_no_error_log_or_repr(
    server: RegistryServer, connect: Connect, caplog: pytest.LogCaptureFixture, fault: Canned
) -> None:
    caplog.set_level(logging.DEBUG)
    server.always = fault
    registry = connect(server.url.replace("//", "//user:s3cret@"), retries=1)
    with pytest.raises(SchemasyncError) as caught:
        registry.subjects()
    trace = "".join(traceback.format_exception(caught.value))
    told = f"{trace}{caplog.text}{registry!r}{BasicAuth(username='u', password='s3cret')}"
    assert "s3cret" not in told


@pytest.mark.parametrize("echoed", ["s3cret", base64.b64encode(b"user:s3cret").decode()])
def test_a_server_that_echoes_credentials_does_not_bring_them_into_an_error(
    server: RegistryServer, connect: Connect, echoed: str
) -> None:
    server.faults.append(Canned(body=f"you sent {echoed}", content_type="text/plain"))
    registry = connect(server.url, auth=BasicAuth(username="user", password="s3cret"))
    assert "beginning with 'you sent ***'" in failure(registry.subjects)


ODD = 'p@ss/"<ö>\\+ w'


@pytest.mark.parametrize(
    "echoed",
    [
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        html.escape(ODD),
        quote(ODD),
        quote(ODD, safe=""),
        quote_plus(ODD),
        quote(base64.b64encode(f"user:{ODD}".encode()).decode(), safe=""),
    ],
)
def test_a_server_that_echoes_credentials_in_its_own_writing_does_not_bring_them_into_an_error(
    server: RegistryServer, connect: Connect, echoed: str
) -> None:
    server.faults.append(Canned(body=f"you sent {echoed}", content_type="text/plain"))
    registry = connect(server.url, auth=BasicAuth(username="user", password=ODD))
    assert "beginning with 'you sent ***'" in failure(registry.subjects)


def test_headers_are_shown_like_the_answer(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url, auth=BearerAuth(token="t0ken"))
    server.faults.append(Canned(status=302, headers={"Location": "https://sso.example.org/t0ken/login"}))
    server.faults.append(Canned(status=400, content_type="te\x1bxt/t0ken" + "x" * 200))
    assert "points elsewhere: to https://sso.example.org/***/login:" in failure(registry.subjects)
    assert f"content type te?xt/***{'x' * 71}, beginning" in failure(registry.subjects)


def test_the_repr_names_the_servers(connect: Connect) -> None:
    registry = connect("https://u:p@a.example.org/, http://b.example.org:81/apis/ccompat/v7/")
    assert repr(registry) == "HttpRegistry('https://a.example.org,http://b.example.org:81/apis/ccompat/v7')"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:8081/x", "http://h:8081/x"),
        ("https://u:p@h/x?token=t#f", "https://h/x"),
        ("https://u:p/w@h", "https://h"),
        ("https://u:p@w@h:1", "https://h:1"),
        ("https://u:p,w@a,http://u:p@b", "https://a,http://b"),
        ("https://u:p?w#@h/x", "https://h/x"),
        ("u:p@h", "h"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_what_is_secret(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8081",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://[::1",
        "http://h/?token=s3cret",
        "https://u:s3cret/w@h",
        "https://u:12/s3cret@h",
        "https://u:s3cret#w@h",
    ],
)
def test_what_is_no_registry_url_is_refused_without_showing_secrets(url: str) -> None:
    with pytest.raises(UsageError, match="this is not the URL of a schema registry") as caught:
        HttpRegistry(url)
    assert "s3cret" not in str(caught.getrepr(chain=True, style="value"))


def test_two_kinds_of_credentials_are_refused() -> None:
    message = failure(lambda: HttpRegistry("http://u:p@h", auth=BearerAuth(token="t")), UsageError)
    assert message.startswith("registry.url http://h: there are credentials in the URL and in registry.auth.")


# Nothing, or not now


def test_nothing_reachable_is_an_error_that_names_the_host_and_the_tries(connect: Connect, dead_url: str) -> None:
    message = failure(connect(dead_url, retries=2).subjects, RegistryUnavailableError)
    assert message == (
        f"registry {dead_url[7:]}, GET /subjects: no usable answer, tried 3 times: Connection refused. "
        "Check that the registry runs and that registry.url, proxies and firewalls lead to it."
    )


def test_a_failure_does_not_tell_what_the_caller_was_handling(connect: Connect, dead_url: str) -> None:
    try:
        raise OSError("s3cret")
    except OSError:
        message = failure(connect(dead_url, retries=0).subjects, RegistryUnavailableError)
    assert "tried 1 time: Connection refused." in message


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 507, 520, 526, 599])
def test_what_may_pass_is_tried_again(server: RegistryServer, connect: Connect, status: int) -> None:
    server.faults.extend([Canned(status=status)] * 2)
    assert (connect(server.url).subjects(), len(server.log)) == (("s",), 3)


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 405, 406, 422, 501, 505, 600])
def test_what_is_final_is_not_tried_again(server: RegistryServer, connect: Connect, status: int) -> None:
    server.always = Canned(status=status)
    failure(connect(server.url).subjects)
    assert len(server.log) == 1


def test_tries_end(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(status=503)
    message = failure(connect(server.url, retries=3).subjects, RegistryUnavailableError)
    assert ("tried 4 times: it answered with status 503." in message, len(server.log)) == (True, 4)


def test_no_retries_mean_one_try(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(status=503)
    assert "tried 1 time:" in failure(connect(server.url, retries=0).subjects, RegistryUnavailableError)


@pytest.mark.parametrize("fault", [HANG_UP, Canned(body='["s"', length=100)])
def test_a_connection_that_breaks_is_tried_again(server: RegistryServer, connect: Connect, fault: Canned) -> None:
    server.faults.extend([fault] * 3)
    assert (connect(server.url).subjects(), len(server.log)) == (("s",), 4)


def test_an_answer_that_breaks_off_every_time_is_an_error(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(body="[", length=100)
    message = failure(connect(server.url, retries=1).subjects, RegistryUnavailableError)
    assert "tried 2 times: the answer broke off, " in message


def test_a_server_that_does_not_answer_in_time_is_unavailable(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(delay=5)
    registry = connect(server.url, timeout=(1, 0.05), retries=1)
    assert "tried 2 times: timed out." in failure(registry.subjects, RegistryUnavailableError)


@pytest.mark.parametrize("status", [200, 503])
def test_an_answer_that_never_ends_is_given_up(server: RegistryServer, connect: Connect, status: int) -> None:
    server.always = Canned(status=status, body="[", trickle=0.01)
    registry = connect(server.url, timeout=(1, 0.2), retries=1)
    message = failure(registry.subjects, RegistryUnavailableError)
    assert "tried 2 times: timed out." in message


def test_an_answer_that_is_too_long_is_no_registrys(
    server: RegistryServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", 1_000_000)
    server.faults.append(Canned(body=" " * 1_000_001))
    assert failure(connect(server.url).subjects) == (
        f"registry 127.0.0.1:{server.port}, GET /subjects: this is no answer of a registry: it is longer than 1 MB. "
        f"{URL_FIX}"
    )


COMPRESSED = {"Content-Encoding": "gzip"}


def test_an_answer_may_be_compressed(server: RegistryServer, connect: Connect) -> None:
    names = tuple(f"s{number:06}" for number in range(100_000, 200_000))
    server.faults.append(Canned(body=gzip.compress(json.dumps(names).encode()), headers=COMPRESSED))
    assert connect(server.url).subjects() == names


def test_an_answer_that_is_not_compressed_as_it_says_is_tried_again(server: RegistryServer, connect: Connect) -> None:
    server.faults.append(Canned(body="[]", headers=COMPRESSED))
    assert (connect(server.url).subjects(), len(server.log)) == (("s",), 2)


def test_one_connection_serves_many_questions(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url)
    for _ in range(3):
        registry.subjects()
    assert len({asked.port for asked in server.log}) == 1


def test_pauses_double_with_jitter_up_to_a_cap(server: RegistryServer, connect: Connect) -> None:
    server.faults.extend([Canned(status=503)] * 8)
    naps, dice = Naps(), iter([0.0, 1.0, 0.5, 0, 0, 0, 0, 1])
    connect(server.url, retries=8, backoff=0.5, sleep=naps, random=lambda: next(dice)).subjects()
    assert naps == [0.25, 1.0, 1.5, 2.0, 4.0, 8.0, 15.0, 30.0]


@pytest.mark.parametrize(
    ("value", "pause"),
    [("7", 7.5), ("86400", 60.5), ("0", 0.5), ("-5", 0.5), ("soon", 0.5), ("", 0.5), ("9" * 400, 60.5)],
)
def test_retry_after_is_respected_up_to_a_cap(
    server: RegistryServer, connect: Connect, value: str, pause: float
) -> None:
    server.faults.append(Canned(status=429, headers={"Retry-After": value}))
    naps = Naps()
    connect(server.url, backoff=0.5, sleep=naps, random=lambda: 1.0).subjects()
    assert naps == [pause]


def test_who_is_woken_from_a_pause_asks_no_more(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(status=503)
    message = failure(connect(server.url, sleep=lambda _: True).subjects, RegistryUnavailableError)
    assert (message, len(server.log)) == (
        f"registry 127.0.0.1:{server.port}: the question is not repeated: schemasync is told to end. Run it again.",
        1,
    )


@pytest.mark.parametrize(("timestamp", "pause"), [(0, 0.0), (4e9, 60.0)])
def test_retry_after_may_be_a_date(server: RegistryServer, connect: Connect, timestamp: float, pause: float) -> None:
    server.faults.append(Canned(status=503, headers={"Retry-After": formatdate(timestamp, usegmt=True)}))
    naps = Naps()
    connect(server.url, sleep=naps).subjects()
    assert naps == [pause]


def test_a_proxy_address_that_is_none_is_one_error(
    server: RegistryServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http:///")
    monkeypatch.setenv("http_proxy", "http:///")
    assert "the request cannot be sent" in failure(connect(server.url).subjects)


# Several servers


def test_the_next_server_is_asked_at_once_when_one_is_silent(
    server: RegistryServer, connect: Connect, dead_url: str
) -> None:
    naps = Naps()
    assert (connect([dead_url, server.url], sleep=naps).subjects(), naps) == (("s",), [])


def test_the_server_that_answered_last_is_asked_first(server: RegistryServer, connect: Connect) -> None:
    with RegistryServer() as second:
        server.faults.append(HANG_UP)
        registry = connect([server.url, second.url])
        registry.subjects()
        registry.versions("s")
        assert (server.targets, second.targets) == (["/subjects"], ["/subjects", "/subjects/s/versions"])


def test_the_first_server_is_asked_again_when_the_second_falls_silent(server: RegistryServer, connect: Connect) -> None:
    with RegistryServer() as second:
        second.always = Canned(body='["second"]')
        server.faults.append(HANG_UP)
        registry = connect(f"{server.url},{second.url}")
        first = registry.subjects()
        second.always = HANG_UP
        assert (first, registry.subjects()) == (("second",), ("s",))


@pytest.mark.parametrize("status", [503, 429, 500])
def test_the_next_server_is_asked_at_once_when_one_has_no_answer_for_now(
    server: RegistryServer, connect: Connect, status: int
) -> None:
    with RegistryServer() as first:
        first.always = Canned(status=status, headers={"Retry-After": "60"})
        naps = Naps()
        registry = connect([first.url, server.url], sleep=naps)
        assert (registry.subjects(), registry.versions("s"), naps) == (("s",), (1,), [])
    assert first.targets == ["/subjects"]


def test_the_longest_pause_that_a_server_asks_for_counts(
    server: RegistryServer, connect: Connect, dead_url: str
) -> None:
    server.always = Canned(status=429, headers={"Retry-After": "30"})
    naps = Naps()
    message = failure(connect([server.url, dead_url], retries=1, sleep=naps).subjects, RegistryUnavailableError)
    assert (naps, "it answered with status 429" in message) == ([30.0], True)


def test_all_servers_are_named_when_none_answers(connect: Connect, dead_url: str) -> None:
    message = failure(connect(f"{dead_url}, {dead_url}", retries=1).subjects, RegistryUnavailableError)
    assert f"registry {dead_url[7:]}, {dead_url[7:]}, GET /subjects: no usable answer, tried 2 times" in message


def test_each_server_gets_its_own_credentials(server: RegistryServer, connect: Connect, dead_url: str) -> None:
    server.authorization = "Basic " + base64.b64encode(b"b:2").decode()
    urls = [dead_url.replace("//", "//a:1@"), server.url.replace("//", "//b:2@")]
    assert connect(urls).subjects() == ("s",)


# Paths and paging


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_base_path_is_kept(connect: Connect, slash: str) -> None:
    with RegistryServer(base_path="/apis/ccompat/v7") as server:
        server.add("s", 1)
        assert (connect(server.url + slash).subjects(), server.targets) == (("s",), ["/apis/ccompat/v7/subjects"])


def test_subjects_are_encoded_on_the_wire(server: RegistryServer, connect: Connect) -> None:
    connect(server.url).versions(":.ctx:a/b 100%?#ü")
    assert server.targets == ["/subjects/%3A.ctx%3Aa%2Fb%20100%25%3F%23%C3%BC/versions"]


def test_a_subject_that_no_address_can_name_is_an_error_of_its_own(server: RegistryServer, connect: Connect) -> None:
    server.add("half \ud800", 1)
    registry = connect(server.url)
    message = failure(lambda: registry.versions(registry.subjects()[0]))
    assert message.startswith(
        r"subject 'half \ud800': nobody can ask for this subject: its name has half of a character."
    )


@pytest.mark.parametrize(
    ("count", "largest_page", "pages", "requests"),
    [
        (999, None, True, 1),
        (1000, None, True, 2),
        (1000, None, False, 2),
        (1001, None, True, 1),
        (2500, 1000, True, 3),
        (2000, 1000, True, 3),
    ],
)
def test_subjects_are_complete_also_where_the_server_cuts_at_1000(
    connect: Connect, count: int, largest_page: int | None, pages: bool, requests: int
) -> None:
    names = tuple(f"s{number:04}" for number in range(count))
    with RegistryServer() as server:
        server.subjects = {name: {} for name in reversed(names)}
        server.largest_page, server.pages = largest_page, pages
        assert (connect(server.url).subjects(), len(server.log)) == (names, requests)


# What changes and what does not


def test_a_schema_is_asked_for_once(server: RegistryServer, connect: Connect) -> None:
    server.add("r", 1, '"int"', references=[{"name": "s", "subject": "s", "version": 1}])
    registry = connect(server.url)
    assert (registry.schema("r", 1), len(server.log)) == (registry.schema("r", 1), 2)


def test_so_much_text_is_kept_and_whole_subjects_give_way(
    server: RegistryServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_CHARACTERS", 3 * len('"string"'))
    server.add("s", 2)
    server.add("t", 1)
    server.add("u", 1)
    registry = connect(server.url)
    asked = [("s", 1), ("s", 2), ("t", 1), ("s", 1), ("u", 1), ("s", 1), ("s", 2), ("t", 1)]
    for subject, version in asked:
        registry.schema(subject, version)
    assert [target.split("/")[2::2] for target in server.targets] == [
        ["s", "1"],
        ["s", "2"],
        ["t", "1"],
        ["u", "1"],
        ["t", "1"],
    ]


def test_of_a_subject_that_lost_a_version_nothing_is_kept(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2)
    registry = connect(server.url)
    for version in registry.versions("s"):
        registry.schema("s", version)
    # Deleted for good and made again, between two lists.
    del server.subjects["s"]
    server.add("s", 1, '"int"')
    assert [registry.schema("s", version).text for version in registry.versions("s")] == ['"int"']


def test_of_a_subject_that_is_not_listed_nothing_is_kept(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url)
    registry.schema("s", 1)
    del server.subjects["s"]
    registry.subjects()
    server.add("s", 1, '"int"')
    assert registry.schema("s", 1).text == '"int"'


def test_the_newest_version_is_compared_once_an_hour(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2)
    now = 0.0
    registry = connect(server.url, clock=lambda: now)

    def texts() -> list[str]:
        return [registry.schema("s", version).text for version in registry.versions("s")]

    before = texts()
    del server.subjects["s"]
    server.add("s", 1, '"int"')
    server.add("s", 2, '"long"')
    now = kept.TRUSTED_SECONDS - 1
    trusted = texts()
    now = kept.TRUSTED_SECONDS
    assert (trusted, texts()) == (before, ['"int"', '"long"'])


def test_a_newest_version_that_stayed_costs_one_question_an_hour(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2)
    now = 0.0
    registry = connect(server.url, clock=lambda: now)
    for hours in (0, 1, 1.5):
        now = hours * kept.TRUSTED_SECONDS
        for version in registry.versions("s"):
            registry.schema("s", version)
    asked = [target.removeprefix("/subjects/s/versions") for target in server.targets]
    assert asked == ["", "/1", "/2", "", "/2", ""]


def test_a_subject_that_was_made_anew_with_more_versions_is_read_again(
    server: RegistryServer, connect: Connect
) -> None:
    registry = connect(server.url)
    for version in registry.versions("s"):
        registry.schema("s", version)
    # Deleted for good and made again, between two lists.
    del server.subjects["s"]
    server.add("s", 1, '"int"')
    server.add("s", 2, '"long"')
    assert [registry.schema("s", version).text for version in registry.versions("s")] == ['"int"', '"long"']


def test_a_new_version_costs_one_more_question_for_the_one_before_it(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url)
    for versions in ([], [2], []):
        for version in versions:
            server.add("s", version)
        for version in registry.versions("s"):
            registry.schema("s", version)
    asked = [target.removeprefix("/subjects/s/versions") for target in server.targets]
    assert asked == ["", "/1", "", "/1", "/2", ""]


def test_a_version_that_a_follower_does_not_have_yet_is_asked_for_again(
    server: RegistryServer, connect: Connect
) -> None:
    server.faults.extend([error(404, 40402, "no version"), error(404, 40403, "no schema"), error(404, 40401, "none")])
    naps = Naps()
    registry = connect(server.url, backoff=1, sleep=naps, random=lambda: 1.0)
    assert (registry.schema("s", 1).version, naps) == (1, [1.0, 2.0, 4.0])


@pytest.mark.parametrize("late", [Canned(body="[1]"), Canned(body="[]"), error(404, 40401, "no subject")])
def test_a_list_of_a_follower_that_lacks_versions_is_asked_for_again(
    server: RegistryServer, connect: Connect, late: Canned
) -> None:
    server.add("s", 2)
    naps = Naps()
    registry = connect(server.url, backoff=1, sleep=naps, random=lambda: 1.0)
    before = registry.versions("s")
    server.faults.extend([late, late])
    assert (before, registry.versions("s"), naps) == ((1, 2), (1, 2), [1.0, 2.0])


def test_versions_that_a_follower_does_not_have_yet_are_asked_for_again(
    server: RegistryServer, connect: Connect
) -> None:
    registry = connect(server.url)
    registry.subjects()
    server.faults.append(error(404, 40401, "no subject"))
    assert registry.versions("s") == (1,)


def test_subjects_that_a_follower_lacks_are_asked_for_again(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url)
    registry.subjects()
    server.faults.append(Canned(body="[]"))
    assert registry.subjects() == ("s",)


def test_what_stays_missing_is_deleted_and_not_asked_for_again(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2)
    server.add("t", 1)
    registry = connect(server.url)

    def listed() -> tuple[tuple[str, ...], tuple[int, ...], int]:
        before = len(server.log)
        return registry.subjects(), registry.versions("s"), len(server.log) - before

    found = [listed()]
    del server.subjects["t"], server.subjects["s"][2]
    found += [listed(), listed()]
    assert found == [(("s", "t"), (1, 2), 2), (("s",), (1,), 8), (("s",), (1,), 2)]


def test_a_list_without_older_versions_lags_behind_nothing(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2)
    registry = connect(server.url)
    before = registry.versions("s")
    del server.subjects["s"][1]
    assert (before, registry.versions("s"), len(server.log)) == ((1, 2), (2,), 2)


def test_after_some_lists_that_stay_shorter_others_are_taken_as_they_come(
    server: RegistryServer, connect: Connect
) -> None:
    names = [f"s{number}" for number in range(10)]
    for name, version in product(names, (1, 2, 3)):
        server.add(name, version)
    registry = connect(server.url)

    def questions() -> int:
        before = len(server.log)
        registry.subjects()
        for name in names:
            registry.versions(name)
        return len(server.log) - before

    asked = [questions()]
    for version in (3, 2):
        for name in names:
            del server.subjects[name][version]
        asked.append(questions())
    assert asked == [11, *[11 + MOST_IN_VAIN * (LAG_TRIES - 1)] * 2]


@pytest.mark.parametrize("faults", [[], [Canned(body="[1]"), Canned(body='["s"]')] * 2], ids=["unknown", "unlisted"])
def test_a_subject_that_no_list_has_is_not_waited_for(
    server: RegistryServer, connect: Connect, faults: list[Canned]
) -> None:
    registry = connect(server.url)
    registry.subjects()
    server.faults.extend(faults)
    for _ in range(2):
        registry.versions("nobody")
        registry.subjects()
    assert len(server.log) == 5


def test_the_wait_for_a_follower_is_ours_alone(server: RegistryServer, connect: Connect) -> None:
    server.faults.append(Canned(status=404, body='{"error_code": 40402}', headers={"Retry-After": "7"}))
    naps = Naps()
    connect(server.url, backoff=1, sleep=naps, random=lambda: 1.0).schema("s", 1)
    assert naps == [1.0]


def test_a_version_that_stays_missing_is_an_error_in_the_end(server: RegistryServer, connect: Connect) -> None:
    message = failure(lambda: connect(server.url).schema("s", 9))
    assert ("there is no version 9 of subject 's', asked 4 times" in message, len(server.log)) == (True, 4)


def test_several_threads_may_ask(server: RegistryServer, connect: Connect) -> None:
    for version in range(2, 9):
        server.add("s", version)
    registry = connect(server.url)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda version: registry.schema("s", version).version, list(range(1, 9)) * 3))
    assert found == list(range(1, 9)) * 3


# The probe for the newest id


def test_the_newest_id_costs_one_request(server: RegistryServer, connect: Connect) -> None:
    server.add("s", 2, id=17)
    assert (connect(server.url).newest_id(), server.targets) == (17, ["/schemas/ids/1?fetchMaxId=true"])


def test_the_newest_id_never_goes_backwards(server: RegistryServer, connect: Connect) -> None:
    server.faults.extend(Canned(body=json.dumps({"schema": "", "maxId": newest})) for newest in (5, 4, 6, 5))
    registry = connect(server.url)
    assert [registry.newest_id() for _ in range(4)] == [5, 5, 6, 6]


def test_a_known_id_is_probed_where_id_1_does_not_exist(connect: Connect) -> None:
    with RegistryServer() as server:
        server.add("s", 1, id=100)
        registry = connect(server.url)
        before = registry.newest_id()
        registry.schema("s", 1)
        assert (before, registry.newest_id(), server.targets[-1]) == (None, 100, "/schemas/ids/100?fetchMaxId=true")


def test_id_1_is_probed_where_the_known_one_was_deleted(server: RegistryServer, connect: Connect) -> None:
    server.add("t", 1, id=50)
    registry = connect(server.url)
    registry.schema("t", 1)
    del server.subjects["t"]
    assert registry.newest_id() == 1


@pytest.mark.parametrize("status", [302, 400, 403, 404, 405, 422, 501])
def test_the_newest_id_is_unknown_where_the_probe_is_not_served(
    server: RegistryServer, connect: Connect, status: int
) -> None:
    server.always = Canned(status=status, body="<html>")
    assert connect(server.url).newest_id() is None


def test_the_newest_id_is_unknown_where_the_answer_lacks_it(server: RegistryServer, connect: Connect) -> None:
    server.max_id = False
    assert connect(server.url).newest_id() is None


def test_the_newest_id_is_unknown_once_a_context_is_used(server: RegistryServer, connect: Connect) -> None:
    registry = connect(server.url)
    registry.versions(":.ctx:s")
    assert registry.newest_id() is None


@pytest.mark.parametrize("fault", [HTML, Canned(body="[]"), Canned(status=401)])
def test_a_probe_that_is_answered_strangely_is_an_error(
    server: RegistryServer, connect: Connect, fault: Canned
) -> None:
    server.faults.append(fault)
    failure(connect(server.url).newest_id)


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture(scope="module")
def client_cert(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("client")
    issued = authority.issue_cert("client.example.org")
    certificate, key = directory / "client.pem", directory / "client.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    return str(certificate), str(key)


def tls_context(authority: trustme.CA, name: str = "127.0.0.1", *, ask_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if ask_client:
        # Under TLS 1.3 a client learns only after its request that its certificate is missing.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[RegistryServer]:
    with RegistryServer(tls=tls_context(authority)) as running:
        running.add("s", 1)
        yield running


def test_a_custom_ca_is_trusted(secure: RegistryServer, connect: Connect, ca_file: str) -> None:
    assert connect(secure.url, ca=ca_file).subjects() == ("s",)


def test_a_custom_ca_wins_over_the_environment(
    secure: RegistryServer, connect: Connect, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other.pem"))
    assert connect(secure.url, ca=ca_file).subjects() == ("s",)


def test_an_unknown_ca_is_a_final_error(secure: RegistryServer, connect: Connect) -> None:
    message = failure(connect(secure.url).subjects)
    assert message.startswith(f"registry 127.0.0.1:{secure.port}, GET /subjects: no trusted connection: [SSL: CERT")


def test_a_certificate_for_another_host_is_a_final_error(authority: trustme.CA, connect: Connect, ca_file: str) -> None:
    with RegistryServer(tls=tls_context(authority, "other.example.org")) as server:
        assert "no trusted connection" in failure(connect(server.url, ca=ca_file).subjects)


def test_https_to_a_plain_server_is_a_final_error(server: RegistryServer, connect: Connect) -> None:
    assert "no trusted connection" in failure(connect(server.url.replace("http:", "https:")).subjects)


def test_a_client_certificate_is_shown_to_a_server_that_asks(
    authority: trustme.CA, connect: Connect, ca_file: str, client_cert: tuple[str, str]
) -> None:
    with RegistryServer(tls=tls_context(authority, ask_client=True)) as server:
        assert connect(server.url, ca=ca_file, client_cert=client_cert).subjects() == ()


def test_a_missing_client_certificate_is_a_final_error(authority: trustme.CA, connect: Connect, ca_file: str) -> None:
    with RegistryServer(tls=tls_context(authority, ask_client=True)) as server:
        assert "a client certificate in registry.auth.mtls" in failure(connect(server.url, ca=ca_file).subjects)


def test_a_ca_that_cannot_be_read_is_a_wrong_configuration(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.pem")
    assert failure(lambda: HttpRegistry("https://h", ca=missing), UsageError).startswith(
        f"registry.ca {missing}: the certificate files cannot be used: No such file or directory."
    )


def test_a_directory_of_certificates_can_be_given(connect: Connect, tmp_path: Path) -> None:
    assert repr(connect("https://h", ca=str(tmp_path))) == "HttpRegistry('https://h')"


def test_a_key_that_does_not_belong_to_its_certificate_is_a_wrong_configuration(
    client_cert: tuple[str, str], ca_file: str
) -> None:
    message = failure(lambda: HttpRegistry("https://h", client_cert=(ca_file, client_cert[1])), UsageError)
    assert f"registry.auth.mtls {ca_file} and {client_cert[1]}: the certificate files cannot be used" in message


def test_an_encrypted_key_is_a_wrong_configuration_and_asks_nobody(
    client_cert: tuple[str, str], tmp_path: Path
) -> None:
    key = serialization.load_pem_private_key(Path(client_cert[1]).read_bytes(), password=None)
    locked = tmp_path / "locked.key"
    secret = serialization.BestAvailableEncryption(b"locked")
    pkcs8 = serialization.PrivateFormat.PKCS8
    locked.write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, secret))
    message = failure(lambda: HttpRegistry("https://h", client_cert=(client_cert[0], str(locked))), UsageError)
    assert "must belong to its certificate and must not be encrypted." in message


def test_an_ipv6_address_and_standard_ports_are_named_as_people_write_them() -> None:
    endpoints = endpoints_of(("http://[::1]:81", "https://h", "http://h"), NO_AUTH)
    assert [endpoint.host for endpoint in endpoints] == ["[::1]:81", "h:443", "h:80"]
