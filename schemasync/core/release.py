"""Lifting a hold once: the policies under which a held change is let through, whatever the configuration says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemasync.core.config import Policies
from schemasync.core.mapping import TableTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a person agrees to: ``migrate`` converts values to their new type or meaning, ``rebuild`` another key."""

    migrate: bool = False
    rebuild: bool = False

    def __str__(self) -> str:
        return " --migrate" * self.migrate + " --rebuild" * self.rebuild


RELEASES = tuple(Release(migrate=m, rebuild=r) for m, r in ((False, False), (True, False), (False, True), (True, True)))
"""Every way, what agrees to the least first."""


def released(target: TableTarget, release: Release) -> TableTarget:
    """Return the table with the policies of a release.

    Those that decide which column is which (``rename``, ``retype: variant``) stay: identities must not be told anew.
    """
    before = target.policies
    changes: dict[str, str] = {name: kind for name, kind in _WITHOUT_ASKING.items() if getattr(before, name) == "hold"}
    if release.migrate:
        changes |= {"semantic": "migrate"} | ({"retype": "migrate"} if before.retype == "hold" else {})
    if release.rebuild:
        changes["key"] = "rebuild"
    return replace(target, policies=Policies.model_validate(before.model_dump() | changes))


_WITHOUT_ASKING = {"add": "evolve", "drop": "drop", "widen": "evolve"}
