"""The token that says who we are to a registry, where a server gives tokens for client credentials (OAuth 2.0).

Kept by the transport, which asks that server. It promises that a token is used by all threads until shortly before it
expires, and that an answer without one is a RegistryError that shows neither secret nor token.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from schemasync.errors import RegistryError
from schemasync.io.registry.answer import Answer
from schemasync.io.registry.auth import OAuth, unauthorized_fix
from schemasync.io.registry.endpoint import Endpoint, token_endpoint

MARGIN: Final = 30.0
"""Seconds before it expires from which on a token is not used, at most a tenth of what it lives: clocks differ, and a
question is under way for a while."""


class Tokens:
    """The newest token of one client. ``lock`` is held while another one is asked for; ``clock`` is in seconds.

    Raises:
        UsageError: its server's URL is none.
    """

    def __init__(self, auth: OAuth, *, clock: Callable[[], float]) -> None:
        self.lock = threading.Lock()
        self.endpoint: Endpoint = token_endpoint(auth.url, auth)
        self.form: Mapping[str, str] = {"grant_type": "client_credentials"} | (
            {"scope": auth.scope} if auth.scope else {}
        )
        self.ca = auth.ca
        self._auth = auth
        self._clock = clock
        self._until = -math.inf

    def held(self) -> OAuth | None:
        """Return the client with its token, None where that is to be asked for."""
        return self._auth if self._clock() < self._until else None

    def take(self, answer: Answer) -> OAuth:
        """Return the client with the token that its server answered (RFC 6749, section 5).

        Raises:
            RegistryError: it answered something else.
        """
        token, seconds = _token(answer)
        self._auth = replace(self._auth, token=token)
        # Without a word of when it expires (5.1) it is used until the registry refuses it.
        self._until = self._clock() + seconds - min(MARGIN, seconds / 10) if seconds is not None else math.inf
        return self._auth


def _token(answer: Answer) -> tuple[str, float | None]:
    """Return a token, and how many seconds it lives where the answer says so."""
    found = _json(answer) if answer.status == 200 else None
    match found:
        case {"access_token": str(token), **rest} if (
            re.fullmatch(r"[!-~]+", token) and str(rest.get("token_type") or "bearer").lower() == "bearer"
        ):
            return token, _seconds(rest.get("expires_in"))
        case dict():
            # There may be a token in it.
            why = f"status 200, with {', '.join(sorted(map(str, found))) or 'nothing'}"
        case _:
            why = answer.excerpt()
    raise RegistryError(
        "there is no token for the registry",
        where=answer.where,
        why=why,
        fix=unauthorized_fix(answer.endpoint.auth) if answer.status in {400, 401, 403} else answer.endpoint.url_fix,
    )


def _seconds(value: object) -> float | None:
    """Return a number of seconds; some servers write it as a text."""
    try:
        return max(float(str(value)), 0.0)
    except ValueError:
        return None


def _json(answer: Answer) -> object:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
