"""A JVM for a service that brings its own jars, none of which are pyspark's."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from py4j.java_gateway import GatewayParameters, JavaGateway, JVMView, launch_gateway


def launched(classpath: str, options: Iterable[str], java: str | None = None) -> JVMView:
    """Start a JVM that ends when the pipe from this process breaks; ``java`` None is JAVA_HOME's."""
    port, token = launch_gateway(
        classpath=classpath,
        javaopts=["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options],
        die_on_exit=True,
        enable_auth=True,
        java_path=java,
        redirect_stdout=sys.stdout,
        redirect_stderr=sys.stderr,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)).jvm
