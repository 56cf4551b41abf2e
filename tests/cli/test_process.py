"""The program as a process of its own, with a Spark of its own: what reaches the terminal, and what does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schemasync.core.mapping import NOTHING_FIX
from tests.children import SHORT_LIVED
from tests.io.http_registry_server import Canned, RegistryServer

pytestmark = pytest.mark.spark


def schemasync(root: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | SHORT_LIVED | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "schemasync", *argv]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_nothing_of_sparks_own_noise_reaches_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "schemasync.yaml").write_text("registry: {url: 'file:./registry'}")
    done = schemasync(tmp_path, "plan", "--json")
    told = done.stderr.splitlines()
    assert (done.returncode, told[0], len(told), json.loads(done.stdout)["tables"]) == (0, "starting Spark", 2, [])
    assert told[1].endswith("has no subjects for us. " + NOTHING_FIX)
    assert "WARN" in (tmp_path / ".schemasync/spark.log").read_text()


@pytest.mark.one_spark
def test_sigterm_ends_a_watcher_that_waits_to_ask_the_registry_again(tmp_path: Path) -> None:
    environ = os.environ | SHORT_LIVED | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"}
    with RegistryServer() as server:
        server.always = Canned(status=503, headers={"Retry-After": "60"})
        (tmp_path / "schemasync.yaml").write_text(f"registry: {{url: '{server.url}'}}")
        with subprocess.Popen([sys.executable, "-m", "schemasync", "watch"], cwd=tmp_path, env=environ) as process:
            try:
                until = time.monotonic() + 120
                while not server.log and time.monotonic() < until:
                    time.sleep(0.1)
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
            finally:
                process.kill()
    assert len(server.log) == 1


def test_a_jvm_that_does_not_start_is_one_error_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "schemasync.yaml").write_text("registry: {url: 'file:.'}\nspark: {conf: {spark.driver.memory: plenty}}")
    done = schemasync(tmp_path, "plan")
    log = tmp_path / ".schemasync/spark.log"
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, lines[0], len(lines)) == (1, "", "starting Spark", 2)
    assert lines[1].startswith(f"error: {tmp_path}/.schemasync: Spark did not start: ")
    assert ("plenty" in lines[1], f"Look at {log}, and run `schemasync doctor`." in lines[1]) == (True, True)
