"""The HTTP edge to a schema registry that speaks Confluent's REST API (Confluent, Karapace, Apicurio's ccompat).

Made by the app from the configuration's ``registry``; implements `schemasync.core.ports.Registry` with GET requests
alone. It promises that every failure is one RegistryError or RegistryUnavailableError, that credentials reach no
error, log or repr, that TLS is always verified, and that nothing is relied on which some server ignores (prefix
filters, paging, media types, ``latestOnly``). Safe to call from several threads.
"""

from __future__ import annotations

import base64
import json
import random as randomness
import re
import ssl
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, Self, assert_never
from urllib.parse import quote, unquote, urlsplit

import requests
import urllib3
from requests.auth import AuthBase
from urllib3.util import Retry

from schemasync.core.ports import RegisteredSchema
from schemasync.errors import RegistryError, RegistryUnavailableError, UsageError

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""What Confluent's own client takes for temporary."""
UNTELLING_STATUSES = frozenset({403, 404, 405, 501})
"""Answers to the probe for the newest id which say that it is not served, or not to us."""
RETRY_AFTER_CAP = 60.0
"""Longest ``Retry-After`` that is slept, in seconds: a daemon must not be put to sleep for hours."""
BACKOFF_CAP = 30.0
"""Longest pause between two tries without a ``Retry-After``, in seconds."""
LAG_TRIES = 4
"""How often a version that "does not exist" is asked for: a follower may lag behind the list that named it."""
PAGE_SIZE = 1000
"""Apicurio answers at most so many subjects (``apicurio.ccompat.max-subjects``) and does not say that it cut."""
CACHED_VERSIONS = 4096
"""How many versions are kept in memory; the content of a (subject, version) never changes."""
EXCERPT = 80
"""How many characters of a strange answer an error shows."""
ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
URL_FIX = (
    "Check registry.url: it must be the REST address of a schema registry with its base path "
    "(Confluent and Karapace: none; Apicurio: /apis/ccompat/v7), not of a proxy, login page or user interface."
)


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


Auth = NoAuth | BasicAuth | BearerAuth

NO_AUTH = NoAuth()
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """One server: ``base`` has no credentials and no trailing slash, ``host`` is ``host:port`` for people."""

    base: str
    host: str
    auth: Auth

    @property
    def authorization(self) -> str:
        match self.auth:
            case NoAuth():
                return ""
            case BasicAuth(username=username, password=password):
                return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
            case BearerAuth(token=token):
                return f"Bearer {token}"
            case _:
                assert_never(self.auth)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What an error must not show even if the server echoes it."""
        own = self.auth.password if isinstance(self.auth, BasicAuth) else ""
        return tuple(secret for secret in (self.authorization.partition(" ")[2], own) if secret)


def _endpoint(url: str, auth: Auth) -> _Endpoint:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        _refuse_url(url)
    if not parts.hostname or "@" in parts.path + parts.query + parts.fragment or parts.query or parts.fragment:
        _refuse_url(url)
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
    return _Endpoint(base=base, host=f"{name}:{port}", auth=auth)


def _refuse_url(url: str) -> NoReturn:
    raise UsageError(
        "this is not the URL of a schema registry",
        where=f"registry.url {redact_url(url)}",
        fix="Write http://host:port or https://host:port, with the base path if there is one and without a query; put "
        "credentials into registry.auth (in a URL, percent-encode what is special in them).",
    ) from None


def _check_header_values(auth: Auth, headers: Mapping[str, str]) -> None:
    """Refuse what HTTP cannot carry here: the libraries' own errors would print the value."""
    token = {"registry.auth.bearer": auth.token} if isinstance(auth, BearerAuth) else {}
    for setting, value in {**token, **{f"registry, header {name}": value for name, value in headers.items()}}.items():
        if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
            raise UsageError(
                "the value is empty or holds spaces at its ends, line breaks or characters outside ASCII",
                where=setting,
                fix="Look for a line break at the end of the file or variable that it comes from.",
            )


def _check_certificates(ca: str | None, client_cert: tuple[str, str] | None) -> None:
    """Load the files once: a missing one is a wrong configuration, and an encrypted key would ask on the terminal."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        setting = f"registry.ca {ca}"
        if ca:
            context.load_verify_locations(**{"capath" if Path(ca).is_dir() else "cafile": ca})
        if client_cert:
            setting = f"registry.auth.mtls {client_cert[0]} and {client_cert[1]}"
            context.load_cert_chain(*client_cert, password=lambda: "")
    except OSError as error:
        raise UsageError(
            "the certificate files cannot be used",
            where=setting,
            why=error.strerror or str(error),
            fix="Name readable PEM files; a client's key must belong to its certificate and must not be encrypted.",
        ) from error


class _Authorize(AuthBase):
    """Sets the header itself, so that neither ~/.netrc nor Latin-1 have a say in it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._value:
            r.headers["Authorization"] = self._value
        return r


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What came back: any status, any body."""

    endpoint: _Endpoint
    path: str
    status: int
    content_type: str
    retry_after: float
    location: str
    body: bytes

    @property
    def where(self) -> str:
        return f"registry {self.endpoint.host}, GET {urlsplit(self.endpoint.base).path}{self.path}"

    @property
    def temporary(self) -> bool:
        return self.status in RETRIED_STATUSES

    @property
    def reason(self) -> str:
        return f"it answered with status {self.status}"

    @property
    def cause(self) -> Exception | None:
        return None

    @property
    def error_code(self) -> int | None:
        """The registry's own five-digit code (40401, ...); None where the body is not its JSON."""
        try:
            code = json.loads(self.body)["error_code"]
        except (ValueError, RecursionError, TypeError, KeyError, IndexError):
            return None
        return code if isinstance(code, int) else None

    @property
    def not_found(self) -> bool:
        """Whether the registry itself, not something in front of it, says that there is no such thing."""
        return self.status == 404 and 40400 < (self.error_code or 0) < 40500

    def excerpt(self) -> str:
        """Return what came back in one line: status, content type and the first characters."""
        text = self.body[:4096].decode("utf-8", "replace")
        for secret in self.endpoint.secrets:
            text = text.replace(secret, "***")
        shown = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))[:EXCERPT]
        return f"status {self.status}, content type {self.content_type or 'unknown'}, beginning with '{shown}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silence:
    """Why no answer came."""

    reason: str
    cause: Exception | None
    retry_after: float = 0.0


def _innermost(error: BaseException, handled: BaseException | None) -> str:
    """Return what the operating system said: the libraries' layers around it only repeat addresses.

    ``handled`` is what our caller was handling when it asked; Python chains it below, and it is not ours to tell.
    """
    while (inner := error.__cause__ or error.__context__) is not None and inner is not handled:
        error = inner
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _retry_after(value: str | None) -> float:
    """Return the seconds of a ``Retry-After`` header (a number or a date), capped; 0 where it says nothing."""
    try:
        return min(Retry().parse_retry_after(value or ""), RETRY_AFTER_CAP)
    except (urllib3.exceptions.HTTPError, ValueError, OverflowError):
        return 0.0


@dataclass(slots=True, kw_only=True)
class _Transport:
    """Sends one GET until there is an answer that is worth reading, or the tries are used up."""

    endpoints: Sequence[_Endpoint]
    verify: str | bool
    client_cert: tuple[str, str] | None
    timeout: tuple[float, float]
    retries: int
    backoff: float
    sleep: Callable[[float], None]
    random: Callable[[], float]
    session: requests.Session
    preferred: int = 0

    def pause(self, number: int, retry_after: float = 0.0) -> None:
        """Sleep before retry ``number`` (from 1): exponential with jitter, on top of what the server asked for."""
        backoff = min(self.backoff * 2.0 ** (number - 1), BACKOFF_CAP)
        self.sleep(retry_after + backoff * (0.5 + self.random() / 2))

    def get(self, path: str, **query: str) -> _Answer:
        """Return the first answer whose status is not a temporary one.

        Raises:
            RegistryError: the request cannot succeed (certificates).
            RegistryUnavailableError: no server answered, or all answers were temporary failures.
        """
        outcome = self._first_answer(path, query)
        for number in range(1, self.retries + 1):
            if isinstance(outcome, _Answer) and not outcome.temporary:
                break
            self.pause(number, outcome.retry_after)
            outcome = self._first_answer(path, query)
        if isinstance(outcome, _Answer) and not outcome.temporary:
            return outcome
        raise self._unavailable(outcome, path) from outcome.cause

    def _unavailable(self, outcome: _Answer | _Silence, path: str) -> RegistryUnavailableError:
        tries = self.retries + 1
        return RegistryUnavailableError(
            f"no usable answer, tried {tries} time{'s' * (tries > 1)}",
            where=f"registry {', '.join(endpoint.host for endpoint in self.endpoints)}, GET {path}",
            why=outcome.reason,
            fix="Check that the registry runs and that registry.url, proxies and firewalls lead to it.",
        )

    def _first_answer(self, path: str, query: Mapping[str, str]) -> _Answer | _Silence:
        """Ask one server after the other, beginning with the one that answered last."""
        start = self.preferred
        for position in (*range(start, len(self.endpoints)), *range(start)):
            outcome = self._ask(self.endpoints[position], path, query)
            if isinstance(outcome, _Answer):
                self.preferred = position
                break
        return outcome

    def _ask(self, endpoint: _Endpoint, path: str, query: Mapping[str, str]) -> _Answer | _Silence:
        handled = sys.exception()
        try:
            response = self.session.get(
                endpoint.base + path,
                params=dict(query),
                auth=_Authorize(endpoint.authorization),
                timeout=self.timeout,
                # Given with every request: a session's own value loses against REQUESTS_CA_BUNDLE.
                verify=self.verify,
                cert=self.client_cert,
                # Credentials must not follow a redirect to another server.
                allow_redirects=False,
            )
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return _silence(error, endpoint, path, _innermost(error, handled))
        return _Answer(
            endpoint=endpoint,
            path=path,
            status=response.status_code,
            content_type=response.headers.get("Content-Type", ""),
            retry_after=_retry_after(response.headers.get("Retry-After")),
            location=response.headers.get("Location", ""),
            body=response.content,
        )


def _silence(error: Exception, endpoint: _Endpoint, path: str, why: str) -> _Silence:
    """Tell a failure that may pass from one that asking again repeats."""
    where = f"registry {endpoint.host}, GET {urlsplit(endpoint.base).path}{path}"
    match error:
        case requests.exceptions.SSLError() if "EOF" not in why:
            raise RegistryError(
                "no trusted connection",
                where=where,
                why=why,
                fix="Name the registry's CA in registry.ca and, if it asks for one, a client certificate in "
                "registry.auth.mtls; check that registry.url has the right scheme, host name and port.",
            ) from error
        case requests.ConnectionError() | requests.Timeout():
            return _Silence(reason=why, cause=error)
        case requests.exceptions.ChunkedEncodingError() | requests.exceptions.ContentDecodingError():
            return _Silence(reason=f"the answer broke off, {why}", cause=error)
        case _:
            raise RegistryError("the request cannot be sent", where=where, why=why, fix=URL_FIX) from error


def _content(answer: _Answer) -> object:
    """Return the JSON of a good answer; everything else is final.

    Raises:
        RegistryError: a status other than 200, or a body that is not JSON.
    """
    match answer.status:
        case 200:
            return _json(answer)
        case 401 | 403:
            raise RegistryError(
                "the registry refuses us" if answer.status == 401 else "the registry does not let us read this",
                where=answer.where,
                why=answer.excerpt(),
                fix=_auth_fix(answer),
            )
        case status if 300 <= status < 400:
            raise RegistryError(
                f"the registry points elsewhere: to {redact_url(answer.location) or 'nowhere'}",
                where=answer.where,
                why=f"status {status}; redirects are not followed, so that credentials stay here",
                fix="If that is the registry, write its address into registry.url.",
            )
        case _:
            raise RegistryError(
                "the registry refuses the request", where=answer.where, why=answer.excerpt(), fix=URL_FIX
            )


def _json(answer: _Answer) -> object:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise RegistryError("the answer is not JSON", where=answer.where, why=answer.excerpt(), fix=URL_FIX) from error


def _auth_fix(answer: _Answer) -> str:
    if answer.status == 403:
        return "Have read access granted to this user (registry.auth), or exclude the subject under tables."
    match answer.endpoint.auth:
        case NoAuth():
            return "Set registry.auth (basic, bearer or mtls): no user or token is configured."
        case BasicAuth():
            return "Check username and password in registry.auth.basic (or in registry.url)."
        case BearerAuth():
            return "Check the token in registry.auth.bearer: it may have expired."
        case _:
            assert_never(answer.endpoint.auth)


def _strange(answer: _Answer, expected: str) -> RegistryError:
    return RegistryError(f"the answer is not {expected}", where=answer.where, why=answer.excerpt(), fix=URL_FIX)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One version as the registry answers it, its references not yet followed."""

    schema_id: int
    text: str
    references: tuple[_Reference, ...]


def _version(answer: _Answer, version: int) -> _Version:
    """Return what an answer of ``/subjects/S/versions/N`` holds; fields that we do not know are ignored."""
    match _content(answer):
        case {"schemaType": str(kind)} if kind != "AVRO":
            raise RegistryError(
                f"this is a schema of type {kind}, and only Avro is supported",
                where=answer.where,
                fix="Exclude the subject under tables in the configuration.",
            )
        case {"id": int(schema_id), "schema": str(text), **rest} if (
            _is_number(schema_id) and rest.get("version", version) == version
        ):
            return _Version(
                schema_id=schema_id, text=text, references=tuple(_references(answer, rest.get("references")))
            )
        case _:
            raise _strange(answer, f"version {version} of a subject with an id and a schema")


def _references(answer: _Answer, listed: object) -> Iterator[_Reference]:
    for reference in listed if isinstance(listed, list) else [listed] if listed else []:
        match reference:
            case {"name": str(name), "subject": str(subject), "version": int(number)} if _is_number(number):
                yield _Reference(name=name, subject=subject, version=number)
            case _:
                raise _strange(answer, "a schema whose references have a name, a subject and a version")


def _canonical(text: str) -> str:
    """Return a text that is equal for equal JSON: some servers sort keys or leave out spaces."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


_Key = tuple[str, int]


def _trail(path: Sequence[_Key]) -> str:
    return " -> ".join(f"{subject} version {version}" for subject, version in path)


class _Resolution:
    """The walk over the references of one version: depth first, each version once, each name with one content."""

    def __init__(self, fetch: Callable[[_Key, tuple[_Key, ...]], _Version]) -> None:
        self._fetch = fetch
        self._done: dict[_Key, str] = {}
        self._named: dict[str, tuple[str, str]] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in an order in which each only needs those before it, equal ones once."""
        first: dict[str, str] = {}
        for text in self._done.values():
            first.setdefault(_canonical(text), text)
        return tuple(first.values())

    def follow(self, references: Sequence[_Reference], path: tuple[_Key, ...]) -> None:
        for reference in references:
            key = (reference.subject, reference.version)
            trail = (*path, key)
            if key in path:
                raise RegistryError(
                    "the references of a schema lead back to it", where=_trail(trail), fix=_REFERENCE_FIX
                )
            if key not in self._done:
                found = self._fetch(key, trail)
                self.follow(found.references, trail)
                self._done[key] = found.text
            self._check_name(reference.name, self._done[key], trail)

    def _check_name(self, name: str, text: str, trail: tuple[_Key, ...]) -> None:
        content, first = self._named.setdefault(name, (_canonical(text), _trail(trail)))
        if content != _canonical(text):
            raise RegistryError(
                f"the reference '{name}' stands for two different schemas",
                where=_trail(trail),
                why=f"another one came by {first}",
                fix=_REFERENCE_FIX,
            )


_REFERENCE_FIX = "Register a version whose references agree."


class HttpRegistry:
    """A schema registry behind one or several URLs; see `schemasync.core.ports.Registry` for the questions.

    ``url`` is one URL, a comma-separated text or a sequence: when a server gives no answer, the next one is asked,
    and the one that answered is asked first from then on. A user and password in a URL become basic auth.
    ``timeout`` is (connect, read) in seconds; ``retries`` counts the tries after the first, and a try asks every
    server at most once; the pause before retry n is about ``backoff * 2**(n-1)`` seconds. ``client_cert`` is
    (certificate, unencrypted key), ``ca`` a PEM file or directory. Proxies are taken from the environment.

    Raises:
        UsageError: a URL, certificate or header that cannot be used.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        auth: Auth = NO_AUTH,
        ca: str | None = None,
        client_cert: tuple[str, str] | None = None,
        timeout: tuple[float, float] = (5, 30),
        retries: int = 5,
        backoff: float = 0.5,
        headers: Mapping[str, str] = NO_HEADERS,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        endpoints = [_endpoint(one, auth) for one in _split_urls(url)]
        if not endpoints:
            _refuse_url("")
        _check_header_values(auth, headers)
        _check_certificates(ca, client_cert)
        session = requests.Session()
        session.headers.update({"Accept": ACCEPT, "User-Agent": "schemasync", **headers})
        self._transport = _Transport(
            endpoints=endpoints,
            verify=ca or True,
            client_cert=client_cert,
            timeout=timeout,
            retries=max(retries, 0),
            backoff=backoff,
            sleep=sleep,
            random=random,
            session=session,
        )
        self._lock = threading.Lock()
        self._cache: OrderedDict[_Key, _Version] = OrderedDict()
        self._newest_id: int | None = None
        self._known_id = 1
        self._uses_contexts = False

    def __repr__(self) -> str:
        return f"HttpRegistry({','.join(endpoint.base for endpoint in self._transport.endpoints)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next question would open new ones."""
        self._transport.session.close()

    def subjects(self) -> tuple[str, ...]:
        """Return all live subjects of all contexts, sorted.

        Pages on only where exactly `PAGE_SIZE` names came, and only while pages bring new names: Karapace and
        Apicurio 2 ignore ``offset`` and ``limit``.
        """
        page = self._subject_page()
        found = set(page)
        while len(page) == PAGE_SIZE:
            page = self._subject_page(offset=str(len(found)), limit=str(PAGE_SIZE))
            if found.issuperset(page):
                break
            found.update(page)
        return tuple(sorted(found))

    def _subject_page(self, **query: str) -> list[str]:
        answer = self._transport.get("/subjects", **query)
        names = _content(answer)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _strange(answer, "a list of subjects")
        return names

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the live versions in ascending order, empty where the registry knows no such subject."""
        answer = self._transport.get(f"/subjects/{quote(subject, safe='')}/versions")
        numbers = [] if answer.not_found else _content(answer)
        if not isinstance(numbers, list) or not all(_is_number(number) for number in numbers):
            raise _strange(answer, "a list of versions")
        self._forget_all_but(subject, numbers)
        return tuple(sorted(numbers))

    def _forget_all_but(self, subject: str, listed: Sequence[int]) -> None:
        """Drop what vanished: a subject that is deleted for good and made again restarts at version 1."""
        with self._lock:
            # Ids grow per context, and the probe sees the default one only.
            self._uses_contexts = self._uses_contexts or subject.startswith(":.")
            for key in [key for key in self._cache if key[0] == subject and key[1] not in listed]:
                del self._cache[key]

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved; kept in memory, as its content never changes."""
        root = (subject, version)
        found = self._fetch(root, (root,))
        resolution = _Resolution(self._fetch)
        resolution.follow(found.references, (root,))
        return RegisteredSchema(
            subject=subject,
            version=version,
            schema_id=found.schema_id,
            text=found.text,
            references=resolution.texts,
        )

    def _fetch(self, key: _Key, trail: tuple[_Key, ...]) -> _Version:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        found = _version(self._listed_version(key, trail), key[1])
        with self._lock:
            self._cache[key] = found
            if len(self._cache) > CACHED_VERSIONS:
                self._cache.popitem(last=False)
            if not key[0].startswith(":."):
                self._known_id = max(self._known_id, found.schema_id)
        return found

    def _listed_version(self, key: _Key, trail: tuple[_Key, ...]) -> _Answer:
        """Ask for a version that was listed, or that a schema refers to; a follower may not have it yet."""
        path = f"/subjects/{quote(key[0], safe='')}/versions/{key[1]}"
        for number in range(1, LAG_TRIES + 1):
            answer = self._transport.get(path)
            if not answer.not_found:
                return answer
            if number < LAG_TRIES:
                self._transport.pause(number)
        raise RegistryError(
            f"there is no version {key[1]} of subject '{key[0]}', asked {LAG_TRIES} times",
            where=answer.where if len(trail) == 1 else f"{answer.where} for {_trail(trail)}",
            why=answer.excerpt(),
            fix="It was deleted, or this user may not see it: look at the registry's list of versions.",
        )

    def newest_id(self) -> int | None:
        """Return the largest id of the default context that any answer named; never goes backwards.

        Asks for a known id with ``fetchMaxId`` (Confluent, Karapace). None where no answer has ``maxId``, where the
        id may not be read, and once versions of a subject in another context were asked for.
        """
        if self._uses_contexts:
            return None
        for known in dict.fromkeys((self._known_id, 1)):
            answer = self._transport.get(f"/schemas/ids/{known}", fetchMaxId="true")
            if answer.status not in UNTELLING_STATUSES:
                return self._grown(answer)
        return None

    def _grown(self, answer: _Answer) -> int | None:
        match _content(answer):
            case {"maxId": int(newest)} if _is_number(newest):
                with self._lock:
                    self._newest_id = max(newest, self._newest_id or 0)
                    return self._newest_id
            case dict():
                return None
            case _:
                raise _strange(answer, "a schema")
