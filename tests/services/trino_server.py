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

from tests.services.announcing import announce, free_port
from tests.services.jvm import launched


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


def serve(directory: Path, metastore: str) -> None:
    port = free_port()
    write(directory / "catalog" / "hive.properties", catalog(metastore))
    config = write(directory / "config.properties", settings(directory, port))
    options = ["-Xmx1g", "-Duser.timezone=America/New_York", f"-Dconfig={config}"]
    jvm = launched(str(directory / "home" / "lib" / "*"), options, os.environ["TRINO_JAVA"])
    jvm.io.trino.server.Server().start("476")
    announce(directory, port)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), os.environ["TRINO_METASTORE"])
