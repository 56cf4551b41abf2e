"""A look into a few data files of ours: whether their footers say what manifest and metastore say of them.

Bounded and always the same files for the same state, so that status stays cheap on tables of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from schemasync.core.admission import Footer, Unreadable
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.manifest import DataFile, Manifest, Segment
from schemasync.core.names import Dialect
from schemasync.core.ports import HiveColumn
from schemasync.core.type_strings import parse_type, print_type
from schemasync.core.types import Type
from schemasync.errors import SchemaError

SAMPLE: Final = 4
"""How many files are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A data file that is looked at, and the segment that it belongs to."""

    segment: Segment
    file: DataFile


def sample(manifest: Manifest) -> tuple[Sampled, ...]:
    """Choose at most `SAMPLE` files, one of a segment: of the oldest, of the newest, and evenly from between."""
    filled = [s for s in manifest.segments if s.files]
    ordered = sorted(filled, key=lambda s: (s.created_ms, s.name))
    last = len(ordered) - 1
    count = min(SAMPLE, len(ordered))
    chosen = sorted({n * last // max(count - 1, 1) for n in range(count)})
    return tuple(Sampled(segment=s, file=min(s.files, key=lambda f: f.path)) for s in (ordered[n] for n in chosen))


def footer_drift(
    sampled: Sampled, footer: Footer | Unreadable, columns: Sequence[HiveColumn]
) -> tuple[Diagnostic, ...]:
    """Compare one file's footer with the manifest and with the table's columns."""
    if isinstance(footer, Unreadable):
        reasons = [f"it cannot be read: {footer.reason}"]
    else:
        reasons = list(_reasons(sampled, footer, columns))
    if not reasons:
        return ()
    return (diagnose("SS216", f"{sampled.file.path} of {sampled.segment.name}: {'; '.join(reasons)}"),)


def _reasons(sampled: Sampled, footer: Footer, columns: Sequence[HiveColumn]) -> Iterator[str]:
    if footer.rows != sampled.file.rows:
        yield f"it has {footer.rows} rows, the manifest says {sampled.file.rows}"
    there = {f.name.lower(): f.type for f in footer.type.fields}
    carried = {name.lower() for name in sampled.segment.columns}
    if there.keys() != carried:
        other = ", ".join(sorted(there.keys() ^ carried))
        yield f"it and the manifest disagree about the columns {other}"
    declared = {c.name.lower(): c.type for c in columns}
    for name, found in there.items():
        if name in declared and not _is_declared(found, declared[name]):
            yield f"{name} is {print_type(found, Dialect.SPARK)}, the table says {declared[name]}"


def _is_declared(found: Type, declared: str) -> bool:
    try:
        return found == parse_type(declared, Dialect.HIVE)
    except SchemaError:
        return True
