"""Events reach a real HTTP server, a real program and a real stream, or one clear error says why not."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from schemasync.core.events import SchemaEvent
from schemasync.core.ports import Notifier
from schemasync.errors import NotificationError, UsageError
from schemasync.io.notify import CommandNotifier, LinesNotifier, WebhookNotifier, slack_notifier

EVENT = SchemaEvent(
    table="lake.student",
    subject="shop.public.größe-value",
    from_version=1,
    to_version=2,
    verdict="evolve",
    time=datetime(2026, 11, 21, 12, 0, tzinfo=UTC),
    changes=({"kind": "AddColumn", "column": "age", "from": None, "to": "int"},),
)


@dataclass
class Receiver:
    """A loopback server: gives the scripted answers in turn, the last one for ever, and records what it was sent."""

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=lambda: [(204, {})])
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    silent_until: threading.Event | None = None
    body_until: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-path"

    def answer(self) -> tuple[int, dict[str, str]]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @contextmanager
    def serving(self) -> Iterator[Receiver]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body))
                if receiver.silent_until:
                    receiver.silent_until.wait(10)
                    return
                status, headers = receiver.answer()
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if receiver.body_until and status != 200:
                    receiver.body_until.wait(10)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                for ending in filter(None, (self.silent_until, self.body_until)):
                    ending.set()
                server.shutdown()
                thread.join()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("NO_PROXY", "*")
    with Receiver().serving() as serving:
        yield serving


def webhook(url: str, *, timeout: float = 5.0, retries: int = 2) -> WebhookNotifier:
    return WebhookNotifier(url=url, headers={"X-Token": "s3cret"}, timeout=timeout, retries=retries, backoff=0.0)


def soon(condition: Callable[[], bool]) -> bool:
    """Wait until something is so, for ten seconds at most."""
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def failure(notifier: Notifier) -> NotificationError:
    with pytest.raises(NotificationError) as caught:
        notifier.send(EVENT)
    return caught.value


def test_slack_receives_a_message(receiver: Receiver) -> None:
    slack_notifier(receiver.url).send(EVENT)
    [(path, headers, body)] = receiver.requests
    assert (path, headers["Content-Type"], list(json.loads(body))) == (
        "/secret-path",
        "application/json; charset=utf-8",
        ["text"],
    )


def test_slack_that_has_enough_is_asked_again_when_it_says(receiver: Receiver) -> None:
    naps: list[float] = []
    receiver.answers = [(429, {"Retry-After": "3"}), (200, {})]
    slack_notifier(receiver.url, sleep=naps.append).send(EVENT)
    assert (naps, len(receiver.requests)) == ([3.0], 2)


def test_a_webhook_receives_a_structured_cloudevent(receiver: Receiver) -> None:
    webhook(receiver.url).send(EVENT)
    [(path, headers, body)] = receiver.requests
    assert (path, headers["Content-Type"], headers["X-Token"], json.loads(body)) == (
        "/secret-path",
        "application/cloudevents+json; charset=utf-8",
        "s3cret",
        EVENT.cloudevent(),
    )


@pytest.mark.parametrize(
    ("signed", "headers", "sent"),
    [
        ("", {"Authorization": "Bearer t0ken"}, "Bearer t0ken"),
        ("", {}, None),
        ("me:pass%20word@", {}, "Basic bWU6cGFzcyB3b3Jk"),
    ],
)
def test_a_webhook_is_sent_the_credentials_of_the_configuration_and_none_of_netrc(
    receiver: Receiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signed: str,
    headers: dict[str, str],
    sent: str | None,
) -> None:
    (tmp_path / "netrc").write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    WebhookNotifier(url=receiver.url.replace("//", f"//{signed}"), headers=headers).send(EVENT)
    [(_, received, _)] = receiver.requests
    assert received.get("Authorization") == sent


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_webhook_that_is_troubled_once_is_sent_the_same_event_again(receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {}), (200, {})]
    webhook(receiver.url).send(EVENT)
    assert [json.loads(body)["id"] for _, _, body in receiver.requests] == [EVENT.id, EVENT.id]


def test_a_webhook_that_stays_troubled_is_given_up_after_the_retries(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    error = failure(webhook(receiver.url))
    assert (len(receiver.requests), str(error)) == (
        3,
        f"webhook http://127.0.0.1:{receiver.port}: a schema event was not delivered: "
        "it answered 500 Internal Server Error. Check its address, and that the receiver is up.",
    )


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_a_webhook_that_refuses_is_not_asked_again(receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {})]
    error = failure(webhook(receiver.url))
    assert (len(receiver.requests), error.why.split()[2], error.retryable) == (1, str(status), False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    with Receiver().serving() as elsewhere:
        receiver.answers = [(status, {"Location": elsewhere.url})]
        error = failure(webhook(receiver.url))
    assert (len(receiver.requests), elsewhere.requests, error.fix) == (
        1,
        [],
        "Configure the address that it redirects to; redirects are not followed.",
    )


def test_an_answer_that_is_neither_success_nor_error_is_no_delivery(receiver: Receiver) -> None:
    receiver.answers = [(304, {})]
    assert failure(webhook(receiver.url)).why == "it answered 304 Not Modified"


def test_a_retry_after_of_a_day_does_not_hold_us_for_a_day(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schemasync.io.notify.LONGEST_PAUSE", 0.01)
    receiver.answers = [(503, {"Retry-After": "86400"}), (200, {})]
    webhook(receiver.url).send(EVENT)
    assert len(receiver.requests) == 2


def test_pauses_double_up_to_a_cap_and_the_first_try_again_comes_at_once(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    naps: list[float] = []
    failure(WebhookNotifier(url=receiver.url, retries=5, backoff=8, sleep=naps.append))
    assert naps == [0, 8, 16, 30, 30]


def test_who_is_woken_from_a_pause_sends_no_more(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Retry-After": "7"})]
    error = failure(WebhookNotifier(url=receiver.url, sleep=lambda seconds: seconds == 7))
    assert (len(receiver.requests), error.why) == (1, "it answered 503 Service Unavailable")


def test_an_answer_whose_body_never_ends_holds_nobody_up(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Content-Length": "100"}), (200, {})]
    receiver.body_until = threading.Event()
    webhook(receiver.url).send(EVENT)
    assert (len(receiver.requests), receiver.body_until.is_set()) == (2, False)


def test_a_retry_after_that_is_nonsense_is_one_clear_error(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Retry-After": "soon"})]
    assert "Retry-After" in failure(webhook(receiver.url)).why


def test_a_webhook_that_does_not_answer_in_time_is_given_up(receiver: Receiver) -> None:
    receiver.silent_until = threading.Event()
    error = failure(webhook(receiver.url, timeout=0.1, retries=1))
    assert ("Read timed out" in error.why, "secret" in str(error)) == (True, False)
    # The receiver's threads may still be about to read what was sent.
    assert soon(lambda: len(receiver.requests) == 2)


def test_a_webhook_where_nobody_listens_is_named_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as silent:
        # Bound, so that nobody else can listen there meanwhile.
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        error = failure(webhook(f"http://user:s3cret@127.0.0.1:{port}/secret-path", retries=0))
    assert (error.where, "Connection refused" in error.why) == (f"webhook http://127.0.0.1:{port}", True)
    assert "secret" not in f"{error}{error.__cause__}"


@pytest.mark.parametrize("url", ["", "example.org/hook", "ftp://example.org", "http://", "http://h:port/", "http://["])
def test_an_address_that_is_no_web_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(UsageError, match="http:// or https://"):
        webhook(url)


def test_a_header_that_http_cannot_carry_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError, match=r"^webhook http://h, header X-Token: the value .*line breaks") as refused:
        WebhookNotifier(url="http://h/path", headers={"X-Token": "s3cret\n"})
    assert "s3cret" not in str(refused.value)


def test_a_webhook_does_not_show_its_secrets_when_printed() -> None:
    assert "s" + "3cret" not in repr(webhook("https://user:s3cret@example.org/s3cret"))


def python(code: str, *arguments: str) -> CommandNotifier:
    return CommandNotifier(argv=(sys.executable, "-c", code, *arguments), timeout=30.0)


def test_a_command_receives_the_event_as_one_line_on_its_stdin(tmp_path: Path) -> None:
    python("import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", f"{tmp_path}/it's $HOME").send(EVENT)
    assert (tmp_path / "it's $HOME").read_text() == EVENT.json() + "\n"


def test_a_command_need_not_read_what_it_is_given() -> None:
    python("pass").send(EVENT)


def test_a_command_that_fails_is_named_with_what_it_said_last() -> None:
    error = failure(python("import sys; print('one\\ntwo\\n', file=sys.stderr); sys.exit(3)"))
    assert (error.where, error.why) == (f"command {sys.executable}", "it ended with exit code 3: two")


def test_a_command_that_fails_in_silence_is_named_with_its_exit_code() -> None:
    assert failure(python("import sys; sys.exit(3)")).why == "it ended with exit code 3"


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = failure(CommandNotifier(argv=(f"{tmp_path}/absent",)))
    assert error.why == "it could not be started (No such file or directory)"


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone. Zombies count as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > '{tmp_path}/pid'; wait"
    error = failure(CommandNotifier(argv=("/bin/sh", "-c", script), timeout=1.0))
    pid = int((tmp_path / "pid").read_text())
    # The kernel takes a moment.
    assert (error.why, soon(lambda: has_ended(pid))) == ("it did not end within 1 s", True)


def test_a_command_without_a_program_is_refused() -> None:
    with pytest.raises(UsageError, match="name of a program"):
        CommandNotifier(argv=())


def test_lines_are_json_one_per_event() -> None:
    stream = io.StringIO()
    for _ in range(2):
        LinesNotifier(stream=stream).send(EVENT)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [EVENT.cloudevent()] * 2


def test_lines_are_written_at_once(tmp_path: Path) -> None:
    with (tmp_path / "lines").open("w") as stream:
        LinesNotifier(stream=stream).send(EVENT)
        assert (tmp_path / "lines").read_text() == EVENT.json() + "\n"


def test_lines_for_a_reader_that_went_away_are_one_clear_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    error = failure(LinesNotifier(stream=stream))
    stream.close()
    assert error.why == "Broken pipe"


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Take no more bytes than are left, then none."""
    left: list[int] = []
    write = os.write

    def writes(file: int, data: bytes) -> int:
        taken = write(file, data[: left[0]])
        left[0] -= taken
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", writes)
        yield left


def test_lines_for_which_there_was_no_space_come_out_once_and_whole(tmp_path: Path, small_disk: list[int]) -> None:
    path = tmp_path / "lines"
    with path.open("w") as stream:
        lines = LinesNotifier(stream=stream)
        for left, whole in ((0, False), (10, False), (10_000, True), (10_000, True)):
            small_disk[:] = [left]
            if whole:
                lines.send(EVENT)
            else:
                assert failure(lines).why == "No space left on device"
    assert path.read_text().splitlines() == [EVENT.json()[:10], EVENT.json(), EVENT.json()]
