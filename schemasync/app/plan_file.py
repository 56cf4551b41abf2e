"""Plans kept in files, between `schemasync plan --out FILE` and `schemasync apply --plan FILE`.

The file is what ``plan --json`` prints, and a hash of that: people can read it, review can approve it, and apply only
trusts its fingerprints. A file that was edited, cut off or made by something else is refused, never half applied. So
is one of an earlier release, which does not say in which database its tables are, or has no hash.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from schemasync.app.planning import Plan
from schemasync.core.canonical import fingerprint
from schemasync.errors import UsageError

_BEGINNING: Final = re.compile(r'\s*(\{\s*"tables"\s*:|\Z)')
"""How a plan begins that was cut off when a disk was full; an empty file has nothing to lose."""
_HASH: Final = "sha256"
"""The key of the hash of all others."""
_ELSEWHERE: Final = "plan.json"
"""Where people are told to keep a plan, if not where they looked for one."""


def write_plan(plan: Plan, file: Path) -> None:
    """Keep a plan.

    Raises:
        UsageError: the file cannot be written, or is something else than an earlier plan.
    """
    require_plan_or_nothing(file)
    content = plan.to_json()
    try:
        file.write_text(json.dumps(content | {_HASH: _hash(content)}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise _not_written(file, error) from error


def require_plan_or_nothing(file: Path) -> None:
    """Refuse to write over what is no plan; devices and pipes take anything.

    Raises:
        UsageError: the file is something else, or cannot be looked at.
    """
    try:
        if not file.is_file() or _is_plan(file.read_text(encoding="utf-8", errors="replace")):
            return
    except OSError as error:
        raise _not_written(file, error) from error
    raise UsageError(
        "this file is there and is not a plan, and it is not overwritten", where=f"--out {file}", fix="Name another."
    )


def _is_plan(text: str) -> bool:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return _BEGINNING.match(text) is not None
    return isinstance(raw, dict) and {"tables", "fingerprint"} <= raw.keys()


def _not_written(file: Path, error: OSError) -> UsageError:
    return UsageError(
        "the plan cannot be written", where=f"--out {file}", why=error.strerror or "", fix="Check the path."
    )


def read_plan(file: Path) -> Mapping[str, str]:
    """Return ``database.table`` -> fingerprint of a kept plan.

    Raises:
        UsageError: there is no such file, it is not a plan of this release, or it was changed.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # What else is there may be no plan at all, and is not to be written over.
        missing = isinstance(error, FileNotFoundError) and file.parent.is_dir()
        place = shlex.quote(str(file)) if missing else _ELSEWHERE
        why = getattr(error, "strerror", None) or str(error)
        raise _refused(file, "the plan cannot be read", why, place=place) from error
    try:
        raw = json.loads(text)
        found = [(_full_name(table), str(table["fingerprint"])) for table in raw["tables"]]
        kept = raw.pop(_HASH, None)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _refused(file, "this is not a plan", "it is no JSON that `schemasync plan` wrote") from error
    if not all(name for name, _ in found):
        raise _refused(
            file, "this plan was made by an earlier release", "it does not say in which database its tables are"
        )
    if kept is None:
        raise _refused(file, "this plan was made by an earlier release", f"it has no {_HASH} of itself")
    if kept != _hash(raw):
        raise _refused(file, "this plan was changed after it was made", f"its {_HASH} is that of another one")
    return dict(found)


def _hash(content: Mapping[str, Any]) -> str:
    """Return the hash of a plan as it is read from JSON again, where tuples are lists."""
    return fingerprint(json.loads(json.dumps(content)))


def _full_name(table: Mapping[str, Any]) -> str:
    """Return ``database.table``, empty where an earlier release left out the database."""
    return f"{table['database']}.{table['table']}" if "database" in table else ""


def _refused(file: Path, what: str, why: str, *, place: str = _ELSEWHERE) -> UsageError:
    return UsageError(what, where=f"--plan {file}", why=why, fix=f"Make one: schemasync plan --out {place}")
