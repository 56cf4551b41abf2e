"""Landed files written by hand, and the admission of them: what the tests of both ways share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemasync.core.admission import AdmissionRequest, LandedFile
from schemasync.core.encoding import Encoding, shown_type
from schemasync.core.layout import meta_columns, ordering_columns
from schemasync.core.ports import LandedFiles
from schemasync.core.projection import Projected, Projection, Take
from schemasync.core.reshape import Keep
from schemasync.core.schema import Envelope, EnvelopeKind, OrderingField
from schemasync.core.types import Primitive

Rows = list[dict[str, Any]]

FLAT = Envelope(
    kind=EnvelopeKind.FLAT,
    op="op",
    ts_ms=("ts_ms",),
    ordering=(OrderingField(path=("ts_ms",), type=Primitive.BIGINT),),
)


def land(root: Path, name: str, columns: Mapping[str, pa.Array], **options: Any) -> str:
    """Write one landed file, with ``pyarrow.parquet.write_table``'s options; return its path below ``root``."""
    pq.write_table(pa.table(dict(columns)), root / name, **options)
    return name


def landed(root: Path, name: str, columns: Mapping[str, Encoding]) -> LandedFile:
    projected = tuple(
        Projected(
            name=column,
            type=shown_type(encoding),
            source=Take(paths=((column,),), encoding=encoding, shape=Keep(target=shown_type(encoding))),
        )
        for column, encoding in columns.items()
    )
    return LandedFile(
        path=name,
        bytes=(root / name).stat().st_size,
        modified_ms=0,
        rows=pq.read_metadata(root / name).num_rows,
        first_offset=None,
        projection=Projection(writer=1, columns=projected, envelope=FLAT, ordering=FLAT.ordering),
    )


def as_they_are(root: Path, request: AdmissionRequest) -> AdmissionRequest:
    """Return a request for files that were written anew since."""
    files = (replace(file, bytes=(root / file.path).stat().st_size) for file in request.files)
    return replace(request, files=tuple(files))


def request(
    root: Path,
    names: Iterable[str],
    columns: Mapping[str, Encoding],
    *,
    directory: str,
    keys: tuple[str, ...] = ("id",),
    memory: int = 2**20,
) -> AdmissionRequest:
    row = tuple((name, shown_type(encoding)) for name, encoding in columns.items())
    return AdmissionRequest(
        files=tuple(landed(root, name, columns) for name in names),
        directory=directory,
        columns=(*row, *((c.name, c.type) for c in meta_columns(FLAT))),
        keys=keys,
        ordering=ordering_columns(FLAT),
        schema_version=1,
        admitted_ms=1_790_000_000_000,
        memory=memory,
    )


def ordered_by(wanted: AdmissionRequest, field: OrderingField) -> AdmissionRequest:
    """Return the request of a table whose first ordering field is another one."""
    columns = tuple((name, field.type if name == wanted.ordering[0] else type_) for name, type_ in wanted.columns)
    files = (replace(f, projection=replace(f.projection, ordering=(field,))) for f in wanted.files)
    return replace(wanted, columns=columns, files=tuple(files))


def admitted(files: LandedFiles, root: Path, wanted: AdmissionRequest) -> Rows:
    """Admit, and return the rows of the delta by key."""
    done = files.admit(wanted)
    tables = [pq.read_table(root / file.path) for file in done.files]
    rows: Rows = pa.concat_tables(tables).to_pylist() if tables else []
    assert len(rows) == done.rows
    return sorted(rows, key=lambda r: [r[k] for k in wanted.keys] or [repr(r)])
