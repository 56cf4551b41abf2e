"""Who we are to a registry: credentials, certificates, and the checks that they can be used at all.

Made by the app from the configuration's ``registry.auth``; used by the HTTP registry. It promises that no secret is
in a repr, and that a value or file which cannot work is a UsageError at once, not a strange failure later.
"""

from __future__ import annotations

import base64
import html
import json
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never
from urllib.parse import quote, quote_plus

import requests
from requests.auth import AuthBase

from schemasync.core.config_values import require_header_values
from schemasync.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAuth:
    """Ask without credentials (a client certificate may still say who we are)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth:
    """User name and password, sent as UTF-8."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerAuth:
    """A static token."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """Client credentials (RFC 6749, section 4.4): a server at ``url`` gives tokens for them.

    ``ca`` is a PEM file that this server is checked against, else the system's are. ``token`` is what goes to the
    registry, empty before there is one: then it is the client that says who it is, to the server of tokens.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    ca: str | None = None
    token: str = field(default="", repr=False)


Auth = NoAuth | BasicAuth | BearerAuth | OAuth

NO_AUTH = NoAuth()


def authorization(auth: Auth) -> str:
    """Return the value of the header that says who we are, empty where nothing does."""
    match auth:
        case NoAuth():
            return ""
        case BasicAuth(username=username, password=password):
            return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
        case BearerAuth(token=token):
            return f"Bearer {token}"
        case OAuth(token=""):
            # Both are written as in a form before they are joined (RFC 6749, section 2.3.1).
            return authorization(
                BasicAuth(username=quote_plus(auth.client_id), password=quote_plus(auth.client_secret))
            )
        case OAuth(token=token):
            return f"Bearer {token}"
        case _:
            assert_never(auth)


SHORTEST: Final = 6
"""Characters that a header's value has at least which an error does not show."""

_WRITTEN: Final[tuple[Callable[[str], str], ...]] = (
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    html.escape,
    quote,
    lambda text: quote(text, safe=""),
    quote_plus,
)
"""How a server may write a text that it was sent: as it is, in JSON, in HTML, in an address."""


def secrets(auth: Auth, headers: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what an error must not show even if the server echoes it, the longest first: they may overlap.

    ``headers`` are the values of others that were sent; those of a few characters are no secrets, and are in any text.
    """
    match auth:
        case BasicAuth(password=own) | OAuth(client_secret=own):
            pass
        case _:
            own = ""
    sent = [secret for secret in (authorization(auth).partition(" ")[2], own) if secret]
    sent += [value for value in headers if len(value) >= SHORTEST]
    return tuple(sorted({write(secret) for secret in sent for write in _WRITTEN}, key=len, reverse=True))


def unauthorized_fix(auth: Auth) -> str:
    """Return what to do when a server answers 401."""
    match auth:
        case NoAuth():
            return "Set registry.auth (basic, bearer, oauth or mtls): no user or token is configured."
        case BasicAuth():
            return "Check username and password in registry.auth.basic."
        case BearerAuth():
            return "Check the token in registry.auth.bearer: it may have expired."
        case OAuth(token=""):
            return "Check client_id, client_secret and scope in registry.auth.oauth."
        case OAuth():
            return (
                "It refuses a new token of registry.auth.oauth: check the scope, what this client may do there, and, "
                "where the registry asks for headers beside the token, registry.headers."
            )
        case _:
            assert_never(auth)


class Authorize(AuthBase):
    """Sets the header itself, so that neither ~/.netrc nor Latin-1 have a say in it."""

    def __init__(self, auth: Auth) -> None:
        self._value = authorization(auth)

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        """Return the request with the header."""
        if self._value:
            r.headers["Authorization"] = self._value
        return r


def check_token(auth: Auth) -> None:
    """Refuse a token that HTTP cannot carry.

    Raises:
        UsageError: as `require_header_values`.
    """
    if isinstance(auth, BearerAuth):
        require_header_values({"registry.auth.bearer": auth.token})


def check_certificates(ca: str | None, client_cert: tuple[str, str] | None, *, setting: str = "registry.ca") -> None:
    """Load the files once: a missing one is a wrong configuration, and an encrypted key would ask on the terminal.

    Raises:
        UsageError: a file is missing or unreadable, is no PEM, or a key is encrypted or not its certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        where = f"{setting} {ca}"
        if ca:
            context.load_verify_locations(**{"capath" if Path(ca).is_dir() else "cafile": ca})
        if client_cert:
            where = f"registry.auth.mtls {client_cert[0]} and {client_cert[1]}"
            context.load_cert_chain(*client_cert, password=lambda: "")
    except OSError as error:
        raise UsageError(
            "the certificate files cannot be used",
            where=where,
            why=error.strerror or str(error),
            fix="Name readable PEM files; a client's key must belong to its certificate and must not be encrypted.",
        ) from error
