"""Whom we ask: the URLs of registry.url, taken apart, and shown without what is secret in them.

Used by the HTTP registry when it is made, and wherever a URL is shown. It promises that no error, log or repr gets a
user, password, query or fragment of a URL, also where the URL is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from schemasync.errors import UsageError
from schemasync.io.registry.auth import NO_AUTH, Auth, BasicAuth

URL_FIX = (
    "Check registry.url: it must be the REST address of a schema registry with its base path "
    "(Confluent and Karapace: none; Apicurio: /apis/ccompat/v7), not of a proxy, login page or user interface."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One server: ``base`` has no credentials and no trailing slash, ``host`` is ``host:port`` for people."""

    base: str
    host: str
    auth: Auth

    def place(self, path: str) -> str:
        """Return what an error calls the question for a path."""
        return f"registry {self.host}, GET {urlsplit(self.base).path}{path}"


def endpoints_of(url: str | Sequence[str], auth: Auth) -> tuple[Endpoint, ...]:
    """Return the servers of one URL, a comma-separated text or a sequence; a user in a URL becomes basic auth.

    Raises:
        UsageError: there is no URL, one is malformed, or one brings credentials beside ``auth``.
    """
    return tuple(_endpoint(one, auth) for one in _split_urls(url)) or _refuse("")


def redact_url(url: str) -> str:
    """Return a URL, or a comma-separated list of them, without user, password, query and fragment.

    Errs on the side of removing too much, also where the URL is malformed.
    """
    return ",".join(_redact_one(one) for one in _split_urls(url))


def _redact_one(url: str) -> str:
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    return f"{scheme}{separator}{re.split('[?#]', rest.rpartition('@')[2])[0]}"


def _split_urls(url: str | Sequence[str]) -> list[str]:
    """Return the URLs of a list, or of a text that separates them by commas; a password may hold commas."""
    texts = re.split(r",\s*(?=https?://)", url) if isinstance(url, str) else list(url)
    return [text.strip() for text in texts if text.strip()]


def _endpoint(url: str, auth: Auth) -> Endpoint:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        _refuse(url)
    if not parts.hostname or "@" in parts.path + parts.query + parts.fragment or parts.query or parts.fragment:
        _refuse(url)
    if parts.username is not None and auth != NO_AUTH:
        raise UsageError(
            "there are credentials in the URL and in registry.auth",
            where=f"registry.url {redact_url(url)}",
            fix="Keep those in registry.auth and remove the others.",
        )
    if parts.username is not None:
        auth = BasicAuth(username=unquote(parts.username), password=unquote(parts.password or ""))
    authority = parts.netloc.rpartition("@")[2]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{authority}{parts.path.rstrip('/')}"
    return Endpoint(base=base, host=f"{name}:{port}", auth=auth)


def _refuse(url: str) -> NoReturn:
    raise UsageError(
        "this is not the URL of a schema registry",
        where=f"registry.url {redact_url(url)}",
        fix="Write http://host:port or https://host:port, with the base path if there is one and without a query; put "
        "credentials into registry.auth.",
    ) from None
