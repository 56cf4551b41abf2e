"""SQL through a Spark session; results come back through Arrow, so that types and time zones survive.

Handed to the use cases as a `schemasync.core.ports.SqlEngine`.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import ParseException, PySparkException

from schemasync.core.ports import Rows
from schemasync.core.spark_errors import cause
from schemasync.errors import EngineError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLANS: Final = "org.apache.spark.sql.catalyst.plans.logical"
_CHANGING: Final = (f"{_PLANS}.Command", f"{_PLANS}.ParsedStatement")
"""What the parsers of Spark 3.5 and 4.1 make of what is no query; INSERT INTO is no Command until analysed."""
_RUNNING: Final = ("UnresolvedExecuteImmediate", "ExecuteImmediate", "Call", "InsertIntoDir")
"""How the nodes begin that run something else, or write, and are neither of these."""
_READING: Final = ("Show", "Describe", "Explain")
"""How the commands begin that only tell something."""
_PROGRAM: Final = "TRANSFORM ... USING"
_METHOD: Final = "java_method, reflect or try_reflect"
_CALLING: Final = {"ScriptTransformation": _PROGRAM, "CallMethodViaReflection": _METHOD, "TryReflect": _METHOD}
"""What Spark makes of calls of something that may do anything, in plans and in expressions once they are analysed."""


class SparkSql:
    """Runs statements and queries in one session."""

    def __init__(self, session: SparkSession) -> None:
        """Use this session."""
        self._session = session

    def execute(self, sql: str) -> None:
        """Run one statement; raises EngineError where Spark refuses it."""
        with translated(sql):
            # Commands run at once; only queries wait for an action.
            self._session.sql(sql)

    def query(self, sql: str) -> Rows:
        """Run one query and return all its rows; structs are dicts, maps lists of pairs, timestamps aware (UTC)."""
        with translated(sql):
            names, table = _collected(self._session.sql(sql))
        return _rows(names, [column.to_pylist() for column in table.columns])

    def select(self, sql: str, *, database: str) -> Rows:
        """Run one query that only reads; values are such as JSON can hold.

        Raises:
            UsageError: the statement would change something, or call what may do anything, or is none that can be
                parsed.
            EngineError: Spark refused it, failed in it, or a value cannot be shown: a year outside of 1 to 9999, an
                interval of months.
        """
        self._refuse_changes(sql)
        try:
            with self._inside(database), translated(sql):
                frame = self._session.sql(sql)
                _refuse_calls(frame, sql)
                names, table = _collected(frame)
            return _rows(names, [[_json(v, column.type) for v in _values(column)] for column in table.columns])
        except (ValueError, OverflowError) as error:
            raise EngineError(
                "a value of the result cannot be shown",
                where=_first_line(sql),
                why=str(error),
                fix="Write CAST(... AS STRING) around it.",
            ) from error

    def _refuse_changes(self, sql: str) -> None:
        with translated(sql):
            try:
                plan: Any = self._session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
            except ParseException as error:
                raise UsageError("this is no SQL", where=_first_line(sql), why=_reason(error)) from error
            changing = next((node for node in _nodes(plan) if self._changes(node)), None)
        if changing is not None:
            raise UsageError(
                "only queries can be run here, this statement is none",
                where=_first_line(sql),
                fix="Write SELECT, WITH, VALUES, SHOW, DESCRIBE or EXPLAIN; tables change by apply and compact alone.",
            )

    def _changes(self, node: Any) -> bool:
        name = str(node.getClass().getSimpleName())
        if name.startswith((*_READING, *_RUNNING)):
            return name.startswith(_RUNNING)
        gateway: Any = self._session.sparkContext._gateway
        return any(is_instance_of(gateway, node, kind) for kind in _CHANGING)

    @contextmanager
    def _inside(self, database: str) -> Iterator[None]:
        """Make a database the default for a while; where it does not exist yet, its tables don't either."""
        catalog = self._session.catalog
        before = catalog.currentDatabase()
        if catalog.databaseExists(database):
            catalog.setCurrentDatabase(database)
        try:
            yield
        finally:
            catalog.setCurrentDatabase(before)


def _collected(frame: DataFrame) -> tuple[tuple[str, ...], pa.Table]:
    """Run a query; return its columns' names and its rows. A result without rows has a table without columns."""
    # What DataFrame.toArrow is made of; Spark 3.5 has no toArrow, and its toPandas needs pandas.
    batches = cast("Any", frame)._collect_as_arrow()
    return tuple(frame.columns), pa.Table.from_batches(batches) if batches else pa.table({})


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except KeyError:
        # Arrow looks up a Python class for what a column holds, and has none for this.
        raise ValueError("Python has no intervals of months") from None
    return values


def _rows(names: tuple[str, ...], columns: list[list[Any]]) -> Rows:
    return Rows(columns=names, rows=tuple(zip(*columns, strict=True)) if columns else ())


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    if plan.getClass().getSimpleName().startswith(_READING):
        return  # what is explained is not run
    for child in _each(plan.children()):
        yield from _nodes(child)


def _refuse_calls(frame: DataFrame, sql: str) -> None:
    """Refuse a query that was analysed, and not run yet, for what it calls, also in the views that it reads."""
    plan: Any = cast("Any", frame)._jdf.queryExecution().analyzed()
    if called := next(_calls(plan), None):
        raise UsageError(
            f"only queries that read can be run here, this one calls something else: {called}",
            where=_first_line(sql),
            fix="Run it in a Spark of your own.",
        )


def _calls(plan: Any) -> Iterator[str]:
    """Yield what a plan calls that is none of Spark's own functions, subqueries included.

    What calls methods is never deterministic: all else is passed over, as each question takes a call into the JVM.
    """
    if (name := plan.getClass().getSimpleName()) in _CALLING:
        yield _CALLING[name]
    if not plan.deterministic():
        for expression in _each(plan.expressions()):
            yield from _called(expression)
    for inner in (*_each(plan.children()), *_each(plan.subqueries())):
        yield from _calls(inner)


def _called(expression: Any) -> Iterator[str]:
    if expression.deterministic():
        return
    if (name := expression.getClass().getSimpleName()) in _CALLING:
        yield _CALLING[name]
    for child in _each(expression.children()):
        yield from _called(child)


def _each(found: Any) -> Iterator[Any]:
    """Go through a sequence of Scala's."""
    return (found.apply(index) for index in range(found.size()))


def _json(value: Any, kind: pa.DataType) -> Any:
    """Return a value of an Arrow column as JSON holds it; only the type tells an empty map from an empty array."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = [[_json(k, kind.key_type), _json(v, kind.item_type)] for k, v in value]
        return dict(pairs) if pa.types.is_string(kind.key_type) else pairs
    if pa.types.is_list(kind):
        return [_json(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {f.name: _json(value[f.name], f.type) for f in kind}
    if pa.types.is_float32(kind) and math.isfinite(value):
        return _shortest(value)
    return _json_leaf(value)


def _json_leaf(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NOT_FINITE[str(value)]
        case Decimal():
            return format(value, "f")
        case datetime() if value.tzinfo is not None:
            # Arrow gives it in the session's time zone.
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _shortest(value: float) -> float:
    """Return the shortest decimal that is this very FLOAT: 0.1, not 0.10000000149011612."""
    packed = struct.pack("f", value)
    shorter = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((one for one in shorter if _as_float(one) == packed), value)


def _as_float(value: float) -> bytes | None:
    try:
        return struct.pack("f", value)
    except OverflowError:  # the largest FLOAT, rounded up to fewer digits
        return None


@contextmanager
def translated(statement: str) -> Iterator[None]:
    """Turn Spark's errors into one that carries its first line and the statement's."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        # ConnectionError: its JVM is gone.
        raise EngineError(
            "Spark refused the statement or failed in it",
            where=_first_line(statement),
            why=_reason(error),
        ) from error


def _first_line(text: str, *, most: int = 120) -> str:
    lines = text.strip().splitlines() or [""]
    return lines[0][:most]


def _reason(error: Exception) -> str:
    # What Spark itself raises says it in the first line, whatever it quotes below.
    return cause(error) if isinstance(error, Py4JError) else _first_line(str(error), most=500)
