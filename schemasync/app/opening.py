"""Wiring: from a configuration to a workspace with real edges.

Spark is started only by the commands that need it; importing this module costs nothing of it.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemasync.app.workspace import Progress, Storage, Workspace, silent
from schemasync.core.config import Config, Notice, read_by_any, relocated
from schemasync.core.locations import lacks_host, parse_location, with_host_of
from schemasync.core.mapping import TableTarget
from schemasync.core.ports import Lake, Notifier, Registry
from schemasync.errors import MetastoreBusyError, StorageError, UsageError
from schemasync.io.java import find_java
from schemasync.io.notify import CommandNotifier, WebhookNotifier, slack_notifier
from schemasync.io.registry.auth import NO_AUTH, Auth, BasicAuth, BearerAuth, OAuth
from schemasync.io.registry.file import FileRegistry
from schemasync.io.registry.http import HttpRegistry
from schemasync.io.templates import TemplateRenderer

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

    from schemasync.io.lake.arrow import ArrowLake


def now_ms() -> int:
    """Return the time, ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


def new_token() -> str:
    """Return eight hexadecimal digits that name one run's directories."""
    return uuid.uuid4().hex[:8]


def open_registry(config: Config, *, sleep: Callable[[float], object] = time.sleep) -> Registry:
    """Open the configured registry; nothing is asked yet. A ``sleep`` that returns something true ends its retries.

    Raises:
        UsageError: a certificate, a header value or the address of a token cannot be used.
    """
    settings = config.registry
    place = parse_location(settings.url)
    if place.is_local:
        return FileRegistry(place.path)
    seconds = settings.timeout / 1000
    mtls = settings.auth.mtls
    return HttpRegistry(
        settings.url,
        auth=_auth(config),
        ca=settings.ca,
        client_cert=(mtls.cert, mtls.key) if mtls else None,
        headers={name: value.get_secret_value() for name, value in settings.headers.items()},
        timeout=(min(seconds, 5.0), seconds),
        retries=settings.retries,
        sleep=sleep,
    )


def _auth(config: Config) -> Auth:
    auth = config.registry.auth
    if auth.basic:
        return BasicAuth(username=auth.basic.username, password=auth.basic.password.get_secret_value())
    if auth.bearer:
        return BearerAuth(token=auth.bearer.get_secret_value())
    if auth.oauth:
        return OAuth(
            url=auth.oauth.token_url,
            client_id=auth.oauth.client_id,
            client_secret=auth.oauth.client_secret.get_secret_value(),
            scope=auth.oauth.scope or "",
            ca=auth.oauth.ca,
        )
    return NO_AUTH


def open_notifiers(config: Config, *, sleep: Callable[[float], object] = time.sleep) -> tuple[Notifier, ...]:
    """Open the configured receivers of news. A ``sleep`` that returns something true ends their retries."""
    return tuple(_notifier(notice, sleep) for notice in config.notify)


def _notifier(notice: Notice, sleep: Callable[[float], object]) -> Notifier:
    if notice.slack is not None:
        return slack_notifier(notice.slack.get_secret_value(), sleep=sleep)
    if notice.webhook is None:
        return CommandNotifier(argv=notice.command)
    headers = {name: value.get_secret_value() for name, value in notice.headers.items()}
    return WebhookNotifier(url=notice.webhook.get_secret_value(), headers=headers, sleep=sleep)


def is_left_to_spark(location: str, kernel: str) -> bool:
    """Tell whether a location is reached by Hadoop's client in Spark's JVM.

    It is where Arrow has no file system, or one that needs Hadoop's native libraries and overwrites what it moves
    something to (HDFS, Arrow 26.0.1), and where nothing but Spark is to be asked for.
    """
    place = parse_location(location)
    return not place.is_local and (kernel == "spark" or not place.is_of_arrow)


def open_lake(target: TableTarget) -> Lake:
    """Open the storage under a table's location without Spark.

    Raises:
        StorageError: Arrow has no such scheme, or cannot reach the file system.
        UsageError: a library is missing for it.
    """
    from schemasync.io.lake.arrow import ArrowLake  # noqa: PLC0415

    return ArrowLake(target.location)


def open_renderer(config: Config) -> TemplateRenderer:
    """Open the templates, the user's first."""
    return TemplateRenderer(Path(config.templates) if config.templates else None)


def template_remarks(config: Config) -> tuple[str, ...]:
    """Say which files in the user's folder of templates nothing uses; of one that is not there, whoever needs it."""
    with suppress(UsageError):
        return tuple(f"templates: {remark}" for remark in open_renderer(config).passed_over())
    return ()


@contextmanager
def open_workspace(
    config: Config,
    *,
    environ: Mapping[str, str],
    purpose: str,
) -> Iterator[Workspace]:
    """Start Spark, hold the embedded metastore, and hand out the wired world.

    Raises:
        MetastoreBusyError: another process holds the embedded metastore.
        EngineError: Spark did not start.
        UsageError: there is no usable Java.
    """
    with open_session(config, environ=environ, purpose=purpose) as session:
        yield workspace_of(config, session)


@contextmanager
def open_session(
    config: Config,
    *,
    environ: Mapping[str, str],
    purpose: str,
    wait_s: float = 0.0,
    progress: Progress = silent,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[SparkSession]:
    """Hold the embedded metastore and run Spark; both end with the context.

    A ``sleep`` that returns something true ends the wait for the metastore.

    Raises:
        MetastoreBusyError: another process holds the embedded metastore, and still did after ``wait_s`` seconds.
        EngineError: Spark did not start.
        UsageError: there is no usable Java.
    """
    from schemasync.io import spark_session  # noqa: PLC0415 - starts to import pyspark, half a second

    home = Path(config.metastore.dir)
    embedded = config.metastore.kind == "embedded"
    with ExitStack() as stack:
        if embedded:
            _hold(stack, home, purpose=purpose, wait_s=wait_s, progress=progress, sleep=sleep)
        java = find_java(environ, cache_dir=home / "java")
        progress("", "starting Spark")
        settings = spark_session.SessionSettings(
            home=home,
            master=config.spark.master,
            metastore_uri=None if embedded else config.metastore.uri,
            conf=config.spark.conf,
        )
        session = spark_session.start_session(settings, java_home=java.home, python=sys.executable)
        stack.callback(spark_session.stop_session, session)
        yield session


def _hold(
    stack: ExitStack,
    home: Path,
    *,
    purpose: str,
    wait_s: float,
    progress: Progress,
    sleep: Callable[[float], object],
) -> None:
    from schemasync.io import spark_session  # noqa: PLC0415

    try:
        stack.enter_context(spark_session.held(home, purpose=purpose))
    except MetastoreBusyError as error:
        if wait_s <= 0:
            raise
        progress("", f"waiting for the embedded metastore, {error.why}")
        stack.enter_context(spark_session.held(home, purpose=purpose, wait_s=wait_s, sleep=sleep))


def workspace_of(
    config: Config,
    session: SparkSession,
    *,
    progress: Progress = silent,
    clock: Callable[[], int] = now_ms,
    stop: threading.Event | None = None,
) -> Workspace:
    """Wire a workspace around a running Spark session; ``stop`` ends the pauses between questions to the registry."""
    from schemasync.io.metastore_hive import HiveMetastore  # noqa: PLC0415
    from schemasync.io.spark_fold import SparkFold  # noqa: PLC0415
    from schemasync.io.spark_lanes import SparkLanes  # noqa: PLC0415
    from schemasync.io.spark_sql import SparkSql  # noqa: PLC0415

    metastore = HiveMetastore(session)
    # What is configured says nothing of the metastore of a session that was given.
    config = config if metastore.is_embedded else read_by_any(config)
    opened = lru_cache(maxsize=None)(partial(_opened, session))
    stop = stop or threading.Event()

    return Workspace(
        config=relocated(config, partial(_told, session)),
        registry=open_registry(config, sleep=stop.wait),
        metastore=metastore,
        sql=SparkSql(session),
        renderer=open_renderer(config),
        fold=SparkFold(session),
        storage=lambda target: opened(target.location, target.compaction.kernel),
        now_ms=clock,
        token=new_token,
        progress=progress,
        lanes=SparkLanes(session),
        stop=stop,
    )


def _told(session: SparkSession, location: str) -> str:
    """Return a location as everybody is told it: a metastore would add the host that its own settings have."""
    if not lacks_host(location):
        return location
    from schemasync.io.lake.hadoop import default_filesystem  # noqa: PLC0415

    return with_host_of(location, default_filesystem(session))


def _opened(session: SparkSession, location: str, kernel: str) -> Storage:
    local = str(session.sparkContext.master).startswith("local")
    opened = _by_hadoop if is_left_to_spark(location, kernel) else _by_arrow
    return opened(session, location, local=local)


def _by_arrow(session: SparkSession, location: str, *, local: bool) -> Storage:
    from schemasync.io.lake.arrow import ArrowLake  # noqa: PLC0415
    from schemasync.io.parquet.arrow import ArrowFiles  # noqa: PLC0415
    from schemasync.io.parquet.shards import SparkShards  # noqa: PLC0415
    from schemasync.io.parquet.spark import SparkFiles  # noqa: PLC0415

    lake = ArrowLake(location)
    return replace(
        in_this_process(lake, lake.filesystem, local=local),
        large=SparkFiles(session, ArrowFiles(lake.filesystem, lake.path("")), lake),
        large_shards=SparkShards(session, lake.filesystem, lake.path("")),
        everywhere=True,
    )


def _by_hadoop(session: SparkSession, location: str, *, local: bool) -> Storage:
    from schemasync.io.lake.arrow import ArrowLake  # noqa: PLC0415
    from schemasync.io.lake.hadoop import open_hadoop  # noqa: PLC0415

    try:
        filesystem = open_hadoop(session, location)
    except OSError as error:
        raise StorageError(
            "the location cannot be opened",
            where=location,
            why=str(error.strerror),
            fix="Use file:, s3a: or hdfs:, and check the storage's settings: those of Hadoop stand in spark.conf.",
        ) from error
    return in_this_process(ArrowLake(location, filesystem=filesystem), filesystem, local=local)


def in_this_process(lake: ArrowLake, filesystem: FileSystem, *, local: bool = False) -> Storage:
    """Return the storage of a location whose files nobody but this process reads and writes, through a file system."""
    from schemasync.io.parquet.arrow import ArrowFiles  # noqa: PLC0415
    from schemasync.io.parquet.shards import ArrowShards  # noqa: PLC0415

    files, shards = ArrowFiles(filesystem, lake.path("")), ArrowShards(filesystem, lake.path(""))
    return Storage(
        lake=lake,
        small=files,
        large=files,
        shards=shards,
        large_shards=shards,
        scratch=partial(_scratch, lake),
        local=local,
        everywhere=False,
    )


@contextmanager
def _scratch(lake: ArrowLake) -> Iterator[Storage]:
    from schemasync.io.lake.scratch import scratch  # noqa: PLC0415

    with scratch(lake.filesystem) as filesystem:
        yield in_this_process(lake.within(filesystem), filesystem)
