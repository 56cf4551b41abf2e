"""Asking a registry until there is an answer that is worth reading: TLS, failover, retries.

Used by the HTTP registry, which gives it paths and reads what comes back. It promises that a failure which may pass is
tried again within bounds, that every other one is a RegistryError at once, that TLS is always verified, and that
credentials go to the configured servers alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import requests
import urllib3
from tenacity import RetryCallState, Retrying, retry_if_not_result, stop_after_attempt, wait_exponential
from urllib3.util import Retry

from schemasync.errors import RegistryError, RegistryUnavailableError
from schemasync.io.registry.answer import Answer, Silence
from schemasync.io.registry.auth import Authorize, OAuth
from schemasync.io.registry.endpoint import Endpoint
from schemasync.io.registry.tokens import Tokens

RETRY_AFTER_CAP = 60.0
"""Longest ``Retry-After`` that is slept, in seconds: a daemon must not be put to sleep for hours."""
BACKOFF_CAP = 30.0
"""Longest pause between two tries without a ``Retry-After``, in seconds."""

_REACH = "Check that the registry runs and that registry.url, proxies and firewalls lead to it."
_REACH_BOTH = (
    "Check that the registry and the server of its tokens run and that registry.url, token_url, proxies and firewalls "
    "lead to them."
)

PART = 65_536
"""Bytes that are read at once, at most."""
LARGEST_BODY = 64_000_000
"""Bytes of the longest answer that is read: a list of half a million subjects."""

Outcome = TypeVar("Outcome", bound=Answer | Silence)


@dataclass(slots=True, kw_only=True)
class Transport:
    """Sends GET requests to the first of some servers that has an answer; ``preferred`` is the one that had the last.

    ``verify`` is True or the path of a CA; ``timeout`` is (connect, read) in seconds, of which ``session`` takes the
    latter for a whole answer; ``backoff`` is the pause before the second try in seconds, doubled before each further
    one; ``random`` gives numbers from 0 to 1. ``sleep`` pauses, and returns something true where it was woken because
    the process is to end. Where there are ``tokens`` a server is shown the newest of them, and another one once where
    it answers 401: tokens may be called back.
    """

    endpoints: Sequence[Endpoint]
    verify: str | bool
    client_cert: tuple[str, str] | None
    timeout: tuple[float, float]
    retries: int
    backoff: float
    sleep: Callable[[float], object]
    random: Callable[[], float]
    session: requests.Session
    tokens: Tokens | None = None
    preferred: int = 0

    def get(self, path: str, **query: str) -> Answer:
        """Return the first answer whose status is not a temporary one.

        Raises:
            RegistryError: the request cannot succeed (certificates).
            RegistryUnavailableError: no server answered, all answers were temporary failures, or a pause was ended.
        """
        outcome = self.patiently(
            lambda: self._first_answer(path, query), until=lambda outcome: outcome.final, tries=self.retries + 1
        )
        if isinstance(outcome, Answer) and outcome.final:
            return outcome
        raise self._unavailable(outcome, path) from outcome.cause

    def patiently(self, ask: Callable[[], Outcome], *, until: Callable[[Outcome], bool], tries: int) -> Outcome:
        """Ask until the outcome is good, ``tries`` times at most, with growing pauses; return the last outcome."""
        # Not urllib3's Retry: it repeats a request to one URL, and a try here asks every server.
        return Retrying(
            retry=retry_if_not_result(until),
            stop=stop_after_attempt(tries),
            wait=self._pause,
            sleep=self._sleep,
            retry_error_callback=_last,
        )(ask)

    def _sleep(self, seconds: float) -> None:
        if self.sleep(seconds):
            # Another try could take all of its timeout.
            raise RegistryUnavailableError(
                "the question is not repeated", where=self._where, why="schemasync is told to end", fix="Run it again."
            )

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds before the next try: exponential with jitter, on top of what the server asked for."""
        backoff = wait_exponential(multiplier=self.backoff, max=BACKOFF_CAP)(state)
        outcome = _last(state)
        asked: float = 0.0 if outcome.final else outcome.retry_after
        return asked + backoff * (0.5 + self.random() / 2)

    def _unavailable(self, outcome: Answer | Silence, path: str) -> RegistryUnavailableError:
        tries = self.retries + 1
        return RegistryUnavailableError(
            f"no usable answer, tried {tries} time{'s' * (tries > 1)}",
            where=f"{self._where}, GET {path}",
            why=outcome.reason,
            fix=_REACH_BOTH if self.tokens else _REACH,
        )

    @property
    def _where(self) -> str:
        return f"registry {', '.join(endpoint.host for endpoint in self.endpoints)}"

    def _first_answer(self, path: str, query: Mapping[str, str]) -> Answer | Silence:
        """Ask all servers once, where there are tokens by the newest one, and by another one where that is refused."""
        if self.tokens is None:
            return self._of_any(self.endpoints, path, query)
        token = self._token(self.tokens)
        outcome = self._by(token, path, query)
        if isinstance(token, OAuth) and isinstance(outcome, Answer) and outcome.status == 401:
            outcome = self._by(self._token(self.tokens, refused=token), path, query)
        return outcome

    def _by(self, token: OAuth | Silence, path: str, query: Mapping[str, str]) -> Answer | Silence:
        if isinstance(token, Silence):
            return token
        return self._of_any([replace(endpoint, auth=token) for endpoint in self.endpoints], path, query)

    def _token(self, tokens: Tokens, *, refused: OAuth | None = None) -> OAuth | Silence:
        """Return the client with a token that was not refused, asking its server for one where none is held."""
        with tokens.lock:
            held = tokens.held()
            if held is not None and held != refused:
                return held
            outcome = self._exchange(tokens.endpoint, "", data=dict(tokens.form), verify=tokens.ca or True)
            if isinstance(outcome, Answer) and outcome.final:
                return tokens.take(outcome)
            reason = f"no token from {tokens.endpoint.host}, {outcome.reason}"
            return Silence(reason=reason, cause=outcome.cause, retry_after=outcome.retry_after)

    def _of_any(self, endpoints: Sequence[Endpoint], path: str, query: Mapping[str, str]) -> Answer | Silence:
        """Ask one server after the other, beginning with the one that answered last, until an answer is final.

        Where none is, return the one that asks for the longest pause, and an answer before silence.
        """
        start = self.preferred
        outcomes = []
        for position in (*range(start, len(endpoints)), *range(start)):
            outcome = self._ask(endpoints[position], path, query)
            if outcome.final:
                self.preferred = position
                return outcome
            outcomes.append(outcome)
        return max(outcomes, key=lambda outcome: (outcome.retry_after, isinstance(outcome, Answer)))

    def _ask(self, endpoint: Endpoint, path: str, query: Mapping[str, str]) -> Answer | Silence:
        return self._exchange(endpoint, path, params=dict(query), verify=self.verify, cert=self.client_cert)

    def _exchange(self, endpoint: Endpoint, path: str, **sent: Any) -> Answer | Silence:
        handled = sys.exception()
        try:
            with self.session.request(
                endpoint.method,
                endpoint.base + path,
                headers=dict(endpoint.headers),
                auth=Authorize(endpoint.auth),
                timeout=self.timeout,
                # Credentials must not follow a redirect to another server.
                allow_redirects=False,
                # Reading is ours: requests has no limit for the length.
                stream=True,
                # verify among them: a session's own value loses against REQUESTS_CA_BUNDLE.
                **sent,
            ) as response:
                body = self._body(response, endpoint, path)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return _silence(error, endpoint, path, _innermost(error, handled))
        return Answer(
            endpoint=endpoint,
            path=path,
            status=response.status_code,
            content_type=response.headers.get("Content-Type", ""),
            retry_after=_retry_after(response.headers.get("Retry-After")),
            location=response.headers.get("Location", ""),
            body=body,
        )

    @staticmethod
    def _body(response: requests.Response, endpoint: Endpoint, path: str) -> bytes:
        body = bytearray()
        while part := response.raw.read1(PART, decode_content=True):
            body += part
            if len(body) > LARGEST_BODY:
                why = f"it is longer than {LARGEST_BODY // 1_000_000} MB"
                what = f"this is no answer of a {endpoint.name}"
                raise RegistryError(what, where=endpoint.place(path), why=why, fix=endpoint.url_fix)
        return bytes(body)


def _last(state: RetryCallState) -> Any:
    """Return the outcome of the latest try."""
    return state.outcome and state.outcome.result()


def _retry_after(value: str | None) -> float:
    """Return the seconds of a ``Retry-After`` header (a number or a date), capped; 0 where it says nothing."""
    try:
        return min(Retry().parse_retry_after(value or ""), RETRY_AFTER_CAP)
    except (urllib3.exceptions.HTTPError, ValueError, OverflowError):
        return 0.0


def _innermost(error: BaseException, handled: BaseException | None) -> str:
    """Return what the operating system said: the libraries' layers around it only repeat addresses.

    ``handled`` is what our caller was handling when it asked; Python chains it below, and it is not ours to tell.
    """
    while (inner := error.__cause__ or error.__context__) is not None and inner is not handled:
        error = inner
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _silence(error: Exception, endpoint: Endpoint, path: str, why: str) -> Silence:
    """Tell a failure that may pass from one that asking again repeats."""
    match error:
        case requests.exceptions.SSLError() | urllib3.exceptions.SSLError() if "EOF" not in why:
            raise RegistryError(
                "no trusted connection", where=endpoint.place(path), why=why, fix=endpoint.tls_fix
            ) from error
        case requests.ConnectionError() | requests.Timeout() | urllib3.exceptions.ReadTimeoutError():
            return Silence(reason=why, cause=error)
        case urllib3.exceptions.SSLError() | urllib3.exceptions.ProtocolError() | urllib3.exceptions.DecodeError():
            return Silence(reason=f"the answer broke off, {why}", cause=error)
        case _:
            what = "the request cannot be sent"
            raise RegistryError(what, where=endpoint.place(path), why=why, fix=endpoint.url_fix) from error
