"""OAuth 2.0 client credentials, and headers of one's own, before a registry that wants them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import trustme

from schemasync.errors import RegistryError, RegistryUnavailableError, UsageError
from schemasync.io.registry.auth import OAuth
from schemasync.io.registry.http import HttpRegistry
from tests.io.http_registry_server import HANG_UP, HTML, Canned, RegistryServer, TokenServer, error
from tests.io.test_registry_http import Naps, failure, tls_context

pytestmark = pytest.mark.usefixtures("no_proxy")

SECRET = "p+ss/wörd"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        running.authorization = "Bearer t1"
        running.add("s", 1)
        yield running


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer() as running:
        yield running


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Connect = Callable[..., HttpRegistry]


@pytest.fixture
def connect(server: RegistryServer, tokens: TokenServer, clock: Clock) -> Iterator[Connect]:
    opened: list[HttpRegistry] = []

    def open_one(**options: object) -> HttpRegistry:
        given = {"url": server.url, "auth": client(f"{tokens.url}/token"), "backoff": 0, "clock": clock, **options}
        opened.append(HttpRegistry(**given))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for registry in opened:
        registry.close()


def client(url: str, **more: str) -> OAuth:
    return OAuth(url=url, client_id="me@work", client_secret=SECRET, **more)


def test_a_token_is_asked_for_as_the_standard_says(tokens: TokenServer, connect: Connect) -> None:
    assert connect(auth=client(f"{tokens.url}/token?v=2", scope="read write")).subjects() == ("s",)
    (asked,) = tokens.log
    who = base64.b64encode(b"me%40work:p%2Bss%2Fw%C3%B6rd").decode()
    assert (asked.target, asked.headers["Authorization"], parse_qs(asked.body.decode())) == (
        "/token?v=2",
        f"Basic {who}",
        {"grant_type": ["client_credentials"], "scope": ["read write"]},
    )


def test_without_a_scope_none_is_asked_for(tokens: TokenServer, connect: Connect) -> None:
    connect().subjects()
    assert parse_qs(tokens.log[0].body.decode()) == {"grant_type": ["client_credentials"]}


@pytest.mark.parametrize(("seconds", "end"), [(3600, 3570.0), ("3600", 3570.0), (100, 90.0), (0, 0.0), (-5, 0.0)])
def test_a_token_serves_until_shortly_before_it_expires(
    server: RegistryServer, tokens: TokenServer, clock: Clock, connect: Connect, seconds: object, end: float
) -> None:
    server.authorization, tokens.seconds = None, seconds
    registry = connect()
    given = []
    for clock.now in (0.0, max(end - 0.001, 0.0), end):
        registry.subjects()
        given.append(tokens.given)
    assert given == ([1, 1, 2] if end else [1, 2, 3])


@pytest.mark.parametrize("seconds", [None, "soon"])
def test_a_token_that_does_not_say_when_it_expires_serves_until_it_is_refused(
    tokens: TokenServer, clock: Clock, connect: Connect, seconds: object
) -> None:
    tokens.seconds = seconds
    registry = connect()
    for clock.now in (0.0, 1e12):
        registry.subjects()
    assert tokens.given == 1


def test_threads_share_a_token(tokens: TokenServer, connect: Connect) -> None:
    registry = connect()
    tokens.faults.append(Canned(body=json.dumps({"access_token": "t1"}), delay=0.1))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: registry.subjects(), range(8)))
    assert (set(found), len(tokens.log)) == ({("s",)}, 1)


def test_a_token_that_is_refused_gives_way_to_another_one(
    server: RegistryServer, tokens: TokenServer, connect: Connect
) -> None:
    registry = connect()
    registry.subjects()
    server.authorization = "Bearer t2"
    assert (registry.subjects(), tokens.given) == (("s",), 2)
    assert [asked.headers["Authorization"] for asked in server.log] == ["Bearer t1", "Bearer t1", "Bearer t2"]


def test_two_tokens_that_are_refused_are_final(server: RegistryServer, tokens: TokenServer, connect: Connect) -> None:
    server.authorization = "Bearer never"
    message = failure(connect().subjects)
    assert ("It refuses a new token of registry.auth.oauth" in message, tokens.given, len(server.log)) == (True, 2, 2)


def test_a_token_goes_to_the_next_registry_too(server: RegistryServer, tokens: TokenServer, connect: Connect) -> None:
    with RegistryServer() as silent:
        silent.always = HANG_UP
        assert (connect(url=[silent.url, server.url]).subjects(), tokens.given) == (("s",), 1)


@pytest.mark.parametrize("fault", [Canned(status=503), Canned(status=429), HANG_UP, Canned(body="{", length=9)])
def test_a_server_of_tokens_that_fails_for_a_while_is_asked_again(
    tokens: TokenServer, connect: Connect, fault: Canned
) -> None:
    tokens.faults.extend([fault, fault])
    assert (connect(retries=2).subjects(), len(tokens.log)) == (("s",), 3)


def test_a_server_of_tokens_that_stays_away_is_the_registry_unavailable(
    server: RegistryServer, tokens: TokenServer, connect: Connect
) -> None:
    tokens.always = Canned(status=503, headers={"Retry-After": "7"})
    naps = Naps()
    message = failure(connect(retries=1, sleep=naps).subjects, RegistryUnavailableError)
    assert (message, naps, server.log) == (
        f"registry 127.0.0.1:{server.port}, GET /subjects: no usable answer, tried 2 times: no token from "
        f"127.0.0.1:{tokens.port}, it answered with status 503. Check that the registry and the server of its tokens "
        "run and that registry.url, token_url, proxies and firewalls lead to them.",
        [7.0],
        [],
    )


@pytest.mark.parametrize(
    "answer",
    [
        Canned(status=401, body=json.dumps({"error": "invalid_client"})),
        Canned(status=400, body=json.dumps({"error": "invalid_scope", "secret": SECRET})),
        Canned(status=403, body="no"),
    ],
)
def test_a_client_that_is_refused_is_told_at_once(
    server: RegistryServer, tokens: TokenServer, connect: Connect, answer: Canned
) -> None:
    tokens.always = answer
    message = failure(connect().subjects)
    assert message.startswith(f"token server 127.0.0.1:{tokens.port}, POST /token: there is no token for the registry")
    assert message.endswith("Check client_id, client_secret and scope in registry.auth.oauth.")
    assert (SECRET in message, json.dumps(SECRET)[1:-1] in message, len(tokens.log), server.log) == (
        False,
        False,
        1,
        [],
    )


@pytest.mark.parametrize(
    "answer",
    [
        HTML,
        Canned(body="[]"),
        Canned(body="{}"),
        Canned(body='{"access_token": ""}'),
        Canned(body='{"access_token": 7}'),
        Canned(body='{"access_token": "a\\nb"}'),
        Canned(body='{"access_token": "a\\u00e9"}'),
        Canned(body='{"access_token": "t1", "token_type": "mac"}'),
        Canned(body="{" * 100_000),
        Canned(status=404, body="nothing here"),
        Canned(status=302, headers={"Location": "https://elsewhere/token"}),
        error(501, 0, "no"),
    ],
)
def test_an_answer_without_a_token_is_an_error_that_names_the_setting(
    server: RegistryServer, tokens: TokenServer, connect: Connect, answer: Canned
) -> None:
    tokens.always = answer
    message = failure(connect().subjects)
    assert "there is no token for the registry" in message
    assert "Check registry.auth.oauth.token_url: write the https:// address that gives tokens" in message
    assert (len(tokens.log), server.log) == (1, [])


@pytest.mark.parametrize(
    "rest", [{"access_token": "s3cret", "token_type": "JWT"}, {"id_token": "s3cret"}, {"access_token": "s3cret "}]
)
def test_a_token_of_another_kind_is_not_shown(tokens: TokenServer, connect: Connect, rest: dict[str, str]) -> None:
    tokens.always = Canned(body=json.dumps(rest))
    message = failure(connect().subjects)
    assert (f"status 200, with {', '.join(rest)}" in message, "s3cret" in message) == (True, False)


def test_a_token_of_no_kind_is_taken(tokens: TokenServer, connect: Connect) -> None:
    tokens.always = Canned(body=json.dumps({"access_token": "t1", "token_type": None}))
    assert connect().subjects() == ("s",)


def test_neither_secret_nor_token_is_in_an_error_or_repr(server: RegistryServer, connect: Connect) -> None:
    registry = connect()
    server.always = Canned(body=f"Bearer t1, {SECRET}", content_type="text/plain")
    shown = failure(registry.subjects) + repr(registry) + repr(client("http://t"))
    assert ("beginning with 'Bearer ***, ***'" in shown, SECRET in shown) == (True, False)


@pytest.mark.parametrize(
    "url", ["tokens", "ftp://t", "https://", "https://u:hush@t/token", "https://t/#a", "https://t:x"]
)
def test_what_is_no_address_of_tokens_is_refused_without_showing_secrets(connect: Connect, url: str) -> None:
    message = failure(lambda: connect(auth=client(url)), UsageError)
    assert (message.startswith("registry.auth.oauth.token_url"), "hush" in message) == (True, False)


def test_the_server_of_tokens_has_a_ca_of_its_own(connect: Connect, tmp_path: Path) -> None:
    authority, path = trustme.CA(), str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(path)
    with TokenServer(tls=tls_context(authority)) as secure:
        assert connect(auth=client(f"{secure.url}/t", ca=path)).subjects() == ("s",)
        message = failure(connect(auth=client(f"{secure.url}/t")).subjects, RegistryError)
    assert "Name its CA in registry.auth.oauth.ca" in message


def test_a_ca_of_tokens_that_cannot_be_read_is_a_wrong_configuration(connect: Connect, tmp_path: Path) -> None:
    missing = str(tmp_path / "no.pem")
    message = failure(lambda: connect(auth=client("https://t", ca=missing)), UsageError)
    assert message.startswith(f"registry.auth.oauth.ca {missing}: the certificate files cannot be used")


def test_headers_go_with_each_question_to_the_registry_alone(
    server: RegistryServer, tokens: TokenServer, connect: Connect
) -> None:
    registry = connect(headers={"target-sr-cluster": "lsrc-1"})
    registry.subjects()
    registry.versions("s")
    assert [asked.headers.get("target-sr-cluster") for asked in (*server.log, *tokens.log)] == [
        "lsrc-1",
        "lsrc-1",
        None,
    ]


def test_a_header_is_not_shown_where_a_server_echoes_it(server: RegistryServer, connect: Connect) -> None:
    server.always = Canned(body="your key is s3cretk3y", content_type="text/plain")
    registry = connect(headers={"X-Api-Key": "s3cretk3y", "X-Flag": "is"})
    assert "beginning with 'your key is ***'" in failure(registry.subjects)
    assert "s3cretk3y" not in repr(registry)


@pytest.mark.parametrize("value", ["", " a", "a\n", "ключ"])
def test_a_header_that_http_cannot_carry_is_refused(connect: Connect, value: str) -> None:
    message = failure(lambda: connect(headers={"X-Api-Key": value}), UsageError)
    assert message.startswith("registry.headers.X-Api-Key: the value is empty or holds spaces")
