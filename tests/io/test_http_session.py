"""Who answers byte by byte, whatever the part of the answer and the way to it, is given up like who says nothing."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import trustme

from schemasync.errors import NotificationError, RegistryUnavailableError, SchemasyncError
from schemasync.http_session import open_session
from schemasync.io.notify import WebhookNotifier
from schemasync.io.registry.http import HttpRegistry
from tests.io.test_notify import EVENT

pytestmark = pytest.mark.usefixtures("no_proxy")

STATUS = b"HTTP/1.1 200 OK\r\nX-Long: "
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n"


@contextmanager
def trickling(begin: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer everybody with this, and then with a byte each 50 ms for ever; yield the port."""
    over = threading.Event()

    def answer(plain: socket.socket) -> None:
        with suppress(OSError), tls.wrap_socket(plain, server_side=True) if tls else plain as connection:
            connection.recv(65_536)
            connection.sendall(begin)
            while not over.wait(0.05):
                connection.sendall(b" ")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


def given_up_after(ask: Callable[[], object], kind: type[SchemasyncError]) -> float:
    """Return the seconds; who never gives up is not waited for."""
    outcome: list[type[BaseException]] = []

    def told() -> None:
        try:
            ask()
        except SchemasyncError as error:
            outcome.append(type(error))

    began = time.monotonic()
    asking = threading.Thread(target=told, daemon=True)
    asking.start()
    asking.join(5)
    assert outcome == [kind]
    return time.monotonic() - began


def ask_registry(url: str, **options: str) -> Callable[[], object]:
    return HttpRegistry(url, timeout=(0.3, 0.3), retries=0, **options).subjects  # type: ignore[arg-type]


@pytest.mark.parametrize("begin", [b"", STATUS, LENGTH, CHUNKS])
def test_a_registry_that_answers_byte_by_byte_is_given_up_in_time(begin: bytes) -> None:
    with trickling(begin) as port:
        ask = ask_registry(f"http://127.0.0.1:{port}")
        assert 0.25 < given_up_after(ask, RegistryUnavailableError) < 2


@pytest.mark.parametrize("begin", [STATUS, LENGTH])
def test_a_registry_that_answers_byte_by_byte_through_tls_is_given_up_in_time(begin: bytes) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with authority.cert_pem.tempfile() as ca, trickling(begin, context) as port:
        ask = ask_registry(f"https://127.0.0.1:{port}", ca=ca)
        assert 0.25 < given_up_after(ask, RegistryUnavailableError) < 2


def test_a_proxy_that_opens_its_tunnel_byte_by_byte_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with trickling(STATUS) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        assert 0.25 < given_up_after(ask_registry("https://registry.invalid"), RegistryUnavailableError) < 2


def test_a_webhook_that_answers_byte_by_byte_is_given_up_in_time() -> None:
    with trickling(STATUS) as port:
        hook = WebhookNotifier(url=f"http://127.0.0.1:{port}", timeout=0.3, retries=0)
        assert 0.25 < given_up_after(lambda: hook.send(EVENT), NotificationError) < 2


def test_without_a_timeout_an_answer_may_take_its_time() -> None:
    with trickling(LENGTH[:-11] + b"8\r\n\r\n") as port, open_session() as session:
        assert session.get(f"http://127.0.0.1:{port}", timeout=None).content == b" " * 8
