"""A door in front of a service on loopback that can be shut, so that the service is gone, and opened again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Gate:
    """Hands connections to ``port`` on to a service's own port, while it is open."""

    def __init__(self, service_port: int) -> None:
        self._service_port = service_port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._is_open = True
        self._passing: list[socket.socket] = []
        threading.Thread(target=self._let_in, daemon=True).start()

    def shut(self) -> None:
        """End all connections, and every new one at once."""
        self._is_open = False
        while self._passing:
            _end(self._passing.pop())

    def open(self) -> None:
        """Let in again."""
        self._is_open = True

    def close(self) -> None:
        """Be gone for good."""
        self.shut()
        _end(self._door)

    def _let_in(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if not self._is_open:
                    client.close()
                    continue
                try:
                    service = socket.create_connection(("127.0.0.1", self._service_port))
                except OSError:
                    client.close()
                    continue
                self._passing += [client, service]
                for source, target in ((client, service), (service, client)):
                    threading.Thread(target=_hand_on, args=(source, target), daemon=True).start()


def _hand_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _end(source)
    _end(target)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def gate_to(service_port: int) -> Iterator[Gate]:
    """Keep a gate while the context lasts."""
    gate = Gate(service_port)
    try:
        yield gate
    finally:
        gate.close()
