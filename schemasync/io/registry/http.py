"""A schema registry that speaks Confluent's REST API (Confluent, Karapace, Apicurio's ccompat).

Made by the app from the configuration's ``registry``; implements `schemasync.core.ports.Registry` with GET requests
alone. It promises that every failure is one RegistryError or RegistryUnavailableError, that credentials reach no
error, log or repr, that TLS is always verified, and that nothing is relied on which some server ignores (prefix
filters, paging, media types, ``latestOnly``). Safe to call from several threads.
"""

from __future__ import annotations

import random as randomness
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Self
from urllib.parse import quote

from schemasync.core.config_values import require_header_values
from schemasync.core.ports import RegisteredSchema
from schemasync.core.references import HeldSchema, Trail, resolve, trail_text
from schemasync.errors import RegistryError
from schemasync.http_session import open_session
from schemasync.io.registry import wire
from schemasync.io.registry.answer import Answer
from schemasync.io.registry.auth import NO_AUTH, Auth, OAuth, check_certificates, check_token
from schemasync.io.registry.endpoint import endpoints_of
from schemasync.io.registry.kept import KeptVersions
from schemasync.io.registry.tokens import Tokens
from schemasync.io.registry.transport import Transport

LAG_TRIES = 4
"""How often what "does not exist" is asked for: a follower may lag behind the list of another one that named it."""
MOST_IN_VAIN = 3
"""So many lists that stay shorter are waited for, some 3 s each, after a list of all subjects: more were deleted."""
PAGE_SIZE = 1000
"""Apicurio answers at most so many subjects (``apicurio.ccompat.max-subjects``) and does not say that it cut."""


class HttpRegistry:
    """A schema registry behind one or several URLs; see `schemasync.core.ports.Registry` for the questions.

    ``url`` is one URL, a comma-separated text or a sequence: when a server gives no answer, the next one is asked,
    and the one that answered is asked first from then on. A user and password in a URL become basic auth.
    ``timeout`` is (connect, whole answer) in seconds; ``retries`` counts the tries after the first, and a try asks
    every server at most once; the pause before retry n is about ``backoff * 2**(n-1)`` seconds. ``client_cert`` is
    (certificate, unencrypted key), ``ca`` a PEM file or directory; ``headers`` go with every question. Proxies are
    taken from the environment. A ``sleep`` that returns something true was woken: nothing is asked again then.
    ``clock`` is in seconds, and never set.

    Raises:
        UsageError: a URL, certificate, token or header that cannot be used.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        auth: Auth = NO_AUTH,
        ca: str | None = None,
        client_cert: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: tuple[float, float] = (5, 30),
        retries: int = 5,
        backoff: float = 0.5,
        sleep: Callable[[float], object] = time.sleep,
        random: Callable[[], float] = randomness.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_header_values({f"registry.headers.{name}": value for name, value in (headers or {}).items()})
        endpoints = endpoints_of(url, auth, headers)
        check_token(auth)
        check_certificates(ca, client_cert)
        tokens = Tokens(auth, clock=clock) if isinstance(auth, OAuth) else None
        if tokens:
            check_certificates(tokens.ca, None, setting="registry.auth.oauth.ca")
        session = open_session()
        session.headers.update({"Accept": wire.ACCEPT, "User-Agent": "schemasync"})
        self._transport = Transport(
            endpoints=endpoints,
            verify=ca or True,
            client_cert=client_cert,
            timeout=timeout,
            retries=max(retries, 0),
            backoff=backoff,
            sleep=sleep,
            random=random,
            session=session,
            tokens=tokens,
        )
        self._lock = threading.Lock()
        self._kept = KeptVersions(clock)
        self._newest_id: int | None = None
        self._known_id = 1
        self._uses_contexts = False
        self._in_vain = 0

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
        page = self._first_page()
        found = set(page)
        while len(page) == PAGE_SIZE:
            answer = self._transport.get("/subjects", offset=str(len(found)), limit=str(PAGE_SIZE))
            page = wire.subject_names(answer)
            if found.issuperset(page):
                break
            found.update(page)
        self._kept.list_subjects(found)
        return tuple(sorted(found))

    def _first_page(self) -> list[str]:
        """Ask for subjects until none is missing that was there before, which is deleted then.

        Not where they fill a page: others are on the next.
        """

        def is_complete(answer: Answer) -> bool:
            names = wire.subject_names(answer)
            return len(names) == PAGE_SIZE or not self._kept.lacks_subjects(names)

        self._in_vain = 0
        return wire.subject_names(self._listed(is_complete, "/subjects"))

    def _listed(self, is_complete: Callable[[Answer], bool], path: str) -> Answer:
        """Ask for a list until it is complete; where some were asked for in vain, others are taken as they come."""
        if self._in_vain >= MOST_IN_VAIN:
            return self._transport.get(path)
        answer = self._until(is_complete, path)
        self._in_vain += not is_complete(answer)
        return answer

    def _until(self, is_good: Callable[[Answer], bool], path: str) -> Answer:
        """Ask until the answer is good, `LAG_TRIES` times at most; return the last one."""
        return self._transport.patiently(lambda: self._transport.get(path), until=is_good, tries=LAG_TRIES)

    def versions(self, subject: str) -> tuple[int, ...]:
        """Return the live versions in ascending order, empty where the registry knows no such subject."""
        # Ids grow per context, and the probe sees the default one only.
        self._uses_contexts = self._uses_contexts or subject.startswith(":.")
        answer = self._listed(
            lambda answer: not self._kept.lacks_versions(subject, wire.version_numbers(answer)),
            f"{_path(subject)}/versions",
        )
        numbers = tuple(sorted(wire.version_numbers(answer)))
        self._kept.forget_unless_listed(subject, numbers)
        self._compare(subject, numbers)
        self._kept.list_versions(subject, numbers)
        return numbers

    def _compare(self, subject: str, listed: Sequence[int]) -> None:
        """Fetch a version again, now and then and beside new ones: a subject made anew may list the same numbers."""
        doubtful = self._kept.pop_doubtful(subject, listed)
        if doubtful and self._fetch(((subject, doubtful[0]),)) != doubtful[1]:
            self._kept.forget(subject)

    def schema(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version with its references resolved; it is asked for once, as its content never changes."""
        return resolve(subject, version, self._fetch)

    def _fetch(self, trail: Trail) -> HeldSchema:
        key = trail[-1]
        if kept := self._kept.get(key):
            return kept
        answer = self._listed_version(trail)
        found = replace(wire.held_schema(answer, *key), group=self._group(key[0], wire.metadata(answer)))
        self._kept.put(key, found)
        if not key[0].startswith(":."):
            with self._lock:
                self._known_id = max(self._known_id, found.schema_id)
        return found

    def _group(self, subject: str, properties: Mapping[str, str]) -> str:
        """Return the compatibility group of a version with these metadata; most have none, and cost no question."""
        if not properties:
            return ""
        answer = self._transport.get(f"/config/{quote(subject, safe='')}", defaultToGlobal="true")
        return properties.get(wire.group_property(answer), "")

    def _listed_version(self, trail: Trail) -> Answer:
        """Ask for a version that was listed, or that a schema refers to; a follower may not have it yet."""
        subject, version = trail[-1]
        answer = self._until(lambda answer: not answer.not_found, f"{_path(subject)}/versions/{version}")
        if not answer.not_found:
            return answer
        raise RegistryError(
            f"there is no version {version} of subject '{subject}', asked {LAG_TRIES} times",
            where=answer.where if len(trail) == 1 else f"{answer.where} for {trail_text(trail)}",
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
            if wire.is_served(answer):
                return self._grown(wire.newest_id(answer))
        return None

    def _grown(self, newest: int | None) -> int | None:
        if newest is None:
            return None
        with self._lock:
            self._newest_id = max(newest, self._newest_id or 0)
            return self._newest_id


def _path(subject: str) -> str:
    """Return where a subject is; JSON lets a name have what no address can.

    Raises:
        RegistryError: it has half of a pair of surrogates.
    """
    try:
        return f"/subjects/{quote(subject, safe='')}"
    except UnicodeEncodeError as error:
        raise RegistryError(
            "nobody can ask for this subject",
            where=f"subject {subject!r}",
            why="its name has half of a character",
            fix="Register it under another name, or exclude it.",
        ) from error
