"""A HiveServer2 (4.0) with a metastore of its own on Derby: ``python -m tests.services.hiveserver2_server DIRECTORY``.

Started by the fixture `hiveserver2`. It serves Thrift on a free port of 127.0.0.1 and writes that port into
``DIRECTORY/port`` once it can be asked; the JVM ends with this process, however that ends. Queries run inside of it, by
MapReduce's local runner. ``HIVESERVER2_CLASSPATH`` are its jars: none of those that pyspark ships are there, which has
an older Hive, and a Hadoop whose classes were moved to where MapReduce does not look.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from xml.sax.saxutils import escape

from py4j.java_gateway import JVMView

from tests.services.announcing import announce, free_port
from tests.services.jvm import launched

OPENED = "lang lang.reflect io net nio text time util util.concurrent util.concurrent.atomic util.regex"
"""Packages of Java that Hive looks into."""


def settings(directory: Path, port: int) -> dict[str, str]:
    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(directory / "tmp"),
        "mapreduce.framework.name": "local",
        "mapreduce.task.io.sort.mb": "4",  # each task makes room for so much
        "hive.exec.parallel": "true",
        "hive.exec.counters.pull.interval": "100",  # how often a job is asked whether it is done, in ms
        "mapreduce.client.progressmonitor.pollinterval": "100",
        "hive.execution.engine": "mr",
        "hive.exec.submit.local.task.via.child": "false",  # the child would be Hadoop's script, which is not there
        "hive.exec.scratchdir": f"file:{directory / 'scratch'}",
        "hive.exec.local.scratchdir": str(directory / "tmp"),
        "hive.downloaded.resources.dir": str(directory / "tmp"),
        "hive.server2.logging.operation.enabled": "false",
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.thrift.port": str(port),
        "hive.server2.webui.port": "0",
        "hive.server2.authentication": "NONE",
        "hive.server2.enable.doAs": "false",
        "hive.server2.tez.initialize.default.sessions": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.stats.autogather": "false",
        "hive.stats.fetch.column.stats": "false",
        "hive.support.concurrency": "false",
        "hive.metastore.event.db.notification.api.auth": "false",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file:{directory / 'warehouse'}",
        "datanucleus.schema.autoCreateAll": "true",
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory / 'derby'};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    }


def launch(directory: Path, port: int, classpath: str) -> JVMView:
    """Start a JVM; Hive's settings are the first thing it finds."""
    site = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings(directory, port).items()
    )
    conf = directory / "conf"
    conf.mkdir()
    (conf / "hive-site.xml").write_text(f"<configuration>\n{site}</configuration>\n")
    (directory / "tmp").mkdir()
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED.split()]
    own = ["-Xmx768m", f"-Djava.io.tmpdir={directory / 'tmp'}", "-Duser.timezone=UTC"]
    return launched(os.pathsep.join([str(conf), classpath]), [*opened, *own])


def serve(directory: Path, classpath: str) -> None:
    port = free_port()
    jvm = launch(directory, port, classpath)
    server = jvm.org.apache.hive.service.server.HiveServer2()
    server.init(jvm.org.apache.hadoop.hive.conf.HiveConf())
    server.start()
    announce(directory, port)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), os.environ["HIVESERVER2_CLASSPATH"])
