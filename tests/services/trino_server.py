"""A Trino (476) that reads a metastore: ``python -m tests.services.trino_server DIRECTORY``.

Started by the fixture `trino`. It serves HTTP on a free port of 127.0.0.1 and writes that port into ``DIRECTORY/port``
once it can be asked; the JVM ends with this process, however that ends. Its one catalog, ``hive``, has the tables of
the metastore at ``TRINO_METASTORE``. Its jars lie in ``DIRECTORY/home``; ``TRINO_JAVA`` runs them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, JVMView, launch_gateway

from tests.services.announcing import announce, free_port


def settings(directory: Path, port: int) -> dict[str, str]:
    return {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "node.environment": "tests",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "web-ui.enabled": "false",
        "plugin.dir": str(directory / "home" / "plugin"),
        "catalog.config-dir": str(directory / "catalog"),
    }


def catalog(metastore: str) -> dict[str, str]:
    """Return how Trino reads views of Hive's, files where Hadoop finds them, and moments in UTC wherever it stands."""
    return {
        "connector.name": "hive",
        "hive.metastore.uri": metastore,
        "hive.hive-views.enabled": "true",
        "hive.allow-register-partition-procedure": "true",
        "hive.timestamp-precision": "MICROSECONDS",
        "hive.parquet.time-zone": "UTC",
        "fs.hadoop.enabled": "true",
    }


def write(place: Path, properties: Mapping[str, str]) -> Path:
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return place


def launch(directory: Path, config: Path) -> JVMView:
    """Start a JVM that ends when the pipe from this process breaks."""
    port, token = launch_gateway(
        classpath=str(directory / "home" / "lib" / "*"),
        javaopts=[
            "-Xmx1g",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Duser.timezone=America/New_York",
            f"-Dconfig={config}",
        ],
        die_on_exit=True,
        enable_auth=True,
        java_path=os.environ["TRINO_JAVA"],
        redirect_stdout=sys.stdout,
        redirect_stderr=sys.stderr,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)).jvm


def serve(directory: Path, metastore: str) -> None:
    port = free_port()
    write(directory / "catalog" / "hive.properties", catalog(metastore))
    jvm = launch(directory, write(directory / "config.properties", settings(directory, port)))
    jvm.io.trino.server.Server().start("476")
    announce(directory, port)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), os.environ["TRINO_METASTORE"])
