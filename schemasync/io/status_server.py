"""A small HTTP endpoint about a running watcher: ``/healthz``, ``/readyz``, ``/metrics`` (Prometheus), ``/`` (HTML).

Opened by `schemasync.app.watching` where ``server.listen`` is configured; without that, nothing listens. It has a
thread of its own, reads one immutable snapshot, and can change nothing: whoever reaches the port only learns names,
counts and what is wrong with the registry or the metastore.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from schemasync.errors import UsageError

SILENCE_MS: Final = 6 * 3_600_000
"""After that long without a sign of life, and two more polls, ``/healthz`` says 503: longer than any one compaction
should take, because whoever restarts the process for it would only make the compaction begin again."""

CLIENT_SECONDS: Final = 10.0
"""How long a client may take to send its request."""

_log: Final = logging.getLogger("schemasync.status")
_TEXT: Final = "text/plain; charset=utf-8"
_HTML: Final = "text/html; charset=utf-8"

_Answer = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>schemasync</title>
<style>
body {{ font-family: sans-serif; margin: 2em; }}
th, td {{ padding: 0.2em 1em 0.2em 0; text-align: left; }}
</style>
</head>
<body>
<h1>schemasync</h1>
<p>{state}</p>
{trouble}<table>
<tr><th>Table</th><th>State</th><th>Version</th><th>Generation</th><th>Pending files</th><th>Failures</th></tr>
{rows}
</table>
</body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetrics:
    """One table as metrics and page show it; ``table`` is ``database.table``, ``failures`` counts since the start.

    ``state`` is how the last look left it, in a word or two.
    """

    table: str
    held: bool = False
    state: str = ""
    version: int | None = None
    generation: int = 0
    pending_files: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The watcher at one moment. ``ready``: a full sweep went well; times are ms since 1970 UTC.

    ``registry_trouble`` and ``metastore_trouble`` are why nothing is done without them, empty while they answer.
    ``problems`` are what in the configuration keeps tables from being watched.
    Events wait for, or never get to, so many receivers.
    """

    ticks: int = 0
    last_tick_ms: int = 0
    ready: bool = False
    registry_trouble: str = ""
    metastore_trouble: str = ""
    problems: tuple[str, ...] = ()
    events_waiting: int = 0
    events_given_up: int = 0
    tables: tuple[TableMetrics, ...] = ()


@dataclass(slots=True)
class Board:
    """Where the watcher pins its newest snapshot, and its signs of life, for the endpoint to read."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    alive_ms: int = 0


class _Metrics(Collector):
    """Makes the metrics from the snapshot at the moment they are asked for."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        now = self._board.snapshot
        yield CounterMetricFamily("schemasync_ticks", "Ticks of the watcher since its start.", now.ticks)
        yield GaugeMetricFamily(
            "schemasync_last_tick_timestamp_seconds", "When the last tick began.", now.last_tick_ms / 1000
        )
        for service, trouble in _troubles(now):
            yield GaugeMetricFamily(
                f"schemasync_{service}_up", f"0 while the {service} does not answer.", int(not trouble)
            )
        yield GaugeMetricFamily("schemasync_events_waiting", "Deliveries still to be made.", now.events_waiting)
        yield CounterMetricFamily(
            "schemasync_events_given_up", "Deliveries that were given up, since the start.", now.events_given_up
        )
        yield GaugeMetricFamily("schemasync_tables", "Tables that are watched.", len(now.tables))
        held = GaugeMetricFamily("schemasync_table_held", "1 while something waits for a person.", labels=["table"])
        failed = CounterMetricFamily("schemasync_table_failed", "Failures since the start.", labels=["table"])
        pending = GaugeMetricFamily("schemasync_pending_files", "Landed files not yet admitted.", labels=["table"])
        generation = GaugeMetricFamily("schemasync_table_generation", "Generation in force.", labels=["table"])
        for table in now.tables:
            held.add_metric([table.table], int(table.held))
            failed.add_metric([table.table], table.failures)
            pending.add_metric([table.table], table.pending_files)
            generation.add_metric([table.table], table.generation)
        yield from (held, failed, pending, generation)


@contextmanager
def serving(listen: str, board: Board, *, now_ms: Callable[[], int], poll_ms: int) -> Iterator[str]:
    """Answer on ``HOST:PORT`` until the context ends; yield the base URL (port 0 takes a free one).

    ``poll_ms`` is how long the watcher sleeps between two ticks, which is no silence.

    Raises:
        UsageError: the address cannot be listened on.
    """
    server = _open(listen, _handler(board, now_ms, poll_ms))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="status", daemon=True)
    thread.start()
    try:
        yield f"http://{listen.rpartition(':')[0]}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def require_listenable(listen: str) -> None:
    """Find out whether an address can be listened on, before anything slow is begun for it.

    Raises:
        UsageError: it cannot.
    """
    _open(listen, BaseHTTPRequestHandler).server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that keeps its connection open must not keep us

    def server_bind(self) -> None:
        # Not HTTPServer's own: that one looks up the host's name, which may ask the network.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        # Mostly clients that went away; nothing of it concerns the watcher.
        _log.debug("a request failed", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _open(listen: str, handler: type[BaseHTTPRequestHandler]) -> _Server:
    host, _, port = listen.rpartition(":")
    try:
        return (_Server6 if ":" in host else _Server)((host.strip("[]"), int(port)), handler)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {listen}",
            where="server.listen",
            why=error.strerror or str(error),
            fix="Choose another address, or remove the setting.",
        ) from error


def _handler(board: Board, now_ms: Callable[[], int], poll_ms: int) -> type[BaseHTTPRequestHandler]:
    metrics = CollectorRegistry()
    metrics.register(_Metrics(board))

    def health() -> _Answer:
        alive = now_ms() - board.alive_ms <= SILENCE_MS + 2 * poll_ms
        return _verdict(alive, "the watcher gives no sign of life")

    def readiness() -> _Answer:
        return _verdict(board.snapshot.ready, "no full sweep went well yet")

    def exposition() -> _Answer:
        return HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(metrics)

    def overview() -> _Answer:
        return HTTPStatus.OK, _HTML, _page(board.snapshot).encode()

    pages = {
        "/": overview,
        "/healthz": health,
        "/readyz": readiness,
        "/metrics": exposition,
    }

    class Handler(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS

        def do_GET(self) -> None:
            self.wfile.write(self._begun())

        def do_HEAD(self) -> None:
            self._begun()

        def _begun(self) -> bytes:
            """Send all but the body, and return that."""
            page = pages.get(self.path.partition("?")[0])
            status, kind, body = page() if page else (HTTPStatus.NOT_FOUND, _TEXT, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Log nothing: probes come every few seconds."""

    return Handler


def _page(now: Snapshot) -> str:
    ready = "A full sweep went well." if now.ready else "No full sweep went well yet."
    last = datetime.fromtimestamp(now.last_tick_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
    ticks = f"Tick {now.ticks} began at {last}." if now.ticks else "No tick has begun yet."
    told = "".join(
        f"<p>Nothing is done until the {service} answers again: {escape(trouble)}</p>\n"
        for service, trouble in _troubles(now)
        if trouble
    )
    told += "".join(f"<p>In the way of tables: {escape(problem)}</p>\n" for problem in now.problems)
    return _PAGE.format(state=f"{ready} {ticks}", trouble=told, rows="\n".join(map(_row, now.tables)))


def _troubles(now: Snapshot) -> tuple[tuple[str, str], ...]:
    """Return what all tables need, and why it is no use now, empty where it is."""
    return ("registry", now.registry_trouble), ("metastore", now.metastore_trouble)


def _row(table: TableMetrics) -> str:
    version = "" if table.version is None else table.version
    cells = (table.table, table.state, version, table.generation, table.pending_files, table.failures)
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"


def _verdict(good: bool, otherwise: str) -> _Answer:
    if good:
        return HTTPStatus.OK, _TEXT, b"ok\n"
    return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{otherwise}\n".encode()
