"""Spark as every benchmark starts it: two cores, Java found or taken from PyPI, a metastore of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from schemasync.io.java import find_java
from schemasync.io.spark_session import SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def started(
    home: Path, *, memory: str, master: str = "local[2]", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a session below ``home``; ``memory`` is the heap of its JVM, as Spark writes it."""
    settings = SessionSettings(home=home, master=master, conf={**(conf or {}), "spark.driver.memory": memory})
    java = find_java(os.environ, cache_dir=home / "java")
    return start_session(settings, java_home=java.home, python=sys.executable)
