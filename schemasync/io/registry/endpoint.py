"""Whom we ask: the URLs of registry.url, taken apart, and shown without what is secret in them.

Used by the HTTP registry when it is made, and wherever a URL is shown. It promises that no error, log or repr gets a
user, password, query or fragment of a URL, also where the URL is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from schemasync.errors import UsageError
from schemasync.io.registry.auth import NO_AUTH, Auth, BasicAuth, OAuth

URL_FIX = (
    "Check registry.url: it must be the REST address of a schema registry with its base path "
    "(Confluent and Karapace: none; Apicurio: /apis/ccompat/v7), not of a proxy, login page or user interface."
)
TLS_FIX = (
    "Name the registry's CA in registry.ca and, if it asks for one, a client certificate in registry.auth.mtls; check "
    "that registry.url has the right scheme, host name and port."
)
_NO_URL_FIX = (
    "Write http://host:port or https://host:port, with the base path if there is one and without a query; put "
    "credentials into registry.auth."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One server: ``base`` has no credentials and no trailing slash, ``host`` is ``host:port`` for people.

    ``headers`` go to it beside what ``auth`` says. ``name`` and ``method`` tell in errors what was asked of it;
    ``url_fix`` and ``tls_fix`` say what to do where it answers strangely, or is not trusted.
    """

    base: str
    host: str
    auth: Auth
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "registry"
    method: str = "GET"
    url_fix: str = URL_FIX
    tls_fix: str = TLS_FIX

    def place(self, path: str) -> str:
        """Return what an error calls the question for a path."""
        return f"{self.name} {self.host}, {self.method} {urlsplit(self.base).path}{path}"


def token_endpoint(url: str, auth: OAuth) -> Endpoint:
    """Return the server that gives tokens; its URL may have a query (RFC 6749, section 3.2).

    Raises:
        UsageError: the URL is malformed, or has a user.
    """
    setting = "registry.auth.oauth.token_url"
    fix = "Write the https:// address that gives tokens for client credentials, without a user in it."
    parts, host = _taken_apart(url, setting, fix)
    if parts.username is not None or parts.fragment:
        _refuse(url, setting, fix)
    return Endpoint(
        base=url,
        host=host,
        auth=auth,
        name="token server",
        method="POST",
        url_fix=f"Check {setting}: {fix[0].lower()}{fix[1:]}",
        tls_fix=f"Name its CA in registry.auth.oauth.ca; check that {setting} has the right scheme, host and port.",
    )


def endpoints_of(
    url: str | Sequence[str], auth: Auth, headers: Mapping[str, str] | None = None
) -> tuple[Endpoint, ...]:
    """Return the servers of one URL, a comma-separated text or a sequence; a user in a URL becomes basic auth.

    Raises:
        UsageError: there is no URL, one is malformed, or one brings credentials beside ``auth``.
    """
    return tuple(_endpoint(one, auth, headers or {}) for one in _split_urls(url)) or _refuse("")


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


def _taken_apart(url: str, setting: str = "registry.url", fix: str = _NO_URL_FIX) -> tuple[SplitResult, str]:
    """Return a URL's parts, and ``host:port``."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        _refuse(url, setting, fix)
    if not parts.hostname or "@" in parts.path + parts.query + parts.fragment:
        _refuse(url, setting, fix)
    return parts, f"{f'[{parts.hostname}]' if ':' in parts.hostname else parts.hostname}:{port}"


def _endpoint(url: str, auth: Auth, headers: Mapping[str, str]) -> Endpoint:
    parts, host = _taken_apart(url)
    if parts.query or parts.fragment:
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
    base = f"{parts.scheme}://{authority}{parts.path.rstrip('/')}"
    return Endpoint(base=base, host=host, auth=auth, headers=headers)


def _refuse(url: str, setting: str = "registry.url", fix: str = _NO_URL_FIX) -> NoReturn:
    what = f"this is not the URL of a {'schema registry' if setting == 'registry.url' else 'server'}"
    raise UsageError(what, where=f"{setting} {redact_url(url)}", fix=fix) from None
