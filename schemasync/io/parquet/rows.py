"""Events of a landed file as rows of the table: what both ways of admission execute, batch by batch.

Executes a `schemasync.core.projection.Projection`; adds our own columns; refuses what cannot be applied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from schemasync.core.admission import (
    CREATE,
    DELETE,
    MESSAGE,
    OPERATIONS,
    UPSERT,
    AdmissionRequest,
    LandedFile,
    UnsentRule,
)
from schemasync.core.beyond import Beyond, Shown
from schemasync.core.config_values import MB
from schemasync.core.encoding import Leaf, Meaning
from schemasync.core.layout import ADMITTED_MS, OFFSET, OP, SCHEMA_VERSION, TOMBSTONE, TS_MS
from schemasync.core.names import Dialect, folded
from schemasync.core.partitioning import no_text
from schemasync.core.projection import Fill, Projected, Take
from schemasync.core.reshape import may_misfit
from schemasync.core.schema import Envelope, OrderingField
from schemasync.core.type_strings import print_type
from schemasync.core.types import Primitive, Type
from schemasync.errors import DataError
from schemasync.io.parquet import moved_keys
from schemasync.io.parquet.ahead import ahead
from schemasync.io.parquet.batches import BATCH_ROWS, BATCH_SHARE, batches, buffer_size
from schemasync.io.parquet.blame import is_of_storage, not_read
from schemasync.io.parquet.calendar import calendar_of, gregorian
from schemasync.io.parquet.newest import counted, unsent_values, without_placeholders
from schemasync.io.parquet.partitions import check_partitions
from schemasync.io.parquet.values import Losses, arrow_type, constant, decode, rebuilt, reshape
from schemasync.io.parquet.wide_decimals import read_footer

_UNITS: Final = frozenset({"ms", "us", "ns"})

_MAY_STAY: Final = 4 * MB
"""So much may stay with Arrow's allocator: to take it back takes 5 ms."""


def table_schema(columns: Iterable[tuple[str, Type]]) -> pa.Schema:
    """Return the Arrow schema of rows that have these columns."""
    return pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in columns])


def read_rows(
    filesystem: fs.FileSystem, base: str, file: LandedFile, request: AdmissionRequest, beyond: list[Beyond]
) -> Iterator[pa.Table]:
    """Yield a landed file's events as rows of the table; at its end add to ``beyond`` what was beyond its type.

    Raises:
        DataError: the file is missing or corrupt, has another size than when it was looked at, or holds events that
            cannot be applied; names file and row.
        StorageError: the storage failed; the file may be as it should be.
    """
    path = f"{base}/{file.path}"
    losses: dict[str, Losses] = defaultdict(Losses)
    with _naming(path):
        row = 0
        share = request.memory // BATCH_SHARE
        with filesystem.open_input_file(path) as source:
            # Opening asked for it: that is no call more.
            if (size := source.size()) != file.bytes:
                why = f"it had {file.bytes} bytes and has {size}"
                raise DataError("a landed file was changed since it was looked at", why=why)
            metadata = read_footer(source, as_bytes=True)
            parquet = open_parquet(source, metadata=metadata, buffer_size=buffer_size(metadata, share))
            sizes = batches(metadata, share, BATCH_ROWS)
            read = sizes.of(parquet)
            if (calendar := calendar_of(metadata)) is not None:
                read = (gregorian(batch, calendar) for batch in read)
            # Of one batch there is no next to read meanwhile, and a thread for it takes longer than a small file.
            for batch in read if metadata.num_rows <= sizes.first else ahead(read):
                yield _Projector(file, request, batch, row, losses).table()
                row += batch.num_rows
    for column, found in losses.items():
        for shown, (count, sample) in found.found.items():
            beyond.append(Beyond(path=file.path, column=column, shown=shown, count=count, sample=sample))


def open_parquet(source: pa.NativeFile | str, **options: Any) -> pq.ParquetFile:
    """Open a file, whoever wrote it: INT96 timestamps are nanoseconds to Arrow by itself, which end in 2262."""
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=False, **options)


def _spelled(type_: pa.DataType, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path as a file has its names; the version that it was written under may have them in another case."""
    found: list[str] = []
    for step in path:
        # Of several names that differ in case alone the very one, which comes last here.
        fields = sorted(type_, key=lambda f: f.name == step) if pa.types.is_struct(type_) else ()
        members = {folded(f.name): f for f in fields}
        member = members.get(folded(step))
        if member is None:
            return path
        found.append(member.name)
        type_ = member.type
    return tuple(found)


def tombstones(operations: pa.Array) -> pa.Array:
    """Return true where a row's operation is a delete, null elsewhere."""
    return pc.if_else(pc.equal(operations, DELETE), True, pa.scalar(None, pa.bool_()))


def null_in_deletes(values: pa.Array, operations: pa.Array) -> pa.Array:
    """Return values, null in the rows of deletes: nothing shows what these say beside their key, so it need not fit."""
    # As members of what is null there: of some types Arrow can choose none.
    rows = pa.StructArray.from_arrays([values], names=["value"], mask=pc.equal(operations, DELETE))
    return rebuilt(pc.struct_field(rows, [0]), lambda values: values)


def give_back(kept: int, *, passed: int, memory: int) -> int:
    """Let Arrow's allocator give back what it keeps, where ``kept`` bytes are much; return how many it still keeps.

    What it keeps of rows that are gone can be as much again, and serves the threads only that had it. While all that
    ``passed`` is at most half of the ``memory`` it may keep it: the next rows would have to be given pages anew.
    """
    if kept <= _MAY_STAY or passed <= memory // 2:
        return kept
    pa.default_memory_pool().release_unused()
    return 0


@contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(error.what, where=where, why=error.why, fix=error.fix) from error
    except FileNotFoundError as error:
        raise DataError(
            "a landed file is missing", where=where, fix="Restore it; it was listed a moment ago."
        ) from error
    except Exception as error:
        if is_of_storage(error):
            raise not_read(where, error) from error
        # Whatever else a file can do to its reader, it is that file's fault.
        raise DataError(
            "a landed file cannot be read",
            where=where,
            why=f"{type(error).__name__}: {error}".splitlines()[0],
        ) from error


class _Projector:
    """Some of one file's events as rows of the table."""

    def __init__(
        self,
        file: LandedFile,
        request: AdmissionRequest,
        events: pa.RecordBatch,
        first_row: int,
        losses: dict[str, Losses],
    ) -> None:
        self._file = file
        self._losses = losses
        self._first_row = first_row
        self._request = request
        self._envelope: Envelope = file.projection.envelope
        self._events = pa.StructArray.from_arrays(events.columns, fields=list(events.schema))

    def table(self) -> pa.Table:
        operations = self._operations()
        columns = {p.name: self._column(p, operations) for p in self._file.projection.columns}
        columns |= self._meta(operations)
        rows = len(self._events)
        arrays = [columns.get(name, pa.nulls(rows, arrow_type(t))) for name, t in self._request.columns]
        table = pa.table(arrays, names=[name for name, _ in self._request.columns])
        self._check_keys(table, range(rows))
        self._check_partitioned(table)
        table = self._with_old_keys(table)
        table = table.filter(pc.not_equal(table.column(OP), MESSAGE))
        if (rule := self._request.unsent) is not None:
            if rule.carry:
                self._note_creates(table, rule)
            else:
                table = without_placeholders(table, rule)
        check_partitions(table, self._request.partition_by)
        return table

    def _with_old_keys(self, table: pa.Table) -> pa.Table:
        """Make a delete of the old key and a create of each update that changed the key."""
        keys = self._keys_before()
        if not keys:
            return table
        events = moved_keys.moved(table.column(OP), ((before, after) for _, _, before, after in keys))
        if not len(events):
            return table
        old = {name: self._shown(name, source, before.take(events)) for name, source, before, _ in keys}
        row = (projected.name for projected in self._file.projection.columns)
        found = moved_keys.deletes(table.take(events), old, row)
        self._check_keys(found, events.to_pylist())
        return moved_keys.parted(found, events, table)

    def _keys_before(self) -> list[tuple[str, Take, pa.Array, pa.Array]]:
        """Return the key's columns as they were written before and after each event; none where one is not there."""
        found: list[tuple[str, Take, pa.Array, pa.Array]] = []
        for projected in self._file.projection.columns:
            if projected.name not in self._request.keys:
                continue
            source = projected.source
            after, *others = map(self._at, source.paths) if isinstance(source, Take) else (None,)
            if not isinstance(source, Take) or not others or others[0] is None:
                return []
            found.append((projected.name, source, others[0], after))
        return found

    def _note_creates(self, table: pa.Table, rule: UnsentRule) -> None:
        """Count the creates that have placeholders: there is nothing that could tell their values."""
        creates = table.select([OP, *(name for name, _ in rule.columns)]).filter(pc.equal(table.column(OP), CREATE))
        for name, mask in unsent_values(creates, rule, CREATE).items():
            self._losses[name].note([rule.placeholders[0]] * len(mask), mask, Shown.PLACEHOLDER)

    def _at(self, path: tuple[str, ...]) -> pa.Array | None:
        """Return the values at a path from the event's root, None where the file has no such field."""
        values = self._events
        for step in path:
            if not pa.types.is_struct(values.type) or values.type.get_field_index(step) < 0:
                return None
            values = pc.struct_field(values, step)
        # A UUID, for one: what of Arrow takes no such types takes their bytes.
        return values.storage if isinstance(values, pa.ExtensionArray) else values

    def _required(self, path: tuple[str, ...]) -> pa.Array:
        values = self._at(path)
        if values is None:
            raise DataError("a landed file lacks a column that its schema names", why=".".join(path))
        return values

    def _column(self, projected: Projected, operations: pa.Array) -> pa.Array:
        source = projected.source
        if isinstance(source, Fill):
            return constant(source.value, projected.type, len(self._events))
        first, *others = source.paths
        values = self._required(first)
        if projected.name not in self._request.keys and may_misfit(source.shape):
            values = null_in_deletes(values, operations)
        for path in others:
            if (other := self._at(path)) is not None:
                # An update that makes a key null has none: the one before it names another row.
                gone = pc.or_(self._required(first[:-1]).is_null(), pc.equal(operations, DELETE))
                values = pc.if_else(pc.and_(values.is_null(), gone), other, values)
        return self._shown(projected.name, source, values)

    def _shown(self, name: str, source: Take, values: pa.Array) -> pa.Array:
        return reshape(decode(values, source.encoding, self._losses[name]), source.shape)

    def _operations(self) -> pa.Array:
        """Return our operation codes, `MESSAGE` for what has no row."""
        envelope, rows = self._envelope, len(self._events)
        codes = constant(UPSERT, Primitive.STRING, rows)
        if envelope.op is not None:
            codes = self._translated(self._required((envelope.op,)))
        if envelope.deleted is not None:
            deleted = pc.equal(pc.utf8_lower(self._required((envelope.deleted,)).cast(pa.string())), "true")
            codes = pc.if_else(pc.fill_null(deleted, fill_value=False), DELETE, codes)
        return codes

    def _translated(self, written: pa.Array) -> pa.Array:
        texts = pc.fill_null(pc.utf8_lower(written.cast(pa.string())), UPSERT)
        # A file has few different ones: only these are looked at one by one.
        coded = texts.dictionary_encode()
        there = coded.dictionary.to_pylist()
        known = {**OPERATIONS, MESSAGE: MESSAGE}
        unknown = sorted(set(there) - known.keys())
        if unknown:
            row = self._row(texts.index(unknown[0]).as_py())
            raise DataError(
                f"an event has the operation {unknown[0]!r}",
                why=f"row {row}: a truncate and codes that are not known cannot be applied to rows",
            )
        return pa.array([known[code] for code in there], pa.string()).take(coded.indices)

    def _meta(self, operations: pa.Array) -> dict[str, pa.Array]:
        rows, request = len(self._events), self._request
        columns = {
            OP: operations,
            TS_MS: self._milliseconds(),
            OFFSET: self._offsets(),
            SCHEMA_VERSION: constant(request.schema_version, Primitive.INT, rows),
            ADMITTED_MS: constant(request.admitted_ms, Primitive.BIGINT, rows),
            TOMBSTONE: tombstones(operations),
        }
        columns |= {
            f"__seq{n}": self._sequence(field) for n, field in enumerate(self._file.projection.ordering, start=1)
        }
        return columns

    def _milliseconds(self) -> pa.Array:
        """Return the time of the events; NULL where it is a text that is no number."""
        values = self._at(self._envelope.ts_ms) if self._envelope.ts_ms else None
        if values is not None and pa.types.is_temporal(values.type):
            # As a number it would count in the unit that the file has it in.
            values = values.cast(pa.timestamp("ms"), safe=False)
        elif values is not None and not pa.types.is_integer(values.type):
            texts = values.cast(pa.string())
            values = pc.if_else(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$"), texts, None)
        return self._number(values)

    def _number(self, values: pa.Array | None) -> pa.Array:
        return pa.nulls(len(self._events), pa.int64()) if values is None else values.cast(pa.int64())

    def _sequence(self, field: OrderingField) -> pa.Array:
        """Return one element of the ordering key; files from before the source sent it read NULL, the oldest."""
        values = self._at(_spelled(self._events.type, field.path))
        if values is None:
            return pa.nulls(len(self._events), arrow_type(field.type))
        losses = Losses()
        try:
            decoded = decode(_counted_as(values, field), Leaf(type=field.type, meaning=field.meaning), losses)
        except DataError as error:
            what = f"{field}, which tells newer events from older ones, cannot be read"
            raise DataError(
                what, why=f"{error.what}: {error.why}" if error.why else error.what, fix=error.fix
            ) from error
        if lost := losses.found.get(Shown.NULL):
            # As NULL, the oldest, a newer event would lose to those before it.
            _, sample = lost
            raise DataError(
                f"{field}, which tells newer events from older ones, cannot hold the value of an event",
                why=f"{sample} is beyond the type that it had first, {print_type(field.type, Dialect.SPARK)}",
                fix="Make the table anew from its landed files.",
            )
        return decoded

    def _offsets(self) -> pa.Array:
        if self._envelope.offset is not None:
            return self._number(self._at((self._envelope.offset,)))
        rows = len(self._events)
        if self._file.first_offset is None:
            return pa.nulls(rows, pa.int64())
        return pc.add(counted(rows), self._file.first_offset + self._first_row)

    def _row(self, place: int) -> int:
        """Return the number of an event in its file as people count, from 1."""
        return self._first_row + place + 1

    def _check_keys(self, table: pa.Table, events: Sequence[int]) -> None:
        """Refuse keys that could not tell rows apart; ``events`` are the places of the rows' events."""
        for key in self._request.keys:
            if unheld := self._losses[key].unheld:
                # Two keys that show as one would be one row.
                raise DataError(
                    f"the key column {key} cannot hold the value of an event",
                    why=unheld,
                    fix="Leave the column out of keys: in the configuration, or repair the events at their source.",
                )
            if (missing := _first_missing(table, key)) is not None:
                raise DataError(
                    f"an event has no value for the key column {key}",
                    why=f"row {self._row(events[missing])}",
                    fix="Correct keys: in the configuration, or repair the events at their source.",
                )
            if (broken := _first_broken(table.column(key))) is not None:
                # Keys are compared everywhere, and everybody reads such a text as another one.
                raise DataError(
                    f"the text of an event in the key column {key} is not UTF-8",
                    why=f"row {self._row(events[broken])}",
                    fix="Leave the column out of keys: in the configuration, or repair the events at their source.",
                )

    def _check_partitioned(self, table: pa.Table) -> None:
        """Refuse texts by which no directory can be called: everybody would read another name."""
        for partition in self._request.partition_by:
            if partition.needs_text and (broken := _first_broken(table.column(partition.source))) is not None:
                raise no_text(partition.source, self._row(broken))


def _counted_as(values: pa.Array, field: OrderingField) -> pa.Array:
    """Return timestamps that stand for plain numbers in the unit that the field's name ends with, ``ts_us``.

    As numbers they would count in the unit that the file has them in, and other files may have another one.
    """
    unit = field.path[-1].lower().rpartition("_")[2]
    if field.meaning is not Meaning.PLAIN or not pa.types.is_timestamp(values.type) or unit not in _UNITS:
        return values
    return values.cast(pa.timestamp(unit, values.type.tz), safe=False)


def _first_missing(table: pa.Table, key: str) -> int | None:
    """Return the first row that has no value for a key; a message needs none."""
    if not table.column(key).null_count:
        return None
    missing = pc.and_(table.column(key).is_null(), pc.not_equal(table.column(OP), MESSAGE))
    place: int = pc.index(missing, True).as_py()
    return None if place < 0 else place


def _first_broken(values: pa.ChunkedArray) -> int | None:
    """Return the first text that is not UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = enumerate(values.cast(pa.binary()).to_pylist())
        return next(n for n, text in texts if text is not None and text.decode(errors="replace").encode() != text)
    return None
