"""HTTP whose timeout holds for a whole answer: status line, headers and body, not for each byte of them.

Used by all of `schemasync.io` that speaks HTTP. It promises that a server or proxy which sends byte by byte is given up
like one that sends nothing. A socket's timeout, which is all that requests has, begins anew with every byte; such a
server would hold the watcher for ever. Redirects are answers like others: nobody here follows them.
"""

from __future__ import annotations

import time
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager


def open_session() -> requests.Session:
    """Return a session whose read timeouts, in seconds, are for whole answers; one that is late is a timeout."""
    session = _Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter())
    return session


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> str | None:
        # Also where redirects are not followed requests looks where they lead, reads all that comes with them, however
        # much that is, and fails where the address is none.
        del resp
        return None


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        _limit(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **more)
        if not known:
            _limit(manager)
        return manager


def _limit(manager: PoolManager) -> None:
    """Let all connections read their answers, those of proxies to the tunnel included, within the time for a read."""
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _limited(pool) for scheme, pool in classes.items()}


def _limited(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    connection = type("Connection", (pool.ConnectionCls,), {"response_class": _Answer})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


class _Answer(HTTPResponse):
    def __init__(self, sock: socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = BufferedReader(_InTime(self.fp.detach(), sock))


class _InTime(RawIOBase):
    """What a socket receives until the time is over that its timeout allowed when this was made."""

    def __init__(self, raw: RawIOBase, sock: socket) -> None:
        self._raw = raw
        self._sock = sock
        self._timeout = sock.gettimeout()
        self._until = time.monotonic() + (self._timeout or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._timeout is None:
            return self._raw.readinto(buffer)
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        try:
            return self._raw.readinto(buffer)
        finally:
            # The connection's next question is sent under it.
            self._sock.settimeout(self._timeout)

    def close(self) -> None:
        self._raw.close()
        super().close()
