"""Services that the suite starts for itself: on loopback, from what is installed, stopped by process id."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemasync.io.java import find_java
from tests.conftest import HADOOP_ONLY
from tests.services.jars import HADOOP, HIVESERVER2, downloaded, lay_out_trino, s3a_conf, trino_java
from tests.services.s3_server import BUCKET

START_SECONDS = 180.0
STOP_SECONDS = 30.0


@pytest.fixture(scope="session")
def java_environ(tmp_path_factory: pytest.TempPathFactory, s3: str) -> dict[str, str]:  # noqa: ARG001 - it sets the environment
    """Return the environment for programs that start a JVM through pyspark."""
    java = find_java(os.environ, cache_dir=tmp_path_factory.mktemp("java"))
    return {**os.environ, "JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="session")
def hive_metastore(
    tmp_path_factory: pytest.TempPathFactory, java_environ: dict[str, str], spark_conf: dict[str, str]
) -> Iterator[str]:
    """Serve an empty Hive metastore; yield its address, ``thrift://127.0.0.1:PORT``."""
    directory = tmp_path_factory.mktemp("metastore")
    environ = java_environ | {"METASTORE_SPARK_CONF": json.dumps(spark_conf)}
    with served("metastore_server", directory, environ) as port:
        yield f"thrift://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def metastore_uri(hive_metastore: str) -> str:
    """Let the run's Spark share its metastore with other engines."""
    return hive_metastore


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory, java_environ: dict[str, str]) -> Iterator[str]:
    """Serve an empty HDFS; yield its address, ``hdfs://127.0.0.1:PORT``."""
    directory = tmp_path_factory.mktemp("hdfs")
    classpath = os.pathsep.join(str(jar) for jar in downloaded(HADOOP))
    with served("hdfs_server", directory, java_environ | {"HDFS_SERVER_CLASSPATH": classpath}) as port:
        yield f"hdfs://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def hiveserver2(tmp_path_factory: pytest.TempPathFactory, java_environ: dict[str, str]) -> Iterator[int]:
    """Serve a HiveServer2 with an empty metastore of its own; yield its port on 127.0.0.1."""
    directory = tmp_path_factory.mktemp("hiveserver2")
    classpath = os.pathsep.join(str(jar) for jar in downloaded(HIVESERVER2))
    with served("hiveserver2_server", directory, java_environ | {"HIVESERVER2_CLASSPATH": classpath}) as port:
        yield port


@pytest.fixture(scope="session")
def trino(tmp_path_factory: pytest.TempPathFactory, hive_metastore: str) -> Iterator[int]:
    """Serve a Trino that has the tables of the run's metastore; yield its port on 127.0.0.1."""
    directory = tmp_path_factory.mktemp("trino")
    lay_out_trino(directory / "home")
    environ = {"TRINO_JAVA": str(trino_java()), "TRINO_METASTORE": hive_metastore}
    with served("trino_server", directory, {**os.environ, **environ}) as port:
        yield port


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an empty S3 bucket; yield its address, ``s3a://BUCKET``. The environment says where it is meanwhile."""
    directory = tmp_path_factory.mktemp("s3")
    with pytest.MonkeyPatch.context() as patch:
        # Nothing of the developer's own account, nor a proxy.
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, str(directory / "none"))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "tests")
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.setenv(name, "us-east-1")
        patch.setenv("NO_PROXY", "127.0.0.1")
        with served("s3_server", directory, dict(os.environ)) as port:
            patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
            yield f"s3a://{BUCKET}"


@pytest.fixture(scope="session")
def spark_conf(s3: str) -> dict[str, str]:  # noqa: ARG001 - it sets the environment, which Spark's workers inherit
    """Return the settings of a Spark that has S3A."""
    return HADOOP_ONLY | s3a_conf(os.environ["AWS_ENDPOINT_URL"])


@contextmanager
def served(program: str, directory: Path, environ: dict[str, str]) -> Iterator[int]:
    """Run one of the programs beside this file; yield the port that it announces in the directory."""
    command = [sys.executable, "-m", f"tests.services.{program}", str(directory)]
    path = os.pathsep.join([str(Path(__file__).parents[2]), environ.get("PYTHONPATH", "")])
    environ = environ | {"PYTHONPATH": path}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        yield announced_port(process, directory)
    finally:
        stop(process)


def announced_port(process: subprocess.Popen[bytes], directory: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while not (directory / "port").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = (directory / "log").read_text(errors="replace")[-5000:]
            pytest.fail(f"the service did not start (exit code {process.poll()}); the end of its log:\n{tail}")
        time.sleep(0.1)
    return int((directory / "port").read_text())


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and the JVM that it started; both are in the process group that bears its id."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
