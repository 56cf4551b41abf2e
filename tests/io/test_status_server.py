"""The status endpoint over real HTTP on loopback."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from schemasync.errors import UsageError
from schemasync.io import status_server
from schemasync.io.status_server import SILENCE_MS, Board, Snapshot, TableMetrics, serving

NOW = 1_790_000_000_000
POLL = 12 * 3_600_000


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def board() -> Board:
    return Board(alive_ms=NOW)


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with serving("127.0.0.1:0", board, now_ms=lambda: NOW, poll_ms=POLL) as address:
        yield address


def get(url: str) -> tuple[int, str]:
    answer = requests.get(url, timeout=5)
    return answer.status_code, answer.text


def test_it_is_healthy_while_the_watcher_gives_signs_of_life(url: str, board: Board) -> None:
    alive = get(f"{url}/healthz")
    board.alive_ms = NOW - SILENCE_MS - 2 * POLL - 1
    assert (alive, get(f"{url}/healthz")) == ((200, "ok\n"), (503, "the watcher gives no sign of life\n"))


def test_a_watcher_that_sleeps_until_its_next_poll_is_healthy(url: str, board: Board) -> None:
    board.alive_ms = NOW - SILENCE_MS - 2 * POLL
    assert get(f"{url}/healthz") == (200, "ok\n")


def test_it_is_ready_after_a_full_sweep(url: str, board: Board) -> None:
    before = get(f"{url}/readyz")
    board.snapshot = Snapshot(ready=True)
    assert (before, get(f"{url}/readyz?verbose")) == ((503, "no full sweep went well yet\n"), (200, "ok\n"))


def test_the_metrics_are_those_of_the_newest_snapshot(url: str, board: Board) -> None:
    student = TableMetrics(table="lake.student", held=True, generation=7, pending_files=3, failures=2)
    tables = (student, TableMetrics(table="lake.teacher"))
    board.snapshot = Snapshot(ticks=5, last_tick_ms=NOW, events_waiting=4, events_given_up=1, tables=tables)
    lines = [line for line in get(f"{url}/metrics")[1].splitlines() if not re.match("#|.*_created", line)]
    assert lines == [
        "schemasync_ticks_total 5.0",
        "schemasync_last_tick_timestamp_seconds 1.79e+09",
        "schemasync_registry_up 1.0",
        "schemasync_metastore_up 1.0",
        "schemasync_events_waiting 4.0",
        "schemasync_events_given_up_total 1.0",
        "schemasync_tables 2.0",
        'schemasync_table_held{table="lake.student"} 1.0',
        'schemasync_table_held{table="lake.teacher"} 0.0',
        'schemasync_table_failed_total{table="lake.student"} 2.0',
        'schemasync_table_failed_total{table="lake.teacher"} 0.0',
        'schemasync_pending_files{table="lake.student"} 3.0',
        'schemasync_pending_files{table="lake.teacher"} 0.0',
        'schemasync_table_generation{table="lake.student"} 7.0',
        'schemasync_table_generation{table="lake.teacher"} 0.0',
    ]


def test_the_page_about_interfaces_tells_of_every_metric_and_path(url: str) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/interface.md").read_text(encoding="utf-8")
    metrics = re.findall(r"^# TYPE (\w+) ", get(f"{url}/metrics")[1], re.MULTILINE)
    assert re.findall(r"^\| `(schemasync_\w+)` \|", page, re.MULTILINE) == [m for m in metrics if "_created" not in m]
    paths = re.findall(r"^\| `(/\w*)` \|", page, re.MULTILINE)
    assert (len(paths), [path for path in paths if get(f"{url}{path}")[0] == 404]) == (4, [])


def test_metrics_are_prometheus_text(url: str) -> None:
    assert requests.get(f"{url}/metrics", timeout=5).headers["Content-Type"].startswith("text/plain; version=")


def test_the_page_shows_every_table_of_the_newest_snapshot(url: str, board: Board) -> None:
    student = TableMetrics(table="lake.student", state="in step", version=3, generation=7, pending_files=2, failures=1)
    board.snapshot = Snapshot(
        ticks=5, last_tick_ms=NOW, ready=True, tables=(student, TableMetrics(table="lake.teacher", state="held"))
    )
    status, page = get(f"{url}/")
    assert (status, re.findall(r"<p>(.*)</p>|<tr>(<td>.*)</tr>", page)) == (
        200,
        [
            ("A full sweep went well. Tick 5 began at 2026-09-21T14:13:20Z.", ""),
            ("", "<td>lake.student</td><td>in step</td><td>3</td><td>7</td><td>2</td><td>1</td>"),
            ("", "<td>lake.teacher</td><td>held</td><td></td><td>0</td><td>0</td><td>0</td>"),
        ],
    )


def test_the_page_of_a_watcher_that_has_just_begun_says_so(url: str) -> None:
    assert "<p>No full sweep went well yet. No tick has begun yet.</p>" in get(f"{url}/?x")[1]


@pytest.mark.parametrize(
    ("now", "service", "ups"),
    [
        (
            Snapshot(ready=True, registry_trouble="at <http>"),
            "registry",
            ["schemasync_registry_up 0.0", "schemasync_metastore_up 1.0"],
        ),
        (
            Snapshot(ready=True, metastore_trouble="at <http>"),
            "metastore",
            ["schemasync_registry_up 1.0", "schemasync_metastore_up 0.0"],
        ),
    ],
)
def test_what_does_not_answer_can_be_seen(url: str, board: Board, now: Snapshot, service: str, ups: list[str]) -> None:
    board.snapshot = now
    found = [line for line in get(f"{url}/metrics")[1].splitlines() if re.match(r"schemasync_\w+_up ", line)]
    told = re.findall("<p>(Nothing .*)</p>", get(url)[1])
    assert (found, told, get(f"{url}/readyz")[0]) == (
        ups,
        [f"Nothing is done until the {service} answers again: at &lt;http&gt;"],
        200,
    )


def test_what_keeps_tables_from_being_watched_can_be_seen(url: str, board: Board) -> None:
    board.snapshot = Snapshot(ready=True, problems=("a-value and <b>-value both want lake.a",))
    assert "<p>In the way of tables: a-value and &lt;b&gt;-value both want lake.a</p>" in get(f"{url}/")[1]


def test_what_the_page_shows_is_escaped(url: str, board: Board) -> None:
    board.snapshot = Snapshot(tables=(TableMetrics(table="lake.<script>", state="<b>"),))
    assert "<td>lake.&lt;script&gt;</td><td>&lt;b&gt;</td>" in get(f"{url}/")[1]


def test_the_page_is_html(url: str) -> None:
    assert requests.get(f"{url}/", timeout=5).headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/nowhere"])
def test_a_head_is_answered_like_a_get_without_the_body(url: str, path: str) -> None:
    got, head = requests.get(f"{url}{path}", timeout=5), requests.head(f"{url}{path}", timeout=5)
    assert (head.status_code, head.headers["Content-Type"], head.content) == (
        got.status_code,
        got.headers["Content-Type"],
        b"",
    )


def test_there_is_nothing_else(url: str) -> None:
    assert get(f"{url}/etc/passwd") == (404, "not found\n")


def test_an_address_that_is_taken_is_one_clear_error(url: str) -> None:
    taken = url.removeprefix("http://")
    with (
        pytest.raises(UsageError, match=rf"^server\.listen: cannot listen on {taken}: Address already in use\. Choose"),
        serving(taken, Board(), now_ms=lambda: NOW, poll_ms=POLL),
    ):
        pass


def test_a_silent_client_does_not_keep_it_from_stopping(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_server, "CLIENT_SECONDS", 3600)
    with socket.socket() as client:

        def serve() -> None:
            with serving("127.0.0.1:0", board, now_ms=lambda: NOW, poll_ms=POLL) as address:
                host, _, port = address.removeprefix("http://").rpartition(":")
                client.connect((host, int(port)))
                # Clients are taken in turn: once this one is answered, the silent one is being waited for.
                get(f"{address}/healthz")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        server.join(timeout=60)
        assert not server.is_alive()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_it_listens_on_ipv6(board: Board) -> None:
    with serving("[::1]:0", board, now_ms=lambda: NOW, poll_ms=POLL) as address:
        assert get(f"{address}/healthz") == (200, "ok\n")
