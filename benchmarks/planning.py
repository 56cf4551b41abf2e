"""What a state with very many segments costs to read, plan and show: `./scripts/bench planning`.

No Spark and no data: the manifest, the decisions and the view's text alone, which every run works out anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar

from benchmarks.values import avro_schema
from schemasync.core import ddl
from schemasync.core.avro import read_value_schema
from schemasync.core.config import Config
from schemasync.core.layering import Mode, plan_merge
from schemasync.core.manifest import (
    AdmittedFile,
    DataFile,
    Manifest,
    Segment,
    SegmentKind,
    StateId,
    delta_name,
    empty,
    shard_name,
)
from schemasync.core.mapping import TableTarget, map_subjects
from schemasync.core.names import Dialect
from schemasync.core.ports import RegisteredSchema
from schemasync.core.shape import Shape, history_of, shape_of
from schemasync.core.sharding import cut
from schemasync.core.types import Primitive
from schemasync.core.unchanged import shuffled
from schemasync.io.templates import TemplateRenderer

_SUBJECT: Final = "bench.public.orders-value"
_SHARD_BYTES: Final = 128 << 20
_KEYS: Final = 1_000_000
"""Keys in the range of a shard."""
_T = TypeVar("_T")


def _table() -> tuple[TableTarget, Shape]:
    text = json.dumps(avro_schema("bigint"))
    version = read_value_schema(RegisteredSchema(subject=_SUBJECT, version=1, schema_id=1, text=text))
    config = Config.model_validate({"registry": {"url": "file:///unused"}, "defaults": {"location": "/lake/{topic}"}})
    target = map_subjects([_SUBJECT], config).targets[0]
    history = history_of(target, [version])
    return target, shape_of(target, history, version, key=("id",), baseline=1)[0]


def _state(shape: Shape, *, shards: int, deltas: int, touched: int) -> Manifest:
    random = Random(7)  # noqa: S311 - the same state in every run
    names = [shard_name(n) for n in range(shards)]
    base = [
        _segment(shape, name, n, SegmentKind.BASE, low=(str(n * _KEYS),) if n else None) for n, name in enumerate(names)
    ]
    changes = [
        _segment(shape, delta_name(n), n, SegmentKind.DELTA, touches=tuple(sorted(random.sample(names, touched))))
        for n in range(deltas)
    ]
    admitted = [
        AdmittedFile(path=f"incremental/{n}.parquet", bytes=1, rows=1, modified_ms=1, writer_version=1, segment=d.name)
        for n, d in enumerate(changes)
    ]
    nothing = empty("orders", _SUBJECT, schema_version=1, keyed=bool(shape.keys))
    return nothing.model_copy(
        update={
            "state": StateId(generation=1, admission=deltas),
            "segments": (*base, *changes),
            "admitted": tuple(admitted),
        }
    )


def _segment(shape: Shape, name: str, number: int, kind: SegmentKind, **rest: Any) -> Segment:
    location = f"{kind.value}/g={number:06}/0123456789abcdef"
    size = _SHARD_BYTES if kind is SegmentKind.BASE else _SHARD_BYTES >> 8
    return Segment(
        name=name,
        kind=kind,
        location=location,
        files=(DataFile(path=f"{location}/part-00000-{number:032x}.parquet", rows=_KEYS, bytes=size),),
        rows=_KEYS,
        bytes=size,
        schema_version=1,
        columns=tuple(c.name for c in ddl.expected_columns(shape)),
        sorted_by=tuple(name for name, _ in shape.key_columns),
        newest=1,
        ahead=kind is SegmentKind.DELTA,
        **rest,
    )


def _timed(seconds: dict[str, float], work: str, step: Callable[[], _T]) -> _T:
    started = time.perf_counter()
    found = step()
    seconds[work] = round(time.perf_counter() - started, 3)
    return found


def measure(*, shards: int, deltas: int, touched: int) -> dict[str, float]:
    """Return by work the seconds that it takes in one process."""
    target, shape = _table()
    state = _state(shape, shards=shards, deltas=deltas, touched=touched)
    seconds: dict[str, float] = {}
    text = _timed(seconds, "write the manifest", lambda: state.model_dump_json(indent=1))
    state = _timed(seconds, "read the manifest", lambda: Manifest.model_validate(json.loads(text)))
    contents = _timed(seconds, "say what the view reads", lambda: state.contents)
    body = ddl.view_body(target, shape, contents, Dialect.SPARK)
    _timed(
        seconds, "write the view's text", lambda: TemplateRenderer().render(body.template, body.values, dialect="spark")
    )
    _timed(
        seconds,
        "choose minor or major",
        lambda: plan_merge(
            state,
            outdated=frozenset(),
            in_order=True,
            mode=Mode.AUTO,
            shuffled=shuffled(target, shape, state.contents, rows=sum(d.rows for d in state.deltas)),
        ),
    )
    spread = {
        f.path: dict.fromkeys(range(0, shards, max(shards // touched, 1)), 1) for d in state.deltas for f in d.files
    }
    _timed(
        seconds,
        "cut what a major compaction writes",
        lambda: cut(
            state,
            spread,
            types=(Primitive.BIGINT,),
            outdated=frozenset(),
            shard_bytes=_SHARD_BYTES,
            sample=lambda _, __: (),
        ),
    )
    return seconds


def main() -> int:
    """Measure a state of so many segments, and print seconds as JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.planning", description=__doc__)
    parser.add_argument("--shards", type=int, default=5_000, help="shards of the base")
    parser.add_argument("--deltas", type=int, default=2_000, help="changes beside it that wait")
    parser.add_argument("--touched", type=int, default=50, help="shards that each of these falls into")
    given = parser.parse_args()
    seconds = measure(shards=given.shards, deltas=given.deltas, touched=given.touched)
    sys.stdout.write(json.dumps({"shards": given.shards, "deltas": given.deltas, "seconds": seconds}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
