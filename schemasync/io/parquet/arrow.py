"""Landed files with Arrow: footers, and the admission of what is small enough for one process.

Reads each file as its writer wrote it, projects it to the table's physical columns, keeps the newest row per key, and
writes one sorted file. Memory is what the request says, however much landed; `schemasync.io.parquet.runs` sees to it.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs, orc

from schemasync.core.admission import (
    STILL_WRITING_MS,
    AdmissionRequest,
    Admitted,
    Footer,
    Unreadable,
    WrittenFooter,
)
from schemasync.core.beyond import Beyond
from schemasync.core.changed_keys import BITS, HASHED_SCALE, SEPARATOR, WORDS_COLUMN
from schemasync.core.in_place import PACKED, Stored
from schemasync.core.keys import Key
from schemasync.core.manifest import DataFile
from schemasync.core.moments import Moment
from schemasync.core.ports import FileInfo
from schemasync.core.types import MAX_PRECISION, Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.errors import StorageError
from schemasync.io.parquet.ahead import ahead
from schemasync.io.parquet.blame import is_of_storage, not_read, reading_back
from schemasync.io.parquet.looking import NOTHING_SEEN, Look
from schemasync.io.parquet.moments import extent, newest_told
from schemasync.io.parquet.rows import give_back, open_parquet, read_rows
from schemasync.io.parquet.runs import Runs
from schemasync.io.parquet.shard_writer import delta_writer, not_written
from schemasync.io.parquet.sorted_rows import KeyColumns, comparable, statistics
from schemasync.io.parquet.wide_decimals import read_footer
from schemasync.io.parquet.writing import make_directory

_AVRO_KEYS = (b"parquet.avro.schema", b"avro.schema")
_MAGIC = b"PAR1"


class ArrowFiles:
    """Reads and admits the files of one location; a `schemasync.core.ports.LandedFiles`."""

    def __init__(self, filesystem: fs.FileSystem, base: str) -> None:
        """Read below ``base`` of a file system."""
        self.filesystem = filesystem
        self.base = base

    def _path(self, relative: str) -> str:
        return f"{self.base}/{relative}"

    @contextmanager
    def _opened(self, path: str) -> Iterator[pq.ParquetFile]:
        """Open a file, and close it whatever it is: Arrow leaves open what it opens itself and makes no sense of."""
        with self.filesystem.open_input_file(self._path(path)) as source, _parquet(source) as parquet:
            yield parquet

    @contextmanager
    def _opened_again(self, path: str) -> Iterator[pq.ParquetFile]:
        """Open a file of ours, which must be readable."""
        with reading_back(self._path(path)), self._opened(path) as parquet:
            yield parquet

    def footer(self, file: FileInfo, *, now_ms: int) -> Footer | Unreadable:
        """Read one file's footer.

        An empty file is ``incomplete``: there is nothing in it that could be lost, and some storages show no more of
        one that is being written. So is a file that begins like Parquet, has no footer and changed just now, and one
        that has another size than in the list: what would be noted of it is not what is read.

        Raises:
            StorageError: the storage failed; the file may be as it should be.
        """
        try:
            with self.filesystem.open_input_file(self._path(file.path)) as source:
                # Opening asked for it: that is no call more.
                if source.size() != file.bytes:
                    return Unreadable(reason="it changed while it was looked at", incomplete=True)
                with _parquet(source) as parquet:
                    schema, metadata = parquet.schema_arrow, parquet.metadata
        except FileNotFoundError:
            return Unreadable(reason="it vanished while it was looked at", incomplete=True)
        except (OSError, pa.ArrowException) as error:
            if is_of_storage(error):
                raise not_read(self._path(file.path), error) from error
            young = now_ms - file.modified_ms < STILL_WRITING_MS
            beginning = self._beginning(file)
            incomplete = beginning == b"" or (young and beginning == _MAGIC)
            # Arrow's own words name the file, so that of many no two would be told in the same ones.
            number = error.errno if isinstance(error, OSError) else None
            reason = str(error).splitlines()[0] if number is None else os.strerror(number)
            return Unreadable(reason=reason, incomplete=incomplete, denied=number in (errno.EACCES, errno.EPERM))
        # Beside a schema of Arrow's own it shows what stands in that, and hides the rest of the footer.
        words = (schema.metadata or {}) | (metadata.metadata or {})
        avro = next((words[key].decode(errors="replace") for key in _AVRO_KEYS if key in words), None)
        return Footer(rows=metadata.num_rows, avro=avro, type=_struct_type(schema))

    def written(self, path: str, columns: Collection[str], *, keys: Sequence[str] = ()) -> WrittenFooter:
        """Read the footer of a file of ours, with the extents of these columns, and its first and last key."""
        with self._opened_again(path) as parquet:
            metadata, schema, names = parquet.metadata, parquet.schema, parquet.schema_arrow.names
            # One of the columns may be missing, which is for the caller to tell.
            ends = _ends(parquet, keys) if keys and metadata.num_rows and {*keys} <= {*names} else None
        return WrittenFooter(
            rows=metadata.num_rows,
            columns=tuple(names),
            leaves=tuple(_stored(schema.column(n), _encodings(metadata, n)) for n in range(len(schema))),
            extents={column: _extent(statistics(metadata, column)) for column in columns},
            newest=newest_told(metadata.metadata),
            ends=ends,
        )

    def keys(self, path: str, column: str) -> Sequence[int | str | None]:
        """Read a key's column from a file of ours."""
        with self._opened_again(path) as parquet:
            keys: list[int | str | None] = parquet.read(columns=[column])[column].to_pylist()
        return keys

    def words(self, paths: Sequence[str], column: str, *, low: int, count: int) -> Sequence[int] | None:
        """Read a column of whole numbers, none twice, from files of ours as bits of ``count`` signed words."""
        found = array("Q", bytes(8 * count))
        for batch in self._batches(paths, [column]):
            keys = batch.column(0)
            if keys.null_count:
                return None
            _set_bits(found, pc.subtract(keys.cast(pa.int64()), low))
        return array("q", found.tobytes())

    def hashed_words(self, paths: Sequence[str], columns: Sequence[str], *, count: int) -> Sequence[int]:
        """Read columns that can be hashed from files of ours: hashes of their rows as bits of signed words."""
        found = array("Q", bytes(8 * count))
        for batch in self._batches(paths, columns):
            _set_bits(found, _hashes(batch.columns, BITS * count))
        return array("q", found.tobytes())

    def _batches(self, paths: Iterable[str], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            with self._opened_again(path) as parquet:
                yield from parquet.iter_batches(columns=list(columns))

    def write_words(self, path: str, words: Sequence[int]) -> None:
        """Write words as an ORC file of one row."""
        # One buffer: Arrow would look at every number by itself.
        values = pa.Array.from_buffers(pa.int64(), len(words), [None, pa.py_buffer(array("q", words))])
        table = pa.table({WORDS_COLUMN: pa.ListArray.from_arrays([0, len(words)], values)})
        try:
            make_directory(self.filesystem, self._path(posixpath.dirname(path)))
            with self.filesystem.open_output_stream(self._path(path)) as sink:
                orc.write_table(table, sink)
        except (OSError, pa.ArrowException) as error:
            raise not_written(self._path(path), error) from error

    def _beginning(self, file: FileInfo) -> bytes | None:
        try:
            with self.filesystem.open_input_stream(self._path(file.path)) as stream:
                return bytes(stream.read(len(_MAGIC)))
        except OSError:
            return None

    def admit(self, request: AdmissionRequest) -> Admitted:
        """Write one delta."""
        beyond: list[Beyond] = []
        done = _Delta(events=0, toasted=set(), look=Look(self.filesystem, self.base, request))
        # Frames of an error that somebody keeps would keep what reads, with its threads.
        with closing(self._events(request, beyond, done)) as events:
            files = self._write(self._newest(events, request, done), request)
        landed = sum(file.bytes for file in request.files)
        # A compaction merges next, on other threads.
        give_back(landed, passed=landed, memory=request.memory)
        seen = done.look.seen
        if done.toasted or not request.keys:
            seen = replace(NOTHING_SEEN, contradicted=seen.contradicted)
        return Admitted(
            files=files,
            rows=sum(file.rows for file in files),
            events=done.events,
            toasted=tuple(name for name, _ in request.columns if name in done.toasted),
            beyond=tuple(beyond),
            ahead=seen.ahead,
            ahead_of_deltas=seen.ahead_of_deltas,
            touches=seen.touches,
            contradicted=seen.contradicted,
        )

    def _events(self, request: AdmissionRequest, beyond: list[Beyond], done: _Delta) -> Generator[pa.Table, None, None]:
        """Yield and count all events."""
        for file in request.files:
            for rows in read_rows(self.filesystem, self.base, file, request, beyond):
                done.events += rows.num_rows
                yield rows

    def _newest(self, events: Iterator[pa.Table], request: AdmissionRequest, done: _Delta) -> Iterator[pa.Table]:
        """Yield the delta's rows, and note what is told about them."""
        if not request.keys:
            yield from events
            return
        with Runs(self.filesystem, self.base, request) as runs:
            for rows, toasted in ahead(runs.parts(events)):
                done.toasted |= set(toasted)
                yield rows if toasted else done.look.at(rows)

    def _write(self, tables: Iterator[pa.Table], request: AdmissionRequest) -> tuple[DataFile, ...]:
        with delta_writer(
            self.filesystem, self.base, request.directory, request, partition_by=request.partition_by
        ) as writer:
            for table in ahead(tables):
                writer.write(table)
        return tuple(self._read_back(path, rows) for path, rows in writer.rows.items())

    def _read_back(self, path: str, rows: int) -> DataFile:
        with reading_back(self._path(path)):
            written = pq.read_metadata(self._path(path), filesystem=self.filesystem)
            size = self.filesystem.get_file_info(self._path(path)).size
        if written.num_rows != rows:
            raise StorageError("a written file does not read back whole", where=self._path(path))
        return DataFile(path=path, rows=rows, bytes=size)


def _parquet(source: pa.NativeFile) -> pq.ParquetFile:
    return open_parquet(source, metadata=read_footer(source, as_bytes=False))


@dataclass(slots=True, kw_only=True)
class _Delta:
    """What is told about a delta while its rows pass."""

    events: int
    toasted: set[str]
    look: Look


def _hashes(columns: Iterable[pa.Array], bits: int) -> pa.Array:
    """Return `schemasync.core.changed_keys.hash_of` of all rows, each once."""
    texts = (c if pa.types.is_binary(c.type) else _as_text(c).cast(pa.binary()) for c in columns)
    # "skip" would leave out rows that have none of them (Arrow 26).
    joined = pc.binary_join_element_wise(*texts, SEPARATOR.encode(), null_handling="replace", null_replacement=b"")
    # Straight from its buffers: Arrow makes an object of its own of each text first.
    _, offsets, data = joined.buffers()
    ends = memoryview(offsets).cast("i")[joined.offset : joined.offset + len(joined) + 1]
    text = memoryview(data or b"")
    return pa.array({crc32(text[start:end]) & bits - 1 for start, end in pairwise(ends)}, pa.int64())


def _as_text(column: pa.Array) -> pa.Array:
    """Return what `schemasync.core.changed_keys.hash_of` makes hashes of, as text."""
    values = comparable(column)
    if pa.types.is_decimal(values.type) and values.type.scale > HASHED_SCALE:
        # With room for a digit more: 0.9999999 is 1.
        wide = values.cast(pa.decimal256(2 * MAX_PRECISION, values.type.scale))
        rounded = pc.round(wide, HASHED_SCALE, round_mode="half_towards_infinity")
        values = rounded.cast(pa.decimal256(2 * MAX_PRECISION, HASHED_SCALE))
    return values.cast(pa.string())


def _set_bits(words: array[int], places: pa.Array) -> None:
    """Set the bits at some places of all words, each of which comes once."""
    bit = pc.bit_wise_and(places, BITS - 1).cast(pa.uint64())
    found = pa.table(
        {
            "place": pc.shift_right(places, BITS.bit_length() - 1),
            "bits": pc.shift_left(pa.scalar(1, pa.uint64()), bit),
        }
    )
    # No bit is there twice, so a sum is what "or" is.
    summed = found.group_by("place").aggregate([("bits", "sum")])
    for place, bits in zip(summed["place"].to_pylist(), summed["bits_sum"].to_pylist(), strict=True):
        words[place] |= bits


def _extent(told: Iterable[pq.Statistics | None]) -> tuple[Moment, Moment] | None:
    """Return the least and the largest value of all row groups, None where one does not tell, or there is none."""
    known: list[tuple[Any, Any]] = []
    for group in told:
        found = extent(group)
        if found is None:
            return None
        known.append(found)
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _ends(parquet: pq.ParquetFile, keys: Sequence[str]) -> tuple[Key | None, Key | None]:
    """Return the keys of a file's first and last row."""
    # One row, or one row group, is decoded at a time: a whole file may be larger than memory.
    first = next(parquet.iter_batches(1, row_groups=[0], columns=[*keys]))
    last = parquet.read_row_group(parquet.num_row_groups - 1, columns=[*keys])
    (end,) = last.slice(last.num_rows - 1).combine_chunks().to_batches()
    low, high = (
        None if any(column.null_count for column in row.columns) else KeyColumns(row, keys)[0] for row in (first, end)
    )
    return low, high


def _encodings(metadata: pq.FileMetaData, column: int) -> set[str]:
    groups = (metadata.row_group(n).column(column) for n in range(metadata.num_row_groups))
    return {encoding for group in groups for encoding in group.encodings}


def _stored(column: pq.ColumnSchema, encodings: Collection[str]) -> Stored:
    annotation = _annotation(json.loads(column.logical_type.to_json()))
    words = (column.physical_type, annotation, PACKED if PACKED in encodings else "")
    return Stored(path=column.path, form=" ".join(word for word in words if word))


def _annotation(logical: dict[str, Any]) -> str:
    match logical:
        case {"Type": "None"}:
            return ""
        case {"Type": "Decimal", "precision": precision, "scale": scale}:
            return f"decimal({precision},{scale})"
        case {"Type": "Int", "bitWidth": bits, "isSigned": signed}:
            return f"{'int' if signed else 'uint'}({bits})"
        case {"Type": "Timestamp" | "Time" as kind, "timeUnit": unit, "isAdjustedToUTC": utc}:
            return f"{kind.lower()}({unit},{'utc' if utc else 'local'})"
        case _:
            return str(logical["Type"]).lower()


def _struct_type(schema: pa.Schema) -> Struct:
    return Struct(fields=tuple(StructField(name=f.name, type=_core_type(f.type)) for f in schema))


_CORE: dict[pa.DataType, Primitive] = {
    pa.bool_(): Primitive.BOOLEAN,
    pa.int8(): Primitive.TINYINT,
    pa.int16(): Primitive.SMALLINT,
    pa.int32(): Primitive.INT,
    pa.int64(): Primitive.BIGINT,
    pa.float32(): Primitive.FLOAT,
    pa.float64(): Primitive.DOUBLE,
    pa.string(): Primitive.STRING,
    pa.large_string(): Primitive.STRING,
    pa.string_view(): Primitive.STRING,
    pa.date32(): Primitive.DATE,
    pa.time32("ms"): Primitive.INT,
    pa.time64("us"): Primitive.BIGINT,
    pa.time64("ns"): Primitive.BIGINT,
}


def _core_type(type_: pa.DataType) -> Type:
    """Return a file's column type in our algebra; what has no counterpart is BINARY."""
    if pa.types.is_timestamp(type_):
        return Primitive.TIMESTAMP
    if pa.types.is_dictionary(type_):
        return _core_type(type_.value_type)
    if pa.types.is_decimal(type_):
        return Decimal(precision=type_.precision, scale=type_.scale)
    if pa.types.is_map(type_):
        return Map(key=_core_type(type_.key_type), value=_core_type(type_.item_type))
    if isinstance(
        type_, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
    ):
        return Array(element=_core_type(type_.value_type))
    if pa.types.is_struct(type_):
        return Struct(fields=tuple(StructField(name=f.name, type=_core_type(f.type)) for f in type_))
    return _CORE.get(type_, Primitive.BINARY)
