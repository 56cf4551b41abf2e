"""Send schema events to people and programs: a webhook, Slack, a command, a stream of JSON lines.

Called by the use cases after a change was decided or done. Each sender gives up within a bounded time and says so
with one error; none of them shows a URL's path, a header or a command's arguments, for these may be secrets.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import IO, Final, TextIO
from urllib.parse import urlsplit

import requests
from requests.auth import HTTPBasicAuth
from requests.utils import get_auth_from_url
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from schemasync.core.config_values import require_header_values
from schemasync.core.events import SchemaEvent
from schemasync.core.slack import slack_message
from schemasync.errors import NotificationError, UsageError
from schemasync.http_session import open_session

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
"""CloudEvents 1.0, HTTP binding 3.2: structured content mode."""

RETRIED_STATUSES: Final = (408, 425, 429, 500, 502, 503, 504)

LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts, whatever a ``Retry-After`` asks for."""

UNDELIVERED: Final = "a schema event was not delivered"

_PASSING: Final = (requests.ConnectionError, requests.Timeout)

_CHECK_ADDRESS: Final = "Check its address, and that the receiver is up."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """An attempt that delivered nothing. ``asked`` is the pause before the next in seconds, None where none helps."""

    error: NotificationError
    asked: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookNotifier:
    """POST each event, as a structured CloudEvent unless ``written`` and ``content_type`` say otherwise.

    ``timeout`` is in seconds and holds for connecting, and then for the answer; ``retries`` counts the attempts
    after the first; ``backoff`` is the pause before the second of them, in seconds, doubled each time. A repeated POST
    is safe because an event's id is stable. Redirects are not followed: the event and its credentials go nowhere
    but to the configured address. ``sleep`` pauses, and returns something true where it was woken because the process
    is to end: that was the last attempt then.

    Raises:
        UsageError: ``url`` is not an http or https URL.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: Callable[[SchemaEvent], str] = SchemaEvent.json
    content_type: str = CONTENT_TYPE
    timeout: float = 10.0
    retries: int = 3
    backoff: float = 0.5
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        if not _is_web_address(self.url):
            raise UsageError("a webhook needs an http:// or https:// URL with a host", fix="Correct its address.")
        require_header_values({f"webhook {_origin(self.url)}, header {name}": v for name, v in self.headers.items()})

    def send(self, event: SchemaEvent) -> None:
        """Deliver one event; any 2xx answer is a success.

        Raises:
            NotificationError: no connection, no answer in time, or another answer, after all retries.
        """
        # Not urllib3's Retry: it reads an answer's body before it asks again, and nothing wakes it from its pauses.
        for retry in count():
            failure = self._attempt(event)
            if failure is None:
                return
            if failure.asked is None or retry == self.retries or self.sleep(failure.asked or self._pause(retry)):
                raise failure.error

    def _pause(self, retry: int) -> float:
        """Return the pause before a retry, counted from 0; the first one comes at once."""
        return min(self.backoff * 2 ** (retry - 1), LONGEST_PAUSE) if retry else 0.0

    def _attempt(self, event: SchemaEvent) -> _Failure | None:
        where = f"webhook {_origin(self.url)}"
        try:
            answer = self._post(event)
            asked = _retry_after(answer)
        except (requests.RequestException, HTTPError) as error:
            cause = _cause(error)
            failure = NotificationError(UNDELIVERED, where=where, why=str(cause), fix=_CHECK_ADDRESS)
            failure.__cause__ = cause
            return _Failure(error=failure, asked=0.0 if isinstance(error, _PASSING) else None)
        if answer.status_code in range(200, 300):
            return None
        return _Failure(
            error=NotificationError(UNDELIVERED, where=where, why=_answered(answer), fix=_fix(answer)), asked=asked
        )

    def _post(self, event: SchemaEvent) -> requests.Response:
        # The body is never read (stream): what a receiver writes there must not be able to hold us up.
        with (
            open_session() as session,
            session.post(
                self.url,
                data=self.written(event).encode(),
                headers={**self.headers, "Content-Type": self.content_type},
                auth=_authorized,
                timeout=self.timeout,
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            return answer


def slack_notifier(url: str, *, sleep: Callable[[float], object] = time.sleep) -> WebhookNotifier:
    """Return what posts each event as a message, by one of Slack's incoming webhooks.

    Raises:
        UsageError: as `WebhookNotifier`.
    """
    return WebhookNotifier(url=url, written=slack_message, content_type="application/json; charset=utf-8", sleep=sleep)


def _authorized(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Sign a request by its URL or as its headers do; without a signer of ours, ~/.netrc would have a say in it."""
    user, password = get_auth_from_url(request.url or "")
    return HTTPBasicAuth(user, password)(request) if user or password else request


def _retry_after(answer: requests.Response) -> float | None:
    """Return the pause that an answer asks for, 0 where it says nothing of one; None where it is final.

    Raises:
        HTTPError: it asks for a pause that cannot be understood.
    """
    if answer.status_code not in RETRIED_STATUSES:
        return None
    asked = answer.headers.get("Retry-After")
    return 0.0 if asked is None else min(Retry().parse_retry_after(asked), LONGEST_PAUSE)


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _cause(error: Exception) -> Exception:
    """Return what stopped the last attempt: unlike the error around it, its text does not show the URL's path."""
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", None)
    return reason if isinstance(reason, Exception) else error


def _answered(answer: requests.Response) -> str:
    return f"it answered {answer.status_code} {answer.reason}".rstrip()


def _fix(answer: requests.Response) -> str:
    if answer.is_redirect:
        return "Configure the address that it redirects to; redirects are not followed."
    if answer.status_code in RETRIED_STATUSES:
        return _CHECK_ADDRESS
    return "Check its address and credentials."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNotifier:
    """Run a program for each event, with the event as one line of JSON on its standard input; no shell is involved.

    The program gets ``timeout`` seconds and is then killed with all that it started in its process group. What it
    prints is not shown, so that it cannot disturb our own output; of a failure, the last line of its stderr is.
    """

    argv: tuple[str, ...] = field(repr=False)
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not self.argv:
            raise UsageError("a notification command needs at least the name of a program")

    def send(self, event: SchemaEvent) -> None:
        """Deliver one event; exit code 0 is a success.

        Raises:
            NotificationError: the program could not be started, failed, or took too long.
        """
        # Files instead of pipes: neither a program that reads nothing nor a child that it leaves behind can block us.
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            stdin.write(event.json().encode() + b"\n")
            stdin.seek(0)
            problem = self._run(stdin, stderr)
            if problem:
                why = ": ".join(filter(None, (problem, _last_line(stderr))))
                raise NotificationError(UNDELIVERED, where=f"command {self.argv[0]}", why=why, fix="Correct it.")

    def _run(self, stdin: IO[bytes], stderr: IO[bytes]) -> str:
        """Run the program to its end; return what went wrong, or nothing."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
                self.argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
            )
        except OSError as error:
            return f"it could not be started ({error.strerror})"
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return f"it did not end within {self.timeout:g} s"
        finally:
            _end(process)
        return f"it ended with exit code {code}" if code else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and its group where it still runs; until it was waited for, its id cannot be another's."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - 1000))
    lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


@dataclass(slots=True, kw_only=True)
class LinesNotifier:
    """Write each event as one line of JSON, at once, for whoever reads the stream.

    Past the stream's own buffer where it has a file: what could not be written stays in that, and would come out once
    for each try.
    """

    stream: TextIO
    _torn: bool = field(default=False, init=False)

    def send(self, event: SchemaEvent) -> None:
        """Deliver one event.

        Raises:
            NotificationError: the stream cannot be written: its reader went away, or the disk is full.
        """
        line = event.json() + "\n"
        try:
            file = _file(self.stream)
            if file is None:
                self.stream.write(line)
                self.stream.flush()
            else:
                # Half a line that was all there was space for is no part of the next one.
                self._write(file, b"\n" * self._torn + line.encode())
        except OSError as error:
            name = getattr(self.stream, "name", "stream")
            raise NotificationError(UNDELIVERED, where=str(name), why=error.strerror or str(error)) from error

    def _write(self, file: int, data: bytes) -> None:
        while data:
            data = data[os.write(file, data) :]
            self._torn = bool(data)


def _file(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None
