"""An in-process HTTP server that answers as Confluent's registry does, and fails on demand.

For the tests of the HTTP registry. Listens on a free loopback port; keeps what was asked in ``log``. Canned answers
queue up in ``faults`` and are given before the ordinary ones; ``always`` replaces them all.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qs, unquote, urlsplit

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canned:
    """One answer; ``length`` promises another length than the body has, ``delay`` is in seconds.

    ``trickle``: the body is followed by spaces, one after each so many seconds, for ever.
    """

    status: int = 200
    body: str | bytes = ""
    content_type: str = MEDIA_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    delay: float = 0.0
    hang_up: bool = False
    trickle: float | None = None


HANG_UP = Canned(hang_up=True)
HTML = Canned(body="<html>\n  <body>Please   log in</body></html>", content_type="text/html")


def error(status: int, code: int, message: str) -> Canned:
    return Canned(status=status, body=json.dumps({"error_code": code, "message": message}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: the path with its query as it was on the wire, the headers, and the port that it came from."""

    target: str
    headers: Mapping[str, str]
    port: int
    body: bytes = b""


class RegistryServer:
    """``subjects`` is {subject: {version: answer of /subjects/S/versions/N}}; change it while the server runs."""

    def __init__(self, *, base_path: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.subjects: dict[str, dict[int, dict[str, Any]]] = {}
        self.faults: deque[Canned] = deque()
        self.always: Canned | None = None
        self.authorization: str | None = None
        self.largest_page: int | None = None
        self.pages = True
        self.max_id = True
        self.config: Canned | None = None
        self.log: list[Asked] = []
        self.closing = threading.Event()
        self.base_path = base_path
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.registry = self
        if tls:
            # The handshake belongs to the connection's thread, not to the one that accepts.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.port = self._server.server_port
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}{base_path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def targets(self) -> list[str]:
        return [asked.target for asked in self.log]

    def add(self, subject: str, version: int, schema: str = '"string"', **more: Any) -> None:
        versions = self.subjects.setdefault(subject, {})
        schema_id = more.pop("id", None) or self.newest_id() + 1
        versions[version] = {"subject": subject, "version": version, "id": schema_id, "schema": schema, **more}

    def newest_id(self) -> int:
        return max((one["id"] for versions in self.subjects.values() for one in versions.values()), default=0)

    def answer(self, target: str, headers: Mapping[str, str], port: int, body: bytes = b"") -> Canned:
        self.log.append(Asked(target=target, headers=headers, port=port, body=body))
        if self.faults:
            return self.faults.popleft()
        if self.always:
            return self.always
        if self.authorization and headers.get("Authorization") != self.authorization:
            return error(401, 401, "Unauthorized")
        parts = urlsplit(target)
        if not parts.path.startswith(self.base_path + "/"):
            return error(404, 404, "HTTP 404 Not Found")
        steps = [unquote(step) for step in parts.path.removeprefix(self.base_path + "/").split("/")]
        return self._ordinary(steps, {name: values[0] for name, values in parse_qs(parts.query).items()})

    def _ordinary(self, steps: list[str], query: Mapping[str, str]) -> Canned:
        match steps:
            case ["subjects"]:
                return self._page(query)
            case ["subjects", subject, "versions", *_] if subject not in self.subjects:
                return error(404, 40401, f"Subject '{subject}' not found.")
            case ["subjects", subject, "versions"]:
                return Canned(body=json.dumps(list(self.subjects[subject])))
            case ["subjects", subject, "versions", version] if int(version) in self.subjects[subject]:
                return Canned(body=json.dumps(self.subjects[subject][int(version)]))
            case ["subjects", _, "versions", version]:
                return error(404, 40402, f"Version {version} not found.")
            case ["config", _] if self.config:
                return self.config
            case ["schemas", "ids", wanted]:
                return self._by_id(int(wanted), query)
            case _:
                return error(404, 404, "HTTP 404 Not Found")

    def _page(self, query: Mapping[str, str]) -> Canned:
        offset = int(query.get("offset", 0)) if self.pages else 0
        names = list(self.subjects)[offset:]
        return Canned(body=json.dumps(names[: self.largest_page]))

    def _by_id(self, wanted: int, query: Mapping[str, str]) -> Canned:
        for versions in self.subjects.values():
            for one in versions.values():
                if one["id"] == wanted:
                    shown = {"maxId": self.newest_id()} if self.max_id and query.get("fetchMaxId") == "true" else {}
                    return Canned(body=json.dumps({"schema": one["schema"], **shown}))
        return error(404, 40403, "Schema not found")


class TokenServer(RegistryServer):
    """One that gives tokens for client credentials: ``t1``, ``t2`` and so on, each of which lives ``seconds``."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls=tls)
        self.seconds: object = 3600
        self.given = 0

    def _ordinary(self, *_: object) -> Canned:
        self.given += 1
        answer = {"access_token": f"t{self.given}", "token_type": "Bearer", "expires_in": self.seconds}
        return Canned(body=json.dumps(answer), content_type="application/json")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    registry: RegistryServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that hang up or refuse the certificate are what some tests want."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        registry = cast(_Server, self.server).registry
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        canned = registry.answer(self.path, dict(self.headers.items()), self.client_address[1], sent)
        registry.closing.wait(canned.delay)
        if canned.hang_up:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = canned.body.encode() if isinstance(canned.body, str) else canned.body
        length = canned.length
        if canned.trickle is not None:
            length = 10**12
        self.send_response(canned.status)
        self.send_header("Content-Type", canned.content_type)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in canned.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length is not None
        while canned.trickle is not None and not registry.closing.wait(canned.trickle):
            self.wfile.write(b" ")

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        """Say nothing."""
