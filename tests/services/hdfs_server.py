"""An HDFS of one name node and one data node: ``python -m tests.services.hdfs_server DIRECTORY``.

Started by the fixture `hdfs`. It listens on 127.0.0.1 and writes the name node's port into ``DIRECTORY/port`` once it
can be asked; the JVM ends with this process, however that ends. ``HDFS_SERVER_CLASSPATH`` are Hadoop's own jars, which
go before those that pyspark ships.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from py4j.java_gateway import JVMView
from pyspark.java_gateway import launch_gateway

from tests.services.announcing import announce


def serve(jvm: JVMView, directory: Path) -> None:
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("hdfs.minidfs.basedir", str(directory / "disks"))
    for address in ("dfs.datanode.address", "dfs.datanode.http.address", "dfs.datanode.ipc.address"):
        conf.set(address, "127.0.0.1:0")
    cluster = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(conf).numDataNodes(1).build()
    cluster.waitActive()
    announce(directory, cluster.getNameNodePort())
    threading.Event().wait()


if __name__ == "__main__":
    classpath = os.environ["HDFS_SERVER_CLASSPATH"]
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 512m --driver-class-path {classpath} pyspark-shell"
    serve(launch_gateway().jvm, Path(sys.argv[1]))  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
