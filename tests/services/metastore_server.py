"""A Hive metastore (2.3) on Derby, run from the jars that pyspark ships.

Started by the fixture `hive_metastore`: ``python -m tests.services.metastore_server DIRECTORY``. It serves Thrift on a
free port of 127.0.0.1 and writes that port into ``DIRECTORY/port`` once it can be asked; the JVM ends with this
process, however that ends. ``METASTORE_SPARK_CONF`` is how Spark reaches storages, as JSON: the metastore makes
directories there.

Hive's own main class cannot be told an address: 2.3.10 calls ``getServerSocket(null, port)`` and so listens on every
interface, without authentication. This makes the same request handler and gives it a socket on loopback instead.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

from py4j.java_gateway import JVMView
from pyspark.java_gateway import launch_gateway

from tests.services.announcing import announce

HADOOP = "spark.hadoop."
"""How Spark's names of Hadoop's settings begin."""


def settings(directory: Path) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory / 'derby'};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.connectionPoolingType": "HikariCP",  # the default, BoneCP, is not among pyspark's jars
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.metastore.warehouse.dir": str(directory / "warehouse"),
    }


def serve(jvm: JVMView, directory: Path, spark_conf: dict[str, str]) -> None:
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
    for name, value in settings(directory).items():
        conf.set(name, value)
    for name, value in spark_conf.items():
        if name.startswith(HADOOP):
            conf.set(name.removeprefix(HADOOP), value)
    metastore = jvm.org.apache.hadoop.hive.metastore
    handler = metastore.HiveMetaStore.newRetryingHMSHandler("metastore", conf, True)
    thrift = jvm.org.apache.thrift
    socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
    pool = thrift.server.TThreadPoolServer.Args(socket).processor(metastore.TSetIpAddressProcessor(handler))
    announce(directory, socket.getServerSocket().getLocalPort())
    thrift.server.TThreadPoolServer(pool).serve()


if __name__ == "__main__":
    reached = json.loads(os.environ["METASTORE_SPARK_CONF"])
    options = " ".join(f"--conf {shlex.quote(f'{name}={value}')}" for name, value in reached.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 512m {options} pyspark-shell"
    serve(launch_gateway().jvm, Path(sys.argv[1]), reached)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
