"""Starting Spark: the embedded metastore's settings, and everything that depends on a Spark version.

The one place that knows how a session is configured. Called once per process by the command line; everything else is
handed the session. The embedded metastore (Derby) serves one process at a time, so a lock beside it names the holder.
"""

from __future__ import annotations

import fcntl
import json
import locale
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from schemasync.core.config_values import LITERALS, ZONE
from schemasync.core.secrets import KEYS
from schemasync.errors import EngineError, MetastoreBusyError, StorageError, UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_LOG4J: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.append = true
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""
"""Spark and Hive log hundreds of warnings that mean nothing here; they go to a file beside the metastore."""

_UTF_8: Final = "C.UTF-8"
"""The locale that names files in UTF-8 whichever languages were installed, where the C library is not an old one."""

COMMON: Final[dict[str, str]] = {
    # Values in files and literals are UTC instants; a session elsewhere would shift what Debezium sent.
    ZONE: "UTC",
    # Partitions and defaults with a backslash, a quote or a line break would be other texts.
    LITERALS: "false",
    # Spark 3.5 has it off: casts would yield NULL where Spark 4 fails. Views store it, so readers get the same.
    "spark.sql.ansi.enabled": "true",
    # INT96, the default, has no statistics and is deprecated by Parquet.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark 3.5 fails on dates before 1582 in files that do not name their Spark, as Arrow's; Spark 4 has this default.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # Hive converts partitions to tables by position; repairing drift must be able to put types right again.
    "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
    "spark.sql.caseSensitive": "false",
    # Tables that are worked on at once share the cores; in order of arrival a large one would keep them all.
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at them, and each keeps its plan, with the whole text of the views that it reads.
    "spark.sql.ui.retainedExecutions": "20",
    # As Arrow's allocator has it by itself (ms): what a worker may take has no room for pages that nobody uses.
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "10",
    # A JVM names files by its locale, which machines of a cluster often leave unset; Arrow names them in UTF-8.
    "spark.executorEnv.LC_ALL": _UTF_8,
    "spark.hadoop.hive.stats.autogather": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

LOCAL: Final[dict[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "4",
}
"""For ``local[*]`` masters: nothing listens on the network, and tiny shuffles stay tiny."""

_SECRET: Final = re.compile(rf"secret|passw|token|\.sas\.|{KEYS}", re.IGNORECASE)
"""What in a setting's name says that its value is a secret: Spark's own ``spark.redaction.regex``, and the keys of
storages that this does not know."""
_ONE_AT_A_TIME: Final = "the embedded metastore serves one process at a time"
_DERBY_IS_OPEN: Final = "XSDB6"
"""Derby's code for a database that another JVM has open; what it says beside it is in the locale's language."""
_URIS: Final = "spark.hadoop.hive.metastore.uris"
_URL: Final = "spark.hadoop.javax.jdo.option.ConnectionURL"
_SHORT_TEXTS: Final = """\
SELECT c.COLUMNNAME FROM SYS.SYSCOLUMNS c JOIN SYS.SYSTABLES t ON c.REFERENCEID = t.TABLEID
WHERE t.TABLENAME = 'TBLS' AND c.COLUMNNAME IN ('VIEW_EXPANDED_TEXT', 'VIEW_ORIGINAL_TEXT')
AND CAST(c.COLUMNDATATYPE AS VARCHAR(32)) LIKE 'LONG VARCHAR%'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a session is started with. ``home`` is ours (``.schemasync``); ``metastore_uri`` None means embedded."""

    home: Path
    master: str = "local[*]"
    metastore_uri: str | None = None
    conf: Mapping[str, str] | None = None

    @property
    def log(self) -> Path:
        """Where Spark, Hive and the JVM itself write what they have to say."""
        return self.home / "spark.log"

    def spark_conf(self) -> dict[str, str]:
        """Return the whole configuration; the user's own settings win."""
        conf = {
            **COMMON,
            "spark.sql.warehouse.dir": str(self.home / "warehouse"),
            "spark.hadoop.hive.exec.scratchdir": str(self.home / "scratch"),
            "spark.driver.extraJavaOptions": self._java_options(),
        }
        if self.master.startswith("local"):
            conf |= LOCAL
        conf |= {_URIS: self.metastore_uri} if self.metastore_uri else self._embedded()
        return {**conf, **(self.conf or {})}

    def _embedded(self) -> dict[str, str]:
        """Return what keeps the metastore here, whatever HADOOP_CONF_DIR or SPARK_CONF_DIR say.

        A hive-site.xml there may name another metastore, a core-site.xml another file system for paths without one.
        """
        return {
            _URIS: "",
            _URL: self.derby,
            "spark.sql.warehouse.dir": f"file://{self.home / 'warehouse'}",
        }

    @property
    def derby(self) -> str:
        """Where the embedded metastore is, unless the user's own settings say otherwise."""
        return f"jdbc:derby:;databaseName={self.home / 'metastore_db'};create=true"

    def _java_options(self) -> str:
        options = {
            "derby.stream.error.file": self.home / "derby.log",
            "log4j2.configurationFile": self.home / "log4j2.properties",
        }
        return " ".join(f'"-D{key}={value}"' for key, value in options.items()) + " -XX:+UseSerialGC"


def start_session(settings: SessionSettings, *, java_home: Path, python: str) -> SparkSession:
    """Start Spark with Hive support. What the JVM prints goes to ``spark.log`` in the home, never to our streams.

    Raises:
        EngineError: Spark or its metastore did not start; the text says where its log is.
        MetastoreBusyError: the embedded metastore is open in another JVM, whoever holds our lock.
        UsageError: Spark runs in this process already.
    """
    _prepare(settings.home)
    os.environ["JAVA_HOME"] = str(java_home)
    # Another Spark's, which pyspark would start without a look at its version.
    os.environ["SPARK_HOME"] = _own_home()
    # Workers must be this very Python, not whichever python3 the PATH finds first.
    os.environ["PYSPARK_PYTHON"] = python
    if settings.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from py4j.protocol import Py4JError  # noqa: PLC0415 - importing pyspark costs half a second
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    whole = {
        "spark.master": settings.master,
        "spark.app.name": "schemasync",
        "spark.sql.catalogImplementation": "hive",
        **settings.spark_conf(),
    }
    builder: Any = SparkSession.builder
    said: int | None = None
    try:
        with ExitStack() as begun:
            _launch(settings)
            # Derby speaks later; what the log has by now may be of earlier attempts of this process.
            said = settings.log.stat().st_size if settings.log.exists() else 0
            # Alone, because an interrupt may come while the session is made, and that takes seconds.
            with _interrupts_kept():
                begun.callback(stop_session, _own_context(whole))
            session: SparkSession = builder.config(map=whole).getOrCreate()
            begun.callback(stop_session, session)
            session.sql("SHOW DATABASES").collect()
            if settings.spark_conf().get(_URL) == settings.derby:
                lengthen_view_texts(session, settings.derby)
            begun.pop_all()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        if said is not None and settings.metastore_uri is None and _is_open_elsewhere(settings.log, since=said):
            raise MetastoreBusyError(
                _ONE_AT_A_TIME,
                where=str(settings.home),
                why="a Spark of yours has it open, or the JVM of a process that was killed, which ends soon",
                fix="Stop it, or run again once it has ended; or use metastore: {kind: thrift}.",
            ) from error
        raise EngineError(
            "Spark did not start",
            where=settings.metastore_uri or str(settings.home),
            why=_cause(error, settings.log),
            fix=f"Look at {settings.log}, and run `schemasync doctor`.",
        ) from error
    return session


def _own_context(conf: Mapping[str, str]) -> SparkContext:
    """Start Spark where it does not run: a process has one at most, and another's may have another metastore."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - importing pyspark takes half a second

    try:
        return SparkContext(conf=SparkConf().setAll(list(conf.items())))
    except ValueError as error:
        raise UsageError(
            "Spark runs in this process already",
            why="it may have another metastore than the one that is configured",
            fix="Hand its session over (spark=...), or stop it first.",
        ) from error


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Leave SIGINT to whom it belongs: Spark's start puts a handler there, whoever had one.

    Where nobody had, ours does what Spark's means to do: it ends the jobs and raises KeyboardInterrupt. That one asks
    over the connection on which the call that was interrupted waits for its answer, and takes that for its own.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt if before is signal.default_int_handler else before)


def _interrupt(*_: object) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415 - importing pyspark takes half a second
    from pyspark import SparkContext  # noqa: PLC0415

    context: Any = SparkContext._active_spark_context
    if context is not None:
        client = context._gateway._gateway_client
        # One for all threads with PYSPARK_PIN_THREAD=false, where a call takes one that is free.
        connection = client.get_thread_connection() if hasattr(client, "get_thread_connection") else None
        if connection is not None:
            # Py4J opens another one now, and has none to close: it would close the other one, too.
            connection.socket = None
        with suppress(Py4JError, ConnectionError):
            context.cancelAllJobs()
    raise KeyboardInterrupt


def _own_home() -> str:
    """Return the home of the Spark that pyspark came with: its package, or the distribution that holds that."""
    import pyspark  # noqa: PLC0415 - importing it takes half a second

    package = Path(pyspark.__file__).parent
    homes = (package, package.parent.parent)
    return str(next((home for home in homes if (home / "bin" / "spark-submit").is_file()), package))


def stop_session(session: SparkSession | SparkContext) -> None:
    """Stop Spark; where its JVM has ended already, as a supervisor ends all processes at once, that is done."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - importing pyspark takes half a second

    with suppress(Py4JError, ConnectionError):
        session.stop()


def lengthen_view_texts(session: SparkSession, url: str) -> None:
    """Let views in Derby have texts of any length; Hive makes columns for them that hold 32,700 characters.

    A view of some hundred columns has more. One transaction, so that nothing is lost where it is killed.
    """
    jvm: Any = session._jvm
    connection = jvm.java.sql.DriverManager.getConnection(url)
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        found = statement.executeQuery(_SHORT_TEXTS)
        columns = []
        while found.next():
            columns.append(found.getString(1))
        found.close()
        for column in columns:
            # Derby changes no column's type.
            statement.execute(f"ALTER TABLE TBLS ADD COLUMN {column}_LONG CLOB")
            statement.execute(f"UPDATE TBLS SET {column}_LONG = CAST({column} AS CLOB)")  # noqa: S608 - Hive's names
            statement.execute(f"ALTER TABLE TBLS DROP COLUMN {column}")
            statement.execute(f"RENAME COLUMN TBLS.{column}_LONG TO {column}")
        connection.commit()
    finally:
        connection.rollback()
        connection.close()


def _launch(settings: SessionSettings) -> None:
    """Start the JVM with its streams in our log file; pyspark by itself would let it write to the terminal.

    It gets a process group of its own, and is deaf to SIGTERM: signals to our group, or to all processes of a service,
    must not end Spark under a step that is being finished. It ends when its standard input does, so it never outlives
    this process.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    context: Any = SparkContext
    if context._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    conf.setMaster(settings.master)
    # As its arguments, which all users of this machine can read. What is secret the session gets when it is made.
    conf.setAll([item for item in settings.spark_conf().items() if not _SECRET.search(item[0])])
    launch: Any = launch_gateway
    with _begun(settings.log) as log, _names_in_utf_8(), _ended_unless_started() as told:
        gateway = launch(conf, popen_kwargs=_Deaf(told, stdout=log, stderr=log, start_new_session=True))
    context._ensure_initialized(gateway=gateway, conf=conf)


class _Deaf(dict[str, Any]):
    """Arguments of `subprocess.Popen` for a program that ignores what asks for an end; pyspark adds its own to them.

    Java leaves signals alone that were ignored when it was started. Set here for the child alone: ours would be lost if
    we ignored them meanwhile.
    """

    def __init__(self, told: int, **given: Any) -> None:
        """Let the program write its number to the descriptor ``told`` before it begins."""
        super().__init__(**given)
        self._told = told

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, partial(_deafened, value, self._told) if name == "preexec_fn" else value)


def _deafened(first: Callable[[], None], told: int) -> None:
    first()
    os.write(told, str(os.getpid()).encode())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _ended_unless_started() -> Iterator[int]:
    """Yield where a program writes its number that begins a process group; it is killed where an error comes out.

    A JVM whose start is interrupted would stay for good: pyspark deletes the directory in which it is to say where it
    listens, and without having said that it never looks whether its standard input has ended.
    """
    heard, told = os.pipe()
    try:
        yield told
    except BaseException:
        os.set_blocking(heard, False)
        with suppress(BlockingIOError, ProcessLookupError):  # none was started, or it has ended
            os.killpg(int(os.read(heard, 20)), signal.SIGKILL)
        raise
    finally:
        os.close(heard)
        os.close(told)


@contextmanager
def _names_in_utf_8() -> Iterator[None]:
    """Let a JVM that is started meanwhile write names of files as Arrow does, in UTF-8, where our locale is another.

    It goes by its locale, and a partition that one of them wrote would be no place that the other finds.
    """
    ours = os.environ.get("LC_ALL")
    if locale.getencoding().upper() != "UTF-8":
        os.environ["LC_ALL"] = _UTF_8
    try:
        yield
    finally:
        os.environ.pop("LC_ALL", None)
        if ours is not None:
            os.environ["LC_ALL"] = ours


def _begun(log: Path) -> BinaryIO:
    """Open the log of a JVM that is to be started, empty unless another JVM writes to it still.

    Several processes may share a home where the metastore is not in it. What a JVM was given is locked until it ends.
    """
    file = log.open("a+b")
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
    with suppress(OSError):  # storages that know no locks
        fcntl.flock(file, fcntl.LOCK_SH)
    return file


def _cause(error: Exception, log: Path) -> str:
    """Return what says most: of a JVM that never answered, the last words in its log."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "JAVA_GATEWAY_EXITED" in lines[0]:
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        lines = ["; ".join([line for line in said if not line.startswith("\t")][-3:])] if said else lines
    # The first line of a call that failed in the JVM only says that it did.
    shown = next((line.lstrip(": ") for line in lines if not line.startswith("An error occurred while")), lines[0])
    return shown[:500]


def _is_open_elsewhere(log: Path, *, since: int) -> bool:
    """Tell whether Derby refused its database for that: what reaches us only says that no client could be made."""
    return log.exists() and _DERBY_IS_OPEN.encode() in log.read_bytes()[since:]


def _prepare(home: Path) -> None:
    with _writing(home):
        home.mkdir(parents=True, exist_ok=True)
        # Java reads it as ISO 8859-1, with the escapes of JSON for all else.
        log = json.dumps(str(home / "spark.log"))[1:-1]
        (home / "log4j2.properties").write_text(_LOG4J.format(log=log))


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            "schemasync's own directory cannot be written",
            where=str(home),
            why=error.strerror or str(error),
            fix="Give this user write permission and space there, or set metastore: {dir: ...}.",
        ) from error


@contextmanager
def held(
    home: Path, *, purpose: str, wait_s: float = 0.0, sleep: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Hold the embedded metastore for this process.

    ``wait_s`` is how long to wait for another holder (0: not at all). ``sleep`` pauses, and returns something true
    where it was woken because the process is to end: that ends the wait.

    Raises:
        MetastoreBusyError: another process holds it, and still did when the wait ended; the text names it.
        StorageError: the lock file cannot be written, or its storage knows no locks.
    """
    _prepare(home)
    with _writing(home):
        # Without a buffer, which would be written once more, and in vain, when a lock is closed that has no space.
        lock = (home / "lock").open("a+b", buffering=0)
    with lock:
        _acquire(lock, home, wait_s, sleep)
        with _writing(home):
            lock.truncate(0)
            lock.write(json.dumps({"pid": os.getpid(), "purpose": purpose}).encode())
        try:
            yield
        finally:
            # What it says counts only as long as it is held.
            with suppress(OSError):
                lock.truncate(0)


def _acquire(lock: FileIO, home: Path, wait_s: float, sleep: Callable[[float], object]) -> None:
    waited, woken = 0.0, False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # the latter on CIFS
            if woken or waited >= wait_s:
                raise MetastoreBusyError(
                    _ONE_AT_A_TIME,
                    where=str(home),
                    why=f"it is held by {_holder(lock)}",
                    fix="Let it end (commands wait for that with --wait), stop it, or use metastore: {kind: thrift}.",
                ) from error
            woken = bool(sleep(0.2))
            waited += 0.2
        except OSError as error:
            raise StorageError(
                "the embedded metastore cannot be locked",
                where=str(home),
                why=error.strerror or str(error),
                fix="Put it on a storage that knows locks, as local disks do (metastore: {dir: ...}), "
                "or use metastore: {kind: thrift}.",
            ) from error
        else:
            return


def _holder(lock: FileIO) -> str:
    lock.seek(0)
    try:
        holder = json.loads(lock.read())
    except ValueError:
        return "another process"
    return f"process {holder['pid']} ({holder['purpose']})"
