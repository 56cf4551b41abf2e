"""The lock of the embedded metastore: one process at a time, and the holder has a name. What a session is set to."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from schemasync.errors import EngineError, MetastoreBusyError, StorageError, UsageError
from schemasync.io import spark_session
from schemasync.io.spark_fold import SparkFold
from schemasync.io.spark_session import SessionSettings, held, lengthen_view_texts, start_session, stop_session
from schemasync.io.spark_sql import translated
from tests.children import SHORT_LIVED
from tests.lab import Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_spark_whose_jvm_is_gone_is_an_error_of_ours_and_needs_no_stop() -> None:
    """What py4j raises then is no error of py4j's."""

    class Gone:
        def stop(self, *_: Any) -> None:
            raise ConnectionRefusedError(111, "Connection refused")

        sql = stop

    with pytest.raises(EngineError, match=r"SELECT 1: Spark refused .*: .*refused"), translated("SELECT 1"):
        Gone().stop()
    gone: Any = Gone()
    with pytest.raises(EngineError, match=r"the compaction's Spark job failed: \[Errno 111\] Connection refused"):
        SparkFold(gone).run("SELECT 1", into="file:///base", sort_by=(), unsent={})
    stop_session(gone)


def test_a_fold_that_finds_no_room_is_the_storage_s_fault() -> None:
    quota = "DSQuotaExceededException: The DiskSpace quota of /lake is exceeded: quota = 1 B"
    error = Py4JError(f"An error occurred.\n: org.apache.hadoop.hdfs.protocol.{quota}\n\tat org.apache.hadoop.hdfs")
    with pytest.raises(StorageError, match=rf"^hdfs://lake/base: the new base cannot be written: {quota}\. Free some"):
        SparkFold(Mock(**{"sql.side_effect": error})).run("SELECT 1", into="hdfs://lake/base", sort_by=(), unsent={})


def test_a_reason_has_room_for_what_engines_quote_before_they_say_it() -> None:
    reason = f"{'MetaException(' * 20}No FileSystem for scheme"
    with pytest.raises(EngineError, match=r"No FileSystem for scheme$"), translated("SELECT 1"):
        raise PySparkException(reason)


HOLDER = """
import sys, time
from pathlib import Path
from schemasync.io.spark_session import held

with held(Path(sys.argv[1]), purpose="watch"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the metastore until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.kill()


def let_go(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    holder.stdin.close()
    holder.wait(10)


def test_a_second_process_is_told_who_holds_the_metastore(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(MetastoreBusyError) as caught, held(tmp_path, purpose="compact"):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: the embedded metastore serves one process at a time: it is held by process {holder.pid} (watch). "
        "Let it end (commands wait for that with --wait), stop it, or use metastore: {kind: thrift}."
    )


def test_waiting_gets_the_metastore_once_the_holder_lets_go(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        let_go(holder)

    with held(tmp_path, purpose="compact", wait_s=60, sleep=sleep):
        assert len(waits) == 1


def test_waiting_ends_when_its_time_is_over(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    waits: list[float] = []
    with (
        pytest.raises(MetastoreBusyError, match=f"process {holder.pid}"),
        held(tmp_path, purpose="compact", wait_s=1.0, sleep=waits.append),
    ):
        pass
    assert 1.0 <= sum(waits) < 1.5


def test_who_is_woken_from_the_wait_waits_no_more(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> bool:
        waits.append(seconds)
        return True

    with pytest.raises(MetastoreBusyError), held(tmp_path, purpose="compact", wait_s=60, sleep=sleep):
        pass
    assert (len(waits), holder.poll()) == (1, None)


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(10)
    with held(tmp_path, purpose="compact"):
        assert f'"pid": {os.getpid()}' in (tmp_path / "lock").read_text()


def test_the_lock_is_free_again_after_use(tmp_path: Path) -> None:
    for purpose in ("apply", "compact"):
        with held(tmp_path, purpose=purpose):
            assert purpose in (tmp_path / "lock").read_text()


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), held(tmp_path, purpose="apply"):
        raise ZeroDivisionError
    with held(tmp_path, purpose="compact"):
        pass


def test_a_home_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=f"^{tmp_path}/file/home: "), held(tmp_path / "file" / "home", purpose=""):
        pass


class Full(io.FileIO):
    """A lock on a disk that is full."""

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Stuck(io.FileIO):
    """A lock that is written, and then no more."""

    written = False

    def write(self, content: Any) -> int:
        self.written = True
        return super().write(content)

    def truncate(self, size: int | None = None) -> int:
        if self.written:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().truncate(size)


def with_lock(monkeypatch: pytest.MonkeyPatch, kind: type[io.FileIO]) -> None:
    real = Path.open

    def opened(path: Path, *given: Any, **more: Any) -> Any:
        return kind(path, "a+") if path.name == "lock" else real(path, *given, **more)

    monkeypatch.setattr(Path, "open", opened)


def test_a_lock_for_which_there_is_no_space_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lock(monkeypatch, Full)
    with pytest.raises(StorageError) as caught, held(tmp_path, purpose="status"):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: schemasync's own directory cannot be written: No space left on device. "
        "Give this user write permission and space there, or set metastore: {dir: ...}."
    )


def test_a_lock_that_cannot_be_emptied_is_given_back_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lock(monkeypatch, Stuck)
    for _ in range(2):
        with held(tmp_path, purpose="status"):
            pass


def without_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_storage_that_knows_no_locks_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    without_locks(monkeypatch, number)
    waits: list[float] = []
    with pytest.raises(StorageError) as caught, held(tmp_path, purpose="status", wait_s=60, sleep=waits.append):
        pass
    assert (str(caught.value), waits) == (
        f"{tmp_path}: the embedded metastore cannot be locked: {os.strerror(number)}. Put it on a storage that knows "
        "locks, as local disks do (metastore: {dir: ...}), or use metastore: {kind: thrift}.",
        [],
    )


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EACCES])
def test_a_lock_that_another_one_has_is_refused_in_one_of_two_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    without_locks(monkeypatch, number)
    with pytest.raises(MetastoreBusyError), held(tmp_path, purpose="status"):
        pass


def test_java_reads_the_name_of_the_log_as_it_is(tmp_path: Path) -> None:
    with held(tmp_path / "größe" / "a\\b", purpose="apply"):
        pass
    settings = (tmp_path / "größe" / "a\\b" / "log4j2.properties").read_text("latin-1").splitlines()
    assert f"appender.file.fileName = {tmp_path}/gr\\u00f6\\u00dfe/a\\\\b/spark.log" in settings


def test_a_log_is_begun_anew_once_no_jvm_writes_to_it_any_more(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def started(text: bytes) -> subprocess.Popen[bytes]:
        with spark_session._begun(tmp_path / "spark.log") as log:
            log.write(text)
            writer = [sys.executable, "-c", "import sys; sys.stdin.read()"]
            process = subprocess.Popen(writer, stdin=subprocess.PIPE, stdout=log)
        seen.append((tmp_path / "spark.log").read_bytes())
        return process

    with started(b"1") as first, started(b"2") as second:
        first.communicate()
        with started(b"3") as third:
            for process in (second, third):
                process.communicate()
    with started(b"4"):
        pass
    assert seen == [b"1", b"12", b"123", b"4"]


def test_the_users_own_spark_settings_win(tmp_path: Path) -> None:
    settings = SessionSettings(home=tmp_path, conf={"spark.sql.shuffle.partitions": "200"})
    assert settings.spark_conf()["spark.sql.shuffle.partitions"] == "200"


def test_texts_are_read_with_their_escapes_whatever_the_machines_defaults_say(tmp_path: Path) -> None:
    # What is said here comes before spark-defaults.conf.
    assert SessionSettings(home=tmp_path).spark_conf()["spark.sql.parser.escapedStringLiterals"] == "false"


def test_a_thrift_metastore_needs_no_derby(tmp_path: Path) -> None:
    conf = SessionSettings(home=tmp_path, metastore_uri="thrift://hive:9083").spark_conf()
    assert (conf["spark.hadoop.hive.metastore.uris"], [k for k in conf if "javax.jdo" in k]) == (
        "thrift://hive:9083",
        [],
    )


def test_no_configuration_of_hadoop_names_another_metastore_than_the_embedded_one(tmp_path: Path) -> None:
    conf = SessionSettings(home=tmp_path).spark_conf()
    asked = ("spark.hadoop.hive.metastore.uris", "spark.sql.warehouse.dir")
    assert [conf[key] for key in asked] == ["", f"file://{tmp_path}/warehouse"]


def test_the_spark_that_runs_is_the_one_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    homes: list[str] = []

    def launched(_: SessionSettings) -> None:
        homes.append(os.environ["SPARK_HOME"])
        raise OSError(errno.EIO, "enough")

    for name in ("SPARK_HOME", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "/opt/another")
    monkeypatch.setattr(spark_session, "_launch", launched)
    with pytest.raises(EngineError, match="Spark did not start"):
        start_session(SessionSettings(home=tmp_path), java_home=tmp_path, python=sys.executable)
    assert homes == [str(Path(pyspark.__file__).parent)]


REFUSED = "Caused by: ERROR XSDB6: Another instance of Derby may have already booted the database /x/metastore_db."


def test_a_metastore_that_another_jvm_has_open_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own Spark asks nobody for our lock, and the JVM of a process that was killed ends after that."""
    for name in ("SPARK_HOME", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "/opt/another")

    def refused(_: object) -> None:
        (tmp_path / "spark.log").write_text(f"2026-11-20T00:00:00.000 ERROR Schema: Failed initialising.\n{REFUSED}\n")
        raise RuntimeError("Unable to instantiate SessionHiveMetaStoreClient")

    monkeypatch.setattr(spark_session, "_launch", Mock())
    monkeypatch.setattr(spark_session, "_own_context", refused)
    with pytest.raises(MetastoreBusyError) as caught:
        start_session(SessionSettings(home=tmp_path), java_home=tmp_path, python=sys.executable)
    assert str(caught.value) == (
        f"{tmp_path}: the embedded metastore serves one process at a time: a Spark of yours has it open, or the JVM of "
        "a process that was killed, which ends soon. "
        "Stop it, or run again once it has ended; or use metastore: {kind: thrift}."
    )
    elsewhere = SessionSettings(home=tmp_path, metastore_uri="thrift://hive:9083")
    with pytest.raises(EngineError, match="Spark did not start"):
        start_session(elsewhere, java_home=tmp_path, python=sys.executable)


def test_a_jvm_whose_start_is_interrupted_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for good: nobody hears where it listens."""
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text("#!/bin/sh\nexec sleep 60\n")
    submit.chmod(0o755)
    begun: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            begun.append(self)

    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("pyspark.java_gateway.Popen", Popen)
    monkeypatch.setattr("pyspark.java_gateway.time", Mock(sleep=Mock(side_effect=KeyboardInterrupt)))
    with pytest.raises(KeyboardInterrupt):
        spark_session._launch(SessionSettings(home=tmp_path))
    (jvm,) = begun
    with jvm:
        assert jvm.wait(timeout=30) == -signal.SIGKILL


@pytest.mark.parametrize("failing", ["_launch", "_own_context"])
def test_what_the_log_has_of_an_earlier_attempt_is_no_reason_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A JVM that runs already goes on in the log, and where none could be started it is as it was."""
    for name in ("SPARK_HOME", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "/opt/another")
    settings = SessionSettings(home=tmp_path)
    settings.log.write_text(f"{REFUSED}\n")
    monkeypatch.setattr(spark_session, "_launch", Mock())
    monkeypatch.setattr(spark_session, failing, Mock(side_effect=RuntimeError("the disk is full")))
    with pytest.raises(EngineError, match="the disk is full"):
        start_session(settings, java_home=tmp_path, python=sys.executable)


@pytest.mark.parametrize("home", ["python/pyspark", "."])
def test_a_pyspark_inside_of_a_distribution_belongs_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    (tmp_path / home / "bin").mkdir(parents=True)
    (tmp_path / home / "bin" / "spark-submit").touch()
    monkeypatch.setattr("pyspark.__file__", str(tmp_path / "python" / "pyspark" / "__init__.py"))
    assert spark_session._own_home() == str(tmp_path / home)


@pytest.mark.parametrize(
    ("encoding", "ours", "given"),
    [
        ("UTF-8", "de_DE.UTF-8", "de_DE.UTF-8"),
        ("utf-8", None, None),
        ("ISO-8859-1", "de_DE", "C.UTF-8"),
        ("ANSI_X3.4-1968", None, "C.UTF-8"),
    ],
)
def test_a_jvm_gets_a_locale_that_names_files_in_utf_8_and_we_keep_ours(
    monkeypatch: pytest.MonkeyPatch, encoding: str, ours: str | None, given: str | None
) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: encoding)
    monkeypatch.setenv("LC_ALL", ours or "")
    if ours is None:
        monkeypatch.delenv("LC_ALL")
    with spark_session._names_in_utf_8():
        found = os.environ.get("LC_ALL")
    assert (found, os.environ.get("LC_ALL")) == (given, ours)


def ran(program: str, root: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a Spark of its own, whose home it is told."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environ = os.environ | SHORT_LIVED | {"PYTHONPATH": path} | environ
    command = [sys.executable, "-c", program, str(root / "home")]
    return subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, timeout=300, check=False)


KEYS = (
    "fs.s3a.secret.key",
    "fs.s3a.bucket.lake.session.token",
    "fs.azure.account.key.lake.dfs.core.windows.net",
    "fs.azure.sas.lake.blob.core.windows.net",
    "fs.azure.encryption.encoded.client-provided-key",
    "dfs.adls.oauth2.credential",
    "fs.gs.auth.service.account.private.key",
    "javax.jdo.option.ConnectionPassword",
)
EMBEDDED = """
import os, sys
from pathlib import Path
from tests.lab import own_spark

if __name__ == "__main__":
    keys = os.environ["KEYS"].split()
    conf = {f"spark.hadoop.{key}": "hush" for key in keys} | {"spark.executorEnv.AWS_SECRET_ACCESS_KEY": "hush"}
    with own_spark(Path(sys.argv[1]), purpose="tests", master="local[1]", conf=conf) as spark:
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        arguments = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/cmdline").read_text()
        print({hadoop.get(key) for key in keys}, "spark.sql.ansi.enabled" in arguments, "hush" in arguments)
        spark.sql("CREATE DATABASE here")
        print(spark.sql("DESCRIBE DATABASE here").where("info_name = 'Location'").first().info_value)
        print(spark._jvm.java.lang.System.getProperty("sun.jnu.encoding"), os.environ["LC_ALL"])
"""
SITE = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"


@pytest.mark.spark
@pytest.mark.one_spark
def test_neither_hadoop_s_configuration_nor_a_locale_changes_what_an_embedded_session_is(tmp_path: Path) -> None:
    """The metastore is its own, and names of files are UTF-8, as Arrow writes them.

    Nor do secrets among its settings stand in the arguments of the JVM, which is there as long as `watch` is.
    """
    elsewhere = tmp_path / "etc"
    elsewhere.mkdir()
    (elsewhere / "hive-site.xml").write_text(SITE.format("hive.metastore.uris", "thrift://127.0.0.1:1"))
    (elsewhere / "core-site.xml").write_text(SITE.format("fs.defaultFS", "hdfs://127.0.0.1:1"))
    done = ran(EMBEDDED, tmp_path, HADOOP_CONF_DIR=str(elsewhere), LC_ALL="C", KEYS=" ".join(KEYS))
    assert done.stdout == f"{{'hush'}} True False\nfile:{tmp_path}/home/warehouse/here.db\nUTF-8 C\n", done.stderr[
        -3000:
    ]


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from schemasync.io.logs import configure_logging
from tests.lab import own_spark

SLOW = "SELECT java_method('java.lang.Thread', 'sleep', 100L) FROM range(10000)"

def running():
    return spark.sparkContext.statusTracker().getActiveJobsIds()

def interrupt():
    while not running():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    # What a shell begins in the background has none.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with own_spark(Path(sys.argv[1]), purpose="tests", master="local[1]") as spark:
        configure_logging("text", 0, sys.stderr)
        # As who ends all processes of a service at once does.
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(spark.sparkContext._gateway.proc.pid, number)
        threading.Thread(target=interrupt).start()
        try:
            spark.sql(SLOW).collect()
        except KeyboardInterrupt:
            print("interrupted", spark.sql("SELECT 42").first()[0])
        while running():
            time.sleep(0.01)
"""


@pytest.mark.spark
@pytest.mark.one_spark
def test_an_interrupt_ends_sparks_jobs_and_what_is_asked_then_gets_its_own_answer_and_no_signal_ends_spark(
    tmp_path: Path,
) -> None:
    done = ran(INTERRUPTED, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 42\n", "")


INTERRUPTED_EARLY = """
import os, signal, sys, threading
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.lab import own_spark

made = SparkSession.__init__

def slowly_made(self, *given, **more):
    # Java is asked at once, and takes longer.
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    made(self, *given, **more)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    SparkSession.__init__ = slowly_made
    try:
        with own_spark(Path(sys.argv[1]), purpose="tests", master="local[1]"):
            pass
    except KeyboardInterrupt:
        print("interrupted", SparkContext._active_spark_context)
"""


@pytest.mark.spark
@pytest.mark.one_spark
def test_an_interrupt_while_spark_starts_is_one_and_leaves_no_spark_to_others(tmp_path: Path) -> None:
    assert ran(INTERRUPTED_EARLY, tmp_path).stdout == "interrupted None\n"


@pytest.mark.spark
def test_a_spark_that_runs_is_neither_taken_for_the_configured_one_nor_stopped(
    tmp_path: Path, spark: SparkSession
) -> None:
    with pytest.raises(UsageError, match="Spark runs in this process already"):
        start_session(SessionSettings(home=tmp_path), java_home=Path(os.environ["JAVA_HOME"]), python=sys.executable)
    assert spark.range(1).count() == 1


def test_whoever_had_a_handler_of_interrupts_has_it_when_spark_has_started() -> None:
    before = signal.getsignal(signal.SIGINT)
    with spark_session._interrupts_kept():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    kept = signal.signal(signal.SIGINT, before)
    assert kept == (spark_session._interrupt if before is signal.default_int_handler else before)


@pytest.mark.spark
def test_a_view_means_the_same_to_a_reader_whose_casts_yield_null(spark: SparkSession) -> None:
    from schemasync.io.spark_sql import SparkSql

    spark.sql("CREATE VIEW strict AS SELECT CAST(a AS INT) AS b FROM VALUES ('no number') t(a)")
    reader = spark.newSession()
    reader.conf.set("spark.sql.ansi.enabled", "false")
    with pytest.raises(EngineError, match="CAST_INVALID_INPUT"):
        SparkSql(reader).query("SELECT b FROM strict")


@pytest.mark.spark
def test_a_view_of_many_columns_has_room_in_the_embedded_metastore(lab: Lab) -> None:
    columns = [(f"column_with_a_long_name_{n}", ["null", "int"]) for n in range(600)]
    row = {name: number for number, (name, _) in enumerate(columns)}
    lab.register("shop.wide", lab.flat("Wide", *columns))
    lab.land("shop.wide", [{"id": 1, "op": "c", "ts_ms": 1} | row])
    (applied,) = lab.apply().tables
    view = lab.workspace.metastore.table(lab.database, "shop_wide_view")
    assert (applied.error, lab.rows("shop_wide")) == (None, [{"id": 1} | row])
    assert view is not None
    assert len(view.view_text) > 32_700


@pytest.mark.spark
def test_the_texts_of_an_older_embedded_metastore_stay_when_they_get_room(tmp_path: Path, spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    url = f"jdbc:derby:;databaseName={tmp_path / 'metastore_db'};create=true"
    connection = jvm.java.sql.DriverManager.getConnection(url)
    statement = connection.createStatement()
    texts = "VIEW_EXPANDED_TEXT LONG VARCHAR, VIEW_ORIGINAL_TEXT LONG VARCHAR"
    statement.execute(f"CREATE TABLE TBLS (TBL_ID BIGINT NOT NULL, {texts})")

    def insert(number: int, *texts: str | None) -> None:
        row = connection.prepareStatement("INSERT INTO TBLS VALUES (?, ?, ?)")
        row.setLong(1, number)
        for place, text in enumerate(texts, start=2):
            row.setString(place, text)
        row.execute()

    insert(1, "expanded", "original")
    insert(2, None, None)
    for _ in range(2):
        lengthen_view_texts(spark, url)
    insert(3, "e" * 40_000, "o" * 40_000)
    found = statement.executeQuery("SELECT VIEW_EXPANDED_TEXT, VIEW_ORIGINAL_TEXT FROM TBLS ORDER BY TBL_ID")
    told = []
    while found.next():
        told.append((found.getString(1), found.getString(2)))
    connection.close()
    assert told == [("expanded", "original"), (None, None), ("e" * 40_000, "o" * 40_000)]


@pytest.mark.spark
def test_arrow_keeps_no_pages_in_spark_s_workers_and_names_are_utf_8_there(spark: SparkSession) -> None:
    names = ("MIMALLOC_PURGE_DELAY", "LC_ALL")
    told = spark.sparkContext.parallelize([0], 1).map(lambda _: [os.environ[name] for name in names]).collect()
    assert told == [["10", "C.UTF-8"]]
