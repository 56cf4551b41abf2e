from __future__ import annotations

from typing import Any

import pytest

from schemasync.core.release import RELEASES, Release, released
from tests.core.builders import target


def policies(release: Release, **before: str) -> dict[str, str]:
    """Return the policies that a release changes."""
    given = target(policies=before)
    found: dict[str, Any] = released(given, release).policies.model_dump()
    return {name: value for name, value in found.items() if value != getattr(given.policies, name)}


def test_what_was_held_to_be_asked_about_is_let_through() -> None:
    held = {"add": "hold", "drop": "hold", "widen": "hold"}
    assert policies(Release(), **held) == {"add": "evolve", "drop": "drop", "widen": "evolve"}


def test_policies_that_hold_nothing_stay() -> None:
    assert policies(Release(), add="null", drop="keep", rename="drop_add", retype="hold") == {}


@pytest.mark.parametrize(
    ("release", "before", "changed"),
    [
        (Release(migrate=True), {"retype": "hold"}, {"retype": "migrate", "semantic": "migrate"}),
        (Release(migrate=True), {"retype": "variant"}, {"semantic": "migrate"}),
        (Release(rebuild=True), {}, {"key": "rebuild"}),
    ],
)
def test_what_a_person_agrees_to_is_done(release: Release, before: dict[str, str], changed: dict[str, str]) -> None:
    assert policies(release, **before) == changed


def test_a_release_reads_as_its_options() -> None:
    assert [str(release) for release in RELEASES] == ["", " --migrate", " --rebuild", " --migrate --rebuild"]
