"""What the answers of Confluent's REST API mean (API v1; Confluent, Karapace, Apicurio's ccompat).

Used by the HTTP registry. It promises a checked value or one RegistryError that shows what came instead; fields that
it does not know are ignored, for every server has some of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from schemasync.core.references import LARGEST_VERSION, HeldSchema, Reference
from schemasync.errors import RegistryError
from schemasync.io.registry.answer import Answer
from schemasync.io.registry.auth import unauthorized_fix
from schemasync.io.registry.endpoint import URL_FIX

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


def subject_names(answer: Answer) -> list[str]:
    """Return what an answer of ``/subjects`` lists."""
    names = _content(answer)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _strange(answer, "a list of subjects")
    return names


def version_numbers(answer: Answer) -> list[int]:
    """Return what an answer of ``/subjects/S/versions`` lists, empty where there is no such subject."""
    numbers = [] if answer.not_found else _content(answer)
    if not isinstance(numbers, list) or not all(_is_number(n) and n <= LARGEST_VERSION for n in numbers):
        raise _strange(answer, f"a list of versions from 1 to {LARGEST_VERSION}")
    return numbers


def held_schema(answer: Answer, subject: str, version: int) -> HeldSchema:
    """Return what an answer of ``/subjects/S/versions/N`` holds."""
    match _content(answer):
        case {"schemaType": str(kind)} if kind != "AVRO":
            raise RegistryError(
                f"this is a schema of type {kind}, and only Avro is supported",
                where=answer.where,
                fix="Delete this version there if it is a mistake, else exclude the subject under tables.",
            )
        case {"id": int(schema_id), "schema": str(text), **rest} if (
            _is_number(schema_id) and rest.get("version", version) == version
        ):
            references = tuple(_references(answer, _context(subject), rest.get("references")))
            return HeldSchema(schema_id=schema_id, text=text, references=references)
        case _:
            raise _strange(answer, f"version {version} of a subject with an id and a schema")


def metadata(answer: Answer) -> Mapping[str, str]:
    """Return the metadata properties of an answer of ``/subjects/S/versions/N``, empty where it has none."""
    match _content(answer):
        case {"metadata": {"properties": dict() as properties}}:
            return {name: value for name, value in properties.items() if isinstance(value, str)}
        case _:
            return {}


def group_property(answer: Answer) -> str:
    """Return which metadata property ``/config/S`` tells groups by, empty where the registry has no such setting."""
    if not is_served(answer):  # Karapace and old servers know less of configurations; then nobody groups by them either
        return ""
    match _content(answer):
        case {"compatibilityGroup": str(name)}:
            return name
        case _:
            return ""


def is_served(answer: Answer) -> bool:
    """Tell whether an answer is about a question that not every server, gateway or access rule lets us ask.

    What is wrong with the server itself, its lists show, too; credentials that it refuses may be right again later.
    """
    return answer.status in {200, 401}


def newest_id(answer: Answer) -> int | None:
    """Return the ``maxId`` of an answer of ``/schemas/ids/N?fetchMaxId=true``; None where the server knows no such."""
    match _content(answer):
        case {"maxId": int(newest)} if _is_number(newest):
            return newest
        case dict():
            return None
        case _:
            raise _strange(answer, "a schema")


def _context(subject: str) -> str:
    """Return the context that a subject's name begins with (``:.eu:``), empty where it is in the default one."""
    return f":{subject.split(':')[1]}:" if subject.startswith(":.") else ""


def _references(answer: Answer, context: str, listed: object) -> Iterator[Reference]:
    """Read references; one without a context of its own is to a subject in the context of what refers to it."""
    for reference in listed if isinstance(listed, list) else [listed] if listed else []:
        match reference:
            case {"name": str(name), "subject": str(subject), "version": int(number)} if _is_number(number):
                yield Reference(name=name, key=(subject if subject.startswith(":.") else context + subject, number))
            case _:
                raise _strange(answer, "a schema whose references have a name, a subject and a version")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _content(answer: Answer) -> object:
    """Return the JSON of a good answer; everything else is final.

    Raises:
        RegistryError: a status other than 200, or a body that is not JSON.
    """
    match answer.status:
        case 200:
            return _json(answer)
        case 401:
            fix = unauthorized_fix(answer.endpoint.auth)
            raise _refused(answer, "the registry refuses us", fix)
        case 403:
            fix = "Have read access granted to this user (registry.auth), or exclude the subject under tables."
            raise _refused(answer, "the registry does not let us read this", fix)
        case status if 300 <= status < 400:
            raise RegistryError(
                f"the registry points elsewhere: to {answer.elsewhere or 'nowhere'}",
                where=answer.where,
                why=f"status {status}; redirects are not followed, so that credentials stay here",
                fix="If that is the registry, write its address into registry.url.",
            )
        case _:
            raise _refused(answer, "the registry refuses the request", URL_FIX)


def _json(answer: Answer) -> object:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise _refused(answer, "the answer is not JSON", URL_FIX) from error


def _strange(answer: Answer, expected: str) -> RegistryError:
    return _refused(answer, f"the answer is not {expected}", URL_FIX)


def _refused(answer: Answer, what: str, fix: str) -> RegistryError:
    return RegistryError(what, where=answer.where, why=answer.excerpt(), fix=fix)
